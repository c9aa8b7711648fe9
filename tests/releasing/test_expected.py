"""Before epsilon is spent, forecasts use twins; queries of the log are charged."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import veilog
from veilog import BudgetError, Domain, Ledger, ParameterError, Variants
from veilog.logs.synthetic.twins import Sizes, twin_of
from veilog.privacy.curator import Curator
from veilog.releasing.preview import Expected, Interval, ask_sizes, cases_with, least_cases
from veilog.releasing.request import plan

LOG = Variants.from_dict({("a", "b", "c"): 600, ("a", "c"): 300, ("a", "b", "b", "c"): 90, ("d",): 10})


def test_declared_sizes_touch_no_data_and_asked_ones_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    found = veilog.twin(LOG, epsilon="0.2", activities=4, seed=1)
    assert {charge.question for charge in found.guarantee.charges} == {"count", "histogram", "concentration"}  # type: ignore[union-attr]
    assert sum(charge.epsilon for charge in found.guarantee.charges) == Fraction(1, 5)  # type: ignore[union-attr]

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(Curator, "__init__", forbidden)
    declared = veilog.twin(LOG, cases=50, length=4, activities=3)
    assert declared.guarantee is None and declared.log.number_of_cases == 50


def test_asked_sizes_are_near_the_exact_ones() -> None:
    sizes = veilog.twin(LOG, epsilon=1, activities=("a", "b", "c", "d"), seed=1).sizes
    assert abs(sizes.cases - 1000) < 150
    assert abs((sizes.frequent or 0) - 0.6) < 0.1 and abs(sizes.length - 2.77) < 0.6
    assert sizes.activities == 4


def test_what_is_not_asked_without_noise_is_known_by_the_answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two logs that gave the same answers have the same sizes, and so the same twins."""
    answers = iter([*range(100, 4 * 100, 100)] * 2)
    monkeypatch.setattr(Curator, "concentration", lambda *_, **__: next(answers))
    monkeypatch.setattr(Curator, "count", lambda *_, **__: 1150)
    monkeypatch.setattr(Curator, "histogram", lambda self, assign, size, eps, **_: np.full(size, 50))
    other = Variants.from_dict({("x",): 3})
    first, second = (ask_sizes(Curator(log), Fraction(1)) for log in (LOG, other))
    assert first == second


def test_sizes_that_were_asked_know_how_far_noise_puts_them_off() -> None:
    asked = veilog.twin(LOG, epsilon="0.2", seed=1).sizes
    half = veilog.twin(LOG, epsilon="0.1", seed=1).sizes
    assert asked.off is not None and half.off == pytest.approx(tuple(2 * off for off in asked.off))
    known = veilog.twin(LOG, epsilon="0.2", cases=1000, seed=1)
    assert known.sizes.cases == 1000 and known.sizes.off is not None and known.sizes.off[0] == 0
    assert "count" not in {charge.question for charge in known.guarantee.charges}  # type: ignore[union-attr]


def test_a_twin_is_entered_in_the_ledger_and_refused_beyond_the_budget(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "log.ledger", create=True)
    ledger.set_budget(LOG, "0.1")
    veilog.twin(LOG, epsilon="0.06", ledger=ledger)
    account = ledger.account(LOG)
    assert account is not None and account.spent == (Fraction(6, 100), 0)
    with refused(BudgetError, "budget-exceeded"):
        veilog.twin(LOG, epsilon="0.06", ledger=ledger)


def test_what_is_missing_is_said() -> None:
    with refused(ParameterError, "sizes-unknown"):
        veilog.twin(cases=10)
    with refused(ParameterError, "sizes-epsilon-without-log"):
        veilog.twin(epsilon=1)
    with refused(ParameterError, "twins-out-of-range"):
        veilog.plan("travas", epsilon=1, delta="1e-4").expected(cases=10, length=2, twins=0)


@pytest.mark.slow
def test_an_expectation_asks_twins_only(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    init = Curator.__init__

    def seen(self: Curator, variants: Variants, **more: object) -> None:
        held.append(getattr(variants, "cases", None) or variants.variants.cases)  # type: ignore[attr-defined]
        init(self, variants, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Curator, "__init__", seen)
    plan = veilog.plan("travas", epsilon=1, delta="1e-4")
    found = plan.expected(cases=123, length=3, activities=4, frequent=0.4, twins=3)
    assert held == [123] * 3
    assert found.twins == 3 and 0 <= found.similarity.low <= found.similarity.mean <= found.similarity.high <= 1
    assert found == plan.expected(cases=123, length=3, activities=4, frequent=0.4, twins=3)


@pytest.mark.slow
def test_times_and_use_cases_are_expected_too() -> None:
    plan = veilog.plan("travas", epsilon=2, delta="1e-4", times="0.3")
    found = plan.expected(cases=150, length=3, activities=3, frequent=0.5, twins=2, use_cases=("prediction",))
    assert found.durations is not None and 0 <= found.durations.mean <= 1
    assert [name for name, _ in found.use_cases] == ["prediction"]
    assert {"durations", "use_cases"} <= set(found.to_json())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cases", "length", "activities", "variants", "promising"),
    [(300, 35, 398, 295, False), (1000, 4, 8, 50, True)],
)
def test_wide_logs_are_told_before(cases: int, length: float, activities: int, variants: int, promising: bool) -> None:
    names = Domain.of(f"act {i:03d}" for i in range(activities))
    plan = veilog.plan("evolve", epsilon=1, domain=names)
    found = plan.expected(cases=cases, length=length, variants=variants, twins=3)
    assert found.promising is promising
    warned = not found.promising and found.doubt.code == "little-kept-wide"
    assert warned is not promising
    assert found.sizes.activities == activities


def test_an_interval_is_wider_where_twins_differ() -> None:
    close, far = Interval.of([0.5, 0.5, 0.51], 0.03), Interval.of([0.3, 0.5, 0.7], 0.03)
    assert close.low < 0.5 < close.high and far.high - far.low > 2 * (close.high - close.low)
    assert Interval.of([0.99, 1.0], 0.03).high == 1.0


@pytest.mark.nightly
def test_with_many_activities_it_is_said_how_many_survive_and_in_how_many_cases() -> None:
    """The forecast of surviving activities and cases is right to a factor of 2.

    A made-up log of 120 activities (seed 11) is released (seed 1) beside the forecast of three others of its public
    sizes.
    """
    sizes = Sizes(cases=1000, length=30.0, activities=120)
    log = twin_of(sizes, 11)
    planned = plan("evolve", epsilon=1, activities=log.labels)
    found = planned.expected(sizes, twins=3).survivors
    assert found is not None and found.of <= 120
    kept, _, least = least_cases(log, planned.seeded(1).run(log).variants)
    assert kept / 2 <= found.kept <= 2 * kept and least / 2 <= found.least_cases <= 2 * least
    assert kept / 2 <= found.among(cases_with(log)).kept <= 2 * kept


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"cases": 10, "length": 3, "ledger": "own.ledger"}, "sizes-ledger-without-epsilon"),
        ({"log": LOG, "length": 3}, "sizes-log-without-epsilon"),
        ({"cases": 10, "length": 3, "unit": "patient", "max_cases": 2}, "sizes-unit-without-epsilon"),
        ({"epsilon": 1}, "sizes-epsilon-without-log"),
    ],
)
def test_sizes_are_declared_or_asked_for(given: dict[str, Any], code: str) -> None:
    with refused(ParameterError, code):
        veilog.twin(**given)


def test_why_little_is_expected_follows_from_the_sizes() -> None:
    low = Interval(0.1, 0.0, 0.2)
    doubts = {
        Sizes(300, 35, activities=398): "little-kept-wide",
        Sizes(300, 35): "little-kept-long",
        Sizes(300, 4, activities=8): "little-kept",
        Sizes(50_000, 35, activities=398): "little-kept",
    }
    for sizes, code in doubts.items():
        assert Expected(low, sizes, twins=3).doubt.code == code

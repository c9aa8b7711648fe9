"""Certified releases depend on the curator's answers alone.

Every method is run on a log, its queries and their answers are recorded, and it is run on another log with these
answers. It must ask the same and release the same (see replaying.py). The other log is a neighbour, one case less, and
where all public facts are declared also one that has nothing to do with the first.
"""

import dataclasses
import datetime
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from openly import planned
from replaying import check_charges

from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import draw_starts, hospital
from veilog.logs.variants import Variants
from veilog.methods import METHODS, Settings, travag
from veilog.methods.method import Request
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms.mechanism import NoisedSteps
from veilog.testing.methods import recorded_and_replayed, same

LOG, STRANGER = draw_starts(hospital(60, seed=1)), draw_starts(hospital(40, seed=9), seed=1)
ATTRIBUTES = ("age group", "org:resource")
RULES = [
    {"first": "Registration"},
    {"before": ["Triage", "Consultation"]},
    {"activity": "ECG", "at_most": 1},
    {"from": "Registration", "to": "Triage", "at_least": "5 min", "at_most": "1 h"},
    {"attribute": "age group != 80+"},
]
SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "evolve": (
        {},
        {"delta": 1e-3},
        {"delta": 1e-2, "for": "models", "epsilon": 8},
        {"delta": 1e-2, "only_real": True},
        {"epsilon": 8, "prior": hospital(300, seed=2).variants},
        {"epsilon": "0.4", "prior": hospital(300, seed=2).variants},
        {"epsilon": 8, "prior": hospital(300, seed=2).variants, "delta": 1e-2},
        {"times": 0.3},
        {"times": 0.3, "processing": True, "prior": draw_starts(hospital(300, seed=2)), "epsilon": 8},
        {"times": 0.3, "window": "log"},
        {"times": 0.3, "processing": True},
        {"delta": 1e-2, "times": 0.3, "processing": True},
        {"delta": 0.1, "attributes": ATTRIBUTES, "epsilon": 90},
        {"epsilon": 8, "times": 0.2, "unit": "person", "max_cases": 2},
        {"epsilon": 8, "rules": RULES, "delta": 1e-2},
        {"epsilon": 8, "rules": RULES, "prior": hospital(300, seed=2).variants},
        {"times": 0.3, "rules": RULES},
        {"delta": 0.1, "rules": RULES, "attributes": ATTRIBUTES, "epsilon": 90},
    ),
    "laplace": (
        {},
        {"rules": RULES},
        {"epsilon": 8, "prior": hospital(300, seed=2).variants},
        {"epsilon": 8, "prior": hospital(300, seed=2).variants, "rules": RULES, "depth": 5},
        {"rest": "share", "depth": 4},
        {"delta": 0.1, "depth": 12, "epsilon": 9},
    ),
    "sacofa": (
        {},
        {"rules": RULES},
        {"epsilon": 8, "prior": hospital(300, seed=2).variants},
        {"rule_share": 0.4},
        {"delta": 0.1, "depth": 12, "epsilon": 9},
    ),
    "df-laplace": ({}, {"rules": RULES, "epsilon": 50}, {"playout": "paper", "epsilon": 50}),
    "sapa": ({"k": 2}, {"k": 2, "rules": RULES}),
    "dpim": ({}, {"rules": RULES, "epsilon": 50}, {"bound": 5, "count_share": 0, "epsilon": 50}),
    "travas": ({"delta": 1e-2}, {"delta": 1e-2, "rules": RULES}, {"delta": 1e-2, "times": 0.3, "window": "log"}),
    "utravas": ({"delta": 0.1, "subqueries": 3},),
    "travag": (
        {
            "delta": 0.1,
            "epsilon": 6,
            "critic_steps": 3,
            "autoencoder_steps": 2,
            "autoencoder_share": 0.1,
            "free_generator_steps": 5,
        },
        {"delta": 0.1, "epsilon": 6, "critic": "deep", "critic_steps": 3, "free_generator_steps": 5},
    ),
    "pripel": (
        {},
        {"delta": 1e-2, "query": "travas", "attribute_names": "age group,org:resource", "start_window": "log"},
    ),
    "libra": ({}, {"samples": 2, "gamma": 0.5, "query": "laplace", "times_share": 0.0}),
}
NIGHTLY = {
    "evolve-delta",
    "evolve-delta-for-epsilon",
    "evolve-epsilon-times-unit-max_cases",
    "libra-samples-gamma-query-times_share",
    "pripel-plain",
    "travag-delta-epsilon-critic-critic_steps-free_generator_steps",
}
"""Slow settings, replayed on four other neighbours where bytes are compared."""


def named(method: str, settings: dict[str, Any]) -> Any:
    name = f"{method}-{'-'.join(settings) or 'plain'}"
    return pytest.param(method, settings, id=name, marks=[pytest.mark.nightly] * (name in NIGHTLY))


CASES = [named(method, settings) for method in sorted(SETTINGS) for settings in SETTINGS[method]]


def neighbour(log: EventLog) -> EventLog:
    """Return the log without its third case, which changes no public fact."""
    less = log.only(np.delete(np.arange(log.cases.num_rows), 2))
    assert less.variants.labels == log.variants.labels
    assert less.variants.lengths.max() == log.variants.lengths.max()
    return less


def declared(*logs: EventLog) -> Domain:
    """Return all facts that could be public about these logs."""

    def values(name: str) -> tuple[str, ...]:
        columns = [(log.events if name in log.events.column_names else log.cases).column(name) for log in logs]
        return tuple(sorted({str(v) for column in columns for v in column.to_pylist() if v is not None}))

    year = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
    return Domain(
        activities=tuple(sorted({label for log in logs for label in log.variants.labels})),
        max_length=15,
        attributes={"age group": values("age group"), "org:resource": values("org:resource"), "urgency": (1, 5)},
        window=year,
    )


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run TraVaG with few steps and a rough account; the replay depends on neither."""

    def rough(plan: Iterable[NoisedSteps], delta: float | Fraction, *, about: float = 1.0) -> float:
        strength = math.sqrt(sum(part.steps * (part.rate / part.noise_multiplier) ** 2 for part in plan))
        return strength**2 / 2 + strength * math.sqrt(2 * math.log(1 / delta))

    for module in ("accountant", "gradients"):
        monkeypatch.setattr(f"veilog.privacy.mechanisms.{module}.composed_epsilon", rough)
    short = dataclasses.replace(travag.CERTIFIED, free_autoencoder_steps=3, free_batch=32)
    monkeypatch.setattr(travag, "CERTIFIED", short)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "settings"), CASES)
def test_with_equal_answers_a_neighbouring_log_gives_the_same_release(method: str, settings: dict[str, Any]) -> None:
    first, second, tape = recorded_and_replayed(planned(method, **{"epsilon": 2} | settings), LOG, neighbour(LOG))
    assert tape.position == len(tape.entries) > 0
    assert same(first, second)
    assert first.variants.cases > 0, "or the test shows nothing"
    assert ("times" in settings) <= (first.details is not None and first.details.times is not None)
    released = {*first.log.events.column_names, *first.log.cases.column_names}
    assert set(settings.get("attributes", ())) <= released
    opened = check_charges(first, tape)
    together = "delta" in settings and (method in ("laplace", "sacofa", "pripel") or "times" in settings)
    most = together * (1 + ("processing" in settings))
    # With a delta, deep trees charge their levels together, and so do times where that is better.
    assert together <= opened.count("rounds") <= most


@pytest.mark.slow
@pytest.mark.parametrize("method", ["evolve", "sacofa", "travas", "pripel", "libra"])
def test_with_equal_answers_a_log_of_other_people_gives_the_same_release(method: str) -> None:
    settings: dict[str, Any] = {"delta": 1e-2} if "delta" in str(METHODS[method].budget) else {}
    if not METHODS[method].full_log:
        settings |= {"times": 0.2, "attributes": ATTRIBUTES, "processing": True}
    domain = declared(LOG, STRANGER)
    first, second, tape = recorded_and_replayed(planned(method, domain=domain, epsilon=8, **settings), LOG, STRANGER)
    assert tape.position == len(tape.entries) > 0
    assert same(first, second) and first.variants.cases > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("evolve", {"times": 0.2}),
        ("evolve", {"times": 0.2, "persons": 0.4, "epsilon": 60}),
        ("laplace", {"persons": 0.4}),
        ("travas", {"delta": 1e-2}),
    ],
)
def test_with_equal_answers_a_log_without_a_person_gives_the_same_release(
    method: str, settings: dict[str, Any]
) -> None:
    """A log without a person gives the same release with equal answers.

    The draw of the two cases of a person that count comes first, of fewer people from fewer bits.
    """
    patients = pa.array([f"patient {i // 3}" for i in range(LOG.number_of_cases)])
    log = EventLog(LOG.events, LOG.cases.append_column("Patient", patients), LOG.metadata)
    less = log.only(np.flatnonzero([name != "patient 7" for name in patients.to_pylist()]))
    asked = planned(method, **{"epsilon": 16, "unit": "Patient", "max_cases": 2} | settings)
    first, second, tape = recorded_and_replayed(asked, log, less)
    assert tape.position == len(tape.entries) > 0
    assert same(first, second) and first.variants.cases > 0
    assert ("persons" in settings) == ("Patient" in first.log.cases.column_names)


def test_every_certified_method_is_replayed() -> None:
    assert set(SETTINGS) == {name for name, method in METHODS.items() if method.certified and method.takes_epsilon}


def _looks(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Read the number of raw cases beside the query."""
    answer = curator.partitions(request.epsilon, request.delta)
    return answer.with_counts(answer.counts + curator._variants.cases)


def _asks_by_what_it_saw(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Spend by the number of raw cases."""
    share = request.epsilon / (2 + curator._variants.cases % 2)
    return curator.partitions(share, request.delta)


def _sorts_by_what_it_saw(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Sort cases into bins by the number of cases of their variant."""
    counts = curator._variants.to_dict()
    curator.histogram(lambda block: [min(counts.get(s, 0), 1) for s in block], 2, request.epsilon)
    return Variants.from_dict({("a",): 1})


def _asks_once_more(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Ask a second time if the number of raw cases is even."""
    share = request.epsilon / 2
    found = curator.partitions(share, request.delta)
    return found if curator._variants.cases % 2 else curator.partitions(share, request.delta)


@pytest.mark.parametrize("cheat", [_looks, _asks_by_what_it_saw, _asks_once_more, _sorts_by_what_it_saw])
def test_a_method_that_looks_elsewhere_is_caught(cheat: Callable[..., Variants]) -> None:
    method = dataclasses.replace(METHODS["travas"], run=cheat)
    cheating = dataclasses.replace(planned("travas", epsilon=2, delta=1e-2), method=method)
    one = Variants.from_dict({("a", "b"): 40, ("b",): 30, ("b", "a"): 1})
    less = Variants.from_dict({("a", "b"): 40, ("b",): 30})
    try:
        first, second, _ = recorded_and_replayed(cheating, one, less)
    except AssertionError as error:
        assert "another query" in str(error) or "one query more" in str(error)
        return
    assert not same(first, second)

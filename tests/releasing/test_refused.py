"""Wrong arguments in Python raise our errors, with advice, before any query."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from refusals import refused

import veilog
import veilog.report
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods.evolve.synthesis import remark_real
from veilog.methods.method import Request

LOG = hospital(30, seed=1)
RELEASED = veilog.release(LOG, "laplace", epsilon=1, depth=2, activities="log", seed=1)
LAPLACE: dict[str, Any] = {"method": "laplace", "epsilon": 1, "depth": 2, "activities": "log"}


@pytest.mark.parametrize(
    ("wrong", "code", "values"),
    [
        (
            lambda: veilog.validate("log.xes", actvity="a"),
            "read-argument-unknown",
            {"name": "actvity", "meant": "Did you mean 'activity'?"},
        ),
        (lambda: veilog.risk(LOG, size=None), "disclosure-size-not-whole", {"k": None}),
        (lambda: veilog.risk(LOG, size=1.5), "disclosure-size-not-whole", {"k": 1.5}),
        (
            lambda: veilog.risk(LOG, background=3),
            "disclosure-background-unknown",
            {"background": 3, "names": "set, multiset, sequence"},
        ),
        (lambda: RELEASED.save(None), "file-name-none", {}),
        (lambda: veilog.write("x.xes", LOG), "file-name-not-path", {"kind": "EventLog"}),
        (
            lambda: veilog.release(LOG, ledger=3, **LAPLACE),
            "file-name-not-path",
            {"kind": "int"},
        ),
        (
            lambda: veilog.suggest(LOG, epsilon=1, ledger=3),
            "file-name-not-path",
            {"kind": "int"},
        ),
        (lambda: veilog.read("log.xes", map=3), "file-name-not-path", {"kind": "int"}),
        (lambda: LOG.head("a"), "events-number-not-whole", {"events": "a"}),
        (lambda: veilog.Variants.from_dict({("a", None): 3}), "activity-name-not-text", {"strange": None}),
        (lambda: veilog.compare(LOG, LOG, model_seconds=-1), "comparison-seconds-not-positive", {"seconds": -1}),
        (lambda: veilog.compare(LOG, LOG, models="pm4yp"), "comparison-models-invalid", {"models": "pm4yp"}),
        (lambda: veilog.report.write(RELEASED, "r.pdf"), "report-not-html", {}),
        (lambda: veilog.release(LOG, unit="person", **LAPLACE), "unit-without-bound", {"unit": "person"}),
    ],
)
def test_what_cannot_be_meant_is_told(
    wrong: Callable[[], object], code: str, values: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    veilog.write(LOG, "log.xes")
    with refused(veilog.VeilogError, code, **values):
        wrong()
    assert [path.name for path in tmp_path.iterdir()] == ["log.xes"]


@pytest.mark.parametrize(
    ("real", "said"),
    [
        (
            {("a",): 9},
            Message("one-variant-certain-and-largest", variants=1, cases=9, others=3),
        ),
        (
            {("a",): 9, ("b",): 5},
            Message("variants-certain-and-largest", variants=2, cases=14, others=3),
        ),
    ],
)
def test_one_variant_is_one(real: dict[tuple[str, ...], int], said: Message) -> None:
    remarks: list[str | Message] = []
    request = Request(
        epsilon=Fraction(1),
        delta=Fraction(1, 1000),
        as_published=False,
        progress=lambda text, fraction: None,
        score=lambda original, released: 0.0,
        remark=remarks.append,
    )
    remark_real(request, Variants.from_dict(real | {("c",): 3}), Variants.from_dict(real))
    assert remarks == [said]


PATHS = Variants.from_dict({("a", "b"): 300, ("a",): 200})
NUMBERS: dict[str, Any] = {"method": "laplace", "epsilon": 1, "depth": 2}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda book: veilog.twin(PATHS, epsilon=1, number=-1, ledger=book), "sizes-number-not-whole"),
        (lambda book: veilog.twin(PATHS, epsilon=1, variants=0, ledger=book), "twin-number-out-of-range"),
        (lambda book: veilog.twin(PATHS, epsilon=1, activities=0, ledger=book), "twin-number-out-of-range"),
        (lambda book: veilog.twin(PATHS, epsilon=1, activities=(), ledger=book), "twin-number-out-of-range"),
        (lambda book: veilog.twin(PATHS, epsilon=1, frequent=float("nan"), ledger=book), "twin-share-out-of-range"),
        (lambda book: veilog.twin(PATHS, epsilon=1, length=-1, ledger=book), "twin-number-out-of-range"),
        (lambda book: veilog.twin(PATHS, epsilon=1, cases=5, variants=7, ledger=book), "twin-number-out-of-range"),
        (lambda book: veilog.suggest(PATHS, epsilon=1, activities=0, ledger=book), "twin-number-out-of-range"),
        (lambda book: veilog.suggest(PATHS, epsilon=1, activities=5_001, ledger=book), "twin-number-out-of-range"),
        (
            lambda book: veilog.release(LOG, ledger=book, **LAPLACE, times="0.3", window=("0001-01-01", "9999-12-31")),
            "window-weeks-too-many",
        ),
        (
            lambda book: veilog.release(
                LOG, "pripel", epsilon=1, activities="log", start_window="0001-01-01..9999-12-31", ledger=book
            ),
            "window-weeks-too-many",
        ),
        (lambda book: _with_range(book, "cost", -1e308, 1e308), "domain-range-too-far"),
        (lambda book: _with_range(book, "cost", 0, 10**400), "domain-range-too-far"),
        (lambda book: _with_range(book, "cost", 0, 1e-320), "domain-range-too-far"),
        (lambda book: _with_range(book, "cost", 1e26, 1e27), "attribute-range-reversed"),
    ],
)
def test_what_is_wrong_with_a_declared_number_is_said_before_anything_is_paid(
    wrong: Callable[[veilog.Ledger], object], said: str, tmp_path: Path
) -> None:
    """A wrong declared number is refused before anything is spent."""
    book = veilog.Ledger.open(tmp_path / "a.ledger", create=True)
    with refused(veilog.ParameterError, said):
        wrong(book)
    assert all(account.spent == (0, 0) for account in book.show())


def _with_range(book: veilog.Ledger, name: str, low: float, high: float) -> veilog.Release:
    domain = veilog.Domain("log", attributes={name: (low, high)})
    return veilog.release(LOG, "laplace", epsilon=1, depth=2, domain=domain, attributes=[name], ledger=book)


@pytest.mark.slow
def test_more_variants_than_a_noisy_number_of_cases_are_as_many() -> None:
    """Variants beyond a noisy number of cases are cut to it, and not refused."""
    twins = [veilog.twin(Variants.from_dict({("a",): 3}), epsilon=1, variants=3, seed=seed) for seed in range(20)]
    assert min(twin.sizes.cases for twin in twins) < 3
    assert all(twin.sizes.variants == min(3, twin.sizes.cases) for twin in twins)


def test_a_suggestion_of_a_log_without_activities_or_of_very_many_is_made() -> None:
    """A suggestion for no activities, or for thousands of them, is made."""
    many = [f"a{number}" for number in range(6_000)]
    for log, said in ((Variants.from_dict({}), "log"), (PATHS, many)):
        found = veilog.suggest(log, epsilon=1, domain=veilog.Domain.of(said), seed=1)
        assert found.sizes is not None and found.sizes.activities == (None if said == "log" else 5_000)


def test_a_bound_on_lengths_that_is_more_than_any_case_has_cuts_nothing() -> None:
    """A bound on lengths beyond numpy's numbers cuts nothing, and raises nothing."""
    domain = veilog.Domain.of("log", 10**26)
    found = veilog.release(LOG, "laplace", epsilon=1, depth=2, domain=domain, seed=1)
    assert not {"cases-cut", "cases-cut-to-one-event"} & {note.code for note in found.owner_only.notes}
    assert found.variants == veilog.release(LOG, seed=1, **LAPLACE).variants


@pytest.mark.slow
def test_dates_are_in_the_years_that_files_have() -> None:
    """Released dates are in the years 1 to 9999, also for a range of a billion days."""
    frame = LOG.to_pandas()
    frame["case:born"] = pd.Timestamp("1960-05-01", tz="UTC")
    domain = veilog.Domain("log", attributes={"born": (-1e9, 0)})
    asked: dict[str, Any] = {"epsilon": 3.8, "depth": 2, "times": "0.3", "attributes": ["born"], "domain": domain}
    found = [veilog.release(frame, "laplace", **asked, seed=seed).log for seed in range(10)]
    born = [value for log in found for value in log.cases.column("born").drop_null().to_pylist()]
    years = [value.year for value in born]
    assert years and min(years) >= 1 and max(years) <= 9999


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"epsilon": 1, "runs": 10**26}, "audit-runs-too-many"),
        ({"epsilon": 1000, "runs": 200}, "audit-claim-out-of-reach"),
        ({"epsilon": 3, "runs": 40}, "audit-runs-too-few"),
    ],
)
def test_an_audit_that_cannot_show_anything_is_refused(asked: dict[str, Any], code: str) -> None:
    with refused(veilog.ParameterError, code, runs=asked["runs"]):
        veilog.audit("laplace", activities="log", depth=2, **asked)

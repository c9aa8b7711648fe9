"""Queries about persons, audited from inside as a release asks them.

The added or removed person has many more cases than count, all alike, or just as many. The charge is stated for one
case; a person's charge is that times the cases that count. So the largest factor that an audit may show for a right
query is that number.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import openly
import pandas as pd
import pytest
from test_questions_about_events import OfOneQuestion, halved, unclipped

import veilog
from veilog import Domain
from veilog.audits.attacks import Attempt
from veilog.audits.whitebox import WhiteProof, prove
from veilog.logs.eventlog import EventLog
from veilog.privacy import histories
from veilog.privacy.mechanisms.mechanism import Laplace

MOST, RUNS = 3, 700
PLANNED = openly.planned(
    "laplace",
    epsilon="4.5",
    domain=Domain(("a", "b", "c", "d"), 4),
    unit="Patient",
    max_cases=MOST,
    times="0.1",
    window="2024-01-01..2026-01-01",
    persons="0.8",
)


def visits(extra: int) -> EventLog:
    """Return persons with one to three cases, and perhaps one with ``extra`` cases.

    The extra cases are two days apart.
    """
    rng, begin = np.random.default_rng(4), pd.Timestamp("2024-02-01", tz="UTC")
    rows: list[tuple[str, str, pd.Timestamp, str]] = []

    def add(person: str, names: str, day: float) -> None:
        case = str(len({row[0] for row in rows}))
        hours = range(len(names))
        rows.extend((case, names[h], begin + pd.Timedelta(days=day, hours=h), person) for h in hours)

    for person in range(360):
        day = float(rng.uniform(0, 300))
        for _ in range(int(rng.integers(1, 4))):
            add(f"p{person}", ["abcd", "aabb", "cb", "dcab"][int(rng.integers(4))], day)
            day += float(rng.uniform(3, 100))
    for number in range(extra):
        add("new", "cb", 10 + number * 2.0)
    columns = ["case:concept:name", "concept:name", "time:timestamp", "case:Patient"]
    return veilog.read(pd.DataFrame(rows, columns=columns))


PAIRS = {
    "as many as count": Attempt("a person of as many cases as count", visits(0), visits(MOST), ()),
    "many": Attempt("a person of very many cases", visits(0), visits(40), ()),
}
LEAST = {"persons-by-cases": 0.6, "next-cases-by-kind": 0.4, "gaps-to-next-cases": 0.4}
"""Smallest share of a person's charge that an audit can see."""


def audited(purpose: str, pair: str, fault: tuple[Any, str, Any] | None = None, runs: int = RUNS) -> WhiteProof:
    recorder = OfOneQuestion(PLANNED, lambda text, fraction: None, None, 1, purpose=purpose, fault=fault)
    return prove(recorder, [PAIRS[pair]], runs, 0.0, 0.99, np.random.SeedSequence(1), lambda text, fraction: None)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("purpose", "pair"),
    [
        ("persons-by-cases", "as many as count"),
        ("persons-by-cases", "many"),
        ("next-cases-by-kind", "many"),
        ("gaps-to-next-cases", "as many as count"),
        ("gaps-to-next-cases", "many"),
    ],
)
def test_the_question_keeps_what_a_person_is_charged_and_the_audit_is_sharp(purpose: str, pair: str) -> None:
    found = audited(purpose, pair)
    assert LEAST[purpose] < found.factor / MOST <= 1 and not found.faults
    ((charged,),) = (part.asked for part in found.shape)
    assert charged.question == "person sums"


FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "clip missing": (histories, "contributions", unclipped),
    "half the noise": (Laplace, "draw", halved),
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("purpose", "fault"),
    [
        ("persons-by-cases", "half the noise"),
        ("next-cases-by-kind", "clip missing"),
        ("gaps-to-next-cases", "clip missing"),
        ("gaps-to-next-cases", "half the noise"),
    ],
)
def test_a_planted_fault_is_caught(purpose: str, fault: str) -> None:
    found = audited(purpose, "many", FAULTS[fault])
    epsilon = found.shape[0].asked[0].epsilon * MOST
    assert max(found.factor / MOST, found.free.epsilon / epsilon) > 1


def test_a_release_without_persons_asks_nothing_about_them() -> None:
    plain = replace(PLANNED, wanted=replace(PLANNED.wanted, persons=PLANNED.wanted.persons * 0))
    released = plain.seeded(1).run(visits(0), ledger=False)
    assert not [charge for charge in released.guarantee.charges if charge.question == "person sums"]
    assert "Patient" not in released.log.cases.column_names

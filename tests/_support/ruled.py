"""A synthetic hospital that obeys ten public rules of all kinds."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from veilog.logs.eventlog import TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.privacy.domain import Domain
from veilog.rules.rules import ReleaseRules

DAY = 86_400_000_000
RULES: list[dict[str, Any] | str] = [
    {"first": "Registration"},
    {"last": ["Discharge", "Death"]},
    {"before": ["Triage", "Consultation", "Medication"]},
    {"followed": ["Surgery", "Ward round"]},
    {"exclusive": ["Death", "Transfer"]},
    {"activity": "Registration", "at_least": 1, "at_most": 1},
    {"from": "Registration", "to": "Triage", "at_least": "1 min", "at_most": "2 d"},
    {"attribute": "age < 18", "if": "ward = Pediatrics"},
    {"attribute": "birth <= admission"},
    {"attribute": "dose = 1..50", "activity": "Medication"},
]
DECLARED = Domain(
    activities=tuple(sorted(hospital(300, seed=1).variants.labels)),
    max_length=20,
    attributes={"age": (0, 100), "ward": ("Pediatrics", "Surgery", "Medicine"), "dose": (0, 200)},
    window=(datetime.datetime(2024, 1, 1), datetime.datetime(2026, 1, 1)),
)
ATTRIBUTES = ("ward", "age", "birth", "admission", "dose")


def ruled_hospital(cases: int, seed: int) -> EventLog:
    """Return a log of so many cases that all obey the rules."""
    rng = np.random.default_rng(seed)
    log = hospital(3 * cases, seed)
    rules = ReleaseRules.of(RULES)
    assert rules is not None
    labels, codes = log.activity_codes
    flow = rules.automata(labels).allowed(codes, log.offsets) & (np.diff(log.offsets) <= 20)
    kept = np.flatnonzero(flow & ~late(log, labels, codes))[:cases]
    log = log.only(kept)
    labels, codes = log.activity_codes
    starts = log.events.column(TIMESTAMP).cast(pa.int64()).to_numpy()[log.offsets[:-1]]
    age = rng.integers(0, 100, len(kept))
    ward = np.where(rng.random(len(kept)) < 0.5, "Surgery", "Medicine")
    ward = np.where((age < 18) & (rng.random(len(kept)) < 0.9), "Pediatrics", ward)
    birth = starts - age * 365 * DAY - rng.integers(0, 365, len(kept)) * DAY
    given = np.array(labels)[codes] == "Medication"
    dose = np.where(given, rng.integers(1, 51, len(codes)), rng.integers(60, 200, len(codes)))
    cases_table = log.cases
    for name, column in (
        ("ward", pa.array(ward.tolist())),
        ("age", pa.array(age)),
        ("birth", pa.array(birth, pa.int64()).cast(TIMESTAMP_TYPE)),
        ("admission", pa.array(starts, pa.int64()).cast(TIMESTAMP_TYPE)),
    ):
        cases_table = cases_table.append_column(name, column)
    return EventLog(log.events.append_column("dose", pa.array(dose)), cases_table, log.metadata)


def late(log: EventLog, labels: list[str], codes: Any) -> Any:
    """Return a mask of the cases that break the rule on times."""
    rules = ReleaseRules.of(RULES)
    assert rules is not None
    owners = np.repeat(np.arange(log.number_of_cases), np.diff(log.offsets))
    times = log.events.column(TIMESTAMP).cast(pa.int64()).to_numpy().astype(float)
    of_case, broken = rules.times[0].broken(labels, codes, owners, times)
    found = np.zeros(log.number_of_cases, dtype=bool)
    found[of_case[broken]] = True
    return found


def breaking(log: EventLog | Variants, rules: Any = RULES) -> int:
    """Return the number of cases that break a rule."""
    found = ReleaseRules.of(rules)
    assert found is not None
    return found.broken_in(log).any

"""Neighbouring logs with equal noisy answers publish the same bytes.

This holds where a guarantee has no conditions. Every certified method is run on a log, its queries and answers are
recorded, and it is run with these answers on the log with one case more. That case has a label of its own, thousands of
events, odd times and attributes, or no event. One recording serves all of these neighbours. All that is published is
written each time (XES, CSV, Parquet, the JSON without its confidential part, the shareable report) and compared byte
for byte. The queries bound how much the answers themselves may differ.
"""

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from openly import planned
from replaying import check_charges, record, replay
from test_record_and_replay import short_training

from veilog import report
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.methods import METHODS
from veilog.privacy.domain import PRIVATELY, Domain
from veilog.releasing.result import Release
from veilog.testing.methods import recorded_and_replayed

__all__ = ["short_training"]  # a fixture that this file uses, too

LOG = hospital(60, seed=1)
YEAR = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
DECLARED = Domain(
    activities=LOG.variants.labels,
    max_length=15,
    attributes={"age group": ("0-19", "20-39", "40-59", "60-79", "80+"), "urgency": (1, 5)},
    window=YEAR,
)
ATTRIBUTES = ("age group", "urgency")
COLUMNS = {"columns-from-log"}
PART = {"cases-keep-their-subset"}

Settings = dict[str, Any]
SETTINGS: dict[str, tuple[tuple[Settings, set[str]], ...]] = {
    "evolve": (
        ({}, set()),
        ({"delta": 1e-2, "times": 0.3}, set()),
        ({"for": "models", "epsilon": 8, "delta": 1e-2}, set()),
        ({"subset": "year=2024"}, PART),
        ({"subset": "urgency=4", "epsilon": 9}, COLUMNS | PART),
        ({"delta": 0.1, "attributes": ATTRIBUTES, "epsilon": 9}, COLUMNS),
        ({"epsilon": 8, "times": 0.2, "unit": "person", "max_cases": 2}, {"cases-per-person-bounded"}),
    ),
    "laplace": (
        ({}, set()),
        ({"rest": "share", "times": 0.3}, set()),
        ({"delta": 0.1, "depth": 12, "epsilon": 9}, set()),
    ),
    "sacofa": (({}, set()), ({"rule_share": 0.4}, set()), ({"delta": 0.1, "depth": 12, "epsilon": 9}, set())),
    "df-laplace": (({}, set()), ({"playout": "paper"}, set())),
    "sapa": (({"k": 2}, set()),),
    "dpim": (({}, set()), ({"count_share": 0.0, "epsilon": 20}, set())),
    "travas": (({"delta": 1e-2}, set()), ({"delta": 1e-2, "times": 0.3}, set())),
    "utravas": (({"delta": 0.1, "subqueries": 3}, set()),),
    "travag": (({"delta": 0.1, "epsilon": 6, "critic": "deep", "critic_steps": 3, "free_generator_steps": 5}, set()),),
    "pripel": (({}, set()), ({"delta": 1e-2, "query": "travas", "attribute_names": "age group"}, COLUMNS)),
    "libra": (({"delta": 1e-2, "times_share": 0.0}, set()), ({"samples": 2, "gamma": 0.5, "query": "laplace"}, set())),
}
CASES = [(name, wanted, given) for name in sorted(SETTINGS) for wanted, given in SETTINGS[name]]
NAMES = [f"{name}-{'-'.join(map(str, wanted)) or 'plain'}" for name, wanted, _ in CASES]


def with_case_first(
    log: EventLog,
    activities: list[str],
    start: datetime.datetime | None,
    step: datetime.timedelta,
    of_events: dict[str, Any],
    of_case: dict[str, Any],
) -> EventLog:
    """Return the log with one case first, whose labels and values are read first."""
    events = log.events.set_column(
        log.events.column_names.index(CASE_INDEX), CASE_INDEX, pa.array(log.events.column(CASE_INDEX).to_numpy() + 1)
    )
    n = len(activities)
    own: dict[str, Any] = {name: [of_events.get(name)] * n for name in events.column_names}
    own |= {CASE_INDEX: [0] * n, EVENT_INDEX: list(range(n)), ACTIVITY: activities}
    own[TIMESTAMP] = [None if start is None else start + i * step for i in range(n)]
    first = pa.table({field.name: pa.array(own[field.name], field.type) for field in events.schema})
    case = {name: [of_case.get(name)] for name in log.cases.column_names} | {ACTIVITY: ["the one more"]}
    named = pa.table({field.name: pa.array(case[field.name], field.type) for field in log.cases.schema})
    return dataclasses.replace(
        log,
        events=pa.concat_tables([first, events]).unify_dictionaries(),
        cases=pa.concat_tables([named, log.cases]).unify_dictionaries(),
    )


def neighbours(log: EventLog) -> dict[str, EventLog]:
    """Return the log with one case more, for each kind of case."""
    usual = list(log.variants.labels)
    day, hour = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC), datetime.timedelta(hours=1)
    ages = {"age group": "80+", "urgency": 4}
    return {
        "a label of its own": with_case_first(
            log, [usual[8], "Aaa: prison ward", usual[4]], day, hour, {"org:resource": "Aaa"}, ages
        ),
        "very many events": with_case_first(log, usual * 300, day, datetime.timedelta(seconds=1), {"cost": 1}, ages),
        "odd attributes": with_case_first(
            log,
            [usual[0], usual[1]],
            datetime.datetime(1801, 1, 1, tzinfo=datetime.UTC),
            datetime.timedelta(days=40_000),
            {"cost": 2**53 + 1, "leucocytes": float("inf"), "org:resource": "\u202e</x>\0"},
            {"age group": "112, last survivor of \u2028", "urgency": -(2**53) - 1},
        ),
        "no event": with_case_first(log, [], None, hour, {}, {}),
    }


NEIGHBOURS = neighbours(LOG)


def published(released: Release, folder: Path) -> dict[str, bytes]:
    """Return all that is published."""
    folder.mkdir()
    for name in ("release.xes", "release.csv", "release.parquet"):
        released.save(folder / name)
    report.write(released, folder / "recipient-report.html")
    told = released.to_json()
    assert told.pop("owner_only"), "what is the owner's is not where it belongs"
    (folder / "certificate.json").write_text(json.dumps(told))
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "wanted", "conditions"), CASES, ids=NAMES)
def test_neighbouring_logs_publish_the_same_bytes(
    method: str, wanted: Settings, conditions: set[str], tmp_path: Path
) -> None:
    asked = planned(method, domain=DECLARED, **{"epsilon": 4} | wanted)
    first, tape = record(asked, LOG)
    check_charges(first, tape)
    assert {c.code for c in first.guarantee.conditions} == conditions
    assert first.variants.cases > 0, "or the test shows nothing"
    one = published(first, tmp_path / "one")
    assert len(one) == 5
    for kind, neighbour in NEIGHBOURS.items():
        other = published(replay(asked, tape, neighbour), tmp_path / kind)
        assert tape.position == len(tape.entries) > 0, kind
        assert one.keys() == other.keys(), kind
        assert [name for name in one if one[name] != other[name]] == [], kind


@pytest.mark.slow
@pytest.mark.parametrize("method", ["evolve", "sacofa", "laplace"])
def test_neighbouring_logs_publish_the_same_bytes_where_labels_are_found_privately(method: str, tmp_path: Path) -> None:
    domain, log = Domain(activities=PRIVATELY, max_length=15), hospital(300, seed=1)
    other_log = neighbours(log)["a label of its own"]
    first, second, tape = recorded_and_replayed(planned(method, domain=domain, epsilon=9, delta="0.01"), log, other_log)
    assert tape.position == len(tape.entries) > 0
    assert tape.entries[0][0][1] == "find_activities"
    assert first.guarantee.conditions == () and first.variants.cases > 0
    one, other = published(first, tmp_path / "one"), published(second, tmp_path / "other")
    assert [name for name in one if one[name] != other[name]] == []


@pytest.mark.slow
def test_the_label_of_one_case_is_published_where_the_log_says_what_is_public(tmp_path: Path) -> None:
    """The comparison fails where the labels are those of the log (the condition)."""
    domain = Domain(activities="log", max_length=15)
    with pytest.raises(AssertionError, match="another query"):
        recorded_and_replayed(planned("evolve", domain=domain, epsilon=4), LOG, NEIGHBOURS["a label of its own"])


def test_every_certified_method_publishes_here() -> None:
    assert set(SETTINGS) == {name for name, method in METHODS.items() if method.certified and method.takes_epsilon}

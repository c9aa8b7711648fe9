"""One more case changes how no other is read, in every format and reading.

The case may bring a key, a type or a value that no other has.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import veilog
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE, CASE_INDEX, EVENT_INDEX, LIFECYCLE, START, TIMESTAMP, EventLog
from veilog.logs.storage.loader import store

Row = dict[str, Any]
NOON = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
SEGMENT = "case:segment"
BOTH = "concept:name lifecycle:transition"
"""A classifier, and what one event calls an attribute."""


def row(case: str, activity: str, hour: int, step: str | None = "complete", **more: Any) -> Row:
    return {CASE: case, ACTIVITY: activity, TIMESTAMP: NOON + hour * HOUR, LIFECYCLE: step, **more}


def steps(more: Row) -> list[Row]:
    """Cases of starts and ends, one with an end alone and one with a start alone."""
    told = [
        row(f"c{i}", activity, hour + late, step, **more)
        for i in range(6)
        for hour, activity in ((1, "a"), (4, "b"), (7, "a"))
        for late, step in ((0, "start"), (1, "complete"))
    ]
    return [*told, row("only end", "a", 1, **more), row("only start", "a", 1, "start", **more)]


BASES = {
    "steps": steps({"dose": 2, SEGMENT: "k"}),
    "decimal": steps({"dose": 1.5, SEGMENT: "k"}),
    "no life cycle": [{**one, LIFECYCLE: None} for one in steps({"dose": 2})],
    "own starts": [
        {**one, START: one[TIMESTAMP] - HOUR / 2} for one in steps({"dose": 2}) if one[LIFECYCLE] != "start"
    ],
}
OTHERS = {
    "plain": [row("x", "z", 1, "start"), row("x", "z", 2)],
    "own start": [row("x", "a", 1, **{START: NOON})],
    "own start of a start": [row("x", "a", 1, "start", **{START: NOON})],
    "no step": [row("x", "a", 1, None)],
    "no key": [{CASE: "x", ACTIVITY: "a", TIMESTAMP: NOON}],
    "a key of two names": [row("x", "a", 1, **{BOTH: "n"})],
    "another life cycle": [row("x", "a", 1, **{"Lifecycle Transition": "start"})],
    "a text": [row("x", "a", 1, dose="high")],
    "a fraction": [row("x", "a", 1, dose=2.25)],
    "a truth": [row("x", "a", 1, dose=True)],
    "a date": [row("x", "a", 1, dose=datetime.date(2024, 3, 1))],
    "a name of its own": [row("x", "a", 1, **{"case:concept:name (attribute)": "y"})],
    "a segment that varies": [row("x", "a", 1, **{SEGMENT: "k"}), row("x", "b", 2, **{SEGMENT: "l"})],
    "no segment": [row("x", "a", 1, **{SEGMENT: None}), row("x", "b", 2, **{SEGMENT: "l"})],
}
LIFE_CYCLES = (None, "complete", "start", "all", "intervals")
CLASSIFIERS = (None, BOTH, "concept:name dose", f"'{LIFECYCLE}' dose concept:name")


def keys(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(key for one in rows for key in one))


EVERY_KEY = keys([one for rows in (*BASES.values(), *OTHERS.values()) for one in rows])
"""Columns that a table declares, whatever it holds."""


def text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)


def in_csv(rows: list[Row], folder: Path) -> Any:
    found = [",".join(f'"{name}"' for name in EVERY_KEY)]
    found += [",".join(f'"{text(one.get(name))}"' for name in EVERY_KEY) for one in rows]
    (folder / "log.csv").write_text("\n".join(found) + "\n")
    return folder / "log.csv"


def in_arrow(rows: list[Row], folder: Path) -> Any:
    kinds = {TIMESTAMP: pa.timestamp("us", "UTC"), START: pa.timestamp("us", "UTC")}
    columns = {}
    for name in EVERY_KEY:
        kind = kinds.get(name, pa.string())
        values = [one.get(name) for one in rows]
        columns[name] = pa.array(values if name in kinds else [None if v is None else text(v) for v in values], kind)
    return pa.table(columns)


def in_parquet(rows: list[Row], folder: Path) -> Any:
    pq.write_table(in_arrow(rows, folder), folder / "log.parquet")
    return folder / "log.parquet"


def in_pandas(rows: list[Row], folder: Path) -> Any:
    return pd.DataFrame({name: pd.Series([one.get(name) for one in rows], dtype=object) for name in EVERY_KEY})


def in_excel(rows: list[Row], folder: Path) -> Any:
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append(EVERY_KEY)
    for one in rows:
        values = [one.get(name) for name in EVERY_KEY]
        book.active.append([v.replace(tzinfo=None) if isinstance(v, datetime.datetime) else v for v in values])
    book.save(folder / "log.xlsx")
    return folder / "log.xlsx"


def xes_of(key: str, value: Any) -> str:
    kind = {bool: "boolean", int: "int", float: "float", str: "string"}.get(type(value), "date")
    said = text(value)
    return f"<{kind} key='{key}' value='{said}{'T00:00:00Z' * (type(value) is datetime.date)}'/>"


def by_case(rows: list[Row]) -> dict[str, list[Row]]:
    return {name: [one for one in rows if one[CASE] == name] for name in dict.fromkeys(one[CASE] for one in rows)}


def in_xes(rows: list[Row], folder: Path) -> Any:
    told = ""
    for name, events in by_case(rows).items():
        of_case = {key.removeprefix("case:"): value for key, value in events[0].items() if key == SEGMENT}
        told += f"<trace><string key='concept:name' value='{name}'/>"
        told += "".join(xes_of(key, value) for key, value in of_case.items() if value is not None)
        for one in events:
            own = {key: value for key, value in one.items() if key not in (CASE, SEGMENT) and value is not None}
            told += f"<event>{''.join(xes_of(key, value) for key, value in own.items())}</event>"
        told += "</trace>"
    (folder / "log.xes").write_text(f"<log>{told}</log>")
    return folder / "log.xes"


def in_ocel(rows: list[Row], folder: Path) -> Any:
    events, objects = [], []
    for name, mine in by_case(rows).items():
        said = mine[0].get(SEGMENT)
        attributes = [] if said is None else [{"name": "segment", "time": "1970-01-01T00:00:00Z", "value": said}]
        objects.append({"id": name, "type": "order", "attributes": attributes})
        for one in mine:
            own = {k: v for k, v in one.items() if k not in (CASE, ACTIVITY, TIMESTAMP, SEGMENT) and v is not None}
            events.append(
                {
                    "id": f"e{len(events)}",
                    "type": one[ACTIVITY],
                    "time": one[TIMESTAMP].isoformat(),
                    "attributes": [
                        {"name": k, "value": v if type(v) in (int, float) else text(v)} for k, v in own.items()
                    ],
                    "relationships": [{"objectId": name, "qualifier": ""}],
                }
            )
    (folder / "log.json").write_text(
        json.dumps({"objectTypes": [], "eventTypes": [], "objects": objects, "events": events})
    )
    return folder / "log.json"


def in_pm4py(rows: list[Row], folder: Path) -> Any:
    objects = pytest.importorskip("pm4py.objects.log.obj")
    log = objects.EventLog()
    for name, events in by_case(rows).items():
        trace = objects.Trace(attributes={ACTIVITY: name} | ({"segment": s} if (s := events[0].get(SEGMENT)) else {}))
        for one in events:
            trace.append(objects.Event({k: v for k, v in one.items() if k not in (CASE, SEGMENT) and v is not None}))
        log.append(trace)
    return log


FORMATS: dict[str, Callable[[list[Row], Path], Any]] = {
    "xes": in_xes,
    "csv": in_csv,
    "parquet": in_parquet,
    "arrow": in_arrow,
    "ocel": in_ocel,
    "pandas": in_pandas,
    "excel": in_excel,
    "pm4py": in_pm4py,
}
TYPED = ("parquet", "arrow")


def told(log: EventLog, *, whole: bool, starts: bool) -> dict[str, list[tuple[Any, ...]]]:
    """Return the events of all cases but x and, for typed readers, all attributes."""
    names = log.cases[ACTIVITY].to_pylist()
    events = log.events.column_names if whole else [ACTIVITY, TIMESTAMP]
    events = [name for name in events if not name.endswith(":index")]
    events += [START] if starts and START not in events else []
    columns = [log.events[name].cast(pa.string()).to_pylist() for name in events]
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in names if name != "x"}
    for case, *values in zip(log.events[CASE_INDEX].to_pylist(), *columns, strict=True):
        if names[case] != "x":
            found[names[case]].append((*values,))
    if whole:
        for place, name in enumerate(names):
            if name != "x":
                found[name].append(tuple((key, log.cases[key][place].as_py()) for key in log.cases.column_names))
    return found


def read(log: Any, lifecycle: str | None, classifier: str | None) -> EventLog | None:
    try:
        return veilog.read(log, lifecycle=lifecycle, classifier=classifier)
    except (InputError, ParameterError):
        return None


@pytest.mark.slow
def test_a_case_whose_segment_varies_changes_no_other_on_a_disk(tmp_path: Path) -> None:
    def kept(rows: list[Row]) -> EventLog:
        log = store(in_parquet(rows, tmp_path))
        assert log is not None and log.read_together == log.attributes_read_together == ()
        return log.whole()

    before = told(kept(BASES["steps"]), whole=True, starts=False)
    for what in ("a segment that varies", "no segment", "plain"):
        for rows in ([*BASES["steps"], *OTHERS[what]], [*OTHERS[what], *BASES["steps"]]):
            log = kept(rows)
            assert told(log, whole=True, starts=False) == before, what
            if what != "plain":
                segment = {"a segment that varies": None, "no segment": "l"}[what]
                assert log.cases["segment"][log.cases[ACTIVITY].to_pylist().index("x")].as_py() == segment


STAMPS = {
    "times": datetime.datetime(2024, 3, 1, 12, 30),
    "times in a zone": datetime.datetime(2024, 3, 1, 12, 30, tzinfo=datetime.timezone(HOUR)),
    "times of pandas": pd.Timestamp("2024-03-01 12:30:00.000001234"),
    "early times of pandas": pd.Timestamp("1969-03-01 12:30", tz="Asia/Tokyo"),
    "days": datetime.date(2024, 3, 1),
    "seconds": 1709296200,
    "parts of seconds": 1709296200.5,
    "nanoseconds": 1.7092962005e18,
    "parts of milliseconds": 1709296200000.501,
    "no number that is a time": 9 * 10**18,
    "numbers of numpy": np.int64(1709296200),
    "times of numpy": np.datetime64("2024-03-01T12:30:00.000001234", "ns"),
    "text": "2024-03-01 12:30:00+02:00",
    "none": None,
    "no time": pd.NaT,
    "no number": float("nan"),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["pandas", "pm4py"])
@pytest.mark.parametrize("base", [name for name in STAMPS if not name.startswith("no")])
def test_times_of_objects_are_read_each_by_itself(tmp_path: Path, how: str, base: str) -> None:
    rows = [row(f"c{i}", "a", 1) | {TIMESTAMP: STAMPS[base]} for i in range(3)]
    keep = {"missing-timestamp": "keep", "bad-timestamp": "keep"}
    before = veilog.read(FORMATS[how](rows, tmp_path), policies=keep)
    assert before.events[TIMESTAMP].null_count == 0
    for other in STAMPS.values():
        for more in ([*rows, row("x", "a", 1) | {TIMESTAMP: other}], [row("x", "a", 1) | {TIMESTAMP: other}, *rows]):
            log = veilog.read(FORMATS[how](more, tmp_path), policies=keep)
            assert told(log, whole=False, starts=False) == told(before, whole=False, starts=False), (other, more[0])


@pytest.mark.parametrize("number", [1.7e18, 1.7e12 + 0.501, 1.7e9 + 0.25, 9 * 10**18, 2.0])
@pytest.mark.parametrize("how", ["pandas", "pm4py", "excel"])
def test_times_that_are_numbers_are_read_each_by_itself(tmp_path: Path, how: str, number: float) -> None:
    rows = [row("c", "a", 1) | {TIMESTAMP: number}, row("d", "a", 1) | {TIMESTAMP: 1.7e12}]
    keep = {"bad-timestamp": "keep"}
    before = told(veilog.read(FORMATS[how](rows, tmp_path), policies=keep), whole=False, starts=False)
    for other in ("2024-03-01", "soon", 1709296200):
        more = [*rows, row("x", "a", 1) | {TIMESTAMP: other}]
        log = veilog.read(FORMATS[how](more, tmp_path), policies=keep)
        assert told(log, whole=False, starts=False) == before, other


@pytest.mark.parametrize("how", ["csv", "ocel", "pandas", "pm4py", "excel", "xes"])
def test_a_start_that_is_no_time_makes_no_intervals_of_others(tmp_path: Path, how: str) -> None:
    rows = [
        row("c", "a", 1, "start", **{START: 1.7e18}),
        row("c", "a", 2),
        row("c", "b", 3, "start", **{START: 1.7e18}),
    ]
    before, after = (
        told(veilog.read(FORMATS[how](found, tmp_path), lifecycle="intervals"), whole=False, starts=True)
        for found in (rows, [*rows, row("x", "z", 1, **{START: "soon"})])
    )
    assert after == before


def test_an_index_that_is_no_number_puts_no_events_of_others_in_order(tmp_path: Path) -> None:
    rows = [row("c", "a", 1, **{EVENT_INDEX: 2.0}), row("c", "b", 2, **{EVENT_INDEX: 1.0})]
    before, after = (
        told(veilog.read(in_ocel(found, tmp_path)), whole=False, starts=False)
        for found in (rows, [*rows, row("x", "z", 1, **{EVENT_INDEX: "q"})])
    )
    assert after == before


@pytest.mark.slow
def test_rows_of_a_case_are_no_header_of_others(tmp_path: Path) -> None:
    """The first line with three names is the header, whatever the rows of a case hold."""
    place = tmp_path / "log.csv"
    for names in (f"{ACTIVITY},{TIMESTAMP},{CASE}", "Export\nk,l,m"):
        rows = [names, *(f"{activity},2024-01-01T10:00:00Z,c{i}" for i in range(9) for activity in "ab")]
        given = {} if "k" not in names else {"case": "m", "activity": "k", "timestamp": "l"}
        place.write_text("\n".join(rows) + "\n")
        before = told(veilog.read(place, **given), whole=False, starts=False)
        for one in ("case;activity;timestamp;y", "z;y;w;v;u;t", '"case;activity;timestamp;more"'):
            place.write_text("\n".join([*rows, f"{one},2024-01-01T10:00:00Z,x"]) + "\n")
            log = veilog.read(place, **given)
            assert told(log, whole=False, starts=False) == before
            assert veilog.read_variants(place, **given) == log.variants


NAMES = [
    1,
    1.0,
    2.5,
    1e16,
    2**53 + 1,
    2**70,
    True,
    "a",
    "1.50",
    datetime.date(2024, 3, 1),
    NOON,
    NOON.replace(tzinfo=None),
]


@pytest.mark.parametrize("name", [pd.Timestamp("2024-03-01", tz="Asia/Tokyo"), NOON.replace(tzinfo=None), 2 * HOUR])
@pytest.mark.parametrize("kind", [None, "category"])
def test_times_that_are_names_are_read_each_by_itself(name: Any, kind: str | None) -> None:
    """Times that are names are read one by one, also in a column of objects."""

    def labels(rows: list[Row]) -> list[Any]:
        frame = pd.DataFrame(rows)
        frame = frame if kind is None else frame.assign(**{ACTIVITY: frame[ACTIVITY].astype(kind)})
        log = veilog.read(frame)
        return log.events[ACTIVITY].to_pylist()[:2]

    rows = [row("c", name, 1), row("d", name, 1)]
    for other in ("z", 1, pd.Timestamp("2024-03-01 12:00:00.000001500")):
        assert labels([*rows, row("x", other, 1)]) == labels(rows), other


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("how", ["pandas", "pm4py", "excel"])
def test_names_of_objects_are_read_each_by_itself(tmp_path: Path, how: str) -> None:
    names = NAMES if how != "excel" else NAMES[:3] + NAMES[6:]  # it refuses numbers that it cannot hold
    for name in names:
        rows = [row("c", name, 1)]
        before = told(veilog.read(FORMATS[how](rows, tmp_path)), whole=False, starts=False)
        for other in names:
            for more in ([*rows, row("x", other, 1)], [row("x", other, 1), *rows]):
                assert told(veilog.read(FORMATS[how](more, tmp_path)), whole=False, starts=False) == before, other


@pytest.mark.nightly
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("how", FORMATS)
def test_what_a_case_brings_changes_how_no_other_is_read(tmp_path: Path, how: str, base: str) -> None:
    ways = [(lifecycle, classifier) for lifecycle in LIFE_CYCLES for classifier in CLASSIFIERS]
    assert compared(FORMATS[how], tmp_path, base, ways, whole=how in TYPED) > 100


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
def test_what_a_case_brings_changes_no_life_cycle_and_no_classifier(tmp_path: Path, base: str) -> None:
    """Each by itself; the nightly test tries every pair."""
    ways = [*((lifecycle, None) for lifecycle in LIFE_CYCLES), *((None, classifier) for classifier in CLASSIFIERS[1:])]
    assert compared(in_xes, tmp_path, base, ways, whole=False) > 80


@pytest.mark.slow
@pytest.mark.parametrize("how", FORMATS)
def test_what_a_case_brings_makes_no_intervals_of_others(tmp_path: Path, how: str) -> None:
    """No case makes intervals of others, in readings that once failed."""
    ways = [("intervals", None), ("start", BOTH), ("start", "concept:name dose")]
    assert compared(FORMATS[how], tmp_path, "steps", ways, whole=how in TYPED) >= 76


def compared(
    make: Callable[[list[Row], Path], Any],
    tmp_path: Path,
    base: str,
    asked: Sequence[tuple[str | None, str | None]],
    *,
    whole: bool,
) -> int:
    """Return the number of logs with one more case that were compared with the base."""
    compared = 0

    def read_in_all_ways(rows: list[Row]) -> list[EventLog | None]:
        made = make(rows, tmp_path)
        return [read(made, lifecycle, classifier) for lifecycle, classifier in asked]

    before = [
        None if alone is None else told(alone, whole=whole, starts=lifecycle == "intervals")
        for (lifecycle, _), alone in zip(asked, read_in_all_ways(BASES[base]), strict=True)
    ]
    for what, other in OTHERS.items():
        for rows in ([*BASES[base], *other], [*other, *BASES[base]]):
            for how, log, expected in zip(asked, read_in_all_ways(rows), before, strict=True):
                if log is None or expected is None:
                    continue
                compared += 1
                assert told(log, whole=whole, starts=how[0] == "intervals") == expected, (how, what, rows[0][CASE])
                assert log.read_together == ()
    return compared

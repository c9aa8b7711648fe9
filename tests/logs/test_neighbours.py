"""One more case changes how no other is read, for every reader and every rule."""

from __future__ import annotations

import dataclasses
import datetime
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused
from surfaces import in_command
from table_tools import found

import veilog
from veilog.errors import InputError, ParameterError
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, TIMESTAMP, EventLog
from veilog.logs.findings import DUPLICATES
from veilog.logs.storage.loader import store
from veilog.logs.variants import Variants
from veilog.messages import Message

HEADER = "case,activity,time,event:index,lifecycle:transition,dose\n"
KEEP = {"missing-timestamp": "keep", "bad-timestamp": "keep"}
DROP = {"missing-timestamp": "drop", "bad-timestamp": "drop", "empty-trace": "drop"}


def cases_of(log: EventLog, but: str = "x") -> dict[str, list[tuple[Any, Any]]]:
    """The activities and times of each case in their order, but for one case."""
    names = log.cases[ACTIVITY].to_pylist()
    told: dict[str, list[tuple[Any, Any]]] = {name: [] for name in names if name != but}
    rows = zip(*(log.events[c].to_pylist() for c in (CASE_INDEX, ACTIVITY, TIMESTAMP)), strict=True)
    for case, activity, time in rows:
        if names[case] != but:
            told[names[case]].append((activity, time))
    return told


def table_of(times: tuple[str, str] = ("2024-01-01", "2024-01-02"), *, indexed: bool = True) -> str:
    """Return twenty cases whose rows are in another order than their index."""
    rows = ""
    for case in range(20):
        first, second = ("2", "1") if indexed else ("", "")
        rows += f"c{case},register,{times[0]},{first},start,1.50\nc{case},diagnose,{times[1]},{second},complete,2\n"
    return rows


OTHERS = {
    "no index": b"x,a,2024-01-01,,complete,1\n",
    "no such index": b"x,a,2024-01-01,first,complete,1\n",
    "a huge index": b"x,a,2024-01-01,99999999999999999999,complete,1\n",
    "a Latin-1 byte": b"x,Pr\xfcfung,2024-01-01,1,complete,1\n",
    "no time": b"x,a,,1,complete,1\n",
    "a bad time": b"x,a,soon,1,complete,1\n",
    "a short time": b"x,a,2024-01-01 7,1,complete,1\n",
    "a fine time": b"x,a,2024-01-01 10:00:00.123456789+01:00,1,complete,1\n",
    "day first": b"x,a,25/12/2024,1,complete,1\n",
    "month first": b"x,a,12/25/2024,1,complete,1\n",
    "semicolons": b'x,"a;b;c;d;e;f;g",2024-01-01,1,complete,";;;;;;;;;;"\n',
    "a word": b"x,a,2024-01-01,1,complete,high\n",
    "no transition": b"x,a,2024-01-01,1,,1\n",
}
BASES = {
    "index": table_of(),
    "time": table_of(("2024-01-02", "2024-01-01"), indexed=False),
    "no time": table_of(("", ""), indexed=False),
    "umlauts": table_of().replace("diagnose", "Prüfung"),
    "dotted": table_of(("01.02.2024", "02.01.2024"), indexed=False),
    "zones": table_of(("2024-01-01T10:00+01:00", "2024-01-01T07:30:00.1Z"), indexed=False),
    "numbers": table_of().replace("diagnose", "7").replace("register", "1"),
}
READINGS: dict[str, dict[str, Any]] = {
    "keep": {"policies": KEEP},
    "drop": {"policies": DROP},
    "complete": {"policies": KEEP, "lifecycle": "complete"},
    "classifier": {"policies": KEEP, "classifier": "activity dose lifecycle:transition"},
}


FIRST = [*(("index", how) for how in READINGS), *((base, how) for base in BASES for how in ("keep", "drop"))]
READ = list(dict.fromkeys([*FIRST, *((base, how) for base in BASES for how in READINGS)]))
"""Readings, with every one of one text and the times of every text first. Cells and times are read before
life cycles and classifiers, which see only words."""


@pytest.mark.slow
@pytest.mark.nightly(but=len(set(FIRST)))
@pytest.mark.parametrize(("base", "how"), READ)
def test_one_more_case_in_a_text_changes_no_other(tmp_path: Path, base: str, how: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes((HEADER + BASES[base]).encode())
    dropped_all = how == "drop" and base == "no time"
    if dropped_all:
        with refused(InputError, "table-without-events-left"):
            files.read(path, **READINGS[how])
    before = {} if dropped_all else cases_of(files.read(path, **READINGS[how]))
    for what, row in OTHERS.items():
        for last in (True, False):
            rows = BASES[base].encode()
            path.write_bytes(HEADER.encode() + (rows + row if last else row + rows))
            try:
                log = files.read(path, **READINGS[how])
            except InputError:
                assert dropped_all, what
                continue
            assert cases_of(log) == before, what
            if last:
                assert files.read_variants(path, **READINGS[how]) == log.variants, what
            assert log.read_together == log.variants.read_together == ()


def test_the_case_without_an_index_is_ordered_by_time_and_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(HEADER + BASES["index"] + "x,b,2024-01-02,,complete,1\nx,a,2024-01-01,5,complete,1\n")
    log = files.read(path)
    assert log.variants.to_dict() == {("diagnose", "register"): 20, ("a", "b"): 1}
    assert files.read_variants(path) == log.variants
    assert [(f.count, str(f.example)) for f in log.findings if f.rule == "event-index-missing"] == [(1, "case 'x'")]
    with refused(InputError, "finding-with-example"):
        files.read(path, policies={"event-index-missing": "fail"})


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pandas", "parquet"])
def test_one_more_case_in_a_typed_table_changes_no_other(tmp_path: Path, engine: str) -> None:
    rows = [[f"c{i}", 7 - j, f"2024-01-0{j + 1}", 2 - j, 1.0] for i in range(50) for j in range(2)]
    names = ["case", "activity", "time", "event:index", "code"]
    others = [["x", 1, "2024-01-01", None, 2.0], ["x", "a", "2024-01-01", 1, "high"], ["x", True, None, 1, None]]

    def read(found: list[list[Any]]) -> EventLog:
        frame = pd.DataFrame(found, columns=names).astype({"activity": object, "code": object})
        if engine == "pandas":
            return files.read(frame, policies=KEEP, classifier="activity code")
        columns = {
            "case": pa.array([r[0] for r in found]),
            "activity": pa.array([str(r[1]) for r in found]),
            "time": pa.array([r[2] for r in found]),
            "event:index": pa.array([r[3] for r in found], pa.int64()),
        }
        pq.write_table(pa.table(columns), tmp_path / "log.parquet")
        log = files.read(tmp_path / "log.parquet", policies=KEEP)
        assert files.read_variants(tmp_path / "log.parquet", policies=KEEP) == log.variants
        return log

    before = cases_of(read(rows))
    assert before["c0"][0][0].startswith("6"), "by the index"
    for other in others:
        assert cases_of(read([*rows, other])) == before
        assert cases_of(read([other, *rows])) == before


DAY = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


EXTREMES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "unsigned": (pa.uint64(), [1, 2], [2**63, 2**64 - 1]),
    "seconds": (pa.timestamp("s"), [0, 1], [10**15, -(10**15)]),
    "milliseconds in a zone": (pa.timestamp("ms", "Asia/Tokyo"), [0, 1], [10**17]),
    "days": (pa.date32(), [0, 1], [2**31 - 1, -(2**31)]),
    "bytes": (pa.binary(), [b"7", b"7.0"], [b"\xff", b"\x00"]),
    "large bytes": (pa.large_binary(), [b"a", b"b"], [b"\xff"]),
    "so many bytes": (pa.binary(1), [b"a", b"b"], [b"\xff"]),
    "small decimals": (pa.decimal128(18, 0), [1, 2], [10**18 - 1]),
    "large decimals": (pa.decimal128(38, 0), [1, 2], [10**38 - 1]),
    "fractions": (pa.decimal256(60, 2), [1, 2], [10**57]),
    "whole": (pa.int64(), [1, 2], [2**63 - 1, None]),
    "floats": (pa.float64(), [1.0, 2.0], [float("nan"), float("inf"), 2.5]),
    "durations": (pa.duration("s"), [1, 2], [2**62]),
    "times of day": (pa.time64("us"), [0, 1], [86_399_999_999]),
    "lists": (pa.list_(pa.binary()), [[b"a"], []], [[b"\xff"], None]),
    "listed bytes": (pa.dictionary(pa.int8(), pa.binary()), [b"a", b"b"], [b"\xff"]),
    "words": (pa.string(), ["1", "2"], ["x"]),
    "truths": (pa.bool_(), [True, False], [None]),
}


@pytest.mark.parametrize("what", EXTREMES)
@pytest.mark.parametrize("policy", ["keep", "drop"])
def test_the_type_of_an_attribute_follows_from_what_is_declared_alone(what: str, policy: str) -> None:
    """Also its values: each is read by itself."""
    kind, usual, others = EXTREMES[what]

    def read(values: list[Any]) -> EventLog:
        size = len(values)
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        array = pa.array(values, plain)
        if pa.types.is_temporal(kind) and not pa.types.is_time(kind) and not pa.types.is_duration(kind):
            array = pa.array(values, pa.int32() if pa.types.is_date32(kind) else pa.int64()).view(kind)
        array = array.dictionary_encode() if pa.types.is_dictionary(kind) else array
        columns = {"case": [f"c{i}" for i in range(size)], "activity": ["a"] * size, "time": [DAY] * size}
        return files.read(pa.table({**columns, "said": array, "case:said": array}), policies={"bad-value": policy})

    before = read(usual)
    for other in others:
        for log, place in ((read([*usual, other]), 2), (read([other, *usual]), 0)):
            assert log.events.schema == before.events.schema
            assert log.cases.schema == before.cases.schema
            assert log.attributes_read_together == log.read_together == ()
            for table, held in ((log.events, before.events), (log.cases, before.cases)):
                if "said" in table.column_names:
                    found = table["said"].to_pylist()
                    assert found[:place] + found[place + 1 :] == held["said"].to_pylist()


def rows_of(case: str, *events: tuple[str, int | None, str | None]) -> list[dict[str, Any]]:
    times = [None if day is None else DAY + datetime.timedelta(days=day) for _, day, _ in events]
    return [
        {"case": case, "activity": activity, "timestamp": time, "colour": colour}
        for time, (activity, _, colour) in zip(times, events, strict=True)
    ]


LARGE_BASE = [row for i in range(20) for row in rows_of(f"c{i % 19}", ("a", 3, "r"), ("b", 1, f"g{i}"), ("c", 3, None))]
LARGE_OTHERS = {
    "early": rows_of("x", ("z", -9000, "r"), ("a", 3, "r")),
    "among": rows_of("x", ("a", 1, "new"), ("a", 1, None), ("b", 3, "r")),
    "no time": rows_of("x", ("a", None, "r"), ("b", 2, "r")),
    "only faults": rows_of("x", ("a", None, "r")),
    "long": rows_of("x", *[("a", i % 7, "r") for i in range(60)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["folder", "log", "backward"])
def test_one_more_case_changes_no_other_on_disk(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more case in files, a table or a view changes no other, in any order."""
    monkeypatch.setattr("veilog.logs.storage.loader._PIECE", 10)
    schema = pa.schema(
        {"case": pa.string(), "activity": pa.string(), "timestamp": pa.timestamp("us", "UTC"), "colour": pa.string()}
    )

    def told(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """Every event of the others, in the order in which they come."""
        events = pa.Table.from_pylist(rows, schema)
        events = events.append_column("seq", pa.array(range(len(rows)), pa.int64()))
        if where == "folder":
            for name, part in (("a", events.slice(0, 30)), ("b", events.slice(30))):
                pq.write_table(part.drop_columns(["seq"]), tmp_path / f"{name}.parquet")
            log = store(tmp_path, policies=DROP)
        else:
            (tmp_path / "log.duckdb").unlink(missing_ok=True)
            with duckdb.connect(tmp_path / "log.duckdb") as connection:
                connection.execute("CREATE TABLE log AS FROM events")
                connection.execute("CREATE VIEW backward AS FROM log ORDER BY seq DESC")
            index = None if where == "log" else "seq"
            log = store(where, engine=f"duckdb:{tmp_path / 'log.duckdb'}", policies=DROP, index=index)
        assert log is not None
        whole = log.whole()
        names = whole.cases[ACTIVITY].take(whole.events[CASE_INDEX]).to_pylist()
        columns = [whole.events[column].to_pylist() for column in (ACTIVITY, TIMESTAMP, "colour")]
        return [row for row in zip(names, *columns, strict=True) if row[0] != "x"]

    before = told(LARGE_BASE)
    assert len(before) == len(LARGE_BASE)
    for what, other in LARGE_OTHERS.items():
        for rows in (other + LARGE_BASE, LARGE_BASE[:31] + other + LARGE_BASE[31:]):
            assert told(rows) == before, what


def xes(*traces: str) -> bytes:
    return f"<log>{''.join(traces)}</log>".encode()


def trace(name: str, *events: str) -> str:
    return (
        f"<trace><string key='concept:name' value='{name}'/>"
        + "".join(f"<event>{event}</event>" for event in events)
        + "</trace>"
    )


def event(activity: str, time: str | None = "2024-01-01T00:00:00Z", step: str = "complete", more: str = "") -> str:
    told = f"<string key='concept:name' value='{activity}'/><string key='lifecycle:transition' value='{step}'/>{more}"
    return told + ("" if time is None else f"<date key='time:timestamp' value='{time}'/>")


XES_OTHERS = (
    trace("x"),
    trace("x", event("a", None)),
    trace("x", event("a", "soon")),
    trace("x", event("a", step="start", more="<int key='dose' value='7'/>")),
    trace("x", "<int key='concept:name' value='5'/><int key='lifecycle:transition' value='1'/>"),
    trace("x", event("a", more="<string key='dose' value='high'/>")),
)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["keep", "drop", "complete", "classifier"])
@pytest.mark.parametrize("timed", [True, False])
def test_one_more_case_in_xes_changes_no_other(tmp_path: Path, how: str, timed: bool) -> None:
    path = tmp_path / "log.xes"
    time = "2024-01-01T00:00:00Z" if timed else None
    dose = "<float key='dose' value='1.50'/>"
    base = [trace(f"c{i}", event("a", time, "start", dose), event("b", time, more=dose)) for i in range(20)]
    base.append(trace("only a start", event("a", time, "start")))
    reading = READINGS[how] if how != "classifier" else {"policies": KEEP, "classifier": "concept:name dose"}
    reading = {**reading, "policies": {**reading["policies"], "event-without-activity": "drop"}}
    results = []
    for traces in ([*base], *([*base, other] for other in XES_OTHERS), *([other, *base] for other in XES_OTHERS)):
        path.write_bytes(xes(*traces))
        try:
            results.append(cases_of(files.read(path, **reading)))
        except InputError:
            assert how == "drop", "every case is left out, and so is the log"
            assert not timed
    assert all(result == results[0] for result in results)


def test_what_is_read_together_is_said_whatever_the_log_holds(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    drop = {"duplicate-case-id": "drop"}
    told = []
    for names in (["a", "b"], ["a", "b", "b"], []):
        path.write_bytes(xes(*(trace(name, event("e")) for name in names)))
        log = files.read(path, policies=drop)
        told.append((log.read_together, log.variants.read_together, log.only(log.offsets[:0]).read_together))
        assert files.read(path).read_together == ()
        assert files.read(path).attributes_read_together == log.attributes_read_together != ()
    assert len(set(told)) == 1
    assert told[0] == ((DUPLICATES,),) * 3


def test_what_is_read_together_survives_every_derivation(tmp_path: Path) -> None:
    variants = dataclasses.replace(Variants.from_dict({("a",): 2}), read_together=(Message("rule"),))
    assert variants.with_counts([1]).read_together == (Message("rule"),)
    assert variants == Variants.from_dict({("a",): 2})
    frame = pd.DataFrame({"case": ["1", "2"], "activity": ["a", "b"], "time": pd.to_datetime(["2024-01-01"] * 2)})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "log.parquet")
    policies = {"duplicate-case-id": "drop"}
    whole = veilog.read(tmp_path / "log.parquet", policies=policies)
    kept = store(tmp_path / "log.parquet", policies=policies)
    assert kept is not None
    assert kept.read_together == whole.read_together != ()
    assert kept.only(whole.offsets[:1]).read_together == kept.variants.read_together == whole.read_together
    assert [piece.read_together for piece in kept.pieces()] == [whole.read_together]
    assert kept.whole().read_together == whole.read_together
    assert whole.attributes_read_together == kept.attributes_read_together == (), "Parquet declares its types"
    assert files.read_variants(tmp_path / "log.parquet", policies=policies).read_together == whole.read_together


@pytest.mark.parametrize("suffix", ["xes", "csv", "parquet"])
def test_a_log_without_cases_is_a_log(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log.{suffix}"
    if suffix == "xes":
        path.write_bytes(b"<log/>")
    elif suffix == "csv":
        path.write_text(HEADER)
    else:
        empty = files.read(pd.DataFrame({"case": [], "activity": [], "time": []}))
        files.write(empty, path)
    log = files.read(path)
    assert (log.cases.num_rows, len(log), log.variants) == (0, 0, Variants.from_dict({}))
    assert files.read_variants(path) == log.variants
    assert log.statistics.cases == 0
    assert log.only(log.offsets[:0]).cases.num_rows == 0


# Life cycles


@pytest.mark.slow
def test_starts_and_completes_are_pointed_out_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    both = [event("a", step="start"), event("a"), event("b", step="START"), event("b", step="COMPLETE")]
    path.write_bytes(xes(*(trace(str(i), *both) for i in range(300))))
    log = files.read(path)
    finding = next(f for f in log.findings if f.rule == "lifecycle-transitions")
    assert finding.count == 600
    assert re.findall(r"[\d,]*\d|`\w+`", str(finding.example)) == ["300", "1,200", "`start`", "300", "`START`"]
    assert "lifecycle='complete'" in finding.advice
    assert "classifier=" in finding.advice
    for kept in (files.read(path, lifecycle="complete"), files.read(path, lifecycle="Complete")):
        assert kept.variants.to_dict() == {("a", "b"): 300}
        assert kept.findings == ()
    apart = files.read(path, classifier="concept:name lifecycle:transition")
    assert apart.variants.to_dict() == {("a+start", "a+complete", "b+START", "b+COMPLETE"): 300}
    assert apart.findings == ()
    for name in ("log.csv", "log.parquet"):
        files.write(log, tmp_path / name)
        table = files.read(tmp_path / name)
        assert found(table)["lifecycle-transitions"] == 600
        for options in ({"lifecycle": "complete"}, {"classifier": "concept:name lifecycle:transition"}):
            assert files.read(tmp_path / name, **options).variants == files.read(path, **options).variants
            assert files.read_variants(tmp_path / name, **options) == files.read(path, **options).variants
    stored = store(tmp_path / "log.parquet", lifecycle="complete")
    assert stored is not None
    assert stored.variants == files.read(path, lifecycle="complete").variants
    assert files.read(log.to_arrow(), lifecycle="complete").variants.to_dict() == {("a", "b"): 300}


def test_where_nothing_is_complete_the_most_frequent_transition_is_advised(tmp_path: Path) -> None:
    steps = ["assigned", "In call", "IN CALL", "in call", "assigned"]
    path = tmp_path / "log.xes"
    path.write_bytes(xes(*(trace(str(i), *(event("a", step=step) for step in steps)) for i in range(3))))
    files.write(files.read(path), tmp_path / "log.parquet")
    for name in ("log.xes", "log.parquet"):
        (finding,) = (f for f in files.read(tmp_path / name).findings if f.rule == "lifecycle-transitions")
        told = re.search("`lifecycle=(.+)` keeps only the most frequent one", finding.advice)
        assert told is not None and "complete keeps" not in finding.advice
        (wanted,) = shlex.split(told[1])
        assert files.read(path, lifecycle=wanted).variants.to_dict() == {("a", "a", "a"): 3}
    with pytest.raises(InputError) as caught:
        files.read(path, policies={"lifecycle-transitions": "fail"})
    assert "--lifecycle 'In call' keeps" in in_command(caught.value)


def test_a_log_of_completes_only_or_of_one_step_each_is_not_remarked_on(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    for steps in (("complete", "complete"), ("start", "complete")):
        path.write_bytes(xes(trace("1", event("a", step=steps[0]), event("b", step=steps[1]))))
        assert files.read(path).findings == ()


def test_a_classifier_may_be_one_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    told = "<classifier name='Steps' keys='concept:name lifecycle:transition'/>"
    path.write_bytes(xes(told, trace("1", event("a", step="start"), event("a"))))
    log = files.read(path, classifier="Steps")
    assert log.variants.to_dict() == {("a+start", "a+complete"): 1}
    files.write(files.read(path), tmp_path / "log.parquet")
    for read in (files.read(tmp_path / "log.parquet", classifier="Steps").variants,
                 files.read_variants(tmp_path / "log.parquet", classifier="Steps")):  # fmt: skip
        assert read == log.variants


def test_what_is_declared_of_events_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    path.write_bytes(xes(trace("1", event("a", step="start"))))
    with refused(ParameterError, "lifecycle-transition-missing", said="complete", known="'start'"):
        files.read(path, lifecycle="complete")
    with refused(ParameterError, "classifier-attribute-missing", words="role"):
        files.read(path, classifier="concept:name role")
    (tmp_path / "log.csv").write_text("case,activity,time\n1,a,2024-01-01\n")
    for attempt in (files.read, files.read_variants):
        with refused(ParameterError, "lifecycle-column-missing", lifecycle="lifecycle:transition"):
            attempt(tmp_path / "log.csv", lifecycle="complete")


@pytest.mark.parametrize(
    "more", [datetime.date(2024, 1, 1), pd.Timestamp("2024-01-01").as_unit("s"), "2024-01-01", 1.5]
)
def test_a_value_of_another_kind_changes_no_other_time_of_a_frame(more: Any) -> None:
    """Arrow takes the first value of a column of objects for what all are."""
    times = [datetime.datetime(2024, 1, 2, hour, minute) for minute in range(3) for hour in (15, 9, 12)]
    names = [f"c{case}" for case in range(3) for _ in range(3)]
    read = []
    for first in ([], [more]):
        frame = pd.DataFrame({"case": ["x"] * len(first) + names, "activity": [*(["a"] * len(first)), *"cab" * 3]})
        frame["time"] = pd.Series([*first, *times], dtype=object)
        read.append(cases_of(files.read(frame, policies={"bad-timestamp": "keep"})))
    assert read[0] == read[1]


def test_an_attribute_called_like_a_classifier_changes_no_other_case(tmp_path: Path) -> None:
    plain = trace("1", event("a", step="start"))
    odd = trace("x", event("a", step="start").replace("</event>", f'<string key="{BOTH}" value="n"/></event>'))
    read = []
    for cases in (plain, plain + odd):
        (tmp_path / "log.xes").write_bytes(xes(cases))
        log = files.read(tmp_path / "log.xes", classifier=BOTH)
        read.append(cases_of(log))
    assert read[0] == read[1] and read[0]["1"][0][0] == "a+start"


BOTH = "concept:name lifecycle:transition"


def test_attributes_with_spaces_and_quotes_make_a_classifier() -> None:
    table = pa.table({"case": ["1"], "activity": ["a"], "time": ["2024-01-01"], "the role": ["n"], "x": ["y"]})
    for text in ("activity the role x", "activity 'the role' x", "concept:name the role x"):
        assert files.read(table, classifier=text).variants.to_dict() == {("a+n+y",): 1}


def test_the_variants_of_both_readings_count_every_event_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(HEADER + BASES["index"])
    steps = Counter(files.read(path).events["lifecycle:transition"].to_pylist())
    assert steps["complete"] == len(files.read(path, lifecycle="complete")) == 20

"""Every format reads and counts cases without a name, events without an activity."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused
from xes_tools import event, trace

import veilog
from veilog.errors import InputError, OutputError, ParameterError
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import ACTIVITY, CASE, TIMESTAMP, EventLog
from veilog.logs.storage.loader import store
from veilog.measures.persons import check_apart
from veilog.privacy.partition import Partition, names_of_units

Row = tuple[str | None, str | None, str]
ROWS: tuple[Row, ...] = (
    ("p", "a", "2024-03-01 08:00"),
    ("p", "b", "2024-03-01 09:00"),
    (None, "a", "2024-03-01 10:00"),
    ("q", "c", "2024-03-01 11:00"),
    ("q", None, "2024-03-01 12:00"),
)
"""Two cases with names, a case without one, and an event without an activity."""
VARIANTS = {("a", "b"): 1, ("a",): 1, ("c",): 1}
COUNTED = {"case-without-name": 1, "event-without-activity": 1}


def document(rows: Sequence[Row], more: str = "") -> str:
    cases = dict.fromkeys(case for case, _, _ in rows)
    traces = (
        trace(
            *(event(name=label, time=f"{time.replace(' ', 'T')}:00Z") for name, label, time in rows if name == case),
            name=case,
        )
        for case in cases
    )
    return f"<log>{''.join(traces)}{more}</log>"


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["case", "activity", "timestamp"])


def arrow(rows: Sequence[Row]) -> pa.Table:
    table = frame(rows)
    return pa.Table.from_pandas(
        table.assign(timestamp=pd.to_datetime(table["timestamp"], utc=True)), preserve_index=False
    )


def in_xes(rows: Sequence[Row], folder: Path) -> Any:
    (folder / "log.xes").write_text(document(rows))
    return folder / "log.xes"


def in_csv(rows: Sequence[Row], folder: Path) -> Any:
    frame(rows).to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


def in_parquet(rows: Sequence[Row], folder: Path) -> Any:
    pq.write_table(arrow(rows), folder / "log.parquet")
    return folder / "log.parquet"


def in_excel(rows: Sequence[Row], folder: Path) -> Any:
    book = openpyxl.Workbook()
    for row in (("case", "activity", "timestamp"), *rows):
        book.active.append(row)
    book.save(folder / "log.xlsx")
    return folder / "log.xlsx"


def in_pm4py(rows: Sequence[Row], folder: Path) -> Any:
    objects = pytest.importorskip("pm4py.objects.log.obj")
    traces: list[Any] = []
    for case in dict.fromkeys(name for name, _, _ in rows):
        one = objects.Trace(attributes={} if case is None else {ACTIVITY: case})
        for name, label, time in rows:
            if name == case:
                told = {TIMESTAMP: pd.Timestamp(time, tz="UTC")} | ({} if label is None else {ACTIVITY: label})
                one.append(objects.Event(told))
        traces.append(one)
    return objects.EventLog(traces)


FORMATS: dict[str, Callable[[Sequence[Row], Path], Any]] = {
    "xes": in_xes,
    "csv": in_csv,
    "parquet": in_parquet,
    "excel": in_excel,
    "arrow": lambda rows, folder: arrow(rows),
    "pandas": lambda rows, folder: frame(rows),
    "polars": lambda rows, folder: pl.from_arrow(arrow(rows)),
    "pm4py": in_pm4py,
}


def counted(log: EventLog) -> dict[str, int]:
    return {finding.rule: finding.count for finding in log.findings if finding.rule in COUNTED}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_reads_and_counts_them(tmp_path: Path, kind: str) -> None:
    given = FORMATS[kind](ROWS, tmp_path)
    log = veilog.read(given)
    assert log.variants.to_dict() == VARIANTS
    assert counted(log) == COUNTED
    assert log.cases[ACTIVITY].to_pylist() == ["p", None, "q"]
    assert log.case_labels.to_pylist() == ["p", "#2", "q"]
    assert veilog.read_variants(given) == log.variants
    assert {finding.rule for finding in veilog.validate(given)} >= COUNTED.keys()


@pytest.mark.parametrize("kind", FORMATS)
def test_policies_still_refuse_or_leave_out(tmp_path: Path, kind: str) -> None:
    given = FORMATS[kind](ROWS, tmp_path)
    for rule in COUNTED:
        for attempt in (veilog.read, veilog.read_variants):
            with refused(InputError, "finding-with-example", rule=rule):
                attempt(given, policies={rule: "fail"})
    log = veilog.read(given, policies={"case-without-name": "drop"})
    assert log.variants.to_dict() == {("a", "b"): 1, ("c",): 1}
    assert counted(log) == COUNTED


@pytest.mark.parametrize("kind", FORMATS)
def test_a_case_without_a_name_changes_no_other(tmp_path: Path, kind: str) -> None:
    kept = veilog.read(FORMATS[kind](ROWS, tmp_path)).only(np.array([0, 2]))
    less = veilog.read(FORMATS[kind]([row for row in ROWS if row[0] is not None], tmp_path))
    for one, other in ((less.events, kept.events), (less.cases, kept.cases)):
        for name in {*one.column_names, *other.column_names} - {"event:index", "case:index"}:
            assert one[name].to_pylist() == other[name].to_pylist(), name


def test_an_object_centric_event_without_a_type_is_left_out(tmp_path: Path) -> None:
    events = [
        {"id": f"e{place}", "type": label, "time": time, "relationships": [{"objectId": case, "qualifier": ""}]}
        for place, (case, label, time) in enumerate(ROWS)
        if case is not None
    ]
    objects = [{"id": case, "type": "case"} for case in ("p", "q")]
    (tmp_path / "log.json").write_text(json.dumps({"objects": objects, "events": events}))
    log = veilog.read(tmp_path / "log.json")
    assert log.variants.to_dict() == {("a", "b"): 1, ("c",): 1}
    assert counted(log) == {"event-without-activity": 1}


def test_a_stored_log_leaves_out_events_and_takes_no_row_without_a_case(tmp_path: Path) -> None:
    events = arrow(ROWS)
    for place, rows in enumerate((events.slice(0, 3), events.slice(3))):
        pq.write_table(rows, tmp_path / f"{place}.parquet")
    with refused(InputError, "rows-without-order", rule="case-without-name", count=1):
        store(tmp_path)
    log = store(tmp_path, policies={"case-without-name": "drop"})
    assert log is not None
    assert log.variants.to_dict() == {("a", "b"): 1, ("c",): 1}
    assert {finding.rule: finding.count for finding in log.findings if finding.rule in COUNTED} == COUNTED


@pytest.mark.parametrize("suffix", ["xes", "xes.gz", "parquet"])
def test_a_case_without_a_name_has_none_after_it_was_written(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "log.xes").write_text(document(ROWS, "<trace/>"))
    log = veilog.read(tmp_path / "log.xes")
    veilog.write(log, tmp_path / f"out.{suffix}")
    again = veilog.read(tmp_path / f"out.{suffix}")
    assert again.cases[ACTIVITY].to_pylist() == log.cases[ACTIVITY].to_pylist() == ["p", None, "q", None]
    assert again.variants == log.variants == veilog.read_variants(tmp_path / f"out.{suffix}")
    assert counted(again)["case-without-name"] == 2
    for policy in ("drop", "fail"):
        dropped = {"policies": {"case-without-name": policy}}
        if policy == "fail":
            with refused(InputError, "finding-with-example", rule="case-without-name"):
                veilog.read(tmp_path / f"out.{suffix}", **dropped)
        else:
            assert veilog.read(tmp_path / f"out.{suffix}", **dropped).cases[ACTIVITY].to_pylist() == ["p", "q"]
            assert veilog.read_variants(tmp_path / f"out.{suffix}", **dropped).cases == 2


def test_flat_tables_refuse_it_or_call_it_by_its_position(tmp_path: Path) -> None:
    log = veilog.read(in_xes(ROWS, tmp_path))
    for name in ("out.csv", "out.xlsx"):
        with refused(OutputError, "cases-name-missing"):
            veilog.write(log, tmp_path / name)
        veilog.write(log, tmp_path / name, lossy=True)
        assert veilog.read(tmp_path / name).cases[ACTIVITY].to_pylist() == ["p", "#2", "q"]
    assert log.to_pandas()[CASE].tolist() == ["p", "p", "#2", "q"]


def test_a_position_is_no_name_that_tells_a_case(tmp_path: Path) -> None:
    log = veilog.read(in_xes(ROWS, tmp_path))
    assert names_of_units(log, None) == ["p", None, "q"]
    (tmp_path / "others.xes").write_text(document([(case and f"other {case}", *rest) for case, *rest in ROWS]))
    check_apart(log, veilog.read(tmp_path / "others.xes"), False)
    with refused(ParameterError, "control-cases-in-original", number=2):
        check_apart(log, log, False)


def test_a_ledger_that_remembers_cases_leaves_out_those_without_a_name(tmp_path: Path) -> None:
    log = veilog.read(in_xes(ROWS, tmp_path))
    ledger = Ledger.open(tmp_path / "l.ledger", account="ward", create=True)
    units = ledger.units(log, Partition.of("month=2024-03"), "case", names_of_units(log, None))
    assert units.new.tolist() == [True, False, True]
    assert len(units.digests) == 2 * 16


def test_activities_of_other_attributes_need_no_name(tmp_path: Path) -> None:
    said = document(ROWS)
    (tmp_path / "log.xes").write_text(said.replace('key="concept:name" value="a"', 'key="code" value="a"'))
    log = veilog.read(tmp_path / "log.xes", classifier="code")
    assert log.variants.to_dict() == {("a",): 2, (): 1}
    assert counted(log)["event-without-activity"] == 3
    (tmp_path / "log.xes").write_text(said.replace("concept:name", "code"))
    with refused(InputError, "events-without-activities"):
        veilog.read(tmp_path / "log.xes")
    assert veilog.read(tmp_path / "log.xes", classifier="code").variants.to_dict() == VARIANTS

"""Readers: ours keep the contract, each fault is named, and add-ons may be broken."""

from __future__ import annotations

import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import refused

import veilog
from veilog.errors import InputError
from veilog.logs.eventlog import EventLog
from veilog.logs.input import formats as readers
from veilog.logs.input.formats import Reader, ReadRequest, known_suffixes, reader_of
from veilog.logs.input.source import Source
from veilog.logs.ocel import JSON, SQLITE, XML
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables.csv import TEXT
from veilog.logs.tables.excel import EXCEL
from veilog.logs.tables.frames import ARROW, PANDAS, PM4PY, POLARS
from veilog.logs.tables.parquet import PARQUET
from veilog.logs.tables.table_reader import BATCH, TableReader
from veilog.logs.xes.reader import XES
from veilog.messages import Message
from veilog.testing import check_reader

EMPTY = "<trace><string key='concept:name' value='nothing'/></trace>"


def suffixes_beside(suffix: str) -> set[str]:
    """All that are read by what reads this one."""
    own = readers._place_of(suffix)
    return {one for kinds, place in readers._BY_SUFFIX.items() for one in kinds if place == own}


@pytest.fixture(scope="module")
def neighbours() -> tuple[EventLog, EventLog]:
    log = hospital(30, 3)
    return log, log.only(np.delete(np.arange(30), 11))


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(
    ("reader", "suffix"),
    [
        *((XES, ".xes"), (XES, ".xes.gz"), (TEXT, ".csv"), (TEXT, ".csv.gz"), (TEXT, ".tsv"), (PARQUET, ".parquet")),
        (EXCEL, ".xlsx"),
    ],
)
def test_our_readers_keep_the_contract(
    tmp_path: Path, neighbours: tuple[EventLog, EventLog], reader: Reader, suffix: str
) -> None:
    files = [tmp_path / f"{number}{suffix}" for number in range(2)]
    for log, path in zip(neighbours, files, strict=True):
        veilog.write(log, path)
    check_reader(reader, files)
    assert reader_of(Source(files[0])) is reader
    assert set(reader.suffixes) == suffixes_beside(suffix)


def test_a_parquet_file_of_cases_that_only_an_index_tells_apart_keeps_it_too(tmp_path: Path) -> None:
    rows = {"case": ["1", "1", "2"], "activity": ["a", "b", "a"], "time": ["2024-01-01", "2024-01-02", "2024-01-03"]}
    whole = tmp_path / "log.xes"
    events = "<event><string key='concept:name' value='a'/></event>"
    for number, more in enumerate(("", f"<trace><string key='concept:name' value='1'/>{events}</trace>")):
        traces = f"<trace><string key='concept:name' value='1'/>{2 * events}</trace>{EMPTY}{more}"
        whole.write_text(f"<log>{traces}</log>")
        veilog.write(veilog.read(whole), tmp_path / f"{number}.parquet")
    assert PARQUET.notes(Source(tmp_path / "1.parquet")).case_key is not None
    check_reader(PARQUET, [tmp_path / "0.parquet", tmp_path / "1.parquet"])
    check_reader(ARROW, [pa.table(rows), pa.table(rows).slice(0, 2)])


@pytest.mark.slow
def test_readers_of_tables_in_memory_keep_the_contract(neighbours: tuple[EventLog, EventLog]) -> None:
    tables = [log.to_arrow() for log in neighbours]
    check_reader(ARROW, tables)
    check_reader(PANDAS, [table.to_pandas() for table in tables])


def workbook(rows: list[tuple[str, str, datetime]], path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("case", "activity", "time"), *rows]:
        book.active.append(row)
    book.save(path)


def object_centric(rows: list[tuple[str, str, datetime]], path: Path) -> None:
    events = [
        {"id": f"e{place}", "type": label, "time": time.isoformat(), "relationships": [{"objectId": case}]}
        for place, (case, label, time) in enumerate(rows)
    ]
    objects = [{"id": case, "type": "case"} for case in dict.fromkeys(case for case, _, _ in rows)]
    if path.suffix == ".json":
        path.write_text(json.dumps({"objects": objects, "events": events}))
        return
    held = "".join(f"<object id='{thing['id']}' type='case'/>" for thing in objects)
    told = "".join(
        f"<event id='{one['id']}' type='{one['type']}' time='{one['time']}'><objects>"
        f"<relationship object-id='{one['relationships'][0]['objectId']}'/></objects></event>"
        for one in events
    )
    path.write_text(f"<log><objects>{held}</objects><events>{told}</events></log>")


def database(rows: list[tuple[str, str, datetime]], path: Path) -> None:
    base = sqlite3.connect(path)
    for table in ("event", "object", "event_map_type", "object_map_type"):
        columns = "ocel_type, ocel_type_map" if table.endswith("type") else "ocel_id, ocel_type"
        base.execute(f"CREATE TABLE {table} ({columns})")
    base.execute("CREATE TABLE event_object (ocel_event_id, ocel_object_id, ocel_qualifier)")
    for place, label in enumerate(dict.fromkeys(label for _, label, _ in rows)):
        base.execute(f"CREATE TABLE event_m{place} (ocel_id, ocel_time)")
        base.execute("INSERT INTO event_map_type VALUES (?, ?)", (label, f"m{place}"))
        for number, (case, other, time) in enumerate(rows):
            if other == label:
                base.execute("INSERT INTO event VALUES (?, ?)", (f"e{number}", label))
                base.execute(f"INSERT INTO event_m{place} VALUES (?, ?)", (f"e{number}", time.isoformat()))
                base.execute("INSERT INTO event_object VALUES (?, ?, '')", (f"e{number}", case))
    for case in dict.fromkeys(case for case, _, _ in rows):
        base.execute("INSERT INTO object VALUES (?, 'case')", (case,))
    base.commit()
    base.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "suffix", "write"),
    [
        (EXCEL, ".xlsx", workbook),
        (JSON, ".json", object_centric),
        (XML, ".xml", object_centric),
        (SQLITE, ".sqlite", database),
    ],
)
def test_readers_of_files_of_other_programs_keep_the_contract(
    tmp_path: Path,
    neighbours: tuple[EventLog, EventLog],
    reader: Reader,
    suffix: str,
    write: Callable[[list[tuple[str, str, datetime]], Path], None],
) -> None:
    paths = [tmp_path / f"{number}{suffix}" for number in range(2)]
    for log, path in zip(neighbours, paths, strict=True):
        table = log.to_arrow()
        columns = (table[name].to_pylist() for name in ("case:concept:name", "concept:name", "time:timestamp"))
        write([(case, label, time.replace(tzinfo=None)) for case, label, time in zip(*columns, strict=True)], path)
    check_reader(reader, paths)
    assert reader_of(Source(paths[0])) is reader
    assert set(reader.suffixes) == suffixes_beside(suffix)


@pytest.mark.slow
def test_frames_of_polars_keep_the_contract(neighbours: tuple[EventLog, EventLog]) -> None:
    pl = pytest.importorskip("polars")
    frames = [pl.from_arrow(log.to_arrow()) for log in neighbours]
    check_reader(POLARS, frames)
    assert veilog.read(frames[0].lazy()).variants == neighbours[0].variants


@pytest.mark.slow
def test_logs_of_pm4py_keep_the_contract_and_all_cases(neighbours: tuple[EventLog, EventLog]) -> None:
    objects = pytest.importorskip("pm4py.objects.log.obj")
    logs = []
    for log in neighbours:
        whole = objects.EventLog()
        for number, name in enumerate(log.cases["concept:name"].to_pylist()):
            trace = objects.Trace(attributes={"concept:name": name, "age": number})
            for place in range(*log.offsets[number : number + 2].tolist()):
                row = {name: log.events[name][place].as_py() for name in ("concept:name", "time:timestamp")}
                trace.append(objects.Event(row))
            whole.append(trace)
        logs.append(whole)
    check_reader(PM4PY, logs)
    assert veilog.read(logs[0]).variants == neighbours[0].variants
    again = logs[0]
    again.append(objects.Trace(attributes={"concept:name": "nothing", "age": 7}))
    again.append(objects.Trace(list(again[0]), attributes=dict(again[0].attributes)))
    again.classifiers["Activity"] = ["concept:name"]
    read = veilog.read(again)
    assert read.cases.num_rows == 32
    assert read.cases["age"].to_pylist() == [*range(30), 7, 0]
    assert {finding.rule for finding in read.findings} >= {"empty-trace", "duplicate-case-id"}
    assert read.metadata.classifiers == (("Activity", "concept:name", "event"),)


class Lines(TableReader):
    """A format of our own: a row of JSON a line."""

    name = "lines"
    suffixes = (".lines",)
    typed = True

    def columns(self, source: Source) -> list[str]:
        return ["case", "activity", "time"]

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        with source.stream() as stream:
            try:
                rows = [json.loads(line) for line in stream]
                return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in self.columns(source)]))
            except (ValueError, pa.ArrowException, TypeError, AttributeError) as error:
                raise InputError(f"This is no file of lines ({error}).", path=source.path) from error


class Together(Lines):
    """Calls what few cases do by another name: one case more may make it many."""

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        rows = super().table(source, asked).to_pylist()
        counts = pd.Series([row["activity"] for row in rows]).value_counts()
        for row in rows:
            row["activity"] = row["activity"] if counts[row["activity"]] > 2 else "something else"
        return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in self.columns(source)]))


class Crashing(Lines):
    """Reader that raises Python's own error for a file that it cannot read."""

    def table(self, source: Source, asked: ReadRequest) -> pa.Table:
        with source.stream() as stream:
            return pa.Table.from_pylist([json.loads(line) for line in stream])


class Forgetful(Lines):
    """Loses the last row of a batch that is not full."""

    def batches(
        self, source: Source, asked: ReadRequest, columns: Sequence[str] | None = None, size: int = BATCH
    ) -> Iterator[pa.RecordBatch]:
        for batch in super().batches(source, asked, columns, size):
            yield batch if batch.num_rows == size else batch.slice(0, batch.num_rows - 1)


def written(path: Path, cases: int) -> Path:
    rows = [
        {"case": f"c{case}", "activity": activity, "time": f"2024-01-{number + 1:02d}"}
        for case in range(cases)
        for number, activity in enumerate(("register", "treat" if case else "examine", "examine"))
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return path


FAULTS: dict[type[Reader], str] = {
    Together: "_read_together",
    Crashing: "_badly_refused",
    Forgetful: "_badly_batched",
}
"""Check that finds the fault of each reader."""


def test_a_planted_fault_is_found_by_its_check_and_by_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [written(tmp_path / f"{cases}.lines", cases) for cases in (3, 4)]
    check_reader(Lines(), files)
    for kind, check in FAULTS.items():
        with pytest.raises(AssertionError):
            check_reader(kind(), files)
        with monkeypatch.context() as patch:
            patch.setattr(f"veilog.testing.readers.{check}", lambda *_: ())
            check_reader(kind(), files)


def test_what_was_not_tried_is_said(tmp_path: Path) -> None:
    three, four = (written(tmp_path / f"{cases}.lines", cases) for cases in (3, 4))
    with pytest.raises(AssertionError):
        check_reader(Lines(), [three])  # no two files that differ by one case
    with pytest.raises(AssertionError, match=r"none\.lines"):
        check_reader(Lines(), [three, four, tmp_path / "none.lines"])


# ---- readers of other packages


class Point:
    """An entry point that another package would have."""

    def __init__(self, name: str, found: Any) -> None:
        self.name, self.value, self._found = name, f"other:{name}", found
        self.dist = type("Dist", (), {"name": "veilog-other", "version": "1.2"})

    def load(self) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


@pytest.fixture
def adding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def add(**found: Any) -> None:
        points = [Point(name, value) for name, value in found.items()]
        patched = lambda group: points if group == "veilog.readers" else []  # noqa: E731
        monkeypatch.setattr("importlib.metadata.entry_points", patched)
        readers.plugin_readers.cache_clear()

    yield add
    readers.plugin_readers.cache_clear()


@pytest.mark.slow
def test_a_reader_of_another_package_reads_what_none_of_ours_does(tmp_path: Path, adding: Any) -> None:
    path = written(tmp_path / "log.lines", 4)
    with refused(InputError, "format-unknown"):
        veilog.read(path)
    adding(lines=Lines())
    log = veilog.read(path)
    assert log.variants.to_dict() == {("register", "treat", "examine"): 3, ("register", "examine", "examine"): 1}
    assert veilog.read_variants(path) == log.variants
    assert veilog.read_variants(tmp_path) == log.variants
    assert veilog.validate(path) == log.findings
    (together,) = log.read_together
    assert together == Message("read-by-add-on", name="lines", package="veilog-other 1.2")
    assert veilog.read_variants(path).read_together == log.variants.read_together == (together,)
    told = veilog.release(log.variants, "laplace", epsilon=1, domain=veilog.Domain(["register"], 2)).guarantee
    assert [str(c.text) for c in told.conditions if c.code == "columns-read-together"] == [str(together)]
    assert ".lines" in known_suffixes()
    (tmp_path / "damaged.lines").write_text("{")
    with pytest.raises(InputError) as caught:
        veilog.read(tmp_path / "damaged.lines")
    assert caught.value.path == str(tmp_path / "damaged.lines")
    with refused(veilog.OutputError, "file-suffix-unknown"):
        veilog.write(log, tmp_path / "out.lines")


def test_a_reader_of_another_package_does_not_take_our_formats(tmp_path: Path, adding: Any) -> None:
    class Greedy(Lines):
        suffixes = (".csv", ".lines")

        def recognises(self, source: Source) -> bool:
            return True

    adding(greedy=Greedy())
    path = tmp_path / "log.csv"
    path.write_text("case,activity,time\n1,a,2024-01-01\n")
    assert reader_of(Source(path)) is TEXT
    assert reader_of(Source(pa.table({}))) is ARROW
    assert isinstance(reader_of(Source(object())), Greedy)


def test_a_broken_add_on_is_warned_of_and_others_still_read(tmp_path: Path, adding: Any) -> None:
    class Unsure(Lines):
        def recognises(self, source: Source) -> bool:
            raise RuntimeError("no idea")

    path = written(tmp_path / "log.lines", 2)
    adding(gone=ImportError("no module named other"), half=object(), unsure=Unsure(), works=Lines())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert veilog.read(path).cases.num_rows == 2
    told = {str(warning.message) for warning in said}
    for name, why in (("gone", "ImportError: no module named other"), ("half", "not a Reader"), ("unsure", "no idea")):
        assert any(repr(name) in text and "veilog-other 1.2" in text and why in text for text in told), name


def test_an_add_on_that_crashes_is_blamed_by_its_package(tmp_path: Path, adding: Any) -> None:
    adding(crashing=Crashing())
    path = tmp_path / "log.lines"
    path.write_text("{")
    for attempt in (veilog.read, veilog.read_variants, veilog.validate):
        with refused(InputError, "add-on-failed", name="crashing", package="veilog-other 1.2", kind="JSONDecodeError"):
            attempt(path)


def test_an_entry_point_of_the_group_is_found_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "other-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[veilog.readers]\nlines = other_lines:READER\n")
    (tmp_path / "other_lines.py").write_text("from test_readers import Lines\nREADER = Lines()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(Path(__file__).parent)
    assert [point.name for point in metadata.entry_points(group="veilog.readers")] == ["lines"]
    readers.plugin_readers.cache_clear()
    try:
        assert veilog.read(written(tmp_path / "log.lines", 2)).cases.num_rows == 2
    finally:
        readers.plugin_readers.cache_clear()

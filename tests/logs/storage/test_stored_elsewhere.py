"""A log on disk is the same from memory, files, DuckDB or another engine."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openly
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import veilog
from veilog import Domain
from veilog.errors import EngineError, InputError, ParameterError
from veilog.logs.eventlog import CASE_INDEX, EVENT_INDEX, EventLog
from veilog.logs.findings import Policy
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.source import ReadOptions, Source
from veilog.logs.storage import loader
from veilog.logs.storage.loader import store, whole_of
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.synthetic.hospital import hospital

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
CASES = st.sampled_from(["p", "q", "r", " ", "ß"])
ROWS = st.lists(
    st.tuples(CASES, st.sampled_from("abc"), st.integers(0, 4), st.sampled_from("xyz"), st.booleans()),
    min_size=1,
    max_size=30,
)


def events_of(rows: list[tuple[str, str, int, str, bool]]) -> pa.Table:
    """Return rows in any order; one attribute of cases is missing where a row is odd."""
    case, activity, minutes, colour, odd = zip(*rows, strict=True)
    return pa.table(
        {
            "case": case,
            "activity": pa.array(activity).dictionary_encode(),
            "timestamp": pa.array([START + datetime.timedelta(minutes=m) for m in minutes], pa.timestamp("us", "UTC")),
            "colour": colour,
            "case:age": [ord(name[0]) for name in case],
            "case:ward": [colour[0] if other else None for other in odd],
            "seq": pa.array(range(len(rows)), pa.int64()),
        }
    )


def as_folder(folder: Path, events: pa.Table, cut: int) -> Path:
    """Two files, of which the second stands in a folder with a sign in its name."""
    for name, part in (("a.parquet", events.slice(0, cut)), ("b [1]/it's.parquet", events.slice(cut))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, folder / name, row_group_size=3)
    return folder


def as_database(folder: Path, events: pa.Table) -> str:
    """The rows as a table, and in another order as a view."""
    with duckdb.connect(folder / "log.duckdb") as connection:
        connection.register("events", events)
        connection.execute("CREATE TABLE log AS SELECT * FROM events")
        connection.execute("CREATE VIEW backward AS SELECT * FROM log ORDER BY seq DESC")
    return f"duckdb:{folder / 'log.duckdb'}"


def on_ibis(events: pa.Table) -> Any:
    ibis = pytest.importorskip("ibis")
    connection = ibis.duckdb.connect()
    connection.con.register("events", events.sort_by([("seq", "descending")]))
    connection.con.execute("CREATE TABLE log AS SELECT * FROM events")
    return connection.table("log")


def told(log: EventLog) -> dict[str, list[Any]]:
    """Return all columns of a log but the numbers of its events."""
    columns = {f"event {name}": log.events[name].to_pylist() for name in log.events.column_names if name != EVENT_INDEX}
    return columns | {f"case {name}": log.cases[name].to_pylist() for name in log.cases.column_names}


def in_small_pieces(patch: pytest.MonkeyPatch, size: int) -> None:
    """As if the rows came a few at a time; DuckDB gives two thousand at once or more."""
    real = loader._batches

    def batches(found: Any) -> Iterator[pa.RecordBatch]:
        for batch in real(found):
            yield from pa.Table.from_batches([batch]).to_batches(max_chunksize=max(1, size // 2))

    patch.setattr(loader, "_batches", batches)
    patch.setattr(loader, "_PIECE", size)


@pytest.mark.nightly
@given(ROWS, st.integers(1, 9), st.integers(0, 30))
@settings(max_examples=4, deadline=None)
def test_every_source_gives_the_log_that_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, int, str, bool]], size: int, cut: int
) -> None:
    folder, events = tmp_path_factory.mktemp("sources"), events_of(rows)
    engine = as_database(folder, events)
    several = as_folder(folder / "several", events, min(cut, len(rows)))
    with pytest.MonkeyPatch.context() as patch:
        in_small_pieces(patch, size)
        patch.setattr(loader, "_AT_ONCE", 1)
        patch.setattr(loader, "_BATCH", 4)
        logs = [
            store(several, threads=1),
            store("log", engine=engine, threads=1),
            store("backward", engine=engine, index="seq", threads=1),
            store(on_ibis(events), index="seq", threads=1),
        ]
    expected = veilog.read(events)
    for log in logs:
        assert log is not None
        assert told(log.whole()) == told(expected)
        assert log.variants == expected.variants
        assert [f.rule for f in log.findings] == [f.rule for f in expected.findings]


# ---- releases from every source


LOG = hospital(30, seed=4)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[], Any]]:
    folder = tmp_path_factory.mktemp("hospital")
    rows = LOG.to_arrow().sort_by("time:timestamp")
    events = rows.append_column("seq", pa.array(range(len(rows)), pa.int64()))
    engine = as_database(folder, events)
    as_folder(folder / "several", events, 100)
    pq.write_table(events, folder / "one.parquet")
    return {
        "memory": lambda: veilog.read(folder / "one.parquet"),
        "file": lambda: store(folder / "one.parquet"),
        "pattern": lambda: store(folder / "several" / "**" / "*.parquet"),
        "table": lambda: store("log", engine=engine),
        "ibis": lambda: store(on_ibis(events), index="seq"),
    }


@pytest.mark.nightly
@pytest.mark.parametrize("unit", [{}, {"unit": "age group", "max_cases": 5, "subset": "urgency=2"}])
def test_a_release_is_the_same_from_every_source(
    sources: dict[str, Callable[[], Any]], monkeypatch: pytest.MonkeyPatch, unit: dict[str, Any]
) -> None:
    in_small_pieces(monkeypatch, 200)
    made = {
        name: openly.release(
            given(),
            "evolve",
            epsilon=9,
            delta="1e-3",
            seed=7,
            times="0.3",
            window="log",
            attributes=["urgency", "leucocytes"],
            domain=Domain(attributes={"leucocytes": (0.0, 30.0)}),
            **unit,
        )
        for name, given in sources.items()
    }
    first = made.pop("memory")
    for name, other in made.items():
        assert other.guarantee == first.guarantee, name
        assert other.log.events.equals(first.log.events), name
        assert other.log.cases.equals(first.log.cases), name


# ---- what belongs to cases, and what is grouped on the way


@pytest.mark.parametrize(("policy", "second"), [("drop", None), ("keep", "x")])
def test_a_case_attribute_that_differs_in_one_piece_does_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Policy, second: str | None
) -> None:
    rows = [("p", "a", 0, "x", True), ("p", "b", 1, "x", True), ("q", "a", 2, "x", True), ("q", "b", 3, "y", True)]
    events = events_of(rows)
    events = events.set_column(events.column_names.index("case:ward"), "case:ward", pa.array([None, "x", "x", "y"]))
    pq.write_table(events, tmp_path / "log.parquet")
    in_small_pieces(monkeypatch, 2)
    log = store(tmp_path / "log.parquet", policies={"case-attribute-differs": policy})
    whole = veilog.read(tmp_path / "log.parquet", policies={"case-attribute-differs": policy})
    assert log is not None and len(log.sizes) == 2
    assert log.whole().cases["ward"].to_pylist() == ["x", second]
    assert told(log.whole()) == told(whole)
    for found in (log, whole):
        assert [f.count for f in found.findings if f.rule == "case-attribute-differs"] == [1]


def test_activities_are_grouped_on_the_way_in(tmp_path: Path) -> None:
    events = events_of([("p", "a", 0, "x", True), ("p", "b", 1, "x", True), ("q", "c", 2, "x", True)])
    groups = {"a": "one", "b": "one", "*": "two"}
    log = store("log", engine=as_database(tmp_path, events), map=groups)
    whole = veilog.read(events, map=groups)
    assert log is not None
    assert log.variants == whole.variants and log.variants.mapped == whole.mapped == log.mapped != ()


# ---- refusals


FILES = {
    "other columns": (lambda t: t.drop_columns(["colour"]), "columns-of-files-differ"),
    "another type": (lambda t: t.set_column(3, "colour", pa.array([1] * len(t))), "columns-of-files-differ"),
    "times as text": (
        lambda t: t.set_column(2, "timestamp", pa.array(["2024-01-01"] * len(t))),
        "column-holds-no-times",
    ),
    "names alike": (lambda t: t.append_column("Case", t["case"]), "column-names-alike"),
}


@pytest.mark.parametrize("what", FILES)
def test_files_that_are_not_alike_are_refused_by_name(tmp_path: Path, what: str) -> None:
    change, code = FILES[what]
    events = events_of([("p", "a", 0, "x", True), ("q", "b", 1, "x", True)])
    pq.write_table(events, tmp_path / "a.parquet")
    pq.write_table(change(events), tmp_path / "b.parquet")
    with refused(InputError, code) as caught:
        store(tmp_path)
    assert caught.value.path.endswith("b.parquet") and caught.value.advice


def test_files_whose_columns_stand_in_another_order_are_one_log(tmp_path: Path) -> None:
    events = events_of([("p", "a", 0, "x", True), ("q", "b", 1, "y", True), ("p", "c", 2, "z", True)])
    pq.write_table(events.slice(0, 1), tmp_path / "a.parquet")
    pq.write_table(events.slice(1).select(events.column_names[::-1]), tmp_path / "b.parquet")
    log = store(tmp_path)
    assert log is not None
    assert told(log.whole()) == told(veilog.read(events))


@pytest.mark.slow
@pytest.mark.parametrize("where", ["several", "log"])
def test_gaps_are_refused_or_left_out_but_not_kept(tmp_path: Path, where: str) -> None:
    good = events_of([("p", "a", 0, "x", True), ("q", "b", 1, "x", True)])
    gaps = (
        pa.table({**{n: good[n] for n in good.column_names}, "case": [None, ""]}),
        pa.table(
            {**{n: good[n] for n in good.column_names}, "timestamp": pa.array([None, START], good["timestamp"].type)}
        ),
    )
    events = pa.concat_tables([good, *gaps])
    engine = as_database(tmp_path, events) if where == "log" else "duckdb"
    given = "log" if where == "log" else as_folder(tmp_path / "several", events, 3)
    with refused(InputError, "rows-without-order", rule="case-without-name", count=2):
        store(given, engine=engine)
    with refused(InputError, "rows-without-order", rule="missing-timestamp", count=1):
        store(given, engine=engine, policies={"case-without-name": "drop", "missing-timestamp": "keep"})
    drop = {"case-without-name": "drop", "missing-timestamp": "drop"}
    log = store(given, engine=engine, policies=drop)
    assert log is not None
    assert told(log.whole()) == told(veilog.read(events, policies=drop))
    assert {f.rule: f.count for f in log.findings} == {"case-without-name": 2, "missing-timestamp": 1}


@pytest.mark.slow
def test_a_view_whose_events_nothing_orders_is_refused_even_where_variants_are_not(tmp_path: Path) -> None:
    engine = as_database(tmp_path, events_of([("p", "a", 0, "x", True), ("p", "a", 0, "y", True)]))
    assert veilog.read_variants("backward", engine=engine).to_dict() == {("a", "a"): 1}
    with refused(InputError, "order-events-tied", count=1, same="time"):
        store("backward", engine=engine)


def test_text_files_and_spark_on_files_are_refused_with_what_will_do(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("case,activity,timestamp\n1,a,2024-01-01\n")
    with refused(InputError, "files-not-all-parquet"):
        store(tmp_path)
    with refused(ParameterError, "engine-files-without-events"):
        store(tmp_path, engine="spark")


def test_only_spark_is_asked_where_it_is(tmp_path: Path) -> None:
    events = events_of([("p", "a", 0, "x", True), ("q", "b", 1, "x", True)])
    for table, engine in ((on_ibis(events), "duckdb"), ("log", as_database(tmp_path, events))):
        with refused(ParameterError, "store-source-not-spark"):
            store(table, engine=engine, index="seq", where="engine")
    with refused(ParameterError, "store-place-unknown", where="there"):
        store(on_ibis(events), index="seq", where="there")  # type: ignore[arg-type]


@pytest.mark.nightly
def test_a_method_that_needs_all_events_is_refused_before_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = events_of([("p", "a", 0, "x", True), ("q", "b", 1, "y", True)])
    engine = as_database(tmp_path, events)
    as_folder(tmp_path / "several", events, 1)
    elsewhere = (
        Source("log", ReadOptions(engine=engine)),
        Source(tmp_path / "several"),
        Source(on_ibis(events), options=ReadOptions(index="seq")),
    )
    for source in elsewhere:
        assert told(whole_of(source, ReadRequest(), "pripel")) == told(veilog.read(events))
    monkeypatch.setattr(loader, "LARGE", 1)
    monkeypatch.setattr(loader, "store_log", None)
    for source in elsewhere:
        with refused(ParameterError, "store-events-too-many", method="pripel", count=2):
            whole_of(source, ReadRequest(), "pripel")


@pytest.mark.slow
def test_a_number_that_64_bits_do_not_hold_changes_no_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The type of a column depends on no value, and so on no piece."""
    events = hundred().append_column("size", pa.array([1] * 99 + [1 << 63], pa.uint64()))
    in_small_pieces(monkeypatch, 20)
    log = store("log", engine=as_database(tmp_path, events))
    assert log is not None and told(log.whole()) == told(veilog.read(events))
    assert sorted(log.whole().events["size"].to_pylist()) == ["1"] * 99 + [str(1 << 63)]


@pytest.mark.slow
def test_a_table_may_be_called_as_a_file_or_a_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = as_database(tmp_path, hundred())
    monkeypatch.chdir(tmp_path)
    Path("log").write_text("no table")
    Path("backward").mkdir()
    for name, index in (("log", None), ("backward", "seq")):
        log = store(name, engine=engine, index=index)
        assert log is not None and told(log.whole()) == told(veilog.read(hundred()))
        assert log.source == name


# ---- faults


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    folder = tmp_path / "spill"
    folder.mkdir()
    return folder


def hundred() -> pa.Table:
    return events_of([(f"case {i % 30}", "a", i, "x", True) for i in range(100)])


def fails(error: BaseException) -> Callable[..., Any]:
    def raising(*arguments: object, **options: object) -> None:
        raise error

    return raising


@pytest.mark.slow
@pytest.mark.parametrize("where", ["several", "log", "ibis"])
def test_a_disk_that_fills_up_is_told_and_nothing_is_left(
    tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    engine = as_database(tmp_path, hundred()) if where == "log" else "duckdb"
    given = {"log": "log", "several": as_folder(tmp_path / "several", hundred(), 9), "ibis": on_ibis(hundred())}[where]
    index = "seq" if where == "ibis" else None
    with monkeypatch.context() as patch:
        patch.setattr("veilog.logs.storage.stored_log.ipc.new_file", fails(OSError(28, "No space left on device")))
        with refused(EngineError, "store-disk-failed"):
            store(given, engine=engine, index=index, temp_directory=spill)
    assert list(spill.iterdir()) == []
    full = duckdb.IOException("IO Error: Could not write file: No space left on device")
    for place in (
        "veilog.logs.storage.loader.sort_events",
        *(["veilog.logs.storage.loader._put_table"] * (where == "ibis")),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, fails(full))
            with refused(EngineError, "engine-disk-full"):
                store(given, engine=engine, index=index, temp_directory=spill)
        assert list(spill.iterdir()) == []


@pytest.mark.slow
def test_a_real_disk_that_fills_up_while_it_sorts(tmp_path: Path, spill: Path) -> None:
    resource = pytest.importorskip("resource")
    rows = 60_000
    noise = [number.hex() for number in np.random.default_rng(1).random(rows)]
    times = pa.array([START] * rows, pa.timestamp("us", "UTC"))
    table = pa.table({"case": noise, "activity": noise, "timestamp": times})
    engine = as_database(tmp_path, table.append_column("seq", pa.array(range(rows))))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, hard))
    try:
        with refused(EngineError, "engine-disk-full", "store-disk-failed"):
            store("log", engine=engine, temp_directory=spill, memory_limit="20MB", threads=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(spill.iterdir()) == []


@pytest.mark.slow
def test_what_ends_it_half_way_leaves_nothing(tmp_path: Path, spill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled query, a broken connection and Ctrl-C after a piece leave no files."""
    engine = as_database(tmp_path, hundred())
    in_small_pieces(monkeypatch, 20)
    real = loader.sort_events

    def half(error: BaseException) -> Callable[..., Iterator[pa.Table]]:
        def tables(*arguments: Any) -> Iterator[pa.Table]:
            yield from itertools.islice(real(*arguments), 2)  # one is made while the one before is written
            assert len(list(spill.rglob("0-events.arrow"))) == 1
            raise error

        return tables

    for error, kind, said in (
        (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), InputError, "Interrupted"),
        (duckdb.OutOfMemoryException("Out of Memory Error: no"), ParameterError, "within 1GB of memory"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
        (RuntimeError("Query interrupted"), KeyboardInterrupt, "^$"),
    ):
        monkeypatch.setattr(loader, "sort_events", half(error))
        with pytest.raises(kind, match=said):
            store("log", engine=engine, temp_directory=spill)
        assert list(spill.iterdir()) == []


def test_an_engine_that_breaks_off_is_told_in_one_line(spill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = on_ibis(hundred())

    def batches(*arguments: object) -> Iterator[pa.RecordBatch]:
        yield hundred().to_batches()[0]
        raise RuntimeError("canceling statement due to user request\n  at line 1\n  at line 2")

    monkeypatch.setattr(loader, "_stream_rows", batches)
    with refused(EngineError, "engine-gave-up"):
        store(there, index="seq", temp_directory=spill)
    assert list(spill.iterdir()) == []


def test_rows_that_do_not_come_by_case_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a case could be in two pieces, and count twice."""
    engine = as_database(tmp_path, hundred())
    monkeypatch.setattr(loader, "_PIECE", 20)
    real = loader._batches

    def shuffled(found: Any) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(list(real(found)))
        rows = np.random.default_rng(1).permutation(len(table))
        yield from table.take(pa.array(rows)).to_batches(max_chunksize=20)

    monkeypatch.setattr(loader, "_batches", shuffled)
    with refused(EngineError, "rows-not-sorted"):
        store("log", engine=engine)


@pytest.mark.slow
def test_the_rows_of_a_case_are_whole_whatever_the_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_pieces(monkeypatch, 7)
    log = store("log", engine=as_database(tmp_path, hundred()))
    assert isinstance(log, StoredLog) and len(log.sizes) > 10
    sizes = [np.bincount(piece.events[CASE_INDEX].to_numpy()).tolist() for piece in log.pieces()]
    assert sorted(size for piece in sizes for size in piece) == [3] * 20 + [4] * 10

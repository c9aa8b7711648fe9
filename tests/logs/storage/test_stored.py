"""A log that is kept on disk is the log that is read, in pieces of whole cases."""

import datetime
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import veilog
from veilog import Domain
from veilog.errors import EngineError, ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.input.source import Source
from veilog.logs.storage import loader
from veilog.logs.storage.loader import store
from veilog.logs.storage.stored_log import StoredLog, keep
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables import table_reader
from veilog.privacy.cases import AllCases, Cases, Coding, RawCases

START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
ROWS = st.lists(
    st.tuples(st.sampled_from("pqrs"), st.sampled_from("abc"), st.integers(0, 5), st.none() | st.sampled_from("xy")),
    min_size=1,
    max_size=40,
)


def write_rows(path: Path, rows: list[tuple[str, str, int, str | None]]) -> None:
    """Rows in any order of cases and times, as other programs write them."""
    case, activity, minutes, colour = zip(*rows, strict=True)
    names = pa.array(activity).dictionary_encode()
    times = pa.array([START + datetime.timedelta(minutes=m) for m in minutes], pa.timestamp("ns", tz="Europe/Berlin"))
    ages = [ord(name) for name in case]
    pq.write_table(
        pa.table({"case": case, "activity": names, "timestamp": times, "colour": colour, "case:age": ages}), path
    )


def in_memory(log: StoredLog) -> EventLog:
    """The pieces joined again."""
    pieces = list(log.pieces())
    events, first = [], 0
    for piece in pieces:
        index = pa.array(piece.events.column("case:index").to_numpy() + first)
        events.append(piece.events.set_column(0, "case:index", index))
        first += piece.cases.num_rows
    return EventLog(pa.concat_tables(events), pa.concat_tables([p.cases for p in pieces]))


def same(log: EventLog, other: EventLog) -> bool:
    """Return True for the same cases and events, whatever their numbers and codes."""
    plain = [
        [table.column(name).to_pylist() for name in table.column_names if name != "event:index"]
        for side in (log, other)
        for table in (side.events, side.cases)
    ]
    return (
        plain[:2] == plain[2:] and log.events.schema == other.events.schema and log.cases.schema == other.cases.schema
    )


@pytest.mark.nightly
@given(ROWS, st.integers(1, 9), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_the_pieces_are_the_log(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, int, str | None]], size: int, batch: int
) -> None:
    """Pieces give the log, with columns of cases that agree, are empty or differ."""
    path = tmp_path_factory.mktemp("stored") / "log.parquet"
    write_rows(path, rows)
    table = pq.read_table(path)
    for name, values in (
        ("case:ward", [None if case == "p" else case.upper() for case, *_ in rows]),
        ("case:hour", [minutes for _, _, minutes, _ in rows]),
        ("case:known", [None if place % 2 else case for place, (case, *_) in enumerate(rows)]),
        ("case:since", [None if case == "q" else START + datetime.timedelta(days=ord(case)) for case, *_ in rows]),
    ):
        table = table.append_column(name, [values])
    pq.write_table(table, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "_PIECE", size)
        patch.setattr(loader, "_BATCH", batch)
        log = store(path, threads=1)
    assert log is not None
    whole = veilog.read(path)
    assert same(in_memory(log), whole)
    assert log.variants == whole.variants
    noticed = ("repeated-event", "days-only", "unlikely-time")  # of a log in memory alone
    assert [f.rule for f in log.findings] == [f.rule for f in whole.findings if f.rule not in noticed]
    chosen = np.arange(0, log.number_of_cases, 2)
    assert same(in_memory(log.only(chosen)), whole.only(chosen))
    assert log.only(chosen).variants == whole.only(chosen).variants


def test_a_case_larger_than_a_piece_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(tmp_path / "log.parquet", [("p", "a", i % 6, None) for i in range(50)] + [("q", "b", 1, "x")])
    monkeypatch.setattr(loader, "_PIECE", 10)
    log = store(tmp_path / "log.parquet")
    assert log is not None
    assert [len(piece) for piece in log.pieces()] == [50, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": pa.array([None, START], pa.timestamp("us", tz="UTC"))},
        {"timestamp": pa.array(["2024-01-01", "2024-01-02"])},
        {"case": pa.array(["", "p"])},
        {"activity": pa.array([None, "a"], pa.string())},
        {"event:index": pa.array([2, 1])},
        {"CASE": pa.array(["p", "q"])},
    ],
)
def test_what_takes_the_whole_log_is_left_to_reading(tmp_path: Path, change: dict[str, pa.Array]) -> None:
    columns = {"case": pa.array(["p", "q"]), "activity": pa.array(["a", "b"]), "timestamp": pa.array([START, START])}
    pq.write_table(pa.table(columns | change), tmp_path / "log.parquet")
    assert store(tmp_path / "log.parquet", case="case", activity="activity", timestamp="timestamp") is None


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    write_rows(tmp_path / "log.parquet", [("p", "a", 1, None)])
    spill = tmp_path / "spill"
    spill.mkdir()
    log = store(tmp_path / "log.parquet", temp_directory=spill)
    assert log is not None and len(list(spill.iterdir())) == 1
    del log
    assert list(spill.iterdir()) == []


def test_only_large_parquet_files_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = hospital(5, seed=1)
    for suffix in (".parquet", ".csv"):
        veilog.write(log, tmp_path / f"log{suffix}")
    assert not table_reader.is_large(Source(tmp_path / "log.parquet"))
    monkeypatch.setattr(table_reader, "LARGE", len(log) - 1)
    assert table_reader.is_large(Source(tmp_path / "log.parquet"))
    assert not table_reader.is_large(Source(tmp_path / "log.csv"))
    assert not table_reader.is_large(Source(tmp_path / "none.parquet"))


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    write_rows(tmp_path / "log.parquet", [("p", "a", 1, None)])
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr("veilog.logs.storage.stored_log.ipc.new_file", full)
    with refused(EngineError, "store-disk-failed"):
        store(tmp_path / "log.parquet", temp_directory=spill)
    assert list(spill.iterdir()) == []
    with refused(ParameterError, "engine-temp-not-usable"):
        store(tmp_path / "log.parquet", temp_directory=tmp_path / "none")


@pytest.fixture
def in_three(tmp_path: Path) -> StoredLog:
    """Three pieces of one case each."""
    write_rows(tmp_path / "log.parquet", [(case, "a", i, "x") for case in "pqr" for i in range(2)])
    whole = veilog.read(tmp_path / "log.parquet")
    log = keep(whole.only(np.array([case])) for case in range(3))
    assert log is not None
    return log


def test_only_the_attributes_that_are_asked_for_are_read(in_three: StoredLog) -> None:
    always = ["case:index", "event:index", "concept:name", "time:timestamp"]
    for names, events, cases in (((), [], []), (("colour",), ["colour"], []), (("case:age",), [], ["age"])):
        for piece in in_three.pieces(names):
            assert piece.events.column_names == [*always, *events]
            assert piece.cases.column_names == ["concept:name", *cases]
    assert next(in_three.pieces()).events.column_names == [*always, "colour"]


def test_what_threads_find_in_pieces_comes_in_the_order_of_the_pieces(in_three: StoredLog) -> None:
    def found(piece: EventLog, first: bool) -> tuple[str, bool]:
        return piece.cases.column("concept:name")[0].as_py(), first

    assert list(in_three.each(found)) == [("p", True), ("q", False), ("r", False)]
    assert list(in_three.only(np.array([1, 2])).each(found)) == [("q", True), ("r", False)]

    def fails(piece: EventLog, first: bool) -> None:
        if not first:
            raise EngineError(piece.cases.column("concept:name")[0].as_py())

    with refused(EngineError, "q"):
        list(in_three.each(fails))


@pytest.mark.parametrize("values", [1, 127, 128, 300])
def test_texts_that_repeat_are_kept_as_numbers_and_come_back_as_texts(tmp_path: Path, values: int) -> None:
    """Codes have room for the missing value, also at the last number of their width."""
    codes = [*range(values), *range(values), None]
    colours = [None if code is None else f"colour {code}" for code in codes]
    rows = [("pqr"[i % 3], "a", i % 60, colour) for i, colour in enumerate(colours)]
    write_rows(tmp_path / "log.parquet", rows)
    whole = veilog.read(tmp_path / "log.parquet")
    log = keep(iter([whole.only(np.array([0, 1])), whole.only(np.array([2]))]))
    assert log is not None
    assert same(log.whole(), whole)
    assert log.shape.events.schema.field("colour").type == pa.string()
    one = keep(iter([whole]))
    assert one is not None
    (kept,) = one.each(lambda piece, _: piece.events["colour"].type)
    assert kept == pa.dictionary(pa.int8() if values <= 127 else pa.int16(), pa.string())
    coding = Coding("colour", tuple(f"colour {i}" for i in range(0, values, 2)), others=True)

    def coded(of: EventLog | StoredLog) -> list[int]:
        def of_piece(raw: RawCases, _first: bool) -> list[int]:
            return raw.coded(coding).tolist()

        return AllCases(of, Domain()).over(of_piece, lambda found: list(itertools.chain(*found)), ("colour",))

    assert coded(log) == coded(whole)
    assert set(coded(log)) == {-1, *range(coding.size if values > 1 else 1)}


def test_texts_that_hardly_repeat_are_kept_as_texts(in_three: StoredLog) -> None:
    names = [piece.cases["concept:name"] for piece in in_three.each(lambda piece, _: piece)]
    assert [column.type for column in names] == [pa.string()] * 3


@pytest.mark.nightly
def test_one_case_of_a_million_events_among_others_is_answered_and_bounded(tmp_path: Path) -> None:
    """It is a piece of its own, and adds to a sum what any other case can add at most."""
    rng, most = np.random.default_rng(1), 1_000_000
    owner = rng.permutation(np.concatenate([np.repeat(np.arange(1, 4001), 5), np.zeros(most, dtype=np.int64)]))
    times = 1_600_000_000_000_000 + rng.integers(0, 10**13, len(owner))
    labels = pa.array([f"a{i}" for i in range(5)])
    table = {
        "case": pa.array(owner).cast(pa.string()),
        "activity": labels.take(pa.array(rng.integers(0, 5, len(owner)))),
        "timestamp": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "colour": pa.array(["x", "y"]).take(pa.array(rng.integers(0, 2, len(owner)))),
    }
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    log = store(tmp_path / "log.parquet", memory_limit="200MB")
    assert log is not None and log.number_of_cases == 4001
    assert max(len(piece) for piece in log.pieces(())) >= most

    def features(block: Cases) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return block.owners, block.attributes["colour"], np.ones(len(block.owners), dtype=np.int64)

    def asked(kept: EventLog | StoredLog, length: int | None) -> int:
        cases = AllCases(kept, Domain(max_length=length))
        return int(cases.sums(features, 2, 8, 1, "L1", labels.to_pylist(), [Coding("colour", ("x", "y"))]).sum())

    assert 4000 * 5 <= asked(log, None) <= 4000 * 5 + 8
    assert asked(log, 6) == 4000 * 5 + 6
    assert asked(log, None) == asked(veilog.read(tmp_path / "log.parquet"), None)
    facts = Domain(labels.to_pylist(), 50, attributes={"colour": ("x", "y")})
    released = veilog.release(log, "evolve", epsilon=1, seed=1, domain=facts, times="0.3", attributes=["colour"])
    assert 3000 < released.variants.cases < 5000
    assert released.variants.lengths.max() <= 50

"""Variants of a table in DuckDB follow its rows' order, or an index for a view."""

import contextlib
import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from veilog.cli import main
from veilog.errors import EngineError, InputError
from veilog.logs import files
from veilog.logs.storage.loader import store
from veilog.logs.variants import Variants

TIMES = pa.timestamp("us", "UTC")
rows_of_logs = st.lists(
    st.tuples(st.sampled_from(["1", "2", "ß"]), st.sampled_from(["a", "B", "ä", "活動"]), st.integers(-2, 2)),
    min_size=1,
    max_size=20,
)


def events_of(rows: list[tuple[str, str, int]], time: pa.DataType = TIMES) -> pa.Table:
    case, activity, moment = zip(*rows, strict=True)
    times = pa.array(moment, pa.int64()).cast(time)
    return pa.table({"case": case, "activity": activity, "time": times, "seq": pa.array(range(len(rows)), pa.int64())})


def database(folder: Path, events: pa.Table, *more: str) -> str:
    """The engine's name for a database with these events as the table ``log``."""
    path = folder / "it's.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as connection:
        connection.register("events", events)
        connection.execute("CREATE TABLE log AS SELECT * FROM events")
        for statement in more:
            connection.execute(statement)
    return f"duckdb:{path}"


@pytest.mark.nightly
@settings(max_examples=12)
@given(
    rows_of_logs, st.sampled_from(["s", "ms", "us", "ns"]), st.booleans(), st.sampled_from([1, -7, 1 << 39, 1 << 41])
)
def test_a_table_and_a_view_of_it_give_the_variants_of_the_log_read_whole(
    tmp_path_factory: pytest.TempPathFactory, rows, unit: str, zoned: bool, step: int
) -> None:
    events = events_of(rows, pa.timestamp(unit, "UTC" if zoned else None))
    whole = files.read(events.drop_columns(["seq"])).variants
    order = "DESC" if step > 0 else "ASC"
    view = f'CREATE VIEW "a view" AS SELECT * REPLACE (seq * {step} AS seq) FROM log ORDER BY seq {order}'
    engine = database(tmp_path_factory.mktemp("db"), events, view)
    assert files.read_variants("log", engine=engine) == whole
    if step > 0:
        assert files.read_variants("a view", engine=engine, index="seq") == whole


@pytest.mark.slow
def test_a_view_with_open_ties_needs_an_index(tmp_path: Path) -> None:
    events = events_of([("1", "z", 0), ("1", "a", 0), ("2", "a", 0), ("2", "a", 0)])
    more = ("CREATE VIEW v AS SELECT * FROM log", "CREATE VIEW w AS SELECT * FROM log WHERE \"case\" = '2'")
    engine = database(tmp_path, events, *more)
    with refused(InputError, "order-activities-tied", ties=1):
        files.read_variants("v", engine=engine)
    assert files.read_variants("v", engine=engine, index="seq").to_dict() == {("z", "a"): 1, ("a", "a"): 1}
    assert files.read_variants("w", engine=engine).to_dict() == {("a", "a"): 1}


def test_the_order_that_veilog_itself_has_written_stands_above_times(tmp_path: Path) -> None:
    events = events_of([("1", "a", 2), ("1", "b", 1), ("1", "c", 0)]).rename_columns(
        ["case", "activity", "time", "event:index"]
    )
    engine = database(tmp_path, events)
    assert files.read_variants("log", engine=engine).to_dict() == {("a", "b", "c"): 1}
    assert files.read(events).variants.to_dict() == {("a", "b", "c"): 1}


@pytest.mark.slow
def test_gaps_are_counted_and_refused_or_left_out(tmp_path: Path) -> None:
    sql = (
        "CREATE TABLE gaps AS SELECT * FROM log",
        "INSERT INTO gaps VALUES (NULL, 'x', '2024-01-01 00:00Z', 7), ('', 'x', '2024-01-01 00:00Z', 8), "
        "('1', NULL, NULL, 9)",
    )
    engine = database(tmp_path, events_of([("1", "a", 0)]), *sql)
    with refused(InputError, "rows-without-order", rule="case-without-name", count=2):
        files.read_variants("gaps", engine=engine)
    drop = dict.fromkeys(("case-without-name", "event-without-activity", "missing-timestamp"), "drop")
    assert files.read_variants("gaps", engine=engine, policies=drop).to_dict() == {("a",): 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('ALTER "time" TYPE VARCHAR', "'time' holds string"),
        ("ALTER seq TYPE VARCHAR", "'seq' holds string"),
        ('ALTER "case" TYPE DOUBLE', "'case' holds double"),
        ("ALTER activity TYPE VARCHAR[] USING [activity]", "'activity' holds list"),
    ],
)
def test_columns_of_another_type_are_named(tmp_path: Path, change: str, said: str) -> None:
    engine = database(tmp_path, events_of([("1", "a", 0)]), f"ALTER TABLE log {change}")
    with pytest.raises(InputError, match=said):
        files.read_variants("log", engine=engine, index="seq")


def test_numbers_and_dates_serve_as_names_and_times(tmp_path: Path) -> None:
    sql = 'CREATE TABLE s.days AS SELECT seq AS "case", seq AS activity, "time"::DATE AS "time" FROM log'
    engine = database(tmp_path, events_of([("1", "a", 0), ("1", "b", 1)]), "CREATE SCHEMA s", sql)
    assert files.read_variants("s.days", engine=engine).to_dict() == {("0",): 1, ("1",): 1}


@pytest.mark.slow
def test_what_is_not_there_is_said_with_what_is(tmp_path: Path) -> None:
    engine = database(tmp_path, events_of([("1", "a", 0)]), "CREATE VIEW other AS SELECT 1 AS one")
    with refused(InputError, "database-table-missing", table="events", names="log, other"):
        files.read_variants("events", engine=engine)
    with refused(InputError, "table-index-missing", index="nr"):
        files.read_variants("log", engine=engine, index="nr")
    with refused(InputError, "column-role-not-found"):
        files.read_variants("other", engine=engine)
    with refused(InputError, "database-missing"):
        files.read_variants("log", engine=f"duckdb:{tmp_path / 'none.duckdb'}")
    (tmp_path / "text.duckdb").write_text("no database at all, but long enough to be looked at" * 100)
    with refused(InputError, "database-not-opened"):
        files.read_variants("log", engine=f"duckdb:{tmp_path / 'text.duckdb'}")


@pytest.mark.slow
def test_an_empty_table_is_an_error_and_the_database_stays_as_it_is(tmp_path: Path) -> None:
    engine = database(tmp_path, events_of([("1", "a", 0)]), "CREATE TABLE none AS FROM log LIMIT 0")
    before = (tmp_path / "it's.duckdb").read_bytes()
    with pytest.raises(InputError, match="no rows"):
        files.read_variants("none", engine=engine)
    files.read_variants("log", engine=engine)
    assert (tmp_path / "it's.duckdb").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["it's.duckdb"]


@pytest.mark.nightly(but=1)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")  # Ibis's
@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
@pytest.mark.parametrize("through", ["duckdb", "ibis", "disk"])
def test_a_collation_makes_no_spelling_of_one_case_that_of_others(tmp_path: Path, collation: str, through: str) -> None:
    rows = [(f"c{i}", name, f"2024-01-0{day}") for i in range(3) for day, name in ((1, "admit"), (2, "leave"))]
    others = [("x", "ADMIT", "2024-01-01"), ("x", "l\u00e9ave", "2024-01-02"), ("C1", "admit", "2024-01-03")]

    def read(rows: list[tuple[str, str, str]]) -> Variants:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.duckdb"
        with duckdb.connect(str(path)) as connection:
            text = f"VARCHAR COLLATE {collation}"
            connection.execute(f'CREATE TABLE log ("case" {text}, activity {text}, timestamp TIMESTAMP)')
            connection.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
        if through == "disk":
            log = store("log", engine=f"duckdb:{path}")
            assert log is not None
            return log.variants
        if through == "duckdb":
            return files.read_variants("log", engine=f"duckdb:{path}")
        ibis = pytest.importorskip("ibis")
        return files.read_variants(ibis.duckdb.connect(str(path), read_only=True).table("log"))

    before = {("admit", "leave"): 3}
    assert read(rows).to_dict() == before
    for found in (read([*others, *rows]), read([*rows, *others])):
        assert found.to_dict() == {**before, ("ADMIT", "l\u00e9ave"): 1, ("admit",): 1}


@pytest.mark.parametrize("names", [("c", "p", "r"), ("p", "c", "t"), ("r", "w0", "c"), ("places", "e", "t")])
def test_columns_may_have_any_name(tmp_path: Path, names: tuple[str, str, str]) -> None:
    """A column of cases called c was taken for one of the table of cases."""
    events = events_of([("2", "a", 3), ("1", "b", 1), ("1", "a", 2)]).drop_columns(["seq"]).rename_columns(names)
    events = events.append_column("case:c", pa.array(["x", "y", "y"]))
    engine = database(tmp_path, events)
    case, activity, timestamp = names
    log = store("log", engine=engine, case=case, activity=activity, timestamp=timestamp)
    assert log.variants.to_dict() == {("a",): 1, ("b", "a"): 1}
    whole = pa.concat_tables([piece.events for piece in log.pieces()])
    assert whole.column("concept:name").to_pylist() == ["a", "b", "a"]


def test_what_is_not_looked_at_in_a_database_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "log", "--engine", database(tmp_path, events_of([("1", "a", 0)]))]) == 0
    assert {"attributes,", "life", "cycle", "people", "not"} <= set(capsys.readouterr().out.split())


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")  # Ibis's
def test_an_engine_without_arrays_says_what_it_cannot_do(tmp_path: Path) -> None:
    pytest.importorskip("ibis")
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        connection.execute('CREATE TABLE log ("case" TEXT, activity TEXT, timestamp TIMESTAMP)')
        connection.execute("INSERT INTO log VALUES ('1', 'a', '2024-01-01 08:00:00')")
        connection.commit()
    with refused(EngineError, "engine-without-variants"):
        files.read_variants("log", engine=f"sqlite://{tmp_path}/log.db")

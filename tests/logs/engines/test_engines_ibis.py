"""Variants by Ibis, on DuckDB and Spark, equal those of the log, or are refused."""

import contextlib
import gc
import glob
import sqlite3
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from refusals import refused
from spark_session import spark_here

from veilog.errors import EngineError, InputError, ParameterError
from veilog.logs import files
from veilog.logs.engines import ibis as engines_ibis
from veilog.logs.eventlog import EVENT_INDEX
from veilog.logs.input.loader import roles_of
from veilog.logs.input.source import ReadOptions, Source
from veilog.logs.storage import loader
from veilog.logs.storage.loader import store
from veilog.logs.variants import Variants

ibis = pytest.importorskip("ibis")
# Ibis and Spark leave connections to be closed by the collector, and use what other libraries will drop one day.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)

# An example costs seconds under Spark: to shrink one is not worth the wait.
QUICKLY = (Phase.explicit, Phase.generate)
SECONDS = pa.timestamp("us", "UTC")
rows_of_logs = st.lists(
    st.tuples(
        st.sampled_from(["1", "2", "ß", "1 "]),
        st.sampled_from(["a", "B", "b", "ä", "a\u0308", "活動", "💊", "it's", '"']),
        st.integers(-2, 2),
    ),
    min_size=1,
    max_size=25,
)


def table(rows: list[tuple[str, str, int]], time: pa.DataType = SECONDS) -> pa.Table:
    case, activity, second = zip(*rows, strict=True)
    moments = pa.array(second, pa.int64()).cast(pa.timestamp("s")).cast(time)
    return pa.table(
        {"case": case, "activity": activity, "time": moments, "seq": pa.array(range(len(rows)), pa.int64())}
    )


def on_duckdb(events: pa.Table) -> Any:
    """A table of Ibis whose rows come in another order."""
    connection = ibis.duckdb.connect()
    connection.con.register(
        "events", events.sort_by([("seq", "descending")]) if "seq" in events.column_names else events
    )
    connection.con.execute("CREATE TABLE log AS SELECT * FROM events")
    return connection.table("log")


def read(events: pa.Table) -> Variants:
    return files.read(events.drop_columns(["seq"])).variants


@pytest.mark.nightly
@settings(max_examples=20, phases=QUICKLY)
@given(rows_of_logs, st.sampled_from(["s", "ms", "us", "ns"]), st.booleans())
def test_ibis_on_duckdb_gives_the_variants_of_the_log_read_whole(rows, unit: str, zoned: bool) -> None:
    # Ibis does not know DuckDB's type of nanoseconds with a zone, which is refused like any other of no use.
    events = table(rows, pa.timestamp(unit, "UTC" if zoned and unit != "ns" else None))
    there = on_duckdb(events)
    assert files.read_variants(there, index="seq") == read(events)
    assert files.read(there, index="seq").variants == read(events)


@pytest.mark.slow
def test_times_finer_than_a_microsecond_are_refused_and_others_of_that_type_are_not() -> None:
    time = pa.array([900, 100, -1000, -900], pa.int64()).cast(pa.timestamp("ns"))
    events = pa.table({"case": ["1"] * 4, "activity": list("abcd"), "time": time, "seq": [0, 1, 2, 3]})
    with refused(InputError, "times-finer-than-microsecond", found=3):
        files.read_variants(on_duckdb(events), index="seq")
    assert files.read_variants(on_duckdb(events.slice(2, 1)), index="seq").to_dict() == {("c",): 1}


@pytest.mark.slow
def test_whole_numbers_and_dates_are_taken_as_they_are_elsewhere() -> None:
    events = pa.table({"case": [7, 8, 7], "activity": [1, 2, 3], "time": [date(2024, 1, d) for d in (2, 1, 1)]})
    assert files.read_variants(on_duckdb(events)) == files.read(events).variants
    assert files.read_variants(on_duckdb(events)).to_dict() == {("3", "1"): 1, ("2",): 1}


@pytest.mark.slow
def test_open_ties_are_refused_and_counted_unless_they_make_no_difference() -> None:
    events = table([("1", "a", 0), ("1", "b", 0), ("2", "c", 1), ("2", "c", 1), ("3", "x", 0), ("3", "y", 0)])
    with refused(InputError, "order-activities-tied", ties=2):
        files.read_variants(on_duckdb(events))
    with refused(InputError, "order-activities-tied"):
        files.read(on_duckdb(events))
    alike = events.filter(pa.array([False, False, True, True, False, False]))
    assert files.read_variants(on_duckdb(alike)).to_dict() == {("c", "c"): 1}
    flat = events.set_column(3, "seq", pa.array([1] * 6, pa.int64()))
    with refused(InputError, "order-index-ties", index="seq"):
        files.read_variants(on_duckdb(flat), index="seq")


def test_the_order_that_veilog_itself_has_written_stands_above_times() -> None:
    events = table([("1", "a", 2), ("1", "b", 1), ("1", "c", 0)]).rename_columns(
        ["case", "activity", "time", "event:index"]
    )
    assert (
        files.read_variants(on_duckdb(events)).to_dict()
        == {("a", "b", "c"): 1}
        == files.read(events).variants.to_dict()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "rule"),
    [("case", "case-without-name"), ("activity", "event-without-activity"), ("time", "missing-timestamp")],
)
def test_gaps_are_counted_and_refused_or_left_out(column: str, rule: str) -> None:
    events = table([("1", "a", 0), ("1", "b", 1), ("2", "c", 1), ("2", "d", 2)])
    gaps = pa.array([False, True, False, True])
    place = events.column_names.index(column)
    events = events.set_column(place, column, pc.if_else(gaps, None, events[column]))
    there = on_duckdb(events)
    codes = {"case-without-name": "rows-without-order", "missing-timestamp": "finding-with-example"}
    for policies in ({}, {rule: "fail"}):
        if policies or rule != "event-without-activity":
            with refused(InputError, "finding-with-example" if policies else codes[rule], rule=rule):
                files.read_variants(there, index="seq", policies=policies)
    assert files.read_variants(there, index="seq", policies={rule: "drop"}).to_dict() == {("a",): 1, ("c",): 1}
    if rule != "event-without-activity":
        with refused(InputError, "rows-without-order", rule=rule, count=2):
            files.read_variants(there, index="seq", policies={rule: "keep"})


def test_a_table_that_is_read_has_its_gaps_counted_once() -> None:
    log = files.read(on_duckdb(table([("1", "", 0), ("1", "b", 1), ("2", "", 1)])), index="seq")
    assert {finding.rule: finding.count for finding in log.findings} == {"event-without-activity": 2}


def test_empty_names_are_gaps_as_well() -> None:
    there = on_duckdb(table([("1", "", 0), ("1", "b", 1)]))
    assert files.read_variants(there, index="seq").to_dict() == {("b",): 1}
    with refused(InputError, "rows-without-order", rule="case-without-name", count=1):
        files.read_variants(on_duckdb(table([("", "a", 0), ("1", "b", 1)])), index="seq")


@pytest.mark.parametrize(
    ("column", "values", "wanted"),
    [
        ("time", ["2024-01-01", "2024-01-02"], "timestamps"),
        ("time", [1, 2], "timestamps"),
        ("activity", [1.5, 2.0], "names of activities"),
        ("case", [1.5, 2.0], "names of cases"),
        ("seq", ["1", "2"], "whole numbers"),
    ],
)
def test_columns_that_the_engine_types_differently_are_named(column: str, values: list, wanted: str) -> None:
    events = table([("1", "a", 0), ("1", "b", 1)])
    events = events.set_column(events.column_names.index(column), column, pa.array(values))
    with refused(InputError, "column-type-of-engine", name=column, wanted=wanted):
        files.read_variants(on_duckdb(events), index="seq")


def test_a_missing_index_and_an_empty_table_are_errors() -> None:
    events = table([("1", "a", 0), ("1", "b", 1)])
    with refused(InputError, "table-index-missing", index="nr"):
        files.read_variants(on_duckdb(events), index="nr")
    with refused(InputError, "table-index-has-gaps", index="seq", unplaced=1):
        files.read_variants(on_duckdb(events.set_column(3, "seq", pa.array([1, None], pa.int64()))), index="seq")
    with refused(InputError, "table-without-rows"):
        files.read_variants(on_duckdb(events.slice(0, 0)), index="seq")


def test_a_table_too_large_to_come_here_points_to_its_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines_ibis, "_READ_WHOLE", 3)
    there = on_duckdb(table([("1", "a", i) for i in range(4)]))
    with refused(InputError, "table-too-large"):
        files.read(there, index="seq")
    assert files.read_variants(there, index="seq").cases == 1


def test_what_was_not_read_yet_is_no_log_to_release_or_judge(tmp_path: Path) -> None:
    import veilog

    there = on_duckdb(table([("1", "a", 0)]))
    with refused(InputError, "log-is-engine-table"):
        veilog.release(there, "evolve", epsilon=1)
    with refused(InputError, "log-is-engine-table"):
        veilog.risk(there)
    for other in ("log.csv", tmp_path, 3):
        with pytest.raises(InputError):
            veilog.release(other, "evolve", epsilon=1, activities=["a"])


@pytest.mark.slow
def test_an_engine_that_no_test_runs_on_is_probed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    there = on_duckdb(table([("1", "a", 0), ("1", "b", 1)]))
    monkeypatch.setattr(engines_ibis, "_TESTED", ())
    assert files.read_variants(there, index="seq").to_dict() == {("a", "b"): 1}

    def unsorted(events: Any) -> Any:
        cases = events.group_by("c").agg(v=events.a.collect())
        return cases.group_by("v").agg(n=cases.count())

    monkeypatch.setattr(engines_ibis, "count_variants", unsorted)
    with refused(EngineError, "engine-order-not-kept"):
        files.read_variants(there, index="seq")


@pytest.mark.slow
@pytest.mark.parametrize("column", ["case", "activity"])
@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT"])
def test_an_engine_that_takes_spellings_for_one_name_is_not_used(
    monkeypatch: pytest.MonkeyPatch, column: str, collation: str
) -> None:
    """A collation that takes x and X for one name would merge cases, and is refused."""
    there = on_duckdb(table([("1", "a", 0), ("1", "b", 1)]))
    collated = there.get_backend().con
    monkeypatch.setattr(engines_ibis, "_collates", lambda table: False)
    assert files.read_variants(there, index="seq").to_dict() == {("a", "b"): 1}, "by characters it is used"
    collated.execute(f'ALTER TABLE log ALTER "{column}" TYPE VARCHAR COLLATE {collation}')
    for reads in (files.read, files.read_variants):
        with refused(InputError, "column-texts-conflated", name=column):
            reads(there, index="seq")


def test_a_collation_of_sqlite_makes_no_event_that_of_another_case(tmp_path: Path) -> None:
    """Cases x and X of SQLite stay two, and an activity of blanks stays one."""
    with contextlib.closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        connection.execute('CREATE TABLE log ("case" TEXT COLLATE NOCASE, activity TEXT COLLATE RTRIM, time TIMESTAMP)')
        rows = [("x", "a", 0), ("X", "b", 0), ("y", " ", 1)]
        connection.executemany("INSERT INTO log VALUES (?, ?, '2024-01-01 08:00:0' || ?)", rows)
        connection.commit()
    there = ibis.sqlite.connect(tmp_path / "log.db").table("log")
    assert files.read(there).variants.to_dict() == {("a",): 1, ("b",): 1, (" ",): 1}


def test_what_an_engine_says_is_put_in_one_line() -> None:
    there = on_duckdb(table([("1", "a", 0)])).mutate(activity=ibis.literal("x").cast("int64").cast("string"))
    with pytest.raises(EngineError) as caught:
        files.read_variants(there, index="seq")
    assert "\n" not in str(caught.value)
    assert "x" in str(caught.value)


@pytest.mark.slow
def test_a_url_of_duckdb_and_a_table_in_it(tmp_path: Path) -> None:
    import duckdb

    rows = table([("1", "a", 1), ("1", "b", 0)])
    with duckdb.connect(tmp_path / "log.duckdb") as connection:
        connection.register("events", rows)
        connection.execute("CREATE TABLE log AS SELECT * FROM events")
    url = f"duckdb://{tmp_path / 'log.duckdb'}"
    assert files.read_variants("log", engine=url, index="seq") == read(rows)
    with pytest.raises(InputError, match="no table 'nothing'"):
        files.read_variants("nothing", engine=url)


@pytest.mark.parametrize("engine", ["sparks", "duck", ""])
def test_an_unknown_engine_is_refused(engine: str) -> None:
    with refused(ParameterError, "engine-unknown"):
        files.read_variants("log.parquet", engine=engine)


# --- Spark: one session for all ---


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of ours, kept for all tests: what asks for one gets a copy of it."""
    with spark_here(tmp_path_factory.mktemp("spark")) as started:
        yield started


def write(folder: Path, name: str, events: pa.Table) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(events, folder / name, row_group_size=3)


@pytest.mark.nightly
@settings(max_examples=3, phases=QUICKLY)
@given(rows_of_logs, rows_of_logs, st.sampled_from(["ms", "us", "ns"]), st.booleans())
def test_spark_duckdb_and_ibis_agree_on_a_folder(
    spark, tmp_path_factory: pytest.TempPathFactory, first, second, unit: str, zoned: bool
) -> None:
    folder = tmp_path_factory.mktemp("it's [a] log")
    kind = pa.timestamp(unit, "UTC" if zoned else None)
    both = table(first + second, kind)
    # "b=1-x" stands before "b=1/..." as text, and behind it as a folder.
    write(folder, "b=1/part 0.parquet", both.slice(0, len(first)).drop_columns(["seq"]))
    write(folder, "b=1-x/part 0.parquet", both.slice(len(first)).drop_columns(["seq"]))
    (folder / "_SUCCESS").touch()
    expected = read(both)
    assert files.read_variants(folder) == expected
    assert files.read_variants(f"{glob.escape(str(folder))}/**/*.parquet") == expected
    assert files.read_variants(folder, engine="spark") == expected
    assert files.read_variants(on_duckdb(both), index="seq") == expected


@pytest.mark.nightly
def test_a_table_of_spark_is_grouped_in_its_session(spark, request: pytest.FixtureRequest) -> None:
    rows = [("1", "z", 0), ("1", "a", 0), ("2", "活動", 3), ("2", "💊", -1), ("2", "a\u0308", 3)]
    events = table(rows)
    frame = spark.createDataFrame(events.to_pandas())
    frame.createOrReplaceTempView("log")
    request.addfinalizer(lambda: spark.catalog.dropTempView("log"))
    there = ibis.pyspark.connect(spark).table("log")
    assert files.read_variants(there, index="seq") == read(events)
    assert files.read(there, index="seq").variants == read(events)
    with refused(InputError, "order-activities-tied", ties=1):
        files.read_variants(there.filter(there.case == "1"))


@pytest.mark.nightly
def test_a_table_of_spark_with_all_its_columns_is_the_log_read_whole(
    spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    rows = [("1", "z", 0), ("1", "a", 0), ("2", "活動", 3), ("2", "💊", -1), ("2", "a\u0308", 3)] * 20
    events = table(rows).append_column("case:age", pa.array([int(case) for case, _, _ in rows]))
    pq.write_table(events.sort_by([("seq", "descending")]), tmp_path / "log.parquet", row_group_size=30)
    spark.read.parquet(str(tmp_path / "log.parquet")).createOrReplaceTempView("log")
    request.addfinalizer(lambda: spark.catalog.dropTempView("log"))
    there = ibis.pyspark.connect(spark).table("log")
    whole = files.read(events)
    monkeypatch.setattr(loader, "_AT_ONCE", 1)
    log = store(there, index="seq", temp_directory=tmp_path)
    assert log is not None
    assert log.variants == whole.variants
    for found, wanted in ((log.whole().events, whole.events), (log.whole().cases, whole.cases)):
        names = [name for name in wanted.column_names if name != EVENT_INDEX]
        assert found.select(names).to_pylist() == wanted.select(names).to_pylist()
    with refused(InputError, "order-activities-tied", ties=2):
        store(there.drop("seq"))
    del log, found
    gc.collect()  # the connections of the iterator, while their warnings are ignored
    assert [path.name for path in tmp_path.iterdir()] == ["log.parquet"]


@pytest.mark.nightly
def test_a_job_of_spark_that_dies_half_way_is_told_in_one_line(spark, tmp_path: Path) -> None:
    write(tmp_path, "1.parquet", table([("1", "a", i) for i in range(50)]))
    write(tmp_path, "2.parquet", table([("1", "b", i) for i in range(50)]))
    whole = (tmp_path / "2.parquet").read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    (tmp_path / "2.parquet").write_bytes(whole[:4] + bytes(footer - 4) + whole[footer:])
    with pytest.raises(EngineError) as caught:
        files.read_variants(tmp_path, engine="spark")
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)
    assert spark.catalog.listTables() == []


@pytest.mark.parametrize("name", ["log.csv", "log.xes"])
def test_spark_reads_no_text(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("case,activity,time\n1,a,2024-01-01\n")
    with refused(InputError, "spark-text-not-read"):
        roles_of(Source(tmp_path / name, ReadOptions(engine="spark")))


def test_files_of_different_types_are_refused_by_spark_before_it_starts(tmp_path: Path) -> None:
    write(tmp_path, "1.parquet", table([("1", "a", 0)]))
    write(tmp_path, "2.parquet", table([("1", "a", 0)], pa.timestamp("ms")))
    with refused(InputError, "spark-column-types-differ", name="1.parquet") as caught:
        files.read_variants(tmp_path, engine="spark")
    assert str(caught.value.path).endswith("2.parquet")


def test_an_index_is_for_tables_only(tmp_path: Path) -> None:
    write(tmp_path, "1.parquet", table([("1", "a", 0)]))
    for engine in ("duckdb", "spark"):
        with refused(ParameterError, "rows-order-of-files"):
            files.read_variants(tmp_path / "1.parquet", engine=engine, index="seq")
    with refused(ParameterError, "rows-order-already-given"):
        files.read(tmp_path / "1.parquet", index="seq")


@pytest.mark.nightly
@pytest.mark.parametrize("collated", [("case",), ("activity",), ("case", "activity")])
def test_a_collation_of_spark_makes_no_spelling_of_one_case_that_of_others(
    spark: Any, collated: tuple[str, ...]
) -> None:
    rows = table([("x", "a", 0), ("y", "b", 1), ("X", "A", 2)])
    spark.createDataFrame(rows.to_pylist()).createOrReplaceTempView("plain")
    said = ", ".join(f"`{name}`{' COLLATE UTF8_LCASE' * (name in collated)} AS `{name}`" for name in rows.column_names)
    spark.sql(f"SELECT {said} FROM plain").createOrReplaceTempView("collated")
    there = ibis.pyspark.connect(spark).table("collated")
    assert files.read_variants(there, index="seq").to_dict() == {("a",): 1, ("b",): 1, ("A",): 1}


@pytest.mark.parametrize("infinite", ["infinity", "-infinity"])
@pytest.mark.parametrize("read", [files.read, files.read_variants])
def test_infinite_times_are_refused_as_those_beyond_the_calendar_are(infinite: str, read: Callable[..., Any]) -> None:
    """Infinite times are refused as times outside the years, in words of the user."""
    connection = ibis.duckdb.connect()
    connection.raw_sql(f"CREATE TABLE log AS SELECT '1' c, 'a' a, unnest([TIMESTAMP '{infinite}', '2024-01-01']) t")
    with refused(InputError, "times-outside-years"):
        read(connection.table("log"), case="c", activity="a", timestamp="t")

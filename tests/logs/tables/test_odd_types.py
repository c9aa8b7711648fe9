"""Columns of rare types in memory and Parquet are read by value, or refused."""

from __future__ import annotations

import datetime
import uuid
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from refusals import refused

import veilog
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY, CASE, EVENT_INDEX, LIFECYCLE, TIMESTAMP
from veilog.logs.storage.loader import store

NOON = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.UTC)
CASES, LABELS = ["a", "b", "a", "b"], ["w", "x", "y", "z"]
TIMES = [NOON + datetime.timedelta(hours=hour) for hour in (3, 2, 1, 0)]
"""The rows of each case stand in the wrong order."""


def rows(**more: Any) -> dict[str, Any]:
    return {CASE: CASES, ACTIVITY: LABELS, TIMESTAMP: TIMES} | more


def told(log: Any, **how: Any) -> dict[str, list[Any]]:
    found = veilog.read(log, **how).to_arrow()
    return {name: found[name].to_pylist() for name in found.column_names}


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int8(), pa.string_view())])
@pytest.mark.parametrize("name", [CASE, ACTIVITY, EVENT_INDEX, LIFECYCLE, "note", "case:note"])
def test_views_of_text_are_text(tmp_path: Path, name: str, kind: pa.DataType) -> None:
    given = rows().get(name, ["4", "3", "4", "1"])
    text = pa.array(given, pa.string())
    view = text.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else text.cast(kind)
    plain, odd = (pa.table(rows(**{name: column})) for column in (text, view))
    assert told(odd) == told(plain)
    if pa.types.is_string_view(kind):
        pq.write_table(odd, tmp_path / "log.parquet")
        assert told(tmp_path / "log.parquet") == told(plain)
        assert veilog.read_variants(tmp_path / "log.parquet") == veilog.read(plain).variants


def test_runs_and_views_of_bytes_are_their_values() -> None:
    runs = pc.run_end_encode(pa.array(["p", "p", "q", "q"]))
    assert told(pa.table(rows(note=runs))) == told(pa.table(rows(note=["p", "p", "q", "q"])))
    views = pa.array([b"p", b"p", b"q", None], pa.binary_view())
    assert told(pa.table(rows(note=views)), policies={"bad-value": "keep"})["note"] == ["q", "p", None, "p"]


def test_spans_that_arrow_cannot_write_are_text() -> None:
    spans = pa.array([(1, 2, 3)] * 4, pa.month_day_nano_interval())
    assert "months=1" in told(pa.table(rows(span=spans)))["span"][0]
    assert "span" not in told(pa.table(rows(span=spans)), policies={"bad-value": "drop"})


def test_an_index_without_signs_orders_events() -> None:
    largest = (1 << 64) - 1
    log = told(pa.table(rows(**{EVENT_INDEX: pa.array([0, 7, 1, largest], pa.uint64())})))
    assert log[ACTIVITY] == ["w", "y", "z", "x"], "a case with an index beyond 63 bits goes by its times"


@pytest.mark.parametrize("clock", [False, True])
def test_starts_that_are_no_times_are_refused_in_words(clock: bool) -> None:
    name, other = ("date", "time") if clock else ("start", "end")
    table = pa.table({CASE: CASES, ACTIVITY: LABELS, name: [[1]] * 4, other: TIMES})
    with refused(InputError, "column-type-not-timestamps"):
        veilog.read(table, lifecycle=None if clock else "all")


def test_an_empty_category_is_no_start() -> None:
    starts, ends = (["2024-03-01T12:00:00Z", "", None, ""], ["", "2024-03-01T13:00:00Z", "2024-03-01T14:00:00Z", None])
    plain = {CASE: CASES, ACTIVITY: LABELS, "start": starts, "end": ends}
    keep: dict[str, Any] = {"missing-timestamp": "keep"}
    wanted = told(pa.table(plain), lifecycle="all", policies=keep)
    assert len(wanted[CASE]) == 4
    parted = pa.table({name: pa.array(values).dictionary_encode() for name, values in plain.items()})
    for odd in (parted, pd.DataFrame({name: pd.Categorical(values) for name, values in plain.items()})):
        assert told(odd, lifecycle="all", policies=keep) == wanted


def test_objects_of_numpy_are_told_as_their_values() -> None:
    lists = pd.Series([np.array([1, 2]), np.array([]), None, np.array([[3]])], dtype=object)
    longs = pd.Series([np.longdouble(1.5), np.longdouble("nan"), None, np.longdouble(2)], dtype=object)
    log = told(pd.DataFrame(rows(lists=lists, longs=longs)), policies={"bad-value": "keep"})
    assert log["lists"] == [None, "[1, 2]", "[[3]]", "[]"] and log["longs"] == [None, 1.5, 2.0, None]


@pytest.mark.parametrize("name", [CASE, ACTIVITY, TIMESTAMP, "note"])
def test_half_a_character_is_refused_in_words(name: str) -> None:
    half = pd.Series(["\ud800", "b", "c", "d"], dtype=object)
    with refused(InputError, "column-text-broken", name=name):
        veilog.read(pd.DataFrame(rows(**{name: half})))


@pytest.mark.parametrize("lazy", [False, True])
def test_what_polars_does_not_tell_is_refused_in_words(lazy: bool) -> None:
    for values, why in (
        (pl.Series([2**100] * 4, dtype=pl.Int128), "frame-not-readable"),
        (pl.Series([{1}] * 4), "column-python-objects"),
    ):
        frame = pl.DataFrame(rows(note=values))
        with refused(InputError, why):
            veilog.read(frame.lazy() if lazy else frame)
    with refused(InputError, "frame-not-readable"):
        veilog.read(pl.LazyFrame(rows()).select(CASE, ACTIVITY, TIMESTAMP, "nothing"))


@pytest.mark.slow
def test_types_that_duckdb_gives_back_otherwise_are_left_to_the_reader(tmp_path: Path) -> None:
    names = pa.array([uuid.UUID(int=1).bytes] * 4, pa.binary(16)).cast(pa.uuid())
    for values in (names, pa.array([[1]] * 4, pa.list_view(pa.int64()))):
        pq.write_table(pa.table(rows(note=values)), tmp_path / "one.parquet")
        assert store(tmp_path / "one.parquet", policies={"bad-value": "keep"}) is None
        pq.write_table(pa.table(rows(note=values)), tmp_path / "two.parquet")
        with refused(InputError, "column-type-read-otherwise"):
            store(tmp_path)


def test_times_of_96_bits_reach_as_far_as_others(tmp_path: Path) -> None:
    far = [datetime.datetime(year, 12, 31, 23, tzinfo=datetime.UTC) for year in (9999, 2024, 1, 1600)]
    table = pa.table(rows(**{TIMESTAMP: pa.array(far, pa.timestamp("us", "UTC"))}))
    pq.write_table(table, tmp_path / "log.parquet", use_deprecated_int96_timestamps=True)
    assert told(tmp_path / "log.parquet") == told(table)
    assert veilog.read_variants(tmp_path / "log.parquet") == veilog.read(table).variants
    kept = store(tmp_path / "log.parquet")
    assert kept is not None and kept.whole().events[TIMESTAMP].to_pylist() == told(table)[TIMESTAMP]


def test_uuids_name_cases_and_are_text(tmp_path: Path) -> None:
    """UUIDs as a database writes them to Parquet name cases as text, not as bytes."""
    names = [uuid.UUID(int=number) for number in (1, 2**127 + 3, 1, 2**127 + 3)]
    ids = pa.array([name.bytes for name in names], pa.binary(16)).cast(pa.uuid())
    wanted = told(pa.table(rows(**{CASE: list(map(str, names)), "case:who": list(map(str, names))})))
    table = pa.table(rows(**{CASE: ids, "case:who": ids}))
    pq.write_table(table, tmp_path / "log.parquet")
    assert told(table) == told(tmp_path / "log.parquet") == wanted
    assert veilog.read_variants(tmp_path / "log.parquet") == veilog.read(table).variants


@pytest.mark.slow
@pytest.mark.parametrize("infinite", ["infinity", "-infinity"])
def test_infinite_times_are_none(tmp_path: Path, infinite: str) -> None:
    """Infinite times of a table are missing; those of Parquet are out of range."""
    with duckdb.connect(tmp_path / "log.duckdb") as base:
        base.register("known", pa.table(rows()))
        base.execute(f"CREATE TABLE log AS FROM known UNION ALL SELECT 'a', 'v', TIMESTAMPTZ '{infinite}'")
        base.execute(f"COPY log TO {str(tmp_path / 'part.parquet')!r}")
    there: dict[str, Any] = {
        "engine": f"duckdb:{tmp_path / 'log.duckdb'}",
        "policies": {"missing-timestamp": "drop", "bad-timestamp": "keep"},
    }
    kept = store("log", **there)
    assert kept is not None and kept.variants == veilog.read_variants("log", **there)
    with refused(InputError, "finding-with-example", rule="missing-timestamp"):
        store("log", engine=there["engine"])
    with refused(InputError, "times-outside-years"):
        store(str(tmp_path / "*.parquet"))


def test_groups_of_numbers_and_spans_of_time_are_text_as_pandas_writes_them() -> None:
    groups = pd.Series(pd.cut([1.0, 2.0, 3.0, float("nan")], [0, 1, 3]))
    months = pd.Series(pd.period_range("2024-01", "2024-04", freq="M"))
    log = told(pd.DataFrame(rows(groups=groups, months=months)))
    assert log["groups"] == ["(1, 3]", "(0, 1]", None, "(1, 3]"]
    assert log["months"] == ["2024-03", "2024-01", "2024-04", "2024-02"]

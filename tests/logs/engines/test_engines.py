"""Variants by DuckDB equal those of the whole file, within memory, for any table."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import EngineError, InputError, ParameterError
from veilog.logs import files
from veilog.logs.engines import duckdb
from veilog.logs.engines.duckdb import DuckFiles
from veilog.logs.findings import Findings
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import DEFAULT_OPTIONS, ReadOptions, Source
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants

ROLES = Roles("case", "activity", "time")
KEEP = {"case-without-name": "keep", "missing-timestamp": "keep", "bad-timestamp": "keep"}
DROP = {"case-without-name": "drop", "missing-timestamp": "drop", "bad-timestamp": "drop"}


def variants_of(paths: list[Path], roles: Roles, options: ReadOptions = DEFAULT_OPTIONS) -> Variants:
    return DuckFiles(tuple(map(Source, paths)), options).group(roles, Findings()).variants


def parquet(path: Path, case, activity, time) -> Path:
    pq.write_table(
        pa.table({"case": case, "activity": activity, "time": time}), path, row_group_size=max(4, len(case) // 10)
    )
    return path


cells = st.tuples(
    st.sampled_from(["1", "2", "c", "NA"]),
    st.sampled_from(["a", "b", "c", "ä"]),
    st.integers(-3, 3),
)
gaps = st.tuples(
    st.sampled_from(["1", "2", "row 2", "", None]),
    st.sampled_from(["a", "b"]),
    st.one_of(st.none(), st.integers(-2, 2)),
)


@pytest.mark.nightly
@settings(max_examples=40)
@given(st.lists(cells, min_size=1, max_size=20), st.sampled_from(["s", "ms", "us", "ns"]), st.booleans())
def test_plain_parquet_gives_the_variants_of_the_log_read_whole(
    tmp_path_factory: pytest.TempPathFactory, rows, unit: str, zoned: bool
) -> None:
    case, activity, second = zip(*rows, strict=True)
    time = pa.array(second, pa.int64()).cast(pa.timestamp(unit, "UTC" if zoned else None))
    path = parquet(tmp_path_factory.mktemp("log") / "log.parquet", case, activity, time)
    assert files.read_variants(path) == files.read(path).variants


@pytest.mark.nightly
@settings(max_examples=40)
@given(st.lists(gaps, min_size=1, max_size=15), st.sampled_from([KEEP, DROP]))
def test_gaps_are_treated_alike_under_every_policy(
    tmp_path_factory: pytest.TempPathFactory, rows, policies: dict
) -> None:
    case, activity, second = zip(*rows, strict=True)
    folder = tmp_path_factory.mktemp("log")
    text = ["" if s is None else f"2024-01-{s + 5:02d}" if s else "soon" for s in second]
    lines = ["case,activity,time", *(f"{c or ''},{a},{t}" for c, a, t in zip(case, activity, text, strict=True))]
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    time = pa.array(second, pa.int64()).cast(pa.timestamp("us"))
    parquet(folder / "log.parquet", case, activity, time)
    for path in (folder / "log.csv", folder / "log.parquet"):
        try:
            whole = files.read(path, policies=policies).variants
        except InputError as error:
            with pytest.raises(InputError, match=error.problem.split(":")[0]):
                files.read_variants(path, policies=policies)
        else:
            assert files.read_variants(path, policies=policies) == whole


def test_ties_are_decided_by_the_row_not_by_the_name(tmp_path: Path) -> None:
    path = parquet(tmp_path / "log.parquet", ["1"] * 3, ["z", "a", "m"], pa.array([0, 0, 0], pa.timestamp("us")))
    assert files.read_variants(path).to_dict() == {("z", "a", "m"): 1}


def test_nanoseconds_are_cut_before_ordering(tmp_path: Path) -> None:
    time = pa.array([900, 100, -100, -900], pa.int64()).cast(pa.timestamp("ns"))
    path = parquet(tmp_path / "log.parquet", ["1"] * 4, ["a", "b", "c", "d"], time)
    assert files.read_variants(path).to_dict() == {("c", "d", "a", "b"): 1}
    assert files.read(path).variants == files.read_variants(path)


@pytest.mark.parametrize(
    "case", [[1, 2, 1], [1.0, 2.0, 1.0], [1.5, 2.0, 1.5], [True, False, True], ["1", "2", "1"]], ids=str
)
def test_cases_may_be_named_by_anything(tmp_path: Path, case: list) -> None:
    time = pa.array([0, 1, 2], pa.timestamp("ms"))
    path = parquet(tmp_path / "log.parquet", case, ["a", "b", "c"], time)
    assert files.read_variants(path) == files.read(path).variants == Variants.from_dict({("a", "c"): 1, ("b",): 1})


def test_times_beyond_the_calendar_are_treated_like_in_the_log(tmp_path: Path) -> None:
    time = pa.array([0, 2**62], pa.timestamp("us"))
    path = parquet(tmp_path / "log.parquet", ["1", "1"], ["a", "b"], time)
    for attempt in (files.read, files.read_variants):
        with refused(InputError, "finding-with-example", rule="bad-timestamp"):
            attempt(path)
    policies = {"bad-timestamp": "drop"}
    assert files.read_variants(path, policies=policies) == files.read(path, policies=policies).variants


def test_a_policy_against_remarks_holds_here_too(tmp_path: Path) -> None:
    path = parquet(tmp_path / "log.parquet", ["1"], ["a"], pa.array([0], pa.timestamp("us")))
    with refused(InputError, "finding-with-example"):
        files.read_variants(path, policies={"timestamp-without-zone": "fail"})


def test_several_parquet_files_are_one_table_whatever_their_types(tmp_path: Path) -> None:
    seconds = pa.array([1, 1], pa.timestamp("s"))
    first = parquet(tmp_path / "1.parquet", [7, 8], ["a", "a"], seconds)
    second = parquet(
        tmp_path / "2.parquet", ["7", "9"], pa.array(["b", "a"]).dictionary_encode(), seconds.cast("timestamp[ns]")
    )
    assert variants_of([first, second], ROLES).to_dict() == {("a", "b"): 1, ("a",): 2}
    assert variants_of([second, first], ROLES).to_dict() == {("b", "a"): 1, ("a",): 2}


def test_names_that_need_quoting_are_quoted(tmp_path: Path) -> None:
    name = "a\"b'c; drop"
    table = pa.table({name: ["1", "1"], "'": ['x"', "y'"], '"': pa.array([0, 1], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "it's.parquet")
    found = variants_of([tmp_path / "it's.parquet"], Roles(name, "'", '"'))
    assert found.to_dict() == {('x"', "y'"): 1}


@pytest.mark.slow
def test_columns_called_like_our_own_or_alike_but_for_case_are_not_mixed_up(tmp_path: Path) -> None:
    time = pa.array([1, 0], pa.timestamp("us"))
    for a, t, c in (("a", "t", "c"), ("t", "c", "a"), ("i", "file_row_number", "x"), ("A", "a", "T")):
        table = pa.table({a: ["1", "1"], t: ["x", "y"], c: time, c.lower() + "t": ["p", "q"], t.upper() + "N": [1, 2]})
        pq.write_table(table, tmp_path / "log.parquet")
        assert variants_of([tmp_path / "log.parquet"], Roles(a, t, c)).to_dict() == {("y", "x"): 1}


def test_cases_are_taken_in_parts_when_memory_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = hospital(500, 1)
    files.write(log, tmp_path / "log.parquet")
    original, sizes = duckdb._group_part, []

    def forgetful(connection, source, part: int, parts: int):
        sizes.append(parts)
        if parts < 8:
            raise duckdb.duckdb.OutOfMemoryException("too much")
        return original(connection, source, part, parts)

    monkeypatch.setattr(duckdb, "_group_part", forgetful)
    assert files.read_variants(tmp_path / "log.parquet") == log.variants
    assert sizes.count(8) == 8


def test_a_hopeless_memory_limit_says_so(tmp_path: Path) -> None:
    files.write(hospital(2000, 1), tmp_path / "log.parquet")
    with refused(ParameterError, "engine-memory-too-small"):
        files.read_variants(tmp_path / "log.parquet", memory_limit="1KB")


@pytest.mark.parametrize(
    "options",
    [
        *({"memory_limit": limit} for limit in ("much", "'", "-1", "0GB", "1e3MB", "none", "4Gig")),
        {"threads": 0},
        {"temp_directory": "/nonexistent/x"},
    ],
)
def test_impossible_settings_are_refused_by_name(tmp_path: Path, options: dict) -> None:
    path = parquet(tmp_path / "log.parquet", ["1"], ["a"], pa.array([0], pa.timestamp("us")))
    with pytest.raises(ParameterError) as caught:
        variants_of([path], ROLES, options=ReadOptions(**options))
    assert caught.value.parameter == next(iter(options))


def test_nothing_stays_in_the_temporary_directory(tmp_path: Path) -> None:
    (tmp_path / "spill").mkdir()
    files.write(hospital(100, 1), tmp_path / "log.csv")
    found = files.read_variants(tmp_path / "log.csv", temp_directory=tmp_path / "spill", threads=1)
    assert found == hospital(100, 1).variants
    assert list((tmp_path / "spill").iterdir()) == []


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_very_many_activities_are_no_trouble(tmp_path: Path, suffix: str) -> None:
    count = 200_000
    table = pa.table(
        {
            "case": pa.array(np.arange(count) // 2).cast(pa.string()),
            "activity": pa.array(np.arange(count)).cast(pa.string()),
            "time": pa.array(np.arange(count), pa.timestamp("us", "UTC")),
        }
    )
    log = files.read(table)
    files.write(log, tmp_path / f"log{suffix}")
    found = files.read_variants(tmp_path / f"log{suffix}")
    assert (len(found), len(found.labels)) == (count // 2, count)
    assert found == log.variants


def test_no_file_is_an_error_and_no_row_is_a_log_without_cases(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with refused(InputError, "folder-without-file"):
        files.read_variants(tmp_path / "folder")
    path = parquet(
        tmp_path / "log.parquet", pa.array([], pa.string()), pa.array([], pa.string()), pa.array([], pa.timestamp("us"))
    )
    assert files.read(path).variants == files.read_variants(path) == Variants.from_dict({})


@pytest.mark.nightly
def test_a_case_of_a_million_events_is_one_variant(tmp_path: Path) -> None:
    count = 1_000_000
    names = pa.array((np.arange(count) % 7).astype(str))
    time = pa.array(np.arange(count)[::-1], pa.timestamp("us", "UTC"))
    found = files.read_variants(parquet(tmp_path / "log.parquet", pa.repeat("1", count), names, time))
    assert (found.cases, found.events, found.sequences[0][:3]) == (1, count, ("0", "6", "5"))


def test_rows_beyond_the_memory_give_the_same_variants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = hospital(300, 1)
    for name in ("a", "b"):
        files.write(log, tmp_path / f"{name}.csv")
    found = files.read_variants(tmp_path / "a.csv")
    monkeypatch.setattr(duckdb, "_HELD", 1 << 40)
    assert files.read_variants(tmp_path / "b.csv") == found == log.variants


def test_a_disk_that_fills_up_is_told_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    files.write(hospital(4000, 1), tmp_path / "log.csv")
    monkeypatch.setattr(duckdb, "_HELD", 1 << 40)
    (tmp_path / "spill").mkdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, hard))
    try:
        with refused(EngineError, "engine-disk-full"):
            files.read_variants(tmp_path / "log.csv", temp_directory=tmp_path / "spill")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((tmp_path / "spill").iterdir()) == []

"""Tables on the way out and back, and tables in memory: a log survives both."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from table_tools import found, read, same

from veilog.errors import InputError, OutputError
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, CASE, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.synthetic.hospital import hospital

# Out and back


def _rich_log() -> EventLog:
    """Return a log with attributes of all types, gaps, and odd cases and times."""
    stamp = pa.array([3, 1, 2, 2, None], pa.int64()).cast(TIMESTAMP_TYPE)
    events = pa.table(
        {
            CASE_INDEX: pa.array([0, 0, 2, 3, 3], pa.int64()),
            EVENT_INDEX: pa.array([0, 1, 2, 3, 4], pa.int64()),
            ACTIVITY: pa.array(["b", "a", "a", "NA", "ü\n,;"]).dictionary_encode(),
            TIMESTAMP: stamp,
            "text": pa.array(["", None, "007", "1e5", ' "x" ']),
            "whole": pa.array([1, None, -5, 2**62, 0], pa.int64()),
            "float": pa.array([0.1, 1e300, None, -0.0, 5.0], pa.float64()),
            "round": pa.array([1.0, 2.0, None, 3.0, 4.0], pa.float64()),
            "truth": pa.array([True, None, False, True, True]),
            "when": pa.array([0, None, -1, 5, 10**15], pa.int64()).cast(TIMESTAMP_TYPE),
        }
    )
    field = pa.field("float", pa.float64(), metadata={"xes:type": "float"})
    events = events.set_column(events.column_names.index("float"), field, events["float"])
    cases = pa.table(
        {ACTIVITY: ["x", "nothing", "x", "y"], "age": pa.array([1, 2, 3, None]), "all": pa.array(["k"] * 4)}
    )
    metadata = Metadata(
        version="1.0",
        extensions=(("Concept", "concept", "http://example.org/concept.xesext"),),
        globals=(("event", (Attribute("concept:name", "?", "string"),)),),
        classifiers=(("Activity", "concept:name", "event"),),
        attributes=(
            Attribute("created", pd.Timestamp("2024-01-01", tz="UTC").to_pydatetime(), "date"),
            Attribute("list", None, "list", (Attribute("n", 5, "int"), Attribute("f", 0.5, "float"))),
        ),
    )
    return EventLog(events, cases, metadata)


def test_parquet_gives_back_everything(tmp_path: Path) -> None:
    log = _rich_log()
    files.write(log, tmp_path / "log.parquet")
    again = files.read(tmp_path / "log.parquet", policies={"missing-timestamp": "keep"})
    same(again, log)
    assert again.metadata == log.metadata
    assert again.events.schema.field("float").metadata == {b"xes:type": b"float"}
    assert (found(again)["empty-trace"], found(again)["duplicate-case-id"]) == (1, 1)
    variants = files.read_variants(tmp_path / "log.parquet", policies={"missing-timestamp": "keep"})
    assert variants == log.variants == again.variants


@pytest.mark.parametrize(
    ("rule", "names", "events"),
    [("empty-trace", ["x", "x", "y"], [0, 1, 2, 3, 4]), ("duplicate-case-id", ["x", "nothing", "y"], [0, 1, 3, 4])],
)
def test_policies_for_cases_hold_in_parquet(tmp_path: Path, rule: str, names: list[str], events: list[int]) -> None:
    files.write(_rich_log(), tmp_path / "log.parquet")
    policies = {"missing-timestamp": "keep", rule: "drop"}
    again = files.read(tmp_path / "log.parquet", policies=policies)
    assert again.cases[ACTIVITY].to_pylist() == names
    assert again.events[EVENT_INDEX].to_pylist() == events
    assert files.read_variants(tmp_path / "log.parquet", policies=policies) == again.variants
    for attempt in (files.read, files.read_variants):
        with pytest.raises(InputError, match=f'`policies={{"{rule}"'):
            attempt(tmp_path / "log.parquet", policies={**policies, rule: "fail"})


def test_csv_refuses_what_it_cannot_hold_unless_told_otherwise(tmp_path: Path) -> None:
    log = _rich_log()
    with refused(OutputError, "cases-without-event", empty=1):
        files.write(log, tmp_path / "log.csv")
    named = EventLog(log.events, log.cases.set_column(0, ACTIVITY, [["x", "nothing", "z", "y"]]))
    with refused(OutputError, "cases-without-event"):
        files.write(named, tmp_path / "log.csv")
    assert list(tmp_path.iterdir()) == []
    files.write(named, tmp_path / "log.csv", lossy=True)
    again = files.read(tmp_path / "log.csv", policies={"missing-timestamp": "keep"})
    assert again.variants.to_dict() == {v: n for v, n in log.variants.to_dict().items() if v}


def test_csv_gives_back_every_value_and_the_order(tmp_path: Path) -> None:
    log = _rich_log()
    keep = [0, 2, 3]
    cases = log.cases.set_column(0, ACTIVITY, [["x", "nothing", "z", "y"]]).take(keep)
    index = pa.array([keep.index(case) for case in log.events[CASE_INDEX].to_pylist()], pa.int64())
    log = EventLog(log.events.set_column(0, CASE_INDEX, index), cases)
    files.write(log, tmp_path / "log.csv")
    again = files.read(tmp_path / "log.csv", policies={"missing-timestamp": "keep"})
    same(again, log)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_a_second_round_trip_changes_nothing(tmp_path: Path, suffix: str) -> None:
    files.write(hospital(200, 7), tmp_path / f"one{suffix}")
    first = files.read(tmp_path / f"one{suffix}")
    same(first, hospital(200, 7))
    files.write(first, tmp_path / f"two{suffix}")
    same(files.read(tmp_path / f"two{suffix}"), first)
    if suffix != ".parquet":
        assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=4)
rows = st.lists(
    st.tuples(
        names, names, st.integers(0, 3), st.one_of(st.none(), names, st.just("")), st.integers(-(2**63), 2**63 - 1)
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.nightly
@settings(max_examples=40)
@given(rows)
def test_any_text_survives_csv_and_parquet(tmp_path_factory: pytest.TempPathFactory, data) -> None:
    folder = tmp_path_factory.mktemp("round", numbered=True)
    case, activity, second, note, number = zip(*data, strict=True)
    table = pa.table(
        {
            CASE: pa.array(case),
            ACTIVITY: pa.array(activity),
            TIMESTAMP: pa.array([s * 1_000_000 for s in second], pa.int64()).cast(TIMESTAMP_TYPE),
            "note": pa.array([None if n is None else f"t{n}" if n else "" for n in note], pa.string()),
            "number": pa.array(number, pa.int64()),
        }
    )
    log = files.read(table)
    for suffix in (".csv", ".parquet"):
        files.write(log, folder / f"log{suffix}", overwrite=True)
        same(files.read(folder / f"log{suffix}"), log)
        assert files.read_variants(folder / f"log{suffix}") == log.variants


# Tables in memory


def test_frames_with_pm4py_columns_are_taken_as_they_are() -> None:
    log = hospital(100, 2)
    frame = log.to_pandas()
    same(files.read(frame), files.read(log.to_arrow()))
    assert files.read(frame).variants == log.variants
    assert files.read_variants(frame) == log.variants


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_frames_may_be_naive_categorical_or_odd(unit: str) -> None:
    frame = pd.DataFrame(
        {
            "case": pd.Categorical(["x", "x", "y"]),
            "activity": pd.Series(["b", "a", "a"], dtype="string"),
            "time": pd.to_datetime(["2024-01-02", "2024-01-01", "2024-01-01"]).astype(f"datetime64[{unit}]"),
            "all missing": [None, None, None],
            5: [1, 2, 3],
        }
    ).set_index(pd.Index([7, 7, 9]))
    log = files.read(frame)
    assert log.variants.to_dict() == {("a", "b"): 1, ("a",): 1}
    assert found(log) == {"timestamp-without-zone": 3}
    assert log.events["5"].to_pylist() == [2, 1, 3]


def test_nan_and_none_are_missing_names_not_names() -> None:
    frame = pd.DataFrame(
        {"case": [1.0, 2.0, np.nan], "activity": ["a", None, "c"], "time": [pd.Timestamp("2024-01-01")] * 3}
    )
    log = files.read(frame)
    assert log.cases[ACTIVITY].to_pylist() == ["1", None]
    assert found(log) == {"case-without-name": 1, "event-without-activity": 1, "timestamp-without-zone": 3}
    with refused(InputError, "finding-with-example", rule="case-without-name"):
        files.read(frame, policies={"case-without-name": "fail"})


def test_huge_integers_and_mixed_objects_become_text_with_a_finding() -> None:
    frame = pd.DataFrame(
        {
            "case": [10**30, 10**30],
            "activity": ["a", "b"],
            "time": pd.to_datetime(["2024-01-01", "2024-01-02"], utc=True),
            "mixed": [1, "x"],
            "unsigned": np.array([2**64 - 1, 1], dtype=np.uint64),
        }
    )
    log = files.read(frame)
    assert log.cases[ACTIVITY].to_pylist() == [str(10**30)]
    assert log.events["mixed"].to_pylist() == ["1", "x"]
    assert log.events["unsigned"].to_pylist() == [str(2**64 - 1), "1"]
    assert found(log)["bad-value"] == 6
    dropped = files.read(frame, policies={"bad-value": "drop"})
    assert not {"mixed", "unsigned"} & set(dropped.events.column_names)
    assert dropped.variants == log.variants


def test_foreign_types_become_the_types_of_a_log(tmp_path: Path) -> None:
    table = pa.table(
        {
            "case": pa.array([1, 1], pa.int32()),
            "activity": pa.array(["a", "b"], pa.large_string()),
            "time": pa.array([19723, 19724], pa.date32()),
            "small": pa.array([1, 2], pa.int8()),
            "list": pa.array([[1], []]),
            "amount": pa.array([1, 2], pa.decimal128(5, 2)),
            "whole": pa.array([3, None], pa.decimal128(18, 0)),
            "id": pa.array([4, None], pa.decimal128(38, 0)),
            "took": pa.array([5_400_000, None], pa.duration("ms")),
            "kind": pa.array(["p", "q"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "log.parquet")
    log = files.read(tmp_path / "log.parquet")
    assert log.variants.to_dict() == files.read_variants(tmp_path / "log.parquet").to_dict() == {("a", "b"): 1}
    assert log.events["small"].type == pa.int64()
    assert log.events["list"].to_pylist() == ["[1]", "[]"]
    assert log.events["amount"].to_pylist() == [1.0, 2.0]
    assert log.events["whole"].to_pylist() == [3, None]
    assert log.events["id"].to_pylist() == ["4", None]
    assert log.events["took"].to_pylist() == [5400.0, None]
    assert log.events["kind"].to_pylist() == ["p", "q"]
    assert found(log)["bad-value"] == 4


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.bool_()])
def test_numbers_are_no_timestamps(kind: pa.DataType) -> None:
    table = pa.table({"case": ["1"], "activity": ["a"], "time": pa.array([1]).cast(kind)})
    with refused(InputError, "column-not-timestamps"):
        files.read(table)


def test_an_empty_frame_is_a_log_without_cases() -> None:
    log = files.read(pd.DataFrame({"case": [], "activity": [], "time": [], "case:age": []}))
    assert (log.cases.num_rows, len(log), len(log.variants)) == (0, 0, 0)


def test_case_attributes_are_those_called_so_and_unknown_where_rows_differ(tmp_path: Path) -> None:
    """A case attribute is unknown where rows differ, or the first by row, not by time."""
    text = "case,activity,time,case:age,case:ward\n1,b,2024-01-02,5,x\n1,a,2024-01-01,5,y\n2,a,2024-01-01,6,\n"
    text += "2,a,2024-01-02,6,z\n"
    log = read(tmp_path, text)
    assert log.cases.to_pydict() == {ACTIVITY: ["1", "2"], "age": [5, 6], "ward": [None, "z"]}
    first = read(tmp_path, text, policies={"case-attribute-differs": "keep"})
    assert first.cases.to_pydict() == {ACTIVITY: ["1", "2"], "age": [5, 6], "ward": ["x", "z"]}
    (finding,) = (f for f in log.findings if f.rule == "case-attribute-differs")
    assert (finding.count, str(finding.example)) == (1, "column 'case:ward' in 1 cases")


def test_columns_called_like_canonical_ones_are_kept_beside_them(tmp_path: Path) -> None:
    header = f"{CASE},{ACTIVITY},{TIMESTAMP},role,case:index,event:index\n"
    text = header + "1,a,2024-01-01,nurse,p,q\n1,b,2024-01-02,doctor,r,s\n"
    log = read(tmp_path, text, activity="role")
    assert log.variants.to_dict() == {("nurse", "doctor"): 1}
    assert log.events[f"{ACTIVITY} (column)"].to_pylist() == ["a", "b"]
    assert log.events["case:index (column)"].to_pylist() == ["p", "r"]
    assert found(log)["event-index-missing"] == 1


def test_damaged_notes_of_ours_in_parquet_are_refused(tmp_path: Path) -> None:
    table = pa.table({"case": ["1"], "activity": ["a"], "time": pa.array([0], pa.timestamp("us"))})
    for notes in (b"{", b"[]", b'{"metadata": 5}', b'{"metadata": {}, "empty_cases": "!"}', b"\xff"):
        pq.write_table(table.replace_schema_metadata({b"veilog": notes}), tmp_path / "log.parquet")
        with refused(InputError, "parquet-metadata-damaged"):
            files.read(tmp_path / "log.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sepsis", "receipt", "ccc19", "unrineweginfectie"])
def test_real_logs_survive_parquet(tmp_path: Path, logs: Path, name: str) -> None:
    log = files.read(logs / f"{name}.xes.gz")
    files.write(log, tmp_path / "log.parquet")
    again = files.read(tmp_path / "log.parquet")
    same(again, log)
    assert again.metadata == log.metadata
    assert files.read_variants(tmp_path / "log.parquet") == log.variants


@pytest.mark.nightly
def test_sepsis_survives_csv_with_its_case_called_na(tmp_path: Path, logs: Path) -> None:
    log = files.read(logs / "sepsis.xes.gz")
    files.write(log, tmp_path / "log.csv")
    again = files.read(tmp_path / "log.csv")
    assert again.variants == log.variants
    assert "NA" in again.cases[ACTIVITY].to_pylist()
    assert again.to_arrow().num_columns == log.to_arrow().num_columns

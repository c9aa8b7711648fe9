"""Titles, times in two columns or as numbers, and two events a row are reported."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from io import StringIO
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from table_tools import found, read, times

import veilog
from veilog.errors import InputError, ParameterError
from veilog.logs.tables.cells import convert_times, parse_times
from veilog.logs.tables.table_reader import header_among

AT = datetime(2024, 3, 13, 8, 15, 30, 123456, tzinfo=UTC)
MICROS = int(AT.timestamp()) * 1_000_000 + 123456


# ---- where the header is


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([["case", "activity", "time"], ["1", "a", "2024-01-01"]], 0),
        ([["Export"], ["case", "activity", "time"], ["1", "a", "2024-01-01"]], 1),
        ([["Export", "", ""], ["", "", ""], ["x", "y", "z"], ["1", "a", "b"]], 2),
        ([["a", "b", "c"], ["case", "activity", "time", "cost"]], 0),  # what one case holds is no header
        ([["Export"], ["a", "column 2", "column 1"]], 0),
        ([["a", "b", "c"], ["case", "activity", "time"]], 0),  # as many columns: a row of data, for all we know
        ([["Export"], ["1", "a", "2024-01-01"]], 0),  # a title and no header
        ([["a", "b"], ["c", "d"]], 0),
        ([], 0),
    ],
)
def test_lines_of_a_title_stand_before_the_header(rows: list[list[str]], place: int) -> None:
    assert header_among(rows) == place


WORD = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)
USUAL = st.sampled_from(["case", "activity", "time", "Fall", "Datum", "event"])


@pytest.mark.slow
@settings(max_examples=30)
@given(names=st.lists(WORD, min_size=3, max_size=6), data=st.data())
def test_no_row_of_data_is_taken_for_the_header(names: list[str], data: st.DataObject) -> None:
    """Whatever the values are: rows of data have no more fields than the header."""
    row = st.lists(WORD | USUAL | st.just(""), min_size=1, max_size=len(names))
    rows = data.draw(st.lists(row, max_size=6))
    assert header_among([names, *rows]) == 0


def test_lines_are_counted_from_the_start_of_the_file(tmp_path: Path) -> None:
    text = "Export\n\nward 3\ncase,activity,time\n1,a,2024-01-01\n1,b,soon\n"
    with refused(InputError, "finding-with-example", rule="bad-timestamp", example="'soon'") as caught:
        read(tmp_path, text)
    assert str(caught.value.path).endswith("log.csv")
    assert caught.value.line == 6
    with refused(InputError, "row-fields-differ", number=4, number_2=3) as caught:
        read(tmp_path, text.replace("1,b,soon", "1,b,2024-01-02,x"))
    assert str(caught.value.path).endswith("log.csv")
    assert caught.value.line == 6
    log = read(tmp_path, text, policies={"bad-timestamp": "drop"})
    assert found(log)["title-lines"] == 2
    assert found(read(tmp_path, "\n\ncase,activity,time\n1,a,2024-01-01\n")) == {"timestamp-without-zone": 1}


def test_without_a_header_the_first_line_is_a_row(tmp_path: Path) -> None:
    names = {"case": "column 1", "activity": "column 2", "timestamp": "column 3"}
    log = read(tmp_path, "1,a,2024-01-01,x\n1,b,2024-01-02,y\n", header=0, **names)
    assert log.events["column 4"].to_pylist() == ["x", "y"]
    with refused(InputError, "finding-with-example", rule="bad-timestamp") as caught:
        read(tmp_path, "1,a,2024-01-01\n1,b,soon\n", header=0, **names)
    assert str(caught.value.path).endswith("log.csv")
    assert caught.value.line == 2
    with refused(InputError, "row-fields-unlike-first") as caught:
        read(tmp_path, "1,a,2024-01-01\n1,b\n", header=0, **names)
    assert caught.value.line == 2
    with refused(InputError, "column-role-not-found", role="case"):
        read(tmp_path, "1,a,2024-01-01\n1,b,2024-01-02\n")
    with refused(InputError, "header-row-missing", wanted=9):
        read(tmp_path, "case,activity,time\n", header=9)


def test_what_a_format_does_not_have_cannot_be_told(tmp_path: Path) -> None:
    table = pa.table({"case": ["1"], "activity": ["a"], "time": ["2024-01-01"]})
    for options in ({"header": 1}, {"sheet": "a"}, {"object_type": "a"}):
        (name,) = options
        with refused(ParameterError, "log-option-without-meaning", name=name.replace("_", "-")):
            veilog.read(table, **options)
    with refused(ParameterError, "header-line-missing", header=-1):
        veilog.read(table, header=-1)


# ---- numbers that are times


@pytest.mark.parametrize(
    ("text", "micros", "unit", "cut"),
    [
        (f"{MICROS // 1_000_000}", MICROS - 123456, "seconds", 0),
        (f"{MICROS // 1_000_000}.123456", MICROS, "seconds", 0),
        (f"{MICROS // 1000}", MICROS - 456, "milliseconds", 0),
        (f"{MICROS // 1000}.4567", MICROS, "milliseconds", 1),
        (f"{MICROS}", MICROS, "microseconds", 0),
        (f"{MICROS}789", MICROS, "nanoseconds", 1),
        ("100000000", 10**14, "seconds", 0),
        ("9999999999", 9_999_999_999 * 10**6, "seconds", 0),
    ],
)
def test_a_number_says_by_its_size_what_it_counts(text: str, micros: int, unit: str, cut: int) -> None:
    found_ = parse_times(pa.array([text, "2024-01-01", None, ""]))
    assert found_.micros[0] == micros
    assert found_.known.tolist() == [True, True, False, False]
    assert (found_.epochs, found_.cut, found_.naive) == ({unit: 1}, cut, 1)
    number = float(text) if "." in text else int(text)
    typed = convert_times(pa.array([number, None]), "t", None)
    assert typed.known.tolist() == [True, False]
    assert abs(int(typed.micros[0]) - micros) <= 1
    assert typed.epochs == {unit: 1}


@pytest.mark.parametrize(
    "text", ["0", "4711", "99999999", "20240313", "10000000000", "99999999999999999999", "-1710317730"]
)
def test_other_numbers_are_no_times(text: str) -> None:
    assert parse_times(pa.array([text])).bad.tolist() == [True]
    if -(2**63) <= int(text) < 2**63:
        with refused(InputError, "column-not-timestamps", kind="int64"):
            convert_times(pa.array([int(text)]), "t", None)


def test_units_may_be_mixed_and_are_said(tmp_path: Path) -> None:
    """Each value by itself: no case decides about another one."""
    log = read(tmp_path, "case,activity,time\n1,a,1710317730\n1,b,1710317731000\n1,c,2024-03-14\n")
    assert times(log) == ["2024-03-13T08:15:30+00:00", "2024-03-13T08:15:31+00:00", "2024-03-14T00:00:00+00:00"]
    finding = next(finding for finding in log.findings if finding.rule == "epoch-numbers")
    assert finding.count == 2 and {"seconds", "milliseconds"} <= set(str(finding.example).split())


def test_numbers_of_tables_with_types_are_times_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"case": ["1", "1"], "activity": ["a", "b"], "time": [1710317730.5, 1710317731.25]})
    assert times(veilog.read(frame)) == ["2024-03-13T08:15:30.500000+00:00", "2024-03-13T08:15:31.250000+00:00"]
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"case": ["1", "1"], "activity": ["b", "a"], "time": [1710317731000, 1710317730000]}), path)
    assert veilog.read_variants(path).to_dict() == {("a", "b"): 1}
    assert veilog.read(path).variants == veilog.read_variants(path)


# ---- times in two columns


def test_two_whole_times_are_no_date_and_time_of_day(tmp_path: Path) -> None:
    rows = "1,a,2024-01-01 08:00,2024-01-01 09:30\n"
    path = tmp_path / "a.csv"
    path.write_text(f"case,activity,begun,over\n{rows}")
    for reading in (veilog.read, veilog.read_variants):
        with refused(InputError, "column-times-not-date-clock"):
            reading(path, timestamp="begun+over")
    # A date without a time of day has nothing to lose.
    path.write_text("case,activity,begun,over\n1,a,2024-01-01 00:00,2024-01-01 09:30\n")
    assert veilog.read(path, timestamp="begun+over").statistics.end == "2024-01-01T09:30:00+00:00"


def test_dates_and_times_of_tables_with_types_are_put_together() -> None:
    rows = {
        "case": ["1"] * 4,
        "activity": list("abcd"),
        "date": [date(2024, 3, 13 + place) for place in range(4)],
        "time": [time(8, 15), time(8, 15, 30, 5), None, time(0)],
    }
    expected = ["2024-03-13T08:15:00+00:00", "2024-03-14T08:15:30.000005+00:00"]
    expected += ["2024-03-15T00:00:00+00:00", "2024-03-16T00:00:00+00:00"]
    assert times(veilog.read(pa.table(rows))) == expected
    stamps = {**rows, "date": [datetime(2024, 3, 13 + place) for place in range(4)]}  # as pandas keeps days
    assert times(veilog.read(pa.table(stamps))) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("day", "clock", "time_"),
    [
        ("13.03.2024", "8:15", "2024-03-13T08:15:00+00:00"),
        ("13.03.2024", "08:15 Uhr", "2024-03-13T08:15:00+00:00"),
        ("2024-03-13", "08:15:30.5", "2024-03-13T08:15:30.500000+00:00"),
        ("2024-03-13", "08:15 PM", "2024-03-13T20:15:00+00:00"),
        ("2024-03-13T00:00:00", "08:15+01:00", "2024-03-13T07:15:00+00:00"),
        ("13.03.2024 00:00", "30.12.1899 08:15", "2024-03-13T08:15:00+00:00"),
        ("2024-03-13", "2024-03-14 08:15", "2024-03-14T08:15:00+00:00"),  # a whole time in the second column
        ("2024-03-13", "", "2024-03-13T00:00:00+00:00"),
    ],
)
def test_a_date_and_a_time_of_day_are_one_time(tmp_path: Path, day: str, clock: str, time_: str) -> None:
    text = f"Fall,Tätigkeit,Datum,Uhrzeit\n1,a,{day},{clock}\n"
    log = read(tmp_path, text)
    assert times(log) == [time_]
    assert found(log)["date-and-time"] == 1
    assert not {"Datum", "Uhrzeit"} & set(log.events.column_names)
    assert veilog.read_variants(tmp_path / "log.csv") == log.variants


def test_a_time_of_day_that_cannot_be_read_is_a_finding_with_its_line(tmp_path: Path) -> None:
    text = "case,activity,date,time\n1,a,2024-03-13,08:15\n1,b,2024-03-13,morning\n"
    for attempt in (veilog.read, veilog.read_variants):
        with refused(
            InputError, "finding-with-example", rule="bad-timestamp", example="'2024-03-13 morning'"
        ) as caught:
            read(tmp_path, text) if attempt is veilog.read else attempt(tmp_path / "log.csv")
        assert str(caught.value.path).endswith("log.csv")
        assert caught.value.line == 3


def test_one_column_of_times_is_enough_where_it_is_named_or_has_a_better_name(tmp_path: Path) -> None:
    text = "case,activity,date,time\n1,a,2024-03-13,08:15\n"
    assert times(read(tmp_path, text, timestamp="date")) == ["2024-03-13T00:00:00+00:00"]
    better = "case,activity,date,time,timestamp\n1,a,2024-03-13,08:15,2024-01-01\n"
    assert times(read(tmp_path, better)) == ["2024-01-01T00:00:00+00:00"]


@pytest.mark.slow
def test_which_number_is_the_day_is_asked_for_in_two_columns_too(tmp_path: Path) -> None:
    text = "case,activity,date,time\n1,a,3/4/2024,08:15\n"
    for attempt in (lambda **o: read(tmp_path, text, **o), lambda **o: veilog.read_variants(tmp_path / "log.csv", **o)):
        with refused(InputError, "date-order-unclear", doubtful="3/4/2024 08:15"):
            attempt()
        attempt(time_format="dd/mm/yyyy")


@pytest.mark.slow
def test_an_engine_elsewhere_takes_one_column_of_times(tmp_path: Path) -> None:
    ibis = pytest.importorskip("ibis")
    rows = {"case": ["1"], "activity": ["a"], "date": ["2024-03-13"], "time": ["08:15"]}
    table = ibis.memtable(pa.table(rows))
    with pytest.raises(ParameterError, match="are two columns"):
        veilog.read_variants(table)


# ---- rows that are two events

SPANS = (
    "case,activity,start_time,end_time\n1,a,2024-03-13 08:00,2024-03-13 10:00\n1,b,2024-03-13 09:00,2024-03-13 11:00\n"
)


def test_both_times_of_a_row_are_kept(tmp_path: Path) -> None:
    log = read(tmp_path, SPANS)
    assert found(log)["start-and-end"] == 1
    assert log.events["start_time"].to_pylist() == ["2024-03-13 08:00", "2024-03-13 09:00"]
    both = read(tmp_path, SPANS, lifecycle="all")
    assert both.variants.to_dict() == {("a", "b", "a", "b"): 1}
    assert both.events["lifecycle:transition"].to_pylist() == ["start", "start", "complete", "complete"]
    assert veilog.read_variants(tmp_path / "log.csv", lifecycle="all") == both.variants
    assert "start-and-end" not in found(both) | found(read(tmp_path, SPANS, lifecycle="complete"))
    with refused(ParameterError, "lifecycle-column-missing", wanted="schedule"):
        read(tmp_path, SPANS, lifecycle="schedule")


def test_another_column_of_starts_is_another_way_of_reading(tmp_path: Path) -> None:
    """Another start may put a case into another month, so the way of reading differs."""
    ways = {
        read(tmp_path, SPANS.replace("start_time", start), lifecycle=how).read_as
        for start in ("start_time", "start")
        for how in ("all", "complete")
    }
    assert len(ways) == 3, "the ends are the same"


def test_a_row_without_an_end_or_a_start_is_one_event(tmp_path: Path) -> None:
    text = SPANS.replace("2024-03-13 11:00", "").replace("2024-03-13 08:00", "")
    log = read(tmp_path, text, lifecycle="all")
    assert log.variants.to_dict() == {("b", "a"): 1}
    assert veilog.read_variants(tmp_path / "log.csv", lifecycle="all") == log.variants
    neither = text.replace("2024-03-13 09:00", "").replace("2024-03-13 10:00", "")
    kept = read(tmp_path, neither, lifecycle="all")
    assert (len(kept), found(kept)["no-timestamps"]) == (2, 2)


def test_the_line_of_an_event_is_that_of_its_row(tmp_path: Path) -> None:
    text = SPANS.replace("2024-03-13 11:00", "soon")
    for attempt in (
        lambda: read(tmp_path, text, lifecycle="all"),
        lambda: veilog.read_variants(tmp_path / "log.csv", lifecycle="all"),
    ):
        with refused(InputError, "finding-with-example", rule="bad-timestamp", example="'soon'") as caught:
            attempt()
        assert str(caught.value.path).endswith("log.csv")
        assert caught.value.line == 3


def test_starts_and_ends_of_other_types_are_two_events_too(tmp_path: Path) -> None:
    at = datetime(2024, 3, 13)
    rows = {"case": ["1"], "activity": ["a"], "start_time": [at], "end_time": ["2024-03-13 10:00"]}
    assert times(veilog.read(pa.table(rows), lifecycle="all"))[1] == "2024-03-13T10:00:00+00:00"
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(rows | {"end_time": [at + timedelta(hours=1)]}), path)
    assert veilog.read_variants(path, lifecycle="all").to_dict() == {("a", "a"): 1}
    assert veilog.read_variants(path).to_dict() == {("a",): 1}


def test_every_transition_may_be_asked_for(tmp_path: Path) -> None:
    text = "case,activity,time,transition\n1,a,2024-01-01,start\n1,a,2024-01-02,complete\n"
    assert "lifecycle-transitions" in found(read(tmp_path, text))
    assert "lifecycle-transitions" not in found(read(tmp_path, text, lifecycle="all"))
    assert veilog.read_variants(tmp_path / "log.csv", lifecycle="all").to_dict() == {("a", "a"): 1}


HALVES = (
    "case,activity,begun,done\n1,a,2024-03-13 08:00,2024-03-13 10:00\n1,b,2024-03-13 09:00,\n1,c,,2024-03-13 11:00\n"
)
"""Rows without an end and without a start, under names that reveal neither."""
NAMED = {"timestamp": "done", "start": "begun"}


@pytest.mark.parametrize(
    ("how", "kept", "dropped"),
    [
        (None, [("b", "09:00"), ("a", "10:00"), ("c", "11:00")], ["a", "c"]),
        ("complete", [("b", "09:00"), ("a", "10:00"), ("c", "11:00")], ["a", "c"]),
        ("start", [("a", "08:00"), ("b", "09:00"), ("c", "11:00")], ["a", "b"]),
        ("intervals", [("b", "09:00"), ("a", "10:00"), ("c", "11:00")], ["a", "c"]),
    ],
)
def test_a_time_that_is_missing_is_taken_from_the_other_column_where_that_is_asked_for(
    tmp_path: Path, how: str | None, kept: list[tuple[str, str]], dropped: list[str]
) -> None:
    asked = {**NAMED, "lifecycle": how}
    with refused(InputError, "finding-with-example", rule="one-time-missing") as caught:
        read(tmp_path, HALVES, **asked)
    assert caught.value.line == (4 if how == "start" else 3)
    path = tmp_path / "log.csv"
    for policy, wanted in (("keep", [label for label, _ in kept]), ("drop", dropped)):
        log = veilog.read(path, policies={"one-time-missing": policy}, **asked)
        assert log.variants.to_dict() == {tuple(wanted): 1}
        assert found(log)["one-time-missing"] == 1
        assert veilog.read_variants(path, policies={"one-time-missing": policy}, **asked) == log.variants
    log = veilog.read(path, policies={"one-time-missing": "keep"}, **asked)
    assert [time[11:16] for time in times(log)] == [time for _, time in kept]


def test_a_row_without_both_times_has_none_to_take(tmp_path: Path) -> None:
    text = HALVES + "2,a,2024-03-13 08:00,2024-03-13 10:00\n2,d,,\n"
    with refused(InputError, "finding-with-example", rule="missing-timestamp") as caught:
        read(tmp_path, text, policies={"one-time-missing": "keep"}, **NAMED)
    assert caught.value.line == 6


def test_frames_workbooks_and_parquet_take_the_other_time_too(tmp_path: Path) -> None:
    rows = pd.read_csv(StringIO(HALVES))
    typed = rows.assign(begun=pd.to_datetime(rows["begun"]), done=pd.to_datetime(rows["done"]))
    typed.to_parquet(tmp_path / "log.parquet")
    typed.to_excel(tmp_path / "log.xlsx", index=False)
    for log_of in (rows, typed, typed.assign(begun=rows["begun"]), tmp_path / "log.parquet", tmp_path / "log.xlsx"):
        log = veilog.read(log_of, policies={"one-time-missing": "keep"}, **NAMED)
        assert log.variants.to_dict() == {("b", "a", "c"): 1}
        assert found(log)["one-time-missing"] == 1
        assert veilog.read_variants(log_of, policies={"one-time-missing": "keep"}, **NAMED) == log.variants


def test_a_time_of_another_zone_counts_as_one(tmp_path: Path) -> None:
    text = HALVES.replace("2024-03-13 09:00", "2024-03-13T09:00+01:00")
    kept = {"policies": {"one-time-missing": "keep"}}
    log = read(tmp_path, text, **kept, **NAMED)
    assert times(log)[0] == "2024-03-13T08:00:00+00:00"
    assert found(log)["timestamp-without-zone"] == 2
    assert log.read_as != read(tmp_path, HALVES, **kept, **NAMED).read_as


def test_taking_the_other_time_is_another_way_of_reading(tmp_path: Path) -> None:
    ways = {read(tmp_path, SPANS, policies={"one-time-missing": policy}).read_as for policy in ("keep", "drop", "fail")}
    assert len(ways) == 3


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_a_row_that_lacks_a_time_changes_no_other(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    moment = st.sampled_from(["", "2024-03-13 08:00", "2024-03-14T08:00Z", "3/25/2024 7:00", "1710316800"])
    base = [f"1,a,{a},{b}" for a, b in data.draw(st.lists(st.tuples(moment, moment), min_size=1, max_size=4))]
    other = [f"2,a,{a},{b}" for a, b in data.draw(st.lists(st.tuples(moment, moment), min_size=1, max_size=2))]
    policies = {"one-time-missing": data.draw(st.sampled_from(["keep", "drop"])), "missing-timestamp": "keep"}
    how = data.draw(st.sampled_from([None, "start", "intervals"]))

    def of_first(rows: list[str]) -> object:
        text = "\n".join(["case,activity,begun,done", *rows]) + "\n"
        try:
            log = read(folder, text, policies=policies, lifecycle=how, **NAMED)
        except InputError as error:
            return error.code
        return [row for row in log.to_arrow().select([0, 1, 2]).to_pylist() if row["case:concept:name"] == "1"]

    alone = of_first(base)
    assert alone == "table-without-events-left" or of_first([*other, *base]) == alone


def test_a_start_is_a_column_of_a_table(tmp_path: Path) -> None:
    with refused(InputError, "column-for-role-missing", given="x", role="start"):
        read(tmp_path, HALVES, start="x", timestamp="done")
    with refused(InputError, "column-roles-not-distinct"):
        read(tmp_path, HALVES, start="done", timestamp="done")
    with refused(ParameterError, "column-name-not-text"):
        read(tmp_path, HALVES, start=3)
    (tmp_path / "log.xes").write_text("<log/>")
    with refused(ParameterError, "log-option-without-meaning", name="start"):
        veilog.read(tmp_path / "log.xes", start="begun")
    assert read(tmp_path, HALVES.replace("done", "ts"), start="begun", lifecycle="all").variants.to_dict() == {
        ("a", "b", "a", "c"): 1
    }


def test_an_engine_elsewhere_takes_no_time_from_another_column() -> None:
    ibis = pytest.importorskip("ibis")
    table = ibis.memtable(pa.table({"case": ["1"], "activity": ["a"], "start": [AT], "end": [AT]}))
    with refused(ParameterError, "engine-option-not-possible", name="on"):
        veilog.read_variants(table, policies={"one-time-missing": "keep"})


def test_several_files_on_disk_take_no_time_from_another_column(tmp_path: Path) -> None:
    rows = {"case": ["1"], "activity": ["a"], "begun": [AT], "done": pa.array([None], pa.timestamp("us", "UTC"))}
    for place in (1, 2):
        pq.write_table(pa.table(rows), tmp_path / f"{place}.parquet")
    asked = {"timestamp": "done", "policies": {"one-time-missing": "keep", "missing-timestamp": "drop"}}
    assert veilog.read_variants(tmp_path, start="begun", **asked).to_dict() == {("a", "a"): 1}

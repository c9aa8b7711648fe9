"""Tables are read with the right columns and exact text, and nothing vanishes."""

import csv
import io
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from surfaces import in_command
from table_tools import found, read, times

from veilog.errors import InputError, ParameterError
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, CASE, EVENT_INDEX, TIMESTAMP
from veilog.logs.findings import Findings, Policy
from veilog.logs.input.roles import guess_roles
from veilog.logs.input.source import Source
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables import csv as dialects
from veilog.logs.tables.events import _case_values, _encode_by_appearance

HEADER = "case,activity,time\n"


# Roles of columns


@pytest.mark.parametrize(
    ("columns", "roles"),
    [
        ([CASE, ACTIVITY, TIMESTAMP, "case", "activity"], (CASE, ACTIVITY, TIMESTAMP)),
        (["Case ID", "Activity", "Complete Timestamp"], ("Case ID", "Activity", "Complete Timestamp")),
        (["CaseID", "Start Timestamp", "Complete Timestamp", "Task"], ("CaseID", "Task", "Complete Timestamp")),
        (["patient", "event", "time"], ("patient", "event", "time")),
        (["case", "patient_id", "ACTIVITY", "date"], ("case", "ACTIVITY", "date")),
        (["Fall-ID", "Tätigkeit", "Zeitstempel"], ("Fall-ID", "Tätigkeit", "Zeitstempel")),
        (["zaaknummer", "activiteit", "tijdstip"], ("zaaknummer", "activiteit", "tijdstip")),
        (["case_id", "event", "activity", "timestamp", "time"], ("case_id", "activity", "timestamp")),
        (["case_id", "event", "ts", "start_ts", "date"], ("case_id", "event", "ts")),
        (["case_id", "event", "ts", "timestamp"], ("case_id", "event", "timestamp")),
        (["case_id", "event", "start_ts", "end_ts", "ts"], ("case_id", "event", "end_ts")),
        (["case_id", "event", "start_ts"], ("case_id", "event", "start_ts")),
    ],
)
def test_common_names_are_recognised(columns: list[str], roles: tuple[str, str, str]) -> None:
    guess = guess_roles(columns)
    assert (guess.case, guess.activity, guess.timestamp) == roles


def test_the_start_of_a_row_is_recognised() -> None:
    assert guess_roles(["case_id", "event", "start_ts", "end_ts"]).start == "start_ts"


def test_given_columns_win_and_how_each_was_found_is_said() -> None:
    roles = guess_roles([CASE, ACTIVITY, TIMESTAMP, "org:resource", "date"], activity="org:resource")
    assert (roles.case_found, roles.activity_found, roles.timestamp_found) == ("pm4py", "given", "pm4py")
    assert roles.activity == "org:resource"
    assert not roles.guessed


@pytest.mark.parametrize(
    ("columns", "given_", "code", "values"),
    [
        (["a", "b"], {}, "column-role-not-found", {"role": "case"}),
        (["case", "activity"], {}, "column-role-not-found", {"role": "timestamp"}),
        (["case id", "case number", "activity", "time"], {}, "column-role-ambiguous", {"role": "case"}),
        (["case", "activity", "time", "zeitpunkt"], {}, "column-role-ambiguous", {"role": "timestamp"}),
        (
            ["case", "activity", "time"],
            {"activity": "Activity"},
            "column-for-role-missing",
            {"given": "Activity"},
        ),
        (["case", "activity", "time"], {"activity": "case"}, "column-roles-not-distinct", {}),
        (["case", "case", "activity", "time"], {}, "column-name-twice", {"repeated": "case"}),
    ],
)
def test_missing_or_ambiguous_roles_are_refused_with_the_way_out(
    columns, given_, code: str, values: dict[str, str]
) -> None:
    with refused(InputError, code, **values) as caught:
        guess_roles(columns, **given_)
    if code != "column-name-twice":
        assert "--case NAME --activity NAME --timestamp NAME" in in_command(caught.value)
        assert "`case='NAME'` `activity='NAME'`" in str(caught.value)
        assert all(repr(name) in str(caught.value) for name in columns)


# What text means


def test_names_that_look_like_nothing_are_data(tmp_path: Path) -> None:
    names = ["NA", "null", "NaN", "None", "nan", "-", "#N/A", "007", "1e5", "1.0", "TRUE", " x "]
    log = read(tmp_path, HEADER + "".join(f"{name},{name},2024-01-01\n" for name in names))
    assert log.cases[ACTIVITY].to_pylist() == names
    assert set(log.variants.labels) == set(names)


def test_values_become_typed_only_where_nothing_of_the_text_is_lost(tmp_path: Path) -> None:
    columns = {
        "whole": (["1", "-20", ""], [1, -20, None], pa.int64()),
        "decimal": (["1.50", "2", "-0.25e-3"], [1.5, 2.0, -0.00025], pa.float64()),
        "truth": (["true", "false", ""], [True, False, None], pa.bool_()),
        "zeros": (["007", "8", "9"], ["007", "8", "9"], pa.string()),
        "code": (["1e5", "2e7", "3"], ["1e5", "2e7", "3"], pa.string()),
        "huge": (["99999999999999999999", "1", "2"], ["99999999999999999999", "1", "2"], pa.string()),
        "fine": (["0.12345678901234567890", "1", "2"], ["0.12345678901234567890", "1", "2"], pa.string()),
        "comma": (["1,5", "2,5", "3"], ["1,5", "2,5", "3"], pa.string()),
        "missing": (["NA", "1", "2"], ["NA", "1", "2"], pa.string()),
        "empty": (["", "", ""], [None, None, None], pa.string()),
    }
    rows = zip(*(values for values, _, _ in columns.values()), strict=True)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["case", "activity", "time", *columns])
    writer.writerows([["1", "a", "2024-01-01", *row] for row in rows])
    log = read(tmp_path, text.getvalue())
    for name, (_, values, kind) in columns.items():
        assert log.events[name].to_pylist() == values, name
        assert log.events.schema.field(name).type == kind, name


def test_text_between_quotes_is_empty_and_nothing_is_missing(tmp_path: Path) -> None:
    log = read(tmp_path, 'case,activity,time,note\n1,a,2024-01-01,""\n1,b,2024-01-02,\n1,c,2024-01-03,x\n')
    assert log.events["note"].to_pylist() == ["", None, "x"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_out(tmp_path: Path, delimiter: str) -> None:
    rows = [["case", "activity", "time"], ["1", "a,b;c|d\te", "2024-01-01"], ["1", 'say "x"\nand y', "2024-01-02"]]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    log = read(tmp_path, text.getvalue())
    assert log.variants.to_dict() == {("a,b;c|d\te", 'say "x"\nand y'): 1}


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
@pytest.mark.parametrize("header", [HEADER, "Fall,Tätigkeit,Datum\n"])
def test_the_encoding_is_found_out_or_said(tmp_path: Path, encoding: str, header: str) -> None:
    text = header + "1,a,2024-01-01\n" * 3000 + "1,Prüfung,2024-01-02\n"
    log = read(tmp_path, text.encode(encoding))
    assert "Prüfung" in log.variants.labels
    assert ("not-utf8" in found(log)) == (encoding in ("cp1252", "latin-1"))
    assert files.read_variants(tmp_path / "log.csv") == log.variants


def test_a_value_in_another_encoding_changes_no_other_value(tmp_path: Path) -> None:
    text = (HEADER + "1,Prüfung,2024-01-01\n").encode() + b"1,Pr\xfcfung,2024-01-02\n"
    log = read(tmp_path, text)
    assert log.variants.to_dict() == {("Prüfung", "Prüfung"): 1}
    assert [(f.rule, f.count, f.line) for f in log.findings if f.rule == "not-utf8"] == [("not-utf8", 1, 3)]
    assert files.read_variants(tmp_path / "log.csv") == log.variants
    with refused(InputError, "finding-with-example", rule="not-utf8") as caught:
        read(tmp_path, text, policies={"not-utf8": "fail"})
    assert str(caught.value.path).endswith("log.csv")
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2024-03-01", "2024-03-01T00:00:00+00:00"),
        ("2024-03-01 14:05", "2024-03-01T14:05:00+00:00"),
        ("2024-03-01T14:05:09.123456Z", "2024-03-01T14:05:09.123456+00:00"),
        ("2024-03-01T14:05:09.1234569Z", "2024-03-01T14:05:09.123456+00:00"),
        ("2024-03-01T14:05:09+01:00", "2024-03-01T13:05:09+00:00"),
        ("2024-03-01 14:05:09 -0530", "2024-03-01T19:35:09+00:00"),
        ("2024/3/1 4:05", "2024-03-01T04:05:00+00:00"),
        ("01.03.2024 14:05", "2024-03-01T14:05:00+00:00"),
        ("1.3.2024 14:05:09,5", "2024-03-01T14:05:09.500000+00:00"),
        ("31/03/2024 02:05 PM", "2024-03-31T14:05:00+00:00"),
        ("03/31/2024 12:05 am", "2024-03-31T00:05:00+00:00"),
        ("29-02-2024 23:59:59", "2024-02-29T23:59:59+00:00"),
        ("1582-10-04 00:00:00", "1582-10-04T00:00:00+00:00"),
        ("1969-12-31T23:59:59.999999999", "1969-12-31T23:59:59.999999+00:00"),
        ("0001-01-01", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_timestamps_are_read_exactly(tmp_path: Path, text: str, micros: str) -> None:
    assert times(read(tmp_path, f'{HEADER}1,a,"{text}"\n')) == [micros]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    """NA|yesterday|17093019|2023-02-29|2024-13-01|2024-03-01 25:00|2024-03-01 24:00:00|32.01.2024|0000-01-01
    |9999-12-31T23:59:59-01:00|2024-03-01T10:00+25:00|2024-03-01 13:00 PM|1.3.24""".replace("\n    ", "").split("|"),
)
def test_unreadable_timestamps_stop_with_their_line(tmp_path: Path, text: str) -> None:
    rows = '1,"a\nb",2024-01-01\n\n'
    with refused(InputError, "finding-with-example", rule="bad-timestamp") as caught:
        read(tmp_path, f"{HEADER}{rows}1,a,{text}\n")
    assert str(caught.value.path).endswith("log.csv")
    assert caught.value.line == 5
    assert text in str(caught.value)
    with pytest.raises(InputError):
        files.read_variants(tmp_path / "log.csv")


def test_one_bad_timestamp_does_not_change_how_the_others_are_read(tmp_path: Path) -> None:
    text = HEADER + "1,a,2024-01-01T10:00+02:00\n1,b,soon\n1,c,01.01.2024 09:00\n1,d,\n"
    log = read(tmp_path, text, policies={"bad-timestamp": "keep", "missing-timestamp": "drop"})
    assert times(log) == ["2024-01-01T08:00:00+00:00", None, "2024-01-01T09:00:00+00:00"]
    assert found(log) == {"bad-timestamp": 1, "missing-timestamp": 1, "timestamp-without-zone": 1}


def test_day_and_month_are_never_told_by_other_cases(tmp_path: Path) -> None:
    assert times(read(tmp_path, HEADER + "1,a,25/06/2024\n1,b,5/5/2024\n"))[0] == "2024-05-05T00:00:00+00:00"
    assert times(read(tmp_path, HEADER + "1,a,06/25/2024\n"))[0] == "2024-06-25T00:00:00+00:00"
    doubtful = HEADER + "1,a,05/06/2024\n1,b,13/06/2024\n"
    for attempt in (files.read, files.read_variants):
        with refused(InputError, "date-order-seems-day-first", doubtful="05/06/2024", example="13/06/2024"):
            read(tmp_path, doubtful)
            attempt(tmp_path / "log.csv")
    assert times(read(tmp_path, doubtful, time_format="dd/mm/yyyy"))[0] == "2024-06-05T00:00:00+00:00"
    with refused(InputError, "finding-with-example", rule="bad-timestamp", example="'13/06/2024'"):
        read(tmp_path, doubtful, time_format="mm/dd/yyyy")
    with refused(InputError, "date-order-mixed"):
        read(tmp_path, HEADER + "1,a,13/06/2024\n1,b,06/13/2024\n")
    with refused(ParameterError, "time-format-unknown"):
        read(tmp_path, doubtful, time_format="%d")


def test_mixed_offsets_are_converted_and_counted(tmp_path: Path) -> None:
    log = read(tmp_path, HEADER + "1,b,2024-01-01T12:00+02:00\n1,a,2024-01-01T10:30+01:00\n")
    assert log.variants.to_dict() == {("a", "b"): 1}
    assert found(log) == {"mixed-time-zones": 2}


# Order


def test_events_are_ordered_by_time_and_ties_by_row(tmp_path: Path) -> None:
    log = read(tmp_path, HEADER + "1,z,2024-01-02\n2,x,2024-01-01\n1,y,2024-01-02\n1,a,2024-01-01\n")
    assert log.variants.to_dict() == {("a", "z", "y"): 1, ("x",): 1}
    assert log.events[EVENT_INDEX].to_pylist() == [3, 0, 2, 1]
    assert log.cases[ACTIVITY].to_pylist() == ["1", "2"]


def test_a_case_with_an_event_without_time_keeps_the_order_of_its_rows(tmp_path: Path) -> None:
    text = HEADER + "1,c,2024-01-03\n1,b,\n1,a,2024-01-01\n2,c,2024-01-03\n2,a,2024-01-01\n"
    log = read(tmp_path, text, policies={"missing-timestamp": "keep"})
    assert log.variants.to_dict() == {("c", "b", "a"): 1, ("a", "c"): 1}


def test_without_any_timestamp_the_rows_are_the_order(tmp_path: Path) -> None:
    log = read(tmp_path, HEADER + "1,b,\n1,a,\n")
    assert log.variants.to_dict() == {("b", "a"): 1}
    assert found(log) == {"no-timestamps": 2}


def test_an_event_index_overrides_the_timestamps(tmp_path: Path) -> None:
    text = "case,activity,time,event:index\n1,a,2024-01-01,5\n1,b,2024-01-02,3\n"
    log = read(tmp_path, text)
    assert log.variants.to_dict() == {("b", "a"): 1}
    assert found(log)["unordered-timestamps"] == 1
    assert files.read_variants(tmp_path / "log.csv") == log.variants


# Policies


def test_a_row_without_a_case_is_a_case_of_its_own_is_dropped_or_stops(tmp_path: Path) -> None:
    text = HEADER + ',a,2024-01-01\n#3,b,2024-01-01\n"",c,2024-01-01\n'
    with refused(InputError, "finding-with-example", rule="case-without-name") as caught:
        read(tmp_path, text, policies={"case-without-name": "fail"})
    assert caught.value.line == 2
    kept = read(tmp_path, text)
    assert kept.variants.to_dict() == {("a",): 1, ("b",): 1, ("c",): 1}
    assert kept.cases[ACTIVITY].to_pylist() == [None, "#3", None]
    dropped = read(tmp_path, text, policies={"case-without-name": "drop"})
    assert dropped.variants.to_dict() == {("b",): 1}
    assert found(kept)["case-without-name"] == found(dropped)["case-without-name"] == 2


def test_a_row_without_an_activity_is_dropped_or_stops(tmp_path: Path) -> None:
    text = HEADER + "1,a,2024-01-01\n1,,2024-01-02\n"
    with refused(InputError, "finding-with-example", rule="event-without-activity") as caught:
        read(tmp_path, text, policies={"event-without-activity": "fail"})
    assert caught.value.line == 3
    assert found(read(tmp_path, text))["event-without-activity"] == 1
    with refused(InputError, "table-without-events-left"):
        read(tmp_path, HEADER + "1,,2024-01-02\n")


# Bad files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("x,y\n1,2\n", "Columns: 'x', 'y'"),
        (HEADER + "1,a,2024-01-01\n1,b\n", r":3: This row has 2 fields, the header has 3"),
        (HEADER + "1,a,2024-01-01,extra\n", r":2: This row has 4 fields"),
        (HEADER + '1,"a,2024-01-01\n2,b,2024-01-01\n', r":2: A quote is opened and never closed"),
        (HEADER + '1,a"b,2024-01-01\n', r":2: A quote stands in the middle of a field"),
        (HEADER + '1,"a"b,2024-01-01\n', r":2: A quote stands in the middle of a field"),
        (HEADER + '1,"a,2024-01-01\n2,"b",2024-01-01\n', r":3: A quote stands in the middle of a field"),
        (HEADER + "1,a\0b,2024-01-01\n", "not a text file"),
        (b"PK\x03\x04\x14\0\0\0\x08\0", "not a text file"),
        (
            '<?xml version="1.0"?>\n<log xes.version="1.0">\n<trace/>\n</log>\n',
            "This is XML, not a table",
        ),
        (b"\x1f\x8b\x08 not gzip", "gzip"),
        (b"\x81\x8d" * 10, "looks like"),
        (HEADER.encode() + b"1,\x81,2024-01-01\n", r":2: Byte 0x81 can be read neither as utf-8 nor as cp1252"),
    ],
)
def test_malformed_text_is_refused_with_its_line(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, text)
    with pytest.raises(InputError, match=problem):
        files.read_variants(tmp_path / "log.csv")


def test_one_row_is_a_log(tmp_path: Path) -> None:
    assert read(tmp_path, HEADER + "1,a,2024-01-01").variants.to_dict() == {("a",): 1}


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"case,activity,time\n1,a,2024-01-01\n", b"PAR1" + b"\0" * 50 + b"PAR1"]
)
def test_something_else_called_parquet_is_refused(tmp_path: Path, data: bytes) -> None:
    with refused(InputError, "file-empty", "parquet-file-not-readable"):
        read(tmp_path, data, "log.parquet")
    with refused(InputError, "file-empty", "parquet-file-not-readable"):
        files.read_variants(tmp_path / "log.parquet")


def test_truncated_parquet_is_refused(tmp_path: Path) -> None:
    files.write(hospital(50, 0), tmp_path / "whole.parquet")
    data = (tmp_path / "whole.parquet").read_bytes()
    for size in (10, len(data) // 2, len(data) - 5):
        with pytest.raises(InputError):
            read(tmp_path, data[:size], "part.parquet")


def _mutant(rng: random.Random, data: bytes) -> bytes:
    pieces = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(pieces))
        kind = rng.randrange(7)
        if kind == 0:
            del pieces[at]
        elif kind == 1:
            pieces[at] = rng.randrange(256)
        elif kind == 2:
            pieces.insert(at, rng.choice(b'",;\n\r\t|0aZ\x00\xff\xc3 '))
        elif kind == 3:
            del pieces[at : at + rng.randrange(40)]
        elif kind == 4:
            pieces[at:at] = pieces[at : at + rng.randrange(60)]
        elif kind == 5:
            del pieces[at + 1 :]
        else:
            end = pieces.find(b"\n", at) + 1
            pieces[at:end] = b"" if rng.random() < 0.5 else pieces[at:end] * 2
        if not pieces:
            return b""
    return bytes(pieces)


@pytest.mark.nightly
def test_every_mutant_is_an_error_or_adds_up_to_its_rows(tmp_path: Path) -> None:
    rng = random.Random(1)
    base = [["case", "activity", "time", "case:age", "note"]]
    for row in range(24):
        note = rng.choice(["", "x", "a, b", "two\nlines", 'say "it"', "ä"])
        base.append([f"c{row % 5}", rng.choice("abc"), f"2024-01-{row + 1:02d} 10:00:00", str(row % 5), note])
    text = io.StringIO()
    csv.writer(text).writerows(base)
    policies = dict.fromkeys(
        ["case-without-name", "event-without-activity", "bad-timestamp", "missing-timestamp"], "drop"
    )
    path = tmp_path / "mutant.csv"
    outcomes = {"error": 0, "log": 0}
    for _ in range(600):
        path.write_bytes(_mutant(rng, text.getvalue().encode()))
        try:
            log = files.read(path, policies=policies)
        except InputError as error:
            outcomes["error"] += 1
            assert "mutant.csv" in str(error)
            continue
        outcomes["log"] += 1
        dialect = dialects.sniff(Source(path))
        decoded = path.read_bytes().decode(dialect.encoding, "replace").removeprefix("\ufeff")
        rows = [row for row in csv.reader(io.StringIO(decoded, newline=""), delimiter=dialect.delimiter) if row]
        dropped = sum(found(log).get(rule, 0) for rule in policies)
        assert len(log) + dropped == len(rows) - 1
        assert log.offsets[-1] == len(log)
    assert min(outcomes.values()) >= 100


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(0, 1)), max_size=8),
    st.sampled_from([pa.string(), pa.int64(), pa.float64(), pa.bool_()]),
    st.integers(0, 8),
    st.sampled_from(["drop", "keep"]),
)
def test_of_a_case_a_column_says_the_value_that_its_rows_have_or_the_first(
    rows: list[tuple[int, int | None]], kind: pa.DataType, cut: int, policy: Policy
) -> None:
    values = pa.array([value for _, value in rows], pa.int64()).cast(kind)
    case = np.array([owner for owner, _ in rows], dtype=np.int64)
    table = pa.table({"case:x": pa.chunked_array([values[:cut], values[cut:]], kind), "case:": values})
    findings = Findings({"case-attribute-differs": policy})
    column = _case_values(table, (), case, 3, findings)["case:x"]
    held = [[v.as_py() for (owner, _), v in zip(rows, values, strict=True) if owner == one] for one in range(3)]
    known = [[value for value in mine if value is not None] for mine in held]
    taken = [mine if policy == "keep" or len(set(mine)) == 1 else [] for mine in known]
    assert column.to_pylist() == [next(iter(mine), None) for mine in taken]
    differing = sum(len(set(mine)) > 1 for mine in known)
    assert [f.count for f in findings.result()] == ([differing] if differing else [])


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("pqrs"), st.integers(1, 9)), max_size=12), st.integers(0, 40))
def test_cases_are_numbered_as_they_appear_whether_or_not_their_rows_come_together(runs: list, cut: int) -> None:
    names = [name for name, times in runs for _ in range(times)]
    column = pa.chunked_array([names[:cut], names[cut:]], pa.string())
    codes, count = _encode_by_appearance(column)
    order = list(dict.fromkeys(names))
    assert codes.tolist() == [order.index(name) for name in names]
    assert count == len(order)

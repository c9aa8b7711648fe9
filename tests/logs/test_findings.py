"""Nothing is dropped, merged or repaired without a finding, and policies decide."""

import datetime
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from surfaces import in_command

from veilog._language import spoken
from veilog._plain import from_plain, to_plain
from veilog.errors import InputError, ParameterError
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import RULES, Finding, Findings
from veilog.logs.provenance import ATTRIBUTES_TOGETHER
from veilog.logs.storage.loader import store
from veilog.messages import Message


def test_the_policy_fail_stops_with_file_line_and_advice() -> None:
    with pytest.raises(InputError) as caught:
        Findings(path="log.csv").add("bad-timestamp", "'yesterday'", line=7)
    assert str(caught.value).startswith("log.csv:7: A timestamp cannot be read: 'yesterday'")
    assert "--on bad-timestamp=drop|keep" in in_command(caught.value)
    assert (caught.value.path, caught.value.line) == ("log.csv", 7)


def test_a_policy_of_the_user_overrides_the_default() -> None:
    findings = Findings({"bad-timestamp": "drop"})
    assert findings.add("bad-timestamp", "x") == "drop"
    assert findings.result() == (Finding("bad-timestamp", "error", 1, "x", None, "drop"),)


def test_occurrences_are_counted_and_the_earliest_line_is_the_example() -> None:
    findings = Findings({"bad-timestamp": "keep"})
    for example, line, count in (("first", 9, 2), ("earlier", 4, 1), ("later", 12, 3)):
        findings.add("bad-timestamp", example, line=line, count=count)
    assert findings.result() == (Finding("bad-timestamp", "error", 6, "earlier", 4, "keep"),)


def test_an_example_without_line_does_not_replace_one() -> None:
    findings = Findings()
    findings.add("empty-trace", "first", line=3)
    findings.add("empty-trace", "second")
    assert findings.result()[0].example == "first"


def test_collecting_all_turns_failures_into_findings_that_drop() -> None:
    findings = Findings(collect_all=True)
    assert findings.add("bad-timestamp", "x") == "drop"
    assert findings.add("empty-trace", "y") == "keep"
    assert [found.policy for found in findings.result()] == ["fail", "keep"]


def test_collecting_all_keeps_where_dropping_is_no_choice() -> None:
    assert Findings({"no-timestamps": "fail"}, collect_all=True).add("no-timestamps", "x") == "keep"


def test_errors_come_first_then_warnings_then_remarks() -> None:
    findings = Findings(collect_all=True)
    for rule in ("no-timestamps", "duplicate-case-id", "missing-timestamp", "bad-timestamp"):
        findings.add(rule, "x")
    names = [found.rule for found in findings.result()]
    assert names == ["bad-timestamp", "missing-timestamp", "duplicate-case-id", "no-timestamps"]


@pytest.mark.parametrize("policies", [{"no-such-rule": "drop"}, {"bad-timestamp": "ignore"}, {"no-timestamps": "drop"}])
def test_unknown_rules_and_policies_are_refused_by_name(policies) -> None:
    with pytest.raises(ParameterError) as caught:
        Findings(policies)
    assert next(iter(policies)) in str(caught.value)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_every_rule_is_coherent(rule) -> None:
    assert rule.default in rule.policies
    assert "fail" in rule.policies
    assert rule.advice.endswith(".")
    assert set(Findings({rule.name: rule.default}).policies.values()) == {rule.default}


def test_a_finding_as_json_has_the_documented_fields() -> None:
    findings = Findings()
    findings.add("empty-trace", "case 'x'", line=2)
    assert findings.result()[0].to_json() == {
        "rule": "empty-trace",
        "severity": "info",
        "count": 1,
        "example": "case 'x'",
        "line": 2,
        "policy": "keep",
    }


def test_an_example_in_words_is_english_in_json_whoever_reads_it() -> None:
    findings = Findings()
    example = Message("example-days-only", name="x")
    findings.add("days-only", example)
    with spoken("de"):
        told = findings.result()[0].to_json()["example"]
        assert str(findings.result()[0].example) != told
    assert told == example.english
    assert from_plain(Finding, to_plain(findings.result()[0])) == findings.result()[0]


# What is noticed once the log is there.


def _log(folder: Path, *rows: str, header: str = "case,activity,time,nurse") -> EventLog:
    (folder / "log.csv").write_text("\n".join([header, *rows]) + "\n")
    return files.read(folder / "log.csv")


def _noticed(log: EventLog) -> dict[str, int]:
    return {f.rule: f.count for f in log.findings if f.rule in ("repeated-event", "days-only")}


def test_events_that_an_export_has_twice_are_noticed_wherever_they_stand(tmp_path: Path) -> None:
    once = ["1,in,2024-01-01T08:00,x", "1,out,2024-01-01T08:00,x", "2,in,2024-01-02T09:00,", "2,in,2024-01-02T09:00,y"]
    assert _noticed(_log(tmp_path, *once)) == {}
    assert _noticed(_log(tmp_path, *once, *once)) == {"repeated-event": 4}
    assert _noticed(_log(tmp_path, *once, once[2])) == {"repeated-event": 1}
    assert _noticed(_log(tmp_path, once[0], once[0].replace("1,", "3,", 1))) == {}
    _log(tmp_path, *once, once[3])
    with refused(InputError, "finding-with-example", rule="repeated-event", example="'in' in case '2'"):
        files.read(tmp_path / "log.csv", policies={"repeated-event": "fail"})


@pytest.mark.parametrize(
    "times",
    [
        ("2024-01-01", "2024-01-02"),
        ("2024-01-01T00:00+01:00", "2024-07-01T00:00+02:00"),
        ("2024-01-01T00:00+00:00", "2024-07-01T00:00+01:00"),
        ("2024-01-01T00:00-03:00", "2024-07-01T00:00-04:00"),
    ],
)
def test_days_without_a_time_of_day_are_noticed_where_they_leave_the_order_open(
    times: tuple[str, str], tmp_path: Path
) -> None:
    first, second = times
    assert _noticed(_log(tmp_path, f"1,in,{first},x", f"1,out,{first},x", f"2,in,{second},x")) == {"days-only": 2}
    assert _noticed(_log(tmp_path, f"1,in,{first},x", f"1,out,{second},x", f"2,in,{second},x")) == {}
    rows = [f"1,in,{first},x", f"1,out,{first},x", "2,in,2024-01-02T08:30,x"]
    assert _noticed(_log(tmp_path, *rows)) == {}


def test_times_that_stand_for_none_are_noticed(tmp_path: Path) -> None:
    """An unknown end, written as 9999-12-31 in many systems, is a finding."""
    tomorrow = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=20)).isoformat(timespec="seconds")
    said = [
        {f.rule: (f.count, str(f.example)) for f in _log(tmp_path, "1,in,2024-01-01T08:00,x", *more).findings}
        for more in ([f"1,out,{tomorrow},x"], ["1,out,9999-12-31T00:00,x", "2,out,1900-01-01T00:00,x"])
    ]
    assert "unlikely-time" not in said[0]
    count, example = said[1]["unlikely-time"]
    assert count == 2 and example.startswith("9999-12-31T00:00:00 ") and example.endswith("'1'")


@pytest.mark.slow
@given(st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=2, max_size=12))
def test_repeated_events_are_those_a_set_would_lose(rows: list[tuple[int, int, int, int]]) -> None:
    table = pa.table(
        {
            "case": [f"c{row[0]}" for row in rows],
            "activity": [f"a{row[1]}" for row in rows],
            "time": pa.array([3600 * row[2] + 1 for row in rows], pa.timestamp("s")),
            "nurse": [None if row[3] else "n" for row in rows],
        }
    )
    again = sum(count - 1 for count in Counter(rows).values())
    assert _noticed(files.read(table)).get("repeated-event", 0) == again
    once = files.read(table, policies={"repeated-event": "drop"})
    assert _noticed(once).get("repeated-event", 0) == again
    names = once.cases["concept:name"].take(once.events["case:index"]).to_pylist()
    kept = zip(names, *(once.events[name].to_pylist() for name in ("concept:name", "nurse")), strict=True)
    assert Counter(kept) == Counter((f"c{a}", f"a{b}", None if d else "n") for a, b, _, d in set(rows))


DROP = {"repeated-event": "drop"}


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".xes", ".parquet"])
def test_repeated_events_are_left_out_of_every_format(tmp_path: Path, suffix: str) -> None:
    once = ["1,in,2024-01-01T08:00Z,x", "1,out,2024-01-01T09:00Z,x", "2,in,2024-01-02T09:00Z,y"]
    files.write(_log(tmp_path, *once, once[1], once[2]), tmp_path / f"twice{suffix}")
    path = tmp_path / f"twice{suffix}"
    log = files.read(path, policies=DROP)
    assert log.variants.to_dict() == {("in", "out"): 1, ("in",): 1}
    assert _noticed(log) == {"repeated-event": 2}
    assert files.read_variants(path, policies=DROP) == log.variants
    files.write(log, tmp_path / f"again{suffix}")
    again = files.read(tmp_path / f"again{suffix}", policies={"repeated-event": "fail"})
    assert again.variants == log.variants
    assert log.read_as != files.read(path).read_as


def test_what_is_alike_follows_from_all_values_of_an_attribute_where_its_type_does(tmp_path: Path) -> None:
    rows = ["1,in,2024-01-01T08:00Z,1.0", "1,in,2024-01-01T08:00Z,1.00"]
    for more, events in (([], 1), (["2,in,2024-01-01T08:00Z,x"], 3)):
        _log(tmp_path, *rows, *more)
        log = files.read(tmp_path / "log.csv", policies=DROP)
        assert len(log) == events, "that is why"
        assert ATTRIBUTES_TOGETHER in log.read_together
        assert ATTRIBUTES_TOGETHER in files.read_variants(tmp_path / "log.csv", policies=DROP).read_together
        files.write(files.read(tmp_path / "log.csv"), tmp_path / "log.parquet", overwrite=True)
        assert ATTRIBUTES_TOGETHER in files.read(tmp_path / "log.parquet", policies=DROP).read_together
        assert ATTRIBUTES_TOGETHER not in files.read(tmp_path / "log.parquet").read_together
    table = pa.table({"case": ["1"], "activity": ["a"], "time": pa.array([1], pa.timestamp("s"))})
    assert files.read(table, policies=DROP).read_together == ()


def test_a_log_on_disk_or_elsewhere_is_not_searched_for_repeated_events(tmp_path: Path) -> None:
    log = _log(tmp_path, "1,in,2024-01-01T08:00Z,x", "1,in,2024-01-01T08:00Z,x")
    files.write(log, tmp_path / "one.parquet")
    assert store(tmp_path / "one.parquet", policies=DROP) is None, "it is read into memory"
    files.write(log, tmp_path / "two.parquet")
    for attempt in (files.read_variants, store):
        with refused(ParameterError, "engine-option-not-possible", name="on repeated-event=drop"):
            attempt(str(tmp_path / "*.parquet"), policies=DROP)


@pytest.mark.parametrize(("kind", "exact"), [(pa.float64(), 2**53), (pa.float32(), 2**24), (pa.float16(), 2**11)])
def test_numbers_that_may_stand_for_several_names_are_refused_as_names_of_cases(
    tmp_path: Path, kind: pa.DataType, exact: int
) -> None:
    """Floats too large to be exact are refused as names, which would merge two cases."""

    def table(*names: int) -> pa.Table:
        made = pa.array(np.array(names, dtype=kind.to_pandas_dtype()), kind)
        times = pa.array(range(len(names)), pa.timestamp("us", "UTC"))
        return pa.table({"case:concept:name": made, "concept:name": ["a"] * len(names), "time:timestamp": times})

    assert files.read(table(1, exact - 1)).variants.cases == 2
    large = table(1, exact, exact + 1)
    pq.write_table(large, tmp_path / "log.parquet")
    for source in (large, tmp_path / "log.parquet"):
        for read in (files.read, files.read_variants):
            with refused(InputError, "finding-with-example", rule="inexact-case-name"):
                read(source)
    kept = files.read(large, policies={"inexact-case-name": "keep"})
    assert kept.variants.cases == 2
    assert {f.rule: f.count for f in kept.findings}["inexact-case-name"] == 2

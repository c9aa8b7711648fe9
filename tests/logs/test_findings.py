"""Findings: nothing is dropped, merged or repaired without one, and the user's policy decides."""

import pytest

from veilog.errors import InputError, ParameterError
from veilog.logs.findings import RULES, Finding, Findings


def test_the_policy_fail_stops_with_file_line_and_advice() -> None:
    with pytest.raises(InputError) as caught:
        Findings(path="log.csv").add("bad-timestamp", "'yesterday'", line=7)
    assert str(caught.value).startswith("log.csv:7: A timestamp cannot be read: 'yesterday'")
    assert "--on bad-timestamp=drop|keep" in caught.value.in_command()
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

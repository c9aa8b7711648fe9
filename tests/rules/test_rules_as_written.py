"""Files of rules: what each entry states, and where a file is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from veilog.errors import InputError
from veilog.rules.rule_files import Constraint
from veilog.rules.rules import ReleaseRules
from veilog.rules.times import TimeRule

TOML = """# "a comment" with [brackets, {
rules = [
  {first = "A"},
  {last = ["B", "C"]},   # two
  {before = ["A, x", "[B]", "C"]},
  {followed = ["A", "B"]},
  {exclusive = ["A", "B", "C"]},

  {activity = "A", at_least = 1, at_most = 2},
  {from = "A", to = "*", at_least = "1.5 min", at_most = "2 d"},
  {attribute = "age < 18", if = "ward = P|Q", activity = "A"},
  "Chain Response[A, B]",
  {template = "not co-existence", activities = ["A", "B"]},
]
"""
LINES = [3, 4, 5, 6, 7, 9, 10, 11, 12, 13]


def read(entry: Any) -> Any:
    found = ReleaseRules.of([entry])
    assert found is not None
    return found.items[0]


def file_of(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_states_rules_of_all_kinds(tmp_path: Path) -> None:
    rules = ReleaseRules.of(file_of(tmp_path / "rules.toml", TOML))
    assert rules is not None
    assert [rule.line for rule in rules.items] == LINES
    assert [rule.constraints for rule in rules.items] == [
        (Constraint("init", ("A",)),),
        (Constraint("end", ("B", "C")),),
        (Constraint("precedence", ("A, x", "[B]")), Constraint("precedence", ("[B]", "C"))),
        (Constraint("response", ("A", "B")),),
        tuple(Constraint("not co-existence", pair) for pair in (("A", "B"), ("A", "C"), ("B", "C"))),
        (Constraint("existence", ("A",)), Constraint("absence", ("A",), 3)),
        (),
        (),
        (Constraint("chain response", ("A", "B")),),
        (Constraint("not co-existence", ("A", "B")),),
    ]
    assert rules.times == (TimeRule("A", "*", 90_000_000.0, 172_800_000_000.0),)
    (attribute,) = rules.attributes
    assert attribute.attributes == ("age", "ward")
    assert rules.items[7].activities == ("A",)


def test_json_and_lists_state_the_same(tmp_path: Path) -> None:
    rules = ReleaseRules.of(file_of(tmp_path / "rules.toml", TOML))
    assert rules is not None
    again = ReleaseRules.of(file_of(tmp_path / "rules.json", json.dumps({"rules": rules.to_json()}, indent=1)))
    listed = ReleaseRules.of(rules.to_json())
    assert again is not None and listed is not None
    for other in (again, listed):
        assert other.constraints == rules.constraints
        assert other.times == rules.times
        assert other.attributes == rules.attributes
    assert [rule.line for rule in listed.items] == [None] * len(LINES)
    assert again.items[0].line == 4 and again.items[1].line == 7


def test_tables_of_toml_have_lines_too(tmp_path: Path) -> None:
    path = file_of(tmp_path / "rules.toml", '[[rules]]\nfirst = "A"\n\n[[rules]]\nfrist = "B"\n')
    with refused(InputError, "rule-form-unknown", number=2, keys="frist") as caught:
        ReleaseRules.of(path)
    assert caught.value.line == 5


def test_a_list_of_declare_constraints_is_rules(tmp_path: Path) -> None:
    path = file_of(tmp_path / "model.txt", "activity A\n\n# init\nInit[A]\nAbsence2[B]\n")
    rules = ReleaseRules.of(path)
    assert rules is not None
    assert rules.constraints == (Constraint("init", ("A",)), Constraint("absence", ("B",), 2))
    assert [rule.line for rule in rules.items] == [4, 5]
    with refused(InputError, "constraint-condition-not-supported") as caught:
        ReleaseRules.of(file_of(path, "Init[A]\nResponse[A, B] |A.x > 1 |\n"))
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"first": 3}, "first"),
        ({"first": ["A", "A"]}, "first"),
        ({"before": ["A"]}, "before"),
        ({"activity": "A", "at_most": "2"}, "at_most"),
        ({"activity": "A", "at_least": 0}, "at_least"),
        ({"from": "A", "to": "B", "at_least": "soon"}, "at_least"),
        ({"from": "A", "to": 3, "at_most": "1 h"}, "to"),
        ({"attribute": "age"}, "attribute"),
        ({"attribute": "age = .."}, "attribute"),
        ({"attribute": "age < 18", "if": 3}, "if"),
        ({"template": "existence", "activities": ["A"], "times": "2"}, "times"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(entry: Any, key: str) -> None:
    with refused(InputError, "rule-value-wrong", number=1, key=key):
        read(entry)


@pytest.mark.parametrize("entry", [{}, 3, {"activity": "A"}, {"from": "A", "to": "B"}, {"first": "A", "last": "B"}])
def test_what_makes_no_rule_is_refused(entry: Any) -> None:
    with refused(InputError, "rule-form-unknown", number=1):
        read(entry)


@pytest.mark.parametrize(
    ("name", "text", "code", "line"),
    [
        ("r.toml", 'rules = [\n{first = "A"}\n{first = "B"}]', "rules-not-parsed", 3),
        ("r.json", '{"rules": [\n}', "rules-not-parsed", 2),
        ("r.toml", "other = 3", "rules-not-list", None),
        ("r.json", '{"rules": 3}', "rules-not-list", None),
        ("r.toml", "rules = []", "rules-empty", None),
        ("r.bpmn", "<definitions/>", "rules-format-unknown", None),
    ],
)
def test_files_that_hold_no_rules_are_refused(
    tmp_path: Path, name: str, text: str, code: str, line: int | None
) -> None:
    with refused(InputError, code) as caught:
        ReleaseRules.of(file_of(tmp_path / name, text))
    assert caught.value.line == line


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with refused(InputError, "rules-file-not-readable"):
        ReleaseRules.of(tmp_path / "no.toml")
    (tmp_path / "r.toml").write_bytes(b"\xff\xfe\xff")
    with refused(InputError, "rules-file-not-utf8"):
        ReleaseRules.of(tmp_path / "r.toml")

"""Rules that no case can obey are found before any query, with their conflict."""

import time
from typing import Any

import numpy as np
import pytest
from refusals import refused
from ruled import DECLARED, RULES

from veilog.errors import ParameterError
from veilog.rules import checks
from veilog.rules.checks import check, check_activities, check_columns
from veilog.rules.rules import ReleaseRules


def checked(entries: list[Any], activities: Any = None, longest: int | None = None, **domains: Any) -> None:
    rules = ReleaseRules.of(entries)
    assert rules is not None
    check(rules, activities, longest, domains)


A_TO_B: dict[str, Any] = {"from": "A", "to": "B"}


@pytest.mark.parametrize(
    ("entries", "numbers"),
    [
        ([{"first": "A"}, {"last": "C"}, {"first": "B"}], "1, 3"),
        ([{"last": "C"}, {"before": ["A", "B"]}, {"before": ["B", "A"]}], "2, 3"),
        ([{"first": "A"}, {"activity": "A", "at_most": 0}], "1, 2"),
        ([{"activity": "A", "at_least": 2}, {"activity": "A", "at_most": 1}], "1, 2"),
        ([{"exclusive": ["A", "B"]}, {"before": ["A", "B"]}], "1, 2"),
        ([{"exclusive": ["A", "B"]}, {"followed": ["A", "B"]}], "1, 2"),
        ([{"followed": ["A", "B"]}, "Chain Response[A, C]", {"activity": "B", "at_most": 0}], "1, 3"),
        ([A_TO_B | {"at_least": "2 h"}, A_TO_B | {"at_most": "1 h"}], "1, 2"),
        ([{"attribute": "age < 18", "if": "ward = P"}, {"attribute": "age >= 60", "if": "ward = P"}], "1, 2"),
        ([{"attribute": "birth <= admission"}, {"attribute": "admission < birth"}], "1, 2"),
        ([{"attribute": "ward = P|Q"}, {"attribute": "ward != P|Q"}], "1, 2"),
        ([{"attribute": "dose = 1..5", "activity": "A"}, {"attribute": "dose > 5"}], "1, 2"),
        ([{"before": ["A", "B"]}, {"before": ["B", "C"]}, {"first": "D"}, {"before": ["C", "A"]}], "1, 2, 4"),
    ],
)
def test_rules_that_contradict_each_other_are_named(entries: list[Any], numbers: str) -> None:
    with refused(ParameterError, "rules-contradict", numbers=numbers):
        checked(entries)


@pytest.mark.parametrize(
    "entries",
    [
        [{"first": ["A", "B"]}, {"first": ["B", "C"]}],
        [{"before": ["A", "B"]}, {"followed": ["A", "B"]}, {"exclusive": ["A", "C"]}],
        [{"activity": "A", "at_most": 0}, {"last": "B"}],
        [A_TO_B | {"at_least": "1 h"}, A_TO_B | {"at_most": "1 h"}],
        [{"attribute": "age < 18", "if": "ward = P"}, {"attribute": "age >= 60", "if": "ward = Q"}],
        [{"attribute": "dose = 1..5", "activity": "A"}, {"attribute": "dose > 5", "activity": "B"}],
        [{"attribute": "birth <= admission"}, {"attribute": "admission <= birth"}],
    ],
)
def test_rules_that_leave_each_other_room_pass(entries: list[Any]) -> None:
    checked(entries)


def test_a_rule_that_nothing_can_obey_is_refused() -> None:
    for entry in (
        {"activity": "A", "at_least": 3, "at_most": 2},
        A_TO_B | {"at_least": "2 h", "at_most": "1 h"},
        {"attribute": "age < age"},
    ):
        with refused(ParameterError, "rule-impossible", number=1):
            checked([entry])
    with refused(ParameterError, "rule-impossible", number=1):
        checked([{"attribute": "age < 18"}], age=(20.0, 90.0))
    checked([{"attribute": "age < 18"}], age=(10.0, 90.0))


def test_what_is_declared_is_held_against_the_rules() -> None:
    with refused(ParameterError, "rule-activity-unknown", number=2, name="Releas"):
        checked([{"first": "A"}, {"last": "Releas"}], activities=("A", "Release"))
    with refused(ParameterError, "rule-value-undeclared", number=1, name="Padiatrics", attribute="ward"):
        checked([{"attribute": "age < 18", "if": "ward = Padiatrics"}], ward=("Pediatrics", "Surgery"))
    with refused(ParameterError, "rules-need-longer-cases", events=4, longest=3):
        checked([{"activity": "A", "at_least": 3}, {"last": "B"}], longest=3)
    checked([{"activity": "A", "at_least": 3}, {"last": "B"}], longest=4)


def test_what_a_log_has_is_held_against_the_rules() -> None:
    rules = ReleaseRules.of(RULES)
    assert rules is not None
    check_columns(rules, ["case:age", "ward", "birth", "admission", "dose"])
    with refused(ParameterError, "rule-attribute-unknown", number=10, name="dose"):
        check_columns(rules, ["age", "ward", "birth", "admission", "doses"])
    with refused(ParameterError, "rule-activity-unknown", number=1, name="Registration"):
        check_activities(rules, ["Triage"])


def test_ten_rules_and_many_are_checked_within_a_second() -> None:
    rules = ReleaseRules.of(RULES)
    assert rules is not None
    started = time.process_time()
    check(rules, DECLARED.alphabet, DECLARED.longest, DECLARED.attributes)
    many = [{"before": [f"activity {i}", f"activity {i + 1}"]} for i in range(30)]
    checked([{"first": "activity 0"}, *many])
    assert time.process_time() - started < 1


def test_a_long_circle_is_found_at_once_with_the_rules_in_it() -> None:
    circle = [{"before": [f"activity {i}", f"activity {(i + 1) % 27}"]} for i in range(27)]
    started = time.process_time()
    with refused(ParameterError, "rules-contradict", numbers=", ".join(map(str, range(2, 29)))):
        checked([{"last": "end"}, *circle])
    assert time.process_time() - started < 2  # .4 on an idle core: a search without an end takes minutes


INTRICATE = [
    "Precedence[B, A]", "Response[A, C]", "Chain Response[C, D]", "Existence2[A]", "Existence2[B]", "Succession[B, D]",
    "Chain Precedence[C, D]", "Responded Existence[D, A]", "Absence4[D]",
]  # fmt: skip
"""Rules that all hold of B A C D B A C D."""


def test_only_what_is_proved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that is given up proves nothing, so nothing is refused by it."""
    rules, never = ReleaseRules.of(INTRICATE), ReleaseRules.of([*INTRICATE, {"activity": "D", "at_most": 0}])
    assert rules is not None
    assert never is not None
    assert rules.allows(tuple("BACDBACD"))
    assert check(rules, None, None, {}).settled
    with refused(ParameterError, "rules-contradict"):
        check(never, None, None, {})
    monkeypatch.setattr(checks._Searches, "case", lambda *_: checks._Case(None, False))
    monkeypatch.setattr(checks._Searches, "settled", False)
    for some in (rules, never):
        assert not check(some, None, None, {}).settled


def test_many_rules_that_a_case_obeys_are_not_refused_and_take_seconds() -> None:
    rng = np.random.default_rng(1)
    names = [f"a{i}" for i in range(12)]
    trace = rng.permutation(names + rng.choice(names, 28).tolist()).tolist()
    kept: list[str] = []
    while len(kept) < 60:
        template = str(rng.choice(["response", "precedence", "chain response", "responded existence", "succession"]))
        one = f"{template}[{', '.join(rng.choice(names, 2, replace=False))}]"
        rules = ReleaseRules.of([one])
        assert rules is not None
        kept += [one] if one not in kept and rules.allows(tuple(trace)) else []
    started = time.process_time()
    checked(kept)
    assert time.process_time() - started < 10


def test_a_bound_on_steps_ends_all_searches() -> None:
    searches = checks._Searches(left=0)
    rules = ReleaseRules.of(INTRICATE)
    assert rules is not None
    assert searches.case(rules.constraints, "A") == (None, False)
    assert not searches.settled


def test_times_that_the_shortest_case_cannot_have_are_no_contradiction() -> None:
    """Times too long for the shortest case do not contradict: longer cases have room."""
    slow = [A_TO_B | {"at_least": "2 d"}, {"from": "*", "to": "*", "at_most": "1 d"}]
    rules = ReleaseRules.of([{"first": "A"}, {"last": "B"}, *slow])
    assert rules is not None
    assert not rules.allows(("A", "B"))
    assert rules.allows(("A", "C", "B"))
    assert not check(rules, None, None, {}).settled

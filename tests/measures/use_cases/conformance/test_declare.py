"""Declare templates: cases by hand, laws between templates, and pm4py's verdicts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from veilog.errors import InputError, ParameterError
from veilog.logs.variants import Variants
from veilog.measures.use_cases.conformance import held, mine_constraints, read_model, support_error
from veilog.rules.rule_files import TEMPLATES, Constraint

ONE_OF_EACH = (
    *(Constraint(name, ("a",)) for name in ("existence", "absence", "exactly", "init", "end")),
    *(Constraint(name, ("a", "b")) for name in TEMPLATES[5:]),
)


def random_log(seed: int, cases: int = 200) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(seed)
    return [tuple(rng.choice(list("abc"), size=rng.integers(7)).tolist()) for _ in range(cases)]


def told(constraint: Constraint, sequence: str) -> tuple[bool, bool]:
    (found,) = held([constraint], Variants.from_sequences([tuple(sequence)]))
    return bool(found.active[0]), bool(found.kept[0])


ACTIVE_KEPT, BROKEN, NOT_ACTIVE = (True, True), (True, False), (False, True)


@pytest.mark.parametrize(
    ("template", "times", "kept", "broken", "asleep"),
    [
        ("existence", 1, ("a", "ba", "aa"), ("", "b"), ()),
        ("existence", 2, ("aa", "aba"), ("", "a", "b"), ()),
        ("absence", 1, ("", "b"), ("a", "ba"), ()),
        ("absence", 3, ("", "a", "aba"), ("aaa", "abaa"), ()),
        ("exactly", 1, ("a", "bab"), ("", "aa"), ()),
        ("exactly", 2, ("aba",), ("", "a", "aaa"), ()),
        ("exactly", 0, ("", "b"), ("a",), ()),
        ("init", 1, ("a", "ab"), ("", "ba"), ()),
        ("end", 1, ("a", "ba"), ("", "ab", "aab"), ()),
        ("responded existence", 1, ("ab", "ba"), ("a", "ac"), ("", "b", "c")),
        ("response", 1, ("ab", "aab", "bacb"), ("a", "ba", "aba"), ("", "b")),
        ("precedence", 1, ("ab", "acbb"), ("b", "ba", "bab"), ("", "a", "ca")),
        ("succession", 1, ("ab", "aabb", "acb"), ("a", "b", "ba", "aba", "bab"), ("", "c")),
        ("chain response", 1, ("ab", "abcab"), ("a", "acb", "aab", "aba"), ("", "b")),
        ("chain precedence", 1, ("ab", "aab", "aba"), ("b", "acb", "abb"), ("", "a")),
        ("not co-existence", 1, ("a", "b", "aa"), ("ab", "bca"), ("", "c")),
    ],
)
def test_a_template_means_what_it_says(
    template: str, times: int, kept: tuple[str, ...], broken: tuple[str, ...], asleep: tuple[str, ...]
) -> None:
    constraint = Constraint(template, ("a",) if template in TEMPLATES[:5] else ("a", "b"), times)
    for sequences, verdict in ((kept, ACTIVE_KEPT), (broken, BROKEN), (asleep, NOT_ACTIVE)):
        for sequence in sequences:
            assert told(constraint, sequence) == verdict, sequence


def test_support_is_a_share_of_the_activated_cases() -> None:
    log = Variants.from_dict({("a", "b"): 3, ("a",): 1, ("c",): 6})
    (response,) = held([Constraint("response", ("a", "b"))], log)
    assert (response.activated, response.satisfied, response.support) == (4, 3, 0.75)
    (never,) = held([Constraint("response", ("x", "b"))], log)
    assert (never.activated, never.support, never.kept.all()) == (0, 0.0, True)


@pytest.mark.parametrize("seed", range(3))
def test_laws_between_templates(seed: int) -> None:
    log = Variants.from_sequences(random_log(seed))

    def kept(template: str, first: str, second: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return held([Constraint(template, (first, second))], log)[0].kept

    response, precedence = kept("response", "a", "b"), kept("precedence", "a", "b")
    assert np.array_equal(kept("succession", "a", "b"), response & precedence)
    assert np.all(response <= kept("responded existence", "a", "b"))
    assert np.all(kept("chain response", "a", "b") <= response)
    assert np.all(kept("chain precedence", "a", "b") <= precedence)
    assert np.array_equal(kept("not co-existence", "a", "b"), kept("not co-existence", "b", "a"))
    backwards = Variants.from_sequences([sequence[::-1] for sequence in log.sequences], log.counts)
    for one, other in (("response", "precedence"), ("chain response", "chain precedence")):
        here = held([Constraint(one, ("a", "b"))], log)[0]
        there = held([Constraint(other, ("b", "a"))], backwards)[0]
        assert (here.activated, here.satisfied) == (there.activated, there.satisfied)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_verdicts_are_those_of_pm4py(seed: int) -> None:
    pytest.importorskip("pm4py")
    from pm4py.algo.conformance.declare import algorithm
    from pm4py.objects.log.obj import Event, EventLog, Trace

    cases = [case for case in random_log(seed) if case]
    log = EventLog([Trace([Event({"concept:name": name}) for name in case]) for case in cases])
    theirs = {
        "existence": "existence",
        "absence": "absence",
        "exactly": "exactly_one",
        "init": "init",
        "responded existence": "responded_existence",
        "response": "response",
        "precedence": "precedence",
        "succession": "succession",
        "chain response": "chainresponse",
        "chain precedence": "chainprecedence",
        "not co-existence": "noncoexistence",
    }
    variants = Variants.from_sequences(cases)
    rows = {sequence: row for row, sequence in enumerate(variants.sequences)}
    compared = 0
    for constraint in ONE_OF_EACH:
        if constraint.template not in theirs:
            continue
        key = constraint.activities if len(constraint.activities) == 2 else constraint.activities[0]
        found = algorithm.apply(log, {theirs[constraint.template]: {key: {"support": 1, "confidence": 1}}})
        (ours,) = held([constraint], variants)
        for case, verdict in zip(cases, found, strict=True):
            assert bool(ours.kept[rows[case]]) == (not verdict["deviations"]), (constraint, case)
            compared += 1
    assert compared == len(theirs) * len(cases)


def test_the_originals_own_rules_are_those_that_nearly_always_hold() -> None:
    log = Variants.from_dict({("a", "b", "c"): 96, ("b",): 3, ("a", "c", "x", "y"): 1})
    rules = {str(rule) for rule in mine_constraints(log)}
    assert rules == {
        "response[a, b]",
        "response[a, c]",
        "precedence[a, b]",
        "precedence[a, c]",
        "response[b, c]",
        "precedence[b, c]",
    }
    assert not mine_constraints(Variants.from_dict({("a",): 5}))


def test_errors_of_supports_are_averaged_over_active_constraints() -> None:
    constraints = [Constraint("response", pair) for pair in (("a", "b"), ("c", "d"), ("x", "y"))]
    one = Variants.from_dict({("a", "b"): 3, ("a",): 1, ("c", "d"): 1})
    other = Variants.from_dict({("a", "b"): 1, ("a",): 1})
    assert support_error(constraints, one, other) == pytest.approx((0.25 + 1.0) / 2)
    assert support_error(constraints[2:], one, other) is None
    assert support_error(constraints, one, one) == 0.0


def test_lists_of_constraints_are_read_as_text_and_as_json(tmp_path: Path) -> None:
    text = tmp_path / "model.decl"
    text.write_text(
        "activity A\n# a comment\n\nResponse[A, B] | | |\nExistence2[A]\nexactly(A)\nNot Co-Existence[A, B]\n"
        'Chain Precedence["A, or not", B]\nResponse[A, B]\nAbsence3[A] | |\n'
    )
    expected = (
        Constraint("response", ("A", "B")),
        Constraint("existence", ("A",), 2),
        Constraint("exactly", ("A",)),
        Constraint("not co-existence", ("A", "B")),
        Constraint("chain precedence", ("A, or not", "B")),
        Constraint("absence", ("A",), 3),
    )
    assert read_model(text) == expected
    told_as_json = tmp_path / "model.json"
    told_as_json.write_text(
        '{"constraints": [{"template": "response", "activities": ["A", "B"]},'
        '{"template": "existence", "activities": ["A"], "times": 2}]}'
    )
    assert read_model(told_as_json) == expected[:2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Response[A, B]\nwhat is this", "constraint-number-unknown"),
        ("Response[A]", "constraint-of-two-activities"),
        ("Alternate Response[A, B]", "constraint-template-unknown"),
        ("Existence[A, B]", "constraint-of-one-activity"),
        ("Response[A, A]", "constraint-activities-same"),
        ("Response2[A, B]", "constraint-number-not-taken"),
        ("Existence0[A]", "constraint-times-out-of-range"),
        ("Response[A, B] |A.x > 3 | |", "constraint-condition-not-supported"),
        ("# nothing", "constraints-file-empty"),
        ("{", "constraints-not-json"),
        ('{"rules": []}', "constraints-list-missing"),
        ('[{"template": "init", "activities": "A"}]', "constraint-parts-wrong"),
        ('[{"template": "init", "activity": ["A"]}]', "constraint-form-wrong"),
        ('[{"template": "end", "activities": [3]}]', "constraint-parts-wrong"),
    ],
)
def test_what_is_no_constraint_is_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text(content)
    with refused(InputError, message):
        read_model(path)


def test_a_constraint_says_what_it_takes() -> None:
    with refused(ParameterError, "constraint-template-unknown"):
        Constraint("sometimes", ("a",))

"""SaCoFa: harmful prefixes, how many of them enter, and the charge."""

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openly import release
from refusals import refused
from scipy import stats

from veilog.errors import InputError, ParameterError
from veilog.logs.variants import Variants
from veilog.methods._prefix_tree.tree import NoisyPrefixTree
from veilog.methods._relations import draw_number
from veilog.methods.sacofa import _advance_history, _broken_continuations, _empty_history, exact_rules

ABC = ("a", "b", "c")
trace = st.lists(st.sampled_from(ABC), max_size=6).map(tuple)
traces = st.lists(trace, min_size=1, max_size=20)
eventful = traces.filter(any)

SMALL = Variants.from_dict({("a", "b", "c"): 300, ("a", "c"): 200, ("b",): 100, ("c", "a"): 1})


def log(cases: list[tuple[str, ...]]) -> Variants:
    return Variants.from_dict(Counter(cases))


def followers(case: tuple[str, ...], a: str) -> set[str]:
    return set(case[case.index(a) + 1 :])


def predecessors(case: tuple[str, ...], b: str) -> set[str]:
    return set(case[: len(case) - 1 - case[::-1].index(b)])


def relation(cases: list[tuple[str, ...]], a: str, b: str, near: Callable[[tuple[str, ...], str], set[str]]) -> str:
    """Return always, never or sometimes for b ``near`` a, over the cases with an a."""
    found = [b in near(case, a) for case in cases if a in case]
    return "never" if not any(found) else "always" if all(found) else "sometimes"


def rules_broken(cases: list[tuple[str, ...]], prefix: tuple[str, ...], ended: bool) -> int:
    """Count the pairs whose "follows" or "precedes" a prefix violates, by definition.

    An activity that always precedes itself is no rule, since it could never occur a first time. A prefix of one event
    violates at most the rule about first activities.
    """
    count = int(bool(prefix) and prefix[0] not in {case[0] for case in cases if case})
    if len(prefix) + ended < 2:
        return count
    known = {activity for case in cases for activity in case}
    for a, b in itertools.product(sorted(set(prefix)), sorted(known)):
        follows, precedes = relation(cases, a, b, followers), relation(cases, a, b, predecessors)
        count += follows == "never" and b in followers(prefix, a)
        count += follows == "always" and ended and b not in followers(prefix, a)
        count += precedes == "never" and b in predecessors(prefix, a)
        count += precedes == "always" and a != b and b not in predecessors(prefix, a)
    return count


@pytest.mark.slow
@settings(max_examples=300)
@given(cases=eventful, walk=st.lists(st.sampled_from(ABC), min_size=1, max_size=7))
def test_a_prefix_counts_each_violated_pair_once_for_each_relation(
    cases: list[tuple[str, ...]], walk: list[str]
) -> None:
    known = tuple(sorted({activity for case in cases for activity in case}))
    walk = [activity for activity in walk if activity in known]
    rules = exact_rules(log(cases), known)
    history = _empty_history(len(known))
    assert _broken_continuations(history, rules, is_first=True)[0].tolist() == [
        rules_broken(cases, (b,), False) for b in known
    ] + [0]
    for length, activity in enumerate(walk, start=1):
        history = _advance_history(history, rules, np.array([known.index(activity)]), is_first=length == 1)
        prefix = tuple(walk[:length])
        expected = [rules_broken(cases, (*prefix, b), False) for b in known] + [rules_broken(cases, prefix, True)]
        assert _broken_continuations(history, rules, is_first=False)[0].tolist() == expected


def test_a_pair_that_never_occurs_counts_twice_however_often_it_occurs() -> None:
    """A pair that never occurs counts twice: as not following and as not preceding."""
    rules = exact_rules(log([("a", "b"), ("b",)]), ("a", "b"))
    history = _empty_history(2)
    for length, activity in enumerate([1, 0, 0, 0]):
        history = _advance_history(history, rules, np.array([activity]), is_first=length == 0)
    # b before a; a after a; and at the end b has to follow a
    assert _broken_continuations(history, rules, is_first=False)[0].tolist() == [4, 6, 5]


@given(cases=eventful)
def test_no_case_of_a_log_breaks_the_rules_of_that_log(cases: list[tuple[str, ...]]) -> None:
    rules = exact_rules(log(cases), ABC)
    for case in filter(None, cases):
        history = _empty_history(len(ABC))
        for i, activity in enumerate(case):
            history = _advance_history(history, rules, np.array([ABC.index(activity)]), is_first=i == 0)
        assert _broken_continuations(history, rules, is_first=False)[0, -1] == 0


def test_the_number_of_harmful_ones_has_the_distribution_of_the_exponential_mechanism() -> None:
    """Numbers of harmful prefixes fit by chi-squared (fixed seed; false alarm 1e-4)."""
    most, rate = 6, 0.4
    random = np.random.default_rng(11)
    drawn = np.bincount([draw_number(most, rate, random) for _ in range(20_000)], minlength=most + 1)
    weights = np.exp(-rate * np.arange(most + 1))
    assert stats.chisquare(drawn, 20_000 * weights / weights.sum()).pvalue > 1e-4
    assert draw_number(0, rate, random) == 0


@pytest.mark.slow
def test_a_rule_keeps_out_what_breaks_it(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"never": [["c", "a"]]}', encoding="utf-8")
    released = release(
        SMALL, "sacofa", epsilon=900, seed=1, depth=5, rules_file=str(path), rest="drop"
    ).variants.to_dict()
    assert released == {("a", "b", "c"): 300, ("a", "c"): 200, ("b",): 100}


@pytest.mark.slow
def test_harmful_prefixes_need_the_higher_count(tmp_path: Path) -> None:
    """Only the frequent one of two harmful prefixes is released."""
    variants = Variants.from_dict({("a", "b"): 400, ("b", "a"): 90, ("c", "a"): 300, ("c",): 500})
    path = tmp_path / "rules.json"
    path.write_text('{"never": [["b", "a"], ["c", "a"]]}', encoding="utf-8")
    seen: Counter[tuple[str, ...]] = Counter()
    for seed in range(20):
        released = release(
            variants, "sacofa", epsilon="0.3", seed=seed, depth=3, rules_file=str(path), as_published=True,
            threshold_harmful=200, threshold_harmless=50,
        )  # fmt: skip
        seen.update(set(released.variants.to_dict()) & {("b", "a", "c"), ("c", "a", "c"), ("c", "a"), ("b", "a")})
    assert seen[("b", "a")] == 0, "as an open prefix it is pruned, so it never ends"
    assert seen[("c", "a")] > 0


@pytest.mark.slow
@settings(max_examples=25)
@given(cases=traces, epsilon=st.fractions(Fraction(1, 10), 20), rule_share=st.none() | st.sampled_from([0, 0.3]))
def test_certified_the_charges_add_up_to_epsilon_exactly(
    cases: list[tuple[str, ...]], epsilon: Fraction, rule_share: float | None
) -> None:
    guarantee = release(log(cases), "sacofa", epsilon=epsilon, rule_share=rule_share).guarantee
    assert guarantee.proven
    assert sum(charge.epsilon for charge in guarantee.charges) == epsilon
    for_rules = sum(charge.epsilon for charge in guarantee.charges if "for the rules" in str(charge.purpose))
    assert for_rules == epsilon * (Fraction(1, 10) if rule_share is None else Fraction(str(rule_share)))


def test_as_published_reading_the_rules_off_the_log_leaves_no_guarantee() -> None:
    guarantee = release(SMALL, "sacofa", epsilon=1, depth=4, threshold_harmful=20, as_published=True).guarantee
    assert (guarantee.status, guarantee.epsilon, guarantee.nominal_epsilon) == ("none", None, 1.0)
    assert any("rules" in str(reason) for reason in guarantee.reasons)


@pytest.mark.parametrize(("score", "derived"), [("binary", 4.0), ("continuous", 0.8)])
def test_as_published_with_declared_rules_the_depth_and_the_bound_of_the_score_set_the_cost(
    tmp_path: Path, score: str, derived: float
) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"never": [["c", "a"]]}', encoding="utf-8")
    guarantee = release(
        SMALL, "sacofa", epsilon=1, depth=4, rules_file=str(path), score=score, score_bound=5, as_published=True
    ).guarantee
    assert (guarantee.status, guarantee.epsilon) == ("proven", derived)


def test_as_published_a_delta_narrows_the_noise_of_both_scores_alike(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"never": [["c", "a"]]}', encoding="utf-8")
    asked = {"epsilon": 1, "delta": "0.5", "depth": 4, "rules_file": str(path), "as_published": True}
    binary, continuous = (
        release(SMALL, "sacofa", score=score, score_bound=5, **asked).guarantee.epsilon
        for score in ("binary", "continuous")
    )
    assert binary == pytest.approx(4 * (1 + np.log(2)))
    assert continuous == pytest.approx(binary / 5)


@pytest.mark.parametrize("score", ["binary", "continuous"])
def test_both_scores_release_a_log_that_obeys_its_rules(score: str) -> None:
    variants = Variants.from_dict({("a", "b", "c"): 300, ("a", "c"): 200})
    released = release(variants, "sacofa", epsilon=50, seed=2, depth=5, score=score, as_published=True).variants
    assert set(variants.sequences) <= set(released.sequences)


@pytest.mark.parametrize(
    "parameters",
    [
        {"threshold_harmful": 3, "threshold_harmless": 5},
        {"threshold_harmful": 0},
        {"threshold_harmless": 0},
        {"rule_share": -0.1},
        {"rule_share": 1},
        {"score": "fuzzy"},
        {"score_bound": 0},
        {"rule_share": 0.2, "as_published": True},
        {"threshold_harmless": 5_000_000},
    ],
)
def test_nonsense_is_refused(parameters: dict) -> None:
    with pytest.raises(ParameterError):
        release(SMALL, "sacofa", **{"epsilon": 1, **parameters})


def test_rules_of_unknown_activities_are_refused_and_learning_beside_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"never": [["c", "x"]]}', encoding="utf-8")
    with refused(InputError, "rules-file-activity-unknown"):
        release(SMALL, "sacofa", epsilon=1, rules_file=str(path))
    with refused(ParameterError, "rules-file-and-learned"):
        release(SMALL, "sacofa", epsilon=1, rules_file=str(path), rule_share=0.1)


def test_an_empty_tree_has_one_open_prefix() -> None:
    assert NoisyPrefixTree(ABC).frontier == 1

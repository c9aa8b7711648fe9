"""SaCoFa: what is harmful, how many harmful ones enter, and what the release costs."""

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openly import release
from scipy import stats

from veilog.errors import InputError, ParameterError
from veilog.logs.variants import Variants
from veilog.methods._prefix_tree.tree import PrefixTree
from veilog.methods._relations import drawn_number
from veilog.methods.sacofa import _advanced, _broken_by, _History
from veilog.methods.sacofa.rules import Rules, exact_rules

ABC = ("a", "b", "c")
trace = st.lists(st.sampled_from(ABC), max_size=6).map(tuple)
traces = st.lists(trace, min_size=1, max_size=20)
squares = st.lists(st.booleans(), min_size=9, max_size=9).map(lambda bits: np.array(bits).reshape(3, 3))

SMALL = Variants.from_dict({("a", "b", "c"): 300, ("a", "c"): 200, ("b",): 100, ("c", "a"): 1})


def log(cases: list[tuple[str, ...]]) -> Variants:
    return Variants.from_dict(Counter(cases))


def rules_broken(rules: Rules, prefix: tuple[int, ...], ended: bool) -> int:
    """Straight from the definitions; occurrences for "never", last occurrences for "before", the end for "always"."""
    broken = int(not rules.first[prefix[0]]) if prefix else 0
    for i, b in enumerate(prefix):
        broken += sum(rules.never[a, b] for a in set(prefix[:i]))
    if len(prefix) + ended > 1:
        for b in set(prefix):
            last = max(i for i, activity in enumerate(prefix) if activity == b)
            broken += sum(rules.before[a, b] for a in range(3) if a not in prefix[:last])
    if ended:
        owed = {
            b for a in set(prefix) for b in range(3) if rules.always[a, b] and b not in prefix[prefix.index(a) + 1 :]
        }
        broken += len(owed)
    return broken


@pytest.mark.slow
@given(
    never=squares, always=squares, before=squares, first=st.lists(st.booleans(), min_size=3, max_size=3),
    walk=st.lists(st.integers(0, 2), min_size=1, max_size=6),
)  # fmt: skip
def test_the_rules_a_prefix_breaks_are_counted_as_defined(
    never: np.ndarray, always: np.ndarray, before: np.ndarray, first: list[bool], walk: list[int]
) -> None:
    rules = Rules(never, always, before, np.array(first))
    none, zero = np.zeros((1, 3), dtype=bool), np.zeros((1, 3), dtype=np.int64)
    history = _History(none, none, zero, np.zeros(1, dtype=np.int64))
    assert _broken_by(history, rules, is_first=True)[0].tolist() == [int(not f) for f in first] + [0]
    for i, activity in enumerate(walk):
        history = _advanced(history, rules, np.array([activity]), is_first=i == 0)
        prefix = tuple(walk[: i + 1])
        broken = _broken_by(history, rules, is_first=False)[0].tolist()
        assert broken[:3] == [rules_broken(rules, (*prefix, b), False) for b in range(3)]
        assert broken[3] == rules_broken(rules, prefix, True)


@pytest.mark.slow
@given(cases=traces)
def test_no_prefix_of_a_log_breaks_the_never_and_first_rules_of_that_log(cases: list[tuple[str, ...]]) -> None:
    rules = exact_rules(log(cases), ABC)
    rules = Rules(rules.never, rules.always, np.zeros_like(rules.before), rules.first)
    for case in cases:
        coded = tuple("abc".index(activity) for activity in case)
        for length in range(1, len(coded) + 1):
            assert rules_broken(rules, coded[:length], ended=length == len(coded)) == 0


def test_the_number_of_harmful_ones_has_the_distribution_of_the_exponential_mechanism() -> None:
    """Chi-squared; the seed is fixed, the false-alarm rate for a fresh one is 1e-4."""
    most, rate = 6, 0.4
    random = np.random.default_rng(11)
    drawn = np.bincount([drawn_number(most, rate, random) for _ in range(20_000)], minlength=most + 1)
    weights = np.exp(-rate * np.arange(most + 1))
    assert stats.chisquare(drawn, 20_000 * weights / weights.sum()).pvalue > 1e-4
    assert drawn_number(0, rate, random) == 0


@pytest.mark.slow
def test_a_rule_keeps_out_what_breaks_it(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"never": [["c", "a"]]}', encoding="utf-8")
    released = release(SMALL, "sacofa", epsilon=900, seed=1, depth=5, rules=str(path), rest="drop").variants.to_dict()
    assert released == {("a", "b", "c"): 300, ("a", "c"): 200, ("b",): 100}


@pytest.mark.slow
def test_harmful_prefixes_need_the_higher_count(tmp_path: Path) -> None:
    """At this epsilon many harmful prefixes are let in; of the two that occur one is frequent enough."""
    variants = Variants.from_dict({("a", "b"): 400, ("b", "a"): 90, ("c", "a"): 300, ("c",): 500})
    path = tmp_path / "rules.json"
    path.write_text('{"never": [["b", "a"], ["c", "a"]]}', encoding="utf-8")
    seen: Counter[tuple[str, ...]] = Counter()
    for seed in range(20):
        released = release(
            variants, "sacofa", epsilon="0.3", seed=seed, depth=3, rules=str(path), as_published=True,
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
    for_rules = sum(charge.epsilon for charge in guarantee.charges if "for the rules" in charge.purpose)
    assert for_rules == epsilon * (Fraction(1, 10) if rule_share is None else Fraction(str(rule_share)))


def test_as_published_reading_the_rules_off_the_log_leaves_no_guarantee() -> None:
    guarantee = release(SMALL, "sacofa", epsilon=1, depth=4, threshold_harmful=20, as_published=True).guarantee
    assert (guarantee.status, guarantee.epsilon, guarantee.nominal_epsilon) == ("none", None, 1.0)
    assert any("rules" in reason for reason in guarantee.reasons)


def test_as_published_with_declared_rules_it_costs_the_depth_times_epsilon(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"never": [["c", "a"]]}', encoding="utf-8")
    guarantee = release(SMALL, "sacofa", epsilon=1, depth=4, rules=str(path), as_published=True).guarantee
    assert (guarantee.status, guarantee.epsilon) == ("proven", 4.0)


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
    with pytest.raises(InputError, match="'x'"):
        release(SMALL, "sacofa", epsilon=1, rules=str(path))
    with pytest.raises(ParameterError, match="Leave one"):
        release(SMALL, "sacofa", epsilon=1, rules=str(path), rule_share=0.1)


def test_an_empty_tree_has_one_open_prefix() -> None:
    assert PrefixTree(ABC).frontier == 1

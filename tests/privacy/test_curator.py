"""The curator's answers have their charged sensitivity, and the account adds up."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.privacy.account.guarantee import EXPOSED, round_up, strength_of
from veilog.privacy.account.guessing_advantage import advantage_of
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Sensitivity

trace = st.lists(st.sampled_from("abcd"), max_size=5).map(tuple)
traces = st.lists(trace, min_size=1, max_size=30)


@contextmanager
def noise_off() -> Iterator[None]:
    """Turn noise off, to measure by how much one case changes exact answers."""

    def nothing(*arguments: object) -> np.ndarray:
        return np.zeros(next(a for a in reversed(arguments) if isinstance(a, int)), dtype=np.int64)

    with patch.object(noise, "discrete_laplace", nothing), patch.object(noise, "tsgd_noise", nothing):
        yield


def log(cases: list[tuple[str, ...]]) -> Variants:
    return Variants.from_dict(Counter(cases))


def length_and_first(sequences: Sequences) -> np.ndarray:
    """Map rows into 11 bins, the empty sequence into none."""
    first = np.array([0 if not s else 1 + (s[0] > "b") for s in sequences], dtype=int)
    return np.where(first == 0, -1, np.minimum(sequences.lengths, 4) * 2 + first)


def bins(variants: Variants) -> np.ndarray:
    return Curator(variants).histogram(length_and_first, 11, 1)


@pytest.mark.slow
@given(cases=traces, extra=trace)
def test_one_case_changes_the_count_by_one(cases: list[tuple[str, ...]], extra: tuple[str, ...]) -> None:
    with noise_off():
        assert Curator(log([*cases, extra])).count(1) - Curator(log(cases)).count(1) == 1


@pytest.mark.slow
@given(cases=traces, extra=trace, number=st.integers(1, 6), share=st.fractions("1/20", "19/20", max_denominator=20))
def test_one_case_changes_the_concentration_by_no_more_than_it_is_charged_for(
    cases: list[tuple[str, ...]], extra: tuple[str, ...], number: int, share: Fraction
) -> None:
    p, q = share.numerator, share.denominator
    with noise_off():
        curator = Curator(log([*cases, extra]))
        with_it, without = curator.concentration(number, share, 1), Curator(log(cases)).concentration(number, share, 1)
    assert with_it - without in {-p, q - p}
    assert curator.charges[0].sensitivity == Sensitivity.of(max(p, q - p))
    often = [count for _, count in Counter(cases).most_common(number)]
    assert without == q * sum(often) - p * len(cases)


@pytest.mark.slow
def test_the_noise_of_the_concentration_has_the_scale_that_is_charged() -> None:
    """The mean of 4000 draws fits scale 14 within 7 errors (false alarm below 1e-11)."""
    source = noise.seeded(5)
    variants = Variants.from_dict({("a",): 30, ("b",): 10})
    answers = [Curator(variants, randomness=source).concentration(1, Fraction(3, 10), "0.5") for _ in range(4000)]
    spread = np.abs(np.array(answers) - (10 * 30 - 3 * 40))
    assert spread.mean() == pytest.approx(14, abs=7 * 14 / 4000**0.5)


@pytest.mark.parametrize(("number", "share"), [(0, "1/2"), (True, "1/2"), (1.5, "1/2"), (3, "0"), (3, "1"), (3, "7/5")])
def test_a_concentration_that_makes_no_sense_is_refused_unasked(number: int, share: str) -> None:
    curator = Curator(log([("a",)]))
    with refused(ParameterError, "question-number-not-whole", "question-share-out-of-range"):
        curator.concentration(number, Fraction(share), 1)
    assert not curator.contacted


@pytest.mark.slow
@given(cases=traces, extra=trace)
def test_one_case_changes_one_bin_by_one(cases: list[tuple[str, ...]], extra: tuple[str, ...]) -> None:
    with noise_off():
        assert np.abs(bins(log([*cases, extra])) - bins(log(cases))).sum() <= 1


@pytest.mark.slow
@given(cases=traces, extra=trace)
def test_one_case_changes_one_variant_of_partitions_by_one(
    cases: list[tuple[str, ...]], extra: tuple[str, ...]
) -> None:
    with noise_off(), patch.object(noise, "tsgd_bound", lambda epsilon, delta: 0):
        with_it = Curator(log([*cases, extra])).partitions(1, 0.1).to_dict()
        without = Curator(log(cases)).partitions(1, 0.1).to_dict()
    difference = Counter(with_it)
    difference.subtract(without)
    assert {k: v for k, v in difference.items() if v} == {extra: 1}


@pytest.mark.slow
@given(cases=traces)
def test_an_assignment_is_asked_for_single_sequences(cases: list[tuple[str, ...]]) -> None:
    """The histogram of a log is the sum over its cases, each with its own bin."""
    with noise_off():
        together = bins(log(cases))
        alone = sum(bins(log([case])) for case in cases)
    assert np.array_equal(together, alone)


def test_only_sequences_and_no_counts_reach_an_assignment() -> None:
    seen = []
    Curator(log([("a",), ("a",), ("b",)])).histogram(lambda s: seen.append(s) or [0] * len(s), 1, 1)
    assert {type(s) for s in seen} == {Sequences}
    assert not any(hasattr(s, "counts") for s in seen)


@pytest.mark.slow
@given(size=st.integers(4, 60), keep_above=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_sparse_bins_are_valid_and_above_the_threshold(size: int, keep_above: int, seed: int) -> None:
    curator = Curator(log([("a",), ("a", "b"), ("a", "b")]), randomness=noise.seeded(seed))
    answer = curator.histogram(lambda s: s.lengths, size, 1, keep_above=keep_above)
    assert np.all(np.diff(answer.bins) > 0)
    assert np.all((answer.bins >= 0) & (answer.bins < size))
    assert np.all(answer.counts > keep_above)


@pytest.mark.slow
@pytest.mark.parametrize("keep_above", [0, 2])
def test_sparse_and_dense_histograms_have_one_distribution(keep_above: int) -> None:
    """Sparse and dense histograms have one distribution, of survivors and of counts.

    Chi-squared tests compare which of 5 bins survive (2 occupied, 3 empty) and, for one empty bin, with which count.
    The seeds are fixed; the false-alarm rate for fresh ones is 1e-4 each.
    """
    variants = log([("a",)] * 2 + [("a", "b", "c")] * 4)
    runs = 4000
    patterns: dict[str, Counter[tuple[int, ...]]] = {"sparse": Counter(), "dense": Counter()}
    values: dict[str, Counter[int]] = {"sparse": Counter(), "dense": Counter()}
    source = noise.seeded(7)
    for _ in range(runs):
        sparse = Curator(variants, randomness=source).histogram(lambda s: s.lengths, 5, "0.5", keep_above=keep_above)
        patterns["sparse"][tuple(sparse.bins.tolist())] += 1
        values["sparse"][min(int(sparse.counts[sparse.bins == 2].sum()), 9)] += 1
        dense = Curator(variants, randomness=source).histogram(lambda s: s.lengths, 5, "0.5")
        kept = np.where(dense > keep_above, dense, 0)
        patterns["dense"][tuple(np.flatnonzero(kept).tolist())] += 1
        values["dense"][min(int(kept[2]), 9)] += 1
    for counters in (patterns, values):
        outcomes = sorted(set(counters["sparse"]) | set(counters["dense"]))
        table = np.array([[counters[how][o] for o in outcomes] for how in ("sparse", "dense")])
        assert stats.chi2_contingency(table[:, table.sum(axis=0) >= 10]).pvalue > 1e-4


def test_as_many_empty_bins_survive_as_should() -> None:
    """Survivors among many empty bins are binomial in number; false-alarm rate 1e-4."""
    size, keep_above = 10**7, 60
    answer = Curator(log([("a",)]), randomness=noise.seeded(8)).histogram(
        lambda s: s.lengths, size, "0.1", keep_above=keep_above
    )
    chance = math.exp(-0.1 * (keep_above + 1)) / (1 + math.exp(-0.1))
    assert stats.binomtest(len(answer.bins), size, chance).pvalue > 1e-4
    assert stats.kstest(answer.bins / size, "uniform").pvalue > 1e-4


def test_a_huge_universe_costs_what_comes_back() -> None:
    size = 2**60
    answer = Curator(log([("a",)] * 100), randomness=noise.seeded(1)).histogram(
        lambda s: s.lengths, size, 1, keep_above=38
    )
    assert answer.bins[0] == 1
    assert answer.counts[0] > 38
    expected = size * math.exp(-39) / (1 + math.exp(-1))
    assert abs(len(answer.bins) - expected) < 6 * math.sqrt(expected)


def test_a_threshold_that_would_flood_the_memory_is_refused_before_anything_is_spent() -> None:
    curator = Curator(log([("a",)]))
    with refused(ParameterError, "histogram-empty-bins-survive"):
        curator.histogram(lambda s: s.lengths, 2**60, "0.1", keep_above=5)
    assert curator.guarantee().charges == ()


@pytest.mark.parametrize("size", [-1, 2**62])
def test_an_impossible_size_is_refused(size: int) -> None:
    with pytest.raises(ParameterError):
        Curator(log([("a",)])).histogram(lambda s: s.lengths, size, 1)


@pytest.mark.parametrize("assign", [lambda s: [0.5] * len(s), lambda s: [0], lambda s: s.nothing, lambda s: 1 // 0])
def test_an_assignment_that_fails_is_charged_and_says_nothing(assign: Any) -> None:
    curator = Curator(log([("a",), ("b",), ("c",)]))
    with refused(ParameterError, "question-function-failed") as caught:
        curator.histogram(assign, 3, 1)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert [c.epsilon for c in curator.charges] == [1]


@pytest.mark.parametrize("assign", [lambda s: [7] * len(s), lambda s: [3] * len(s), lambda s: [-2] * len(s)])
def test_a_bin_out_of_range_is_none(assign: Any) -> None:
    with noise_off():
        assert Curator(log([("a",), ("b",)])).histogram(assign, 3, 1).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "assign",
    [
        lambda s: np.arange(len(s)),
        lambda s: np.argsort(s.lengths, kind="stable"),
        lambda s: (s.lengths > s.lengths.mean()).astype(int),
        lambda s: np.full(len(s), len(s)),
    ],
    ids=["row numbers", "ranks", "above the mean", "how many there are"],
)
def test_a_function_that_looks_at_other_cases_is_refused(assign: Any) -> None:
    curator = Curator(log([("a",), ("b",), ("a", "b"), ("a", "b", "c"), ("c",)]))
    with refused(ParameterError, "question-function-mixes-cases"):
        curator.histogram(assign, 9, 1)
    with refused(ParameterError, "question-function-mixes-cases"):
        curator.sums(lambda s: (np.arange(len(s)), np.zeros(len(s), int), np.asarray(assign(s))), 1, 9, 1)
    assert len(curator.charges) == 2


def test_a_variant_that_nobody_has_is_never_released() -> None:
    variants = log([("a",)] * 50 + [("b",)] * 50)
    for seed in range(50):
        released = Curator(variants, randomness=noise.seeded(seed)).partitions("0.01", "0.5")
        assert set(released.to_dict()) <= {("a",), ("b",)}


@pytest.mark.slow
def test_a_single_case_is_released_with_probability_delta() -> None:
    """A single case is released with probability delta: here k = 2, P(k) = 0.0713."""
    variants, source = log([("a",)]), noise.seeded(4)
    k = noise.tsgd_bound(Fraction(1), Fraction(1, 10))
    chance = float(noise.tsgd_tail(Fraction(1), k)(60)[0]) / 2**60
    assert chance <= 0.1
    hits = sum(Curator(variants, randomness=source).partitions(1, "0.1").cases > 0 for _ in range(5000))
    assert stats.binomtest(hits, 5000, chance).pvalue > 1e-4


def test_charges_add_up_exactly() -> None:
    curator = Curator(log([("a",), ("b",)]))
    for _ in range(10):
        curator.count(Fraction(1, 10))
    curator.partitions("0.3", "1e-6")
    guarantee = curator.guarantee()
    assert guarantee.proven
    failure = noise.tsgd_failure(Fraction(3, 10), noise.tsgd_bound(Fraction(3, 10), Fraction(1, 10**6)))
    assert (guarantee.epsilon, guarantee.delta) == (1.3, round_up(failure))
    assert [c.question for c in guarantee.charges] == ["count"] * 10 + ["partitions"]
    assert "epsilon = 1.3, delta = 9.14787e-07" in guarantee.in_words()


def test_three_thirds_are_one() -> None:
    curator = Curator(log([("a",)]))
    for _ in range(3):
        curator.count(Fraction(1, 3))
    assert curator.guarantee().epsilon == 1.0


def test_a_peek_leaves_no_guarantee() -> None:
    curator = Curator(log([("a",)]))
    curator.count(1)
    curator.peek("rules read")
    guarantee = curator.guarantee(nominal_epsilon=1)
    assert (guarantee.status, guarantee.epsilon, guarantee.nominal_epsilon) == ("none", None, 1.0)
    assert guarantee.reasons == (Message("rules read"),)


def test_a_seed_leaves_no_guarantee() -> None:
    guarantee = Curator(log([("a",)]), randomness=noise.seeded(3)).guarantee()
    assert guarantee.status == "none"
    assert "seed" in guarantee.in_words()


def test_deltas_that_add_up_to_one_leave_no_guarantee() -> None:
    curator = Curator(log([("a",)]))
    for number in range(1, 6):  # k is 1, and P(1) about 0.212
        curator.partitions(1, "0.5")
        assert curator.guarantee().proven == (number < 5)


def test_public_facts_taken_from_the_log_are_conditions() -> None:
    curator = Curator(log([("b", "a")]), domain=ALL_FROM_LOG)
    assert curator.guarantee().conditions == ()
    assert (curator.activities, curator.max_length) == (("a", "b"), 2)
    assert {c.code for c in curator.guarantee().conditions} == {"activities-from-log", "length-from-log"}


def test_public_facts_that_nobody_declared_cannot_be_read() -> None:
    curator = Curator(log([("b", "a")]))
    for fact in ("activities", "max_length"):
        with refused(ParameterError, "domain-not-declared"):
            getattr(curator, fact)
    assert not curator.contacted


def test_declared_facts_need_no_condition() -> None:
    curator = Curator(log([("b", "a")]), domain=Domain.of(["a", "b", "z"], 9))
    assert (curator.activities, curator.max_length) == (("a", "b", "z"), 9)
    assert curator.guarantee().conditions == ()


@pytest.mark.slow
@given(cases=traces, extra=trace, length=st.integers(1, 4))
def test_fitting_a_domain_keeps_neighbours_neighbours(
    cases: list[tuple[str, ...]], extra: tuple[str, ...], length: int
) -> None:
    domain = Domain.of(list("abd"), length)
    expected = Counter(tuple(a for a in case if a in "abd")[:length] for case in cases)
    assert domain.fit(log(cases)).to_dict() == expected
    expected[tuple(a for a in extra if a in "abd")[:length]] += 1
    assert domain.fit(log([*cases, extra])).to_dict() == expected


@pytest.mark.parametrize("activities", [[], ["a", "a"], "abc", [1]])
def test_a_nonsensical_domain_is_refused(activities: object) -> None:
    with pytest.raises(ParameterError):
        Domain(activities)  # type: ignore[arg-type]


def test_the_guessing_advantage_is_told_with_and_without_the_delta_where_there_is_one() -> None:
    pure, approximate = Curator(log([("a",)])), Curator(log([("a",)]))
    pure.count(1)
    approximate.partitions(1, "1e-3")
    assert pure.guarantee().guessing_advantage_without_delta is None
    found = approximate.guarantee()
    assert found.guessing_advantage_without_delta == round_up(advantage_of(1))
    assert found.guessing_advantage == round_up(advantage_of(1, approximate.charges[0].delta))


def test_a_share_has_a_denominator_of_at_most_a_million() -> None:
    curator = Curator(log([("a",)]), randomness=noise.seeded(1))
    curator.concentration(1, Fraction(1, 10**6), 1)
    with refused(ParameterError, "question-share-denominator-large"):
        curator.concentration(1, Fraction(1, 10**6 + 1), 1)
    assert len(curator.charges) == 1


def test_a_failure_that_is_rounded_up_is_charged_as_no_more_than_the_delta_that_was_given() -> None:
    """A charge is never above the given delta, although its probability is rounded up.

    This delta is between the exact and the rounded one.
    """
    delta = Fraction(noise.tsgd_tail(Fraction(1), 9)(400)[1], 2**400)
    assert noise.tsgd_bound(Fraction(1), delta) == 9 and noise.tsgd_failure(Fraction(1), 9) > delta
    curator = Curator(log([("a",)]))
    curator.partitions(1, delta)
    assert [charge.delta for charge in curator.charges] == [delta]


def test_what_comes_before_the_first_question_or_look_comes_once_and_before_it() -> None:
    for ask in (lambda asked: asked.count(1), lambda asked: asked.peek("a look")):
        asked, begun = Curator(Variants.from_dict({("a",): 3}), domain=Domain(("a",), 2)), list[bool]()
        asked.before_first(lambda asked=asked, begun=begun: begun.append(asked.contacted))
        ask(asked)
        asked.count(1)
        assert begun == [False]


def test_a_log_of_an_unknown_size_is_weighed_as_one_of_a_single_case() -> None:
    for border in EXPOSED:
        assert strength_of(0.0, border) == strength_of(0.0, border, 1) != strength_of(0.0, border, 2)

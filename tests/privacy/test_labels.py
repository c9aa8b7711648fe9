"""Private activities: sensitivity, threshold and both inequalities, enumerated."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refused
from scipy import stats

import veilog
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.privacy.cases import Cases
from veilog.privacy.curator import Curator
from veilog.privacy.domain import PRIVATELY, Domain
from veilog.privacy.histograms import (
    MOST,
    WEIGHT,
    _holds,
    frequent_labels,
    label_threshold,
    label_weights,
    labels_noise,
)
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.intervals import exp_minus, is_at_most

BUDGETS = [
    (Fraction(e), Fraction(d)) for e in ("0.02", "0.1", "0.5", "1", "3") for d in ("1e-9", "1e-6", "1e-3", "0.2")
]
trace = st.lists(st.sampled_from("abcdefg"), max_size=9).map(tuple)


def units(cases: list[tuple[str, ...]]) -> Counter[str]:
    variants = Variants.from_dict(Counter(cases))
    return Counter(dict(zip(variants.labels, label_weights(variants).tolist(), strict=True)))


# Sensitivity ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(cases=st.lists(trace, max_size=12), extra=trace)
def test_a_case_adds_its_weight_evenly_to_its_labels_and_to_no_other(
    cases: list[tuple[str, ...]], extra: tuple[str, ...]
) -> None:
    before, after = units(cases), units([*cases, extra])
    labels = set(extra)
    added = {label: after[label] - before[label] for label in after.keys() | before.keys()}
    assert {label for label, n in added.items() if n} == labels
    assert {added[label] for label in labels} <= {WEIGHT // max(1, len(labels))}
    assert sum(abs(n) for n in added.values()) <= WEIGHT


@pytest.mark.parametrize("labels", [1, 2, 3, 7, MOST - 1, MOST, MOST + 1, 3 * MOST])
def test_a_case_with_many_labels_adds_no_more_than_any_other(labels: int) -> None:
    names = [f"{i:05d}" for i in range(labels)]
    added = units([tuple(reversed(names))])
    assert sum(added.values()) <= WEIGHT
    found = sorted(name for name, n in added.items() if n)
    assert found == sorted(names[-MOST:]), "the first that come"
    assert set(added.values()) - {0} == {WEIGHT // min(labels, MOST)}


@pytest.mark.slow
def test_what_a_case_has_beyond_its_labels_that_count_is_never_found() -> None:
    """A case of 100,000 labels of its own shows none beyond those that count.

    Once, one of them was found in 9 of 100 releases, at a delta of 0.001.
    """
    names = [f"{i:06d}" for i in range(100_000)]
    case = Variants.from_sequences([tuple(names)])
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    everything = replace(labels_noise(epsilon, delta), above=-(2**40))
    found = frequent_labels(case, everything, noise.seeded(1))
    assert found == tuple(names[:MOST]), "whatever the noise says"
    threshold = label_threshold(epsilon, delta)
    assert is_at_most(noise.laplace_tail(epsilon / WEIGHT, threshold - WEIGHT // MOST), delta / len(found))


def test_weights_by_hand() -> None:
    whole, half = WEIGHT, WEIGHT // 2
    assert units([("a", "a", "b"), ("a",), ("a",), (), ("c", "b", "c")]) == {
        "a": half + 2 * whole,
        "b": half + half,
        "c": half,
    }


# Threshold ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_threshold_holds_for_every_number_of_labels_and_is_hardly_too_large(
    epsilon: Fraction, delta: Fraction
) -> None:
    """The threshold holds: for some numbers by intervals, for all by logarithms."""
    threshold = label_threshold(epsilon, delta)
    some = sorted({1, 2, 3, 5, 17, 100, 511, MOST - 1, MOST})
    assert all(_holds(threshold, d, epsilon, delta) for d in some)
    assert not all(_holds(threshold - 2, d, epsilon, delta) for d in (1, MOST))
    d = np.arange(1, MOST + 1)
    above = threshold - WEIGHT // d
    scale = float(epsilon) / WEIGHT
    tail = -scale * (above + 1) - math.log1p(math.exp(-scale))  # its logarithm
    slack = 1e-9
    assert np.all(tail <= np.log(float(delta) / d) + slack)
    assert np.all(tail <= np.log(-np.expm1(-float(epsilon) / d)) + slack)


def test_what_holds_is_the_two_inequalities_and_nothing_less() -> None:
    """Each inequality decides in its turn: one at a small delta, one at a large one."""
    for epsilon, delta in ((Fraction(1), Fraction(1, 10**6)), (Fraction(1, 100), Fraction(1, 2))):
        for d in (1, 3, MOST):
            tails = []
            for threshold in (label_threshold(epsilon, delta), WEIGHT * 3, WEIGHT * 12, WEIGHT // d - 1):
                above = threshold - WEIGHT // d
                chance = noise.laplace_tail(epsilon / WEIGHT, above) if above >= 0 else None
                expected = (
                    chance is not None
                    and is_at_most(chance, delta / d)
                    and is_at_most(
                        chance, 1 - Fraction(exp_minus(epsilon / d)(256)[1], 2**256)
                    )  # exp to 256 bits: no tail here is nearer than that
                )
                assert _holds(threshold, d, epsilon, delta) == expected
                tails.append(expected)
            assert tails[0] and not tails[3]


# Guarantee ------------------------------------------------------------------------------------------------------------


def chances(weights: tuple[int, ...], threshold: int, epsilon: Fraction) -> list[float]:
    """Return the probability of finding each label, from the law of the noise."""
    scale = float(epsilon) / WEIGHT
    a = math.exp(-scale)

    def tail(above: int) -> float:
        if above >= 0:
            return math.exp(-scale * (above + 1)) / (1 + a)
        return 1 - math.exp(scale * above) / (1 + a)  # P(X > -m) = 1 - P(X >= m)

    return [tail(threshold - weight) for weight in weights]


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(e, d) for e, d in BUDGETS if d in (Fraction(1, 10**6), Fraction(1, 5))]
)
@pytest.mark.parametrize("new", [0, 1, 2, 3])
@pytest.mark.parametrize("old", [0, 1, 2, 3])
def test_what_is_found_is_private(old: int, new: int, epsilon: Fraction, delta: Fraction) -> None:
    """One more case has a hockey-stick divergence of at most delta, both ways.

    All sets of labels that may be found are enumerated. The case has ``old`` labels of the log and ``new`` ones of its
    own.
    """
    d = old + new
    if d == 0:
        return
    threshold, share = label_threshold(epsilon, delta), WEIGHT // d
    near = int(threshold * 0.9)
    for known in ((WEIGHT,) * 3, (near, WEIGHT, 5 * WEIGHT), (threshold, near, 3 * threshold)):
        before = chances(known, threshold, epsilon)
        grown = tuple(w + share * (i < old) for i, w in enumerate(known))
        after = chances((*grown, *[share] * new), threshold, epsilon)
        before += [0.0] * new  # labels that no case has are never found
        apart = back = 0.0
        for found in itertools.product((0, 1), repeat=3 + new):
            p, q = (math.prod(c if f else 1 - c for c, f in zip(side, found, strict=True)) for side in (before, after))
            apart += max(0.0, q - math.exp(epsilon) * p)
            back += max(0.0, p - math.exp(epsilon) * q)
        assert apart <= float(delta) * (1 + 1e-9)
        assert back <= 1e-12, "without the new case nothing new is found: a pure ratio"


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_many_labels_of_its_own_do_not_give_a_case_away(epsilon: Fraction, delta: Fraction) -> None:
    """Any number of new labels of a case keeps both inequalities.

    At least one is found with probability at most delta, and none with probability at least exp(-epsilon).
    """
    threshold = label_threshold(epsilon, delta)
    for d in (*range(1, 40), 100, 1000, MOST):
        chance = chances((WEIGHT // d,), threshold, epsilon)[0]
        assert -math.expm1(d * math.log1p(-chance)) <= float(delta) * (1 + 1e-9)
        assert d * math.log1p(-chance) >= -float(epsilon) * (1 + 1e-9)


def test_without_a_delta_nothing_can_be_found() -> None:
    with refused(ParameterError, "activities-search-without-delta"):
        label_threshold(Fraction(1), Fraction(0))


# The question ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_labels_are_found_as_often_as_the_noise_says() -> None:
    """Labels about the threshold are found as often as stated (false alarm 1e-9)."""
    epsilon, delta = Fraction(1), Fraction(1, 20)
    threshold = label_threshold(epsilon, delta)
    at = round(threshold / WEIGHT)
    log = Variants.from_dict({("a",): at - 1, ("b",): at, ("c",): at + 1, ("d", "c"): 2, ("e",): 1})
    source, runs = noise.seeded(3), 2000
    seen = Counter(name for _ in range(runs) for name in frequent_labels(log, labels_noise(epsilon, delta), source))
    expected = chances(tuple(label_weights(log).tolist()), threshold, epsilon)
    for name, chance in zip(log.labels, expected, strict=True):
        table = [seen[name], runs - seen[name]]
        assert stats.chisquare(table, [runs * chance, runs * (1 - chance)]).pvalue > 1e-9, name
    assert 0.2 < seen["b"] / runs < 0.8, "or the test shows little"


@pytest.mark.slow
def test_the_question_asks_what_it_is_charged_for() -> None:
    """The query's noise and threshold are those of its charged epsilon and delta.

    A label near the threshold is found with the chance that follows, at a false-alarm rate of 1e-9.
    """
    epsilon, delta = Fraction("0.5"), Fraction("0.3")
    threshold = label_threshold(epsilon, delta)
    log, runs, found = Variants.from_dict({("a",): 400, ("b",): round(threshold / WEIGHT) + 1}), 1500, 0
    source = noise.seeded(11)
    for _ in range(runs):
        curator = Curator(log, domain=Domain(PRIVATELY, 4), randomness=source)
        found += "b" in curator.find_activities(epsilon, delta)
        (charge,) = curator.charges
        assert (charge.question, charge.epsilon, charge.delta) == ("labels", epsilon, delta)
    chance = chances(tuple(label_weights(log).tolist()), threshold, epsilon)[1]
    assert 0.3 < chance < 0.9, "or the test shows little"
    assert stats.binomtest(found, runs, chance).pvalue > 1e-9


@pytest.mark.slow
@given(cases=st.lists(trace, min_size=1, max_size=12))
@example(cases=[("a",)])
def test_a_label_that_nobody_has_is_never_found_and_a_frequent_one_is(cases: list[tuple[str, ...]]) -> None:
    variants = Variants.from_dict(Counter([*cases, *[("z",)] * 400]))
    curator = Curator(variants, domain=Domain(PRIVATELY, 9), randomness=noise.seeded(len(cases)))
    found = curator.find_activities(1, "1e-6")
    assert "z" in found and set(found) <= set(variants.labels)
    assert list(found) == sorted(found)
    assert curator.activities == found and set(curator._variants.labels) <= set(found)


def test_events_have_the_found_labels_alone_also_where_they_were_asked_about_before() -> None:
    """Events keep only the found labels, also if the window was asked for first."""
    frame = pd.DataFrame({"case": [str(i) for i in range(400)], "activity": "a", "timestamp": "2024-01-01"})
    rare = pd.DataFrame({"case": ["0"], "activity": ["b"], "timestamp": ["2024-01-02"]})
    log = veilog.read(pd.concat([frame, rare]))
    curator = Curator(log.variants, log=log, domain=Domain(PRIVATELY, 9), randomness=noise.seeded(2))
    assert curator.events.window[1].day == 2, "all begin on the first"
    found, lengths = curator.find_activities(1, "1e-6"), []
    assert found == ("a",)

    def of_lengths(cases: Cases) -> tuple[list[int], list[int], list[int]]:
        lengths.append(int(np.diff(cases.offsets).max()))
        return [], [], []

    curator.events.sums(of_lengths, 1, 1, 1, alphabet=found)
    assert max(lengths) == 1 == curator._variants.lengths.max()


def test_where_no_label_is_frequent_the_question_is_paid_for_and_says_so() -> None:
    curator = Curator(Variants.from_dict({("a",): 1}), domain=Domain(PRIVATELY, 4), randomness=noise.seeded(1))
    with refused(ParameterError, "activities-none-found"):
        curator.find_activities(1, "1e-6")
    assert [c.epsilon for c in curator.charges] == [1]


@pytest.mark.parametrize("domain", [Domain(), Domain("log"), Domain(("a",))])
def test_labels_are_found_only_where_that_is_asked_for(domain: Domain) -> None:
    curator = Curator(Variants.from_dict({("a",): 400}), domain=domain)
    with refused(ParameterError, "activities-already-declared"):
        curator.find_activities(1, "1e-6")
    assert not curator.contacted


def test_a_sample_finds_no_labels_of_its_own() -> None:
    curator = Curator(Variants.from_dict({("a",): 400}), domain=Domain(PRIVATELY, 4), randomness=noise.seeded(1))
    with refused(ParameterError, "activities-already-declared"):
        curator.subsample(Fraction(1, 2)).find_activities(1, "1e-6")
    assert not curator.contacted


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(9), Fraction(40)])
def test_either_end_of_the_numbers_of_labels_decides_in_its_turn(epsilon: Fraction) -> None:
    """The threshold fits cases with most labels (small epsilon) and with one (large)."""
    delta = Fraction(1, 10**6)
    threshold = label_threshold(epsilon, delta)
    assert all(_holds(threshold, d, epsilon, delta) for d in (1, 2, MOST))
    assert not all(_holds(threshold - 2, d, epsilon, delta) for d in (1, MOST))


def test_a_threshold_in_noise_as_wide_as_fits_is_found_and_in_wider_is_refused() -> None:
    least = Fraction(200, 2**62) * WEIGHT
    assert label_threshold(least, Fraction(1, 2)) > 0
    with refused(ParameterError, "noise-scale-too-large"):
        label_threshold(least * Fraction(999, 1000), Fraction(1, 2))


def test_what_a_case_adds_does_not_depend_on_how_many_labels_others_have() -> None:
    cases = [(f"{i:04d}", f"{i + 1:04d}") for i in range(0, 3 * MOST, 2)]
    assert set(units(cases).values()) == {WEIGHT // 2}


def test_a_label_is_found_iff_its_units_and_noise_are_above_the_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism, case = labels_noise(Fraction(1), Fraction(1, 100)), Variants.from_dict({("a",): 1})
    for over in (-1, 0, 1):
        drawn = np.array([mechanism.above - WEIGHT + over])
        monkeypatch.setattr(noise, "discrete_laplace", lambda epsilon, n, source, drawn=drawn: drawn)
        assert frequent_labels(case, mechanism, noise.seeded(1)) == (("a",) if over > 0 else ())

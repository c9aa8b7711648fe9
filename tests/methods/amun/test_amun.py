"""Amun meets its worked example, calibration, requirement R1 and order of times."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from amun_tools import MINUTES_OF_TABLE_2, MODES, SECOND, WORST, by_case, example, log_of, released, times_of, view_of
from hypothesis import given, settings
from hypothesis import strategies as st

from veilog.errors import ParameterError
from veilog.messages import Message
from veilog.methods._sampling import Frame, copies_of_cases, noisy_cases, sampled_counts
from veilog.methods.amun import (
    Precision,
    epsilons_of,
    oversampling_epsilon,
    prior_knowledge,
    too_well_known,
)
from veilog.privacy.account.guessing_advantage import epsilon_of
from veilog.privacy.mechanisms import noise

# The worked example ---------------------------------------------------------------------------------------------------


def test_the_contingency_table_is_that_of_table_4() -> None:
    view = view_of(example())
    filtered = view.only(np.arange(1, 6))
    names = [view.automaton.labels[c] for c in view.automaton.codes.tolist()]
    # s0 -A, s0 -D, s4 -A, s5 -B, s5 -E, s2 -C
    assert names == ["A", "D", "A", "B", "E", "C"]
    assert filtered.contingency.tolist() == [3, 2, 2, 3, 2, 5]
    assert view.contingency.tolist() == [4, 2, 2, 4, 2, 6]


def test_the_priors_are_those_of_table_2() -> None:
    view = view_of(example())
    known = prior_knowledge(view, 0.3, MINUTES_OF_TABLE_2)
    third, half, sixth = Fraction(1, 3), Fraction(1, 2), Fraction(1, 6)
    expected = [
        [third, Fraction(3, 4), third],
        [third, WORST, WORST, third],
        [half, half, sixth],
        [half, WORST, Fraction(1, 4), third],
        [half, WORST, sixth],
        [sixth, half, sixth],
    ]
    assert by_case(view, known.priors) == [pytest.approx([float(p) for p in row], abs=1e-15) for row in expected]


def test_case_1_is_filtered_and_the_new_priors_and_epsilons_are_those_of_table_3() -> None:
    view = view_of(example())
    known = prior_knowledge(view, 0.3, MINUTES_OF_TABLE_2)
    assert np.unique(view.owners[too_well_known(known.priors, 0.3)]).tolist() == [0]
    left = view.only(np.arange(1, 6))
    known = prior_knowledge(left, 0.3, MINUTES_OF_TABLE_2)
    fifth, third, three = Fraction(1, 5), Fraction(1, 3), Fraction(3, 5)
    expected = [
        [fifth, WORST, WORST, fifth],
        [three, third, fifth],
        [three, WORST, third, fifth],
        [three, WORST, fifth],
        [fifth, third, fifth],
    ]
    assert by_case(left, known.priors) == [pytest.approx([float(p) for p in row], abs=1e-15) for row in expected]
    epsilon = {fifth: 1.386, third: 1.240, three: 1.792, WORST: 1.238}
    rounded = [[round(e, 3) for e in row] for row in by_case(left, epsilons_of(known.priors, 0.3))]
    assert rounded == [[epsilon[p] for p in row] for row in expected]
    assert round(float(epsilon_of(0.3)), 3) == 1.238


def test_filtering_the_example_says_how_many_cases_remain_and_releases_no_other_variant() -> None:
    result = released(example(), mode="filtering", guessing_advantage=0.3, duration_precision=600, seed=3)
    assert result.remarks[0] == Message("amun-cases-kept", kept=5, cases=6, advantage=0.3)
    assert set(result.variants.to_dict()) <= set(example().variants.to_dict())


# Calibration ----------------------------------------------------------------------------------------------------------


def brute_force(values: list[int], precision: int, advantage: float, clamped: bool) -> list[float]:
    """Return the rule of the worked example, or equation (1), in exact fractions."""
    if min(values) == max(values):
        return [(1 - advantage) / 2] * len(values)

    def distribution(x: int) -> Fraction:
        return Fraction(sum(v <= x for v in values), len(values))

    lowest, highest = (min(values), max(values)) if clamped else (-(10**9), 10**9)
    return [float(distribution(min(v + precision, highest)) - distribution(max(v - precision, lowest))) for v in values]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 40)), min_size=1, max_size=25),
    st.integers(1, 20),
    st.booleans(),
)
def test_priors_are_those_of_the_rule_for_every_group(
    cases: list[tuple[str, int]], precision: int, clamped: bool
) -> None:
    """Two transitions into the end; their values must not see each other."""
    view = view_of(log_of([[(name, 0), ("end" + name, seconds)] for name, seconds in cases]))
    known = prior_knowledge(view, 0.2, Precision.of(1, precision), clamped=clamped)
    for name in {name for name, _ in cases}:
        rows = [2 * i + 1 for i, (other, _) in enumerate(cases) if other == name]
        values = [seconds for other, seconds in cases if other == name]
        # Equal ends would share a transition. The two names lead to separate ends, so each is a group.
        assert known.priors[rows].tolist() == pytest.approx(brute_force(values, precision, 0.2, clamped), abs=1e-12)


@pytest.mark.slow
@given(st.floats(0.001, 0.999), st.floats(0.01, 0.9))
def test_the_epsilon_of_a_prior_is_the_largest_that_keeps_the_posterior_within_the_advantage(
    prior: float, advantage: float
) -> None:
    epsilon = float(epsilons_of(np.array([prior]), advantage)[0])
    posterior = 1 / (1 + math.exp(-epsilon) * (1 - prior) / prior)
    if prior + advantage < 0.999:
        assert posterior == pytest.approx(prior + advantage, abs=1e-9)
    assert epsilon >= float(epsilon_of(advantage)) * (1 - 1e-9)


def test_where_the_formula_gives_no_epsilon_or_an_infinite_one_the_most_noise_takes_its_place() -> None:
    worst = float(epsilon_of(0.3))
    assert epsilons_of(np.array([0.0, 0.7, 0.9, 1.0, 0.35]), 0.3) == pytest.approx([worst] * 5, rel=1e-12)


@pytest.mark.parametrize("advantage", [1e-6, 0.01, 0.2, 0.3, 0.4, 0.9, 0.999, 1 - 1e-9])
def test_the_epsilon_of_oversampling_solves_equation_9(advantage: float) -> None:
    epsilon = oversampling_epsilon(advantage)
    two_sided = math.tanh(epsilon / 4)
    assert math.exp(-epsilon) * two_sided + 1 - math.exp(-epsilon) == pytest.approx(advantage, rel=1e-9)
    assert epsilon < 2 * math.log((1 + advantage) / (1 - advantage))


def test_the_closed_form_of_proposition_a6_is_the_printed_one() -> None:
    for d in (0.1, 0.2, 0.3, 0.4, 0.7):
        c = 6 ** (1 / 3)
        b = (math.sqrt(3) * math.sqrt(2 * d**3 + 21 * d**2 - 48 * d + 25) - 9 * d + 9) ** (1 / 3)
        assert oversampling_epsilon(d) == pytest.approx(-2 * math.log(b / c**2 - (d - 1) / (c * b)), rel=1e-12)


def test_a_guess_is_more_often_right_by_no_more_than_the_advantage() -> None:
    """An attacker with the worst-case prior gains no more than the advantage.

    The attacker knows that a value is 0 or the whole range.
    """
    n, advantage = 40_000, 0.3
    epsilon = float(epsilon_of(advantage))
    drawn = noise.discrete_laplace(Fraction(1, 2**20), n, noise.seeded(1)) / 2**20 / epsilon
    prior = (1 - advantage) / 2
    # In units of the range: the noisy value if it is the latter is 1 + drawn.
    ratio = np.exp(-epsilon * np.abs(drawn) + epsilon * np.abs(drawn + 1))
    posterior = 1 / (1 + (1 - prior) / prior / ratio)
    assert posterior.max() <= prior + advantage + 1e-9
    assert posterior.max() > prior + advantage - 1e-3


# R1, order and frame --------------------------------------------------------------------------------------------------

CASES = st.lists(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**6)), min_size=1, max_size=5), min_size=1, max_size=15
)


@pytest.mark.slow
@settings(max_examples=60)
@given(CASES, st.sampled_from(MODES), st.sampled_from([0.1, 0.3, 0.6]), st.integers(0, 5))
def test_no_variant_is_new_oversampling_keeps_all_and_time_never_runs_backwards(
    cases: list[list[tuple[str, int]]], mode: str, advantage: float, seed: int
) -> None:
    log = log_of([sorted(case, key=lambda event: event[1]) for case in cases])
    try:
        result = released(log, mode=mode, guessing_advantage=advantage, seed=seed)
    except ParameterError as error:
        assert error.code == "amun-all-cases-deleted" or (mode, error.code) == ("filtering", "amun-all-cases-filtered")
        assert mode != "oversampling"
        return
    before, after = log.variants.to_dict(), result.log.variants.to_dict()
    assert set(after) <= set(before)
    if mode == "oversampling":
        assert all(after[variant] >= count for variant, count in before.items())
    raw = [t for case in times_of(log) for t in case]
    for times in times_of(result.log):
        assert times == sorted(times)
        assert min(raw) // SECOND * SECOND <= times[0] and times[-1] <= max(raw)


@pytest.mark.nightly
@settings(max_examples=60)
@given(CASES, st.lists(st.integers(-4, 4), min_size=80, max_size=80), st.integers(0, 5))
def test_the_noise_of_every_transition_is_reached_and_never_below_no_case(
    cases: list[list[tuple[str, int]]], numbers: list[int], seed: int
) -> None:
    view = view_of(log_of(cases))
    had = view.contingency
    for sign in (1, -1):
        needed = sign * np.abs(np.array(numbers[: len(had)] + [0] * (len(had) - 80)))
        rng = np.random.default_rng(seed)
        left = sampled_counts(view, needed, rng)
        copies = copies_of_cases(view, left, rng)
        has = np.bincount(view.transitions, weights=copies[view.owners], minlength=len(had)).astype(int)
        assert (left >= 0).all() and copies.sum() == left.sum()
        if sign > 0:
            assert (has - had >= needed).all() and (copies >= 1).all()
        else:
            assert (had - has >= np.minimum(-needed, had)).all() and (copies <= 1).all()
        of_variant = np.bincount(np.unique(view.variants, return_inverse=True)[1], weights=copies)
        assert of_variant.tolist() == left.tolist()


def test_as_many_cases_come_and_go_as_the_noise_says_and_none_goes_twice() -> None:
    view = view_of(log_of([[("a", 0)]] * 30 + [[("b", 0)]] * 10))
    rng = np.random.default_rng(0)
    assert sampled_counts(view, np.array([5, -4]), rng).tolist() == [35, 6]
    assert sampled_counts(view, np.array([0, -40]), rng).tolist() == [30, 0]


@pytest.mark.slow
def test_transitions_are_picked_by_their_counts() -> None:
    """Transitions are picked by their counts.

    x (400 cases) needs three more cases, a (300 of them) one. If a comes first, its case and three for x make four; if
    x does, only the one time in 64 that none of its three took a. So four come with 300/700 + 400/700/64.
    """
    view = view_of(log_of([[("x", 0), ("a", 1), ("z", 2)]] * 300 + [[("x", 0), ("b", 1), ("z", 2)]] * 100))
    names = [view.automaton.labels[code] for code in view.automaton.codes.tolist()]
    needed = np.array([{"x": 3, "a": 1}.get(name, 0) for name in names])
    rng = np.random.default_rng(3)
    runs = 3_000
    four = sum(int(sampled_counts(view, needed, rng).sum()) == 404 for _ in range(runs))
    chance = 300 / 700 + 400 / 700 / 64
    assert abs(four - runs * chance) < 4 * math.sqrt(runs * chance * (1 - chance))


def test_replicas_are_drawn_by_the_number_of_cases_of_a_variant() -> None:
    """A quarter of 400 more cases through the first transition has the rare variant."""
    view = view_of(log_of([[("x", 0), ("a", 1), ("z", 2)]] * 300 + [[("x", 0), ("b", 1), ("z", 2)]] * 100))
    first = int(view.transitions[0])
    needed = np.zeros(len(view.automaton), dtype=np.int64)
    needed[first] = 4_000
    left = sampled_counts(view, needed, np.random.default_rng(1))
    assert left.sum() == 4_400
    assert abs(left[1] - 100 - 1000) < 5 * math.sqrt(4_000 * 0.25 * 0.75)


# Times ----------------------------------------------------------------------------------------------------------------


def test_noise_has_the_scale_of_range_over_epsilon_times_the_copies() -> None:
    n, scale = 4_000, 50.0
    view = view_of(log_of([[("a", 5_000_000), ("b", 5_500_000)]] * n))
    frame = Frame(0, 10_000_000 * SECOND, 20_000_000 * SECOND)
    for number in (1, 3):
        copies = np.full(n, number)
        scales = np.where(view.opens, 0.0, scale * SECOND)
        cases, times = noisy_cases(view, copies, scales, frame, noise.seeded(5))
        moved = np.abs((times[1::2] - times[::2]) / SECOND - 500_000)
        assert len(cases) == n * number
        assert moved.mean() == pytest.approx(scale * number, rel=0.05)  # E|Laplace(s)| = s
        assert np.unique(moved).size > 20


@pytest.mark.parametrize("seconds", [0, 7_200])
def test_times_that_are_all_equal_are_not_released_exactly(seconds: int) -> None:
    """Equal times get noise, although their range is 0 as published (Table 5)."""
    log = log_of([[("a", 1_000_000 * i), ("b", 1_000_000 * i + seconds)] for i in range(300)])
    result = released(log, mode="oversampling", guessing_advantage=0.3, seed=1)
    gaps = Counter((b - a) // SECOND for a, b in times_of(result.log))
    if seconds:
        assert gaps[seconds] < 20
        assert np.std(list(gaps.elements())) > seconds / 2
    else:
        assert gaps[0] < 0.6 * gaps.total()  # half of the noise is negative, and no time is
        assert max(gaps) > 20


def test_a_single_value_that_nobody_is_near_gets_noise() -> None:
    """A value with none near has prior 0 and an infinite epsilon as published."""
    view = view_of(log_of([[("a", 0), ("b", 100)], [("a", 0), ("b", 90_000)], [("a", 0), ("b", 50_000)]]))
    known = prior_knowledge(view, 0.3, Precision.of(1, 10))
    assert known.priors[1] == 0
    assert np.isfinite(known.ranges / epsilons_of(known.priors, 0.3)).all()
    assert (known.ranges / epsilons_of(known.priors, 0.3) > 0).all()


def test_starts_that_spread_further_than_the_public_ones_are_shrunk_into_their_range() -> None:
    view = view_of(log_of([[("a", 86_400 * i), ("b", 86_400 * i + 60)] for i in range(50)]))
    frame = Frame(0, 49 * 86_400 * SECOND, (49 * 86_400 + 60) * SECOND)
    scales = np.full(100, 1e6 * 86_400 * SECOND)
    cases, times = noisy_cases(view, np.ones(50, dtype=np.int64), scales, frame, noise.seeded(2))
    starts = times[cases.offsets[:-1]]
    assert starts.min() == 0 and starts.max() >= 48 * 86_400 * SECOND
    assert times.max() <= frame.last and (np.diff(times)[::2] >= 0).all()

"""The curator's sums bound contributions exactly, with noise of the charged scale."""

from collections import Counter
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.privacy.case_functions import triples_of
from veilog.privacy.contributions import check_sums, clip_rows, clipped_euclidean, contributions, noise_of_sums
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import gaussian, noise

trace = st.lists(st.sampled_from("abcd"), max_size=9).map(tuple)
traces = st.lists(trace, min_size=1, max_size=20)


def log(cases: list[tuple[str, ...]]) -> Variants:
    return Variants.from_dict(Counter(cases))


def letters(sequences: Sequences) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how often each letter occurs; "d" counts three times and negatively."""
    names = np.array(["abcd".index(label) for label in sequences.labels], dtype=int)
    rows = np.repeat(np.arange(len(sequences)), sequences.lengths)
    columns = names[sequences.codes] if len(names) else np.zeros(0, dtype=int)
    return rows, columns, np.where(columns == 3, -3, 1)


def exact(cases: list[tuple[str, ...]], bound: int, resolution: int) -> np.ndarray:
    nothing = lambda epsilon, n, source: np.zeros(n, dtype=np.int64)  # noqa: E731
    with patch.object(noise, "discrete_laplace", nothing):
        return Curator(log(cases)).sums(letters, 4, bound, 1, resolution=resolution)


@pytest.mark.slow
@given(cases=traces, extra=trace, bound=st.integers(1, 12), resolution=st.sampled_from([1, 7, 1024]))
def test_one_case_changes_the_sums_by_at_most_the_bound(
    cases: list[tuple[str, ...]], extra: tuple[str, ...], bound: int, resolution: int
) -> None:
    difference = exact([*cases, extra], bound, resolution) - exact(cases, bound, resolution)
    assert np.abs(difference).sum() <= bound * resolution


@pytest.mark.slow
@given(cases=traces, resolution=st.sampled_from([1, 16]))
def test_within_the_bound_nothing_is_changed(cases: list[tuple[str, ...]], resolution: int) -> None:
    sums = Counter(letter for case in cases for letter in case)
    expected = [sums["a"], sums["b"], sums["c"], -3 * sums["d"]]
    assert (exact(cases, 27, resolution) == np.array(expected) * resolution).all()


@pytest.mark.slow
@given(cases=traces, bound=st.integers(1, 12))
def test_what_a_case_contributes_does_not_depend_on_the_others(cases: list[tuple[str, ...]], bound: int) -> None:
    assert (exact(cases, bound, 8) == sum(exact([case], bound, 8) for case in cases)).all()


@pytest.mark.slow
@given(
    entries=st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**29), 2**29)), max_size=30),
    bound=st.integers(1, 2**20),
    resolution=st.integers(1, 1024),
)
def test_a_vector_above_the_bound_is_scaled_down_to_it(
    entries: list[tuple[int, int]], bound: int, resolution: int
) -> None:
    rows = np.array([row for row, _ in entries], dtype=np.int64)
    values = np.array([value for _, value in entries], dtype=np.int64)
    result = clip_rows(rows, values, 4, bound, resolution)
    for row in range(4):
        given_, kept = values[rows == row], result[rows == row]
        norm = int(np.abs(given_).sum())
        assert np.abs(kept).sum() <= bound * resolution
        if norm <= bound:
            assert (kept == given_ * resolution).all()
        else:
            assert (np.abs(np.abs(kept) - np.abs(given_) * (bound * resolution / norm)) < 1.001).all()


def exact_euclidean(cases: list[tuple[str, ...]], bound: int, resolution: int) -> np.ndarray:
    nothing = lambda variance, n, source: np.zeros(n, dtype=np.int64)  # noqa: E731
    with patch.object(gaussian, "discrete_gaussian", nothing):
        return Curator(log(cases)).sums(letters, 4, bound, 1, delta="1e-6", resolution=resolution)


@pytest.mark.slow
@given(cases=traces, extra=trace, bound=st.integers(1, 12), resolution=st.sampled_from([1, 7, 1024]))
def test_with_a_delta_one_case_changes_the_sums_by_at_most_the_bound_in_the_euclidean_norm(
    cases: list[tuple[str, ...]], extra: tuple[str, ...], bound: int, resolution: int
) -> None:
    """Entries of a case at one place are added before the Euclidean norm bounds them."""
    difference = exact_euclidean([*cases, extra], bound, resolution) - exact_euclidean(cases, bound, resolution)
    assert sum(int(value) ** 2 for value in difference) <= (bound * resolution) ** 2
    counted = Counter(extra)
    own = [counted["a"], counted["b"], counted["c"], -3 * counted["d"]]
    if sum(value**2 for value in own) <= bound**2:
        assert difference.tolist() == [value * resolution for value in own]


@pytest.mark.slow
@given(
    values=st.lists(st.integers(-(2**40), 2**40), max_size=12),
    bound=st.integers(1, 2**20),
    resolution=st.integers(1, 1024),
)
def test_a_vector_above_the_euclidean_bound_is_scaled_down_to_it(
    values: list[int], bound: int, resolution: int
) -> None:
    entries = np.array(values, dtype=np.int64)
    kept = clipped_euclidean(np.zeros(len(entries), dtype=np.int64), entries, 1, bound, resolution).tolist()
    assert sum(value**2 for value in kept) <= (bound * resolution) ** 2
    cut = [max(-(2**18), min(value, 2**18)) for value in values]
    squares = sum(value**2 for value in cut)
    if squares <= bound**2:
        assert kept == [value * resolution for value in cut]
    else:
        scale = bound * resolution / squares**0.5
        for one, given_ in zip(kept, cut, strict=True):
            assert abs(one) <= abs(given_) * scale * (1 + 1e-9)
            assert abs(one) > abs(given_) * scale * (1 - 1 / squares**0.5) - 1.001


@pytest.mark.slow(but=1)
@pytest.mark.parametrize(("bound", "resolution"), [(1, 1), (6, 4), (1000, 1024)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_with_a_delta_sums_cost_no_more_than_is_charged_by_their_exact_loss(
    bound: int, resolution: int, epsilon: float
) -> None:
    """The discrete law, moved by a case's bound, costs no more by another accountant."""
    curator = Curator(log([("a",)]), randomness=noise.seeded(3))
    curator.sums(letters, 4, bound, epsilon, delta="1e-6", resolution=resolution)
    (charge,) = curator.guarantee().charges
    assert (float(charge.epsilon), charge.delta) == (epsilon, Fraction(1, 10**6))
    assert str(charge.plain().sensitivity) == f"{bound} (L2, clipped)"
    (drawn,) = charge.mechanism.noises
    deviation, moved = drawn.variance**0.5, bound * resolution
    unit = max(1, moved // 4)  # wide noise is as good as continuous, and takes a coarser grid
    loss = (
        pld.from_discrete_gaussian_mechanism(deviation, sensitivity=moved, value_discretization_interval=1e-3)
        if deviation < 1000
        else pld.from_gaussian_mechanism(deviation / unit, sensitivity=moved / unit, value_discretization_interval=1e-3)
    )
    found = loss.get_epsilon_for_delta(1e-6)
    assert 0.85 * epsilon < found <= epsilon * 1.001 + 1e-3


def test_gaussian_sums_have_less_noise_where_cases_have_many_entries() -> None:
    """Gaussian sums have less noise for cases of 400 entries, whose norm is 20."""
    both = Curator(log([("a",)]), randomness=noise.seeded(3))
    nothing = lambda s: (np.zeros(0, int),) * 3  # noqa: E731
    laplace = both.sums(nothing, 20_000, 400, 1)
    euclidean = both.sums(nothing, 20_000, 20, 1, delta="1e-6")
    assert euclidean.std() < 0.2 * laplace.std()
    assert euclidean.std() == pytest.approx(both.guarantee().charges[1].mechanism.noises[0].variance ** 0.5, rel=0.03)


@pytest.mark.parametrize(("bound", "resolution"), [(1, 2**30), (2**30, 1), (2**15, 2**15), (2**20, 2**10)])
def test_euclidean_bounds_are_refused_from_where_their_squares_do_not_fit(bound: int, resolution: int) -> None:
    assert noise_of_sums(bound, resolution, Fraction(1), Fraction(1, 10**6))[1] == "L2"
    for wider in ((bound + 1, resolution), (bound, resolution + 1)):
        with refused(ParameterError, "contributions-too-large"):
            noise_of_sums(*wider, Fraction(1), Fraction(1, 10**6))


def test_noise_has_the_scale_of_bound_over_epsilon() -> None:
    """Noise has the mean absolute value 2a / (1 - a**2), with a = exp(-1/scale)."""
    variants = log([("a",)])
    curator = Curator(variants, randomness=noise.seeded(3))
    answer = curator.sums(lambda s: (np.zeros(0, int),) * 3, 20_000, 6, Fraction(1, 2), resolution=4)
    scale = 6 / 0.5 * 4
    a = np.exp(-1 / scale)
    assert np.abs(answer).mean() == pytest.approx(2 * a / (1 - a * a), rel=0.03)
    charge = curator.guarantee().charges[0]
    assert (charge.question, charge.epsilon) == ("sums", Fraction(1, 2))
    assert str(charge.plain().sensitivity) == "6 (L1, clipped)"


@pytest.mark.parametrize(
    "arguments",
    [
        {"size": 0},
        {"bound": 0},
        {"bound": 2.5},
        {"bound": True},
        {"resolution": 0},
        {"bound": 2**31, "resolution": 4},
        {"size": 10**9},
        {"epsilon": 0},
        {"epsilon": "1e-9", "bound": 2**32},
    ],
)
def test_nonsense_is_refused_and_nothing_is_charged(arguments: dict) -> None:
    curator = Curator(log([("a",), ("b",)]))
    with pytest.raises(ParameterError):
        curator.sums(**{"features": letters, "size": 4, "bound": 3, "epsilon": 1, **arguments})
    assert curator.guarantee().charges == ()


def test_noise_as_wide_as_fits_is_drawn_and_wider_is_refused() -> None:
    """Unit noise is cut with less than exp(-200) at an epsilon of 200 / 2**62 or more."""
    least = Fraction(200, 2**62)
    check_sums(1, 1000, 10, least * 10_000)
    with refused(ParameterError, "noise-scale-too-large"):
        check_sums(1, 1000, 10, least * 10_000 * (1 - Fraction(1, 10**6)))


@pytest.mark.parametrize(("row", "column"), [(1, 0), (2, 0), (-1, 0), (0, 4), (0, 5), (0, -1)])
def test_an_entry_that_is_nowhere_counts_for_nobody(row: int, column: int) -> None:
    """A row after the last case or a column after the last sum adds nothing."""
    one = np.ones(1, dtype=np.int64)
    curator = Curator(log([("a",)]))
    answer = curator.sums(lambda s: (row * one, column * one, one), 4, 1, 900)
    assert answer.tolist() == [0, 0, 0, 0] and len(curator.charges) == 1


class Cases(list[int]):
    """Cases that a function need not read."""

    def take(self, rows: np.ndarray) -> "Cases":
        return Cases(self[row] for row in rows.tolist())


@given(
    entries=st.lists(
        st.tuples(st.integers(-2, 4), st.integers(-2, 5), st.integers(-9, 9) | st.sampled_from([-(2**62), 2**62])),
        max_size=6,
    )
)
def test_entries_are_those_of_cases_and_sums_that_there_are_with_values_cut_on_either_side(
    entries: list[tuple[int, int, int]],
) -> None:
    parts = tuple(np.array(part, dtype=np.int64) for part in zip(*entries, strict=True)) or (np.zeros(0, int),) * 3
    found = triples_of(lambda block: parts, Cases(range(3)), 4, 5, check=False)
    wanted = [(row, column, max(-5, min(value, 5))) for row, column, value in entries if row in range(3)]
    assert list(zip(*(part.tolist() for part in found), strict=True)) == [e for e in wanted if e[1] in range(4)]


def test_the_norm_that_is_bounded_is_the_one_that_is_named() -> None:
    """A case with 3 and 4 has 7 by L1 and 5 by L2, but 7 by both at one place."""
    rows, values = np.zeros(2, dtype=np.int64), np.array([3, 4])
    apart, together = np.array([0, 1]), np.zeros(2, dtype=np.int64)
    for norm, columns, kept in (("L1", apart, [2, 2]), ("L2", apart, [3, 4]), ("L2", together, [5])):
        assert contributions((rows, columns, values), 1, 5, 1, norm)[2].tolist() == kept

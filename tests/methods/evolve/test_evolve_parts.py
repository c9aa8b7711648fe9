"""Parts of evolve equal plain definitions, from a case's votes to rounding."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from scipy.optimize import minimize

from veilog.logs.variants import Variants
from veilog.methods.evolve.chain import (
    Chain,
    Shortened,
    activity_features,
    clean,
    limit_repeats,
    relation_and_repeat_features,
    relation_features,
    trigram_features,
)
from veilog.methods.evolve.constants import DEFAULTS
from veilog.methods.evolve.prototypes import Counted, fit, fit_of_counts, medoids, next_generation, round_weights
from veilog.methods.evolve.real_variants import RealVariants
from veilog.methods.evolve.relations import second_order, share_of_triples
from veilog.methods.evolve.traces import PAD, Traces, distances, distinct, nearest, occurrences, strings, strings_of
from veilog.privacy.contributions import contributions

CASES = st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=8)


def columns(cases: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum([len(case) for case in cases])]).astype(np.int64)
    return np.array([code for case in cases for code in case], dtype=np.int32), offsets


def traces(rows: list[list[int]], width: int = 8) -> Traces:
    codes = np.full((len(rows), width), PAD, dtype=np.int32)
    for i, row in enumerate(rows):
        codes[i, : len(row)] = row
    return Traces(codes, np.array([len(row) for row in rows]))


def by_case(features: tuple[np.ndarray, np.ndarray, np.ndarray], cases: int, size: int) -> np.ndarray:
    owner, column, value = features
    matrix = np.zeros((cases, size), dtype=np.int64)
    np.add.at(matrix, (owner, column), value)
    return matrix


@pytest.mark.nightly
@given(CASES)
def test_distinct_traces_come_in_the_order_of_their_codes_whether_keys_are_numbers_or_bytes(
    cases: list[list[int]],
) -> None:
    """Distinct traces are in the order of their codes, for numbers and for bytes.

    Long traces do not fit into one number; the end comes after every code.
    """
    for width in (8, 60):
        found, sums = distinct(traces(cases, width), np.ones(len(cases)))
        expected = sorted({tuple(case) for case in cases}, key=lambda case: [*case, *[9] * (width - len(case))])
        assert [tuple(found.codes[i, :n].tolist()) for i, n in enumerate(found.lengths)] == expected
        assert sums.tolist() == [sum(tuple(case) == trace for case in cases) for trace in expected]


@pytest.mark.slow
@given(CASES)
def test_relations_and_triples_of_a_case_are_those_of_the_padded_sequence(cases: list[list[int]]) -> None:
    codes, offsets = columns(cases)
    pairs = by_case(relation_features(codes, offsets, 4), len(cases), 25)
    triples = by_case(trigram_features(codes, offsets, 4), len(cases), 125)
    for i, case in enumerate(cases):
        padded = [4, 4, *case, 4]
        expected = np.zeros(25, dtype=np.int64)
        for x, y in itertools.pairwise(padded[1:]):
            expected[5 * x + y] += 1
        assert (pairs[i] == expected).all()
        expected = np.zeros(125, dtype=np.int64)
        for x, y, z in zip(padded, padded[1:], padded[2:], strict=False):
            expected[25 * x + 5 * y + z] += 1
        assert (triples[i] == expected).all()


@pytest.mark.slow
@given(CASES, st.integers(1, 4))
def test_what_a_case_adds_does_not_depend_on_the_other_cases(cases: list[list[int]], longest: int) -> None:
    shortened = Shortened(np.array([0, -1, 1, 2], dtype=np.int32), 3, longest)
    codes, offsets = columns(cases)
    together = by_case(relation_features(*shortened(codes, offsets), 3), len(cases), 16)
    present = by_case(activity_features(codes, offsets, 4), len(cases), 4)
    for i, case in enumerate(cases):
        alone_codes, alone_offsets = columns([case])
        alone = by_case(relation_features(*shortened(alone_codes, alone_offsets), 3), 1, 16)
        assert (together[i] == alone[0]).all()
        assert together[i].sum() == min(longest, sum(code != 1 for code in case)) + 1
        assert (present[i] == [code in case for code in range(4)]).all()


@pytest.mark.nightly
@given(CASES, CASES)
def test_a_vote_is_for_the_first_nearest_prototype_whatever_else_is_in_the_log(
    cases: list[list[int]], prototypes: list[list[int]]
) -> None:
    chosen = strings(traces(prototypes))
    log = Variants.from_sequences([[str(code) for code in case] for case in cases])
    votes = nearest(strings_of(log.sequences, tuple(map(str, range(9)))), chosen)
    for sequence, vote in zip(log.sequences, votes, strict=True):
        text = "".join(chr(int(label)) for label in sequence)
        row = distances([text], chosen)[0]
        assert vote == np.flatnonzero(row == row.min())[0]


def test_distances_are_divided_by_the_longer_length() -> None:
    words = strings(traces([[0, 1, 2], [0, 2], [], [3]]))
    expected = [[0, 1 / 3, 1, 1], [1 / 3, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    assert distances(words, words) == pytest.approx(np.array(expected))


def test_short_and_long_traces_are_compared_in_parts_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths are around a processor's word; with few activities many columns tie."""
    monkeypatch.setattr("veilog.methods.evolve.traces._ROWS", 7)
    monkeypatch.setattr("veilog.methods.evolve.traces._COLUMNS", 5)
    rng = np.random.default_rng(1)

    def some(number: int) -> list[str]:
        lengths = rng.choice([0, 1, 2, 3, 63, 64, 65, 66, 130, 300], size=number)
        return ["".join(map(chr, rng.integers(0, 2, size=length).tolist())) for length in lengths]

    rows, columns = some(60), some(40)
    columns += rows[:3] + columns[:3]
    plain = [[Levenshtein.distance(a, b) / np.float32(max(len(a), len(b), 1)) for b in columns] for a in rows]
    matrix = np.array(plain, dtype=np.float32)
    assert (distances(rows, columns) == matrix).all()
    assert nearest(rows, columns).tolist() == matrix.argmin(axis=1).tolist()
    beyond = np.where(matrix.min(axis=1) > 0.3, len(columns), matrix.argmin(axis=1))
    assert nearest(rows, columns, 0.3).tolist() == beyond.tolist()
    assert nearest([], columns).tolist() == []


def test_medoids_are_those_of_plain_greedy() -> None:
    rng = np.random.default_rng(1)
    points = rng.random((60, 2))
    distance = (np.abs(points[:, None] - points[None]).sum(axis=2) / 2).astype(np.float32)
    weights = rng.random(60)
    chosen: list[int] = []
    now = np.ones(60)
    for _ in range(12):
        costs = [(weights * np.minimum(now, distance[:, j])).sum() for j in range(60)]
        chosen.append(int(np.argmin(costs)))
        now = np.minimum(now, distance[:, chosen[-1]])
    assert medoids(distance, weights, 12).tolist() == chosen
    assert len(medoids(distance, weights, 100)) == 60


def test_medoids_of_candidates_that_are_all_alike_are_the_first() -> None:
    """Many equal gains, more than fit into one step, give the first candidates."""
    alike = np.full((100, 100), 0.5, dtype=np.float32)
    assert medoids(alike, np.ones(100), 3).tolist() == [0, 1, 2]
    assert sorted(medoids(alike, np.ones(100), 100).tolist()) == list(range(100))


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 2])
def test_the_fit_minimises_its_objective(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    prior = rng.dirichlet(np.ones(30))
    cells = [rng.integers(0, 5 + r, size=30) for r in range(rounds)]
    shares = [rng.normal(0.2, 0.2, size=5 + r) for r in range(rounds)]
    deviations = [0.15, 0.3][:rounds]

    def objective(logits: np.ndarray) -> float:
        p = np.exp(logits - logits.max())
        p /= p.sum()
        value = float((p * np.log(np.maximum(p, 1e-300) / prior)).sum())
        for cell, share, deviation in zip(cells, shares, deviations, strict=True):
            mass = np.bincount(cell, weights=p, minlength=len(share))
            value += float(((mass - share) ** 2).sum()) / (2 * deviation**2)
        return value

    p = fit(prior, list(map(Counted, cells, shares, deviations)), 200)
    best = minimize(objective, np.log(prior), method="BFGS")
    assert p.sum() == pytest.approx(1)
    assert objective(np.log(np.maximum(p, 1e-300))) <= best.fun + 1e-5


@pytest.mark.slow
def test_counts_are_fitted_with_the_number_of_cases_that_explains_them_best() -> None:
    """A vague count of 1,600 cases does not move exact counts for 1,000."""
    prior = np.full(6, 1 / 6)
    known = Counted(np.array([0, 1, 2, 2, 2, 2]), np.array([500.0, 300.0, 0.0]), np.array([2.0, 2.0, np.inf]))
    votes = Counted(np.array([0, 1, 2, 2, 3, 3]), np.array([500.0, 300.0, 50.0, 150.0]), np.full(4, 5.0))
    p = fit_of_counts(prior, [votes, known], (1600.0, 500.0**2), 1.0, 200)
    assert p == pytest.approx([0.5, 0.3, 0.025, 0.025, 0.075, 0.075], abs=0.004)
    alone = fit_of_counts(prior, [known], (1000.0, 1.0), 1.0, 200)
    assert alone == pytest.approx([0.5, 0.3, 0.05, 0.05, 0.05, 0.05], abs=0.004)


@pytest.mark.slow
def test_the_fit_of_counts_minimises_its_objective_over_the_number_of_cases_too() -> None:
    rng = np.random.default_rng(3)
    prior = rng.dirichlet(np.ones(12))
    parts = [
        Counted(rng.integers(0, size, size=12), rng.normal(100, 40, size=size), np.full(size, 30.0)) for size in (4, 6)
    ]
    parts.append(Counted(np.minimum(np.arange(12), 3), np.array([90.0, 60.0, 40.0, 0.0]), np.array([9, 9, 9, np.inf])))
    trust, (count, variance) = 7.0, (700.0, 150.0**2)

    def objective(p: np.ndarray, n: float) -> float:
        value = trust * float((p * np.log(p / prior)).sum()) + (n - count) ** 2 / (2 * variance)
        for part in parts:
            mass = np.bincount(part.cells, weights=p, minlength=len(part.counts))
            value += float((((n * mass - part.counts) / part.deviations) ** 2).sum()) / 2
        return value

    def free(x: np.ndarray) -> float:
        p = np.exp(x[:-1] - x[:-1].max())
        return objective(p / p.sum(), float(np.exp(x[-1])))

    best = minimize(free, np.append(np.log(prior), np.log(600)), method="BFGS")
    p = fit_of_counts(prior, parts, (count, variance), trust, 500)
    mine = min(objective(p, n) for n in np.linspace(200, 1200, 4001))
    assert mine == pytest.approx(best.fun, abs=2e-3)


def test_the_fit_stands_extreme_votes() -> None:
    prior = np.array([0.5, 0.5 - 1e-9, 1e-9])
    p = fit(prior, [Counted(np.arange(3), np.array([-4.0, 3.0, 0.001]), 1e-4)], 200)
    assert np.isfinite(p).all()
    assert p[1] == pytest.approx(1, abs=1e-3)


def test_as_much_flows_into_an_activity_as_out_of_it() -> None:
    rng = np.random.default_rng(4)
    flow = np.zeros((4, 4))
    for x, y, n in ((3, 0, 900), (0, 1, 600), (0, 2, 300), (1, 2, 600), (2, 3, 900)):
        flow[x, y] = n
    chain = clean(flow + rng.laplace(0, 10, size=(4, 4)), 10.0, 900.0, False, DEFAULTS, rng)
    assert chain.flow.sum(axis=0) == pytest.approx(chain.flow.sum(axis=1))
    assert chain.flow[flow > 0] == pytest.approx(flow[flow > 0], abs=60)


@pytest.mark.nightly
def test_pure_noise_still_gives_a_chain_with_a_way_through() -> None:
    rng = np.random.default_rng(3)
    for low in (True, False):
        for _ in range(20):
            chain = clean(rng.laplace(0, 10, size=(7, 7)), 10.0, 100.0, low, DEFAULTS, rng)
            assert chain.flow.min() >= 0
            assert chain.flow[6].sum() > 0
            assert chain.flow[:, 6].sum() > 0
            assert chain.flow[6, 6] == 0
            imagined = chain.sample(50, 9, rng)
            assert imagined.lengths.min() >= 1
            assert imagined.lengths.max() <= 9


@pytest.mark.slow
def test_many_rare_relations_are_found_by_the_balance_of_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The balance of the flow finds many rare relations that noise hides."""
    flow = np.zeros((31, 31))
    flow[30, :10] = flow[20:30, 30] = 300.0
    flow[:10, 10:20] = flow[10:20, 20:30] = 30.0
    alone, rng = replace(DEFAULTS, covered_from=0.0), np.random.default_rng(1)
    for seed in range(5):
        noisy = flow + np.random.default_rng(seed).laplace(0, 20, size=flow.shape)
        with_it, without = (clean(noisy, 20.0, 3000.0, False, c, rng) for c in (DEFAULTS, alone))
        assert without.flow.sum() < 2 / 3 * noisy.sum()
        assert np.abs(with_it.flow - flow).sum() < np.abs(without.flow - flow).sum()
    clear = flow + np.random.default_rng(0).laplace(0, 1, size=flow.shape)
    as_it_is, without_it = (clean(clear, 1.0, 3000.0, False, c, rng) for c in (DEFAULTS, alone))
    assert np.array_equal(as_it_is.flow, without_it.flow)
    monkeypatch.setattr("veilog.methods.evolve.chain._MOST_CELLS", 30)
    assert np.array_equal(clean(noisy, 20.0, 3000.0, False, DEFAULTS, rng).flow, without.flow)


@pytest.mark.nightly
def test_ways_that_many_perturbed_answers_share_are_nearer_to_the_log() -> None:
    """The mean of perturbed optima is nearer to the flow than the one optimum.

    Four steps go each to one of three activities, in noise nearly as large as a relation. The distance is in squares,
    on average over ten answers.
    """
    flow = np.zeros((13, 13))
    flow[12, :3] = flow[9:12, 12] = 100.0
    for step in range(3):
        flow[3 * step : 3 * step + 3, 3 * step + 3 : 3 * step + 6] = 100.0 / 3
    alone, far = replace(DEFAULTS, perturbed=1), {True: [], False: []}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        noisy = flow + rng.laplace(0, 30, size=flow.shape)
        for averaged in far:
            chain = clean(noisy, 30.0, 300.0, True, DEFAULTS if averaged else alone, rng)
            assert chain.support[chain.flow > 0].all()
            far[averaged].append(((chain.flow / chain.flow[-1].sum() * 300 - flow) ** 2).sum())
    assert np.mean(far[True]) < 0.97 * np.mean(far[False])


def test_exact_relations_give_the_chain_back() -> None:
    flow = np.zeros((3, 3))
    flow[2, 0] = flow[0, 1] = flow[1, 2] = 1000.0
    chain = clean(flow, 1e-6, 1000.0, False, DEFAULTS, np.random.default_rng(0))
    imagined = chain.sample(20, 60, np.random.default_rng(1))
    assert (imagined.codes[:, :2] == [0, 1]).all()
    assert (imagined.lengths == 2).all()


def test_triples_tell_what_pairs_cannot() -> None:
    """a b c and d b e: a first-order chain mixes the ends, triples keep them apart."""
    flow = np.zeros((6, 6))
    for x, y in ((5, 0), (0, 1), (1, 2), (2, 5), (5, 3), (3, 1), (1, 4), (4, 5)):
        flow[x, y] = 500.0
    triples = np.zeros((6, 6, 6))
    for x, y, z in ((5, 0, 1), (0, 1, 2), (1, 2, 5), (5, 3, 1), (3, 1, 4), (1, 4, 5)):
        triples[x, y, z] = 500.0
    chain = second_order(Chain(flow, flow > 0), triples, 1.0, 1.0)
    imagined, _ = distinct(chain.sample(500, 10, np.random.default_rng(1)), np.ones(500))
    assert [row[:3].tolist() for row in imagined.codes] == [[0, 1, 2], [3, 1, 4]]


def random_flow(states: int, cases: float) -> np.ndarray:
    """Return a flow whose states are followed by two or three others each."""
    rng = np.random.default_rng(3)
    flow = rng.dirichlet(np.full(states + 1, 0.3), size=states + 1) * cases
    flow[states, states] = 0.0
    return flow


def test_triples_without_memory_leave_the_first_order_as_it_is() -> None:
    """Triples without memory leave the first order as it is, in spite of noise."""
    flow = random_flow(6, 2000.0)
    chain = Chain(flow, flow > 0)
    expected = flow[:, :, None] * chain.next_chances()
    noisy = expected + np.random.default_rng(4).laplace(0, 20.0, size=expected.shape)
    second = second_order(chain, noisy, 20.0, 1.0).second
    assert second is not None
    off = np.abs(second - chain.next_chances()).sum(axis=2)
    assert (flow * off).sum() / flow.sum() < 0.05
    raw = np.maximum(noisy, 0.0) * (expected > 0)
    raw_off = np.abs(raw / np.maximum(raw.sum(axis=2, keepdims=True), 1.0) - chain.next_chances()).sum(axis=2)
    assert (flow * off).sum() < 0.2 * (flow * raw_off).sum()


def test_triples_with_memory_are_believed_where_they_stand_out_from_their_noise() -> None:
    flow = random_flow(6, 2000.0)
    chain = Chain(flow, flow > 0)
    rng = np.random.default_rng(5)
    chances = np.array([[rng.dirichlet(2 * row + 1e-9) for row in chain.next_chances()] for _ in range(7)])
    true = flow[:, :, None] * chances
    second = second_order(chain, true + rng.laplace(0, 20.0, size=true.shape), 20.0, 1.0).second
    assert second is not None

    def off(found: np.ndarray) -> float:
        return float((flow * np.abs(found - chances).sum(axis=2)).sum() / flow.sum())

    assert off(second) < 0.6 * off(np.broadcast_to(chain.next_chances(), second.shape))


def test_the_share_of_triples_grows_and_falls_with_what_they_can_tell() -> None:
    """The share of triples is large for middling logs and small for huge ones.

    It is 0 for few cases, for closed steps, where votes reveal all ways, and for very many activities.
    """

    def share(cases: float, heard: float = 100.0) -> float:
        flow = random_flow(12, cases / 2.6)  # 13 states, 5 a case
        return float(share_of_triples(Chain(flow, flow > 0), Fraction(4, 5), heard, DEFAULTS))

    assert share(300) == 0
    assert share(10_000) > share(1_000_000) > 0
    assert share(1000) > share(1000, 1e30) == 0
    certain = np.roll(np.eye(13), 1, axis=1) * 1e6
    assert share_of_triples(Chain(certain, certain > 0), Fraction(4, 5), 100.0, DEFAULTS) == 0
    many = np.ones((66, 66)) * 1e6
    assert share_of_triples(Chain(many, many > 0), Fraction(4, 5), 100.0, DEFAULTS) == 0


def test_the_next_generation_takes_possible_steps_only() -> None:
    support = np.ones((5, 5), dtype=bool)
    support[0, 0] = support[2, 1] = support[4, 4] = False
    chain = Chain(support.astype(float), support)
    rng = np.random.default_rng(5)
    pool, prior = distinct(chain.sample(400, 8, rng), np.full(400, 1 / 400))
    following, weights = next_generation(pool, prior, chain, DEFAULTS, rng)
    assert weights.sum() == pytest.approx(1)
    assert len(following) > len(pool)
    for row, length in zip(following.codes, following.lengths, strict=True):
        assert (row[length:] == PAD).all()
        steps = [4, *row[:length].tolist(), 4]
        assert length >= 1
        # A trace that found no end in time was cut, so its last step may be missing.
        assert all(support[x, y] for x, y in itertools.pairwise(steps[:-1]))


@pytest.mark.slow
@given(st.lists(st.floats(0, 50), min_size=1, max_size=20), st.floats(0.01, 5), st.floats(1, 500))
def test_rounding_keeps_the_total_and_drops_the_small(weights: list[float], smallest: float, total: float) -> None:
    array = np.array(weights)
    counts = round_weights(array, smallest, total)
    if array.max() > 0:
        assert counts.sum() == max(1, round(total))
        assert (counts[array < min(max(0.3, smallest), array.max() / 2)] == 0).all()
    else:
        assert counts.sum() == 0


@pytest.mark.nightly
@given(CASES, st.integers(1, 6))
def test_relations_and_repeats_of_a_case_add_at_most_five_by_the_case_alone(
    cases: list[list[int]], longest: int
) -> None:
    """A case of m relations and d repeats adds min(1, 5/(m + d)) to each of them.

    The weight is rounded down in fixed point, whatever the other cases are.
    """
    one, size = 2**DEFAULTS.scale_bits, 3
    shortened = Shortened(np.array([0, -1, 1, 2], dtype=np.int32), size, longest)

    def contributed(some: list[list[int]]) -> np.ndarray:
        found = relation_and_repeat_features(*shortened(*columns(some)), size)
        clipped = contributions(found, len(some), DEFAULTS.contribution, one)
        return by_case(clipped, len(some), (size + 1) ** 2 + size)

    together = contributed(cases)
    assert (np.abs(together).sum(axis=1) <= DEFAULTS.contribution * one).all()
    for i, case in enumerate(cases):
        assert (together[i] == contributed([case])[0]).all()
        states = [{0: 0, 2: 1, 3: 2}[code] for code in case if code != 1][:longest]
        repeated = [state for state in range(size) if states.count(state) > 1]
        weight = min(1, DEFAULTS.contribution / (len(states) + 1 + len(repeated)))
        expected = np.zeros((size + 1) ** 2 + size)
        for x, y in itertools.pairwise((size, *states, size)):
            expected[x * (size + 1) + y] += weight
        for state in repeated:
            expected[(size + 1) ** 2 + state] += weight
        assert together[i] / one == pytest.approx(expected, abs=(longest + 2) / one)


def test_walks_remember_what_occurs_at_most_once() -> None:
    """With memory a and b occur once, and c as often as before."""
    flow = np.array([[0, 5, 2, 3], [4, 0, 3, 3], [1, 1, 9, 4], [5, 5, 3, 0]], dtype=float)
    rng = np.random.default_rng(2)
    free = Chain(flow, flow > 0)
    chain = limit_repeats(free, np.array([0.1, -3.0, 8.0]), 1.0, DEFAULTS)
    assert chain.once.tolist() == [True, True, False]
    for walks in (free, chain):
        often = occurrences(walks.sample(2000, 30, rng), 3)
        assert (often[:, :2] > 1).any() == (walks is free)
        assert (often[:, 2] > 1).any()
    second = np.zeros((4, 4, 4))
    second[3, 0, 1] = second[0, 1, 0] = 1.0  # after a, b there is nothing but a; back to what follows b
    walked = rows_of(replace(chain, second=second).sample(500, 30, rng))
    assert any(row[:2] == [0, 1] for row in walked)
    assert all(row.count(0) < 2 and row.count(1) < 2 for row in walked)


def test_activities_that_hardly_repeat_lose_their_loops_and_mutants_do_not_repeat_them() -> None:
    flow = np.array([[12, 900, 0], [0, 500, 900], [900, 0, 0]], dtype=float)
    chain = limit_repeats(Chain(flow, flow > 0), np.array([9.0, 200.0]), 5.0, DEFAULTS)
    assert chain.once.tolist() == [True, False]  # 9 of 912 are less than a fiftieth
    assert chain.flow.tolist() == [[0, 900, 0], [0, 500, 900], [900, 0, 0]]
    assert not chain.support[0, 0]
    rng = np.random.default_rng(1)
    wide = Chain(np.ones((3, 3)), np.ones((3, 3), dtype=bool), repeats=chain.repeats)
    pool, prior = distinct(wide.sample(300, 8, rng), np.full(300, 1 / 300))
    following, _ = next_generation(pool, prior, wide, replace(DEFAULTS, pool=2000), rng)
    often = occurrences(following, 2)
    assert often[:, 0].max() == 1
    assert often[:, 1].max() > 1
    free, _ = next_generation(pool, prior, replace(wide, repeats=None), replace(DEFAULTS, pool=2000), rng)
    assert occurrences(free, 2)[:, 0].max() > 1


def test_an_activity_that_occurs_oftener_than_there_are_cases_repeats_whatever_noise_says() -> None:
    """3400 sessions of 75 cases repeat, although noise suggests three cases."""
    flow = np.zeros((4, 4))
    flow[3, 0] = flow[0, 1] = flow[1, 2] = flow[2, 3] = 75.0
    flow[1, 1] = 3325.0
    chain = limit_repeats(Chain(flow, flow > 0), np.array([-20.0, 3.0, 8.0]), 25.0, DEFAULTS)
    assert chain.once.tolist() == [True, False, True]
    assert chain.flow[1, 1] == 3325
    assert chain.repeats is not None
    assert chain.repeats[1] * 3400 == pytest.approx(3325 / 60)  # so few only if each has as many as 60 events
    lengths = chain.sample(500, 60, np.random.default_rng(1)).lengths
    assert lengths.mean() > 25
    certain = limit_repeats(Chain(flow, flow > 0), np.array([-1.0, 70.0, 0.0]), 1.0, DEFAULTS)
    assert certain.once.tolist() == [True, False, True]  # 70 are less than a fiftieth of 3400, and not of 75


def test_what_exceeds_the_cases_by_no_more_than_noise_does_is_no_repeat() -> None:
    flow = np.array([[40, 900, 0], [0, 0, 900], [900, 0, 0]], dtype=float)
    assert limit_repeats(Chain(flow, flow > 0), np.array([3.0, 1.0]), 10.0, DEFAULTS).once.tolist() == [True, True]
    assert limit_repeats(Chain(flow, flow > 0), np.array([3.0, 1.0]), 5.0, DEFAULTS).once.tolist() == [False, True]


def test_an_activity_that_certainly_repeats_is_on_a_way_from_start_to_end() -> None:
    """Sessions that certainly repeat get the likeliest steps to and from them."""
    noisy = np.array(
        [[-11, 29, 22, 32], [16, 3562, 13, 50], [-64, 27, -29, 20], [36, -8, 31, 0]],
        dtype=float,
    )
    chain = clean(noisy, 41.7, 820, False, DEFAULTS, np.random.default_rng(1))
    assert (chain.flow[[3, 0, 1], [0, 1, 3]] > 0).all()  # start, intake, session, end
    walks = chain.sample(200, 60, np.random.default_rng(1))
    assert (occurrences(walks, 3)[:, 1] > 1).mean() > 0.5


def test_few_cases_that_repeat_an_activity_often_are_imagined_beside_many_that_do_not() -> None:
    """A few cases with a hundred vitals each appear beside many with one."""
    flow = np.zeros((4, 4))
    flow[3, 0] = flow[0, 1] = flow[1, 2] = flow[2, 3] = 2700.0
    flow[1, 1] = 1400.0
    noisy, rng = np.array([0.0, 20.0, 0.0]), np.random.default_rng(1)
    chain = limit_repeats(Chain(flow, flow > 0), noisy, 8.0, DEFAULTS)
    often = occurrences(chain.sample(20_000, 60, rng), 3)[:, 1]
    assert (often == 1).mean() > 0.9
    assert (often > 20).sum() > 20  # with the same chance each time: 1 in 10 ** 9
    many = limit_repeats(Chain(flow, flow > 0), np.array([0.0, 920.0, 0.0]), 8.0, DEFAULTS)
    assert many.second is None  # as many as repeat it if each vital is followed by another with the same chance


def test_what_a_real_variant_repeats_may_be_repeated() -> None:
    real = Variants.from_dict({("a", "a", "b"): 10})
    known = RealVariants.of(real, np.arange(2, dtype=np.int32), Shortened(np.arange(2, dtype=np.int32), 2, 60))
    chain = Chain(np.ones((3, 3)), np.ones((3, 3), dtype=bool), repeats=np.zeros(2))
    assert known.joined_with(chain, DEFAULTS).once.tolist() == [False, True]


def rows_of(some: Traces) -> list[list[int]]:
    return [row[:n].tolist() for row, n in zip(some.codes, some.lengths.tolist(), strict=True)]

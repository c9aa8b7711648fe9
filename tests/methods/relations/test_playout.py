"""Play-out: what it uses up, its probabilities, and a guided one without rest."""

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods import _relations
from veilog.methods._relations import balance, play_out, play_out_guided
from veilog.methods.df_laplace import exact_relation

AB = ("a", "b")
ABC = ("a", "b", "c")
START, END = 2, 2  # of relations over "a" and "b"

relations = st.lists(st.integers(0, 6), min_size=16, max_size=16).map(lambda n: np.array(n).reshape(4, 4))
logs = st.lists(st.lists(st.sampled_from(ABC), max_size=6).map(tuple), min_size=1, max_size=15)


def used(variants: Variants, activities: tuple[str, ...]) -> np.ndarray:
    return exact_relation(variants, activities)


def all_outcomes(relation: tuple[tuple[int, ...], ...]) -> dict[tuple[tuple[str, ...], ...], Fraction]:
    """Return every outcome of Algorithm 2 over a and b, with its exact probability."""
    results: dict[tuple[tuple[str, ...], ...], Fraction] = defaultdict(Fraction)

    def walk(counts: tuple[tuple[int, ...], ...], trace: tuple[int, ...], done: tuple, chance: Fraction) -> None:
        node = trace[-1] if trace else START
        total = sum(counts[node])
        if total == 0:
            if not trace:
                results[tuple(sorted(done))] += chance
                return
            removed = tuple(tuple(0 if b == node else n for b, n in enumerate(row)) for row in counts)
            walk(removed, trace[:-1], done, chance)
            return
        for following, n in enumerate(counts[node]):
            if n:
                row = tuple(m - (b == following) for b, m in enumerate(counts[node]))
                left = (*counts[:node], row, *counts[node + 1 :])
                share = chance * Fraction(n, total)
                if following == END:
                    walk(left, (), (*done, tuple("ab"[i] for i in trace)), share)
                else:
                    walk(left, (*trace, following), done, share)

    walk(relation, (), (), Fraction(1))
    return results


@pytest.mark.nightly
@pytest.mark.parametrize(
    "relation",
    [
        ((0, 2, 1), (1, 0, 1), (2, 1, 0)),  # balanced, with a loop
        ((1, 1, 0), (0, 1, 0), (2, 0, 1)),  # b is a dead end, nothing but the empty trace ends
        ((0, 2, 1), (0, 0, 1), (3, 0, 0)),  # more starts than ends
    ],
)
@pytest.mark.parametrize("chunk", [1, 4096])
def test_outcomes_have_the_probabilities_of_algorithm_2(
    relation: tuple[tuple[int, ...], ...], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4000 play-outs have the exact probabilities, within 4.5 standard deviations."""
    monkeypatch.setattr(_relations, "_CHUNK", chunk)
    expected = all_outcomes(relation)
    assert sum(expected.values()) == 1
    runs, random = 4000, np.random.default_rng(5)
    seen: Counter[tuple] = Counter()
    for _ in range(runs):
        variants = play_out(AB, np.array(relation), random)
        seen[tuple(sorted(t for t, n in variants.to_dict().items() for _ in range(n)))] += 1
    assert set(seen) <= set(expected)
    for outcome, chance in expected.items():
        p = float(chance)
        assert abs(seen[outcome] - runs * p) <= 4.5 * np.sqrt(runs * p * (1 - p)) + 1


@pytest.mark.slow
@given(relation=relations, seed=st.integers(0, 99))
def test_no_relation_is_used_more_often_than_it_is_counted(relation: np.ndarray, seed: int) -> None:
    variants = play_out(ABC, relation, np.random.default_rng(seed))
    assert (used(variants, ABC) <= relation).all()


@pytest.mark.nightly
@given(cases=logs, seed=st.integers(0, 99))
def test_the_guided_play_out_of_a_log_uses_up_its_whole_relation(cases: list[tuple[str, ...]], seed: int) -> None:
    variants = Variants.from_dict(Counter(cases))
    relation = exact_relation(variants, ABC)
    assert (balance(relation) == relation).all()
    assert (used(play_out_guided(ABC, relation, np.random.default_rng(seed)), ABC) == relation).all()


@pytest.mark.nightly
@given(relation=relations, seed=st.integers(0, 99))
def test_the_guided_play_out_uses_up_what_balance_leaves_and_the_start_reaches(relation: np.ndarray, seed: int) -> None:
    flow = balance(relation)
    assert (flow.sum(axis=0) == flow.sum(axis=1)).all()
    assert (flow[relation == 0] == 0).all()
    reached = np.array([False, False, False, True])
    for _ in range(4):
        reached |= (flow[reached] > 0).any(axis=0)
    rest = flow - used(play_out_guided(ABC, relation, np.random.default_rng(seed)), ABC)
    assert (rest[reached] == 0).all()


@pytest.mark.slow
@given(numbers=st.lists(st.integers(0, 2), min_size=9, max_size=9))
def test_the_balanced_relation_is_a_nearest_one(numbers: list[int]) -> None:
    """No relation over two activities with entries up to 3 is nearer."""
    relation = np.array(numbers).reshape(3, 3)
    distance = np.abs(balance(relation) - relation).sum()
    support = np.flatnonzero(relation)
    best = min(
        np.abs(candidate - relation).sum()
        for entries in product(range(4), repeat=len(support))
        if (candidate := filled(support, entries)) is not None
    ) if len(support) <= 5 else distance  # fmt: skip
    assert distance == best


def filled(support: np.ndarray, entries: tuple[int, ...]) -> np.ndarray | None:
    candidate = np.zeros(9, dtype=np.int64)
    candidate[support] = entries
    square = candidate.reshape(3, 3)
    return square if (square.sum(axis=0) == square.sum(axis=1)).all() else None


def test_spare_relations_close_a_gap_up_to_their_counts() -> None:
    """Spare relations close a gap: start -> a -> b ten times, but b has no end."""
    relation = np.array([[0, 10, 0], [0, 0, 0], [10, 0, 0]])
    spare = np.array([[0, 10, 0], [0, 0, 7], [10, 0, 0]])
    assert balance(relation).sum() == 0
    assert balance(relation, spare).tolist() == [[0, 7, 0], [0, 0, 7], [7, 0, 0]]


@pytest.mark.slow
def test_a_random_circuit_is_not_always_the_same() -> None:
    relation = exact_relation(Variants.from_dict({("a", "b", "a"): 3, ("b",): 2, ("a", "a"): 2}), AB)
    random = np.random.default_rng(1)
    outcomes = {tuple(sorted(play_out_guided(AB, relation, random).to_dict().items())) for _ in range(40)}
    assert len(outcomes) > 5


def test_a_relation_too_large_to_draw_from_is_refused() -> None:
    with refused(ParameterError, "relation-entries-too-many"):
        play_out(AB, np.full((3, 3), 2**28), np.random.default_rng(1))


def test_nothing_comes_of_nothing() -> None:
    for play in (play_out, play_out_guided):
        assert play(AB, np.zeros((3, 3), dtype=np.int64), np.random.default_rng(1)).cases == 0
        assert play((), np.array([[4]]), np.random.default_rng(1)).to_dict() == {(): 4}

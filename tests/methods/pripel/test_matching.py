"""Matchings of released with raw traces are one to one, complete and optimal."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods import pripel
from veilog.methods.pripel import Matching, match

side = st.dictionaries(st.text("abc", max_size=4).map(tuple), st.integers(1, 3), min_size=1, max_size=4)


def unheard(text: str) -> None:
    raise AssertionError(text)


def traces(variants: Variants) -> list[tuple[str, ...]]:
    return [s for s, n in variants.to_dict().items() for _ in range(n)]


def least_cost(a: list[tuple[str, ...]], b: list[tuple[str, ...]]) -> int:
    """Return the least cost by trying every matching."""
    short, long = sorted((a, b), key=len)
    return min(
        sum(Levenshtein.distance(x, y) for x, y in zip(short, chosen, strict=True))
        for chosen in itertools.permutations(long, len(short))
    )


def cost_of(found: Matching, a: Variants, b: Variants) -> int:
    left, right = list(a.sequences), list(b.sequences)
    pairs = zip(found.released.tolist(), found.original.tolist(), found.numbers.tolist(), strict=True)
    return sum(n * Levenshtein.distance(left[i], right[j]) for i, j, n in pairs)


@pytest.mark.slow
@given(one=side, other=side)
def test_every_matching_is_one_to_one_and_uses_up_the_smaller_side(one: dict, other: dict) -> None:
    a, b = Variants.from_dict(one), Variants.from_dict(other)
    for how in ("optimal", "greedy"):
        found = match(a, b, how, unheard)
        used_a = np.bincount(found.released, found.numbers, minlength=len(a))
        used_b = np.bincount(found.original, found.numbers, minlength=len(b))
        assert (used_a <= a.counts).all() and (used_b <= b.counts).all()
        assert found.numbers.sum() == min(a.cases, b.cases)
        assert len(set(zip(found.released.tolist(), found.original.tolist(), strict=True))) == len(found.numbers)


@pytest.mark.slow
@given(one=side, other=side)
def test_the_optimal_matching_costs_the_least_of_all(one: dict, other: dict) -> None:
    a, b = Variants.from_dict(one), Variants.from_dict(other)
    if min(a.cases, b.cases) > 4 or max(a.cases, b.cases) > 7:
        return
    least = least_cost(traces(a), traces(b))
    assert cost_of(match(a, b, "optimal", unheard), a, b) == least
    assert cost_of(match(a, b, "greedy", unheard), a, b) >= least


@pytest.mark.parametrize("sizes", [(300, 200), (200, 300), (250, 250)])
def test_assigning_traces_and_transporting_variants_cost_the_same(
    sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)

    def log(n: int) -> Variants:
        return Variants.from_sequences([tuple(rng.choice(list("abcd"), rng.integers(0, 9)).tolist()) for _ in range(n)])

    a, b = log(sizes[0]), log(sizes[1])
    costs = []
    for small in (True, False):
        monkeypatch.setattr(pripel, "_is_small", lambda a, b, answer=small: answer)
        costs.append(cost_of(match(a, b, "optimal", unheard), a, b))
    assert costs[0] == costs[1] > 0
    assert costs[0] <= cost_of(match(a, b, "greedy", unheard), a, b)


def test_equal_logs_match_for_nothing_and_labels_that_only_one_side_has_count() -> None:
    log = Variants.from_dict({("a", "b"): 3, ("c",): 2, (): 1})
    assert cost_of(match(log, log, "optimal", unheard), log, log) == 0
    other = Variants.from_dict({("x", "b"): 3, ("c",): 2})
    assert cost_of(match(log, other, "optimal", unheard), log, other) == 3
    assert match(Variants.from_dict({}), log, "optimal", unheard).numbers.sum() == 0


def test_too_large_an_optimal_matching_says_that_it_is_greedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pripel, "MOST_ASSIGNED", 1)
    monkeypatch.setattr(pripel, "MOST_TRANSPORTED", 1)
    said: list[Message] = []
    a, b = Variants.from_dict({("a",): 2, ("b",): 2}), Variants.from_dict({("c",): 3, ("d", "a"): 1})
    assert match(a, b, "optimal", said.append).numbers.sum() == 4
    assert [one.code for one in said] == ["pripel-matching-greedy"]

"""SaPa: distances of activities, the relations it keeps, and its charge."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openly import release

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods.sapa import _pairs_within, sequences_within

ABC = ("a", "b", "c")
traces = st.lists(st.lists(st.sampled_from(ABC), max_size=6).map(tuple), min_size=1, max_size=12)
graphs = st.lists(st.booleans(), min_size=16, max_size=16).map(lambda bits: np.array(bits).reshape(4, 4))
SMALL = Variants.from_dict({("a", "b", "c"): 300, ("a", "c"): 200, ("b",): 100})


@pytest.mark.slow
@given(cases=traces, k=st.integers(1, 9))
def test_pairs_within_a_distance_are_those_of_some_trace(cases: list[tuple[str, ...]], k: int) -> None:
    expected = np.zeros((4, 4), dtype=bool)
    for case in cases:
        coded = [3, *("abc".index(activity) for activity in case), 3]
        for i, a in enumerate(coded):
            for b in coded[i + 1 : i + 1 + k]:
                expected[a, b] = True
    expected[3, 3] = False
    assert (sequences_within(Variants.from_dict(Counter(cases)).sequences, ABC, k) == expected).all()


@pytest.mark.slow
@given(near=graphs, k=st.integers(1, 6))
def test_pairs_within_k_steps_of_a_graph(near: np.ndarray, k: int) -> None:
    """Pairs within k steps equal those found by walking from start to end."""
    expected = np.zeros((4, 4), dtype=bool)
    for a in range(4):
        edge = {b for b in range(4) if near[a, b]}
        reached = set(edge)
        for _ in range(k - 1):
            edge = {c for b in edge - {3} for c in range(4) if near[b, c]}
            reached |= edge
        expected[a, list(reached)] = True
    expected[3, 3] = near[3, 3]
    assert (_pairs_within(near, k) == expected).all()


def test_as_published_nothing_can_be_derived() -> None:
    guarantee = release(SMALL, "sapa", epsilon=1, as_published=True).guarantee
    assert (guarantee.status, guarantee.epsilon, guarantee.nominal_epsilon) == ("none", None, 1.0)
    assert "k-follows" in str(guarantee.reasons[0]) and "redraws" in str(guarantee.reasons[0])


def test_as_published_every_observed_step_keeps_a_count() -> None:
    """As published all observed steps stay, so each first activity is released.

    Noise of scale 20 on counts of 1 is redrawn until positive. The guided play-out uses everything that balance leaves.
    """
    variants = Variants.from_dict({(a, b): 1 for a in "abc" for b in "abc"})
    released = [release(variants, "sapa", epsilon="0.05", seed=s, as_published=True).variants for s in range(5)]
    firsts = {trace[0] for result in released for trace in result.sequences if trace}
    assert firsts == {"a", "b", "c"}


def test_a_larger_k_lets_more_pairs_follow_each_other() -> None:
    steps = []
    for k in (1, 2):
        released = release(SMALL, "sapa", epsilon=80, seed=4, as_published=True, k=k).variants
        steps.append({pair for case in released.sequences for pair in itertools.pairwise(case)})
    assert steps[0] <= {("a", "b"), ("b", "c"), ("a", "c")}
    one, two = (sequences_within(SMALL.sequences, ABC, k).sum() for k in (1, 2))
    assert two > one


@pytest.mark.parametrize("parameters", [{"k": 0}, {"k": 1.5}, {"bound": 0}, {"playout": "best"}, {"threshold": 3}])
def test_nonsense_is_refused(parameters: dict) -> None:
    with pytest.raises(ParameterError):
        release(SMALL, "sapa", epsilon=1, **parameters)

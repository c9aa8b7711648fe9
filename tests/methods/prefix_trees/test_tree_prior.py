"""Prefix trees with a prior: counted prefixes, endings, charge, and its rejection."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openly import release

from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods._prefix_tree.counts import _tree_without_prior
from veilog.methods._prefix_tree.expand import TreePrior, project_counts
from veilog.methods._prefix_tree.tree import NoisyPrefixTree, assign_deepest

LOG = hospital(800, seed=1).variants
OTHERS = hospital(3000, seed=2).variants
ACTIVITIES = tuple(sorted(LOG.labels))


def codes_of(made) -> list[str]:
    return [remark.code for remark in made.remarks]


def renamed(log: Variants) -> Variants:
    """Return the same process with its activities exchanged."""
    names = dict(zip(ACTIVITIES, ACTIVITIES[3:] + ACTIVITIES[:3], strict=True))
    return Variants.from_dict({tuple(names[a] for a in trace): count for trace, count in log.to_dict().items()})


@pytest.mark.false_alarm(1e-6, "a release from the prior is nearer by ten deviations of what seeds change")
@pytest.mark.parametrize("method", ["laplace", "sacofa"])
def test_a_prior_of_the_same_process_is_used_and_helps(method: str) -> None:
    made = release(LOG, method, epsilon="0.1", seed=1, prior=OTHERS)
    assert "tree-prior-used" in codes_of(made)
    alone = release(LOG, method, epsilon="0.1", seed=1)
    near, far = (relative_log_similarity(LOG, one.variants).value for one in (made, alone))
    assert near > far + 0.2


@pytest.mark.false_alarm(1e-6, "noise of the counts would have to be eight deviations off")
def test_a_prior_that_misplaces_more_than_the_tree_leaves_open_is_dropped() -> None:
    made = release(LOG, "laplace", epsilon=5, seed=1, prior=renamed(OTHERS))
    assert "tree-prior-dropped" in codes_of(made)
    alone = release(LOG, "laplace", epsilon=5, seed=1)
    wrong, none = (relative_log_similarity(LOG, one.variants).value for one in (made, alone))
    assert wrong > none - 0.1


def test_a_prior_without_public_activities_asks_as_without_one() -> None:
    made = release(LOG, "laplace", epsilon=1, seed=1, prior=Variants.from_dict({("elsewhere",): 10}))
    assert "prior-without-activities" in codes_of(made)
    assert made.variants == release(LOG, "laplace", epsilon=1, seed=1).variants


@pytest.mark.parametrize("depth", [None, 4])
@pytest.mark.parametrize("method", ["laplace", "sacofa"])
def test_the_charges_add_up_to_epsilon(method: str, depth: int | None) -> None:
    made = release(LOG, method, epsilon="0.3", seed=1, prior=OTHERS, depth=depth)
    assert sum(charge.epsilon for charge in made.guarantee.charges) == Fraction("0.3")


def test_rare_cases_of_a_prior_are_released_whole() -> None:
    """Rare cases of a prior are released whole, beyond where noise cuts traces."""
    made = release(LOG, "laplace", epsilon="0.1", seed=1, prior=OTHERS).variants
    lengths = (one.lengths @ one.counts / one.cases for one in (made, OTHERS))
    assert next(lengths) > 0.8 * next(lengths)


def test_prefixes_are_counted_from_the_deviation_of_noise_on() -> None:
    prior = TreePrior(Variants.from_dict({("a", "b"): 90, ("a", "c"): 9, ("b",): 1}))
    counted = prior.counted(1000, Fraction(1, 10))
    assert counted.least == pytest.approx(math.sqrt(2) * 10 / 1000, rel=0.01)
    tree = NoisyPrefixTree(("a", "b", "c"))
    assert counted.continuations(tree).tolist() == [0]
    tree = tree.grown(np.array([0]), np.array([0]), 0, np.array([True]))
    assert counted.continuations(tree).tolist() == [1, 2]


def test_cases_go_on_as_those_that_begin_alike_longest() -> None:
    prior = TreePrior(Variants.from_dict({("a", "b", "c", "d"): 5, ("b", "b", "e"): 5}))
    starts = Variants.from_dict({("a", "x"): 3, ("b", "b", "b", "b"): 2})
    made = prior.continued(starts, np.random.default_rng(1))
    assert made.to_dict() == {("a", "x", "c", "d"): 3, ("b", "b", "b", "b"): 2}


def test_cases_of_other_activities_are_left_out() -> None:
    log = Variants.from_dict({("a", "x", "b"): 2, ("a", "b"): 1, ("x",): 5})
    assert log.of_activities(("b", "a")).to_dict() == {("a", "b"): 3}
    assert log.of_activities(("c",)).cases == 0


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20), st.floats(0.1, 100))
def test_projected_numbers_are_the_nearest_with_their_sum(counts: list[float], total: float) -> None:
    found = project_counts(np.array(counts), total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    moved = np.array(counts) - found
    assert moved[found > 0] == pytest.approx(np.full((found > 0).sum(), moved.max()), abs=1e-9)


words = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)


@given(st.lists(words, min_size=1, max_size=12), st.lists(words, min_size=1, max_size=12), st.data())
def test_without_the_prefixes_of_a_prior_cases_are_at_their_longest_other_one(
    prior: list[tuple[str, ...]], cases: list[tuple[str, ...]], data: st.DataObject
) -> None:
    tree = grown = NoisyPrefixTree(("a", "b", "c"))
    known = replace(TreePrior(Variants.from_sequences([*prior, *cases])), least=0.0)
    for _ in range(3):
        bins = known.continuations(tree)
        drawn = data.draw(st.lists(st.booleans(), min_size=len(bins), max_size=len(bins)))
        tree = tree.grown(bins, np.zeros(len(bins), dtype=np.int64), 0, np.array(drawn, dtype=bool))
    log = Variants.from_sequences(cases)
    places = np.bincount(assign_deepest(tree)(log.sequences), log.counts, minlength=tree.size + 1)
    bounds = np.cumsum([1, *(len(level.bins) for level in tree.levels)])[:-1]
    grown, here = _tree_without_prior(tree, np.split(places.astype(float), bounds))
    expected = np.bincount(assign_deepest(grown)(log.sequences), log.counts, minlength=grown.size + 1)
    assert np.concatenate(here).tolist() == expected.tolist()

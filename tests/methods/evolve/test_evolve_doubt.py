"""Repeated activities that evolve does not ask for are in doubt; votes decide."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from veilog.logs.variants import Variants
from veilog.methods.evolve import EvolveSettings, evolve
from veilog.methods.evolve.chain import Chain
from veilog.methods.evolve.constants import DEFAULTS, Constants
from veilog.methods.evolve.doubt import Doubt, Prior, doubt_of, imagine_pool
from veilog.methods.evolve.prototypes import Counted, fit, misfit
from veilog.methods.evolve.traces import occurrences
from veilog.methods.method import Request
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise

A, B, C, END = range(4)


def chain_of(steps: dict[tuple[int, int], float]) -> Chain:
    flow = np.zeros((4, 4))
    for step, cases in steps.items():
        flow[step] = cases
    return Chain(flow, flow > 0)


BACK = chain_of({(END, A): 100, (A, B): 120, (B, A): 20, (B, C): 100, (C, END): 100})
"""A, B, C, with a way back from B to A that noise may have made."""


def doubt(chain: Chain, b: float, noisy: np.ndarray | None = None) -> Doubt | None:
    rng = np.random.default_rng(0)
    return doubt_of(chain, chain.flow if noisy is None else noisy, b, 100.0, 30, DEFAULTS, rng)


def test_a_way_back_that_noise_may_have_made_is_doubted() -> None:
    found = doubt(BACK, 30.0)
    assert found is not None
    assert found.likely == 0.5
    assert not found.repeats.any()


def test_a_way_back_beyond_noise_is_not_doubted() -> None:
    assert doubt(BACK, 0.5) is None


def test_what_never_comes_again_leaves_no_doubt() -> None:
    assert doubt(chain_of({(END, A): 100, (A, B): 100, (B, C): 100, (C, END): 100}), 30.0) is None


def test_how_likely_nothing_repeats_falls_with_the_noise() -> None:
    likely = [0.0 if found is None else found.likely for found in (doubt(BACK, b) for b in (2.0, 4.0, 6.0, 10.0))]
    assert likely == sorted(likely)
    assert likely[0] == 0.0
    assert likely[-1] == 0.5


def test_an_activity_that_follows_itself_beyond_noise_certainly_repeats() -> None:
    itself = BACK.flow.copy()
    itself[C, C] = 90.0
    found = doubt(Chain(itself, itself > 0), 20.0)
    assert found is not None
    assert found.repeats.tolist() == [False, False, True]
    often = occurrences(found.chain(BACK).sample(500, 30, np.random.default_rng(1)), 3)
    assert (often[:, [A, B]] <= 1).all()
    again = occurrences(found.chain(Chain(itself, itself > 0)).sample(500, 30, np.random.default_rng(1)), 3)
    assert (again[:, [A, B]] <= 1).all()
    assert (again[:, C] > 1).any()


def test_the_pool_is_of_both_kinds_of_walks() -> None:
    found = Doubt(np.zeros(3, dtype=bool), 0.25)
    pool, prior = imagine_pool(BACK, found, 30, 30, replace(DEFAULTS, pool=2000), np.random.default_rng(2))
    assert prior.once is not None
    assert prior.usual.sum() == pytest.approx(1)
    assert prior.once.sum() == pytest.approx(1)
    repeating = (occurrences(pool, 3) > 1).any(axis=1)
    assert prior.once[repeating].sum() == 0
    assert prior.usual[repeating].sum() == pytest.approx(1 / 6, abs=0.04)  # 20 of 120 go back
    assert prior.mixed(0.25) == pytest.approx(0.75 * prior.usual + 0.25 * prior.once)


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0.9, 1.0), (0.5, 0.4, 0.6), (0.95, 0.0, 0.1)])
def test_votes_decide_how_many_cases_repeat(share: float, least: float, most: float) -> None:
    """Votes with a deviation of .05 decide how many cases repeat an activity."""
    prior = Prior(np.repeat([0.0, 0.2], 5), np.repeat([0.2, 0.0], 5), 0.5)
    votes = Counted(np.arange(10), np.repeat([(1 - share) / 5, share / 5], 5), 0.05)
    assert least <= prior.fitted([votes], 200)[:5].sum() <= most


def test_a_fit_has_less_of_what_it_makes_least_than_what_is_near_it() -> None:
    rng = np.random.default_rng(3)
    prior, cells = rng.dirichlet(np.ones(12)), [rng.integers(0, size, size=12) for size in (4, 3)]
    shares, deviations = [rng.dirichlet(np.ones(size)) for size in (4, 3)], [0.1, 0.2]
    votes = list(map(Counted, cells, shares, deviations))
    p = fit(prior, votes, 500)
    best = misfit(prior, p, votes)
    for _ in range(50):
        near = p * np.exp(rng.normal(0, 0.1, size=12))
        assert misfit(prior, near / near.sum(), votes) > best


def released(log: Variants, epsilon: str, seed: int, constants: Constants) -> Variants:
    curator = Curator(log, domain=ALL_FROM_LOG, randomness=noise.seeded(seed))
    return evolve(
        curator,
        Request(Fraction(epsilon), Fraction(0), False, lambda text, done: None, lambda a, b: 0.0),
        EvolveSettings(),
        constants,
    )


def repeating(log: Variants) -> float:
    again = [len(set(sequence)) < len(sequence) for sequence in log.sequences]
    return float(log.counts[again].sum() / log.cases)


@pytest.mark.nightly
def test_fewer_cases_repeat_activities_in_releases_of_a_log_where_none_does() -> None:
    """Fewer released cases repeat activities where no case of the log does."""
    rng = np.random.default_rng(5)
    log = Variants.from_sequences([rng.permutation(list("abcdef"))[: rng.integers(3, 7)].tolist() for _ in range(600)])
    shares = {}
    for name, constants in {"now": DEFAULTS, "unchanged": replace(DEFAULTS, least_doubt=1.0)}.items():
        found = [repeating(released(log, "0.3", seed, constants)) for seed in range(6)]
        shares[name] = sum(found) / len(found)
    assert shares["unchanged"] > 0.3
    assert shares["now"] < shares["unchanged"] / 2


FAR = 2**40
"""Distance beyond any noise that these queries draw."""
EXTREME: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "all far below 0": lambda size, rng: np.full(size, -FAR),
    "all 0": lambda size, rng: np.zeros(size, dtype=np.int64),
    "all far above": lambda size, rng: np.full(size, FAR),
    "one far above": lambda size, rng: np.where(np.arange(size) == 0, FAR, 0),
    "anything": lambda size, rng: rng.integers(-FAR, FAR, size),
    "repetitions above": lambda size, rng: np.where(np.arange(size) % 5 == 0, FAR, -FAR),
}


@pytest.mark.nightly(but=1)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("activities", [1, 4])
@pytest.mark.parametrize("cases", [-FAR, 0, 300, FAR])
@pytest.mark.parametrize("relations", EXTREME)
def test_whatever_is_answered_there_is_a_release_and_no_branch_asks_for_more(
    relations: str, cases: int, activities: int
) -> None:
    """Extreme answers give a release, no more queries, and charges that add up."""
    log = Variants.from_sequences([["a"]] * 5)
    public = Domain(activities=tuple("abcd"[:activities]), max_length=12)
    for place, votes in enumerate(EXTREME):
        # Each of both with all votes, all relations and all numbers of cases, if not with all at once.
        epsilon = ("0.1", "2")[(place + list(EXTREME).index(relations)) % 2]
        rng, spent = np.random.default_rng(4), []

        def counted(self: Curator, share: Fraction, **more: Any) -> int:
            spent.append(share)  # noqa: B023 - called in this round of the loop
            return cases

        def summed(self: Curator, features: Any, size: int, bound: int, share: Fraction, **more: Any) -> Any:
            spent.append(share)  # noqa: B023
            return EXTREME[relations](size, rng)  # noqa: B023

        def voted(self: Curator, assign: Any, size: int, share: Fraction, **more: Any) -> Any:
            spent.append(share)  # noqa: B023
            return EXTREME[votes](size, rng)  # noqa: B023

        with patch.multiple(Curator, count=counted, sums=summed, histogram=voted):
            curator = Curator(log, domain=public, randomness=noise.seeded(1))
            request = Request(Fraction(epsilon), Fraction(0), False, lambda text, done: None, lambda a, b: 0.0)
            found = evolve(curator, request, EvolveSettings(), replace(DEFAULTS, pool=2000))
        assert sum(spent) == Fraction(epsilon)
        assert set(found.labels) <= set(public.activities or ())
        assert found.lengths.max(initial=0) <= 12


def test_votes_that_contradict_each_other_leave_a_distribution() -> None:
    """Contradictory votes, each beyond floats, still leave a distribution."""
    cells = [np.array([0, 1, 1]), np.array([0, 0, 1])]
    shares = [np.array([1e9, -1e9]), np.array([-1e9, 1e9])]
    p = fit(np.full(3, 1 / 3), list(map(Counted, cells, shares, [1e-3, 1e-3])), 50)
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1)

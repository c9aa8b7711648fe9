"""From the distribution that explains the votes to the release: the fine one, and with an aim the structured one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Variants
from veilog.methods.evolve.chain import Shortened
from veilog.methods.evolve.constants import Aim
from veilog.methods.evolve.known import RealVariants
from veilog.methods.evolve.plan import EvolvePlan
from veilog.methods.evolve.structure import Imagined, Weighted, structured
from veilog.methods.evolve.traces import Traces, distances, joined, nearest, strings
from veilog.methods.evolve.votes import medoids, rounded


@dataclass
class Round:
    """Prototypes, the votes for each and what they cost."""

    prototypes: Traces
    votes: IntArray
    epsilon: float

    def cells(self, pool: Traces) -> IntArray:
        """The prototype nearest to each trace of the pool."""
        return nearest(strings(pool), strings(self.prototypes))


def drawn(pool: Traces, p: FloatArray, number: int, rng: np.random.Generator) -> tuple[Traces, FloatArray]:
    """The distinct ones of so many traces drawn from a distribution, and the part of the draws that each has."""
    often = rng.multinomial(number, p / p.sum())
    rows = np.flatnonzero(often)
    return pool.take(rows), often[rows] / number


def medoids_of(candidates: Traces, weights: FloatArray, number: int, known: RealVariants | None) -> Traces:
    """Candidates that the weights lie near to; those known to be real come first."""
    text = strings(candidates)
    if not known:
        return candidates.take(medoids(distances(text, text), weights, number))
    first = known.traces.take(np.arange(min(number, len(known))))
    near = distances(text, strings(first)).min(axis=1)
    others = np.flatnonzero(near > 0)
    text = [text[i] for i in others.tolist()]
    more = medoids(distances(text, text), weights[others], number - len(first), near[others])
    return joined([first, candidates.take(others[more])])


def named(traces: Traces, shortened: Shortened) -> Traces:
    """The traces in public codes: states of a wide log stand for some activities only."""
    activity = np.append(np.flatnonzero(shortened.states >= 0), -1).astype(np.int32)
    return Traces(activity[traces.codes], traces.lengths)


def release_of(
    activities: tuple[str, ...],
    shortened: Shortened,
    pool: Traces,
    p: FloatArray,
    last: Round,
    plan: EvolvePlan,
    rng: np.random.Generator,
    known: RealVariants | None,
    aims: Sequence[Aim],
) -> list[Variants]:
    """Medoids of the fitted distribution, each for the cases near it: finer than the prototypes that were voted for.

    For each aim a release in which they are moved to traces of a structure from which a model can be discovered.
    """
    settings = plan.settings

    def log(traces: Traces, counts: IntArray) -> Variants:
        public = named(traces, shortened)
        used = np.arange(public.codes.shape[1]) < public.lengths[:, None]
        offsets = np.concatenate([[0], np.cumsum(public.lengths)])
        return Variants.from_arrays(activities, public.codes[used], offsets, counts)

    candidates, shares = drawn(pool, p, settings.candidates_release, rng)
    chosen = medoids_of(candidates, shares, round(settings.release_factor * len(last.votes)), known)
    masses = np.bincount(nearest(strings(pool), strings(chosen)), weights=p, minlength=len(chosen))
    weights = (plan.cases * masses).astype(np.float64)
    smallest = settings.smallest_release / last.epsilon
    if known:
        weights[: len(known)] = np.maximum(weights[: len(known)], max(1.0, smallest))
    fine = Weighted(chosen, rounded(weights, smallest, plan.cases), len(known) if known else 0)
    if not aims:
        return [log(fine.traces, fine.counts)]
    imagined = Imagined(pool, p, candidates, shortened.size)
    found = structured(fine, imagined, aims, _noise(pool, p, last, plan), log, settings)
    return [log(moved.traces, moved.counts) for moved in found]


def _noise(pool: Traces, p: FloatArray, last: Round, plan: EvolvePlan) -> float:
    """The part of the last votes that is noise: at most one standard deviation of each prototype's cases."""
    masses = np.bincount(last.cells(pool), weights=p, minlength=len(last.votes))
    return float(np.minimum(masses, math.sqrt(2) / (last.epsilon * plan.cases)).sum())

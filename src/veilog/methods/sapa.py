"""SaPa: a directly-follows relation whose entries a score chooses, played out.

S.A. Fahrenkrog-Petersen, M. Kabierski, H. van der Aa, M. Weidlich, "Semantics-aware Mechanisms for Control-flow
Anonymization in Process Mining" (2023), Algorithms 2 and 3.

The k-follows score of a pair of activities is the smallest distance at which the second follows the first. Pairs within
distance k are kept. Of the others, the harmful ones, the exponential mechanism lets in i, with P(i) ~ exp(-epsilon i /
2), drawn uniformly. Each kept pair has a count of at least 1.

As published the scores are read off the raw log and a count's noise is redrawn until the count is positive. The budget
covers neither: nothing can be derived. Certified, all pairs get noise in one query. Pairs that stand out from it follow
each other, and distances are those in the graph that they form. All that is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.logs.variants import Sequences, Variants
from veilog.methods._relations import draw_number, public_codes
from veilog.methods.df_laplace import (
    RelationSettings,
    certified_relation,
    exact_relation,
    needs_of_relation,
    play,
    refuse_flood,
    resized,
)
from veilog.methods.method import Request, our_method
from veilog.methods.settings import Range
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise


@dataclass(frozen=True, kw_only=True)
class SapaSettings(RelationSettings):
    """Settings of SaPa."""

    k: Annotated[int, "longest distance of activities that may follow each other directly", Range(1, 1000)] = 1


def sapa(curator: Curator, request: Request, settings: SapaSettings) -> Variants:
    """Return traces played out from the kept directly-follows counts.

    Certified: epsilon in all, as for df-laplace. As published: noise of scale 1/epsilon, guarantee none.
    """
    random = noise.generator(curator.randomness)
    if request.as_published:
        refuse_flood(curator, request.epsilon)
        original = curator.peek("sapa-scores-raw")
        kept = sequences_within(original.sequences, curator.activities, settings.k)
        kept |= _admit_harmful(~kept, float(request.epsilon), random)
        exact = exact_relation(original, curator.activities)
        relation = np.zeros_like(exact)
        relation[kept] = _positive(exact[kept], curator, request)
        return play(curator, request, relation, np.zeros_like(relation), settings)
    noisy, threshold, cases = certified_relation(curator, request, settings)
    near = noisy > threshold
    if not near[-1].any() or not near[:, -1].any():
        # Without a start or an end that stands out there is no graph to take distances in.
        kept = near
    else:
        kept = _pairs_within(near, settings.k)
        kept |= _admit_harmful(~kept, float(request.epsilon), random)
    relation = np.where(kept, np.maximum(noisy, 1), 0)
    return resized(play(curator, request, relation, np.maximum(noisy, 0), settings), cases, curator)


def sequences_within(sequences: Sequences, activities: tuple[str, ...], k: int) -> BoolArray:
    """Return the pairs at a distance of 1 to k in some sequence, with start and end."""
    boundary = len(activities)
    # One long row of events, every sequence between a start and an end of its own.
    lengths = sequences.lengths + 2
    owner = np.repeat(np.arange(len(sequences)), lengths)
    codes = np.full(len(owner), boundary, dtype=np.int64)
    ends = np.cumsum(lengths)
    is_event = np.ones(len(owner), dtype=bool)
    is_event[ends - 1] = is_event[ends - lengths] = False
    codes[is_event] = public_codes(sequences, activities)[sequences.codes]
    near = np.zeros((boundary + 1, boundary + 1), dtype=bool)
    for distance in range(1, min(k, int(lengths.max(initial=2)) - 1) + 1):
        together = owner[:-distance] == owner[distance:]
        near[codes[:-distance][together], codes[distance:][together]] = True
    near[boundary, boundary] = False
    return near


def _pairs_within(near: BoolArray, k: int) -> BoolArray:
    """Return the pairs at most k steps apart in a graph, never through the end."""
    reached, step = near.copy(), near
    inside = near.copy()
    inside[-1] = False
    for _ in range(min(k, len(near)) - 1):
        step = (step[:, :-1].astype(np.float32) @ inside[:-1].astype(np.float32)) > 0
        reached |= step
    reached[-1, -1] = near[-1, -1]
    return reached


def _admit_harmful(harmful: BoolArray, epsilon: float, random: np.random.Generator) -> BoolArray:
    """Return as many harmful relations as the exponential mechanism draws.
    None leads from the start to the end."""
    candidates = np.flatnonzero(harmful.ravel()[:-1])
    chosen = np.zeros(harmful.size, dtype=bool)
    chosen[random.permutation(candidates)[: draw_number(len(candidates), epsilon / 2, random)]] = True
    return chosen.reshape(harmful.shape)


def _positive(exact: IntArray, curator: Curator, request: Request) -> IntArray:
    """Return counts with noise of scale 1/epsilon, redrawn until sums are at least 1."""
    epsilon, source = request.epsilon, curator.randomness
    noisy = np.zeros_like(exact)
    absent = exact == 0
    noisy[absent] = 1 + noise.geometric(epsilon, int(absent.sum()), source)
    while len(left := np.flatnonzero(noisy < 1)):
        noisy[left] = exact[left] + noise.discrete_laplace(epsilon, len(left), source)
    return noisy


SAPA = our_method("sapa", sapa, SapaSettings, needs=needs_of_relation)

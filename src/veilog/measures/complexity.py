"""How complex a log is: sizes, lengths, and the entropies of its prefix tree.

A. Augusto, J. Mendling, M. Vidgof, B. Wurm, "The connection between process complexity of event sequences and models
discovered by process mining", Information Sciences 598 (2022). The log is folded into its prefix tree; the tree is cut
into partitions: a state continues the partition of its parent for one child, every other child opens a new one. With
e_i events (s_i states) in partition i, E = sum e_i and S = sum s_i,

    sequence entropy = E ln E - sum_i e_i ln e_i        normalised: divided by E ln E
    variant entropy  = S ln S - sum_i s_i ln s_i        normalised: divided by S ln S.

0 is a log of one variant (all events in one partition); 1 would be every event alone.

Which child continues depends on the order of events in the authors' program (the one seen first). Here it is the child
with the most cases, ties by the order of activity names, so that the value is a function of the multiset of variants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilog._plain import ToJson
from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants

__all__ = ["Complexity", "complexity", "length_error"]


@dataclass(frozen=True)
class Complexity(ToJson):
    """Sizes of a log and the entropies of its prefix tree; natural logarithms."""

    cases: int
    events: int
    variants: int
    activities: int
    mean_length: float | None
    """Events a case; None without cases."""
    variants_per_case: float | None
    sequence_entropy: float
    normalized_sequence_entropy: float | None
    """None for fewer than two events, where it is 0 / 0."""
    variant_entropy: float
    normalized_variant_entropy: float | None


def complexity(log: EventLog | Variants) -> Complexity:
    """The complexity of a log; a function of its variants alone."""
    variants = log if isinstance(log, Variants) else log.variants
    events, states = _partitions(variants)
    sequence, normal_sequence = _entropy(events)
    variant, normal_variant = _entropy(states)
    cases = variants.cases
    return Complexity(
        cases=cases,
        events=variants.events,
        variants=len(variants),
        activities=len(variants.labels),
        mean_length=variants.events / cases if cases else None,
        variants_per_case=len(variants) / cases if cases else None,
        sequence_entropy=sequence,
        normalized_sequence_entropy=normal_sequence,
        variant_entropy=variant,
        normalized_variant_entropy=normal_variant,
    )


def length_error(original: EventLog | Variants, released: EventLog | Variants) -> float:
    """Relative error of the mean number of events a case: |released - original| / original."""
    means = []
    for log, name in ((original, "original"), (released, "released")):
        variants = log if isinstance(log, Variants) else log.variants
        if variants.cases == 0:
            raise ParameterError(f"The {name} log has no cases, so it has no mean length.", parameter=name)
        means.append(variants.events / variants.cases)
    if means[0] == 0.0:
        raise ParameterError("The original log has no events.", parameter="original")
    return abs(means[1] - means[0]) / means[0]


def _entropy(sizes: IntArray) -> tuple[float, float | None]:
    total = int(sizes.sum())
    largest = total * math.log(total) if total else 0.0
    value = largest - math.fsum(n * math.log(n) for n in sizes.tolist())
    # Below two there is no entropy to normalise; rounding may leave a value an ulp below zero.
    value = max(0.0, value)
    return value, value / largest if largest > 0.0 else None


def _partitions(variants: Variants) -> tuple[IntArray, IntArray]:
    """Events and states of each partition of the prefix tree, level by level over all variants at once."""
    lengths = variants.lengths
    alive = np.flatnonzero(lengths > 0)
    parent = np.zeros(len(alive), dtype=np.int64)
    partition_of = np.zeros(1, dtype=np.int64)
    events: list[IntArray] = []
    where: list[IntArray] = []
    partitions = 1
    depth = 0
    size = max(1, len(variants.labels))
    while len(alive):
        codes = variants.codes[variants.offsets[alive] + depth].astype(np.int64)
        states, own = np.unique(parent * size + codes, return_inverse=True)
        weight = np.zeros(len(states), dtype=np.int64)
        np.add.at(weight, own, variants.counts[alive])
        above = states // size
        # The heaviest child of each parent continues its partition; the keys are already in order of names.
        order = np.lexsort((np.arange(len(states)), -weight, above))
        first = np.ones(len(states), dtype=np.bool_)
        first[1:] = above[order][1:] != above[order][:-1]
        mine = np.empty(len(states), dtype=np.int64)
        mine[order[first]] = partition_of[above[order[first]]]
        fresh = order[~first]
        mine[fresh] = partitions + np.arange(len(fresh))
        partitions += len(fresh)
        events.append(weight)
        where.append(mine)
        depth += 1
        longer = lengths[alive] > depth
        alive, parent, partition_of = alive[longer], own[longer], mine
    if not events:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    all_where = np.concatenate(where)
    sums = np.zeros(partitions, dtype=np.int64)
    np.add.at(sums, all_where, np.concatenate(events))
    return sums, np.bincount(all_where, minlength=partitions).astype(np.int64)

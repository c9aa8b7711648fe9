"""Complexity of a log: sizes, lengths and the entropies of its prefix tree.

A. Augusto, J. Mendling, M. Vidgof, B. Wurm, "The connection between process complexity of event sequences and models
discovered by process mining", Information Sciences 598 (2022). The log is folded into its prefix tree, and the tree is
cut into partitions. One child of a state continues its partition, and every other child opens a new one. With e_i
events (s_i states) in partition i, E = sum e_i and S = sum s_i,

    sequence entropy = E ln E - sum_i e_i ln e_i        normalised: divided by E ln E
    variant entropy  = S ln S - sum_i s_i ln s_i        normalised: divided by S ln S.

0 is a log of one variant (all events in one partition); 1 would be every event alone.

Which child continues depends on the order of events in the authors' program (the one seen first). Here it is the child
with the most cases, ties by the order of activity names, so that the value is a function of the multiset of variants.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair, our_measure
from veilog.mining.replay import PrefixTree


@dataclass(frozen=True)
class Complexity:
    """Sizes of a log and the entropies of its prefix tree; natural logarithms."""

    cases: int
    events: int
    variants: int
    activities: int
    mean_length: float | None
    """Number of events per case; None without cases."""
    variants_per_case: float | None
    sequence_entropy: float
    normalized_sequence_entropy: float | None
    """None for fewer than two events, where it is 0 / 0."""
    variant_entropy: float
    normalized_variant_entropy: float | None

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def complexity(log: EventLog | Variants) -> Complexity:
    """Return the complexity of a log, a function of its variants alone."""
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
    """Return |released - original| / original for the mean number of events per case."""
    means = []
    for log, name in ((original, "original"), (released, "released")):
        variants = log if isinstance(log, Variants) else log.variants
        if variants.cases == 0:
            raise ParameterError("length-log-without-cases", parameter=name, name=name)
        means.append(variants.events / variants.cases)
    if means[0] == 0.0:
        raise ParameterError("complexity-without-events", parameter="original")
    return abs(means[1] - means[0]) / means[0]


def _entropy(sizes: IntArray) -> tuple[float, float | None]:
    total = int(sizes.sum())
    largest = total * math.log(total) if total else 0.0
    value = largest - math.fsum(n * math.log(n) for n in sizes.tolist())
    # Below two there is no entropy to normalise; rounding may leave a value an ulp below zero.
    value = max(0.0, value)
    return value, value / largest if largest > 0.0 else None


def _partitions(variants: Variants) -> tuple[IntArray, IntArray]:
    """Return the events and the states of each partition of the prefix tree."""
    tree = PrefixTree.of(variants)
    states = np.arange(1, len(tree.parents))
    if not len(states):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    above, weight = tree.parents[1:], tree.passing[1:]
    # The heaviest child of each parent continues its partition; those of a parent are already in order of names.
    order = np.lexsort((states, -weight, above))
    heaviest = order[np.flatnonzero(np.diff(above[order], prepend=-1))]
    begins = np.arange(len(tree.parents))
    begins[states[heaviest]] = above[heaviest]
    while True:  # from each state to where its partition begins, twice as far each time
        further = begins[begins]
        if np.array_equal(further, begins):
            break
        begins = further
    _, partition = np.unique(begins[1:], return_inverse=True)
    events = np.zeros(int(partition.max()) + 1, dtype=np.int64)
    np.add.at(events, partition, weight)
    return events, np.bincount(partition).astype(np.int64)


def _size_ratio(pair: Pair) -> float:
    original, released = pair.variants
    if original.cases == 0:
        raise ParameterError("complexity-without-cases", parameter="original")
    return released.cases / original.cases


def _normalised_entropy(variants: Variants) -> float:
    value = complexity(variants).normalized_sequence_entropy
    if value is None:
        raise ParameterError("complexity-events-too-few")
    return value


SIZE_RATIO = our_measure("size_ratio", _size_ratio)
LENGTH_ERROR = our_measure("length_error", lambda pair: length_error(*pair.variants))
ENTROPY = our_measure("sequence_entropy", lambda pair: _normalised_entropy(pair.variants[1]))
ENTROPY_ORIGINAL = our_measure("sequence_entropy_original", lambda pair: _normalised_entropy(pair.variants[0]))

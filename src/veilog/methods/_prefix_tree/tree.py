"""Prefix tree of Laplace and SaCoFa, grown by noisy counts of continuations.

A prefix is continued by an activity or by the end of the trace. A level is one histogram over (surviving prefix x
continuation); a case is in at most one of its bins, because a case has one prefix of every length. The number of bins
never matters: the curator returns only those above a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.logs.variants import Sequences, Variants
from veilog.methods._relations import public_codes
from veilog.methods.settings import LargestLog, Range, Settings
from veilog.privacy.contributions import Features
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Fact
from veilog.privacy.histograms import Assign
from veilog.privacy.mechanisms.mechanism import DiscreteGaussian, Laplace

Noise = Laplace | DiscreteGaussian


@dataclass(frozen=True)
class TreeLevel:
    """The surviving prefixes of one length and their noisy counts.

    ``bins`` ascends; bin ``parent * width + symbol`` continues the ``parent``-th prefix of the level above that can be
    continued, where symbol ``width - 1`` is the end of the trace.
    """

    bins: IntArray
    counts: IntArray
    width: int
    least: int = 0
    """The count above which one survived; more, where it broke rules."""
    uncounted: BoolArray | None = None
    """Prefixes that are there whatever their counts were; the counts are not known."""

    @cached_property
    def is_open(self) -> BoolArray:
        """True for prefixes that have not reached the end of the trace."""
        return np.asarray(self.bins % self.width != self.width - 1)

    @cached_property
    def open_bins(self) -> IntArray:
        return self.bins[self.is_open]

    @property
    def parents(self) -> IntArray:
        """Place of each prefix's parent among the open prefixes of the level above."""
        return self.bins // self.width

    @property
    def symbols(self) -> IntArray:
        return self.bins % self.width


@dataclass(frozen=True)
class NoisyPrefixTree:
    """Levels of a tree from length 1 on, of only noisy answers and public facts."""

    activities: tuple[str, ...]
    levels: tuple[TreeLevel, ...] = ()

    @property
    def width(self) -> int:
        """Number of continuations of a prefix: every activity, and the end."""
        return len(self.activities) + 1

    @property
    def frontier(self) -> int:
        """Number of prefixes of the last level that can be continued."""
        return int(self.levels[-1].is_open.sum()) if self.levels else 1

    @property
    def size(self) -> int:
        """Number of prefixes, without the empty one."""
        return sum(len(level.bins) for level in self.levels)

    def grown(
        self, bins: IntArray, counts: IntArray, least: int = 0, uncounted: BoolArray | None = None
    ) -> NoisyPrefixTree:
        return NoisyPrefixTree(self.activities, (*self.levels, TreeLevel(bins, counts, self.width, least, uncounted)))


def noise_threshold(bins: int, expected: float, noise: Noise) -> int:
    """Return the smallest t >= 0 that at most ``expected`` empty bins exceed by noise.

    They are the expected number of ``bins`` empty bins with noise above t. For discrete Laplace noise with a =
    exp(-epsilon), P(noise > t) = a**(t+1) / (1+a); for Gaussian noise of deviation s it is about Phi(-(t + 1/2) / s).
    All numbers are public.
    """
    if bins <= expected or bins == 0:
        return 0
    if isinstance(noise, DiscreteGaussian):
        from scipy.special import ndtri  # here: it is of use with a delta only

        return max(0, math.ceil(-float(ndtri(expected / bins)) * math.sqrt(noise.variance) - 0.5))
    epsilon = float(noise.decay)
    return max(0, math.ceil(math.log(bins / (expected * (1 + math.exp(-epsilon)))) / epsilon) - 1)


def assign_continuation(tree: NoisyPrefixTree) -> Assign:
    """Return a map of a sequence to the continuation of its last-level prefix.

    It is -1 if that prefix did not survive.
    """
    opened = [level.open_bins for level in tree.levels]

    def assign(sequences: Sequences) -> IntArray:
        symbols = _symbols(sequences, tree.activities)
        bins = np.full(len(sequences), -1, dtype=np.int64)
        rows, nodes = np.arange(len(sequences)), np.zeros(len(sequences), dtype=np.int64)
        for depth, level in enumerate(opened):
            if len(rows) == 0:
                return bins
            found, at = _find(level, nodes * tree.width + symbols(rows, depth))
            rows, nodes = rows[found], at
        bins[rows] = nodes * tree.width + symbols(rows, len(opened))
        return bins

    return assign


def assign_deepest(tree: NoisyPrefixTree) -> Assign:
    """Return a map of a sequence to the longest of its prefixes that survived.

    It is 0 for the empty prefix, then counts level by level.
    """

    def assign(sequences: Sequences) -> IntArray:
        symbols = _symbols(sequences, tree.activities)
        bins = np.zeros(len(sequences), dtype=np.int64)
        rows, nodes = np.arange(len(sequences)), np.zeros(len(sequences), dtype=np.int64)
        first = 1
        for depth, level in enumerate(tree.levels):
            found, at = _find(level.bins, nodes * tree.width + symbols(rows, depth))
            rows = rows[found]
            bins[rows] = first + at
            first += len(level.bins)
            is_open = level.is_open
            rows, at = rows[is_open[at]], at[is_open[at]]
            nodes = (np.cumsum(is_open) - 1)[at]
        return bins

    return assign


def to_variants(tree: NoisyPrefixTree, counts: list[IntArray], empty: int = 0) -> Variants:
    """Return the variants with these counts of each prefix, level by level.

    An end is not an event.
    """
    codes, lengths, numbers = [], [np.zeros(1, dtype=np.int64)], [np.array([max(empty, 0)], dtype=np.int64)]
    above = np.zeros((1, 0), dtype=np.int64)  # the open prefixes of the level above, a row each
    for level, chosen in zip(tree.levels, counts, strict=True):
        prefixes = np.column_stack([above[level.parents], level.symbols])
        released = prefixes[chosen > 0]
        is_event = released != tree.width - 1
        codes.append(released[is_event])
        lengths.append(is_event.sum(axis=1))
        numbers.append(chosen[chosen > 0])
        above = prefixes[level.is_open]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return Variants.from_arrays(
        tree.activities, np.concatenate([np.zeros(0, dtype=np.int64), *codes]), offsets, np.concatenate(numbers)
    )


def _symbols(sequences: Sequences, activities: tuple[str, ...]) -> Callable[[IntArray, int], IntArray]:
    """Return a function of rows and a depth for their symbols in the tree's coding.
    The end comes after the last activity."""
    recode, codes = public_codes(sequences, activities), sequences.codes
    starts, ends = sequences.offsets[:-1], sequences.offsets[1:]
    if len(codes) == 0:
        return lambda rows, depth: np.full(len(rows), len(activities), dtype=np.int64)

    def at(rows: IntArray, depth: int) -> IntArray:
        position = starts[rows] + depth
        # Beyond the last event of all there is nothing to read; what is read there instead is not used.
        symbols = recode[codes.take(position, mode="clip")]
        symbols[position >= ends[rows]] = len(activities)
        return symbols

    return at


def _find(ascending: IntArray, keys: IntArray) -> tuple[BoolArray, IntArray]:
    """Return a mask of the keys that occur, and their places."""
    if len(ascending) == 0:
        return np.zeros(len(keys), dtype=bool), np.zeros(0, dtype=np.int64)
    at = ascending.searchsorted(keys)
    found = ascending.take(at, mode="clip") == keys
    return found, at[found]


# Settings that methods with a prefix tree share ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TreeSettings(Settings):
    """Settings of the depth of a tree, its levels' budget, and its final counts."""

    depth: Annotated[
        int | None,
        "length of the longest prefix; certified, a noisy 80 % quantile if not given",
        Range(1, 10_000),
    ] = None
    split: Annotated[Literal["uniform", "decreasing"], "how the depths share the budget"] = "uniform"
    noise_prefixes: Annotated[float, "empty prefixes expected to survive at each level", Range(1e-6, 1e4)] = 1.0
    count_share: Annotated[float, "share of the budget for the final counts", Range(0.01, 0.99)] = 0.2
    rest: Annotated[
        Literal["stop", "drop", "share"],
        "cases of a prefix that nothing continues: released as traces that stop there, dropped, or shared out",
    ] = "stop"
    consistency: Annotated[bool, "whether counts of prefixes and of their continuations are reconciled"] = True
    largest_log: LargestLog = 1_000_000


def needs_of_tree(settings: TreeSettings) -> frozenset[Fact]:
    """Return the needed facts: activities, and the length if it bounds the depth.

    The depth is found from the lengths of traces if it is not set.
    """
    return frozenset({"activities"}) if settings.depth else frozenset({"activities", "max_length"})


# Public numbers that follow the data, found with a little of the budget ----------------------------------------------

# Bounds and depths.


def steps_to(most: int) -> IntArray:
    """Return 1, 2, ..., 8, 10, 12, 15, ..., growing by a quarter, up to ``most``.

    A noisy histogram over them has few bins.
    """
    steps = [1]
    while steps[-1] < most:
        steps.append(min(max(steps[-1] + 1, steps[-1] * 5 // 4), most))
    return np.array(steps)


def length_histogram(curator: Curator, epsilon: Fraction, most: int | None = None) -> tuple[IntArray, IntArray]:
    """Return steps and the noisy numbers of cases by their events and end.

    The number of events and end is rounded up to a step; the last step has those with more than ``most``.
    """
    last = curator.max_length + 1
    last = last if most is None else min(last, most)
    return _histogram(curator, lambda s: s.lengths + 1, last, epsilon, "lengths-of-traces")


def number_histogram(
    curator: Curator, features: Features, most: int, epsilon: Fraction, purpose: str
) -> tuple[IntArray, IntArray]:
    """Return steps and the noisy numbers of cases by their features, rounded up."""

    def number(sequences: Sequences) -> IntArray:
        return np.bincount(np.asarray(features(sequences)[0]), minlength=len(sequences))

    return _histogram(curator, number, most, epsilon, purpose)


def quantile(steps: IntArray, counts: IntArray, part: float) -> int:
    """Return a step that about ``part`` of the cases do not exceed."""
    reached = np.cumsum(np.maximum(counts, 0))
    return int(steps[np.searchsorted(reached, part * reached[-1])])


def _histogram(
    curator: Curator, measure: Callable[[Sequences], IntArray], most: int, epsilon: Fraction, purpose: str
) -> tuple[IntArray, IntArray]:
    steps = steps_to(most)

    def assign(sequences: Sequences) -> IntArray:
        return np.minimum(np.searchsorted(steps, measure(sequences)), len(steps) - 1)

    return steps, curator.histogram(assign, len(steps), epsilon, purpose=purpose)

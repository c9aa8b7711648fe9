"""Twins: made-up logs of given sizes, on which methods and budgets are tried before anything real is asked.

A twin has about as many cases, activities and events as it is told, and exactly the told concentration, as far as that
goes: what share of the cases the most frequent variant has, and the ten and the hundred most frequent together. A case
goes from activity to activity by chances drawn at random, mostly onward and seldom back, and does not like to do again
what it has done; how sharp the chances are, and how often a case does anything at all, is what is fitted to the
concentration. What is not told is drawn anew for each twin, so that several of them show how much it matters; so is
what noise hides. A twin holds nothing of any log but the sizes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from veilog._plain import InJson, ToJson
from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.made_up.lengths import BINS, ENDS, VARY, LengthDistribution
from veilog.logs.made_up.simulate import with_times
from veilog.logs.made_up.walks import RandomProcess, Walks
from veilog.logs.variants import Variants

__all__ = ["HEADS", "MOST_CASES", "Sizes", "log_of", "twin_of"]

HEADS = {"frequent": 1, "ten": 10, "hundred": 100}
"""Of how many of the most frequent variants a share of the cases is known, by its name."""
MOST_CASES, MOST_ACTIVITIES, MOST_LENGTH = 10_000_000, 5_000, 1_000
_FIT_CASES, _COUNT_CASES = 5_000, 20_000
"""Shares of the cases are fitted on so many; the number of variants needs all cases, and is left out beyond so many."""
_SLIPS = (0.01, 0.05, 0.15, 0.0)
"""How often a step goes anywhere; tried in turn."""
_SHARPNESS = (math.log(0.1), math.log(6.0), 7)
_EVENLY = np.array([0.8192, 0.6711, 0.5497])
"""Steps from the shape of one twin to that of the next, so that those of a few are spread evenly (the additive
sequence of three dimensions)."""
_DRAWS, _GOOD = 4, 0.05
"""So many random processes are tried at most, and how near to the told concentration is near enough."""


@dataclass(frozen=True)
class Sizes(ToJson):
    """How large a log is, and how its cases are spread over its variants; None where that is not known."""

    cases: int
    length: float
    """Events of a case, on average."""
    activities: int | None = None
    variants: int | None = None
    """How many variants there are."""
    frequent: float | None = None
    """Share of the cases that have the most frequent variant."""
    ten: float | None = None
    """Share of the cases that have one of the ten most frequent variants."""
    hundred: float | None = None
    lengths: Annotated[tuple[float, ...] | None, InJson(left_out="at its default")] = None
    """Share of the cases in each bin of lengths."""
    off: Annotated[tuple[float, ...] | None, InJson(left_out="at its default")] = None
    """By how many cases noise puts their number off, that of those of the most frequent variants beside that and, where
    bins were answered, that of each bin (standard deviations); None where there is no noise, or nobody knows."""
    answers: Annotated[tuple[int, ...] | None, InJson(left_out="at its default")] = None
    """The number of cases in each bin of lengths as it was answered, with noise."""
    held: Annotated[tuple[float, ...] | None, InJson(left_out="at its default")] = None
    """How many cases the most frequent variants have (one, ten, a hundred) by their answers alone, possible or not."""

    def __post_init__(self) -> None:
        _check("cases", self.cases, 1, MOST_CASES)
        _check("length", self.length, 0, MOST_LENGTH)
        if self.activities is not None:
            _check("activities", self.activities, 1, MOST_ACTIVITIES)
        if self.variants is not None:
            _check("variants", self.variants, 1, self.cases)
        if self.off is not None and not (len(self.off) in (2, 3) and all(0 <= off < math.inf for off in self.off)):
            raise ParameterError("noise-puts-nothing-off", parameter="off", off=self.off)
        if self.answers is not None and len(self.answers) != len(BINS):
            raise ParameterError("bins-lengths-not", parameter="answers", number=len(BINS), number_2=len(self.answers))
        if self.held is not None and len(self.held) != len(HEADS):
            said = f"There are {len(HEADS)} answers about the most frequent variants, not {len(self.held)}."
            raise ParameterError(said, parameter="held")
        for name in HEADS:
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise ParameterError("share-cases-above-most", parameter=name, share=share)

    @staticmethod
    def of(variants: Variants) -> Sizes:
        """Return the exact sizes of a log: raw numbers, for its owner alone."""
        if not variants.cases:
            raise ParameterError("log-no-cases-no", parameter="log")
        counts = np.sort(variants.counts)[::-1]
        places = np.searchsorted(BINS, variants.lengths, side="right") - 1
        bins = np.bincount(places, weights=variants.counts, minlength=len(BINS)) / variants.cases
        heads: dict[str, Any] = {name: float(counts[:head].sum() / variants.cases) for name, head in HEADS.items()}
        return Sizes(
            cases=variants.cases,
            length=variants.events / variants.cases,
            activities=max(1, len(variants.labels)),
            variants=len(variants),
            lengths=tuple(bins.tolist()),
            **heads,
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """What would make twins more alike, in the words of the options."""
        unknown = {"activities": self.activities, "variants": self.variants, "frequent": self.frequent or self.ten}
        return tuple(name for name, value in unknown.items() if value is None)


def _check(name: str, value: float, least: float, most: float) -> None:
    whole = name != "length"
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not (right and least <= value <= most):
        kind = "whole number" if whole else "number"
        raise ParameterError("must-not-2", parameter=name, name=name, kind=kind, least=least, most=most, value=value)


@lru_cache(maxsize=32)
def twin_of(sizes: Sizes, seed: int, labels: tuple[str, ...] | None = None, longest: int | None = None) -> Variants:
    """Return a made-up log of these sizes; the same seed gives the same one.

    ``labels`` are the names of its activities, where there are names for them; no case is longer than ``longest``.
    """
    rng = np.random.default_rng([20, seed])
    number = sizes.activities or _unknown_activities(rng, sizes.length)
    names = _names(number) if labels is None else labels
    sizes = _as_may_be(rng, sizes, longest)
    walks = _fitted(rng, sizes, len(names), longest, (0.5 + seed * _EVENLY) % 1)
    return _as_told(walks.variants(names), sizes)


def _as_may_be(rng: np.random.Generator, sizes: Sizes, longest: int | None) -> Sizes:
    """Sizes of a log that may as well have given the same answers as the one that was asked."""
    if sizes.off is None:
        return sizes
    scale, beside = sizes.off[:2]
    cases = max(1, min(MOST_CASES, round(_likely(rng, sizes.cases, scale, 1, MOST_CASES))))
    found: dict[str, Any] = {}
    answered = sizes.held or [sizes.cases * (getattr(sizes, name) or 0) for name in HEADS]
    before, held = 0, float(cases)
    for (name, number), answer in reversed(list(zip(HEADS.items(), answered, strict=True))):
        if getattr(sizes, name) is not None:
            # Their cases are half an answer and half of all cases, so half of what these are off. Of fewer variants
            # each has no fewer cases than of more.
            middle = answer + (cases - sizes.cases) / 2
            least = held * number / before if before else min(number, cases)
            # There may be no more variants than these: how many there are is of any order of magnitude up to all cases.
            whole = 0.0 if before or cases < 2 else min(1.0, math.log(number) / math.log(cases))
            before, held = number, _likely(rng, middle, beside, max(1.0, least), held, whole)
            found[name] = held / cases
    variants = None if sizes.variants is None else min(sizes.variants, cases)
    if sizes.answers is not None and len(sizes.off) > 2:
        believed = LengthDistribution.of(sizes.answers, sizes.off[2] / math.sqrt(2), cases, longest)
        found["lengths"] = tuple(believed.drawn(rng).tolist())
    return replace(sizes, cases=cases, variants=variants, off=None, answers=None, held=None, **found)


def _likely(
    rng: np.random.Generator, answer: float, scale: float, least: float, most: float, whole: float = 0.0
) -> float:
    """A number that may have given a noisy answer; any order of magnitude is as usual as any other, and ``whole`` is
    how likely it is the most before the answer is seen."""
    low, high = max(least, answer - 8 * scale), min(most, answer + 8 * scale)
    if low >= high:
        return min(most, max(least, answer))
    numbers = np.geomspace(low, high, 400)
    # Of all orders of magnitude between the least and the most these are so many.
    usual = np.full(400, (1 - whole) * math.log(high / low) / math.log(most / least) / 400)
    if high == most:
        usual[-1] += whole
    chances = usual * np.exp(-math.sqrt(2) * np.abs(numbers - answer) / scale)
    return float(rng.choice(numbers, p=chances / chances.sum()))


def _as_told(made: Variants, sizes: Sizes) -> Variants:
    """The same variants, with as many cases of the most frequent ones as was told: a process has that but nearly."""
    order = np.argsort(-made.counts, kind="stable")[: sizes.variants]
    counts = made.counts[order].astype(np.float64)
    told = {number: share for name, number in HEADS.items() if (share := getattr(sizes, name)) is not None}
    ends = np.array([*(end for end in told if end < len(counts)), len(counts)])
    shares = np.array([0.0, *list(told.values())[: len(ends) - 1], 1.0])
    wanted = np.diff(np.maximum.accumulate(shares)) * made.cases
    means = np.append(wanted / np.diff(ends, prepend=0), 0.0)
    most = float(made.cases)
    for begin, end, sum_, least in zip([0, *ends[:-1]], ends, wanted, means[1:], strict=True):
        block = counts[begin:end]
        for _ in range(100):  # none has more than one before it, or fewer than those after it have on average
            block *= sum_ / max(1e-9, block.sum())
            np.clip(block, min(least, most), most, out=block)
            if abs(block.sum() - sum_) < 1e-3 * sum_:
                break
        most = float(block[-1])
    if not counts.any():
        return made
    sums = np.rint(np.cumsum(counts) * (made.cases / counts.sum())).astype(np.int64)
    found = np.diff(sums, prepend=0)
    kept = made.sequences.take(order[found > 0])
    return Variants.from_arrays(made.labels, kept.codes, kept.offsets, found[found > 0])


def log_of(variants: Variants, seed: int) -> EventLog:
    """Return a twin as a log: its cases in random order, with times of no meaning."""
    rng = np.random.default_rng([21, seed])
    rows = rng.permutation(np.repeat(np.arange(len(variants)), variants.counts))
    cases = variants.sequences.take(rows)
    return with_times(variants.labels, cases.codes, cases.offsets, seed, f"made-up twin, seed {seed}")


def _names(number: int) -> tuple[str, ...]:
    digits = len(str(number))
    return tuple(f"Activity {i:0{digits}d}" for i in range(1, number + 1))


def _unknown_activities(rng: np.random.Generator, length: float) -> int:
    """Between half as many and four times as many as a case has events."""
    low, high = math.log(max(3.0, length / 2)), math.log(max(6.0, 4 * length))
    return round(math.exp(rng.uniform(low, high)))


def _ending(rng: np.random.Generator, sizes: Sizes, longest: int | None, vary: float) -> IntArray:
    """How many cases have 0, 1, 2, ... events; where that is not known, the more different ones, the more they
    ``vary`` (0 to 1)."""
    most = min(MOST_LENGTH, longest or MOST_LENGTH)
    if sizes.lengths is not None:
        shares = np.maximum(np.asarray(sizes.lengths, dtype=np.float64), 0)
        which = rng.choice(len(BINS), size=sizes.cases, p=shares / shares.sum())
        lengths = rng.integers(np.asarray(BINS)[which], np.asarray(ENDS)[which])
    else:
        # How much lengths vary differs from log to log; cases of the most frequent variant have the usual length.
        form, share = 1 / np.interp(vary, (0, 1), VARY) ** 2, min(sizes.frequent or 0.0, 0.99)
        frequent = int(share * sizes.cases)
        usual = min(1 + max(0.0, sizes.length - 1) * max(0.0, 1 - 1 / form), sizes.length / max(share, 1e-9))
        rest = max(0.0, (sizes.length - share * round(usual)) / (1 - share) - 1)
        lengths = 1 + rng.poisson(rest * rng.gamma(form, 1 / form, size=sizes.cases))
        lengths[:frequent] = max(1, round(usual))
    return np.bincount(np.minimum(lengths, most)).astype(np.int64)


def _fitted(rng: np.random.Generator, sizes: Sizes, number: int, longest: int | None, shape: FloatArray) -> Walks:
    """The cases of a process whose sharpness, and how often its cases slip, give about the concentration told. The
    first that is tried has this shape."""
    enough = _COUNT_CASES if sizes.variants else _FIT_CASES
    shares = _told(replace(sizes, variants=None)) if sizes.cases > enough else {}
    told = shares or _told(sizes)
    best: tuple[float, RandomProcess, float, float, IntArray] | None = None
    for _ in range(_DRAWS):
        vary, onward, once = shape.tolist()
        shape = rng.random(len(shape))
        ending = _ending(rng, sizes, longest, vary)
        length = float((ending * np.arange(len(ending))).sum() / sizes.cases)
        process = RandomProcess.drawn(rng, number, length, onward, once)
        if not told:
            sharpness = math.exp(rng.uniform(math.log(0.1), math.log(0.7)))
            return Walks.of(process, sharpness, float(rng.choice(_SLIPS)), ending)
        # With shares alone they are the same of fewer cases.
        tried = np.ceil(ending * (_FIT_CASES / sizes.cases)).astype(np.int64) if shares else ending
        for slip in _SLIPS:
            tries = np.linspace(*_SHARPNESS)
            for _ in range(2):
                off = [_distance(told, Walks.of(process, math.exp(x), slip, tried)) for x in tries]
                nearest = int(np.argmin(off))
                if best is None or off[nearest] < best[0]:
                    best = (off[nearest], process, math.exp(tries[nearest]), slip, ending)
                step = (tries[1] - tries[0]) / 4
                tries = tries[nearest] + step * np.array([-2, -1, 1, 2])
            if best is not None and best[0] < _GOOD:
                return Walks.of(*best[1:])
    assert best is not None
    return Walks.of(*best[1:])


def _told(sizes: Sizes) -> dict[str, float]:
    """What is known of the concentration, as shares of the cases."""
    known = {name: share for name in HEADS if (share := getattr(sizes, name)) is not None}
    return known | ({"variants": sizes.variants / sizes.cases} if sizes.variants else {})


def _distance(told: dict[str, float], walks: Walks) -> float:
    """How far the cases are from the concentration told, in squared differences of log odds."""
    counts, cases = walks.counts, walks.cases
    found = {"variants": len(counts) / cases} | {name: counts[:n].sum() / cases for name, n in HEADS.items()}
    return sum((_odds(found[name], cases) - _odds(share, cases)) ** 2 for name, share in told.items())


def _odds(share: float, cases: int) -> float:
    kept = min(1.0, max(share, 1 / cases))
    return math.log(kept / (1 - kept + 1e-3) + 1e-4)

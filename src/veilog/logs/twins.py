"""Twins: made-up logs of given sizes, on which methods and budgets are tried before anything real is asked.

A twin has about as many cases, activities and events as it is told, and about the told concentration: how many variants
there are, and what share of the cases the most frequent one has, and the ten and the hundred most frequent together. A
case goes from activity to activity by chances drawn at random, mostly onward and seldom back; how sharp the chances
are, and how often a case does anything at all, is what is fitted to the concentration. What is not told is drawn anew
for each twin, so that several of them show how much it matters. A twin holds nothing of any log but the sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated

import numpy as np

from veilog._plain import InJson, ToJson
from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.simulate import with_times
from veilog.logs.variants import Variants

__all__ = ["BINS", "HEADS", "MOST_CASES", "Sizes", "log_of", "twin_of"]

HEADS = {"frequent": 1, "ten": 10, "hundred": 100}
"""Of how many of the most frequent variants a share of the cases is known, by its name."""
MOST_CASES, MOST_ACTIVITIES, MOST_LENGTH = 10_000_000, 5_000, 1_000
BINS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 19, 24, 30, 38, 48, 60, 80, 110, 150, 210, 300)
"""Where the bins of lengths begin; the last has no end."""
_FIT_CASES, _COUNT_CASES = 5_000, 20_000
"""Shares of the cases are fitted on so many; the number of variants needs all cases, and is left out beyond so many."""
_SLIPS = (0.01, 0.05, 0.15, 0.0)
"""How often a step goes anywhere; tried in turn."""
_SHARPNESS = (math.log(0.1), math.log(6.0), 7)
_DRAWS, _GOOD = 2, 0.05
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

    def __post_init__(self) -> None:
        _check("cases", self.cases, 1, MOST_CASES)
        _check("length", self.length, 0, MOST_LENGTH)
        if self.activities is not None:
            _check("activities", self.activities, 1, MOST_ACTIVITIES)
        if self.variants is not None:
            _check("variants", self.variants, 1, self.cases)
        for name in HEADS:
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise ParameterError(f"A share of cases is above 0 and at most 1, not {share!r}.", parameter=name)

    @staticmethod
    def of(variants: Variants) -> Sizes:
        """Return the exact sizes of a log: raw numbers, for its owner alone."""
        if not variants.cases:
            raise ParameterError("The log has no cases, so it has no twin.", parameter="log")
        counts = np.sort(variants.counts)[::-1]
        places = np.searchsorted(BINS, variants.lengths, side="right") - 1
        bins = np.bincount(places, weights=variants.counts, minlength=len(BINS)) / variants.cases
        return Sizes(
            cases=variants.cases,
            length=variants.events / variants.cases,
            activities=max(1, len(variants.labels)),
            variants=len(variants),
            lengths=tuple(bins.tolist()),
            **{name: float(counts[:head].sum() / variants.cases) for name, head in HEADS.items()},
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
        raise ParameterError(f"{name} must be a {kind} from {least:,} to {most:,}, not {value!r}.", parameter=name)


@lru_cache(maxsize=32)
def twin_of(sizes: Sizes, seed: int, labels: tuple[str, ...] | None = None, longest: int | None = None) -> Variants:
    """Return a made-up log of these sizes; the same seed gives the same one.

    ``labels`` are the names of its activities, where there are names for them; no case is longer than ``longest``.
    """
    rng = np.random.default_rng([20, seed])
    number = sizes.activities or _unknown_activities(rng, sizes.length)
    names = _names(number) if labels is None else labels
    ending = _ending(rng, sizes, longest)
    process, sharpness, slip = _fitted(rng, sizes, len(names), ending)
    walks = _Walks.of(process, sharpness, slip, ending)
    return walks.variants(names)


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


def _ending(rng: np.random.Generator, sizes: Sizes, longest: int | None) -> IntArray:
    """How many cases have 0, 1, 2, ... events."""
    most = min(MOST_LENGTH, longest or MOST_LENGTH)
    if sizes.lengths is not None:
        shares = np.maximum(np.asarray(sizes.lengths, dtype=np.float64), 0)
        which = rng.choice(len(BINS), size=sizes.cases, p=shares / shares.sum())
        ends = np.append(BINS[1:], 2 * BINS[-1] - BINS[-2])
        lengths = rng.integers(np.asarray(BINS)[which], ends[which])
    else:
        # Cases of the most frequent variant have one length; those of others vary more or less from log to log.
        form = 1 / rng.uniform(0.3, 0.8) ** 2
        rest = max(0.0, sizes.length - 1)
        lengths = 1 + rng.poisson(rest * rng.gamma(form, 1 / form, size=sizes.cases))
        lengths[: int((sizes.frequent or 0) * sizes.cases)] = max(1, round(sizes.length))
    return np.bincount(np.minimum(lengths, most)).astype(np.int64)


@dataclass(frozen=True)
class _Process:
    """What is random about a process: how likely each step is before it is made sharp, and where cases end."""

    leanings: FloatArray
    """For each activity (the last row: the start) towards each other."""
    usual: FloatArray
    """How often each activity is done by cases that do anything at all."""
    ends: FloatArray

    @staticmethod
    def drawn(rng: np.random.Generator, number: int, length: float) -> _Process:
        often = 1.0 / (rng.permutation(number).astype(np.float64) + 1.0)
        usual: FloatArray = (often / often.sum()).astype(np.float64)
        onward = rng.uniform(0, 1)
        stride = max(1.0, 1.5 * number / max(1.0, length))
        ahead = np.arange(number)[None] - np.append(np.arange(number), -1)[:, None]
        way = np.where(ahead > 0, -(ahead - 1) / stride, -2.0 - np.abs(ahead) / stride)
        way = np.maximum(np.where(ahead == 0, -1.5, way), -6.0)
        chance = rng.gumbel(size=(number + 1, number))
        late = np.log(np.linspace(0.02, 1.0, number))
        ends = rng.gumbel(size=number) + 4 * onward * late
        return _Process(chance + 2 * onward * way + 0.7 * np.log(usual), usual, ends)

    def chances(self, sharpness: float, slip: float) -> FloatArray:
        """Of each step; they are the sharper, the smaller ``sharpness`` is."""
        leanings = self.leanings / sharpness
        p = np.exp(leanings - leanings.max(axis=1, keepdims=True))
        found: FloatArray = (1 - slip) * p / p.sum(axis=1, keepdims=True) + slip * self.usual
        return found


@dataclass(frozen=True)
class _Walks:
    """The cases that a process makes: step by step who is still under way, and at which activity."""

    cases: int
    steps: tuple[tuple[IntArray, IntArray], ...]

    @staticmethod
    def of(process: _Process, sharpness: float, slip: float, ending: IntArray) -> _Walks:
        """Return as many cases as ``ending`` says, of the lengths that it says; always the same."""
        rng = np.random.default_rng(7)
        number, cases = len(process.usual), int(ending.sum())
        sums = np.cumsum(process.chances(sharpness, slip), axis=1)
        flat = (sums / sums[:, -1:] + np.arange(number + 1)[:, None]).ravel()
        ends = process.ends / max(sharpness, 0.05)
        alive = np.arange(cases - int(ending[0]))
        at = np.full(len(alive), number)
        steps = []
        for stop in ending[1:].tolist():
            at = np.searchsorted(flat, at + rng.random(len(alive)), side="right") - at * number
            at = np.minimum(at, number - 1)
            steps.append((alive, at))
            if 0 < stop < len(alive):
                keys = ends[at] + rng.gumbel(size=len(alive))
                stays = np.ones(len(alive), dtype=np.bool_)
                stays[np.argpartition(-keys, stop - 1)[:stop]] = False
                alive, at = alive[stays], at[stays]
        return _Walks(cases, tuple(steps))

    @cached_property
    def counts(self) -> IntArray:
        """How many cases each variant has, the most frequent first; variants are told apart by a hash."""
        marks = np.zeros(self.cases, dtype=np.uint64)
        for who, at in self.steps:
            mixed = marks[who] * np.uint64(0x9E3779B97F4A7C15) + at.astype(np.uint64) + np.uint64(1)
            marks[who] = mixed ^ (mixed >> np.uint64(29))
        found: IntArray = np.sort(np.unique(marks, return_counts=True)[1])[::-1]
        return found

    def variants(self, names: Sequence[str]) -> Variants:
        who = np.concatenate([np.zeros(0, dtype=np.int64), *(who for who, _ in self.steps)])
        at = np.concatenate([np.zeros(0, dtype=np.int64), *(at for _, at in self.steps)])
        order = np.argsort(who, kind="stable")
        offsets = np.searchsorted(who[order], np.arange(self.cases + 1))
        return Variants.from_arrays(names, at[order], offsets)


def _fitted(rng: np.random.Generator, sizes: Sizes, number: int, ending: IntArray) -> tuple[_Process, float, float]:
    """A process, its sharpness and how often its cases slip, that give about the concentration of the sizes."""
    enough = _COUNT_CASES if sizes.variants else _FIT_CASES
    shares = _told(replace(sizes, variants=None)) if sizes.cases > enough else {}
    told = shares or _told(sizes)
    length = float((ending * np.arange(len(ending))).sum() / max(1, ending.sum()))
    if not told:
        sharpness, slip = math.exp(rng.uniform(math.log(0.1), math.log(0.7))), rng.choice(_SLIPS)
        return _Process.drawn(rng, number, length), sharpness, float(slip)
    if shares:  # they are the same of fewer cases
        ending = np.ceil(ending * (_FIT_CASES / sizes.cases)).astype(np.int64)
    best: tuple[float, _Process, float, float] | None = None
    for _ in range(_DRAWS):
        process = _Process.drawn(rng, number, length)
        for slip in _SLIPS:
            tries = np.linspace(*_SHARPNESS)
            for _ in range(2):
                off = [_distance(told, _Walks.of(process, math.exp(x), slip, ending)) for x in tries]
                nearest = int(np.argmin(off))
                if best is None or off[nearest] < best[0]:
                    best = (off[nearest], process, math.exp(tries[nearest]), slip)
                step = (tries[1] - tries[0]) / 4
                tries = tries[nearest] + step * np.array([-2, -1, 1, 2])
            if best is not None and best[0] < _GOOD:
                return best[1:]
    assert best is not None
    return best[1:]


def _told(sizes: Sizes) -> dict[str, float]:
    """What is known of the concentration, as shares of the cases."""
    known = {name: share for name in HEADS if (share := getattr(sizes, name)) is not None}
    return known | ({"variants": sizes.variants / sizes.cases} if sizes.variants else {})


def _distance(told: dict[str, float], walks: _Walks) -> float:
    """How far the cases are from the concentration told, in squared differences of log odds."""
    counts, cases = walks.counts, walks.cases
    found = {"variants": len(counts) / cases} | {name: counts[:n].sum() / cases for name, n in HEADS.items()}
    return sum((_odds(found[name], cases) - _odds(share, cases)) ** 2 for name, share in told.items())


def _odds(share: float, cases: int) -> float:
    kept = min(1.0, max(share, 1 / cases))
    return math.log(kept / (1 - kept + 1e-3) + 1e-4)

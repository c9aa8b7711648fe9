"""Cases that a random process makes, step by step: what twins are made of.

A case goes from activity to activity by chances drawn at random, mostly onward and seldom back, and does not like to do
again what it has done, as cases of logs do not: by chances alone sharp processes would soon go round among few of
their activities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.variants import Variants

__all__ = ["RandomProcess", "Walks"]

_ONCE = (0.5, 4.0)
"""Between what how seldom activities are done again is, as the power of a random number."""
_TURNS, _PREFERRED, _KEPT = 3, 12, 2**28
"""How often a case that has done an activity before is sent elsewhere by chance, before it takes the likeliest that it
has not done, among so many; and how many bytes are for what cases have done."""


@dataclass(frozen=True)
class RandomProcess:
    """What is random about a process: how likely each step is before it is made sharp, and where cases end."""

    leanings: FloatArray
    """For each activity (the last row: the start) towards each other."""
    usual: FloatArray
    """How often each activity is done by cases that do anything at all."""
    ends: FloatArray
    again: FloatArray
    """How willingly each activity is done by a case that has done it before."""

    @staticmethod
    def drawn(rng: np.random.Generator, number: int, length: float, onward: float, once: float) -> RandomProcess:
        """Return a process in which cases go ``onward`` and do activities ``once`` more (1) or less (0)."""
        often = 1.0 / (rng.permutation(number).astype(np.float64) + 1.0)
        usual: FloatArray = (often / often.sum()).astype(np.float64)
        stride = max(1.0, 1.5 * number / max(1.0, length))
        ahead = np.arange(number)[None] - np.append(np.arange(number), -1)[:, None]
        way = np.where(ahead > 0, -(ahead - 1) / stride, -2.0 - np.abs(ahead) / stride)
        way = np.maximum(np.where(ahead == 0, -1.5, way), -6.0)
        chance = rng.gumbel(size=(number + 1, number))
        late = np.log(np.linspace(0.02, 1.0, number))
        ends = rng.gumbel(size=number) + 4 * onward * late
        again = rng.random(number) ** np.interp(once, (0, 1), _ONCE)
        return RandomProcess(chance + 2 * onward * way + 0.7 * np.log(usual), usual, ends, again)

    @cached_property
    def preferred(self) -> IntArray:
        """Of each row the activities that it leans to most, the first one first."""
        most = min(_PREFERRED, len(self.usual))
        return np.argsort(-self.leanings, axis=1, kind="stable")[:, :most]

    def chances(self, sharpness: float, slip: float) -> FloatArray:
        """Of each step; they are the sharper, the smaller ``sharpness`` is."""
        leanings = self.leanings / sharpness
        p = np.exp(leanings - leanings.max(axis=1, keepdims=True))
        found: FloatArray = (1 - slip) * p / p.sum(axis=1, keepdims=True) + slip * self.usual
        return found


def _step(rng: np.random.Generator, flat: FloatArray, at: IntArray, number: int) -> IntArray:
    """Where cases go on to; ``flat`` are the sums of the chances of all rows, each beginning at the row's number."""
    found = np.searchsorted(flat, at + rng.random(len(at)), side="right") - at * number
    kept: IntArray = np.minimum(found, number - 1)
    return kept


@dataclass(frozen=True)
class _Done:
    """What each case has done; where that would be too much to keep, some activities are taken for each other."""

    kept: BoolArray

    @staticmethod
    def nothing(cases: int, number: int) -> _Done:
        return _Done(np.zeros((cases, min(number, max(16, _KEPT // max(1, cases)))), dtype=np.bool_))

    def already(self, who: IntArray, at: IntArray) -> BoolArray:
        found: BoolArray = self.kept[who, at % self.kept.shape[1]]
        return found

    def note(self, who: IntArray, at: IntArray) -> None:
        self.kept[who, at % self.kept.shape[1]] = True

    def first(self, who: IntArray, preferred: IntArray, otherwise: IntArray) -> IntArray:
        """The first preferred activity that each has not done, if there is one."""
        new = ~self.kept[who[:, None], preferred % self.kept.shape[1]]
        liked = preferred[np.arange(len(who)), new.argmax(axis=1)]
        found: IntArray = np.where(new.any(axis=1), liked, otherwise)
        return found


@dataclass(frozen=True)
class Walks:
    """The cases that a process makes: step by step who is still under way, and at which activity."""

    cases: int
    steps: tuple[tuple[IntArray, IntArray], ...]

    @staticmethod
    def of(process: RandomProcess, sharpness: float, slip: float, ending: IntArray) -> Walks:
        """Return as many cases as ``ending`` says, of the lengths that it says; always the same."""
        rng = np.random.default_rng(7)
        number, cases = len(process.usual), int(ending.sum())
        sums = np.cumsum(process.chances(sharpness, slip), axis=1)
        flat = (sums / sums[:, -1:] + np.arange(number + 1)[:, None]).ravel()
        ends = process.ends / max(sharpness, 0.05)
        alive = np.arange(cases - int(ending[0]))
        at = np.full(len(alive), number)
        done = _Done.nothing(cases, number)
        steps = []
        for stop in ending[1:].tolist():
            before, at = at, _step(rng, flat, at, number)
            for turn in range(_TURNS):
                again = np.flatnonzero(done.already(alive, at))
                again = again[rng.random(len(again)) >= process.again[at[again]]]
                if turn < _TURNS - 1:
                    at[again] = _step(rng, flat, before[again], number)
                else:
                    at[again] = done.first(alive[again], process.preferred[before[again]], at[again])
            done.note(alive, at)
            steps.append((alive, at))
            if 0 < stop < len(alive):
                keys = ends[at] + rng.gumbel(size=len(alive))
                stays = np.ones(len(alive), dtype=np.bool_)
                stays[np.argpartition(-keys, stop - 1)[:stop]] = False
                alive, at = alive[stays], at[stays]
        return Walks(cases, tuple(steps))

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

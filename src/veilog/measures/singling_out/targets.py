"""Whom an attack is tried on, and what is known of them: cases of a log, with a few of their events."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.singling_out.logs import UNKNOWN, cases_of, positions


@dataclass(frozen=True, eq=False)
class AttackTargets:
    """People to attack: the cases of a log, and what these are in the release."""

    variants: Variants
    variant: IntArray
    start: IntArray
    """``UNKNOWN`` where it is."""
    recode: IntArray
    """Of each activity its code in the release, -1 where that has none; the last one is that of -1."""
    counterpart: IntArray
    """Of each variant the release's one, -1 where it has none."""
    owner: IntArray | None
    """Whose each case is, where some have several and that is known."""

    def besides(self, attacks: Attacks, *, with_start: bool) -> IntArray | int:
        """How many other cases the person of each attack has, all or those with a known start."""
        if self.owner is None or attacks.owner is None:
            return 0
        cases = self.owner[self.start != UNKNOWN] if with_start else self.owner
        number: IntArray = np.bincount(cases)[attacks.owner] - 1
        return number


@dataclass(frozen=True, eq=False)
class Attacks:
    """People attacked."""

    variant: IntArray
    start: IntArray
    """``UNKNOWN`` where it is."""
    patterns: IntArray
    """What is known: codes of the people's activities, an attack a row."""
    weight: FloatArray
    exact: bool
    people: int
    """How many could be attacked."""
    timed: int
    """How many of them have a known start."""
    owner: IntArray | None = None
    """Who each is, where some have several cases and that is known."""

    @property
    def independent(self) -> float:
        """How many people, drawn from all who could be in the log and attacked with all that can be known, would vary
        as much: those attacked are drawn from the people of the log, and these from all."""
        return self.people if self.exact else 1 / (1 / self.people + 1 / len(self.weight))

    def rows(self, rows: IntArray) -> Attacks:
        return replace(
            self,
            variant=self.variant[rows],
            start=self.start[rows],
            patterns=self.patterns[rows],
            weight=self.weight[rows],
            people=self.timed,
            owner=None if self.owner is None else self.owner[rows],
        )


def attackable(
    log: EventLog | Variants, after: Variants, with_start: bool, owner: IntArray | None = None
) -> AttackTargets:
    """Return the cases of a log, each with its ``owner`` where these are given, in the log's order of cases."""
    variants = log if isinstance(log, Variants) else log.variants
    places = {label: code for code, label in enumerate(after.labels)}
    rows = {sequence: row for row, sequence in enumerate(after.sequences)}
    variant, start, whose = cases_of(log, variants, with_start, owner)
    return AttackTargets(
        variants,
        variant,
        start,
        recode=np.array([places.get(label, -1) for label in variants.labels] + [-1], dtype=np.int64),
        counterpart=np.array([rows.get(sequence, -1) for sequence in variants.sequences], dtype=np.int64),
        owner=whose,
    )


def drawn(whom: AttackTargets, size: int, most: int, rng: np.random.Generator) -> Attacks | None:
    """All that can be known of those who have more events, if that is no more than ``most``, or so much drawn from it;
    None where there is nobody."""
    variants = whom.variants
    people = np.flatnonzero(variants.lengths[whom.variant] > size)
    if not len(people):
        return None
    variant, start = whom.variant[people], whom.start[people]
    lengths = variants.lengths[variant]
    sizes, number = np.unique(lengths, return_counts=True)
    total = sum(math.comb(n, size) * count for n, count in zip(sizes.tolist(), number.tolist(), strict=True))
    if total <= most:
        chosen = [list(itertools.combinations(range(n), size)) for n in lengths.tolist()]
        who = np.repeat(np.arange(len(variant)), [len(c) for c in chosen])
        places = np.array([row for c in chosen for row in c], dtype=np.int64)
        weight = np.repeat([1.0 / len(c) for c in chosen], [len(c) for c in chosen])
    else:
        who = rng.integers(0, len(variant), most)
        places = positions(lengths[who], size, rng)
        weight = np.ones(most)
    patterns = variants.codes[variants.offsets[variant[who]][:, None] + places].astype(np.int64)
    timed = int((start != UNKNOWN).sum())
    owner = None if whom.owner is None else whom.owner[people[who]]
    return Attacks(variant[who], start[who], patterns, weight, total <= most, len(people), timed, owner)

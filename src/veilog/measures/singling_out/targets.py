"""Whom an attack is tried on, and what is known of them: cases of a log, with a few of their events."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.disclosure.spaces import variant_of_cases
from veilog.measures.persons import column_of, parted
from veilog.measures.similarity.distances import as_strings
from veilog.measures.singling_out.logs import UNKNOWN, cases_of, positions
from veilog.measures.use_cases.attributes import ComparedAttribute, compared


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
    own, theirs = as_strings(variants.sequences, after.sequences)
    rows = {sequence: row for row, sequence in enumerate(theirs)}
    variant, start, whose = cases_of(log, variants, with_start, owner)
    return AttackTargets(
        variants,
        variant,
        start,
        recode=np.array([places.get(label, -1) for label in variants.labels] + [-1], dtype=np.int64),
        counterpart=np.array([rows.get(sequence, -1) for sequence in own], dtype=np.int64),
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


# People and what is known of them, numbered alike in several logs ----------------------------------------------------

# People and what is known of them, numbered alike in several logs: beginnings, last activities, attributes.


MOST_ATTRIBUTES = 8
"""Attributes of cases that are known and guessed; more are left out, those that vary least first."""


@dataclass(frozen=True, eq=False)
class People:
    """The cases of a log: its variants, and of each case the row of its variant."""

    variants: Variants
    variant: IntArray


def people_of(log: EventLog | Variants) -> People:
    """Return the cases of a log in its order; of variants in theirs."""
    if isinstance(log, Variants):
        return People(log, np.repeat(np.arange(len(log)), log.counts))
    return People(log.variants, variant_of_cases(log))


@dataclass(frozen=True, eq=False)
class Rows:
    """The cases of a log, those of a variant together, and where it is known whose they are, those of a person."""

    variant: IntArray
    cases: IntArray
    owner: IntArray | None


def rows_of(log: EventLog | Variants, owner: IntArray | None) -> Rows:
    """Return the cases of a log by variants, and by the ``owner`` of each case, in the log's order, where given."""
    if owner is None:
        variants = log if isinstance(log, Variants) else log.variants
        return Rows(np.arange(len(variants)), variants.counts, None)
    persons = int(owner.max()) + 1
    rows, cases = np.unique(people_of(log).variant * persons + owner, return_counts=True)
    return Rows(rows // persons, cases.astype(np.int64), rows % persons)


def halves(
    log: EventLog | Variants, seed: int = 0, *, person: str | bool = True
) -> tuple[EventLog | Variants, EventLog | Variants]:
    """Return two random halves of the cases, of which neither has a case of the other; by the seed, and of a log with
    events also by the order of its cases, which case is in which.

    With the column of a ``person`` they are halves of the people, whatever the order, and nobody has cases in both.
    True: the column that seems to tell whose a case is, where there is one; False: cases, whosever they are.
    """
    cases = log.cases if isinstance(log, Variants) else log.number_of_cases
    random, half = np.random.default_rng([seed, cases]), (cases + 1) // 2
    column = column_of(log, person)
    if isinstance(log, EventLog) and column is not None:
        first, second = parted(log, column, half, random)
        return log.only(first), log.only(second)
    chosen = [np.sort(part) for part in np.split(random.permutation(cases), [half])]
    if isinstance(log, EventLog):
        return log.only(chosen[0]), log.only(chosen[1])
    variant = people_of(log).variant
    one, other = (log.with_counts(np.bincount(variant[part], minlength=len(log))) for part in chosen)
    return one, other


def shared_codes(logs: Sequence[Variants]) -> list[IntArray]:
    """Return the activities of each log by numbers that mean the same in all."""
    place: dict[str, int] = {}
    coding = [np.array([place.setdefault(label, len(place)) for label in log.labels], dtype=np.int64) for log in logs]
    return [
        code[log.codes] if len(code) else log.codes.astype(np.int64) for code, log in zip(coding, logs, strict=True)
    ]


def prefixes_of(logs: Sequence[Variants], longest: int) -> tuple[list[list[IntArray]], list[IntArray]]:
    """Return for each length, of each log, a number for how each variant begins (-1 for shorter ones), equal for equal
    beginnings of any of the logs; and of each log the last activity of each variant (-1 without one)."""
    codes = shared_codes(logs)
    kinds = 1 + max((int(code.max(initial=0)) for code in codes), default=0)
    ends = np.cumsum([len(log) for log in logs])[:-1]
    lengths = np.concatenate([log.lengths for log in logs])
    flat = np.concatenate([*codes, np.zeros(1, dtype=np.int64)])
    starts, before = [], 0
    for log in logs:
        starts.append(log.offsets[:-1] + before)
        before += len(log.codes)
    start = np.concatenate(starts)
    key = np.zeros(len(lengths), dtype=np.int64)
    levels = [key]
    for size in range(1, longest + 1):
        long = lengths >= size
        following = np.full(len(lengths), -1, dtype=np.int64)
        following[long] = np.unique(key[long] * kinds + flat[start[long] + size - 1], return_inverse=True)[1]
        key = following
        levels.append(key)
    last = np.where(lengths > 0, flat[np.maximum(start + lengths - 1, 0)], -1)
    return [np.split(level, ends) for level in levels], np.split(last, ends)


def attributes_of(logs: Sequence[EventLog | Variants]) -> tuple[list[str], list[IntArray]]:
    """Return the names of the attributes of cases that the first two logs have, and of each log the values as
    numbers, a column each; :class:`ParameterError` where there is none. Numbers and dates are cut at quantiles of the
    first log. Whose a case is counts as one: where the release has it, it can be known and guessed."""
    whole = [log for log in logs if isinstance(log, EventLog)]
    if len(whole) < len(logs):
        raise ParameterError("inference-of-variants")
    first = whole[0]
    sides = [{a.name: a for a in compared(log, first) if a.of_cases and a.used is not None} for log in whole[1:]]
    names = [name for name in sides[0] if all(name in side for side in sides)]
    own = {name: sides[0][name].codes[0] for name in names}
    names = sorted(names, key=lambda name: (-round(_variety(own[name]), 9), name))[:MOST_ATTRIBUTES]
    if not names:
        raise ParameterError("inference-without-attribute")
    columns = [[own[name] for name in names], *([_used(side[name]) for name in names] for side in sides)]
    return names, [np.column_stack(column).astype(np.int64) for column in columns]


def _used(attribute: ComparedAttribute) -> IntArray:
    codes = attribute.codes[1]
    assert codes is not None, "only attributes that the log has were taken"
    return codes


def _variety(codes: IntArray) -> float:
    """The entropy of the known values."""
    count = np.bincount(codes[codes >= 0])
    share = count[count > 0] / max(1, count.sum())
    return float(-(share * np.log(share)).sum())

"""Targets of an attack: cases of a log, with a few events that the attacker knows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from veilog._counting import count_numbers, rank_numbers
from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.disclosure.spaces import variant_of_cases
from veilog.measures.persons import column_of, split_persons
from veilog.measures.similarity.distances import as_strings
from veilog.measures.singling_out.logs import UNKNOWN, cases_of, positions
from veilog.measures.use_cases.attributes import ComparedAttribute, compare_attributes


@dataclass(frozen=True, eq=False)
class AttackTargets:
    """People to attack: the cases of a log, and their counterparts in the release."""

    variants: Variants
    variant: IntArray
    start: IntArray
    """Start of each case, or ``UNKNOWN``."""
    recode: IntArray
    """Code of each activity in the release, -1 for none; the last entry is that of -1."""
    counterpart: IntArray
    """Counterpart of each variant in the release, -1 where there is none."""
    owner: IntArray | None
    """Person of each case, if the log identifies persons and some have several cases."""

    def besides(self, attacks: Attacks, *, with_start: bool) -> IntArray | int:
        """Return the number of other cases (with a start) of each attacked person."""
        if self.owner is None or attacks.owner is None:
            return 0
        cases = self.owner[self.start != UNKNOWN] if with_start else self.owner
        number: IntArray = np.bincount(cases)[attacks.owner] - 1
        return number


@dataclass(frozen=True, eq=False)
class Attacks:
    """People attacked, with the knowledge of each."""

    variant: IntArray
    start: IntArray
    """Start of each attacked case, or ``UNKNOWN``."""
    patterns: IntArray
    """Known codes of the people's activities, one attack per row."""
    weight: FloatArray
    exact: bool
    people: int
    """Number of people who could be attacked."""
    timed: int
    """Number of these people with a known start."""
    owner: IntArray | None = None
    """Person of each attack, if persons are identified and some have several cases."""

    @property
    def independent(self) -> float:
        """Return the number of independent people whose outcomes would vary as much.

        These people would be drawn from all who could be in the log, and attacked with all that can be known. The
        actual ones are drawn from the people of the log, and these from all people.
        """
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
    """Return the cases of a log, each with its ``owner`` if given, to attack.

    The owners are in the log's order of cases.
    """
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


def draw_targets(whom: AttackTargets, size: int, most: int, rng: np.random.Generator) -> Attacks | None:
    """Return the attacks on people who have more than ``size`` events, or None.

    All possible attacks are returned if there are no more than ``most`` of them; else ``most`` are drawn at random.
    """
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
# People and the knowledge of them, numbered alike in several logs: beginnings, last activities, attributes.
MOST_ATTRIBUTES = 8
"""Largest number of attributes that are known and guessed: those that vary most."""


@dataclass(frozen=True, eq=False)
class People:
    """Cases of a log: its variants, and the row of the variant of each case."""

    variants: Variants
    variant: IntArray


def people_of(log: EventLog | Variants) -> People:
    """Return the cases of a log in its order; for variants, in their order."""
    if isinstance(log, Variants):
        return People(log, np.repeat(np.arange(len(log)), log.counts))
    return People(log.variants, variant_of_cases(log))


@dataclass(frozen=True, eq=False)
class Rows:
    """Cases of a log, grouped by variant and, where persons are known, by person."""

    variant: IntArray
    cases: IntArray
    owner: IntArray | None


def rows_of(log: EventLog | Variants, owner: IntArray | None) -> Rows:
    """Return the cases of a log by variant and by ``owner`` (in the log's order)."""
    if owner is None:
        variants = log if isinstance(log, Variants) else log.variants
        return Rows(np.arange(len(variants)), variants.counts, None)
    persons = int(owner.max()) + 1
    cases = people_of(log)
    rows, number = count_numbers(cases.variant * persons + owner, len(cases.variants) * persons)
    return Rows(rows // persons, number, rows % persons)


def halves(
    log: EventLog | Variants, seed: int = 0, *, person: str | bool = True
) -> tuple[EventLog | Variants, EventLog | Variants]:
    """Return two random halves of the cases, of which neither has a case of the other.

    The seed decides the halves; for a log with events, so does the order of its cases. With the column of a ``person``
    the halves are halves of the people, whatever the order, and no person has cases in both. True takes the likeliest
    column of persons, if there is one. False splits the cases, whatever their persons.
    """
    cases = log.cases if isinstance(log, Variants) else log.number_of_cases
    random, half = np.random.default_rng([seed, cases]), (cases + 1) // 2
    column = column_of(log, person)
    if isinstance(log, EventLog) and column is not None:
        first, second = split_persons(log, column, half, random)
        return log.only(first), log.only(second)
    chosen = [np.sort(part) for part in np.split(random.permutation(cases), [half])]
    if isinstance(log, EventLog):
        return log.only(chosen[0]), log.only(chosen[1])
    variant = people_of(log).variant
    one, other = (log.with_counts(np.bincount(variant[part], minlength=len(log))) for part in chosen)
    return one, other


def shared_codes(logs: Sequence[Variants]) -> list[IntArray]:
    """Return the activities of each log as numbers that mean the same in all logs."""
    place: dict[str, int] = {}
    coding = [np.array([place.setdefault(label, len(place)) for label in log.labels], dtype=np.int64) for log in logs]
    return [
        code[log.codes] if len(code) else log.codes.astype(np.int64) for code, log in zip(coding, logs, strict=True)
    ]


def prefixes_of(logs: Sequence[Variants], longest: int) -> tuple[list[list[IntArray]], list[IntArray]]:
    """Return numbers for the beginnings and for the last activity of each variant.

    For each length and each log, a number stands for the beginning of each variant (-1 for shorter ones). Equal
    beginnings of any of the logs have equal numbers. The last activity of a variant without events is -1.
    """
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
    levels, number = [key], 1
    for size in range(1, longest + 1):
        long = lengths >= size
        key = np.full(len(lengths), -1, dtype=np.int64)
        longer = levels[-1][long] * kinds + flat[start[long] + size - 1]
        found, key[long], _ = rank_numbers(longer, number * kinds)
        levels.append(key)
        number = len(found)
    last = np.where(lengths > 0, flat[np.maximum(start + lengths - 1, 0)], -1)
    return [np.split(level, ends) for level in levels], np.split(last, ends)


def attributes_of(logs: Sequence[EventLog | Variants]) -> tuple[list[str], list[IntArray]]:
    """Return the attributes of cases that the logs have in common, and their values.

    The values of each log are numbers, with one column per attribute. Numbers and dates are cut at quantiles of the
    first log. The person of a case counts as an attribute: where the release has it, it can be known and guessed.

    Raises:
        ParameterError: When there is no common attribute.

    """
    whole = [log for log in logs if isinstance(log, EventLog)]
    if len(whole) < len(logs):
        raise ParameterError("inference-of-variants")
    first = whole[0]
    sides = [
        {a.name: a for a in compare_attributes(log, first) if a.of_cases and a.used is not None} for log in whole[1:]
    ]
    names = [name for name in sides[0] if all(name in side for side in sides)]
    own = {name: sides[0][name].codes[0] for name in names}
    names = sorted(names, key=lambda name: (-round(_variety(own[name]), 9), name))[:MOST_ATTRIBUTES]
    if not names:
        raise ParameterError("inference-without-attribute")
    columns = [[own[name] for name in names], *([_used_values(side[name]) for name in names] for side in sides)]
    return names, [np.column_stack(column).astype(np.int64) for column in columns]


def _used_values(attribute: ComparedAttribute) -> IntArray:
    codes = attribute.codes[1]
    assert codes is not None, "only attributes that the log has were taken"
    return codes


def _variety(codes: IntArray) -> float:
    """Return the entropy of the known values."""
    count = np.bincount(codes[codes >= 0])
    share = count[count > 0] / max(1, count.sum())
    return float(-(share * np.log(share)).sum())

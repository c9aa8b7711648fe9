"""People and what is known of them, numbered alike in several logs: beginnings, last activities, attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.disclosure.spaces import variant_of_cases
from veilog.measures.persons import column_of, parted
from veilog.measures.use_cases.attributes import ComparedAttribute, compared

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

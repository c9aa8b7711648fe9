"""Inference: guesses of the end or an attribute of a case from other knowledge.

*The end.* The attacker knows the first ``size`` activities of a case that goes on, and guesses its last one. *An
attribute.* The attacker knows the first activities and all other attributes of the case that are compared, and guesses
the one left. Every guess is the most frequent value among the cases of a log that agree in all that is known (one of
them, where several are). Where no case agrees, the attacker uses less knowledge: for the end one activity less, and so
on; for an attribute first no activities, then no other attributes, then nothing.

Everyone is attacked with the original, with the release, and with a control (see :mod:`.rates`). The control is people
held out, attacked with the release, or the same people, attacked with the original. In the latter case a guess counts
only if another case of those that agree has the person's value, too. The person's own case does not count as one that
agrees. That is at least what others' cases reveal. (Taking the own case from the counts would turn the guess to another
value for people whose values are about equally frequent, and understate it.) If the log identifies persons, others'
cases are other people's. The person then counts with as many cases of the right value as the others who have it have on
average. Where a case is a person, the own case is that one. A guess of the most frequent value of all may do better
still; then that is the control.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from veilog._counting import rank_numbers, rank_rows
from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError, VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import our_measure
from veilog.measures.persons import persons_of
from veilog.measures.singling_out.logs import ranges
from veilog.measures.singling_out.rates import (
    Z_BEYOND,
    Attack,
    Control,
    Rate,
    Success,
    apart,
    mean_rate,
    paired_gain,
    residual,
)
from veilog.measures.singling_out.targets import Rows, attributes_of, people_of, prefixes_of, rows_of

SIZES = (1, 2, 3, 5, 10)
WITH_ATTRIBUTES = 3
"""Number of first activities known in addition to the other attributes."""
END = "last activity"


@dataclass(frozen=True)
class Inferred(Attack):
    """Knowledge of an attacker, the secret, and the shares of right guesses."""

    secret: str
    """Secret to guess: ``last activity``, or the name of an attribute."""
    size: int
    """Number of known first activities of the case."""
    attributes: int
    """Number of other attributes that are known."""
    people: int
    guessed: Success
    naive: Rate
    """Share of right guesses by the release's most frequent value, knowing nothing."""
    beyond: Rate
    """Gain over the control, with its interval at 99.5 %."""
    residual: Rate
    """Part of the unknown under the control that the release reveals, at 99.5 %."""


@dataclass(frozen=True)
class Inference:
    """Guesses of the end and of attributes, by original, release and control."""

    results: tuple[Inferred, ...]
    control: Control
    without_attributes: VeilogError | None
    """Reason why no attribute was guessed, if so."""
    seconds: float


@dataclass(frozen=True, eq=False)
class _Asked:
    """Knowledge and secrets of people, as numbers that are alike in all logs.

    The logs are the original, the release and, where there is one, the control group.
    """

    contexts: Sequence[Sequence[IntArray]]
    """For each log, most knowledge first: a number per row, equal for all who agree; -1 where less is known."""
    secret: Sequence[IntArray]
    """Secret of each row, -1 where it is not known."""
    weight: Sequence[IntArray]
    """Number of cases of each row."""
    attacked: Sequence[BoolArray]
    """Rows of each log whose people can be attacked."""
    trace: IntArray
    """Trace of each row of the original, which several rows can share."""
    owner: IntArray | None
    """Person of each row of the original, if the log identifies persons and some have several cases."""


def inference(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    control: EventLog | Variants | None = None,
    person: str | bool = True,
    sizes: Iterable[int] = SIZES,
) -> Inference:
    """Return how often the end of a case, or an attribute, is guessed with each log.

    ``control`` has people of the same process who were not in the released log. Without it, others' cases are the
    control, and these exclude other cases of the same ``person``. The person's column in the original is this one, with
    True the likeliest one; with False every case is another person's. The attributes guessed are those of cases that
    the release has. Sizes for which no one has more activities are left out.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1:
        raise ParameterError("inference-sizes-not-positive", parameter="sizes")
    logs = [log for log in (original, released, control) if log is not None]
    if not (original if isinstance(original, Variants) else original.variants).cases:
        raise ParameterError("inference-without-cases", parameter="original")
    owner = None if control is not None else persons_of(original, person)
    ends = _ends([log if isinstance(log, Variants) else log.variants for log in logs], wanted, rows_of(original, owner))
    found = [_result(END, size, 0, asked) for size, asked in ends]
    why: VeilogError | None = None
    try:
        found += _attributes(logs, owner)
    except ParameterError as error:
        why = error.with_traceback(None)
    results = [row for row in found if row is not None]
    if not results:
        raise ParameterError("inference-cases-too-short")
    return Inference(
        tuple(results), "others' cases" if control is None else "held out", why, time.perf_counter() - began
    )


def _ends(logs: Sequence[Variants], sizes: Sequence[int], first: Rows) -> Iterator[tuple[int, _Asked]]:
    """Yield for each size the knowledge of longer variants, weighted by their cases.

    The rows of the first log are those of ``first``.
    """
    known, last = prefixes_of(logs, sizes[-1])
    rows = [first.variant, *(np.arange(len(log)) for log in logs[1:])]
    ends = [code[row] for code, row in zip(last, rows, strict=True)]
    weight = [first.cases, *(log.counts for log in logs[1:])]
    for size in sizes:
        # A case that is over with what is known of it has no end to come.
        contexts = [
            [np.where(log.lengths > j, known[j][i], -1)[rows[i]] for j in range(size, -1, -1)]
            for i, log in enumerate(logs)
        ]
        longer = [(log.lengths > size)[row] for log, row in zip(logs, rows, strict=True)]
        yield size, _Asked(contexts, ends, weight, longer, first.variant, first.owner)


def _attributes(logs: Sequence[EventLog | Variants], owner: IntArray | None) -> Iterator[Inferred | None]:
    """Yield the outcome for each attribute of cases that the release has."""
    people = [people_of(log) for log in logs]
    names, values = attributes_of(logs)
    known, _ = prefixes_of([one.variants for one in people], WITH_ATTRIBUTES)
    begun = [known[WITH_ATTRIBUTES][i][one.variant] for i, one in enumerate(people)]
    for place, name in enumerate(names):
        others = [np.delete(codes, place, axis=1) for codes in values]
        agree = _number_equal_rows(others)
        both = _number_equal_rows([np.column_stack([a, b]) for a, b in zip(agree, begun, strict=True)])
        nothing = [np.zeros(len(one.variant), dtype=np.int64) for one in people]
        contexts = [[np.where(c < 0, -1, b), a, c, n] for a, b, c, n in zip(agree, both, begun, nothing, strict=True)]
        ones = [np.ones(len(n), dtype=np.int64) for n in nothing]
        secret, everybody = [codes[:, place] for codes in values], [one > 0 for one in ones]
        asked = _Asked(contexts, secret, ones, everybody, people[0].variant, owner)
        yield _result(name, WITH_ATTRIBUTES, len(names) - 1, asked)


def _number_equal_rows(tables: Sequence[IntArray]) -> list[IntArray]:
    """Return a number for each row, equal for equal rows of all tables."""
    together = np.concatenate(tables) + 1
    ranks = rank_rows(together.T, len(together))[1]
    return np.split(ranks, np.cumsum([len(table) for table in tables])[:-1])


def _result(secret: str, size: int, attributes: int, asked: _Asked) -> Inferred | None:
    """Return the outcome of guessing a secret, or None if it is known of no one."""
    whom = [np.flatnonzero(a & (values >= 0)) for a, values in zip(asked.attacked, asked.secret, strict=True)]
    weight = asked.weight[0][whom[0]].astype(np.float64)
    people = int(weight.sum())
    if not people or (len(whom) > 2 and not len(whom[2])):
        return None
    made = _guess_chances(asked, 1, 0, whom[0])
    if len(whom) > 2:
        of_control, there = _guess_chances(asked, 1, 2, whom[2]), asked.weight[2][whom[2]].astype(np.float64)
        number = float(there.sum())
        baseline = mean_rate(of_control, there, number)
        gain = apart(mean_rate(made, weight, people, Z_BEYOND), mean_rate(of_control, there, number, Z_BEYOND))
    else:
        either = [_guess_chances(asked, 0, 0, whom[0], others=True, known=known) for known in (True, False)]
        best = max(either, key=lambda values: round(float(values @ weight), 9))
        baseline = mean_rate(best, weight, people)
        trace = asked.trace[whom[0]]
        who = None if asked.owner is None else asked.owner[whom[0]]
        # Whatever order the people are in.
        rows = np.lexsort((made - best, trace) if who is None else (made - best, who, trace))
        of_whom = None if who is None else who[rows]
        gain = paired_gain((made - best)[rows], (weight / weight.sum())[rows], trace[rows], people, of_whom)
    return Inferred(
        secret=secret,
        size=size,
        attributes=attributes,
        people=people,
        guessed=Success(
            mean_rate(_guess_chances(asked, 0, 0, whom[0]), weight, people), mean_rate(made, weight, people), baseline
        ),
        naive=mean_rate(_guess_chances(asked, 1, 0, whom[0], known=False), weight, people),
        beyond=gain,
        residual=residual(gain, baseline),
    )


def _guess_chances(
    asked: _Asked, log: int, people: int, whom: IntArray, *, others: bool = False, known: bool = True
) -> FloatArray:
    """Return the chance that each person's secret is guessed right with a log.

    A guess is the most frequent value among those who agree in most of what is ``known``. With ``others``, neither the
    person's own case nor the person's other cases count.
    """
    secret, target, weight = asked.secret[log], asked.secret[people][whom], asked.weight[log]
    right, left = np.zeros(len(target)), np.ones(len(target), dtype=np.bool_)
    for depth in range(0 if known else len(asked.contexts[log]) - 1, len(asked.contexts[log])):
        context, asks = asked.contexts[log][depth], asked.contexts[people][depth][whom]
        there = (context >= 0) & (secret >= 0)
        if others and asked.owner is not None:
            rows, owner = _Counted(context[there], secret[there], weight[there]), asked.owner
            chance, seen, same = _exclude_other_cases(rows, owner[there], asks, target, owner[whom])
        else:
            chance, seen, same = _most_frequent_values(context[there], secret[there], weight[there], asks, target)
        told = left & (asks >= 0) & (seen > (1 if others else 0))
        right[told] = np.where(same[told] > 1, chance[told], 0.0) if others else chance[told]
        left &= ~told
    return right


def _most_frequent_values(
    context: IntArray, value: IntArray, weight: IntArray, asks: IntArray, target: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the chance, the context's cases and those with the right value per row.

    The chance is that the right value is the most frequent one of its context.
    """
    if not len(context):
        return (np.zeros(len(asks)),) * 3
    kinds = int(max(value.max(), target.max(initial=0))) + 1
    contexts = int(context.max()) + 1
    pairs, place, _ = rank_numbers(context * kinds + value, contexts * kinds)
    count = np.bincount(place, weights=weight)
    owner, number, _ = rank_numbers(pairs // kinds, contexts)
    best = np.zeros(len(owner))
    np.maximum.at(best, number, count)
    ties = np.bincount(number, weights=count == best[number])
    total = np.bincount(number, weights=count)
    where = np.minimum(np.searchsorted(owner, asks), len(owner) - 1)
    has = owner[where] == asks
    wanted = asks * kinds + target
    pair = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    same = np.where(has & (pairs[pair] == wanted), count[pair], 0.0)
    right = np.where(has & (same > 0) & (same == best[where]), 1 / ties[where], 0.0)
    return right, np.where(has, total[where], 0.0), same


class _Counted(NamedTuple):
    """Cases with their context, their value and their number."""

    context: IntArray
    value: IntArray
    weight: IntArray


def _exclude_other_cases(
    rows: _Counted, owner: IntArray, asks: IntArray, target: IntArray, person: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same as :func:`_most_frequent_values`, without others of the person.

    One case of the person alone counts. It has the right value and is among the rows where anything is known. To find
    the most frequent value, the person has as many cases of the right value as the others who have it have on average.
    """
    found = [np.zeros(len(asks)) for _ in range(3)]
    some = np.flatnonzero(asks >= 0)
    if not len(some):
        return found[0], found[1], found[2]
    kinds, persons = int(rows.value.max()) + 1, int(owner.max()) + 1
    size = int(rows.context.max()) + 1
    pairs, place, _ = rank_numbers(rows.context * kinds + rows.value, size * kinds)
    count: FloatArray = np.bincount(place, weights=rows.weight).astype(np.float64)
    contexts, context, _ = rank_numbers(pairs // kinds, size)
    groups, number, _ = rank_numbers(rows.context * persons + owner, size * persons)
    # Values of each person in a context, one by one: the person's cases, and the number of others who have it.
    held, place, _ = rank_numbers(number * len(pairs) + place, len(groups) * len(pairs))
    own = np.bincount(place, weights=rows.weight)
    group, pair = held // len(pairs), held % len(pairs)
    left, there = count[pair] - own, np.searchsorted(contexts, groups // persons)
    best, ties = _most_frequent_of_others(count, context, there, held)
    row, other = ranges(np.searchsorted(group, group), np.searchsorted(group, group, side="right"))
    row, other = row[row != other], other[row != other]
    highest = best[group]
    np.maximum.at(highest, row, left[other])
    tied = np.where(best[group] == highest, ties[group], 0)
    tied += np.bincount(row, weights=left[other] == highest[row], minlength=len(held))
    people = np.bincount(pair)[pair]
    alike = left * people / np.maximum(1, people - 1)
    right = np.where(alike > highest, 1.0, np.where(alike == highest, 1 / (tied + 1), 0.0))
    seen = np.bincount(context, weights=count)[there[group]] - np.bincount(group, weights=own)[group] + 1
    key = np.searchsorted(groups, asks[some] * persons + person[some]) * len(pairs)
    at = np.searchsorted(held, key + np.searchsorted(pairs, asks[some] * kinds + target[some]))
    for values, each in zip(found, (right, seen, left + 1), strict=True):
        values[some] = each[at]
    return found[0], found[1], found[2]


def _most_frequent_of_others(
    count: FloatArray, context: IntArray, there: IntArray, held: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the most frequent value that is none of a person's, for each group.

    A group has the cases of one person in a context (``there``). The result is the number of cases of that value, and
    the number of such values with as many cases. ``count`` and ``context`` describe the pairs of a context and a value.
    ``held`` has, as one ascending number each, the groups with the pairs that they hold.
    """
    order = np.lexsort((-count, context))
    at, end = (np.searchsorted(context, there, side=side) for side in ("left", "right"))
    left = np.arange(len(there))
    while len(left):
        left = left[at[left] < end[left]]
        key = left * len(count) + order[at[left]]
        left = left[held[np.minimum(np.searchsorted(held, key), len(held) - 1)] == key]
        at[left] += 1
    best = np.where(at < end, count[order[np.minimum(at, len(order) - 1)]], 0.0)
    other = (np.diff(context[order], prepend=-1) != 0) | (np.diff(count[order], prepend=0.0) != 0)
    level = np.cumsum(other)
    ties = np.where(at < end, np.bincount(level)[level[np.minimum(at, len(order) - 1)]], 0)
    group, pair = held // len(count), held % len(count)
    return best, ties - np.bincount(group, weights=count[pair] == best[group], minlength=len(there))


INFERENCE = our_measure(
    "inference", lambda pair: inference(pair.original, pair.released, control=pair.control, person=pair.person)
)

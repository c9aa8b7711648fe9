"""Inference: what somebody who knows how a person's case began, or what is written of it, guesses of what they do not.

*The end.* The attacker knows the first ``size`` activities of a case that goes on, and guesses its last one: how it
ended. *An attribute.* The attacker knows the first activities and all other attributes of the case that are compared,
and guesses the one left. Every guess is the most frequent value among the cases of a log that agree in all that is
known (one of them, where several are); where no case agrees, in less: for the end in one activity less, and so on;
for an attribute first without the activities, then without the other attributes, then with nothing.

Everybody is attacked, with the original, with the release, and with a control (see :mod:`.rates`): people held out,
with the release; or the same people with the original, where a guess counts only if another case of those that agree
has the person's value, too, and nobody's own case counts as one that agrees. That is at least what others' cases
give. (To take the own case from the counts would turn the guess to another value for each of those whose values are
about equally frequent, and understate it.) Who guesses the most frequent value of all may do better still; then that
is the control.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import Measure
from veilog.measures.singling_out.people import attributes_of, people_of, prefixes_of
from veilog.measures.singling_out.rates import (
    Z_BEYOND,
    Control,
    Rate,
    Success,
    apart,
    mean_rate,
    paired,
    residual,
    tells_more,
)

__all__ = ["END", "INFERENCE", "Inference", "Inferred", "inference"]

SIZES = (1, 2, 3, 5, 10)
WITH_ATTRIBUTES = 3
"""First activities that are known beside the other attributes."""
END = "last activity"


@dataclass(frozen=True)
class Inferred:
    """What an attacker knows and guesses, and how often that is right."""

    secret: str
    """``last activity``, or the name of an attribute."""
    size: int
    """First activities of the case that are known."""
    attributes: int
    """Other attributes that are known."""
    people: int
    guessed: Success
    naive: Rate
    """How often the most frequent value of the release is right, of a person of whom nothing is known."""
    beyond: Rate
    """The gain over the control, at 99.5 %."""
    residual: Rate
    """Of what the control leaves to find out the share that the release tells, at 99.5 %."""

    @property
    def more(self) -> bool:
        """Whether the release tells more about the people attacked than the control."""
        return tells_more(self.beyond)


@dataclass(frozen=True)
class Inference:
    """Guesses of the end and of attributes, from the original, the release and the control."""

    results: tuple[Inferred, ...]
    control: Control
    without_attributes: str | None
    """Why no attribute was guessed, if so."""
    seconds: float


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is known of people and what is guessed, as numbers that mean the same in all logs: the original, the release
    and, where there is one, the control group."""

    contexts: Sequence[Sequence[IntArray]]
    """What is known, the most first, a number for all who agree; of each log, of each row. -1: less is known."""
    secret: Sequence[IntArray]
    """-1 where it is not known."""
    weight: Sequence[IntArray]
    """The cases of each row."""
    attacked: Sequence[BoolArray]
    """Who can be asked about, in each log."""
    trace: IntArray
    """Of each row of the original, what it shares with others."""


def inference(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    control: EventLog | Variants | None = None,
    sizes: Iterable[int] = SIZES,
) -> Inference:
    """How often the end of a case, or an attribute, is guessed with either log and the control.

    ``control`` has people of the same process who were not in the log that was released; without it the control is what
    others' cases tell. Attributes of cases are guessed that the release has. Sizes for which nobody has more activities
    are left out.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1:
        raise ParameterError("Sizes must be positive.", parameter="sizes")
    logs = [log for log in (original, released, control) if log is not None]
    if not (original if isinstance(original, Variants) else original.variants).cases:
        raise ParameterError("The original log has no cases, so there is nobody to guess of.", parameter="original")
    ends = _ends([log if isinstance(log, Variants) else log.variants for log in logs], wanted)
    found = [_result(END, size, 0, asked) for size, asked in ends]
    why = None
    try:
        found += _attributes(logs)
    except ParameterError as error:
        why = str(error)
    results = [row for row in found if row is not None]
    if not results:
        raise ParameterError("No case of the original has so many activities that there is an end to guess.")
    return Inference(
        tuple(results), "others' cases" if control is None else "held out", why, time.perf_counter() - began
    )


def _ends(logs: Sequence[Variants], sizes: Sequence[int]) -> Iterator[tuple[int, _Asked]]:
    """Yield for each size what is known of the variants that are longer, each with its cases as its weight."""
    known, last = prefixes_of(logs, sizes[-1])
    for size in sizes:
        # A case that is over with what is known of it has no end to come.
        contexts = [
            [np.where(log.lengths > j, known[j][i], -1) for j in range(size, -1, -1)] for i, log in enumerate(logs)
        ]
        longer = [log.lengths > size for log in logs]
        yield size, _Asked(contexts, last, [log.counts for log in logs], longer, np.arange(len(logs[0])))


def _attributes(logs: Sequence[EventLog | Variants]) -> Iterator[Inferred | None]:
    """Yield what is guessed of each attribute of cases that the release has."""
    people = [people_of(log) for log in logs]
    names, values = attributes_of(logs)
    known, _ = prefixes_of([one.variants for one in people], WITH_ATTRIBUTES)
    begun = [known[WITH_ATTRIBUTES][i][one.variant] for i, one in enumerate(people)]
    for place, name in enumerate(names):
        others = [np.delete(codes, place, axis=1) for codes in values]
        agree = _agreeing(others)
        both = _agreeing([np.column_stack([a, b]) for a, b in zip(agree, begun, strict=True)])
        nothing = [np.zeros(len(one.variant), dtype=np.int64) for one in people]
        contexts = [[np.where(c < 0, -1, b), a, c, n] for a, b, c, n in zip(agree, both, begun, nothing, strict=True)]
        ones = [np.ones(len(n), dtype=np.int64) for n in nothing]
        asked = _Asked(
            contexts, [codes[:, place] for codes in values], ones, [one > 0 for one in ones], people[0].variant
        )
        yield _result(name, WITH_ATTRIBUTES, len(names) - 1, asked)


def _agreeing(tables: Sequence[IntArray]) -> list[IntArray]:
    """A number for each row, equal for equal rows of all tables."""
    number = np.zeros(sum(map(len, tables)), dtype=np.int64)
    together = np.concatenate(tables)
    for column in together.T:
        codes = column + 1
        number = np.unique(number * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return np.split(number, np.cumsum([len(table) for table in tables])[:-1])


def _result(secret: str, size: int, attributes: int, asked: _Asked) -> Inferred | None:
    """The outcome of guessing a secret of everybody of whom it is known; None where there is nobody."""
    whom = [np.flatnonzero(a & (values >= 0)) for a, values in zip(asked.attacked, asked.secret, strict=True)]
    weight = asked.weight[0][whom[0]].astype(np.float64)
    people = int(weight.sum())
    if not people or (len(whom) > 2 and not len(whom[2])):
        return None
    made = _guessed(asked, 1, 0, whom[0])
    if len(whom) > 2:
        of_control, there = _guessed(asked, 1, 2, whom[2]), asked.weight[2][whom[2]].astype(np.float64)
        number = float(there.sum())
        baseline = mean_rate(of_control, there, number)
        gain = apart(mean_rate(made, weight, people, Z_BEYOND), mean_rate(of_control, there, number, Z_BEYOND))
    else:
        either = [_guessed(asked, 0, 0, whom[0], others=True, known=known) for known in (True, False)]
        best = max(either, key=lambda values: round(float(values @ weight), 9))
        baseline = mean_rate(best, weight, people)
        trace = asked.trace[whom[0]]
        rows = np.lexsort((made - best, trace))  # whatever order the people are in
        gain = paired((made - best)[rows], (weight / weight.sum())[rows], trace[rows], people)
    return Inferred(
        secret=secret,
        size=size,
        attributes=attributes,
        people=people,
        guessed=Success(
            mean_rate(_guessed(asked, 0, 0, whom[0]), weight, people), mean_rate(made, weight, people), baseline
        ),
        naive=mean_rate(_guessed(asked, 1, 0, whom[0], known=False), weight, people),
        beyond=gain,
        residual=residual(gain, baseline),
    )


def _guessed(
    asked: _Asked, log: int, people: int, whom: IntArray, *, others: bool = False, known: bool = True
) -> FloatArray:
    """The chance that these people's secret is guessed right with a log, by what is most frequent there among those who
    agree in most of what is ``known``. Of ``others`` the person's own case is none."""
    secret, target, weight = asked.secret[log], asked.secret[people][whom], asked.weight[log]
    right, left = np.zeros(len(target)), np.ones(len(target), dtype=np.bool_)
    for depth in range(0 if known else len(asked.contexts[log]) - 1, len(asked.contexts[log])):
        context, asks = asked.contexts[log][depth], asked.contexts[people][depth][whom]
        there = (context >= 0) & (secret >= 0)
        chance, seen, same = _most_frequent(context[there], secret[there], weight[there], asks, target)
        told = left & (asks >= 0) & (seen > (1 if others else 0))
        right[told] = np.where(same[told] > 1, chance[told], 0.0) if others else chance[told]
        left &= ~told
    return right


def _most_frequent(
    context: IntArray, value: IntArray, weight: IntArray, asks: IntArray, target: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of each that asks: the chance that its value is the most frequent one of its context, how many cases the context
    has, and how many of them have its value."""
    if not len(context):
        return (np.zeros(len(asks)),) * 3
    kinds = int(max(value.max(), target.max(initial=0))) + 1
    pairs, place = np.unique(context * kinds + value, return_inverse=True)
    count = np.bincount(place, weights=weight)
    owner, number = np.unique(pairs // kinds, return_inverse=True)
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


INFERENCE = Measure(
    "inference",
    lambda pair: inference(pair.original, pair.released, control=pair.control),
    (),
    paper="Giomi, Boenisch, Wehmeyer, Tasnádi: A unified framework for quantifying privacy risk in synthetic "
    "data, 2023",
    explained="How often somebody who knows how a person's case began guesses how it ended, or who knows all other "
    "attributes of it guesses one.",
    doing="Inference",
)

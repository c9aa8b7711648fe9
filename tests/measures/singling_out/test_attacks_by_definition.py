"""Attacks succeed as often as their definitions state, on random small logs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.measures.singling_out import inference, linkability, singling_out
from veilog.measures.singling_out.rates import Success

HOUR = 3_600_000_000


class Visit(NamedTuple):
    trace: str
    start: int | None


Visits = list[Visit]


def some(rng: np.random.Generator, lengths: Sequence[int]) -> Visits:
    """Return visits of these lengths with few activities, some without a time."""
    letters = "abc"[: int(rng.integers(1, 4))]
    starts = [None if rng.random() < 0.15 else int(rng.integers(0, 12)) * 8 * HOUR for _ in lengths]
    traces = ["".join(rng.choice(list(letters), length)) for length in lengths]
    return [Visit(trace, start if trace else None) for trace, start in zip(traces, starts, strict=True)]


def log(visits: Visits) -> EventLog:
    case = [i for i, visit in enumerate(visits) for _ in visit.trace]
    times = [None if v.start is None else v.start + j for v in visits for j in range(len(v.trace))]
    labels = [label for visit in visits for label in visit.trace]
    events = {
        CASE_INDEX: pa.array(case, pa.int64()),
        EVENT_INDEX: pa.array(range(len(case)), pa.int64()),
        ACTIVITY: pa.array(labels, pa.string()).dictionary_encode(),
        TIMESTAMP: pa.array(times, pa.int64()).cast(TIMESTAMP_TYPE),
    }
    return EventLog(pa.table(events), pa.table({ACTIVITY: [f"{i:03}" for i in range(len(visits))]}))


def fitting(visits: Visits, known: Sequence[str], start: int | None) -> list[str]:
    """Return the traces that fit the known activities and, within a day, the start."""
    found = []
    for visit in visits:
        rest = iter(visit.trace)
        near = start is None or (visit.start is not None and abs(visit.start - start) <= 24 * HOUR)
        if near and all(label in rest for label in known):
            found.append(visit.trace)
    return found


def right(values: Iterable[str], own: str) -> Fraction | None:
    """The chance that the most frequent value is this one; None without values."""
    count = Counter(values)
    best = [value for value, number in count.items() if number == max(count.values())]
    return Fraction(own in best, len(best)) if best else None


def attacked(people: Visits, held: Visits, size: int, timed: bool) -> tuple[float, float]:
    """Return how often a visit stands alone and how often its trace is guessed."""
    alone = guessed = Fraction(0)
    whom = [v for v in people if len(v.trace) > size and (v.start is not None or not timed)]
    for visit in whom:
        ways = list(itertools.combinations(visit.trace, size))
        for known in ways:
            found = fitting(held, known, visit.start if timed else None)
            alone += Fraction(found == [visit.trace], len(ways) * len(whom))
            told = right(found, visit.trace)
            if told is None and timed:
                told = right(fitting(held, known, None), visit.trace)
            guessed += (told or Fraction(0)) / (len(ways) * len(whom))
    return float(alone), float(guessed)


def last_guessed(people: Visits, held: Visits, size: int) -> float:
    """Return how often the first activities, or fewer of them, give the last one."""
    whom = [v.trace for v in people if len(v.trace) > size]
    total = Fraction(0)
    for own in whom:
        for known in range(size, -1, -1):
            ends = [v.trace[-1] for v in held if len(v.trace) > known and v.trace[:known] == own[:known]]
            if (told := right(ends, own[-1])) is not None:
                total += told
                break
    return float(total / len(whom))


def linked(people: Visits, held: Visits, size: int) -> float:
    """Return how often the rows of a person match; the lists have all with two events."""
    both = [v.trace for v in people if len(v.trace) >= 2]
    rows = [(t[: min(size, (len(t) + 1) // 2)], t[-min(size, len(t) // 2) :]) for t in both]
    total = Fraction(0)
    for place, (head, _) in enumerate(rows):
        score = []
        for _, tail in rows:
            begin = [v.trace.startswith(head) for v in held]
            end = [v.trace.endswith(tail) for v in held]
            together = sum(a and b for a, b in zip(begin, end, strict=True))
            by_chance = Fraction(sum(begin) * sum(end), max(1, len(held)))
            score.append((together + Fraction(1, 10)) / (by_chance + Fraction(1, 10)))
        total += Fraction(score[place] == max(score), score.count(max(score)))
    return float(total / len(rows))


def values(rate: Success) -> tuple[float, float, float]:
    return rate.original.value, rate.released.value, rate.baseline.value


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_attacks_achieve_what_their_definitions_give(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Both groups have as many people for the lists, so that none are drawn.
    lengths, others = (rng.choice([0, 1, 2, 2, 3, 4, 5], int(rng.integers(1, 10))) for _ in range(2))
    before, after, beside = some(rng, lengths), some(rng, others), some(rng, lengths)
    if seed % 4 == 0:
        after = before
    first, second, control = log(before), log(after), log(beside)
    held = ((before, before), (before, after), (beside, after))
    try:
        rows = singling_out(first, second, control=control, person=False, sizes=(1, 2, 3)).results
    except ParameterError:
        rows = ()
    for row in rows:
        assert row.exact
        found = [attacked(*pair, row.size, row.with_start) for pair in held]
        assert values(row.singled_out) == pytest.approx([alone for alone, _ in found])
        assert values(row.guessed) == pytest.approx([guessed for _, guessed in found])
        assert row.beyond.value == pytest.approx(found[1][1] - found[2][1])
    for size in (1, 2, 3):
        if any(len(v.trace) > size for v in before):
            (end,) = inference(first, second, control=control, person=False, sizes=[size]).results
            assert values(end.guessed) == pytest.approx([last_guessed(*pair, size) for pair in held])
        number = sum(len(v.trace) >= 2 for v in before)
        if number > 1:
            (lists,) = linkability(first, second, control=control, person=False, sizes=[size]).results
            assert values(lists.linked) == pytest.approx([linked(*pair, size) for pair in held])
            assert lists.naive == pytest.approx(1 / number)

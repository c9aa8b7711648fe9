"""Attacks: pairs of neighbouring logs that a mechanism should make alike.

Each attempt is a log without and a log with one case (or one person's cases), and a score of a release. Trials find the
attempt that shows most; see :mod:`veilog.audits.blackbox`. An attempt may break a condition. A guarantee with that
condition does not cover these two logs, and the result shows what the condition is worth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Variants
from veilog.privacy.account.guarantee import Code
from veilog.releasing.result import Release

Trace = tuple[str, ...]

ALPHABET = tuple("abcdef")
LONGEST = 12
"""Declared facts of the logs made here; as every log reaches them, they reveal none.

The exceptions are the attempts that break a condition about them.
"""
PERSON = "case:person"
MANY_CASES = 20
"""Cases of the person who has more than a guarantee for one case covers."""

_USUAL: tuple[tuple[Trace, int], ...] = (
    (tuple("abcde"), 60),
    (tuple("abde"), 25),
    (tuple("acde"), 15),
    (tuple("f") + tuple("abcde") + tuple("abcde") + tuple("f"), 40),  # all activities, the greatest length
)
_CANARY: Trace = tuple("edcba")
_NEW_PAIRS: Trace = tuple("adbecaebdca")
"""Variant with no directly-follows pair of the usual cases."""
_OWN_LABEL: Trace = ("a", "z: nobody else has it", "e")
_SLOW: Trace = tuple("abcde") * 4000
"""Enough events to make a release slower, which no output must reveal."""
_TELLS_TIME = re.compile("second|duration|elapsed|took|runtime")
_COPIES = (*range(1, 11), 12, 14, 17, 20, 24, 28, 34, 40, 50)

_STANDING_OUT = 6
"""Number of cases of a user's log that are attacked."""

_MINUTE = 60_000_000
_SECOND = 1_000_000
_YEAR_2024 = 1_704_067_200_000_000


@dataclass(frozen=True)
class Score:
    """Number that an attacker reads off a release."""

    what: Literal[
        "cases of the variant",
        "cases that begin so",
        "cases with its label",
        "all cases",
        "events of its pairs",
        "longest gap",
        "seconds told",
        "characters told",
    ]
    trace: Trace = ()

    def of(self, released: Release) -> float:
        if self.what in ("seconds told", "characters told"):
            told = {name: value for name, value in released.to_json().items() if name != "owner_only"}
            return _seconds(told) if self.what == "seconds told" else float(len(json.dumps(told, default=str)))
        if self.what == "all cases":
            return float(released.variants.cases)
        if self.what == "longest gap":
            return _longest_gap(released.log, (self.trace[0], self.trace[1]))
        return float(sum(count * self._weight(trace) for trace, count in released.variants.to_dict().items()))

    def _weight(self, trace: Trace) -> int:
        if self.what == "cases of the variant":
            return int(trace == self.trace)
        if self.what == "cases that begin so":
            return int(trace[: len(self.trace)] == self.trace)
        if self.what == "cases with its label":
            return int(self.trace[0] in trace)
        wanted = set(pairwise(self.trace))
        return sum(pair in wanted for pair in pairwise(trace))


@dataclass(frozen=True)
class Attempt:
    """Log without and log with a person, and one or more scores of the same releases."""

    attack: str
    without: Variants | EventLog
    with_: Variants | EventLog
    scores: tuple[Score, ...]
    breaks: frozenset[Code] = frozenset()
    """Conditions that do not hold for these logs."""
    cases: int = 1
    """Number of cases of one person by which they differ."""

    def log(self, with_: bool) -> Variants | EventLog:
        """Return the log with or without these cases."""
        return self.with_ if with_ else self.without

    @property
    def cases_in_it(self) -> int:
        """Number of cases of the smaller log."""
        return self.without.cases if isinstance(self.without, Variants) else self.without.number_of_cases


def attempts(whole_logs: bool, cases: int = 1) -> Iterator[Attempt]:
    """Yield the attempts on logs made for the purpose.

    ``whole_logs`` makes logs with events and people, for methods that need more than variants. ``cases`` is the number
    of cases of the added or removed person.
    """

    def attempt(
        attack: str, before: Sequence[tuple[Trace, int]], trace: Trace, *scores: Score, n: int = cases,
        breaks: Iterable[Code] = (),
    ) -> Attempt:  # fmt: skip
        known = frozenset(breaks)
        if whole_logs:
            return Attempt(attack, _log(before, ()), _log(before, [trace] * n), scores, known, n)
        return Attempt(attack, _variants(before), _variants([*before, (trace, n)]), scores, known, n)

    usual = list(_USUAL)
    canary = (Score("cases of the variant", _CANARY), Score("cases that begin so", _CANARY[:1]))
    yield attempt("a canary variant", usual, _CANARY, *canary)
    yield attempt("a case that breaks a rule", usual, _CANARY, Score("events of its pairs", _CANARY))
    pairs = (Score("events of its pairs", _NEW_PAIRS), Score("cases of the variant", _NEW_PAIRS))
    yield attempt("a case with many new directly-follows pairs", usual, _NEW_PAIRS, *pairs)
    yield attempt("the number of cases", usual, usual[0][0], Score("all cases"))
    for copies in _COPIES:
        before = [*usual, (_CANARY, copies)]
        scores = (*canary, Score("cases that begin so", _CANARY[:2]), Score("events of its pairs", _CANARY))
        yield attempt(f"one more than {copies} cases of a variant", before, _CANARY, *scores)
    own = (Score("cases with its label", _OWN_LABEL[1:2]), Score("characters told"))
    yield attempt("a case with a label of its own", usual, _OWN_LABEL, *own, breaks=["activities-from-log"])
    told = (Score("seconds told"), Score("characters told"))
    yield attempt("a case of very many events", usual, _SLOW, *told, breaks=["length-from-log"])
    if cases < MANY_CASES:
        yield attempt(f"a person with {MANY_CASES} cases", usual, _CANARY, *canary, n=MANY_CASES)
    if whole_logs:
        before = [*usual, (_CANARY, 3)]
        late = _log(before, [_CANARY] * cases, gap=600 * _MINUTE)
        score = Score("longest gap", _CANARY[:2])
        yield Attempt("the time of a rare transition", _log(before, ()), late, (score,), cases=cases)


WORST_ALPHABET = tuple("abcdefghijklmnopqrst")
WORST_LONGEST = 60
"""Declared facts of the logs of a white-box audit."""
_LONG = ("a",) * (WORST_LONGEST - 1)
_WORST: tuple[tuple[str, int, Trace, Trace], ...] = (
    ("an empty log, and a case of many equal steps", 0, (), _LONG),
    ("one more of 100 cases of many equal steps", 100, _LONG, _LONG),
    ("one more of 200 cases of one event", 200, ("a",), ("a",)),
    ("one more of 3,000 cases of one event", 3000, ("a",), ("a",)),
    ("one more of 3,000 cases of two events", 3000, ("a", "a"), ("a", "a")),
)
_OF_VARIANTS: tuple[tuple[str, int, Trace, Trace], ...] = (
    ("one more of 3,000 cases without events", 3000, (), ()),  # from its start to its end is one step
    ("3,000 cases of one event, and one without events", 3000, ("a",), ()),  # it fits no model of the others
    ("one more of so many cases that a float would round them", 2**24 + 1, ("a", "a"), ("a", "a")),
)
"""Attempts on variants alone. Single precision has 24 binary digits."""


def worst_cases(whole_logs: bool) -> Iterator[Attempt]:
    """Yield the attempts of a white-box audit: neighbours with most distant answers.

    All cases are equal, so a case changes one number of each answer by all that it may. These are the bins of its own
    variant, prefix and length, and the sum of the one step that it takes again and again. There are few or many cases,
    because the queries depend on the apparent number. Where queries concern times too, there are pairs with all steps
    in one hour, too.
    """
    for attack, number, usual, trace in _WORST if whole_logs else (*_WORST, *_OF_VARIANTS):
        before = [(usual, number)] if number else []
        if whole_logs:
            yield Attempt(attack, _log(before, ()), _log(before, [trace]), ())
            if len(trace) > 1:
                yield Attempt(f"{attack}, in one hour", _log(before, ()), _log(before, [trace], gap=_SECOND), ())
        else:
            yield Attempt(attack, _variants(before), _variants([*before, (trace, 1)]), ())


def attempts_on(log: Variants | EventLog) -> Iterator[Attempt]:
    """Yield attempts on a user's log: with and without one of the most unusual cases."""
    variants = log if isinstance(log, Variants) else log.variants
    known = variants.to_dict()
    if not known:
        raise ParameterError("audit-log-without-case", parameter="log")
    frequency: dict[str, int] = {}
    for trace, count in known.items():
        for activity in set(trace):
            frequency[activity] = frequency.get(activity, 0) + count
    rare = sorted(known, key=lambda t: (known[t], min((frequency[a] for a in t), default=0), t))[: _STANDING_OUT // 2]
    many = sorted(known, key=lambda t: (-len(set(pairwise(t))), known[t], t))[: _STANDING_OUT - len(rare)]
    for trace in dict.fromkeys([*rare, *many]):
        without = _remove_case(log, trace)
        name = f"one of {known[trace]} cases of a variant of {len(trace)} events"
        scores = [Score("cases of the variant", trace), Score("events of its pairs", trace)]
        scores += [Score("cases with its label", (label,)) for label in sorted(set(trace)) if frequency[label] == 1][:1]
        yield Attempt(name, without, log, (*scores, Score("seconds told")), _broken_conditions(without, variants))
    common = max(known, key=lambda t: known[t])
    less = _remove_case(log, common)
    yield Attempt("the number of cases", less, log, (Score("all cases"),), _broken_conditions(less, variants))


def _broken_conditions(without: Variants | EventLog, with_: Variants) -> frozenset[Code]:
    """Return the conditions that do not hold where only one of two logs has this case."""
    less = without if isinstance(without, Variants) else without.variants
    broken: set[Code] = {"activities-from-log"} if less.labels != with_.labels else set()
    if less.lengths.max(initial=0) != with_.lengths.max(initial=0):
        broken.add("length-from-log")
    return frozenset(broken)


def _seconds(told: object) -> float:
    """Return the largest number under a name of a time, -1 where there is none."""
    if isinstance(told, dict):
        within = [_seconds(value) for value in told.values()]
        found = [
            float(value)
            for name, value in told.items()
            if _TELLS_TIME.search(name) and isinstance(value, int | float) and not isinstance(value, bool)
        ]
        return max([*within, *found], default=-1.0)
    return max((_seconds(value) for value in told), default=-1.0) if isinstance(told, list) else -1.0


def _remove_case(log: Variants | EventLog, trace: Trace) -> Variants | EventLog:
    if isinstance(log, Variants):
        counts = dict(log.to_dict())
        counts[trace] -= 1
        return Variants.from_dict({t: c for t, c in counts.items() if c})
    activities = log.events.column(ACTIVITY).to_pylist()
    offsets = log.offsets.tolist()
    of_trace = next(i for i in range(len(offsets) - 1) if tuple(activities[offsets[i] : offsets[i + 1]]) == trace)
    return log.only(np.delete(np.arange(len(offsets) - 1), of_trace))


def _variants(rows: Iterable[tuple[Trace, int]]) -> Variants:
    counts: dict[Sequence[str], int] = {}
    for trace, count in rows:
        counts[trace] = counts.get(trace, 0) + count
    return Variants.from_dict(counts)


def _log(usual: Iterable[tuple[Trace, int]], more: Sequence[Trace], gap: int = 10 * _MINUTE) -> EventLog:
    """Return a log whose last cases, ``more``, belong to one person.

    Cases begin a quarter of an hour apart, with ten minutes and a little more between events. Every other person has
    one case.
    """
    traces = [trace for trace, count in usual for _ in range(count)]
    own = len(traces)
    traces += more
    activities: list[str] = []
    owners: list[int] = []
    times: list[int] = []
    for i, trace in enumerate(traces):
        step = gap if i >= own else 10 * _MINUTE + (i % 7) * _MINUTE
        activities += trace
        owners += [i] * len(trace)
        times += [_YEAR_2024 + i * 15 * _MINUTE + j * step for j in range(len(trace))]
    events = pa.table(
        {
            CASE_INDEX: pa.array(owners, pa.int64()),
            EVENT_INDEX: pa.array(np.arange(len(owners))),
            ACTIVITY: pa.array(activities, pa.string()).dictionary_encode(),
            TIMESTAMP: pa.array(times, pa.int64()).cast(TIMESTAMP_TYPE),
        }
    )
    people = [f"p{i}" if i < own else "the person" for i in range(len(traces))]
    names = [str(i) for i in range(len(traces))]
    return EventLog(events, pa.table({ACTIVITY: names, PERSON.removeprefix("case:"): people}))


def _longest_gap(log: EventLog, pair: tuple[str, str]) -> float:
    """Return the longest gap in minutes, -1 where the pair does not occur."""
    activities = np.array(log.events.column(ACTIVITY).to_pylist(), dtype=object)
    times = log.events.column(TIMESTAMP).cast(pa.int64()).to_numpy(zero_copy_only=False)
    cases = log.events.column(CASE_INDEX).to_numpy()
    at = np.flatnonzero((activities[:-1] == pair[0]) & (activities[1:] == pair[1]) & (cases[:-1] == cases[1:]))
    return float((times[at + 1] - times[at]).max()) / _MINUTE if len(at) else -1.0

"""Case and event attributes for any release of variants, epsilon-differentially private beside the release itself.

An attribute needs a public domain: declared values, a declared range of numbers, the values that enough cases have,
found with a delta (:meth:`EventQuestions.frequent_values`), or for a date how far it is from the start of its case.
Without a declared domain, attributes whose name says that they identify somebody or hold free text are refused, and so
are those of which a noisy count shows that most cases have a value of their own.

Then, each with its part of the budget: where events hold attributes, and which of them change within a case
(:mod:`memory`); how often each value occurs, in a case or with each activity (:mod:`marginals`, :mod:`memory`); and a
few tables of two, chosen with noise, of attributes of cases with each other and with the control flow
(:mod:`together`). What is released is drawn so that all answers agree. An attribute of cases has one value in a case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.eventlog import TIMESTAMP_TYPE
from veilog.logs.variants import Sequences
from veilog.methods._events.domains import Chosen, typed
from veilog.methods._events.marginals import Marginal, asked_values, case_values, expected_error
from veilog.methods._events.memory import Persisting, Recorded, asked_persisting, asked_records, courses
from veilog.methods._events.together import Variable, drawn_together, grouped, of_the_flow, placed, rounds_paid
from veilog.methods.method import advised
from veilog.privacy.cases import Cases, Coding
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.noise import generator

__all__ = ["ReleasedColumns", "released_attributes"]

RECORDS, PAIRS = Fraction(1, 10), Fraction(3, 10)
"""Parts of the epsilon: where events hold attributes, and tables of two; the rest is for each attribute by itself."""
MOSTLY_NOISE = 0.25
"""From this expected error on the values of an attribute are mostly noise."""
_DAY = 86_400_000_000


@dataclass(frozen=True)
class ReleasedColumns:
    """Columns for the released events and cases."""

    events: dict[str, pa.Array]
    cases: dict[str, pa.Array]


# Release ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Asked:
    """An attribute with the answers about it."""

    chosen: Chosen
    records: Recorded | None
    """Where events hold it; None for a column of cases."""
    of_case: Marginal | None
    of_events: Persisting | None
    """One of both: how often cases have its values, or events where these change within cases."""
    variable: Variable
    group: IntArray
    """Of each value the number that stands for it in tables of two."""
    known: BoolArray | None = None
    """Which events have a value that changes within cases."""

    @property
    def coding(self) -> Coding:
        found = self.of_case or self.of_events
        assert found is not None
        return found.coding


def released_attributes(
    curator: Curator,
    epsilon: Fraction,
    cases: Sequences,
    chosen: tuple[Chosen, ...],
    times: IntArray | None = None,
    remark: Callable[[str], None] = lambda text: None,
) -> ReleasedColumns:
    """Return values for the events and cases of a release; dates need its ``times``."""
    rng = generator(curator.randomness)
    flow = of_the_flow(cases)
    of_events = tuple(one for one in chosen if one.level == "event")
    price = epsilon * RECORDS if of_events and cases.labels else Fraction(0)
    rounds = rounds_paid(epsilon * PAIRS, len(cases), len(chosen), len(flow))
    for_pairs = epsilon * PAIRS if rounds else Fraction(0)
    records: dict[str, Recorded] = {}
    if price:
        found = asked_records(curator, price, cases.labels, of_events)
        records = {one.name: where for one, where in zip(of_events, found, strict=True)}
    weights = {one.name: _weight(one, records.get(one.name), cases) for one in chosen}
    asked = [
        _asked(
            curator,
            (epsilon - price - for_pairs) * weights[one.name] / sum(weights.values()),
            one,
            records.get(one.name),
            cases,
            for_pairs / max(1, rounds),
            rng,
        )
        for one in chosen
    ]
    _remark_errors(remark, asked, float(epsilon), len(cases))
    known = [(one.of_case.scale * len(one.of_case.shares) ** 0.5, one.of_case.cases) for one in asked if one.of_case]
    number = min(known)[1] if known else float(len(cases))
    codings = tuple(one.coding for one in asked)
    variables = [one.variable for one in asked]
    drawn_together(curator, for_pairs, rounds, flow, variables, codings, cases.labels, number, rng)
    columns = ReleasedColumns({}, {})
    for one in asked:
        if one.chosen.level == "case":
            columns.cases[one.chosen.column] = _of_cases(one, cases, times, rng)
        else:
            columns.events[one.chosen.column] = _of_events(one, cases, times, rng)
    return columns


def _weight(chosen: Chosen, records: Recorded | None, cases: Sequences) -> int:
    """The part of the epsilon that an attribute gets: the more numbers are asked, the more, but less than in
    proportion."""
    size = 2 * chosen.coding().size if chosen.range is not None else chosen.coding().size + 1
    size *= len(cases.labels) if records is not None and records.changes else 1
    return int(100 * size ** (1 / 3))


def _asked(
    curator: Curator,
    epsilon: Fraction,
    chosen: Chosen,
    records: Recorded | None,
    cases: Sequences,
    a_pair: Fraction,
    rng: np.random.Generator,
) -> _Asked:
    """Ask about an attribute by itself. ``a_pair`` is what each table of two will cost."""
    if records is None or not records.changes:
        of_case = asked_values(curator, epsilon, chosen, len(cases))
        group = grouped(of_case.shares, a_pair, of_case.cases, ordered=chosen.numeric)
        variable = _variable(chosen.column, of_case.coding, group, of_case.shares, len(cases))
        return _Asked(chosen, records, of_case, None, variable, group)
    of_events = asked_persisting(curator, epsilon, cases, chosen)
    first, known = _first_known(of_events, cases, rng)
    shares = np.append(of_events.known, np.zeros((len(cases.labels), 1)), axis=1)
    shares = np.append(shares, [[0.0] * of_events.coding.size + [1.0]], axis=0)
    usual = np.bincount(first.drawn, minlength=first.size) @ shares / max(len(cases), 1)
    group = grouped(usual, a_pair, len(cases), ordered=chosen.numeric)
    variable = _variable(chosen.column, of_events.coding, group, usual, len(cases))
    variable.parents.append((first, _by_group(shares, group)))
    return _Asked(chosen, records, None, of_events, variable, group, known)


def _variable(name: str, coding: Coding, group: IntArray, shares: FloatArray, cases: int) -> Variable:
    def of_block(block: Cases) -> IntArray:
        return group[case_values(block, coding.name)]  # -1, for none, is the last

    size = int(group.max()) + 1
    return Variable(name, size, of_block, _by_group(shares[None, :], group)[0], np.zeros(cases, dtype=np.int64))


def _by_group(shares: FloatArray, group: IntArray) -> FloatArray:
    found = np.zeros((len(shares), int(group.max()) + 1))
    np.add.at(found.T, group, shares.T)
    return found


def _first_known(of_events: Persisting, cases: Sequences, rng: np.random.Generator) -> tuple[Variable, BoolArray]:
    """The activity of the first event of each released case that has a value, and which events have one."""
    codes, size = cases.codes.astype(np.int64), len(cases.labels)
    none = of_events.by_activity[:, -1]
    known = placed(np.stack([none, 1 - none], axis=1), codes, rng) == 1
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    at = np.flatnonzero(known)
    firsts = at[np.flatnonzero(np.diff(owners[at], prepend=-1))]
    drawn = np.full(len(cases), size, dtype=np.int64)
    drawn[owners[firsts]] = codes[firsts]
    return Variable(
        "first activity", size + 1, lambda block: np.zeros(len(block), dtype=np.int64), np.zeros(0), drawn
    ), known


# Values -------------------------------------------------------------------------------------------------------------


def _case_codes(one: _Asked, rng: np.random.Generator) -> IntArray:
    """The value of each released case, -1 for none: one of the group that was drawn for it."""
    groups = one.variable.drawn
    size = one.coding.size
    if one.of_case is not None:
        rows, shares = groups, np.broadcast_to(one.of_case.shares, (one.variable.size, size + 1))
    else:
        assert one.of_events is not None
        (first, _) = one.variable.parents[0]
        kinds, rows = np.unique(first.drawn * one.variable.size + groups, return_inverse=True)
        known = np.append(one.of_events.known, np.zeros((first.size - 1, 1)), axis=1)
        shares = np.append(known, [[0.0] * size + [1.0]], axis=0)[kinds // one.variable.size]
        groups = kinds % one.variable.size
    own = np.arange(len(shares)) if one.of_case is not None else groups
    inside = np.where(one.group == own[:, None], shares + 1e-12, 0.0)
    codes = placed(inside, rows, rng)
    return np.where(codes < size, codes, -1)


def _of_cases(one: _Asked, cases: Sequences, times: IntArray | None, rng: np.random.Generator) -> pa.Array:
    return _column(one, _case_codes(one, rng), _starts(cases, times), np.arange(len(cases)), rng)


def _of_events(one: _Asked, cases: Sequences, times: IntArray | None, rng: np.random.Generator) -> pa.Array:
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    of_case = _case_codes(one, rng)
    starts = _starts(cases, times)
    if one.of_events is None:
        assert one.records is not None
        column = _column(one, of_case, starts, np.arange(len(cases)), rng)
        return column.take(pa.array(owners, mask=~one.records.events(cases)))
    assert one.known is not None
    codes, origin = courses(one.of_events, cases, one.known, of_case, rng)
    return _column(one, codes, None if starts is None else starts[owners], origin, rng)


def _starts(cases: Sequences, times: IntArray | None) -> IntArray | None:
    """The time of the first event of each case; 1970 for one without events."""
    if times is None:
        return None
    found = np.zeros(len(cases), dtype=np.int64)
    going = np.flatnonzero(cases.lengths)
    found[going] = times[cases.offsets[going]]
    return found


def _column(
    one: _Asked, codes: IntArray, starts: IntArray | None, origin: IntArray, rng: np.random.Generator
) -> pa.Array:
    """Values for codes, in the type of the log's column; numbers are drawn once for each ``origin``, in their bins."""
    missing = codes < 0
    codes = np.where(missing, 0, codes)
    if not one.chosen.numeric:
        values = typed(one.chosen)
        if one.chosen.kind == "text":
            return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=missing), values)
        return values.take(pa.array(codes, mask=missing))
    numbers = _numbers(one, codes, rng)[origin]
    if one.chosen.kind == "date":
        assert starts is not None
        moments = starts + np.round(numbers * _DAY).astype(np.int64)
        return pa.array(moments, pa.int64(), mask=missing).cast(TIMESTAMP_TYPE)
    return pa.array(numbers.astype(np.int64) if one.chosen.kind == "whole number" else numbers, mask=missing)


def _numbers(one: _Asked, codes: IntArray, rng: np.random.Generator) -> FloatArray:
    """A number inside each bin: on the lattice of a declared range, else evenly in log-time."""
    edges = np.array(one.coding.edges)
    u = rng.random(len(codes))
    low, high = edges[codes], edges[codes + 1]
    if one.chosen.range is None:
        away = np.sign(low + high)
        near, far = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
        inner = near > 0
        return np.asarray(away * np.where(inner, np.maximum(near, 1e-9) * (far / np.maximum(near, 1e-9)) ** u, u * far))
    unit = one.chosen.unit
    places = np.round(low / unit) + np.floor(u * np.round((high - low) / unit))
    return np.asarray(np.round(places * unit, max(0, -int(np.floor(np.log10(unit))))))


def _remark_errors(remark: Callable[[str], None], asked: list[_Asked], epsilon: float, cases: int) -> None:
    """Say how far noise alone moves the shares of values: public numbers only."""
    errors = {one.chosen.column: _error(one, cases) for one in asked}
    told = ", ".join(f"{name} {error:.2g}" for name, error in errors.items())
    remark(f"Part of the cases (of events, where values change) whose value noise alone may have changed: {told}.")
    noisy = [name for name, error in errors.items() if error >= MOSTLY_NOISE]
    if noisy:
        needed = max(epsilon * errors[name] / MOSTLY_NOISE for name in noisy)
        remark(
            f"The values of {', '.join(noisy)} are mostly noise. "
            f"{advised(needed, 'Attributes would need an epsilon of about {} for themselves, or fewer of them.')}"
        )


def _error(one: _Asked, cases: int) -> float:
    if one.of_case is not None:
        return expected_error(len(one.of_case.shares), one.of_case.scale, cases)
    assert one.of_events is not None
    return expected_error(one.of_events.by_activity.size, one.of_events.scale, cases * one.of_events.bound)

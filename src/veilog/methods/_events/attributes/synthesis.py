"""Case and event attributes for any release of variants.

They are epsilon-differentially private, in addition to the release itself. An attribute needs a public domain. That is
declared values, a declared range of numbers, the values that enough cases have, found with a delta
(:meth:`EventQuestions.frequent_values`), or for a date its distance from the start of its case. Without a declared
domain, veilog refuses attributes whose name shows that they identify a person or hold free text. It also refuses those
of which a noisy count shows that most cases have a value of their own.

Queries follow, each with its part of the budget:

- where events hold attributes, and which of them change within a case (:mod:`memory`)
- how often each value occurs, in a case or with each activity (:mod:`marginals`, :mod:`memory`)
- a few tables of two, chosen with noise, of attributes with each other and with times (:mod:`pairs`)
- how attributes go with the path (:mod:`signs`)

Released values are drawn so that all answers agree. An attribute of cases has one value in a case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from veilog._counting import rank_numbers
from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.eventlog import TIMESTAMP_TYPE
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.attributes.courses import ValueContext, courses
from veilog.methods._events.attributes.domains import Chosen, typed_values
from veilog.methods._events.attributes.errors import (
    PAIRS,
    AttributeQuery,
    price_alone,
    remark_errors,
    remark_together,
)
from veilog.methods._events.attributes.marginals import Marginal, case_values, group_values, query_values
from veilog.methods._events.attributes.memory import Persisting, Recorded, query_persistence, query_records
from veilog.methods._events.attributes.numbers import draw_in_bins, query_decimals
from veilog.methods._events.attributes.pairs import OF_PATH, AttributeDrawing, TablePrices, place_columns
from veilog.methods._events.attributes.signs import SignRule
from veilog.methods._events.attributes.variables import InEvents, Variable, released_only, time_variables
from veilog.methods._events.cells import Kinds
from veilog.methods._events.orders import CaseBlock, run_in_blocks
from veilog.methods._events.times.prior import PriorTimes
from veilog.privacy.cases import Cases, Coding
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.noise import generator

RECORDS = (Fraction(2, 100), Fraction(20, 100))
CASES_OF_RECORDS = 75
"""Bounds of the part of epsilon for where events hold attributes.

Within these, that epsilon times the number of cases is at most the second constant.
"""
_DAY = 86_400_000_000
_CALENDAR = (-719_162 * _DAY, 2_932_897 * _DAY - 1)
"""The first and the last moment of the years 1 to 9999, beyond which files have no dates."""


@dataclass(frozen=True)
class ReleasedColumns:
    """Columns for the released events and cases."""

    events: dict[str, pa.Array | pa.ChunkedArray]
    cases: dict[str, pa.Array]


# Release ------------------------------------------------------------------------------------------------------------


def released_attributes(
    curator: Curator, epsilon: Fraction, cases: Repeated, chosen: tuple[Chosen, ...], *asked: Any, **how: Any
) -> ReleasedColumns:
    """Return values for the events and cases of a release.

    The arguments are those of :func:`query_attributes`.
    """
    return query_attributes(curator, epsilon, cases, chosen, *asked, **how).columns


def query_attributes(
    curator: Curator,
    epsilon: Fraction,
    cases: Repeated,
    chosen: tuple[Chosen, ...],
    times: IntArray | None = None,
    remark: Callable[[Message], None] = lambda text: None,
    *,
    calendar: bool = False,
    prior: PriorTimes | None = None,
) -> AttributesModel:
    """Return attributes of a release's events and cases, as a model to draw others.

    Dates need the ``times`` of the release. With a ``calendar`` cases of the release start when those of the log do,
    and not in a synthetic year. Values of cases, and what they go with, start from a public ``prior``.
    """
    rng = generator(curator.randomness)
    records, price = _query_records(curator, epsilon, cases, chosen)
    weights = [_weight(one, records.get(one.name), cases) for one in chosen]
    changing = [one.name in records and records[one.name].changes for one in chosen]
    prices = [(epsilon - price) * (1 - PAIRS) * weight / sum(weights) for weight in weights]
    alone = [
        price if changes else price_alone(price, len(cases), _size(one))
        for one, price, changes in zip(chosen, prices, changing, strict=True)
    ]
    total = sum(alone, Fraction(0))
    for_pairs, kinds = epsilon - price - total, Kinds.of(cases)
    flow = [] if times is None else time_variables(cases, times, calendar=calendar)
    rule = SignRule.of(kinds, cases.labels, for_pairs * OF_PATH / len(chosen), len(cases))
    tables = TablePrices.of(for_pairs, len(cases), len(chosen), len(flow), path=len(rule.entries) > 0)
    if not tables.each:
        alone = [one * (epsilon - price) / total for one in alone]
    asked = [
        _query_attribute(curator, share, one, records.get(one.name), cases, tables.each, rng, prior)
        for one, share in zip(chosen, alone, strict=True)
    ]
    remark_errors(remark, asked, float(epsilon), len(cases))
    of_cases = [one.answer for one in asked if isinstance(one.answer, Marginal)]
    known = [(answer.scale * len(answer.shares) ** 0.5, answer.cases) for answer in of_cases]
    number = min(known)[1] if known else float(len(cases))
    codings = tuple(one.answer.coding for one in asked)
    # Of attributes that change within cases, those of many values mostly determine those of few, not vice versa.
    order = sorted(
        (one.variable for one in asked),
        key=lambda one: (one.in_events is not None, one.size * (-1 if one.in_events else 1)),
    )
    drawing = AttributeDrawing(curator, cases, codings, number, flow, order, rng, kinds, rule, prior)
    drawing.together(tables)
    fitting = [f"{name} {part:.2f}" for name, part in map(_prior_of, asked) if part is not None]
    if fitting:
        remark(Message("attributes-lean-on-prior", told=", ".join(fitting)))
    remark_together(remark, order, flow, len(cases), drawing.signs)
    asked.sort(key=lambda one: order.index(one.variable))
    model = AttributesModel(chosen, asked, drawing)
    model.columns = model.values(cases, times, rng)
    return model


def _query_records(
    curator: Curator, epsilon: Fraction, cases: Repeated, chosen: tuple[Chosen, ...]
) -> tuple[dict[str, Recorded], Fraction]:
    """Return where events hold attributes, by name, and the epsilon used to find that."""
    of_events = tuple(one for one in chosen if one.level == "event")
    if not (epsilon and of_events and cases.labels):
        return {}, Fraction(0)
    least, most = RECORDS
    price = min(max(epsilon * least, Fraction(CASES_OF_RECORDS, len(cases))), epsilon * most)
    found, price = query_records(curator, price, cases.labels, of_events, len(cases), epsilon * least)
    return {one.name: where for one, where in zip(of_events, found, strict=True)}, price


@dataclass(eq=False)
class AttributesModel:
    """Attributes of released cases, and noisy answers that any others are drawn from."""

    chosen: tuple[Chosen, ...]
    asked: list[AttributeQuery]
    """Attributes, each behind those that it is drawn given."""
    drawing: AttributeDrawing
    columns: ReleasedColumns = field(default_factory=lambda: ReleasedColumns({}, {}))
    """Columns of the released cases."""

    def of(self, cases: Repeated, times: IntArray | None, rng: np.random.Generator) -> ReleasedColumns:
        """Return values for the events and cases of other cases with the same labels."""
        codes = cases.rows(0, len(cases)).codes.astype(np.int64)
        for one in self.drawing.flow:
            assert times is not None
            one.values = one.of_block(Cases(codes, times, cases.offsets, {}))
        for query in self.asked:
            if isinstance(query.answer, Persisting):
                first, query.known = _first_known(query.answer, cases, rng)
                query.variable.parents[0][0].values = first.values
            elif query.records is not None:
                query.known = query.records.events(cases, 1 - float(query.answer.shares[-1]), rng)
                query.variable.parents[0][0].values = _has_record(query.known, cases)
        self.drawing.of(cases, rng)
        return self.values(cases, times, rng)

    def values(self, cases: Repeated, times: IntArray | None, rng: np.random.Generator) -> ReleasedColumns:
        """Return the columns of the cases for which values were drawn."""
        columns = {one.chosen.name: _values(one, cases, times, rng) for one in self.asked}
        return ReleasedColumns(
            events={one.column: columns[one.name] for one in self.chosen if one.level == "event"},
            cases={one.column: columns[one.name] for one in self.chosen if one.level == "case"},
        )


def _prior_of(one: AttributeQuery) -> tuple[str, float | None]:
    """Return the name of an attribute, and the chance that a prior fits its values."""
    return one.chosen.column, one.answer.prior if isinstance(one.answer, Marginal) else None


def _size(chosen: Chosen) -> int:
    """Return about how many numbers are queried for an attribute by itself."""
    return (chosen.coding().size + 1) * (1 if chosen.range is None else 2)


def _weight(chosen: Chosen, records: Recorded | None, cases: Repeated) -> int:
    """Return the weight of an attribute in sharing epsilon.

    It is more where more numbers are queried, but less than in proportion.
    """
    size = _size(chosen)
    size *= len(cases.labels) if records is not None and records.changes else 1
    return int(100 * size ** (1 / 3))


def _query_attribute(
    curator: Curator,
    epsilon: Fraction,
    chosen: Chosen,
    records: Recorded | None,
    cases: Repeated,
    a_pair: Fraction,
    rng: np.random.Generator,
    prior: PriorTimes | None,
) -> AttributeQuery:
    """Query an attribute by itself; each table of two will use epsilon ``a_pair``."""
    decimals, price = query_decimals(curator, epsilon, chosen, len(cases))
    chosen, epsilon = replace(chosen, decimals=decimals), epsilon - price
    if records is None or not records.changes:
        answer = query_values(curator, epsilon, chosen, len(cases), prior)
        group = group_values(answer.shares, a_pair, answer.cases, ordered=chosen.numeric)
        variable = _variable(chosen, answer.coding, group, answer.shares, len(cases))
        if records is None:
            return AttributeQuery(chosen, records, answer, variable, group)
        held = records.events(cases, 1 - float(answer.shares[-1]), rng)
        variable.parents.append(_shares_if_recorded(held, cases, variable.shares))
        return AttributeQuery(chosen, records, answer, variable, group, held)
    persisting = query_persistence(curator, epsilon, cases, chosen)
    first, known = _first_known(persisting, cases, rng)
    usual = np.bincount(first.drawn, minlength=first.size) @ persisting.first / max(len(cases), 1)
    group = group_values(usual, a_pair, len(cases), ordered=chosen.numeric)
    variable = _variable(chosen, persisting.coding, group, usual, len(cases))
    variable.parents.append((first, _shares_by_group(persisting.first, group)))
    variable.in_events = _event_variable(persisting, group, cases)
    return AttributeQuery(chosen, records, persisting, variable, group, known)


def _event_variable(answer: Persisting, group: IntArray, cases: Repeated) -> InEvents:
    """Return the attribute event by event, for tables of two."""
    coding, distinct = answer.coding, cases.distinct
    counts = np.repeat(cases.counts, distinct.lengths)
    often = np.bincount(distinct.codes, weights=counts, minlength=len(cases.labels))

    def of_block(block: Cases) -> IntArray:
        values = block.attributes[coding.name]
        return group[np.where(values >= 0, values, coding.size)]

    shares = _shares_by_group((often @ answer.by_activity)[None, :-1], group[:-1])[0]
    known = float(shares.sum()) / max(float(often.sum()), 1e-12)
    mass = float(np.minimum(cases.lengths, answer.bound).mean()) * known
    return InEvents(of_block, shares / max(float(shares.sum()), 1e-12), answer.bound, mass)


def _variable(chosen: Chosen, coding: Coding, group: IntArray, shares: FloatArray, cases: int) -> Variable:
    drawn = np.zeros(cases, dtype=np.int64)
    of_group = _shares_by_group(shares[None, :], group)[0]
    return Variable(chosen.column, len(of_group), lambda block: group[case_values(block, coding)], of_group, drawn)


def _shares_if_recorded(events: BoolArray, cases: Repeated, shares: FloatArray) -> tuple[Variable, FloatArray]:
    """Return whether released cases may hold an attribute, and its shares given that.

    A case may if one of its events may. Without such an event it has no value.
    """
    held = _has_record(events, cases)
    part = max(float(held.mean()), 1e-9)
    given = np.append(shares[:-1], max(part - float(shares[:-1].sum()), 0.0)) + 1e-12
    rows = np.stack([np.append(np.zeros(len(shares) - 1), 1.0), given / given.sum()])
    return released_only("whether it is recorded", held, 2), rows


def _has_record(events: BoolArray, cases: Repeated) -> IntArray:
    """Return 1 for each case that has one of these events, else 0."""
    held = np.zeros(len(cases), dtype=np.int64)
    held[np.searchsorted(cases.offsets, np.flatnonzero(events), side="right") - 1] = 1
    return held


def _shares_by_group(shares: FloatArray, group: IntArray) -> FloatArray:
    found = np.zeros((len(shares), int(group.max()) + 1))
    np.add.at(found.T, group, shares.T)
    return found


def _first_known(of_events: Persisting, cases: Repeated, rng: np.random.Generator) -> tuple[Variable, BoolArray]:
    """Return each case's first activity with a value, and which events have one.

    Both are of released cases.
    """
    size, none = len(cases.labels), of_events.by_activity[:, -1]
    having = np.stack([none, 1 - none], axis=1)
    known = np.zeros(cases.events, dtype=np.bool_)
    drawn = np.full(len(cases), size, dtype=np.int64)

    def of_block(block: CaseBlock) -> None:
        codes = block.sequences.codes.astype(np.int64)
        known[block.events] = place_columns(having, codes, block.rng) == 1
        at = np.flatnonzero(known[block.events])
        owners = block.owners[at]
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        drawn[block.cases][owners[firsts]] = codes[at[firsts]]

    run_in_blocks(of_block, cases, rng)
    return released_only("first activity", drawn, size + 1), known


# Values -------------------------------------------------------------------------------------------------------------


def _case_values(one: AttributeQuery, rng: np.random.Generator) -> IntArray:
    """Return the value of each released case: one of the group that was drawn for it."""
    groups, size = one.variable.drawn, one.variable.size
    given = one.answer.shares[None] if isinstance(one.answer, Marginal) else one.answer.first
    first = one.variable.parents[0][0].drawn if len(given) > 1 else np.zeros(len(groups), dtype=np.int64)
    kinds, rows, _ = rank_numbers(first * size + groups, len(given) * size)
    shares, own = given[kinds // size], kinds % size
    return place_columns(np.where(one.group == own[:, None], shares + 1e-12, 0.0), rows, rng)


def _values(
    one: AttributeQuery, cases: Repeated, times: IntArray | None, rng: np.random.Generator
) -> pa.Array | pa.ChunkedArray:
    """Return the column of an attribute."""
    values, starts = _case_values(one, rng), _starts(cases, times)
    codes = np.where(values < one.answer.coding.size, values, -1)
    if isinstance(one.answer, Persisting):
        return _changing_column(one, one.answer, cases, codes, starts, rng)
    column = _column(one.chosen, one.answer.coding, codes, starts, np.arange(len(cases)), rng)
    if one.known is not None:
        return _constant_column(column, one.known, cases, rng)
    # No query found the events that hold it: it is of cases, or there are no events.
    return column if one.chosen.level == "case" else column.slice(0, 0)


def _changing_column(
    one: AttributeQuery,
    answer: Persisting,
    cases: Repeated,
    first: IntArray,
    starts: IntArray,
    rng: np.random.Generator,
) -> pa.ChunkedArray:
    """Return the column of an attribute that changes within cases, from first values."""
    known, coding, parts = one.known, answer.coding, {}
    ours, course = one.variable.in_events, np.empty(cases.events, dtype=np.int32)
    assert known is not None
    assert ours is not None

    def of_block(block: CaseBlock) -> None:
        given = [ValueContext(parent.in_block(block), shares) for parent, shares in ours.parents]
        codes, origin = courses(answer, one.group, block, known[block.events], first[block.cases], given)
        course[block.events] = one.group[np.where(codes >= 0, codes, coding.size)]
        since = starts[block.cases][block.owners]
        parts[block.cases.start] = _column(one.chosen, coding, codes, since, origin, block.rng)

    run_in_blocks(of_block, cases, rng)
    ours.course = course
    return pa.chunked_array([parts[place] for place in sorted(parts)])


def _constant_column(column: pa.Array, known: BoolArray, cases: Repeated, rng: np.random.Generator) -> pa.ChunkedArray:
    """Return the column of events that hold the value of their case."""
    parts = {}

    def of_block(block: CaseBlock) -> None:
        held = pa.array(block.cases.start + block.owners, mask=~known[block.events])
        parts[block.cases.start] = column.take(held)

    run_in_blocks(of_block, cases, rng)
    return pa.chunked_array([parts[place] for place in sorted(parts)])


def _starts(cases: Repeated, times: IntArray | None) -> IntArray:
    """Return the time of the first event of each case, or 1970.

    It is 1970 for a case without events, or where there are no times.
    """
    found = np.zeros(len(cases), dtype=np.int64)
    going = np.flatnonzero(cases.lengths)
    if times is not None:
        found[going] = times[cases.offsets[going]]
    return found


def _column(
    one: Chosen, coding: Coding, codes: IntArray, starts: IntArray, origin: IntArray, rng: np.random.Generator
) -> pa.Array:
    """Return values for codes, in the type of the log's column.

    Numbers are drawn once for each ``origin``, in their bins.
    """
    missing = codes < 0
    codes = np.where(missing, 0, codes)
    if not one.numeric:
        values = typed_values(one)
        if one.kind == "text":
            return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=missing), values)
        return values.take(pa.array(codes, mask=missing))
    numbers = draw_in_bins(one, coding, codes, rng)[origin]
    if one.kind == "date":
        if one.decimals == 0:
            # Of a step of a whole day, the midnight that is nearest to its middle is in it.
            middle = starts / _DAY + numbers + (one.unit / 2 if one.range is not None else 0.0)
            starts, numbers = np.round(middle).astype(np.int64) * _DAY, np.zeros(len(numbers))
        moments = np.clip(starts + np.round(numbers * _DAY).astype(np.int64), *_CALENDAR)
        return pa.array(moments, pa.int64(), mask=missing).cast(TIMESTAMP_TYPE)
    return pa.array(numbers.astype(np.int64) if one.kind == "whole number" else numbers, mask=missing)

"""The one way from variants to times and attributes, each with a budget share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from veilog._typing import IntArray
from veilog.logs.eventlog import START, TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Repeated, Variants
from veilog.messages import Message
from veilog.methods._events.assemble import Details, Wanted, released_cases
from veilog.methods._events.attributes.domains import Chosen, choose
from veilog.methods._events.attributes.synthesis import AttributesModel, ReleasedColumns, query_attributes
from veilog.methods._events.persons import PersonsModel, asked_persons, table_of
from veilog.methods._events.times.prior import PriorTimes
from veilog.methods._events.times.processing import ProcessingModel, query_processing
from veilog.methods._events.times.timestamps import TimesModel, query_times
from veilog.methods.method import with_a_share
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Window
from veilog.privacy.mechanisms.noise import generator
from veilog.rules.rules import ReleaseRules
from veilog.rules.times import obeying_times

TIMES_OF_DELTA = Fraction(1, 10)
"""Part of a delta for times, where something else needs delta, too."""


@dataclass(frozen=True, eq=False)
class Enriched:
    """Released variants with times and attributes, and places of each part's charges."""

    variants: Variants
    details: Details
    for_flow: range
    for_times: range
    for_attributes: tuple[int, ...]
    for_persons: range
    drawing: DetailsDrawing
    """Drawing of times and attributes for any other cases."""


@dataclass(frozen=True, eq=False)
class DetailsDrawing:
    """Models from which times and attributes of any cases are drawn.

    Privacy: :meth:`of` makes no query. It computes with public facts, noisy answers and fresh random numbers alone,
    once all queries are answered. So its draws are post-processing of these answers, however often it is called.
    """

    times: TimesModel | None
    processing: ProcessingModel | None
    attributes: AttributesModel | None
    rules: ReleaseRules | None
    persons: PersonsModel | None = None

    def of(self, cases: Repeated, rng: np.random.Generator) -> Details:
        """Return cases with the release's labels, times and attributes, each by itself."""
        times, starts = None, dict[str, pa.Array]()
        if self.times is not None:
            times, begun = self.times.of(cases, rng), None
            if self.processing is not None:
                times, begun = self.processing.of(cases, times, rng)
            times, starts = self.moved(cases, times, begun)
        columns = ReleasedColumns({}, {}) if self.attributes is None else self.attributes.of(cases, times, rng)
        columns = replace(columns, events={**starts, **columns.events})
        if self.rules is not None and self.rules.attributes:
            columns = _obey_rules(columns, cases, times, self.rules, rng)
        return Details(cases, times, columns)

    def linked(self, details: Details, rng: np.random.Generator) -> Details:
        """Return cases with synthetic persons, where the release has such."""
        if self.persons is None or not isinstance(details.cases, Repeated):
            return details
        return replace(details, columns=self.persons.named(details.cases, details.times, details.columns, rng))

    def moved(self, cases: Repeated, times: IntArray, begun: IntArray | None) -> tuple[IntArray, dict[str, pa.Array]]:
        """Return times as rules have them, and the starts of events under their name."""
        moved = obeying_times(self.rules.times, cases, times) if self.rules and self.rules.times else times
        if begun is None:
            return moved, {}
        return moved, {START: pa.array(begun + moved - times, pa.int64()).cast(TIMESTAMP_TYPE)}


def delta_shared_out(delta: Fraction, others: int, times: bool) -> tuple[Fraction, Fraction]:
    """Return the delta of each of so many ``others``, all the same, and that of times.

    Times, if any, have a tenth, or all where there are no others. The others are thresholds that counts have to exceed:
    these rise with the logarithm of one over delta, over epsilon. The deviation of Gaussian noise, which times may
    have, rises with the root of that logarithm only.
    """
    for_times = Fraction(0) if not times else delta * TIMES_OF_DELTA if others else delta
    return (delta - for_times) / max(1, others), for_times


def enrich(
    curator: Curator,
    wanted: Wanted,
    epsilon: Fraction,
    delta: Fraction,
    delta_times: Fraction,
    flow: Callable[[Fraction], Variants],
    remark: Callable[[Message], None],
    rules: ReleaseRules | None = None,
    prior: Sequence[EventLog] = (),
) -> Enriched:
    """Return the release of ``flow`` with times and attributes.

    ``flow`` gets the epsilon that the shares of ``wanted`` leave it. ``delta`` is for the values of attributes that are
    not declared, ``delta_times`` for times. Values are found before the control flow is queried, so that a refusal uses
    little. Where none can be released, the flow has their share. Times and attributes start from those of a public
    ``prior``.
    """

    def asked() -> int:
        return len(curator.charges)

    begun = asked()
    if wanted.processing:
        curator.events.check_moments(START)
    found, rest = _attributes(curator, wanted, epsilon, delta, remark)
    flow_epsilon = epsilon * wanted.of_flow
    if not found:
        flow_epsilon, rest = flow_epsilon + rest, Fraction(0)
    before_flow = asked()
    with with_a_share(epsilon / flow_epsilon):
        variants = flow(flow_epsilon)
    after_flow = asked()
    cases = released_cases(variants, generator(curator.randomness))
    drawing = DetailsDrawing(None, None, None, rules)
    drawing, times, starts = _add_times(curator, wanted, epsilon, delta_times, cases, remark, drawing, prior)
    after_times = asked()
    columns = ReleasedColumns({}, {})
    if found and len(cases):
        attributes = _add_attributes(curator, wanted, rest, cases, found, times, remark, prior)
        drawing, columns = replace(drawing, attributes=attributes), attributes.columns
    columns = replace(columns, events={**starts, **columns.events})
    if rules is not None and rules.attributes:
        columns = _obey_rules(columns, cases, times, rules, generator(curator.randomness))
    after_attributes = asked()
    details = Details(cases, times, columns)
    if wanted.persons and len(cases):
        rng, share = generator(curator.randomness), epsilon * wanted.persons
        persons = asked_persons(curator, share, wanted, cases, rng, remark, rules, timed=times is not None)
        drawing = replace(drawing, persons=persons)
        details = drawing.linked(details, rng)
    return Enriched(
        variants,
        details,
        range(before_flow, after_flow),
        range(after_flow, after_times),
        (*range(begun, before_flow), *range(after_times, after_attributes)),
        range(after_attributes, asked()),
        drawing,
    )


def _obey_rules(
    columns: ReleasedColumns, cases: Repeated, times: IntArray | None, rules: ReleaseRules, rng: np.random.Generator
) -> ReleasedColumns:
    """Return the columns with values redrawn where they break a rule."""
    drawn = table_of(columns, cases, times).redrawn(rules.attributes, rng)
    of_events = {name: drawn.get(name, column) for name, column in columns.events.items()}
    return ReleasedColumns(of_events, {name: drawn.get(name, column) for name, column in columns.cases.items()})


def _add_attributes(
    curator: Curator,
    wanted: Wanted,
    epsilon: Fraction,
    cases: Repeated,
    found: tuple[Chosen, ...],
    times: IntArray | None,
    remark: Callable[[Message], None],
    prior: Sequence[EventLog],
) -> AttributesModel:
    """Return the model of attributes, with those of the released cases."""
    calendar = wanted.window is not None or curator.domain.window is not None
    public = PriorTimes(prior, curator.domain) if prior else None
    model = query_attributes(curator, epsilon, cases, found, times, remark, calendar=calendar, prior=public)
    _remark_dates(found, remark, calendar=calendar)
    return model


def _remark_dates(found: tuple[Chosen, ...], remark: Callable[[Message], None], *, calendar: bool) -> None:
    """Warn that dates are of other years, where cases start in a synthetic one."""
    dates = ", ".join(one.name for one in found if one.kind == "date")
    if dates and not calendar:
        remark(Message("dates-shifted-with-cases", dates=dates))


def _attributes(
    curator: Curator, wanted: Wanted, epsilon: Fraction, delta: Fraction, remark: Callable[[Message], None]
) -> tuple[tuple[Chosen, ...], Fraction]:
    """Return the attributes with their domains, and the epsilon left for attributes."""
    if not wanted.attributes:
        return (), Fraction(0)
    share, dated = epsilon * wanted.attributes_share, bool(wanted.times)
    return choose(curator, wanted.attributes, share, delta, remark, dated=dated)


def _add_times(
    curator: Curator,
    wanted: Wanted,
    epsilon: Fraction,
    delta: Fraction,
    cases: Repeated,
    remark: Callable[[Message], None],
    drawn: DetailsDrawing,
    prior: Sequence[EventLog],
) -> tuple[DetailsDrawing, IntArray | None, dict[str, pa.Array]]:
    """Return the model of times, the released times, and the starts under their name.

    Without times, or events that have them, there are none.
    """
    if wanted.times and cases.events == 0:
        remark(Message("extras-without-events"))
    if not wanted.times or cases.events == 0:
        return drawn, None, {}
    with_times = [log for log in prior if not log.artificial_times]
    public = PriorTimes(with_times, curator.domain) if with_times else None
    window = _window(curator, wanted)
    budget, for_starts = epsilon * wanted.times, wanted.of_starts
    rest, rules = 1 - for_starts, () if drawn.rules is None else drawn.rules.times
    model = query_times(
        curator, budget * rest, cases, window=window, delta=delta * rest, remark=remark, rules=rules, prior=public
    )
    times, begun, processing = model.times, None, None
    if wanted.processing:
        rng = generator(curator.randomness)
        processing = query_processing(curator, budget * for_starts, delta * for_starts, cases, remark, public)
        times, begun = processing.of(cases, times, rng)
    drawn = replace(drawn, times=model, processing=processing)
    moved, starts = drawn.moved(cases, times, begun)
    if (moved != times).any():
        remark(Message("times-moved-by-rules"))
    return drawn, moved, starts


def _window(curator: Curator, wanted: Wanted) -> Window | None:
    """Return when cases start, as declared or by the log; None for a synthetic year."""
    if isinstance(wanted.window, tuple):
        return curator.events.of_subset(wanted.window)
    return curator.events.window if wanted.window or curator.domain.window else None

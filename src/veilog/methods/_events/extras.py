"""The one way from a release of variants to one with times and attributes, each with its share of the budget."""

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
from veilog.methods._events.attributes.synthesis import ReleasedColumns, released_attributes
from veilog.methods._events.times.prior import PriorTimes
from veilog.methods._events.times.processing import with_starts
from veilog.methods._events.times.timestamps import released_times
from veilog.methods.method import with_a_share
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Window
from veilog.privacy.mechanisms.noise import generator
from veilog.rules.attributes import AttributeTable
from veilog.rules.rules import ReleaseRules
from veilog.rules.times import TimeRule, obeying

TIMES_OF_DELTA = Fraction(1, 10)
"""What times have of a delta that something else needs, too."""


@dataclass(frozen=True, eq=False)
class Enriched:
    """Released variants with times and attributes, and by their places the charges that each part caused."""

    variants: Variants
    details: Details
    for_flow: range
    for_times: range
    for_attributes: tuple[int, ...]


def delta_shared_out(delta: Fraction, others: int, times: bool) -> tuple[Fraction, Fraction]:
    """Return what each of so many ``others`` has of a delta, all the same, and what times have: a tenth, or all where
    there are no others.

    The others are thresholds that counts have to exceed: these rise with the logarithm of one over delta, over epsilon.
    The deviation of Gaussian noise, which times may have, rises with the root of that logarithm only.
    """
    for_times = Fraction(0) if not times else delta * TIMES_OF_DELTA if others else delta
    return (delta - for_times) / max(1, others), for_times


def enriched(
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
    """Return what ``flow`` releases with the epsilon that the shares of ``wanted`` leave it, with times and attributes.

    ``delta`` is for the values of attributes that are not declared, ``delta_times`` for times. Values are found before
    the control flow is asked for, so that a refusal costs little; where none can be released, the flow has their share.
    Times and attributes start from those of a public ``prior``.
    """

    def asked() -> int:
        return len(curator.charges)

    begun = asked()
    if wanted.processing:
        curator.events.check_moments(START)
    found, rest = _attributes(curator, wanted, epsilon, delta, remark)
    flow_epsilon = epsilon * (1 - wanted.times - wanted.attributes_share)
    if not found:
        flow_epsilon, rest = flow_epsilon + rest, Fraction(0)
    before_flow = asked()
    with with_a_share(epsilon / flow_epsilon):
        variants = flow(flow_epsilon)
    after_flow = asked()
    cases = released_cases(variants, generator(curator.randomness))
    with_times = [log for log in prior if not log.artificial_times]
    known = PriorTimes(with_times, curator.domain) if with_times else None
    of_times = () if rules is None else rules.times
    times, starts = _times(curator, wanted, epsilon, delta_times, cases, remark, of_times, known)
    after_times = asked()
    columns = ReleasedColumns({}, {})
    if found and len(cases):
        calendar = wanted.window is not None or curator.domain.window is not None
        public = PriorTimes(prior, curator.domain) if prior else None
        columns = released_attributes(curator, rest, cases, found, times, remark, calendar=calendar, prior=public)
        _remark_dates(found, remark, calendar=calendar)
    columns = replace(columns, events={**starts, **columns.events})
    if rules is not None and rules.attributes:
        columns = _obeying(columns, cases, times, rules, generator(curator.randomness))
    return Enriched(
        variants,
        Details(cases, times, columns),
        range(before_flow, after_flow),
        range(after_flow, after_times),
        (*range(begun, before_flow), *range(after_times, asked())),
    )


def _obeying(
    columns: ReleasedColumns, cases: Repeated, times: IntArray | None, rules: ReleaseRules, rng: np.random.Generator
) -> ReleasedColumns:
    """The columns with values redrawn where they break a rule."""
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    going, starts = np.flatnonzero(cases.lengths), np.zeros(len(cases), dtype=np.int64)
    if times is not None:
        starts[going] = times[cases.offsets[going]]
    codes = cases.rows(0, len(cases)).codes.astype(np.int64)
    table = AttributeTable(owners, cases.labels, codes, starts, columns.cases, columns.events)
    drawn = table.redrawn(rules.attributes, rng)
    of_events = {name: drawn.get(name, column) for name, column in columns.events.items()}
    return ReleasedColumns(of_events, {name: drawn.get(name, column) for name, column in columns.cases.items()})


def _remark_dates(found: tuple[Chosen, ...], remark: Callable[[Message], None], *, calendar: bool) -> None:
    """Say that dates are of other years than they were, where cases start in a made-up one."""
    dates = ", ".join(one.name for one in found if one.kind == "date")
    if dates and not calendar:
        remark(Message("dates-shifted-with-cases", dates=dates))


def _attributes(
    curator: Curator, wanted: Wanted, epsilon: Fraction, delta: Fraction, remark: Callable[[Message], None]
) -> tuple[tuple[Chosen, ...], Fraction]:
    """The attributes with their domains, and what is left of the epsilon for attributes."""
    if not wanted.attributes:
        return (), Fraction(0)
    share, dated = epsilon * wanted.attributes_share, bool(wanted.times)
    return choose(curator, wanted.attributes, share, delta, remark, dated=dated)


def _times(
    curator: Curator,
    wanted: Wanted,
    epsilon: Fraction,
    delta: Fraction,
    cases: Repeated,
    remark: Callable[[Message], None],
    rules: tuple[TimeRule, ...],
    prior: PriorTimes | None,
) -> tuple[IntArray | None, dict[str, pa.Array]]:
    """Times for the released events, where asked for and there are any; and when these began, by the name of that."""
    if not wanted.times:
        return None, {}
    if cases.events == 0:
        remark(Message("extras-without-events"))
        return None, {}
    window = _window(curator, wanted)
    budget, for_starts = epsilon * wanted.times, wanted.of_starts
    rest = 1 - for_starts
    times = released_times(
        curator, budget * rest, cases, window=window, delta=delta * rest, remark=remark, rules=rules, prior=prior
    )
    begun = None
    if wanted.processing:
        times, begun = with_starts(curator, budget * for_starts, delta * for_starts, cases, times, remark, prior)
    moved = obeying(rules, cases, times) if rules else times
    if (moved != times).any():
        remark(Message("times-moved-by-rules"))
    if begun is None:
        return moved, {}
    return moved, {START: pa.array(begun + moved - times, pa.int64()).cast(TIMESTAMP_TYPE)}


def _window(curator: Curator, wanted: Wanted) -> Window | None:
    """When cases start, as it was declared or is known of the log; None for a made-up year."""
    if isinstance(wanted.window, tuple):
        return curator.events.of_subset(wanted.window)
    return curator.events.window if wanted.window or curator.domain.window else None

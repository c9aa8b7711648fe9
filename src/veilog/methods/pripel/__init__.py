"""PRIPEL: a private trace-variant query, enriched with times and attributes from matched cases.

S.A. Fahrenkrog-Petersen, H. van der Aa, M. Weidlich, "PRIPEL: Privacy-Preserving Event Log Publishing Including
Contextual Information", BPM 2020.

As published: (1) variants come from a trace-variant query; (2) each released trace is matched with a trace of the raw
log, such that the Levenshtein distances add up to as little as possible, and takes over its times and attributes
(:mod:`pripel_resolve`); (3) every value gets local noise for epsilon (:mod:`pripel_noise`): start and gaps of the
times, numbers, booleans, categories. Nothing can be derived for that: the matching depends on all raw cases at once,
the domains of the noise are those of the raw log, and a case pays epsilon again for each of its values.

Certified: the same query with a share of epsilon, and times and attributes drawn from noisy histograms of what goes
with each transition and activity (:mod:`event_log`) instead of from matched cases. The shares add up to epsilon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa

from veilog._typing import IntArray
from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Sequences
from veilog.messages import Message
from veilog.methods._events.query import (
    Query,
    QuerySettings,
    names_in,
    needs_of_query,
    released_log,
    variant_query,
    wanted_of,
)
from veilog.methods.method import DeltaOptional, Request, WholeLog, our_method
from veilog.methods.pripel.matching import How, match
from veilog.methods.pripel.noise import bounded_noise
from veilog.methods.pripel.resolve import RawTraces, Resolved, cases_of_matching, resolve
from veilog.methods.pripel.values import noised_column, refusal
from veilog.methods.settings import Range
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.noise import Randomness, generator

__all__ = ["PRIPEL", "PripelSettings", "pripel"]

RowsDrawn = Callable[[np.random.Generator], IntArray]

_SECOND = 1_000_000
_HOUR = 3_600
_LAST_SECOND = 253_402_300_799
"""The end of the year 9999, after which files cannot write a date."""


@dataclass(frozen=True, kw_only=True)
class PripelSettings(QuerySettings):
    """Settings of PRIPEL."""

    query: Annotated[str | None, "variant method that traces come from; evolve, or as published laplace"] = None
    matching: Annotated[Literal["optimal", "greedy"], "as published: how traces are matched"] = "optimal"
    attribute_names: Annotated[
        str | None, "attributes to release, a,b,c; certified none, as published all by default"
    ] = None
    attribute_share: Annotated[
        float | None, "certified: share of epsilon for attributes; a quarter", Range(0.01, 0.9)
    ] = None


def _delta_is_of_use(settings: PripelSettings) -> bool:
    """Whether the query spends a delta, attributes without declared values need one, or times may."""
    if settings.query is None:
        return True
    query = variant_query(settings.query, settings.query_parameters)
    return query.spends_delta or bool(names_in(settings.attribute_names)) or settings.times_share > 0


def pripel(curator: Curator, request: Request, settings: PripelSettings) -> EventLog:
    """Return a whole log. Certified: epsilon (and delta, where the query or an attribute needs one) in all, of which
    ``times_share`` is for times, ``attribute_share`` for the attributes and the rest for the query. As published: the
    query and every single value get epsilon, and nothing is derived."""
    asked = variant_query(
        settings.query or ("laplace" if request.as_published else "evolve"), settings.query_parameters
    )
    if request.as_published:
        if settings.start_window is not None or settings.attribute_share is not None:
            raise ParameterError(
                "pripel-shares-when-published",
                parameter="start_window" if settings.start_window is not None else "attribute_share",
            )
        return _as_published(curator, request, asked, settings.matching, settings.attribute_names)
    if settings.matching == "greedy":
        raise ParameterError("pripel-matching-when-certified", parameter="matching")
    wanted = wanted_of(settings, settings.attribute_names, settings.attribute_share)
    return released_log(curator, request, wanted, lambda rest: asked.ask(curator, rest), asked.spends_delta)


def _as_published(curator: Curator, request: Request, query: Query, how: How, attribute_names: str | None) -> EventLog:
    if request.delta and not query.method.needs_delta:
        raise ParameterError("pripel-delta-not-needed", parameter="delta", name=query.method.name)
    for reason in ("pripel-matching-uncharged", "pripel-domains-raw", "pripel-epsilon-for-each-value"):
        log = curator.peek_log(reason)
    raw = RawTraces.of(log)
    event_columns, case_columns = _columns(log, names_in(attribute_names), request)
    rng = generator(curator.randomness)
    request.progress("asking the trace-variant query", None)
    released = query.ask(curator, request)
    request.progress(f"matching {released.cases} released traces with {log.cases.num_rows}", None)
    donors = cases_of_matching(match(released, log.variants, how, request.remark), released, log.variants, raw, rng)
    cases = released.sequences.take(np.repeat(np.arange(len(released)), released.counts))
    request.progress("adding noise to times and attributes", None)
    resolved = resolve(cases, donors, raw, rng)
    times = _noised_times(cases, resolved, raw, request.epsilon, curator.randomness)
    rows = _alike(cases, resolved.donor_events, raw)
    fields = [pa.field(CASE_INDEX, pa.int64()), pa.field(EVENT_INDEX, pa.int64())]
    fields += [log.events.schema.field(ACTIVITY).with_type(_LABELS), pa.field(TIMESTAMP, TIMESTAMP_TYPE)]
    labels = pa.array(cases.labels, pa.string())
    columns: list[pa.Array] = [
        pa.array(np.repeat(np.arange(len(cases)), cases.lengths)),
        pa.array(np.arange(len(cases.codes))),
        pa.DictionaryArray.from_arrays(pa.array(cases.codes, pa.int32()), labels),
        pa.array(times * _SECOND, pa.int64()).cast(TIMESTAMP_TYPE),
    ]
    of_cases = pa.Table.from_arrays(
        [pa.array(np.arange(1, len(cases) + 1)).cast(pa.string())],
        schema=pa.schema([log.cases.schema.field(ACTIVITY).with_type(pa.string())]),
    )

    def with_attributes(table: pa.Table, names: list[str], raw: pa.Table, drawn: Callable[[], IntArray]) -> pa.Table:
        for name in names:
            column = noised_column(raw.column(name), drawn(), request.epsilon, curator.randomness)
            table = table.append_column(raw.schema.field(name).with_type(column.type).with_nullable(True), column)
        return table

    def donor_cases() -> IntArray:
        return np.where(donors >= 0, donors, rng.integers(0, log.cases.num_rows, len(donors)))

    events = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    return EventLog(
        with_attributes(events, event_columns, log.events, lambda: rows(rng)),
        with_attributes(of_cases, case_columns, log.cases, donor_cases),
    )


_LABELS = pa.dictionary(pa.int32(), pa.string())


def _columns(log: EventLog, names: tuple[str, ...], request: Request) -> tuple[list[str], list[str]]:
    """The attributes of events and of cases to release: those named, or all that can be."""
    reserved = (ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX, NESTED)
    of_events = [name for name in log.events.column_names if name not in reserved]
    of_cases = [name for name in log.cases.column_names if name not in reserved]
    if len(set(names)) != len(names):
        raise ParameterError("attributes-asked-twice", parameter="attribute_names")
    places = {f"case:{name}": (1, name) for name in of_cases} | {name: (1, name) for name in of_cases}
    places |= {name: (0, name) for name in of_events}
    for name in names:
        if name not in places:
            known = [*of_events, *(c if c not in of_events else f"case:{c}" for c in of_cases)]
            raise ParameterError(
                "pripel-attribute-missing",
                parameter="attribute_names",
                name=name,
                meant=meant(name, known),
                names=", ".join(known) or Message("names-none"),
            )
    wanted = {places[name] for name in names or places}
    chosen: tuple[list[str], list[str]] = ([], [])
    for level, name in [(level, name) for level, columns in enumerate((of_events, of_cases)) for name in columns]:
        if (level, name) in wanted:
            problem = refusal(name, (log.events, log.cases)[level].column(name))
            if problem is None:
                chosen[level].append(name)
            elif names:
                raise ParameterError(problem, parameter="attribute_names", advice="attribute-left-out-advised")
            else:
                request.remark(problem)
    return chosen


def _alike(cases: Sequences, donors: IntArray, raw: RawTraces) -> RowsDrawn:
    """Rows that attributes come from: of the matched event, else of one of the same activity, another each time it is
    asked; -1 where the activity never occurs."""
    missing = np.flatnonzero(donors < 0)
    codes = raw.codes_of(cases)[missing]
    order = np.argsort(raw.codes, kind="stable")
    low = np.searchsorted(raw.codes[order], codes, side="left")
    high = np.searchsorted(raw.codes[order], codes, side="right")
    occurs = low < high

    def rows(rng: np.random.Generator) -> IntArray:
        filled = donors.copy()
        drawn = low + (rng.random(len(low)) * (high - low)).astype(np.int64)
        filled[missing[occurs]] = order[drawn[occurs]]
        return filled

    return rows


def _noised_times(
    cases: Sequences, resolved: Resolved, raw: RawTraces, epsilon: Fraction, source: Randomness
) -> IntArray:
    """Seconds since 1970 of every event: the start shifted inside the raw range of starts, every gap noised inside the
    range of its pair of activities.

    That range reaches from 0 up to the pair's longest raw gap, rounded up to 1, 2, 4, ... hours: a pair that occurs
    once, or always takes equally long, gets noise too.
    """
    first, last = int(raw.starts.min()), int(raw.starts.max())
    going = cases.lengths > 0
    starts = np.zeros(len(cases), dtype=np.int64)
    inside = np.clip(resolved.starts[going], first, last) - first  # a first event may stem from the midst of a case
    starts[going] = first + bounded_noise(inside, max(last - first, _HOUR), epsilon, source)
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    inner = np.flatnonzero(np.arange(len(owners)) != cases.offsets[owners])
    bounds = _bounds(cases, inner, raw)
    gaps = np.zeros(len(owners), dtype=np.int64)
    for bound in np.unique(bounds).tolist():
        here = inner[bounds == bound]
        gaps[here] = bounded_noise(np.minimum(resolved.gaps[here], bound), bound, epsilon, source)
    since = np.cumsum(gaps)
    times = starts[owners] + since - since[cases.offsets[owners]]
    return np.asarray(np.minimum(times, _LAST_SECOND), dtype=np.int64)


def _bounds(cases: Sequences, inner: IntArray, raw: RawTraces) -> IntArray:
    """The largest gap that each event of ``inner`` may have after the event before it."""
    pairs, gaps = raw.gaps()
    size = len(raw.labels) + 1
    longest = np.full(size * size, int(gaps.max(initial=0)), dtype=np.int64)
    seen, inverse = np.unique(pairs // (size - 1) * size + pairs % (size - 1), return_inverse=True)
    of_pair = np.zeros(len(seen), dtype=np.int64)
    np.maximum.at(of_pair, inverse, gaps)
    longest[seen] = of_pair
    codes = raw.codes_of(cases) % size  # those that never occur come last
    hours = np.maximum(-(-longest[codes[inner - 1] * size + codes[inner]] // _HOUR), 1)
    rounded: IntArray = _HOUR * 2 ** np.ceil(np.log2(hours)).astype(np.int64)
    return rounded


PRIPEL = our_method(
    "pripel",
    pripel,
    PripelSettings,
    releases=WholeLog(),
    budget=DeltaOptional(of_use=_delta_is_of_use, buys="frequent real variants can be added"),
    needs=needs_of_query,
)

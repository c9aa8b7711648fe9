"""PRIPEL: a private trace-variant query, with times and attributes by matching.

S.A. Fahrenkrog-Petersen, H. van der Aa, M. Weidlich, "PRIPEL: Privacy-Preserving Event Log Publishing Including
Contextual Information", BPM 2020.

As published: (1) variants come from a trace-variant query; (2) each released trace takes over the times and attributes
of a matched trace of the raw log, with the smallest sum of Levenshtein distances (:func:`resolve`); (3) every value
gets local noise for epsilon: start and gaps of the times, numbers, booleans, categories. Nothing can be derived for
that. The matching depends on all raw cases at once, and the domains of the noise are those of the raw log. A case uses
epsilon again for each of its values.

Certified: the same query with a share of epsilon. Times and attributes come from noisy histograms of what goes with
each transition and activity, not from matched cases. The shares add up to epsilon.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import InputError, ParameterError, SolverError, meant
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Sequences, Variants
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
from veilog.methods._relations import equal_before
from veilog.methods.method import DeltaOptional, Request, WholeLog, our_method
from veilog.methods.settings import Range
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.intervals import exp_minus, quotient, rational, total
from veilog.privacy.mechanisms.noise import Randomness, bernoulli, generator, tsgd_noise

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
    """Return True if the query, undeclared values of attributes, or times use a delta."""
    if settings.query is None:
        return True
    query = variant_query(settings.query, settings.query_parameters)
    return query.spends_delta or bool(names_in(settings.attribute_names)) or settings.times_share > 0


def pripel(curator: Curator, request: Request, settings: PripelSettings) -> EventLog:
    """Return a whole log.

    Certified: epsilon (and delta, where the query or an attribute needs one) in all, of which ``times_share`` is for
    times, ``attribute_share`` for the attributes and the rest for the query. As published: the query and every single
    value get epsilon, and nothing is derived.
    """
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
    rows = _choose_alike(cases, resolved.donor_events, raw)
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
    """Return the attributes of events and cases to release: named, or all possible."""
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


def _choose_alike(cases: Sequences, donors: IntArray, raw: RawTraces) -> RowsDrawn:
    """Return a function for the rows that attributes come from.
    A row is that of the matched event, else of one of the same activity, another at each call; -1 where the activity
    never occurs."""
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
    """Return the noisy time of every event in seconds since 1970.

    Starts are shifted inside the raw range of starts. Every gap gets noise inside the range of its pair of activities.

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
    """Return the largest gap that each event of ``inner`` may have before it."""
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


# Matching released traces with traces of a log, one to one, by Levenshtein distance.
#
# Both sides are multisets of variants, and equal variants are matched first. For an optimal matching that is no loss:
# if a released x goes to y while an equal raw x goes to z (or to no trace), sending x to x and z to y costs at most as
# much, by the triangle inequality. The rest is an assignment of traces where few are left, and a transport
# between variants where traces are many and variants are few; both are exact.
#
# Where one side has more traces than the other, the surplus stays unmatched, wherever that is cheapest.

How = Literal["optimal", "greedy"]

MOST_ASSIGNED = 110_000_000
"""Cells of the largest assignment of traces: 10,500 a side, 0.9 GB."""
MOST_TRANSPORTED = 12_000_000
"""Cells of the largest transport between variants."""
_BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class Matching:
    """Matching of released and raw variants.

    ``numbers[i]`` traces of ``released[i]`` are matched with the raw variant ``original[i]``.

    Each pair occurs at most once.
    """

    released: IntArray
    original: IntArray
    numbers: IntArray


Found = tuple[IntArray, IntArray, IntArray]
Texts = list[tuple[int, ...]]


def match(released: Variants, original: Variants, how: How, remark: Callable[[Message], None]) -> Matching:
    """Return as many pairs of traces as the smaller side has.

    They have the least total distance (optimal), or each variant, from the most frequent on, has the nearest variant
    that is left (greedy).
    """
    a, b, texts_a, texts_b = released.counts.copy(), original.counts.copy(), *_encode_both(released, original)
    pairs: list[tuple[int, int, int]] = []
    place = {text: j for j, text in enumerate(texts_b)}
    for i, text in enumerate(texts_a):
        j = place.get(text)
        if j is not None:
            number = int(min(a[i], b[j]))
            pairs.append((i, j, number))
            a[i] -= number
            b[j] -= number
    equal = np.array(pairs, dtype=np.int64).reshape(-1, 3)
    rows, columns = np.flatnonzero(a), np.flatnonzero(b)
    left_a, left_b = [texts_a[i] for i in rows.tolist()], [texts_b[j] for j in columns.tolist()]
    a, b = a[rows], b[columns]
    if not len(a) or not len(b):
        return Matching(*equal.T)
    match_rest = _greedy
    if how == "optimal" and _is_small(a, b):
        match_rest = _assign_traces
    elif how == "optimal" and len(a) * len(b) <= MOST_TRANSPORTED:
        match_rest = _transport_variants
    elif how == "optimal":
        remark(Message("pripel-matching-greedy", sum=a.sum(), number=len(a)))
    more_a, more_b, more = match_rest(left_a, left_b, a, b)
    return Matching(*np.concatenate([equal, np.column_stack([rows[more_a], columns[more_b], more])]).T)


def _encode_both(released: Variants, original: Variants) -> tuple[Texts, Texts]:
    """Return both sides as tuples of codes of one coding."""
    coding = {label: code for code, label in enumerate(original.labels)}
    recode = np.array([coding.setdefault(label, len(coding)) for label in released.labels], dtype=np.int64)
    codes = recode[released.codes].tolist() if len(released.codes) else []
    bounds = released.offsets.tolist()
    return [tuple(codes[x:y]) for x, y in itertools.pairwise(bounds)], original.sequences.code_tuples()


def _is_small(a: IntArray, b: IntArray) -> bool:
    """Return True if assigning single traces is possible and not much larger.
    The comparison is with the transport between variants."""
    cells, variants = int(a.sum()) * int(b.sum()), len(a) * len(b)
    return cells <= MOST_ASSIGNED and (cells <= 8 * variants or variants > MOST_TRANSPORTED)


def _assign_traces(left_a: Texts, left_b: Texts, a: IntArray, b: IntArray) -> Found:
    """Return the least assignment of traces.
    Crouse, "On implementing 2D rectangular assignment algorithms", 2016."""
    from scipy.optimize import linear_sum_assignment  # here: it takes a while to import

    if a.sum() > b.sum():  # the solver copies a matrix that has more rows than columns
        j, i, numbers = _assign_traces(left_b, left_a, b, a)
        return i, j, numbers
    distances = cdist(left_a, left_b, scorer=Levenshtein.distance, dtype=np.uint16, workers=-1)
    traces_a, traces_b = np.repeat(np.arange(len(a)), a), np.repeat(np.arange(len(b)), b)
    costs = np.empty((len(traces_a), len(traces_b)))
    for row, variant in enumerate(traces_a.tolist()):
        costs[row] = distances[variant][traces_b]
    rows, columns = linear_sum_assignment(costs)
    cells, numbers = np.unique(traces_a[rows] * len(b) + traces_b[columns], return_counts=True)
    return cells // len(b), cells % len(b), numbers.astype(np.int64)


def _transport_variants(left_a: Texts, left_b: Texts, a: IntArray, b: IntArray) -> Found:
    """Return the least transport between variants; a surplus goes free to a dummy."""
    import ot  # takes a second to import

    short = int(a.sum()) - int(b.sum())
    costs = np.zeros((len(a) + (short < 0), len(b) + (short > 0)))
    costs[: len(a), : len(b)] = cdist(left_a, left_b, scorer=Levenshtein.distance, dtype=np.uint16, workers=-1)
    supply = np.append(a, -short) if short < 0 else a
    demand = np.append(b, short) if short > 0 else b
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the solver's warnings are read off its record below
        flow, record = ot.emd(
            supply.astype(np.float64), demand.astype(np.float64), costs, numItermax=100_000_000, log=True
        )
    if record["warning"] is not None:
        raise SolverError("pripel-matching-not-found", record=record["warning"])
    flow = np.rint(flow[: len(a), : len(b)]).astype(np.int64)
    i, j = np.nonzero(flow)
    return i, j, flow[i, j]


def _greedy(left_a: Texts, left_b: Texts, a: IntArray, b: IntArray) -> Found:
    found: list[tuple[int, int, int]] = []
    left = b.copy()
    order = np.argsort(-a, kind="stable")
    step = max(1, _BLOCK // len(left_b))
    for start in range(0, len(order), step):
        block = order[start : start + step].tolist()
        texts = [left_a[i] for i in block]
        distances = cdist(texts, left_b, scorer=Levenshtein.distance, dtype=np.uint16, workers=-1)
        for i, near in zip(block, distances, strict=True):
            need = int(a[i])
            open_ = np.flatnonzero(left)
            if len(open_) == 0:
                break
            # Only as many of the nearest are sorted as can be needed.
            if need < len(open_):
                open_ = open_[np.argpartition(near[open_], need - 1)[:need]]
            for j in open_[np.argsort(near[open_], kind="stable")].tolist():
                number = min(need, int(left[j]))
                found.append((i, j, number))
                left[j] -= number
                need -= number
                if need == 0:
                    break
    pairs = np.array(found, dtype=np.int64).reshape(-1, 3)
    return pairs[:, 0], pairs[:, 1], pairs[:, 2]


# Local noise for single values, as PRIPEL adds it: exact, and epsilon-private for one value whose domain is public.
#
# Local differential privacy of one value: for all values x, x' of the domain and all outputs y, ``P(y | x) <=
# exp(epsilon) P(y | x')``. It bounds nothing about a case, which has many values.

_WORD = 2**32


def randomised_response(values: IntArray, size: int, epsilon: Fraction, source: Randomness) -> IntArray:
    """Return values that stay with probability ``e**eps / (e**eps + size - 1)``.

    Each of 0, ..., size-1 else becomes one of the others, all equally likely (Warner 1965; k-ary: Kairouz, Oh,
    Viswanath, "Extremal mechanisms for local differential privacy", 2014). The ratio of the two probabilities is
    exactly ``e**eps``.
    """
    if size <= 1 or len(values) == 0:
        return values.copy()
    others = quotient(exp_minus(epsilon), rational(Fraction(1, size - 1)))  # (size - 1) / e**eps
    stays = bernoulli(quotient(rational(Fraction(1)), total(rational(Fraction(1)), others)), len(values), source)
    other = _uniform(size - 1, len(values), source)
    return np.where(stays, values, other + (other >= values))


def bounded_noise(values: IntArray, largest: int, epsilon: Fraction, source: Randomness) -> IntArray:
    """Return values in 0, ..., largest with noise that stays within these bounds.

    ``P(y | x) ~ a**|x - y|`` with ``a = exp(-epsilon / (2 largest))`` (Holohan, Antonatos, Braghin, Mac Aonghusa, "The
    Bounded Laplace Mechanism in Differential Privacy", 2020). ``a**|x - y|`` changes by at most ``exp(epsilon / 2)``
    between any two x, and so does the divisor that makes the probabilities add up to 1: together ``exp(epsilon)``.
    Values are drawn from the same noise on [-largest, largest], of which at least half falls within the bounds; those
    outside are drawn again.
    """
    result = np.zeros(len(values), dtype=np.int64)
    open_ = np.arange(len(values))
    while len(open_):
        drawn = values[open_] + tsgd_noise(epsilon / (2 * largest), largest, len(open_), source)
        inside = (drawn >= 0) & (drawn <= largest)
        result[open_[inside]] = drawn[inside]
        open_ = open_[~inside]
    return result


def _uniform(size: int, n: int, source: Randomness) -> IntArray:
    """Return ``n`` numbers from 0 to size-1, exactly evenly."""
    result = np.zeros(n, dtype=np.int64)
    open_ = np.arange(n)
    limit = _WORD // size * size
    while len(open_):
        words = source.words(len(open_)).astype(np.int64)
        fair = words < limit
        result[open_[fair]] = words[fair] % size
        open_ = open_[~fair]
    return result


# PRIPEL's enrichment: the events of a released trace take times and attributes from the raw trace matched with it.
#
# The k-th occurrence of an activity takes them from its k-th occurrence in the matched trace. Where there is none,
# the attributes are those of other events of the activity, each drawn by itself, and the time is that of the event
# before plus a gap drawn from those of the pair of activities (of all pairs, for a pair that never occurs). A time
# before that of the event before is replaced in the same way.

NOBODY = -1


@dataclass(frozen=True, eq=False)
class RawTraces:
    """Raw log in arrays: activities as coded by its variants, times in whole seconds."""

    labels: tuple[str, ...]
    codes: IntArray
    owners: IntArray
    offsets: IntArray
    times: IntArray
    known: BoolArray

    @staticmethod
    def of(log: EventLog) -> RawTraces:
        labels = log.variants.labels
        activities = log.events.column(ACTIVITY).cast(pa.string())
        codes = pc.index_in(activities, pa.array(labels, pa.string())).to_numpy(zero_copy_only=False)
        column = log.events.column(TIMESTAMP).cast(pa.int64())
        known = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        times = pc.fill_null(column, 0).to_numpy().astype(np.int64) // _SECOND
        if not known.any():
            raise InputError("pripel-without-timestamps", path=log.source)
        owners = np.repeat(np.arange(log.cases.num_rows), np.diff(log.offsets))
        return RawTraces(labels, codes.astype(np.int64), owners, log.offsets, times, known)

    def codes_of(self, cases: Sequences) -> IntArray:
        """Return the codes of the events of released cases; ``NOBODY`` for unknown ones."""
        known = {label: code for code, label in enumerate(self.labels)}
        recode = np.array([known.get(label, NOBODY) for label in cases.labels] + [NOBODY], dtype=np.int64)
        return np.asarray(recode[cases.codes])

    @property
    def starts(self) -> IntArray:
        """Starts of cases: the first known time of each that has one."""
        _, first = np.unique(self.owners[self.known], return_index=True)
        return self.times[self.known][first]

    def gaps(self) -> tuple[IntArray, IntArray]:
        """Return the pairs of directly following events with known times, and their gaps.

        A pair is the first times the number of labels plus the second; a gap below 0 counts as 0.
        """
        follows = self.known[1:] & self.known[:-1] & (self.owners[1:] == self.owners[:-1])
        pairs = self.codes[:-1] * len(self.labels) + self.codes[1:]
        return pairs[follows], np.maximum(self.times[1:] - self.times[:-1], 0)[follows]


@dataclass(frozen=True, eq=False)
class Resolved:
    """Sources of each released event's attributes, and times without noise."""

    donor_events: IntArray
    """A row of the raw events, or -1."""
    starts: IntArray
    """Time of the first event of each case, in seconds; 0 for a case without events."""
    gaps: IntArray
    """Seconds from the event before to each event; 0 for the first of a case."""


def cases_of_matching(
    matching: Matching, released: Variants, original: Variants, raw: RawTraces, rng: np.random.Generator
) -> IntArray:
    """Return the raw case of each released case, or -1, dealt at random in a variant.

    The cases come variant by variant.
    """
    place = {text: i for i, text in enumerate(original.sequences.code_tuples())}
    cases = Sequences(raw.labels, raw.codes.astype(np.int32), raw.offsets)
    variant = np.array([place[text] for text in cases.code_tuples()], dtype=np.int64)
    shuffled = rng.permutation(len(variant))
    by_variant = shuffled[np.argsort(variant[shuffled], kind="stable")]
    first = np.concatenate([[0], np.cumsum(original.counts)])[:-1]
    taken = np.concatenate([[0], np.cumsum(released.counts)])[:-1]
    donors = np.full(released.cases, NOBODY, dtype=np.int64)
    for i, j, number in zip(
        matching.released.tolist(), matching.original.tolist(), matching.numbers.tolist(), strict=True
    ):
        donors[taken[i] : taken[i] + number] = by_variant[first[j] : first[j] + number]
        taken[i] += number
        first[j] += number
    return donors


def resolve(cases: Sequences, donors: IntArray, raw: RawTraces, rng: np.random.Generator) -> Resolved:
    """Return the released events' times, and the rows of their attributes."""
    codes = raw.codes_of(cases)
    rows = _same_occurrence(cases, codes, donors, raw)
    starts, gaps = _times(cases, codes, rows, raw, rng)
    return Resolved(rows, starts, gaps)


def _same_occurrence(cases: Sequences, codes: IntArray, donors: IntArray, raw: RawTraces) -> IntArray:
    width = len(raw.labels) + 1
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    occurrence = equal_before(owners * width + codes + 1)
    raw_keys = raw.owners * width + raw.codes + 1
    order = np.argsort(raw_keys, kind="stable")
    ordered = raw_keys[order]
    possible = (donors[owners] != NOBODY) & (codes != NOBODY)
    wanted = np.where(possible, donors[owners] * width + codes + 1, -1)
    place = np.searchsorted(ordered, wanted) + occurrence
    within = np.minimum(place, max(len(ordered) - 1, 0))
    found = possible & (place < len(ordered)) & (ordered[within] == wanted)
    return np.where(found, order[within], NOBODY)


def _times(
    cases: Sequences, codes: IntArray, rows: IntArray, raw: RawTraces, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    has_time = (rows != NOBODY) & raw.known[rows]
    time = np.where(has_time, raw.times[rows], 0)
    draw = _gap_drawer(raw, rng)
    going = np.flatnonzero(cases.lengths > 0)
    starts, gaps = np.zeros(len(cases), dtype=np.int64), np.zeros(len(codes), dtype=np.int64)
    first = cases.offsets[going]
    starts[going] = np.where(has_time[first], time[first], rng.choice(raw.starts, len(going)))
    now = starts.copy()
    for position in range(1, int(cases.lengths.max(initial=0))):
        going = going[cases.lengths[going] > position]
        here = cases.offsets[going] + position
        copied = has_time[here] & (time[here] >= now[going])
        gap = np.where(copied, time[here] - now[going], draw(codes[here - 1], codes[here]))
        gaps[here] = gap
        now[going] += gap
    return starts, gaps


def _gap_drawer(raw: RawTraces, rng: np.random.Generator) -> Callable[[IntArray, IntArray], IntArray]:
    """Return a function that draws gaps of a pair of activities, or else of all."""
    pairs, gaps = raw.gaps()
    order = np.argsort(pairs, kind="stable")
    pairs, gaps = pairs[order], gaps[order]
    width = len(raw.labels)

    def draw(before: IntArray, after: IntArray) -> IntArray:
        if len(gaps) == 0:
            return np.zeros(len(before), dtype=np.int64)
        pair = np.where((before == NOBODY) | (after == NOBODY), -1, before * width + after)
        low, high = np.searchsorted(pairs, pair, side="left"), np.searchsorted(pairs, pair, side="right")
        none = low == high
        low, high = np.where(none, 0, low), np.where(none, len(gaps), high)
        drawn: IntArray = gaps[low + (rng.random(len(low)) * (high - low)).astype(np.int64)]
        return drawn

    return draw


# A column of attribute values with local noise on each, by the type of the column.

TELLS_APART = 0.5
"""Share of distinct values above which a text attribute is no category."""
_STEPS = 2**20
_MOST_STEPS = 2**31


def refusal(name: str, column: pa.ChunkedArray) -> Message | None:
    """Return the reason why an attribute cannot get noise; None where it can."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return None
    if pa.types.is_timestamp(kind):
        return None
    if not (pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return Message("pripel-attribute-type-unsuited", name=name)
    values = len(column) - column.null_count
    distinct = pc.count_distinct(column.cast(pa.string())).as_py()
    if distinct > max(1, TELLS_APART * values):
        return Message("pripel-attribute-too-distinct", name=name, distinct=distinct, values=values)
    return None


def noised_column(column: pa.ChunkedArray, rows: IntArray, epsilon: Fraction, source: Randomness) -> pa.Array:
    """Return the values of these rows (-1: none), each with noise for epsilon.

    A missing value stays missing. True or false and categories get randomised response over the values that occur.
    Numbers and times get bounded noise between the smallest and the largest value that occur: whole numbers in steps of
    1, times in steps of a second, others in 2**20 steps. A column whose values are all equal gets noise over one unit.
    """
    picked = column.take(pa.array(rows, pa.int64(), mask=rows < 0))
    kind = column.type
    if pa.types.is_boolean(kind):
        return _categories(picked.cast(pa.string()), pa.array(["false", "true"]), epsilon, source).cast(pa.bool_())
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = pc.unique(column.cast(pa.string()).drop_null()).sort()
        coded = _categories(picked.cast(pa.string()), values, epsilon, source)
        return coded.dictionary_encode() if pa.types.is_dictionary(kind) else coded
    if pa.types.is_timestamp(kind):
        unit = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        times = _numbers(picked.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()))
        return _fill_values(_noised_whole(times, unit, _SECOND, epsilon, source), picked).cast(kind)
    if pa.types.is_integer(kind):
        return _fill_values(_noised_whole(_numbers(picked), column, 1, epsilon, source), picked).cast(kind)
    return _fill_values(_noised_numbers(picked, column, epsilon, source), picked).cast(kind)


def _categories(picked: pa.ChunkedArray, values: pa.Array, epsilon: Fraction, source: Randomness) -> pa.Array:
    codes = pc.index_in(picked, values).combine_chunks()
    known = np.asarray(codes.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    result = np.zeros(len(codes), dtype=np.int64)
    given = codes.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
    result[known] = randomised_response(given, len(values), epsilon, source)
    return values.take(pa.array(result, pa.int64(), mask=~known))


def _numbers(picked: pa.ChunkedArray) -> IntArray:
    return np.asarray(pc.fill_null(picked.cast(pa.int64()), 0).to_numpy(), dtype=np.int64)


def _noised_whole(
    values: IntArray, column: pa.ChunkedArray, unit: int, epsilon: Fraction, source: Randomness
) -> IntArray:
    """Return noisy values between the least and the largest of the column.
    They are in steps of a unit; of more units, if there would be more than 2**31 steps."""
    bounds = pc.min_max(column.cast(pa.int64())).as_py()
    low, high = (bounds["min"] or 0) // unit, (bounds["max"] or 0) // unit
    step = -(-(high - low) // _MOST_STEPS) or 1
    whole = np.clip(values // unit, low, high)
    wide = high - low >= 2**62 or max(abs(low), abs(high)) >= 2**62  # else nothing overflows
    places = (whole.astype(object) - low) // step if wide else (whole - low) // step
    noised = bounded_noise(places.astype(np.int64), max((high - low) // step, 1), epsilon, source)
    if wide:
        return np.asarray([min(low + place * step, 2**63 - 1) for place in noised.tolist()], dtype=np.int64)
    return np.asarray((low + noised * step) * unit, dtype=np.int64)


def _noised_numbers(
    picked: pa.ChunkedArray, column: pa.ChunkedArray, epsilon: Fraction, source: Randomness
) -> FloatArray:
    everything = column.cast(pa.float64()).to_numpy()
    everything = everything[np.isfinite(everything)]
    if len(everything) == 0:
        return np.zeros(len(picked))
    low, high = float(everything.min()), float(everything.max())
    step = high / _STEPS - low / _STEPS
    if step < 1e-300:  # all values equal
        high = low + max(abs(low), 1.0) if abs(low) < 1e300 else low / 2
        step = high / _STEPS - low / _STEPS
    values = picked.cast(pa.float64()).to_numpy()
    finite = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    places = np.rint((finite / 2 - low / 2) / (step / 2)).astype(np.int64)
    part = bounded_noise(np.clip(places, 0, _STEPS), _STEPS, epsilon, source) / _STEPS
    return np.asarray(low * (1 - part) + high * part, dtype=np.float64)


def _fill_values(values: IntArray | FloatArray, picked: pa.ChunkedArray) -> pa.Array:
    missing = np.asarray(picked.is_null(nan_is_null=True).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return pa.array(values, mask=missing)

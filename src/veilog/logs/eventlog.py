"""Events and cases of a log as two Arrow tables, with variants and statistics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import IntArray
from veilog.errors import InputError, MissingExtraError, ParameterError, meant
from veilog.logs.findings import Finding
from veilog.logs.metadata import ARTIFICIAL_TIMES, Metadata
from veilog.logs.variants import Variants
from veilog.messages import Message

if TYPE_CHECKING:
    import pandas as pd

CASE = "case:concept:name"
ACTIVITY = "concept:name"
TIMESTAMP = "time:timestamp"
LIFECYCLE = "lifecycle:transition"
START = "start_timestamp"
"""pm4py's name of the attribute with an event's start; the timestamp is its end."""
CASE_INDEX = "case:index"
EVENT_INDEX = "event:index"
NESTED = "xes:nested"

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = 3_600_000_000
TIMESTAMP_TYPE = pa.timestamp("us", tz="UTC")
LABEL_TYPE = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Statistics:
    """Statistics of raw data, as ``veilog info`` shows them: never part of a release."""

    cases: int
    events: int
    activities: int
    variants: int
    uniqueness: float
    """Variants per case, the papers' trace uniqueness."""
    length_min: int
    length_median: float
    length_mean: float
    length_max: int
    start: str | None
    end: str | None

    @staticmethod
    def of(variants: Variants, start: int | None, end: int | None) -> Statistics:
        """Return the statistics of a log; times are in microseconds since 1970."""
        cases, lengths, counts = variants.cases, variants.lengths, variants.counts
        return Statistics(
            cases=cases,
            events=variants.events,
            activities=len(variants.labels),
            variants=len(variants),
            uniqueness=len(variants) / cases if cases else 0.0,
            length_min=int(lengths.min()) if cases else 0,
            length_median=_median(lengths, counts) if cases else 0.0,
            length_mean=variants.events / cases if cases else 0.0,
            length_max=int(lengths.max()) if cases else 0,
            start=_isoformat(start),
            end=_isoformat(end),
        )

    def to_json(self) -> dict[str, object]:
        """Return the numbers as plain values, those of the length together."""
        return {
            "cases": self.cases,
            "events": self.events,
            "activities": self.activities,
            "variants": self.variants,
            "uniqueness": self.uniqueness,
            "length": {
                "min": self.length_min,
                "median": self.length_median,
                "mean": self.length_mean,
                "max": self.length_max,
            },
            "start": self.start,
            "end": self.end,
        }


@dataclass(frozen=True, eq=False)
class EventLog:
    """An event log: an Arrow table of events, one of cases, and the file's metadata.

    ``events`` holds ``case:index`` (row of the case in ``cases``), ``event:index`` (position in the log: the explicit
    order of events), ``concept:name`` (dictionary of activities), ``time:timestamp`` (microseconds in UTC, null where
    unknown) and one column for each further attribute. Its rows are grouped by case and in event order.

    ``cases`` holds ``concept:name`` (the case's name) and one column for each case attribute. It has a row for each
    case, also for those without events. A field's metadata holds ``xes:key`` and ``xes:type`` where they do not follow
    from the column's name or Arrow type. The optional column ``xes:nested`` holds, as JSON, what does not fit a column:
    lists, containers and attributes of attributes.
    """

    events: pa.Table
    cases: pa.Table
    metadata: Metadata = field(default_factory=Metadata)
    findings: tuple[Finding, ...] = ()
    source: str | None = None
    read_together: tuple[Message, ...] = ()
    """Rules that read all cases at once, so that one case can change how another one is read; with remedies."""
    attributes_read_together: tuple[Message, ...] = ()
    """Those of these rules that matter only where attributes are used: activities, times and order stay the same."""
    read_as: str = ""
    """Columns and choices that gave its cases events and times; empty if unknown."""
    mapped: tuple[Message, ...] = ()
    """Public lists that grouped the activities when the log was read."""

    def __post_init__(self) -> None:
        for name in (CASE_INDEX, EVENT_INDEX, ACTIVITY, TIMESTAMP):
            if name not in self.events.column_names:
                raise InputError("events-column-missing", name=name)
        if ACTIVITY not in self.cases.column_names:
            raise InputError("cases-column-missing")

    def __len__(self) -> int:
        """Return the number of events."""
        return int(self.events.num_rows)

    def __repr__(self) -> str:
        return f"EventLog({self.cases.num_rows} cases, {len(self)} events)"

    def _repr_html_(self) -> str:
        from veilog._notebook import bar, card, facts, table

        s, variants = self.statistics, self.variants
        rows: list[tuple[str, object]] = [
            ("cases", s.cases),
            ("events", s.events),
            ("activities", s.activities),
            ("variants", s.variants),
            ("events per case", f"{s.length_min} to {s.length_max}, median {s.length_median:g}"),
        ]
        rows += [] if s.start is None else [("from", s.start), ("to", s.end)]
        frequent = [
            (int(variants.counts[i]), bar(int(variants.counts[i]) / s.cases), " > ".join(variants.sequences[i]))
            for i in variants.by_frequency()[:5].tolist()
        ]
        shown = [table(("cases", "", "most frequent variants"), frequent, numbers=(0,))] if frequent else []
        return card("Event log", facts(rows), *shown)

    @property
    def number_of_cases(self) -> int:
        return int(self.cases.num_rows)

    def head(self, events: int = 10) -> pd.DataFrame:
        """Return the first events as a DataFrame with pm4py's columns.

        >>> from veilog.logs.synthetic.hospital import hospital
        >>> hospital(20, seed=1).head(2)["concept:name"].tolist()
        ['Registration', 'Triage']
        """
        if isinstance(events, bool) or not isinstance(events, int | np.integer):
            raise ParameterError("events-number-not-whole", parameter="events", events=events)
        rows = self.events.slice(0, max(0, int(events)))
        return replace(self, events=rows).to_pandas()

    @property
    def shape(self) -> EventLog:
        """Return the log without its rows: names and types of its columns, and its origin."""
        return replace(self, events=self.events.slice(0, 0), cases=self.cases.slice(0, 0), findings=())

    def pieces(self, attributes: Collection[str] | None = None) -> Iterator[EventLog]:
        """Yield the log in pieces of whole cases; this log is a single piece."""
        yield self

    def each(self, work: Callable[[EventLog, bool], T], attributes: Collection[str] | None = None) -> Iterator[T]:
        """Yield the results of ``work`` for each piece; True marks the first piece."""
        yield work(self, True)

    @property
    def case_labels(self) -> pa.ChunkedArray:
        """Return the names of the cases for display.

        A case without a name gets its position, in a form that no other case has as its name.
        """
        names = self.cases.column(ACTIVITY)
        if not names.null_count:
            return names
        places, sign = pa.array(np.arange(1, len(names) + 1)).cast(pa.string()), "#"
        known = names.cast(pa.string())
        while pc.any(pc.is_in(known, pc.binary_join_element_wise(sign, places, ""))).as_py():
            sign += "#"
        return pc.coalesce(known, pc.binary_join_element_wise(sign, places, "")).cast(names.type)

    @cached_property
    def offsets(self) -> IntArray:
        """Return the bounds: case ``i`` has the rows ``offsets[i]`` up to the next offset."""
        index = self.events.column(CASE_INDEX).to_numpy()
        sizes = np.bincount(index, minlength=self.cases.num_rows)
        offsets = np.zeros(self.cases.num_rows + 1, dtype=np.int64)
        np.cumsum(sizes, out=offsets[1:])
        return offsets

    @cached_property
    def variants(self) -> Variants:
        """Return the variants by activity name; a case without events is an empty one."""
        return self.variants_by((ACTIVITY,))

    def variants_by(self, keys: tuple[str, ...]) -> Variants:
        """Return the variants by a classifier: these attributes, joined by ``+`` (XES)."""
        for key in keys:
            if key not in self.events.column_names:
                known = [c for c in self.events.column_names if ":index" not in c]
                raise ParameterError(
                    "log-event-attribute-missing",
                    parameter="classifier",
                    key=key,
                    meant=meant(key, known),
                    names=", ".join(known),
                )
        if keys == (ACTIVITY,):
            labels, codes = self.activity_codes
        else:
            parts = [pc.fill_null(self.events.column(key).cast(pa.string()), "") for key in keys]
            labels, codes = _encode_column(pc.binary_join_element_wise(*parts, "+"))
        found = Variants.from_arrays(labels, codes, self.offsets)
        return replace(found, read_together=self.read_together, mapped=self.mapped, read_as=self.read_as)

    @property
    def activity_codes(self) -> tuple[list[str], IntArray]:
        """Return the activities' names, and the place of every event's activity in them."""
        return _encode_column(self.events.column(ACTIVITY))

    @cached_property
    def statistics(self) -> Statistics:
        return Statistics.of(self.variants, *self.span)

    @property
    def span(self) -> tuple[int | None, int | None]:
        """Return the first and last timestamp in microseconds since 1970, or None."""
        times = pc.min_max(self.events.column(TIMESTAMP).cast(pa.int64())).as_py()
        return times["min"], times["max"]

    @cached_property
    def artificial_times(self) -> bool:
        """True if the timestamps carry the order of events and nothing else.

        Either an attribute of the log states it, or the times have the form in which releases are written. A table has
        no place for the attribute: there every case begins with 1970, and its events are an hour apart.
        """
        if any(a.key == ARTIFICIAL_TIMES and a.value is True for a in self.metadata.attributes):
            return True
        column = self.events.column(TIMESTAMP)
        # The first one settles it for other logs.
        if not len(column) or column.null_count or column[0].cast(pa.int64()).as_py() != 0:
            return False
        places = np.arange(len(column)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return bool(np.array_equal(column.cast(pa.int64()).to_numpy(), places * _HOUR))

    def only(self, cases: IntArray) -> EventLog:
        """Return these cases (rows of ``cases``, each at most once), in the given order."""
        lengths = np.diff(self.offsets)[cases]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(starts[-1]) + np.repeat(self.offsets[:-1][cases] - starts[:-1], lengths)
        owner = pa.array(np.repeat(np.arange(len(cases)), lengths))
        events = self.events.take(pa.array(rows))
        events = events.set_column(events.column_names.index(CASE_INDEX), CASE_INDEX, owner)
        return replace(self, events=events, cases=self.cases.take(pa.array(cases)))

    def to_arrow(self, *, keyed: bool = True) -> pa.Table:
        """Return one flat table in pm4py's columns, with ``case:...`` on every event.

        The rows are in event order. A case without events has no row in a flat table; callers who must keep it use
        ``cases``. An event attribute whose name looks like one of cases gets the prefix ``event:``, because the name
        alone identifies the level. With ``keyed`` false, columns lose their metadata, and each attribute is one column.
        """
        events, cases = self.events, self.cases
        if not keyed:
            events, cases = _each_key_once(events), _each_key_once(cases)
        index = events.column(CASE_INDEX)
        fields = [cases.schema.field(ACTIVITY).with_name(CASE)]
        columns: list[Any] = [self.case_labels.take(index)]
        taken = set(events.column_names)
        for field_ in events.schema:
            if field_.name not in (CASE_INDEX, EVENT_INDEX):
                name = field_.name
                while name.startswith("case:") or (name != field_.name and name in taken):
                    name = f"event:{name}"
                fields.append(field_.with_name(name))
                columns.append(events.column(field_.name))
        for field_ in cases.schema:
            if field_.name != ACTIVITY:
                fields.append(field_.with_name(f"case:{field_.name}"))
                columns.append(cases.column(field_.name).take(index))
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame that pm4py takes as it is."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("to_pandas()", extra="pandas") from error
        table = self.to_arrow(keyed=False)
        plain = [
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for column in table.columns
        ]
        return pa.table(plain, names=table.column_names).to_pandas()


def as_array(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return a column in one piece, with one dictionary if it has dictionaries."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return (column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column).combine_chunks()


def as_dictionary(column: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column as places in one list of its values."""
    return as_array(column if pa.types.is_dictionary(column.type) else column.dictionary_encode())


def codes_of(column: pa.Array | pa.ChunkedArray) -> IntArray:
    """Return a number for each value of a column, equal for equal values, -1 for none."""
    places = pc.fill_null(as_dictionary(column).indices, -1)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)


def encode_texts(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column's values as places in a list that has each text once.

    A row without a value has no place. A dictionary of Arrow may hold a text twice, or hold nothing in one of its
    places. Codes identify values only where neither holds, and one case may decide that.
    """
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    chunks = [_each_once(chunk) for chunk in column.chunks]
    if len(chunks) == 1:
        return chunks[0]
    return as_dictionary(pa.chunked_array(chunks, pa.dictionary(column.type.index_type, pa.string())))


def _each_key_once(table: pa.Table) -> pa.Table:
    """Return the table with one column for each attribute, named by its key.

    Values of several types become text. Readers give values of each type a column with the key in its metadata, and the
    first type takes the key as its name. Without metadata, one case could change which values of all others have that
    name.
    """
    found: dict[str, list[pa.Field]] = {}
    for field_ in table.schema:
        name = field_.name
        key = (field_.metadata or {}).get(b"xes:key", name.encode()).decode()
        # The meaning of these names does not follow from what comes first. Other keys are XES spellings of a name.
        own = {name, key} & {ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX, NESTED, LIFECYCLE, START}
        found.setdefault(name if own or not name.startswith(f"{key} (") else key, []).append(field_)
    fields, columns = [], []
    for key, typed in found.items():
        several = [table.column(field_.name) for field_ in typed]
        if len(typed) == 1:
            fields.append(typed[0].with_name(key))
            columns += several
        else:
            fields.append(pa.field(key, pa.string()))
            columns.append(pc.coalesce(*(column.cast(pa.string()) for column in several)))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _each_once(encoded: pa.DictionaryArray) -> pa.DictionaryArray:
    values, places = encoded.dictionary.cast(pa.string()), encoded.indices
    once = values.dictionary_encode()
    if values.null_count or len(once.dictionary) < len(values):
        values, places = once.dictionary, once.indices.take(places).cast(places.type)
    return pa.DictionaryArray.from_arrays(places, values)


def _encode_column(column: pa.ChunkedArray) -> tuple[list[str], IntArray]:
    found = encode_texts(column)
    return found.dictionary.to_pylist(), found.indices.to_numpy(zero_copy_only=False)


def _median(values: IntArray, counts: IntArray) -> float:
    """Return the median of values with these frequencies."""
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(counts[order])
    middle = [(int(up_to[-1]) - 1) // 2, int(up_to[-1]) // 2]
    return float(values[order][np.searchsorted(up_to, middle, side="right")].mean())


def _isoformat(micros: int | None) -> str | None:
    return None if micros is None else (_EPOCH + timedelta(microseconds=micros)).isoformat()

"""Event log from released variants: contents, their budget, and assembly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from veilog._typing import Int32Array, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, START, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.metadata import ARTIFICIAL_TIMES, Metadata
from veilog.logs.variants import Repeated, Sequences, Variants
from veilog.methods._events.attributes.synthesis import ReleasedColumns
from veilog.privacy.account.budgets import Number, parse_share
from veilog.privacy.domain import Window, pair_of_times

DEFAULT_ATTRIBUTES_SHARE = Fraction(1, 4)
OF_STARTS = Fraction(3, 10)
_HOUR = 3_600_000_000
_PIECE = 50_000
"""Cases of a release that are written at once."""


@dataclass(frozen=True)
class Wanted:
    """Contents of a release beyond variants, with exact shares of epsilon."""

    times: Fraction = Fraction(0)
    attributes: tuple[str, ...] = ()
    attributes_share: Fraction = Fraction(0)
    window: Window | Literal["log"] | None = None
    """Time in which cases start: declared, taken from the log (an assumption), or a synthetic year."""
    processing: bool = False
    """True if starts of events are released, too; they use epsilon of the times."""
    persons: Fraction = Fraction(0)
    person_attributes: tuple[str, ...] = ()
    """Attributes of cases, released too, that stay the same in all cases of a person."""

    @staticmethod
    def of(
        times: Number | None,
        attributes: Iterable[str] | None,
        attributes_share: Number | None,
        window: Window | str | None,
        processing: bool = False,
        persons: Number | None = None,
        person_attributes: Iterable[str] | None = None,
    ) -> Wanted:
        """Return the user's request in exact numbers, or raise an error about it."""
        names = _names(attributes)
        if attributes is not None and not names:
            raise ParameterError("attributes-list-empty", parameter="attributes")
        share_of_times = Fraction(0) if times is None else parse_share(times, "times")
        if attributes_share is not None and not names:
            raise ParameterError("attributes-share-without-attributes", parameter="attributes_share")
        if names:
            given = DEFAULT_ATTRIBUTES_SHARE if attributes_share is None else attributes_share
            share = parse_share(given, "attributes_share")
        else:
            share = Fraction(0)
        share_of_persons = Fraction(0) if persons is None else parse_share(persons, "persons")
        if share_of_times + share + share_of_persons >= 1:
            raise ParameterError(
                "shares-leave-nothing",
                parameter="times",
                share_of_times=float(share_of_times),
                share=float(share),
                share_of_persons=float(share_of_persons),
            )
        constant = _names(person_attributes)
        _check_constant(constant, names, share_of_persons)
        if window is not None and times is None:
            raise ParameterError("window-without-times-share", parameter="window")
        _check_processing(processing, names, share_of_times)
        checked: Window | Literal["log"] | None = None
        if isinstance(window, str) and window == "log":
            checked = "log"
        elif window is not None:
            checked = pair_of_times(window)
        return Wanted(share_of_times, names, share, checked, processing, share_of_persons, constant)

    @property
    def of_starts(self) -> Fraction:
        """Part of the budget for times that is for the starts of events."""
        return OF_STARTS if self.processing else Fraction(0)

    def __bool__(self) -> bool:
        return bool(self.times or self.attributes or self.persons)

    @property
    def of_flow(self) -> Fraction:
        """Part of epsilon that is left for the control flow."""
        return 1 - self.times - self.attributes_share - self.persons


def _names(attributes: Iterable[str] | None) -> tuple[str, ...]:
    if attributes is None or isinstance(attributes, str):
        return () if attributes is None else (attributes,)
    names: tuple[Any, ...] = tuple(attributes) if isinstance(attributes, Iterable) else (attributes,)
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("attributes-not-text", parameter="attributes", attributes=attributes)
    return names


def _check_constant(constant: tuple[str, ...], attributes: tuple[str, ...], persons: Fraction) -> None:
    """Refuse attributes of persons without persons, and those that are not released."""
    if constant and not persons:
        raise ParameterError("person-attributes-without-persons", parameter="person_attributes")
    bare = {name.removeprefix("case:") for name in attributes}
    for name in constant:
        if name.removeprefix("case:") not in bare:
            raise ParameterError("person-attribute-not-released", parameter="person_attributes", name=name)


def _check_processing(processing: bool, attributes: tuple[str, ...], times: Fraction) -> None:
    if not processing:
        return
    if not times:
        raise ParameterError("event-starts-without-times", parameter="processing")
    if START in attributes:
        raise ParameterError("event-start-asked-twice", parameter="processing", start=START)


@dataclass(frozen=True, eq=False)
class Details:
    """Released cases in random order, with times and attributes where requested.

    Times are microseconds since 1970 UTC.
    """

    cases: Sequences | Repeated
    times: IntArray | None = None
    columns: ReleasedColumns = field(default_factory=lambda: ReleasedColumns({}, {}))


def shuffled(variants: Variants, rng: np.random.Generator) -> Int32Array:
    """Return each case's variant number, in an order that reveals nothing of the log."""
    owner = np.repeat(np.arange(len(variants), dtype=np.int32), variants.counts)
    return owner[rng.permutation(len(owner))]


def released_cases(variants: Variants, rng: np.random.Generator) -> Repeated:
    """Return every case of the variants, in an order that reveals nothing of the log."""
    return Repeated(variants.sequences, shuffled(variants, rng))


def pieces_of(variants: Variants, owner: npt.NDArray[np.integer], details: Details | None) -> Iterator[Details]:
    """Yield the released cases in pieces, of ``details`` or of variants in ``owner``."""
    cases = len(owner) if details is None else len(details.cases)
    for start in range(0, cases, _PIECE):
        stop = min(start + _PIECE, cases)
        if details is None:
            yield Details(variants.sequences.take(owner[start:stop]))
            continue
        first, last = details.cases.offsets[[start, stop]].tolist()
        yield Details(
            details.cases.rows(start, stop),
            None if details.times is None else details.times[first:last],
            ReleasedColumns(
                events={name: column[first:last] for name, column in details.columns.events.items()},
                cases={name: column[start:stop] for name, column in details.columns.cases.items()},
            ),
        )


def eventless(variants: Variants, owner: npt.NDArray[np.integer], details: Details | None) -> pa.Table:
    """Return the released cases without events: names, attributes, and places."""
    if details is None:
        empty, columns = np.flatnonzero(variants.lengths[owner] == 0), {}
    else:
        empty, columns = np.flatnonzero(details.cases.lengths == 0), details.columns.cases
    rows = pa.array(empty, pa.int64())
    names = pa.array(empty + 1).cast(pa.string())
    return pa.table({ACTIVITY: names, **{k: column.take(rows) for k, column in columns.items()}, CASE_INDEX: rows})


def assemble_log(details: Details, metadata: Metadata, *, before: int = 0) -> EventLog:
    """Return the release as an event log with fresh case names.

    Without times its events are an hour apart from 1970 on. Where it is a piece of a larger release, its names go on
    from so many cases ``before`` it.
    """
    cases = details.cases if isinstance(details.cases, Sequences) else details.cases.rows(0, len(details.cases))
    owner = np.repeat(np.arange(len(cases)), cases.lengths)
    times = details.times
    if times is None:
        times = (np.arange(len(cases.codes)) - cases.offsets[owner]) * _HOUR
    labels = pa.array(cases.labels, pa.string())
    events = pa.table(
        {
            CASE_INDEX: owner,
            EVENT_INDEX: np.arange(len(cases.codes)),
            ACTIVITY: pa.DictionaryArray.from_arrays(pa.array(cases.codes, pa.int32()), labels),
            TIMESTAMP: pa.array(times, pa.int64()).cast(TIMESTAMP_TYPE),
            **details.columns.events,
        }
    )
    names = pa.array(np.arange(before + 1, before + len(cases) + 1)).cast(pa.string())
    return EventLog(events, pa.table({ACTIVITY: names, **details.columns.cases}), metadata)


def anonymous(log: EventLog, rng: np.random.Generator) -> EventLog:
    """Return the log with its cases in random order and under fresh names.

    Neither reveals anything about the original's.
    """
    number = log.cases.num_rows
    shuffled = log.only(rng.permutation(number))
    events = shuffled.events
    place = events.column_names.index(EVENT_INDEX)
    events = events.set_column(place, EVENT_INDEX, pa.array(np.arange(len(log))))
    names = pa.array(np.arange(1, number + 1)).cast(pa.string())
    cases = shuffled.cases
    kept = Metadata(attributes=tuple(a for a in log.metadata.attributes if a.key == ARTIFICIAL_TIMES))
    return EventLog(events, cases.set_column(cases.column_names.index(ACTIVITY), ACTIVITY, names), kept)

"""Persons of cases, by an attribute, for each case by itself.

Readers give a column the type that all of its values have. So ``1.10`` is a number in one log and a text in a log with
one case more. Two cases are of one person if their values are equal in words that depend on the value alone. Such words
exist for numbers, as floats, however they are spelled; for times, in UTC; for truth values; and for other texts letter
by letter. Where a case has the attribute in several places, a fixed order decides: its own before those of its events,
and ``NAME`` before ``case:NAME``. So the comparison of two cases never depends on a third.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, EventLog, as_dictionary
from veilog.messages import Message

_PREFIX = "case:"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_PERSON = (ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX)
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})|-?(0|[1-9][0-9]*)(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-][0-9]+)|-?inf")
"""Text that is a number in a column of numbers."""
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
WORDS = {"": None, "nan": None, "True": "true", "False": "false"}
"""Other texts that a column of a type holds differently."""


def columns_of_persons(shape: EventLog, column: str, option: Literal["unit", "person"] = "unit") -> tuple[str, ...]:
    """Return the columns of a log that hold this attribute, or refuse the option.

    Raises:
        ParameterError: The log has no such column; the error names ``option``.

    """
    found = [field.name for table in (shape.cases, shape.events) for field in _fields(table, column)]
    if not found:
        known = [f"{_PREFIX}{attribute_key(field)}" for field in shape.cases.schema if field.name != ACTIVITY]
        known += [attribute_key(field) for field in shape.events.schema if field.name not in _NO_PERSON]
        known = list(dict.fromkeys(known))
        words = ["case", "person"] if option == "unit" else []
        other = "case, person or " if words else ""
        raise ParameterError(
            "person-attribute-missing",
            parameter=option,
            name=column,
            meant=meant(column, [*words, *known]),
            option=option,
            other=other,
            names=", ".join(known) or Message("names-none"),
        )
    return tuple(dict.fromkeys(found))


class Owners(NamedTuple):
    """Persons of the cases, each known by its case alone."""

    named: pa.Array
    """Person of each case in words; null where none is named, or no single one."""
    several: npt.NDArray[np.bool_]
    """True for cases that name several persons, or one on some of their events only."""


def owners(log: EventLog, column: str) -> Owners:
    """Return the person of each case, by its own attribute or one on all its events."""
    several = np.zeros(log.cases.num_rows, dtype=np.bool_)
    of_cases = _first_known([_value_texts(log.cases.column(f.name)) for f in _fields(log.cases, column)])
    of_events = _first_known([_value_texts(log.events.column(f.name)) for f in _fields(log.events, column)])
    if of_events is not None:
        said, alike = _first_person(log, of_events)
        several = ~alike
        if of_cases is not None:
            several &= pc.is_null(of_cases).to_numpy(zero_copy_only=False)
        said = pc.if_else(pa.array(alike), said, pa.scalar(None, pa.string()))
        of_cases = said if of_cases is None else pc.coalesce(of_cases, said)
    return Owners(pa.nulls(log.cases.num_rows, pa.string()) if of_cases is None else of_cases, several)


def _fields(table: pa.Table, column: str) -> list[pa.Field]:
    """Return the columns of this attribute, ``NAME`` before ``case:NAME``.

    They include those of its values of other types. The order of columns, and a column's name among others, may follow
    from other cases. Its attribute does not, and a case has one value of that.
    """
    name = column.removeprefix(_PREFIX)
    fields = [field for field in table.schema if field.name not in _NO_PERSON]
    return [field for called in (name, _PREFIX + name) for field in fields if attribute_key(field) == called]


def attribute_key(field: pa.Field) -> str:
    """Return the name of the attribute, whatever its column had to be called."""
    return str((field.metadata or {}).get(b"xes:key", field.name.encode()).decode())


def _first_known(columns: list[pa.Array]) -> pa.Array | None:
    return pc.coalesce(*columns) if columns else None


def _value_texts(column: pa.ChunkedArray) -> pa.Array:
    """Return the values in words, each by itself; equal values have equal words."""
    encoded = as_dictionary(column)
    values = encoded.dictionary
    if pa.types.is_timestamp(values.type):
        words = [_time_text(micros) for micros in values.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()]
    else:
        words = _words(values.to_pylist())
    return pa.array(words, pa.string()).take(encoded.indices)


def _words(values: list[Any]) -> list[str | None]:
    words: list[str | None] = []
    for value in values:
        if value is None or isinstance(value, bool):
            words.append(None if value is None else str(value).lower())
        elif isinstance(value, int | float):
            words.append(_number(value))
        else:
            words.append(_normalise_text(str(value)))
    return words


def _normalise_text(text: str) -> str | None:
    if NUMBER.fullmatch(text):
        return _number(float(text))
    if _TIME.fullmatch(text):
        with contextlib.suppress(ValueError):  # no such day, or no such offset: a text like others
            time = datetime.fromisoformat(text)
            since = (time if time.tzinfo is not None else time.replace(tzinfo=UTC)) - _EPOCH
            return _time_text((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
    return WORDS.get(text, text)


def _number(value: float) -> str | None:
    return None if value != value else repr(float(value) + 0.0)  # there is one zero


def _time_text(micros: int | None) -> str | None:
    return None if micros is None else f"{micros} us"


def _first_person(log: EventLog, words: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the word of each case's first event, and True if all its events agree."""
    lengths = np.diff(log.offsets)
    first = pa.array(np.where(lengths == 0, 0, log.offsets[:-1]), mask=lengths == 0)
    of_case = words.take(first)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    repeated = of_case.take(pa.array(owner))
    both_missing = pc.and_(pc.is_null(words), pc.is_null(repeated))
    same = pc.or_(pc.fill_null(pc.equal(words, repeated), False), both_missing).to_numpy(zero_copy_only=False)
    alike = np.ones(len(lengths), dtype=np.bool_)
    alike[owner[~same]] = False
    return of_case, alike

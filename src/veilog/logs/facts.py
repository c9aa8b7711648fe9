"""Facts about the columns of a log, and the likely columns of persons.

The names of a column in the usual languages and the counts of its values decide about persons.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._plain import InJson, ToJson, tables_of
from veilog.logs.eventlog import (
    ACTIVITY,
    CASE_INDEX,
    EVENT_INDEX,
    LIFECYCLE,
    NESTED,
    TIMESTAMP,
    EventLog,
    as_array,
    codes_of,
)
from veilog.logs.tables.cells import is_text, plain_type
from veilog.messages import OwnerMessage

if TYPE_CHECKING:
    from veilog.logs.storage.stored_log import StoredLog

_NAMES = tables_of("veilog.logs", "column_names")["persons"]
_PROPERTIES = frozenset(_NAMES["properties"].split())
_STAFF = frozenset(_NAMES["staff"].split())
_LINKING = r"(?:n|en|s|es|er|e)?"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a word for persons, perhaps with a number, and of the rest."""
    number, persons = "|".join(_NAMES["number"]), "|".join((*_NAMES["words"], *_NAMES["numbers"]))
    linked = rf"{_LINKING}(?:{number})"
    return (
        re.compile(rf"(?:{persons})(?:{linked})?|(?:{'|'.join(_NAMES['with_number'])}){linked}"),
        re.compile(rf"(?:{number}|[0-9]+|[a-z])"),
    )


def names_persons(column: str) -> bool:
    """Return True if a column's name is one for persons, as ``kunden_nr`` is.

    ``Patient`` and ``case:PatientID`` are others. The name has a word for a person to whom cases belong, and after it
    nothing but words for a number or a name. Staff (``Resource``, ``Employee``) does not count, because it works on
    cases. Properties of persons (``PatientAge``, ``Customer type``) do not count, either.
    """
    words = _words(column)
    if not set(words).isdisjoint(_PROPERTIES):
        return False
    person, number = _patterns()
    return any(
        (person.fullmatch(word) or (word in _NAMES["with_number"] and len(words) > i + 1))
        and all(number.fullmatch(rest) for rest in words[i + 1 :])
        for i, word in enumerate(words)
    )


def _words(column: str) -> list[str]:
    """Return a name's words without accents: ``patient``, ``id`` of ``PatientID``."""
    text = unicodedata.normalize("NFC", column)
    for umlaut, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("Ä", "Ae"), ("Ö", "Oe"), ("Ü", "Ue"), ("ß", "ss")):
        text = text.replace(umlaut, letters)
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])", " ", plain)
    return re.findall(r"[a-z]+|[0-9]+", apart.lower())


_CASES_OF_ONE = 10
_USUAL = 0.95
"""Share of the persons all of whose cases shall count."""
_AMOUNT = r"^\s*-?[0-9][0-9.' ]*,[0-9]+\s*$"
"""Pattern of a number with a decimal comma, which is text."""
_RESERVED = (ACTIVITY, TIMESTAMP, LIFECYCLE, CASE_INDEX, EVENT_INDEX, NESTED)


_WORDS = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])")


@dataclass(frozen=True)
class AttributeFacts(ToJson):
    """A column other than activity and time: level, kind, values and missing values."""

    name: str
    level: Literal["case", "event"]
    kind: str
    values: int
    missing: int


def attributes_of(log: EventLog) -> tuple[AttributeFacts, ...]:
    """Return the facts about each further column of the cases and of the events."""
    found = []
    for level, table in (("case", log.cases), ("event", log.events)):
        for field in table.schema:
            if field.name in _RESERVED and field.name != LIFECYCLE:
                continue
            column = table.column(field.name)
            values = len(pc.unique(as_array(column.drop_null())))
            found.append(AttributeFacts(field.name, level, _kind(field.type), values, column.null_count))  # type: ignore[arg-type]
    return tuple(found)


def transitions_of(log: EventLog) -> dict[str, int] | None:
    """Return the events of each life cycle transition, most frequent first, or None."""
    if LIFECYCLE not in log.events.column_names:
        return None
    column = as_array(log.events.column(LIFECYCLE)).cast(pa.string()).drop_null()
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(column).to_pylist()}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _kind(kind: pa.DataType) -> str:
    kind = plain_type(kind)
    for what, fits in (
        ("boolean", pa.types.is_boolean),
        ("whole number", pa.types.is_integer),
        ("number", pa.types.is_floating),
        ("time", pa.types.is_temporal),
    ):
        if fits(kind):
            return what
    return "text"


@dataclass(frozen=True)
class PersonColumn(ToJson):
    """A column that may name persons: values, cases, and most cases of one value."""

    column: str
    """Name of the column, as ``--unit`` takes it."""
    values: int
    cases: int
    most: int
    usual: Annotated[int, InJson(left_out="always")]
    """Proposal for ``--max-cases``: the smallest number of cases that 95 % of the persons do not exceed, and at least
    2. Most people then keep all their cases. A few values with very many cases, perhaps no people at all (a placeholder
    for a missing number), do not raise everyone's noise."""
    kept: Annotated[int, InJson(left_out="always")]
    """Number of cases that count with that proposal."""
    likely: Annotated[bool, InJson(left_out="always")]
    """True if name and counts are those of persons: see :func:`person_columns`."""

    def message(self, name: str, *, options: bool) -> OwnerMessage:
        """Return a message with the column's numbers and, on request, command options."""
        numbers = {"values": self.values, "cases": self.cases, "most": self.most}
        if not options:
            return OwnerMessage("person-column", column=name, **numbers)
        less = OwnerMessage("person-column-kept", kept=self.kept) if self.kept < self.cases else ""
        return OwnerMessage("person-column-options", column=name, options=self.options, less=less, **numbers)

    def __str__(self) -> str:
        return str(self.message(f"`{self.column}`", options=True))

    @property
    def options(self) -> str:
        """Return the options of the command for a release that protects these persons."""
        column = self.column if self.column.isidentifier() else repr(self.column)
        return f"--unit {column} --max-cases {self.usual}"


def person_columns(log: EventLog | StoredLog) -> tuple[PersonColumn, ...]:
    """Return the columns that name persons, those with the most values first.

    Both the name and the counts decide. Counts alone prove nothing: a diagnosis and an age have as many values as
    persons may have. So the column needs a name for persons (:func:`veilog.logs.facts.names_persons`); any other column
    is one by the user's word alone. Its counts must be those of persons, too:

    - It is an attribute of cases, or of events and constant in each case.
    - It has text or whole numbers.
    - One value has several cases.
    - There are more values than the square root of the cases that have one, and at least one for every ten of them.

    This is a hint, no proof: a person with hundreds of cases, or a column with a name of its own, is missed.
    """
    return tuple(column for column in unit_columns(log) if column.likely)


def staff_columns(log: EventLog | StoredLog) -> tuple[str, ...]:
    """Return columns whose name is one for staff (``org:resource``), values unread."""
    shape = log.shape
    names = dict.fromkeys((*shape.cases.column_names, *shape.events.column_names))
    return tuple(name for name in names if _STAFF & {word.lower() for word in _WORDS.findall(name)})


def unit_columns(log: EventLog | StoredLog) -> tuple[PersonColumn, ...]:
    """Return every column that can name persons: likely ones first, then by values."""
    found = [
        _person_column(name, log.each(partial(_values, name), (name, name.removeprefix("case:"))))
        for name in _names(log.shape)
    ]
    return tuple(sorted((f for f in found if f is not None), key=lambda f: (not f.likely, -f.values, f.column)))


def _names(shape: EventLog) -> Iterator[str]:
    """Yield the names as ``--unit`` takes them.

    An attribute of cases gets ``case:`` before it where its name alone means something else.
    """
    cases, events = shape.cases.schema, shape.events.schema
    of_cases = frozenset(cases.names)
    own = (field for field in events if of_cases.isdisjoint((field.name, field.name.removeprefix("case:"))))
    for field in itertools.chain(cases, own):
        if field.name not in _RESERVED and _may_name(field.type):
            yield f"case:{field.name}" if field.name in ("case", "person") else field.name


def _may_name(kind: pa.DataType) -> bool:
    kind = plain_type(kind)
    return is_text(kind) or bool(pa.types.is_integer(kind))


def _values(name: str, log: EventLog, _first: bool) -> pa.Array | None:
    """Return the values of the cases that have one; None if some case has two."""
    own = name.removeprefix("case:")
    if own in log.cases.column_names:
        return as_array(log.cases.column(own).drop_null())
    column, offsets = as_array(log.events.column(name if name in log.events.column_names else own)), log.offsets
    first = pc.index(column.is_valid(), True).as_py()
    if first >= 0:  # most columns change within a case: the first that has a value shows it, whatever the log's size
        case = int(np.searchsorted(offsets, first, side="right")) - 1
        if len(pc.unique(column.slice(offsets[case], offsets[case + 1] - offsets[case]))) > 1:
            return None
    codes = codes_of(column)
    starts = offsets[:-1][np.diff(offsets) > 0]
    owners = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(codes))))
    if not np.array_equal(codes, codes[starts][owners]):
        return None
    return column.take(pa.array(starts)).drop_null()


def _person_column(name: str, values: Iterable[pa.Array | None]) -> PersonColumn | None:
    parts: list[Any] = []
    for part in values:
        if part is None:
            return None
        parts.append(part.cast(part.type.value_type) if pa.types.is_dictionary(part.type) else part)
    if not parts:
        return None
    together = pa.chunked_array(parts)
    counts = pc.value_counts(together).field("counts").to_numpy(zero_copy_only=False)
    size, cases = len(counts), int(counts.sum())
    if size < 2:
        return None
    most = int(counts.max())
    measured = is_text(together.type) and pc.all(pc.match_substring_regex(together, _AMOUNT)).as_py()
    plausible = not measured and most > 1 and size > math.isqrt(cases) and size * _CASES_OF_ONE >= cases
    likely = plausible and names_persons(name)
    usual = min(most, max(2, int(np.quantile(counts, _USUAL, method="inverted_cdf"))))
    return PersonColumn(name, size, cases, most, usual, int(np.minimum(counts, usual).sum()), likely)

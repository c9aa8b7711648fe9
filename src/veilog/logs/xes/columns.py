"""Columns of an event log read from XES: their names, types and metadata, and raw values to Arrow arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray
from veilog.logs.eventlog import (
    ACTIVITY,
    LABEL_TYPE,
    LIFECYCLE,
    START,
    TIMESTAMP,
    TIMESTAMP_TYPE,
)
from veilog.logs.xes.values import Dates, from_numpy, from_texts, parse_dates, parse_scalar, to_numpy, unescape

__all__ = [
    "ColumnKey",
    "Converted",
    "arrow_type",
    "convert",
    "field_key",
    "field_type",
    "legal_keys",
    "name_columns",
]

_ARROW = {"int": pa.int64(), "float": pa.float64(), "boolean": pa.bool_(), "date": TIMESTAMP_TYPE}
_LETTERS = ":A-Z_a-zÀ-ÖØ-öø-ÿΑ-ΡΣ-ώА-яぁ-ゔァ-ヺ一-\u9fa5가-힣"
_NAME_BEGINS = re.compile(f"[{_LETTERS}]")
_BETWEEN_NAMES = re.compile(f"[^{_LETTERS}0-9.-]")
"""Names by XML 1.0 in all its editions: later ones have more letters, which checkers may not know."""
_INT = "^-?[0-9]{1,18}$"
_FLOAT = r"^-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$"


class ColumnKey(NamedTuple):
    """What one column holds: the values of a key that have one XES type, or those that do not fit it, as text."""

    key: str
    type: str
    as_text: bool = False


def arrow_type(column: ColumnKey) -> pa.DataType:
    return LABEL_TYPE if column.as_text else _ARROW.get(column.type, LABEL_TYPE)


def name_columns(columns: Iterable[ColumnKey], reserved: Iterable[str]) -> list[tuple[ColumnKey, pa.Field]]:
    """Fields for columns in order of first appearance: the first of a key has its name, others ``key (type)``.

    The names that the event log itself uses are kept for what they mean there.
    """
    columns = list(columns)
    taken = set(reserved)
    canonical = {ACTIVITY: "string", TIMESTAMP: "date", LIFECYCLE: "string", START: "date"}
    names: dict[ColumnKey, str] = {}
    for column in columns:
        wanted = canonical.get(column.key, column.type)
        if column.key not in taken and wanted == column.type and not column.as_text:
            names[column] = column.key
            taken.add(column.key)
    result = []
    for column in columns:
        name = names.get(column, "")
        if not name:
            what = f"{column.type} as text" if column.as_text else column.type
            name, number = f"{column.key} ({what})", 2
            while name in taken:
                name, number = f"{column.key} ({what} {number})", number + 1
            taken.add(name)
        metadata = {}
        if name != column.key:
            metadata["xes:key"] = column.key
        if name != column.key or column.type == "id" or column.as_text:
            metadata["xes:type"] = column.type
        result.append((column, pa.field(name, arrow_type(column), metadata=metadata or None)))
    return result


def field_key(field: pa.Field) -> str:
    """The XES key of a column."""
    key = (field.metadata or {}).get(b"xes:key")
    return str(field.name) if key is None else key.decode("utf-8")


def legal_keys(table: pa.Table) -> pa.Table:
    """The table with a key for each column that is a name in XML, as the schema of XES wants it, under which it is
    written as XES: ``age_group`` for ``age group``. The columns keep their names."""
    keys = [field_key(field) for field in table.schema]
    taken = set(keys)
    fields = list(table.schema)
    for place, key in enumerate(keys):
        legal = _BETWEEN_NAMES.sub("_", key)
        legal = legal if _NAME_BEGINS.match(legal) else f"_{legal}"
        if legal == key:
            continue
        free, number = legal, 2
        while free in taken:
            free, number = f"{legal}_{number}", number + 1
        taken.add(free)
        fields[place] = fields[place].with_metadata({**(fields[place].metadata or {}), b"xes:key": free.encode()})
    return table.cast(pa.schema(fields)) if taken != set(keys) else table


def field_type(field: pa.Field) -> str:
    """The XES type of a column: what its metadata says, else what its Arrow type says."""
    kind = (field.metadata or {}).get(b"xes:type")
    if kind is not None:
        return str(kind.decode("utf-8"))
    value = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_integer(value):
        return "int"
    if pa.types.is_floating(value) or pa.types.is_decimal(value):
        return "float"
    if pa.types.is_boolean(value):
        return "boolean"
    if pa.types.is_timestamp(value) or pa.types.is_date(value):
        return "date"
    return "string"


@dataclass(frozen=True)
class Converted:
    """Typed values of the rows that fit, the rows that do not, and for dates what was seen in them."""

    values: pa.Array
    good: BoolArray | None
    """Which rows fit; ``None`` for all."""
    dates: Dates | None = None


def convert(kind: str, raw: pa.Array) -> Converted:
    """The values of one column, still escaped, as an Arrow array of its type."""
    if kind == "date":
        offsets = np.frombuffer(raw.buffers()[1], dtype=np.int32)[raw.offset : raw.offset + len(raw) + 1]
        data = np.frombuffer(raw.buffers()[2] or b"", dtype=np.uint8)
        dates = parse_dates(data, offsets)
        every = bool(dates.ok.all())
        us = dates.us if every else dates.us[dates.ok]
        return Converted(from_numpy(us).view(TIMESTAMP_TYPE), None if every else dates.ok, dates)
    encoded = raw.dictionary_encode()
    if kind in ("string", "id"):
        return Converted(strings(encoded), None)
    distinct, fits = _parse_distinct(kind, encoded.dictionary)
    values = distinct.take(encoded.indices)
    if fits.all():
        return Converted(values, None)
    good = fits[to_numpy(encoded.indices)]
    return Converted(values.filter(from_numpy(good)), good)


def _parse_distinct(kind: str, raw: pa.Array) -> tuple[pa.Array, BoolArray]:
    """Numbers and booleans: Arrow's parser where it is known to agree with XML Schema's, one by one elsewhere."""
    if kind in ("int", "float") and len(raw) > 20:
        text = raw.cast(pa.string())
        regular = pc.match_substring_regex(text, _INT if kind == "int" else _FLOAT)
        if pc.all(regular).as_py():
            return text.cast(_ARROW[kind]), np.ones(len(raw), dtype=np.bool_)
    parsed = [parse_scalar(kind, unescape(value)) for value in raw.to_pylist()]
    bad = np.array([bad for _, bad in parsed], dtype=np.bool_)
    dtype = {"int": np.int64, "float": np.float64, "boolean": np.bool_}[kind]
    return from_numpy(np.array([0 if bad else value for value, bad in parsed], dtype=dtype), bad), ~bad


def strings(encoded: pa.DictionaryArray) -> pa.DictionaryArray:
    """Labels from raw values: references resolved, in order of first appearance, each once."""
    dictionary = encoded.dictionary
    raw = bytes(dictionary.buffers()[2] or b"") if len(dictionary) else b""
    if b"&" not in raw and b"\n" not in raw and b"\t" not in raw and b"\r" not in raw:
        return pa.DictionaryArray.from_arrays(encoded.indices, dictionary.cast(pa.string()))
    labels: dict[str, int] = {}
    recode = [labels.setdefault(unescape(value), len(labels)) for value in dictionary.to_pylist()]
    indices = np.array(recode, dtype=np.int32)[to_numpy(encoded.indices)]
    return pa.DictionaryArray.from_arrays(from_numpy(indices), from_texts(list(labels)))


def spread(values: pa.Array, rows: npt.NDArray[np.integer[Any]], size: int) -> pa.Array:
    """A column of ``size`` rows with ``values`` at ``rows`` (increasing) and nulls elsewhere."""
    if len(rows) == size:
        return values
    absent = np.ones(size, dtype=np.bool_)
    absent[rows] = False
    if pa.types.is_dictionary(values.type):
        indices = np.zeros(size, dtype=np.int32)
        indices[rows] = to_numpy(values.indices)
        return pa.DictionaryArray.from_arrays(from_numpy(indices, absent), values.dictionary)
    take = np.zeros(size, dtype=np.int64)
    take[rows] = np.arange(len(rows))
    return values.take(from_numpy(take, absent))

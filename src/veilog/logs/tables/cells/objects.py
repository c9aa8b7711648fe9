"""Columns of Python objects, which may be of any types: what a value is read as follows from that value alone.

Arrow infers one type for a whole column, from its first value or from all: then a date before times takes the hours of
all of them, and a number beside a date is one. Here a column has a type only where all of its values have one that is
the same whatever they are, and else each is text by itself: as it would be if it were in a column of its own type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.eventlog import TIMESTAMP_TYPE
from veilog.logs.findings import Findings
from veilog.logs.tables.cells.times import LARGEST

__all__ = ["from_values", "number_of_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE = 1 << 53
"""Below it every whole number is a float, and is told without an exponent."""
_BITS = 1 << 63
_LARGEST = 10**18
"""From here on a decimal number is told digit by digit, and no longer as a whole number or a float."""
_OF_ARROW = frozenset({bytes, time, timedelta})
"""What Arrow has a type for that each value has by itself. In lists and the like that would follow from all."""


def from_values(
    values: Sequence[Any], name: str, findings: Findings, *, apart: bool = False, times: bool = False
) -> tuple[Any, bool]:
    """Return a column of these values, and whether it stays. ``apart`` is for one that decides about events, and
    ``times`` for one of their times: whatever its values are, what each is told as does not depend on the others."""
    cut = sum(bool(getattr(value, "nanosecond", 0)) for value in values) if times else 0
    plain = list(map(_plain, values))
    kinds = set(map(type, plain)) - {type(None)}
    if cut:
        findings.add("precision-lost", f"column {name!r} is cut to microseconds", count=cut)
    if kinds <= {str}:
        return _texts(plain, name), True
    numbers = float in kinds and kinds <= {int, float}
    array = None if times and apart and numbers else _of_one_kind(plain, kinds)
    if array is None and not apart:
        array = _of_another_kind(plain, kinds)
    if array is not None:
        return array, True
    text = _texts([None if value is None else _as_text(value, times=times) for value in plain], name)
    if times and apart and numbers:
        return text, True
    example = f"column {name!r} mixes types or holds huge numbers"
    return text, findings.add("bad-value", example, count=max(1, len(text))) != "drop"


def _texts(values: list[str | None], name: str) -> Any:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError as error:
        raise InputError("column-holds-half-character", name=name, reason=error) from error


def _plain(value: Any) -> Any:
    """The value as one of Python's own types, times to microseconds; None for what stands for no value."""
    kind = type(value)
    if kind in (str, int, bool, type(None), date):
        return value
    if value is not value or type(value).__name__ in ("NAType", "NaTType") or (kind is float and value != value):
        return None
    if kind is Decimal:
        return None if value.is_nan() else value
    if kind in (float, datetime):
        return value
    if isinstance(value, datetime):  # such as pandas'
        rest = value.hour, value.minute, value.second, value.microsecond, value.tzinfo
        return datetime(value.year, value.month, value.day, *rest, fold=value.fold)  # noqa: DTZ001 - its own zone, or none
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.longdouble | np.clongdouble):  # their own items
        return _plain((float if isinstance(value, np.longdouble) else complex)(value))
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return _plain((value.astype("datetime64[us]") if value.dtype.kind == "M" else value).item())
    return value


def _of_one_kind(values: list[Any], kinds: set[type]) -> Any:
    """The column where all values have a type that each has by itself; None where they have not."""
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int} and all(value is None or -_BITS <= value < _BITS for value in values):
        return pa.array(values, pa.int64())
    if kinds and kinds <= {int, float} and all(v is None or type(v) is float or abs(v) < _WHOLE for v in values):
        return pa.array(values, pa.float64())
    if kinds == {date}:
        return pa.array(values, pa.date32())
    if kinds == {datetime}:
        aware = {value.tzinfo is not None for value in values if value is not None}
        if len(aware) == 1:
            micros = [None if value is None else _micros(value) for value in values]
            return pa.array(micros, pa.int64()).cast(TIMESTAMP_TYPE if aware == {True} else pa.timestamp("us"))
    return None


def _micros(value: datetime) -> int:
    since = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _of_another_kind(values: list[Any], kinds: set[type]) -> Any:
    """The same of attributes, for what is told in another type than its own: decimal numbers, and what Arrow knows."""
    if kinds == {Decimal} and all(value is None or abs(value) < _LARGEST for value in values):
        whole = all(value is None or value.as_tuple().exponent >= 0 for value in values)
        told = int if whole else float
        return pa.array([None if v is None else told(v) for v in values], pa.int64() if whole else pa.float64())
    if len(kinds) != 1 or not kinds <= _OF_ARROW:
        return None
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return None


def _as_text(value: Any, *, times: bool) -> str:
    """A value as it would be written if all of its column were of its type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if times:
            return number_of_time(value)
        whole = value.is_integer() and abs(value) < _WHOLE
        return str(int(value)) if whole else str(pa.scalar(value, pa.float64()).cast(pa.string()))
    if isinstance(value, datetime):
        kind = pa.timestamp("us") if value.tzinfo is None else TIMESTAMP_TYPE
        return str(pa.scalar(_micros(value), pa.int64()).cast(kind).cast(pa.string()))
    if isinstance(value, timedelta) and not getattr(value, "nanoseconds", 0):  # pandas' has words of its own
        return str(timedelta(value.days, value.seconds, value.microseconds))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def number_of_time(value: float) -> str:
    """Return a float that counts from 1970 as text with its millionths, without an exponent: so it means the same time
    whether it stands beside other numbers or beside texts."""
    if not abs(value) < LARGEST:
        return str(value)
    whole = math.floor(value)
    millionths = round((value - whole) * 10**6)
    return f"{whole + millionths // 10**6}.{millionths % 10**6:06d}".rstrip("0").rstrip(".")

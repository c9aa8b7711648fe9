"""Columns of tables in the types that a log has, and columns of Python objects, each value of which is read by itself.

Arrow infers one type for a whole column, from its first value or from all: then a date before times takes the hours of
all of them, and a number beside a date is one. Here a column of objects has a type only where all of its values have
one that is the same whatever they are, and else each is text by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import LABEL_TYPE, TIMESTAMP_TYPE, listed
from veilog.logs.findings import Findings
from veilog.logs.tables.times import LARGEST, DayOrder, Evidence, Times, convert_times, gather_evidence, parse_times
from veilog.messages import Message


def text_column(column: Any, name: str, path: str | None) -> Any:
    """A column of names as strings, null where there is none; whole numbers without a decimal point."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_nested(kind):
        raise InputError("column-not-names", path=path, name=name, kind=kind)
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), None, column)
        small = pc.less(pc.abs(column), float(1 << 53))
        whole = pc.cast(pc.if_else(small, column, 0.0), pa.int64(), safe=False)
        exact = pc.and_(small, pc.equal(pc.cast(whole, pa.float64()), column))
        column = pc.if_else(exact, whole.cast(pa.string()), column.cast(pa.string()))
    try:
        text = column.cast(pa.string())
    except pa.ArrowException as error:
        raise InputError("column-names-not-readable", path=path, name=name, kind=kind) from error
    return text if isinstance(text, pa.ChunkedArray) else pa.chunked_array([text])


def rounded(column: Any) -> BoolArray:
    """Where a name is a number so large that its type of floats has not every whole one: several may be one."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_floating(column.type):
        return np.zeros(len(column), dtype=np.bool_)
    exact = float(1 << _EXACT_BITS[column.type.bit_width])
    found: BoolArray = np.asarray(pc.fill_null(pc.greater_equal(pc.abs(column.cast(pa.float64())), exact), False))
    return found


def whole_numbers(column: Any) -> tuple[IntArray, BoolArray] | None:
    """The whole numbers of a column and where there are some, each value by itself; None for a type without numbers."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if is_text(kind):
        fits = pc.or_(pc.match_substring_regex(column, _SHORT_INTEGER), _fits_by_its_digits(column))
        numbers = pc.if_else(fits, column, None).cast(pa.int64())
    elif pa.types.is_floating(kind):
        wide = column.cast(pa.float64())
        fits = pc.and_(pc.less(pc.abs(wide), float(1 << 53)), pc.equal(pc.floor(wide), wide))
        numbers = pc.if_else(fits, wide, None).cast(pa.int64())
    elif pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        numbers = column.cast(pa.int64())
    elif pa.types.is_uint64(kind):
        numbers = pc.if_else(pc.less(column, pa.scalar(1 << 63, pa.uint64())), column, None).cast(pa.int64())
    else:
        return None
    numbers = numbers if isinstance(numbers, pa.ChunkedArray) else pa.chunked_array([numbers])
    return pc.fill_null(numbers, 0).to_numpy(), pc.is_valid(numbers).to_numpy()


def _fits_by_its_digits(column: Any) -> Any:
    """Whether text is a whole number of as many digits as the largest of 64 bits, and no larger: texts of one length
    are in the order of their numbers."""
    found = None
    for pattern, most in ((r"^[1-9][0-9]{18}$", f"{(1 << 63) - 1}"), (r"^-[1-9][0-9]{18}$", f"-{1 << 63}")):
        one = pc.and_(pc.match_substring_regex(column, pattern), pc.less_equal(column, most))
        found = one if found is None else pc.or_(found, one)
    return found


def read_times(column: Any, name: str, path: str | None, order: DayOrder | None = None) -> Times:
    """The times of a column, each value by itself; ``order`` is what ``5/6/2024`` means, if somebody said so."""
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type) or not len(column):
        column = column.cast(pa.string()) if len(column) else pa.chunked_array([[]], pa.string())
    if not is_text(column.type):
        return Times.joined([convert_times(chunk, name, path) for chunk in column.chunks])
    column = column.cast(pa.string())
    if order is None:
        evidence = Evidence()
        for chunk in column.chunks:
            gather_evidence(chunk, evidence)
        order = evidence.order(path)
    return Times.joined([parse_times(chunk, order) for chunk in column.chunks])


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def without_views(table: pa.Table) -> pa.Table:
    """Return the table with plain columns in the place of those of which Arrow takes and compares no values: views of
    texts and bytes, also in dictionaries, runs of equal values, and UUIDs, which are told as text."""
    for place, field in enumerate(table.schema):
        kind, column = _of_values(field.type), table.column(place)
        if pa.types.is_run_end_encoded(field.type):
            column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], field.type.value_type)
        if _is_uuid(field.type):
            column = pa.chunked_array([[None if one is None else str(one) for one in column.to_pylist()]], kind)
        if kind != field.type:
            table = table.set_column(place, field.with_type(kind), column.cast(kind))
    return table


def _of_values(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_run_end_encoded(kind):
        return _of_values(kind.value_type)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _of_values(kind.value_type), kind.ordered)
    if pa.types.is_string_view(kind) or _is_uuid(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _is_uuid(kind: pa.DataType) -> bool:
    return getattr(kind, "extension_name", None) == "arrow.uuid"  # which older versions of Arrow have no type for


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, whether or not they stand in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


_EXACT_BITS = {16: 11, 32: 24, 64: 53}
"""Bits of the whole numbers that floats of so many bits hold, each of them."""
_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_OF_INT64 = 18
"""Digits that 64 bits hold whatever they are, so that the type of a column follows from what it declares."""


def plain_column(column: Any, name: str, findings: Findings) -> Any:
    """An attribute in one of the types that a log has: text, int64, float64, bool, timestamps in UTC. Decimals are
    numbers, and durations numbers of seconds. Which it is follows from the type that is declared, and from no value: a
    number that 64 bits may not hold is text, and a time outside the years 1 to 9999 is missing.

    None if it has another type and the user wants such attributes left out.
    """
    kind = column.type
    if pa.types.is_dictionary(kind) and is_text(kind.value_type):
        return pa.chunked_array([listed(column).cast(LABEL_TYPE)])
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if is_text(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_boolean(kind):
        return column
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _plain_times(column, name, findings)
    if pa.types.is_duration(kind):
        return pc.divide(column.cast(pa.int64()).cast(pa.float64(), safe=False), _A_SECOND[kind.unit])
    if _is_whole(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and kind.scale > 0):
        return column.cast(pa.float64())
    if (
        findings.add("bad-value", Message("example-column-holds", name=name, kind=str(kind)), count=max(1, len(column)))
        == "drop"
    ):
        return None
    if pa.types.is_time(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.string())
    return pa.chunked_array([pa.array(map(_as_text, column.to_pylist()), pa.string())])


def _plain_times(column: Any, name: str, findings: Findings) -> Any:
    times = Times.joined([convert_times(chunk, name, None) for chunk in column.chunks])
    if times.cut:
        findings.add("precision-lost", Message("example-column-cut", name=name), count=times.cut)
    if times.bad.any():
        example = Message("example-column-outside-years", name=name)
        findings.add("bad-value", example, count=int(times.bad.sum()))
    return pa.chunked_array([pa.array(times.micros, pa.int64(), mask=~times.known).cast(TIMESTAMP_TYPE)])


def _is_whole(kind: pa.DataType) -> bool:
    """Whether 64 bits hold every value that the type has, and all of these are whole numbers."""
    if pa.types.is_decimal(kind):
        return bool(kind.scale <= 0 and kind.precision - kind.scale <= _OF_INT64)
    return bool(pa.types.is_integer(kind) and not pa.types.is_uint64(kind))


def _as_text(value: Any) -> str | None:
    """A value as text, by itself: bytes as far as they are UTF-8."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None if value is None else str(value)


# Text that a type holds exactly. A float needs a point or a signed exponent: 1e5 may be an identifier.
_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
_SHORT_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
_FLOAT = r"^(-?(0|[1-9][0-9]*)(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-][0-9]+)?|nan|-?inf)$"
_WITH_COMMA = r"^-?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(\.[0-9]{3})+)(,[0-9]+)?$"
_POINT_OR_COMMA = r"^-?[0-9]+[.,][0-9.,]*$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})$"


def typed(column: Any, *, comma: bool = False) -> Any:
    """A column of text as the narrowest type that loses nothing, else as it is. With a ``comma`` before the decimals
    of numbers points stand between thousands."""
    present = pc.if_else(pc.equal(column, ""), None, column)
    if present.null_count == len(present):
        return column
    if comma and pc.any(pc.match_substring_regex(present, _POINT_OR_COMMA)).as_py():
        if not _all_match(present, _WITH_COMMA):
            return column
        present = pc.replace_substring(pc.replace_substring(present, ".", ""), ",", ".")
    if _all_match(present, _INTEGER):
        try:
            return present.cast(pa.int64())
        except pa.ArrowInvalid:
            return column
    if _all_match(present, _FLOAT) and not _all_match(present, r"^(nan|-?inf)$"):
        digits = pc.replace_substring_regex(present, r"^-?[0.]*|\.|[eE].*$", "")
        return present.cast(pa.float64()) if (pc.max(pc.utf8_length(digits)).as_py() or 0) <= 17 else column
    if _all_match(present, r"^(true|false)$") or _all_match(present, r"^(True|False)$"):
        return present.cast(pa.bool_())
    if _all_match(present, _TIME):
        times = Times.joined([parse_times(chunk) for chunk in present.chunks])
        if not times.bad.any():
            return pa.chunked_array([pa.array(times.micros, pa.int64(), mask=~times.known).cast(TIMESTAMP_TYPE)])
    return column


def _all_match(column: Any, pattern: str) -> bool:
    """Whether every value that is not null matches; a look at the first ones settles most columns."""
    for part in (column.slice(0, 100), column):
        if not pc.all(pc.match_substring_regex(part, pattern), min_count=0).as_py():
            return False
    return True


def written(column: Any) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    if pa.types.is_timestamp(kind):
        try:
            return column.cast(pa.timestamp("s", kind.tz))
        except pa.ArrowInvalid:
            return column
    if pa.types.is_floating(kind):
        text = column.cast(pa.string())
        if _all_match(text, _INTEGER):  # 1.0 must not come back as the integer 1
            return pc.if_else(pc.is_null(text), None, pc.binary_join_element_wise(pc.fill_null(text, ""), "0", "."))
    return column


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
        findings.add("precision-lost", Message("example-column-cut", name=name), count=cut)
    if kinds <= {str}:
        return _texts(plain, name), True
    numbers = float in kinds and kinds <= {int, float}
    array = None if times and apart and numbers else _of_one_kind(plain, kinds)
    if array is None and not apart:
        array = _of_another_kind(plain, kinds)
    if array is not None:
        return array, True
    text = _texts([None if value is None else _text_of(value, times=times) for value in plain], name)
    if times and apart and numbers:
        return text, True
    example = Message("example-column-mixed", name=name)
    return text, findings.add("bad-value", example, count=max(1, len(text))) != "drop"


def _texts(values: list[str | None], name: str) -> Any:
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError as error:
        raise InputError("column-text-broken", name=name, reason=error) from error


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


def _text_of(value: Any, *, times: bool) -> str:
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

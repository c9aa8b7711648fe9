"""Columns of tables in the types of a log, and columns of Python objects.

Arrow infers one type for a whole column, from its first value or from all. A date before times then takes the hours of
all of them, and a number in a column of dates is one. Here each value of a column of objects is read by itself. The
column has a type only where all of its values have one that does not depend on the others; else each is text.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import LABEL_TYPE, TIMESTAMP_TYPE, encode_texts
from veilog.logs.findings import Findings
from veilog.messages import Message


def text_column(column: Any, name: str, path: str | None) -> Any:
    """Return a column of names as strings or null, whole numbers without a point."""
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


def inexact_names(column: Any) -> BoolArray:
    """Return True where a name is a float too large to be exact: several may be one."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_floating(column.type):
        return np.zeros(len(column), dtype=np.bool_)
    exact = float(1 << _EXACT_BITS[column.type.bit_width])
    found: BoolArray = np.asarray(pc.fill_null(pc.greater_equal(pc.abs(column.cast(pa.float64())), exact), False))
    return found


def whole_numbers(column: Any) -> tuple[IntArray, BoolArray] | None:
    """Return whole numbers, each read alone, and their places; None for other types."""
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
    """Return True for text with a whole number of 19 digits that 64 bits hold.

    Texts of one length are in the order of their numbers.
    """
    found = None
    for pattern, most in ((r"^[1-9][0-9]{18}$", f"{(1 << 63) - 1}"), (r"^-[1-9][0-9]{18}$", f"-{1 << 63}")):
        one = pc.and_(pc.match_substring_regex(column, pattern), pc.less_equal(column, most))
        found = one if found is None else pc.or_(found, one)
    return found


def read_times(column: Any, name: str, path: str | None, order: DayOrder | None = None) -> Times:
    """Return the times of a column, each by itself; ``order`` decides ``5/6/2024``."""
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


def drop_views(table: pa.Table) -> pa.Table:
    """Return the table with plain columns instead of those that Arrow hardly handles.

    These are views of texts and bytes, also in dictionaries, runs of equal values, and UUIDs, which become text.
    """
    for place, member in enumerate(table.schema):
        kind, column = _value_type(member.type), table.column(place)
        if pa.types.is_run_end_encoded(member.type):
            column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], member.type.value_type)
        if _is_uuid(member.type):
            column = pa.chunked_array([[None if one is None else str(one) for one in column.to_pylist()]], kind)
        if kind != member.type:
            table = table.set_column(place, member.with_type(kind), column.cast(kind))
    return table


def _value_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_run_end_encoded(kind):
        return _value_type(kind.value_type)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _value_type(kind.value_type), kind.ordered)
    if pa.types.is_string_view(kind) or _is_uuid(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _is_uuid(kind: pa.DataType) -> bool:
    return getattr(kind, "extension_name", None) == "arrow.uuid"  # which older versions of Arrow have no type for


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, whether or not they stand in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


_EXACT_BITS = {16: 11, 32: 24, 64: 53}
"""Bits of the whole numbers that floats of each width hold exactly."""
_A_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_OF_INT64 = 18
"""Number of digits that 64 bits hold in any case, so that the type of a column follows from its declaration."""


def plain_column(column: Any, name: str, findings: Findings) -> Any:
    """Return an attribute in one of the types of a log.

    The types are text, int64, float64, bool and timestamps in UTC. Decimals become numbers, and durations numbers of
    seconds. The declared type decides, and no value does: a number that 64 bits may not hold is text, and a time
    outside the years 1 to 9999 is missing. None stands for another type that the user wants to leave out.
    """
    kind = column.type
    if pa.types.is_dictionary(kind) and is_text(kind.value_type):
        return pa.chunked_array([encode_texts(column).cast(LABEL_TYPE)])
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
    """Return True if all values of the type are whole numbers that 64 bits hold."""
    if pa.types.is_decimal(kind):
        return bool(kind.scale <= 0 and kind.precision - kind.scale <= _OF_INT64)
    return bool(pa.types.is_integer(kind) and not pa.types.is_uint64(kind))


def _as_text(value: Any) -> str | None:
    """Return a value as text, by itself: bytes as far as they are UTF-8."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None if value is None else str(value)


# Text that a type holds exactly. A float needs a point or a signed exponent: 1e5 may be an identifier.
_INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
_SHORT_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
_FLOAT = r"^(-?(0|[1-9][0-9]*)(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-][0-9]+)?|nan|-?inf)$"
_WITH_COMMA = r"^-?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(\.[0-9]{3})+)(,[0-9]+)?$"
_POINT_OR_COMMA = r"^-?[0-9]+[.,][0-9.,]*$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})$"


def infer_type(column: Any, *, comma: bool = False) -> Any:
    """Return a column of text as the narrowest type that loses nothing, else as it is.

    With a ``comma`` before the decimals of numbers, points stand between thousands.
    """
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
    """Return True if every value that is not null matches; most columns fail early."""
    for part in (column.slice(0, 100), column):
        if not pc.all(pc.match_substring_regex(part, pattern), min_count=0).as_py():
            return False
    return True


def write_column(column: Any) -> Any:
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
"""Bound of the whole numbers that all are floats and have no exponent as text."""
_BITS = 1 << 63
_LARGEST = 10**18
"""Bound from which on a decimal number stays text, digit by digit."""
_OF_ARROW = frozenset({bytes, time, timedelta})
"""Types of Python with a type of Arrow that follows from each value alone."""


def from_values(
    values: Sequence[Any], name: str, findings: Findings, *, apart: bool = False, times: bool = False
) -> tuple[Any, bool]:
    """Return a column of these values, and True if it stays.

    ``apart`` marks a column that decides about events, and ``times`` one of their times. In such a column the text of
    each value does not depend on the others.
    """
    cut = sum(bool(getattr(value, "nanosecond", 0)) for value in values) if times else 0
    plain = list(map(_plain, values))
    kinds = set(map(type, plain)) - {type(None)}
    if cut:
        findings.add("precision-lost", Message("example-column-cut", name=name), count=cut)
    if kinds <= {str}:
        return _texts(plain, name), True
    numbers = float in kinds and kinds <= {int, float}
    array = None if times and apart and numbers else _cast_to_one_kind(plain, kinds)
    if array is None and not apart:
        array = _cast_to_other_kind(plain, kinds)
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
    """Return the value as one of Python's own types, times to microseconds, or None."""
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


def _cast_to_one_kind(values: list[Any], kinds: set[type]) -> Any:
    """Return the column if all values have a type that each has by itself, else None."""
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


def _cast_to_other_kind(values: list[Any], kinds: set[type]) -> Any:
    """Return the column of attributes whose type differs from that of their values.

    These are decimal numbers, and values for which Arrow has a type. None stands for other values.
    """
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
    """Return a value as text, as if all of its column were of its type."""
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
    """Return a float that counts from 1970 as text with millionths, but no exponent.

    It so means the same time among other numbers and among texts.
    """
    if not abs(value) < LARGEST:
        return str(value)
    whole = math.floor(value)
    millionths = round((value - whole) * 10**6)
    return f"{whole + millionths // 10**6}.{millionths % 10**6:06d}".rstrip("0").rstrip(".")


# Timestamps of tables ------------------------------------------------------------------------------------------------

# Text in the usual notations and Arrow's time types, to microseconds in UTC, exactly.
#
# Read are ISO 8601 (``2024-03-01``, ``2024-03-01 14:05``, ``2024-03-01T14:05:09.123456+01:00``, also with ``/`` or
# ``.``), ``dd.mm.yyyy``, and ``dd/mm/yyyy`` or ``mm/dd/yyyy`` (also with ``-``), each with an optional time of day,
# AM or PM, and offset. Also read are numbers that count from the beginning of 1970 in seconds, milliseconds,
# microseconds or nanoseconds; the size of each number decides. A time without offset is taken as UTC, and counted.
# ``25/12/2024`` reveals its day by itself. The meaning of ``5/6/2024`` never follows from the times of other cases: the
# user declares it, or it is refused.


DayOrder = Literal["day first", "month first"]

_FIRST = int(np.datetime64("0001-01-01", "us").astype(np.int64))
_LAST = int(np.datetime64("9999-12-31T23:59:59.999999", "us").astype(np.int64))
"""Last time of Python's datetime; a later time is as good as unreadable."""

_CLOCK = (
    r"(?:(?:\s*[Tt]\s*|\s+)(?P<H>\d{1,2})(?::(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d{1,12}))?)?)?"
    r"\s*(?P<p>[AaPp][Mm])?\s*(?P<z>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?\s*$"
)
_ISO = r"^\s*(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})" + _CLOCK
_EUROPEAN = r"^\s*(?P<d>\d{1,2})(?P<sep>[-/.])(?P<m>\d{1,2})[-/.](?P<y>\d{4})" + _CLOCK
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?$")


@dataclass(frozen=True)
class Times:
    """A column of times: microseconds since 1970 in UTC, with known and bad places.

    ``bad`` marks places with something else. Missing values are neither ``known`` nor ``bad``.
    """

    micros: IntArray
    known: BoolArray
    bad: BoolArray
    naive: int = 0
    """Number of times without an offset."""
    offsets: frozenset[int] = frozenset()
    """Offsets met, in minutes."""
    cut: int = 0
    """Number of times finer than a microsecond."""
    epochs: Mapping[str, int] = field(default_factory=dict)
    """Number of times that were numbers, by their unit."""

    @staticmethod
    def joined(parts: Sequence[Times]) -> Times:
        """Return the times of a column that came in these parts, at least one."""
        if len(parts) == 1:
            return parts[0]
        epochs: Counter[str] = Counter()
        for part in parts:
            epochs.update(part.epochs)
        return Times(
            np.concatenate([part.micros for part in parts]),
            np.concatenate([part.known for part in parts]),
            np.concatenate([part.bad for part in parts]),
            sum(part.naive for part in parts),
            frozenset().union(*(part.offsets for part in parts)),
            sum(part.cut for part in parts),
            epochs,
        )


@dataclass
class Evidence:
    """Evidence of a column about the order of day and month in ``5/6/2024``."""

    doubtful: str | None = None
    """A date that both orders allow."""
    day_first: str | None = None
    month_first: str | None = None

    def order(self, path: str | None) -> DayOrder:
        """Return the order of the column's dates, if each date reveals it.

        Raises:
            InputError: When a date does not, or the dates differ.

        """
        if self.day_first and self.month_first:
            raise InputError("date-order-mixed", path=path, day_first=self.day_first, month_first=self.month_first)
        if self.doubtful:
            code = "date-order-seems-day-first" if self.day_first else "date-order-seems-month-first"
            example = self.day_first or self.month_first
            code = "date-order-unclear" if example is None else code
            raise InputError(code, path=path, doubtful=self.doubtful, example=example)
        return "month first" if self.month_first else "day first"


def gather_evidence(text: pa.Array, evidence: Evidence) -> None:
    """Note the evidence of these dates about the order of day and month."""
    # All dates that this order affects: with any space before, and with a point in second place (see _parse_slowly).
    text = pc.utf8_trim_whitespace(pc.drop_null(text))
    slashed = text.filter(pc.match_substring_regex(text, r"^\d{1,2}[-/]\d{1,2}[-/.]\d{4}"))
    if not len(slashed):
        return
    parts = pc.extract_regex(slashed, r"^(?P<a>\d{1,2})[-/](?P<b>\d{1,2})")
    a, b = (pc.cast(parts.field(i), pa.int64()).to_numpy(zero_copy_only=False) for i in (0, 1))
    day_a, day_b = ((n >= 1) & (n <= 31) for n in (a, b))  # other numbers are no evidence, and no time later
    month_a, month_b = ((n >= 1) & (n <= 12) for n in (a, b))
    both = month_a & month_b
    for found, name in (
        (day_a & month_b & ~both, "day_first"),
        (month_a & day_b & ~both, "month_first"),
        (both & (a != b), "doubtful"),
    ):
        if found.any() and getattr(evidence, name) is None:
            setattr(evidence, name, slashed[int(found.argmax())].as_py().strip())


def parse_times(text: pa.Array, order: DayOrder = "day first") -> Times:
    """Return the times in an array of strings; blank ones are neither known nor bad."""
    text = pc.if_else(pc.equal(text, ""), None, text)
    times = _parse_iso(text)
    if times is None:
        # Most columns are in one notation: turned round to ISO, Arrow reads them all at once.
        turned = pc.replace_substring_regex(text, r"^(\d{2})\.(\d{2})\.(\d{4})", r"\3-\2-\1")
        year_last = r"\3-\1-\2" if order == "month first" else r"\3-\2-\1"
        times = _parse_iso(pc.replace_substring_regex(turned, r"^(\d{2})[-/](\d{2})[-/](\d{4})", year_last))
    return _parse_slowly(text, order) if times is None else times


_FIRST_FEW = 1000


def _parse_iso(text: Any) -> Times | None:
    """Return the times, if all are ISO 8601 and all or none have an offset, else None."""
    first = pc.drop_null(text[:_FIRST_FEW])[:1]  # Arrow takes long to fail at every value of a column
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        with contextlib.suppress(pa.ArrowInvalid):
            pc.cast(first, kind)
            values = pc.cast(text, kind)
            return (
                _times_in_range(values, naive=True)
                if kind.tz is None
                else _times_in_range(values, offsets=_offsets(text))
            )
    return None


def convert_times(column: pa.Array, name: str, path: str | None) -> Times:
    """Return the times in an Arrow array of numbers, dates or timestamps."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = _numbers_to_times(column)
        if numbers.known.any():
            return numbers
    if pa.types.is_date(kind):
        column = pc.cast(column, pa.timestamp("ms"))
        kind = column.type
    if not pa.types.is_timestamp(kind):
        raise InputError("column-not-timestamps", path=path, name=name, kind=kind)
    known = pc.is_valid(column).to_numpy(zero_copy_only=False)
    raw = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    cut = 0
    if kind.unit == "ns":
        cut = int(((raw % 1000 != 0) & known).sum())
        micros = raw // 1000
        outside = np.zeros(len(raw), dtype=np.bool_)
    else:
        factor = {"s": 1_000_000, "ms": 1000, "us": 1}[kind.unit]
        outside = known & ((raw < _FIRST // factor) | (raw > _LAST // factor))
        micros = np.where(outside, 0, raw) * factor
    naive = int(known.sum()) if kind.tz is None else 0
    return Times(micros, known & ~outside, outside, naive=naive, cut=cut)


def _times_in_range(values: Any, *, naive: bool = False, offsets: frozenset[int] = frozenset()) -> Times:
    known = pc.is_valid(values).to_numpy(zero_copy_only=False)
    micros = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    outside = (micros < _FIRST) | (micros > _LAST)
    return Times(
        micros, known & ~outside, outside, naive=int((known & ~outside).sum()) if naive else 0, offsets=offsets
    )


def _offsets(text: Any) -> frozenset[int]:
    rest = text.filter(pc.invert(pc.ends_with(text, "Z")))
    met = {0} if len(rest) + text.null_count < len(text) else set()
    for ending in pc.unique(pc.utf8_slice_codeunits(pc.drop_null(rest), -6)).to_pylist():
        match = _OFFSET.search(ending)
        if match is not None:
            met.add((-1 if match[1] == "-" else 1) * (60 * int(match[2]) + int(match[3] or 0)))
    return frozenset(met)


def _parse_slowly(text: Any, order: DayOrder) -> Times:
    text = pc.utf8_trim_whitespace(text)
    present = pc.fill_null(pc.not_equal(text, ""), False).to_numpy(zero_copy_only=False)
    size = len(text)
    micros, known = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    naive = cut = 0
    offsets: set[int] = set()
    for pattern in (_ISO, _EUROPEAN):
        parts = pc.extract_regex(text, pattern)
        rows = np.flatnonzero(pc.is_valid(parts).to_numpy(zero_copy_only=False))
        if not len(rows):
            continue
        fields = {field.name: pc.struct_field(parts, field.name).take(pa.array(rows)) for field in parts.type}
        swap = np.zeros(len(rows), dtype=np.bool_)
        if pattern is _EUROPEAN and order == "month first":
            swap = pc.not_equal(fields["sep"], ".").to_numpy(zero_copy_only=False)
        value, valid, offset, zoned, finer = _assemble(fields, swap)
        micros[rows], known[rows] = value, valid
        naive += int((valid & ~zoned).sum())
        cut += int((valid & finer).sum())
        offsets.update(np.unique(offset[valid & zoned]).tolist())
    epochs: Mapping[str, int] = {}
    fits = present & ~known
    if fits.any():
        fits &= pc.fill_null(pc.match_substring_regex(text, _DIGITS), False).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(fits)
    if len(rows):
        parts = pc.extract_regex(text.take(pa.array(rows)), _DIGITS)
        fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(parts.field("f"), 6, "0"), 0, 6)
        numbers = _epochs(_number(parts.field("w")), _number(fraction), fits[rows])
        micros[rows], known[rows], epochs, cut = numbers.micros, numbers.known, numbers.epochs, cut + numbers.cut
    return Times(micros, known, present & ~known, naive, frozenset(offsets), cut, epochs)


_DIGITS = r"^(?P<w>\d{9,18}|[1-8]\d{18})(?:\.(?P<f>\d+))?$"
_UNITS = (("seconds", 10**8, 10**6), ("milliseconds", 10**11, 10**3), ("microseconds", 10**14, 1))
"""Units with the least number of each and its microseconds; up to a hundred times as many fit, from 1973 to 2286."""
_NANOSECONDS = 10**17


def _numbers_to_times(column: Any) -> Times:
    """Return the times of whole numbers or floats."""
    known = pc.is_valid(column).to_numpy(zero_copy_only=False)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    if not pa.types.is_floating(column.type):
        return _epochs(np.where(values >= LARGEST, 0, values).astype(np.int64), np.zeros(len(values), np.int64), known)
    values = np.where(np.abs(values.astype(np.float64)) < LARGEST, values, 0.0)
    floor = np.floor(values)
    return _epochs(floor.astype(np.int64), np.round((values - floor) * 1e6).astype(np.int64), known)


LARGEST = 9 * 10**18
"""Number from which on no number is a time, in any notation."""


def _epochs(whole: IntArray, millionths: IntArray, given: BoolArray) -> Times:
    """Return the times of these numbers and millionths, by size; others are bad."""
    nanos = given & (whole >= _NANOSECONDS)
    micros, known, finer = np.where(nanos, whole // 1000, 0), nanos, nanos & (whole % 1000 != 0)
    epochs = {"nanoseconds": int(nanos.sum())} if nanos.any() else {}
    for unit, least, size in _UNITS:
        fits = given & (whole >= least) & (whole < 100 * least)
        if fits.any():
            micros[fits] = whole[fits] * size + millionths[fits] * size // 10**6
            finer |= fits & (millionths * size % 10**6 != 0)
            known = known | fits
            epochs[unit] = int(fits.sum())
    return Times(micros, known, given & ~known, cut=int(finer.sum()), epochs=epochs)


def _assemble(fields: dict[str, Any], swap: BoolArray) -> tuple[IntArray, BoolArray, IntArray, BoolArray, BoolArray]:
    """Return microseconds, validity, offset in minutes, its presence, and cut places."""
    year, hour, minute, second = (_number(fields[name]) for name in ("y", "H", "M", "S"))
    day = np.where(swap, _number(fields["m"]), _number(fields["d"]))
    month = np.where(swap, _number(fields["d"]), _number(fields["m"]))
    fraction = pc.utf8_rpad(fields["f"], 12, "0")
    below = _number(pc.utf8_slice_codeunits(fraction, 0, 6))
    finer = _number(pc.utf8_slice_codeunits(fraction, 6, 12)) > 0

    half = pc.utf8_lower(fields["p"])
    pm, twelve = (pc.equal(half, h).to_numpy(zero_copy_only=False) for h in ("pm", "am"))
    valid = ~(pm | twelve) | ((hour >= 1) & (hour <= 12))
    hour = np.where(pm | twelve, hour % 12 + 12 * pm, hour)

    zone = pc.utf8_upper(fields["z"])
    zoned = pc.not_equal(zone, "").to_numpy(zero_copy_only=False)
    digits = pc.utf8_rpad(pc.replace_substring_regex(zone, r"\D", ""), 4, "0")
    minutes = _number(digits)
    offset = minutes // 100 * 60 + minutes % 100
    offset = np.where(pc.starts_with(zone, "-").to_numpy(zero_copy_only=False), -offset, offset)

    valid &= (year >= 1) & (month >= 1) & (month <= 12) & (hour <= 23) & (minute <= 59) & (second <= 59)
    valid &= (minutes % 100 <= 59) & (minutes // 100 <= 23)
    months = np.where(valid, (year - 1970) * 12 + month - 1, 0)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    after = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    valid &= (day >= 1) & (day <= after - first)
    seconds = (first + day - 1) * 86400 + hour * 3600 + (minute - offset) * 60 + second
    micros = np.where(valid, seconds, 0) * 1_000_000 + np.where(valid, below, 0)
    valid &= (micros >= _FIRST) & (micros <= _LAST)
    return micros, valid, offset, zoned, finer


def _number(digits: Any) -> IntArray:
    filled = pc.if_else(pc.equal(digits, ""), "0", digits)
    numbers: IntArray = pc.cast(filled, pa.int64()).to_numpy(zero_copy_only=False)
    return numbers

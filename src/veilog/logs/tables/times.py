"""Timestamps of tables: text in the usual notations and Arrow's time types, to microseconds in UTC, exactly.

Read are ISO 8601 (``2024-03-01``, ``2024-03-01 14:05``, ``2024-03-01T14:05:09.123456+01:00``, also with ``/`` or
``.``), ``dd.mm.yyyy``, and ``dd/mm/yyyy`` or ``mm/dd/yyyy`` (also with ``-``), each with an optional time of day, AM or
PM, and offset, and numbers that count from the beginning of 1970 in seconds, milliseconds, microseconds or nanoseconds:
how large a number is tells which, each value by itself. A time without offset is taken as UTC, and counted.
``25/12/2024`` says by itself which number is the day; what ``5/6/2024`` means is never taken from the times of other
cases: it is declared, or refused.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError

DayOrder = Literal["day first", "month first"]

_FIRST = int(np.datetime64("0001-01-01", "us").astype(np.int64))
_LAST = int(np.datetime64("9999-12-31T23:59:59.999999", "us").astype(np.int64))
"""What Python's datetime can show; beyond it a time is as good as unreadable."""

_CLOCK = (
    r"(?:(?:\s*[Tt]\s*|\s+)(?P<H>\d{1,2})(?::(?P<M>\d{2})(?::(?P<S>\d{2})(?:[.,](?P<f>\d{1,12}))?)?)?"
    r"\s*(?P<p>[AaPp][Mm])?\s*(?P<z>[Zz]|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?\s*$"
)
_ISO = r"^\s*(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})" + _CLOCK
_EUROPEAN = r"^\s*(?P<d>\d{1,2})(?P<sep>[-/.])(?P<m>\d{1,2})[-/.](?P<y>\d{4})" + _CLOCK
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?$")


@dataclass(frozen=True)
class Times:
    """A column of times: microseconds since 1970 in UTC where ``known``; ``bad`` where there was something else."""

    micros: IntArray
    known: BoolArray
    bad: BoolArray
    naive: int = 0
    """How many had no offset."""
    offsets: frozenset[int] = frozenset()
    """The offsets met, in minutes."""
    cut: int = 0
    """How many were finer than a microsecond."""
    epochs: Mapping[str, int] = field(default_factory=dict)
    """How many were numbers, by their unit."""

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
    """What a column says about the order of day and month in ``5/6/2024``."""

    doubtful: str | None = None
    """A date that needs to be told."""
    day_first: str | None = None
    month_first: str | None = None

    def order(self, path: str | None) -> DayOrder:
        """The order of every date of the column, each of which says it by itself; :class:`InputError` otherwise."""
        if self.day_first and self.month_first:
            raise InputError("date-order-mixed", path=path, day_first=self.day_first, month_first=self.month_first)
        if self.doubtful:
            code = "date-order-seems-day-first" if self.day_first else "date-order-seems-month-first"
            example = self.day_first or self.month_first
            code = "date-order-unclear" if example is None else code
            raise InputError(code, path=path, doubtful=self.doubtful, example=example)
        return "month first" if self.month_first else "day first"


def gather_evidence(text: pa.Array, evidence: Evidence) -> None:
    """Note what these dates say about the order of day and month."""
    # Whatever is read by that order: with any space before it, and with a point in second place (see _parse_slowly).
    text = pc.utf8_trim_whitespace(pc.drop_null(text))
    slashed = text.filter(pc.match_substring_regex(text, r"^\d{1,2}[-/]\d{1,2}[-/.]\d{4}"))
    if not len(slashed):
        return
    parts = pc.extract_regex(slashed, r"^(?P<a>\d{1,2})[-/](?P<b>\d{1,2})")
    a, b = (pc.cast(parts.field(i), pa.int64()).to_numpy(zero_copy_only=False) for i in (0, 1))
    day_a, day_b = ((n >= 1) & (n <= 31) for n in (a, b))  # what is no date says nothing, and is no time later
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
    """The times in an array of strings; null and blank are neither known nor bad."""
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
    """All of them by Arrow, if all are ISO 8601 and either all or none have an offset."""
    first = pc.drop_null(text[:_FIRST_FEW])[:1]  # Arrow takes long to fail at every value of a column
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        with contextlib.suppress(pa.ArrowInvalid):
            pc.cast(first, kind)
            values = pc.cast(text, kind)
            return _bounded(values, naive=True) if kind.tz is None else _bounded(values, offsets=_offsets(text))
    return None


def convert_times(column: pa.Array, name: str, path: str | None) -> Times:
    """The times in an Arrow array of a time, date or text-free type."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = _converted(column)
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


def _bounded(values: Any, *, naive: bool = False, offsets: frozenset[int] = frozenset()) -> Times:
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
"""Numbers from here on up to a hundred times as many are of that unit, from 1973 to 2286; its microseconds."""
_NANOSECONDS = 10**17


def _converted(column: Any) -> Times:
    """The times that whole numbers or floats are."""
    known = pc.is_valid(column).to_numpy(zero_copy_only=False)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    if not pa.types.is_floating(column.type):
        return _epochs(np.where(values >= LARGEST, 0, values).astype(np.int64), np.zeros(len(values), np.int64), known)
    values = np.where(np.abs(values.astype(np.float64)) < LARGEST, values, 0.0)
    floor = np.floor(values)
    return _epochs(floor.astype(np.int64), np.round((values - floor) * 1e6).astype(np.int64), known)


LARGEST = 9 * 10**18
"""From here on a number is no time, in whatever notation."""


def _epochs(whole: IntArray, millionths: IntArray, given: BoolArray) -> Times:
    """The times that these numbers and millionths are, by how large each is; what is no such time is bad."""
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
    """Microseconds, whether they are a time at all, the offset in minutes, whether it was given, and what was cut."""
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

"""Values, tags and nested attributes of XES: text to typed columns and back.

Dates are ``YYYY-MM-DDThh:mm:ss`` (or a space for the ``T``), a fraction of 1 to 9 digits, and ``Z``, ``+hh:mm``,
``+hhmm``, ``+hh`` or nothing. If the bulk parser does not recognise a date, the scalar one decides.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import AnyArray, BoolArray, IntArray
from veilog.logs.findings import Note
from veilog.logs.metadata import Attribute, Metadata
from veilog.messages import Message

NO_ZONE = -(1 << 15)
"""Offset in minutes of a date without a time zone."""

ROOT_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_US = (datetime(1, 1, 1, tzinfo=UTC) - ROOT_TIME) // timedelta(microseconds=1)
_MAX_US = (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - ROOT_TIME) // timedelta(microseconds=1)

_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
    r"(Z|z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL_FLOATS = {
    "INF": float("inf"),
    "+INF": float("inf"),
    "-INF": float("-inf"),
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]+)|#([0-9]+)|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_WHITE = str.maketrans("\t\n\r", "   ")


def unescape(raw: bytes) -> str:
    """Return the value of an XML attribute, with references resolved.

    Literal white space becomes spaces (XML 1.0, 3.3.3).
    """
    text = raw.decode("utf-8")
    if "\n" in text or "\t" in text or "\r" in text:
        text = text.replace("\r\n", " ").translate(_WHITE)
    if "&" not in text:
        return text
    return _REFERENCE.sub(_resolve, text)


def _resolve(match: re.Match[str]) -> str:
    hexadecimal, decimal, name = match.groups()
    if name is not None:
        return _NAMED[name]
    return chr(int(hexadecimal, 16) if hexadecimal is not None else int(decimal))


def parse_date(text: str) -> tuple[int, int, bool] | None:
    """Return a date as (microseconds, offset, True if precision was lost), or None.

    Microseconds count from 1970 in UTC. The offset is in minutes, or ``NO_ZONE``.
    """
    match = _DATE.fullmatch(text.strip(" \t\r\n"))
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    offset = NO_ZONE
    if zone is not None:
        offset = 0
        if zone not in "Zz":
            hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
            if hours > 23 or minutes > 59:
                return None
            offset = (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)
    digits = (fraction or "").ljust(9, "0")
    midnight = hour == "24"
    if midnight and (int(minute) or int(second) or int(digits)):
        return None
    try:
        moment = datetime(int(year), int(month), int(day), 0 if midnight else int(hour), int(minute), int(second))  # noqa: DTZ001
    except ValueError:
        return None
    us = (moment.replace(tzinfo=UTC) - ROOT_TIME) // timedelta(microseconds=1) + int(digits[:6])
    us += 86_400_000_000 * midnight - (0 if offset == NO_ZONE else offset * 60_000_000)
    if not _MIN_US <= us <= _MAX_US:
        return None
    return us, offset, digits[6:] != "000"


def parse_scalar(kind: str, text: str) -> tuple[Any, bool]:
    """Return (value, False), or (the text, True) where it does not fit the type.

    Dates are microseconds since 1970.
    """
    if kind in ("string", "id"):
        return text, False
    bare = text.strip(" \t\r\n")
    if kind == "int" and _INT.fullmatch(bare) and len(bare) < 40:
        value = int(bare)
        if -(1 << 63) <= value < 1 << 63:
            return value, False
    elif kind == "float":
        if bare in _SPECIAL_FLOATS:
            return _SPECIAL_FLOATS[bare], False
        if _FLOAT.fullmatch(bare):
            return float(bare), False
    elif kind == "boolean" and bare.lower() in _BOOLEANS:
        return _BOOLEANS[bare.lower()], False
    elif kind == "date" and (date := parse_date(bare)) is not None:
        return date[0], False
    return text, True


def format_date(moment: datetime) -> str:
    """Return a moment as ``2017-08-08T15:20:59.000+00:00``.

    There are six digits only where microseconds are not zero. Naive means UTC.
    """
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    digits = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    return moment.replace(tzinfo=None).isoformat(timespec=digits) + "+00:00"


def format_float(value: float) -> str:
    """Return the shortest text of a number, or ``INF``, ``-INF`` and ``NaN``."""
    if isfinite(value):
        return repr(value)
    return "NaN" if value != value else "INF" if value > 0 else "-INF"


def from_numpy(values: AnyArray, absent: BoolArray | None = None) -> pa.Array:
    """Return an Arrow array of numpy values, without pandas.

    ``pa.array`` would import pandas first, which takes longer than a small log.
    """
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    validity = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, pa.py_buffer(data)])


def to_numpy(values: pa.Array) -> AnyArray:
    """Return integers or booleans as numpy; values at nulls mean nothing."""
    data = values.buffers()[1]
    if data is None:
        return np.zeros(len(values), dtype=np.int64)
    if pa.types.is_boolean(values.type):
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
        return bits[values.offset : values.offset + len(values)].astype(np.bool_)
    width = values.type.bit_width // 8
    return np.frombuffer(data, dtype=f"i{width}", count=len(values), offset=values.offset * width)


def from_texts(texts: Sequence[str | None], kind: pa.DataType | None = None) -> pa.Array:
    """Return an Arrow array of strings (or of ``kind``), without pandas.

    ``kind`` is a type of strings or bytes.
    """
    kind = pa.string() if kind is None else kind
    raw = [b"" if text is None else text.encode("utf-8") for text in texts]
    wide = pa.types.is_large_string(kind)
    offsets = np.zeros(len(raw) + 1, dtype=np.int64)
    np.cumsum([len(r) for r in raw], out=offsets[1:])
    absent = np.array([text is None for text in texts], dtype=np.bool_)
    validity = pa.py_buffer(np.packbits(~absent, bitorder="little")) if absent.any() else None
    starts = pa.py_buffer(offsets if wide else offsets.astype(np.int32))
    return pa.Array.from_buffers(kind, len(raw), [validity, starts, pa.py_buffer(b"".join(raw))])


@dataclass(frozen=True)
class Dates:
    """Parsed dates: microseconds in UTC, masks, and offsets in minutes.

    The masks are True where a date could be read, and where precision was lost.
    """

    us: IntArray
    ok: BoolArray
    zones: npt.NDArray[np.int16]
    lost: BoolArray


_ZONE = re.compile(rb"([+-])([0-9]{2}):?([0-9]{2})?\Z")
_SHORTEST = 19
"""Bytes of a date without a fraction and a zone."""
_COLONS = (13, 16)
"""Places of colons in a date with seconds; Arrow takes others, too."""


def parse_dates(raw: pa.Array) -> Dates:
    """Return dates from a binary column, all at once if alike, else one by one."""
    alike = _parse_alike(raw)
    if alike is not None:
        return alike
    # References and line breaks inside a date are legal; the caller gives raw text, so resolve them here.
    found = [parse_date(unescape(value)) for value in raw.to_pylist()]
    us, zones, lost = zip(*(date or (0, NO_ZONE, False) for date in found), strict=True)
    ok = np.array([date is not None for date in found], dtype=np.bool_)
    return Dates(np.array(us, dtype=np.int64), ok, np.array(zones, dtype=np.int16), np.array(lost, dtype=np.bool_))


def _parse_alike(raw: pa.Array) -> Dates | None:
    """Return dates by Arrow; None unless all have a zone, or all have none."""
    offsets = np.frombuffer(raw.buffers()[1], dtype=np.int32)[raw.offset : raw.offset + len(raw) + 1]
    data = np.frombuffer(raw.buffers()[2] or b"", dtype=np.uint8)
    if np.diff(offsets).min() < _SHORTEST or any((data[offsets[:-1] + place] != ord(":")).any() for place in _COLONS):
        return None
    text = raw.cast(pa.string())
    for unit, zone in itertools.product(("us", "ns"), ("UTC", None)):
        with contextlib.suppress(pa.ArrowInvalid):
            us = to_numpy(text.cast(pa.timestamp(unit, zone)).view(pa.int64()))
            finer = us % 1000 != 0 if unit == "ns" else np.zeros(len(us), dtype=np.bool_)
            us = us // 1000 if unit == "ns" else us
            if us.min() < _MIN_US or us.max() > _MAX_US:
                return None
            zones = np.full(len(us), NO_ZONE, dtype=np.int16) if zone is None else _zones(raw, text)
            return Dates(us, np.ones(len(us), dtype=np.bool_), zones, finer)
    return None


def _zones(raw: pa.Array, text: pa.Array) -> npt.NDArray[np.int16]:
    """Return the offsets of dates that all have one, in minutes."""
    if pc.all(pc.ends_with(text, "Z")).as_py():
        return np.zeros(len(raw), dtype=np.int16)
    ends = pc.binary_slice(raw, -6, None).dictionary_encode()
    found = [_ZONE.search(end) for end in ends.dictionary.to_pylist()]
    minutes = [0 if m is None else int(m[1] + b"1") * (60 * int(m[2]) + int(m[3] or 0)) for m in found]
    return np.array(minutes, dtype=np.int16)[to_numpy(ends.indices)]


def format_dates(us: pa.Array) -> pa.Array:
    """Return :func:`format_date` of microseconds since 1970 in UTC.

    Raises OverflowError outside the years 1 to 9999.
    """
    bounds = pc.min_max(us).as_py()
    if bounds["min"] is not None and (bounds["min"] < _MIN_US or bounds["max"] > _MAX_US):
        raise OverflowError
    ms = pc.divide(us, 1000)
    text = ms.cast(pa.timestamp("ms")).cast(pa.string())
    fine = pc.not_equal(pc.multiply(ms, 1000), us)
    if pc.any(fine).as_py():
        text = pc.if_else(fine, us.cast(pa.timestamp("us")).cast(pa.string()), text)
    return pc.binary_join_element_wise(pc.binary_replace_slice(text, 10, 11, "T"), "+00:00", "")


SCALARS = ("string", "date", "int", "float", "boolean", "id")
NESTING = ("list", "container")


class NeedsNormalizing(Exception):
    """Legal construct that the fast reader leaves to the plain one.

    It never leaves the XES modules.
    """


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A tag and the text up to the next one. Values are still escaped, as in the file."""

    name: str
    delta: int
    """Change of the depth: 1 by a start tag, 0 by an empty element, -1 by an end tag."""
    attributes: dict[str, bytes]
    stray: bytes
    """Text that follows, without white space around it: XES has none."""


_PIECE = re.compile(
    rb"""<(/?)([^\s/>="']+)((?:\s+[^\s=<>"'/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(/?)>([^<]*)\Z""",
)
_ATTRIBUTE = re.compile(rb"""([^\s=<>"'/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def parse_piece(raw: bytes) -> TextPiece:
    """Take a tag apart; raise :class:`NeedsNormalizing` for no ordinary tag."""
    match = _PIECE.match(raw)
    if match is None:
        raise NeedsNormalizing
    closing, name, attributes, empty, text = match.groups()
    found = {key.decode("utf-8"): a or b for key, a, b in _ATTRIBUTE.findall(attributes)} if attributes else {}
    delta = -1 if closing else 0 if empty else 1
    return TextPiece(name.decode("utf-8"), delta, found, text.strip())


def stray_note(piece: TextPiece, line: int, count: int = 1) -> Note:
    return Note("stray-text", repr(piece.stray.decode("utf-8")[:80]), line, count)


def is_foreign(name: str) -> bool:
    """Return True if an XML attribute belongs to XML itself and not to XES.

    Such are namespaces and schema hints.
    """
    return name == "xmlns" or name.startswith(("xmlns:", "xsi:", "xml:"))


@dataclass(slots=True)
class Element:
    """An XML element as read, with unescaped attributes."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def moved(self, lines: int) -> Element:
        """Return the same element, that many lines further down in the file."""
        return Element(self.name, self.attributes, self.line + lines, [c.moved(lines) for c in self.children])


def read_tree(pieces: Sequence[bytes], lines: Sequence[int], parse: Callable[[bytes], TextPiece]) -> Element:
    """Return the element that starts with the first piece and ends with the last."""
    top = Element("", {}, 0)
    stack = [top]
    for raw, line in zip(pieces, lines, strict=True):
        piece = parse(raw)
        if piece.delta < 0:
            stack.pop()
            continue
        values = {k: unescape(v) for k, v in piece.attributes.items()}
        element = Element(piece.name, values, line)
        stack[-1].children.append(element)
        if piece.delta:
            stack.append(element)
    return top.children[0]


def read_attribute(element: Element, notes: list[Note], *, drop_bad: bool) -> Attribute | None:
    """Return an element as an XES attribute with its children, or ``None`` and a note.

    A value that does not fit its type stays text.
    """
    name = element.name
    if name not in SCALARS and name not in NESTING:
        notes.append(Note("unknown-element", f"<{name}>", element.line))
        return None
    key, text = element.attributes.get("key"), element.attributes.get("value")
    if key is None:
        notes.append(Note("incomplete-attribute", Message("example-without-key", element=name), element.line))
        return None
    extra = [a for a in element.attributes if a not in ("key", "value") and not is_foreign(a)]
    if extra or (name in NESTING and text):
        notes.append(
            Note(
                "unknown-attribute",
                Message("example-attribute-in", name=(extra or ["value"])[0], element=name),
                element.line,
            )
        )
    value: Any = None
    if name in SCALARS:
        if text is None and not element.children:
            notes.append(
                Note("incomplete-attribute", Message("example-without-value", element=name, key=key), element.line)
            )
            return None
        if text is not None:
            value, bad = parse_scalar(name, text)
            if bad:
                notes.append(Note("bad-value", f"{name} {key!r} = {text!r}", element.line))
                if drop_bad:
                    return None
            elif name == "date":
                value = ROOT_TIME + timedelta(microseconds=value)
    children = read_children(element, notes, drop_bad=drop_bad)
    return Attribute(key, value, name, children)


def read_children(element: Element, notes: list[Note], *, drop_bad: bool) -> tuple[Attribute, ...]:
    """Return the children of an attribute; the values of a list are its children.

    If a list has attributes in addition to its values, the values are wrapped in a child of type ``values``.
    """
    nesting = element.name == "list"
    own = [c for c in element.children if not (nesting and c.name == "values")]
    values = [c for c in element.children if nesting and c.name == "values"]
    direct = tuple(a for c in own if (a := read_attribute(c, notes, drop_bad=drop_bad)))
    if not values:
        return direct
    inner = tuple(a for v in values for c in v.children if (a := read_attribute(c, notes, drop_bad=drop_bad)))
    return (*direct, Attribute("", None, "values", inner)) if direct else inner


def read_metadata(root: Element, elements: Iterable[Element], *, drop_bad: bool) -> tuple[Metadata, list[Note]]:
    """Return a log's metadata, in the elements before its traces, and notes on them."""
    notes: list[Note] = []
    extensions, classifiers, attributes = [], [], []
    scopes: list[tuple[str, tuple[Attribute, ...]]] = []
    for element in elements:
        given = element.attributes
        known: tuple[str, ...] = ()
        if element.name == "extension":
            known = ("name", "prefix", "uri")
            extensions.append((given.get("name", ""), given.get("prefix", ""), given.get("uri", "")))
        elif element.name == "classifier":
            known = ("name", "keys", "scope")
            classifiers.append((given.get("name", ""), given.get("keys", ""), given.get("scope", "event")))
        elif element.name == "global":
            known = ("scope",)
            children = (read_attribute(child, notes, drop_bad=drop_bad) for child in element.children)
            scopes.append((given.get("scope", "event"), tuple(a for a in children if a is not None)))
        else:
            attribute = read_attribute(element, notes, drop_bad=drop_bad)
            if attribute is not None:
                attributes.append(attribute)
            continue
        extra = [a for a in given if a not in known and not is_foreign(a)]
        if extra:
            notes.append(
                Note(
                    "unknown-attribute",
                    Message("example-attribute-in", name=extra[0], element=element.name),
                    element.line,
                )
            )
        if element.name != "global":
            notes.extend(Note("unknown-element", f"<{c.name}>", c.line) for c in element.children)
    about = Metadata(
        root.attributes.get("xes.features"),
        root.attributes.get("xes.version"),
        tuple(extensions),
        tuple(scopes),
        tuple(classifiers),
        tuple(attributes),
    )
    return about, notes


def to_json(attribute: Attribute) -> dict[str, Any]:
    """Return an attribute for the column ``xes:nested``, without absent parts."""
    result: dict[str, Any] = {"key": attribute.key, "type": attribute.type}
    if attribute.value is not None:
        value = attribute.value
        if isinstance(value, datetime):
            value = format_date(value)
        elif isinstance(value, float) and not isfinite(value):
            value = format_float(value)
        result["value"] = value
    if attribute.children:
        result["children"] = [to_json(c) for c in attribute.children]
    return result


def dump_nested(entries: list[dict[str, Any]]) -> str:
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def from_json(entry: dict[str, Any]) -> Attribute:
    """Return the inverse of :func:`to_json`; raise TypeError for other entries."""
    kind, value = entry["type"], entry.get("value")
    if kind not in (*SCALARS, *NESTING, "values") or not isinstance(entry["key"], str):
        raise TypeError(f"no attribute of XES: {kind}")
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"no value of XES: {type(value).__name__}")
    if isinstance(value, str) and kind in ("date", "float"):
        parsed, bad = parse_scalar(kind, value)
        if not bad:
            value = ROOT_TIME + timedelta(microseconds=parsed) if kind == "date" else parsed
    elif kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    return Attribute(entry["key"], value, kind, tuple(from_json(c) for c in entry.get("children", ())))

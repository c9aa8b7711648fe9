"""Scanner of a block of XES into columns of events and cases.

Expat checks every byte first, so it is well-formed XML. Two sources give the same text to the scanner.
:class:`PassThrough` passes the bytes through and only blanks comments and processing instructions. :class:`Normalizer`
writes the document anew from expat's events. It serves what the fast one leaves alone (:class:`NeedsNormalizing`):
other encodings than UTF-8, a document type, CDATA, prefixed element names. Both refuse entities and external
references, so nothing is ever fetched or blown up.
"""

from __future__ import annotations

import contextlib
import mmap
import pickle
import re
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from veilog._typing import BoolArray, Int32Array, IntArray
from veilog.errors import InputError
from veilog.logs.eventlog import TIMESTAMP
from veilog.logs.findings import Note
from veilog.logs.input.quality_checks import check_width
from veilog.logs.input.source import GZIP_MAGIC, MAX_VALUE, consumed_fraction, open_input
from veilog.logs.xes.columns import (
    CONTAINER,
    EVENT,
    LIST,
    TRACE,
    Coded,
    Coder,
    ColumnKey,
    Placed,
    convert,
    place,
    spread_values,
    strings,
)
from veilog.logs.xes.values import (
    NO_ZONE,
    SCALARS,
    Dates,
    Element,
    NeedsNormalizing,
    TextPiece,
    from_numpy,
    parse_piece,
    read_attribute,
    read_tree,
    stray_note,
    to_json,
    unescape,
)
from veilog.messages import Message

_TRUNCATED = {
    expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN],
    expat.errors.codes[expat.errors.XML_ERROR_PARTIAL_CHAR],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION],
}
_DECLARATION = 256
"""Bytes at the beginning in which it is."""


_MISSPELLED = re.compile(
    rb"""\A((?:\xef\xbb\xbf)?<\?xml\s[^<>]*?)(\sencoding\s*=\s*(?:"utf_?8"|'utf_?8'))(?=[\s?])""", re.IGNORECASE
)
"""Misspelled names of UTF-8 in a declaration, for which expat knows only the letters of ASCII."""


class ByteSource(Protocol):
    """Source of checked text for the scanner, which raises on the first fault."""

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes:
        """Finish after the last byte; raise unless the document is complete."""


def count_lines(data: bytes) -> int:
    """Return the number of line ends: line feeds, and carriage returns without one."""
    newlines = data.count(b"\n")
    return newlines if b"\r" not in data else newlines + data.count(b"\r") - data.count(b"\r\n")


def too_long(path: str, line: int, column: int | None = None) -> InputError:
    """Return the error for a tag or text that may be a bomb."""
    return InputError("xes-tag-too-long", path=path, line=line, column=column, max_value=MAX_VALUE >> 20)


class CheckedParser:
    """An expat parser whose faults are InputErrors."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.parser = expat.ParserCreate()
        self.encoding: str | None = None
        self.parser.XmlDeclHandler = self._read_declaration
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity
        self.parser.ExternalEntityRefHandler = self._external
        self._fed = 0

    def parse(self, data: bytes, *, final: bool) -> None:
        if not self._fed:  # without a name it is UTF-8; all else stays in its place
            head = _MISSPELLED.sub(lambda found: found[1] + b" " * len(found[2]), data[:_DECLARATION], count=1)
            data = head + data[_DECLARATION:]
        self._fed += len(data)
        if final and not self._fed:
            raise InputError("file-empty", path=self.path)
        try:
            self.parser.Parse(data, final)
        except expat.ExpatError as error:
            raise self._fault(error, final=final) from None
        except (LookupError, ValueError):
            raise InputError("xes-encoding-not-supported", path=self.path, line=1, encoding=self.encoding) from None
        # Where the parser waits for the end of a tag or a comment, it is at that one's beginning.
        if 0 <= self.parser.CurrentByteIndex < self._fed - MAX_VALUE:
            raise too_long(self.path, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)

    def _fault(self, error: expat.ExpatError, *, final: bool) -> InputError:
        code = "xml-not-well-formed"
        if final and error.code in _TRUNCATED:
            code = "xml-truncated"
        elif error.code == expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]:
            code = "xml-token-invalid" if self.encoding else "xml-token-not-utf8"
        return InputError(
            code,
            path=self.path,
            line=error.lineno,
            column=error.offset + 1,
            why=expat.ErrorString(error.code),
            encoding=self.encoding,
        )

    def refuse(self, code: str, **values: Any) -> InputError:
        """Return the error of this code at the place that the parser has reached."""
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
        return InputError(code, path=self.path, line=line, column=column, **values)

    def _read_declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        self.encoding = encoding

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if system is not None or public is not None:
            raise self.refuse("xml-document-type-outside", system=system)

    def _entity(self, name: str, *_: Any) -> None:
        raise self.refuse("xml-entity-declared", name=name)

    def _external(self, context: str, base: Any, system: Any, public: Any) -> int:
        raise self.refuse("xml-reference-outside", system=system or public)


_SPECIAL = re.compile(rb"<!--.*?-->|<\?.*?\?>", re.DOTALL)


class PassThrough:
    """Source that passes UTF-8 through and blanks comments and instructions.

    Their line ends stay.
    """

    def __init__(self, path: str) -> None:
        self._checked = CheckedParser(path)
        parser = self._checked.parser
        parser.StartDoctypeDeclHandler = self._unusual
        parser.StartCdataSectionHandler = self._unusual
        self._held = b""
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        if not self._begun and data:
            if b"\0" in data[:4] or data[:2] in (b"\xfe\xff", b"\xff\xfe"):
                raise NeedsNormalizing
            self._begun = True
            self._checked.parse(data, final=False)
            data = data.removeprefix(b"\xef\xbb\xbf")
        else:
            self._checked.parse(data, final=False)
        if (self._checked.encoding or "utf-8").lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
            raise NeedsNormalizing
        if self._held:
            data, self._held = self._held + data, b""
        # Looking for the single characters first is many times faster than for the pairs.
        if (b"!" in data or b"?" in data) and (b"<!" in data or b"<?" in data):
            data = _SPECIAL.sub(lambda m: b"\n" * count_lines(m.group()), data)
            open_at = min((i for i in (data.find(b"<!"), data.find(b"<?")) if i >= 0), default=len(data))
            data, self._held = data[:open_at], data[open_at:]
        if data.endswith(b"<"):  # perhaps the start of the next one
            data, self._held = data[:-1], data[-1:]
        return data

    def finish(self) -> bytes:
        self._checked.parse(b"", final=True)
        if self._held:
            raise NeedsNormalizing
        return b""

    def open_part(self) -> None:
        """Go on in the middle of a log, before a trace."""
        self._begun = True
        self._checked.parse(b"<log>", final=False)

    def close_part(self) -> None:
        """Stop in the middle of a log, before a trace."""
        if (self._checked.encoding or "utf-8").lower() not in ("utf-8", "utf8"):
            raise NeedsNormalizing  # the next part could not know about it
        self._checked.parse(b"</log>", final=False)

    def _unusual(self, *_: Any) -> None:
        raise NeedsNormalizing


_ESCAPES = {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_ESCAPED = re.compile('[&<"\n\r\t]')


class Normalizer:
    """Source that writes the document anew for the scanner, each line where it was."""

    def __init__(self, path: str) -> None:
        self._checked = CheckedParser(path)
        parser = self._checked.parser
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        self._out: list[str] = []
        self._line = 1
        self._scopes: list[dict[str, str]] = [{}]
        self._root_uri: str | None = None

    def feed(self, data: bytes) -> bytes:
        self._checked.parse(data, final=False)
        return self._take()

    def finish(self) -> bytes:
        self._checked.parse(b"", final=True)
        return self._take()

    def _take(self) -> bytes:
        text = "".join(self._out)
        self._out.clear()
        return text.encode("utf-8")

    def _start(self, name: str, attributes: list[str]) -> None:
        line = self._checked.parser.CurrentLineNumber
        if line > self._line:
            self._out.append("\n" * (line - self._line))
            self._line = line
        pairs = list(zip(attributes[::2], attributes[1::2], strict=True))
        scope = self._scopes[-1]
        declared = {key[6:]: value for key, value in pairs if key.startswith("xmlns:")}
        if declared:
            scope = {**scope, **declared}
        if len(self._scopes) == 1:
            self._root_uri = scope.get(name.partition(":")[0]) if ":" in name else None
        self._scopes.append(scope)
        written = "".join(f' {key}="{_ESCAPED.sub(lambda m: _ESCAPES[m.group()], value)}"' for key, value in pairs)
        self._out.append(f"<{self._local(name, scope)}{written}>")

    def _end(self, name: str) -> None:
        self._out.append(f"</{self._local(name, self._scopes.pop())}>")

    def _text(self, text: str) -> None:
        if stray := text.strip(" \t\r\n"):
            self._out.append(stray.replace("&", "&amp;").replace("<", "&lt;").replace("\n", " "))

    def _local(self, name: str, scope: dict[str, str]) -> str:
        """Return the name without a prefix that stands for XES.
        The root's namespace counts as that."""
        prefix, colon, local = name.partition(":")
        if not colon:
            return name
        uri = scope.get(prefix)
        if uri is None:
            raise self._checked.refuse("xml-prefix-undeclared", name=name)
        return local if uri == self._root_uri or "xes-standard" in uri else name


@dataclass
class XesBlock:
    """Content of one block of the file.

    Case rows count from the first trace of the block; an event or attribute whose trace began in an earlier block has
    case row -1.
    """

    cases: int
    case_lines: IntArray
    event_cases: IntArray
    event_lines: IntArray
    event_columns: dict[ColumnKey, pa.Array] = field(default_factory=dict)
    case_columns: dict[ColumnKey, tuple[IntArray, pa.Array]] = field(default_factory=dict)
    event_nested: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    case_nested: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    log_elements: list[Element] = field(default_factory=list)
    bad_times: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    zones: dict[int, tuple[int, str, int]] = field(default_factory=dict)
    """Number of event timestamps by their offset from UTC, and the first with its line."""
    notes: list[Note] = field(default_factory=list)
    values: int = 0
    """Number of attributes in the columns."""
    lines: int = 0
    """Ends of lines within the block."""

    def moved(self, lines: int) -> XesBlock:
        """Return the same block, that many lines further down in the file."""
        return replace(
            self,
            case_lines=self.case_lines + lines,
            event_lines=self.event_lines + lines,
            log_elements=[e.moved(lines) for e in self.log_elements],
            zones={zone: (count, example, line + lines) for zone, (count, example, line) in self.zones.items()},
            notes=[replace(note, line=(note.line or 0) + lines) for note in self.notes],
        )


@dataclass(frozen=True)
class _View:
    """A block under work: its pieces, their places, and the lines of the file."""

    coded: Coded
    placed: Placed
    newlines: IntArray
    first_line: int

    def lines(self, rows: IntArray) -> IntArray:
        return np.searchsorted(self.newlines, self.coded.edges[rows]) + self.first_line

    def line(self, row: Any) -> int:
        return int(self.lines(np.array([row]))[0])

    def raw(self, row: int) -> bytes:
        return bytes(self.coded.whole[row].as_py())


class Scanner:
    """Scanner of the blocks of one file in turn."""

    def __init__(self, path: str, *, drop_bad: bool = False, plain: bool = False) -> None:
        self._path = path
        self._drop_bad = drop_bad
        self._coder = Coder(plain=plain)

    def scan(self, data: bytes, depth: int, line: int, *, final: bool) -> tuple[XesBlock, int, int] | None:
        """Return (block, bytes used, depth after them) for the leading part of ``data``.

        ``None`` if that holds nothing whole. ``data`` starts with a tag at ``line``; ``depth`` is 1 within the log and
        2 within a trace.
        """
        if len(data) >= 1 << 31:
            raise InputError("xes-element-too-large", path=self._path, line=line)
        coded = self._coder.code(data, final=final)
        if coded is None:
            return None
        long = np.flatnonzero(np.diff(coded.edges) > MAX_VALUE)
        if len(long):
            raise too_long(self._path, line + count_lines(data[: int(coded.edges[long[0]])]))
        placed = place(coded, depth, final=final, path=self._path, line=line)
        if placed.size == 0:
            return None
        view = _View(coded, placed, _newlines(data), line)
        traces, starts = np.flatnonzero(placed.is_trace), np.flatnonzero(placed.is_event)
        block = XesBlock(len(traces), view.lines(traces), placed.case_of[starts].astype(np.int64), view.lines(starts))

        has_value = coded.column[: placed.size] >= 0
        rows = np.flatnonzero(has_value & placed.in_event)
        for key, owners, values in self._attributes(view, rows, placed.event_of, block, timed=True):
            block.event_columns[key] = spread_values(values, owners, len(starts))
        rows = np.flatnonzero(has_value & placed.in_trace)
        for key, owners, values in self._attributes(view, rows, placed.case_of, block, timed=False):
            block.case_columns[key] = (owners.astype(np.int64), values)
        self._scan_nested(view, block)
        self._odd(view, block)
        used = int(coded.edges[placed.size])
        block.lines = int(np.searchsorted(view.newlines, used))
        return block, used, placed.depth

    def _attributes(
        self, view: _View, rows: IntArray, owner_of: Int32Array, block: XesBlock, *, timed: bool
    ) -> Iterator[tuple[ColumnKey, Int32Array, pa.Array]]:
        """Yield (column, owners, values) for the attributes in ``rows``, by appearance."""
        if not len(rows):
            return
        coded, groups = view.coded, self._groups(view, rows, owner_of, block)
        cells = len(groups) * len(block.event_lines) if timed else 0
        check_width(len(groups), cells, len(rows), self._path, view.first_line)
        block.values += len(rows)
        for key, members in groups:
            owners = owner_of[members]
            raw = coded.values.take(from_numpy(coded.value_at[members]))
            converted = convert(key.type, raw)
            is_time = timed and key.key == TIMESTAMP and key.type == "date"
            if converted.dates is not None:
                _note_dates(view, members, raw, converted.dates, block)
                if is_time:
                    _note_times(view, members, raw, converted.dates, block, owners)
            good = converted.good
            if good is None:
                yield key, owners, converted.values
                continue
            if good.any():
                yield key, owners[good], converted.values
            if is_time:
                continue
            bad = raw.filter(from_numpy(~good))
            example = f"{key.type} {key.key!r} = {unescape(bad[0].as_py())!r}"
            block.notes.append(Note("bad-value", example, view.line(members[~good][0]), len(bad)))
            if not self._drop_bad:
                yield key._replace(as_text=True), owners[~good], strings(bad.dictionary_encode())

    def _groups(
        self, view: _View, rows: IntArray, owner_of: Int32Array, block: XesBlock
    ) -> list[tuple[ColumnKey, IntArray]]:
        """Return the pieces of each column in document order, without repeated attributes.
        The first one of an element stays."""
        all_columns, keys = view.coded.column, self._coder.keys
        columns = all_columns[rows]
        # numpy sorts short integers in linear time
        order = np.argsort(columns.astype(np.uint16) if len(keys) <= 1 << 16 else columns, kind="stable")
        bounds = np.flatnonzero(np.diff(columns[order])) + 1
        groups = sorted(np.split(rows[order], bounds), key=lambda g: int(g[0]))
        named = [(keys[all_columns[g[0]]], g) for g in groups]
        names = dict.fromkeys(key.key for key, _ in named)
        if len(names) == len(named) and all((np.diff(owner_of[g]) > 0).all() for g in groups):
            return named
        number = {name: i for i, name in enumerate(names)}
        numbers = np.array([number.get(key.key, -1) for key in keys], dtype=np.int64)
        pairs = owner_of[rows].astype(np.int64) * len(number) + numbers[columns]
        kept = np.zeros(view.placed.size, dtype=np.bool_)
        kept[rows[np.unique(pairs, return_index=True)[1]]] = True
        dropped = rows[~kept[rows]]
        if len(dropped):
            example = Message("example-key", key=keys[all_columns[dropped[0]]].key)
            block.notes.append(Note("duplicate-attribute", example, view.line(dropped[0]), len(dropped)))
        return [(key, g[kept[g]]) for key, g in named if kept[g].any()]

    def _scan_nested(self, view: _View, block: XesBlock) -> None:
        """Read nested attributes, lists, containers, and elements directly in the log."""
        p = view.placed
        name, delta = view.coded.name[: p.size], view.coded.delta[: p.size]
        whole = (delta >= 0) & (~_leaves(view) | (name == LIST) | (name == CONTAINER))
        for mask, owner_of, target in (
            (p.in_event & whole, p.event_of, block.event_nested),
            (p.in_trace & whole & ~p.is_event, p.case_of, block.case_nested),
        ):
            for start in np.flatnonzero(mask).tolist():
                element = self._tree(view, start)
                # The value of an attribute with children has gone into its column.
                in_column = element.name in SCALARS and "key" in element.attributes and "value" in element.attributes
                if in_column:
                    del element.attributes["value"]
                attribute = read_attribute(element, block.notes, drop_bad=self._drop_bad)
                if attribute is not None:
                    target.append((int(owner_of[start]), to_json(attribute)))
        in_log = (p.before == 1) & (delta >= 0) & (name != TRACE)
        block.log_elements = [self._tree(view, start) for start in np.flatnonzero(in_log).tolist()]

    def _tree(self, view: _View, start: int) -> Element:
        stop = start + 1
        if view.coded.delta[start] == 1:
            p = view.placed
            depth, step = p.before[start], 64
            while True:  # the next piece that stands at the same depth again follows the end tag
                found = np.flatnonzero(p.before[stop : stop + step] == depth)
                if len(found):
                    stop += int(found[0])
                    break
                stop += step
                if stop >= p.size:
                    stop = p.size
                    break
                step *= 4
        rows = np.arange(start, stop)
        raw = view.coded.whole.slice(start, stop - start).to_pylist()
        return read_tree(raw, view.lines(rows).tolist(), self._coder.parse)

    def _odd(self, view: _View, block: XesBlock) -> None:
        """Note single pieces that XES does not know: text, elements and XML attributes."""
        coded, p = view.coded, view.placed
        name = coded.name[: p.size]
        if coded.stray[: p.size].any():
            rows = np.flatnonzero(coded.stray[: p.size])
            piece = self._coder.parse(view.raw(int(rows[0])))
            block.notes.append(stray_note(piece, view.line(rows[0]), len(rows)))
        direct = (p.in_event | p.in_trace) & _leaves(view)
        wrong = direct & ~p.is_event & ((name == 0) | (name >= EVENT))
        if wrong.any():
            rows = np.flatnonzero(wrong)
            element = self._coder.parse(view.raw(int(rows[0]))).name
            block.notes.append(Note("unknown-element", f"<{element}>", view.line(rows[0]), len(rows)))
        # What is inside nested attributes is noted where these are read.
        mine = coded.others[coded.others < p.size]
        codes = coded.codes[: len(mine)]
        shallow = (direct & (name > 0) & (name < LIST) | p.is_event | p.is_trace)[mine]
        for rule, examples in (
            ("unknown-attribute", [t.unknown for t in coded.tags]),
            ("incomplete-attribute", [t.incomplete for t in coded.tags]),
        ):
            if not any(examples):
                continue
            mask = shallow & np.array([e is not None for e in examples])[codes]
            if mask.any():
                i = int(np.argmax(mask))
                block.notes.append(Note(rule, examples[codes[i]] or "", view.line(mine[i]), int(mask.sum())))


def _leaves(view: _View) -> BoolArray:
    """Return a mask of empty elements, and of start tags just before their end tag."""
    delta = view.coded.delta
    leaf: BoolArray = delta == 0
    leaf[:-1] |= (delta[:-1] == 1) & (delta[1:] == -1)
    return leaf[: view.placed.size]


def _newlines(data: bytes) -> IntArray:
    """Return where lines end: at line feeds, and at carriage returns without one."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    if b"\r" not in data:
        return np.flatnonzero(buffer == 10)
    is_end = buffer == 10
    returns = buffer == 13
    returns[:-1] &= ~is_end[1:]
    return np.flatnonzero(is_end | returns)


def _note_dates(view: _View, members: IntArray, raw: pa.Array, dates: Dates, block: XesBlock) -> None:
    for rule, mask in (
        ("timestamp-without-zone", dates.ok & (dates.zones == NO_ZONE)),
        ("precision-lost", dates.lost),
    ):
        if mask.any():
            count, example, line = _first(view, members, raw, mask)
            block.notes.append(Note(rule, example, line, count))


def _note_times(
    view: _View, members: IntArray, raw: pa.Array, dates: Dates, block: XesBlock, owners: Int32Array
) -> None:
    if not dates.ok.all():
        count, example, line = _first(view, members, raw, ~dates.ok)
        block.notes.append(Note("bad-timestamp", repr(example), line, count))
        block.bad_times = owners[~dates.ok].astype(np.int64)
    zones = dates.zones[dates.ok]
    for zone in [int(zones[0])] if len(zones) and (zones == zones[0]).all() else np.unique(zones).tolist():
        block.zones[zone] = _first(view, members, raw, dates.ok & (dates.zones == zone))


def _first(view: _View, members: IntArray, raw: pa.Array, mask: BoolArray) -> tuple[int, str, int]:
    """Return (number, first value, its line) of the rows in a mask that has some."""
    i = int(np.argmax(mask))
    return int(np.count_nonzero(mask)), unescape(raw[i].as_py()), view.line(members[i])


# The blocks of an XES file, of the whole file or of a part of it that another process reads --------------------------

# A file that is not compressed is split before a trace. Each part is checked as a document of its own: all but the
# first begin with an added ``<log>``, all but the last end with an added ``</log>``. A part that ends inside a
# comment, an attribute's value or another element is no well-formed document then, so a wrong split is an error,
# never a different log; the caller answers any trouble by reading the file in one piece.


Progress = Callable[[float], None]

BLOCK = 2 << 20
SMALLEST = 16 << 20
"""Smallest file for which a second process brings more than it costs."""
_TRACE = re.compile(rb"<trace[\s/>]")
# Another process reads XES and nothing else: a bare package in veilog's place saves it all other imports.
_BOOT = """
import pickle, sys, types
sys.path[:], package = pickle.load(sys.stdin.buffer), types.ModuleType("veilog")
package.__path__ = pickle.load(sys.stdin.buffer)
sys.modules["veilog"] = package
from veilog.logs.xes.scanner import work
work(sys.stdin.buffer, sys.stdout.buffer)
"""


@dataclass(frozen=True)
class XesPart:
    """Part of a file, from one trace to another.

    It goes from byte ``start`` (0: the file's start) up to byte ``stop`` (None: the file's end).
    """

    start: int = 0
    stop: int | None = None


@dataclass
class XesReading:
    """Way to read a file, with its root and lines once its blocks are read."""

    path: Path
    limit: int | None
    drop_bad: bool
    plain: bool = False
    part: XesPart = field(default_factory=XesPart)
    root: Element | None = None
    lines: int = 0


def read_blocks(reading: XesReading, progress: Progress | None = None) -> Generator[XesBlock, None, None]:
    """Yield the blocks in order.

    When they are through, the document was complete and ``reading`` has its root and lines.
    """
    path = str(reading.path)
    scanner = Scanner(path, drop_bad=reading.drop_bad, plain=reading.plain)
    with open_input(reading.path, limit=reading.limit) as stream:
        source: ByteSource = Normalizer(path) if reading.plain else PassThrough(path)
        texts = _texts(stream, source, reading.part)
        data, line, depth, wanted, final = b"", 1, 1 if reading.part.start else 0, 0, False
        notes: list[Note] = []
        while not final:
            text = next(texts, None)
            final = text is None
            data += text or b""
            if not depth:
                start = data.find(b"<")
                stop = data.find(b"<", start + 1) if start >= 0 else -1
                if final and stop < 0:
                    stop = len(data)
                if start < 0 or stop < 0:
                    _check_length(data, line, path)
                    continue
                at = line + count_lines(data[:start])
                reading.root, piece = _root(data[start:stop], at, path)
                if piece.stray:
                    notes.append(stray_note(piece, at))
                line += count_lines(data[:stop])
                data, depth = data[stop:], 1
            if len(data) < wanted and not final:
                _check_length(data, line, path)
                continue
            found = scanner.scan(data, depth, line, final=final)
            if found is None:
                _check_length(data, line, path)
                wanted = 2 * len(data)  # an element larger than a block: take twice as much before trying again
                continue
            block, used, depth = found
            line += block.lines
            data, wanted = data[used:], 0
            block.notes[:0] = notes
            notes.clear()
            yield block
            if progress is not None:
                progress(consumed_fraction(stream))
        reading.lines = line - 1 + count_lines(data)


def _check_length(data: bytes, line: int, path: str) -> None:
    """Raise if the text after the last tag is longer than any value may be."""
    if len(data) > MAX_VALUE:
        start = data.rfind(b"<")
        if len(data) - start > MAX_VALUE:
            raise too_long(path, line + count_lines(data[: max(start, 0)]))


def _texts(stream: BinaryIO, source: ByteSource, part: XesPart) -> Iterator[bytes]:
    """Yield the checked text of a part block by block; raise if it is incomplete."""
    if part.start:
        assert isinstance(source, PassThrough)
        stream.seek(part.start)
        source.open_part()
    left = sys.maxsize if part.stop is None else part.stop - part.start
    while raw := stream.read(min(BLOCK, left)):
        left -= len(raw)
        yield source.feed(raw)
    if part.stop is not None:
        assert isinstance(source, PassThrough)
        source.close_part()
    yield source.finish()


def _root(raw: bytes, line: int, path: str) -> tuple[Element, TextPiece]:
    piece = parse_piece(raw)
    if ":" in piece.name:
        raise NeedsNormalizing
    if piece.name != "log":
        raise InputError("xes-root-not-log", path=path, line=line, name=piece.name)
    return Element("log", {k: unescape(v) for k, v in piece.attributes.items()}, line), piece


# ---- several processes


def read_in_parts(
    reading: XesReading, processes: int, progress: Progress | None = None
) -> Generator[XesBlock, None, None] | None:
    """Return the blocks of a file that several processes read, or None for one.

    Raises :class:`NeedsNormalizing` if the file cannot be split or another process fails, whatever the reason.
    """
    bounds = _bounds(reading.path, processes)
    if bounds is None or not sys.executable:
        return None
    return _gather(reading, bounds, progress)


def _gather(reading: XesReading, bounds: list[int], progress: Progress | None) -> Generator[XesBlock, None, None]:
    from veilog._process import interpreter  # here, as it loads much for processes

    parts = [XesPart(a, b) for a, b in zip([0, *bounds], [*bounds, None], strict=True)]
    answers: list[IO[bytes]] = []
    try:
        with contextlib.ExitStack() as workers:
            for part in parts[1:]:
                task = XesReading(reading.path, reading.limit, reading.drop_bad, part=part)
                worker = workers.enter_context(interpreter("-c", _BOOT))
                assert worker.stdin is not None
                assert worker.stdout is not None
                answers.append(worker.stdout)
                pickle.dump([folder for folder in sys.path if folder], worker.stdin)  # "" is the current folder
                pickle.dump([str(Path(__file__).parents[2])], worker.stdin)
                pickle.dump(task, worker.stdin)
                worker.stdin.close()
            reading.part = parts[0]
            yield from read_blocks(reading, progress)
            lines = reading.lines
            for answer in answers:
                blocks, more = pickle.load(answer)
                for block in blocks:
                    yield block.moved(lines)
                lines += more
            reading.lines = lines
    except (InputError, OSError, EOFError, pickle.UnpicklingError, ValueError) as error:
        raise NeedsNormalizing from error


def work(source: BinaryIO, target: BinaryIO) -> None:
    """Read the part of another process's request and hand over its blocks.

    Nothing is handed over if there was any trouble.
    """
    reading: XesReading = pickle.load(source)
    with contextlib.suppress(InputError, NeedsNormalizing, BrokenPipeError):
        blocks = list(read_blocks(reading))
        pickle.dump((blocks, reading.lines), target, protocol=5)
        target.flush()


def _bounds(path: Path, processes: int) -> list[int] | None:
    """Return the places of the traces to split a file before, or ``None``.
    ``None`` is for a file that is too small, packed or no ordinary file."""
    try:
        found = path.stat()
        processes = min(processes, found.st_size // SMALLEST)
        if not stat.S_ISREG(found.st_mode) or processes < 2 or path.suffix.lower() == ".zip":
            return None
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content[:2] == GZIP_MAGIC:
                return None
            traces = [_TRACE.search(content, found.st_size * i // processes) for i in range(1, processes)]
    except OSError:
        return None
    return sorted({trace.start() for trace in traces if trace is not None}) or None

"""The blocks of an XES file, of the whole file or of a part of it that another process reads.

A file that is not compressed is split before a trace. Each part is checked as a document of its own: all but the first
begin with an added ``<log>``, all but the last end with an added ``</log>``. A part that ends inside a comment, an
attribute's value or another element is no well-formed document then, so a wrong split is an error, never a different
log; the caller answers any trouble by reading the file in one piece.
"""

from __future__ import annotations

import contextlib
import mmap
import pickle
import re
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO

from veilog._process import interpreter
from veilog.errors import InputError
from veilog.logs.findings import Note
from veilog.logs.input.source import GZIP_MAGIC, MAX_VALUE, consumed_fraction, open_input
from veilog.logs.xes.scanner import ByteSource, Normalizer, PassThrough, Scanner, XesBlock, count_lines, too_long
from veilog.logs.xes.values import Element, NeedsNormalizing, TextPiece, parse_piece, stray_note, unescape

Progress = Callable[[float], None]

BLOCK = 2 << 20
SMALLEST = 16 << 20
"""Below this size a second process costs more than it brings."""
_TRACE = re.compile(rb"<trace[\s/>]")
# Another process reads XES and nothing else: a bare package in veilog's place saves it all other imports.
_BOOT = """
import pickle, sys, types
sys.path[:], package = pickle.load(sys.stdin.buffer), types.ModuleType("veilog")
package.__path__ = pickle.load(sys.stdin.buffer)
sys.modules["veilog"] = package
from veilog.logs.xes.parts import work
work(sys.stdin.buffer, sys.stdout.buffer)
"""


@dataclass(frozen=True)
class XesPart:
    """From the trace at byte ``start`` (0: the file's start) up to that at byte ``stop`` (None: the file's end)."""

    start: int = 0
    stop: int | None = None


@dataclass
class XesReading:
    """How to read a file, and what is known after reading it beside its blocks."""

    path: Path
    limit: int | None
    drop_bad: bool
    plain: bool = False
    part: XesPart = field(default_factory=XesPart)
    root: Element | None = None
    lines: int = 0


def read_blocks(reading: XesReading, progress: Progress | None = None) -> Generator[XesBlock, None, None]:
    """The blocks in order; when they are through, the document was complete and ``reading`` has its root and lines."""
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
    """Raise if what follows the last tag, which may go on, is longer than any value or text may be."""
    if len(data) > MAX_VALUE:
        start = data.rfind(b"<")
        if len(data) - start > MAX_VALUE:
            raise too_long(path, line + count_lines(data[: max(start, 0)]))


def _texts(stream: BinaryIO, source: ByteSource, part: XesPart) -> Iterator[bytes]:
    """The checked text of a part, block by block; raises at its end unless it was complete."""
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
    """The blocks of a file that several processes read, or ``None`` where that is not worth while.

    Raises :class:`NeedsNormalizing` if the file cannot be split or another process fails, whatever the reason.
    """
    bounds = _bounds(reading.path, processes)
    if bounds is None or not sys.executable:
        return None
    return _gather(reading, bounds, progress)


def _gather(reading: XesReading, bounds: list[int], progress: Progress | None) -> Generator[XesBlock, None, None]:
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
    """Another process: read the part asked for, then hand over all its blocks; nothing if there was any trouble."""
    reading: XesReading = pickle.load(source)
    with contextlib.suppress(InputError, NeedsNormalizing, BrokenPipeError):
        blocks = list(read_blocks(reading))
        pickle.dump((blocks, reading.lines), target, protocol=5)
        target.flush()


def _bounds(path: Path, processes: int) -> list[int] | None:
    """The traces to split a file before, as places in it; ``None`` if it is too small, packed or no ordinary file."""
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

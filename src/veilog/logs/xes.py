"""XES (IEEE 1849) event logs: :func:`read_xes` and :func:`write_xes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from veilog.errors import InputError
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings
from veilog.logs.streams import DEFAULT_LIMIT, consumed_fraction, open_input
from veilog.logs.xes_assemble import Assembler
from veilog.logs.xes_bytes import Fast, Plain, Source, count_lines
from veilog.logs.xes_scan import Block, Scanner
from veilog.logs.xes_text import Element, Unusual, parse_piece
from veilog.logs.xes_values import unescape
from veilog.logs.xes_write import write_xes

__all__ = ["read_xes", "write_xes"]

Progress = Callable[[float], None]

_BLOCK = 2 << 20


def read_xes(
    path: Path,
    *,
    findings: Findings,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
) -> EventLog:
    """Read a plain or gzip-compressed XES file.

    Everything in the file ends up in the event log or in ``findings``; ``limit`` bounds what a compressed file may
    unpack to, ``progress`` is called with the fraction read so far. A document that does not end properly, declares
    entities or refers to anything outside itself is refused (:class:`InputError` with line and column).
    """
    path = Path(path)
    findings.path = findings.path or str(path)
    before = dict(findings._found)
    try:
        return _read(path, findings, limit, progress, plain=False)
    except Unusual:
        findings._found.clear()
        findings._found.update(before)
        return _read(path, findings, limit, progress, plain=True)


def _read(path: Path, findings: Findings, limit: int | None, progress: Progress | None, *, plain: bool) -> EventLog:
    drop_bad = findings.policy("bad-value") == "drop"
    scanner = Scanner(str(path), drop_bad=drop_bad, plain=plain)
    assembler = Assembler(str(path), findings)
    source: Source = Plain(str(path)) if plain else Fast(str(path))
    root: list[Element] = []
    with open_input(path, limit=limit) as stream:
        for block in _blocks(stream, source, scanner, root, str(path)):
            assembler.add(block)
            if progress is not None:
                progress(consumed_fraction(stream))
    return assembler.finish(root[0], drop_bad=drop_bad)


def _blocks(stream: BinaryIO, source: Source, scanner: Scanner, root: list[Element], path: str) -> Iterator[Block]:
    """The blocks of a document in order; its root element goes into ``root``."""
    data, line, depth, size = b"", 1, 0, _BLOCK
    final = False
    while not final:
        raw = stream.read(size)
        final = not raw
        data += source.finish() if final else source.feed(raw)
        if not depth:
            start = data.find(b"<")
            stop = data.find(b"<", start + 1) if start >= 0 else -1
            if final and stop < 0:
                stop = len(data)
            if start < 0 or stop < 0:
                continue
            root.append(_root(data[start:stop], line + count_lines(data[:start]), path))
            line += count_lines(data[:stop])
            data, depth = data[stop:], 1
        found = scanner.scan(data, depth, line, final=final)
        if found is None:
            size = max(size, len(data))  # an element larger than a block: take twice as much before trying again
            continue
        block, used, depth = found
        line += count_lines(data[:used])
        data, size = data[used:], _BLOCK
        yield block


def _root(raw: bytes, line: int, path: str) -> Element:
    piece = parse_piece(raw)
    if ":" in piece.name:
        raise Unusual
    if piece.name != "log":
        raise InputError(
            f"The root element is <{piece.name}>, not <log>: this is not an event log in XES.", path=path, line=line
        )
    return Element("log", {k: unescape(v) for k, v in piece.attributes.items()}, line)

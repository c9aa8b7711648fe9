"""The reader and writer of XES (IEEE 1849)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.eventlog import EventLog
from veilog.logs.findings import Findings
from veilog.logs.input.reader import ReadRequest
from veilog.logs.input.roles import AS_IT_IS, Declared
from veilog.logs.input.source import Source
from veilog.logs.input.streams import DEFAULT_LIMIT
from veilog.logs.xes.assemble import Assembler
from veilog.logs.xes.parts import XesReading, read_blocks, read_in_parts
from veilog.logs.xes.scan import XesBlock
from veilog.logs.xes.text import Unusual
from veilog.logs.xes.write import write_xes, write_xes_pieces

__all__ = ["XES", "read_xes", "write_xes"]

Progress = Callable[[float], None]


class _Xes:
    """See :class:`veilog.logs.input.reader.Reader` and :class:`veilog.logs.input.reader.Writer`."""

    name = "XES"
    suffixes = (".xes", ".xes.gz")
    typed = False

    def recognises(self, source: Source) -> bool:
        return source.suffix in self.suffixes

    def read(self, source: Source, asked: ReadRequest) -> EventLog:
        path, say = source.path, asked.progress
        return read_xes(
            path,
            findings=asked.findings,
            limit=source.limit,
            processes=asked.processes,
            progress=None if say is None else lambda fraction: say(f"reading {path.name}", fraction),
            declared=asked.declared,
        )

    def write(self, log: EventLog, file: BinaryIO, target: Path, *, lossy: bool) -> None:
        write_xes(log, file)

    def write_pieces(
        self, pieces: Iterable[EventLog], file: BinaryIO, target: Path, *, lossy: bool, eventless: pa.Table | None
    ) -> None:
        write_xes_pieces(pieces, file)


XES = _Xes()


def read_xes(
    path: Path,
    *,
    findings: Findings,
    limit: int | None = DEFAULT_LIMIT,
    processes: int = 1,
    progress: Progress | None = None,
    declared: Declared = AS_IT_IS,
) -> EventLog:
    """Read a plain or gzip-compressed XES file.

    Everything in the file ends up in the event log or in ``findings``. ``limit`` bounds what a compressed file may
    unpack to, ``processes`` is how many may share a large file (the result is the same), ``progress`` is called with
    the fraction read so far. A document that does not end properly, declares entities or refers to anything outside
    itself is refused (:class:`InputError` with line and column).
    """
    reading = XesReading(Path(path), limit, drop_bad=findings.policy("bad-value") == "drop")
    findings.path = findings.path or str(path)
    before = findings.copy()
    blocks = read_in_parts(reading, processes, progress)
    if blocks is not None:
        try:
            return _assemble(blocks, reading, findings, declared)
        except Unusual:
            findings.restore(before)
    try:
        reading = XesReading(reading.path, limit, reading.drop_bad)
        return _assemble(read_blocks(reading, progress), reading, findings, declared)
    except Unusual:
        findings.restore(before)
    if not reading.path.is_file():
        raise InputError("form-xml-read-twice", path=path)
    reading = XesReading(reading.path, limit, reading.drop_bad, plain=True)
    return _assemble(read_blocks(reading, progress), reading, findings, declared)


def _assemble(
    blocks: Generator[XesBlock, None, None], reading: XesReading, findings: Findings, declared: Declared = AS_IT_IS
) -> EventLog:
    assembler = Assembler(str(reading.path), findings, declared)
    with closing(blocks):
        for block in blocks:
            assembler.add(block)
    assert reading.root is not None, "a complete document has a root element"
    return assembler.finish(reading.root, drop_bad=reading.drop_bad)

"""Uploads and downloads: names safe on every system, and several files as one."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import hmac
import io
import re
import shutil
import unicodedata
import zipfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from veilog.web.jobs.records import DISK_FULL, Problem, is_full

_FIELDS = 20
_FIELD = 4096
_HEADERS = 128 << 10
_BLOCK = 1 << 20
_PATIENCE = 60.0
"""Seconds to wait for the rest of a refused upload, which a browser sends before it shows the answer."""
_LONGEST_NAME = 200
_AT_ONCE = 2
"""Number of simultaneous uploads of one browser."""


@dataclass
class Upload:
    """A file that came whole, and the fields that came with it."""

    path: Path
    name: str = ""
    size: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    hashed: Any = field(default_factory=hashlib.sha256, repr=False)
    """SHA-256 of the bytes that have arrived."""

    def digest(self, key: bytes) -> str:
        """Return a keyed digest of the content, which reveals nothing without the key."""
        return hmac.new(key, self.hashed.digest(), hashlib.sha256).hexdigest()


_RESERVE = 64 << 20
"""Bytes of the disk that uploads leave free, so that a spent release can be entered.

The ledger of ten thousand releases (20 MB) is rewritten with its journal (20 MB), and so are the server's records.
"""


class Places:
    """Numbers of current uploads by session."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextlib.contextmanager
    def one(self, session: str) -> Iterator[bool]:
        """Take a place while the block lasts, and yield True if there was one."""
        free = self._taken[session] < _AT_ONCE
        self._taken[session] += free
        try:
            yield free
        finally:
            self._taken[session] -= free
            self._taken += Counter()  # drop sessions with no uploads


async def receive(
    request: Request, target: Path, limit: int, check: Callable[[Mapping[str, str]], None] = lambda fields: None
) -> Upload:
    """Write the file of a multipart form to ``target``.

    :class:`Problem` if that fails; then nothing of it stays. ``check`` gets the fields that came before the file, and
    may refuse it before any of it is written.
    """
    chunks = request.stream()
    try:
        return await _receive(request, chunks, target, limit, check)
    except BaseException as error:  # also if the browser has gone
        target.unlink(missing_ok=True)  # noqa: ASYNC240 - at once
        if isinstance(error, Problem) or is_full(error):
            await drain(chunks)
        if is_full(error):
            raise DISK_FULL from error
        raise


async def _receive(
    request: Request, chunks: AsyncIterator[bytes], target: Path, limit: int, check: Callable[[Mapping[str, str]], None]
) -> Upload:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary, length = options.get(b"boundary"), request.headers.get("content-length", "")
    size = int(length) if length.isascii() and length.isdecimal() else 0
    if kind != b"multipart/form-data" or not boundary or len(boundary) > 256:
        raise Problem(400, "upload-form-without-file")
    if size > limit + _HEADERS + _FIELDS * _FIELD:
        raise too_large(limit)
    _check_disk(target, size)
    with target.open("xb") as file:
        form = _Form(file, Upload(target), limit)
        parser = MultipartParser(boundary, form.callbacks(), max_header_size=_HEADERS)  # type: ignore[arg-type]
        checked = False
        try:
            async for chunk in chunks:
                parser.write(chunk)
                if form.upload.name and not checked:
                    checked = True
                    await asyncio.to_thread(check, form.before)
                if len(form.block) > _BLOCK:
                    await asyncio.to_thread(form.write)
            await asyncio.to_thread(form.write)
        except FormParserError as error:
            raise _malformed_problem() from error
    if not form.ended:
        raise _malformed_problem()
    if not form.upload.name:
        raise Problem(400, "upload-file-not-chosen")
    return form.upload


class _Form:
    """A form that the parser fills part by part."""

    def __init__(self, file: BinaryIO, upload: Upload, limit: int) -> None:
        self.upload = upload
        self.before: dict[str, str] = {}
        """Fields that came before the file."""
        self.block = bytearray()
        self.ended = False
        self._file = file
        self._limit = limit
        self._header = (bytearray(), bytearray())
        self._headers = 0
        self._options: dict[bytes, bytes] = {}
        self._value = bytearray()

    def callbacks(self) -> dict[str, object]:
        return {
            "on_part_begin": self.part_begins,
            "on_header_field": lambda data, start, end: self.header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self.header(1, data[start:end]),
            "on_header_end": self.header_ends,
            "on_part_data": lambda data, start, end: self.data(data[start:end]),
            "on_part_end": self.part_ends,
            "on_end": self.ends,
        }

    def part_begins(self) -> None:
        self._options = {}
        self._headers = 0
        self._value.clear()

    def header(self, which: int, data: bytes) -> None:
        self._headers += len(data)
        if self._headers > _HEADERS:
            raise _malformed_problem()
        self._header[which].extend(data)

    def header_ends(self) -> None:
        name, value = (bytes(part) for part in self._header)
        for part in self._header:
            part.clear()
        if name.lower() == b"content-disposition":
            self._options = parse_options_header(value)[1]
            if self.is_file and self.upload.name:
                raise Problem(400, "upload-files-several")
            if self.is_file:
                self.upload.name = self._options[b"filename"].decode("utf-8", "replace")
                self.before = dict(self.upload.fields)

    @property
    def is_file(self) -> bool:
        return self._options.get(b"name") == b"file" and b"filename" in self._options

    def data(self, data: bytes) -> None:
        if self.is_file:
            self.upload.size += len(data)
            if self.upload.size > self._limit:
                raise too_large(self._limit)
            self.block.extend(data)
            return
        self._value.extend(data)
        if len(self._value) > _FIELD:
            raise _malformed_problem()

    def part_ends(self) -> None:
        if self.is_file:
            return
        name = self._options.get(b"name", b"").decode("utf-8", "replace")
        if len(self.upload.fields) >= _FIELDS or len(name) > _FIELD:
            raise _malformed_problem()
        self.upload.fields[name] = self._value.decode("utf-8", "replace")

    def ends(self) -> None:
        self.ended = True

    def write(self) -> None:
        _check_disk(self.upload.path, len(self.block))
        self.upload.hashed.update(self.block)
        self._file.write(self.block)
        self._file.flush()
        self.block.clear()


def _check_disk(target: Path, size: int) -> None:
    """Refuse a block that would take the disk's last room; uploads share this check."""
    if shutil.disk_usage(target.parent).free < size + _RESERVE:
        raise DISK_FULL


async def drain(chunks: AsyncIterator[bytes]) -> None:
    """Take the rest that a browser sends, for a while: only then it shows the answer."""
    with contextlib.suppress(Exception):  # the browser has gone or takes too long, so it gets no answer
        async with asyncio.timeout(_PATIENCE):
            async for _ in chunks:
                pass


def too_large(limit: int) -> Problem:
    """Return the error for a file that is larger than the server accepts."""
    return Problem(413, "upload-too-large", n=round(limit / (1 << 20)))


def _malformed_problem() -> Problem:
    return Problem(400, "upload-cut-off")


def suffix_of(name: str, known: Sequence[str]) -> str:
    """Return a file's suffix, which gives its format; :class:`Problem` if unknown."""
    longest_first = sorted(known, key=len, reverse=True)
    found = next((suffix for suffix in longest_first if name.lower().endswith(suffix)), None)
    if found is not None:
        return found
    raise Problem(400, "upload-ending-not-read", suffixes=", ".join(known))


def shorten_name(name: str) -> str:
    """Return a log's name for the pages, without invisible characters, cut if long."""
    seen = "".join(char if unicodedata.category(char)[0] not in "CZ" else " " for char in name).strip() or "log"
    if len(seen) <= _LONGEST_NAME:
        return seen
    return f"{seen[: _LONGEST_NAME - 31]}…{seen[-30:]}"


def download_name(made: float, epsilon: str | None, file: str) -> str:
    """Return the name of a file for download: its kind, the day, and the budget.

    The name of the log is no part of it: that may be the name of a person, and nothing hides it. The name has only
    letters, digits and dashes, and the points of numbers and suffixes. So it is one name, and the same, on every
    system.
    """
    day = datetime.datetime.fromtimestamp(made, datetime.UTC).astimezone().date().isoformat()
    budget = re.sub(r"[^0-9.]+", "", (epsilon or "").replace(",", "."))[:12].strip(".")
    stem, _, suffix = file.rpartition(".")
    return f"{'-'.join(filter(None, (stem, day, f'eps{budget}' if budget else '')))}.{suffix}"


class _Pipe(io.RawIOBase):
    """A buffer that keeps written bytes until they are taken."""

    def __init__(self) -> None:
        self.held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        block = bytes(data)
        self.held += block
        return len(block)

    def taken(self) -> bytes:
        block = bytes(self.held)
        self.held.clear()
        return block


def zip_files(files: Mapping[str, Path]) -> Iterator[bytes]:
    """Yield a ZIP file of these files block by block, without a copy on disk."""
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in files.items():
            with path.open("rb") as file, archive.open(zipfile.ZipInfo.from_file(path, name), "w") as entry:
                while block := file.read(_BLOCK):
                    entry.write(block)
                    yield pipe.taken()
    yield pipe.taken()

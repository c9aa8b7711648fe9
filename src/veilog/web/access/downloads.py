"""What leaves through the browser: names that are safe on every system, and several files as one."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["named", "zipped"]

_BLOCK = 1 << 20


def named(made: float, epsilon: str | None, file: str) -> str:
    """Return what a file is called where it goes: what it is, the day, and the budget.

    The name of the log is no part of it: that may be the name of a person, and nothing hides it. Letters, digits and
    dashes, and the points of numbers and suffixes only, so that it is one name, and the same, on every system.
    """
    day = datetime.datetime.fromtimestamp(made, datetime.UTC).astimezone().date().isoformat()
    budget = re.sub(r"[^0-9.]+", "", (epsilon or "").replace(",", "."))[:12].strip(".")
    stem, _, suffix = file.rpartition(".")
    return f"{'-'.join(filter(None, (stem, day, f'eps{budget}' if budget else '')))}.{suffix}"


class _Pipe(io.RawIOBase):
    """What is written into it waits to be taken."""

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


def zipped(files: Mapping[str, Path]) -> Iterator[bytes]:
    """Yield a ZIP file of these files, block by block: nothing of it is kept on the disk or in memory."""
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in files.items():
            with path.open("rb") as file, archive.open(zipfile.ZipInfo.from_file(path, name), "w") as entry:
                while block := file.read(_BLOCK):
                    entry.write(block)
                    yield pipe.taken()
    yield pipe.taken()

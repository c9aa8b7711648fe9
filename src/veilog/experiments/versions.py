"""What a row says of how it was made: a digest of its log, and the machine."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from veilog._process import machine_memory

__all__ = ["file_digest", "machine"]


@lru_cache(maxsize=1)
def machine() -> str:
    """The machine in words, as far as it says: processors, memory, Python and numpy."""
    whole = machine_memory()
    memory = [f"{whole / 2**30:.0f} GiB"] if whole else []
    parts = [f"{os.cpu_count()} cores {platform.machine()}", *memory, platform.system()]
    return ", ".join([*parts, f"Python {platform.python_version()}", f"numpy {version('numpy')}"])


def file_digest(path: Path) -> str:
    """Digest of a log, so that another log under the same name is another cell."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]

"""What is answered when a request cannot be: a status, what is wrong, and what to do about it."""

from __future__ import annotations

import errno
import sqlite3
from typing import Any

from veilog.errors import VeilogError


class Problem(VeilogError):
    """A request that is answered by a page that says what is wrong."""

    def __init__(self, status: int, code: str, **values: Any) -> None:
        self.status = status
        super().__init__(code, **values)


DISK_FULL = Problem(507, "disk-full")
ENOUGH_KEPT = Problem(507, "enough-kept")
QUEUE_FULL = Problem(429, "queue-full")
UPLOADING = Problem(429, "uploads-running")


def is_full(error: BaseException) -> bool:
    """Whether this error says that there is no room left on the disk."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

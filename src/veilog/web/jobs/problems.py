"""What is answered when a request cannot be: a status, what is wrong, and what to do about it."""

from __future__ import annotations

import errno
import sqlite3

from veilog.errors import VeilogError


class Problem(VeilogError):
    """A request that is answered by a page that says what is wrong."""

    def __init__(self, status: int, words: str, advice: str) -> None:
        self.status = status
        self.words = words
        self.advice = advice
        super().__init__(f"{words} {advice}")


DISK_FULL = Problem(507, "The disk is full.", "Delete logs or results that are no longer needed, and try again.")


ENOUGH_KEPT = Problem(
    507,
    "Of this browser so many logs and releases are kept that there is no room for more.",
    "Delete some that are no longer needed, and try again.",
)
QUEUE_FULL = Problem(
    429, "So many jobs of this browser wait that no more are taken.", "Wait until some have ended, or cancel some."
)
UPLOADING = Problem(
    429, "Two logs of this browser are being copied already.", "Wait until one of them is there, and send it again."
)


def is_full(error: BaseException) -> bool:
    """Whether this error says that there is no room left on the disk."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

"""What the server knows of a log, of a job, and of itself."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from veilog._language import current
from veilog.errors import VeilogError
from veilog.web.jobs.results import Kind, LogMeasures, ReadLog, Result, from_text

State = Literal["queued", "running", "done", "failed", "cancelled"]

ENDED: tuple[State, ...] = ("done", "failed", "cancelled")

FILES = (
    *(f"{stem}.{ending}" for stem in ("release", "release-models") for ending in ("xes", "csv", "parquet", "xlsx")),
    *("internal-report.html", "recipient-report.html", "dossier.html", "certificate.json"),
)
"""What a release may leave for download."""


@dataclass(frozen=True)
class JobRequest:
    """What a job was asked to release; empty for one that reads."""

    plan: Mapping[str, Any] | None = None
    """A :class:`veilog.Plan` as JSON; None for what releases nothing."""
    form: Mapping[str, str] = field(default_factory=dict)
    """The fields as they were filled in, to be filled in again."""
    write: str | None = None
    """The job whose release is only to be written again, because the disk was full."""
    language: str = field(default_factory=current, compare=False)
    """What the job writes is in the language of whoever asks for it."""


@dataclass(frozen=True)
class JobRecord:
    """A piece of work on a log: reading it, or making a release of it."""

    id: str
    session: str
    log: str
    kind: Kind
    state: State
    request: JobRequest
    kept: str | None
    """The JSON of its result."""
    problem: str | None
    """Why there is no result, in words for the user."""
    created: float
    """Seconds since the epoch, as the next two."""
    started: float | None
    finished: float | None
    entry: int | None = None
    """Its number in the ledger; None until it has set something aside there."""
    text: str = ""
    """What it is doing."""
    fraction: float | None = None
    """How much of that is done, where it is known."""
    ahead: int = 0
    """How many jobs are before it in the queue."""
    left: float | None = None
    """Seconds, estimated."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def result(self) -> Result | None:
        """What it found or made."""
        return None if self.kept is None else from_text(self.kind, self.kept)


@dataclass(frozen=True)
class LogRecord:
    """A log that somebody brought."""

    id: str
    session: str
    name: str
    """As the browser called it: for display only, never a path."""
    size: int
    created: float
    format: str
    """One of :func:`veilog.logs.input.formats.known_suffixes`."""
    columns: dict[str, str]
    """The columns for case, activity and timestamp that were chosen by hand; what is missing is guessed."""
    reading: JobRecord | None
    """The newest job that read it."""
    content: str = ""
    """What its file is recognised by, however it is read."""
    readings: tuple[str, ...] = ()
    """What this very file was recognised by, however it was read: they have one account."""
    entries: tuple[tuple[int, float], ...] = ()
    """The numbers of all releases in the ledger that are known to be of this file, whoever made them, and when their
    jobs had ended."""

    @property
    def measured(self) -> LogMeasures | None:
        """What its owner sees of it; None until it has been read and nothing is left to decide about that."""
        result = None if self.reading is None else self.reading.result
        return result.measured if isinstance(result, ReadLog) else None

    @property
    def read_as(self) -> str:
        """How it was read, as a ledger notes it with subsets; empty until it has been read."""
        return "" if self.measured is None else self.measured.read_as

    @property
    def cases(self) -> int:
        """The number of its cases; 0 until it has been read. Confidential."""
        return 0 if self.measured is None else self.measured.statistics.cases


@dataclass(frozen=True)
class ServerSettings:
    """How this server runs."""

    folder: Path
    """Where everything lies that people bring and make."""
    ledger: Path
    """The one ledger of all who are let in: they are one data owner."""
    token: str = field(repr=False)
    lasting_token: bool = False
    """The token is of a file, for several people, and not of this start."""
    host: str = "127.0.0.1"
    port: int = 0
    max_upload: int = 2 << 30
    max_kept: int = 200
    """Logs and releases that one browser may keep, so that it cannot fill the disk."""
    max_waiting: int = 20
    """Jobs of one browser that may wait at once."""
    workers: int = 2
    job_memory: int = 4 << 30
    """Bytes that one worker may take."""
    job_seconds: float = 600.0
    """Seconds of processor time that one job may take."""
    thorough: bool = True
    """Whether a release is also tried at prediction, and compared with a log of many variants, which takes longest."""
    language: str | None = None
    """What pages are written in for those who have not chosen; None: as their browsers ask."""
    seed: int | None = None
    """Test mode: every release is repeatable, and none has a guarantee."""


# What is answered when a request cannot be ---------------------------------------------------------------------------

# What is answered when a request cannot be: a status, what is wrong, and what to do about it.


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

"""Records of the server: a log, a job, and its own settings."""

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
"""Names of the files that a release may leave for download."""


@dataclass(frozen=True)
class JobRequest:
    """The request of a job: the release to make, or nothing for a job that reads."""

    plan: Mapping[str, Any] | None = None
    """A :class:`veilog.ReleaseRequest` as JSON; None for a job without a release."""
    form: Mapping[str, str] = field(default_factory=dict)
    """Fields as the user filled them in, to fill the form again."""
    write: str | None = None
    """Job whose release is only to be written again, because the disk was full."""
    language: str = field(default_factory=current, compare=False)
    """Language of the job's output: that of the user who requests it."""


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
    """JSON of its result."""
    problem: str | None
    """Reason why there is no result, in words for the user."""
    created: float
    """Seconds since the epoch, as the next two."""
    started: float | None
    finished: float | None
    entry: int | None = None
    """Its number in the ledger; None until it has reserved something there."""
    text: str = ""
    """Present step of its work."""
    fraction: float | None = None
    """Fraction of the work that is done, if it is known."""
    ahead: int = 0
    """Number of jobs before it in the queue."""
    left: float | None = None
    """Estimated seconds that remain."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def result(self) -> Result | None:
        """Result that it found or made."""
        return None if self.kept is None else from_text(self.kind, self.kept)


@dataclass(frozen=True)
class LogRecord:
    """A log that a user brought."""

    id: str
    session: str
    name: str
    """Name that the browser sent: for display only, never a path."""
    size: int
    created: float
    format: str
    """Suffix, one of :func:`veilog.logs.input.formats.known_suffixes`."""
    columns: dict[str, str]
    """Columns chosen for case, activity and timestamp; veilog guesses missing ones."""
    reading: JobRecord | None
    """Newest job that read it."""
    content: str = ""
    """Mark by which its file is recognised, however it is read."""
    readings: tuple[str, ...] = ()
    """Fingerprints of all readings of this file; they share one account."""
    entries: tuple[tuple[int, float], ...] = ()
    """Ledger numbers of the file's known releases, with the ends of their jobs."""

    @property
    def measured(self) -> LogMeasures | None:
        """Measures for the data owner; None until it has been read without open decisions."""
        result = None if self.reading is None else self.reading.result
        return result.measured if isinstance(result, ReadLog) else None

    @property
    def read_as(self) -> str:
        """Description of its reading, as a ledger notes it with subsets; empty until then."""
        return "" if self.measured is None else self.measured.read_as

    @property
    def cases(self) -> int:
        """Number of its cases; 0 until it has been read. Confidential."""
        return 0 if self.measured is None else self.measured.statistics.cases


@dataclass(frozen=True)
class ServerSettings:
    """Settings of this server."""

    folder: Path
    """Folder of everything that users bring and make."""
    ledger: Path
    """The one ledger of all users with access: they are one data owner."""
    token: str = field(repr=False)
    lasting_token: bool = False
    """True if the token is from a file, for several people, and not of this start."""
    host: str = "127.0.0.1"
    port: int = 0
    max_upload: int = 2 << 30
    max_kept: int = 200
    """Number of logs and releases that one browser may keep, to protect the disk."""
    max_waiting: int = 20
    """Number of jobs of one browser that may wait at once."""
    workers: int = 2
    job_memory: int = 4 << 30
    """Bytes that one worker may take."""
    job_seconds: float = 600.0
    """Seconds of processor time that one job may take."""
    thorough: bool = True
    """True to try prediction too, and to compare logs of many variants: the slowest part."""
    language: str | None = None
    """Language of pages before a user chooses one; None for the browser's."""
    seed: int | None = None
    """Seed of the test mode: every release is repeatable, and none has a guarantee."""


# Problems of requests: a status, what is wrong, and what to do about it ----------------------------------------------


class Problem(VeilogError):
    """A request with an error, which a page describes."""

    def __init__(self, status: int, code: str, **values: Any) -> None:
        self.status = status
        super().__init__(code, **values)


DISK_FULL = Problem(507, "disk-full")
ENOUGH_KEPT = Problem(507, "enough-kept")
QUEUE_FULL = Problem(429, "queue-full")
UPLOADING = Problem(429, "uploads-running")


def is_full(error: BaseException) -> bool:
    """Return True if this error means that the disk has no room left."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

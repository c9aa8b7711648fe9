"""What the server knows of a log, of a job, and of itself: plain facts, as the pages show them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = ["ENDED", "FILES", "LEDGERS", "WRITE", "JobRecord", "Kind", "LogRecord", "Settings", "State"]

Kind = Literal["read", "release"]
State = Literal["queued", "running", "done", "failed", "cancelled"]

ENDED: tuple[State, ...] = ("done", "failed", "cancelled")

FILES = ("release.xes", "release.csv", "release.parquet", "inside.html", "outside.html", "certificate.json")
"""What a release may leave for download."""
WRITE = "write"
"""In a request: the job whose release is only to be written again, because the disk was full."""
LEDGERS = "ledgers"
"""The folder of the ledgers of single browsers, in that of the server."""


@dataclass(frozen=True)
class JobRecord:
    """A piece of work on a log: reading it, or making a release of it."""

    id: str
    session: str
    log: str
    kind: Kind
    state: State
    request: dict[str, Any]
    result: dict[str, Any] | None
    problem: str | None
    """Why there is no result, in words for the user."""
    created: float
    """Seconds since the epoch, as the next two."""
    started: float | None
    finished: float | None
    text: str
    """What it is doing."""
    fraction: float | None
    """How much of that is done, where it is known."""
    ahead: int
    """How many jobs are before it in the queue."""
    left: float | None
    """Seconds, estimated."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED


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
    """One of :func:`veilog.logs.reader.known_suffixes`."""
    columns: dict[str, str]
    """The columns for case, activity and timestamp that were chosen by hand; what is missing is guessed."""
    reading: JobRecord | None
    """The newest job that read it."""


@dataclass(frozen=True)
class Settings:
    """How this server runs."""

    folder: Path
    """Where everything lies that people bring and make."""
    ledger: Path | None
    """The one ledger of all browsers, if the operator names one; else each browser has its own."""
    token: str = field(repr=False)
    lasting_token: bool = False
    """The token is of a file, not of this start: who was let in by another one is let in no more."""
    host: str = "127.0.0.1"
    port: int = 0
    max_upload: int = 2 << 30
    workers: int = 2
    job_memory: int = 4 << 30
    """Bytes that one worker may take."""
    seed: int | None = None
    """Test mode: every release is repeatable, and none has a guarantee."""

    def ledger_of(self, session: str) -> Path:
        """Return the ledger that the releases of this browser are entered in."""
        return self.ledger or self.folder / LEDGERS / f"{session}.ledger"

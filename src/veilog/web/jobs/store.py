"""The records of the server in one SQLite file: sessions, logs, jobs, sent forms.

They outlive a restart. The files of logs and jobs lie next to it, in folders named by their ids. Every look-up is for a
session: the id of another session's log is as unknown as an invented one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from veilog._plain import from_plain, to_plain
from veilog.errors import InputError
from veilog.web.jobs.records import JobRecord, JobRequest, LogRecord, State
from veilog.web.jobs.results import Kind

_LET_IN = 30 * 86400.0
"""Seconds after which a browser has to send the token again."""


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode("utf-8", "replace")).hexdigest()[:32]


_VERSION = 7
_TABLES = (
    "CREATE TABLE secret (key BLOB NOT NULL)",
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, admitted TEXT NOT NULL, created REAL NOT NULL, "
    "cookie TEXT NOT NULL DEFAULT '')",
    "CREATE TABLE logs (id TEXT PRIMARY KEY, session TEXT NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL, "
    "created REAL NOT NULL, format TEXT NOT NULL, columns TEXT NOT NULL, content TEXT NOT NULL DEFAULT '')",
    "CREATE TABLE jobs (id TEXT PRIMARY KEY, session TEXT NOT NULL, log TEXT NOT NULL, kind TEXT NOT NULL, "
    "state TEXT NOT NULL, request TEXT NOT NULL, result TEXT, problem TEXT, created REAL NOT NULL, started REAL, "
    "finished REAL, columns TEXT NOT NULL, entry INTEGER)",
    "CREATE INDEX jobs_of_a_log ON jobs (log)",
    "CREATE INDEX jobs_of_a_state ON jobs (state)",
    "CREATE TABLE sent (form TEXT NOT NULL, action TEXT NOT NULL, target TEXT NOT NULL, time REAL NOT NULL, "
    "PRIMARY KEY (form, action))",
    "CREATE TABLE drafts (session TEXT NOT NULL, log TEXT NOT NULL, fields TEXT NOT NULL, PRIMARY KEY (session, log))",
    "CREATE TABLE prints (content TEXT NOT NULL, fingerprint TEXT NOT NULL, PRIMARY KEY (content, fingerprint))",
    "CREATE TABLE notes (session TEXT NOT NULL, entry INTEGER NOT NULL, recipient TEXT NOT NULL, note TEXT NOT NULL, "
    "PRIMARY KEY (session, entry))",
)
_LOG = "id, session, name, size, created, format, columns, content"
_JOB = "id, session, log, kind, state, request, result, problem, created, started, finished, entry"
_REMEMBERED = 8 * 86400.0
"""Seconds for which a sent form is remembered, longer than a form may be valid."""


class Waiting(NamedTuple):
    """A job in the queue."""

    id: str
    session: str


class Store:
    """One connection, which holds the file for this server; any thread may call it."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        """Lock for every look and change; the queue shares it, so that both change as one."""
        self._connection = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except sqlite3.Error as error:
            self._connection.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise InputError("serve-folder-in-use", path=path) from error
            raise InputError("serve-records-unusable", path=path, reason=error) from error
        except InputError:
            self._connection.close()
            raise

    def _open(self) -> None:
        # Exclusive: a second server on the same folder is refused. secure_delete: what is deleted is overwritten.
        for setting in (
            "PRAGMA locking_mode = EXCLUSIVE",
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA secure_delete = ON",
            "PRAGMA trusted_schema = OFF",
        ):
            self._connection.execute(setting)
        with self._write_transaction():
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for table in _TABLES:
                    self._connection.execute(table)
                self._connection.execute("INSERT INTO secret VALUES (?)", (secrets.token_bytes(32),))
                self._connection.execute(f"PRAGMA user_version = {_VERSION}")
            elif version != _VERSION:
                raise InputError("server-records-version-other")

    def close(self) -> None:
        with self.lock:
            self._connection.close()

    @contextlib.contextmanager
    def _write_transaction(self) -> Iterator[sqlite3.Connection]:
        """Change all or nothing; a block within a block belongs to the outer one."""
        with self.lock:
            if self._connection.in_transaction:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back itself
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self.lock:
            return self._connection.execute(query, values).fetchall()

    def _change(self, query: str, *values: object) -> int:
        """Change rows and return their number."""
        with self._write_transaction() as connection:
            return connection.execute(query, values).rowcount

    def key(self) -> bytes:
        """Return a secret of this folder."""
        ((key,),) = self._rows("SELECT key FROM secret")
        return bytes(key)

    # Sessions.

    def session(self, cookie: str, admitted: str) -> str | None:
        """Return the session of a cookie that ``admitted`` let in, at most 30 days ago."""
        found = self._rows(
            "SELECT id FROM sessions WHERE cookie = ? AND admitted = ? AND created > ?",
            *(_digest(cookie), admitted, time.time() - _LET_IN),
        )
        return str(found[0][0]) if found else None

    def admit(self, cookie: str | None, admitted: str) -> str:
        """Let a browser in and return its new cookie.

        With it, the browser finds the logs of the old one again. The old cookie is worthless from now on: an attacker
        may have planted it, and would then read what is brought later.
        """
        fresh = secrets.token_hex(32)
        values = (_digest(fresh), admitted, time.time())
        with self._write_transaction() as connection:
            moved = "UPDATE sessions SET cookie = ?, admitted = ?, created = ? WHERE cookie = ?"
            if not cookie or connection.execute(moved, (*values, _digest(cookie))).rowcount == 0:
                made = "INSERT INTO sessions (cookie, admitted, created, id) VALUES (?, ?, ?, ?)"
                connection.execute(made, (*values, secrets.token_hex(16)))
        return fresh

    def let_out(self, session: str) -> None:
        """End the access of a browser; what it brought stays."""
        self._change("UPDATE sessions SET admitted = '' WHERE id = ?", session)

    # Forms.

    def sent(self, form: str, action: str) -> str | None:
        """Return the place to which this form led, if it was sent."""
        found = self._rows("SELECT target FROM sent WHERE form = ? AND action = ?", form, action)
        return str(found[0][0]) if found else None

    def first_time(self, form: str, action: str, make: Callable[[], str]) -> str:
        """Return the place to which a form led; ``make`` does its work the first time.

        What ``make`` stores is stored with that. A second time leads to the place of the first.
        """
        with self._write_transaction() as connection:
            target = self.sent(form, action)
            if target is not None:
                return target
            target = make()
            now = time.time()
            connection.execute("DELETE FROM sent WHERE time < ?", (now - _REMEMBERED,))
            connection.execute("INSERT INTO sent VALUES (?, ?, ?, ?)", (form, action, target, now))
            return target

    # Logs.

    def add_log(self, log: str, session: str, name: str, size: int, suffix: str, content: str = "") -> None:
        """Store a log; logs of the same ``content``, of any session, share one account."""
        values = (log, session, name, size, time.time(), suffix, "{}", content or log)
        self._change("INSERT INTO logs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *values)

    def set_columns(self, log: str, columns: Mapping[str, str]) -> None:
        self._change("UPDATE logs SET columns = ? WHERE id = ?", json.dumps(dict(columns)), log)

    def log(self, session: str, log: str) -> LogRecord | None:
        found = self._rows(f"SELECT {_LOG} FROM logs WHERE id = ? AND session = ?", log, session)
        return self._log(found[0]) if found else None

    def logs(self, session: str) -> list[LogRecord]:
        """Return the session's logs, newest first."""
        rows = self._rows(f"SELECT {_LOG} FROM logs WHERE session = ? ORDER BY created DESC, id", session)
        return [self._log(row) for row in rows]

    def _log(self, row: tuple[Any, ...]) -> LogRecord:
        log, session, name, size, created, suffix, columns, content = row
        newest = "SELECT {} FROM jobs WHERE log = ? AND kind = 'read' ORDER BY created DESC, rowid DESC LIMIT 1"
        jobs = self._rows(newest.format(_JOB), log)
        reading = _job(jobs[0]) if jobs else None
        prints = "SELECT fingerprint FROM prints WHERE content = ? ORDER BY rowid"
        entries = (
            "SELECT entry, min(coalesce(finished, 1e18)) FROM jobs JOIN logs ON logs.id = jobs.log "
            "WHERE content = ? AND entry IS NOT NULL GROUP BY entry"
        )
        return LogRecord(
            *(log, session, name, size, created, suffix, json.loads(columns), reading, content),
            readings=tuple(mark for (mark,) in self._rows(prints, content)),
            entries=tuple((entry, ended) for entry, ended in self._rows(entries, content)),
        )

    def delete_log(self, log: str) -> list[str]:
        """Delete a log with all of its jobs, and return their ids."""
        with self._write_transaction() as connection:
            jobs = [job for (job,) in self._rows("SELECT id FROM jobs WHERE log = ?", log)]
            for table in ("jobs", "drafts"):
                connection.execute(f"DELETE FROM {table} WHERE log = ?", (log,))
            connection.execute("DELETE FROM logs WHERE id = ?", (log,))
        return jobs

    def every_log(self) -> list[LogRecord]:
        """Return the logs of all sessions, oldest first."""
        return [self._log(row) for row in self._rows(f"SELECT {_LOG} FROM logs ORDER BY created, id")]

    def take_over(self, log: str, session: str) -> bool:
        """Give a log and its jobs to a session, with the notes on its releases."""
        with self._write_transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO notes SELECT ?, notes.entry, recipient, note FROM notes JOIN jobs "
                "ON jobs.session = notes.session AND jobs.entry = notes.entry WHERE jobs.log = ?",
                (session, log),
            )
            for table in ("jobs", "drafts"):
                connection.execute(f"UPDATE OR REPLACE {table} SET session = ? WHERE log = ?", (session, log))
            return connection.execute("UPDATE logs SET session = ? WHERE id = ?", (session, log)).rowcount == 1

    # Drafts and notes.

    def draft(self, session: str, log: str) -> dict[str, str]:
        """Return the last values of the form of a log."""
        found = self._rows("SELECT fields FROM drafts WHERE session = ? AND log = ?", session, log)
        return dict(json.loads(found[0][0])) if found else {}

    def keep_draft(self, session: str, log: str, fields: Mapping[str, str]) -> None:
        self._change("INSERT OR REPLACE INTO drafts VALUES (?, ?, ?)", session, log, json.dumps(dict(fields)))

    def notes(self, session: str) -> dict[int, tuple[str, str]]:
        """Return a session's recipients and notes of releases, by their ledger numbers."""
        rows = self._rows("SELECT entry, recipient, note FROM notes WHERE session = ?", session)
        return {entry: (recipient, note) for entry, recipient, note in rows}

    def set_note(self, session: str, entry: int, recipient: str, note: str) -> None:
        self._change("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?)", session, entry, recipient, note)

    # Jobs.

    def add_job(self, job: str, session: str, log: str, kind: Kind, request: JobRequest) -> None:
        """Queue a job with the log's present columns: they may change before it runs."""
        self._change(
            "INSERT INTO jobs VALUES (?, ?, ?, ?, 'queued', ?, NULL, NULL, ?, NULL, NULL, "
            "(SELECT columns FROM logs WHERE id = ?), NULL)",
            *(job, session, log, kind, json.dumps(to_plain(request)), time.time(), log),
        )

    def job(self, session: str, job: str) -> JobRecord | None:
        found = self._rows(f"SELECT {_JOB} FROM jobs WHERE id = ? AND session = ?", job, session)
        return _job(found[0]) if found else None

    def jobs(self, session: str) -> list[JobRecord]:
        """Return the session's jobs, newest first."""
        rows = self._rows(f"SELECT {_JOB} FROM jobs WHERE session = ? ORDER BY created DESC, rowid DESC", session)
        return [_job(row) for row in rows]

    def jobs_of(self, log: str, kind: Kind) -> list[JobRecord]:
        """Return the jobs of this kind of a log, newest first."""
        where = "WHERE log = ? AND kind = ? ORDER BY created DESC, rowid DESC"
        return [_job(row) for row in self._rows(f"SELECT {_JOB} FROM jobs {where}", log, kind)]

    def any_job(self, job: str) -> tuple[JobRecord, LogRecord] | None:
        """Return a job of any session and its log with the job's columns, to run it."""
        with self.lock:
            found = self._rows(f"SELECT columns, {_JOB} FROM jobs WHERE id = ?", job)
            if not found:
                return None
            columns, *facts = found[0]
            record = _job(tuple(facts))
            log = self.log(record.session, record.log)
            return None if log is None else (record, replace(log, columns=json.loads(columns)))

    def queued(self) -> list[Waiting]:
        """Return all waiting jobs, oldest first."""
        rows = self._rows("SELECT id, session FROM jobs WHERE state = 'queued' ORDER BY created, rowid")
        return [Waiting(*row) for row in rows]

    def running(self) -> list[str]:
        return [job for (job,) in self._rows("SELECT id FROM jobs WHERE state = 'running'")]

    def start(self, job: str) -> bool:
        """Take a job out of the queue; False if it has left it already."""
        started = "UPDATE jobs SET state = 'running', started = ? WHERE id = ? AND state = 'queued'"
        return self._change(started, time.time(), job) == 1

    def enter(self, job: str, entry: int) -> None:
        """Note the number under which a ledger has a job's release."""
        self._change("UPDATE jobs SET entry = ? WHERE id = ?", entry, job)

    def end(
        self, job: str, before: State, after: State, result: str | None, problem: str | None, mark: str | None = None
    ) -> bool:
        """End a job in the state ``before``; False, without a change, if it is in another.

        ``mark`` is the fingerprint of a log that was read.
        """
        changed = "UPDATE jobs SET state = ?, result = ?, problem = ?, finished = ? WHERE id = ? AND state = ?"
        with self._write_transaction():
            ended = self._change(changed, after, result, problem, time.time(), job, before) == 1
            if ended and mark is not None:
                self._change(
                    "INSERT OR IGNORE INTO prints SELECT logs.content, ? FROM jobs "
                    "JOIN logs ON logs.id = jobs.log WHERE jobs.id = ?",
                    *(mark, job),
                )
            return ended

    def delete_job(self, job: str) -> None:
        self._change("DELETE FROM jobs WHERE id = ?", job)

    def ids(self) -> tuple[set[str], set[str]]:
        """Return the ids of all logs and of all jobs."""
        logs, jobs = self._rows("SELECT id FROM logs"), self._rows("SELECT id FROM jobs")
        return {log for (log,) in logs}, {job for (job,) in jobs}

    def forget(self) -> None:
        """Remove what was deleted from the write-ahead log, too."""
        with contextlib.suppress(sqlite3.Error):
            self._rows("PRAGMA wal_checkpoint(TRUNCATE)")


def _job(row: tuple[Any, ...]) -> JobRecord:
    """Return the job of these columns, in the order of :data:`_JOB`."""
    request = from_plain(JobRequest, json.loads(row[5]))
    return JobRecord(*(*row[:5], request, *row[6:]))

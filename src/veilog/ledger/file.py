"""The file of a ledger: SQLite, opened by short transactions that are whole or not at all, also after a crash.

The rollback journal (SQLite's default) and not the write-ahead log: all of a ledger is one file beside the log, which
people move, copy and keep on network drives, and a write-ahead log would be two more files, one of them shared memory.
``synchronous=EXTRA`` makes a commit durable when it returns, including the removal of the journal.

The file is sealed: a keyed digest over every row is checked before anything is believed, so that a damaged file is
refused and never read as an account with less in it. The key lies in the same file: the seal finds damage, and the
digests of data tell nothing to those who see them elsewhere; whoever has the file itself must be trusted with it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from veilog._files import claim, locks_hold
from veilog.errors import InputError, OutputError, VeilogError
from veilog.ledger.entries import AccountRow, Entry, Holder
from veilog.ledger.ways import as_read

Waiting = Callable[[str, float | None], None]
"""Told what is being waited for."""

PATIENCE = 10.0
"""Seconds to wait, unless something else is said, for a ledger that another process is writing."""
_APPLICATION = 0x7665696C
_VERSION = 6
_TABLES = (
    "CREATE TABLE book (id INTEGER PRIMARY KEY, key BLOB NOT NULL, seal TEXT NOT NULL)",
    "CREATE TABLE accounts (account INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT NOT NULL, epsilon TEXT, "
    "delta TEXT)",
    "CREATE TABLE data (id INTEGER PRIMARY KEY, digest TEXT NOT NULL, account INTEGER NOT NULL)",
    "CREATE TABLE releases (release INTEGER PRIMARY KEY, account INTEGER NOT NULL, time TEXT NOT NULL, "
    "method TEXT NOT NULL, as_published INTEGER NOT NULL, parameters TEXT NOT NULL, unit TEXT NOT NULL, "
    "epsilon TEXT, delta TEXT, state TEXT NOT NULL, guarantee TEXT, output TEXT NOT NULL)",
    "CREATE TABLE runs (release INTEGER PRIMARY KEY, mark TEXT NOT NULL)",
    "CREATE TABLE parts (release INTEGER PRIMARY KEY, part TEXT NOT NULL)",
    "CREATE TABLE counting (account INTEGER PRIMARY KEY, counting TEXT NOT NULL)",
    "CREATE TABLE answers (release INTEGER PRIMARY KEY, answers TEXT NOT NULL)",
    "CREATE TABLE ways (release INTEGER PRIMARY KEY, way TEXT NOT NULL)",
    "CREATE TABLE uncounted (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, entry TEXT NOT NULL)",
    "CREATE TABLE holders (release INTEGER PRIMARY KEY, holder TEXT NOT NULL)",
    "CREATE TABLE units (release INTEGER PRIMARY KEY, digests BLOB NOT NULL)",
)
_NAMES = (
    *("book", "accounts", "data", "releases", "runs", "parts", "counting", "answers", "ways"),
    *("uncounted", "holders", "units"),
)
_SETTINGS = ("PRAGMA synchronous = EXTRA", "PRAGMA trusted_schema = OFF")
_ONCE = 0.25
"""Seconds that SQLite itself waits for a lock, before we say that we wait and try again."""
_STATES = ("reserved", "charged", "written", "withdrawn")
_HEADER = 16
"""Bytes of what a file of SQLite begins with."""
_ENDS = re.compile(r"[0-9]{1,300}(/[1-9][0-9]{0,299})?")


@dataclass(frozen=True)
class Book:
    """All of a ledger, and the open transaction on it."""

    path: Path
    connection: sqlite3.Connection
    key: bytes
    accounts: dict[int, AccountRow]
    data: dict[str, int]
    entries: tuple[Entry, ...]
    runs: dict[int, str]
    """Of releases that are kept in checkpoints, the mark of the last one."""
    uncounted: tuple[Entry, ...] = ()
    """Releases that were made without this ledger, each under the account of its data."""

    def digest(self, fingerprint: bytes) -> str:
        """What data are recognised by here: without the key nothing can be told from it."""
        return hmac.new(self.key, fingerprint, hashlib.sha256).hexdigest()


def located(path: str | os.PathLike[str]) -> Path:
    """Where the ledger really is, links followed: one ledger must not be locked under two names."""
    try:
        place = Path(os.path.realpath(path))
        if place.is_dir():
            raise InputError("This is a directory, not a ledger.", path=os.fspath(path))
        if place.exists() and not place.is_file():
            raise InputError("This is not a regular file, so it cannot be a ledger.", path=os.fspath(path))
        if not place.exists() and Path(path).is_symlink():
            raise InputError("This is a link to a ledger that is not there.", path=os.fspath(path))
    except (OSError, ValueError) as error:
        raise InputError(f"The ledger cannot be used: {error}.", path=str(path)) from error
    return place


def create(place: Path) -> None:
    """A new, empty ledger that only its owner may read. It appears whole; if another process was first, that stays."""
    if not place.parent.is_dir():
        raise OutputError("The folder does not exist.", path=place, advice=f"Create {place.parent} first.")
    temporary = place.with_name(f".veilog-{secrets.token_hex(8)}.new")
    try:
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with _in_words(place), contextlib.closing(_connected(temporary)) as connection:
            for setting in (*_SETTINGS, "BEGIN IMMEDIATE"):
                connection.execute(setting)
            for table in _TABLES:
                connection.execute(table)
            connection.execute("INSERT INTO book VALUES (1, ?, '')", (secrets.token_bytes(32),))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            _seal(connection)
            connection.execute("COMMIT")
        claim(temporary, place)
    except OSError as error:
        raise OutputError(f"The ledger cannot be created: {error.strerror or error}.", path=place) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def transaction(place: Path, *, write: bool, patience: float, waiting: Waiting | None) -> Iterator[Book]:
    """The ledger's content. With ``write`` nobody else writes until the block ends; what it did is then durable.

    When the block raises, nothing of what it did remains.
    """
    _check_header(place)
    if write:
        _check_locks(place)
    until = time.monotonic() + patience
    with _in_words(place), contextlib.closing(_connected(place)) as connection:

        def insist(statement: str) -> None:
            while True:
                try:
                    connection.execute(statement).fetchone()
                    return
                except sqlite3.OperationalError as error:
                    if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                        raise
                if waiting is not None:
                    waiting(f"waiting for the ledger {place.name}", None)

        for setting in _SETTINGS:
            insist(setting)
        insist("BEGIN IMMEDIATE" if write else "BEGIN")
        insist("SELECT count(*) FROM sqlite_master")
        book = _loaded(connection, place)
        yield _without_abandoned(book, write=write)
        if write:
            _seal(connection)
            insist("COMMIT")


def reread(book: Book) -> Book:
    """Return what is in the ledger by now, in the same transaction."""
    _seal(book.connection)
    return _loaded(book.connection, book.path)


def _without_abandoned(book: Book, *, write: bool) -> Book:
    """The book with the reservations given back of runs that ended before they asked anything."""
    left = {entry.number for entry in book.entries if entry.never_asked}
    if not left:
        return book
    if write:
        for number in left:
            give_back(book.connection, number)
        return reread(book)
    none = Fraction(0)
    free = [replace(entry, state="withdrawn", epsilon=none, delta=none) for entry in book.entries]
    pairs = zip(book.entries, free, strict=True)
    return replace(book, entries=tuple(given if entry.number in left else entry for entry, given in pairs))


def give_back(connection: sqlite3.Connection, number: int) -> None:
    """Withdraw a reservation: nothing was asked, so it costs nothing and its units were in no release."""
    connection.execute(
        "UPDATE releases SET epsilon = '0', delta = '0', state = 'withdrawn' WHERE release = ?", (number,)
    )
    for table in ("holders", "units"):
        connection.execute(f"DELETE FROM {table} WHERE release = ?", (number,))


def _connected(place: Path) -> sqlite3.Connection:
    # mode=rw never creates a file; it reads where it may not write, and then a write fails.
    return sqlite3.connect(f"{place.absolute().as_uri()}?mode=rw", uri=True, timeout=_ONCE, isolation_level=None)


def _check_header(place: Path) -> None:
    """Refuse what is not there, may not be read or is too short, without opening it: a process that closes a file
    loses its locks on it, those of its other threads, too."""
    try:
        size = place.stat().st_size
    except FileNotFoundError as error:
        raise InputError("There is no such ledger.", path=place, advice="veilog ledger set creates one.") from error
    except OSError as error:
        raise InputError(f"The ledger cannot be read: {error.strerror or error}.", path=place) from error
    if not os.access(place, os.R_OK):
        raise InputError(f"The ledger cannot be read: {os.strerror(errno.EACCES)}.", path=place)
    if size < _HEADER:
        raise _no_ledger(place)


def _check_locks(place: Path) -> None:
    """Refuse a ledger on a file system that grants one lock twice: two writers would both find room for a release."""
    if locks_hold(place.parent) is False:
        raise OutputError(
            "The ledger cannot be written: its file system ignores locks, so two releases at once would spend twice.",
            path=place,
            advice="Nothing was asked of the data. Keep the ledger on a disk of this machine, or on a network drive "
            "that is mounted with locks.",
        )


def _rows(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()  # table: one of ours


def _sealed(connection: sqlite3.Connection, key: bytes) -> str:
    content = [_rows(connection, table) for table in _NAMES[1:]]
    text = json.dumps(content, default=lambda blob: hashlib.sha256(blob).hexdigest())
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _seal(connection: sqlite3.Connection) -> None:
    (key,) = connection.execute("SELECT key FROM book").fetchone()
    connection.execute("UPDATE book SET seal = ?", (_sealed(connection, key),))


def _loaded(connection: sqlite3.Connection, place: Path) -> Book:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise InputError("This is a database, but not a ledger of veilog.", path=place)
    if version != _VERSION:
        raise InputError(
            f"This ledger was written by another version of veilog: its format is {version}, and this one reads "
            f"{_VERSION}.",
            path=place,
            advice="Use the version of veilog that wrote it.",
        )
    tables = connection.execute("SELECT sql FROM sqlite_master ORDER BY rootpage").fetchall()
    try:
        if sorted(sql for (sql,) in tables) != sorted(_TABLES):
            raise ValueError("not our tables")
        ((_, key, seal),) = _rows(connection, "book")
        if not isinstance(key, bytes) or not hmac.compare_digest(_sealed(connection, key), str(seal)):
            raise ValueError("the seal is broken")
        runs, parts, counting, answers, ways = (_noted(connection, table) for table in _NAMES[4:9])
        holders, remembered = _noted(connection, "holders"), _numbers(connection, "units")
        accounts = [
            AccountRow(n, str(s), str(u), _fraction(e), _fraction(d), counting.get(n))
            for n, s, u, e, d in _rows(connection, "accounts")
        ]
        counted = {number: as_read(part, ways.get(number, "")) for number, part in parts.items()}
        entries = tuple(
            replace(
                _entry(row, counted.get(row[0]), answers.get(row[0]), ways.get(row[0], "")),
                holder=Holder.of_text(holders[row[0]]) if row[0] in holders else None,
                remembered=row[0] in remembered,
            )
            for row in _rows(connection, "releases")
        )
        data = {str(digest): int(account) for _, digest, account in _rows(connection, "data")}
        uncounted = tuple(_uncounted(*row) for row in _rows(connection, "uncounted"))
    except (ValueError, TypeError) as error:  # also what JSON and UTF-8 say of damage
        raise _damaged(place) from error
    return Book(place, connection, key, {row.number: row for row in accounts}, data, entries, runs, uncounted)


def _noted(connection: sqlite3.Connection, table: str) -> dict[int, str]:
    """Return what a table notes, by number."""
    return {int(number): str(text) for number, text in _rows(connection, table)}


def _numbers(connection: sqlite3.Connection, table: str) -> set[int]:
    return {int(number) for (number,) in connection.execute(f"SELECT release FROM {table}")}


def _entry(row: tuple[Any, ...], counted: str | None, answers: str | None, way: str) -> Entry:
    number, account, when, method, as_published, parameters, unit, epsilon, delta, state, guarantee, output = row
    if state not in _STATES:
        raise ValueError(state)
    return Entry(
        number=int(number),
        account=int(account),
        time=str(when),
        method=str(method),
        as_published=bool(as_published),
        parameters=dict(json.loads(parameters)),
        unit=str(unit),
        epsilon=_fraction(epsilon),
        delta=_fraction(delta),
        state=state,
        guarantee=None if guarantee is None else dict(json.loads(guarantee)),
        outputs=tuple(str(output).split()),
        counted=counted,
        kept_answers=answers,
        way=way,
    )


def _uncounted(number: int, account: int, text: str) -> Entry:
    """The release that was noted as not counted; its number is that of the note."""
    kept = dict(json.loads(text))
    names = ("time", "method", "as_published", "parameters", "unit", "epsilon", "delta")
    facts = [kept[name] for name in names[:3]] + [json.dumps(kept["parameters"])] + [kept[name] for name in names[4:]]
    guarantee, way = json.dumps(kept["guarantee"]), str(kept["way"])
    part = as_read(kept["part"], way)
    return _entry((number, account, *facts, "charged", guarantee, ""), part, None, way)


def _fraction(text: str | None) -> Fraction | None:
    if text is None:
        return None
    if not _ENDS.fullmatch(text):
        raise ValueError("not a fraction")
    return Fraction(text)


def _no_ledger(place: Path) -> InputError:
    return InputError("This is not a ledger of veilog, or it is damaged.", path=place, advice=_RESTORE)


_RESTORE = "Put a backup in its place; an empty new ledger would forget what was spent."


def _damaged(place: Path) -> InputError:
    return InputError("This ledger is damaged.", path=place, advice=_RESTORE)


def _code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code, where the error came from SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF


@contextlib.contextmanager
def _in_words(place: Path) -> Iterator[None]:
    """What SQLite says, in the user's words."""
    try:
        yield
    except sqlite3.Error as error:
        raise _told(place, error) from error
    except UnicodeDecodeError as error:  # Python, reading what SQLite says of damage
        raise _damaged(place) from error


def _told(place: Path, error: sqlite3.Error) -> VeilogError:
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return OutputError(
                "The ledger is locked by another program.",
                path=place,
                advice="Wait until the other release has ended, and try again.",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return OutputError(
                "The ledger cannot be written: it or its folder is read-only.",
                path=place,
                advice="Without an entry there is no release; make both writable, or name another with --ledger.",
            )
        case sqlite3.SQLITE_NOTADB:
            return _no_ledger(place)
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return OutputError(f"The ledger cannot be written: {error}.", path=place, advice="Is the disk full?")
        case _:  # corrupt, not a database, not our tables, text that is none
            return _damaged(place)

"""File of a ledger: SQLite, in short transactions that a crash leaves whole.

It uses the rollback journal (SQLite's default) and not the write-ahead log. So all of a ledger is one file next to the
log, which people move, copy and keep on network drives. A write-ahead log would be two more files, one of them shared
memory. ``synchronous=EXTRA`` makes a commit durable when it returns, including the removal of the journal.

The file is sealed: a keyed digest over every row is checked before anything is believed. So a damaged file is refused
and never read as an account with less in it. The key lies in the same file. The seal finds damage, and the digests of
data reveal nothing to those who see them elsewhere. Everyone with the file itself must be trusted with it.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from veilog._files import claim, locks_hold
from veilog._typing import BoolArray
from veilog.errors import BudgetError, InputError, OutputError, ParameterError, VeilogError, meant
from veilog.ledger.accounts import Account
from veilog.ledger.entry import AccountRow, Cost, Entry, Holder, State, as_read
from veilog.ledger.rules import Composed, Counting, parse_rule
from veilog.logs.eventlog import EventLog
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.budgets import compose
from veilog.privacy.account.composition import answers_of
from veilog.privacy.account.guarantee import Charge, Guarantee, round_up

if TYPE_CHECKING:
    from veilog.logs.files import AnyLog

Waiting = Callable[[str, float | None], None]
"""Function that is called with a text on the wait, and a fraction or None."""

PATIENCE = 10.0
"""Default number of seconds to wait for a ledger that another process is writing."""
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
    "CREATE TABLE subsets (release INTEGER PRIMARY KEY, subset TEXT NOT NULL)",
    "CREATE TABLE counting (account INTEGER PRIMARY KEY, counting TEXT NOT NULL)",
    "CREATE TABLE answers (release INTEGER PRIMARY KEY, answers TEXT NOT NULL)",
    "CREATE TABLE ways (release INTEGER PRIMARY KEY, way TEXT NOT NULL)",
    "CREATE TABLE uncounted (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, entry TEXT NOT NULL)",
    "CREATE TABLE holders (release INTEGER PRIMARY KEY, holder TEXT NOT NULL)",
    "CREATE TABLE units (release INTEGER PRIMARY KEY, digests BLOB NOT NULL)",
)
_NAMES = tuple(table.split()[2] for table in _TABLES)
_SETTINGS = ("PRAGMA synchronous = EXTRA", "PRAGMA trusted_schema = OFF")
_ONCE = 0.25
"""Seconds that SQLite itself waits for a lock, before veilog reports it."""
_STATES = ("reserved", "charged", "written", "withdrawn")
_HEADER = 16
"""Number of bytes at the start of a file of SQLite."""
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
    """Mark of the last checkpoint, for runs with checkpoints."""
    uncounted: tuple[Entry, ...] = ()
    """Releases that were made without this ledger, each under the account of its data."""

    def digest(self, fingerprint: bytes) -> str:
        """Return the keyed digest of data; without the key it reveals nothing."""
        return hmac.new(self.key, fingerprint, hashlib.sha256).hexdigest()


def locate(path: str | os.PathLike[str]) -> Path:
    """Return the real path of the ledger: no ledger may be locked under two names."""
    try:
        place = Path(os.path.realpath(path))
        if place.is_dir():
            raise InputError("ledger-is-directory", path=os.fspath(path))
        if place.exists() and not place.is_file():
            raise InputError("ledger-not-regular-file", path=os.fspath(path))
        if not place.exists() and Path(path).is_symlink():
            raise InputError("ledger-link-broken", path=os.fspath(path))
    except (OSError, ValueError) as error:
        raise InputError("ledger-not-usable", path=str(path), reason=error) from error
    return place


def create(place: Path) -> None:
    """Create an empty ledger for its owner only; it appears whole, unless one exists."""
    if not place.parent.is_dir():
        raise OutputError("folder-not-there", path=place, parent=place.parent)
    temporary = place.with_name(f".veilog-{secrets.token_hex(8)}.new")
    try:
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with _translate_errors(place), contextlib.closing(_connect(temporary)) as connection:
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
        raise OutputError("ledger-not-created", path=place, reason=error.strerror or error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def transaction(place: Path, *, write: bool, patience: float, waiting: Waiting | None) -> Iterator[Book]:
    """Yield the ledger's content; with ``write`` no other process writes meanwhile.

    When the block ends, its changes are durable. When it raises, none of them remains.
    """
    _check_header(place)
    if write:
        _check_locks(place)
    until = time.monotonic() + patience
    with _translate_errors(place), contextlib.closing(_connect(place)) as connection:

        def insist(statement: str) -> None:
            while True:
                try:
                    connection.execute(statement).fetchone()
                    return
                except sqlite3.OperationalError as error:
                    if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                        raise
                if waiting is not None:
                    waiting(str(Message("ledger-waited-for", ledger=place.name)), None)

        for setting in _SETTINGS:
            insist(setting)
        insist("BEGIN IMMEDIATE" if write else "BEGIN")
        insist("SELECT count(*) FROM sqlite_master")
        book = _load_book(connection, place)
        yield _drop_abandoned(book, write=write)
        if write:
            _seal(connection)
            insist("COMMIT")


def reread(book: Book) -> Book:
    """Return the present content of the ledger, in the same transaction."""
    _seal(book.connection)
    return _load_book(book.connection, book.path)


def _drop_abandoned(book: Book, *, write: bool) -> Book:
    """Return the book without reservations of runs that ended before any query."""
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
    """Withdraw a reservation: without a query it uses nothing and saw no units."""
    connection.execute(
        "UPDATE releases SET epsilon = '0', delta = '0', state = 'withdrawn' WHERE release = ?", (number,)
    )
    for table in ("holders", "units"):
        connection.execute(f"DELETE FROM {table} WHERE release = ?", (number,))


def _connect(place: Path) -> sqlite3.Connection:
    # mode=rw never creates a file; it reads where it may not write, and then a write fails.
    return sqlite3.connect(f"{place.absolute().as_uri()}?mode=rw", uri=True, timeout=_ONCE, isolation_level=None)


def _check_header(place: Path) -> None:
    """Refuse a missing, unreadable or short file, without opening it.

    A process that closes a file loses its locks on it, those of its other threads, too.
    """
    try:
        size = place.stat().st_size
    except FileNotFoundError as error:
        raise InputError("ledger-file-missing", path=place) from error
    except OSError as error:
        raise InputError("ledger-file-not-readable", path=place, reason=error.strerror or error) from error
    if not os.access(place, os.R_OK):
        raise InputError("ledger-not-readable", path=place, strerror=os.strerror(errno.EACCES))
    if size < _HEADER:
        raise InputError("ledger-not-recognised", path=place)


def _check_locks(place: Path) -> None:
    """Refuse a file system that grants a lock twice: two writers would both find room."""
    if locks_hold(place.parent) is False:
        raise OutputError("ledger-locks-ignored", path=place)


def _rows(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()  # table: one of ours


def _compute_seal(connection: sqlite3.Connection, key: bytes) -> str:
    content = [_rows(connection, table) for table in _NAMES[1:]]
    text = json.dumps(content, default=lambda blob: hashlib.sha256(blob).hexdigest())
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _seal(connection: sqlite3.Connection) -> None:
    (key,) = connection.execute("SELECT key FROM book").fetchone()
    connection.execute("UPDATE book SET seal = ?", (_compute_seal(connection, key),))


def _load_book(connection: sqlite3.Connection, place: Path) -> Book:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise InputError("ledger-is-other-database", path=place)
    if version != _VERSION:
        raise InputError("ledger-version-other", path=place, version=version, version_2=_VERSION)
    tables = connection.execute("SELECT sql FROM sqlite_master ORDER BY rootpage").fetchall()
    try:
        if sorted(sql for (sql,) in tables) != sorted(_TABLES):
            raise ValueError("not our tables")
        ((_, key, seal),) = _rows(connection, "book")
        if not isinstance(key, bytes) or not hmac.compare_digest(_compute_seal(connection, key), str(seal)):
            raise ValueError("the seal is broken")
        runs, subsets, counting, answers, ways = (_read_notes(connection, table) for table in _NAMES[4:9])
        holders, remembered = _read_notes(connection, "holders"), _numbers(connection, "units")
        accounts = [
            AccountRow(n, str(s), str(u), _cost(e, d), counting.get(n))
            for n, s, u, e, d in _rows(connection, "accounts")
        ]
        counted = {number: as_read(subset, ways.get(number, "")) for number, subset in subsets.items()}
        entries = tuple(
            replace(
                _entry(row, counted.get(row[0]), answers.get(row[0]), ways.get(row[0], "")),
                holder=Holder.of_text(holders[row[0]]) if row[0] in holders else None,
                remembered=row[0] in remembered,
            )
            for row in _rows(connection, "releases")
        )
        data = {str(digest): int(account) for _, digest, account in _rows(connection, "data")}
        uncounted = tuple(_uncounted_entry(*row) for row in _rows(connection, "uncounted"))
    except (ValueError, TypeError) as error:  # also errors of JSON and UTF-8 on damage
        raise InputError("ledger-damaged", path=place) from error
    return Book(place, connection, key, {row.number: row for row in accounts}, data, entries, runs, uncounted)


def _read_notes(connection: sqlite3.Connection, table: str) -> dict[int, str]:
    """Return the notes of a table, by number."""
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


def _uncounted_entry(number: int, account: int, text: str) -> Entry:
    """Return the release of an uncounted note; its number is that of the note."""
    kept = dict(json.loads(text))
    names = ("time", "method", "as_published", "parameters", "unit", "epsilon", "delta")
    facts = [kept[name] for name in names[:3]] + [json.dumps(kept["parameters"])] + [kept[name] for name in names[4:]]
    guarantee, way = json.dumps(kept["guarantee"]), str(kept["way"])
    subset = as_read(kept["subset"], way)
    return _entry((number, account, *facts, "charged", guarantee, ""), subset, None, way)


def _fraction(text: str | None) -> Fraction | None:
    if text is None:
        return None
    if not _ENDS.fullmatch(text):
        raise ValueError("not a fraction")
    return Fraction(text)


def _cost(epsilon: str | None, delta: str | None) -> Cost | None:
    both = _fraction(epsilon), _fraction(delta)
    return None if both[0] is None or both[1] is None else (both[0], both[1])


def _code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code, where the error came from SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF


@contextlib.contextmanager
def _translate_errors(place: Path) -> Iterator[None]:
    """Turn SQLite's errors into the user's words."""
    try:
        yield
    except sqlite3.Error as error:
        raise _store_error(place, error) from error
    except UnicodeDecodeError as error:  # Python, on a damaged text from SQLite
        raise InputError("ledger-damaged", path=place) from error


def _store_error(place: Path, error: sqlite3.Error) -> VeilogError:
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return OutputError("ledger-locked", path=place)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return OutputError("ledger-read-only", path=place)
        case sqlite3.SQLITE_NOTADB:
            return InputError("ledger-not-recognised", path=place)
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return OutputError("ledger-not-writable", path=place, reason=error)
        case _:  # corrupt, not a database, not our tables, text that is none
            return InputError("ledger-damaged", path=place)


Data: TypeAlias = EventLog | StoredLog | Variants


def fingerprint(data: Data) -> bytes:
    """Return the fingerprint of a log: SHA-256 over counts of multisets of activities.

    It does not depend on the file or its format, or on the order of rows, cases, or events at the same time. Nor does
    it depend on names of cases, further attributes, or cases without events, which not every format can hold. Only a
    keyed digest of it is ever kept.
    """
    variants = data if isinstance(data, Variants) else data.variants
    owner = np.repeat(np.arange(len(variants)), variants.lengths)
    bags = variants.codes[np.lexsort((variants.codes, owner))]
    counts = np.where(variants.lengths > 0, variants.counts, 0)
    canonical = Variants.from_arrays(variants.labels, bags, variants.offsets, counts)
    parts = (
        json.dumps(canonical.labels).encode(),
        canonical.lengths.astype("<i8").tobytes(),
        canonical.counts.astype("<i8").tobytes(),
        canonical.codes.astype("<i4").tobytes(),
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


_WIDTH = 16
"""Number of bytes that are kept of a unit."""


@dataclass(frozen=True, eq=False)
class Units:
    """Units of a subset that no other subset of its rule had.

    A digest is keyed (HMAC-SHA256) with the ledger's key, so no name follows from it without the file. Two of n names
    have the same one with a chance below n**2 / 2**129. Exports hold neither digests nor the key.
    """

    digests: bytes = field(repr=False)
    """Digests of the units, sorted, so that nothing follows from the order of cases."""
    new: BoolArray = field(repr=False)
    """True for each case of these units; a unit without a name cannot be recognised, so it is none."""
    subset: str
    compared: tuple[int, ...]
    """Numbers of the releases whose units they were compared with."""

    def check(self, book: Book, account: int) -> None:
        """Refuse to reserve if another release of the rule was entered meanwhile.

        This follows from the ledger alone, and from no unit.
        """
        if _other_releases(book, account, self.subset) != self.compared:
            raise BudgetError("ledger-subset-units-unknown", account=account)


def unseen(book: Book, account: int | None, subset: str, kind: str, names: Sequence[str | None]) -> Units:
    """Return the units, named case by case, that no other subset of this rule had."""
    others = _other_releases(book, account, subset)
    before: set[bytes] = set()
    for number in others:
        (kept,) = book.connection.execute("SELECT digests FROM units WHERE release = ?", (number,)).fetchone()
        before.update(kept[place : place + _WIDTH] for place in range(0, len(kept), _WIDTH))
    digests = [None if name is None else _digest(book, kind, name) for name in names]
    new = np.array([digest is not None and digest not in before for digest in digests], dtype=np.bool_)
    mine = {digest for digest in digests if digest is not None} - before
    return Units(b"".join(sorted(mine)), new, subset, others)


def _other_releases(book: Book, account: int | None, subset: str) -> tuple[int, ...]:
    """Return the releases of other subsets of this rule whose units are kept."""
    rule = subset.partition("=")[0]
    return tuple(
        entry.number
        for entry in book.entries
        if entry.account == account
        and entry.remembered
        and entry.subset is not None
        and entry.subset != subset
        and entry.subset.partition("=")[0] == rule
    )


def _digest(book: Book, kind: str, name: str) -> bytes:
    """Return the digest of a unit's kind and name."""
    text = json.dumps(["unit", kind, name]).encode()
    return hmac.digest(book.key, text, "sha256")[:_WIDTH]


Given: TypeAlias = "AnyLog | StoredLog | bytes"
"""Data as a log in any form, or as its fingerprint."""
_MOST_ANSWERS = 500


def held(data: Given) -> Data | bytes:
    """Return the data or their fingerprint; a file is read."""
    if isinstance(data, EventLog | StoredLog | Variants | bytes):
        return data
    from veilog.logs.files import as_log  # readers are loaded where there is something to read

    found: Data = as_log(data)
    return found


def mark_of(data: Data | bytes) -> bytes:
    """Return the fingerprint of data, which may be one already."""
    return data if isinstance(data, bytes) else fingerprint(data)


def account_of(book: Book, number: int) -> Account:
    """Return an account with its entries, and the numbers of other accounts."""
    row = book.accounts[number]
    own = tuple(entry for entry in book.entries if entry.account == number)
    uncounted = tuple(entry for entry in book.uncounted if entry.account == number)
    others = sorted(other for other in book.accounts if other != number)
    namesakes = tuple(other for other in others if book.accounts[other].name == row.name)
    return Account(
        number=row.number,
        name=row.name,
        unit=row.unit,
        budget=row.budget,
        entries=own,
        counting=parse_rule(row.counting),
        others=len(others),
        namesakes=namesakes,
        budgets_beside=sum(book.accounts[other].budget is not None for other in others),
        uncounted=uncounted,
    )


def open_account(book: Book, mark: bytes, unit: str, name: str) -> int:
    """Open an account without a limit for data with this fingerprint."""
    execute = book.connection.execute
    number = int(execute("INSERT INTO accounts VALUES (NULL, ?, ?, NULL, NULL)", (name, unit)).lastrowid or 0)
    execute("INSERT INTO data VALUES (NULL, ?, ?)", (book.digest(mark), number))
    return number


def put_together(book: Book, mark: bytes, old: int | None, account: int) -> int:
    """Put data on another account, with all that was spent on the old one.

    Its limit comes along if the other has none. Releases that join a limit were not entered under its rule. So a
    composition begins anew, and a plan is over, as these were none of its releases. Its limit then counts by the sum,
    with all earlier releases.
    """
    if account not in book.accounts:
        known = ", ".join(str(number) for number in sorted(book.accounts))
        raise ParameterError(
            "ledger-account-missing", parameter="account", number=account, known=known or Message("names-none")
        )
    execute = book.connection.execute
    if old is None:
        execute("INSERT INTO data VALUES (NULL, ?, ?)", (book.digest(mark), account))
    elif old != account:
        check_together(account_of(book, account), account_of(book, old))
        limited, added = account_of(book, account), account_of(book, old)
        if limited.budget is None and added.budget is not None:
            limited, added = added, limited
            execute("UPDATE accounts SET unit = ? WHERE account = ?", (limited.unit, account))
        limit(book, account, limited.budget, rule_with(book, limited, added.entries))
        execute("UPDATE data SET account = ? WHERE account = ?", (account, old))
        for table in ("releases", "uncounted"):
            execute(f"UPDATE {table} SET account = ? WHERE account = ?", (account, old))
        execute("DELETE FROM accounts WHERE account = ?", (old,))
    return account


def rule_with(book: Book, limited: Account, added: Iterable[Entry]) -> Counting | None:
    """Return the counting of a limited account that takes in others' releases."""
    if all(entry.state == "withdrawn" for entry in added):
        return limited.counting
    if isinstance(limited.counting, Composed):
        return replace(limited.counting, since=max(entry.number for entry in book.entries))
    return None


def check_together(kept: Account, added: Account) -> None:
    """Refuse to join two accounts whose releases do not add up, if one has a budget.

    Their releases are not for the same unit and kind of case, so nothing bounds their sum, and they cannot be separated
    again.
    """
    both = replace(kept, entries=(*kept.entries, *added.entries))
    made = [entry for entry in both.entries if entry.state != "withdrawn"]
    if kept.budget is None and added.budget is None:
        return  # the account reports that nothing bounds the spent budget
    if len({entry.unit for entry in made}) < 2 and len(both.kinds) < 2:
        return
    code = "account-units-differ-within" if kept.number == added.number else "account-units-differ"
    raise ParameterError(code, parameter="account", number=kept.number, number_2=added.number)


def join_named_account(book: Book, mark: bytes, known: int | None, name: str) -> int | None:
    """Put data without an account on the one of this name; None if there is none yet."""
    found = [number for number, row in book.accounts.items() if row.name == name]
    if len(found) > 1:
        numbers = ", ".join(map(str, sorted(found)))
        raise ParameterError("account-name-ambiguous", parameter="account", name=name, numbers=numbers)
    if known is not None and known not in found:
        raise ParameterError(
            "account-name-differs",
            parameter="account",
            known=known,
            name=book.accounts[known].name,
            name_2=name,
            meant=meant(name, [book.accounts[known].name]),
        )
    if known is None and found:
        put_together(book, mark, None, found[0])
    return found[0] if found else None


def limit(book: Book, account: int, budget: Cost | None, counting: Counting | None = None) -> None:
    """Limit the total of an account, by the sum or by a rule; None takes it away."""
    execute = book.connection.execute
    execute("DELETE FROM counting WHERE account = ?", (account,))
    if counting is not None:
        execute("INSERT INTO counting VALUES (?, ?)", (account, json.dumps(counting.to_json())))
    execute("UPDATE accounts SET epsilon = ?, delta = ? WHERE account = ?", (*texts(budget), account))


def usual_unit(book: Book, number: int) -> str | None:
    """Return the unit of the releases of an account without a limit, if they agree."""
    account = account_of(book, number)
    units = {entry.unit for entry in account.entries if entry.state != "withdrawn"}
    return units.pop() if account.budget is None and len(units) == 1 else None


def reserved(
    book: Book,
    account: int,
    method: str,
    cost: Cost | None,
    *,
    parameters: Mapping[str, Any],
    unit: str,
    as_published: bool,
    subset: str | None,
    way: str = "",
) -> int:
    """Enter a reservation, with the way its log was read, and return its number."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    row = book.connection.execute(
        "INSERT INTO releases VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 'reserved', NULL, '')",
        (account, now, method, int(as_published), json.dumps(dict(parameters), default=str), unit, *texts(cost)),
    )
    number = int(row.lastrowid or 0)
    if subset is not None:
        book.connection.execute("INSERT INTO subsets VALUES (?, ?)", (number, subset))
    if way:
        book.connection.execute("INSERT INTO ways VALUES (?, ?)", (number, way))
    return number


def change(book: Book, number: int, changes: str, values: tuple[str | None, ...], *states: State) -> None:
    """Change an entry that is in one of these states, or raise that it is lost."""
    held = {entry.number: entry.state for entry in book.entries}
    if held.get(number) not in states:
        raise lost_entry_error(book)
    book.connection.execute(f"UPDATE releases SET {changes} WHERE release = ?", (*values, number))


def derived_cost(guarantee: Guarantee) -> Cost | None:
    """Return the cost of a release, exact where its charges add up, or None."""
    if not guarantee.proven or guarantee.epsilon is None or guarantee.delta is None:
        return None
    epsilon, delta = compose(guarantee.charges)
    if round_up(epsilon) != guarantee.epsilon or round_up(delta) != guarantee.delta:
        return Fraction(Decimal(repr(guarantee.epsilon))), Fraction(Decimal(repr(guarantee.delta)))
    return epsilon, delta


def note_answers(book: Book, number: int, charges: Iterable[Charge]) -> None:
    """Note the answers of a release, if they compose singly and are not too many."""
    answers = answers_of(charges)
    if answers is not None and len(answers) <= _MOST_ANSWERS:
        text = json.dumps([[answer.kept, times] for answer, times in answers])
        book.connection.execute("INSERT INTO answers VALUES (?, ?)", (number, text))


def lost_entry_error(book: Book) -> InputError:
    """Return the error of an entry that is not there any more."""
    return InputError("ledger-entry-gone", path=book.path)


def plain(text: str) -> str:
    """Return text that can be stored: names of files may hold bytes that are no text."""
    return text.encode("utf-8", "replace").decode()


def texts(cost: Cost | None) -> tuple[str | None, str | None]:
    """Return a cost as texts for the ledger."""
    return (None, None) if cost is None else (str(cost[0]), str(cost[1]))

"""The account of a log: what is spent, what is left, and the effect of one more.

A file has one account for all its readings, with every file that the data owner put there. A release under another
choice of columns, or of what to leave out, revealed facts about the same people.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from veilog.errors import BudgetError, ParameterError, VeilogError
from veilog.ledger.accounts import Account, check_paid
from veilog.ledger.entry import Cost, Entry, as_read, kind_of_case
from veilog.ledger.ledger import Ledger
from veilog.ledger.store import Data
from veilog.privacy.account.guarantee import STRENGTHS, Strength
from veilog.privacy.account.guessing_advantage import advantage_of
from veilog.releasing.account_notes import LedgerStatus
from veilog.releasing.request import ReleaseRequest
from veilog.report.explorer import clean
from veilog.report.words import other_accounts_sentence
from veilog.web.jobs.records import LogRecord, Problem, ServerSettings
from veilog.web.jobs.results import ReleasedLog


@lru_cache(maxsize=256)
def advantage_at(cost: Cost) -> float:
    """Return the guessing advantage in percentage points, rounded up."""
    return -(-advantage_of(*cost) * 10_000 // 1) / 100


def accounts_of(logs: Sequence[LogRecord], settings: ServerSettings) -> dict[str, Account]:
    """Return the accounts by the ids of logs, from one read of the ledger.

    It is empty if the ledger cannot be read at once. A log whose readings have accounts of their own has none until its
    account page puts them together.
    """
    if not settings.ledger.exists():
        return {}
    marks = {log.id: _marks(log) for log in logs}
    try:
        found = Ledger(settings.ledger, patience=0).accounts_of(set().union(*marks.values()))
    except (VeilogError, ValueError):
        return {}
    every = {log.id: {a.number: a for mark in marks[log.id] if (a := found.get(mark)) is not None} for log in logs}
    return {log.id: next(iter(every[log.id].values())).among(log.cases) for log in logs if len(every[log.id]) == 1}


@dataclass(frozen=True)
class Segment:
    """One release in the bar of an account: its stretch of the guessing advantage.

    It goes from ``start`` to ``end``, in percentage points of what all releases together let an attacker gain.
    """

    number: int
    """Number in the ledger; 0 for the next release."""
    start: float
    end: float
    strength: Strength


def segments(account: Account | None, upcoming: Cost | None = None) -> tuple[Segment, ...]:
    """Return the bar of an account, also with one more release."""
    account = account or Account(0, "", "case", None, ())
    entries, found, reached = _counted_entries(account)[-_SEGMENTS:], list[Segment](), 0.0
    first = len(_counted_entries(account)) - len(entries)
    for place, entry in enumerate(entries, first + 1):
        held = replace(account, entries=_counted_entries(account)[:place])
        end = 100.0 if held.spent is None else max(reached, advantage_at(held.spent))
        found.append(Segment(entry.number, reached, end, held.strength))
        reached = end
    if upcoming is not None:
        after = account.with_release(upcoming, None)
        end = 100.0 if after.spent is None else max(reached, advantage_at(after.spent))
        found.append(Segment(0, reached, end, after.strength))
    return tuple(found)


_SEGMENTS = 30
"""Number of releases with a stretch of their own: those before them share one."""
_LATE = 1.0
"""Seconds by which a clock may be set back meanwhile."""


def ledger_status(made: ReleasedLog, log: LogRecord, settings: ServerSettings) -> LedgerStatus | None:
    """Return the ledger's facts on a release of this log, or None without an entry.

    They come from one read. Other accounts are not named: other browsers may have brought those files.
    """
    if made.entry is None:
        return None
    standing = LedgerStatus.of_entry(Ledger(settings.ledger), made.entry, named=False)
    return standing if standing.account is None else replace(standing, account=standing.account.among(log.cases))


def lost(log: LogRecord, account: Account | None) -> int:
    """Return the number of this file's known releases that the account does not have.

    Their numbers are missing, or, in a ledger that was begun anew, belong to others.
    """
    times = {} if account is None else {entry.number: entry.time for entry in account.entries}
    return sum(number not in times or not entered_by(times[number], ended) for number, ended in log.entries)


def entered_by(time: str, ended: float | None) -> bool:
    """Return True if an entry of this ``time`` can be of a job that ``ended`` then."""
    return ended is None or datetime.datetime.fromisoformat(time).timestamp() < ended + _LATE


@dataclass(frozen=True)
class InAccount:
    """The account of the data before a release; nothing is entered."""

    account: Account | None = None
    """None if there was no release of these data."""
    problem: str | None = None
    """Reason why the account cannot be read."""
    refused: str | None = None
    spent: Cost | None = None
    left: Cost | None = None
    """Rest of the budget for the cases that the release is of."""
    after: Cost | None = None
    """Rest after the release or, without a limit, the sum that is spent then."""
    strength: Strength | None = None
    """Protection level of all releases together with this one."""
    other_unit: bool = False
    """True if releases for another unit exist, whose costs do not add up with this."""
    kinds: tuple[str, ...] = ()
    """Columns that identify cases, if several with this release's: costs do not add up."""
    lost: int = 0
    """Number of known releases that the ledger does not have."""
    others: str = ""
    """Warning of other accounts that may be about the same people, before a first release."""
    falls: Strength | None = None
    """Protection level of all releases so far, if this one lowers it."""
    beside_budget: bool = False
    """True if the ledger does not know these data, and has budgets for others."""


@dataclass(frozen=True)
class AccountSeen:
    """The account of a log on its page."""

    account: Account | None = None
    """None before the first entry."""
    problem: str | None = None
    unit: str = "case"
    """Unit that a budget protects, as releases name it."""
    others: tuple[tuple[int, str], ...] = ()
    """Further accounts of logs of the same browser, by their numbers and names."""
    lost: int = 0

    @property
    def share(self) -> float | None:
        """Percentage of the budget that is spent: of epsilon or delta, the larger."""
        if self.account is None or self.account.budget is None:
            return None
        spent = self.account.composed
        if spent is None:
            return 100.0
        parts = [float(s / b) if b else float(s > 0) for s, b in zip(spent, self.account.budget, strict=True)]
        return round(100 * min(1.0, max(parts)), 1)

    @property
    def places(self) -> dict[int, int]:
        """Place of each release in the account, from 1, by its number in the ledger."""
        return {} if self.account is None else {entry.number: i for i, entry in enumerate(self.account.entries, 1)}

    @property
    def sums(self) -> list[tuple[str, str | None, Cost | None]]:
        """Sums spent for each unit, and for each of several columns that identify cases.

        Costs of several such columns do not add up.
        """
        found: list[tuple[str, str | None, Cost | None]] = []
        counting = () if self.account is None else _counted_entries(self.account)
        for unit in dict.fromkeys(entry.unit for entry in counting):
            assert self.account is not None
            kinds: tuple[str | None, ...] = self.account.kinds if unit == "case" else ()
            for kind in kinds if len(kinds) > 1 else (None,):
                own = tuple(e for e in counting if e.unit == unit and kind in (None, e.kind))
                found.append((unit, kind, replace(self.account, unit=unit, entries=own).spent))
        return found


def account_of(ledger: Ledger, log: LogRecord) -> Account | None:
    """Return the account of a log, also if another reading of its file opened it."""
    found = {a.number: a for mark in _marks(log) if (a := ledger.account(mark)) is not None}
    if len(found) > 1:  # each was opened before the file was known to be the same
        join(ledger, _marks(log)[0], log.readings)
        return ledger.account(_marks(log)[0])
    return next(iter(found.values()), None)


def join(ledger: Ledger, data: Data | bytes, readings: Iterable[str]) -> None:
    """Put data on the account of the other readings of their file, all on one."""
    known = {a.number for mark in readings if (a := ledger.account(bytes.fromhex(mark))) is not None}
    own = ledger.account(data)
    for number in sorted(known - ({own.number} if own else set()), reverse=True):
        ledger.enter(data, account=number)


def forecast_account(log: LogRecord, planned: ReleaseRequest, cost: Cost | None, settings: ServerSettings) -> InAccount:
    """Return the account of a log as it would be with a planned release."""
    unit = planned.unit.column or planned.unit.name
    subset = as_read(planned.subset if unit == "case" else None, log.read_as)
    kind = kind_of_case(log.read_as) if unit == "case" else None
    try:
        ledger = _ledger_of(log, settings)
        account = account_of(ledger, log)
        refused = _refusal_text(account, cost, (unit, kind), subset)
        entries = () if account is None else _counted_entries(account)
        every = () if entries else ledger.show()
    except (VeilogError, ValueError) as error:
        return InAccount(problem=_error_text(error))
    kinds = _kinds(account, kind)
    other = any(entry.unit != unit for entry in entries) or bool(kinds)
    now = (account or Account(0, "", unit, None, ())).among(log.cases)
    strength = None if refused or cost is None else STRENGTHS[-1]
    if cost is not None and not refused and not other:
        strength = now.with_release(cost, subset).strength
    found = InAccount(
        account=account,
        refused=refused,
        strength=strength,
        lost=lost(log, account),
        others="" if entries else other_accounts_sentence(LedgerStatus.of(account, every, named=False)),
        beside_budget=account is None and any(one.budget is not None for one in every),
    )
    if account is None:
        return found
    falls = entries and strength is not None and STRENGTHS.index(strength) > STRENGTHS.index(now.strength)
    return replace(
        found,
        spent=account.spent_on(subset),
        left=account.left_for(subset),
        after=None if other else _cost_after(account, cost, subset),
        other_unit=other or len({entry.unit for entry in entries}) > 1,
        kinds=kinds,
        falls=now.strength if falls else None,
    )


def account_seen(log: LogRecord, settings: ServerSettings, mine: Iterable[LogRecord] = ()) -> AccountSeen:
    """Return the account of a log with all of its releases.

    ``mine`` are the logs of the user who looks at it.
    """
    try:
        ledger = _ledger_of(log, settings)
        account = account_of(ledger, log)
        # Accounts of further logs of this browser, by their names: those of other users are not shown.
        others = {a.number: log.name for log in mine if (a := account_of(ledger, log)) is not None}
    except (VeilogError, ValueError) as error:
        return AccountSeen(problem=_error_text(error))
    others.pop(0 if account is None else account.number, None)
    unit = log.columns.get("person") or "case" if account is None else account.unit
    seen = None if account is None else account.among(log.cases)
    return AccountSeen(seen, unit=unit, others=tuple(sorted(others.items())), lost=lost(log, account))


def limit(log: LogRecord, settings: ServerSettings, epsilon: str | None, delta: str, unit: str | None) -> None:
    """Set the budget of a log for all its releases, and, if given, its unit.

    None as ``epsilon`` removes the limit. What is spent stays spent.
    """
    ledger, mark = _join_account(log, settings)
    ledger.set_budget(mark, epsilon, delta, unit=unit)


def count_all(log: LogRecord, settings: ServerSettings) -> None:
    """Enter the releases of a log that its account does not count; this is final."""
    ledger, mark = _join_account(log, settings)
    ledger.count_uncounted(mark)


def persons_of(log: LogRecord) -> tuple[str, ...]:
    """Return the units for which a budget can be, as releases name them.

    Among columns, they are those named after persons, and the chosen one.
    """
    units = log.measured.units if log.measured else ()
    chosen = log.columns.get("person")
    return ("case", "person", *(column.column for column in units if column.likely or column.column == chosen))


def put_on(log: LogRecord, settings: ServerSettings, account: int, mine: Iterable[LogRecord]) -> None:
    """Put a log, with what was spent on it, on another account that its page offers."""
    if account not in dict(account_seen(log, settings, mine).others):
        raise Problem(400, "account-unknown")
    ledger, mark = _join_account(log, settings)
    ledger.enter(mark, account=account)


def entry_of(log: LogRecord, entry: int, settings: ServerSettings) -> Entry | None:
    """Return the ledger's entry for a job that failed; None without a readable one."""
    try:
        rows = (row for account in _ledger_of(log, settings).show() for row in account.entries)
        return next((row for row in rows if row.number == entry), None)
    except VeilogError:
        return None


def _ledger_of(log: LogRecord, settings: ServerSettings) -> Ledger:
    return Ledger.open(settings.ledger, create=True, name=clean(log.name)[:120])


def _error_text(error: VeilogError | ValueError) -> str:
    return clean(error.words() if isinstance(error, VeilogError) else str(error))


def _marks(log: LogRecord) -> list[bytes]:
    """Return the fingerprints of a log's readings, its own first; empty if unread."""
    marks = () if log.measured is None else (log.measured.fingerprint, *log.readings)
    return [bytes.fromhex(mark) for mark in dict.fromkeys(marks)]


def _join_account(log: LogRecord, settings: ServerSettings) -> tuple[Ledger, bytes]:
    """Return the log's ledger, with all readings on one account, and its fingerprint."""
    if log.measured is None:
        raise Problem(400, "log-still-being-read")
    ledger, mark = _ledger_of(log, settings), bytes.fromhex(log.measured.fingerprint)
    join(ledger, mark, log.readings)
    return ledger, mark


def _counted_entries(account: Account) -> tuple[Entry, ...]:
    return tuple(entry for entry in account.entries if entry.state != "withdrawn")


def _kinds(account: Account | None, kind: str | None) -> tuple[str, ...]:
    """Return the columns that identify cases with one more release, if several."""
    if account is None or kind is None:
        return ()
    found = tuple(dict.fromkeys([*account.kinds, kind]))
    return found if len(found) > 1 else ()


def _refusal_text(
    account: Account | None, cost: Cost | None, of: tuple[str, str | None], subset: str | None
) -> str | None:
    try:
        if account is not None:
            check_paid(account, cost, of[0], subset, of[1])
    except (BudgetError, ParameterError) as error:
        return clean(error.words())
    return None


def _cost_after(account: Account, cost: Cost | None, subset: str | None) -> Cost | None:
    spent, left = account.spent_on(subset), account.left_for(subset)
    if cost is None or spent is None:
        return None
    if left is None:
        return spent[0] + cost[0], spent[1] + cost[1]
    return account.with_release(cost, subset).left_for(subset)

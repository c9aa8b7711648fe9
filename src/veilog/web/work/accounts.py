"""The account of a log: what its releases cost together, what is left, and what one more would do to it.

A file has one account however it is read, and every file that its owner put there: what was spent under another choice
of columns or of what to leave out was told about the same people.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from veilog._language import gettext, gettext_noop
from veilog.errors import BudgetError, ParameterError, VeilogError
from veilog.ledger.accounts import Account, check_paid, in_figures
from veilog.ledger.entry import Cost, Entry, as_read, kind_of_case
from veilog.ledger.ledger import Ledger
from veilog.ledger.store import Data
from veilog.privacy.account.guarantee import STRENGTHS, Strength
from veilog.privacy.account.guessing import advantage_of
from veilog.releasing.owner import Standing
from veilog.releasing.request import ReleaseRequest
from veilog.report.explorer import clean
from veilog.report.figures import figure
from veilog.report.words import of_other_accounts
from veilog.web.jobs.problems import Problem
from veilog.web.jobs.records import LogRecord, ServerSettings
from veilog.web.jobs.results import AccountSums, Figures, ReleasedLog


@lru_cache(maxsize=256)
def advantage_at(cost: Cost) -> float:
    """Return by how many percentage points a release of this cost lets anybody guess better, rounded up."""
    return -(-advantage_of(*cost) * 10_000 // 1) / 100


def cost_in_words(cost: Figures) -> str:
    """Return a cost as it is written, rounded up to a few digits."""
    epsilon, delta = (figure(Fraction(part)) for part in cost)
    return f"ε = {epsilon}" + (f", δ = {delta}" if cost[1] != "0" else "")


def figures(cost: Cost | None, *, down: bool = False) -> Figures | None:
    """Return a cost in figures, rounded up, or what is left of one, rounded ``down``; None: nothing bounds it."""
    return None if cost is None else (in_figures(cost[0], down=down), in_figures(cost[1], down=down))


def log_sums(logs: Sequence[LogRecord], settings: ServerSettings) -> dict[str, AccountSums]:
    """Return the sums by the ids of logs, from one read of the ledger; none where it cannot be read at once. A log
    whose readings have accounts of their own has none until its account is looked at, which puts them together."""
    marks = {
        log.id: {bytes.fromhex(mark) for mark in (log.measured.fingerprint, *log.readings)}
        for log in logs
        if log.measured is not None
    }
    if not settings.ledger.exists():
        return {}
    try:
        found = Ledger(settings.ledger, patience=0).accounts_of(set().union(*marks.values()))
    except (VeilogError, ValueError):
        return {}
    sums = {}
    for log in logs:
        accounts = {a.number: a for mark in marks.get(log.id, ()) if (a := found.get(mark)) is not None}
        if len(accounts) != 1 or log.measured is None:
            continue
        (account,) = accounts.values()
        account = account.among(log.measured.statistics.cases)
        sums[log.id] = sums_of(account)
    return sums


_LATE = 1.0
"""Seconds that a clock may be set back meanwhile."""


@dataclass(frozen=True)
class Now:
    """What a ledger said a moment ago."""

    standing: Standing
    account: AccountSums | None
    """None where the ledger does not have the release."""


def standing_now(made: ReleasedLog, log: LogRecord, settings: ServerSettings) -> Now | None:
    """Return what the ledger says of a release of this log, in one read; None where it was entered in none. Other
    accounts are not named: other browsers may have brought those files."""
    if made.entry is None:
        return None
    standing = Standing.of_entry(Ledger(settings.ledger), made.entry, named=False)
    if standing.account is None:
        return Now(standing, None)
    cases = 0 if log.measured is None else log.measured.statistics.cases
    account = standing.account.among(cases)
    return Now(replace(standing, account=account), sums_of(account))


def lost(log: LogRecord, account: Account | None) -> int:
    """Return how many releases of this file the store knows that the account does not have: their numbers are missing,
    or, of a ledger that was begun anew, are those of others."""
    times = {} if account is None else {entry.number: entry.time for entry in account.entries}
    return sum(number not in times or not entered_by(times[number], ended) for number, ended in log.entries)


def entered_by(time: str, ended: float | None) -> bool:
    """Return whether what was entered at this ``time`` can be of a job that had ``ended`` then."""
    return ended is None or datetime.datetime.fromisoformat(time).timestamp() < ended + _LATE


def sums_of(account: Account) -> AccountSums:
    """Return the account of a log in a line."""
    left = figures(account.left, down=True)
    return AccountSums(account.releases, figures(account.spent), left, account.strength, len(account.uncounted))


PROPOSALS = (("1", "good"), ("2", "moderate"))
"""Budgets that a page proposes, and what all releases together are worth then."""
_SHOWN = 200
"""Releases of an account on its page, the newest."""


@dataclass(frozen=True)
class InAccount:
    """What the account of the data says to a release; nothing is entered. Costs are pairs of figures."""

    problem: str | None = None
    """Why the account cannot be seen."""
    refused: str | None = None
    known: bool = False
    releases: int = 0
    budget: Figures | None = None
    spent: Figures | None = None
    left: Figures | None = None
    after: Figures | None = None
    """What would be left after it, or, without a limit, what would have been spent in all."""
    strength: Strength | None = None
    """What all releases together would be worth, with this one."""
    other_unit: bool = False
    """Whether there are releases for another unit, so that costs do not add up."""
    kinds: tuple[str, ...] = ()
    """Where cases were told by several columns, with that of this release: for these costs do not add up, either."""
    lost: int = 0
    """Releases that are known to have been made, and that the ledger does not have."""
    others: str = ""
    """Where nothing was released of these data yet: that there are other accounts with releases, which may be about the
    same people."""
    falls: Strength | None = None
    """The protection level of all releases so far, where this one takes it lower."""
    beside_budget: bool = False
    """Whether the ledger does not know these data, and has budgets for others."""
    uncounted: int = 0
    """Releases of these data that the account does not count."""


@dataclass(frozen=True)
class AccountRelease:
    """A release in an account, as its page shows it."""

    number: int
    time: str
    method: str
    unit: str
    part: str
    cost: Figures | None
    """None: nothing bounds it."""
    state: str
    timed: bool
    attributes: int


@dataclass(frozen=True)
class AccountSeen:
    """The account of a log on its page."""

    problem: str | None = None
    number: int | None = None
    """None: nothing was entered yet."""
    unit: str = "case"
    """Whom a budget protects, as releases name it."""
    budget: Figures | None = None
    spent: Figures | None = None
    left: Figures | None = None
    share: float | None = None
    """How much of the budget is spent, in percent; of epsilon or delta, whichever is nearer to its end."""
    strength: Strength | None = None
    sums: tuple[tuple[str, Figures | None], ...] = ()
    """What was spent for each unit, and of cases for each column that told them: of several, costs do not add up."""
    rows: tuple[AccountRelease, ...] = ()
    """Newest first."""
    more: int = 0
    others: tuple[tuple[int, str], ...] = ()
    """Further accounts of logs of the same browser, by their numbers and names."""
    lost: int = 0
    uncounted: tuple[AccountRelease, ...] = ()
    """Releases that the account does not count."""


def account_of(ledger: Ledger, log: LogRecord) -> Account | None:
    """Return the account of a log, also where it was opened for another reading of the same file."""
    if log.measured is None:
        return None
    marks = dict.fromkeys([log.measured.fingerprint, *log.readings])
    found = {a.number: a for mark in marks if (a := ledger.account(bytes.fromhex(mark))) is not None}
    if len(found) > 1:  # each was opened before it was known that the file is the same
        join(ledger, bytes.fromhex(log.measured.fingerprint), log.readings)
        return ledger.account(bytes.fromhex(log.measured.fingerprint))
    return next(iter(found.values()), None)


def join(ledger: Ledger, data: Data | bytes, readings: Iterable[str]) -> None:
    """Put data on the account of the other readings of their file, and all of these together."""
    known = {a.number for mark in readings if (a := ledger.account(bytes.fromhex(mark))) is not None}
    own = ledger.account(data)
    for number in sorted(known - ({own.number} if own else set()), reverse=True):
        ledger.enter(data, account=number)


def foreseen(log: LogRecord, planned: ReleaseRequest, cost: Cost | None, settings: ServerSettings) -> InAccount:
    """Return what the account of a log says to a release that is planned."""
    unit = planned.unit.column or planned.unit.name
    part = as_read(planned.part if unit == "case" else None, log.read_as)
    kind = kind_of_case(log.read_as) if unit == "case" else None
    try:
        ledger = _ledger_of(log, settings)
        account = account_of(ledger, log)
        refused = _refused(account, cost, (unit, kind), part)
        entries = () if account is None else _counting(account)
        every = () if entries else ledger.show()
    except (VeilogError, ValueError) as error:
        return InAccount(problem=clean(error.words() if isinstance(error, VeilogError) else str(error)))
    missing = lost(log, account)
    others = "" if entries else of_other_accounts(Standing.of(account, every, named=False))
    before = (Fraction(0), Fraction(0)) if account is None else account.spent_on(part)
    kinds = _kinds(account, kind)
    other = any(entry.unit != unit for entry in entries) or bool(kinds)
    strength = None if refused else STRENGTHS[-1]
    now = (account or Account(0, "", unit, None, ())).among(log.cases)
    if cost is not None and not refused and not other:
        strength = now.with_release(cost, part).strength
    if account is None:
        beside_budget = any(one.budget is not None for one in every)
        return InAccount(
            refused=refused,
            strength=None if cost is None else strength,
            lost=missing,
            others=others,
            beside_budget=beside_budget,
        )
    falls = entries and strength is not None and STRENGTHS.index(strength) > STRENGTHS.index(now.strength)
    return InAccount(
        refused=refused,
        known=True,
        releases=len(entries),
        budget=figures(account.budget),
        spent=figures(before),
        left=figures(account.left_for(part), down=True),
        after=None if other else figures(_after(account, cost, part), down=account.budget is not None),
        strength=None if cost is None else strength,
        other_unit=other or len({entry.unit for entry in entries}) > 1,
        kinds=tuple(clean(name)[:60] for name in kinds),
        lost=missing,
        others=others,
        falls=now.strength if falls else None,
        uncounted=len(account.uncounted),
    )


def account_seen(log: LogRecord, settings: ServerSettings, mine: Iterable[LogRecord] = ()) -> AccountSeen:
    """Return the account of a log with all of its releases; ``mine`` are the logs of whoever looks at it."""
    try:
        ledger = _ledger_of(log, settings)
        account = account_of(ledger, log)
        others = _others(ledger, account, mine)
    except (VeilogError, ValueError) as error:
        return AccountSeen(problem=clean(error.words() if isinstance(error, VeilogError) else str(error)))
    if account is None:
        return AccountSeen(unit=log.columns.get("person") or "case", others=others, lost=lost(log, None))
    account = account.among(log.cases)
    newest = tuple(map(_entered, reversed(account.entries[-_SHOWN:])))
    counting = _counting(account)
    return AccountSeen(
        number=account.number,
        unit=account.unit,
        budget=figures(account.budget),
        spent=figures(account.spent),
        left=figures(account.left, down=True),
        share=_share(account),
        strength=account.strength if counting else None,
        sums=tuple(_sums(account)),
        rows=newest,
        more=len(account.entries) - len(newest),
        others=others,
        lost=lost(log, account),
        uncounted=tuple(map(_entered, account.uncounted[-_SHOWN:])),
    )


def epsilon_left(log: LogRecord, settings: ServerSettings) -> float | None:
    """Return what is left of the epsilon of a log, rounded down; None where there is no limit, or no account."""
    try:
        account = account_of(_ledger_of(log, settings), log)
    except (VeilogError, ValueError):
        return None
    return None if account is None or account.left is None else float(in_figures(account.left[0], down=True))


def _others(ledger: Ledger, account: Account | None, mine: Iterable[LogRecord]) -> tuple[tuple[int, str], ...]:
    """The accounts of further logs of this browser, by their names: those of others are not shown."""
    found = {a.number: log.name for log in mine if (a := account_of(ledger, log)) is not None}
    found.pop(0 if account is None else account.number, None)
    return tuple((number, clean(name)) for number, name in sorted(found.items()))


def limit(log: LogRecord, settings: ServerSettings, epsilon: str | None, delta: str, unit: str | None) -> None:
    """Set what all releases of a log may cost together, and whom that protects, if that is said; None takes the limit
    away. What is spent stays spent."""
    ledger, mark = _ledger_of(log, settings), _mark(log)
    account = account_of(ledger, log)
    if account is not None:
        join(ledger, mark, log.readings)
    ledger.set_budget(mark, epsilon, delta, unit=unit)


def count_all(log: LogRecord, settings: ServerSettings) -> None:
    """Take the releases of a log that its account does not count into it; this cannot be undone."""
    ledger, mark = _ledger_of(log, settings), _mark(log)
    join(ledger, mark, log.readings)
    ledger.count_uncounted(mark)


def persons_of(log: LogRecord) -> tuple[str, ...]:
    """Return for whom a budget can be, as releases name it: of the columns, those that are called after persons, and
    the one that was chosen."""
    units = log.measured.units if log.measured else ()
    chosen = log.columns.get("person")
    return ("case", "person", *(column.column for column in units if column.likely or column.column == chosen))


def put_on(log: LogRecord, settings: ServerSettings, account: int, mine: Iterable[LogRecord]) -> None:
    """Put a log on another account of its ledger, one of those that its page offers, with all that was spent on it."""
    ledger, mark = _ledger_of(log, settings), _mark(log)
    if account not in dict(account_seen(log, settings, mine).others):
        raise Problem(400, "account-unknown")
    join(ledger, mark, log.readings)
    ledger.enter(mark, account=account)


def price(log: LogRecord, entry: int | None, settings: ServerSettings) -> str | None:
    """Return in words what a job cost that did not end well; None where the ledger cannot say."""
    if entry is None:
        return gettext("It had not asked the log anything yet, so it cost nothing.")
    try:
        rows = (row for account in _ledger_of(log, settings).show() for row in account.entries)
        found = next((row for row in rows if row.number == entry), None)
    except VeilogError:
        return None
    if found is None:
        return None
    if found.state == "withdrawn":
        return gettext("It had not asked the log anything yet, so it cost nothing.")
    cost = figures(found.cost)
    words = gettext("an amount that nothing bounds") if cost is None else cost_in_words(cost)
    if found.state == "reserved":
        return gettext("It cost all that was set aside for it: {cost}.", cost=words)
    return gettext("What it had asked by then cost {cost}.", cost=words)


def _ledger_of(log: LogRecord, settings: ServerSettings) -> Ledger:
    return Ledger.open(settings.ledger, create=True, name=clean(log.name)[:120])


def _mark(log: LogRecord) -> bytes:
    if log.measured is None:
        raise Problem(400, "log-still-being-read")
    return bytes.fromhex(log.measured.fingerprint)


def _counting(account: Account) -> tuple[Entry, ...]:
    return tuple(entry for entry in account.entries if entry.state != "withdrawn")


def _sums(account: Account) -> Iterable[tuple[str, Figures | None]]:
    """What was spent for each unit. Where several columns told cases, each of them is one."""
    counting = _counting(account)
    for unit in dict.fromkeys(entry.unit for entry in counting):
        kinds: tuple[str | None, ...] = account.kinds if unit == "case" else ()
        for kind in kinds or (None,):
            own = tuple(e for e in counting if e.unit == unit and (kind is None or e.kind == kind))
            named = unit if len(kinds) < 2 else gettext("case by {column}", column=repr(kind))
            yield clean(named)[:60], figures(replace(account, unit=unit, entries=own).spent)


def _kinds(account: Account | None, kind: str | None) -> tuple[str, ...]:
    """The columns that told cases, where they are several with that of one release more for cases."""
    if account is None or kind is None:
        return ()
    found = tuple(dict.fromkeys([*account.kinds, kind]))
    return found if len(found) > 1 else ()


def _refused(account: Account | None, cost: Cost | None, whom: tuple[str, str | None], part: str | None) -> str | None:
    try:
        if account is not None:
            check_paid(account, cost, whom[0], part, whom[1])
    except (BudgetError, ParameterError) as error:
        return clean(error.words())
    return None


def _after(account: Account, cost: Cost | None, part: str | None) -> Cost | None:
    spent, left = account.spent_on(part), account.left_for(part)
    if cost is None or spent is None:
        return None
    if left is None:
        return spent[0] + cost[0], spent[1] + cost[1]
    return account.with_release(cost, part).left_for(part)


def _share(account: Account) -> float | None:
    if account.budget is None:
        return None
    spent = account.composed
    if spent is None:
        return 100.0
    parts = [float(s / b) if b else float(s > 0) for s, b in zip(spent, account.budget, strict=True)]
    return round(100 * min(1.0, max(parts)), 1)


_STATES: Mapping[str, str] = {
    "reserved": gettext_noop("set aside and never settled: counts as spent"),
    "charged": gettext_noop("not finished: what it asked is spent"),
    "written": gettext_noop("released"),
    "withdrawn": gettext_noop("failed before anything was asked: cost nothing"),
}


def _entered(entry: Entry) -> AccountRelease:
    cost = entry.cost
    return AccountRelease(
        number=entry.number,
        time=entry.time,
        method=clean(entry.method) + (f", {gettext('as published')}" if entry.as_published else ""),
        unit=clean(entry.unit)[:60],
        part=clean(entry.part or "")[:60],
        cost=figures(cost),
        state=_STATES[entry.state],
        timed=bool(entry.parameters.get("times")),
        attributes=len(entry.parameters.get("attributes") or ()),
    )

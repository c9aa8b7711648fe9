"""Where the last release of a span of days ended, so that the next begins there: read off the ledger, never off a log.

What was *written* counts as released, and so does what came out empty: that is an answer, of too few cases. To ask it
again with every night that follows would cost its cases each time. What was charged and never written (a release that
failed or was cut off) is asked again with the next span, and costs its cases anew.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from veilog.errors import BudgetError, ParameterError, meant
from veilog.ledger.accounts import Account
from veilog.ledger.costs import days_of
from veilog.ledger.entries import Entry
from veilog.ledger.ways import differences
from veilog.privacy.part import SPAN, Part

_DATE = "Give the first day to release in its place"
"""In words that are right for the command and for Python."""


@dataclass(frozen=True)
class LastSpan:
    """The day on which the last release of a span of days ended: the first that is not in it."""

    account: str
    entry: Entry
    """The release that ended last."""
    end: str
    lost: tuple[Entry, ...]
    """Releases of later days that were charged, or are still set aside, and were never written; no process has them."""

    def until(self, end: datetime.date | None) -> Part:
        """The part from that day on, before ``end``; by default today in UTC, so whole days."""
        end = datetime.datetime.now(datetime.UTC).date() if end is None else end
        if self.end >= end.isoformat():
            raise ParameterError(
                f"All days before {self.end} are released on account {self.account!r} (release {self.entry.number}), "
                f"so none is left before {end}.",
                parameter="since",
                advice="Nothing was asked of the data. Wait until another day is over.",
            )
        return Part(SPAN, f"{self.end}..{end}", follows=True)

    def check(self, unit: str, read_as: str | None = None) -> None:
        """:class:`ParameterError` where the release to come is for another unit than the last, or its log is read in
        another way: which day a case is of would be another, so it could be in both or in none."""
        what = None
        if unit != self.entry.unit:
            what = f"protects {self.entry.unit!r}, and this one {unit!r}"
        elif read_as is not None and read_as != self.entry.way:
            what = f"is of a log that was read in another way ({differences(self.entry.way, read_as)})"
        if what is not None:
            raise ParameterError(
                f"The last release of days on account {self.account!r} (release {self.entry.number}) {what}: it does "
                "not tell which cases are still to be released.",
                parameter="since",
                advice=f"Nothing was asked of the data. {_DATE}, such as {self.end}; or release as it did.",
            )

    @property
    def in_words(self) -> str:
        """Which day this is, and what becomes of days that were paid for and never written."""
        said = f"{self.end}, where release {self.entry.number} on account {self.account!r} ended"
        said += ", which came out empty" if self.entry.empty else ""
        if self.lost:
            numbers = ", ".join(str(entry.number) for entry in self.lost)
            said += f"; what release {numbers} had of later days was never written, so these are paid for again"
        return said


def last_span(accounts: Iterable[Account], name: str | None) -> LastSpan:
    """Return where the last release of a span of days on the account of this name ended; :class:`ParameterError` where
    none tells, or where days before it are in no release."""
    if name is None:
        raise ParameterError(
            "Where the last release ended is in an account, and none is named.",
            parameter="since",
            advice=f"Add --account NAME (in Python to Ledger.open). {_DATE} where there is none.",
        )
    accounts = list(accounts)
    found = [account for account in accounts if account.name == name]
    if len(found) != 1:
        raise ParameterError(
            f"{'No account is' if not found else 'Several accounts are'} called {name!r}.",
            parameter="account",
            advice=f"{meant(name, [account.name for account in accounts])}{_DATE} where it is new.",
        )
    made = [(days, entry) for entry in found[0].entries if (days := days_of(entry.part)) and entry.state != "withdrawn"]
    spans = [(days, entry) for days, entry in made if _answered(entry)]
    if not spans:
        raise ParameterError(
            f"No release of days is made on account {name!r} yet, so nothing tells where the next begins.",
            parameter="since",
            advice=f"{_DATE}, once.",
        )
    running = [(last, entry) for (_, last), entry in made if entry.runs]
    (_, end), entry = max(spans, key=lambda span: (span[0][1], span[1].number))
    _check_running([other for last, other in running if last > end], found[0])
    _check_gap([days for days, _ in spans], name)
    return LastSpan(name, entry, end, tuple(one for (_, last), one in made if not _answered(one) and last > end))


def check_follows(account: Account, part: Part, unit: str, way: str) -> None:
    """Refuse, in the transaction that reserves, a span of days that no longer begins where the last release ended:
    another run may have released these days since they were read off the ledger."""
    first, _, end = part.value.partition("..")
    last = last_span([account], account.name)
    last.check(unit, way)
    last.until(datetime.date.fromisoformat(end))  # refuses where none is left
    if last.end != first:
        raise BudgetError(
            f"Release {last.entry.number} on account {account.name!r} has ended on {last.end} since this run began.",
            account=account.number,
            advice="Nothing was asked of the data. Run it again: it begins there.",
        )


def _check_running(running: Sequence[Entry], account: Account) -> None:
    """Refuse where another run is releasing days that come next: both would release them."""
    if running:
        raise BudgetError(
            f"Release {running[-1].number} on account {account.name!r} is of these days and is not written yet: its "
            "process still runs.",
            account=account.number,
            advice="Nothing was asked of the data. Wait until it has ended. If its machine is gone, "
            f"{_DATE[0].lower()}{_DATE[1:]}.",
        )


def _answered(entry: Entry) -> bool:
    """Whether its days are released, with whatever came out."""
    return entry.state == "written" or entry.empty


def _check_gap(spans: Sequence[tuple[str, str]], name: str) -> None:
    """Refuse days in no release before the last one. Whoever left them out on purpose goes on without them once, by a
    date; then two releases join after them."""
    begin, end = max(spans, key=lambda span: span[1])
    joined = 0
    for first, last in sorted(spans, key=lambda span: span[1], reverse=True):  # ISO dates sort as text
        if last < begin:
            break
        begin, joined = min(begin, first), joined + 1
    before = [last for _, last in spans if last < begin]
    if before and joined < 2:
        raise ParameterError(
            f"The days from {max(before)} on and before {begin} are in no release on account {name!r}.",
            parameter="since",
            advice=f"Nothing was asked of the data. Release these days, from {max(before)} until {begin}; or go on "
            f"without them, once from {end} on.",
        )

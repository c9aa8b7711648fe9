"""What the account of a log would say to a release: found out before it, and nothing is reserved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from veilog import display
from veilog.errors import ParameterError, VeilogError
from veilog.ledger.accounts import check_paid, check_unknown
from veilog.ledger.costs import short
from veilog.ledger.file import AccountRow
from veilog.ledger.ledger import Account, Data, Ledger
from veilog.ledger.ways import as_read, kind_of_case
from veilog.releasing.planned import Planned

__all__ = ["Foreseen", "foreseen"]


@dataclass(frozen=True)
class Foreseen:
    """The account as it would be after a release, or why the release would be refused."""

    after: Account | None
    refused: str = ""

    @property
    def line(self) -> Text:
        """What is said of it."""
        if self.after is None:
            return Text(f"the release would be refused. {self.refused}", style="bold red")
        return Text(f"after the release: {display.account_line(self.after)}")

    def to_json(self) -> dict[str, Any]:
        return {"refused": self.refused} if self.after is None else self.after.totals()


def foreseen(ledger: Ledger, planned: Planned, log: Data) -> Foreseen:
    """Return what this ledger would say to the release of this log, by its own rules; it is only read."""
    unit = planned.unit.column or planned.unit.name
    cost = (short(planned.epsilon), short(planned.delta)) if planned.bounded else None
    part = as_read(planned.part, log.read_as)
    kind = kind_of_case(log.read_as) if unit == "case" else None
    try:
        account = _account(ledger, log) or Account(0, ledger.account_name or ledger.name or "", unit, None, ())
        check_paid(account, cost, unit, part, kind)
    except VeilogError as error:
        return Foreseen(None, getattr(error, "problem", str(error)))
    if cost is None or unit != account.unit or (kind is not None and account.kinds not in ((), (kind,))):
        return Foreseen(account)  # it has no budget, so it takes what nothing bounds, or what does not add up
    return Foreseen(account.with_release(cost, part))


def _account(ledger: Ledger, log: Data) -> Account | None:
    """The account that the release would be entered in; None where one would be opened."""
    known, every = ledger.account(log), ledger.show()
    called = [account for account in every if account.name == ledger.account_name]
    if ledger.account_name is None:
        if known is None:
            check_unknown(_rows(every))
        return known
    if len(called) > 1 or (known is not None and known.number not in [account.number for account in called]):
        on = "several accounts have this name" if known is None else f"these data are on account {known.number}"
        raise ParameterError(f"It cannot be entered as {ledger.account_name!r}: {on}.", parameter="account")
    if not called:
        check_unknown(_rows(every))
    return called[0] if called else None


def _rows(accounts: Sequence[Account]) -> list[AccountRow]:
    return [AccountRow(one.number, one.name, one.unit, *(one.budget or (None, None))) for one in accounts]

"""Confirmations before a release: its budget as the ledger foresees it, and its losses; nothing is reserved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.text import Text

from veilog import display
from veilog._plain import to_json
from veilog.cli.shared.budget import at_a_terminal
from veilog.cli.shared.common import Output
from veilog.cli.shared.terminal import CALL, SafeConsole
from veilog.errors import BudgetError, ParameterError, VeilogError
from veilog.ledger.accounts import check_paid
from veilog.ledger.costs import short
from veilog.ledger.ledger import Account, Data, Ledger
from veilog.ledger.ways import as_read, kind_of_case
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.privacy.account.strength import STRENGTHS, Strength
from veilog.releasing.losses import in_words
from veilog.releasing.owner.account import beside_budgets, level_falls, uncounted_warning
from veilog.releasing.owner.notes import tells_loss
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.result import AccountWarning, Release


@dataclass(frozen=True)
class Foreseen:
    """The account as it would be after a release, or why the release would be refused."""

    after: Account | None
    refused: str = ""
    warnings: tuple[AccountWarning, ...] = ()

    @property
    def line(self) -> Text:
        """What is said of it."""
        if self.after is None:
            return Text(f"the release would be refused. {self.refused}", style="bold red")
        said = " ".join([display.account_line(self.after) + ".", *(warning.text for warning in self.warnings)])
        return Text(f"after the release: {said}" if self.warnings else f"after the release: {said[:-1]}")

    def to_json(self) -> dict[str, Any]:
        """Return the account for programs, with the codes of what its owner is warned of."""
        told = {"warnings": to_json(self.warnings)} if self.warnings else {}
        return ({"refused": self.refused} if self.after is None else self.after.totals()) | told


def foreseen(ledger: Ledger, planned: ReleaseRequest, log: Data) -> Foreseen:
    """Return what this ledger would say to the release of this log, by its own rules; it is only read."""
    unit = planned.unit.column or planned.unit.name
    cost = (short(planned.epsilon), short(planned.delta)) if planned.bounded else None
    by_parts = unit == "case" or planned.remember_units
    part = as_read(planned.part, log.read_as) if by_parts else None
    kind = kind_of_case(log.read_as) if unit == "case" else None
    try:
        account = _account(ledger, log, unit)
        check_paid(account, cost, unit, part, kind)
    except VeilogError as error:
        return Foreseen(None, getattr(error, "problem", str(error)))
    if cost is None or unit != account.unit or (kind is not None and account.kinds not in ((), (kind,))):
        # It has no budget, so it takes what nothing bounds, or what does not add up.
        return Foreseen(account, warnings=_warnings(account, STRENGTHS[-1]))
    after = account.with_release(cost, part)
    return Foreseen(after, warnings=_warnings(account, after.strength))


def _account(ledger: Ledger, log: Data, unit: str) -> Account:
    """The account that the release would be entered in; a new one where one would be opened."""
    known, every = ledger.account(log), ledger.show()
    name, found = ledger.account_name, known
    if name is not None:
        called = {account.number: account for account in every if account.name == name}
        if len(called) > 1 or (known is not None and known.number not in called):
            on = "several accounts have this name" if known is None else f"these data are on account {known.number}"
            raise ParameterError(f"It cannot be entered as {name!r}: {on}.", parameter="account")
        found = next(iter(called.values()), None)
    if found is None:
        limited = sum(account.budget is not None for account in every)
        found = Account(0, name or ledger.name or "", unit, None, (), others=len(every), budgets_beside=limited)
    return found.among((log if isinstance(log, Variants) else log.variants).cases)


def _warnings(before: Account, level: Strength) -> tuple[AccountWarning, ...]:
    """What the account's owner has to know before a release after which all together have this level."""
    falls = before.releases and STRENGTHS.index(level) > STRENGTHS.index(before.strength)
    found = [level_falls(before.strength, level)] if falls else []
    if not before.number and before.budgets_beside:
        found.append(beside_budgets(before))
    return (*found, *uncounted_warning(before))


def confirm_level(out: Output, ledger: Ledger | None, planned: ReleaseRequest, log: Data) -> None:
    """Ask whoever is at a terminal where a release takes the sum of its account to a lower protection level;
    :class:`BudgetError` if that is not what they want. A script goes on, and its JSON has the code."""
    if ledger is None or not at_a_terminal():
        return
    for warning in foreseen(ledger, planned, log).warnings:
        out.show(Text(f"For you only: {warning.text}", style="magenta"))
        if warning.code == "account-level-falls":
            answer = out.console.input(Text("Release it nevertheless? [y/N] "))
            if answer.strip().lower() not in ("y", "yes"):
                raise BudgetError(
                    "The release was not made: all releases of the log together would protect less.",
                    advice="Nothing was asked of the data. Take a smaller epsilon, or say y.",
                )


def confirm_losses(out: Output, planned: ReleaseRequest, log: EventLog | StoredLog | Variants) -> None:
    """Show a person at a terminal what their release would leave out, and go on only if they say so. A script goes on:
    no release stops by itself because of raw data."""
    if CALL.get().quiet or not at_a_terminal():
        return
    found = planned.losses(log)
    if not found:
        return
    out.show(Text("Confidential, from the log itself:", style="bold magenta"))
    for loss in found:
        out.show(Text(f"  {in_words(loss)}", style="magenta"))
    answer = out.console.input(Text("Release it nevertheless? Nothing is spent yet. [y/N] "))
    if answer.strip().lower() not in ("y", "yes"):
        raise ParameterError(
            "The release was not confirmed. Nothing was asked of the data, and nothing was spent.",
            parameter="activities" if any("activities" in loss.code for loss in found) else None,
        )


def tell_losses(released: Release) -> None:
    """Say in one line on stderr what was left out, if the command is quiet: of a job that runs every night nobody reads
    anything else, and a new activity, or a list that was mistyped, would be left out each night unseen."""
    if not CALL.get().quiet:
        return
    found = [in_words(loss) for loss in released.owner_only.losses if loss.code == "declared-activities-absent"]
    found += [note for note in released.owner_only.notes if tells_loss(note)]
    found += [f"Reading the log: {finding.dropped}." for finding in released.owner_only.findings if finding.dropped]
    if found:
        SafeConsole(stderr=True, highlight=False).print(Text(f"For you only: {' '.join(found)}"), soft_wrap=True)

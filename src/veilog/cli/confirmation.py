"""Questions and reports before a release spends its budget, and at a stop."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.text import Text

from veilog._files import mark
from veilog._plain import to_json
from veilog.cli.shared.accounts import account_line
from veilog.cli.shared.log_input import Output
from veilog.cli.shared.terminal import CALL, SafeConsole, is_terminal
from veilog.errors import BudgetError, OutputError, ParameterError, VeilogError
from veilog.ledger.accounts import Account, check_paid
from veilog.ledger.entry import Entry, as_read, kind_of_case
from veilog.ledger.ledger import EntryRef, Ledger
from veilog.ledger.rules import short
from veilog.ledger.store import Data
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.input.source import suffix_of
from veilog.logs.storage.stored_log import StoredLog, variants_of
from veilog.logs.tables.excel import MOST_EVENTS
from veilog.logs.variants import Variants
from veilog.messages import Message, OwnerMessage
from veilog.privacy.account.guarantee import STRENGTHS, Strength, round_up, up
from veilog.privacy.domain import FROM_LOG, Domain, Fact
from veilog.releasing.account_notes import budget_messages, level_falls, uncounted_warning
from veilog.releasing.owner import OF_LOSSES
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.result import Release
from veilog.releasing.spool import spool_file, writing_help


@dataclass(frozen=True)
class Foreseen:
    """The account as it would be after a release, or why the release would be refused."""

    after: Account | None
    refused: str = ""
    warnings: tuple[OwnerMessage, ...] = ()

    @property
    def line(self) -> Text:
        """Line about it for the user."""
        if self.after is None:
            return Text(f"veilog would refuse the release. {self.refused}", style="bold red")
        said = " ".join([account_line(self.after) + ".", *map(str, self.warnings)])
        return Text(f"after the release: {said}" if self.warnings else f"after the release: {said[:-1]}")

    def totals(self) -> dict[str, Any]:
        """Return the account for programs, with the codes of its owner's warnings."""
        told = {"warnings": to_json(self.warnings)} if self.warnings else {}
        return ({"refused": self.refused} if self.after is None else self.after.totals()) | told


def forecast_ledger(ledger: Ledger, planned: ReleaseRequest, log: Data) -> Foreseen:
    """Return the account after the release of this log, by the ledger's own rules.

    The ledger is only read.
    """
    unit = planned.unit.column or planned.unit.name
    cost = (short(planned.epsilon), short(planned.delta)) if planned.bounded else None
    by_subsets = unit == "case" or planned.remember_units
    subset = as_read(planned.subset, log.read_as) if by_subsets else None
    kind = kind_of_case(log.read_as) if unit == "case" else None
    try:
        account = _account(ledger, log, unit)
        check_paid(account, cost, unit, subset, kind)
    except VeilogError as error:
        return Foreseen(None, getattr(error, "problem", str(error)))
    if cost is None or unit != account.unit or (kind is not None and account.kinds not in ((), (kind,))):
        # It has no budget, so it takes a release without a bound, or one whose epsilon does not add up.
        return Foreseen(account, warnings=_warnings(account, STRENGTHS[-1]))
    after = account.with_release(cost, subset)
    return Foreseen(after, warnings=_warnings(account, after.strength))


def _account(ledger: Ledger, log: Data, unit: str) -> Account:
    """Return the account for the release, or the new one that it would open."""
    known, every = ledger.account(log), ledger.show()
    name, found = ledger.account_name, known
    if name is not None:
        called = {account.number: account for account in every if account.name == name}
        if len(called) > 1 or (known is not None and known.number not in called):
            on = "several accounts have this name" if known is None else f"these data are on account {known.number}"
            raise ParameterError("account-name-not-usable", parameter="account", name=name, on=on)
        found = next(iter(called.values()), None)
    if found is None:
        limited = sum(account.budget is not None for account in every)
        found = Account(0, name or ledger.name or "", unit, None, (), others=len(every), budgets_beside=limited)
    return found.among(variants_of(log).cases)


def _warnings(before: Account, level: Strength) -> tuple[OwnerMessage, ...]:
    """Return warnings for the owner before a release that leads to this level."""
    falls = before.releases and STRENGTHS.index(level) > STRENGTHS.index(before.strength)
    found = [level_falls(before.strength, level)] if falls else []
    if not before.number and before.budgets_beside:
        found.append(budget_messages(before))
    return (*found, *uncounted_warning(before))


def confirm_level(out: Output, ledger: Ledger | None, planned: ReleaseRequest, log: Data) -> None:
    """Ask the user at a terminal before a release that lowers its account's level.

    :class:`BudgetError` if the user declines. A script goes on, and its JSON has the code.
    """
    if ledger is None or not is_terminal():
        return
    for warning in forecast_ledger(ledger, planned, log).warnings:
        out.show(Text(f"Confidential: {warning}", style="magenta"))
        if warning.code == "account-level-falls":
            answer = out.console.input(Text("Release anyway? [y/N] "))
            if answer.strip().lower() not in ("y", "yes"):
                raise BudgetError("release-would-lower-level")


def confirm_losses(out: Output, planned: ReleaseRequest, log: EventLog | StoredLog | Variants) -> None:
    """Show the user at a terminal the losses of a release, and ask whether to go on.

    A script goes on: no release stops by itself because of raw data.
    """
    if CALL.get().quiet or not is_terminal():
        return
    found = planned.losses(log)
    if not found:
        return
    out.show(Text("Confidential, from the log itself:", style="bold magenta"))
    for loss in found:
        out.show(Text(f"  {loss.message}", style="magenta"))
    answer = out.console.input(Text("Release anyway? Nothing is spent yet. [y/N] "))
    if answer.strip().lower() not in ("y", "yes"):
        raise ParameterError(
            "release-not-confirmed",
            parameter="activities" if any("activities" in loss.code for loss in found) else None,
        )


def warn_dropped(released: Release) -> None:
    """Print the losses in one line on stderr, if the command is quiet.

    They are the only output of a nightly job that people read. Otherwise a new activity, or a mistyped list, would be
    left out each night unseen.
    """
    if not CALL.get().quiet:
        return
    found = [str(loss.message) for loss in released.owner_only.losses if loss.code == "declared-activities-absent"]
    found += [str(note) for note in released.owner_only.notes if note.code in OF_LOSSES]
    found += [f"Reading the log: {finding.dropped}." for finding in released.owner_only.findings if finding.dropped]
    if found:
        SafeConsole(stderr=True, highlight=False).print(Text(f"Confidential: {' '.join(found)}"), soft_wrap=True)


_BYTES = {".xes": 400, ".csv": 120, ".tsv": 120}


_PACKED_BYTES = 40
"""Bytes of an event in an uncompressed file, and in a compressed one, usually fewer."""


def check_room(target: Path, original: EventLog | StoredLog | Variants, *, whole: bool) -> None:
    """Refuse what the disk or a sheet will hardly hold, before the budget is spent.

    A release of the whole log is about as large as the log.
    """
    events = variants_of(original).events
    if whole and suffix_of(target) == ".xlsx" and events > MOST_EVENTS:
        raise OutputError("room-sheet-too-small", path=target, most_events=MOST_EVENTS)
    needed = events * _BYTES.get(suffix_of(target), _PACKED_BYTES)
    if shutil.disk_usage(target.absolute().parent).free < needed:
        raise OutputError("room-disk-too-small", path=target, value=-(-needed // 1000000))


def check_texts(target: Path, declared: Domain, original: EventLog | StoredLog | Variants) -> None:
    """Refuse known labels and values that the format cannot hold, before any spending."""
    labels = declared.alphabet or ()
    if declared.activities == FROM_LOG:
        labels = variants_of(original).labels
    values = [value for given in declared.attributes.values() for value in given if isinstance(value, str)]
    files.check_texts(target, [*labels, *declared.attributes, *values])


def confirm(
    out: Output, planned: ReleaseRequest, log: EventLog | StoredLog | Variants, target: Path, ledger: Ledger | None
) -> ReleaseRequest:
    """Return the request with the public facts that the user at a terminal confirms.

    Before the budget is spent, veilog refuses what cannot be written, and shows the user what they may not want.
    """
    if planned.undeclared:
        planned = planned.declaring(agree_on_domain(out, planned.declared, planned.undeclared, log))
    check_room(target, log, whole=planned.subset is None)
    check_texts(target, planned.declared, log)
    confirm_losses(out, planned, log)
    confirm_level(out, ledger, planned, log)
    return planned


def cannot_be_undone(code: str, **values: object) -> None:
    """Remember a message for the case that the command fails or is stopped later."""
    CALL.get().done.append(Message(code, **values))


@contextmanager
def report_cost_on_interrupt(
    method: str,
    log: Data,
    ledger: Ledger | None,
    epsilon: Fraction | None,
    *,
    files: Sequence[Path] = (),
    goes_on: bool = False,
) -> Iterator[None]:
    """Report, if this block is stopped, the epsilon that its queries used.

    The ledger's entry is of this method. ``epsilon`` is the most that it may use, None without a bound. The report
    names which of these ``files`` are written. A run that ``goes_on`` was entered when it began.
    """
    before = [mark(file) for file in files]
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        yield
    except KeyboardInterrupt:
        since = "" if goes_on else started
        written = [str(file) for file, was in zip(files, before, strict=True) if mark(file) != was]
        if written:
            code = "file-is-written" if len(written) == 1 else "files-are-written"
            cannot_be_undone(code, files=" and ".join(written))
        CALL.get().done.extend(
            [_budget_message(epsilon)] if ledger is None else _ledger_messages(method, ledger, log, since)
        )
        raise
    except OutputError:
        if ledger is None:  # with a ledger the release is kept next to it, which the error states
            CALL.get().done.append(_budget_message(epsilon))
        raise


def _budget_message(epsilon: Fraction | None) -> Message:
    if epsilon is None:
        return Message("perhaps-released")
    return Message("perhaps-spent", epsilon=up(round_up(epsilon)))


def _ledger_messages(method: str, ledger: Ledger, log: Data, since: str) -> list[Message]:
    """Return the ledger's facts on queries of this log since then by this method."""
    try:
        account = ledger.account(log)
    except (VeilogError, KeyboardInterrupt):  # the user interrupted the wait for the ledger, too
        return [Message("spent-by-ledger", ledger=ledger.path)]
    entries: tuple[Entry, ...] = () if account is None else account.entries
    begun = [entry for entry in entries if entry.method == method and entry.time >= since]
    if not begun or begun[-1].state == "withdrawn":
        return [Message("nothing-spent")]
    if begun[-1].epsilon is None:
        return [Message("question-entered", ledger=ledger.path)]
    spent, entry = up(round_up(begun[-1].epsilon)), EntryRef(ledger.path, begun[-1].number)
    file = spool_file(entry)
    waits = [] if file is None else [Message("release-waits-in", file=file, how=writing_help(entry))]
    return [Message("epsilon-spent", epsilon=spent, ledger=ledger.path), *waits]


def agree_on_domain(
    out: Output, domain: Domain, needed: Iterable[Fact], log: EventLog | StoredLog | Variants
) -> Domain:
    """Return the domain with the facts that the owner calls public after seeing them.

    No query has been made yet.
    """
    variants = variants_of(log)
    lacking = domain.lacks(needed)
    if "activities" in lacking:
        out.show(Text("Recipients of the release may learn that these activities exist:", style="bold"))
        out.show(Text("  " + ", ".join(variants.labels)))
    if "max_length" in lacking:
        longest = int(variants.lengths.max(initial=0))
        out.show(Text(f"Recipients of the release may learn that the longest case has {longest} events."))
    if not lacking:
        return domain
    answer = out.console.input(Text("Is all of that public, and the same without any one case? [y/N] "))
    if answer.strip().lower() not in ("y", "yes"):
        return domain  # the release refuses, and states the other ways
    return domain.taken_from_log(lacking)

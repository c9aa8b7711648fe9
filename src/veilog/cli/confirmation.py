"""Before a release is paid for, and where its command is stopped: what is shown, confirmed, refused and said."""

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
from veilog.cli.shared.terminal import CALL, SafeConsole, at_a_terminal
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
from veilog.releasing.account_notes import beside_budgets, level_falls, uncounted_warning
from veilog.releasing.owner import OF_LOSSES
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.result import Release
from veilog.releasing.spool import how_to_write, kept_file


@dataclass(frozen=True)
class Foreseen:
    """The account as it would be after a release, or why the release would be refused."""

    after: Account | None
    refused: str = ""
    warnings: tuple[OwnerMessage, ...] = ()

    @property
    def line(self) -> Text:
        """What is said of it."""
        if self.after is None:
            return Text(f"veilog would refuse the release. {self.refused}", style="bold red")
        said = " ".join([account_line(self.after) + ".", *map(str, self.warnings)])
        return Text(f"after the release: {said}" if self.warnings else f"after the release: {said[:-1]}")

    def totals(self) -> dict[str, Any]:
        """Return the account for programs, with the codes of what its owner is warned of."""
        told = {"warnings": to_json(self.warnings)} if self.warnings else {}
        return ({"refused": self.refused} if self.after is None else self.after.totals()) | told


def foreseen(ledger: Ledger, planned: ReleaseRequest, log: Data) -> Foreseen:
    """Return what this ledger would say to the release of this log, by its own rules; it is only read."""
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
        # It has no budget, so it takes what nothing bounds, or what does not add up.
        return Foreseen(account, warnings=_warnings(account, STRENGTHS[-1]))
    after = account.with_release(cost, subset)
    return Foreseen(after, warnings=_warnings(account, after.strength))


def _account(ledger: Ledger, log: Data, unit: str) -> Account:
    """The account that the release would be entered in; a new one where one would be opened."""
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
        out.show(Text(f"Confidential: {warning}", style="magenta"))
        if warning.code == "account-level-falls":
            answer = out.console.input(Text("Release anyway? [y/N] "))
            if answer.strip().lower() not in ("y", "yes"):
                raise BudgetError("release-would-lower-level")


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
        out.show(Text(f"  {loss.message}", style="magenta"))
    answer = out.console.input(Text("Release anyway? Nothing is spent yet. [y/N] "))
    if answer.strip().lower() not in ("y", "yes"):
        raise ParameterError(
            "release-not-confirmed",
            parameter="activities" if any("activities" in loss.code for loss in found) else None,
        )


def warn_dropped(released: Release) -> None:
    """Say in one line on stderr what was left out, if the command is quiet: of a job that runs every night nobody reads
    anything else, and a new activity, or a list that was mistyped, would be left out each night unseen."""
    if not CALL.get().quiet:
        return
    found = [str(loss.message) for loss in released.owner_only.losses if loss.code == "declared-activities-absent"]
    found += [str(note) for note in released.owner_only.notes if note.code in OF_LOSSES]
    found += [f"Reading the log: {finding.dropped}." for finding in released.owner_only.findings if finding.dropped]
    if found:
        SafeConsole(stderr=True, highlight=False).print(Text(f"Confidential: {' '.join(found)}"), soft_wrap=True)


_BYTES = {".xes": 400, ".csv": 120, ".tsv": 120}


_PACKED_BYTES = 40
"""Of an event in a file that is not compressed, and of one in any that is; as a rule it takes less."""


def check_room(target: Path, original: EventLog | StoredLog | Variants, *, whole: bool) -> None:
    """Refuse, before anything is paid for, what the disk or a sheet will hardly hold: a release of the whole log is
    about as large as that."""
    events = variants_of(original).events
    if whole and suffix_of(target) == ".xlsx" and events > MOST_EVENTS:
        raise OutputError("room-sheet-too-small", path=target, most_events=MOST_EVENTS)
    needed = events * _BYTES.get(suffix_of(target), _PACKED_BYTES)
    if shutil.disk_usage(target.absolute().parent).free < needed:
        raise OutputError("room-disk-too-small", path=target, value=-(-needed // 1000000))


def check_texts(target: Path, declared: Domain, original: EventLog | StoredLog | Variants) -> None:
    """Refuse, before anything is paid for, labels and values that the format cannot hold, as far as they are known."""
    labels = declared.alphabet or ()
    if declared.activities == FROM_LOG:
        labels = variants_of(original).labels
    values = [value for given in declared.attributes.values() for value in given if isinstance(value, str)]
    files.check_texts(target, [*labels, *declared.attributes, *values])


def confirmed(
    out: Output, planned: ReleaseRequest, log: EventLog | StoredLog | Variants, target: Path, ledger: Ledger | None
) -> ReleaseRequest:
    """Return the request with the public facts that whoever is at a terminal agreed to, and go on with it: before
    anything is paid for, what cannot be written is refused, and what they may not want is shown to them."""
    if planned.undeclared:
        planned = planned.declaring(agreed(out, planned.declared, planned.undeclared, log))
    check_room(target, log, whole=planned.subset is None)
    check_texts(target, planned.declared, log)
    confirm_losses(out, planned, log)
    confirm_level(out, ledger, planned, log)
    return planned


def cannot_be_undone(code: str, **values: object) -> None:
    """Remember what is to be said, should the command fail or be stopped from now on."""
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
    """Ask and write in this block; where that is stopped, what was asked until then is spent, and is said. The entry is
    of this method; ``epsilon`` is what it may cost at most, None where nothing bounds it. Which of these ``files`` are
    written by then is said, too. A run that ``goes_on`` was entered when it began."""
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
        CALL.get().done.extend([_asked(epsilon)] if ledger is None else _charged(method, ledger, log, since))
        raise
    except OutputError:
        if ledger is None:  # one of a ledger is kept beside it, which its error says
            CALL.get().done.append(_asked(epsilon))
        raise


def _asked(epsilon: Fraction | None) -> Message:
    if epsilon is None:
        return Message("perhaps-released")
    return Message("perhaps-spent", epsilon=up(round_up(epsilon)))


def _charged(method: str, ledger: Ledger, log: Data, since: str) -> list[Message]:
    """What the ledger says of what was asked of this log since then by this method."""
    try:
        account = ledger.account(log)
    except (VeilogError, KeyboardInterrupt):  # who waits for a ledger, and stops that, too, is told all the same
        return [Message("spent-by-ledger", ledger=ledger.path)]
    entries: tuple[Entry, ...] = () if account is None else account.entries
    begun = [entry for entry in entries if entry.method == method and entry.time >= since]
    if not begun or begun[-1].state == "withdrawn":
        return [Message("nothing-spent")]
    if begun[-1].epsilon is None:
        return [Message("question-entered", ledger=ledger.path)]
    spent, entry = up(round_up(begun[-1].epsilon)), EntryRef(ledger.path, begun[-1].number)
    file = kept_file(entry)
    waits = [] if file is None else [Message("release-waits-in", file=file, how=how_to_write(entry))]
    return [Message("epsilon-spent", epsilon=spent, ledger=ledger.path), *waits]


def agreed(out: Output, domain: Domain, needed: Iterable[Fact], log: EventLog | StoredLog | Variants) -> Domain:
    """Return the domain with what the owner says is public, shown what the log holds; nothing has been asked of it."""
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
        return domain  # the release refuses, and says what else can be done
    return domain.taken_from_log(lacking)

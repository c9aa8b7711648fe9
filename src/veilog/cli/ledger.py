"""The commands about the account of a log (ledger show, set, export), and the options by which a release uses it."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from veilog._places import default_ledger, made_folder
from veilog._plain import to_json
from veilog.cli import display
from veilog.cli.shared.options import (
    AS_USUAL,
    GROUPS,
    HERE,
    UNLIMITED,
    WHOLE,
    Grouping,
    Json,
    Limits,
    Log,
    Reading,
    SpreadsheetSafe,
)
from veilog.cli.shared.paths import is_pipe
from veilog.cli.shared.reading import Output, check_target, opened, read_log, read_variants, shown_progress
from veilog.cli.shared.terminal import CALL, SafeConsole
from veilog.errors import InputError, ParameterError, meant, nearest
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import EntryRef, Ledger
from veilog.ledger.rules import ComposedCost
from veilog.logs.eventlog import EventLog
from veilog.logs.input.loader import columns_of
from veilog.logs.input.source import Source
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.variants import Variants
from veilog.messages import Message, OwnerMessage
from veilog.privacy.account.accounting import parse_delta
from veilog.privacy.account.guarantee import Guarantee, round_up
from veilog.privacy.persons import columns_of_persons
from veilog.releasing.owner import elsewhere_warning, entered_warnings, unentered
from veilog.releasing.pending import how_to_write, waiting_releases, write_kept
from veilog.releasing.request import ReleaseRequest

app = App(
    name="ledger",
    help="Show and set the account of a log: the budget its releases have used, and its limit.",
    help_format="plaintext",
    result_action="return_value",
)

Place = Annotated[Path | None, Parameter(help="Ledger; default LOG.ledger if it exists, else yours.")]
_SUFFIX = ".ledger"
LogOrLedger = Annotated[Path, Parameter(help="The log, or the ledger itself.")]
Waiting = Callable[[str, float | None], None]


@Parameter(name="*", group=GROUPS["ledger"])
@dataclass(frozen=True)
class Keeping:
    """Whether and where a release is entered: the same options for every command that spends."""

    ledger: Annotated[
        Path | None,
        Parameter(help="Ledger for the release; default LOG.ledger if it exists, else yours."),
    ] = None
    no_ledger: Annotated[
        bool, Parameter(negative="", help="Do not record the release; only for results that you keep to yourself.")
    ] = False
    account: Annotated[
        str | None,
        Parameter(help="Account for the release, by name; use one account for a growing log."),
    ] = None

    def of(self, log: Path, waiting: Waiting | None = None, *, seeded: bool = False) -> Ledger | None:
        """The ledger to use, checked; None if there is none to use. A new one is made by its first entry. What is
        ``seeded`` is an experiment, which is entered only in a ledger that is named or lies beside the log."""
        if self.no_ledger:
            for given, option in ((self.ledger, "--ledger"), (self.account, "--account")):
                if given is not None:
                    raise ParameterError("ledger-options-contradict", parameter="no_ledger", option=option)
            return None
        if self.ledger is not None:
            if not os.path.lexists(self.ledger) and self.ledger.absolute().parent.is_dir():
                _refuse_mistyped(self.ledger, log)
            found = Ledger.open(self.ledger, create=True, waiting=waiting, name=log.name, account=self.account)
            if found.create:
                self._refuse_unmade(self.ledger)
            return found
        place = ledger_of(log)
        if place is not None and place != default_ledger():
            return Ledger.open(place, waiting=waiting, name=log.name, account=self.account)
        if place is not None and not seeded:
            name = "standard input" if is_pipe(log) else log.name
            return Ledger.open(made_folder(place), create=True, waiting=waiting, name=name, account=self.account)
        if self.account is not None:
            raise ParameterError("account-without-ledger", parameter="account", number=self.account)
        return None

    def of_release(self, log: Path, planned: ReleaseRequest, waiting: Waiting | None = None) -> Ledger | None:
        """The ledger that a release of this log is entered in."""
        return self.of(log, waiting, seeded=planned.seed is not None)

    def _refuse_unmade(self, place: Path) -> None:
        """Refuse to put a release on an account by its name where there is no ledger yet: it would have no limit, and
        what was spent is in another."""
        if self.account is not None:
            raise InputError("ledger-named-missing", path=place, place=place, number=self.account)

    def checked(self, log: Path, *, seeded: bool = False) -> str:
        """Refuse what is wrong with it before a log is read. Return the warning that a ledger is new: where it is
        named, a mistyped path must be seen."""
        found = self.of(log, seeded=seeded)
        if found is None or not found.create:
            return ""
        if self.ledger is not None and CALL.get().quiet:
            said = Message("ledger-not-there-yet", ledger=self.ledger)
            SafeConsole(highlight=False, stderr=True).print(Text(str(said), style="yellow"), soft_wrap=True)
        return str(Message("ledger-made", ledger=found.path))

    def warnings(
        self, log: Variants | EventLog | StoredLog, entry: EntryRef | None, guarantee: Guarantee
    ) -> tuple[list[OwnerMessage], dict[str, object]]:
        """Return what the account makes of something that was asked, and what JSON has of it."""
        if entry is not None:
            found = entered_warnings(entry, log)
            return list(found), {"warnings": to_json(found)} if found else {}
        unknown = self.no_ledger or not guarantee.proven
        return [] if unknown else [unentered(guarantee.delta or 0)], {}


AS_THERE_IS = Keeping()


def account_of(entry: EntryRef | None) -> Account | None:
    """The account in which something was entered, if it was."""
    return None if entry is None else entry.account()


def show_account(out: Output, entry: EntryRef | None, account: Account | None, new: str) -> None:
    """The account in which something was entered, if it was; and that its ledger is new."""
    if entry is None or account is None:
        return
    out.show(display.account_view(entry.path, account))
    if new:
        out.show(Text(new, style="yellow"))


def show_notes(out: Output, notes: Iterable[OwnerMessage]) -> None:
    """Notes for the owner of the log alone."""
    for note in notes:
        out.show(Text(f"Confidential: {note}", style="magenta"))


@app.command
def show(
    log: Annotated[Path | None, Parameter(help="The log, or the ledger itself; by default your ledger.")] = None,
    *,
    delta: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="Also show the composed epsilon of all releases at this delta; default that of the budget.",
        ),
    ] = None,
    ledger: Place = None,
    json: Json = None,
) -> None:
    """Show all accounts of a ledger: budgets, what is spent, every release. The log itself is not read."""
    out = Output(json)
    asked = None if delta is None else parse_delta(delta)
    kept = _existing(log, ledger)
    accounts = kept.show()
    composed = {account.number: _together(account, asked) for account in accounts}
    told = [account.to_json() | _together_json(composed[account.number]) for account in accounts]
    waiting = waiting_releases(kept.path)
    out.json({"ledger": str(kept.path), "accounts": told, **({"waiting": list(waiting)} if waiting else {})})
    for account in accounts:
        out.show(display.account_table(account, composed[account.number]))
    if not accounts:
        out.show("The ledger has no account yet.")
    for number in waiting:
        words = how_to_write(EntryRef(kept.path, number))
        out.show(Text(f"Release {number} used its epsilon and has no file yet: {words}.", style="yellow"))


@app.command(name="set")
def set_(
    log: Log,
    *,
    limits: Limits = UNLIMITED,
    unit: Annotated[
        str | None, Parameter(help="Unit that the budget protects, as in --unit of a release: case, or a column.")
    ] = None,
    account: Annotated[
        str | None,
        Parameter(
            help="Account for the log, by number or name, for a changed log of the same people. A new name opens one."
        ),
    ] = None,
    count_all: Annotated[
        bool,
        Parameter(negative="", help="Also count the releases of the log made with --no-ledger; you cannot undo this."),
    ] = False,
    ledger: Place = None,
    reading: Reading = AS_USUAL,
    grouping: Grouping = HERE,
    json: Json = None,
) -> None:
    """Set the total budget of a log; makes the ledger if there is none. What is spent stays spent."""
    out = Output(json)
    place = ledger_of(log) if ledger is None else ledger
    if place is None and (grouping.engine != "duckdb" or (glob.has_magic(str(log)) and not log.exists())):
        raise ParameterError("ledger-not-beside-table", parameter="ledger")
    limits.check()
    place = _beside(log) if place is None else made_folder(place) if place == default_ledger() else place
    Ledger.open(place, create=True, name=log.name)  # before a large log is read
    source = opened(out, log, reading, grouping)
    data = _known_by(source, reading, unit)
    with shown_progress() as progress:
        number = int(account) if account is not None and account.isdecimal() else None
        called = account if number is None else None
        kept = Ledger.open(place, create=True, waiting=progress, name=log.name, account=called)
        if count_all:
            kept.enter(data, account=number)
            kept.count_uncounted(data)
        found = limits.set(kept, data, unit, number)
    warned = elsewhere_warning(kept.path, data)
    told = {"warnings": to_json(warned)} if warned else {}
    out.json({"ledger": str(kept.path)} | found.to_json() | told)
    out.show(display.account_view(kept.path, found))
    for warning in warned:
        out.show(Text(str(warning), style="yellow"))


@app.command
def export(
    log: LogOrLedger,
    target: Annotated[Path, Parameter(help="File to write: .json or .csv.")],
    *,
    ledger: Place = None,
    json: Json = None,
) -> None:
    """Write all accounts of a ledger to a file, a row a release, with their guarantees."""
    out = Output(json)
    kept = _existing(log, ledger)
    if target.exists() and target.samefile(kept.path):
        raise ParameterError("ledger-would-be-overwritten", parameter="target")
    kept.export(target, overwrite=CALL.get().overwrite)
    releases = sum(len(account.entries) for account in kept.show())
    out.json({"ledger": str(kept.path), "releases": releases}, target)
    out.show(display.key_values([("releases", releases), ("written to", str(target))]))


@app.command
def write(
    log: LogOrLedger,
    number: Annotated[int, WHOLE, Parameter(help="The number of the release; see veilog ledger show.")],
    target: Annotated[Path, Parameter(help="Output file; its suffix sets the format.")],
    *,
    spreadsheet_safe: SpreadsheetSafe = False,
    ledger: Place = None,
    json: Json = None,
) -> None:
    """Write a release that used its epsilon and has no file yet. The log is not asked again."""
    out = Output(json)
    kept = _existing(log, ledger)
    check_target(target, None, spreadsheet_safe=spreadsheet_safe)
    entry, how = EntryRef(kept.path, number), {"overwrite": CALL.get().overwrite, "spreadsheet_safe": spreadsheet_safe}
    with shown_progress() as progress:
        written = write_kept(entry, target, progress=progress, **how)
    out.json({"ledger": str(kept.path), "release": number, "written": [str(file) for file in written]}, *written)
    out.show(display.key_values([("release", number), ("written to", ", ".join(map(str, written)))]))


def _known_by(source: Source, reading: Reading, unit: str | None) -> Variants | EventLog:
    """What the log is recognised by. A column that a budget is to protect persons by must be in it: no release could be
    made for them."""
    if unit in (None, "case", "person"):
        return read_variants(source, reading)
    names = columns_of(source)
    if names is None:
        log = read_log(source, reading)
        columns_of_persons(log.shape, unit)
        return log
    check_person(unit, names)
    return read_variants(source, reading)


def check_person(unit: str, names: Sequence[str]) -> None:
    """Refuse a person's column that a table with these columns does not have."""
    if unit in names or unit.removeprefix("case:") in names:
        return
    raise ParameterError(
        "unit-column-missing",
        parameter="unit",
        unit=unit,
        meant=meant(unit, ["case", "person", *names]),
        names=", ".join(names),
    )


def _together(account: Account, delta: Fraction | None) -> ComposedCost | None:
    """What several releases cost together at a delta, where there is one."""
    at = delta if delta is not None else account.budget[1] if account.budget else None
    several = sum(entry.state != "withdrawn" for entry in account.entries) > 1
    return account.together(at) if at and several else None


def _together_json(found: ComposedCost | None) -> dict[str, object]:
    if found is None:
        return {}
    planned, composed = (None if e is None else round_up(e) for e in (found.planned, found.composed))
    return {"together": {"delta": round_up(found.delta), "costs_planned": planned, "costs_chosen": composed}}


def ledger_of(log: Path) -> Path | None:
    """Return the ledger of a log for which none is named: beside it, if that is there, else that of the user."""
    if not is_pipe(log) and os.path.lexists(place := _beside(log)):
        return place
    return default_ledger()


def _beside(log: Path) -> Path:
    """The ledger beside a log: where the log really is, so that a link to a log is no way around its account."""
    if is_pipe(log):
        raise ParameterError("ledger-not-beside-input", parameter="ledger")
    try:
        return Path(os.path.realpath(log) + _SUFFIX)
    except (OSError, ValueError) as error:
        raise InputError("file-not-readable", path=str(log), reason=error) from error


def _refuse_mistyped(place: Path, log: Path) -> None:
    """Refuse to begin another ledger where one is that may be meant: an empty one knows of nothing that was spent."""
    own = None if is_pipe(log) else _beside(log)
    kept = {path.name.removesuffix(_SUFFIX): path for path in place.absolute().parent.glob(f"*{_SUFFIX}")}
    name = nearest(place.name.removesuffix(_SUFFIX), kept) or nearest(place.stem, kept)
    near: Message | str = Message("did-you-mean", near=kept[name].name) if name else ""
    if own is not None and os.path.lexists(own):
        near = Message("ledger-beside-log", name=own.name)
    if near:
        raise InputError("ledger-missing", path=place, near=near, place=place)


def _existing(log: Path | None, ledger: Path | None) -> Ledger:
    """The ledger that is named, that of a log, or that of the user, who may have entered nothing yet."""
    if ledger is not None:
        return Ledger.open(ledger)
    if log is not None and _is_ledger(log):
        return Ledger.open(log)
    place = default_ledger() if log is None else ledger_of(log)
    if place is not None:
        nothing_yet = place == default_ledger() and not os.path.lexists(place)
        return Ledger(place, create=True) if nothing_yet else Ledger.open(place)
    raise InputError("ledger-not-named", path=log)


def _is_ledger(path: Path) -> bool:
    if path.suffix == _SUFFIX:
        return True
    try:
        with path.open("rb") as file:
            return file.read(15) == b"SQLite format 3"
    except (OSError, ValueError):
        return False

"""Ledger options of every command that spends, and its output about the account."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from veilog._files import default_ledger, make_folder
from veilog._plain import to_json
from veilog.cli.shared.accounts import account_view
from veilog.cli.shared.log_input import Output
from veilog.cli.shared.options import GROUPS
from veilog.cli.shared.paths import is_pipe
from veilog.cli.shared.terminal import CALL, SafeConsole
from veilog.errors import InputError, ParameterError, meant, nearest
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import EntryRef, Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.variants import Variants
from veilog.messages import Message, OwnerMessage
from veilog.privacy.account.guarantee import Guarantee
from veilog.releasing.account_notes import entered_warnings, unentered_message

SUFFIX = ".ledger"


Waiting = Callable[[str, float | None], None]


@Parameter(name="*", group=GROUPS["ledger"])
@dataclass(frozen=True)
class Keeping:
    """The choice of the ledger for a release, for every command that spends."""

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
        """Return the ledger to use, checked; None if there is none.

        A new one is made by its first entry. A ``seeded`` run is an experiment, which only a ledger that is named or
        lies next to the log records.
        """
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
            return Ledger.open(make_folder(place), create=True, waiting=waiting, name=name, account=self.account)
        if self.account is not None:
            raise ParameterError("account-without-ledger", parameter="account", number=self.account)
        return None

    def _refuse_unmade(self, place: Path) -> None:
        """Refuse a release on a named account in a ledger that does not exist yet.

        It would have no limit, and what was spent is in another ledger.
        """
        if self.account is not None:
            raise InputError("ledger-named-missing", path=place, place=place, number=self.account)

    def checked(self, log: Path, *, seeded: bool = False) -> str:
        """Refuse wrong options before a log is read; return a warning of a new ledger.

        If the ledger is named, a mistyped path must be seen.
        """
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
        """Return the account's warnings about an entry, as messages and for the JSON."""
        if entry is not None:
            found = entered_warnings(entry, log)
            return list(found), {"warnings": to_json(found)} if found else {}
        unknown = self.no_ledger or not guarantee.proven
        return [] if unknown else [unentered_message(guarantee.delta or 0)], {}


DEFAULT_LEDGER = Keeping()


def account_of(entry: EntryRef | None) -> Account | None:
    """Return the account of an entry, if there is one."""
    return None if entry is None else entry.account()


def show_account(out: Output, entry: EntryRef | None, account: Account | None, new: str) -> None:
    """Show the account of an entry, if there is one, and the note on a new ledger."""
    if entry is None or account is None:
        return
    out.show(account_view(entry.path, account))
    if new:
        out.show(Text(new, style="yellow"))


def show_notes(out: Output, notes: Iterable[OwnerMessage]) -> None:
    """Show notes for the data owner alone."""
    for note in notes:
        out.show(Text(f"Confidential: {note}", style="magenta"))


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


def ledger_of(log: Path) -> Path | None:
    """Return the ledger of a log if none is named: in its folder, else the user's."""
    if not is_pipe(log) and os.path.lexists(place := place_beside(log)):
        return place
    return default_ledger()


def place_beside(log: Path) -> Path:
    """Return the ledger next to a log, at the log's real place.

    So a link to a log is no way around its account.
    """
    if is_pipe(log):
        raise ParameterError("ledger-not-beside-input", parameter="ledger")
    try:
        return Path(os.path.realpath(log) + SUFFIX)
    except (OSError, ValueError) as error:
        raise InputError("file-not-readable", path=str(log), reason=error) from error


def _refuse_mistyped(place: Path, log: Path) -> None:
    """Refuse a new ledger if the name of another one is near.

    An empty ledger would know of nothing that was spent.
    """
    own = None if is_pipe(log) else place_beside(log)
    kept = {path.name.removesuffix(SUFFIX): path for path in place.absolute().parent.glob(f"*{SUFFIX}")}
    name = nearest(place.name.removesuffix(SUFFIX), kept) or nearest(place.stem, kept)
    near: Message | str = Message("did-you-mean", near=kept[name].name) if name else ""
    if own is not None and os.path.lexists(own):
        near = Message("ledger-beside-log", name=own.name)
    if near:
        raise InputError("ledger-missing", path=place, near=near, place=place)

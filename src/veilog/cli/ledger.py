"""The commands about the account of a log: ledger show, set, export and write."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from veilog._files import default_ledger, make_folder
from veilog._plain import to_json
from veilog.cli.shared.accounts import account_table, account_view
from veilog.cli.shared.ledger_options import SUFFIX, check_person, ledger_of, place_beside
from veilog.cli.shared.log_input import Output, check_target, open_source, read_log, read_variants, show_progress
from veilog.cli.shared.options import (
    DEFAULT_GROUPING,
    DEFAULT_READING,
    WHOLE,
    Grouping,
    Json,
    Log,
    Reading,
    SpreadsheetSafe,
)
from veilog.cli.shared.tables import key_values
from veilog.cli.shared.terminal import CALL
from veilog.errors import InputError, ParameterError
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import EntryRef, Ledger
from veilog.ledger.rules import ComposedCost
from veilog.logs.eventlog import EventLog
from veilog.logs.input.loader import columns_of
from veilog.logs.input.source import Source
from veilog.logs.variants import Variants
from veilog.privacy.account.budgets import parse_delta
from veilog.privacy.account.guarantee import round_up
from veilog.privacy.persons import columns_of_persons
from veilog.releasing.account_notes import elsewhere_warning
from veilog.releasing.spool import waiting_releases, write_kept, writing_help

app = App(
    name="ledger",
    help="Show and set the account of a log: the budget its releases have used, and its limit.",
    help_format="plaintext",
    result_action="return_value",
)


Place = Annotated[Path | None, Parameter(help="Ledger; default LOG.ledger if it exists, else yours.")]


LogOrLedger = Annotated[Path, Parameter(help="The log, or the ledger itself.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """The budget of a log's releases, and the way they are counted."""

    epsilon: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="Budget of all releases of the log; none for no limit."),
    ] = None
    delta: Annotated[str | None, Parameter(allow_leading_hyphen=True, help="The same for delta; default 0.")] = None
    composed: Annotated[
        bool,
        Parameter(
            negative="",
            help="Count releases from now on by composition, which needs a delta and uses less than the sum.",
        ),
    ] = False
    releases: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Number of planned releases, each at most --each; needs --delta for all."),
    ] = None
    each: Annotated[str | None, Parameter(help="Largest epsilon of each planned release.")] = None
    each_delta: Annotated[str | None, Parameter(help="The same for delta; default 0.")] = None

    def check(self) -> None:
        """Refuse options that do not go together, before a large log is read."""
        if (self.releases is None) != (self.each is None) or (self.each_delta is not None and self.each is None):
            raise ParameterError("plan-options-incomplete", parameter="releases")
        if self.releases is not None and (self.epsilon is not None or self.composed or self.delta is None):
            raise ParameterError(
                "plan-delta-missing" if self.delta is None else "plan-cost-given",
                parameter="releases",
            )
        if (self.delta is not None or self.composed) and self.epsilon is None and self.releases is None:
            raise ParameterError("budget-delta-without-epsilon", parameter="delta")

    def set(self, kept: Ledger, data: Variants | EventLog, unit: str | None, account: int | None) -> Account:
        """Set those that are given, and leave the others as they are."""
        delta = self.delta or 0
        if self.releases is not None and self.each is not None:
            each_delta = self.each_delta or 0
            return kept.set_plan(
                data, self.releases, self.each, delta, each_delta=each_delta, unit=unit, account=account
            )
        if self.epsilon is None:
            return kept.enter(data, unit=unit, account=account)
        limit = None if self.epsilon.strip().lower() == "none" else self.epsilon
        return kept.set_budget(data, limit, delta, unit=unit, account=account, composed=self.composed)


UNLIMITED = Limits()


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
    """Show all accounts of a ledger: budgets, what is spent, every release.
    The log itself is not read."""
    out = Output(json)
    asked = None if delta is None else parse_delta(delta)
    kept = _find_ledger(log, ledger)
    accounts = kept.show()
    composed = {account.number: _composed_cost(account, asked) for account in accounts}
    told = [account.to_json() | _composed_cost_to_json(composed[account.number]) for account in accounts]
    waiting = waiting_releases(kept.path)
    out.json({"ledger": str(kept.path), "accounts": told, **({"waiting": list(waiting)} if waiting else {})})
    for account in accounts:
        out.show(account_table(account, composed[account.number]))
    if not accounts:
        out.show("The ledger has no account yet.")
    for number in waiting:
        words = writing_help(EntryRef(kept.path, number))
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
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    json: Json = None,
) -> None:
    """Set the total budget of a log; makes the ledger if there is none.
    What is spent stays spent."""
    out = Output(json)
    place = ledger_of(log) if ledger is None else ledger
    if place is None and (grouping.engine != "duckdb" or (glob.has_magic(str(log)) and not log.exists())):
        raise ParameterError("ledger-not-beside-table", parameter="ledger")
    limits.check()
    place = place_beside(log) if place is None else make_folder(place) if place == default_ledger() else place
    Ledger.open(place, create=True, name=log.name)  # before a large log is read
    source = open_source(out, log, reading, grouping)
    data = _fingerprint_source(source, reading, unit)
    with show_progress() as progress:
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
    out.show(account_view(kept.path, found))
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
    """Write all accounts of a ledger to a file, a row a release,
    with their guarantees."""
    out = Output(json)
    kept = _find_ledger(log, ledger)
    if target.exists() and target.samefile(kept.path):
        raise ParameterError("ledger-would-be-overwritten", parameter="target")
    kept.export(target, overwrite=CALL.get().overwrite)
    releases = sum(len(account.entries) for account in kept.show())
    out.json({"ledger": str(kept.path), "releases": releases}, target)
    out.show(key_values([("releases", releases), ("written to", str(target))]))


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
    """Write a release that used its epsilon and has no file yet, without a new query."""
    out = Output(json)
    kept = _find_ledger(log, ledger)
    check_target(target, None, spreadsheet_safe=spreadsheet_safe)
    entry, how = EntryRef(kept.path, number), {"overwrite": CALL.get().overwrite, "spreadsheet_safe": spreadsheet_safe}
    with show_progress() as progress:
        written = write_kept(entry, target, progress=progress, **how)
    out.json({"ledger": str(kept.path), "release": number, "written": [str(file) for file in written]}, *written)
    out.show(key_values([("release", number), ("written to", ", ".join(map(str, written)))]))


def _fingerprint_source(source: Source, reading: Reading, unit: str | None) -> Variants | EventLog:
    """Return the data by which the ledger recognises the log.

    A column of the unit must be in it: otherwise no release could be made for it.
    """
    if unit in (None, "case", "person"):
        return read_variants(source, reading)
    names = columns_of(source)
    if names is None:
        log = read_log(source, reading)
        columns_of_persons(log.shape, unit)
        return log
    check_person(unit, names)
    return read_variants(source, reading)


def _composed_cost(account: Account, delta: Fraction | None) -> ComposedCost | None:
    """Return the composed epsilon of several releases at a delta, if there is one."""
    at = delta if delta is not None else account.budget[1] if account.budget else None
    several = sum(entry.state != "withdrawn" for entry in account.entries) > 1
    return account.together(at) if at and several else None


def _composed_cost_to_json(found: ComposedCost | None) -> dict[str, object]:
    if found is None:
        return {}
    planned, composed = (None if e is None else round_up(e) for e in (found.planned, found.composed))
    return {"together": {"delta": round_up(found.delta), "costs_planned": planned, "costs_chosen": composed}}


def _find_ledger(log: Path | None, ledger: Path | None) -> Ledger:
    """Return the ledger that is named, a log's, or the user's (perhaps without entry)."""
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
    if path.suffix == SUFFIX:
        return True
    try:
        with path.open("rb") as file:
            return file.read(15) == b"SQLite format 3"
    except (OSError, ValueError):
        return False

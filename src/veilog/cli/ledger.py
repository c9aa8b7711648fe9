"""The commands about the account of a log (ledger show, set, export), and the options by which a release uses it."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog import display
from veilog.cli.common import (
    AS_USUAL,
    HERE,
    Grouping,
    Json,
    Log,
    Output,
    Reading,
    named,
    read_variants,
    show_columns,
    shown_progress,
)
from veilog.errors import InputError, ParameterError
from veilog.ledger.accounts import in_figures
from veilog.ledger.costs import Cost
from veilog.ledger.ledger import Account, Ledger

__all__ = ["AS_THERE_IS", "Keeping", "account_view", "app"]

app = App(
    name="ledger",
    help="The account of a log: what its releases have cost together, and how much they may cost in all.",
    help_format="plaintext",
    result_action="return_value",
)

Place = Annotated[Path | None, Parameter(help="The ledger; by default LOG.ledger, beside the log.")]
LogOrLedger = Annotated[Path, Parameter(help="The log, or the ledger itself.")]
Waiting = Callable[[str, float | None], None]


@Parameter(name="*")
@dataclass(frozen=True)
class Keeping:
    """Whether and where a release is entered: the same options for every command that spends."""

    ledger: Annotated[
        Path | None,
        Parameter(help="Enter the release in this ledger; by default in LOG.ledger, if that is there."),
    ] = None
    no_ledger: Annotated[
        bool, Parameter(negative="", help="Enter it nowhere: for experiments that you show to nobody.")
    ] = False

    def of(self, log: Path, waiting: Waiting | None = None) -> Ledger | None:
        """The ledger to use, checked; None if there is none to use. A new one is made by its first entry."""
        if self.no_ledger:
            if self.ledger is not None:
                raise ParameterError("--ledger and --no-ledger exclude each other.", parameter="no_ledger")
            return None
        if self.ledger is not None:
            return Ledger.open(self.ledger, create=True, waiting=waiting, name=log.name)
        place = _beside(log)
        return Ledger.open(place, waiting=waiting, name=log.name) if os.path.lexists(place) else None


AS_THERE_IS = Keeping()


@app.command
def show(log: LogOrLedger, *, ledger: Place = None, json: Json = None) -> None:
    """Show all accounts of a ledger: budgets, what is spent, every release. The log itself is not read."""
    out = Output(json)
    kept = _existing(log, ledger)
    accounts = kept.show()
    out.json({"ledger": str(kept.path), "accounts": [account.to_json() for account in accounts]})
    for account in accounts:
        out.show(_account_table(account))
    if not accounts:
        out.show("The ledger has no account yet.")


@app.command(name="set")
def set_(
    log: Log,
    *,
    epsilon: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="All that releases of the log may cost; none: without a limit."),
    ] = None,
    delta: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, help="The same for delta; 0 if it is not given.")
    ] = None,
    unit: Annotated[
        str | None, Parameter(help="Whom the budget protects, as releases name it with --unit: case, or a column.")
    ] = None,
    account: Annotated[
        int | None,
        Parameter(help="Put the log on this account of the ledger: for a log about the same people, grown or changed."),
    ] = None,
    ledger: Place = None,
    reading: Reading = AS_USUAL,
    grouping: Grouping = HERE,
    json: Json = None,
) -> None:
    """Set the total budget of a log; makes the ledger if there is none. What is spent stays spent."""
    out = Output(json)
    if ledger is None and (grouping.engine != "duckdb" or (glob.has_magic(str(log)) and not log.exists())):
        raise ParameterError(
            "A table or several files have no ledger beside them.",
            parameter="ledger",
            advice="Name one with --ledger PATH.",
        )
    if delta is not None and epsilon is None:
        raise ParameterError("A budget for delta needs one for epsilon.", parameter="delta", advice="Add --epsilon.")
    place = _beside(log) if ledger is None else ledger
    Ledger.open(place, create=True, name=log.name)  # before a large log is read
    source = named(log, reading, grouping)
    show_columns(out, source, reading)
    data = read_variants(source, reading)
    with shown_progress() as progress:
        kept = Ledger.open(place, create=True, waiting=progress, name=log.name)
        if epsilon is None:
            found = kept.enter(data, unit=unit, account=account)
        else:
            limit = None if epsilon.strip().lower() == "none" else epsilon
            found = kept.set_budget(data, limit, delta or 0, unit=unit, account=account)
    out.json({"ledger": str(kept.path)} | found.to_json())
    out.show(account_view(kept.path, found))


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
        raise ParameterError("This would overwrite the ledger itself.", parameter="target", advice="Give another file.")
    kept.export(target)
    releases = sum(len(account.entries) for account in kept.show())
    out.json({"ledger": str(kept.path), "releases": releases})
    out.show(display.key_values([("releases", releases), ("written to", str(target))]))


def account_view(path: Path, account: Account) -> RenderableType:
    """What is spent and left, in few lines."""
    return Group(display.key_values([("ledger", str(path)), *_facts(account)]), *_remarks(account))


def _facts(account: Account) -> list[tuple[str, str]]:
    facts = [("account", f"{account.number} ({account.name}), for one {_unit(account)}")]
    spent, left = account.spent, account.left
    facts.append(("spent", "without a bound" if spent is None else _cost(spent)))
    facts.append(("protection left", account.strength))
    if account.most_cases is not None:
        facts.append(("holds for", f"a person of at most {account.most_cases} cases, the least that a release said"))
    if account.of_parts:
        facts.append(("parts", "of those of one rule the dearest counts, if every case stays in its part"))
    if account.budget is not None and left is not None:
        facts.append(("left", f"{_cost(left, down=True)} of {_cost(account.budget)}"))
    return facts


def _remarks(account: Account) -> Iterable[Text]:
    if account.budget is None:
        yield Text("No total budget is set; veilog ledger set LOG --epsilon BUDGET sets one.", style="yellow")
    elif account.spent is None:
        yield Text(
            "Nothing is left: there was a release that nothing bounds, or one for another unit than the budget's.",
            style="yellow",
        )
    elif account.left is not None and account.left[0] == 0:
        yield Text("Nothing is left; further releases are refused.", style="yellow")


def _unit(account: Account) -> str:
    return account.unit if account.unit in ("case", "person") else f"person by {account.unit!r}"


def _account_table(account: Account) -> Group:
    table = Table(box=None, padding=(0, 2, 0, 0))
    parted = any(entry.part is not None for entry in account.entries)
    for name in ("release", "time", "method", "epsilon", "delta", "unit", "cases", "state", "SHA-256 of the file"):
        if name == "cases" and not parted:
            continue
        table.add_column(name, justify="right" if name in ("release", "epsilon", "delta") else "left")
    for entry in account.entries:
        table.add_row(
            str(entry.number),
            entry.time,
            escape(entry.method + (" (as published)" if entry.as_published else "")),
            "none" if entry.epsilon is None else in_figures(entry.epsilon),
            "none" if entry.delta is None else in_figures(entry.delta),
            escape(entry.unit),
            *([escape(entry.part or "all")] if parted else []),
            entry.state,
            " ".join(digest[:12] for digest in entry.outputs),
        )
    heading = display.key_values(_facts(account))
    return Group(heading, *_remarks(account), *([table] if account.entries else []), "")


def _cost(cost: Cost, *, down: bool = False) -> str:
    epsilon, delta = cost
    return f"epsilon = {in_figures(epsilon, down=down)}" + (
        f", delta = {in_figures(delta, down=down)}" if delta else ""
    )


def _beside(log: Path) -> Path:
    """The ledger beside a log: where the log really is, so that a link to a log is no way around its account."""
    try:
        return Path(os.path.realpath(log) + ".ledger")
    except (OSError, ValueError) as error:
        raise InputError(f"The file cannot be read: {error}.", path=str(log)) from error


def _existing(log: Path, ledger: Path | None) -> Ledger:
    if ledger is not None:
        return Ledger.open(ledger)
    if _is_ledger(log):
        return Ledger.open(log)
    place = _beside(log)
    if not os.path.lexists(place):
        raise InputError(
            "This log has no ledger beside it.",
            path=log,
            advice="veilog ledger set LOG makes one; --ledger PATH names another.",
        )
    return Ledger.open(place)


def _is_ledger(path: Path) -> bool:
    if path.suffix == ".ledger":
        return True
    try:
        with path.open("rb") as file:
            return file.read(15) == b"SQLite format 3"
    except (OSError, ValueError):
        return False

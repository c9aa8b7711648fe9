"""Accounts of a ledger in the terminal. Nothing here computes anything."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from veilog._language import count_phrase
from veilog.cli.shared.tables import key_values, plain_table
from veilog.ledger.accounts import Account, figures_of, format_amount
from veilog.ledger.entry import Entry
from veilog.ledger.rules import Composed, ComposedCost, FixedSchedule
from veilog.messages import Message
from veilog.privacy.account.guarantee import up
from veilog.releasing.account_notes import namesakes, uncounted_warning


def account_view(path: Path, account: Account) -> RenderableType:
    """Return the sums that are spent and left, in few lines."""
    return Group(key_values([("ledger", str(path)), *_facts(account)]), *_account_remarks(account))


def account_line(account: Account) -> str:
    """Return the sums that are spent and left, in a line."""
    spent = "spent without a bound" if account.spent is None else f"{figures_of(account.spent)} spent"
    if account.spent is None and len(account.kinds) > 1:
        spent = f"{spent} ({_small(account.why_unbounded)})"
    if account.budget is None or account.left is None:
        return f"{spent} by all releases of this log; no budget is set: veilog ledger set LOG --epsilon BUDGET"
    if account.left[0] == 0:
        return f"{spent}; nothing is left of {figures_of(account.budget)}"
    return f"{spent}; {figures_of(account.left, down=True)} of {figures_of(account.budget)} are left"


def _small(message: Message) -> str:
    """Return a message for a place within a sentence."""
    text = str(message)
    return text[:1].lower() + text[1:]


def _guessing_rows(found: ComposedCost | None) -> Iterable[tuple[str, str]]:
    """Yield the two composed numbers, each with its condition."""
    if found is None:
        return
    if found.planned is None or found.composed is None:
        yield "together", f"the deltas of the releases add up to more than {format_amount(found.delta)}"
        return
    at = f"at delta = {format_amount(found.delta)}"
    planned, composed = (f"epsilon = {up(e, 4)} {at}" for e in (found.planned, found.composed))
    yield "together", f"{planned}, if the budget of each was fixed before the first"
    yield "", f"{composed}, if each was chosen after seeing earlier ones, within this limit"


def _account_remarks(account: Account) -> Iterable[Text]:
    if account.budget is None and len(account.kinds) > 1:
        yield Text(f"{account.why_unbounded}, whose budgets do not add up.", style="yellow")
    warnings = [*filter(None, [namesakes(account)]), *uncounted_warning(account)]
    yield from (Text(str(warning), style="yellow") for warning in warnings)
    if account.budget is None:
        yield Text("No total budget is set. Set one: veilog ledger set LOG --epsilon BUDGET.", style="yellow")
    elif account.spent is None:
        yield Text(
            f"Nothing is left: {_small(account.why_unbounded)}.",
            style="yellow",
        )
    elif account.left is not None and account.left[0] == 0:
        yield Text("Nothing is left: veilog refuses further releases.", style="yellow")


def _unit(account: Account) -> str:
    return account.unit if account.unit in ("case", "person") else f"person by {account.unit!r}"


def account_table(account: Account, together: ComposedCost | None) -> Group:
    parted = any(entry.subset is not None for entry in (*account.entries, *account.uncounted))
    names = ("release", "time", "method", "epsilon", "delta", "unit", "cases", "state", "SHA-256 of the file")
    shown = [name for name in names if name != "cases" or parted]
    table = plain_table(*shown, right=("release", "epsilon", "delta"))
    listed: list[tuple[str, str, Entry]] = [(str(entry.number), entry.state, entry) for entry in account.entries]
    listed += [("", "not counted", entry) for entry in account.uncounted]
    for number, state, entry in listed:
        table.add_row(
            number,
            entry.time,
            escape(entry.method + (" (as published)" if entry.as_published else "")),
            "none" if entry.epsilon is None else format_amount(entry.epsilon),
            "none" if entry.delta is None else format_amount(entry.delta),
            escape(entry.unit),
            *([escape(entry.subset or "all")] if parted else []),
            state,
            " ".join(digest[:12] for digest in entry.outputs),
        )
    heading = key_values([*_facts(account), *_guessing_rows(together)])
    return Group(heading, *_account_remarks(account), *([table] if listed else []), "")


def _facts(account: Account) -> list[tuple[str, str]]:
    beside = f"; {account.others:,} more in this ledger" if account.others else ""
    facts = [("account", f"{account.number} ({account.name}), for one {_unit(account)}{beside}")]
    spent, left = account.spent, account.left
    facts.append(("spent", "without a bound" if spent is None else figures_of(spent)))
    if account.counting is not None and account.composed is not None:
        facts.append(("composed", figures_of(account.composed)))
    most = "" if account.holds_up_to is None else f", for a log of up to {count_phrase(account.holds_up_to, 'case')}"
    facts.append(("protection left", account.strength + most))
    if account.most_cases is not None:
        facts.append(("holds for", f"a person of at most {account.most_cases} cases, the smallest bound used"))
    if account.of_subsets:
        facts.append(
            (
                "subsets",
                "the largest epsilon of each rule counts, if every case stays in its subset",
            )
        )
    if account.budget is not None and left is not None:
        facts.append(("left", f"{figures_of(left, down=True)} of {figures_of(account.budget)}"))
        facts.extend(_composition_rows(account))
    return facts


def _composition_rows(account: Account) -> Iterable[tuple[str, str]]:
    """Yield the way releases are counted, if it is not the sum."""
    match account.counting:
        case FixedSchedule(releases=releases, each=each):
            yield (
                "by a plan",
                f"{releases:,} releases of at most {figures_of(each)}; {account.releases_left:,} are left",
            )
            yield "", f"protection when all of them are made: {account.planned_strength}"
        case Composed():
            half = " and half for its releases' deltas" if account.budget and account.budget[1] else ""
            yield "by composition", f"each may be chosen after seeing earlier ones; half of delta is for that{half}"

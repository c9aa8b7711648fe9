"""The two tables that the command shows everything in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._language import counted
from veilog._notebook import figure
from veilog.ledger.accounts import Account, figures_of, in_figures
from veilog.ledger.entry import Entry
from veilog.ledger.rules import Composed, ComposedCost, FixedSchedule
from veilog.logs.eventlog import Statistics
from veilog.logs.facts import AttributeFacts, PersonColumn
from veilog.logs.findings import Finding
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.guarantee import up
from veilog.releasing.account_notes import namesakes, uncounted_warning


def key_values(rows: Iterable[tuple[str, Any]], title: str | None = None) -> Table:
    """Two columns: what, and its value."""
    table = Table(title=title, show_header=False, box=None, title_justify="left", padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for key, value in rows:
        table.add_row(key, value if isinstance(value, Text) else escape(figure(value)))
    return table


def listing(*columns: str, right: Collection[str] = (), dim: Collection[str] = (), title: str | None = None) -> Table:
    """A table without lines: its columns, those whose numbers stand to the right, and those that are dim."""
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for name in columns:
        style = "dim" if name in dim else ""
        table.add_column(name, justify="right" if name in right else "left", style=style)
    return table


# How the command shows logs ------------------------------------------------------------------------------------------

# How the command shows logs: their sizes, variants, columns and findings. Nothing here computes anything.


_SEVERITY = {"error": "bold red", "warning": "yellow", "info": "dim"}


def info_table(statistics: Statistics, variants: Variants, source: str) -> Table:
    s = statistics
    alone = int((variants.counts == 1).sum()) / s.cases if s.cases else 0.0
    lengths = f"{s.length_min} to {s.length_max}, median {s.length_median:g}, mean {s.length_mean:.2f}"
    rows: list[tuple[str, Any]] = [
        ("cases", s.cases),
        ("events", s.events),
        ("activities", s.activities),
        ("variants", s.variants),
        ("uniqueness", f"{s.uniqueness:.1%} (variants per case)"),
        ("alone", f"{alone:.1%} of the cases have a variant that no other case has"),
        ("events per case", lengths),
    ]
    if s.start is not None and s.end is not None:
        rows.append(("from", f"{_utc(s.start)} (UTC)"))
        rows.append(("to", f"{_utc(s.end)} (UTC)"))
    return key_values(rows, title=escape(source))


def _utc(time: str) -> str:
    """A time of a log, which are all kept in UTC, to the second."""
    return time[:19].replace("T", " ")


def attributes_table(attributes: Iterable[AttributeFacts], transitions: Mapping[str, int] | None) -> RenderableType:
    """What the columns of a log hold beside activities and times, and its life cycle."""
    table = Table(title="attributes", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("name", "of", "holds", "values", "missing"):
        table.add_column(name, justify="right" if name in ("values", "missing") else "left", no_wrap=name != "name")
    for a in attributes:
        table.add_row(escape(a.name), a.level, a.kind, f"{a.values:,}", f"{a.missing:,}")
    shown: list[RenderableType] = [] if table.row_count == 0 else [table]
    if transitions:
        told = ", ".join(f"{name} {count:,}" for name, count in list(transitions.items())[:5])
        shown.append(Text(f"life cycle, events of each transition: {told}"))
    return Group(*shown)


def variants_table(variants: Variants, most: int = 5) -> Table:
    """The most frequent variants."""
    table = Table(title="most frequent variants", title_justify="left", box=None, padding=(0, 2, 0, 0))
    # Long variants are cut, never the numbers before them.
    table.add_column("cases", justify="right", no_wrap=True, min_width=_digits(variants.counts))
    table.add_column("share", justify="right", no_wrap=True, min_width=6)
    table.add_column("variant", overflow="ellipsis", no_wrap=True, ratio=1)
    for index in variants.by_frequency()[:most].tolist():
        count = int(variants.counts[index])
        sequence = " > ".join(variants.sequences[index]) or "(no events)"
        table.add_row(f"{count:,}", f"{count / variants.cases:.1%}", escape(sequence))
    return table


def _digits(counts: Any) -> int:
    """The width of the largest of these counts, and of their header."""
    return max(len("cases"), len(f"{max(counts.tolist(), default=0):,}"))


def persons_lines(persons: Iterable[PersonColumn]) -> RenderableType:
    """The columns that may say whose a case is, for the owner."""
    found = list(persons)
    if not found:
        return Text("")
    head = Text("Is a case a person? By default a release protects one case:", style="yellow")
    return Group(head, *(Text(f"  {person}", style="yellow") for person in found[:5]))


def findings_table(findings: tuple[Finding, ...], source: str | None = None) -> RenderableType:
    if not findings:
        return Text("No findings.", style="green")
    title = "findings" if source is None else f"findings in {escape(source)}"
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    table.add_column("finding", no_wrap=True)
    table.add_column("count", justify="right")
    table.add_column("what happens")
    table.add_column("line", justify="right")
    table.add_column("example", overflow="fold")
    for f in findings:
        table.add_row(
            Text(f.rule, style=_SEVERITY[f.severity]),
            f"{f.count:,}",
            f.policy,
            "" if f.line is None else str(f.line),
            escape(str(f.example)),
        )
    dropped = [Text(f.dropped, style="bold yellow") for f in findings if f.dropped is not None]
    advice = [Text(f"{f.rule}: {f.advice}", style="dim") for f in findings]
    return Group(table, *dropped, *advice)


# How the command shows accounts of a ledger. Nothing here computes anything ------------------------------------------

# How the command shows accounts of a ledger. Nothing here computes anything.


def account_view(path: Path, account: Account) -> RenderableType:
    """What is spent and left, in few lines."""
    return Group(key_values([("ledger", str(path)), *_facts(account)]), *_account_remarks(account))


def account_line(account: Account) -> str:
    """What is spent and left, in a line."""
    spent = "spent without a bound" if account.spent is None else f"{figures_of(account.spent)} spent"
    if account.spent is None and len(account.kinds) > 1:
        spent = f"{spent} ({_small(account.why_unbounded)})"
    if account.budget is None or account.left is None:
        return f"{spent} by all releases of this log; no budget is set: veilog ledger set LOG --epsilon BUDGET"
    if account.left[0] == 0:
        return f"{spent}; nothing is left of {figures_of(account.budget)}"
    return f"{spent}; {figures_of(account.left, down=True)} of {figures_of(account.budget)} are left"


def _small(message: Message) -> str:
    """A message within a sentence."""
    text = str(message)
    return text[:1].lower() + text[1:]


def _in_words(found: ComposedCost | None) -> Iterable[tuple[str, str]]:
    """The two numbers, each with what it takes for granted."""
    if found is None:
        return
    if found.planned is None or found.composed is None:
        yield "together", f"the deltas of the releases add up to more than {in_figures(found.delta)}"
        return
    at = f"at delta = {in_figures(found.delta)}"
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
    table = listing(*shown, right=("release", "epsilon", "delta"))
    listed: list[tuple[str, str, Entry]] = [(str(entry.number), entry.state, entry) for entry in account.entries]
    listed += [("", "not counted", entry) for entry in account.uncounted]
    for number, state, entry in listed:
        table.add_row(
            number,
            entry.time,
            escape(entry.method + (" (as published)" if entry.as_published else "")),
            "none" if entry.epsilon is None else in_figures(entry.epsilon),
            "none" if entry.delta is None else in_figures(entry.delta),
            escape(entry.unit),
            *([escape(entry.subset or "all")] if parted else []),
            state,
            " ".join(digest[:12] for digest in entry.outputs),
        )
    heading = key_values([*_facts(account), *_in_words(together)])
    return Group(heading, *_account_remarks(account), *([table] if listed else []), "")


def _facts(account: Account) -> list[tuple[str, str]]:
    beside = f"; {account.others:,} more in this ledger" if account.others else ""
    facts = [("account", f"{account.number} ({account.name}), for one {_unit(account)}{beside}")]
    spent, left = account.spent, account.left
    facts.append(("spent", "without a bound" if spent is None else figures_of(spent)))
    if account.counting is not None and account.composed is not None:
        facts.append(("composed", figures_of(account.composed)))
    most = "" if account.holds_up_to is None else f", for a log of up to {counted(account.holds_up_to, 'case')}"
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
        facts.extend(_counted(account))
    return facts


def _counted(account: Account) -> Iterable[tuple[str, str]]:
    """How releases are counted, where that is not by the sum."""
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

"""The two kinds of tables of the command, and logs in the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._notebook import figure
from veilog.logs.eventlog import Statistics
from veilog.logs.facts import AttributeFacts, PersonColumn
from veilog.logs.findings import Finding
from veilog.logs.variants import Variants


def key_values(rows: Iterable[tuple[str, Any]], title: str | None = None) -> Table:
    """Return two columns: each fact and its value."""
    table = Table(title=title, show_header=False, box=None, title_justify="left", padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for key, value in rows:
        table.add_row(key, value if isinstance(value, Text) else escape(figure(value)))
    return table


def plain_table(
    *columns: str, right: Collection[str] = (), dim: Collection[str] = (), title: str | None = None
) -> Table:
    """Return a table without lines, with numbers to the right, and dim columns."""
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for name in columns:
        style = "dim" if name in dim else ""
        table.add_column(name, justify="right" if name in right else "left", style=style)
    return table


# Logs in the terminal: sizes, variants, columns and findings. Nothing here computes anything -------------------------


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
    """Return a time of a log, in UTC, to the second."""
    return time[:19].replace("T", " ")


def attributes_table(attributes: Iterable[AttributeFacts], transitions: Mapping[str, int] | None) -> RenderableType:
    """Return the content of a log's columns other than activities and times.

    It has the life cycle, too.
    """
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
    """Return the most frequent variants."""
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
    """Return the width of the largest of these counts, or of their header."""
    return max(len("cases"), len(f"{max(counts.tolist(), default=0):,}"))


def persons_lines(persons: Iterable[PersonColumn]) -> RenderableType:
    """Return the columns that may identify the person of a case, for the owner."""
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

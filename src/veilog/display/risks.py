"""Who is exposed in a log."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group
from rich.table import Table
from rich.text import Text

from veilog.display.tables import counted, figure
from veilog.logs.variants import Variants
from veilog.measures.disclosure import EXPLAINED, RiskResult

__all__ = ["risk_lines", "risk_table"]


_KNOWN = {"set": "which", "multiset": "which and how often", "sequence": "which and in which order"}


def risk_lines(variants: Variants, results: Iterable[RiskResult]) -> Group:
    """Who is exposed, in sentences: the exact share of cases with a path of their own, then what few activities do."""
    alone = int(variants.counts[variants.counts == 1].sum())
    share = f"{100 * alone / variants.cases:.1f} %" if variants.cases else "none"
    lines = [
        Text(
            f"{share} of the {counted(variants.cases, 'case')} ({alone:,}) have a path that no other case has: whoever "
            "knows the whole path finds the case.",
            style="bold red" if alone else "bold green",
        )
    ]
    return Group(*lines, *(Text(_sentence(r)) for r in results if r.case_disclosure is not None))


def _sentence(found: RiskResult) -> str:
    """What a few known activities do; where not all that can be known was tried, no less than was seen."""
    events = "1 activity" if found.size == 1 else f"{found.size} activities"
    known = f"Whoever knows {events} of a case ({_KNOWN[found.background]})"
    if not found.exact and found.unique == 0:
        return f"{known}: of the {found.sampled or 0:,} things tried that can be known none singles out a case."
    least = "" if found.exact else "at least "
    return f"{known} may single out {least}{found.unique:,} of {counted(found.cases, 'case')}."


def risk_table(results: Iterable[RiskResult]) -> Group:
    """Disclosure for each kind and size of background knowledge, with a bar as long as the case disclosure."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in (
        "background",
        "size",
        "candidates",
        "case disclosure",
        "",
        "trace disclosure",
        "worst case",
        "unique",
    ):
        table.add_column(column, justify="left" if column in ("background", "") else "right")
    notes = []
    for r in results:
        about = "" if r.exact else "about "
        table.add_row(
            r.background,
            str(r.size),
            f"{about}{r.candidates:,}",
            figure(r.case_disclosure),
            Text("#" * round(30 * (r.case_disclosure or 0.0)), style="red"),
            figure(r.trace_disclosure),
            figure(r.worst_case),
            f"{r.unique:,} of {r.cases:,}",
        )
        if r.reason is not None:
            notes.append(Text(f"{r.background} of size {r.size}: {r.reason}", style="dim"))
        elif not r.exact:
            notes.append(
                Text(f"{r.background} of size {r.size}: estimated; worst case and unique are lower bounds", style="dim")
            )
    words = Text("; ".join(f"{name}: {meaning}" for name, meaning in EXPLAINED.items()) + ".", style="dim")
    return Group(table, words, *notes)

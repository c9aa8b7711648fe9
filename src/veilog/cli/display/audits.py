"""How the command shows audits. Nothing here computes anything."""

from __future__ import annotations

from rich.console import Group
from rich.markup import escape
from rich.text import Text

from veilog.audits.results import AuditResult
from veilog.cli.display.releases import pair
from veilog.cli.display.tables import key_values, listing


def audit_view(result: AuditResult) -> Group:
    """Claimed, derived and audited side by side, and how it was found out."""
    t = result.tally
    name = result.method + (" (as published)" if result.as_published else "")
    chances = f"{t.seen_with:,} of {t.runs_with:,} runs with, {t.seen_without:,} of {t.runs_without:,} without"
    table = key_values(
        [
            ("method", name),
            ("nominal epsilon", pair(result.nominal_epsilon, result.delta)),
            ("derived epsilon", pair(result.derived_epsilon, result.delta)),
            ("if", ", ".join(c.code for c in result.conditions) or "nothing"),
            ("audited epsilon", f"at least {result.audited_epsilon:.4g}, at {result.confidence:.0%} confidence"),
            ("best attack", result.attack),
            ("seen", f"{result.score} {t.event}: {chances}"),
            ("runs", f"{result.runs:,} on each log, {result.seconds:.0f} s"),
        ]
        + _inside(result)
        + [
            (f"beyond it ({found.breaks})", f"{found.attack}: at least {found.audited_epsilon:.4g}")
            for found in result.beyond
        ]
    )
    names = ("attack tried", "seemed to show")
    tried = listing(*names, right=names[1:], dim=names)
    for attack, seemed in sorted(result.tried, key=lambda found: -found[1])[:8]:
        tried.add_row(escape(attack), f"{seemed:.2f}")
    fine = result.audited_epsilon <= result.claim and not (result.white_box and result.white_box.faults)
    return Group(table, Text(result.verdict, style="bold green" if fine else "bold red"), tried)


def _inside(result: AuditResult) -> list[tuple[str, str]]:
    """The findings of a white-box audit beside its epsilon."""
    white = result.white_box
    if white is None:
        return []
    return [
        ("which is", f"at least {white.factor:.0%} of what was charged for: {'; '.join(white.questions)}"),
        ("without the shape of the noise", f"at least {white.free_epsilon:.4g}"),
        *(("fault", str(fault)) for fault in white.faults),
    ]

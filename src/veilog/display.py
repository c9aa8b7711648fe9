"""How the command shows things to people: tables and panels. Nothing here computes anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from veilog.audits.auditing import AuditResult
from veilog.charts import lasting, times_view
from veilog.logs.eventlog import Statistics
from veilog.logs.facts import PersonColumn
from veilog.logs.findings import Finding
from veilog.logs.variants import Variants
from veilog.measures import MEASURES, Comparison
from veilog.measures.disclosure import EXPLAINED, RiskResult
from veilog.measures.purposes import Grade, Judgement
from veilog.measures.singling_out import Rate, SinglingOut
from veilog.methods import Method
from veilog.privacy.account.figures import up
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.account.strength import Strength
from veilog.releasing.meaning import meaning_of
from veilog.releasing.result import Release

__all__ = [
    "audit_view",
    "comparison_table",
    "findings_table",
    "guarantee_panel",
    "info_table",
    "key_values",
    "methods_table",
    "persons_lines",
    "release_view",
    "risk_table",
    "singling_out_table",
    "variants_table",
]

_STRENGTH: Mapping[Strength, str] = {
    "strong": "green", "good": "green", "moderate": "yellow", "weak": "red", "none in practice": "red",
}  # fmt: skip
_PRINTED = (
    "relative_log_similarity",
    "relative_log_similarity_exact",
    "absolute_log_difference",
    "absolute_log_difference_maximum",
    "dfg_frequency_emd",
    "dfg_time_emd",
    "case_durations",
    "active_cases",
    "dfg_moved",
    "size_ratio",
    "variants",
    "keep_real",
    "normal_share",
    "length_error",
    "fitness",
    "precision",
    "f_score",
    "generalization",
)
"""Measures in the table of a comparison, before those that other packages add."""
_SEVERITY = {"error": "bold red", "warning": "yellow", "info": "dim"}


def key_values(rows: Iterable[tuple[str, Any]], title: str | None = None) -> Table:
    """Two columns: what, and its value."""
    table = Table(title=title, show_header=False, box=None, title_justify="left", padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for key, value in rows:
        table.add_row(key, value if isinstance(value, Text) else escape(_shown(value)))
    return table


def info_table(statistics: Statistics, source: str) -> Table:
    s = statistics
    lengths = f"{s.length_min} to {s.length_max}, median {s.length_median:g}, mean {s.length_mean:.2f}"
    rows: list[tuple[str, Any]] = [
        ("cases", s.cases),
        ("events", s.events),
        ("activities", s.activities),
        ("variants", s.variants),
        ("uniqueness", f"{s.uniqueness:.1%} (variants per case)"),
        ("events per case", lengths),
    ]
    if s.start is not None and s.end is not None:
        rows.append(("from", s.start))
        rows.append(("to", s.end))
    return key_values(rows, title=escape(source))


def variants_table(variants: Variants) -> Table:
    """The most frequent variants."""
    table = Table(title="most frequent variants", title_justify="left", box=None, padding=(0, 2, 0, 0))
    # Long variants are cut, never the numbers before them.
    table.add_column("cases", justify="right", no_wrap=True, min_width=_digits(variants.counts))
    table.add_column("share", justify="right", no_wrap=True, min_width=6)
    table.add_column("variant", overflow="ellipsis", no_wrap=True, ratio=1)
    for index in variants.by_frequency()[:5].tolist():
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
    head = Text("Is a case a person? A release protects one case unless it says otherwise:", style="yellow")
    return Group(head, *(Text(f"  {person}", style="yellow") for person in found[:5]))


def findings_table(findings: tuple[Finding, ...], source: str | None = None) -> RenderableType:
    if not findings:
        return Text("Nothing to remark.", style="green")
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
            escape(f.example),
        )
    dropped = [Text(f.dropped, style="bold yellow") for f in findings if f.dropped is not None]
    advice = [Text(f"{f.rule}: {f.advice}", style="dim") for f in findings]
    return Group(table, *dropped, *advice)


def methods_table(methods: Iterable[Method]) -> Table:
    table = Table(box=None, padding=(0, 2, 1, 0))
    for column in ("method", "releases", "certified", "as published", "parameters (-p name=value)"):
        table.add_column(column)
    for m in methods:
        parameters = "\n".join(f"{p.name}: {p.what}" for p in m.parameters) or "none"
        table.add_row(
            Text(m.name, style="bold") + Text(f"\n{m.package}" if m.package else "", style="dim"),
            str(m.releases),
            escape(m.guarantee),
            escape(m.as_published),
            escape(parameters),
        )
    return table


def strength_style(guarantee: Guarantee) -> str:
    """Return the colour that a guarantee is shown in, by what it is worth."""
    return _STRENGTH[guarantee.strength]


def guarantee_panel(guarantee: Guarantee, *, as_published: bool) -> Panel:
    """The guarantee in words, with all that it rests on."""
    lines: list[RenderableType] = [Text(guarantee.in_words(), style=f"bold {_STRENGTH[guarantee.strength]}")]
    meaning = meaning_of(guarantee)
    if meaning is not None:
        lines.append(Text(meaning.in_words(guarantee.unit)))
    if as_published or not guarantee.proven:
        lines.append(Text(f"nominal (what was asked for): {_pair(guarantee.nominal_epsilon, guarantee.nominal_delta)}"))
        lines.append(Text(f"derived (what is proved): {_pair(guarantee.epsilon, guarantee.delta)}"))
    for statement in guarantee.statements:
        how = "checked on the release" if statement.checked else "rests on the method, not checked"
        lines.append(Text(f"{statement.model}: {how}. {statement.does_not_protect}", style="yellow"))
    if guarantee.charges:
        lines.append(Text(f"Protects against: telling apart {guarantee.neighbours}."))
        lines.append(Text(f"Noise: {guarantee.numerics}."))
    lines.extend(Text(f"Holds only if: {c.text} ({c.code})", style="yellow") for c in guarantee.conditions)
    charges = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("question", "for", "noise", "epsilon", "delta"):
        charges.add_column(column, style="dim")
    shown = guarantee.charges[:8]
    for c in (charge.plain() for charge in shown):
        charges.add_row(c.question, escape(c.purpose), c.mechanism, up(c.epsilon), up(c.delta))
    if len(guarantee.charges) > len(shown):
        charges.add_row(f"... {len(guarantee.charges) - len(shown)} more", "", "", "", "")
    if guarantee.charges:
        lines.append(charges)
    return Panel(Group(*lines), title="guarantee", title_align="left", border_style=_STRENGTH[guarantee.strength])


def release_view(released: Release, target: str) -> Group:
    """What ``veilog release`` prints about the release itself."""
    v = released.variants
    name = released.method + (" (as published)" if released.as_published else "")
    top = key_values(
        [("released", f"{v.cases:,} cases, {len(v):,} variants, {v.events:,} events"), ("method", name)]
        + [(f"  {key}", value) for key, value in released.parameters.items() if value is not None]
        + [("written to", target), ("seconds", f"{released.owner_only.seconds:.2f}")]
    )
    remarks = [Text(remark, style="yellow") for remark in released.remarks]
    notes = [Text(f"For you only: {note}", style="magenta") for note in released.owner_only.notes]
    notes += [
        Text(f"For you only: reading the log, {f.rule}: {f.count:,} {f.policy}", style="magenta")
        for f in released.owner_only.findings
        if f.severity != "info"
    ]
    return Group(top, guarantee_panel(released.guarantee, as_published=released.as_published), *remarks, *notes)


def comparison_table(result: Comparison) -> Group:
    """Every measure, and the verdict in words."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("measure", style="dim")
    table.add_column("value", justify="right")
    table.add_column("")
    for name, value, meaning in _lines(result):
        table.add_row(escape(name), _shown(value), escape(meaning))
    missing = [Text(f"{name}: {reason}", style="dim") for name, reason in sorted(result.not_computed.items())]
    times = times_view(result.case_durations, result.active_cases)
    risk = [] if result.singling_out is None else [singling_out_table(result.singling_out)]
    purposes = [purposes_table(result.purposes)] if result.purposes else []
    return Group(table, *risk, Text(result.verdict, style="bold"), *missing, *purposes, times)


_GRADES: Mapping[Grade, str] = {"good": "green", "limited": "yellow", "poor": "red", "not judged": "dim"}


def purposes_table(purposes: Mapping[str, Judgement]) -> Group:
    """What a release is good for: a sentence a purpose, and each number beside what it is held against."""
    table = Table(box=None, padding=(0, 2, 0, 0), title="what it is good for", title_justify="left")
    for column in ("", "release", "original", "a half of it", "bare list", "kept", ""):
        table.add_column(column, style="dim" if not column else "", justify="right" if column else "left")
    for judgement in purposes.values():
        for judged in judgement.aspects.values():
            if judged.value is None:
                continue
            numbers = (judged.value, judged.ceiling, judged.floor, judged.zero)
            name = judged.aspect.title + (f", {judged.aspect.unit}" if judged.aspect.unit else "")
            share = judged.share
            bar = Text("#" * round(20 * min(share or 0.0, 1.0)), style=_GRADES[judged.grade])
            kept = "" if share is None else f"{100 * share:.0f} %"
            table.add_row(escape(name), *(_shown(number) for number in numbers), kept, bar)
    words = []
    for judgement in purposes.values():
        words.append(Text(judgement.verdict, style=_GRADES[judgement.grade]))
        words += [Text(f"  {judgement.reason}", style="dim")] if judgement.reason and judgement.aspects else []
    note = (
        "kept: of what the original gives, or how near the release is beside one half of the original to the "
        "other. bare list: every variant of the original once, which has learnt nothing and protects nobody."
    )
    return Group(table, *words, Text(note, style="dim"))


def singling_out_table(result: SinglingOut) -> Group:
    """Risk before and after, for each kind of knowledge; the judged difference in red where it is one."""
    table = Table(box=None, padding=(0, 2, 0, 0), title="risk before and after", title_justify="left")
    for column in ("events known", "attack succeeds", "original", "release", "others' cases", "release beyond these"):
        table.add_column(column, style="dim" if column == "attack succeeds" else "", justify="right")
    for row in result.results:
        known = f"{row.size} and the start" if row.with_start else str(row.size)
        g, s, b = row.guessed, row.singled_out, row.beyond
        beyond = Text(f"{100 * b.value:+.1f} %" + _reach(b), style="bold red" if row.more else "")
        table.add_row(known, "guessed", *(_rate(r) for r in (g.original, g.released, g.baseline)), beyond)
        table.add_row("", "singled out", *(_rate(r) for r in (s.original, s.released, s.baseline)), "")
    drawn = max((row.attacks for row in result.results if not row.exact), default=0)
    how = f"at most {drawn:,} people, drawn for each size" if drawn else "everybody, with all that can be known"
    words = (
        "guessed: the most frequent trace that fits what is known is the person's; singled out: one case alone fits, "
        f"and it has the person's trace. Attacked: {how}; start known to {result.hours:g} hours. In brackets: 95 % "
        "intervals, in the last column 99.5 %."
    )
    notes = [words] if result.without_start is None else [words, f"start not known: {result.without_start}"]
    return Group(table, *(Text(note, style="dim") for note in notes))


def _rate(rate: Rate) -> str:
    return f"{100 * rate.value:.1f} %" + _reach(rate)


def _reach(rate: Rate) -> str:
    return "" if rate.low == rate.high else f" [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


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
            _shown(r.case_disclosure),
            Text("#" * round(30 * (r.case_disclosure or 0.0)), style="red"),
            _shown(r.trace_disclosure),
            _shown(r.worst_case),
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


def audit_view(result: AuditResult) -> Group:
    """Claimed, derived and audited side by side, and how it was found out."""
    t = result.tally
    name = result.method + (" (as published)" if result.as_published else "")
    chances = f"{t.seen_with:,} of {t.runs_with:,} runs with, {t.seen_without:,} of {t.runs_without:,} without"
    table = key_values(
        [
            ("method", name),
            ("nominal epsilon", _pair(result.nominal_epsilon, result.delta)),
            ("derived epsilon", _pair(result.derived_epsilon, result.delta)),
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
    tried = Table(box=None, padding=(0, 2, 0, 0))
    tried.add_column("attack tried", style="dim")
    tried.add_column("seemed to show", justify="right", style="dim")
    for attack, seemed in sorted(result.tried, key=lambda found: -found[1])[:8]:
        tried.add_row(escape(attack), f"{seemed:.2f}")
    fine = result.audited_epsilon <= result.claim and not (result.white_box and result.white_box.faults)
    return Group(table, Text(result.verdict, style="bold green" if fine else "bold red"), tried)


def _inside(result: AuditResult) -> list[tuple[str, str]]:
    """What a white-box audit says beside its epsilon."""
    white = result.white_box
    if white is None:
        return []
    return [
        ("which is", f"at least {white.factor:.0%} of what was charged for: {'; '.join(white.questions)}"),
        ("without the shape of the noise", f"at least {white.free_epsilon:.4g}"),
        *(("fault", fault) for fault in white.faults),
    ]


def _lines(result: Comparison) -> Iterable[tuple[str, Any, str]]:
    """What is printed of each measure: its numbers with their words, or between which numbers it lies.

    One that has to be asked for, or has several numbers, is left out where it has no value.
    """
    for name in (*_PRINTED, *result.added):
        measure, found = MEASURES[name], result.results.get(name)
        if found is None or (found.value is None and (measure.extra or any(q.of for q in measure.quantities))):
            continue
        whence = f" (added by {result.added[name]})" if name in result.added else ""
        for quantity in measure.quantities:
            number = quantity.number(found.value)
            shown: Any = lasting(number) if quantity.form == "hours" and number is not None else number
            if found.value is None and found.interval is not None:
                shown = " to ".join(map(_shown, found.interval))
            yield quantity.title, shown, quantity.says(found.value) + whence


def _pair(epsilon: float | None, delta: float | None) -> str:
    if epsilon is None:
        return "none"
    return f"epsilon = {up(epsilon)}" + (f", delta = {up(delta)}" if delta else "")


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)

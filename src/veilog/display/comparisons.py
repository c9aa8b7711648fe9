"""What a release kept, what it is good for, and whom it exposes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog.charts import lasting, times_view
from veilog.display.tables import figure
from veilog.measures import Comparison
from veilog.measures.purposes import Grade, Judgement
from veilog.measures.singling_out import Rate, SinglingOut

__all__ = ["comparison_table", "comparison_view", "purposes_table", "singling_out_table"]

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


def _measures(result: Comparison, names: Iterable[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("measure", style="dim")
    table.add_column("value", justify="right")
    table.add_column("")
    for name, value, meaning in _lines(result, names):
        table.add_row(escape(name), figure(value), escape(meaning))
    return table


_GRADES: Mapping[Grade, str] = {"good": "green", "limited": "yellow", "poor": "red", "not judged": "dim"}


_FIRST = ("relative_log_similarity", "dfg_moved", "keep_real", "size_ratio", "fitness", "precision", "case_durations")
"""Measures that are shown before more is asked for, with those that other packages add."""


def comparison_view(result: Comparison) -> Group:
    """What ``veilog compare`` prints unless more is asked for: the verdict, the measures that say most, and what the
    release is good for where that was asked."""
    purposes = [purposes_table(result.purposes)] if result.purposes else []
    return Group(Text(result.verdict, style="bold"), _measures(result, (*_FIRST, *result.added)), *purposes)


def comparison_table(result: Comparison) -> Group:
    """Every measure, and the verdict in words."""
    table = _measures(result, (*_PRINTED, *result.added))
    missing = [Text(f"{name}: {reason}", style="dim") for name, reason in sorted(result.not_computed.items())]
    times = times_view(result.case_durations, result.active_cases)
    risk = [] if result.singling_out is None else [singling_out_table(result.singling_out)]
    purposes = [purposes_table(result.purposes)] if result.purposes else []
    return Group(table, *risk, Text(result.verdict, style="bold"), *missing, *purposes, times)


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
            table.add_row(escape(name), *(figure(number) for number in numbers), kept, bar)
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


def _lines(result: Comparison, names: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    """What is printed of each measure: its numbers with their words, or between which numbers it lies."""
    for line in result.lines(names):
        whence = f" (added by {result.added[line.measure]})" if line.measure in result.added else ""
        hours = line.quantity.form == "hours" and line.value is not None
        shown = lasting(line.value) if hours and line.value is not None else line.shown
        yield line.quantity.title, shown, line.meaning + whence

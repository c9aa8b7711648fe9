"""What a release kept, what it is good for, and whom it exposes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._notebook import figure
from veilog.charts import lasting, times_view
from veilog.display.risks import attack_lines, attack_tables
from veilog.measures import Comparison
from veilog.measures.purposes import Grade, Judgement

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
    "rework",
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
    """What ``veilog compare`` prints unless more is asked for: the verdict, what attacks on people gained, the measures
    that say most, and what the release is good for where that was asked."""
    purposes = [purposes_table(result.purposes)] if result.purposes else []
    people = attack_lines(result.linkability, result.inference)
    return Group(Text(result.verdict, style="bold"), *people, _measures(result, (*_FIRST, *result.added)), *purposes)


def comparison_table(result: Comparison) -> Group:
    """Every measure, and the verdict in words."""
    table = _measures(result, (*_PRINTED, *result.added))
    missing = [Text(f"{name}: {reason}", style="dim") for name, reason in sorted(result.not_computed.items())]
    times = times_view(result.case_durations, result.active_cases)
    risk = attack_tables(result.singling_out, result.linkability, result.inference)
    purposes = [purposes_table(result.purposes)] if result.purposes else []
    people = attack_lines(result.linkability, result.inference)
    return Group(table, *risk, Text(result.verdict, style="bold"), *people, *missing, *purposes, times)


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
            name = judged.aspect.heading + (f", {judged.aspect.unit}" if judged.aspect.unit else "")
            share = judged.share
            bar = Text("#" * round(20 * min(share or 0.0, 1.0)), style=_GRADES[judged.grade])
            kept = "" if share is None else f"{100 * share:.0f} %"
            table.add_row(escape(name), *(figure(number) for number in numbers), kept, bar)
    words = []
    for judgement in purposes.values():
        words.append(Text(judgement.verdict, style=_GRADES[judgement.grade]))
        words += [Text(f"  {line}", style="dim") for line in judgement.remarks]
    note = (
        "kept: of what the original gives, or how near the release is beside one half of the original to the "
        "other. bare list: every variant of the original once, which has learnt nothing and protects nobody."
    )
    return Group(table, *words, Text(note, style="dim"))


def _lines(result: Comparison, names: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    """What is printed of each measure: its numbers with their words, or between which numbers it lies."""
    for line in result.lines(names):
        whence = f" (added by {result.added[line.measure]})" if line.measure in result.added else ""
        hours = line.quantity.form == "hours" and line.value is not None
        shown = lasting(line.value) if hours and line.value is not None else line.shown
        yield line.quantity.title, shown, line.meaning + whence

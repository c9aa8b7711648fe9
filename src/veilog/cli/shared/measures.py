"""Comparisons and attack tests in the terminal. Nothing here computes anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._language import count_phrase, share_in_percent
from veilog._notebook import figure
from veilog.charts import lasting, times_view
from veilog.cli.shared.releases import pair
from veilog.cli.shared.tables import key_values, plain_table
from veilog.measures import Comparison
from veilog.measures.disclosure import RiskResult
from veilog.measures.disclosure.measure import EXPLAINED
from veilog.measures.singling_out.identification import Exposure
from veilog.measures.singling_out.inference import Inference
from veilog.measures.singling_out.linkage import Linkability
from veilog.measures.singling_out.measure import SinglingOut
from veilog.measures.singling_out.rates import Control, Rate, Success
from veilog.measures.singling_out.words import (
    found_sentence,
    inferred_in_words,
    knowledge_sentence,
    like_who,
    linked_in_words,
    own_path_sentence,
)
from veilog.measures.use_cases import Assessment, Grade

if TYPE_CHECKING:
    from veilog.audits.bounds import AuditResult

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
    table = plain_table("measure", "value", "", right=("value",), dim=("measure",))
    for name, value, meaning in _lines(result, names):
        table.add_row(escape(name), figure(value), escape(meaning))
    return table


_GRADES: Mapping[Grade, str] = {"good": "green", "limited": "yellow", "poor": "red", "not judged": "dim"}


_FIRST = ("relative_log_similarity", "dfg_moved", "keep_real", "size_ratio", "fitness", "precision", "case_durations")
"""Measures shown without --details, with those that other packages add."""


def comparison_view(result: Comparison) -> Group:
    """Return the short output of ``veilog compare``.

    It has the verdict, what attacks on people gained, the clearest measures, and the chosen use cases.
    """
    use_cases = [use_cases_table(result.use_cases)] if result.use_cases else []
    people = attack_lines(result.linkability, result.inference)
    return Group(Text(result.verdict, style="bold"), *people, _measures(result, (*_FIRST, *result.added)), *use_cases)


def comparison_table(result: Comparison) -> Group:
    """Return every measure, and the verdict in words."""
    table = _measures(result, (*_PRINTED, *result.added))
    missing = [Text(f"{name}: {reason}", style="dim") for name, reason in sorted(result.not_computed.items())]
    times = times_view(result.case_durations, result.active_cases)
    risk = attack_tables(result.singling_out, result.linkability, result.inference)
    use_cases = [use_cases_table(result.use_cases)] if result.use_cases else []
    people = attack_lines(result.linkability, result.inference)
    return Group(table, *risk, Text(result.verdict, style="bold"), *people, *missing, *use_cases, times)


def rules_table(rules: Sequence[Mapping[str, Any]]) -> Table:
    """Return the share of the cases that obey each rule, first for all of them."""
    table = plain_table("rule", "original", "release", right=("original", "release"), title="cases that obey the rules")
    for row in rules:
        shares = ("not known" if of is None else share_in_percent(of) for of in (row["original"], row["released"]))
        table.add_row(escape(row["rule"] or "all rules"), *shares)
    return table


def use_cases_table(use_cases: Mapping[str, Assessment]) -> Group:
    """Return the use cases: a sentence for each, and its numbers with references."""
    numbers = ("release", "original", "another sample", "unprotected", "utility")
    table = plain_table("", *numbers, "", right=numbers, dim=("",), title="use cases")
    for judgement in use_cases.values():
        for judged in judgement.aspects.values():
            if judged.value is None:
                continue
            found = (judged.value, judged.original, judged.sample, judged.unprotected)
            name = judged.aspect.heading + (f", {judged.aspect.unit}" if judged.aspect.unit else "")
            share = judged.share
            bar = Text("#" * round(20 * min(share or 0.0, 1.0)), style=_GRADES[judged.grade])
            kept = "" if share is None else f"{100 * share:.0f} %"
            table.add_row(escape(name), *(figure(number) for number in found), kept, bar)
    words = []
    for judgement in use_cases.values():
        words.append(Text(judgement.verdict, style=_GRADES[judgement.grade]))
        words += [Text(f"  {line}", style="dim") for line in judgement.remarks]
    note = (
        "utility: share of the value of the original; for a distance, that of two halves of the original divided by "
        "that of "
        "the release. unprotected: every variant of the original once, a baseline without any protection."
    )
    return Group(table, *words, Text(note, style="dim"))


def _lines(result: Comparison, names: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    """Yield the numbers of each measure with their words, or the bounds of its value."""
    for line in result.lines(names):
        whence = f" (added by {result.added[line.measure]})" if line.measure in result.added else ""
        hours = line.quantity.form == "hours" and line.value is not None
        shown = lasting(line.value) if hours and line.value is not None else line.shown
        yield line.quantity.title, shown, line.meaning + whence


_KNOWN: dict[str, str] = {"set": "which", "multiset": "which and how often", "sequence": "which and in which order"}


_CONTROLS: dict[Control, str] = {"others' cases": "others' cases", "held out": "people held out"}


_SHOWN = 20
"""Number of cases that are named on the screen; the JSON names all."""


def unique_line(row: Mapping[str, Any]) -> Text:
    """Return the cases that knowledge of one kind and size singles out."""
    cases: list[str] = row["cases"]
    more = f" and {len(cases) - _SHOWN:,} more, which --json lists" if len(cases) > _SHOWN else ""
    known = f"{count_phrase(row['size'], 'activity', 'activities')} ({_KNOWN[row['background']]})"
    return Text(f"{known} may single out (confidential): {', '.join(cases[:_SHOWN])}{more}", style="yellow")


def risk_lines(exposed: Exposure | None, results: Iterable[RiskResult], time: str | None = None) -> Group:
    """Return in sentences who is exposed in a log.

    They have the exact share of cases with a variant of their own, and those whom chance knowledge finds. An example
    follows, and at last the effect of the most revealing activities, with their ``time`` if the attacker knows it to a
    unit.
    """
    lines = []
    if exposed is not None:
        persons = exposed.person is not None
        own = own_path_sentence(exposed.people, exposed.alone, persons=persons)
        lines.append(Text(own, style="bold red" if exposed.alone else "bold green"))
        parts = ([row for row in exposed.results if row.with_start is known] for known in (False, True))
        lines += [Text(found_sentence(rows, persons=persons)) for rows in parts if rows]
        if exposed.example is not None:
            lines.append(Text(like_who(exposed.example, persons=persons) + " (Confidential.)", style="yellow"))
        if exposed.without_start is not None:
            lines.append(Text(f"The effect of the day was not measured: {exposed.without_start}", style="dim"))
    told = [Text(sentence) for sentence in _activity_sentences([r for r in results if r.case_disclosure is not None])]
    if told:
        counted_by = ", by cases" if exposed is not None and exposed.person is not None else ""
        timed = "" if time is None else f" and their times in {time}"
        lines += [Text(f"With the most revealing activities{timed} of a case{counted_by}:", style="dim"), *told]
    return Group(*lines)


def _activity_sentences(results: Sequence[RiskResult]) -> Iterator[str]:
    """Yield a sentence on the most revealing activities for each distinct effect."""
    outcomes: dict[str, list[tuple[int, str]]] = {}
    for found in results:
        outcomes.setdefault(found.background, []).append((found.size, _outcome(found)))
    alike: dict[tuple[tuple[int, str], ...], list[str]] = {}
    for background, done in outcomes.items():
        alike.setdefault(tuple(done), []).append(_KNOWN[background])
    for shared, known in alike.items():
        yield knowledge_sentence("An attacker who knows", f" ({'; '.join(known)})", shared)


def _outcome(found: RiskResult) -> str:
    """Return the effect of some knowledge; a lower bound if not all of it was tried."""
    if not found.exact and found.unique == 0:
        return f"singles out no case in {found.sampled or 0:,} tested combinations"
    if not found.unique:
        fewest = round(1 / found.worst_case) if found.worst_case else 2
        return f"singles out no case: {fewest:,} or more cases always fit"
    least = "" if found.exact else "at least "
    return f"may single out {least}{found.unique:,} of {count_phrase(found.cases, 'case')}"


def attack_lines(linked: Linkability | None, inferred: Inference | None, *, published: bool = False) -> list[Text]:
    """Return two sentences each on linking and inferring.

    ``published`` is for a log without a release.
    """
    said = [] if linked is None else [linked_in_words(linked, published=published)]
    said += [] if inferred is None else [inferred_in_words(inferred, published=published)]
    return [Text(sentence) for sentence in said]


def attack_tables(singled: SinglingOut | None, linked: Linkability | None, inferred: Inference | None) -> list[Group]:
    """Return the attack tests before and after, a table for each attack."""
    tables = [] if singled is None else [_singling_out_group(singled)]
    if linked is not None:
        rows = [
            (
                f"{r.size} and {'as many others' if r.other_list == 'activities' else 'attributes'}"
                + (", two releases" if r.releases > 1 else ""),
                f"{r.people:,}",
                r.linked,
                r.beyond,
                r.more,
            )
            for r in linked.results
        ]
        note = (
            "Two lists of so many people, the first activities of each in the one, the last ones or attributes in the "
            "other; by chance one match in so many is right."
        )
        tables.append(_attack_group("linking", "events listed", linked.control, rows, note))
    if inferred is not None:
        rows = [
            (
                f"{r.secret}, knowing {r.size}" + (f" and {r.attributes} attributes" if r.attributes else ""),
                f"{r.people:,}",
                r.guessed,
                r.beyond,
                r.more,
            )
            for r in inferred.results
        ]
        note = (
            "The first activities are known, and of an attribute also the others; the most frequent value is guessed."
        )
        tables.append(_attack_group("inferring", "secret", inferred.control, rows, note))
    return tables


def _attack_group(
    title: str, known: str, control: Control, rows: Iterable[tuple[str, str, Success, Rate, bool]], note: str
) -> Group:
    numbers = ("people", "original", "release", _CONTROLS[control], "release beyond these")
    table = plain_table(known, *numbers, right=numbers, title=title)
    for name, people, success, beyond, more in rows:
        rates = (_rate(rate) for rate in (success.original, success.released, success.baseline))
        table.add_row(escape(name), people, *rates, _gain_text(beyond, more))
    return Group(table, Text(note, style="dim"))


def _singling_out_group(result: SinglingOut) -> Group:
    """Return singling out before and after; a release that reveals more is red."""
    names = (
        "events known",
        "attack succeeds",
        "original",
        "release",
        _CONTROLS[result.control],
        "release beyond these",
    )
    table = plain_table(*names, right=names, dim=("attack succeeds",), title="risk before and after")
    for row in result.results:
        known = f"{row.size} and the start" if row.with_start else str(row.size)
        g, s = row.guessed, row.singled_out
        rates = (_rate(r) for r in (g.original, g.released, g.baseline))
        table.add_row(known, "guessed", *rates, _gain_text(row.beyond, row.more))
        table.add_row("", "singled out", *(_rate(r) for r in (s.original, s.released, s.baseline)), "")
    drawn = max((row.attacks for row in result.results if not row.exact), default=0)
    how = f"at most {drawn:,} people, drawn for each size" if drawn else "all people, with all possible knowledge"
    words = (
        "guessed: the most frequent trace that fits what is known is the person's; singled out: one case alone fits, "
        f"and it has the person's trace. Attacked: {how}; start known to {result.hours:g} hours. In brackets: 95 % "
        "intervals, in the last column 99.5 %."
    )
    notes = [words] if result.without_start is None else [words, f"start not known: {result.without_start}"]
    return Group(table, *(Text(note, style="dim") for note in notes))


def _gain_text(gain: Rate, more: bool) -> Text:
    return Text(f"{100 * gain.value:+.1f} %" + _reach(gain), style="bold red" if more else "")


def _rate(rate: Rate) -> str:
    return f"{100 * rate.value:.1f} %" + _reach(rate)


def _reach(rate: Rate) -> str:
    return "" if rate.low == rate.high else f" [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


def risk_table(results: Iterable[RiskResult]) -> Group:
    """Return disclosure for each kind and size of background knowledge.

    A bar is as long as the case disclosure.
    """
    results = list(results)
    attribute = any(r.attribute_disclosure is not None for r in results)
    told = ("attribute disclosure",) if attribute else ()
    numbers = ("size", "candidates", "case disclosure", "trace disclosure", *told, "worst case", "unique")
    table = plain_table("background", *numbers[:3], "", *numbers[3:], right=numbers)
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
            *((figure(r.attribute_disclosure),) if attribute else ()),
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


# Audits in the terminal. Nothing here computes anything.


def audit_view(result: AuditResult) -> Group:
    """Return claimed, derived and audited epsilon side by side, with the attack."""
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
        + _whitebox_rows(result)
        + [
            (f"beyond it ({found.breaks})", f"{found.attack}: at least {found.audited_epsilon:.4g}")
            for found in result.beyond
        ]
    )
    names = ("attack tried", "seemed to show")
    tried = plain_table(*names, right=names[1:], dim=names)
    for attack, seemed in sorted(result.tried, key=lambda found: -found[1])[:8]:
        tried.add_row(escape(attack), f"{seemed:.2f}")
    fine = result.audited_epsilon <= result.claim and not (result.white_box and result.white_box.faults)
    return Group(table, Text(result.verdict, style="bold green" if fine else "bold red"), tried)


def _whitebox_rows(result: AuditResult) -> list[tuple[str, str]]:
    """Return the findings of a white-box audit other than its epsilon."""
    white = result.white_box
    if white is None:
        return []
    return [
        ("which is", f"at least {white.factor:.0%} of what was charged for: {'; '.join(white.questions)}"),
        ("without the shape of the noise", f"at least {white.free_epsilon:.4g}"),
        *(("fault", str(fault)) for fault in white.faults),
    ]

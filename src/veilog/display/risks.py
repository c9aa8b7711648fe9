"""Who is exposed in a log, and what attacks on people achieve with a release of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from veilog._language import counted
from veilog._notebook import figure
from veilog.measures.disclosure import RiskResult
from veilog.measures.disclosure.measure import EXPLAINED
from veilog.measures.singling_out.finding import Exposure
from veilog.measures.singling_out.inferring import Inference
from veilog.measures.singling_out.linking import Linkability
from veilog.measures.singling_out.measure import SinglingOut
from veilog.measures.singling_out.rates import Control, Rate, Success
from veilog.measures.singling_out.words import (
    found_in_words,
    inferred_in_words,
    like_who,
    linked_in_words,
    own_path_in_words,
    said_once,
)

_KNOWN: dict[str, str] = {"set": "which", "multiset": "which and how often", "sequence": "which and in which order"}
_CONTROLS: dict[Control, str] = {"others' cases": "others' cases", "held out": "people held out"}


_SHOWN = 20
"""Names of cases on the screen; the JSON has all."""


def unique_line(row: Mapping[str, Any]) -> Text:
    """Name the cases that knowledge of one kind and size singles out."""
    cases: list[str] = row["cases"]
    more = f" and {len(cases) - _SHOWN:,} more, which --json lists" if len(cases) > _SHOWN else ""
    known = f"{counted(row['size'], 'activity', 'activities')} ({_KNOWN[row['background']]})"
    return Text(f"{known} may single out (for you only): {', '.join(cases[:_SHOWN])}{more}", style="yellow")


def risk_lines(exposed: Exposure | None, results: Iterable[RiskResult], time: str | None = None) -> Group:
    """Who is exposed, in sentences: the exact share of cases with a path of their own, whom chance knowledge finds, an
    example, and at last what the most telling activities do, with their ``time`` where that is known to a unit."""
    lines = []
    if exposed is not None:
        persons = exposed.person is not None
        own = own_path_in_words(exposed.people, exposed.alone, persons=persons)
        lines.append(Text(own, style="bold red" if exposed.alone else "bold green"))
        parts = ([row for row in exposed.results if row.with_start is known] for known in (False, True))
        lines += [Text(found_in_words(rows, persons=persons)) for rows in parts if rows]
        if exposed.example is not None:
            lines.append(Text(like_who(exposed.example, persons=persons) + " (For you only.)", style="yellow"))
        if exposed.without_start is not None:
            lines.append(Text(f"What the day adds is not measured: {exposed.without_start}", style="dim"))
    told = [Text(sentence) for sentence in _told([r for r in results if r.case_disclosure is not None])]
    if told:
        counted_by = ", by cases" if exposed is not None and exposed.person is not None else ""
        timed = "" if time is None else f" and their times in {time}"
        lines += [Text(f"With the activities{timed} that tell most of a case{counted_by}:", style="dim"), *told]
    return Group(*lines)


def _told(results: Sequence[RiskResult]) -> Iterator[str]:
    """What the most telling activities do: a sentence for all kinds of knowledge that do the same."""
    outcomes: dict[str, list[tuple[int, str]]] = {}
    for found in results:
        outcomes.setdefault(found.background, []).append((found.size, _outcome(found)))
    alike: dict[tuple[tuple[int, str], ...], list[str]] = {}
    for background, done in outcomes.items():
        alike.setdefault(tuple(done), []).append(_KNOWN[background])
    for shared, known in alike.items():
        yield said_once("Whoever knows", f" ({'; '.join(known)})", shared)


def _outcome(found: RiskResult) -> str:
    """What knowledge of one kind and size does; where not all that can be known was tried, no less than was seen."""
    if not found.exact and found.unique == 0:
        return f"singles out nobody by any of the {found.sampled or 0:,} things tried that can be known"
    if not found.unique:
        fewest = round(1 / found.worst_case) if found.worst_case else 2
        return f"singles out nobody: {fewest:,} cases or more fit, whatever these are"
    least = "" if found.exact else "at least "
    return f"may single out {least}{found.unique:,} of {counted(found.cases, 'case')}"


def attack_lines(linked: Linkability | None, inferred: Inference | None, *, published: bool = False) -> list[Text]:
    """What linking and inferring achieved, each in two sentences; ``published`` where no release was made."""
    said = [] if linked is None else [linked_in_words(linked, published=published)]
    said += [] if inferred is None else [inferred_in_words(inferred, published=published)]
    return [Text(sentence) for sentence in said]


def attack_tables(singled: SinglingOut | None, linked: Linkability | None, inferred: Inference | None) -> list[Group]:
    """Risk before and after, a table an attack."""
    tables = [] if singled is None else [_singled(singled)]
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
        tables.append(_attacked("linking", "events listed", linked.control, rows, note))
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
        tables.append(_attacked("inferring", "secret", inferred.control, rows, note))
    return tables


def _attacked(
    title: str, known: str, control: Control, rows: Iterable[tuple[str, str, Success, Rate, bool]], note: str
) -> Group:
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for column in (known, "people", "original", "release", _CONTROLS[control], "release beyond these"):
        table.add_column(column, justify="left" if column == known else "right")
    for name, people, success, beyond, more in rows:
        rates = (_rate(rate) for rate in (success.original, success.released, success.baseline))
        table.add_row(escape(name), people, *rates, _beyond(beyond, more))
    return Group(table, Text(note, style="dim"))


def _singled(result: SinglingOut) -> Group:
    """Risk before and after, for each kind of knowledge; the judged difference in red where it is one."""
    table = Table(box=None, padding=(0, 2, 0, 0), title="risk before and after", title_justify="left")
    control = _CONTROLS[result.control]
    for column in ("events known", "attack succeeds", "original", "release", control, "release beyond these"):
        table.add_column(column, style="dim" if column == "attack succeeds" else "", justify="right")
    for row in result.results:
        known = f"{row.size} and the start" if row.with_start else str(row.size)
        g, s = row.guessed, row.singled_out
        rates = (_rate(r) for r in (g.original, g.released, g.baseline))
        table.add_row(known, "guessed", *rates, _beyond(row.beyond, row.more))
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


def _beyond(gain: Rate, more: bool) -> Text:
    return Text(f"{100 * gain.value:+.1f} %" + _reach(gain), style="bold red" if more else "")


def _rate(rate: Rate) -> str:
    return f"{100 * rate.value:.1f} %" + _reach(rate)


def _reach(rate: Rate) -> str:
    return "" if rate.low == rate.high else f" [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


def risk_table(results: Iterable[RiskResult]) -> Group:
    """Disclosure for each kind and size of background knowledge, with a bar as long as the case disclosure."""
    results = list(results)
    attribute = any(r.attribute_disclosure is not None for r in results)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in (
        "background",
        "size",
        "candidates",
        "case disclosure",
        "",
        "trace disclosure",
        *(("attribute disclosure",) if attribute else ()),
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

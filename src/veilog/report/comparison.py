"""Comparisons in reports, for the data owner: attack tests, attributes, use cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from veilog._language import format_number, gettext, gettext_noop, ngettext, percent, pgettext, quoted
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, NESTED, START, TIMESTAMP, EventLog
from veilog.logs.variants import Variants
from veilog.logs.xes.columns import legal_keys
from veilog.measures import Pair, Progress
from veilog.measures.disclosure import RiskResult
from veilog.measures.singling_out.inference import END, Inference, Inferred
from veilog.measures.singling_out.linkage import Linkability, Linked
from veilog.measures.singling_out.measure import SinglingOut
from veilog.measures.singling_out.rates import Control, Rate, Success
from veilog.measures.singling_out.words import (
    begun,
    inferred_in_words,
    linked_in_words,
    person_knowledge,
    result_sentence,
)
from veilog.measures.use_cases import Assessment, Grade, MetricResult, UseCaseOptions, judge
from veilog.report.explorer import clean, short
from veilog.report.words import bind_numbers, share_of

CONTROLS: dict[Control, str] = {
    "others' cases": gettext_noop("others' cases alone"),
    "held out": gettext_noop("people held out"),
}


@dataclass(frozen=True)
class AttackRow:
    """An attacker's knowledge, and how often it is enough."""

    known: str
    people: int
    original: str
    released: str
    control: str
    gain: str
    """Gain in percentage points, with its interval; empty if it is not judged."""
    more: bool
    """True if the release reveals more than the control."""


@dataclass(frozen=True)
class AttackShown:
    """One attack: its targets, its control, and its results."""

    title: str
    said: str
    control: str
    rows: tuple[AttackRow, ...]

    @property
    def judged(self) -> bool:
        """True if the gain from the release is judged."""
        return any(row.gain for row in self.rows)


def attacks_shown(
    singled: SinglingOut | None, linked: Linkability | None, inferred: Inference | None
) -> tuple[AttackShown, ...]:
    """Return the attacks that were tried, by the kind of their risk."""
    shown = []
    if singled is not None:
        found = singled.results
        alone = [_row(person_knowledge(k), k.people, k.singled_out, None, more=False) for k in found]
        rest = [_row(person_knowledge(k), k.people, k.guessed, k.beyond, more=k.more) for k in found]
        control = gettext(CONTROLS[singled.control])
        told = gettext("Exactly one case fits the known facts, and it has the person's whole variant.")
        shown.append(AttackShown(gettext("Singling out"), told, control, tuple(alone)))
        shown.append(AttackShown(gettext("Inference: the variant"), result_sentence(singled), control, tuple(rest)))
    if linked is not None:
        pairs = [_row(_lists(k), k.people, k.linked, k.beyond, more=k.more) for k in linked.results]
        control = gettext(CONTROLS[linked.control])
        shown.append(AttackShown(gettext("Linkability"), linked_in_words(linked), control, tuple(pairs)))
    if inferred is not None:
        ends = [
            _row(
                gettext("{known}; guessed: {secret}", known=begun(k), secret=_secret(k)),
                k.people,
                k.guessed,
                k.beyond,
                more=k.more,
            )
            for k in inferred.results
        ]
        title = gettext("Inference: how a case ends, and attributes")
        control = gettext(CONTROLS[inferred.control])
        shown.append(AttackShown(title, inferred_in_words(inferred), control, tuple(ends)))
    return tuple(shown)


def _lists(row: Linked) -> str:
    if row.other_list == "activities":
        both = ngettext(
            "lists with the first activity and with the last activity",
            "lists with the first {n} activities and with the last {n} activities",
            row.size,
        )
    else:
        both = ngettext(
            "lists with the first activity and with attributes",
            "lists with the first {n} activities and with attributes",
            row.size,
        )
    return gettext("{lists} (two releases)", lists=both) if row.releases > 1 else both


def _secret(row: Inferred) -> str:
    return gettext("last activity") if row.secret == END else row.secret


def unique(found: RiskResult) -> str:
    """Return in words how many cases some knowledge singles out.

    If not all of it was tried and none did, the words state this.
    """
    if not found.exact and not found.unique:
        return gettext("none of those tried")
    if found.exact:
        return gettext("{n} of {cases}", n=found.unique, cases=found.cases)
    return gettext("at least {n} of {cases}", n=found.unique, cases=found.cases)


def knowledge_text(found: RiskResult) -> str:
    """Return the kind of knowledge, and its number of activities."""
    if found.background == "set":
        return gettext("set of {n}", n=found.size)
    return gettext("sequence of {n}", n=found.size)


def _row(known: str, people: int, success: Success, gain: Rate | None, *, more: bool) -> AttackRow:
    return AttackRow(
        known,
        people,
        rate_in_words(success.original),
        rate_in_words(success.released),
        rate_in_words(success.baseline),
        "" if gain is None else _format_signed(gain),
        more,
    )


def rate_in_words(rate: Rate) -> str:
    """Return a share with its interval."""
    value = bind_numbers(percent(_format_percent(rate.value)))
    if rate.high - rate.low < 1e-9:
        return value
    low, high = format_number(_format_percent(rate.low)), percent(_format_percent(rate.high))
    return _format_interval(value, low, high)


def _format_percent(share: float) -> str:
    """Return a share in percent, to three digits; below a thousandth of one it is 0."""
    return f"{100 * share:.3g}" if share >= 1e-5 else "0"


def _format_signed(rate: Rate) -> str:
    return _format_interval(*(format_number(f"{100 * share:+.2f}") for share in (rate.value, rate.low, rate.high)))


def _format_interval(value: str, low: str, high: str) -> str:
    """Return a number with its interval, in which no line breaks."""
    number, bracket, interval = gettext("{value} ({low} to {high})", value=value, low=low, high=high).partition("(")
    return bind_numbers(number.rstrip()) + " " + bracket + bind_numbers(interval).replace(" ", "\u00a0")


# Attributes of a release as rows of a table: their values, for the data owner with those of the original.

OF_EVERY_LOG = frozenset({ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, NESTED, TIMESTAMP})
"""Columns that are no attributes."""
_MOST = 40
"""Number of attributes shown for cases, and for events."""
_OFTEN = 3
"""Number of values shown for an attribute with words."""


@dataclass(frozen=True)
class AttributeShown:
    """One attribute, of cases or of events, and its values in words."""

    name: str
    of: str
    released: str
    original: str
    """Values in the original; empty if it is not shown, or has no such attribute."""


def attributes_shown(released: EventLog | None, original: EventLog | None) -> tuple[AttributeShown, ...]:
    """Return the attributes of a release, those of its cases first."""
    if released is None:
        return ()
    return (
        *_attribute_rows(
            released.cases, None if original is None else original.cases, pgettext("attribute of", "cases")
        ),
        *_attribute_rows(
            released.events, None if original is None else original.events, pgettext("attribute of", "events")
        ),
    )


def _attribute_rows(released: pa.Table, original: pa.Table | None, of: str) -> list[AttributeShown]:
    names = [name for name in released.column_names if name not in OF_EVERY_LOG and not _is_start(released, name)]
    before = {} if original is None else _columns_by_name(original)
    return [
        AttributeShown(
            short(name, 80),
            of,
            _value_summary(released.column(name)),
            _value_summary(before[name]) if name in before else "",
        )
        for name in names[:_MOST]
    ]


def _is_start(table: pa.Table, name: str) -> bool:
    """Return True if a column has the times at which events began."""
    return name == START and pa.types.is_temporal(table.column(name).type)


def _columns_by_name(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns by their names, and by those that they have in a file."""
    written = legal_keys(table.slice(0, 0)).column_names
    return {name: table.column(i) for names in (written, table.column_names) for i, name in enumerate(names)}


def _value_summary(column: pa.ChunkedArray) -> str:
    """Return an attribute's values: the range of numbers and dates, or frequent ones."""
    known = column.drop_null()
    if not len(known):
        return gettext("no value")
    kind = known.type
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    said = _range(known, numbers) if numbers or pa.types.is_temporal(kind) else _frequent_values(known)
    if len(known) == len(column):
        return said
    return gettext("{values}; unknown: {share}", values=said, share=_share(column.null_count / len(column)))


def _range(known: pa.ChunkedArray, numbers: bool) -> str:
    whole = known.combine_chunks()
    order = pc.array_sort_indices(whole)
    found = [whole[order[i].as_py()].as_py() for i in (0, (len(order) - 1) // 2, len(order) - 1)]
    low, middle, high = (format_number(f"{value:,.6g}") if numbers else clean(str(value)[:16]) for value in found)
    return gettext("{low} to {high}, half up to {middle}", low=low, middle=middle, high=high)


def _frequent_values(known: pa.ChunkedArray) -> str:
    counts = {str(one["values"]): one["counts"] for one in pc.value_counts(known.cast(pa.string())).to_pylist()}
    first = sorted(counts, key=lambda value: (-counts[value], value))[:_OFTEN]
    named = ", ".join(f"{quoted(short(value, 40))} ({_share(counts[value] / len(known))})" for value in first)
    if len(counts) <= _OFTEN:
        return named
    return ngettext("{named} and {n} more value", "{named} and {n} more values", len(counts) - _OFTEN, named=named)


def _share(part: float) -> str:
    return share_of(f"{100 * part:.3g}")


# Use cases of a release on a page: a sentence for each, and its numbers in words.

ALWAYS = ("discovery", "conformance")
"""Use cases of every page; prediction takes longest and needs ``veilog compare --use-cases``."""


@dataclass(frozen=True)
class Number:
    """One number of a use case: of the release, the original, and its halves.

    The latter compares one half of the original with the other.
    """

    title: str
    released: str
    original: str
    half: str
    kept: str
    bar: float
    """Percentage of utility for the bar, at most 100."""


@dataclass(frozen=True)
class UseCaseShown:
    """One use case on a page."""

    grade: Grade
    verdict: str
    numbers: tuple[Number, ...]
    remark: str = ""
    title: str = ""


def judged_here(
    original: EventLog | Variants, released: EventLog | Variants, progress: Progress, person: str | bool = True
) -> Mapping[str, Assessment]:
    """Judge the use cases of every page, and those that the release has data for.

    The latter are times, attributes and persons. ``person`` is the column of persons
    (:class:`veilog.measures.UseCaseOptions`).
    """
    names, lacking = list(ALWAYS), None
    if not isinstance(original, Variants) and not isinstance(released, Variants):
        from veilog.measures.persons import column_of, has_column  # tables are loaded when there are any

        names += ["performance"]
        column = column_of(original, person)
        names += ["returns"] if column is not None and has_column(released, column) else []
        more = {*released.events.column_names, *released.cases.column_names} - OF_EVERY_LOG - {column}
        if more:
            names += ["attributes"]
        else:
            from veilog.measures.use_cases.attributes import no_attributes  # not where attributes are judged anyway

            lacking = no_attributes(original, released, person)
    found = dict(judge(Pair(original, released, progress), names, UseCaseOptions(person=person)))
    return found if lacking is None else {**found, "attributes": lacking}


def shown(use_cases: Iterable[Assessment]) -> tuple[UseCaseShown, ...]:
    """Return the use cases in words, with a reason for those that cannot be judged."""
    return tuple(
        UseCaseShown(
            one.grade,
            one.verdict,
            tuple(_number(j) for j in one.aspects.values() if j.value is not None),
            " ".join(one.remarks),
            gettext(one.use_case.title),
        )
        for one in use_cases
    )


def _number(judged: MetricResult) -> Number:
    share = judged.share
    return Number(
        title=judged.aspect.heading + (f", {gettext(judged.aspect.unit)}" if judged.aspect.unit else ""),
        released=_figure(judged.value),
        original=_figure(judged.original),
        half=_figure(judged.sample),
        kept="–" if share is None else percent(f"{100 * share:.0f}"),
        bar=round(100 * min(share or 0.0, 1.0), 1),
    )


def _figure(value: float | None) -> str:
    if value is None:
        return "–"
    return format_number(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")

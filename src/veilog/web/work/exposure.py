"""Who could be found in a log, and what it looks like: exact numbers of the raw log, for its owner's eyes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog.charts import lasting
from veilog.errors import VeilogError
from veilog.ledger.ledger import fingerprint
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, EventLog
from veilog.logs.facts import unit_columns
from veilog.logs.variants import Variants
from veilog.measures.disclosure import BACKGROUNDS, risk
from veilog.measures.durations import case_durations, spans
from veilog.measures.singling_out import singling_out
from veilog.report.explorer import Chevron, clean, explorer, short
from veilog.report.flow_map import arranged, drawn, steps_of
from veilog.web.jobs.read_log import (
    Disclosure,
    Example,
    Found,
    Lengths,
    Measured,
    Statistics,
    UnitColumn,
    VariantRow,
    VariantsShown,
)
from veilog.web.jobs.worker import Progress

__all__ = ["measured", "shown_rows"]

ROWS = 25
"""Variants on a page: as many as keep it light even where every name is as long as it may be."""
_NAME = 120
_LABELS, _LABEL = 300, 80
"""How many labels of the log a page shows, and how much of one."""
_UNITS = 60
"""How many columns may be offered to tell whose a case is."""
_WORK = 5e7
_SAMPLES = 300
_SIZES = (1, 2, 3, 4, 5, 6)
_MANY = 20_000
"""Variants beyond which exposure is measured for one known activity only; more takes too long to wait for."""
_KNOWN_EVENTS = (1, 2, 3, 5, 10)
_MOST_LABELS = 1_500
"""Activities beyond which no example of two is looked for."""
_PIECE = 4_096


def shown_rows(variants: Variants, original: Variants | None = None) -> VariantsShown:
    """The most frequent variants as coloured chevrons."""
    view = explorer(variants, original)
    rows = view.rows[:ROWS]
    return VariantsShown(
        variants=view.variants,
        covered=min(1.0, sum(row.released_share for row in rows)),
        legend=tuple((c.text, c.colour) for c in view.legend[:24]),
        more_activities=view.more_activities + max(0, len(view.legend) - 24),
        rows=tuple(
            VariantRow(
                chevrons=tuple(_chevron(c) for c in r.chevrons),
                left_out=r.left_out,
                released=r.released,
                original=r.original,
                released_share=r.released_share,
                original_share=r.original_share,
            )
            for r in rows
        ),
    )


def _chevron(c: Chevron) -> tuple[str, str, int, int]:
    return c.text, "" if c.title == c.text else short(c.title, 80), c.colour, c.times


def measured(log: EventLog, progress: Progress) -> Measured:
    """Return statistics and exposure of a log that was read."""
    variants = log.variants
    few = len(variants) <= _MANY
    results = risk(
        variants, BACKGROUNDS, _SIZES if few else (1,), work_limit=_WORK, samples=_SAMPLES, progress=progress
    )
    steps = steps_of(variants)
    return Measured(
        statistics=_statistics(log),
        explorer=shown_rows(variants),
        disclosure=tuple(map(Disclosure.of, results)),
        singled_out=_singled_out(log) if few else (),
        map=drawn(steps, arranged([steps])),
        durations=_durations(log),
        labels=tuple(short(label, _LABEL) for label in variants.labels[:_LABELS]),
        more_labels=max(0, len(variants.labels) - _LABELS),
        units=_units(log),
        case_attributes=_attributes(log.cases),
        event_attributes=_attributes(log.events),
        fingerprint=fingerprint(variants).hex(),
        alone=int(((variants.counts == 1) & (variants.lengths > 0)).sum()),
        example=_example(log),
    )


def _example(log: EventLog) -> Example | None:
    """A case that is the only one with two activities, those that most cases have beside it: whoever knows these two
    things of somebody finds all the rest. None where any two are had by several."""
    variants = log.variants
    labels = len(variants.labels)
    if not 2 <= labels <= _MOST_LABELS or not len(variants):
        return None
    owner = np.repeat(np.arange(len(variants)), variants.lengths)
    together = np.zeros((labels, labels), dtype=np.int64)
    for start in range(0, len(variants), _PIECE):
        inside = (owner >= start) & (owner < start + _PIECE)
        has = np.zeros((min(_PIECE, len(variants) - start), labels), dtype=np.int64)
        has[owner[inside] - start, variants.codes[inside]] = 1
        together += (has * variants.counts[start : start + _PIECE, None]).T @ has
    first, second = np.nonzero(np.triu(together == 1, 1))
    if not len(first):
        return None
    often = together.diagonal()
    best = int(np.argmax(np.minimum(often[first], often[second])))
    names = [variants.labels[int(side[best])] for side in (first, second)]
    return Example(short(names[0], _LABEL), short(names[1], _LABEL), _day_of(log, *names))


def _day_of(log: EventLog, *names: str) -> str | None:
    """The day on which the one case starts that has these activities, in ISO format."""
    events = log.events
    activity = pc.cast(events.column(ACTIVITY), pa.string())
    cases = [set(events.column(CASE_INDEX).filter(pc.equal(activity, name)).to_pylist()) for name in names]
    (case,) = set.intersection(*cases)
    start = pc.min(events.column(TIMESTAMP).filter(pc.equal(events.column(CASE_INDEX), case))).as_py()
    return None if start is None else start.date().isoformat()


def _statistics(log: EventLog) -> Statistics:
    s = log.statistics
    lengths = Lengths(s.length_median, s.length_max)
    return Statistics(s.cases, s.events, s.activities, s.variants, lengths, s.start, s.end)


def _attributes(table: pa.Table) -> tuple[str, ...]:
    reserved = (ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX, NESTED)
    return tuple(clean(name) for name in table.column_names if name not in reserved)[:200]


def _units(log: EventLog) -> tuple[UnitColumn, ...]:
    """The columns that may tell whose a case is, and whether cases seem to be people's by them."""
    whole = [column for column in unit_columns(log) if column.cases == log.cases.num_rows]
    return tuple(UnitColumn(short(c.column, _NAME), c.values, c.most, c.likely) for c in whole[:_UNITS])


def _singled_out(log: EventLog) -> tuple[Found, ...]:
    """How often somebody who happens to know a few events of a person finds that person's case in the log itself, with
    the same attack that later compares the log with a release."""
    try:
        found = singling_out(log, log, sizes=_KNOWN_EVENTS)
    except VeilogError:  # nobody has more than one event
        return ()
    return tuple(
        Found(
            events=k.size,
            with_start=k.with_start,
            people=k.people,
            singled_out=k.singled_out.original.value,
            guessed=k.guessed.original.value,
            between=(k.singled_out.original.low, k.singled_out.original.high),
        )
        for k in found.results
    )


def _durations(log: EventLog) -> tuple[tuple[str, str], ...]:
    try:
        both = spans(log)
    except VeilogError:
        return ()
    found = case_durations(both, both).original
    return (
        ("shortest", lasting(found.minimum)),
        ("half up to", lasting(found.median)),
        ("longest", lasting(found.maximum)),
    )

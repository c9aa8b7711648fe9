"""Who could be found in a log, and what it looks like: exact numbers of the raw log, for its owner's eyes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from veilog.errors import ParameterError, VeilogError
from veilog.ledger.store import fingerprint
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, EventLog
from veilog.logs.facts import PersonColumn, unit_columns
from veilog.logs.synthetic.twins import Sizes
from veilog.logs.tables.cells import plain_type
from veilog.logs.variants import Variants
from veilog.measures.disclosure import risk
from veilog.measures.singling_out import exposure
from veilog.measures.singling_out.identification import Exposure
from veilog.measures.singling_out.words import like_who
from veilog.releasing.losses import events_of
from veilog.releasing.preview import cases_with
from veilog.report.explorer import Chevron, Explorer, clean, explorer, short
from veilog.report.facts import durations
from veilog.report.flow_map import arranged, drawn, steps_of
from veilog.web.jobs.results import LogMeasures
from veilog.web.jobs.worker import Progress

ROWS, _LEGEND = 25, 24
"""Variants on a page: as many as keep it light even where every name is as long as it may be."""
_NAME = 120
_LABELS, LABEL = 300, 80
"""How many labels of the log a page shows, and how much of one."""
_ATTRIBUTES = 500
"""How many columns of cases, and of events, a page asks for."""
_UNITS = 60
"""How many columns may be offered to tell whose a case is."""
_WORK = 5e7
_SAMPLES = 300
_SIZES = (1, 2, 3, 4, 5, 6)
_SHORT = (1, 2, 3)
_MANY = 20_000
"""Variants beyond which disclosure is measured for up to three known activities; more takes too long to wait for."""
_KNOWN_EVENTS = (1, 2, 3, 5, 10)


def shown_rows(variants: Variants, original: Variants | None = None, whole: Variants | None = None) -> Explorer:
    """The most frequent variants as coloured chevrons, as far as a light page has room for them."""
    view = explorer(variants, original, whole)
    rows = view.rows[:ROWS]
    return replace(
        view,
        rows=tuple(replace(r, chevrons=tuple(map(_chevron, r.chevrons)), search="") for r in rows),
        covered=min(1.0, sum(row.released_share for row in rows)),
        legend=view.legend[:_LEGEND],
        more_activities=view.more_activities + max(0, len(view.legend) - _LEGEND),
    )


def _chevron(c: Chevron) -> Chevron:
    return replace(c, title="" if c.title == c.text else short(c.title, 80))


def measured(log: EventLog, progress: Progress, person: str | None = None) -> LogMeasures:
    """Return statistics and exposure of a log that was read. ``person`` is the column by which people are counted, as a
    page names it; none of them for "", and for None the one that is called after persons."""
    variants = log.variants
    sizes = _SIZES if len(variants) <= _MANY else _SHORT
    results = risk(variants, ["sequence"], sizes, work_limit=_WORK, samples=_SAMPLES, progress=progress)
    columns = unit_columns(log)
    whose = _person(columns, person)
    exposed = _exposed(log, whose, progress)
    if exposed is not None:
        exact = {r.size: r.unique for r in results if r.exact}
        exposed = exposed.at_most(exact)
    steps = steps_of(variants, log)
    return LogMeasures(
        statistics=log.statistics,
        explorer=shown_rows(variants),
        singled_out=() if exposed is None else exposed.results,
        map=drawn(steps, arranged([steps])),
        durations=durations(log)[0],
        labels=tuple(short(label, LABEL) for label in variants.labels[:_LABELS]),
        more_labels=max(0, len(variants.labels) - _LABELS),
        label_events=tuple(events_of(variants).values())[:_LABELS],
        label_cases=tuple(cases_with(variants).tolist()),
        units=_units(columns, log.cases.num_rows),
        case_attributes=_attributes(log.cases),
        event_attributes=_attributes(log.events),
        without_numbers=_without_numbers(log.cases, log.events),
        fingerprint=fingerprint(variants).hex(),
        alone=int((variants.counts == 1).sum()) if exposed is None else exposed.alone,
        people=variants.cases if exposed is None else exposed.people,
        person="" if whose is None else short(whose, _NAME),
        sizes=_sizes(variants),
        read_as=log.read_as,
        example=_example(exposed),
    )


def _person(columns: Sequence[PersonColumn], person: str | None) -> str | None:
    """Return the column of a person as the log has it: the one that was chosen, or that is called after persons."""
    if person == "":
        return None
    chosen = [c.column for c in columns if person is not None and short(c.column, _NAME) == person]
    return next(iter([*chosen, *(c.column for c in columns if c.likely)]), None)


def _example(exposed: Exposure | None) -> str:
    if exposed is None or exposed.example is None:
        return ""
    return clean(like_who(exposed.example, persons=exposed.person is not None))


def _sizes(variants: Variants) -> Sizes | None:
    """Return the sizes by which made-up logs are like it, where there can be such logs."""
    try:
        return Sizes.of(variants)
    except ParameterError:
        return None


def _attributes(table: pa.Table) -> tuple[str, ...]:
    reserved = (ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX, NESTED)
    return tuple(clean(name) for name in table.column_names if name not in reserved)[:_ATTRIBUTES]


def _without_numbers(*tables: pa.Table) -> tuple[str, ...]:
    """The attributes of which a range says nothing: texts and truth values."""
    ranged = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal)
    kinds = [(clean(field.name), plain_type(field.type)) for table in tables for field in table.schema]
    some = {name for name, kind in kinds if any(fits(kind) for fits in ranged)}
    return tuple(dict.fromkeys(name for table in tables for name in _attributes(table) if name not in some))


def _units(columns: Sequence[PersonColumn], cases: int) -> tuple[PersonColumn, ...]:
    """The columns that may identify whose a case is."""
    offered = [column for column in columns if column.likely or column.cases == cases]
    return tuple(replace(column, column=short(column.column, _NAME)) for column in offered[:_UNITS])


def _exposed(log: EventLog, person: str | None, progress: Progress) -> Exposure | None:
    """How often somebody who happens to know a few events of a person finds that person in the log itself."""
    progress("trying what a few known events tell", None)
    try:
        return exposure(log, person=person or False, sizes=_KNOWN_EVENTS)
    except VeilogError:  # nobody has an event
        return None

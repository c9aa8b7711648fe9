"""Reading a log for its owner: columns and a preview, findings, statistics, and who is exposed.

Everything here is computed from the raw log, for the owner's eyes; nothing of it goes into a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilog.charts import lasting
from veilog.errors import InputError, VeilogError
from veilog.ledger.ledger import fingerprint
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, EventLog
from veilog.logs.facts import unit_columns
from veilog.logs.findings import RULES, Finding, Findings, Policy
from veilog.logs.reader import Asked
from veilog.logs.reading import roles_of, whole
from veilog.logs.roles import Declared
from veilog.logs.source import Source
from veilog.logs.tables.reader import table_reader_of
from veilog.logs.variants import Variants
from veilog.measures.disclosure import BACKGROUNDS, risk
from veilog.measures.durations import case_durations, spans
from veilog.measures.singling_out import Exposure, exposure, like_who
from veilog.report.explorer import Chevron, clean, explorer, short
from veilog.report.flow_map import arranged, drawn, steps_of
from veilog.web.jobs.read_log import (
    Columns,
    Disclosure,
    Found,
    Lengths,
    Measured,
    Noticed,
    Preview,
    ReadLog,
    Statistics,
    UnitColumn,
    VariantRow,
    VariantsShown,
)
from veilog.web.jobs.worker import Progress

__all__ = ["in_words", "log_of", "read_log", "shown_rows"]

ROWS = 25
"""Variants on a page: as many as keep it light even where every name is as long as it may be."""
_PREVIEW_ROWS, _PREVIEW_COLUMNS = 6, 16
_COLUMNS, _NAME = 150, 120
"""How many columns a page lets choose from, and how much of a name it shows."""
_LABELS, _LABEL = 300, 80
"""How many labels of the log a page shows, and how much of one."""
_UNITS = 60
"""How many columns may be offered to tell whose a case is."""
_WORK = 5e7
_SAMPLES = 300
_SIZES = (1, 2, 3, 4, 5, 6)
_SHORT = (1, 2, 3)
_MANY = 20_000
"""Variants beyond which disclosure is measured for up to three known activities; more takes too long to wait for."""
_KNOWN_EVENTS = (1, 2, 3, 5, 10)


def read_log(path: Path, columns: Mapping[str, str], progress: Progress) -> ReadLog:
    """Read a log and gather what its owner sees of it. Where the columns are not clear, or a finding stops reading, the
    result says so in ``problem`` and has what is needed to decide; what cannot be read at all raises."""
    progress("looking at the columns", None)
    found = ReadLog(problem=None)
    source = Source(path)
    names = _column_names(source)
    if names is not None:
        columns = _meant(columns, names)
        shown = Columns(_listed(names, columns), _chosen(columns), taken=None, how=None)
        found = replace(found, preview=_preview_of_table(source), columns=shown)
        try:
            roles = roles_of(source, _declared(columns))
        except InputError as error:
            return replace(found, problem=clean(error.problem))
        if roles is not None:
            how = {"case": roles.case_found, "activity": roles.activity_found, "timestamp": roles.timestamp_found}
            taken = {"case": roles.case, "activity": roles.activity, "timestamp": roles.timestamp}
            taken = {role: _shown_name(name) for role, name in taken.items()}
            found = replace(found, columns=replace(shown, taken=taken, how=how))
    progress("reading the log", None)
    try:
        log = _read(source, columns, progress)
    except InputError as error:
        return _what_stops(found, source, columns, error, progress)
    if log.cases.num_rows == 0:
        raise InputError("The log has no cases.")
    return replace(
        found,
        findings=tuple(map(_noticed, log.findings)),
        preview=found.preview or _shown_table(log.to_arrow().slice(0, _PREVIEW_ROWS)),
        measured=_measured(log, progress),
    )


def log_of(path: Path, columns: Mapping[str, str], progress: Progress) -> EventLog:
    """The log as its owner had it read, to release it; errors in words for a page."""
    try:
        source = Source(path)
        names = _column_names(source)
        return _read(source, columns if names is None else _meant(columns, names), progress)
    except VeilogError as error:
        raise in_words(error) from error.__cause__


def in_words(error: VeilogError) -> InputError:
    """The error without the place of the file on this machine, which says nothing to whoever uploaded it."""
    problem = clean(getattr(error, "problem", str(error)))
    line = getattr(error, "line", None)
    return InputError(problem if line is None else f"{problem} (line {line})", advice=getattr(error, "advice", None))


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


def _read(source: Source, columns: Mapping[str, str], progress: Progress) -> EventLog:
    def say(text: str, fraction: float | None) -> None:
        progress("reading the log" if text.startswith("reading ") else text, fraction)

    return whole(source, Asked(_declared(columns), Findings(_policies(columns), source.name), progress=say))


def _declared(columns: Mapping[str, str]) -> Declared:
    """The columns of case, activity and timestamp and the format of times, where they were chosen."""
    return Declared(**{name: columns.get(name) or None for name in ("case", "activity", "timestamp", "time_format")})


def _policies(columns: Mapping[str, str]) -> dict[str, Policy]:
    policies: dict[str, Policy] = {}
    for name, value in columns.items():
        rule = RULES.get(name.removeprefix("on_")) if name.startswith("on_") else None
        for policy in () if rule is None else rule.policies:
            if policy == value and rule is not None:
                policies[rule.name] = policy
    return policies


def _meant(columns: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The columns that were chosen by the names that a page shows, which cannot show all that a name may hold."""
    shown = {_shown_name(name): name for name in reversed(names)}
    roles = {role: columns[role] for role in ("case", "activity", "timestamp") if columns.get(role)}
    return {**columns, **{role: name if name in names else shown.get(name, name) for role, name in roles.items()}}


def _shown_name(name: str) -> str:
    return short(name, _NAME)


def _listed(names: Sequence[str], columns: Mapping[str, str]) -> tuple[str, ...]:
    """The names to choose from: the first ones, and those that are chosen already."""
    taken = [name for name in columns.values() if name in names]
    return tuple(_shown_name(name) for name in dict.fromkeys([*names[:_COLUMNS], *taken]))


def _chosen(columns: Mapping[str, str]) -> dict[str, str]:
    return {name: _shown_name(value) for name, value in columns.items() if value}


def _what_stops(
    found: ReadLog, source: Source, columns: Mapping[str, str], error: InputError, progress: Progress
) -> ReadLog:
    """All findings of a log that could not be read because of one, and which of them the owner must decide. Where it is
    something else, that is what the result says if other columns may help; otherwise it raises."""
    progress("looking for all that is wrong", None)
    stopping: list[Finding] = []
    try:
        every = Findings(_policies(columns), source.name, collect_all=True)
        findings = whole(source, Asked(_declared(columns), every)).findings
        stopping = [finding for finding in findings if finding.policy == "fail"]
    except VeilogError:
        pass  # what reading said is said below
    if stopping:
        return replace(
            found,
            problem="Something in the log must be decided before it can be used.",
            findings=tuple(map(_noticed, findings)),
            choices=tuple(finding.rule for finding in stopping),
        )
    told = in_words(error)
    if found.columns is not None:
        return replace(found, problem=told.problem)
    raise told from error.__cause__


_CONSEQUENCES = {"keep": "kept", "drop": "left out", "fail": "stops reading"}


def _noticed(finding: Finding) -> Noticed:
    rule = RULES[finding.rule]
    return Noticed(
        rule=finding.rule,
        what=rule.what,
        severity=finding.severity,
        count=finding.count,
        example=short(finding.example, 160),
        line=finding.line,
        consequence=_CONSEQUENCES[finding.policy],
        advice=rule.advice,
        policies=tuple(policy for policy in rule.policies if policy != "fail"),
    )


def _column_names(source: Source) -> list[str] | None:
    """The columns of a table; None for a log that is no table, such as XES."""
    try:
        reader = table_reader_of(source)
        return None if reader is None else reader.columns(source)
    except VeilogError as error:
        raise in_words(error) from error.__cause__


def _preview_of_table(source: Source) -> Preview:
    """The first rows as they stand in the file; none where even these cannot be read, which reading then says."""
    reader = table_reader_of(source)
    assert reader is not None, "a log that is no table has no rows"
    try:
        batch = next(reader.batches(source, Asked(), size=_PREVIEW_ROWS), None)
    except (VeilogError, pa.ArrowException):
        batch = None
    return _shown_table(pa.table({}) if batch is None else pa.Table.from_batches([batch.slice(0, _PREVIEW_ROWS)]))


def _shown_table(table: pa.Table) -> Preview:
    # By their places: two columns may have one name, which reading refuses in words.
    places = [i for i, name in enumerate(table.column_names) if name not in (CASE_INDEX, EVENT_INDEX, NESTED)]
    shown = places[:_PREVIEW_COLUMNS]
    cells = [[_cell(value) for value in table.column(place).to_pylist()] for place in shown]
    return Preview(
        headers=tuple(short(table.column_names[place], 60) for place in shown),
        rows=tuple(zip(*cells, strict=True)),
        more=len(places) - len(shown),
    )


def _cell(value: Any) -> str:
    return "" if value is None else short(str(value), 60)


def _measured(log: EventLog, progress: Progress) -> Measured:
    """Statistics and exposure of a log that was read."""
    variants = log.variants
    progress("measuring exposure", None)
    sizes = _SIZES if len(variants) <= _MANY else _SHORT
    results = risk(variants, BACKGROUNDS, sizes, work_limit=_WORK, samples=_SAMPLES, progress=progress)
    exposed = _exposed(log, progress)
    progress("drawing the process", None)
    steps = steps_of(variants)
    return Measured(
        statistics=_statistics(log),
        explorer=shown_rows(variants),
        disclosure=tuple(map(Disclosure.of, results)),
        singled_out=() if exposed is None else tuple(map(Found.of, exposed.results)),
        map=drawn(steps, arranged([steps])),
        durations=_durations(log),
        labels=tuple(short(label, _LABEL) for label in variants.labels[:_LABELS]),
        more_labels=max(0, len(variants.labels) - _LABELS),
        units=_units(log),
        case_attributes=_attributes(log.cases),
        event_attributes=_attributes(log.events),
        fingerprint=fingerprint(variants).hex(),
        alone=int(variants.counts[variants.counts == 1].sum()),
        example="" if exposed is None or exposed.example is None else clean(like_who(exposed.example)),
    )


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


def _exposed(log: EventLog, progress: Progress) -> Exposure | None:
    """How often somebody who happens to know a few events of a person finds that person's case in the log itself."""
    progress("trying what a few known events tell", None)
    try:
        return exposure(log, sizes=_KNOWN_EVENTS)
    except VeilogError:  # nobody has an event
        return None


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

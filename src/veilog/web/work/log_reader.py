"""Reading a log for its owner: columns, preview, findings, statistics, exposure.

Everything here is computed from the raw log, for the data owner; nothing of it goes into a release.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from veilog._language import day_in_words, gettext, gettext_noop
from veilog.errors import InputError, ParameterError, VeilogError
from veilog.ledger.store import fingerprint
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, EventLog
from veilog.logs.facts import PersonColumn, unit_columns
from veilog.logs.findings import RULES, Finding, Findings, Policy
from veilog.logs.input.formats import ReadRequest
from veilog.logs.input.loader import roles_of, whole
from veilog.logs.input.roles import role_of
from veilog.logs.input.source import ReadOptions, Source
from veilog.logs.synthetic.twins import Sizes
from veilog.logs.tables.cells import DayOrder, parse_times, plain_type
from veilog.logs.tables.table_reader import table_reader_of
from veilog.logs.variants import Variants
from veilog.measures.disclosure import risk
from veilog.measures.singling_out import exposure
from veilog.measures.singling_out.identification import Exposure
from veilog.measures.singling_out.words import like_who
from veilog.messages import Message
from veilog.releasing.losses import events_of
from veilog.releasing.preview import cases_with
from veilog.report.explorer import Chevron, Explorer, clean, explorer, short
from veilog.report.facts import durations
from veilog.report.flow_map import arranged, draw_map, steps_of
from veilog.web.jobs.results import HOW_READ, Columns, FirstRows, InnerTables, LogMeasures, ReadLog
from veilog.web.jobs.worker import READING, Progress, Stages

_PREVIEW_ROWS, _PREVIEW_COLUMNS = 5, 40
_LAYOUT = ("sheet", "object_type")
_COLUMNS, _NAME = 150, 120
"""Number of columns that a page offers, and length of the names that it shows."""


_OF_FILE = ("file-", "zip-", "gzip-", "row-", "rows-", "value-", "quote-")
"""Prefixes of codes for errors of a file that no choice of columns can mend."""


def read_log(path: Path, columns: Mapping[str, str], progress: Progress) -> ReadLog:
    """Read a log and gather what its owner sees of it.

    If the columns are not clear, or a finding stops reading, the result has a ``problem`` and what is needed to decide.
    A log that cannot be read at all raises.
    """
    stages = Stages(progress, READING)
    stages.at("Looking at the columns")
    source = Source(path, _options(columns))
    found = ReadLog(problem=None, inside=_inner_tables(source))
    if found.inside is not None and found.inside.chosen is None:
        which = gettext("Choose the one that is the log below.")
        asked = _SHEETS if found.inside.what == "sheet" else _TYPES
        return replace(found, problem=gettext(asked, n=len(found.inside.among)), advice=which)
    names = _column_names(source)
    if names is not None:
        columns = _resolve_names(columns, names)
        shown = Columns(_names_to_show(names, columns), *_recognise_roles(names, _options(columns)))
        found = replace(found, preview=_table_to_show(_first_rows(source)), columns=shown)
        try:
            roles = roles_of(source, _options(columns))
        except (InputError, ParameterError) as error:
            if isinstance(error, ParameterError):
                return _add_problem(found, error)
            which = gettext("Choose the columns below.") if len(set(names)) == len(names) else ""
            return _add_problem(found, error, which)
        if roles is not None and found.preview is not None:
            times = _parsed_times(source, roles.timestamp, roles.day_order)
            found = replace(found, preview=replace(found.preview, times=times))
    reading = stages.at("Reading the log")
    try:
        log = _read_log(source, columns, reading)
    except InputError as error:
        return _blocked_log(found, source, columns, error)
    except ParameterError as error:
        return _add_problem(found, error)
    if log.cases.num_rows == 0:
        raise InputError("log-without-cases")
    return replace(
        found,
        findings=_findings_to_show(log.findings),
        preview=found.preview or _table_to_show(log.to_arrow().slice(0, _PREVIEW_ROWS)),
        measured=measure_log(log, stages.at("Counting who could be found"), columns.get("person")),
    )


def _add_problem(found: ReadLog, error: VeilogError, advice: str = "") -> ReadLog:
    """Add the error in the chosen reading, so that the user can choose another."""
    return replace(found, problem=clean(error.problem), advice=clean(advice or error.advice or ""))


def log_of(path: Path, columns: Mapping[str, str], progress: Progress) -> EventLog:
    """Return the log in the reading that its owner chose, to release it."""
    source = Source(path, _options(columns))
    names = _column_names(source)
    return _read_log(source, columns if names is None else _resolve_names(columns, names), progress)


def error_text(error: VeilogError) -> InputError:
    """Return the error without the file's place, which means nothing to the user."""
    line = error.line if isinstance(error, InputError) else None
    problem = error.message if line is None else Message("problem-at-line", problem=error.message, n=line)
    told = error.advice_given if line is None else None  # at a line, the advice is that of the message within
    return InputError(problem, advice=told)


def _read_log(source: Source, columns: Mapping[str, str], progress: Progress) -> EventLog:
    return whole(source, ReadRequest(_options(columns), Findings(_policies(columns), source.name), progress=progress))


def _options(columns: Mapping[str, str]) -> ReadOptions:
    """Return the chosen options for reading the log."""
    chosen: dict[str, Any] = {name: columns.get(name) or None for name in HOW_READ}
    return ReadOptions(**chosen)


def _policies(columns: Mapping[str, str]) -> dict[str, Policy]:
    rules = [(RULES.get(name[3:]), value) for name, value in columns.items() if name.startswith("on_")]
    return {rule.name: policy for rule, value in rules if rule for policy in rule.policies if policy == value}


def _recognise_roles(names: Sequence[str], declared: ReadOptions) -> tuple[dict[str, str], dict[str, str]]:
    """Return the column of each role that names reveal, even if others are unclear."""
    taken: dict[str, str] = {}
    how: dict[str, str] = {}
    for role in ("case", "activity", "timestamp"):
        with contextlib.suppress(InputError):
            name, how[role] = role_of(role, names, getattr(declared, role))
            taken[role] = _shorten_name(name)
    return taken, how


def _resolve_names(columns: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Return the chosen columns by their real names; a page may show shorter ones."""
    shown = {_shorten_name(name): name for name in reversed(names)}
    roles = {role: columns[role] for role in ("case", "activity", "timestamp") if columns.get(role)}
    return {**columns, **{role: name if name in names else shown.get(name, name) for role, name in roles.items()}}


def _shorten_name(name: str) -> str:
    return short(name, _NAME)


def _names_to_show(names: Sequence[str], columns: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names to choose from: the first ones, and those already chosen."""
    taken = [name for name in columns.values() if name in names]
    return tuple(_shorten_name(name) for name in dict.fromkeys([*names[:_COLUMNS], *taken]))


def _blocked_log(found: ReadLog, source: Source, columns: Mapping[str, str], error: InputError) -> ReadLog:
    """Return all findings of a log that one of them stopped, with those to decide.

    For any other error, the result has it as its problem if other columns may help; else it raises.
    """
    stopping: list[Finding] = []
    try:
        every = Findings(_policies(columns), source.name, collect_all=True)
        findings = whole(source, ReadRequest(_options(columns), every)).findings
        stopping = [finding for finding in findings if finding.policy == "fail"]
    except VeilogError:
        pass  # the problem of the result, below, has the reason
    if stopping:
        return replace(
            found,
            problem=gettext("Something in the log must be decided before it can be used."),
            findings=_findings_to_show(findings),
            choices=tuple(finding.rule for finding in stopping),
        )
    if found.columns is not None and not error.message.code.startswith(_OF_FILE):
        return _add_problem(found, error_text(error))
    raise error


def _findings_to_show(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(replace(finding, example=_cut_example(finding.example)) for finding in findings)


def _cut_example(example: str | Message) -> str | Message:
    """Return an example with its values cut; the page puts it into its language."""
    if isinstance(example, str):
        return short(example, 160)
    shown = {name: _cut_example(value) for name, value in example.values.items() if isinstance(value, str | Message)}
    return Message(example.code, **{**example.values, **shown})


_SHEETS = gettext_noop("The workbook has {n} sheets with a table.")
_TYPES = gettext_noop(
    "The file has {n} types of objects, and one of them must be the case. veilog leaves out the data of the others."
)


def _inner_tables(source: Source) -> InnerTables | None:
    """Return the tables or types of a file, with the chosen one that is the log."""
    reader = table_reader_of(source)
    what = next((name for name in _LAYOUT if reader is not None and name in reader.heeds), None)
    if reader is None or what is None:
        return None
    chosen = getattr(source.options, what)
    try:
        among = reader.notes(source).among
    except InputError as error:
        if not error.among:
            raise
        among, chosen = error.among, chosen if chosen in error.among else None
    return InnerTables(what, among, chosen) if len(among) > 1 else None


def _column_names(source: Source) -> list[str] | None:
    """Return the columns of a table; None for a log that is no table, such as XES."""
    reader = table_reader_of(source)
    return None if reader is None else reader.columns(source)


def _first_rows(source: Source) -> pa.Table:
    """Return the first rows as they stand in the file; empty if unreadable.

    Reading then raises the error.
    """
    reader = table_reader_of(source)
    assert reader is not None, "a log that is no table has no rows"
    try:
        batch = next(reader.batches(source, ReadRequest(), size=_PREVIEW_ROWS), None)
    except (VeilogError, pa.ArrowException):
        batch = None
    return pa.table({}) if batch is None else pa.Table.from_batches([batch.slice(0, _PREVIEW_ROWS)])


def _parsed_times(source: Source, column: str, order: DayOrder | None) -> tuple[str, ...]:
    """Return the times of the first rows in words; empty if the name is not unique."""
    rows = _first_rows(source)
    if rows.column_names.count(column) != 1:
        return ()
    found = []
    for value in rows.column(column).to_pylist():
        if not isinstance(value, str):
            found.append("" if value is None else str(value))
            continue
        ways: tuple[DayOrder, ...] = (order,) if order else ("day first", "month first")
        both = [_moment(value, way) for way in ways]
        ways_read = [*dict.fromkeys(filter(None, both))]
        either = gettext("{one} or {other}", one=ways_read[0], other=ways_read[1]) if len(ways_read) > 1 else ""
        found.append(either or "".join(ways_read) or gettext("cannot be read"))
    return tuple(found)


def _moment(text: str, order: DayOrder) -> str:
    try:
        times = parse_times(pa.array([text], pa.string()), order)
    except (VeilogError, pa.ArrowException, ValueError):
        return ""
    if not times.known[0]:
        return ""
    at = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=int(times.micros[0]))
    return f"{day_in_words(at)}, {at:%H:%M}"


def _table_to_show(table: pa.Table) -> FirstRows:
    # Columns by their places: two columns may have one name, which reading refuses in words.
    places = [i for i, name in enumerate(table.column_names) if name not in (CASE_INDEX, EVENT_INDEX, NESTED)]
    shown = places[:_PREVIEW_COLUMNS]
    cells = [[_cell(value) for value in table.column(place).to_pylist()] for place in shown]
    return FirstRows(
        headers=tuple(short(table.column_names[place], 60) for place in shown),
        rows=tuple(zip(*cells, strict=True)),
        more=len(places) - len(shown),
    )


def _cell(value: Any) -> str:
    return "" if value is None else short(str(value), 60)


# Who could be found in a log, and what it looks like -----------------------------------------------------------------


ROWS, _LEGEND = 25, 24
"""Number of variants on a page, so few that it stays light with the longest names."""
_NAME_OF_EXPOSURE = 120
_LABELS, LABEL = 300, 80
"""Number of the log's labels that a page shows, and length of one."""
_ATTRIBUTES = 500
"""Number of columns of cases, and of events, that a page offers."""
_UNITS = 60
"""Number of columns that a page offers for persons."""
_WORK = 5e7
_SAMPLES = 300
_SIZES = (1, 2, 3, 4, 5, 6)
_SHORT = (1, 2, 3)
_MANY = 20_000
"""Number of variants above which disclosure stops at three known activities."""
_KNOWN_EVENTS = (1, 2, 3, 5, 10)


def first_cases(variants: Variants, original: Variants | None = None, whole: Variants | None = None) -> Explorer:
    """Return the most frequent variants as coloured chevrons, few enough for a page."""
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


def measure_log(log: EventLog, progress: Progress, person: str | None = None) -> LogMeasures:
    """Return statistics and exposure of a log.

    ``person`` is the column by which people are counted, as a page names it. "" stands for none, and None for the one
    named after persons.
    """
    variants = log.variants
    sizes = _SIZES if len(variants) <= _MANY else _SHORT
    results = risk(variants, ["sequence"], sizes, work_limit=_WORK, samples=_SAMPLES, progress=progress)
    columns = unit_columns(log)
    whose = _person(columns, person)
    exposed = _measure_exposure(log, whose, progress)
    if exposed is not None:
        exact = {r.size: r.unique for r in results if r.exact}
        exposed = exposed.at_most(exact)
    steps = steps_of(variants, log)
    return LogMeasures(
        statistics=log.statistics,
        explorer=first_cases(variants),
        singled_out=() if exposed is None else exposed.results,
        map=draw_map(steps, arranged([steps])),
        durations=durations(log)[0],
        labels=tuple(short(label, LABEL) for label in variants.labels[:_LABELS]),
        more_labels=max(0, len(variants.labels) - _LABELS),
        label_events=tuple(events_of(variants).values())[:_LABELS],
        label_cases=tuple(cases_with(variants).tolist()),
        units=_units(columns, log.cases.num_rows),
        case_attributes=_attributes(log.cases),
        event_attributes=_attributes(log.events),
        without_numbers=_text_attributes(log.cases, log.events),
        fingerprint=fingerprint(variants).hex(),
        alone=int((variants.counts == 1).sum()) if exposed is None else exposed.alone,
        people=variants.cases if exposed is None else exposed.people,
        person="" if whose is None else short(whose, _NAME_OF_EXPOSURE),
        sizes=_sizes(variants),
        read_as=log.read_as,
        example=_example(exposed),
    )


def _person(columns: Sequence[PersonColumn], person: str | None) -> str | None:
    """Return the log's name of the chosen person column, or of the likely one."""
    if person == "":
        return None
    chosen = [c.column for c in columns if person is not None and short(c.column, _NAME_OF_EXPOSURE) == person]
    return next(iter([*chosen, *(c.column for c in columns if c.likely)]), None)


def _example(exposed: Exposure | None) -> str:
    if exposed is None or exposed.example is None:
        return ""
    return clean(like_who(exposed.example, persons=exposed.person is not None))


def _sizes(variants: Variants) -> Sizes | None:
    """Return the sizes for synthetic logs like it, or None if there can be none."""
    try:
        return Sizes.of(variants)
    except ParameterError:
        return None


def _attributes(table: pa.Table) -> tuple[str, ...]:
    reserved = (ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX, NESTED)
    return tuple(clean(name) for name in table.column_names if name not in reserved)[:_ATTRIBUTES]


def _text_attributes(*tables: pa.Table) -> tuple[str, ...]:
    """Return the attributes without a range, such as texts and truth values."""
    ranged = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal)
    kinds = [(clean(field.name), plain_type(field.type)) for table in tables for field in table.schema]
    some = {name for name, kind in kinds if any(fits(kind) for fits in ranged)}
    return tuple(dict.fromkeys(name for table in tables for name in _attributes(table) if name not in some))


def _units(columns: Sequence[PersonColumn], cases: int) -> tuple[PersonColumn, ...]:
    """Return the columns that may identify the person of a case."""
    offered = [column for column in columns if column.likely or column.cases == cases]
    return tuple(replace(column, column=short(column.column, _NAME_OF_EXPOSURE)) for column in offered[:_UNITS])


def _measure_exposure(log: EventLog, person: str | None, progress: Progress) -> Exposure | None:
    """Return how often an attacker finds a person by a few known events."""
    progress("trying what a few known events tell", None)
    try:
        return exposure(log, person=person or False, sizes=_KNOWN_EVENTS)
    except VeilogError:  # no case has an event
        return None

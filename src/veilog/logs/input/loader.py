"""Loader of a log or its variants: reader or engine, then columns, then events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilog.errors import InputError, ParameterError, meant
from veilog.logs.eventlog import CASE, LIFECYCLE, START, TIMESTAMP, EventLog
from veilog.logs.findings import Findings
from veilog.logs.input.activity_mapping import mapped_by
from veilog.logs.input.formats import ReadRequest, not_ours, plugin_errors, reader_of
from veilog.logs.input.lifecycle import COMPLETE, EVERY, as_intervals, wants_intervals
from veilog.logs.input.quality_checks import check_events, check_width
from veilog.logs.input.roles import Classifiers, Roles, classifier_words, declared_roles
from veilog.logs.input.source import (
    DEFAULT_OPTIONS,
    Given,
    ReadKeywords,
    ReadOptions,
    Source,
    bytes_of,
    engine_name,
    is_ibis,
    silent,
)
from veilog.logs.provenance import ATTRIBUTES_TOGETHER, Provenance, split_metadata
from veilog.logs.tables.table_reader import TableReader, note, table_reader_of, wide_table_error

if TYPE_CHECKING:
    from veilog.logs.engines.engine import Grouped, VariantSource


def requested_reading(
    source: Given, given: Mapping[str, Any], kind: type = ReadKeywords, *, collect_all: bool = False
) -> tuple[Source, ReadRequest]:
    """Return the source and the request for the arguments of :func:`veilog.read`."""
    options = dict(given)
    for name in options.keys() - (known := kind.__annotations__.keys()):
        near, names = meant(name, known), ", ".join(known)
        raise ParameterError("read-argument-unknown", parameter=name, name=name, meant=near, names=names)
    policies, progress = options.pop("policies", None) or {}, options.pop("progress", None)
    groups = [options.pop(name, None) for name in ("map", "level", "top")]
    declared = ReadOptions(**options, mapping=mapped_by(*groups))
    named = Source(source, declared)
    return named, ReadRequest(declared, Findings(policies, named.name, collect_all), progress=progress)


def whole(source: Source, asked: ReadRequest) -> EventLog:
    """Return the log with its events, and which rules read all its cases at once."""
    if source.options.index is not None and not is_ibis(source.given):
        raise ParameterError("rows-order-already-given", parameter="index")
    reader = reader_of(source)
    declared = asked.options
    intervals = wants_intervals(declared.lifecycle)
    if intervals:
        if LIFECYCLE in (asked.options.classifier or ""):
            raise ParameterError("classifier-splits-lifecycle", parameter="classifier", lifecycle=LIFECYCLE)
        asked = replace(asked, options=_row_options(asked.options))
    with plugin_errors(source):
        tabular = table_reader_of(source)
        check_layout(source)
        names = [] if tabular is None else tabular.columns(source)
        check_memory(source, len(names))
        check_width(len(names), 0, 0, source.name)
        roles = None if tabular is None else roles_among(names, asked.options, source, asked.findings)
        if roles is not None:
            note(source, roles, asked.findings)
        taken = _use_event_starts(roles, names, asked.findings) if intervals and roles is not None else roles
        log = reader.read(source, replace(asked, roles=taken))
        if intervals:
            transition, start = (LIFECYCLE, START) if taken is None else (taken.transition, taken.begun)
            log = as_intervals(
                log, asked.findings, transition or LIFECYCLE, start or START, order=asked.options.day_order
            )
    before = asked.findings.result()
    log = check_events(log, asked.findings)
    if asked.options.mapping is not None:
        asked.options.mapping.note(log.activity_codes[0], asked.findings)
    noticed = [finding for finding in asked.findings.result() if finding not in before]
    told = () if reader.typed else (ATTRIBUTES_TOGETHER,)
    metadata, earlier = split_metadata(log.metadata)
    every = asked.findings.policy("repeated-event") == "drop"  # then every attribute decides which events there are
    used = used_columns(taken, declared, metadata.classifiers)
    earlier = earlier.by((*used, *log.events.column_names) if every else used)
    together = (*asked.findings.read_together(), *(told if every else ()), *not_ours(source))
    way = read_as(source, roles, declared, asked.findings, earlier)
    findings = (*log.findings, *noticed)
    read = replace(log, metadata=metadata, findings=findings, read_together=together, attributes_read_together=told)
    found = earlier.of(replace(read, read_as=way))
    return found if asked.options.mapping is None else asked.options.mapping.of_log(found)


_SMALL = 8 << 20
"""Size of files below which memory is not checked."""
_UNPACKED = 6
_IN_MEMORY = {".xes": 0.6, ".parquet": 0.0}
"""Bytes in memory for each of the file; any other text is a table, with cells held twice while it is read."""
_OF_TABLE, _ROW, _CELL = 4.0, 80, 35


def check_memory(source: Source, columns: int) -> None:
    """Refuse a file that needs more memory than is allowed or there, before reading."""
    if not source.is_file or source.size < _SMALL:
        return
    suffix = source.suffix.removesuffix(".gz")
    needed = source.size * _IN_MEMORY.get(suffix, _OF_TABLE) * (_UNPACKED if source.packed else 1)
    if suffix == ".parquet" and (reader := table_reader_of(source)) is not None:
        needed = (reader.rows(source) or 0) * (_ROW + _CELL * columns)
    limit = source.options.memory_limit
    if limit != DEFAULT_OPTIONS.memory_limit:
        allowed, code = bytes_of(limit), "memory-limit-below-log"
    else:
        from veilog._process import machine_memory  # here: it loads what several processes need

        allowed, code = machine_memory(), "memory-below-log"
    if allowed and needed > allowed:
        sizes = {"needed": f"{needed / 1e9:.1f}", "allowed": f"{allowed / 1e9:.1f}"}
        raise ParameterError(code, parameter="memory_limit", name=source.name, **sizes)


def earlier_provenance(source: Source) -> Provenance:
    """Return how the logs were read that a log's files came from, without their rows."""
    found = Provenance()
    for file in source.files() if source.name is not None else ():
        reader = table_reader_of(file)
        found += Provenance() if reader is None else split_metadata(reader.notes(file).metadata)[1]
    return found


def used_columns(roles: Roles | None, declared: ReadOptions, classifiers: Classifiers = ()) -> tuple[str, ...]:
    """Return the columns, or attributes, that decide events, cases, activities, times.

    Attributes are for logs whose columns have no roles.
    """
    wanted = None if declared.lifecycle is None else declared.lifecycle.strip().casefold()
    if roles is None:
        keys = () if declared.classifier is None else classifier_words(declared.classifier, classifiers)
        return (*keys, START) if wants_intervals(wanted) else (*keys,)
    step = roles.transition if wanted not in (None, EVERY) else None
    return tuple(name for name in roles.named if name != roles.transition or name in (step, *roles.classifier))


def _use_event_starts(roles: Roles, names: list[str], findings: Findings) -> Roles:
    """Return the roles where a start and its end become one event.
    A start in a row is its event's own. A row without an end does not end, unless the rows are transitions."""
    begun = roles.start or (START if START in names and START not in roles.named else None)
    spare = roles.start if roles.transition is None else None
    return replace(_use_spare_column(roles, spare, findings), start=None, begun=begun)


def _use_spare_column(roles: Roles, spare: str | None, findings: Findings) -> Roles:
    """Return the roles with the spare one of start and end; policies decide its use."""
    return replace(roles, spare=spare, takes_spare=bool(spare) and findings.policy("one-time-missing") != "fail")


def read_as(source: Source, roles: Roles | None, declared: ReadOptions, findings: Findings, earlier: Provenance) -> str:
    """Return how a log is read, as far as it decides the events and times of a case.

    A ledger notes this, for two ways may put a case into two subsets of one rule. Two columns of cases are two kinds of
    cases. Options that do not matter give the same text. Whether times have a zone is found in all of them: where some
    have one, no two subsets of time are known to be without a case in both. For a file that was made of another, how
    that was read (in ``earlier``) belongs to it.
    """
    wanted = None if declared.lifecycle is None else declared.lifecycle.strip().casefold()
    every = wanted == EVERY and (roles is None or not roles.two_events)
    said = {
        "case": CASE if roles is None else roles.case,
        "timestamp": TIMESTAMP if roles is None else roles.timestamp,
        "clock": None if roles is None else roles.clock,
        "start": None if roles is None or not roles.two_events else roles.start,
        "spare": None if roles is None or not roles.takes_spare else roles.spare,
        "transition": None if roles is None or wanted is None else roles.transition,
        "lifecycle": None if every else wanted,
        "time format": None if declared.time_format is None else declared.time_format.lower(),
        "zones": findings.zones,
        "object type": source.options.object_type,
        "left out": sorted(rule for rule, policy in findings.policies.items() if policy == "drop") or None,
        "before": json.loads(earlier.way) if earlier.way else None,
    }
    return json.dumps({name: what for name, what in said.items() if what is not None}, sort_keys=True)


def group_variants(source: Source, asked: ReadRequest) -> Grouped:
    """Return the variants and the first and last time (:func:`veilog.read_variants`)."""
    from veilog.logs.engines.engine import Grouped

    engine = engine_of(source)
    if engine is None or needs_whole(source, asked.findings):
        log = whole(source, asked)
        return Grouped(log.variants, *log.span)
    with plugin_errors(source):
        check_layout(source)
        roles = roles_among(engine.columns(), _ends_alone(asked.options), source, asked.findings)
        if source.options.engine == "duckdb" and source.name is not None:
            note(source, roles, asked.findings)
        result = engine.group(roles, asked.findings, asked.progress or silent)
    # An engine elsewhere has no reader, so none of another package.
    here = source.name is not None and source.options.engine in ("duckdb", "spark")
    together = (*asked.findings.read_together(), *(not_ours(source) if here else ()))
    before = earlier_provenance(source).by(used_columns(roles, asked.options)) if here else Provenance()
    way = read_as(source, roles, asked.options, asked.findings, before)
    variants = before.of_variants(replace(result.variants, read_together=together, read_as=way))
    if asked.options.mapping is not None:
        asked.options.mapping.note(variants.labels, asked.findings)
    return replace(
        result, variants=variants if asked.options.mapping is None else asked.options.mapping.of_variants(variants)
    )


def needs_whole(source: Source, findings: Findings) -> bool:
    """Return True if the policies need all events and attributes in memory.

    That is refused for a log that is no single file.
    """
    repeated = findings.policy("repeated-event") == "drop"
    if repeated and source.is_elsewhere:
        raise ParameterError("engine-option-not-possible", parameter="on", name="on repeated-event=drop")
    reader = None if findings.policy("duplicate-case-id") == "keep" else _table_reader_here(source)
    return repeated or (reader is not None and reader.notes(source).case_key is not None)


def _ends_alone(declared: ReadOptions) -> ReadOptions:
    """Return the options for variants alone.
    If a start and its end are one event, it stands at its end."""
    return replace(declared, lifecycle=COMPLETE) if wants_intervals(declared.lifecycle) else declared


def roles_of(source: Source, declared: ReadOptions = DEFAULT_OPTIONS) -> Roles | None:
    """Return the columns for case, activity and timestamp, with reasons.

    None if the format defines them (XES).
    """
    names, declared = columns_of(source), replace(_row_options(declared), classifier=None)
    with plugin_errors(source):
        return None if names is None else roles_among(names, declared, source)


def _row_options(declared: ReadOptions) -> ReadOptions:
    """Return the options for the rows of a log whose starts and ends become one event."""
    return replace(declared, lifecycle=EVERY) if wants_intervals(declared.lifecycle) else declared


def columns_of(source: Source) -> list[str] | None:
    """Return the names of the columns of a table; None of a log that is none (XES)."""
    engine = None if _is_one_file(source) else engine_of(source)
    with plugin_errors(source):
        return _columns(source) if engine is None else engine.columns()


def _is_one_file(source: Source) -> bool:
    """Return True if the log is one file here, whose own reader knows its columns.
    No engine is imported for them."""
    if not source.is_file or source.options.engine != "duckdb":
        return False
    _refuse_index(source.options)
    return True


def check_layout(source: Source) -> None:
    """Refuse options on the inside of a file that has no such thing."""
    here = source.options.engine in ("duckdb", "spark")
    heeds = getattr(reader_of(source.files()[0]), "heeds", ()) if here else ()
    for name, what in _LAYOUT.items():
        if getattr(source.options, name) is not None and name not in heeds:
            raise ParameterError("log-option-without-meaning", parameter=name, what=what, name=name.replace("_", "-"))


_LAYOUT = {
    "header": "line of a header that could be told",
    "sheet": "sheets",
    "object_type": "types of objects",
    "start": "columns with roles of their own",
    "decimal": "numbers that are written as text",
}


def _columns(source: Source) -> list[str] | None:
    reader = table_reader_of(source)
    return None if reader is None else reader.columns(source)


def roles_among(names: list[str], declared: ReadOptions, source: Source, findings: Findings | None = None) -> Roles:
    """Return the roles of these columns by declarations and policies."""
    try:
        classifiers = _classifiers(source) if declared.classifier is not None else ()
        roles = declared_roles(names, declared, classifiers, public=_declares(source))
        return roles if findings is None else _use_spare_column(roles, roles.spare, findings)
    except InputError as error:
        reader = _table_reader_here(source) if error.code == "column-role-not-found" else None
        wide = None if reader is None or not reader.declares else wide_table_error(source, reader, names)
        raise (wide or error).at(source.name) from None


def _declares(source: Source) -> bool:
    """Return True if the columns are declared; else a column exists by some event."""
    reader = _table_reader_here(source)
    return reader is None or reader.declares


def _classifiers(source: Source) -> Classifiers:
    """Return the classifiers that a Parquet file of ours kept from XES."""
    reader = _table_reader_here(source)
    return () if reader is None else reader.notes(source).metadata.classifiers


def _table_reader_here(source: Source) -> TableReader | None:
    """Return the reader of a table that is one file, or in memory; else None."""
    here = source.options.engine in ("duckdb", "spark") and (source.name is None or source.is_file)
    return table_reader_of(source) if here else None


def engine_of(source: Source) -> VariantSource | None:
    """Return the engine that groups this log's events; None for one read whole (XES).

    It is ``duckdb``, ``duckdb:FILE``, ``spark``, or the URL of a warehouse. It is imported when a log needs it.
    """
    if source.name is None or source.options.engine not in ("duckdb", "spark"):
        return source.once(_external_table)
    _refuse_index(source.options)
    files = _files_of_one_format(source)
    if source.options.engine == "spark":
        from veilog.logs.engines.spark import SparkFiles

        return SparkFiles(files, source.options)
    if table_reader_of(files[0]) is None:
        return None
    from veilog.logs.engines.duckdb import DuckFiles

    return DuckFiles(files, source.options)


def _external_table(source: Source) -> VariantSource | None:
    """Return a table that is no file: of Ibis, a DuckDB database, or behind a URL.
    A URL is connected to once."""
    options = source.options
    engine = options.engine
    if source.name is None and not is_ibis(source.given):
        return None
    from veilog.logs.engines.ibis import IbisTable, connected

    if source.name is None:
        return IbisTable(source.given, options.index)
    if engine.startswith("duckdb:") and not engine.startswith("duckdb://"):
        from veilog.logs.engines.duckdb import DuckTable

        return DuckTable(Path(engine.removeprefix("duckdb:")), source.name, options)
    if "://" in engine:
        return IbisTable(connected(source, source.name), options.index, name=source.name)
    raise ParameterError(
        "engine-unknown", parameter="engine", called=engine_name(engine), meant=meant(engine, ("duckdb", "spark"))
    )


def _files_of_one_format(source: Source) -> tuple[Source, ...]:
    """Return the files of one log, all of one known format."""
    files = source.files()
    readers = {file.format: reader_of(file) for file in files}
    if len(readers) > 1:
        raise InputError("files-formats-differ", path=source.name, names=", ".join(sorted(readers)))
    if len(files) > 1 and table_reader_of(files[0]) is None:
        raise InputError("files-not-one-log", path=source.name, name=reader_of(files[0]).name)
    return files


def _refuse_index(options: ReadOptions) -> None:
    if options.index is not None:
        raise ParameterError("rows-order-of-files", parameter="index")

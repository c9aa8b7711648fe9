"""Contract of a reader of another package, to be run in its own tests."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.findings import Findings
from veilog.logs.input.formats import Reader, ReadRequest
from veilog.logs.input.lifecycle import EVERY, INTERVALS, as_intervals, wants_intervals
from veilog.logs.input.roles import declared_roles
from veilog.logs.input.source import DEFAULT_OPTIONS, Given, ReadOptions, Source
from veilog.logs.tables.events import log_from_table
from veilog.logs.tables.table_reader import TableReader

_STEPS = f"{ACTIVITY} {LIFECYCLE}"
_WAYS = tuple(
    ReadOptions(lifecycle=lifecycle, classifier=classifier)
    for lifecycle in (None, "complete", "start", EVERY, INTERVALS)
    for classifier in (None, _STEPS)
    if lifecycle != INTERVALS or classifier is None
)
"""Options with which neighbours are read."""
_FEW = 7
"""Number of rows of a batch, so that a case of a small log lies in several."""


def check_reader(reader: Reader, files: Sequence[Given]) -> None:
    """Check that a reader keeps its contract on these files, or on tables in memory.

    It recognises them and nothing else. It gives a log whose events are grouped by case, with its findings, and the
    same one again. The reading of a case does not depend on the other cases. An error about a damaged or missing file
    is an :class:`InputError` that names it. The batches of a table hold the log that reading it whole gives.

    Args:
        reader: Reader to check.
        files: Files or tables. Two of them must be neighbours: one has one case more, and is otherwise the same.

    Raises:
        AssertionError: The message names every rule that is broken.

    """
    broken: dict[str, str] = {}
    logs: list[EventLog] = []
    readable: list[Given] = []
    for given in files:
        what = os.fspath(given) if isinstance(given, str | os.PathLike) else f"a {type(given).__name__}"
        try:
            logs.append(_read_log(reader, Source(given)))
        except Exception as error:  # noqa: BLE001 - every error of a reader is reported
            broken.setdefault("", f"It cannot read a log that it is given: {what} made a {_error_text(error)}.")
            continue
        readable.append(given)
        for rule, how in (*_badly_read(reader, given, logs[-1]), *_badly_batched(reader, given, logs[-1])):
            broken.setdefault(rule, f"{rule}: of {what} {how}.")
        if isinstance(given, str | os.PathLike):
            for rule, how in _badly_refused(reader, Path(given)):
                broken.setdefault(rule, f"{rule}: {how}.")
    for rule, how in _read_together(reader, readable, logs):
        broken.setdefault(rule, f"{rule}: {how}.")
    if broken:
        raise AssertionError(f"Reader {reader.name!r} breaks its contract. {' '.join(broken.values())}")


def _read_log(reader: Reader, source: Source, declared: ReadOptions = DEFAULT_OPTIONS) -> EventLog:
    findings = Findings(path=source.name, collect_all=True)
    intervals = wants_intervals(declared.lifecycle)
    if intervals:
        declared = replace(declared, lifecycle=EVERY)
    roles = None
    if isinstance(reader, TableReader):
        roles = declared_roles(reader.columns(source), declared, public=reader.declares)
    log = reader.read(source, ReadRequest(declared, findings, roles))
    return as_intervals(log, findings, (roles and roles.transition) or LIFECYCLE) if intervals else log


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _badly_read(reader: Reader, given: Given, log: EventLog) -> Iterator[tuple[str, str]]:
    """Yield the rules that concern one log by itself, and how they are broken."""
    if not reader.recognises(Source(given)):
        yield "It does not recognise a log that it reads", "it said no"
    for other in ("log.unheard-of", "log", object()):
        if reader.recognises(Source(other)):
            yield "It recognises what is none of its logs", f"it also said yes to {other!r}"
            break
    case = log.events.column(CASE_INDEX).to_numpy()
    if len(case) and (case.min() < 0 or case.max() >= log.cases.num_rows or (np.diff(case) < 0).any()):
        yield "Events are not grouped by case", f"{CASE_INDEX!r} is not ascending within the cases"
        return
    if log.events.column(TIMESTAMP).type != TIMESTAMP_TYPE:
        yield "Times are of another type", f"{TIMESTAMP!r} is {log.events.column(TIMESTAMP).type}"
    source = Source(given)
    if log.source != (None if source.name is None else str(source.path)):
        yield "The log does not name its source", f"its source is {log.source!r}"
    again = _read_log(reader, source)
    if not (again.events.equals(log.events) and again.cases.equals(log.cases) and again.findings == log.findings):
        yield "It is not deterministic", "it read something else the second time"


def _badly_batched(reader: Reader, given: Given, log: EventLog) -> Iterator[tuple[str, str]]:
    """Yield batches of a table that hold other events than the whole log."""
    if not isinstance(reader, TableReader):
        return
    source, findings = Source(given), Findings(collect_all=True)
    names, notes = reader.columns(source), reader.notes(source)
    roles = declared_roles(names, DEFAULT_OPTIONS, public=reader.declares)
    extra = [name for name in (EVENT_INDEX, notes.case_key) if name in names and name not in roles.named]
    wanted = [name for name in (*roles.named, *extra) if name is not None]
    batches = list(reader.batches(source, ReadRequest(findings=findings, roles=roles), wanted, size=_FEW))
    if any(batch.schema.names != wanted for batch in batches):
        yield "Batches have other columns than requested", f"they have {batches[0].schema.names}, not {wanted}"
        return
    rows = sum(batch.num_rows for batch in batches)
    if reader.rows(source) not in (None, rows):
        yield "It gives another number of rows", f"{reader.rows(source)}, and there are {rows}"
    held = Counter[Any]()
    if rows:
        table = pa.Table.from_batches(batches)
        held = _cases(log_from_table(table, roles, findings, source=None, case_key=notes.case_key))
    filled = Counter({case: count for case, count in _cases(log).items() if case[1]})
    if held != filled:
        yield "Batches hold another log than reading it whole gives", f"{_first(held - filled, filled - held)} differs"


def _badly_refused(reader: Reader, path: Path) -> Iterator[tuple[str, str]]:
    """Yield errors about a damaged or missing file that are wrong or do not name it."""
    content = path.read_bytes()
    middle = len(content) // 2
    damaged = {
        "an empty file": b"",
        "a file that ends too early": content[:middle],
        "a file with other bytes in its middle": content[:middle] + bytes(range(256)) + content[middle + 256 :],
        "a file of something else": bytes(range(256)) * 16,
    }
    suffix = "".join(path.suffixes[-2:]) if path.name.lower().endswith(".gz") else path.suffix
    with tempfile.TemporaryDirectory(prefix="veilog-") as folder:
        for what, data in (*damaged.items(), ("a missing file", None)):
            place = Path(folder) / f"damaged{suffix}"
            place.unlink(missing_ok=True)
            if data is not None:
                place.write_bytes(data)
            try:
                log = _read_log(reader, Source(place))
            except InputError as error:
                if place.name not in str(error):
                    yield "An error does not name the file", f"{what} made {error}"
            except Exception as error:  # noqa: BLE001 - the check searches for it
                yield "An error is no InputError", f"{what} made a {_error_text(error)}"
            else:
                if data is None or not isinstance(log, EventLog):
                    yield "It reads what is not there", f"{what} was read"


def _read_together(reader: Reader, files: Sequence[Given], logs: list[EventLog]) -> Iterator[tuple[str, str]]:
    """Yield cases that are read differently when the log has one case more.

    It compares the neighbours among these logs, read with all options that fit both.
    """
    found = False
    for (of_small, small), (of_large, large) in permutations(zip(files, logs, strict=True), 2):
        more = Counter(_names(large))
        more.subtract(_names(small))
        if sorted(count for count in more.values() if count) != [1]:
            continue
        found = True
        for declared in _WAYS:
            try:
                both = [_read_log(reader, Source(given), declared) for given in (of_small, of_large)]
            except (InputError, ParameterError):
                continue
            changed = _cases(both[0], whole=reader.typed) - _cases(both[1], whole=reader.typed)
            if changed:
                yield (
                    "One case more changes how another one is read",
                    f"{_first(changed)} differs{_declaration_text(declared)}",
                )
    if not found:
        yield "It was not tried whether one case changes how others are read", "no two files differ by one case"


def _declaration_text(declared: ReadOptions) -> str:
    said = {"lifecycle": declared.lifecycle, "classifier": declared.classifier}
    given = ", ".join(f"{name}={value!r}" for name, value in said.items() if value is not None)
    return f" with {given}" if given else ""


def _names(log: EventLog) -> list[str]:
    return [str(name) for name in log.cases.column(ACTIVITY).to_pylist()]


def _cases(log: EventLog, *, whole: bool = False) -> Counter[tuple[str, tuple[Any, ...]]]:
    """Return each case's count, by name, activities and times; ``whole``: all columns."""
    names = [name for name in log.events.column_names if name not in (CASE_INDEX, EVENT_INDEX)] if whole else []
    columns = [log.events.column(name).to_pylist() for name in (ACTIVITY, TIMESTAMP, *names)]
    events = [repr(row) for row in zip(*columns, strict=True)]
    offsets = log.offsets.tolist()
    parts = (tuple(events[start:stop]) for start, stop in pairwise(offsets))
    return Counter(zip(_names(log), parts, strict=True))


def _first(*differences: Counter[tuple[str, tuple[Any, ...]]]) -> str:
    name = next((case[0] for difference in differences for case in difference), "")
    return f"case {name!r}"

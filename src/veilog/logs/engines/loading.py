"""Tables of any kind into DuckDB piece by piece, through the checks of
:func:`veilog.logs.tables.events.rows.log_from_table`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from veilog.errors import InputError
from veilog.logs.engines.keys import ACTIVITY_BITS, EventQuery, given_key, sql_text, timed_key
from veilog.logs.findings import Findings
from veilog.logs.input.lifecycle import Transitions
from veilog.logs.input.roles import Roles
from veilog.logs.input.source import Source
from veilog.logs.tables.events.checks import RowFindings, blank, check_bad, check_names, count_times
from veilog.logs.tables.pieces import Piece, pieces

__all__ = ["load"]


def load(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Source], roles: Roles, findings: Findings
) -> EventQuery:
    """All rows of these files as one relation; faults are decided here, so that what is grouped is clean."""
    # A database file takes the rows, so that they do not count against the memory.
    folder = connection.execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
    connection.execute(f"ATTACH {sql_text(str(Path(folder) / 'events.duckdb'))} AS store")
    connection.execute("USE store")
    connection.execute("CREATE TABLE events (c VARCHAR, o BIGINT, i BIGINT, t BIGINT, m TINYINT, g BIGINT, a INTEGER)")
    state = _Loading(Transitions(roles.lifecycle))
    for file in files:
        for piece in pieces(file, roles, findings, alone=len(files) == 1):
            _insert(connection, piece, state, findings)
        state.rows_before = state.rows
    state.transitions.done(findings, told_apart=roles.transition in roles.classifier)
    where = ""
    if state.absent:
        if not state.timed and findings.policy("missing-timestamp") != "drop":
            findings.add("no-timestamps", "the column of timestamps is empty", count=state.absent)
        elif findings.add("missing-timestamp", state.absent_where, count=state.absent) == "drop":
            where = "WHERE m <> 1"
            state.kept -= state.absent
    if state.rows and not state.kept:
        raise InputError("not-event-left", path=files[0].path)
    count_times(findings, state.kept, naive=state.naive, offsets=state.offsets, cut=state.cut, epochs=state.epochs)
    case = "c, o" if state.nameless else "c"
    if state.indexed:
        _note_index(connection, f"FROM events {where} GROUP BY {case} HAVING bool_or(g IS NULL)", findings)
    given = f", {given_key('g', 'a')} AS x" if state.indexed else ""
    events = f"SELECT {case}, {timed_key('coalesce(t, 0)', 'a')} AS k, t IS NULL AS m{given} FROM events {where}"
    start, end = connection.execute(f"SELECT min(t), max(t) FROM events {where}").fetchall()[0]
    return EventQuery(events, list(state.codes), True, state.empty_cases, case, start, end, state.indexed)


def _note_index(connection: duckdb.DuckDBPyConnection, cases: str, findings: Findings) -> None:
    """The finding about cases in which some event has no explicit index."""
    found = f"SELECT count(*), arg_min(c, i) FROM (SELECT c, min(i) AS i {cases})"
    count, example = connection.execute(found).fetchall()[0]
    if count:
        findings.add("event-index-missing", f"case {example!r}", count=count)


@dataclass
class _Loading:
    """What is known of the rows so far."""

    transitions: Transitions
    codes: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    rows_before: int = 0
    kept: int = 0
    absent: int = 0
    absent_where: str = ""
    timed: bool = False
    nameless: bool = False
    indexed: bool = False
    naive: int = 0
    cut: int = 0
    empty_cases: int = 0
    offsets: set[int] = field(default_factory=set)
    epochs: Counter[str] = field(default_factory=Counter)


def _insert(connection: duckdb.DuckDBPyConnection, piece: Piece, state: _Loading, findings: Findings) -> None:
    start, size = state.rows, len(piece.names)
    state.rows += size
    state.empty_cases += piece.empty_cases
    rows = RowFindings(findings, piece.line_of, start - state.rows_before)
    nameless = blank(piece.names)
    keep = np.ones(size, dtype=np.bool_)
    if piece.transitions is not None:
        keep &= state.transitions.keep(piece.labels, piece.transitions)
    names, keep = check_names(piece.names, piece.labels, keep, rows, piece.inexact)
    labels = piece.labels if piece.joined is None else piece.joined
    times = piece.times
    keep = check_bad(times, piece.stamps, keep, rows)
    absent = ~times.known & ~times.bad & keep
    if absent.any() and not state.absent:
        state.absent_where = rows.where(int(absent.argmax()))
    state.absent += int(absent.sum())
    state.kept += int(keep.sum())
    state.timed |= bool(((times.known | times.bad) & keep).any())
    state.nameless |= bool((nameless & keep).any())
    state.indexed |= piece.given is not None
    state.naive += times.naive
    state.cut += times.cut
    state.offsets |= times.offsets
    state.epochs.update(times.epochs)

    encoded = labels.dictionary_encode().combine_chunks()
    encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
    known = [state.codes.setdefault(label, len(state.codes)) for label in _used(encoded, keep)]
    if len(state.codes) >= 1 << ACTIVITY_BITS:
        raise InputError("more-activities", path=findings.path, value=1 << ACTIVITY_BITS)
    position = np.arange(start, start + size)
    batch = pa.table(
        {
            "c": names if piece.key is None else piece.key,
            "o": pa.array(position, pa.int64(), mask=~nameless),
            "i": pa.array(position, pa.int64()),
            "t": pa.array(times.micros, pa.int64(), mask=~times.known),
            "m": pa.array(absent.astype(np.int8) + 2 * times.bad.astype(np.int8), pa.int8()),
            "g": pa.nulls(size, pa.int64()) if piece.given is None else piece.given,
            "a": pa.array(np.asarray(known, np.int32)[encoded.indices.fill_null(0).to_numpy()] if known else position),
        }
    )
    if not keep.all():
        batch = batch.filter(pa.array(keep))
    connection.register("batch", batch)
    connection.execute("INSERT INTO events SELECT * FROM batch")
    connection.unregister("batch")


def _used(encoded: Any, keep: Any) -> list[str]:
    """The labels of a dictionary, in its order; those only in rows left out become the first kept one."""
    labels = encoded.dictionary.to_pylist()
    used = np.zeros(len(labels), dtype=np.bool_)
    indices = encoded.indices.fill_null(0).to_numpy()
    used[indices[keep]] = True
    kept = next((label for label, wanted in zip(labels, used.tolist(), strict=True) if wanted), None)
    return [] if kept is None else [label if wanted else kept for label, wanted in zip(labels, used, strict=True)]

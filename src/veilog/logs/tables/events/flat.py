"""An event log as a flat table with a row for each event, so that reading the table gives the log again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import OutputError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, EventLog
from veilog.logs.tables.events.checks import blank

__all__ = ["check_flat", "flat_table"]

Mask = npt.NDArray[np.bool_]


def check_flat(log: EventLog, path: Path, what: str = "CSV") -> None:
    """Refuse to write a log to a flat table, such as CSV, that it cannot hold."""
    advice = "Write .xes.gz or .parquet, or accept the loss (--lossy)."
    empty = int((np.diff(log.offsets) == 0).sum())
    if empty:
        raise OutputError("cases-no-event-cannot", path=path, advice=advice, empty=empty, what=what)
    names = log.cases.column(ACTIVITY)
    if len(pc.unique(names)) < len(names):
        raise OutputError("several-cases-same-name", path=path, advice=advice, what=what)
    if blank(names.cast(pa.string())).any():
        raise OutputError("case-no-name-needs", path=path, advice=advice, what=what)


def flat_table(log: EventLog, *, keyed: bool = False, case_index: bool = False) -> pa.Table:
    """One row for each event, in the order of the event index; with it as a column where times do not tell the order.

    Reading the table again gives the same events in the same order in every case. ``keyed`` says that columns keep
    their metadata; ``case_index`` adds ``case:index``.
    """
    table = log.to_arrow(keyed=keyed)
    if case_index:
        table = table.append_column(CASE_INDEX, log.events.column(CASE_INDEX))
    index = log.events.column(EVENT_INDEX).cast(pa.int64()).to_numpy()
    case = log.events.column(CASE_INDEX).cast(pa.int64()).to_numpy()
    times = log.events.column(TIMESTAMP)
    micros = pc.fill_null(times.cast(pa.int64()), 0).to_numpy()
    timeless = np.zeros(log.cases.num_rows, dtype=np.bool_)
    timeless[case[_null(times)]] = True
    same = case[1:] == case[:-1]
    rising = index[1:] > index[:-1]
    timely = micros[1:] > micros[:-1]
    level = (micros[1:] == micros[:-1]) | timeless[case[1:]]
    if bool((~same | (timely & ~timeless[case[1:]]) | (level & rising)).all()):
        if not bool(rising.all()):
            table = table.take(pa.array(np.argsort(index, kind="stable")))
        return table
    if not bool((rising | ~same).all()):
        index = np.arange(len(index))
    table = table.append_column(EVENT_INDEX, pa.array(index, pa.int64()))
    return table.take(pa.array(np.argsort(index, kind="stable")))


def _null(column: Any) -> Mask:
    mask: Mask = pc.is_null(column).to_numpy()
    return mask

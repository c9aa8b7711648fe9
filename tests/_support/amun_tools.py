"""Logs of (activity, seconds) for tests of Amun, and its paper's example."""

import datetime
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import openly
import pyarrow as pa

import veilog
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Sequences
from veilog.methods._events.assemble import Details, assemble_log
from veilog.methods._sampling import AnnotatedLog, annotated
from veilog.methods.amun import Precision
from veilog.privacy.domain import Domain

SECOND = 1_000_000
MODES = ("sampling", "filtering", "oversampling")

EXAMPLE = {  # Table 1; the 8th to the 11th of August 2020
    1: [("A", "8 10:20"), ("B", "8 10:50"), ("C", "8 16:15")],
    2: [("D", "8 12:37"), ("A", "8 14:37"), ("E", "8 15:07"), ("C", "8 20:31")],
    3: [("A", "9 13:30"), ("B", "9 13:55"), ("C", "9 20:55")],
    4: [("D", "9 15:00"), ("A", "9 17:00"), ("B", "9 17:40"), ("C", "9 23:05")],
    5: [("A", "9 17:25"), ("E", "9 17:55"), ("C", "10 23:55")],
    6: [("A", "11 17:00"), ("B", "11 17:27"), ("C", "11 23:45")],
}
MINUTES_OF_TABLE_2 = Precision.of(1, 600)
"""Ten time units of Table 2, which are minutes there."""
WORST = Fraction(7, 20)
"""(1 - delta) / 2 at delta = 0.3."""


def log_of(cases: list[list[tuple[str, int]]]) -> EventLog:
    """Return a log from cases of (activity, seconds)."""
    labels = tuple(sorted({activity for case in cases for activity, _ in case}))
    codes = np.array([labels.index(a) for case in cases for a, _ in case], dtype=np.int32)
    times = np.array([t * SECOND for case in cases for _, t in case], dtype=np.int64)
    offsets = np.cumsum([0, *map(len, cases)])
    return assemble_log(Details(Sequences(labels, codes, offsets), times), Metadata())


def example() -> EventLog:
    def seconds(text: str) -> int:
        moment = datetime.datetime.strptime(f"2020-08-{text} +0000", "%Y-%m-%d %H:%M %z")
        return int(moment.timestamp())

    return log_of([[(activity, seconds(text)) for activity, text in case] for case in EXAMPLE.values()])


def view_of(log: EventLog) -> AnnotatedLog:
    return annotated(log, log.variants, Domain())[0]


def by_case(view: AnnotatedLog, values: Any) -> list[list[Any]]:
    return [values[a:b].tolist() for a, b in itertools.pairwise(view.offsets.tolist())]


def released(log: EventLog, **parameters: Any) -> veilog.Release:
    return openly.release(log, "amun", as_published=True, **parameters)


def times_of(log: EventLog) -> list[list[int]]:
    times = log.events.column(TIMESTAMP).cast(pa.int64()).to_numpy()
    return [times[a:b].tolist() for a, b in itertools.pairwise(log.offsets.tolist())]

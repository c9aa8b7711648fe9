"""All prefixes of the cases of a log, in columns: what is known of each, and what is yet to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from veilog._typing import BoolArray, FloatArray, Int32Array, IntArray
from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.logs.variants import Variants
from veilog.measures.durations import known_spans, known_times, timed
from veilog.measures.measure import Log
from veilog.measures.persons import in_order

RECENT = 5
"""How many of the last activities of a prefix a predictor sees."""
MOST_OUTCOMES = 50
SEED = 1
_HOUR = 3_600_000_000


@dataclass(frozen=True, eq=False)
class PrefixTable:
    """A row for each prefix, the empty one and the whole case included; equal cases share theirs where times do not
    matter. Activities are numbers below ``activities``."""

    activities: int
    recent: Int32Array
    """Its last activities, a column each, the last one first; ``activities + 1`` before the first event."""
    length: IntArray
    weight: IntArray
    """How many cases have it here."""
    following: IntArray
    """The next activity; ``activities`` where the case ends."""
    end: IntArray
    """The last activity of the case; -1 where it has none."""
    case: IntArray
    """The row of the case, or of the variant."""
    elapsed: FloatArray
    """Hours since the first event of the case; NaN where unknown."""
    remaining: FloatArray
    """Hours until its last."""

    def __len__(self) -> int:
        return len(self.weight)

    def unfinished_only(self, classes: IntArray) -> IntArray:
        """Return these classes of the prefixes, and -1 for those that are the whole case."""
        return np.where(self.following < self.activities, classes, -1)

    def drawn(self, wanted: BoolArray, most: int) -> tuple[IntArray, IntArray]:
        """Return the rows that are wanted and how much each counts; drawn at random where that is more than so many."""
        rows = np.flatnonzero(wanted)
        weight = self.weight[rows]
        if weight.sum() > most:
            generator = np.random.default_rng(SEED)
            weight = generator.multivariate_hypergeometric(weight, most, method="marginals")
        return rows[weight > 0], weight[weight > 0]


def prefixes(log: Log, labels: Mapping[str, int], *, by_case: bool, times: bool) -> PrefixTable:
    """Return the prefixes of a log, its activities numbered by these labels; of each case by itself, or of each variant
    once. Times are of cases."""
    if by_case and isinstance(log, EventLog):
        names, numbers = log.activity_codes
        offsets, counts, order = log.offsets, np.ones(log.number_of_cases, dtype=np.int64), in_order(log)
    else:
        variants = log if isinstance(log, Variants) else log.variants
        names, numbers = list(variants.labels), variants.codes.astype(np.int64)
        offsets, counts, order = variants.offsets, variants.counts, np.arange(len(variants))
    codes = np.array([labels.get(name, -1) for name in names], dtype=np.int64)[numbers]  # a part's log keeps all names
    lengths = np.diff(offsets)
    sizes = lengths[order] + 1
    case = np.repeat(order, sizes)
    length = np.arange(len(case)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    event = offsets[case] + length
    padded = np.append(codes, -1)
    recent = np.full((len(case), RECENT), len(labels) + 1, dtype=np.int32)
    for back in range(RECENT):
        inside = length > back
        recent[inside, back] = padded[event[inside] - back - 1]
    ended = length == lengths[case]
    last = np.where(lengths > 0, padded[offsets[1:] - 1], -1)
    elapsed, remaining = _clock(log, case, event, length) if times else (np.full(len(case), np.nan),) * 2
    following = np.where(ended, len(labels), padded[event])
    return PrefixTable(len(labels), recent, length, counts[case], following, last[case], case, elapsed, remaining)


def _clock(log: Log, case: IntArray, event: IntArray, length: IntArray) -> tuple[FloatArray, FloatArray]:
    assert isinstance(log, EventLog)
    micros, known = known_times(log)
    first, last = np.zeros((2, log.number_of_cases), dtype=np.int64)
    cases, first_known, last_known = known_spans(log)
    first[cases], last[cases] = first_known, last_known
    elapsed, remaining = np.full(len(case), np.nan), np.full(len(case), np.nan)
    rows = np.flatnonzero(length)
    rows = rows[known[event[rows] - 1]]
    now = micros[event[rows] - 1]
    elapsed[rows] = (now - first[case[rows]]) / _HOUR
    remaining[rows] = (last[case[rows]] - now) / _HOUR
    return elapsed, remaining


def has_times(log: Log) -> bool:
    """Return whether the log has times that mean something."""
    try:
        events = timed(log, "").events
        return bool(events.column(TIMESTAMP).null_count < len(events))
    except ParameterError:
        return False


def outcomes(used: EventLog, judged: EventLog, attribute: str) -> tuple[IntArray, IntArray] | None:
    """Return the values of an attribute as numbers, case by case, -1 where there is none; None where the log that is
    used does not have it. Of an attribute of events the last known value counts."""
    known = _values(judged, attribute)
    if known is None:
        names = judged.cases.column_names
        raise ParameterError(
            "prediction-attribute-missing",
            parameter="targets",
            attribute=attribute,
            meant=meant(attribute, names),
            names=", ".join(names),
        )
    own = _values(used, attribute)
    if own is None:
        return None
    coding = {value: number for number, value in enumerate(sorted({*own, *known} - {None}, key=str))}
    if len(coding) > MOST_OUTCOMES:
        raise ParameterError(
            "prediction-outcomes-too-many",
            parameter="targets",
            attribute=attribute,
            number=len(coding),
            most_outcomes=MOST_OUTCOMES,
        )
    first, second = (np.array([coding.get(value, -1) for value in values], dtype=np.int64) for values in (own, known))
    return first, second


def _values(log: EventLog, attribute: str) -> Sequence[str | None] | None:
    if attribute in log.cases.column_names:
        found: list[str | None] = log.cases.column(attribute).cast(pa.string()).to_pylist()
        return found
    if attribute not in log.events.column_names:
        return None
    column = log.events.column(attribute)
    rows = np.flatnonzero(column.is_valid().to_numpy())
    owner = np.repeat(np.arange(log.number_of_cases), np.diff(log.offsets))
    last: list[str | None] = [None] * log.number_of_cases
    for case, value in zip(
        owner[rows].tolist(), column.take(pa.array(rows)).cast(pa.string()).to_pylist(), strict=True
    ):
        last[case] = value
    return last

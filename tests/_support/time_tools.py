"""Tools for tests of released times: small logs, times for them, and their gaps."""

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from veilog.logs.eventlog import START, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Sequences, Variants
from veilog.methods._events.assemble import released_cases
from veilog.methods._events.times.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

UTC = datetime.UTC
YEAR = (datetime.datetime(2024, 1, 1, tzinfo=UTC), datetime.datetime(2025, 1, 1, tzinfo=UTC))
HOSPITAL = hospital(1500, seed=5)


def log_of(*cases: list[tuple[str, int | None]]) -> EventLog:
    """Return a log from cases of (activity, seconds)."""
    flat = [(i, *event) for i, case in enumerate(cases) for event in case]
    seconds = [None if s is None else s * 1_000_000 for _, _, s in flat]
    return EventLog(
        pa.table(
            {
                "case:index": pa.array([i for i, _, _ in flat], pa.int64()),
                "event:index": pa.array(range(len(flat)), pa.int64()),
                "concept:name": pa.array([a for _, a, _ in flat], pa.string()),
                "time:timestamp": pa.array(seconds, pa.int64()).cast(TIMESTAMP_TYPE),
            }
        ),
        pa.table({"concept:name": pa.array([str(i) for i in range(len(cases))])}),
    )


def timed(
    log: EventLog,
    epsilon: str,
    seed: int,
    window: Any = YEAR,
    variants: Variants | None = None,
    delta: str = "0",
    remark: Any = lambda text: None,
) -> tuple[Sequences, np.ndarray]:
    """Return times for the log's own variants, so that only the times are tested."""
    source = noise.seeded(seed)
    cases = released_cases(variants or log.variants, noise.generator(source))
    curator = Curator(log.variants, log=log, randomness=source)
    return cases.rows(0, len(cases)), released_times(
        curator, Fraction(epsilon), cases, window=window, delta=Fraction(delta), remark=remark
    )


def gaps_of(cases: Sequences, times: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    """Return the seconds between directly following events, by pair."""
    inner = np.ones(len(cases.codes), dtype=bool)
    inner[cases.offsets[:-1][cases.lengths > 0]] = False
    at = np.flatnonzero(inner)
    keys = cases.codes[at - 1].astype(np.int64) * len(cases.labels) + cases.codes[at]
    gaps = (times[at] - times[at - 1]) / 1e6
    return {
        (cases.labels[key // len(cases.labels)], cases.labels[key % len(cases.labels)]): gaps[keys == key]
        for key in np.unique(keys).tolist()
    }


def original_of(log: EventLog) -> tuple[Sequences, np.ndarray]:
    column = log.events.column("concept:name").combine_chunks().dictionary_encode()
    column = column if isinstance(column, pa.DictionaryArray) else column.combine_chunks()
    codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    times = log.events.column("time:timestamp").cast(pa.int64()).to_numpy()
    return Sequences(tuple(column.dictionary.to_pylist()), codes, log.offsets), times


def durations_of(cases: Sequences, times: np.ndarray) -> np.ndarray:
    going = cases.lengths > 0
    return (times[cases.offsets[1:][going] - 1] - times[cases.offsets[:-1][going]]) / 1e6


def processing_of(log: EventLog) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the seconds of each activity's events, and the events that overlap.

    An event overlaps if it begins before the one before it ended.
    """
    cases, times = original_of(log)
    began = log.events.column(START).cast(pa.int64()).to_numpy()
    took = {label: (times - began)[cases.codes == code] / 1e6 for code, label in enumerate(cases.labels)}
    inner = np.ones(len(times), dtype=bool)
    inner[cases.offsets[:-1][cases.lengths > 0]] = False
    return took, inner & (began < np.concatenate([times[:1], times[:-1]]))

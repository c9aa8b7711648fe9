"""What an attacker knows or wants to learn besides activities: times of events, and an attribute of a case."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import IntArray
from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import ACTIVITY, TIMESTAMP, EventLog
from veilog.privacy.cases import attribute_column, attribute_level

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Unit = Literal["seconds", "minutes", "hours", "days"]
UNITS: tuple[Unit, ...] = get_args(Unit)


def with_times(log: EventLog, unit: str) -> EventLog:
    """Return the log whose activities have their time, cut to whole units in UTC, in their names.

    An event without a time keeps its name, so that it tells nothing more.
    """
    if unit not in UNITS:
        raise ParameterError(
            "disclosure-time-unit-unknown",
            parameter="time",
            unit=unit,
            meant=meant(unit, UNITS),
            names=", ".join(UNITS),
        )
    times = pc.floor_temporal(log.events.column(TIMESTAMP), unit=unit.removesuffix("s"))
    told = pc.strftime(times, format="%Y-%m-%dT%H:%M:%SZ")
    names = log.events.column(ACTIVITY).cast(pa.string())
    labels = pc.if_else(pc.is_valid(told), pc.binary_join_element_wise(names, pc.fill_null(told, ""), " "), names)
    place = log.events.column_names.index(ACTIVITY)
    return replace(log, events=log.events.set_column(place, ACTIVITY, labels))


def variant_of_cases(log: EventLog) -> IntArray:
    """The row of the variant of each case, in the log's order of cases."""
    variants = log.variants
    column = log.events.column(ACTIVITY).cast(pa.string()).dictionary_encode().unify_dictionaries().combine_chunks()
    place = {label: code for code, label in enumerate(variants.labels)}
    recode = np.array([place.get(label, 0) for label in column.dictionary.to_pylist()], dtype=np.int64)
    codes = recode[column.indices.to_numpy(zero_copy_only=False)] if len(recode) else np.zeros(0, dtype=np.int64)
    prints = _fingerprints(variants.codes.astype(np.int64), variants.offsets)
    order = np.argsort(prints)
    found: IntArray = order[np.searchsorted(prints[order], _fingerprints(codes, log.offsets))]
    return found


def _fingerprints(codes: IntArray, offsets: IntArray) -> npt.NDArray[np.uint64]:
    """64 bits for each sequence: a random number for each pair of an activity and a position, added up."""
    lengths = np.diff(offsets)
    rng = np.random.default_rng(0)
    places = rng.integers(0, 1 << 64, int(lengths.max(initial=0)) + 1, dtype=np.uint64)
    labels = np.random.default_rng(1).integers(0, 1 << 64, int(codes.max(initial=0)) + 1, dtype=np.uint64)
    position = np.arange(len(codes)) - np.repeat(offsets[:-1], lengths)
    mixed = (places[position] ^ labels[codes]) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    out: npt.NDArray[np.uint64] = sums[offsets[1:]] - sums[offsets[:-1]]
    return out


def cases_by_value(log: EventLog, name: str) -> csr_matrix:
    """Return for each variant how many of its cases have each value of an attribute; that a case has none is a value.

    A case has the last value of an attribute of its events.
    """
    from scipy.sparse import csr_matrix

    level, column = attribute_level(log, name), attribute_column(log, name)
    codes = pc.dictionary_encode(column.cast(pa.string()), null_encoding="encode").combine_chunks()
    found: IntArray = codes.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    values = len(codes.dictionary)
    if level == "event":
        known = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        owner = np.repeat(np.arange(log.cases.num_rows), np.diff(log.offsets))[known]
        of_case = np.full(log.cases.num_rows, values, dtype=np.int64)
        of_case[owner] = found[known]  # of several assignments to one place the last one stays
        found, values = of_case, values + 1
    variant = variant_of_cases(log)
    return csr_matrix((np.ones(len(found)), (variant, found)), shape=(len(log.variants), values))

"""Absolute log difference: how many edits of activities turn one log into the other, proved optimal or bounded.

Reference: M. Rafiei et al., "TraVaG: Differentially private trace variant generation using GANs" (2023), supplement,
section 1.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.measure import Found, Pair, Progress, our_measure
from veilog.measures.similarity._bounds import (
    EXACT_PAIRS,
    MOST_PAIRS,
    Bounds,
    NearDistances,
    shared_distances,
)
from veilog.measures.similarity.distances import (
    KEPT_BYTES,
    EditDistances,
    as_strings,
    by_length,
    edit_costs,
    edit_distances,
    present,
    without_overlap,
)
from veilog.measures.similarity.transport import LARGEST_MASS, transport

Buffer = Literal["length", "maximum"]

_BEYOND_LARGEST = 10
"""What the published heat maps add to the largest distance to make a buffer's cost."""


@dataclass(frozen=True)
class LogDifference:
    """Absolute log difference: an integer, and the optimum exactly (gap 0), unless it is only ``bounded``."""

    value: int
    gap: int
    """Of a ``bounded`` difference: the true value is at most ``value``, and at most this much less."""
    buffer: Buffer
    buffer_cost: int | None
    """What an unmatched case costs under the buffer ``maximum``; None where it costs its length."""
    unmatched: int
    """Cases matched with the buffer: the difference of the logs' sizes."""
    matched: int
    """Cases matched with an equal one before any transport."""
    rows: int
    """Variants of the original that remained after that."""
    columns: int
    """Variants of the release that remained after that."""
    bounded: bool = False
    """There were too many pairs of variants to find the optimum."""

    @property
    def lower(self) -> int:
        return self.value - self.gap


def absolute_log_difference(
    original: Variants,
    released: Variants,
    *,
    buffer: Buffer = "length",
    memory: int = KEPT_BYTES,
    most_pairs: int = MOST_PAIRS,
    progress: Progress | None = None,
) -> LogDifference:
    """Absolute log difference: how many edits of activities turn one log into the other, at least.

    Cases of equal variants are matched first, min(n, n') of each. Of the rest, every case of the smaller log becomes
    one of the larger log at their Levenshtein distance; those of the larger log that are left over are matched with a
    buffer. ``length`` charges for each of them its length (Algorithm 2 of TraVaG's supplement), ``maximum`` the
    largest distance between any two remaining variants plus 10 (its heat maps), which is 10 where one log has none
    remaining. The difference is symmetric; two empty logs have difference 0.

    Guarantee: the optimum, in integers, proved by a dual solution of the same value; else a :class:`SolverError`.
    Distances take up to ``memory`` bytes; where they do not fit they are computed in each round. Beyond ``most_pairs``
    pairs of remaining variants the result is ``bounded``: it lies for certain from ``lower`` to ``value``.
    """
    if buffer not in get_args(Buffer):
        raise ParameterError("similarity-buffer-unknown", parameter="buffer", buffer=buffer)
    return _differences(original, released, (buffer,), memory, most_pairs, progress)[0]


def absolute_log_differences(
    original: Variants,
    released: Variants,
    *,
    most_pairs: int = MOST_PAIRS,
    progress: Progress | None = None,
    shared: NearDistances | None = None,
) -> tuple[LogDifference, LogDifference]:
    """With both buffers, length and maximum. Where they can only be bounded, the work is done once for both."""
    by_length, by_maximum = _differences(
        original, released, ("length", "maximum"), KEPT_BYTES, most_pairs, progress, shared
    )
    return by_length, by_maximum


def _differences(
    original: Variants,
    released: Variants,
    buffers: tuple[Buffer, ...],
    memory: int,
    most_pairs: int,
    progress: Progress | None,
    shared: NearDistances | None = None,
) -> list[LogDifference]:
    rows, columns = as_strings(original.sequences, released.sequences)
    a, b, matched = without_overlap(rows, original.counts.tolist(), columns, released.counts.tolist())
    rows, a, columns, b = *present(rows, a), *present(columns, b)
    remaining = (len(rows), len(columns))
    if sum(a) > sum(b):
        # Distances are symmetric: the smaller log is always the one that supplies, and the buffer with it.
        rows, a, columns, b = columns, b, rows, a
    unmatched = sum(b) - sum(a)
    if sum(b) > LARGEST_MASS:
        raise ParameterError("similarity-cases-too-many", parameter="released", largest_mass=LARGEST_MASS)
    facts: dict[str, Any] = {"unmatched": unmatched, "matched": matched, "rows": remaining[0], "columns": remaining[1]}
    if len(rows) * len(columns) > most_pairs:
        (rows, a), (columns, b) = by_length(rows, a), by_length(columns, b)
        bounds = Bounds(rows, columns, np.array(a, dtype=np.int64), np.array(b, dtype=np.int64), progress, shared)
        return _bounded_differences(bounds, buffers, facts)
    distances = edit_distances(rows, columns, keep_bytes=memory, progress=progress)
    return [_difference(distances, a, b, buffer, facts, progress) for buffer in buffers]


def _difference(
    distances: EditDistances,
    a: list[int],
    b: list[int],
    buffer: Buffer,
    facts: dict[str, Any],
    progress: Progress | None,
) -> LogDifference:
    charge = None if buffer == "length" else distances.largest() + _BEYOND_LARGEST
    if facts["unmatched"] == 0:
        last, supply = None, a
    else:
        last = distances.column_lengths if charge is None else np.full(len(b), charge)
        supply = [*a, facts["unmatched"]]
    if not b:
        value, gap = 0, 0
    elif not a and last is not None:
        value, gap = sum(n * int(c) for n, c in zip(b, last.tolist(), strict=True)), 0
    else:
        plan = transport(
            np.array(supply, dtype=np.int64),
            np.array(b, dtype=np.int64),
            edit_costs(distances, "plain", last),
            progress=progress,
        )
        value, gap = int(plan.cost), int(plan.gap)
    return LogDifference(value, gap, buffer, charge, **facts)


def _bounded_differences(bounds: Bounds, buffers: tuple[Buffer, ...], facts: dict[str, Any]) -> list[LogDifference]:
    """One plan bounds the difference from above with either buffer, the boxes bound it from below.

    The buffer ``maximum`` charges the same for every case that is left over: the largest distance, which lies in an
    interval itself, plus 10.
    """
    flows, edits = bounds.plan("plain", bounds.lengths[1])
    moved = sum(m * d for m, d in zip(flows.mass.tolist(), edits.tolist(), strict=True))
    left_over = flows.rows == len(bounds.rows)
    lengths = bounds.lengths[1][flows.columns[left_over]]
    found = []
    for buffer in buffers:
        by_length = buffer == "length"
        least = math.floor(bounds.lower("plain", buffer_by_length=by_length))
        if by_length:
            most = moved + sum(m * n for m, n in zip(flows.mass[left_over].tolist(), lengths.tolist(), strict=True))
        else:
            shortest, longest = bounds.largest()
            least += facts["unmatched"] * (shortest + _BEYOND_LARGEST)
            most = moved + facts["unmatched"] * (longest + _BEYOND_LARGEST)
        found.append(LogDifference(most, max(0, most - least), buffer, None, bounded=True, **facts))
    return found


def _both(pair: Pair) -> tuple[LogDifference, LogDifference]:
    most = MOST_PAIRS if pair.exact else EXACT_PAIRS
    return absolute_log_differences(
        *pair.variants, most_pairs=most, progress=pair.progress, shared=pair.once(shared_distances)
    )


def _found(difference: LogDifference) -> Found:
    if difference.bounded:
        return Found.bounded(difference.lower, difference.value)
    return Found(difference.value)


BY_LENGTH = our_measure("absolute_log_difference", lambda pair: _found(pair.once(_both)[0]))
BY_MAXIMUM = our_measure("absolute_log_difference_maximum", lambda pair: _found(pair.once(_both)[1]))

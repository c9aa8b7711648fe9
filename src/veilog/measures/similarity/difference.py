"""Absolute log difference: edits of activities between two logs, proved optimal.

Reference: M. Rafiei et al., "TraVaG: Differentially private trace variant generation using GANs" (2023), supplement,
section 1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair, Progress, our_measure
from veilog.measures.similarity._bounds import EXACT_PAIRS, MOST_PAIRS
from veilog.measures.similarity.distances import (
    KEPT_BYTES,
    EditDistances,
    as_strings,
    edit_costs,
    edit_distances,
    present,
    remove_overlap,
)
from veilog.measures.similarity.transport import LARGEST_MASS, transport

Buffer = Literal["length", "maximum"]

_BEYOND_LARGEST = 10
"""Addend of the published heat maps: a buffer costs the largest distance and this."""


@dataclass(frozen=True)
class LogDifference:
    """Absolute log difference: an integer, and the optimum exactly (gap 0)."""

    value: int
    gap: int
    buffer: Buffer
    buffer_cost: int | None
    """Cost of an unmatched case under the buffer ``maximum``; None if it is its length."""
    unmatched: int
    """Cases matched with the buffer: the difference of the logs' sizes."""
    matched: int
    """Cases matched with an equal one before any transport."""
    rows: int
    """Variants of the original that remained after that."""
    columns: int
    """Variants of the release that remained after that."""


def absolute_log_difference(
    original: Variants,
    released: Variants,
    *,
    buffer: Buffer = "length",
    memory: int = KEPT_BYTES,
    most_pairs: int = MOST_PAIRS,
    progress: Progress | None = None,
) -> LogDifference:
    """Return the absolute log difference: the fewest edits between the two logs.

    Cases of equal variants are matched first, min(n, n') of each. Of the rest, every case of the smaller log becomes
    one of the larger log at their Levenshtein distance; those of the larger log that are left over are matched with a
    buffer. ``length`` charges for each of them its length (Algorithm 2 of TraVaG's supplement), ``maximum`` the
    largest distance between any two remaining variants plus 10 (its heat maps), which is 10 where one log has none
    remaining. The difference is symmetric; two empty logs have difference 0.

    Guarantee: the optimum, in integers, proved by a dual solution of the same value; else a :class:`SolverError`.
    Distances take up to ``memory`` bytes; where they do not fit they are computed in each round. Beyond ``most_pairs``
    pairs of remaining variants it is a :class:`ParameterError`.
    """
    if buffer not in get_args(Buffer):
        raise ParameterError("similarity-buffer-unknown", parameter="buffer", buffer=buffer)
    return absolute_log_differences(
        original, released, (buffer,), memory=memory, most_pairs=most_pairs, progress=progress
    )[0]


def absolute_log_differences(
    original: Variants,
    released: Variants,
    buffers: Sequence[Buffer] = ("length", "maximum"),
    *,
    memory: int = KEPT_BYTES,
    most_pairs: int = MOST_PAIRS,
    progress: Progress | None = None,
) -> list[LogDifference]:
    """Return the differences with these buffers, which share their distances."""
    rows, columns = as_strings(original.sequences, released.sequences)
    a, b, matched = remove_overlap(rows, original.counts.tolist(), columns, released.counts.tolist())
    rows, a, columns, b = *present(rows, a), *present(columns, b)
    remaining = (len(rows), len(columns))
    if sum(a) > sum(b):
        # Distances are symmetric: the smaller log is always the one that supplies, and the buffer with it.
        rows, a, columns, b = columns, b, rows, a
    unmatched = sum(b) - sum(a)
    if sum(b) > LARGEST_MASS:
        raise ParameterError("similarity-cases-too-many", parameter="released", largest_mass=LARGEST_MASS)
    facts: dict[str, Any] = {"unmatched": unmatched, "matched": matched, "rows": remaining[0], "columns": remaining[1]}
    if (pairs := len(rows) * len(columns)) > most_pairs:
        raise ParameterError("difference-of-many-variants", parameter="released", pairs=pairs, most=most_pairs)
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


def _both(pair: Pair) -> list[LogDifference]:
    most = MOST_PAIRS if pair.exact else EXACT_PAIRS
    return absolute_log_differences(*pair.variants, most_pairs=most, progress=pair.progress)


BY_LENGTH = our_measure("absolute_log_difference", lambda pair: pair.once(_both)[0].value)
BY_MAXIMUM = our_measure("absolute_log_difference_maximum", lambda pair: pair.once(_both)[1].value)

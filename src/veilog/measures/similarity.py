"""How much of a log a release keeps: relative log similarity and absolute log difference, each proved optimal.

References: M. Rafiei, W. van der Aalst, "Privacy-preserving process mining: quantification of disclosure risks and
utility" (2020), section 4.2; M. Rafiei et al., "TraVaG: Differentially private trace variant generation using GANs"
(2023), supplement, sections 1.1 and 1.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from veilog.errors import ParameterError, SolverError
from veilog.logs.variants import IntArray, Variants
from veilog.measures.distances import KEPT_BYTES, EditDistances, Progress, Strings, as_strings, edit_distances
from veilog.measures.transport import GAP, LARGEST_MASS, Costs, FloatArray, Plan, transport

__all__ = ["Buffer", "LogDifference", "Matching", "Similarity", "absolute_log_difference", "relative_log_similarity"]

Matching = Literal["direct", "exact"]
Buffer = Literal["length", "maximum"]

_BEYOND_LARGEST = 10
"""What the published heat maps add to the largest distance to make a buffer's cost."""


@dataclass(frozen=True)
class Similarity:
    """Relative log similarity with its certificate: the true value lies in [``lower``, ``upper``]."""

    value: float
    """1 minus the cost of the plan found. Without an early stop this is the optimum."""
    loss: float
    """The cost of the plan found: 1 - ``value`` before rounding."""
    lower: float
    upper: float
    gap: float
    """Duality gap, upper bound minus lower bound of the loss: at most 1e-9, or the tolerance asked for."""
    matching: Matching
    rows: int
    """Variants of the original that were transported, the others being matched by equal ones beforehand."""
    columns: int
    """Variants of the release that were transported."""


@dataclass(frozen=True)
class LogDifference:
    """Absolute log difference: an integer, and the optimum exactly (gap 0)."""

    value: int
    gap: int
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


def relative_log_similarity(
    original: Variants,
    released: Variants,
    *,
    matching: Matching = "direct",
    tolerance: float = 0.0,
    memory: int = KEPT_BYTES,
    progress: Progress | None = None,
) -> Similarity:
    """Relative log similarity: 1 - the earth mover's distance of the two variant distributions.

    Moving a share of cases from variant s to variant t costs Levenshtein(s, t) / max(|s|, |t|), and 0 when both are
    empty. ``direct`` first matches equal variants, min(f, f') of each, and moves the rest, which is not scaled back to
    1 (TraVaG's supplement); ``exact`` is the optimum over all plans. The normalised distance breaks the triangle
    inequality (ab, aba, ba), so direct <= exact; on most logs they are equal. The worked example of the first paper
    prints a loss of 0.24, which is 0.245 = 2 * 0.49 * 0.25, its own table summed, in two digits.

    Guarantee: ``lower`` <= true value <= ``upper`` by linear programming duality, whatever the solver did; their
    difference ``gap`` is at most 1e-9, else a :class:`SolverError` is raised. A ``tolerance`` above that allows an
    early stop. Up to that gap the value is symmetric and does not depend on the order of rows or on the codes of
    activities. Distances take up to ``memory`` bytes; where they do not fit they are computed in each round.

    Two empty logs have similarity 1. An empty log has no distribution to compare with another's, so one empty log is
    a :class:`ParameterError`.
    """
    if matching not in get_args(Matching):
        raise ParameterError(f"There is no matching {matching!r}.", parameter="matching", advice="direct or exact.")
    if not (math.isfinite(tolerance) and tolerance >= 0.0):
        raise ParameterError(f"A tolerance of {tolerance} makes no sense.", parameter="tolerance", advice="0 or more.")
    cases, released_cases = original.cases, released.cases
    if cases == 0 and released_cases == 0:
        return Similarity(1.0, 0.0, 1.0, 1.0, 0.0, matching, 0, 0)
    if cases == 0 or released_cases == 0:
        which = "original" if cases == 0 else "released"
        raise ParameterError(
            f"The {which} log has no cases: an empty log has no distribution of variants, and its similarity to "
            f"another log is not defined.",
            parameter=which,
        )
    # In units of 1 / lcm all shares are integers, and nothing is lost to rounding.
    whole = math.lcm(cases, released_cases)
    rows, columns = as_strings(original.sequences, released.sequences)
    a = [n * (whole // cases) for n in original.counts.tolist()]
    b = [n * (whole // released_cases) for n in released.counts.tolist()]
    rest_a, rest_b, _ = _without_overlap(rows, a, columns, b)
    moved = sum(rest_a)
    if moved == 0:
        return Similarity(1.0, 0.0, 1.0, 1.0, 0.0, matching, 0, 0)
    if matching == "direct":
        a, b = rest_a, rest_b
    rows, a, columns, b = *_present(rows, a), *_present(columns, b)
    transported = (len(rows), len(columns))
    if len(rows) < len(columns):
        # Distances are symmetric, and the search adds more arcs a round for rows than for columns.
        rows, a, columns, b = columns, b, rows, a
    masses, targets, unit, slack = _in_units(a, b, whole)
    distances = edit_distances(rows, columns, keep_bytes=memory, progress=progress)
    plan = transport(
        masses, targets, _normalised(distances), scale=float(1 / unit), tolerance=tolerance, progress=progress
    )
    loss = _exact_loss(plan, distances) * unit
    most = min(Fraction(1), loss + slack)
    least = min(loss, max(Fraction(0), Fraction(plan.lower) * unit - slack))
    gap = float(most - least)
    if gap > max(GAP, tolerance):
        raise SolverError(f"The similarity could only be proved to within {gap:.1e}.")
    return Similarity(float(1 - loss), float(loss), float(1 - most), float(1 - least), gap, matching, *transported)


def absolute_log_difference(
    original: Variants,
    released: Variants,
    *,
    buffer: Buffer = "length",
    memory: int = KEPT_BYTES,
    progress: Progress | None = None,
) -> LogDifference:
    """Absolute log difference: how many edits of activities turn one log into the other, at least.

    Cases of equal variants are matched first, min(n, n') of each. Of the rest, every case of the smaller log becomes
    one of the larger log at their Levenshtein distance; those of the larger log that are left over are matched with a
    buffer. ``length`` charges for each of them its length (Algorithm 2 of TraVaG's supplement), ``maximum`` the
    largest distance between any two remaining variants plus 10 (its heat maps), which is 10 where one log has none
    remaining. The difference is symmetric; two empty logs have difference 0.

    Guarantee: the optimum, in integers, proved by a dual solution of the same value; else a :class:`SolverError`.
    Distances take up to ``memory`` bytes; where they do not fit they are computed in each round.
    """
    if buffer not in get_args(Buffer):
        raise ParameterError(f"There is no buffer {buffer!r}.", parameter="buffer", advice="length or maximum.")
    rows, columns = as_strings(original.sequences, released.sequences)
    a, b, matched = _without_overlap(rows, original.counts.tolist(), columns, released.counts.tolist())
    rows, a, columns, b = *_present(rows, a), *_present(columns, b)
    remaining = (len(rows), len(columns))
    if sum(a) > sum(b):
        # Distances are symmetric: the smaller log is always the one that supplies, and the buffer with it.
        rows, a, columns, b = columns, b, rows, a
    unmatched = sum(b) - sum(a)
    if sum(b) > LARGEST_MASS:
        raise ParameterError(f"There are more than {LARGEST_MASS} cases to match.", parameter="released")
    distances = edit_distances(rows, columns, keep_bytes=memory, progress=progress)
    charge = None if buffer == "length" else distances.largest() + _BEYOND_LARGEST
    if unmatched == 0:
        last, supply = None, a
    else:
        last = distances.column_lengths if charge is None else np.full(len(columns), charge)
        supply = [*a, unmatched]
    if not b:
        value, gap = 0, 0
    elif not rows and last is not None:
        value, gap = sum(n * int(c) for n, c in zip(b, last.tolist(), strict=True)), 0
    else:
        plan = transport(
            np.array(supply, dtype=np.int64), np.array(b, dtype=np.int64), _plain(distances, last), progress=progress
        )
        value, gap = int(plan.cost), int(plan.gap)
    return LogDifference(value, gap, buffer, charge, unmatched, matched, *remaining)


def _without_overlap(rows: Strings, a: list[int], columns: Strings, b: list[int]) -> tuple[list[int], list[int], int]:
    """What is left of both when min(a, b) of each equal pair is taken away, and how much that was."""
    position = {s: j for j, s in enumerate(columns)}
    a, b, matched = list(a), list(b), 0
    for i, s in enumerate(rows):
        j = position.get(s)
        if j is not None:
            both = min(a[i], b[j])
            a[i] -= both
            b[j] -= both
            matched += both
    return a, b, matched


def _present(strings: Strings, masses: list[int]) -> tuple[Strings, list[int]]:
    """Those with a positive mass."""
    kept = [i for i, m in enumerate(masses) if m > 0]
    return [strings[i] for i in kept], [masses[i] for i in kept]


def _in_units(a: list[int], b: list[int], whole: int) -> tuple[IntArray, IntArray, Fraction, Fraction]:
    """Shares ``a / whole`` and ``b / whole`` as machine integers, what one of them is as a share, and what that costs.

    Nothing, as long as the sum fits the solver after division by the greatest common divisor. Beyond that (logs of
    more than about 10**8 cases each) shares are rounded to 2**-52 of the sum; moving mass costs at most 1, so the
    value changes by no more than half the sum of all changes, which is the last number returned.
    """
    factor, total = math.gcd(*a, *b), sum(a)
    if total // factor <= LARGEST_MASS:
        exact_a = np.array([m // factor for m in a], dtype=np.int64)
        exact_b = np.array([m // factor for m in b], dtype=np.int64)
        return exact_a, exact_b, Fraction(factor, whole), Fraction(0)
    rounded_a, rounded_b = _apportioned(a, total), _apportioned(b, total)
    moved = sum(
        abs(m * LARGEST_MASS - r * total)
        for masses, rounded in ((a, rounded_a), (b, rounded_b))
        for m, r in zip(masses, rounded, strict=True)
    )
    unit = Fraction(total, LARGEST_MASS * whole)
    slack = Fraction(moved, 2 * LARGEST_MASS * whole)
    return np.array(rounded_a, dtype=np.int64), np.array(rounded_b, dtype=np.int64), unit, slack


def _apportioned(masses: list[int], total: int) -> list[int]:
    """Positive integers in proportion to the masses with the sum ``LARGEST_MASS``."""
    rounded = [max(1, m * LARGEST_MASS // total) for m in masses]
    # The largest takes the difference: at most one for each mass, where it has 2**52 / len(masses) or more.
    rounded[rounded.index(max(rounded))] += LARGEST_MASS - sum(rounded)
    return rounded


def _normalised(distances: EditDistances) -> Costs:
    """Levenshtein distance divided by the length of the longer sequence."""
    lengths, others = distances.row_lengths.astype(float), np.maximum(distances.column_lengths, 1).astype(float)
    scratch = np.empty((0, len(others)))

    def fill(start: int, out: FloatArray) -> None:
        nonlocal scratch
        if len(scratch) < len(out):
            scratch = np.empty(out.shape)
        longer = scratch[: len(out)]
        np.maximum(lengths[start : start + len(out), None], others, out=longer)
        out[...] = distances.block(start, start + len(out))
        out /= longer

    def pick(rows: IntArray, columns: IntArray) -> FloatArray:
        longer: FloatArray = np.maximum(lengths[rows], others[columns])
        return distances.pairs(rows, columns) / longer

    return Costs(distances.shape, fill, pick)


def _plain(distances: EditDistances, last: IntArray | None) -> Costs:
    """The Levenshtein distance itself, and as a last row, where there is one, the costs of the buffer."""
    count, columns = distances.shape

    def fill(start: int, out: FloatArray) -> None:
        stop = min(start + len(out), count)
        out[: stop - start] = distances.block(start, stop)
        if last is not None and start + len(out) > count:
            out[-1] = last

    def pick(rows: IntArray, columns: IntArray) -> FloatArray:
        costs = np.empty(len(rows))
        real = rows < count
        costs[real] = distances.pairs(rows[real], columns[real])
        if last is not None:
            costs[~real] = last[columns[~real]]
        return costs

    return Costs((count + (last is not None), columns), fill, pick, integral=True)


def _exact_loss(plan: Plan, distances: EditDistances) -> Fraction:
    """The cost of a plan without any rounding, so that it is the same whichever optimal plan was found."""
    edits = distances.pairs(plan.rows, plan.columns)
    longer = np.maximum(np.maximum(distances.row_lengths[plan.rows], distances.column_lengths[plan.columns]), 1)
    sums: dict[int, int] = {}
    for mass, distance, length in zip(plan.mass.tolist(), edits.tolist(), longer.tolist(), strict=True):
        sums[length] = sums.get(length, 0) + mass * distance
    return sum((Fraction(amount, length) for length, amount in sums.items()), Fraction(0))

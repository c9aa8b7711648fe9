"""Relative log similarity of two logs' variants, proved optimal or bounded.

References: M. Rafiei, W. van der Aalst, "Privacy-preserving process mining: quantification of disclosure risks and
utility" (2020), section 4.2; M. Rafiei et al., "TraVaG: Differentially private trace variant generation using GANs"
(2023), supplement, section 1.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError, SolverError
from veilog.logs.edits import Strings
from veilog.logs.variants import Variants
from veilog.measures.measure import Found, Pair, Progress, our_measure
from veilog.measures.similarity._bounds import (
    BOUNDED_BY,
    EXACT_PAIRS,
    MOST_PAIRS,
    TransportProblem,
    cheap_plan,
    least_costs,
)
from veilog.measures.similarity.distances import (
    KEPT_BYTES,
    CostKind,
    EditDistances,
    as_strings,
    edit_costs,
    edit_distances,
    present,
    remove_overlap,
    sort_by_length,
)
from veilog.measures.similarity.transport import GAP, LARGEST_MASS, TransportPlan, transport

Matching = Literal["direct", "exact"]


@dataclass(frozen=True)
class Similarity:
    """Relative log similarity and its certificate: it lies in [``lower``, ``upper``]."""

    value: float
    """1 minus the cost of the plan found. Without an early stop this is the optimum, unless it is only ``bounded``."""
    loss: float
    """The cost of the plan found: 1 - ``value`` before rounding."""
    lower: float
    upper: float
    gap: float
    """Upper bound minus lower bound of the loss: at most 1e-9, or the tolerance asked for, unless it is ``bounded``."""
    matching: Matching
    rows: int
    """Variants of the original that were transported, the others being matched by equal ones beforehand."""
    columns: int
    """Variants of the release that were transported."""
    bounded: bool = False
    """There were too many pairs of variants to find the optimum: ``value`` is the lower end of an interval."""
    certain: bool = True
    """``upper`` holds for certain; else but for a chance of one in a million, over the variants that were drawn."""


def relative_log_similarity(
    original: Variants,
    released: Variants,
    *,
    matching: Matching = "direct",
    tolerance: float = 0.0,
    memory: int = KEPT_BYTES,
    most_pairs: int = MOST_PAIRS,
    progress: Progress | None = None,
) -> Similarity:
    """Return the relative log similarity: 1 - earth mover's distance of the variants.

    Moving a share of cases from variant s to variant t costs Levenshtein(s, t) / max(|s|, |t|), and 0 when both are
    empty. ``direct`` first matches equal variants, min(f, f') of each, and moves the rest, which is not scaled back to
    1 (TraVaG's supplement); ``exact`` is the optimum over all plans. The normalised distance breaks the triangle
    inequality (ab, aba, ba), so direct <= exact; on most logs they are equal. The worked example of the first paper
    prints a loss of 0.24, which is 0.245 = 2 * 0.49 * 0.25, its own table summed, in two digits.

    Guarantee: ``lower`` <= true value <= ``upper`` by linear programming duality, whatever the solver did; their
    difference ``gap`` is at most 1e-9, else a :class:`SolverError` is raised. A ``tolerance`` above that allows an
    early stop. Up to that gap the value is symmetric and does not depend on the order of rows or on the codes of
    activities. Distances take up to ``memory`` bytes; where they do not fit they are computed in each round.

    Beyond ``most_pairs`` pairs of variants to transport the result is ``bounded``: ``lower`` holds as certainly,
    ``upper`` too unless ``certain`` is False, and the value is ``lower``. They may be far apart, less so with more
    ``most_pairs``, and may change when the two logs change places.

    Two empty logs have similarity 1. An empty log has no distribution to compare with another's, so one empty log is
    a :class:`ParameterError`.
    """
    if matching not in get_args(Matching):
        raise ParameterError("similarity-matching-unknown", parameter="matching", matching=matching)
    if not (math.isfinite(tolerance) and tolerance >= 0.0):
        raise ParameterError("similarity-tolerance-invalid", parameter="tolerance", tolerance=tolerance)
    return _similarities(original, released, (matching,), tolerance, memory, most_pairs, progress)[0]


def relative_log_similarities(
    original: Variants,
    released: Variants,
    *,
    most_pairs: int = MOST_PAIRS,
    progress: Progress | None = None,
) -> tuple[Similarity, Similarity]:
    """Return both matchings, direct and exact; bounds take the work of one."""
    direct, exact = _similarities(original, released, ("direct", "exact"), 0.0, KEPT_BYTES, most_pairs, progress)
    return direct, exact


def _similarities(
    original: Variants,
    released: Variants,
    matchings: tuple[Matching, ...],
    tolerance: float,
    memory: int,
    most_pairs: int,
    progress: Progress | None,
) -> list[Similarity]:
    cases, released_cases = original.cases, released.cases
    if cases == 0 and released_cases == 0:
        return [Similarity(1.0, 0.0, 1.0, 1.0, 0.0, matching, 0, 0) for matching in matchings]
    if cases == 0 or released_cases == 0:
        which = "original" if cases == 0 else "released"
        raise ParameterError("similarity-without-cases", parameter=which, which=which)
    # In units of 1 / lcm all shares are integers, and nothing is lost to rounding.
    whole = math.lcm(cases, released_cases)
    rows, columns = as_strings(original.sequences, released.sequences)
    a = [n * (whole // cases) for n in original.counts.tolist()]
    b = [n * (whole // released_cases) for n in released.counts.tolist()]
    rest_a, rest_b, _ = remove_overlap(rows, a, columns, b)
    if sum(rest_a) == 0:
        return [Similarity(1.0, 0.0, 1.0, 1.0, 0.0, matching, 0, 0) for matching in matchings]
    rest = _Shares(*present(rows, rest_a), *present(columns, rest_b), whole)
    found: dict[Matching, Similarity] = {}
    for matching in matchings:
        shares = rest if matching == "direct" else _Shares(rows, a, columns, b, whole)
        if shares.pairs <= most_pairs:
            found[matching] = _optimum(shares, matching, tolerance, memory, progress)
        elif rest.pairs <= most_pairs:
            found[matching] = _exact_by_rest(rest, tolerance, memory, progress)
        elif matching not in found:
            found |= _bounded_similarities(rest, progress, max(BOUNDED_BY, most_pairs))
    return [found[matching] for matching in matchings]


@dataclass(frozen=True, eq=False)
class _Shares:
    """Variants with what is to be moved from and to them, in units of 1 / ``whole``."""

    rows: Strings
    a: list[int]
    columns: Strings
    b: list[int]
    whole: int

    @property
    def pairs(self) -> int:
        return len(self.rows) * len(self.columns)


def _optimum(
    shares: _Shares, matching: Matching, tolerance: float, memory: int, progress: Progress | None
) -> Similarity:
    rows, a, columns, b = shares.rows, shares.a, shares.columns, shares.b
    if len(rows) < len(columns):
        # Distances are symmetric, and the search adds more arcs a round for rows than for columns.
        rows, a, columns, b = columns, b, rows, a
    masses, targets, unit, slack = _to_units(a, b, shares.whole)
    distances = edit_distances(rows, columns, keep_bytes=memory, progress=progress)
    plan = transport(
        masses,
        targets,
        edit_costs(distances, "normalised"),
        scale=float(1 / unit),
        tolerance=tolerance,
        progress=progress,
    )
    loss = _exact_loss(plan, distances) * unit
    most = min(Fraction(1), loss + slack)
    least = min(loss, max(Fraction(0), Fraction(plan.lower) * unit - slack))
    if float(most - least) > max(GAP, tolerance):
        raise SolverError("similarity-not-tight", most=float(most - least))
    return _similarity_interval(least, loss, most, matching, shares)


def _similarity_interval(
    least: Fraction,
    loss: Fraction,
    most: Fraction,
    matching: Matching,
    shares: _Shares,
    *,
    bounded: bool = False,
    certain: bool = True,
) -> Similarity:
    return Similarity(
        value=float(1 - loss),
        loss=float(loss),
        lower=float(1 - most),
        upper=float(1 - least),
        gap=float(most - least),
        matching=matching,
        rows=len(shares.rows),
        columns=len(shares.columns),
        bounded=bounded,
        certain=certain,
    )


def _exact_by_rest(rest: _Shares, tolerance: float, memory: int, progress: Progress | None) -> Similarity:
    """Return bounds of exact matching by the rest after direct matching.

    See :func:`_bounded_similarities`."""
    direct = _optimum(rest, "direct", tolerance, memory, progress)
    masses, targets, unit, slack = _to_units(rest.a, rest.b, rest.whole)
    distances = edit_distances(rest.rows, rest.columns, keep_bytes=memory, progress=progress)
    plan = transport(masses, targets, edit_costs(distances, "metric"), scale=float(1 / unit), progress=progress)
    least = max(Fraction(0), Fraction(plan.lower) * unit - slack)
    most = Fraction(direct.loss) + Fraction(direct.gap)
    return _similarity_interval(min(least, most), most, most, "exact", rest, bounded=True)


def _bounded_similarities(rest: _Shares, progress: Progress | None, pairs: int) -> dict[Matching, Similarity]:
    """Bound both matchings by what is left after equal variants were matched.

    A plan for the rest is, with equal variants matched, a plan for everything: its cost bounds both from above. From
    below direct matching is bounded as :mod:`veilog.measures.similarity._bounds` proves. For exact matching this
    needs a metric: d = L / max(|s|, |t|) is none, but m = 2 L / (|s| + |t| + L) is (Li, Liu, "A normalized Levenshtein
    distance metric", 2007), and m <= d because |s| + |t| + L >= 2 max(|s|, |t|). Under a metric no plan beats one that
    matches equal variants first: mass that goes i -> s and s -> j goes as cheaply i -> j with s -> s. So the optimum of
    the rest at costs m is at most the optimum of everything at costs m, which is at most that at costs d.
    """
    sides = sort_by_length(rest.rows, rest.a), sort_by_length(rest.columns, rest.b)
    (rows, a), (columns, b) = sorted(sides, key=lambda side: (len(side[0]), side[0]))  # the shorter bids
    masses, targets, unit, slack = _to_units(a, b, rest.whole)
    problem = TransportProblem(rows, columns, masses, targets, progress, pairs)
    flows, edits, prices = cheap_plan(problem)
    lengths, others = (np.array([len(s) for s in side]) for side in (rows, columns))
    loss = _sum_costs(flows.mass, edits, np.maximum(lengths[flows.rows], others[flows.columns])) * unit
    most = min(Fraction(1), loss + slack)
    found: dict[Matching, Similarity] = {}
    kinds: dict[Matching, CostKind] = {"direct": "normalised", "exact": "metric"}
    costs, certain = least_costs(problem, prices, [*kinds.values()])
    for matching, kind in kinds.items():
        least = min(most, max(Fraction(0), Fraction(costs[kind]) * unit - slack))
        found[matching] = _similarity_interval(least, most, most, matching, rest, bounded=True, certain=certain)
    return found


def _to_units(a: list[int], b: list[int], whole: int) -> tuple[IntArray, IntArray, Fraction, Fraction]:
    """Return shares as machine integers, the share of one, and the cost of rounding.

    Nothing, as long as the sum fits the solver after division by the greatest common divisor. Beyond that (logs of
    more than about 10**8 cases each) shares are rounded to 2**-52 of the sum; moving mass costs at most 1, so the
    value changes by no more than half the sum of all changes, which is the last number returned.
    """
    factor, total = math.gcd(*a, *b), sum(a)
    if total // factor <= LARGEST_MASS:
        exact_a = np.array([m // factor for m in a], dtype=np.int64)
        exact_b = np.array([m // factor for m in b], dtype=np.int64)
        return exact_a, exact_b, Fraction(factor, whole), Fraction(0)
    rounded_a, rounded_b = _apportion(a, total), _apportion(b, total)
    moved = sum(
        abs(m * LARGEST_MASS - r * total)
        for masses, rounded in ((a, rounded_a), (b, rounded_b))
        for m, r in zip(masses, rounded, strict=True)
    )
    unit = Fraction(total, LARGEST_MASS * whole)
    slack = Fraction(moved, 2 * LARGEST_MASS * whole)
    return np.array(rounded_a, dtype=np.int64), np.array(rounded_b, dtype=np.int64), unit, slack


def _apportion(masses: list[int], total: int) -> list[int]:
    """Positive integers in proportion to the masses with the sum ``LARGEST_MASS``."""
    rounded = [max(1, m * LARGEST_MASS // total) for m in masses]
    # The largest takes the difference: at most one for each mass, where it has 2**52 / len(masses) or more.
    rounded[rounded.index(max(rounded))] += LARGEST_MASS - sum(rounded)
    return rounded


def _exact_loss(plan: TransportPlan, distances: EditDistances) -> Fraction:
    """Return the cost of a plan without rounding, equal for all optimal plans."""
    edits = distances.pairs(plan.rows, plan.columns)
    longer = np.maximum(np.maximum(distances.row_lengths[plan.rows], distances.column_lengths[plan.columns]), 1)
    return _sum_costs(plan.mass, edits, longer)


def _sum_costs(mass: IntArray, edits: IntArray, longer: IntArray) -> Fraction:
    sums: dict[int, int] = {}
    for m, distance, length in zip(mass.tolist(), edits.tolist(), longer.tolist(), strict=True):
        sums[length] = sums.get(length, 0) + m * distance
    return sum((Fraction(amount, max(1, length)) for length, amount in sums.items()), Fraction(0))


def _both(pair: Pair) -> tuple[Similarity, Similarity]:
    most = MOST_PAIRS if pair.exact else EXACT_PAIRS
    return relative_log_similarities(*pair.variants, most_pairs=most, progress=pair.progress)


def _to_found(similarity: Similarity) -> Found:
    if not similarity.bounded:
        return Found(similarity.value)
    return Found.bounded(similarity.lower, similarity.upper, certain=similarity.certain)


DIRECT = our_measure("relative_log_similarity", lambda pair: _to_found(pair.once(_both)[0]))
EXACT = our_measure("relative_log_similarity_exact", lambda pair: _to_found(pair.once(_both)[1]))

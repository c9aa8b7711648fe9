"""Distances between two directly-follows graphs: frequencies, times and edges.

The first two are Amun's (Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining",
2023, section 4.1). Each is the one-dimensional earth mover's distance between the two logs' edge annotations as
samples. The samples cover the union of the edges, with 0 where an edge is missing. Each has one value per edge, so the
distance is

    EMD = (1/m) sum_i |u_(i) - v_(i)|        u_(1) <= u_(2) <= ... sorted, m edges in the union.

These distances ignore which edge is which: two logs with equal counts and no edge in common have the distance 0. The
third distance, the share of directly-follows mass that moved, compares the edges themselves:

    moved = (1/2) sum_e |u_e / sum(u) - v_e / sum(v)|        0: the same shares; 1: no edge in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.durations import case_times, timed, within_cases
from veilog.measures.measure import Pair, our_measure

HOURS_PER_MONTH = 365.25 * 24 / 12
"""Hours of a twelfth of 365.25 days; the papers tabulate the time EMD in months."""


_MICROSECONDS_PER_HOUR = 3_600_000_000
_FEW_PAIRS = 1 << 16
"""Up to so many possible pairs, or as many as there are events, each is counted in its place."""


@dataclass(frozen=True, eq=False)
class _Graph:
    """Edges as ascending keys ``source * labels + target``, each with a value."""

    labels: tuple[str, ...]
    keys: IntArray
    values: FloatArray


@dataclass(frozen=True)
class EdgeShare:
    """Edge with its share of all directly-follows pairs of each log."""

    source: str
    target: str
    original: float
    released: float


@dataclass(frozen=True)
class Moved:
    """Share of directly-follows mass on other edges, and the edges by size of change."""

    share: float
    edges: tuple[EdgeShare, ...]


@dataclass(frozen=True)
class Coverage:
    """Shares of the original's activities and pairs that occur in the release.

    Read the coverage with fitness: a release that keeps only one frequent variant has a fitting model and almost no
    coverage.
    """

    activities: float
    directly_follows: float


def edge_frequencies(log: EventLog | Variants) -> dict[tuple[str, str], int]:
    """Return how often each activity directly follows another, over all cases."""
    graph = _frequencies(log)
    size = len(graph.labels)
    return {
        (graph.labels[key // size], graph.labels[key % size]): int(value)
        for key, value in zip(graph.keys.tolist(), graph.values.tolist(), strict=True)
    }


def frequency_emd(original: EventLog | Variants, released: EventLog | Variants) -> float:
    """Return the earth mover's distance between the edge frequencies of two logs.

    It is in occurrences, symmetric, and 0 for equal logs. Two logs without any directly-follows pair have the distance
    0.
    """
    return _emd(*_align_values(_frequencies(original), _frequencies(released)))


def time_emd(original: EventLog, released: EventLog) -> float:
    """Return the earth mover's distance between the edges' total times, in months.

    A pair whose time is unknown adds nothing; its edge is still in the union when it occurs elsewhere. Differences are
    not cut to whole hours. A month has ``HOURS_PER_MONTH`` hours.

    Raises:
        ParameterError: When a log has pairs but no known time at all.

    """
    graphs = []
    for log, name in ((original, "original"), (released, "released")):
        graph = _hours(log)
        if not len(graph.keys) and len(_frequencies(log).keys):
            raise ParameterError("relation-without-times", parameter=name, name=name)
        graphs.append(graph)
    return _emd(*_align_values(*graphs)) / HOURS_PER_MONTH


def moved_mass(original: EventLog | Variants, released: EventLog | Variants, *, largest: int = 10) -> Moved:
    """Return the share of directly-follows mass moved to other edges, and the changes.

    The ``largest`` changes are listed by edge. The share is 0 when neither log has a directly-follows pair.

    Raises:
        ParameterError: When exactly one of the logs has no directly-follows pair.

    """
    labels, keys, u, v = _join_edges(_frequencies(original), _frequencies(released))
    total_u, total_v = float(u.sum()), float(v.sum())
    if total_u == 0.0 and total_v == 0.0:
        return Moved(0.0, ())
    if total_u == 0.0 or total_v == 0.0:
        which = "original" if total_u == 0.0 else "released"
        raise ParameterError("relation-without-pairs", parameter=which, which=which)
    p, q = u / total_u, v / total_v
    change = np.abs(p - q)
    order = np.lexsort((keys, -change))[:largest]
    size = len(labels)
    edges = tuple(
        EdgeShare(labels[keys[i] // size], labels[keys[i] % size], float(p[i]), float(q[i]))
        for i in order.tolist()
        if change[i] > 0
    )
    return Moved(min(1.0, float(change.sum()) / 2), edges)


def edge_coverage(original: EventLog | Variants, released: EventLog | Variants) -> Coverage:
    """Return the shares of the original's activities and pairs that the release has.

    Each kind of pair counts once. A share is 1 where the original has none to cover.
    """
    first, second = _variants(original), _variants(released)
    known = set(second.labels)
    activities = sum(label in known for label in first.labels) / len(first.labels) if first.labels else 1.0
    _, _, u, v = _join_edges(_frequencies(first), _frequencies(second))
    pairs = float((v[u > 0] > 0).mean()) if (u > 0).any() else 1.0
    return Coverage(activities, pairs)


def _variants(log: EventLog | Variants) -> Variants:
    return log if isinstance(log, Variants) else log.variants


def _frequencies(log: EventLog | Variants) -> _Graph:
    variants = _variants(log)
    keys, inside = _pair_keys(variants.codes, variants.offsets, len(variants.labels))
    weights = np.repeat(variants.counts, variants.lengths)[:-1][inside].astype(np.float64)
    if len(variants.labels) ** 2 > max(_FEW_PAIRS, len(keys)):
        return _graph(variants.labels, keys[inside], weights)
    sums = np.bincount(keys[inside], weights).astype(np.float64)  # of integers, so their order does not show
    found = np.flatnonzero(sums)
    return _Graph(variants.labels, found, sums[found])


def _hours(log: EventLog) -> _Graph:
    labels, codes = log.activity_codes
    micros, known = case_times(log)
    keys, inside = _pair_keys(codes, log.offsets, len(labels))
    inside = inside & known[:-1] & known[1:]
    return _graph(tuple(labels), keys[inside], np.diff(micros)[inside] / _MICROSECONDS_PER_HOUR)


def _pair_keys(codes: npt.NDArray[np.integer], offsets: IntArray, size: int) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return the key of every two neighbouring events, and whether they share a case."""
    wide = codes.astype(np.int64)
    return wide[:-1] * size + wide[1:], within_cases(offsets, len(wide))


def _graph(labels: tuple[str, ...], keys: IntArray, weights: FloatArray) -> _Graph:
    found, inverse = np.unique(keys, return_inverse=True)
    # The order of the rows must not show in the last bit of a sum of times: add in the order of the values.
    order = np.lexsort((weights, inverse))
    sums = np.zeros(len(found))
    np.add.at(sums, inverse[order], weights[order])
    return _Graph(labels, found, sums)


def _join_edges(a: _Graph, b: _Graph) -> tuple[tuple[str, ...], IntArray, FloatArray, FloatArray]:
    """Return the edges of both graphs by name, with their values (0 where missing)."""
    labels = tuple(sorted(set(a.labels) | set(b.labels)))
    code = {label: i for i, label in enumerate(labels)}
    size = len(labels)
    recoded = []
    for graph in (a, b):
        names = np.array([code[label] for label in graph.labels], dtype=np.int64)
        own = max(1, len(graph.labels))
        recoded.append(names[graph.keys // own] * size + names[graph.keys % own] if len(graph.keys) else graph.keys)
    keys = np.union1d(recoded[0], recoded[1])
    u, v = np.zeros(len(keys)), np.zeros(len(keys))
    u[np.searchsorted(keys, recoded[0])] = a.values
    v[np.searchsorted(keys, recoded[1])] = b.values
    return labels, keys, u, v


def _align_values(a: _Graph, b: _Graph) -> tuple[FloatArray, FloatArray]:
    _, _, u, v = _join_edges(a, b)
    return u, v


def _emd(u: FloatArray, v: FloatArray) -> float:
    return float(np.abs(np.sort(u) - np.sort(v)).mean()) if len(u) else 0.0


def _measure_moved(pair: Pair) -> Moved:
    return moved_mass(*pair.variants)


def _largest_changes(pair: Pair) -> tuple[EdgeShare, ...]:
    """Return the edges that changed most; none where the logs cannot be compared."""
    try:
        return pair.once(_measure_moved).edges
    except ParameterError:
        return ()


def _time_emd(pair: Pair) -> float:
    return time_emd(timed(pair.original, "original"), timed(pair.released, "released"))


MOVED = our_measure("dfg_moved", lambda pair: pair.once(_measure_moved).share)
LARGEST_CHANGES = our_measure("dfg_largest_changes", _largest_changes)
COVERAGE = our_measure("coverage", lambda pair: edge_coverage(*pair.variants))
FREQUENCY_EMD = our_measure("dfg_frequency_emd", lambda pair: frequency_emd(*pair.variants))
TIME_EMD = our_measure("dfg_time_emd", _time_emd)

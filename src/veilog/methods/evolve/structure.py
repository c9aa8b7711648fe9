"""Structured release: the fine one, moved to traces that give a good model.

Models of sampled cases are poor because of impossible repetitions and rare edges, of which a few cases have one each.
The quality of a release's model can be judged without the data: it is about the same on the fine release. So structures
are tried: activities that seldom repeat do not, rare edges are left out, few variants are released. Every case of the
fine release goes to the nearest trace that is left. Of the releases near enough to the fine one, that with the best
model is taken.

All of this is post-processing of noisy answers: nothing here can query the curator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from veilog._typing import Float32Array, FloatArray, IntArray
from veilog.logs.variants import Variants
from veilog.methods.evolve.constants import Aim, Constants
from veilog.methods.evolve.prototypes import medoids
from veilog.methods.evolve.traces import Traces, distances, join_traces, occurrences, steps, strings
from veilog.mining.inductive import discover
from veilog.mining.language import judge
from veilog.mining.replay import Prefixes


@dataclass(frozen=True, eq=False)
class Weighted:
    """Distinct traces, and the number of cases that each stands for.

    The first ``real`` ones are certain to exist, and stay.
    """

    traces: Traces
    counts: IntArray
    real: int = 0

    def occurring(self) -> Weighted:
        """Return the traces that stand for some case."""
        kept = self.counts > 0
        return Weighted(self.traces.take(kept), self.counts[kept], int(kept[: self.real].sum()))


@dataclass(frozen=True, eq=False)
class Imagined:
    """Pool of traces, their likelihoods, and some of them to which cases can move."""

    pool: Traces
    p: FloatArray
    some: Traces
    size: int
    """Number of activities."""


Named = Callable[[Traces, IntArray], Variants]
"""Function that makes a log of traces and their numbers of cases."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Repeats of activities in a distribution over traces, and frequencies of edges."""

    repeats: FloatArray
    """Part of the traces with each activity that have it more than once."""
    edges: FloatArray
    """Frequency of edges over the most frequent one from there; start and end are one."""

    @staticmethod
    def of(traces: Traces, p: FloatArray, size: int) -> Structure:
        """Return the structure of traces over so many activities."""
        often = occurrences(traces, size)
        having = p @ (often > 0)
        repeats = p @ (often > 1) / np.where(having > 0, having, 1.0)
        came, to, inside = steps(traces, size)
        cells = came * (size + 1) + to
        weights = np.broadcast_to(p[:, None], cells.shape)[inside]
        flow = np.bincount(cells[inside], weights=weights, minlength=(size + 1) ** 2).reshape(size + 1, size + 1)
        largest = flow.max(axis=1, keepdims=True)
        return Structure(repeats, flow / np.where(largest > 0, largest, 1.0))

    def rarest(self, traces: Traces) -> tuple[FloatArray, FloatArray]:
        """Return frequencies of each trace's rarest repeat (inf: none) and rarest edge."""
        size = len(self.repeats)
        again = np.where(occurrences(traces, size) > 1, self.repeats, np.inf).min(axis=1, initial=np.inf)
        came, to, inside = steps(traces, size)
        edge = np.where(inside, self.edges[came, to], np.inf).min(axis=1)
        return again, edge


@dataclass(frozen=True, eq=False)
class Candidate:
    """Release that keeps a structure.

    Activities that repeat in a smaller part than ``level`` do not repeat, and edges are above ``threshold``.
    """

    level: float
    threshold: float
    goes: IntArray
    """Column to which the cases of each trace of the fine release go."""
    loss: float
    """Mean distance by which cases are moved."""


def columns_of(fine: Weighted, imagined: Imagined) -> Traces:
    """Return the traces to which cases can go: the fine release's, then other samples."""
    known = set(strings(fine.traces))
    new = [i for i, text in enumerate(strings(imagined.some)) if text not in known]
    return join_traces([fine.traces, imagined.some.take(np.array(new, dtype=np.int64))])


def candidates(fine: Weighted, columns: Traces, imagined: Imagined, settings: Constants) -> Iterator[Candidate]:
    """Yield the releases of all structures, with all nearest variants or with few."""
    moved = distances(strings(fine.traces), strings(columns))
    shares = fine.counts / fine.counts.sum()
    structure = Structure.of(imagined.pool, imagined.p, imagined.size)
    (again, edge), (all_again, all_edge) = structure.rarest(columns), structure.rarest(imagined.pool)
    tried = set()
    for level, threshold in itertools.product(settings.structure_levels, settings.structure_edges):
        if imagined.p @ ((all_again >= level) & (all_edge > threshold)) < settings.structure_mass:
            continue
        allowed = (again >= level) & (edge > threshold)
        allowed[: fine.real] = True
        if not allowed.any() or allowed.tobytes() in tried:
            continue
        tried.add(allowed.tobytes())
        for goes in _moves(moved, shares, np.flatnonzero(allowed), fine.real, settings.structure_sizes):
            yield Candidate(level, threshold, goes, float(shares @ moved[np.arange(len(goes)), goes]))


@dataclass(frozen=True, eq=False)
class Models:
    """Quality of the models of releases, judged by the fine release."""

    named: Named
    prefixes: Prefixes
    noise: float
    """Noise threshold with which models are discovered."""

    @staticmethod
    def judged_by(fine: Weighted, named: Named, settings: Constants) -> Models:
        """Return a judge by this release; of many events, by its most frequent traces."""
        order = np.argsort(-fine.counts, kind="stable")
        enough = int(np.searchsorted(np.cumsum(fine.traces.lengths[order]), settings.judged_events)) + 1
        kept = np.sort(order[:enough])
        return Models(named, Prefixes.of(named(fine.traces.take(kept), fine.counts[kept])), settings.miner_noise)

    def f_score(self, release: Weighted) -> float:
        """Return F of the model that is discovered from a release."""
        tree = discover(self.named(release.traces, release.counts), noise=self.noise)
        return judge(tree, self.prefixes).f_score


def structured(
    fine: Weighted, imagined: Imagined, aims: Sequence[Aim], noise: float, models: Models, settings: Constants
) -> list[Weighted]:
    """Return for each aim the near release with the best ``F - price * loss``.

    Only releases near enough to the fine one count. F is that of the model discovered from a release, judged by the
    fine release. ``noise`` is the part of the votes that is noise. So much of the fine release is not true anyway, and
    a distance is priced by it.
    """
    columns = columns_of(fine, imagined)
    unmoved = Candidate(0.0, 0.0, np.arange(len(fine.counts)), 0.0)
    found = sorted([unmoved, *candidates(fine, columns, imagined, settings)], key=lambda one: one.loss)
    most = max(settings.structure_fewest, settings.structure_work // (len(models.prefixes) * imagined.size))

    def moved(candidate: Candidate) -> Weighted:
        counts = np.bincount(candidate.goes, weights=fine.counts, minlength=len(columns)).astype(np.int64)
        return Weighted(columns, counts, fine.real).occurring()

    @cache
    def f_score(candidate: Candidate) -> float:
        return models.f_score(moved(candidate))

    chosen = []
    for aim in aims:
        price = aim.price / (settings.structure_noise + noise)
        near = [one for one in found if one.loss <= settings.structure_cap + aim.cap * noise]
        chosen.append(moved(_best(_thin_candidates(near, most), price, f_score)))
    return chosen


def _best(ordered: list[Candidate], price: float, f_score: Callable[[Candidate], float]) -> Candidate:
    """Return the candidate with the best ``F - price * loss``; losses ascend."""
    best, chosen = -np.inf, ordered[0]
    for candidate in ordered:
        if 1 - price * candidate.loss <= best:
            break  # a perfect model would not do either, and the others are farther away
        value = f_score(candidate) - price * candidate.loss
        if value > best:
            best, chosen = value, candidate
    return chosen


def _thin_candidates(ordered: list[Candidate], most: int) -> list[Candidate]:
    """Return all candidates, or ``most`` of them at equal steps."""
    if len(ordered) <= most:
        return ordered
    return [ordered[place] for place in np.linspace(0, len(ordered) - 1, most).round().astype(int).tolist()]


def _moves(
    moved: Float32Array, shares: FloatArray, allowed: IntArray, real: int, sizes: tuple[int, ...]
) -> Iterator[IntArray]:
    """Yield each trace's column: the nearest that is allowed or among few of these."""
    near = moved[:, allowed]
    goes = allowed[near.argmin(axis=1)]
    yield goes
    fewer = [size for size in sizes if size < len(np.unique(goes))]
    if not fewer:
        return
    first = np.arange(real)
    before = near[:, first].min(axis=1) if real else None
    order = medoids(near[:, real:], shares, max(fewer), before)
    for size in fewer:
        few = np.concatenate([first, real + order[:size]])
        yield allowed[few[near[:, few].argmin(axis=1)]]

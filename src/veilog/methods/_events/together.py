"""How attributes of cases hang together, and with the control flow: a few noisy two-way tables, and cases drawn so that
all of them agree.

Select, measure, generate, as AIM does (McKenna, Mullins, Sheldon, Miklau, VLDB 2022): in each round a noisy maximum
finds the pair whose table is farthest from what the cases drawn so far say, beyond what its noise would hide; the
curator answers with that table; and the cases are drawn again. Each attribute is drawn after those in front of it,
given up to ``MOST_PARENTS`` of them or of what the control flow says of its case: the table of all of these together is
fitted to every noisy table of two and to the attribute's own answer (iterative proportional fitting; Deming, Stephan
1940), so the cases have all of them but for rounding. What the control flow says is known of every released case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.methods._events.durations import fitted
from veilog.methods._events.orders import by_row, counted
from veilog.privacy.asking import Triples
from veilog.privacy.cases import Cases, Coding
from veilog.privacy.curator import Curator

__all__ = ["Variable", "drawn_together", "grouped", "of_the_flow", "rounds_paid"]

MOST_PARENTS = 2
CASES_A_ROUND = 150
"""Epsilon for pairs times cases, for each pair that is asked."""
SELECTING = Fraction(1, 5)
MOST_GROUPS = 24
CELLS_KNOWN = 4
"""Values are grouped so that of a table's cells each has about so many noise scales of cases."""
MOST_ENDS, MOST_ACTIVITIES, MOST_LENGTHS = 8, 8, 4
VARYING = (0.1, 0.9)
_FITTING = 25
_BLOCK = 65_536


_Rule = Callable[[IntArray, IntArray, IntArray], IntArray]
"""What sequences have, by their codes, their offsets and of each code whose it is."""


@dataclass(eq=False)
class Variable:
    """What every case has one of few values of: an attribute, or something that its activities say."""

    name: str
    size: int
    of_block: Callable[[Cases], IntArray]
    """Its value in each raw case, of that case alone."""
    shares: FloatArray
    """Of an attribute, how often it has each value; of the control flow not looked at."""
    values: IntArray
    """Its value in each released case; of an attribute as of now."""
    parents: list[tuple[Variable, FloatArray]] = field(default_factory=list)
    """What it is drawn given, and its shares given each value of these."""
    owner: npt.NDArray[np.integer] | None = None
    """Where ``values`` are those of sequences, of which there are few: the sequence of each released case."""

    @property
    def drawn(self) -> IntArray:
        """Its value in each released case."""
        return self.values if self.owner is None else np.asarray(self.values[self.owner])


def rounds_paid(epsilon: Fraction, cases: int, attributes: int, flow: int) -> int:
    """Return how many pairs are worth asking for: none where noise would drown all of them."""
    possible = sum(min(MOST_PARENTS, flow + before) for before in range(attributes))
    return int(min(float(epsilon) * cases / CASES_A_ROUND, possible))


def grouped(shares: FloatArray, epsilon: Fraction, cases: float, *, ordered: bool) -> IntArray:
    """Return for each value the number of its group, of which there are so few that tables of two can be known.

    Frequent values are groups by themselves, and the others share one; of numbers those next to each other are one. The
    last value, of having none, stays by itself.
    """
    most = int(np.clip((cases * float(epsilon) / CELLS_KNOWN) ** 0.5, 2, MOST_GROUPS))
    if len(shares) - 1 <= most:
        return np.arange(len(shares))
    known = shares[:-1]
    if ordered:
        reached = (np.cumsum(known) - known / 2) / max(float(known.sum()), 1e-12)
        groups = np.unique((reached * most).astype(np.int64), return_inverse=True)[1]
    else:
        groups = np.full(len(known), most - 1)
        groups[np.argsort(-known, kind="stable")[: most - 1]] = np.arange(most - 1)
    return np.append(groups, groups.max() + 1)


def of_the_flow(cases: Repeated) -> list[Variable]:
    """Return what the activities say of a case, by rules made of the release: the last one, whether it has each of
    those that tell cases apart, and how long it is."""
    size = len(cases.labels)
    last = _last(cases.distinct.codes.astype(np.int64), cases.distinct.offsets, size)
    often = np.bincount(last, weights=cases.counts, minlength=size + 1)[:size]
    place = np.full(size + 1, min(MOST_ENDS, int((often > 0).sum())))
    ends = np.argsort(-often, kind="stable")[: place[0]]
    place[ends] = np.arange(len(ends))
    found = [_flow("last activity", int(place.max()) + 1, lambda codes, at, _: place[_last(codes, at, size)], cases)]
    shares = _occurring(cases) / len(cases)
    telling = np.flatnonzero((shares >= VARYING[0]) & (shares <= VARYING[1]))
    most = telling[np.argsort(np.abs(shares[telling] - 0.5), kind="stable")][:MOST_ACTIVITIES]
    # By their rank: what is asked for is written into ledgers, which no label of the log enters.
    found += [
        _flow(f"whether activity {rank} occurs", 2, partial(_has, code), cases)
        for rank, code in enumerate(most.tolist(), start=1)
    ]
    edges = np.unique(np.quantile(cases.lengths, np.arange(1, MOST_LENGTHS) / MOST_LENGTHS))
    lengths = _flow("length", len(edges) + 1, lambda _, at, __: np.searchsorted(edges, np.diff(at)), cases)
    return [one for one in (*found, lengths) if np.count_nonzero(np.bincount(one.drawn)) > 1]


def _flow(name: str, size: int, rule: _Rule, cases: Repeated) -> Variable:
    one = cases.distinct
    told = rule(one.codes.astype(np.int64), one.offsets, np.repeat(np.arange(len(one)), one.lengths))

    def of_block(block: Cases) -> IntArray:
        return rule(block.codes, block.offsets, block.owners)

    return Variable(name, size, of_block, np.zeros(0), np.asarray(told, dtype=np.int64), owner=cases.owner)


def _last(codes: IntArray, offsets: IntArray, none: int) -> IntArray:
    found = np.full(len(offsets) - 1, none, dtype=np.int64)
    going = np.flatnonzero(np.diff(offsets))
    found[going] = codes[offsets[going + 1] - 1]
    return np.where(found < 0, none, found)


def _occurring(cases: Repeated) -> IntArray:
    """How many cases have each activity."""
    distinct, found = cases.distinct, np.zeros(len(cases.labels), dtype=np.int64)
    for first in range(0, len(distinct), _BLOCK):
        block = distinct.rows(first, min(first + _BLOCK, len(distinct)))
        has = np.zeros((len(block), len(found)), dtype=np.bool_)
        has[np.repeat(np.arange(len(block)), block.lengths), block.codes] = True
        found += cases.counts[first : first + len(block)] @ has
    return found


def _has(code: int, codes: IntArray, offsets: IntArray, owners: IntArray) -> IntArray:
    found = np.zeros(len(offsets) - 1, dtype=np.int64)
    found[owners[np.flatnonzero(codes == code)]] = 1
    return found


# Select, measure, generate ------------------------------------------------------------------------------------------


def drawn_together(
    curator: Curator,
    epsilon: Fraction,
    rounds: int,
    flow: list[Variable],
    attributes: list[Variable],
    codings: tuple[Coding, ...],
    labels: tuple[str, ...],
    number: float,
    rng: np.random.Generator,
) -> None:
    """Draw the attributes of the released cases, of which the original has about ``number``; each round costs an equal
    part of epsilon."""
    order = sorted(attributes, key=lambda one: one.size)
    _draw(order, rng)
    open_ = [(one, other) for i, other in enumerate(order) for one in (*flow, *order[:i])]
    measured = {id(other): 0 for other in order}
    for _ in range(rounds):
        open_ = [pair for pair in open_ if measured[id(pair[1])] < MOST_PARENTS]
        share = epsilon / rounds
        pair = open_.pop(_selected(curator, share, open_, codings, labels, number))
        table = _measured(curator, share * (1 - SELECTING), pair, codings, labels)
        one, other = pair
        drawn = one.drawn
        rows = np.bincount(drawn, minlength=one.size) / len(drawn)
        found = fitted(table, rows, other.shares, 2 / float(share * (1 - SELECTING)) ** 2)
        other.parents.append((one, found))
        measured[id(other)] += 1
        _draw(order[order.index(other) :], rng)


def _cells(pair: tuple[Variable, Variable]) -> int:
    return pair[0].size * pair[1].size


def _selected(
    curator: Curator,
    share: Fraction,
    pairs: list[tuple[Variable, Variable]],
    codings: tuple[Coding, ...],
    labels: tuple[str, ...],
    number: float,
) -> int:
    """The pair that the noisy maximum finds farthest from what was drawn, less what chance and noise alone explain."""
    expected, less = [], []
    variables = list({id(one): one for pair in pairs for one in pair}.values())
    place = {id(one): number for number, one in enumerate(variables)}
    for one, other in pairs:
        drawn = one.drawn
        counts = np.bincount(drawn * other.size + other.drawn, minlength=_cells((one, other))) * (number / len(drawn))
        expected.append(np.round(counts).astype(np.int64))
        chance = float(np.sqrt(2 / np.pi * counts).sum())
        less.append(round(chance + (one.size - 1) * (other.size - 1) / float(share * (1 - SELECTING))))
    starts = np.concatenate([[0], np.cumsum([_cells(pair) for pair in pairs])]).tolist()

    # What is asked may travel to other machines, so it holds on to no values of released cases.
    told = [one.of_block for one in variables]
    cells = [(place[id(one)], place[id(other)], other.size) for one, other in pairs]

    def of_pairs(block: Cases) -> Triples:
        values = [of_block(block) for of_block in told]
        columns = [
            start + values[first] * size + values[second]
            for start, (first, second, size) in zip(starts, cells, strict=False)
        ]
        rows = np.tile(np.arange(len(block)), len(cells))
        return rows, np.concatenate(columns), np.ones(len(rows), dtype=np.int64)

    return curator.events.most_apart(
        of_pairs,
        expected,
        less,
        share * SELECTING,
        alphabet=labels,
        codings=codings,
        purpose="the pair of attributes that tells most",
    )


def _measured(
    curator: Curator,
    epsilon: Fraction,
    pair: tuple[Variable, Variable],
    codings: tuple[Coding, ...],
    labels: tuple[str, ...],
) -> FloatArray:
    """The noisy table of two; a case adds 1 to one cell."""
    one, other = pair
    first, second, size = one.of_block, other.of_block, other.size

    def of_both(block: Cases) -> Triples:
        cells = first(block) * size + second(block)
        return np.arange(len(block)), cells, np.ones(len(block), dtype=np.int64)

    asked = curator.events.sums(
        of_both,
        _cells(pair),
        1,
        epsilon,
        alphabet=labels,
        codings=codings,
        purpose=f"{other.name} by {one.name}",
    )
    return asked.astype(np.float64).reshape(one.size, other.size)


def _draw(order: list[Variable], rng: np.random.Generator) -> None:
    """Draw these attributes, each given its parents, which come before it."""
    for one in order:
        one.values = _drawn_given(one, rng)


def _drawn_given(one: Variable, rng: np.random.Generator) -> IntArray:
    """A value for each case, such that with every parent the cases have the shares that were asked."""
    number = len(one.values)
    key = np.zeros(number, dtype=np.int64)
    for parent, _ in one.parents:
        key = key * parent.size + parent.drawn
    _, row, counts = counted(key, int(np.prod([parent.size for parent, _ in one.parents])))
    first = np.empty(len(counts), dtype=np.int64)
    first[row[::-1]] = np.arange(number)[::-1]
    table = counts[:, None] * one.shares[None, :] + 1e-12
    fits = [
        (parent.drawn[first], np.bincount(parent.drawn, minlength=parent.size)[:, None] * shares)
        for parent, shares in one.parents
    ]
    for _ in range(_FITTING if len(fits) > 1 else 1):
        for of_row, wanted in fits:
            sums = np.zeros_like(wanted)
            np.add.at(sums, of_row, table)
            table = table * (wanted / np.maximum(sums, 1e-12))[of_row] + 1e-12
        table = table * (counts / table.sum(axis=1))[:, None]
    return placed(table, row, rng)


def placed(table: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a column for each row number, those of equal rows at even places of the row's distribution."""
    order = by_row(rows, rng.random(len(rows)))
    counts = np.bincount(rows, minlength=len(table))
    row = np.repeat(np.arange(len(table)), counts)
    rank = np.arange(len(rows)) - (np.cumsum(counts) - counts)[row]
    place = (rank + rng.random(len(rows))[order]) / counts[row]
    reached = np.cumsum(table, axis=1)
    reached /= reached[:, -1:]
    flat = (reached + np.arange(len(table))[:, None]).reshape(-1)
    # Both are in order, and there are far fewer ends of columns than places: these are looked up, not those.
    ends = np.searchsorted(row + np.minimum(place, 1 - 1e-9), flat, side="left")
    before = np.cumsum(np.bincount(ends, minlength=len(rows) + 1)[: len(rows)])
    found = np.empty(len(rows), dtype=np.int64)
    found[order] = np.clip(before - row * table.shape[1], 0, table.shape[1] - 1)
    return found

"""How attributes hang together, and with the control flow: a few noisy two-way tables, and cases drawn so that all of
them agree.

Select, measure, generate, as AIM does (McKenna, Mullins, Sheldon, Miklau, VLDB 2022): in each round a noisy maximum
finds the pair whose table is farthest from what the cases drawn so far say, beyond what its noise would hide; the
curator answers with that table; and the cases are drawn again. Each attribute is drawn after those in front of it,
given up to ``MOST_PARENTS`` of them or of what the control flow says of its case: the table of all of these together is
fitted to every noisy table of two and to the attribute's own answer (iterative proportional fitting; Deming, Stephan
1940), so the cases have all of them but for rounding. What the control flow says is known of every released case.

Where the second of a pair changes within cases and the first is an attribute, too, the table is of all events, and is
what values are drawn by along a case (:mod:`courses`). So what changes may go with another attribute of its event.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.attributes.variables import Variable
from veilog.methods._events.cells import fit_margins
from veilog.methods._events.orders import by_row, counted
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import Cases, Coding
from veilog.privacy.curator import Curator

MOST_PARENTS = 2
CASES_A_ROUND = 150
"""Epsilon for pairs times cases, for each pair that is asked."""
SELECTING = Fraction(1, 5)
RESOLUTION = 1024
_FITTING = 25


def rounds_paid(epsilon: Fraction, cases: int, staying: int, changing: int, times: int, cells: int) -> int:
    """Return how many pairs are worth asking for: none where noise would drown all of them. Of attributes that do not
    change within cases it is known how they go with cells."""
    possible = sum(
        min(MOST_PARENTS, times + cells * (before >= staying) + before) for before in range(staying + changing)
    )
    return int(min(float(epsilon) * cases / CASES_A_ROUND, possible))


# Select, measure, generate ------------------------------------------------------------------------------------------


def drawn_together(
    curator: Curator,
    epsilon: Fraction,
    rounds: int,
    flow: list[Variable],
    attributes: list[Variable],
    codings: tuple[Coding, ...],
    cases: Repeated,
    number: float,
    rng: np.random.Generator,
) -> list[Variable]:
    """Draw the attributes of the released cases, of which the original has about ``number``; each round costs an equal
    part of epsilon. Return them in an order in which each is behind what it is drawn given."""
    # Of what changes within cases, that of many values mostly tells that of few, not the other way round.
    order = sorted(attributes, key=lambda one: (one.in_events is not None, one.size * (-1 if one.in_events else 1)))
    labels = cases.labels
    _draw(order, rng)
    # How attributes that stay the same go with the kind of case was asked with them.
    open_ = [
        (one, other)
        for i, other in enumerate(order)
        for one in (*flow, *order[:i])
        if one in order or one.look or other.in_events is not None
    ]
    measured = {id(other): 0 for other in order}
    for _ in range(rounds):
        open_ = [pair for pair in open_ if measured[id(pair[1])] < MOST_PARENTS]
        share = epsilon / rounds
        pair = open_.pop(_selected(curator, share, open_, codings, labels, number))
        one, other = pair
        open_ = [(a, b) for a, b in open_ if b is not other or not one.look or a.look != one.look]
        if other.in_events is None or one in flow:
            other.parents.append((one, _measured(curator, share * (1 - SELECTING), pair, codings, cases, number)))
        else:
            table = _measured_in_events(curator, share * (1 - SELECTING), pair, codings, cases, number)
            other.in_events.parents.append((one, table))
        measured[id(other)] += 1
        _draw(order[order.index(other) :], rng)
    return order


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
        # Noise moves a count by its scale, but no further than down to none.
        noise = np.minimum(counts, 1 / float(share * (1 - SELECTING))).sum()
        less.append(round(chance + float(noise)))
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
        purpose="asked-most-telling-pair",
    )


def _measured(
    curator: Curator,
    epsilon: Fraction,
    pair: tuple[Variable, Variable],
    codings: tuple[Coding, ...],
    cases: Repeated,
    number: float,
) -> FloatArray:
    """The shares of the second given each value of the first; a case adds 1 to one cell."""
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
        alphabet=cases.labels,
        codings=codings,
        purpose=Message("values-by-other", name=other.name, name_2=one.name),
    )
    rows = np.bincount(one.drawn, minlength=one.size) / len(cases)
    return fit_margins(asked.reshape(one.size, -1).astype(np.float64), rows, other.shares, 2 / float(epsilon) ** 2)


def _measured_in_events(
    curator: Curator,
    epsilon: Fraction,
    pair: tuple[Variable, Variable],
    codings: tuple[Coding, ...],
    cases: Repeated,
    number: float,
) -> FloatArray:
    """The shares of the second, which changes within cases, given what an event has of the first; a case adds 1 for
    each of its events, so much at most."""
    one, other = pair
    ours = other.in_events
    assert ours is not None
    # As above: what is asked holds on to no values of released cases.
    first, second, size = one.of_events, ours.of_block, other.size - 1

    def of_both(block: Cases) -> Triples:
        values = second(block)
        known = np.flatnonzero(values < size)
        cells = first(block)[known] * size + values[known]
        return block.owners[known], cells, np.ones(len(known), dtype=np.int64)

    asked = curator.events.sums(
        of_both,
        one.size * (other.size - 1),
        ours.bound,
        epsilon,
        alphabet=cases.labels,
        codings=codings,
        resolution=RESOLUTION,
        purpose=Message("values-by-other-per-event", name=other.name, name_2=one.name),
    )
    if one.in_events is None:
        rows = np.bincount(one.drawn, weights=np.minimum(cases.lengths, ours.bound), minlength=one.size)
    else:
        rows = np.append(one.in_events.shares, 0.0)
    table, none = asked.reshape(one.size, -1) / RESOLUTION, other.shares[-1]
    known = fit_margins(table, rows / rows.sum(), ours.shares, 2 * (ours.bound / float(epsilon)) ** 2)
    return np.append(known * (1 - none), np.full((one.size, 1), none), axis=1)


def _draw(order: list[Variable], rng: np.random.Generator) -> None:
    """Draw these attributes, each given its parents, which come before it."""
    for one in order:
        one.values = _drawn_given(one, rng)


def _drawn_given(one: Variable, rng: np.random.Generator) -> IntArray:
    """A value for each case, such that with every parent the cases have the shares that were asked."""
    number = len(one.values)
    # Tables of all events say how cases differ, but what is known of first values has the last word on these.
    beside = one.in_events.parents if one.in_events is not None else []
    parents = [*beside, *one.parents]
    key = np.zeros(number, dtype=np.int64)
    for parent, _ in parents:
        key = key * parent.size + parent.drawn
    _, row, counts = counted(key, int(np.prod([parent.size for parent, _ in parents])))
    first = np.empty(len(counts), dtype=np.int64)
    first[row[::-1]] = np.arange(number)[::-1]
    if not parents:
        return placed(counts[:, None] * one.shares[None, :] + 1e-12, row, rng)
    fits = [(parent.drawn[first], shares) for parent, shares in parents]
    return placed(agreeing(counts, fits, yielding=len(beside)), row, rng)


def agreeing(counts: IntArray, fits: list[tuple[IntArray, FloatArray]], *, yielding: int = 0) -> FloatArray:
    """Return a table with rows of these sums that agrees with what is known of them: of everything that rows have, its
    value in each row, and the shares of columns given it. Where these contradict each other, the first ones yield, so
    many of them: what is kept of them is how rows differ that are alike in all others."""
    wanted = [
        (of_row, np.bincount(of_row, weights=counts, minlength=len(shares))[:, None] * shares)
        for of_row, shares in fits
    ]
    usual = wanted[-1][1].sum(axis=0)
    table = counts[:, None] * (usual / max(float(usual.sum()), 1e-12))[None, :] + 1e-12
    rounds = [wanted] * (_FITTING if len(fits) > 1 else 1)
    rounds += [wanted[yielding:]] * (_FITTING if yielding else 0)
    for some in rounds:
        for of_row, sums_wanted in some:
            sums = np.zeros_like(sums_wanted)
            np.add.at(sums, of_row, table)
            table = table * (sums_wanted / np.maximum(sums, 1e-12))[of_row] + 1e-12
        table = table * (counts / table.sum(axis=1))[:, None]
    return np.asarray(table)


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

"""Associations of attributes: a few noisy tables, and cases drawn to fit them all.

Attributes go with each other and with the control flow. First veilog selects, measures and generates, as AIM does
(McKenna, Mullins, Sheldon, Miklau, VLDB 2022). In each round a noisy maximum finds the pair whose table is farthest
from the cases drawn so far, beyond what its noise would hide. The curator answers with that table, and the cases are
drawn again. Then each attribute is queried by the signs of cases (:mod:`signs`).

Each attribute is drawn after those in front of it, given its shares in the kind of its case, and up to ``MOST_PARENTS``
of the attributes or of the variables of times. The table of all of these together is fitted to every noisy table and to
the attribute's own answer (iterative proportional fitting; Deming, Stephan 1940). So the cases have all of them but for
rounding.

Where the second of a pair changes within cases and the first is an attribute, too, the table is of all events. Values
are drawn by it along a case (:mod:`courses`). So what changes may go with another attribute of its event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from veilog._counting import rank_numbers
from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.attributes.signs import SignRule, SignSums, query_signs
from veilog.methods._events.attributes.variables import InEvents, Variable, released_only
from veilog.methods._events.cells import Kinds, fit_margins, summing_matrix
from veilog.methods._events.orders import sort_in_rows
from veilog.methods._events.times.prior import PriorTimes
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import CaseFeatures, Cases, Coding
from veilog.privacy.curator import Curator

MOST_PARENTS = 2
CASES_A_ROUND = 200
"""Epsilon for tables of two attributes times cases, for each table.

With twice as many, pairs of four attributes that go together are off by .108 in place of .058 (10,000 cases, three
seeds).
"""
LEAST_CASES = 150
"""Epsilon times cases below which noise would drown all tables."""
OF_PATH = Fraction(1, 2)
"""Part of the epsilon for how attributes go with the path; the rest is for tables of two.

With a quarter, gaps of four attributes that go together are off by .071 in place of .035. With three quarters, their
pairs are off by .106 in place of .058 (10,000 cases, three seeds).
"""
SELECTING = Fraction(1, 7)
"""Part of the epsilon of a round for choosing."""
STANDING_OUT = 0.5
"""Noise scales by which a chosen table is farther than noise alone makes the farthest of all tables."""
HIDING = 0.3
"""Part of the moves of counts by noise that hides differences, as likely tables have less noise."""
RESOLUTION = 1024
_FITTING = 25

_Pair = tuple[Variable, Variable]


@dataclass(frozen=True)
class TablePrices:
    """Epsilon for how attributes go with the path and with each other.

    It is 0 where noise would drown all.
    """

    path: Fraction
    """Epsilon for how each attribute goes with the path."""
    pairs: Fraction
    """Epsilon for all tables of two."""
    rounds: int
    """Most tables that may be queried."""

    @property
    def each(self) -> Fraction:
        """Epsilon of one table, or of the path if there are none."""
        return self.pairs / self.rounds if self.rounds else self.path

    @staticmethod
    def of(epsilon: Fraction, cases: int, attributes: int, flow: int, *, path: bool) -> TablePrices:
        """Return the prices of so many attributes; the path is queried if noise lets it."""
        possible = sum(min(MOST_PARENTS, flow + before) for before in range(attributes))
        if epsilon * cases < LEAST_CASES or not (possible or path):
            return TablePrices(Fraction(0), Fraction(0), 0)
        each = epsilon * (OF_PATH if possible else 1) / attributes if path else Fraction(0)
        pairs = epsilon - each * attributes
        return TablePrices(each, pairs, min(max(int(pairs * cases / CASES_A_ROUND), 1), possible))


# Select, measure, generate ------------------------------------------------------------------------------------------


@dataclass(eq=False)
class AttributeDrawing:
    """Attributes of released cases, drawn again after each table that is queried."""

    curator: Curator
    cases: Repeated
    codings: tuple[Coding, ...]
    number: float
    """Approximate number of cases of the original."""
    flow: list[Variable]
    """Variables of cases by their times."""
    order: list[Variable]
    """Attributes, each behind those that it is drawn given."""
    rng: np.random.Generator
    kinds: Kinds
    rule: SignRule
    prior: PriorTimes | None = None
    asked: dict[_Pair, tuple[FloatArray, float]] = field(default_factory=dict)
    """Noisy table of each pair, and the variance of its noise."""
    signs: dict[Variable, SignSums] = field(default_factory=dict)
    """Noisy sums of each attribute by which it goes with the path."""

    def together(self, prices: TablePrices) -> None:
        """Draw the attributes, by queries of pairs and of the path.

        Pairs are chosen and queried in rounds while one stands out. The epsilon left is for how attributes go with the
        path, in one query for each. Two answers of half the epsilon have as much noise together as one of .7 of it. If
        the path is not queried, the epsilon left is for the same pairs again.
        """
        self._draw(self.order)
        left = self._ask_rounds(prices.pairs, prices.each, alone=not prices.path)
        if prices.path:
            left += prices.path * len(self.order)
            some = [one for one in self.order if np.count_nonzero(one.shares) > 1]
            for one in some:
                ours = left / len(some)
                self.signs[one] = query_signs(self.curator, ours, one, self.rule, self.codings, self.number, self.prior)
            self._give_kinds()
        elif left:
            for pair in list(self.asked):
                self._ask(left / len(self.asked), *pair)
        self._draw(self.order)

    def _give_kinds(self) -> None:
        """Give attributes their shares in each kind of case."""
        kind = released_only("kind of case", self.kinds.of_sequence, len(self.kinds.shares), self.cases.owner)
        for one, sums in self.signs.items():
            one.kind = kind, sums.shares(one.shares, self.kinds)

    def _ask_rounds(self, left: Fraction, share: Fraction, *, alone: bool) -> Fraction:
        """Choose pairs and query them, each for this share; return the epsilon left.

        The share is doubled where no pair stands out, none was queried yet, and tables are ``alone``: the path is not
        queried.
        """
        while left and (pairs := self._open()):
            share = min(share, left)
            last = share == left and alone and not self.asked
            place = self._select_pair(share * SELECTING, pairs, share * (1 - SELECTING), last=last)
            left -= share * SELECTING
            if place < len(pairs):
                left -= share * (1 - SELECTING)
                self._ask(share * (1 - SELECTING), *pairs[place])
                self._draw(self.order[self.order.index(pairs[place][1]) :])
            elif self.asked or not alone:
                break
            else:
                share = 2 * share
        return left

    def of(self, cases: Repeated, rng: np.random.Generator) -> None:
        """Draw the attributes of other cases, with known times, by all answers."""
        self.cases, self.kinds, self.rng = cases, Kinds.of(cases), rng
        for one in self.order:
            one.values = np.zeros(len(cases), dtype=np.int64)
        self._give_kinds()
        self._draw(self.order)

    def _draw(self, order: list[Variable]) -> None:
        for one in order:
            one.values = _draw_given(one, self.rng)

    def _ask(self, epsilon: Fraction, one: Variable, other: Variable) -> None:
        """Query a pair, and make its second go with its first by all answers about both."""
        table, variance, prior = self._query_table(epsilon, one, other)
        self._fit(one, other, table, variance, prior)

    def _open(self) -> list[_Pair]:
        """Return the pairs of the next query: for each attribute ``MOST_PARENTS`` at most."""
        found = list[_Pair]()
        for i, other in enumerate(self.order):
            ours = [one for one, second in self.asked if second is other]
            if len(ours) < MOST_PARENTS:
                found += [(one, other) for one in (*self.flow, *self.order[:i]) if one not in ours]
        return found

    def _select_pair(self, share: Fraction, pairs: list[_Pair], price: Fraction, *, last: bool = False) -> int:
        """Return the pair that the noisy maximum finds farthest from the drawn cases.

        The distance is less what chance and noise alone explain, for a table of this price. The number of pairs means
        none, which is not possible the ``last`` time.
        """
        expected, less = [], []
        variables = list(dict.fromkeys(one for pair in pairs for one in pair))
        for one, other in pairs:
            drawn = np.bincount(one.drawn * other.size + other.drawn, minlength=one.size * other.size)
            counts = drawn * (self.number / len(self.cases))
            expected.append(np.round(counts).astype(np.int64))
            chance = float(np.sqrt(2 / np.pi * counts).sum())
            # Noise moves a count by its scale, but no further than down to none.
            less.append(round(chance + HIDING * float(np.minimum(counts, 1 / float(price)).sum())))
        starts = np.concatenate([[0], np.cumsum([len(counts) for counts in expected])]).tolist()
        if not last:  # a table that no case is in, and as far away as noise alone makes the farthest one
            expected.append(np.zeros(1, dtype=np.int64))
            less.append(-round(2 / float(share) * (float(np.log(len(pairs))) + STANDING_OUT)))

        # A query may travel to other machines, so it holds no values of released cases.
        told = [one.of_block for one in variables]
        cells = [(variables.index(one), variables.index(other), other.size) for one, other in pairs]

        def of_pairs(block: Cases) -> Triples:
            values = [of_block(block) for of_block in told]
            columns = [
                start + values[first] * size + values[second]
                for start, (first, second, size) in zip(starts, cells, strict=False)
            ]
            rows = np.tile(np.arange(len(block)), len(cells))
            return rows, np.concatenate(columns), np.ones(len(rows), dtype=np.int64)

        return self.curator.events.most_apart(
            of_pairs,
            expected,
            less,
            share,
            alphabet=self.cases.labels,
            codings=self.codings,
            purpose="asked-most-telling-pair",
        )

    def _query_table(
        self, epsilon: Fraction, one: Variable, other: Variable
    ) -> tuple[FloatArray, float, FloatArray | None]:
        """Return how many cases have each value of both, the noise, and the prior's table.

        The noise is its variance. A case adds 1 to one number. Where the second changes within cases and the first is
        an attribute, it is how many events have both. Then a case adds 1 for each of its events that has a value, up to
        the bound.
        """
        ours, (of_both, size, bound, resolution) = self._by_events(one, other), self._table_features(one, other)
        code = "values-by-other" if ours is None else "values-by-other-per-event"
        purpose = Message(code, name=other.name, name_2=one.name)
        asked = self.curator.events.sums(
            of_both,
            one.size * size,
            bound,
            epsilon,
            alphabet=self.cases.labels,
            codings=self.codings,
            resolution=resolution,
            purpose=purpose,
        )
        table = asked.reshape(one.size, size) / resolution
        return table, 2 * (bound / float(epsilon)) ** 2, self._prior_table(one, other)

    def _by_events(self, one: Variable, other: Variable) -> InEvents | None:
        return other.in_events if one in self.order else None

    def _table_features(self, one: Variable, other: Variable) -> tuple[CaseFeatures, int, int, int]:
        """Return a case's contribution to a table of both, columns, bound, and resolution."""
        ours = self._by_events(one, other)
        # As above: a query holds no values of released cases.
        if ours is None:
            first, second, size, bound, resolution = one.of_block, other.of_block, other.size, 1, 1
        else:
            first, second, size = one.of_events, ours.of_block, other.size - 1
            bound, resolution = ours.bound, RESOLUTION

        def of_both(block: Cases) -> Triples:
            values = second(block)
            known = np.flatnonzero(values < size)
            rows = known if resolution == 1 else block.owners[known]
            return rows, first(block)[known] * size + values[known], np.ones(len(known), dtype=np.int64)

        return of_both, size, bound, resolution

    def _prior_table(self, one: Variable, other: Variable) -> FloatArray | None:
        """Return the table of both of a prior's cases.

        None means no prior, that it lacks one of them, or that the first is of times.
        """
        if self.prior is None or one in self.flow:
            return None
        names = (one.name, other.name)
        codings = [coding for coding in self.codings if coding.name.removeprefix("case:") in names]
        of_both, size, bound, resolution = self._table_features(one, other)
        sums = self.prior.sums(of_both, one.size * size, bound, resolution, self.cases.labels, codings)
        return sums.reshape(one.size, size) if sums.any() else None

    def _fit(
        self, one: Variable, other: Variable, table: FloatArray, variance: float, prior: FloatArray | None
    ) -> None:
        """Make the second go with the first by a noisy table, and by the one before."""
        if (one, other) in self.asked:
            before, noise = self.asked[one, other]
            table = (table / variance + before / noise) / (1 / variance + 1 / noise)
            variance = 1 / (1 / variance + 1 / noise)
        self.asked[one, other] = table, variance
        ours = self._by_events(one, other)
        weights = None if ours is None else np.minimum(self.cases.lengths, ours.bound)
        rows: FloatArray = np.bincount(one.drawn, weights=weights, minlength=one.size).astype(np.float64)
        if ours is None:
            _put_parent(other.parents, one, fit_margins(table, rows / rows.sum(), other.shares, variance, prior))
            return
        if one.in_events is not None:
            rows = np.append(one.in_events.shares, 0.0)
        known, none = fit_margins(table, rows / rows.sum(), ours.shares, variance, prior), other.shares[-1]
        _put_parent(ours.parents, one, np.append(known * (1 - none), np.full((one.size, 1), none), axis=1))


def _put_parent(parents: list[tuple[Variable, FloatArray]], one: Variable, shares: FloatArray) -> None:
    """Put the shares given a variable among the parents, in place of older ones."""
    place = next((i for i, (parent, _) in enumerate(parents) if parent is one), len(parents))
    parents[place : place + 1] = [(one, shares)]


def _draw_given(one: Variable, rng: np.random.Generator) -> IntArray:
    """Return a value for each case; with every parent cases have the queried shares."""
    number = len(one.values)
    # Tables of all events show how cases differ, but the known shares of first values prevail.
    beside = one.in_events.parents if one.in_events is not None else []
    parents = [*beside, *([one.kind] if one.kind else []), *one.parents]
    key = np.zeros(number, dtype=np.int64)
    for parent, _ in parents:
        key = key * parent.size + parent.drawn
    _, row, counts = rank_numbers(key, int(np.prod([parent.size for parent, _ in parents])))
    first = np.empty(len(counts), dtype=np.int64)
    first[row[::-1]] = np.arange(number)[::-1]
    if not parents:
        return place_columns(counts[:, None] * one.shares[None, :] + 1e-12, row, rng)
    fits = [(parent.drawn[first], shares) for parent, shares in parents]
    return place_columns(fit_table(counts, fits, yielding=len(beside)), row, rng)


def fit_table(counts: IntArray, fits: list[tuple[IntArray, FloatArray]], *, yielding: int = 0) -> FloatArray:
    """Return a table with rows of these sums that agrees with known shares of rows.

    For each of ``fits``, a row has a value, and columns have shares given it. Where these contradict each other, the
    first ones yield, as many as ``yielding``. They keep how rows differ that are alike in all others.
    """
    wanted = [
        (of_row, np.bincount(of_row, weights=counts, minlength=len(shares))[:, None] * shares)
        for of_row, shares in fits
    ]
    usual = wanted[-1][1].sum(axis=0)
    table = counts[:, None] * (usual / max(float(usual.sum()), 1e-12))[None, :] + 1e-12
    margins = [(of_row, summing_matrix(of_row, len(sums)), sums) for of_row, sums in wanted]
    rounds = [margins] * (_FITTING if len(fits) > 1 else 1)
    rounds += [margins[yielding:]] * (_FITTING if yielding else 0)
    for some in rounds:
        for of_row, adding, sums_wanted in some:
            table *= (sums_wanted / np.maximum(adding @ table, 1e-12))[of_row]
            table += 1e-12
        table *= (counts / table.sum(axis=1))[:, None]
    return np.asarray(table)


def place_columns(table: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a column for each row number, by the distribution of that row.

    Equal rows are at even places of the distribution.
    """
    order = sort_in_rows(rows, rng.random(len(rows)))
    counts = np.bincount(rows, minlength=len(table))
    row = np.repeat(np.arange(len(table)), counts)
    rank = np.arange(len(rows)) - (np.cumsum(counts) - counts)[row]
    place = (rank + rng.random(len(rows))[order]) / counts[row]
    reached = np.cumsum(table, axis=1)
    reached /= reached[:, -1:]
    flat = (reached + np.arange(len(table))[:, None]).reshape(-1)
    # Both are in order, and ends of columns are far fewer than places: so ends are looked up.
    ends = np.searchsorted(row + np.minimum(place, 1 - 1e-9), flat, side="left")
    before = np.cumsum(np.bincount(ends, minlength=len(rows) + 1)[: len(rows)])
    found = np.empty(len(rows), dtype=np.int64)
    found[order] = np.clip(before - row * table.shape[1], 0, table.shape[1] - 1)
    return found

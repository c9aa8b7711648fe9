"""Cells: a public partition of cases by their activities, and noisy tables of what cases of each cell have.

The *profile* of a case says which activities it has, and which of them more than once: 0 or 1 for each. Cells are found
in the released cases (Lloyd's k-means on their profiles), which are public by then, and every case, raw or released,
belongs to the nearest centre: a case adds 1 to one row of a table, whatever else is in the log. Centres are integers,
so the nearest one does not depend on rounding.

How many cells there are: with n cases and noise of scale s in each count, a table of K cells with two values tells how
often values of a cell differ from those of others to about sqrt(K) s / n, and what cells hide inside falls like 1 / K.
The sum is least where K grows with (n / s) to the power of two thirds; :data:`FEWER` is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated, Sequences
from veilog.privacy.cases import Cases

FEWER = 3.0
"""(n / s) to the power of two thirds over this many is the number of cells. With half and twice of it gaps between the
groups of three made-up logs of 10,000 cases are off by .020 to .037 and .021 to .024 in place of .021 to .026 (five
seeds, of which one is off by .01 more or less than another)."""
MOST_CELLS = 32
LEAST_CELLS = 4
"""Fewer tell hardly any activities apart, and would cost as much as more: then all cases are one cell."""
MOST_KINDS = 128
"""Number of finer parts that cut the released cases, and with them the cells."""
_DEVIATIONS = (0.0, 0.02, 0.06, 0.2, 0.6)
"""How much more often a value occurs with an activity, or in a cell: standard deviations that are tried."""
_ALONE = [(0.0, deviation) for deviation in _DEVIATIONS]
STANDING_OUT = 2.0
"""A table is other than the product of its margins if its distance is so many standard deviations above that of noise
alone."""
_SCALE = 64
"""Centres are multiples of one over this."""
_ROUNDS, _FITTING, _BLOCK = 12, 30, 4_096


@dataclass(frozen=True, eq=False)
class CellRule:
    """The public rule that gives each case its cell; it holds nothing of a released case."""

    weights: FloatArray
    """By profile entry and cell, in whole numbers: the cell of the greatest sum is the nearest one."""
    base: FloatArray

    @property
    def number(self) -> int:
        """Number of cells."""
        return len(self.base)

    def of_cases(self, cases: Cases | Sequences) -> IntArray:
        """Return the cell of each case; sums of whole numbers are exact in whatever order they are made."""
        if self.number == 1:
            return np.zeros(len(cases), dtype=np.int64)
        blocks = _profiles(cases.codes, cases.offsets, len(self.weights) // 2)
        found = [(profiles @ self.weights - self.base).argmax(axis=1) for profiles in blocks]
        return np.concatenate([*found, np.zeros(0)]).astype(np.int64)

    @staticmethod
    def of(cases: Repeated, known: float, rng: np.random.Generator, least: int = LEAST_CELLS) -> CellRule:
        """Return cells where there are so many cases over the scale of the noise of a count; one cell where these are
        too few for the ``least`` number."""
        number = min(int(known ** (2 / 3) / FEWER), MOST_CELLS)
        return _rule(cases, number if number >= least else 1, rng)


def _rule(cases: Repeated, number: int, rng: np.random.Generator) -> CellRule:
    """Return so many cells or fewer, from the most frequent of the released sequences."""
    frequent = np.sort(np.argsort(-cases.counts, kind="stable")[:_BLOCK])
    some, size = cases.distinct.take(frequent), len(cases.labels)
    profiles = np.concatenate([*_profiles(some.codes, some.offsets, size), np.zeros((0, 2 * size))])
    centres = _centres(profiles, cases.counts[frequent], number, rng)
    whole = np.unique(np.round(centres * _SCALE), axis=0)
    return CellRule(2 * _SCALE * whole.T, (whole**2).sum(axis=1))


def _profiles(codes: npt.NDArray[np.integer], offsets: IntArray, size: int) -> Iterator[FloatArray]:
    """Give in blocks of cases whether each case has each activity, and whether it has it twice or more."""
    for first in range(0, len(offsets) - 1, _BLOCK):
        some = offsets[first : first + _BLOCK + 1]
        ours = codes[some[0] : some[-1]].astype(np.int64)
        owners = np.repeat(np.arange(len(some) - 1), np.diff(some))
        known = ours >= 0
        cells = owners[known] * size + ours[known]
        often = np.bincount(cells, minlength=(len(some) - 1) * size).reshape(len(some) - 1, size)
        yield np.concatenate([often > 0, often > 1], axis=1).astype(np.float64)


def _centres(profiles: FloatArray, counts: IntArray, number: int, rng: np.random.Generator) -> FloatArray:
    """Return centres of about so many clusters of profiles: the first ones far apart (Arthur, Vassilvitskii 2007)."""
    there = np.flatnonzero(counts > 0)
    if number == 1 or not len(there):
        return np.zeros((1, profiles.shape[1]))
    profiles, counts = profiles[there], counts[there].astype(np.float64)
    centres = profiles[[rng.choice(len(counts), p=counts / counts.sum())]]
    away = ((profiles - centres) ** 2).sum(axis=1)
    while len(centres) < number and (counts * away).any():
        far = (counts * away).astype(np.float64)
        centres = np.append(centres, profiles[[rng.choice(len(far), p=far / far.sum())]], axis=0)
        away = np.minimum(away, ((profiles - centres[-1]) ** 2).sum(axis=1))
    for _ in range(_ROUNDS):
        nearest = (2 * profiles @ centres.T - (centres**2).sum(axis=1)).argmax(axis=1)
        weight = np.bincount(nearest, weights=counts, minlength=len(centres))
        member = np.zeros((len(centres), len(counts)), dtype=np.float64)
        member[nearest, np.arange(len(counts))] = counts
        full = weight > 0
        centres = (member @ profiles)[full] / weight[full, None]
    return centres


@dataclass(frozen=True, eq=False)
class Kinds:
    """The released cases by kind: a cell, and inside it a part of alike profiles."""

    of_sequence: IntArray
    """The kind of each distinct sequence."""
    cell: IntArray
    """Of each kind."""
    shares: FloatArray
    """Of each kind, of all cases."""
    means: FloatArray
    """The mean profile of each kind."""

    @staticmethod
    def of(cases: Repeated, rule: CellRule, rng: np.random.Generator) -> Kinds:
        """Return kinds of released cases, each wholly in one cell."""
        distinct, size, counts = cases.distinct, len(cases.labels), cases.counts.astype(np.float64)
        fine = _rule(cases, MOST_KINDS if rule.number > 1 else 1, rng)
        key = rule.of_cases(distinct) * fine.number + fine.of_cases(distinct)
        cells, of_sequence = np.unique(key, return_inverse=True)
        weight = np.maximum(np.bincount(of_sequence, weights=counts), 1e-9)
        sums, first = np.zeros((len(cells), 2 * size)), 0
        for profiles in _profiles(distinct.codes, distinct.offsets, size):
            ours = slice(first, first + len(profiles))
            np.add.at(sums, of_sequence[ours], profiles * counts[ours, None])
            first += len(profiles)
        return Kinds(of_sequence, cells // fine.number, weight / weight.sum(), sums / weight[:, None])

    def of_cells(self, number: int) -> tuple[FloatArray, FloatArray]:
        """Return the shares and the mean profiles of cells."""
        rows = np.bincount(self.cell, weights=self.shares, minlength=number)
        means = np.zeros((number, self.means.shape[1]))
        np.add.at(means, self.cell, self.means * self.shares[:, None])
        return np.asarray(rows, dtype=np.float64), means / np.maximum(rows, 1e-12)[:, None]

    def shares_in(self, table: FloatArray, usual: FloatArray, variance: float) -> FloatArray:
        """Return the shares of columns in each kind, from noisy counts by cell: what goes with activities from cell to
        cell goes with them inside cells, too."""
        _, means = self.of_cells(len(table))
        by_cell, along = row_shares(table, usual, variance, means)
        found = by_cell[self.cell] + (self.means - means[self.cell]) @ along
        return _as_shares(found, usual)


def row_shares(
    table: FloatArray, usual: FloatArray, variance: float, profiles: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the shares of columns in each row of noisy counts with noise of this variance in each, and by how much
    each part of a profile makes them more.

    A share is the ``usual`` one, and more or less by a linear function of the profile of its row and by an effect of
    the row, both normally distributed about nothing, with the likeliest of some deviations (empirical Bayes; Morris
    1983). So a row of many cases keeps what was counted in it, and one that hardly any case of the log has is as its
    profile lets expect.
    """
    mass = np.maximum(table.sum(axis=1), (table.shape[1] * variance) ** 0.5)
    noise = variance / mass**2
    x = profiles - mass @ profiles / mass.sum()
    alike, found = x @ x.T, np.repeat(usual[None], len(table), axis=0)
    slopes = np.zeros((x.shape[1], table.shape[1]))
    # Where both would explain the same, it is the profile that does: what rows have alone is no more than that.
    tried = [(a, b) for a in _DEVIATIONS for b in _DEVIATIONS if b < a or a == b == 0] if x.any() else _ALONE
    for column in range(table.shape[1]):
        y = (table[:, column] - table.sum(axis=1) * usual[column]) / mass
        likely, answers = [], []
        for slope, effect in tried:
            covariance = slope**2 * alike + np.diag(effect**2 + noise)
            solved = np.linalg.solve(covariance, y)
            likely.append(-(y @ solved + np.linalg.slogdet(covariance)[1]) / 2)
            answers.append((slope**2 * (x.T @ solved), effect**2 * solved))
        slopes[:, column], alone = answers[int(np.argmax(likely))]
        found[:, column] += x @ slopes[:, column] + alone
    return found, slopes


def _as_shares(found: FloatArray, usual: FloatArray) -> FloatArray:
    found = np.maximum(found, 1e-3 * usual) + 1e-15
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def fit_margins(table: FloatArray, rows: FloatArray, columns: FloatArray, variance: float) -> FloatArray:
    """Return the distribution of each row of noisy counts that has these shares of rows and of columns: what is likely
    of each row (:func:`row_shares`), fitted to both in turns (iterative proportional fitting; Deming, Stephan 1940)."""
    found, _ = row_shares(table, columns, variance, np.zeros((len(table), 1)))
    found = rows[:, None] * _as_shares(found, columns)
    for _ in range(_FITTING):
        found *= (rows / np.maximum(found.sum(axis=1), 1e-15))[:, None]
        found *= columns / np.maximum(found.sum(axis=0), 1e-15)
    return np.asarray((found + 1e-15) / (found.sum(axis=1, keepdims=True) + 1e-15 * len(columns)))


def apart_of(table: FloatArray, rows: FloatArray, columns: FloatArray, variance: float) -> bool:
    """Return whether a noisy table is other than the product of its margins, beyond noise of this variance in each."""
    total = max(float(table.sum()), 1.0)
    return stands_out(float(((table - total * np.outer(rows, columns)) ** 2).sum()), table.size, variance)


def stands_out(squares: float, number: int, variance: float) -> bool:
    """Return whether a sum of so many squares is more than noise of this variance in each explains: that is so many
    variances, give or take the root of five times their number (the kurtosis of Laplace noise is 6)."""
    return bool(squares / max(variance, 1e-300) > number + STANDING_OUT * (5 * number) ** 0.5)

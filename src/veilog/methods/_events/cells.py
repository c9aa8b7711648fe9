"""Cells: a public partition of cases by activities, and noisy tables by cell.

The *profile* of a case has two entries for each activity, 0 or 1: it has the activity, and has it more than once.
Cells are found in the released cases (Lloyd's k-means on their profiles), which are public by then. Every case, raw or
released, belongs to the nearest centre. So a case adds 1 to one row of a table, whatever else is in the log. Centres
are integers, so the nearest one does not depend on rounding.

The number of cells balances two errors. Let there be n cases and noise of scale s in each count. A table of K cells
with two values shows how often values of a cell differ from those of others to about sqrt(K) s / n. What cells hide
inside falls like 1 / K. The sum is least where K grows with (n / s) to the power of two thirds; :data:`FEWER` is
measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from veilog._counting import rank_bits
from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated, Sequences
from veilog.privacy.cases import Cases

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FEWER = 3.0
"""Divisor of (n / s) to the power of two thirds that gives the number of cells.

With half and twice of it gaps of attributes by cells, of three synthetic logs of 10,000 cases, are off by .020 to .037
and .021 to .024 in place of .021 to .026 (five seeds).
"""
MOST_CELLS = 32
LEAST_CELLS = 4
"""Number of cells below which all cases are one cell.

Fewer hardly distinguish any activities, and would use as much epsilon as more.
"""
MOST_KINDS = 4_096
"""Most profiles that are distinguished; of more, entries are left out, first those in which cases differ least."""
_DEVIATIONS = (0.0, 0.02, 0.06, 0.2, 0.6)
"""Standard deviations that are tried: how much more often a value occurs with an activity, or in a cell."""
STANDING_OUT = 2.0
"""Standard deviations above noise alone from which on a table's distance from the product of its margins is real."""
_SCALE = 64
"""Denominator of the centres."""
_ROUNDS, _FITTING, _BLOCK = 12, 30, 4_096


@dataclass(frozen=True, eq=False)
class Kinds:
    """Released cases by kind: those of a kind have the same profile."""

    of_sequence: IntArray
    """The kind of each distinct sequence."""
    profiles: FloatArray
    """Profile of each kind; entries that are left out are 0."""
    shares: FloatArray
    """Share of each kind in all cases."""

    @staticmethod
    def of(cases: Repeated) -> Kinds:
        """Return the kinds of released cases."""
        distinct, size = cases.distinct, len(cases.labels)
        blocks = [block.toarray() > 0 for block in profiles_of(distinct.codes, distinct.offsets, size)]
        entries = np.concatenate([*blocks, np.zeros((0, 2 * size), dtype=np.bool_)])
        mean = cases.counts @ entries / max(len(cases), 1)
        order = np.argsort(-mean * (1 - mean), kind="stable")
        kept, dropped = 0, len(order) + 1  # entries that distinguish few enough kinds, and that do not
        while dropped - kept > 1:
            tried = len(order) if not kept and dropped > len(order) else (kept + dropped) // 2
            kinds = len(rank_bits(entries[:, order[:tried]])[0])
            kept, dropped = (tried, dropped) if kinds <= MOST_KINDS else (kept, tried)
        entries[:, order[kept:]] = False
        first, kind = rank_bits(entries)
        weight = np.bincount(kind, weights=cases.counts, minlength=len(first))
        return Kinds(kind, entries[first].astype(np.float64), weight / max(float(weight.sum()), 1.0))


@dataclass(frozen=True, eq=False)
class CellRule:
    """Public rule for the cell of each case; it holds nothing of a released case."""

    weights: FloatArray
    """By profile entry and cell, in whole numbers: the cell of the greatest sum is the nearest one."""
    base: FloatArray

    @property
    def number(self) -> int:
        """Number of cells."""
        return len(self.base)

    def of_profiles(self, profiles: FloatArray | csr_array) -> IntArray:
        """Return the nearest centre of each profile.

        Sums of whole numbers are exact in whatever order they are made.
        """
        return np.asarray((profiles @ self.weights - self.base).argmax(axis=1), dtype=np.int64)

    def of_cases(self, cases: Cases | Sequences) -> IntArray:
        """Return the cell of each case."""
        if self.number == 1:
            return np.zeros(len(cases), dtype=np.int64)
        blocks = profiles_of(cases.codes, cases.offsets, len(self.weights) // 2)
        return np.concatenate([*map(self.of_profiles, blocks), np.zeros(0, dtype=np.int64)])

    @staticmethod
    def of(cases: Repeated | Kinds, known: float, rng: np.random.Generator, least: int = LEAST_CELLS) -> CellRule:
        """Return cells where there are ``known`` cases over the scale of a count's noise.

        There is one cell where these are too few for the ``least`` number.
        """
        kinds, number = cases if isinstance(cases, Kinds) else Kinds.of(cases), cells_told(known)
        return CellRule.of_number(kinds, number if number >= least else 1, rng)

    @staticmethod
    def of_number(kinds: Kinds, number: int, rng: np.random.Generator) -> CellRule:
        """Return about so many cells, and no more than ``MOST_CELLS``."""
        centres = _centres(kinds.profiles, kinds.shares, min(number, MOST_CELLS), rng)
        whole = np.unique(np.round(centres * _SCALE), axis=0)
        return CellRule(2 * _SCALE * whole.T, (whole**2).sum(axis=1))


def cells_told(known: float) -> int:
    """Return how many cells an answer distinguishes.

    ``known`` is the number of cases over the scale of its noise.
    """
    return min(int(max(known, 0.0) ** (2 / 3) / FEWER), MOST_CELLS)


def profiles_of(codes: npt.NDArray[np.integer], offsets: IntArray, size: int) -> Iterator[csr_array]:
    """Yield blocks of profiles: activities that cases have, and have twice or more."""
    from scipy.sparse import csr_array  # here: it takes a while to import

    for first in range(0, len(offsets) - 1, _BLOCK):
        some = offsets[first : first + _BLOCK + 1]
        ours = codes[some[0] : some[-1]].astype(np.int64)
        owners = np.repeat(np.arange(len(some) - 1), np.diff(some))
        known = ours >= 0
        cells = owners[known] * size + ours[known]
        often = np.bincount(cells, minlength=(len(some) - 1) * size).reshape(len(some) - 1, size)
        rows, columns = np.nonzero(np.concatenate([often > 0, often > 1], axis=1))
        ends = np.searchsorted(rows, np.arange(len(some)))
        yield csr_array((np.ones(len(rows)), columns, ends), shape=(len(some) - 1, 2 * size))


def _centres(profiles: FloatArray, weights: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
    """Return centres of about so many clusters of profiles.

    The first ones are far apart (Arthur, Vassilvitskii 2007).
    """
    from scipy.sparse import csr_array

    there = np.flatnonzero(weights > 0)
    if number == 1 or not len(there):
        return np.zeros((1, profiles.shape[1]))
    profiles, weights = profiles[there], weights[there]
    entries, places = csr_array(profiles), np.arange(len(weights))
    centres = profiles[[rng.choice(len(weights), p=weights / weights.sum())]]
    away = ((profiles - centres) ** 2).sum(axis=1)
    while len(centres) < number and (weights * away).any():
        far = weights * away
        centres = np.append(centres, profiles[[rng.choice(len(far), p=far / far.sum())]], axis=0)
        away = np.minimum(away, ((profiles - centres[-1]) ** 2).sum(axis=1))
    for _ in range(_ROUNDS):
        nearest = (entries @ (2 * centres.T) - (centres**2).sum(axis=1)).argmax(axis=1)
        member = csr_array((weights, (nearest, places)), shape=(len(centres), len(weights)))
        weight = np.bincount(nearest, weights=weights, minlength=len(centres))
        full = weight > 0
        centres = (member @ profiles)[full] / weight[full, None]
    return centres


@dataclass(frozen=True, eq=False)
class Look:
    """Noisy counts by cell, with noise of this variance in each."""

    table: FloatArray
    variance: float
    cell: IntArray
    """The cell of each kind."""
    rule: CellRule | None = None
    """Rule for the cell of a kind, where other kinds may come."""


def kind_shares(looks: Sequence[Look], usual: FloatArray, kinds: Kinds) -> FloatArray:
    """Return the shares of columns in each kind, from noisy counts by cells.

    Cells may be others in each look. The likely shares of kinds (:func:`row_shares`) give how often columns occur with
    each entry of profiles, and in each cell. Shares that have these sums are then fitted (iterative proportional
    fitting; Deming, Stephan 1940). The odds of a column are multiplied by a factor for each entry and cell, as they are
    where steps are independent.
    """
    found = row_shares(looks, usual, kinds.shares, kinds.profiles)
    return fit_kinds(found, usual, kinds, [look.cell for look in looks])


def fit_kinds(found: FloatArray, usual: FloatArray, kinds: Kinds, cells: Sequence[IntArray] = ()) -> FloatArray:
    """Return shares of columns in each kind that have the sums of those ``found``.

    The sums are with each entry of profiles, and in each cell (iterative proportional fitting).
    """
    margins = [(kinds.profiles[:, i] > 0).astype(np.int64) for i in np.flatnonzero(kinds.profiles.any(axis=0))]
    margins += cells
    sums_of = [summing_matrix(margin, int(margin.max(initial=0)) + 1) for margin in margins]
    each = kinds.shares[:, None]
    wanted = [as_shares(sums @ (each * found), usual) * (sums @ each) for sums in sums_of]
    fitted = each * usual
    for _ in range(_ROUNDS):
        for margin, sums, those in zip(margins, sums_of, wanted, strict=True):
            fitted *= (those / np.maximum(sums @ fitted, 1e-15))[margin]
        fitted *= (kinds.shares / np.maximum(fitted.sum(axis=1), 1e-15))[:, None]
    return as_shares(fitted, usual)


def summing_matrix(margin: IntArray, number: int) -> csr_array:
    """Return the matrix that adds up rows of a table with the same value of a margin.

    The margin has so many values. The matrix adds in the order of rows, and in one thread: small products of dense
    matrices wait longer for threads than they take.
    """
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(margin)), (margin, np.arange(len(margin)))), shape=(number, len(margin)))


def row_shares(
    looks: Sequence[Look],
    usual: FloatArray,
    shares: FloatArray,
    profiles: FloatArray,
    prior: FloatArray | None = None,
) -> FloatArray:
    """Return the likely shares of columns in each kind, by noisy counts.

    The kinds have these ``shares`` of all cases. The result starts from the usual shares, or from those of a ``prior``.
    Both are weighed by how likely they make the answer.
    """
    starts = [np.repeat(usual[None], len(shares), axis=0), *([] if prior is None else [prior])]
    explained = [_explain_shares(looks, usual, shares, profiles, start) for start in starts]
    weights = np.array([log_likely for _, log_likely in explained])
    weights = np.exp(weights - weights.max())
    return np.asarray(
        sum(weight * found for weight, (found, _) in zip(weights, explained, strict=True)) / weights.sum()
    )


def _explain_shares(
    looks: Sequence[Look], usual: FloatArray, shares: FloatArray, profiles: FloatArray, start: FloatArray
) -> tuple[FloatArray, float]:
    """Return likely shares of columns in each kind, and the answer's log-likelihood.

    A share is that at the start, plus a linear function of the profile and an effect of each cell. Both are normally
    distributed about nothing, with the likeliest of some deviations (empirical Bayes; Morris 1983). So a cell of many
    cases keeps what was counted in it. One that hardly any case of the log has is as its profile lets expect. Means of
    these shares may fall below 0.
    """
    number = int((usual > 0).sum())
    member = [(look.cell == np.arange(len(look.table))[:, None]).astype(np.float64) for look in looks]
    inside = [one * shares for one in member]
    parts = np.concatenate([one / np.maximum(one.sum(axis=1, keepdims=True), 1e-12) for one in inside])
    totals = np.concatenate([look.table.sum(axis=1) for look in looks])
    variance = np.repeat([look.variance for look in looks], [len(look.table) for look in looks])
    # A count of hardly any cases does not show how these share out: its noise is taken to be as wide as it is.
    mass = np.maximum(totals, (number * variance) ** 0.5)
    precise = np.maximum(mass**2 / variance - number, 1e-3 * number)
    # Profiles are seen from the mean of the cases that were counted, of which the usual shares are.
    x = profiles - mass @ (parts @ profiles) / mass.sum()
    columns, each = np.flatnonzero(usual > 0), 1 / precise**0.5
    own, effects = start[:, columns], np.concatenate(member)
    expected = totals[:, None] * (usual[columns] + parts @ (own - usual[columns]))
    y = (np.concatenate([look.table[:, columns] for look in looks]) - expected) / mass[:, None]
    noise, found = (1 - usual[columns]) ** 2 + (number - 1) * usual[columns] ** 2 + 1e-9, start.copy()
    # Seen in units of the noise, which is wider by a factor for each column.
    by_profile, by_effect, y = (part / each[:, None] for part in (parts @ x, parts @ effects.T, y))
    likeliest = np.full(len(columns), -np.inf)
    # Where both would explain the same, it is the profile that does: what cells have alone is no more than that.
    pairs = itertools.product(_DEVIATIONS, repeat=2)
    for slope, effect in [(a, b) for a, b in pairs if (b < a or a == b == 0 if x.any() else a == 0)]:
        known = np.concatenate([slope * by_profile, effect * by_effect], axis=1)
        sizes, turned = np.linalg.eigh(known @ known.T)
        sums = np.maximum(sizes, 0.0)[:, None] + noise
        z = turned.T @ y
        likely = -(z**2 / sums + np.log(sums)).sum(axis=0) / 2
        better = np.flatnonzero(likely > likeliest)
        likeliest[better] = likely[better]
        answers = known.T @ turned @ (z / sums)[:, better]
        all_of = np.concatenate([slope * x, effect * effects.T], axis=1)
        found[:, columns[better]] = own[:, better] + all_of @ answers
    return found, float(likeliest.sum())


def likeliest_effects(apart: FloatArray, measured: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return effects on each column, and the answer's log-likelihood.

    The likelihood is that of the likeliest deviation. ``apart`` are answers of rows, less what was expected, with
    ``noise`` of this variance in each column. Each is a sum of effects, with the weights ``measured``. Effects are
    normally distributed about nothing with one of some deviations.
    """
    sizes, turned = np.linalg.eigh(measured @ measured.T)
    z, found = turned.T @ apart, np.zeros((measured.shape[1], apart.shape[1]))
    likeliest = np.full(apart.shape[1], -np.inf)
    for deviation in _DEVIATIONS:
        sums = deviation**2 * np.maximum(sizes, 0.0)[:, None] + noise
        likely = -(z**2 / sums + np.log(sums)).sum(axis=0) / 2
        better = np.flatnonzero(likely > likeliest)
        likeliest[better] = likely[better]
        found[:, better] = deviation**2 * measured.T @ turned @ (z / sums)[:, better]
    return found, likeliest


def as_shares(found: FloatArray, usual: FloatArray) -> FloatArray:
    """Return rows that add up to 1, with nothing much below the ``usual`` shares."""
    found = np.maximum(found, 1e-3 * usual * np.maximum(found.sum(axis=1, keepdims=True), 0.0)) + 1e-15
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def fit_margins(
    table: FloatArray, rows: FloatArray, columns: FloatArray, variance: float, prior: FloatArray | None = None
) -> FloatArray:
    """Return the distribution of each row of noisy counts, with known margins.

    The margins are these shares of rows and of columns. The likely shares of each row (:func:`row_shares`), also by the
    table of a prior, are fitted to both in turns (iterative proportional fitting; Deming, Stephan 1940).
    """
    looks = [Look(table, variance, np.arange(len(table)))]
    start = None if prior is None else as_shares(prior, columns)
    found = row_shares(looks, columns, rows + 1e-9, np.zeros((len(table), 1)), start)
    found = rows[:, None] * as_shares(found, columns)
    for _ in range(_FITTING):
        found *= (rows / np.maximum(found.sum(axis=1), 1e-15))[:, None]
        found *= columns / np.maximum(found.sum(axis=0), 1e-15)
    return np.asarray((found + 1e-15) / (found.sum(axis=1, keepdims=True) + 1e-15 * len(columns)))


def apart_of(table: FloatArray, rows: FloatArray, columns: FloatArray, variance: float) -> bool:
    """Return True if a noisy table differs from the product of its margins.

    The difference is beyond noise of this variance in each count.
    """
    total = max(float(table.sum()), 1.0)
    return stands_out(float(((table - total * np.outer(rows, columns)) ** 2).sum()), table.size, variance)


def stands_out(squares: float, number: int, variance: float) -> bool:
    """Return True if a sum of so many squares is more than noise explains.

    Noise of this variance in each explains so many variances, give or take the root of five times their number (the
    kurtosis of Laplace noise is 6).
    """
    return bool(squares / max(variance, 1e-300) > number + STANDING_OUT * (5 * number) ** 0.5)

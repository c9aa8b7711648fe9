"""Synthetic persons: links between released cases, and their constant attributes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from veilog._typing import FloatArray, IntArray
from veilog.logs.eventlog import as_dictionary
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.assemble import Wanted
from veilog.methods._events.attributes.synthesis import ReleasedColumns
from veilog.methods._events.cells import CellRule, Kinds, Look, as_shares, fit_margins, kind_shares
from veilog.methods._events.fits import least_squares
from veilog.methods._events.orders import pick_bins
from veilog.methods.method import advised
from veilog.privacy import histories
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import UNKNOWN_TIME
from veilog.privacy.curator import Curator
from veilog.privacy.histories import Histories
from veilog.rules.attributes import AttributeTable
from veilog.rules.rules import ReleaseRules


@dataclass(frozen=True, eq=False)
class PersonsModel:
    """Model from which synthetic persons are drawn: noisy answers and public facts."""

    returns: Returns
    column: str
    """Name of the column that names the persons, as in the log."""
    attributes: tuple[str, ...]
    """Attributes of persons."""
    rules: ReleaseRules | None

    def named(
        self, cases: Repeated, times: IntArray | None, columns: ReleasedColumns, rng: np.random.Generator
    ) -> ReleasedColumns:
        """Return the columns with one that names a synthetic person for each case.

        Attributes of persons are those of the first case of a person in all its cases. A link is dropped where a case
        would break a rule by them. So no case breaks a rule that it did not break before. A case without events has a
        person of its own.
        """
        constant = [name for name in columns.cases if name.removeprefix("case:") in self.attributes]
        values = np.zeros(len(cases), dtype=np.int64)
        for name in constant:
            codes = as_dictionary(pa.chunked_array([columns.cases[name]])).indices.fill_null(-1).to_numpy()
            values = np.unique(np.stack([values, codes]), axis=1, return_inverse=True)[1].reshape(-1)
        going = np.flatnonzero(cases.lengths)
        starts = ends = going
        if times is not None:
            starts, ends = times[cases.offsets[going]], times[cases.offsets[going + 1] - 1]
        following = np.full(len(cases), -1, dtype=np.int64)
        links = linked(self.returns.of_cases(cases).of(going), starts, ends, values[going], rng)
        following[going] = np.where(links >= 0, going[links], -1)

        def exchanged(first: IntArray) -> ReleasedColumns:
            taken = {name: columns.cases[name].take(pa.array(first)) for name in constant}
            return replace(columns, cases={**columns.cases, **taken})

        def breaking(first: IntArray) -> IntArray:
            if self.rules is None or not constant:
                return first[:0]
            table = table_of(exchanged(first), cases, times)
            ours = [table.cases_breaking(rule) for rule in self.rules.attributes if table.has(rule)]
            return np.unique(np.concatenate([first[:0], *ours]))

        first = first_of(kept_links(following, breaking))
        numbers = np.unique(first, return_inverse=True)[1]
        people = [f"person {number + 1}" for number in range(int(numbers.max(initial=-1)) + 1)]
        names = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(people, pa.string()))
        return replace(columns, cases={self.column: names, **exchanged(first).cases})


def asked_persons(
    curator: Curator,
    epsilon: Fraction,
    wanted: Wanted,
    cases: Repeated,
    rng: np.random.Generator,
    remark: Callable[[Message], None],
    rules: ReleaseRules | None,
    *,
    timed: bool,
) -> PersonsModel | None:
    """Query persons, and return their model; None, and no query, if noise hides them."""
    found = asked_returns(curator, epsilon, cases, rng, remark, timed=timed)
    if found is None:
        return None
    column = (curator.unit.column or "").removeprefix("case:")
    remark(Message("persons-made-up", name=column))
    return PersonsModel(found, column, tuple(name.removeprefix("case:") for name in wanted.person_attributes), rules)


def table_of(columns: ReleasedColumns, cases: Repeated, times: IntArray | None) -> AttributeTable:
    """Return the released cases in the form that rules about attributes take."""
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    going, starts = np.flatnonzero(cases.lengths), np.zeros(len(cases), dtype=np.int64)
    if times is not None:
        starts[going] = times[cases.offsets[going]]
    codes = cases.rows(0, len(cases)).codes.astype(np.int64)
    return AttributeTable(owners, cases.labels, codes, starts, columns.cases, columns.events)


# Returns -------------------------------------------------------------------------------------------------------------

# Returns: how many cases persons have, what follows a case of each kind, and after how long.
#
# There are three queries about persons (:meth:`veilog.privacy.events.EventQuestions.sums_of_persons`), each about all
# cases of a person in the order of their starts. ``SHARES`` are their shares of the epsilon.
#
# - *numbers*: persons by their number of cases. A person adds 1 in all, so noise is as narrow as it can be;
# - *kinds*: the kinds of a case and of the next one. A person adds up to m, as in the next one;
# - *gaps*: for each group of cases if another one follows, and how long after their last event.
#
# Kinds and groups are cells of cases (:mod:`.cells`), made of released cases, as many as noise allows. Where there is
# much noise there are fewer groups than kinds, because users want persons mostly to see gaps. Gaps are counted in bins
# whose edges are those that users report (a day, a week, 30 days, 90 days, a year). So no share that they report is
# made of parts of a bin. There are twice as many bins where these are known well.
#
# Everything but the queries is post-processing.


SHARES = {"numbers": Fraction(1, 4), "kinds": Fraction(1, 5), "gaps": Fraction(11, 20)}
"""Shares of the epsilon for persons.

Return rates follow from gaps, whose noise is wider the more cases of a person count. So gaps have more than half.
"""
ROUGH, ROUGH_GROUP = 0.01, 0.03
"""Standard deviations that decide the number of groups.

Noise moves the share of all cases that another follows by about the first of these, before any fit. It moves that of a
group by about the second.
"""
MOST_OFF = 0.05
"""Deviation of that share above which persons are not released."""
MOST_GROUPS = 16
OTHERWISE = 0.1
"""Part by which cases that do not count are taken to be followed more or less often.

With half and twice of this the rate of 3,000 synthetic patients is off by .012 and .012 in place of .013. That is the
standard deviation of 40 seeds, at .15 of an epsilon of 1.
"""
FEWER_KINDS = 3.0
"""Divisor of the root of (cases / noise scale) that gives the number of kinds, K.

A table of K times K numbers gives the next kind of a case to about K s / n. The loss inside a kind falls like 1 / K.
"""
LEAST_KINDS = 3
"""Fewest kinds: fewer hardly distinguish cases. Then kinds are not queried, and gaps have their share."""
FINE = 2_000
"""Cases over the scale of noise from which bins are twice as many."""
MOST_CHANCE = 0.95
RESOLUTION = 1024
"""Parts of 1 to which each case of a person with more cases than count is scaled down."""

_HOUR, _DAY = 3_600.0, 86_400.0
COARSE_EDGES = (_DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY, 365 * _DAY)
FINE_EDGES = (
    *(_HOUR, 6 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY),
    *(60 * _DAY, 90 * _DAY, 180 * _DAY, 365 * _DAY, 730 * _DAY),
)
LAST = 4 * 365 * _DAY
"""Longest gap that is drawn beyond the last edge."""
_MICROSECONDS, _FITTING = 1_000_000, 20
_LOW = 0.02


@dataclass(frozen=True, eq=False)
class Returns:
    """Cases that follow the cases of persons, by noisy answers."""

    again: FloatArray
    """Chances that a case follows a person's first case, second one and so on, over that of any.

    The last number is for all further ones.
    """
    group: IntArray
    """Group of each released case."""
    chances: FloatArray
    """Chances of each group that the next case follows in each bin of gaps; last, that none follows."""
    edges: FloatArray
    """Seconds at which bins begin, and the last ends; one bin from 0 on without times."""
    kind: IntArray
    """Kind of each released case."""
    following: FloatArray
    """Chances of each kind that the next case is of each kind."""
    rules: tuple[CellRule, CellRule] | None = None
    """Rules of kinds and of groups."""

    def of_cases(self, cases: Repeated) -> Returns:
        """Return the same for any cases with the labels of the release."""
        if self.rules is None:
            return self
        kind, group = (rule.of_cases(cases.distinct)[cases.owner] for rule in self.rules)
        return replace(self, group=group, kind=kind)

    def of(self, rows: IntArray) -> Returns:
        """Return the same for some of the cases."""
        return replace(self, group=self.group[rows], kind=self.kind[rows])


def asked_returns(
    curator: Curator,
    epsilon: Fraction,
    cases: Repeated,
    rng: np.random.Generator,
    remark: Callable[[Message], None],
    *,
    timed: bool,
) -> Returns | None:
    """Query what follows the cases of persons, with this epsilon for a case of each.

    Return None, without a query, if that is too little for so many released cases.
    """
    price = {name: epsilon * share for name, share in SHARES.items()}
    number, most = len(cases), curator.unit.most_cases
    known = number * float(price["gaps"])
    edges = np.array([0.0, *(FINE_EDGES if known >= FINE else COARSE_EDGES), LAST] if timed else [0.0, np.inf])
    bins = len(edges) - 1
    off = (2 * bins) ** 0.5 / max(known, 1e-9)
    if off > MOST_OFF:
        needed = float(epsilon) * off / MOST_OFF
        remark(Message("persons-not-released", off=off, advised=advised(needed, "persons-would-need")))
        return None
    numbers = Numbers.asked(curator, price["numbers"], number)
    bound = numbers.bound(off)
    profiles = Kinds.of(cases)
    wanted = int((number * float(price["kinds"]) * most / bound) ** 0.5 / FEWER_KINDS)
    of_kinds = CellRule.of_number(profiles, wanted if wanted >= LEAST_KINDS else 1, rng)
    if of_kinds.number == 1:  # there is no query about kinds
        price["gaps"] += price["kinds"]
    scale = bound / (float(price["gaps"]) * most)
    off = (2 * bins) ** 0.5 * scale / number
    wanted = min(int((ROUGH / off) ** 2), int(ROUGH_GROUP / off), MOST_GROUPS)
    of_groups = CellRule.of_number(profiles, max(1, wanted), rng)
    kind, group = (rule.of_cases(cases.distinct)[cases.owner] for rule in (of_kinds, of_groups))
    following = _kinds(curator, price["kinds"], bound, of_kinds, cases.labels)
    table = _gaps(curator, price["gaps"], bound, of_groups, cases.labels, edges)
    columns = least_squares(table.sum(axis=0))
    found, size = 1 - columns[-1], max(float(table.sum()), 1.0)
    variance = 2 * len(table) * (scale / size) ** 2 * (bins * columns[-1] ** 2 + found**2)
    share = numbers.together(found, variance, bound)
    if found > 0:
        columns = np.append(columns[:-1] * share / found, 1 - share)
    cell = of_groups.of_profiles(profiles.profiles)
    chances = np.zeros_like(table)
    np.add.at(
        chances, cell, profiles.shares[:, None] * _column_chances(table, columns, 2 * scale**2, profiles, cell, bins)
    )
    rows = chances.sum(axis=1, keepdims=True)
    for _ in range(_FITTING):  # to both sums (iterative proportional fitting)
        chances *= columns / np.maximum(chances.sum(axis=0), 1e-15)
        chances *= rows / np.maximum(chances.sum(axis=1, keepdims=True), 1e-15)
    rules = (of_kinds, of_groups)
    return Returns(numbers.again, group, as_shares(chances, columns), edges, kind, following, rules)


def _column_chances(
    table: FloatArray, columns: FloatArray, variance: float, profiles: Kinds, cell: IntArray, cut: int
) -> FloatArray:
    """Return the chances of each column for each profile, by noisy counts of its cell.

    ``columns`` are the shares of all. They are halved, the first time at the ``cut``, and their halves again. A sum of
    columns shows which cells differ where noise hides in which single column they do.
    """
    number = table.shape[1]
    if number == 1 or not columns.sum():
        return np.full((len(cell), number), 1 / number)
    halves = [slice(0, cut), slice(cut, number)]
    two = np.stack([table[:, half].sum(axis=1) for half in halves], axis=1)
    usual = np.array([columns[half].sum() for half in halves]) / columns.sum()
    part = np.repeat(usual[None], len(cell), axis=0)
    if usual.all():
        part = kind_shares([Look(two, variance * number / 2, cell)], usual, profiles)
    found = []
    for half, chance in zip(halves, part.T, strict=True):
        weights = profiles.shares * chance
        ours = replace(profiles, shares=weights / max(float(weights.sum()), 1e-12))
        inner = _column_chances(table[:, half], columns[half], variance, ours, cell, (half.stop - half.start + 1) // 2)
        found.append(inner * chance[:, None])
    return np.concatenate(found, axis=1)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Noisy numbers of persons by their number of cases."""

    shares: FloatArray
    """Shares of persons with 1, 2 and so on up to as many cases as count, and with more."""
    variance: float
    """Approximate variance of the share of all cases that another one follows."""

    @staticmethod
    def asked(curator: Curator, epsilon: Fraction, cases: int) -> Numbers:
        """Query the numbers; a person adds 1."""
        size = curator.unit.most_cases + 1

        def features(people: Histories) -> Triples:
            rows = np.arange(len(people))
            return rows, np.minimum(people.lengths, size) - 1, np.ones(len(people), dtype=np.int64)

        found = curator.events.sums_of_persons(features, size, 1, epsilon, purpose="persons-by-cases")
        shares = least_squares(found.astype(np.float64))
        scale = 1 / (float(epsilon) * (size - 1))
        return Numbers(shares, 2 * float((np.arange(1, size + 1) ** 2).sum()) * (scale / cases) ** 2)

    @property
    def goes_on(self) -> FloatArray:
        """Chances of a next case by those before; constant beyond as many as count."""
        left = np.cumsum(self.shares[::-1])[::-1]
        return np.clip(left[1:] / np.maximum(left[:-1], 1e-9), 0.0, MOST_CHANCE)

    @property
    def again(self) -> FloatArray:
        """Chances that a case follows a person's cases in turn, over that of any case."""
        share = self.followed(self._mean_cases)
        return self.goes_on / share if share > 0 else np.ones(len(self.goes_on))

    @property
    def _mean_cases(self) -> FloatArray:
        """Mean cases of persons by number; those with more go on as all who came back do."""
        found = np.arange(1.0, len(self.shares) + 1)
        left = np.cumsum(self.shares[::-1])[::-1]
        beyond = min(float(left[2:].sum() / max(float(left[1:-1].sum()), 1e-9)), MOST_CHANCE)
        found[-1] += beyond / (1 - beyond)
        return found

    def followed(self, weights: FloatArray) -> float:
        """Return the share of cases that another follows, at these weights of persons."""
        cases = self._mean_cases
        return float(self.shares @ (weights * (1 - 1 / cases)) / (self.shares @ weights))

    def lost(self, bound: int) -> float:
        """Return the part of all cases that does not count if so many of a person do."""
        cases = self._mean_cases
        return 1 - float(self.shares @ np.minimum(cases, bound) / (self.shares @ cases))

    def bound(self, off: float) -> int:
        """Return the number of cases with which a person counts in the other queries.

        Noise for as many as count anywhere moves shares by ``off``. Cases that are left out bend shares, but make noise
        narrower.
        """
        most = len(self.shares) - 1
        bends = [(off * bound / most) ** 2 + (OTHERWISE * self.lost(bound)) ** 2 for bound in range(1, most + 1)]
        return 1 + int(np.argmin(bends))

    def together(self, found: float, variance: float, bound: int) -> float:
        """Return the share of all cases that another one follows, by two answers.

        One is these numbers. In the other, ``found``, a person counted with up to ``bound`` cases. It is scaled by how
        much more these numbers give for all cases.
        """
        cases = self._mean_cases
        share = self.followed(cases)
        less = self.followed(np.minimum(cases, bound))
        found, variance = (found * share / less, variance * (share / less) ** 2) if less > 0 else (found, variance)
        both = (share * variance + found * self.variance) / max(variance + self.variance, 1e-300)
        return float(np.clip(both, _LOW, MOST_CHANCE))


def _kinds(curator: Curator, epsilon: Fraction, bound: int, rule: CellRule, labels: tuple[str, ...]) -> FloatArray:
    """Return the chances of the next case's kind, by the kind of the one before."""
    number = rule.number
    if number == 1:
        return np.ones((1, 1))

    def features(people: Histories) -> Triples:
        at = people.followed
        return people.owners[at], people.kinds[at] * number + people.kinds[at + 1], np.ones(len(at), dtype=np.int64)

    table = _asked(curator, epsilon, bound, features, number**2, rule, labels, "next-cases-by-kind")
    table = table.reshape(number, -1)
    rows, columns = (least_squares(table.sum(axis=axis)) for axis in (1, 0))
    scale = bound / (float(epsilon) * curator.unit.most_cases)
    found = fit_margins(table, rows, columns, 2 * scale**2)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _gaps(
    curator: Curator, epsilon: Fraction, bound: int, rule: CellRule, labels: tuple[str, ...], edges: FloatArray
) -> FloatArray:
    """Return the cases of each group by the bin of the gap to the next; last, without."""
    inner, size = edges[1:-1] * _MICROSECONDS, len(edges)

    def features(people: Histories) -> Triples:
        column = np.full(len(people.kinds), size - 1)
        at = people.followed
        end, start = people.ends[at], people.starts[at + 1]
        known = (end != UNKNOWN_TIME) & (start != UNKNOWN_TIME)
        gap = np.where(known, start, 0) - np.where(known, end, 0)
        column[at] = np.where(known | (size == 2), np.searchsorted(inner, gap, side="right"), size - 1)
        return people.owners, people.kinds * size + column, np.ones(len(column), dtype=np.int64)

    table = _asked(curator, epsilon, bound, features, rule.number * size, rule, labels, "gaps-to-next-cases")
    return table.reshape(-1, size)


def _asked(
    curator: Curator,
    epsilon: Fraction,
    bound: int,
    features: histories.HistoryFeatures,
    size: int,
    rule: CellRule,
    labels: tuple[str, ...],
    purpose: str,
) -> FloatArray:
    """Return sums to which a person adds as much as ``bound`` cases."""
    found = curator.events.sums_of_persons(
        features,
        size,
        bound,
        epsilon,
        kinds=histories.KindRule(rule.of_cases, rule.number),
        alphabet=labels,
        resolution=RESOLUTION,
        purpose=purpose,
    )
    return np.asarray(found, dtype=np.float64) / RESOLUTION


# Synthetic persons ---------------------------------------------------------------------------------------------------

# Synthetic persons: links from released cases to released cases, which stay as they are.
#
# Cases are linked in the order of their starts. :class:`Returns` gives the chances by which a next case is drawn, with
# its gap and its kind. Then the case is linked to one of that kind that no other case is linked to. Its start is
# the nearest to the end of the case plus the gap, if the gap that results lies in the same bin. So links never go back
# in time, and every case has at most one before and one after it: a person is a chain of links. It has as many cases as
# the chain goes on, also more than count.
#
# Cases near the end of the release have fewer cases after them, as those of the log had. So the log's cases show how
# often they are followed *and* that is seen. A chance is therefore divided by the part of released cases that could be
# followed after such a gap. Not every link that is drawn finds a case. So further rounds multiply the chances by how
# far the links of the last round fell short.
#
# All of this is post-processing.


ROUNDS = 3
LOOK, TRIED = 24, 3
"""Nearest cases that are searched for equal values, and kinds that are tried, at most."""
_SECOND = 1_000_000
_PARTS = np.array([1 / 6, 1 / 2, 5 / 6])


def linked(
    found: Returns,
    starts: IntArray,
    ends: IntArray,
    values: IntArray,
    rng: np.random.Generator,
) -> IntArray:
    """Return the case that follows each case, -1 for none.

    ``values`` are equal where all attributes of persons are. Times are microseconds. Without released times each case
    starts after the one before it.
    """
    order = np.lexsort((rng.random(len(starts)), starts))
    timed = len(found.edges) > 2
    chances = found.chances[:, :-1] / _observable_shares(found, starts, ends) if timed else found.chances[:, :-1].copy()
    wanted = np.bincount(found.group, minlength=len(chances))[:, None] * found.chances[:, :-1]
    # Nothing is drawn twice: a round differs from the one before it by its chances alone.
    draws = rng.random((3, len(starts)))
    following = np.full(len(starts), -1, dtype=np.int64)
    for _ in range(ROUNDS):
        following, bins = _Chains(found, starts, ends, values, order, draws).drawn(chances)
        there = bins >= 0
        got = np.zeros_like(wanted)
        np.add.at(got, (found.group[there], bins[there]), 1)
        chances *= np.clip((wanted + 1) / (got + 1), 0.5, 2.0)
    return following


def _observable_shares(found: Returns, starts: IntArray, ends: IntArray) -> FloatArray:
    """Return the part of each group's cases with time left for a gap in each bin."""
    last, shares = int(starts.max()), np.empty((len(found.chances), len(found.edges) - 1))
    for group in range(len(shares)):
        own = np.sort(ends[found.group == group])
        for place, (low, high) in enumerate(zip(found.edges[:-1], found.edges[1:], strict=True)):
            until = last - (low + _PARTS * (high - low)) * _SECOND
            shares[group, place] = np.searchsorted(own, until, side="right").mean() / max(len(own), 1)
    return np.maximum(shares, 0.05)


class _Chains:
    """Drawing of links, case by case."""

    def __init__(
        self,
        found: Returns,
        starts: IntArray,
        ends: IntArray,
        values: IntArray,
        order: IntArray,
        draws: FloatArray,
    ) -> None:
        self._found, self._order, self._draws, self._values = found, order, draws, values.tolist()
        self._timed = len(found.edges) > 2
        places = np.arange(len(order))
        self._starts = (starts[order] if self._timed else places).tolist()
        self._ends = (ends[order] if self._timed else places).tolist()
        kinds = found.kind[order]
        ranks = [np.flatnonzero(kinds == kind) for kind in range(len(found.following))]
        self._free = [_Free(ours, self._starts) for ours in ranks]
        among = np.empty(len(order), dtype=np.int64)
        for ours in ranks:
            among[ours] = np.arange(len(ours))
        self._own = list(zip(kinds.tolist(), among.tolist(), strict=True))
        """Kind of each case, and its place among those of the kind."""
        self._others = np.argsort(-found.following, axis=1, kind="stable").tolist()

    def drawn(self, chances: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the case that follows each case, and the bin of the gap; -1 for none."""
        found, order = self._found, self._order
        next_kind = pick_bins(found.following, found.kind, self._draws[1])
        edges, again = (found.edges * _SECOND).tolist(), found.again.tolist()
        reached = np.cumsum(chances, axis=1).tolist()
        ordinal = [0] * len(order)
        following, bins = np.full((2, len(order)), -1, dtype=np.int64)
        last = self._starts[-1]
        for rank, case in enumerate(order.tolist()):
            kind, among = self._own[rank]
            self._free[kind].take(among)  # what comes now is linked to later cases only
            sums = reached[found.group[case]]
            factor = again[min(ordinal[rank], len(again) - 1)]
            factor = min(factor, MOST_CHANCE / max(sums[-1], 1e-9))
            u = float(self._draws[0, case]) / max(factor, 1e-9)
            if u >= sums[-1]:
                continue
            place = bisect_left(sums, u)
            low, high = edges[place], edges[place + 1]
            if self._timed:
                gap = low + float(self._draws[2, case]) * (high - low)
                first = self._ends[rank] + low if place else self._starts[rank]
                until, target = self._ends[rank] + high, self._ends[rank] + gap
            else:
                first, until, target = rank, len(order), rank
            if target > last:
                continue
            other = self._nearest(int(next_kind[case]), kind, self._values[case], (first, target, until))
            if other >= 0:
                following[case], bins[case] = order[other], place
                ordinal[other] = ordinal[rank] + 1
        return following, bins

    def _nearest(self, wanted: int, kind: int, values: int, within: tuple[float, float, float]) -> int:
        """Return the rank of a free case that starts within these ends, -1 for none.

        It is of the wanted kind, or else of one that is likely after this kind. It starts nearest to the middle one of
        ``within``, with equal values if there is such a case.
        """
        first, target, until = within
        kinds: list[int] = [wanted, *(one for one in self._others[kind] if one != wanted)]
        for tried in kinds[:TRIED]:
            free, best = self._free[tried], -1
            for looked, (place, other) in enumerate(free.nearest(target)):
                inside = first <= self._starts[other] < until
                if looked == LOOK or (best >= 0 and not inside):
                    break
                if inside and (best < 0 or self._values[self._order[other]] == values):
                    best = place
                if best == place and self._values[self._order[other]] == values:
                    break
            if best >= 0:
                return free.take(best)
        return -1


class _Free:
    """Cases of a kind to which none is linked yet, in the order of their starts."""

    def __init__(self, ranks: IntArray, starts: Sequence[int]) -> None:
        self._ranks: list[int] = ranks.tolist()
        self._starts = [starts[rank] for rank in self._ranks]
        number = len(self._ranks)
        self._right, self._left = list(range(number + 1)), list(range(number + 1))

    def nearest(self, target: float) -> Iterator[tuple[int, int]]:
        """Yield free places with their ranks, the nearest to the target first."""
        after = bisect_left(self._starts, target)
        right, left = _end(self._right, after), _end(self._left, after) - 1
        while left >= 0 or right < len(self._ranks):
            far = right == len(self._ranks) or (
                left >= 0 and target - self._starts[left] <= self._starts[right] - target
            )
            if far:
                yield left, self._ranks[left]
                left = _end(self._left, left) - 1
            else:
                yield right, self._ranks[right]
                right = _end(self._right, right + 1)

    def take(self, place: int) -> int:
        """Take a place, and return its rank."""
        self._right[place] = place + 1
        self._left[place + 1] = place
        return self._ranks[place]


def _end(steps: list[int], place: int) -> int:
    """Return the place where the steps from a place end, and shorten them on the way."""
    while steps[place] != place:
        steps[place] = steps[steps[place]]
        place = steps[place]
    return place


def first_of(following: IntArray) -> IntArray:
    """Return the first case of the person of each case."""
    first = np.arange(len(following))
    before = np.flatnonzero(following >= 0)
    first[following[before]] = before
    while not np.array_equal(first, first[first]):  # twice as far each time
        first = first[first]
    return first


def kept_links(following: IntArray, breaking: Callable[[IntArray], IntArray]) -> IntArray:
    """Return the links without those to cases that break a rule.

    ``breaking`` finds these cases, given the first case of each case's person, whose values it has.
    """
    following = following.copy()
    while True:
        first = first_of(following)
        wrong = breaking(first)
        cut = np.flatnonzero(np.isin(following, wrong[first[wrong] != wrong]))
        if not len(cut):
            return following
        following[cut] = -1

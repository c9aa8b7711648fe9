"""Released persons: which released cases are those of one made-up person, and what stays the same in them."""

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
from veilog.methods._events.orders import picked
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
    """What made-up persons are drawn from: noisy answers and public facts."""

    returns: Returns
    column: str
    """It names the persons, as that of the log does."""
    attributes: tuple[str, ...]
    """Those of persons."""
    rules: ReleaseRules | None

    def named(
        self, cases: Repeated, times: IntArray | None, columns: ReleasedColumns, rng: np.random.Generator
    ) -> ReleasedColumns:
        """Return the columns with one that names a made-up person for each case.

        Attributes of persons are those of the first case of a person in all its cases. A link goes where a case would
        break a rule by them; so no case breaks one that it did not break before. Cases without events are of a person
        without others.
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
    """Return what persons are drawn from; None, and nothing is asked, where noise would leave nothing of them."""
    found = asked_returns(curator, epsilon, cases, rng, remark, timed=timed)
    if found is None:
        return None
    column = (curator.unit.column or "").removeprefix("case:")
    remark(Message("persons-made-up", name=column))
    return PersonsModel(found, column, tuple(name.removeprefix("case:") for name in wanted.person_attributes), rules)


def table_of(columns: ReleasedColumns, cases: Repeated, times: IntArray | None) -> AttributeTable:
    """Return the released cases as rules about attributes see them."""
    owners = np.repeat(np.arange(len(cases)), cases.lengths)
    going, starts = np.flatnonzero(cases.lengths), np.zeros(len(cases), dtype=np.int64)
    if times is not None:
        starts[going] = times[cases.offsets[going]]
    codes = cases.rows(0, len(cases)).codes.astype(np.int64)
    return AttributeTable(owners, cases.labels, codes, starts, columns.cases, columns.events)


# Who comes back ------------------------------------------------------------------------------------------------------

# Who comes back: how many cases persons have, what follows a case of each kind, and after how long.
#
# Three questions about persons (:meth:`veilog.privacy.events.EventQuestions.sums_of_persons`), each about all cases
# of a person in the order of their starts; shares of the epsilon: ``SHARES``:
#
# - *numbers*: persons by their number of cases. A person adds 1 in all, so noise is as narrow as it can be;
# - *kinds*: the kinds of a case and of the next one. A person adds up to m, as in the next one;
# - *gaps*: for each group of cases whether another one follows, and after how long from their last event.
#
# Kinds and groups are cells of cases (:mod:`.cells`), made of released cases, as many as noise allows: fewer groups
# than kinds where there is much noise, because people ask for persons mostly to see gaps. Gaps are counted in
# bins whose edges are those that people report (a day, a week, 30 days, 90 days, a year), so that no share that
# they report is made of parts of a bin; in twice as many bins where these are known well.
#
# Everything but the questions is post-processing.


SHARES = {"numbers": Fraction(1, 4), "kinds": Fraction(1, 5), "gaps": Fraction(11, 20)}
"""What shares out the epsilon for persons. Return rates follow from gaps, whose noise is wider the more cases of a
person count; so gaps have more than half."""
ROUGH, ROUGH_GROUP = 0.01, 0.03
"""Groups are so many that noise moves the share of all cases that another follows by about the first of these, and that
of a group by about the second (standard deviations, before any fit)."""
MOST_OFF = 0.05
"""Where noise would move that share by more, persons are not released."""
MOST_GROUPS = 16
OTHERWISE = 0.1
"""By so much cases that do not count are taken to be followed more or less often than others. With half and twice of
this the rate of 3,000 made-up patients is off by .012 and .012 in place of .013 (standard deviation of 40 seeds, .15 of
an epsilon of 1)."""
FEWER_KINDS = 3.0
"""(cases / noise scale) to the power of a half over this is the number of kinds: a table of K times K numbers tells the
next kind of a case to about K s / n, and what a kind hides inside falls like 1 / K."""
LEAST_KINDS = 3
"""Fewer tell hardly any cases apart: then kinds are not asked, and gaps have their share."""
FINE = 2_000
"""From so many cases over the scale of noise on, bins are twice as many."""
MOST_CHANCE = 0.95
RESOLUTION = 1024
"""A person with more cases than count has each of them scaled down to such a part of 1."""

_HOUR, _DAY = 3_600.0, 86_400.0
COARSE_EDGES = (_DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY, 365 * _DAY)
FINE_EDGES = (
    *(_HOUR, 6 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY),
    *(60 * _DAY, 90 * _DAY, 180 * _DAY, 365 * _DAY, 730 * _DAY),
)
LAST = 4 * 365 * _DAY
"""Gaps beyond the last edge are drawn up to this."""
_MICROSECONDS, _FITTING = 1_000_000, 20
_LOW = 0.02


@dataclass(frozen=True, eq=False)
class Returns:
    """What follows the cases of persons, by noisy answers."""

    again: FloatArray
    """How much more often another case follows the first one of a person, the second one and so on, than any; the last
    number is for all further ones."""
    group: IntArray
    """Of each released case."""
    chances: FloatArray
    """Of each group, how often the next case follows after a gap in each bin; the last number: that none follows."""
    edges: FloatArray
    """Seconds at which bins begin, and the last one ends; one bin from 0 on where no times are released."""
    kind: IntArray
    """Of each released case."""
    following: FloatArray
    """Of each kind, how likely the next case is of each kind."""
    rules: tuple[CellRule, CellRule] | None = None
    """Of kinds and of groups."""

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
    """Return what is found of persons, with so much epsilon for one of the cases of a person; None, and nothing is
    asked, where that is too little for so many released cases."""
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
    if of_kinds.number == 1:  # there is nothing to ask about kinds
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
    np.add.at(chances, cell, profiles.shares[:, None] * _shared_out(table, columns, 2 * scale**2, profiles, cell, bins))
    rows = chances.sum(axis=1, keepdims=True)
    for _ in range(_FITTING):  # to both sums (iterative proportional fitting)
        chances *= columns / np.maximum(chances.sum(axis=0), 1e-15)
        chances *= rows / np.maximum(chances.sum(axis=1, keepdims=True), 1e-15)
    rules = (of_kinds, of_groups)
    return Returns(numbers.again, group, as_shares(chances, columns), edges, kind, following, rules)


def _shared_out(
    table: FloatArray, columns: FloatArray, variance: float, profiles: Kinds, cell: IntArray, cut: int
) -> FloatArray:
    """Return how likely each column is for each profile, by noisy counts of its cell, when these are the shares of all.

    Columns are halved, the first time at the ``cut``, and their halves again: which cells differ in a sum of columns
    shows where noise hides in which single one they do.
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
        inner = _shared_out(table[:, half], columns[half], variance, ours, cell, (half.stop - half.start + 1) // 2)
        found.append(inner * chance[:, None])
    return np.concatenate(found, axis=1)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Persons by their number of cases, with noise."""

    shares: FloatArray
    """Of persons with 1, 2 and so on up to as many cases as count, and with more."""
    variance: float
    """About that of the share of all cases that another one follows."""

    @staticmethod
    def asked(curator: Curator, epsilon: Fraction, cases: int) -> Numbers:
        """Ask for them; a person adds 1."""
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
        """How likely another case follows the first one of a person, the second one and so on; beyond as many as count
        it stays as it is there."""
        left = np.cumsum(self.shares[::-1])[::-1]
        return np.clip(left[1:] / np.maximum(left[:-1], 1e-9), 0.0, MOST_CHANCE)

    @property
    def again(self) -> FloatArray:
        """The same over how likely it is for any case."""
        share = self.followed(self._mean_cases)
        return self.goes_on / share if share > 0 else np.ones(len(self.goes_on))

    @property
    def _mean_cases(self) -> FloatArray:
        """Mean number of cases of persons with so many, of whom those with more go on as all who came back do."""
        found = np.arange(1.0, len(self.shares) + 1)
        left = np.cumsum(self.shares[::-1])[::-1]
        beyond = min(float(left[2:].sum() / max(float(left[1:-1].sum()), 1e-9)), MOST_CHANCE)
        found[-1] += beyond / (1 - beyond)
        return found

    def followed(self, weights: FloatArray) -> float:
        """Return the share of cases that another one follows, where all cases of a person together weigh so much."""
        cases = self._mean_cases
        return float(self.shares @ (weights * (1 - 1 / cases)) / (self.shares @ weights))

    def lost(self, bound: int) -> float:
        """Return the part of all cases that does not count where a person counts with so many at most."""
        cases = self._mean_cases
        return 1 - float(self.shares @ np.minimum(cases, bound) / (self.shares @ cases))

    def bound(self, off: float) -> int:
        """Return with how many cases a person counts in the other questions, where noise for as many as count anywhere
        moves shares by ``off``: what is left out bends them, and noise is narrower for it."""
        most = len(self.shares) - 1
        bends = [(off * bound / most) ** 2 + (OTHERWISE * self.lost(bound)) ** 2 for bound in range(1, most + 1)]
        return 1 + int(np.argmin(bends))

    def together(self, found: float, variance: float, bound: int) -> float:
        """Return the share of all cases that another one follows, by these numbers and by another answer in which a
        person counted with so many: as much more than that as these numbers say that it is more."""
        cases = self._mean_cases
        share = self.followed(cases)
        less = self.followed(np.minimum(cases, bound))
        found, variance = (found * share / less, variance * (share / less) ** 2) if less > 0 else (found, variance)
        both = (share * variance + found * self.variance) / max(variance + self.variance, 1e-300)
        return float(np.clip(both, _LOW, MOST_CHANCE))


def _kinds(curator: Curator, epsilon: Fraction, bound: int, rule: CellRule, labels: tuple[str, ...]) -> FloatArray:
    """How likely the next case is of each kind, by the kind of the one before."""
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
    """Cases of each group by the bin of the gap to the next one, the last number for those that none follows."""
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
    """Sums to which a person adds as much as so many cases."""
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


# Made-up persons -----------------------------------------------------------------------------------------------------

# Made-up persons: links from released cases to released cases, which stay as they are.
#
# Cases are gone through in the order of their starts. Whether another one follows, after which gap and of which
# kind is drawn by what was found (:mod:`.returns`); then the case is linked to one of that kind that no other case
# is linked to, and whose start is nearest to its own end and the gap, if that lies in the same bin. So links never
# go back in time, and every case has at most one before and one after it: a person is a chain of links. It has as
# many cases as it goes on, also more than count.
#
# Cases near the end of the release have fewer cases after them, as those of the log had. What the log's cases show
# is therefore how often they are followed *and* that is seen: a chance is divided by how many released cases could
# be followed after such a gap. And since not every link that is drawn finds a case, chances are multiplied, in
# further rounds, by how far the links of the last one fell short.
#
# All of this is post-processing.


ROUNDS = 3
LOOK, TRIED = 24, 3
"""So many of the nearest cases are looked at for one with equal values, of so many kinds at most."""
_SECOND = 1_000_000
_PARTS = np.array([1 / 6, 1 / 2, 5 / 6])


def linked(
    found: Returns,
    starts: IntArray,
    ends: IntArray,
    values: IntArray,
    rng: np.random.Generator,
) -> IntArray:
    """Return of each case the one that follows it, -1 for none; ``values`` are equal where all attributes of persons
    are. Times are microseconds; without released times each case starts after the one before it."""
    order = np.lexsort((rng.random(len(starts)), starts))
    timed = len(found.edges) > 2
    chances = found.chances[:, :-1] / _seen(found, starts, ends) if timed else found.chances[:, :-1].copy()
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


def _seen(found: Returns, starts: IntArray, ends: IntArray) -> FloatArray:
    """Which part of the cases of each group could be followed after a gap in each bin, before the last case starts."""
    last, shares = int(starts.max()), np.empty((len(found.chances), len(found.edges) - 1))
    for group in range(len(shares)):
        own = np.sort(ends[found.group == group])
        for place, (low, high) in enumerate(zip(found.edges[:-1], found.edges[1:], strict=True)):
            until = last - (low + _PARTS * (high - low)) * _SECOND
            shares[group, place] = np.searchsorted(own, until, side="right").mean() / max(len(own), 1)
    return np.maximum(shares, 0.05)


class _Chains:
    """Draws links, case by case."""

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
        """Of each case its kind, and its place among those of the kind."""
        self._others = np.argsort(-found.following, axis=1, kind="stable").tolist()

    def drawn(self, chances: FloatArray) -> tuple[IntArray, IntArray]:
        """Return what follows each case, and in which bin the gap is; -1 for none."""
        found, order = self._found, self._order
        next_kind = picked(found.following, found.kind, self._draws[1])
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
        """The place of a free case that starts within these ends, nearest to the middle one, of the wanted kind or else
        one that is likely after this kind, with equal values if there is such; -1 for none."""
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
    """Cases of a kind that nobody is linked to yet, in the order of their starts."""

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
    """Where the steps from a place end, which are made shorter on the way."""
    while steps[place] != place:
        steps[place] = steps[steps[place]]
        place = steps[place]
    return place


def first_of(following: IntArray) -> IntArray:
    """Return of each case the first one of its person."""
    first = np.arange(len(following))
    before = np.flatnonzero(following >= 0)
    first[following[before]] = before
    while not np.array_equal(first, first[first]):  # twice as far each time
        first = first[first]
    return first


def kept_links(following: IntArray, breaking: Callable[[IntArray], IntArray]) -> IntArray:
    """Return the links without those to cases that break a rule, which ``breaking`` finds where each case has the
    values of these first cases."""
    following = following.copy()
    while True:
        first = first_of(following)
        wrong = breaking(first)
        cut = np.flatnonzero(np.isin(following, wrong[first[wrong] != wrong]))
        if not len(cut):
            return following
        following[cut] = -1

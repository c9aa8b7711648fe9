"""Queries of the curator on times and attributes, charged to its account.

They are reached as ``curator.events``. As everywhere in the kernel, neighbouring logs differ by one case, added or
removed, with all its events. Every query proves its sensitivity in its docstring.

A log in pieces, on a disk or in a cluster, answers piece by piece. Every case lies wholly in one piece. So its
contribution, bounded there, is its contribution in memory. The contributions of the pieces are added up, in integers,
before the noise. The exact answer is therefore the same number whatever and wherever the pieces are, and so are its
sensitivity and its distribution. Charges and noise are made in this process alone, and a charge before the first piece
is touched.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.messages import Message
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.account.budgets import Number, parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Condition, so_many
from veilog.privacy.cases import (
    AllCases,
    CaseFeatures,
    Coding,
    Kind,
    Level,
    RawCases,
    attribute_kind,
    attribute_level,
)
from veilog.privacy.contributions import CUBE_UNIT, check_size_and_bound, check_sums, noise_of_sums, steps_of_cubes
from veilog.privacy.domain import Domain, Window
from veilog.privacy.histograms import gaussian_rounds
from veilog.privacy.histories import HistoryFeatures, KindRule, sums_of_persons
from veilog.privacy.mechanisms.mechanism import (
    CubeNoise,
    DiscreteGaussian,
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    NoisyMaximum,
    Sensitivity,
    Thresholded,
)
from veilog.privacy.mechanisms.noise import Randomness
from veilog.privacy.unit import PersonCases

if TYPE_CHECKING:
    from veilog.logs.storage.stored_log import StoredLog


IntArray = npt.NDArray[np.int64]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY = 86_400_000_000
_LAST_DAY = (datetime.date.max - _EPOCH.date()).days

_WINDOW_FROM_LOG = Condition("window-from-log", "owner", Message("window-from-log"))
_COLUMNS_FROM_LOG = Condition(
    "columns-from-log",
    "program",
    Message("columns-from-log"),
)


def columns_taken(log: EventLog | StoredLog) -> tuple[Condition, ...]:
    """Return the conditions on the columns of attributes and on how they were read."""
    together = log.attributes_read_together
    read = (Condition("columns-read-together", "program", Message.joined(together)),) if together else ()
    return (_COLUMNS_FROM_LOG, *read)


class EventQuestions:
    """Queries on the events of a log beyond their order."""

    def __init__(
        self,
        log: EventLog | StoredLog,
        domain: Domain,
        randomness: Randomness,
        account: ChargeAccount,
        *,
        whole: EventLog | StoredLog | None = None,
        people: PersonCases | None = None,
    ) -> None:
        """Open queries on a log.

        ``whole`` is the log that public facts are taken from, where it has other cases. ``people`` are all cases of the
        persons, where a column names these.
        """
        self._log, self._public = log, log if whole is None else whole
        self._domain, self._raw = domain, AllCases(log, domain)
        self._randomness, self._account, self._people = randomness, account, people

    # Public facts ---------------------------------------------------------------------------------------------------

    def level(self, name: str) -> Level:
        """Return an attribute's level, case or event; the columns become a condition."""
        self._assume_columns()
        return attribute_level(self._log.shape, name)

    def kind(self, name: str) -> Kind:
        """Return the kind of an attribute's values; the columns become a condition."""
        self._assume_columns()
        return attribute_kind(self._log.shape, name)

    @property
    def window(self) -> Window:
        """Public window of case starts, cut to a subset of time.

        It is declared, or the days from the log's first to its last case start, which is then a condition of the
        guarantee.
        """
        if self._domain.window is not None:
            return self.of_subset(self._domain.window)
        self._account.assume(_WINDOW_FROM_LOG)
        # As the data owner knows the log: without events that are left out, a single case may be the first or the last.
        ends = AllCases(self._public, Domain()).outermost_starts()
        if ends is None:
            raise ParameterError("cases-all-without-start", parameter="window")
        # A window ends at the latest where days do: a case that starts on the last of all is outside, and not refused.
        end = min(ends[1] // _DAY + 1, _LAST_DAY)
        first = min(ends[0] // _DAY, end - 1)
        return self.of_subset((_EPOCH + datetime.timedelta(days=first), _EPOCH + datetime.timedelta(days=end)))

    def of_subset(self, window: Window) -> Window:
        """Return the window of the subset's starts within a public one, itself public."""
        return window if self._account.subset is None else self._account.subset.within(window)

    def check_moments(self, name: str) -> None:
        """Refuse an attribute without times of events; the columns become a condition."""
        there = name in self._log.shape.events.column_names
        if not there or (self.kind(name), self.level(name)) != ("date", "event"):
            raise ParameterError("event-starts-missing", parameter="processing", name=name)

    def _assume_columns(self) -> None:
        for condition in columns_taken(self._log):
            self._account.assume(condition)

    def _check_codings(self, codings: Sequence[Coding]) -> None:
        """Refuse codings that the log's columns do not have, before any charge."""
        for coding in codings:
            if coding.moments:
                self.check_moments(coding.name)
            numeric = bool(coding.edges) or coding.decimals is not None
            if numeric and self.kind(coding.name) not in ("whole number", "number", "date"):
                raise ParameterError("attribute-range-not-numbers", parameter="domain", name=coding.name)
            self.level(coding.name)

    # Questions ------------------------------------------------------------------------------------------------------

    def sums(
        self,
        features: CaseFeatures,
        size: int,
        bound: int,
        epsilon: Number,
        *,
        delta: Number = 0,
        alphabet: Sequence[str] = (),
        codings: Sequence[Coding] = (),
        resolution: int = 1,
        purpose: str | Message = "sums-over-events",
    ) -> IntArray:
        """Return noisy sums of a vector of ``size`` integers, over all cases.

        The sums are in units of ``1/resolution``. ``features`` maps each case, by itself, to its vector v. A case is
        its activities as places in ``alphabet``, its times, and its attributes in the ``codings``. Norm, clipping and
        noise are those of :meth:`Curator.sums`. They are the L1 norm and Laplace noise, or with a delta the L2 norm and
        Gaussian noise, both discrete.

        Sensitivity: the alphabet and the codings are public or noisy answers, so the contribution of a case depends on
        that case alone. Its norm is at most ``resolution * bound``, exactly, because it is computed in integers. Adding
        or removing a case changes the sums by its contribution: the sums together are epsilon-differentially private,
        or (epsilon, delta)-differentially private.
        """
        eps, failure = parse_epsilon(epsilon), parse_delta(delta)
        check_sums(size, bound, resolution, eps)
        self._check_codings(codings)
        noise, norm = noise_of_sums(bound, resolution, eps, failure)
        sensitivity = Sensitivity.of(bound, norm, "clipped")
        mechanism = self._account.charge("event sums", so_many(purpose, size, "sum"), noise, sensitivity, eps, failure)
        exact = self._raw.sums(features, size, bound, resolution, norm, alphabet, codings)
        return exact + mechanism.draw(size, self._randomness)

    def cube_sums(
        self,
        features: CaseFeatures,
        rows: int,
        width: int,
        epsilon: Number,
        *,
        alphabet: Sequence[str] = (),
        codings: Sequence[Coding] = (),
        purpose: str | Message = "sums-over-events",
    ) -> IntArray:
        """Return noisy sums in ``rows`` of ``width`` numbers.

        The sums are in units of ``1/steps_of_cubes(width, epsilon)``. ``features`` maps each case, by itself, to a
        vector of integers in units of ``1/CUBE_UNIT``, one row after the other, as in :meth:`sums`. Only the first row
        counts in which the case has an entry, and each entry up to 1 in size. Each row gets discrete noise z with
        ``P(z)`` proportional to ``exp(-epsilon max |z_i|)``.

        Sensitivity: the alphabet and the codings are public or noisy answers, so the contribution of a case depends on
        that case alone. It is to the numbers of one row, and -1 to 1 to each. Adding or removing the case changes these
        numbers by at most 1 each, and no other row. With this noise the sums together are epsilon-differentially
        private (proof: :class:`~veilog.privacy.mechanisms.mechanism.CubeNoise`).
        """
        eps = parse_epsilon(epsilon)
        check_size_and_bound(width, 1, 1)
        size, resolution = rows * width, steps_of_cubes(width, eps)
        check_sums(size, 1, resolution, eps)
        self._check_codings(codings)
        mechanism = self._account.charge(
            "event cube sums",
            so_many(purpose, size, "sum"),
            CubeNoise(1 / eps, width, resolution),
            Sensitivity.of(1, "L-infinity", "clipped"),
            eps,
        )
        exact = self._raw.cube_sums(features, size, width, alphabet, codings)
        return exact * (resolution // CUBE_UNIT) + mechanism.draw(size, self._randomness)

    def sums_of_persons(
        self,
        features: HistoryFeatures,
        size: int,
        bound: int,
        epsilon: Number,
        *,
        kinds: KindRule | None = None,
        alphabet: Sequence[str] = (),
        resolution: int = 1,
        purpose: str | Message = "sums-over-persons",
    ) -> IntArray:
        """Return noisy sums of a vector of ``size`` integers, over all persons.

        The sums are in units of ``1/resolution``. ``features`` maps each person, by itself, to its vector. It gets all
        its cases in the order of their starts, whether they count elsewhere or not, each with its times. ``kinds``
        gives each case a kind by its activities. Where the L1 norm of the vector exceeds ``bound`` it is scaled down to
        that. ``epsilon`` is for one of the ``most_cases`` m cases of a person, as in all queries. So a person has m
        times as much, and each sum gets discrete Laplace noise of scale ``bound / (m epsilon)``.

        Sensitivity: the kinds and their alphabet are public or noisy answers. The person of each case is known by that
        case itself, and the order of cases follows from their own starts and places. So the vector of a person depends
        on the cases that name it alone, however many they are. Its L1 norm is at most ``resolution * bound``, exactly,
        because it is computed in integers. Cases that name no person are left out, or are each the only one of a person
        without others, as the unit decides. Adding or removing a person adds or removes its vector, and changes no
        other. So the sums together are (m epsilon)-differentially private for a person. They are charged as m cases,
        each of which changes them by ``bound / m``, which is the same number. The cost of a delta elsewhere grows with
        all epsilons (:meth:`veilog.privacy.unit.Unit.charges`); this makes it no less than it is.
        """
        eps = parse_epsilon(epsilon)
        if self._people is None:
            raise ParameterError("question-persons-without-column", parameter="unit")
        most = self._account.unit.most_cases
        check_sums(size, bound, resolution, eps * most)
        noise, norm = noise_of_sums(bound, resolution, eps * most, Fraction(0))
        sensitivity = Sensitivity.of(Fraction(bound, most), norm, "clipped")
        mechanism = self._account.charge("person sums", so_many(purpose, size, "sum"), noise, sensitivity, eps)
        exact = sums_of_persons(self._people, self._domain, features, size, bound, resolution, kinds, alphabet)
        return exact + mechanism.draw(size, self._randomness)

    def rounds(
        self,
        weights: Sequence[Fraction],
        epsilon: Number,
        delta: Number,
        *,
        purpose: str | Message = "sums-over-events",
    ) -> EventRounds:
        """Return as many queries for sums as weights, all charged before the first.

        They have discrete Gaussian noise; the squared strength is shared out by the weights.

        Sensitivity: in each a case contributes a vector of an L2 norm of at most ``EventRounds.UNIT``
        (:meth:`EventRounds.sums`). The noise of each was fixed in these units before the first. Together they are
        (epsilon, delta)-differentially private, whatever they ask; the proof stands in
        :mod:`veilog.privacy.histograms`.
        """
        eps, failure = parse_epsilon(epsilon), parse_delta(delta)
        paid = gaussian_rounds(weights, eps, failure, by=EventRounds.UNIT)
        self._account.charge(
            "event rounds",
            so_many(purpose, len(weights), "question"),
            paid,
            Sensitivity.of(1, "L2", "clipped"),  # in units of the bound of each query
            eps,
            failure,
        )
        return EventRounds(self, paid, self._randomness)

    def most_apart(
        self,
        features: CaseFeatures,
        expected: Sequence[npt.ArrayLike],
        less: Sequence[int],
        epsilon: Number,
        *,
        alphabet: Sequence[str] = (),
        codings: Sequence[Coding] = (),
        purpose: str | Message = "table-most-apart",
    ) -> int:
        """Return the place of the table of counts farthest from ``expected``, with noise.

        ``features`` maps each case, by itself, to cells of tables that stand one after the other. Table i has as many
        cells as ``expected[i]`` has numbers. The first cell of a case in each table counts, once, so that ``n_i``
        counts cases. The score of table i is ``sum |n_i - expected[i]| - less[i]``. The result is the place of the
        largest score with discrete Laplace noise of scale 2/epsilon.

        Sensitivity: ``expected`` and ``less`` are public or noisy answers. A case is in at most one cell of each table.
        So adding or removing it changes one number of ``n_i`` by 1, and the score by at most 1. Every score, however
        many there are, changes by at most 1. With this noise the place of the largest is epsilon-differentially private
        (proof: :class:`~veilog.privacy.mechanisms.mechanism.NoisyMaximum`).
        """
        eps = parse_epsilon(epsilon)
        wanted = [np.asarray(table, dtype=np.int64).reshape(-1) for table in expected]
        if not wanted or len(less) != len(wanted):
            raise ParameterError("tables-offsets-not-matching", parameter="less")
        ends = np.cumsum([len(table) for table in wanted])
        check_sums(int(ends[-1]), 1, 1, eps)
        self._check_codings(codings)
        mechanism = self._account.charge(
            "most apart",
            so_many(purpose, len(wanted), "table"),
            NoisyMaximum(Laplace(2 / eps)),
            Sensitivity.of(1, "each"),
            eps,
        )
        exact = self._raw.firsts(features, ends, alphabet, codings)
        tables = np.split(exact, ends[:-1])
        scores = [int(np.abs(n - e).sum()) - int(w) for n, e, w in zip(tables, wanted, less, strict=True)]
        return mechanism.largest(np.array(scores, dtype=np.int64), self._randomness)

    def distinct(self, name: str, epsilon: Number) -> tuple[int, int]:
        """Return noisy counts: distinct first values of an attribute, and cases with one.

        The first value of each case counts, also of an event attribute. Both numbers get discrete Laplace noise of
        scale 2/epsilon.

        Sensitivity: adding a case adds at most one value that no other case has first, and at most one case that has a
        value. Each number changes by at most 1, both together by at most 2 (L1): epsilon-differentially private.
        """
        eps = parse_epsilon(epsilon)
        self.level(name)
        mechanism = self._account.charge(
            "distinct values", Message("whether-tells-cases-apart", name=name), Laplace(2 / eps), Sensitivity.of(2), eps
        )

        def of_firsts(raw: RawCases, _first: bool) -> tuple[set[str], int]:
            labels, owners, values = raw.values(name)
            _, first = np.unique(owners, return_index=True)
            return {labels[i] for i in np.unique(values[first]).tolist()}, len(first)

        def of_all(found: Iterable[tuple[set[str], int]]) -> tuple[set[str], int]:
            firsts: set[str] = set()
            having = 0
            for some, cases in found:
                firsts |= some
                having += cases
            return firsts, having

        firsts, having = self._raw.over(of_firsts, of_all, (name,))
        noisy = mechanism.draw(2, self._randomness)
        return len(firsts) + int(noisy[0]), having + int(noisy[1])

    def frequent_values(self, name: str, most: int, epsilon: Number, delta: Number) -> tuple[str, ...]:
        """Return the values of an attribute that enough cases have, sorted by name.

        The first ``most`` different values of each case count, each once. A value is released iff its number of cases
        plus k-TSGD noise for (epsilon/most, delta/most) exceeds k. A value that no case has is never released.

        Sensitivity: adding a case changes the counts of at most ``most`` values, each by 1. Each of them alone is
        (epsilon/most, delta/most)-differentially private (see :meth:`Curator.partitions`); the noises are independent
        and the other counts do not change, so together they are (epsilon, delta)-differentially private.
        """
        eps, failure = parse_epsilon(epsilon), parse_delta(delta)
        if failure == 0 or most < 1:
            raise ParameterError("values-selection-without-delta", parameter="delta")
        self.level(name)
        added = KTruncatedGeometric.of(eps / most, failure / most)
        mechanism = self._account.charge(
            "frequent values",
            Message("values-of", name=name),
            Thresholded(added, above=added.k),
            Sensitivity.of(most, "L0"),
            eps,
            min(most * added.delta, failure),
        )

        def of_cases(raw: RawCases, _first: bool) -> Counter[str]:
            labels, owners, values = raw.values(name)
            starts = np.flatnonzero(np.diff(owners, prepend=-1))
            rank = np.arange(len(owners)) - np.repeat(starts, np.diff(starts, append=len(owners)))
            counts = np.bincount(values[rank < most], minlength=len(labels))
            found: Counter[str] = Counter()
            for i in np.flatnonzero(counts).tolist():
                found[labels[i]] += int(counts[i])
            return found

        exact = self._raw.over(of_cases, _add_counters, (name,))
        # Noise goes by the order of names: not by that of the rows, nor by pieces.
        names = sorted(exact)
        drawn = mechanism.noise.draw(len(names), self._randomness)
        noisy = np.array([exact[name] for name in names], dtype=np.int64) + drawn
        return tuple(names[i] for i in np.flatnonzero(noisy > mechanism.above).tolist())


def _add_counters(found: Iterable[Counter[str]]) -> Counter[str]:
    """Return the sum of all these counts."""
    total: Counter[str] = Counter()
    for counts in found:
        total.update(counts)
    return total


class EventRounds:
    """Queries for sums that are charged together; one beyond them is refused.

    Opened by :meth:`EventQuestions.rounds`, which charges all of them before the first.
    """

    UNIT = 2**24
    """Largest L2 norm of a case's contribution to each."""

    def __init__(self, questions: EventQuestions, paid: GaussianRounds, randomness: Randomness) -> None:
        self._questions, self._paid, self._randomness = questions, paid, randomness
        self._asked = 0

    @property
    def asked(self) -> int:
        """Number of queries so far."""
        return self._asked

    @property
    def noises(self) -> tuple[DiscreteGaussian, ...]:
        """Noise of each query."""
        return self._paid.noises

    def sums(
        self,
        features: CaseFeatures,
        size: int,
        bound: int,
        *,
        alphabet: Sequence[str] = (),
        codings: Sequence[Coding] = (),
        resolution: int = 1,
    ) -> IntArray:
        """Return the next noisy sums of a vector of ``size`` integers, over all cases.

        The sums are in units of ``1/resolution``. Features, alphabet and codings are those of
        :meth:`EventQuestions.sums`, and so is the clipping by the L2 norm. The product of ``bound`` and ``resolution``
        is at most ``UNIT``.

        Sensitivity: the alphabet, the codings, the bound and the resolution are public or noisy answers. So the
        contribution of a case depends on that case alone. Its L2 norm is at most ``resolution * bound``, so at most
        ``UNIT``, exactly, because it is computed in integers. It was charged with the others.
        """
        if self._asked == len(self.noises):
            raise ParameterError("questions-used-up", parameter="rounds", asked=self._asked)
        check_size_and_bound(size, bound, resolution)
        if resolution * bound > self.UNIT:
            raise ParameterError("contributions-steps-too-large", parameter="bound", bound=bound, resolution=resolution)
        self._questions._check_codings(codings)
        noise = self.noises[self._asked]
        self._asked += 1
        exact = self._questions._raw.sums(features, size, bound, resolution, "L2", alphabet, codings)
        return exact + noise.draw(size, self._randomness)

"""Curator: holds the raw log, answers queries with noise and keeps the account.

A method sees the log through these queries only. Each proves its sensitivity in its docstring (neighbouring logs differ
by one case, added or removed). It draws its noise from :mod:`veilog.privacy.mechanisms.noise` and records a charge. The
guarantee of a release is derived from the charges; a :meth:`Curator.peek` makes it "none".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.account.budgets import Number, parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Charge, Condition, Guarantee, Statement, so_many
from veilog.privacy.contributions import Features, check_sums, exact_sums, noise_of_sums
from veilog.privacy.domain import ACTIVITIES_FROM_LOG, FROM_LOG, LENGTH_FROM_LOG, PRIVATELY, Domain, undeclared
from veilog.privacy.events import EventQuestions, columns_taken
from veilog.privacy.histograms import (
    Assign,
    Rounds,
    SparseHistogram,
    Totals,
    bins_above,
    cases_in_bins,
    check_size,
    every_bin,
    frequent_labels,
    histogram_rounds,
    labels_noise,
)
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.gradients import Training, pay_for
from veilog.privacy.mechanisms.mechanism import (
    KTruncatedGeometric,
    Laplace,
    NoisedSteps,
    Sensitivity,
    Thresholded,
)
from veilog.privacy.mechanisms.sampling import poisson_sample
from veilog.privacy.unit import ONE_CASE, Bounded, Unit

if TYPE_CHECKING:
    from veilog.logs.storage.stored_log import StoredLog


IntArray = npt.NDArray[np.int64]

_LARGEST_DENOMINATOR = 10**6


class Curator:
    """Holder of the raw log, which only queries reach."""

    def __init__(
        self,
        held: Variants | Bounded,
        *,
        log: EventLog | StoredLog | None = None,
        domain: Domain | None = None,
        unit: Unit = ONE_CASE,
        randomness: noise.Randomness | None = None,
    ) -> None:
        """Hold a log for queries.

        ``held`` are the raw variants, with the ``log`` that they are of where queries concern times and attributes. Or
        it is the result of :func:`veilog.privacy.unit.bound_units` for a log and a unit, which alone will do where a
        column names the persons. Queries are charged for one case; the guarantee states the total for the ``unit``.
        """
        conditions: tuple[Condition, ...] = ()
        subset, whole, people = None, None, None
        if isinstance(held, Bounded):
            unit, subset, whole, conditions = held.unit, held.subset, held.whole, held.conditions
            people = held.people
            log = None if isinstance(held.log, Variants) else held.log
            held = held.variants
        elif unit.column is not None:
            raise ParameterError("unit-bounded-too-late", parameter="unit")
        elif log is not None and log.number_of_cases != held.cases:
            raise ParameterError("variants-not-of-log", parameter="log")
        self.domain = domain or Domain()
        self.unit = unit
        self._public, self._variants = held if whole is None else whole, self.domain.fit(held)
        self._log, self._people = log, people
        self._randomness = randomness or noise.operating_system()
        self._account = ChargeAccount(unit, seeded=self._randomness.seed is not None, subset=subset)
        together = held.read_together if log is None else log.read_together
        if together:
            self._account.assume(Condition("columns-read-together", "program", Message.joined(together)))
        if mapped := held.mapped if log is None else log.mapped:
            self._account.assume(Condition("activities-mapped", "owner", Message.joined(mapped)))
        for about_subset in conditions:
            self._account.assume(about_subset)
        if subset is not None and log is not None and not subset.of_time:
            for condition in columns_taken(log):
                self._account.assume(condition)
        self._whole: Curator | None = None
        self._totals = Totals()

    # Public facts ---------------------------------------------------------------------------------------------------

    @property
    def activities(self) -> tuple[str, ...]:
        """Public alphabet: declared, found privately, or the log's under a condition."""
        if self._whole is not None:
            return self._whole.activities
        if self.domain.activities == FROM_LOG:
            self._account.assume(ACTIVITIES_FROM_LOG)
            return self._as_said.labels
        if self.domain.alphabet is None:
            raise undeclared("activities")
        return self.domain.alphabet

    @property
    def max_length(self) -> int:
        """Public bound on the length of a trace: declared, or the log's under a condition."""
        if self._whole is not None:
            return self._whole.max_length
        if self.domain.max_length == FROM_LOG:
            self._account.assume(LENGTH_FROM_LOG)
            return int(self._as_said.lengths.max(initial=0))
        if self.domain.longest is None:
            raise undeclared("max_length")
        return self.domain.longest

    @property
    def _as_said(self) -> Variants:
        """Source of public facts: the log as the data owner knows it.

        The remaining log, whose cases are cut to other facts or drawn from a person's, may have other labels and
        lengths by a single case.
        """
        return self._public if isinstance(self._public, Variants) else self._public.variants

    @property
    def randomness(self) -> noise.Randomness:
        """Source of random bits for what a method draws itself after its queries."""
        return self._randomness

    @cached_property
    def events(self) -> EventQuestions:
        """Queries on times and attributes, charged to the same account."""
        if self._log is None:
            raise ParameterError("question-extras-of-variants", parameter="log")
        whole = None if isinstance(self._public, Variants) else self._public
        return EventQuestions(self._log, self.domain, self._randomness, self._account, whole=whole, people=self._people)

    def subsample(self, rate: Fraction) -> Curator:
        """Return a curator of a Poisson sample, where each case has probability ``rate``.

        Each case is in it by itself. Queries on it are charged here, amplified (proof:
        :mod:`veilog.privacy.mechanisms.sampling`): together ``ln(1 + rate (e**epsilon - 1))`` and ``rate delta``. Its
        public facts are those of this curator. Its conditions, peeks and statements count here.
        """
        if not 0 < rate <= 1:
            raise ParameterError("question-sampling-rate-invalid", parameter="rate", rate=float(rate))
        sampled = poisson_sample(self._variants, rate, self._randomness)
        # A sample of a log with bounded cases of each person is bounded, too.
        sample = Curator(Bounded(sampled, self.unit), domain=self.domain, randomness=self._randomness)
        sample._whole, sample._account = self, self._account.of_sample(rate)
        sample._totals = self._totals
        return sample

    # Questions ------------------------------------------------------------------------------------------------------

    def count(self, epsilon: Number, *, purpose: str | Message = "number-of-cases") -> int:
        """Return the number of cases plus discrete Laplace noise of scale 1/epsilon.

        Sensitivity: one case changes the number by exactly 1, so this is epsilon-differentially private.
        """
        eps = parse_epsilon(epsilon)
        mechanism = self._account.charge("count", purpose, Laplace(1 / eps), Sensitivity.of(1), eps)
        answer = self._variants.cases + int(mechanism.draw(1, self._randomness)[0])
        self._totals.add(answer, mechanism, 1, counts_cases=True)
        return answer

    def concentration(
        self,
        number: int,
        share: Fraction,
        epsilon: Number,
        *,
        purpose: str | Message = "cases-of-frequent-variants",
    ) -> int:
        """Return the noisy excess of the top variants' cases over a ``share`` of all.

        The share is p/q, the variants are the ``number`` most frequent ones. The answer is
        ``q * (their cases) - p * (all cases)`` plus discrete Laplace noise of scale max(p, q-p)/epsilon.

        Sensitivity: for a set of ``number`` sequences take the number of cases that have one of them. The cases of the
        most frequent variants are the maximum over all such sets. One case more adds 0 or 1 to each of these numbers.
        So the maximum grows by 0 or 1, and the number of all cases by 1. The answer changes by -p or by q - p. Hence
        epsilon.
        """
        eps = parse_epsilon(epsilon)
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ParameterError("question-number-not-whole", parameter="number", number=number)
        if not 0 < share < 1:
            raise ParameterError("question-share-out-of-range", parameter="share", share=float(share))
        p, q = share.numerator, share.denominator
        if q > _LARGEST_DENOMINATOR:
            raise ParameterError(
                "question-share-denominator-large", parameter="share", largest_denominator=_LARGEST_DENOMINATOR
            )
        step = max(p, q - p)
        mechanism = self._account.charge(
            "concentration", so_many(purpose, number, "variant"), Laplace(step / eps), Sensitivity.of(step), eps
        )
        most = int(np.sort(self._variants.counts)[::-1][:number].sum())
        return q * most - p * self._variants.cases + int(mechanism.draw(1, self._randomness)[0])

    @overload
    def histogram(self, assign: Assign, size: int, epsilon: Number, *, purpose: str | Message = ...) -> IntArray: ...

    @overload
    def histogram(
        self, assign: Assign, size: int, epsilon: Number, *, keep_above: int, purpose: str | Message = ...
    ) -> SparseHistogram: ...

    def histogram(
        self,
        assign: Assign,
        size: int,
        epsilon: Number,
        *,
        keep_above: int | None = None,
        purpose: str | Message = "asked-histogram",
    ) -> IntArray | SparseHistogram:
        """Return noisy counts of cases in bins, each with discrete Laplace noise.

        The bins are 0, ..., size-1, and their noise is independent. ``assign`` maps each sequence, by itself, to one
        bin or to none (-1). With ``keep_above`` only the bins whose noisy count exceeds it come back.

        Sensitivity: a case is in at most one bin, whatever else is in the log, so adding or removing it changes one
        count by 1. The L1 sensitivity is 1: epsilon-differentially private for all bins together. Leaving out bins by
        their noisy counts is post-processing.

        With ``keep_above`` the work follows the size of the result and not ``size``, which may be as large as 2**61.
        The result has the distribution of the dense histogram (proof: :mod:`veilog.privacy.histograms`).
        """
        eps = parse_epsilon(epsilon)
        check_size(size, Laplace(1 / eps), keep_above)
        mechanism = self._account.charge(
            "histogram", so_many(purpose, size, "bin"), Laplace(1 / eps), Sensitivity.of(1), eps
        )
        assigned, weights = cases_in_bins(self._variants, assign, size)
        if keep_above is None:
            answer = every_bin(assigned, weights, size, mechanism, self._randomness)
            self._totals.add(int(answer.sum()), mechanism, size, counts_cases=True)
            return answer
        return bins_above(keep_above, assigned, weights, size, mechanism, self._randomness)

    def rounds(
        self,
        weights: Sequence[Fraction],
        epsilon: Number,
        delta: Number,
        *,
        purpose: str | Message = "asked-histograms",
    ) -> Rounds:
        """Return a histogram for each weight, charged together before the first.

        They have discrete Gaussian noise.

        Sensitivity: in each a case changes one count by 1 (L2 sensitivity 1). Together they are (epsilon,
        delta)-differentially private, whatever they ask; the proof stands in :mod:`veilog.privacy.histograms`.
        """
        eps, failure = parse_epsilon(epsilon), parse_delta(delta)
        paid = histogram_rounds(weights, eps, failure)
        self._account.charge(
            "rounds", so_many(purpose, len(weights), "histogram"), paid, Sensitivity.of(1, "L2"), eps, failure
        )
        return Rounds(self._variants, paid, self._randomness)

    def sums(
        self,
        features: Features,
        size: int,
        bound: int,
        epsilon: Number,
        *,
        delta: Number = 0,
        resolution: int = 1,
        purpose: str | Message = "asked-sums",
    ) -> IntArray:
        """Return noisy sums of a vector of ``size`` integers, over all cases.

        The sums are in units of ``1/resolution``. ``features`` maps each sequence, by itself, to its vector v. Where
        ``|v| <= bound`` a case contributes ``resolution * v``, otherwise ``resolution * v`` scaled down by
        ``bound / |v|`` and rounded towards 0. Without a delta ``|v|`` is the L1 norm, and each sum gets independent
        discrete Laplace noise of scale ``resolution * bound / epsilon``. With one it is the L2 norm, and each gets
        discrete Gaussian noise, less where cases have many entries.

        Sensitivity: the contribution of a case depends on the case alone. Its norm is at most ``resolution * bound``,
        exactly, because it is computed in integers. Adding or removing a case changes the sums by its contribution. So
        the L1 sensitivity is ``resolution * bound`` and the sums together are epsilon-differentially private; or the L2
        sensitivity is, and they are (epsilon, delta)-differentially private (:func:`noise_of_sums`).
        """
        eps, failure = parse_epsilon(epsilon), parse_delta(delta)
        check_sums(size, bound, resolution, eps)
        noise, norm = noise_of_sums(bound, resolution, eps, failure)
        sensitivity = Sensitivity.of(bound, norm, "clipped")
        mechanism = self._account.charge("sums", so_many(purpose, size, "sum"), noise, sensitivity, eps, failure)
        exact = exact_sums(self._variants, features, size, bound, resolution, norm)
        answer: IntArray = exact + mechanism.draw(size, self._randomness)
        self._totals.add(int(answer.sum()), mechanism, size)
        return answer

    def find_activities(self, epsilon: Number, delta: Number) -> tuple[str, ...]:
        """Return labels that enough cases have, with noise; others no longer exist.

        From here on these labels are public and the only ones. A case with d labels gives each of them a d-th part of
        its weight. A label is found iff its weight plus discrete Laplace noise exceeds a threshold. Sensitivity,
        threshold and proof of (epsilon, delta) are those of :mod:`veilog.privacy.histograms`. Every case loses its
        other labels, by itself, which is a map of single cases.
        """
        eps, failure = parse_epsilon(epsilon), parse_delta(delta)
        if self.domain.activities != PRIVATELY or self._whole is not None:
            raise ParameterError("activities-already-declared", parameter="activities")
        mechanism, sensitivity = labels_noise(eps, failure), Sensitivity.of(1, "L1", "split")
        self._account.charge("labels", "activities-frequent-enough", mechanism, sensitivity, eps, failure)
        found = frequent_labels(self._variants, mechanism, self._randomness)
        if not found:
            raise ParameterError("activities-none-found", parameter="activities")
        self._narrow(found)
        return found

    def _narrow(self, labels: tuple[str, ...]) -> None:
        """Leave out other activities from here on, in variants and in events alike."""
        self.domain = replace(self.domain, activities=labels)
        self._variants = self.domain.fit(self._variants)
        self.__dict__.pop("events", None)

    def partitions(self, epsilon: Number, delta: Number, *, purpose: str | Message = "frequent-variants") -> Variants:
        """Return the variants whose count plus k-TSGD noise exceeds k, with noisy counts.

        Noise: ``P(x) ~ exp(-epsilon |x|)`` on [-k, k], with k the smallest that has ``P(k) <= delta``. A variant that
        no case has is never released.

        Sensitivity: adding a case changes one variant's count, from m to m+1. For outputs that both counts can give,
        the probabilities differ by at most a factor ``exp(epsilon)``. Only count m+1 can give the output m+1+k, with
        probability ``P(k) <= delta``. Only count m can give m-k, with the same probability (or, where m-k <= k, that
        output is "not released", which both can give). Hence (epsilon, delta)-differentially private. For m = 0 the
        output is released with probability exactly ``P(k) <= delta`` if the case is there and never if it is not. The
        charge is ``P(k)``.
        """
        eps, failure = parse_epsilon(epsilon), parse_delta(delta)
        if failure == 0:
            raise ParameterError("variants-selection-without-delta", parameter="delta")
        added = KTruncatedGeometric.of(eps, failure)
        mechanism = self._account.charge(
            "partitions",
            purpose,
            Thresholded(added, above=added.k),
            Sensitivity.of(1, "L0"),
            eps,
            min(added.delta, failure),
        )
        noisy = self._variants.counts + mechanism.noise.draw(len(self._variants), self._randomness)
        return self._variants.with_counts(np.where(noisy > mechanism.above, noisy, 0))

    def training(
        self,
        assign: Assign,
        size: int,
        plan: Sequence[NoisedSteps],
        clips: Sequence[float],
        epsilon: Number,
        delta: Number,
        *,
        taken: Sequence[int] | None = None,
        apart: bool = False,
        purpose: str | Message = "asked-training",
    ) -> Training:
        """Return the noised gradient steps of networks, all charged before the first.

        ``assign`` maps each sequence, by itself, to a column of a one-hot table, or to none: a case is then one row.
        ``plan`` gives the number of steps and their noise. ``clips`` bounds the L2 norm of a case's gradient in each
        part. The plan must cost at most (``epsilon``, ``delta``) by the accountant; that pair is charged. ``taken`` are
        the steps that an interrupted run of this plan has had already. They are charged again here, because this
        curator has not charged them, and cannot be taken again. ``apart`` has the gradients of sampled cases computed
        one by one, from floats that depend on who was sampled: there is no guarantee then.

        Sensitivity: see :meth:`Training.step`; a case is in at most one column, whatever else is in the log.
        """
        eps, failure = parse_epsilon(epsilon), parse_delta(delta)
        done = tuple(taken) if taken is not None else (0,) * len(plan)
        paid = pay_for(plan, clips, done, eps, failure, self._account, apart=apart, purpose=purpose)
        assigned, weights = cases_in_bins(self._variants, assign, size)
        counts = np.zeros(size, dtype=np.int64)
        np.add.at(counts, assigned, weights)
        return Training(counts, paid.parts, clips, done, self._randomness, apart=apart)

    def peek(self, reason: str | Message) -> Variants:
        """Return the raw variants; from here on the guarantee is none, for ``reason``."""
        self._account.void(reason)
        return self._variants

    def peek_log(self, reason: str | Message) -> EventLog:
        """Return the raw log; from here on the guarantee is none, for ``reason``."""
        if self._log is not None and not isinstance(self._log, EventLog):
            raise ParameterError("method-needs-memory", parameter="log")
        if self._log is None:
            raise ParameterError("variants-without-times", parameter="log")
        self._account.void(reason)
        return self._log

    # Account --------------------------------------------------------------------------------------------------------

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Queries so far, each with the budget that it uses."""
        return self._account.charges

    @property
    def contacted(self) -> bool:
        """True after the first query or peek. Declared public facts are no contact."""
        return self._account.contacted

    def before_first(self, begin: Callable[[], None]) -> None:
        """Register a function to call before the first query or peek touches the data."""
        self._account.begin = begin

    @property
    def noise_only(self) -> bool | None:
        """True if no noisy answer so far stands out of its noise; None if none could."""
        return self._totals.noise_only

    def carry(self, charges: Iterable[Charge]) -> None:
        """Add the charges of an interrupted run whose answers are used; none is removed."""
        self._account.carry(charges)

    def state(self, statement: Statement) -> None:
        """Add a property other than differential privacy, printed apart from epsilon."""
        self._account.state(statement)

    def guarantee(
        self,
        *,
        nominal_epsilon: Number | None = None,
        nominal_delta: Number | None = None,
        at_least: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0)),
    ) -> Guarantee:
        """Return the guarantee of the queries so far, at least ``at_least``.

        A method may use fewer queries than it could afford because of earlier answers. The spent budget of such a run
        is then known to its readers, but it bounds nothing beforehand. A release claims the budget that it had.
        """
        return self._account.guarantee(nominal_epsilon=nominal_epsilon, nominal_delta=nominal_delta, at_least=at_least)

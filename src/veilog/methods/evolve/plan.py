"""Split of evolve's budget by public facts and the noisy number of cases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog.methods.evolve.constants import Constants
from veilog.privacy.curator import Curator
from veilog.privacy.histograms import LEAST_DELTA, LEAST_EPSILON, strength_within
from veilog.privacy.mechanisms.noise import tsgd_bound

_PARTS = 10**6
"""Shares are multiples of one millionth of epsilon, so that they add up exactly."""


@dataclass
class EvolvePlan:
    """Shares of the budget, and decisions by the noisy number of cases.

    ``rest`` is the epsilon that no query has taken yet. ``estimates`` are all noisy answers so far that estimate the
    number of cases, each with its variance.
    """

    settings: Constants
    epsilon: Fraction
    activities: int
    rest: Fraction
    estimates: list[tuple[float, float]]
    least: int = 0
    """Noisy number of cases of the real variants found; the log has hardly fewer."""
    concentrated: bool = False
    """True if few variants hold most cases, by a noisy answer."""
    real_epsilon: float = 0.0
    """Epsilon that the query for real variants used."""
    delta: Fraction = Fraction(0)
    """Part of delta for the relations, where Gaussian noise is expected to be less."""
    anchored: bool = False
    """True if sampling starts from real variants, and not from queried relations."""
    of_prior: bool = False
    """True if sampling starts from a public prior, which the votes confirm."""
    learned_trust: float | None = None
    """Number of cases that a public prior counts as, by the votes."""

    @staticmethod
    def of(curator: Curator, epsilon: Fraction, settings: Constants, activities: int) -> EvolvePlan:
        """Query the number of cases, and plan the rest by it."""
        share = epsilon * Fraction(str(settings.count_share))
        return EvolvePlan(
            settings, epsilon, activities, epsilon - share, [(float(curator.count(share)), 2 / float(share) ** 2)]
        )

    @property
    def cases(self) -> float:
        """Number of cases by all estimates and their variances, with lower bounds."""
        mean = sum(v / s for v, s in self._used_estimates) / sum(1 / s for _, s in self._used_estimates)
        return max(self.settings.fewest_cases, self.least, mean)

    @property
    def within(self) -> float:
        """Largest error of the number of cases in 95 of 100 runs.

        It is that of Laplace noise with this variance, which has heavier tails than a sum of several noises. It comes
        from public facts and answers.
        """
        return max(1.0, math.log(20) * math.sqrt(1 / (2 * sum(1 / s for _, s in self._used_estimates))))

    @property
    def _used_estimates(self) -> list[tuple[float, float]]:
        return self.estimates if self.settings.estimate_cases else self.estimates[:1]

    def learn_from_relations(self, total: float, b: float, cells: int) -> None:
        """Add the estimate of the number of cases by the relations: their total over c.

        A case adds c to all relations together, or less where it is short, so the estimate is low by so much.
        """
        c, bias = self.settings.contribution, self.settings.relations_bias
        value = total / c
        self.estimates.append((value, 2 * cells * b * b / c**2 + (bias * value) ** 2))

    def learn_from_votes(self, total: float, e: float, cells: int) -> None:
        """Add the estimate of the number of cases by the votes: every case votes once."""
        self.estimates.append((total, 2 * cells / e**2))

    @property
    def g(self) -> float:
        """Epsilon times cases: the size that counts."""
        return float(self.epsilon) * self.cases

    @property
    def lam(self) -> float:
        return _interpolate(self.g, self.settings.low_g, self.settings.high_g)

    @property
    def low(self) -> bool:
        return self.lam < self.settings.low_until

    @property
    def wide(self) -> bool:
        return self.activities >= self.settings.wide_from

    @property
    def asks_repeats(self) -> bool:
        """True if the query for relations counts repeats, too: where noise leaves some."""
        return not (self.low or self.wide) if self.settings.repeats is None else self.settings.repeats

    def take(self, share: float) -> Fraction:
        """Take a share of epsilon."""
        part = self.epsilon * Fraction(round(share * _PARTS), _PARTS)
        self.rest -= part
        return part

    def set_aside(self, share: float) -> Fraction:
        """Take a share of the rest, and plan from now on with what remains alone."""
        part = self.take_of_rest(Fraction(round(share * _PARTS), _PARTS))
        self.epsilon = self.rest
        return part

    def concentration_share(self) -> float:
        """Return the share of the query for the cases of the most frequent variants.

        It finds that number to about the same part of all cases in any log.
        """
        factor, size, least, most = self.settings.concentration_share
        return min(max(max(factor * math.log(self.g / size), size) / self.g, least), most)

    def learn_concentration(self, margin: int, limit: Fraction, share: Fraction) -> None:
        """Record if the cases of few variants exceed ``limit`` of all, by ``margin``.

        A small log gets the benefit of the doubt, because there relations are of no use.
        """
        scale = float(max(limit.numerator, limit.denominator - limit.numerator) / share)
        self.concentrated = margin >= (-2 * scale if self.g < self.settings.doubtful_g else 0)

    def real_share(self, delta: Fraction, longest: int) -> tuple[float, Fraction]:
        """Return the shares of the rest and of delta for the query for frequent variants.

        Where Gaussian noise is expected to leave less noise, half of delta is kept for the relations. They keep all of
        it, and variants get nothing, where none could be found. Where few variants hold most cases, relations are not
        queried.
        """
        s = self.settings
        if self.concentrated:
            return 1 - self.votes_beside_real(), delta
        threshold = tsgd_bound(self.rest * Fraction(str(s.real_share)), delta)
        hopeless = threshold > s.hopeless_from * self.cases
        share = s.real_share_hopeless if hopeless else s.real_share
        relations = self.rest * Fraction(str(1 - share)) * Fraction(round(self.relations_share() * _PARTS), _PARTS)
        if not gaussian_pays(relations, delta / 2, longest, s.contribution):
            return share, delta
        self.delta = delta if hopeless else delta / 2
        return (0.0 if hopeless else share), delta - self.delta

    def votes_beside_real(self) -> float:
        """Return the share v of the votes, in hundredths, with the least expected loss.

        The loss is what a release misses. Cases without a real variant become more, with a power of what is left for
        real ones, 1 - v. The votes put a part of them where they belong, half of it at some size ``v g`` of theirs.
        """
        tail, part, half = self.settings.beside_real
        v = np.arange(2, 99) / 100
        missed = (1 - v) ** -tail * (1 - part * v * self.g / (v * self.g + half))
        return float(v[missed.argmin()])

    def learn_from_real(self, cases: int) -> None:
        """Record the noisy number of cases of the real variants found."""
        self.least = cases
        self.anchored = self.concentrated or cases >= self.settings.anchored_from * self.cases

    def imagined(self, cases: float) -> float:
        """Return the share of the first pool that real variants of ``cases`` leave."""
        left = max(0.0, 1 - cases / self.cases)
        return max(left * (self.settings.anchored_imagined if self.anchored else 1.0), 1e-6)

    def presence_share(self) -> float:
        return self._wide_share(self.settings.wide_presence)

    def relations_share(self) -> float:
        if self.wide:
            return self._wide_share(self.settings.wide_relations)
        (low, much), (high, little) = self.settings.relations
        size = self.g / (self.activities + 1) ** self.settings.relations_exponent
        return much + (little - much) * _interpolate(size, low, high)

    def take_of_rest(self, share: Fraction) -> Fraction:
        """Take a share of the epsilon that no query has taken yet."""
        part = self.rest * share
        self.rest -= part
        return part

    def votes(self, rounds: int | None) -> list[Fraction]:
        """Return the rest of epsilon by rounds of votes, each with more than the last."""
        number = (1 if self.low else 2) if rounds is None else rounds
        growth = Fraction(str(self.settings.growth))
        total = sum((growth**i for i in range(number)), start=Fraction(0))
        return [self.rest * growth**i / total for i in range(number)]

    def number_of_prototypes(self, e: Fraction) -> int:
        s = self.settings
        most = math.floor(float(e) * self.cases / s.votes_for_prototype)
        return min(max(most, s.fewest_prototypes), s.most_prototypes)

    def heard(self) -> float:
        """Return the number of prototypes that can expect votes of two noise deviations."""
        e = float(self.votes(None)[-1])
        return min(max(e * self.cases / (2 * math.sqrt(2)), 1.0), self.settings.most_prototypes)

    @property
    def trust(self) -> float:
        """Number of cases that the prior counts as."""
        if self.learned_trust is not None:
            return self.learned_trust
        least, divisor, most = self.settings.prior_cases
        if self.anchored:
            trust = self.settings.anchored_trust
            least, divisor, most = least * trust, divisor / trust, most * trust
        return min(max(self.g / divisor, least), most)

    def deviation(self, e: float) -> float:
        """Return the deviation of a share of the votes at epsilon e, widened by the trust."""
        return math.sqrt(2 * self.trust) / (e * self.cases)

    def _wide_share(self, ends: tuple[float, float]) -> float:
        first, last = ends
        return first + (last - first) * _interpolate(self.g, self.settings.wide_g, 3 * self.settings.wide_g)


def deviation_of_gaussian(epsilon: Fraction, delta: Fraction) -> float:
    """Return the deviation of Gaussian noise for contributions of an L2 norm of 1."""
    return 1 / strength_within(float(epsilon), float(delta))


def gaussian_pays(epsilon: Fraction, delta: Fraction, longest: int, contribution: int) -> bool:
    """Return True if Gaussian noise is expected to leave relations less noise.

    A case of m different relations adds ``min(1, c/m)`` to each with an L1 bound of c, and ``1/sqrt(m)`` with an L2
    bound of 1. The lengths of cases are not known. So the mean logarithm of noise over signal is compared, with every
    order of magnitude of m up to the public bound as likely. Only public facts and shares decide.
    """
    if delta < LEAST_DELTA or epsilon < LEAST_EPSILON:
        return False
    m = np.geomspace(2, max(longest, 1) + 1, 101)
    laplace = math.sqrt(2) / float(epsilon) * np.maximum(m, contribution)
    gaussian = deviation_of_gaussian(epsilon, delta) * np.sqrt(m)
    return bool(np.log(gaussian / laplace).mean() < 0)


def _interpolate(g: float, low: float, high: float) -> float:
    """Return 0 up to ``low``, 1 from ``high`` on, and between them by the logarithm."""
    return min(1.0, max(0.0, math.log(g / low) / math.log(high / low)))

"""How ``evolve`` shares out its budget: a function of public facts and of the noisy number of cases."""

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
    """The shares, and what the noisy number of cases decides. ``rest`` is what no question has taken yet.

    ``estimates`` are all noisy answers so far that tell the number of cases, each with its variance.
    """

    settings: Constants
    epsilon: Fraction
    activities: int
    rest: Fraction
    estimates: list[tuple[float, float]]
    least: int = 0
    """Cases of the real variants that were found, by their noisy counts: there are hardly fewer."""
    concentrated: bool = False
    """Whether few variants hold most cases, by a noisy answer."""
    real_epsilon: float = 0.0
    """What the question for them cost."""
    delta: Fraction = Fraction(0)
    """What the relations may take of delta, where Gaussian noise is expected to pay."""
    anchored: bool = False
    """Whether what is imagined starts from real variants, and not from relations that are asked for."""
    of_prior: bool = False
    """Whether what is imagined starts from a public prior, which the votes confirm."""
    learned_trust: float | None = None
    """As how many cases a public prior counts, by the votes."""

    @staticmethod
    def of(curator: Curator, epsilon: Fraction, settings: Constants, activities: int) -> EvolvePlan:
        """Ask for the number of cases, and plan the rest by it."""
        share = epsilon * Fraction(str(settings.count_share))
        return EvolvePlan(
            settings, epsilon, activities, epsilon - share, [(float(curator.count(share)), 2 / float(share) ** 2)]
        )

    @property
    def cases(self) -> float:
        """The number of cases: what is known of it, by inverse variance."""
        mean = sum(v / s for v, s in self._known) / sum(1 / s for _, s in self._known)
        return max(self.settings.fewest_cases, self.least, mean)

    @property
    def within(self) -> float:
        """By how much that is off at most in 95 of 100 runs: of Laplace noise with this variance, which has more far
        out than a sum of several has. From what is public and from answers."""
        return max(1.0, math.log(20) * math.sqrt(1 / (2 * sum(1 / s for _, s in self._known))))

    @property
    def _known(self) -> list[tuple[float, float]]:
        return self.estimates if self.settings.estimate_cases else self.estimates[:1]

    def learn_from_relations(self, total: float, b: float, cells: int) -> None:
        """A case adds c to all relations together, or less where it is short: their total over c is low by so much."""
        c, bias = self.settings.contribution, self.settings.relations_bias
        value = total / c
        self.estimates.append((value, 2 * cells * b * b / c**2 + (bias * value) ** 2))

    def learn_from_votes(self, total: float, e: float, cells: int) -> None:
        """Every case votes once."""
        self.estimates.append((total, 2 * cells / e**2))

    @property
    def g(self) -> float:
        """Epsilon times cases: the size that counts."""
        return float(self.epsilon) * self.cases

    @property
    def lam(self) -> float:
        return _between(self.g, self.settings.low_g, self.settings.high_g)

    @property
    def low(self) -> bool:
        return self.lam < self.settings.low_until

    @property
    def wide(self) -> bool:
        return self.activities >= self.settings.wide_from

    @property
    def asks_repeats(self) -> bool:
        """Whether the question for relations asks which activities repeat, too: where noise leaves something of it."""
        return not (self.low or self.wide) if self.settings.repeats is None else self.settings.repeats

    def take(self, share: float) -> Fraction:
        """So much of epsilon."""
        part = self.epsilon * Fraction(round(share * _PARTS), _PARTS)
        self.rest -= part
        return part

    def set_aside(self, share: float) -> Fraction:
        """So much of what is left, for real variants; the rest is from now on all that is planned with."""
        part = self.take_of_rest(Fraction(round(share * _PARTS), _PARTS))
        self.epsilon = self.rest
        return part

    def concentration_share(self) -> float:
        """What it costs to know, to about the same part of all cases, how many the most frequent variants hold."""
        factor, size, least, most = self.settings.concentration_share
        return min(max(max(factor * math.log(self.g / size), size) / self.g, least), most)

    def learn_concentration(self, margin: int, limit: Fraction, share: Fraction) -> None:
        """By how much the cases of few variants exceed ``limit`` of all; a small log gets the benefit of the doubt,
        because there relations are of no use."""
        scale = float(max(limit.numerator, limit.denominator - limit.numerator) / share)
        self.concentrated = margin >= (-2 * scale if self.g < self.settings.doubtful_g else 0)

    def real_share(self, delta: Fraction, longest: int) -> tuple[float, Fraction]:
        """Of what is left and of delta, for the question which variants are frequent.

        Where Gaussian noise is expected to pay, half of delta is kept for the relations; all of it, and nothing is left
        for variants, where none could be found. Where few variants hold most cases no relations are asked.
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
        """The share v of the votes, in hundredths, for which what a release misses is expected to be least.

        Cases without a real variant become more, with a power of what is left for real ones, 1 - v; a part of them the
        votes put where they belong, half of it at some size ``v g`` of theirs.
        """
        tail, part, half = self.settings.beside_real
        v = np.arange(2, 99) / 100
        missed = (1 - v) ** -tail * (1 - part * v * self.g / (v * self.g + half))
        return float(v[missed.argmin()])

    def learn_from_real(self, cases: int) -> None:
        """The noisy number of cases of the real variants found."""
        self.least = cases
        self.anchored = self.concentrated or cases >= self.settings.anchored_from * self.cases

    def imagined(self, cases: float) -> float:
        """The share of the first pool that is not real variants, which have so many ``cases``."""
        left = max(0.0, 1 - cases / self.cases)
        return max(left * (self.settings.anchored_imagined if self.anchored else 1.0), 1e-6)

    def presence_share(self) -> float:
        return self._wide_share(self.settings.wide_presence)

    def relations_share(self) -> float:
        if self.wide:
            return self._wide_share(self.settings.wide_relations)
        (low, much), (high, little) = self.settings.relations
        size = self.g / (self.activities + 1) ** self.settings.relations_exponent
        return much + (little - much) * _between(size, low, high)

    def take_of_rest(self, share: Fraction) -> Fraction:
        """So much of what no question has taken yet."""
        part = self.rest * share
        self.rest -= part
        return part

    def votes(self, rounds: int | None) -> list[Fraction]:
        """What is left, for each round of votes more than for the one before."""
        number = (1 if self.low else 2) if rounds is None else rounds
        growth = Fraction(str(self.settings.growth))
        total = sum((growth**i for i in range(number)), start=Fraction(0))
        return [self.rest * growth**i / total for i in range(number)]

    def number_of_prototypes(self, e: Fraction) -> int:
        s = self.settings
        most = math.floor(float(e) * self.cases / s.votes_for_prototype)
        return min(max(most, s.fewest_prototypes), s.most_prototypes)

    def heard(self) -> float:
        """Return how many prototypes can each expect votes of twice the noise's standard deviation."""
        e = float(self.votes(None)[-1])
        return min(max(e * self.cases / (2 * math.sqrt(2)), 1.0), self.settings.most_prototypes)

    @property
    def trust(self) -> float:
        """So many cases the prior counts as."""
        if self.learned_trust is not None:
            return self.learned_trust
        least, divisor, most = self.settings.prior_cases
        if self.anchored:
            trust = self.settings.anchored_trust
            least, divisor, most = least * trust, divisor / trust, most * trust
        return min(max(self.g / divisor, least), most)

    def deviation(self, e: float) -> float:
        """Standard deviation of a share of the votes at epsilon e, widened: the prior counts as so many cases."""
        return math.sqrt(2 * self.trust) / (e * self.cases)

    def _wide_share(self, ends: tuple[float, float]) -> float:
        first, last = ends
        return first + (last - first) * _between(self.g, self.settings.wide_g, 3 * self.settings.wide_g)


def deviation_of_gaussian(epsilon: Fraction, delta: Fraction) -> float:
    """The deviation of Gaussian noise for contributions of an L2 norm of 1."""
    return 1 / strength_within(float(epsilon), float(delta))


def gaussian_pays(epsilon: Fraction, delta: Fraction, longest: int, contribution: int) -> bool:
    """Whether Gaussian noise and an L2 bound are expected to leave less noise for the signal of relations.

    A case of m different relations adds ``min(1, c/m)`` to each with an L1 bound of c, and ``1/sqrt(m)`` with an L2
    bound of 1. How long cases are is not known, so what is compared is the mean of the logarithm of noise over signal,
    every order of magnitude of m up to the public bound being as likely: public facts decide, and shares.
    """
    if delta < LEAST_DELTA or epsilon < LEAST_EPSILON:
        return False
    m = np.geomspace(2, max(longest, 1) + 1, 101)
    laplace = math.sqrt(2) / float(epsilon) * np.maximum(m, contribution)
    gaussian = deviation_of_gaussian(epsilon, delta) * np.sqrt(m)
    return bool(np.log(gaussian / laplace).mean() < 0)


def _between(g: float, low: float, high: float) -> float:
    """0 up to ``low``, 1 from ``high`` on, in the logarithm."""
    return min(1.0, max(0.0, math.log(g / low) / math.log(high / low)))

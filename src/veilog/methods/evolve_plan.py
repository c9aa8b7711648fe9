"""How ``evolve`` shares out its budget: a function of public facts and of the noisy number of cases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from veilog.methods.evolve_settings import Settings
from veilog.privacy.curator import Curator

__all__ = ["Plan"]

_PARTS = 10**6
"""Shares are multiples of one millionth of epsilon, so that they add up exactly."""


@dataclass
class Plan:
    """The shares, and what the noisy number of cases decides. ``rest`` is what no question has taken yet.

    ``estimates`` are all noisy answers so far that tell the number of cases, each with its variance.
    """

    settings: Settings
    epsilon: Fraction
    activities: int
    rest: Fraction
    estimates: list[tuple[float, float]]

    @staticmethod
    def of(curator: Curator, epsilon: Fraction, settings: Settings, activities: int) -> Plan:
        """Ask for the number of cases, and plan the rest by it."""
        share = epsilon * Fraction(str(settings.count_share))
        return Plan(
            settings, epsilon, activities, epsilon - share, [(float(curator.count(share)), 2 / float(share) ** 2)]
        )

    @property
    def cases(self) -> float:
        """The number of cases: what is known of it, by inverse variance."""
        known = self.estimates if self.settings.estimate_cases else self.estimates[:1]
        mean = sum(v / s for v, s in known) / sum(1 / s for _, s in known)
        return max(self.settings.fewest_cases, mean)

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

    def take(self, share: float) -> Fraction:
        """So much of epsilon."""
        part = self.epsilon * Fraction(round(share * _PARTS), _PARTS)
        self.rest -= part
        return part

    def presence_share(self) -> float:
        return self._wide_share(self.settings.wide_presence)

    def relations_share(self) -> float:
        if self.wide:
            return self._wide_share(self.settings.wide_relations)
        (low, much), (high, little) = self.settings.relations
        size = self.g / (self.activities + 1) ** self.settings.relations_exponent
        return much + (little - much) * _between(size, low, high)

    def trigram_share(self) -> Fraction:
        """What trigrams would cost; not taken yet."""
        return self.rest * Fraction(str(self.settings.trigram_share))

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

    def deviation(self, e: float) -> float:
        """Standard deviation of a share of the votes at epsilon e, widened: the prior counts as so many cases."""
        least, divisor, most = self.settings.prior_cases
        return math.sqrt(2 * min(max(self.g / divisor, least), most)) / (e * self.cases)

    def _wide_share(self, ends: tuple[float, float]) -> float:
        first, last = ends
        return first + (last - first) * _between(self.g, self.settings.wide_g, 3 * self.settings.wide_g)


def _between(g: float, low: float, high: float) -> float:
    """0 up to ``low``, 1 from ``high`` on, in the logarithm."""
    return min(1.0, max(0.0, math.log(g / low) / math.log(high / low)))

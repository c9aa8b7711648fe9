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
    """The shares, and what the noisy number of cases decides. ``rest`` is what no question has taken yet."""

    settings: Settings
    epsilon: Fraction
    activities: int
    cases: float
    """Noisy number of cases."""
    count_variance: float
    rest: Fraction

    @staticmethod
    def of(curator: Curator, epsilon: Fraction, settings: Settings, activities: int) -> Plan:
        """Ask for the number of cases, and plan the rest by it."""
        share = epsilon * Fraction(str(settings.count_share))
        cases = max(settings.fewest_cases, curator.count(share))
        return Plan(settings, epsilon, activities, float(cases), 2 / float(share) ** 2, epsilon - share)

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
        return much + (little - much) * _between(self.g / (self.activities + 1) ** 1.5, low, high)

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

    def deviation(self, e: float, cases: float) -> float:
        """Standard deviation of a share of the votes at epsilon e, widened: the prior counts as so many cases."""
        least, divisor, most = self.settings.prior_cases
        return math.sqrt(2 * min(max(self.g / divisor, least), most)) / (e * cases)

    def _wide_share(self, ends: tuple[float, float]) -> float:
        first, last = ends
        return first + (last - first) * _between(self.g, self.settings.wide_g, 3 * self.settings.wide_g)


def _between(g: float, low: float, high: float) -> float:
    """0 up to ``low``, 1 from ``high`` on, in the logarithm."""
    return min(1.0, max(0.0, math.log(g / low) / math.log(high / low)))

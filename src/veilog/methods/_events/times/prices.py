"""Prices of the queries about times, with Laplace or Gaussian noise.

With Laplace noise each query uses a part of epsilon. With Gaussian noise all of them use epsilon and delta together.

Laplace noise is as wide as the sum of what a case adds (its L1 norm). Gaussian noise is as wide as the root of the sum
of squares (its L2 norm), which is less where a case has many entries. Queries that are composed as Gaussian mechanisms
share out a squared strength, those with Laplace noise share out epsilon.

So where a delta is given, a public rule decides, by epsilon, delta and the bounds of both norms. Gaussian noise is
taken where the strength is enough to make it no wider than Laplace noise in *every* query. The rest of the strength
goes to the queries by their shares of epsilon. Each has its share, but not less than makes its noise as narrow as the
Laplace noise would be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray
from veilog.messages import Message
from veilog.methods._events.times.prior import PriorTimes
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import CaseFeatures, Cases, Coding
from veilog.privacy.curator import Curator
from veilog.privacy.events import EventRounds
from veilog.privacy.histograms import LEAST_DELTA, LEAST_EPSILON, strength_within

_PARTS = 10**6
"""Weights are multiples of one millionth."""
_STEPS = 256
"""An L2 bound is rounded up to 1 over this of itself, or to a whole number of units of the features."""
_HALVINGS = 60


@dataclass(frozen=True)
class Price:
    """Price of a query: an epsilon, or its part of what several queries use together."""

    curator: Curator
    share: Fraction
    """Epsilon that the query uses if it has Laplace noise."""
    rounds: EventRounds | None = None
    prior: PriorTimes | None = None
    place: int = 0
    """Place among the queries that use epsilon together, which are asked in their order."""

    def epsilon(self, bound: float = 1, euclidean: float = 1) -> float:
        """Return the epsilon at which Laplace noise varies as much as the noise added.

        The Laplace noise is for the L1 norm ``bound``. The noise added is Gaussian for the L2 norm ``euclidean``, or
        the Laplace noise itself.
        """
        if self.rounds is None:
            return float(self.share)
        deviation = math.sqrt(self.rounds.noises[self.place].variance) / self.rounds.UNIT * euclidean
        return math.sqrt(2) * bound / deviation

    def sums(
        self,
        features: CaseFeatures,
        size: int,
        bound: int,
        euclidean: float,
        *,
        alphabet: Sequence[str] = (),
        codings: Sequence[Coding] = (),
        resolution: int = 1,
        purpose: str | Message,
    ) -> FloatArray:
        """Return noisy sums of what cases add, in units of ``1/resolution``.

        What a case adds is clipped. With Laplace noise it has the L1 norm ``bound`` at most, as in
        :meth:`EventQuestions.sums`. With Gaussian noise it has the L2 norm ``euclidean`` at most.
        """
        if self.rounds is None:
            answer = self.curator.events.sums(
                features,
                size,
                bound,
                self.share,
                alphabet=alphabet,
                codings=codings,
                resolution=resolution,
                purpose=purpose,
            )
            return answer.astype(np.float64)
        assert self.rounds.asked == self.place, "what was paid for together is asked in the order of the weights"
        parts = max(1, _STEPS // math.ceil(euclidean))

        def in_parts(block: Cases) -> Triples:
            rows, columns, values = features(block)
            return np.asarray(rows), np.asarray(columns), np.asarray(values) * parts

        limit = math.ceil(euclidean * parts)
        fine = self.rounds.UNIT // limit
        found = self.rounds.sums(in_parts, size, limit, alphabet=alphabet, codings=codings, resolution=fine)
        return np.asarray(found * (resolution / (parts * fine)), dtype=np.float64)

    def of_prior(
        self,
        features: CaseFeatures,
        size: int,
        bound: int,
        *,
        alphabet: Sequence[str] = (),
        codings: Sequence[Coding] = (),
        resolution: int = 1,
        **_: object,
    ) -> FloatArray | None:
        """Return the sums of what the cases of a prior add.

        None without a prior, or where it has nothing."""
        found = None if self.prior is None else self.prior.sums(features, size, bound, resolution, alphabet, codings)
        return None if found is None or not found.any() else found


def prices(
    curator: Curator,
    epsilon: Fraction,
    delta: Fraction,
    shares: Mapping[str, Fraction],
    bounds: Mapping[str, float],
    prior: PriorTimes | None = None,
) -> dict[str, Price]:
    """Return the price of each query, in the order in which they are asked.

    Noise is Gaussian where that is no wider (:func:`gaussian_weights`). This uses all of epsilon and delta beforehand.
    ``bounds`` has the L2 bound of each query over its L1 bound.
    """
    weights = gaussian_weights(epsilon, delta, shares, bounds)
    if weights is None:
        return {name: Price(curator, epsilon * share, prior=prior) for name, share in shares.items()}
    rounds = curator.events.rounds(
        list(weights.values()), epsilon, delta, purpose=Message("times-of", names=", ".join(weights))
    )
    return {name: Price(curator, epsilon * share, rounds, prior, i) for i, (name, share) in enumerate(shares.items())}


def gaussian_weights(
    epsilon: Fraction, delta: Fraction, shares: Mapping[str, Fraction], bounds: Mapping[str, float]
) -> dict[str, Fraction] | None:
    """Return the part of the squared strength of each query, from public numbers.

    None if there is a query for which Gaussian noise would be wider than Laplace noise of its share, or if epsilon or
    delta is below the least.
    """
    if delta < LEAST_DELTA or epsilon < LEAST_EPSILON:
        return None
    strength = strength_within(float(epsilon), float(delta))
    share = np.array([float(one) for one in shares.values()])
    ratio = np.array([bounds[name] for name in shares])
    # As wide as Laplace noise: L2 / (strength sqrt(weight)) = sqrt(2) L1 / (share epsilon); and a little to round.
    least = (share * float(epsilon) * ratio / (math.sqrt(2) * strength)) ** 2 + 2 / _PARTS
    if least.sum() > 1:
        return None
    low, high = 0.0, 1 / float(share.sum())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(middle * share, least).sum() <= 1 else (low, middle)
    weights = np.floor(np.maximum(low * share, least) * _PARTS)
    return {name: Fraction(int(weight), _PARTS) for name, weight in zip(shares, weights.tolist(), strict=True)}

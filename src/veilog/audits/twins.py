"""Both neighbouring logs with the noise switched off: what their exact answers to a question would have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import (
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    Mechanism,
    NoisyMaximum,
    Sensitivity,
    Thresholded,
)
from veilog.privacy.unit import ONE_CASE, Bounded, bounded
from veilog.releasing.request import ReleaseRequest

__all__ = ["TwinCurator", "Twins"]

M = TypeVar("M", bound=Mechanism)
Log = Variants | EventLog


@dataclass(frozen=True)
class _Silent(Laplace):
    """Laplace noise that is switched off: 0, and no empty bin ever survives a threshold."""

    @property
    def decay(self) -> Fraction:
        return Fraction(100)

    def draw(self, n: int, source: noise.Randomness) -> Any:
        return np.zeros(n, dtype=np.int64)


@dataclass(frozen=True)
class _SilentGaussian(GaussianRounds):
    """Gaussian noise that is switched off."""

    def draw(self, n: int, source: noise.Randomness) -> Any:
        return np.zeros(n, dtype=np.int64)


@dataclass(frozen=True)
class _SilentTruncated(KTruncatedGeometric):
    """k-truncated noise that is switched off."""

    def draw(self, n: int, source: noise.Randomness) -> Any:
        return np.zeros(n, dtype=np.int64)


@dataclass(frozen=True)
class _SilentMaximum(NoisyMaximum):
    """A noisy maximum that is switched off: the numbers themselves, of which it would be the largest."""

    def largest(self, scores: Any, source: noise.Randomness) -> Any:
        return scores


class _SilentAccount(ChargeAccount):
    """An account that hands out mechanisms without noise; what was charged is not kept."""

    above = 0
    """The threshold in place of the mechanism's own."""

    def charge(
        self,
        question: str,
        purpose: str,
        mechanism: M,
        sensitivity: Sensitivity,
        epsilon: Fraction,
        delta: Fraction = Fraction(0),
    ) -> M:
        return self._silent(mechanism)

    def _silent(self, mechanism: M) -> M:
        quiet: Mechanism = mechanism
        if isinstance(mechanism, Thresholded):
            inner = mechanism.noise
            still = (
                _Silent(inner.scale, inner.grid)
                if isinstance(inner, Laplace)
                else _SilentTruncated(inner.epsilon, inner.k)
            )
            quiet = Thresholded(still, self.above)
        elif isinstance(mechanism, NoisyMaximum):
            quiet = _SilentMaximum(mechanism.noise)
        elif isinstance(mechanism, Laplace):
            quiet = _Silent(mechanism.scale, mechanism.grid)
        elif isinstance(mechanism, GaussianRounds):
            quiet = _SilentGaussian(mechanism.noises, mechanism.by)
        return quiet  # type: ignore[return-value]


class TwinCurator:
    """A curator of one of the two logs, asked without noise."""

    def __init__(self, held: Bounded, domain: Domain) -> None:
        self.account = _SilentAccount(ONE_CASE, seeded=True)
        self.curator = Curator(held, domain=domain, randomness=noise.seeded(0))
        self.curator._account = self.account
        self.names: dict[Any, Mapping[object, int]] = {}

    def ask(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the exact answer to what the holder was asked."""
        asked = self.curator if isinstance(holder, Curator) else self.curator.events
        return getattr(asked, name)(*given, **named)

    def values(self, attribute: str, most: int, top: int) -> Mapping[object, int]:
        """Return how many cases have each of the values that are counted, up to ``top``: by asking with thresholds."""
        key = (attribute, most, top)
        if key not in self.names:
            found: dict[object, int] = {}
            for above in range(top):
                self.account.above = above
                for value in self.curator.events.frequent_values(attribute, most, 1, Fraction(1, 2)):
                    found[value] = above + 1
            self.account.above = 0
            self.names[key] = found
        return self.names[key]


class Twins:
    """Both logs, to be asked without noise."""

    def __init__(self, plan: ReleaseRequest, without: Log, with_: Log) -> None:
        self._plan, self._logs = plan, (without, with_)
        source = noise.seeded(0)
        self.pair = tuple(TwinCurator(bounded(log, plan.unit, source), plan.public) for log in (without, with_))

    def for_a_run(self, narrowed: bool) -> tuple[TwinCurator, ...]:
        """Return the twins; fresh ones where a run may change them."""
        return Twins(self._plan, *self._logs).pair if narrowed else self.pair

"""What a public prior says of times: the same tables as those that are asked, exact, and how far they are believed.

A prior's cases go through the function of each question that the log's cases go through, so both are in the same bins.
How far the prior is believed follows from the noisy answer to the question itself, and nothing is asked to judge it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from veilog._typing import FloatArray
from veilog.logs.eventlog import EventLog
from veilog.privacy.cases import AllCases, CaseFeatures, Coding
from veilog.privacy.domain import Domain

_FLOOR, _MOST = 1e-9, 700.0
MISFITS = np.geomspace(1e-4, 1.0, 20)
"""As one over so many cases a prior counts; each is as likely as another beforehand."""


class PriorTimes:
    """The events of public logs, and what they add up to."""

    def __init__(self, logs: Sequence[EventLog], domain: Domain) -> None:
        """``domain`` is that of the log that is released: other activities than it declares are left out."""
        self._cases = [AllCases(log, domain) for log in logs]
        self._columns = [{*log.events.column_names} for log in logs]

    def sums(
        self,
        features: CaseFeatures,
        size: int,
        bound: int,
        resolution: int,
        alphabet: Sequence[str] = (),
        codings: Sequence[Coding] = (),
    ) -> FloatArray:
        """Return what the cases add, each clipped as those of the log are; nothing of a log that lacks an attribute."""
        found, names = np.zeros(size), {coding.name for coding in codings}
        for cases, columns in zip(self._cases, self._columns, strict=True):
            if names <= columns:
                found += cases.sums(features, size, bound, resolution, "L1", alphabet, codings) / resolution
        return found


def leaned(
    found: FloatArray, noisy: FloatArray, prior: FloatArray, variance: float, plain: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Return shares by a noisy answer and a prior, and the chance that the prior is the better of two.

    ``found``: what the answer alone lets expect. ``noisy``: the answer in shares, with noise of this variance in each.
    Two models explain it: shares s_j about those of the prior, or about ``plain`` ones, each off by a misfit of
    variance a s_j. Both are weighed by how likely they make the answer (Bayes). Under the prior the answer corrects
    each share as far as its misfit goes, so cells that the prior does not have stay nearly empty. Under the other model
    the shares are those found.
    """
    expected = prior / prior.sum()
    corrected, likely = _about(expected, noisy, variance)
    _, unlike = _about(np.full(noisy.shape, 1 / noisy.size) if plain is None else plain, noisy, variance)
    chance = 1 / (1 + math.exp(min(unlike - likely, _MOST)))
    return np.asarray((1 - chance) * found / found.sum() + chance * corrected / corrected.sum()), chance


def _about(shares: FloatArray, noisy: FloatArray, variance: float) -> tuple[FloatArray, float]:
    """Return what is likely of shares that are about these, by a noisy answer; and the logarithm of how likely it is,
    for a misfit of any size."""
    misfit = np.multiply.outer(MISFITS, shares)
    apart, wide = noisy - shares, misfit + variance
    log_likely = -(np.log(wide) + apart**2 / wide).reshape(len(MISFITS), -1).sum(axis=1) / 2
    weights = np.exp(log_likely - log_likely.max())
    moved = np.tensordot(weights / weights.sum(), misfit / wide, axes=1) * apart
    return np.maximum(shares + moved, _FLOOR * shares), float(np.log(weights.mean()) + log_likely.max())

"""Tables of times and attributes by a public prior, and how far to believe them.

A prior's cases go through the function of each query that the log's cases go through, so both are in the same bins. Its
tables are exact. The noisy answer to the query itself decides how far the prior is believed. No other query judges
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from veilog._typing import FloatArray
from veilog.logs.eventlog import EventLog
from veilog.privacy.cases import AllCases, CaseFeatures, Coding, attribute_kind
from veilog.privacy.domain import Domain

_MOST = 700.0
MISFITS = np.geomspace(1e-4, 1.0, 20)
"""Misfits of a prior, which counts as one over this many cases; each is as likely as another beforehand."""


class PriorTimes:
    """Events of public logs, and sums over their cases."""

    def __init__(self, logs: Sequence[EventLog], domain: Domain) -> None:
        """Take the ``domain`` of the released log; other activities are left out."""
        self._cases = [AllCases(log, domain) for log in logs]
        self._logs = list(logs)

    def sums(
        self,
        features: CaseFeatures,
        size: int,
        bound: int,
        resolution: int,
        alphabet: Sequence[str] = (),
        codings: Sequence[Coding] = (),
    ) -> FloatArray:
        """Return the sums of the cases, each clipped as those of the log are.

        A log that lacks an attribute adds nothing.
        """
        found = np.zeros(size)
        for cases, log in zip(self._cases, self._logs, strict=True):
            if all(_has(log, coding) for coding in codings):
                found += cases.sums(features, size, bound, resolution, "L1", alphabet, codings) / resolution
        return found


def _has(log: EventLog, coding: Coding) -> bool:
    """Return True if a log has an attribute, of numbers or dates if these are needed."""
    name = coding.name
    if not {name, name.removeprefix("case:")} & {*log.events.column_names, *log.cases.column_names}:
        return False
    of_numbers = bool(coding.edges) or coding.decimals is not None
    return coding.moments or not of_numbers or attribute_kind(log, name) in ("number", "whole number", "date")


def lean_on_prior(
    found: FloatArray, noisy: FloatArray, prior: FloatArray, variance: float, plain: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Return shares by a noisy answer and a prior, and the chance of its model.

    ``found`` has the shares that the answer alone lets expect. ``noisy`` is the answer in shares, with noise of this
    variance in each. The chance is that the prior's model is the better of two.

    Both models explain the answer: by shares about those s_j of the prior, and about even or other ``plain`` ones p_j.
    They are off by a misfit of variance a (s_j + p_j) / 2, and a p_j, with any a. Both are weighted by how likely they
    make the answer (Bayes). Under the first, a share is moved from s_j to what was found. It moves as far as the misfit
    explains the difference, and noise does not (Morris 1983). Under the second it is what was found.
    """
    found, expected = found / found.sum(), prior / prior.sum()
    plain = np.full(noisy.shape, 1 / noisy.size) if plain is None else plain
    moved, likely = _explain_differences(noisy - expected, (expected + plain) / 2, variance)
    _, unlike = _explain_differences(noisy - plain, plain, variance)
    chance = 1 / (1 + math.exp(min(unlike - likely, _MOST)))
    corrected = expected + moved * (found - expected)
    return np.asarray((1 - chance) * found + chance * corrected / corrected.sum()), chance


def _explain_differences(apart: FloatArray, wide: FloatArray, variance: float) -> tuple[FloatArray, float]:
    """Return the part of each difference that is misfit, and their log-likelihood.

    Misfits vary as widely as ``wide``; the rest is noise of this ``variance``."""
    misfit = np.multiply.outer(MISFITS, wide)
    log_likely = -(np.log(misfit + variance) + apart**2 / (misfit + variance)).reshape(len(MISFITS), -1).sum(axis=1) / 2
    weights = np.exp(log_likely - log_likely.max())
    part = np.tensordot(weights / weights.sum(), misfit / (misfit + variance), axes=1)
    return np.asarray(part), float(np.log(weights.mean()) + log_likely.max())

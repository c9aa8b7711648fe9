"""TraVaS and uTraVaS: release the frequent variants.

M. Rafiei, F. Wangelik, W.M.P. van der Aalst, "TraVaS: Differentially Private Trace Variant Selection for Process
Mining", ICPM Workshops 2022.

TraVaS adds k-truncated symmetric geometric noise to the count of every variant of the log and releases those that end
up above k. A case has one variant, so this is one query of sensitivity 1 and the paper's (epsilon, delta) holds.

uTraVaS asks the same query n times at (epsilon/n, delta/n) and averages the answers; where a variant is missing from
one of them, the count expected of an unreleased variant stands in. The paper chooses the n from 2, 3, ... whose result
resembles the raw log best. That choice reads the raw log, and every candidate that was run is a release of its own: as
published nothing can be derived. Certified, n is fixed beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods._relations import add_answers
from veilog.methods.method import EpsilonAndDelta, Request, our_method
from veilog.methods.settings import Range, Settings
from veilog.methods.thresholds import remark_rare_variants
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.mechanism import KTruncatedGeometric
from veilog.privacy.mechanisms.noise import tsgd_bound

SMALLEST_SPLIT = 2
"""Smallest number of subqueries that uTraVaS tries (the authors' program; one subquery is TraVaS)."""


def travas(curator: Curator, request: Request, settings: Settings) -> Variants:
    """Return the variants whose noisy count exceeds k, with these counts.

    (epsilon, delta) holds, as published too.
    """
    remark_rare_variants(request, KTruncatedGeometric.of(request.epsilon, request.delta), counted=True)
    return request.obeying(curator.partitions(request.epsilon, request.delta, purpose="variants-above-threshold"))


@dataclass(frozen=True, kw_only=True)
class UtravasSettings(Settings):
    """Settings of uTraVaS."""

    subqueries: Annotated[
        int | None, "number of subqueries, 2; as published, the largest number tried, 10", Range(1, 1000)
    ] = None
    repetitions: Annotated[int, "as published: runs averaged for each number tried", Range(1, 1000)] = 10


_LISTED = 1 << 20
"""The largest count that is listed: beyond, what a list of all takes is gigabytes."""


def utravas(curator: Curator, request: Request, settings: UtravasSettings) -> Variants:
    """Return the average of several TraVaS answers.

    Certified: ``subqueries`` answers (default 2) at (epsilon/n, delta/n) each, (epsilon, delta) together. As
    published: every n from 2 to ``subqueries`` (default 10) is run ``repetitions`` times, and a result of the n with
    the highest mean similarity to the raw log is released: guarantee "none".
    """
    if not request.as_published:
        n = settings.subqueries or SMALLEST_SPLIT
        remark_rare_variants(request, KTruncatedGeometric.of(request.epsilon / n, request.delta / n), counted=n == 1)
        return request.obeying(_average_of(curator, request.epsilon, request.delta, n))

    most, repetitions = settings.subqueries or 10, settings.repetitions
    if most < SMALLEST_SPLIT:
        raise ParameterError(
            "travas-subqueries-too-few", parameter="subqueries", smallest_split=SMALLEST_SPLIT, most=most
        )
    original = curator.peek("utravas-subqueries-by-results")
    best, best_score = None, -1.0
    splits = range(SMALLEST_SPLIT, most + 1)
    for i, n in enumerate(splits):
        scores = []
        for j in range(repetitions):
            request.progress(f"trying {n} subqueries", (i * repetitions + j) / (len(splits) * repetitions))
            candidate = _average_of(curator, request.epsilon, request.delta, n)
            scores.append(request.score(original, candidate) if candidate.cases else 0.0)
        if np.mean(scores) > best_score:
            best, best_score = candidate, float(np.mean(scores))
    assert best is not None, "there is at least one split"
    return best


def _average_of(curator: Curator, epsilon: Fraction, delta: Fraction, n: int) -> Variants:
    """Return the mean of n answers at (epsilon/n, delta/n) over all their variants."""
    share, failure = epsilon / n, delta / n
    answers = [
        curator.partitions(share, failure, purpose=Message("variants-above-threshold-subquery", i=i + 1, n=n))
        for i in range(n)
    ]
    if n == 1:
        return answers[0]
    together, times_seen = (
        add_answers(answers),
        add_answers([answer.with_counts(np.ones_like(answer.counts)) for answer in answers]).counts,
    )
    missing = (n - times_seen) * unreleased_count(share, failure)
    return together.with_counts(np.rint((together.counts + missing) / n).astype(np.int64))


def unreleased_count(epsilon: Fraction, delta: Fraction) -> float:
    """Return the expected count of a variant that was not released.

    Counts 1, ..., 2k are weighted by their chance of that. It is a public number: ``sum_f f P(f + X <= k) / sum_f P(f +
    X <= k)``, with X the k-TSGD noise. Summed over the noise first that is ``(k + 1) / 2 + Var(X) / 2k``, which is used
    where there are too many counts to list.
    """
    k = tsgd_bound(epsilon, delta)
    if k > _LISTED:
        return (k + 1) / 2 + _variance(float(epsilon), k) / (2 * k)
    noise = np.arange(-k, k + 1)
    chances = np.exp(-float(epsilon) * np.abs(noise))
    at_most = np.cumsum(chances)  # at_most[i] ~ P(X <= i - k)
    counts = np.arange(1, 2 * k + 1)
    weights = at_most[2 * k - counts]
    return float((counts * weights).sum() / weights.sum())


def _variance(epsilon: float, k: int) -> float:
    """Return the variance of noise from -k to k, by sums of geometric series.
    Its chances fall by exp(-epsilon) a step."""
    q, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    first, second, third = q / rest, q / rest**2, q * (1 + q) / rest**3  # of q^i, i q^i and i^2 q^i from 1 on
    beyond = math.exp(-epsilon * k)
    squares = third - beyond * (k * k * first + 2 * k * second + third)
    return 2 * squares / (1 + 2 * first * -math.expm1(-epsilon * k))


TRAVAS = our_method("travas", travas, budget=EpsilonAndDelta(fixed=True))
UTRAVAS = our_method("utravas", utravas, UtravasSettings, budget=EpsilonAndDelta(fixed=True))

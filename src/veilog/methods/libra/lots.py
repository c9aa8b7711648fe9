"""Libra's lots: which cases of an anonymised sample bring news, and what its accountant makes of many samples."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np

from veilog._typing import IntArray
from veilog.logs.variants import Sequences

__all__ = ["MOST_ORDER", "accounted", "informative", "least_scale", "renyi_of_laplace", "renyi_of_sample"]


PATIENCE = 20
"""So many cases in a row without news end a lot: the statistical bound that Libra takes from Bauer et al., "How much
event data is enough?" (2018), (z**2 + sqrt(z) - 2 d**2) / (2 d) with z = 0.99 and d = 0.05, rounded up from 19.7."""
MOST_ORDER = 128
_MINUTE = 60_000_000


def renyi_of_laplace(order: int, scale: float) -> float:
    """Renyi divergence of Laplace noise for sensitivity 1 (Mironov, "Renyi differential privacy", 2017, proposition 6):
    ``ln(a/(2a-1) exp((a-1)/b) + (a-1)/(2a-1) exp(-a/b)) / (a-1)``."""
    a, b = order, scale
    grows, falls = math.log(a / (2 * a - 1)) + (a - 1) / b, math.log((a - 1) / (2 * a - 1)) - a / b
    return float(np.logaddexp(grows, falls)) / (a - 1)


def renyi_of_sample(order: int, scale: float, rate: float) -> float:
    """The same of a Poisson sample (Zhu, Wang, "Poisson subsampled Renyi differential privacy", 2019, theorem 5):

    ``ln((1-q)**(a-1) (a q - q + 1) + C(a,2) q**2 (1-q)**(a-2) e**e(2) + 3 sum_{l>2} C(a,l) q**l (1-q)**(a-l)
    e**((l-1) e(l))) / (a-1)``, with ``e`` of :func:`renyi_of_laplace`.
    """
    a, q = order, rate
    if q == 1:
        return renyi_of_laplace(a, scale)
    terms = [(a - 1) * math.log1p(-q) + math.log(a * q - q + 1)]
    for place in range(2, a + 1):
        weight = math.log(math.comb(a, place)) + place * math.log(q) + (a - place) * math.log1p(-q)
        factor = math.log(3) if place > 2 else 0.0
        terms.append(factor + weight + (place - 1) * renyi_of_laplace(place, scale))
    return max(0.0, float(np.logaddexp.reduce(terms)) / (a - 1))


def accounted(scale: float, rate: float, lots: int, order: int, delta: float) -> float:
    """The epsilon that Libra's accountant gives for all lots together, at this delta (Mironov 2017, proposition 3)."""
    return lots * renyi_of_sample(order, scale, rate) + math.log(1 / delta) / (order - 1)


@lru_cache(maxsize=64)
def least_scale(epsilon: float, delta: float, rate: float, lots: int, order: int | None) -> tuple[float, int] | None:
    """The smallest noise scale (to 3 digits) for which the accountant stays within epsilon, and its order; None where
    no scale does."""
    best: tuple[float, int] | None = None
    for a in range(2, MOST_ORDER + 1) if order is None else (order,):
        if math.log(1 / delta) / (a - 1) >= epsilon:
            continue
        low, high = 1e-2, 1e7 if best is None else best[0]
        if accounted(high, rate, lots, a, delta) > epsilon:
            continue
        while high / low > 1.0005:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if accounted(middle, rate, lots, a, delta) <= epsilon else (middle, high)
        if best is None or high < best[0]:
            best = (high, a)
    return best


def informative(cases: Sequences, times: IntArray, minutes: float, rng: np.random.Generator) -> IntArray:
    """The cases of a lot that are kept, in ascending order.

    Cases are looked at in random order. One is kept if it has an activity, a first or last activity or a
    directly-follows pair that no kept one has, or if it moves the mean duration of cases, or the mean time of a pair,
    by more than ``minutes``. After ``PATIENCE`` cases in a row without news the lot ends; one that is used up before is
    kept whole, as the authors' program has it.
    """
    seen: set[tuple[int, ...]] = set()
    pair_times: dict[tuple[int, int], tuple[float, int]] = {}
    durations, number = 0.0, 0
    kept: list[int] = []
    without_news = 0
    for case in rng.permutation(len(cases)).tolist():
        a, b = int(cases.offsets[case]), int(cases.offsets[case + 1])
        if a == b:
            continue
        codes = cases.codes[a:b].tolist()
        clock = (times[a:b] / _MINUTE).tolist()
        pairs = list(itertools.pairwise(codes))
        signs = {(code,) for code in codes} | {(-1, -1, codes[0]), (-2, -2, codes[-1])} | set(pairs)
        news = not signs <= seen
        duration = clock[-1] - clock[0]
        news |= number > 0 and abs((durations + duration) / (number + 1) - durations / number) > minutes
        for pair, since in zip(pairs, np.diff(clock).tolist(), strict=True):
            total, often = pair_times.get(pair, (0.0, 0))
            news |= often > 0 and abs((total + since) / (often + 1) - total / often) > minutes
        if not news:
            without_news += 1
            if without_news >= PATIENCE:
                return np.sort(np.array(kept, dtype=np.int64))
            continue
        without_news = 0
        kept.append(case)
        seen |= signs
        durations, number = durations + duration, number + 1
        for pair, since in zip(pairs, np.diff(clock).tolist(), strict=True):
            total, often = pair_times.get(pair, (0.0, 0))
            pair_times[pair] = (total + since, often + 1)
    return np.arange(len(cases))

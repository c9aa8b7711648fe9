"""Success rates of attacks: the gain over a control, with intervals.

The control of an attack is the same attack where the release cannot have held the person. The gain over it is what the
release reveals about people themselves. The residual risk follows M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnádi,
"A unified framework for quantifying privacy risk in synthetic data" (PoPETs 2023),

    gain = released - control          residual = gain / (1 - control).

The residual is the part of the unknown under the control that the release reveals. There are two controls.

- *held out*: people of the same process who were not in the released log. They are other people than those attacked, so
  the two shares are independent. The interval of the gain is that of R. G. Newcombe, "Interval estimation for the
  difference between independent proportions" (1998, method 10), from the Wilson intervals of both. If the release does
  not depend on the log at all, the two groups are exchangeable and the gain's mean is 0.
- *others' cases*: the same people, attacked with the cases of all others of the original. The interval is that of
  pairs. It is clustered by traces, and by people where some have several cases and the log identifies them (see
  :func:`paired_gain`). This control needs no one held out. It estimates what an attacker could know without the person:
  at least what the same guess gets from all other cases. If the log identifies persons, others' cases are those of
  other people, and the person's other cases do not count as known. If it does not, a case stands for a person. The gain
  then comes out too small where people have several cases that are alike.

Intervals of shares are at 95 %, those of gains and residuals at 99.5 %. One kind of knowledge wrongly blames a release
that reveals nothing in 1 of 400 comparisons, and one of ten kinds does so in 1 of 40.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from veilog._counting import rank_rows
from veilog._typing import FloatArray, IntArray

Control = Literal["held out", "others' cases"]
"""Targets of the control attacks: people who were not in the log, or the same people with others' cases."""

Z = 1.959963984540054
Z_BEYOND = 2.807033768343811
"""Quantile for 99.5 %: of ten kinds of knowledge that reveal nothing, all stay below in 97 % of comparisons or more."""


@dataclass(frozen=True)
class Rate:
    """Share of successful attacks with its interval.

    The interval is at 95 % unless stated otherwise, and of width 0 where the share is exact.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Success:
    """Shares of right guesses with the original, the release and the control."""

    original: Rate
    released: Rate
    baseline: Rate
    """Share with the control; the result that contains it names the control."""


def certain(share: float) -> Rate:
    """Return a share that rests on no sample, with an interval of width 0."""
    return Rate(share, share, share)


def wilson(share: float, attacks: float, z: float = Z) -> Rate:
    """Return Wilson's interval of a share.

    Values between 0 and 1 vary less than zeros and ones of the same mean, so the interval covers these, too.
    """
    z2 = z * z / attacks
    middle = (share + z2 / 2) / (1 + z2)
    reach = math.sqrt(max(0.0, z2 * (share * (1 - share) + z2 / 4))) / (1 + z2)
    return Rate(share, min(share, max(0.0, middle - reach)), max(share, min(1.0, middle + reach)))


def mean_rate(values: FloatArray, weight: FloatArray, people: float, z: float = Z) -> Rate:
    """Return the weighted mean of values from 0 to 1 of ``people``, and its interval."""
    mean = round(float(values @ weight) / float(weight.sum()), 12)  # whatever order the people are in
    return wilson(min(1.0, max(0.0, mean)), people, z)


def paired_gain(
    gain: FloatArray, weight: FloatArray, trace: IntArray, people: int, person: IntArray | None = None
) -> Rate:
    """Return the mean gain over the baseline and its interval at 99.5 %.

    The people attacked are a sample, and their weights add up to 1. One accident of the release wins or loses all
    people who share a trace together. The variance is therefore that of sums over traces (a cluster-robust one). Half a
    person more is taken to gain and half a person to lose, after A. Agresti and Y. Min, "Simple improved confidence
    intervals for comparing matched proportions" (2005). If no person gains or loses, that does not prove that none can.

    With ``person``, the number of each person, wins and losses of a person's cases come together, too. The variance is
    then the one by traces plus the one by people less the one by both (A. C. Cameron, J. B. Gelbach and D. L. Miller,
    "Robust inference with multiway clustering", 2011), or the largest of the former two.
    """
    mean = max(-1.0, min(1.0, float(gain @ weight)))
    off = weight * (gain - mean)
    spread, number = _cluster_variance(trace, off), min(people, len(gain))
    if person is not None:
        who, both = rank_rows([person], len(person))[1], rank_rows([person, trace], len(person))[1]
        of_people = _cluster_variance(who, off)
        spread = max(spread, of_people, spread + of_people - _cluster_variance(both, off))
        number = min(number, int(who.max()) + 1)
    reach = Z_BEYOND * math.sqrt(spread + 1 / number**2)
    return Rate(mean, max(-1.0, mean - reach), min(1.0, mean + reach))


def _cluster_variance(cluster: IntArray, off: FloatArray) -> float:
    """Return the sum of squares of each cluster's summed deviations."""
    together = np.bincount(cluster, weights=off)
    return float(together @ together)


def apart(released: Rate, baseline: Rate) -> Rate:
    """Return the gain over people held out, from both Wilson intervals at 99.5 %."""
    gain = released.value - baseline.value
    down = math.hypot(released.value - released.low, baseline.high - baseline.value)
    up = math.hypot(released.high - released.value, baseline.value - baseline.low)
    return Rate(gain, max(-1.0, gain - down), min(1.0, gain + up))


def residual(gain: Rate, baseline: Rate) -> Rate:
    """Return the gain as a share of what the control leaves to find out, or 0."""
    left = 1 - baseline.value
    if left <= 0:
        return Rate(0.0, 0.0, 0.0)
    return Rate(*(max(-1.0, min(1.0, end / left)) for end in (gain.value, gain.low, gain.high)))


class Attack:
    """One kind of attack on people, as far as its verdict goes."""

    beyond: Rate
    """Gain over the control, with its interval at 99.5 %."""

    @property
    def more(self) -> bool:
        """Return True if the release reveals more than the control and chance explain."""
        return self.beyond.low > 1e-9


def monotone_rates(rates: Sequence[Rate]) -> list[Rate]:
    """Return estimates of shares that cannot fall, so that they do not fall.

    Each becomes the largest of itself and all before it, and so do the ends of its interval. The intervals cover no
    less: where each true share lies between its ends, it also lies between the new ones. None depends on those after
    it.
    """
    ends = ([getattr(rate, end) for rate in rates] for end in ("value", "low", "high"))
    return [Rate(*row) for row in zip(*(np.maximum.accumulate(end).tolist() for end in ends), strict=True)]

"""How often an attack succeeds, how much of that anybody could do anyway, and how sure either is.

The control of an attack is the same attack where the release cannot have held the person. What the release gives away
of people themselves is the gain over it, and the residual risk after M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnádi,
"A unified framework for quantifying privacy risk in synthetic data" (PoPETs 2023),

    gain = released - control          residual = gain / (1 - control),

of what the control leaves to find out the share that the release tells. There are two controls.

- *held out*: people of the same process who were not in the log that was released. They are other people than those
  attacked, so the two shares are independent: the interval of the gain is that of R. G. Newcombe, "Interval estimation
  for the difference between independent proportions" (1998, method 10), from the Wilson intervals of both. If the
  release does not depend on the log at all, the two groups are exchangeable and the gain's mean is 0.
- *others' cases*: the same people, attacked with the cases of all others of the original. The interval is that of
  pairs, clustered by traces, and by people where some have several cases and it is known which (see :func:`paired`). It
  needs no one held out, but the control is an estimate of what could be known without the person: at least what the
  same guess gets from all other cases. Where it is known whose the cases are, others' are other people's, and what the
  person's other cases tell is not known from them. Where it is not, a case stands for a person, and where people have
  several that are alike the gain comes out too small.

Intervals of shares are at 95 %, those of gains and residuals at 99.5 %: a release that tells nothing is wrongly
blamed by one kind of knowledge in 1 of 400 comparisons, and by one of ten in 1 of 40.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from veilog._typing import FloatArray, IntArray

Control = Literal["held out", "others' cases"]
"""Whom an attack was tried on that the release cannot have told of: people who were not in the log, or the people
themselves, attacked with others' cases."""

Z = 1.959963984540054
Z_BEYOND = 2.807033768343811
"""99.5 %: of ten kinds of knowledge that tell nothing, all stay below in 97 of 100 comparisons or more."""


@dataclass(frozen=True)
class Rate:
    """A share of attacks that succeed, with its interval (95 % unless said otherwise; of width 0 where it is exact)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Success:
    """How often an attacker is right, with the original, with the release and with the control."""

    original: Rate
    released: Rate
    baseline: Rate
    """The control; the result that it is part of says which."""


def certain(share: float) -> Rate:
    """Return a share that rests on no sample."""
    return Rate(share, share, share)


def wilson(share: float, attacks: float, z: float = Z) -> Rate:
    """Wilson's interval. Values between 0 and 1 vary less than zeros and ones of the same mean, so it covers these."""
    z2 = z * z / attacks
    middle = (share + z2 / 2) / (1 + z2)
    reach = math.sqrt(max(0.0, z2 * (share * (1 - share) + z2 / 4))) / (1 + z2)
    return Rate(share, min(share, max(0.0, middle - reach)), max(share, min(1.0, middle + reach)))


def mean_rate(values: FloatArray, weight: FloatArray, people: float, z: float = Z) -> Rate:
    """Return the weighted mean of values from 0 to 1 of so many people, and its interval."""
    mean = round(float(values @ weight) / float(weight.sum()), 12)  # whatever order the people are in
    return wilson(min(1.0, max(0.0, mean)), people, z)


def paired(gain: FloatArray, weight: FloatArray, trace: IntArray, people: int, person: IntArray | None = None) -> Rate:
    """The mean gain over the baseline and its interval at 99.5 %, for people of whom those attacked are a sample.

    Weights add up to 1. What is won or lost of all who share a trace comes together, by one accident of the release, so
    the variance is that of sums over traces (a cluster-robust one). Half a person more is taken to gain and half a one
    to lose, after A. Agresti and Y. Min, "Simple improved confidence intervals for comparing matched proportions"
    (2005): where nobody gains or loses, that does not prove that nobody can.

    Where it is known which ``person`` each is, and some have several cases, what is won or lost with these comes
    together, too: the variance is that by traces plus that by people less that by both (A. C. Cameron, J. B. Gelbach
    and D. L. Miller, "Robust inference with multiway clustering", 2011), or the largest of the former two.
    """
    mean = max(-1.0, min(1.0, float(gain @ weight)))
    off = weight * (gain - mean)
    spread, number = _spread(trace, off), min(people, len(gain))
    if person is not None:
        who = np.unique(person, return_inverse=True)[1]
        both = np.unique(who * (int(trace.max()) + 1) + trace, return_inverse=True)[1]
        of_people = _spread(who, off)
        spread = max(spread, of_people, spread + of_people - _spread(both, off))
        number = min(number, int(who.max()) + 1)
    reach = Z_BEYOND * math.sqrt(spread + 1 / number**2)
    return Rate(mean, max(-1.0, mean - reach), min(1.0, mean + reach))


def _spread(cluster: IntArray, off: FloatArray) -> float:
    """The sum of squares of what those of each cluster are off by together."""
    together = np.bincount(cluster, weights=off)
    return float(together @ together)


def apart(released: Rate, baseline: Rate) -> Rate:
    """Return the gain over people held out, from the Wilson intervals (at 99.5 %) of both shares."""
    gain = released.value - baseline.value
    down = math.hypot(released.value - released.low, baseline.high - baseline.value)
    up = math.hypot(released.high - released.value, baseline.value - baseline.low)
    return Rate(gain, max(-1.0, gain - down), min(1.0, gain + up))


def residual(gain: Rate, baseline: Rate) -> Rate:
    """Return the gain as a share of what the control leaves to find out; 0 where it leaves nothing."""
    left = 1 - baseline.value
    if left <= 0:
        return Rate(0.0, 0.0, 0.0)
    return Rate(*(max(-1.0, min(1.0, end / left)) for end in (gain.value, gain.low, gain.high)))


class Attack:
    """One kind of attack on people, as far as it is judged."""

    beyond: Rate
    """The gain over the control, at 99.5 %."""

    @property
    def more(self) -> bool:
        """Whether the release tells more about the people attacked than the control: more than chance makes."""
        return self.beyond.low > 1e-9


def rising(rates: Sequence[Rate]) -> list[Rate]:
    """Return estimates of shares that cannot fall, made so that they do not: of each and all before it the largest. Its
    interval's ends are made so, too, and cover no less for it: where each true share lies between its ends, it lies
    between these. None depends on those after it."""
    ends = ([getattr(rate, end) for rate in rates] for end in ("value", "low", "high"))
    return [Rate(*row) for row in zip(*(np.maximum.accumulate(end).tolist() for end in ends), strict=True)]

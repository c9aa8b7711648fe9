"""Guessing advantage: largest rise of the chance to guess that a case is there.

The attacker believes with probability P (the prior) that a case, or the person it belongs to, is in the log. Everything
else about the log may be known already, or unknown but believed whether the case is in it or not. After the release the
belief is P', by Bayes' rule. For an epsilon-differentially private release (Laud, Pankova, "Interpreting epsilon of
differential privacy in terms of advantage in guessing or approximating sensitive attributes", 2019; Elkoumy, Pankova,
Dumas, "Differentially private release of event logs for process mining", 2023, propositions A.1, A.2 and A.4)

    P' <= 1 / (1 + exp(-epsilon) (1 - P) / P)
    advantage d = P' - P        epsilon = -ln(P / (1 - P) * (1 / (d + P) - 1))

which is smallest for the prior P = (1 - d) / 2: then epsilon = 2 ln((1 + d) / (1 - d)), d = tanh(epsilon / 4).

With a delta. A pair of logs under (epsilon, delta)-differential privacy looks like this (Kairouz, Oh, Viswanath, "The
composition theorem for differential privacy", 2015). The release can be computed from the answer of a mechanism. With
probability delta this mechanism reveals whether the case is in the log. Otherwise it gives an epsilon-differentially
private answer. Which of the two happens does not depend on the log. An attacker who reads this answer itself knows no
less than one who reads the release. Averaged over that coin the largest belief is therefore at most

    P' <= (1 - delta) / (1 + q (1 - P) / P) + delta        q = exp(-epsilon)

and no smaller number would do, as this very mechanism is (epsilon, delta)-differentially private.

For every such release it bounds the following. Let f(y) be the probability, given the release y, that the coin revealed
the truth. Its mean is delta. For each y the belief is at most 1 with weight f(y), and at most that of the first formula
with weight 1 - f(y). So it bounds the mean belief in what is true. With the P at which most is gained, it also bounds
the probability of a right guess by any rule. That is at most the probability of the better guess without the release,
plus the advantage. It does not bound the belief after the unluckiest single release: with delta > 0 nothing does.

The rise is largest at the prior where its derivative (1 - delta) q / (P + q (1 - P))^2 - 1 is 0, at

    P = (r u - q) / (1 - q)        r = exp(-epsilon / 2)   u = sqrt(1 - delta)

if that is positive, and there it is (u - r)^2 / (1 - q) + delta; otherwise (u <= r) it falls with P, from delta at 0.
Solved for epsilon: r = (u - sqrt(d (d - delta))) / (1 + d - delta).
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from veilog.errors import ParameterError
from veilog.privacy.account.budgets import LARGEST_EPSILON, SMALLEST_EPSILON, Number, parse_delta, parse_share
from veilog.privacy.account.guarantee import STRENGTHS, Strength, largest_log, strength_of
from veilog.privacy.mechanisms.intervals import exp_minus

_DIGITS = Context(prec=120)
_SIGNIFICANT = Context(prec=30, rounding=ROUND_FLOOR)
"""Digits of an epsilon that was found from an advantage."""
_BITS = 512
_GRID = 1 << 256
"""Advantages are rounded up to multiples of 1 / _GRID."""


def parse_advantage(value: Number, name: str = "guessing_advantage") -> Fraction:
    """Return a guessing advantage as written: above 0 and below 1."""
    try:
        return parse_share(value, name)
    except ParameterError as error:
        if error.code != "budget-share-out-of-range":
            raise ParameterError(error.message, parameter=name, advice="guessing-advantage-meaning") from None
        raise ParameterError("guessing-advantage-not-share", parameter=name, name=name, value=value) from None


def epsilon_of(advantage: Number, prior: Number | None = None, delta: Number = 0) -> Fraction:
    """Return the largest epsilon, rounded down, within a guessing advantage.

    ``prior`` is the attacker's belief before; None takes the one at which most is gained. With a ``delta`` the
    advantage includes the delta term, so it must exceed the advantage of the delta alone.
    ``advantage_of(epsilon_of(d)) <= d`` holds exactly.
    """
    asked = parse_advantage(advantage)
    failure = parse_delta(delta)
    believed = None if prior is None else parse_share(prior, "prior")
    if believed is not None and asked + believed >= 1:
        raise ParameterError(
            "guessing-chance-cannot-rise",
            parameter="guessing_advantage",
            believed=float(believed),
            asked=float(asked),
            value=float(1 - believed),
        )
    alone = failure if believed is None else failure * (1 - believed)
    if asked <= alone:
        raise ParameterError(
            "guessing-advantage-of-delta",
            parameter="guessing_advantage",
            failure=float(failure),
            alone=float(alone),
            asked=float(asked),
        )
    epsilon = Fraction(_SIGNIFICANT.plus(_solve_epsilon(asked, failure, believed)))
    step = epsilon / 10**29
    while epsilon > 0 and advantage_of(epsilon, failure, believed) > asked:
        epsilon, step = epsilon - step, 2 * step
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ParameterError(
            "guessing-advantage-below-least" if epsilon < SMALLEST_EPSILON else "guessing-advantage-above-most",
            parameter="guessing_advantage",
            advantage=advantage,
            epsilon=float(epsilon),
            smallest_epsilon=float(SMALLEST_EPSILON),
            largest_epsilon=float(LARGEST_EPSILON),
        )
    return epsilon


def advantage_of(epsilon: Number, delta: Number = 0, prior: Number | None = None) -> Fraction:
    """Return the largest rise of the chance to guess that a case is there, rounded up.

    ``epsilon`` may be 0. With a ``delta`` the rise is the mean over the failures that delta allows (see above). It
    holds for an attacker who believes it with probability ``prior`` before, or, with None, whatever is believed before.
    """
    eps = _check_not_negative(epsilon)
    # A derived delta may be smaller than any that a request can have.
    failure = delta if isinstance(delta, Fraction) and 0 <= delta < 1 else parse_delta(delta)
    believed = None if prior is None else parse_share(prior, "prior")
    # Every rise below grows when r = exp(-epsilon/2) or u = sqrt(1 - delta) shrinks (while u > r): round these down.
    bits = _BITS + 2 * max(0, eps.denominator.bit_length() - eps.numerator.bit_length())
    r = Fraction(exp_minus(eps / 2)(bits)[0], 1 << bits)
    if believed is not None:
        rise = (1 - failure) * believed / (believed + r * r * (1 - believed)) + failure - believed
    else:
        square = (1 - failure) * (1 << (2 * bits))
        u = Fraction(math.isqrt(math.floor(square)), 1 << bits)
        if eps == 0 or u + Fraction(1, 1 << bits) <= r:
            rise = failure
        else:
            rise = (1 - failure - 2 * u * r + r * r) / (1 - r * r) + failure
    return min(Fraction(1), Fraction(math.ceil(rise * _GRID), _GRID))


def _check_not_negative(epsilon: Number) -> Fraction:
    try:
        if isinstance(epsilon, bool):
            raise TypeError
        value = Fraction(epsilon) if not isinstance(epsilon, float) else Fraction(Decimal(repr(epsilon)))
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise ParameterError("epsilon-not-finite", parameter="epsilon", epsilon=epsilon) from None
    if value < 0:
        raise ParameterError("epsilon-negative", parameter="epsilon", epsilon=epsilon)
    return value


def _solve_epsilon(advantage: Fraction, delta: Fraction, prior: Fraction | None) -> Decimal:
    """Return epsilon to about a hundred digits; the caller makes sure of it."""
    c = _DIGITS
    d, failure = (c.divide(Decimal(x.numerator), Decimal(x.denominator)) for x in (advantage, delta))
    if prior is None:
        root = c.sqrt(c.multiply(d, c.subtract(d, failure)))
        r = c.divide(c.subtract(c.sqrt(c.subtract(Decimal(1), failure)), root), c.add(1, c.subtract(d, failure)))
        return c.multiply(Decimal(-2), c.ln(r))
    q = prior / (1 - prior) * ((1 - delta) / (advantage + prior - delta) - 1)
    return -c.ln(c.divide(Decimal(q.numerator), Decimal(q.denominator)))


Cost = tuple[Fraction, Fraction]


def worth(*bounds: Cost | None, cases: int = 0) -> Strength:
    """Return the level for one of so many cases under bounds; None is no bound.

    Each bound is an (epsilon, delta). All hold, so the best level that one of them allows is true. Its level follows
    from its own epsilon *and* delta: the epsilon of one with the delta of another bounds nothing.
    """
    return min((_worth(bound, cases) for bound in bounds), key=STRENGTHS.index, default=STRENGTHS[-1])


def holds_up_to(*bounds: Cost | None, cases: int = 0) -> int | None:
    """Return the most cases for which the level of :func:`worth` holds; None for any."""
    word = worth(*bounds, cases=cases)
    held = [
        largest_log(word, float(bound[1])) for bound in bounds if bound is not None and _worth(bound, cases) == word
    ]
    return None if None in held else max((most for most in held if most is not None), default=None)


@lru_cache(maxsize=1024)
def _worth(cost: Cost | None, cases: int) -> Strength:
    if cost is None or cost[0] > LARGEST_EPSILON or cost[1] >= 1:
        return STRENGTHS[-1]
    return strength_of(float(advantage_of(*cost)), float(cost[1]), cases)

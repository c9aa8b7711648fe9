"""What several releases cost together at a delta: less than the sum of their epsilons, and under which conditions.

The sum of (epsilon_i, delta_i) holds whatever is chosen when. With a delta to spare two smaller numbers are proved.

*Costs settled beforehand* (:func:`planned_epsilon`). How many releases there will be, and what each costs at most, is
settled before the first; which release is made of it, and with which questions, may follow from what was seen. An
(epsilon, delta)-differentially private release, interactive or not, can be computed from the answer of randomised
response with a chance of delta to tell the truth (Kairouz, Oh, Viswanath, "The composition theorem for differential
privacy", 2015; Lyu, "Composition theorems for interactive differential privacy", 2022). So all of them together can
be computed from that many such answers, whose privacy losses are independent: their distribution is composed exactly
but for rounding upwards (dp-accounting; Doroshenko et al., "Connect the dots", 2022). Releases may be made in any
order and at once.

*Costs chosen after seeing answers* (:func:`renyi_of`, :func:`renyi_room`). Where what a release costs is chosen by what
earlier ones said, the distribution of the losses that were met is no bound: whoever goes on only after lucky answers
has met other losses than were drawn. What holds is a filter, a limit that is fixed before and never exceeded
(Rogers, Roth, Ullman, Vadhan, "Privacy odometers and filters", 2016), in Rényi differential privacy of one order
(Feldman, Zrnic, "Individual privacy accounting via a Rényi filter", 2021). Proof, for neighbouring logs in either
order. Let a > 1 be the order, D the answers' likelihood ratio so far and r_t what the t-th answer costs, which follows
from the answers before it. Given these, the mean of the a-th power of its ratio is at most exp((a - 1) r_t) under the
second log. So D**a exp(-(a - 1) sum r_t) is a supermartingale that begins at 1. As the sum never exceeds R, the mean of
D**a is at most exp((a - 1) R) at the end, whatever was chosen: all answers together are (a, R)-Rényi private, hence
(Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, proposition 12)

    epsilon = R + ln((a - 1) / a) - (ln delta + ln a) / (a - 1).

Releases that are made at the same time change nothing (Haney et al., "Concurrent composition for interactive
differential privacy with adaptive privacy-loss parameters", 2023). The order must be fixed before, too: the smallest of
the epsilons of all orders is a bound for costs that were settled beforehand only.

What r is: of an (epsilon, delta)-differentially private answer, but for a chance of delta that it tells the truth, which
is counted by itself, that of randomised response, at most ``order * epsilon**2 / 2`` (Bun, Steinke, "Concentrated
differential privacy", 2016, proposition 3.3) and at most epsilon. It is superadditive, as randomised response at
e1 + e2 tells all that two at e1 and e2 tell: what is set aside for a release at its whole epsilon is never less than
what its questions come to one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

__all__ = ["ORDERS", "best_order", "planned_epsilon", "renyi_epsilon", "renyi_of", "renyi_room"]

Cost = tuple[Fraction, Fraction]

ORDERS = tuple(Fraction(round(100 * 1.02**i) + 2, 100) for i in range(420))
"""The orders that are looked at, from about 1 to 4,000."""

_UP = 1 + 1e-9
_LEAST = 1e-13
"""What floating point may lose of numbers of the size of 1, many times over."""
_FINEST = 1 << 100
_COARSEST = 1_000
"""Into how many steps the largest epsilon of releases is divided at most, where all are multiples of one step."""
_SHARE = 0.002
"""Of what is expected, how much rounding may add."""
_POINTS = 2_000_000
_LEAST_DELTA = Fraction(1, 10**10)
_LOST = 1e-12
"""A sum of probabilities by fast Fourier transforms may be off by less; far smaller deltas than that count by the sum."""


@lru_cache(maxsize=4096)
def renyi_of(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return what randomised response at this epsilon costs in Rényi privacy of this order, rounded up."""
    plain = min(epsilon, order * epsilon * epsilon / 2)
    a, e = float(order), float(epsilon)
    found = (a * e + math.log1p(math.exp((1 - 2 * a) * e)) - e - math.log1p(math.exp(-e))) / (a - 1)
    return _up(min(plain, Fraction(found * _UP + _LEAST * (1 + e))))


def renyi_room(epsilon: Fraction, delta: Fraction, order: Fraction) -> Fraction:
    """Return how much may be spent in Rényi privacy of this order within (epsilon, delta), rounded down."""
    bound = epsilon - _beyond(delta, order)
    return Fraction(math.floor(bound * _FINEST), _FINEST)


def renyi_epsilon(spent: Fraction, delta: Fraction, order: Fraction) -> Fraction:
    """Return the epsilon at this delta of what was spent in Rényi privacy of this order, rounded up."""
    return max(Fraction(0), _up(spent + _beyond(delta, order)))


def best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the order at which (epsilon, delta) has room for the most releases of a small epsilon."""
    return max(ORDERS, key=lambda order: renyi_room(epsilon, delta, order) / order)


def _beyond(delta: Fraction, order: Fraction) -> Fraction:
    """By how much the epsilon at a delta exceeds what is spent at an order, rounded up."""
    a = float(order)
    found = math.log((a - 1) / a) - (_log(delta) + math.log(a)) / (a - 1)
    return Fraction(found + _LEAST * (1 + abs(found)) * 10)


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


def _up(value: Fraction) -> Fraction:
    return Fraction(math.ceil(value * _FINEST), _FINEST)


def planned_epsilon(costs: Mapping[Cost, int], delta: Fraction) -> Fraction | None:
    """Return what so many releases of these costs, settled beforehand, cost together at ``delta``: an upper bound, and
    never more than their sum. None if ``delta`` is not above what theirs come to."""
    counted = {cost: number for cost, number in costs.items() if number}
    if sum(d * n for (_, d), n in counted.items()) > delta:
        return None
    total = sum((e * n for (e, _), n in counted.items()), Fraction(0))
    if not delta or not total:
        return total
    found = _composed(tuple(sorted(counted.items())), float(delta)) if delta >= _LEAST_DELTA else math.inf
    return min(total, Fraction(found * (1 + 1e-6))) if math.isfinite(found) else total


@lru_cache(maxsize=256)
def _composed(counted: tuple[tuple[Cost, int], ...], delta: float) -> float:
    """The epsilon by privacy loss distributions; infinite where delta is too small for them."""
    # Imported here: it takes seconds, and only budgets with a delta need it.
    from dp_accounting.pld import pld_pmf

    step = _step(counted, delta)
    together: Any = None
    for (epsilon, failure), number in counted:
        e, told = float(epsilon), float(failure)
        losses = {math.ceil(epsilon / step): (1 - told) / (1 + math.exp(-e))}
        negative = -math.floor(epsilon / step)
        losses[negative] = losses.get(negative, 0.0) + (1 - told) / (1 + math.exp(e))
        each = pld_pmf.create_pmf(losses, float(step), told, True).to_dense_pmf()
        composed = each.self_compose(number) if number > 1 else each
        together = composed if together is None else together.compose(composed)
    return float(together.get_epsilon_for_delta(delta * (1 - 1e-6) - _LOST))


def _step(counted: Iterable[tuple[Cost, int]], delta: float) -> Fraction:
    """In which steps losses are told apart: rounded up to multiples of it, so each may cost up to one step more.

    Where all epsilons are multiples of a step that is not far smaller, nothing is rounded.
    """
    epsilons = [(epsilon, number) for (epsilon, _), number in counted if epsilon]
    below = math.lcm(*(epsilon.denominator for epsilon, _ in epsilons))
    step = Fraction(math.gcd(*(int(epsilon * below) for epsilon, _ in epsilons)), below)
    largest = max(epsilon for epsilon, _ in epsilons)
    if largest / step <= _COARSEST:
        return step
    releases = sum(number for _, number in epsilons)
    squares = sum(number * float(epsilon) ** 2 for epsilon, number in epsilons)
    expected = squares / 2 + math.sqrt(2 * squares * math.log(1 / delta))
    total = float(sum(epsilon * number for epsilon, number in epsilons))
    return Fraction(max(_SHARE * min(expected, total) / releases, 2 * total / _POINTS))

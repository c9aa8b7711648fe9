"""What a cost is worth, in a word: of one release, of all releases of an account, or of a budget for them.

Every sentence about what is paid comes from :func:`worth`, so that no two of them disagree: it heeds the delta among
the cases that there are, and takes any number of bounds, as composition gives a second one beside the sum.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from veilog.privacy.account.accounting import LARGEST_EPSILON
from veilog.privacy.account.guessing import advantage_of
from veilog.privacy.account.strength import STRENGTHS, Strength, largest_log, strength_of

Cost = tuple[Fraction, Fraction]


def worth(*bounds: Cost | None, cases: int = 0) -> Strength:
    """Return the word for what keeps each of these bounds (epsilon, delta), for one of so many cases; None is no bound.

    All of them hold, so the best word that one of them allows is true. Of each the word follows from its own epsilon
    *and* delta: the epsilon of the one with the delta of another bounds nothing.
    """
    return min((_worth(bound, cases) for bound in bounds), key=STRENGTHS.index, default=STRENGTHS[-1])


def holds_up_to(*bounds: Cost | None, cases: int = 0) -> int | None:
    """Return the largest log for which the word that :func:`worth` returns holds; None where it holds for any."""
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

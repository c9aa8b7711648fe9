"""How much a guarantee is worth, in one of five words that decide the sentences and colours everywhere.

The words follow the guessing advantage (see :mod:`veilog.privacy.account.guessing`), because that is what a person
loses: a tenth, a quarter, a half and three quarters are the borders, which a pure epsilon reaches at .40, 1.02, 2.20
and 3.89. A delta allows that a person's data come out as they are: of a log of so many cases up to ``delta * cases`` of
them, on average. Where that is not far below one person, no word may be better than the delta allows. The cases that
count are those that the method looked at, not those that it released: a method may release a tenth of them. Nothing
that is released says how many they are. So a word is judged by a number of cases that is known, and stands with the
largest log for which it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Literal, get_args

Strength = Literal["strong", "good", "moderate", "weak", "none in practice"]

STRENGTHS: tuple[Strength, ...] = get_args(Strength)
"""From the best on."""

ADVANTAGES = (0.1, 0.25, 0.5, 0.75)
"""The largest guessing advantage of each word but the last."""
EXPOSED = (0.01, 0.01, 0.1, 1.0)
"""The largest ``delta * cases`` of each word but the last: the people who may be published outright, on average."""


def strength_of(advantage: float | None, delta: float = 0.0, cases: int | None = None) -> Strength:
    """Return the word for a guessing advantage (None: nothing is proven) and a delta, in a log of so many cases; where
    that is not known, in a log of one case."""
    if advantage is None:
        return STRENGTHS[-1]
    by_advantage = sum(advantage > border for border in ADVANTAGES)
    exposed = delta * max(cases or 0, 1)
    by_delta = sum(exposed > border for border in EXPOSED) if exposed else 0
    return STRENGTHS[max(by_advantage, by_delta)]


def largest_log(strength: Strength, delta: float) -> int | None:
    """Return the most cases that a log may have for this word to hold with a delta; None where any log may."""
    if not delta or strength == STRENGTHS[-1]:
        return None
    border = EXPOSED[STRENGTHS.index(strength)]
    most = int(Fraction(Decimal(repr(border))) / Fraction(Decimal(repr(delta))))
    while most and delta * most > border:  # as floats, like :func:`strength_of`
        most -= 1
    return most


@dataclass(frozen=True)
class DeltaImpact:
    """That a delta alone makes a guarantee worth less than its guessing advantage would."""

    exposed: float
    """Cases that may come out as they are, on average."""
    better: Strength
    """What it would be worth by the advantage."""
    enough: float
    """A delta with which it would be, in one digit."""


def weighed(advantage: float | None, delta: float, cases: int | None) -> DeltaImpact | None:
    """Return what a delta costs in a log of so many cases, where it is what decides the word; None elsewhere."""
    better = strength_of(advantage)
    if advantage is None or not cases or strength_of(advantage, delta, cases) == better:
        return None
    enough = Context(prec=1, rounding=ROUND_FLOOR).create_decimal(repr(EXPOSED[STRENGTHS.index(better)] / cases))
    return DeltaImpact(delta * cases, better, float(enough))

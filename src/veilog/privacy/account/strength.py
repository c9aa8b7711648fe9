"""How much a guarantee is worth, in one of five words that decide the sentences and colours everywhere.

The words follow the guessing advantage (see :mod:`veilog.privacy.account.guessing`), because that is what a person
loses: a tenth, a quarter, a half and three quarters are the borders, which a pure epsilon reaches at .40, 1.02, 2.20
and 3.89. A delta allows that a person's data come out as they are, in up to ``delta * cases`` of the released cases on
average; where that is not far below one person, no word may be better than the delta allows.
"""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["ADVANTAGES", "EXPOSED", "STRENGTHS", "Strength", "strength_of"]

Strength = Literal["strong", "good", "moderate", "weak", "none in practice"]

STRENGTHS: tuple[Strength, ...] = get_args(Strength)
"""From the best on."""

ADVANTAGES = (0.1, 0.25, 0.5, 0.75)
"""The largest guessing advantage of each word but the last."""
EXPOSED = (0.01, 0.01, 0.1, 1.0)
"""The largest ``delta * cases`` of each word but the last: the people who may be published outright, on average."""


def strength_of(advantage: float | None, delta: float = 0.0, cases: int | None = None) -> Strength:
    """Return the word for a guessing advantage (None: nothing is proven) and a delta among so many released cases."""
    if advantage is None:
        return STRENGTHS[-1]
    by_advantage = sum(advantage > border for border in ADVANTAGES)
    exposed = delta * (cases or 0)
    by_delta = sum(exposed > border for border in EXPOSED) if exposed else 0
    return STRENGTHS[max(by_advantage, by_delta)]

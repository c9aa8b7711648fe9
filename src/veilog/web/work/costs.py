"""What a release or an account costs, as pages say it: in figures and in words."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from veilog.ledger.accounts import in_figures
from veilog.ledger.costs import Cost
from veilog.privacy.account.guessing import advantage_of
from veilog.report.figures import figure

__all__ = ["Figures", "advantage_at", "cost_in_words", "figures"]

Figures = tuple[str, str]
"""Epsilon and delta, as they are written."""


@lru_cache(maxsize=256)
def advantage_at(cost: Cost) -> float:
    """Return by how many percentage points a release of this cost lets anybody guess better, rounded up."""
    return -(-advantage_of(*cost) * 10_000 // 1) / 100


def cost_in_words(cost: Figures) -> str:
    """Return a cost as it is written, rounded up to a few digits."""
    epsilon, delta = (figure(Fraction(part)) for part in cost)
    return f"ε = {epsilon}" + (f", δ = {delta}" if cost[1] != "0" else "")


def figures(cost: Cost | None, *, down: bool = False) -> Figures | None:
    """Return a cost in figures, rounded up, or what is left of one, rounded ``down``; None: nothing bounds it."""
    return None if cost is None else (in_figures(cost[0], down=down), in_figures(cost[1], down=down))

"""The guarantee that follows from what was asked: it stands on the accounting and on the guessing advantage alike."""

from __future__ import annotations

from fractions import Fraction

from veilog.privacy.account.accounting import compose
from veilog.privacy.account.figures import round_up
from veilog.privacy.account.guarantee import Charge, Condition, Guarantee, Statement
from veilog.privacy.account.guessing import advantage_of

__all__ = ["derived"]


def derived(
    charges: tuple[Charge, ...],
    at_least: tuple[Fraction, Fraction],
    nominal_epsilon: Fraction | None,
    nominal_delta: Fraction | None,
    *,
    reasons: tuple[str, ...],
    seeded: bool,
    unit: str,
    neighbours: str,
    conditions: tuple[Condition, ...],
    statements: tuple[Statement, ...],
) -> Guarantee:
    """Return what these charges amount to, and not less than ``at_least``; "none" with the ``reasons``, if there are
    any, if the noise was ``seeded``, and if nothing was asked."""
    epsilon, delta = (max(spent, least) for spent, least in zip(compose(charges), at_least, strict=True))
    against = list(reasons)
    numerics = "exact integer noise from the operating system's cryptographic source"
    if not charges and not reasons:
        against.append("nothing was asked of the data")
    if seeded:
        against.append("seeded: whoever knows the seed can recompute the noise")  # goes out, so without the seed
        numerics = "exact integer noise from a seeded generator, for experiments only"
    if delta >= 1:
        against.append("the deltas of the questions add up to 1 or more")
    proven = not against
    return Guarantee(
        status="proven" if proven else "none",
        epsilon=round_up(epsilon) if proven else None,
        delta=round_up(delta) if proven else None,
        nominal_epsilon=None if nominal_epsilon is None else float(nominal_epsilon),
        nominal_delta=None if nominal_delta is None else float(nominal_delta),
        unit=unit,
        neighbours=neighbours,
        numerics=numerics,
        conditions=conditions,
        reasons=tuple(against),
        charges=charges,
        statements=statements,
        guessing_advantage=round_up(advantage_of(epsilon, delta)) if proven else None,
        guessing_advantage_without_delta=round_up(advantage_of(epsilon)) if proven and delta else None,
    )

"""What questions are charged whose noise has less delta than was asked for."""

from __future__ import annotations

from fractions import Fraction

from veilog.privacy.mechanisms import noise


def failure(epsilon: Fraction | str, delta: Fraction | str, most: int = 1) -> Fraction:
    """Return the delta that k-TSGD noise has whose k was found for this one, of ``most`` numbers together."""
    share, part = Fraction(epsilon) / most, Fraction(delta) / most
    found = most * noise.tsgd_failure(share, noise.tsgd_bound(share, part))
    assert 0 < found <= Fraction(delta)
    return found

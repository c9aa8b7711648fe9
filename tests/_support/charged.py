"""Charges of queries whose noise has less delta than requested."""

from __future__ import annotations

from fractions import Fraction

from veilog.privacy.mechanisms import noise


def failure(epsilon: Fraction | str, delta: Fraction | str, most: int = 1) -> Fraction:
    """Return the delta of k-TSGD noise for this one, of ``most`` numbers together."""
    share, part = Fraction(epsilon) / most, Fraction(delta) / most
    found = most * noise.tsgd_failure(share, noise.tsgd_bound(share, part))
    assert 0 < found <= Fraction(delta)
    return found

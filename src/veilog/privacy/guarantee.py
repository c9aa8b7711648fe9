"""What a release may claim: charges for the questions asked, and the guarantee that follows from them.

A :class:`Charge` is a frozen description of what one question spent; a :class:`Guarantee` is what
:func:`veilog.privacy.accounting.compose` makes of all of them. Neither can be set by a method.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Literal

__all__ = ["NEIGHBOURS", "Charge", "Guarantee", "Statement", "Status"]

Status = Literal["proven", "none"]

NEIGHBOURS = "logs that differ by adding or removing one case"


@dataclass(frozen=True)
class Charge:
    """One question to the curator: what was asked, how it was answered and what that costs."""

    question: str
    """What was asked, e.g. "partitions"."""
    purpose: str
    """What the method asked it for, in words."""
    mechanism: str
    """The noise, e.g. "discrete Laplace, scale 1/epsilon"."""
    sensitivity: str
    """By how much one case can change the exact answer, in which norm."""
    epsilon: Fraction
    delta: Fraction

    def to_json(self) -> dict[str, object]:
        return {
            "question": self.question,
            "purpose": self.purpose,
            "mechanism": self.mechanism,
            "sensitivity": self.sensitivity,
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
        }


@dataclass(frozen=True)
class Statement:
    """What holds for a release beside differential privacy: a group-based model such as k-anonymity, or a bound under a
    stated attack model. Never an epsilon, and it does not compose with anything."""

    model: str
    """Its name, e.g. "k-anonymity"."""
    holds: str
    """What holds, in a sentence with its numbers."""
    checked: bool
    """Whether the released log itself was checked for it; otherwise it rests on the method."""
    does_not_protect: str
    """What it does not protect against, in a sentence that begins so."""

    def to_json(self) -> dict[str, object]:
        return {
            "model": self.model,
            "holds": self.holds,
            "checked": self.checked,
            "does_not_protect": self.does_not_protect,
        }


@dataclass(frozen=True)
class Guarantee:
    """The derived guarantee of a release, beside what its method's paper would call it (nominal)."""

    status: Status
    """"proven": every contact with the data was a charged question. "none": see ``reasons``."""
    epsilon: float | None
    """The derived epsilon, None where nothing can be derived."""
    delta: float | None
    nominal_epsilon: float | None
    """What was asked for under the paper's calibration."""
    nominal_delta: float | None
    unit: str
    neighbours: str
    numerics: str
    assumptions: tuple[str, ...]
    """What the proof takes for granted, each in a sentence."""
    reasons: tuple[str, ...]
    """Why the status is "none"; empty when it is "proven"."""
    charges: tuple[Charge, ...]
    statements: tuple[Statement, ...] = ()
    """What holds beside differential privacy, or in its place."""
    guessing_advantage: float | None = None
    """By how much at most the release raises an attacker's chance to guess that a given case (or person) is in the log;
    see :mod:`veilog.privacy.guessing`. None where nothing is proven."""
    guessing_advantage_without_delta: float | None = None
    """The same but for the failures that delta allows; None where there is no delta."""

    @property
    def proven(self) -> bool:
        return self.status == "proven"

    def in_words(self) -> str:
        """One sentence for people."""
        if not self.proven:
            kind = "No differential privacy" if self.statements else "No guarantee"
            return " ".join([f"{kind}: " + "; ".join(self.reasons) + ".", *(s.holds for s in self.statements)])
        pair = f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else "")
        return f"Differentially private for one {self.unit}, {pair}.{self._guessing()}"

    def _guessing(self) -> str:
        if self.guessing_advantage is None:
            return ""
        words = (
            f" An attacker's chance to guess whether a given {self.unit} is in the log rises by at most "
            f"{_rounded_up(self.guessing_advantage)}"
        )
        if self.guessing_advantage_without_delta is None:
            return words + "."
        return f"{words} ({_rounded_up(self.guessing_advantage_without_delta)} but for the failures that delta allows)."

    def to_json(self) -> dict[str, object]:
        return {
            "status": self.status,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "nominal_epsilon": self.nominal_epsilon,
            "nominal_delta": self.nominal_delta,
            "unit": self.unit,
            "neighbours": self.neighbours,
            "numerics": self.numerics,
            "assumptions": list(self.assumptions),
            "reasons": list(self.reasons),
            "charges": [charge.to_json() for charge in self.charges],
            "statements": [statement.to_json() for statement in self.statements],
            "guessing_advantage": self.guessing_advantage,
            "guessing_advantage_without_delta": self.guessing_advantage_without_delta,
        }


def _rounded_up(value: float) -> str:
    """Four digits that do not understate it."""
    return f"{float(Context(prec=4, rounding=ROUND_CEILING).create_decimal(Decimal(repr(value)))):g}"

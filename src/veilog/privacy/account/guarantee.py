"""What a release may claim: charges for the questions asked, and the guarantee that follows from them.

A :class:`Charge` is a frozen description of what one question spent; a :class:`Guarantee` is what
:func:`veilog.privacy.account.accounting.compose` makes of all of them. Neither can be set by a method.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from veilog._plain import InJson, ToJson
from veilog.errors import ParameterError
from veilog.privacy.account.figures import round_up, up
from veilog.privacy.account.strength import Strength, strength_of

__all__ = ["NEIGHBOURS", "Charge", "Code", "Condition", "Guarantee", "SaidBy", "Statement", "Status"]

Status = Literal["proven", "none"]
Code = Literal[
    "activities-from-log",
    "length-from-log",
    "window-from-log",
    "columns-from-log",
    "nobody-has-more",
    "one-run",
    "columns-read-together",
]
SaidBy = Literal["owner", "program"]

NEIGHBOURS = "logs that differ by adding or removing one case"


@dataclass(frozen=True)
class Charge(ToJson):
    """One question to the curator: what was asked, how it was answered and what that costs."""

    question: str
    """What was asked, e.g. "partitions"."""
    purpose: str
    """What the method asked it for, in words."""
    mechanism: str
    """The noise, e.g. "discrete Laplace, scale 1/epsilon"."""
    sensitivity: str
    """By how much one case can change the exact answer, in which norm."""
    epsilon: Annotated[Fraction, InJson(as_=round_up)]
    delta: Annotated[Fraction, InJson(as_=round_up)]

    def __post_init__(self) -> None:
        if self.epsilon < 0 or self.delta < 0:
            raise ParameterError("A question cannot cost less than nothing.", parameter="epsilon")


@dataclass(frozen=True)
class Condition(ToJson):
    """What a guarantee takes for granted: it holds where this holds, and nothing checked that it does.

    The text depends on what was asked for, never on what is in the data.
    """

    code: Code
    """For programs: a pipeline refuses a release whose conditions it does not know to hold."""
    said_by: SaidBy
    """Whose word it is: the owner's, who asked for it, or the program's, which had no other way."""
    text: str


@dataclass(frozen=True)
class Statement(ToJson):
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


@dataclass(frozen=True)
class Guarantee(ToJson):
    """The derived guarantee of a release, beside what its method's paper would call it (nominal)."""

    status: Annotated[Status, InJson(then=("strength",))]
    """"proven": every contact with the data was a charged question. "none": see ``reasons``."""
    epsilon: float | None
    """The derived epsilon, None where nothing can be derived."""
    delta: float | None
    nominal_epsilon: float | None
    """What was asked for under the paper's calibration."""
    nominal_delta: float | None
    unit: Annotated[str, InJson(then=("protects",))]
    neighbours: str
    numerics: str
    conditions: tuple[Condition, ...]
    """What the proof takes for granted; empty where it holds whatever the log is."""
    reasons: tuple[str, ...]
    """Why the status is "none"; empty when it is "proven"."""
    charges: tuple[Charge, ...]
    statements: tuple[Statement, ...] = ()
    """What holds beside differential privacy, or in its place."""
    guessing_advantage: float | None = None
    """By how much at most the release raises an attacker's chance to guess that a given case (or person) is in the log;
    see :mod:`veilog.privacy.account.guessing`. None where nothing is proven."""
    guessing_advantage_without_delta: float | None = None
    """The same but for the failures that delta allows; None where there is no delta."""
    cases: Annotated[int | None, InJson(left_out="always")] = None
    """How many cases are released, which a delta is judged by; None before the release."""

    @property
    def strength(self) -> Strength:
        """What it is worth, in a word; see :mod:`veilog.privacy.account.strength`."""
        return strength_of(self.guessing_advantage if self.proven else None, self.delta or 0.0, self.cases)

    @property
    def protects(self) -> str:
        """Whom it protects and whom it does not, in a sentence."""
        if not self.proven:
            return "Nobody is protected by differential privacy."
        if self.strength == "none in practice":
            return "Nobody is protected to speak of."
        if self.unit == "case":
            return "It protects one case, such as one visit, and not a person who has several."
        return f"It protects one {self.unit} with all the cases that count, and not a group such as a family or a ward."

    @property
    def proven(self) -> bool:
        return self.status == "proven"

    def in_words(self) -> str:
        """Return the guarantee in a few sentences for people."""
        if not self.proven:
            kind = "No differential privacy" if self.statements else "No guarantee"
            return " ".join([f"{kind}: " + "; ".join(self.reasons) + ".", *(s.holds for s in self.statements)])
        pair = f"epsilon = {up(self.epsilon)}" + (f", delta = {up(self.delta)}" if self.delta else "")
        given = " if its conditions hold" if self.conditions else ""
        first = f"Differentially private for one {self.unit}{given}, {pair}: protection is {self.strength}."
        return f"{first}{self._guessing()} {self.protects}"

    def _guessing(self) -> str:
        if self.guessing_advantage is None:
            return ""
        words = (
            f" An attacker's chance to guess whether a given {self.unit} is in the log rises by at most "
            f"{up(self.guessing_advantage, 4)}"
        )
        if self.guessing_advantage_without_delta is None:
            return words + "."
        return f"{words} ({up(self.guessing_advantage_without_delta, 4)} but for the failures that delta allows)."

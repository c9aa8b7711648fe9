"""What a release may claim: charges for the questions asked, and the guarantee that follows from them.

A :class:`Charge` is a frozen description of what one question spent; a :class:`Guarantee` is what
:meth:`veilog.privacy.account.account.ChargeAccount.guarantee` makes of all of them. Neither can be set by a method.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from veilog.errors import ParameterError
from veilog.privacy.account.figures import round_up, up
from veilog.privacy.account.strength import DeltaImpact, Strength, largest_log, strength_of, weighed
from veilog.privacy.account.words import mechanism_in_words, sensitivity_in_words
from veilog.privacy.mechanisms.mechanism import Mechanism, Sensitivity, Stated
from veilog.privacy.part import Part

Status = Literal["proven", "none"]
Code = Literal[
    "activities-from-log",
    "length-from-log",
    "activities-mapped",
    "window-from-log",
    "columns-from-log",
    "nobody-has-more",
    "unnamed-are-single",
    "cases-keep-their-part",
    "units-keep-their-names",
    "one-run",
    "columns-read-together",
    "method-of-another-package",
]
SaidBy = Literal["owner", "program"]

NEIGHBOURS = "logs that differ by adding or removing one case"


@dataclass(frozen=True)
class PlainCharge:
    """A charge as people and files have it: mechanism and sensitivity in words."""

    question: str
    purpose: str
    mechanism: str
    """The noise, e.g. "discrete Laplace, scale 1/epsilon"."""
    sensitivity: str
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Charge:
    """One question to the curator: what was asked, how it was answered and what that costs."""

    Plain: ClassVar[type[PlainCharge]] = PlainCharge
    """What files keep of it; see :mod:`veilog._plain`."""

    question: str
    """What was asked, e.g. "partitions"."""
    purpose: str
    """What the method asked it for, in words."""
    mechanism: Mechanism
    """What the noise was drawn from."""
    sensitivity: Sensitivity | Stated
    """By how much one case can change the exact answer, in which norm."""
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    cases: int = 1
    """Of how many cases of one person it is the cost."""

    def __post_init__(self) -> None:
        if self.epsilon < 0 or self.delta < 0:
            raise ParameterError("A question cannot cost less than nothing.", parameter="epsilon")

    def plain(self) -> PlainCharge:
        """Return the charge in words."""
        mechanism = mechanism_in_words(self.mechanism, self.sensitivity)
        sensitivity = sensitivity_in_words(self.sensitivity, self.question, self.cases)
        return PlainCharge(self.question, self.purpose, mechanism, sensitivity, self.epsilon, self.delta)

    @staticmethod
    def of_plain(kept: PlainCharge) -> Charge:
        """Return the charge that was kept in words: what it names is stated, and known no better than that."""
        mechanism, sensitivity = Stated(kept.mechanism), Stated(kept.sensitivity)
        return Charge(kept.question, kept.purpose, mechanism, sensitivity, kept.epsilon, kept.delta)

    def to_json(self) -> dict[str, object]:
        plain = self.plain()
        return {
            "question": plain.question,
            "purpose": plain.purpose,
            "mechanism": plain.mechanism,
            "sensitivity": plain.sensitivity,
            "epsilon": round_up(plain.epsilon),
            "delta": round_up(plain.delta),
        }


@dataclass(frozen=True)
class Condition:
    """What a guarantee takes for granted: it holds where this holds, and nothing checked that it does.

    The text depends on what was asked for, never on what is in the data.
    """

    code: Code
    """For programs: a pipeline refuses a release whose conditions it does not know to hold."""
    said_by: SaidBy
    """Whose word it is: the owner's, who asked for it, or the program's, which had no other way."""
    text: str

    def to_json(self) -> dict[str, object]:
        return {"code": self.code, "said_by": self.said_by, "text": self.text}


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
    """That of epsilon alone; None where there is no delta. No release is known to keep within it."""
    cases: int | None = None
    """A number of cases that the level is judged by: those released, or, for the data owner alone, those of the log;
    None where neither is known, as before a release and of a model. The log may have more: see ``holds_up_to``."""
    part: Part | None = None
    """Which cases it is of; all, where this is None. It protects every case: of others nothing was looked at
    but what the owner says is public of the log."""

    @property
    def strength(self) -> Strength:
        """What it is worth, in a word; see :mod:`veilog.privacy.account.strength`."""
        return strength_of(self.guessing_advantage if self.proven else None, self.delta or 0.0, self.cases)

    @property
    def holds_up_to(self) -> int | None:
        """The most cases that the log may have for that word to hold; None where it may have any number."""
        return largest_log(self.strength, self.delta or 0.0) if self.proven else None

    @property
    def weighed(self) -> DeltaImpact | None:
        """What its delta costs, where it is delta that decides what it is worth."""
        return weighed(self.guessing_advantage if self.proven else None, self.delta or 0.0, self.cases)

    @property
    def protects(self) -> str:
        """Whom it protects and whom it does not, in a sentence."""
        if not self.proven:
            return "Nobody is protected by differential privacy."
        if self.strength == "none in practice":
            return "Nobody is protected to speak of."
        if self.unit == "case":
            return (
                "It protects one case, such as one visit. It does not protect a person who has several, nor the staff "
                "who did the work."
            )
        return (
            f"It protects one {self.unit} with all the cases that count. It does not protect a group such as a family "
            "or a ward, nor the staff who did the work."
        )

    @property
    def proven(self) -> bool:
        return self.status == "proven"

    def __repr__(self) -> str:
        if not self.proven:
            return f"Guarantee(none: {'; '.join(self.reasons)})"
        delta = f", delta = {up(self.delta)}" if self.delta else ""
        return f"Guarantee(proven, epsilon = {up(self.epsilon)}{delta} for one {self.unit})"

    def in_words(self) -> str:
        """Return the guarantee in a few sentences for people."""
        if not self.proven:
            kind = "No differential privacy" if self.statements else "No guarantee"
            return " ".join([f"{kind}: " + "; ".join(self.reasons) + ".", *(s.holds for s in self.statements)])
        pair = f"epsilon = {up(self.epsilon)}" + (f", delta = {up(self.delta)}" if self.delta else "")
        given = " if its conditions hold" if self.conditions else ""
        first = f"Differentially private for one {self.unit}{given}, {pair}: protection is {self.strength}"
        first += "." if self.holds_up_to is None else f", for a log of up to {self.holds_up_to:,} cases."
        only = "" if self.part is None else f" The release is of the {self.part.in_words} alone."
        return f"{first}{self._by_delta()}{self._guessing()} {self.protects}{only}"

    def _repr_html_(self) -> str:
        """Return the words as HTML in the colours of the notebook: escaped, as they may hold the owner's."""
        said = [self.in_words(), *(f"Holds only if: {condition.text}" for condition in self.conditions)]
        return "".join(f"<p>{html.escape(text)}</p>" for text in said)

    def _by_delta(self) -> str:
        found = self.weighed
        if found is None:
            return ""
        return (
            f" Its delta decides that: in a log of {self.cases:,} cases it may let {found.exposed:.2g} come "
            f"out as they are, on average; with a delta of at most {up(found.enough)} protection would be "
            f"{found.better}."
        )

    def _guessing(self) -> str:
        if self.guessing_advantage is None:
            return ""
        mean = ", on average over the noise" if self.delta else ""
        return (
            f" An attacker's chance to guess whether a given {self.unit} is in the log rises by at most "
            f"{up(self.guessing_advantage, 4)}{mean}."
        )

    def to_json(self) -> dict[str, object]:
        return {
            "status": self.status,
            "level": self.strength,
            "level_holds_up_to_cases": self.holds_up_to,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "nominal_epsilon": self.nominal_epsilon,
            "nominal_delta": self.nominal_delta,
            "unit": self.unit,
            "protects": self.protects,
            "neighbours": self.neighbours,
            **({} if self.part is None else {"part": str(self.part)}),
            "numerics": self.numerics,
            "conditions": [condition.to_json() for condition in self.conditions],
            "reasons": list(self.reasons),
            "charges": [charge.to_json() for charge in self.charges],
            "statements": [statement.to_json() for statement in self.statements],
            "guessing_advantage": self.guessing_advantage,
            "guessing_advantage_without_delta": self.guessing_advantage_without_delta,
        }

"""What a release may claim: charges for the questions asked, and the guarantee that follows from them.

A :class:`Charge` is a frozen description of what one question spent; a :class:`Guarantee` is what
:meth:`veilog.privacy.account.account.ChargeAccount.guarantee` makes of all of them. Neither can be set by a method.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import ClassVar, Literal, get_args

from veilog.errors import ParameterError
from veilog.messages import Message, as_message
from veilog.privacy.mechanisms.mechanism import (
    CubeNoise,
    DiscreteGaussianSteps,
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    Mechanism,
    NoisedSteps,
    NoisyMaximum,
    Sensitivity,
    Stated,
    Subsampled,
    Thresholded,
)
from veilog.privacy.partition import Partition


def round_up(value: Fraction) -> float:
    """Return the smallest float not below ``value``: what is printed never understates what is spent."""
    nearest = float(value)
    # A float prints as the shortest decimal that reads back as it, so compare with that decimal, not its binary value.
    return nearest if Fraction(Decimal(repr(nearest))) >= value else math.nextafter(nearest, math.inf)


def up(value: Fraction | float | None, digits: int = 6) -> str:
    """Return a number in so many digits, rounded up, as ``:g`` would write it: 1.0000049 is 1.00001."""
    if value is None:
        return "none"
    whole = value if isinstance(value, Fraction) else Fraction(Decimal(repr(float(value))))
    if whole == 0:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).divide(Decimal(whole.numerator), Decimal(whole.denominator))
    return f"{float(rounded):.{digits}g}"


def exact(value: Fraction) -> str:
    """Return the number in as many digits as it has; rounded down where it has too many."""
    digits = next((d for d in range(40) if (value * 10**d).denominator == 1), 40)
    whole = value * 10**digits
    text = str(whole.numerator // whole.denominator).rjust(digits + 1, "0")
    return text if digits == 0 else f"{text[:-digits]}.{text[-digits:]}"


def so_many(purpose: str | Message, number: int, what: str) -> Message:
    """Return what a question is for, and of how many parts its answer is: "lengths of cases (20 bins)"."""
    code = f"for-one-{what}" if number == 1 else f"for-{what}s"
    return Message(code, purpose=as_message(purpose), n=number)


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


def mechanism_in_words(mechanism: Mechanism, sensitivity: Sensitivity | Stated) -> Message:
    """Return what the noise is. Its scale is told as people calibrate it: the sensitivity over epsilon."""
    match mechanism:
        case Laplace(grid=grid):
            code = "noise-laplace-in-steps" if grid > 1 else "noise-laplace"
            return Message(code, scale=_scale(mechanism, sensitivity), grid=grid)
        case CubeNoise(width=width):
            return Message("noise-of-cubes", scale=_scale(mechanism, sensitivity), n=width)
        case Thresholded(noise, above):
            if isinstance(noise, KTruncatedGeometric):
                return Message("noise-k-truncated", k=noise.k)
            scale, threshold = _scale(noise, sensitivity), above / noise.grid
            return Message("noise-above-threshold", scale=scale, grid=noise.grid, threshold=threshold)
        case NoisyMaximum(noise):
            scale = f"{float(noise.scale):g}"
            if isinstance(sensitivity, Sensitivity):
                scale = f"{2 * sensitivity.by[0]}/epsilon"
            return Message("noise-of-maximum", scale=scale)
        case GaussianRounds(noises, by):
            # Noise is in the units of what is counted finely; what a case changes is told in those of the answer.
            unit = by / sensitivity.by[0] if isinstance(sensitivity, Sensitivity) else Fraction(1)
            widths = sorted({noise.variance**0.5 / float(unit) for noise in noises})
            code = f"noise-gaussian{'-together' if len(noises) > 1 else ''}{'-of-widths' if len(widths) > 1 else ''}"
            return Message(code, questions=len(noises), low=widths[0], high=widths[-1])
        case DiscreteGaussianSteps(parts):
            return Message("noise-gaussian-steps", steps="; ".join(_steps(part) for part in parts))
        case Subsampled(of_sample, rate, epsilon):
            asked = mechanism_in_words(of_sample, sensitivity)
            return Message("noise-on-sample", noise=asked, rate=float(rate), epsilon=float(epsilon))
        case Stated(words):
            return as_message(words)


def sensitivity_in_words(sensitivity: Sensitivity | Stated, question: str, cases: int) -> Message:
    """Return by how much a case changes the answer to such a question, or so many cases of one person."""
    of_one = _of_one_case(sensitivity, question)
    return Message("sensitivity-of-person", sensitivity=of_one, n=cases) if cases > 1 else of_one


def _of_one_case(sensitivity: Sensitivity | Stated, question: str) -> Message:
    if isinstance(sensitivity, Stated):
        return as_message(sensitivity.words)
    norm = sensitivity.norm
    bounded = "" if sensitivity.bounded == "by itself" else f"-{sensitivity.bounded}"
    if norm == "L0":
        one = question == "partitions"
        return Message("sensitivity-one-count") if one else Message("sensitivity-values", by=sensitivity.by[0])
    if norm == "each":
        return Message(f"sensitivity-each{bounded}", by=str(sensitivity.by[0]))
    numbers = [f"{by}" if norm == "L1" else f"{float(by):g}" for by in sensitivity.by]
    return Message(f"sensitivity-in-norm{bounded}", by=", ".join(numbers), norm=norm)


def _scale(mechanism: Laplace | CubeNoise, sensitivity: Sensitivity | Stated) -> str:
    if isinstance(sensitivity, Stated):
        return f"{float(mechanism.scale):g}"
    by = sensitivity.by[0]
    return f"{by}/epsilon" if by.denominator == 1 else f"{by.numerator}/({by.denominator} epsilon)"


def _steps(part: NoisedSteps) -> str:
    how = "all cases" if part.rate == 1 else f"Poisson sampling at rate {part.rate:.6g}"
    steps = "1 step" if part.steps == 1 else f"{part.steps} steps"
    return f"{part.name}: {steps}, {how}, noise multiplier {part.noise_multiplier:.6g}"


Status = Literal["proven", "none"]
Code = Literal[
    "activities-from-log",
    "length-from-log",
    "activities-mapped",
    "window-from-log",
    "columns-from-log",
    "cases-per-person-bounded",
    "without-person-are-single",
    "cases-keep-their-subset",
    "units-keep-their-names",
    "prior-is-public",
    "rules-are-public",
    "one-run",
    "columns-read-together",
    "method-of-another-package",
]
SaidBy = Literal["owner", "program"]

NEIGHBOURS = Message("neighbours-by-case")


@dataclass(frozen=True)
class PlainCharge:
    """A charge as people and files have it: mechanism and sensitivity in words."""

    question: str
    purpose: Message
    mechanism: Message
    """The noise, e.g. "discrete Laplace, scale 1/epsilon"."""
    sensitivity: Message
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Charge:
    """One question to the curator: what was asked, how it was answered and what that costs."""

    Plain: ClassVar[type[PlainCharge]] = PlainCharge
    """What files keep of it; see :mod:`veilog._plain`."""

    question: str
    """What was asked, e.g. "partitions"."""
    purpose: Message
    """What the method asked it for."""
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
            raise ParameterError("question-cost-negative", parameter="epsilon")

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
            "purpose": plain.purpose.english,
            "mechanism": plain.mechanism.english,
            "sensitivity": plain.sensitivity.english,
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
    text: Message

    @property
    def only_if(self) -> Message:
        """That the guarantee holds only then."""
        return Message("condition-holds-only-if", condition=self.text)

    def to_json(self) -> dict[str, object]:
        return {"code": self.code, "said_by": self.said_by, "text": self.text.english}


@dataclass(frozen=True)
class Statement:
    """What holds for a release beside differential privacy: a group-based model such as k-anonymity, or a bound under a
    stated attack model. Never an epsilon, and it does not compose with anything."""

    model: str
    """Its name, e.g. "k-anonymity"."""
    holds: Message
    """What holds, in a sentence with its numbers."""
    checked: bool
    """Whether the released log itself was checked for it; otherwise it rests on the method."""
    does_not_protect: Message
    """What it does not protect against, in a sentence that begins so."""

    def to_json(self) -> dict[str, object]:
        return {
            "model": self.model,
            "holds": self.holds.english,
            "checked": self.checked,
            "does_not_protect": self.does_not_protect.english,
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
    neighbours: Message
    numerics: Message
    conditions: tuple[Condition, ...]
    """What the proof takes for granted; empty where it holds whatever the log is."""
    reasons: tuple[Message, ...]
    """Why the status is "none"; empty when it is "proven"."""
    charges: tuple[Charge, ...]
    statements: tuple[Statement, ...] = ()
    """What holds beside differential privacy, or in its place."""
    guessing_advantage: float | None = None
    """By how much at most the release raises an attacker's chance to guess that a given case (or person) is in the log;
    see :mod:`veilog.privacy.account.guessing_advantage`. None where nothing is proven."""
    guessing_advantage_without_delta: float | None = None
    """That of epsilon alone; None where there is no delta. No release is known to keep within it."""
    cases: int | None = None
    """A number of cases that the level is judged by: those released, or, for the data owner alone, those of the log;
    None where neither is known, as before a release and of a model. The log may have more: see ``holds_up_to``."""
    subset: Partition | None = None
    """Which cases it is of; all, where this is None. It protects every case: of others nothing was looked at
    but what the owner says is public of the log."""

    @property
    def strength(self) -> Strength:
        """What it is worth, in a word; see :mod:`veilog.privacy.account.guarantee`."""
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
    def protects(self) -> Message:
        """Whom it protects and whom it does not."""
        if not self.proven:
            return Message("no-protection")
        if self.strength == "none in practice":
            return Message("no-protection-in-practice")
        return Message("protects-one-case") if self.unit == "case" else Message("protects-one-person", unit=self.unit)

    @property
    def proven(self) -> bool:
        return self.status == "proven"

    def __repr__(self) -> str:
        if not self.proven:
            return f"Guarantee(none: {'; '.join(map(str, self.reasons))})"
        delta = f", delta = {up(self.delta)}" if self.delta else ""
        return f"Guarantee(proven, epsilon = {up(self.epsilon)}{delta} for one {self.unit})"

    @property
    def messages(self) -> tuple[Message, ...]:
        """The guarantee in a few sentences."""
        if not self.proven:
            kind = "guarantee-of-groups" if self.statements else "guarantee-none"
            reasons = "; ".join(map(str, self.reasons))
            return (Message(kind, reasons=reasons), *(statement.holds for statement in self.statements))
        proven = Message(
            "guarantee-proven-conditionally" if self.conditions else "guarantee-proven",
            unit=self.unit,
            epsilon=up(self.epsilon),
            delta=Message("guarantee-delta", delta=up(self.delta)) if self.delta else "",
            strength=self.strength,
            up_to="" if self.holds_up_to is None else Message("guarantee-up-to", cases=self.holds_up_to),
        )
        subset = () if self.subset is None else (Message("guarantee-of-subset", subset=self.subset.in_words),)
        return (proven, *self._of_delta(), *self._of_guessing(), self.protects, *subset)

    def in_words(self) -> str:
        """Return the guarantee in a few sentences for people."""
        return " ".join(map(str, self.messages))

    def _repr_html_(self) -> str:
        """Return the words as HTML in the colours of the notebook: escaped, as they may hold the owner's."""
        said = [self.in_words(), *(str(condition.only_if) for condition in self.conditions)]
        return "".join(f"<p>{html.escape(text)}</p>" for text in said)

    def _of_delta(self) -> Iterator[Message]:
        found = self.weighed
        if found is not None:
            yield Message(
                "guarantee-decided-by-delta",
                cases=self.cases,
                exposed=found.exposed,
                enough=up(found.enough),
                better=found.better,
            )

    def _of_guessing(self) -> Iterator[Message]:
        if self.guessing_advantage is not None:
            kind = "guarantee-guessing-on-average" if self.delta else "guarantee-guessing"
            yield Message(kind, unit=self.unit, advantage=up(self.guessing_advantage, 4))

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
            "protects": self.protects.english,
            "neighbours": self.neighbours.english,
            **({} if self.subset is None else {"subset": str(self.subset)}),
            "numerics": self.numerics.english,
            "conditions": [condition.to_json() for condition in self.conditions],
            "reasons": [reason.english for reason in self.reasons],
            "charges": [charge.to_json() for charge in self.charges],
            "statements": [statement.to_json() for statement in self.statements],
            "guessing_advantage": self.guessing_advantage,
            "guessing_advantage_without_delta": self.guessing_advantage_without_delta,
        }

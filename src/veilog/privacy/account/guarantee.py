"""Charges of queries, and the guarantee that a release may claim from them.

A :class:`Charge` is a frozen description of the budget that one query uses. A :class:`Guarantee` is derived from all
charges by :meth:`veilog.privacy.account.account.ChargeAccount.guarantee`. A method can set neither.

A guarantee has one of five protection levels (``STRENGTHS``). It follows from the guessing advantage, because that is
what a person loses. A delta allows that a person's data come out as they are: up to ``delta * cases`` cases of a log,
on average. Where that is not far below one person, no level may be better than the delta allows. The cases of the log
count, of which a method may release a tenth; no release reveals their number. So a level is judged by a known number of
cases, and stands with the largest log for which it holds.
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
    """Return the smallest float not below ``value``: no printed figure is too small."""
    nearest = float(value)
    # A float prints as the shortest decimal that reads back as it, so compare with that decimal, not its binary value.
    return nearest if Fraction(Decimal(repr(nearest))) >= value else math.nextafter(nearest, math.inf)


def up(value: Fraction | float | None, digits: int = 6) -> str:
    """Return a number rounded up to so many digits, written as ``:g``: 1.00001."""
    if value is None:
        return "none"
    whole = value if isinstance(value, Fraction) else Fraction(Decimal(repr(float(value))))
    if whole == 0:
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).divide(Decimal(whole.numerator), Decimal(whole.denominator))
    return f"{float(rounded):.{digits}g}"


def exact(value: Fraction) -> str:
    """Return the number with all its digits, rounded down after 40 decimals."""
    digits = next((d for d in range(40) if (value * 10**d).denominator == 1), 40)
    whole = value * 10**digits
    text = str(whole.numerator // whole.denominator).rjust(digits + 1, "0")
    return text if digits == 0 else f"{text[:-digits]}.{text[-digits:]}"


def so_many(purpose: str | Message, number: int, what: str) -> Message:
    """Return a purpose with the size of its answer: "lengths of cases (20 bins)"."""
    code = f"for-one-{what}" if number == 1 else f"for-{what}s"
    return Message(code, purpose=as_message(purpose), n=number)


Strength = Literal["strong", "good", "moderate", "weak", "none in practice"]

STRENGTHS: tuple[Strength, ...] = get_args(Strength)
"""Protection levels, the best first."""

ADVANTAGES = (0.1, 0.25, 0.5, 0.75)
"""Largest guessing advantage of each level but the last."""
EXPOSED = (0.01, 0.01, 0.1, 1.0)
"""Largest ``delta * cases`` of each level but the last: the mean number of people who may be published outright."""


def strength_of(advantage: float | None, delta: float = 0.0, cases: int | None = None) -> Strength:
    """Return the protection level for a guessing advantage and a delta in such a log.

    An advantage of None means that nothing is proven. A log of an unknown number of cases counts as one of one case.
    """
    if advantage is None:
        return STRENGTHS[-1]
    by_advantage = sum(advantage > border for border in ADVANTAGES)
    exposed = delta * max(cases or 0, 1)
    by_delta = sum(exposed > border for border in EXPOSED) if exposed else 0
    return STRENGTHS[max(by_advantage, by_delta)]


def largest_log(strength: Strength, delta: float) -> int | None:
    """Return the most cases for which a level holds with a delta; None for any log."""
    if not delta or strength == STRENGTHS[-1]:
        return None
    border = EXPOSED[STRENGTHS.index(strength)]
    most = int(Fraction(Decimal(repr(border))) / Fraction(Decimal(repr(delta))))
    while most and delta * most > border:  # as floats, like :func:`strength_of`
        most -= 1
    return most


@dataclass(frozen=True)
class DeltaImpact:
    """Effect of a delta that alone lowers a protection level below its advantage's."""

    exposed: float
    """Mean number of cases that may be published as they are."""
    better: Strength
    """Protection level by the guessing advantage alone."""
    enough: float
    """A delta of one digit that would reach that level."""


def weighed(advantage: float | None, delta: float, cases: int | None) -> DeltaImpact | None:
    """Return the effect of a delta on the level in a log; None if it does not decide."""
    better = strength_of(advantage)
    if advantage is None or not cases or strength_of(advantage, delta, cases) == better:
        return None
    enough = Context(prec=1, rounding=ROUND_FLOOR).create_decimal(repr(EXPOSED[STRENGTHS.index(better)] / cases))
    return DeltaImpact(delta * cases, better, float(enough))


def mechanism_in_words(mechanism: Mechanism, sensitivity: Sensitivity | Stated) -> Message:
    """Return the noise in words; its scale is the sensitivity over epsilon."""
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
            # Noise is in fine units of the count; the words give the change of a case in units of the answer.
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
    """Return the change of such an answer by one case, or by so many of a person."""
    of_one = _single_case_message(sensitivity, question)
    return Message("sensitivity-of-person", sensitivity=of_one, n=cases) if cases > 1 else of_one


def _single_case_message(sensitivity: Sensitivity | Stated, question: str) -> Message:
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
    """Charge for people and files, with mechanism and sensitivity in words."""

    question: str
    purpose: Message
    mechanism: Message
    """The noise, e.g. "discrete Laplace, scale 1/epsilon"."""
    sensitivity: Message
    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Charge:
    """One query to the curator: its question, its mechanism and the budget it uses."""

    Plain: ClassVar[type[PlainCharge]] = PlainCharge
    """Form of a charge in files; see :mod:`veilog._plain`."""

    question: str
    """Kind of query, e.g. "partitions"."""
    purpose: Message
    """Purpose of the query for the method."""
    mechanism: Mechanism
    """Mechanism that drew the noise."""
    sensitivity: Sensitivity | Stated
    """Largest change of the exact answer by one case, with its norm."""
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    cases: int = 1
    """Number of cases of one person that the charge covers."""

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
        """Return a charge from its words; its mechanism is stated, and no better known."""
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
    """Condition of a guarantee, which holds only where this holds; nothing checks it.

    The text depends on the request, never on the data.
    """

    code: Code
    """Identifier for programs: a pipeline refuses a release with a condition that it does not know to hold."""
    said_by: SaidBy
    """Source: the data owner, who requested it, or the program for want of another."""
    text: Message

    @property
    def only_if(self) -> Message:
        """Sentence that the guarantee holds only under this condition."""
        return Message("condition-holds-only-if", condition=self.text)

    def to_json(self) -> dict[str, object]:
        return {"code": self.code, "said_by": self.said_by, "text": self.text.english}


@dataclass(frozen=True)
class Statement:
    """Property of a release other than differential privacy, such as k-anonymity.

    It is a group-based model, or a bound under a stated attack model. It is never an epsilon and composes with nothing.
    """

    model: str
    """Name of the model, e.g. "k-anonymity"."""
    holds: Message
    """Property that holds, in a sentence with its numbers."""
    checked: bool
    """True if the released log itself was checked; otherwise it rests on the method."""
    does_not_protect: Message
    """Limits of the protection, in a sentence that begins with them."""

    def to_json(self) -> dict[str, object]:
        return {
            "model": self.model,
            "holds": self.holds.english,
            "checked": self.checked,
            "does_not_protect": self.does_not_protect.english,
        }


@dataclass(frozen=True)
class Guarantee:
    """Derived guarantee of a release, and the one of its method's paper (nominal)."""

    status: Status
    """"proven" if every contact with the data was a charged query, else "none"."""
    epsilon: float | None
    """Derived epsilon; None where none can be derived."""
    delta: float | None
    nominal_epsilon: float | None
    """Requested epsilon under the paper's calibration."""
    nominal_delta: float | None
    unit: str
    neighbours: Message
    numerics: Message
    conditions: tuple[Condition, ...]
    """Conditions of the proof; empty where it holds whatever the log is."""
    reasons: tuple[Message, ...]
    """Reasons for the status "none"; empty when it is "proven"."""
    charges: tuple[Charge, ...]
    statements: tuple[Statement, ...] = ()
    """Properties that hold with differential privacy, or in its place."""
    guessing_advantage: float | None = None
    """Largest rise of an attacker's chance to guess that a case (or person) is there.

    See :mod:`veilog.privacy.account.guessing_advantage`. None where nothing is proven.
    """
    guessing_advantage_without_delta: float | None = None
    """Guessing advantage of epsilon alone; None without a delta. No release is known to keep it."""
    cases: int | None = None
    """Number of cases that the level is judged by: of the release, or, for the data owner alone, of the log.

    None where neither is known, as before a release and of a model. The log may have more: see ``holds_up_to``.
    """
    subset: Partition | None = None
    """Subset of the cases that it is of; None for all cases.

    It protects every case: of the others, only facts that the data owner declares public were looked at.
    """

    @property
    def strength(self) -> Strength:
        """Protection level; see :mod:`veilog.privacy.account.guarantee`."""
        return strength_of(self.guessing_advantage if self.proven else None, self.delta or 0.0, self.cases)

    @property
    def holds_up_to(self) -> int | None:
        """Most cases that the log may have for that level to hold; None for any number."""
        return largest_log(self.strength, self.delta or 0.0) if self.proven else None

    @property
    def weighed(self) -> DeltaImpact | None:
        """Effect of its delta, where that decides the level."""
        return weighed(self.guessing_advantage if self.proven else None, self.delta or 0.0, self.cases)

    @property
    def protects(self) -> Message:
        """Sentence on who is protected and who is not."""
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
        """Guarantee in a few sentences."""
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
        return (proven, *self._delta_messages(), *self._guessing_messages(), self.protects, *subset)

    def in_words(self) -> str:
        """Return the guarantee in a few sentences for people."""
        return " ".join(map(str, self.messages))

    def _repr_html_(self) -> str:
        """Return the words as HTML for a notebook, escaped: some are the data owner's."""
        said = [self.in_words(), *(str(condition.only_if) for condition in self.conditions)]
        return "".join(f"<p>{html.escape(text)}</p>" for text in said)

    def _delta_messages(self) -> Iterator[Message]:
        found = self.weighed
        if found is not None:
            yield Message(
                "guarantee-decided-by-delta",
                cases=self.cases,
                exposed=found.exposed,
                enough=up(found.enough),
                better=found.better,
            )

    def _guessing_messages(self) -> Iterator[Message]:
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

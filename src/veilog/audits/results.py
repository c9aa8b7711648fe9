"""What an audit says: what was claimed, what is proved, and what was seen where the guarantee does not speak."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from veilog._plain import InJson, ToJson
from veilog.audits.bounds import Tally
from veilog.messages import Message
from veilog.privacy.account.guarantee import Code, Condition

Broken = Code | Literal["unit"]
"""Why a guarantee does not speak of two logs: a condition of it does not hold, or they differ by more than its unit."""


def _named(tried: tuple[tuple[str, float], ...]) -> list[dict[str, object]]:
    return [{"attack": name, "seemed": seemed} for name, seemed in tried]


def _in_english(faults: tuple[Message, ...]) -> list[str]:
    return [fault.english for fault in faults]


_EVENT = InJson(name="event", as_=lambda tally: str(tally.event))


@dataclass(frozen=True)
class OutOfScopeResult(ToJson):
    """What was seen on logs that the guarantee does not speak of."""

    breaks: Annotated[Broken, InJson(then=("audited_epsilon",))]
    attack: str
    score: str
    tally: Annotated[Tally, _EVENT]
    cases: Annotated[int, InJson(name="person_cases")]
    """Of the person by whom the logs differ."""

    @property
    def audited_epsilon(self) -> float:
        return self.tally.epsilon

    def says(self, claim: float, confidence: float) -> Message:
        seen = {"epsilon": self.audited_epsilon, "confidence": confidence}
        if self.breaks == "unit":
            return Message("audit-beyond-unit", cases=self.cases, **seen)
        of = {"condition": self.breaks, "attack": self.attack}
        if self.audited_epsilon > claim:
            return Message("audit-beyond-condition-more", claim=claim, **of, **seen)
        return Message("audit-beyond-condition", **of, **seen)


@dataclass(frozen=True)
class WhiteBox(ToJson):
    """What a white-box audit found beside its epsilon."""

    factor: float
    """Refuted is, at the confidence, that nobody can see more than the charges allow with all epsilons times this."""
    free_epsilon: float
    """What the same runs prove without the shape of the noise."""
    free_tally: Annotated[Tally, _EVENT]
    """Through which event."""
    questions: tuple[str, ...]
    """What was asked, as far as it was scored."""
    faults: Annotated[tuple[Message, ...], InJson(as_=_in_english)]
    """What is wrong whatever the bounds are."""


@dataclass(frozen=True)
class AuditResult(ToJson):
    """What was claimed, what is proved, and what was seen."""

    method: str
    as_published: bool
    nominal_epsilon: float
    derived_epsilon: float | None
    """None where nothing can be derived."""
    audited_epsilon: float
    """The true epsilon (at this delta) is at least so large, at the confidence."""
    delta: float
    confidence: float
    attack: str
    score: str
    tally: Annotated[Tally, replace(_EVENT, then=("seen_with", "seen_without"))]
    runs: int
    """On each of the two logs, all stages together."""
    tried: Annotated[tuple[tuple[str, float], ...], InJson(as_=_named)]
    """Every attempt with what it seemed to show on the short runs."""
    person_cases: int = 1
    """Cases of the person by whom the logs differ."""
    conditions: tuple[Condition, ...] = ()
    """What the derived guarantee takes for granted."""
    breaks: Broken | None = None
    """Why the guarantee does not speak of any of the logs that were tried, if it does not."""
    beyond: Annotated[tuple[OutOfScopeResult, ...], InJson(then=("verdict",))] = ()
    """Attacks with logs that it does not speak of, apart from the others."""
    seconds: float = 0.0
    white_box: Annotated[WhiteBox | None, InJson(left_out="at its default")] = None
    """None of an audit that sees releases only."""

    @property
    def claim(self) -> float:
        """What a release promises: the derived epsilon, or the paper's where none is derived."""
        return self.nominal_epsilon if self.derived_epsilon is None else self.derived_epsilon

    @property
    def seen_with(self) -> tuple[int, int]:
        """In how many runs on the log with the case (or person) the event was seen, and of how many."""
        return self.tally.seen_with, self.tally.runs_with

    @property
    def seen_without(self) -> tuple[int, int]:
        """The same on the log without."""
        return self.tally.seen_without, self.tally.runs_without

    @property
    def verdict(self) -> str:
        return " ".join(found.english for found in self.verdicts)

    @property
    def verdicts(self) -> tuple[Message, ...]:
        """What the audit says of the guarantee, and then of each attack that is beyond it."""
        return (self._within(), *(found.says(self.claim, self.confidence) for found in self.beyond))

    def _within(self) -> Message:
        if self.white_box is not None and self.white_box.faults:
            return Message("audit-fault", faults="; ".join(map(str, self.white_box.faults)))
        if self.breaks is not None:
            found = OutOfScopeResult(self.breaks, self.attack, self.score, self.tally, self.person_cases)
            return found.says(self.claim, self.confidence)
        free = 0.0 if self.white_box is None else self.white_box.free_epsilon
        most = max(self.audited_epsilon, free)
        if self.derived_epsilon is not None and most > self.derived_epsilon:
            return Message("audit-contradicts-derived", epsilon=most, confidence=self.confidence)
        seen = {"epsilon": self.audited_epsilon, "confidence": self.confidence}
        if self.audited_epsilon > self.nominal_epsilon:
            return Message("audit-contradicts-nominal", **seen)
        if self.conditions:
            return Message("audit-contradicts-nothing-where-conditions-hold", **seen)
        return Message("audit-contradicts-nothing", **seen)

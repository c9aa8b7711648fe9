"""What a release is and what became of it, as the pages show it to the owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from veilog.messages import Message, OwnerMessage
from veilog.privacy.account.guarantee import Charge, Guarantee, Strength, round_up
from veilog.releasing.losses import Loss
from veilog.report.attacks import AttackShown
from veilog.report.decision import OwnerSide
from veilog.report.flow_map import FlowMap
from veilog.report.purposes import PurposeShown
from veilog.report.told import Told
from veilog.web.jobs.read_log import Disclosure, VariantsShown

__all__ = [
    "Account",
    "Amount",
    "Beside",
    "Certificate",
    "Condition",
    "Guessed",
    "OwnerNotes",
    "Promise",
    "Question",
    "ReleasedLog",
    "Sizes",
    "Statement",
    "Values",
]


_NOBODY = Message("nobody-protected")


@dataclass(frozen=True)
class Question:
    """What is asked of the data, and what that costs."""

    question: str
    purpose: Message
    mechanism: Message
    epsilon: float
    delta: float

    @staticmethod
    def of(charge: Charge) -> Question:
        """Return what pages show of this."""
        costs = round_up(charge.epsilon), round_up(charge.delta)
        return Question(charge.question, charge.purpose, charge.plain().mechanism, *costs)


@dataclass(frozen=True)
class Condition:
    """What a guarantee takes for granted."""

    code: str
    text: Message


@dataclass(frozen=True)
class Statement:
    """What holds beside differential privacy."""

    model: str
    holds: Message
    checked: bool
    does_not_protect: Message


@dataclass(frozen=True)
class Promise:
    """A guarantee as pages show it; the certificate has all of it."""

    status: str
    unit: str
    charges: tuple[Question, ...]
    """The first of them."""
    statements: tuple[Statement, ...] = ()
    conditions: tuple[Condition, ...] = ()
    reasons: tuple[Message, ...] = ()
    protects: Message = _NOBODY
    strength: Strength = "none in practice"

    @property
    def proven(self) -> bool:
        return self.status == "proven"

    @staticmethod
    def of(guarantee: Guarantee, charges: int) -> Promise:
        """Return what pages show of this, with so many charges at most."""
        return Promise(
            status=guarantee.status,
            unit=guarantee.unit,
            charges=tuple(map(Question.of, guarantee.charges[:charges])),
            statements=tuple(Statement(s.model, s.holds, s.checked, s.does_not_protect) for s in guarantee.statements),
            conditions=tuple(Condition(c.code, c.text) for c in guarantee.conditions),
            reasons=guarantee.reasons,
            protects=guarantee.protects,
            strength=guarantee.strength,
        )


@dataclass(frozen=True)
class Certificate:
    """What a release says about itself, as pages show it."""

    cases: int
    events: int
    variants: int
    guarantee: Promise
    remarks: tuple[Message, ...] = ()
    noise_only: bool | None = None
    """Whether its answers cannot be distinguished from noise."""


@dataclass(frozen=True)
class Amount:
    """A cost, or what is left of a budget."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Account:
    """The account of the data when a release was made."""

    spent: Amount | None
    """None: nothing bounds it."""
    left: Amount | None
    strength: Strength | None = None


@dataclass(frozen=True)
class Sizes:
    """How large the original is."""

    cases: int
    variants: int
    events: int
    activities: int


@dataclass(frozen=True)
class Guessed:
    """How often the rest of a case is guessed: from the original, from the release, from everybody else's cases."""

    events: int
    with_start: bool
    people: int
    guessed: tuple[float, float, float]
    more: bool
    """Whether the release tells more than everybody else's cases do."""


@dataclass(frozen=True)
class Values:
    """What an attribute holds: rows of a value or quantile, of the original, and of the release."""

    name: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Beside:
    """Original and release side by side: exact numbers of the log, none of which is part of the release."""

    before: Sizes
    verdict: str
    kept: tuple[tuple[str, str, str], ...] | None
    """Of what was kept title, value and meaning."""
    not_compared: str
    explorer: VariantsShown
    map: FlowMap
    map_before: FlowMap
    durations: tuple[tuple[str, str], ...]
    no_durations: str
    chart: str | None
    risk: tuple[tuple[Disclosure, Disclosure], ...]
    """Before and after."""
    singled: tuple[Guessed, ...] | None = None
    singled_in_words: str = ""
    singled_explained: str = ""
    not_to_conclude: tuple[str, ...] = ()
    purposes: tuple[PurposeShown, ...] = ()
    """What the release is good for."""
    seeming: str = ""
    """The column that was taken for people where nobody said so."""
    attacks: tuple[AttackShown, ...] = ()
    """What attacks on people achieved."""
    durations_of: str = ""
    """Of how many cases the durations of the release are, in words."""
    durations_before: tuple[tuple[str, str], ...] = ()
    attributes: tuple[Values, ...] = ()


@dataclass(frozen=True)
class OwnerNotes:
    """What the owner should know, and nobody else may."""

    notes: tuple[OwnerMessage, ...] = ()
    losses: tuple[Loss, ...] = ()
    """What the release leaves out of the log."""


@dataclass(frozen=True)
class ReleasedLog:
    """A release: what it says about itself, its files, and what only its owner sees."""

    certificate: Certificate
    more_charges: int
    budget: str
    empty: bool
    account: Account | None
    activities: int
    entry: int | None
    """Its number in the ledger."""
    missing: tuple[str, ...] = ()
    """What could not be written or measured, in words."""
    unwritten: tuple[str, ...] = ()
    """The files that can be written as soon as the disk has room."""
    stopped: bool = False
    """Whether they are not written because the work was stopped, and not for want of room."""
    files: Mapping[str, int] = field(default_factory=dict)
    """The files that there are, with their sizes in bytes."""
    told: Told | None = None
    """What it says about itself, without its charges, from which its page makes sentences in the language of whoever
    looks."""
    owner: OwnerSide | None = None
    """What its owner alone sees of the log, without what the ledger says of other releases, which its page asks for."""
    owner_only: OwnerNotes = OwnerNotes()
    beside: Beside | None = None

    @property
    def known(self) -> Told | None:
        """What it says about itself to its owner: the level is judged by the cases of the log."""
        return self.told if self.told is None or self.owner is None else self.told.among(self.owner.cases)

    @property
    def level(self) -> Strength:
        """Its protection level, for its owner."""
        return self.certificate.guarantee.strength if self.known is None else self.known.guarantee.strength

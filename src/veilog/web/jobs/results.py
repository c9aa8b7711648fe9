"""What jobs find and make, as the pages show it: values that cross from a worker to the server as JSON, and back.

Nothing else writes or reads that JSON. It outlives a version of veilog: a record of an earlier one, in which some of
this was missing or lay elsewhere, is read as what it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from veilog.measures.disclosure.measure import RiskResult
from veilog.plain import Misfit, from_plain, to_plain
from veilog.privacy.account.figures import round_up
from veilog.privacy.account.guarantee import Charge, Guarantee
from veilog.privacy.account.strength import Strength
from veilog.report.flow_map import FlowMap

__all__ = [
    "Account",
    "Amount",
    "Beside",
    "Certificate",
    "Columns",
    "Condition",
    "Disclosure",
    "Found",
    "Guessed",
    "Kept",
    "Kind",
    "Lengths",
    "Measured",
    "Noticed",
    "OwnerNotes",
    "Preview",
    "Promise",
    "Question",
    "ReadLog",
    "ReleasedLog",
    "Result",
    "Sizes",
    "Statement",
    "Statistics",
    "UnitColumn",
    "VariantRow",
    "VariantsShown",
    "from_text",
    "to_text",
]

Kind = Literal["read", "release"]
"""What a job does with a log."""


# What reading a log finds.


@dataclass(frozen=True)
class Columns:
    """The columns of a table, and which of them is what."""

    all: tuple[str, ...]
    """The names to choose from."""
    chosen: Mapping[str, str]
    """What was chosen by hand."""
    taken: Mapping[str, str] | None
    """The column of each role; None where that is not clear."""
    how: Mapping[str, str] | None
    """How that of each role was found."""


@dataclass(frozen=True)
class Preview:
    """The first rows of a log; ``more`` is how many columns are left out."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int


@dataclass(frozen=True)
class Noticed:
    """A finding, with what it means and what may be done about it."""

    rule: str
    what: str
    severity: str
    count: int
    example: str
    line: int | None
    consequence: str
    advice: str
    policies: tuple[str, ...]


@dataclass(frozen=True)
class Lengths:
    """How many events cases have."""

    median: float
    max: int


@dataclass(frozen=True)
class Statistics:
    """The sizes of a log, and its time."""

    cases: int
    events: int
    activities: int
    variants: int
    length: Lengths
    start: str | None
    end: str | None


@dataclass(frozen=True)
class VariantRow:
    """A variant: for each chevron its text, what that stands for where it is longer, colour, and times in a row."""

    chevrons: tuple[tuple[str, str, int, int], ...]
    left_out: int
    released: int
    original: int | None
    released_share: float
    original_share: float | None


@dataclass(frozen=True)
class VariantsShown:
    """The most frequent variants, of how many, and what they cover; the legend is texts with their colours."""

    variants: int
    covered: float
    legend: tuple[tuple[str, int], ...]
    more_activities: int
    rows: tuple[VariantRow, ...]


@dataclass(frozen=True)
class Disclosure:
    """What some known activities disclose."""

    background: str
    size: int
    case_disclosure: float | None
    unique: int
    cases: int
    exact: bool

    @staticmethod
    def of(r: RiskResult) -> Disclosure:
        """Return what pages show of this."""
        return Disclosure(r.background, r.size, r.case_disclosure, r.unique, r.cases, r.exact)


@dataclass(frozen=True)
class Found:
    """How often somebody who knows a few events finds a person's case in the log, or guesses the rest of it."""

    events: int
    with_start: bool
    people: int
    singled_out: float
    guessed: float


@dataclass(frozen=True)
class UnitColumn:
    """A column that may tell whose a case is."""

    unit: str
    values: int
    most: int
    """Cases of one value."""
    person: bool
    """Whether these seem to be people."""


@dataclass(frozen=True)
class Measured:
    """Statistics and exposure of a log: exact numbers, for its owner only."""

    statistics: Statistics
    explorer: VariantsShown
    disclosure: tuple[Disclosure, ...]
    singled_out: tuple[Found, ...]
    map: FlowMap
    durations: tuple[tuple[str, str], ...]
    case_attributes: tuple[str, ...]
    event_attributes: tuple[str, ...]
    fingerprint: str
    labels: tuple[str, ...] = ()
    more_labels: int = 0
    units: tuple[UnitColumn, ...] = ()


@dataclass(frozen=True)
class ReadLog:
    """What reading a log found; where something is left to decide, ``problem`` says so, and nothing was measured."""

    problem: str | None
    columns: Columns | None = None
    """None where the format says itself what is what."""
    preview: Preview | None = None
    findings: tuple[Noticed, ...] = ()
    choices: tuple[str, ...] = ()
    """The rules of which the owner has to decide what to do."""
    measured: Measured | None = None


# What a release is.


@dataclass(frozen=True)
class Question:
    """What is asked of the data, and what that costs."""

    question: str
    purpose: str
    mechanism: str
    epsilon: float
    delta: float

    @staticmethod
    def of(charge: Charge) -> Question:
        """Return what pages show of this."""
        told = charge.to_json()  # its noise in words
        costs = round_up(charge.epsilon), round_up(charge.delta)
        return Question(charge.question, charge.purpose, str(told["mechanism"]), *costs)


@dataclass(frozen=True)
class Condition:
    """What a guarantee takes for granted."""

    code: str
    text: str


@dataclass(frozen=True)
class Statement:
    """What holds beside differential privacy."""

    model: str
    holds: str
    checked: bool
    does_not_protect: str


@dataclass(frozen=True)
class Promise:
    """A guarantee as pages show it; the certificate has all of it."""

    status: str
    unit: str
    charges: tuple[Question, ...]
    """The first of them."""
    statements: tuple[Statement, ...] = ()
    conditions: tuple[Condition, ...] = ()
    reasons: tuple[str, ...] = ()
    protects: str = ""
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
    remarks: tuple[str, ...] = ()


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
class Kept:
    """What the release kept of the original."""

    similarity: float | None
    moved: float | None
    activities: float
    steps: float
    common: int
    added: int
    lost: int
    real: float | None
    length_error: float | None


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
class Beside:
    """Original and release side by side: exact numbers of the log, none of which is part of the release."""

    before: Sizes
    verdict: str
    kept: Kept | None
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
    not_to_conclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnerNotes:
    """What the owner should know, and nobody else may."""

    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReleasedLog:
    """A release: what it says about itself, its files, and what only its owner sees."""

    certificate: Certificate
    more_charges: int
    budget: str
    plain: tuple[str, ...]
    """The guarantee in plain words."""
    chances: tuple[tuple[str, str], ...]
    """How sure somebody can be before and after."""
    empty: bool
    account: Account | None
    activities: int
    entry: int | None
    """Its number in the ledger."""
    missing: tuple[str, ...] = ()
    """What could not be written or measured, in words."""
    unwritten: tuple[str, ...] = ()
    """The files that can be written as soon as the disk has room."""
    files: Mapping[str, int] = field(default_factory=dict)
    """The files that there are, with their sizes in bytes."""
    owner_only: OwnerNotes = OwnerNotes()
    beside: Beside | None = None


Result = ReadLog | ReleasedLog


def to_text(result: Result) -> str:
    """Return the JSON of a result, which :func:`from_text` reads."""
    return json.dumps(to_plain(result), allow_nan=False)


def from_text(kind: Kind, text: str) -> Result:
    """Return the result of a job of this kind; :class:`ValueError` if the text is none, of this version or another."""
    values = json.loads(text)
    if not isinstance(values, dict):
        raise Misfit("not a result")
    # Earlier versions wrote what was measured beside the rest.
    if kind == "read":
        earlier = {"measured": values} if "statistics" in values else {}
        return from_plain(ReadLog, {**earlier, **values}, lenient=True)
    earlier = {"beside": values} if "explorer" in values else {}
    return from_plain(ReleasedLog, {**earlier, **values}, lenient=True)

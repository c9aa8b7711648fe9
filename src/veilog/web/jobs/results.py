"""Results on their way from a worker to the server and its store: as JSON, and back.

Nothing else writes or reads that JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from veilog._plain import from_plain, to_plain
from veilog.logs.made_up.twins import Sizes
from veilog.measures.disclosure import RiskResult
from veilog.measures.singling_out import Exposed
from veilog.privacy.account.figures import round_up
from veilog.privacy.account.guarantee import Charge, Guarantee
from veilog.privacy.account.strength import Strength
from veilog.releasing.losses import Loss
from veilog.releasing.trying.expected import Interval
from veilog.report.attacks import AttackShown
from veilog.report.decision import OwnerSide
from veilog.report.flow_map import FlowMap
from veilog.report.purposes import PurposeShown
from veilog.report.told import Told

HOW_READ = ("case", "activity", "timestamp", "time_format", "lifecycle", "sheet", "object_type")
"""What may be chosen of how a log is read, as :func:`veilog.read` calls it."""


@dataclass(frozen=True)
class InnerTables:
    """What a file has several of, one of which is the log: sheets with a table, types of objects."""

    what: str
    """As :func:`veilog.read` calls it."""
    among: tuple[str, ...]
    chosen: str | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a table, and which of them is what."""

    all: tuple[str, ...]
    """The names to choose from."""
    chosen: Mapping[str, str]
    """What was chosen by hand."""
    taken: Mapping[str, str] | None
    """The column of each role, as far as that is clear."""
    how: Mapping[str, str] | None
    """How that of each role was found."""


@dataclass(frozen=True)
class Preview:
    """The first rows of a log; ``more`` is how many columns are left out."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int
    times: tuple[str, ...] = ()
    """The time of each row as it is understood."""


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
class LogSizes:
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
        """Return what pages show of this; a mean over too few for an interval is none."""
        known = r.exact or (r.interval is not None and r.interval.case_disclosure is not None)
        return Disclosure(r.background, r.size, r.case_disclosure if known else None, r.unique, r.cases, r.exact)


@dataclass(frozen=True)
class PersonFound:
    """How often somebody who knows a few events finds a person in the log, or guesses the whole of the case."""

    events: int
    with_start: bool
    people: int
    singled_out: float
    guessed: float
    low: float
    """Between ``low`` and ``high`` lies the share found."""
    high: float

    @staticmethod
    def of(row: Exposed) -> PersonFound:
        """Return what pages show of this."""
        found = row.found
        return PersonFound(row.size, row.with_start, row.people, found.value, row.guessed.value, found.low, found.high)


@dataclass(frozen=True)
class UnitColumn:
    """A column that may tell whose a case is."""

    unit: str
    values: int
    most: int
    """Cases of one value."""
    person: bool
    """Whether these seem to be people."""
    unnamed: int = 0
    """Cases that have no value."""


@dataclass(frozen=True)
class LogMeasures:
    """Statistics and exposure of a log: exact numbers, for its owner only."""

    statistics: LogSizes
    explorer: VariantsShown
    disclosure: tuple[Disclosure, ...]
    singled_out: tuple[PersonFound, ...]
    map: FlowMap
    durations: tuple[tuple[str, str], ...]
    case_attributes: tuple[str, ...]
    event_attributes: tuple[str, ...]
    fingerprint: str
    alone: int
    """People with a path that nobody else has."""
    people: int
    """The persons where a column identifies them, else the cases."""
    sizes: Sizes | None
    """Exact ones, for synthetic logs of the same size; None where there can be none."""
    read_as: str
    """How it was read, which a ledger notes with parts."""
    without_numbers: tuple[str, ...] = ()
    """The attributes of which a range of numbers says nothing."""
    labels: tuple[str, ...] = ()
    more_labels: int = 0
    label_events: tuple[int, ...] = ()
    """The events of each label,"""
    label_cases: tuple[int, ...] = ()
    """and the cases that have it, of all labels."""
    units: tuple[UnitColumn, ...] = ()
    person: str = ""
    """The column by which people were counted; nothing where each case is a person of its own."""
    example: str = ""
    """A case that is found by little, in words."""


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
    measured: LogMeasures | None = None
    advice: str = ""
    """What to do about the problem."""
    inside: InnerTables | None = None
    """None where there is nothing to choose from."""


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

    notes: tuple[str, ...] = ()
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


@dataclass(frozen=True)
class Tried:
    """A method at one budget."""

    epsilon: str
    similarity: Interval
    map: FlowMap
    """Of the release of one made-up log, in the places of that log's own map."""
    remarks: tuple[str, ...] = ()
    """What a release says of itself, and what speaks against it."""
    purposes: tuple[tuple[str, Interval], ...] = ()
    """What is kept for a purpose, as a share of what the made-up log itself gives."""


@dataclass(frozen=True)
class TriedMethod:
    """A method at all budgets that there was time for."""

    method: str
    title: str
    delta: str
    cells: tuple[Tried, ...] = ()
    problem: str = ""
    """Why it could not be tried, in words."""

    def at(self, epsilon: str) -> Tried | None:
        """Return what was found at this budget."""
        return next((cell for cell in self.cells if cell.epsilon == epsilon), None)


@dataclass(frozen=True)
class Outlook:
    """Methods and budgets on made-up logs of the same sizes; nothing of it was asked of a log."""

    sizes: Sizes
    source: Literal["declared", "release", "log"]
    """Who told the sizes; where the log itself did, nothing of this may be published."""
    map: FlowMap
    """Of one of the made-up logs."""
    rows: tuple[TriedMethod, ...]
    late: bool = False
    """Whether there was no time for all of them."""


Kind = Literal["read", "release", "try"]
"""What a job does with a log."""
Result = ReadLog | ReleasedLog | Outlook
_RESULTS: dict[Kind, type[Result]] = {"read": ReadLog, "release": ReleasedLog, "try": Outlook}


def to_text(result: Result) -> str:
    """Return the JSON of a result, which :func:`from_text` reads."""
    return json.dumps(to_plain(result), allow_nan=False)


def from_text(kind: Kind, text: str) -> Result:
    """Return the result of a job of this kind; :class:`ValueError` if the text is none."""
    return from_plain(_RESULTS[kind], json.loads(text))


@lru_cache(maxsize=64)
def understood(kind: Kind, text: str) -> Result | None:
    """The same result is asked for again and again while somebody looks at it. None: nobody understands it."""
    try:
        return from_text(kind, text)
    except ValueError:
        return None

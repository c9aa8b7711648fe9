"""What reading a log finds, as the pages show it to the owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from veilog.logs.synthetic.twins import Sizes
from veilog.measures.disclosure import RiskResult
from veilog.measures.singling_out import Exposed
from veilog.report.flow_map import FlowMap

__all__ = [
    "HOW_READ",
    "Columns",
    "Disclosure",
    "InnerTables",
    "Lengths",
    "LogMeasures",
    "LogSizes",
    "Noticed",
    "PersonFound",
    "Preview",
    "ReadLog",
    "UnitColumn",
    "VariantRow",
    "VariantsShown",
]


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

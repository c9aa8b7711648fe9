"""Results of jobs that read, preview or release a log, as classes and as JSON.

All of them are for the data owner. Nothing else writes or reads that JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np

from veilog._plain import from_plain, to_plain
from veilog.logs.eventlog import Statistics
from veilog.logs.facts import PersonColumn
from veilog.logs.findings import Finding
from veilog.logs.synthetic.twins import Sizes
from veilog.measures.singling_out.identification import ReidentificationRate
from veilog.messages import Message
from veilog.privacy.account.guarantee import Guarantee
from veilog.releasing.preview import Expected, Interval
from veilog.releasing.result import OwnerOnly
from veilog.report.comparison import AttributeShown, UseCaseShown
from veilog.report.decision import OwnerSide
from veilog.report.explorer import Explorer
from veilog.report.flow_map import FlowMap, FlowSteps
from veilog.report.release_facts import Told

HOW_READ = ("case", "activity", "timestamp", "time_format", "lifecycle", "sheet", "object_type")
"""Names in :func:`veilog.read` of the options of reading that a user may choose."""


@dataclass(frozen=True)
class InnerTables:
    """Parts of a file of which one is the log: sheets with a table, or object types."""

    what: str
    """Name of the choice in :func:`veilog.read`."""
    among: tuple[str, ...]
    chosen: str | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a table, with those of each role."""

    all: tuple[str, ...]
    """Names to choose from."""
    taken: Mapping[str, str]
    """Column of each role, as far as that is clear."""
    how: Mapping[str, str]
    """Way in which each role's column was found."""


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a log; ``more`` is the number of columns left out."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int
    times: tuple[str, ...] = ()
    """Time of each row as veilog understands it."""


@dataclass(frozen=True)
class LogMeasures:
    """Statistics and exposure of a log: exact numbers, for the data owner only."""

    statistics: Statistics
    explorer: Explorer
    singled_out: tuple[ReidentificationRate, ...]
    map: FlowMap
    durations: tuple[tuple[str, str], ...]
    case_attributes: tuple[str, ...]
    event_attributes: tuple[str, ...]
    fingerprint: str
    alone: int
    """Number of people whose trace no other person has."""
    people: int
    """Number of persons if a column identifies them, else of cases."""
    sizes: Sizes | None
    """Exact sizes for synthetic logs of the same size; None if there can be none."""
    read_as: str
    """Description of its reading, which a ledger notes with subsets."""
    without_numbers: tuple[str, ...] = ()
    """Attributes for which a range of numbers makes no sense."""
    labels: tuple[str, ...] = ()
    more_labels: int = 0
    label_events: tuple[int, ...] = ()
    """Number of events of each label in ``labels``."""
    label_cases: tuple[int, ...] = ()
    """Number of cases with each label, for all labels."""
    units: tuple[PersonColumn, ...] = ()
    """Columns that may identify the person of a case."""
    person: str = ""
    """Column by which people were counted; empty if each case is a person of its own."""
    example: str = ""
    """A case that an attacker finds with little knowledge, in words."""


@dataclass(frozen=True)
class ReadLog:
    """The result of reading a log, or a ``problem`` that leaves something to decide.

    With a problem, nothing was measured.
    """

    problem: str | None
    columns: Columns | None = None
    """Columns of a table; None if the format fixes their roles."""
    preview: FirstRows | None = None
    findings: tuple[Finding, ...] = ()
    choices: tuple[str, ...] = ()
    """Rules for which the data owner has to decide what to do."""
    measured: LogMeasures | None = None
    advice: str = ""
    """Advice on the problem."""
    inside: InnerTables | None = None
    """None if there is nothing to choose from."""


@dataclass(frozen=True)
class Beside:
    """Original and release side by side: exact numbers, outside the release."""

    before: Statistics
    verdict: str
    kept: tuple[tuple[str, str, str], ...] | None
    """Title, value and meaning of each number of utility."""
    not_compared: str
    explorer: Explorer
    map: FlowMap
    """Map of original and release in one frame."""
    steps: FlowSteps
    """Steps of the release alone, for maps of two releases."""
    durations: tuple[tuple[str, str], ...]
    no_durations: str
    chart: str | None
    empty_cases: int = 0
    """Number of released cases without an event."""
    use_cases: tuple[UseCaseShown, ...] = ()
    """Use cases for which the release was judged."""
    seeming: str = ""
    """Column that was taken for persons if none was chosen."""
    durations_of: str = ""
    """Number of cases that the release's durations cover, in words."""
    durations_before: tuple[tuple[str, str], ...] = ()
    attributes: tuple[AttributeShown, ...] = ()


@dataclass(frozen=True)
class ReleasedLog:
    """A release: its own facts, its files, and its confidential side."""

    told: Told
    """Facts of the release, with the first of its charges."""
    more_charges: int
    cases: int
    events: int
    variants: int
    activities: int
    entry: int | None
    """Its number in the ledger."""
    noise_only: bool | None = None
    """True if its answers cannot be distinguished from noise."""
    missing: tuple[str, ...] = ()
    """Outputs that could not be written or measured, in words."""
    unwritten: tuple[str, ...] = ()
    """Names of files that can be written as soon as the disk has room."""
    stopped: bool = False
    """True if they are missing because the work was stopped, not for lack of room."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Sizes of the existing files in bytes, by name."""
    owner: OwnerSide | None = None
    """Confidential facts about the log; the page looks up the ledger's other releases."""
    owner_only: OwnerOnly = field(default_factory=OwnerOnly)
    beside: Beside | None = None

    @property
    def guarantee(self) -> Guarantee:
        return self.told.guarantee

    @property
    def remarks(self) -> tuple[Message, ...]:
        """Warnings that recipients may read too; empty for a release without a guarantee."""
        return self.told.remarks if self.guarantee.proven else ()

    @property
    def empty(self) -> bool:
        return self.cases == 0

    @property
    def known(self) -> Told:
        """Facts of the release for the data owner, with the level for the log's cases."""
        return self.told if self.owner is None else self.told.among(self.owner.cases)


@dataclass(frozen=True)
class Forecast:
    """Forecast of releases at a few budgets, on synthetic logs of the same sizes.

    Confidential.
    """

    points: tuple[tuple[str, Expected], ...] = ()
    """Expectation at each budget that there was time for, the smallest first."""
    problem: str = ""
    """Reason why there is no forecast, in words."""

    def at(self, epsilon: float) -> tuple[Interval, Expected] | None:
        """Return the similarity at a budget, and the expectation at the nearest one.

        The similarity lies on the line between the budgets that were tried; None beyond them.
        """
        tried = [float(budget) for budget, _ in self.points]
        if not tried or not tried[0] <= epsilon <= tried[-1]:
            return None
        at, places = math.log(epsilon), [math.log(budget) for budget in tried]
        kept = [expected.similarity for _, expected in self.points]
        lines = zip(*((one.mean, one.low, one.high) for one in kept), strict=True)
        nearest = min(range(len(places)), key=lambda place: abs(places[place] - at))
        return Interval(*(float(np.interp(at, places, line)) for line in lines)), self.points[nearest][1]


@dataclass(frozen=True)
class ReadPrior:
    """Facts of a public file from which a release can start."""

    cases: int
    variants: int
    labels: tuple[str, ...]
    """Activities of the file, as pages show them."""


Kind = Literal["read", "release", "forecast", "prior"]
"""Kinds of jobs on a log."""
Result = ReadLog | ReleasedLog | Forecast | ReadPrior
_RESULTS: dict[Kind, type[Result]] = {"read": ReadLog, "release": ReleasedLog, "forecast": Forecast, "prior": ReadPrior}


def to_text(result: Result) -> str:
    """Return the JSON of a result, which :func:`from_text` reads."""
    return json.dumps(to_plain(result), allow_nan=False)


@lru_cache(maxsize=64)
def from_text(kind: Kind, text: str) -> Result:
    """Return the result of a job of this kind; :class:`ValueError` for another text.

    Its cache serves a user who looks at the same result again and again.
    """
    return from_plain(_RESULTS[kind], json.loads(text))

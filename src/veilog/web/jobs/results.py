"""Results of jobs: what reading, previewing and releasing a log found, in the library's own classes, as JSON and back.

All of it is for the data owner. Nothing else writes or reads that JSON.
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
    taken: Mapping[str, str]
    """The column of each role, as far as that is clear."""
    how: Mapping[str, str]
    """How that of each role was found."""


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a log; ``more`` is how many columns are left out."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int
    times: tuple[str, ...] = ()
    """The time of each row as it is understood."""


@dataclass(frozen=True)
class LogMeasures:
    """Statistics and exposure of a log: exact numbers, for its owner only."""

    statistics: Statistics
    explorer: Explorer
    singled_out: tuple[ReidentificationRate, ...]
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
    """How it was read, which a ledger notes with subsets."""
    without_numbers: tuple[str, ...] = ()
    """The attributes of which a range of numbers says nothing."""
    labels: tuple[str, ...] = ()
    more_labels: int = 0
    label_events: tuple[int, ...] = ()
    """The events of each label,"""
    label_cases: tuple[int, ...] = ()
    """and the cases that have it, of all labels."""
    units: tuple[PersonColumn, ...] = ()
    """The columns that may identify whose a case is."""
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
    preview: FirstRows | None = None
    findings: tuple[Finding, ...] = ()
    choices: tuple[str, ...] = ()
    """The rules of which the owner has to decide what to do."""
    measured: LogMeasures | None = None
    advice: str = ""
    """What to do about the problem."""
    inside: InnerTables | None = None
    """None where there is nothing to choose from."""


@dataclass(frozen=True)
class Beside:
    """Original and release side by side: exact numbers of the log, none of which is part of the release."""

    before: Statistics
    verdict: str
    kept: tuple[tuple[str, str, str], ...] | None
    """Of what was kept title, value and meaning."""
    not_compared: str
    explorer: Explorer
    map: FlowMap
    """Of original and release in one frame."""
    steps: FlowSteps
    """Of the release alone, for maps of two releases."""
    durations: tuple[tuple[str, str], ...]
    no_durations: str
    chart: str | None
    empty_cases: int = 0
    """Released cases without an event."""
    use_cases: tuple[UseCaseShown, ...] = ()
    """What the release is good for."""
    seeming: str = ""
    """The column that was taken for people where nobody said so."""
    durations_of: str = ""
    """Of how many cases the durations of the release are, in words."""
    durations_before: tuple[tuple[str, str], ...] = ()
    attributes: tuple[AttributeShown, ...] = ()


@dataclass(frozen=True)
class ReleasedLog:
    """A release: what it says about itself, its files, and what only its owner sees."""

    told: Told
    """What it says about itself, with the first of its charges."""
    more_charges: int
    cases: int
    events: int
    variants: int
    activities: int
    entry: int | None
    """Its number in the ledger."""
    noise_only: bool | None = None
    """Whether its answers cannot be distinguished from noise."""
    missing: tuple[str, ...] = ()
    """What could not be written or measured, in words."""
    unwritten: tuple[str, ...] = ()
    """The files that can be written as soon as the disk has room."""
    stopped: bool = False
    """Whether they are not written because the work was stopped, and not for want of room."""
    files: Mapping[str, int] = field(default_factory=dict)
    """The files that there are, with their sizes in bytes."""
    owner: OwnerSide | None = None
    """What its owner alone sees of the log, without what the ledger says of other releases, which its page asks for."""
    owner_only: OwnerOnly = field(default_factory=OwnerOnly)
    beside: Beside | None = None

    @property
    def guarantee(self) -> Guarantee:
        return self.told.guarantee

    @property
    def remarks(self) -> tuple[Message, ...]:
        """The remarks that others may read, too: none of a release without a guarantee."""
        return self.told.remarks if self.guarantee.proven else ()

    @property
    def empty(self) -> bool:
        return self.cases == 0

    @property
    def known(self) -> Told:
        """What it says about itself to its owner: the level is judged by the cases of the log."""
        return self.told if self.owner is None else self.told.among(self.owner.cases)


@dataclass(frozen=True)
class Forecast:
    """What releases at a few budgets are expected to be worth, by synthetic logs of the log's sizes. Confidential."""

    points: tuple[tuple[str, Expected], ...] = ()
    """What is expected at each budget that there was time for, the smallest first."""
    problem: str = ""
    """Why there is none, in words."""

    def at(self, epsilon: float) -> tuple[Interval, Expected] | None:
        """Return the similarity at a budget, on the line between those that were tried, with all that is expected at
        the nearest of them; None beyond them."""
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
    """What a public file has, from which a release can start."""

    cases: int
    variants: int
    labels: tuple[str, ...]
    """Its activities, as pages show them."""


Kind = Literal["read", "release", "forecast", "prior"]
"""What a job does with a log."""
Result = ReadLog | ReleasedLog | Forecast | ReadPrior
_RESULTS: dict[Kind, type[Result]] = {"read": ReadLog, "release": ReleasedLog, "forecast": Forecast, "prior": ReadPrior}


def to_text(result: Result) -> str:
    """Return the JSON of a result, which :func:`from_text` reads."""
    return json.dumps(to_plain(result), allow_nan=False)


@lru_cache(maxsize=64)
def from_text(kind: Kind, text: str) -> Result:
    """Return the result of a job of this kind; :class:`ValueError` if the text is none. The same one is asked for again
    and again while somebody looks at it."""
    return from_plain(_RESULTS[kind], json.loads(text))

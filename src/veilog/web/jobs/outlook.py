"""What releases of made-up logs let expect of several methods and budgets, as the pages show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from veilog.logs.synthetic.twins import Sizes
from veilog.releasing.trying.expected import Interval
from veilog.report.flow_map import FlowMap

__all__ = ["Outlook", "Tried", "TriedMethod"]


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

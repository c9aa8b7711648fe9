"""What a method is: a function of the curator and a request, and the facts about it that people choose by."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.privacy.account.figures import up
from veilog.privacy.domain import Fact

__all__ = ["Method", "Parameter", "Progress", "Request", "Score", "Unshuffled", "advised"]

Progress = Callable[[str, float | None], None]
"""Called with what is being done and how much of it is done (0 to 1, None where unknown)."""

Score = Callable[[Variants, Variants], float]
"""How well a release (second) resembles a log (first); only as-published methods that peek use one."""


LARGEST_ADVISED = 2.0
"""Protection is moderate up to about this epsilon; beyond it a release is not worth its risk."""


class Unshuffled(Protocol):
    """Released cases that are on disk, still in the order of those that they were made from."""

    def shuffled(self, rng: np.random.Generator) -> StoredLog:
        """The release: cases in random order and under fresh names."""


def _unheard(text: str) -> None:
    """Nobody listens to remarks."""


def _none_needed(values: dict[str, Any]) -> frozenset[Fact]:
    """No fact about the process need be public."""
    return frozenset()


def _always(values: dict[str, Any]) -> bool:
    """Of use whatever the parameters are."""
    return True


def advised(needed: float, advice: str = "An epsilon of about {} would do.") -> str:
    """Advice that names the epsilon that would be needed, rounded up; none is ever advised that protects little."""
    if needed > LARGEST_ADVISED:
        return (
            "The log is too small for a useful private release of this kind: collect more cases, or release counts "
            "only; a larger budget would protect nobody."
        )
    return advice.format(up(needed, 2))


@dataclass(frozen=True)
class Request:
    """What the user asked of any method. Budgets are exact; 0 where a method takes none."""

    epsilon: Fraction
    delta: Fraction
    as_published: bool
    progress: Progress
    score: Score
    remark: Callable[[str], None] = _unheard
    """Called with what the reader of the release should know; from public facts and noisy answers only."""


@dataclass(frozen=True)
class Parameter:
    """One ``-p name=value`` of a method. ``default`` None means that the method finds it from public quantities."""

    name: str
    kind: type
    default: Any
    what: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    def parse(self, value: Any) -> Any:
        """The value in its type, or a :class:`ParameterError` in the user's words. Text is read, as from -p."""
        if value is None:
            return None
        parsed: Any
        if self.kind is bool:
            parsed = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
                str(value).lower()
            )
        elif self.kind is str:
            parsed = str(value)
        else:
            try:
                parsed = None if isinstance(value, bool) else self.kind(value)
            except (TypeError, ValueError, OverflowError):
                parsed = None
            if parsed is not None and (not math.isfinite(parsed) or (self.kind is int and parsed != float(value))):
                parsed = None
        if parsed is None:
            words = {bool: "true or false", int: "a whole number", float: "a number"}.get(self.kind, "text")
            raise ParameterError(f"{self.name} must be {words}, not {value!r}.", parameter=self.name)
        if self.choices and parsed not in self.choices:
            raise ParameterError(
                f"{self.name} cannot be {value!r}.",
                parameter=self.name,
                advice=f"Possible: {', '.join(self.choices)}.",
            )
        if self.minimum is not None and parsed < self.minimum:
            raise ParameterError(f"{self.name} must be at least {self.minimum:g}, not {value}.", parameter=self.name)
        if self.maximum is not None and parsed > self.maximum:
            raise ParameterError(f"{self.name} must be at most {self.maximum:g}, not {value}.", parameter=self.name)
        return parsed


@dataclass(frozen=True)
class Method:
    """One published method (or one of ours), in both faces."""

    name: str
    paper: str
    releases: Literal["variants", "log"]
    budget: Literal["epsilon", "epsilon and delta", "epsilon, delta optional", "none"]
    guarantee: str
    """What the certified release is, in words."""
    as_published: str
    """What the as-published release derives, in words."""
    run: Callable[..., Variants | EventLog | Unshuffled]
    """``run(curator, request, **parameters)``."""
    parameters: tuple[Parameter, ...] = ()
    delta_of_use: Callable[[dict[str, Any]], bool] = _always
    """Where delta is optional: whether these parameters have a use for one."""
    needs: Callable[[dict[str, Any]], frozenset[Fact]] = _none_needed
    """The public facts about the process that it takes for granted with these parameters: declared, or the log's by the
    owner's word. Refused without, before anything is asked."""
    certified: bool = True
    """Whether there is a certified release at all; where not, --as-published must be asked for."""
    full_log: bool = False
    """Whether the method needs the events themselves, with times and attributes, and not only the variants."""
    in_pieces: bool = False
    """Whether such a method can do with a log that is kept on disk."""
    check: Callable[[EventLog, dict[str, Any]], None] | None = None
    """Refuses (by raising a ``VeilogError``) a release that does not hold what the method states; run before anything
    is written, and written independently of the method."""

    def parse(self, values: dict[str, Any]) -> dict[str, Any]:
        """All parameters with the given values read and checked, and defaults for the rest."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in known:
                possible = ", ".join(known) if known else "it has none"
                raise ParameterError(
                    f"Method {self.name!r} has no parameter {name!r}.", parameter=name, advice=f"Possible: {possible}."
                )
        return {name: p.parse(values.get(name, p.default)) for name, p in known.items()}

    def spends_delta(self, values: dict[str, Any]) -> bool:
        """Whether the release can cost delta with these parameters."""
        return self.budget == "epsilon and delta" or (
            self.budget == "epsilon, delta optional" and self.delta_of_use(values)
        )

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "paper": self.paper,
            "releases": self.releases,
            "budget": self.budget,
            "guarantee": self.guarantee,
            "as_published": self.as_published,
            "parameters": [
                {"name": p.name, "kind": p.kind.__name__, "default": p.default, "what": p.what} for p in self.parameters
            ],
        }

"""The one family of errors that users of veilog can meet.

Every error is raised at the boundary where the mistake can still be named in the user's words: the file, the line,
the parameter, what is wrong and what to do about it. Errors carry their facts as data, not only as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = [
    "BudgetError",
    "EngineError",
    "InputError",
    "MissingExtraError",
    "OutputError",
    "ParameterError",
    "SolverError",
    "UndeclaredError",
    "VeilogError",
]


class VeilogError(Exception):
    """Base of every error that veilog raises on purpose."""


class InputError(VeilogError):
    """The data that came in cannot be used: what, where (file, line, column) and what to do."""

    def __init__(
        self,
        problem: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        column: int | None = None,
        advice: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.line = line
        self.column = column
        self.advice = advice
        place = "" if self.path is None else self.path
        if line is not None:
            place += f":{line}" if place else f"line {line}"
            if column is not None:
                place += f":{column}" if self.path is not None else f", column {column}"
        text = f"{place}: {problem}" if place else problem
        super().__init__(text if advice is None else f"{text} {advice}")


class ParameterError(VeilogError):
    """A parameter is outside its range, unknown, or does not fit the others."""

    def __init__(self, problem: str, *, parameter: str | None = None, advice: str | None = None) -> None:
        self.problem = problem
        self.parameter = parameter
        self.advice = advice
        super().__init__(problem if advice is None else f"{problem} {advice}")


class UndeclaredError(ParameterError):
    """A method needs facts to be public about which nothing was said; nothing was asked of the data."""

    def __init__(self, method: str, facts: Sequence[str]) -> None:
        self.facts = tuple(facts)
        said = {
            "activities": (
                "which activities are public",
                "Declare the activities (--activities A,B,C or @FILE), or say --activities log if all labels in the "
                "log may be known; with a delta, --activities privately finds those that enough cases have.",
            ),
            "max_length": (
                "how long a trace can be",
                "Declare a bound (--max-length 50), or say --max-length log if the longest trace may be known.",
            ),
        }
        needed = " and ".join(said[fact][0] for fact in facts)
        advice = " ".join(said[fact][1] for fact in facts)
        text = f"Method {method!r} has to know {needed}. Nothing was asked of the data."
        super().__init__(text, parameter=facts[0], advice=advice)


class OutputError(VeilogError):
    """Something could not be written; nothing half written is left behind."""

    def __init__(self, problem: str, *, path: str | Path | None = None, advice: str | None = None) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.advice = advice
        text = problem if path is None else f"{path}: {problem}"
        super().__init__(text if advice is None else f"{text} {advice}")


class BudgetError(VeilogError):
    """A release is refused because of what its data set has already spent; nothing was asked of the data."""

    def __init__(self, problem: str, *, account: int | None = None, advice: str | None = None) -> None:
        self.problem = problem
        self.account = account
        self.advice = advice
        super().__init__(problem if advice is None else f"{problem} {advice}")


class EngineError(VeilogError):
    """An engine that should group the events cannot be reached, or gave up half way; nothing of it is left."""

    def __init__(self, problem: str, *, advice: str | None = None) -> None:
        self.problem = problem
        self.advice = advice
        super().__init__(problem if advice is None else f"{problem} {advice}")


class MissingExtraError(VeilogError):
    """An optional part of veilog is needed that is not installed."""

    def __init__(self, what: str, *, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs the optional part '{extra}': pip install 'veilog[{extra}]'")


class SolverError(VeilogError):
    """A value could not be proved to be the optimum, so none is given."""

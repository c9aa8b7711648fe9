"""The one family of errors that users of veilog can meet.

Every error is raised at the boundary where the mistake can still be named in the user's words: the file, the line,
the parameter, what is wrong and what to do about it. Errors carry their facts as data, not only as text.

Their texts are written in the words of the command (``--delta 1e-6``). The command prints them so
(:meth:`VeilogError.in_command`); in Python ``str`` of an error says the same in Python's (``delta=1e-6``).
"""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = [
    "BudgetError",
    "EmptyReleaseError",
    "EngineError",
    "InputError",
    "MissingExtraError",
    "OutputError",
    "ParameterError",
    "SolverError",
    "UndeclaredError",
    "VeilogError",
    "in_python",
    "meant",
    "nearest",
]

_FLAGS = {"as-published", "overwrite", "allow-no-protection", "white-box", "lossy", "composed"}
_OPTION = re.compile(
    r"veilog [a-z]+(?: [a-z]+)?(?: [A-Z]+)*(?: --[a-z-]+ [^\s.,;)]+)*"  # a whole command stays one
    r"|-p (?P<setting>\w+)=(?P<worth>\w+)"
    r"|--no-(?P<no>[a-z-]+)"
    r"|--(?P<name>[a-z][a-z-]+)"
    r"(?: (?P<value>'[^']*'|@?[A-Z][A-Z0-9]*(?:[=,.|][^\s;)]*[^\s,;).])?(?: or @FILE)?|[0-9][^\s,;)]*[^\s,;).]|[0-9]"
    r"|[\w-]+=[^\s,;)]+[^\s,;).]|[a-z]+:///?\S+|dd/mm/yyyy|mm/dd/yyyy"
    r"|(?:complete|drop|duckdb(?::FILE)?|log|privately|spark)\b))?"
)


def in_python(text: str) -> str:
    """Return a text that says options of the command with Python's words in their place.

    >>> in_python("Give --delta 1e-6, or say --activities log and --as-published.")
    "Give `delta=1e-6`, or say `activities='log'` and `as_published=True`."
    """
    return _OPTION.sub(_argument, text)


_MOST = 10_000
"""Among more names none is looked for: it would take longer than reading them."""


def _argument(found: re.Match[str]) -> str:
    if found["setting"]:
        worth = found["worth"].capitalize() if found["worth"] in ("true", "false") else _quoted(found["worth"])
        return f"`{found['setting']}{'_' * keyword.iskeyword(found['setting'])}={worth}`"
    if found["no"]:
        return f"`{found['no'].replace('-', '_')}={'False' if found['no'] == 'ledger' else None}`"
    if not found["name"]:
        return found[0]
    name, value = found["name"].replace("-", "_"), found["value"]
    if found["name"] in _FLAGS:
        return f"`{name}=True`"
    if value is None:
        return "`domain`" if name == "max_length" else f"`{name}`"
    if name == "max_length":  # a keyword of this name is a setting of evolve; the public bound is in the domain
        return f"`domain=veilog.Domain(max_length={_quoted(value)})`"
    key, equals, inside = value.partition("=")
    if name == "domain":
        ends = inside.replace("..", "|").split("|")
        return f'`domain=veilog.Domain(attributes={{"{key}": ({", ".join(map(_quoted, ends))})}})`'
    if equals:  # RULE=POLICY
        return f'`{"policies" if name == "on" else name}={{"{key}": "{inside}"}}`'
    if "," in value:
        return f"`{name}=[{', '.join(map(_quoted, value.removesuffix(' or @FILE').split(',')))}]`"
    return f"`{name}={_quoted(value)}`"


def _quoted(value: str) -> str:
    if value in ("BYTES", "BUDGET", "NUMBER"):
        return value
    try:
        float(value)
    except ValueError:
        return repr(value.strip("'"))
    return value


def meant(wrong: object, possible: Iterable[str]) -> str:
    """Return "Did you mean ...?", with a space after it, where something that exists is much like what was said.

    >>> meant("evolv", ["travas", "evolve"])
    "Did you mean 'evolve'? "
    """
    near = nearest(wrong, possible)
    return f"Did you mean {near!r}? " if near else ""


def nearest(wrong: object, possible: Iterable[str]) -> str:
    """Return what of these is much like what was said; nothing where none is."""
    said, folded = str(wrong).casefold(), {name.casefold(): name for name in reversed(list(possible))}
    near = difflib.get_close_matches(said, folded, n=1, cutoff=0.7) if len(folded) <= _MOST else []
    near += [name for name in reversed(folded) if len(said) > 2 and name.startswith(said)]  # eps
    return folded[near[0]] if near else ""


class VeilogError(Exception):
    """Base of every error that veilog raises on purpose."""

    def __str__(self) -> str:
        return in_python(self.in_command())

    def in_command(self) -> str:
        """Return what is wrong and what to do, in the words of the command."""
        return super().__str__()


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
        among: Sequence[str] = (),
    ) -> None:
        self.problem = problem
        self.path = None if path is None else str(path)
        self.among = tuple(among)
        """What there is to choose from: the sheets of a workbook, the types of objects."""
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


class QuestionError(ParameterError):
    """A question failed in the data after it was charged: a fixed text, and all that was reserved is spent."""


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


class EmptyReleaseError(OutputError):
    """Nothing survived, so there is nothing to write; what was asked of the data is spent."""


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

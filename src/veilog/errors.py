"""The one family of errors that users of veilog can meet.

Every error is raised at the boundary where the mistake can still be named in the user's words: the file, the line,
the parameter, what is wrong and what to do about it. An error carries its facts as data: a code, and the values that
its sentence has. Programs compare codes. The sentence is in the catalogue, in the words of whoever reads it: ``str`` of
an error says ``delta=1e-6`` in Python, ``--delta 1e-6`` in the command and the name of a field on a page.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from veilog._language import languages
from veilog.messages import Message, words

_MOST = 10_000
"""Among more names none is looked for: it would take longer than reading them."""


def meant(wrong: object, possible: Iterable[str]) -> Message | str:
    """Return "Did you mean ...?" where something that exists is much like what was said; else the empty text.

    >>> str(meant("evolv", ["travas", "evolve"]))
    "Did you mean 'evolve'?"
    """
    near = nearest(wrong, possible)
    return Message("did-you-mean", near=near) if near else ""


def nearest(wrong: object, possible: Iterable[str]) -> str:
    """Return what of these is much like what was said; nothing where none is."""
    said, folded = str(wrong).casefold(), {name.casefold(): name for name in reversed(list(possible))}
    near = difflib.get_close_matches(said, folded, n=1, cutoff=0.7) if len(folded) <= _MOST else []
    near += [name for name in reversed(folded) if len(said) > 2 and name.startswith(said)]  # eps
    return folded[near[0]] if near else ""


class VeilogError(Exception):
    """Base of every error that veilog raises on purpose."""

    def __init__(self, problem: str | Message, *, advice: str | Message | None = None, **values: Any) -> None:
        self.message = problem if isinstance(problem, Message) else Message(problem, **values)
        """What is wrong: a code of the catalogue, and its values."""
        self.advice_given = advice
        super().__init__(self.message.code)

    @property
    def code(self) -> str:
        """What is wrong, for programs."""
        return self.message.code

    @property
    def problem(self) -> str:
        """What is wrong, in a sentence."""
        return str(self.message)

    @property
    def advice(self) -> str | None:
        """What to do about it; None where nothing can be done."""
        given = self.advice_given
        if given is None:
            return self.message.advice or None
        return str(given) if isinstance(given, Message) else words(given, self.message.values)

    def words(self) -> str:
        """Return what is wrong and what to do, without the place."""
        return " ".join(filter(None, (self.problem, self.advice)))

    def __str__(self) -> str:
        return self.words()

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), self.__dict__)


def _revived(kind: type[VeilogError], facts: dict[str, Any]) -> VeilogError:
    """The error as it was in another process."""
    error = kind.__new__(kind)
    error.args = (facts["message"].code,)
    error.__dict__.update(facts)
    return error


class InputError(VeilogError):
    """The data that came in cannot be used: what, where (file, line, column) and what to do."""

    def __init__(
        self,
        problem: str | Message,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        column: int | None = None,
        among: Sequence[str] = (),
        **values: Any,
    ) -> None:
        self.path = None if path is None else str(path)
        self.among = tuple(among)
        """What there is to choose from: the sheets of a workbook, the types of objects."""
        self.line = line
        self.column = column
        super().__init__(problem, **values)

    def __str__(self) -> str:
        place = "" if self.path is None else self.path
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
            if self.column is not None:
                place += f":{self.column}" if self.path is not None else f", column {self.column}"
        return f"{place}: {super().__str__()}" if place else super().__str__()

    def at(self, path: str | Path | None, line: int | None = None) -> InputError:
        """Return the same error with this file, and this line, as its place."""
        return InputError(self.message, path=path, line=line, advice=self.advice_given, among=self.among)


class ParameterError(VeilogError):
    """A parameter is outside its range, unknown, or does not fit the others."""

    def __init__(self, problem: str | Message, *, parameter: str | None = None, **values: Any) -> None:
        self.parameter = parameter
        super().__init__(problem, **values)


class QuestionError(ParameterError):
    """A question failed in the data after it was charged: a fixed text, and all that was reserved is spent."""


class UndeclaredError(ParameterError):
    """A method needs facts to be public about which nothing was said; nothing was asked of the data."""

    def __init__(self, method: str, facts: Sequence[str]) -> None:
        self.facts = tuple(facts)
        both = len(self.facts) > 1
        code = "facts-undeclared" if both else f"{facts[0].replace('_', '-')}-undeclared"
        super().__init__(code, parameter=facts[0], method=method)


class OutputError(VeilogError):
    """Something could not be written; nothing half written is left behind."""

    def __init__(self, problem: str | Message, *, path: str | Path | None = None, **values: Any) -> None:
        self.path = None if path is None else str(path)
        super().__init__(problem, **values)

    def __str__(self) -> str:
        return super().__str__() if self.path is None else f"{self.path}: {super().__str__()}"


class EmptyReleaseError(OutputError):
    """Nothing survived, so there is nothing to write; what was asked of the data is spent."""


class BudgetError(VeilogError):
    """A release is refused because of what its data set has already spent; nothing was asked of the data."""

    def __init__(self, problem: str | Message, *, account: int | None = None, **values: Any) -> None:
        self.account = account
        super().__init__(problem, **values)


class EngineError(VeilogError):
    """An engine that should group the events cannot be reached, or gave up half way; nothing of it is left."""


class MissingExtraError(VeilogError):
    """An optional part of veilog is needed that is not installed."""

    def __init__(self, what: str | Message, *, extra: str) -> None:
        self.extra = extra
        super().__init__("extra-missing", what=what, extra=extra)


class SolverError(VeilogError):
    """A value could not be proved to be the optimum, so none is given."""


def check_language(language: str) -> None:
    """Before any work; :class:`ParameterError` for a language that there is no catalogue of."""
    if language not in languages():
        raise ParameterError(
            "language-without-catalogue",
            parameter="language",
            language=language,
            meant=meant(language, languages()),
            names=", ".join(languages()),
        )

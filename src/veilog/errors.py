"""The one family of errors that users of veilog can meet.

veilog raises every error where it can still name the mistake in the user's words: the file, the line, the parameter,
what is wrong and what to do about it. An error carries its facts as data: a code, and the values of its sentence.
Programs compare codes. The catalogue has the sentence in the words of each surface. ``str`` of an error has
``delta=1e-6`` in Python, ``--delta 1e-6`` in the command and the name of a field on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from veilog._language import languages
from veilog.messages import Message, words

_MOST = 10_000
"""Largest number of names to search: among more, that would take longer than reading them."""


def meant(wrong: object, possible: Iterable[str]) -> Message | str:
    """Return "Did you mean ...?" with the possible name nearest to a wrong one, or "".

    >>> str(meant("evolv", ["travas", "evolve"]))
    "Did you mean 'evolve'?"
    """
    near = nearest(wrong, possible)
    return Message("did-you-mean", near=near) if near else ""


def nearest(wrong: object, possible: Iterable[str]) -> str:
    """Return the possible name that is nearest to a wrong one; "" if none is near."""
    said, folded = str(wrong).casefold(), {name.casefold(): name for name in reversed(list(possible))}
    import difflib  # here, as most commands have no wrong name

    near = difflib.get_close_matches(said, folded, n=1, cutoff=0.7) if len(folded) <= _MOST else []
    near += [name for name in reversed(folded) if len(said) > 2 and name.startswith(said)]  # eps
    return folded[near[0]] if near else ""


class VeilogError(Exception):
    """Base of every error that veilog raises on purpose."""

    def __init__(self, problem: str | Message, *, advice: str | Message | None = None, **values: Any) -> None:
        self.message = problem if isinstance(problem, Message) else Message(problem, **values)
        """Message with the code of what is wrong, and its values."""
        self.advice_given = advice
        super().__init__(self.message.code)

    @property
    def code(self) -> str:
        """Code of what is wrong, for programs."""
        return self.message.code

    @property
    def problem(self) -> str:
        """Sentence of what is wrong."""
        return str(self.message)

    @property
    def advice(self) -> str | None:
        """Sentence of what to do about it; None if nothing can be done."""
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
        return _restore_error, (type(self), self.__dict__)


def _restore_error(kind: type[VeilogError], facts: dict[str, Any]) -> VeilogError:
    """Return the error as it was in another process."""
    error = kind.__new__(kind)
    error.args = (facts["message"].code,)
    error.__dict__.update(facts)
    return error


class InputError(VeilogError):
    """Data cannot be used: what, where (file, line, column) and what to do."""

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
        """Choices that exist: the sheets of a workbook, or the types of objects."""
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
    """A query failed on the data after it was charged: all that was reserved is spent.

    Its text is fixed.
    """


class UndeclaredError(ParameterError):
    """A method needs facts that are not declared public. It made no query."""

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
    """Nothing survived, so there is nothing to write; the queries made are spent."""


class BudgetError(VeilogError):
    """A release is refused for what its data set has already spent. It made no query."""

    def __init__(self, problem: str | Message, *, account: int | None = None, **values: Any) -> None:
        self.account = account
        super().__init__(problem, **values)


class EngineError(VeilogError):
    """An engine that should group the events failed; nothing of its work is left.

    veilog could not reach it, or it gave up half way.
    """


class MissingExtraError(VeilogError):
    """An optional part of veilog is needed that is not installed."""

    def __init__(self, what: str | Message, *, extra: str) -> None:
        self.extra = extra
        super().__init__("extra-missing", what=what, extra=extra)


class SolverError(VeilogError):
    """A value could not be proved to be the optimum, so none is given."""


def check_language(language: str) -> None:
    """Raise :class:`ParameterError`, before any work, for an unknown language."""
    if language not in languages():
        raise ParameterError(
            "language-without-catalogue",
            parameter="language",
            language=language,
            meant=meant(language, languages()),
            names=", ".join(languages()),
        )

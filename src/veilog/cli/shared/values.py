"""Values of options: read from the command line, and spelled as a shell takes them in hints."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import Parameter

from veilog.errors import ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
if TYPE_CHECKING:
    from cyclopts import Token


def _whole(kind: object, tokens: Sequence[Token]) -> int:
    """Return the number that was given; the library checks its bounds."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:  # also of more digits than any number has that is meant
        option = token.keyword or ""
        raise ParameterError(
            f"{option} takes a whole number, not {token.value[:40]!r}.".strip(),
            parameter=option.removeprefix("--").replace("-", "_"),
        ) from None


WHOLE = Parameter(converter=_whole)
"""Stands beside the type of every option that is a whole number: ``Annotated[int | None, WHOLE, ...]``."""


def quoted(path: Path) -> str:
    """Return a file as a shell takes it; ``-`` stands for standard input or output."""
    return shlex.quote(str(path))


def options(*groups: DataclassInstance) -> str:
    """Return the options that were given of these groups, a space before each: how the log is read, who groups it, and
    which ledger is charged. A hint that leaves one out would be about another log, or charged nowhere."""
    words = [word for group in groups for word in _words(group)]
    return "".join(f" {shlex.quote(word)}" for word in words)


def _words(group: DataclassInstance) -> Iterator[str]:
    """The options of a group that differ from what they are by default. Their names are those of its fields."""
    for field in fields(group):
        value = getattr(group, field.name)
        usual = None if field.default is MISSING else field.default
        if value == usual:
            continue
        option = f"--{field.name.replace('_', '-')}"
        if isinstance(value, bool):
            yield option
            continue
        for one in value if isinstance(value, tuple) else (value,):
            yield from (option, str(one))


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return what an option that takes NAME=VALUE says each time, of each name once."""
    found = [pair(text, option) for text in texts]
    names = [name for name, _ in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"{option} says {twice!r} twice.", parameter=option, advice="Leave one of them away.")
    return dict(found)


def pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ParameterError(f"{option} takes NAME=VALUE, not {text!r}.", parameter=option)
    return name.strip(), value.strip()

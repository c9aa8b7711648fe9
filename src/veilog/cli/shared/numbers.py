"""Whole numbers as options: what is none is refused, where it could be rounded to one that nobody asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyclopts import Parameter

from veilog.errors import ParameterError

if TYPE_CHECKING:
    from cyclopts import Token

__all__ = ["WHOLE"]


def _whole(kind: object, tokens: Sequence[Token]) -> int:
    """The number that was said; the least and the most are what the library takes."""
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

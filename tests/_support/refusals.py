"""Refusals in tests, by their code and values and not by their sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from veilog.errors import VeilogError
from veilog.messages import Message, for_surface


@contextmanager
def refused(kind: type[VeilogError], /, *codes: str, **values: Any) -> Iterator[Any]:
    """Expect this error from the block, with one of the codes and with these values."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code in codes
    found = caught.value.message.values
    assert {name: str(found.get(name)) for name in values} == {name: str(value) for name, value in values.items()}


def sentence(code: str, **values: Any) -> str:
    """Return the sentence of a code with all its values, as the command shows it."""
    with for_surface("command"):
        return str(Message(code, **values))

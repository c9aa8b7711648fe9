"""That something is refused, and why: by the code and its values, not by the sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from veilog.errors import VeilogError
from veilog.messages import Message, said_to


@contextmanager
def refused(kind: type[VeilogError], /, *codes: str, **values: Any) -> Iterator[Any]:
    """What is done inside raises this error with one of these codes, and with these values as they are shown."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code in codes
    found = caught.value.message.values
    assert {name: str(found.get(name)) for name in values} == {name: str(value) for name, value in values.items()}


def sentence(code: str, **values: Any) -> str:
    """Return the sentence of a code with all its values, as the command shows it."""
    with said_to("command"):
        return str(Message(code, **values))

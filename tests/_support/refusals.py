"""That something is refused, and why: by the code, not by the sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from veilog.errors import VeilogError


@contextmanager
def refused(kind: type[VeilogError], code: str) -> Iterator[Any]:
    """What is done inside raises this error with this code."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code

"""Shared by tests of the pages: a browser at the server of each module, and a log that it brought."""

from collections.abc import Iterator

import httpx
import pytest
from web_owner import brought
from web_serving import Served


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with server.browser() as found:
        yield found


@pytest.fixture
def log(server: Served, client: httpx.Client) -> str:
    """The address of a log that has been read."""
    return brought(server, client)

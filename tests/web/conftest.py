"""Fixtures for tests of the pages: a browser per module, and its log."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from web_owner import brought
from web_serving import Served

from veilog.web.jobs.records import ServerSettings
from veilog.web.pages.render import server_facts


@pytest.fixture(autouse=True, scope="session")
def of_a_server() -> Iterator[None]:
    """Make pages without a server as those of a usual one."""
    with server_facts(ServerSettings(folder=Path("data"), ledger=Path("data.ledger"), token="t")):
        yield


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with server.browser() as found:
        yield found


@pytest.fixture
def log(server: Served, client: httpx.Client) -> str:
    """Return the address of a log that has been read."""
    return brought(server, client)

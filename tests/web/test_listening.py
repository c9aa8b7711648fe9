"""The sockets that a server listens on, and the connections that come to them."""

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import httpx
import pytest
from refusals import refused
from web_serving import Served, served

from veilog.errors import ParameterError
from veilog.web.server import open_sockets

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def test_the_head_of_an_answer_does_not_wait_for_its_body() -> None:
    """The head of an answer is sent at once, without Nagle's algorithm."""

    async def accepted() -> int:
        delays: asyncio.Queue[int] = asyncio.Queue()

        def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            own = writer.get_extra_info("socket")
            delays.put_nowait(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        sock = open_sockets("127.0.0.1", 0)
        server = await asyncio.start_server(meet, sock=sock)
        async with server:
            _, writer = await asyncio.open_connection(*sock.getsockname())
            found = await asyncio.wait_for(delays.get(), 30)
            writer.close()
            return found

    assert asyncio.run(accepted()) != 0


def test_a_port_that_is_taken_is_refused_in_words() -> None:
    with open_sockets("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with refused(ParameterError, "serve-address-unusable", host="127.0.0.1", port=port):
            open_sockets("127.0.0.1", port)


# Connections that ask nothing.

FILES = 256
"""Files that the server may open, as where a system allows few."""
CLIENTS = 300


def started(tmp_path: Path, stderr: IO[bytes]) -> tuple[subprocess.Popen[str], str]:
    """Start a server with few files; return it and its address."""
    command = [sys.executable, "-m", "veilog", "serve", "--no-open", "--workers", "1", "--host", "localhost"]
    server = subprocess.Popen(
        [*command, "--folder", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES)),
    )
    assert server.stdout
    return server, server.stdout.readline().strip()


@pytest.mark.nightly
@pytest.mark.skipif(resource is None, reason="limits of open files")
def test_half_sent_requests_keep_nobody_out_and_fill_no_log(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("wb") as stderr:
        server, url = started(tmp_path, stderr)
        connections: list[socket.socket] = []
        try:
            place = urlsplit(url)
            assert place.hostname and place.port
            assert httpx.get(url.partition("?")[0], timeout=120).status_code == 403  # it has started
            for _ in range(CLIENTS):
                connections.append(socket.create_connection((place.hostname, place.port), timeout=10))
                connections[-1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            for _ in range(5):
                assert httpx.get(url.partition("?")[0], timeout=8).status_code == 403  # they are dropped after 10 s
        finally:
            for connection in connections:
                connection.close()
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=60)
    assert (tmp_path / "stderr").stat().st_size < 2000


@contextlib.contextmanager
def bounded_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> Iterator[Served]:
    monkeypatch.setattr("veilog.web.server.connections_at_most", lambda: most)
    monkeypatch.setattr("veilog.web.server._HEAD", 0.5)
    with served(tmp_path / "data") as server:
        yield server


def is_dropped(connection: socket.socket) -> bool:
    """Return True if the server ends a connection without an answer, in a while."""
    connection.settimeout(60)
    try:
        return connection.recv(100) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"whole"])
def test_a_connection_whose_request_does_not_come_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    """A connection without a complete request is dropped, also after a first one."""
    with bounded_server(tmp_path, monkeypatch, 50) as server, contextlib.ExitStack() as stack:
        place = ("127.0.0.1", server.settings.port)
        connection = stack.enter_context(socket.create_connection(place, timeout=30))
        if begun == b"whole":
            connection.sendall(b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % place[1])
            assert connection.recv(65536).startswith(b"HTTP/1.1 403")
            begun = b"GET / HT"
        connection.sendall(begun)
        assert is_dropped(connection)


@pytest.mark.nightly
def test_the_oldest_connection_that_asks_nothing_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with bounded_server(tmp_path, monkeypatch, 16) as server, contextlib.ExitStack() as stack:
        monkeypatch.setattr("veilog.web.server._HEAD", 60.0)
        connections = []
        for _ in range(40):
            connections.append(socket.create_connection(("127.0.0.1", server.settings.port), timeout=30))
            stack.enter_context(connections[-1])
            time.sleep(0.01)
        with server.stranger() as stranger:
            assert stranger.get("/").status_code == 403
        assert all(is_dropped(connection) for connection in connections[:20])
        connections[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            connections[-1].recv(1)


@pytest.mark.slow
def test_as_many_files_as_the_system_allows_may_be_opened() -> None:
    """The server raises its limit of open files to that of the system."""
    code = (
        "import resource; from veilog.web.server import connections_at_most as most;"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; hard = min(hard, 3000) if hard > 0 else 3000;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard));"
        "print(most() == max(16, hard // 3), resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["True", "True"]

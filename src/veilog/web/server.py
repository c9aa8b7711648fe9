"""Start of the server: the folder of its data, its token, and its socket."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from veilog._files import LEDGER, default_ledger, make_folder
from veilog._process import machine_memory
from veilog.errors import InputError, OutputError, ParameterError
from veilog.web.access.access import HAS_OWN_NAME
from veilog.web.app import make_app
from veilog.web.jobs.records import ServerSettings

_RECORDS = "veilog.sqlite"
_SHORTEST_TOKEN = 20
_LEAST_MEMORY = 256 << 20
"""Bytes without which no worker reads a log."""
_TRIES = 20
"""Number of free ports to try, until one is free for IPv4 and IPv6."""
_FOR_STREAMS = 3
"""Seconds for current answers when the server stops."""


def prepare_folder(folder: Path) -> Path:
    """Return the data folder, after making it if needed and checking it.

    Others must not be able to look into it, and it must be veilog's alone.
    """
    place = Path(os.path.realpath(folder))
    try:
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir(mode=0o700)
        if not place.is_dir():
            raise OutputError("server-folder-not-folder", path=place)
        others = [path for path in place.iterdir() if LEDGER not in path.name]
        if others and not (place / _RECORDS).is_file():
            raise OutputError("server-folder-in-use", path=place)
        if os.name == "posix" and place.stat().st_mode & 0o077:
            raise OutputError("server-folder-exposed", path=place, place=place)
        for part in ("incoming", "logs", "jobs"):
            (place / part).mkdir(mode=0o700, exist_ok=True)
        for left in (place / "incoming").iterdir():  # uploads that the last run did not finish
            left.unlink()
    except OSError as error:
        raise OutputError("server-folder-not-usable", path=place, reason=error.strerror or error) from error
    return place


def ledger_in(folder: Path, ledger: Path | None, *, usual: bool, seeded: bool) -> Path:
    """Return the ledger of a server.

    It is the one that is named. In the ``usual`` folder it is the user's, which the command and Python use, too. Else
    it is the folder's. Releases of a test mode enter a ledger of their own.
    """
    if ledger is not None:
        return ledger.absolute()
    if seeded:
        return folder / f"test-{LEDGER}"
    own = default_ledger() if usual else None
    return folder / LEDGER if own is None else make_folder(own)


def token_in(path: Path) -> str:
    """Return the token that a file holds; only its owner may be able to read it."""
    try:
        token = path.read_text().strip()
        others = os.name == "posix" and path.stat().st_mode & 0o077
    except (OSError, ValueError) as error:
        raise InputError("server-token-not-readable", path=path) from error
    if others:
        raise InputError("server-token-exposed", path=path, file=path)
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isalnum():
        raise InputError("server-token-too-short", path=path, shortest_token=_SHORTEST_TOKEN)
    return token


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a server at this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def open_sockets(host: str, port: int) -> socket.socket:
    """Return a socket at this address; port 0 takes a free one.

    Its protocol is named as TCP, or asyncio would leave Nagle's algorithm on. Then every page but the first of a
    connection would wait 40 ms between its head and its body.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        made = socket.create_server((host, port), family=family, backlog=256)
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=made.detach())
    except OSError as error:
        reason = error.strerror or str(error)
        raise ParameterError("serve-address-unusable", parameter="port", host=host, port=port, reason=reason) from error


def sockets_at(host: str, port: int) -> list[socket.socket]:
    """Return the sockets of a server at this address, all with one port.

    At 127.0.0.1 the pages have a name below ``localhost``, for which a browser tries IPv4 and IPv6. It would send its
    cookies to any program that listens on the same port of the other one.
    """
    if host != HAS_OWN_NAME or not _has_ipv6():
        return [open_sockets(host, port)]
    for left in reversed(range(_TRIES if port == 0 else 1)):
        first = open_sockets(host, port)
        try:
            return [first, open_sockets("::1", first.getsockname()[1])]
        except ParameterError:
            first.close()
            if not left:
                raise
    raise AssertionError


def _has_ipv6() -> bool:
    """Return True if this machine has a loopback of IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def memory_for_each(workers: int) -> int:
    """Return the bytes for one worker; all share three quarters of the memory.

    The memory is the machine's or the container's.
    """
    whole = machine_memory()
    return max(_LEAST_MEMORY, whole * 3 // 4 // workers) if whole else 4 << 30


def url_of(settings: ServerSettings, code: str | None = None) -> str:
    """Return the server's address, with a code for one browser to enter, or without."""
    host = socket.gethostname() if settings.host in ("0.0.0.0", "::") else settings.host
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{settings.port}/{f'?code={code}' if code else ''}"


def new_token() -> str:
    return secrets.token_hex(32)


def serve(settings: ServerSettings, sockets: list[socket.socket], ready: Callable[[str], None], browser: bool) -> None:
    """Serve until Ctrl-C.

    ``ready`` gets the address as soon as it can be opened, with a code that works once. With a token of a file there is
    no code: its users know the token, and standard output may be a log.
    """
    os.umask(0o077)
    app = make_app(settings)
    server = uvicorn.Server(bound_connections(app, len(sockets)))
    ready(url_of(settings, None if settings.lasting_token else app.opening(math.inf)))
    if browser:  # the socket already listens: requests are answered as soon as the server runs
        once = url_of(settings, app.opening())
        threading.Thread(target=webbrowser.open, args=(once,), daemon=True).start()
    try:
        server.run(sockets=sockets)
    except KeyboardInterrupt:
        return


def bound_connections(app: ASGIApp, sockets: int) -> uvicorn.Config:
    """Return uvicorn's settings within the files that this process may open."""
    most = connections_at_most()
    return uvicorn.Config(
        app,
        http=TimedConnection,
        limit_concurrency=most,
        backlog=max(8, min(64, most // (3 * sockets))),  # this many are accepted before any is looked at
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_FOR_STREAMS,
    )


# Connections within bounds -------------------------------------------------------------------------------------------

# Bounded connections: idle ones do not stay long, and never keep others out.


_HEAD = 10.0
"""Seconds within which a request must arrive up to its body."""
_FILES = 4096
"""Largest number of open files that this process needs."""
_FEWEST = 16


class TimedConnection(H11Protocol):
    """A connection that is dropped if its request does not come in time.

    If there are as many connections as ``limit_concurrency`` allows, a new one replaces the one that is idle for the
    longest time. If all are at work, uvicorn answers that the server is busy.
    """

    _late: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    @property
    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._watch()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            others: list[Any] = [other for other in self.connections if other is not self and not other._is_busy]  # type: ignore[union-attr]
            if others:
                min(others, key=lambda other: other._idle_since).drop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def drop(self) -> None:
        """End the connection at once."""
        self.connections.discard(self)
        self._forget()
        self.transport.abort()

    def _watch(self) -> None:
        """Drop the connection if a request's head is late; bodies have their own limit."""
        if self._is_busy:
            self._forget()
        elif self._late is None:
            self._late = self.loop.call_later(_HEAD, self.drop)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def connections_at_most() -> int:
    """Return the number of connections with room, after raising the limit of files.

    Each may need a file of its own in addition, and as many more are left for all else.
    """
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return _FILES // 3
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return max(_FEWEST, (_FILES if soft == resource.RLIM_INFINITY else min(soft, _FILES)) // 3)

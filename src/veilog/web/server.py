"""Starting the server: where its data lie, who may come in, and the socket it listens on."""

from __future__ import annotations

import ipaddress
import math
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from veilog._places import LEDGER, default_ledger, made_folder
from veilog._process import machine_memory
from veilog.errors import InputError, OutputError, ParameterError
from veilog.web.access.access import HAS_OWN_NAME
from veilog.web.access.connections import TimedConnection, connections_at_most
from veilog.web.app import make_app
from veilog.web.jobs.records import ServerSettings

_RECORDS = "veilog.sqlite"
_SHORTEST_TOKEN = 20
_LEAST_MEMORY = 256 << 20
"""Bytes without which no worker reads a log."""
_TRIES = 20
"""Free ports that are tried, until one is free for both families of addresses."""
_FOR_STREAMS = 3
"""Seconds for what is being answered when the server stops."""


def prepared(folder: Path) -> Path:
    """The data folder, made if need be. Others must not be able to look into it, and it must be ours alone."""
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
    """Return the ledger of a server: the one that is named; in the ``usual`` folder that of the user, which the command
    and Python use, too; else the one of the folder. Releases of a test mode are in no account of theirs."""
    if ledger is not None:
        return ledger.absolute()
    if seeded:
        return folder / f"test-{LEDGER}"
    own = default_ledger() if usual else None
    return folder / LEDGER if own is None else made_folder(own)


def token_in(path: Path) -> str:
    """Return the token that a file holds, which only its owner may read."""
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
    """Whether only this machine can reach a server at this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """A socket at this address; port 0 takes a free one.

    It says that it is of TCP, or asyncio would leave Nagle's algorithm on, and every page but the first of a connection
    would wait 40 ms between its head and its body.
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

    At 127.0.0.1 the pages have a name below ``localhost``, which is of both families of addresses for a browser: it
    would send its cookies to whoever listens on the same port of the other one.
    """
    if host != HAS_OWN_NAME or not _has_ipv6():
        return [listening(host, port)]
    for left in reversed(range(_TRIES if port == 0 else 1)):
        first = listening(host, port)
        try:
            return [first, listening("::1", first.getsockname()[1])]
        except ParameterError:
            first.close()
            if not left:
                raise
    raise AssertionError


def _has_ipv6() -> bool:
    """Whether this machine has a loopback of IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def memory_for_each(workers: int) -> int:
    """Return the bytes that one worker may take: together three quarters of what the machine or container has."""
    whole = machine_memory()
    return max(_LEAST_MEMORY, whole * 3 // 4 // workers) if whole else 4 << 30


def url_of(settings: ServerSettings, code: str | None = None) -> str:
    """Return the address of the server, with a code that lets a browser in once, or without."""
    host = socket.gethostname() if settings.host in ("0.0.0.0", "::") else settings.host
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{settings.port}/{f'?code={code}' if code else ''}"


def new_token() -> str:
    return secrets.token_hex(32)


def serve(settings: ServerSettings, sockets: list[socket.socket], ready: Callable[[str], None], browser: bool) -> None:
    """Serve until Ctrl-C. ``ready`` gets the address as soon as it can be opened, with a code that works once.

    With a token of a file it has none: those who may come in know the token, and standard output may be a log.
    """
    os.umask(0o077)
    app = make_app(settings)
    server = uvicorn.Server(bounded(app, len(sockets)))
    ready(url_of(settings, None if settings.lasting_token else app.opening(math.inf)))
    if browser:  # the socket listens already: what comes now is answered as soon as the server runs
        once = url_of(settings, app.opening())
        threading.Thread(target=webbrowser.open, args=(once,), daemon=True).start()
    try:
        server.run(sockets=sockets)
    except KeyboardInterrupt:
        return


def bounded(app: ASGIApp, sockets: int) -> uvicorn.Config:
    """Return how uvicorn serves an application within the files that this process may open."""
    most = connections_at_most()
    return uvicorn.Config(
        app,
        http=TimedConnection,
        limit_concurrency=most,
        backlog=max(8, min(64, most // (3 * sockets))),  # so many are accepted before any is looked at
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_FOR_STREAMS,
    )

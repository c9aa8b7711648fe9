"""Starting the server: where its data lie, who may come in, and the socket it listens on."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from veilog._places import LEDGER, default_ledger, made_folder
from veilog.errors import InputError, OutputError, ParameterError
from veilog.web.app import make_app
from veilog.web.jobs.records import Settings

__all__ = ["ledger_in", "listening", "memory_for_each", "prepared", "serve", "token_in", "url_of"]

_RECORDS = "veilog.sqlite"
_SHORTEST_TOKEN = 20
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
            raise OutputError("This is not a folder.", path=place, advice="Name another with --folder.")
        others = [path for path in place.iterdir() if LEDGER not in path.name]
        if others and not (place / _RECORDS).is_file():
            raise OutputError(
                "This folder holds other things; the server needs one of its own.",
                path=place,
                advice="Name a folder that is empty or not there yet with --folder.",
            )
        if os.name == "posix" and place.stat().st_mode & 0o077:
            raise OutputError(
                "Others on this machine may look into this folder.", path=place, advice=f"chmod 700 {place}"
            )
        for part in ("incoming", "logs", "jobs"):
            (place / part).mkdir(mode=0o700, exist_ok=True)
        for left in (place / "incoming").iterdir():  # uploads that the last run did not finish
            left.unlink()
    except OSError as error:
        raise OutputError(f"The folder cannot be used: {error.strerror or error}.", path=place) from error
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
    """The token that a file holds."""
    try:
        token = path.read_text().strip()
    except (OSError, ValueError) as error:
        raise InputError("The token cannot be read.", path=path, advice="It is one line of text.") from error
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isalnum():
        raise InputError(
            f"A token is at least {_SHORTEST_TOKEN} letters and digits in one line.",
            path=path,
            advice="python -c 'import secrets; print(secrets.token_hex(32))' makes a good one.",
        )
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
        problem = f"The server cannot listen on {host}, port {port}: {error.strerror or error}."
        raise ParameterError(problem, parameter="port", advice="Choose another with --host or --port.") from error


def memory_for_each(workers: int) -> int:
    """Bytes that one worker may take: together three quarters of what the machine has."""
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
    return max(1 << 30, whole * 3 // 4 // workers)


def url_of(settings: Settings, code: str | None = None) -> str:
    """The address that lets a browser in: by the token, or by a code in its place."""
    host = socket.gethostname() if settings.host in ("0.0.0.0", "::") else settings.host
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{settings.port}/?token={code or settings.token}"


def new_token() -> str:
    return secrets.token_hex(32)


def serve(settings: Settings, sock: socket.socket, ready: Callable[[str], None], browser: bool) -> None:
    """Serve until Ctrl-C. ``ready`` is told the address as soon as it can be opened."""
    os.umask(0o077)
    app = make_app(settings)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=_FOR_STREAMS,
    )
    server = uvicorn.Server(config)
    ready(url_of(settings))
    if browser:  # the socket listens already: what comes now is answered as soon as the server runs
        once = url_of(settings, app.opening())
        threading.Thread(target=webbrowser.open, args=(once,), daemon=True).start()
    try:
        server.run(sockets=[sock])
    except KeyboardInterrupt:
        return

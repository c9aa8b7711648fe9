"""The command that opens the local web app."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from veilog._files import data_folder
from veilog.cli.shared.options import WHOLE
from veilog.cli.shared.terminal import SafeConsole, end_at_once
from veilog.errors import MissingExtraError, ParameterError, check_language

_MIB = 1 << 20
_RANGES = {
    "port": (0, 65535),
    "workers": (1, 64),
    "max_upload": (1, 1 << 20),
    "max_kept": (1, 1 << 20),
    "max_waiting": (1, 1 << 20),
    "seed": (0, 1 << 62),
}


@Parameter(name="*")
@dataclass(frozen=True)
class ServerLimits:
    """Limits of a server: uploads, stored results, and simultaneous jobs."""

    workers: Annotated[int, WHOLE, Parameter(help="Number of jobs that run at once.")] = 2
    max_upload: Annotated[int, WHOLE, Parameter(help="Largest accepted log, in MiB.")] = 2048
    max_kept: Annotated[int, WHOLE, Parameter(help="Most stored logs and releases per browser.")] = 200
    max_waiting: Annotated[int, WHOLE, Parameter(help="Most waiting jobs per browser.")] = 20


DEFAULT_LIMITS = ServerLimits()


def serve(
    *,
    port: Annotated[int, WHOLE, Parameter(help="Port to listen on; 0 takes a free one.")] = 0,
    host: Annotated[
        str, Parameter(help="Address to listen on; other machines can reach only a public one.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        Parameter(help="File with the access token, readable by you alone; default a new token for each start."),
    ] = None,
    folder: Annotated[
        Path | None,
        Parameter(help="Folder for logs, results and the ledger; default your data folder."),
    ] = None,
    ledger: Annotated[Path | None, Parameter(help="Ledger of the releases; default the one in the folder.")] = None,
    no_open: Annotated[bool, Parameter(negative="", help="Do not open a browser.")] = False,
    most: ServerLimits = DEFAULT_LIMITS,
    language: Annotated[
        str | None, Parameter(help="Language of the pages until a user chooses another; default the browser's.")
    ] = None,
    seed: Annotated[
        int | None, WHOLE, Parameter(help="Test mode: every release is repeatable and has no guarantee.")
    ] = None,
) -> None:
    """Open veilog in a browser:
    upload a log, see who is exposed, release, compare, download."""
    server, server_settings = _load_server()
    _check_ranges(port=port, seed=seed or 0, **asdict(most))
    if language is not None:
        check_language(language)
    if token_file is None and not server.is_loopback(host):
        raise ParameterError("server-without-token", parameter="host", host=host)
    token = server.new_token() if token_file is None else server.token_in(token_file)
    place = server.prepare_folder(folder or data_folder())
    sockets = server.sockets_at(host, port)
    settings = server_settings(
        folder=place,
        ledger=server.ledger_in(place, ledger, usual=folder is None, seeded=seed is not None),
        token=token,
        lasting_token=token_file is not None,
        host=host,
        port=sockets[0].getsockname()[1],
        max_upload=most.max_upload * _MIB,
        max_kept=most.max_kept,
        max_waiting=most.max_waiting,
        workers=most.workers,
        job_memory=server.memory_for_each(most.workers),
        language=language,
        seed=seed,
    )
    ready = partial(_show, place, None if token_file is not None else token, seed is not None)
    with contextlib.ExitStack() as stack:
        for sock in sockets:
            stack.enter_context(sock)
        server.serve(settings, sockets, ready, browser=not no_open)


def _show(place: Path, token: str | None, seeded: bool, url: str) -> None:
    """Show the address of the pages, the token unless it is in a file, and the folder."""
    console, plain = SafeConsole(file=sys.stdout, highlight=False), {"soft_wrap": True, "markup": False}
    console.print(url, **plain)
    if token is not None:
        console.print(f"It works once. For another browser: open it without the code, and type {token}", **plain)
    console.print(f"Logs and results lie in {place}. Ctrl-C stops the server.", **plain)
    if seeded:
        console.print("Test mode: no release has a guarantee.", style="yellow")


def _load_server() -> tuple[Any, Any]:
    """Return the server's module and its class of settings, which need an extra."""
    try:
        with end_at_once():
            from veilog.web import server
            from veilog.web.jobs.records import ServerSettings
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "python_multipart", "anyio"):
            raise
        raise MissingExtraError("veilog serve", extra="web") from error
    return server, ServerSettings


def _check_ranges(**given: int) -> None:
    for option, value in given.items():
        name, (least, most) = option.replace("_", "-"), _RANGES[option]
        if not least <= value <= most:
            raise ParameterError("option-out-of-range", parameter=name, name=name, least=least, most=most, value=value)

"""A real server in a thread, and browsers to visit it."""

import contextlib
import html
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import uvicorn

from veilog.web.app import make_app
from veilog.web.jobs.records import ServerSettings
from veilog.web.jobs.results import to_text
from veilog.web.jobs.store import Store
from veilog.web.jobs.worker import Work
from veilog.web.server import bound_connections, prepare_folder, sockets_at
from veilog.web.work import read_log, work_on

TOKEN = "0123456789abcdefABCDEF0123456789"


@dataclass(frozen=True)
class Served:
    settings: ServerSettings
    store: Store

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    def stranger(self, **headers: str) -> httpx.Client:
        """Return a browser without access."""
        return httpx.Client(base_url=self.origin, headers={"origin": self.origin, **headers}, timeout=60, verify=False)

    @contextlib.contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        with self.stranger() as client:
            assert enter(client, self.settings.token).status_code == 303
            yield client

    def files(self) -> list[Path]:
        return [path for part in ("incoming", "logs", "jobs") for path in (self.settings.folder / part).rglob("*")]


@contextlib.contextmanager
def served(folder: Path, work: Work = work_on, **settings: Any) -> Iterator[Served]:
    """Serve on ``localhost``; with ``workers=0`` nothing queued ever runs.

    Not every system knows the name that the pages have otherwise.
    """
    place = prepare_folder(folder)
    sockets = sockets_at("127.0.0.1", 0)
    many = {"max_kept": 1 << 20, "max_waiting": 1 << 20}
    facts = {
        "token": TOKEN,
        "host": "localhost",
        "workers": 0,
        "ledger": place / "veilog.ledger",
        "job_memory": 4 << 30,
        "thorough": False,
        **many,
    } | settings
    own = ServerSettings(folder=place, port=sockets[0].getsockname()[1], **facts)
    app = make_app(own, work)
    server = uvicorn.Server(bound_connections(app, len(sockets)))
    thread = threading.Thread(target=server.run, args=(sockets,))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield Served(own, app._store)
    finally:
        server.should_exit = True
        thread.join()
        for sock in sockets:
            sock.close()


def enter(client: httpx.Client, token: str) -> httpx.Response:
    """Enter with the token, as a browser does."""
    return client.post("/enter", data={"token": token})


def once_of(page: httpx.Response) -> str:
    """Return the mark of the page's forms."""
    found = re.search(r'name="once" value="([^"]+)"', page.text)
    assert found, page.text[:2000]
    return html.unescape(found[1])


def upload(client: httpx.Client, content: bytes, name: str = "log.csv", once: str | None = None) -> httpx.Response:
    mark = once_of(client.get("/")) if once is None else once
    return client.post("/logs", data={"once": mark}, files={"file": (name, content)})


def read_at_once(server: Served, log: str) -> None:
    """Act as the worker that reads this log, for servers without workers."""
    (job,) = [job for job in server.store.queued() if log.endswith(server.store.any_job(job.id)[0].log)]
    (path,) = (server.settings.folder / log[1:]).iterdir()
    out = server.settings.folder / "jobs" / job.id
    out.mkdir()
    assert server.store.start(job.id)
    assert server.store.end(job.id, "running", "done", _read(path.name, path.read_bytes()), None)


@lru_cache
def _read(name: str, content: bytes) -> str:
    """Return the result of reading a file, cached, because most tests bring the same."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return to_text(read_log(path, {}, lambda text, fraction: None))


def raw(port: int, request: bytes) -> bytes:
    """Return the server's answer to these bytes, which must ask it to close."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(request)
        with contextlib.suppress(OSError):
            return b"".join(iter(lambda: connection.recv(65536), b""))
    return b""


SMALL = b"case,activity,time\n" + b"".join(
    b"c%d,%s,2024-01-0%d\n" % (case, activity, day + 1)
    for case in range(6)
    for day, activity in enumerate((b"come", b"see", b"go"))
)

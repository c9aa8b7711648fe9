"""A Postgres of our own: temporary folder, private socket, and no root."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

SECRET = "pass/word@&?'"
"""Password of the role that only reads; it needs quoting in a URL and in SQL."""
QUOTED = "pass%2Fword%40%26%3F'"
PATIENCE = 30.0


class Server:
    """Running server; its owner may do everything, ``reader`` only what tests grant."""

    def __init__(self, programs: Path, folder: Path, user: str | None) -> None:
        self.programs, self.folder, self.user = programs, folder, user
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, **self._as_user())
        if done.returncode:
            pytest.skip(f"Postgres cannot be had here: {done.stderr.strip() or done.stdout.strip()}")

    def start(self) -> None:
        fast = ["-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=12", "-c", "autovacuum=off"]
        here = ["-D", str(self.folder / "data"), "-k", str(self.folder), "-c", "listen_addresses="]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), *here, *fast],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._as_user(),
            )
        self.until(self._answers, "the server did not start")

    def stop(self) -> None:
        """End the server in an orderly way, and all queries with it."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)

    def again(self) -> None:
        """Start the server again after a stop, or after it ended all queries."""
        if self.process is not None and self.process.poll() is not None:
            self.start()
        self.until(self._answers, "the server did not recover")

    def url(self, user: str = "reader", password: str = QUOTED, database: str = "postgres") -> str:
        return f"postgres://{user}:{password}@/{database}?host={self.folder}"

    def owner(self, database: str = "postgres") -> Any:
        import psycopg

        return psycopg.connect(host=str(self.folder), user="owner", password="owner", dbname=database, autocommit=True)

    def does(self, *statements: str, database: str = "postgres") -> list[Any]:
        """Run statements as the owner; return the rows of the last."""
        with self.owner(database) as connection:
            rows: list[Any] = []
            for statement in statements:
                done = connection.execute(statement)
                rows = done.fetchall() if done.description else []
            return rows

    def fill(self, events: pa.Table, columns: str, name: str = "log", database: str = "postgres") -> None:
        """Make a table of these events for all to read, with rows in another order."""
        with self.owner(database) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {name} CASCADE")
            connection.execute(f"CREATE TABLE {name} ({columns})")
            connection.execute(f"GRANT SELECT ON {name} TO reader")
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in reversed(events.to_pylist()):
                    copy.write_row(tuple(row.values()))

    def until(self, found: Callable[[], Any], what: str) -> Any:
        """Wait for a result that comes soon."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = found()
            if answer:
                return answer
            time.sleep(0.02)
        raise AssertionError(what)

    def asleep(self) -> list[int]:
        """Return the processes of the server that are in the midst of a ``pg_sleep``."""
        return [pid for (pid,) in self.does("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'")]

    def _answers(self) -> bool:
        import psycopg

        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(psycopg.OperationalError):
            self.does("SELECT 1")
            return True
        return False

    def _as_user(self) -> dict[str, Any]:
        if self.user is None:
            return {}
        return {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}


@contextlib.contextmanager
def served() -> Iterator[Server]:
    """Run a server during the block, or skip the test where a part is missing."""
    pytest.importorskip("psycopg")
    programs = _programs()
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the name of a socket has a limit
    server = Server(programs, folder, user)
    try:
        if user is not None:
            shutil.chown(folder, user)
        (folder / "password").write_text("owner")
        (folder / "password").chmod(0o644)
        how = ("--auth=scram-sha-256", f"--pwfile={folder / 'password'}", "-E", "UTF8", "--locale=C", "--no-sync")
        server.run("initdb", "-D", str(folder / "data"), "-U", "owner", *how)
        server.start()
        yield server
    finally:
        if server.process is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found is None and not debian:
        pytest.skip("Postgres is not installed")
    return Path(found).parent if found else debian[-1].parent


def _unprivileged() -> str | None:
    """Return a user for the server, which refuses root; None for the current one."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    pytest.skip("Postgres refuses root, and there is nobody else")

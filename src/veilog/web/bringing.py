"""How a log comes to the server: sent by a browser, or made up as an example."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from veilog.logs import files as log_files
from veilog.logs.made_up.simulate import hospital
from veilog.web.access.forms import check_once
from veilog.web.access.uploads import Places, receive, refused, shown_name, suffix_of
from veilog.web.access.visits import Visits, leading_to
from veilog.web.jobs.problems import UPLOADING
from veilog.web.jobs.queue import Jobs
from veilog.web.jobs.records import JobRequest, ServerSettings
from veilog.web.jobs.store import Store

__all__ = ["Bringing"]

_EXAMPLE = "made-up-hospital.xes"
_PATIENTS = 500


class Bringing(Visits):
    """The forms on which a log is brought."""

    def __init__(self, settings: ServerSettings, store: Store, jobs: Jobs) -> None:
        super().__init__(settings, store, jobs)
        self._places = Places()

    def routes(self) -> list[BaseRoute]:
        """Return what is at which address."""
        return [
            Route("/logs", self.upload, methods=["POST"]),
            Route("/example", self.example, methods=["POST"]),
        ]

    async def upload(self, request: Request) -> Response:
        """Bring a log. What speaks against it is looked for before any of it is on the disk."""
        session, chunks = self.session(request), request.stream()
        target = self.settings.folder / "incoming" / secrets.token_hex(16)
        length = request.headers.get("content-length", "")
        kind = request.headers.get("content-type", "")
        known = int(length) if length.isascii() and length.isdecimal() else None

        marks: list[str] = []

        def check(fields: Mapping[str, str]) -> None:
            marks.append(check_once(self.key, session, fields.get("once", "")))
            self.jobs.check_room(session, keeps=True)

        def keep() -> str:
            return self._bring(session, came.path, came.name, came.size, came.digest(self.key))

        with self._places.one(session) as free:
            if not free:
                raise await refused(chunks, UPLOADING)
            try:
                came = await receive(chunks, kind, known, target, self.settings.max_upload, check)
                return leading_to(await run_in_threadpool(self.store.first_time, marks[0], "/logs", keep))
            finally:
                target.unlink(missing_ok=True)

    async def example(self, request: Request) -> Response:
        """Bring a made-up log, to try what the pages do."""

        def make(fields: Mapping[str, str]) -> str:
            target = self.settings.folder / "incoming" / f"{secrets.token_hex(16)}{_EXAMPLE[-4:]}"
            try:
                log_files.write(hospital(_PATIENTS, seed=1), target)
                return self._bring(self.session(request), target, _EXAMPLE, target.stat().st_size, _EXAMPLE)
            finally:
                target.unlink(missing_ok=True)

        return await self.first_time(request, make)

    def _bring(self, session: str, path: Path, name: str, size: int, content: str) -> str:
        """Take a file in as a log, and have it read."""
        self.jobs.check_room(session, keeps=True)  # before anything is there
        suffix = suffix_of(name)
        log = secrets.token_hex(16)
        folder = self.jobs.log_folder(log)
        folder.mkdir(mode=0o700)
        path.rename(folder / f"log{suffix}")
        self.store.add_log(log, session, shown_name(name), size, suffix, content)
        self.jobs.submit(session, log, "read", JobRequest())
        return f"/logs/{log}"

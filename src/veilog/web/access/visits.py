"""A visit: whose it is, which log and job it may see, and forms that do their work once. What all routes share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from veilog.web.access.forms import check_once, fields_of, new_once
from veilog.web.jobs.queue import Jobs
from veilog.web.jobs.records import JobRecord, LogRecord, ServerSettings
from veilog.web.jobs.store import Store

__all__ = ["Visits", "leading_to"]

_ID = re.compile(r"[0-9a-f]{32}")


class Visits:
    """The visits to one server."""

    def __init__(self, settings: ServerSettings, store: Store, jobs: Jobs) -> None:
        self.settings = settings
        self.store = store
        self.jobs = jobs
        self.key = store.key()

    def session(self, request: Request) -> str:
        """Return whose visit it is; 404 where nobody was let in."""
        session = request.scope["session"]
        if session is None:
            raise HTTPException(404)
        return str(session)

    def log(self, request: Request) -> LogRecord:
        """Return the log that the address names; 404 where it is not the visitor's."""
        name = request.path_params["log"]
        log = self.store.log(self.session(request), name) if _ID.fullmatch(name) else None
        if log is None:
            raise HTTPException(404)
        return self.live(log)

    def live(self, log: LogRecord) -> LogRecord:
        """Return the log with how far its reading is."""
        return log if log.reading is None else replace(log, reading=self.jobs.now(log.reading))

    def job(self, request: Request) -> JobRecord:
        """Return the job that the address names; 404 where it is not the visitor's."""
        name = request.path_params["job"]
        job = self.store.job(self.session(request), name) if _ID.fullmatch(name) else None
        if job is None:
            raise HTTPException(404)
        return self.jobs.now(job)

    def log_of(self, job: JobRecord) -> LogRecord:
        """Return the log of a job, with the columns that the job has."""
        found = self.store.any_job(job.id)
        if found is None:
            raise HTTPException(404)
        return self.live(found[1])

    def once(self, request: Request) -> str:
        """Return a mark for the forms of a page."""
        return new_once(self.key, self.session(request))

    async def first_time(
        self, request: Request, make: Callable[[Mapping[str, str]], str], forget: bool = False
    ) -> Response:
        """Do what a form asks for, if it was not done yet, and go where that leads."""
        fields = await fields_of(request)
        once = check_once(self.key, self.session(request), fields.pop("once", ""))
        target = await run_in_threadpool(self.store.first_time, once, request.url.path, lambda: make(fields))
        if forget:
            await run_in_threadpool(self.store.forget)
        return leading_to(target)

    async def in_the_end(self, request: Request, make: Callable[[Mapping[str, str]], str]) -> Response:
        """Do what a form asks for that is the same done once or twice, such as setting a limit, and go where that
        leads. It may wait for a ledger, and nobody else waits for that."""
        fields, action = await fields_of(request), request.url.path
        once = check_once(self.key, self.session(request), fields.pop("once", ""))

        def done() -> str:
            target = self.store.sent(once, action) or make(fields)
            return self.store.first_time(once, action, lambda: target)

        return leading_to(await run_in_threadpool(done))


def leading_to(place: str) -> Response:
    """Return the answer to a form that was taken: look there."""
    return RedirectResponse(place, 303)

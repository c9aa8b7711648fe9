"""A visit: whose it is, which log and job it may see, and forms that do their work once. What all routes share."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from veilog.web.jobs.problems import Problem
from veilog.web.jobs.queue import Jobs
from veilog.web.jobs.records import JobRecord, LogRecord, ServerSettings
from veilog.web.jobs.store import Store

_LARGEST = 1 << 20
_FIELDS = 5000
"""Of a log with hundreds of columns, each of which may be told."""
_OLDEST = 7 * 86400.0


async def fields_of(request: Request, largest: int = _LARGEST) -> dict[str, str]:
    """The fields of a form without files; what is sent several times under one name is joined by commas."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise Problem(400, "form-encoding-wrong")
    body = bytearray()
    async for chunk in request.stream():
        body.extend(chunk)
        if len(body) > largest:
            raise Problem(413, "form-too-large")
    try:
        pairs = parse_qsl(bytes(body).decode("ascii", "replace"), keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError as error:
        raise Problem(400, "form-fields-too-many") from error
    fields: dict[str, str] = {}
    for name, value in pairs:
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields


def new_once(key: bytes, session: str) -> str:
    """The mark of a page's forms: made here, for this session, now."""
    text = f"{secrets.token_hex(16)}.{int(time.time()):x}"
    return f"{text}.{_signed(key, session, text)}"


def check_once(key: bytes, session: str, once: str, oldest: float = _OLDEST) -> str:
    """The mark that came back with a form, if it is one of ours, and not older than so many seconds."""
    text, _, signature = once.rpartition(".")
    right = hmac.compare_digest(_signed(key, session, text).encode(), signature.encode("utf-8", "replace"))
    if not right or time.time() - int(text.partition(".")[2], 16) > oldest:
        raise Problem(400, "form-too-old")
    return once


def _signed(key: bytes, session: str, text: str) -> str:
    return hmac.new(key, f"{session} {text}".encode("utf-8", "replace"), "sha256").hexdigest()


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

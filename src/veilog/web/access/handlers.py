"""A visit: whose it is, which log and job it may see, and forms that do their work once. What all routes share."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar
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


T = TypeVar("T")
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

    def _found(self, request: Request, kind: str, find: Callable[[str, str], T | None]) -> T:
        name = request.path_params[kind]
        found = find(self.session(request), name) if _ID.fullmatch(name) else None
        if found is None:
            raise HTTPException(404)
        return found

    def log(self, request: Request) -> LogRecord:
        """Return the log that the address names; 404 where it is not the visitor's."""
        return self.live(self._found(request, "log", self.store.log))

    def job(self, request: Request) -> JobRecord:
        """Return the job that the address names; 404 where it is not the visitor's."""
        return self.jobs.now(self._found(request, "job", self.store.job))

    def live(self, log: LogRecord) -> LogRecord:
        """Return the log with how far its reading is."""
        return log if log.reading is None else replace(log, reading=self.jobs.now(log.reading))

    def log_of(self, job: JobRecord) -> LogRecord:
        """Return the log of a job, with the columns that the job has."""
        found = self.store.any_job(job.id)
        if found is None:
            raise HTTPException(404)
        return self.live(found[1])

    def once(self, request: Request) -> str:
        """Return a mark for the forms of a page."""
        return new_once(self.key, self.session(request))


Do = Callable[[Any, Request, dict[str, str]], str]
Posted = Callable[[Any, Request], Awaitable[Response]]


def answered(do: Callable[[Any, Request, dict[str, str]], Response]) -> Posted:
    """Make a route of what answers the fields of a form."""

    async def route(self: Visits, request: Request) -> Response:
        return await run_in_threadpool(do, self, request, await fields_of(request))

    return route


def form(*, repeatable: bool = False, forget: bool = False) -> Callable[[Do], Posted]:
    """Make a route of what does what a form asks for, and returns where that leads: it is done the first time only.

    What is ``repeatable`` is the same done once or twice, such as setting a limit: it may wait for a ledger, and nobody
    else waits for that. With ``forget`` what was deleted is taken out of the records, too.
    """

    def routed(do: Do) -> Posted:
        @answered
        def route(self: Visits, request: Request, fields: dict[str, str]) -> Response:
            once, action = check_once(self.key, self.session(request), fields.pop("once", "")), request.url.path
            if repeatable:
                target = self.store.sent(once, action) or do(self, request, fields)
                return leading_to(self.store.first_time(once, action, lambda: target))
            target = self.store.first_time(once, action, lambda: do(self, request, fields))
            if forget:
                self.store.forget()
            return leading_to(target)

        return route

    return routed


def leading_to(place: str) -> Response:
    """Return the answer to a form that was taken: look there."""
    return RedirectResponse(place, 303)

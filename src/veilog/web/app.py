"""What is at which address. Here requests become calls of the store and the queue; what they show is in ``pages``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route

from veilog.web.access.access import Access
from veilog.web.access.forms import check_once, fields_of, new_once
from veilog.web.access.uploads import receive, shown_name, suffix_of
from veilog.web.jobs.problems import Problem
from veilog.web.jobs.queue import Jobs
from veilog.web.jobs.records import FILES, JobRecord, LogRecord, ReleaseRequest, Settings
from veilog.web.jobs.released_log import ReleasedLog
from veilog.web.jobs.store import Store
from veilog.web.jobs.worker import Work
from veilog.web.pages import render as pages
from veilog.web.pages.assets import OWN, OwnFiles
from veilog.web.pages.error_pages import ErrorPages
from veilog.web.work import work_on
from veilog.web.work.planning import DryRun, Refused, dry_run
from veilog.web.work.request import FIELDS

__all__ = ["make_app"]

_ID = re.compile(r"[0-9a-f]{32}")
_LOOK = 0.3
"""Seconds between looks at a job whose progress is watched."""
_ALIVE = 15.0
"""Seconds after which a silent stream says that it is still there."""
_PLANS = 2
"""Dry runs at once."""
_PLAN_SECONDS = 30.0


def make_app(settings: Settings, work: Work = work_on, closing: Callable[[], bool] = lambda: False) -> Access:
    """The application. ``closing`` says whether the server is about to stop, so that streams end."""
    store = Store(settings.folder / "veilog.sqlite")
    jobs = Jobs(store, settings, work)
    site = _Site(settings, store, jobs, closing)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(jobs.start)
        await run_in_threadpool(site.warm)
        try:
            yield
        finally:
            await run_in_threadpool(jobs.stop)
            store.close()

    errors = ErrorPages(settings)
    app = Starlette(routes=site.routes(), exception_handlers=errors.handlers(), lifespan=life)
    app.router.redirect_slashes = False
    return Access(app, settings, store, errors.answer)


class _Site:
    """The pages of one server."""

    def __init__(self, settings: Settings, store: Store, jobs: Jobs, closing: Callable[[], bool]) -> None:
        self._settings = settings
        self._store = store
        self._jobs = jobs
        self._closing = closing
        self._key = store.key()
        self._plans = anyio.CapacityLimiter(_PLANS)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/", self.home),
            Route("/logs", self.upload, methods=["POST"]),
            Route("/logs/{log}", self.log),
            Route("/logs/{log}/columns", self.columns, methods=["POST"]),
            Route("/logs/{log}/exposure", self.exposure),
            Route("/logs/{log}/release", self.release),
            Route("/logs/{log}/plan", self.plan, methods=["POST"]),
            Route("/logs/{log}/jobs", self.submit, methods=["POST"]),
            Route("/logs/{log}/delete", self.delete_log, methods=["POST"]),
            Route("/jobs/{job}", self.job),
            Route("/jobs/{job}/events", self.events),
            Route("/jobs/{job}/cancel", self.cancel, methods=["POST"]),
            Route("/jobs/{job}/write", self.write_again, methods=["POST"]),
            Route("/jobs/{job}/delete", self.delete_job, methods=["POST"]),
            Route("/jobs/{job}/files/{name}", self.file),
            Mount(OWN, OwnFiles()),
        ]

    # Pages.

    def warm(self) -> None:
        """So that the first visitor of a page does not wait for its template."""
        pages.warm()

    def home(self, request: Request) -> Response:
        session = _session(request)
        logs = [self._live(log) for log in self._store.logs(session)]
        jobs = [self._jobs.now(job) for job in self._store.jobs(session) if job.kind == "release"]
        return HTMLResponse(pages.home(logs, jobs, once=self._once(request), settings=self._settings))

    def log(self, request: Request) -> Response:
        return HTMLResponse(pages.log_page(self._log(request), self._once(request), settings=self._settings))

    def exposure(self, request: Request) -> Response:
        return HTMLResponse(pages.exposure(self._log(request), settings=self._settings))

    def release(self, request: Request) -> Response:
        return self._form(request, self._log(request), _asked(request.query_params))

    def job(self, request: Request) -> Response:
        job = self._job(request)
        if job.kind == "read":
            return RedirectResponse(f"/logs/{job.log}", 303)
        found = self._store.any_job(job.id)
        if found is None:
            raise HTTPException(404)
        log = self._live(found[1])
        return HTMLResponse(pages.job_page(job, log, self._once(request), settings=self._settings))

    def file(self, request: Request) -> Response:
        job, name = self._job(request), request.path_params["name"]
        path = self._jobs.folder(job.id) / (name if name in FILES else "none")
        if job.state != "done" or name not in FILES or not path.is_file():
            raise HTTPException(404)
        headers = {"content-security-policy": "default-src 'none'; sandbox"}
        return FileResponse(path, filename=name, media_type="application/octet-stream", headers=headers)

    def events(self, request: Request) -> Response:
        job, session = self._job(request), _session(request)
        body = self._told(session, job.id) if request.method == "GET" else iter(())
        return StreamingResponse(body, media_type="text/event-stream")

    async def _told(self, session: str, job: str) -> AsyncIterator[str]:
        """How far the job is, whenever that changes, until it has ended or is gone."""
        last, spoke = "", time.monotonic()
        while not self._closing():
            record = await run_in_threadpool(self._store.job, session, job)
            now = None if record is None else await run_in_threadpool(self._jobs.now, record)
            told = json.dumps(_progress(now))
            if told != last:
                yield f"event: progress\ndata: {told}\n\n"
                last, spoke = told, time.monotonic()
            elif time.monotonic() - spoke > _ALIVE:
                yield ": still here\n\n"
                spoke = time.monotonic()
            if now is None or now.ended:
                yield f"event: done\ndata: {told}\n\n"
                return
            await asyncio.sleep(_LOOK)

    # What changes something.

    async def upload(self, request: Request) -> Response:
        target = self._settings.folder / "incoming" / secrets.token_hex(16)
        length = request.headers.get("content-length", "")
        kind = request.headers.get("content-type", "")
        known = int(length) if length.isascii() and length.isdecimal() else None
        came = await receive(request.stream(), kind, known, target, self._settings.max_upload)
        session = _session(request)

        def keep() -> str:
            suffix = suffix_of(came.name)
            log = secrets.token_hex(16)
            folder = self._jobs.log_folder(log)
            folder.mkdir(mode=0o700)
            came.path.rename(folder / f"log{suffix}")
            self._store.add_log(log, session, shown_name(came.name), came.size, suffix)
            self._jobs.submit(session, log, "read", ReleaseRequest())
            return f"/logs/{log}"

        try:
            once = check_once(self._key, session, came.fields.get("once", ""))
            return _to(await run_in_threadpool(self._store.first_time, once, "/logs", keep))
        finally:
            target.unlink(missing_ok=True)

    async def columns(self, request: Request) -> Response:
        def change(fields: Mapping[str, str]) -> str:
            log = self._log(request)
            kept = {
                name: value
                for name, value in fields.items()
                if value and (name in ("case", "activity", "timestamp", "time_format") or name.startswith("on_"))
            }
            if log.reading is not None:
                self._jobs.delete(log.reading.id)
            self._store.set_columns(log.id, kept)
            self._jobs.submit(log.session, log.id, "read", ReleaseRequest())
            return f"/logs/{log.id}"

        return await self._first_time(request, change)

    async def plan(self, request: Request) -> Response:
        log = await run_in_threadpool(self._log, request)
        values = _asked(await fields_of(request))
        plan = await self._planned(log, values)
        if request.headers.get("hx-request") == "true":
            return HTMLResponse(await run_in_threadpool(pages.plan_part, plan))
        return await run_in_threadpool(self._form, request, log, values, plan=plan)

    async def submit(self, request: Request) -> Response:
        fields = await fields_of(request)
        session = _session(request)
        once = check_once(self._key, session, fields.pop("once", ""))
        action = request.url.path
        before = await run_in_threadpool(self._store.sent, once, action)
        if before is not None:
            return _to(before)
        log = await run_in_threadpool(self._log, request)
        values = _asked(fields)
        if log.measured is None:
            raise Problem(409, "This log has not been read yet.", "Wait until it is, or correct its columns.")
        plan = await self._planned(log, values)
        problem = plan.problem if isinstance(plan, Refused) else plan.undeclared
        if isinstance(plan, Refused) or problem is not None:
            return await run_in_threadpool(self._form, request, log, values, problem=problem, status=400)
        asked = ReleaseRequest(plan.plan.to_json(), values)

        def queue() -> str:
            if self._store.log(session, log.id) is None:
                raise HTTPException(404)
            return f"/jobs/{self._jobs.submit(session, log.id, 'release', asked)}"

        return _to(await run_in_threadpool(self._store.first_time, once, action, queue))

    async def cancel(self, request: Request) -> Response:
        def cancel(fields: Mapping[str, str]) -> str:
            job = self._job(request)
            self._jobs.cancel(job.id)
            return f"/jobs/{job.id}" if job.kind == "release" else f"/logs/{job.log}"

        return await self._first_time(request, cancel)

    async def write_again(self, request: Request) -> Response:
        """A job of its own, which asks nothing: what was kept stays where it is, whatever becomes of this."""

        def queue(fields: Mapping[str, str]) -> str:
            job = self._job(request)
            if not isinstance(job.result, ReleasedLog) or not job.result.unwritten:
                raise Problem(400, "Nothing of this release is left to be written.", "Download it from its page.")
            asked = replace(job.request, write=job.id)
            return f"/jobs/{self._jobs.submit(job.session, job.log, 'release', asked)}"

        return await self._first_time(request, queue)

    async def delete_job(self, request: Request) -> Response:
        def delete(fields: Mapping[str, str]) -> str:
            job = self._job(request)
            if job.kind == "read":
                raise Problem(400, "This is the reading of a log.", "Delete the log itself.")
            self._jobs.delete(job.id)
            return "/"

        return await self._first_time(request, delete, forget=True)

    async def delete_log(self, request: Request) -> Response:
        def delete(fields: Mapping[str, str]) -> str:
            self._jobs.delete_log(self._log(request).id)
            return "/"

        return await self._first_time(request, delete, forget=True)

    async def _first_time(
        self, request: Request, make: Callable[[Mapping[str, str]], str], forget: bool = False
    ) -> Response:
        """Do what a form asks for, if it was not done yet, and go where that leads."""
        fields = await fields_of(request)
        once = check_once(self._key, _session(request), fields.pop("once", ""))
        target = await run_in_threadpool(self._store.first_time, once, request.url.path, lambda: make(fields))
        if forget:
            await run_in_threadpool(self._store.forget)
        return _to(target)

    # What they share.

    def _log(self, request: Request) -> LogRecord:
        name = request.path_params["log"]
        log = self._store.log(_session(request), name) if _ID.fullmatch(name) else None
        if log is None:
            raise HTTPException(404)
        return self._live(log)

    def _live(self, log: LogRecord) -> LogRecord:
        return log if log.reading is None else replace(log, reading=self._jobs.now(log.reading))

    def _job(self, request: Request) -> JobRecord:
        name = request.path_params["job"]
        job = self._store.job(_session(request), name) if _ID.fullmatch(name) else None
        if job is None:
            raise HTTPException(404)
        return self._jobs.now(job)

    def _once(self, request: Request) -> str:
        return new_once(self._key, _session(request))

    def _form(
        self,
        request: Request,
        log: LogRecord,
        values: dict[str, str],
        *,
        plan: DryRun | Refused | None = None,
        problem: str | None = None,
        status: int = 200,
    ) -> Response:
        once = self._once(request)
        page = pages.release_form(log, values, once, problem=problem, plan=plan, settings=self._settings)
        return HTMLResponse(page, status)

    async def _planned(self, log: LogRecord, values: dict[str, str]) -> DryRun | Refused:
        """The dry run, which asks nothing of the data."""
        try:
            with anyio.fail_after(_PLAN_SECONDS):
                return await anyio.to_thread.run_sync(
                    dry_run, log, values, self._settings, abandon_on_cancel=True, limiter=self._plans
                )
        except TimeoutError as error:
            raise Problem(
                503, "The dry run takes too long.", "Try again in a minute, or with smaller parameters."
            ) from error


def _session(request: Request) -> str:
    session = request.scope["session"]
    if session is None:
        raise HTTPException(404)
    return str(session)


def _asked(fields: Mapping[str, str]) -> dict[str, str]:
    """What of a form is about the release."""
    return {name: value for name, value in fields.items() if name in FIELDS or name.startswith("p_")}


def _progress(job: JobRecord | None) -> dict[str, Any]:
    if job is None:
        return {"text": "deleted", "fraction": None, "ahead": 0, "left": None, "state": "cancelled"}
    left = None if job.left is None else round(job.left)
    return {"text": job.text, "fraction": job.fraction, "ahead": job.ahead, "left": left, "state": job.state}


def _to(target: str) -> Response:
    return RedirectResponse(target, 303)

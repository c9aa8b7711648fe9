"""What is at which address. Here requests become calls of the store and the queue; what they show is in ``pages``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route

from veilog._language import languages
from veilog.web.access.access import Access
from veilog.web.access.downloads import named, zipped
from veilog.web.access.forms import check_once, fields_of
from veilog.web.access.languages import chosen
from veilog.web.access.visits import leading_to
from veilog.web.bringing import Bringing
from veilog.web.jobs.problems import Problem
from veilog.web.jobs.queue import Jobs
from veilog.web.jobs.read_log import HOW_READ
from veilog.web.jobs.records import FILES, JobRecord, JobRequest, LogRecord, ServerSettings
from veilog.web.jobs.released_log import ReleasedLog
from veilog.web.jobs.store import Store
from veilog.web.jobs.worker import Work
from veilog.web.owner import Owner
from veilog.web.pages import render as pages
from veilog.web.pages.assets import OWN, OwnFiles
from veilog.web.pages.error_pages import ErrorPages
from veilog.web.trying import Trying
from veilog.web.work import work_on
from veilog.web.work.accounts import price
from veilog.web.work.costs import log_sums
from veilog.web.work.planning import DryRun, Refused, dry_run, give_up
from veilog.web.work.request import fields_in, from_draft, said_at_import
from veilog.web.work.standing import standing_now

__all__ = ["make_app"]

_PLANS = 2
"""Dry runs at once."""
_PLAN_SECONDS = 30.0
_RECENT = 3600.0
"""Seconds within which the same release is asked about before it is made once more."""
_INSIDE = "inside.html"


def make_app(settings: ServerSettings, work: Work = work_on) -> Access:
    """The application."""
    store = Store(settings.folder / "veilog.sqlite")
    jobs = Jobs(store, settings, work)
    site = _Site(settings, store, jobs)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(jobs.start)
        await run_in_threadpool(site.warm)
        try:
            yield
        finally:
            give_up()
            await run_in_threadpool(jobs.stop)
            store.close()

    errors = ErrorPages(settings)
    routes = [*site.routes(), *Bringing(settings, store, jobs).routes(), *Owner(settings, store, jobs).routes()]
    app = Starlette(routes=routes, exception_handlers=errors.handlers(), lifespan=life)
    app.router.redirect_slashes = False
    return Access(app, settings, store, errors)


class _MadeBefore(Exception):
    """The very same release was asked for a short while ago, by this job."""

    def __init__(self, job: JobRecord) -> None:
        super().__init__()
        self.job = job


class _Site(Trying):
    """The pages of one server."""

    def __init__(self, settings: ServerSettings, store: Store, jobs: Jobs) -> None:
        super().__init__(settings, store, jobs)
        self._plans = anyio.CapacityLimiter(_PLANS)

    def routes(self) -> list[BaseRoute]:
        return [
            *super().routes(),
            Route("/", self.home),
            Route("/language", self.language, methods=["POST"]),
            Route("/logs/{log}", self.log_page),
            Route("/logs/{log}/columns", self.columns, methods=["POST"]),
            Route("/logs/{log}/meanings", self.meanings, methods=["POST"]),
            Route("/logs/{log}/read", self.read_again, methods=["POST"]),
            Route("/logs/{log}/exposure", self.exposure),
            Route("/logs/{log}/release", self.release),
            Route("/logs/{log}/plan", self.plan, methods=["POST"]),
            Route("/logs/{log}/jobs", self.submit, methods=["POST"]),
            Route("/logs/{log}/delete", self.delete_log, methods=["POST"]),
            Route("/jobs/{job}", self.job_page),
            Route("/jobs/{job}/now", self.now),
            Route("/jobs/{job}/cancel", self.cancel, methods=["POST"]),
            Route("/jobs/{job}/write", self.write_again, methods=["POST"]),
            Route("/jobs/{job}/delete", self.delete_job, methods=["POST"]),
            Route("/jobs/{job}/all.zip", self.all_files),
            Route("/jobs/{job}/files/{name}", self.file),
            Mount(OWN, OwnFiles()),
        ]

    # Pages.

    def warm(self) -> None:
        """So that the first visitor of a page does not wait for its template."""
        pages.warm()

    def home(self, request: Request) -> Response:
        session = self.session(request)
        logs = [self.live(log) for log in self.store.logs(session)]
        jobs = [self.jobs.now(job) for job in self.store.jobs(session) if job.kind == "release"]
        sums = log_sums(logs, self.settings)
        return HTMLResponse(pages.home(logs, jobs, once=self.once(request), settings=self.settings, sums=sums))

    def log_page(self, request: Request) -> Response:
        return HTMLResponse(pages.log_page(self.log(request), self.once(request), settings=self.settings))

    def exposure(self, request: Request) -> Response:
        return HTMLResponse(pages.exposure(self.log(request), settings=self.settings))

    def release(self, request: Request) -> Response:
        """The form: as an address says, or as a job asked, or as it was left, also in another tab, or as the columns
        were told."""
        log, asked = self.log(request), fields_in(request.query_params)
        of = self.store.job(log.session, request.query_params.get("of", ""))
        if of is not None and of.log == log.id:
            asked = fields_in(of.request.form)
        draft = from_draft(self.store.draft(log.session, log.id), request.query_params.get("to"))
        return self.form(request, log, asked or draft or said_at_import(log))

    def job_page(self, request: Request) -> Response:
        job = self.job(request)
        if job.kind != "release":
            return RedirectResponse(f"/logs/{job.log}{'' if job.kind == 'read' else '/release'}", 303)
        log = self.log_of(job)
        cost = price(log, job.entry, self.settings) if job.ended and job.state != "done" else None
        now = standing_now(job.result, log, self.settings) if isinstance(job.result, ReleasedLog) else None
        page = pages.job_page(job, log, self.once(request), settings=self.settings, price=cost, now=now)
        return HTMLResponse(page)

    def now(self, request: Request) -> Response:
        """How far a job is, to be put into its page; a short connection, however many pages are open."""
        return HTMLResponse(pages.doing_part(self.job(request)))

    def file(self, request: Request) -> Response:
        job, name = self.job(request), request.path_params["name"]
        path = self.jobs.folder(job.id) / (name if name in FILES else "none")
        if job.result is None or name not in FILES or not path.is_file():
            raise HTTPException(404)
        shown = named(job.created, job.request.form.get("epsilon"), name)
        return FileResponse(path, filename=shown, media_type="application/octet-stream", headers=_SEALED)

    def all_files(self, request: Request) -> Response:
        """Everything that goes with a release, in one file."""
        job, folder = self.job(request), self.jobs.folder(self.job(request).id)
        about = (job.created, job.request.form.get("epsilon"))
        found = {named(*about, name): folder / name for name in FILES if name != _INSIDE}
        found = {name: path for name, path in found.items() if path.is_file()}
        if not isinstance(job.result, ReleasedLog) or not found:
            raise HTTPException(404)
        headers = {**_SEALED, "content-disposition": f'attachment; filename="{named(*about, "release.zip")}"'}
        body = zipped(found) if request.method == "GET" else iter(())
        return StreamingResponse(body, media_type="application/octet-stream", headers=headers)

    # What changes something.

    async def language(self, request: Request) -> Response:
        """Speak another language from now on. It needs no mark: doing it twice is doing it once."""
        language = (await fields_of(request)).get("language", "")
        if language not in languages():
            raise Problem(400, "There is no such language.", "Choose one from the list.")
        return chosen(language, request.headers)

    async def columns(self, request: Request) -> Response:
        def change(fields: Mapping[str, str]) -> str:
            log = self.log(request)
            told = {name: value for name, value in log.columns.items() if not _of_reading(name)}
            kept = {name: value for name, value in fields.items() if value and _of_reading(name)}
            inside = {name: fields[name] for name in ("sheet", "object_type") if fields.get(name)}
            if inside != {name: value for name, value in log.columns.items() if name in ("sheet", "object_type")}:
                return self._read(log, inside)  # another table: what was said of the columns was said of another one's
            return self._read(log, told | kept)

        return await self.first_time(request, change)

    async def read_again(self, request: Request) -> Response:
        def again(fields: Mapping[str, str]) -> str:
            log = self.log(request)
            return self._read(log, log.columns)

        return await self.first_time(request, again)

    def _read(self, log: LogRecord, columns: Mapping[str, str]) -> str:
        self.jobs.check_room(log.session, keeps=False)  # before the reading of before is gone
        if log.reading is not None:
            self.jobs.delete(log.reading.id)
        self.store.set_columns(log.id, columns)
        self.jobs.submit(log.session, log.id, "read", JobRequest())
        return f"/logs/{log.id}"

    async def meanings(self, request: Request) -> Response:
        """Whose a case is, and what the other columns are. Who could be found is counted again for another person."""

        def keep(fields: Mapping[str, str]) -> str:
            log = self.log(request)
            names = ("person", "max_cases")
            told = {name: value for name, value in fields.items() if name in names or name.startswith("is_")}
            if not told.get("person"):
                told.pop("max_cases", None)
            columns = _reading(log)
            columns |= {name: value for name, value in told.items() if value or name == "person"}  # "" says nobody
            self.store.set_columns(log.id, columns)
            draft = self.store.draft(log.session, log.id)
            if draft:
                anew = ("unit", "max_cases", "unnamed", "attributes")
                plain = {name: value for name, value in draft.items() if name not in anew}
                self.store.keep_draft(log.session, log.id, plain | said_at_import(replace(log, columns=columns)))
            if log.measured is not None and log.measured.person != columns.get("person", ""):
                self._read(log, columns)
            return f"/logs/{log.id}/exposure"

        return await self.first_time(request, keep)

    async def plan(self, request: Request) -> Response:
        log = await run_in_threadpool(self.log, request)
        values = await self.left(log, await fields_of(request))
        plan = await self._planned(log, values)
        if request.headers.get("hx-request") == "true":
            return HTMLResponse(await run_in_threadpool(pages.plan_part, plan, log))
        return await run_in_threadpool(self.form, request, log, values, plan=plan)

    async def submit(self, request: Request) -> Response:
        fields = await fields_of(request)
        session = self.session(request)
        once = check_once(self.key, session, fields.pop("once", ""))
        action = request.url.path
        before = await run_in_threadpool(self.store.sent, once, action)
        if before is not None:
            return leading_to(before)
        log = await run_in_threadpool(self.log, request)
        values = await self.left(log, fields)
        if log.measured is None:
            raise Problem(409, "This log has not been read yet.", "Wait until it is, or correct its columns.")
        plan = await self._planned(log, values)
        problem = plan.problem if isinstance(plan, Refused) else plan.undeclared or plan.account.refused
        if isinstance(plan, Refused) or problem is not None:
            return await run_in_threadpool(self.form, request, log, values, problem=problem, plan=plan, status=400)
        sure = {name: "yes" for name in ("again", "lower") if fields.get(name)}
        if plan.account.falls is not None and "lower" not in sure:
            return await run_in_threadpool(
                self.form, request, log, values, plan=plan, sure=sure, falls=True, status=409
            )
        asked = JobRequest(plan.plan.to_json(), values)

        def queue() -> str:
            if self.store.log(session, log.id) is None:
                raise HTTPException(404)
            same = None if "again" in sure else self._made_before(log, asked)
            if same is not None:  # looked for here, where nobody else can queue it meanwhile from another tab
                raise _MadeBefore(same)
            return f"/jobs/{self.jobs.submit(session, log.id, 'release', asked)}"

        try:
            return leading_to(await run_in_threadpool(self.store.first_time, once, action, queue))
        except _MadeBefore as error:
            return await run_in_threadpool(
                self.form, request, log, values, plan=plan, same=error.job, sure=sure, status=409
            )

    async def cancel(self, request: Request) -> Response:
        def cancel(fields: Mapping[str, str]) -> str:
            job = self.job(request)
            self.jobs.cancel(job.id)
            of_log = f"/logs/{job.log}{'/release#try' if job.kind == 'try' else ''}"
            return f"/jobs/{job.id}" if job.kind == "release" else of_log

        return await self.first_time(request, cancel)

    async def write_again(self, request: Request) -> Response:
        """A job of its own, which asks nothing: what was kept stays where it is, whatever becomes of this."""

        def queue(fields: Mapping[str, str]) -> str:
            job = self.job(request)
            if not isinstance(job.result, ReleasedLog) or not job.result.unwritten or not job.ended:
                raise Problem(400, "Nothing of this release is left to be written.", "Download it from its page.")
            asked = replace(job.request, write=job.id)
            return f"/jobs/{self.jobs.submit(job.session, job.log, 'release', asked)}"

        return await self.first_time(request, queue)

    async def delete_job(self, request: Request) -> Response:
        def delete(fields: Mapping[str, str]) -> str:
            job = self.job(request)
            if job.kind == "read":
                raise Problem(400, "This is the reading of a log.", "Delete the log itself.")
            self.jobs.delete(job.id)
            return "/"

        return await self.first_time(request, delete, forget=True)

    async def delete_log(self, request: Request) -> Response:
        def delete(fields: Mapping[str, str]) -> str:
            self.jobs.delete_log(self.log(request).id)
            return "/"

        return await self.first_time(request, delete, forget=True)

    # What they share.

    def _made_before(self, log: LogRecord, asked: JobRequest) -> JobRecord | None:
        """The same release of this log, read as it is now, if it was asked for a short while ago and did not fail."""
        going = ("queued", "running", "done")
        for job in self.store.releases(log.id):
            recent = time.time() - job.created < _RECENT and job.state in going and job.request.write is None
            if recent and job.request.plan == asked.plan and _reading(self.log_of(job)) == _reading(log):
                return self.jobs.now(job)
        return None

    async def _planned(self, log: LogRecord, values: dict[str, str]) -> DryRun | Refused:
        """The dry run, which asks nothing of the data."""
        try:
            with anyio.fail_after(_PLAN_SECONDS):
                return await anyio.to_thread.run_sync(
                    dry_run, log, values, self.settings, abandon_on_cancel=True, limiter=self._plans
                )
        except TimeoutError as error:
            raise Problem(
                503, "The dry run takes too long.", "Try again in a minute, or with smaller parameters."
            ) from error


_SEALED = {"content-security-policy": "default-src 'none'; sandbox"}
"""What a download may do if somebody opens it here: nothing."""


def _reading(log: LogRecord) -> dict[str, str]:
    """How a log is read, as far as that was said."""
    return {name: value for name, value in log.columns.items() if value and _of_reading(name)}


def _of_reading(name: str) -> bool:
    """Whether what a form says there is about how a log is read."""
    return name in HOW_READ or name.startswith("on_")

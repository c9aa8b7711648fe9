"""Addresses of the server: requests become calls of the store and the queue.

The folder ``pages`` has the pages that answer them.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route

from veilog._language import gettext, languages
from veilog.errors import VeilogError
from veilog.logs import files as log_files
from veilog.logs.input.formats import known_suffixes
from veilog.logs.synthetic.hospital import hospital
from veilog.web.access.access import Access, Visits, answer_in_thread, check_once, chosen, form, leading_to
from veilog.web.access.transfers import (
    Places,
    Upload,
    download_name,
    drain,
    receive,
    shorten_name,
    suffix_of,
    zip_files,
)
from veilog.web.jobs.queue import Jobs
from veilog.web.jobs.records import FILES, UPLOADING, JobRecord, JobRequest, LogRecord, Problem, ServerSettings
from veilog.web.jobs.results import ReleasedLog
from veilog.web.jobs.store import Store
from veilog.web.jobs.worker import Work
from veilog.web.owner import LONGEST_NOTE, Owner
from veilog.web.pages import render as pages
from veilog.web.pages.assets import OWN, OwnFiles
from veilog.web.pages.error_pages import HANDLERS
from veilog.web.pages.outlook import Outlook
from veilog.web.work import work_on
from veilog.web.work.accounts import accounts_of, entry_of, ledger_status
from veilog.web.work.preview import FormPreview, Refused, forecast_request, give_up, preview_form
from veilog.web.work.release_job import sign, signature_in
from veilog.web.work.request import (
    ENDINGS,
    FIELD,
    KEPT,
    as_draft,
    columns_said,
    fields_in,
    from_draft,
    imported_settings,
    is_reading_option,
    plan_from,
)

_EXAMPLE = "made-up-hospital.xes"
_PATIENTS = 500


class LogUploads(Visits):
    """The forms that bring a log."""

    def __init__(self, settings: ServerSettings, store: Store, jobs: Jobs) -> None:
        super().__init__(settings, store, jobs)
        self._places = Places()

    def routes(self) -> list[BaseRoute]:
        """Return the routes of these pages."""
        return [
            Route("/logs", self.upload, methods=["POST"]),
            Route("/example", self.example, methods=["POST"]),
            Route("/logs/{log}/prior", self.prior, methods=["POST"]),
        ]

    async def upload(self, request: Request) -> Response:
        """Bring a log."""
        session = self.session(request)

        def keep(came: Upload) -> str:
            return self._store_file(session, came.path, came.name, came.size, came.digest(self.key))

        return await self._receive_file(request, keep, keeps=True)

    async def prior(self, request: Request) -> Response:
        """Bring a public file, from which a release of a log can start.

        It is read at once, which makes no query.
        """
        log = await run_in_threadpool(self.log, request)

        def keep(came: Upload) -> str:
            file = came.path, f"prior{suffix_of(came.name, ENDINGS)}"
            for old in self.store.jobs_of(log.id, "prior")[KEPT - 1 :]:
                self.jobs.delete(old.id)
            asked = JobRequest(form={"name": shorten_name(came.name)})
            job = self.jobs.submit(log.session, log.id, "prior", asked, file)
            draft = self.store.draft(log.session, log.id) or imported_settings(log)
            self.store.keep_draft(log.session, log.id, {**draft, FIELD: job})
            return f"/logs/{log.id}/release#prior"

        return await self._receive_file(request, keep, keeps=False)

    async def _receive_file(self, request: Request, keep: Callable[[Upload], str], *, keeps: bool) -> Response:
        """Receive a file after every check that does not need it."""
        session = self.session(request)
        target = self.settings.folder / "incoming" / secrets.token_hex(16)
        marks: list[str] = []

        def check(fields: Mapping[str, str]) -> None:
            marks.append(check_once(self.key, session, fields.get("once", "")))
            self.jobs.check_room(session, keeps=keeps)

        with self._places.one(session) as free:
            if not free:
                await drain(request.stream())
                raise UPLOADING
            try:
                came = await receive(request, target, self.settings.max_upload, check)
                first = self.store.first_time
                return leading_to(await run_in_threadpool(first, marks[0], request.url.path, lambda: keep(came)))
            finally:
                target.unlink(missing_ok=True)

    @form()
    def example(self, request: Request, fields: dict[str, str]) -> str:
        """Bring a synthetic log, to try the pages."""
        target = self.settings.folder / "incoming" / f"{secrets.token_hex(16)}{_EXAMPLE[-4:]}"
        try:
            log_files.write(hospital(_PATIENTS, seed=1), target)
            return self._store_file(self.session(request), target, _EXAMPLE, target.stat().st_size, _EXAMPLE)
        finally:
            target.unlink(missing_ok=True)

    def _store_file(self, session: str, path: Path, name: str, size: int, content: str) -> str:
        """Store a file as a log, and queue its reading."""
        self.jobs.check_room(session, keeps=True)  # before anything is there
        suffix = suffix_of(name, known_suffixes())
        log = secrets.token_hex(16)
        folder = self.jobs.log_folder(log)
        folder.mkdir(mode=0o700)
        path.rename(folder / f"log{suffix}")
        self.store.add_log(log, session, shorten_name(name), size, suffix, content)
        self.jobs.submit(session, log, "read", JobRequest())
        return f"/logs/{log}"


_KEPT = 6
"""Number of forecasts of a log that are kept."""


class ReleaseForm(Visits):
    """The pages for requesting a release: settings, expert options, and the check."""

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/logs/{log}/release", self.release),
            Route("/logs/{log}/expert", self.release),
            Route("/logs/{log}/check", self.check),
            Route("/logs/{log}/plan", self.plan, methods=["POST"]),
            Route("/logs/{log}/expert", self.expert, methods=["POST"]),
            Route("/logs/{log}/check", self.checked, methods=["POST"]),
            Route("/logs/{log}/jobs", self.submit, methods=["POST"]),
        ]

    def release(self, request: Request) -> Response:
        """Return the form of the settings.

        They come from the address or the job that it names. Else they are those left before, also in another tab, or
        follow from the columns.
        """
        log = self.log(request)
        return self._form(request, log, self._values(request, log))

    def _values(self, request: Request, log: LogRecord) -> dict[str, str]:
        asked = fields_in(request.query_params)
        of = self.store.job(log.session, request.query_params.get("of", ""))
        if of is not None and of.log == log.id:
            asked = fields_in(of.request.form)
        found = asked or from_draft(self.store.draft(log.session, log.id)) or imported_settings(log)
        return {"method": pages.DEFAULT, "epsilon": "1", **found}

    def check(self, request: Request) -> Response:
        """Return all answers on one page, with the queries and epsilon of the release.

        Its button makes the release.
        """
        log = self.log(request)
        values = self._values(request, log)
        return self._check(request, log, values, self._preview(log, values))

    def _form(
        self,
        request: Request,
        log: LogRecord,
        values: Mapping[str, str],
        plan: Refused | None = None,
        status: int = 200,
    ) -> Response:
        """Return the settings, or the expert options, with the error in them."""
        expert = request.url.path.endswith("/expert")
        outlook = None if log.measured is None or expert else self._outlook(log, values)
        page = pages.release_form(
            log,
            values,
            self.once(request),
            outlook=outlook,
            refused=plan,
            expert=expert,
            prior=self._prior(log, values),
        )
        return HTMLResponse(page, status)

    def _check(
        self,
        request: Request,
        log: LogRecord,
        values: Mapping[str, str],
        plan: FormPreview | Refused,
        status: int = 200,
        **asked: Any,
    ) -> Response:
        """Return the page before a release, or the settings if they are contradictory."""
        lacking = plan if isinstance(plan, Refused) else plan.lacking
        if log.measured is None or lacking is not None:
            return self._form(request, log, values, lacking, 200 if log.measured is None else 400)
        outlook = self._outlook(log, values, plan)
        page = pages.check(log, values, self.once(request), outlook=outlook, **asked)
        return HTMLResponse(page, status)

    def _outlook(self, log: LogRecord, values: Mapping[str, str], plan: FormPreview | Refused | None = None) -> Outlook:
        """Return the outlook of a release, with its own forecast or the newest one."""
        plan = plan or self._preview(log, values, dry_run=False)
        asked = None
        with contextlib.suppress(VeilogError):
            asked = forecast_request(values, log)
        made = self.store.jobs_of(log.id, "forecast")
        same = next((job for job in made if job.request == asked), None)
        job = same or next(iter(made), None)
        return Outlook(plan, None if job is None else self.jobs.now(job), same is not None)

    def _prior(self, log: LogRecord, values: Mapping[str, str]) -> JobRecord | None:
        """Return the public file that a form names, if it was brought for this log."""
        job = self.store.job(log.session, values.get(FIELD, ""))
        return self.jobs.now(job) if job is not None and (job.log, job.kind) == (log.id, "prior") else None

    def _preview(self, log: LogRecord, values: Mapping[str, str], *, dry_run: bool = True) -> FormPreview | Refused:
        return preview_form(log, values, self.settings, dry_run=dry_run, prior=self._prior(log, values))

    def _remaining_fields(self, log: LogRecord, fields: Mapping[str, str]) -> dict[str, str]:
        """Return the values of a form, and keep them for the next visit to it."""
        values = fields_in(fields)
        self.store.keep_draft(log.session, log.id, as_draft(values, self.store.draft(log.session, log.id)))
        return values

    @answer_in_thread
    def plan(self, request: Request, fields: dict[str, str]) -> Response:
        """Keep the values of the form and start their forecast, which spends nothing."""
        log = self.log(request)
        values = self._remaining_fields(log, fields)
        self._forecast(log, values)
        if request.headers.get("hx-request") != "true":
            return leading_to(f"/logs/{log.id}/release")
        return HTMLResponse(pages.outlook_part(self._outlook(log, values), log))

    def _forecast(self, log: LogRecord, values: Mapping[str, str]) -> None:
        with contextlib.suppress(VeilogError):  # settings with an error yet, or too many jobs
            asked, made = forecast_request(values, log), self.store.jobs_of(log.id, "forecast")
            if asked is None or any(job.request == asked for job in made):
                return
            for place, job in enumerate(made):
                if not job.ended or place >= _KEPT - 1:
                    self.jobs.delete(job.id)
            self.jobs.submit(log.session, log.id, "forecast", asked)

    @answer_in_thread
    def expert(self, request: Request, fields: dict[str, str]) -> Response:
        """Keep the expert options; another method keeps all but its own parameters."""
        log, chosen = self.log(request), fields.get("method", "")
        before = fields.get("method_before") or chosen
        values = self._remaining_fields(log, {**fields, "method": before})
        if chosen != before:
            self.store.keep_draft(log.session, log.id, {**self.store.draft(log.session, log.id), "method": chosen})
            return leading_to(f"/logs/{log.id}/expert")
        plan = self._preview(log, values, dry_run=False)
        if isinstance(plan, Refused) and pages.is_expert(plan.parameter):
            return self._form(request, log, values, plan, 400)
        return leading_to(f"/logs/{log.id}/release")

    @answer_in_thread
    def checked(self, request: Request, fields: dict[str, str]) -> Response:
        """Keep the settings and lead to the check, unless they have an error."""
        log = self.log(request)
        values = self._remaining_fields(log, fields)
        self._forecast(log, values)
        plan = self._preview(log, values)
        if isinstance(plan, Refused) or plan.lacking is not None:
            return self._check(request, log, values, plan)
        return leading_to(f"/logs/{log.id}/check")

    @answer_in_thread
    def submit(self, request: Request, fields: dict[str, str]) -> Response:
        session, action = self.session(request), request.url.path
        once = check_once(self.key, session, fields.pop("once", ""))
        before = self.store.sent(once, action)
        if before is not None:
            return leading_to(before)
        log = self.log(request)
        values = self._remaining_fields(log, fields)
        if log.measured is None:
            raise Problem(409, "log-still-unread")
        plan = self._preview(log, values)
        sure = {name: "yes" for name in ("again", "lower") if fields.get(name)}
        if isinstance(plan, Refused) or plan.lacking is not None or plan.account.refused:
            return self._check(request, log, values, plan, 400)
        if plan.account.falls is not None and "lower" not in sure:
            return self._check(request, log, values, plan, 409, sure=sure, falls=True)
        asked = plan_from(plan.plan.to_json(), plan.prior, self.settings.folder / "jobs")
        made, same = JobRequest(asked, values), list[JobRecord]()

        def queue() -> str:
            if self.store.log(session, log.id) is None:
                raise HTTPException(404)
            # checked here, where no other tab can queue it meanwhile
            same.extend(() if "again" in sure else self._recent_jobs(log, made))
            if same:
                raise _MadeBefore
            return f"/jobs/{self.jobs.submit(session, log.id, 'release', made)}"

        try:
            return leading_to(self.store.first_time(once, action, queue))
        except _MadeBefore:
            return self._check(request, log, values, plan, 409, sure=sure, same=same[0])

    def _recent_jobs(self, log: LogRecord, asked: JobRequest) -> list[JobRecord]:
        """Return recent, unfailed jobs with the same release of this log, read as now."""
        return [
            self.jobs.now(job)
            for job in self.store.jobs_of(log.id, "release")
            if time.time() - job.created < _RECENT
            and job.state in ("queued", "running", "done")
            and (job.request.write, job.request.plan) == (None, asked.plan)
            and _reading_columns(self.log_of(job).columns) == _reading_columns(log.columns)
        ]


_RECENT = 3600.0
"""Seconds within which the pages ask before they make the same release again."""
_INSIDE = "internal-report.html"


def make_app(settings: ServerSettings, work: Work = work_on) -> Access:
    """Return the application."""
    store = Store(settings.folder / "veilog.sqlite")
    jobs = Jobs(store, settings, work)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(jobs.start)
        await run_in_threadpool(pages.warm)
        try:
            yield
        finally:
            give_up()
            await run_in_threadpool(jobs.stop)
            store.close()

    routes = [route for part in (_Site, LogUploads, Owner) for route in part(settings, store, jobs).routes()]
    app = Starlette(routes=routes, exception_handlers=dict(HANDLERS), lifespan=life)
    app.router.redirect_slashes = False
    return Access(app, settings, store)


class _MadeBefore(Exception):
    """The very same release was requested a short while ago."""


class _Site(ReleaseForm):
    """The pages of one server."""

    def routes(self) -> list[BaseRoute]:
        return [
            *super().routes(),
            Route("/", self.home),
            Route("/language", self.language, methods=["POST"]),
            Route("/logs/{log}", self.log_page),
            Route("/logs/{log}/columns", self.columns, methods=["POST"]),
            Route("/logs/{log}/read", self.read_again, methods=["POST"]),
            Route("/logs/{log}/exposure", self.exposure),
            Route("/logs/{log}/explore", self.explore),
            Route("/logs/{log}/delete", self.delete_log, methods=["POST"]),
            Route("/jobs/{job}", self.job_page),
            Route("/jobs/{job}/now", self.now),
            Route("/jobs/{job}/explore", self.explore_release),
            Route("/jobs/{job}/sign", self.sign, methods=["POST"]),
            Route("/jobs/{job}/cancel", self.cancel, methods=["POST"]),
            Route("/jobs/{job}/write", self.write_again, methods=["POST"]),
            Route("/jobs/{job}/delete", self.delete_job, methods=["POST"]),
            Route("/jobs/{job}/all.zip", self.all_files),
            Route("/jobs/{job}/files/{name}", self.file),
            Mount(OWN, OwnFiles()),
        ]

    # Pages.

    def home(self, request: Request) -> Response:
        session = self.session(request)
        logs = [self.live(log) for log in self.store.logs(session)]
        jobs = [self.jobs.now(job) for job in self.store.jobs(session) if job.kind == "release"]
        drafts = {log.id: from_draft(self.store.draft(session, log.id)) for log in logs}
        accounts, notes = accounts_of(logs, self.settings), self.store.notes(session)
        once = self.once(request)
        return HTMLResponse(pages.home(logs, jobs, once, accounts, notes=notes, drafts=drafts))

    def log_page(self, request: Request) -> Response:
        return HTMLResponse(pages.log_page(self.log(request), self.once(request)))

    def exposure(self, request: Request) -> Response:
        return HTMLResponse(pages.exposure(self.log(request)))

    def explore(self, request: Request) -> Response:
        return HTMLResponse(pages.explore(self.log(request)))

    def explore_release(self, request: Request) -> Response:
        job = self.job(request)
        if not isinstance(job.result, ReleasedLog) or job.result.beside is None:
            raise HTTPException(404)
        return HTMLResponse(pages.explore(self.log_of(job), job))

    def job_page(self, request: Request) -> Response:
        job = self.job(request)
        if job.kind != "release":
            return RedirectResponse(f"/logs/{job.log}{'' if job.kind == 'read' else '/release'}", 303)
        log = self.log_of(job)
        failed = job.ended and job.state != "done" and job.entry is not None
        cost = entry_of(log, job.entry, self.settings) if failed and job.entry else None
        made = job.result if isinstance(job.result, ReleasedLog) else None
        facts: dict[str, Any] = {"price": cost}
        if made is not None:
            facts["now"] = ledger_status(made, log, self.settings)
            facts["signed"] = signature_in(self.jobs.folder(job.id))
        page = pages.job_page(job, log, self.once(request), **facts)
        return HTMLResponse(page)

    def now(self, request: Request) -> Response:
        """Return the progress of a job for its page, by a short connection."""
        return HTMLResponse(pages.doing_part(self.job(request)))

    def file(self, request: Request) -> Response:
        job, name = self.job(request), request.path_params["name"]
        path = self.jobs.folder(job.id) / (name if name in FILES else "none")
        if job.result is None or name not in FILES or not path.is_file():
            raise HTTPException(404)
        shown = download_name(job.created, job.request.form.get("epsilon"), name)
        return FileResponse(path, filename=shown, media_type="application/octet-stream", headers=_SEALED)

    def all_files(self, request: Request) -> Response:
        """Return all shareable files of a release as one file."""
        job, folder = self.job(request), self.jobs.folder(self.job(request).id)
        about = (job.created, job.request.form.get("epsilon"))
        found = {download_name(*about, name): folder / name for name in FILES if name != _INSIDE}
        found = {name: path for name, path in found.items() if path.is_file()}
        if not isinstance(job.result, ReleasedLog) or not found:
            raise HTTPException(404)
        headers = {**_SEALED, "content-disposition": f'attachment; filename="{download_name(*about, "release.zip")}"'}
        body = zip_files(found) if request.method == "GET" else iter(())
        return StreamingResponse(body, media_type="application/octet-stream", headers=headers)

    # What changes something.

    @answer_in_thread
    def language(self, request: Request, fields: dict[str, str]) -> Response:
        """Change the language. This form needs no mark: twice has the same result as once."""
        language = fields.get("language", "")
        if language not in languages():
            raise Problem(400, "language-unknown")
        return chosen(language, request.headers)

    @form()
    def columns(self, request: Request, fields: dict[str, str]) -> str:
        """Set the roles of the columns, the unit, and the reading of doubtful rows.

        The log is read again if that changes how it is read, or which persons are counted.
        """
        log = self.log(request)
        inside = {name: fields[name] for name in ("sheet", "object_type") if fields.get(name)}
        if inside != {name: value for name, value in log.columns.items() if name in ("sheet", "object_type")}:
            return self._submit_reading(log, inside)  # another table, so the columns of the form are not its own
        columns = columns_said(fields, log)
        if _reading_columns(columns) != _reading_columns(log.columns) or log.measured is None:
            return self._submit_reading(log, columns)
        self.store.set_columns(log.id, columns)
        draft = self.store.draft(log.session, log.id)
        if draft:
            anew = ("unit", "max_cases", "without_person", "attributes")
            plain = {name: value for name, value in draft.items() if name not in anew}
            self.store.keep_draft(log.session, log.id, plain | imported_settings(replace(log, columns=columns)))
        if log.measured.person != columns.get("person", ""):
            self._submit_reading(log, columns)
        return f"/logs/{log.id}/exposure"

    @form()
    def read_again(self, request: Request, fields: dict[str, str]) -> str:
        log = self.log(request)
        return self._submit_reading(log, log.columns)

    def _submit_reading(self, log: LogRecord, columns: Mapping[str, str]) -> str:
        self.jobs.check_room(log.session, keeps=False)  # before the previous reading is deleted
        if log.reading is not None:
            self.jobs.delete(log.reading.id)
        self.store.set_columns(log.id, columns)
        self.jobs.submit(log.session, log.id, "read", JobRequest())
        return f"/logs/{log.id}"

    @form(repeatable=True)
    def sign(self, request: Request, fields: dict[str, str]) -> str:
        """Record who confirmed what of a release, in its dossier and its account's notes."""
        job = self.job(request)
        if not isinstance(job.result, ReleasedLog) or not job.ended:
            raise HTTPException(404)
        ticked = [name[3:] for name, value in fields.items() if name.startswith("ok_") and value]
        signed = sign(self.jobs.folder(job.id), job.result, fields.get("name", ""), ticked)
        if (entry := job.result.entry) is not None:
            recipient, note = self.store.notes(job.session).get(entry, ("", ""))
            recipient = fields.get("recipient", "").strip()[:LONGEST_NOTE] or recipient
            note = note or gettext("Confirmed by {name}.", name=signed.name)
            self.store.set_note(job.session, entry, recipient, note)
        return f"/jobs/{job.id}"

    @form()
    def cancel(self, request: Request, fields: dict[str, str]) -> str:
        job = self.job(request)
        self.jobs.cancel(job.id)
        return f"/jobs/{job.id}" if job.kind == "release" else f"/logs/{job.log}"

    @form()
    def write_again(self, request: Request, fields: dict[str, str]) -> str:
        """Queue a job that writes a release again, without queries.

        The stored answers stay, whether or not this job succeeds.
        """
        job = self.job(request)
        if not isinstance(job.result, ReleasedLog) or not job.result.unwritten or not job.ended:
            raise Problem(400, "release-already-written")
        asked = replace(job.request, write=job.id)
        return f"/jobs/{self.jobs.submit(job.session, job.log, 'release', asked)}"

    @form(forget=True)
    def delete_job(self, request: Request, fields: dict[str, str]) -> str:
        job = self.job(request)
        if job.kind == "read":
            raise Problem(400, "job-is-reading")
        self.jobs.delete(job.id)
        return "/"

    @form(forget=True)
    def delete_log(self, request: Request, fields: dict[str, str]) -> str:
        self.jobs.delete_log(self.log(request).id)
        return "/"


_SEALED = {"content-security-policy": "default-src 'none'; sandbox"}
"""Policy for a download that is opened in the browser: nothing may run or load."""


def _reading_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a log's reading that were chosen."""
    return {name: value for name, value in columns.items() if value and is_reading_option(name)}

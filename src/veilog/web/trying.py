"""Trying methods and budgets before anything is paid for: asked for in the form of a release, shown in it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from veilog.errors import VeilogError
from veilog.report.explorer import clean
from veilog.web.access.forms import check_once, fields_of
from veilog.web.access.visits import Visits, leading_to
from veilog.web.jobs.outlook import Outlook
from veilog.web.jobs.records import JobRecord, LogRecord
from veilog.web.pages import render as pages
from veilog.web.pages.tries import Trial
from veilog.web.work.accounts import epsilon_left
from veilog.web.work.planning import DryRun, Refused
from veilog.web.work.request import CHOSEN, as_draft, fields_in, overtaken
from veilog.web.work.trying import asked_to_try, paid_for

__all__ = ["Trying"]

_KEPT = 6
"""Trials of a log that are kept."""


class Trying(Visits):
    """The form of a release as far as it is tried out, and another method is taken."""

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/logs/{log}/try", self.try_out, methods=["POST"]),
            Route("/logs/{log}/method", self.choose, methods=["POST"]),
        ]

    async def try_out(self, request: Request) -> Response:
        """Try what stands in the form, if that was not done yet. Nothing is spent, so doing it twice does no harm."""
        fields = await fields_of(request)
        session = self.session(request)
        check_once(self.key, session, fields.pop("once", ""))
        log = await run_in_threadpool(self.log, request)
        values = await self.left(log, fields)

        def queue() -> None:
            asked = asked_to_try(values, log, paid_for(self.store.releases(log.id)))
            before = self.store.tries(log.id)
            if any(job.request == asked and _shown(job) for job in before):
                return
            for place, job in enumerate(before):
                if not job.ended or place >= _KEPT - 1:
                    self.jobs.delete(job.id)
            self.jobs.submit(session, log.id, "try", asked)

        try:
            await run_in_threadpool(queue)
        except VeilogError as error:
            return await run_in_threadpool(self.form, request, log, values, problem=clean(str(error)), status=400)
        return leading_to(f"/logs/{log.id}/release#try")

    async def choose(self, request: Request) -> Response:
        """Take another method, perhaps with a budget, and keep all else that stands in the form."""
        log = await run_in_threadpool(self.log, request)
        fields = await fields_of(request)
        method, _, epsilon = fields.get("to", "")[:100].partition("@")

        def keep() -> None:
            draft = as_draft(fields_in(fields), self.store.draft(log.session, log.id))
            budget = {"epsilon": epsilon} if epsilon else {}
            chosen = {CHOSEN: str(time.time())}
            self.store.keep_draft(log.session, log.id, {**draft, "method": method, **budget, **chosen})

        await run_in_threadpool(keep)
        return leading_to(f"/logs/{log.id}/release?{urlencode({'to': method})}")

    def form(
        self,
        request: Request,
        log: LogRecord,
        values: Mapping[str, str],
        *,
        plan: DryRun | Refused | None = None,
        problem: str | None = None,
        same: JobRecord | None = None,
        falls: bool = False,
        sure: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> Response:
        """Return the form of a release, with what was tried for it."""
        chosen = self.store.draft(log.session, log.id).get(CHOSEN, "")
        asked = {"same": same, "falls": falls, "sure": sure or {}}
        facts: dict[str, Any] = {"plan": plan, **asked, "trial": self.trial(log, values), "chosen_at": chosen}
        page = pages.release_form(log, values, self.once(request), problem, settings=self.settings, **facts)
        return HTMLResponse(page, status)

    async def left(self, log: LogRecord, fields: Mapping[str, str]) -> dict[str, str]:
        """Return what a form asks for, which is kept for whoever comes back to it."""
        values = fields_in(fields)

        def keep() -> None:
            draft = self.store.draft(log.session, log.id)
            if not overtaken(fields, draft, time.time()):
                self.store.keep_draft(log.session, log.id, as_draft(values, draft))

        await run_in_threadpool(keep)
        return values

    def trial(self, log: LogRecord, values: Mapping[str, str]) -> Trial:
        """Return the trial that a form shows: the one of what stands there, else the newest."""
        paid = paid_for(self.store.releases(log.id))
        tries = self.store.tries(log.id)
        if not tries:
            return Trial(paid=paid)
        same = None
        with contextlib.suppress(VeilogError):
            asked = asked_to_try(values, log, paid)
            same = next((job for job in tries if job.request == asked), None)
        return Trial(self.jobs.now(same or tries[0]), same is not None, epsilon_left(log, self.settings), paid)


def _shown(job: JobRecord) -> bool:
    """Whether a trial is under way, or has come to its end."""
    made = job.result
    return not job.ended or (job.state == "done" and isinstance(made, Outlook) and not made.late)

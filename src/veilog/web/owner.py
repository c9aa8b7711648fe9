"""What an owner governs: the account of a log, and all that is stored on this machine, whichever browser brought it."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from veilog.web.access.handlers import Visits, check_once, fields_of, leading_to, new_once
from veilog.web.jobs.problems import Problem
from veilog.web.jobs.records import JobRecord, LogRecord
from veilog.web.pages import render as pages
from veilog.web.work.accounts import AccountSeen, account_seen, count_all, entered_by, limit, persons_of, put_on

LONGEST_NOTE = 500
"""Letters of a note."""
_OWNER = " owner"
"""What marks of the list of all logs are signed for, beside the session."""


_GRANTED = 1800.0
"""Seconds for which the list of all logs is open to whoever typed the token: its address stays in the browser's
history."""


def _shared() -> Problem:
    return Problem(403, "server-shared")


class Owner(Visits):
    """The pages on which an owner sets budgets, keeps notes, and finds what other browsers left."""

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/logs/{log}/account", self.account),
            Route("/logs/{log}/compare", self.compare),
            Route("/logs/{log}/account/limit", self.limit, methods=["POST"]),
            Route("/logs/{log}/account/join", self.join, methods=["POST"]),
            Route("/logs/{log}/account/count", self.count, methods=["POST"]),
            Route("/logs/{log}/account/note", self.note, methods=["POST"]),
            Route("/stored", self.stored),
            Route("/stored", self.enter, methods=["POST"]),
            Route("/stored/{log}/take", self.take, methods=["POST"]),
            Route("/stored/{log}/delete", self.delete, methods=["POST"]),
            Route("/leave", self.leave, methods=["POST"]),
        ]

    # The account of a log.

    def account(self, request: Request) -> Response:
        log, mine = self.log(request), self.store.logs(self.session(request))
        seen = account_seen(log, self.settings, mine)
        jobs = self._made(seen, log)
        notes = self.store.notes(log.session)
        return HTMLResponse(pages.account(log, seen, jobs, notes, self.once(request), settings=self.settings))

    def compare(self, request: Request) -> Response:
        """Show two releases of a log beside each other, or ask which."""
        log = self.log(request)
        seen = account_seen(log, self.settings)
        asked = [n[:20] for n in request.query_params.getlist("release")[:2] if n.isascii() and n.isdecimal()]
        page = pages.comparison(log, seen, self._made(seen, log), [int(n) for n in asked], settings=self.settings)
        return HTMLResponse(page)

    def _made(self, seen: AccountSeen, log: LogRecord) -> dict[int, JobRecord]:
        """The jobs of this browser that made the releases of an account, of whichever of its logs they are."""
        times = {} if seen.account is None else {entry.number: entry.time for entry in seen.account.entries}
        found = (job for job in reversed(self.store.jobs(log.session)) if job.kind == "release")
        return {
            job.entry: self.jobs.now(job)
            for job in found
            if job.entry is not None and job.entry in times and entered_by(times[job.entry], job.finished)
        }

    async def limit(self, request: Request) -> Response:
        def change(fields: Mapping[str, str]) -> str:
            log = self.log(request)
            epsilon = fields.get("epsilon", "").strip().replace(",", ".")
            if not epsilon and not fields.get("none"):
                raise Problem(400, "owner-budget-missing")
            delta = fields.get("delta", "").strip().replace(",", ".") or "0"
            unit = fields.get("unit", "").strip() or None
            if log.measured is not None and unit not in (None, *persons_of(log)):
                raise Problem(400, "owner-column-missing")
            if fields.get("none"):
                limit(log, self.settings, None, "0", None)
            else:
                limit(log, self.settings, epsilon, delta, unit)
            return f"/logs/{log.id}/account"

        return await self.in_the_end(request, change)

    async def join(self, request: Request) -> Response:
        def change(fields: Mapping[str, str]) -> str:
            log, number = self.log(request), fields.get("account", "")
            if not (number.isascii() and number.isdecimal() and len(number) < 10):
                raise Problem(400, "owner-account-not-chosen")
            put_on(log, self.settings, int(number), self.store.logs(log.session))
            return f"/logs/{log.id}/account"

        return await self.in_the_end(request, change)

    async def count(self, request: Request) -> Response:
        """Take in the releases that the account does not count."""

        def change(fields: Mapping[str, str]) -> str:
            log = self.log(request)
            count_all(log, self.settings)
            return f"/logs/{log.id}/account"

        return await self.in_the_end(request, change)

    async def note(self, request: Request) -> Response:
        def keep(fields: Mapping[str, str]) -> str:
            log, number = self.log(request), fields.get("entry", "")
            seen = account_seen(log, self.settings)
            if seen.account is None or number not in {str(entry.number) for entry in seen.account.entries}:
                raise Problem(400, "owner-release-unknown")
            texts = (fields.get(name, "").strip()[:LONGEST_NOTE] for name in ("recipient", "note"))
            self.store.set_note(log.session, int(number), *texts)
            return f"/logs/{log.id}/account#r{number}"

        return await self.in_the_end(request, keep)

    # Everything that is stored here.

    def stored(self, request: Request) -> Response:
        """All logs, for whoever typed the token a moment ago; else the question for it."""
        session, grant = self.session(request), request.query_params.get("grant")
        once = self.once(request)
        if grant is None:
            return HTMLResponse(pages.stored(None, session, once, "", settings=self.settings))
        self._check_grant(session, grant)
        logs = [self.live(log) for log in self.store.every_log()]
        return HTMLResponse(pages.stored(logs, session, once, grant, settings=self.settings))

    async def enter(self, request: Request) -> Response:
        fields = await fields_of(request)
        session = self.session(request)
        check_once(self.key, session, fields.get("once", ""))
        given = fields.get("token", "").strip()
        if self.settings.lasting_token:
            raise _shared()
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.settings.token.encode()):
            raise Problem(403, "server-token-wrong")
        return leading_to(f"/stored?grant={new_once(self.key, session + _OWNER)}")

    async def take(self, request: Request) -> Response:
        """Give a log of another browser to this one."""
        return await self._of_any(request, lambda log, session: self.store.take_over(log.id, session))

    async def delete(self, request: Request) -> Response:
        return await self._of_any(request, lambda log, session: self.jobs.delete_log(log.id))

    async def _of_any(self, request: Request, do: Callable[[LogRecord, str], object]) -> Response:
        session = self.session(request)

        def once(fields: Mapping[str, str]) -> str:
            grant = self._check_grant(session, fields.get("grant", ""))
            for log in self.store.every_log():
                if log.id == request.path_params["log"]:
                    do(log, session)
            return f"/stored?grant={grant}"

        return await self.first_time(request, once, forget=True)

    def _check_grant(self, session: str, grant: str) -> str:
        """The mark of whoever typed the token a while ago, on a server that is not shared."""
        if self.settings.lasting_token:
            raise _shared()
        return check_once(self.key, session + _OWNER, grant, _GRANTED)

    async def leave(self, request: Request) -> Response:
        """Let this browser out: its logs stay, and are found again in the list of all."""
        fields = await fields_of(request)
        session = self.session(request)
        check_once(self.key, session, fields.get("once", ""))
        await run_in_threadpool(self.store.let_out, session)
        return leading_to("/")

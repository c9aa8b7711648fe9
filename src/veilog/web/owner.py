"""Pages of the data owner: the account of a log, and all logs on this machine.

The latter come from any browser.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from veilog.web.access.access import Visits, answer_in_thread, check_once, form, leading_to, new_once
from veilog.web.jobs.records import JobRecord, LogRecord, Problem
from veilog.web.pages import render as pages
from veilog.web.work.accounts import AccountSeen, account_seen, count_all, entered_by, limit, persons_of, put_on

LONGEST_NOTE = 500
"""Largest number of characters of a note."""
_OWNER = " owner"
"""Suffix of the session for which marks of the list of all logs are signed."""


_GRANTED = 1800.0
"""Seconds for which the token opens the list of all logs: its address stays in the history."""


def _shared_problem() -> Problem:
    return Problem(403, "server-shared")


class Owner(Visits):
    """The pages on which the data owner sets budgets, keeps notes, and finds all logs."""

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
        jobs = self._jobs_of_account(seen, log)
        notes = self.store.notes(log.session)
        return HTMLResponse(pages.account(log, seen, jobs, notes, self.once(request)))

    def compare(self, request: Request) -> Response:
        """Return the page that compares two releases of a log, or asks for two."""
        log = self.log(request)
        seen = account_seen(log, self.settings)
        asked = [n[:20] for n in request.query_params.getlist("release")[:2] if n.isascii() and n.isdecimal()]
        page = pages.comparison(log, seen, self._jobs_of_account(seen, log), [int(n) for n in asked])
        return HTMLResponse(page)

    def _jobs_of_account(self, seen: AccountSeen, log: LogRecord) -> dict[int, JobRecord]:
        """Return the jobs of this browser that made an account's releases, from any log."""
        times = {} if seen.account is None else {entry.number: entry.time for entry in seen.account.entries}
        found = (job for job in reversed(self.store.jobs(log.session)) if job.kind == "release")
        return {
            job.entry: self.jobs.now(job)
            for job in found
            if job.entry is not None and job.entry in times and entered_by(times[job.entry], job.finished)
        }

    @form(repeatable=True)
    def limit(self, request: Request, fields: dict[str, str]) -> str:
        log = self.log(request)
        epsilon, delta = (fields.get(name, "").strip().replace(",", ".") for name in ("epsilon", "delta"))
        if not epsilon and not fields.get("none"):
            raise Problem(400, "owner-budget-missing")
        unit = fields.get("unit", "").strip() or None
        if log.measured is not None and unit not in (None, *persons_of(log)):
            raise Problem(400, "owner-column-missing")
        asked = (None, "0", None) if fields.get("none") else (epsilon, delta or "0", unit)
        limit(log, self.settings, *asked)
        return f"/logs/{log.id}/account"

    @form(repeatable=True)
    def join(self, request: Request, fields: dict[str, str]) -> str:
        log, number = self.log(request), fields.get("account", "")
        if not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise Problem(400, "owner-account-not-chosen")
        put_on(log, self.settings, int(number), self.store.logs(log.session))
        return f"/logs/{log.id}/account"

    @form(repeatable=True)
    def count(self, request: Request, fields: dict[str, str]) -> str:
        """Enter the releases that the account does not count."""
        log = self.log(request)
        count_all(log, self.settings)
        return f"/logs/{log.id}/account"

    @form(repeatable=True)
    def note(self, request: Request, fields: dict[str, str]) -> str:
        log, number = self.log(request), fields.get("entry", "")
        seen = account_seen(log, self.settings)
        if seen.account is None or number not in {str(entry.number) for entry in seen.account.entries}:
            raise Problem(400, "owner-release-unknown")
        texts = (fields.get(name, "").strip()[:LONGEST_NOTE] for name in ("recipient", "note"))
        self.store.set_note(log.session, int(number), *texts)
        return f"/logs/{log.id}/account#r{number}"

    # Everything that is stored here.

    def stored(self, request: Request) -> Response:
        """Return the list of all logs after the token was typed, else the form for it."""
        session, grant = self.session(request), request.query_params.get("grant")
        once = self.once(request)
        if grant is None:
            return HTMLResponse(pages.stored_logs_page(None, session, once, ""))
        self._check_grant(session, grant)
        logs = [self.live(log) for log in self.store.every_log()]
        return HTMLResponse(pages.stored_logs_page(logs, session, once, grant))

    @answer_in_thread
    def enter(self, request: Request, fields: dict[str, str]) -> Response:
        session = self.session(request)
        check_once(self.key, session, fields.get("once", ""))
        given = fields.get("token", "").strip()
        if self.settings.lasting_token:
            raise _shared_problem()
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.settings.token.encode()):
            raise Problem(403, "server-token-wrong")
        return leading_to(f"/stored?grant={new_once(self.key, session + _OWNER)}")

    @form(forget=True)
    def take(self, request: Request, fields: dict[str, str]) -> str:
        """Give a log of another browser to this one."""
        return self._call_on_any(request, fields, lambda log, session: self.store.take_over(log.id, session))

    @form(forget=True)
    def delete(self, request: Request, fields: dict[str, str]) -> str:
        return self._call_on_any(request, fields, lambda log, session: self.jobs.delete_log(log.id))

    def _call_on_any(self, request: Request, fields: dict[str, str], do: Callable[[LogRecord, str], object]) -> str:
        session = self.session(request)
        grant = self._check_grant(session, fields.get("grant", ""))
        for log in self.store.every_log():
            if log.id == request.path_params["log"]:
                do(log, session)
        return f"/stored?grant={grant}"

    def _check_grant(self, session: str, grant: str) -> str:
        """Return the mark of a recently typed token; :class:`Problem` on a shared server."""
        if self.settings.lasting_token:
            raise _shared_problem()
        return check_once(self.key, session + _OWNER, grant, _GRANTED)

    @answer_in_thread
    def leave(self, request: Request, fields: dict[str, str]) -> Response:
        """End the access of this browser; its logs stay in the list of all logs."""
        session = self.session(request)
        check_once(self.key, session, fields.get("once", ""))
        self.store.let_out(session)
        return leading_to("/")

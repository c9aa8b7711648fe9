"""What is answered when a request cannot be: a page with what is wrong, and what to do about it."""

from __future__ import annotations

import sqlite3
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from veilog._language import gettext, gettext_noop
from veilog.errors import VeilogError
from veilog.web.jobs.problems import DISK_FULL, Problem, is_full
from veilog.web.jobs.records import ServerSettings
from veilog.web.pages import render

_HOME = gettext_noop("Start from the home page.")


class ErrorPages:
    """The pages that a server answers errors with."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings

    def answer(self, status: int, words: str, advice: str) -> Response:
        """Return the page that says this."""
        return HTMLResponse(render.problem(status, gettext(words), gettext(advice), settings=self._settings), status)

    def door(self, words: str, advice: str) -> Response:
        """Return the page that asks for the token."""
        page = render.problem(403, gettext(words), gettext(advice), settings=self._settings, door=True)
        return HTMLResponse(page, 403)

    def on_the_way(self, place: str) -> Response:
        """Return the page from which a browser goes on to this place by itself."""
        return HTMLResponse(render.on_the_way(place, settings=self._settings))

    def handlers(self) -> dict[Any, Any]:
        """Return what Starlette does with which error."""
        return {
            HTTPException: self._http,
            ClientDisconnect: lambda request, error: Response(status_code=400),
            Exception: self._unforeseen,
            **dict.fromkeys((VeilogError, OSError, sqlite3.Error), self._foreseen),
        }

    def _http(self, request: Request, error: HTTPException) -> Response:
        match error.status_code:
            case 404:
                answer = self.answer(
                    404, gettext("There is no such page."), f"{gettext('Perhaps it was deleted.')} {gettext(_HOME)}"
                )
            case 405:
                answer = self.answer(405, gettext("This address takes no such request."), _HOME)
            case status:
                answer = self.answer(status, gettext("This request cannot be answered."), _HOME)
        answer.headers.update(error.headers or {})
        return answer

    def _foreseen(self, request: Request, error: Exception) -> Response:
        if isinstance(error, Problem):
            return self._told(error)
        if is_full(error) or (error.__cause__ is not None and is_full(error.__cause__)):
            return self._told(DISK_FULL)
        if isinstance(error, VeilogError):
            return self.answer(400, error.problem, error.advice or gettext("Go back, correct it, and send it again."))
        raise error

    def _unforeseen(self, request: Request, error: Exception) -> Response:
        if is_full(error):
            return self._told(DISK_FULL)
        advice = gettext("The terminal in which veilog serve runs has the details; please report them.")
        return self.answer(500, gettext("This is a defect of veilog; nothing was done."), advice)

    def _told(self, problem: Problem) -> Response:
        return self.answer(problem.status, problem.problem, problem.advice or "")

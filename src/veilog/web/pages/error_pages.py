"""Pages for requests that fail: what is wrong, and what to do about it."""

from __future__ import annotations

import sqlite3

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from veilog._language import gettext, gettext_noop
from veilog.errors import VeilogError
from veilog.web.jobs.records import DISK_FULL, Problem, is_full
from veilog.web.pages import render

_HOME = gettext_noop("Start from the home page.")


def answer(status: int, words: str, advice: str, *, door: bool = False) -> Response:
    """Return the page with these words; as a ``door`` it asks for the token."""
    return HTMLResponse(render.problem(status, gettext(words), gettext(advice), door=door), status)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    match error.status_code:
        case 404:
            words = gettext("There is no such page."), f"{gettext('Perhaps it was deleted.')} {gettext(_HOME)}"
        case 405:
            words = gettext("This address takes no such request."), _HOME
        case _:
            words = gettext("This request cannot be answered."), _HOME
    found = answer(error.status_code, *words)
    found.headers.update(error.headers or {})
    return found


def _show_error(request: Request, error: Exception) -> Response:
    if is_full(error) or (error.__cause__ is not None and is_full(error.__cause__)):
        error = DISK_FULL
    if isinstance(error, Problem):
        return answer(error.status, error.problem, error.advice or "")
    if isinstance(error, VeilogError):
        return answer(400, error.problem, error.advice or gettext("Go back, correct it, and send it again."))
    raise error


def _show_defect(request: Request, error: Exception) -> Response:
    if is_full(error):
        return _show_error(request, error)
    advice = gettext("The terminal in which veilog serve runs has the details; please report them.")
    return answer(500, gettext("This is a defect of veilog; nothing was done."), advice)


HANDLERS = {
    HTTPException: _http,
    ClientDisconnect: lambda request, error: Response(status_code=400),
    Exception: _show_defect,
    **dict.fromkeys((VeilogError, OSError, sqlite3.Error), _show_error),
}
"""Handlers of errors for Starlette."""

"""The language of a visit: the one that its browser chose, or else the one that it asks for."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response

from veilog._language import ENGLISH, languages

__all__ = ["chosen", "cookie_in", "language_for"]

_COOKIE = "veilog-language"
_KEPT = 400 * 86400
_LOG = re.compile(r"(/logs/[0-9a-f]{32})(/[a-z/]*)?")
_PAGES = re.compile(r"/|/stored|/jobs/[0-9a-f]{32}|/logs/[0-9a-f]{32}(/exposure|/release|/account)?")
_ON_FORM = ("/jobs", "/plan", "/try", "/method")
"""Where the form of a release is sent: what is answered there is that form again."""


def cookie_in(headers: Headers, name: str) -> str | None:
    """Return what a browser keeps under this name."""
    # By hand: programs on other ports of this host leave cookies here, too, and odd ones must not hide ours.
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None


def language_for(headers: Headers, usual: str | None) -> str:
    """Return the language that was chosen, the ``usual`` one of this server, or the one that the browser likes best."""
    kept = cookie_in(headers, _COOKIE)
    if kept in languages():
        return str(kept)
    return usual or _asked_for(headers.get("accept-language", ""))


def _asked_for(header: str) -> str:
    """The best of those that there are, as RFC 9110 weighs them; English if none is among them."""
    found = []
    for part in header.split(","):
        tag, _, weight = part.partition(";")
        language = tag.strip().lower().partition("-")[0]
        match = re.fullmatch(r"\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*", weight) if weight else None
        share = 1.0 if not weight else float(match[1]) if match else 0.0
        if language in languages() and share > 0:
            found.append((share, language))
    return max(found, key=lambda one: one[0], default=(1.0, ENGLISH))[1]


def chosen(language: str, headers: Headers) -> Response:
    """Return the answer to a choice: it is kept, and the page that it was made on is shown again."""
    answer = RedirectResponse(_page_before(headers.get("referer", "")), 303)
    answer.set_cookie(_COOKIE, language, max_age=_KEPT, path="/", httponly=True, samesite="strict")
    return answer


def _page_before(referer: str) -> str:
    """A page of ours: the one that a browser comes from, or the nearest to where it sent a form."""
    try:
        place = urlsplit(referer)
    except ValueError:
        return "/"
    if _PAGES.fullmatch(place.path):
        return place.path + (f"?{place.query}" if place.query else "")
    log = _LOG.fullmatch(place.path)
    if log is None:
        return "/"
    return f"{log[1]}/release" if log[2] in _ON_FORM else log[1]

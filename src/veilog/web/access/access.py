"""Access to the server: every request passes here first, and every answer last.

- The request must be for a name under which users reach this server. So a page elsewhere whose name was made to point
  here (DNS rebinding) gets nowhere.
- A browser enters by a code that works once, in an address, or by the token. The user types the token into a form, so
  it stays in no history. The browser then gets a cookie, which everything else needs.
- Cookies are sent to every port of a host, and every port may set them. So the pages have a host of their own
  (``veilog-NAME.localhost``, which browsers know to be this machine). Only browsers with access learn its name.
- A request that changes something (POST) must come from a page of this server: the browser declares so in Origin.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, parse_qsl, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from veilog._language import ENGLISH, gettext_noop, languages, spoken
from veilog.messages import for_surface
from veilog.web.jobs.queue import Jobs
from veilog.web.jobs.records import JobRecord, LogRecord, Problem, ServerSettings
from veilog.web.jobs.store import Store
from veilog.web.pages.assets import OWN
from veilog.web.pages.error_pages import answer
from veilog.web.pages.render import redirect_page, server_facts

_COOKIE = "veilog-language"
_LOG = re.compile(r"(/logs/[0-9a-f]{32})(/[a-z/]*)?")
_PAGES = re.compile(
    r"/|/stored|/jobs/[0-9a-f]{32}(/explore)?|/logs/[0-9a-f]{32}(/exposure|/explore|/release|/expert|/check|/account|/compare)?"
)
_ON_FORM = ("/jobs", "/plan")
"""Addresses of the form of a release; they answer with that form again."""


def cookie_in(headers: Headers, name: str) -> str | None:
    """Return the value of a browser's cookie."""
    # By hand: programs on other ports of this host leave cookies here, too, and odd ones must not hide ours.
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None


def language_for(headers: Headers, usual: str | None) -> str:
    """Return the chosen language, else the server's ``usual`` one, else the browser's."""
    kept = cookie_in(headers, _COOKIE)
    if kept in languages():
        return str(kept)
    return usual or _choose_language(headers.get("accept-language", ""))


def _choose_language(header: str) -> str:
    """Return the available language that the browser prefers (RFC 9110), or English."""
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
    """Keep the chosen language, and return to the page on which it was chosen."""
    found = RedirectResponse(_page_before(headers.get("referer", "")), 303)
    found.set_cookie(_COOKIE, language, max_age=_KEPT, path="/", httponly=True, samesite="strict")
    return found


def _page_before(referer: str) -> str:
    """Return the page that a browser comes from, or the nearest to the form it sent."""
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


_POLICY = "default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that, browsers send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_OPEN = (f"{OWN}style.css", f"{OWN}pictures.css", f"{OWN}favicon.svg")
"""Files served without a cookie, for the page that asks for the token."""
_ENTER = "/enter"
_ADDRESS = gettext_noop("Open the address that the terminal shows where veilog serve was started.")
_TOKEN = gettext_noop("Type the token that the terminal shows where veilog serve was started, or that is in its file.")
_KEPT = 400 * 86400
"""Seconds for which a browser keeps its cookie, to find its logs after its access ends."""
_OPENING = 120.0
"""Seconds that a browser has to start."""
_STALLED = 60.0
"""Seconds without data after which a request is given up."""
_LONGEST = 4096
"""Largest number of bytes of the form with the token."""
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HAS_OWN_NAME = "127.0.0.1"
"""Address of a server with its own host; it listens on IPv4 and IPv6, so no other program can."""


class Access:
    """The guard around the whole application."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, store: Store) -> None:
        self._app = app
        self._store = store
        self._settings = settings
        self._token = hashlib.sha256(settings.token.encode()).digest()
        self._codes: dict[bytes, float] = {}
        names = authorities(settings.host, settings.port)
        own = hmac.new(store.key(), b"host", hashlib.sha256).hexdigest()[:20]
        self.own = f"veilog-{own}.localhost:{settings.port}" if settings.host == HAS_OWN_NAME else None
        """Host whose name only browsers with access know."""
        self._names = names | ({self.own} if self.own else set())
        self._elsewhere = f"{_POLICY} http://*.localhost:{settings.port}"
        # A cookie is sent to every port of a host: two servers must not take each other's.
        folder = hashlib.sha256(str(Path(settings.folder).absolute()).encode("utf-8", "replace"))
        self._cookie = f"veilog-{folder.hexdigest()[:12]}"

    def opening(self, seconds: float = _OPENING) -> str:
        """Return a code with which one browser can enter, once, within so many seconds."""
        code, now = secrets.token_hex(16), time.monotonic()
        self._codes = {known: until for known, until in self._codes.items() if until > now}
        self._codes[_digest(code)] = now + seconds
        return code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        language = language_for(Headers(scope=scope), self._settings.language)
        with for_surface("pages"), spoken(language), server_facts(self._settings):
            await self._answer(scope, _limit_time(receive), send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", _POLICY if self._is_at_home(scope) else self._elsewhere)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith(OWN):
                    headers.setdefault("cache-control", "no-cache")
                else:
                    headers["cache-control"] = "no-store"
            await send(message)

        given = self._refuse_foreign(scope) or await self._admit(scope, receive)
        if given is None:
            cookie = cookie_in(Headers(scope=scope), self._cookie) if self._is_at_home(scope) else None
            session = self._store.session(cookie, self._token.hex()) if cookie else None
            scope["session"] = session
            if session is None and scope["path"] not in _OPEN:
                given = answer(403, gettext_noop("This browser has not been let in."), _TOKEN, door=True)
        await (given or self._app)(scope, receive, sealed)

    def _is_at_home(self, scope: Scope) -> bool:
        """Return True if the request is for the host of the pages."""
        return self.own is None or Headers(scope=scope).get("host", "").lower() == self.own

    def _refuse_foreign(self, scope: Scope) -> Response | None:
        """Return the refusal of a request that comes from elsewhere, or None."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._names:
            return answer(403, gettext_noop("This server is not reached under this name."), _ADDRESS)
        if scope["method"] in ("GET", "HEAD"):
            return None
        origins = headers.getlist("origin")
        ours = origins == [f"http://{hosts[0].lower()}"]
        site = headers.getlist("sec-fetch-site")
        if not ours or any(value not in ("same-origin", "none") for value in site):
            advice = gettext_noop("Open the page here, and send it from there.")
            words = gettext_noop("This was sent from another site, so nothing was done.")
            return answer(403, words, advice)
        return None

    async def _admit(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer to a request with a code or the token, or None without one."""
        if scope["method"] == "POST" and scope["path"] == _ENTER:
            try:
                given = (await fields_of(Request(scope, receive), _LONGEST)).get("token", "")
            except Problem as problem:
                return answer(problem.status, problem.problem, problem.advice or "")
            if not hmac.compare_digest(_digest(given.strip()), self._token):
                return answer(403, gettext_noop("This is not the token."), _TOKEN, door=True)
            return self._admit_browser(scope)
        if scope["method"] != "GET" or scope["path"] not in ("/", _ENTER):
            return None
        query = parse_qs(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
        if "code" not in query:
            return None
        code = _digest(query["code"][-1])
        if self._codes.get(code, 0.0) <= time.monotonic():
            return answer(403, gettext_noop("This address is not valid any more."), _TOKEN, door=True)
        if scope["path"] == "/" and self._is_at_home(scope):
            # A browser that comes from another site sends no cookies yet: it asks once more, from here.
            return HTMLResponse(redirect_page(f"{_ENTER}?code={query['code'][-1]}"))
        del self._codes[code]
        return self._admit_browser(scope)

    def _admit_browser(self, scope: Scope) -> Response:
        """Let a browser in, or send it to the host of the pages to enter there."""
        if not self._is_at_home(scope):
            return RedirectResponse(f"http://{self.own}/?code={self.opening()}", 303)
        found = RedirectResponse("/", 303)
        cookie = self._store.admit(cookie_in(Headers(scope=scope), self._cookie), self._token.hex())
        found.set_cookie(self._cookie, cookie, max_age=_KEPT, path="/", httponly=True, samesite="strict")
        return found


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _limit_time(receive: Receive) -> Receive:
    """Treat a request whose next part is late as one whose browser has gone."""
    whole = False

    async def next_part() -> Message:
        nonlocal whole
        if whole:
            return await receive()
        try:
            async with asyncio.timeout(_STALLED):
                message = await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        whole = not message.get("more_body", False)
        return message

    return next_part


def authorities(host: str, port: int) -> frozenset[str]:
    """Return the names of this server that a browser may put in its Host header."""
    names = {*_LOOPBACK, f"[{host}]" if ":" in host else host.lower()}
    if host in ("0.0.0.0", "::"):
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        names |= {f"[{address}]" if ":" in address else address for address in _addresses(socket.gethostname())}
    return frozenset({f"{name}:{port}" for name in names} | (names if port == 80 else set()))


def _addresses(name: str) -> set[str]:
    try:
        return {str(place[0]) for *_, place in socket.getaddrinfo(name, None)}
    except OSError:
        return set()


# A visit -------------------------------------------------------------------------------------------------------------

# Visits: their session, the log and job that they may see, and forms that work once, for all routes.


_LARGEST = 1 << 20
_FIELDS = 5000
"""Largest number of fields: a log may have hundreds of columns to describe."""
_OLDEST = 7 * 86400.0


async def fields_of(request: Request, largest: int = _LARGEST) -> dict[str, str]:
    """Return a form's fields without files; repeated fields are joined by commas."""
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
    """Return a new mark for the forms of a page, valid for this session."""
    text = f"{secrets.token_hex(16)}.{int(time.time()):x}"
    return f"{text}.{_sign(key, session, text)}"


def check_once(key: bytes, session: str, once: str, oldest: float = _OLDEST) -> str:
    """Return the mark that a form sent; :class:`Problem` if it is foreign or too old."""
    text, _, signature = once.rpartition(".")
    right = hmac.compare_digest(_sign(key, session, text).encode(), signature.encode("utf-8", "replace"))
    if not right or time.time() - int(text.partition(".")[2], 16) > oldest:
        raise Problem(400, "form-too-old")
    return once


def _sign(key: bytes, session: str, text: str) -> str:
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
        """Return the session of a visit; 404 for a browser without access."""
        session = request.scope["session"]
        if session is None:
            raise HTTPException(404)
        return str(session)

    def _find_record(self, request: Request, kind: str, find: Callable[[str, str], T | None]) -> T:
        name = request.path_params[kind]
        found = find(self.session(request), name) if _ID.fullmatch(name) else None
        if found is None:
            raise HTTPException(404)
        return found

    def log(self, request: Request) -> LogRecord:
        """Return the log that the address names; 404 if it is not the visitor's."""
        return self.live(self._find_record(request, "log", self.store.log))

    def job(self, request: Request) -> JobRecord:
        """Return the job that the address names; 404 if it is not the visitor's."""
        return self.jobs.now(self._find_record(request, "job", self.store.job))

    def live(self, log: LogRecord) -> LogRecord:
        """Return the log with the present state of its reading."""
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


def answer_in_thread(do: Callable[[Any, Request, dict[str, str]], Response]) -> Posted:
    """Make a route of a function that answers the fields of a form."""

    async def route(self: Visits, request: Request) -> Response:
        return await run_in_threadpool(do, self, request, await fields_of(request))

    return route


def form(*, repeatable: bool = False, forget: bool = False) -> Callable[[Do], Posted]:
    """Make a route of a function that acts on a form and returns the next address.

    It acts the first time only. A ``repeatable`` action has the same result done once or twice, such as setting a
    limit. It may wait for a ledger, and no other request waits for that. With ``forget``, the records also lose what
    was deleted.
    """

    def routed(do: Do) -> Posted:
        @answer_in_thread
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
    """Return the answer to an accepted form: a redirect to this place."""
    return RedirectResponse(place, 303)

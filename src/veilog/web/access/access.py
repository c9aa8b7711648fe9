"""Who is let in: the first thing every request meets, and the last that every answer passes.

- The request must be for a name under which this server is meant to be reached, so that a page elsewhere whose name
  was made to point here (DNS rebinding) gets nowhere.
- Whoever opens the URL with the token gets a cookie; everything else needs that cookie. The token is not in it.
- A browser that is started with a URL shows it to all users of the machine, in the list of processes. So that one holds
  a code in place of the token, which lets in once, and which is no token elsewhere.
- What changes something (POST) must come from a page of this server: the browser says so in Origin.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from veilog._language import gettext_noop, spoken
from veilog.web.access.languages import cookie_in, language_for
from veilog.web.jobs.records import Settings
from veilog.web.jobs.store import Store
from veilog.web.pages.assets import OWN

__all__ = ["Access", "authorities"]

_HEADERS = {
    "content-security-policy": "default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that, browsers send "Origin: null" with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_OPEN = f"{OWN}style.css"
"""What is served without a cookie: what the page needs that says that there is none."""
_ADDRESS = gettext_noop("Open the address that the terminal shows where veilog serve was started.")
_KEPT = 400 * 86400
_OPENING = 120.0
"""Seconds that a browser has to start."""
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

Words = Callable[[int, str, str], Response]


class Access:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, settings: Settings, store: Store, words: Words) -> None:
        self._app = app
        self._store = store
        self._language = settings.language
        self._words = words
        self._token = hashlib.sha256(settings.token.encode()).digest()
        self._opening = self._token, 0.0
        self._admitted = self._token.hex() if settings.lasting_token else "own machine"
        self._names = authorities(settings.host, settings.port)
        # A cookie is sent to every port of a host: two servers must not take each other's.
        folder = hashlib.sha256(str(Path(settings.folder).absolute()).encode("utf-8", "replace"))
        self._cookie = f"veilog-{folder.hexdigest()[:12]}"

    def opening(self) -> str:
        """Return a code that lets one browser in, once, in place of the token; one before it counts no more."""
        code = secrets.token_hex(32)
        self._opening = hashlib.sha256(code.encode()).digest(), time.monotonic() + _OPENING
        return code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        with spoken(language_for(Headers(scope=scope), self._language)):
            await self._answered(scope, receive, send)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith(OWN):
                    headers.setdefault("cache-control", "no-cache")
                else:
                    headers["cache-control"] = "no-store"
            await send(message)

        answer = self._stopped(scope) or self._entering(scope)
        if answer is None:
            cookie = cookie_in(Headers(scope=scope), self._cookie)
            session = self._store.session(cookie, self._admitted) if cookie else None
            scope["session"] = session
            if session is None and scope["path"] != _OPEN:
                answer = self._words(403, gettext_noop("This browser has not been let in."), _ADDRESS)
        await (answer or self._app)(scope, receive, sealed)

    def _stopped(self, scope: Scope) -> Response | None:
        """The answer to a request that comes from elsewhere."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._names:
            return self._words(403, gettext_noop("This server is not reached under this name."), _ADDRESS)
        if scope["method"] in ("GET", "HEAD"):
            return None
        origins = headers.getlist("origin")
        ours = origins == [f"http://{hosts[0].lower()}"]
        site = headers.getlist("sec-fetch-site")
        if not ours or any(value not in ("same-origin", "none") for value in site):
            advice = gettext_noop("Open the page here, and send it from there.")
            return self._words(403, gettext_noop("This was sent from another site, so nothing was done."), advice)
        return None

    def _entering(self, scope: Scope) -> Response | None:
        """The answer to whoever comes with a token: in, or not."""
        if scope["path"] != "/" or b"token" not in scope["query_string"] or scope["method"] not in ("GET", "HEAD"):
            return None
        given = parse_qs(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True).get("token")
        if given is None:
            return None
        if len(given) != 1 or not self._lets_in(given[0]):
            advice = gettext_noop(
                "Open the address that the terminal shows; each start of veilog serve makes a new one."
            )
            return self._words(403, gettext_noop("This address is not valid any more."), advice)
        answer = RedirectResponse("/", 303)
        cookie = self._store.admit(cookie_in(Headers(scope=scope), self._cookie), self._admitted)
        answer.set_cookie(self._cookie, cookie, max_age=_KEPT, path="/", httponly=True, samesite="strict")
        return answer

    def _lets_in(self, given: str) -> bool:
        """Whether this is the token, or the code that no browser has come with yet."""
        digest = hashlib.sha256(given.encode("utf-8", "replace")).digest()
        code, until = self._opening
        if hmac.compare_digest(digest, code) and time.monotonic() < until:
            self._opening = code, 0.0
            return True
        return hmac.compare_digest(digest, self._token)


def authorities(host: str, port: int) -> frozenset[str]:
    """What a browser may call this server in its Host header."""
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

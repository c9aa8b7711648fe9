"""Chromium enters: the pages' host, other ports, and the token in its profile."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from test_browser import CHROMIUM, FLAGS
from web_serving import TOKEN, Served, served

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = [pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no Chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("entering") / "data", host="127.0.0.1") as found:
        yield found


@contextlib.contextmanager
def profile(folder: Path) -> Iterator[sync_api.BrowserContext]:
    """Yield a browser that keeps its profile on the disk."""
    with sync_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=str(CHROMIUM), args=list(FLAGS), headless=True
        )
        context.set_default_timeout(60_000)
        yield context
        context.close()


def enter(page: sync_api.Page, server: Served) -> None:
    """Type the token at the address that a terminal shows without a code."""
    page.goto(server.origin)
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Enter").click()
    page.get_by_role("heading", name="Share an event log, not the people in it").wait_for()


@contextlib.contextmanager
def attacker(planted: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Run a foreign server on another port, which plants cookies and notes those sent."""
    heard: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            for name in planted:
                self.send_header("set-cookie", f"{name}={'0' * 64}; Path=/; SameSite=Strict")
            self.end_headers()
            self.wfile.write(b"<p>here<script>if (!location.hash) { location.hash = 'x'; location.reload() }</script>")

        def log_message(self, *args: object) -> None:
            return

    other = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=other.serve_forever)
    thread.start()
    try:
        yield other.server_address[1], heard
    finally:
        other.shutdown()
        thread.join()
        other.server_close()


@pytest.mark.nightly
def test_the_pages_are_reached_at_a_host_of_their_own_and_no_other_port_gets_the_cookie(
    tmp_path: Path, server: Served
) -> None:
    planted: list[str] = []
    with profile(tmp_path / "profile") as context, attacker(planted) as (port, heard):
        page = context.new_page()
        enter(page, server)
        assert page.evaluate("location.hostname").endswith(".localhost")
        cookies = [cookie for cookie in context.cookies() if cookie["value"] and "language" not in cookie["name"]]
        assert len(cookies) == 1
        planted.append(cookies[0]["name"])
        inside = page.url
        for host in ("127.0.0.1", "localhost"):
            page.goto(f"http://{host}:{port}/look")
            page.get_by_text("here").wait_for()
            page.reload()
        assert len(heard) >= 4 and not any(cookies[0]["value"] in cookie for cookie in heard)
        page.goto(inside)
        page.get_by_role("heading", name="Share an event log, not the people in it").wait_for()
        assert page.goto(server.origin).status == 403, "at 127.0.0.1 nothing is shown, whatever cookies there are"


@pytest.mark.nightly
def test_the_profile_of_a_browser_keeps_nothing_of_the_token(tmp_path: Path, server: Served) -> None:
    """The profile keeps nothing of the token, and only codes that are used up."""
    with profile(tmp_path / "profile") as context:
        page = context.new_page()
        enter(page, server)
        page.goto(page.url + "stored")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Show everything").click()
        page.get_by_role("heading", name="All that is stored on this machine").wait_for()
        page.goto(server.origin)
        page.get_by_label("Token").fill("1" * 32)
        page.get_by_role("button", name="Enter").click()
        page.get_by_label("Token").wait_for()
        page.wait_for_timeout(3000)  # so that it writes down its session
    kept = [path for path in (tmp_path / "profile").rglob("*") if path.is_file()]
    history = b"".join(path.read_bytes() for path in kept if path.name.startswith("History"))
    assert b".localhost" in history, "it keeps a history"
    forms = [TOKEN.encode(), TOKEN.encode("utf-16-le")]
    assert [path.name for path in kept if any(form in path.read_bytes() for form in forms)] == []

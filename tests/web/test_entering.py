"""Entering: how a browser gets in, what its cookie allows, and for how long."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
from web_serving import SMALL, TOKEN, Served, enter, once_of, served, upload

from veilog.web.access.access import Access
from veilog.web.app import make_app
from veilog.web.jobs.records import ServerSettings
from veilog.web.server import prepare_folder, serve, sockets_at

OTHER = "another" * 5


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("entering") / "data") as found:
        yield found


# The token.


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "0", TOKEN.swapcase(), f"{TOKEN},x", "é" * 30])
def test_a_wrong_token_lets_nobody_in(server: Served, token: str) -> None:
    with server.stranger() as stranger:
        answer = enter(stranger, token)
        assert answer.status_code == 403 and "set-cookie" not in answer.headers
        assert 'action="/enter"' in answer.text, "it can be typed again"
        assert stranger.get("/").status_code == 403


def test_an_address_with_the_token_lets_nobody_in(server: Served) -> None:
    """An address with the token gives no access, as browsers keep their history."""
    with server.stranger() as stranger:
        for address in (f"/?token={TOKEN}", f"/enter?token={TOKEN}", f"/?code={TOKEN}", f"/enter?code={TOKEN}"):
            answer = stranger.get(address)
            assert answer.status_code == 403 and "set-cookie" not in answer.headers
            assert TOKEN not in answer.text


def test_the_token_becomes_a_cookie(server: Served) -> None:
    with server.stranger() as stranger:
        assert stranger.get("/").status_code == 403 and 'action="/enter"' in stranger.get("/").text
        answer = enter(stranger, f" {TOKEN}\n")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
        assert TOKEN not in cookie
        assert stranger.get("/").status_code == 200
        assert TOKEN not in stranger.get("/").text


def test_another_site_lets_no_browser_in(server: Served) -> None:
    with server.stranger(origin="http://evil.example") as stranger:
        assert enter(stranger, TOKEN).status_code == 403
        assert not stranger.cookies


def test_what_is_no_form_with_a_token_is_refused(server: Served) -> None:
    with server.stranger() as stranger:
        assert stranger.post("/enter", data={"token": "x" * 5000}).status_code == 413
        assert stranger.post("/enter", files={"token": TOKEN}).status_code == 400


# The cookie.


def test_two_browsers_are_two_sessions_and_one_browser_stays_one(server: Served) -> None:
    with server.browser() as first, server.browser() as second:
        log = upload(first, SMALL).headers["location"]
        assert second.get(log).status_code == 404
        before = dict(first.cookies)
        enter(first, TOKEN)
        assert dict(first.cookies) != before
        assert first.get(log).status_code == 200, "it finds its logs again"


def test_a_cookie_that_was_planted_is_worth_nothing_after_entering(server: Served) -> None:
    """A cookie planted by another port of this host is worth nothing after entering."""
    with server.browser() as attacker, server.stranger() as victim:
        victim.cookies.update(attacker.cookies)
        assert enter(victim, TOKEN).status_code == 303
        log = upload(victim, SMALL, "base.csv").headers["location"]
        assert attacker.get("/").status_code == 403
        assert attacker.get(log).status_code == 403
        assert enter(attacker, TOKEN).status_code == 303
        assert attacker.get(log).status_code == 404 and "base.csv" not in attacker.get("/").text


def test_a_cookie_of_one_who_was_let_out_is_worth_nothing_either(server: Served) -> None:
    with server.browser() as attacker, server.stranger() as victim:
        attacker.post("/leave", data={"once": once_of(attacker.get("/stored"))})
        victim.cookies.update(attacker.cookies)
        assert enter(victim, TOKEN).status_code == 303
        assert attacker.get("/").status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True])
def test_a_new_token_asks_all_for_it_and_they_find_their_logs_again(tmp_path: Path, lasting: bool) -> None:
    """A new token shuts out all until they enter it; then they find their logs again."""
    with served(tmp_path / "data", lasting_token=lasting) as server, server.browser() as client:
        log = upload(client, SMALL).headers["location"]
        cookies = httpx.Cookies(client.cookies)
    with served(tmp_path / "data", lasting_token=lasting, token=OTHER) as server, server.stranger() as client:
        client.cookies.update(cookies)
        assert client.get(log).status_code == 403
        assert enter(client, TOKEN).status_code == 403
        assert enter(client, OTHER).status_code == 303
        assert client.get(log).status_code == 200


@pytest.mark.slow
def test_the_token_of_a_file_goes_on_over_a_restart(tmp_path: Path) -> None:
    with served(tmp_path / "data", lasting_token=True) as server, server.browser() as client:
        log = upload(client, SMALL).headers["location"]
        cookies = httpx.Cookies(client.cookies)
    with served(tmp_path / "data", lasting_token=True) as server, server.stranger() as client:
        client.cookies.update(cookies)
        assert client.get(log).status_code == 200


# Codes, and a host of its own.


def settings_of(folder: Path, **facts: Any) -> ServerSettings:
    ledger = folder / "veilog.ledger"
    return ServerSettings(
        folder=prepare_folder(folder), ledger=ledger, token=TOKEN, workers=0, **{"port": 8400, **facts}
    )


def browser_of(app: Access, host: str, port: int = 8400) -> httpx.AsyncClient:
    """Return a client that asks an application without a server."""
    origin = f"http://{host}:{port}"
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=origin, headers={"origin": origin})


async def opened(client: httpx.AsyncClient, code: str) -> httpx.Response:
    """Open an address with a code as a browser does; the page leads on by itself."""
    page = await client.get("/", params={"code": code})
    onward = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.text)
    return await client.get(onward[1]) if onward else page


@pytest.mark.parametrize("seconds", [0.0, 120.0])
def test_a_code_lets_one_browser_in_for_a_while(tmp_path: Path, seconds: float) -> None:
    app = make_app(settings_of(tmp_path / "data", host="localhost"))
    code = app.opening(seconds)

    async def visits() -> None:
        owner, late = browser_of(app, "localhost"), browser_of(app, "127.0.0.1")
        assert (await owner.head("/", params={"code": code})).status_code == 403, "what looks ahead uses nothing up"
        assert (await owner.get("/", params={"code": [code, "x"]})).status_code == 403
        assert (await opened(owner, code)).status_code == (303 if seconds else 403)
        assert (await owner.get("/")).status_code == (200 if seconds else 403)
        for address in ("/", "/enter"):
            assert (await late.get(address, params={"code": code})).status_code == 403
        assert (await late.get("/")).status_code == 403

    asyncio.run(visits())


def test_a_browser_from_another_site_finds_its_logs_too(tmp_path: Path) -> None:
    """A browser from another site keeps its session, though it first sends no cookie."""
    app = make_app(settings_of(tmp_path / "data", host="localhost"))

    async def visits() -> None:
        client, bare = browser_of(app, "localhost"), browser_of(app, "localhost")
        await opened(client, app.opening())
        first = dict(client.cookies)
        code = app.opening()
        page = await bare.get("/", params={"code": code})
        assert page.status_code == 200 and "set-cookie" not in page.headers
        assert (await client.get("/enter", params={"code": code})).status_code == 303
        (old,), (new,) = first.values(), dict(client.cookies).values()
        assert old != new
        held = app._store._rows("SELECT id FROM sessions")
        assert len(held) == 1, "one session, whose cookie is new"

    asyncio.run(visits())


def test_the_pages_have_a_host_that_only_those_learn_who_are_let_in(tmp_path: Path) -> None:
    app = make_app(settings_of(tmp_path / "data"))
    assert app.own is not None and re.fullmatch(r"veilog-[0-9a-f]{20}\.localhost:8400", app.own)
    own = app.own.partition(":")[0]

    async def visits() -> None:
        stranger, client = browser_of(app, "127.0.0.1"), browser_of(app, own)
        for address in ("/", "/stored", "/nothing", "/enter", "/?code=x", "/static/style.css"):
            answer = await stranger.get(address)
            assert own not in answer.text + str(answer.headers)
        onward = await stranger.get("/", params={"code": app.opening()})
        assert onward.status_code == 303 and onward.headers["location"].startswith(f"http://{own}:8400/?code=")
        assert "set-cookie" not in onward.headers
        assert (await opened(client, onward.headers["location"].partition("code=")[2])).status_code == 303
        assert (await client.get("/")).status_code == 200
        (cookie,) = dict(client.cookies).items()
        for host in ("127.0.0.1", "localhost"):
            thief = browser_of(app, host)
            thief.cookies.update(dict([cookie]))
            assert (await thief.get("/")).status_code == 403, "a cookie counts at the host of the pages alone"
        typed = await stranger.post("/enter", data={"token": TOKEN})
        assert typed.status_code == 303 and typed.headers["location"].startswith(f"http://{own}:8400/?code=")
        assert "http://*.localhost:8400" in (await stranger.get("/")).headers["content-security-policy"]
        assert "localhost" not in (await client.get("/")).headers["content-security-policy"]

    asyncio.run(visits())


def test_the_host_of_the_pages_stays_the_same_and_is_another_for_each_folder(tmp_path: Path) -> None:
    hosts = []
    for folder in ("one", "one", "two"):
        app = make_app(settings_of(tmp_path / folder))
        hosts.append(app.own)
        app._store.close()
    assert hosts[0] == hosts[1] != hosts[2]
    for host in ("localhost", "0.0.0.0", "hospital.example", "127.9.9.9"):
        app = make_app(settings_of(tmp_path / "two", host=host))
        assert app.own is None, "others would not find it"
        app._store.close()


def test_nobody_else_can_listen_where_the_host_of_the_pages_leads() -> None:
    """The server listens on both loopbacks, where browsers look with their cookies."""
    sockets = sockets_at("127.0.0.1", 0)
    names = [sock.getsockname()[:2] for sock in sockets]
    try:
        assert {host for host, _ in names} == {"127.0.0.1", "::1"}
        assert len({port for _, port in names}) == 1
    finally:
        for sock in sockets:
            sock.close()
    (alone,) = sockets_at("localhost", 0)
    alone.close()


def told_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lasting: bool) -> tuple[str, str, Access, int]:
    """Return what a starting server prints, and the address for its browser."""
    started: Queue[str] = Queue()
    told: list[str] = []
    apps: list[Access] = []
    monkeypatch.setattr("webbrowser.open", started.put)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: apps.append(server.config.app))
    monkeypatch.setattr("os.umask", lambda mask: 0o022)
    sockets = sockets_at("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    serve(settings_of(tmp_path / "data", port=port, lasting_token=lasting), sockets, told.append, browser=True)
    for sock in sockets:
        sock.close()
    return told[0], started.get(timeout=60), apps[0], port


def test_what_is_printed_and_what_starts_a_browser_hold_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed addresses hold codes that work once, as other users can read arguments."""
    printed, started, app, port = told_by(tmp_path, monkeypatch, lasting=False)
    codes = [address.partition("?code=")[2] for address in (printed, started)]
    assert TOKEN not in printed + started and len(set(codes)) == 2 and all(codes)

    async def visits() -> None:
        for code in codes:
            client = browser_of(app, "127.0.0.1", port)
            assert (await client.get("/", params={"code": code})).status_code == 303
            assert (await client.get("/", params={"code": code})).status_code == 403
        assert app.own is not None
        owner = browser_of(app, app.own.partition(":")[0], port)
        assert (await owner.post("/enter", data={"token": TOKEN})).status_code == 303
        form = {"once": once_of(await owner.get("/stored")), "token": codes[0]}
        assert (await owner.post("/stored", data=form)).status_code == 403, "a code is no token"

    asyncio.run(visits())


def test_with_a_token_of_a_file_nothing_that_lets_in_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a token from a file the address has no code for container logs to keep."""
    printed, started, _, port = told_by(tmp_path, monkeypatch, lasting=True)
    assert printed == f"http://127.0.0.1:{port}/"
    assert TOKEN not in started and "?code=" in started

"""Access: token, cookie, Host, Origin, sessions, and headers of every answer."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from web_logs import EVOLVE, released, says
from web_serving import SMALL, TOKEN, Served, once_of, raw, read_at_once, served, upload

import veilog
from veilog.ledger.ledger import Ledger
from veilog.web.access.access import authorities

ID = "0123456789abcdef" * 2
PAGES = (
    "/",
    "/stored",
    f"/logs/{ID}/account",
    f"/jobs/{ID}/all.zip",
    f"/logs/{ID}",
    f"/logs/{ID}/exposure",
    f"/logs/{ID}/release",
    f"/jobs/{ID}",
    f"/jobs/{ID}/now",
)
FILES = (f"/jobs/{ID}/files/release.xes", "/static/veilog.js", "/static/htmx.min.js", "/nothing", "/logs")
POSTS = (
    "/logs",
    *(f"/logs/{ID}/{action}" for action in ("columns", "meanings", "read", "method", "plan", "jobs", "delete")),
    *(f"/logs/{ID}/account/{action}" for action in ("limit", "join", "note")),
    *("/example", "/stored", f"/stored/{ID}/take", f"/stored/{ID}/delete", "/leave"),
    *(f"/jobs/{ID}/{action}" for action in ("cancel", "write", "delete")),
)
NO_ACCESS = "This browser has not been let in."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("access") / "data") as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("address", PAGES + FILES)
def test_without_a_cookie_nothing_is_shown(server: Served, address: str) -> None:
    with server.stranger() as stranger:
        answer = stranger.get(address)
        assert answer.status_code == 403
        assert NO_ACCESS in answer.text
        assert TOKEN not in answer.text
        assert "set-cookie" not in answer.headers


@pytest.mark.slow
@pytest.mark.parametrize("address", POSTS)
def test_without_a_cookie_nothing_is_done(server: Served, address: str) -> None:
    with server.stranger() as stranger:
        assert stranger.post(address, data={"once": "x"}).status_code == 403
        assert stranger.put(address).status_code == 403
        assert stranger.delete(address).status_code == 403


def test_the_page_that_refuses_has_its_style(server: Served) -> None:
    with server.stranger() as stranger:
        assert stranger.get("/static/style.css").status_code == 200


@pytest.mark.parametrize("cookie", ["", "x", TOKEN, "0" * 64, "a; b=c", '"', "é"])
def test_a_cookie_that_was_made_up_is_none(server: Served, cookie: str) -> None:
    with server.browser() as client:
        (name,) = client.cookies
    with server.stranger() as stranger:
        headers = [(b"cookie", f"{name}={cookie}".encode())]
        assert stranger.get("/", headers=headers).status_code == 403


def test_odd_cookies_of_other_programs_hide_nothing(server: Served, client: httpx.Client) -> None:
    ((name, value),) = client.cookies.items()
    odd = f'a={{"b": [1, 2]}}; c@d; =; "; {name}={value}; e="f'
    with server.stranger(cookie=odd) as other:
        assert other.get("/").status_code == 200


def test_the_cookie_itself_is_stored_nowhere(server: Served, client: httpx.Client) -> None:
    (cookie,) = client.cookies.values()
    for path in server.settings.folder.rglob("*"):
        assert path.is_dir() or cookie.encode() not in path.read_bytes()
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}"),
        *("localhost", "localhost:{port}.", "127.1:{port}", "0.0.0.0:{port}", "evil@127.0.0.1:{port}"),
        "127.0.0.1:{port}, x",
    ],
)
def test_another_name_for_this_server_is_refused(server: Served, client: httpx.Client, host: str) -> None:
    named = host.format(port=server.settings.port)
    for address in ("/", "/enter?code=x", "/static/style.css", "/nothing"):
        answer = client.get(address, headers={"host": named})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers
    own = {"host": named, "origin": f"http://{named}"}
    assert client.post("/logs", headers=own).status_code == 403


def test_no_host_and_two_hosts_are_refused(server: Served) -> None:
    port = server.settings.port
    good = b"Host: 127.0.0.1:%d\r\n" % port
    assert b" 403 " in raw(port, b"GET / HTTP/1.0\r\n\r\n").split(b"\r\n")[0]
    two = raw(port, b"GET / HTTP/1.1\r\n" + good + b"Host: evil.example\r\nConnection: close\r\n\r\n")
    assert two.split(b"\r\n")[0].split()[1] in (b"400", b"403")


def test_its_own_names_are_taken(server: Served) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST"):
        with httpx.Client(base_url=server.origin, headers={"host": f"{host}:{server.settings.port}"}) as stranger:
            assert NO_ACCESS in stranger.get("/").text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://127.0.0.1"},
        {"origin": "https://127.0.0.1:{port}"},
        {"origin": "http://localhost:{port}"},  # it was opened as 127.0.0.1
        {"origin": "http://127.0.0.1:{port}", "sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:{port}", "sec-fetch-site": "same-site"},
    ],
)
def test_a_form_of_another_site_does_nothing(server: Served, client: httpx.Client, headers: dict[str, str]) -> None:
    sent = {name: value.format(port=server.settings.port) for name, value in headers.items()}
    once = once_of(client.get("/"))
    answer = client.post("/logs", data={"once": once}, files={"file": ("a.csv", SMALL)}, headers=sent)
    assert answer.status_code == 403
    assert "another site" in answer.text
    assert "a.csv" not in client.get("/").text


def test_a_form_without_an_origin_does_nothing(client: httpx.Client) -> None:
    del client.headers["origin"]
    assert client.post("/logs", data={"once": once_of(client.get("/"))}).status_code == 403


def test_every_answer_carries_the_security_headers(server: Served, client: httpx.Client) -> None:
    log = upload(client, SMALL).headers["location"]
    with server.stranger() as stranger:
        answers = [
            *(client.get(address) for address in ("/", log, f"{log}/release", "/nothing", "/static/veilog.js")),
            *(client.head(address) for address in ("/", log)),
            client.post("/enter", data={"token": TOKEN}),
            client.post("/enter", data={"token": "x"}),
            client.put("/"),
            client.post("/logs", content=b"x"),
            stranger.get("/"),
            stranger.get("/", headers={"host": "evil.example"}),
        ]
    assert {answer.status_code for answer in answers} >= {200, 303, 400, 403, 404, 405}
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert "form-action 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        static = answer.request.url.path.startswith("/static/")
        assert answer.headers["cache-control"] == ("no-cache" if static else "no-store")
        assert "server" not in answer.headers or "uvicorn" in answer.headers["server"]  # the command turns it off


def test_pages_hold_nothing_that_the_policy_forbids(client: httpx.Client) -> None:
    """Pages have no inline script or style, and nothing from another host."""
    log = upload(client, SMALL).headers["location"]
    for address in ("/", log, f"{log}/exposure", f"{log}/release", "/nothing"):
        page = client.get(address).text
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
        assert not re.search(r"<script(?![^>]*\ssrc=\"/static/)", page)
        assert not re.search(r'(src|href|action)="(?!/|#)', page)
        assert not re.search(r'<meta name="referrer" content="(?!same-origin)', page), "the browser would hide Origin"


def test_what_is_another_sessions_is_as_unknown_as_what_is_not_there(server: Served) -> None:
    with server.browser() as owner, server.browser() as other:
        log = upload(owner, SMALL, "secret-name.csv").headers["location"]
        (job,) = set(re.findall(r"/jobs/[0-9a-f]{32}", owner.get(log).text))
        unknown = other.get(f"/logs/{ID}")
        assert unknown.status_code == 404
        for address in (
            log,
            f"{log}/exposure",
            f"{log}/release",
            job,
            f"{job}/now",
            f"{job}/files/release.xes",
            f"{log}/account",
            f"{log}/account?beside=1,2",
            f"{log}/compare?release=1&release=2",
            f"{job}/all.zip",
        ):
            answer = other.get(address)
            assert answer.status_code == 404
            assert answer.text == unknown.text
        once = once_of(other.get("/"))
        fields = {"once": once, "method": "evolve", "to": "laplace", "epsilon": "9", "person": "x", "entry": "1"}
        for address in POSTS:
            if ID in address and not address.startswith("/stored"):
                sent = address.replace(f"/logs/{ID}", log).replace(f"/jobs/{ID}", job)
                assert other.post(sent, data=fields).status_code == 404, sent
        assert "secret-name" not in other.get("/").text
        assert owner.get(log).status_code == 200


@pytest.mark.slow
def test_a_draft_is_of_one_browser_though_both_brought_the_same_file(server: Served) -> None:
    with server.browser() as owner, server.browser() as other:
        mine, theirs = (upload(client, SMALL, "same.csv").headers["location"] for client in (owner, other))
        read_at_once(server, mine)
        read_at_once(server, theirs)
        asked = {"method": "laplace", "epsilon": "0.37", "subset": "ward=secret"}
        owner.post(f"{mine}/plan", data=asked, headers={"hx-request": "true"})
        assert 'value="0.37"' in owner.get(f"{mine}/release").text
        shown = other.get(f"{theirs}/release").text
        assert "0.37" not in shown and "ward=secret" not in shown
        assert f"{owner.get(mine).url}"[-32:] not in other.get("/").text


def test_the_mark_of_a_form_is_its_sessions(server: Served) -> None:
    with server.browser() as first, server.browser() as second:
        once = once_of(first.get("/"))
        assert upload(second, SMALL, once=once).status_code == 400
        assert upload(first, SMALL, once=once).status_code == 303


@pytest.mark.parametrize("once", ["", "x", "a.b.c", "0" * 32 + ".0." + "0" * 64, "é.1.é", ".zz."])
def test_a_mark_that_was_made_up_does_nothing(client: httpx.Client, once: str) -> None:
    assert upload(client, SMALL, once=once).status_code == 400


def test_the_names_of_a_server_for_others() -> None:
    assert "hospital.example:80" in authorities("hospital.example", 80)
    assert "hospital.example" in authorities("hospital.example", 80)
    assert authorities("127.0.0.1", 8000) == {"127.0.0.1:8000", "localhost:8000", "[::1]:8000"}
    assert "[fe80::1]:8000" in authorities("fe80::1", 8000)
    assert "0.0.0.0:1" in authorities("0.0.0.0", 1)


# Accounts.


def spend(server: Served, client: httpx.Client, log: str, content: bytes) -> None:
    """Charge the ledger as a worker does for this browser's releases."""
    found = server.store.any_job(_newest(server, log))
    assert found is not None
    table = server.settings.folder / "spend.csv"
    table.write_bytes(content)
    ledger = server.settings.ledger
    veilog.release(veilog.read(table), "evolve", epsilon="0.7", activities="log", ledger=ledger)


def _newest(server: Served, log: str) -> str:
    (job,) = [i for i in server.store.ids()[1] if (f := server.store.any_job(i)) and log.endswith(f[0].log)]
    return job


def planned(client: httpx.Client, log: str, epsilon: str = "0.1") -> str:
    form = {"method": "evolve", "epsilon": epsilon, "labels": "log"}
    told = client.get(f"{log}/check", params=form).text
    return told.replace(log, "LOG")


@pytest.mark.nightly
def test_every_browser_sees_the_sums_of_a_log_and_no_name_of_anothers_file(server: Served) -> None:
    """Every browser sees the sums of a log, and no name of another's file.

    So a private window is no new budget.
    """
    with server.browser() as owner, server.browser() as other:
        mine = upload(owner, SMALL, "ward-7-psychiatry.csv").headers["location"]
        read_at_once(server, mine)
        spend(server, owner, mine, SMALL)
        same = upload(other, SMALL, "again.csv").headers["location"]
        read_at_once(server, same)
        for client, log in ((owner, mine), (other, same)):
            assert "spent" in says(planned(client, log)) and "ε = 0.7" in planned(client, log)
            assert "ε = 0.7 spent" in client.get(f"{log}/account").text
            assert "ε = 0.7 spent" in client.get("/").text
        assert not any("ward-7" in page for page in (planned(other, same), other.get(f"{same}/account").text))
        Ledger.open(server.settings.ledger).set_budget(veilog.read(server.settings.folder / "spend.csv"), "1")
        assert all("refused" in says(planned(client, log, "0.9")) for client, log in ((owner, mine), (other, same)))


@pytest.mark.nightly
def test_a_budget_of_one_log_lets_others_release_and_says_so(tmp_path: Path) -> None:
    with served(tmp_path / "data") as server, server.browser() as owner, server.browser() as other:
        mine = upload(owner, SMALL, "ward-7.csv").headers["location"]
        read_at_once(server, mine)
        spend(server, owner, mine, SMALL)
        table = server.settings.folder / "spend.csv"
        table = table.rename(table.with_name("ward-7.csv"))
        Ledger.open(server.settings.ledger).set_budget(veilog.read(table), "1")
        theirs = upload(other, SMALL.replace(b"see", b"saw")).headers["location"]
        read_at_once(server, theirs)
        said = planned(other, theirs)
        assert "refused" not in says(said) and "beside-budget" in says(said)
        assert "ward-7" not in said and "spend" not in said and "account 1" not in said
        page = other.get(f"{theirs}/account").text
        assert "ward-7" not in page and "spend.csv" not in page and "/account/join" not in page
        join = other.post(f"{theirs}/account/join", data={"once": once_of(other.get("/")), "account": "1"})
        assert join.status_code == 400, "nor can an account be had by its number"
        (path,) = (server.settings.folder / theirs[1:]).iterdir()
        made = released(path, {**EVOLVE, "epsilon": "0.1"}, server.settings, server.settings.folder / "work")
        assert made.entry == 2

"""Addresses: from an upload to a release, repeated forms, and bad requests."""

import datetime
import html
import re
import time
from collections.abc import Iterator

import httpx
import pytest
from refusals import sentence
from web_serving import SMALL, Served, once_of, raw, read_at_once, served, upload
from web_work import made

from veilog.web.jobs.records import FILES
from veilog.web.jobs.results import to_text

LIGHT = 300_000
LAPLACE = {"method": "laplace", "epsilon": "1", "labels": "log", "longest": "log"}
PAGES = ("/", "/nothing", "/static/veilog.js")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("routes") / "data", seed=7) as found:
        yield found


def ask(client: httpx.Client, log: str, **fields: str) -> httpx.Response:
    once = once_of(client.get(f"{log}/release"))
    return client.post(f"{log}/jobs", data={"once": once, **LAPLACE, **fields})


def send(client: httpx.Client, page: str, action: str, **fields: str) -> httpx.Response:
    return client.post(action, data={"once": once_of(client.get(page)), **fields})


@pytest.mark.slow
def test_the_way_from_a_log_to_a_release_and_back_to_nothing(server: Served, client: httpx.Client) -> None:
    log = upload(client, SMALL, "ward.csv").headers["location"]
    assert "ward.csv" in client.get(log).text
    assert client.get(f"{log}/release").status_code == 200
    assert send(client, log, f"{log}/jobs", method="laplace", epsilon="1").status_code == 409
    read_at_once(server, log)
    for page in (log, f"{log}/exposure", f"{log}/release", f"{log}/release?method=travas&epsilon=0.5&delta=1e-6"):
        answer = client.get(page)
        assert answer.status_code == 200
        assert len(answer.content) < LIGHT
        assert "Test mode" in answer.text or "test mode" in answer.text
    job = ask(client, log).headers["location"]
    assert re.fullmatch(r"/jobs/[0-9a-f]{32}", job)
    assert client.get(job).status_code == 200
    assert job in client.get("/").text
    assert send(client, job, f"{job}/cancel").headers["location"] == job
    assert "cancelled" in client.get(job).text.lower()
    assert send(client, job, f"{job}/delete").headers["location"] == "/"
    assert client.get(job).status_code == 404
    other = ask(client, log).headers["location"]
    assert send(client, log, f"{log}/delete").headers["location"] == "/"
    for gone in (log, f"{log}/exposure", other, f"{other}/now"):
        assert client.get(gone).status_code == 404
    assert not list((server.settings.folder / "logs").glob(log.rpartition("/")[2]))


@pytest.mark.slow
def test_columns_chosen_by_hand_are_read_anew(server: Served, client: httpx.Client, log: str) -> None:
    answer = send(client, log, f"{log}/columns", case="activity", activity="case", on_x="drop", evil="1", timestamp="")
    assert answer.headers["location"] == log
    (found,) = [server.store.any_job(job.id) for job in server.store.queued() if _is_of(server, job.id, log)]
    assert found is not None
    assert found[1].columns == {"case": "activity", "activity": "case", "on_x": "drop"}
    assert found[0].kind == "read"


def _is_of(server: Served, job: str, log: str) -> bool:
    found = server.store.any_job(job)
    return found is not None and log.endswith(found[0].log)


@pytest.mark.slow
def test_the_same_form_sent_twice_is_one_release(server: Served, client: httpx.Client, log: str) -> None:
    once = once_of(client.get(f"{log}/release"))
    fields = {"once": once, **LAPLACE}
    first, second = (client.post(f"{log}/jobs", data=fields) for _ in range(2))
    assert first.headers["location"] == second.headers["location"]
    changed = client.post(f"{log}/jobs", data={**fields, "epsilon": "2"})
    assert changed.headers["location"] == first.headers["location"]
    assert len([job for job in server.store.queued() if _is_of(server, job.id, log)]) == 1
    page = client.get(first.headers["location"])
    for _ in range(2):  # deleted twice: the second time leads where the first did, though nothing is there any more
        answer = client.post(f"{first.headers['location']}/delete", data={"once": once_of(page)})
        assert answer.headers["location"] == "/"


@pytest.mark.slow
def test_a_form_that_was_refused_can_be_corrected_and_sent_again(client: httpx.Client, log: str) -> None:
    once = once_of(client.get(f"{log}/release"))
    for wrong in ({"method": "none"}, {"method": "laplace", "epsilon": "-1"}, {"method": "laplace", "epsilon": "x"}):
        answer = client.post(f"{log}/jobs", data={"once": once, **wrong})
        assert answer.status_code == 400
        assert "<form" in answer.text, "the form again, with what is wrong"
    right = client.post(f"{log}/jobs", data={"once": once, **LAPLACE})
    assert right.status_code == 303


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"labels": ""}, "has to know which activities are public"),
        ({"longest": ""}, "has to know how long a trace can be"),
        ({"epsilon": "20"}, "type the word unprotected"),
    ],
)
def test_no_job_is_started_before_all_is_said_that_has_to_be(
    server: Served, client: httpx.Client, log: str, fields: dict[str, str], words: str
) -> None:
    before = server.store.ids()[1]
    answer = ask(client, log, **fields)
    assert answer.status_code == 400
    assert words in html.unescape(answer.text)
    assert server.store.ids()[1] == before
    said = {"epsilon": "20", "allow_no_protection": "unprotected"} if "epsilon" in fields else {}
    assert ask(client, log, **said).status_code == 303


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields", [{"method": "sacofa", "p_rules": "/etc/passwd"}, {"method": "evolve", "activities": "@/etc/passwd"}]
)
def test_no_file_of_the_server_is_read_because_a_form_names_it(
    client: httpx.Client, log: str, fields: dict[str, str]
) -> None:
    answer = client.post(f"{log}/plan", data={**fields, "epsilon": "1"})
    assert "root:" not in answer.text
    assert "root:" not in ask(client, log, **fields).text


@pytest.mark.slow
def test_the_dry_run_is_a_part_or_a_page_and_asks_nothing(server: Served, client: httpx.Client, log: str) -> None:
    fields = {**LAPLACE}
    part = client.post(f"{log}/plan", data=fields, headers={"hx-request": "true"})
    page = client.post(f"{log}/plan", data=fields)
    assert (part.status_code, page.headers["location"]) == (200, f"{log}/release")
    assert "<html" not in part.text
    assert "<html" in client.get(f"{log}/check", params=fields).text
    wrong = client.post(f"{log}/plan", data={**fields, "epsilon": "0"}, headers={"hx-request": "true"})
    assert wrong.status_code == 200, "htmx shows what is wrong only then"
    assert not server.settings.ledger.exists()


@pytest.mark.slow
def test_progress_is_asked_for_by_short_connections(client: httpx.Client, log: str) -> None:
    job = ask(client, log).headers["location"]
    assert f'data-now="{job}/now"' in client.get(job).text
    part = client.get(f"{job}/now")
    assert 'data-stage="queued"' in part.text and "<html" not in part.text
    assert send(client, job, f"{job}/cancel").status_code == 303
    assert 'data-stage="cancelled"' in client.get(f"{job}/now").text
    send(client, job, f"{job}/delete")
    assert client.get(f"{job}/now").status_code == 404


@pytest.mark.slow
def test_downloads_are_attachments_of_a_fixed_list(server: Served, client: httpx.Client, log: str) -> None:
    job = ask(client, log).headers["location"]
    number = job.rpartition("/")[2]
    folder = server.settings.folder / "jobs" / number
    folder.mkdir()
    for name in (*FILES, "result.json", "secret"):
        (folder / name).write_text(name)
    assert client.get(f"{job}/files/release.xes").status_code == 404, "nothing of what is not done"
    server.store.start(number)
    server.store.end(number, "running", "done", to_text(made()), None)
    for name in FILES:
        answer = client.get(f"{job}/files/{name}")
        assert (answer.status_code, answer.text) == (200, name)
        day = datetime.date.today().isoformat()
        stem, _, suffix = name.rpartition(".")
        assert answer.headers["content-disposition"] == f'attachment; filename="{stem}-{day}-eps1.{suffix}"'
        assert answer.headers["content-type"] == "application/octet-stream"
        assert "sandbox" in answer.headers["content-security-policy"]
    for name in ("result.json", "secret", "tmp", "release.xes/", "..%2f..%2f..%2fveilog.sqlite", "RELEASE.XES", "%00"):
        assert client.get(f"{job}/files/{name}").status_code in (404, 400), name


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/static/"]
)
def test_static_files_are_those_in_their_folder(server: Served, client: httpx.Client, path: str) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    request = f"GET {path} HTTP/1.1\r\nHost: {server.origin[7:]}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    assert raw(server.settings.port, request.encode()).startswith(b"HTTP/1.1 404 ")


def test_the_programs_own_files_are_light_and_ours(client: httpx.Client) -> None:
    for name, kind in (("style.css", "text/css"), ("veilog.js", "text/javascript"), ("htmx.min.js", "text/javascript")):
        answer = client.get(f"/static/{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert len(answer.content) < LIGHT
        assert client.get(f"/static/{name}", headers={"if-none-match": answer.headers["etag"]}).status_code == 304
        assert not re.search(rb"@import|url\(\s*['\"]?(https?:)?//", answer.content)


@pytest.mark.slow
def test_browsers_keep_the_programs_files_until_they_change(client: httpx.Client, log: str) -> None:
    addresses = set()
    for page in ("/", f"{log}/exposure", f"{log}/release"):
        found = set(re.findall(r'"(/static/[^"]+)"', client.get(page).text))
        assert {address.partition("?")[0] for address in found} >= {f"/static/{n}" for n in ("style.css", "veilog.js")}
        addresses |= found
    assert [address for address in addresses if address.startswith("/static/htmx.min.js?v=")]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        for other in (address.partition("?")[0], address + "0"):
            assert client.get(other).headers["cache-control"] == "no-cache", "it may be another version's"


@pytest.mark.slow
def test_a_head_is_a_get_without_a_body(client: httpx.Client, log: str) -> None:
    job = ask(client, log).headers["location"]
    for address in (
        "/",
        log,
        f"{log}/exposure",
        f"{log}/release",
        job,
        f"{job}/now",
        "/nothing",
        "/static/veilog.js",
    ):
        answer = client.head(address)
        assert answer.content == b""
        assert answer.status_code == (404 if address == "/nothing" else 200)


@pytest.mark.slow
@pytest.mark.parametrize("address", ["/nothing", "/logs/", "/jobs", "/logs/x", "/jobs/" + "0" * 33, "//", "/%00", "/é"])
def test_what_is_not_there_is_a_page_too(client: httpx.Client, server: Served, address: str) -> None:
    answer = client.send(client.build_request("GET", httpx.URL(server.origin + address)))
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<p class="eyebrow">404</p>' in answer.text


@pytest.mark.slow
def test_a_method_that_an_address_does_not_take_is_told(client: httpx.Client, log: str) -> None:
    for method, address in (
        ("GET", "/logs"),
        ("POST", "/"),
        ("PUT", log),
        ("DELETE", log),
        ("GET", f"{log}/plan"),
        ("OPTIONS", "/"),
    ):
        answer = client.request(method, address)
        assert answer.status_code == 405
        assert "<html" in answer.text
        assert answer.headers["allow"]


@pytest.mark.slow
def test_forms_that_are_not_ours_are_refused_on_a_page(client: httpx.Client, log: str) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    action = f"{log}/columns"
    assert client.post(action, content=b"x=" + b"y" * (1 << 20), headers=form).status_code == 413
    assert client.post(action, content=b"&".join([b"x=1"] * 6000), headers=form).status_code == 400
    assert client.post(action, content=b'{"case": 1}', headers={"content-type": "application/json"}).status_code == 400
    assert client.post(action, content=b"\xff=%ff&%&=&&", headers=form).status_code == 400
    assert client.post("/logs", content=b"x", headers=form).status_code == 400


@pytest.mark.slow
def test_a_full_disk_is_told_on_a_page_and_passes(server: Served, client: httpx.Client, log: str) -> None:
    connection = server.store._connection
    with server.store.lock:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    try:
        full = [upload(client, SMALL, f"{'x' * 190}{number}.csv") for number in range(60)]
        assert {answer.status_code for answer in full} <= {303, 507}
        assert full[-1].status_code == 507 and sentence("disk-full") in full[-1].text
        assert client.get(log).status_code == 200
    finally:
        with server.store.lock:
            connection.execute("PRAGMA max_page_count = 1000000000")
    assert upload(client, SMALL).status_code == 303
    assert len(list((server.settings.folder / "incoming").iterdir())) == 0


@pytest.mark.slow
def test_a_page_is_there_while_an_upload_is_on_its_way(client: httpx.Client, server: Served) -> None:
    once = once_of(client.get("/"))

    def slowly() -> Iterator[bytes]:
        yield f'--B\r\nContent-Disposition: form-data; name="once"\r\n\r\n{once}\r\n'.encode()
        yield b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(3):
            yield SMALL
            with server.browser() as other:
                assert other.get("/").status_code == 200
            time.sleep(0.01)
        yield b"\r\n--B--\r\n"

    answer = client.post("/logs", content=slowly(), headers={"content-type": "multipart/form-data; boundary=B"})
    assert answer.status_code == 303


@pytest.mark.slow
def test_a_forecast_costs_nothing_and_the_same_is_not_tried_twice(
    server: Served, client: httpx.Client, log: str
) -> None:
    asked = {"method": "evolve", "epsilon": "1", "labels": "log"}
    waiting = len(server.store.queued())

    def looked(**fields: str) -> str:
        return client.post(f"{log}/plan", data={**asked, **fields}, headers={"hx-request": "true"}).text

    assert 'data-says="trying"' in looked() and 'hx-post="plan"' in looked(epsilon="0.2")
    assert len(server.store.queued()) == waiting + 1, "the curve is of every budget"
    looked(times="0.3")
    assert len(server.store.queued()) == waiting + 1, "in place of the one before"
    (job,) = server.store.jobs_of(log[-32:], "forecast")
    assert job.kind == "forecast" and job.request.form["times"] == "0.3"
    assert client.get(f"/jobs/{job.id}").headers["location"] == f"{log}/release"
    assert job.id not in client.get("/").text
    assert 'role="alert"' in looked(epsilon="much"), "a mistake is said, and nothing is tried"
    assert len(server.store.jobs_of(log[-32:], "forecast")) == 1
    assert not server.settings.ledger.exists()


@pytest.mark.slow
def test_nobody_asks_for_the_forecast_of_another_browser(server: Served, client: httpx.Client, log: str) -> None:
    with server.browser() as other:
        assert other.post(f"{log}/plan", data={"method": "evolve", "epsilon": "1"}).status_code == 404
        assert other.get(f"{log}/check").status_code == other.get(f"{log}/explore").status_code == 404

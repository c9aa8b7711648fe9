"""Thousands of hostile requests cause no defect, no leak and no file elsewhere."""

import random
import socket
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from web_serving import SMALL, TOKEN, Served, once_of, read_at_once, served, upload

from veilog.methods import METHODS
from veilog.web.access.access import new_once
from veilog.web.jobs.records import FILES
from veilog.web.work.request import FIELDS

SECRET = "the-neighbours-secret"
NASTY = (
    *("", " ", "\0", "\r\n", "%00", "%0d%0aset-cookie:a=b", "'", '"', "<script>", "{{7*7}}", "${7*7}", "🙂", "\u202e"),
    *("../", "..%2f..%2f..%2fetc%2fpasswd", "/etc/passwd", "@/etc/passwd", "file:///etc/passwd", "C:\\x", "~root", "."),
    *(
        "-1",
        "0",
        "1e999",
        "-0",
        "nan",
        "inf",
        "1/0",
        "1/3",
        "9" * 50,
        "9" * 5000,
        "1,5",
        "0x10",
        "1_000",
        "١",
        "1e-999",
    ),
    *("x" * 10_000, "a,b," * 500, "None", "true", "[]", "{}", "case", "person", "case:concept:name", "2024-01-01"),
    *("' OR 1=1 --", "; rm -rf /", "|id", "`id`", "$(id)", "%s%n", "a\nb", "log", "evolve", "rules_file=/etc/passwd"),
    *("\ud800", "9999-99-99", "١"),
)
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=B"
HEADERS = ("hx-request", "range", "if-none-match", "if-modified-since", "accept", "x-forwarded-host")
VALUES = ("true", "bytes=0-1,5-", "bytes=99999-", "evil.example", "*", "x" * 5000)
REQUESTS = 3_500


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("fuzz") / "data", max_upload=200_000) as found:
        yield found


PAGES = ("", "/exposure", "/explore", "/release", "/expert", "/check", "/account", "/now", "/all.zip", "/files/")
ACTIONS = (
    *("/columns", "/expert", "/check", "/plan", "/plan", "/jobs", "/jobs", "/sign", "/cancel", "/write", "/delete"),
    *("/account/limit", "/account/join", "/account/note", "/take", "/prior"),
)


class Fuzzer:
    """Browser with random requests, and a neighbour's log and job to find."""

    def __init__(self, server: Served, client: httpx.Client, neighbours: list[str], seed: int) -> None:
        self.random = random.Random(seed)
        self.server, self.client, self.neighbours = server, client, neighbours
        self.renew()
        (record,) = [log for log in server.store.every_log() if self.log.endswith(log.id)]
        self.session, self.key = record.session, server.store.key()

    def renew(self) -> None:
        """Bring a log and a job on it again, if the last ones were deleted."""
        self.log = upload(self.client, SMALL).headers["location"]
        read_at_once(self.server, self.log)
        once = once_of(self.client.get(self.log))
        form = {
            "once": once,
            "method": "laplace",
            "epsilon": "1",
            "labels": "log",
            "longest": "log",
            "again": "yes",
        }
        limit = {"once": once, "epsilon": "1000"}  # what a wild form may have made less
        assert self.client.post(f"{self.log}/account/limit", data=limit).status_code == 303
        self.job = self.client.post(f"{self.log}/jobs", data=form).headers["location"]

    def text(self) -> str:
        pick = self.random.random()
        if pick < 0.7:
            return self.random.choice(NASTY)
        letters = string.printable if pick < 0.9 else "".join(map(chr, range(0x20, 0x400)))
        return "".join(self.random.choices(letters, k=self.random.randrange(30)))

    def address(self, ends: tuple[str, ...]) -> str:
        kind = self.random.choice([*[self.log] * 5, *[self.job] * 3, *self.neighbours, "/static", "/logs", "/jobs", ""])
        if kind.count("/") < 2:
            return f"{kind}/{self.quoted()}"
        address = kind + (self.quoted() if self.random.random() < 0.1 else self.random.choice(ends))
        if address.endswith("/files/"):
            address += self.random.choice([*FILES, self.quoted(), self.quoted()])
        if self.random.random() < 0.3:
            address += f"?{self.quoted()}={self.quoted()}&method={self.quoted()}&epsilon={self.quoted()}"
        return address

    def quoted(self) -> str:
        return quote(self.text().encode("utf-8", "surrogatepass"), safe=self.random.choice(["", "./%", "/"]))[:3000]

    def fields(self) -> dict[str, str]:
        """Return a form for a release, mostly a good one with a fault."""
        method = self.random.choice([*METHODS, self.text()])
        fields = {"once": self.once(), "method": method, "epsilon": self.random.choice(["1", "0.1", self.text()])}
        parameters = [f"p_{p.name}" for p in METHODS[method].parameters] if method in METHODS else ["p_x"]
        names = [
            *FIELDS[2:],
            *parameters,
            "case",
            "on_x",
            "person",
            "is_x",
            "d_x",
            "method_before",
            "ok_unit",
            "name",
            "entry",
            "note",
            "grant",
            "account",
            self.text(),
        ]
        for name in self.random.sample(names, self.random.randrange(3)):
            fields[name] = self.text()
        return fields

    def once(self) -> str:
        """Return the mark that any page of this browser would have, without a request."""
        return self.text() if self.random.random() < 0.2 else new_once(self.key, self.session)

    def encoded(self, fields: dict[str, str]) -> bytes:
        pairs = [(name.encode("utf-8", "replace"), value.encode("utf-8", "replace")) for name, value in fields.items()]
        return b"&".join(quote(name).encode() + b"=" + quote(value).encode() for name, value in pairs)

    def body(self) -> tuple[bytes, str]:
        """Return a body and its content type."""
        match self.random.randrange(8):
            case 0:
                return self.random.randbytes(self.random.randrange(2000)), self.random.choice([FORM, PARTS])
            case 1:
                return b"x=" + b"y" * 300_000, FORM
            case 2 | 3:
                return self.parts(), PARTS
            case _:
                return self.encoded(self.fields()), FORM

    def parts(self) -> bytes:
        """Return an upload, sometimes cut off."""
        disposition = "--B\r\nContent-Disposition: form-data; name="
        name = self.random.choice(["file", "file", "once", self.text()])
        file = self.text() + self.random.choice([".csv", ".xes", ".bpmn", ""])
        head = f'{disposition}"once"\r\n\r\n{self.once()}\r\n{disposition}"{name}"; filename="{file}"\r\n\r\n'
        content = self.random.choice([SMALL, b"", b"x" * 300_000, self.random.randbytes(500)])
        whole = head.encode("utf-8", "replace") + content + b"\r\n--B--\r\n"
        return whole if self.random.random() < 0.7 else whole[: self.random.randrange(len(whole))]

    def ask(self) -> httpx.Response:
        if self.server.store.any_job(self.job[-32:]) is None:
            self.renew()
        method = self.random.choice(["GET"] * 7 + ["POST"] * 14 + ["HEAD", "PUT", "DELETE", "PATCH", "TRACE", "X"])
        address = self.address(PAGES if method in ("GET", "HEAD") else ACTIONS)
        headers = {}
        content = None
        if method not in ("GET", "HEAD"):
            content, headers["content-type"] = self.body()
            if headers["content-type"] == PARTS:
                method, address = "POST", self.random.choice(["/logs", f"{self.log}/prior"])
        if self.random.random() < 0.2:
            headers[self.random.choice(HEADERS)] = self.random.choice(VALUES)
        return self.client.request(method, address, content=content, headers=headers)


def written(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.nightly
def test_no_request_finds_a_defect_a_secret_or_a_way_out(server: Served) -> None:
    outside = server.settings.folder.parent
    with server.browser() as owner, server.browser() as client:
        hidden = upload(owner, SMALL.replace(b"see", SECRET.encode()), f"{SECRET}.csv").headers["location"]
        read_at_once(server, hidden)
        form = {"once": once_of(owner.get("/")), "method": "laplace", "epsilon": "1", "labels": "log", "longest": "log"}
        job = owner.post(f"{hidden}/jobs", data=form).headers["location"]
        fuzzer = Fuzzer(server, client, [hidden, job], seed=20)
        seen: Counter[int] = Counter()
        for number in range(REQUESTS):
            try:
                answer = fuzzer.ask()
            except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError):
                continue  # the browser's side already refuses to send it
            seen[answer.status_code] += 1
            request = answer.request
            told = (number, answer.status_code, request.method, request.url, request.content[:3000])
            assert answer.status_code < 500, told
            assert SECRET not in answer.text
            assert TOKEN not in answer.text
            assert "root:" not in answer.text
            assert str(server.settings.folder) not in answer.text
            assert "Traceback" not in answer.text
            assert "set-cookie" not in answer.headers
            assert "content-security-policy" in answer.headers
            assert not answer.headers.get("location", "/").startswith("//")
            if answer.headers.get("content-type", "").startswith("text/html"):
                assert "<script>" not in answer.text
        print(sorted(seen.items()))
        assert {200, 303, 400, 404, 405, 413} <= set(seen)
        assert sum(seen.values()) > REQUESTS * 0.9
        assert min(seen[200], seen[303]) > REQUESTS / 50, "enough of them must come through"
        assert owner.get(job).status_code == 200, "what is the neighbour's is still there"
        assert SECRET in owner.get(hidden).text
    data = server.settings.folder
    assert all(path.is_relative_to(data) for path in written(outside))
    names = {path.name for path in written(data)}
    own = {name for name in names if not name.startswith(("veilog.sqlite", "veilog.ledger"))}
    assert own <= {"log.csv", "log.xes", "result.json", "prior.csv", "prior.xes", "prior.bpmn"}
    assert list((data / "incoming").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"POST /logs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /logs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /logs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nZZ\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n",
    ],
)
def test_bytes_that_are_hardly_http_do_no_harm(server: Served, request_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.settings.port), timeout=20) as connection:
        try:  # the server may have hung up before it has read all
            connection.sendall(request_)
            connection.shutdown(socket.SHUT_WR)
            first = connection.recv(100)
        except OSError:
            first = b""
    assert first == b"" or first.split()[1] in (b"400", b"403", b"404", b"421", b"431")
    with server.browser() as client:
        assert client.get("/").status_code == 200

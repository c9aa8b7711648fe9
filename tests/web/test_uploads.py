"""Uploads: streamed, limited, whole or not at all, and named by us."""

import asyncio
import contextlib
import errno
import itertools
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused, sentence
from starlette.requests import Request
from web_serving import SMALL, Served, once_of, served, upload

from veilog.logs.input.formats import known_suffixes
from veilog.web.access.transfers import Upload, receive, shorten_name, suffix_of
from veilog.web.jobs.records import Problem

FORM = "multipart/form-data; boundary=B"


def body(content: bytes, name: str = "log.csv", before: bytes = b"", end: bytes = b"--B--\r\n") -> bytes:
    head = f'--B\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return before + head + content + b"\r\n" + end


def field(name: str, value: str) -> bytes:
    return f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()


def sent(stream: Callable[[], AsyncIterator[bytes]], kind: str, length: int | None = None) -> Request:
    """Return a request with this stream as its body."""
    headers = {"content-type": kind} | ({} if length is None else {"content-length": str(length)})
    return cast(Request, SimpleNamespace(headers=headers, stream=stream))


def received(target: Path, *chunks: bytes, kind: str = FORM, length: int | None = None, limit: int = 1 << 20) -> Upload:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return asyncio.run(receive(sent(stream, kind, length), target, limit))


def test_a_file_comes_with_its_fields(tmp_path: Path) -> None:
    got = received(tmp_path / "x", body(SMALL, "ward 7.csv", before=field("once", "abc")))
    assert (got.name, got.size, got.fields) == ("ward 7.csv", len(SMALL), {"once": "abc"})
    assert got.path.read_bytes() == SMALL


@pytest.mark.slow
@given(content=st.binary(max_size=300), cuts=st.lists(st.integers(0, 600), max_size=8))
def test_it_does_not_matter_how_the_network_cuts_it(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, cuts: list[int]
) -> None:
    target = tmp_path_factory.mktemp("cut") / "x"
    whole = body(content, before=field("once", "1")) if b"--B" not in content else body(b"")
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    got = received(target, *(whole[a:b] for a, b in itertools.pairwise(places)))
    assert target.read_bytes() == (content if b"--B" not in content else b"")
    assert got.fields == {"once": "1"}


@pytest.mark.slow
@given(
    st.binary(max_size=400),
    st.sampled_from([FORM, "multipart/form-data", "text/plain", "", "multipart/form-data; boundary="]),
)
def test_whatever_comes_is_taken_whole_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, garbage: bytes, kind: str
) -> None:
    folder = tmp_path_factory.mktemp("garbage")
    for sent in (garbage, b"--B" + garbage, body(b"x", before=b"--B\r\n" + garbage), body(b"x") + garbage):
        try:
            received(folder / "x", sent, kind=kind)
            (folder / "x").unlink()
        except Problem as problem:
            assert problem.status == 400
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("place", [0, 1, 40, 90, 120, -3, -4, -7])
def test_an_upload_that_is_cut_off_leaves_nothing(tmp_path: Path, place: int) -> None:
    with refused(Problem, "upload-cut-off", "upload-file-not-chosen", "upload-form-without-file"):
        received(tmp_path / "x", body(SMALL)[:place])
    assert list(tmp_path.iterdir()) == []


def test_a_browser_that_goes_away_leaves_nothing(tmp_path: Path) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield body(SMALL)[:100]
        raise ConnectionError

    with pytest.raises(ConnectionError):
        asyncio.run(receive(sent(stream, FORM), tmp_path / "x", 1000))
    assert list(tmp_path.iterdir()) == []


def test_the_limit_holds_while_it_streams(tmp_path: Path) -> None:
    largest = 0

    async def stream() -> AsyncIterator[bytes]:
        nonlocal largest
        yield body(b"", end=b"")[:-2]
        for _ in range(300):
            yield b"x" * 65536
            largest = max([largest, *(path.stat().st_size for path in tmp_path.iterdir())])

    with pytest.raises(Problem) as told:
        asyncio.run(receive(sent(stream, FORM), tmp_path / "x", 5 << 20))
    assert told.value.status == 413
    assert "5 MiB" in told.value.problem
    assert 0 < largest <= 6 << 20
    assert list(tmp_path.iterdir()) == []


def test_the_limit_is_exact(tmp_path: Path) -> None:
    assert received(tmp_path / "x", body(b"x" * 100), limit=100).size == 100
    with pytest.raises(Problem) as told:
        received(tmp_path / "y", body(b"x" * 101), limit=100)
    assert told.value.status == 413


def test_what_says_that_it_is_too_large_is_not_written_at_all(tmp_path: Path) -> None:
    with pytest.raises(Problem) as told:
        received(tmp_path / "x", body(b"x"), length=3 << 30, limit=2 << 30)
    assert told.value.status == 413


def test_two_files_at_once_are_refused(tmp_path: Path) -> None:
    with refused(Problem, "upload-files-several"):
        received(tmp_path / "x", body(SMALL, end=b"") + body(SMALL))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "before",
    [field("f", "x" * 10_000), b"".join(field(f"f{n}", "x") for n in range(50)), b"--B\r\nX: " + b"y" * 200_000],
    ids=["a long field", "many fields", "a long header"],
)
def test_a_form_that_is_not_ours_is_refused(tmp_path: Path, before: bytes) -> None:
    with refused(Problem, "upload-cut-off"):
        received(tmp_path / "x", body(SMALL, before=before))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(self: Any) -> None:
        raise OSError(number, "no space")

    monkeypatch.setattr("veilog.web.access.transfers._Form.write", full)
    with pytest.raises(Problem) as told:
        received(tmp_path / "x", body(SMALL))
    assert told.value.status == 507
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_for_it_is_told_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(Problem) as told:
        received(tmp_path / "x", body(SMALL), length=1 << 60, limit=1 << 61)
    assert told.value.status == 507


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        *(("a.xes", ".xes"), ("A.XES.GZ", ".xes.gz"), ("a.b.csv", ".csv"), ("x" * 10_000 + ".parquet", ".parquet")),
        *(("../../etc/passwd.tsv", ".tsv"), ("<script>.csv.gz", ".csv.gz")),
    ],
)
def test_the_format_goes_by_the_end_of_the_name(name: str, suffix: str) -> None:
    assert suffix_of(name, known_suffixes()) == suffix


@pytest.mark.parametrize("name", ["", "log", "log.exe", "log.xes.exe", "xes", "log.csv/x", "log.7z"])
def test_a_name_without_a_format_is_refused(name: str) -> None:
    with refused(Problem, "upload-ending-not-read"):
        suffix_of(name, known_suffixes())


@pytest.mark.slow
@given(st.text(max_size=400))
def test_a_name_is_shown_short_and_without_what_is_not_seen(name: str) -> None:
    shown = shorten_name(name)
    assert 0 < len(shown) <= 200
    assert shown.isprintable()


def test_a_long_name_keeps_both_ends() -> None:
    shown = shorten_name("start" + "x" * 10_000 + "end.xes")
    assert shown.startswith("startx")
    assert shown.endswith("xend.xes")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("uploads") / "data", max_upload=1 << 20) as found:
        yield found


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>.csv", "../../../../evil.csv", "x" * 10_000 + ".csv", "‮\x01.csv"]
)
def test_a_hostile_name_is_shown_and_does_nothing(server: Served, name: str) -> None:
    with server.browser() as client:
        log = upload(client, SMALL, name)
        assert log.status_code == 303
        page = client.get(log.headers["location"])
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert len(page.text) < 300_000
        (kept,) = (server.settings.folder / "logs" / log.headers["location"].rpartition("/")[2]).iterdir()
        assert kept.name == "log.csv"
        assert kept.read_bytes() == SMALL
    assert not list(server.settings.folder.parent.rglob("evil*"))


def test_what_is_too_large_is_told_on_a_page(server: Served) -> None:
    with server.browser() as client:
        before = server.files()
        answer = upload(client, b"x" * (3 << 20))
        assert answer.status_code == 413
        assert sentence("upload-too-large", n=server.settings.max_upload >> 20) in answer.text
        assert server.files() == before
        assert upload(client, b"no file", "").status_code == 400
        assert upload(client, SMALL, "log.exe").status_code == 400
        assert server.files() == before


def test_a_connection_that_breaks_leaves_nothing(server: Served) -> None:
    with server.browser() as client:
        once = once_of(client.get("/"))
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        before = server.files()
        sent = body(b"x" * 500_000, before=field("once", once), end=b"")
        head = f"POST /logs HTTP/1.1\r\nHost: {server.origin[7:]}\r\nOrigin: {server.origin}\r\nCookie: {cookie}\r\n"
        head += f"Content-Type: {FORM}\r\nContent-Length: 900000\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.settings.port)) as connection:
            connection.sendall(head.encode() + sent)
            until = time.monotonic() + 60
            while server.files() == before and time.monotonic() < until:
                time.sleep(0.02)
            assert server.files() != before, "it is being written"
        until = time.monotonic() + 60
        while server.files() != before and time.monotonic() < until:
            time.sleep(0.02)
        assert server.files() == before
        assert client.get("/").status_code == 200


def test_the_same_upload_sent_twice_is_one_log(server: Served) -> None:
    with server.browser() as client:
        once = once_of(client.get("/"))
        first, second = (upload(client, SMALL, "twice.csv", once) for _ in range(2))
        assert first.headers["location"] == second.headers["location"]
        assert set(re.findall(r"/logs/[0-9a-f]{32}", client.get("/").text)) == {first.headers["location"]}
        assert list((server.settings.folder / "incoming").iterdir()) == []


# What speaks against an upload is looked for before any of it is there.


def head_of(server: Served, client: httpx.Client, *headers: str) -> bytes:
    """Return the first bytes with which a browser sends a log."""
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    lines = (f"Host: {server.origin[7:]}", f"Origin: {server.origin}", f"Cookie: {cookie}", f"Content-Type: {FORM}")
    return "\r\n".join(("POST /logs HTTP/1.1", *lines, *headers, "", "")).encode()


def sent_in_chunks(server: Served, client: httpx.Client, once: str, size: int) -> socket.socket:
    """Return a connection with the begun upload of a log of undeclared length."""
    connection = socket.create_connection(("127.0.0.1", server.settings.port), timeout=30)
    connection.sendall(head_of(server, client, "Transfer-Encoding: chunked"))
    data = body(b"x" * size, before=field("once", once), end=b"")
    connection.sendall(b"%x\r\n%s\r\n" % (len(data), data))
    return connection


def within(seconds: float, true: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return true()


def bytes_of(server: Served) -> int:
    return sum(path.stat().st_size for path in (server.settings.folder / "incoming").iterdir())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a server for uploads above the block that is written at once."""
    with served(tmp_path_factory.mktemp("large") / "data") as found:
        yield found


@pytest.mark.slow
def test_of_one_browser_two_uploads_come_at_once(large: Served) -> None:
    server = large
    with server.browser() as client, server.browser() as other, contextlib.ExitStack() as stack:
        once = once_of(client.get("/"))
        for _ in range(6):
            stack.enter_context(sent_in_chunks(server, client, once, 1_200_000))
        assert within(60, lambda: bytes_of(server) > 2 << 20)
        time.sleep(0.5)
        assert len(list((server.settings.folder / "incoming").iterdir())) == 2
        assert bytes_of(server) < 3 << 20
        refused = client.post("/logs", data={"once": once}, files={"file": ("a.csv", SMALL)})
        assert refused.status_code == 429
        assert upload(other, SMALL).status_code == 303, "nobody else is"
    assert within(60, lambda: bytes_of(server) == 0)
    with server.browser() as client:
        assert upload(client, SMALL).status_code == 303


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_what_would_be_refused_in_the_end_is_not_written(tmp_path: Path, full: bool) -> None:
    """An upload without a form's mark, or beyond the browser's limit, is not written."""
    with served(tmp_path / "data", max_kept=1) as server, server.browser() as client:
        if full:
            assert upload(client, SMALL).status_code == 303
        mark = once_of(client.get("/")) if full else "x"
        before = bytes_of(server)
        with sent_in_chunks(server, client, mark, 1_500_000) as connection:
            for _ in range(5):
                connection.sendall(b"%x\r\n%s\r\n" % (1 << 20, b"x" * (1 << 20)))
            time.sleep(0.5)
            assert bytes_of(server) == before
            connection.sendall(b"0\r\n\r\n")
            assert connection.recv(65536).split(b" ")[1] == (b"507" if full else b"400")


@pytest.mark.slow
def test_uploads_leave_room_for_the_ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uploads leave room for the ledgers, so that every charge can be entered."""
    room = 100 << 20
    written: list[int] = []

    def disk_usage(folder: Path) -> SimpleNamespace:
        written.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
        return SimpleNamespace(free=room - written[-1])

    monkeypatch.setattr("veilog.web.access.transfers.shutil.disk_usage", disk_usage)
    for length in (None, 50 << 20):
        with pytest.raises(Problem) as told:
            received(tmp_path / "x", *[body(b"", end=b"")[:-2], *[b"x" * (1 << 20)] * 50], length=length, limit=1 << 30)
        assert told.value.status == 507
        assert list(tmp_path.iterdir()) == []
    assert 30 << 20 < max(written) <= room - (64 << 20)


@pytest.mark.nightly
def test_an_upload_that_stands_still_is_given_up(large: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    server = large
    monkeypatch.setattr("veilog.web.access.access._STALLED", 1.0)
    with server.browser() as client, sent_in_chunks(server, client, once_of(client.get("/")), 1_200_000) as connection:
        assert within(60, lambda: bytes_of(server) > 0)
        assert connection.recv(65536).split(b" ")[1] == b"400"
        assert within(60, lambda: bytes_of(server) == 0)

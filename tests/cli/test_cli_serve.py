"""``veilog serve``: refusals before it starts, its output, and its end by Ctrl-C."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from refusals import sentence

import veilog
from veilog import cli
from veilog._files import data_folder, default_ledger
from veilog.logs.synthetic.hospital import hospital
from veilog.web import server
from veilog.web.jobs.records import ServerSettings

GOOD = "0123456789abcdefABCDEF"


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["serve", "--no-open", *arguments]) in (1, 2, 5)
    return " ".join(capsys.readouterr().err.split())


def kept(folder: Path, token: str, mode: int = 0o600) -> str:
    """Write a file with a token, and return its path."""
    path = folder / "token"
    path.write_text(token)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "hospital.example", "127.0.0.1.evil.example"])
def test_others_are_let_in_with_a_token_only(tmp_path: Path, capsys: pytest.CaptureFixture[str], host: str) -> None:
    assert "--token-file" in refused(capsys, "--host", host, "--folder", str(tmp_path / "data"))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1", "LOCALHOST"])
def test_this_machine_needs_none(host: str) -> None:
    assert server.is_loopback(host)


@pytest.mark.parametrize("token", ["", "short", "x" * 19, "with spaces in the middle", "é" * 30, "two\nlines" * 5])
def test_a_weak_token_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], token: str) -> None:
    kept(tmp_path, token)
    said = refused(capsys, "--token-file", str(tmp_path / "token"), "--folder", str(tmp_path / "data"))
    assert sentence("server-token-too-short", shortest_token=20) in said
    assert sentence("server-token-not-readable") in refused(capsys, "--token-file", str(tmp_path / "none"))


def test_a_token_is_its_line(tmp_path: Path) -> None:
    kept(tmp_path, f"{GOOD}\n")
    assert server.token_in(tmp_path / "token") == GOOD


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert sentence("server-folder-in-use") in refused(capsys, "--folder", str(tmp_path))
    assert sentence("server-folder-not-folder") in refused(capsys, "--folder", str(tmp_path / "thesis.txt"))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_command_python_and_pages_have_one_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("VEILOG_LEDGER")
    own = default_ledger()
    assert own is not None and own.parent == data_folder()
    veilog.release(hospital(30, seed=1), "evolve", epsilon=1, activities="log")
    assert own.exists()
    place = server.prepare_folder(data_folder())  # a ledger that was there first does not keep the pages out
    assert server.ledger_in(place, None, usual=True, seeded=False).samefile(own)
    other = tmp_path / "other.ledger"
    assert server.ledger_in(place, other, usual=True, seeded=False) == other
    assert server.ledger_in(place, None, usual=True, seeded=True).name == "test-veilog.ledger"
    apart = server.prepare_folder(tmp_path / "apart")
    assert server.ledger_in(apart, None, usual=False, seeded=False) == apart / "veilog.ledger"
    monkeypatch.setenv("VEILOG_LEDGER", str(other))
    assert server.ledger_in(place, None, usual=True, seeded=False) == other
    monkeypatch.setenv("VEILOG_LEDGER", "none")
    assert server.ledger_in(place, None, usual=True, seeded=False) == place / "veilog.ledger"


@pytest.mark.skipif(os.name != "posix", reason="modes of folders")
def test_a_folder_that_others_may_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    assert "chmod 700" in refused(capsys, "--folder", str(tmp_path / "open"))
    made = server.prepare_folder(tmp_path / "new" / "data")
    assert made.stat().st_mode & 0o777 == 0o700


def test_what_the_last_run_did_not_finish_to_upload_is_deleted(tmp_path: Path) -> None:
    made = server.prepare_folder(tmp_path / "data")
    (made / "veilog.sqlite").touch()
    (made / "incoming" / "half").write_text("x")
    server.prepare_folder(made)
    assert list((made / "incoming").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value", "least", "most"),
    [("port", 70_000, 0, 65_535), ("workers", 0, 1, 64), ("max-upload", 0, 1, 1 << 20), ("seed", -1, 0, 1 << 62)],
)
def test_numbers_out_of_range_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, value: int, least: int, most: int
) -> None:
    said = sentence("option-out-of-range", name=name, value=value, least=least, most=most)
    assert said in refused(capsys, f"--{name}", str(value), "--folder", str(tmp_path / "data"))
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen" in refused(capsys, "--port", port, "--folder", str(tmp_path / "data"))


@pytest.mark.slow
def test_without_the_extra_it_says_what_to_install() -> None:
    """The command names the missing extra, tested in a process of its own."""
    without = "import sys; sys.modules['uvicorn'] = None; from veilog.cli import main; sys.exit(main(['serve']))"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "pip install 'veilog[web]'" in done.stderr


def test_the_data_folder_is_where_programs_keep_theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if sys.platform in ("win32", "darwin"):
        pytest.skip("XDG is for others")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "veilog"


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o602])
def test_a_token_that_others_may_read_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int) -> None:
    said = refused(capsys, "--token-file", kept(tmp_path, GOOD, mode), "--folder", str(tmp_path / "data"))
    assert "chmod 600" in said
    assert not (tmp_path / "data").exists()


def test_the_address_holds_no_token(tmp_path: Path) -> None:
    settings = ServerSettings(folder=tmp_path, ledger=tmp_path / "l", token=GOOD, port=8400)
    assert server.url_of(settings) == "http://127.0.0.1:8400/"
    assert server.url_of(settings, "c0de") == "http://127.0.0.1:8400/?code=c0de"
    assert GOOD not in repr(settings)


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "veilog", "serve", "--no-open", "--folder", str(tmp_path / "data"), "--seed", "1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    server = subprocess.Popen(command, **pipes, text=True, start_new_session=True)
    assert server.stdout
    assert server.stderr
    try:
        url = server.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        assert re.search("type [0-9a-f]{64}$", server.stdout.readline())
        assert str(tmp_path / "data") in server.stdout.readline()
        assert "Test mode" in server.stdout.readline()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(url.partition("?")[0])
        # A second server on the same folder is refused, whatever its port.
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 1
        assert str(tmp_path / "data") in second.stderr and "--folder" in second.stderr
        os.killpg(server.pid, signal.SIGINT)  # as Ctrl-C in a terminal, which its workers get, too
        assert server.wait(60) == 0
        assert server.stderr.read() == ""
    finally:
        server.kill()
        server.communicate()
    assert (tmp_path / "data" / "veilog.sqlite").stat().st_mode & 0o077 == 0

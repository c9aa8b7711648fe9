"""Logs on standard input and output give the results of files, and leave nothing."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import veilog
from veilog.cli import main
from veilog.logs.synthetic.hospital import hospital

RELEASE = (
    "-m",
    "evolve",
    "--epsilon",
    "1",
    "--activities",
    "log",
    "--max-length",
    "log",
    "--seed",
    "3",
    "--no-compare",
)


class Stream(io.StringIO):
    """Standard input or output with bytes below its text."""

    def __init__(self, content: bytes = b"") -> None:
        super().__init__()
        self.buffer = io.BytesIO(content)


class Pipes:
    """Runner of the command with bytes as input, which keeps its output."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.monkeypatch, self.folder = monkeypatch, folder
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def __call__(self, *arguments: object, given: bytes = b"") -> int:
        out, err = Stream(), io.StringIO()
        with self.monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", Stream(given))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            status = main([str(argument) for argument in arguments])
        self.out, self.words, self.err = out.buffer.getvalue(), out.getvalue(), err.getvalue()
        assert [path.name for path in self.folder.iterdir() if path.name.startswith("veilog-pipe")] == []
        return status


@pytest.fixture
def pipes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pipes:
    return Pipes(monkeypatch, tmp_path / "temporary")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    for suffix in ("xes", "csv", "parquet"):
        veilog.write(hospital(60, seed=3), folder / f"log.{suffix}")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["xes", "csv", "parquet"])
def test_a_log_from_standard_input_is_the_log_of_the_file(pipes: Pipes, logs: Path, format_: str) -> None:
    path = logs / f"log.{format_}"
    for command in ("info", "validate"):
        assert pipes(command, path, "--json", "-") == 0
        of_file = json.loads(pipes.words)
        assert pipes(command, "-", "--format", format_, "--json", "-", given=path.read_bytes()) == 0
        of_pipe = json.loads(pipes.words)
        assert of_pipe.pop("owner_only")["input"] == [{"path": "-", "sha256": None}]
        assert of_file.pop("owner_only")["input"][0]["path"] == str(path)
        assert {**of_pipe, "about": 0} == {**of_file, "about": 0}
        assert pipes.err == ""


@pytest.mark.slow
def test_nothing_but_the_log_goes_to_standard_output(pipes: Pipes, logs: Path, tmp_path: Path) -> None:
    path = logs / "log.csv"
    assert pipes("convert", path, tmp_path / "whole.xes") == 0
    assert pipes("convert", "-", "-", "--format", "csv", "--to", "xes", given=path.read_bytes()) == 0
    assert pipes.out == (tmp_path / "whole.xes").read_bytes()
    assert pipes.words == ""
    assert "standard output" in pipes.err
    assert "veilog-pipe" not in pipes.err
    assert pipes("convert", path, "-", "--format", ".parquet") == 0
    assert pipes.out[:4] == b"PAR1"


@pytest.mark.nightly
def test_a_release_from_and_to_pipes_is_the_release_of_files(pipes: Pipes, logs: Path, tmp_path: Path) -> None:
    path, ledger = logs / "log.csv", tmp_path / "log.ledger"
    assert pipes("release", path, tmp_path / "released.xes", *RELEASE, "--no-ledger") == 0
    arguments = ("release", "-", "-", "--format", "csv", "--to", "xes", *RELEASE, "--ledger", ledger)
    assert pipes(*arguments, given=path.read_bytes()) == 0
    assert pipes.out == (tmp_path / "released.xes").read_bytes()
    assert pipes.words == ""
    assert "protection" in pipes.err
    assert ledger.exists()
    assert (
        pipes("compare", "-", tmp_path / "released.xes", "--format", "csv", "--json", "-", given=path.read_bytes()) == 0
    )
    assert 0 < json.loads(pipes.words)["relative_log_similarity"] <= 1
    assert pipes("risk", "-", "--format", "csv", given=path.read_bytes()) == 0


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("info", "-"), 2, "format-missing-of-input"),
        (("info", "-", "--format", "docx"), 2, "format-unknown-of-input"),
        (("convert", "LOG", "-"), 2, "format-missing-of-output"),
        (("convert", "LOG", "-", "--format", "xlsm"), 2, "format-unknown-of-output"),
        (("compare", "-", "-", "--format", "csv"), 2, "input-read-twice"),
        (("info", "--bad"), 2, None),
        (("info", "-", "--format", "csv"), 1, "file-empty"),
        (("info", "-", "--format", "csv", "--limit", "0"), 2, "limit-below-one"),
        (("ledger", "set", "-", "--format", "csv", "--epsilon", "1"), 2, "ledger-not-beside-input"),
        (("info", "LOG", "--format", "xes"), 2, "format-without-pipe"),
        (("compare", "LOG", "LOG", "--format", "csv"), 2, "format-without-pipe"),
        (("ledger", "set", "LOG", "--epsilon", "1", "--format", "csv"), 2, "format-without-pipe"),
        (("convert", "LOG", "x.parquet", "--to", "xes"), 2, "output-format-for-file"),
        (("convert", "-", "x.parquet", "--format", "csv", "--to", "xes"), 2, "output-format-for-file"),
        (("release", "LOG", "-", *RELEASE), 2, "format-missing-of-output"),
    ],
)
def test_what_is_missing_is_refused(
    pipes: Pipes, logs: Path, tmp_path: Path, arguments: tuple[str, ...], status: int, code: str | None
) -> None:
    content = (logs / "log.csv").read_bytes() if "compare" in arguments else b""
    given = [str(logs / "log.csv") if argument == "LOG" else argument for argument in arguments]
    told = tmp_path / "told.json"
    assert pipes(*given, "--json", told, given=content) == status
    assert json.loads(told.read_text())["error"].get("code") == code
    assert pipes.out == b""


def test_a_log_and_json_do_not_both_go_to_standard_output(pipes: Pipes, logs: Path) -> None:
    assert pipes("convert", logs / "log.csv", "-", "--format", "csv", "--json", "-") == 2
    assert json.loads(pipes.words)["error"]["code"] == "output-log-and-json"


def test_standard_input_may_bring_no_more_than_is_allowed(pipes: Pipes, logs: Path) -> None:
    content = (logs / "log.csv").read_bytes()
    assert pipes("info", "-", "--format", "csv", "--limit", "100", "--json", "-", given=content) == 1
    assert json.loads(pipes.words)["error"]["code"] == "input-too-large"


@pytest.mark.nightly
def test_a_signal_leaves_nothing_of_the_log_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "veilog", "info", "-", "--format", "csv"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    process.stdin.write(b"case,activity,time\n" * 200_000)
    process.stdin.flush()
    for _ in range(1200):
        if list(tmp_path.glob("veilog-pipe-*/stdin.csv")):
            break
        time.sleep(0.1)
    assert list(tmp_path.glob("veilog-pipe-*/stdin.csv"))
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("closed", "words", "status", "said"),
    [
        (">&-", ["info", "-", "--format", "csv"], 5, "Standard output cannot be written"),
        (">&-", ["info", "-", "--format", "csv", "--quiet"], 0, ""),
        ("<&-", ["info", "-", "--format", "csv"], 1, "Standard input could not be stored"),
        ("2>&-", ["info", "-", "--format", "xes"], 1, ""),
    ],
)
def test_a_standard_stream_that_is_closed_is_told_in_words(
    closed: str, words: list[str], status: int, said: str, logs: Path, tmp_path: Path
) -> None:
    ran = _closed(closed, words, logs / "log.csv", tmp_path)
    assert ran.returncode == status
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def _closed(closed: str, words: list[str], given: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command on a log, with a standard stream closed."""
    line = f'exec "$0" -m veilog "$@" < "$GIVEN" {closed}'
    return subprocess.run(
        ["sh", "-c", line, sys.executable, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "GIVEN": str(given), "TMPDIR": str(folder)},
        check=False,
    )


def test_what_went_wrong_names_no_folder_in_json_either(pipes: Pipes) -> None:
    assert pipes("info", "-", "--format", "csv", "--json", "-", given=b"case,activity,timestamp\n1,a\n") == 1
    told = json.loads(pipes.words)["error"]
    assert "veilog-pipe" not in pipes.words
    assert (told["path"], told["line"]) == ("stdin.csv", 2)


def test_a_dash_where_none_can_be_is_told_so(pipes: Pipes, logs: Path) -> None:
    """A dash in a wrong place is named as the fault, and not as a missing option."""
    assert pipes("compare", logs / "log.csv", "-", "--second", "-") == 2
    assert "--second=-" in pipes.err
    assert pipes("map", logs / "log.csv", "-") == 2
    assert pipes.err.startswith("- "), "it is what is wrong, and nothing is missing"


def test_the_next_option_is_no_file_for_json(pipes: Pipes, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next option is never taken for the file of --json."""
    monkeypatch.chdir(logs)
    assert pipes("compare", "log.csv", "log.xes", "--json", "--no-models") == 2
    assert not Path("--no-models").exists()


@pytest.mark.slow
def test_a_release_that_nobody_takes_is_kept(pipes: Pipes, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(place: Path) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("veilog.cli.release.send", closed)
    monkeypatch.setenv("XDG_DATA_HOME", str(pipes.folder))
    assert pipes("release", logs / "log.csv", "-", "--format", "csv", *RELEASE, "--no-ledger") == 5
    (kept,) = pipes.folder.glob("veilog/kept/*.parquet")
    assert f"waits in {kept}" in pipes.err
    assert veilog.read(kept).cases.num_rows


@pytest.mark.nightly
def test_a_release_to_a_closed_standard_output_is_kept(logs: Path, tmp_path: Path) -> None:
    """A release to a closed standard output (>&-) is kept beside its ledger."""
    words = ["release", "-", "-", "--format", "csv", "--to", "xes", *RELEASE, "--ledger", str(tmp_path / "l.ledger")]
    ran = _closed(">&-", words, logs / "log.csv", tmp_path)
    assert ran.returncode == 5
    kept = tmp_path / "l.ledger.kept" / "1.parquet"
    assert str(kept) in ran.stderr and veilog.read(kept).variants.cases > 0

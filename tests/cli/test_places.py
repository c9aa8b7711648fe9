"""No result replaces a file that the command reads, charges or writes, unasked."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from refusals import sentence

from veilog.cli import main
from veilog.cli import release as release_command
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.releasing.result import Release

RELEASE = "release log.csv {} -m laplace --epsilon 0.5 --activities @acts.txt --max-length 9 --ledger l.ledger"
QUICK = "release log.csv {} -m laplace -p depth=1 --epsilon 1 --activities @acts.txt --no-compare --ledger l.ledger"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    log = hospital(40, seed=1)
    files.write(log, Path("log.csv"))
    Path("acts.txt").write_text("\n".join(log.activity_codes[0]))
    assert main(["ledger", "set", "log.csv", "--epsilon", "9", "--ledger", "l.ledger"]) == 0
    os.link("log.csv", "linked.csv")
    Path("night").mkdir()
    Path("raw.json").write_text('{"ocel:events": []}')
    files.write(log, Path("night/a.parquet"))
    return tmp_path


def digests(folder: Path) -> dict[str, str]:
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        RELEASE.format("out.csv") + " --json l.ledger",
        RELEASE.format("out.csv") + " --json log.csv",
        RELEASE.format("out.csv") + " --json ./acts.txt",
        RELEASE.format("out.csv") + " --json linked.csv",
        RELEASE.format("out.csv") + " --json out.csv",
        RELEASE.format("out.csv") + " --report r.html --recipient-report r.html",
        RELEASE.format("out.csv") + " --report r.html --json r.html",
        RELEASE.format("out.csv") + " --json night/../out.csv",
        RELEASE.format("linked.csv"),
        "info nowhere.csv --json raw.json",
        "info log.csv --json raw.json",
        RELEASE.format("log.csv"),
        "release log.csv new.csv -m laplace --epsilon 1 --activities log --max-length log --ledger new.csv",
        "release night night/b.parquet -m laplace --epsilon 1 --activities log --max-length log --no-ledger",
        "release night/*.parquet night/b.parquet -m laplace --epsilon 1 --activities log --max-length log --no-ledger",
        "release night/**/*.parquet night/b.parquet -m laplace --epsilon 1 --activities log -p depth=3 --no-ledger",
        "ledger show log.csv --ledger l.ledger --json l.ledger",
        "ledger export log.csv log.csv --ledger l.ledger",
        "info log.csv --json log.csv",
        "info log.csv --bogus --json log.csv",
        "suggest log.csv --epsilon 1 --no-ledger --json=log.csv",
        "convert log.csv b.csv --json log.csv",
        "convert log.csv b.csv --json b.csv",
        "compare log.csv night/a.parquet --json night/a.parquet",
        "map log.csv log.csv",
        "convert log.csv acts.csv --map acts.csv",
    ],
)
def test_nothing_is_written_over_what_is_read_or_written_besides(
    here: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digests(here)
    assert main(words.split()) in (1, 2, 5)
    assert digests(here) == before, "neither a file nor an account is another one"
    assert capsys.readouterr().err.count("\n") in (1, 2)


@pytest.mark.slow
def test_the_second_file_of_a_release_is_one_of_its_places(here: Path) -> None:
    both = "release log.csv a.csv -m evolve -p for=both --epsilon 1 --activities log --no-ledger --json a-models.csv"
    assert main(both.split()) == 5
    assert not Path("a.csv").exists(), "nothing was asked"
    assert json.loads(Path("a-models.csv").read_text())["error"]["status"] == 5


@pytest.mark.slow
def test_an_error_as_json_does_not_go_over_a_log_that_is_json(here: Path) -> None:
    Path("log.json").write_text('{"events": []}')
    assert main(["info", "log.json", "--json", "log.json"]) == 5
    assert main(["info", "log.json", "--bogus", "--json", "./log.json"]) == 2
    assert Path("log.json").read_text() == '{"events": []}'


@pytest.mark.slow
def test_a_release_beside_the_folder_of_its_log(here: Path) -> None:
    release: Callable[[str], str] = (
        "release night {} -m laplace --epsilon 1 --activities log --max-length log --no-ledger".format
    )
    assert main(release("out.parquet").split()) == 0
    assert main(release("night/out.xes").split()) == 0, "no log of the folder ends so"


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("letters", ["latin-1", "ascii", "cp1252"])
def test_what_a_terminal_has_no_letters_for_fails_no_release(here: Path, letters: str) -> None:
    """Characters that a terminal lacks fail no release, which would spend twice."""
    files.write(hospital(300, seed=1), Path("日誌.csv"))
    words = [
        "release",
        "日誌.csv",
        "出.xes",
        "-m",
        "laplace",
        "--epsilon",
        "1",
        "--activities",
        "log",
        "-p",
        "depth=2",
        "--no-ledger",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "veilog", *words],
        env={**os.environ, "PYTHONIOENCODING": letters},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr and Path("出.xes").exists()


@pytest.mark.nightly
def test_json_on_a_terminal_of_few_letters_is_json(here: Path) -> None:
    files.write(hospital(40, seed=1), Path("é😀.csv"))
    done = subprocess.run(
        [sys.executable, "-m", "veilog", "info", "é😀.csv", "--json", "-"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["owner_only"]["input"][0]["path"] == "é😀.csv"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["out.xes", "out.csv"])
def test_a_release_is_not_replaced_by_the_next(
    here: Path, target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release is not replaced by the next, without --overwrite."""
    assert main(QUICK.format(target).split()) == 0
    before, inode = digests(here), Path(target).stat().st_ino
    with monkeypatch.context() as patch:
        patch.setattr(release_command, "load_for_request", None)
        assert main([*QUICK.format(target).split(), "--json", "told.json"]) == 5
    error = json.loads(Path("told.json").read_text())["error"]
    Path("told.json").unlink()
    assert (error["kind"], error["status"], error["path"]) == ("OutputError", 5, target)
    assert digests(here) == before, "nothing was read or asked, and nothing is gone"
    assert main([*QUICK.format(target).split(), "--overwrite"]) == 0
    assert Path(target).stat().st_ino != inode, "it is another file"


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("target", ["out.xes", "out.csv"])
def test_of_two_releases_to_one_file_at_the_same_time_none_is_lost(
    here: Path, target: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later one of two releases to one file at the same time is kept aside."""
    assert main(QUICK.format(target).split()) == 0
    first = Path(target).rename(Path("night") / target)
    held = first.read_bytes()
    as_usual = release_command.run_plan

    def meanwhile(*given: object, **named: object) -> Release:
        made = as_usual(*given, **named)  # type: ignore[arg-type]
        Path(target).write_bytes(held)
        return made

    monkeypatch.setattr(release_command, "run_plan", meanwhile)
    assert main(QUICK.format(target).split()) == 5
    assert "Nothing was asked" not in capsys.readouterr().err
    assert Path(target).read_bytes() == held
    (kept,) = Path().glob("*.kept/*.parquet")
    assert files.read(kept).variants.cases


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "words"),
    [
        ("notes.csv", QUICK.format("notes.csv")),
        ("p.html", QUICK.format("o.xes") + " --report p.html"),
        ("p.html", QUICK.format("o.xes") + " --recipient-report p.html"),
        ("d.md", QUICK.format("o.xes") + " --dossier d.md"),
        ("told.json", QUICK.format("o.xes") + " --json told.json"),
        ("told.json", QUICK.format("o.xes") + " --dry-run --sizes log --json told.json"),
        ("told.json", "info log.csv --json told.json"),
        ("told.json", "info nowhere.csv --json told.json"),
        ("told.json", "info log.csv --bogus --json told.json"),
        ("empty.json", "info log.csv --json empty.json"),
        ("linked.json", "info log.csv --json linked.json"),
        ("o.csv", "convert log.csv o.csv"),
        ("o.csv", "map log.csv o.csv"),
        ("o.csv", "ledger export log.csv o.csv --ledger l.ledger"),
        ("o.csv", "ledger write log.csv 1 o.csv --ledger l.ledger"),
        ("o.xes", "twin --out o.xes --cases 10 --activities 3 --length 3"),
        ("o.model", "train log.csv o.model --epsilon 1 --delta 0.1"),
        ("o.csv", "sample some.model o.csv"),
        ("p.html", "report night/a.parquet p.html"),
        ("d.md", "dossier night/a.parquet d.md"),
        ("d.registry.yaml", "dossier night/a.parquet d.md"),
        ("c.svg", "compare log.csv night/a.parquet --chart c.svg"),
        ("release.xes", "demo ."),
        ("internal-report.html", "demo ."),
    ],
)
def test_no_command_replaces_a_file_that_is_there(here: Path, there: str, words: str) -> None:
    """No command replaces an existing file, whatever it holds."""
    Path("held").write_text("of others")
    if there == "linked.json":
        Path(there).symlink_to("held")
    else:
        Path(there).write_text("" if there == "empty.json" else "of others")
    before = digests(here)
    assert main(words.split()) == (2 if "--bogus" in words else 5)
    assert digests(here) == before, "nothing is gone, and no account is another one"


@pytest.mark.nightly
def test_what_is_there_is_replaced_by_any_command_that_is_told_so(here: Path) -> None:
    assert main(QUICK.format("paid.xes").split()) == 0
    for words in (
        QUICK.format("paid.xes") + " --json told.json --report p.html --dossier d.md",
        "convert log.csv paid.csv --json told.json",
        "report paid.xes p.html --json told.json",
        "dossier paid.xes d.md",
        "compare log.csv paid.xes --chart c.svg --json told.json",
        "map log.csv groups.csv",
        "ledger export log.csv all.csv --ledger l.ledger",
        "twin --out twin.xes --cases 10 --activities 3 --length 3",
        "demo .",
        "info nowhere.csv --json told.json",
    ):
        statuses = {main(["--overwrite", *words.split()]) for _ in range(2)}
        assert statuses == ({1} if "nowhere" in words else {0}), words
    assert json.loads(Path("told.json").read_text())["error"]["status"] == 1


@pytest.mark.slow
def test_a_dry_run_and_what_is_read_are_no_reason_to_refuse(here: Path) -> None:
    Path("out.xes").write_text("of others")
    assert main([*QUICK.format("out.xes").split(), "--dry-run", "--sizes", "log"]) == 0
    assert Path("out.xes").read_text() == "of others"


@pytest.mark.nightly
def test_a_model_is_kept_as_a_release_is(here: Path) -> None:
    asked = "train log.csv m.model --no-ledger --epsilon 3 --delta 0.01 --activities log --max-length {}"
    train = asked.format(9).split()
    assert main(train) == 0
    before = digests(here)
    assert main(train) == 5
    assert main(["sample", "m.model", "drawn.csv"]) == 0, "it is read"
    assert main(["inspect", "m.model"]) == 0
    assert {name: digest for name, digest in digests(here).items() if "drawn" not in name} == before


@pytest.mark.slow
@pytest.mark.parametrize(("target", "status"), [("a" * 300 + ".xes", 5), ("circle.xes", 0)])
def test_a_name_that_cannot_be_looked_at_is_told_in_words(
    here: Path, target: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Too long a name, or links in a circle, are refused in words."""
    Path("circle.xes").symlink_to("circle.xes")
    assert main(["convert", "log.csv", target]) == status
    too_long = sentence("file-not-writable", reason=os.strerror(errno.ENAMETOOLONG))
    assert (f"{target}: {too_long}" in capsys.readouterr().err) == (status == 5)

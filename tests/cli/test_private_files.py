"""Raw numbers and the name of the log are confidential, in JSON and on disk."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import veilog
from veilog.cli import main
from veilog.logs.synthetic.hospital import hospital

NAME = "Mueller-Hans-ward-7.xes"
LAPLACE = ("-m", "laplace", "-p", "depth=2", "--epsilon", "0.5", "--activities", "log", "--overwrite")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files")


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    veilog.write(hospital(60, seed=1), tmp_path / NAME)
    return tmp_path / NAME


def mode(name: str) -> int:
    return stat.S_IMODE(Path(name).stat().st_mode)


def others_may_know(facts: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in facts.items() if key != "owner_only"})


@pytest.mark.nightly
def test_files_with_raw_numbers_are_readable_by_their_owner_alone(log: Path) -> None:
    Path("in.html").write_text("of before, readable by all")
    pages = ("--report", "in.html", "--recipient-report", "out.html", "--dossier", "out.md", "--json", "m.json")
    assert main(["release", str(log), "out.xes", *LAPLACE, *pages]) == 0
    assert main(["dossier", "out.xes", "in.md", "--original", str(log), "--registry", "r.yaml"]) == 0
    assert main(["report", "out.xes", "mine.html", "--original", str(log)]) == 0
    assert main(["report", "out.xes", "page.html"]) == 0
    assert main(["compare", str(log), "out.xes", "--json", "c.json"]) == 0
    assert {mode(name) for name in ("in.html", "in.md", "mine.html", "m.json", "c.json")} == {0o600}
    assert {mode(name) for name in ("out.xes", "out.html", "out.md", "page.html", "r.yaml")} == {0o644}


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(
    "words",
    [
        ["release", "LOG", "out.xes", *LAPLACE, "--no-compare"],
        ["release", "LOG", "out.xes", *LAPLACE[:-1], "--dry-run", "--sizes", "log", "--use-cases", ""],
        ["suggest", "LOG", "--epsilon", "0.5"],
        ["twin", "LOG", "--epsilon", "0.05"],
    ],
)
def test_the_name_of_the_log_is_in_no_json_for_others(log: Path, words: list[str]) -> None:
    assert main(["ledger", "set", str(log), "--epsilon", "9"]) == 0
    assert main([*(str(log) if word == "LOG" else word for word in words), "--json", "m.json"]) == 0
    facts = json.loads(Path("m.json").read_text())
    assert facts["owner_only"]["account"]["name"] == NAME
    assert "Mueller" not in others_may_know(facts)

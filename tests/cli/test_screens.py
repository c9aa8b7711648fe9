"""Eight screens at 80 columns, kept so that a person looks at each change.

``python tests/cli/test_screens.py`` writes them anew.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from unittest import mock

import pytest

import veilog
from veilog.cli import main
from veilog.logs.synthetic.hospital import hospital

SCREENS = Path(__file__).parent / "screens"
RELEASE = ["release", "hospital.xes", "out.xes", "-m", "evolve", "--epsilon", "1", "--activities", "log"]
SHOWN: dict[str, list[str]] = {
    "help": ["--help"],
    "release-help": ["release", "--help"],
    "info": ["info", "hospital.xes"],
    "risk": ["risk", "hospital.xes", "--size", "3"],
    "release": [*RELEASE, "--seed", "1", "--no-ledger", "--overwrite"],
    "compare": ["compare", "hospital.xes", "out.xes", "--no-models"],
    "mistake": ["release", "hospital.xes", "x.xes", "-m", "evolv", "--epsilon", "1"],
    "ledger": ["ledger", "show", "hospital.xes"],
}
WIDTH = 80
LIGHT = ("help", "release-help", "mistake")
"""Screens that need no log."""


def screen(arguments: list[str]) -> str:
    """Return the output at a terminal, without durations."""
    out = io.StringIO()
    wide = mock.patch.dict(os.environ, {"COLUMNS": str(WIDTH)})
    with wide, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(arguments)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    text = re.sub(r"\d+\.\d+ s\b", "N s", "\n".join(lines))
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00(?= )", "TIME", text)
    return f"{text}\n[status {status}]\n"


def prepared(folder: Path) -> None:
    veilog.write(hospital(300, seed=1), folder / "hospital.xes")
    log = veilog.read(folder / "hospital.xes")
    released = veilog.release(log, "evolve", epsilon=1, activities="log", seed=1)
    released.save(folder / "out.xes")
    veilog.Ledger.open(folder / "hospital.xes.ledger", create=True).set_budget(log, 2)


def compared(name: str) -> None:
    found = screen(SHOWN[name])
    assert found == (SCREENS / f"{name}.txt").read_text(), "look at it; then write the screens anew"
    assert max(map(len, found.splitlines())) <= WIDTH or name == "mistake"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("screens")
    prepared(place)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("name", LIGHT)
def test_a_screen_that_needs_no_log(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compared(name)


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("name", [name for name in SHOWN if name not in LIGHT])
def test_a_screen_is_as_it_was(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    compared(name)


def write_anew() -> None:
    with tempfile.TemporaryDirectory() as place:
        prepared(Path(place))
        os.chdir(place)
        for name, arguments in SHOWN.items():
            (SCREENS / f"{name}.txt").write_text(screen(arguments))


if __name__ == "__main__":
    SCREENS.mkdir(exist_ok=True)
    sys.exit(write_anew())

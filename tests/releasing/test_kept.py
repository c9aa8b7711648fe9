"""Charged releases wait beside their ledger until a file is written and entered."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

import veilog
from veilog.cli import main
from veilog.errors import InputError, OutputError
from veilog.ledger.ledger import Ledger
from veilog.logs import files
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
from veilog.releasing.spool import spool_file, waiting_releases, write_kept

KILLED = """
import os, signal, sys
import veilog
from veilog.logs import files
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
write = files.write_pieces
def killed(pieces, path, **how):
    if "out" in str(path):
        os.kill(os.getpid(), signal.SIGKILL)
    write(pieces, path, **how)
files.write_pieces = killed
asked = {"epsilon": 1, "depth": 1, "activities": ACTIVITIES, "ledger": sys.argv[1]}
veilog.release(hospital(200, seed=1), "laplace", **asked).save(sys.argv[2])
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "log.ledger"


def released(place: Path) -> veilog.Release:
    return veilog.release(hospital(200, seed=1), "evolve", epsilon=1, activities=ACTIVITIES, ledger=place)


@pytest.mark.slow
@pytest.mark.false_alarm(1e-9, "empty if noise of scale 5 takes 200 cases of one first activity below 30: exp(-34)")
def test_a_process_that_is_killed_while_it_writes_loses_no_release(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.xes"
    command = [sys.executable, "-c", KILLED, str(place), str(out)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not out.exists() and waiting_releases(place) == (1,)
    kept = tmp_path / "log.ledger.kept"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert stat.S_IMODE((kept / "1.parquet").stat().st_mode) == 0o600
    told = tmp_path / "shown.json"
    assert main(["ledger", "show", str(place), "--json", str(told)]) == 0
    assert json.loads(told.read_text())["waiting"] == [1]
    assert "veilog ledger write" in capsys.readouterr().out
    assert main(["ledger", "write", str(place), "1", str(out)]) == 0
    (entry,) = Ledger.open(place).show()[0].entries
    assert entry.state == "written" and entry.epsilon == 1 and len(entry.outputs) == 1
    assert veilog.read(out).variants.cases and not kept.exists()
    assert main(["ledger", "write", str(place), "1", str(tmp_path / "again.xes")]) == 1, "it does not wait any more"


@pytest.mark.slow
def test_it_waits_only_until_its_first_file_is_entered(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, seen, write = released(place), [], files.write_pieces

    def watched(pieces: Any, path: Path, **how: Any) -> None:
        seen.append((Path(path).name, waiting_releases(place)))
        write(pieces, path, **how)

    monkeypatch.setattr(files, "write_pieces", watched)
    made.save(tmp_path / "a.xes")
    made.save(tmp_path / "b.csv")
    assert seen == [("1.parquet", ()), ("a.xes", (1,)), ("b.csv", ())]
    assert waiting_releases(place) == ()


@pytest.mark.slow
def test_a_file_that_cannot_be_written_leaves_it_waiting_with_the_same_cases(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, write = released(place), files.write_pieces
    assert made.entry is not None

    def full(pieces: Any, path: Path, **how: Any) -> None:
        if Path(path).name == "a.xes":
            raise OutputError("The file cannot be written: No space left on device.", path=path)
        write(pieces, path, **how)

    monkeypatch.setattr(files, "write_pieces", full)
    with refused(OutputError, "release-waits-in-place"):
        made.save(tmp_path / "a.xes")
    assert spool_file(made.entry) is not None
    monkeypatch.undo()
    write_kept(made.entry, tmp_path / "b.xes")
    made.save(tmp_path / "a.xes")
    one, other = (veilog.read(tmp_path / name) for name in ("a.xes", "b.xes"))
    assert one.to_arrow().equals(other.to_arrow())
    with refused(InputError, "release-none-waiting"):
        write_kept(made.entry, tmp_path / "c.xes")


@pytest.mark.slow
def test_a_release_for_two_waits_with_both(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = hospital(200, seed=1)
    made = veilog.release(log, "evolve", epsilon=1, activities=ACTIVITIES, ledger=place, for_="both")
    assert made.entry is not None
    with pytest.raises(KeyboardInterrupt), made.kept():
        raise KeyboardInterrupt
    written = write_kept(made.entry, tmp_path / "out.xes")
    assert [file.name for file in written] == ["out-models.xes", "out.xes"]
    assert len(Ledger.open(place).show()[0].entries[0].outputs) == 2

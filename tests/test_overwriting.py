"""No writer replaces a file unasked: its bytes are equal afterwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import veilog
from veilog import _files
from veilog.errors import OutputError
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital
from veilog.report import dossier

LOG = hospital(40, seed=1)
BEFORE = b"what was there before"

Writer = Callable[..., Any]


@cache
def released(goal: str = "similarity") -> veilog.Release:
    return veilog.release(LOG, "evolve", epsilon=1, activities="log", for_=goal, seed=1)


def _ledger(folder: Path) -> Ledger:
    ledger = Ledger.open(folder / "some.ledger", create=True)
    veilog.release(LOG, "evolve", epsilon=1, activities="log", ledger=ledger)
    return ledger


WRITERS: dict[str, tuple[str, Callable[[Path], Writer]]] = {
    "log": ("log.xes", lambda folder: lambda path, **more: veilog.write(LOG, path, **more)),
    "release": ("out.xes", lambda folder: released().save),
    "release as a table": ("out.csv", lambda folder: released().save),
    "release as a workbook": ("out.xlsx", lambda folder: released().save),
    "two releases": ("out.parquet", lambda folder: released("both").save),
    "twin": ("twin.xes", lambda folder: veilog.twin(cases=30, length=4).save),
    "report": ("page.html", lambda folder: lambda path, **more: veilog.report.write(released(), path, **more)),
    "dossier": (
        "dossier.md",
        lambda folder: lambda path, **more: dossier.write(dossier.dossier(released()), path, **more),
    ),
    "ledger": ("accounts.csv", lambda folder: _ledger(folder).export),
}


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("what", WRITERS)
def test_a_file_that_is_there_stays_as_it_is_unless_it_may_go(what: str, tmp_path: Path) -> None:
    name, prepared = WRITERS[what]
    write, place = prepared(tmp_path), tmp_path / name
    place.write_bytes(BEFORE)
    with pytest.raises(OutputError):
        write(place)
    assert place.read_bytes() == BEFORE
    write(place, overwrite=True)
    assert place.read_bytes() != BEFORE and place.stat().st_size > len(BEFORE)


def test_what_was_made_beside_a_release_is_not_replaced_either(tmp_path: Path) -> None:
    (tmp_path / "out-models.xes").write_bytes(BEFORE)
    with pytest.raises(OutputError):
        released("both").save(tmp_path / "out.xes")
    assert [path.name for path in tmp_path.iterdir()] == ["out-models.xes"]
    assert (tmp_path / "out-models.xes").read_bytes() == BEFORE


def test_a_file_that_appears_while_another_is_written_is_not_replaced(tmp_path: Path) -> None:
    place = tmp_path / "out.bin"
    with pytest.raises(OutputError), _files.atomic_target(place, overwrite=False) as file:
        file.write(b"new")
        place.write_bytes(BEFORE)
    assert place.read_bytes() == BEFORE
    assert [path.name for path in tmp_path.iterdir()] == ["out.bin"]

"""A new option for releases is one field, used by command, Python, JSON and form."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import veilog
from veilog.errors import ParameterError
from veilog.releasing.request import OPTIONS

FIELD = """
    note: Annotated[str | None, Option("Nota bene.")] = None
    rounds_of_review: Annotated[int, Option("How often the release was reviewed.", works=("release",))] = 0
    urgent: Annotated[bool, Option("The release is urgent.")] = False
"""
PROGRAM = """
import json
import veilog
from veilog.cli.shared.requests import ReleaseOptions, TrainOptions
from veilog.web.pages.render import _environment
from veilog.web.work.request import FIELDS, FURTHER, requested_options

request = veilog.plan("laplace", epsilon=1, activities="log", note="a b", rounds_of_review="2", urgent=True)
form = {"method": "laplace", "epsilon": "1", "activities": "log", "note": "a b", "rounds_of_review": "2"}
print(json.dumps({
    "held": [request.note, request.rounds_of_review, request.urgent],
    "json": request.to_json(),
    "again": veilog.ReleaseRequest.from_json(request.to_json()) == request,
    "command": request.command(),
    "python": request.python(),
    "release": [name for name in ReleaseOptions.__dataclass_fields__],
    "train": [name for name in TrainOptions.__dataclass_fields__],
    "fields": FIELDS,
    "form": requested_options({**form, "urgent": "on"}) == request,
    "page": _environment().get_template("further.html").render(further=FURTHER, values={"note": "a b"}),
}))
"""
OURS = ["note", "rounds_of_review", "urgent"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package whose releases have three more options."""
    place = tmp_path_factory.mktemp("copy")
    source = Path(veilog.__file__).parent
    shutil.copytree(source, place / "veilog")  # with what is compiled already, which is valid for equal times of files
    file = place / "veilog" / "releasing" / "request.py"
    text = file.read_text()
    before = "    allow_no_protection: Annotated["
    assert text.count(before) == 1
    file.write_text(text.replace(before, FIELD + before))
    return place


def called(copy: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "140"}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_one_field_is_an_option_everywhere(copy: Path) -> None:
    found = json.loads(called(copy, "-c", PROGRAM))
    assert found["held"] == ["a b", 2, True]
    assert {name: found["json"][name] for name in OURS} == {"note": "a b", "rounds_of_review": 2, "urgent": True}
    assert found["again"] and found["form"]
    assert "--note 'a b' --rounds-of-review 2" in found["command"] and "--urgent" in found["command"].split()
    assert "note='a b', rounds_of_review=2, urgent=True" in found["python"]
    assert set(OURS) <= set(found["release"]) and set(OURS) - set(found["train"]) == {"rounds_of_review"}
    assert set(OURS) <= set(found["fields"])
    assert all(f'name="{name}"' in found["page"] for name in OURS) and 'value="a b"' in found["page"]


@pytest.mark.slow
def test_one_field_is_in_the_help_and_read_by_the_command(copy: Path, tmp_path: Path) -> None:
    told = called(copy, "-m", "veilog", "release", "--help")
    assert all(f"--{name.replace('_', '-')}" in told for name in OURS) and "Nota bene." in told
    log, facts = tmp_path / "log.csv", tmp_path / "facts.json"
    log.write_text("case,activity,timestamp\n" + "".join(f"{n},a,2024-01-01T00:00:00\n" for n in range(40)))
    asked = ["--epsilon", "1", "--activities", "a", "--max-length", "3", "--note", "a b", "--urgent", "--dry-run"]
    asked += ["--cases", "40", "--length", "1", "--no-ledger", "--json", str(facts)]
    called(copy, "-m", "veilog", "release", str(log), str(tmp_path / "out.xes"), "-m", "laplace", *asked)
    assert json.loads(facts.read_text())["guarantee"]["epsilon"] == 1.0


def test_an_option_is_refused_by_work_that_has_no_use_for_it() -> None:
    """A training refuses options that it does not use, such as times."""
    asked = {"epsilon": 1, "delta": "1e-6", "activities": "log"}
    for more in ({"times": 0.3}, {"subset": "month=2024-03"}, {"attributes": ["ward"]}):
        with pytest.raises(ParameterError) as refused:
            veilog.train([("a",)], "travag", **asked, **more)  # type: ignore[arg-type]
        assert refused.value.parameter in more
        with pytest.raises(ParameterError) as refused:
            veilog.train([("a",)], veilog.plan("travag", **asked, **more))  # type: ignore[arg-type]
        assert refused.value.parameter in more
    assert not [name for name, option in OPTIONS.items() if name != option.name or not option.works]

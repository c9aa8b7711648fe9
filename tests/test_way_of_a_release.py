"""A log and a request pass the modules that ``docs/architecture.md`` lists."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from web_logs import EVOLVE, request_of, silent

import veilog
from veilog import cli
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.input.source import Source
from veilog.logs.synthetic.hospital import hospital
from veilog.releasing.request import ReleaseRequest
from veilog.web.jobs.records import ServerSettings
from veilog.web.jobs.worker import WorkerTask
from veilog.web.work import release_job, work_on

ROOT = Path(veilog.__file__).parent
PAGE = " ".join((ROOT.parents[1] / "docs" / "architecture.md").read_text().split())
MODULE = re.compile(r"`([\w/]+\.py)`")
LOG, REQUEST = (Source, EventLog), (ReleaseRequest,)

pytestmark = pytest.mark.slow


def part(begin: str, end: str) -> str:
    """Return the text of the page between two phrases."""
    return PAGE[PAGE.index(begin) : PAGE.index(end)]


IN_COMMAND = part("The request passes", "The log passes 22"), part("The log passes 22", "The method has the curator")
ON_PAGES = part("The request goes on", "The log passes 23"), part("The log passes 23", "## How a log is held")


def passed(work: Callable[[], Any]) -> dict[tuple[type, ...], list[str]]:
    """Return the modules that get a log, or a request, by first use."""
    found: dict[tuple[type, ...], list[str]] = {LOG: [], REQUEST: []}

    def called(frame: FrameType, _: str, __: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(str(ROOT)):
            return
        module = Path(code.co_filename).relative_to(ROOT).as_posix()
        given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        for kinds, modules in found.items():
            if module not in modules and any(map(kinds.__contains__, map(type, given))):
                modules.append(module)

    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(None)
    return found


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.xes"
    files.write(hospital(60, seed=1), path)
    return path


def before_the_release(modules: list[str]) -> set[str]:
    """Return the modules that see the log itself, and not the release."""
    return {*modules[: modules.index("releasing/result.py")]}


def test_in_the_command(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--method", "evolve", "--epsilon", "1", "--times", "0.4", "--activities", "log", "--window", "log"]
    options += ["--no-compare", "--ledger", "own"]
    found = passed(lambda: cli.main(["release", str(log), "out.xes", *options]))
    said_of_request, said_of_log = (set(MODULE.findall(said)) for said in IN_COMMAND)
    assert before_the_release(found[LOG]) == said_of_log
    assert len(said_of_log) == 22
    assert set(found[REQUEST]) == said_of_request
    assert len(said_of_request) == 6


def test_on_the_pages(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        release_job, "beside", lambda *_: None
    )  # comparing comes after the release, and takes most time
    (tmp_path / "out").mkdir()
    times = {"times": "0.4", "window_start": "2024-01-01", "window_end": "2024-12-31"}
    task = WorkerTask("release", str(log), "log.xes", {}, request_of({**EVOLVE, **times}), str(tmp_path / "out"))
    settings = ServerSettings(folder=tmp_path / "work", token="x" * 40, ledger=tmp_path / "own")
    found = passed(lambda: work_on(task, settings, silent))
    said_of_request, said_of_log = (set(MODULE.findall(said)) for said in ON_PAGES)
    of_command = {module for module in MODULE.findall(IN_COMMAND[1]) if not module.startswith("cli/")}
    assert before_the_release(found[LOG]) == said_of_log | of_command
    assert len(said_of_log | of_command) == 23
    assert set(found[REQUEST]) - {"web/work/request.py"} == said_of_request

"""Logs as the pages know them: read, requested and released, without a server."""

import html
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from veilog.ledger.rules import Entry
from veilog.web.jobs.records import JobRecord, JobRequest, LogRecord, ServerSettings
from veilog.web.jobs.results import ReadLog, ReleasedLog, Result, from_text, to_text
from veilog.web.jobs.worker import WorkerTask
from veilog.web.pages import render as pages
from veilog.web.pages.outlook import Outlook
from veilog.web.work import preview_form, work_on
from veilog.web.work.request import requested_options

EVOLVE = {"method": "evolve", "epsilon": "1", "labels": "log"}


def entry(number: int = 1, method: str = "evolve", unit: str = "case", **facts: Any) -> Entry:
    """Return a release in a ledger, of epsilon 1."""
    plain = Entry(number, 1, "2026-01-02 03:04", method, False, {}, unit, Fraction(1), Fraction(0), "written", None, ())
    return replace(plain, **facts)


def says(page: str) -> set[str]:
    """Return the codes on a page, whatever its words."""
    return set(re.findall(r'data-says="([^"]+)"', page))


def element(page: str, name: str) -> str:
    """Return the element of a page with this id, from its first mark to its last."""
    found = re.search(rf'<(\w+)[^>]* id="{re.escape(name)}"[^>]*>.*?</\1>', page, re.DOTALL)
    assert found, name
    return found[0]


def silent(text: str, fraction: float | None) -> None:
    """Ignore progress."""


def written(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def request_of(form: Mapping[str, str]) -> JobRequest:
    """Return the request of a form, as it is before it is queued."""
    return JobRequest(requested_options(form).to_json(), form)


def check_of(log: LogRecord, form: Mapping[str, str], settings: ServerSettings) -> str:
    """Return the page that precedes a release, as text."""
    return html.unescape(pages.check(log, form, "once", outlook=Outlook(preview_form(log, form, settings))))


SETTINGS = ServerSettings(folder=Path("data"), ledger=Path("data.ledger"), token="t")


def through(kind: Any, result: Result) -> Any:
    """Return the result as the server has it: it gets the result as JSON."""
    text = to_text(result)
    assert len(text) < 1_000_000
    assert from_text(kind, text) == result
    return result


def read(path: Path, columns: dict[str, str] | None = None) -> ReadLog:
    found = through(
        "read", work_on(WorkerTask("read", str(path), "log", columns or {}, JobRequest(), ""), SETTINGS, silent)
    )
    assert isinstance(found, ReadLog)
    return found


def job(kind: Any, result: Result | None, form: Mapping[str, str] | None = None, **more: Any) -> JobRecord:
    request = request_of(form) if form else JobRequest()
    kept = None if result is None else to_text(result)
    plain = JobRecord("b" * 32, "s", "a" * 32, kind, "done", request, kept, None, 1e9, 1e9, 1e9)
    return replace(plain, **more)


def record(result: ReadLog | None, columns: dict[str, str] | None = None, name: str = "log.xes") -> LogRecord:
    return LogRecord("a" * 32, "s", name, 2_000_000, 1e9, ".xes", columns or {}, job("read", result))


def released(
    path: Path,
    form: Mapping[str, str],
    settings: ServerSettings,
    out: Path,
    name: str = "log.xes",
    columns: dict[str, str] | None = None,
) -> ReleasedLog:
    out.mkdir(exist_ok=True)
    task = WorkerTask("release", str(path), name, columns or {}, request_of(form), str(out))
    made = through("release", work_on(task, replace(settings, thorough=False), silent))
    assert isinstance(made, ReleasedLog)
    return made

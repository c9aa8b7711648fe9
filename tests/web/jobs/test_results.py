"""Results on their way: through JSON and back."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from web_logs import read, request_of, written
from web_work import NOTHING, TOLD, made

from veilog._plain import Misfit
from veilog.web.jobs.records import JobRequest, LogRecord
from veilog.web.jobs.results import ReadLog, from_text, to_text
from veilog.web.jobs.store import Store
from veilog.web.pages import render as pages

LOG, JOB = "a" * 32, "b" * 32
ASKED = {"method": "evolve", "epsilon": "0.5", "activities": "log", "p_rounds": "2"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Yield a store with a log that was read, and a release of it."""
    text = "case,activity,time\n" + "".join(
        f"{i},{a},2024-01-01T0{t}:00:00Z\n" for i in range(6) for t, a in enumerate("abc")
    )
    found = read(written(tmp_path / "ward.csv", *text.splitlines()))
    store = Store(tmp_path / "veilog.sqlite")
    store.add_log(LOG, "s", "ward.csv", 5, ".csv")
    results = {"c" * 32: ("read", JobRequest(), found), JOB: ("release", request_of(ASKED), made())}
    for job, (kind, request, result) in results.items():
        store.add_job(job, "s", LOG, kind, request)
        store.start(job)
        store.end(job, "running", "done", to_text(result), None)
    yield store
    store.close()


def shown(store: Store, tmp_path: Path) -> str:
    """Return the page of the release."""
    log, job = store.log("s", LOG), store.job("s", JOB)
    assert isinstance(log, LogRecord) and job is not None
    for page in (pages.log_page(log, "once"), pages.exposure(log), pages.home([log], [job], "once")):
        assert "ward.csv" in page
    return pages.job_page(job, log, "once")


@pytest.mark.slow
def test_what_is_kept_has_its_pages(store: Store, tmp_path: Path) -> None:
    assert 'class="card verdict' in shown(store, tmp_path)


def test_a_request_is_kept_whole(tmp_path: Path) -> None:
    request = JobRequest({"method": "evolve", "epsilon": "1"}, {"method": "evolve", "epsilon": "1,0"}, "7")
    with contextlib.closing(Store(tmp_path / "veilog.sqlite")) as store:
        store.add_log(LOG, "s", "ward.csv", 5, ".csv")
        store.add_job(JOB, "s", LOG, "release", request)
        job = store.job("s", JOB)
    assert job is not None and job.request == request


def test_numbers_that_are_none_are_no_result() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        to_text(made(told=replace(TOLD, guarantee=replace(NOTHING, epsilon=float("nan")))))


@pytest.mark.parametrize("values", [{"findings": []}, {"problem": 3}, {"problem": None}, {"unknown": 1}])
def test_a_result_has_each_field_of_its_type_and_no_other(values: dict[str, Any]) -> None:
    whole = json.loads(to_text(ReadLog(None)))
    assert from_text("read", json.dumps(whole)) == ReadLog(None)
    with pytest.raises(Misfit):
        from_text("read", json.dumps(values if "unknown" not in values else {**whole, **values}))

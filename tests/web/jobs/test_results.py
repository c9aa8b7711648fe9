"""Results on their way: through JSON and back, and as earlier versions of veilog wrote them."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_work import made

from veilog._plain import Misfit, from_plain
from veilog.web.jobs.read_log import ReadLog
from veilog.web.jobs.records import LogRecord, ReleaseRequest, Settings
from veilog.web.jobs.released_log import ReleasedLog
from veilog.web.jobs.results import from_text, to_text
from veilog.web.jobs.store import Store
from veilog.web.pages import render as pages

EARLIER: dict[str, Any] = json.loads((Path(__file__).parent / "earlier_version.json").read_text())
"""What the version before this module kept of a small log and its release, and its request."""
LOG, JOB = "a" * 32, "b" * 32


@pytest.mark.parametrize(("kind", "name"), [("read", "read"), ("read", "asks"), ("release", "release")])
def test_what_an_earlier_version_wrote_is_read_and_written_as_ours(kind: Any, name: str) -> None:
    found = from_text(kind, json.dumps(EARLIER[name]))
    assert from_text(kind, to_text(found)) == found


def test_what_was_measured_then_is_there() -> None:
    read, asks = (from_text("read", json.dumps(EARLIER[name])) for name in ("read", "asks"))
    assert isinstance(read, ReadLog) and isinstance(asks, ReadLog)
    assert read.measured is not None and read.measured.statistics.cases == 6
    assert [unit.unit for unit in read.measured.units] == ["Patient"]
    assert asks.measured is None and asks.problem == "No column looks like the case."
    made = from_text("release", json.dumps(EARLIER["release"]))
    assert isinstance(made, ReleasedLog) and made.beside is not None
    assert (made.certificate.guarantee.proven, made.beside.before.cases) == (True, 6)
    assert made.owner_only.notes == tuple(EARLIER["release"]["owner_only"]["notes"])
    older = {name: value for name, value in EARLIER["release"].items() if name not in ("owner_only", "unwritten")}
    assert from_text("release", json.dumps(older)).unwritten == (), "as in versions before that one"


def test_what_an_earlier_version_permitted_is_not_shown_any_more() -> None:
    """Its sentences were kept in the language of whoever asked, and said that a release may be sent."""
    earlier = {**EARLIER["release"], "decision": {"answer": "Sie dürfen sie an jede Person weitergeben."}}
    found = from_text("release", json.dumps(earlier))
    assert isinstance(found, ReleasedLog) and found.told is None and found.level == found.certificate.guarantee.strength
    assert "dürfen" not in to_text(found)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store as an earlier version left it: a log that was read, and a release of it."""
    store = Store(tmp_path / "veilog.sqlite")
    store.add_log(LOG, "s", "ward.csv", 5, ".csv")
    store.add_job("c" * 32, "s", LOG, "read", ReleaseRequest())
    store.add_job(JOB, "s", LOG, "release", ReleaseRequest())
    with store._writing() as connection:
        connection.execute("UPDATE jobs SET request = ? WHERE id = ?", (json.dumps(EARLIER["request"]), JOB))
        connection.execute("UPDATE jobs SET request = '{}' WHERE kind = 'read'")
    for kind, job in (("read", "c" * 32), ("release", JOB)):
        store.start(job)
        store.end(job, "running", "done", json.dumps(EARLIER[kind]), None)
    yield store
    store.close()


def shown(store: Store, tmp_path: Path) -> str:
    """The page of the release."""
    settings = Settings(folder=tmp_path, ledger=tmp_path / "veilog.ledger", token="")
    log, job = store.log("s", LOG), store.job("s", JOB)
    assert isinstance(log, LogRecord) and job is not None
    for page in (pages.log_page(log, "once"), pages.exposure(log), pages.home([log], [job], settings, "once")):
        assert "ward.csv" in page
    return pages.job_page(job, log, "once", settings=settings)


@pytest.mark.slow
def test_old_records_have_their_pages(store: Store, tmp_path: Path) -> None:
    page = shown(store, tmp_path)
    assert "--method evolve --epsilon 0.5 --activities log -p rounds=2" in page
    assert "Original beside release" in page and "Write again" in page
    job = store.job("s", JOB)
    assert job is not None and job.request.form == EARLIER["request"]


def test_the_form_of_an_old_job_that_makes_no_plan_any_more_is_said_to_be_so(store: Store, tmp_path: Path) -> None:
    with store._writing() as connection:
        form = json.dumps({**EARLIER["request"], "p_forgotten": "1"})
        connection.execute("UPDATE jobs SET request = ? WHERE id = ?", (form, JOB))
    page = shown(store, tmp_path)
    assert "a way that this version of veilog does not know" in page and "Original beside release" in page


@pytest.mark.parametrize("text", ["{}", "[]", "7", '{"certificate": 3}', "no JSON"])
def test_a_result_that_nobody_understands_is_said_to_be_so(store: Store, tmp_path: Path, text: str) -> None:
    with store._writing() as connection:
        connection.execute("UPDATE jobs SET result = ? WHERE id = ?", (text, JOB))
    page = shown(store, tmp_path)
    assert "another version of veilog" in page and "The result cannot be shown" in page
    assert "failed" not in page.split("<main")[1]


def test_a_request_is_kept_whole(tmp_path: Path) -> None:
    request = ReleaseRequest({"method": "evolve", "epsilon": "1"}, {"method": "evolve", "epsilon": "1,0"}, "7")
    with contextlib.closing(Store(tmp_path / "veilog.sqlite")) as store:
        store.add_log(LOG, "s", "ward.csv", 5, ".csv")
        store.add_job(JOB, "s", LOG, "release", request)
        job = store.job("s", JOB)
    assert job is not None and job.request == request


def test_numbers_that_are_none_are_no_result() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        to_text(made(budget=float("nan")))


def test_lenience_is_for_what_has_a_usual_value_and_never_for_types() -> None:
    with pytest.raises(Misfit):
        from_plain(ReadLog, {"findings": []}, lenient=True)
    with pytest.raises(Misfit):
        from_plain(ReadLog, {"problem": 3}, lenient=True)
    with pytest.raises(Misfit):
        from_plain(ReadLog, {"problem": None})
    assert from_plain(ReadLog, {"problem": None, "unknown": 1}, lenient=True) == ReadLog(None)
    files = {**json.loads(to_text(made())), "files": {"release.xes": "large"}}
    with pytest.raises(Misfit):
        from_plain(ReleasedLog, files, lenient=True)

"""A charged release is never lost to a full disk: room is reserved beforehand."""

import errno
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from refusals import refused, sentence
from web_logs import EVOLVE, entry, job, read, record, released, request_of, says, silent
from web_serving import SMALL, Served, once_of, read_at_once, served, upload
from web_work import made as finished

from veilog.errors import InputError, OutputError
from veilog.ledger.accounts import Account
from veilog.ledger.ledger import Ledger
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.releasing.result import Release
from veilog.web.jobs.records import FILES, JobRequest, ServerSettings
from veilog.web.jobs.results import ReleasedLog, from_text, to_text
from veilog.web.jobs.worker import PAID, RESULT, WorkerTask
from veilog.web.pages import render as pages
from veilog.web.work import release_job, work_on, write_again
from veilog.web.work.accounts import AccountSeen


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("hospital") / "log.xes"
    files.write(hospital(150, seed=3), target)
    return target


WRITE_AGAIN = f'action="/jobs/{"b" * 32}/write"'
ONE_LOG = {name for name in FILES if "models" not in name}
"""Files of a release without a second log."""


def no_room(path: object) -> OutputError:
    """Return the error of a full disk."""
    error = OutputError("The file cannot be written.", path=str(path))
    error.__cause__ = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return error


class Full:
    """Disk without room for files with these endings, for so many times."""

    def __init__(self, patch: pytest.MonkeyPatch, suffixes: tuple[str, ...], times: int = 1_000) -> None:
        self.refused: list[str] = []
        self._save = Release.save
        patch.setattr(Release, "save", lambda *given, **named: self.save(*given, **named))
        self._suffixes, self._times = suffixes, times

    def save(self, own: Release, target: Path, **named: Any) -> None:
        if target.name.endswith(self._suffixes) and len(self.refused) < self._times:
            self.refused.append(target.name)
            raise no_room(target)
        self._save(own, target, **named)


@pytest.mark.slow
def test_without_room_for_its_files_nothing_is_asked(
    path: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=5_000_000))
    with refused(InputError, "release-files-over-disk"):
        released(path, EVOLVE, settings, tmp_path / "out")
    assert not settings.ledger.exists()
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room is set aside where the system can")
def test_the_room_is_taken_before_the_first_question(
    path: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*given: object, **named: object) -> None:
        assert (tmp_path / "out" / "spare").stat().st_size > 16 << 20
        raise InputError("Asked.")

    monkeypatch.setattr("veilog.releasing.run.run_plan", asked)
    with pytest.raises(InputError, match="Asked"):
        released(path, EVOLVE, settings, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.nightly
def test_a_release_that_cannot_be_kept_yet_waits_for_room(
    path: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veilog.web.work.release_job._AGAIN", 0.01)
    disk = Full(monkeypatch, (".parquet",), times=3)
    result = released(path, EVOLVE, settings, tmp_path / "out")
    assert disk.refused == ["release.parquet"] * 3
    assert (result.missing, result.unwritten, set(result.files)) == ((), (), ONE_LOG)
    assert len(Ledger.open(settings.ledger).show()[0].entries) == 1


@pytest.mark.nightly
def test_a_worker_that_is_killed_while_it_writes_loses_no_release(
    path: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is killed while it writes loses no release."""
    first, second = tmp_path / "jobs" / "first", tmp_path / "jobs" / "second"
    first.mkdir(parents=True), second.mkdir()

    def killed(*given: object) -> None:
        raise SystemExit(137)  # before the first file of the release has its name

    with monkeypatch.context() as patch:
        patch.setattr("veilog.web.work.release_job._secure_release", killed)
        with pytest.raises(SystemExit):
            released(path, EVOLVE, settings, first)
    kept = tmp_path / "all.ledger.kept" / "1.parquet"
    assert kept.exists() and not (first / "release.parquet").exists()
    (first / PAID).rename(first / RESULT)
    task = WorkerTask("release", str(path), "log.xes", {}, replace(request_of(EVOLVE), write="first"), str(second))
    again = work_on(task, settings, silent)
    assert (again.missing, again.unwritten, set(again.files)) == ((), (), ONE_LOG - {"internal-report.html"})
    (entry,) = Ledger.open(settings.ledger).show()[0].entries
    assert entry.state == "written" and len(entry.outputs) == 4
    assert not kept.parent.exists()


@pytest.mark.nightly
@pytest.mark.parametrize("both", [False, True], ids=["one log", "two logs"])
def test_what_had_no_room_is_written_again_without_another_question(
    path: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, both: bool
) -> None:
    first, second = tmp_path / "jobs" / "first", tmp_path / "jobs" / "second"
    first.mkdir(parents=True), second.mkdir()
    with monkeypatch.context() as patch:
        Full(patch, (".xes", ".csv"))
        result = released(path, {**EVOLVE, "times": "0.3", "p_for": "both" if both else "similarity"}, settings, first)
    assert result.unwritten == ("release.xes", "release.csv")
    page = pages.job_page(job("release", result, EVOLVE), record(read(path)), "once")
    assert 'data-state="unwritten"' in page and "full" in says(page) and WRITE_AGAIN in page
    (first / RESULT).write_text(to_text(result))
    before = Ledger.open(settings.ledger).show()[0]
    task = WorkerTask("release", str(path), "log.xes", {}, replace(request_of(EVOLVE), write="first"), str(second))
    again = work_on(task, settings, silent)
    assert (again.missing, again.unwritten, set(again.files)) == ((), (), set(FILES) if both else ONE_LOG)
    after = Ledger.open(settings.ledger).show()[0]
    assert (after.spent, len(after.entries)) == (before.spent, 1)
    assert len(after.entries[0].outputs) == (8 if both else 4)
    kept, log, table = (files.read(second / f"release.{suffix}") for suffix in ("parquet", "xes", "csv"))
    assert kept.variants == log.variants == table.variants
    assert kept.metadata == log.metadata, "with its guarantee"
    if both:
        models = [files.read(second / f"release-models.{suffix}").variants for suffix in ("parquet", "xes", "csv")]
        assert models[0] == models[1] == models[2]
    page = pages.job_page(job("release", again, EVOLVE), record(read(path)), "once")
    assert 'data-state="ready"' in page and WRITE_AGAIN not in page
    failed = job("release", None, EVOLVE, state="failed", problem="No room.")
    failed = replace(failed, request=replace(failed.request, write="f" * 32))
    page = pages.job_page(failed, record(read(path)), "once")
    assert f'href="/jobs/{"f" * 32}"' in page and "/release?of=" not in page, "that would cost once more"
    shutil.rmtree(first)
    with refused(InputError, "release-no-longer-kept"):
        write_again(first, second, settings, silent)


@pytest.fixture
def unfinished(path: Path, settings: ServerSettings, tmp_path: Path) -> Path:
    """Return a kept release whose other files had no room on the disk."""
    first = tmp_path / "jobs" / "first"
    first.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        Full(patch, (".xes", ".csv"))
        (first / RESULT).write_text(to_text(released(path, EVOLVE, settings, first)))
    return first


@pytest.mark.nightly
def test_what_is_stopped_before_a_file_that_is_written_again_is_noted_has_no_such_file(
    unfinished: Path, settings: ServerSettings, tmp_path: Path
) -> None:
    """A stop before the entry leaves no file of which the ledger knows nothing."""
    (second := tmp_path / "jobs" / "second").mkdir()

    def stopped(*given: object) -> None:
        raise SystemExit(1)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr("veilog.ledger.ledger.change", stopped)
        write_again(unfinished, second, settings, silent)
    assert not (second / "release.xes").exists()
    assert len(Ledger.open(settings.ledger).show()[0].entries[0].outputs) == 2, "what there was room for"


@pytest.mark.nightly
@pytest.mark.parametrize("again", [False, True], ids=["at first", "again"])
def test_files_of_which_a_lost_ledger_knows_nothing_are_said_to_be_there_and_not_where(
    unfinished: Path, path: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    (second := tmp_path / "jobs" / "second").mkdir()
    if again:
        settings.ledger.unlink()
        result = write_again(unfinished, second, settings, silent)
    else:
        secured = release_job._secure_release

        def lost(*given: Any) -> None:
            secured(*given)
            settings.ledger.unlink()

        monkeypatch.setattr(release_job, "_secure_release", lost)
        result = released(path, EVOLVE, settings, second)
    assert {"release.xes", "release.csv"} <= set(result.files) and result.unwritten == ()
    said = [words for words in result.missing if words.startswith(("release.xes", "release.csv"))]
    assert [words.split()[0] for words in said] == ["release.xes", "release.csv"]
    assert all(sentence("ledger-file-missing") in words for words in said)
    assert not any(str(tmp_path) in words for words in result.missing)


@pytest.mark.nightly
def test_a_release_without_any_file_of_its_log_is_not_called_ready(
    path: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(own: Release, target: Path, **named: Any) -> None:
        raise OutputError("It cannot be.", path=target)

    monkeypatch.setattr(Release, "save", broken)
    result = released(path, EVOLVE, settings, tmp_path / "out")
    page = pages.job_page(job("release", result, EVOLVE), record(read(path)), "once")
    assert 'data-state="lost"' in page


@pytest.mark.nightly
def test_what_is_stopped_while_its_files_are_written_is_kept(
    path: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "jobs" / "first", tmp_path / "jobs" / "second"
    first.mkdir(parents=True), second.mkdir()
    save = Release.save

    def stopped(release: Release, target: Path, **how: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)  # at the first file it waits until that is written
        save(release, target, **how)

    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # at once, the release would be lost
    try:
        with monkeypatch.context() as patch, pytest.raises(SystemExit):
            patch.setattr(Release, "save", stopped)
            released(path, EVOLVE, settings, first)
    finally:
        signal.signal(signal.SIGTERM, before)
    (first / PAID).rename(first / RESULT)
    result = from_text("release", (first / RESULT).read_text())
    assert isinstance(result, ReleasedLog)
    assert result.stopped and result.unwritten == (
        "release.xes",
        "release.csv",
        "release.xlsx",
        "recipient-report.html",
        "dossier.html",
    )
    assert set(result.files) == {"certificate.json", "release.parquet"}
    ended, log = job("release", result, EVOLVE), record(read(path))
    page = pages.job_page(ended, log, "once")
    assert "stopped" in says(page) and WRITE_AGAIN in page and "disk" not in page
    seen = AccountSeen(Account(1, "log.xes", "case", None, (entry(),)))
    assert "unwritten" in says(pages.account(log, seen, {1: ended}, {}, "once"))
    task = WorkerTask("release", str(path), "log.xes", {}, replace(request_of(EVOLVE), write="first"), str(second))
    again = work_on(task, settings, silent)
    assert (again.missing, again.unwritten, again.stopped) == ((), (), False)
    assert set(again.files) == ONE_LOG - {"internal-report.html"}
    assert len(Ledger.open(settings.ledger).show()[0].entries) == 1


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "data") as found:
        yield found


@pytest.mark.slow
def test_the_button_makes_a_job_that_only_writes(server: Served) -> None:
    with server.browser() as client, server.browser() as other:
        log = upload(client, SMALL).headers["location"]
        read_at_once(server, log)
        form = {"once": once_of(client.get(f"{log}/release")), **EVOLVE, "write": "f" * 32}
        address = client.post(f"{log}/jobs", data=form).headers["location"]
        made = address.rpartition("/")[2]
        assert _request(server, made).write is None, "no form can say that"
        assert _write(client, address).status_code == 400, "it is not even made"
        server.store.start(made)
        server.store.end(made, "running", "done", to_text(finished(unwritten=("release.xes",))), None)
        once = once_of(other.get("/"))
        assert other.post(f"{address}/write", data={"once": once}).status_code == 404
        again = _write(client, address).headers["location"]
        assert again != address
        assert _request(server, again.rpartition("/")[2]).write == made


def _write(client: httpx.Client, address: str) -> httpx.Response:
    return client.post(f"{address}/write", data={"once": once_of(client.get("/"))})


def _request(server: Served, job_id: str) -> JobRequest:
    found = server.store.any_job(job_id)
    assert found is not None
    return found[0].request

"""The server's store: whole changes, separate sessions, and complete deletion."""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import refused

from veilog.errors import InputError
from veilog.web.jobs import store as stores
from veilog.web.jobs.records import JobRequest, is_full
from veilog.web.jobs.results import ReadLog, to_text
from veilog.web.jobs.store import Store

A, B = "a" * 32, "b" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with contextlib.closing(Store(tmp_path / "veilog.sqlite")) as made:
        yield made


def test_a_form_does_its_work_once(store: Store) -> None:
    done: list[str] = []

    def make() -> str:
        done.append("x")
        return "/logs/1"

    assert [store.first_time("form", "/logs", make) for _ in range(3)] == ["/logs/1"] * 3
    assert store.sent("form", "/logs") == "/logs/1"
    assert len(done) == 1
    store.first_time("form", "/other", make)  # another form of the same page
    assert len(done) == 2


def test_a_form_sent_twice_at_the_same_time_does_its_work_once(store: Store) -> None:
    start = threading.Barrier(8)
    got: list[str] = []

    def send(number: int) -> None:
        def make() -> str:
            store.add_log(f"{number}" * 32, A, "log", 1, ".csv")
            return str(number)

        start.wait()
        got.append(store.first_time("form", "/logs", make))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == 1
    assert len(store.logs(A)) == 1


def test_work_that_fails_leaves_nothing_and_can_be_sent_again(store: Store) -> None:
    def fail() -> str:
        store.add_log(A, A, "log", 1, ".csv")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.first_time("form", "/logs", fail)
    assert store.logs(A) == []
    assert store.first_time("form", "/logs", lambda: "/x") == "/x"


def test_everything_belongs_to_a_session(store: Store) -> None:
    store.add_log(A, "mine", "log.csv", 5, ".csv")
    store.add_job(B, "mine", A, "release", JobRequest(form={"method": "evolve"}))
    assert store.log("mine", A) is not None
    assert store.job("mine", B) is not None
    for other in ("theirs", "", "mine%", "MINE", "mine' OR '1'='1"):
        assert store.log(other, A) is None
        assert store.job(other, B) is None
        assert store.logs(other) == store.jobs(other) == []


def test_a_job_ends_once(store: Store) -> None:
    store.add_log(A, A, "log.csv", 5, ".csv")
    store.add_job(B, A, A, "read", JobRequest())
    assert not store.end(B, "running", "done", "{}", None)
    assert store.start(B)
    assert not store.start(B)
    assert not store.end(B, "queued", "cancelled", None, "no")
    assert store.end(B, "running", "done", to_text(ReadLog("Which column?")), None)
    assert not store.end(B, "running", "failed", None, "late")
    log = store.log(A, A)
    assert log is not None
    assert log.reading is not None
    assert (log.reading.state, log.reading.result) == ("done", ReadLog("Which column?"))


def test_a_log_shows_its_newest_reading(store: Store) -> None:
    store.add_log(A, A, "log.csv", 5, ".csv")
    for job in ("1" * 32, "2" * 32):
        store.add_job(job, A, A, "read", JobRequest())
    log = store.log(A, A)
    assert log is not None
    assert log.reading is not None
    assert log.reading.id == "2" * 32


def test_all_of_it_is_there_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Store(tmp_path / "veilog.sqlite")
    key = first.key()
    planted = first.admit(None, "x")
    cookie = first.admit(planted, "x")
    session = first.session(cookie, "x")
    assert session is not None
    assert first.session(planted, "x") is None, "a cookie that somebody else may know is worth nothing"
    first.add_log(A, session, "log.csv", 5, ".csv")
    first.set_columns(A, {"case": "id"})
    first.add_job(B, session, A, "read", JobRequest({"method": "evolve"}, {"a": "b"}, "7"))
    first.first_time("form", "/logs", lambda: "/there")
    logs, jobs = first.logs(session), first.jobs(session)
    first.close()
    second = Store(tmp_path / "veilog.sqlite")
    assert second.key() == key
    assert second.session(cookie, "x") == session
    assert second.session(cookie, "y") is None
    monkeypatch.setattr(stores, "time", SimpleNamespace(time=lambda: time.time() + 31 * 86400))
    assert second.session(cookie, "x") is None, "after a month it is asked for the token"
    assert (second.logs(session), second.jobs(session)) == (logs, jobs)
    assert [job.id for job in second.queued()] == [B]
    assert second.sent("form", "/logs") == "/there"
    second.close()


def test_deleting_a_log_deletes_what_was_made_of_it_also_from_the_file(store: Store, tmp_path: Path) -> None:
    store.add_log(A, A, "very-secret-name.csv", 5, ".csv")
    store.add_job(B, A, A, "release", JobRequest(form={"activities": "very-secret-activity"}))
    store.start(B)
    store.end(B, "running", "done", '{"variant": "very-secret-variant"}', None)
    assert store.delete_log(A) == [B]
    store.forget()
    assert store.logs(A) == store.jobs(A) == []
    for path in tmp_path.iterdir():
        assert b"very-secret" not in path.read_bytes()


@pytest.mark.nightly
def test_a_second_server_on_the_same_folder_is_refused(store: Store, tmp_path: Path) -> None:
    with refused(InputError, "serve-folder-in-use"):
        Store(tmp_path / "veilog.sqlite")
    store.close()
    Store(tmp_path / "veilog.sqlite").close()


@pytest.mark.parametrize("content", [b"x" * 5000, b"SQLite format 3\0" + b"y" * 5000])
def test_a_file_that_is_none_of_ours_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "veilog.sqlite"
    path.write_bytes(content)
    with refused(InputError, "serve-records-unusable"):
        Store(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("version", [1, 3, 99])
def test_the_records_of_another_version_are_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "veilog.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with refused(InputError, "server-records-version-other"):
        Store(path)


def test_notes_stay_with_their_browser_and_go_with_a_log_that_is_taken_over(store: Store) -> None:
    store.add_log(A, A, "log.csv", 5, ".csv")
    store.add_job(B, A, A, "release", JobRequest())
    store.enter(B, 7)
    store.set_note(A, 7, "University", "")
    assert store.notes(B) == {}
    assert store.take_over(A, B)
    assert store.notes(B) == {7: ("University", "")}


def test_a_full_disk_is_known_for_one_and_changes_nothing(store: Store) -> None:
    store.add_log(A, A, "log.csv", 5, ".csv")
    store._connection.execute(f"PRAGMA max_page_count = {store._connection.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(sqlite3.OperationalError) as told:
        store.first_time(
            "form", "/x", lambda: store.add_job(B, A, A, "read", JobRequest(form={"x": "y" * 100_000})) or "/x"
        )
    assert is_full(told.value)
    assert store.jobs(A) == []
    assert store.sent("form", "/x") is None
    assert len(store.logs(A)) == 1

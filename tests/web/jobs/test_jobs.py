"""The queue and the workers: fairness, progress, cancelling, and deaths."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_work import made, work

from veilog.ledger.ledger import Ledger
from veilog.messages import message_from
from veilog.web.jobs.queue import Jobs, _Running, order_fairly
from veilog.web.jobs.records import JobRecord, JobRequest, ServerSettings
from veilog.web.jobs.results import ReleasedLog, to_text
from veilog.web.jobs.store import Store, Waiting
from veilog.web.jobs.worker import PAID, WorkerProcess, WorkerTask
from veilog.web.server import prepare_folder

SESSION = "s" * 32
LOG = "a" * 32


class Queue:
    """Store with its jobs, and a log to work on."""

    def __init__(self, folder: Path, workers: int = 1, memory: int = 4 << 30, seconds: float = 600) -> None:
        limits = {"workers": workers, "job_memory": memory, "job_seconds": seconds}
        self.settings = ServerSettings(folder=prepare_folder(folder), ledger=folder / "l", token="", **limits)
        self.store = Store(self.settings.folder / "veilog.sqlite")
        if self.store.log(SESSION, LOG) is None:
            self.store.add_log(LOG, SESSION, "ward.csv", 3, ".csv")
            (self.settings.folder / "logs" / LOG).mkdir()
            (self.settings.folder / "logs" / LOG / "log.csv").write_text("log")
        self.jobs = Jobs(self.store, self.settings, work)

    def submit(self, do: str, session: str = SESSION, **request: str) -> str:
        return self.jobs.submit(session, LOG, "release", JobRequest(form={"do": do, **request}))

    def job(self, job: str, session: str = SESSION) -> JobRecord:
        found = self.store.job(session, job)
        assert found is not None
        return self.jobs.now(found)

    def until(self, job: str, seen: Callable[[JobRecord], bool], session: str = SESSION) -> JobRecord:
        end = time.monotonic() + 180  # other work may hold the processors
        while not seen(self.job(job, session)):
            assert time.monotonic() < end, self.job(job, session)
            time.sleep(0.05)
        return self.job(job, session)

    def ended(self, job: str) -> JobRecord:
        return self.until(job, lambda record: record.ended)

    def files(self, job: str) -> list[str]:
        return sorted(path.name for path in self.jobs.folder(job).rglob("*"))

    def close(self) -> None:
        self.jobs.stop()
        self.store.close()


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    made = Queue(tmp_path_factory.mktemp("jobs") / "data", memory=500 << 20)
    made.jobs.start()
    yield made
    made.close()


@pytest.mark.slow
def test_a_job_is_done_with_its_files(queue: Queue) -> None:
    first, second = (queue.submit("short", text="mine") for _ in range(2))
    job = queue.ended(first)
    assert (job.state, job.problem) == ("done", None)
    assert isinstance(job.result, ReleasedLog)
    assert job.result.missing == ("ward.csv",)
    assert job.started is not None
    assert job.finished is not None
    assert job.created <= job.started <= job.finished
    assert queue.files(job.id) == ["release.xes", "result.json"]
    assert (queue.jobs.folder(job.id) / "release.xes").read_text() == "mine"
    queue.jobs.cancel(job.id)
    assert queue.job(job.id).state == "done", "what is done stays done"
    assert "release.xes" in queue.files(job.id)
    other = queue.ended(second).result
    assert isinstance(other, ReleasedLog)
    assert other.entry != job.result.entry, "every job has a process of its own"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("do", "problem"),
    [
        ("killed", "job-died"),
        ("exits", "job-died"),
        ("greedy", "job-memory-on-record"),
        ("mistake", "ward.csv: The third line is wrong."),
    ],
)
def test_whatever_ends_a_job_is_told(queue: Queue, do: str, problem: str) -> None:
    job = queue.ended(queue.submit(do))
    assert (job.state, job.problem) == ("failed", problem), "without a path of this machine"
    assert queue.files(job.id) == []


@pytest.mark.nightly
def test_what_runs_tells_its_progress_and_can_be_cancelled(queue: Queue) -> None:
    job = queue.submit("long")
    seen = queue.until(job, lambda record: record.fraction is not None)
    assert (seen.state, seen.text, seen.fraction) == ("running", "working on ward.csv", 0.25)
    later = queue.until(job, lambda record: record.left is not None)
    assert later.left is not None
    assert later.left > 0
    queue.jobs.cancel(job)
    ended = queue.ended(job)
    assert ended.state == "cancelled"
    assert ended.problem == "job-cancelled-on-record"
    assert queue.files(job) == []


@pytest.mark.slow
def test_cancelling_at_any_moment_leaves_all_or_nothing(queue: Queue) -> None:
    """A cancelled job never keeps files, and a done one never loses them."""
    for pause in (0.0, 0.05, 0.3):
        job = queue.submit("short")
        queue.until(job, lambda record: record.state != "queued")
        time.sleep(pause)
        queue.jobs.cancel(job)
        ended = queue.ended(job)
        assert ended.state in ("done", "cancelled")
        assert queue.files(job) == (["release.xes", "result.json"] if ended.state == "done" else [])


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system tells no processor times")
def test_a_job_that_takes_all_the_time_there_is_is_stopped(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "data", seconds=1.2)
    queue.jobs.start()
    try:
        job = queue.ended(queue.submit("spins"))
        assert job.state == "failed" and job.problem is not None
        told = message_from(json.loads(job.problem))
        assert (told.code, told.values["minutes"]) == ("job-too-long", pytest.approx(0.02))
        assert queue.ended(queue.submit("short")).state == "done", "the next one has its turn"
    finally:
        queue.close()


@pytest.mark.nightly
def test_what_is_made_is_shown_and_kept_though_the_rest_is_stopped(queue: Queue) -> None:
    job = queue.submit("made, then long")
    seen = queue.until(job, lambda record: record.result is not None and record.fraction is not None)
    assert (seen.state, seen.fraction) == ("running", 0.9)
    queue.jobs.cancel(job)
    ended = queue.ended(job)
    assert ended.state == "done" and isinstance(ended.result, ReleasedLog)
    assert (ended.result.missing, ended.entry) == (("so far",), 7)
    assert "release.xes" in queue.files(job)


@pytest.mark.nightly
def test_what_a_job_had_entered_is_known_whatever_ended_it(queue: Queue) -> None:
    job = queue.ended(queue.submit("entered, then killed"))
    assert (job.state, job.entry) == ("failed", 8)


@pytest.mark.nightly
def test_cancelling_what_does_not_listen_ends_it_too(queue: Queue) -> None:
    job = queue.submit("deaf")
    queue.until(job, lambda record: record.text == "deaf")
    queue.jobs.cancel(job)
    assert queue.ended(job).state == "cancelled"
    assert queue.files(job) == []


@pytest.mark.nightly
def test_deleting_what_runs_ends_it_with_its_files(queue: Queue) -> None:
    job = queue.submit("deaf")
    queue.until(job, lambda record: record.text == "deaf")
    queue.jobs.delete(job)
    assert queue.store.job(SESSION, job) is None
    end = time.monotonic() + 60
    while queue.jobs.folder(job).exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not queue.jobs.folder(job).exists()


@pytest.mark.parametrize("again", [False, True], ids=["cancelled", "server stopped"])
def test_what_is_paid_for_is_kept_though_its_files_were_not_written(tmp_path: Path, again: bool) -> None:
    queue = Queue(tmp_path / "data", workers=0)
    job = queue.submit("short")
    queue.store.start(job)
    folder = queue.jobs.folder(job)
    (folder / "tmp").mkdir(parents=True)
    (folder / PAID).write_text(to_text(made(unwritten=("release.xes",), stopped=True, entry=7)))
    (folder / "entry").write_text("7")
    if again:
        queue.jobs._recover()
    else:
        queue.jobs._settle(job, _Running(stop="cancelled"), False, None)
    ended = queue.job(job)
    assert (ended.state, ended.entry, ended.problem) == ("done", 7, None)
    assert isinstance(ended.result, ReleasedLog) and ended.result.unwritten == ("release.xes",)
    assert queue.files(job) == ["entry", "result.json"] + ["tmp"] * again
    queue.close()


def test_what_waits_says_how_many_are_before_it_and_can_be_cancelled(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "data", workers=0)
    first, second, third = (queue.submit("short") for _ in range(3))
    assert [queue.job(job).ahead for job in (first, second, third)] == [0, 1, 2]
    queue.jobs.cancel(second)
    cancelled = queue.job(second)
    assert (cancelled.state, cancelled.problem) == ("cancelled", "job-cancelled")
    assert queue.job(third).ahead == 1
    queue.jobs.delete(first)
    assert queue.job(third).ahead == 0
    queue.close()


def killed() -> int:
    """Kill all workers, and return their number."""
    number = 0
    for child in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        for pid in child.read_text().split():
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)
                number += 1
    return number


@pytest.mark.nightly
def test_a_worker_that_was_killed_while_it_waited_costs_no_job(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "data")
    queue.jobs.start()
    try:
        first = queue.ended(queue.submit("short"))
        assert first.state == "done"
        end = time.monotonic() + 60
        while not killed() and time.monotonic() < end:
            time.sleep(0.05)
        assert queue.ended(queue.submit("short")).state == "done"
    finally:
        queue.close()


@pytest.mark.nightly
def test_a_worker_that_dies_before_it_hears_of_its_job_costs_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[WorkerTask] = []
    give = WorkerProcess.give

    def too_late(process: WorkerProcess, task: WorkerTask) -> None:
        tried.append(task)
        if len(tried) == 1:
            os.kill(process._process.pid or 0, signal.SIGKILL)
            process._process.join()
        give(process, task)

    monkeypatch.setattr(WorkerProcess, "give", too_late)
    queue = Queue(tmp_path / "data")
    queue.jobs.start()
    try:
        assert queue.ended(queue.submit("short")).state == "done"
        assert len(tried) == 2
    finally:
        queue.close()


@pytest.mark.slow
@pytest.mark.false_alarm(
    1e-9, "levels 1 and 2 are asked in vain if noise of scale 50 at most takes 2,000 cases below 400: exp(-32)"
)
def test_a_release_that_is_cancelled_stays_in_the_ledger(queue: Queue) -> None:
    job = queue.submit("release and stop")
    queue.until(job, lambda record: record.text == "asked 3")
    queue.jobs.cancel(job)
    assert queue.ended(job).state == "cancelled"
    (account,) = Ledger.open(queue.settings.ledger).show()
    entry = account.entries[-1]
    assert entry.state == "charged"
    assert entry.epsilon is not None
    assert 0 < entry.epsilon < 1, "what was asked until then, and no more"
    queue.jobs.delete(job)
    assert Ledger.open(queue.settings.ledger).show() == (account,)


@pytest.mark.nightly
@pytest.mark.false_alarm(
    1e-9, "levels 1 and 2 are asked in vain if noise of scale 50 at most takes 2,000 cases below 400: exp(-32)"
)
def test_a_release_whose_worker_is_killed_stays_reserved_in_full(queue: Queue) -> None:
    before = {e.number for account in Ledger.open(queue.settings.ledger, create=True).show() for e in account.entries}
    job = queue.submit("release and stop")
    queue.until(job, lambda record: record.text == "asked 3")
    (pid,) = [int(place.name) for place in Path("/proc").iterdir() if _works_in(place, queue.jobs.folder(job))]
    os.kill(pid, signal.SIGKILL)
    ended = queue.ended(job)
    assert ended.state == "failed"
    assert ended.problem == "job-died"
    after = [e for account in Ledger.open(queue.settings.ledger).show() for e in account.entries]
    assert [(e.state, e.epsilon) for e in after if e.number not in before] == [("reserved", 1)]


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink() == folder / "tmp"
    except OSError:
        return False


@pytest.mark.nightly
def test_what_ran_when_the_server_stopped_failed_and_what_waited_goes_on(tmp_path: Path) -> None:
    first = Queue(tmp_path / "data")
    first.jobs.start()
    running, waiting = first.submit("long"), first.submit("short")
    first.until(running, lambda record: record.fraction is not None)
    first.close()
    second = Queue(tmp_path / "data")
    try:
        stopped = second.job(running)
        assert (stopped.state, stopped.problem) == ("failed", "job-stopped")
        assert second.job(waiting).state == "queued"
        second.jobs.start()
        assert second.ended(waiting).state == "done"
    finally:
        second.close()


def test_what_ran_when_the_machine_went_off_failed_unless_all_of_it_was_there(tmp_path: Path) -> None:
    first = Queue(tmp_path / "data", workers=0)
    cut, whole, waiting = (first.submit("short") for _ in range(3))
    for job in (cut, whole):
        assert first.store.start(job)
        first.jobs.folder(job).mkdir()
        (first.jobs.folder(job) / "release.xes").write_text("x")
    (first.jobs.folder(whole) / "result.json").write_text(to_text(made()))
    (first.settings.folder / "jobs" / ("f" * 32)).mkdir()
    (first.settings.folder / "logs" / ("f" * 32)).mkdir()
    first.store.close()
    second = Queue(tmp_path / "data", workers=0)
    second.jobs.start()
    assert [second.job(job).state for job in (cut, whole, waiting)] == ["failed", "done", "queued"]
    assert second.files(cut) == []
    assert second.files(whole) == ["release.xes", "result.json"]
    assert not list(second.settings.folder.glob("*/" + "f" * 32)), "what no record knows is swept away"
    assert (second.settings.folder / "logs" / LOG / "log.csv").is_file()
    second.close()


def test_a_job_keeps_the_columns_it_was_queued_with(tmp_path: Path) -> None:
    queue = Queue(tmp_path / "data", workers=0)
    queue.store.set_columns(LOG, {"case": "before"})
    job = queue.submit("short")
    queue.store.set_columns(LOG, {"case": "after"})
    found = queue.store.any_job(job)
    assert found is not None
    assert found[1].columns == {"case": "before"}
    queue.close()


@pytest.mark.slow
@given(st.lists(st.integers(0, 4), max_size=30), st.dictionaries(st.integers(0, 4).map(str), st.integers(0, 9)))
def test_turns_are_fair(sessions: list[int], served: dict[str, int]) -> None:
    """No session gets a second turn while another waits for its first, in order."""
    waiting = [Waiting(str(number), str(session)) for number, session in enumerate(sessions)]
    order = order_fairly(waiting, served)
    assert sorted(order, key=lambda job: int(job.id)) == waiting
    for session in set(map(str, sessions)):
        own = [int(job.id) for job in order if job.session == session]
        assert own == sorted(own)
    left = Counter(str(session) for session in sessions)
    got: Counter[str] = Counter()
    for job in order:
        assert all(got[job.session] <= got[other] for other in left if left[other] and other != job.session)
        got[job.session] += 1
        left[job.session] -= 1


@pytest.mark.slow
def test_who_was_served_longest_ago_is_next() -> None:
    waiting = [Waiting("1", "a"), Waiting("2", "a"), Waiting("3", "b"), Waiting("4", "c")]
    assert [job.id for job in order_fairly(waiting, {})] == ["1", "3", "4", "2"]
    assert [job.id for job in order_fairly(waiting, {"a": 3, "b": 1})] == ["4", "3", "1", "2"]

"""Processes beside this one: one thread each, firm limits, and a sure end."""

import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from veilog._process import (
    ONE_THREAD,
    Child,
    GivenUp,
    Limited,
    child_environment,
    ends_in_time,
    exit_when_terminated,
    interpreter,
    limit_memory,
    machine_cores,
    machine_memory,
    pool,
)
from veilog.errors import ParameterError

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and limits are POSIX")


def settings_of(pipe: Connection, *names: str) -> None:
    pipe.send([os.environ.get(name) for name in names])
    pipe.send(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)


def wait_politely(pipe: Connection) -> None:
    exit_when_terminated()
    try:
        pipe.send("begun")
        time.sleep(600)
    finally:
        pipe.send("tidied up")


def wait_with_another(pipe: Connection) -> None:
    """Ignore all signals for minutes, with a child process of its own."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    pipe.send(other.pid)
    time.sleep(600)


def take(pipe: Connection, limit: int, size: int) -> None:
    limit_memory(limit, reserved=True)
    try:
        pipe.send(len(bytearray(size)))
    except MemoryError:
        pipe.send("refused")


def is_running(pid: int) -> bool:
    try:
        with Path(f"/proc/{pid}/stat").open() as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_child_has_one_thread_and_is_not_hit_by_ctrl_c() -> None:
    child = Child(settings_of, *ONE_THREAD)
    assert child.pipe.recv() == ["1"] * len(ONE_THREAD)
    assert child.pipe.recv() is True
    assert child.end(patience=30) == 0
    assert not child.alive


@pytest.mark.slow
@POSIX
def test_a_child_that_is_asked_to_stop_tidies_up() -> None:
    child = Child(wait_politely)
    assert child.pipe.recv() == "begun"
    child.ask_to_stop()
    assert child.pipe.recv() == "tidied up"
    assert child.end(patience=30) == 1


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="this system has no /proc")
def test_a_child_that_does_not_stop_is_ended_with_all_that_it_started() -> None:
    child = Child(wait_with_another)
    other = child.pipe.recv()
    assert child.memory() > 1 << 20
    child.ask_to_stop()
    assert child.end(patience=0.1) is None
    assert not child.alive
    for _ in range(1200):
        if not is_running(other):
            break
        time.sleep(0.05)
    assert not is_running(other)


@pytest.mark.slow
@POSIX
def test_memory_is_limited() -> None:
    for size, answer in ((1 << 20, 1 << 20), (1 << 30, "refused")):
        child = Child(take, 1 << 29, size)
        assert child.pipe.recv() == answer
        assert child.end(patience=30) == 0


def halved(number: int) -> int:
    """Return half of an even number; refuse odd ones, and never end for large ones."""
    if number > 1000:
        time.sleep(600)
    if number % 2:
        raise ParameterError("processes-out-of-range", parameter="half", most=0, processes=number)
    return number // 2


def test_a_limited_call_answers_raises_or_is_given_up() -> None:
    call = Limited(halved, seconds=60, patience=60, memory=1 << 30)
    try:
        assert call(8, call.over) == 4
        with pytest.raises(ParameterError) as told:
            call(7, call.over)
        assert told.value.parameter == "half"
        (kept,) = call._idle
        assert call(6, call.over) == 3 and call._idle == [kept], "one process answers all"
        call.patience = 0.2
        with pytest.raises(GivenUp):
            call(2000, call.over)
        call.patience, over = 60, call.over
        call.give_up()
        with pytest.raises(GivenUp):
            call(8, over)
        assert call(8, call.over) == 4, "later calls are others"
    finally:
        call.end()
    assert call._idle == []


def test_an_interpreter_ends_with_the_block_and_in_time() -> None:
    with pytest.raises(ZeroDivisionError), interpreter("-c", "import time; time.sleep(600)") as process:
        _ = 1 / 0
    assert process.poll() is not None
    with interpreter("-c", "import time; time.sleep(600)") as process:
        assert not ends_in_time(process, 0.1)
        assert process.poll() is not None
    with interpreter("-c", "pass") as process:
        assert ends_in_time(process, 60)
    assert process.returncode == 0


@pytest.mark.slow
def test_a_pool_of_one_is_none_and_others_have_one_thread() -> None:
    with pool(1) as workers:
        assert workers is None
    with pool(2) as workers:
        assert workers is not None
        assert workers.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"


@pytest.mark.slow
@POSIX
def test_a_pool_is_not_hit_by_ctrl_c_and_ends_with_its_block_whatever_it_does() -> None:
    with pool(2) as workers:
        assert workers is not None
        os.kill(workers.submit(os.getpid).result(), signal.SIGINT)
        assert workers.submit(int, "7").result() == 7

    def interrupted() -> None:
        with pool(2) as workers:
            assert workers is not None
            calls = [workers.submit(time.sleep, 600) for _ in range(5)]
            pids.extend(workers._processes)  # type: ignore[attr-defined]
            while not calls[0].running():
                time.sleep(0.01)
            raise KeyboardInterrupt

    pids: list[int] = []
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - began < 60
    assert pids and not any(is_running(pid) for pid in pids)


def test_the_last_of_several_threads_puts_the_settings_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with child_environment():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with child_environment():
        thread.start()
        assert inside.wait(60)
    assert os.environ["OMP_NUM_THREADS"] == "1", "another one is still starting a process"
    leave.set()
    thread.join()
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_processes_started_inside_see_one_thread() -> None:
    ask = "import os; print(*(os.environ[name] for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS')))"
    with child_environment():
        said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "1"]


def test_settings_come_back_even_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with pytest.raises(ZeroDivisionError), child_environment():
        assert all(os.environ[name] == "1" for name in ONE_THREAD)
        _ = 1 / 0
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def plant_groups(root: Path, groups: str | None, limits: dict[str, str]) -> None:
    """Put the files of control groups under another root."""
    (root / "proc" / "self").mkdir(parents=True)
    if groups is not None:
        (root / "proc" / "self" / "cgroup").write_text(groups)
    for name, limit in limits.items():
        place = root / "sys" / "fs" / "cgroup" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{limit}\n")


@pytest.mark.parametrize(
    ("groups", "limits", "most"),
    [
        ("0::/\n", {"memory.max": "2147483648"}, 2 << 30),
        ("0::/a/b\n", {"memory.max": "max", "a/memory.max": "1073741824", "a/b/memory.max": "max"}, 1 << 30),
        ("0::/a/b\n", {"a/memory.max": "1073741824", "a/b/memory.max": "536870912"}, 512 << 20),
        ("0::/../x\n", {"memory.max": "1073741824"}, 1 << 30),
        ("4:memory:/docker/ab\n0::/\n", {"memory/memory.limit_in_bytes": "1073741824"}, 1 << 30),
        ("4:cpu,memory:/a\n", {"memory/a/memory.limit_in_bytes": "1073741824"}, 1 << 30),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}, None),
        ("0::/\n", {"memory.max": "max"}, None),
        ("0::/\n", {}, None),
        ("odd\n", {"memory.max": "1"}, None),
        (None, {"memory.max": "1"}, None),
    ],
)
def test_the_memory_of_a_container_is_what_its_groups_allow(
    tmp_path: Path, groups: str | None, limits: dict[str, str], most: int | None
) -> None:
    """The memory is what control groups of both versions allow, or the machine's."""
    plant_groups(tmp_path, groups, limits)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    assert machine_memory(tmp_path) == (machine if most is None else most)


@pytest.mark.parametrize(
    ("groups", "limits", "most"),
    [
        ("0::/\n", {"cpu.max": "150000 100000"}, 2),
        ("0::/\n", {"cpu.max": "20000 100000"}, 1),
        ("0::/a/b\n", {"cpu.max": "max 100000", "a/cpu.max": "100000 100000", "a/b/cpu.max": "900000 100000"}, 1),
        ("4:cpu,cpuacct:/a\n", {"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"}, 3),
        ("4:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, 8),
        ("4:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "100000"}, 8),
        ("0::/\n", {"cpu.max": "max 100000"}, 8),
        (None, {"cpu.max": "100000 100000"}, 8),
    ],
)
def test_the_cores_of_a_container_are_what_its_groups_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str | None, limits: dict[str, str], most: int
) -> None:
    """A share of a core counts as one; without a limit, bound cores count."""
    plant_groups(tmp_path, groups, limits)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert machine_cores(tmp_path) == most

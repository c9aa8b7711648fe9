"""Processes beside this one: started with one thread each and out of the way of Ctrl-C, limited, and ended for certain.

None of them takes modules from the current folder. A log may come in a folder with others' files, and a ``pickle.py``
among these would run with the data at hand.

A :class:`Child` runs a function and talks through a pipe; like all processes that multiprocessing starts it first reads
the main script again. A fresh :func:`interpreter` does not: it runs where the caller's script may be anything, or where
it must start fast. A :func:`pool` is for many calls of one function of which none may fail, and :class:`Limited` for
calls that may take more time or memory than there is.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import IO, Any, ParamSpec, TypeVar

from veilog.errors import ParameterError, VeilogError

P = ParamSpec("P")
T = TypeVar("T")

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""What tells the libraries for linear algebra so; they read it when they are loaded."""
_ENVIRONMENT = {**ONE_THREAD, "PYTHONSAFEPATH": "1"}
"""Also: no module comes from the current folder, in children and in theirs."""
_MOST = 1024
"""More processes than that are a slip of the hand, which would bring the machine down."""


def check_processes(processes: int) -> None:
    """Refuse a number of processes that cannot be, or that no machine is for."""
    if not 1 <= processes <= _MOST:
        raise ParameterError("processes-out-of-range", parameter="processes", most=_MOST, processes=processes)


class Child:
    """A process that runs ``target(pipe, *arguments)``. It belongs to one thread of this process."""

    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_begin, args=(target, theirs, *arguments), daemon=False)
        with child_environment(), _undisturbed():
            self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.is_alive()

    @property
    def sentinel(self) -> int:
        """What ``multiprocessing.connection.wait`` takes, to wait for its end."""
        return self._process.sentinel

    def ask_to_stop(self) -> None:
        """Tell it to end; see :func:`exit_when_terminated` for how it ends then."""
        self._process.terminate()

    def memory(self) -> int:
        """Return the bytes that it and the processes of its group take."""
        return memory_of(self._process.pid or 0)

    def seconds(self) -> float:
        """Return the seconds of processor time that it and the processes of its group took."""
        return seconds_of(self._process.pid or 0)

    def end(self, patience: float = 0.5) -> int | None:
        """End it with everything in its group; return how it ended, if it did so by itself within ``patience``."""
        self._process.join(patience)
        ended = self._process.exitcode
        if os.name == "posix" and self._process.pid is not None:
            with contextlib.suppress(OSError):
                if ended is not None or os.getpgid(self._process.pid) == self._process.pid:
                    os.killpg(self._process.pid, signal.SIGKILL)
        if ended is None:
            self._process.kill()
        self._process.join()
        self.pipe.close()
        return ended


def _begin(target: Callable[..., None], pipe: Connection, *arguments: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the first one decides
    target(pipe, *arguments)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """What is started here is not hit by Ctrl-C while it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else it is started with the process, and lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def unstopped() -> Iterator[Callable[[], None]]:
    """From the call of what this gives until the block ends Ctrl-C and SIGTERM wait, and are heard then: for two things
    that go together."""
    asked: list[int] = []
    stack = contextlib.ExitStack()

    def begin() -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if before is not None and before is not signal.SIG_IGN:
                stack.callback(signal.signal, number, before)
                signal.signal(number, lambda number, frame: asked.append(number))

    try:
        with stack:
            yield begin
    finally:
        if asked:
            signal.raise_signal(asked[0])


def exit_when_terminated() -> None:
    """Let this process end through its work when it is asked to stop, so that the work cleans up behind itself."""
    signal.signal(signal.SIGTERM, _exit)


def _exit(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(1)


@contextlib.contextmanager
def interpreter(
    *arguments: str,
    stdin: int | IO[bytes] = subprocess.PIPE,
    stdout: int | IO[bytes] = subprocess.PIPE,
    stderr: int | IO[bytes] = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with these arguments beside the block, and end it with the block."""
    environment = {**os.environ, **_ENVIRONMENT}
    command = [sys.executable, "-P", *arguments]  # for itself by a flag: the environment may be ignored (-E)
    process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not written yet has no reader any more
                    stream.close()
        process.wait()


def ends_in_time(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait until a process has ended, at most so long; one that has not is killed."""
    try:
        process.wait(timeout=max(0.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


class GivenUp(Exception):
    """A call that took too much time or memory, or whose caller does not want it any more."""


@dataclass(eq=False)
class Limited:
    """A function that is called in processes beside this one, each call within limits; an error of veilog raises."""

    function: Callable[[Any], Any]
    seconds: float
    """Of processor time, for each call."""
    patience: float
    """Seconds in all, also where the system does not tell those of a process."""
    memory: int
    look: float = 0.05
    """Seconds between looks at a call."""
    _idle: list[Child] = field(default_factory=list)
    _changing: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    """Set when all calls are given up that know it."""

    def __call__(self, argument: Any, over: threading.Event) -> Any:
        """Return what the function says; :class:`GivenUp` where that is too much, or ``over``."""
        with self._changing:
            child = self._idle.pop() if self._idle else None
        if over.is_set():
            raise GivenUp
        child = child if child is not None and child.alive else Child(_answering, self.function, self.memory)
        try:
            child.pipe.send(argument)
            found = self._awaited(child, over)
        except (EOFError, OSError) as error:
            if child.end() == 1:  # of an error that nobody foresaw, which it told the terminal
                raise
            raise GivenUp from error
        with self._changing:
            self._idle.append(child)
        if isinstance(found, VeilogError):
            raise found
        return found

    def _awaited(self, child: Child, over: threading.Event) -> Any:
        since, before = time.monotonic(), child.seconds()
        while not child.pipe.poll(self.look):
            late = child.seconds() - before > self.seconds or time.monotonic() - since > self.patience
            if late or over.is_set() or child.memory() > self.memory:
                child.end(0)
                raise GivenUp
        return child.pipe.recv()  # of this program's own making: it read nothing that anybody brought

    def give_up(self) -> None:
        """Give up all calls that are under way or wait for their turn."""
        self.over.set()
        self.over = threading.Event()

    def end(self) -> None:
        """End the processes that wait, before multiprocessing waits for them."""
        with self._changing:
            while self._idle:
                self._idle.pop().end(0)


def _answering(pipe: Connection, function: Callable[[Any], Any], memory: int) -> None:
    """What such a process does, until nobody asks any more."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpgid(0, 0)  # it is weighed, and ended, by its group
    limit_memory(memory, reserved=False)
    with contextlib.suppress(EOFError, OSError, MemoryError):
        while True:
            argument = pipe.recv()
            try:
                pipe.send(function(argument))
            except VeilogError as error:
                pipe.send(error)


@contextlib.contextmanager
def pool(processes: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes that are given calls of functions while the block lasts; None where this one suffices.

    Ctrl-C is for this process alone. A block that ends early, for whatever reason, waits for none of its calls.
    """
    if processes < 2:
        yield None
        return
    context = multiprocessing.get_context("spawn")
    with child_environment():
        executor = _Undisturbed(processes, mp_context=context)
        try:
            yield executor
        except BaseException:
            for process in tuple((executor._processes or {}).values()):
                process.kill()
            raise
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


class _Undisturbed(ProcessPoolExecutor):
    """Starts its processes, which it does when it is given calls, out of the way of Ctrl-C."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with _undisturbed():
            return super().submit(fn, *args, **kwargs)


def main_is_guarded() -> bool:
    """Return whether the main script can be read again by new processes without doing again what it does."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or getattr(main, "__spec__", None) is not None:
        return True
    try:
        return "__name__" in Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True


_started = threading.Lock()
_before: list[dict[str, str | None]] = []


@contextlib.contextmanager
def child_environment() -> Iterator[None]:
    """Let processes started in here take no module from the current folder, and one thread each for linear algebra.

    On the small matrices of a release more threads mostly wait for each other, and on idle cores the waiting is busy: a
    release of a log of 150 cases with libra took 0.19 s of processor time, and 0.075 s with one thread.
    """
    with _started:  # several threads may be in here: the first takes down what there was, the last puts it back
        _before.append({name: os.environ.get(name) for name in _ENVIRONMENT} if not _before else _before[0])
        os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        with _started:
            settings = _before.pop()
            if not _before:
                for name, value in settings.items():
                    if value is None:
                        os.environ.pop(name, None)
                    else:
                        os.environ[name] = value


def limit_memory(most: int, *, reserved: bool) -> None:
    """Let this process take so many bytes, of addresses with ``reserved`` and else of data; nothing where the system
    has no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return
    kind = resource.RLIMIT_AS if reserved else resource.RLIMIT_DATA
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def machine_memory(system: Path = Path("/")) -> int:
    """Return the bytes of memory that this process and all beside it may take together; 0 where nothing tells it.

    A container may have less than its machine: each control group of the process, and each around it, may have a limit.
    """
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        whole = 0
    files = {"0": "memory.max", "memory": "memory.limit_in_bytes"}
    limits = [int(text) for (text,) in _told_by_groups(system, "memory", {of: (name,) for of, name in files.items()})]
    return min([*([whole] if whole > 0 else []), *(limit for limit in limits if limit > 0)], default=0)


def machine_cores(system: Path = Path("/")) -> int:
    """Return how many cores this process may use, at least 1: those it is bound to, and of a container its share."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    files = {"0": ("cpu.max",), "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us")}
    for texts in _told_by_groups(system, "cpu", files):
        quota, period = map(int, " ".join(texts).split())
        if quota > 0:
            own = min(own, max(1, round(quota / period)))
    return own


def _told_by_groups(system: Path, controller: str, files: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """What these files of each control group of this process say, in both versions of groups (0 is the second), where
    all of it is numbers."""
    try:
        groups = (system / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in groups:
        number, kinds, path = line.split(":", 2) if line.count(":") > 1 else ("", "", "")
        if number == "0":
            root, names = system / "sys/fs/cgroup", files["0"]
        elif controller in kinds.split(","):
            root, names = system / "sys/fs/cgroup" / controller, files[controller]
        else:
            continue
        place = root / path.lstrip("/")
        for group in (place, *place.parents):
            with contextlib.suppress(OSError, ValueError):
                texts = tuple((group / name).read_text().strip() for name in names)
                if all(part.lstrip("-").isdecimal() for text in texts for part in text.split()):  # not "max"
                    yield texts
            if group == root:
                break


def memory_of(group: int) -> int:
    """Return the bytes in memory of a process group; 0 where the system does not tell."""
    pages = sum(int(facts[21]) for facts in _facts_of(group))
    return pages * os.sysconf("SC_PAGE_SIZE") if pages else 0


def seconds_of(group: int) -> float:
    """Return the processor time of a process group, with that of those that ended; 0 where the system does not tell."""
    ticks = sum(sum(map(int, facts[11:15])) for facts in _facts_of(group))
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


def _facts_of(group: int) -> Iterator[list[str]]:
    """What the system says of each process of a group, from its state on."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            facts = stat.read_text().rpartition(")")[2].split()
            if int(facts[2]) == group:
                yield facts

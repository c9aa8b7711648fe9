"""Child processes: one thread each, deaf to Ctrl-C, limited, ended for certain.

None of them takes modules from the current folder. A log may come in a folder with others' files, and a ``pickle.py``
among these would run with the data at hand.

A :class:`Child` runs a function and talks through a pipe. Like all processes of multiprocessing, it first reads the
main script again. A fresh :func:`interpreter` does not: it is for callers with any script, or for fast starts. A
:func:`pool` is for many calls of one function of which none may fail. :class:`Limited` is for calls that may take
more time or memory than there is. :func:`defer_stops` and :func:`hold_interrupts` make Ctrl-C wait for a
block of this process.
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
"""Variables by which libraries for linear algebra use one thread, if set before they load."""
_ENVIRONMENT = {**ONE_THREAD, "PYTHONSAFEPATH": "1"}
"""One thread, and no module from the current folder, in children and in theirs."""
_MOST = 1024
"""Largest number of processes: more are a slip that would bring the machine down."""


def check_processes(processes: int) -> None:
    """Refuse a number of processes below 1, or above what any machine can run."""
    if not 1 <= processes <= _MOST:
        raise ParameterError("processes-out-of-range", parameter="processes", most=_MOST, processes=processes)


class Child:
    """A process that runs ``target(pipe, *arguments)``; one thread here owns it."""

    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_begin, args=(target, theirs, *arguments), daemon=False)
        with child_environment(), _ignore_interrupts():
            self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        """True while the process runs."""
        return self._process.is_alive()

    @property
    def sentinel(self) -> int:
        """Handle with which ``multiprocessing.connection.wait`` waits for its end."""
        return self._process.sentinel

    def ask_to_stop(self) -> None:
        """Send SIGTERM; :func:`exit_when_terminated` decides how the process ends then."""
        self._process.terminate()

    def memory(self) -> int:
        """Return the memory of the process and its group in bytes."""
        return memory_of(self._process.pid or 0)

    def seconds(self) -> float:
        """Return the processor time of the process and its group in seconds."""
        return seconds_of(self._process.pid or 0)

    def end(self, patience: float = 0.5) -> int | None:
        """End the process and its group; return its exit code if it ended by itself.

        ``patience`` is the time in seconds that it has for that.
        """
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
def _ignore_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from processes that the block starts, while they start."""
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
def defer_stops() -> Iterator[Callable[[], None]]:
    """Yield a function whose call lets Ctrl-C and SIGTERM wait for the block's end.

    The block does two things that belong together. A signal that waited is raised at its end.
    """
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


@dataclass
class Interrupts:
    """The state of a run that a user may stop, at once or at its next checkpoint."""

    hold: bool = False
    """True if a first Ctrl-C waits until the run can be resumed. A second does not wait."""
    noted: bool = False

    def release(self) -> None:
        """Allow a stop at any moment from here on, also for a Ctrl-C that was noted."""
        self.hold = False
        if self.noted:
            raise KeyboardInterrupt


@contextlib.contextmanager
def hold_interrupts() -> Iterator[Interrupts]:
    """Yield the :class:`Interrupts` that Ctrl-C obeys within the block.

    Outside the main thread nothing changes.
    """
    state = Interrupts()

    def note(number: int, frame: FrameType | None) -> None:
        if state.noted or not state.hold:
            raise KeyboardInterrupt
        state.noted = True

    if threading.current_thread() is not threading.main_thread():
        yield state
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield state
    finally:
        signal.signal(signal.SIGINT, before)


def exit_when_terminated() -> None:
    """Let SIGTERM end this process through its work, which then cleans up."""
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
    """Run Python with these arguments during the block, and end it with the block."""
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
                with contextlib.suppress(OSError):  # nothing reads the rest any more
                    stream.close()
        process.wait()


def ends_in_time(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait so many seconds for a process to end, else kill it and return False."""
    try:
        process.wait(timeout=max(0.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


class GivenUp(Exception):
    """A call took too much time or memory, or its caller gave it up."""


@dataclass(eq=False)
class Limited:
    """A function called in child processes, within limits; it raises veilog's errors."""

    function: Callable[[Any], Any]
    seconds: float
    """Seconds of processor time for each call."""
    patience: float
    """Seconds in all, also for systems that do not report processor time."""
    memory: int
    look: float = 0.05
    """Seconds between looks at a call."""
    _idle: list[Child] = field(default_factory=list)
    _changing: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    """Set when every call that knows this event is given up."""

    def __call__(self, argument: Any, over: threading.Event) -> Any:
        """Return the function's result; :class:`GivenUp` beyond a limit or after ``over``."""
        with self._changing:
            child = self._idle.pop() if self._idle else None
        if over.is_set():
            raise GivenUp
        child = child if child is not None and child.alive else Child(_answer_calls, self.function, self.memory)
        try:
            child.pipe.send(argument)
            found = self._await_answer(child, over)
        except (EOFError, OSError) as error:
            if child.end() == 1:  # an error that no code expected, which the child printed
                raise
            raise GivenUp from error
        with self._changing:
            self._idle.append(child)
        if isinstance(found, VeilogError):
            raise found
        return found

    def _await_answer(self, child: Child, over: threading.Event) -> Any:
        since, before = time.monotonic(), child.seconds()
        while not child.pipe.poll(self.look):
            late = child.seconds() - before > self.seconds or time.monotonic() - since > self.patience
            if late or over.is_set() or child.memory() > self.memory:
                child.end(0)
                raise GivenUp
        return child.pipe.recv()  # this program made it, from nothing that a user brought

    def give_up(self) -> None:
        """Give up all calls that are under way or wait for their turn."""
        self.over.set()
        self.over = threading.Event()

    def end(self) -> None:
        """End the processes that wait, before multiprocessing waits for them."""
        with self._changing:
            while self._idle:
                self._idle.pop().end(0)


def _answer_calls(pipe: Connection, function: Callable[[Any], Any], memory: int) -> None:
    """Answer calls in a child process until the pipe closes."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpgid(0, 0)  # its memory is measured, and its end is forced, by its group
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
    """Yield processes for calls of functions; None if ``processes`` is below 2.

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
    """An executor that starts its processes, at calls, out of the way of Ctrl-C."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        with _ignore_interrupts():
            return super().submit(fn, *args, **kwargs)


def main_is_guarded() -> bool:
    """Return True if new processes can read the main script without rerunning it."""
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
    """Start processes in here on one thread, without modules of the current folder.

    One thread is for linear algebra. On the small matrices of a release, more threads mostly wait for each other, and
    on idle cores that waiting is busy. A release of a log of 150 cases with libra took 0.19 s of processor time, and
    0.075 s with one thread.
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
    """Limit this process to so many bytes, of addresses if ``reserved``, else of data.

    It does nothing where the system has no such limit.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    kind = resource.RLIMIT_AS if reserved else resource.RLIMIT_DATA
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def machine_memory(system: Path = Path("/")) -> int:
    """Return the bytes of memory that this process and all others may have together.

    0 if the system reports none. A container may have less than its machine: each control group of the process, and
    each around it, may have a limit.
    """
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        whole = 0
    files = {"0": "memory.max", "memory": "memory.limit_in_bytes"}
    limits = [
        int(text) for (text,) in _read_control_groups(system, "memory", {of: (name,) for of, name in files.items()})
    ]
    return min([*([whole] if whole > 0 else []), *(limit for limit in limits if limit > 0)], default=0)


def machine_cores(system: Path = Path("/")) -> int:
    """Return the number of cores that this process may use, at least 1.

    It may use those it is bound to, and in a container no more than the container's share.
    """
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    files = {"0": ("cpu.max",), "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us")}
    for texts in _read_control_groups(system, "cpu", files):
        quota, period = map(int, " ".join(texts).split())
        if quota > 0:
            own = min(own, max(1, round(quota / period)))
    return own


def _read_control_groups(
    system: Path, controller: str, files: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Yield the numbers in these files of each control group of this process.

    It reads both versions of groups (0 is the second), and skips a group whose files hold anything else.
    """
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
    """Return the memory of a process group in bytes; 0 if the system reports none."""
    pages = sum(int(facts[21]) for facts in _facts_of(group))
    return pages * os.sysconf("SC_PAGE_SIZE") if pages else 0


def seconds_of(group: int) -> float:
    """Return the processor time of a process group with its ended children.

    0 if the system reports none.
    """
    ticks = sum(sum(map(int, facts[11:15])) for facts in _facts_of(group))
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


def _facts_of(group: int) -> Iterator[list[str]]:
    """Yield the system's facts on each process of a group, from its state on."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            facts = stat.read_text().rpartition(")")[2].split()
            if int(facts[2]) == group:
                yield facts

"""What a piece of work costs: processor and wall seconds, and memory."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


def spent() -> float:
    """Processor seconds so far of this process and of those that it started, whether they ended or still run."""
    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime + _running()[0]


def peak() -> float:
    """The most megabytes that this process or one that it started has had so far."""
    here, below = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(here / 1024, below / 1024, _running()[1])


def _running() -> tuple[float, float]:
    """Processor seconds and the most megabytes of the processes that this one started and that still run (Java)."""
    ticks, seconds, most = os.sysconf("SC_CLK_TCK"), 0.0, 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) != os.getpid():
                continue
            status = dict(line.split(":", 1) for line in (stat.parent / "status").read_text().splitlines())
        except OSError:  # it ended meanwhile
            continue
        seconds += (int(fields[11]) + int(fields[12])) / ticks
        most = max(most, int(status.get("VmHWM", "0 kB").split()[0]) / 1024)
    return seconds, most


def timed(work: Callable[[], Result]) -> tuple[dict[str, float], Result]:
    """What the work costs, and its result; ``peak`` is that of the process so far, which a cell alone has to itself."""
    cpu, wall = spent(), time.perf_counter()
    result = work()
    wall, cpu = time.perf_counter() - wall, spent() - cpu
    return {"cpu": cpu, "wall": wall, "peak": peak()}, result


def cpu_of(work: Callable[[], object], repeats: int = 1) -> float:
    """Median processor seconds of this process; ``repeats`` for what takes milliseconds."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)

"""Costs of a piece of work: processor and wall seconds, and memory."""

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
    """Return the processor seconds so far of this process and of all that it started.

    These count whether they ended or still run.
    """
    own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime + _running()[0]


def peak() -> float:
    """Return the most megabytes so far of this process or one that it started.

    The kernel's number for the process (``ru_maxrss``) would include that of its parent at the start.
    """
    below = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return max(_highest(Path("/proc/self")), below, _running()[1])


def _highest(process: Path) -> float:
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return int(status.get("VmHWM", "0 kB").split()[0]) / 1024


def _running() -> tuple[float, float]:
    """Return processor seconds and most megabytes of running child processes (Java)."""
    ticks, seconds, most = os.sysconf("SC_CLK_TCK"), 0.0, 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) != os.getpid():
                continue
            most = max(most, _highest(stat.parent))
        except OSError:  # it ended meanwhile
            continue
        seconds += (int(fields[11]) + int(fields[12])) / ticks
    return seconds, most


def timed(work: Callable[[], Result]) -> tuple[dict[str, float], Result]:
    """Return the costs of the work, and its result.

    ``peak`` is that of the process so far, which a cell alone has to itself.
    """
    cpu, wall = spent(), time.perf_counter()
    result = work()
    wall, cpu = time.perf_counter() - wall, spent() - cpu
    return {"cpu": cpu, "wall": wall, "peak": peak()}, result


def cpu_of(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the median processor seconds of this process.

    ``repeats`` is for work of milliseconds.
    """
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)

"""Twenty people at once: each uploads a log and releases it; costs and fairness.

It starts a server of its own in a temporary folder. It measures seconds, and the peak memory of the server with
all its workers. It also measures the order in which the sessions were served, and the time of a page while all ran.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmark import benchmark, grid
from columns import Column
from veilog.experiments.experiment import Cell, Given, Measured

if TYPE_CHECKING:
    import httpx
_LOOK = 0.2
"""Seconds between two looks at a job."""


def memory_of_session(session: int) -> int:
    """Return the bytes of all processes that this process or its children started.

    Workers have sessions of their own.
    """
    parents: dict[int, int] = {}
    rss: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            facts = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(facts[1])
        rss[int(stat.parent.name)] = int(facts[21]) * 4096

    def belongs(pid: int) -> bool:
        while pid > 1:
            if pid == session:
                return True
            pid = parents.get(pid, 0)
        return False

    return sum(size for pid, size in rss.items() if belongs(pid))


def once_of(page: httpx.Response) -> str:
    found = re.search(r'name="once" value="([^"]+)"', page.text)
    assert found
    return found[1]


def ended(client: httpx.Client, address: str) -> str:
    """Wait for a job as its page does, by repeated requests; return its state."""
    while True:
        found = re.search(r'data-stage="(\w+)', client.get(f"{address}/now", timeout=1200).text)
        assert found
        if found[1] not in ("queued", "running"):
            return found[1]
        time.sleep(_LOOK)


def visit(
    base: str, token: str, log: Path, number: int, told: list[tuple[float, int, str, str]], pages: list[float]
) -> None:
    import httpx

    with httpx.Client(base_url=base, headers={"origin": base}, timeout=300, verify=False) as client:
        client.post("/enter", data={"token": token})
        with log.open("rb") as file:
            files = {"file": (log.name, file)}
            address = client.post("/logs", data={"once": once_of(client.get("/"))}, files=files).headers["location"]
        page = client.get(address)
        (job,) = set(re.findall(r"/jobs/[0-9a-f]{32}", page.text))
        told.append((time.time(), number, "read", ended(client, job)))
        started = time.perf_counter()
        form = client.get(f"{address}/release")
        pages.append(time.perf_counter() - started)
        fields = {"once": once_of(form), "method": "travas", "epsilon": "1", "delta": "1e-5"}
        job = client.post(f"{address}/jobs", data=fields).headers["location"]
        told.append((time.time(), number, "release", ended(client, job)))
        started = time.perf_counter()
        client.get(job).raise_for_status()
        pages.append(time.perf_counter() - started)


def measure(given: Given, cell: Cell) -> Measured:
    sessions = int(cell.get("sessions"))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "veilog", "serve", "--no-open", "--host", "localhost"]
        command += ["--folder", f"{folder}/data"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout
        base = server.stdout.readline().partition("/?code=")[0]
        token = server.stdout.readline().split()[-1]
        told: list[tuple[float, int, str, str]] = []
        pages: list[float] = []
        visitors = [
            threading.Thread(target=visit, args=(base, token, given.file, n, told, pages)) for n in range(sessions)
        ]
        started, peak, own = time.time(), 0, 0
        for visitor in visitors:
            visitor.start()
        while any(visitor.is_alive() for visitor in visitors):
            peak = max(peak, memory_of_session(server.pid))
            status = Path(f"/proc/{server.pid}/statm").read_text().split()
            own = max(own, int(status[1]) * 4096)
            time.sleep(0.25)
        seconds = time.time() - started
        server.send_signal(signal.SIGINT)
        server.wait(30)
    states = sorted(told)
    values = {"seconds": seconds, "done": sum(state == "done" for *_, state in states), "wanted": 2 * sessions}
    values |= {"peak of all": peak / 2**20, "peak of the server": own / 2**20, "exit": server.returncode}
    values |= {"page": median(pages), "slowest page": max(pages)}
    return Measured(values, texts={"order": ", ".join(f"{number} {kind}" for _, number, kind, _ in states)})


BENCHMARKS = (
    benchmark(
        "serve",
        "Many sessions of the pages at once.",
        measure,
        grid("travas", sessions=20, quick={"sessions": 3}),
        (
            *(Column(name, name, ".4g") for name in ("seconds", "done", "wanted", "page", "slowest page")),
            *(Column(f"{name}, MiB", name, ",.0f") for name in ("peak of all", "peak of the server")),
            Column("order", "order", show="text"),
        ),
        logs=("sepsis",),
        runs=1,
        page="serve.md",
    ),
)

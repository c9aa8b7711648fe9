"""Twenty people at once: each brings a log and has it released; what that takes, and whether anybody is forgotten.

    python bench/serve.py LOG [--sessions 20]

starts a server of its own in a temporary folder and prints JSON: seconds, peak memory of the server with all its
workers, the order in which the sessions were served, and how long the start page took while everything ran.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import httpx


def memory_of_session(session: int) -> int:
    """Bytes of all processes that this process or its children started; workers have sessions of their own."""
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
    """Wait for a job by the stream that a browser listens to; returns its state."""
    state = "queued"
    with client.stream("GET", f"{address}/events", timeout=1200) as events:
        for line in events.iter_lines():
            if line.startswith("data: "):
                state = json.loads(line.removeprefix("data: "))["state"]
    return state


def visit(url: str, log: Path, number: int, told: list[tuple[float, int, str, str]], pages: list[float]) -> None:
    base, _, token = url.partition("/?token=")
    with httpx.Client(base_url=base, headers={"origin": base}, timeout=300, verify=False) as client:
        client.get("/", params={"token": token})
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--sessions", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "veilog", "serve", "--no-open", "--folder", f"{folder}/data"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout
        url = server.stdout.readline().strip()
        told: list[tuple[float, int, str, str]] = []
        pages: list[float] = []
        visitors = [
            threading.Thread(target=visit, args=(url, given.log, n, told, pages)) for n in range(given.sessions)
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
    print(
        json.dumps(
            {
                "log": given.log.name,
                "sessions": given.sessions,
                "seconds": round(seconds, 1),
                "jobs_done": sum(state == "done" for *_, state in states),
                "jobs_wanted": 2 * given.sessions,
                "peak_mib_all": peak >> 20,
                "peak_mib_server": own >> 20,
                "page_seconds_median": round(median(pages), 3),
                "page_seconds_max": round(max(pages), 3),
                "order": [f"{number} {kind}" for _, number, kind, _ in states],
                "exit": server.returncode,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()

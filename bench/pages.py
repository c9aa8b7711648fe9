"""Time of the pages of ``veilog serve`` for a user's first visit.

It starts a server of its own in a temporary folder, brings the log and makes a release by ``evolve``. Then it opens
every page in a headless Chromium (``$CHROMIUM``). Each time it has a new profile, without a cache or a process for the
page. It measures:

- milliseconds from the start of the navigation to the end of the load event and to the first words,
- milliseconds of processor time of the page's main thread (parsing, script, style, layout) until it was loaded,
- milliseconds from request to answer for the page alone,
- kilobytes over the network, and elements.

It needs playwright. ``--set beside=OTHER/src`` opens, in turn with these, the pages of another source tree. So you can
compare two versions on a busy machine, where milliseconds mean little and ratios more.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmark import benchmark, grid
from columns import Column
from serve import ended, once_of
from veilog.experiments.experiment import Cell, Given, Measured

if TYPE_CHECKING:
    import httpx
    from playwright.sync_api import Browser, CDPSession

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
SOURCE = Path(__file__).resolve().parent.parent / "src"
PAGES = ("home", "log", "exposure", "release", "result")
REQUESTS = 15
"""Requests of each page for the server's own time."""
TOLD = """() => {
  const [navigation] = performance.getEntriesByType("navigation");
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  const files = performance.getEntriesByType("resource");
  return {
    load: navigation.loadEventEnd,
    paint: paint ? paint.startTime : NaN,
    bytes: [navigation, ...files].reduce((sum, file) => sum + file.transferSize, 0),
    elements: document.getElementsByTagName("*").length,
  };
}"""


@dataclass(frozen=True)
class Site:
    """Server with a log and a release, and a visitor who has access."""

    base: str
    cookies: Mapping[str, str]
    pages: Mapping[str, str]
    """Names and paths of the pages."""


@dataclass(frozen=True)
class Load:
    """Load of one page in one new browser; times in milliseconds."""

    load: float
    paint: float
    main: float
    bytes: float
    elements: float


@contextlib.contextmanager
def serving(source: Path, folder: Path, log: Path, epsilon: str) -> Iterator[Site]:
    import httpx

    command = [sys.executable, "-m", "veilog", "serve", "--no-open", "--host", "localhost", "--folder", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout
        base = server.stdout.readline().partition("/?code=")[0]
        token = server.stdout.readline().split()[-1]
        with httpx.Client(base_url=base, headers={"origin": base}, timeout=300) as client:
            client.post("/enter", data={"token": token})
            pages = brought(client, log, epsilon)
            yield Site(base, dict(client.cookies), pages)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def brought(client: httpx.Client, log: Path, epsilon: str) -> dict[str, str]:
    """Bring a log, have it released, and return the paths of all pages."""
    with log.open("rb") as file:
        files = {"file": (log.name, file)}
        address = client.post("/logs", data={"once": once_of(client.get("/"))}, files=files).headers["location"]
    (job,) = set(re.findall(r"/jobs/[0-9a-f]{32}", client.get(address).text))
    assert ended(client, job) == "done"
    form = {"once": once_of(client.get(f"{address}/release")), "method": "evolve", "epsilon": epsilon, "labels": "log"}
    release = client.post(f"{address}/jobs", data=form).headers["location"]
    assert ended(client, release) == "done"
    return {
        "home": "/",
        "log": address,
        "exposure": f"{address}/exposure",
        "release": f"{address}/release",
        "result": release,
    }


def server_time(site: Site, path: str) -> float:
    """Return the median milliseconds from a request to its whole answer."""
    import httpx

    times = []
    with httpx.Client(base_url=site.base, cookies=dict(site.cookies), timeout=300) as client:
        client.get(path).raise_for_status()
        for _ in range(REQUESTS):
            started = time.perf_counter()
            client.get(path).raise_for_status()
            times.append(1000 * (time.perf_counter() - started))
    return median(times)


def opened(browser: Browser, site: Site, path: str) -> Load:
    """Open one page with a new profile."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.set_default_timeout(120_000)
        context.add_cookies([{"name": name, "value": value, "url": site.base} for name, value in site.cookies.items()])
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(site.base + path, wait_until="load")
        main = main_thread(session)
        page.wait_for_load_state("networkidle")
        told: dict[str, Any] = page.evaluate(TOLD)
        return Load(main=main, **told)


def main_thread(session: CDPSession) -> float:
    found = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(found["TaskDuration"])


def measure(given: Given, cell: Cell) -> Measured:
    """Open every page of each tree in turn with one profile, under the same load."""
    from playwright.sync_api import sync_playwright

    sources = {"here": SOURCE} | ({"beside": Path(str(cell.get("beside")))} if cell.get("beside") else {})
    values: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sites = {
            name: stack.enter_context(serving(source, folder / name, given.file, "1"))
            for name, source in sources.items()
        }
        chromium = stack.enter_context(sync_playwright()).chromium
        browser = stack.enter_context(chromium.launch(executable_path=CHROMIUM, args=list(FLAGS)))
        opened(browser, sites["here"], "/")  # the browser's own first time is not ours
        for page in PAGES:
            for name, site in sites.items():
                found = asdict(opened(browser, site, site.pages[page]))
                found |= {"server": server_time(site, site.pages[page])}
                values |= {f"{page} {name} {what}": value for what, value in found.items()}
    return Measured(values)


def columns(page: str) -> list[Column]:
    found = [Column(f"{page}: load", f"{page} here load", ",.0f")]
    found += [Column("÷ beside", f"{page} here load", over=f"{page} beside load")]
    return found + [Column(what, f"{page} here {what}", ",.0f") for what in WHAT]


WHAT = ("paint", "main", "server", "bytes", "elements")
BENCHMARKS = (
    benchmark(
        "pages",
        "How fast the pages are there in a browser that has never seen them.",
        measure,
        grid("evolve", beside=""),
        [column for page in PAGES for column in columns(page)],
        logs=("sepsis",),
        runs=7,
        page="serve.md",
    ),
)

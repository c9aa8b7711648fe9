"""Both versions of a report in a browser: nothing is fetched, nothing fails, everything fits on a phone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import veilog
from veilog import report
from veilog.logs.simulate import hospital

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
WIDTHS = (1280, 390)

pytestmark = [pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no Chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    log = hospital(300, seed=1)
    released = veilog.release(log, "evolve", epsilon=1, times="0.3", activities="log", seed=1)
    found = {"inside": folder / "inside.html", "outside": folder / "outside.html"}
    report.write(released, found["inside"], log)
    report.write(released, found["outside"])
    return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("version", ["inside", "outside"])
def test_a_report_asks_nobody_fails_nowhere_and_fits(
    chromium: sync_api.Browser, pages: dict[str, Path], version: str, width: int
) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    asked, errors = [], []
    context.on("request", lambda request: asked.append(request.url) if not request.url.startswith("data:") else None)
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(pages[version].as_uri(), wait_until="networkidle")
    assert errors == []
    assert asked == [pages[version].as_uri()], "one file is the whole page"
    assert page.locator("h1").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width, (
        "nothing makes the page wider than the screen"
    )
    start = page.locator(".map .end").first.bounding_box()
    assert start is not None
    assert 0 <= start["x"] <= width - start["width"], "maps that can be moved open where cases start"
    context.close()


@pytest.mark.slow
def test_searching_leaves_the_variants_that_have_the_activity(
    chromium: sync_api.Browser, pages: dict[str, Path]
) -> None:
    page = chromium.new_page()
    page.goto(pages["inside"].as_uri())
    shown = page.locator("[data-search]:visible")
    before = shown.count()
    page.locator("input[type=search]").fill("Surgery")
    assert 0 < shown.count() < before
    assert all("surgery" in text.lower() for text in shown.evaluate_all("all => all.map(x => x.dataset.search)"))
    page.close()

"""Both reports in a browser fetch nothing, fail nowhere, and fit a phone."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import veilog
from veilog import report
from veilog.logs.synthetic.hospital import hospital
from veilog.report import dossier

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
WIDTHS = (1280, 390)
CUT = """() => {
  const width = document.documentElement.clientWidth, found = [];
  document.querySelectorAll("details").forEach(each => { each.open = true; });
  for (const each of document.querySelectorAll("body *")) {
    if (each.closest(".map, .chart, svg")) continue;  // pictures can be moved
    const box = each.getBoundingClientRect(), style = getComputedStyle(each);
    if (box.width && box.right > width + 1) found.push(each.outerHTML.slice(0, 99));
    const cut = style.overflowX !== "visible" && each.scrollWidth > each.clientWidth + 1;
    if (cut) found.push(each.outerHTML.slice(0, 99));
  }
  return found;
}"""
"""Elements that are wider than the screen, or are cut off."""

pytestmark = [pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no Chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    log = hospital(300, seed=1)
    released = veilog.release(log, "evolve", epsilon=1, times="0.3", activities="log", seed=1)
    found = {name: folder / f"{name}.html" for name in ("inside", "outside", "dossier")}
    report.write(released, found["inside"], log)
    report.write(released, found["outside"])
    dossier.write(dossier.dossier(released, log, language="de"), found["dossier"])
    return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.mark.nightly
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("version", ["inside", "outside", "dossier"])
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
    assert page.evaluate(CUT) == []
    if version != "dossier":
        start = page.locator(".map .end").first.bounding_box()
        assert start is not None
        assert 0 <= start["x"] <= width - start["width"], "maps that can be moved open where cases start"
    context.close()


@pytest.mark.nightly
def test_on_a_phone_a_table_is_cards_that_name_what_they_hold(
    chromium: sync_api.Browser, pages: dict[str, Path]
) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 900})
    page.goto(pages["inside"].as_uri())
    cell = page.locator("#risk ~ .cards td[data-of]").first
    assert cell.evaluate("each => getComputedStyle(each, '::before').content") == '"people"'
    assert cell.evaluate("each => getComputedStyle(each.parentElement).display") == "block"
    assert not page.locator("#risk ~ .cards thead").first.is_visible()
    page.close()


@pytest.mark.nightly
def test_in_print_pages_are_numbered_rows_are_whole_and_what_is_folded_is_open(
    chromium: sync_api.Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    plain = tmp_path / "plain.html"
    text = pages["outside"].read_text()
    plain.write_text(text.replace("counter(page)", '""').replace("counter(pages)", '""').replace('" / "', '""'))
    assert plain.read_text() != text
    printed = []
    for file in (pages["outside"], plain):
        page = chromium.new_page()
        page.goto(file.as_uri())
        printed.append(page.pdf(prefer_css_page_size=True))
        page.close()
    numbered, without = map(texts_drawn, printed)
    sheets = len(re.findall(rb"/Type\s*/Page\b", printed[0]))
    assert sheets > 3 and numbered - without >= sheets, "a number on each"
    page = chromium.new_page(viewport={"width": 688, "height": 900})  # of A4 between its margins
    page.goto(pages["inside"].as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") == 688, "nothing is scaled down to fit"
    folded = page.locator("details:not([open]) .variant")
    assert folded.count() > 0 and folded.last.bounding_box()["height"] > 0  # type: ignore[index]
    rows = page.locator("tr, .variant, .checks li").evaluate_all("all => all.map(x => getComputedStyle(x).breakInside)")
    assert set(rows) == {"avoid"}
    page.close()


def texts_drawn(pdf: bytes) -> int:
    """Return how often a PDF draws text."""
    found = 0
    for packed in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            found += len(re.findall(rb"\bT[jJ]\b", zlib.decompress(packed)))
        except zlib.error:
            continue
    return found


@pytest.mark.nightly
def test_searching_leaves_the_variants_that_have_the_activity(
    chromium: sync_api.Browser, pages: dict[str, Path]
) -> None:
    page = chromium.new_page()
    page.goto(pages["inside"].as_uri())
    shown = page.locator("[data-search]:visible")
    every = page.locator("[data-search]").count()  # the rarer ones are folded until something is searched
    page.locator("input[type=search]").fill("X-ray > Consultation")
    assert 0 < shown.count() < every
    found = shown.evaluate_all("all => all.map(x => x.dataset.search)")
    assert all("x-ray > consultation" in text.lower() for text in found)
    page.close()

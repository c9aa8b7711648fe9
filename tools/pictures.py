"""Draw the pictures of the README and docs/why.md, and take screens of the pages.

    python tools/pictures.py [FILE]                 by default docs/before-after.svg
    python tools/pictures.py --logs FOLDER [FILE]   by default docs/why.svg, and the table in docs/why.md
    python tools/pictures.py --screens [FOLDER]     by default docs: SCREENS, in Chromium ($CHROMIUM)

The README shows a log before, its release after, and the verdict. The log is that of ``veilog demo``. A seed draws the
release, so that each run draws the same picture; the protection is that of a release without a seed. The other picture
shows how many patients of a public log are found by a few of their activities. FOLDER has the log (sepsis.xes.gz), of
which the picture holds shares and nothing else. The screens show the demo's log to a user of ``veilog serve``, and the
report that belongs to its release.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import veilog
from veilog._notebook import element, picture
from veilog.cli import demo
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
from veilog.logs.variants import Variants
from veilog.measures.singling_out import exposure
from veilog.measures.singling_out.identification import Exposure
from veilog.measures.singling_out.rates import Rate, certain
from veilog.privacy.account.guarantee import up
from veilog.releasing.checks import meaning_of

DOCS = Path(__file__).resolve().parents[1] / "docs"
TARGET, WHY = DOCS / "before-after.svg", DOCS / "why.svg"
SCREENS = {"screen-exposure.png": "serve.md", "screen-release.png": "serve.md", "screen-report.png": "report.md"}
"""Pictures of the pages and of the report, and the page of the docs that shows each."""
MOST_BYTES = 120_000
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars")
PATIENCE = 90_000
"""Milliseconds for work that takes a few seconds on an idle machine."""
WIDTH, HEIGHT = 860, 330
LEFT, RIGHT, VERDICT = 20, 318, 616
ROWS, STEP, BOX = 6, 26, 20
SHORT = {"Registration": "Re", "Triage": "Tr", "Consultation": "Co", "Discharge": "Di", "Blood test": "Bl"}
SHORT |= {"Urine test": "Ur", "ECG": "EC", "X-ray": "XR", "CT scan": "CT", "Medication": "Me", "Admission": "Ad"}
SHORT |= {"Ward round": "Wa", "Surgery": "Su", "Intensive care": "IC", "Transfer": "Tf", "Death": "De"}
COLOURS = (
    "#2f6690",
    "#5a8ab0",
    "#b06a3b",
    "#4f8a4b",
    "#8e4a8c",
    "#7a5230",
    "#16807a",
    "#5c6770",
    "#b08a1e",
    "#c0392b",
    "#3d2c8d",
)
STYLE = (
    "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#222}"
    ".h{font-size:15px;font-weight:600}.s{fill:#555;font-size:11px}.n{text-anchor:end}"
    ".b{fill:#fff;font-size:10px;text-anchor:middle}.v{font-size:22px;font-weight:600;fill:#1d7a3e}"
)


def text(x: float, y: float, said: str, kind: str = "") -> str:
    return element("text", said, x=float(x), y=float(y), class_=kind)


def frequent(variants: Variants) -> list[tuple[int, tuple[str, ...]]]:
    """Return the variants with their cases, the most frequent first."""
    return sorted(((count, path) for path, count in variants.to_dict().items()), key=lambda pair: (-pair[0], pair[1]))


def column(x: int, title: str, below: str, rows: list[tuple[int, tuple[str, ...]]], last: str) -> list[str]:
    """Return the most frequent variants, an activity a box, and a line about the rest."""
    out = [text(x, 44, title, "h"), text(x, 62, below, "s")]
    for place, (count, path) in enumerate(rows):
        y = 80 + place * STEP
        out.append(text(x + 34, y + 14, f"{count:,}", "n"))
        for step, activity in enumerate(path):
            left = x + 44 + step * (BOX + 3)
            colour = COLOURS[ACTIVITIES.index(activity) % len(COLOURS)]
            out.append(element("rect", x=left, y=y, width=BOX, height=BOX, rx=3, fill=colour))
            out.append(text(left + BOX / 2, y + 14, SHORT[activity], "b"))
    return [*out, text(x, 80 + ROWS * STEP + 18, last, "s")]


def drawn() -> str:
    log = hospital(demo.CASES, seed=1).variants
    plan = veilog.plan(demo.METHOD, epsilon=demo.EPSILON, activities=ACTIVITIES)
    made = veilog.release(log, demo.METHOD, epsilon=demo.EPSILON, activities=ACTIVITIES, seed=1).variants
    before, after = frequent(log), frequent(made)
    alone = sum(count == 1 for count, _ in before)
    known = log.to_dict()
    real = sum(count for path, count in made.to_dict().items() if path in known) / made.cases
    similarity = veilog.compare(log, made, models=False).relative_log_similarity
    guess = meaning_of(plan.cost)
    right = up(float((1 + Fraction(guess.membership_test_gap)) / 2) * 100, 2) if guess else "100"
    shown = {activity for _, path in (*before[:ROWS], *after[:ROWS]) for activity in path}
    legend = " · ".join(f"{SHORT[activity]} {activity}" for activity in ACTIVITIES if activity in shown)
    sides = [
        *column(LEFT, "Your log", f"{log.cases:,} patients, {len(before):,} paths", before[:ROWS],
                f"… {alone:,} patients have a path of their own: a part" ),
        text(LEFT, 80 + ROWS * STEP + 33, "of it may tell the rest, with names or without", "s"),
        *column(RIGHT, "The release", f"{made.cases:,} made-up cases, {len(after):,} paths", after[:ROWS],
                "… an ordinary log, of people who do not exist;"),
        text(RIGHT, 80 + ROWS * STEP + 33, f"{real:.0%} of them take a path that really occurs", "s"),
        text(VERDICT, 44, "The verdict", "h"),
        text(VERDICT, 62, f"{demo.METHOD}, ε = {demo.EPSILON} for each patient, derived", "s"),
        text(VERDICT, 106, f"Protection: {plan.cost.strength}", "v"),
        text(VERDICT, 134, "Was this patient in the log? A coin is"),
        text(VERDICT, 151, "right in 50 of 100 tries; whoever reads"),
        text(VERDICT, 168, f"the release, in at most {right}."),
        text(VERDICT, 206, f"Similarity to the log: {similarity:.2f} of 1"),
        element("rect", x=VERDICT, y=214, width=224, height=8, rx=4, fill="#e3e6ea"),
        element("rect", x=VERDICT, y=214, width=round(224 * similarity), height=8, rx=4, fill="#1d7a3e"),
    ]  # fmt: skip
    lines = [
        element("title", "A log before, its release after, and the verdict", id="t"),
        element("style", STYLE),
        element("rect", width=WIDTH, height=HEIGHT, fill="#fff"),
        *(element("line", x1=x - 18, x2=x - 18, y1=30, y2=HEIGHT - 50, stroke="#d5d9de") for x in (RIGHT, VERDICT)),
        *sides,
        text(LEFT, HEIGHT - 16, f"Cases by path. {legend}", "s"),
    ]
    return picture(lines, WIDTH, HEIGHT, role="img", aria_labelledby="t")


def exposed(logs: Path) -> Exposure:
    """Return the Sepsis patients that a few of their activities identify."""
    return exposure(veilog.read(logs / "sepsis.xes.gz"))


def why(found: Exposure) -> str:
    """Return the picture: a pair of bars for each number of known activities."""
    width, height, left, floor, tall, step = 700, 330, 60, 270, 190, 122
    out = [
        element("title", "Patients found in a log without names, by what is known of them", id="t"),
        element("style", STYLE),
        element("rect", width=width, height=height, fill="#fff"),
        text(20, 28, f"Found in a public log of {found.people:,} patients, without a name in it", "h"),
    ]
    for place, (colour, said) in enumerate(
        (("#b8c4cf", "knowing activities alone"), ("#c0392b", "and the day it began"))
    ):
        out.append(element("rect", x=20 + place * 190, y=42, width=12, height=12, rx=2, fill=colour))
        out.append(text(38 + place * 190, 52, said, "s"))
    for share in (0, 50, 100):
        y = floor - tall * share / 100
        out.append(element("line", x1=left - 5, x2=width - 20, y1=y, y2=y, stroke="#e3e6ea"))
        out.append(text(left - 10, y + 4, f"{share} %", "s n"))
    for row in found.results:
        place = sorted({each.size for each in found.results}).index(row.size)
        x = left + 18 + place * step + row.with_start * 42
        high = tall * row.found.value
        colour = "#c0392b" if row.with_start else "#b8c4cf"
        out.append(element("rect", x=x, y=floor - high, width=38, height=high, fill=colour))
        out.append(text(x + 38, floor - high - 5, percent(row.found), "s n"))
        if not row.with_start:
            out.append(text(x, floor + 18, f"{row.size} known" if row.size > 1 else "1 activity", "s"))
    out.append(text(20, height - 14, "Sepsis log (Mannhardt 2016): a path through a hospital a patient.", "s"))
    return picture(out, width, height, role="img", aria_labelledby="t")


def percent(share: Rate) -> str:
    """Return a share in per cent; for zero hits, the upper end of its interval."""
    if not share.value:
        return f"< {share.high * 100:.1f} %"
    return f"{share.value * 100:.{0 if share.value >= 0.095 else 1}f} %"


def why_table(found: Exposure) -> str:
    """Return the picture as a table, with the share of variants of one patient alone."""
    sizes = sorted({row.size for row in found.results})
    lines = ["| activities known | " + " | ".join(map(str, sizes)) + " |", "|---" * (len(sizes) + 1) + "|"]
    for with_start, said in ((False, "found by these alone"), (True, "found by these and the day it began")):
        shares = [percent(row.found) for row in found.results if row.with_start == with_start]
        lines.append(f"| {said} | " + " | ".join(shares) + " |")
    alone = percent(certain(found.alone / found.people))
    told = f"{found.alone:,} of the {found.people:,} patients ({alone}) have a path of their own."
    return "\n".join([*lines, "", told])


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Yield the address that ``veilog serve`` prints."""
    command = [sys.executable, "-m", "veilog", "serve", "--no-open", "--port", "0", "--folder", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def take_pages(page: Any, log: Path, address: str, folder: Path) -> None:
    """Upload a log; take its page and the page with the settings of a release."""
    page.goto(address)
    page.get_by_label("Event log").set_input_files(log)
    page.get_by_role("button", name="Yes: see who is exposed").click()
    page.locator("svg.dots").first.wait_for()
    page.screenshot(path=folder / "screen-exposure.png")
    page.get_by_role("link", name="Choose what to release").first.click()
    page.get_by_label("All of these may be known").check()
    page.locator("#plan [data-says=similarity-expected]").wait_for()
    page.locator("#plan [data-says=trying]").wait_for(state="detached")
    page.screenshot(path=folder / "screen-release.png")


def take(target: Path) -> None:
    """Take the screens with the demo's log, in the fewest colours that look the same."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        demo.run_demo(folder / "demo", lambda said: None)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 960, "height": 790}, locale="en", color_scheme="light")
        page.set_default_timeout(PATIENCE)
        with serving(folder / "data") as address:
            take_pages(page, folder / "demo" / "hospital.xes", address, target)
        page.goto((folder / "demo" / "recipient-report.html").as_uri())
        page.screenshot(path=target / "screen-report.png")
        browser.close()
    for name in SCREENS:
        Image.open(target / name).quantize(64, dither=Image.Dither.NONE).save(target / name, optimize=True)


def main() -> int:
    given = sys.argv[1:]
    if given[:1] == ["--screens"]:
        folder = Path(given[1]) if given[1:] else DOCS
        take(folder)
        print("\n".join(f"taken: {folder / name}" for name in SCREENS))
        return 0
    if given[:1] != ["--logs"]:
        target = Path(given[0]) if given else TARGET
        target.write_text(drawn(), encoding="utf-8")
        print(f"drawn: {target}")
        return 0
    found, target, page = exposed(Path(given[1])), Path(given[2]) if given[2:] else WHY, DOCS / "why.md"
    target.write_text(why(found), encoding="utf-8")
    begin = "<!-- python tools/pictures.py --logs FOLDER -->"
    told = f"{begin}\n\n{why_table(found)}\n\n<!-- end -->"
    table = re.compile(re.escape(begin) + ".*?<!-- end -->", re.DOTALL)
    page.write_text(table.sub(lambda _: told, page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"drawn: {target}; written: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

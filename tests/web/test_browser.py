"""End to end in a browser: a log, a release, and no request to another machine."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources, util
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np
import pytest
from web_serving import Served, served

from veilog import cli
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
SEED = 7
PATIENCE = 90_000
"""Milliseconds for work that takes a few seconds on an idle machine."""
MOST_CLICKS, MOST_SCREENS = 10, 4
SCREEN = 900
LONGEST = 3 * SCREEN
AXE = "axe_playwright_python"
"""Package of axe, which is not ours to copy: the testable rules of WCAG 2."""
FOUND = """async () => (await axe.run({resultTypes: ["violations"]})).violations.map(
  (found) => [found.id, found.impact, ...found.nodes.slice(0, 3).map((node) => node.html.slice(0, 300))])"""
OPENED = "document.querySelectorAll('details:not([open])').forEach((e) => { e.open = true; e.dataset.ours = '' })"
CLOSED = "document.querySelectorAll('details[data-ours]').forEach((e) => { e.open = false; delete e.dataset.ours })"
UNCLIPPED = "[...document.querySelectorAll('[data-map]')].every((map) => map.scrollWidth <= map.clientWidth + 1)"
LACKING = """() => [...document.querySelectorAll('[data-map]')].flatMap((map) => {
  const all = [...map.querySelectorAll('.step')];
  return ['count', 'after'].flatMap((log) => {
    const most = (steps) => Math.max(0, ...steps.map((step) => Number(step.dataset[log] || 0)));
    const boxes = [...map.querySelectorAll('.box:not(.off, .aside)')];
    return boxes.map((box) => box.dataset.activity).filter((name) => ['from', 'to'].some((end) => {
      const own = all.filter((step) => step.dataset[end] === name);
      return most(own.filter((step) => !step.classList.contains('off'))) < most(own);
    }));
  });
})"""
"""Activities on a map that lack their most frequent way in or out."""
OUTSIDE = """() => [...document.querySelectorAll('[data-map] .box')].flatMap((box) => {
  const around = box.querySelector('rect').getBoundingClientRect();
  return [...box.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()])
    .filter(([, own]) => own.left < around.left || own.right > around.right || own.bottom > around.bottom)
    .map(([words]) => words) })"""
PLACE = """const place = (e) => e === document.body ? 'BODY'
  : `${e.tagName} ${[...document.querySelectorAll(e.tagName)].indexOf(e)}`;"""
PLACED = f"""() => {{ {PLACE} const e = document.activeElement, own = getComputedStyle(e);
  const outlined = e.type === 'date' || (own.outlineStyle !== 'none' && parseFloat(own.outlineWidth) >= 2);
  return [place(e), e.outerHTML.slice(0, 160), outlined] }}"""
REACHABLE = f"""() => {{ {PLACE}
  const every = 'a[href], button, input, select, textarea, summary, .box[tabindex]';
  return [...document.querySelectorAll(every)].filter((e) => {{
    if (e.disabled || !e.checkVisibility({{visibilityProperty: true}}) || e.type === 'hidden') return false;
    if (getComputedStyle(e).display === 'none') return false;  // which is not asked of pictures otherwise
    if (e.type !== 'radio') return true;
    const checked = document.querySelector(`input[name="${{e.name}}"]:checked`);  // of radio buttons one is reached
    return checked === e;
  }}).map(place) }}"""
FOCUSED = """() => { const e = document.activeElement, own = getComputedStyle(e);
  const parts = e.type === 'date';  // of which the browser outlines the one that has the focus
  const outlined = own.outlineStyle !== 'none' && parseFloat(own.outlineWidth) >= 2;
  return [e.outerHTML.slice(0, 120), e.innerText, parts || outlined] }"""

pytestmark = [pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no Chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("browser") / "data", workers=2, seed=SEED) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[sync_api.Browser]:
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Visit:
    """Browser with access, and the errors and foreign requests that it noticed."""

    page: sync_api.Page
    origin: str
    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    clicks: int = 0
    scrolled: float = 0.0
    script: bool = True

    def click(self, role: str, name: str) -> None:
        self.press(self.page.get_by_role(role, name=name).first)  # type: ignore[arg-type]

    def press(self, place: sync_api.Locator) -> None:
        """Click, and count how far down the page that was."""
        self.clicks += 1
        bottom = place.evaluate("(e) => e.getBoundingClientRect().bottom + scrollY")
        seen = self.page.evaluate("scrollY") + SCREEN
        self.scrolled += max(0, bottom - seen) / SCREEN
        place.click()

    def bring(self, file: Path) -> None:
        """Choose a log, and wait until it is read."""
        self.page.goto(self.origin)
        self.page.get_by_label("Event log").set_input_files(file)
        self.clicks += 1
        if not self.script:
            self.click("button", "Read the log")
        self.page.get_by_role("heading", name="Findings while reading").wait_for(timeout=PATIENCE)

    def settings(self) -> None:
        """Go from the log to the settings, with all names of activities public."""
        self.click("button", "Yes: see who is exposed")
        self.click("link", "Choose what to release")
        self.press(self.page.get_by_label("All of these may be known"))

    def short(self) -> None:
        """Assert that no page has more than three screens with its details closed."""
        self.page.set_viewport_size({"width": 1280, "height": SCREEN})
        assert self.page.evaluate("document.documentElement.scrollHeight") <= LONGEST, self.page.url

    def release(self, compared: bool = True) -> None:
        """Press the button, and wait for the result and for the comparison after it."""
        if "/check" not in self.page.url:
            self.click("button", "Check your answers")
        self.click("button", "Make the release")
        self.page.get_by_role("heading", name="Your release is ready").wait_for(timeout=PATIENCE)
        if compared:
            self.page.locator(".doing").wait_for(state="detached", timeout=PATIENCE)

    def look(self) -> None:
        """Assert that the page fits the window, and that axe finds nothing on it.

        It is checked in both schemes and widths.
        """
        axe = util.find_spec(AXE) is not None
        self.walk()
        self.page.evaluate(OPENED)
        if axe:
            self.page.evaluate((resources.files(AXE) / "axe.min.js").read_text())
        for width, scheme in product((390, 1280), ("dark", "light")):
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width, self.page.url
            assert self.page.evaluate(UNCLIPPED) or width < 1280, "maps are seen whole"
            assert not axe or self.page.evaluate(FOUND) == [], (self.page.url, width, scheme)
        self.page.evaluate(CLOSED)

    def tab_to(self, words: str) -> None:
        """Reach a button by the keyboard alone, and assert a visible focus on the way."""
        self.page.locator("body").press("Home")
        for _ in range(80):
            self.page.keyboard.press("Tab")
            html, text, outlined = self.page.evaluate(FOCUSED)
            assert outlined, html
            if text == words:
                return
        raise AssertionError(f"{words!r} is not reached")

    def walk(self) -> None:
        """Assert that the keyboard alone reaches every control, with a visible focus."""
        self.page.locator(".skip").focus()
        reached = dict.fromkeys(self.page.evaluate(PLACED)[:1])
        for _ in range(400):
            self.page.keyboard.press("Tab")
            place, html, outlined = self.page.evaluate(PLACED)
            assert outlined or place == "BODY", html
            if place in ("BODY", next(iter(reached))):
                break
            reached[place] = None
        lacking = self.page.evaluate(REACHABLE)
        assert {place for place in lacking if place not in reached} == set(), self.page.url

    def download(self, name: str, folder: Path) -> Path:
        self.clicks += 1
        with self.page.expect_download() as found:
            self.page.locator(f'a[href$="/files/{name}"]').click()
        stem, _, ending = name.partition(".")
        assert re.fullmatch(rf"{stem}-\d{{4}}-\d\d-\d\d-eps[\d.]+\.{ending}", found.value.suggested_filename)
        found.value.save_as(folder / name)
        return folder / name


def visiting(server: Served, browser: sync_api.Browser, **options: object) -> Iterator[Visit]:
    """Yield a visit, and assert that it ends without error or foreign request."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    visit = Visit(page, server.origin, script=bool(options.get("java_script_enabled", True)))
    # A page that is left while it asks how far a job is, or that asks anew before it was answered: the request is cut
    # off, which its script notes.
    cut = ("htmx:afterRequest", "htmx:sendError", "htmx:sendAbort")

    def noted(message: sync_api.ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(cut):
            visit.errors.append(message.text)

    page.on("console", noted)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    context.on("request", lambda request: visit.strangers.append(request.url))
    page.goto(server.origin)
    page.get_by_label("Token").fill(server.settings.token)
    page.get_by_role("button", name="Enter").click()
    page.wait_for_url(f"{server.origin}/")
    visit.errors.clear()  # that it was not in before
    yield visit
    context.close()
    assert visit.errors == []
    assert {urlsplit(url).netloc for url in visit.strangers} == {urlsplit(server.origin).netloc}


@pytest.fixture
def visit(server: Served, chromium: sync_api.Browser) -> Iterator[Visit]:
    yield from visiting(server, chromium)


@pytest.fixture
def visit_without_script(
    server: Served, chromium: sync_api.Browser, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Visit]:
    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 20.0)  # the page without scripts asks once
    yield from visiting(server, chromium, java_script_enabled=False)


@pytest.fixture
def patients(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return patients of each test's own, because releases of a log share an account."""
    path = tmp_path / "patients.xes"
    files.write(hospital(300, seed=crc32(request.node.name.encode()) % 1000), path)
    return path


def released_by_command(log: Path, folder: Path, *options: str) -> bytes:
    target = folder / "by-command.xes"
    assert cli.main(["release", str(log), str(target), *options, "--no-compare", "--seed", str(SEED)]) == 0
    return target.read_bytes()


def filter_a_map(page: sync_api.Page) -> None:
    """Show fewer and all activities and paths, times for counts, and one activity."""
    assert page.evaluate(OUTSIDE) == [], "names lie in their boxes"
    picture = page.locator("[data-map] svg").first
    whole = float(picture.get_attribute("width") or 0)
    page.get_by_role("button", name="Larger").click()
    assert float(picture.get_attribute("width") or 0) > 1.2 * whole
    page.get_by_role("button", name="Whole").click()
    assert page.evaluate(UNCLIPPED)
    boxes, steps = (page.locator(f"[data-map] {part}:not(.off)") for part in (".box", ".step"))
    assert page.evaluate(LACKING) == [], "each activity opens with its most frequent way in and out"
    opened = boxes.count(), steps.count()
    assert opened[1] <= 4 * (opened[0] + 2)
    sliders = [page.get_by_role("slider", name=re.compile(f"^{what}")) for what in ("Activities", "Steps")]
    for slider, least in ((sliders[0], "3"), (sliders[1], "1")):
        slider.fill(least)
        assert 3 <= boxes.count() <= opened[0] and 1 <= steps.count() < opened[1]
        assert page.evaluate(LACKING) == [], "each activity keeps its most frequent way in and out"
    for slider in sliders:
        slider.fill(str(slider.get_attribute("max")))
    assert boxes.count() == opened[0] and steps.count() == page.locator("[data-map] .step").count() >= opened[1]
    times = page.locator("[data-map] .label .long").first
    assert not times.is_visible()
    page.get_by_label("How long steps take").check()
    assert times.is_visible()
    assert re.search(r"\d (s|min|h|days|months|years)$", times.text_content() or "")
    page.get_by_label("How long steps take").uncheck()
    box = page.locator("[data-map] .box").first
    box.focus()
    page.keyboard.press("Enter")
    assert box.get_attribute("aria-pressed") == "true"
    assert page.get_by_label("Find a variant by an activity").input_value() == box.get_attribute("data-activity")
    assert page.locator("[data-map] .step.faint").count() > 0
    page.keyboard.press("Enter")
    assert page.locator("[data-map] .step.faint").count() == 0


def move_the_budget(page: sync_api.Page) -> None:
    """Type and slide the budget, up to one without protection, which needs a word."""
    plan, number, slider = page.locator("#plan"), page.get_by_label("Budget ε", exact=True), page.get_by_role("slider")
    ground = plan.locator("[data-right]")
    number.fill("0.5")
    sync_api.expect(ground).to_have_attribute("data-right", "62.3")
    slider.focus()
    slider.press("End")
    assert number.input_value() == "10"
    word = page.get_by_label("type the word unprotected")
    assert word.is_visible()
    number.fill("1")
    assert not word.is_visible()
    number.fill("20")
    assert word.is_visible()
    sync_api.expect(plan.get_by_text("no effective protection")).to_be_visible(timeout=PATIENCE)
    word.fill("unprotected")
    sync_api.expect(ground).to_have_attribute("data-right", "100.0")
    word.fill("")
    number.fill("1")
    sync_api.expect(ground).to_have_attribute("data-right", "73.2")
    assert slider.input_value() == "24"


@pytest.mark.slow
def test_an_officer_comes_from_a_log_to_its_signed_dossier_in_a_few_clicks(
    chromium: sync_api.Browser, patients: Path, tmp_path: Path
) -> None:
    with served(tmp_path / "data", workers=1) as own:  # without a seed, so that there is a guarantee to sign
        for visit in visiting(own, chromium):
            page = visit.page
            visit.bring(patients)
            visit.settings()
            visit.click("button", "Check your answers")
            page.get_by_role("heading", name="Check your answers").wait_for()
            visit.release()
            assert page.locator("[data-check=activities-from-log] input").count() == 0, "it was stated in the settings"
            for box in page.locator("ul.checks input").all():
                visit.press(box)
            page.get_by_label("Your name").fill("Dr. Meier")
            page.get_by_role("textbox", name="Recipient").fill("University")
            visit.click("button", "Sign the dossier")
            signed = page.locator("[data-signed]")
            signed.wait_for()
            assert {"activities-from-log", "unit", "recipient"} <= set(str(signed.get_attribute("data-signed")).split())
            assert visit.clicks <= MOST_CLICKS and visit.scrolled <= MOST_SCREENS, (visit.clicks, visit.scrolled)
            dossier = visit.download("dossier.html", tmp_path).read_text()
            assert dossier.count("Dr. Meier") >= 2 and dossier.count(">✓</span>") == len(
                str(signed.get_attribute("data-signed")).split()
            )
            page.get_by_role("link", name="Account: budget and releases").first.click()
            assert page.locator("input[id^=recipient-]").first.input_value() == "University"
            page.goto(visit.origin)
            assert "University" in str(page.locator("svg.account").first.get_attribute("aria-label"))


@pytest.mark.nightly
def test_every_page_is_walked_with_keys_and_looked_at_in_both_schemes(
    visit: Visit, patients: Path, tmp_path: Path
) -> None:
    page = visit.page
    visit.look()
    visit.bring(patients)
    assert page.get_by_text("Test mode.").is_visible()
    visit.look()
    log = page.url
    visit.tab_to("Yes: see who is exposed")
    visit.click("button", "Yes: see who is exposed")
    page.locator("svg.dots").wait_for()
    known, found = page.get_by_role("slider"), page.locator("[data-found]")
    shares = []
    for level in range(5):
        known.fill(str(level))
        shares.append(int(found.inner_text()))
        assert page.locator("svg.dots .on").count() == shares[-1]
    assert shares == sorted(shares) and shares[0] < shares[-1], "who knows more finds more"
    visit.look()
    page.goto(f"{log}/explore")
    page.get_by_label("Find a variant by an activity").fill("zzz")
    assert "0 of" in page.locator("#found").inner_text()
    page.get_by_label("Find a variant by an activity").fill("")
    filter_a_map(page)
    visit.look()

    page.goto(f"{log}/release")
    assert page.get_by_role("alert").count() == 0, "no form opens with a complaint"
    plan = page.locator("#plan")
    activities = {activity for variant in files.read(patients).variants.to_dict() for activity in variant}
    assert page.locator("ul.names li").count() == len(activities)
    plan.locator("svg.outlook").wait_for(timeout=PATIENCE)
    visit.click("button", "Check your answers")
    page.get_by_role("heading", name="This cannot be done as it is").wait_for()
    visit.errors.clear()  # the browser notes the status 400, as it should
    page.locator("#problem a").click()
    assert page.url.endswith("#labels-log") and page.locator("#labels-log").get_attribute("aria-invalid") == "true"
    page.get_by_label("All of these may be known").check()
    move_the_budget(page)
    files.write(hospital(100, seed=903), tmp_path / "other.xes")
    page.get_by_label("Public file").set_input_files(tmp_path / "other.xes")
    page.get_by_role("button", name="Use this file").click()
    page.locator("[data-shared]").wait_for(timeout=PATIENCE)
    sync_api.expect(plan.locator("[data-says=prior]")).to_be_visible(timeout=PATIENCE)
    assert page.get_by_label("All of these may be known").is_checked(), "what was answered is kept"
    sync_api.expect(plan.locator("[data-says=trying]")).to_have_count(0, timeout=PATIENCE)
    sync_api.expect(plan.locator("[data-says=similarity-expected]")).to_be_visible()
    visit.look()
    page.get_by_label("Start from other.xes").uncheck()
    sync_api.expect(plan.locator("[data-says=prior]")).to_have_count(0, timeout=PATIENCE)
    page.get_by_role("link", name="Expert options").click()
    visit.look()
    page.get_by_role("link", name="Back to the settings").click()
    assert page.get_by_label("All of these may be known").is_checked(), "what was answered is kept"
    visit.tab_to("Check your answers")
    visit.click("button", "Check your answers")
    sync_api.expect(page.locator("#queries table")).to_be_visible(timeout=PATIENCE)
    visit.look()
    visit.tab_to("Make the release")
    visit.release()
    visit.look()
    came = visit.download("release.xes", tmp_path).read_bytes()
    assert came == released_by_command(
        patients, tmp_path, "--method", "evolve", "--epsilon", "1", "--activities", "log"
    )
    table = files.read(visit.download("release.csv", tmp_path))
    for name in ("release.parquet", "release.xlsx"):
        assert table.variants == files.read(visit.download(name, tmp_path)).variants
    assert "NOT FOR RELEASE" in visit.download("internal-report.html", tmp_path).read_text()
    job = page.url
    for place in (
        f"{job}/explore",
        visit.origin,
        f"{log}/account",
        f"{log}/compare",
        f"{visit.origin}/stored",
        f"{log}/nothing",
    ):
        page.goto(place)
        visit.look()
    visit.errors.clear()  # the browser notes the status 404, as it should
    if not util.find_spec(AXE):
        pytest.skip("axe-playwright-python is not installed: all was walked, but axe did not look at it")


def wide_log(path: Path, activities: int = 624, cases: int = 1_143) -> Path:
    """Return a log with the activities and cases of a hospital's, by Zipf's law."""
    rng = np.random.default_rng(1)
    often = 1 / np.arange(1, activities + 1) ** 1.05
    lengths = np.clip(rng.lognormal(3.4, 1.2, cases).astype(int), 1, 1_814)
    rows, moment = ["case,activity,timestamp,Diagnosis,Age"], np.datetime64("2024-01-01T00:00")
    for case, length in enumerate(lengths):
        for place, name in enumerate(rng.choice(activities, length, p=often / often.sum())):
            name = name if place else case % activities
            at = moment + np.timedelta64(60 * case + 37 * place, "m")
            rows.append(f"c{case},treatment number {name},{at},d{case % 101},{case % 90}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["sepsis", "wide"])
def test_no_page_has_more_than_three_screens(chromium: sync_api.Browser, tmp_path: Path, name: str) -> None:
    """No page has more than three screens, for a real log and one of 624 activities.

    The latter has a warning before anything is spent, and is still released.
    """
    wide = name == "wide"
    path = wide_log(tmp_path / "wide.csv") if wide else real_log(name)
    with served(tmp_path / "data", workers=1) as own:
        for visit in visiting(own, chromium):
            page = visit.page
            visit.bring(path)
            log = page.url
            visit.short()
            if wide:
                assert page.get_by_label("What is the column Diagnosis?").input_value() == ""
                assert page.locator("[data-person]").get_attribute("data-person") == ""
            for place in ("exposure", "explore", "expert", "account", "release?labels=log"):
                page.goto(f"{log}/{place}")
                visit.short()
            plan = page.locator("#plan")
            plan.locator("[data-says=similarity-expected]").wait_for(timeout=4 * PATIENCE)
            sync_api.expect(plan.locator("[data-says=trying]")).to_have_count(0, timeout=4 * PATIENCE)
            assert plan.locator("[data-says=activities-survive].warning").count() == wide
            assert plan.locator("[data-says^=little-kept].warning").count() == wide
            visit.short()
            jobs = []
            for asked in ("epsilon=1&times=0.3", *(() if wide else ("epsilon=0.5",))):
                page.goto(f"{log}/check?method=evolve&labels=log&{asked}")
                visit.short()
                if page.locator("#lower").count():
                    page.locator("#lower").check()
                page.get_by_role("button", name="Make the release").click()
                page.locator("section.verdict, #lower").first.wait_for(timeout=4 * PATIENCE)
                if page.locator("#lower").count():
                    visit.errors.clear()  # the browser notes the status 409, as it should
                    page.locator("#lower").check()
                    page.get_by_role("button", name="Make the release").click()
                page.locator("section.verdict").wait_for(timeout=4 * PATIENCE)
                page.locator(".doing").wait_for(state="detached", timeout=8 * PATIENCE)
                visit.short()
                jobs.append(page.url)
            for place in (*(f"{job}/explore" for job in jobs), f"{log}/compare", f"{log}/account"):
                page.goto(place)
                visit.short()
            for place in (visit.origin, f"{visit.origin}/stored"):
                page.goto(place)
                visit.short()


def real_log(name: str) -> Path:
    """Return a public log from the folder that VEILOG_LOGS names."""
    folder = os.environ.get("VEILOG_LOGS")
    if folder is None:
        pytest.skip("VEILOG_LOGS names no folder of real logs")
    return Path(folder) / f"{name}.xes.gz"


@pytest.mark.nightly
def test_a_budget_of_one_log_refuses_no_other(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    for seed in (901, 902):
        files.write(hospital(60, seed=seed), tmp_path / f"{seed}.xes")
        visit.bring(tmp_path / f"{seed}.xes")
        if seed == 901:
            page.goto(f"{page.url}/account")
            page.get_by_role("button", name="Set it").click()
            page.locator("#spent[data-says=left]").wait_for()
    page.goto(f"{page.url}/check?method=evolve&epsilon=1&labels=log")
    assert page.locator("[data-says=beside-budget]").is_visible()
    assert page.get_by_role("button", name="Make the release").is_enabled()


@pytest.mark.nightly
def test_the_button_back_spends_no_more_than_was_asked_for(visit: Visit, patients: Path) -> None:
    """The back button spends no more than requested, as the form keeps its values."""
    page = visit.page
    visit.bring(patients)
    log = page.url
    visit.settings()
    page.get_by_label("Budget ε", exact=True).fill("0.1")
    sync_api.expect(page.locator("#plan [data-right]")).to_have_attribute("data-right", "52.5")
    page.get_by_role("link", name="Expert options").click()
    page.get_by_label("Method", exact=True).select_option("laplace")
    page.get_by_role("button", name="Use these options").click()
    page.get_by_role("heading", name="Parameters of laplace").wait_for()
    page.get_by_label("Method", exact=True).select_option("evolve")
    page.get_by_role("button", name="Use these options").click()
    page.get_by_role("heading", name="Parameters of evolve").wait_for()
    page.goto(f"{log}/release")
    assert page.get_by_label("Budget ε", exact=True).input_value() == "0.1"
    visit.release(compared=False)
    page.goto(f"{log}/check")
    page.get_by_role("button", name="Make the release").click()
    page.get_by_role("heading", name=re.compile("You made this same request")).wait_for()
    visit.errors.clear()  # the browser notes the status 409, as it should
    page.get_by_role("link", name="Account: budget and releases").click()
    page.get_by_text("Release 1: evolve").wait_for()
    assert page.get_by_text("Release 2").count() == 0
    page.get_by_label("Budget of all releases together, ε").fill("0.15")
    page.get_by_role("button", name="Set it").click()
    page.get_by_role("heading", name="0 of ε = 0.15 is left").wait_for()  # with a seed nothing bounds the release
    assert page.locator("meter.budget").is_visible()
    page.goto(f"{log}/release")
    sync_api.expect(page.locator("#plan [data-says=refused]")).to_be_visible(timeout=PATIENCE)
    page.goto(f"{log}/check")
    assert page.get_by_role("button", name="Make the release").is_disabled()
    page.get_by_role("link", name="Change the budget of this log").click()
    page.get_by_role("button", name="Take the limit away").click()
    page.get_by_role("heading", name="Nothing bounds what was spent, and there is no limit").wait_for()


@pytest.mark.slow
def test_columns_are_corrected_by_hand_and_say_who_is_protected(visit: Visit, tmp_path: Path) -> None:
    rows = [f"{i // 4},P{i // 4 % 10},nurse {i % 3},step {i % 4},0{i % 9 + 1}/02/2024" for i in range(80)]
    table = tmp_path / "ward.csv"
    table.write_text("\n".join(["case,Patienten-ID,activity,what,when", *rows]) + "\n")
    page = visit.page
    visit.bring(table)
    assert page.get_by_role("heading", name="Your help is needed").is_visible()
    assert page.get_by_label("What is the column case?").input_value() == "case"
    assert page.get_by_label("What is the column activity?").input_value() == "activity"
    visit.look()
    head = "What is the column {}?".format
    page.get_by_label(head("when")).select_option("timestamp")
    page.get_by_label("Meaning of 5/6/2024").select_option("dd/mm/yyyy")
    page.get_by_role("button", name="Read it again like this").click()
    page.get_by_text("20 cases with 80 events of 3 activities, from 1 February 2024 to 9 February 2024").wait_for(
        timeout=PATIENCE
    )
    page.get_by_label(head("what")).select_option("activity")
    assert page.get_by_label(head("activity")).input_value() == "", "one column alone is the activity"
    page.get_by_role("button", name="Yes: see who is exposed").click()
    page.get_by_text("20 cases with 80 events of 4 activities").wait_for(timeout=PATIENCE)
    assert page.get_by_label(head("Patienten-ID")).input_value() == "person", "it is called after persons"
    page.get_by_label(head("activity")).select_option("release")
    page.get_by_role("button", name="Yes: see who is exposed").click()
    page.get_by_role("link", name="Choose what to release").first.click()
    assert page.get_by_label("Each person, identified by: Patienten-ID").is_checked()
    page.get_by_label("All of these may be known").check()
    attribute = page.get_by_label("activity", exact=True)
    assert attribute.is_checked()
    page.locator("textarea[name=d_activity]").fill("nurse 0\nnurse 1\nnurse 2")
    page.get_by_role("button", name="Check your answers").click()
    sync_api.expect(page.get_by_role("row", name="Values of attributes")).to_be_visible(timeout=PATIENCE)
    page.goto(visit.origin)
    assert page.get_by_role("link", name="ward.csv", exact=True).is_visible()


@pytest.mark.nightly
def test_a_mistake_is_shown_beside_the_form_and_a_job_shows_its_progress_and_is_cancelled(
    visit: Visit, patients: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = visit.page
    visit.bring(patients)
    log = page.url
    page.goto(f"{log}/release")
    page.get_by_label("Budget ε", exact=True).fill("much")
    sync_api.expect(page.locator("#plan [role=alert]")).to_contain_text("epsilon", timeout=PATIENCE)
    visit.errors.clear()
    page.get_by_role("button", name="Check your answers").click()
    page.get_by_role("heading", name="This cannot be done as it is").wait_for()
    assert page.get_by_label("Budget ε", exact=True).input_value() == "much"
    wrong = page.locator("[aria-invalid=true]")
    assert wrong.get_attribute("id") == "epsilon" and "problem" in str(wrong.get_attribute("aria-describedby"))
    sync_api.expect(page.locator("#problem")).to_be_focused()
    visit.look()
    visit.errors.clear()  # the browser notes the status 400, as it should

    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 0.5)  # what takes a while is begun before it is tried
    page.goto(f"{log}/check?method=travag&epsilon=2&labels=log")
    page.get_by_role("button", name="Make the release").click()
    page.get_by_role("heading", name="The release is being made").wait_for(timeout=PATIENCE)
    words = page.locator("[data-text]")
    sync_api.expect(words).not_to_contain_text("Waiting", timeout=PATIENCE)
    before = words.inner_text()
    sync_api.expect(words).not_to_have_text(before, timeout=PATIENCE)
    visit.look()
    page.route("**/now", lambda route: route.abort())  # as where the server was stopped
    sync_api.expect(words).to_contain_text("No answer", timeout=PATIENCE)
    page.unroute("**/now")
    sync_api.expect(words).not_to_contain_text("No answer", timeout=PATIENCE)
    visit.errors.clear()
    home = page.context.new_page()
    home.goto(visit.origin)
    state = home.locator("ul.made li", has_text="travag").locator(".state")
    sync_api.expect(state).to_have_text("at work")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("heading", name="It was cancelled").wait_for(timeout=PATIENCE)
    sync_api.expect(state).to_have_text("cancelled", timeout=PATIENCE)  # by itself
    home.close()
    visit.look()
    page.get_by_role("link", name="Try again, with changes").click()
    assert page.get_by_label("Budget ε", exact=True).input_value() == "2"


@pytest.mark.nightly
def test_everything_can_be_done_without_javascript(visit_without_script: Visit, patients: Path, tmp_path: Path) -> None:
    visit = visit_without_script
    page = visit.page
    visit.bring(patients)
    page.get_by_role("button", name="Yes: see who is exposed").click()
    assert page.locator("svg.dots .on").count() and not page.get_by_role("slider").is_visible()
    page.get_by_role("link", name="Choose what to release").first.click()
    assert not page.get_by_role("slider").is_visible()
    page.get_by_role("button", name="Update the forecast").click()
    for _ in range(PATIENCE // 500):
        if page.locator("svg.outlook").count():
            break
        page.wait_for_timeout(500)
        page.reload()
    assert page.locator("svg.outlook").count()
    page.get_by_label("Budget ε", exact=True).fill("0,5")
    page.get_by_role("button", name="Check your answers").click()
    assert page.get_by_role("alert").get_by_text("has to know which activities are public").is_visible()
    visit.errors.clear()  # the browser notes the status 400, as it should
    page.get_by_label("All of these may be known").check()
    page.get_by_role("button", name="Check your answers").click()
    assert page.get_by_role("heading", name="It would query").is_visible()
    assert page.locator("input[name=epsilon]").input_value() == "0,5"
    visit.release(compared=False)
    stop = page.get_by_role("button", name="Stop comparing")
    if stop.count():  # it may have been quick, and without a script the page stays as it was
        stop.click()
    page.get_by_text("Delete this result").wait_for(timeout=PATIENCE)
    certificate = json.loads(visit.download("certificate.json", tmp_path).read_text())
    assert certificate["method"] == "evolve" and "0.5" in json.dumps(certificate)
    page.get_by_text("Delete this result").click()
    page.get_by_role("button", name="Yes, delete").click()
    assert urlsplit(page.url).path == "/"
    assert page.get_by_text("Your releases").count() == 0
    page.get_by_role("button", name="Français").click()
    assert page.get_by_role("heading", name="Vos journaux").is_visible()


@pytest.mark.nightly
def test_nothing_is_wider_than_the_window_whatever_things_are_called(visit: Visit, tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>", "../../etc/passwd", "W" * 10_000, "\u202ereversed\u202c", "a\x07b", "'\"&"]
    lines = ["case,activity,timestamp," + "X" * 3_000]
    for case in range(40):
        for i in range(4):
            name = names[(case + i) % len(names)].replace('"', '""')
            lines.append(f'c{case},"{name}",2024-01-{i + 1:02d}T00:00:00Z,{"y" * 500}')
    table = tmp_path / ("<b>" + "n" * 200 + "\u202e.csv")
    table.write_text("\n".join(lines) + "\n")
    page = visit.page
    visit.bring(table)
    log = page.url
    page.goto(log + "/check?method=travas&epsilon=3&delta=0.001")
    visit.release()
    result = page.url
    for path in (
        visit.origin,
        log,
        f"{log}/exposure",
        f"{log}/release",
        f"{log}/expert?method=amun&p_mode=<b>",
        f"{log}/explore",
        f"{result}/explore",
        f"{log}/check?method=travas&epsilon=3",
        f"{log}/account",
        f"{visit.origin}/stored",
        result,
    ):
        page.goto(path)
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.nightly
@pytest.mark.false_alarm(1e-9, "noise of 12 counts at scale 5 takes 300 cases below 75: 1e-10 (Chernoff)")
def test_the_page_of_a_release_says_what_holds_when_it_is_opened_again(
    chromium: sync_api.Browser, patients: Path, tmp_path: Path
) -> None:
    """The page of a release is the only one's until another release is made."""
    with served(tmp_path / "data", workers=1, ledger=tmp_path / "all.ledger") as shared:
        for visit in visiting(shared, chromium):
            page = visit.page
            visit.bring(patients)
            form = page.url + "/check?method=laplace&p_depth=2&labels=log&longest=log&epsilon="
            page.goto(form + "1")
            visit.release()
            first = page.url
            only = page.locator('ul.checks li[data-check="other-releases"]')
            assert "checked" in (only.get_attribute("class") or "")
            assert page.locator("ul.checks li.to-confirm input").count() >= 2
            page.goto(form + "2")
            page.get_by_label("Make the release nevertheless").check()
            visit.release(compared=False)
            page.goto(first)
            assert "against" in (only.get_attribute("class") or "") and "ε = 3" in only.inner_text()
            assert page.locator("section.verdict.warn").count() == page.locator("ul.checks li.against").count() == 1
            page.goto(form.partition("/check")[0] + "/account")
            assert page.get_by_text("All users of this server share this budget").is_visible()
            visit.look()

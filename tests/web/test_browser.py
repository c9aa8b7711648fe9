"""End to end in a browser: a log goes in, a release comes out, and nothing is asked of any other machine."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources, util
from pathlib import Path
from urllib.parse import urlsplit
from zlib import crc32

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
MOST_CLICKS = 12
AXE = "axe_playwright_python"
"""The package that brings axe, which is not ours to copy: the rules of WCAG 2 that a program can check."""
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
"""The activities on a map that lack their most frequent way in or out, of those that are drawn or may be."""
OUTSIDE = """() => [...document.querySelectorAll('[data-map] .box')].flatMap((box) => {
  const around = box.querySelector('rect').getBoundingClientRect();
  return [...box.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()])
    .filter(([, own]) => own.left < around.left || own.right > around.right || own.bottom > around.bottom)
    .map(([words]) => words) })"""
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
    """A browser that was let in, and what it noticed."""

    page: sync_api.Page
    origin: str
    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    clicks: int = 0

    def click(self, role: str, name: str) -> None:
        self.clicks += 1
        self.page.get_by_role(role, name=name).first.click()  # type: ignore[arg-type]

    def bring(self, file: Path) -> None:
        """Upload a log and wait until it was read."""
        self.page.goto(self.origin)
        self.page.get_by_label("Event log").set_input_files(file)
        self.clicks += 3  # the button that chooses, the file, and "Open"
        self.click("button", "Read the log")
        self.page.get_by_role("heading", name="Findings while reading").wait_for(timeout=PATIENCE)

    def release(self, compared: bool = True) -> None:
        """Press the button and wait for the result, and for what is compared after that."""
        self.click("button", "Make the release")
        self.page.get_by_role("heading", name="Your release is ready").wait_for(timeout=PATIENCE)
        if compared:
            self.page.locator(".doing").wait_for(state="detached", timeout=PATIENCE)

    def look(self) -> None:
        """No page is wider than the window, and axe finds nothing on it. Widths change where things are, schemes their
        colours, and neither the other: two looks see all."""
        axe = util.find_spec(AXE) is not None
        self.page.evaluate(OPENED)
        if axe:
            self.page.evaluate((resources.files(AXE) / "axe.min.js").read_text())
        for width, scheme in ((390, "dark"), (1280, "light")):
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width, self.page.url
            assert self.page.evaluate(UNCLIPPED) or width < 1280, "maps are seen whole"
            assert not axe or self.page.evaluate(FOUND) == [], (self.page.url, width, scheme)
        self.page.evaluate(CLOSED)

    def tab_to(self, words: str) -> None:
        """Reach a button by the keyboard alone, and see on the way where one is."""
        self.page.locator("body").press("Home")
        for _ in range(80):
            self.page.keyboard.press("Tab")
            html, text, outlined = self.page.evaluate(FOCUSED)
            assert outlined, html
            if text == words:
                return
        raise AssertionError(f"{words!r} is not reached")

    def download(self, name: str, folder: Path) -> Path:
        self.clicks += 1
        with self.page.expect_download() as found:
            self.page.locator(f'a[href$="/files/{name}"]').click()
        stem, _, ending = name.partition(".")
        assert re.fullmatch(rf"{stem}-\d{{4}}-\d\d-\d\d-eps[\d.]+\.{ending}", found.value.suggested_filename)
        found.value.save_as(folder / name)
        return folder / name


def visiting(server: Served, browser: sync_api.Browser, **options: object) -> Iterator[Visit]:
    """A visit that at its end must have had no error, and no request to anybody else."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    visit = Visit(page, server.origin)
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
    """Those of each test are others: releases of a log count on one account, whoever makes them."""
    path = tmp_path / "patients.xes"
    files.write(hospital(300, seed=crc32(request.node.name.encode()) % 1000), path)
    return path


def released_by_command(log: Path, folder: Path, *options: str) -> bytes:
    target = folder / "by-command.xes"
    assert cli.main(["release", str(log), str(target), *options, "--no-compare", "--seed", str(SEED)]) == 0
    return target.read_bytes()


def filter_a_map(page: sync_api.Page) -> None:
    """Fewer activities and paths and all of them again, times in place of counts, and one activity alone."""
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
    """Type it, slide it, and ask for one that protects nobody, for which a word has to be typed."""
    plan, number, slider = page.locator("#plan"), page.get_by_label("Budget ε", exact=True), page.get_by_role("slider")
    sync_api.expect(plan.get_by_text("It would query")).to_be_visible(timeout=PATIENCE)
    number.fill("0.5")
    sync_api.expect(plan.locator("table").last).to_contain_text("0.")
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
    sync_api.expect(plan.get_by_text("It would query")).to_be_visible(timeout=PATIENCE)
    word.fill("")
    number.fill("1")
    assert slider.input_value() == "24"


@pytest.mark.nightly
def test_an_officer_comes_from_a_log_to_its_dossier_in_a_few_clicks(
    visit: Visit, patients: Path, tmp_path: Path
) -> None:
    page = visit.page
    visit.look()
    visit.bring(patients)
    assert page.get_by_text("Test mode.").is_visible()
    visit.look()
    visit.click("button", "Yes: see who is exposed")
    assert page.locator("svg.curves").count() == 2
    assert re.search(r"\d\s%", page.locator("p.lead").inner_text())
    page.get_by_label("Find a variant by an activity").fill("zzz")
    assert "0 of" in page.locator("#found").inner_text()
    filter_a_map(page)
    visit.look()

    log = page.url.removesuffix("/exposure")
    visit.click("link", "Choose how to release it")
    plan = page.locator("#plan")
    sync_api.expect(plan.get_by_text("A setting is missing.")).to_be_visible(timeout=PATIENCE)
    activities = {activity for variant in files.read(patients).variants.to_dict() for activity in variant}
    assert page.locator("p.labels").inner_text().count(", ") == len(activities) - 1
    page.get_by_label("All of these may be known").check()
    visit.clicks += 1
    sync_api.expect(plan.get_by_text("A setting is missing.")).to_be_hidden(timeout=PATIENCE)
    move_the_budget(page)
    sync_api.expect(plan).not_to_have_class(re.compile("htmx-request"))
    visit.look()
    visit.tab_to("Make the release")
    visit.release()

    assert page.get_by_role("heading", name="Original beside release").is_visible()
    assert page.get_by_role("heading", name="Risk before and after").is_visible()
    assert page.get_by_text("Utility.").is_visible()
    visit.look()
    visit.download("dossier.html", tmp_path)
    assert visit.clicks <= MOST_CLICKS

    came = visit.download("release.xes", tmp_path).read_bytes()
    assert came == released_by_command(
        patients, tmp_path, "--method", "evolve", "--epsilon", "1", "--activities", "log"
    )
    table = files.read(visit.download("release.csv", tmp_path))
    for name in ("release.parquet", "release.xlsx"):
        assert table.variants == files.read(visit.download(name, tmp_path)).variants
    assert "NOT FOR RELEASE" in visit.download("internal-report.html", tmp_path).read_text()
    assert "--method evolve" in page.locator("pre").first.inner_text()
    for place in (visit.origin, f"{log}/account", f"{visit.origin}/stored", f"{log}/nothing"):
        page.goto(place)
        visit.look()
    visit.errors.clear()  # the browser notes the status 404, as it should
    if not util.find_spec(AXE):
        pytest.skip("axe-playwright-python is not installed: all was walked, but axe did not look at it")


@pytest.mark.nightly
def test_the_button_back_spends_no_more_than_was_asked_for(visit: Visit, patients: Path) -> None:
    """Ten times the budget was spent once, because the form came back with what it begins with."""
    page = visit.page
    visit.bring(patients)
    page.get_by_role("button", name="Yes: see who is exposed").click()
    page.get_by_role("link", name="Choose how to release it").first.click()
    page.get_by_label("All of these may be known").check()
    page.get_by_label("Budget ε", exact=True).fill("0.1")
    page.get_by_label("Maximum cases per person").fill("4")
    assert "2.5 percentage points" in page.locator("[data-points]").inner_text()
    page.get_by_text("Choose another method").click()
    page.get_by_role("button", name="Take this one: laplace", exact=True).click()
    page.locator("#method", has_text="(laplace)").wait_for()
    assert page.get_by_label("Budget ε", exact=True).input_value() == "0.1"
    assert page.get_by_label("Maximum cases per person").input_value() == "4"
    page.get_by_text("Choose another method").click()
    page.get_by_role("button", name="Take this one: evolve", exact=True).click()
    page.locator("#method", has_text="(evolve)").wait_for()
    page.get_by_label("Maximum cases per person").fill("")
    visit.release(compared=False)
    page.go_back()
    page.get_by_role("heading", name="Choose how to release it").wait_for()
    assert page.get_by_label("Budget ε", exact=True).input_value() == "0.1"
    page.get_by_role("button", name="Make the release").click()
    page.get_by_role("heading", name=re.compile("You made this same request")).wait_for()
    visit.errors.clear()  # the browser notes the status 409, as it should
    page.get_by_role("link", name="Account: budget and releases").click()
    page.get_by_text("Release 1: evolve").wait_for()
    assert page.get_by_text("Release 2").count() == 0
    page.get_by_label("Budget of all releases together, ε").fill("0.15")
    page.get_by_role("button", name="Set it").click()
    page.get_by_role("heading", name="0 of ε = 0.15 is left").wait_for()  # with a seed nothing bounds what was told
    assert page.locator("meter.budget").is_visible()
    page.goto(f"{page.url.split('/account')[0]}/release")
    sync_api.expect(page.locator("#plan").get_by_text("veilog would refuse it.")).to_be_visible(timeout=PATIENCE)
    page.locator("#plan").get_by_role("link", name="Change the budget").click()
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
    assert page.get_by_label("Case", exact=True).input_value() == "case"
    assert page.get_by_label("Activity", exact=True).input_value() == "activity"
    visit.look()
    page.get_by_label("Time", exact=True).select_option("when")
    page.get_by_label("Meaning of 5/6/2024").select_option("dd/mm/yyyy")
    page.get_by_role("button", name="Read it again like this").click()
    page.get_by_text("20 cases with 80 events of 3 activities, from 1 February 2024 to 9 February 2024").wait_for(
        timeout=PATIENCE
    )
    page.get_by_label("Activity", exact=True).select_option("what")
    page.get_by_role("button", name="Read it again like this").click()
    page.get_by_text("20 cases with 80 events of 4 activities").wait_for(timeout=PATIENCE)
    page.get_by_label("Person", exact=True).select_option(label="Patienten-ID: 10 values, at most 2 cases each")
    page.get_by_label("activity", exact=True).select_option("release")
    page.get_by_role("button", name="Yes: see who is exposed").click()
    page.get_by_role("link", name="Choose how to release it").first.click()
    assert page.get_by_label("The guarantee protects").input_value() == "Patienten-ID"
    page.get_by_label("All of these may be known").check()
    plan, attribute = page.locator("#plan"), page.get_by_label("activity", exact=True)
    assert attribute.is_checked()
    sync_api.expect(plan).to_contain_text("The values of 'activity' have to be declared", timeout=PATIENCE)
    page.locator("textarea[name=d_activity]").fill("nurse 0\nnurse 1\nnurse 2")
    sync_api.expect(plan.get_by_text("A setting is missing.")).to_be_hidden(timeout=PATIENCE)
    sync_api.expect(plan.get_by_role("row", name="Values of attributes")).to_be_visible()
    sync_api.expect(plan).not_to_have_class(re.compile("htmx-request"))
    page.goto(visit.origin)
    assert page.get_by_role("link", name="ward.csv").is_visible()


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
    page.get_by_role("button", name="Make the release").click()
    page.get_by_role("heading", name="This cannot be done as it is").wait_for()
    assert page.get_by_label("Budget ε", exact=True).input_value() == "much"
    wrong = page.locator("[aria-invalid=true]")
    assert wrong.get_attribute("id") == "epsilon" and "problem" in str(wrong.get_attribute("aria-describedby"))
    sync_api.expect(page.locator("#problem")).to_be_focused()
    visit.look()
    visit.errors.clear()  # the browser notes the status 400, as it should

    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 0.5)  # what takes a while is begun before it is tried
    page.goto(f"{log}/release?method=travag&epsilon=2&labels=log")
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
    state = home.locator("li", has_text="travag").locator(".state")
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
    assert not page.get_by_label("Find a variant by an activity").is_visible()
    page.get_by_role("link", name="Choose how to release it").first.click()
    assert not page.get_by_role("slider").is_visible()
    page.get_by_label("Cases, about").fill("40")
    page.get_by_label("Events of a case").fill("3")
    page.get_by_role("button", name="Preview", exact=True).click()
    for _ in range(PATIENCE // 500):
        if page.locator("tr[data-method=laplace] td.tried").count():
            break
        page.wait_for_timeout(300)
        page.get_by_role("link", name="Look how far it is").click()
    page.get_by_role("button", name="Stop the preview").click()
    assert page.locator("tr[data-method=laplace] td.tried").count()
    page.get_by_label("Budget ε", exact=True).fill("0,5")
    page.get_by_role("button", name="Make the release").click()
    assert page.get_by_role("alert").get_by_text("has to know which activities are public").is_visible()
    visit.errors.clear()  # the browser notes the status 400, as it should
    page.get_by_label("All of these may be known").check()
    page.get_by_role("button", name="Preview the queries").click()
    assert page.get_by_text("It would query").is_visible()
    assert page.get_by_label("Budget ε", exact=True).input_value() == "0,5"
    visit.release(compared=False)
    stop = page.get_by_role("button", name="Stop comparing")
    if stop.count():  # it may have been quick, and without a script the page stays as it was
        stop.click()
    page.get_by_text("Delete this result").wait_for(timeout=PATIENCE)
    assert "evolve" in json.dumps(json.loads(visit.download("certificate.json", tmp_path).read_text()))
    assert "--epsilon 0.5" in page.locator("pre").first.inner_text()
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
    page.goto(log + "/release?method=travas&epsilon=3&delta=0.001")
    visit.release()
    result = page.url
    for path in (
        visit.origin,
        log,
        f"{log}/exposure",
        f"{log}/release",
        f"{log}/release?method=amun&p_mode=<b>",
        f"{log}/account",
        f"{visit.origin}/stored",
        result,
    ):
        page.goto(path)
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.nightly
def test_methods_and_budgets_are_tried_before_anything_is_paid(visit: Visit, patients: Path) -> None:
    page = visit.page
    visit.bring(patients)
    log = page.url
    page.goto(log + "/release?method=laplace&labels=log&longest=log")
    keeps = page.locator("[data-keeps]")
    assert not keeps.is_visible()
    page.get_by_role("button", name="Preview", exact=True).click()
    page.get_by_role("heading", name="This cannot be done as it is").wait_for()
    visit.errors.clear()  # the browser notes the status 400, as it should
    for label, value in (("Cases, about", "60"), ("Events of a case", "4"), ("Different activities", "4")):
        page.get_by_label(label).fill(value)
    page.get_by_role("button", name="Preview", exact=True).click()
    page.wait_for_url("**/release#try")
    page.locator("tr[data-method=laplace] td.tried").nth(3).wait_for(timeout=PATIENCE)
    page.get_by_role("button", name="Stop the preview").click()  # the others take longer, and what there is stays
    page.locator("tr[data-method=laplace] td.tried").nth(3).wait_for(timeout=PATIENCE)
    assert page.locator("tr[data-method]").count() == 3
    assert page.get_by_label("Cases, about").input_value() == "60"
    sync_api.expect(keeps).to_contain_text("Keeps about")
    number = page.get_by_label("Budget ε", exact=True)
    number.fill("2")
    at_two = keeps.inner_text()
    assert page.locator("th.at").inner_text() == "3"
    number.fill("0.2")
    assert keeps.inner_text() != at_two
    assert page.locator("th.at").inner_text() in ("0.1", "0.3")
    number.fill("7")
    assert not keeps.is_visible()
    assert page.get_by_role("slider", name="Budget epsilon").get_attribute("data-tone") == "bad"
    page.get_by_role("button", name="Take laplace at epsilon 3").click()
    page.wait_for_url("**/release?to=laplace")
    assert number.input_value() == "3"
    page.goto(f"{log}/account")
    assert page.get_by_text("Nothing was spent yet").is_visible()


@pytest.mark.nightly
@pytest.mark.false_alarm(1e-9, "noise of 12 counts at scale 5 takes 300 cases below 75: 1e-10 (Chernoff)")
def test_the_page_of_a_release_says_what_holds_when_it_is_opened_again(
    chromium: sync_api.Browser, patients: Path, tmp_path: Path
) -> None:
    """The only release of these data is that until there is another one, on a ledger that others share, too."""
    with served(tmp_path / "data", workers=1, ledger=tmp_path / "all.ledger") as shared:
        for visit in visiting(shared, chromium):
            page = visit.page
            visit.bring(patients)
            form = page.url + "/release?method=laplace&p_depth=2&labels=log&longest=log&epsilon="
            page.goto(form + "1")
            visit.release()
            first = page.url
            only = page.locator('ul.checks li[data-check="other-releases"]')
            assert "checked" in (only.get_attribute("class") or "")
            assert page.locator("section.verdict li.to-confirm").count() >= 3
            page.goto(form + "2")
            visit.click("button", "Make the release")
            page.get_by_label("Make the release nevertheless").check()
            visit.errors.clear()  # the browser notes the status 409, as it should
            visit.release(compared=False)
            page.goto(first)
            assert "against" in (only.get_attribute("class") or "") and "ε = 3" in only.inner_text()
            assert page.locator("section.verdict.warn li.against").count() == 1
            page.goto(form.partition("/release")[0] + "/account")
            assert page.get_by_text("All users of this server share this budget").is_visible()
            visit.look()

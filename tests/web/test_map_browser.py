"""Maps in a browser open readable, keep the main ways, and show two logs in one."""

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources, util
from pathlib import Path

import numpy as np
import pytest
from web_owner import send
from web_serving import served, upload

import veilog
from veilog import Variants
from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital
from veilog.report.flow_map import FlowSteps, arranged, draw_map, steps_of
from veilog.web.pages import render
from veilog.web.pages.assets import FOLDERS

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
AXE = "axe_playwright_python"
FOUND = """async () => (await axe.run({resultTypes: ["violations"]})).violations.map(
  (found) => [found.id, found.impact, ...found.nodes.slice(0, 3).map((node) => node.html.slice(0, 300))])"""
PAGE = """{% extends "base.html" %}{% from "map.html" import flow %}{% block title %}map{% endblock %}
{% block main %}<h1>Map</h1>{{ flow(map, "both", "A map", true) }}{% endblock %}"""
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LACKING = """(log) => {
  const all = [...document.querySelectorAll('.step')].filter((step) => Number(step.dataset[log]));
  const most = (steps) => Math.max(0, ...steps.map((step) => Number(step.dataset[log])));
  const shown = (step) => getComputedStyle(step).display !== 'none';
  const boxes = [...document.querySelectorAll('.box:not(.off, .aside)')].filter((box) => Number(box.dataset[log]));
  return boxes.map((box) => box.dataset.activity).filter((name) => ['from', 'to'].some((end) => {
    const own = all.filter((step) => step.dataset[end] === name);
    return most(own.filter(shown)) < most(own); }));
}"""
"""Activities on a map that lack their most frequent way in or out."""
COVERING = """() => {
  const rooms = (parts) => [...document.querySelectorAll(parts)].map((part) => [part, part.getBoundingClientRect()]);
  const labels = rooms('.map .label').filter(([, room]) => room.width);
  const boxes = rooms('.map :is(.box, .end) rect:first-child');
  const over = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left) - 1)
    * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) - 4);
  return labels.flatMap(([label, room], i) => [...labels.slice(i + 1), ...boxes].filter(
    ([, other]) => over(room, other) > 0).map(() => label.textContent));
}"""
"""Numbers that lie on another one or on a box."""
CLIPPED = """() => [...document.querySelectorAll(':is(.outlook, .chart svg) text')].filter((text) => {
  const [own, around] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
  return own.width && (own.left < around.left - 1 || own.right > around.right + 1
    || own.top < around.top - 1 || own.bottom > around.bottom + 1);
}).map((text) => text.textContent)"""
"""Labels of charts that do not lie wholly in their chart."""
PLACES = """() => [...document.querySelectorAll('.map .box')].filter((box) => box.getBoundingClientRect().width)
  .map((box) => [box.dataset.activity, ...['x', 'y'].map((axis) => Math.round(box.getBoundingClientRect()[axis]))])"""
SEEN = """label => [...label.querySelectorAll('tspan:not(:has(tspan))')].filter((part) => part.getClientRects().length)
  .map((part) => part.textContent.trim())"""
DASHES = "(of) => [...document.querySelectorAll(`use.${of}`)].map((use) => getComputedStyle(use).strokeDasharray)"

pytestmark = [pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no Chromium"), pytest.mark.slow]


@pytest.fixture(scope="module")
def chromium() -> Iterator[sync_api.Browser]:
    sync_api.expect.set_options(timeout=90_000)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


Opened = Callable[..., sync_api.Page]


@pytest.fixture
def opened(chromium: sync_api.Browser) -> Iterator[Opened]:
    """Yield a function that opens a page with the map of two logs, without a server."""
    contexts = []

    def open_page(first: FlowSteps, second: FlowSteps, **options: object) -> sync_api.Page:
        both = draw_map(first, arranged([first, second]), second)
        html = render._environment().from_string(PAGE).render(map=both, settings=None, again=False, version="")

        def answer(route: sync_api.Route) -> None:
            name = route.request.url.partition("?")[0].rpartition("/")[2] or "none"
            path = next((path for folder in FOLDERS if (path := folder / name).is_file()), None)
            if path is not None:
                route.fulfill(body=path.read_bytes(), content_type=KINDS[path.suffix])
            else:
                route.fulfill(body=html, content_type="text/html")

        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.route("**/*", answer)
        page = context.new_page()
        page.goto("http://veilog.invalid/")
        if options.get("java_script_enabled", True):
            page.locator(".map-bar").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()


def made_up(activities: int) -> tuple[FlowSteps, FlowSteps]:
    """Return a process with choices and repetitions, and a noisy copy of it."""
    rng = np.random.default_rng(activities)
    names = [f"step {i} of the process" if i % 3 else f"step {i}" for i in range(activities)]
    follow = [(rng.integers(0, activities, 4), rng.dirichlet([3, 1, 0.5, 0.2])) for _ in names]
    cases = []
    for _ in range(1_000):
        at, trace = int(rng.geometric(0.5)) - 1, []
        for _ in range(int(rng.integers(4, 20))):
            trace.append(names[at])
            drawn_one = rng.random()
            if drawn_one < 0.6:
                at = (at + 1) % activities
            elif drawn_one > 0.7:
                at = int(rng.choice(follow[at][0], p=follow[at][1]))
        cases.append(trace)
    log = Variants.from_sequences(cases)
    noisy = {trace: number + int(rng.integers(-2, 3)) for trace, number in log.to_dict().items()}
    return steps_of(log), steps_of(Variants.from_dict({trace: max(1, number) for trace, number in noisy.items()}))


def look(page: sync_api.Page) -> None:
    """Assert that nothing is wider than the window, and that axe finds nothing."""
    axe = util.find_spec(AXE) is not None
    page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true })")
    if axe:
        page.evaluate((resources.files(AXE) / "axe.min.js").read_text())
    for width in (390, 1280):
        for scheme in ("dark", "light"):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert not axe or page.evaluate(FOUND) == [], (width, scheme)


@pytest.mark.parametrize("activities", [16, 51, 624])
def test_a_map_opens_readable_with_the_main_ways_of_each_log(opened: Opened, activities: int) -> None:
    page = opened(*made_up(activities))
    width = float((page.locator(".map svg").get_attribute("viewBox") or "").split()[2])
    scale = page.locator(".map svg").evaluate("svg => svg.getBoundingClientRect().width") / width
    assert 12 * scale >= 9 - 0.05, "letters of 12 are at least 9 pixels high"
    assert page.evaluate(
        "() => { const m = document.querySelector('.map'); return m.scrollWidth <= m.clientWidth + 1 }"
    )
    for view, log in (("before", "count"), ("after", "after")):
        page.locator(f"input[value={view}]").check()
        assert page.evaluate(LACKING, log) == []
        assert page.evaluate(COVERING) == []
    for slider in page.get_by_role("slider").all():
        slider.fill("1")
        assert page.evaluate(LACKING, "count") == page.evaluate(LACKING, "after") == []
    look(page)


def test_the_way_to_intensive_care_is_seen(opened: Opened, logs: Path) -> None:
    """The way of 46 cases from IV Antibiotics to Admission IC of Sepsis is visible."""
    log = veilog.read(logs / "sepsis.xes.gz")
    published = veilog.release(log, method="evolve", epsilon=1.0, activities=log.variants.labels, seed=1)
    page = opened(steps_of(log.variants, log), steps_of(published.variants))
    page.locator("input[value=before]").check()
    assert page.evaluate(LACKING, "count") == []
    step = page.locator('.step[data-from="IV Antibiotics"][data-to="Admission IC"]')
    assert step.get_attribute("data-count") == "46" and step.locator("use.before").is_visible()
    look(page)


@pytest.mark.parametrize("scripts", [True, False])
def test_original_release_and_difference_are_one_frame(opened: Opened, scripts: bool) -> None:
    """Original, release and difference are one frame, with a script and without."""
    first = steps_of(Variants.from_dict({("a", "b", "c"): 10, ("a", "c"): 5, ("a", "x"): 4}))
    second = steps_of(Variants.from_dict({("a", "b", "c"): 4, ("a", "c"): 9, ("a", "y"): 3}))
    page = opened(first, second, java_script_enabled=scripts)
    views = {name: page.locator(f"input[value={name}]") for name in ("before", "after", "difference")}
    assert views["after"].is_checked()
    step = page.locator(".step").filter(has_text="a → c")
    label = page.locator(f".label[data-step='{step.get_attribute('data-step')}']")
    places = {}
    for view, number in (("before", "5"), ("after", "9"), ("difference", "+4")):
        views[view].focus()
        page.keyboard.press("Space")
        assert views[view].is_checked()
        assert label.evaluate(SEEN) == [number]
        assert [step.locator(f"use.{name}").is_visible() for name in views] == [name == view for name in views]
        assert page.locator(".key.difference").is_visible() == (view == "difference")
        places[view] = {name: place for name, *place in page.evaluate(PLACES)}
    assert places["before"].keys() == {"a", "b", "c", "x"} and places["after"].keys() == {"a", "b", "c", "y"}
    top = {view: places[view]["a"][1] for view in places}
    for view in ("before", "after"):
        moved = {name: (x, y - top[view]) for name, (x, y) in places[view].items()}
        assert (
            moved.items() <= {name: (x, y - top["difference"]) for name, (x, y) in places["difference"].items()}.items()
        )
    assert set(page.evaluate(DASHES, "gained")) == {"none"} and "none" not in page.evaluate(DASHES, "lost")
    widths = {use.get_attribute("stroke-width") for use in step.locator("use").all()}
    assert widths == {f"{1 + 6 * n / 19:.1f}" for n in (5, 9, 4)}, "widths are linear in the count"


def test_the_table_has_the_steps_of_the_picture(opened: Opened) -> None:
    page = opened(*made_up(16))
    page.get_by_text("The steps of the map as a table").click()
    rows = page.locator(".list tbody tr")
    found = [tuple(cell.strip() for cell in row.replace(",", "").split("\t")) for row in rows.all_inner_texts()]
    steps = page.locator(".step").evaluate_all("all => all.map(({dataset: d}) => [d.from, d.to, d.count, d.after])")
    named = {">": "start", "<": "end"}
    expected = sorted((named.get(a, a), named.get(b, b), n, m) for a, b, n, m in steps)
    assert sorted(row[:4] for row in found) == expected
    assert [int(row[2]) for row in found] == sorted((int(row[2]) for row in found), reverse=True)


@dataclass
class Walk:
    """Browser with access, and a log that was released three times."""

    context: sync_api.BrowserContext
    origin: str
    log: str
    jobs: list[str]

    def goes_to(self, place: str) -> sync_api.Page:
        page = self.context.new_page()
        page.set_default_timeout(90_000)
        page.goto(self.origin + place)
        return page


@pytest.fixture(scope="module")
def walk(chromium: sync_api.Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    folder = tmp_path_factory.mktemp("compared")
    path = folder / "log.xes"
    veilog.write(hospital(150, seed=2), path)
    with (
        served(folder / "data", workers=1) as server,
        chromium.new_context(viewport={"width": 1280, "height": 900}) as context,
        server.browser() as client,
    ):
        before = Ledger.open(server.settings.ledger, create=True)
        before.reserve(hospital(20, seed=9), "laplace", epsilon=1, unit="case")  # an account of another log
        log = upload(client, path.read_bytes(), "log.xes").headers["location"]
        context.add_cookies([{"name": c.name, "value": c.value, "url": server.origin} for c in client.cookies.jar])
        found = Walk(context, server.origin, log, [])
        found.goes_to(log).get_by_role("heading", name="Findings while reading").wait_for()
        for epsilon in ("0.1", "1", "3"):
            asked = {"method": "evolve", "epsilon": epsilon, "labels": "log", "times": "0.3", "lower": "yes"}
            made = send(client, f"{log}/check", f"{log}/jobs", **asked)
            assert made.status_code == 303, made.text
            page = found.goes_to(made.headers["location"])
            page.locator("#uses").wait_for()
            page.locator(".doing").wait_for(state="detached")
            found.jobs.append(made.headers["location"])
        yield found


def test_any_two_releases_are_compared_by_use_case_map_and_cost(walk: Walk) -> None:
    """Any two releases are compared by use case, map and epsilon."""
    page = walk.goes_to(f"{walk.log}/compare")
    first, second = page.get_by_label("First release"), page.get_by_label("Second release")
    assert [pick.locator("option:checked").inner_text()[:9] for pick in (first, second)] == ["Release 2", "Release 3"]
    first.select_option(index=2)
    page.get_by_role("button", name="Compare").click()
    assert page.get_by_label("First release").locator("option:checked").inner_text().startswith("Release 1: evolve")
    assert page.locator("[data-together] b").inner_text() == "ε = 3.1"
    better = page.locator("[data-better]").evaluate_all("all => all.map((cell) => cell.dataset.better)")
    assert better.count("1") > len(better) / 2 > 1, "thirty times the budget keeps more"
    assert "Purpose" not in page.locator("main").inner_text()
    assert page.get_by_role("rowheader", name="Discovering a model").count() > 0
    page.get_by_label("Difference").check()
    assert page.locator(".map use.difference:visible").count() > 0
    look(page)


def test_labels_of_charts_lie_in_their_charts(walk: Walk) -> None:
    """Labels of charts lie in their charts."""
    for place, chart in ((f"{walk.log}/release", ".outlook"), (f"{walk.jobs[-1]}/explore", ".chart svg")):
        page = walk.goes_to(place)
        page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true })")
        page.locator(chart).first.wait_for()
        assert page.evaluate(CLIPPED) == []


def test_releases_are_counted_by_log(walk: Walk) -> None:
    """Releases are counted by log, from 1."""
    page = walk.goes_to(f"{walk.log}/account")
    found = page.locator("main li.card > p > b").all_inner_texts()
    assert [name.partition(":")[0] for name in found] == ["Release 3", "Release 2", "Release 1"]
    page.get_by_role("link", name="Compare release 1 with another").click()
    assert page.get_by_label("First release").locator("option:checked").inner_text().startswith("Release 1: evolve")


def test_an_activity_has_one_colour_on_all_pages(walk: Walk) -> None:
    colours = "all => Object.fromEntries(all.map((item) => [item.textContent, /c\\d+/.exec(item.className)[0]]))"
    pages = [walk.goes_to(f"{place}/explore") for place in (walk.log, *walk.jobs)]
    found = [page.locator(".legend .chev").evaluate_all(colours) for page in pages]
    assert len(found[0]) > 5
    for other in found[1:]:
        assert {name: other[name] for name in found[0]} == found[0]


def test_a_file_that_no_choice_of_columns_mends_is_refused_with_a_way_out(walk: Walk, tmp_path: Path) -> None:
    """A file that no choice of columns mends is refused with a way out."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.csv", b"case,activity,time\nc1," + b"a" * (40 << 20) + b",2024-01-01\n")
    page = walk.goes_to("/")
    page.get_by_label("Event log").set_input_files(tmp_path / "bomb.zip")
    page.get_by_text("A row is longer than 4 MB.").wait_for()
    assert page.locator("#columns").count() == 0 and page.locator("select[name=case]").count() == 0
    assert page.locator("main a[href='/']").count() + page.locator("details.delete").count() > 0


def test_settings_are_named_in_german(walk: Walk) -> None:
    page = walk.goes_to(f"{walk.log}/expert?method=evolve")
    page.get_by_role("button", name="Deutsch").click()
    page.wait_for_function("document.documentElement.lang === 'de'")
    words = {word.strip() for word in page.locator("label[for^='p_']").all_text_contents()}
    assert {"Runden", "Längster Fall", "Nur echte Varianten"} <= words
    choices = page.locator("#p_for option").evaluate_all("all => all.map((one) => [one.value, one.textContent])")
    assert ["similarity", "Ähnlichkeit"] in choices
    page.get_by_role("button", name="English").click()
    page.wait_for_function("document.documentElement.lang === 'en'")

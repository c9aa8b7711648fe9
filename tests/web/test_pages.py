"""Pages as text: their content, what they never contain, and their weight."""

import html
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_logs import entry, job, read, record, released

from veilog.ledger.accounts import Account
from veilog.logs import files
from veilog.logs.synthetic.hospital import draw_starts, hospital
from veilog.logs.synthetic.twins import Sizes
from veilog.methods import METHODS
from veilog.releasing.preview import Expected, Interval
from veilog.report.dossier import Signature
from veilog.report.page import SHARED, static
from veilog.web.jobs.records import ServerSettings
from veilog.web.jobs.results import Forecast, to_text
from veilog.web.pages import render as pages
from veilog.web.pages.assets import FOLDER as STATIC
from veilog.web.pages.outlook import Outlook
from veilog.web.work import preview_form
from veilog.web.work.accounts import AccountSeen
from veilog.web.work.preview import BUDGETS, FormPreview, Refused
from veilog.web.work.request import complete_form, delta_for, offered_parameters, offers

HOSTILE = (
    "<script>alert(1)</script>",
    "../../../etc/passwd",
    "W" * 10_000,
    "\u202ereversed\u202c",
    "a\x07\x1bb",
    '"><img src=x onerror=alert(1)>',
    "'{{ 7 * 7 }}'",
    "javascript:alert(1)",
)
ONCE = "once-for-tests"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> ServerSettings:
    folder = tmp_path_factory.mktemp("pages")
    return ServerSettings(folder=folder, ledger=folder / "all.ledger", token="t", seed=None)


@pytest.fixture(scope="module")
def ordinary(settings: ServerSettings) -> dict[str, str]:
    """Return every page about an ordinary log."""
    path = settings.folder / "ward.xes"
    files.write(hospital(150, seed=3), path)
    return every_page(path, "ward.xes", {"method": "evolve", "epsilon": "1", "times": "0.3", "labels": "log"}, settings)


@pytest.fixture(scope="module")
def hostile(settings: ServerSettings) -> dict[str, str]:
    """Return every page about a log in which every name is an attack."""
    lines = ["case,activity,timestamp," + "X" * 5_000]
    for case in range(60):
        for i in range(6):
            name = f"{HOSTILE[(case * i) % len(HOSTILE)]}{i}".replace('"', '""')
            lines.append(f'"{HOSTILE[0]}{case}","{name}",2024-01-{i + 1:02d}T00:00:00Z,"{HOSTILE[2]}"')
    path = settings.folder / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return every_page(path, HOSTILE[0] + HOSTILE[5], {"method": "travas", "epsilon": "3", "delta": "0.01"}, settings)


def every_page(path: Path, name: str, request: dict[str, str], settings: ServerSettings) -> dict[str, str]:
    log = record(read(path), name=name)
    done = job("release", released(path, request, settings, settings.folder / f"out-{request['method']}"), request)
    going = replace(done, state="running", kept=None, text=name, fraction=0.4, left=12.0, finished=None)
    waiting = replace(going, state="queued", ahead=3)
    failed = replace(going, state="failed", problem=f"It failed: {name}")
    times = {"times": 0.3, "attributes": [name, name]}
    usual = Account(1, name, "case", None, (entry(1, name, counted=name, parameters=times), entry(2)))
    found = {
        "home": pages.home([log], [done, going, waiting, failed], ONCE, {log.id: usual}),
        "log": pages.log_page(log, ONCE),
        "reading": pages.log_page(replace(log, reading=replace(going, kind="read")), ONCE),
        "unreadable": pages.log_page(replace(log, reading=replace(failed, kind="read")), ONCE),
        "exposure": pages.exposure(log),
        "too early": pages.exposure(replace(log, reading=replace(going, kind="read"))),
        "running": pages.job_page(going, log, ONCE),
        "waiting": pages.job_page(waiting, log, ONCE),
        "failed": pages.job_page(failed, log, ONCE),
        "result": pages.job_page(done, log, ONCE),
        "problem": pages.problem(404, name, name),
        "explore": pages.explore(log),
        "explore release": pages.explore(log, done),
    }
    mistake = Refused(name, "epsilon")
    for expert in (False, True):
        found[f"refused {expert}"] = pages.release_form(
            log, {**request, "epsilon": name}, ONCE, refused=mistake, expert=expert
        )
    for method in (name for name, method in METHODS.items() if offers(method)):
        asked = {"method": method, "epsilon": "1", "p_unknown": name, "attributes": name, "unit": name}
        found[f"release {method}"] = pages.release_form(log, asked, ONCE)
        found[f"expert {method}"] = pages.release_form(log, asked, ONCE, expert=True)
    full = replace(usual, budget=(Fraction(2), Fraction(0)), uncounted=usual.entries)
    several = replace(usual, entries=(*usual.entries, entry(3, unit=name, epsilon=None)))
    for words, seen in (
        ("account", AccountSeen(usual)),
        ("full account", AccountSeen(full, others=((2, name),), lost=2)),
        ("several units", AccountSeen(several)),
        ("no account", AccountSeen()),
    ):
        found[words] = pages.account(log, seen, {1: done}, {1: (name, name)}, ONCE)
    both = {1: done, 2: done}
    found["two releases"] = pages.comparison(log, AccountSeen(usual), both, [2, 1])
    found["one release"] = pages.comparison(log, AccountSeen(usual), {1: done}, [1, 2])
    found["stored"] = pages.stored_logs_page([log, replace(log, id="c" * 32)], "s", ONCE, ONCE)
    found["stored?"] = pages.stored_logs_page(None, "s", ONCE, "")
    planned = preview_form(log, request, settings)
    assert isinstance(planned, FormPreview)
    outlook = Outlook(planned, job("forecast", tried(name)), same=True)
    found["planned"] = pages.check(log, request, ONCE, outlook=outlook)
    found["once more"] = pages.check(log, request, ONCE, outlook=outlook, same=done)
    lower = replace(planned, account=replace(planned.account, account=full, falls="strong", beside_budget=True))
    lowered = replace(outlook, plan=lower)
    found["a lower level"] = pages.check(log, request, ONCE, outlook=lowered, falls=True)
    trying = replace(going, kind="forecast", kept=to_text(tried(name)))
    for words, seen_so_far in {
        "tried": outlook,
        "trying": replace(outlook, job=trying),
        "nothing tried": replace(outlook, job=replace(failed, kind="forecast")),
        "a mistake": Outlook(mistake),
    }.items():
        found[words] = pages.release_form(log, request, ONCE, outlook=seen_so_far)
    signed = Signature(name, "2026-01-02", ("unit", "recipient"))
    found["signed"] = pages.job_page(done, log, ONCE, signed=signed)
    shown = replace(going, kept=done.kept)
    found["shown"] = pages.job_page(shown, log, ONCE)
    found["what it cost"] = pages.job_page(failed, log, ONCE, price=entry(state="reserved"))
    return found


def tried(name: str) -> Forecast:
    """Return a forecast at all budgets, with texts as long as they may be."""
    found = Expected(Interval(0.7, 0.6, 0.8), Sizes(9, 3.0, 4), 4, durations=Interval(0.1, 0.0, 0.3))
    return Forecast(tuple((epsilon, found) for epsilon in BUDGETS), problem=name)


class Reader(HTMLParser):
    """Page as a browser sees it, as far as these tests need."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))


def ids(reader: Reader) -> list[str]:
    return [found["id"] for _, found in reader.tags if "id" in found]


def each(ordinary: dict[str, str], hostile: dict[str, str]) -> list[tuple[str, str]]:
    return [*ordinary.items(), *((f"hostile {name}", text) for name, text in hostile.items())]


@pytest.mark.slow
def test_nothing_on_a_page_needs_more_than_the_servers_own_files(
    ordinary: dict[str, str], hostile: dict[str, str]
) -> None:
    for name, text in each(ordinary, hostile):
        for tag, found in Reader(text).tags:
            assert "style" not in found, name
            assert tag != "style", name
            assert not [attribute for attribute in found if attribute.startswith("on")], name
            assert tag != "script" or found["src"].startswith("/static/"), name
            for attribute in ("href", "src", "action", "formaction"):
                assert re.match(r"/(?!/)|#|$", found.get(attribute, "")), (name, attribute, found[attribute])
            assert tag not in ("img", "iframe", "object", "embed", "base"), name


@pytest.mark.slow
def test_names_are_text_and_never_marks(hostile: dict[str, str]) -> None:
    for name, text in hostile.items():
        assert "alert(1)</script>" not in text, name
        assert "49" not in re.findall(r"'(\d+)'", text), name
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]", text), name
        assert "W" * 400 not in text, name


@pytest.mark.slow
def test_every_page_is_light(ordinary: dict[str, str], hostile: dict[str, str]) -> None:
    assets = sum(path.stat().st_size for path in STATIC.iterdir() if path.suffix in (".css", ".js", ".svg"))
    for name, text in each(ordinary, hostile):
        assert len(text.encode()) + assets < 300_000, name


TERMS = {
    "event log": r"event logs?",
    "case": r"cases?",
    "variant": r"variants?",
    "directly-follows": r"directly[ -]follows",
    "epsilon": r"ε|epsilon",
    "delta": r"δ|delta",
    "percentage points": r"percentage points",
    "laplace": r"discrete laplace|laplace noise|geometric|gaussian|scale",
    "certificate": r"certificates?",
    "prefix": r"prefix(es)?",
    "prototype": r"prototypes?",
    "threshold": r"threshold",
    "quantile": r"quantiles?",
    "median": r"median",
    "similarity": r"similarity",
    "fitness": r"fitness",
    "critic": r"critic",
    "autoencoder": r"autoencoder",
    "gradients": r"gradients",
    "rényi": r"r[eé]nyi",
}
"""Words that a decision maker in a hospital may not know, with the pages' words."""


@pytest.mark.slow
def test_no_term_of_the_field_is_left_unexplained(ordinary: dict[str, str]) -> None:
    used = set()
    for name, text in ordinary.items():
        page, _, foot = text.partition('<details class="card glossary">')
        words = re.sub(r"<svg.*?</svg>|<[^>]+>", " ", page, flags=re.DOTALL)
        explained = " ".join(re.findall(r"<dt>(.*?)</dt><dd>[^<]{20,}</dd>", foot)).lower()
        for term, said in TERMS.items():
            if re.search(rf"\b({said})\b", html.unescape(words), re.IGNORECASE):
                used.add(term)
                assert term in explained, (name, term)
    assert ", ".join(sorted(set(TERMS) - used)) == "", "and none is listed that no page says"


@pytest.mark.slow
def test_whoever_cannot_see_or_has_no_mouse_finds_their_way(ordinary: dict[str, str]) -> None:
    for name, text in ordinary.items():
        reader = Reader(text)
        named = ids(reader)
        assert len(named) == len(set(named)), name
        assert [tag for tag, _ in reader.tags].count("h1") == 1, name
        assert ("a", {"class": "skip", "href": "#main"}) in reader.tags, name
        labels = {found.get("for") for tag, found in reader.tags if tag == "label"}
        for tag, found in reader.tags:
            if tag in ("input", "select", "textarea") and found.get("type") != "hidden":
                assert found.get("id") in labels or "aria-label" in found, (name, found)
            for words in ("aria-describedby", "aria-labelledby"):
                assert set(found.get(words, "").split()) <= set(named), (name, found)
            assert tag != "th" or "scope" in found, (name, found)
            assert tag != "progress" or found["aria-label"], name
            assert tag != "svg" or "aria-hidden" in found or "aria-label" in found or "aria-labelledby" in found, name


def test_text_stands_out_from_what_is_behind_it_in_light_and_dark() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", (STATIC / "style.css").read_text(), re.DOTALL)[:2]
    for scheme in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", scheme))
        pairs = [(ink, behind) for ink in ("ink", "dim", "accent", "bad") for behind in ("paper", "card")]
        pairs += [("accent-ink", "accent"), ("ink", "accent-soft"), ("warn", "warn-soft"), ("ink", "warn-soft")]
        pairs += [("good", "good-soft"), ("good", "card"), ("bad", "bad-soft"), ("card", "bad"), ("dim", "map")]
        for ink, behind in pairs:
            assert contrast(colours[ink], colours[behind]) >= 4.5, (ink, behind, scheme)
        for mark in ("field", "a", "b", "accent"):
            assert contrast(colours[mark], colours["card"]) >= 3, (mark, scheme)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2."""
    dark, light = sorted(luminance(colour) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.slow
def test_what_reports_and_pages_draw_alike_has_one_style() -> None:
    selectors = [
        {selector.strip() for selector in re.findall(r"([^{}@;]+)\{", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))}
        for text in ((SHARED / "pictures.css").read_text(), static("style.css"), (STATIC / "style.css").read_text())
    ]
    shared, *own = ({s for s in found if re.match(r"\.(map|flow|views|chev|c\d)(?![\w-])", s)} for found in selectors)
    assert len(shared) > 40
    for found in own:
        assert shared & found <= {".map", ".map svg"}, "where one has bounds of its own"


def test_every_form_that_changes_something_is_marked(ordinary: dict[str, str]) -> None:
    for name, text in ordinary.items():
        for form in re.findall(r"<form.*?</form>", text, re.DOTALL):
            if 'method="get"' in form and re.search(r'action="/logs/\w+/compare"', form):  # which changes nothing
                continue
            assert 'method="post"' in form, name
            if 'action="/language"' in form:  # sent twice it does nothing more, and Origin shows that it is ours
                continue
            assert f'name="once" value="{ONCE}"' in form, name


@pytest.mark.slow
def test_a_page_that_waits_looks_again_by_itself(ordinary: dict[str, str]) -> None:
    for name in ("reading", "running", "waiting", "too early", "home"):
        assert '<noscript><meta http-equiv="refresh"' in ordinary[name], name
    for name in ("log", "exposure", "result", "failed"):
        assert "http-equiv" not in ordinary[name], name
    assert 'id="work" data-live' in ordinary["home"], "with JavaScript, too"
    assert "shown" in re.findall(r'data-stage="running (\w+)"', ordinary["shown"])
    assert re.search(r"data-text>[^<]*\b3\b", ordinary["waiting"])
    assert re.search(r"data-left>[^<]*\b12\b", ordinary["running"])


@pytest.mark.slow
def test_every_method_that_the_pages_offer_has_its_expert_options(ordinary: dict[str, str]) -> None:
    for card in filter(offers, METHODS.values()):
        text = ordinary[f"expert {card.name}"]
        assert f'<option value="{card.name}" selected>' in text
        assert f'name="method" value="{card.name}"' in ordinary[f"release {card.name}"]
        for parameter in offered_parameters(card):
            assert f'name="p_{parameter.name}"' in text
        assert 'name="as_published"' not in text, "what is there to be compared is in the command"
    assert {name for name in METHODS if f"expert {name}" not in ordinary} == {"amun", "tlkc", "pretsa"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows",
    [
        ["1,a,2024-01-01"],
        ["1,a,2024-01-01", "2,a,2024-01-01"],
        [f"{i},a{i % 7},2024-01-01" for i in range(30)],
        ["1,a,", "1,b,", "2,a,"],
        [f"{i},{'x' * (i % 2)}a,2024-01-01T00:00:0{j}" for i in range(4) for j in range(9)],
    ],
)
def test_small_and_odd_logs_have_their_pages(tmp_path: Path, settings: ServerSettings, rows: list[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["case,activity,timestamp", *rows]) + "\n")
    log = record(read(path), name="log.csv")
    for text in (
        pages.log_page(log, ONCE),
        pages.exposure(log),
        pages.explore(log),
        pages.release_form(log, {}, ONCE),
    ):
        assert not re.search(r"\bnan\b", text)
        assert [tag for tag, _ in Reader(text).tags].count("h1") == 1


@pytest.mark.slow
def test_a_release_is_ready_before_it_is_compared(ordinary: dict[str, str]) -> None:
    text = ordinary["shown"]
    assert 'id="downloads"' in text and "/all.zip" in text
    assert re.search(r'action="/jobs/\w+/cancel"', text) and 'data-stage="running shown"' in text
    assert not re.search(r'action="/jobs/\w+/delete"', text)
    cost = re.compile('data-price="reserved"><b>[^<]*ε = 1')
    assert cost.search(ordinary["what it cost"]) and not cost.search(ordinary["failed"])


@pytest.mark.slow
def test_two_releases_are_looked_at_side_by_side(ordinary: dict[str, str]) -> None:
    text = ordinary["two releases"]
    rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td>', text)
    assert len(rows) > 8 and all(one == other for _, one, other in rows)
    assert len({title for title, _, _ in rows}) == len(rows), "of activities there is a number and a share"
    assert re.findall(r'<option value="(\d)" selected', text) == ["2", "1"]
    assert set(re.findall(r'data-better="(\w+)"', text)) == {"none"}
    assert re.search(r"data-together><b>ε = 2<", text)
    assert re.findall(r'name="view-pair" value="(\w+)"', text) == ["before", "after", "difference"]
    assert 'data-says="too-few"' in ordinary["one release"] and "data-flow" not in ordinary["one release"]


@pytest.mark.slow
def test_a_release_has_a_small_map_in_its_account(ordinary: dict[str, str]) -> None:
    assert ordinary["account"].count('class="thumb after"') == 1


@pytest.mark.slow
def test_what_is_expected_stands_beside_the_settings_and_on_the_check(ordinary: dict[str, str]) -> None:
    for page in ("tried", "trying"):
        assert '<svg class="outlook"' in ordinary[page] and 'data-right="73.2"' in ordinary[page]
    assert 'data-says="durations"' in ordinary["tried"]
    assert 'data-says="trying"' in ordinary["trying"] and 'data-says="trying"' not in ordinary["tried"]
    assert '<svg class="outlook' not in ordinary["nothing tried"]
    assert 'data-says="similarity-expected"' in ordinary["planned"] and 'data-right="73.2"' in ordinary["planned"]


@pytest.mark.slow
def test_an_account_is_a_bar_with_a_stretch_for_each_release_and_a_ghost_for_the_next(
    ordinary: dict[str, str],
) -> None:
    for page in ("home", "account"):
        bar = ordinary[page].partition('<svg class="account"')[2].partition("</svg>")[0]
        assert re.findall(r'data-release="(\d+)"', bar) == ["1", "2", "0"]
        places = [float(x) for x in re.findall(r'data-release="\d+" x="([\d.]+)"', bar)]
        assert places == [0.0, 24.5, 46.2], "what all up to it let an attacker gain, in points"


@pytest.mark.slow
def test_who_signed_what_is_said_in_place_of_the_boxes(ordinary: dict[str, str]) -> None:
    boxes = re.findall(r'type="checkbox" id="ok_([\w-]+)"', ordinary["result"])
    assert {"unit", "releases-elsewhere", "recipient"} <= set(boxes)
    assert "activities-from-log" not in boxes, "what was stated in the settings is not asked again"
    assert 'type="checkbox"' not in ordinary["signed"] and 'data-signed="unit recipient"' in ordinary["signed"]
    assert ordinary["signed"].count("✓") == 2


@pytest.mark.slow
def test_durations_are_shown_of_both_logs(ordinary: dict[str, str]) -> None:
    text = ordinary["explore release"]
    fit = text[text.index('<table class="fit"><thead>') :].partition("</table>")[0]
    assert fit.count("<tr>") == 3 and fit.count("<td") == 10


@pytest.mark.slow
def test_the_usual_choice_is_made_beforehand(settings: ServerSettings, tmp_path: Path) -> None:
    path = tmp_path / "beforehand.xes"
    files.write(hospital(60, seed=1), path)
    log = record(read(path))
    text = pages.release_form(log, {}, ONCE)
    assert 'name="method" value="evolve"' in text
    assert re.search(r'name="epsilon" value="1"', text)
    assert not re.search(r'name="labels"[^>]* checked', text), "what is public is for the owner to say"
    assert (
        complete_form({"method": "travas"}, 60)["delta"]
        == complete_form({"labels": "privately"}, 60)["delta"]
        == "1e-6"
    )
    assert "delta" not in complete_form({"method": "evolve", "labels": "log"}, 60)


@pytest.mark.slow
@given(st.integers(1, 10**8))
def test_the_delta_offered_is_below_one_over_the_cases(cases: int) -> None:
    assert float(delta_for(cases)) * cases <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "word"), [(9_000, "good"), (90_000, "moderate")])
def test_a_form_says_of_a_delta_what_plan_trial_and_account_say(
    cases: int, word: str, settings: ServerSettings, tmp_path: Path
) -> None:
    """Form, plan, trial and account name the same level for a delta."""
    path = tmp_path / "beforehand.xes"
    files.write(hospital(60, seed=1), path)
    found = read(path)
    assert found.measured is not None
    statistics = replace(found.measured.statistics, cases=cases)
    log = record(replace(found, measured=replace(found.measured, statistics=statistics)))
    asked = {"method": "travas", "epsilon": "1", "delta": "1e-6", "labels": "log"}
    quick, dry = (preview_form(log, asked, settings, dry_run=run) for run in (False, True))
    assert isinstance(quick, FormPreview) and isinstance(dry, FormPreview)
    assert (quick.strength, dry.strength, dry.account.strength) == (word, word, word)
    assert f'data-alone="{word}"' in pages.outlook_part(Outlook(quick), log)


@pytest.mark.slow
def test_the_result_says_what_it_is_worth_first_and_marks_what_is_raw(ordinary: dict[str, str]) -> None:
    text = ordinary["result"]
    order = ['id="verdict"', 'id="checked"', 'id="uses"', 'id="confirm"', 'id="downloads"', 'id="guarantee"']
    assert [text.index(hook) for hook in order] == sorted(text.index(hook) for hook in order)
    after = text.index('id="uses"')
    assert 'class="mine"' in text[after : after + 600]
    assert '<td class="r">10\u202f%</td><td class="r">27.2\u202f%</td>' in text
    assert "73.2 times" in text and "81.7" in text.partition('id="checked"')[0], "the ground stands beside the level"
    reports = ("internal-report.html", "recipient-report.html")
    for name in ("release.xes", "release.csv", "release.parquet", *reports, "certificate.json"):
        assert f"/files/{name}" in text


@pytest.mark.slow
def test_no_first_visitor_waits_for_a_template(monkeypatch: pytest.MonkeyPatch) -> None:
    pages._environment.cache_clear()
    pages.warm()
    monkeypatch.setattr(pages._environment(), "compile", None)
    pages.home([], [], ONCE)
    for name in (*(path.name for path in (STATIC.parent / "templates").iterdir()), "map.html"):
        pages._environment().get_template(name)


def test_test_mode_is_said_on_every_page(settings: ServerSettings) -> None:
    with pages.server_facts(replace(settings, seed=5)):
        assert 'class="banner"' in pages.home([], [], ONCE)
        assert 'class="banner"' in pages.problem(404, "No.", "Go.")
    assert 'class="banner"' not in pages.home([], [], ONCE)


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_words_make_a_page(words: str) -> None:
    text = pages.problem(400, words, words)
    assert [tag for tag, _ in Reader(text).tags].count("h1") == 1
    assert "<script>" not in text


@pytest.mark.slow
def test_what_counts_of_starts_and_ends_can_be_chosen_where_there_are_any(
    settings: ServerSettings, tmp_path: Path
) -> None:
    path = tmp_path / "steps.csv"
    steps = [("start", 0), ("complete", 30)]
    rows = [f"{case},a,{step},2024-01-0{case} 10:{minute:02}" for case in (1, 2) for step, minute in steps]
    path.write_text("\n".join(["case,activity,lifecycle:transition,time", *rows]) + "\n")
    page = pages.log_page(record(read(path)), ONCE)
    lifecycle = page[page.index('id="lifecycle"') :]
    assert '<option value="" selected>' in lifecycle
    chosen = {"lifecycle": "intervals"}
    again = pages.log_page(replace(record(read(path, chosen)), columns=chosen), ONCE)
    assert '<option value="intervals" selected>' in again


@pytest.mark.nightly
def test_starts_of_events_can_be_asked_for_where_the_log_has_them(settings: ServerSettings, tmp_path: Path) -> None:
    path = tmp_path / "started.xes"
    files.write(draw_starts(hospital(40, seed=3)), path)
    form = {"method": "evolve", "epsilon": "1", "times": "0.3", "processing": "yes", "labels": "log"}
    found = every_page(path, "started.xes", form, settings)
    page = found["tried"]
    assert 'name="processing" value="yes" checked' in page
    assert 'value="start_timestamp"' not in page, "not offered as an attribute, too"
    assert "<td>start_timestamp" not in found["explore release"] and ">start_timestamp<" not in found["explore release"]


@pytest.mark.slow
def test_times_can_be_asked_for_where_variants_are_released(ordinary: dict[str, str]) -> None:
    for name, method in ((name, method) for name, method in METHODS.items() if offers(method)):
        can = method.takes_epsilon and not method.full_log
        assert ('name="times"' in ordinary[f"release {name}"]) == can, name
        assert 'name="processing"' not in ordinary[f"release {name}"], "the log does not say when events began"

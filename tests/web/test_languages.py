"""Pages in the browser's or the chosen language, with those of jobs and scripts."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import httpx
import pytest
from refusals import refused
from web_logs import EVOLVE, released
from web_serving import SMALL, Served, once_of, read_at_once, served, upload

from veilog._language import gettext, languages, spoken
from veilog.errors import BudgetError, ParameterError, VeilogError
from veilog.ledger.accounts import Account, check_paid
from veilog.ledger.entry import Cost
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message, for_surface
from veilog.methods import METHODS
from veilog.report.decision import decision_facts
from veilog.web.jobs import queue
from veilog.web.jobs.records import JobRequest, ServerSettings
from veilog.web.jobs.results import to_text
from veilog.web.pages import render as pages
from veilog.web.pages.assets import FOLDER as STATIC
from veilog.web.pages.render import LANGUAGES, translate_text
from veilog.web.work.request import requested_options

OTHERS = languages()[1:]
PARAMETERS = {f"{name} {held.name}": held for name, method in METHODS.items() for held in method.parameters}
SAID = {
    "/": "Share an event log, not the people in it",
    "{log}": "Is this the log you mean?",
    "{log}/exposure": "Who could be found in this log?",
    "{log}/release": "What may the release contain?",
    "{log}/expert": "Expert options",
    "{log}/account": "Budget used by all releases of this log",
    "{job}": "Waiting to begin.",
    "/stored": "All that is stored on this machine",
    "/nothing": "There is no such page.",
}
"""Sentences of the pages, one for each."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("languages") / "data", seed=7) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[httpx.Client]:
    with server.browser() as found:
        yield found


@pytest.fixture(scope="module")
def places(server: Served, client: httpx.Client) -> dict[str, str]:
    """Return the addresses of a log that was read, and of a job that waits."""
    log = upload(client, SMALL).headers["location"]
    read_at_once(server, log)
    form = {"method": "laplace", "epsilon": "1", "labels": "log", "longest": "log"}
    made = client.post(f"{log}/jobs", data={"once": once_of(client.get(f"{log}/release")), **form})
    return {"log": log, "job": made.headers["location"]}


@pytest.fixture(autouse=True)
def nothing_chosen(client: httpx.Client) -> Iterator[None]:
    yield
    if "veilog-language" in client.cookies:
        client.cookies.delete("veilog-language")


def language_of(page: httpx.Response) -> str:
    found = re.search(r'<html lang="(\w+)">', page.text)
    assert found
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize("address", SAID)
@pytest.mark.parametrize("language", languages())
def test_every_page_is_in_the_language_of_the_browser(
    client: httpx.Client, places: dict[str, str], address: str, language: str
) -> None:
    page = client.get(address.format(**places), headers={"accept-language": language})
    assert language_of(page) == language
    text = html.unescape(page.text)
    translations = {}
    for known in languages():
        with spoken(known):
            translations[known] = gettext(SAID[address])
    assert [known for known, said in translations.items() if said in text] == [language]


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("de-CH, en;q=0.5", "de"),
        ("en;q=0.5, FR-fr;q=0.7", "fr"),
        ("da, nl;q=0.3", "nl"),
        ("de;q=0, fr;q=0.001", "fr"),
        ("ja, *;q=0.1", "en"),
        ("de;q=2, nl;q=x, ;;,q", "en"),
        ("en-US,en;q=0.9", "en"),
    ],
)
def test_the_best_match_counts_and_english_otherwise(client: httpx.Client, header: str, language: str) -> None:
    assert language_of(client.get("/", headers={"accept-language": header})) == language


def test_a_choice_is_kept_and_comes_before_what_the_browser_asks_for(server: Served) -> None:
    with server.browser() as client:
        page = client.get("/stored")
        assert 'action="/language"' in page.text
        answer = client.post("/language", data={"language": "de"}, headers={"referer": f"{server.origin}/stored"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/stored")
        kept = answer.headers["set-cookie"].lower()
        assert "httponly" in kept and "samesite=strict" in kept and "max-age=" in kept
        for address in ("/", "/stored", "/nothing"):
            assert language_of(client.get(address, headers={"accept-language": "fr"})) == "de"
        assert '<button name="language" value="de" lang="de" class="quiet" aria-current="true">' in client.get("/").text
        client.post("/language", data={"language": "en"})
        assert language_of(client.get("/", headers={"accept-language": "fr"})) == "en"
    with server.browser() as other:
        assert language_of(other.get("/")) == "en", "it is one browser's choice"


def test_a_cookie_that_names_no_language_is_none(server: Served) -> None:
    with server.browser() as client:
        for value in ("xx", "../de", "", "de\u00e9"):
            cookies = "; ".join([*(f"{name}={kept}" for name, kept in client.cookies.items())])
            headers = [(b"cookie", f"{cookies}; veilog-language={value}".encode()), (b"accept-language", b"nl")]
            assert language_of(client.get("/", headers=headers)) == "nl"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("came_from", "goes_to"),
    [
        ("{origin}{log}/account?beside=1", "{log}/account?beside=1"),
        ("{origin}{log}/jobs", "{log}/release"),
        ("{origin}{log}/plan", "{log}/release"),
        ("{origin}{log}/columns", "{log}"),
        ("{origin}{job}", "{job}"),
        ("{origin}/logs", "/"),
        ("https://evil.example/path", "/"),
        ("//evil.example//evil.example", "/"),
        ("http://[", "/"),
        ("", "/"),
    ],
)
def test_after_a_choice_the_same_page_is_shown_and_never_another_site(
    server: Served, client: httpx.Client, places: dict[str, str], came_from: str, goes_to: str
) -> None:
    referer = came_from.format(origin=server.origin, **places)
    answer = client.post("/language", data={"language": "nl"}, headers={"referer": referer} if referer else {})
    assert answer.headers["location"] == goes_to.format(**places)
    assert client.get(answer.headers["location"]).status_code == 200


def test_a_choice_comes_from_a_page_of_ours_and_is_one_of_the_list(server: Served, client: httpx.Client) -> None:
    elsewhere = client.post("/language", data={"language": "de"}, headers={"origin": "https://evil.example"})
    assert elsewhere.status_code == 403
    assert "set-cookie" not in elsewhere.headers
    unknown = client.post("/language", data={"language": "xx"})
    assert unknown.status_code == 400
    assert "set-cookie" not in unknown.headers
    with server.stranger() as stranger:
        refused = stranger.post("/language", data={"language": "de"})
        assert refused.status_code == 403
        shut_out = stranger.get("/", headers={"accept-language": "de"})
        assert '<html lang="de">' in shut_out.text and 'action="/enter"' in shut_out.text
        assert 'action="/language"' not in shut_out.text, "where it could not be chosen it is not offered"


@pytest.mark.slow
def test_a_server_has_a_usual_language(tmp_path: Path) -> None:
    with served(tmp_path / "data", language="fr") as server, server.browser() as client:
        assert language_of(client.get("/", headers={"accept-language": "de"})) == "fr"
        client.post("/language", data={"language": "nl"})
        assert language_of(client.get("/")) == "nl"


def test_every_language_says_its_own_name() -> None:
    assert tuple(LANGUAGES) == languages()


def test_a_job_is_done_in_the_language_of_whoever_asks_for_it(server: Served) -> None:
    with server.browser() as client:
        mark = once_of(client.get("/"))
        brought = client.post(
            "/logs", data={"once": mark}, files={"file": ("log.csv", SMALL)}, headers={"accept-language": "nl"}
        )
        asked = next(
            found[0].request
            for waiting in server.store.queued()
            if (found := server.store.any_job(waiting.id)) and brought.headers["location"].endswith(found[0].log)
        )
    assert asked.language == "nl"
    with spoken("de"):
        assert JobRequest().language == "de"
        assert JobRequest() == JobRequest(language="en"), "the same is asked for"


@pytest.mark.nightly
def test_reports_follow_the_page_and_the_certificate_is_english(tmp_path: Path) -> None:
    path = tmp_path / "ward.xes"
    files.write(hospital(40, seed=3), path)
    settings = ServerSettings(folder=tmp_path, ledger=tmp_path / "all.ledger", token="t")
    form = {"method": "laplace", "epsilon": "1", "labels": "log", "longest": "log"}
    with spoken("de"):
        made = released(path, form, settings, tmp_path / "out")
    for name in ("recipient-report.html", "internal-report.html", "dossier.html"):
        assert '<html lang="de">' in (tmp_path / "out" / name).read_text()
    assert made.known is not None and not re.search("Schutz|Fall", to_text(replace(made, beside=None)))
    with spoken("de"):
        german = decision_facts(made.known, 1, made.owner)
    english = decision_facts(made.known, 1, made.owner)
    assert german.headline.startswith("Der Schutz ist") and english.headline.startswith("Protection is")
    assert not re.search(
        "[äöüß]|Schutz", " ".join([english.answer, *(check.asks + check.why for check in english.checks)])
    )
    assert made.beside is not None and re.search("[äöüß]|Ähnlichkeit", made.beside.verdict)
    for name in ("certificate.json", "release.xes"):
        text = (tmp_path / "out" / name).read_text()
        assert (made.guarantee.protects.english in text) == (name == "certificate.json")
        assert not re.search("[äöüß]|Schutz|Fall", text)


@pytest.mark.parametrize("language", OTHERS)
def test_what_the_server_says_of_jobs_is_translated_when_it_is_shown(language: str) -> None:
    outcomes = [queue._outcome(stop, False, None, 2.5)[1] for stop in ("cancelled", "stopped", "memory", "time")]
    said = [*filter(None, outcomes), "job-died", "job-memory", "starting", "stopping"]
    english = re.compile(r"\b(the|this|what|than|It|Try|job)\b")
    with spoken(language):
        for text in said:
            assert translate_text(text) != text
            assert not english.search(translate_text(text)), translate_text(text)
        assert translate_text("Ward X. And: Y.") == "Ward X. And: Y.", "words of somebody else"


@pytest.mark.parametrize("language", languages())
def test_scripts_find_all_that_they_say(language: str) -> None:
    script = (STATIC / "veilog.js").read_text()
    used = set(re.findall(r'said\("(\w+)"', script)) | {"smaller", "larger", "whole", "activities", "paths"}
    with spoken(language):
        page = pages.home([], [], "once")
    found = re.search(r"<meta name=\"words\" content='([^']+)'>", page)
    assert found
    assert json.loads(html.unescape(found[1])).keys() == used


def test_what_a_form_cannot_mean_is_said_in_its_language() -> None:
    with spoken("fr"), refused(ParameterError, "form-number-not-whole") as error:
        requested_options({"method": "evolve", "epsilon": "1", "max_cases": "some"})
    with spoken("fr"):
        assert "doit être" in str(error.value)


@pytest.mark.parametrize("parameter", PARAMETERS, ids=PARAMETERS)
def test_what_a_parameter_cannot_be_is_said_in_the_language(parameter: str) -> None:
    """Refusals of a parameter are translated, with the given value in them."""
    held = PARAMETERS[parameter]
    beyond = [int(bound) + step for bound, step in ((held.minimum, -1), (held.maximum, 1)) if bound is not None]
    for value in ("?", *map(str, beyond)):
        if held.kind is str and not held.choices:
            continue
        with pytest.raises(ParameterError) as error:
            held.parse(value)
        with for_surface("pages"):
            problem, advice = error.value.problem, error.value.advice
            with spoken("de"):
                assert error.value.problem != problem and error.value.problem.startswith(f"{held.name} ")
                assert advice is None or error.value.advice != advice


def test_a_page_that_says_what_went_wrong_says_it_in_its_language(client: httpx.Client, places: dict[str, str]) -> None:
    once = once_of(client.get("/"))
    given = {"once": once, "epsilon": "much"}
    answer = client.post(f"{places['log']}/account/limit", data=given, headers={"accept-language": "de"})
    assert answer.status_code == 400
    with spoken("de"):
        assert str(Message("budget-not-number", name="epsilon", value="much")) in html.unescape(answer.text)


def test_what_a_ledger_refuses_is_among_what_pages_translate() -> None:
    """Refusals of a ledger are translated, with their numbers."""
    account = Account(1, "ward", "case", (Fraction(3), Fraction(0)), ())
    spent = account.with_release((Fraction(1), Fraction(0)), None)
    other = replace(spent, entries=(replace(spent.entries[0], unit="Patient"),))
    refused: tuple[tuple[Account, Cost | None, str, str | None], ...] = (
        (spent, (Fraction("2.5"), Fraction(0)), "case", None),
        (spent, (Fraction("2.5"), Fraction(0)), "case", "month=2024-02"),
        (spent, (Fraction(1), Fraction(0)), "Patient", None),
        (spent, None, "case", None),
        (other, (Fraction(1), Fraction(0)), "case", None),
    )
    for held, cost, unit, part in refused:
        with pytest.raises(BudgetError) as error:
            check_paid(held, cost, unit, part)
        with for_surface("pages"):
            english = error.value.problem
            for language in OTHERS:
                with spoken(language):
                    assert error.value.problem != english


WRONG = (
    {"method": "evolv"},
    {"unit": "Patient"},
    {"unit": "case", "max_cases": "3"},
    {"unit": "person", "max_cases": "0"},
    {"unit": "person", "max_cases": "3", "without_person": "own"},
    {"unit": "p", "max_cases": "3", "method": "tlkc", "as_published": "on"},
    {"times": "0.3", "window_start": "2024-01-01", "window_end": "2023-01-01"},
    {"window_start": "2024-01-01", "window_end": "2024-02-01"},
    {"times": "0.3", "window_start": "0001-01-01", "window_end": "9999-01-01"},
    {"method": "pripel", "p_start_window": "log", "p_times_share": "0"},
    {"method": "pripel", "p_start_window": "2024", "p_times_share": "0.3"},
    {"processing": "on"},
    {"attributes": "a", "d_a": "1..0"},
    {"attributes": "a", "d_a": "x\nx"},
    {"labels": "list", "activities": "a\na"},
    {"longest": "bound", "max_length": "0"},
    {"delta": "1e-400"},
    {"subset": "month=2024-13"},
    {"subset": "began=2024-01-01"},
    {"subset": "began=2024-02-01..2024-01-01"},
    {"method": "sapa", "delta": "1e-6"},
    {"method": "libra", "times": "0.3"},
    {"method": "laplace", "epsilon": "0.00001", "p_depth": "5"},
    {"method": "df-laplace", "epsilon": "0.000001"},
    {"epsilon": "0.0000001"},
    {"method": "pripel", "p_query": "libra"},
    {"method": "pripel", "p_query_parameters": "depth"},
)
"""Forms that are refused in sentences of the library, which are English."""


@pytest.mark.slow
@pytest.mark.parametrize("language", OTHERS)
def test_what_a_form_is_refused_for_is_said_in_the_language(language: str) -> None:
    english = []
    for form in WRONG:
        with pytest.raises(VeilogError) as error:
            _ = requested_options({**EVOLVE, "longest": "log", **form}).cost
            pytest.fail(f"{form} is refused")
        with for_surface("pages"):
            said = error.value.problem, error.value.advice
            with spoken(language):
                there = error.value.problem, error.value.advice
        english += [text for text, other in zip(said, there, strict=True) if text and text == other]
    assert not english, english

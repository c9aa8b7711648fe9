"""German pages for a data owner, from a table as a hospital exports it."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
from web_logs import job, read, record, released

from veilog._language import spoken
from veilog.logs.findings import RULES
from veilog.messages import Message
from veilog.web.jobs.records import JobRecord, ServerSettings
from veilog.web.pages import render as pages
from veilog.web.pages.render import FILTERS
from veilog.web.work.accounts import account_seen

ASKED = {"method": "laplace", "epsilon": "1", "labels": "log", "longest": "log", "p_depth": "2"}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Return a Windows-1252 export with two times a row, stays and a repeated row.

    Patients have two stays, and five stays have no patient.
    """
    lines = ["Fall;Tätigkeit;Beginn;Ende;Patient"]
    for case in range(200):
        day = f"{1 + case % 28:02}.01.2025"
        who = "" if case < 5 else f"P{case // 2}"
        lines += [f"F{case};{a};{day} 1{i}:00;{day} 1{i}:30;{who}" for i, a in enumerate(("Aufnahme", "Röntgen"))]
    path = tmp_path / "Köln.csv"
    path.write_text("\n".join([*lines, lines[1], ""]), encoding="cp1252")
    return path


@pytest.mark.slow
def test_a_column_of_persons_with_gaps_is_named_with_what_to_do(export: Path, settings: ServerSettings) -> None:
    """A column of persons with gaps is named on the page, with what to do."""
    log = record(read(export))
    assert log.measured is not None
    assert [(u.column, u.likely, log.cases - u.cases) for u in log.measured.units] == [("Patient", True, 5)]
    with spoken("de"):
        page = html.unescape(pages.log_page(log, "once"))
        assert re.search(r'data-without-person="5">5 [^<]*\bPatient\b', page)
        form = html.unescape(pages.release_form(log, ASKED, "once"))
    assert 'name="unit" value="Patient">' in form
    whole = export.with_name("whole.csv")
    whole.write_text(export.read_text("cp1252").replace(";\n", ";Pn\n"), "utf-8")
    full = record(read(whole))
    assert full.measured is not None
    assert [(u.column, full.cases - u.cases) for u in full.measured.units] == [("Patient", 0)]


@pytest.mark.slow
def test_what_was_noticed_is_told_without_options_of_the_command(export: Path, settings: ServerSettings) -> None:
    with spoken("de"):
        page = html.unescape(pages.log_page(record(read(export)), "once"))
        told = {rule: str(RULES[rule].message) for rule in ("not-utf8", "start-and-end", "repeated-event")}
    noticed = page[page.index('id="findings"') :]
    noticed = noticed.casefold()
    assert all(text.casefold() in noticed and text != str(RULES[rule].message) for rule, text in told.items())
    assert "'aufnahme'" in noticed and "--" not in re.sub(r"<!--.*?-->", "", noticed)


def test_examples_of_what_was_noticed_are_in_the_language_of_the_page(export: Path, settings: ServerSettings) -> None:
    result = read(export)
    log, examples = record(result), [finding.example for finding in result.findings]
    assert {example.code for example in examples if isinstance(example, Message)} == {
        "example-windows-1252",
        "example-time-and-attribute",
        "example-in-case",
        "example-read-as-utc",
    }
    pages_of = {}
    for language in ("en", "de"):
        with spoken(language):
            pages_of[language] = html.unescape(pages.log_page(log, "once"))
            assert all(f"<q>{example}</q>" in pages_of[language] for example in examples)
    assert not any(f"<q>{example}</q>" in pages_of["de"] for example in examples)


@pytest.mark.nightly
def test_the_account_counts_the_files_that_its_link_gives(
    export: Path, settings: ServerSettings, tmp_path: Path
) -> None:
    """The account counts the files that its link gives, without the internal report."""
    made = released(export, ASKED, settings, tmp_path / "out", name="Köln.csv")
    log = replace(record(read(export), name="Köln.csv"), session="")
    assert made.entry is not None and "internal-report.html" in made.files
    page = pages.account(log, account_seen(log, settings), {made.entry: job("release", made, ASKED)}, {}, "once")
    assert f"{len(made.files) - 1} files" in page and f"{len(made.files)} files" not in page


def asked_words(asked: JobRecord) -> str:
    """Return the request of a job in the words of its page."""
    page = pages.job_page(replace(asked, kept=None), record(None), "once")
    return html.unescape(page.partition("<title>")[2].partition(": veilog</title>")[0])


def test_a_delta_is_written_alike_everywhere() -> None:
    asked = {"method": "travas", "epsilon": "0.5", "delta": "1e-6"}
    with spoken("de"):
        assert asked_words(job("release", None, asked)) == "travas, ε = 0,5, δ = 10⁻⁶"
        typed = job("release", None, asked | {"epsilon": "0,5", "delta": "0,000001"})
        assert asked_words(typed) == "travas, ε = 0,5, δ = 10⁻⁶", "with decimal commas"
    assert [FILTERS["power"](text) for text in ("1/0", "none", "0.001")] == ["1/0", "none", "0.001"]

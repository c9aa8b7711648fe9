"""Sentences, numbers, dates and quotes follow the language; English stays."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from refusals import refused, sentence

import veilog
from veilog import Variants, report
from veilog._language import (
    format_date,
    format_number,
    gettext,
    languages,
    ngettext,
    percent,
    quoted,
    share_in_percent,
    spoken,
    two_digits,
)
from veilog._language.catalogue import Catalogue
from veilog.cli import main
from veilog.errors import ParameterError
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import for_surface
from veilog.report.dossier import as_html, as_markdown, dossier

LOG = hospital(120, seed=1)
OTHERS = languages()[1:]


@pytest.fixture(scope="module")
def released() -> veilog.Release:
    return veilog.release(LOG.variants, "travas", epsilon=1, delta="1e-6", activities="log")


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (0.0, "0 %"), (1e-16, "0 %"), (0.00002, "0.002 %"), (0.004, "0.4 %"), (1 / 3, "33 %"),
        (0.9985, "99.9 %"), (0.99999, "99.999 %"), (1 - 1e-16, "100 %"), (1.0, "100 %"),
    ],
)  # fmt: skip
def test_a_share_is_never_rounded_to_nothing_or_to_all(share: float, written: str) -> None:
    assert share_in_percent(share) == written


def test_two_digits_are_written_without_a_power_of_ten() -> None:
    numbers = (0.0000667, 0.033, 1.5, 9.96, 300.0, 15_000.0)
    assert [two_digits(number) for number in numbers] == ["0.000067", "0.033", "1.5", "10", "300", "15,000"]
    with spoken("de"):
        assert (two_digits(2.5), two_digits(15_000.0)) == ("2,5", "15.000")


@pytest.mark.parametrize(
    ("language", "number", "share", "date", "quote"),
    [
        ("en", "1,234.5", "12.5 %", "2026-03-10", "“a”"),
        ("de", "1.234,5", "12,5\u00a0%", "10.03.2026", "„a“"),
        ("fr", "1\u202f234,5", "12,5\u00a0%", "10/03/2026", "«\u00a0a\u00a0»"),
        ("nl", "1.234,5", "12,5%", "10-03-2026", "‘a’"),
    ],
)
def test_numbers_dates_and_quotes_follow_the_language(
    language: str, number: str, share: str, date: str, quote: str
) -> None:
    with spoken(language):
        assert format_number("1,234.5") == number
        assert percent("12.5") == share
        assert format_date("2026-03-10") == date
        assert quoted("a") == quote
        assert gettext("{n} more variants", n=12_345).count(number[1]) == 1  # whole numbers by themselves


def test_a_language_is_spoken_for_a_while_only() -> None:
    with spoken("de"):
        with spoken("fr"):
            assert gettext("February") == "février"
        assert gettext("February") == "Februar"
    assert gettext("February") == "February"


def test_what_is_filled_in_is_not_read_as_a_placeholder() -> None:
    with spoken("de"):
        assert gettext("Wenn {unit}", unit="{n}") == "Wenn {n}"
        assert gettext("unknown {name}", name="{x}") == "unknown {x}"


def test_a_unit_that_no_catalogue_knows_leaves_the_sentence_english() -> None:
    sentence = "whether a {unit} is in the log"
    with spoken("de"):
        assert "eine Person" in gettext(sentence, unit="person")
        assert gettext(sentence, unit="ward") == sentence.format(unit="ward")


def test_plural_forms_are_those_of_the_language() -> None:
    one, many = "The attacker knows {n} event of a case.", "The attacker knows {n} events of a case."
    for language, as_one in (("fr", True), ("nl", False), ("en", False)):
        with spoken(language):
            none, single, several = (ngettext(one, many, number).replace(str(number), "#", 1) for number in (0, 1, 2))
        assert single != several and none == (single if as_one else several)
    assert ngettext(one, many, 1) == one.format(n=1)


def test_a_catalogue_is_read_with_lines_comments_and_contexts() -> None:
    text = (
        'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n<5 ? 1 : 2);\\n"\n\n'
        '# said twice\n#: a.py\nmsgctxt "x"\nmsgid "one"\nmsgstr ""\n"first "\n"\\"half\\""\n\n'
        'msgid "one day"\nmsgid_plural "{n} days"\nmsgstr[0] "den"\nmsgstr[1] "dny"\nmsgstr[2] "dní"\n'
    )
    found = Catalogue(text)
    assert found.one("x", "one") == 'first "half"'
    assert found.one("", "one") == found.one("", "") == found.one("", "one day") == ""
    assert [found.counted("one day", n) for n in (1, 3, 9)] == ["den", "dny", "dní"]
    assert found.counted("two days", 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("language", OTHERS)
def test_what_a_release_notes_for_its_owner_is_in_each_language(language: str, tmp_path: Path) -> None:
    """Notes for the owner on persons, declarations, lengths and values are translated."""
    day = "2026-01-01 10:00"
    (tmp_path / "log.csv").write_text(f"case,activity,time,who\n1,a,{day},x\n2,b,{day},x\n3,b,{day},y\n")
    log = veilog.read(tmp_path / "log.csv")
    declared = veilog.Domain(activities=("a",), max_length=1, attributes={"who": ("y",)})
    made = veilog.release(log, "evolve", epsilon=1, domain=declared, attributes=["who"], unit="who", max_cases=1)
    notes = made.owner_only.notes
    codes = ["one-activity-undeclared", "one-value-undeclared", "one-person-over-bound", "in-no-ledger"]
    assert [note.code for note in notes] == codes
    with spoken(language), for_surface("pages"):
        assert not [line for note in notes for line in english_lines(str(note))]
        assert "'who'" in str(notes[1])


FIRST = {
    "de": ("Der Schutz ist gut", "Geschützt ist ein Fall", "Bewiesen, und zu bestätigen", "Teil A."),
    "fr": ("La protection est bonne", "Est protégé un cas", "Prouvé, et à confirmer", "Partie A."),
    "nl": ("De bescherming is goed", "Beschermd is één geval", "Bewezen, en te bevestigen", "Deel A."),
}


@pytest.mark.parametrize("language", OTHERS)
def test_a_dossier_is_in_its_language_and_its_record_is_english(language: str, released: veilog.Release) -> None:
    made, english = dossier(released, language=language), dossier(released)
    text = as_markdown(made)
    assert all(words in text for words in FIRST[language])
    assert f'<html lang="{language}">' in as_html(made)
    assert made.registry == english.registry
    assert [s.number for s in made.sections()] == [s.number for s in english.sections()]
    left = [line for line in english_lines(text) if not re.search(r"veilog|NIST|discrete Laplace|OpenDP", line)]
    assert not left, left


def english_lines(markdown: str) -> list[str]:
    """Return the lines with two English words, without the registry's record."""
    text = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    words = re.compile(r"\b(?:the|which|with|from|what|release|nothing|somebody|holds|yours)\b")
    return [line for line in text.splitlines() if len(set(words.findall(line))) > 1]


@pytest.mark.slow
@pytest.mark.parametrize("language", OTHERS)
def test_the_first_screen_of_a_report_is_in_its_language(language: str, released: veilog.Release) -> None:
    page = html.unescape(report.html(released, language=language))
    assert f'<html lang="{language}">' in page
    first = page[page.index("<main>") : page.index('<h2 id="guarantee">')]
    assert all(words in first for words in FIRST[language][:3])
    assert not english_lines(re.sub(r"<[^>]+>", " ", first))
    assert "von {all}" in page if language == "de" else "{shown}" in page  # the note of the search is filled in there
    plain = page[page.index('<h2 id="guarantee">') : page.index("<table", page.index('<h2 id="guarantee">'))]
    assert not english_lines(re.sub(r"<[^>]+>", " ", plain))


@pytest.mark.slow
def test_names_in_a_translated_page_are_text() -> None:
    log = Variants.from_dict({("<b>a</b>", "{n}"): 400})
    page = report.html(veilog.release(log, "travas", epsilon=1, delta="1e-3", activities="log"), log, language="fr")
    assert "&lt;b&gt;a&lt;/b&gt;" in page
    assert "<b>a</b>" not in page


@pytest.mark.slow
def test_json_and_the_terminal_stay_english(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target, page = tmp_path / "log.xes", tmp_path / "out.xes", tmp_path / "page.html"
    veilog.write(LOG, source)
    options = ["-m", "travas", "--epsilon", "1", "--delta", "1e-6", "--activities", "log", "--no-ledger"]
    facts = tmp_path / "facts.json"
    pages = ["--dossier", str(page), "--language", "nl", "--json", str(facts)]
    assert main(["release", str(source), str(target), *options, *pages]) == 0
    assert '<html lang="nl">' in page.read_text()
    assert sentence("protects-one-case").split(". ")[0] in " ".join(capsys.readouterr().out.split())
    assert json.loads(facts.read_text())["guarantee"]["level"] == "good"
    other = tmp_path / "other.html"
    assert main(["report", str(target), str(other), "--language", "fr"]) == 0
    assert '<html lang="fr">' in other.read_text()
    markdown = tmp_path / "dossier.md"
    assert main(["dossier", str(target), str(markdown), "--language", "de"]) == 0
    assert FIRST["de"][2] in markdown.read_text()


def test_an_unknown_language_is_refused_before_any_work(tmp_path: Path, released: veilog.Release) -> None:
    with refused(ParameterError, "language-without-catalogue", language="xx"):
        report.html(released, language="xx")
    status = main(["report", str(tmp_path / "none.xes"), str(tmp_path / "page.html"), "--language", "deu"])
    assert status == 2
    assert not (tmp_path / "page.html").exists()

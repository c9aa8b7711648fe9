"""Every sentence is in every language, with its placeholders, and none is unused."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from veilog import release
from veilog._language import languages, spoken
from veilog._language.catalogue import CatalogueEntry, entries
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message
from veilog.methods import METHODS, Method
from veilog.privacy.account.guarantee import STRENGTHS
from veilog.privacy.partition import Partition
from veilog.privacy.unit import Unit

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "veilog" / "_language"
REVIEWED = (
    "report/decision.py",
    "report/words.py",
    "report/templates/conclude.html",
    "report/templates/decision.html",
    "report/templates/guarantee.html",
)
"""Templates of the verdict, whose translations, as of the guarantee, were translated back."""
OTHERS = languages()[1:]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_catalogues", ROOT / "tools" / "catalogues.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    return module


TOOL = load()


@functools.cache
def said_anywhere() -> dict[tuple[str, str, str], Any]:
    """Return all sentences of code and templates, which takes seconds to read."""
    return TOOL.sentences() | TOOL.messages()


@functools.cache
def catalogue(language: str) -> list[CatalogueEntry]:
    return [*entries((FOLDER / f"{language}.po").read_text(encoding="utf-8"))]


@functools.cache
def english() -> dict[str, dict[str, str]]:
    return TOOL.english()


def said_in_english(entry: CatalogueEntry) -> str:
    """Return the English sentence; that of a message is in the English catalogue."""
    return english().get(entry.text, {}).get(entry.context, entry.text)


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)[^{}]*\}", text))


def markup(text: str) -> list[str]:
    return sorted(re.findall(r"<[^>]*>|&\w+;", text))


def key(entry: CatalogueEntry) -> tuple[str, str, str]:
    return entry.context, entry.text, entry.plural


def test_there_are_german_french_and_dutch() -> None:
    assert languages() == ("en", "de", "fr", "nl")


@pytest.mark.slow
@pytest.mark.parametrize("language", OTHERS)
def test_no_sentence_is_missing_and_none_unused(language: str) -> None:
    """No sentence is missing or unused: ``python tools/catalogues.py`` updates them."""
    found = [key(entry) for entry in catalogue(language) if entry.text]
    assert found == list(said_anywhere()), "python tools/catalogues.py"
    empty = [entry.text for entry in catalogue(language) if entry.text and not all(entry.said)]
    assert not empty


@pytest.mark.slow
@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_is_as_its_tool_writes_it(language: str) -> None:
    text = (FOLDER / f"{language}.po").read_text(encoding="utf-8")
    head = text.partition("\n\n")[0]
    assert TOOL.written(head, language, said_anywhere(), catalogue(language)) == text


@pytest.mark.parametrize("language", OTHERS)
def test_placeholders_and_markup_are_those_of_the_english(language: str) -> None:
    for entry in catalogue(language):
        if not entry.text:
            continue
        source = said_in_english(entry)
        many = placeholders(entry.plural or source)
        for said in entry.said:
            # A plural form may have its number as a word, as the English does: "the first activity".
            left_out = {"n"} if entry.plural and "n" not in placeholders(source) else set()
            if entry.text in english():  # a word of the English grammar may have no place in another
                assert placeholders(said) <= many, entry.text
            else:
                assert placeholders(said) | left_out == many | left_out, entry.text
            assert markup(said) == markup(source), entry.text
            assert (said[0] == " ", said[-1] == " ") == (False, False), entry.text


@pytest.mark.parametrize("language", OTHERS)
def test_what_is_not_translated_is_the_same_word_in_both(language: str) -> None:
    """Sentences of four words or more are translated, but for names of documents."""
    same = [e.text for e in catalogue(language) if e.text and e.said[0] == e.text and len(e.text.split()) > 3]
    assert [text.partition(",")[0] for text in same] == ["NIST SP 800-226"]


@pytest.mark.slow
def test_every_sentence_of_the_guarantee_was_translated_back() -> None:
    """``review.tsv`` has each guarantee's translation, translated back and compared."""
    head, *lines = (FOLDER / "review.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == ["language", "context", "English", "translation", "translated back"]
    rows = [tuple(line.split("\t")) for line in lines]
    places = {(sentence.context, sentence.text): sentence.place for sentence in said_anywhere().values()}
    codes = {row[1] for row in rows} & set(english())
    assert len(codes) > 15
    wanted = [
        (
            language,
            entry.text if entry.text in codes else entry.context,
            said_in_english(entry),
            " || ".join(entry.said),
        )
        for language in OTHERS
        for entry in catalogue(language)
        if places.get((entry.context, entry.text)) in REVIEWED or (entry.text in codes and not entry.context)
    ]
    assert [row[:4] for row in rows] == wanted
    for _, _, source, _, back in rows:
        assert placeholders(back) == placeholders(source), back
        assert ("at most" in back) == ("at most" in source), back
        assert ("proven" in back) == ("proven" in source), back
        assert ("conditions" in back) == ("conditions" in source), back


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_what_a_parameter_is_is_said_in_every_language(method: Method, language: str) -> None:
    """Every parameter is translated, whatever the way in which the code writes it."""
    said = {entry.text for entry in catalogue(language) if all(entry.said)}
    assert [parameter.name for parameter in method.parameters if parameter.what not in said] == []


@pytest.mark.parametrize("language", OTHERS)
def test_the_words_for_strengths_are_five(language: str) -> None:
    for context in ("protection is", "scale"):
        said = [entry.said[0] for entry in catalogue(language) if entry.context == context]
        assert len(said) == len(set(said)) == len(STRENGTHS)


@pytest.mark.slow
def test_what_a_release_says_of_itself_is_in_each_language() -> None:
    """Remarks, conditions, purposes, noise and neighbours are in each language."""
    log = hospital(200, seed=1)
    asked = {"delta": "1e-6", "times": "0.3", "activities": "log", "window": "log", "seed": 1}
    released = release(log, "evolve", epsilon=1, **asked)
    plain = [charge.plain() for charge in released.guarantee.charges]
    said = [*released.remarks, *(part for each in plain for part in (each.purpose, each.mechanism, each.sensitivity))]
    said += [*released.guarantee.reasons, *(condition.text for condition in released.guarantee.conditions)]
    part, person = Partition.of("month=2024-03"), Unit("person", 3)
    said += [part.in_words, part.among(person.neighbours), person.neighbours, released.guarantee.numerics]
    english = {str(message) for message in said}
    for language in OTHERS:
        with spoken(language):
            same = {str(message) for message in said} & english
            assert not [text for text in same if re.search("[a-z]{3}", text)], language


def test_numbers_inside_a_message_are_those_of_the_language() -> None:
    votes = Message("for-bins", purpose=Message("lengths-of-traces"), n=1_000)
    with spoken("nl"):
        assert "(1.000 klassen)" in str(votes)

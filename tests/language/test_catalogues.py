"""Every sentence is there in every language, with its placeholders, and none that nobody says any more."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from veilog import release
from veilog._language import languages, spoken
from veilog._language.catalogue import CatalogueEntry, entries
from veilog.logs.made_up.simulate import hospital
from veilog.methods import METHODS, Method
from veilog.methods.dpim import TREE
from veilog.privacy.account.guarantee import NEIGHBOURS, STRENGTHS
from veilog.privacy.domain import ACTIVITIES_FROM_LOG, LENGTH_FROM_LOG
from veilog.report.stated import SENTENCES, stated

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "veilog" / "_language"
REVIEWED = ("report/decision.py", "report/stated.py", "report/words.py")
"""The sentences of the guarantee, its conditions and the verdict: each translation of one was translated back."""
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
    """What the code and the templates say. Reading all of them takes seconds: not where tests are only collected."""
    return TOOL.sentences()


@functools.cache
def catalogue(language: str) -> list[CatalogueEntry]:
    return [*entries((FOLDER / f"{language}.po").read_text(encoding="utf-8"))]


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def markup(text: str) -> list[str]:
    return sorted(re.findall(r"<[^>]*>|&\w+;", text))


def key(entry: CatalogueEntry) -> tuple[str, str, str]:
    return entry.context, entry.text, entry.plural


def test_there_are_german_french_and_dutch() -> None:
    assert languages() == ("en", "de", "fr", "nl")


@pytest.mark.slow
@pytest.mark.parametrize("language", OTHERS)
def test_no_sentence_is_missing_and_none_unused(language: str) -> None:
    """``python tools/catalogues.py`` adds what is missing and takes out what is unused; then it is to be translated."""
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
        many = placeholders(entry.plural or entry.text)
        for said in entry.said:
            # A plural form may say its number in a word, as the English does: "the first activity".
            left_out = {"n"} if entry.plural and "n" not in placeholders(entry.text) else set()
            assert placeholders(said) | left_out == many | left_out, entry.text
            assert markup(said) == markup(entry.text), entry.text
            assert said.format_map(dict.fromkeys(many, "x")), entry.text
            assert (said[0] == " ", said[-1] == " ") == (False, False), entry.text


@pytest.mark.parametrize("language", OTHERS)
def test_what_is_not_translated_is_the_same_word_in_both(language: str) -> None:
    """A sentence of four words or more that is still English was forgotten; names of documents are allowed."""
    same = [e.text for e in catalogue(language) if e.text and e.said[0] == e.text and len(e.text.split()) > 3]
    assert same == ["NIST SP 800-226, Guidelines for evaluating differential privacy guarantees (2025)"]


@pytest.mark.slow
def test_every_sentence_of_the_guarantee_was_translated_back() -> None:
    """``review.tsv`` has each with its translation as it is now: who changes one translates it back, and compares."""
    head, *lines = (FOLDER / "review.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t") == ["language", "context", "English", "translation", "translated back"]
    rows = [tuple(line.split("\t")) for line in lines]
    places = {(sentence.context, sentence.text): sentence.place for sentence in said_anywhere().values()}
    wanted = [
        (language, entry.context, entry.text, " || ".join(entry.said))
        for language in OTHERS
        for entry in catalogue(language)
        if places.get((entry.context, entry.text)) in REVIEWED
    ]
    assert [row[:4] for row in rows] == wanted
    for _, _, english, _, back in rows:
        assert placeholders(back) == placeholders(english), back
        assert ("at most" in back) == ("at most" in english), back
        assert ("proven" in back) == ("proven" in english), back
        assert ("conditions" in back) == ("conditions" in english), back


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_what_a_parameter_is_is_said_in_every_language(method: Method, language: str) -> None:
    """However the code writes its words: the tool finds only those that stand in the setting itself."""
    said = {entry.text for entry in catalogue(language) if all(entry.said)}
    assert [parameter.name for parameter in method.parameters if parameter.what not in said] == []


@pytest.mark.parametrize("language", OTHERS)
def test_the_words_for_strengths_are_five(language: str) -> None:
    for context in ("protection is", "scale"):
        said = [entry.said[0] for entry in catalogue(language) if entry.context == context]
        assert len(said) == len(set(said)) == len(STRENGTHS)


def test_what_the_kernel_says_is_listed() -> None:
    """Its own sentences, taken from it: one that is changed there is not recognised any more."""
    events = (ROOT / "src/veilog/privacy/events.py").read_text(encoding="utf-8")
    account = (ROOT / "src/veilog/privacy/account/account.py").read_text(encoding="utf-8")
    guarantee = (ROOT / "src/veilog/privacy/account/guarantee.py").read_text(encoding="utf-8")
    conditions = [ACTIVITIES_FROM_LOG.text, LENGTH_FROM_LOG.text]
    joined = re.sub(r'"\s*\n\s*"', "", events)  # one sentence on several lines
    conditions += re.findall(r'Condition\(\s*"[\w-]+",\s*"\w+",\s*"(\w[^"]+)"', joined)
    reasons = re.findall(r'(?:reasons\.append\(|numerics = )"([^"]+)"', account)
    whole = re.sub(r'"\s*\n\s*f?"', "", guarantee)
    protects = re.findall(r'return \(?\s*f?"((?:Nobody|It protects) [^"]+)"', whole)
    said = [*conditions, *reasons, *(text.replace("{self.unit}", "person") for text in protects)]
    assert len(conditions) == 4
    assert len(reasons) == 5
    assert len(protects) == 4
    assert set(said) <= set(SENTENCES)
    assert NEIGHBOURS in SENTENCES


def remarked(path: Path) -> list[str]:
    """The sentences that a file gives to ``remark``, or that its own function of remarks has, filled in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and "remarks" in each.name]
    inside = {id(call) for function in own for call in ast.walk(function)}
    found = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name == "remark" or (name == "append" and id(call) in inside):
                found += [filled for filled in [filled_in(call.args[0])] if filled]
    return found


def filled_in(node: ast.expr) -> str:
    """A text of the code with 7 for every value; an advice is one. Empty for what is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(filled_in(part) for part in parts)
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="advised"), args=[_, advice])):
            return filled_in(advice).replace("{}", "7")
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="advised"))):
            return "An epsilon of about 7 would do."
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="counted"), args=[_, ast.Constant(value=what)])):
            return f"7 {what}s"
        case ast.FormattedValue(value=ast.IfExp(orelse=ast.JoinedStr() as more)) | ast.IfExp(orelse=more):
            return filled_in(more)
        case ast.FormattedValue():
            return "7"
        case ast.BinOp(left=left, right=ast.IfExp(body=more)):
            return filled_in(left) + filled_in(more)
    return ""


@pytest.mark.nightly
def test_what_methods_remark_is_listed_and_translated() -> None:
    """Each is recognised, with what is filled in: a remark that is new or changed is to be listed and translated."""
    files = [*(ROOT / "src/veilog/methods").rglob("*.py"), ROOT / "src/veilog/releasing/result.py"]
    said = [text for path in files for text in remarked(path)]
    assert len(said) > 35
    said = [text for text in said if re.search("[a-z]", text)] + [f"{TREE}7"]
    with spoken("de"):
        assert [text for text in said if stated(text) == text] == []
        few = "About 1234 cases (a noisy number, within 60 in 95 of 100 runs) are few for an epsilon of 0.5 a case:"
        told = stated(f"{few} expect what is frequent, and little of what is rare. An epsilon of about 2.5 would do.")
        assert "für ein Epsilon von 0,5 je Fall" in told and told.endswith("Ein Epsilon von etwa 2,5 würde genügen.")


@pytest.mark.slow
def test_what_questions_are_for_is_listed_and_translated() -> None:
    """As the code says it, or as its default is; ``7 by 7``, two attributes, may be said of anything."""
    folders = [ROOT / "src/veilog" / name for name in ("methods", "privacy", "releasing")]
    said = {text for folder in folders for path in folder.rglob("*.py") for text in purposes(path)}
    assert len(said) > 35
    with spoken("nl"):
        assert {text for text in said if stated(text) == text} <= {"7 by 7"}
        assert stated("votes for prototypes, round 1 (1000 bins)") == "stemmen voor prototypen, ronde 1 (1.000 klassen)"
        assert stated("values of time with each activity (7 sums)").startswith("waarden van time bij")


def purposes(path: Path) -> Iterator[str]:
    """What a file gives to questions as their purpose, filled in with numbers."""
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call):
            given = [word.value for word in call.keywords if word.arg == "purpose"]
            if getattr(call.func, "id", "") in ("_sums", "noisy_quantile", "_histogram"):
                given += [value for value in call.args if isinstance(value, ast.Constant)]
            for value in given:
                for each in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                    if re.search("[a-z]", text := filled_in(each)):
                        yield text


@pytest.mark.slow
def test_noise_is_told_in_each_language() -> None:
    """Mechanisms and sensitivities of a release with many of them."""
    log = hospital(200, seed=1)
    released = release(log, "evolve", epsilon=1, delta="1e-6", times="0.3", activities="log", window="log")
    plain = [charge.plain() for charge in released.guarantee.charges]
    with spoken("fr"):
        for text in {each.mechanism for each in plain}:
            assert stated(text) != text, text
        assert stated("discrete Laplace, scale 6/epsilon in steps of 1/1024") == (
            "Laplace discret, échelle 6/epsilon par pas de 1/1024"
        )
        assert (
            stated("256 (L2, clipped), times 3 cases of a person")
            == "256 (L2, écrêté), multiplié par 3 cas d’une personne"
        )
        assert stated("cases that started in 2024-03 (UTC)") != "cases that started in 2024-03 (UTC)"

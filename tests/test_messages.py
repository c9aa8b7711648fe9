"""Codes and catalogues: each code in the source has a sentence for its readers."""

import ast
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from string import Formatter

import pytest

import veilog
from veilog._language import ENGLISH, languages, spoken
from veilog._language.catalogue import entries
from veilog.errors import InputError, ParameterError
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message, OwnerMessage, for_surface, message_from

RELEASED = veilog.release(hospital(30, seed=1), "laplace", epsilon=1, depth=1, activities="log", seed=1)
SOURCE = Path(veilog.__file__).parent
SAYING = re.compile(r"(\w*Error|Problem|Message|OwnerMessage)$")
OPTION = re.compile(r"--[a-z]|veilog [a-z]+ [A-Z]")


def catalogue(language: str) -> dict[str, dict[str, str]]:
    """Return the texts of each code, by context."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for entry in entries((SOURCE / "_language" / f"{language}.po").read_text()):
        if re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", entry.text):
            found[entry.text][entry.context] = entry.said[0]
    return found


CATALOGUE = catalogue(ENGLISH)


def used() -> dict[str, list[ast.Call | None]]:
    """Return the codes in the source, each with the calls that use them."""
    found: dict[str, list[ast.Call | None]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in CATALOGUE:
                found[node.value].append(None)
            if isinstance(node, ast.JoinedStr):  # stands for several codes, one for each of some words
                parts = (
                    re.escape(part.value) if isinstance(part, ast.Constant) else "[a-z0-9-]*" for part in node.values
                )
                form = re.compile("".join(parts))
                built = len(re.sub("[^a-z]", "", form.pattern)) > 5
                for code in CATALOGUE if built else ():
                    if form.fullmatch(code):
                        found[code].append(None)
            if isinstance(node, ast.Call) and SAYING.match(getattr(node.func, "id", "")):
                said = [
                    arg for arg in node.args[:2] if not isinstance(arg, ast.Call)
                ]  # a message within a message is its own call
                for code in {c.value for arg in said for c in ast.walk(arg) if isinstance(c, ast.Constant)}:
                    if code in CATALOGUE:
                        found[code].append(node)
    return found


USED = used()


def placeholders(text: str) -> set[str]:
    return {name.partition(".")[0] for _, name, _, _ in Formatter().parse(text) if name}


def test_every_code_of_the_catalogue_is_said_somewhere() -> None:
    assert set(CATALOGUE) == set(USED)


def test_what_fills_a_sentence_is_given_where_it_is_said() -> None:
    for code, calls in USED.items():
        needed = set().union(*(placeholders(text) for text in CATALOGUE[code].values()))
        for call in calls:
            if call is not None and all(word.arg for word in call.keywords):
                assert needed <= {word.arg for word in call.keywords}, f"{code}, line {call.lineno}"


def test_python_and_pages_are_told_no_option_of_the_command() -> None:
    for code, texts in CATALOGUE.items():
        for context, text in texts.items():
            if context.endswith(("python", "pages")):
                assert not re.search(r"--[a-z]", text), f"{code}: {text}"


@pytest.mark.parametrize("language", [name for name in languages() if name != ENGLISH])
def test_a_translation_has_the_values_of_the_sentence(language: str) -> None:
    for code, texts in catalogue(language).items():
        assert code in CATALOGUE, code
        for context, text in texts.items():
            assert context in CATALOGUE[code], f"{code}: {context}"
            assert placeholders(text) <= placeholders(CATALOGUE[code][context]), f"{code}: {text}"


def test_an_error_says_what_to_do_in_the_words_of_its_reader() -> None:
    error = ParameterError("activities-undeclared", parameter="activities", method="evolve")
    said = {}
    for surface in ("python", "command", "pages"):
        with for_surface(surface):  # type: ignore[arg-type]
            said[surface] = str(error)
    assert "--activities" in said["command"] and "--" not in said["python"] + said["pages"]
    assert error.code == "activities-undeclared"


def test_a_message_comes_back_from_json() -> None:
    inner = Message("problem-at-line", problem=Message("disk-full"), n=1_200)
    assert message_from(inner.to_json()) == inner
    with spoken("de"):
        assert "1.200" in str(inner)


def test_a_sentence_of_another_package_stays_as_it_is() -> None:
    assert str(InputError("No {x} here.", path="a.csv", line=3)) == "a.csv:3: No {x} here."


OWNERS = sorted(
    code for code, calls in USED.items() if "OwnerMessage" in {getattr(c and c.func, "id", "") for c in calls}
)


@pytest.mark.parametrize("code", OWNERS)
def test_what_is_for_the_owner_is_in_nothing_that_others_get(code: str) -> None:
    note = OwnerMessage(code)
    assert note != Message(code) and not isinstance(note, Message)
    with pytest.raises(TypeError):
        replace(RELEASED, remarks=(note,))


def test_a_word_that_is_empty_leaves_no_space_and_values_keep_theirs() -> None:
    values = {"known": "a  b", "classifiers": "", "quotes": "", "words": "x"}
    near = Message("did-you-mean", near="a  b")
    alone = Message("classifier-attribute-missing", meant="", **values).advice
    found = Message("classifier-attribute-missing", meant=near, **values).advice
    assert found == f"{near} {alone}" and "'a  b'" in str(near)
    assert alone.endswith(": a  b.") and alone == alone.strip() and alone.count("  ") == 1
    shown = {"columns": "'a'", "meant": "", "more": ""}
    assert str(Message("columns-to-be-named", **shown)).endswith("Columns: 'a'.")
    shown["more"] = Message("columns-more", more=2)
    assert str(Message("columns-to-be-named", **shown)).endswith("Columns: 'a' and 2 more.")


def test_a_message_within_a_sentence_begins_as_the_sentence_needs() -> None:
    why = Message("account-of-unbounded-release")
    assert str(Message("budget-used-up", why=why)).startswith("Nothing is left of the budget: there was a release")
    example = Message("finding-with-example", what=Message("finding-bad-timestamp"), example="x", rule="r", names="n")
    assert str(example)[0].isupper()

"""The docs have short sentences, the field's words, and numbers from commands.

Exceptions stand here with a reason.
"""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from veilog.privacy.account.guarantee import STRENGTHS
from veilog.privacy.account.guessing_advantage import epsilon_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

BEFORE = "was measured before rows were kept; the command that the page names measures it again"
TYPED = {
    "docs/results/evolve.md": BEFORE,
    "docs/results/groups.md": BEFORE,
    "docs/results/unprotected-baseline.md": BEFORE,
    "docs/results/libra.md": BEFORE,
    "docs/results/performance.md": BEFORE,
    "docs/results/prefix-trees.md": BEFORE,
    "docs/results/pripel.md": BEFORE,
    "docs/results/times.md": BEFORE,
    "docs/results/travag.md": BEFORE,
    "docs/measures/singling-out.md": "to get a command with the measures of risk",
    "docs/results/dpim.md": "to get a command: dpim beside its paper is no experiment yet",
    "docs/methods/times-and-attributes.md": "shares of the budget, which the code has and no measurement gave",
}
"""Pages with numbers in tables that no command writes between marks."""


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_prose", ROOT / "tools" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = load()
PAGES = {str(page.relative_to(ROOT)): page.read_text() for page in TOOL.pages()}


LONG, OLD = 74, 0
"""Numbers of long sentences, outside the pages without any, and of old words. They only fall."""


TEMPLATE = ("When to use it", "Example", "How it works", "Guarantee", "Parameters", "What was measured", "Literature")
"""Headings of a method's page, in this order."""


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("docs/methods/")])
def test_a_page_of_a_method_has_the_template(name: str) -> None:
    if name != "docs/methods/times-and-attributes.md":  # options of every method, and no method
        assert tuple(re.findall(r"^## (.+)$", PAGES[name], re.MULTILINE)) == TEMPLATE


def test_pages_for_everybody_have_short_sentences() -> None:
    strict = {str(page.relative_to(ROOT)) for page in TOOL.strict()}
    assert {name: found for name in strict if (found := TOOL.too_long(PAGES[name]))} == {}


def test_long_sentences_and_old_words_only_get_fewer() -> None:
    found = sum(len(TOOL.too_long(text)) for text in PAGES.values())
    old = sum(len(TOOL.old_words(text)) for text in PAGES.values())
    assert found <= LONG, "python tools/prose.py"
    assert old <= OLD, "python tools/prose.py"


def test_docstrings_begin_with_a_verb_or_a_noun_and_use_the_words_of_the_field() -> None:
    found = {str(path.relative_to(ROOT)): TOOL.faults(path.read_text()) for path in TOOL.modules()}
    assert {name: faults for name, faults in found.items() if faults} == {}, "python tools/prose.py"


@pytest.mark.parametrize(
    ("docstring", "number"),
    [
        ("Return the cases of a log.", 0),
        ("What the cases of a log are.", 1),
        ("Return the cases that somebody told us of.", 1),
        ("Return the word ``told``.", 0),
        (f"Return {'x' * 80}.", 1),
    ],
)
def test_faults_of_docstrings_are_found(docstring: str, number: int) -> None:
    assert len(TOOL.faults(f'def cases():\n    """{docstring}"""\n')) == number


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("One two three. Four five.\n", [3, 2]),
        ("One `veilog release --epsilon 1` three, e.g. this one.\n", [6]),
        ("Z. Lin and S. Gopi wrote it.\n", [7]),
        ("- An item\n- another [of two](there.md#words that do not count)\n\nand a paragraph\n", [2, 3, 3]),
        ("| a cell | another cell here |\n|---|---|\n", [2, 3]),
        ("```sh\nveilog info log.xes\n```\n\nText.\n", [1]),
        ("Five of $x = 1 + 2$ are left.\n", [5]),
        ("<!-- python bench/run.py x: y -->\n\nA table.\n\n<!-- end -->\n", []),
    ],
)
def test_sentences_are_those_that_people_read(text: str, lengths: list[int]) -> None:
    assert [TOOL.length(sentence) for sentence in TOOL.sentences(text) if TOOL.length(sentence)] == lengths


def test_a_sentence_of_one_word_more_is_too_long() -> None:
    assert TOOL.too_long(" ".join(["word"] * TOOL.LIMIT) + ".") == []
    assert len(TOOL.too_long("A first one. " + " ".join(["word"] * (TOOL.LIMIT + 1)) + ".")) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody knows.", ["nobody"]),
        ("It leaves the\nhouse.", ["leaves the house"]),
        ("`cases-per-person-bounded` and `cells.jsonl`", []),
        ("[here](promises.md)", []),
        ("An attacker's promises", ["promises"]),
        ("<!-- python bench/run.py x: y -->\n\nprotects nobody\n\n<!-- end -->", []),
        ("cancelled, excellent", []),
    ],
)
def test_old_words_are_found_where_people_read_them(text: str, found: list[str]) -> None:
    assert TOOL.old_words(text) == found


def measured(table: list[str]) -> bool:
    """Return True if most entries after the first column of a table are numbers."""
    entries = [entry.strip(" *~") for row in table[2:] for entry in row.strip("|").split("|")[1:]]
    told = [entry for entry in entries if entry]
    form = re.compile(r"[<≥]?[-+]?[\d.,]+(?: ?(?:%|s|ms|x|GB|MB|kB|[±(\[].*))?")
    numbers = [entry for entry in told if form.fullmatch(entry)]
    return len(numbers) >= 4 and 2 * len(numbers) >= len(told)


def tables(text: str) -> list[list[str]]:
    """Return the tables of a page that no command writes."""
    text = re.sub(r"<!-- (?:python|make) .*?<!-- end -->|^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [found.splitlines() for found in re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)]


def test_numbers_in_tables_come_from_a_command() -> None:
    typed = {name for name, text in PAGES.items() if not TOOL.written(text) and any(measured(t) for t in tables(text))}
    assert typed - set(TYPED) == set(), "between <!-- python bench/run.py NAME: TITLE --> and <!-- end -->"
    assert set(TYPED) - typed == set(), "no exception is needed any more"


@pytest.mark.parametrize("name", [name for name, reason in TYPED.items() if reason == BEFORE])
def test_numbers_of_before_name_their_command(name: str) -> None:
    assert re.search(r"python bench/run\.py|make bench|veilog experiment", PAGES[name])


def test_a_table_of_numbers_is_told_from_one_of_words() -> None:
    numbers = ["| log | a | b |", "|---|---|---|", "| x | 0.5 ± 0.1 | **3** |", "| y | 12 % | 1,234 (0.9) |"]
    assert measured(numbers)
    assert tables("Text\n\n" + "\n".join(numbers) + "\n") == [numbers]
    assert not measured(["| log | a |", "|---|---|", "| x | up to 3 |", "| y | see 12 |"])
    assert tables("<!-- python bench/run.py x: y -->\n\n" + "\n".join(numbers) + "\n\n<!-- end -->\n") == []


def test_the_table_of_advantages_is_that_of_the_code() -> None:
    head, _, row = re.findall(r"^\|.*", PAGES["docs/guessing.md"], re.MULTILINE)[:3]
    assert "guessing advantage" in head
    pairs = zip(head.strip("|").split("|")[1:], row.strip("|").split("|")[1:], strict=True)
    for advantage, epsilon in pairs:
        exact = float(epsilon_of(advantage.strip()))
        assert float(epsilon) <= exact + 1e-12
        assert float(epsilon) > exact - 1e-4, "rounded down"


def test_the_table_to_choose_by_is_that_of_the_code() -> None:
    page = PAGES["docs/how-to/choose-epsilon.md"]
    rows = re.findall(r"^\| ([a-z ]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page, re.MULTILINE)
    borders = re.findall(
        r"^\| ([a-z ]+) \| ([\d.]+) \| ([\d.]+) \| [\d.]+ \|$", PAGES["docs/guarantees.md"], re.MULTILINE
    )
    assert tuple(word for word, *_ in rows) == STRENGTHS[:-1]
    assert [row[:3] for row in rows] == borders
    for _, _, epsilon, chance in rows:
        assert float(chance) == pytest.approx(1 / (1 + 2.718281828459045 ** -float(epsilon)), abs=0.006)

"""No test pins a sentence: codes, values and exit statuses are compared.

A sentence is a text of four words or more in which a word of letters is followed by one in small letters, and that is
no markup, option, query or command. An assertion pins one that it compares with (``==``, ``in``), by itself or within a
tuple, list, set, dict, sum of texts or f-string; ``pytest.raises`` pins one that stands in its ``match``. Arguments of
a call and indices are no sentences that are compared: labels of columns, codes with their values.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
WORDS = re.compile(r"[A-Za-zäöüé]{2,} [a-zäöüé]{2,}")
NO_SENTENCES = ("<", "--", "{", "SELECT", "veilog ", "`veilog ")


def is_sentence(text: object) -> bool:
    return (
        isinstance(text, str)
        and len(text.split()) >= 4
        and WORDS.search(text) is not None
        and not text.lstrip().startswith(NO_SENTENCES)
    )


def compared(node: ast.expr) -> Iterator[object]:
    """Yield the literals of an operand."""
    if isinstance(node, ast.Constant):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.BinOp | ast.IfExp | ast.Starred):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from compared(child)


def pinned(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each assertion that pins a sentence."""
    for node in ast.walk(tree):
        texts: list[object] = []
        if isinstance(node, ast.Assert):
            for part in ast.walk(node.test):
                if isinstance(part, ast.Compare):
                    texts += [text for operand in (part.left, *part.comparators) for text in compared(operand)]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "raises":
            texts = [text for word in node.keywords if word.arg == "match" for text in compared(word.value)]
        else:
            continue
        if any(map(is_sentence, texts)):
            yield node.lineno


def test_what_pins_a_sentence_is_found() -> None:
    for pin in (
        'assert "The log has no cases" in str(error)',
        'assert said == f"The log has {n} cases, no more"',
        'assert told == ("a", ["There are three of them"])',
        'with pytest.raises(ValueError, match="which is not a date"): pass',
    ):
        assert list(pinned(ast.parse(pin))) == [1], pin
    for fine in (
        'assert error.code == "log-without-cases"',
        'assert str(Message("only-looked", at="cases of two wards")) in shown',
        'assert table["best of the others"] == 3',
        'assert "veilog release log to out" in shown',
        'with pytest.raises(ValueError, match="not a date"): pass',
    ):
        assert list(pinned(ast.parse(fine))) == [], fine


def test_no_assertion_pins_a_sentence() -> None:
    found = {
        str(path.relative_to(TESTS)): lines
        for path in sorted(TESTS.rglob("*.py"))
        if (lines := [*pinned(ast.parse(path.read_text()))])
    }
    assert not found, "assert codes and values instead"

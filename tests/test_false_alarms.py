"""Tests with chance in them state how often a correct program fails them."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
MOST = 1e-3


def functions(word: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the tests and fixtures of the files that contain a word."""
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text()
        if word in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    yield f"{path.relative_to(TESTS)}:{node.lineno}", node


def marks(function: ast.FunctionDef) -> list[tuple[float, str]]:
    """Return the rates and reasons of a test: numbers and literal texts."""
    found = []
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.false_alarm":
            rate, why = map(ast.literal_eval, decorator.args)
            found.append((rate, why))
    return found


def test_all_tests_together_raise_hardly_ever_a_false_alarm() -> None:
    marked = {place: marks(function) for place, function in functions("mark.false_alarm(")}
    stated = {place: found[0] for place, found in marked.items() if found}
    assert all(len(found) <= 1 for found in marked.values())
    assert all(0 < rate < MOST and len(why) > 20 for rate, why in stated.values()), stated
    assert 0 < sum(rate for rate, _ in stated.values()) < MOST
    written = sum(path.read_text().count("@pytest.mark.false_alarm(") for path in TESTS.rglob("test_*.py"))
    assert written == len(stated) + 1, "one is written here; no mark may escape this count"


def test_who_takes_the_systems_randomness_says_how_often_it_fails() -> None:
    takers = [
        (place, function)
        for place, function in functions("operating_system")
        if "operating_system" in {argument.arg for argument in function.args.args}
    ]
    assert takers
    assert [place for place, function in takers if not marks(function)] == []

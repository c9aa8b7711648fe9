"""Sentences about methods are made from measured data, wherever they stand."""

import re
from pathlib import Path

import pytest
from refusals import refused

from veilog.errors import ParameterError
from veilog.methods import METHODS
from veilog.methods.benchmark_facts import BenchmarkSimilarity, ahead_in, measured
from veilog.releasing import suggest

ROOT = Path(__file__).parents[2]
COUNTS = re.compile(r"\b(\d+ of (?:the )?\d+|all) (?:of the same )?(?:measured )?(?:cells|settings|rows)\b")


def invented(**similarity: float) -> BenchmarkSimilarity:
    """Return similarities on one log at two epsilons, the second half as good."""
    found = {name: {"log": {"1": value, "0.1": value / 2}} for name, value in similarity.items()}
    return BenchmarkSimilarity(("log",), ("1", "0.1"), 5, tuple(similarity), found)


def test_settings_are_counted_where_the_mean_is_above_all_others() -> None:
    found = invented(evolve=0.8, laplace=0.6, sapa=0.8)
    assert found.settings == 2
    assert found.won("evolve", ("laplace",)) == 2
    assert found.won("evolve", ("laplace", "sapa")) == 0, "equal is not ahead"


def test_all_is_said_in_a_word_and_the_unknown_refused() -> None:
    counts = {name: ahead_in(name) for name in ("evolve", "laplace", "sacofa", "df-laplace", "sapa", "pripel", "libra")}
    assert all(re.fullmatch(rf"\d+ of {measured().settings}|all", said) for said in counts.values())
    for name, said in counts.items():
        if name != "evolve":
            won = measured().won("evolve", (name,))
            assert said == ("all" if won == measured().settings else f"{won} of {measured().settings}")
    with refused(ParameterError, "method-not-measured"):
        ahead_in("pretsa")


def considered() -> dict[str, str]:
    return {name: method.weighed for name, method in METHODS.items() if method.weighed}


def test_what_suggest_says_of_each_method_is_what_was_measured() -> None:
    for name, said in considered().items():
        counted = COUNTS.findall(said)
        assert counted == ([ahead_in(name)] if counted else []), name
    assert len([said for said in considered().values() if COUNTS.search(said)]) == 7
    reason = suggest._pick_by_answers(1000.0, suggest._Answers(1000, 10)).reason
    assert reason.values["cells"] == ahead_in("evolve")


def test_what_the_pages_say_of_each_method_is_what_was_measured() -> None:
    said = {name: COUNTS.findall(f"{method.title} {method.advice}") for name, method in METHODS.items()}
    assert {name: counted for name, counted in said.items() if counted} == {
        "evolve": [ahead_in("evolve")],
        "laplace": [ahead_in("laplace")],
    }


@pytest.mark.parametrize(
    ("page", "methods"),
    [
        ("how-to/choose-a-method.md", ["evolve"]),
        ("suggest.md", ["evolve", "pripel", "libra"]),
    ],
)
def test_what_the_docs_say_is_what_was_measured(page: str, methods: list[str]) -> None:
    text = " ".join((ROOT / "docs" / page).read_text().split()).replace("of the 20 rows", "of 20 rows")
    for name in methods:
        assert re.search(rf"\b{ahead_in(name)}\b", text), name

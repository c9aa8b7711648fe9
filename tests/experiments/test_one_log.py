"""``veilog.benchmark``: methods and budgets compared on one log."""

import re
from typing import Any

import pytest
from refusals import refused

import veilog
from veilog.errors import ParameterError
from veilog.experiments.experiment import Cell, Given
from veilog.experiments.frontier import CERTIFIED, compared, measure
from veilog.logs.synthetic.hospital import hospital


@pytest.fixture(scope="module")
def log() -> veilog.EventLog:
    return hospital(40, seed=1)


@pytest.fixture(scope="module")
def found(log: veilog.EventLog) -> veilog.Benchmark:
    methods = ["laplace", "travas"]
    return veilog.benchmark(log, methods, epsilons=[1, "0.1"], delta="1e-3", runs=2, use_cases=["conformance"])


@pytest.mark.nightly
def test_it_has_a_row_for_each_method_budget_and_run(found: veilog.Benchmark) -> None:
    frame = found.to_frame()
    names = ["laplace", "laplace, delta 0.001", "travas, delta 0.001"]
    assert list(dict.fromkeys(frame.compared)) == names
    assert len(frame) == len(found) == 3 * 2 * 2
    assert set(frame.epsilon) == {1.0, 0.1} and set(frame.run) == {0, 1}
    assert (frame.derived_epsilon <= frame.epsilon * (1 + 1e-9)).all()
    assert frame.similarity.between(0, 1).all()
    assert frame.conformance.dropna().between(0, 1.5).all() and frame.conformance.notna().any()


@pytest.mark.slow
def test_its_numbers_are_those_of_the_frontier(found: veilog.Benchmark, log: veilog.EventLog) -> None:
    frame = found.to_frame()
    row = frame[(frame.compared == "laplace") & (frame.epsilon == 1) & (frame.run == 1)].iloc[0]
    _, settings = compared(CERTIFIED, "0.001")["laplace"]
    again = measure(Given(None, part=log), Cell("", "laplace", (("epsilon", "1"), *settings), 1)).values
    for name in ("similarity", "risk", "next_activity", "rules", "size_ratio", "real"):
        assert row[name] == again[name]


@pytest.mark.slow
def test_its_pictures_show_every_method_once(found: veilog.Benchmark) -> None:
    for measure_ in ("similarity", "rules"):
        svg = found.plot(measure_)
        assert svg.startswith("<svg") and all(svg.count(f">{name}<") == 1 for name in found.compared)
    with pytest.raises(ParameterError, match="similarity"):
        found.plot("beauty")
    html = found._repr_html_()
    assert "<svg" in html and "prefers-color-scheme:dark" in html and not re.search(r'(src|href)="(?!#)', html)


@pytest.mark.slow
def test_what_a_method_refuses_is_its_problem_alone(log: veilog.EventLog) -> None:
    found = veilog.benchmark(log, ["travas", "evolve"], epsilons=["0.001"], delta="0.3", runs=1)
    frame = found.to_frame().set_index("compared")
    assert frame.similarity["evolve"] >= 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"methods": ["evolv"]}, "method-unknown"),
        ({"methods": "pretsa"}, "benchmark-method-not-certified"),
        ({"methods": ["travas"]}, "benchmark-without-delta"),
        ({"runs": 0}, "benchmark-runs-too-few"),
        ({"epsilons": []}, "benchmark-without-epsilon"),
        ({"epsilons": [-1]}, "budget-not-positive"),
        ({"use_cases": ["predicton"]}, "use-case-unknown"),
        ({"log": 1}, "log-not-given"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments: dict[str, Any], words: str, log: veilog.EventLog) -> None:
    given = {"log": log, "methods": ["evolve"], **arguments}
    with refused(veilog.VeilogError, words):
        veilog.benchmark(given.pop("log"), **given)
    with refused(ParameterError, "benchmark-of-variants"):
        veilog.benchmark(log.variants)


def test_what_can_use_a_delta_is_there_without_one_and_with_one() -> None:
    names = ["evolve", "evolve, delta 0.001", "evolve, only real, delta 0.001", "travas, delta 0.001"]
    assert list(compared(["evolve", "travas"], "0.001")) == names
    assert list(compared(["evolve", "travas"], None)) == ["evolve"]

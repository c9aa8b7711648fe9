"""Methods are ranked by measurements with a like product of epsilon and cases."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

import veilog
from veilog import ParameterError, Variants, cli
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message
from veilog.privacy.curator import Curator
from veilog.releasing import suggest as ranking
from veilog.releasing.suggest import Ranking

LOG = Variants.from_dict({("a", "b"): 700, ("a", "c"): 200, ("a", "b", "c"): 100})


def told(**changes: Any) -> dict[str, Any]:
    """Return results on three logs of 1,000 cases and one of a million; b suits few."""

    def numbers(**few_and_many: tuple[float, float]) -> dict[str, dict[str, dict[str, float]]]:
        return {
            name: {"x": {"1": few}, "y": {"1": few}, "z": {"1": few}, "large": {"1": many}}
            for name, (few, many) in few_and_many.items()
        }

    return {
        "use_cases": {
            "next_activity": numbers(a=(0.4, 0.8), b=(0.6, 0.7), real=(0.2, 0.75)),
            "fitness": numbers(a=(1.0, 1.0), b=(0.6, 0.6)),
            "precision": numbers(a=(0.4, 0.4), b=(1.0, 1.0)),
            "f_score": numbers(a=(0.57, 0.57), b=(0.75, 0.75)),
            "rules": numbers(a=(0.2, 0.01), b=(0.05, 0.02), real=(0.04, 0.01)),
        },
        "originals": {
            "next_activity": dict.fromkeys(("x", "y", "z", "large"), 0.8),
            "fitness": dict.fromkeys(("x", "y", "z", "large"), 1.0),
            "precision": dict.fromkeys(("x", "y", "z", "large"), 0.5),
        },
        "cases": {"x": 1_000, "y": 1_000, "z": 1_500, "large": 1_000_000},
        "asked": {
            "a": {"method": "laplace", "delta": False, "settings": {}},
            "b": {"method": "sapa", "delta": False, "settings": {}},
            "real": {"method": "evolve", "delta": True, "settings": {"only_real": True}},
        },
        **changes,
    }


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_load_rankings", told)


def names(use_case: str, scale: float, *, delta: bool) -> list[str]:
    return [one.name for one in Ranking.of(use_case, told()).ranked(scale, delta=delta)[0]]


def test_what_counts_is_what_was_measured_where_noise_leaves_as_much() -> None:
    assert set(Ranking.of("prediction", told()).places(1_000)) == {("x", "1"), ("y", "1"), ("z", "1")}
    assert Ranking.of("prediction", told()).places(1e6)[0] == ("large", "1")
    assert len(Ranking.of("prediction", told()).places(1e6)) == ranking.FEWEST
    assert names("prediction", 1_000, delta=False) == ["b", "a"]


def test_a_share_is_kept_of_what_the_log_itself_gives_and_the_worse_of_two_counts() -> None:
    first, second = Ranking.of("discovery", told()).ranked(1_000, delta=False)[0]
    assert (first.name, first.value) == ("a", pytest.approx(0.8)), "precision .4 where the log's own model has .5"
    assert (second.name, second.value) == ("b", pytest.approx(0.6)), "an F-score of .75 does not help a fitness of .6"
    assert first.numbers == pytest.approx({"fitness": 1.0, "precision": 0.4, "f_score": 0.57})


def test_of_an_error_less_is_better() -> None:
    assert names("conformance", 1_000, delta=True) == ["real", "b", "a"]


def test_what_was_not_measured_or_needs_a_delta_is_not_ranked_and_why_is_said() -> None:
    order, why = Ranking.of("discovery", told()).ranked(1_000, delta=True)
    assert [one.name for one in order] == ["a", "b"]
    assert why["real"].code == "not-ranked-not-measured"
    assert Ranking.of("prediction", told()).ranked(1_000, delta=False)[1] == {"real": Message("not-ranked-needs-delta")}


@pytest.mark.parametrize("use_case", ["performance", "nonsense", ""])
def test_a_purpose_that_methods_are_not_ranked_for_is_refused(use_case: str) -> None:
    with refused(ParameterError, "suggestion-use-case-not-ranked"):
        Ranking.of(use_case, told())


def test_nothing_is_asked_or_spent_where_nothing_was_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ranking, "_load_rankings", lambda: told(use_cases={}))
    monkeypatch.setattr(Curator, "count", lambda *_, **__: pytest.fail("asked"))
    with refused(ParameterError, "suggestion-without-measured-method"):
        veilog.suggest(LOG, epsilon=1, for_="prediction", ledger=tmp_path / "own.ledger")
    assert not (tmp_path / "own.ledger").exists()


@pytest.mark.usefixtures("measured")
def test_a_suggestion_for_a_use_case_asks_for_the_cases_only_and_tells_its_settings() -> None:
    found = veilog.suggest(LOG, epsilon="1", delta="1e-5", for_="conformance", seed=1)
    assert (found.method, found.settings, found.covered) == ("evolve", (("only_real", True),), None)
    assert [charge.question for charge in found.guarantee.charges] == ["count"]
    assert found.delta_left == Fraction(1, 10**5), "no part of it was spent"
    assert found.arguments() == "--method evolve --epsilon 0.9 --delta 0.00001 -p only_real=true"
    assert (found.reason.code, found.reason.values["use_case"]) == ("suggested-by-error", "conformance")
    assert found.promising
    facts = found.to_json()
    assert facts["for"] == "conformance" and facts["settings"] == {"only_real": True}
    assert [one["name"] for one in facts["ranking"]] == ["real", "b", "a"]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("measured")
def test_a_method_that_spends_no_delta_is_given_none() -> None:
    found = veilog.suggest(LOG, epsilon="1", delta="1e-5", for_="prediction", seed=1)
    assert found.arguments() == "--method sapa --epsilon 0.9"
    assert found.promising and not found.spends_delta


@pytest.mark.slow
def test_for_similarity_nothing_is_told_that_was_not_before() -> None:
    assert not {"for", "settings", "ranking", "not_ranked", "spends_delta"} & set(
        veilog.suggest(LOG, epsilon=1, seed=1).to_json()
    )


@pytest.mark.slow
@pytest.mark.usefixtures("measured")
def test_the_command_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.xes"
    veilog.write(hospital(50, seed=3), path)
    words = ["suggest", str(path), "--epsilon", "1", "--for", "discovery"]
    assert cli.main([*words, "--json", "-"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["for"], facts["method"]) == ("discovery", "laplace")
    assert facts["not_ranked"]["real"] == Message("not-ranked-needs-delta").english
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert "f score" in shown and "0.400" in shown and "--method laplace --epsilon 0.9" in shown
    assert cli.main([*words[:-1], "delays"]) != 0

"""A suggestion sees the log by charged queries, leaves the rest, and fits."""

from __future__ import annotations

import functools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import openly
import pytest
from refusals import refused

import veilog
from veilog import Ledger, ParameterError, Variants, cli
from veilog.errors import BudgetError
from veilog.logs.synthetic.hospital import hospital, variants_only
from veilog.measures.similarity import relative_log_similarity
from veilog.privacy.curator import Curator
from veilog.releasing import suggest

FEW = Variants.from_dict({("a", "b"): 7_000, ("a", "c"): 2_000, ("a", "b", "c"): 900, ("d",): 1})
RARE = Variants.from_sequences([("a", f"b{i % 50}", f"c{i // 50}") for i in range(2_000)])


def test_it_costs_its_share_and_leaves_the_rest() -> None:
    found = veilog.suggest(FEW, epsilon="0.5", delta="1e-5")
    assert found.guarantee.proven
    assert found.guarantee.epsilon == 0.05 and 9e-7 < (found.guarantee.delta or 0) <= 1e-6
    assert (found.epsilon_left, found.delta_left) == (Fraction(45, 100), Fraction(9, 10**6))
    assert found.arguments() == "--method evolve --epsilon 0.45 --delta 0.000009"
    third = veilog.suggest(FEW, epsilon="1", share="0.25")
    assert third.guarantee.epsilon == 0.25
    assert third.guarantee.delta == 0


@pytest.mark.slow
def test_what_is_left_can_be_released_with() -> None:
    found = veilog.suggest(FEW, epsilon="0.5", delta="1e-5")
    words = found.arguments().split()
    released = openly.release(FEW, words[1], epsilon=words[3], delta=words[5])
    assert Fraction(str(released.guarantee.epsilon)) + Fraction(str(found.guarantee.epsilon)) == Fraction(1, 2)


def test_it_never_peeks(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("peeked")

    monkeypatch.setattr(Curator, "peek", forbidden)
    monkeypatch.setattr(Curator, "peek_log", forbidden)
    assert veilog.suggest(FEW, epsilon=1, delta="1e-4").guarantee.proven


def test_everything_it_says_follows_from_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two different logs that gave the same answers get the same words."""
    answer = Variants.from_dict({("a",): 500})
    monkeypatch.setattr(Curator, "count", lambda self, epsilon, **_: 1_000)
    monkeypatch.setattr(Curator, "partitions", lambda self, epsilon, delta, **_: answer)
    monkeypatch.setattr(Curator, "concentration", lambda self, number, share, epsilon, **_: 100)
    monkeypatch.setattr(Curator, "histogram", lambda self, assign, size, epsilon, **_: np.full(size, 40))
    few, rare = (veilog.suggest(log, epsilon=1, delta="1e-4") for log in (FEW, RARE))
    assert few == rare and few.sizes is not None


def test_few_variants_and_a_small_budget_get_travas_a_larger_one_evolve_with_its_delta() -> None:
    small, larger = (veilog.suggest(FEW, epsilon=epsilon, delta="1e-4", seed=1) for epsilon in ("0.02", "1"))
    assert (small.method, larger.method) == ("travas", "evolve")
    assert small.delta_left == larger.delta_left == Fraction(9, 10**5)
    without = veilog.suggest(FEW, epsilon=1, seed=1)
    assert (without.method, without.delta_left) == ("evolve", 0)


def test_what_a_delta_is_for_is_said() -> None:
    rare = veilog.suggest(RARE, epsilon="0.5", delta="1e-4", seed=1)
    assert (rare.method, rare.delta_left) == ("evolve", Fraction(9, 10**5))
    assert "suggestion-evolve-without-delta" in [remark.code for remark in rare.remarks]
    assert "Without the delta" not in str(veilog.suggest(RARE, epsilon="0.5", seed=1).remarks)


@pytest.mark.slow
def test_a_budget_too_small_for_anything_is_called_so() -> None:
    found = veilog.suggest(RARE, epsilon="0.001", seed=1)
    assert not found.promising
    assert found.reason.code == "suggested-little-epsilon"
    assert veilog.suggest(FEW, epsilon=1, seed=1).promising


def test_a_delta_too_large_is_remarked() -> None:
    assert "suggestion-delta-too-large" in [one.code for one in veilog.suggest(FEW, epsilon=1, delta="0.01").remarks]


def test_a_suggestion_of_evolve_says_that_the_activities_are_to_be_declared() -> None:
    said = "suggestion-evolve-activities-undeclared"
    assert said in [one.code for one in veilog.suggest(RARE, epsilon="0.5", seed=1).remarks]
    declared = veilog.Domain.of(RARE.labels)
    assert said not in [one.code for one in veilog.suggest(RARE, epsilon="0.5", seed=1, domain=declared).remarks]


def test_every_method_considered_is_certified() -> None:
    assert all(veilog.METHODS[name].certified for name in veilog.suggest(FEW, epsilon=1).considered)


@functools.lru_cache(maxsize=1)
def variants_of(log: Path) -> Variants:
    return veilog.read_variants(log)


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(
    ("name", "epsilon", "expected"),
    [
        ("sepsis", "1", "evolve"),
        ("sepsis", "0.1", "evolve"),
        ("bpic2013_incidents", "1", "evolve"),
        ("bpic2013_incidents", "0.1", "evolve"),
        ("traffic_fines", "1", "evolve"),
        ("traffic_fines", "0.1", "evolve"),
        ("unrineweginfectie", "1", "evolve"),
        ("receipt", "1", "evolve"),
        ("receipt", "0.01", "travas"),
    ],
)
def test_public_logs_get_what_was_measured_best_or_within_a_hundredth(
    logs: Path, name: str, epsilon: str, expected: str
) -> None:
    log = variants_of(logs / f"{name}.xes.gz")
    found = [veilog.suggest(log, epsilon=epsilon, delta="1e-4", seed=seed).method for seed in range(10)]
    assert found.count(expected) >= 9


@pytest.mark.slow
def test_the_ledger_is_charged_and_refuses(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "log.ledger", create=True)
    ledger.set_budget(FEW, "0.15", "1e-4")
    veilog.suggest(FEW, epsilon=1, delta="1e-4", ledger=ledger)
    account = ledger.account(FEW)
    assert account is not None
    assert account.entries[0].method == "suggest"
    assert account.totals()["spent"]["epsilon"] == pytest.approx(0.1)  # type: ignore[index]
    with pytest.raises(BudgetError):
        veilog.suggest(FEW, epsilon=1, delta="1e-4", ledger=ledger)


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"epsilon": 1, "share": 1}, {"epsilon": 1, "delta": 1}])
def test_impossible_budgets_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        veilog.suggest(FEW, **wrong)


def test_an_empty_log_gets_a_suggestion_like_any_other() -> None:
    assert veilog.suggest(Variants.from_dict({}), epsilon=1).guarantee.proven


# The commands -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("logs") / "log.xes"
    veilog.write(hospital(200, seed=3), target)
    return target


@pytest.mark.nightly
def test_the_command_suggests(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["suggest", str(path), "--epsilon", "1", "--delta", "1e-4", "--json", "-"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["method"] in ("evolve", "travas")
    assert facts["epsilon_left"] == 0.9
    assert facts["guarantee"]["epsilon"] == 0.1
    assert set(facts) >= {"reason", "promising", "cases", "covered", "frequent", "considered", "remarks", "arguments"}
    assert cli.main(["suggest", str(path), "--epsilon", "1"]) == 0
    out = capsys.readouterr().out
    assert "--method evolve --epsilon 0.9 --activities @FILE" in out, "which is still to be said"
    assert cli.main(["suggest", str(path), "--epsilon", "1", "--activities", "log"]) == 0
    (told,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("  veilog release "))
    told = told.replace("TARGET", str(tmp_path / "out.xes"))
    assert cli.main([*told.split()[1:], "--no-compare"]) == 0, "the command that it tells can be given"
    assert cli.main(["suggest", str(path), "--epsilon", "0"]) == 2


@pytest.mark.slow
def test_the_command_leaves_reports(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = ["--report", str(tmp_path / "in.html"), "--recipient-report", str(tmp_path / "out.html")]
    release = ["release", str(path), str(tmp_path / "r.xes"), "-m", "travas", "--epsilon", "1", "--delta", "1e-3"]
    assert cli.main([*release, *pages]) == 0
    assert "holds exact numbers" in capsys.readouterr().out
    assert "Not for release" in (tmp_path / "in.html").read_text()
    assert "Not for release" not in (tmp_path / "out.html").read_text()
    assert cli.main(["report", str(tmp_path / "r.xes"), str(tmp_path / "again.html"), "--json", "-"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["version"], facts["guarantee"]["epsilon"]) == ("recipient", 1.0)
    again = [str(tmp_path / "r.xes"), str(tmp_path / "again.html"), "--original", str(path), "--overwrite"]
    assert cli.main(["report", *again]) == 0
    assert "Not for release" in (tmp_path / "again.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        ["--report", "page.txt"],
        ["--recipient-report", "none/page.html"],
        ["--report", "page.html", "--recipient-report", "page.html"],
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_is_spent(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["release", str(path), "r.xes", "-m", "evolve", "--epsilon", "1", *wrong]) in (2, 5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_a_wide_log_is_not_called_promising() -> None:
    """A log of 400 activities and 30 events a case is not called promising."""
    log = variants_only(300, 400, 30)
    found = veilog.suggest(log, epsilon=1, activities=400, seed=1)
    assert found.by_rule and not found.promising
    assert found.expected is not None and found.expected.doubt.code.startswith("little-kept")
    reached = openly.release(log, "evolve", epsilon="0.9", seed=1).variants
    assert relative_log_similarity(log, reached).value < 0.6


@pytest.mark.slow
def test_activities_are_declared_as_for_a_release() -> None:
    """Activities are declared as for a release: log, names, or a number."""
    log = hospital(60, seed=1)
    names = log.variants.labels
    for given, domain in (("log", veilog.Domain.of("log")), (names, veilog.Domain.of(names))):
        found = veilog.suggest(log, epsilon=1, seed=1, activities=given)
        assert found.to_json() == veilog.suggest(log, epsilon=1, seed=1, domain=domain).to_json()
        assert not any("has to know" in remark for remark in found.remarks)
    with refused(ParameterError, "activities-declared-twice"):
        veilog.suggest(log, epsilon=1, activities="log", domain=veilog.Domain.of(names))
    with refused(ParameterError, "twin-number-out-of-range"):
        veilog.suggest(log, epsilon=1, activities=1.5)  # type: ignore[arg-type]


def test_a_plan_can_be_made_of_what_is_suggested_where_only_the_number_of_activities_is_public() -> None:
    found = veilog.suggest(FEW, epsilon=1, activities=3, seed=1)
    assert found.sizes is not None and found.sizes.activities == 3


def test_with_a_delta_and_next_to_no_budget_travas_is_left() -> None:
    few = suggest._Answers(10, 1, covered=0.1, frequent=0)
    picked = suggest._pick_by_answers(10.0, few)
    assert (picked.method, picked.reason.code, picked.promising) == ("travas", "suggested-travas-little-epsilon", False)

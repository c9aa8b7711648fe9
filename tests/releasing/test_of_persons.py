"""Queries before a release for persons are bounded by person, like the release."""

from __future__ import annotations

import shlex
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from refusals import refused, sentence

import veilog
from veilog import BudgetError, EventLog, Ledger, ParameterError, cli
from veilog.privacy.curator import Curator
from veilog.releasing.preview import twin
from veilog.releasing.suggest import suggest

WHOM = {"unit": "Patient", "max_cases": 2}


def visits(of_each: int, people: int = 50) -> EventLog:
    """Return so many visits of two events for each of so many people."""
    rows = [
        {"case": f"{who}-{i}", "activity": what, "timestamp": f"2024-01-{1 + i:02d}T1{hour}:00:00Z", "Patient": who}
        for who in range(people)
        for i in range(of_each)
        for hour, what in enumerate("ab")
    ]
    return veilog.read(pd.DataFrame(rows))


@pytest.mark.parametrize("for_", ["similarity", "prediction"])
def test_a_suggestion_for_people_costs_a_person_its_share_and_leaves_the_rest(for_: str) -> None:
    found = suggest(visits(3), epsilon=1, delta="1e-4", for_=for_, **WHOM)
    g = found.guarantee
    assert (g.proven, g.unit, g.epsilon) == (True, "person", 0.1)
    assert g.neighbours.plain().values["column"] == "'Patient'" and (g.delta or 0) <= 1e-5  # noqa: PD011
    assert sum(charge.epsilon for charge in g.charges) == Fraction(1, 10)
    assert found.epsilon_left == Fraction(9, 10)


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["suggest", "twin"])
def test_what_is_asked_of_people_sees_so_many_cases_of_each(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another visit of a person who has two changes no query's input."""
    seen: list[int] = []
    whole = Curator.__init__

    def watched(self: Curator, held: object, **more: object) -> None:
        seen.append(held.variants.cases)  # type: ignore[attr-defined]
        whole(self, held, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Curator, "__init__", watched)
    for of_each in (2, 3, 7):
        suggest(visits(of_each), epsilon=1, **WHOM) if ask == "suggest" else twin(visits(of_each), epsilon=1, **WHOM)  # type: ignore[arg-type]
    assert seen == [100, 100, 100]


def test_the_noise_of_an_answer_is_that_of_a_person() -> None:
    held = visits(2)
    for_a_case, for_a_person = (suggest(held, epsilon=1, **whom) for whom in ({}, WHOM))  # type: ignore[arg-type]
    assert for_a_person.cases_within >= 2 * for_a_case.cases_within - 1
    assert for_a_person.reason.code == "suggested-for-persons" != for_a_case.reason.code


@pytest.mark.slow
def test_the_release_that_is_suggested_is_for_the_same_people(tmp_path: Path) -> None:
    held = visits(3)
    found = suggest(held, epsilon=1, without_person="own", **WHOM)
    assert "--unit Patient --max-cases 2 --without-person own" in found.arguments()
    planned = found.plan(activities="log")
    assert planned.unit == found.unit and planned.unit.column == "Patient"
    ledger = Ledger.open(tmp_path / "log.ledger", create=True)
    ledger.set_budget(held, 1, unit="Patient")
    suggest(held, epsilon=1, ledger=ledger, **WHOM)
    planned.run(held, ledger=ledger)
    account = ledger.account(held)
    assert account is not None and account.spent is not None and account.spent[0] == 1, "both are of one account"
    with refused(BudgetError, "unit-not-of-budget"):
        suggest(held, epsilon=1, ledger=ledger)


def test_a_twin_of_people_costs_a_person_what_was_asked_and_is_of_the_cases_that_count(tmp_path: Path) -> None:
    held = visits(6)
    ledger = Ledger.open(tmp_path / "log.ledger", create=True)
    found = twin(held, epsilon=40, ledger=ledger, **WHOM)
    assert found.guarantee is not None and found.guarantee.unit == "person" and found.guarantee.epsilon == 40
    assert abs(found.sizes.cases - 100) < 10, "100 of 300 count"
    (entry,) = ledger.account(held).entries  # type: ignore[union-attr]
    assert (entry.unit, entry.parameters) == ("Patient", {"max_cases": 2})


def test_a_twin_of_declared_sizes_protects_no_one() -> None:
    with refused(ParameterError, "sizes-unit-without-epsilon"):
        twin(cases=50, length=4, **WHOM)


@pytest.mark.slow
def test_the_commands_ask_for_people_and_say_the_release_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    veilog.write(visits(3), tmp_path / "log.csv")
    whom = ["--unit", "Patient", "--max-cases", "2"]
    assert cli.main(["suggest", "log.csv", "--epsilon", "1", "--activities", "log", *whom]) == 0
    out = capsys.readouterr().out
    (told,) = (line for line in out.splitlines() if line.startswith("  veilog release "))
    assert "--unit Patient --max-cases 2" in told and "one person" in out
    uncounted = sentence("persons-over-bound", persons=50, over=50, most=2, left=50, cases=150)
    assert uncounted in " ".join(out.split())
    assert cli.main([*shlex.split(told.replace("TARGET", "out.xes"))[1:], "--no-compare"]) == 0
    capsys.readouterr()
    assert cli.main(["twin", "log.csv", "twin.xes", "--epsilon", "20", *whom]) == 0
    assert "--unit person --max-cases 2" in " ".join(capsys.readouterr().out.split())
    for command in ("suggest", "twin"):
        assert cli.main([command, "log.csv", "--epsilon", "1", "--unit", "Patiend", "--max-cases", "2"]) == 2
        assert sentence("did-you-mean", near="Patient") in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_dry_run_with_declared_sizes_says_that_they_are_of_the_cases_that_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    veilog.write(visits(3), tmp_path / "log.csv")
    dry = ["release", "log.csv", "out.xes", "-m", "laplace", "--epsilon", "1", "-p", "depth=2", "--activities", "a,b"]
    dry += ["--dry-run", "--cases", "100", "--length", "2"]
    for whom, said in (([], False), (["--unit", "Patient", "--max-cases", "2"], True)):
        assert cli.main([*dry, *whom]) == 0
        assert ("of people" in capsys.readouterr().out) == said

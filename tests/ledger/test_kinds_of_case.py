"""The kind of a case is part of the sum: a visit and a patient are not the same."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from refusals import refused, sentence

import veilog
from veilog.cli import main
from veilog.cli.shared.accounts import account_line
from veilog.errors import BudgetError, ParameterError
from veilog.ledger.entry import kind_of_case
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import CASE
from veilog.messages import Message

READ = ("--timestamp", "Beginn", "--activity", "Aktion")
ASKED = ("-m", "laplace", "--epsilon", "1", "--activities", "a,b", "--max-length", "4", "--no-compare")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.ledger"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return visits of patients, of whom each has several."""
    rows = [f"F{i},P{i % 150},{a},2024-03-{1 + i % 28:02} 0{j}:00" for i in range(600) for j, a in enumerate("ab")]
    (tmp_path / "w.csv").write_text("\n".join(["Fallnr,Patient,Aktion,Beginn", *rows]) + "\n")
    return tmp_path / "w.csv"


def logs_of(table: Path) -> dict[str, veilog.EventLog]:
    return {
        case: veilog.read(table, case=case, activity="Aktion", timestamp="Beginn") for case in ("Fallnr", "Patient")
    }


@pytest.mark.slow
def test_a_release_of_patients_is_refused_on_an_account_of_visits(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release of patients is refused on an account of visits, whose case loses more."""
    out = str(table.with_name("out.xes"))

    def by(case: str, *more: str) -> tuple[int, str]:
        status = main([*more, *READ, "--case", case])
        return status, " ".join(capsys.readouterr().err.split())

    visits, patients = (
        ("release", str(table), out, *ASKED, "--overwrite"),
        ("ledger", "set", str(table), "--account", "1"),
    )
    assert by("Fallnr", "ledger", "set", str(table), "--epsilon", "2") == (0, "")
    assert by("Fallnr", *visits)[0] == 0
    assert by("Patient", *patients)[0] == 0
    status, said = by("Patient", *visits)
    assert status == 3
    assert sentence("account-case-kind-differs", listed="'Fallnr'", kind="Patient") in said and "--unit COLUMN" in said
    assert by("Fallnr", *visits)[0] == 0, "what there was is as it was"
    (account,) = Ledger.open(f"{table}.ledger").show()
    assert account.spent == (2, 0)


@pytest.mark.slow
def test_without_a_budget_nothing_bounds_releases_of_visits_and_of_patients(
    table: Path, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = logs_of(table)
    ledger = Ledger.open(path, create=True)
    ledger.reserve(logs["Fallnr"], "laplace", epsilon=Fraction(1))
    ledger.enter(logs["Patient"], account=1)
    (before,) = ledger.show()
    assert before.spent == (1, 0) and "kinds_of_case" not in before.totals()
    failed = ledger.reserve(logs["Patient"], "laplace", epsilon=Fraction(1))
    failed.withdraw()
    assert ledger.show()[0].spent == (1, 0), "what was withdrawn asked nothing"
    ledger.reserve(logs["Patient"], "laplace", epsilon=Fraction(1))
    (account,) = ledger.show()
    assert (account.spent, account.strength, account.together(Fraction(1, 100))) == (None, "none in practice", None)
    assert account.totals()["kinds_of_case"] == ["Fallnr", "Patient"]
    assert account.why_unbounded == Message("account-of-several-kinds", names="'Fallnr' and 'Patient'")
    assert "'Fallnr' and 'Patient'" in account_line(account)
    assert main(["ledger", "show", str(path), "--json", str(tmp_path / "out.json")]) == 0
    assert str(account.why_unbounded) in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())["accounts"][0]["spent"] is None
    limited = ledger.set_budget(logs["Patient"], 9)
    assert limited.left == (0, 0)
    with refused(
        BudgetError, "account-case-kind-differs", listed="'Fallnr' and 'Patient'", kind="Patient", before="Fallnr"
    ):
        ledger.reserve(logs["Patient"], "laplace", epsilon=Fraction(1))


@pytest.mark.slow
@pytest.mark.parametrize("limited", ["Fallnr", "Patient"])
@pytest.mark.parametrize("unit", ["case", "Patient"])
def test_accounts_whose_releases_do_not_add_up_are_put_together_only_without_a_budget(
    table: Path, path: Path, limited: str, unit: str
) -> None:
    """Accounts of visits and of patients merge only without a budget.

    The same holds for cases and people. Merged accounts cannot be separated again.
    """
    logs = logs_of(table)
    ledger = Ledger.open(path, create=True)
    ledger.reserve(logs["Fallnr"], "laplace", epsilon=Fraction(1))
    ledger.reserve(logs["Patient"], "laplace", epsilon=Fraction(1), unit=unit)
    ledger.set_budget(logs[limited], 3)
    before = ledger.show()
    for put in (
        lambda: ledger.enter(logs["Patient"], account=1),
        lambda: ledger.set_budget(logs["Patient"], 3, account=1),
    ):
        with refused(ParameterError, "account-units-differ", number=1, number_2=2):
            put()
        assert ledger.show() == before, "nothing was changed"
    ledger.set_budget(logs[limited], None)
    ledger.enter(logs["Patient"], account=1)
    (account,) = ledger.show()
    assert account.spent is None and account.why_unbounded.code.startswith("account-of-")
    assert "epsilon" not in account_line(account).partition(";")[0]


def test_accounts_of_the_same_kind_are_put_together_with_their_budget(table: Path, path: Path) -> None:
    log = logs_of(table)["Fallnr"]
    ledger = Ledger.open(path, create=True)
    ledger.reserve(log, "laplace", epsilon=Fraction(1))
    fewer = log.only(list(range(500)))
    ledger.reserve(fewer, "laplace", epsilon=Fraction(1))
    ledger.set_budget(log, 3)
    assert ledger.enter(fewer, account=1).spent == (2, 0)


@pytest.mark.slow
def test_variants_say_what_their_cases_are(table: Path, path: Path) -> None:
    """Variants know the kind of their cases, from pages and from large tables."""
    logs = logs_of(table)
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(logs["Fallnr"].variants, 3)
    ledger.reserve(logs["Fallnr"].variants, "laplace", epsilon=Fraction(1))
    grouped = veilog.read_variants(table, case="Patient", activity="Aktion", timestamp="Beginn")
    ledger.enter(grouped, account=1)
    for patients in (grouped, logs["Patient"].variants, grouped.with_counts(grouped.counts)):
        with refused(BudgetError, "account-case-kind-differs", listed="'Fallnr'", kind="Patient", before="Fallnr"):
            ledger.reserve(patients, "laplace", epsilon=Fraction(1))


def test_releases_for_persons_are_not_concerned(table: Path, path: Path) -> None:
    """Releases for persons have the person's column as unit, whatever a case is."""
    logs = logs_of(table)
    ledger = Ledger.open(path, create=True)
    ledger.reserve(logs["Fallnr"], "laplace", epsilon=Fraction(1), unit="Patient")
    ledger.set_budget(logs["Fallnr"], 2)
    ledger.enter(logs["Patient"], account=1)
    ledger.reserve(logs["Patient"], "laplace", epsilon=Fraction(1), unit="Patient")
    assert ledger.show()[0].spent == (2, 0)


@pytest.mark.slow
def test_a_file_that_keeps_the_name_of_the_column_goes_on_and_one_that_lost_it_is_refused(
    table: Path, path: Path, tmp_path: Path
) -> None:
    logs = logs_of(table)
    veilog.write(logs["Fallnr"], tmp_path / "w.xes")
    veilog.write(logs["Fallnr"], tmp_path / "w2.csv")
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(logs["Fallnr"], 9)
    known = logs["Fallnr"].variants
    old = veilog.Variants(known.labels, known.codes, known.offsets, known.counts)
    for log in (logs["Fallnr"], veilog.read(tmp_path / "w.xes")):
        ledger.reserve(log, "laplace", epsilon=Fraction(1))
    for log in (veilog.read(tmp_path / "w2.csv"), old):
        with refused(BudgetError, "account-case-kind-differs") as caught:
            ledger.reserve(log, "laplace", epsilon=Fraction(1))
        assert caught.value.message.values["renamed"].code == "case-kind-lost"
    assert ledger.show()[0].spent == (2, 0)
    assert ledger.show()[0].kinds == ("Fallnr",)


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["2", "none"])
def test_patients_in_a_csv_of_ours_are_no_way_onto_the_account_of_visits(
    table: Path, tmp_path: Path, limit: str
) -> None:
    """Patients in a CSV of veilog are refused on an account of visits.

    A visit would lose 3 and a patient of four visits 5, of a stated 2.
    """
    ledger, out = str(tmp_path / "one.ledger"), str(tmp_path / "out.xes")
    made = tmp_path / "patients.csv"
    visits, patients = (["--case", name, *READ] for name in ("Fallnr", "Patient"))
    assert main(["ledger", "set", str(table), "--epsilon", limit, "--ledger", ledger, "--account", "w", *visits]) == 0
    on_account = ["--ledger", ledger, "--account", "w", "--overwrite"]
    assert main(["release", str(table), out, *ASKED, *on_account, *visits]) == 0
    assert main(["convert", str(table), str(made), *patients]) == 0
    status = main(["release", str(made), out, *ASKED, *on_account])
    (account,) = Ledger.open(ledger).show()
    if limit == "2":
        assert status == 3 and account.spent == (1, 0)
    else:
        assert status == 0 and account.spent is None, "nothing bounds it"


def test_the_type_of_objects_is_what_a_case_is() -> None:
    assert kind_of_case('{"case": "case:concept:name", "object type": "order"}') == "order"
    ways = ('{"case": "case:concept:name"}', '{"case": "concept:name"}', "", "[]", "{", '{"case": 7}')
    assert {kind_of_case(way) for way in ways} == {CASE}

"""The ledger in the command: beside the log, shown, set, exported, and refused."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import code_of, error_of
from refusals import sentence

import veilog
from veilog.cli import main


def made(cases: int) -> veilog.EventLog:
    """Return a log of which no release is ever empty: veilog writes no empty release."""
    rows = [(f"{i}", a, f"2024-01-01T0{j}:00:00") for i in range(cases) for j, a in enumerate("ab")]
    names = ("case:concept:name", "concept:name", "time:timestamp")
    return veilog.read(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.xes"
    veilog.write(made(1000), path)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return status, out, " ".join(err.split())


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    status, out, err = run(capsys, *arguments, "--json", "-")
    assert (status, err) == (0, "")
    found: dict = json.loads(out)
    assert found.pop("about")["schema"] == 1
    return found


def released(log: Path, epsilon: object, *more: object) -> tuple[object, ...]:
    said = ("--activities", "log", "--max-length", "log", "--no-compare")
    return (
        "release",
        log,
        log.with_name("out.csv"),
        "-m",
        "laplace",
        "--epsilon",
        epsilon,
        *said,
        "--overwrite",
        *more,
    )


@pytest.mark.slow
def test_a_budget_is_set_spent_and_kept(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    facts = as_json(capsys, "ledger", "set", log, "--epsilon", "1", "--delta", "1e-5")
    assert facts["ledger"] == f"{log}.ledger"
    assert facts["left"] == {"epsilon": 1.0, "delta": 1e-5}
    account = as_json(capsys, *released(log, "0.7"))["owner_only"]["account"]
    assert set(account) == {"account", "name", "unit", "budget", "spent", "left", "most_cases"} | {
        "level",
        "level_holds_up_to_cases",
    }
    assert (account["name"], account["left"]["epsilon"]) == ("log.xes", 0.3)
    log.with_name("out.csv").unlink()
    status, out, err = run(capsys, *released(log, "0.4"))
    assert (status, out) == (3, "")
    assert sentence("budget-exceeded", word="epsilon", asked=0.4, budget=1, left=0.3) in err
    assert code_of(capsys, *released(log, "0.4")) == (3, "budget-exceeded")
    assert not log.with_name("out.csv").exists()
    account = as_json(capsys, *released(log, "0.3"))["owner_only"]["account"]
    assert (account["spent"]["epsilon"], account["left"]["epsilon"]) == (1, 0)


@pytest.mark.slow
def test_show_lists_every_release_without_reading_the_log(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    ledger = log.with_name("log.xes.ledger")
    run(capsys, "ledger", "set", log, "--epsilon", "none")
    assert run(capsys, *released(log, "0.7"))[::2] == (0, "")
    log.unlink()
    for argument in (log, ledger):
        (account,) = as_json(capsys, "ledger", "show", argument)["accounts"]
        (entry,) = account["releases"]
        assert (entry["method"], entry["epsilon_exact"], entry["state"]) == ("laplace", "7/10", "written")
        assert (account["budget"], account["left"]) == (None, None)
    status, out, _ = run(capsys, "ledger", "show", log)
    assert status == 0
    assert entry["outputs"][0][:12] in out


@pytest.mark.nightly
def test_export_writes_a_row_a_release(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    run(capsys, "ledger", "set", log, "--epsilon", "3")
    for epsilon in ("0.7", "1.3"):
        run(capsys, *released(log, epsilon))
    assert run(capsys, "ledger", "export", log, tmp_path / "a.csv")[0] == 0
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epsilon_exact"] for row in rows] == ["7/10", "13/10"]
    assert as_json(capsys, "ledger", "export", log, tmp_path / "a.json")["releases"] == 2
    (account,) = json.loads((tmp_path / "a.json").read_text())["accounts"]
    assert account["releases"][1]["guarantee"]["status"] == "proven"
    assert code_of(capsys, "ledger", "export", log, tmp_path / "a.pdf") == (5, "ledger-export-format-unknown")
    before = (tmp_path / "log.xes.ledger").read_bytes()
    (tmp_path / "l.json").symlink_to(tmp_path / "log.xes.ledger")
    assert run(capsys, "ledger", "export", log, tmp_path / "l.json")[0] == 5
    overwriting = ("ledger", "export", log, tmp_path / "l.json", "--overwrite")
    assert code_of(capsys, *overwriting) == (2, "ledger-would-be-overwritten")
    assert (tmp_path / "log.xes.ledger").read_bytes() == before


def test_a_link_to_the_log_leads_to_its_ledger(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    run(capsys, "ledger", "set", log, "--epsilon", "1")
    (tmp_path / "sub").mkdir()
    link = tmp_path / "sub" / "link.xes"
    link.symlink_to(log)
    assert code_of(capsys, *released(link, "1.5")) == (3, "budget-exceeded")


@pytest.mark.nightly
def test_ledger_names_another_and_no_ledger_none(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    assert "account" not in as_json(capsys, *released(log, "1"))
    run(capsys, "ledger", "set", log, "--epsilon", "1")
    run(capsys, "convert", log, tmp_path / "log.csv")
    other = as_json(capsys, *released(tmp_path / "log.csv", "1", "--ledger", tmp_path / "log.xes.ledger"))
    assert other["owner_only"]["account"]["left"]["epsilon"] == 0
    error = error_of(capsys, *released(log, "1", "--ledger", tmp_path / "new.ledger"))
    assert (error["status"], error["code"]) == (1, "ledger-missing")
    assert error["advice"].startswith(sentence("ledger-beside-log", name="log.xes.ledger"))
    assert run(capsys, "ledger", "set", log, "--epsilon", "none", "--ledger", tmp_path / "new.ledger")[0] == 0
    fresh = as_json(capsys, *released(log, "1", "--ledger", tmp_path / "new.ledger"))
    assert (fresh["owner_only"]["account"]["budget"], fresh["owner_only"]["account"]["spent"]["epsilon"]) == (None, 1.0)
    assert "account" not in as_json(capsys, *released(log, "3", "--no-ledger"))
    assert "account" not in as_json(capsys, *released(log, "3", "--no-ledger", "--seed", "1"))
    contradicting = released(log, "1", "--no-ledger", "--ledger", "x")
    assert code_of(capsys, *contradicting) == (2, "ledger-options-contradict")


@pytest.mark.nightly
def test_a_mistyped_path_begins_no_empty_ledger_and_a_new_one_is_told(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    run(capsys, "ledger", "set", log, "--epsilon", "1", "--ledger", tmp_path / "house.ledger")
    for wrong in ("hause.ledger", "house", "House.ledgr"):
        for command in (released(log, "1"), ("suggest", log, "--epsilon", "1"), ("twin", log, "--epsilon", "1")):
            error = error_of(capsys, *command, "--ledger", tmp_path / wrong)
            assert (error["status"], error["code"]) == (1, "ledger-missing")
            assert error["advice"].startswith(sentence("did-you-mean", near="house.ledger"))
    assert [path.name for path in tmp_path.glob("*ledg*")] == ["house.ledger"]
    made = sentence("ledger-made", ledger=tmp_path / "other.ledger")
    status, out, _ = run(capsys, *released(log, "1", "--ledger", tmp_path / "other.ledger"))
    assert status == 0 and made in " ".join(out.split())
    again = run(capsys, *released(log, "1", "--ledger", tmp_path / "other.ledger"))[1]
    assert made not in " ".join(again.split())
    third = tmp_path / "third.ledger"
    told = run(capsys, "twin", log, "--epsilon", "1", "--ledger", third)[1]
    assert sentence("ledger-made", ledger=third) in " ".join(told.split())


@pytest.mark.nightly
def test_a_grown_log_is_put_on_the_account_of_the_old(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    run(capsys, "ledger", "set", log, "--epsilon", "2")
    run(capsys, *released(log, "1"))
    veilog.write(made(1001), log, overwrite=True)
    other = as_json(capsys, *released(log, "0.5"))
    assert [one["code"] for one in other["owner_only"]["warnings"]] == [
        "log-unknown-beside-budget",
        "account-namesake",
    ]
    log.with_name("out.csv").unlink()
    assert as_json(capsys, "ledger", "set", log, "--account", "1")["left"]["epsilon"] == 0.5
    assert as_json(capsys, *released(log, "0.5"))["owner_only"]["account"]["left"]["epsilon"] == 0


@pytest.mark.slow
def test_a_ledger_that_cannot_be_used_stops_the_release_before_the_log_is_read(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "log.xes.ledger"
    ledger.write_bytes(b"SQLite format 3\0 and then nothing that makes sense")
    log.write_text("not XML")
    for arguments in (released(log, "1"), ("ledger", "show", log), ("ledger", "set", log, "--epsilon", "1")):
        error = error_of(capsys, *arguments)
        assert (error["status"], error["code"], error["path"]) == (1, "ledger-not-recognised", str(ledger))


@pytest.mark.slow
def test_a_mistake_makes_no_ledger(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    assert run(capsys, *released(log, "0", "--ledger", tmp_path / "new"))[0] == 2
    assert run(capsys, *released(tmp_path / "gone.xes", "1", "--ledger", tmp_path / "new"))[0] == 1
    assert run(capsys, "ledger", "set", tmp_path / "gone.xes", "--epsilon", "1")[0] == 1
    refused = (
        (("--delta", "0.1"), "budget-delta-without-epsilon"),
        (("--epsilon", "1", "--account", "7"), "ledger-account-missing"),
        (("--epsilon", "1", "--account", ""), "account-name-empty"),  # of a variable that is not set
    )
    for arguments, code in refused:
        assert code_of(capsys, "ledger", "set", log, *arguments) == (2, code)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.xes"]


def test_what_has_no_ledger_is_told_how_to_get_one(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    error = error_of(capsys, "ledger", "show", log)
    assert (error["status"], error["code"]) == (1, "ledger-not-named") and "veilog ledger set LOG" in error["advice"]
    error = error_of(capsys, "ledger", "set", log.with_name("month-*.csv"), "--epsilon", "1")
    assert (error["status"], error["code"]) == (2, "ledger-not-beside-table") and "--ledger PATH" in error["advice"]


@pytest.mark.nightly
def test_a_plan_says_what_is_left_now_and_when_all_of_it_is_made(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    run(capsys, "ledger", "set", log, "--releases", "100", "--each", "0.1", "--delta", "1e-6")
    for number in (0, 1, 2):
        (account,) = as_json(capsys, "ledger", "show", log)["accounts"]
        assert account["level"] == "strong", "0.1 each, by the sum"
        assert account["counting"]["releases_left"] == 100 - number
        (kept,) = veilog.Ledger.open(f"{log}.ledger").show()
        assert kept.planned_strength == "none in practice"
        assert kept.planned_strength in " ".join(run(capsys, "ledger", "show", log)[1].split())
        run(capsys, *released(log, "0.1"))
        log.with_name("out.csv").unlink()


def test_a_ledger_of_several_logs_is_shown_without_any_of_them(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    other, shared = tmp_path / "other.xes", tmp_path / "shared"
    veilog.write(made(500), other)
    for path in (log, other):
        run(capsys, "ledger", "set", path, "--epsilon", "3", "--ledger", shared)
        path.unlink()
    facts = as_json(capsys, "ledger", "show", "--ledger", shared)
    assert facts["ledger"] == str(shared)
    assert [account["name"] for account in facts["accounts"]] == ["log.xes", "other.xes"]
    assert facts == as_json(capsys, "ledger", "show", shared)
    _, out, _ = run(capsys, "ledger", "show", "--ledger", shared)
    assert "1 (log.xes)" in out and "2 (other.xes)" in out
    assert code_of(capsys, "ledger", "show") == (1, "ledger-not-named")


def codes(told: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in told["owner_only"].get("warnings", [])]


@pytest.mark.nightly
def test_an_account_that_opens_beside_another_of_its_name_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A second account of the same name is reported, as sums are per account."""
    ledger = tmp_path / "all.ledger"
    others = {1: ("account-namesake", "1"), 2: ("account-namesakes", "1, 2")}
    noted = {
        month: sentence(code, name="nb.csv", numbers=numbers, first=1) for month, (code, numbers) in others.items()
    }
    for month in range(3):
        log = tmp_path / str(month) / "nb.csv"
        log.parent.mkdir()
        veilog.write(made(1000 + month), log, overwrite=True)
        status, out, _ = run(capsys, *released(log, "1", "--ledger", ledger))
        assert status == 0
        out = " ".join(out.split())
        assert [number for number, note in noted.items() if note in out] == [month] * (month > 0)
    log.with_name("out.csv").unlink()
    told = as_json(capsys, *released(log, "1", "--ledger", ledger))
    assert "account-namesakes" not in codes(told), "it was told once"
    assert (told["owner_only"]["account"]["others"], told["owner_only"]["account"]["namesakes"]) == (2, [1, 2])
    assert noted[2] in " ".join(run(capsys, "ledger", "show", ledger)[1].split())
    other = tmp_path / "other.csv"
    veilog.write(made(990), other)
    told = as_json(capsys, *released(other, "1", "--ledger", ledger))
    assert "account-namesakes" not in codes(told), "of another name"
    again = tmp_path / "4" / "nb.csv"
    again.parent.mkdir()
    veilog.write(made(980), again)
    told = as_json(capsys, *released(again, "1", "--ledger", ledger))
    note = told["owner_only"]["warnings"][0]
    assert (note["code"], note["values"]["numbers"]) == ("account-namesakes", "1, 2, 3")


@pytest.mark.nightly
def test_a_budget_is_for_a_unit_that_the_log_has_and_releases_protect(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A budget needs a unit that the log has and its releases protect."""
    log = tmp_path / "log.csv"
    rows = [f"{i},p{i % 400},{a},2024-01-01 0{j}:00" for i in range(1000) for j, a in enumerate("ab")]
    log.write_text("\n".join(["case:concept:name,Patient,concept:name,time:timestamp", *rows]) + "\n")
    run(capsys, "ledger", "set", log, "--epsilon", "3")
    error = error_of(capsys, "ledger", "set", log, "--unit", "PatNr")
    assert (error["status"], error["code"]) == (2, "unit-column-missing") and "Patient" in error["advice"]
    status, _, err = run(capsys, "ledger", "set", tmp_path / "log.csv", "--unit", "Patient")
    assert (status, err) == (0, ""), "nothing was released yet"
    assert run(capsys, *released(log, "1", "--unit", "Patient", "--max-cases", "3"))[0] == 0
    error = error_of(capsys, "ledger", "set", log, "--unit", "case")
    assert (error["status"], error["code"]) == (2, "account-unit-unbounded") and "'Patient'" in error["problem"]
    assert as_json(capsys, "ledger", "set", log, "--epsilon", "4")["unit"] == "Patient"
    log.write_text(log.read_text().replace("Patient", "PatNr"))
    log.with_name("out.csv").unlink()
    error = error_of(capsys, *released(log, "1", "--unit", "PatNr", "--max-cases", "3"))
    assert (error["status"], error["code"]) == (3, "person-column-not-of-budget")
    assert "'Patient'" in error["advice"] and "'PatNr'" in error["advice"]
    veilog.write(veilog.read(log), tmp_path / "log.xes")
    renamed = ("ledger", "set", tmp_path / "log.xes", "--unit")
    assert code_of(capsys, *renamed, "Patient") == (2, "person-attribute-missing")
    assert run(capsys, *renamed, "PatNr")[::2] == (0, "")


@pytest.mark.slow
def test_a_named_account_is_in_a_ledger_that_is_there_and_a_new_ledger_is_told_to_the_quiet(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    """A named account needs an existing ledger, and a new ledger is always reported.

    Otherwise a wrong path would begin a ledger without a limit.
    """
    wrong = tmp_path / "nope.ledger"
    error = error_of(capsys, *released(log, "1", "--ledger", wrong, "--account", "w", "--quiet"))
    assert (error["status"], error["code"]) == (1, "ledger-named-missing")
    assert f"`veilog ledger set LOG --epsilon BUDGET --ledger {wrong} --account w`" in error["advice"]
    assert not wrong.exists() and not log.with_name("out.csv").exists()
    assert run(capsys, "ledger", "set", log, "--epsilon", "3", "--ledger", wrong, "--account", "w")[0] == 0
    again = released(log, "1", "--ledger", wrong, "--account", "w", "--quiet")
    assert run(capsys, *again) == (0, "", "")
    log.with_name("out.csv").unlink()
    fresh = tmp_path / "mine.book"
    status, out, err = run(capsys, *released(log, "1", "--ledger", fresh, "--quiet"))
    assert (status, out) == (0, "") and fresh.exists()
    assert sentence("ledger-not-there-yet", ledger=fresh) in err
    log.with_name("out.csv").unlink()
    assert run(capsys, *released(log, "1", "--ledger", fresh, "--quiet")) == (0, "", "")

"""The ledger in the command: used where it lies beside the log, shown, set, exported, and refused in words."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import veilog
from veilog.cli import main


def made(cases: int) -> veilog.EventLog:
    """A log of which no release is ever empty: what is empty is not written."""
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
    assert "epsilon = 0.4 was asked for, and of 1 in all 0.3 is left. Nothing was asked of the data." in err
    assert not log.with_name("out.csv").exists()
    status, out, _ = run(capsys, *released(log, "0.3"))
    assert status == 0
    assert "nothing is left of epsilon = 1" in " ".join(out.split())


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
    assert "No total budget is set" in out
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
    status, _, err = run(capsys, "ledger", "export", log, tmp_path / "a.pdf")
    assert (status, err.endswith("A ledger is exported to .json or .csv.")) == (5, True)
    before = (tmp_path / "log.xes.ledger").read_bytes()
    (tmp_path / "l.json").symlink_to(tmp_path / "log.xes.ledger")
    assert run(capsys, "ledger", "export", log, tmp_path / "l.json")[0] == 5
    status, _, err = run(capsys, "ledger", "export", log, tmp_path / "l.json", "--overwrite")
    assert (status, "overwrite the ledger" in err) == (2, True)
    assert (tmp_path / "log.xes.ledger").read_bytes() == before


def test_a_link_to_the_log_leads_to_its_ledger(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    run(capsys, "ledger", "set", log, "--epsilon", "1")
    (tmp_path / "sub").mkdir()
    link = tmp_path / "sub" / "link.xes"
    link.symlink_to(log)
    status, _, err = run(capsys, *released(link, "1.5"))
    assert (status, "does not suffice" in err) == (3, True)


@pytest.mark.nightly
def test_ledger_names_another_and_no_ledger_none(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    assert "account" not in as_json(capsys, *released(log, "1"))
    run(capsys, "ledger", "set", log, "--epsilon", "1")
    run(capsys, "convert", log, tmp_path / "log.csv")
    other = as_json(capsys, *released(tmp_path / "log.csv", "1", "--ledger", tmp_path / "log.xes.ledger"))
    assert other["owner_only"]["account"]["left"]["epsilon"] == 0
    status, _, err = run(capsys, *released(log, "1", "--ledger", tmp_path / "new.ledger"))
    assert (status, "The log has one beside it, log.xes.ledger." in err) == (1, True)
    assert run(capsys, "ledger", "set", log, "--epsilon", "none", "--ledger", tmp_path / "new.ledger")[0] == 0
    fresh = as_json(capsys, *released(log, "1", "--ledger", tmp_path / "new.ledger"))
    assert (fresh["owner_only"]["account"]["budget"], fresh["owner_only"]["account"]["spent"]["epsilon"]) == (None, 1.0)
    assert "account" not in as_json(capsys, *released(log, "3", "--no-ledger"))
    assert "account" not in as_json(capsys, *released(log, "3", "--no-ledger", "--seed", "1"))
    status, _, err = run(capsys, *released(log, "1", "--no-ledger", "--ledger", "x"))
    assert (status, "exclude each other" in err) == (2, True)


@pytest.mark.nightly
def test_a_mistyped_path_begins_no_empty_ledger_and_a_new_one_is_told(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    run(capsys, "ledger", "set", log, "--epsilon", "1", "--ledger", tmp_path / "house.ledger")
    for wrong in ("hause.ledger", "house", "House.ledgr"):
        for command in (released(log, "1"), ("suggest", log, "--epsilon", "1"), ("twin", log, "--epsilon", "1")):
            status, _, err = run(capsys, *command, "--ledger", tmp_path / wrong)
            assert status == 1 and "There is no such ledger. Did you mean 'house.ledger'?" in err, err
    assert [path.name for path in tmp_path.glob("*ledg*")] == ["house.ledger"]
    status, out, _ = run(capsys, *released(log, "1", "--ledger", tmp_path / "other.ledger"))
    assert status == 0 and "a new ledger was made" in " ".join(out.split())
    again = run(capsys, *released(log, "1", "--ledger", tmp_path / "other.ledger"))[1]
    assert "a new ledger" not in " ".join(again.split())
    named = ("--ledger", tmp_path / "third.ledger")
    assert "a new ledger was made" in " ".join(run(capsys, "twin", log, "--epsilon", "1", *named)[1].split())


@pytest.mark.nightly
def test_a_grown_log_is_put_on_the_account_of_the_old(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    run(capsys, "ledger", "set", log, "--epsilon", "2")
    run(capsys, *released(log, "1"))
    veilog.write(made(1001), log, overwrite=True)
    other = as_json(capsys, *released(log, "0.5"))
    assert [one["code"] for one in other["owner_only"]["warnings"]] == [
        "unknown-data-beside-budget",
        "account-namesakes",
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
        status, out, err = run(capsys, *arguments)
        assert (status, out) == (1, "")
        assert "damaged" in err and "log.xes.ledger" in err


@pytest.mark.slow
def test_a_mistake_makes_no_ledger(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path) -> None:
    assert run(capsys, *released(log, "0", "--ledger", tmp_path / "new"))[0] == 2
    assert run(capsys, *released(tmp_path / "gone.xes", "1", "--ledger", tmp_path / "new"))[0] == 1
    assert run(capsys, "ledger", "set", tmp_path / "gone.xes", "--epsilon", "1")[0] == 1
    refused = (
        (("--delta", "0.1"), "Add --epsilon"),
        (("--epsilon", "1", "--account", "7"), "no account 7"),
        (("--epsilon", "1", "--account", ""), "this one is empty"),  # of a variable that is not set
    )
    for arguments, said in refused:
        status, _, err = run(capsys, "ledger", "set", log, *arguments)
        assert status == 2 and said in err, arguments
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.xes"]


def test_what_has_no_ledger_is_told_how_to_get_one(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    status, _, err = run(capsys, "ledger", "show", log)
    assert (status, "veilog ledger set LOG makes one" in err) == (1, True)
    status, _, err = run(capsys, "ledger", "set", log.with_name("month-*.csv"), "--epsilon", "1")
    assert (status, "Name one with --ledger" in err) == (2, True)


@pytest.mark.nightly
def test_a_plan_says_what_is_left_now_and_when_all_of_it_is_made(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    run(capsys, "ledger", "set", log, "--releases", "100", "--each", "0.1", "--delta", "1e-6")
    for number in (0, 1, 2):
        _, out, _ = run(capsys, "ledger", "show", log)
        said = " ".join(out.split())
        assert "protection left strong left" in said, "0.1 each, by the sum"
        assert f"; {100 - number} are left protection when all of them are made: none in practice" in said
        assert as_json(capsys, "ledger", "show", log)["accounts"][0]["level"] == "strong"
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
    status, _, err = run(capsys, "ledger", "show")
    assert (status, "No ledger is named" in err) == (1, True)


def codes(told: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in told["owner_only"].get("warnings", [])]


@pytest.mark.nightly
def test_an_account_that_opens_beside_another_of_its_name_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A log without a budget that grows each month: every account had its own sum, and nothing said so."""
    ledger, said = tmp_path / "all.ledger", "This ledger has another account named nb.csv (1): if these are the same"
    for month in range(3):
        log = tmp_path / str(month) / "nb.csv"
        log.parent.mkdir()
        veilog.write(made(1000 + month), log, overwrite=True)
        status, out, _ = run(capsys, *released(log, "1", "--ledger", ledger))
        assert status == 0
        out = " ".join(out.split())
        assert (said in out) == (month == 1) and ("2 other accounts" in out or "(1, 2)" in out) == (month == 2)
    assert "put both on one: veilog ledger set LOG --account 1" in out
    log.with_name("out.csv").unlink()
    told = as_json(capsys, *released(log, "1", "--ledger", ledger))
    assert "account-namesakes" not in codes(told), "it was told once"
    assert (told["owner_only"]["account"]["others"], told["owner_only"]["account"]["namesakes"]) == (2, [1, 2])
    shown = " ".join(run(capsys, "ledger", "show", ledger)[1].split())
    assert "3 (nb.csv), for one case; 2 more in this ledger" in shown and "named nb.csv (1, 2)" in shown
    other = tmp_path / "other.csv"
    veilog.write(made(990), other)
    told = as_json(capsys, *released(other, "1", "--ledger", ledger))
    assert "account-namesakes" not in codes(told), "of another name"
    again = tmp_path / "4" / "nb.csv"
    again.parent.mkdir()
    veilog.write(made(980), again)
    told = as_json(capsys, *released(again, "1", "--ledger", ledger))
    assert "named nb.csv (1, 2, 3)" in told["owner_only"]["warnings"][0]["text"]


@pytest.mark.nightly
def test_a_budget_is_for_a_unit_that_the_log_has_and_releases_protect(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A mistyped column turned the account into one of which nothing is left."""
    log = tmp_path / "log.csv"
    rows = [f"{i},p{i % 400},{a},2024-01-01 0{j}:00" for i in range(1000) for j, a in enumerate("ab")]
    log.write_text("\n".join(["case:concept:name,Patient,concept:name,time:timestamp", *rows]) + "\n")
    run(capsys, "ledger", "set", log, "--epsilon", "3")
    status, _, err = run(capsys, "ledger", "set", log, "--unit", "PatNr")
    assert status == 2 and "the log has no column 'PatNr' that could name a person" in err and "Patient" in err
    status, _, err = run(capsys, "ledger", "set", tmp_path / "log.csv", "--unit", "Patient")
    assert (status, err) == (0, ""), "nothing was released yet"
    assert run(capsys, *released(log, "1", "--unit", "Patient", "--max-cases", "3"))[0] == 0
    status, _, err = run(capsys, "ledger", "set", log, "--unit", "case")
    assert status == 2 and "The releases so far protect 'Patient'" in err and "leave it out" in err
    assert as_json(capsys, "ledger", "set", log, "--epsilon", "4")["unit"] == "Patient"
    log.write_text(log.read_text().replace("Patient", "PatNr"))
    log.with_name("out.csv").unlink()
    status, _, err = run(capsys, *released(log, "1", "--unit", "PatNr", "--max-cases", "3"))
    assert status == 3
    assert "If the column 'Patient' is called 'PatNr' now, give it back its name in the export" in err
    veilog.write(veilog.read(log), tmp_path / "log.xes")
    status, _, err = run(capsys, "ledger", "set", tmp_path / "log.xes", "--unit", "Patient")
    assert status == 2 and "no attribute 'Patient' that could name a person" in err
    assert run(capsys, "ledger", "set", tmp_path / "log.xes", "--unit", "PatNr")[::2] == (0, "")


@pytest.mark.slow
def test_a_named_account_is_in_a_ledger_that_is_there_and_a_new_ledger_is_told_to_the_quiet(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    """With a wrong path the nightly release began a ledger without a limit, and nothing was said."""
    wrong = tmp_path / "nope.ledger"
    status, _, err = run(capsys, *released(log, "1", "--ledger", wrong, "--account", "w", "--quiet"))
    assert status == 1 and not wrong.exists() and not log.with_name("out.csv").exists()
    assert "There is no such ledger." in err
    assert f"`veilog ledger set LOG --epsilon BUDGET --ledger {wrong} --account w` makes it" in err
    assert run(capsys, "ledger", "set", log, "--epsilon", "3", "--ledger", wrong, "--account", "w")[0] == 0
    again = released(log, "1", "--ledger", wrong, "--account", "w", "--quiet")
    assert run(capsys, *again) == (0, "", "")
    log.with_name("out.csv").unlink()
    fresh = tmp_path / "mine.book"
    status, out, err = run(capsys, *released(log, "1", "--ledger", fresh, "--quiet"))
    assert (status, out) == (0, "") and fresh.exists()
    assert f"There is no ledger {fresh} yet: a new one is made, without a limit." in err
    log.with_name("out.csv").unlink()
    assert run(capsys, *released(log, "1", "--ledger", fresh, "--quiet")) == (0, "", "")

"""The commands twin and map, dry runs, and activities grouped on the way in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import code_of, error_of
from refusals import sentence

import veilog
from veilog import cli
from veilog.logs.synthetic.hospital import hospital

SIZES = ["--cases", "200", "--activities", "6", "--length", "4"]
TRAVAS = ["-m", "travas", "--epsilon", "1", "--delta", "1e-4"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "hospital.xes"
    veilog.write(hospital(150, seed=1), path)
    return path


def told(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_text())
    return found


@pytest.mark.slow
def test_a_twin_of_declared_sizes_needs_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, facts = tmp_path / "twin.xes", tmp_path / "facts.json"
    assert cli.main(["twin", "--out", str(out), *SIZES, "--json", str(facts)]) == 0
    assert told(facts)["guarantee"] is None
    assert veilog.read(out).number_of_cases == 200
    error = error_of(capsys, "twin", "other.xes", *SIZES)
    assert (error["status"], error["code"]) == (2, "twin-option-without-meaning")
    assert "--out other.xes" in error["advice"]
    error = error_of(capsys, "twin")
    assert (error["status"], error["problem"]) == (2, sentence("sizes-unknown", names="cases and length"))


@pytest.mark.nightly
def test_a_twin_says_how_far_off_its_number_of_cases_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "one.csv"
    log.write_text("case,activity,time\n1,a,2024-01-01\n1,b,2024-01-02\n")
    facts = tmp_path / "facts.json"
    assert cli.main(["twin", str(log), "--epsilon", "0.05", "--no-ledger", "--json", str(facts)]) == 0
    cases = told(facts)["sizes"]["cases"]  # type: ignore[index]
    # Laplace noise of scale 1/0.01 is within 100 ln 20 in 95 of 100.
    noisy = sentence("twin-cases-noisy", cases=cases, within=300)
    assert noisy in " ".join(capsys.readouterr().out.split())
    assert cli.main(["twin", *SIZES]) == 0
    assert "noisy" in noisy and "noisy" not in capsys.readouterr().out


def test_nobody_is_told_to_write_a_twin_over_the_log(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = error_of(capsys, "twin", log, *SIZES)
    assert error["status"] == 2
    assert "--out TWIN.xes" in error["advice"] and f"--out {log.name}" not in error["message"]
    before = log.read_bytes()
    for arguments in ((log, log), (log, "--out", log)):
        assert code_of(capsys, "twin", *arguments, "--epsilon", "0.1") == (5, "file-would-be-overwritten")
    assert log.read_bytes() == before


@pytest.mark.nightly
def test_a_twin_that_asks_is_paid_for_and_its_json_feeds_a_dry_run(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes, ledger = tmp_path / "sizes.json", tmp_path / "x.ledger"
    arguments = ["twin", str(log), "--epsilon", "0.5", "--json", str(sizes), "--ledger", str(ledger)]
    assert cli.main(arguments) == 0
    assert told(sizes)["guarantee"]["epsilon"] == 0.5  # type: ignore[index]
    assert told(sizes)["owner_only"]["account"]["spent"]["epsilon"] == 0.5  # type: ignore[index]
    before = ledger.read_bytes()
    found = tmp_path / "found.json"
    dry = ["release", "no such log.xes", str(tmp_path / "r.xes"), *TRAVAS, "--dry-run", "--sizes", str(sizes)]
    dry += ["--json", str(found)]
    assert cli.main(dry) == 0
    assert told(found)["dry_run"] is True
    assert ledger.read_bytes() == before and not (tmp_path / "r.xes").exists()
    assert cli.main([*dry, "--attributes", "urgency", "--domain", "urgency=1..5", "--overwrite"]) == 0
    ((name, share),) = told(found)["attribute_errors"].items()  # type: ignore[attr-defined]
    assert name == "urgency" and f" {100 * share:.0f} % " in capsys.readouterr().out


@pytest.mark.nightly
def test_a_dry_run_reads_nothing_unless_the_owner_allows_exact_sizes(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, found = str(tmp_path / "r.xes"), tmp_path / "f.json"
    dry = ["release", str(log), target, *TRAVAS, "--dry-run", "--json", str(found), "--overwrite"]
    assert cli.main(dry) == 2
    assert told(found)["error"]["code"] == "sizes-unknown"  # type: ignore[index]
    found.unlink()
    assert cli.main([*dry, "--sizes", "log"]) == 0
    assert told(found)["expected"]["owner_only"] is True  # type: ignore[index]

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("read")

    found.unlink()
    monkeypatch.setattr("veilog.cli.preview.load_for_request", forbidden)
    with pytest.raises(AssertionError, match="read"):
        cli.main([*dry, "--sizes", "log"])
    dry = ["release", "away.xes", *dry[2:]]  # where the log is there, what it lacks is stated for its owner
    assert cli.main([*dry, *SIZES]) == 0
    expected = told(found)["expected"]
    assert expected["owner_only"] is False and expected["sizes"]["activities"] == 6  # type: ignore[index]
    assert list(expected["use_cases"]) == ["prediction"]  # type: ignore[index]
    found.unlink()
    assert cli.main([*dry, *SIZES, "--use-cases", ""]) == 0
    assert "use_cases" not in told(found)["expected"]  # type: ignore[operator]
    assert not Path(target).exists()


def test_what_is_for_a_dry_run_is_refused_without(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = error_of(capsys, "release", log, tmp_path / "r.xes", *TRAVAS, "--length", "4")
    assert (error["status"], error["code"], error["parameter"]) == (2, "option-for-dry-run", "length")


def test_broken_sizes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("[]")
    dry = ("release", "x.xes", "y.xes", *TRAVAS, "--dry-run", "--sizes", bad)
    assert code_of(capsys, *dry) == (1, "sizes-file-invalid")


@pytest.mark.slow
def test_a_map_is_proposed_and_used(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups, target, found = tmp_path / "groups.csv", tmp_path / "r.xes", tmp_path / "f.json"
    assert cli.main(["map", str(log), str(groups)]) == 0
    assert groups.read_text().startswith("activity,level 1,level 2\n")
    mapped = ["--map", str(groups), "--level", "2"]
    assert cli.main(["info", str(log), *mapped, "--json", str(found)]) == 0
    assert told(found)["activities"] == 14  # of 15: the two tests of fluids are one
    assert (
        cli.main(
            ["release", str(log), str(target), *TRAVAS, *mapped, "--json", str(found), "--no-compare", "--overwrite"]
        )
        == 0
    )
    codes = [condition["code"] for condition in told(found)["guarantee"]["conditions"]]  # type: ignore[index]
    assert codes == ["activities-mapped"]
    capsys.readouterr()
    (tmp_path / "flat.csv").write_text("case,activity,timestamp\n1,a,2024-01-01\n1,b,2024-01-02\n")
    assert cli.main(["map", str(tmp_path / "flat.csv")]) == 0
    assert sentence("names-without-structure") in " ".join(capsys.readouterr().out.split())
    assert code_of(capsys, "map", log, tmp_path / "groups.xes") == (2, "map-not-csv-ending")

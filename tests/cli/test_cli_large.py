"""``veilog release`` keeps a large Parquet log on disk, with the same result."""

import gc
import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from commands import error_of

from veilog import write
from veilog.cli import compare, main
from veilog.cli.shared import log_input
from veilog.logs.storage import loader
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.tables import table_reader
from veilog.measures.similarity import _bounds, difference, measure

EVOLVE = ["--method", "evolve", "--epsilon", "30", "--delta", "0.001", "--activities", "log", "--allow-no-protection"]
AMUN = ["--method", "amun", "--as-published", "-p", "guessing_advantage=0.6", "-p"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "hospital.parquet"
    table = hospital(200, seed=3).to_arrow()
    pq.write_table(table.take(list(range(0, len(table), 2)) + list(range(1, len(table), 2))), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        [*EVOLVE, "--times", "0.3", "--attributes", "urgency,org:resource"],
        [*EVOLVE, "--times", "0.3", "--window", "log", "--unit", "age group", "--max-cases", "20"],
    ],
)
def test_the_release_is_that_of_the_log_in_memory(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    options = [*options, "--no-compare", "--seed", "5"]
    assert main(["release", str(log), str(tmp_path / "memory.parquet"), *options]) == 0
    monkeypatch.setattr(table_reader, "LARGE", 10)
    monkeypatch.setattr(loader, "_PIECE", 300)
    monkeypatch.setattr(log_input, "read_log", None)
    assert main(["release", str(log), str(tmp_path / "disk.parquet"), *options]) == 0
    assert (tmp_path / "disk.parquet").read_bytes() == (tmp_path / "memory.parquet").read_bytes()


@pytest.fixture(scope="module")
def elsewhere(log: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the log as several files, as a table, and as a view with an index."""
    folder, events = tmp_path_factory.mktemp("elsewhere"), pq.read_table(log)
    (folder / "months").mkdir()
    for name, part in (("1", events.slice(0, 700)), ("2", events.slice(700))):
        pq.write_table(part, folder / "months" / f"{name}.parquet")
    with duckdb.connect(folder / "log.duckdb") as connection:
        connection.register("events", events)
        connection.execute("CREATE TABLE log AS FROM events")
    table = ["log", "--engine", f"duckdb:{folder / 'log.duckdb'}"]
    return {"folder": [str(folder / "months")], "pattern": [str(folder / "months" / "*.parquet")], "table": table}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("table", [*EVOLVE, "--times", "0.3", "--attributes", "urgency,org:resource"]),
        ("pattern", [*EVOLVE, "--times", "0.3", "--window", "log", "--unit", "age group", "--max-cases", "20"]),
        ("table", [*AMUN, "mode=sampling"]),
        ("folder", ["--method", "pripel", "--epsilon", "3.5", "--activities", "log", "--max-length", "log"]),
    ],
)
def test_the_release_of_several_files_or_a_table_is_that_of_the_log_in_memory(
    log: Path,
    elsewhere: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    options: list[str],
) -> None:
    options = [*options, "--no-compare", "--seed", "5"]
    assert main(["release", str(log), str(tmp_path / "memory.parquet"), *options]) == 0
    monkeypatch.setattr(loader, "_PIECE", 300)
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(log_input, "read_log", None)
    means = ["--temp-directory", str(spill), "--memory-limit", "300MB"]
    assert (
        main(
            ["release", *elsewhere[where][:1], str(tmp_path / "there.parquet"), *options, *elsewhere[where][1:], *means]
        )
        == 0
    )
    assert (tmp_path / "there.parquet").read_bytes() == (tmp_path / "memory.parquet").read_bytes()
    gc.collect()  # a release and the record of its answers refer to each other; a process clears up when it ends
    assert list(spill.iterdir()) == []


PRIPEL = ["--method", "pripel", "--epsilon", "1", "--activities", "log"]


@pytest.mark.parametrize(
    ("where", "options"), [("folder", PRIPEL), ("table", PRIPEL), ("folder", [*AMUN, "mode=sampling"])]
)
def test_a_method_that_needs_all_events_says_how_many_will_do(
    elsewhere: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: str,
    options: list[str],
) -> None:
    monkeypatch.setattr(loader, "LARGE", 1000)
    monkeypatch.setattr(loader, "store_log", None)
    (log, *engine), ledger = elsewhere[where], tmp_path / "ledger"
    options = [*options, "--ledger", str(ledger)]
    error = error_of(capsys, "release", log, tmp_path / "out.xes", *options, *engine)
    assert (error["status"], error["code"]) == (2, "store-events-too-many")
    assert repr(options[1]) in error["problem"] and "1,000" in error["advice"]
    assert not (tmp_path / "out.xes").exists()
    assert not ledger.exists()


@pytest.mark.slow
def test_a_disk_that_fills_up_charges_nothing(
    elsewhere: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("veilog.logs.storage.stored_log.ipc.new_file", full)
    (log, *engine), ledger, spill = elsewhere["table"], tmp_path / "ledger", tmp_path / "spill"
    spill.mkdir()
    options = [*EVOLVE, "--times", "0.3", "--ledger", str(ledger), "--temp-directory", str(spill)]
    assert main(["release", log, str(tmp_path / "out.parquet"), *options, *engine]) == 1
    assert "No space left" in capsys.readouterr().err
    assert list(spill.iterdir()) == []
    assert not (tmp_path / "out.parquet").exists()
    assert not ledger.exists()


def test_a_method_that_needs_all_events_gets_them(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reader, "LARGE", 10)
    monkeypatch.setattr(loader, "store_log", None)
    assert (
        main(["release", str(log), str(tmp_path / "out.parquet"), "--method", "pretsa", "-p", "k=2", "--no-compare"])
        == 0
    )


@pytest.mark.slow
def test_what_was_kept_of_a_log_on_disk_is_shown(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table_reader, "LARGE", 10)
    monkeypatch.setattr(log_input, "read_log", None)
    assert main(["release", str(log), str(tmp_path / "out.csv"), *EVOLVE, "--times", "0.3", "--no-ledger"]) == 0
    assert "\nutility " in capsys.readouterr().out


@pytest.mark.slow
def test_of_a_large_original_the_variants_are_compared(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, grouped = tmp_path / "whole.json", tmp_path / "grouped.json"
    assert main(["compare", str(log), str(log), "--json", str(whole)]) == 0
    monkeypatch.setattr(table_reader, "LARGE", 10)
    monkeypatch.setattr(compare, "read_log", None)
    assert main(["compare", str(log), str(log), "--json", str(grouped)]) == 0
    found, other = (json.loads(path.read_text()) for path in (whole, grouped))
    assert other["relative_log_similarity"] == found["relative_log_similarity"] == 1.0
    assert found["case_durations"] is not None
    assert other["case_durations"] is None
    assert other["released_cases"] == found["released_cases"]


@pytest.mark.slow
def test_exact_finds_what_is_bounded_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        write(hospital(200, seed=seed), tmp_path / f"{name}.xes")
    for module in (measure, difference, _bounds):
        monkeypatch.setattr(module, "EXACT_PAIRS", 10)
    paths = [str(tmp_path / f"{name}.xes") for name in ("a", "b")]
    found = []
    for options in ([], ["--exact"]):
        assert (
            main(["compare", *paths, *options, "--no-models", "--overwrite", "--json", str(tmp_path / "found.json")])
            == 0
        )
        found.append(json.loads((tmp_path / "found.json").read_text()))
    (low, high), exact = found[0]["intervals"]["relative_log_similarity"], found[1]["relative_log_similarity"]
    assert low <= exact <= high
    assert high - low < 0.02
    assert found[1]["intervals"] == {}

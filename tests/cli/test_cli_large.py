"""``veilog release`` of a large Parquet log whose events are asked about: kept on disk, with the same result."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from veilog.cli import large, main
from veilog.logs import simulate
from veilog.logs.stored import sorting, storing

EVOLVE = ["--method", "evolve", "--epsilon", "30", "--delta", "0.001", "--activities", "log", "--weak-guarantee"]
AMUN = ["--method", "amun", "--as-published", "-p", "guessing_advantage=0.6", "-p"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "hospital.parquet"
    table = simulate.hospital(200, seed=3).to_arrow()
    pq.write_table(table.take(list(range(0, len(table), 2)) + list(range(1, len(table), 2))), path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        [*EVOLVE, "--times", "0.3", "--attributes", "urgency,org:resource"],
        [*EVOLVE, "--times", "0.3", "--window", "log", "--unit", "age group", "--max-cases", "20"],
        [*AMUN, "mode=sampling"],
        [*AMUN, "mode=filtering"],
    ],
)
def test_the_release_is_that_of_the_log_in_memory(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    options = [*options, "--no-compare", "--seed", "5"]
    assert main(["release", str(log), str(tmp_path / "memory.parquet"), *options]) == 0
    monkeypatch.setattr(storing, "LARGE", 10)
    monkeypatch.setattr(sorting, "_PIECE", 300)
    monkeypatch.setattr(large, "read_log", None)
    assert main(["release", str(log), str(tmp_path / "disk.parquet"), *options]) == 0
    assert (tmp_path / "disk.parquet").read_bytes() == (tmp_path / "memory.parquet").read_bytes()


def test_a_method_that_needs_all_events_gets_them(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "LARGE", 10)
    monkeypatch.setattr(large, "stored", None)
    assert (
        main(["release", str(log), str(tmp_path / "out.parquet"), "--method", "pretsa", "-p", "k=2", "--no-compare"])
        == 0
    )


def test_what_was_kept_of_a_log_on_disk_is_shown(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(storing, "LARGE", 10)
    monkeypatch.setattr(large, "read_log", None)
    assert main(["release", str(log), str(tmp_path / "out.csv"), *AMUN, "mode=oversampling"]) == 0
    assert "\nkept " in capsys.readouterr().out

"""The command on many files and on tables of databases, and limits of engines."""

import json
from pathlib import Path

import duckdb
import pytest
from commands import code_of
from refusals import sentence

from veilog import cli
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.measures.measure import MEASURES

SAID = ("--activities", "log", "--max-length", "log")


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two months of a log, and the same in a database."""
    monkeypatch.chdir(tmp_path)
    for month in (1, 2):
        folder = tmp_path / "warehouse" / f"month={month}"
        folder.mkdir(parents=True)
        files.write(hospital(60, seed=month), folder / "part-0.parquet")
    with duckdb.connect(tmp_path / "log.duckdb") as connection:
        connection.execute("CREATE TABLE events AS FROM 'warehouse/*/*.parquet'")
    return tmp_path


def results(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    capsys.readouterr()
    assert cli.main([*arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def numbers(found: dict[str, object]) -> dict[str, object]:
    """Return the counts, without the time and the file."""
    return {name: value for name, value in found.items() if name not in ("about", "owner_only")}


@pytest.mark.slow
def test_a_folder_a_pattern_and_a_table_are_one_log(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results(capsys, "info", "warehouse")
    assert folder["cases"] == 60  # both months name their cases alike
    assert folder["start"].startswith("2024-01-01")
    assert numbers(results(capsys, "info", "warehouse/*/*.parquet")) == numbers(folder)
    assert numbers(results(capsys, "info", "events", "--engine", "duckdb:log.duckdb")) == numbers(folder)
    risk = ("--background", "set", "--size", "1")
    drop = {"seconds"}
    here, there = (
        [{k: v for k, v in row.items() if k not in drop} for row in results(capsys, "risk", *log, *risk)["results"]]
        for log in (("warehouse",), ("events", "--engine", "duckdb:log.duckdb"))
    )
    assert here == there


@pytest.mark.slow
def test_a_release_from_a_table_within_a_memory_limit(warehouse: Path, capsys: pytest.CaptureFixture[str]) -> None:
    means = ("--memory-limit", "300MB", "--temp-directory", str(warehouse))
    table = ("events", "--engine", "duckdb:log.duckdb")
    released = results(capsys, "release", *table, "out.csv", "-m", "laplace", *SAID, "--epsilon", "1", *means)
    assert released["guarantee"]["status"] == "proven"
    assert (warehouse / "out.csv").exists()
    assert not list(warehouse.glob("veilog-*"))


@pytest.mark.nightly
def test_a_release_is_compared_with_the_variants_of_its_original_wherever_that_is(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release is compared with a table as with a file, but for times of events."""
    with duckdb.connect(warehouse / "log.duckdb") as connection:
        connection.execute("COPY events TO 'one.parquet'")
    files.write(hospital(50, seed=3), warehouse / "released.xes")
    given, timed = ("released.xes", "--no-models"), {"dfg_time_emd", "case_durations", "active_cases"}
    table = results(capsys, "compare", "events", *given, "--engine", "duckdb:log.duckdb")
    file = results(capsys, "compare", "one.parquet", *given)
    assert cli.main(["compare", "warehouse", *given, "--json", "folder.json"]) == 0
    folder = json.loads(Path("folder.json").read_text())
    titles = ", ".join(MEASURES[name].quantities[0].title for name in folder["not_computed"] if name in timed)
    said = sentence("original-variants-only", log="warehouse", lacking=titles)
    assert said in " ".join(capsys.readouterr().out.split())
    of_variants = {sentence(code, name="original") for code in ("measure-of-variants-only", "durations-of-variants")}
    attacks = {"singling_out", "linkability", "inference"}  # which also have their seconds
    apart = timed | attacks | {"person", "about", "owner_only", "seconds", "not_computed", "findings", "verdict"}
    apart |= {"verdicts", "grade"}
    for one in (table, folder):
        lacking = {name for name, why in one["not_computed"].items() if why in of_variants}
        assert lacking == timed
        assert all(file[name] is not None and one[name] is None for name in timed)
        assert {n: v for n, v in one.items() if n not in apart} == {n: v for n, v in file.items() if n not in apart}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("train", "events", "out.model", "-m", "travag", "--epsilon", "1", "--delta", "1e-6", "--unit", "who"),
            "needs",
        ),
        (("ledger", "set", "events", "--epsilon", "1"), "--ledger PATH"),
    ],
)
def test_what_needs_events_or_a_place_is_refused(
    warehouse: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert cli.main([*arguments, "--engine", "duckdb:log.duckdb"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (warehouse / "out.csv").exists()


@pytest.mark.parametrize(
    ("log", "code"), [("warehouse", "log-is-directory"), ("warehouse/*/*.parquet", "files-variants-only")]
)
def test_commands_that_need_events_say_so_of_several_files(
    warehouse: Path, capsys: pytest.CaptureFixture[str], log: str, code: str
) -> None:
    assert code_of(capsys, "convert", log, "out.csv") == (1, code)

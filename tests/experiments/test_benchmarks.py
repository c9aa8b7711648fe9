"""Benchmarks are experiments of the one harness, with cells and published rows."""

import importlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from veilog.experiments import EXPERIMENTS
from veilog.experiments.experiment import Cell, Experiment, Given, Lines, Measured, Plot, Profile, Row, Table
from veilog.experiments.fingerprints import method_fingerprint
from veilog.experiments.frontier import FRONTIER
from veilog.experiments.runner import read_rows, rows_file, run, versions_of
from veilog.methods import METHODS

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
RESULTS = BENCH / "results"
LOGS = ("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie", "ccc19")
NEEDS = ("ot", "httpx")


@pytest.fixture(scope="module")
def bench() -> Iterator[None]:
    """Put the folder of the benchmarks on the path, and forget its modules afterwards."""
    for name in NEEDS:
        pytest.importorskip(name)
    before = set(sys.modules)
    sys.path.insert(0, str(BENCH))
    yield
    sys.path.remove(str(BENCH))
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCH)):
            del sys.modules[name]


@pytest.fixture(scope="module")
def program(bench: None) -> ModuleType:
    return importlib.import_module("run")


@pytest.fixture
def published(bench: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module of publishing, with results and docs of its own."""
    module = importlib.import_module("published")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "kept")
    monkeypatch.setattr(module, "DOCS", tmp_path)
    return module


@pytest.mark.nightly
def test_every_benchmark_has_cells_a_page_and_a_name_of_its_own(program: ModuleType) -> None:
    found = list(program.benchmarks())
    names = [experiment.name for experiment in found]
    assert len(set(names)) == len(names) >= 30
    assert not set(names) & set(EXPERIMENTS)
    assert set(program.LONG) <= set(names)
    for experiment in found:
        logs = tuple(log for log in experiment.logs if log in LOGS) or LOGS
        full = list(experiment.cells(Profile(logs, experiment.runs, False)))
        small = list(experiment.cells(Profile(logs[:1], 1, True)))
        assert 0 < len(small) <= len(full), experiment.name
        assert len({cell.key for cell in full}) == len(full), f"{experiment.name} has a cell twice"
        assert all(Cell.from_json(json.loads(cell.key)).key == cell.key for cell in full)
        assert {cell.method for cell in full} <= {"", *METHODS}
        assert (ROOT / "docs" / experiment.page).is_file(), experiment.name
        assert experiment.tables([]) is not None


def test_pages_name_benchmarks_that_there_are(program: ModuleType) -> None:
    """Every name behind ``bench/run.py`` in docs and Makefile is a benchmark."""
    known = {experiment.name for experiment in program.benchmarks()} | set(EXPERIMENTS)
    named = set()
    for page in (ROOT / "README.md", ROOT / "Makefile", *(ROOT / "docs").rglob("*.md")):
        for arguments in re.findall(r"bench/run\.py((?:\s+[a-z][a-z0-9-]*)*)", page.read_text()):
            named |= set(arguments.split()) - {"for"}
        programs = re.findall(r"bench/([a-z_]+\.py)", page.read_text())
        assert set(programs) <= {"run.py", "mutants.py"}, page
    assert named <= known


def nothing(given: Given, cell: Cell) -> Measured:
    return Measured({"cpu": 1.0 + cell.run})


def one_table(rows: list[Row]) -> list[Table]:
    return [Table("All of it", ("run", "cpu"), tuple((str(r.cell.run), str(r.get("cpu"))) for r in rows))]


TOY = Experiment(
    name="toy",
    what="For tests.",
    cells=lambda profile: (Cell("", run=i) for i in range(profile.runs)),
    measure=nothing,
    tables=one_table,
    runs=2,
    page="toy.md",
)
PAGE = "# Toy\n\n<!-- python bench/run.py toy: All of it -->\nold\n<!-- end -->\n\nAfter.\n"


def test_publishing_puts_tables_into_their_places_and_nothing_else(published: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "toy.md").write_text(PAGE)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "toy.svg").write_text("of before")
    run(TOY, None, tmp_path / "out")
    drawn = replace(
        TOY, plots=lambda rows: [Plot(name, Lines("drawn", ["1"], {}, ("", ""))) for name in ("toy", "other")]
    )
    assert published.publish(drawn, tmp_path / "out") == 0
    page = (tmp_path / "toy.md").read_text()
    assert "| 0 | 1.0 |\n| 1 | 2.0 |\n" in page
    assert "old" not in page
    assert page.startswith("# Toy\n\n<!-- python bench/run.py toy: All of it -->\n\n| run |")
    assert page.endswith("<!-- end -->\n\nAfter.\n")
    assert published.refreshed(page, "toy", [])[0] == page
    assert "drawn" in (tmp_path / "results" / "toy.svg").read_text(), "a picture that the docs have is drawn anew"
    assert not (tmp_path / "results" / "other.svg").exists()
    assert published.publish(replace(TOY, name="never-run"), tmp_path / "out") == 1


def test_a_second_run_replaces_its_rows_and_leaves_the_others(published: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "toy.md").write_text(PAGE)
    run(replace(TOY, runs=3), None, tmp_path / "out")
    published.publish(TOY, tmp_path / "out")
    again = Row(Cell("", run=1), {"cpu": 7.0}, None, 0.1, "other-")
    rows_file(tmp_path / "more", TOY).parent.mkdir(parents=True)
    rows_file(tmp_path / "more", TOY).write_text(json.dumps(again.to_json()) + "\n")
    published.publish(TOY, tmp_path / "more")
    rows = read_rows(rows_file(published.RESULTS, TOY))
    assert [row.values["cpu"] for row in rows] == [1.0, 7.0, 3.0]


def test_rows_of_a_quick_run_are_published_only_where_that_is_asked_for(published: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "toy.md").write_text(PAGE)
    small = replace(TOY, cells=lambda profile: iter([Cell("", settings=(("size", 1 if profile.quick else 9),))]))
    run(small, None, tmp_path / "out", quick=True)
    assert published.publish(small, tmp_path / "out") == 1
    assert published.publish(small, tmp_path / "out", quick=True) == 0


def test_a_number_of_other_code_or_of_an_edited_page_is_stale(
    published: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toy.md").write_text(PAGE)
    assert published.check([TOY], None) == 0
    assert "docs/toy.md" in capsys.readouterr().out
    run(TOY, None, tmp_path / "out")
    published.publish(TOY, tmp_path / "out")
    assert published.check([TOY], None) == 0
    assert "toy: 0 of 2 " in capsys.readouterr().out
    (tmp_path / "toy.md").write_text((tmp_path / "toy.md").read_text().replace("| 2.0 |", "| 1.5 |"))
    assert published.check([TOY], None) == 1
    assert "docs/toy.md" in capsys.readouterr().out
    published.publish(TOY, tmp_path / "out")
    changed = replace(TOY, small=Profile((), 1, False))
    assert published.check([changed], None) == 1
    shown = capsys.readouterr().out
    assert "toy: 2 of 2 " in shown and "\n  all: 2\n" in shown


def test_stale_rows_are_of_this_code_where_a_sample_comes_out_the_same(
    published: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toy.md").write_text(PAGE)
    run(replace(TOY, runs=20), None, tmp_path / "out")
    published.publish(TOY, tmp_path / "out")
    changed = replace(TOY, small=Profile((), 1, False))
    place = rows_file(published.RESULTS, TOY)
    before = [row.version for row in read_rows(place)]
    assert published.confirm(changed, None) == 0
    assert re.search(r"\btoy: 3 of 20 .* 20 hold", capsys.readouterr().out)
    rows = read_rows(place)
    assert published.stale_rows(changed, rows, {}) == []
    assert [row.made_by for row in rows] == before, "what computed them is still said"
    assert published.confirm(changed, None) == 0
    assert " 0 of 0 " in capsys.readouterr().out


def counted(given: Given, cell: Cell) -> Measured:
    return Measured({"cpu": 2.0, "similarity": float(cell.run)}, texts={"found": cell.method})


@pytest.mark.nightly
def test_one_row_that_comes_out_otherwise_leaves_those_of_its_method_stale(
    published: ModuleType, tmp_path: Path
) -> None:
    experiment = replace(
        TOY,
        measure=counted,
        methods=("laplace", "sapa"),
        cells=lambda profile: (Cell("", m, (), i) for m in ("laplace", "sapa") for i in range(9)),
    )
    (tmp_path / "toy.md").write_text("# Toy\n")
    place = rows_file(published.RESULTS, experiment)
    place.parent.mkdir(parents=True)
    kept = [
        Row(cell, {"cpu": 7.0, "similarity": float(cell.run)}, None, 0.1, "old-", {"found": cell.method})
        for cell in experiment.cells(Profile((), 1, False))
    ]
    kept[13] = replace(kept[13], values={"cpu": 7.0, "similarity": 4.1})
    place.write_text("".join(json.dumps(row.to_json()) + "\n" for row in kept))
    assert published.confirm(experiment, None, share=1) == 1
    stale = published.stale_rows(experiment, read_rows(place), {})
    assert {row.cell.method for row in stale} == {"sapa"}
    assert len(stale) == 9


def test_another_log_makes_a_row_stale_only_where_it_is_there(published: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "hospital.csv"
    log.write_text("case,activity\n1,a\n")
    experiment = replace(TOY, cells=lambda profile: iter([Cell("hospital")]))
    (version,) = versions_of(experiment, [Cell("hospital")], {"hospital": log}).values()
    row = Row(Cell("hospital"), {}, None, 0.1, version)
    assert published.stale_rows(experiment, [row], {}) == []
    assert published.stale_rows(experiment, [row], {"hospital": log}) == []
    log.write_text("case,activity\n1,b\n")
    assert published.stale_rows(experiment, [row], {"hospital": log}) == [row]


@pytest.mark.slow
def test_what_is_published_is_what_the_kept_rows_say(program: ModuleType) -> None:
    """Tables of the docs and data of sentences equal the kept rows."""
    module = importlib.import_module("published")
    known = {experiment.name: experiment for experiment in (*program.benchmarks(), FRONTIER)}
    kept = [folder.name for folder in RESULTS.iterdir()]
    assert {"claims", "frontier"} <= set(kept) <= set(known)
    for name in kept:
        rows = read_rows(rows_file(RESULTS, known[name]))
        pages = [page.read_text() for page in module.pages_with(name)]
        places = [module.refreshed(page, name, known[name].tables(rows)) for page in pages]
        assert [after for after, _ in places] == pages, f"python bench/run.py --publish {name}"
        assert places
        if name == "frontier":
            assert json.loads(module.SENTENCES.read_text()) == json.loads(json.dumps(module.sentences(rows)))


STALE = {
    "claims": "half an hour; of the code before evolve imagined longer traces and readers took values by themselves",
    "frontier": "an hour; evolve's rows are of before its kinds of case, pripel's and libra's of before today's times",
    "large-events": "times of one machine; of the day before attributes were asked by signs of the path",
    "spark-events": "times of one machine; of the day before attributes were asked by signs of the path",
    "travag-program": "eleven minutes a training; of the day on which sums over events could be made elsewhere, before",
}
"""Published rows of older code than today's, with the reason why they stay."""


@pytest.fixture(scope="module")
def known(program: ModuleType) -> dict[str, Experiment]:
    return {experiment.name: experiment for experiment in (*program.benchmarks(), FRONTIER)}


@pytest.fixture(scope="module")
def kept(known: dict[str, Experiment]) -> dict[str, list[Row]]:
    """Return the published rows by experiment, without those known to be stale."""
    published = {folder.name for folder in RESULTS.iterdir()}
    assert set(STALE) <= published
    return {name: read_rows(rows_file(RESULTS, known[name])) for name in published - set(STALE)}


@pytest.mark.slow
def test_published_numbers_are_of_the_methods_of_now(kept: dict[str, list[Row]]) -> None:
    """Published numbers are of today's methods, or a listed exception has a reason.

    Run ``bench/run.py NAME`` and publish anew, or give a reason. The nightly test also checks the measures, which have
    snapshots and tests of their own.
    """
    cells = {(row.cell.method, row.cell.get("as_published", False) is True) for rows in kept.values() for row in rows}
    now = {cell: method_fingerprint(*cell) for cell in cells if cell[0]}
    stale = {
        (name, row.cell.method)
        for name, rows in kept.items()
        for row in rows
        if row.cell.method
        and row.version.partition(".")[0] != now[row.cell.method, row.cell.get("as_published", False) is True]
    }
    assert len(now) > 10 and stale == set()


@pytest.mark.nightly
def test_published_numbers_are_of_this_code(
    bench: None, known: dict[str, Experiment], kept: dict[str, list[Row]]
) -> None:
    module = importlib.import_module("published")
    assert {name for name, rows in kept.items() if module.stale_rows(known[name], rows, {})} == set()


def test_one_is_run_by_name(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "benchmarks", lambda: iter([TOY]))
    monkeypatch.delenv("VEILOG_LOGS", raising=False)
    arguments = ["run.py", "toy", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    assert program.main() == 0
    assert "| 1 | 2.0 |" in capsys.readouterr().out
    first = rows_file(tmp_path, TOY).read_text()
    assert program.main() == 0
    assert rows_file(tmp_path, TOY).read_text() == first, "nothing was measured again"
    monkeypatch.setattr(sys, "argv", [*arguments, "--again", "--runs", "3"])
    assert program.main() == 0
    assert len(read_rows(rows_file(tmp_path, TOY))) == 3
    monkeypatch.setattr(sys, "argv", ["run.py", "nowhere"])
    with pytest.raises(SystemExit):
        program.main()


def test_a_grid_has_every_combination_and_what_is_set_counts(bench: None) -> None:
    grid = importlib.import_module("benchmark").grid
    cells = grid("laplace,sapa", epsilon=("1", "0.1"), depth=5, quick={"epsilon": "1"})
    full = list(cells(Profile(("a", "b"), 2, False)))
    assert len(full) == 2 * 2 * 2 * 2
    assert {cell.settings for cell in full} == {(("epsilon", "1"), ("depth", 5)), (("epsilon", "0.1"), ("depth", 5))}
    assert {cell.settings for cell in cells(Profile(("a",), 1, True))} == {(("epsilon", "1"), ("depth", 5))}
    chosen = {cell.settings for cell in cells(Profile(("a",), 1, False, {"depth": "7,9"}))}
    assert chosen == {(("epsilon", e), ("depth", d)) for e in ("1", "0.1") for d in (7, 9)}
    assert {cell.log for cell in grid(logs=("",), size=(1, 2))(Profile(("a", "b"), 1, False))} == {""}


def test_what_grows_faster_than_its_log_or_got_dearer_is_named(bench: None) -> None:
    module = importlib.import_module("performance")

    def rows(power: float, reading: float) -> list[Row]:
        readers = {"DuckDB, bare query": 1.0, "veilog": reading}
        cells = {Cell("", settings=(("format", ".csv"), ("reader", name))): cpu for name, cpu in readers.items()}
        grown = {size: (size / 10_000) ** power for size in module.SIZES}
        cells |= {Cell("", settings=(("command", "risk"), ("sizes", size))): cpu for size, cpu in grown.items()}
        return [Row(cell, {"cpu": cpu, "all": cpu, "peak": 100.0}, None, 1.0, "") for cell, cpu in cells.items()]

    before = rows(1, 1.5)
    assert module.worse(rows(1.05, 1.7), before) == []
    found = module.worse(rows(1.2, 1.9), before)
    assert [line.partition(":")[0] for line in found] == ["risk of  variants"] * 2 + [".csv veilog"]
    assert "1.90" in found[-1]
    *_, exponents, billion = module.tables(before)
    assert exponents.rows == (("risk", "", "1.00", "1.00", "0.00", "0.00"),)
    assert billion.rows == (("risk", "", "1667", "-"),)


@pytest.mark.nightly
def test_no_command_grows_faster_than_its_log_and_no_ratio_got_a_fifth_worse(
    program: ModuleType, tmp_path: Path
) -> None:
    module = importlib.import_module("performance")
    (experiment,) = module.BENCHMARKS
    done = run(experiment, None, tmp_path, quick=True)
    assert [row.problem for row in done.rows if row.problem] == []
    assert module.worse(done.rows, read_rows(rows_file(RESULTS, experiment))) == []

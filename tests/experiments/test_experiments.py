"""Every experiment: its cells are those of the paper, its tables and plots hold them, and small ones run to the end."""

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

import veilog
from veilog.cli import main
from veilog.experiments import EXPERIMENTS, frontier, measuring
from veilog.experiments.experiment import Cell, Plan, Row, Table, Value, of, spread
from veilog.experiments.known_logs import LOGS
from veilog.experiments.papers import amun_table_6, amun_table_7, sacofa_figures, travas_figures
from veilog.experiments.plots import HeatMap, heat_maps, lines, panels
from veilog.experiments.runner import Run, run
from veilog.logs.made_up import simulate
from veilog.measures.process_model import ModelQuality
from veilog.measures.similarity import relative_log_similarity
from veilog.methods import METHODS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs")
    veilog.write(simulate.hospital(150, seed=3), path / "hospital.xes")
    return path


def made_up(name: str, quick: bool = False) -> Iterator[Row]:
    """A row for every cell of an experiment on its paper's logs, with made-up values."""
    experiment = EXPERIMENTS[name]
    for i, cell in enumerate(experiment.cells(Plan(experiment.logs or ("sepsis", "receipt"), 2, quick))):
        yield Row(cell, dict.fromkeys(experiment.measures, (i % 7 + 1) / 8), None, 0.1, "v")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_tables_and_plots_hold_every_cell(name: str) -> None:
    experiment = EXPERIMENTS[name]
    rows = list(made_up(name))
    tables = experiment.tables(rows)
    assert tables
    for table in tables:
        assert all(len(row) == len(table.head) for row in table.rows), table.title
    logs = {row.cell.log for row in rows}
    text = "\n".join(table.markdown() for table in tables)
    assert all(log in text for log in logs)
    assert "nan" not in text
    plots = experiment.plots(rows)
    assert plots
    assert len({plot.name for plot in plots}) == len(plots)
    for plot in plots:
        ElementTree.fromstring(plot.svg)  # well-formed
        assert "nan" not in plot.svg
        assert "http" not in plot.svg.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_tables_and_plots_stand_cells_without_values(name: str) -> None:
    rows = [Row(row.cell, {}, "refused", 0.1, "v") for row in made_up(name, quick=True)]
    assert EXPERIMENTS[name].tables(rows)
    for plot in EXPERIMENTS[name].plots(rows):
        ElementTree.fromstring(plot.svg)


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_quick_is_a_part_and_every_log_and_method_is_known(name: str) -> None:
    experiment = EXPERIMENTS[name]
    full, quick = (list(made_up(name, quick)) for quick in (False, True))
    assert len(quick) <= len(full)
    assert {row.cell.method for row in full} - {""} == set(experiment.methods) <= set(METHODS)
    assert set(experiment.logs) <= set(LOGS)
    assert len({row.cell for row in full}) == len(full)


def test_published_grids_have_the_shape_of_their_tables() -> None:
    for grid in travas_figures.PUBLISHED.values():
        assert [len(row) for row in grid] == [5, 5, 5, 5]
    for rows in amun_table_6.PUBLISHED.values():
        assert [len(row) for row in rows] == [10, 10, 10]
    assert set(amun_table_6.PUBLISHED) == set(amun_table_7.PUBLISHED) == set(amun_table_6.AMUN_LOGS)


def test_the_papers_value_stands_beside_ours() -> None:
    tables = EXPERIMENTS["travas-figures"].tables(list(made_up("travas-figures")))
    bpic = next(t for t in tables if t.title == "bpic2013_incidents: relative log similarity")
    assert bpic.rows[0][1].endswith("[0.928]")
    assert bpic.rows[3][5].endswith("[0.797]")


def test_sacofa_uses_the_settings_of_table_4() -> None:
    cells = list(sacofa_figures.cells(Plan(("sepsis",), 1, False)))
    (cell,) = [c for c in cells if c.method == "sacofa" and c.get("epsilon") == "0.01"]
    assert (cell.get("depth"), cell.get("threshold_harmful"), cell.get("threshold_harmless")) == (23, 190, 150)
    (cell,) = [c for c in cells if c.method == "sacofa" and c.get("epsilon") == "1"]
    assert cell.get("threshold_harmless", "as the harmful one") == "as the harmful one"


def test_spread_says_how_many_runs_have_a_value() -> None:
    def row(value: float | None) -> Row:
        return Row(Cell("a"), {"m": value}, None, 0.0, "")

    assert spread([row(0.5), row(0.7)], "m", ".2f") == "0.60 ± 0.14"
    assert spread([row(0.5), row(None)], "m", ".2f", 0.4) == "0.50 (1 of 2 runs) [0.40]"
    assert spread([row(None)], "m") == "not computed"
    assert spread([], "m") == "-"


def test_rows_are_found_by_settings_as_text() -> None:
    rows = [Row(Cell("a", "travas", (("epsilon", "0.1"),), i), {}, None, 0.0, "") for i in range(2)]
    assert len(of(rows, "a", "travas", epsilon=0.1)) == 2
    assert of(rows, epsilon="1") == []


def test_markdown_tables_are_safe_from_bars() -> None:
    assert "a\\|b" in Table("t", ("x",), (("a|b",),)).markdown()


def test_plots_escape_names_and_stand_gaps() -> None:
    svg = lines("a < b", ["1", "2"], {"x & y": [(0.1, 0.2, 0.3), None], "nan": [(math.nan,) * 3, None]}, ("", ""))
    assert "x & y" in "".join(ElementTree.fromstring(svg).itertext())
    grid = HeatMap("<log>", ["1"], ["2"], {("1", "2"): None}, {("1", "2"): 0.5})
    assert "<log>" in "".join(ElementTree.fromstring(heat_maps("t", [grid], ("e", "d"))).itertext())
    ElementTree.fromstring(heat_maps("nothing", [], ("e", "d")))


def test_panels_have_a_grid_a_log_and_one_legend() -> None:
    points = [(0.1, 0.2, 0.3), None]
    grids = {f"log {i}": {"one": points, "two <": points} for i in range(4)}
    svg = panels("all logs", ["1", "2"], grids, ("epsilon", "similarity"))
    words = list(ElementTree.fromstring(svg).itertext())
    assert [sum(word == name for word in words) for name in ("log 0", "log 3", "one", "two <")] == [1, 1, 1, 1]
    assert svg.count("<polyline") == 8
    ElementTree.fromstring(panels("nothing", [], {}, ("", "")))


def test_few_lines_have_their_names_at_their_ends_and_no_two_in_one_place() -> None:
    series = {name: [(0.5, 0.5, 0.5), (0.8, 0.8, 0.8)] for name in ("one", "two", "three")}
    svg = panels("few", ["1", "2"], {"log": {**series, "gone": [(0.1, 0.1, 0.1), None]}}, ("e", "s"), labelled=True)
    texts = [each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("text")]
    heights = sorted(float(each.attrib["y"]) for each in texts if each.text in series)
    assert len(heights) == 3 and min(b - a for a, b in itertools.pairwise(heights)) >= 13
    assert "gone" in [each.text for each in texts], "a line that ends early has its name, too"


def test_precision_is_estimated_where_all_prefixes_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def quality(original: object, made: object, *, seconds: float, prefixes: int | None) -> ModelQuality:
        asked.append(prefixes)
        if prefixes is None:
            return ModelQuality(fitness=0.9, not_computed={"precision": "Not done after 60 seconds."})
        return ModelQuality(fitness=0.9, precision=0.5, f_score=0.64, generalization=0.8)

    monkeypatch.setattr(measuring, "model_quality", quality)
    log = simulate.hospital(5).variants
    values, remark = measuring.models(log, log, Cell("a", models=60.0))
    assert asked == [None, measuring.PREFIXES]
    assert (values["precision"], remark) == (0.5, "precision: estimated from 100 prefixes; all of them took over 60 s.")
    values, remark = measuring.models(log, log, Cell("a", models=60.0, prefixes=100))
    assert (asked[2:], values["precision"], remark) == ([100], 0.5, None)


# To the end on the made-up hospital --------------------------------------------------------------------------------


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(
    "name", ["travas-figures", "amun-table-6", "amun-table-7", "quantification-figure-2", "quantification-table-3"]
)
def test_small_experiments_run_on_any_log(folder: Path, tmp_path: Path, name: str) -> None:
    done = run(EXPERIMENTS[name], folder, tmp_path, runs=1, quick=True)
    assert done.rows
    refused = {(row.cell.in_words(), row.problem) for row in done.rows if not row.values}
    assert len(refused) < len(done.rows), refused
    assert all(row.problem for row in done.rows if not row.values)


@pytest.fixture(scope="module")
def compared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    methods = ("evolve", "laplace", "travas", "pripel")
    return run(frontier.FRONTIER, folder, tmp_path_factory.mktemp("out"), runs=1, methods=methods, quick=True)


@pytest.mark.nightly
def test_the_frontier_compares_at_equal_derived_epsilon(compared: Run) -> None:
    cells = [row for row in compared.rows if row.cell.method]
    assert {row.cell.method for row in cells} == {"evolve", "laplace", "travas", "pripel"}
    for row in cells:
        asked = float(row.cell.get("epsilon"))
        if row.cell.get("only_real") is True and row.get("variants") == 0:
            assert row.get("derived_epsilon") == pytest.approx(0.8 * asked), "votes for nothing are not asked"
        else:
            assert row.get("derived_epsilon") == pytest.approx(asked, rel=1e-9), row.cell.in_words()


@pytest.mark.slow
def test_the_frontier_states_the_best_for_every_log_and_epsilon(compared: Run) -> None:
    winners = frontier.tables(compared.rows)[0]
    assert [row[:2] for row in winners.rows] == [("hospital", e) for e in ("2", "1", "0.1", "0.01")]
    best = frontier.best(compared.rows, "hospital", "1")
    assert best is not None
    assert winners.rows[1][2] == f"{best[0]} ({best[1]:.3f})"
    pure = frontier.best(compared.rows, "hospital", "1", pure=True)
    assert pure is not None
    assert "delta" not in pure[0]
    assert {"evolve, delta 1e-4", "evolve, only real, delta 1e-4"} <= set(frontier.tables(compared.rows)[1].head)


def test_the_frontier_says_which_methods_its_runs_do_not_tell_from_the_best() -> None:
    def row(method: str, run: int, similarity: float) -> Row:
        return Row(
            Cell("a", method, (("epsilon", "1"), ("delta", "0")), run), {"similarity": similarity}, None, 0.0, ""
        )

    values = {"evolve": (0.80, 0.90), "laplace": (0.78, 0.88), "sapa": (0.60, 0.61), "sacofa": (0.84,)}
    rows = [row(method, i, value) for method, own in values.items() for i, value in enumerate(own)]
    (line,) = frontier.tables(rows)[0].rows
    assert line == ("a", "1", "evolve (0.850)", "evolve (0.850)", "laplace (0.830)")


def test_the_frontier_says_what_is_below_the_leak_line() -> None:
    def row(method: str, settings: dict[str, str], similarity: float, run: int = 0) -> Row:
        return Row(Cell("a", method, tuple(settings.items()), run), {"similarity": similarity}, None, 0.0, "")

    told = {"epsilon": "1", "delta": "0"}
    rows = [
        row("", {"uniform": "weights"}, 0.9),
        row("", {"uniform": "drawn"}, 0.84),
        row("", {"uniform": "drawn"}, 0.86, 1),
        row("evolve", told, 0.86),
        row("laplace", told, 0.7),
        row("sapa", told, 0.5),
    ]
    named = {table.title: table for table in frontier.tables(rows)}
    (line,) = named["The leak line"].rows
    assert line == ("a", "1", "0.900", "0.850 ± 0.014", "laplace (0.700); sapa (0.500)")
    assert frontier.best(rows, "a", "1") == ("evolve", 0.86), "the line is no method"
    assert "leak line" in frontier.plots(rows)[0].svg
    assert "The leak line" not in {table.title for table in frontier.tables(rows[3:])}


def test_the_frontier_in_brief_has_the_log_itself_our_own_and_the_best_of_the_others() -> None:
    def row(method: str, settings: dict[str, Value], **values: float) -> Row:
        return Row(Cell("a", method, tuple(settings.items())), values, None, 0.0, "")

    told: dict[str, Value] = {"epsilon": "1", "delta": "0"}
    rows = [
        row("", {}, fitness=0.9, precision=0.5, next_activity=0.8, rules=0.0),
        row("", {"uniform": "weights"}, similarity=0.9, next_activity=0.7, rules=0.1),
        row("evolve", told, similarity=0.7, fitness=0.9, precision=0.4, next_activity=0.75, rules=0.02),
        row("laplace", told, similarity=0.5, fitness=0.45, precision=1.0, next_activity=0.6, rules=0.01),
        row("sapa", told, similarity=0.6, fitness=0.9, precision=0.3, next_activity=0.7, rules=0.03),
    ]
    table = {table.title: table for table in frontier.tables(rows)}["What releases are good for"]
    column = {name: place for place, name in enumerate(table.head)}
    found = {line[1]: line for line in table.rows}
    assert found["fitness / precision"][column["best of the others"]] == "0.900 / 0.300 (sapa)", "F would say laplace"
    assert found["fitness / precision"][column["the log itself"]] == "0.900 / 0.500"
    assert found["fitness / precision"][column["leak line"]] == "-", "it was not measured"
    assert found["next activity"][2:4] == ("0.800", "0.750")
    assert found["error of rules"][column["best of the others"]] == "0.010 (laplace)"
    assert "What releases are good for" not in {table.title for table in frontier.tables(rows[1:2])}
    few = {plot.name: plot for plot in frontier.plots(rows)}["frontier-brief"]
    assert "best of the others" in few.svg and "sapa" not in few.svg


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("name", "weights", "drawn"), [("sepsis", 0.908, 0.857), ("bpic2013_incidents", 0.556, 0.556)])
def test_the_leak_line_of_public_logs(logs: Path, name: str, weights: float, drawn: float) -> None:
    original = veilog.read(logs / f"{name}.xes.gz").variants
    once = frontier.uniform(original, "weights", 0)
    assert once.to_dict().keys() == original.to_dict().keys() and set(once.to_dict().values()) == {1}
    assert relative_log_similarity(original, once).value == pytest.approx(weights, abs=0.001)
    made = [frontier.uniform(original, "drawn", seed) for seed in range(10)]
    assert all(one.cases == original.cases for one in made)
    similar = [relative_log_similarity(original, one).value for one in made]
    assert sum(similar) / len(similar) == pytest.approx(drawn, abs=0.01)


def test_the_frontier_takes_all_certified_methods_with_an_epsilon() -> None:
    assert set(frontier.CERTIFIED) == {m.name for m in METHODS.values() if m.certified and m.takes_epsilon}


@pytest.mark.slow
def test_the_command_writes_rows_for_machines_and_a_page_for_people(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, rows = tmp_path / "out", tmp_path / "rows.json"
    command = ["experiment", "quantification-figure-2", "--logs", str(folder), "--quick", "--processes", "1"]
    assert main([*command, "--out", str(out), "--json", str(rows)]) == 0
    written = json.loads(rows.read_text())
    assert written["computed"] == len(written["rows"]) == 18
    page = (out / "quantification-figure-2" / "quantification-figure-2.md").read_text()
    assert "`veilog experiment quantification-figure-2 --logs FOLDER --quick`" in page
    assert LOGS["bpic2017"].doi in page
    assert str(folder) not in page
    assert (out / "quantification-figure-2" / "disclosure-hospital.svg").exists()
    assert "18 cells computed" in capsys.readouterr().out
    assert main([*command, "--out", str(out)]) == 0
    assert "0 cells computed, 18 were there already" in capsys.readouterr().out

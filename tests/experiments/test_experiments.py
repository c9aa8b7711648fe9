"""Every experiment has the paper's cells, tables and plots, and runs to the end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import veilog
from veilog.cli import main
from veilog.errors import ParameterError
from veilog.experiments import EXPERIMENTS, FIGURES, experiment, frontier
from veilog.experiments import experiment as measuring
from veilog.experiments.experiment import LOGS, Cell, Given, Panels, Profile, Reason, Row, Table, Value, of, spread
from veilog.experiments.papers import manifest
from veilog.experiments.papers import measures as papers_measures
from veilog.experiments.runner import ExperimentRun, run
from veilog.logs.synthetic import hospital
from veilog.logs.variants import Variants
from veilog.measures.process_model import ModelQuality
from veilog.measures.similarity import relative_log_similarity
from veilog.messages import Message
from veilog.methods import METHODS

# Labels of columns and a title of a table.
BEST, ONLY_REAL, GOOD_FOR = "best of the others", "only real", "What releases are good for"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs")
    veilog.write(hospital.hospital(150, seed=3), path / "hospital.xes")
    return path


def made_up(name: str, quick: bool = False) -> Iterator[Row]:
    """Yield a row of synthetic values for every cell on the logs of the paper."""
    experiment = EXPERIMENTS[name]
    for i, cell in enumerate(experiment.cells(Profile(experiment.logs or ("sepsis", "receipt"), 2, quick))):
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
    assert plots or not experiment.plots.__self__.axes, "what has no axis is a table alone"  # type: ignore[attr-defined]
    assert len({plot.name for plot in plots}) == len(plots)


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_tables_and_plots_stand_cells_without_values(name: str) -> None:
    rows = [Row(row.cell, {}, "refused", 0.1, "v") for row in made_up(name, quick=True)]
    assert EXPERIMENTS[name].tables(rows)
    assert len(EXPERIMENTS[name].plots(rows)) <= len(rows)


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_quick_is_a_part_and_every_log_and_method_is_known(name: str) -> None:
    experiment = EXPERIMENTS[name]
    full, quick = (list(made_up(name, quick)) for quick in (False, True))
    assert len(quick) <= len(full)
    assert {row.cell.method for row in full} - {""} == set(experiment.methods) <= set(METHODS)
    assert set(experiment.logs) <= set(LOGS)
    assert len({row.cell for row in full}) == len(full)


def line(table: Table, *starts: str) -> dict[str, str]:
    """Return the one line of a table that begins so, by its heads."""
    (found,) = [row for row in table.rows if row[: len(starts)] == starts]
    return dict(zip(table.head, found, strict=True))


def titled(tables: list[Table], *words: str) -> Table:
    (found,) = [table for table in tables if all(word in table.title for word in words)]
    return found


@pytest.mark.parametrize(
    ("name", "table", "starts", "published"),
    [
        ("travag-figures", ("Figure 2: ", "similarity"), ("bpic2013_incidents", "TraVaG", "1", "0.01"), "0.803"),
        ("travag-figures", ("Figure 2: ", "difference"), ("bpic2013_incidents", "benchmark", "1", "0.01"), "6,954,440"),
        ("travag-figures", ("Figure 5: ", "fitness of release"), ("sepsis", "TraVaG", "1", "0.01"), "0.946"),
        ("travag-figures", ("Figure 3: ", "similarity"), ("sepsis", "TraVaG", "0.01", "0.01"), "0.563"),
        ("travas-figures", ("Heat maps: ", "similarity"), ("bpic2013_incidents", "TraVaS", "2", "0.5"), "0.928"),
        ("travas-figures", ("by place",), ("sepsis", "SaCoFa", "0.01", "0.001"), "0.629"),
        ("amun-table-6", ("frequency",), ("unrineweginfectie", "PRIPEL", "0.3", "0.5"), "290.47"),
        ("amun-table-6", ("time",), ("sepsis", "Amun, oversampling", "0.4", ""), "26.61"),
        ("amun-table-9", ("frequency",), ("sepsis", "SaCoFa", "0.2", "1"), "118.91"),
        ("amun-table-6", ("average epsilon",), ("sepsis", "Amun, sampling, as its program", "0.2"), "1.310"),
        ("amun-table-9", ("smallest epsilon",), ("bpic2015", "Amun, sampling, as its program", "0.4"), "0.880"),
        ("amun-table-10", ("time",), ("unrineweginfectie", "PRIPEL", "0.4", "5"), "27,205"),
        ("amun-table-7", ("cpu minutes",), ("bpic2018", "Amun, oversampling"), "-"),
        ("amun-figure-3", ("lost",), ("sepsis", "PRIPEL"), "839.00"),
        ("quantification-figure-2", ("2a", "case disclosure"), ("sepsis", "sequence", "3"), "0.188"),
        ("quantification-table-3", ("Table 3", "events"), ("sepsis", "TLKC, sequence", "40"), "4,460"),
    ],
)
def test_the_papers_value_stands_beside_ours(
    name: str, table: tuple[str, ...], starts: tuple[str, ...], published: str
) -> None:
    found = line(titled(EXPERIMENTS[name].tables(list(made_up(name))), *table), *starts)
    assert found["paper"] == published
    assert found["why"] == Reason.PAPER_GIVES_NONE if published == "-" else found["deviation"] != "-"


def test_a_cell_without_a_value_has_a_reason() -> None:
    for name, trial in EXPERIMENTS.items():
        if name == "frontier":
            continue
        rows = [Row(cell, {}, Reason.LOG_NOT_HERE, 0, "") for cell in trial.cells(Profile(trial.logs, 1, False))]
        for table in trial.tables(rows):
            told = [dict(zip(table.head, row, strict=True)) for row in table.rows]
            assert told and all(row["here"] == "-" and row["why"] == Reason.LOG_NOT_HERE for row in told), table.title


@pytest.mark.parametrize(
    ("paper", "numbers"),
    [
        ("TraVaG, 2023", {"Table 2", "Figure 2", "Figure 3", "Figure 4", "Figure 5"}),
        ("quantifying", {"Table 1", "Table 2", "Table 3", "Figure 2a", "Figure 2b", "Figure 3a", "Figure 3b"}),
        ("Amun", {"Table 6", "Table 7", "Table 8", "Table 9", "Table 10", "Figure 3"}),
        ("SaCoFa", {"Table 1", "Table 2", "Table 3", *(f"Figure {i}" for i in range(2, 11))}),
        ("metrics", {"Figures 1.1 and 1.2", "Figures 1.3 and 1.4"}),
    ],
)
def test_the_manifest_has_every_table_and_figure_with_results(paper: str, numbers: set[str]) -> None:
    own = [figure for figure in FIGURES if paper in figure.paper]
    assert numbers <= {figure.number for figure in own}
    root = Path(__file__).resolve().parents[2]
    assert all((root / figure.test).exists() if figure.test else figure.experiment in EXPERIMENTS for figure in own)


def test_methods_have_the_papers_settings() -> None:
    def settings(name: str, log: str, method: str, **axes: str) -> list[dict[str, Value]]:
        cells = EXPERIMENTS[name].cells(Profile((log,), 1, False))
        told = [dict(cell.settings) for cell in cells if cell.method == method]
        return [one for one in told if axes.items() <= one.items()]

    (sacofa,) = settings("sacofa-figures", "sepsis", "sacofa", epsilon="0.01")
    assert (sacofa["depth"], sacofa["threshold_harmful"], sacofa["threshold_harmless"]) == (23, 190, 150)
    (sacofa,) = settings("sacofa-figures", "sepsis", "sacofa", epsilon="1")
    assert "threshold_harmless" not in sacofa
    benchmark = settings("travag-figures", "sepsis", "laplace", epsilon="1/19")
    assert [(one["threshold"], one["delta"], one["variants"]) for one in benchmark] == [
        (38, "1/1900", "450-900"),
        (39, "1/19000", "450-900"),
    ]
    elsewhere = settings("travag-figures", "receipt", "laplace", epsilon="1/25")
    assert elsewhere and not any("variants" in one for one in elsewhere)
    trained = settings("travag-figures", "bpic2013_incidents", "travag", settings="program")
    assert len(trained) == 20 and trained[0]["configuration"] == "bpic13-2-0.01"
    pripel = settings("amun-table-6", "unrineweginfectie", "pripel", epsilon="3.41")
    assert pripel[0]["query_parameters"] == "depth=4,threshold=9"
    assert [one["k"] for one in settings("sacofa-figure-10", "receipt", "sapa", epsilon="1")] == [1, 2, 3, 4, 5]


def test_a_row_with_an_unknown_setting_is_refused() -> None:
    series = {"x": manifest.PaperSeries("x", "laplace")}
    with pytest.raises(ParameterError):
        manifest._cell({"series": "x", "log": "sepsis", "depht": "3"}, series, (), ())


def test_similarity_by_place_cancels_different_variants() -> None:
    ours, theirs = {("a", "b"): 3, ("c", "d"): 1}, {("c", "d"): 3, ("a", "b"): 1}
    assert papers_measures.similarity_by_place(ours, theirs) == 1.0
    assert relative_log_similarity(Variants.from_dict(ours), Variants.from_dict(theirs)).value == 0.5


def test_a_log_may_be_a_part_of_a_published_one(tmp_path: Path) -> None:
    rows = [("1", "a", "start"), ("1", "a", "COMPLETE"), ("2", "b", "start"), ("3", "b", "complete")]
    lines_ = [f"{c},{a},2024-01-0{i + 1}T00:00:00,{t}" for i, (c, a, t) in enumerate(rows)]
    head = "case:concept:name,concept:name,time:timestamp,lifecycle:transition"
    (tmp_path / "bpic2012.csv").write_text("\n".join([head, *lines_]) + "\n")
    found = experiment.find(tmp_path, ("bpic2012_complete",))
    assert found["bpic2012_complete"] == found["bpic2012"]
    whole = veilog.read(found["bpic2012"], lifecycle="all")
    part = experiment.part_of("bpic2012_complete", whole)
    assert part.variants.to_dict() == {("a",): 1, ("b",): 1}
    assert experiment.part_of("bpic2012", whole) is whole


def test_only_the_trainings_of_the_program_have_an_estimate() -> None:
    experiment = EXPERIMENTS["travag-figures"]
    cells = list(experiment.cells(Profile(("sepsis", "bpic2013_incidents", "hospital"), 1, False)))
    hours = {(cell.log, cell.get("settings")): experiment.hours(cell) for cell in cells if cell.method == "travag"}
    assert [hours[log, "program"] for log in ("sepsis", "bpic2013_incidents", "hospital")] == [0.2, 0.5, 0.5]
    assert hours["sepsis", ""] == 0.0


@pytest.mark.slow
def test_the_list_has_what_is_here_and_what_is_done(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "list.json"
    assert main(["experiment", "--list", "--logs", str(logs), "--out", str(tmp_path), "--json", str(told)]) == 0
    found = json.loads(told.read_text())
    assert len(found) == len(FIGURES)
    (app,) = [one for one in found if one["number"] == "Figure 2b"]
    assert (app["not_here"], app["status"]) == ({"bpic2017_app": LOGS["bpic2017"].doi}, "log not here")
    assert "10.4121" in capsys.readouterr().out
    assert main(["experiment", "--logs", str(logs)]) == 2
    assert main(["experiment", "travas-figures"]) == 2


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


def test_precision_is_estimated_where_all_prefixes_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def quality(original: object, made: object, *, noise: float, seconds: float, prefixes: int | None) -> ModelQuality:
        asked.append(prefixes)
        if prefixes is None:
            return ModelQuality(fitness=0.9, not_computed={"precision": "Not done after 60 seconds."})
        return ModelQuality(fitness=0.9, precision=0.5, f_score=0.64, generalization=0.8)

    monkeypatch.setattr(measuring, "model_quality", quality)
    log = hospital.hospital(5).variants
    values, remark = measuring.models(log, log, Cell("a", models=60.0))
    assert asked == [None, measuring.PREFIXES]
    assert (values["precision"], remark) == (
        0.5,
        Message("experiment-precision-estimated", prefixes=100, seconds=60.0).english,
    )
    values, remark = measuring.models(log, log, Cell("a", models=60.0, prefixes=100))
    assert (asked[2:], values["precision"], remark) == ([100], 0.5, None)


def test_models_of_the_sacofa_paper_are_discovered_with_and_without_a_noise_threshold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def quality(original: object, made: object, *, noise: float, **rest: object) -> ModelQuality:
        return ModelQuality(fitness=noise, precision=noise, f_score=noise, generalization=noise)

    monkeypatch.setattr(measuring, "model_quality", quality)
    log = hospital.hospital(5)
    experiment = EXPERIMENTS["sacofa-figures"]
    values = experiment.measure(Given(None, part=log), Cell("a", models=60.0)).values
    for name in ("f_score", "fitness", "precision", "generalization"):
        assert (values[name], values[f"{name}_no_threshold"]) == (0.2, 0.0)
        assert {name, f"{name}_no_threshold"} <= set(experiment.measures)


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
def compared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> ExperimentRun:
    methods = ("evolve", "laplace", "travas", "pripel")
    return run(frontier.FRONTIER, folder, tmp_path_factory.mktemp("out"), runs=1, methods=methods, quick=True)


@pytest.mark.nightly
def test_the_frontier_compares_at_equal_derived_epsilon(compared: ExperimentRun) -> None:
    cells = [row for row in compared.rows if row.cell.method]
    assert {row.cell.method for row in cells} == {"evolve", "laplace", "travas", "pripel"}
    for row in cells:
        asked = float(row.cell.get("epsilon"))
        if row.cell.get("only_real") is True and row.get("variants") == 0:
            assert row.get("derived_epsilon") == pytest.approx(0.8 * asked), "votes for nothing are not asked"
        else:
            assert row.get("derived_epsilon") == pytest.approx(asked, rel=1e-9), row.cell.in_words()


@pytest.mark.nightly
def test_the_frontier_states_the_best_for_every_log_and_epsilon(compared: ExperimentRun) -> None:
    winners = frontier.tables(compared.rows)[0]
    assert [row[:2] for row in winners.rows] == [("hospital", e) for e in ("2", "1", "0.1", "0.01")]
    best = frontier.best(compared.rows, "hospital", "1")
    assert best is not None
    assert winners.rows[1][2] == f"{best[0]} ({best[1]:.3f})"
    pure = frontier.best(compared.rows, "hospital", "1", pure=True)
    assert pure is not None
    assert "delta" not in pure[0]
    assert {"evolve, delta 1e-4", f"evolve, {ONLY_REAL}, delta 1e-4"} <= set(frontier.tables(compared.rows)[1].head)


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
    (line,) = named["The unprotected baseline"].rows
    assert line == ("a", "1", "0.900", "0.850 ± 0.014", "laplace (0.700); sapa (0.500)")
    assert frontier.best(rows, "a", "1") == ("evolve", 0.86), "the line is no method"
    both = frontier.plots(rows)[0].drawing
    assert isinstance(both, Panels)
    assert "unprotected baseline" in both.grids["a"]
    assert "The unprotected baseline" not in {table.title for table in frontier.tables(rows[3:])}


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
    table = {table.title: table for table in frontier.tables(rows)}[GOOD_FOR]
    column = {name: place for place, name in enumerate(table.head)}
    found = {line[1]: line for line in table.rows}
    assert found["fitness / precision"][column[BEST]] == "0.900 / 0.300 (sapa)", "F would say laplace"
    assert found["fitness / precision"][column["the log itself"]] == "0.900 / 0.500"
    assert found["fitness / precision"][column["unprotected baseline"]] == "-", "it was not measured"
    assert found["next activity"][2:4] == ("0.800", "0.750")
    assert found["error of rules"][column[BEST]] == "0.010 (laplace)"
    assert GOOD_FOR not in {table.title for table in frontier.tables(rows[1:2])}
    few = {plot.name: plot.drawing for plot in frontier.plots(rows)}["frontier-brief"]
    assert isinstance(few, Panels)
    assert BEST in few.grids["a"] and "sapa" not in few.grids["a"]


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


@pytest.mark.nightly
def test_the_command_writes_rows_for_machines_and_a_page_for_people(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, rows = tmp_path / "out", tmp_path / "rows.json"
    command = ["experiment", "quantification-figure-2", "--logs", str(folder), "--quick", "--processes", "1"]
    assert main([*command, "--out", str(out), "--json", str(rows)]) == 0
    written = json.loads(rows.read_text())
    assert written["computed"] == len(written["rows"]) == 24
    assert {row["log"] for row in written["not_run"]} == {"sepsis", "bpic2017_app"}
    assert all(row["why"].startswith(Reason.LOG_NOT_HERE) for row in written["not_run"])
    page = (out / "quantification-figure-2" / "quantification-figure-2.md").read_text()
    assert "`veilog experiment quantification-figure-2 --logs FOLDER --quick`" in page
    assert LOGS["bpic2017"].doi in page
    assert str(folder) not in page
    assert (out / "quantification-figure-2" / "quantification-figure-2-figure-2a-case-disclosure-hospital.svg").exists()
    assert "24 cells computed" in capsys.readouterr().out
    assert main([*command, "--out", str(out)]) == 0
    assert {"0", "24"} <= set(capsys.readouterr().out.split())

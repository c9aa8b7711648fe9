"""A run resumes, goes on after a failed cell, and explains what it cannot do."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from refusals import refused, sentence

import veilog
from veilog.cli import main
from veilog.errors import InputError, ParameterError
from veilog.experiments import EXPERIMENTS, experiment_named, results, runner
from veilog.experiments.experiment import (
    EMPTY,
    LOGS,
    Cell,
    Experiment,
    Given,
    KnownLog,
    Lines,
    Measured,
    Plot,
    Profile,
    Reason,
    Row,
    Table,
    find,
)
from veilog.experiments.runner import ExperimentRun, run
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs")
    veilog.write(hospital(150, seed=3), path / "hospital.xes")
    return path


def counted(given: Given, cell: Cell) -> Measured:
    """Leave a file as a mark of the call, and fail for some cells in different ways."""
    marks = Path(os.environ["VEILOG_TEST_MARKS"])
    (marks / f"{len(list(marks.iterdir()))}-{cell.run}").touch()
    if cell.run == int(os.environ.get("VEILOG_TEST_REFUSED", -1)):
        raise ParameterError("disk-full")
    if cell.run == int(os.environ.get("VEILOG_TEST_STOPPED", -1)):
        raise KeyboardInterrupt
    if cell.run == int(os.environ.get("VEILOG_TEST_KILLED", -1)):
        os._exit(9)
    return Measured({"cases": given.log.variants.cases})


def some_cells(profile: Profile) -> Iterator[Cell]:
    yield from (Cell(log, "travas", (("epsilon", "1"),), i) for log in profile.logs for i in range(profile.runs))


def one_table(rows: tuple[Row, ...]) -> list[Table]:
    return [Table("All", ("run", "cases"), tuple((str(r.cell.run), str(r.get("cases"))) for r in rows))]


COUNTED = Experiment(
    name="counted",
    paper="",
    what="For tests.",
    logs=(),
    methods=("travas",),
    measures=("cases",),
    cells=some_cells,
    measure=counted,
    tables=one_table,
    plots=lambda rows: [],
)


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "marks"
    path.mkdir()
    monkeypatch.setenv("VEILOG_TEST_MARKS", str(path))
    return path


@pytest.mark.slow
def test_a_finished_cell_is_never_computed_again(folder: Path, tmp_path: Path, marks: Path) -> None:
    first = run(COUNTED, folder, tmp_path, runs=3)
    again = run(COUNTED, folder, tmp_path, runs=4)
    assert (first.computed, again.computed) == (3, 1)
    assert len(list(marks.iterdir())) == 4
    assert [row.get("cases") for row in again.rows] == [150.0] * 4


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_is_finished(
    folder: Path, tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEILOG_TEST_STOPPED", "2")
    with pytest.raises(KeyboardInterrupt):
        run(COUNTED, folder, tmp_path, runs=4)
    monkeypatch.delenv("VEILOG_TEST_STOPPED")
    resumed = run(COUNTED, folder, tmp_path, runs=4)
    assert resumed.computed == 2, "runs 0 and 1 were there"
    kept = (tmp_path / "counted" / "cells.jsonl").read_text().splitlines()
    assert [json.loads(line)["cell"]["run"] for line in kept] == [0, 1, 2, 3]


@pytest.mark.nightly
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_all_processes_and_keeps_what_is_finished(folder: Path, tmp_path: Path) -> None:
    options = [
        "--logs",
        str(folder),
        "--out",
        str(tmp_path),
        "--methods",
        "travas",
        "--runs",
        "400",
        "--processes",
        "2",
    ]
    command = [sys.executable, "-m", "veilog", "experiment", "travas-figures", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    cells = tmp_path / "travas-figures" / "cells.jsonl"
    try:
        for _ in range(600):
            if process.poll() is not None or (cells.exists() and cells.read_text().count("\n") >= 2):
                break
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process of it gets the signal
        _, errors = process.communicate(timeout=60)  # returns when no process holds the pipes any more
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert "Traceback" not in errors
    kept = cells.read_text().splitlines()
    assert len(kept) >= 2
    rows = [json.loads(line) for line in kept]
    assert all(row["values"] or row["problem"] == EMPTY for row in rows), "what was interrupted is not kept"


def test_a_cell_is_computed_again_when_its_method_has_changed(
    folder: Path, tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(COUNTED, folder, tmp_path, runs=2)
    monkeypatch.setattr(runner, "method_fingerprint", lambda method, as_published: "upgraded")
    assert run(COUNTED, folder, tmp_path, runs=2).computed == 2
    assert run(COUNTED, folder, tmp_path, runs=2).computed == 0


def test_a_cell_is_computed_again_when_the_log_has_changed(tmp_path: Path, marks: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    veilog.write(hospital(20, seed=1), logs / "hospital.csv")
    run(COUNTED, logs, tmp_path, runs=1)
    veilog.write(hospital(30, seed=1), logs / "hospital.csv", overwrite=True)
    again = run(COUNTED, logs, tmp_path, runs=1)
    assert (again.computed, again.rows[0].get("cases")) == (1, 30.0)


@pytest.mark.parametrize("left", ["", "{", '{"version": 1}', "[]", "null\n"])
def test_a_broken_line_is_computed_again(folder: Path, tmp_path: Path, marks: Path, left: str) -> None:
    run(COUNTED, folder, tmp_path, runs=1)
    kept = tmp_path / "counted" / "cells.jsonl"
    kept.write_text(left)
    assert run(COUNTED, folder, tmp_path, runs=1).computed == 1
    assert json.loads(kept.read_text().splitlines()[-1])["values"] == {"cases": 150}
    assert run(COUNTED, folder, tmp_path, runs=1).computed == 0


def test_a_kept_row_says_which_code_and_machine_made_it(folder: Path, tmp_path: Path, marks: Path) -> None:
    done = run(COUNTED, folder, tmp_path, runs=2)
    rows = runner.read_rows(runner.rows_file(tmp_path, COUNTED))
    assert tuple(rows) == done.rows
    assert rows[0].machine == runner.machine() != ""
    assert [row.version for row in rows] == list(
        runner.versions_of(COUNTED, [row.cell for row in rows], find(folder)).values()
    )


def made_up(given: Given, cell: Cell) -> Measured:
    """Keep a file of its own, like a large log that is made only once."""
    with (given.folder / "own").open("a") as file:
        file.write("x")
    return Measured({"process": os.getpid()}, texts={"which": "its own"})


MADE_UP = replace(COUNTED, name="made-up", cells=lambda profile: (Cell("", run=i) for i in range(3)), measure=made_up)


@pytest.mark.nightly
def test_a_benchmark_needs_no_logs_and_has_a_process_for_each_cell(tmp_path: Path) -> None:
    done = run(replace(MADE_UP, alone=True), None, tmp_path)
    processes = {row.get("process") for row in done.rows}
    assert len(processes) == 3
    assert os.getpid() not in processes
    assert [row.texts for row in done.rows] == [{"which": "its own"}] * 3
    assert (tmp_path / "made-up" / "own").read_text() == "xxx"
    assert done.rows[0].version.endswith("-"), "there is no log to have a digest"


def two_hours_again(cell: Cell) -> float:
    return 2.0 * cell.run


def test_a_cell_that_is_not_run_has_its_reason(
    folder: Path, tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LOGS, "hospital", KnownLog("A log that is here", "10.1/1"))
    monkeypatch.setitem(LOGS, "secret", KnownLog("A log of nobody else", ""))
    experiment = replace(COUNTED, hours=two_hours_again, logs=("hospital", "sepsis", "secret"))
    done = run(experiment, folder, tmp_path, runs=2, hours=1)
    assert done.computed == 1 and not any(row.problem for row in done.rows)
    found = {(row.cell.log, row.cell.run): row.problem for row in done.not_run}
    assert found == {
        ("hospital", 1): "over 1 hours (about 2)",
        ("sepsis", 0): f"{Reason.LOG_NOT_HERE}: doi:{LOGS['sepsis'].doi}",
        ("secret", 0): Reason.LOG_NOT_PUBLIC,
    }
    assert {row["why"] for row in results.to_json(done)["not_run"]} == set(found.values())
    assert run(experiment, folder, tmp_path, runs=2).computed == 1, "without a limit"


def test_the_file_of_a_log_is_missed_in_words(tmp_path: Path, marks: Path) -> None:
    done = run(replace(COUNTED, cells=lambda profile: iter([Cell("sepsis")])), None, tmp_path)
    assert done.rows[0].problem == Message("experiment-log-missing").english


@pytest.mark.slow
def test_a_refused_cell_says_why_and_the_run_goes_on(
    folder: Path, tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEILOG_TEST_REFUSED", "1")
    done = run(COUNTED, folder, tmp_path, runs=3)
    assert [row.problem for row in done.rows] == [None, str(ParameterError("disk-full")), None]
    page = results.markdown(done, "the command")
    assert f"| hospital | travas | 1 | {ParameterError('disk-full')} |" in page
    assert "`the command`" in page
    assert run(COUNTED, folder, tmp_path, runs=3).computed == 0, "it would be refused again"


@pytest.mark.nightly
def test_a_killed_process_costs_one_cell_which_is_tried_again(
    folder: Path, tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VEILOG_TEST_KILLED", "0")
    done = run(COUNTED, folder, tmp_path, runs=3, processes=2)
    assert [row.get("cases") for row in done.rows] == [None, 150.0, 150.0]
    assert done.rows[0].problem == Message("experiment-process-ended", status=9).english
    monkeypatch.delenv("VEILOG_TEST_KILLED")
    again = run(COUNTED, folder, tmp_path, runs=3)
    assert (again.computed, again.rows[0].get("cases")) == (1, 150.0)


def test_results_are_a_row_a_cell_in_every_format(folder: Path, tmp_path: Path, marks: Path) -> None:
    done = run(COUNTED, folder, tmp_path, runs=2)
    files = results.write(done, tmp_path, "the command")
    table = pyarrow.parquet.read_table(files.parquet)
    assert table.column_names == ["log", "method", "run", "epsilon", "cases", "problem", "cell_seconds", "version"]
    assert table["run"].to_pylist() == [0, 1]
    assert pyarrow.csv.read_csv(files.csv)["cases"].to_pylist() == [150, 150]
    assert files.page.read_text().startswith("# counted\n")


def test_a_page_stands_without_plots_where_they_cannot_be_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    drawn = replace(COUNTED, plots=lambda rows: [Plot("one", Lines("one", ["1"], {}, ("", "")))])
    (tmp_path / COUNTED.name).mkdir()
    files = results.write(ExperimentRun(drawn, Profile((), 1, False), (), 0, ()), tmp_path, "the command")
    assert files.page.exists() and files.plots == () and files.no_plots is not None
    assert "![" not in files.page.read_text()


@pytest.mark.parametrize("content", [None, "notes.txt"])
def test_a_folder_without_logs_is_refused_in_words(
    tmp_path: Path, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if content:
        (tmp_path / content).write_text("no log")
    assert main(["experiment", "frontier", "--logs", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert sentence("experiment-folder-without-logs") in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with refused(InputError, "experiment-folder-missing"):
        find(tmp_path / "nowhere")


PUBLISHED = {
    "Hospital_log.xes.gz": "bpic2011",
    "BPI_Challenge_2012.xes.gz": "bpic2012",
    "BPI_Challenge_2013_incidents.xes": "bpic2013_incidents",
    "Detail_Incident_Activity.csv": "bpic2014",
    "BPIC15_1.xes": "bpic2015",
    "BPI Challenge 2017.xes.gz": "bpic2017",
    "BPI Challenge 2018.xes.gz": "bpic2018",
    "BPI_Challenge_2019.xes": "bpic2019",
    "PermitLog.xes": "bpic2020",
    "CCC19 - Log XES.xes": "ccc19",
    "CoSeLoG WABO 1.xes": "coselog_wabo_1",
    "CreditRequirement.xes.gz": "credit_requirement",
    "Hospital Billing - Event Log.xes.gz": "hospital_billing",
    "Receipt phase of an environmental permit application process ( WABO ), CoSeLoG project.xes.gz": "receipt",
    "Sepsis Cases - Event Log.xes.gz": "sepsis",
    "Road_Traffic_Fine_Management_Process.xes.gz": "traffic_fines",
    "Unrineweginfectie.csv": "unrineweginfectie",
}


def test_logs_are_found_under_their_published_names_too(tmp_path: Path) -> None:
    for name in (*PUBLISHED, "own.csv", ".hidden.csv"):
        (tmp_path / name).touch()
    found = {path.name: name for name, path in find(tmp_path).items()}
    assert found == PUBLISHED | {"own.csv": "own"}


def test_a_log_of_another_name_is_found_by_its_counts(tmp_path: Path, logs: Path) -> None:
    shutil.copy(logs / "unrineweginfectie.xes.gz", tmp_path / "renamed.xes.gz")
    (tmp_path / "broken.csv").write_text("nothing")
    assert set(find(tmp_path)) == {"renamed", "broken"}
    assert set(find(tmp_path, ("sepsis", "unrineweginfectie"))) == {"unrineweginfectie", "broken"}


def test_missing_logs_are_named_with_their_doi(folder: Path, tmp_path: Path) -> None:
    experiment = replace(COUNTED, logs=("sepsis", "bpic2017"), cells=lambda profile: iter([Cell("hospital")]))
    done = run(replace(experiment, measure=measure_nothing), folder, tmp_path)
    (remark,) = done.remarks
    assert all(LOGS[name].doi in remark for name in ("sepsis", "bpic2017"))


def measure_nothing(given: Given, cell: Cell) -> Measured:
    return Measured({})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"methods": ("nothing",)}, "experiment-method-unknown"),
        ({"only": ("nowhere",)}, "experiment-log-unknown"),
        ({"runs": 0}, "experiment-runs-out-of-range"),
        ({"processes": 0}, "processes-out-of-range"),
    ],
)
def test_wrong_wishes_are_refused(folder: Path, tmp_path: Path, options: dict, said: str) -> None:
    with refused(ParameterError, said):
        run(COUNTED, folder, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_an_unknown_experiment_is_answered_with_all_there_are() -> None:
    with pytest.raises(ParameterError) as caught:
        experiment_named("figure-9")
    assert all(name in str(caught.value) for name in EXPERIMENTS)

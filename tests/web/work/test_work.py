"""Work behind the pages: reading, the dry run, the release and its files."""

import errno
import json
import re
import shlex
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refused, sentence
from surfaces import in_command
from web_logs import EVOLVE, check_of, job, read, record, released, request_of, silent, written

import veilog
from veilog import cli
from veilog._plain import from_plain, to_plain
from veilog._plugins import AddOn
from veilog._process import GivenUp
from veilog.errors import InputError, ParameterError
from veilog.ledger.ledger import Ledger
from veilog.ledger.store import fingerprint
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.messages import for_surface
from veilog.methods import METHODS
from veilog.methods.laplace import LaplaceSettings, laplace
from veilog.methods.settings import Range
from veilog.privacy.account.guessing_advantage import worth
from veilog.privacy.domain import Domain
from veilog.releasing.request import ReleaseRequest, plan
from veilog.web.jobs.records import FILES, JobRequest, ServerSettings
from veilog.web.jobs.results import ReleasedLog
from veilog.web.jobs.worker import MORE, RELEASING, Stages, WorkerTask
from veilog.web.pages import render as pages
from veilog.web.work import preview, preview_form, release_job, release_log, work_on
from veilog.web.work.accounts import InAccount
from veilog.web.work.preview import FormPreview, guarantee_beside
from veilog.web.work.request import offered_parameters, requested_options


@pytest.fixture(scope="module")
def hospital_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hospital") / "log.xes"
    files.write(hospital(150, seed=3), path)
    return path


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let plans wait for their trials, however slow the machine is."""
    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 600.0)


# Reading.


@pytest.mark.slow
def test_what_is_read_is_what_the_library_says_of_the_log(hospital_file: Path) -> None:
    log, result = files.read(hospital_file), read(hospital_file)
    assert result.problem is None and result.measured is not None
    assert result.measured.statistics == log.statistics
    assert bytes.fromhex(result.measured.fingerprint) == fingerprint(log)
    unique = {found.size: found.unique for found in veilog.risk(log, "sequence", (1, 2, 3))}
    assert all(
        found.found.value * log.statistics.cases <= unique[found.size]
        for found in result.measured.singled_out
        if not found.with_start and found.size in unique
    )
    counts = log.variants.counts
    assert result.measured.alone == int(counts[counts == 1].sum()) and result.measured.example.startswith("For example")
    for with_start in (False, True):
        rows = [row for row in result.measured.singled_out if row.with_start == with_start]
        assert [row.size for row in rows] == [1, 2, 3, 5, 10]
        assert [row.found.value for row in rows] == sorted(row.found.value for row in rows)
        assert all(row.found.low <= row.found.value <= row.found.high for row in rows)
    assert result.preview.rows[0][0] == log.cases.column("concept:name")[0].as_py()
    assert sum(row.released for row in result.measured.explorer.rows) <= log.variants.cases


@pytest.mark.slow
def test_columns_that_are_not_clear_are_asked_for_and_taken_as_chosen(tmp_path: Path) -> None:
    rows = [f"{i // 3},x{i % 3},y{i % 2},2024-01-0{i % 9 + 1}" for i in range(30)]
    path = written(tmp_path / "log.csv", "who,what,how,when", *rows)
    asking = read(path)
    assert "column" in asking.problem
    assert asking.columns.all == ("who", "what", "how", "when")
    assert asking.preview.rows[0] == ("0", "x0", "y0", "2024-01-01")
    chosen = {"case": "who", "activity": "how", "timestamp": "when"}
    result = read(path, chosen)
    assert result.problem is None
    assert result.columns.how == dict.fromkeys(("case", "activity", "timestamp"), "given")
    assert result.measured.statistics.activities == 2


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_two_columns_of_one_name_are_refused_in_the_words_of_the_command(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"log.{suffix}"
    if suffix == "csv":
        path.write_text("case,activity,time,note,note\n1,a,2024-01-01,x,y\n")
    else:
        columns = [pa.array([text]) for text in ("1", "a", "2024-01-01", "x", "y")]
        pq.write_table(pa.Table.from_arrays(columns, ["case", "activity", "time", "note", "note"]), path)
    found = read(path)
    assert found.problem == sentence("column-name-twice", repeated="note")
    assert found.preview.headers == ("case", "activity", "time", "note", "note")
    assert found.preview.rows == (("1", "a", "2024-01-01", "x", "y"),)


@pytest.mark.slow
def test_what_a_date_means_is_asked_for_and_taken_as_chosen(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("case,activity,time\n1,a,5/6/2024\n1,b,6/5/2024\n")
    assert sentence("date-order-unclear", doubtful="5/6/2024") in read(path).problem
    assert read(path, {"time_format": "dd/mm/yyyy"}).measured.explorer.rows[0].chevrons[0].text == "b"
    assert read(path, {"time_format": "mm/dd/yyyy"}).measured.explorer.rows[0].chevrons[0].text == "a"


@pytest.mark.slow
def test_what_counts_of_starts_and_ends_is_chosen(tmp_path: Path) -> None:
    rows = [f"{case},{name},{step},2024-01-01 1{i}:{minute}" for case in (1, 2) for i, name in enumerate("ab")
            for step, minute in (("start", "00"), ("complete", "30"))]  # fmt: skip
    path = written(tmp_path / "log.csv", "case,activity,lifecycle:transition,time", *rows)
    as_it_is, one, ends = (read(path, chosen) for chosen in ({}, {"lifecycle": "intervals"}, {"lifecycle": "complete"}))
    assert [found.measured.statistics.events for found in (as_it_is, one, ends)] == [8, 4, 4]
    assert "lifecycle-transitions" in [f.rule for f in as_it_is.findings]
    assert "start_timestamp" in one.measured.event_attributes
    wrong = read(path, {"lifecycle": "nothing"})
    assert wrong.problem == sentence("lifecycle-transition-missing", said="nothing") and wrong.measured is None
    assert wrong.columns is not None, "something else can be chosen"


@pytest.mark.slow
def test_a_name_that_a_page_cannot_show_whole_is_still_the_column(tmp_path: Path) -> None:
    name = "n" * 500 + "\x07"
    path = written(tmp_path / "log.csv", f"case,{name},timestamp", "1,a,2024-01-01", "1,b,2024-01-02")
    shown = next(n for n in read(path).columns.all if n.startswith("nnn"))
    assert len(shown) <= 120
    assert read(path, {"activity": shown}).measured.statistics.activities == 2


@pytest.mark.slow
def test_a_finding_that_stops_reading_is_the_owners_to_decide(tmp_path: Path) -> None:
    rows = ["1,a,2024-01-01", "1,b,", "2,a,2024-01-03"]
    path = written(tmp_path / "log.csv", "case,activity,timestamp", *rows)
    asking = read(path)
    assert asking.choices == ("missing-timestamp",)
    assert asking.findings[0].line == 3
    result = read(path, {"on_missing-timestamp": "drop"})
    assert result.measured.statistics.events == 2
    assert result.findings[0].policy == "drop"


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02\x01\x01" + b"\0" * 100, b"<log><trace>"])
@pytest.mark.parametrize("name", ["log.xes", "log.csv", "log.parquet"])
def test_what_is_no_log_is_refused_without_a_path_of_this_machine(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    try:
        problem = str(read(path).problem)
    except InputError as error:
        problem = str(error)
    assert problem != "None"
    assert str(tmp_path) not in problem


# The request.


def test_a_form_is_read_as_people_write_numbers() -> None:
    form = {"method": "evolve", "epsilon": "0,5", "delta": "", "p_rounds": "2", "unit": "", "labels": "log"}
    asked = requested_options(form)
    assert (asked.epsilon, asked.delta, asked.unit.name) == (Fraction(1, 2), 0, "case")
    assert asked.settings.to_json()["rounds"] == 2
    assert asked.command("a b.xes", "release.xes") == (
        "veilog release 'a b.xes' release.xes --method evolve --epsilon 0.5 --activities log -p rounds=2"
    )


@pytest.mark.parametrize(
    "form",
    [
        {"method": "none"},
        {"method": "evolve", "epsilon": "1", "p_nothing": "1"},
        {"method": "evolve", "epsilon": "1", "max_length": "x"},
        {"method": "evolve", "epsilon": "1", "window_start": "2024-01-01"},
        {"method": "evolve", "epsilon": "1", "activities": "a" * 30_000},
        {"method": "sacofa", "epsilon": "1", "p_rules_file": "/etc/passwd"},
        {"method": "pripel", "epsilon": "1", "p_query": "sacofa", "p_query_parameters": "rules_file=/etc/passwd"},
    ],
)
def test_what_cannot_be_meant_is_refused_without_any_data(form: dict[str, str]) -> None:
    with pytest.raises(ParameterError):
        requested_options(form)


def test_no_parameter_that_is_offered_names_a_file() -> None:
    offered_names = {p.name: p.what for method in METHODS.values() for p in offered_parameters(method)}
    assert not [name for name, what in offered_names.items() if what.startswith(("file", "path"))]
    assert [p.name for p in METHODS["sacofa"].parameters if p.what.startswith("file")] == ["rules_file"]


# The dry run.


@pytest.mark.slow
def test_a_plan_tells_cost_and_questions_and_leaves_the_account_as_it_is(
    hospital_file: Path, settings: ServerSettings
) -> None:
    log = record(read(hospital_file))
    found = preview_form(log, {"method": "evolve", "epsilon": "0.8", "labels": "log"}, settings)
    assert isinstance(found, FormPreview)
    assert found.preview.guarantee.proven
    assert sum(q.epsilon for q in found.preview.guarantee.charges) == pytest.approx(0.8)
    assert found.strength == worth((Fraction("0.8"), Fraction(0)))
    assert found.account == InAccount(strength="good")
    assert not settings.ledger.exists()


@pytest.mark.nightly
def test_a_plan_knows_what_is_left_and_what_would_be_refused(hospital_file: Path, settings: ServerSettings) -> None:
    data = files.read(hospital_file)
    Ledger.open(settings.ledger, create=True).set_budget(data, "1")
    log = record(read(hospital_file))
    fine = preview_form(log, {"method": "evolve", "epsilon": "0.4"}, settings).account
    assert (fine.left[0], fine.after[0], fine.refused) == (1, Fraction(3, 5), None)
    much = preview_form(log, {"method": "evolve", "epsilon": "1.5"}, settings).account
    assert much.refused and "1.5" in much.refused and much.strength is None
    other = read(hospital_file)
    other = record(replace(other, measured=replace(other.measured, fingerprint="00" * 32)))
    unknown = preview_form(other, {"method": "evolve", "epsilon": "0.1"}, settings).account
    assert unknown.refused is None and unknown.beside_budget


@pytest.mark.nightly
def test_a_plan_that_cannot_wait_tells_what_it_knows_and_nothing_else(
    settings: ServerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 0.0)
    request = {"method": "libra", "epsilon": "0.77"}
    early = preview_form(record(None), request, settings)
    assert early.late
    assert early.preview.guarantee is None
    assert early.strength == worth((Fraction("0.77"), Fraction(0)))
    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 600.0)
    later = preview_form(record(None), request, settings)
    assert not later.late
    assert later.strength == early.strength
    assert later.preview.guarantee.charges


@pytest.mark.nightly
def test_a_trial_that_takes_too_long_is_ended_and_the_page_says_so(
    settings: ServerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial that takes too long is ended, and the page reports that."""
    certified = {"method": "laplace", "epsilon": "0.98", "labels": "log", "longest": "log", "p_depth": "10000"}
    monkeypatch.setattr(guarantee_beside, "seconds", -1.0)
    monkeypatch.setattr(guarantee_beside, "look", 0.0)
    bounded = preview_form(record(None), certified, settings)
    assert isinstance(bounded, FormPreview) and bounded.preview.guarantee is None
    assert bounded.given_up and bounded.strength == worth((Fraction("0.98"), Fraction(0))), "what it costs is known"
    monkeypatch.undo()
    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 600.0)
    assert preview_form(record(None), {**certified, "p_depth": "20"}, settings).preview.guarantee is not None, (
        "its thread is free again"
    )


@pytest.mark.nightly
def test_dry_runs_are_given_up_when_the_server_stops(settings: ServerSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dry runs, which may take minutes, are given up when the server stops."""
    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 0.0)
    request = {"method": "laplace", "epsilon": "0.97", "longest": "bound", "labels": "log"}
    endless = plan("laplace", epsilon=0.97, as_published=True, domain=Domain("log", 1_000_000))
    waiting = preview._trial(json.dumps({"plan": endless.to_json(), "sizes": {}}))
    preview.give_up()
    with pytest.raises(GivenUp):
        waiting.result(600)
    monkeypatch.undo()
    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 600.0)
    assert preview_form(record(None), {**request, "max_length": "5"}, settings).preview.guarantee is not None


@pytest.mark.slow
def test_a_plan_warns_of_a_delta_that_is_too_large_for_the_log(hospital_file: Path, settings: ServerSettings) -> None:
    log = record(read(hospital_file))
    assert preview_form(log, {"method": "travas", "epsilon": "1", "delta": "0.01"}, settings).warnings
    assert not preview_form(log, {"method": "travas", "epsilon": "1", "delta": "1e-6"}, settings).warnings


def test_a_mistake_is_told_and_raises_nothing(settings: ServerSettings) -> None:
    assert "epsilon" in preview_form(record(None), {"method": "evolve", "epsilon": "-1"}, settings).problem
    beyond = {"method": "laplace", "epsilon": "1", "p_depth": "9" * 4000}  # what no float can hold
    assert preview_form(record(None), beyond, settings).parameter == "depth"


# The release.


@pytest.mark.nightly
def test_a_release_leaves_its_files_and_is_entered(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    request = {"method": "evolve", "epsilon": "1", "times": "0.3", "labels": "log"}
    result = released(hospital_file, request, settings, out, name="ward.xes")
    expected = {name for name in FILES if "models" not in name}
    assert set(result.files) == expected
    assert {path.name for path in out.iterdir()} == {*expected, "entry", "result.json", "dossier.json"}
    assert result.missing == ()
    certificate = json.loads((out / "certificate.json").read_text())
    assert certificate["guarantee"]["epsilon"] == 1.0
    logs = [files.read(out / f"release.{suffix}") for suffix in ("xes", "csv", "parquet", "xlsx")]
    assert all(log.variants == logs[0].variants for log in logs)
    account = Ledger.open(settings.ledger).account(files.read(hospital_file))
    assert account is not None
    assert account.name == "ward.xes"
    assert [entry.state for entry in account.entries] == ["written"]
    assert len(account.entries[0].outputs) == 4
    assert result.beside.chart is not None
    assert "style" not in result.beside.chart
    assert "NOT FOR RELEASE" in (out / "internal-report.html").read_text()
    assert "NOT FOR RELEASE" not in (out / "recipient-report.html").read_text()


@pytest.mark.nightly
def test_of_more_events_than_excel_is_of_use_for_no_workbook_is_made(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_job, "_WORKBOOK", 3)
    result = released(hospital_file, {"method": "evolve", "epsilon": "1", "labels": "log"}, settings, tmp_path / "out")
    assert "release.csv" in result.files and "release.xlsx" not in result.files
    assert result.missing == () and result.unwritten == ()


@pytest.mark.nightly
def test_the_same_seed_gives_the_librarys_release(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path
) -> None:
    test_mode = ServerSettings(folder=tmp_path, ledger=settings.ledger, token="t", seed=11)
    released(hospital_file, {"method": "evolve", "epsilon": "2", "labels": "log"}, test_mode, tmp_path / "out")
    again = veilog.release(files.read(hospital_file).variants, "evolve", epsilon="2", activities="log", seed=11)
    again.save(tmp_path / "again.xes")
    assert (tmp_path / "out" / "release.xes").read_bytes() == (tmp_path / "again.xes").read_bytes()


@pytest.mark.nightly
@pytest.mark.parametrize(
    "request_",
    [
        {
            "method": "evolve",
            "epsilon": "2",
            "labels": "log",
            "times": "0.3",
            "window_start": "2024-01-01",
            "window_end": "2024-06-30",
        },
        {"method": "laplace", "epsilon": "90", "unit": "age group", "max_cases": "30", "p_depth": "4"}
        | {"labels": "log", "allow_no_protection": "unprotected"},
        {"method": "df-laplace", "epsilon": "3", "labels": "log", "longest": "log"},
        {"method": "laplace", "epsilon": "9", "delta": "0.01", "labels": "privately", "p_depth": "3"}
        | {"allow_no_protection": "unprotected"},
        {"method": "travas", "epsilon": "2", "delta": "0.001", "as_published": "on"},
        {"method": "evolve", "epsilon": "2", "activities": "Arrival, desk\nTriage\nDischarge", "max_length": "5"},
    ],
)
def test_the_command_and_the_python_that_are_shown_do_the_same(
    hospital_file: Path,
    settings: ServerSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request_: dict[str, str],
) -> None:
    test_mode = ServerSettings(folder=tmp_path, ledger=settings.ledger, token="t", seed=3)
    released(hospital_file, request_, test_mode, tmp_path / "out")
    expected = (tmp_path / "out" / "release.xes").read_bytes()
    asked = requested_options(request_).seeded(3)
    monkeypatch.chdir(tmp_path)
    Path("log.xes").write_bytes(hospital_file.read_bytes())
    Path("activities.txt").write_text("\n".join(asked.declared.activities or ()))
    assert cli.main([*shlex.split(asked.command("log.xes", "release.xes"))[1:], "--no-compare"]) == 0
    assert Path("release.xes").read_bytes() == expected
    Path("release.xes").unlink()
    exec(asked.python("log.xes", "release.xes"), {})
    assert Path("release.xes").read_bytes() == expected


@pytest.mark.slow
def test_what_the_account_cannot_pay_is_refused_and_costs_nothing(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path
) -> None:
    ledger = Ledger.open(settings.ledger, create=True)
    ledger.set_budget(files.read(hospital_file), "0.5")
    with refused(InputError, "budget-exceeded"):
        released(hospital_file, EVOLVE, settings, tmp_path / "out")
    assert ledger.show()[0].entries == ()
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["damaged", "no folder"])
def test_a_ledger_that_cannot_be_used_is_told_without_a_path_of_this_machine(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path, trouble: str
) -> None:
    ledger = tmp_path / "of another time" / "all.ledger"
    if trouble == "damaged":
        ledger.parent.mkdir()
        ledger.write_bytes(b"no ledger" * 100)
    with pytest.raises(InputError) as error:
        released(hospital_file, EVOLVE, replace(settings, ledger=ledger), tmp_path / "out")
    said = {"damaged": "it is damaged", "no folder": "The folder does not exist."}
    assert said[trouble] in in_command(error.value)
    with for_surface("pages"):
        assert "another time" not in str(error.value)


@pytest.mark.slow
def test_what_cannot_be_noted_as_set_aside_is_given_back(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reservation that cannot be noted is withdrawn, so that nothing is spent."""

    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        released(hospital_file, EVOLVE, settings, tmp_path / "out")
    assert [entry.state for entry in Ledger.open(settings.ledger).show()[0].entries] == ["withdrawn"]


@pytest.mark.nightly
def test_released_attributes_are_shown_beside_the_original(settings: ServerSettings, tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    files.write(hospital(60, seed=3), path)
    ages = "0-17\n18-39\n40-59\n60-79\n80+"
    request = {"method": "laplace", "epsilon": "8", "labels": "log", "longest": "log", "p_depth": "3"}
    request["allow_no_protection"] = "unprotected"
    result = released(path, {**request, "attributes": "age group", "d_age group": ages}, settings, tmp_path / "out")
    assert result.beside is not None
    (values,) = result.beside.attributes
    assert values.name == "age group" and all("\u202f%" in said for said in (values.released, values.original))
    page = pages.explore(record(read(path)), job("release", result, request))
    assert ">age group</th>" in page


@pytest.mark.nightly
def test_measures_that_fail_do_not_lose_the_release(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr("veilog.web.work.comparison.gather_facts", full)
    result = released(hospital_file, EVOLVE, settings, tmp_path / "out")
    assert "not enough memory" in result.missing[0]
    assert "release.xes" in result.files
    assert files.read(tmp_path / "out" / "release.xes").variants != Variants.from_dict({})


def test_how_far_a_job_is_is_said_of_all_of_it_in_few_words() -> None:
    told: list[tuple[str, float | None]] = []
    stages = Stages(lambda text, fraction: told.append((text, fraction)), {**RELEASING, **MORE})
    for stage in (*RELEASING, *MORE):
        inside = stages.at(stage)
        for round_ in range(3):  # each of which begins anew
            for step in range(5):
                inside(f"Optimal transport: round {round_}, certain to 3.9e-14", step / 4)
    said, fractions = zip(*told, strict=True)
    assert list(fractions) == sorted(fractions) and fractions[0] == 0 and 0.99 < fractions[-1] <= 1
    assert len(set(said)) == 5, "each change is announced to whoever cannot see"
    assert re.findall(r"\d", said[0]) == ["1", "5"] and "transport" not in " ".join(said)


@pytest.mark.nightly
def test_logs_of_very_many_variants_are_compared_after_all_the_rest(
    settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("veilog.report.facts.COMPARED_AT_ONCE", 1)
    monkeypatch.setattr("veilog.web.work.release_job.predict_outcome", lambda sides, before, progress: before)
    path = tmp_path / "log.xes"
    files.write(hospital(40, seed=3), path)
    for thorough in (False, True):
        out = tmp_path / f"out-{thorough}"
        out.mkdir()
        task = WorkerTask("release", str(path), "log.xes", {}, request_of(EVOLVE), str(out))
        made = release_log(task, replace(settings, thorough=thorough), silent)
        assert isinstance(made, ReleasedLog) and made.beside is not None
        assert (made.beside.kept is not None) == thorough
        assert bool(made.beside.not_compared) != thorough


@pytest.mark.nightly
def test_a_release_for_both_can_be_downloaded_twice(settings: ServerSettings, tmp_path: Path) -> None:
    path, out = tmp_path / "log.xes", tmp_path / "out"
    files.write(hospital(40, seed=3), path)
    out.mkdir()
    task = WorkerTask("release", str(path), "log.xes", {}, request_of({**EVOLVE, "p_for": "both"}), str(out))
    made = release_log(task, settings, silent)
    assert isinstance(made, ReleasedLog) and not made.missing
    for name in ("release.xes", "release.csv", "release.parquet"):
        assert made.files[name] and made.files[name.replace(".", "-models.")]


# A method of another package, from the form to the files.


@dataclass(frozen=True, kw_only=True)
class OwnSettings(LaplaceSettings):
    """Settings of a method of another author."""

    kindness: Annotated[int, "how kind", Range(1, 9)] = 3


@pytest.mark.nightly
def test_a_method_of_another_package_has_its_card_its_dry_run_and_its_release(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def run(curator: Any, request: Any, own: OwnSettings) -> Any:
        seen.append(own.kindness)
        return laplace(curator, request, own)

    other = replace(
        METHODS["laplace"], name="elsewhere", title="Something new", package="other 1.0", settings=OwnSettings, run=run
    )
    monkeypatch.setattr(METHODS, "_held", dict(METHODS._held))
    here = "veilog.web.work.preview.guarantee_beside"  # what is added here is not known beside
    costs = {
        "__call__": lambda self, asked, over: ReleaseRequest.from_json(json.loads(asked)["plan"]).cost,
        "over": None,
    }
    monkeypatch.setattr(here, type("Here", (), costs)())
    monkeypatch.setitem(METHODS.others, "elsewhere", AddOn("elsewhere", other, "other 1.0"))
    log = record(read(hospital_file))
    form = {"method": "elsewhere", "epsilon": "1", "labels": "log", "longest": "log", "p_kindness": "7"}
    page = pages.release_form(log, form, "once", expert=True)
    assert "Something new" in page and "other 1.0" in page
    assert 'name="p_kindness" value="7"' in page and ">How kind.</p>" in page
    assert "kindness" in preview_form(log, {**form, "p_kindness": "10"}, settings).problem
    tried = preview_form(log, form, settings)
    assert isinstance(tried, FormPreview) and tried.preview.guarantee is not None and tried.preview.guarantee.proven
    assert tried.strength == "good" and "elsewhere" in check_of(log, form, settings)
    request = from_plain(JobRequest, json.loads(json.dumps(to_plain(JobRequest(tried.plan.to_json(), form)))))
    (tmp_path / "out").mkdir()
    task = WorkerTask("release", str(hospital_file), "log.xes", {}, request, str(tmp_path / "out"))
    made = work_on(from_plain(WorkerTask, json.loads(json.dumps(to_plain(task)))), settings, silent)
    assert isinstance(made, ReleasedLog) and made.guarantee.proven
    assert seen == [7, 7], "in the dry run and in the release"
    result = pages.job_page(job("release", made, form), log, "once")
    assert 'data-state="ready"' in result
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["parameters"]["kindness"] == 7
    assert files.read(tmp_path / "out" / "release.xes").variants.cases > 0


# From the server to the worker.


@pytest.mark.nightly
def test_a_worker_takes_the_plan_and_reads_no_form(
    hospital_file: Path, settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_of({**EVOLVE, "epsilon": "0,5"})

    def refused(form: object) -> None:
        raise AssertionError("a form was read")

    monkeypatch.setattr("veilog.web.work.request.requested_options", refused)
    (tmp_path / "out").mkdir()
    task = WorkerTask("release", str(hospital_file), "log.xes", {}, request, str(tmp_path / "out"))
    made = work_on(task, settings, silent)
    assert isinstance(made, ReleasedLog)

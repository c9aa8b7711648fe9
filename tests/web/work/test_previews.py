"""Trying before paying: made-up logs only, sizes by who may tell them, and what is recommended."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from web_logs import EVOLVE, job, read, record, silent, through, written
from web_work import NOTHING, TOLD, made

from veilog.errors import InputError, ParameterError, VeilogError
from veilog.logs.synthetic.twins import Sizes
from veilog.releasing.preview import Expected, Interval
from veilog.report.flow_map import FlowMap
from veilog.web.jobs.records import LogRecord
from veilog.web.jobs.results import PreviewCell, PreviewRow, Previews
from veilog.web.jobs.worker import WorkerTask
from veilog.web.work import preview
from veilog.web.work.preview import BUDGETS, keeps, preview_all, preview_request, recommended, sized_release

DECLARED = {**EVOLVE, "s_from": "declared", "s_cases": "60", "s_length": "3", "s_activities": "3"}
EMPTY = FlowMap((), (), 0, 1, 0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> LogRecord:
    rows = [f"c{i // 2},{'ab'[i % 2]},2024-01-{1 + i % 20:02d}" for i in range(40)]
    return record(read(written(tmp_path_factory.mktemp("trying") / "log.csv", "case,activity,timestamp", *rows)))


def row(method: str, *means: float) -> PreviewRow:
    cells = (
        PreviewCell(epsilon, Expected(Interval(mean, mean - 0.1, mean + 0.1), Sizes(9, 3.0), 4), EMPTY)
        for epsilon, mean in zip(BUDGETS, means, strict=False)
    )
    return PreviewRow(method, method, "0", tuple(cells))


def test_the_same_is_not_tried_twice_whatever_the_budget(log: LogRecord) -> None:
    first = preview_request({**DECLARED, "epsilon": "0.3"}, log, None)
    assert first == preview_request({**DECLARED, "epsilon": "7", "subset": "", "s_cases": " 60"}, log, None)
    assert first != preview_request({**DECLARED, "s_cases": "61"}, log, None)
    assert first != preview_request({**DECLARED, "times": "0.3"}, log, None)


def test_exact_sizes_are_taken_only_where_that_is_asked_for(log: LogRecord) -> None:
    declared = preview_request(DECLARED, log, None).form
    assert json.loads(declared["s_sizes"])["cases"] == 60
    assert json.loads(declared["s_sizes"])["variants"] is None
    exact = preview_request({**DECLARED, "s_from": "log"}, log, None).form
    assert json.loads(exact["s_sizes"])["cases"] == 20
    assert json.loads(exact["s_sizes"])["variants"] == 1
    assert log.reading is not None and log.measured is not None


@pytest.mark.parametrize("said", [{"s_cases": ""}, {"s_length": "many"}, {"s_from": "guess"}, {"s_cases": "9" * 400}])
def test_what_is_no_size_is_refused(log: LogRecord, said: dict[str, str]) -> None:
    with pytest.raises(ParameterError):
        preview_request({**DECLARED, **said}, log, None)
    with pytest.raises(VeilogError):
        preview_request({**DECLARED, "method": "none"}, log, None)


def test_only_a_release_with_a_proven_guarantee_tells_its_sizes(log: LogRecord) -> None:
    files = {"release.parquet": 10}
    bare = job("release", made(files=files), EVOLVE)
    proven = replace(TOLD, guarantee=replace(NOTHING, status="proven", epsilon=1.0, delta=0.0))
    good = job("release", replace(made(files=files), told=proven), EVOLVE, id="d" * 32)
    part = job("release", replace(made(files=files), told=proven), {**EVOLVE, "subset": "month=2024-01"})
    assert sized_release([bare, part]) is None
    assert sized_release([bare, part, good]) == good
    asked = preview_request({**DECLARED, "s_from": "release"}, log, good)
    assert asked.form["s_release"] == "d" * 32 and "s_sizes" not in asked.form
    with pytest.raises(ParameterError):
        preview_request({**DECLARED, "s_from": "release"}, log, None)


def test_the_smallest_budget_that_keeps_nearly_as_much_is_recommended() -> None:
    found = recommended([row("a", 0.3, 0.7, 0.74, 0.99), row("b", 0.1, 0.71, 0.6, 0.98)])
    assert found is not None and (found[0], found[1].epsilon) == ("b", "0.3")
    assert recommended([row("a", 0.1, 0.2, 0.55, 0.99)]) is None  # only a budget that protects weakly keeps enough
    found = recommended([row("a", 0.65, 0.7, 0.9)], left=0.3)
    assert found is not None and found[1].epsilon == "0.1"
    assert recommended([row("a", 0.65, 0.7, 0.9)], left=0.05) is None


def test_between_two_budgets_it_is_on_the_line_and_beyond_them_unknown() -> None:
    tried = row("a", 0.2, 0.4, 0.8, 0.9)
    assert keeps(tried, "0.1") == Interval(0.2, 0.1, pytest.approx(0.3))
    found = keeps(tried, "0,5")
    assert found is not None and 0.4 < found.mean < 0.8 and found.low < found.mean < found.high
    assert keeps(tried, "0.05") is None
    assert keeps(tried, "4") is None
    assert keeps(tried, "much") is None
    assert keeps(row("a"), "1") is None


@pytest.mark.nightly
def test_no_log_is_opened_and_what_there_is_so_far_is_kept(
    log: LogRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview, "BUDGETS", ("1",))
    monkeypatch.setattr(preview, "_METHODS", 2)
    asked = preview_request({**DECLARED, "method": "travas", "delta": "1e-4"}, log, None)
    task = WorkerTask("try", str(tmp_path / "nothing"), "log", {}, asked, str(tmp_path))
    found = through("try", preview_all(task, silent))
    assert isinstance(found, Previews) and not found.late and found.source == "declared"
    assert [row.method for row in found.rows] == ["travas", "evolve"]
    assert [len(row.cells) for row in found.rows] == [1, 1]
    assert found.rows[1].cells[0].expected.similarity.mean > 0.3
    told = [remark for row in found.rows for cell in row.cells for remark in cell.remarks]
    assert told and not any("ledger" in remark for remark in told), "a release is in one"
    best = recommended(found.rows)
    assert best is not None and [name for name, _ in best[1].expected.use_cases] == ["prediction", "discovery"]
    assert all(0.3 < kept.mean <= 1.5 for _, kept in best[1].expected.use_cases)
    assert found.map.boxes and found.rows[1].cells[0].map.boxes
    assert (tmp_path / "result.json").is_file()
    monkeypatch.setattr(preview, "_SECONDS", -1.0)
    late = preview_all(task, silent)
    assert late.late and not late.rows[0].cells


@pytest.mark.slow
def test_sizes_of_a_release_are_those_of_its_cases(
    log: LogRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from veilog.logs import files
    from veilog.logs.synthetic.hospital import hospital

    kept = tmp_path / ("d" * 32)
    kept.mkdir()
    files.write(hospital(30, seed=1), kept / "release.parquet")
    monkeypatch.setattr(preview, "_SECONDS", -1.0)
    good = job("release", None, EVOLVE, id="d" * 32)
    asked = preview_request({**DECLARED, "s_from": "release"}, log, good)
    (tmp_path / "out").mkdir()
    found = preview_all(WorkerTask("try", "", "log", {}, asked, str(tmp_path / "out")), silent)
    assert found.source == "release"
    assert found.sizes == Sizes.of(hospital(30, seed=1).variants)
    (kept / "release.parquet").unlink()
    with refused(InputError, "release-no-longer-kept"):
        preview_all(WorkerTask("try", "", "log", {}, asked, str(tmp_path / "out")), silent)

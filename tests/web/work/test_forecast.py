"""The forecast by synthetic logs of the log's sizes, and its drawing on pages."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from web_logs import EVOLVE, job, read, record, silent, through, written

from veilog.errors import VeilogError
from veilog.logs.synthetic.twins import Sizes
from veilog.releasing.preview import Expected, Interval, Survivors
from veilog.web.jobs.records import LogRecord, ServerSettings
from veilog.web.jobs.results import Forecast
from veilog.web.jobs.worker import WorkerTask
from veilog.web.pages import render as pages
from veilog.web.pages.outlook import Outlook, right_of_50
from veilog.web.work import preview_form
from veilog.web.work.preview import BUDGETS, forecast_releases, forecast_request


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> LogRecord:
    rows = [f"c{i // 2},{'ab'[i % 2]},2024-01-{1 + i % 20:02d}" for i in range(40)]
    rows += ["c1,only once,2024-01-30"]
    return record(read(written(tmp_path_factory.mktemp("outlook") / "log.csv", "case,activity,timestamp", *rows)))


def tried(*means: float, survivors: Survivors | None = None) -> Forecast:
    sizes = Sizes(9, 3.0, 4)
    expected = (Expected(Interval(mean, mean - 0.1, mean + 0.1), sizes, 4, survivors=survivors) for mean in means)
    return Forecast(tuple(zip(BUDGETS, expected, strict=False)))


def test_the_same_is_not_tried_twice_whatever_the_budget(log: LogRecord) -> None:
    first = forecast_request({**EVOLVE, "epsilon": "0.3"}, log)
    assert first is not None
    for same in ({"epsilon": "7"}, {"subset": ""}, {"max_cases": "3"}, {"labels": ""}, {"activities": "a"}):
        assert forecast_request({**EVOLVE, **same}, log) == first
    for other in ({"times": "0.3"}, {"unit": "person", "max_cases": "3"}, {"labels": "privately"}):
        assert forecast_request({**EVOLVE, **other}, log) != first
    with pytest.raises(VeilogError):
        forecast_request({**EVOLVE, "method": "none"}, log)


def test_it_has_the_exact_sizes_of_the_log_and_nothing_else_of_it(log: LogRecord) -> None:
    asked = forecast_request(EVOLVE, log)
    assert asked is not None and asked.plan is None
    sizes = json.loads(asked.form["sizes"])
    assert (sizes["cases"], sizes["activities"]) == (20, 3)
    assert "only once" not in json.dumps(dict(asked.form))
    assert forecast_request(EVOLVE, replace(log, reading=None)) is None


def test_between_two_budgets_it_is_on_the_line_and_beyond_them_unknown() -> None:
    found = tried(0.2, 0.4, 0.8, 0.9)
    at = {epsilon: found.at(epsilon) for epsilon in (0.1, 0.5, 0.05, 4.0, 0.0)}
    assert at[0.1] is not None and at[0.1][0] == Interval(0.2, 0.1, pytest.approx(0.3))
    assert at[0.5] is not None and 0.4 < at[0.5][0].mean < 0.8 and at[0.5][0].low < at[0.5][0].mean < at[0.5][0].high
    assert at[0.05] is at[4.0] is at[0.0] is None
    assert Forecast().at(1.0) is None
    one = Forecast(found.points[2:3]).at(1.0)
    assert one is not None and one[0].mean == 0.8, "the first that is there is shown"


@pytest.mark.parametrize(
    ("epsilon", "delta", "right"), [(1.0, 0.0, 73.2), (0.1, 0.0, 52.5), (50.0, 0.0, 100.0), (1.0, 0.1, 75.8)]
)
def test_an_even_guess_is_right_as_often_as_the_guarantee_allows(epsilon: float, delta: float, right: float) -> None:
    assert right_of_50(epsilon, delta) == right


@pytest.mark.slow
def test_no_log_is_opened_and_what_there_is_so_far_is_kept(
    log: LogRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = forecast_request({**EVOLVE, "times": "0.3"}, log)
    assert asked is not None
    task = WorkerTask("forecast", str(tmp_path / "nothing"), "log", {}, asked, str(tmp_path))
    found = through("forecast", forecast_releases(task, silent))
    assert isinstance(found, Forecast) and [budget for budget, _ in found.points] == list(BUDGETS)
    assert all(expected.durations is not None and expected.owner_only for _, expected in found.points)
    assert (tmp_path / "result.json").is_file()
    monkeypatch.setattr("veilog.web.work.preview._SECONDS", -1.0)
    assert forecast_releases(task, silent) == Forecast()


@pytest.mark.slow
def test_what_cannot_be_released_is_said_before_anything_is_spent(log: LogRecord, tmp_path: Path) -> None:
    """Too few cases for a private search are reported before anything is spent."""
    asked = forecast_request({**EVOLVE, "labels": "privately"}, log)
    assert asked is not None
    found = forecast_releases(WorkerTask("forecast", "", "log", {}, asked, str(tmp_path)), silent)
    assert found.problem and found.points == ()


@pytest.mark.slow
def test_the_curve_marks_the_budget_the_account_and_warns_of_what_is_lost(
    log: LogRecord, settings: ServerSettings
) -> None:
    lost = Survivors(1, 3, 5)
    plan = preview_form(log, {**EVOLVE, "epsilon": "0.5"}, settings, dry_run=False)
    outlook = Outlook(plan, job("forecast", tried(0.1, 0.2, 0.3, 0.4, survivors=lost)), same=True)
    assert outlook.curve is not None and outlook.curve["limit"] is None
    first, last = outlook.curve["kept"].split()[0], outlook.curve["kept"].split()[-1]
    assert float(first.split(",")[0]) < outlook.curve["here"] < float(last.split(",")[0])
    said = {message.code: tone for tone, message in outlook.said(log)}
    assert said == {"similarity-expected": "", "activities-survive": "", "little-kept": "warning"}
    page = pages.outlook_part(outlook, log)
    assert set(said) <= set(re.findall(r'data-says="([\w-]+)"', page)) and 'data-right="62.3"' in page
    old = pages.outlook_part(replace(outlook, same=False), log)
    assert 'class="expected old"' in old and 'data-says="trying"' in old
    none = Outlook(plan)
    assert none.curve is None and none.said(log) == [] and "<svg" not in pages.outlook_part(none, log)

"""The page of a release and other releases, by the ledger's present state."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
from web_logs import check_of, job, read, record, released, says, written

from veilog.ledger.ledger import Ledger
from veilog.logs.synthetic.hospital import hospital
from veilog.report.decision import decision_facts
from veilog.report.words import other_accounts_sentence, title_of_budget
from veilog.web.jobs.records import LogRecord, ServerSettings
from veilog.web.jobs.results import ReleasedLog
from veilog.web.pages import render as pages
from veilog.web.work.accounts import account_seen, ledger_status

ASKED = {"method": "laplace", "epsilon": "1", "labels": "log", "longest": "log", "p_depth": "2"}


def ward(path: Path, cases: int) -> Path:
    """Write a month of a ward, which begins as every shorter one does."""
    steps = [f"{case},{step},2024-03-{1 + case % 28:02}" for case in range(cases) for step in ("come", "go")]
    return written(path, "case,activity,timestamp", *steps)


def made_of(path: Path, epsilon: str, settings: ServerSettings) -> ReleasedLog:
    """Return a release as a job of a browser makes it."""
    return released(path, {**ASKED, "epsilon": epsilon}, settings, path.with_suffix(f".{epsilon}"), name=path.name)


def owned(path: Path) -> LogRecord:
    """Return the log of the browser whose ledger has the releases."""
    return replace(record(read(path), name=path.name), session="")


def page_of(made: ReleasedLog, path: Path, settings: ServerSettings) -> str:
    log = owned(path)
    now = ledger_status(made, log, settings)
    return html.unescape(pages.job_page(job("release", made, ASKED), log, "once", now=now))


def state_of(check: str, page: str) -> str:
    """Return the state that a page shows of this check."""
    (state,) = re.findall(rf'<li class="([\w-]+)" data-check="{check}">', page)
    return str(state)


@pytest.mark.nightly
def test_the_page_is_shown_with_one_read_of_the_ledger(
    settings: ServerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ward(tmp_path / "klinik-03.csv", 400)
    first, reads = made_of(path, "1", settings), []
    reading = Ledger._read_book
    monkeypatch.setattr(Ledger, "_read_book", lambda self: reads.append(self) or reading(self))
    assert state_of("other-releases", page_of(first, path, settings)) == "checked"
    assert len(reads) == 1


@pytest.mark.nightly
def test_next_months_file_may_be_about_the_same_people(settings: ServerSettings, tmp_path: Path) -> None:
    march, april = ward(tmp_path / "klinik-03.csv", 400), ward(tmp_path / "klinik-04.csv", 500)
    before = check_of(owned(march), ASKED, settings)
    assert "other-accounts" not in says(before)
    made_of(march, "1", settings)
    before = check_of(owned(april), ASKED, settings)
    assert "other-accounts" in says(before) and "/account#join" in before, "before it is paid for, and not after alone"
    made = made_of(april, "1", settings)
    assert "other-accounts" not in says(check_of(owned(april), ASKED, settings))
    page, standing = page_of(made, april, settings), ledger_status(made, owned(april), settings)
    assert state_of("other-releases", page) == "checked" and "(account 2)" in page
    assert standing is not None and standing.others == 1 and other_accounts_sentence(standing) in page
    assert "klinik-03" not in page, "it may be another browser's file"


@pytest.mark.nightly
def test_where_the_ledger_is_gone_the_page_does_not_vouch_for_it(settings: ServerSettings, tmp_path: Path) -> None:
    path = ward(tmp_path / "klinik-03.csv", 400)
    made = made_of(path, "1", settings)
    place = settings.ledger
    place.write_bytes(b"garbage" * 1000)
    page = page_of(made, path, settings)
    assert state_of("other-releases", page) == "to-confirm"
    assert 'id="account-now"' not in page
    place.unlink()
    assert state_of("other-releases", page_of(made, path, settings)) == "to-confirm"
    Ledger.open(place, create=True).reserve(hospital(30, seed=1).variants, "laplace", epsilon=1)
    exchanged = replace(made, entry=7)
    assert state_of("other-releases", page_of(exchanged, path, settings)) == "to-confirm"
    assert ledger_status(replace(made, entry=None), _log(path), settings) is None


def _log(path: Path) -> LogRecord:
    return record(read(path), name=path.name)


@pytest.mark.nightly
def test_a_shared_inside_report_names_no_file_of_another_browser(settings: ServerSettings, tmp_path: Path) -> None:
    march, april = ward(tmp_path / "klinik-03.csv", 400), ward(tmp_path / "klinik-04.csv", 500)
    made_of(march, "1", settings)
    standing = ledger_status(made_of(april, "1", settings), owned(april), settings)
    report = (april.with_suffix(".1") / "internal-report.html").read_text()
    assert standing is not None and other_accounts_sentence(standing) in report and "klinik-03" not in report


def of_persons(path: Path, cases: int) -> Path:
    """Write a ward whose patients come several times."""
    rows = [f"{n},{step},2024-03-{1 + n % 28:02},P{n % 99}" for n in range(cases) for step in ("come", "go")]
    return written(path, "case,activity,timestamp,Patient", *rows)


@pytest.mark.nightly
def test_persons_with_several_cases_are_spoken_of_once(settings: ServerSettings, tmp_path: Path) -> None:
    """Persons with several cases are mentioned once, in the language of the page."""
    path = of_persons(tmp_path / "persons.csv", 400)
    out = tmp_path / "subset"
    made = released(path, {**ASKED, "subset": "month=2024-03"}, settings, out, name=path.name)
    assert made.known is not None and made.owner is not None
    (unit,) = (check for check in decision_facts(made.known, 1, made.owner).checks if check.code == "unit")
    assert unit.state == "against" and "“Patient”: 99 " in unit.why
    assert "--" not in unit.why, "no option of the command: a page has none"
    assert made.owner_only.notes == ()
    unsent = {**ASKED, "epsilon": "20", "allow_no_protection": "unprotected", "subset": "month=2024-03"}
    weak = released(path, unsent, settings, tmp_path / "weak", name=path.name)
    assert weak.known is not None and weak.owner_only.notes == ()
    decision = decision_facts(weak.known, 1, weak.owner)
    assert decision.checks == ()
    assert any("“Patient”: 99 " in said for said in decision.cautions)
    assert "--unit" not in " ".join(decision.cautions)


@pytest.mark.nightly
def test_the_inside_report_knows_the_persons_that_the_page_knows(settings: ServerSettings, tmp_path: Path) -> None:
    """The internal report knows the persons that the page knows."""
    path = of_persons(tmp_path / "persons.csv", 400)
    made_of(path, "1", settings)
    report = html.unescape((path.with_suffix(".1") / "internal-report.html").read_text())
    assert state_of("unit", report) == "against" and "“Patient”: 99 " in report


@pytest.mark.slow
def test_a_release_that_came_out_empty_was_finished(settings: ServerSettings, tmp_path: Path) -> None:
    path = ward(tmp_path / "small.csv", 12)
    asked = {"method": "travas", "epsilon": "0.1", "delta": "1e-9"}
    made = released(path, asked, settings, tmp_path / "empty", name=path.name)
    assert made.empty and made.entry is not None
    log = replace(record(read(path), name=path.name), session="")
    seen = account_seen(log, settings)
    jobs = {made.entry: job("release", made, asked)}
    for held, state in ((jobs, "empty"), ({}, "charged")):
        page = pages.account(log, seen, held, {}, "once")
        assert f'id="r{made.entry}" data-state="{state}"' in page
    assert "ε = 0.1, δ = 9.29323·10⁻¹⁰" in page, "in a few digits, rounded up"


@pytest.mark.slow
def test_an_empty_release_has_no_files(settings: ServerSettings, tmp_path: Path) -> None:
    """An empty release has no files, and is called empty at most three times."""
    path = ward(tmp_path / "small.csv", 12)
    asked = {"method": "travas", "epsilon": "0.1", "delta": "1e-9"}
    made = released(path, asked, settings, tmp_path / "empty", name=path.name)
    log = replace(record(read(path), name=path.name), session="")
    done = job("release", made, asked)
    page = html.unescape(pages.job_page(done, log, "once"))
    assert 'data-state="empty"' in page and "all.zip" not in page
    budget = title_of_budget(made.guarantee)
    assert budget in page.partition('id="nothing"')[2].partition("</p>")[0] and budget.startswith("ε = 0.1, δ = ")
    assert page.count("is empty") <= 3
    assert f'/release?of={done.id}"' in page
    assert made.entry is not None
    account = pages.account(log, account_seen(log, settings), {made.entry: done}, {}, "once")
    assert f'id="r{made.entry}" data-state="empty"' in account and "all.zip" not in account
    assert '<li data-state="empty">' in pages.home([log], [done], once="once")

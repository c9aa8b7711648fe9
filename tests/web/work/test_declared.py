"""The owner's declarations, and the guarantee's worth: form, dry run and result."""

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from refusals import refused
from web_logs import EVOLVE, check_of, job, read, record, released, says, written

from veilog.errors import InputError, ParameterError
from veilog.ledger.ledger import Ledger
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.methods import METHODS
from veilog.privacy.partition import Partition
from veilog.report.words import localise
from veilog.web.jobs.records import LogRecord, ServerSettings
from veilog.web.jobs.results import to_text
from veilog.web.pages import render as pages
from veilog.web.work import preview_form
from veilog.web.work.accounts import account_seen, ledger_status
from veilog.web.work.preview import FormPreview
from veilog.web.work.request import may_leave, privacy_unit, requested_options

ONCE = "once"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("hospital") / "log.xes"
    files.write(hospital(150, seed=3), target)
    return target


@pytest.fixture(scope="module")
def log(path: Path) -> LogRecord:
    return record(read(path))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilog.web.work.preview._PATIENCE", 600.0)


# What may be known.


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(name for name, m in METHODS.items() if m.certified and m.takes_epsilon))
def test_without_a_word_on_what_may_be_known_nothing_is_released(
    method: str, path: Path, log: LogRecord, settings: ServerSettings, tmp_path: Path
) -> None:
    needs = METHODS[method].needs(METHODS[method].parse({}))
    delta = {"delta": "1e-3"} if METHODS[method].needs_delta else {}
    request = {"method": method, "epsilon": "1", **delta}
    assert set(requested_options(request).undeclared) == set(needs)
    lacking = preview_form(log, request, settings, dry_run=False).lacking
    assert (lacking is not None) == bool(needs)
    if needs:
        assert lacking is not None and "--" not in lacking.problem
        assert lacking.parameter == ("labels" if "activities" in needs else "longest")
        with refused(InputError, "facts-undeclared", "activities-undeclared", "max-length-undeclared"):
            released(path, request, settings, tmp_path / "out")
        assert not settings.ledger.exists()
        said = {"labels": "log"} | ({"longest": "log"} if "max_length" in needs else {})
        assert not requested_options(request | said).undeclared
    form, expert = (pages.release_form(log, request, ONCE, expert=page) for page in (False, True))
    assert ('name="labels" value="log"' in form) == ("activities" in needs)
    assert ("Ward round" in form) == ("activities" in needs), "the labels of the log stand beside the tick"
    assert expert.count('name="longest"') == expert.count('name="max_length"') == 1


def test_what_becomes_of_cases_that_name_nobody_is_asked_for() -> None:
    said = {"method": "laplace", "epsilon": "1", "activities": "log"}
    person = {**said, "unit": "case:patient", "max_cases": "2"}
    left_out = requested_options({**person, "without_person": "left-out"}).unit
    assert requested_options(person).unit.without_person == left_out.without_person == "left-out"
    assert requested_options({**person, "without_person": "own"}).unit.without_person == "own"
    assert requested_options({**said, "without_person": "left-out"}).unit.name == "case", (
        "the form has it whoever is protected"
    )


@pytest.mark.nightly
def test_a_part_of_the_cases_is_asked_for_and_pays_for_itself(
    path: Path, log: LogRecord, settings: ServerSettings, tmp_path: Path
) -> None:
    request = {**EVOLVE, "epsilon": "1", "subset": "month=2024-01"}
    assert requested_options(request).subset == Partition("month", "2024-01")
    assert 'value="month=2024-01"' in pages.release_form(log, request, ONCE, expert=True)
    assert preview_form(log, {**request, "subset": "month=2024-1"}, settings).parameter == "subset"
    Ledger.open(settings.ledger, create=True).set_budget(files.read(path), 1)
    released(path, request, settings, tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert certificate["guarantee"]["subset"] == "month=2024-01"
    again, whole, other = (
        preview_form(log, {**request, "subset": part}, settings) for part in ("month=2024-01", "", "month=2024-02")
    )
    assert "month=2024-01" in again.account.refused and whole.account.refused
    assert other.account.refused is None and (other.account.left, other.account.after) == ((1, 0), (0, 0))


@pytest.mark.nightly
def test_the_dry_run_says_what_is_missing_and_what_the_release_would_be_worth(
    log: LogRecord, settings: ServerSettings
) -> None:
    silent = preview_form(log, {"method": "evolve", "epsilon": "1"}, settings)
    assert silent.lacking and silent.plan.undeclared == ["activities"]
    assert silent.preview.guarantee.charges and silent.preview.guarantee.conditions == ()
    assert silent.lacking is not None and silent.lacking.parameter == "labels"
    said = preview_form(log, EVOLVE, settings)
    assert said.lacking is None
    assert [c.code for c in said.preview.guarantee.conditions] == ["activities-from-log"]
    assert "Holds only if" in check_of(log, EVOLVE, settings)
    listed = preview_form(log, {**EVOLVE, "labels": "list", "activities": "Triage\nDischarge"}, settings)
    assert listed.preview.guarantee.conditions == ()


@pytest.mark.slow
def test_the_longest_cases_that_may_be_imagined_have_a_dry_run(log: LogRecord, settings: ServerSettings) -> None:
    found = preview_form(log, {**EVOLVE, "p_max_length": "1000"}, settings)
    assert isinstance(found, FormPreview) and found.plan.settings.to_json()["max_length"] == 1000


@pytest.mark.parametrize(
    ("form", "activities", "max_length"),
    [
        ({"labels": "log", "activities": "a\nb"}, "log", None),
        ({"labels": "list", "activities": "a\nb"}, ("a", "b"), None),
        ({"activities": "log", "max_length": "log"}, "log", "log"),
        ({"labels": "privately", "delta": "0.01", "longest": "log"}, "privately", "log"),
        ({"labels": "log", "longest": "log", "max_length": "7"}, "log", 7),
        ({"labels": "list", "activities": "log"}, ("log",), None),
    ],
)
def test_the_owners_word_is_read_as_it_was_said(form: dict[str, str], activities: Any, max_length: Any) -> None:
    asked = requested_options({"method": "evolve", "epsilon": "1", **form})
    assert (asked.declared.activities, asked.declared.max_length) == (activities, max_length)


@pytest.mark.nightly
def test_a_list_that_leaves_out_activities_is_remarked_on_to_the_owner_alone(
    path: Path, log: LogRecord, settings: ServerSettings, tmp_path: Path
) -> None:
    request = {**EVOLVE, "labels": "list", "activities": "Registration\nTriage\nWard round\nDischarge\nTypo"}
    result = released(path, request, settings, tmp_path / "out")
    (note,) = result.owner_only.notes
    assert note.code == "many-activities-undeclared" and "Consultation" in str(note)
    page = pages.job_page(job("release", result, request), log, ONCE)
    assert "Consultation" in page.partition('id="downloads"')[0], "before it is sent to anybody"
    assert result.guarantee.conditions == ()
    for name in ("certificate.json", "recipient-report.html", "release.xes"):
        text = (tmp_path / "out" / name).read_text()
        assert "Consultation" not in text and "leaves out" not in text, name


# What it is worth.


def verdict(page: str) -> tuple[str, str, str]:
    """Return class, level and epsilon of the first statement of a result."""
    told = r'<section class="card verdict (\w+)".*?<h2[^>]* data-strength="([^"]+)">[^<]*ε = ([\d.]+)'
    found = re.search(told, page, re.DOTALL)
    assert found
    return found[1], found[2], found[3]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("epsilon", "tone", "strength", "learnt"),
    [
        ("0.3", "good", "strong", "learn next to nothing"),
        ("1", "good", "good", "learn little"),
        ("2", "warn", "moderate", "learn something"),
        ("3.5", "bad", "weak", "learn much"),
        ("50", "bad", "none in practice", "nearly certain"),
    ],
)
def test_words_and_colour_follow_the_strength_everywhere(
    epsilon: str, tone: str, strength: str, learnt: str, path: Path, settings: ServerSettings, tmp_path: Path
) -> None:
    log = record(read(path))
    request = {**EVOLVE, "epsilon": epsilon} | ({"allow_no_protection": "unprotected"} if epsilon == "50" else {})
    dry = check_of(log, request, settings)
    assert f'<span class="here {tone}" aria-current="true">' in dry
    assert f'data-together="{strength}"' in dry, "the account as well, which has nothing but this"
    result = released(path, request, settings, tmp_path / "out")
    page = pages.job_page(job("release", result, request), log, ONCE)
    assert verdict(page) == (tone, strength, epsilon)
    assert learnt in page and "Protected" not in page
    nobody = strength == "none in practice"
    assert localise(result.guarantee.protects) in page
    assert (tone == "bad") == ("about-people" in says(page))
    answer = "Treat it as you treat" if nobody else "The names of all activities of the log are no secret"
    assert page.index(answer) < page.index("Download") < page.index("Holds only if")
    outside = (tmp_path / "out" / "recipient-report.html").read_text()
    assert f'<div class="tile {tone}">' in outside and f"Protection is {strength}" in outside
    assert ledger_status(result, log, settings).account.strength == strength


@pytest.mark.nightly
def test_the_account_is_judged_by_all_that_it_gave_away(path: Path, settings: ServerSettings, tmp_path: Path) -> None:
    log = record(read(path))
    for number in range(3):
        result = released(path, EVOLVE, settings, tmp_path / f"out{number}")
    assert settings.ledger is not None and str(settings.ledger) not in to_text(result)
    now = ledger_status(result, log, settings)
    assert now is not None and now.account is not None and now.account.strength == "weak"
    page = pages.job_page(job("release", result, EVOLVE), log, ONCE, now=now)
    assert verdict(page)[1:] == ("good", "1") and 'id="account-now" data-strength="weak"' in page
    found = preview_form(log, EVOLVE, settings)
    assert (found.strength, found.account.strength) == ("good", "none in practice")
    ledger = Ledger.open(settings.ledger)
    ledger.reserve(files.read(path), "travas", epsilon=Fraction(1, 2), unit="person")
    seen = account_seen(log, settings)
    assert [unit for unit, *_ in seen.sums] == ["case", "person"]
    assert seen.account is not None and seen.account.spent is None
    page = pages.account(log, seen, {}, {}, ONCE)
    assert says(page) == {"several-units"}
    unbounded = ledger.reserve(files.read(path), "travas", epsilon=None)
    assert unbounded.cost is None
    assert preview_form(log, EVOLVE, settings).account.strength == "none in practice"


@pytest.mark.parametrize("word", ["", "strong", "yes"])
def test_an_epsilon_that_protects_nobody_needs_the_word(word: str, log: LogRecord, settings: ServerSettings) -> None:
    request = {**EVOLVE, "epsilon": "3.9", "allow_no_protection": word}
    with pytest.raises(ParameterError) as caught:
        requested_options(request)
    assert caught.value.parameter == "allow_no_protection"
    assert preview_form(log, request, settings).parameter == "allow_no_protection"
    assert requested_options({**request, "allow_no_protection": "Unprotected"}).allow_no_protection
    assert requested_options({**EVOLVE, "epsilon": "3.89"}).allow_no_protection is False
    assert 'name="allow_no_protection"' in pages.release_form(log, request, ONCE)


# Who is protected.


@pytest.fixture(scope="module")
def stays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return eighty stays of forty patients, in a table."""
    rows = [
        f"{case},P{case % 40},{'AB'[case % 2]},{amount},nurse {amount % 3},{step},2024-01-{1 + case % 27:02d}"
        for case in range(80)
        for amount, step in enumerate(("come", "see", "go"))
    ]
    header = "case,Patienten-ID,ward,amount,nurse,activity,timestamp"
    return written(tmp_path_factory.mktemp("stays") / "stays.csv", header, *rows)


@pytest.mark.nightly
def test_patients_of_a_table_can_be_chosen_and_are_pointed_out(
    stays: Path, settings: ServerSettings, tmp_path: Path
) -> None:
    log = record(read(stays))
    assert log.measured is not None
    found = tuple((c.column, c.values, c.most, c.likely) for c in log.measured.units)
    assert found == (
        ("Patienten-ID", 40, 2, True),
        ("ward", 2, 40, False),
    )
    form = pages.release_form(log, {}, ONCE)
    assert re.search(r'name="unit" value="Patienten-ID">.*?40 values, at most 2 cases each', form, re.DOTALL)
    assert 'name="unit" value="ward"' not in form and 'name="unit" value="nurse"' not in form
    request = {**EVOLVE, "unit": "Patienten-ID", "max_cases": "2"}
    assert 'name="unit" value="Patienten-ID" checked' in pages.release_form(log, request, ONCE)
    conditions = preview_form(log, request, settings).preview.guarantee.conditions
    assert "cases-per-person-bounded" not in {c.code for c in conditions}
    guarantee = released(stays, request, settings, tmp_path / "out").guarantee
    assert guarantee.unit == "person"
    assert guarantee.protects.code == "protects-one-person"


def test_a_column_called_person_is_offered_and_never_leaves_then(tmp_path: Path) -> None:
    rows = [f"v{i},{step},2024-01-{1 + i % 27:02d},p{i // 2}" for i in range(40) for step in ("in", "out")]
    found = read(written(tmp_path / "log.csv", "case id,activity,time,person", *rows))
    assert found.measured is not None and found.measured.units[0].column == "case:person"
    log = record(found, {"person": "case:person", "is_person": "release"})
    assert not may_leave("person", log) and may_leave("person", record(found, {"is_person": "release"}))


@pytest.mark.slow
def test_every_one_of_hundreds_of_columns_may_be_chosen(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(300)]
    rows = [",".join(["1", "a", "2024-01-01", *["x"] * 300]), ",".join(["2", "a", "2024-01-02", *["x"] * 300])]
    log = record(read(written(tmp_path / "log.csv", ",".join(["case", "activity", "time", *names]), *rows)))
    told = pages.log_page(log, ONCE)
    form = pages.release_form(log, {}, ONCE)
    assert all(f'name="is_{name}"' in told and f'value="{name}"' in form for name in names)


@pytest.mark.slow
def test_times_and_numbers_of_every_size_name_nobody(path: Path) -> None:
    measured = read(path).measured
    assert measured is not None
    units = {column.column: column for column in measured.units}
    assert units["age group"].likely is False
    log = files.read(path)
    assert set(units) <= {*log.cases.column_names, *log.events.column_names} - {"concept:name", "time:timestamp"}


@pytest.mark.nightly
def test_what_noise_does_to_an_attribute_is_said_beforehand(log: LogRecord, settings: ServerSettings) -> None:
    assert log.measured is not None
    name = log.measured.case_attributes[0]
    form = {**EVOLVE, "attributes": name, f"d_{name}": "one\ntwo"}
    carried = preview_form(log, {**form, "epsilon": "10", "allow_no_protection": "unprotected"}, settings)
    assert isinstance(carried, FormPreview)
    assert [one for one, _ in carried.blurred] == [name]
    assert not [text for text in carried.warnings if "noise alone" in text]
    assert name in dict(carried.blurred)
    drowned = preview_form(log, {**form, "epsilon": "0.1"}, settings)
    assert isinstance(drowned, FormPreview)
    assert drowned.blurred == ()
    assert [text for text in drowned.warnings if "noise alone" in text]


@pytest.mark.parametrize(
    ("columns", "unit", "person"),
    [
        ({}, None, True),
        ({"case": "id"}, None, True),
        ({"person": ""}, None, False),
        ({"is_ward": "release"}, None, False),
        ({"person": "case:Patient"}, None, "case:Patient"),
        ({"person": "case:Patient"}, "Doctor", "Doctor"),
    ],
)
def test_whose_the_cases_are_is_what_was_said_of_the_release_or_of_the_log(
    columns: dict[str, str], unit: str | None, person: str | bool
) -> None:
    assert privacy_unit(columns, unit) == person


@pytest.mark.nightly
def test_the_page_names_the_column_taken_for_people_unless_it_was_said_whose_the_cases_are(
    settings: ServerSettings, tmp_path: Path
) -> None:
    rows = [
        f"{case},k{case % 30},{activity},2024-01-{1 + case % 28:02}T{9 + hour:02}:00:00Z"
        for case in range(150)
        for hour, activity in enumerate("abc" if case % 2 else "acb")
    ]
    path = written(tmp_path / "wards.csv", "case,client,activity,timestamp", *rows)
    form = {**EVOLVE, "p_max_length": "4"}
    for columns, seeming in (({}, "client"), ({"person": ""}, "")):
        made = released(path, form, settings, tmp_path / f"out{len(columns)}", columns=columns)
        assert made.beside is not None and made.beside.seeming == seeming
        page = pages.job_page(job("release", made, form), record(read(path)), "once")
        assert re.findall(r'data-seeming="([^"]*)"', page) == [name for name in (seeming,) if name]

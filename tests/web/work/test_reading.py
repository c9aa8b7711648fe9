"""Reading a log: questions to its owner, and the people who could be found."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
from messy import ocel_json
from refusals import refused, sentence
from web_logs import EVOLVE, read, record, silent, written

from veilog._language import spoken
from veilog.errors import InputError, ParameterError
from veilog.logs import files
from veilog.logs.synthetic.hospital import draw_starts, hospital
from veilog.measures.singling_out.rates import Rate
from veilog.messages import Message, for_surface
from veilog.methods import METHODS
from veilog.releasing import preview
from veilog.web.jobs.records import ServerSettings
from veilog.web.jobs.results import InnerTables, ReadLog
from veilog.web.pages import render as pages
from veilog.web.work import preview_form, request
from veilog.web.work.log_reader import log_of
from veilog.web.work.preview import FormPreview, Refused
from veilog.web.work.request import can_be_asked_for, imported_settings, offers, refuse_attributes, requested_options


def page_of(found: ReadLog, columns: dict[str, str] | None = None) -> str:
    return html.unescape(pages.log_page(record(found, columns, "log.csv"), "once"))


def exposure_of(found: ReadLog) -> str:
    return html.unescape(pages.exposure(record(found))).replace("\u202f", " ").replace("\u00a0", " ")


def numbers_of_lead(page: str) -> list[str]:
    """Return the numbers in the first sentence of a page."""
    found = re.search(r'<p class="lead">(.*?)</p>', page, re.DOTALL)
    assert found
    return re.findall(r"\d[\d.,]*\d|\d", found[1])


def selected(page: str, column: str) -> str:
    """Return the chosen meaning of a column; empty for the first one."""
    chosen = re.search(rf'name="is_{column}".*?</select>', page, re.DOTALL)
    assert chosen, column
    found = re.findall(r'<option value="(\w*)" selected>', chosen[0])
    return found[0] if found else ""


# Columns.


def test_only_the_role_that_is_missing_has_to_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", "Fallnummer,was,Zeitpunkt,note", "1,a,2024-01-01,x")
    found = read(path)
    assert found.problem == sentence("column-role-not-found", role="activity")
    assert found.columns is not None
    assert found.columns.taken == {"case": "Fallnummer", "timestamp": "Zeitpunkt"}
    page = page_of(found)
    assert selected(page, "Fallnummer") == "case" and selected(page, "Zeitpunkt") == "timestamp"
    assert selected(page, "was") == selected(page, "note") == ""
    assert found.advice and found.advice in page


@pytest.mark.slow
def test_of_a_workbook_with_two_sheets_one_is_chosen(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for sheet, rows in ((book.active, 1), (book.create_sheet("Notes"), 2)):
        for row in (["case", "activity", "time"], *[[f"{i}", "a", "2024-01-01"] for i in range(rows)]):
            sheet.append(row)
    path = tmp_path / "log.xlsx"
    book.save(path)
    found = read(path)
    assert found.problem and found.inside == InnerTables("sheet", ("Sheet", "Notes"), None) and found.measured is None
    page = page_of(found)
    assert 'name="sheet"' in page and '<option value="Notes">Notes</option>' in page
    for name, cases in (("Sheet", 1), ("Notes", 2)):
        found = read(path, {"sheet": name})
        assert found.measured is not None and found.measured.statistics.cases == cases
        assert f'<option value="{name}" selected>' in page_of(found)
        assert log_of(path, {"sheet": name}, silent).cases.num_rows == cases
    assert read(path, {"sheet": "Sheet3"}).inside == InnerTables("sheet", ("Sheet", "Notes"), None)


@pytest.mark.slow
def test_of_an_object_centric_log_the_type_of_its_cases_is_chosen(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(ocel_json())
    found = read(path)
    assert found.problem and found.inside is not None and found.inside.chosen is None and len(found.inside.among) == 2
    assert 'name="object_type"' in page_of(found)
    found = read(path, {"object_type": "bed"})
    assert found.measured is not None and found.measured.statistics.cases == 1
    assert found.inside is not None and found.inside.chosen == "bed"


@pytest.mark.slow
def test_the_transitions_that_a_log_has_are_advised_in_each_language(tmp_path: Path) -> None:
    rows = [f"1,a,2024-01-01,{step}" for step in ("begun", "begun", "over and out", "over and out", "over and out")]
    found = read(written(tmp_path / "log.csv", "case,activity,timestamp,lifecycle:transition", *rows))
    (noticed,) = (f for f in found.findings if f.rule == "lifecycle-transitions")
    instead = noticed.of_this_log
    assert instead is not None and (instead.code, instead.values["value"]) == ("lifecycle-instead", "'over and out'")
    assert noticed.policy == "keep" and "`lifecycle='over and out'`" in noticed.advice
    with for_surface("pages"):
        english = noticed.advice
        assert english in page_of(found) and "lifecycle=" not in page_of(found)
        with spoken("de"):
            assert noticed.advice != english and noticed.advice in page_of(found)
            assert "--lifecycle" not in page_of(found)


def test_a_long_name_in_an_example_is_cut_before_it_is_kept(tmp_path: Path) -> None:
    rows = [f"{'x' * 5000},a,{day}" for day in ("2024-01-02", "2024-01-01", "2024-01-01")]
    found = read(written(tmp_path / "log.csv", "case,activity,time", *rows))
    (example,) = (finding.example for finding in found.findings if finding.rule == "days-only")
    assert isinstance(example, Message) and len(example.values["name"]) <= 160


def test_what_does_not_help_is_not_advised(tmp_path: Path) -> None:
    rows = ["1,a,02/04/2020", "2,b,03/04/2020"]
    with for_surface("pages"):
        found = read(written(tmp_path / "log.csv", "case,activity,timestamp", *rows))
        assert found.advice == Message("date-order-unclear").advice
    assert found.problem == sentence("date-order-unclear", doubtful="02/04/2020") and found.advice in page_of(found)
    with refused(InputError, "log-without-cases"):
        read(written(tmp_path / "empty.csv", "case,activity,timestamp"))


@pytest.mark.slow
def test_dates_are_shown_as_they_are_understood(tmp_path: Path) -> None:
    rows = ["1,a,05/06/2024 14:00", "1,b,25/12/2024", "2,a,2024-03-01", "2,b,never"]
    path = written(tmp_path / "log.csv", "case,activity,timestamp", *rows)
    found = read(path)
    assert found.preview is not None
    assert found.preview.times == (
        "5 June 2024, 14:00 or 6 May 2024, 14:00",
        "25 December 2024, 00:00",
        "1 March 2024, 00:00",
        "cannot be read",
    )
    told = read(path, {"time_format": "mm/dd/yyyy"}).preview
    assert told is not None and told.times[0] == "6 May 2024, 14:00"
    assert all(f"<td>{time}</td>" in page_of(found) for time in found.preview.times)


# Whose cases, and the other columns.


@pytest.fixture(scope="module")
def stays(tmp_path_factory: pytest.TempPathFactory) -> ReadLog:
    rows = [
        f"{case},P{case % 20},{'AB'[case % 2]},{step},2024-01-{1 + case % 27:02d}"
        for case in range(40)
        for step in ("come", "see", "go")
    ]
    header = "case,Patienten-ID,ward,activity,timestamp"
    return read(written(tmp_path_factory.mktemp("stays") / "stays.csv", header, *rows))


@pytest.mark.slow
def test_import_asks_for_the_person_and_what_each_column_is(stays: ReadLog) -> None:
    page = page_of(stays)
    assert selected(page, "Patienten-ID") == "person" and 'data-person="Patienten-ID"' in page
    assert re.search(r"<b>Patienten-ID</b>: 20 [^<]* 2 ", page)
    assert selected(page_of(stays, {"person": ""}), "Patienten-ID") == ""
    assert [selected(page, role) for role in ("case", "activity", "timestamp")] == ["case", "activity", "timestamp"]
    page = page_of(stays, {"person": "", "is_Patienten-ID": "identifying", "is_ward": "release"})
    assert selected(page, "Patienten-ID") == "identifying" and selected(page, "ward") == "release"


def test_a_form_begins_with_what_was_said_at_import(stays: ReadLog, settings: ServerSettings) -> None:
    said = {"person": "Patienten-ID", "max_cases": "2", "is_Patienten-ID": "identifying", "is_ward": "release"}
    log = record(stays, said)
    assert imported_settings(log) == {"attributes": "ward", "unit": "Patienten-ID", "max_cases": "2"}
    form = pages.release_form(log, imported_settings(log), "once")
    assert 'name="unit" value="Patienten-ID" checked' in form
    assert re.search(r'name="attributes" value="ward" checked', form)
    assert 'name="attributes" value="Patienten-ID"' not in form
    assert form.index('id="unit"') < form.index('id="epsilon"')


NEAR = Message("attribute-near", name="ward")


@pytest.mark.parametrize(
    ("asked", "code", "name"),
    [
        ({"attributes": "Ward", "delta": "1e-6"}, "attribute-not-in-log", "Ward"),
        ({"attributes": "Patienten-ID", "delta": "1e-6"}, "attribute-identifying", "Patienten-ID"),
    ],
)
def test_attributes_that_cannot_be_released_are_refused_before_a_job_is_made(
    stays: ReadLog, settings: ServerSettings, asked: dict[str, str], code: str, name: str
) -> None:
    log = record(stays, {"is_Patienten-ID": "identifying"})
    assert sentence(code, name=name, near=NEAR) in preview_form(log, {**EVOLVE, **asked}, settings).problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "asked", "why"),
    [
        ({"is_ward": ""}, {"attributes": "ward"}, "attribute-left-out"),
        ({"is_Patienten-ID": "release"}, {"attributes": "ward"}, "attribute-left-out"),
        ({"person": "ward", "is_ward": "release"}, {"attributes": "ward"}, "attribute-identifying"),
        ({"is_ward": ""}, {"subset": "ward=A"}, "attribute-left-out"),
        ({"is_ward": "identifying"}, {"subset": "case:ward=A"}, "attribute-identifying"),
        ({"person": "ward"}, {"subset": "ward=A"}, "attribute-identifying"),
        ({"person": ""}, {"attributes": "ward"}, "attribute-left-out"),
    ],
)
def test_what_was_to_stay_here_is_not_offered_and_refused(
    stays: ReadLog, settings: ServerSettings, said: dict[str, str], asked: dict[str, str], why: str
) -> None:
    """A column that is to stay here is neither an attribute nor the value of a subset."""
    log = record(stays, said)
    assert 'name="attributes" value="ward"' not in pages.release_form(log, {}, "once")
    refusal = preview_form(log, {**EVOLVE, "delta": "1e-6", **asked}, settings)
    assert sentence(why, name="ward") in refusal.problem
    before = pages.release_form(log, {"attributes": "ward"}, "once")
    assert 'name="attributes" value="ward"' not in before, "what was ticked before is not sent on unseen"
    allowed = preview_form(record(stays, {"is_ward": "release"}), {**EVOLVE, "delta": "1e-6", **asked}, settings)
    assert not isinstance(allowed, Refused)


@pytest.mark.parametrize(
    ("asked", "said", "why"),
    [
        ("ward", {"is_ward": "identifying"}, "attribute-identifying"),
        ("case:ward", {"person": "ward"}, "attribute-identifying"),
        ("ward", {"person": ""}, "attribute-left-out"),
        ("warden", {}, "attribute-not-in-log"),
    ],
)
def test_settings_of_methods_release_no_more_than_was_said(
    stays: ReadLog, settings: ServerSettings, asked: str, said: dict[str, str], why: str
) -> None:
    """A method's own settings release no attribute that is to stay here."""
    form = {**EVOLVE, "method": "pripel", "p_attribute_names": asked}
    assert isinstance(preview_form(record(stays, said), form, settings), Refused)
    with refused(ParameterError, why):
        refuse_attributes(requested_options(form), record(stays, said))
    named = {**form, "p_attribute_names": "ward"}
    refuse_attributes(requested_options(named), record(stays, {"person": "", "is_ward": "release"}))


def test_every_setting_that_names_attributes_to_release_is_looked_at() -> None:
    found = {
        parameter.name
        for method in METHODS.values()
        if offers(method)
        for parameter in method.parameters
        if parameter.kind is str and "attribute" in parameter.what
    }
    assert found == {request._NAMING} <= set(preview._OF_THE_LOG)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [{}, {"is_ward": "release"}])
def test_a_part_by_what_is_neither_a_rule_nor_a_column_is_said_to_be_so(
    stays: ReadLog, settings: ServerSettings, columns: dict[str, str]
) -> None:
    """An unknown rule of a subset is named, and not a column that was left out."""
    asked = {**EVOLVE, "delta": "1e-6", "subset": "monat=2024-02"}
    problem = preview_form(record(stays, columns), asked, settings).problem
    assert sentence("subset-without-rule", name="monat", near="") in problem and "month=2024-03" in problem
    problem = preview_form(record(stays, columns), {**asked, "subset": "Ward=A"}, settings).problem
    assert sentence("subset-without-rule", name="Ward", near=NEAR) in problem
    assert not isinstance(preview_form(record(stays, columns), {**asked, "subset": "month=2024-02"}, settings), Refused)


@pytest.mark.slow
def test_listed_activities_that_the_log_lacks_are_told_before_paying(stays: ReadLog, settings: ServerSettings) -> None:
    log = record(stays)
    assert log.measured is not None
    own = log.measured.labels
    listed = {**EVOLVE, "labels": "list", "activities": "\n".join(["Entlasung", *own[1:]])}
    absent, undeclared, *_ = preview_form(log, listed, settings).warnings
    assert "'Entlasung'" in absent and f"1 of {len(own)} " in absent
    assert f"(1 of {len(own)})" in undeclared
    assert not preview_form(log, {**listed, "activities": "\n".join(own)}, settings).warnings


@pytest.mark.slow
def test_a_time_in_which_the_log_has_nothing_is_told_before_paying(stays: ReadLog, settings: ServerSettings) -> None:
    asked = {**EVOLVE, "times": "0.3"}
    for start, end, told in (("2030", "2031", 1), ("2023", "2024", 1), ("2023", "2025", 0)):
        window = {"window_start": f"{start}-01-01", "window_end": f"{end}-01-01"}
        plan = preview_form(record(stays), {**asked, **window}, settings)
        assert isinstance(plan, FormPreview) and len(plan.warnings) == told


def test_enter_in_the_form_only_looks(stays: ReadLog, settings: ServerSettings) -> None:
    """Enter in the form sends the settings to the check, which spends nothing."""
    form = pages.release_form(record(stays), {}, "once")
    assert 'id="asked" method="post" action="/logs/' in form and form.partition('id="asked"')[2].count("/jobs") == 0
    assert re.search(r'id="asked" method="post" action="[^"]*/check"', form)


@pytest.mark.slow
def test_a_name_that_lists_others_asks_for_none_of_them(settings: ServerSettings, tmp_path: Path) -> None:
    rows = [f"{case},{step},2024-01-0{1 + case % 9},x,y,z" for case in range(40) for step in ("come", "go")]
    found = read(written(tmp_path / "log.csv", 'case,activity,timestamp,"Alter, Beruf",Beruf,Alter', *rows))
    asks = page_of(found).partition('name="is_Alter, Beruf"')[2].partition("</select>")[0]
    assert asks and 'value="release"' not in asks
    log = record(found, {"is_Alter, Beruf": "release"})
    assert imported_settings(log) == {}
    form = pages.release_form(log, imported_settings(log), "once")
    assert 'name="attributes"' not in form
    assert preview_form(log, EVOLVE, settings).lacking is None, "the rest can be released"
    asked = {**EVOLVE, "attributes": "Alter, Beruf", "delta": "1e-6"}
    assert sentence("attribute-left-out", name="Alter") in preview_form(log, asked, settings).problem
    both = record(found, {**log.columns, "is_Beruf": "release"})
    assert imported_settings(both) == {"attributes": "Beruf"}


@pytest.mark.parametrize("name", ["a,b", "a\nb", "a\rb", " a", "a ", "", "a\u2028b", ","])
def test_names_that_a_list_would_break_are_known(name: str) -> None:
    assert not can_be_asked_for(name)
    assert can_be_asked_for("Alter und Beruf; s|t")


@pytest.mark.slow
def test_starts_of_events_come_with_times_and_not_as_an_attribute(settings: ServerSettings, tmp_path: Path) -> None:
    path = tmp_path / "started.xes"
    files.write(draw_starts(hospital(40, seed=3)), path)
    found, asked = read(path), {**EVOLVE, "times": "0.3", "processing": "yes"}
    asks = page_of(found).partition('name="is_start_timestamp"')[2].partition("</select>")[0]
    assert 'value="identifying"' in asks and 'value="release"' not in asks
    assert "attributes" not in imported_settings(record(found, {"is_start_timestamp": "release"}))
    assert preview_form(record(found, {"is_start_timestamp": "release"}), asked, settings).plan.wanted.processing
    refusal = preview_form(record(found, {"is_start_timestamp": "identifying"}), asked, settings)
    assert sentence("attribute-identifying", name="start_timestamp") in refusal.problem


@pytest.mark.slow
def test_values_of_attributes_are_listed_in_the_form(stays: ReadLog, settings: ServerSettings) -> None:
    log = record(stays)
    asked = {**EVOLVE, "attributes": "ward"}
    found = preview_form(log, asked, settings)
    assert found.lacking is None and found.plan.delta, "with a delta, they are found privately"
    listed = preview_form(log, {**asked, "d_ward": "A\nB"}, settings)
    assert listed.lacking is None
    assert listed.plan.declared.attributes == {"ward": ("A", "B")}
    with_delta = preview_form(log, {**asked, "delta": "1e-6"}, settings)
    assert with_delta.lacking is None


@pytest.mark.slow
def test_a_range_is_of_numbers_and_may_have_decimal_commas(settings: ServerSettings, tmp_path: Path) -> None:
    rows = (f'{case},go,2024-01-{1 + case:02d},{case}.5,"{case},5"' for case in range(9))
    log = record(read(written(tmp_path / "costs.csv", "case,activity,timestamp,cost,price", *rows)))
    for said, low, high in (("0..10", 0.0, 10.0), ("0,5 .. 99,5", 0.5, 99.5), ("-1,5..1e3", -1.5, 1000.0)):
        ranged = preview_form(log, {**EVOLVE, "attributes": "cost", "d_cost": said}, settings)
        assert isinstance(ranged, FormPreview) and ranged.plan.declared.attributes == {"cost": (low, high)}
    refusal = preview_form(log, {**EVOLVE, "attributes": "price", "d_price": "0..10"}, settings)
    assert isinstance(refusal, Refused) and refusal.parameter == "d_price"
    assert sentence("attribute-values-without-range", name="'price'") in refusal.problem


@pytest.mark.slow
def test_numbers_of_parameters_may_have_decimal_commas(stays: ReadLog, settings: ServerSettings) -> None:
    planned = preview_form(record(stays), {**EVOLVE, "p_real_share": "0,25", "delta": "1e-6"}, settings)
    assert isinstance(planned, FormPreview) and planned.plan.settings.real_share == 0.25
    empty = preview_form(record(stays), {**EVOLVE, "epsilon": ""}, settings)
    assert isinstance(empty, Refused) and "guessing advantage" not in empty.problem and empty.parameter == "epsilon"


# Who could be found.


def test_exposure_begins_with_the_paths_that_nobody_else_follows(tmp_path: Path) -> None:
    rows = [f"c{i},{what},2024-03-{12 + i % 9:02d}T10:0{j}" for i in range(9) for j, what in enumerate(("in", "out"))]
    rows += ["alone,in,2024-03-12T10:00", "alone,scan,2024-03-12T11:00", "other,out,2024-03-13T10:00"]
    rows += ["other,scan,2024-03-13T11:00"]
    found = read(written(tmp_path / "log.csv", "case,activity,timestamp", *rows))
    assert found.measured is not None
    assert found.measured.alone == 2
    page = exposure_of(found)
    assert numbers_of_lead(page) == ["18.2", "11", "2"]
    assert found.measured.example and found.measured.example in html.unescape(page)
    assert page.index('class="lead"') < page.index('id="example"') < page.index('id="found-people"')


def test_nobody_is_alone_where_all_paths_are_shared(tmp_path: Path) -> None:
    rows = [f"{i},{what},2024-01-0{j + 1}" for i in range(6) for j, what in enumerate("ab")]
    found = read(written(tmp_path / "log.csv", "case,activity,timestamp", *rows))
    page = exposure_of(found)
    assert numbers_of_lead(page) == ["6"] and 'id="example"' not in page
    page = html.unescape(pages.explore(record(found)))
    assert re.search(r'<p data-paths="1">[^<\d]+</p>', page), "one path is not counted"


def test_a_share_that_is_told_without_digits_is_not_about_so_much(stays: ReadLog) -> None:
    assert stays.measured is not None
    few, guessed = Rate(2e-5, 1e-6, 0.006), Rate(2e-5, 2e-5, 2e-5)
    found = replace(stays.measured.singled_out[0], found=few, guessed=guessed)
    rare = replace(stays.measured, alone=3, people=100_000, person="", singled_out=(found,))
    rare = replace(rare, statistics=replace(rare.statistics, cases=100_000))
    page = html.unescape(exposure_of(replace(stays, measured=rare)))
    assert "0.1 % to 0.6 %" in page and "about under" not in page
    assert numbers_of_lead(page) == ["0.1", "100,000", "3"]


def test_of_a_log_of_one_case_the_pages_speak_of_one(tmp_path: Path) -> None:
    path = written(tmp_path / "one.csv", "case,activity,timestamp", "1,a,2024-01-01", "1,b,2024-01-02")
    log = record(read(path))
    for page in (pages.log_page(log, "once"), pages.exposure(log)):
        assert not re.search(r"\b1 (cases|different paths)\b|\bof the 1\b", page), page
    assert numbers_of_lead(pages.log_page(log, "once"))[:3] == ["1", "2", "2"]

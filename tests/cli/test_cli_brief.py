"""The short answer of a release: what comes first, and what comes next."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import error_of
from refusals import sentence

import veilog
from veilog._language import count_phrase
from veilog.cli import main
from veilog.cli.release import NOISE_ONLY as NOISE_ONLY_STATUS
from veilog.cli.shared.releases import release_brief
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
from veilog.measures import Comparison, Found
from veilog.measures.durations import Spans, case_durations
from veilog.measures.singling_out.rates import Rate
from veilog.measures.singling_out.words import briefly_in_words, percent
from veilog.messages import Message
from veilog.privacy.account.guarantee import Condition
from veilog.releasing.result import NOISE_ONLY

EVOLVE = ("-m", "evolve", "--epsilon", "1", "--overwrite")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return visits of patients who came twice, one event untimed, and a tiny log."""
    place = tmp_path_factory.mktemp("brief")
    rows = [
        f"v{visit},{activity},2024-01-0{day}T10:00:00Z,p{visit // 2}\n"
        for visit in range(80)
        for day, activity in enumerate(("Admission", "Laboratory", "Discharge"), 1)
    ]
    (place / "visits.csv").write_text("case,activity,time,Patient\n" + "".join(rows) + "v0,Discharge,,p0\n")
    (place / "one.csv").write_text("case,activity,time\n1,a,2024-01-01\n1,b,2024-01-02\n")
    return place


@pytest.fixture(autouse=True)
def here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.chdir(folder)


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    """Return the rows of a release's answer, by their names."""
    capsys.readouterr()
    assert main(["release", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == "", "progress is shown at terminals only"
    lines = [line.partition("  ") for line in out.splitlines()]
    return {name: said.strip() for name, _, said in lines}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["--activities", "Admission,Discharge"], "one-activity-undeclared"),
        (["--activities", "log"], "cases-of-persons"),
        (["--activities", "log", "--unit", "Patient", "--max-cases", "2"], None),
    ],
)
def test_what_became_of_the_log_comes_before_the_account(
    more: list[str], code: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ["visits.csv", "out.xes", *EVOLVE, *more, "--no-compare", "--on", "missing-timestamp=drop"]
    facts = tmp_path / "facts.json"
    for _ in range(2):  # the second time, too
        told = rows(capsys, *options, "--json", str(facts))["confidential"]
        notes = {note["code"]: note["text"] for note in json.loads(facts.read_text())["owner_only"]["notes"]}
        assert told.startswith("Reading the log, missing-timestamp: 1 " if code is None else notes[code])


def test_a_release_of_many_variants_shows_its_similarity_alone(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("veilog.cli.release._COMPARED_WHOLLY", 0)
    options = [
        "visits.csv",
        str(tmp_path / "out.xes"),
        *EVOLVE,
        "--activities",
        "log",
        "--on",
        "missing-timestamp=drop",
    ]
    assert main(["release", *options]) in (0, NOISE_ONLY_STATUS)
    shown = capsys.readouterr().out
    assert "similarity" in shown
    assert "attack test" not in shown
    assert "veilog compare visits.csv" in shown


def test_a_release_in_no_ledger_says_so_once_and_with_the_delta_of_an_account() -> None:
    log = hospital(31, seed=5)
    notes = [
        veilog.release(log, "travas", epsilon=1, delta=delta, activities=ACTIVITIES).owner_only.notes
        for delta in ("1e-3", "1e-3")
    ]
    assert [len([note for note in told if note.code.startswith("in-no-ledger")]) for told in notes] == [1, 1]
    assert all(told[-1].code == "in-no-ledger-with-delta" for told in notes)


@pytest.mark.slow
def test_of_one_case_nothing_is_concluded_and_that_it_is_too_few_comes_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    facts = tmp_path / "facts.json"
    told = rows(capsys, "one.csv", "out.xes", *EVOLVE, "--activities", "log", "--json", str(facts))
    first = next(remark for remark in json.loads(facts.read_text())["remarks"] if remark["code"] != NOISE_ONLY.code)
    assert told["attack test"] == sentence("attack-undecided")
    assert first["code"] == "evolve-cases-few" and told["warning"].startswith(first["text"])
    assert ", 1 variant, " in told["released"] or " variants, " in told["released"]


def test_a_release_that_tells_more_is_told_with_what_it_tells() -> None:
    log = hospital(80, seed=5).variants
    found = veilog.compare(log, log, models=False).singling_out
    assert found is not None
    for more, beyond in ((True, Rate(0.3, 0.2, 0.4)), (False, Rate(0.0, -0.1, 0.1))):
        attacked = tuple(replace(row, beyond=beyond) for row in found.results)
        shares = {"released": percent(attacked[0].guessed.released), "control": percent(attacked[0].guessed.baseline)}
        told = sentence("attack-briefly-others", **shares) if more else sentence("attack-no-more-others")
        assert briefly_in_words(replace(found, results=attacked)) == told
    for unclear in (Rate(1.0, -0.26, 1.0), Rate(0.5, -0.42, 0.95), Rate(0.0, -0.5, 0.5)):
        attacked = tuple(replace(row, beyond=unclear) for row in found.results)
        assert briefly_in_words(replace(found, results=attacked)) == sentence("attack-undecided")


def test_a_list_that_is_not_there_is_wrong_usage_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    for more, code in (
        (["--activities", "@none.txt"], "list-not-readable"),
        (["--activities", "log", "--map", "none.txt"], "map-not-readable"),
    ):
        error = error_of(capsys, "release", "visits.csv", "out.xes", *EVOLVE, *more)
        assert (error["status"], error["code"]) == (2, code)
        assert os.strerror(errno.ENOENT) in error["problem"] and "Errno" not in error["problem"]
        assert error["message"].count("none.txt") == 1


@pytest.mark.slow
def test_the_first_remark_is_told_with_what_to_do_about_it_and_all_with_details(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ["one.csv", "out.xes", *EVOLVE, "--activities", "log", "--json", str(tmp_path / "facts.json")]
    note = rows(capsys, *options)["warning"]
    remarks = json.loads((tmp_path / "facts.json").read_text())["remarks"]
    first, *others = (remark["text"] for remark in remarks if remark["code"] != NOISE_ONLY.code)  # which is line one
    assert note == f"{first} ({len(others)} more: --details)" and ". " in first
    assert main(["release", *options, "--details"]) == 0
    told = capsys.readouterr().out
    remarks = json.loads((tmp_path / "facts.json").read_text())["remarks"]
    assert all(remark["text"] in told for remark in remarks if remark["code"] != NOISE_ONLY.code)


def test_of_a_condition_the_first_sentence_is_told_and_that_there_is_more(tmp_path: Path) -> None:
    log = hospital(31, seed=5)
    released = veilog.release(log, "travas", epsilon=1, delta="1e-3", activities=ACTIVITIES)
    for text, told in (("One. Two.", "One. (the rest: --details)"), ("One.", "One.")):
        one = replace(released.guarantee, conditions=(Condition("one-run", "program", Message(text)),))
        cells = release_brief(replace(released, guarantee=one), ["out.xes"]).columns[1].cells
        assert told in [str(cell) for cell in cells]


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "warned"), [(1, True), (29, True), (30, False)])
def test_how_long_cases_last_says_of_how_many_released_cases(cases: int, warned: bool) -> None:
    starts, hour = np.zeros(cases, dtype=np.int64), 3_600_000_000
    lasting = case_durations(Spans(starts[:1], starts[:1] + hour, 0), Spans(starts, starts + 2 * hour, 0))
    log = hospital(31, seed=5)
    released = veilog.release(log, "evolve", epsilon=1, activities=ACTIVITIES)
    kept = Comparison(31, cases, {"case_durations": Found(lasting)}, {})
    told = [str(cell) for cell in release_brief(released, ["out.xes"], kept).columns[1].cells]
    few = " (too few to estimate durations)" if warned else ""
    said = f"of {count_phrase(cases, 'released case')}{few}: half up to 2.0 h, of the original 1.0 h"
    assert any(cell.startswith(said) for cell in told), told


def test_one_of_a_thing_is_one() -> None:
    assert [count_phrase(n, "variant") for n in (0, 1, 2)] == ["0 variants", "1 variant", "2 variants"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "more", "said"),
    [
        ("out.xes", [], "veilog report out.xes out.html"),
        ("out.csv", [], ".xes, .xlsx or .parquet"),
        ("out.tsv.gz", ["--recipient-report", "page.html"], "page.html"),
    ],
)
def test_what_is_next_can_be_done(target: str, more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["visits.csv", target, *EVOLVE, "--activities", "log", "--no-compare", "--on", "missing-timestamp=drop"]
    told = rows(capsys, *options, *more)["next"]
    assert said in told
    if told.startswith("veilog "):
        assert main(told.partition(" writes")[0].split()[1:]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "code", "near"),
    [
        (["--unit", "Patiend"], "unit-column-missing", "Patient"),
        (["--unit", "Patiend", "--max-cases", "2"], "person-attribute-missing", "Patient"),
        (["--unit", "Cas"], "unit-column-missing", "case"),
        (["--unit", "Cas", "--max-cases", "2"], "person-attribute-missing", "case"),
        (["--domain", "Patient=a|b"], "domain-of-unreleased-attribute", ""),
        (["--attributes", "Ward", "--domain", "Wardd=a|b"], "domain-of-unreleased-attribute", "Ward"),
        (["--language", "de"], "language-without-page", ""),
        (["--dry-run", "--sizes", "Visits.cvs"], "sizes-file-missing", "visits.csv"),
        (["--dry-run", "--sizes", "lgo"], "sizes-file-missing", ""),
        (["--since", "2999-03-01"], "days-none-between", ""),
    ],
)
def test_what_cannot_be_meant_is_told_and_by_its_option(
    unit: list[str], code: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--activities", "log", "--on", "missing-timestamp=drop"]
    error = error_of(capsys, "release", "visits.csv", "out.xes", *EVOLVE, *options, *unit)
    assert error["status"] in (1, 2) and error["code"] == code
    assert not near or sentence("did-you-mean", near=near) in error["message"]


@pytest.mark.slow
def test_numbers_that_are_stored_as_text_have_a_way_to_be_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    case = (
        '<trace><string key="concept:name" value="{0}"/><string key="amount" value="{1}"/>'
        '<event><string key="concept:name" value="a"/></event></trace>'
    )
    Path("amounts.xes").write_text(f"<log>{''.join(case.format(i, 100 + i % 7) for i in range(60))}</log>")
    ranged = ["out.xes", *EVOLVE, "--activities", "a", "--attributes", "amount", "--domain", "amount=0..200"]
    error = error_of(capsys, "release", "amounts.xes", *ranged)
    assert (error["status"], error["code"]) == (2, "attribute-range-without-numbers")
    assert "veilog convert LOG numbers.csv" in error["advice"]
    assert " 97,30 " in error["message"]  # what a decimal comma makes of an export
    assert main(["convert", "amounts.xes", "numbers.csv", "--on", "no-timestamps=keep"]) == 0
    assert main(["release", "numbers.csv", *ranged, "--no-compare"]) == 0
    values = veilog.read("out.xes").cases.column("amount").to_pylist()
    assert any(isinstance(value, int | float) for value in values)


def test_each_released_event_is_complete_and_the_file_says_how_it_was_made_private() -> None:
    assert main(["release", "one.csv", "out.xes", *EVOLVE, "--activities", "log", "--no-compare"]) == 0
    text = Path("out.xes").read_text()
    assert '<extension name="Privacy" prefix="privacy"' in text
    assert text.count('key="lifecycle:transition" value="complete"') == text.count("<event>") + 1, "and the default"


def test_log_and_target_may_be_options_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--target", "copy.parquet", "--log", "one.csv"]) == 0
    assert veilog.read("copy.parquet").variants.to_dict() == {("a", "b"): 1}


def test_summer_and_winter_time_are_one_finding_that_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    times = ("2024-03-30T08:00:00+01:00", "2024-04-01T08:00:00+02:00")
    Path("summer.csv").write_text("case,activity,timestamp\n" + "".join(f"{t[5]},a,{t}\n" for t in times))
    assert main(["info", "summer.csv"]) == 0
    told = capsys.readouterr().out
    (found,) = veilog.read("summer.csv").findings
    assert found.advice in told and "2024-03-30 07:00:00 (UTC)" in told
    assert (found.rule, found.severity, found.policy) == ("mixed-time-zones", "info", "keep")


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("cases", "events", "labels"), [(5, 2, "ab"), (30, 3, "a"), (2, 20_000, "abc")])
def test_odd_shapes_are_looked_at_and_released(
    cases: int, events: int, labels: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (f"{case},{labels[i % len(labels)]},2024-01-01" for case in range(cases) for i in range(events))
    Path("odd.csv").write_text("case,activity,date\n" + "\n".join(lines) + "\n")
    assert main(["info", "odd.csv"]) == 0 and main(["risk", "odd.csv", "--size", "1"]) == 0
    rows(capsys, "odd.csv", "odd.xes", *EVOLVE, "--activities", "log", "--json", "facts.json")
    assert "evolve-cases-few" in {remark["code"] for remark in json.loads(Path("facts.json").read_text())["remarks"]}
    assert veilog.read("odd.xes").variants.cases > 0


@pytest.mark.slow
@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.xlsx", "out.xes"])
def test_a_release_is_compared_with_an_original_whose_columns_are_called_otherwise(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("visits.csv").read_text()
    Path("besuche.csv").write_text(text.replace("case,activity,time,Patient", "Fall,Schritt,Wann,Patient"))
    named = ["--case", "Fall", "--activity", "Schritt", "--timestamp", "Wann", "--on", "missing-timestamp=drop"]
    rows(capsys, "besuche.csv", target, *EVOLVE, "--activities", "log", "--no-compare", *named)
    assert main(["compare", "besuche.csv", target, *named]) == 0


def test_converting_to_a_table_says_which_conditions_it_has_no_place_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CSV file loses the conditions, so they are printed; Parquet keeps them.

    See tests/logs/test_earlier.py for the Parquet file.
    """
    (tmp_path / "log.csv").write_text("case,activity,timestamp\n1,a,2024-01-01\n1,b,2024-01-02\n")
    (tmp_path / "map.csv").write_text("a,x\nb,y\n")
    said = {}
    for target in ("new.csv", "new.parquet"):
        words = ["convert", str(tmp_path / "log.csv"), str(tmp_path / target), "--on", "duplicate-case-id=drop"]
        words += ["--map", str(tmp_path / "map.csv"), "--json", str(tmp_path / "facts.json"), "--overwrite"]
        assert main(words) == 0
        shown = " ".join(capsys.readouterr().out.split())
        said[target] = json.loads((tmp_path / "facts.json").read_text())["conditions"]
        assert all(condition in shown for condition in said[target])
    assert said["new.csv"][0] == sentence("read-together-duplicates") and len(said["new.csv"]) == 2
    assert said["new.parquet"] == []


def test_of_a_model_of_groups_no_budget_is_said_to_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A model of groups has no budget, and so no line about one."""
    told = rows(
        capsys, "visits.csv", "g.xes", "-m", "pretsa", "-p", "k=3", "--no-compare", "--on", "missing-timestamp=drop"
    )
    assert "asked for" not in told and "instead" in told

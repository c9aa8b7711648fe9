"""The column of persons as an option of ``compare`` and ``risk``."""

import html
import json
import re
from pathlib import Path

import pytest
from commands import error_of
from refusals import sentence

from veilog.cli import main


@pytest.fixture
def wards(tmp_path: Path) -> Path:
    """Return cases of 30 clients and 30 wards, and of patients with one case each."""
    path = tmp_path / "wards.csv"
    rows = [
        f"{case},{activity},2024-01-{1 + case % 28:02}T{9 + hour:02}:00:00Z,w{case % 30},k{case % 30},p{case}"
        for case in range(150)
        for hour, activity in enumerate("abc" if case % 2 else "acb")
    ]
    path.write_text("\n".join(["case,activity,timestamp,ward,client,patient", *rows]))
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    assert main([*map(str, arguments), "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_the_column_taken_for_people_is_named_and_how_to_say_otherwise(
    capsys: pytest.CaptureFixture[str], wards: Path
) -> None:
    assert main(["risk", str(wards), "--size", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    of_clients = [sentence(code, column="client") for code in ("people-seem-told-by", "intervals-perhaps-too-narrow")]
    assert all(said in shown for said in of_clients) and sentence("half-of-people-published", column="client") in shown
    assert main(["risk", str(wards), "--size", "1", "--no-person"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert not any(said in shown for said in of_clients) and sentence("half-published") in shown


@pytest.mark.slow
def test_the_owner_says_whose_the_cases_are(capsys: pytest.CaptureFixture[str], wards: Path) -> None:
    asked = ["compare", wards, wards, "--no-models"]
    assert told(capsys, *asked)["person"] == "client"
    assert told(capsys, *asked, "--no-person")["person"] is None
    assert told(capsys, *asked, "--person", "patient")["person"] == "patient"


@pytest.mark.slow
def test_what_intervals_over_a_control_do_not_take_into_account_is_said(
    capsys: pytest.CaptureFixture[str], wards: Path
) -> None:
    control = wards.with_name("control.csv")
    control.write_text(re.sub(r"(?m)^([0-9]+),(.*),p([0-9]+)$", r"o\1,\2,o\3", wards.read_text()))
    for options, said in (([], False), (["--control", str(control)], True)):
        assert main(["compare", str(wards), str(wards), "--no-models", "--person", "patient", *options]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert (sentence("intervals-perhaps-too-narrow", column="patient") in shown) == said


@pytest.fixture
def release(wards: Path) -> Path:
    """Return a release of these cases."""
    made = wards.with_name("release.xes")
    asked = ["--method", "laplace", "--epsilon", "10", "-p", "depth=4", "--activities", "log", "--no-compare"]
    asked += ["--allow-no-protection"]
    assert main(["release", str(wards), str(made), *asked]) == 0
    return made


@pytest.mark.slow
def test_a_report_says_who_was_taken_for_people_and_hears_whose_the_cases_are(wards: Path, release: Path) -> None:
    said = {
        options: _page("report", wards, release, *options)
        for options in [(), ("--no-person",), ("--person", "patient")]
    }
    assert ['<span id="people-guessed">' in page for page in said.values()] == [True, False, False]


@pytest.mark.slow
def test_a_dossier_hears_whose_the_cases_of_its_control_are(
    capsys: pytest.CaptureFixture[str], wards: Path, release: Path
) -> None:
    """A dossier refuses a control with the same people, by the column of persons."""
    control = wards.with_name("control.csv")
    control.write_text(re.sub(r"(?m)^([0-9]+),(.*),p[0-9]+$", r"o\1,\2,o\1", wards.read_text()))
    shared = sentence("control-people-in-original", number=30, name="client", same=30)
    for options in ((), ("--person", "client")):
        target = wards.with_name("none.html")
        asked = ("dossier", release, target, "--original", wards, "--control", control)
        assert error_of(capsys, *asked, *options)["problem"] == shared
    for options in (("--no-person",), ("--person", "patient")):
        assert "Not for release" in _page("dossier", wards, release, "--control", str(control), *options)


def _page(command: str, original: Path, release: Path, *options: str) -> str:
    page = original.with_name("page.html")
    assert main([command, str(release), str(page), "--original", str(original), "--overwrite", *options]) == 0
    return html.unescape(" ".join(page.read_text().split()))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["risk", "compare", "dossier", "report"])
@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--person", "pateint"], "person-attribute-missing"),
        (["--person", "patient", "--no-person"], "person-options-contradict"),
    ],
)
def test_a_person_that_means_nothing_is_refused(
    wards: Path, release: Path, command: str, options: list[str], code: str
) -> None:
    arguments = {
        "risk": [str(wards)],
        "compare": [str(wards), str(wards)],
    }.get(command, [str(release), str(wards.with_name("page.html")), "--original", str(wards)])
    told = wards.with_name("told.json")
    assert main([command, *arguments, *options, "--json", str(told)]) in (1, 2)
    assert json.loads(told.read_text())["error"]["code"] == code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("report", ["--person", "patient"]),
        ("report", ["--no-person"]),
        ("dossier", ["--person", "patient"]),
        ("dossier", ["--control", "wards"]),
    ],
)
def test_what_is_said_of_an_original_that_is_not_there_is_refused(
    wards: Path, release: Path, command: str, options: list[str]
) -> None:
    """Options about an absent original are refused."""
    page = wards.with_name("unwritten.html")
    given = [str(wards) if word == "wards" else word for word in options]
    told = wards.with_name("told.json")
    assert main([command, str(release), str(page), *given, "--json", str(told)]) == 2
    assert json.loads(told.read_text())["error"]["parameter"] in ("person", "control")
    assert not page.exists()


@pytest.mark.slow
def test_risk_counts_the_people_of_the_column(capsys: pytest.CaptureFixture[str], wards: Path) -> None:
    """Risk counts the 30 clients of 150 cases, or the 150 patients with one case each."""
    people = {}
    for options in ((), ("--person", "client"), ("--person", "patient"), ("--no-person",)):
        rows = told(capsys, "risk", wards, "--size", "1", *options)["attacks"]
        assert isinstance(rows, list)
        people[options] = {row["people"] for row in rows if row["attack"] in ("own path", "found")}
    assert list(people.values()) == [{30}, {30}, {150}, {150}]

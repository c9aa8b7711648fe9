"""Releases of activities that were grouped (--map), and what is done with them and with such lists."""

import json
from pathlib import Path

import pytest
from refusals import refused

import veilog
from veilog.cli import main


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """60 cases of A, B and C."""
    monkeypatch.chdir(tmp_path)
    events = [f"{case},{name},2024-01-01 0{hour}:00\n" for case in range(60) for hour, name in enumerate("ABC")]
    Path("log.csv").write_text("case,activity,timestamp\n" + "".join(events))
    return "log.csv"


@pytest.fixture
def released(log: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Its release by a list in which a group is called as an activity of another group."""
    Path("map.csv").write_text("activity,group\nA,B\nB,C\nC,C\n")
    more = [
        "-m",
        "evolve",
        "--epsilon",
        "3.5",
        "--activities",
        "log",
        "--map",
        "map.csv",
        "--no-ledger",
        "--no-compare",
    ]
    files = ["out.xes", "out.csv"]
    for target in files:
        assert main(["release", log, target, *more]) == 0
    capsys.readouterr()
    return files


@pytest.mark.nightly
def test_the_groups_of_a_release_are_not_grouped_again(log: str, released: list[str]) -> None:
    """Its B are the A of the log; taken as the activity of that name they became C, and nothing was similar."""
    for file in released:
        assert main(["compare", log, file, "--map", "map.csv", "--json", "kept.json", "--quiet"]) == 0
        assert json.loads(Path("kept.json").read_text())["relative_log_similarity"] > 0.9
    assert main(["report", "out.xes", "page.html", "--original", log, "--map", "map.csv", "--quiet"]) == 0
    assert "has little to do with the original" not in Path("page.html").read_text()


@pytest.mark.slow
def test_who_compares_groups_with_activities_hears_which_list_is_missing(
    log: str, released: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("log.csv").write_text(Path(log).read_text().replace(",B,", ",D,"))
    assert main(["compare", log, "out.xes"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The release has groups that the original has not. Activities were grouped by map.csv" in said
    Path("map.csv").write_text("activity,group\nA,B\nD,C\nC,C\n")
    assert main(["compare", log, "out.xes", "--map", "map.csv"]) == 0
    assert "groups that the original has not" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        "activity;group\nA;x\nB;x\n*;y\n",
        "A;x\nB;x\n*;y\n",
        "activity\tgroup\nA\tx\nB\tx\n*\ty\n",
        'A;"x"\nB;x\n*;y, z\n',
    ],
)
def test_a_list_with_other_delimiters_is_read(log: str, text: str) -> None:
    """Excel in German writes semicolons. Each line was an activity of its own, so with --top all became others."""
    Path("map.csv").write_text(text)
    assert veilog.read(log, map="map.csv").variants.labels[0] == "x"
    assert set(veilog.read(log, map="map.csv", top=1).variants.labels) == {"x", "other"}


def test_a_list_with_commas_may_have_semicolons_in_its_names(log: str) -> None:
    from veilog.logs.input.activity_mapping import load_mapping

    Path("map.csv").write_text("A; by phone,x\nB; by post,y\n")
    assert load_mapping("map.csv").groups == {"A; by phone": "x", "B; by post": "y"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"A": 3, "*": "x"}', "That of 'A' is neither a name nor a list of names."),
        ('{"A": null, "*": "x"}', "That of 'A' is neither"),
        ('{"A": {"b": "c"}}', "That of 'A' is neither"),
        ('{"A": "x", "A": "y", "*": "z"}', "The map has two rows for 'A'."),
        ("[" * 100_000, "The map is no JSON"),
        ('["A"]', "The map is no JSON object"),
    ],
)
def test_a_list_in_json_is_refused_in_words(
    log: str, text: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first ended with a traceback, and of two rows the last one counted without a word."""
    Path("map.json").write_text(text)
    assert main(["info", log, "--map", "map.json"]) == 1
    told = capsys.readouterr().err
    assert "map.json: " in told and problem in told


def test_a_dict_that_goes_to_no_names_is_refused(log: str) -> None:
    wrong: dict[str, int] = {"A": 3, "*": 4}
    with refused(veilog.InputError, "map-not-of-names"):
        veilog.read(log, map=wrong)  # type: ignore[arg-type]


def test_a_row_that_names_no_activity_of_the_log_is_noticed(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that is written differently put its activity among all others, without a word."""
    Path("map.csv").write_text("activity,group\nA,x\nb,y\nB ,y\n*,rest\n")
    found = {finding.rule: finding for finding in veilog.read(log, map="map.csv").findings}
    assert (found["unused-group-row"].count, found["unused-group-row"].example) == (1, "'b'")
    assert main(["info", log, "--map", "map.csv"]) == 0
    assert "unused-group-row" in capsys.readouterr().out
    assert main(["info", log, "--map", "map.csv", "--on", "unused-group-row=fail"]) == 1
    assert "A row of the list that groups activities names none of the log: 'b'." in capsys.readouterr().err
    assert "unused-group-row" not in {f.rule for f in veilog.read(log, map={"A": "x", "*": "y"}).findings}

"""Releases of grouped activities (--map), their later use, and such lists."""

import html
import json
import re
from pathlib import Path

import pytest
from commands import error_of
from refusals import refused, sentence

import veilog
from veilog.cli import main
from veilog.report.release_facts import facts_of_file


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write 60 cases of A, B and C."""
    monkeypatch.chdir(tmp_path)
    events = [f"{case},{name},2024-01-01 0{hour}:00\n" for case in range(60) for hour, name in enumerate("ABC")]
    Path("log.csv").write_text("case,activity,timestamp\n" + "".join(events))
    return "log.csv"


@pytest.fixture
def released(log: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Release by a list in which one group has the name of another's activity."""
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
    """Groups of a release are not grouped again, so B, the log's A, does not become C."""
    for file in released:
        assert main(["compare", log, file, "--map", "map.csv", "--json", "kept.json", "--quiet", "--overwrite"]) == 0
        kept = json.loads(Path("kept.json").read_text())
        assert kept["relative_log_similarity"] > 0.9
    assert main(["report", "out.xes", "page.html", "--original", log, "--map", "map.csv", "--quiet"]) == 0
    assert kept["verdict"] in " ".join(html.unescape(re.sub("<[^>]*>", "", Path("page.html").read_text())).split())


@pytest.mark.slow
def test_who_compares_groups_with_activities_hears_which_list_is_missing(
    log: str, released: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("log.csv").write_text(Path(log).read_text().replace(",B,", ",D,"))
    assert main(["compare", log, "out.xes"]) == 0
    released_by = facts_of_file(veilog.read("out.xes")).guarantee.conditions
    (grouped,) = (condition.text for condition in released_by if condition.code == "activities-mapped")
    said = sentence("groups-not-of-original", said=grouped)
    assert "map.csv" in said and said in " ".join(capsys.readouterr().out.split())
    Path("map.csv").write_text("activity,group\nA,B\nD,C\nC,C\n")
    assert main(["compare", log, "out.xes", "--map", "map.csv"]) == 0
    assert said not in " ".join(capsys.readouterr().out.split())


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
    """Lists with semicolons, as German Excel writes them, are read like others."""
    Path("map.csv").write_text(text)
    assert veilog.read(log, map="map.csv").variants.labels[0] == "x"
    assert set(veilog.read(log, map="map.csv", top=1).variants.labels) == {"x", "other"}


def test_a_list_with_commas_may_have_semicolons_in_its_names(log: str) -> None:
    from veilog.logs.input.activity_mapping import load_mapping

    Path("map.csv").write_text("A; by phone,x\nB; by post,y\n")
    assert load_mapping("map.csv").groups == {"A; by phone": "x", "B; by post": "y"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"A": 3, "*": "x"}', "map-not-of-names"),
        ('{"A": null, "*": "x"}', "map-not-of-names"),
        ('{"A": {"b": "c"}}', "map-not-of-names"),
        ('{"A": "x", "A": "y", "*": "z"}', "map-row-twice"),
        ("[" * 100_000, "map-not-json"),
        ('["A"]', "map-not-json-object"),
    ],
)
def test_a_list_in_json_is_refused_in_words(log: str, text: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A broken list in JSON, or one with two rows of a name, is refused in words."""
    Path("map.json").write_text(text)
    error = error_of(capsys, "info", log, "--map", "map.json")
    assert (error["status"], error["code"], error["path"]) == (1, code, "map.json")


def test_a_dict_that_goes_to_no_names_is_refused(log: str) -> None:
    wrong: dict[str, int] = {"A": 3, "*": 4}
    with refused(veilog.InputError, "map-not-of-names"):
        veilog.read(log, map=wrong)  # type: ignore[arg-type]


def test_a_row_that_names_no_activity_of_the_log_is_noticed(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no activity has is a finding, as it may be written differently."""
    Path("map.csv").write_text("activity,group\nA,x\nb,y\nB ,y\n*,rest\n")
    found = {finding.rule: finding for finding in veilog.read(log, map="map.csv").findings}
    assert (found["unused-group-row"].count, found["unused-group-row"].example) == (1, "'b'")
    assert main(["info", log, "--map", "map.csv"]) == 0
    assert "unused-group-row" in capsys.readouterr().out
    error = error_of(capsys, "info", log, "--map", "map.csv", "--on", "unused-group-row=fail")
    assert (error["status"], error["code"]) == (1, "finding-with-example") and "'b'" in error["problem"]
    assert "unused-group-row" not in {f.rule for f in veilog.read(log, map={"A": "x", "*": "y"}).findings}

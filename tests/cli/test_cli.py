"""The command: what it prints and what it writes as JSON."""

import io
import json
import re
from pathlib import Path

import pytest
from commands import code_of, run
from refusals import sentence
from rich.console import Console

import veilog
from veilog.cli import main
from veilog.cli.shared.tables import variants_table
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital
from veilog.methods import METHODS


def as_json(capsys: pytest.CaptureFixture[str], *arguments: object) -> object:
    status, out, err = run(capsys, *arguments, "--json", "-")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_info_tells_all_its_fields(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    facts = as_json(capsys, "info", log)
    of_columns = {"findings", "attributes", "lifecycle", "persons", "read_together", "owner_only", "about"}
    counts = {"cases", "events", "activities", "variants", "uniqueness", "length", "start", "end"}
    assert set(facts) == counts | of_columns
    assert set(facts["length"]) == {"min", "median", "mean", "max"}
    status, out, _ = run(capsys, "info", log)
    assert status == 0
    assert "500" in out
    assert "most frequent variants" in out


def test_validate_lists_findings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log.xes"
    path.write_text(
        '<log><trace><string key="concept:name" value="1"/></trace>'
        '<trace><string key="concept:name" value="1"/><event><string key="concept:name" value="a"/>'
        '<date key="time:timestamp" value="yesterday"/></event></trace></log>'
    )
    findings = {f["rule"]: f for f in as_json(capsys, "validate", path)["findings"]}
    assert {"bad-timestamp", "duplicate-case-id", "empty-trace"} <= set(findings)
    assert set(findings["bad-timestamp"]) >= {"rule", "severity", "count", "example", "line"}
    status, _, err = run(capsys, "info", path)
    assert status == 1
    assert "yesterday" in err
    assert "--on bad-timestamp" in err
    assert as_json(capsys, "info", path, "--on", "bad-timestamp=keep")["events"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".xes.gz", ".csv", ".parquet"])
def test_convert_keeps_the_variants(capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out{suffix}"
    counts = as_json(capsys, "convert", log, target)
    assert (counts["cases"], counts["events"]) == (500, len(veilog.read(log)))
    assert veilog.read(target).variants == veilog.read(log).variants


def test_methods_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = {m["name"]: m for m in as_json(capsys, "methods")}
    assert set(listed) == set(veilog.METHODS)
    assert {"name", "paper", "releases", "guarantee", "as_published"} <= set(listed["travas"])
    assert "travas" in run(capsys, "methods")[1]


def test_release_writes_the_log_and_derives_its_guarantee(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    target = tmp_path / "release.xes"
    facts = as_json(capsys, "release", log, target, "--method", "travas", "--epsilon", "1", "--delta", "0.01")
    guarantee = facts["guarantee"]
    assert (guarantee["status"], guarantee["epsilon"], guarantee["delta"]) == ("proven", 1.0, pytest.approx(0.00854818))
    fields = "status epsilon delta nominal_epsilon unit neighbours numerics conditions level reasons charges"
    assert set(fields.split()) <= set(guarantee)
    released = veilog.read(target)
    assert (facts["cases"], facts["variants"]) == (released.cases.num_rows, len(released.variants))


@pytest.mark.nightly
def test_as_published_prints_nominal_and_derived_with_the_reason(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    arguments = ["release", log, tmp_path / "r.csv", "-m", "utravas", "--epsilon", 1, "--delta", 0.1, "--as-published"]
    arguments += ["-p", "subqueries=3", "-p", "repetitions=1"]
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    words, nominal = " ".join(re.sub("[│╭╮╰╯─]", " ", out).split()), "epsilon = 1, delta = 0.1"
    assert f"{nominal}; derived: none" in words
    reason = sentence("utravas-subqueries-by-results")
    assert reason in words
    words = " ".join(re.sub("[│╭╮╰╯─]", " ", run(capsys, *arguments, "--details", "--overwrite")[1]).split())
    assert f": {nominal} " in words and "): none " in words
    assert reason in words


@pytest.mark.nightly
def test_release_shows_what_was_kept_but_never_writes_it(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    arguments = ["release", log, tmp_path / "r.xes", "--overwrite", "-m", "travas", "--epsilon", 2, "--delta", 0.1]
    status, out, _ = run(capsys, *arguments, "--json", tmp_path / "facts.json")
    assert status == 0
    assert "similarity" in out
    assert "similarity" not in (tmp_path / "facts.json").read_text()
    assert "similarity" not in (tmp_path / "r.xes").read_text()
    assert "similarity" not in run(capsys, *arguments, "--no-compare")[1]
    assert "relative log similarity" in run(capsys, *arguments, "--details", "--overwrite")[1]


@pytest.mark.nightly
def test_a_release_is_told_in_twelve_lines(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # this log has no release yet
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.chdir(tmp_path)
    options = ["--epsilon", 1, "--activities", "log", "--recipient-report", "page.html", "--times", 0.3]
    told = run(capsys, "release", log, "r.xes", "-m", "evolve", *options)[1].strip().splitlines()
    assert len(told) <= 14, "twelve lines, and what was lost"
    first = [line.split("  ")[0] for line in told if not line.startswith(" ")]
    assert first[:5] == ["losses", "protection", "protects", "conditions", "released"]
    assert first[-2:] == ["files", "next"]
    monkeypatch.setenv("COLUMNS", "80")
    narrow = run(capsys, "release", log, "s.xes", "-m", "evolve", *options, "--overwrite")[1]
    assert max(map(len, narrow.splitlines())) <= 80


def test_one_method_is_told_in_full(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(capsys, "methods")[1].splitlines()
    assert len(lines) == len(METHODS) + 2
    told = run(capsys, "methods", "laplace")[1]
    assert all(parameter.name in told for parameter in METHODS["laplace"].parameters)
    assert as_json(capsys, "methods", "laplace")["name"] == "laplace"
    status, _, err = run(capsys, "methods", "laplac")
    assert status == 2
    assert "laplac" in err


@pytest.mark.nightly
def test_compare_measures_the_loss(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    same = as_json(capsys, "compare", log, log)
    assert same["relative_log_similarity"] == 1
    assert same["absolute_log_difference"] == 0
    fields = """relative_log_similarity relative_log_similarity_exact absolute_log_difference
        absolute_log_difference_maximum dfg_frequency_emd dfg_time_emd size_ratio variants"""
    assert set(fields.split()) <= set(same)
    assert set(same["variants"]) == {"common", "added", "lost", "added_cases", "lost_cases"}


@pytest.mark.slow
def test_compare_shows_the_similarity_of_a_prior_as_it_is(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    others = tmp_path / "others.xes"
    veilog.write(hospital(60, seed=8), others)
    found = as_json(capsys, "compare", log, log, "--no-models", "--prior", others)["prior"]
    assert (found["measure"], found["better"]) == ("relative_log_similarity", "higher")
    assert found["value"] == as_json(capsys, "compare", log, others, "--no-models")["relative_log_similarity"]
    assert as_json(capsys, "compare", log, log, "--no-models", "--prior", log)["prior"]["value"] == 1


def test_compare_maps_the_activities_of_a_prior(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = veilog.read(log).variants
    other = tmp_path / "other.txt"
    rows = [f"{count},{','.join(f'x {name}' for name in trace)}\n" for trace, count in own.to_dict().items()]
    other.write_text("".join(rows))
    names = tmp_path / "names.csv"
    names.write_text("prior,own\n" + "".join(f"x {name},{name}\n" for name in own.labels))
    compared = ["compare", log, log, "--no-models", "--prior", other]
    assert as_json(capsys, *compared)["prior"]["value"] < 0.5
    assert as_json(capsys, *compared, "--prior-map", names)["prior"]["value"] == 1
    assert code_of(capsys, "compare", log, log, "--prior-map", names)[1] == "prior-map-without-prior"


@pytest.mark.nightly
def test_compare_measures_the_model_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for asked in ((), ("--models",)):
        assert 0 < as_json(capsys, "compare", log, log, *asked)["fitness"] <= 1
    without = as_json(capsys, "compare", log, log, "--no-models")
    assert without["fitness"] is None and "fitness" not in without["not_computed"]
    by_pm4py = as_json(capsys, "compare", log, log, "--pm4py")
    assert by_pm4py["fitness"] is None and "veilog[models]" in by_pm4py["not_computed"]["fitness"]


@pytest.mark.nightly
def test_risk_measures_the_exposure(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    found = as_json(capsys, "risk", log, "--background", "set,sequence", "--size", "1-3")
    assert found["findings"] == []
    results, attacks = found["results"], found["attacks"]
    assert [(r["background"], r["size"]) for r in results] == [(b, s) for b in ("set", "sequence") for s in (1, 2, 3)]
    fields = "background size candidates case_disclosure trace_disclosure worst_case unique exact seconds"
    assert all(set(fields.split()) <= set(r) for r in results)
    assert {row["attack"] for row in attacks} == {"own path", "found", "linkability", "inference"}
    found = [row for row in attacks if row["attack"] == "found"]
    assert [(row["size"], row["with_start"]) for row in found] == [(s, t) for t in (False, True) for s in (1, 2, 3)]
    assert all(row["control"] == "held out" for row in attacks if row["attack"] in ("linkability", "inference"))
    (path,) = (row for row in attacks if row["attack"] == "own path")
    status, out, _ = run(capsys, "risk", log, "--size", 2)
    assert status == 0
    share, (known,) = f"{100 * path['alone'] / path['people']:.3g} %", {r["unique"] for r in results if r["size"] == 2}
    assert sentence("path-alone-cases", share=share, cases=500, alone=path["alone"]) in out
    assert "(95 %: " in out and " 0 of " not in out
    assert out.count(f" {known} of 500 cases") == 1, "once for all kinds of knowledge that single out as many"
    assert "case disclosure" in run(capsys, "risk", log, "--size", 2, "--details")[1]


@pytest.mark.nightly
def test_attacks_are_held_against_people_held_out(
    capsys: pytest.CaptureFixture[str], log: Path, tmp_path: Path
) -> None:
    others = tmp_path / "others.xes"
    veilog.write(hospital(500, seed=4), others)
    alone = as_json(capsys, "compare", log, log, "--no-models")
    assert {alone[name]["control"] for name in ("singling_out", "linkability", "inference")} == {"others' cases"}
    beside = as_json(capsys, "compare", log, log, "--no-models", "--control", others, "--second", log)
    assert {beside[name]["control"] for name in ("singling_out", "linkability", "inference")} == {"held out"}
    assert {row["releases"] for row in beside["linkability"]["results"] if row["other_list"] == "activities"} == {1, 2}
    _, out, _ = run(capsys, "compare", log, log, "--no-models", "--control", others, "--details")
    assert "linking" in out and "inferring" in out and "people held out" in out
    assert sentence("attack-more-held-out") in " ".join(out.split())


@pytest.mark.slow
def test_risk_names_unique_cases_for_the_owner_alone(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    asked = ("risk", log, "--size", "2", "--background", "sequence", "--time", "hours", "--sensitive", "urgency")
    plain, named = as_json(capsys, *asked), as_json(capsys, *asked, "--unique-cases")
    (result,) = named["results"]
    assert 0 < result["attribute_disclosure"] <= 1
    ((row,)) = named["owner_only"].pop("unique_cases")
    assert (row["background"], row["size"], len(row["cases"])) == ("sequence", 2, result["unique"])
    assert set(row["cases"]) <= set(veilog.read(log).cases.column("concept:name").to_pylist())
    assert "unique_cases" not in plain["owner_only"]
    assert named.keys() == plain.keys() and result.keys() == plain["results"][0].keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        ["--size", "many"],
        ["--size", "3-"],
        ["--weight", "Triage"],
        ["--weight", "Triage=much"],
        ["--time", "weeks"],
        ["--sensitive", "diagnosis"],
    ],
    ids=" ".join,
)
def test_senseless_questions_about_risk_are_refused(
    capsys: pytest.CaptureFixture[str], log: Path, wrong: list[str]
) -> None:
    status, out, err = run(capsys, "risk", log, *wrong)
    assert (status, out) == (2, "")
    assert err.startswith("Error: ")


@pytest.mark.slow
def test_the_demo_leaves_a_release(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capsys, "demo", "demo")
    assert status == 0
    assert veilog.read(tmp_path / "demo" / "release.xes").variants.cases > 0
    assert re.search(r"^protection +good; epsilon = 1 ", out, re.MULTILINE)
    assert len(out.splitlines()) <= 30
    by_hand = next(line.split() for line in out.splitlines() if line.startswith("  veilog release"))
    assert main([*by_hand[1:], "--no-compare"]) == 0, "it goes over no release that the demo made"


@pytest.mark.nightly
def test_the_demo_declares_what_is_public(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = as_json(capsys, "demo", tmp_path / "demo")
    guarantee = made["released"]["guarantee"]
    assert (guarantee["status"], guarantee["conditions"]) == ("proven", [])
    assert Path(made["activities"]).read_text().splitlines() == list(ACTIVITIES)
    again = tmp_path / "again.xes"  # the command that it recommends to try by hand
    declared = ("--activities", f"@{made['activities']}")
    status, _, _ = run(
        capsys, "release", made["original"], again, "-m", "evolve", "--epsilon", "1", *declared, "--no-compare"
    )
    assert status == 0
    assert again.exists()


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Return visits of patients who came twice, one event of which has no time."""
    rows = [
        f"v{visit},{activity},{day},{step},p{visit // 2}\n"
        for visit in range(60)
        for activity in ("a rather long name of an activity", "another one that is as long as the first")
        for day, step in (("2024-01-01", "start"), ("2024-01-02", "complete"))
    ]
    text = "case,activity,time,lifecycle:transition,Patient\n" + "".join(rows) + "v0,late,,complete,p0\n"
    path = tmp_path / "visits.csv"
    path.write_text(text)
    return path


@pytest.mark.slow
def test_info_and_validate_tell_findings_columns_life_cycle_and_persons(
    capsys: pytest.CaptureFixture[str], visits: Path
) -> None:
    drop = ("--on", "missing-timestamp=drop")
    facts = as_json(capsys, "info", visits, *drop)
    counts = {f["rule"]: f["count"] for f in facts["findings"]}
    assert (counts["missing-timestamp"], counts["lifecycle-transitions"]) == (1, 120)
    assert facts["persons"] == [{"column": "Patient", "values": 30, "cases": 60, "most": 2}]
    assert facts["lifecycle"] == {"complete": 120, "start": 120}
    assert {"name": "Patient", "level": "event", "kind": "text", "values": 30, "missing": 0} in facts["attributes"]
    assert facts["read_together"] == []
    assert as_json(capsys, "validate", visits)["persons"] == facts["persons"]
    for command in (("info", *drop), ("validate",)):
        _, out, _ = run(capsys, command[0], visits, *command[1:])
        assert "`Patient`: 30 " in out and "--unit Patient --max-cases 2" in out
        assert "--lifecycle complete" in out


def test_info_shows_the_numbers_of_long_variants(visits: Path) -> None:
    log = veilog.read(visits, policies={"missing-timestamp": "drop"})
    console = Console(width=80, file=io.StringIO())
    console.print(variants_table(log.variants))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[1].split() == ["cases", "share", "variant"]
    assert lines[2].split()[:3] == ["60", "100.0%", "a"]
    assert max(map(len, lines)) <= 80


def test_the_life_cycle_and_the_classifier_are_options(capsys: pytest.CaptureFixture[str], visits: Path) -> None:
    drop = ("--on", "missing-timestamp=drop")
    assert as_json(capsys, "info", visits, *drop, "--lifecycle", "complete")["events"] == 120
    apart = as_json(capsys, "info", visits, *drop, "--classifier", "activity lifecycle:transition")
    assert (apart["events"], apart["activities"]) == (240, 4)
    assert code_of(capsys, "info", visits, "--time-format", "yyyy") == (2, "time-format-unknown")


@pytest.mark.slow
def test_risk_and_compare_show_what_reading_dropped(capsys: pytest.CaptureFixture[str], visits: Path) -> None:
    drop = ("--on", "missing-timestamp=drop")
    read = veilog.read(visits, policies={"missing-timestamp": "drop"})
    (dropped,) = (finding.dropped for finding in read.findings if finding.rule == "missing-timestamp")
    assert dropped is not None
    _, out, _ = run(capsys, "risk", visits, *drop, "--size", "1")
    assert dropped in out and "lifecycle-transitions" in out
    both = as_json(capsys, "compare", visits, visits, *drop)["findings"]
    assert both["original"] == both["released"]
    assert "missing-timestamp" in {f["rule"] for f in both["original"]}
    _, out, _ = run(capsys, "compare", visits, visits, *drop)
    assert "findings in visits.csv" in out
    assert dropped in out


def test_a_log_without_cases_is_told_as_such(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "log.xes").write_text("<log/>")
    assert as_json(capsys, "info", tmp_path / "log.xes")["cases"] == 0
    assert run(capsys, "info", tmp_path / "log.xes")[0] == 0

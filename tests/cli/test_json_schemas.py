"""The JSON Schemas of the docs are those of what the command writes.

``python tests/cli/test_json_schemas.py`` writes them anew, from results of many kinds.
"""

import contextlib
import io
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest

import veilog
from veilog.cli import main
from veilog.cli.shared.terminal import SCHEMA
from veilog.logs.synthetic.hospital import hospital

DOCS = Path(__file__).parents[2] / "docs" / "schemas"
LAPLACE = ["-m", "laplace", "-p", "depth=3", "--overwrite", "--epsilon", "1", "--no-compare"]
DRY = ["-m", "evolve", "--epsilon", "1", "--dry-run", "--cases", "60", "--length", "8"]
ENGINE = ["--engine", "duckdb:base.duckdb"]
CALLS: dict[str, list[list[str]]] = {
    "info": [["info", "log.csv"], ["info", "odd.csv"], ["info", "titled.csv"], ["info", "empty.csv"],
             ["info", "events", *ENGINE]],
    "validate": [["validate", "log.csv"], ["validate", "odd.csv"], ["validate", "titled.csv"]],
    "risk": [["risk", "log.csv", "--size", "1,60"], ["risk", "odd.csv", "--size", "1"],
             ["risk", "log.csv", "--size", "2", "--time", "days", "--sensitive", "urgency", "--unique-cases"],
             ["risk", "titled.csv", "--size", "1"], ["risk", "events", "--size", "1", *ENGINE]],
    "release": [
        ["release", "log.csv", "out.xes", *LAPLACE, "--activities", "log"],
        ["release", "log.csv", "out.xes", *LAPLACE, "--activities", "log", "--seed", "1", "--no-ledger"],
        ["release", "log.csv", "out.xes", "--overwrite", "-m", "pretsa", "-p", "k=3", "--as-published", "--no-compare"],
        ["release", "log.csv", "out.xes", *LAPLACE, "--activities", "log", "--ledger", "own.ledger"],
        ["release", "log.csv", "out.xes", *LAPLACE, "--activities", "log", "--ledger", "own.ledger"],
        ["release", "log.csv", "out.xes", *LAPLACE[:-2], ".9", "--no-compare", "--activities", "log", "--delta", "1e-6",
         "--ledger", "small.ledger"],
        ["release", "log.csv", "out.xes", "--overwrite", "-m", "evolve", "-p", "for=both", "--epsilon", "1",
         "--activities", "log", "--no-compare", "--no-ledger"],
        ["release", "log.csv", "out.xes", *LAPLACE, "--activities", "log", "--max-length", "log", "--no-ledger"],
        ["release", "events", "out.xes", *LAPLACE, "--activities", "log", *ENGINE],
        ["release", "log.csv", "out.xes", *LAPLACE, "--activities", "admission,Discharge", "--no-ledger"],
    ],
    "release-dry-run": [
        ["release", "log.csv", "out.xes", *DRY, "--activities", "6"],
        ["release", "log.csv", "out.xes", *DRY[:-4], "--activities", "log", "--sizes", "log"],
        ["release", "log.csv", "out.xes", *DRY[:-4], "--activities", "log", "--sizes", "sizes.json"],
        ["release", "log.csv", "out.xes", *DRY, "--activities", "log", "--use-cases", "", "--times", "0.3"],
        ["release", "log.csv", "out.xes", *DRY, "--activities", "log", "--attributes", "urgency",
         "--domain", "urgency=1..5"],
        ["release", "events", "out.xes", *DRY, "--activities", "log", *ENGINE],
        ["release", "log.csv", "out.xes", *DRY, "--activities", "admission,Discharge"],
        ["release", "log.csv", "out.xes", *DRY, "--activities", "6", "--delta", "1e-4"],
    ],
    "compare": [
        ["compare", "log.csv", "log.csv"],
        ["compare", "log.csv", "half.csv"],
        ["compare", "odd.csv", "odd.csv", "--use-cases", "discovery"],
        ["compare", "log.csv", "timeless.xes"],
        ["compare", "odd.csv", "titled.csv"],
        ["compare", "titled.csv", "odd.csv"],
        ["compare", "log.csv", "half.csv", "--no-models"],
        ["compare", "log.csv", "half.csv", "--use-cases", "all"],
        ["compare", "log.csv", "empty.csv"],
        ["compare", "empty.csv", "log.csv"],
        ["compare", "log.csv", "made-up-year.xes"],
        ["compare", "events", "half.csv", *ENGINE],
        ["compare", "log.csv", "timeless.xes", "--rules", "rules.toml"],
    ],
    "suggest": [
        ["suggest", "log.csv", "--epsilon", "1"],
        ["suggest", "log.csv", "--epsilon", "1", "--for", "discovery"],
        ["suggest", "log.csv", "--epsilon", "1", "--delta", "1e-4"],
        ["suggest", "events", "--epsilon", "1", *ENGINE],
    ],
    "ledger-show": [["ledger", "show", "small.ledger"], ["ledger", "show", "many.ledger"]],
    "error": [
        ["info", "nowhere.csv"], ["info", "bad.csv"], ["release", "log.csv", "x.xes"], ["methods", "evolv"],
        ["release", "log.csv", "no/x.xes", *LAPLACE, "--activities", "log"],
        ["release", "log.csv", "x.xes", *LAPLACE],
        ["release", "log.csv", "x.xes", "-m", "laplace", "-p", "depth=3", "--epsilon", "3.5", "--activities", "log",
         "--ledger", "small.ledger"],
    ],
}  # fmt: skip
TITLES = {"error": "An error, with --json", "release-dry-run": "veilog release --dry-run --json"}
STATUS = {"error": {1, 2, 3, 5}, "release": {0, 6}}
MAPS = {
    "lifecycle",
    "parameters",
    "considered",
    "not_computed",
    "intervals",
    "settings",
    "not_ranked",
    "numbers",
    "aspects",
    "beside",
    "use_cases",
    "attribute_errors",
    "names",
    "verdicts",
}
"""Objects whose names depend on the request or on the data."""
NUMBERS = {"line", "covered", "frequent", "normal_share", "most_cases", "nominal_delta"}
NUMBERS |= {"activities", "variants", "frequent", "ten", "hundred", "max_length", "guessing_advantage_without_delta"}
"""Numbers where there are any; whether there are depends on more than these calls show."""


def prepared() -> None:
    veilog.write(hospital(60, seed=1), "log.csv", lossy=True)
    veilog.write(hospital(30, seed=2), "half.csv", lossy=True)
    plain = ["release", "log.csv", "timeless.xes", *LAPLACE, "--activities", "log", "--seed", "1", "--no-ledger"]
    assert main([*plain, "--quiet"]) in (0, 6)
    assert main(["twin", "log.csv", "--epsilon", "1", "--json", "sizes.json", "--no-ledger", "--quiet"]) in (0, 6)
    odd = ["case,activity,timestamp,Patient,lifecycle:transition"]
    odd += [
        f"{case},{a},{t},p{case % 4},{s}"
        for case in range(12)
        for a, t, s in (("in", "2024-01-01", "start"), ("out", "2024-02-01", "complete"))
    ]
    Path("odd.csv").write_text("\n".join(odd))
    Path("rules.toml").write_text(
        'rules = [{first = "Registration"}, {attribute = "weight < 200"}, {from = "*", to = "*", at_least = "0 min"}]'
    )
    Path("empty.csv").write_text("case,activity,timestamp\n")
    many = ["release", "log.csv", "many.xes", "--ledger", "many.ledger", "--activities", "log", "--quiet"]
    assert main([*many, *LAPLACE, "--attributes", "urgency", "--domain", "urgency=1..5"]) in (0, 6)
    assert main([*many, *LAPLACE, "--seed", "1"]) in (0, 6)
    assert main([*many[:5], "--overwrite", "--quiet", "-m", "tlkc", "-p", "k=2", "--as-published", "--no-compare"]) == 0
    timed = ["release", "log.csv", "made-up-year.xes", *LAPLACE, "--activities", "log", "--times", "0.3"]
    assert main([*timed, "--no-ledger", "--quiet"]) in (0, 6)
    with duckdb.connect("base.duckdb") as base:
        base.execute("CREATE TABLE events AS FROM read_csv('log.csv', header = true)")
    Path("titled.csv").write_text("A report\n\ncase,activity,timestamp\n1,a,2024-01-01\n")
    Path("bad.csv").write_text("case,activity,timestamp\n1,a,yesterday\n")
    veilog.Ledger.open("small.ledger", create=True).set_budget(veilog.read("log.csv"), 1, delta=1e-6)


def written(arguments: list[str], of: str) -> Any:
    """Return the JSON that a call writes."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = main([*arguments, "--json", "-"])
    assert status in STATUS.get(of, {0}), (arguments, status)
    found = json.loads(out.getvalue())
    assert found["about"]["schema"] == SCHEMA
    return found


def schema_of(samples: list[Any], name: str = "") -> dict[str, Any]:
    """Return the narrowest schema of these forms that all samples have."""
    kinds = sorted({_kind(sample) for sample in samples})
    if "null" in kinds and name in NUMBERS:
        kinds = sorted({*kinds, "number"})
    found: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
    objects = [sample for sample in samples if isinstance(sample, dict)]
    if objects and name == "values":  # each code has its own values
        found["additionalProperties"] = {}
    elif objects and name in MAPS:
        values = [value for sample in objects for value in sample.values()]
        found["additionalProperties"] = schema_of(values) if values else {}
    elif objects:
        names = list(dict.fromkeys(key for sample in objects for key in sample))
        found["properties"] = {key: schema_of([s[key] for s in objects if key in s], key) for key in names}
        found["required"] = [key for key in names if all(key in sample for sample in objects)]
    items = [item for sample in samples if isinstance(sample, list) for item in sample]
    if items:
        found["items"] = schema_of(items)
    return found


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number", type(None): "null"}
    return names[type(value)]


def misfits(value: Any, schema: dict[str, Any], place: str = "$") -> list[tuple[str, str]]:
    """Return the places where a value does not fit a schema, with the reasons."""
    if not schema:  # anything
        return []
    kinds = schema.get("type", _kind(value))
    if _kind(value) not in ([kinds] if isinstance(kinds, str) else kinds):
        return [(place, f"a {_kind(value)}")]
    found: list[tuple[str, str]] = []
    if isinstance(value, dict):
        found += [(f"{place}.{key}", "missing") for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            found += [(f"{place}.{key}", "unknown")] if inner is None else misfits(item, inner, f"{place}.{key}")
    if isinstance(value, list):
        for item in value:
            found += misfits(item, schema.get("items", {}), f"{place}[]")
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that the calls need, made once."""
    place = tmp_path_factory.mktemp("prepared")
    with contextlib.chdir(place):
        prepared()
    return place


@pytest.mark.nightly
@pytest.mark.parametrize("name", CALLS)
def test_what_is_written_fits_its_schema(
    name: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(files, tmp_path / "own"))
    if name == "ledger-show":
        written(next(call for call in CALLS["release"] if "small.ledger" in call), "release")
    schema = json.loads((DOCS / f"{name}.json").read_text())
    assert schema["$id"].endswith(f"/{SCHEMA}/{name}.json")
    for arguments in CALLS[name]:
        assert misfits(written(arguments, name), schema) == [], arguments


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_said_to_be_always_missing(name: str) -> None:
    def kinds(schema: dict[str, Any]) -> list[Any]:
        if not schema:
            return []
        inner = [
            *schema.get("properties", {}).values(),
            schema.get("items", {}),
            schema.get("additionalProperties", {}),
        ]
        return [schema.get("type"), *(kind for each in inner for kind in kinds(each))]

    assert "null" not in kinds(json.loads((DOCS / f"{name}.json").read_text()))


def test_a_schema_refuses_what_is_not_so() -> None:
    schema = schema_of([{"a": 1, "b": [None, "x"]}, {"a": 2.5, "b": []}])
    assert misfits({"a": 3, "b": ["y"]}, schema) == []
    assert misfits({"b": [1]}, schema) == [("$.a", "missing"), ("$.b[]", "a number")]
    assert misfits({"a": True, "b": [], "c": 1}, schema) == [("$.a", "a boolean"), ("$.c", "unknown")]


def write_anew() -> None:
    os.environ["VEILOG_LEDGER"] = "none"
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        prepared()
        for name, calls in CALLS.items():
            schema = schema_of([written(arguments, name) for arguments in calls])
            head = {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$id": f"veilog/{SCHEMA}/{name}.json",
                "title": TITLES.get(name, f"veilog {name.replace('-', ' ')} --json"),
            }
            (DOCS / f"{name}.json").write_text(json.dumps(head | schema, indent=1) + "\n")


if __name__ == "__main__":
    write_anew()

"""Measures of other packages appear everywhere, and a broken one fails alone."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from openly import release
from rich.console import Console

from veilog import compare
from veilog._plugins import Registry
from veilog.cli.shared.measures import comparison_table
from veilog.experiments.experiment import Cell, Row, added_columns, utility
from veilog.experiments.results import _tables_of_added
from veilog.logs import files
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures import MEASURES, Measure
from veilog.report.page import utility_lines
from veilog.testing import check_measure

SHARED = """
import numpy as np
from veilog.measures import Found, Measure, Quantity

def found(pair):
    original, released = pair.variants
    return np.float64(len(set(original.labels) & set(released.labels)) / max(1, len(original.labels)))

LABELS = Measure("shared_labels", found, (Quantity("shared [bold]labels", "1 = all", "higher", high=1.0),))

class Pair:
    kinds, cases = np.int64(3), 0.5

PAIR = Measure("two_numbers", lambda pair: Pair(), (
    Quantity("kinds", "of {0.cases}", "higher", of="kinds"), Quantity("cases", "", "higher", of="cases", form="share"),
))
SILENT = Measure("silent", lambda pair: Found(None, (0.1, 0.2)), (Quantity("silent", "", "lower"),))
"""
BROKEN = """
from veilog.measures import Measure, Quantity
FAILS = Measure("fails", lambda pair: 1 / 0, (Quantity("fails", "", "lower"),))
NAN = Measure("nan", lambda pair: float("nan"), (Quantity("nan", "", "lower"),))
WORDS = Measure("words", lambda pair: 1.0, (Quantity("words", "{0.nothing}", "lower", of="real"),))
OTHER = Measure("called_otherwise", lambda pair: 1.0, (Quantity("other", "", "lower"),))
TAKEN = Measure("keep_real", lambda pair: 1.0, (Quantity("mine", "", "lower"),))
TEXT = "no measure"
"""


def distribution(folder: Path, name: str, source: str, points: dict[str, str]) -> None:
    """Install a distribution as pip would: a module and its metadata."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (folder / f"{name}.py").write_text(source)
    lines = [f"{point} = {name}:{attribute}" for point, attribute in points.items()]
    (about / "entry_points.txt").write_text("\n".join(["[veilog.measures]", *lines, ""]))


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with a distribution that adds measures."""
    points = {"shared_labels": "LABELS", "two_numbers": "PAIR", "silent": "SILENT"}
    distribution(tmp_path / "site", "veilog_labels", SHARED, points)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(MEASURES, "_added", None)
    return tmp_path / "site"


LOG = Variants.from_dict({("a", "b"): 3, ("a",): 1})
OTHER = Variants.from_dict({("a",): 2})


def test_an_added_measure_is_in_the_comparison_its_json_and_its_table_and_said_to_be_added(added: Path) -> None:
    result = compare(LOG, OTHER)
    assert result.added == dict.fromkeys(("shared_labels", "silent", "two_numbers"), "veilog_labels 1.0")
    out = json.loads(json.dumps(result.to_json()))
    assert list(out)[-1] == "added"
    assert out["added"] == {
        "shared_labels": {"from": "veilog_labels 1.0", "value": 0.5},
        "silent": {"from": "veilog_labels 1.0", "value": None},
        "two_numbers": {"from": "veilog_labels 1.0", "kinds": 3, "cases": 0.5},
    }
    assert result.not_computed["silent"].code == "measure-without-reason"
    assert out["intervals"]["silent"] == [0.1, 0.2]
    words = io.StringIO()
    Console(width=200, file=words).print(comparison_table(result))
    shown = words.getvalue()
    assert "shared [bold]labels" in shown and "0.1000 to 0.2000" in shown
    assert shown.count("veilog_labels 1.0)") == 4, "behind each number"


def test_an_added_measure_is_on_the_pages(added: Path) -> None:
    added_lines = [line for line in utility_lines(compare(LOG, OTHER)) if "veilog_labels 1.0" in line[2]]
    numbers = [
        ("shared [bold]labels", "0.500"),
        ("kinds", "3.000"),
        ("cases", "50.0\u202f%"),
        ("silent", "0.100 to 0.200"),
    ]
    assert sorted(line[:2] for line in added_lines) == sorted(numbers)
    meanings = {title: meaning for title, _, meaning in added_lines}
    assert meanings["shared [bold]labels"].startswith("1 = all ") and meanings["kinds"].startswith("of 0.5 ")


def test_an_added_measure_is_in_the_experiments_by_its_name(added: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(added_columns()) == ["shared_labels", "silent", "two_numbers.kinds", "two_numbers.cases"]
    values = utility(LOG, OTHER)
    assert values["shared_labels"] == 0.5 and values["two_numbers.kinds"] == 3 and values["silent"] is None
    rows = [Row(Cell("small", "laplace", (("epsilon", "1"),)), values, None, 0.0, "")]
    first, *_ = _tables_of_added(rows)
    assert first.rows == (("small", "laplace", "epsilon 1", "0.500"),) and "veilog_labels 1.0" in first.note
    monkeypatch.setattr(MEASURES, "_added", {})
    assert "shared_labels" not in utility(LOG, OTHER)
    assert not _tables_of_added(rows)


def test_an_added_measure_can_be_checked(added: Path) -> None:
    check_measure(MEASURES["two_numbers"])


@pytest.mark.nightly
def test_the_command_and_the_report_know_an_added_measure(added: Path, tmp_path: Path) -> None:
    log, released, page = tmp_path / "log.xes", tmp_path / "released.xes", tmp_path / "page.html"
    original = hospital(20, seed=1)
    files.write(original, log)
    release(original.variants, "laplace", epsilon=5, seed=1).save(released)
    paths = [str(added), *(path for path in sys.path if path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for command in (["compare", log, log, "--json", "-"], ["report", released, page, "--original", log]):
        done = subprocess.run(
            [sys.executable, "-m", "veilog", *map(str, command)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        if command[0] == "compare":
            assert json.loads(done.stdout)["added"]["shared_labels"] == {"from": "veilog_labels 1.0", "value": 1.0}
    assert "veilog_labels 1.0" in page.read_text()


@pytest.mark.parametrize(
    ("point", "why"),
    [
        ("called = veilog_broken:OTHER", "calls itself 'called_otherwise'"),
        ("keep_real = veilog_broken:TAKEN", "there is another of this name"),
        ("text = veilog_broken:TEXT", "it is a str, not a Measure"),
        ("missing = veilog_broken:NOTHING", "AttributeError"),
        ("module = veilog_absent:ANY", "No module named 'veilog_absent'"),
    ],
)
def test_a_broken_package_is_named_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, why: str
) -> None:
    name, _, attribute = point.partition(" = veilog_broken:")
    distribution(tmp_path, "veilog_broken", BROKEN, {name: attribute} if attribute else {})
    if not attribute:
        (tmp_path / "veilog_broken-1.0.dist-info" / "entry_points.txt").write_text(f"[veilog.measures]\n{point}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(MEASURES, "_added", None)
    with pytest.warns(UserWarning, match="^veilog_broken 1.0 adds ") as told:
        result = compare(LOG, LOG)
    assert why in str(told[0].message) and len(told) == 1, "and said once"
    assert not result.added and result.keep_real == 1.0


def test_two_packages_cannot_add_the_same_name(added: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path / "second", "veilog_later", SHARED, {"shared_labels": "LABELS"})
    monkeypatch.syspath_prepend(str(tmp_path / "second"))
    with pytest.warns(UserWarning, match="veilog_later 1.0 adds 'shared_labels'.*there is another"):
        assert MEASURES.added_by("shared_labels") == "veilog_labels 1.0"


@pytest.mark.parametrize(("name", "attribute"), [("fails", "FAILS"), ("nan", "NAN"), ("words", "WORDS")])
def test_a_measure_that_fails_costs_its_own_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, attribute: str
) -> None:
    distribution(tmp_path, "veilog_failing", BROKEN, {name: attribute})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(MEASURES, "_added", None)
    with pytest.warns(UserWarning, match=f"The measure '{name}' of veilog_failing 1.0 failed"):
        result = compare(LOG, LOG)
    assert result.not_computed[name].code == "measure-failed" and result.relative_log_similarity == 1.0
    number = MEASURES[name].quantities[0].of or "value"
    assert result.to_json()["added"] == {name: {"from": "veilog_failing 1.0", number: None}}


@pytest.mark.slow
def test_nothing_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys; from veilog.measures import MEASURES; len(list(MEASURES)); MEASURES['keep_real'];"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "veilog.measures.overlap" in loaded
    assert not loaded & {"scipy", "pyarrow", "ot", "veilog.measures.similarity", "veilog.measures.durations"}


def test_a_name_that_is_not_there_is_a_key_error() -> None:
    registry = Registry(Measure, "veilog.nothing", {})
    assert len(registry) == 0 and "x" not in registry
    with pytest.raises(KeyError):
        registry["x"]

"""Results in a notebook and as data frames: small, whole, readable, and escaped."""

import ast
import doctest
import importlib
import json
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import veilog
from veilog._notebook import bar, card, figure, table
from veilog.errors import InputError
from veilog.logs.eventlog import ACTIVITY
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital

EVIL = "<script>alert(1)</script>"
LARGEST = 8_000


@pytest.fixture(scope="module")
def log() -> veilog.EventLog:
    return hospital(60, seed=1)


@pytest.fixture(scope="module")
def released(log: veilog.EventLog) -> veilog.Release:
    return veilog.release(log, "evolve", epsilon=1, activities=ACTIVITIES, seed=1)


class Balanced(HTMLParser):
    """Parser that fails if elements do not close in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(value: Any) -> str:
    """Return the text that a notebook shows of a value."""
    html = value._repr_html_()
    assert len(html) < LARGEST
    assert not any(word in html for word in ("<script", "http:", "https:", "src=", "@import", "url("))
    page = Balanced()
    page.feed(html)
    page.close()
    assert page.open == []
    if not isinstance(value, veilog.Guarantee):  # it takes the notebook's own colours
        assert "prefers-color-scheme:dark" in html
    return page.text


def test_a_log_shows_its_sizes_and_its_frequent_variants(log: veilog.EventLog) -> None:
    text = shown(log)
    assert "60" in text and "Registration > " in text
    assert "Event log" in shown(replace(log, events=log.events.slice(0, 0), cases=log.cases.slice(0, 0)))


@pytest.mark.nightly
def test_a_release_shows_its_guarantee_and_nothing_for_the_owner(released: veilog.Release) -> None:
    assert released.owner_only.notes
    text = shown(released)
    assert "Release by evolve" in text and "No guarantee: seeded" in text
    assert released.remarks and not any(str(remark) in text for remark in released.remarks), "nothing is proven"
    proven = replace(released, guarantee=veilog.plan("evolve", epsilon=1, activities="log").cost)
    assert all(str(remark) in shown(proven) for remark in released.remarks), "whole"
    assert not any(str(note) in text for note in released.owner_only.notes)
    conditional = veilog.plan("laplace", epsilon=1, activities="log", depth=3).cost
    assert "epsilon = 1" in shown(conditional)


@pytest.mark.slow
def test_a_comparison_shows_its_verdict_and_every_number(log: veilog.EventLog, released: veilog.Release) -> None:
    found = veilog.compare(log, released, use_cases=["discovery"])
    text = shown(found)
    assert found.verdict in text and found.use_cases["discovery"].verdict in text and "similarity" in text
    frame = found.to_frame()
    assert list(frame.columns) == ["measure", "title", "value", "low", "high", "better", "meaning"]
    row = frame[frame.measure == "relative_log_similarity"].iloc[0]
    assert row.value == row.low == row.high == found.relative_log_similarity
    of_use_cases = frame.measure.str.startswith("discovery.")
    assert set(frame.measure[~of_use_cases]) <= set(found.results) and of_use_cases.any()


def test_risks_are_a_tuple_a_frame_and_a_card(log: veilog.EventLog) -> None:
    found = veilog.risk(log, ["set", "sequence"], [1, 50])
    assert isinstance(found, tuple) and found == tuple(found)
    assert found[1].size == 50 and found[1].reason is not None and found[1].reason.code.startswith("disclosure-of-")
    assert str(found[1].reason) in shown(found)
    frame = found.to_frame()
    assert frame.background.tolist() == ["set", "set", "sequence", "sequence"]
    assert frame.unique.tolist() == [one.unique for one in found]


def test_a_suggestion_is_a_frame(log: veilog.EventLog) -> None:
    found = veilog.suggest(log, epsilon=1, seed=1)
    assert found.to_frame().method.tolist() == list(found.considered)
    ranked = veilog.suggest(hospital(400, seed=1), epsilon=1, for_="prediction", seed=1)
    assert ranked.to_frame().method.tolist() == [one.name for one in ranked.ranking]


@pytest.mark.slow
def test_plans_twins_and_suggestions_show_what_they_are(log: veilog.EventLog) -> None:
    planned = veilog.plan("evolve", epsilon=1, activities=[EVIL, "b"], times=0.3)
    assert repr(planned).startswith("ReleaseRequest(evolve, epsilon='1', times='0.3', activities=")
    text = shown(planned)
    assert EVIL in text and "0.3" in text and str(planned.cost.in_words()) in text
    undeclared = veilog.plan("evolve", epsilon=1)
    assert str(undeclared.cost.in_words()) in shown(undeclared)
    assert "nothing was queried" in shown(veilog.twin(cases=100, length=4))
    asked = veilog.twin(log, epsilon="0.1")
    assert "epsilon = 0.1" in shown(asked) and repr(asked).startswith("Twin(")
    suggested = veilog.suggest(log, epsilon=1)
    text = shown(suggested)
    assert suggested.method in repr(suggested) and str(suggested.reason) in text and "Its queries" in text
    assert "--activities" not in text and "activities='log'" in text


@pytest.mark.slow
def test_a_logs_own_words_are_no_markup(log: veilog.EventLog) -> None:
    words = pa.array([EVIL] * len(log)).dictionary_encode()
    place = log.events.column_names.index(ACTIVITY)
    evil = replace(log, events=log.events.set_column(place, ACTIVITY, words))
    assert EVIL in shown(evil)
    released = veilog.release(evil, "evolve", epsilon=1, activities=[EVIL, "b"], seed=1)
    assert EVIL in shown(released)
    assert "<b>" not in card("<b>", table(("<b>",), [("<b>", bar(0.5))]))


def test_figures_are_for_people() -> None:
    said = [figure(value) for value in (None, True, False, 0.25, 12345.6, 1234, "x")]
    assert said == ["-", "yes", "no", "0.2500", "12,346", "1,234", "x"]


@pytest.mark.nightly
def test_whatever_holds_a_log_is_compared_released_and_judged(
    log: veilog.EventLog, released: veilog.Release, tmp_path: Path
) -> None:
    """A release, a log, a DataFrame and a file give the same results."""
    path = tmp_path / "log.parquet"
    veilog.write(log, path)
    frame, arrow = log.to_pandas(), log.to_arrow()
    same: list[Any] = [log, log.variants, frame, arrow, path, str(path)]
    assert len({veilog.risk(one, "set", 2)[0].case_disclosure for one in same}) == 1
    assert len({veilog.compare(one, released, models=False).relative_log_similarity for one in same}) == 1
    again = [veilog.release(one, "evolve", epsilon=1, activities=ACTIVITIES, seed=1).variants for one in same]
    assert all(one == released.variants for one in again)
    assert veilog.compare(released, released, models=False).relative_log_similarity == 1.0
    assert veilog.risk(released, "set", 1)[0].cases == released.variants.cases
    assert veilog.release(released, "travas", epsilon=1, delta=1e-3, seed=1).method == "travas"


@pytest.mark.parametrize("other", [3, None, "nowhere.csv"])
def test_what_is_no_log_is_told_as_such(other: Any, log: veilog.EventLog) -> None:
    with pytest.raises(InputError):
        veilog.compare(log, other)


def test_the_head_of_a_log_is_a_frame(log: veilog.EventLog) -> None:
    assert log.head(3).equals(log.to_pandas().head(3))
    assert len(log.head()) == 10 and len(log.head(0)) == 0 and len(log.head(10**6)) == len(log)


EXAMPLES = (
    "veilog.errors",
    "veilog.experiments.benchmark",
    "veilog.logs.eventlog",
    "veilog.measures.comparison",
    "veilog.measures.disclosure.measure",
    "veilog.measures.measure",
    "veilog.messages",
    "veilog.methods.settings",
    "veilog.mining.tree",
    "veilog.privacy.account.budgets",
    "veilog.privacy.domain",
    "veilog.releasing.model",
    "veilog.releasing.run",
    "veilog.releasing.suggest",
    "veilog.testing.measures",
)
"""Modules with examples in their docstrings."""


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("module", EXAMPLES)
def test_the_examples_of_docstrings_run(module: str) -> None:
    done = doctest.testmod(importlib.import_module(module))
    assert done.attempted and not done.failed


def test_no_module_with_examples_is_forgotten() -> None:
    source = Path(veilog.__file__).parent
    found = {path for path in source.rglob("*.py") if ">>> " in path.read_text() and path.name != "__init__.py"}
    names = {".".join(("veilog", *path.relative_to(source).with_suffix("").parts)) for path in found}
    assert names - {"veilog.methods.benchmark_facts"} == set(EXAMPLES)
    assert ">>> " in (source / "methods" / "benchmark_facts.py").read_text()


@pytest.mark.nightly
def test_the_notebook_of_the_examples_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of the notebook runs, in order, and shows its last value."""
    pages = json.loads((Path(__file__).parents[1] / "examples" / "first-steps.ipynb").read_text())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cards = 0
    for cell in pages["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], "outputs are not kept"
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            found = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            cards += hasattr(found, "_repr_html_") and bool(found._repr_html_())
    assert cards >= 8
    assert veilog.read(tmp_path / "release.xes").cases.num_rows > 0


@pytest.mark.nightly
def test_a_plain_script_audits(tmp_path: Path) -> None:
    """A plain script audits without an ``if __name__`` guard, and runs once."""
    script = tmp_path / "script.py"
    script.write_text(
        "import veilog\n"
        "print('once')\n"
        "print(veilog.audit('travas', epsilon=0.1, delta=1e-6, runs=30, confidence=0.8).method)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["once", "travas"], done.stderr


@pytest.mark.slow
def test_what_a_console_shows_is_short_and_tells_nothing_of_the_owner() -> None:
    log = hospital(100, seed=1)
    released = veilog.release(log, "evolve", epsilon=1, activities="log")
    assert released.owner_only.notes and str(released.owner_only.notes[0]) not in repr(released)
    assert repr(released).startswith("Release(evolve, Variants(")
    assert repr(released).endswith("for one case); losses: see released.owner_only)")
    assert repr(veilog.release(log, "tlkc", k=2).guarantee).startswith("Guarantee(none: tlkc suppresses")
    compared = veilog.compare(log, log, models=False)
    assert repr(compared) == f"Comparison(100 cases, 100 released: {compared.verdict})"

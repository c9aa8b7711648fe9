"""Fingerprints notice behaviour alone: planted changes, but no renaming or move."""

import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fingerprints_elsewhere
import pytest

import veilog
from veilog.experiments import fingerprints
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Profile
from veilog.experiments.fingerprints import (
    compute,
    few_variants,
    measure_fingerprint,
    method_fingerprint,
    small_log,
    trials,
)
from veilog.methods import METHODS

SOURCE = Path(veilog.__file__).parent
MEASURE = "quantification-figure-2"
PROGRAM = Path(__file__).parents[1] / "_support" / "fingerprints_elsewhere.py"
PLANTED = {
    "a threshold of prefix trees": ("laplace", "large", "methods/_prefix_tree/expand.py", "ENDED = 0.8", "ENDED = 0.7"),
    "the play-outs' share of noise": (
        "df-laplace",
        "playout",
        "methods/df_laplace.py",
        "REACHED = 0.6",
        "REACHED = 0.5",
    ),
    "a default of a setting": (
        "libra",
        "",
        "methods/libra.py",
        "CERTIFIED_RATE = 0.9",
        "CERTIFIED_RATE = 0.8",
    ),
    "a smallest split": ("utravas", "", "methods/travas.py", "SMALLEST_SPLIT = 2", "SMALLEST_SPLIT = 3"),
    "a learning rate": ("travag", "", "methods/travag/settings.py", "rate: float = 0.005", "rate: float = 0.006"),
    "a growth of votes": (
        "evolve",
        "rounds",
        "methods/evolve/constants.py",
        "growth: float = 1.5",
        "growth: float = 1.6",
    ),
    "noise of durations": (
        *("evolve", "attributes", "methods/_events/times/durations.py"),
        *("CELL_NOISES = 3", "CELL_NOISES = 4"),
    ),
    "a frequency": ("tlkc", "", "methods/tlkc.py", "Range(1e-9, 1)] = 0.5", "Range(1e-9, 1)] = 0.7"),
    "a seed's bits": ("sapa", "", "privacy/mechanisms/noise.py", "PCG64(seed)", "PCG64(seed + 1)"),
    "a measure's largest value": (MEASURE, "", "measures/disclosure/measure.py", "min(1.0, level", "min(0.1, level"),
}
"""Fingerprinted part, trial, file, and a patch of the file, for each change."""
RENAMED = {
    "methods/_relations.py": ("play_out_guided", "guided_walks"),
    "methods/_prefix_tree/expand.py": ("published_variants", "variants_as_published"),
    "methods/_prefix_tree/counts.py": ("_reconcile", "_make_consistent"),
    "methods/travas.py": ("_average_of", "_mean_of_subqueries"),
    "methods/evolve/constants.py": ("usual_length", "expected_length"),
    "methods/amun.py": ("Priors", "Beliefs"),
    "privacy/mechanisms/noise.py": ("discrete_laplace", "two_sided_geometric"),
    "measures/disclosure/measure.py": ("_add_attribute", "_add_secret"),
}
"""Names that a file defines, with their new names."""
MOVED = {
    "veilog.methods._relations": "veilog.methods._relations.walks",
    "veilog.measures.disclosure.measure": "veilog.measures.disclosure.found",
}
REACHED = (
    *((MEASURE, ""), ("laplace", "rest"), ("df-laplace", "playout"), ("utravas", ""), ("evolve", "")),
    *(("amun", ""), ("evolve", "times")),
)
"""Trials in which that code runs."""


@functools.cache
def of_today(name: str, setting: str) -> str:
    return fingerprints_elsewhere.found(name, setting)


def everywhere(copy: Path, change: Callable[[str], str]) -> int:
    """Change all sources; return the number of those that changed."""
    changed = 0
    for path in copy.rglob("*.py"):
        before = path.read_text()
        after = change(before)
        if after != before:
            path.write_text(after)
            changed += 1
    return changed


def renamed(folder: Path) -> None:
    """Make all renamings and moves in one copy, and reword one-line docstrings."""
    copy = folder / "veilog"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "static", "templates"))
    for file, (old, new) in RENAMED.items():
        assert re.search(rf"(def|class) {old}\b", (copy / file).read_text()), file
        assert everywhere(copy, lambda text, old=old, new=new: re.sub(rf"\b{old}\b", new, text))  # type: ignore[misc]
    for old, new in MOVED.items():
        before, after = (folder / Path(*name.split(".")).with_suffix(".py") for name in (old, new))
        before.rename(after)
        assert everywhere(copy, lambda text, old=old, new=new: text.replace(old, new))  # type: ignore[misc]
    assert everywhere(
        copy, lambda text: re.sub(r'^(\s+""")[A-Z].*(\."""|"""\s*)$', r"\1Other words.\2", text, flags=re.M)
    )


@pytest.mark.nightly
def test_changes_of_behaviour_are_noticed_and_renamings_moves_and_words_are_not(tmp_path: Path) -> None:
    """Ten changes of behaviour are noticed, and ten renamings and moves are not.

    Each change is made alone, in a trial of what it affects, because a fingerprint is a hash of all trials.
    """
    renamed(tmp_path)
    changes: list[dict[str, object]] = [
        {"name": name, "setting": setting, "folder": str(SOURCE.parent), "file": str(SOURCE / file)}
        | {"old": old, "new": new}
        for name, setting, file, old, new in PLANTED.values()
    ]
    changes.append({"folder": str(tmp_path), "reached": REACHED})
    run = subprocess.run([sys.executable, str(PROGRAM)], input=json.dumps(changes), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    *planted, other_names = json.loads(run.stdout)
    today = [of_today(name, setting) for name, setting, *_ in PLANTED.values()]
    assert [what for what, (new,), old in zip(PLANTED, planted, today, strict=True) if new == old] == []
    assert other_names == [of_today(name, setting) for name, setting in REACHED]
    assert len(PLANTED) == 10 == len(RENAMED) + len(MOVED)


@pytest.mark.nightly
@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_tried_where_its_branches_are(name: str) -> None:
    """Nearly every trial is a release with cases, because a refusal reveals nothing."""
    method = METHODS[name]
    made = [fingerprints._release_facts(name, log, asked) for log, asked in trials(method)]
    facts = [found for found in made if found is not None]
    assert len(facts) >= max(1, len(made) - 1)
    assert sum(bool(found[0]) for found in facts) >= 0.7 * len(facts)
    if method.takes_epsilon and not method.full_log and name != "travag":
        asked_of = [asked for _, asked in trials(method)]
        assert {"unit", "times", "attributes", "as_published"} <= {key for asked in asked_of for key in asked}


@pytest.mark.slow
def test_fingerprints_are_of_one_method_each() -> None:
    found = {method_fingerprint(name) for name in ("sapa", "dpim", "pretsa")}
    assert {len(fingerprint) for fingerprint in found} == {12}
    assert len(found) == 3
    assert fingerprints._method_fingerprint("sapa", as_published=False) == method_fingerprint("sapa")


def valued(given: Given, cell: Cell) -> Measured:
    seconds = float(cell.get("took")) + len(given.log) * 0
    return Measured(
        {"cases": given.log.variants.cases / 3 + float(cell.get("more")), "wall": seconds}, cell.get("why") or None
    )  # type: ignore[arg-type]


def experiment(**settings: object) -> Experiment:
    chosen = {"took": 1.0, "more": 0.0, "why": "", **settings}
    return Experiment(
        name="valued",
        what="For tests.",
        cells=lambda profile: iter([Cell("small", "travas", tuple(chosen.items()))]),  # type: ignore[arg-type]
        measure=valued,
        tables=lambda rows: [],
        small=Profile(("small",), 1, True),
    )


def test_the_fingerprint_of_a_measure_is_of_its_values() -> None:
    usual = measure_fingerprint(experiment(), "travas")
    assert len(usual) == 12
    for same in ({"took": 2.0}, {"more": 1e-12}):
        assert measure_fingerprint(experiment(**same), "travas") == usual
    for other in ({"more": 1e-4}, {"why": "refused"}):
        assert measure_fingerprint(experiment(**other), "travas") != usual
    assert measure_fingerprint(replace(experiment(), small=None), "travas") == ""


@pytest.mark.nightly
def test_processes_find_the_same_fingerprints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes compute the same fingerprints, and no known one again."""
    cells = [(experiment(), Cell("small", name)) for name in ("pretsa", "dpim")]
    alone = [method_fingerprint(name) for name in ("pretsa", "dpim")]
    monkeypatch.setattr(fingerprints, "_found", {fingerprints._method_task("dpim", False): "known"})
    compute(cells, 2)
    monkeypatch.setattr(fingerprints, "trials", None)
    assert [method_fingerprint(name) for name in ("pretsa", "dpim")] == [alone[0], "known"]


def test_small_logs_are_what_they_were() -> None:
    log = small_log(60)
    assert (log.number_of_cases, len(log), len(log.variants.labels)) == (60, 364, 8)
    assert few_variants().cases == 368
    times = log.events.column("time:timestamp").to_pylist()
    assert min(times).year == 2024

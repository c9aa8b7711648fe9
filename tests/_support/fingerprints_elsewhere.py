"""Fingerprints by the source in another folder, or with a change of one file.

Run as a program it loads the packages of others once. Each change is made in a process forked from there, which imports
veilog anew: one file comes from the changed text, and nothing is compiled twice.
"""

import importlib
import json
import multiprocessing
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any


def found(name: str, setting: str) -> str:
    """Return the hash of an experiment's measure, or of one trial of a method.

    The trial is the first, the first with a setting, or the one with a large log.
    """
    from veilog.experiments import EXPERIMENTS, fingerprints
    from veilog.logs.variants import Variants
    from veilog.methods import METHODS

    if name in EXPERIMENTS:
        experiment = EXPERIMENTS[name]
        assert experiment.small is not None
        cells = list(experiment.cells(experiment.small))
        with tempfile.TemporaryDirectory() as folder:
            return fingerprints._hash(
                [fingerprints._measure_facts(experiment.measure, cell, Path(folder)) for cell in (cells[0], cells[-1])]
            )
    log, asked = next(
        trial
        for trial in fingerprints.trials(METHODS[name])
        if not setting or setting in trial[1] or (setting == "large" and isinstance(trial[0], Variants))
    )
    facts = fingerprints._release_facts(name, log, asked)
    assert facts
    return fingerprints._hash([facts])


def after(change: dict[str, Any]) -> list[str]:
    """Return the fingerprints by the source in a folder, or with one file changed."""
    sys.path.insert(0, change["folder"])
    if "reached" in change:
        return [found(*each) for each in change["reached"]]
    usual, patched = SourceFileLoader.get_code, []

    def get_code(loader: SourceFileLoader, module: str) -> Any:
        if loader.path != change["file"]:
            return usual(loader, module)
        text = Path(loader.path).read_text()
        assert change["old"] in text
        patched.append(module)
        return compile(text.replace(change["old"], change["new"]), loader.path, "exec")

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]
    answer = [found(change["name"], change["setting"])]
    assert patched, f"{change['file']} was not imported"
    return answer


if __name__ == "__main__":
    for module in ("veilog.experiments.fingerprints", "ot", "scipy.stats"):
        importlib.import_module(module)
    for module in [module for module in sys.modules if module.partition(".")[0] == "veilog"]:
        del sys.modules[module]
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as forks:
        answers = forks.map(after, json.load(sys.stdin), chunksize=1)
    print(json.dumps(answers))

"""Settings are keywords that editors complete and type checkers know."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from veilog.methods import METHODS
from veilog.methods.settings import python_name
from veilog.releasing.keywords import Keywords
from veilog.releasing.request import OPTIONS

ROOT = Path(__file__).parents[2]

RIGHT = """
from typing import Any
import veilog

def main(log: veilog.EventLog, name: str, settings: dict[str, Any]) -> None:
    veilog.release(log, "evolve", epsilon=1, activities="log", rounds=2, for_="models")
    veilog.release("log.csv", name, epsilon="1/3", ledger="log.ledger")
    veilog.release(log, "a-method-of-another-package", epsilon=1, **settings)
    veilog.release(log, veilog.plan("tlkc", k=3, l=2))
    veilog.train(log, epsilon=1, delta=1e-6, critic="deep")
"""
WRONG = {
    'veilog.release(log, "travas", real_shar=1)': 'did you mean "real_share"?',
    'veilog.release(log, "evolve", epsilon=1, rounds="two")': 'incompatible type "str"; expected "int | None"',
    'veilog.release(log, "evolve", for_="all")': "expected \"Literal['similarity', 'models', 'both', 'detail']\"",
    'veilog.plan("laplace", epsilon=[1])': 'Argument "epsilon" to "plan" has incompatible type',
    'veilog.plan("evolve", ledger="log.ledger")': 'Unexpected keyword argument "ledger"',
    'veilog.train(log, critic="deeper")': "expected \"Literal['linear', 'deep']\"",
}


@pytest.mark.slow
def test_they_are_those_of_the_methods() -> None:
    call = [sys.executable, str(ROOT / "tools" / "keywords.py"), "--check"]
    told = subprocess.run(call, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    # Amun's own guessing advantage is an option of every method.
    own = {python_name(p.name) for m in METHODS.values() for p in m.parameters if not m.package}
    own |= {option.name for option in OPTIONS.values() if option.keyword}
    assert set(Keywords.__annotations__) == own


@pytest.mark.nightly
def test_a_type_checker_refuses_what_there_is_not_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(RIGHT)
    lines = ["import veilog", 'log = veilog.read("log.csv")', *WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    call = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    call += ["--cache-dir", str(tmp_path / "cache"), "right.py", "wrong.py"]
    told = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    errors = dict(re.findall(r"^(\w+\.py:\d+): error: (.*)", told, re.MULTILINE))
    assert len(errors) == len(WRONG) and all(place.startswith("wrong") for place in errors), told
    for line, said in enumerate(WRONG.values(), 3):
        assert said in errors[f"wrong.py:{line}"]

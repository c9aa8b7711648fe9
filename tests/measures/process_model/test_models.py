"""Qualities of models equal pm4py's, within bounds on time and on the process."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openly import release
from refusals import refused

from veilog.errors import MissingExtraError, ParameterError
from veilog.logs import files
from veilog.logs.variants import Variants
from veilog.measures import process_model as by_pm4py
from veilog.measures import process_model as own
from veilog.measures import process_model_worker
from veilog.measures.measure import Miner
from veilog.measures.process_model import MEASURES, model_quality, start_measurement
from veilog.messages import Message
from veilog.mining.inductive import OutOfTimeError
from veilog.mining.replay import Prefixes, precision

needs_pm4py = pytest.mark.skipif(importlib.util.find_spec("pm4py") is None, reason="pm4py is not installed")
BOTH = ["veilog", pytest.param("pm4py", marks=[needs_pm4py, pytest.mark.slow])]
LIMITS: dict[str, Any] = {"noise": 0.2, "seconds": 60.0, "memory": 1 << 30, "prefixes": None}
SMALL = Variants.from_dict({("a", "b", "c"): 5, ("a", "c"): 2})


def fake(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    """Run a worker with this body instead of pm4py."""
    (folder / "stub_worker.py").write_text(f"import json, sys, time\ntask = json.load(sys.stdin)\n{body}\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path]))
    monkeypatch.setattr(by_pm4py, "_WORKER", "stub_worker")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())


@pytest.mark.nightly
def test_what_was_reached_before_the_time_was_over_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = """print(json.dumps({"fitness": 0.5, "stage": "prefixes"}), flush=True)\ntime.sleep(60)"""
    fake(monkeypatch, tmp_path, body)
    result = model_quality(SMALL, SMALL, seconds=5, by="pm4py")
    assert result.fitness == 0.5 and result.precision is None and result.f_score is None
    assert result.not_computed["precision"].code == "pm4py-out-of-time"
    assert result.not_computed["precision"].values["stage"] == Message("model-stage-prefixes")
    assert set(result.not_computed) == set(MEASURES) - {"fitness"}
    assert result.seconds < 60


def test_a_crash_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, tmp_path, "raise ValueError('a strange net')")
    result = model_quality(SMALL, SMALL, by="pm4py")
    reason = result.not_computed["fitness"]
    assert reason.code == "pm4py-stopped" and reason.values["status"] == 1 and "a strange net" in reason.values["why"]


@pytest.mark.slow
def test_memory_is_limited_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(
        monkeypatch,
        tmp_path,
        "from veilog.measures import process_model_worker as w\n"
        "def grow(task, answer):\n    answer(stage='discovery')\n    bytearray(task['memory'])\n"
        "w._measure = grow\nsys.stdin.close()\nimport io\nsys.stdin = io.StringIO(json.dumps(task))\nw.main()",
    )
    result = model_quality(SMALL, SMALL, memory=1 << 29, by="pm4py")
    reason = result.not_computed["fitness"]
    assert (reason.code, reason.values["memory"]) == ("pm4py-out-of-memory", 0.5)


def test_leaving_the_block_ends_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, tmp_path, "time.sleep(60)")
    with pytest.raises(KeyboardInterrupt), start_measurement(SMALL, SMALL, **LIMITS) as process:
        raise KeyboardInterrupt
    assert process._process.poll() is not None


def test_the_f_score_is_the_harmonic_mean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, tmp_path, """print(json.dumps({"fitness": 0.9, "precision": 0.6, "generalization": 0.1}))""")
    result = model_quality(SMALL, SMALL, by="pm4py")
    assert result.f_score == pytest.approx(0.72) and result.not_computed == {}


def test_logs_without_events_and_wrong_bounds_are_named() -> None:
    with refused(ParameterError, "model-log-without-events"):
        model_quality(SMALL, Variants.from_dict({(): 3}))
    with refused(ParameterError, "model-noise-out-of-range"):
        model_quality(SMALL, SMALL, noise=2.0)
    with refused(ParameterError, "model-limits-not-positive"):
        model_quality(SMALL, SMALL, seconds=0)
    with refused(ParameterError, "model-precision-without-prefix"):
        model_quality(SMALL, SMALL, prefixes=0)


def test_without_pm4py_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused(MissingExtraError, "extra-missing"):
        model_quality(SMALL, SMALL, by="pm4py")
    assert model_quality(SMALL, SMALL).not_computed == {}


def test_our_own_time_is_limited_and_what_was_reached_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    result = model_quality(SMALL, SMALL, seconds=1e-9)
    reason = Message("model-out-of-time", seconds=1e-9, stage=Message("model-stage-discovery"))
    assert result.not_computed == dict.fromkeys(MEASURES, reason)

    def never(*arguments: object) -> float:
        raise OutOfTimeError(5)

    monkeypatch.setattr(own, "precision", never)
    result = model_quality(SMALL, SMALL, seconds=5)
    assert (result.fitness, result.precision, result.f_score) == (1.0, None, None)
    assert result.not_computed["f_score"].values["stage"] == Message("model-stage-prefixes")


def test_a_model_that_is_nested_too_deeply_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(*arguments: object, **options: object) -> None:
        raise RecursionError

    monkeypatch.setattr(own, "discover", deep)
    assert model_quality(SMALL, SMALL).not_computed["fitness"].code == "model-nested-too-deeply"


class Replayer(process_model_worker.Pm4pyReplay):
    """Tokens and enabled activities as pm4py would give them."""

    def __init__(self, states: list[dict[str, Any]], enabled: list[set[str]]) -> None:
        self._net, self._initial, self._states, self._enabled = (
            SimpleNamespace(transitions="tuv"),
            None,
            states,
            enabled,
        )

    def _replay_traces(self, start: Any, traces: Any, *, whole: bool) -> list[dict[str, Any]]:
        return self._states


def test_fitness_and_generalization_weigh_variants_by_their_cases() -> None:
    tokens = (
        {"consumed_tokens": 4, "produced_tokens": 4} | more
        for more in (
            {"missing_tokens": 0, "remaining_tokens": 0, "activated_transitions": "tu"},
            {"missing_tokens": 2, "remaining_tokens": 1, "activated_transitions": "t"},
        )
    )
    found = Replayer([*tokens], []).whole(Variants.from_dict({("a",): 3, ("a", "b"): 1}))
    assert found.fitness == pytest.approx(0.5 * (1 - 2 / 16) + 0.5 * (1 - 1 / 16))
    assert found.generalization == pytest.approx(1 - (1 / 2 + 1 / 3**0.5 + 1) / 3)


def test_precision_counts_enabled_activities_that_the_log_never_takes() -> None:
    prefixes = Prefixes.of(Variants.from_dict({("a", "b"): 7, ("a", "c"): 1, ("a",): 2}))
    replay = Replayer([], [{"a"}, {"b", "c", "d"}])
    assert precision(replay, prefixes, [0, 1, None, None], [10, 8, 0, 0]) == pytest.approx(1 - 8 / (10 + 24))


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("by", BOTH)
def test_a_perfect_log_has_a_perfect_model(by: Miner) -> None:
    result = model_quality(Variants.from_dict({("a", "b"): 9}), Variants.from_dict({("a", "b"): 4}), by=by)
    assert (result.fitness, result.precision, result.f_score) == (1.0, 1.0, 1.0)


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("by", BOTH)
def test_cases_without_events_and_unknown_activities_do_no_harm(by: Miner) -> None:
    result = model_quality(Variants.from_dict({(): 2, ("a", "b"): 9, ("x",): 1}), SMALL, by=by)
    assert result.not_computed == {} and 0.0 < (result.fitness or 0) < 1.0


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("by", ["veilog", pytest.param("pm4py", marks=needs_pm4py)])
def test_receipt_against_itself(logs: Path, by: Miner) -> None:
    receipt = files.read(logs / "receipt.xes.gz").variants
    result = model_quality(receipt, receipt, seconds=120, by=by)
    values = (result.fitness, result.precision, result.generalization)
    assert [round(v or 0, 4) for v in values] == [0.9447, 0.2662, 0.6411]


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("by", ["veilog", pytest.param("pm4py", marks=needs_pm4py)])
def test_precision_from_some_prefixes_is_near_that_from_all(logs: Path, by: Miner) -> None:
    receipt = files.read(logs / "receipt.xes.gz").variants
    result = model_quality(receipt, receipt, seconds=120, prefixes=300, by=by)
    assert result.precision != pytest.approx(0.2662, abs=1e-4) and result.precision == pytest.approx(0.2662, abs=0.05)


@pytest.mark.slow
def test_sacofa_as_published_gives_a_better_model_than_laplace(logs: Path) -> None:
    """The claim of the SaCoFa paper's Figure 2 holds at the settings of its Table 4.

    The benchmark has all cells.
    """
    receipt = files.read(logs / "receipt.xes.gz").variants
    settings: dict[str, Any] = {"epsilon": 1, "seed": 0, "as_published": True, "depth": 10}
    sacofa = release(receipt, "sacofa", threshold_harmful=3, **settings).variants
    laplace = release(receipt, "laplace", threshold=3, program="sacofa", **settings).variants
    better, worse = (model_quality(receipt, log, seconds=120, prefixes=100).f_score for log in (sacofa, laplace))
    assert better is not None and worse is not None
    assert better > 0.75 > 0.5 > worse

"""Replayed steps give pm4py's results for every prefix and for whole traces."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import openly
import pytest

import veilog
from veilog.logs.variants import Variants
from veilog.mining.replay import Prefixes

pm4py = pytest.importorskip("pm4py")
pytestmark = pytest.mark.filterwarnings("ignore")  # pm4py and what it imports warn of things of their own

from veilog.measures.process_model_worker import (  # noqa: E402
    Pm4pyReplay,
    Trace,
    _net,
    log_of,
)


def by_pm4py(traces: list[Trace], net: Any, **options: bool) -> list[dict[str, Any]]:
    from pm4py.algo.conformance.tokenreplay import algorithm

    names = algorithm.Variants.TOKEN_REPLAY.value.Parameters
    parameters = {names[name.upper()]: value for name, value in {"show_progress_bar": False, **options}.items()}
    found: list[dict[str, Any]] = algorithm.apply(log_of(traces), *net, parameters=parameters)
    return found


def spelled(prefixes: Prefixes) -> list[Trace]:
    """The activities of each prefix."""
    found: list[Trace] = [()]
    for parent, code in zip(prefixes.parents[1:], prefixes.codes[1:], strict=True):
        found.append((*found[parent], prefixes.labels[code]))
    return found


def check(released: dict[Trace, int], traces: list[Trace]) -> int:
    """Compares everything that is read; how many prefixes the net can replay."""
    net = _net(released, 0.2)
    ours = Pm4pyReplay(*net)
    found = by_pm4py(traces, net, consider_remaining_in_fitness=True)
    for trace, theirs in zip(traces, found, strict=True):
        whole = ours.whole(Variants.from_dict({trace: 1}))
        assert whole.fired == Counter(theirs["activated_transitions"]), trace
        for name in ("missing", "remaining", "consumed", "produced"):
            assert getattr(whole.tokens, name) == theirs[f"{name}_tokens"], (trace, name)
    known = Prefixes.of(Variants.from_sequences(traces))
    markings = dict(zip(spelled(known), ours.markings(known), strict=True))
    prefixes = sorted({trace[:i] for trace in traces for i in range(1, len(trace) + 1)})
    options = {"try_to_reach_final_marking_through_hidden": False, "stop_immediately_unfit": True}
    fit = 0
    for prefix, theirs in zip(
        prefixes, by_pm4py(prefixes, net, consider_remaining_in_fitness=False, **options), strict=True
    ):
        labels = {t.label for t in theirs["enabled_transitions_in_marking"] if t.label is not None}
        marking = markings[prefix]
        assert (None if marking is None else ours.enabled(marking)) == (labels if theirs["trace_is_fit"] else None)
        fit += theirs["trace_is_fit"]
    return fit


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_logs_are_replayed_as_pm4py_does(seed: int) -> None:
    draw = random.Random(seed)

    def log(activities: str) -> dict[Trace, int]:
        return {tuple(draw.choices(activities, k=draw.randint(1, 7))): draw.randint(1, 9) for _ in range(12)}

    fit = check(log("abcd"), [(), *log("abcde")])  # e is unknown to the model
    assert fit > 0


@pytest.mark.slow
def test_sepsis_under_noise_is_replayed_as_pm4py_does(logs: Path) -> None:
    original = veilog.read_variants(logs / "sepsis.xes.gz")
    released = openly.release(original, "laplace", epsilon=1, seed=0).variants
    counted = dict(zip(released.sequences, released.counts.tolist(), strict=True))
    traces = sorted(original.sequences, key=lambda trace: (len(trace), trace))
    assert check(counted, [*traces[:40:4], *traces[200:800:60]]) > 20

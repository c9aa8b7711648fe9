"""Quality of a release's model by our own miner and replay, in this process."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np

from veilog.logs.variants import Variants
from veilog.measures.process_model.quality import ModelQuality
from veilog.mining.inductive import discover
from veilog.mining.limits import Clock, OutOfTimeError
from veilog.mining.petri import workflow_net
from veilog.mining.prefixes import Prefixes
from veilog.mining.replay import Replay, precision, replayed


def measured(
    original: Variants, released: Variants, *, noise: float, seconds: float, prefixes: int | None
) -> ModelQuality:
    """Discover a model from the release and replay the original on it; what was reached in time is kept."""
    started, clock = time.monotonic(), Clock(seconds)
    values: dict[str, float] = {}
    stage, problem = "discovering the model", ""
    try:
        replay = Replay(workflow_net(discover(released, noise=noise, clock=clock)), clock)
        stage = "replaying the original"
        known = Prefixes.of(original)
        whole = replayed(replay, known)
        values |= {"fitness": whole.fitness, "generalization": whole.generalization}
        stage = "replaying prefixes"
        weights = known.going_on if prefixes is None else _drawn(known, prefixes)
        values["precision"] = precision(replay, known, whole.markings, weights)
    except OutOfTimeError:
        problem = f"Not done after {seconds:g} seconds (while {stage})."
    except RecursionError:
        problem = f"The model is nested too deeply (while {stage})."
    return ModelQuality.of(values, problem, time.monotonic() - started)


def _drawn(prefixes: Prefixes, number: int) -> list[int]:
    """Return how often each prefix is drawn, in proportion to the cases that go on from it: always the same draw."""
    chances = np.array(prefixes.going_on, dtype=np.float64)
    drawn = Counter(np.random.default_rng(0).choice(len(chances), number, p=chances / chances.sum()).tolist())
    return [drawn[node] for node in range(len(chances))]

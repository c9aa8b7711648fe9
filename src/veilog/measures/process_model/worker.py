"""The process in which pm4py works: a task as JSON on standard input, answers as lines of JSON on standard output.

Run as ``python -m veilog.measures.process_model.worker`` by :mod:`veilog.measures.process_model.measure`, and by nobody
else. An answer is written as soon as it is known, so that a kill loses only what was not reached.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from veilog._process import limit_memory
from veilog.measures.process_model.replay import Replay, Replayed, Trace


def main() -> int:
    task = json.load(sys.stdin)
    # What pm4py prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(**values: object) -> None:
        print(json.dumps(values), file=answers, flush=True)

    limit_memory(task["memory"], reserved=True)
    try:
        _measure(task, answer)
    except MemoryError:
        answer(problem="memory")
    except ImportError as error:
        answer(problem=f"pm4py could not be loaded ({str(error)[:200]})")
    except RecursionError:
        answer(problem="the model is nested too deeply for pm4py")
    return 0


def _counts(log: dict[str, Any]) -> Counter[Trace]:
    return Counter({tuple(t): n for t, n in zip(log["traces"], log["counts"], strict=True)})


def _measure(task: dict[str, Any], answer: Any) -> None:
    answer(stage="loading pm4py")
    import pm4py  # noqa: F401

    original, released = _counts(task["original"]), _counts(task["released"])
    answer(stage="discovering the model")
    net, initial, final = _net(released, task["noise"])
    replay = Replay(net, initial, final)
    answer(stage="replaying the original")
    traces = list(original)
    replayed = replay.whole(traces)
    answer(fitness=_fitness(replayed, [original[t] for t in traces]))
    answer(generalization=_generalization(replayed, [original[t] for t in traces], net.transitions))

    answer(stage="replaying prefixes")
    following: dict[Trace, set[str]] = {}
    passing: Counter[Trace] = Counter()
    for trace, count in original.items():
        for i, activity in enumerate(trace):
            following.setdefault(trace[:i], set()).add(activity)
            passing[trace[:i]] += count
    if task.get("prefixes"):
        # A prefix drawn several times counts so often; what follows it is known from the whole log all the same.
        drawn = random.Random(0).choices(list(passing), list(passing.values()), k=task["prefixes"])
        passing = Counter(drawn)
    enabled = {prefix: labels for prefix in passing if (labels := replay.enabled_after(prefix)) is not None}
    answer(precision=_precision(enabled, following, passing), stage="done")


def _net(released: Mapping[Trace, int], noise: float) -> tuple[Any, Any, Any]:
    """The net that the inductive miner discovers, with its initial and final marking."""
    import pm4py
    from pm4py.algo.discovery.inductive.dtypes.im_ds import IMDataStructureUVCL
    from pm4py.algo.discovery.inductive.variants.imf import IMFUVCL
    from pm4py.objects.process_tree.utils.generic import fold, tree_sort

    parameters = {"noise_threshold": noise}
    tree = IMFUVCL(parameters).apply(IMDataStructureUVCL(Counter(released)), parameters)
    tree = fold(tree)
    # Replay takes the first of several ways through silent transitions: their order must not depend on the log's.
    tree_sort(tree)
    net: tuple[Any, Any, Any] = pm4py.convert_to_petri_net(tree)
    return net


def _fitness(replayed: Sequence[Replayed], counts: Sequence[int]) -> float:
    def total(name: str) -> int:
        return sum(getattr(r, name) * n for r, n in zip(replayed, counts, strict=True))

    consumed, produced = total("consumed"), total("produced")
    if not consumed or not produced:
        return 0.0
    return 0.5 * (1 - total("missing") / consumed) + 0.5 * (1 - total("remaining") / produced)


def _generalization(replayed: Sequence[Replayed], counts: Sequence[int], transitions: Any) -> float:
    fired: Counter[Any] = Counter()
    for r, n in zip(replayed, counts, strict=True):
        for transition in r.fired:
            fired[transition] += n
    if not transitions:
        return 1.0
    return 1.0 - math.fsum(1.0 / math.sqrt(fired[t]) if fired[t] else 1.0 for t in transitions) / len(transitions)


def _precision(
    enabled: Mapping[Trace, frozenset[str]], following: Mapping[Trace, set[str]], passing: Counter[Trace]
) -> float:
    options = sum(len(labels) * passing[p] for p, labels in enabled.items())
    escaping = sum(len(labels - following[p]) * passing[p] for p, labels in enabled.items())
    return 1.0 - escaping / options if options else 1.0


if __name__ == "__main__":
    sys.exit(main())

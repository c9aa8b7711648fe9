"""The process in which pm4py works: a task as JSON on standard input, answers as lines of JSON on standard output.

Run as ``python -m veilog.measures.models_worker`` by :mod:`veilog.measures.models`, and by nobody else. An answer is
written as soon as it is known, so that a kill loses only what was not reached.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

Trace = tuple[str, ...]


def main() -> int:
    task = json.load(sys.stdin)
    # What pm4py prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(**values: object) -> None:
        print(json.dumps(values), file=answers, flush=True)

    _limit(task["memory"])
    try:
        _measure(task, answer)
    except MemoryError:
        answer(problem="memory")
    except ImportError as error:
        answer(problem=f"pm4py could not be loaded ({str(error)[:200]})")
    except RecursionError:
        answer(problem="the model is nested too deeply for pm4py")
    return 0


def _limit(memory: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (memory if hard == resource.RLIM_INFINITY else min(memory, hard), hard))


def _counts(log: dict[str, Any]) -> Counter[Trace]:
    return Counter({tuple(t): n for t, n in zip(log["traces"], log["counts"], strict=True)})


def _measure(task: dict[str, Any], answer: Any) -> None:
    answer(stage="loading pm4py")
    import pm4py
    from pm4py.algo.conformance.tokenreplay import algorithm as replayer
    from pm4py.algo.discovery.inductive.dtypes.im_ds import IMDataStructureUVCL
    from pm4py.algo.discovery.inductive.variants.imf import IMFUVCL
    from pm4py.objects.petri_net.utils.align_utils import get_visible_transitions_eventually_enabled_by_marking
    from pm4py.objects.process_tree.utils.generic import fold, tree_sort

    original, released = _counts(task["original"]), _counts(task["released"])
    answer(stage="discovering the model")
    parameters = {"noise_threshold": task["noise"]}
    tree = IMFUVCL(parameters).apply(IMDataStructureUVCL(released), parameters)
    tree = fold(tree)
    # Replay takes the first of several ways through silent transitions: their order must not depend on the log's.
    tree_sort(tree)
    net, initial, final = pm4py.convert_to_petri_net(tree)

    def replay(traces: Iterable[Trace], **options: bool) -> list[dict[str, Any]]:
        named = replayer.Variants.TOKEN_REPLAY.value.Parameters
        parameters = {named[key.upper()]: value for key, value in {"show_progress_bar": False, **options}.items()}
        result: list[dict[str, Any]] = replayer.apply(_log(traces), net, initial, final, parameters=parameters)
        return result

    answer(stage="replaying the original")
    traces = list(original)
    replayed = replay(traces, consider_remaining_in_fitness=True)
    answer(fitness=_fitness(replayed, [original[t] for t in traces]))
    answer(generalization=_generalization(replayed, [original[t] for t in traces], net.transitions))

    answer(stage="replaying prefixes")
    following: dict[Trace, set[str]] = {}
    passing: Counter[Trace] = Counter()
    for trace, count in original.items():
        for i, activity in enumerate(trace):
            following.setdefault(trace[:i], set()).add(activity)
            passing[trace[:i]] += count
    first = {t.label for t in get_visible_transitions_eventually_enabled_by_marking(net, initial)}
    if task.get("prefixes"):
        # A prefix drawn several times counts so often; what follows it is known from the whole log all the same.
        drawn = random.Random(0).choices(list(passing), list(passing.values()), k=task["prefixes"])
        passing = Counter(drawn)
    prefixes = [p for p in passing if p]
    after = replay(
        prefixes,
        consider_remaining_in_fitness=False,
        try_to_reach_final_marking_through_hidden=False,
        stop_immediately_unfit=True,
        walk_through_hidden_trans=True,
    )
    enabled: dict[Trace, set[str]] = {(): first} if () in passing else {}
    for prefix, state in zip(prefixes, after, strict=True):
        if state["trace_is_fit"]:
            enabled[prefix] = {t.label for t in state["enabled_transitions_in_marking"] if t.label is not None}
    answer(precision=_precision(enabled, following, passing), stage="done")


def _log(traces: Iterable[Trace]) -> Any:
    from pm4py.objects.log.obj import Event, EventLog, Trace

    log = EventLog()
    for trace in traces:
        log.append(Trace(Event({"concept:name": activity}) for activity in trace))
    return log


def _fitness(replayed: list[dict[str, Any]], counts: list[int]) -> float:
    def total(name: str) -> int:
        return sum(r[name] * n for r, n in zip(replayed, counts, strict=True))

    consumed, produced = total("consumed_tokens"), total("produced_tokens")
    if not consumed or not produced:
        return 0.0
    return 0.5 * (1 - total("missing_tokens") / consumed) + 0.5 * (1 - total("remaining_tokens") / produced)


def _generalization(replayed: list[dict[str, Any]], counts: list[int], transitions: Any) -> float:
    fired: Counter[Any] = Counter()
    for r, n in zip(replayed, counts, strict=True):
        for transition in r["activated_transitions"]:
            fired[transition] += n
    if not transitions:
        return 1.0
    return 1.0 - math.fsum(1.0 / math.sqrt(fired[t]) if fired[t] else 1.0 for t in transitions) / len(transitions)


def _precision(enabled: dict[Trace, set[str]], following: dict[Trace, set[str]], passing: Counter[Trace]) -> float:
    options = sum(len(labels) * passing[p] for p, labels in enabled.items())
    escaping = sum(len(labels - following[p]) * passing[p] for p, labels in enabled.items())
    return 1.0 - escaping / options if options else 1.0


if __name__ == "__main__":
    sys.exit(main())

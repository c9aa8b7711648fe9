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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veilog._process import limit_memory

Trace = tuple[str, ...]
_DEPTH = 50
"""How far silent transitions are followed, as pm4py does by itself."""


@dataclass(frozen=True)
class Replayed:
    """Tokens of a whole trace, and the transitions that fired."""

    missing: int
    remaining: int
    consumed: int
    produced: int
    fired: tuple[Any, ...]


class Replay:
    """Token replay on a net with its initial and final marking, which remembers the steps of prefixes."""

    def __init__(self, net: Any, initial: Any, final: Any) -> None:
        from pm4py.objects.petri_net.utils.petri_utils import get_places_shortest_path_by_hidden

        self._net, self._initial, self._final = net, initial, final
        self._ways = get_places_shortest_path_by_hidden(net, _DEPTH)
        self._markings: list[Any] = []
        self._numbers: dict[frozenset[tuple[str, int]], int] = {}
        self._enabled: list[frozenset[str]] = []
        self._steps: dict[tuple[int, str], int | None] = {}

    def whole(self, traces: Sequence[Trace]) -> list[Replayed]:
        """Traces from the initial to the final marking."""
        return [
            Replayed(
                state["missing_tokens"],
                state["remaining_tokens"],
                state["consumed_tokens"],
                state["produced_tokens"],
                tuple(state["activated_transitions"]),
            )
            for state in self._replayed(self._initial, traces, whole=True)
        ]

    def enabled_after(self, prefix: Trace) -> frozenset[str] | None:
        """Activities that the net allows after a prefix, by way of silent transitions too; None if it misses tokens."""
        if not self._markings:
            self._number(self._initial, self._replayed(self._initial, [()], whole=False)[0])
        place: int | None = 0
        for activity in prefix:
            if place is None:
                return None
            if (place, activity) not in self._steps:
                self._steps[place, activity] = self._step(place, activity)
            place = self._steps[place, activity]
        return None if place is None else self._enabled[place]

    def _step(self, place: int, activity: str) -> int | None:
        (state,) = self._replayed(self._markings[place], [(activity,)], whole=False)
        return self._number(state["reached_marking"], state) if state["trace_is_fit"] else None

    def _number(self, marking: Any, state: dict[str, Any]) -> int:
        tokens = frozenset((place.name, number) for place, number in marking.items() if number)
        if tokens not in self._numbers:
            self._numbers[tokens] = len(self._markings)
            self._markings.append(marking)
            labels = (t.label for t in state["enabled_transitions_in_marking"])
            self._enabled.append(frozenset(label for label in labels if label is not None))
        return self._numbers[tokens]

    def _replayed(self, start: Any, traces: Iterable[Trace], *, whole: bool) -> list[dict[str, Any]]:
        from pm4py.algo.conformance.tokenreplay import algorithm

        names = algorithm.Variants.TOKEN_REPLAY.value.Parameters
        parameters = {
            names.SHOW_PROGRESS_BAR: False,
            names.PLACES_SHORTEST_PATH_BY_HIDDEN: self._ways,
            names.CONSIDER_REMAINING_IN_FITNESS: whole,
            names.TRY_TO_REACH_FINAL_MARKING_THROUGH_HIDDEN: whole,
            names.STOP_IMMEDIATELY_UNFIT: not whole,
        }
        found: list[dict[str, Any]] = algorithm.apply(
            log_of(traces), self._net, start, self._final, parameters=parameters
        )
        return found


def log_of(traces: Iterable[Trace]) -> Any:
    """Traces as pm4py wants them."""
    from pm4py.objects.log.obj import Event, EventLog
    from pm4py.objects.log.obj import Trace as Events

    return EventLog([Events(Event({"concept:name": activity}) for activity in trace) for trace in traces])


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

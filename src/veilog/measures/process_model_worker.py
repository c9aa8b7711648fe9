"""Process in which pm4py works: a task as JSON in, answers as lines of JSON out.

Only :mod:`veilog.measures.process_model` runs it, as ``python -m veilog.measures.process_model_worker``. An answer is
written as soon as it is known, so that a kill loses only the answers not yet reached.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from veilog._process import limit_memory
from veilog.logs.variants import Variants
from veilog.mining.inductive import UNLIMITED
from veilog.mining.replay import Prefixes, Replayed, Tokens, precision

Trace = tuple[str, ...]
_DEPTH = 50
"""Longest path of silent transitions to follow, pm4py's own default."""
_TOKENS = ("missing", "remaining", "consumed", "produced")


class Pm4pyReplay:
    """Token replay on a net with its two markings, which remembers steps of prefixes."""

    clock = UNLIMITED
    """A clock that never stops, because the parent process ends this one."""

    def __init__(self, net: Any, initial: Any, final: Any) -> None:
        from pm4py.objects.petri_net.utils.petri_utils import get_places_shortest_path_by_hidden

        self._net, self._initial, self._final = net, initial, final
        self._ways = get_places_shortest_path_by_hidden(net, _DEPTH)
        self._markings: list[Any] = []
        self._numbers: dict[frozenset[tuple[str, int]], int] = {}
        self._enabled: list[set[str]] = []
        self._steps: dict[tuple[int, str], int | None] = {}

    def whole(self, variants: Variants) -> Replayed:
        """Replay whole cases, from the initial to the final marking."""
        tokens, fired = Tokens(), Counter[Any]()
        states = self._replay_traces(self._initial, variants.sequences, whole=True)
        for state, times in zip(states, variants.counts.tolist(), strict=True):
            tokens.add(Tokens(*(state[f"{name}_tokens"] for name in _TOKENS)), times)
            for transition in state["activated_transitions"]:
                fired[transition] += times
        return Replayed(tokens, fired, len(self._net.transitions), [])

    def markings(self, prefixes: Prefixes) -> list[int | None]:
        """Return the marking after each prefix; None where it misses tokens."""
        start = self._number(self._initial, self._replay_traces(self._initial, [()], whole=False)[0])
        found: list[int | None] = [start]
        for parent, code in zip(prefixes.parents[1:], prefixes.codes[1:], strict=True):
            before = found[parent]
            found.append(None if before is None else self._next_marking(before, prefixes.labels[code]))
        return found

    def enabled(self, marking: int) -> set[str]:
        """Return the activities that the net allows in a marking, also by silent steps."""
        return self._enabled[marking]

    def _next_marking(self, marking: int, activity: str) -> int | None:
        if (marking, activity) not in self._steps:
            (state,) = self._replay_traces(self._markings[marking], [(activity,)], whole=False)
            to = self._number(state["reached_marking"], state) if state["trace_is_fit"] else None
            self._steps[marking, activity] = to
        return self._steps[marking, activity]

    def _number(self, marking: Any, state: dict[str, Any]) -> int:
        tokens = frozenset((place.name, number) for place, number in marking.items() if number)
        if tokens not in self._numbers:
            self._numbers[tokens] = len(self._markings)
            self._markings.append(marking)
            labels = (t.label for t in state["enabled_transitions_in_marking"])
            self._enabled.append({label for label in labels if label is not None})
        return self._numbers[tokens]

    def _replay_traces(self, start: Any, traces: Iterable[Trace], *, whole: bool) -> list[dict[str, Any]]:
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
    """Return traces in the form that pm4py takes."""
    from pm4py.objects.log.obj import Event, EventLog
    from pm4py.objects.log.obj import Trace as Events

    return EventLog([Events(Event({"concept:name": activity}) for activity in trace) for trace in traces])


def main() -> int:
    task = json.load(sys.stdin)
    # The output of pm4py must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(**values: object) -> None:
        print(json.dumps(values), file=answers, flush=True)

    limit_memory(task["memory"], reserved=True)
    try:
        _measure(task, answer)
    except MemoryError:
        answer(problem="out-of-memory")
    except ImportError as error:
        answer(problem="not-loaded", why=str(error)[:200])
    except RecursionError:
        answer(problem="nested-too-deeply")
    return 0


def _measure(task: dict[str, Any], answer: Any) -> None:
    answer(stage="pm4py")
    import pm4py  # noqa: F401

    original, released = (
        Variants.from_dict({tuple(t): n for t, n in zip(log["traces"], log["counts"], strict=True)})
        for log in (task["original"], task["released"])
    )
    answer(stage="discovery")
    replay = Pm4pyReplay(*_net(released.to_dict(), task["noise"]))
    answer(stage="replay")
    whole = replay.whole(original)
    answer(fitness=whole.fitness, generalization=whole.generalization, stage="prefixes")
    known = Prefixes.of(original)
    weights = known.drawn(task["prefixes"]) if task.get("prefixes") else known.going_on
    answer(precision=precision(replay, known, replay.markings(known), weights), stage="end")


def _net(released: Mapping[Trace, int], noise: float) -> tuple[Any, Any, Any]:
    """Return the net that the inductive miner discovers, with its two markings."""
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


if __name__ == "__main__":
    sys.exit(main())

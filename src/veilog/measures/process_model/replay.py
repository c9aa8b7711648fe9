"""Token replay on one Petri net, by pm4py: of whole traces, and of all their prefixes with each step taken once.

For :mod:`veilog.measures.process_model.worker`. Replay goes on from the marking that it has reached, whatever led
there. So a step of a prefix is replayed once for each marking and activity, as a trace of one event from that marking,
and all prefixes share it: on models of noise, where a step is slow and markings are few, that takes a small part of the
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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

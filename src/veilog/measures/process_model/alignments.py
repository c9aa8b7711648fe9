"""Fitness by optimal alignments, which r4pm (extra ``alignments``) finds.

Token replay goes on with tokens that it makes up, so it forgives in ways that are hard to name. An alignment says how
a case would have to be changed to fit: events taken out, and activities put in. The fitness of a log is 1 minus these
over what they would be if no event were met at all.

A. Adriansyah, B. van Dongen, W. van der Aalst, "Conformance checking using cost-based fitness analysis", EDOC 2011.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from veilog.errors import MissingExtraError, VeilogError
from veilog.logs.variants import Variants
from veilog.mining.limits import UNLIMITED, Clock
from veilog.mining.petri import Net

_COSTS = {"log_move_cost": 1 << 16, "model_move_cost": 1 << 16, "silent_move_cost": 1, "sync_move_cost": 0}
"""Silent moves cost next to nothing, so that none is made in vain; they are not counted."""


MOST_STATES = 1_000_000
"""So many are looked at for one variant."""


class TooManyStatesError(VeilogError):
    """An alignment was not found in so many states."""

    def __init__(self, states: int) -> None:
        super().__init__(f"No alignment was found in {states:,} states of the model.")


def check_alignments() -> None:
    """Raise :class:`MissingExtraError` where there is no r4pm."""
    if importlib.util.find_spec("r4pm") is None:
        raise MissingExtraError("Fitness by alignments", extra="alignments")


def aligned_fitness(original: Variants, net: Net, clock: Clock = UNLIMITED) -> float:
    """Return 1 - changes / (events + visible steps of the shortest way through the net), over all cases.

    Each variant is aligned once and counts its cases. Where every case is empty and the net has an empty way, 1.
    """
    aligner = Aligner(net)
    shortest = aligner.changes(())
    changes = most = 0
    for trace, count in original.to_dict().items():
        clock.check()
        changes += count * (aligner.changes(trace) if trace else shortest)
        most += count * (len(trace) + shortest)
    return 1 - changes / most if most else 1.0


class Aligner:
    """A net as r4pm takes it."""

    def __init__(self, net: Net) -> None:
        check_alignments()
        self._net = _as_json(net)
        self._visible = {name for name, one in self._net["transitions"].items() if one["label"] is not None}

    def changes(self, trace: Sequence[str]) -> int:
        """Return the fewest events taken out and activities put in that let the trace fit."""
        from r4pm.bindings.conformance.case_centric.alignments import align_trace

        options: Any = {"cost_fn": _COSTS, "max_states": MOST_STATES}
        try:
            moves = align_trace(self._net, list(trace), options)["moves"]
        except TypeError as error:  # as which r4pm raises everything
            if "LimitReached" in str(error):
                raise TooManyStatesError(MOST_STATES) from None
            raise
        return sum("LogMove" in move or self._is_put_in(move) for move in moves)

    def _is_put_in(self, move: dict[str, Any]) -> bool:
        return "ModelMove" in move and move["ModelMove"]["transition"] in self._visible


def _as_json(net: Net) -> Any:
    places = [str(UUID(int=i + 1)) for i in range(net.places)]
    transitions = [str(UUID(int=(1 << 64) + i)) for i in range(len(net.transitions))]
    arcs = [
        {"from_to": {"type": kind, "nodes": nodes}, "weight": 1}
        for name, one in zip(transitions, net.transitions, strict=True)
        for kind, nodes in (
            *(("PlaceTransition", [places[place], name]) for place in one.inputs),
            *(("TransitionPlace", [name, places[place]]) for place in one.outputs),
        )
    ]
    return {
        "places": {name: {"id": name} for name in places},
        "transitions": {
            name: {"id": name, "label": one.label} for name, one in zip(transitions, net.transitions, strict=True)
        },
        "arcs": arcs,
        "initial_marking": {places[net.source]: 1},
        "final_markings": [{places[net.sink]: 1}],
    }

"""Quality on the original of a process model that is discovered from a release."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any
from uuid import UUID

from veilog._process import ends_in_time, interpreter
from veilog.errors import MissingExtraError, ParameterError, VeilogError
from veilog.logs.variants import Variants
from veilog.measures.measure import Found, Measure, Miner, Pair, our_measure
from veilog.messages import Message
from veilog.mining.inductive import UNLIMITED, Clock, OutOfTimeError, discover
from veilog.mining.language import f_score
from veilog.mining.replay import Net, Prefixes, Replay, precision, replay_prefixes, workflow_net

if TYPE_CHECKING:
    from veilog.logs.eventlog import EventLog


# The model: inductive miner infrequent (noise threshold 0.2) on the released variants, as a Petri net. Against the
# original log L:
#
# - fitness: token-based replay (Berti, van der Aalst 2019), 1/2 (1 - missing / consumed) + 1/2 (1 - remaining /
#   produced), tokens summed over all cases;
# - precision: escaping edges (Munoz-Gama, Carmona 2010), 1 - escaping / enabled, summed over the prefixes of all cases
#   that the model can replay: an enabled activity escapes when L never continues the prefix with it;
# - F-score: their harmonic mean;
# - generalization (Buijs et al. 2014): 1 - mean over the net's transitions of 1 / sqrt(how often replay fired it), a
#   transition that never fired counting 1.
#
# All are computed on variants with multiplicities, which changes nothing: replay is the same for equal traces. High
# fitness alone means little, because a model of one frequent variant or of anything at all can have it. See the
# coverage beside it in :mod:`veilog.measures.comparison`.
#
# Our own miner and replay (:mod:`veilog.mining`) find them in this process. On request, pm4py (extra ``models``) finds
# the same in a process of its own. Time is limited: each number that is not reached has its reason.

MEASURES = ("fitness", "precision", "f_score", "generalization")


@dataclass(frozen=True)
class ModelQuality:
    """Quality of the model of a release; ``not_computed`` has a reason for each None."""

    fitness: float | None = None
    precision: float | None = None
    f_score: float | None = None
    generalization: float | None = None
    not_computed: Mapping[str, Message] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def of(cls, values: Mapping[str, float], problem: Message | None, seconds: float) -> ModelQuality:
        """Return the quality of these values, with the F-score and a reason for the rest."""
        known = dict(values)
        if {"fitness", "precision"} <= known.keys():
            known["f_score"] = f_score(known["fitness"], known["precision"])
        missing = {name: problem for name in MEASURES if name not in known and problem is not None}
        return cls(**known, not_computed=missing, seconds=seconds)


def measure_model(
    original: Variants, released: Variants, *, noise: float, seconds: float, prefixes: int | None
) -> ModelQuality:
    """Discover the release's model and replay the original, as far as time allows."""
    started, clock = time.monotonic(), Clock(seconds)
    values: dict[str, float] = {}
    stage, problem = "discovery", None
    try:
        replay = Replay(workflow_net(discover(released, noise=noise, clock=clock)), clock)
        stage = "replay"
        known = Prefixes.of(original)
        whole = replay_prefixes(replay, known)
        values |= {"fitness": whole.fitness, "generalization": whole.generalization}
        stage = "prefixes"
        weights = known.going_on if prefixes is None else known.drawn(prefixes)
        values["precision"] = precision(replay, known, whole.markings, weights)
    except OutOfTimeError:
        problem = Message("model-out-of-time", seconds=seconds, stage=Message(f"model-stage-{stage}"))
    except RecursionError:
        problem = Message("model-nested-too-deeply", stage=Message(f"model-stage-{stage}"))
    return ModelQuality.of(values, problem, time.monotonic() - started)


_WORKER = "veilog.measures.process_model_worker"


class Running:
    """Measurement under way in another process."""

    def __init__(
        self, process: subprocess.Popen[bytes], answers: IO[bytes], words: IO[bytes], seconds: float, memory: int
    ) -> None:
        self._process, self._answers, self._words = process, answers, words
        self._seconds, self._memory = seconds, memory
        self._started = time.monotonic()

    def result(self) -> ModelQuality:
        """Wait until the process has ended or its time is over, and return the quality."""
        left = self._seconds - (time.monotonic() - self._started)
        ended = ends_in_time(self._process, left)
        seconds = time.monotonic() - self._started
        values: dict[str, float] = {}
        stage, problem, why = "start", "" if ended else "out-of-time", ""
        self._answers.seek(0)
        for line in self._answers.read().splitlines():
            answer = json.loads(line)
            stage, problem = answer.get("stage", stage), problem or answer.get("problem", "")
            why = answer.get("why", why)
            values.update({name: answer[name] for name in MEASURES if name in answer})
        if not problem and self._process.returncode:
            problem, why = "stopped", self._last_words()
        reason = Message(
            f"pm4py-{problem or 'without-value'}",
            seconds=self._seconds,
            memory=self._memory / (1 << 30),
            status=self._process.returncode,
            stage=Message(f"model-stage-{stage}"),
            why=why,
        )
        return ModelQuality.of(values, reason, seconds)

    def _last_words(self) -> str:
        """Return the last line that the process wrote: for a traceback, the error itself."""
        self._words.seek(0)
        lines = self._words.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
        return f": {lines[-1].strip()[:200]}" if lines else ""


@contextlib.contextmanager
def start_measurement(
    original: Variants, released: Variants, *, noise: float, seconds: float, memory: int, prefixes: int | None
) -> Iterator[Running]:
    """Start the measurement in another process, which ends with the block."""
    if importlib.util.find_spec("pm4py") is None:
        raise MissingExtraError(Message("measuring-models"), extra="models")
    logs = [
        {"traces": [list(t) for t in variants.sequences], "counts": variants.counts.tolist()}
        for variants in (original, released)
    ]
    task = {"original": logs[0], "released": logs[1], "noise": noise, "memory": memory, "prefixes": prefixes}
    with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as words:
        question.write(json.dumps(task).encode())
        question.seek(0)
        # Its one thread matters here: the address space that thread pools reserve counts against the memory limit.
        with interpreter("-m", _WORKER, stdin=question, stdout=answers, stderr=words) as process:
            yield Running(process, answers, words, seconds, memory)


_COSTS = {"log_move_cost": 1 << 16, "model_move_cost": 1 << 16, "silent_move_cost": 1, "sync_move_cost": 0}
"""Costs of the moves; a silent move costs almost nothing, so that none is in vain, and is not counted."""


MOST_STATES = 1_000_000
"""Largest number of states visited for one variant."""


class TooManyStatesError(VeilogError):
    """No alignment was found within this number of states."""

    def __init__(self, states: int) -> None:
        super().__init__("alignment-states-too-many", states=states)


def check_alignments() -> None:
    """Raise :class:`MissingExtraError` if r4pm is not installed."""
    if importlib.util.find_spec("r4pm") is None:
        raise MissingExtraError(Message("fitness-by-alignments"), extra="alignments")


def aligned_fitness(original: Variants, net: Net, clock: Clock = UNLIMITED) -> float:
    """Return the fitness by alignments over all cases.

    It is 1 - changes / (events + visible steps of the shortest way through the net). Each variant is aligned once and
    weighs its cases. The value is 1 where every case is empty and the net has an empty way.
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
    """A net in the form that r4pm takes."""

    def __init__(self, net: Net) -> None:
        check_alignments()
        self._net = _as_json(net)
        self._visible = {name for name, one in self._net["transitions"].items() if one["label"] is not None}

    def changes(self, trace: Sequence[str]) -> int:
        """Return the fewest removed events and added activities that make the trace fit."""
        from r4pm.bindings.conformance.case_centric.alignments import align_trace

        options: Any = {"cost_fn": _COSTS, "max_states": MOST_STATES}
        try:
            moves = align_trace(self._net, list(trace), options)["moves"]
        except TypeError as error:  # r4pm raises everything as this
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


def model_quality(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    noise: float = 0.2,
    seconds: float = 300.0,
    memory: int = 4 << 30,
    prefixes: int | None = None,
    by: Miner = "veilog",
) -> ModelQuality:
    """Discover a model from the release and measure it on the original in ``seconds``.

    With ``prefixes`` the precision is an estimate from this number of prefixes instead of all. They are drawn in
    proportion to the cases that have them, and are always the same ones. This helps with models of much noise, on which
    every prefix takes long. ``by`` names the miner and replay to use; pm4py's process has ``memory`` bytes.
    """
    first, second = (log if isinstance(log, Variants) else log.variants for log in (original, released))
    _check(first, second, noise, seconds, memory, prefixes)
    if by == "pm4py":
        with start_measurement(
            first, second, noise=noise, seconds=seconds, memory=memory, prefixes=prefixes
        ) as process:
            return process.result()
    return measure_model(first, second, noise=noise, seconds=seconds, prefixes=prefixes)


def _check(
    original: Variants, released: Variants, noise: float, seconds: float, memory: int, prefixes: int | None
) -> None:
    if not 0.0 <= noise <= 1.0:
        raise ParameterError("model-noise-out-of-range", parameter="noise", noise=noise)
    if not seconds > 0 or not memory > 0:
        raise ParameterError("model-limits-not-positive", parameter="seconds")
    if prefixes is not None and prefixes < 1:
        raise ParameterError("model-precision-without-prefix", parameter="prefixes")
    for variants, name in ((original, "original"), (released, "released")):
        if variants.events == 0:
            raise ParameterError("model-log-without-events", parameter=name, name=name)


def _start_measurement(pair: Pair) -> Running:
    """Return pm4py's measurement under way; it runs during the other measures."""
    first, second = pair.variants
    _check(first, second, 0.2, pair.seconds, pair.memory, None)
    process = start_measurement(first, second, noise=0.2, seconds=pair.seconds, memory=pair.memory, prefixes=None)
    return pair.enter(process)


def _begin(pair: Pair) -> None:
    if pair.miner == "pm4py":
        pair.once(_start_measurement)


def _quality(pair: Pair) -> ModelQuality:
    if pair.miner == "pm4py":
        return pair.once(_start_measurement).result()
    return model_quality(*pair.variants, seconds=pair.seconds)


def _measure(name: str) -> Measure:
    """Return the measure of one of the ``MEASURES``."""

    def find(pair: Pair) -> Found:
        quality = pair.once(_quality)
        return Found(getattr(quality, name), reason=quality.not_computed.get(name))

    return our_measure(name, find, begin=_begin)


FITNESS = _measure("fitness")
PRECISION = _measure("precision")
F_SCORE = _measure("f_score")
GENERALIZATION = _measure("generalization")

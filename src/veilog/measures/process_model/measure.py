"""What a process model discovered from the release is worth on the original log.

The model: inductive miner infrequent (noise threshold 0.2) on the released variants, as a Petri net. Against the
original log L:

- fitness: token-based replay (Berti, van der Aalst 2019), 1/2 (1 - missing / consumed) + 1/2 (1 - remaining /
  produced), tokens summed over all cases;
- precision: escaping edges (Munoz-Gama, Carmona 2010), 1 - escaping / enabled, summed over the prefixes of all cases
  that the model can replay: an enabled activity escapes when L never continues the prefix with it;
- F-score: their harmonic mean;
- generalization (Buijs et al. 2014): 1 - mean over the net's transitions of 1 / sqrt(how often replay fired it), a
  transition that never fired counting 1.

All three are computed on variants with multiplicities, which changes nothing: replay is the same for equal traces.
High fitness alone is worth little, because a model of one frequent variant or of anything at all can have it: see the
coverage beside it in :mod:`veilog.measures.comparison`.

pm4py (extra ``models``) discovers and replays in a process of its own with limited time and memory; it can hang or
grow on models of noisy logs. What was not reached has its reason.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO

from veilog._process import ends_in_time, interpreter
from veilog.errors import MissingExtraError, ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants

__all__ = ["MEASURES", "ModelQuality", "Running", "model_quality", "running"]

_WORKER = "veilog.measures.process_model.worker"
MEASURES = ("fitness", "precision", "f_score", "generalization")


@dataclass(frozen=True)
class ModelQuality:
    """Quality of the model discovered from a release; a measure that is None has its reason in ``not_computed``."""

    fitness: float | None = None
    precision: float | None = None
    f_score: float | None = None
    generalization: float | None = None
    not_computed: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def model_quality(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    noise: float = 0.2,
    seconds: float = 300.0,
    memory: int = 4 << 30,
    prefixes: int | None = None,
) -> ModelQuality:
    """Discover a model from the release and measure it on the original, within ``seconds`` and ``memory`` bytes.

    With ``prefixes`` the precision is an estimate: over so many prefixes, drawn in proportion to the cases that have
    them and always the same ones, instead of all. For models of much noise, on which every prefix takes long.
    """
    with running(original, released, noise=noise, seconds=seconds, memory=memory, prefixes=prefixes) as process:
        return process.result()


class Running:
    """The measurement under way in its process."""

    def __init__(
        self, process: subprocess.Popen[bytes], answers: IO[bytes], words: IO[bytes], seconds: float, memory: int
    ) -> None:
        self._process, self._answers, self._words = process, answers, words
        self._seconds, self._memory = seconds, memory
        self._started = time.monotonic()

    def result(self) -> ModelQuality:
        """Waits until the process has ended or its time is over."""
        left = self._seconds - (time.monotonic() - self._started)
        ended = ends_in_time(self._process, left)
        seconds = time.monotonic() - self._started
        values: dict[str, float] = {}
        stage, problem = "starting", None
        self._answers.seek(0)
        for line in self._answers.read().splitlines():
            answer = json.loads(line)
            stage = answer.get("stage", stage)
            problem = answer.get("problem", problem)
            values.update({name: answer[name] for name in MEASURES if name in answer})
        if {"fitness", "precision"} <= values.keys():
            both = values["fitness"] + values["precision"]
            values["f_score"] = 2 * values["fitness"] * values["precision"] / both if both else 0.0
        if not ended:
            problem = f"not done after {self._seconds:g} seconds (while {stage})"
        elif problem is None and self._process.returncode != 0:
            problem = (
                f"the process of pm4py stopped with code {self._process.returncode} (while {stage}){self._last_words()}"
            )
        elif problem == "memory":
            problem = f"more than {self._memory / (1 << 30):.3g} GiB of memory would be needed (while {stage})"
        reason = f"{problem or f'pm4py gave no value (while {stage})'}."
        missing = {name: reason[0].upper() + reason[1:] for name in MEASURES if name not in values}
        return ModelQuality(**values, not_computed=missing, seconds=seconds)

    def _last_words(self) -> str:
        """The last line that the process wrote about its end: of a traceback the error itself."""
        self._words.seek(0)
        lines = self._words.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
        return f": {lines[-1].strip()[:200]}" if lines else ""


@contextlib.contextmanager
def running(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    noise: float = 0.2,
    seconds: float = 300.0,
    memory: int = 4 << 30,
    prefixes: int | None = None,
) -> Iterator[Running]:
    """Starts the measurement beside the caller's work; leaving the block ends it in any case."""
    if not 0.0 <= noise <= 1.0:
        raise ParameterError(f"A noise threshold of {noise} is outside 0 to 1.", parameter="noise")
    if not seconds > 0 or not memory > 0:
        raise ParameterError("Time and memory for models must be positive.", parameter="seconds")
    if prefixes is not None and prefixes < 1:
        raise ParameterError("Precision needs at least one prefix.", parameter="prefixes")
    if importlib.util.find_spec("pm4py") is None:
        raise MissingExtraError("Measuring models", extra="models")
    logs = []
    for log, name in ((original, "original"), (released, "released")):
        variants = log if isinstance(log, Variants) else log.variants
        if variants.events == 0:
            raise ParameterError(f"The {name} log has no events, so there is no model to speak of.", parameter=name)
        logs.append({"traces": [list(t) for t in variants.sequences], "counts": variants.counts.tolist()})
    task = {"original": logs[0], "released": logs[1], "noise": noise, "memory": memory, "prefixes": prefixes}
    with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as words:
        question.write(json.dumps(task).encode())
        question.seek(0)
        # Its one thread matters here: the address space that thread pools reserve counts against the memory limit.
        with interpreter("-m", _WORKER, stdin=question, stdout=answers, stderr=words) as process:
            yield Running(process, answers, words, seconds, memory)

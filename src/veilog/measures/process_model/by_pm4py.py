"""Quality of a release's model by pm4py (extra ``models``), in a process of its own.

pm4py can hang or grow on models of noisy logs, so the process has limited time and memory; what was reached before is
kept.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import IO

from veilog._process import ends_in_time, interpreter
from veilog.errors import MissingExtraError
from veilog.logs.variants import Variants
from veilog.measures.process_model.quality import MEASURES, ModelQuality

_WORKER = "veilog.measures.process_model.worker"


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
        if not ended:
            problem = f"not done after {self._seconds:g} seconds (while {stage})"
        elif problem is None and self._process.returncode != 0:
            problem = (
                f"the process of pm4py stopped with code {self._process.returncode} (while {stage}){self._last_words()}"
            )
        elif problem == "memory":
            problem = f"more than {self._memory / (1 << 30):.3g} GiB of memory would be needed (while {stage})"
        reason = f"{problem or f'pm4py gave no value (while {stage})'}."
        return ModelQuality.of(values, reason[0].upper() + reason[1:], seconds)

    def _last_words(self) -> str:
        """The last line that the process wrote about its end: of a traceback the error itself."""
        self._words.seek(0)
        lines = self._words.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
        return f": {lines[-1].strip()[:200]}" if lines else ""


@contextlib.contextmanager
def running(
    original: Variants, released: Variants, *, noise: float, seconds: float, memory: int, prefixes: int | None
) -> Iterator[Running]:
    """Starts the measurement beside the caller's work; leaving the block ends it in any case."""
    if importlib.util.find_spec("pm4py") is None:
        raise MissingExtraError("Measuring models", extra="models")
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

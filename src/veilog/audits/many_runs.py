"""Many runs of a white-box audit: whole ones, and the questions of one asked again and again, where there are processes
for it in several.

A script holds functions of a method, which go to no other process. So a run is named by its seed, and each process
makes it once for itself: seeded runs are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from veilog.audits.attacks import Attempt
from veilog.audits.recording import RecordedRun, Script, asked_again, recorded
from veilog.audits.twins import Twins
from veilog.methods.method import Progress
from veilog.releasing.request import ReleaseRequest

__all__ = ["AuditRun", "Recorder", "parts_of"]

_AT_ONCE = 300
"""So many are done here before others could begin."""
_KEPT = 64


@dataclass(frozen=True)
class AuditRun:
    """A whole run: on which log, with which noise; and after how many questions it ends."""

    attempt: Attempt
    there: bool
    seed: int
    questions: int | None = None

    def on(self, planned: ReleaseRequest) -> tuple[RecordedRun, Script, Twins]:
        """Make it."""
        twins = Twins(planned, self.attempt.without, self.attempt.with_)
        log = self.attempt.with_ if self.there else self.attempt.without
        return *recorded(planned, twins, log, self.there, self.seed, self.questions), twins


Made = dict[tuple[str, bool, int, int | None], tuple[RecordedRun, Script, Twins]]
"""The last runs of an audit."""
_made: Made = {}
"""Of a process that works for one audit."""


def _once(planned: ReleaseRequest, run: AuditRun, made: Made) -> tuple[RecordedRun, Script, Twins]:
    key = (run.attempt.attack, run.there, run.seed, run.questions)
    if key not in made:
        if len(made) >= _KEPT:
            made.clear()
        made[key] = run.on(planned)
    return made[key]


@dataclass(frozen=True)
class Recorder:
    """Records what releases are answered."""

    planned: ReleaseRequest
    progress: Progress
    workers: ProcessPoolExecutor | None
    processes: int
    made: Made = field(default_factory=dict)

    def whole(self, run: AuditRun) -> RecordedRun:
        """Return what a whole run is answered."""
        return _once(self.planned, run, self.made)[0]

    def again(self, run: AuditRun, with_: bool, seeds: Sequence[int]) -> list[RecordedRun]:
        """Return what the questions of a run are answered on one of the two logs, with each of these seeds."""
        if self.workers is None or len(seeds) < _AT_ONCE:
            return _again(self.planned, run, with_, seeds, self.made)
        plan_of_all = self.planned.to_json()
        futures = [
            self.workers.submit(_again_of, plan_of_all, run, with_, part) for part in parts_of(seeds, self.processes)
        ]
        found: list[RecordedRun] = []
        for i, future in enumerate(futures):
            found += future.result()
            self.progress(f"{run.attempt.attack}, {'with' if with_ else 'without'} it", (i + 1) / len(futures))
        return found


def parts_of(seeds: Sequence[int], processes: int) -> list[Sequence[int]]:
    """The seeds in parts, a few for each process."""
    step = max(1, min(250, -(-len(seeds) // (2 * processes))))
    return [seeds[i : i + step] for i in range(0, len(seeds), step)]


def _again_of(planned: dict[str, Any], run: AuditRun, with_: bool, seeds: Sequence[int]) -> list[RecordedRun]:
    """In another process, which gets the plan as JSON."""
    return _again(ReleaseRequest.from_json(planned), run, with_, seeds, _made)


def _again(planned: ReleaseRequest, run: AuditRun, with_: bool, seeds: Sequence[int], made: Made) -> list[RecordedRun]:
    _, script, twins = _once(planned, run, made)
    log = run.attempt.with_ if with_ else run.attempt.without
    return [asked_again(planned, twins, script, log, with_, seed) for seed in seeds]

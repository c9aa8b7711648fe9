"""A training of TraVaG under way, and the map from cases to columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences
from veilog.methods.method import Request
from veilog.methods.travag.networks import Weights
from veilog.methods.travag.settings import Configuration, Networks, TrainingState
from veilog.privacy.histograms import Assign
from veilog.privacy.mechanisms.mechanism import NoisedSteps
from veilog.privacy.training.gradients import Training

Checkpoint = Callable[[TrainingState], None]

_BLOCK = 1024
_SHOWN = 200


@dataclass(frozen=True, eq=False)
class Run:
    """A training under way. The weights and moments change in place."""

    state: TrainingState
    networks: Networks
    training: Training
    request: Request
    checkpoint: Checkpoint
    rng: np.random.Generator

    @property
    def configuration(self) -> Configuration:
        return self.state.configuration

    @property
    def weights(self) -> Weights:
        return self.state.weights

    @property
    def moments(self) -> Weights:
        return self.state.moments

    def part(self, name: str) -> int | None:
        """The place in the plan of the steps of this name."""
        names = [part.name for part in self.state.plan]
        return names.index(name) if name in names else None

    def left(self, part: int) -> int:
        return self.training.plan[part].steps - self.training.taken[part]

    def now(self) -> TrainingState:
        return replace(self.state, taken=self.training.taken)

    def tell(self, what: str) -> None:
        told_steps(self.request, what, sum(self.training.taken), self.state.steps)


def told_steps(request: Request, what: str, done: int, steps: int) -> None:
    """Tell the progress of a training, a few hundred times in all."""
    if done % max(1, steps // _SHOWN) == 0:
        request.progress(f"{what}, step {done:,} of {steps:,}", done / steps)


def check_resumed(state: TrainingState, request: Request, configuration: Configuration) -> None:
    asked = (configuration, request.as_published, str(request.epsilon), str(request.delta))
    if (state.configuration, state.as_published, state.epsilon, state.delta) != asked:
        raise ParameterError("travag-run-of-other-configuration", parameter="checkpoint")


def clips_of(configuration: Configuration, plan: tuple[NoisedSteps, ...]) -> tuple[float, ...]:
    clips = {"autoencoder": configuration.autoencoder_clip, "critic": configuration.critic_clip}
    return tuple(clips[part.name] for part in plan)


def nearest(columns: Sequences, *, dropped: bool) -> Assign:
    """Maps each sequence, by itself, to the column nearest by normalised Levenshtein distance (the first of equally
    near ones); or with ``dropped`` to its own column or none."""
    code = {label: i for i, label in enumerate(columns.labels)}
    known = columns.code_tuples()
    place = {sequence: i for i, sequence in enumerate(known)}

    def assign(sequences: Sequences) -> IntArray:
        # a label that no column has gets a code of its own: it is unlike every other
        recode = [code.get(label, len(code) + i) for i, label in enumerate(sequences.labels)]
        coded = [tuple(recode[c] for c in sequence) for sequence in sequences.code_tuples()]
        if dropped:
            return np.array([place.get(sequence, -1) for sequence in coded], dtype=np.int64)
        found = np.empty(len(coded), dtype=np.int64)
        for start in range(0, len(coded), _BLOCK):
            block = coded[start : start + _BLOCK]
            distances = cdist(block, known, scorer=Levenshtein.normalized_distance, dtype=np.float64)
            found[start : start + len(block)] = distances.argmin(axis=1)
        return found

    return assign

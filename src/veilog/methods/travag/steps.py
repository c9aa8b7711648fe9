"""Steps of TraVaG's training: losses, derivatives, queries, and columns of cases.

Everything here sees raw cases only inside the factor functions given to :meth:`Training.step`, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import AnyArray, IntArray
from veilog.logs.variants import Sequences
from veilog.methods.method import Request
from veilog.methods.travag.networks import Network, Sums, Weights, adam, backward, forward, gradients, rmsprop, sigmoid
from veilog.methods.travag.settings import Configuration, Networks, TrainingState
from veilog.privacy.histograms import Assign
from veilog.privacy.mechanisms.clipped_sums import SAFE, Factors, Outer, clipped_sums
from veilog.privacy.mechanisms.gradients import Training

Checkpoint = Callable[[TrainingState], None]

_LEAST_SLOPE = 1e-12
_BLOCK = 1024
_SHOWN = 200


@dataclass(eq=False)
class Trainer:
    """A training under way. The weights and moments of its state change in place."""

    state: TrainingState
    request: Request
    checkpoint: Checkpoint
    rng: np.random.Generator
    training: Training | None = None
    """Source of noised gradients; the authors' program has none."""

    def __post_init__(self) -> None:
        state = self.state
        self.configuration, self.weights, self.moments = state.configuration, state.weights, state.moments
        self.networks, self.taken = Networks.of(len(state.columns), state.configuration), list(state.taken)

    def steps(self, part: int, what: str) -> Iterator[int]:
        """Yield the number of steps taken, for each step of a part that is left.

        A checkpoint is made before each step and, of the last part, after the last one. Progress is reported a few
        hundred times in all.
        """
        while self.taken[part] < self.state.plan[part].steps:
            self.checkpoint(self._current_state())
            self.taken[part] += 1
            yield self.taken[part]
            done, steps = sum(self.taken), self.state.steps
            if done % max(1, steps // _SHOWN) == 0:
                self.request.progress(f"{what}, step {done:,} of {steps:,}", done / steps)
        if part == len(self.taken) - 1:
            self.checkpoint(self._current_state())

    def _current_state(self) -> TrainingState:
        return replace(self.state, taken=tuple(self.taken))

    def noised(self, part: int, factors: Callable[[IntArray], Factors]) -> Sums:
        """Ask the curator for a noised sum of gradients."""
        assert self.training is not None
        return [*self.training.step(part, factors)]

    def noise(self, rows: int) -> AnyArray:
        """Return rows of noise, from which the generator makes codes."""
        return normals(self.rng, rows, self.configuration)

    def generated(self, rows: int) -> AnyArray:
        """Return rows that generator and decoder make up: values in [0, 1] a column."""
        code = forward(self.networks.generator, self.weights, self.noise(rows)).output
        logits = forward(self.networks.decoder, self.weights, code).output
        return softmax(logits) if self.configuration.drawn else sigmoid(logits)


def _logit_gradients(logits: AnyArray, columns: IntArray, drawn: bool, stepwise: bool) -> AnyArray:
    """Return the derivative of each row's reconstruction loss by the decoder's logits.

    The loss is the mean binary cross-entropy over the columns (sigmoid), or the cross-entropy (softmax). ``stepwise``
    takes the derivative by the sigmoid times the sigmoid's own, in single precision: where the sigmoid is rounded to 1
    or tiny nothing is learned, however wrong it is.
    """
    if drawn:
        by = softmax(logits)
        by[np.arange(len(columns)), columns] -= 1
        return by
    by = sigmoid(logits)
    slope = (1 - by) * by if stepwise else None
    by[np.arange(len(columns)), columns] -= 1
    by /= logits.shape[1]
    if slope is not None:
        by *= slope / np.maximum(slope, _LEAST_SLOPE)
    return by


def softmax(logits: AnyArray) -> AnyArray:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    result: AnyArray = shifted
    return result


def autoencoder_factors(
    networks: Networks, weights: Weights, columns: IntArray, drawn: bool, *, stepwise: bool = False
) -> tuple[list[Outer], list[Outer]]:
    """Return the factors of the encoder's and the decoder's layers for each row."""
    code = forward(networks.encoder, weights, columns)
    decoded = forward(networks.decoder, weights, code.output)
    by_logits = _logit_gradients(decoded.output, columns, drawn, stepwise)
    in_decoder, by_code = backward(networks.decoder, weights, decoded, by_logits, to_input=True)
    in_encoder, _ = backward(networks.encoder, weights, code, by_code)
    return in_encoder, in_decoder


def autoencoder_step(trainer: Trainer, part: int, batch: float, *, encoder_free: bool) -> None:
    """Take one noised step of the autoencoder.

    Certified, encoder and decoder are clipped and noised as one vector. With ``encoder_free``, as the paper has it, the
    encoder learns from the raw rows of the sample.
    """
    networks, configuration, weights = trainer.networks, trainer.configuration, trainer.weights
    free: list[Sums] = []

    def factors(columns: IntArray) -> Factors:
        in_encoder, in_decoder = autoencoder_factors(networks, weights, columns, configuration.drawn)
        if encoder_free:
            free.append(gradients(in_encoder))
            return [[term] for term in in_decoder]
        return [[term] for term in (*in_encoder, *in_decoder)]

    sums = trainer.noised(part, factors)
    rate, scale = configuration.autoencoder_learning_rate, 1 / batch
    in_encoder_, in_decoder_ = (free[0], sums) if encoder_free else (sums[:2], sums[2:])
    adam(networks.encoder, weights, trainer.moments, in_encoder_, rate, scale=scale)
    adam(networks.decoder, weights, trainer.moments, in_decoder_, rate, scale=scale)


def normals(rng: np.random.Generator, rows: int, configuration: Configuration) -> AnyArray:
    return rng.standard_normal((rows, configuration.noise), dtype=np.float32)


def critic_factors(critic: Network, weights: Weights, rows: AnyArray, sign: float) -> list[Outer]:
    """Return the factors of the critic's layers for ``sign`` times each row's score."""
    trace = forward(critic, weights, rows)
    return backward(critic, weights, trace, np.full_like(trace.output, sign))[0]


def critic_step(trainer: Trainer, part: int, batch: float, *, pairs: bool) -> None:
    """Take one noised step of the critic on ``D(made up) - D(real)`` (Wasserstein).

    With ``pairs``, as the paper has it, each sampled case is set against a made-up row of its own. The two terms are
    clipped together. Otherwise only the real rows' gradients are asked of the curator. Those of made-up rows depend on
    no case, so they are clipped alike for balance, but need no noise.
    """
    critic, configuration, weights = trainer.networks.critic, trainer.configuration, trainer.weights

    def factors(columns: IntArray) -> Factors:
        real = critic_factors(critic, weights, columns, -1)
        if not pairs:
            return [[term] for term in real]
        made_up = critic_factors(critic, weights, trainer.generated(len(columns)), 1)
        return [[one, other] for one, other in zip(real, made_up, strict=True)]

    sums = trainer.noised(part, factors)
    if not pairs:
        rows = configuration.free_batch
        made_up = critic_factors(critic, weights, trainer.generated(rows), 1)
        against = clipped_sums([[term] for term in made_up], configuration.critic_clip, np.ones(rows))
        for layer, others in zip(sums, against, strict=True):
            for array, other in zip(layer, others, strict=True):
                array += other * (batch / rows)
    rate, bound = configuration.gan_learning_rate, configuration.critic_bound
    rmsprop(critic, weights, trainer.moments, sums, rate, scale=1 / batch, bound=bound)


def count_step(trainer: Trainer, part: int) -> None:
    """Take one noised step of a linear critic, ``D(x) = x . w``.

    On one-hot rows every function is linear, so hidden layers add nothing but coordinates to be noised. The gradient of
    ``-D(real)`` is then minus the row itself, whatever w is. So the noised sums of all steps add up to the number of
    cases of each column, with Gaussian noise.
    """
    size = trainer.networks.critic.widths[0]

    def factors(columns: IntArray) -> Factors:
        return [[Outer(columns, np.full((len(columns), 1), -1.0), size, bias=False)]]

    ((weight, _),) = trainer.noised(part, factors)
    seen = trainer.moments.setdefault("critic.seen", np.zeros(size))
    seen -= weight[:, 0] / min(1.0, trainer.configuration.critic_clip * SAFE)
    trainer.moments.setdefault("critic.steps", np.zeros(1))[0] += 1


def generator_step(trainer: Trainer, rows: int) -> None:
    """Take one step of the generator up the critic's score, without any case."""
    networks, weights, drawn = trainer.networks, trainer.weights, trainer.configuration.drawn
    code = forward(networks.generator, weights, trainer.noise(rows))
    decoded = forward(networks.decoder, weights, code.output)
    made_up = softmax(decoded.output) if drawn else sigmoid(decoded.output)
    score = forward(networks.critic, weights, made_up)
    by_score = np.full_like(score.output, -1 / rows)
    _, by_rows = backward(networks.critic, weights, score, by_score, to_input=True)
    if drawn:
        by_logits = made_up * (by_rows - (by_rows * made_up).sum(axis=1, keepdims=True))
    else:
        by_logits = by_rows * made_up * (1 - made_up)
    _, by_code = backward(networks.decoder, weights, decoded, by_logits, to_input=True)
    factors, _ = backward(networks.generator, weights, code, by_code)
    rmsprop(networks.generator, weights, trainer.moments, gradients(factors), trainer.configuration.gan_learning_rate)


def clips_of(state: TrainingState) -> tuple[float, ...]:
    """Return the clipping bounds of the parts of the plan."""
    configuration = state.configuration
    clips = {"autoencoder": configuration.autoencoder_clip, "critic": configuration.critic_clip}
    return tuple(clips[part.name] for part in state.plan)


def nearest(columns: Sequences, *, dropped: bool) -> Assign:
    """Return a map of each sequence, by itself, to its nearest column.

    The normalised Levenshtein distance decides, and the first of equally near ones. With ``dropped``, a sequence has
    its own column or none.
    """
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

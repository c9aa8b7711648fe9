"""TraVaG as its authors' program trains it, in the places where that is not what the paper says.

Facts were read in the program (wangelik/ganTraVaS, 2022): its autoencoder runs with the private path off, so what is
clipped is the gradient of a whole minibatch, which bounds no case; rows are drawn with replacement where its accountant
takes each by chance. Nothing can be derived, and noise is of floats: there is no guarantee that it would have to keep.

All is in single precision, in which a sigmoid above 16.6 is 1: the decoder's noised weights wander there, nothing is
learned from such an output, and of several the first by name is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from veilog._typing import AnyArray, IntArray
from veilog.methods.method import Request
from veilog.methods.travag.networks import Network, Sums, Weights, backward, forward, gradients
from veilog.methods.travag.optimisers import adam, rmsprop
from veilog.methods.travag.run import Checkpoint, told_steps
from veilog.methods.travag.settings import Networks, TrainingState
from veilog.methods.travag.training import autoencoder_factors, generated, generator_step, normals
from veilog.privacy.training.sums import Outer, squared_norms

REASONS = (
    "travag-columns-raw",
    "travag-program-clips-batches",
    "travag-program-with-replacement",
    "travag-settings-by-results",
)
_SEEN = 0.99
"""Of the cases, those that are trained on."""


@dataclass(eq=False)
class ProgramRun:
    """A training of the program under way. The weights and moments of its state change in place."""

    state: TrainingState
    networks: Networks
    request: Request
    checkpoint: Checkpoint
    rng: np.random.Generator
    rows: IntArray
    """The column of every case that is trained on."""
    taken: list[int] = field(default_factory=list)

    @staticmethod
    def of(
        state: TrainingState,
        networks: Networks,
        counts: IntArray,
        request: Request,
        checkpoint: Checkpoint,
        rng: np.random.Generator,
    ) -> ProgramRun:
        """Return the run of a state; a run that goes on holds back other cases than before."""
        rows = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        rows = rows[: max(1, int(_SEEN * len(rows)))]
        return ProgramRun(state, networks, request, checkpoint, rng, rows, list(state.taken))

    def step(self, part: int) -> bool:
        """Whether a step of this part is left; then it counts as taken."""
        if self.taken[part] >= self.state.plan[part].steps:
            return False
        self.checkpoint(self.now())
        self.taken[part] += 1
        told_steps(self.request, self.state.plan[part].name, sum(self.taken), self.state.steps)
        return True

    def now(self) -> TrainingState:
        return replace(self.state, taken=tuple(self.taken))


def learn_as_programmed(run: ProgramRun) -> None:
    """Take the steps that are left: of the autoencoder, then of critic and generator."""
    configuration = run.state.configuration
    while run.step(0):
        _autoencoder_step(run)
    while run.step(1):
        rows = _critic_step(run)
        if (run.taken[1] - 1) % configuration.critic_steps_per_generator == 0:
            generator_step(run.networks, configuration, run.state.weights, run.state.moments, rows, run.rng)
    run.checkpoint(run.now())


def _autoencoder_step(run: ProgramRun) -> None:
    """Encoder and decoder learn from the mean gradient of rows drawn with replacement; the decoder's is clipped as a
    whole and gets noise, the encoder learns slower."""
    networks, configuration = run.networks, run.state.configuration
    weights, moments = run.state.weights, run.state.moments
    batch = int(configuration.autoencoder_batch)
    columns = run.rows[run.rng.integers(len(run.rows), size=batch)]
    in_encoder, in_decoder = autoencoder_factors(networks, weights, columns, configuration.drawn, stepwise=True)
    rate = configuration.autoencoder_learning_rate
    adam(networks.encoder, weights, moments, gradients(in_encoder), rate / batch, scale=1 / batch, corrected=True)
    sums, clip = gradients(in_decoder), configuration.autoencoder_clip
    norm = np.sqrt(sum(float(np.vdot(part, part)) for layer in sums for part in layer)) / batch
    _scaled(sums, min(1.0, clip / (norm + 1e-6)) / batch)
    _noised(sums, clip * configuration.autoencoder_noise / batch, run.rng)
    adam(networks.decoder, weights, moments, sums, rate, corrected=True)


def _critic_step(run: ProgramRun) -> int:
    """The critic learns to tell rows drawn with replacement from made-up ones, a pair's gradient clipped at a time;
    return how many rows there were."""
    networks, configuration = run.networks, run.state.configuration
    weights, batch = run.state.weights, configuration.critic_batch
    number = int(run.rng.binomial(len(run.rows), min(1.0, batch / len(run.rows))))
    if not number:
        return 1
    real = run.rows[run.rng.integers(len(run.rows), size=number)]
    made_up = generated(networks, configuration, weights, normals(run.rng, number, configuration))
    of_real, of_made_up = (
        _of_critic(networks.critic, weights, rows, sign) for rows, sign in ((real, -1.0), (made_up, 1.0))
    )
    pairs = [[one, other] for one, other in zip(of_real, of_made_up, strict=True)]
    clip = configuration.critic_clip
    by = np.minimum(1.0, clip / (np.sqrt(squared_norms(pairs)) + 1e-6)).astype(np.float32)[:, None]
    sums = _clipped(of_real, by)
    for layer, others in zip(sums, _clipped(of_made_up, by), strict=True):
        for part, other in zip(layer, others, strict=True):
            part += other
    _noised(sums, clip * configuration.critic_noise, run.rng)
    rate, bound = configuration.gan_learning_rate, configuration.critic_bound
    rmsprop(networks.critic, weights, run.state.moments, sums, rate, scale=1 / batch, bound=bound)
    return number


def _of_critic(critic: Network, weights: Weights, rows: AnyArray, sign: float) -> list[Outer]:
    trace = forward(critic, weights, rows)
    return backward(critic, weights, trace, np.full_like(trace.output, sign))[0]


def _clipped(factors: list[Outer], by: AnyArray) -> Sums:
    return gradients([replace(term, errors=term.errors * by) for term in factors])


def _scaled(sums: Sums, by: float) -> None:
    for layer in sums:
        for part in layer:
            part *= by


def _noised(sums: Sums, deviation: float, rng: np.random.Generator) -> None:
    for layer in sums:
        for part in layer:
            part += rng.standard_normal(part.shape, dtype=np.float32) * np.float32(deviation)

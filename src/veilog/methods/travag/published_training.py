"""TraVaG as in its paper and as in its authors' program; neither has a guarantee.

The paper's columns are raw and its encoder is free. Facts of the program were read in it (wangelik/ganTraVaS, 2022).
Its autoencoder runs with the private path off, so the gradient of a whole minibatch is clipped, which bounds no case.
Rows are drawn with replacement where its accountant takes each by chance. Its noise is of floats: there is no guarantee
that it would have to keep. All is in single precision, in which a sigmoid above 16.6 is 1. The decoder's noised weights
wander there, nothing is learned from such an output, and of several the first by name is drawn.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from veilog._typing import AnyArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods.method import Request
from veilog.methods.travag.networks import Sums, adam, gradients, rmsprop
from veilog.methods.travag.private_training import MOST_PARAMETERS
from veilog.methods.travag.settings import Configuration, Networks, TrainingState
from veilog.methods.travag.steps import (
    Checkpoint,
    Trainer,
    autoencoder_factors,
    autoencoder_step,
    clips_of,
    critic_factors,
    critic_step,
    generator_step,
    nearest,
)
from veilog.privacy.account.budgets import parse_epsilon
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.accountant import composed_epsilon
from veilog.privacy.mechanisms.clipped_sums import Outer, squared_norms
from veilog.privacy.mechanisms.mechanism import NoisedSteps

_REASONS = ("travag-encoder-raw",)
_REASONS_OF_PROGRAM = ("travag-program-clips-batches", "travag-program-with-replacement")
_SEEN = 0.99
"""Share of the cases that the program trains on."""


def train_as_published(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    resume: TrainingState | None,
    checkpoint: Checkpoint,
) -> TrainingState:
    """Train by the configuration, and return the state after the last step."""
    rng = noise.generator(curator.randomness)
    reasons = _REASONS_OF_PROGRAM if configuration.of_program else _REASONS
    for reason in ("travag-columns-raw", *reasons, "travag-settings-by-results"):
        variants = curator.peek(reason)
    _refuse(variants, request, configuration)
    plan = plan_as_published(configuration, variants.cases)
    state = resume or TrainingState.new(configuration, request, variants, variants.cases, plan, rng)
    state.check_resumed(request, configuration)
    if state.cases != variants.cases or not _equal(state.columns, variants.sequences):
        raise ParameterError("travag-run-of-other-log", parameter="checkpoint")
    spent = composed_epsilon(plan[1:] if configuration.of_program else plan, request.delta)
    code = "travag-cost-of-critic" if configuration.of_program else "travag-cost-of-noised-steps"
    request.remark(Message(code, spent=spent, delta=float(request.delta), epsilon=float(request.epsilon)))
    if configuration.of_program:
        _learn_as_programmed(Trainer(state, request, checkpoint, rng), variants.counts)
        return state
    training = curator.training(
        nearest(state.columns, dropped=True),
        len(state.columns),
        plan,
        clips_of(state),
        parse_epsilon(Fraction(spent) * Fraction(1_000_001, 1_000_000)),
        request.delta,
        taken=state.taken,
        apart=True,
        purpose="gradients-of-decoder-and-critic",
    )
    _learn(Trainer(state, request, checkpoint, rng, training))
    return state


def _refuse(variants: Variants, request: Request, configuration: Configuration) -> None:
    """Refuse a log that cannot be trained on, and budgets other than configured."""
    if len(variants) < 2:
        raise ParameterError("travag-single-variant", parameter="log")
    parameters = Networks.of(len(variants), configuration).parameters
    if parameters > MOST_PARAMETERS:
        raise ParameterError(
            "travag-networks-too-large",
            parameter="log",
            columns=len(variants),
            parameters=parameters,
            most_parameters=MOST_PARAMETERS,
        )
    epsilon, delta = configuration.nominal
    if (request.epsilon, request.delta) != (Fraction(epsilon), Fraction(delta)):
        raise ParameterError(
            "travag-configuration-budget-differs",
            parameter="configuration",
            name=configuration.name,
            epsilon=epsilon,
            delta=delta,
        )


def plan_as_published(configuration: Configuration, cases: int) -> tuple[NoisedSteps, ...]:
    """Return the noised steps of both networks, each of which counts."""
    c = configuration
    for batch in (c.autoencoder_batch, c.critic_batch):
        if batch > cases:
            raise ParameterError(
                "travag-batch-above-log", parameter="configuration", name=c.name, batch=batch, cases=cases
            )
    return (
        NoisedSteps("autoencoder", c.autoencoder_batch / cases, c.autoencoder_noise, c.autoencoder_steps),
        NoisedSteps("critic", c.critic_batch / cases, c.critic_noise, c.critic_steps),
    )


def _equal(one: Sequences, other: Sequences) -> bool:
    return (
        one.labels == other.labels
        and np.array_equal(one.codes, other.codes)
        and np.array_equal(one.offsets, other.offsets)
    )


def _learn(trainer: Trainer) -> None:
    configuration = trainer.configuration
    for _ in trainer.steps(0, "autoencoder"):
        autoencoder_step(trainer, 0, configuration.autoencoder_batch, encoder_free=True)
    for taken in trainer.steps(1, "critic and generator"):
        critic_step(trainer, 1, configuration.critic_batch, pairs=True)
        if taken % configuration.critic_steps_per_generator == 0:
            generator_step(trainer, int(configuration.critic_batch))


# The authors' program -------------------------------------------------------------------------------------------------


def _learn_as_programmed(trainer: Trainer, counts: IntArray) -> None:
    """Take the steps that are left; a resumed run holds back other cases than before."""
    rows = trainer.rng.permutation(np.repeat(np.arange(len(counts)), counts))
    rows = rows[: max(1, int(_SEEN * len(rows)))]
    for _ in trainer.steps(0, "autoencoder"):
        _program_autoencoder_step(trainer, rows)
    for taken in trainer.steps(1, "critic"):
        number = _program_critic_step(trainer, rows)
        if (taken - 1) % trainer.configuration.critic_steps_per_generator == 0:
            generator_step(trainer, number)


def _program_autoencoder_step(trainer: Trainer, rows: IntArray) -> None:
    """Take one step of encoder and decoder by rows drawn with replacement.
    Both learn from the mean gradient. The decoder's is clipped as a whole and gets noise; the encoder learns slower."""
    networks, configuration = trainer.networks, trainer.configuration
    weights, moments = trainer.weights, trainer.moments
    batch = int(configuration.autoencoder_batch)
    columns = rows[trainer.rng.integers(len(rows), size=batch)]
    in_encoder, in_decoder = autoencoder_factors(networks, weights, columns, configuration.drawn, stepwise=True)
    rate = configuration.autoencoder_learning_rate
    adam(networks.encoder, weights, moments, gradients(in_encoder), rate / batch, scale=1 / batch, corrected=True)
    sums, clip = gradients(in_decoder), configuration.autoencoder_clip
    norm = np.sqrt(sum(float(np.vdot(part, part)) for layer in sums for part in layer)) / batch
    for part in (part for layer in sums for part in layer):
        part *= min(1.0, clip / (norm + 1e-6)) / batch
    _add_noise(sums, clip * configuration.autoencoder_noise / batch, trainer.rng)
    adam(networks.decoder, weights, moments, sums, rate, corrected=True)


def _program_critic_step(trainer: Trainer, rows: IntArray) -> int:
    """Teach the critic to distinguish drawn from made-up rows; return their number.
    Rows are drawn with replacement, and a pair's gradient is clipped at a time."""
    critic, configuration = trainer.networks.critic, trainer.configuration
    weights, batch = trainer.weights, configuration.critic_batch
    number = int(trainer.rng.binomial(len(rows), min(1.0, batch / len(rows))))
    if not number:
        return 1
    real = rows[trainer.rng.integers(len(rows), size=number)]
    of_real = critic_factors(critic, weights, real, -1.0)
    of_made_up = critic_factors(critic, weights, trainer.generated(number), 1.0)
    pairs = [[one, other] for one, other in zip(of_real, of_made_up, strict=True)]
    clip = configuration.critic_clip
    by = np.minimum(1.0, clip / (np.sqrt(squared_norms(pairs)) + 1e-6)).astype(np.float32)[:, None]
    sums = _clip_sums(of_real, by)
    for layer, others in zip(sums, _clip_sums(of_made_up, by), strict=True):
        for part, other in zip(layer, others, strict=True):
            part += other
    _add_noise(sums, clip * configuration.critic_noise, trainer.rng)
    rate, bound = configuration.gan_learning_rate, configuration.critic_bound
    rmsprop(critic, weights, trainer.moments, sums, rate, scale=1 / batch, bound=bound)
    return number


def _clip_sums(factors: list[Outer], by: AnyArray) -> Sums:
    return gradients([replace(term, errors=term.errors * by) for term in factors])


def _add_noise(sums: Sums, deviation: float, rng: np.random.Generator) -> None:
    for layer in sums:
        for part in layer:
            part += rng.standard_normal(part.shape, dtype=np.float32) * np.float32(deviation)

"""TraVaG as published: raw columns and a free encoder. Nothing can be derived for it.

With the settings of its authors' program the steps are those of :mod:`veilog.methods.travag.program`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods.method import Request
from veilog.methods.travag.networks import Weights, initial
from veilog.methods.travag.plan import check_memory, plan_as_published
from veilog.methods.travag.program import REASONS, ProgramRun, learn_as_programmed
from veilog.methods.travag.run import Checkpoint, Run, check_resumed, clips_of, nearest
from veilog.methods.travag.settings import Configuration, Networks, TrainingState
from veilog.methods.travag.training import autoencoder_step, critic_step, generator_step
from veilog.privacy.account.accounting import parse_epsilon
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.training.accounting import composed_epsilon
from veilog.privacy.training.gradients import Training

_REASONS = (
    "travag-columns-raw",
    "travag-encoder-raw",
    "travag-settings-by-results",
)


def train_as_published(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    resume: TrainingState | None,
    checkpoint: Checkpoint,
) -> TrainingState:
    """Train as the configuration says, and return the state after the last step."""
    rng = noise.generator(curator.randomness)
    variants, state = _begun(curator, request, configuration, resume, rng)
    networks = Networks.of(len(variants), configuration)
    if configuration.of_program:
        request.remark(_cost_of_critic(state, request))
        learn_as_programmed(ProgramRun.of(state, networks, variants.counts, request, checkpoint, rng))
    else:
        _learn(Run(state, networks, _training(curator, request, state), request, checkpoint, rng))
    return state


def _begun(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    resume: TrainingState | None,
    rng: np.random.Generator,
) -> tuple[Variants, TrainingState]:
    """The raw log, and the state of a run that starts or goes on."""
    for reason in REASONS if configuration.of_program else _REASONS:
        variants = curator.peek(reason)
    if len(variants) < 2:
        raise ParameterError("travag-single-variant", parameter="log")
    check_memory(len(variants), configuration)
    _check_named(configuration, request)
    plan = plan_as_published(configuration, variants.cases)
    if resume is None:
        weights: Weights = {}
        for network in Networks.of(len(variants), configuration).all():
            weights.update(initial(network, rng))
        state = TrainingState(
            configuration=configuration,
            as_published=True,
            epsilon=str(request.epsilon),
            delta=str(request.delta),
            columns=variants.sequences,
            column_counts=np.zeros(len(variants), dtype=np.int64),
            cases=variants.cases,
            charges=(),
            plan=plan,
            taken=(0,) * len(plan),
            weights=weights,
            moments={},
        )
    else:
        check_resumed(resume, request, configuration)
        state = resume
        if state.cases != variants.cases or not _equal(state.columns, variants.sequences):
            raise ParameterError("travag-run-of-other-log", parameter="checkpoint")
    return variants, state


def _cost_of_critic(state: TrainingState, request: Request) -> Message:
    """What the steps of the program's critic would cost if all else were granted."""
    spent = composed_epsilon(state.plan[1:], request.delta)
    return Message("travag-cost-of-critic", spent=spent, delta=float(request.delta), epsilon=float(request.epsilon))


def _training(curator: Curator, request: Request, state: TrainingState) -> Training:
    configuration, plan = state.configuration, state.plan
    spent = composed_epsilon(plan, request.delta)
    request.remark(
        Message("travag-cost-of-noised-steps", spent=spent, delta=float(request.delta), epsilon=float(request.epsilon))
    )
    return curator.training(
        nearest(state.columns, dropped=True),
        len(state.columns),
        plan,
        clips_of(configuration, plan),
        parse_epsilon(Fraction(spent) * Fraction(1_000_001, 1_000_000)),
        request.delta,
        taken=state.taken,
        apart=True,
        purpose="gradients-of-decoder-and-critic",
    )


def _equal(one: Sequences, other: Sequences) -> bool:
    return (
        one.labels == other.labels
        and np.array_equal(one.codes, other.codes)
        and np.array_equal(one.offsets, other.offsets)
    )


def _check_named(configuration: Configuration, request: Request) -> None:
    epsilon, delta = configuration.nominal
    if (request.epsilon, request.delta) != (Fraction(epsilon), Fraction(delta)):
        raise ParameterError(
            "travag-configuration-budget-differs",
            parameter="configuration",
            name=configuration.name,
            epsilon=epsilon,
            delta=delta,
        )


def _learn(run: Run) -> None:
    configuration, networks = run.configuration, run.networks
    part, critic = 0, 1
    while run.left(part):
        run.checkpoint(run.now())
        autoencoder_step(
            networks,
            configuration,
            run.training,
            part,
            run.weights,
            run.moments,
            configuration.autoencoder_batch,
            encoder_free=True,
        )
        run.tell("autoencoder")
    batch = configuration.critic_batch
    while run.left(critic):
        run.checkpoint(run.now())
        critic_step(networks, configuration, run.training, critic, run.weights, run.moments, batch, run.rng, pairs=True)
        if run.training.taken[critic] % configuration.critic_steps_per_generator == 0:
            generator_step(networks, configuration, run.weights, run.moments, int(batch), run.rng)
        run.tell("critic and generator")
    run.checkpoint(run.now())

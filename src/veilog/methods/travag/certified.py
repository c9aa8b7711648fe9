"""TraVaG, certified: released columns, noised gradients of the critic, and all else from what was released."""

from __future__ import annotations

import numpy as np

from veilog._typing import FloatArray
from veilog.messages import Message
from veilog.methods.method import Request
from veilog.methods.standing_out import remark_rare_variants
from veilog.methods.travag.free import fit_autoencoder, fit_generator, shares
from veilog.methods.travag.networks import Weights, initial
from veilog.methods.travag.plan import Budget, columns_that_fit, plan_certified
from veilog.methods.travag.run import Checkpoint, Run, check_resumed, clips_of, nearest
from veilog.methods.travag.settings import Configuration, Networks, TrainingState
from veilog.methods.travag.training import autoencoder_step, count_step, critic_step, generator_step
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import KTruncatedGeometric


def begin(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    resume: TrainingState | None,
    checkpoint: Checkpoint,
) -> Run | None:
    """Ask for the number of cases and the columns, and pay for the noised steps; or go on with a run that did."""
    budget = Budget.of(request.epsilon, request.delta, configuration)
    rng = noise.generator(curator.randomness)
    if resume is None:
        asked = _asked(curator, request, configuration, budget, rng)
        if asked is None:
            return None
        state, networks = asked
    else:
        check_resumed(resume, request, configuration)
        state, networks = resume, Networks.of(len(resume.columns), configuration)
        curator.carry(state.charges)
    training = curator.training(
        nearest(state.columns, dropped=configuration.outside == "drop"),
        len(state.columns),
        state.plan,
        clips_of(configuration, state.plan),
        budget.gradients,
        budget.gradients_delta,
        taken=state.taken,
        purpose="gradients-of-critic" if len(state.plan) == 1 else "gradients-of-autoencoder-and-critic",
    )
    return Run(state, networks, training, request, checkpoint, rng)


def _asked(
    curator: Curator, request: Request, configuration: Configuration, budget: Budget, rng: np.random.Generator
) -> tuple[TrainingState, Networks] | None:
    """What a run begins with: the noisy number of cases, and networks for the variants that can be drawn; None where
    there are no such variants."""
    request.progress("asking for the variants to learn", None)
    cases, dropped = max(1, curator.count(budget.count)), configuration.outside == "drop"
    remark_rare_variants(request, KTruncatedGeometric.of(budget.columns, budget.columns_delta), dropped=dropped)
    found = curator.partitions(budget.columns, budget.columns_delta, purpose="variants-that-can-be-drawn")
    if len(found) == 0:
        return None
    most = columns_that_fit(len(found), configuration)
    if most < len(found):
        request.remark(Message("travag-variants-capped", number=len(found), most=most))
        kept = np.zeros(len(found), dtype=bool)
        kept[found.by_frequency()[:most]] = True
        found = found.with_counts(np.where(kept, found.counts, 0))
    networks = Networks.of(len(found), configuration)
    weights: Weights = {}
    for network in networks.all():
        weights.update(initial(network, rng))
    plan = plan_certified(configuration, budget, cases)
    state = TrainingState(
        configuration=configuration,
        as_published=False,
        epsilon=str(request.epsilon),
        delta=str(request.delta),
        columns=found.sequences,
        column_counts=found.counts,
        cases=cases,
        charges=curator.charges,
        plan=plan,
        taken=(0,) * len(plan),
        weights=weights,
        moments={},
    )
    if configuration.free_autoencoder_steps:
        fit_autoencoder(networks, configuration, weights, {}, rng)
    return state, networks


def learn(run: Run) -> None:
    configuration, networks = run.configuration, run.networks
    part = run.part("autoencoder")
    if part is not None:
        while run.left(part):
            run.checkpoint(run.now())
            batch = run.state.plan[part].rate * run.state.cases
            autoencoder_step(
                networks, configuration, run.training, part, run.weights, run.moments, batch, encoder_free=False
            )
            run.tell("autoencoder")
        fit_autoencoder(networks, configuration, run.weights, {}, run.rng)
    part = run.part("critic")
    assert part is not None
    if configuration.critic_hidden:
        _learn_with_deep_critic(run, part)
        return
    while run.left(part):
        run.checkpoint(run.now())
        count_step(networks, configuration, run.training, part, run.moments)
        run.tell("critic")
    run.checkpoint(run.now())
    run.request.progress("generator, from released numbers", None)
    fit_generator(networks, configuration, run.weights, {}, _target(run, part), run.rng)


def _target(run: Run, part: int) -> FloatArray:
    """The shares of the columns by all that is released."""
    state, budget = run.state, Budget.of(run.request.epsilon, run.request.delta, run.configuration)
    by_columns = 2**0.5 / float(budget.columns)
    if "critic.seen" not in run.moments:
        return shares(state.column_counts, None, by_columns, 0.0)
    steps, counts = run.moments["critic.steps"][0], run.moments["critic.seen"]
    plan = state.plan[part]
    seen = counts / (steps * plan.rate)
    variance = len(counts) * (plan.noise_multiplier / plan.rate) ** 2 / steps
    by_count = 2 / float(budget.count) ** 2
    total = float(seen.sum())
    if run.configuration.outside != "drop":  # otherwise the count is of other cases
        total = (total * by_count + state.cases * variance) / (by_count + variance)
    return shares(state.column_counts, seen, by_columns, total)


def _learn_with_deep_critic(run: Run, part: int) -> None:
    """The paper's critic on noised gradients, after a start from the columns' noisy counts."""
    configuration, networks = run.configuration, run.networks
    if run.training.taken[part] == 0:
        start = shares(run.state.column_counts, None, 0.0, 0.0)
        fit_generator(networks, configuration, run.weights, {}, start, run.rng)
    batch = run.state.plan[part].rate * run.state.cases
    while run.left(part):
        run.checkpoint(run.now())
        critic_step(networks, configuration, run.training, part, run.weights, run.moments, batch, run.rng, pairs=False)
        if run.training.taken[part] % configuration.critic_steps_per_generator == 0:
            generator_step(networks, configuration, run.weights, run.moments, configuration.free_batch, run.rng)
        run.tell("critic and generator")
    run.checkpoint(run.now())

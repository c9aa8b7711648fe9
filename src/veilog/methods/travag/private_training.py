"""Certified TraVaG: released columns, noised gradients, and post-processing.

The shares of epsilon and delta, and the noise of the steps, are decided before the log is touched, from public numbers
only. The columns and their noisy counts are answers of the curator, and so are the noised gradients. All else is
computed from them: post-processing, which uses no epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog._typing import AnyArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.messages import Message
from veilog.methods.method import Request, advised, as_asked
from veilog.methods.thresholds import remark_rare_variants
from veilog.methods.travag.networks import adam, backward, forward, gradients
from veilog.methods.travag.settings import Configuration, Networks, TrainingState
from veilog.methods.travag.steps import (
    Checkpoint,
    Trainer,
    autoencoder_factors,
    autoencoder_step,
    clips_of,
    count_step,
    critic_step,
    generator_step,
    nearest,
    softmax,
)
from veilog.privacy.account.budgets import parse_share
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.accountant import calibrate, smallest_epsilon
from veilog.privacy.mechanisms.mechanism import LARGEST_NOISE, KTruncatedGeometric, NoisedSteps
from veilog.privacy.mechanisms.noise import tsgd_bound

MOST_COLUMNS = 4096
"""Most columns that are trained on, the most frequent ones by noisy counts; the rest is outside."""
MOST_PARAMETERS = 200_000_000
"""Most parameters; with moments and gradients they take about 4 GB."""
_CHECK = 25
_DRAWS = 8192
_SURE = 0.99
"""Probability of giving back each column at which the autoencoder has learned them."""


@dataclass(frozen=True)
class Budget:
    """Shares of epsilon and delta in a certified training."""

    count: Fraction
    columns: Fraction
    gradients: Fraction
    columns_delta: Fraction
    gradients_delta: Fraction

    @staticmethod
    def of(epsilon: Fraction, delta: Fraction, configuration: Configuration) -> Budget:
        count = epsilon * parse_share(configuration.count_share, "count_share")
        given = configuration.columns_share
        columns = epsilon * (_columns_share(delta) if given is None else parse_share(given, "columns_share"))
        if count + columns >= epsilon:
            raise ParameterError(
                "travag-shares-leave-nothing", parameter="columns_share", value=1 - configuration.count_share
            )
        for_columns = delta * parse_share(configuration.columns_delta_share, "columns_delta_share")
        return Budget(count, columns, epsilon - count - columns, for_columns, delta - for_columns)


def _columns_share(delta: Fraction) -> Fraction:
    """Return the columns' share of epsilon, 0.5 at delta 0.01 to 0.85 at 1e-6.
    Their threshold grows like ``ln(1/delta)``, the gradients' noise like its root. So the smaller delta is, the more
    the columns need (found on the open logs)."""
    share = 0.325 + 0.038 * math.log(1 / float(delta))
    return Fraction(round(100 * min(0.9, max(0.4, share))), 100)


def _proportional_steps(configuration: Configuration, cases: int) -> tuple[NoisedSteps, ...]:
    """Return the steps with noise in the right proportion.
    With much noise a part costs about ``rate**2 steps / noise**2`` of what all cost; the shares are of that. Rates
    follow from the noisy ``cases``."""
    c, parts = configuration, []
    of_critic = 1 - c.autoencoder_share if c.autoencoder_steps else 1.0
    for name, given, batch, steps, share in (
        ("autoencoder", c.autoencoder_rate, c.autoencoder_batch, c.autoencoder_steps, c.autoencoder_share),
        ("critic", c.critic_rate, c.critic_batch, c.critic_steps, of_critic),
    ):
        if steps:
            rate = given if given is not None else min(1.0, batch / max(1, cases))
            parts.append(NoisedSteps(name, rate, rate * (steps / share) ** 0.5, steps))
    return tuple(parts)


def refuse_unaffordable(epsilon: Fraction, delta: Fraction, configuration: Configuration) -> None:
    """Refuse a budget whose noise exceeds the largest log, before anything is asked.

    The error names an epsilon that is enough. Nothing can be learned if no variant's count can pass the threshold of
    ``partitions``. Nor can it if the noise on the share of a single column is as large as the log.
    """
    budget, largest = Budget.of(epsilon, delta, configuration), configuration.largest_log
    parts = _proportional_steps(configuration, largest)
    critic = parts[-1]
    # noise multipliers at which a column's count would be known up to `largest`, all steps together
    limit = min(largest * critic.rate * critic.steps**0.5, LARGEST_NOISE)
    limit *= min(part.noise_multiplier for part in parts) / critic.noise_multiplier
    for_gradients = Fraction(smallest_epsilon(parts, budget.gradients_delta, limit))
    enough = for_gradients * epsilon / budget.gradients

    def hides_all(asked: Fraction) -> bool:
        return tsgd_bound(asked * budget.columns / epsilon, budget.columns_delta) >= largest

    if epsilon >= enough and not hides_all(epsilon):
        return
    low = high = max(enough, epsilon)
    while hides_all(high):
        low, high = high, high * 2
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if hides_all(middle) else (low, middle)
    raise ParameterError(
        "travag-no-step-affordable",
        parameter="epsilon",
        advice=advised(float(high) * 1.06, "epsilon-enough-to-learn"),
        as_asked=as_asked(epsilon),
        delta=float(delta),
        largest=largest,
    )


def columns_that_fit(columns: int, configuration: Configuration) -> int:
    """Return the most columns that are trained on: a public number."""
    fit = min(columns, MOST_COLUMNS)
    while Networks.of(fit, configuration).parameters > MOST_PARAMETERS:
        fit = fit * 9 // 10
    return fit


def train_certified(
    curator: Curator,
    request: Request,
    configuration: Configuration,
    resume: TrainingState | None,
    checkpoint: Checkpoint,
) -> TrainingState | None:
    """Ask for cases and columns and take the noised steps, or resume such a run.

    Return the state after the last step; None where there are no variants that can be drawn.
    """
    if resume is None:
        refuse_unaffordable(request.epsilon, request.delta, configuration)
    budget = Budget.of(request.epsilon, request.delta, configuration)
    rng = noise.generator(curator.randomness)
    if resume is None:
        state = _start_state(curator, request, configuration, budget, rng)
        if state is None:
            return None
    else:
        resume.check_resumed(request, configuration)
        curator.carry(resume.charges)
        state = resume
    training = curator.training(
        nearest(state.columns, dropped=configuration.outside == "drop"),
        len(state.columns),
        state.plan,
        clips_of(state),
        budget.gradients,
        budget.gradients_delta,
        taken=state.taken,
        purpose="gradients-of-critic" if len(state.plan) == 1 else "gradients-of-autoencoder-and-critic",
    )
    trainer = Trainer(state, request, checkpoint, rng, training)
    if resume is None:
        fit_autoencoder(trainer)
    _learn(trainer, budget)
    return state


def _start_state(
    curator: Curator, request: Request, configuration: Configuration, budget: Budget, rng: np.random.Generator
) -> TrainingState | None:
    """Return the state that a run begins with; None without variants to draw.
    It has the noisy number of cases, and networks for the variants that can be drawn."""
    request.progress("asking for the variants to learn", None)
    cases, dropped = max(1, curator.count(budget.count)), configuration.outside == "drop"
    remark_rare_variants(request, KTruncatedGeometric.of(budget.columns, budget.columns_delta), dropped=dropped)
    found = request.obeying(
        curator.partitions(budget.columns, budget.columns_delta, purpose="variants-that-can-be-drawn")
    )
    if len(found) == 0:
        return None
    most = columns_that_fit(len(found), configuration)
    if most < len(found):
        request.remark(Message("travag-variants-capped", number=len(found), most=most))
        kept = np.zeros(len(found), dtype=bool)
        kept[found.by_frequency()[:most]] = True
        found = found.with_counts(np.where(kept, found.counts, 0))
    plan = calibrate(_proportional_steps(configuration, cases), budget.gradients, budget.gradients_delta)
    return TrainingState.new(configuration, request, found, cases, plan, rng, curator.charges)


def _learn(trainer: Trainer, budget: Budget) -> None:
    configuration, cases, plan = trainer.configuration, trainer.state.cases, trainer.state.plan
    *autoencoder, critic = range(len(plan))
    for part in autoencoder:
        for _ in trainer.steps(part, "autoencoder"):
            autoencoder_step(trainer, part, plan[part].rate * cases, encoder_free=False)
        fit_autoencoder(trainer)
    if not configuration.critic_hidden:
        for _ in trainer.steps(critic, "critic"):
            count_step(trainer, critic)
        trainer.request.progress("generator, from released numbers", None)
        fit_generator(trainer, _target(trainer, critic, budget))
        return
    # the paper's critic on noised gradients, after a start from the columns' noisy counts
    if not trainer.taken[critic]:
        fit_generator(trainer, shares(trainer.state.column_counts, None, 0.0, 0.0))
    for taken in trainer.steps(critic, "critic and generator"):
        critic_step(trainer, critic, plan[critic].rate * cases, pairs=False)
        if taken % configuration.critic_steps_per_generator == 0:
            generator_step(trainer, configuration.free_batch)


def _target(trainer: Trainer, part: int, budget: Budget) -> FloatArray:
    """Return the shares of the columns by all that is released."""
    state, moments = trainer.state, trainer.moments
    by_columns = 2**0.5 / float(budget.columns)
    if "critic.seen" not in moments:
        return shares(state.column_counts, None, by_columns, 0.0)
    steps, counts = moments["critic.steps"][0], moments["critic.seen"]
    plan = state.plan[part]
    seen = counts / (steps * plan.rate)
    variance = len(counts) * (plan.noise_multiplier / plan.rate) ** 2 / steps
    by_count = 2 / float(budget.count) ** 2
    total = float(seen.sum())
    if trainer.configuration.outside != "drop":  # otherwise the count is of other cases
        total = (total * by_count + state.cases * variance) / (by_count + variance)
    return shares(state.column_counts, seen, by_columns, total)


# Steps on released numbers --------------------------------------------------------------------------------------------


def fit_autoencoder(trainer: Trainer) -> None:
    """Teach the autoencoder to give back every column.

    The columns are released, so this needs no case.
    """
    networks, configuration, weights = trainer.networks, trainer.configuration, trainer.weights
    columns, moments = np.arange(networks.encoder.widths[0]), dict[str, AnyArray]()
    rows, rate = min(len(columns), configuration.free_batch), configuration.autoencoder_learning_rate
    for step in range(configuration.free_autoencoder_steps):
        batch = columns if rows == len(columns) else trainer.rng.choice(columns, rows, replace=False)
        in_encoder, in_decoder = autoencoder_factors(networks, weights, batch, configuration.drawn)
        adam(networks.encoder, weights, moments, gradients(in_encoder), rate, scale=1 / rows)
        adam(networks.decoder, weights, moments, gradients(in_decoder), rate, scale=1 / rows)
        if step % _CHECK == _CHECK - 1 and _reconstruct(trainer, columns).min() > _SURE:
            return


def _reconstruct(trainer: Trainer, columns: IntArray) -> AnyArray:
    """Return the probability that decoder and encoder give back each column."""
    networks, weights = trainer.networks, trainer.weights
    parts = []
    for start in range(0, len(columns), 1024):
        block = columns[start : start + 1024]
        code = forward(networks.encoder, weights, block).output
        parts.append(softmax(forward(networks.decoder, weights, code).output)[np.arange(len(block)), block])
    return np.concatenate(parts)


def shares(column_counts: IntArray, seen: AnyArray | None, count_spread: float, cases: float) -> AnyArray:
    """Return the share of cases in each column, from all that was released about them.

    ``column_counts`` (of partitions) are cases of exactly the column's variant, up to noise of deviation
    ``count_spread``. ``seen`` (of the critic's gradients) are the cases of the column, those that were counted in it
    because it is their nearest included, up to independent noise. Least squares: the closest to ``seen`` that is
    nowhere less than ``column_counts`` minus their noise, and that adds up to ``cases``.
    """
    least = np.maximum(column_counts - count_spread, 0.0)
    if seen is None:
        return np.asarray(column_counts / column_counts.sum())
    total = max(cases, float(least.sum()), 1.0)
    low, high = float((seen - least).min()) - total, float((seen - least).max()) + total
    for _ in range(100):  # the sum falls with what is taken off every column
        middle = (low + high) / 2
        if np.maximum(seen - middle, least).sum() > total:
            low = middle
        else:
            high = middle
    found = np.maximum(seen - high, least)
    return np.asarray(found / max(float(found.sum()), 1e-12))


def fit_generator(trainer: Trainer, target: AnyArray) -> None:
    """Teach the generator to give the columns with the shares ``target``.

    The critic of a divergence between two known distributions is known in closed form: for the Kullback-Leibler
    divergence of the target r from the made-up f it scores column j with ``r_j / f_j``. The generator goes up that
    score.
    """
    networks, configuration, weights = trainer.networks, trainer.configuration, trainer.weights
    goal, moments, rows = target.astype(np.float32), dict[str, AnyArray](), configuration.free_batch
    for step in range(configuration.free_generator_steps):
        code = forward(networks.generator, weights, trainer.noise(rows))
        decoded = forward(networks.decoder, weights, code.output)
        chances = softmax(decoded.output)
        made = chances.mean(axis=0, dtype=np.float64)
        score = (-goal / np.maximum(made, 1e-9) / rows).astype(np.float32)
        by_logits = chances * (score - (chances @ score)[:, None])
        in_decoder, by_code = backward(networks.decoder, weights, decoded, by_logits, to_input=True)
        in_generator, _ = backward(networks.generator, weights, code, by_code)
        rate = configuration.gan_learning_rate * (1 - step / configuration.free_generator_steps)
        adam(networks.generator, weights, moments, gradients(in_generator), rate)
        if configuration.fit_decoder:
            adam(networks.decoder, weights, moments, gradients(in_decoder), rate / 5)

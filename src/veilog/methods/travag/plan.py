"""What TraVaG's training may spend and on what: decided before the log is touched, from public numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from veilog.errors import ParameterError
from veilog.methods.method import advised, as_asked
from veilog.methods.travag.settings import Configuration, Networks
from veilog.privacy.account.accounting import parse_share
from veilog.privacy.mechanisms.mechanism import LARGEST_NOISE, NoisedSteps
from veilog.privacy.mechanisms.noise import tsgd_bound
from veilog.privacy.training.accounting import calibrated, smallest_epsilon

MOST_COLUMNS = 4096
"""Certified, the most frequent columns (by noisy counts) up to so many are trained on; the rest is outside."""
_MOST_PARAMETERS = 200_000_000
"""With moments and gradients about 4 GB."""


@dataclass(frozen=True)
class Budget:
    """How a certified training shares epsilon and delta."""

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
    """The columns' share of epsilon. Their threshold grows like ``ln(1/delta)``, the gradients' noise like its root, so
    the smaller delta is, the more the columns need: 0.5 at 0.01, 0.85 at 1e-6 (found on the open logs)."""
    share = 0.325 + 0.038 * math.log(1 / float(delta))
    return Fraction(round(100 * min(0.9, max(0.4, share))), 100)


def _uncalibrated(configuration: Configuration, autoencoder_rate: float, critic_rate: float) -> tuple[NoisedSteps, ...]:
    """The steps with noise in the right proportion. In the regime of much noise a part costs about
    ``rate**2 steps / noise**2`` of what all cost; the shares are of that."""
    critic_part = 1 - configuration.autoencoder_share if configuration.autoencoder_steps else 1.0
    parts = []
    if configuration.autoencoder_steps:
        spread = autoencoder_rate * (configuration.autoencoder_steps / configuration.autoencoder_share) ** 0.5
        parts.append(NoisedSteps("autoencoder", autoencoder_rate, spread, configuration.autoencoder_steps))
    spread = critic_rate * (configuration.critic_steps / critic_part) ** 0.5
    parts.append(NoisedSteps("critic", critic_rate, spread, configuration.critic_steps))
    return tuple(parts)


def plan_certified(configuration: Configuration, budget: Budget, cases: int) -> tuple[NoisedSteps, ...]:
    """The noised steps, calibrated so that they cost the gradients' share; rates follow from the noisy ``cases``."""
    return calibrated(_rates(configuration, cases), budget.gradients, budget.gradients_delta)


def _rates(configuration: Configuration, cases: int) -> tuple[NoisedSteps, ...]:
    def rate(given: float | None, batch: float) -> float:
        return given if given is not None else min(1.0, batch / max(1, cases))

    return _uncalibrated(
        configuration,
        rate(configuration.autoencoder_rate, configuration.autoencoder_batch),
        rate(configuration.critic_rate, configuration.critic_batch),
    )


def refuse_unaffordable(epsilon: Fraction, delta: Fraction, configuration: Configuration) -> None:
    """Refuse, before anything is asked, a budget at which noise exceeds the largest log expected; says what is enough.

    Nothing can be learned where no variant's count can pass the threshold of ``partitions``, or where the noise on the
    share of a single column is as large as the log.
    """
    budget, largest = Budget.of(epsilon, delta, configuration), configuration.largest_log
    parts = _rates(configuration, largest)
    critic = parts[-1]
    # noise multipliers at which a column's count would be known up to `largest`, all steps together
    limit = min(largest * critic.rate * critic.steps**0.5, LARGEST_NOISE)
    limit *= min(part.noise_multiplier for part in parts) / critic.noise_multiplier
    for_gradients = Fraction(smallest_epsilon(parts, budget.gradients_delta, limit))
    enough = for_gradients * epsilon / budget.gradients
    threshold = tsgd_bound(budget.columns, budget.columns_delta)
    if threshold < largest and epsilon >= enough:
        return
    low = high = max(enough, epsilon)
    while tsgd_bound(high * budget.columns / epsilon, budget.columns_delta) >= largest:
        low, high = high, high * 2
    for _ in range(20):
        middle = (low + high) / 2
        if tsgd_bound(middle * budget.columns / epsilon, budget.columns_delta) >= largest:
            low = middle
        else:
            high = middle
    raise ParameterError(
        "travag-no-step-affordable",
        parameter="epsilon",
        advice=advised(
            float(high) * 1.06,
            "epsilon-enough-to-learn",
        ),
        as_asked=as_asked(epsilon),
        delta=float(delta),
        largest=largest,
    )


def plan_as_published(configuration: Configuration, cases: int) -> tuple[NoisedSteps, ...]:
    """Return the noised steps of both networks, each of which counts."""
    for batch in (configuration.autoencoder_batch, configuration.critic_batch):
        if batch > cases:
            raise ParameterError(
                "travag-batch-above-log",
                parameter="configuration",
                name=configuration.name,
                batch=batch,
                cases=cases,
            )
    return (
        NoisedSteps(
            "autoencoder",
            configuration.autoencoder_batch / cases,
            configuration.autoencoder_noise,
            configuration.autoencoder_steps,
        ),
        NoisedSteps(
            "critic", configuration.critic_batch / cases, configuration.critic_noise, configuration.critic_steps
        ),
    )


def check_memory(columns: int, configuration: Configuration) -> None:
    """Refuse networks that would not fit into memory."""
    parameters = _parameters(columns, configuration)
    if parameters > _MOST_PARAMETERS:
        raise ParameterError(
            "travag-networks-too-large",
            parameter="log",
            columns=columns,
            parameters=parameters,
            most_parameters=_MOST_PARAMETERS,
        )


def columns_that_fit(columns: int, configuration: Configuration) -> int:
    """How many columns are trained on at most: a public number."""
    fit = min(columns, MOST_COLUMNS)
    while _parameters(fit, configuration) > _MOST_PARAMETERS:
        fit = fit * 9 // 10
    return fit


def _parameters(columns: int, configuration: Configuration) -> int:
    return sum(network.parameters for network in Networks.of(columns, configuration).all())

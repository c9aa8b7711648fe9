"""The steps of TraVaG's training: each loss, its derivative, and which gradients are asked of the curator.

Everything here sees raw cases only inside the factor functions given to :meth:`Training.step`, row by row.
"""

from __future__ import annotations

import numpy as np

from veilog._typing import AnyArray, IntArray
from veilog.methods.travag.networks import Sums, Weights, backward, forward, gradients, sigmoid
from veilog.methods.travag.optimisers import adam, rmsprop
from veilog.methods.travag.settings import Configuration, Networks
from veilog.privacy.training.gradients import Training
from veilog.privacy.training.sums import SAFE, Factors, Outer, clipped_sums

_LEAST_SLOPE = 1e-12


def _by_logits(logits: AnyArray, columns: IntArray, drawn: bool, stepwise: bool) -> AnyArray:
    """The derivative of each row's reconstruction loss by the decoder's output before its last activation: of the mean
    binary cross-entropy over the columns (sigmoid), or of the cross-entropy (softmax).

    ``stepwise`` takes the derivative by the sigmoid times the sigmoid's own, in single precision: where the sigmoid is
    rounded to 1 or tiny nothing is learned, however wrong it is.
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
    """Of each row, the factors of the encoder's and the decoder's layers."""
    code = forward(networks.encoder, weights, columns)
    decoded = forward(networks.decoder, weights, code.output)
    by_logits = _by_logits(decoded.output, columns, drawn, stepwise)
    in_decoder, by_code = backward(networks.decoder, weights, decoded, by_logits, to_input=True)
    assert by_code is not None
    in_encoder, _ = backward(networks.encoder, weights, code, by_code)
    return in_encoder, in_decoder


def autoencoder_step(
    networks: Networks,
    configuration: Configuration,
    training: Training,
    part: int,
    weights: Weights,
    moments: Weights,
    batch: float,
    *,
    encoder_free: bool,
) -> None:
    """One noised step of the autoencoder. Certified, encoder and decoder are clipped and noised as one vector; with
    ``encoder_free``, as the paper has it, the encoder learns from the raw rows of the sample."""
    free: list[Sums] = []

    def factors(columns: IntArray) -> Factors:
        in_encoder, in_decoder = autoencoder_factors(networks, weights, columns, configuration.drawn)
        if encoder_free:
            free.append(gradients(in_encoder))
            return [[term] for term in in_decoder]
        return [[term] for term in (*in_encoder, *in_decoder)]

    sums = training.step(part, factors)
    rate, scale = configuration.autoencoder_learning_rate, 1 / batch
    in_encoder_, in_decoder_ = (free[0], sums) if encoder_free else (sums[:2], sums[2:])
    adam(networks.encoder, weights, moments, in_encoder_, rate, scale=scale)
    adam(networks.decoder, weights, moments, in_decoder_, rate, scale=scale)


def generated(networks: Networks, configuration: Configuration, weights: Weights, noise: AnyArray) -> AnyArray:
    """What decoder and generator make of rows of noise: values in [0, 1] a column."""
    code = forward(networks.generator, weights, noise).output
    logits = forward(networks.decoder, weights, code).output
    return softmax(logits) if configuration.drawn else sigmoid(logits)


def normals(rng: np.random.Generator, rows: int, configuration: Configuration) -> AnyArray:
    return rng.standard_normal((rows, configuration.noise), dtype=np.float32)


def critic_step(
    networks: Networks,
    configuration: Configuration,
    training: Training,
    part: int,
    weights: Weights,
    moments: Weights,
    batch: float,
    rng: np.random.Generator,
    *,
    pairs: bool,
) -> None:
    """One noised step of the critic on ``D(made up) - D(real)`` (Wasserstein loss).

    With ``pairs``, as the paper has it, each sampled case is set against a made-up row of its own and the two terms
    are clipped together. Otherwise only the real rows' gradients are asked of the curator; those of made-up rows
    depend on no case, so they are clipped alike for balance, but need no noise.
    """
    critic = networks.critic

    def of(rows: AnyArray, sign: float) -> list[Outer]:
        trace = forward(critic, weights, rows)
        return backward(critic, weights, trace, np.full_like(trace.output, sign))[0]

    def factors(columns: IntArray) -> Factors:
        real = of(columns, -1)
        if not pairs:
            return [[term] for term in real]
        made_up = generated(networks, configuration, weights, normals(rng, len(columns), configuration))
        return [[one, other] for one, other in zip(real, of(made_up, 1), strict=True)]

    sums = training.step(part, factors)
    if not pairs:
        rows = configuration.free_batch
        made_up = generated(networks, configuration, weights, normals(rng, rows, configuration))
        against = clipped_sums([[term] for term in of(made_up, 1)], configuration.critic_clip, np.ones(rows))
        for (weight, bias), (other, other_bias) in zip(sums, against, strict=True):
            weight += other * (batch / rows)
            bias += other_bias * (batch / rows)
    rate, bound = configuration.gan_learning_rate, configuration.critic_bound
    rmsprop(critic, weights, moments, sums, rate, scale=1 / batch, bound=bound)


def count_step(
    networks: Networks, configuration: Configuration, training: Training, part: int, moments: Weights
) -> None:
    """One noised step of a linear critic, ``D(x) = x . w``.

    On one-hot rows every function is linear, so hidden layers add nothing but coordinates to be noised. The gradient
    of ``-D(real)`` is then minus the row itself, whatever w is: the noised sums of all steps can be added up, and
    what they add up to is how many cases each column has, with Gaussian noise.
    """
    columns_ = networks.critic.widths[0]

    def factors(columns: IntArray) -> Factors:
        return [[Outer(columns, np.full((len(columns), 1), -1.0), columns_, bias=False)]]

    ((weight, _),) = training.step(part, factors)
    seen = moments.setdefault("critic.seen", np.zeros(columns_))
    seen -= weight[:, 0] / min(1.0, configuration.critic_clip * SAFE)
    moments.setdefault("critic.steps", np.zeros(1))[0] += 1


def generator_step(
    networks: Networks,
    configuration: Configuration,
    weights: Weights,
    moments: Weights,
    rows: int,
    rng: np.random.Generator,
) -> None:
    """One step of the generator up the critic's score of what it makes. It touches no case."""
    code = forward(networks.generator, weights, normals(rng, rows, configuration))
    decoded = forward(networks.decoder, weights, code.output)
    made_up = softmax(decoded.output) if configuration.drawn else sigmoid(decoded.output)
    score = forward(networks.critic, weights, made_up)
    by_score = np.full_like(score.output, -1 / rows)
    _, by_rows = backward(networks.critic, weights, score, by_score, to_input=True)
    assert by_rows is not None
    if configuration.drawn:
        by_logits = made_up * (by_rows - (by_rows * made_up).sum(axis=1, keepdims=True))
    else:
        by_logits = by_rows * made_up * (1 - made_up)
    _, by_code = backward(networks.decoder, weights, decoded, by_logits, to_input=True)
    assert by_code is not None
    factors, _ = backward(networks.generator, weights, code, by_code)
    rmsprop(networks.generator, weights, moments, gradients(factors), configuration.gan_learning_rate)

"""What TraVaG learns from released numbers alone: steps that cost nothing, because they touch no case.

The columns and their noisy counts are answers of the curator, and so are noised gradients; whatever is computed from
them is post-processing.
"""

from __future__ import annotations

import numpy as np

from veilog._typing import AnyArray, IntArray
from veilog.methods.travag.networks import Weights, backward, forward, gradients
from veilog.methods.travag.optimisers import adam
from veilog.methods.travag.settings import Configuration, Networks
from veilog.methods.travag.training import autoencoder_factors, generated, normals, softmax

_CHECK = 25
_DRAWS = 8192
_SURE = 0.99
"""The autoencoder has learned the columns when each is given back with this probability."""


def fit_autoencoder(
    networks: Networks, configuration: Configuration, weights: Weights, moments: Weights, rng: np.random.Generator
) -> None:
    """Teach the autoencoder to give back every column: the columns are released, so this needs no case."""
    columns = np.arange(networks.encoder.widths[0])
    rows = min(len(columns), configuration.free_batch)
    for step in range(configuration.free_autoencoder_steps):
        batch = columns if rows == len(columns) else rng.choice(columns, rows, replace=False)
        in_encoder, in_decoder = autoencoder_factors(networks, weights, batch, configuration.drawn)
        rate = configuration.autoencoder_learning_rate
        adam(networks.encoder, weights, moments, gradients(in_encoder), rate, scale=1 / rows)
        adam(networks.decoder, weights, moments, gradients(in_decoder), rate, scale=1 / rows)
        if step % _CHECK == _CHECK - 1 and reconstructed(networks, weights, columns).min() > _SURE:
            return


def reconstructed(networks: Networks, weights: Weights, columns: IntArray) -> AnyArray:
    """With what probability decoder and encoder give back each column."""
    parts = []
    for start in range(0, len(columns), 1024):
        block = columns[start : start + 1024]
        code = forward(networks.encoder, weights, block).output
        parts.append(softmax(forward(networks.decoder, weights, code).output)[np.arange(len(block)), block])
    return np.concatenate(parts)


def shares(column_counts: IntArray, seen: AnyArray | None, count_spread: float, cases: float) -> AnyArray:
    """The share of the cases in each column, from all that was released about them.

    ``column_counts`` (of partitions) are cases of exactly the column's variant, up to noise of deviation
    ``count_spread``; ``seen`` (of the critic's gradients) are the cases of the column, those that were counted in it
    because it is their nearest included, up to independent noise. Least squares: the closest to ``seen``
    that is nowhere less than ``column_counts`` minus their noise, and that adds up to ``cases``.
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


def fit_generator(
    networks: Networks,
    configuration: Configuration,
    weights: Weights,
    moments: Weights,
    target: AnyArray,
    rng: np.random.Generator,
) -> float:
    """Teach the generator to give the columns with the shares ``target``; returns half the L1 distance that is left.

    The critic of a divergence between two known distributions is known in closed form: for the Kullback-Leibler
    divergence of the target r from the made-up f it scores column j with ``r_j / f_j``. The generator goes up that
    score.
    """
    goal = target.astype(np.float32)
    for step in range(configuration.free_generator_steps):
        rows = configuration.free_batch
        code = forward(networks.generator, weights, normals(rng, rows, configuration))
        decoded = forward(networks.decoder, weights, code.output)
        chances = softmax(decoded.output)
        made = chances.mean(axis=0, dtype=np.float64)
        score = (-goal / np.maximum(made, 1e-9) / rows).astype(np.float32)
        by_logits = chances * (score - (chances @ score)[:, None])
        in_decoder, by_code = backward(networks.decoder, weights, decoded, by_logits, to_input=True)
        assert by_code is not None
        in_generator, _ = backward(networks.generator, weights, code, by_code)
        rate = configuration.gan_learning_rate * (1 - step / configuration.free_generator_steps)
        adam(networks.generator, weights, moments, gradients(in_generator), rate)
        if configuration.fit_decoder:
            adam(networks.decoder, weights, moments, gradients(in_decoder), rate / 5)
    made = generated(networks, configuration, weights, normals(rng, _DRAWS, configuration)).mean(axis=0)
    return float(np.abs(made - target).sum() / 2)

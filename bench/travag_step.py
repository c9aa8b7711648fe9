"""A noised step of TraVaG's networks against a plain step of the same networks, and where its time goes.

    python bench/travag_step.py [--repeats 20]

Processor time of one thread each (set OPENBLAS_NUM_THREADS=1), median of the repeats, at the paper's sizes: n columns,
batches of 64 (autoencoder) and 128 (critic). The plain step computes the same losses on batches of the same size and
takes the same optimiser's step, with neither norms, clipping nor noise. Also: 100,000 draws from a generator.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from veilog.logs.variants import Sequences
from veilog.methods.travag import PUBLISHED, Trained, sample
from veilog.methods.travag.networks import Weights, backward, forward, gradients, initial
from veilog.methods.travag.optimisers import adam, rmsprop
from veilog.methods.travag.settings import CERTIFIED, Configuration, Networks
from veilog.methods.travag.training import (
    autoencoder_factors,
    autoencoder_step,
    critic_step,
    generated,
    normals,
)
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import NoisedSteps
from veilog.privacy.training.gradients import Training

CONFIGURATION = PUBLISHED["bpic13-1-1e-6"]
SIZES = {"sepsis": (846, 1050), "bpic13": (1511, 7554)}
CLIPS = (CONFIGURATION.autoencoder_clip, CONFIGURATION.critic_clip)


def median(run: Callable[[], object], repeats: int) -> float:
    """Median milliseconds of processor time."""
    run()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        run()
        times.append(1000 * (time.process_time() - started))
    return statistics.median(times)


def counts_of(columns: int, cases: int) -> np.ndarray:
    """Cases a column, as uneven as in a log."""
    shares = 1 / np.arange(1, columns + 1) ** 1.1
    return np.maximum(1, np.rint(cases * shares / shares.sum())).astype(np.int64)


def steps_of(columns: int, cases: int, repeats: int) -> list[str]:
    networks = Networks.of(columns, CONFIGURATION)
    rng = np.random.default_rng(0)
    weights: Weights = {}
    for network in networks.all():
        weights.update(initial(network, rng))
    counts = counts_of(columns, cases)
    plan = (
        NoisedSteps("autoencoder", 64 / counts.sum(), 6.0, 10**6),
        NoisedSteps("critic", 128 / counts.sum(), 4.0, 10**6),
    )
    training = Training(counts, plan, CLIPS, (0, 0), noise.seeded(0), apart=True)
    moments: Weights = {}
    chances = counts / counts.sum()

    def plain_autoencoder() -> None:
        rows = rng.choice(columns, 64, p=chances)
        encoder, decoder = autoencoder_factors(networks, weights, rows, False)
        adam(networks.encoder, weights, moments, gradients(encoder), 0.005, scale=1 / 64)
        adam(networks.decoder, weights, moments, gradients(decoder), 0.005, scale=1 / 64)

    def plain_critic() -> None:
        rows = rng.choice(columns, 128, p=chances)
        made_up = generated(networks, CONFIGURATION, weights, normals(rng, 128, CONFIGURATION))
        sums = None
        for inputs, sign in ((made_up, 1.0), (rows, -1.0)):
            trace = forward(networks.critic, weights, inputs)
            factors, _ = backward(networks.critic, weights, trace, np.full_like(trace.output, sign))
            if sums is None:
                sums = gradients(factors)
            else:
                for (weight, bias), (other, other_bias) in zip(sums, gradients(factors), strict=True):
                    weight += other
                    bias += other_bias
        assert sums is not None
        rmsprop(networks.critic, weights, moments, sums, 0.005, scale=1 / 128, bound=0.01)

    def noised_autoencoder() -> None:
        autoencoder_step(networks, CONFIGURATION, training, 0, weights, moments, 64, encoder_free=True)

    def noised_critic() -> None:
        critic_step(networks, CONFIGURATION, training, 1, weights, moments, 128, rng, pairs=True)

    lines = []
    for name, noised, plain, drawn in (
        ("autoencoder", noised_autoencoder, plain_autoencoder, networks.decoder.parameters),
        ("critic", noised_critic, plain_critic, networks.critic.parameters),
    ):
        room = np.empty(drawn, np.float32)
        one, other = median(noised, repeats), median(plain, repeats)
        normal = median(lambda: rng.standard_normal(out=room, dtype=np.float32), repeats)  # noqa: B023
        lines.append(
            f"| {columns} | {name} | {one:.1f} | {other:.1f} | {one / other:.2f} | {normal:.1f} | "
            f"{one - other - normal:.1f} | {drawn:,} |"
        )
    return lines


def drawing(columns: int, configuration: Configuration) -> float:
    """Seconds of processor time for 100,000 draws."""
    networks = Networks.of(columns, configuration)
    rng = np.random.default_rng(0)
    weights = {**initial(networks.generator, rng), **initial(networks.decoder, rng)}
    offsets = np.arange(columns + 1)
    known = Sequences(tuple(map(str, range(columns))), np.arange(columns, dtype=np.int32), offsets)
    trained = Trained(known, weights, configuration, 1)
    started = time.process_time()
    sample(trained, 100_000, rng)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    print("| n | step | noised, ms | plain, ms | ratio | of which noise | clipping and sampling | noised weights |")
    print("|---|---|---|---|---|---|---|---|")
    for columns, cases in SIZES.values():
        print("\n".join(steps_of(columns, cases, arguments.repeats)), flush=True)
    print("\n100,000 draws, seconds of processor time:")
    for columns, configuration in ((45, CERTIFIED), (150, CERTIFIED), (846, CONFIGURATION), (1511, CONFIGURATION)):
        print(f"- {columns} columns, {configuration.name}: {drawing(columns, configuration):.2f}", flush=True)


if __name__ == "__main__":
    main()

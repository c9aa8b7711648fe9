"""Drawing from a model: seconds for 100,000 cases, and time and memory of writing many.

    python bench/models.py [--cases 1000000]

The networks have the method's default sizes over as many variants as Sepsis (846) and BPIC13 (1511) have; their weights
are random, which changes nothing about the time. Beside it numpy's own draw from the same shares, as the baseline
that no network can reach.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from veilog.logs.variants import Sequences, Variants
from veilog.methods.travag.networks import initial
from veilog.methods.travag.settings import CERTIFIED, Networks, Trained
from veilog.privacy.curator import Curator
from veilog.training.model import Model

LENGTH = 15
ACTIVITIES = 16


def columns(number: int) -> Sequences:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, ACTIVITIES, size=(number, LENGTH)).astype(np.int32).reshape(-1)
    return Sequences(tuple(f"activity {c:02d}" for c in range(ACTIVITIES)), codes, np.arange(number + 1) * LENGTH)


def model(number: int) -> Model:
    networks = Networks.of(number, CERTIFIED)
    rng = np.random.default_rng(1)
    weights = {**initial(networks.generator, rng), **initial(networks.decoder, rng)}
    curator = Curator(Variants.from_dict({("a",): 1}))
    curator.partitions(1, "1e-6")
    return Model("travag", False, {}, Trained(columns(number), weights, CERTIFIED, 1000), curator.guarantee())


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds, the better of three runs."""
    found = []
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=1_000_000)
    cases = parser.parse_args().cases
    for number in (4, 846, 1511):
        trained = model(number)
        trained.sample(1000, seed=1)
        wall, cpu = seconds(lambda trained=trained: trained.sample(100_000, seed=1))
        shares = np.full(number, 1 / number)
        least, _ = seconds(lambda shares=shares: np.random.default_rng(1).multinomial(100_000, shares))
        print(f"{number} variants: 100,000 cases in {wall:.2f} s wall, {cpu:.2f} s CPU; multinomial {least:.4f} s")
    trained = model(846)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".parquet", ".csv", ".xes.gz"):
            target = Path(folder) / f"out{suffix}"
            wall, cpu = time.perf_counter(), time.process_time()
            trained.write(target, cases, seed=1)
            took, used = time.perf_counter() - wall, time.process_time() - cpu
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            size = target.stat().st_size / 1e6
            print(
                f"{cases:,} cases of {LENGTH} events to {suffix}: {took:.1f} s wall, {used:.1f} s CPU, {size:,.0f} MB, "
                f"highest memory {peak:,.0f} MB"
            )


if __name__ == "__main__":
    main()

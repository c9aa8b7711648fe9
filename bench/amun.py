"""Amun against Table 6 of its paper, its time on real logs, and how that grows with variants and with events.

    python bench/amun.py --logs FOLDER [--runs 10] [--part table speed growth]

Times are CPU seconds of a release whose log is in memory, and multiples of grouping the same log's cases into variants.
The growth is measured on simulated logs; the largest has the shape of BPIC19 (251,734 cases, 1.6 million events, 12,000
variants, a trace of 990 events).
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np

import veilog
from veilog.logs.eventlog import EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Sequences
from veilog.measures.directly_follows import frequency_emd, time_emd
from veilog.methods._events.assemble import Details, assembled
from veilog.methods._sampling.cases import copies_of_cases, sampled_counts
from veilog.methods._sampling.times import noisy_cases
from veilog.methods._sampling.transitions import annotated
from veilog.methods.amun.priors import Precision, epsilons_of, prior_knowledge
from veilog.privacy.account.guessing import epsilon_of
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise

MODES = ("sampling", "filtering", "oversampling")
ADVANTAGES = (0.2, 0.3, 0.4)
# (frequency EMD of the three modes, time EMD of the three modes, average epsilon), by guessing advantage
PUBLISHED = {
    "sepsis": (
        (56.84, 32.20, 427.64, 8.97, 4.37, 61.50, 1.31),
        (28.46, 67.97, 286.23, 6.35, 3.60, 32.93, 1.83),
        (43.38, 101.64, 232.50, 4.26, 6.48, 26.61, 2.37),
    ),
    "bpic2013_incidents": (
        (1131.91, 1053.45, 7613.27, 778.18, 811.51, 3343.92, 1.49),
        (840.55, 258.45, 5417.64, 592.36, 307.26, 2055.23, 1.99),
        (558.45, 2450.45, 4296.73, 486.86, 75.13, 1751.96, 2.44),
    ),
    "unrineweginfectie": (
        (6.53, 5.53, 66.00, 44.96, 39.34, 184.68, 2.87),
        (0.00, 2.87, 53.67, 28.12, 33.27, 103.67, 3.41),
        (1.47, 2.53, 47.00, 21.89, 26.35, 90.93, 3.84),
    ),
    "ccc19": (
        (12.78, 3.70, 30.81, 0.0, 0.0, 0.0, 0.23),
        (4.55, 2.23, 25.77, 0.0, 0.0, 0.0, 0.54),
        (5.54, 3.21, 16.64, 0.0, 0.0, 0.0, 0.85),
    ),
    "traffic_fines": (
        (1.64, 0.90, 33.50, 8250.42, 7253.29, 8627.86, 4.50),
        (0.61, 8.01, 25.51, 7767.32, 6720.80, 7081.06, 5.26),
        (0.00, 2951.50, 21.00, 7182.96, 12788.57, 7419.02, 5.28),
    ),
}
SHAPES = (  # cases, events, variants: first more events, then more variants
    (15_734, 100_000, 3_000),
    (62_934, 400_000, 3_000),
    (251_734, 1_600_000, 3_000),
    (251_734, 1_600_000, 750),
    (251_734, 1_600_000, 12_000),
)


def simulated(cases: int, events: int, variants: int, seed: int = 0) -> EventLog:
    """A log of so many cases, about so many events, and so many variants over 42 activities: few variants have most of
    the cases, rare ones are long, up to 990 events, and variants share prefixes and suffixes."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, variants + 1) ** 1.2
    counts = 1 + np.floor((cases - variants) * weights / weights.sum()).astype(np.int64)
    counts[0] += cases - counts.sum()
    rare = np.arange(variants) > variants // 20
    lengths = np.where(rare, np.minimum(4 + rng.lognormal(2.2, 0.8, variants), 990), 4 + rng.integers(0, 4, variants))
    lengths[-1] = 990
    body = (counts * lengths)[~rare].sum()
    lengths[~rare] *= max(0.5, (events - (counts * lengths)[rare].sum()) / body)
    successors = rng.integers(0, 40, (42, 4))
    known: set[tuple[int, ...]] = set()
    sequences = []
    for length in np.maximum(2, np.rint(lengths)).astype(int).tolist():
        word = (40,)
        while True:
            steps = np.minimum(rng.geometric(0.6, size=length) - 1, 3).tolist()
            walk = [40]
            for step in steps:
                walk.append(int(successors[walk[-1], step]))
            word = (*walk[: length - 1], 41)
            if word not in known:
                break
            length += 1
        known.add(word)
        sequences.append(word)
    owner = rng.permutation(np.repeat(np.arange(variants), counts))
    sizes = np.array([len(word) for word in sequences])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    offsets = np.concatenate([[0], np.cumsum(sizes[owner])])
    flat = np.concatenate([np.array(word, dtype=np.int32) for word in sequences])
    rows = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts[:-1][owner], sizes[owner])
    gaps = rng.lognormal(8, 2.5, len(rows)).astype(np.int64)
    gaps[offsets[:-1]] = rng.integers(0, 365 * 86_400, cases)
    sums = np.cumsum(gaps)
    before = np.concatenate([[0], sums])[offsets[:-1]]
    times = (sums - np.repeat(before, sizes[owner]) + 1_514_764_800) * 1_000_000
    labels = tuple(f"activity {i:02d}" for i in range(42))
    return assembled(Details(Sequences(labels, flat[rows], offsets), times), Metadata())


def distances(log: EventLog, runs: int, **parameters: object) -> tuple[float, float]:
    """Mean frequency and time EMD of seeded releases; (nan, nan) where a run released nothing."""
    pairs = []
    for seed in range(runs):
        try:
            released = veilog.release(log, "amun", as_published=True, seed=seed, **parameters).log
        except veilog.VeilogError:
            return np.nan, np.nan
        pairs.append((frequency_emd(log, released), time_emd(log, released)))
    frequency, months = np.mean(pairs, axis=0).tolist()
    return frequency, months


def tried(log: EventLog, runs: int, advantage: float) -> tuple[float, float, float, float]:
    """What may explain differences: the frequency EMD of oversampling at Proposition A.5's epsilon, with discrete noise
    and with real-valued noise rounded up; the time EMD of sampling with a quarter of the noise on times; and the mean
    epsilon of an event."""
    view, frame, _, _ = annotated(log, log.variants, Domain())
    known = prior_knowledge(view, advantage, Precision.of(1, 10))
    epsilons = epsilons_of(known.priors, advantage)
    over, upwards, quarter = [], [], []
    for seed in range(runs):
        source = noise.seeded(seed)
        rng = noise.generator(source)
        drawn = noise.discrete_laplace(epsilon_of(advantage), len(view.automaton), source)
        # The absolute value of Laplace noise, rounded up, is a geometric number plus one.
        rounded = 1 + noise.geometric(epsilon_of(advantage), len(view.automaton), source)
        for needed, found in ((np.abs(drawn), over), (rounded, upwards)):
            copies = copies_of_cases(view, sampled_counts(view, needed, rng), rng)
            cases, _ = noisy_cases(view, copies, known.ranges / epsilons, frame, source)
            found.append(frequency_emd(log, assembled(Details(cases), Metadata())))
        copies = copies_of_cases(view, sampled_counts(view, drawn, rng), rng)
        fewer = noisy_cases(view, copies, known.ranges / epsilons / 4, frame, source)
        quarter.append(time_emd(log, assembled(Details(*fewer), Metadata())))
    return float(np.mean(over)), float(np.mean(upwards)), float(np.mean(quarter)), float(epsilons.mean())


def table(folder: Path, runs: int) -> None:
    print("\n## Table 6 of the paper")
    for name, published in PUBLISHED.items():
        if not (folder / f"{name}.xes.gz").exists():
            print(f"\n{name}: its log is not there")
            continue
        log = veilog.read(folder / f"{name}.xes.gz")
        repeats = runs if len(log) < 100_000 else min(runs, 3)
        print(f"\n### {name}, means of {repeats} runs\n")
        print(
            "| advantage | mode | frequency | by equation (1) | published | time | by equation (1) | published |\n"
            "|---|---|---|---|---|---|---|---|"
        )
        others = []
        for advantage, figures in zip(ADVANTAGES, published, strict=True):
            for i, mode in enumerate(MODES):
                a, b = (
                    distances(log, repeats, mode=mode, guessing_advantage=advantage, prior=prior)
                    for prior in ("example", "equation")
                )
                print(
                    f"| {advantage} | {mode} | {a[0]:.2f} | {b[0]:.2f} | {figures[i]:.2f} "
                    f"| {a[1]:.2f} | {b[1]:.2f} | {figures[i + 3]:.2f} |",
                    flush=True,
                )
            others.append((advantage, figures[6], *tried(log, repeats, advantage)))
        print(
            "\n| advantage | mean epsilon (published) | oversampling at A.5's epsilon | quarter of the noise on times |"
        )
        print("|---|---|---|---|")
        for advantage, figure, over, quarter, mean in others:
            print(f"| {advantage} | {mean:.2f} ({figure:.2f}) | {over:.2f} | {quarter:.2f} |", flush=True)


def timed(log: EventLog, mode: str) -> tuple[float, float, float, veilog.Release]:
    started = time.process_time()
    log.variants_by(("concept:name",))
    baseline = time.process_time() - started
    assert len(log.variants)  # kept by the log: not part of the release below
    started, wall = time.process_time(), time.perf_counter()
    released = veilog.release(log, "amun", as_published=True, seed=1, mode=mode)
    return baseline, time.process_time() - started, time.perf_counter() - wall, released


def speed_row(name: str, log: EventLog) -> None:
    for mode in MODES:
        baseline, seconds, wall, released = timed(log, mode)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"| {name} | {log.cases.num_rows:,} | {len(log):,} | {len(log.variants):,} | {mode} | {seconds:.2f} "
            f"| {wall:.2f} | {seconds / baseline:.1f} | {released.variants.events:,} | {peak:,.0f} |",
            flush=True,
        )


def heading(title: str) -> None:
    print(f"\n## {title}\n")
    columns = ("log", "cases", "events", "variants", "mode", "CPU s", "wall s", "times grouping", "released", "peak MB")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--part", nargs="+", choices=("table", "speed", "growth"), default=("speed", "growth", "table"))
    arguments = parser.parse_args()
    folder = Path(arguments.logs)
    if "speed" in arguments.part:
        heading("Real logs")
        for name in PUBLISHED:
            if (folder / f"{name}.xes.gz").exists():
                speed_row(name, veilog.read(folder / f"{name}.xes.gz"))
    if "growth" in arguments.part:
        heading("Simulated logs")
        for shape in SHAPES:
            speed_row("simulated", simulated(*shape))
    if "table" in arguments.part:
        table(folder, arguments.runs)


if __name__ == "__main__":
    main()

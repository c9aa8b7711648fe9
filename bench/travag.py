"""TraVaG against its published figures: as published and certified, with ablations.

    python bench/travag.py --logs FOLDER [--runs 10]                              certified, and ablations
    python bench/travag.py --logs FOLDER --published bpic13-1-0.01 --state FILE   one training as published

The second is a long computation. Its state is kept in FILE (.npz) as it goes; started again with the same FILE it goes
on where it was, and a finished one only draws again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

import veilog
from veilog.measures.similarity import absolute_log_difference, relative_log_similarity
from veilog.methods.method import Request
from veilog.methods.travag import PUBLISHED, Trained, TrainingState, sample, train
from veilog.methods.travag.model import state_from, state_to
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

FILES = {"bpic13": "bpic2013_incidents", "sepsis": "sepsis"}
DELTAS = ("0.01", "0.001", "1e-4", "1e-5", "1e-6")
PAPER = {
    "2": (0.779, 0.804, 0.800, 0.774, 0.801),
    "1": (0.803, 0.783, 0.776, 0.795, 0.794),
    "0.1": (0.669, 0.603, 0.535, 0.525, 0.601),
    "0.01": (0.480, 0.479, 0.477, 0.456, 0.452),
}
SAVE_EVERY = 250


def read(logs: Path, name: str) -> veilog.Variants:
    return veilog.read(logs / f"{FILES[name]}.xes.gz").variants


# As published -------------------------------------------------------------------------------------------------------


def keep(path: Path) -> Callable[[TrainingState], None]:
    """A checkpoint that writes the state every so many steps, whole or not at all."""

    def write(state: TrainingState) -> None:
        if state.step % SAVE_EVERY:
            return
        facts, arrays = state_to(state)
        part = path.with_suffix(".part.npz")
        np.savez(part, facts=np.array(json.dumps(facts)), **arrays)
        part.replace(path)

    return write


def kept(path: Path, name: str) -> TrainingState | None:
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "facts"}
        state = state_from(json.loads(str(stored["facts"])), arrays)
    # settings of the certified face, which this one does not use, may have changed since
    return replace(state, configuration=PUBLISHED[name])


def measured(variants: veilog.Variants, trained: Trained, draws: int) -> str:
    """Mean similarity and difference of draws of log size."""
    rng = np.random.default_rng(0)
    similarities, differences, distinct = [], [], []
    for draw in range(draws):
        counts = sample(trained, variants.cases, rng)
        columns = trained.columns
        drawn = veilog.Variants.from_arrays(columns.labels, columns.codes, columns.offsets, counts)
        similarities.append(relative_log_similarity(variants, drawn).value)
        distinct.append(len(drawn))
        if draw < max(1, draws // 10):  # the slow one, and it hardly varies
            differences.append(absolute_log_difference(variants, drawn, buffer="maximum").value)
    return (
        f"similarity {statistics.fmean(similarities):.3f} ± {statistics.pstdev(similarities):.3f}, difference "
        f"{statistics.fmean(differences):,.0f}, {statistics.fmean(distinct):.0f} variants, {draws} draws"
    )


def published(logs: Path, name: str, path: Path, draws: int) -> None:
    log, epsilon, delta = name.split("-", 2)
    variants = read(logs, log)
    started, cpu = time.perf_counter(), time.process_time()

    def progress(text: str, fraction: float | None) -> None:
        seconds, used = time.perf_counter() - started, time.process_time() - cpu
        print(f"{seconds:8.0f} s {used:8.0f} CPU s  {text}", flush=True)

    request = Request(Fraction(epsilon), Fraction(delta), True, progress, lambda a, b: 0.0, print)
    curator = Curator(variants, randomness=noise.seeded(1))
    found = kept(path, name)
    print(f"{name}: {'goes on' if found else 'starts'}", flush=True)
    trained = train(curator, request, PUBLISHED[name], resume=found, checkpoint=keep(path))
    print(f"{name}: trained in {time.process_time() - cpu:,.0f} CPU s of this run", flush=True)
    np.savez(path.with_suffix(".trained.npz"), **trained.weights)
    print(f"{name}: {measured(variants, trained, draws)}", flush=True)


# Certified ----------------------------------------------------------------------------------------------------------


def certified(variants: veilog.Variants, epsilon: str, delta: str, runs: int, **given: object) -> list[float]:
    """Similarities of seeded runs; NaN where nothing was released."""
    found = []
    for seed in range(runs):
        released = veilog.release(variants, "travag", epsilon=epsilon, delta=delta, seed=seed, **given).variants
        found.append(relative_log_similarity(variants, released).value if released.cases else float("nan"))
    return found


def cell(values: list[float]) -> str:
    there = [value for value in values if value == value]
    if not there:
        return "nothing released"
    note = "" if len(there) == len(values) else f", {len(there)} of {len(values)} runs"
    return f"{statistics.fmean(there):.3f} ± {statistics.pstdev(there):.3f}{note}"


def table(variants: veilog.Variants, runs: int, paper: bool) -> None:
    print("| epsilon | " + " | ".join(f"delta {d}" for d in DELTAS) + " |\n" + "|---" * (len(DELTAS) + 1) + "|")
    for epsilon, cells in PAPER.items():
        shown = []
        for delta, theirs in zip(DELTAS, cells, strict=True):
            found = cell(certified(variants, epsilon, delta, runs))
            shown.append(f"{found} ({theirs:.3f})" if paper else found)
        print(f"| {epsilon} | " + " | ".join(shown) + " |", flush=True)


ABLATIONS: tuple[tuple[str, dict[str, object]], ...] = (
    ("default", {}),
    ("cases outside dropped", {"outside": "drop"}),
    ("share 0.25 for the columns", {"columns_share": 0.25}),
    ("share 0.75 for the columns", {"columns_share": 0.75}),
    ("share 0.9 for the columns", {"columns_share": 0.9}),
    ("critic in 100 steps at rate 1", {"critic_steps": 100}),
    ("critic in 100 steps at rate 0.1", {"critic_steps": 100, "critic_rate": 0.1}),
    ("critic in 1500 steps at rate 0.02", {"critic_steps": 1500, "critic_rate": 0.02}),
    ("deep critic, 150 steps at rate 1", {"critic": "deep", "critic_steps": 150}),
    ("deep critic, 1500 steps at rate 0.02", {"critic": "deep", "critic_steps": 1500, "critic_rate": 0.02}),
    ("autoencoder: 100 noised steps, share 0.1", {"autoencoder_steps": 100, "autoencoder_share": 0.1}),
    ("autoencoder: 100 noised steps, share 0.5", {"autoencoder_steps": 100, "autoencoder_share": 0.5}),
)


def ablations(variants: veilog.Variants, runs: int, budgets: tuple[tuple[str, str], ...]) -> None:
    print("| | " + " | ".join(f"({e}, {d})" for e, d in budgets) + " |\n" + "|---" * (len(budgets) + 1) + "|")
    for what, given in ABLATIONS:
        cells = [cell(certified(variants, epsilon, delta, runs, **given)) for epsilon, delta in budgets]
        print(f"| {what} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--logs", type=Path, default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--published", choices=tuple(PUBLISHED))
    parser.add_argument("--state", type=Path)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--log", choices=tuple(FILES))
    parser.add_argument("--only", choices=("table", "ablations"))
    arguments = parser.parse_args()
    logs = Path(arguments.logs)
    if arguments.published:
        published(logs, arguments.published, arguments.state or Path(f"{arguments.published}.npz"), arguments.draws)
        return
    for log in (arguments.log,) if arguments.log else FILES:
        variants = read(logs, log)
        if arguments.only != "ablations":
            print(f"\n## {log}: certified, relative log similarity, mean ± spread of {arguments.runs} runs\n")
            table(variants, arguments.runs, log == "bpic13")
        if arguments.only != "table":
            print(f"\n## {log}: ablations, {arguments.runs} runs\n")
            budgets = (("1", "1e-6"), ("0.1", "1e-6")) if log == "bpic13" else (("1", "0.01"), ("0.1", "0.01"))
            ablations(variants, arguments.runs, budgets)


if __name__ == "__main__":
    main()

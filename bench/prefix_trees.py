"""Laplace, SaCoFa, DF-Laplace and SaPa: against pm4py's SaCoFa, growth with the number of cases, and quality.

    python bench/prefix_trees.py --logs FOLDER [--python-pm4py PYTHON] [--runs 10] [--largest 1000000] [--quality]

Prints Markdown tables. The ratio against pm4py is of medians of CPU time, from an event log in memory to the released
log, both in one run at the settings of Table 4 of the SaCoFa paper; without a Python that has pm4py it is left out.
Growth is given as a multiple of the time for 1,000 cases and of the time that finding the variants takes.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from veilog import EventLog, Variants, read, release
from veilog.logs.simulate import hospital
from veilog.measures.similarity import relative_log_similarity
from veilog.methods._relations.playout import balanced, play_out, play_out_guided
from veilog.methods.df_laplace import exact_relation
from veilog.privacy.domain import ALL_FROM_LOG

TABLE_4 = {
    "receipt": (("1", 10, 3, None), ("0.1", 10, 25, 22), ("0.01", 10, 220, 200)),
    "sepsis": (("1", 23, 4, None), ("0.1", 23, 20, 15), ("0.01", 23, 190, 150)),
    "traffic_fines": (("1", 9, 2, None), ("0.1", 9, 20, 15), ("0.01", 9, 150, 120)),
}
"""epsilon, depth, threshold of harmful and of harmless prefixes."""
LOGS = ("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie")
METHODS = ("laplace", "sacofa", "df-laplace", "sapa")

THEIRS = """
import json, statistics, sys, time, warnings
warnings.simplefilter("ignore")
import pm4py
from pm4py.algo.anonymization.trace_variant_query.variants import sacofa
path, runs, settings = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
log = pm4py.convert_to_event_log(pm4py.read_xes(path))
results = []
for epsilon, depth, harmful in settings:
    times = []
    for _ in range(runs):
        started = time.process_time()
        sacofa.apply(log, {"epsilon": float(epsilon), "k": depth, "p": harmful, "show_progress_bar": False})
        times.append(time.process_time() - started)
    results.append(statistics.median(times))
print(json.dumps(results))
"""


def median_time(action: Callable[[], object], runs: int, clock: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for _ in range(runs):
        started = clock()
        action()
        times.append(clock() - started)
    return statistics.median(times)


def against_pm4py(logs: Path, python: str | None, runs: int) -> list[str]:
    lines = [
        "| log | epsilon | depth | threshold | pm4py CPU s | veilog CPU s | times faster |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ("sepsis", "receipt"):
        path = logs / f"{name}.xes.gz"
        settings = [(epsilon, depth, harmful) for epsilon, depth, harmful, _ in TABLE_4[name]]
        command = [python or "", "-c", THEIRS, str(path), str(runs), json.dumps(settings)]
        theirs = None
        if python:
            answer = subprocess.run(command, capture_output=True, text=True, check=False)
            theirs = json.loads(answer.stdout.splitlines()[-1]) if answer.returncode == 0 else None
            if theirs is None:
                print(f"pm4py failed on {name}: {answer.stderr[-300:]}", file=sys.stderr)
        log = read(path)
        for row, (epsilon, depth, harmful) in enumerate(settings):

            def ours(log: EventLog = log, epsilon: str = epsilon, depth: int = depth, harmful: int = harmful) -> None:
                variants = log.variants_by(("concept:name",))
                released = release(
                    variants, "sacofa", epsilon=epsilon, depth=depth, threshold_harmful=harmful, as_published=True
                )
                _ = released.log

            mine = median_time(ours, runs, time.process_time)
            their = "not run" if theirs is None else f"{theirs[row]:.2f}"
            ratio = "not run" if theirs is None else f"{theirs[row] / mine:.0f}"
            lines.append(f"| {name} | {epsilon} | {depth} | {harmful} | {their} | {mine:.3f} | {ratio} |")
    return lines


def growth(largest: int, runs: int) -> list[str]:
    sizes = [10**n for n in range(3, 8) if 10**n <= largest]
    lines = [
        "| cases | variants | finding variants s | " + " | ".join(f"{m} s" for m in METHODS) + " |",
        "|---" * (3 + len(METHODS)) + "|",
    ]
    first: dict[str, float] = {}
    for cases in sizes:
        log = hospital(cases, seed=1)
        variants = log.variants
        finding = median_time(functools.partial(log.variants_by, ("concept:name",)), runs)
        cells = []
        for method in METHODS:
            taken = median_time(functools.partial(release, variants, method, epsilon=1), runs)
            first.setdefault(method, taken)
            cells.append(f"{taken:.3f} ({taken / first[method]:.1f}x, {taken / finding:.2f} of finding)")
        lines.append(f"| {cases:,} | {len(variants):,} | {finding:.3f} | " + " | ".join(cells) + " |")
    return lines


def averages(
    variants: Variants, method: str, epsilon: str, runs: int, **parameters: object
) -> tuple[float, float, float]:
    """Mean similarity (0 for an empty release), its standard deviation, and mean size ratio."""
    values, sizes = [], []
    for seed in range(runs):
        released = release(variants, method, domain=ALL_FROM_LOG, epsilon=epsilon, seed=seed, **parameters).variants
        values.append(relative_log_similarity(variants, released).value if released.cases else 0.0)
        sizes.append(released.cases / variants.cases)
    return statistics.fmean(values), statistics.pstdev(values), statistics.fmean(sizes)


def certified(logs: dict[str, Variants], runs: int) -> list[str]:
    lines = ["| log | epsilon | " + " | ".join(METHODS) + " |", "|---" * (2 + len(METHODS)) + "|"]
    for name, variants in logs.items():
        for epsilon in ("2", "1", "0.1", "0.01"):
            cells = []
            for method in METHODS:
                mean, spread, size = averages(variants, method, epsilon, runs)
                cells.append(f"{mean:.3f} ± {spread:.3f} ({size:.2f})")
            lines.append(f"| {name} | {epsilon} | " + " | ".join(cells) + " |")
    return lines


def options(logs: dict[str, Variants], runs: int) -> list[str]:
    """The similarity of the Laplace tree with one option changed."""
    changes: tuple[tuple[str, dict[str, object]], ...] = (
        ("default", {}),
        ("split decreasing", {"split": "decreasing"}),
        ("no consistency", {"consistency": False}),
        ("rest drop", {"rest": "drop"}),
        ("rest share", {"rest": "share"}),
        ("noise_prefixes 0.2", {"noise_prefixes": 0.2}),
        ("noise_prefixes 5", {"noise_prefixes": 5}),
        ("count_share 0.5", {"count_share": 0.5}),
    )
    lines = ["| log | epsilon | " + " | ".join(name for name, _ in changes) + " |", "|---" * (2 + len(changes)) + "|"]
    for name, variants in logs.items():
        for epsilon in ("1", "0.1"):
            cells = [f"{averages(variants, 'laplace', epsilon, runs, **change)[0]:.3f}" for _, change in changes]
            lines.append(f"| {name} | {epsilon} | " + " | ".join(cells) + " |")
    return lines


def as_published(logs: dict[str, Variants], runs: int) -> list[str]:
    lines = ["| log | epsilon | " + " | ".join(METHODS) + " |", "|---" * (2 + len(METHODS)) + "|"]
    for name, rows in TABLE_4.items():
        for epsilon, depth, harmful, harmless in rows:
            tree = {
                "laplace": {"depth": depth, "threshold": harmful},
                "sacofa": {"depth": depth, "threshold_harmful": harmful, "threshold_harmless": harmless},
            }
            cells = []
            for method in METHODS:
                mean, spread, size = averages(
                    logs[name], method, epsilon, runs, as_published=True, **tree.get(method, {})
                )
                cells.append(f"{mean:.3f} ± {spread:.3f} ({size:.2f})")
            lines.append(f"| {name} | {epsilon} | " + " | ".join(cells) + " |")
    return lines


def number_of_cases(logs: dict[str, Variants], runs: int) -> list[str]:
    """What asking for the number of cases changes in the certified play-outs."""
    columns = ("similarity", "not empty", "within 20 %", "off")
    lines = [
        "| log | epsilon | method | " + " | ".join(f"{name}: {share}" for name in columns for share in (0, 0.1)) + " |",
        "|---" * 11 + "|",
    ]
    for name, variants in logs.items():
        for epsilon in ("0.1", "0.3"):
            for method in ("df-laplace", "sapa"):
                rows = []
                for share in (0, 0.1):
                    similar, sizes = [], []
                    for seed in range(100, 100 + runs):
                        released = release(
                            variants, method, domain=ALL_FROM_LOG, epsilon=epsilon, seed=seed, count_share=share
                        ).variants
                        similar.append(relative_log_similarity(variants, released).value if released.cases else 0.0)
                        if released.cases:
                            sizes.append(released.cases / variants.cases)
                    near = sum(abs(size - 1) <= 0.2 for size in sizes)
                    off = statistics.fmean([(size - 1) ** 2 for size in sizes] or [0.0]) ** 0.5
                    error = statistics.pstdev(similar) / runs**0.5
                    rows.append((f"{statistics.fmean(similar):.3f} ± {error:.3f}", len(sizes), near, f"{off:.2f}"))
                cells = [str(row[column]) for column in range(4) for row in rows]
                lines.append(f"| {name} | {epsilon} | {method} | " + " | ".join(cells) + " |")
    return lines


def unused(logs: dict[str, Variants], runs: int) -> list[str]:
    """How much of a noisy relation the play-outs leave, and the similarity of what they make of it."""
    lines = [
        "| log | noise scale | paper: unused | similarity | traces | guided: unused | similarity | traces |",
        "|---|---|---|---|---|---|---|---|",
    ]
    random = np.random.default_rng(1)
    for name, variants in logs.items():
        relation = exact_relation(variants, variants.labels)
        for scale in (0, 1, 10, 100):
            rows = []
            for guided in (False, True):
                left, similar, size = [], [], []
                for _ in range(runs):
                    noisy = np.maximum(np.rint(relation + random.laplace(0, scale, relation.shape)), 0).astype(np.int64)
                    noisy[-1, -1] = relation[-1, -1]
                    available = balanced(noisy) if guided else noisy
                    play = play_out_guided if guided else play_out
                    played = play(variants.labels, available, random)
                    left.append(1 - exact_relation(played, variants.labels).sum() / available.sum())
                    similar.append(relative_log_similarity(variants, played).value)
                    size.append(played.cases / variants.cases)
                rows += [f"{100 * statistics.fmean(left):.1f} %", f"{statistics.fmean(similar):.3f}"]
                rows.append(f"{statistics.fmean(size):.2f}")
            lines.append(f"| {name} | {scale} | " + " | ".join(rows) + " |")
    return lines


def speed_of_playout(variants: Variants, runs: int) -> list[str]:
    relation = exact_relation(variants, variants.labels)
    lines = ["| play-out | traces a second | steps a second |", "|---|---|---|"]
    for name, play in (("paper", play_out), ("guided", play_out_guided)):
        taken = median_time(lambda play=play: play(variants.labels, relation, np.random.default_rng(1)), runs)
        lines.append(f"| {name} | {variants.cases / taken:,.0f} | {relation.sum() / taken:,.0f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--logs", type=Path, default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ
    )
    parser.add_argument("--python-pm4py", help="a Python that has pm4py")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--quality", action="store_true", help="also measure similarity and sizes (minutes)")
    arguments = parser.parse_args()
    folder = Path(arguments.logs)

    def show(title: str, lines: list[str]) -> None:
        print(f"## {title}\n\n" + "\n".join(lines) + "\n", flush=True)

    show("SaCoFa as published, against pm4py", against_pm4py(folder, arguments.python_pm4py, min(arguments.runs, 5)))
    show("Growth, certified, epsilon 1", growth(arguments.largest, 3))
    logs = {name: read(folder / f"{name}.xes.gz").variants for name in LOGS}
    show("Play-out of traffic fines", speed_of_playout(logs["traffic_fines"], 3))
    if arguments.quality:
        show("Certified: similarity (size ratio)", certified(logs, arguments.runs))
        three = {name: logs[name] for name in ("sepsis", "receipt", "unrineweginfectie")}
        show("Certified play-outs: the number of cases", number_of_cases(three, 25))
        show("Options of laplace", options(logs, arguments.runs))
        show("As published, Table 4: similarity (size ratio)", as_published(logs, arguments.runs))
        small = {name: logs[name] for name in ("sepsis", "receipt")}
        show("Play-outs of a noisy relation", unused(small, min(arguments.runs, 5)))


if __name__ == "__main__":
    main()

"""Disclosure risk: veilog against a plain program written from the definitions, and how it grows.

    python bench/disclosure.py [--large 4000] [--wide 1000] [--runs 3]

Every measurement is a process of its own, with the log made and the libraries imported before the clock starts. Prints
Markdown tables; each ratio is against the plain program in the same run. With VEILOG_LOGS also the public logs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from veilog.logs import files
from veilog.logs.simulate import hospital, variants_only
from veilog.logs.variants import Variants
from veilog.measures.disclosure import risk

PUBLIC = ("sepsis", "receipt", "traffic_fines")


def loan_log(variants: int, seed: int = 0, swap: float = 0.38) -> Variants:
    """Distinct variants of a loan application: 24 activities, three intertwined parts, loops, swapped neighbours."""
    names = [f"{part}{i}" for part, count in (("A", 10), ("O", 7), ("W", 7)) for i in range(count)]
    random = np.random.default_rng(seed)
    found: set[tuple[int, ...]] = set()
    while len(found) < variants:
        trace = [0, 1, *([2] if random.random() < 0.5 else []), *_loop(random, 17, 0.5)]
        stop = int(random.choice(5, p=(0.15, 0.2, 0.15, 0.2, 0.3)))
        if stop >= 1:
            trace += [3, 18, *_loop(random, 18, 0.45), *([4] if random.random() < 0.2 else [])]
        if stop >= 2:
            for _ in range(1 + int(random.random() < 0.35) + int(random.random() < 0.12)):
                trace += [10, 11, 12, 19, *_loop(random, 19, 0.5), *([13] if random.random() < 0.3 else [])]
        if stop >= 3:
            trace += [14, 20, *_loop(random, 20, 0.5), *([21] if random.random() < 0.35 else [])]
        trace += [(5, 6, 5, 6, 7)[stop], *_loop(random, 22 if random.random() < 0.05 else 23, 0.1)]
        trace += [15, 8, *([9] if random.random() < 0.5 else [])] if stop == 4 else _loop(random, 16, 0.4)
        for i in [*range(len(trace) - 1)] * 2:
            if random.random() < swap:
                trace[i], trace[i + 1] = trace[i + 1], trace[i]
        found.add(tuple(trace))
    rows = sorted(found)
    return Variants.from_dict({tuple(names[c] for c in row): 1 + int(random.pareto(1.2)) for row in rows})


def _loop(random: np.random.Generator, activity: int, again: float) -> list[int]:
    return [activity] * min(12, int(random.geometric(1 - again)) - 1)


def plain(variants: Variants, background: str, size: int) -> tuple[int, float, float]:
    """Candidates, case and trace disclosure by equations (1) and (2), with Python's sets and dictionaries alone."""
    counts: dict[tuple[str, ...], list[int]] = {}
    for trace, n in variants.to_dict().items():
        chosen: set[tuple[str, ...]]
        if background == "set":
            chosen = set(itertools.combinations(sorted(set(trace)), size))
        else:
            chosen = {()}
            for activity in trace:
                chosen |= {(*x, activity) for x in chosen if len(x) < size}
            chosen = {x for x in chosen if len(x) == size}
            if background == "multiset":
                chosen = {tuple(sorted(x)) for x in chosen}
        for pattern in chosen:
            counts.setdefault(pattern, []).append(n)
    case = trace = 0.0
    for matching in counts.values():
        n = sum(matching)
        case += 1 / n
        trace += 1 + sum(c / n * math.log(c / n) for c in matching) / math.log(n) if n > 1 else 1.0
    return len(counts), case / max(1, len(counts)), trace / max(1, len(counts))


def made(log: str) -> Variants:
    kind, _, number = log.partition(":")
    if kind == "hospital":
        return hospital(int(number), seed=1).variants
    if kind == "loans":
        return loan_log(int(number))
    if kind == "wide":
        return variants_only(int(number), 600, 1800, seed=1)
    return files.read(Path(os.environ["VEILOG_LOGS"]) / f"{kind}.xes.gz").variants


def measure(program: str, log: str, background: str, sizes: list[int]) -> dict[str, object]:
    variants = made(log)
    cpu, wall = time.process_time(), time.perf_counter()
    if program == "plain":
        number, value, _ = plain(variants, background, sizes[-1])
        exact = True
    else:
        last = risk(variants, background.split(","), sizes)[-1]
        number, value, exact = last.candidates, last.case_disclosure or 0.0, last.exact
    return {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "candidates": number,
        "value": value,
        "exact": exact,
    }


def in_a_process(program: str, log: str, background: str, sizes: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", program, log, background, sizes]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))


def row(program: str, log: str, background: str, sizes: str, runs: int, baseline: float | None = None) -> float:
    results = [in_a_process(program, log, background, sizes) for _ in range(runs)]
    cpu, wall, memory = (statistics.median(r[k] for r in results) for k in ("cpu", "wall", "rss"))
    last = results[0]
    ratio = "" if baseline is None else f"{baseline / cpu:.0f}"
    kind = "exact" if last["exact"] else "estimate"
    print(
        f"| {program} | {log} | {background} | {sizes} | {last['candidates']:.4g} | {last['value']:.4f} | {kind} "
        f"| {cpu:.3f} | {wall:.2f} | {memory:.0f} | {ratio} |",
        flush=True,
    )
    return cpu


def head(title: str) -> None:
    print(f"\n{title}\n")
    print("| program | log | background | sizes | candidates | cd | | CPU s | wall s | peak RSS MB | plain / CPU |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", type=int, default=4000, help="variants of the loan log")
    parser.add_argument("--wide", type=int, default=1000, help="cases of the log of 600 activities; 0 leaves it out")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--measure", nargs=4, metavar=("PROGRAM", "LOG", "BACKGROUND", "SIZES"))
    arguments = parser.parse_args()
    if arguments.measure:
        program, log, background, sizes = arguments.measure
        print(json.dumps(measure(program, log, background, [int(k) for k in sizes.split(",")])))
        return
    runs = arguments.runs
    head("Against the plain program (medians; it computes one size, veilog all sizes up to it)")
    for log, background, size in (
        ("hospital:1000", "set", 6),
        ("hospital:1000", "multiset", 3),
        ("hospital:1000", "sequence", 3),
        ("hospital:1000", "sequence", 4),
        ("loans:400", "multiset", 5),
        ("loans:400", "sequence", 5),
    ):
        baseline = row("plain", log, background, str(size), 1)
        row("veilog", log, background, ",".join(map(str, range(1, size + 1))), runs, baseline)
    head("Growth with the size of the log and of the background knowledge (sequences)")
    for cases in (250, 1000, 4000):
        row("veilog", f"hospital:{cases}", "sequence", "4", runs)
    for size in range(1, 7):
        row("veilog", "hospital:1000", "sequence", str(size), runs)
    head("Large logs")
    row("veilog", f"loans:{arguments.large}", "sequence", "1,2,3,4,5,6", 1)
    if arguments.wide:
        for background in ("set", "multiset", "sequence"):
            row("veilog", f"wide:{arguments.wide}", background, "6", 1)
    if os.environ.get("VEILOG_LOGS"):
        head("Public logs")
        row("veilog", "sepsis", "sequence", "3", runs)
        for log in PUBLIC:
            row("veilog", log, "set,multiset,sequence", "1,2,3,4,5,6", runs)


if __name__ == "__main__":
    main()

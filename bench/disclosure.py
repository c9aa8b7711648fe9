"""Disclosure risk: veilog against a plain program of the definitions, by size.

The plain program computes one size, veilog all sizes up to it. Without logs the public ones are left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from benchmark import CPU, PEAK, WALL, benchmark
from columns import Column
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured, Profile
from veilog.logs.synthetic.hospital import hospital, variants_only
from veilog.logs.variants import Variants
from veilog.measures.disclosure import risk

AGAINST = (
    ("hospital:1000", "set", 6),
    ("hospital:1000", "multiset", 3),
    ("hospital:1000", "sequence", 3),
    ("hospital:1000", "sequence", 4),
    ("loans:400", "multiset", 5),
    ("loans:400", "sequence", 5),
)
KINDS = ("set", "multiset", "sequence")


def loan_log(variants: int, seed: int = 0, swap: float = 0.38) -> Variants:
    """Return distinct variants of a loan application.

    It has 24 activities, three intertwined parts, loops and swapped neighbours.
    """
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
    """Return candidates, case and trace disclosure by equations (1) and (2).

    Python's sets and dictionaries alone compute them.
    """
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


def made(given: Given, log: str) -> Variants:
    kind, _, number = log.partition(":")
    if kind == "hospital":
        return hospital(int(number), seed=1).variants
    if kind == "loans":
        return loan_log(int(number))
    if kind == "wide":
        return variants_only(int(number), 600, 1800, seed=1)
    return given.log.variants


def cells(profile: Profile) -> Iterator[Cell]:
    """Yield each log with kinds of knowledge and the largest size.

    ``sizes`` is "all" for all sizes up to it, "one" for it alone.
    """
    for run in range(profile.runs):
        for log, kind, size in AGAINST:
            for program in ("plain", "veilog"):
                yield _cell(log, kind, size, "all" if program == "veilog" else "one", run, program)
        for cases in (250, 4000):
            yield _cell(f"hospital:{cases}", "sequence", 4, "one", run)
        for size in range(1, 7):
            yield _cell("hospital:1000", "sequence", size, "one", run)
        for log in profile.logs:
            yield _cell(log, ",".join(KINDS), 6, "all", run)
    yield _cell(f"loans:{400 if profile.quick else 4000}", "sequence", 6, "all", 0)
    for kind in KINDS:
        yield _cell(f"wide:{100 if profile.quick else 1000}", kind, 6, "one", 0)


def _cell(log: str, kinds: str, size: int, sizes: str, run: int, program: str = "veilog") -> Cell:
    return Cell(log, "", (("knowledge", kinds), ("size", size), ("sizes", sizes), ("program", program)), run)


def measure(given: Given, cell: Cell) -> Measured:
    variants, size, kinds = made(given, cell.log), int(cell.get("size")), str(cell.get("knowledge"))
    if cell.get("program") == "plain":
        costs, (number, value, _) = timed(lambda: plain(variants, kinds, size))
        return Measured(costs | {"candidates": number, "cd": value, "exact": 1})
    sizes = list(range(1, size + 1)) if cell.get("sizes") == "all" else [size]
    costs, found = timed(lambda: risk(variants, kinds.split(","), sizes)[-1])
    answer = {"candidates": found.candidates, "cd": found.case_disclosure, "exact": int(found.exact)}
    return Measured(costs | answer)


BENCHMARKS = (
    benchmark(
        "disclosure",
        "Disclosure risk against a plain program, and how it grows.",
        measure,
        cells,
        (
            *(Column("candidates", "candidates", ",.4g"), Column("cd", "cd", ".4f"), Column("exact", "exact", ".0f")),
            *(CPU, WALL, PEAK, Column("CPU / plain", "cpu", ".3f", baseline={"program": "plain", "sizes": "one"})),
        ),
        logs=("sepsis", "receipt", "traffic_fines"),
        runs=3,
        alone=True,
        page="measures/disclosure.md",
    ),
)

"""The frontier: every certified method at equal derived epsilon on every log, and what a delta buys evolve.

    python bench/frontier.py --logs FOLDER [--runs 5] [--cells FILE] [--only LOG,...]

Prints Markdown: relative log similarity, mean ± standard deviation of seeded runs (an empty release counts as 0, and
how many were is said), then released cases over the log's, and median seconds from variants to release. With
``--cells`` finished cells are kept in a file of JSON lines, and only missing ones are run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import veilog
from veilog.measures.similarity import relative_log_similarity
from veilog.privacy.domain import ALL_FROM_LOG

LOGS = ("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie")
EPSILONS = ("2", "1", "0.1", "0.01")
DELTA = "1e-4"
COLUMNS = {
    "evolve": ("evolve", "0"),
    "laplace": ("laplace", "0"),
    "sacofa": ("sacofa", "0"),
    "df-laplace": ("df-laplace", "0"),
    "sapa": ("sapa", "0"),
    f"travas, delta {DELTA}": ("travas", DELTA),
}
REAL = {
    "evolve": ("evolve", "0"),
    f"evolve, delta {DELTA}": ("evolve", DELTA),
    f"evolve, only real, delta {DELTA}": ("evolve, only real", DELTA),
    f"travas, delta {DELTA}": ("travas", DELTA),
}

Cell = dict[str, list[float]]
Cells = dict[tuple[str, str, str, str], Cell]


def measured(variants: veilog.Variants, method: str, delta: str, epsilon: str, runs: int) -> Cell:
    """Each run's similarity, size ratio, share of cases with a real variant, share of certain ones, and seconds."""
    cell: Cell = {"similarity": [], "ratio": [], "real": [], "certain": [], "seconds": []}
    existing = variants.to_dict()
    name, _, only = method.partition(", ")
    more = {"only_real": True} if only else {}
    for seed in range(runs):
        release = veilog.release(variants, name, domain=ALL_FROM_LOG, epsilon=epsilon, delta=delta, seed=seed, **more)
        charges = release.guarantee.charges
        assert sum(charge.epsilon for charge in charges) <= float(epsilon) * (1 + 1e-12), "equal derived epsilon"
        counts = release.variants.to_dict()
        cases = release.variants.cases
        real = sum(count for sequence, count in counts.items() if sequence in existing)
        cell["similarity"].append(relative_log_similarity(variants, release.variants).value if cases else 0.0)
        cell["ratio"].append(cases / variants.cases)
        cell["real"].append(real / cases if cases else 0.0)
        cell["certain"].append(_certain(release) / cases if cases else 0.0)
        cell["seconds"].append(release.seconds)
    return cell


def _certain(release: veilog.Release) -> int:
    """Cases of variants that are certain to be real, as the release says."""
    if release.method == "travas" or any("Every released variant is certain" in text for text in release.remarks):
        return release.variants.cases
    words = [remark.split() for remark in release.remarks if "certain to be real, for" in remark]
    return int(words[0][words[0].index("cases:") - 1]) if words else 0


def similarity(cell: Cell) -> str:
    values = cell["similarity"]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    empty = sum(ratio == 0 for ratio in cell["ratio"])
    return f"{statistics.mean(values):.3f} ± {spread:.3f}" + (f", {empty} empty" if empty else "")


def size_and_time(cell: Cell) -> str:
    return f"{statistics.mean(cell['ratio']):.2f}, {statistics.median(cell['seconds']):.2f} s"


def reality(cell: Cell) -> str:
    certain, real = (statistics.mean(cell[name]) for name in ("certain", "real"))
    return f"{statistics.mean(cell['similarity']):.3f}, {certain:.0%}, {real:.0%}"


def table(cells: Cells, columns: dict[str, tuple[str, str]], words: Callable[[Cell], str], best: bool) -> None:
    print("| log | epsilon | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 2) + "|")
    for log, epsilon in dict.fromkeys((log, epsilon) for log, epsilon, _, _ in cells):
        row = [cells[log, epsilon, *column] for column in columns.values()]
        means = [round(statistics.mean(cell["similarity"]), 3) for cell in row]
        text = [
            f"**{words(cell)}**" if best and mean == max(means) else words(cell)
            for cell, mean in zip(row, means, strict=True)
        ]
        print(f"| {log} | {epsilon} | " + " | ".join(text) + " |")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cells", type=Path, help="file that keeps finished cells")
    parser.add_argument("--only", default=",".join(LOGS))
    arguments = parser.parse_args()
    known: dict[str, Any] = {}
    if arguments.cells and arguments.cells.exists():
        known = dict(json.loads(line) for line in arguments.cells.read_text().splitlines())
    cells: Cells = {}
    for log in arguments.only.split(","):
        variants = veilog.read(Path(arguments.logs) / f"{log}.xes.gz").variants
        for epsilon in EPSILONS:
            for method, delta in dict.fromkeys([*COLUMNS.values(), *REAL.values()]):
                key = " ".join((log, epsilon, method, delta, str(arguments.runs)))
                if key not in known:
                    known[key] = measured(variants, method, delta, epsilon, arguments.runs)
                    if arguments.cells:
                        with arguments.cells.open("a") as file:
                            print(json.dumps([key, known[key]]), file=file)
                cells[log, epsilon, method, delta] = known[key]
    table(cells, COLUMNS, similarity, best=True)
    print("Released cases over the log's, and median seconds:\n")
    table(cells, COLUMNS, size_and_time, best=False)
    print("Similarity, released cases that are certain to be real, and that are:\n")
    table(cells, REAL, reality, best=False)


if __name__ == "__main__":
    main()

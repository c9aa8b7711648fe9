"""How often a suggestion picks which method on each public log, and what the pick costs in similarity.

    python bench/suggest.py --logs FOLDER [--runs 20]
    python bench/suggest.py --logs FOLDER --speed [--runs 20]

With --speed: processor time of a suggestion against that of one TraVaS release, which asks the dearer of its two
questions.

Prints Markdown. What evolve (without a delta, with one, and only real variants) and TraVaS reach is read from the table
on the delta in docs/results/evolve.md (the whole budget, delta 1e-4), so that a pick can be held against all: the loss
is the best mean of the four minus the mean of what was picked.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import veilog

DELTA = "1e-4"
RESULTS = Path(__file__).parents[1] / "docs" / "results" / "evolve.md"


PICKS = ("evolve", "evolve, delta", "only real, delta", "travas")


def frontier() -> dict[tuple[str, str], tuple[float, ...]]:
    """Mean similarity of each pick for each log and epsilon."""
    table = RESULTS.read_text().partition("## With a delta")[2].partition("\nThe delta ")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"[\d.]+", cells[1]):
            found[cells[0], cells[1]] = tuple(float(cell.split(",")[0]) for cell in cells[2:])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--logs", type=Path, default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ
    )
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    if given.speed:
        return speed(given.logs, given.runs)
    print("| log | epsilon | " + " | ".join(PICKS) + " | suggested | loss |\n" + "|---" * 8 + "|")
    losses, logs = [], {}
    for (name, epsilon), reached in frontier().items():
        if name not in logs:
            logs[name] = veilog.read_variants(given.logs / f"{name}.xes.gz")
        found = [veilog.suggest(logs[name], epsilon=epsilon, delta=DELTA, seed=i) for i in range(given.runs)]
        picks = [f"{one.method}, delta" if one.method == "evolve" and one.delta_left else one.method for one in found]
        losses.append(max(reached) - statistics.mean(reached[PICKS.index(pick)] for pick in picks))
        often = ", ".join(f"{pick} {n / given.runs:.0%}" for pick, n in Counter(picks).most_common())
        means = " | ".join(f"{value:.3f}" for value in reached)
        print(f"| {name} | {epsilon} | {means} | {often} | {losses[-1]:.3f} |")
    print(f"\nMean loss {statistics.mean(losses):.3f}.")
    for place, pick in enumerate(PICKS):
        lost = statistics.mean(max(reached) - reached[place] for reached in frontier().values())
        print(f"Always {pick}: {lost:.3f}.")
    return None


def speed(logs: Path, runs: int) -> None:
    print("| log | CPU ms | times a TraVaS release |\n|---|---|---|")
    for name in ("sepsis", "receipt", "bpic2013_incidents"):
        variants = veilog.read_variants(logs / f"{name}.xes.gz")
        whole = milliseconds(lambda variants=variants: veilog.suggest(variants, epsilon=1, delta=DELTA), runs)
        alone = milliseconds(lambda variants=variants: veilog.release(variants, "travas", epsilon=1, delta=DELTA), runs)
        print(f"| {name} | {whole:.1f} | {whole / alone:.1f} |", flush=True)


def milliseconds(work: Callable[[], object], runs: int) -> float:
    """Median processor time."""
    taken = []
    for _ in range(runs):
        started = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - started))
    return statistics.median(taken)


if __name__ == "__main__":
    main()

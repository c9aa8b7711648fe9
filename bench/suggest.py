"""How often a suggestion picks which method on each public log, and what the pick costs in similarity.

    python bench/suggest.py --logs FOLDER [--runs 20]

Prints Markdown. What evolve and TraVaS reach is read from the frontier in docs/results/evolve.md (the whole budget,
delta 1e-4), so that a pick can be held against both: the loss is the better mean of the two minus the mean of what was
picked.
"""

from __future__ import annotations

import argparse
import re
import statistics
from pathlib import Path

import veilog

DELTA = "1e-4"
RESULTS = Path(__file__).parents[1] / "docs" / "results" / "evolve.md"


def frontier() -> dict[tuple[str, str], tuple[float, float]]:
    """Mean similarity of evolve and of TraVaS for each log and epsilon."""
    table = RESULTS.read_text().partition("## The frontier")[2].partition("Released cases over")[0]
    found = {}
    for line in table.splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) == 8 and re.fullmatch(r"[\d.]+", cells[1]):
            found[cells[0], cells[1]] = float(cells[2].split()[0]), float(cells[7].split()[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    print("| log | epsilon | evolve | travas | travas suggested | loss |\n|---|---|---|---|---|---|")
    losses, logs = [], {}
    for (name, epsilon), (evolve, travas) in frontier().items():
        if name not in logs:
            logs[name] = veilog.read_variants(given.logs / f"{name}.xes.gz")
        picks = [veilog.suggest(logs[name], epsilon=epsilon, delta=DELTA, seed=i).method for i in range(given.runs)]
        share = picks.count("travas") / given.runs
        losses.append(max(evolve, travas) - share * travas - (1 - share) * evolve)
        print(f"| {name} | {epsilon} | {evolve:.3f} | {travas:.3f} | {share:.0%} | {losses[-1]:.3f} |")
    print(f"\nMean loss {statistics.mean(losses):.3f}.")
    always = {"evolve": 0, "travas": 1}
    for method, place in always.items():
        lost = statistics.mean(max(pair) - pair[place] for pair in frontier().values())
        print(f"Always {method}: {lost:.3f}.")


if __name__ == "__main__":
    main()

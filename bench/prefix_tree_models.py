"""Models from the releases of Laplace, SaCoFa, DF-Laplace and SaPa: fitness, precision, F-score, generalization.

    python bench/prefix_tree_models.py --logs FOLDER --cells FILE [--seeds 5] [--set NAME] [--only-table]

Each cell, a method with its settings on a log at an epsilon and a seed, is written to FILE as a line of JSON as soon as
it is known; cells that are there already are not run again. The Markdown tables at the end are made from FILE. Needs
pm4py (extra ``models``), which works in a process of its own with limited time and memory. Where precision on all
prefixes of the log takes longer than --seconds, it is estimated from --prefixes of them, drawn in proportion to their
cases, in at most three times as long.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefix_trees import TABLE_4
from veilog import Variants, read, release
from veilog.measures.process_model import MEASURES, model_quality
from veilog.privacy.domain import ALL_FROM_LOG

LOGS = ("receipt", "sepsis")
SETS = ("published", "certified", "play-out")


@dataclass(frozen=True)
class Cell:
    set: str
    log: str
    epsilon: str
    method: str
    seed: int
    parameters: tuple[tuple[str, Any], ...] = ()
    name: str = ""

    @property
    def column(self) -> str:
        return self.name or self.method


def cells(wanted: list[str], seeds: int) -> Iterator[Cell]:
    """Seed by seed, so that every cell has something before any has everything."""
    for seed in range(seeds):
        for set_ in wanted:
            for log in LOGS:
                yield from _of_log(set_, log, seed)


def _of_log(set_: str, log: str, seed: int) -> Iterator[Cell]:
    """Published: the settings of Table 4 of the SaCoFa paper. Certified: defaults, with and without learned rules."""
    if set_ == "certified":
        for epsilon in ("1", "0.1"):
            yield Cell(set_, log, epsilon, "laplace", seed)
            for share in (0, 0.1, 0.3):
                yield Cell(set_, log, epsilon, "sacofa", seed, (("rule_share", share),), f"sacofa, rule_share {share}")
            yield Cell(set_, log, epsilon, "df-laplace", seed)
            yield Cell(set_, log, epsilon, "sapa", seed)
        return
    for epsilon, depth, harmful, harmless in TABLE_4[log]:
        if set_ == "play-out":
            for method in ("df-laplace", "sapa"):
                yield Cell(set_, log, epsilon, method, seed, (("as_published", True),))
            continue
        common = (("as_published", True), ("depth", depth))
        yield Cell(set_, log, epsilon, "sacofa", seed, (*common, *_thresholds(harmful, harmless)))
        yield Cell(set_, log, epsilon, "laplace", seed, (*common, ("threshold", harmful)))


def _thresholds(harmful: int, harmless: int | None) -> tuple[tuple[str, Any], ...]:
    return (("threshold_harmful", harmful), ("threshold_harmless", harmless))


def measured(cell: Cell, original: Variants, seconds: float, prefixes: int) -> dict[str, Any]:
    released = release(
        original, cell.method, domain=ALL_FROM_LOG, epsilon=cell.epsilon, seed=cell.seed, **dict(cell.parameters)
    ).variants
    size = {"cases": released.cases / original.cases, "variants": len(released)}
    if released.events == 0:
        return {**size, "problem": "nothing released"}
    quality = model_quality(original, released, seconds=seconds)
    estimated = quality.f_score is None
    if estimated:
        quality = model_quality(original, released, seconds=3 * seconds, prefixes=prefixes)
    values = {"estimated": estimated, **{name: getattr(quality, name) for name in MEASURES}}
    return {**size, **values, "problem": next(iter(quality.not_computed.values()), None), "seconds": quality.seconds}


def table(lines: list[dict[str, Any]], set_: str) -> list[str]:
    """Medians over the seeds that have a value, and how many do; ~ where the precision of some is an estimate."""
    rows: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for line in lines:
        if line["set"] == set_:
            rows.setdefault((line["log"], line["epsilon"], line["name"] or line["method"]), []).append(line)
    result = ["| log | epsilon | method | F-score | fitness | precision | generalization | of runs |", "|---" * 8 + "|"]
    for (log, epsilon, method), answers in rows.items():
        cells_ = []
        for name in ("f_score", "fitness", "precision", "generalization"):
            values = [a[name] for a in answers if a.get(name) is not None]
            cells_.append(f"{statistics.median(values):.3f}" if values else "not computed")
            if name == "f_score" and len(values) > 1:
                cells_[-1] += f" ({min(values):.3f} to {max(values):.3f})"
        done = sum(a.get("f_score") is not None for a in answers)
        if any(a.get("estimated") and a.get("f_score") is not None for a in answers):
            cells_[0], cells_[2] = f"~{cells_[0]}", f"~{cells_[2]}"
        result.append(f"| {log} | {epsilon} | {method} | " + " | ".join(cells_) + f" | {done} of {len(answers)} |")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--logs", type=Path, default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ
    )
    parser.add_argument("--cells", type=Path, required=True, help="file of results, continued if it exists")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--prefixes", type=int, default=200)
    parser.add_argument("--set", action="append", choices=SETS, help="all by default")
    parser.add_argument("--only-table", action="store_true", help="run nothing, print what is there")
    arguments = parser.parse_args()
    wanted = arguments.set or list(SETS)

    lines = []
    if arguments.cells.exists():
        lines = [json.loads(line) for line in arguments.cells.read_text().splitlines()]
    known = {(a["set"], a["log"], a["epsilon"], a["name"] or a["method"], a["seed"]) for a in lines}
    if not arguments.only_table:
        originals = {name: read(Path(arguments.logs) / f"{name}.xes.gz").variants for name in LOGS}
        for cell in cells(wanted, arguments.seeds):
            if (cell.set, cell.log, cell.epsilon, cell.column, cell.seed) in known:
                continue
            answer = measured(cell, originals[cell.log], arguments.seconds, arguments.prefixes)
            lines.append({**dataclasses.asdict(cell), "parameters": dict(cell.parameters), **answer})
            with arguments.cells.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
            print(json.dumps(lines[-1]), flush=True)
    for set_ in wanted:
        print(f"\n## {set_}\n\n" + "\n".join(table(lines, set_)), flush=True)


if __name__ == "__main__":
    main()

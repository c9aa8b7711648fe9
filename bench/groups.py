"""TLKC and PRETSA: sizes, disclosure, what is kept, and the time, on real logs.

    python bench/groups.py --logs FOLDER

CPU seconds are those of one release with its check, as multiples of grouping the log's events into variants in the same
run, and as they are.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import veilog
from veilog.errors import VeilogError
from veilog.logs.eventlog import EventLog
from veilog.measures.similarity import relative_log_similarity
from veilog.privacy.domain import ALL_FROM_LOG

PUBLISHED = {20: "842 / 15,103 / 12", 40: "842 / 14,986 / 11", 60: "818 / 14,809 / 11"}


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = run()
    return time.process_time() - started, result


def sizes(variants: veilog.Variants) -> str:
    return f"{len(variants):,} / {variants.events:,} / {len(variants.labels)}"


def risk(variants: veilog.Variants, background: str, size: int) -> str:
    (found,) = veilog.risk(variants, background, size)
    worst = 0.0 if found.worst_case is None else found.worst_case
    return f"{found.case_disclosure:.4f} | {found.trace_disclosure:.4f} | {worst:.4f}"


def row(log: EventLog, base: float, method: str, background: str, size: int, /, **parameters: Any) -> str:
    try:
        seconds, release = cpu(lambda: veilog.release(log, method, **parameters))
    except VeilogError as error:
        return f"refused: {error} |"
    released = release.variants
    kept = relative_log_similarity(log.variants, released).value
    return (
        f"{sizes(released)} | {released.events / log.variants.events:.0%} | {kept:.3f} | "
        f"{risk(released, background, size)} | {seconds:.2f} | {seconds / base:.1f} |"
    )


HEAD = "variants / events / activities | events kept | similarity | cd | td | worst case | CPU s | times grouping |"
RULE = "|---|---|---|---|---|---|---|---|"


def sepsis(folder: Path) -> None:
    log = veilog.read(folder / "sepsis.xes.gz")
    base = min(cpu(lambda: replace(log).variants)[0] for _ in range(5))
    print("## Sepsis, TLKC, set, l = 6, c = 1, frequency 0.5\n")
    print("| k | ties | paper | " + HEAD + "\n|---|---|---" + RULE)
    (before,) = veilog.risk(log, "set", 6)
    print(
        f"| - | | | {sizes(log.variants)} | 100% | 1 | {before.case_disclosure:.4f} | {before.trace_disclosure:.4f} | "
        f"{before.worst_case:.4f} | | |"
    )
    for k in (20, 40, 60):
        for ties in ("published", "rare"):
            given = {"k": k, "l": 6, "background": "set", "ties": ties}
            print(f"| {k} | {ties} | {PUBLISHED[k]} | {row(log, base, 'tlkc', 'set', 6, **given)}", flush=True)
    print("\n## Sepsis, TLKC, other backgrounds, time in days\n")
    print("| score | background | l | k | " + HEAD + "\n|---|---|---|---" + RULE)
    backgrounds = (("multiset", 3), ("sequence", 1), ("sequence", 2), ("sequence", 3), ("relative", 2))
    for score, (background, largest) in itertools.product(("published", "cost"), backgrounds):
        for k in (20, 40, 60):
            given = {"k": k, "l": largest, "background": background, "time": "days", "score": score}
            measured = "set" if background == "set" else "multiset" if background == "multiset" else "sequence"
            line = row(log, base, "tlkc", measured, largest, **given)
            print(f"| {score} | {background} | {largest} | {k} | {line}", flush=True)
    print("\n## Sepsis, TLKC, set, l = 3, k = 20, sensitive Diagnose\n")
    print("| c | " + HEAD + "\n|---" + RULE)
    for c in (1.0, 0.8, 0.5, 0.4, 0.3, 0.2):
        given = {"k": 20, "l": 3, "background": "set", "c": c, "sensitive": "Diagnose"}
        print(f"| {c} | {row(log, base, 'tlkc', 'set', 3, **given)}", flush=True)


def pretsa(folder: Path) -> None:
    print("\n## PRETSA\n")
    print("| log | k | sensitive | t | " + HEAD + "\n|---|---|---|---" + RULE)
    for name in ("sepsis", "receipt", "bpic2013_incidents"):
        log = veilog.read(folder / f"{name}.xes.gz")
        base = min(cpu(lambda log=log: replace(log).variants)[0] for _ in range(5))
        for k, t in ((4, 1.0), (8, 1.0), (20, 1.0), (8, 0.3), (8, 0.1), (8, 0.05)):
            given = {"k": k} | ({"t": t, "sensitive": "duration"} if t < 1 else {})
            shown = "duration | " + str(t) if t < 1 else "- | -"
            print(f"| {name} | {k} | {shown} | {row(log, base, 'pretsa', 'sequence', 3, **given)}", flush=True)


def counterpart(folder: Path) -> None:
    """What a differentially private release of the same log keeps."""
    log = veilog.read(folder / "sepsis.xes.gz").variants
    for epsilon in (1, 0.1):
        values = [
            relative_log_similarity(
                log, veilog.release(log, "evolve", domain=ALL_FROM_LOG, epsilon=epsilon, seed=seed).variants
            ).value
            for seed in range(5)
        ]
        print(f"\nevolve on Sepsis at epsilon {epsilon}: similarity {sum(values) / len(values):.3f} (mean of 5)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--logs", type=Path, default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ
    )
    folder = Path(parser.parse_args().logs)
    sepsis(folder)
    pretsa(folder)
    counterpart(folder)


if __name__ == "__main__":
    main()

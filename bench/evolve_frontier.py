"""Ablations of evolve: one constant changed at a time, on the three logs the constants were found on.

    python bench/evolve_frontier.py --logs FOLDER [--runs 6] [--only NAME,...]

Rows are Markdown: mean ± standard deviation of the relative log similarity over seeded runs.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import veilog
from evolve import in_words, similarities
from veilog.methods.evolve.constants import DEFAULTS, Constants

CELLS = (
    ("sepsis", "1"),
    ("sepsis", "0.1"),
    ("receipt", "1"),
    ("receipt", "0.1"),
    ("bpic2013_incidents", "1"),
    ("bpic2013_incidents", "0.1"),
    ("bpic2013_incidents", "0.01"),
)
SEED = 800


def _flat(share: float) -> Constants:
    return replace(DEFAULTS, relations=((4.0, share), (100.0, share)))


BY_SIZE_ALONE = replace(DEFAULTS, relations=((150.0, 0.70), (700.0, 0.35)), relations_exponent=0.0)
"""The share of the relations falls with g, whatever the number of activities."""

PAID = ("as it is", "as many released as voted for", "small released variants dropped", "share by g alone")
PAID += ("theta 0.45", "half the pool", "no triples", "cases from the count alone", "none of these")

ABLATIONS: dict[str, Constants] = {
    "as it is": DEFAULTS,
    "share by g alone": BY_SIZE_ALONE,
    "cases from the count alone": replace(DEFAULTS, estimate_cases=False),
    "none of these": replace(
        BY_SIZE_ALONE,
        release_factor=1.0,
        smallest_release=0.5,
        theta=0.45,
        pool=10_000,
        trigram_worth=1e18,
        estimate_cases=False,
    ),
    "relations 0.2 everywhere": _flat(0.2),
    "relations 0.35 everywhere": _flat(0.35),
    "relations 0.7 everywhere": _flat(0.7),
    "as many released as voted for": replace(DEFAULTS, release_factor=1.0),
    "small released variants dropped": replace(DEFAULTS, smallest_release=0.5),
    "theta 0.45": replace(DEFAULTS, theta=0.45),
    "theta 1.2": replace(DEFAULTS, theta=1.2),
    "no triples": replace(DEFAULTS, trigram_worth=1e18),
    "half the pool": replace(DEFAULTS, pool=10_000),
    "twice the pool": replace(DEFAULTS, pool=40_000),
    "three times fewer prototypes": replace(DEFAULTS, votes_for_prototype=3.6),
    "half as many again": replace(DEFAULTS, votes_for_prototype=0.8),
    "rounds cost the same": replace(DEFAULTS, growth=1.0),
    "nothing drawn again": replace(DEFAULTS, resampled=0.05),
    "weaker prior": replace(DEFAULTS, prior_cases=(2.0, 60.0, 3000.0)),
    "stronger prior": replace(DEFAULTS, prior_cases=(10.0, 12.0, 3000.0)),
    "twice as much for the count": replace(DEFAULTS, count_share=0.06),
    "contribution 3": replace(DEFAULTS, contribution=3),
    "contribution 10": replace(DEFAULTS, contribution=10),
    "traces of 20 at most": replace(DEFAULTS, max_length=20),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--only", default=",".join(ABLATIONS))
    parser.add_argument("--paid", action="store_true", help="only what paid, each taken away from the method as it is")
    arguments = parser.parse_args()
    logs = {name: veilog.read(Path(arguments.logs) / f"{name}.xes.gz").variants for name, _ in CELLS}
    print("| | " + " | ".join(f"{name} {epsilon}" for name, epsilon in CELLS) + " |")
    print("|---" * (len(CELLS) + 1) + "|")
    for ablation in PAID if arguments.paid else arguments.only.split(","):
        row = [
            in_words(similarities(logs[name], epsilon, range(SEED, SEED + arguments.runs), ABLATIONS[ablation]))
            for name, epsilon in CELLS
        ]
        print(f"| {ablation} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()

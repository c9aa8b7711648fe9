"""How close released attributes are to the original's, on real logs, by the epsilon spent on the attribute.

    python bench/attributes.py --logs FOLDER [--runs 5]

Given to the log's own variants, with declared domains: total variation distance of the values with their activity (the
last of the case for case attributes), 0 = the same shares, 1 = nothing in common; and of the values alone.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np

import veilog
from veilog import Domain
from veilog.logs.eventlog import EventLog
from veilog.methods._events.assemble import Details, assembled, released_cases
from veilog.methods._events.attributes import choose, released_attributes
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

ATTRIBUTES = (
    ("sepsis", "org:group"),
    ("sepsis", "DiagnosticBlood"),
    ("bpic2013_incidents", "impact"),
    ("bpic2013_incidents", "resource country"),
    ("receipt", "channel"),
    ("receipt", "department"),
)
EPSILONS = ("0.1", "0.3", "1", "3")


def text(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def values_of(log: EventLog, name: str) -> Counter[tuple[str, str | None]]:
    activities = log.events.column("concept:name").to_pylist()
    if name in log.events.column_names:
        return Counter(zip(activities, map(text, log.events.column(name).to_pylist()), strict=True))
    last = [activities[end - 1] for end in log.offsets[1:].tolist()]
    return Counter(zip(last, map(text, log.cases.column(name).to_pylist()), strict=True))


def distance(first: Counter[object], second: Counter[object]) -> float:
    keys, a, b = {*first, *second}, sum(first.values()), sum(second.values())
    return sum(abs(first[k] / a - second[k] / b) for k in keys) / 2


def alone(counts: Counter[tuple[str, str | None]]) -> Counter[object]:
    total: Counter[object] = Counter()
    for (_, value), number in counts.items():
        total[value] += number
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", default=os.environ.get("VEILOG_LOGS"), required="VEILOG_LOGS" not in os.environ)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| log | attribute | values | " + " | ".join(f"epsilon {e}" for e in EPSILONS) + " |")
    print("|" + "---|" * (len(EPSILONS) + 3))
    for name, attribute in ATTRIBUTES:
        log = veilog.read(Path(arguments.logs) / f"{name}.xes.gz")
        real = values_of(log, attribute)
        domain = tuple(sorted({v for _, v in real if v is not None}))
        cells = []
        for epsilon in EPSILONS:
            found = []
            for seed in range(arguments.runs):
                source = noise.seeded(seed)
                curator = Curator(
                    log.variants, log=log, domain=Domain(attributes={attribute: domain}), randomness=source
                )
                cases = released_cases(log.variants, noise.generator(source))
                chosen, rest = choose(curator, (attribute,), Fraction(epsilon), Fraction(0), print)
                columns = released_attributes(curator, rest, cases, chosen)
                made = values_of(assembled(Details(cases, columns=columns), log.metadata), attribute)
                found.append((distance(Counter(real), Counter(made)), distance(alone(real), alone(made))))
            joint, single = np.mean(found, axis=0)
            cells.append(f"{joint:.2f} ({single:.2f})")
        print(f"| {name} | {attribute} | {len(domain)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

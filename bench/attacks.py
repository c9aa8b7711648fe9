"""Gains of attacks on people from certified releases; `veilog risk` at large size.

``attacks``: one random half of a log is released. The other half is the control: people who are held out. The attacks
single out, link and infer with all kinds of knowledge, and each has a gain over the control. Those in the log and those
held out are exchangeable, so the mean gain of any attack is at most the proven bound.
``risk-large``: the command on a table of 131,000 cases, written for it.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import veilog
from benchmark import CPU, PEAK, WALL, benchmark
from columns import Column, grouped
from timing import timed
from veilog.errors import VeilogError
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Profile, Row, Table
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.singling_out import halves, inference, linkability, singling_out
from veilog.measures.singling_out.inference import Inference
from veilog.measures.singling_out.linkage import Linkability
from veilog.measures.singling_out.measure import SinglingOut
from veilog.methods import METHODS
from veilog.privacy.domain import Domain
from veilog.releasing.checks import meaning_of

EPSILON = "1"
DELTA = "1e-4"
LOGS = ("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie", "ccc19")
LARGE = {"cases": 131_000, "shared": 3_826, "alone": 16_958}
"""Cases and variants as in a table for which the command once wrongly printed "0 can be singled out"."""

Attack = Callable[..., SinglingOut | Linkability | Inference]


def certified() -> list[str]:
    """Return the methods whose certified mode is differentially private."""
    return [name for name, method in METHODS.items() if method.certified and str(method.budget) != "none"]


def cells(profile: Profile) -> Iterator[Cell]:
    names = profile.options.get("method", ",".join(certified())).split(",")
    for run in range(profile.runs):
        for log in profile.logs:
            for method in names[:2] if profile.quick else names:
                yield Cell(
                    log, method, (("epsilon", EPSILON), ("delta", DELTA if METHODS[method].needs_delta else "0")), run
                )


@dataclass
class Gains:
    """Gains over people held out, in percentage points, with lower ends at 99.5 %."""

    values: list[float]
    lows: list[float]
    above: int = 0

    def add(self, attack: Attack, first: Variants, released: Variants, second: Variants) -> None:
        try:
            found = attack(first, released, control=second)
        except VeilogError:  # no person to attack, or nothing to know
            return
        for row in found.results:
            self.values.append(100 * row.beyond.value)
            self.lows.append(100 * row.beyond.low)
            self.above += row.more


def measure(given: Given, cell: Cell) -> Measured:
    first, second = halves(given.log, seed=cell.run, person=False)  # the bound is for cases, whichever person has them
    assert isinstance(first, EventLog)
    assert isinstance(second, EventLog)
    domain = Domain().taken_from_log(["activities", "max_length"])
    released = veilog.release(first, cell.method, domain=domain, **dict(cell.settings))  # type: ignore[arg-type]
    meaning = meaning_of(released.guarantee)
    assert meaning is not None, "what is certified has a bound"
    gains = Gains([], [])
    for attack in (singling_out, linkability, inference):
        gains.add(attack, first.variants, released.variants, second.variants)
    values = {"gains": len(gains.values), "above": gains.above, "bound": 100 * meaning.membership_test_gap}
    if gains.values:
        values |= {"mean": float(np.mean(gains.values)), "most": max(gains.values), "low": max(gains.lows)}
    return Measured(values | {"cases": released.variants.cases})


def large(path: Path, cases: int, seed: int = 1) -> None:
    """Write a table of so many cases, partly of unique variants, in random order."""
    rng = np.random.default_rng(seed)
    shared, alone = (LARGE[name] * cases // LARGE["cases"] for name in ("shared", "alone"))
    names = [f"{letter}{i}" for letter in "ABC" for i in range(8)]
    paths: dict[tuple[int, ...], None] = {}
    while len(paths) < shared + alone:
        paths[tuple(rng.integers(0, len(names), rng.integers(3, 13)).tolist())] = None
    weights = 1 / np.arange(1, shared + 1)
    often = 2 + rng.multinomial(cases - alone - 2 * shared, weights / weights.sum())
    rows = np.repeat(np.arange(len(paths)), np.concatenate([often, np.ones(alone, dtype=np.int64)]))
    sequences = list(paths)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("case", "activity", "timestamp"))
        for case, row in enumerate(rng.permutation(rows).tolist()):
            day = f"2024-{1 + case % 12:02}-{1 + case % 28:02}"
            table.writerows((case, names[code], f"{day}T08:{at:02}:00Z") for at, code in enumerate(sequences[row]))


def large_cells(profile: Profile) -> Iterator[Cell]:
    for run in range(profile.runs):
        yield Cell("", "", (("cases", int(profile.options.get("cases", LARGE["cases"]))),), run)


def large_measure(given: Given, cell: Cell) -> Measured:
    cases = int(cell.get("cases"))
    table, answer = given.folder / f"large-{cases}.csv", given.folder / "risk.json"
    if not table.exists():
        large(table, cases)
    command = [sys.executable, "-m", "veilog", "risk", str(table), "--quiet", "--json", str(answer)]
    costs, _ = timed(lambda: subprocess.run(command, check=True, capture_output=True))
    rows = json.loads(answer.read_text())["attacks"]
    own = next(row for row in rows if row["attack"] == "own path")
    return Measured(costs | {"alone": own["alone"], "share": 100 * own["alone"] / own["people"]})


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a table with a line a method: all its gains on all logs together."""
    head = ("method", "logs", "gains", "above chance", "mean gain", "largest lower end of a gain", "bound on the mean")
    lines = []
    for (method,), own in grouped([row for row in rows if row.get("gains")], ["method"]).items():
        gains, above = (sum(row.get(name) or 0 for row in own) for name in ("gains", "above"))
        mean = sum((row.get("mean") or 0) * (row.get("gains") or 0) for row in own) / gains
        low, bound = max(row.get("low") or 0 for row in own), max(row.get("bound") or 0 for row in own)
        logs = len({row.cell.log for row in own})
        lines.append((method, f"{logs}", f"{gains:.0f}", f"{above:.0f}", f"{mean:+.2f}", f"{low:+.1f}", f"{bound:.1f}"))
    return [Table("Gains over people held out", head, tuple(lines), "In percentage points.")]


ATTACKS = Experiment(
    name="attacks",
    what="Attacks on the people of a released half, beside people held out.",
    cells=cells,
    measure=measure,
    tables=tables,
    logs=LOGS,
    quick_logs=("ccc19",),
    runs=5,
    page="measures/singling-out.md",
)

BENCHMARKS = (
    ATTACKS,
    benchmark(
        "risk-large",
        "The command risk on a table of 131,000 cases in 20,784 variants.",
        large_measure,
        large_cells,
        (
            *(Column("cases with a path of their own", "alone", ",.0f"), Column("in per cent", "share", ".2f")),
            *(CPU, WALL, PEAK),
        ),
        runs=1,
        alone=True,
        small=Profile((), 1, True, {"cases": "1310"}),
        page="measures/singling-out.md",
    ),
)

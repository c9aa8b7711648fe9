"""Decisions of evolve on simulated logs of many shapes: its rule, fixed choices.

A shape is a family with a number of activities, of cases, and a mean length. Some of the rule's constants were chosen
with most of these logs in sight, so they are no independent test of it. All else is as by default, but the release is
the fine one (``detail``), so that the choice alone shows.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmark import grid
from columns import grouped
from evolve import release
from timing import timed
from veilog._typing import FloatArray, IntArray
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Row, Table, mean, spread
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods.evolve.constants import DEFAULTS, Constants

FAMILIES = ("chain", "second", "classes", "blocks", "tails", "loops", "once")
"""Families of logs.

*chain*: a case goes on from where it is, whatever was before. *second*: it goes on from where it is and was before.
*classes*: cases are of a few kinds, which hardly share a step. *blocks*: activities side by side in any order, choices
and loops, one block after another. *tails*: few ways that most cases take, many that few take, with slips. *loops*: one
activity again and again, between a first and a last one. *once*: blocks of which none comes again.
"""


@dataclass(frozen=True)
class Shape:
    """Shape of a simulated log."""

    family: str
    activities: int
    cases: int
    length: int

    @property
    def name(self) -> str:
        return f"{self.family} {self.activities}/{self.cases}/{self.length}"

    def log(self) -> Variants:
        """Return the log of this shape, always the same."""
        rng = np.random.default_rng([FAMILIES.index(self.family), self.activities, self.cases, self.length])
        case, code = globals()[f"_{self.family}"](rng, self.activities, self.cases, self.length)
        offsets = np.searchsorted(case, np.arange(self.cases + 1))
        return Variants.from_arrays([f"a{i}" for i in range(self.activities)], code.astype(np.int32), offsets)


Events = tuple[IntArray, IntArray]
"""Case and activity of each event, case by case."""


def _chain(rng: np.random.Generator, activities: int, cases: int, length: int) -> Events:
    return _walks(rng, np.arange(activities), _steps(rng, activities, length), cases)


def _second(rng: np.random.Generator, activities: int, cases: int, length: int) -> Events:
    """Make three states for each activity: the state reveals the previous step."""
    emits = np.tile(np.arange(activities), 3)
    steps = _steps(rng, 3 * activities, length, rng.permutation(np.repeat(np.arange(activities), 3)) * 3)
    return _walks(rng, emits, steps, cases)


def _classes(rng: np.random.Generator, activities: int, cases: int, length: int) -> Events:
    """Make five kinds of cases over the same activities, each with a chain of its own."""
    kinds = np.sort(rng.dirichlet(np.full(5, 2.0)))[::-1]
    who = rng.choice(5, size=cases, p=kinds)
    cases_of, codes = [], []
    for kind in range(5):
        own = np.flatnonzero(who == kind)
        case, code = _walks(rng, rng.permutation(activities), _steps(rng, activities, length), len(own))
        cases_of.append(own[case])
        codes.append(code)
    case = np.concatenate(cases_of)
    order = np.argsort(case, kind="stable")
    return case[order], np.concatenate(codes)[order]


def _blocks(rng: np.random.Generator, activities: int, cases: int, length: int) -> Events:
    """Make blocks of one to five activities: in any order, one of them, or in a loop."""
    rest = list(rng.permutation(activities))
    parts: list[tuple[str, IntArray]] = []
    while rest:
        size = min(len(rest), int(rng.integers(1, 6)))
        parts.append((str(rng.choice(["all", "one", "again"])), np.array([rest.pop() for _ in range(size)])))
    usual = sum(len(part) if kind != "one" else 1 for kind, part in parts)
    again = np.clip(1 - usual / (1.5 * length), 0.1, 0.9)
    taken = min(1.0, length / usual)
    case, code = [np.arange(cases)], [np.full(cases, parts[0][1][0])]
    for kind, part in parts:
        alive = np.flatnonzero(rng.random(cases) < taken)
        for _ in range(12 if kind == "again" else 1):
            rows = np.tile(part, (len(alive), 1))
            if kind != "again":
                rows = rng.permuted(rows, axis=1)
            rows = rows[:, :1] if kind == "one" else rows
            case.append(np.repeat(alive, rows.shape[1]))
            code.append(rows.ravel())
            alive = alive[rng.random(len(alive)) < again]
    every = np.concatenate(case)
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate(code)[order]


def _tails(rng: np.random.Generator, activities: int, cases: int, length: int) -> Events:
    """Make ways of log-normal length, the r-th with weight 1 / r, and 2 % of slips."""
    ways = max(20, cases // 8)
    lengths = np.clip(rng.lognormal(np.log(length), 0.6, size=ways), 1, 6 * length).astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    case, code = _walks(rng, np.arange(activities), _steps(rng, activities, 2 * length), ways)
    firsts = np.searchsorted(case, np.arange(ways))
    found = np.diff(np.append(firsts, len(case)))
    place = np.arange(begins[-1]) - np.repeat(begins[:-1], lengths)
    ways_codes = code[np.repeat(firsts, lengths) + place % np.repeat(found, lengths)]
    weight = 1.0 / np.arange(1, ways + 1)
    who = rng.choice(ways, size=cases, p=weight / weight.sum())
    own = lengths[who]
    place = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
    codes = ways_codes[np.repeat(begins[who], own) + place]
    slips = rng.random(len(codes)) < 0.02
    codes[slips] = rng.integers(0, activities, size=int(slips.sum()))
    return np.repeat(np.arange(cases), own), codes


def _loops(rng: np.random.Generator, activities: int, cases: int, length: int) -> Events:
    """Make cases of two thirds to four thirds of the usual length, each as likely."""
    lengths = rng.integers(2 * length // 3, 4 * length // 3, size=cases)
    ends = np.cumsum(lengths)
    codes = np.ones(ends[-1], dtype=np.int64)
    codes[ends - lengths], codes[ends - 1] = 0, activities - 1
    return np.repeat(np.arange(cases), lengths), codes


def _once(rng: np.random.Generator, activities: int, cases: int, length: int) -> Events:
    """Make a first activity, then blocks of one to four, which most cases have.

    A block comes in any order, in one order, or as one of its activities, of which some are more frequent.
    """
    rest = rng.permutation(activities)
    parts = np.split(rest[1:], np.cumsum(rng.integers(1, 5, size=activities)))
    kinds = rng.choice(3, size=len(parts))
    usual = 1 + sum(len(part) if kind else min(1, len(part)) for kind, part in zip(kinds, parts, strict=True))
    case, code = [np.arange(cases)], [np.full(cases, rest[0])]
    for kind, part in zip(kinds, parts, strict=True):
        if not len(part):
            continue
        taken = min(1.0, length / usual) * float(rng.choice([0.6, 1.0, 1.3]))
        alive = np.flatnonzero(rng.random(cases) < np.clip(taken, 0.2, 1.0))
        rows = np.tile(part, (len(alive), 1))
        if kind == 0:
            rows = rng.choice(part, size=(len(alive), 1), p=rng.dirichlet(np.ones(len(part))))
        elif kind == 1:
            rows = rng.permuted(rows, axis=1)
        case.append(np.repeat(alive, rows.shape[1]))
        code.append(rows.ravel())
    every = np.concatenate(case)
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate(code)[order]


def _steps(rng: np.random.Generator, states: int, length: int, order: IntArray | None = None) -> FloatArray:
    """Return the probabilities from each state to each other, for a mean ``length``.

    The last row is the start, the last column the end. Cases go mostly on to one of the next states, seldom back.
    """
    place = np.arange(states) if order is None else order[:states]
    stride = max(1.0, 1.5 * states / length)
    sharp = float(rng.choice([1.0, 4.0]))
    chances = np.zeros((states + 1, states + 1))
    for state in range(states + 1):
        at = -1 if state == states else int(place[state])
        ahead = at + 1 + rng.exponential(stride, size=3).astype(np.int64)
        targets = np.append(ahead % states, rng.integers(0, max(1, min(at + 1, states)), size=1))
        weights = rng.dirichlet([3.0 * sharp, 1.0, 0.6 / sharp, 0.6 / sharp])
        np.add.at(chances[state], targets, weights)
    chances[states, states] = 0.0
    late = np.append(np.linspace(0.0, 1.0, states) ** 4, 0.0)[np.append(place % states, states)]
    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = np.sqrt(low * high)
        out = middle * late / (1 + middle * late)
        inner = chances[:states, :states] * (1 - out[:states, None])
        inner /= np.maximum((inner.sum(axis=1, keepdims=True) + out[:states, None]), 1e-12)
        visits = np.linalg.solve(np.eye(states) - inner.T + 1e-9 * np.eye(states), chances[states, :states])
        low, high = (middle, high) if visits.sum() > length or (visits < -1e-6).any() else (low, middle)
    chances[:states, :states] = inner
    chances[:states, states] = np.maximum(1 - inner.sum(axis=1), 0)
    return chances


def _walks(rng: np.random.Generator, emits: IntArray, chances: FloatArray, cases: int) -> Events:
    """Return walks over the states, each with its activity, of at most 500 steps."""
    end = len(chances) - 1
    tables = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    alive, state = np.arange(cases), np.full(cases, end)
    case, code = [], []
    for _ in range(500):
        state = np.minimum((tables[state] <= rng.random(len(alive))[:, None]).sum(axis=1), end)
        alive, state = alive[state != end], state[state != end]
        if not len(alive):
            break
        case.append(alive)
        code.append(emits[state])
    every = np.concatenate(case)
    order = np.argsort(every, kind="stable")
    return every[order], np.concatenate(code)[order]


SHAPES: dict[str, Shape] = {
    shape.name: shape
    for family, sizes in {
        "chain": ((4, 1000, 6), (6, 10000, 12), (9, 300, 4), (12, 1500, 15), (16, 5000, 8), (40, 3000, 12)),
        "second": ((4, 1000, 6), (6, 10000, 12), (12, 1500, 15), (16, 5000, 8), (40, 3000, 12), (24, 13000, 20)),
        "classes": ((4, 1000, 6), (6, 10000, 12), (12, 1500, 15), (16, 5000, 8), (40, 3000, 12), (24, 13000, 20)),
        "blocks": ((4, 1000, 6), (9, 300, 4), (12, 1500, 15), (16, 5000, 8), (24, 1000, 50), (24, 13000, 20)),
        "tails": ((6, 10000, 12), (12, 1500, 15), (16, 5000, 8), (40, 3000, 12), (24, 1000, 50), (24, 13000, 20)),
    }.items()
    for shape in (Shape(family, *size) for size in sizes)
} | {
    shape.name: shape
    for shape in (
        Shape("chain", 10, 100_000, 5),
        Shape("chain", 200, 4000, 15),
        Shape("second", 32, 20_000, 10),
        Shape("second", 24, 1000, 50),
        Shape("classes", 12, 1000, 100),
        Shape("classes", 600, 1000, 30),
        Shape("blocks", 63, 8000, 15),
        Shape("blocks", 100, 4000, 15),
        Shape("tails", 10, 100, 5),
        Shape("tails", 8, 30_000, 3),
    )
}
"""Simulated shapes with 4 to 600 activities, 100 to 100,000 cases, 3 to 100 events a case."""

ALWAYS = 1e6
"""Expected memory of cases at which triples are worth any price, among up to 64 activities."""
CHOICES: dict[str, Constants] = {
    "rule": DEFAULTS,
    "never triples": replace(DEFAULTS, triple_shares=()),
    "always triples": replace(DEFAULTS, triple_shares=(0.2,), memory=ALWAYS),
    "never repeats": replace(DEFAULTS, repeats=False),
    "always repeats": replace(DEFAULTS, repeats=True),
}


def decided(given: Given, cell: Cell) -> Measured:
    log = SHAPES[cell.log].log()
    chosen = CHOICES[str(cell.get("choice"))]
    costs, made = timed(lambda: release(log, str(cell.get("epsilon")), cell.run, chosen, "detail"))
    return Measured(
        {"similarity": relative_log_similarity(log, made).value if made.cases else 0.0, "cpu": costs["cpu"]}
    )


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return a line for each shape, and the gap of the rule to the best fixed choice."""
    lines, losses = [], []
    for (log, epsilon), own in grouped(rows, ("log", "epsilon")).items():
        by = {choice: found for (choice,), found in grouped(own, ("choice",)).items()}
        means = {choice: mean(found, "similarity") for choice, found in by.items()}
        rule, fixed = means.pop("rule", None), [value for value in means.values() if value is not None]
        if rule is None or not fixed:
            continue
        losses.append(max(fixed) - rule)
        shown = (spread(by[choice], "similarity", ".3f") if choice in by else "-" for choice in CHOICES)
        lines.append((log, epsilon, *shown, f"{losses[-1]:+.3f}"))
    if not lines:
        return []
    near = sum(loss <= 0.01 for loss in losses)
    note = (
        f"Within .01 of the best fixed choice, or better: {near} of {len(losses)} lines; the mean loss is "
        f"{statistics.fmean(losses):.4f}, the largest {max(losses):.3f}."
    )
    return [Table("Decisions on simulated shapes", ("log", "epsilon", *CHOICES, "loss"), tuple(lines), note)]


LONG = (
    *(Shape("chain", 30, 1500, 80), Shape("second", 25, 1000, 100), Shape("classes", 20, 1000, 60)),
    *(
        Shape("tails", 30, 1500, 50),
        Shape("chain", 100, 1200, 120),
        Shape("loops", 3, 800, 45),
        Shape("loops", 3, 800, 90),
    ),
)
LIMITS = (60, 200, 1000)


def limited(given: Given, cell: Cell) -> Measured:
    """Measure similarity of a release of long cases, and the error of their length."""
    (shape,) = (shape for shape in LONG if shape.name == cell.log)
    log = shape.log()
    chosen = replace(DEFAULTS, max_length=int(cell.get("limit")))
    costs, made = timed(lambda: release(log, str(cell.get("epsilon")), cell.run, chosen))
    length = made.events / made.cases / (log.events / log.cases) - 1
    return Measured({"similarity": relative_log_similarity(log, made).value, "length": length, "cpu": costs["cpu"]})


def limits(rows: Sequence[Row]) -> list[Table]:
    lines = []
    for (log, epsilon), own in grouped(rows, ("log", "epsilon")).items():
        by = {int(limit): found for (limit,), found in grouped(own, ("limit",)).items()}
        shown = [f"{spread(by[n], 'similarity', '.3f')}, {mean(by[n], 'length') or 0:+.0%}" for n in LIMITS if n in by]
        lines.append((log, epsilon, *shown))
    note = "Similarity, and by how much cases are too long on average."
    return [
        Table("Long cases by the longest trace imagined", ("log", "epsilon", *map(str, LIMITS)), tuple(lines), note)
    ]


BENCHMARKS = (
    Experiment(
        name="evolve-shapes",
        what="evolve's decisions by its rule beside fixed choices, on simulated logs of many shapes.",
        cells=grid(
            "evolve",
            logs=tuple(SHAPES),
            epsilon=("1",),
            choice=tuple(CHOICES),
            quick={"choice": tuple(CHOICES)[:2]},
        ),
        measure=decided,
        tables=tables,
        runs=2,
        quick_runs=1,
        page="results/evolve.md",
    ),
    Experiment(
        name="evolve-long",
        what="evolve on simulated logs of long cases, by the longest trace that it may imagine.",
        cells=grid(
            "evolve",
            logs=tuple(shape.name for shape in LONG),
            epsilon=("1", "0.2"),
            limit=LIMITS,
            quick={"epsilon": ("1",), "limit": (60,)},
        ),
        measure=limited,
        tables=limits,
        runs=5,
        quick_runs=1,
        page="results/evolve.md",
    ),
)

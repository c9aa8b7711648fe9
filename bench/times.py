"""Distances of released times from the original's, on real logs, by epsilon.

Times are added to the log's own variants (nothing else then matters) and to a release of evolve at epsilon 1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmark import CPU, benchmark, grid
from calendars import KINDS
from columns import Column
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured, Profile
from veilog.logs import files
from veilog.logs.eventlog import START, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic import hospital as simulate
from veilog.logs.variants import Sequences, Variants
from veilog.measures.use_cases.performance import OFTEN, PERFORMANCE
from veilog.measures.use_cases.sides import split
from veilog.measures.use_cases.use_case import UseCaseOptions
from veilog.methods._events import fits
from veilog.methods._events.assemble import OF_STARTS, Details, assemble_log, released_cases
from veilog.methods._events.times import durations, histogram, hours
from veilog.methods._events.times.processing import add_starts
from veilog.methods._events.times.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.privacy.mechanisms import noise
from veilog.releasing.run import release

LOGS = ("sepsis", "bpic2013_incidents", "receipt", "unrineweginfectie", "traffic_fines")
ERRORS = ("frequent", "by occurrence", "all", "medians", "duration", "mean duration", "hours", "weeks")


def original_of(log: EventLog) -> tuple[Sequences, np.ndarray]:
    column = log.events.column("concept:name").combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    times = log.events.column("time:timestamp").cast(pa.int64()).to_numpy()
    return Sequences(tuple(column.dictionary.to_pylist()), column.indices.to_numpy(), log.offsets), times


def gaps_of(cases: Sequences, times: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    inner = np.ones(len(cases.codes), dtype=bool)
    inner[cases.offsets[:-1][cases.lengths > 0]] = False
    at = np.flatnonzero(inner)
    size = len(cases.labels)
    keys = cases.codes[at - 1].astype(np.int64) * size + cases.codes[at]
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    parts = np.split(((times[at] - times[at - 1]) / 1e6)[order], starts[1:])
    names = ((cases.labels[k // size], cases.labels[k % size]) for k in found.tolist())
    return dict(zip(names, parts, strict=True))


def shares(moments: np.ndarray, unit: int, number: int, first: int) -> np.ndarray:
    cells = np.clip((moments // 1_000_000 - first) // unit, 0, 10**6) % number
    return np.bincount(cells, minlength=number) / len(moments)


def errors(log: EventLog, cases: Sequences, times: np.ndarray, first: int) -> list[float]:
    raw, moments = original_of(log)
    real, made = gaps_of(raw, moments), gaps_of(cases, times)
    common = [p for p in made if p in real and real[p].mean() > 0]
    number = np.array([len(real[p]) for p in common])
    means = np.array([abs(made[p].mean() / real[p].mean() - 1) for p in common])
    medians = np.array([abs(np.median(made[p]) - np.median(real[p])) / max(np.median(real[p]), 1) for p in common])
    order = np.argsort(means)
    middle = order[np.searchsorted(np.cumsum(number[order]), number.sum() / 2)]
    frequent = number >= 100

    def durations(of: Sequences, at: np.ndarray) -> np.ndarray:
        going = of.lengths > 0
        return at[of.offsets[1:][going] - 1] - at[of.offsets[:-1][going]]

    starts, real_starts = times[cases.offsets[:-1][cases.lengths > 0]], moments[raw.offsets[:-1][raw.lengths > 0]]
    weeks = np.abs(shares(starts, 604_800, 2000, first) - shares(real_starts, 604_800, 2000, first)).sum() / 2
    hours = np.corrcoef(shares(times, 3600, 24, 0), shares(moments, 3600, 24, 0))[0, 1]
    return [
        float(np.median(means[frequent])),
        float(means[middle]),
        float(np.median(means)),
        float(np.median(medians[frequent])),
        abs(float(np.median(durations(cases, times)) / np.median(durations(raw, moments))) - 1),
        abs(float(durations(cases, times).mean() / durations(raw, moments).mean()) - 1),
        float(hours),
        float(weeks),
    ]


def times(given: Given, cell: Cell) -> Measured:
    log, source = given.log, noise.seeded(cell.run)
    variants = log.variants
    if cell.get("variants") == "evolve":
        variants = release(variants, "evolve", domain=ALL_FROM_LOG, epsilon=1, seed=cell.run).variants
    curator = Curator(log.variants, log=log, randomness=source)
    cases = released_cases(variants, noise.generator(source))
    window = curator.events.window
    costs, made = timed(lambda: released_times(curator, Fraction(str(cell.get("epsilon"))), cases, window=window))
    found = errors(log, cases.rows(0, len(cases)), made, int(window[0].timestamp()))
    return Measured(dict(zip(ERRORS, found, strict=True)) | {"cpu": costs["cpu"]})


MADE_UP = {
    "hospital, 3,000 cases": lambda: simulate.hospital(3000, 11),
    "network, 5,000 cases": lambda: simulate.wide(5000, 30, 12, 5),
}
DISTANCES = ("cycle_time", "relative", "absolute", "arrival", "circadian")
HALVINGS = {"traffic_fines": 3}
MODULES = {"durations": durations, "fits": fits, "histogram": histogram, "hours": hours}


@cache
def read_once(log: str, path: Path | None) -> EventLog:
    return (MADE_UP | KINDS)[log]() if path is None else files.read(path)


@cache
def flow(log: str, path: Path | None, seed: int) -> Variants:
    """Return the variants of a release at epsilon 1 of which 0.4 is for times."""
    variants = read_once(log, path).variants
    return release(variants, "evolve", domain=ALL_FROM_LOG, epsilon="0.6", seed=seed).variants


@cache
def floors(log: str, path: Path | None) -> dict[str, float]:
    """Return the distances of two random halves of a log, as means of ten halvings.

    The largest log has three.
    """
    original = read_once(log, path)
    scores = [PERFORMANCE.score(*split(original, 0.5, seed), UseCaseOptions()) for seed in range(HALVINGS.get(log, 10))]
    return {name: float(np.mean([score[name] or 0.0 for score in scores])) for name in scores[0]}


def released_at(given: Given, cell: Cell) -> Measured:
    """Measure a release of evolve at epsilon 1, of which 0.4 is for times.

    The times have a delta or none, and a constant may have another value.
    """
    log, variants = read_once(cell.log, given.path), flow(cell.log, given.path, cell.run)
    name, _, value = str(cell.get("constant")).partition("=")
    where, _, name = name.rpartition(".")
    module = MODULES[where or "durations"]
    source = noise.seeded(1000 + cell.run)
    curator = Curator(log.variants, log=log, randomness=source)
    cases = released_cases(variants, noise.generator(source))
    with patch.object(module, name, ast.literal_eval(value)) if value else nullcontext():
        delta = Fraction(str(cell.get("delta") or "0"))
        moments = released_times(curator, Fraction("0.4"), cases, window=curator.events.window, delta=delta)
    made = assemble_log(Details(cases, moments), log.metadata)
    scores, floor = PERFORMANCE.score(made, log, UseCaseOptions()), floors(cell.log, given.path)
    real, found = (gaps_of(*original_of(one)) for one in (log, made))
    often = [pair for pair in found if len(real.get(pair, ())) >= OFTEN and real[pair].mean() > 0]
    off = [abs(found[pair].mean() / real[pair].mean() - 1) for pair in often]
    factors = [abs(np.log((np.median(found[pair]) + 1) / (np.median(real[pair]) + 1))) for pair in often]  # in seconds
    return Measured(
        {name: (scores[name] or 0.0) / max(floor[name], 1e-9) for name in DISTANCES}
        | {name: scores[name] for name in ("median_duration", "mean_duration")}
        | {"pairs": float(np.median(off)) if off else None}
        | {"pair medians": float(np.exp(np.median(factors))) if factors else None}
    )


WORK = ("processing", "waiting")


def overlapping(log: EventLog) -> tuple[str, ...]:
    """Return every third activity, whose events may overlap with the one before them."""
    return log.activity_codes[0][::3]


def worked(given: Given, cell: Cell) -> Measured:
    """Measure released starts of events: evolve with 0.4 for times, synthetic starts.

    The reference is the distance of two random halves of the log.
    """
    plain, variants = read_once(cell.log, given.path), flow(cell.log, given.path, cell.run)
    free = overlapping(plain) if cell.get("overlaps") else ()
    log = simulate.draw_starts(plain, overlapping=free)
    source = noise.seeded(2000 + cell.run)
    curator = Curator(log.variants, log=log, randomness=source)
    cases = released_cases(variants, noise.generator(source))
    budget = Fraction("0.4") * Fraction(str(cell.get("epsilon")))
    window = curator.events.window
    moments = released_times(curator, budget * (1 - OF_STARTS), cases, window=window)
    ended, began = add_starts(curator, budget * OF_STARTS, Fraction(0), cases, moments)
    made = assemble_log(Details(cases, ended), log.metadata)
    made = replace(made, events=made.events.append_column(START, pa.array(began).cast(TIMESTAMP_TYPE)))
    values: dict[str, float | None] = {}
    for name, pair in (("", (made, log)), ("halves ", split(log, 0.5, cell.run))):
        scores, sides = PERFORMANCE.score(*pair, UseCaseOptions()), [work_of(one) for one in pair]
        often = [label for label, (took, _) in sides[1].items() if len(took) >= OFTEN and label in sides[0]]
        middle = {o: [float(np.median(side[o][0])) for side in sides] for o in often}
        medians = [abs(ours / real - 1) for ours, real in middle.values() if real]
        overlaps = [abs(sides[0][o][1] - sides[1][o][1]) for o in often]
        values |= {name + one: scores[one] for one in WORK}
        values |= {f"{name}median": float(np.median(medians)), f"{name}overlaps": float(np.mean(overlaps))}
    return Measured(values)


def work_of(log: EventLog) -> dict[str, tuple[np.ndarray, float]]:
    """Return the seconds of each activity's events, and the share that overlaps.

    An event overlaps if it begins before the one before it ended.
    """
    labels, codes = log.activity_codes
    ended, began = (log.events.column(name).cast(pa.int64()).to_numpy() for name in (TIMESTAMP, START))
    inner = np.ones(len(codes), dtype=bool)
    inner[log.offsets[:-1][np.diff(log.offsets) > 0]] = False
    over = inner & (began < np.concatenate([ended[:1], ended[:-1]]))
    return {
        label: ((ended - began)[codes == code] / 1e6, float(over[(codes == code) & inner].mean()))
        for code, label in enumerate(labels)
        if ((codes == code) & inner).any()
    }


def released_cells(profile: Profile) -> Iterator[Cell]:
    yield from grid("evolve", logs=(*profile.logs, *MADE_UP, *KINDS), constant=("",), delta=("", "1e-5"))(profile)


def worked_cells(profile: Profile) -> Iterator[Cell]:
    yield from grid("evolve", logs=(*profile.logs, *MADE_UP), overlaps=(False, True), epsilon=("1", "0.3"))(profile)


CONSTANTS = (
    *(
        "",
        "PLACES=3",
        "PLACES=8",
        "GROUP_NOISES=6",
        "GROUP_NOISES=24",
        "MOST_DURATION_GROUPS=5",
        "MOST_DURATION_GROUPS=20",
    ),
    *(
        "ROUNDS=5",
        "ROUNDS=20",
        "hours.DAY_NOISES=2",
        "hours.DAY_NOISES=8",
        "hours.DAYTIMES=(1,1)",
        "hours.DAYTIMES=(3,1)",
    ),
    *("histogram.FINE=125", "histogram.FINE=500", "histogram.STANDING_OUT=1.875", "histogram.STANDING_OUT=7.5"),
    *("fits.END=1.0", "fits.END=2.0", "fits.TAIL_NOISES=50", "fits.TAIL_NOISES=200", "fits.RISE=1", "fits.RISE=3"),
)


def constant_cells(profile: Profile) -> Iterator[Cell]:
    yield from grid("evolve", logs=(*profile.logs, *MADE_UP, *KINDS), constant=CONSTANTS)(profile)


_RELEASED = tuple(
    Column(name, name, ".2f", "spread")
    for name in (*DISTANCES, "median_duration", "mean_duration", "pairs", "pair medians")
)
_EPSILONS = ("0.1", "0.3", "1", "3", "10")
BENCHMARKS = (
    benchmark(
        "times",
        "How close released times are to the original's.",
        times,
        grid("evolve", variants=("own", "evolve"), epsilon=_EPSILONS, quick={"epsilon": "1"}),
        (*(Column(name, name, ".2f", "spread") for name in ERRORS), CPU),
        logs=LOGS,
        page="results/times.md",
    ),
    benchmark(
        "times-released",
        "Distances of a release with times, over those of two halves of the log.",
        released_at,
        released_cells,
        _RELEASED,
        logs=("sepsis", "receipt", "bpic2013_incidents", "traffic_fines"),
        runs=10,
        page="results/times.md",
    ),
    benchmark(
        "processing",
        "How long events take, apart from waiting: a release beside a log whose events have made-up starts.",
        worked,
        worked_cells,
        [
            Column(name, name, ".2f", "spread")
            for part in ("", "halves ")
            for name in (*(part + one for one in WORK), f"{part}median", f"{part}overlaps")
        ],
        logs=("sepsis", "receipt", "bpic2013_incidents"),
        runs=5,
        page="results/times.md",
    ),
    benchmark(
        "times-constants",
        "The same with one constant of times changed at a time.",
        released_at,
        constant_cells,
        _RELEASED,
        logs=("sepsis", "receipt", "bpic2013_incidents"),
        runs=10,
        page="results/times.md",
    ),
)

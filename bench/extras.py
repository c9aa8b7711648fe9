"""How close released times and attributes are to the original's, on real logs, by the epsilon spent on them.

Times are given to the log's own variants (nothing else is then in the way) and to a release of evolve at epsilon 1.
Attributes are given to the log's own variants, with declared domains: total variation distance of the values with
their activity (the last of the case for case attributes), 0 = the same shares, 1 = nothing in common; and of the values
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa

from benchmark import CPU, benchmark, grid
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured, Plan
from veilog.experiments.summary import Column
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Sequences
from veilog.methods._events.assemble import Details, assembled, released_cases
from veilog.methods._events.attributes import choose, released_attributes
from veilog.methods._events.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise
from veilog.releasing.release import release

LOGS = ("sepsis", "bpic2013_incidents", "receipt", "unrineweginfectie", "traffic_fines")
ERRORS = ("frequent", "by occurrence", "all", "medians", "duration", "mean duration", "hours", "weeks")
ATTRIBUTES = {
    "sepsis": ("org:group", "DiagnosticBlood"),
    "bpic2013_incidents": ("impact", "resource country"),
    "receipt": ("channel", "department"),
}


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
    found = errors(log, cases, made, int(window[0].timestamp()))
    return Measured(dict(zip(ERRORS, found, strict=True)) | {"cpu": costs["cpu"]})


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


def attributes(given: Given, cell: Cell) -> Measured:
    log, attribute, source = given.log, str(cell.get("attribute")), noise.seeded(cell.run)
    real = values_of(log, attribute)
    domain = tuple(sorted({value for _, value in real if value is not None}))
    curator = Curator(log.variants, log=log, domain=Domain(attributes={attribute: domain}), randomness=source)
    cases = released_cases(log.variants, noise.generator(source))
    chosen, rest = choose(curator, (attribute,), Fraction(str(cell.get("epsilon"))), Fraction(0), print)
    columns = released_attributes(curator, rest, cases, chosen)
    made = values_of(assembled(Details(cases, columns=columns), log.metadata), attribute)
    joint, single = distance(Counter(real), Counter(made)), distance(alone(real), alone(made))
    return Measured({"with activity": joint, "alone": single, "values": len(domain)})


def attribute_cells(plan: Plan) -> Iterator[Cell]:
    for log in set(plan.logs).intersection(ATTRIBUTES):
        given = {"attribute": ATTRIBUTES[log], "epsilon": ("0.1", "0.3", "1", "3")}
        yield from grid(logs=(log,), **given, quick={"epsilon": "1"})(plan)


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
        "attributes",
        "How close released attributes are to the original's.",
        attributes,
        attribute_cells,
        [Column(name, name, ".2f", "spread") for name in ("with activity", "alone", "values")],
        over="epsilon",
        logs=tuple(ATTRIBUTES),
        page="results/times.md",
    ),
)

"""Distances of released attributes from the original's, on real logs, by epsilon.

Each attribute by itself is added to the log's own variants, with a declared domain. One number is the total variation
distance of the values with their activity (the last of the case for case attributes): 0 = the same shares, 1 = nothing
in common. The other is that of the values alone. Several attributes together come from a release of evolve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmark import CPU, benchmark, grid
from columns import Column
from timing import timed
from veilog.experiments.experiment import Cell, Given, Measured, Profile
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, EventLog
from veilog.measures.use_cases.attributes import ATTRIBUTES
from veilog.measures.use_cases.sides import split
from veilog.measures.use_cases.use_case import UseCaseOptions
from veilog.methods._events.assemble import Details, assemble_log, released_cases
from veilog.methods._events.attributes.domains import choose
from veilog.methods._events.attributes.synthesis import released_attributes
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise
from veilog.releasing.run import release

ALONE = {
    "sepsis": ("org:group", "DiagnosticBlood"),
    "bpic2013_incidents": ("impact", "resource country"),
    "receipt": ("channel", "department"),
}
TOGETHER = {
    "sepsis": (
        *("Age", "Diagnose", "org:group", "InfectionSuspected", "DiagnosticBlood"),
        *("SIRSCriteria2OrMore", "Hypotensie", "DisfuncOrg"),
    ),
    "bpic2013_incidents": ("product", "impact", "org:group", "resource country"),
    "receipt": ("channel", "department", "group", "responsible"),
    "traffic_fines": ("amount", "article", "vehicleClass", "totalPaymentAmount"),
}
RANGES = {"Age": (0.0, 110.0), "amount": (0.0, 5000.0), "totalPaymentAmount": (0.0, 5000.0), "article": (0.0, 200.0)}
SCORES = ("shapes", "pairs", "by_activity", "with_control_flow")


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
    made = values_of(assemble_log(Details(cases, columns=columns), log.metadata), attribute)
    joint, single = distance(Counter(real), Counter(made)), distance(alone(real), alone(made))
    return Measured({"with activity": joint, "alone": single, "values": len(domain)})


def held(log: EventLog, names: tuple[str, ...]) -> EventLog:
    """Return the log with no attributes but these."""
    keep = [c for c in log.events.column_names if c in (*names, CASE_INDEX, EVENT_INDEX, ACTIVITY, TIMESTAMP)]
    cases = [c for c in log.cases.column_names if c in (*names, ACTIVITY)]
    return EventLog(log.events.select(keep), log.cases.select(cases), log.metadata)


def declared(log: EventLog, name: str) -> tuple[str, ...] | tuple[float, float]:
    """Return a public range of a number, or the values that the log has."""
    if name in RANGES:
        return RANGES[name]
    column = log.events.column(name) if name in log.events.column_names else log.cases.column(name)
    return tuple(sorted(str(text(value)) for value in column.unique().drop_null().to_pylist()))


Labels = dict[str, dict[object, int]]


def outcomes(log: EventLog, names: tuple[str, ...], labels: Labels) -> tuple[np.ndarray, list[str]]:
    """Return the first known values of each case, and its last activity."""
    starts, ends = log.offsets[:-1].tolist(), log.offsets[1:].tolist()
    columns = []
    for name in names:
        of_events = name in log.events.column_names
        values = (log.events if of_events else log.cases).column(name).to_pylist()
        code = labels.setdefault(name, {None: -1})
        numbers = [v if name in RANGES and v is not None else code.setdefault(v, len(code)) for v in values]
        if of_events:
            numbers = [next((n for n in numbers[a:z] if n != -1), -1) for a, z in zip(starts, ends, strict=True)]
        columns.append(numbers)
    activities = log.events.column(ACTIVITY).to_pylist()
    last = [activities[end - 1] if end > start else "" for start, end in zip(starts, ends, strict=True)]
    return np.array(columns, dtype=float).T, last


def predicted(used: EventLog, judged: EventLog, names: tuple[str, ...]) -> float:
    """Return the share of last activities that attributes predict.

    A forest learns on one log and is judged on the other.
    """
    from sklearn.ensemble import RandomForestClassifier

    labels: Labels = {}
    (x, y), (unseen, wanted) = (outcomes(log, names, labels) for log in (used, judged))
    some = np.random.default_rng(0).permutation(len(x))[:20_000]
    forest = RandomForestClassifier(100, min_samples_leaf=10, random_state=0)
    return float(forest.fit(x[some], np.array(y)[some]).score(unseen, wanted))


def together(given: Given, cell: Cell) -> Measured:
    """Spend half of an epsilon of 1 on several attributes with declared domains."""
    names = TOGETHER[cell.log]
    log = held(given.log, names)
    domain = Domain(attributes={name: declared(log, name) for name in names})
    arguments = {"activities": "log", "attributes": names, "attributes_share": "0.5", "domain": domain}
    costs, made = timed(lambda: release(log, "evolve", epsilon=1, seed=cell.run, **arguments))
    seen, unseen = split(log, 0.7)
    halves = split(log, 0.5)
    scores = ATTRIBUTES.score(made.log, log, UseCaseOptions())
    floor = ATTRIBUTES.score(*halves, UseCaseOptions())
    real, found = (predicted(used, unseen, names) for used in (seen, made.log))
    numbers = {name: scores[name] for name in SCORES} | {f"{name}, halves": floor[name] for name in SCORES}
    return Measured(
        {k: v for k, v in numbers.items() if v is not None} | {"outcome": found / real, "cpu": costs["cpu"]}
    )


def together_cells(profile: Profile) -> Iterator[Cell]:
    for log in profile.logs:
        if log in TOGETHER:
            yield from grid("evolve", logs=(log,))(profile)


def attribute_cells(profile: Profile) -> Iterator[Cell]:
    for log in set(profile.logs).intersection(ALONE):
        given = {"attribute": ALONE[log], "epsilon": ("0.1", "0.3", "1", "3")}
        yield from grid(logs=(log,), **given, quick={"epsilon": "1"})(profile)


BENCHMARKS = (
    benchmark(
        "attributes",
        "How close released attributes are to the original's.",
        attributes,
        attribute_cells,
        [Column(name, name, ".2f", "spread") for name in ("with activity", "alone", "values")],
        over="epsilon",
        logs=tuple(ALONE),
        page="results/times.md",
    ),
    benchmark(
        "attributes-together",
        "How like several released attributes are to the original's.",
        together,
        together_cells,
        (
            *(Column(name, name, ".3f", "spread") for name in (*SCORES, "outcome")),
            CPU,
            *(Column(f"{name}, halves", f"{name}, halves", ".3f") for name in SCORES),
        ),
        logs=tuple(TOGETHER),
        page="results/times.md",
    ),
)

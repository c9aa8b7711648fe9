"""What releases keep of real logs, method by method: one measure, and for each method the settings that are compared.

Beside the experiments of ``veilog experiment``, which have the papers' tables: here are our own faces, settings and
ablations. Runs are seeded by their number; an empty release has similarity 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Number, Plan, Row, Table, Value
from veilog.experiments.measuring import models, released
from veilog.experiments.papers.sacofa_figures import TABLE_4
from veilog.experiments.summary import Column, across, summary
from veilog.measures.directly_follows import frequency_emd, time_emd
from veilog.measures.disclosure.measure import risk
from veilog.measures.similarity.measure import relative_log_similarity

LOGS = ("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie")
EPSILONS = ("2", "1", "0.1", "0.01")
SIMILARITY = Column("similarity", "similarity", ".3f", "spread")
SIZE = Column("released cases", "size_ratio", ".2f", "spread")
SECONDS = Column("CPU s", "cpu")
Asked = Sequence[tuple[str, Mapping[str, Value]]]
"""Methods and their keywords."""


def cells(asked: Asked, plan: Plan, quick: int = 2) -> Iterator[Cell]:
    """Run by run, so that every setting has something before any has everything."""
    for run in range(plan.runs):
        for log in plan.logs:
            for method, settings in list(asked)[: quick if plan.quick else None]:
                yield Cell(log, method, tuple(settings.items()), run)


def measure(given: Given, cell: Cell) -> Measured:
    """Similarity, sizes and processor seconds of a release."""
    original = given.log.variants
    used = time.process_time()
    made = released(given, cell).variants
    used = time.process_time() - used
    values: dict[str, Number] = {"cpu": used, "size_ratio": made.cases / original.cases, "cases": made.cases}
    values["similarity"] = relative_log_similarity(original, made).value if made.cases else 0.0
    return Measured(values | {"empty": float(made.cases == 0)})


def measure_whole(given: Given, cell: Cell) -> Measured:
    """The same of a log with times, and distances of its directly-follows frequencies and times."""
    used = time.process_time()
    release = released(given, cell)
    used = time.process_time() - used
    made = release.variants
    values: dict[str, Number] = {"cpu": used, "cases": made.cases, "similarity": 0.0}
    if made.cases:
        values["similarity"] = relative_log_similarity(given.log.variants, made).value
        values |= {"time_emd": time_emd(given.log, release.log)}
        values |= {"frequency_emd": frequency_emd(given.log, release.log)}
    return Measured(values)


def measure_groups(given: Given, cell: Cell) -> Measured:
    """What is left, what of it is disclosed, and the time against that of grouping the log's events into variants."""
    original, base = given.log.variants, []
    for _ in range(5):
        started = time.process_time()
        _ = replace(given.log).variants
        base.append(time.process_time() - started)
    used = time.process_time()
    made = released(given, cell).variants
    used = time.process_time() - used
    background = str(cell.get("background", "sequence"))
    kind = background if background in ("set", "multiset") else "sequence"
    (found,) = risk(made, kind, int(cell.get("l", 3)))
    values: dict[str, Number] = {"cpu": used, "grouping": min(base)}
    values |= {"variants": len(made), "events": made.events, "activities": len(made.labels)}
    values |= {"kept": made.events / original.events, "similarity": relative_log_similarity(original, made).value}
    values |= {"cd": found.case_disclosure, "td": found.trace_disclosure, "worst": found.worst_case or 0.0}
    return Measured(values)


def measure_models(given: Given, cell: Cell) -> Measured:
    """Quality of the model discovered from a release, where pm4py is installed."""
    original, made = given.log.variants, released(given, cell).variants
    values: dict[str, Number] = {"size_ratio": made.cases / original.cases, "variants": len(made)}
    if made.events == 0:
        return Measured(values, "nothing released")
    found, problem = models(original, made, cell)
    return Measured(values | found, problem)


def with_models(asked: Asked, plan: Plan) -> Iterator[Cell]:
    for cell in cells(asked, plan):
        yield replace(cell, models=30.0 if plan.quick else 120.0)


def by_table_4(plan: Plan, methods: Sequence[str], seconds: float = 0.0) -> Iterator[Cell]:
    """The settings of Table 4 of the SaCoFa paper; the play-outs have none."""
    for run in range(plan.runs):
        for log in plan.logs:
            for epsilon, (depth, harmful, harmless) in zip(("1", "0.1", "0.01"), TABLE_4[log], strict=True):
                for method in methods:
                    more: dict[str, Any] = {"laplace": {"depth": depth, "threshold": harmful}}.get(method, {})
                    if method == "sacofa":
                        more = {"depth": depth, "threshold_harmful": harmful}
                        more |= {} if harmless is None else {"threshold_harmless": harmless}
                    yield Cell(log, method, (("epsilon", epsilon), ("as_published", True), *more.items()), run, seconds)
                if plan.quick:
                    break


def tables(title: str, by: Sequence[str], columns: Sequence[Column], rows: Sequence[Row]) -> list[Table]:
    return [summary(title, rows, by, columns)]


def grids(by: Sequence[str], over: str, columns: Sequence[Column], rows: Sequence[Row]) -> list[Table]:
    """A grid for each column."""
    return [across(column.title, rows, by, over, column) for column in columns]


def _benchmark(
    name: str, what: str, asked: Asked, *, tables: Callable[[Sequence[Row]], list[Table]], **more: Any
) -> Experiment:
    more.setdefault("measure", measure)
    more.setdefault("cells", partial(cells, asked))
    methods = tuple(dict.fromkeys(method for method, _ in asked))
    return Experiment(name=name, what=what, methods=methods, tables=tables, **{"runs": 5, "quick_runs": 1, **more})


TREES = ("laplace", "sacofa", "df-laplace", "sapa")
DELTAS = ("0.5", "0.1", "0.05", "0.01", "0.001")
_PRIPEL: Asked = [
    *(
        ("pripel", {"epsilon": 1, "as_published": True, "query": query, "matching": matching})
        for query, matching in (("laplace", "optimal"), ("laplace", "greedy"), ("evolve", "optimal"))
    ),
    *(("pripel", {"epsilon": 1, "query": query}) for query in ("laplace", "evolve")),
]
_SAMPLES = ((0.9, 1), (0.5, 1), (0.5, 2), (0.2, 5), (0.05, 20))
_LIBRA: Asked = [
    *(
        ask
        for query, delta in (("laplace", "0"), ("travas", "0.001"), ("evolve", "0"))
        for epsilon in ("1", "0.1")
        for ask in (
            (query, {"epsilon": epsilon, "delta": delta}),
            *(
                (
                    "libra",
                    {"epsilon": epsilon, "delta": delta, "query": query, "gamma": g, "samples": n, "times_share": 0},
                )
                for g, n in _SAMPLES
                if not (query == "evolve" and n > 5)  # minutes
            ),
        )
    ),
    *(("libra", {"epsilon": 1, "delta": d, "as_published": True}) for d in ("0.1", "0.01", "0.001", "0.0001")),
]
_TLKC: Asked = [
    *(
        ("tlkc", {"k": k, "l": 6, "background": "set", "ties": ties})
        for k in (20, 40, 60)
        for ties in ("published", "rare")
    ),
    *(
        ("tlkc", {"k": k, "l": largest, "background": background, "time": "days", "score": score})
        for score in ("published", "cost")
        for background, largest in (("multiset", 3), ("sequence", 1), ("sequence", 2), ("sequence", 3), ("relative", 2))
        for k in (20, 40, 60)
    ),
    *(
        ("tlkc", {"k": 20, "l": 3, "background": "set", "c": c, "sensitive": "Diagnose"})
        for c in (1.0, 0.8, 0.5, 0.4, 0.3, 0.2)
    ),
]
_PRETSA: Asked = [
    ("pretsa", {"k": k} | ({} if t == 1.0 else {"t": t, "sensitive": "duration"}))
    for k, t in ((4, 1.0), (8, 1.0), (20, 1.0), (8, 0.3), (8, 0.1), (8, 0.05))
]
_OPTIONS: Asked = [
    ("laplace", {"epsilon": epsilon, **changed})
    for epsilon in ("1", "0.1")
    for changed in (
        {},
        {"split": "decreasing"},
        {"consistency": False},
        {"rest": "drop"},
        {"rest": "share"},
        {"noise_prefixes": 0.2},
        {"noise_prefixes": 5},
        {"count_share": 0.5},
    )
]
_COUNTS: Asked = [
    (method, {"epsilon": epsilon, "count_share": share})
    for epsilon in ("0.1", "0.3")
    for method in ("df-laplace", "sapa")
    for share in (0, 0.1)
]
_TRAVAG: Asked = [
    ("travag", {"epsilon": epsilon, "delta": delta, **changed})
    for epsilon in ("1", "0.1")
    for delta in ("1e-6", "0.01")
    for changed in (
        {},
        {"outside": "drop"},
        {"columns_share": 0.25},
        {"columns_share": 0.75},
        {"columns_share": 0.9},
        {"critic_steps": 100},
        {"critic_steps": 100, "critic_rate": 0.1},
        {"critic_steps": 1500, "critic_rate": 0.02},
        {"critic": "deep", "critic_steps": 150},
        {"critic": "deep", "critic_steps": 1500, "critic_rate": 0.02},
        {"autoencoder_steps": 100, "autoencoder_share": 0.1},
        {"autoencoder_steps": 100, "autoencoder_share": 0.5},
    )
]
_CERTIFIED_MODELS: Asked = [
    (method, {"epsilon": epsilon, **changed})
    for epsilon in ("1", "0.1")
    for method, changed in (
        ("laplace", {}),
        *(("sacofa", {"rule_share": share}) for share in (0, 0.1, 0.3)),
        ("df-laplace", {}),
        ("sapa", {}),
    )
]
_GROUPS = (
    Column("variants", "variants", ",.0f"),
    Column("events", "events", ",.0f"),
    Column("activities", "activities", ".0f"),
    Column("events kept", "kept", ".0%"),
    Column("similarity", "similarity", ".3f"),
    Column("cd", "cd", ".4f"),
    Column("td", "td", ".4f"),
    Column("worst case", "worst", ".4f"),
    SECONDS,
    Column("times grouping", "cpu", ".1f", over="grouping"),
)
_WHOLE = (
    Column("cases", "cases", ",.0f", "spread"),
    SIMILARITY,
    Column("time EMD, months", "time_emd", ",.2f", "spread"),
    SECONDS,
)
_MODELS = tuple(Column(name, name, ".3f") for name in ("f_score", "fitness", "precision", "generalization"))


def changed(asked: Asked) -> tuple[str, ...]:
    """The names of the settings that differ between what is asked, after log and method."""
    return ("log", "method", *dict.fromkeys(name for _, settings in asked for name in settings))


def _by_settings(asked: Asked, title: str, *columns: Column) -> partial[list[Table]]:
    return partial(tables, title, changed(asked), columns)


BENCHMARKS = (
    _benchmark(
        "travas",
        "TraVaS and, certified, uTraVaS with two subqueries, over epsilon and delta (experiment travas-figures has more).",
        [(m, {"epsilon": e, "delta": d}) for m in ("travas", "utravas") for e in EPSILONS for d in DELTAS],
        logs=("bpic2013_incidents", "sepsis"),
        tables=partial(grids, ("log", "method", "epsilon"), "delta", (SIMILARITY,)),
        runs=10,
        page="results/travas.md",
    ),
    _benchmark(
        "releases-pripel",
        "PRIPEL in both faces: what it keeps.",
        _PRIPEL,
        measure=measure_whole,
        logs=LOGS,
        quick_logs=("sepsis",),
        tables=_by_settings(_PRIPEL, "PRIPEL, epsilon 1", *_WHOLE),
        page="results/pripel.md",
    ),
    _benchmark(
        "releases-libra",
        "Libra: samples against the whole log at the same derived epsilon, and what it leaves as published.",
        _LIBRA,
        logs=("sepsis", "receipt"),
        quick_logs=("sepsis",),
        tables=_by_settings(
            _LIBRA, "Samples, and the whole log", SIMILARITY, Column("cases", "cases", ",.0f", "spread")
        ),
        page="results/libra.md",
    ),
    _benchmark(
        "releases-groups",
        "TLKC and PRETSA: sizes, disclosure, what is kept, and the time against grouping.",
        [*_TLKC, *_PRETSA],
        cells=lambda plan: (
            cell
            for cell in cells([*_TLKC, *_PRETSA], replace(plan, quick=False))
            if (cell.log == "sepsis" or cell.method == "pretsa") and not (plan.quick and cell.get("k") != 20)
        ),
        measure=measure_groups,
        logs=("sepsis", "receipt", "bpic2013_incidents"),
        quick_logs=("sepsis",),
        tables=_by_settings([*_TLKC, *_PRETSA], "TLKC and PRETSA", *_GROUPS),
        runs=1,
        page="results/groups.md",
    ),
    _benchmark(
        "prefix-trees",
        "The prefix trees and the play-outs, certified and as published at the settings of Table 4 of SaCoFa.",
        [(method, {}) for method in TREES],
        cells=lambda plan: (
            *cells([(m, {"epsilon": e}) for e in EPSILONS for m in TREES], plan, quick=4),
            *by_table_4(replace(plan, logs=tuple(log for log in plan.logs if log in TABLE_4)), TREES),
        ),
        logs=LOGS,
        quick_logs=("sepsis",),
        tables=partial(grids, ("log", "epsilon", "as_published"), "method", (SIMILARITY, SIZE)),
        runs=10,
        page="results/prefix-trees.md",
    ),
    _benchmark(
        "prefix-tree-options",
        "The similarity of the Laplace tree with one option changed.",
        _OPTIONS,
        logs=LOGS,
        tables=_by_settings(_OPTIONS, "One option changed", SIMILARITY),
        runs=10,
        page="results/prefix-trees.md",
    ),
    _benchmark(
        "prefix-tree-counts",
        "What asking for the number of cases changes in the certified play-outs.",
        _COUNTS,
        logs=("sepsis", "receipt", "unrineweginfectie"),
        quick_logs=("sepsis",),
        tables=_by_settings(
            _COUNTS, "The number of cases", SIMILARITY, SIZE, Column("empty", "empty", ".2f", "spread")
        ),
        runs=25,
        page="results/prefix-trees.md",
    ),
    _benchmark(
        "prefix-tree-models",
        "Models from certified releases, and from the play-outs as published; sacofa-figures has the trees as published.",
        _CERTIFIED_MODELS,
        cells=lambda plan: (
            *with_models(_CERTIFIED_MODELS, plan),
            *by_table_4(plan, ("df-laplace", "sapa"), 30.0 if plan.quick else 120.0),
        ),
        measure=measure_models,
        logs=("receipt", "sepsis"),
        quick_logs=("sepsis",),
        sources=("veilog.measures.process_model.measure", "veilog.measures.process_model.worker"),
        tables=partial(tables, "Models", (*changed(_CERTIFIED_MODELS), "as_published"), _MODELS),
        page="results/prefix-trees.md",
    ),
    _benchmark(
        "releases-travag",
        "TraVaG certified, one setting changed at a time (travag-figures has all epsilons and deltas).",
        _TRAVAG,
        logs=("bpic2013_incidents", "sepsis"),
        quick_logs=("sepsis",),
        tables=_by_settings(_TRAVAG, "One setting changed", SIMILARITY, SECONDS),
        runs=10,
        page="results/travag.md",
    ),
)

"""Utility of releases of real logs by method: one measure, several settings.

The experiments of ``veilog experiment`` have the papers' tables. Here are our own modes, settings and ablations. Runs
are seeded by their number; an empty release has similarity 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from benchmark import SIMILARITY, SMALL, asked, benchmark, grid
from columns import Column
from veilog.experiments import EXPERIMENTS
from veilog.experiments.experiment import Cell, Given, Measured, Number, Profile, make_release, models
from veilog.measures.directly_follows import frequency_emd, time_emd
from veilog.measures.disclosure.measure import risk
from veilog.measures.similarity.measure import relative_log_similarity

_FIGURES = EXPERIMENTS["sacofa-figures"]
LOGS = ("sepsis", "receipt", "bpic2013_incidents", "traffic_fines", "unrineweginfectie")
SIZE = Column("released cases", "size_ratio", ".2f", "spread")
SECONDS = Column("CPU s", "cpu")


def measure(given: Given, cell: Cell) -> Measured:
    """Measure similarity, sizes and processor seconds of a release."""
    original = given.log.variants
    used = time.process_time()
    made = make_release(given, cell).variants
    used = time.process_time() - used
    values: dict[str, Number] = {"cpu": used, "size_ratio": made.cases / original.cases, "cases": made.cases}
    values["similarity"] = relative_log_similarity(original, made).value if made.cases else 0.0
    return Measured(values | {"empty": float(made.cases == 0)})


def measure_whole(given: Given, cell: Cell) -> Measured:
    """Measure a release with times, and distances of directly-follows pairs and times."""
    used = time.process_time()
    release = make_release(given, cell)
    used = time.process_time() - used
    made = release.variants
    values: dict[str, Number] = {"cpu": used, "cases": made.cases, "similarity": 0.0}
    if made.cases:
        values["similarity"] = relative_log_similarity(given.log.variants, made).value
        values |= {"time_emd": time_emd(given.log, release.log)}
        values |= {"frequency_emd": frequency_emd(given.log, release.log)}
    return Measured(values)


def measure_groups(given: Given, cell: Cell) -> Measured:
    """Measure a release of groups: its size, its disclosure, and its relative time.

    The time is in multiples of grouping the log's events into variants.
    """
    original, base = given.log.variants, []
    for _ in range(5):
        started = time.process_time()
        _ = replace(given.log).variants
        base.append(time.process_time() - started)
    used = time.process_time()
    made = make_release(given, cell).variants
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
    """Measure the quality of the model discovered from a release."""
    original, made = given.log.variants, make_release(given, cell).variants
    values: dict[str, Number] = {"size_ratio": made.cases / original.cases, "variants": len(made)}
    if made.events == 0:
        return Measured(values, "nothing released")
    found, problem = models(original, made, cell)
    return Measured(values | found, problem)


def models_cells(profile: Profile) -> Iterator[Cell]:
    """Yield certified releases, and the play-outs as published of the experiment."""
    small = replace(profile, logs=tuple(log for log in profile.logs if log in ("receipt", "sepsis")))
    published = (c for c in _FIGURES.cells(small) if c.method in ("df-laplace", "sapa"))
    for cell in (*asked(*_CERTIFIED_MODELS)(small), *published):
        yield replace(cell, models=30.0 if profile.quick else 120.0)


def trees_as_published(profile: Profile) -> Iterator[Cell]:
    """Yield the settings of Table 4 of the SaCoFa paper, without models."""
    small = replace(profile, logs=tuple(log for log in profile.logs if log in _FIGURES.logs))
    return (replace(cell, models=0.0, prefixes=0) for cell in _FIGURES.cells(small) if cell.method)


def groups_cells(profile: Profile) -> Iterator[Cell]:
    for cell in asked(*_TLKC, *_PRETSA)(replace(profile, quick=False)):
        if (cell.log == "sepsis" or cell.method == "pretsa") and not (profile.quick and cell.get("k") != 20):
            yield cell


def travag_cells(profile: Profile) -> Iterator[Cell]:
    """Yield each log at the delta that its size allows."""
    for cell in asked(*_TRAVAG, quick=30)(profile):
        own = (cell.get("delta") == "0.01") == (cell.log == "sepsis")
        if own and not (profile.quick and len(cell.settings) > 2):
            yield cell


_PRIPEL = [
    *(
        ("pripel", {"epsilon": 1, "as_published": True, "query": query, "matching": matching})
        for query, matching in (("laplace", "optimal"), ("laplace", "greedy"), ("evolve", "optimal"))
    ),
    *(("pripel", {"epsilon": 1, "query": query}) for query in ("laplace", "evolve")),
]
_SAMPLES = ((0.9, 1), (0.5, 1), (0.5, 2), (0.2, 5), (0.05, 20))
_LIBRA = [
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
                if not (query == "evolve" and n > 5)  # it takes minutes
            ),
        )
    ),
    *(("libra", {"epsilon": 1, "delta": d, "as_published": True}) for d in ("0.1", "0.01", "0.001", "0.0001")),
]
_TLKC = [
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
_PRETSA = [
    ("pretsa", {"k": k} | ({} if t == 1.0 else {"t": t, "sensitive": "duration"}))
    for k, t in ((4, 1.0), (8, 1.0), (20, 1.0), (8, 0.3), (8, 0.1), (8, 0.05))
]
_OPTIONS = [
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
_TRAVAG = [
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
_CERTIFIED_MODELS = [
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


BENCHMARKS = (
    benchmark(
        "prefix-tree-delta",
        "Prefix trees without and with a delta: at the depth that is found, and at 12, 20 and 30 levels.",
        measure,
        (
            grid("laplace,sacofa", epsilon=("2", "1"), delta=("0", "1e-6")),
            grid("laplace,sacofa", epsilon=("2", "1"), depth=(12, 20, 30), delta=("0", "1e-6")),
        ),
        (SIMILARITY,),
        over="delta",
        logs=LOGS,
        small=SMALL,
        page="results/prefix-trees.md",
    ),
    benchmark(
        "travas",
        "TraVaS and, certified, uTraVaS with two subqueries, over epsilon and delta.",
        measure,
        grid(
            "travas,utravas",
            epsilon=("2", "1", "0.1", "0.01"),
            delta=("0.5", "0.1", "0.05", "0.01", "0.001"),
            quick={"epsilon": ("1", "0.1"), "delta": ("0.5", "0.01")},
        ),
        (SIMILARITY,),
        over="delta",
        logs=("bpic2013_incidents", "sepsis"),
        runs=10,
        page="results/travas.md",
    ),
    benchmark(
        "releases-pripel",
        "PRIPEL in both faces: what it keeps, at epsilon 1.",
        measure_whole,
        asked(*_PRIPEL, quick=4),
        _WHOLE,
        logs=LOGS,
        page="results/pripel.md",
    ),
    benchmark(
        "releases-libra",
        "Libra: samples against the whole log at the same derived epsilon, and what it leaves as published.",
        measure,
        asked(*_LIBRA),
        (SIMILARITY, Column("cases", "cases", ",.0f", "spread")),
        logs=("sepsis", "receipt"),
        page="results/libra.md",
    ),
    benchmark(
        "releases-groups",
        "TLKC and PRETSA: sizes, disclosure, what is kept, and the time against grouping.",
        measure_groups,
        groups_cells,
        _GROUPS,
        logs=("sepsis", "receipt", "bpic2013_incidents"),
        runs=1,
        page="results/groups.md",
    ),
    benchmark(
        "prefix-trees",
        "The prefix trees and the play-outs, certified and as published at the settings of Table 4 of SaCoFa.",
        measure,
        [
            grid("laplace,sacofa,df-laplace,sapa", epsilon=("2", "1", "0.1", "0.01"), quick={"epsilon": "1"}),
            trees_as_published,
        ],
        (SIMILARITY, SIZE),
        logs=LOGS,
        runs=10,
        page="results/prefix-trees.md",
    ),
    benchmark(
        "prefix-tree-options",
        "The similarity of the Laplace tree with one option changed.",
        measure,
        asked(*_OPTIONS),
        (SIMILARITY,),
        logs=LOGS,
        runs=10,
        page="results/prefix-trees.md",
    ),
    benchmark(
        "prefix-tree-counts",
        "What asking for the number of cases changes in the certified play-outs.",
        measure,
        grid("df-laplace,sapa", epsilon=("0.1", "0.3"), count_share=(0, 0.1)),
        (SIMILARITY, SIZE, Column("empty", "empty", ".2f", "spread")),
        logs=("sepsis", "receipt", "unrineweginfectie"),
        runs=25,
        page="results/prefix-trees.md",
    ),
    benchmark(
        "prefix-tree-models",
        "Models from certified releases, and from the play-outs as published.",
        measure_models,
        models_cells,
        _MODELS,
        logs=("receipt", "sepsis"),
        page="results/prefix-trees.md",
    ),
    benchmark(
        "releases-travag",
        "TraVaG certified, one setting changed at a time.",
        measure,
        travag_cells,
        (SIMILARITY, SECONDS),
        logs=("bpic2013_incidents", "sepsis"),
        runs=10,
        page="results/travag.md",
    ),
)

"""The frontier: every certified method at equal derived epsilon on every log.

It is compared with the unprotected baseline, a bare list of the variants. For readers in a hurry there are tables by
use case and of all methods, and a picture of few lines. These are evolve, the best of all others at each place, and the
baseline.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from veilog._plain import tables_of
from veilog.experiments import papers
from veilog.experiments.experiment import (
    Cell,
    Experiment,
    Given,
    Lines,
    Measured,
    Number,
    Panels,
    Plot,
    Profile,
    Row,
    Series,
    Table,
    Value,
    certainty,
    known,
    make_release,
    mean,
    models,
    of,
    spread,
    utility,
)
from veilog.logs.variants import Variants
from veilog.measures.disclosure import risk
from veilog.measures.use_cases import UseCaseOptions
from veilog.measures.use_cases.conformance import CONFORMANCE
from veilog.measures.use_cases.prediction import next_activity
from veilog.measures.use_cases.sides import TRAINING, split
from veilog.methods import METHODS
from veilog.methods.method import DeltaOptional
from veilog.privacy.account.budgets import compose

BEST, LEAK = "best of the others", "unprotected baseline"
_EPSILON = "1"
_WORDS = tables_of(papers.__name__, "frontier")
"""Titles, notes and facts of its tables."""
_BELOW = _WORDS["below"]
EPSILONS = ("2", "1", "0.1", "0.01")
DELTA = "1e-4"
RISK = ("set", 3)
CERTIFIED = tuple(m.name for m in METHODS.values() if m.certified and m.takes_epsilon)


Settings = tuple[tuple[str, Value], ...]


def compared(methods: Iterable[str], delta: str | None) -> dict[str, tuple[str, Settings]]:
    """Return the columns of the comparison by name: a method, its delta and settings.

    Methods that can use a delta appear without one and with one, and evolve also with only real variants. Without a
    delta, methods that need one are missing.
    """
    columns: dict[str, tuple[str, Settings]] = {}
    for name in methods:
        if not METHODS[name].needs_delta:
            columns[name] = (name, (("delta", "0"),))
        if delta is None:
            continue
        budget = METHODS[name].budget
        if METHODS[name].needs_delta:
            columns[f"{name}, delta {delta}"] = (name, (("delta", delta),))
        elif name == "evolve":
            columns[f"{name}, delta {delta}"] = (name, (("delta", delta), ("only_real", False)))
            columns[f"{name}, only real, delta {delta}"] = (name, (("delta", delta), ("only_real", True)))
        elif isinstance(budget, DeltaOptional) and budget.of_use(METHODS[name].settings()):
            columns[f"{name}, delta {delta}"] = (name, (("delta", delta),))
    return columns


COLUMNS = compared(CERTIFIED, DELTA)
_OWN = [name for name in COLUMNS if name == "evolve" or name.startswith("evolve, delta")]
"""Columns of veilog's own method."""
_OTHERS = [name for name in COLUMNS if not name.startswith("evolve")]
UNIFORM = ("weights", "drawn")
"""Readings of the baseline: each variant of the log once, or as many draws as it has cases."""
_SHORT = {
    name: "only real (δ)" if "only real" in name else f"{method} (δ)"
    for name, (method, settings) in COLUMNS.items()
    if dict(settings)["delta"] != "0" and not METHODS[method].needs_delta
}
"""Names in plots; others are those of their methods."""
_MODEL_SECONDS = 120.0


def cells(profile: Profile) -> Iterator[Cell]:
    for log in profile.logs:
        yield Cell(log, models=0.0 if profile.quick else _MODEL_SECONDS)
        yield _leak(log, "weights")
        for run in range(profile.runs):
            yield _leak(log, "drawn", run)
            for epsilon in EPSILONS:
                for method, settings in COLUMNS.values():
                    seconds = 0.0 if profile.quick else _MODEL_SECONDS
                    yield Cell(log, method, (("epsilon", epsilon), *settings), run, seconds)


def _leak(log: str, reading: str, run: int = 0) -> Cell:
    return Cell(log, settings=(("uniform", reading),), run=run)


def uniform(original: Variants, reading: Value, seed: int) -> Variants:
    """Return the baseline of a log: its variants with equal weights, or draws of them.

    There are as many draws as the log has cases.
    """
    if reading == "weights" or not len(original):
        return original.with_counts(np.ones(len(original), dtype=np.int64))
    random = np.random.default_rng(seed)
    return original.with_counts(random.multinomial(original.cases, np.full(len(original), 1 / len(original))))


def measure(given: Given, cell: Cell) -> Measured:
    """Return all measurements of one release; an empty one has similarity 0."""
    original = given.log.variants
    if cell.method:
        release, values = made(given, cell)
        return judge_release(original, release, cell, values)
    reading = cell.get("uniform")
    return judge_release(original, uniform(original, reading, cell.run) if reading else original, cell, {})


def made(given: Given, cell: Cell) -> tuple[Variants, dict[str, Number]]:
    """Return the release of the cell's method, its cost, and its real share."""
    used = time.process_time()
    release = make_release(given, cell)
    used = time.process_time() - used
    epsilon, delta = compose(release.guarantee.charges)
    values: dict[str, Number] = {"derived_epsilon": float(epsilon), "derived_delta": float(delta)}
    values |= {"seconds": release.owner_only.seconds, "cpu_seconds": used}
    return release.variants, values | certainty(given.log.variants, release)


def judge_release(original: Variants, made: Variants, cell: Cell, values: dict[str, Number]) -> Measured:
    """Return the measurements of a release, with the ``values`` known of it."""
    values |= {"size_ratio": made.cases / original.cases, "variants": len(made)}
    if made.events == 0:
        return Measured({**values, "similarity": 0.0}, "Nothing was released; that counts as similarity 0.")
    values |= utility(original, made, difference=False)
    (disclosed,) = risk(made, RISK[0], RISK[1], work_limit=4e8)
    values["risk"] = disclosed.case_disclosure
    values |= use_cases(original, made, itself=made is original)
    if not cell.models:
        return Measured(values)
    more, problem = models(original, made, cell)
    return Measured({**values, **more}, problem)


def use_cases(original: Variants, made: Variants, *, itself: bool) -> dict[str, Number]:
    """Return the values of a release for prediction and for checking conformance.

    They are how often the next activity of held-out cases is predicted from it, and the error in the supports of the
    original's own rules. The log ``itself`` predicts from its other cases.
    """
    seen, unseen = split(original, TRAINING)
    rules = CONFORMANCE.score(made, original, UseCaseOptions()).get("rules")
    return {"next_activity": next_activity(seen if itself else made, unseen), "rules": rules}


def _column(rows: Sequence[Row], log: str, name: str, epsilon: str) -> list[Row]:
    """Return the rows of a log and an epsilon in the column of this name."""
    method, settings = COLUMNS[name]
    return of(rows, log, method, epsilon=epsilon, **dict(settings))


def _similarity(rows: Sequence[Row], log: str, name: str, epsilon: str) -> float | None:
    return mean(_column(rows, log, name, epsilon), "similarity")


def _logs(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.cell.log for row in rows))


def rank_methods(rows: Sequence[Row], log: str, epsilon: str, *, pure: bool = False) -> list[tuple[str, float]]:
    """Return the columns by mean similarity, highest first; ``pure`` omits a delta."""
    names = [name for name, (_, settings) in COLUMNS.items() if not pure or dict(settings)["delta"] == "0"]
    found = [(name, value) for name in names if (value := _similarity(rows, log, name, epsilon)) is not None]
    return sorted(found, key=lambda pair: -pair[1])


def best(rows: Sequence[Row], log: str, epsilon: str, *, pure: bool = False) -> tuple[str, float] | None:
    """Return the method of the highest mean similarity."""
    return next(iter(rank_methods(rows, log, epsilon, pure=pure)), None)


def _close(rows: Sequence[Row], log: str, epsilon: str) -> str:
    """Return the methods within two standard errors of the difference from the best."""
    (first, highest), *others = rank_methods(rows, log, epsilon)
    close = []
    for name, value in others:
        errors = [
            statistics.variance(values) / len(values)
            for one in (first, name)
            if len(values := known(_column(rows, log, one, epsilon), "similarity")) > 1
        ]
        if len(errors) == 2 and highest - value < 2 * math.sqrt(sum(errors)):
            close.append(f"{name} ({value:.3f})")
    return "; ".join(close) or "none"


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return the table of the best methods, one for each measure, and short ones."""
    names = [n for n, (method, settings) in COLUMNS.items() if of(rows, None, method, **dict(settings))]
    places = [(log, e) for log in _logs(rows) for e in EPSILONS if of(rows, log, epsilon=e)]

    def by_place(title: str, shown: Callable[[list[Row]], str], note: str = "") -> Table:
        lines = [(log, e, *(shown(_column(rows, log, name, e)) for name in names)) for log, e in places]
        return Table(title, ("log", "epsilon", *names), tuple(lines), note)

    similarity = by_place("Relative log similarity", partial(spread, measure="similarity"), _BELOW["similarity"])
    winners, bold = [], []
    for (log, epsilon), line in zip(places, similarity.rows, strict=True):
        first, pure = best(rows, log, epsilon), best(rows, log, epsilon, pure=True)
        both = [f"{b[0]} ({b[1]:.3f})" if b else "-" for b in (first, pure)]
        winners.append((log, epsilon, *both, _close(rows, log, epsilon) if first else "-"))
        marked = (f"**{text}**" if first and first[0] == n else text for n, text in zip(names, line[2:], strict=True))
        bold.append((log, epsilon, *marked))
    head = ("log", "epsilon", "of all", "without a delta", "tied")
    out = [
        Table("The best certified method", head, tuple(winners), _BELOW["best"]),
        replace(similarity, rows=tuple(bold)),
    ]
    if any(row.cell.get("uniform") for row in rows):
        out.append(_leak_table(rows, places))
    for measured, title, form, note in _WORDS["tables"]:
        if measured in ("size_ratio", "risk") or known(rows, measured):
            said = note.format(itself=_original_row(rows, measured, form))
            out.append(by_place(title, partial(spread, measure=measured, form=form), said))
    out += [*_methods_table(rows), *_use_cases_table(rows)]
    return [*out, by_place("Median CPU seconds from a log in memory to a release", _cpu_seconds)]


def _cpu_seconds(rows: Sequence[Row]) -> str:
    values = known(rows, "cpu_seconds")
    return f"{statistics.median(values):.2f}" if values else "-"


def _original_row(rows: Sequence[Row], measure: str, form: str) -> str:
    """Return the values of the logs themselves, in words."""
    own = [(row.cell.log, row.get(measure)) for row in of(rows, method="", uniform="")]
    said = ", ".join(f"{log} {value:{form}}" for log, value in own if value is not None)
    return f"The logs themselves: {said}." if said else ""


def _leak_table(rows: Sequence[Row], places: Sequence[tuple[str, str]]) -> Table:
    """Return the unprotected baseline of each log, with the methods below it."""
    lines = []
    for log, epsilon in places:
        readings = [of(rows, log, "", uniform=reading) for reading in UNIFORM]
        means = [value for reading in readings if (value := mean(reading, "similarity")) is not None]
        below = [f"{name} ({v:.3f})" for name, v in rank_methods(rows, log, epsilon) if v < min(means, default=0)]
        both = (spread(reading, "similarity") for reading in readings)
        lines.append((log, epsilon, *both, "; ".join(below) or "none"))
    return Table(
        "The unprotected baseline",
        ("log", "epsilon", "equal weights", "drawn", "below both"),
        tuple(lines),
        _BELOW["leak"],
    )


def _use_cases_table(rows: Sequence[Row]) -> list[Table]:
    """Return the table of use cases at epsilon 1; empty if none was measured."""
    lines = [
        (log, title, *line)
        for log in _logs(rows)
        for title, measures in _WORDS["use_cases"].items()
        if (line := _purpose_line(rows, log, measures))
    ]
    head = ("log", "use case", "the log itself", *_OWN, BEST, LEAK)
    return [Table("What releases are good for", head, tuple(lines), _BELOW["use_cases"])] if lines else []


def _purpose_line(rows: Sequence[Row], log: str, measures: tuple[str, ...]) -> list[str]:
    """Return the values of the log, evolve, the best other and the baseline, if any."""
    found = {name: values for name in COLUMNS if (values := _means(_column(rows, log, name, _EPSILON), measures))}
    original, leak = (_means(of(rows, log, "", uniform=reading), measures) for reading in ("", "weights"))
    others = [name for name in _OTHERS if name in found]
    first = max(others, key=lambda name: _worth(found[name], original, measures), default=None)
    told = "-" if first is None else f"{_format_values(found[first])} ({first})"
    return (
        [_format_values(original), *(_format_values(found.get(name, [])) for name in _OWN), told, _format_values(leak)]
        if found
        else []
    )


def _means(rows: Sequence[Row], measures: tuple[str, ...]) -> list[float]:
    """Return the means of these measures; empty if one is not known of every run."""
    values = [known(rows, name) for name in measures]
    return [statistics.fmean(own) for own in values] if rows and all(len(own) == len(rows) for own in values) else []


def _worth(values: list[float], original: list[float], measures: tuple[str, ...]) -> float:
    """Return the value by which methods are compared: the more the better."""
    if measures == ("rules",):
        return -values[0]
    if len(original) != len(values):
        return min(values)
    return min(min(1.0, value / own) if own else 1.0 for value, own in zip(values, original, strict=True))


def _format_values(values: list[float]) -> str:
    return " / ".join(f"{value:.3f}" for value in values) or "-"


def _methods_table(rows: Sequence[Row]) -> list[Table]:
    """Return the table of all methods' similarity and time at epsilon 1, if known."""
    winners = {log: found for log in _logs(rows) if (found := best(rows, log, _EPSILON))}
    lines = []
    for name in COLUMNS:
        values = [(_similarity(rows, log, name, _EPSILON), most) for log, (_, most) in winners.items()]
        texts = ["-" if v is None else f"**{v:.3f}**" if v == most else f"{v:.3f}" for v, most in values]
        if set(texts) - {"-"}:
            used = [known(_column(rows, log, name, _EPSILON), "cpu_seconds") for log in winners]
            slowest = max((statistics.median(seconds) for seconds in used if seconds), default=None)
            lines.append((name, *texts, "-" if slowest is None else f"{slowest:.2g}"))
    return (
        [Table("All methods at epsilon 1", ("method", *winners, "CPU s"), tuple(lines), _BELOW["methods"])]
        if lines
        else []
    )


def plots(rows: Sequence[Row]) -> list[Plot]:
    """Return the plots of all logs side by side, and of each log by itself.

    The former have few lines or all. The latter have the spread of the runs and of both unprotected baselines.
    """
    logs = {log: _series(rows, log) for log in _logs(rows)}
    few = {log: _few_series(rows, log) for log in logs}
    axes = ("derived epsilon", "relative log similarity: mean, lowest, highest run")
    title = "Certified methods at equal derived epsilon"
    mean_of_all = "relative log similarity (1: the same variants in the same shares), mean of the runs"
    places = EPSILONS[::-1]
    return [
        Plot("frontier", Panels(title, places, logs, (axes[0], mean_of_all))),
        Plot("frontier-brief", Panels(title, places, few, (axes[0], mean_of_all))),
        *(Plot(f"frontier-{log}", Lines(f"The frontier, {log}", places, own, axes)) for log, own in logs.items()),
    ]


def _series(rows: Sequence[Row], log: str) -> dict[str, Series]:
    """Return the lines of a log from lowest to highest run, with the baselines."""
    series: dict[str, Series] = {}
    for name in COLUMNS:
        runs = [known(_column(rows, log, name, epsilon), "similarity") for epsilon in reversed(EPSILONS)]
        points = [(min(values), statistics.fmean(values), max(values)) if values else None for values in runs]
        if any(points):
            series[_SHORT.get(name, COLUMNS[name][0])] = points
    weights, drawn = _leaks(rows, log)
    if drawn and weights:
        both = [*drawn, *weights]
        series[LEAK] = [(min(both), statistics.fmean(drawn), max(both))] * len(EPSILONS)
    return series


def _few_series(rows: Sequence[Row], log: str) -> dict[str, Series]:
    """Return the mean similarities of evolve, the best other, and the lower baseline."""
    epsilons = EPSILONS[::-1]
    means = {name: [_similarity(rows, log, name, epsilon) for epsilon in epsilons] for name in COLUMNS}
    others = zip(*(means[name] for name in _OTHERS), strict=True)
    lines = {name.replace(f", delta {DELTA}", " (δ)"): means[name] for name in _OWN}
    lines[BEST] = [max((value for value in values if value is not None), default=None) for values in others]
    lines[LEAK] = [min(itertools.chain(*_leaks(rows, log)), default=None)] * len(epsilons)
    return {
        name: [None if value is None else (value, value, value) for value in values]
        for name, values in lines.items()
        if any(value is not None for value in values)
    }


def _leaks(rows: Sequence[Row], log: str) -> list[list[float]]:
    """Return the similarities of both readings of the unprotected baseline."""
    return [known(of(rows, log, "", uniform=reading), "similarity") for reading in UNIFORM]


FRONTIER = Experiment(
    name="frontier",
    methods=CERTIFIED,
    cells=cells,
    measure=measure,
    tables=tables,
    plots=plots,
    small=Profile(("small",), 1, False),
    notes=tuple(note.format(delta=DELTA) for note in _WORDS["notes"]),
    **{name: _WORDS[name] for name in ("paper", "what", "measures", "runs", "page", "quick_runs")},
)

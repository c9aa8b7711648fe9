"""The frontier: every certified method at equal derived epsilon on every log, and which is best."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence

import numpy as np

from veilog.experiments.experiment import (
    Cell,
    Experiment,
    Given,
    Measured,
    Number,
    Plan,
    Plot,
    Row,
    Table,
    Value,
    known,
    mean,
    of,
    spread,
)
from veilog.experiments.measuring import certainty, models, released, utility
from veilog.experiments.plots import Series, lines, panels
from veilog.logs.variants import Variants
from veilog.measures.disclosure import risk
from veilog.methods import METHODS
from veilog.privacy.account.accounting import compose

__all__ = ["CERTIFIED", "FRONTIER", "best"]

EPSILONS = ("2", "1", "0.1", "0.01")
DELTA = "1e-4"
RISK = ("set", 3)
CERTIFIED = tuple(m.name for m in METHODS.values() if m.certified and m.takes_epsilon)


Settings = tuple[tuple[str, Value], ...]


def _columns() -> dict[str, tuple[str, Settings]]:
    """What is compared, by its name: a method, its delta and what else is set. evolve is there without a delta, with
    one, and releasing only real variants."""
    columns: dict[str, tuple[str, Settings]] = {}
    for name in CERTIFIED:
        if METHODS[name].needs_delta:
            columns[f"{name}, delta {DELTA}"] = (name, (("delta", DELTA),))
        else:
            columns[name] = (name, (("delta", "0"),))
        if name == "evolve":
            columns[f"{name}, delta {DELTA}"] = (name, (("delta", DELTA), ("only_real", False)))
            columns[f"{name}, only real, delta {DELTA}"] = (name, (("delta", DELTA), ("only_real", True)))
    return columns


COLUMNS = _columns()
UNIFORM = ("weights", "drawn")
"""The two readings of the leak line: each variant of the raw log once, and as many draws from them as it has cases."""
_SHORT = {f"evolve, delta {DELTA}": "evolve (δ)", f"evolve, only real, delta {DELTA}": "only real (δ)"}
"""Names in plots; others are those of their methods."""
_MODELS = ("1", "0.1")
"""Epsilons at which the first run also discovers a model, which takes longer than most releases."""
_SLOW = {"travag": 2}
"""Methods that take minutes, and their most runs."""
_TOLD = (
    "Mean similarity. Not told from it: behind the best of all by less than two standard errors of the difference, a "
    "rough measure where runs are few, and none for a single run."
)


_UNIFORM = (
    "A uniform draw over the raw list of variants has learnt nothing of what is frequent and protects nobody: it names "
    "everybody's path. A method whose mean is below it resembles the log less than that list does. "
    "Equal weights: each variant once. Drawn: as many cases as the log has."
)
_CERTAIN = "What the release itself says; whether a variant is real only the owner of the log can tell: the next table."


def cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        yield Cell(log, models=0.0 if plan.quick else 300.0)
        yield _leak(log, "weights")
        for run in range(plan.runs):
            yield _leak(log, "drawn", run)
            for epsilon in EPSILONS:
                for method, settings in COLUMNS.values():
                    slow = method in _SLOW
                    if run < _SLOW.get(method, run + 1) and not (plan.quick and slow and (epsilon != "1" or run)):
                        seconds = 300.0 if not plan.quick and run == 0 and epsilon in _MODELS else 0.0
                        yield Cell(log, method, (("epsilon", epsilon), *settings), run, seconds)


def _leak(log: str, reading: str, run: int = 0) -> Cell:
    return Cell(log, settings=(("uniform", reading),), run=run)


def uniform(original: Variants, reading: Value, seed: int) -> Variants:
    """Return the leak line: the variants of a log with equal weights, or as many draws from them as it has cases."""
    if reading == "weights" or not len(original):
        return original.with_counts(np.ones(len(original), dtype=np.int64))
    random = np.random.default_rng(seed)
    return original.with_counts(random.multinomial(original.cases, np.full(len(original), 1 / len(original))))


def measure(given: Given, cell: Cell) -> Measured:
    """Everything about one release; an empty one has similarity 0."""
    original = given.log.variants
    values: dict[str, Number] = {}
    made = uniform(original, cell.get("uniform"), cell.run) if cell.get("uniform") else original
    if cell.method:
        used = time.process_time()
        release = released(given, cell)
        used = time.process_time() - used
        made = release.variants
        epsilon, delta = compose(release.guarantee.charges)
        values = {"derived_epsilon": float(epsilon), "derived_delta": float(delta)}
        values |= {"seconds": release.owner_only.seconds, "cpu_seconds": used}
        values |= certainty(original, release)
    values |= {"size_ratio": made.cases / original.cases, "variants": len(made)}
    if made.events == 0:
        return Measured({**values, "similarity": 0.0}, "Nothing was released; that counts as similarity 0.")
    values |= utility(original, made, difference=False)
    (disclosed,) = risk(made, RISK[0], RISK[1], work_limit=4e8)
    values["risk"] = disclosed.case_disclosure
    if not cell.models:
        return Measured(values)
    more, problem = models(original, made, cell)
    return Measured({**values, **more}, problem)


def _column(rows: Sequence[Row], log: str, name: str, epsilon: str) -> list[Row]:
    method, settings = COLUMNS[name]
    return of(rows, log, method, epsilon=epsilon, **dict(settings))


def ranked(rows: Sequence[Row], log: str, epsilon: str, *, pure: bool = False) -> list[tuple[str, float]]:
    """What is compared, by its mean similarity, the highest first; with ``pure`` only what spends no delta."""
    found = [
        (name, mean(_column(rows, log, name, epsilon), "similarity"))
        for name, (_, settings) in COLUMNS.items()
        if not (pure and dict(settings)["delta"] != "0")
    ]
    return sorted([(name, value) for name, value in found if value is not None], key=lambda pair: -pair[1])


def best(rows: Sequence[Row], log: str, epsilon: str, *, pure: bool = False) -> tuple[str, float] | None:
    """The method of the highest mean similarity."""
    return next(iter(ranked(rows, log, epsilon, pure=pure)), None)


def _close(rows: Sequence[Row], log: str, epsilon: str) -> str:
    """Methods that these runs do not tell from the best: behind by less than two standard errors of the difference."""
    (first, highest), *others = ranked(rows, log, epsilon)
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
    names = [n for n, (method, settings) in COLUMNS.items() if of(rows, None, method, **dict(settings))]
    places = [(log, e) for log in dict.fromkeys(r.cell.log for r in rows) for e in EPSILONS if of(rows, log, epsilon=e)]
    head = ("log", "epsilon", *names)
    winners = []
    for log, epsilon in places:
        first, pure = best(rows, log, epsilon), best(rows, log, epsilon, pure=True)
        both = [f"{b[0]} ({b[1]:.3f})" if b else "-" for b in (first, pure)]
        winners.append((log, epsilon, *both, _close(rows, log, epsilon) if first else "-"))
    out = [
        Table(
            "The best certified method",
            ("log", "epsilon", "of all", "without a delta", "not told from it"),
            tuple(winners),
            _TOLD,
        )
    ]
    note = "The best of a row is bold. Runs that released nothing count as 0."
    similarity = []
    for log, epsilon in places:
        winner = best(rows, log, epsilon)
        line = []
        for name in names:
            text = spread(_column(rows, log, name, epsilon), "similarity")
            line.append(f"**{text}**" if winner and winner[0] == name else text)
        similarity.append((log, epsilon, *line))
    out.append(Table("Relative log similarity", head, tuple(similarity), note))
    if any(row.cell.get("uniform") for row in rows):
        out.append(_leak_table(rows, places))
    for measure_, title, form, note in (
        ("f_score", "F-score of the discovered model (first run)", ".3f", ""),
        ("size_ratio", "Released cases over the log's", ".2f", ""),
        ("risk", f"Case disclosure of the release, {RISK[0]}s of {RISK[1]}", ".4f", _risks(rows)),
        ("certain", "Released cases whose variant is certain to be real", ".0%", _CERTAIN),
        ("real", "Released cases whose variant is real", ".0%", ""),
    ):
        if measure_ in ("f_score", "certain", "real") and not known(rows, measure_):
            continue
        lines_ = [
            (log, e, *(spread(_asked(_column(rows, log, n, e), measure_), measure_, form) for n in names))
            for log, e in places
            if measure_ != "f_score" or e in _MODELS
        ]
        out.append(Table(title, head, tuple(lines_), note))
    seconds = [(log, e, *(_median(_column(rows, log, n, e)) for n in names)) for log, e in places]
    out.append(Table("Median CPU seconds from a log in memory to a release", head, tuple(seconds)))
    return out


def _leak_table(rows: Sequence[Row], places: Sequence[tuple[str, str]]) -> Table:
    """The leak line of each log, and what is below it."""
    told = []
    for log, epsilon in places:
        readings = [of(rows, log, "", uniform=reading) for reading in UNIFORM]
        known_ones = [value for reading in readings if (value := mean(reading, "similarity")) is not None]
        below = [
            f"{name} ({value:.3f})" for name, value in ranked(rows, log, epsilon) if value < min(known_ones, default=0)
        ]
        told.append(
            (log, epsilon, *(spread(reading, "similarity") for reading in readings), "; ".join(below) or "none")
        )
    return Table("The leak line", ("log", "epsilon", "equal weights", "drawn", "below both"), tuple(told), _UNIFORM)


def _asked(rows: Sequence[Row], measure: str) -> list[Row]:
    """Those of the rows that were to have this measure."""
    return [row for row in rows if row.cell.models or measure != "f_score"]


def _median(rows: Sequence[Row]) -> str:
    values = known(rows, "cpu_seconds")
    return f"{statistics.median(values):.2f}" if values else "-"


def _risks(rows: Sequence[Row]) -> str:
    values = [f"{row.cell.log} {row.get('risk') or 0.0:.4f}" for row in of(rows, method="", uniform="")]
    return (
        f"The logs themselves: {', '.join(values)}. A release is made-up cases or noisy counts: its own disclosure "
        "says how unlike each other its cases are, not what it tells about people, which is what epsilon bounds."
    )


def plots(rows: Sequence[Row]) -> list[Plot]:
    """All logs beside each other, and each by itself with the spread of its runs and of both leak lines."""
    logs = {log: _series(rows, log) for log in dict.fromkeys(row.cell.log for row in rows)}
    axes = ("derived epsilon", "relative log similarity: mean, lowest, highest run")
    alone = [
        Plot(f"frontier-{log}", lines(f"The frontier, {log}", EPSILONS[::-1], series, axes))
        for log, series in logs.items()
    ]
    title = "Certified methods at equal derived epsilon"
    mean_of_all = "relative log similarity (1: the same variants in the same shares), mean of the runs"
    return [Plot("frontier", panels(title, EPSILONS[::-1], logs, (axes[0], mean_of_all))), *alone]


def _series(rows: Sequence[Row], log: str) -> dict[str, Series]:
    series: dict[str, Series] = {}
    for name in COLUMNS:
        points = []
        for epsilon in reversed(EPSILONS):
            values = known(_column(rows, log, name, epsilon), "similarity")
            points.append((min(values), statistics.fmean(values), max(values)) if values else None)
        if any(points):
            series[_SHORT.get(name, COLUMNS[name][0])] = points
    drawn, weights = (known(of(rows, log, "", uniform=reading), "similarity") for reading in UNIFORM[::-1])
    if drawn and weights:
        both = [*drawn, *weights]
        series["leak line"] = [(min(both), statistics.fmean(drawn), max(both))] * len(EPSILONS)
    return series


FRONTIER = Experiment(
    name="frontier",
    paper="(Our own comparison.)",
    what="Every certified method at equal derived epsilon on every log.",
    logs=(),
    methods=CERTIFIED,
    measures=(
        "similarity",
        "f_score",
        "fitness",
        "precision",
        "generalization",
        "size_ratio",
        "risk",
        "variants",
        "seconds",
        "cpu_seconds",
        "derived_epsilon",
        "derived_delta",
        "certain",
        "real",
    ),
    cells=cells,
    measure=measure,
    tables=tables,
    plots=plots,
    runs=5,
    page="results/evolve.md",
    quick_runs=2,
    sources=(
        "veilog.measures.similarity.measure",
        "veilog.measures.disclosure.measure",
        "veilog.measures.process_model.measure",
    ),
    notes=(
        f"Default parameters; methods that need a delta get {DELTA}, and evolve is there without one, with one, and "
        "with one releasing only real variants (only_real). "
        "Full logs (pripel, libra) also spend a share of epsilon on times, so their control flow has less of it.",
        "The leak line is no method: a uniform draw over the raw variants, which protects nobody, to be held against.",
        "F-scores are of the first run at epsilon 1 and 0.1; the quick profile leaves them out. "
        " travag runs at most twice, in the quick profile once and at epsilon 1 only.",
        "Many defaults were chosen on these same public logs, which flatters them a little.",
    ),
)

"""The frontier in brief, for readers in a hurry: one table by purpose and few lines, each with its name beside it.

Between the method of this package and the leak line stands the best of all others, whichever that is at each place.
(This is apart from :mod:`veilog.experiments.frontier`, which has everything and says what is compared.)
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from veilog.experiments.experiment import (
    Cell,
    Experiment,
    Given,
    Lines,
    Measured,
    Number,
    Panels,
    Plan,
    Plot,
    Row,
    Series,
    Table,
    Value,
    certainty,
    known,
    mean,
    models,
    of,
    released,
    spread,
    utility,
)
from veilog.logs.variants import Variants
from veilog.measures.disclosure import risk
from veilog.measures.purposes import Asked
from veilog.measures.purposes.conformance import CONFORMANCE
from veilog.measures.purposes.prediction import next_activity
from veilog.measures.purposes.sides import TRAINING, split
from veilog.methods import METHODS
from veilog.methods.method import DeltaOptional
from veilog.privacy.account.accounting import compose

BEST, LEAK = "best of the others", "leak line"
_OWN = "evolve"
_EPSILON = "1"
_MODEL = ("fitness", "precision")
_PURPOSES = (("fitness / precision", _MODEL), ("next activity", ("next_activity",)), ("error of rules", ("rules",)))
_NOTE = (
    "Means of the runs, certified, at epsilon 1. Fitness and precision are the original's on the inductive miner's "
    "model of the release (filter 0.2); next activity: how often it is predicted, by an n-gram, for cases that the log "
    "itself is judged without and releases have seen; error of rules: how far the supports of the log's own rules are "
    f"off, on average. {BEST[0].upper()}{BEST[1:]}: by this number (of fitness and precision by the one that less is "
    "kept of), with its name. Leak line: a bare list of the raw variants, which protects nobody."
)

_NEAR = (
    "Relative log similarity (1: the same variants in the same shares), means of the runs, certified; the best of a "
    "log is bold. CPU s: one release of the log that takes longest, median."
)


@dataclass(frozen=True)
class Brief:
    """The rows of a frontier, and which of them are of what was compared."""

    rows: Sequence[Row]
    names: Iterable[str]
    column: Callable[[str, str, str], list[Row]]
    """The rows of a log, a name and an epsilon."""

    @property
    def logs(self) -> list[str]:
        return list(dict.fromkeys(row.cell.log for row in self.rows))

    @property
    def own(self) -> list[str]:
        """What is compared of the method of this package."""
        return [name for name in self.names if name == _OWN or name.startswith(f"{_OWN}, delta")]

    @property
    def others(self) -> list[str]:
        return [name for name in self.names if not name.startswith(_OWN)]

    def table(self) -> Table | None:
        """Return what releases are good for at epsilon 1; None where nothing of that was measured."""
        lines = [
            (log, title, *self._line(log, measures))
            for log in self.logs
            for title, measures in _PURPOSES
            if any(self._means(self.column(log, name, _EPSILON), measures) for name in self.names)
        ]
        head = ("log", "purpose", "the log itself", *self.own, BEST, LEAK)
        return Table("What releases are good for", head, tuple(lines), _NOTE) if lines else None

    def methods(self) -> Table | None:
        """Return how near to each log every method comes at epsilon 1, and how long it takes; the best are bold."""
        logs = [
            log for log in self.logs if any(self._similarity(log, name, _EPSILON) is not None for name in self.names)
        ]
        found = {name: [self._similarity(log, name, _EPSILON) for log in logs] for name in self.names}
        best = [max((v for own in found.values() if (v := own[i]) is not None), default=None) for i in range(len(logs))]
        lines = [
            (
                name,
                *(
                    "-" if value is None else f"**{value:.3f}**" if value == most else f"{value:.3f}"
                    for value, most in zip(values, best, strict=True)
                ),
                self._seconds(name, logs),
            )
            for name, values in found.items()
            if any(value is not None for value in values)
        ]
        head = ("method", *logs, "CPU s")
        return Table("All methods at epsilon 1", head, tuple(lines), _NEAR) if lines else None

    def _seconds(self, name: str, logs: Sequence[str]) -> str:
        """The median of the slowest log."""
        medians = [
            statistics.median(values)
            for log in logs
            if (values := known(self.column(log, name, _EPSILON), "cpu_seconds"))
        ]
        return f"{max(medians):.2g}" if medians else "-"

    def _line(self, log: str, measures: tuple[str, ...]) -> list[str]:
        original = self._means(of(self.rows, log, "", uniform=""), measures)
        found = {name: self._means(self.column(log, name, _EPSILON), measures) for name in self.names}
        candidates = [name for name in self.others if found[name]]
        best = max(candidates, key=lambda name: _worth(found[name], original, measures), default=None)
        leak = self._means(of(self.rows, log, "", uniform="weights"), measures)
        told = "-" if best is None else f"{_told(found[best])} ({best})"
        return [_told(original), *(_told(found[name]) for name in self.own), told, _told(leak)]

    @staticmethod
    def _means(rows: list[Row], measures: tuple[str, ...]) -> list[float]:
        """The means of these measures; none where one of them is not known of every run."""
        found = [mean(rows, name) for name in measures if rows and len(known(rows, name)) == len(rows)]
        values = [value for value in found if value is not None]
        return values if len(values) == len(measures) else []

    def series(self, log: str, epsilons: Sequence[str]) -> dict[str, Series]:
        """Return the lines of a log: mean similarities at these epsilons."""
        lines = {name: [self._similarity(log, name, e) for e in epsilons] for name in self.own}
        every = [[self._similarity(log, name, e) for name in self.others] for e in epsilons]
        lines[BEST] = [max((value for value in values if value is not None), default=None) for values in every]
        listed = [
            v for reading in ("weights", "drawn") for v in known(of(self.rows, log, "", uniform=reading), "similarity")
        ]
        lines[LEAK] = [min(listed) if listed else None] * len(epsilons)
        return {
            name.replace(", delta 1e-4", " (δ)"): [None if value is None else (value, value, value) for value in values]
            for name, values in lines.items()
            if any(value is not None for value in values)
        }

    def _similarity(self, log: str, name: str, epsilon: str) -> float | None:
        values = known(self.column(log, name, epsilon), "similarity")
        return statistics.fmean(values) if values else None


def _worth(values: list[float], original: list[float], measures: tuple[str, ...]) -> float:
    """By what methods are compared: the more the better."""
    if measures == ("rules",):
        return -values[0]
    if len(original) != len(values):
        return min(values)
    return min(min(1.0, value / own) if own else 1.0 for value, own in zip(values, original, strict=True))


def _told(values: list[float]) -> str:
    return " / ".join(f"{value:.3f}" for value in values) or "-"


EPSILONS = ("2", "1", "0.1", "0.01")
DELTA = "1e-4"
RISK = ("set", 3)
CERTIFIED = tuple(m.name for m in METHODS.values() if m.certified and m.takes_epsilon)


Settings = tuple[tuple[str, Value], ...]


def compared(methods: Iterable[str], delta: str | None) -> dict[str, tuple[str, Settings]]:
    """Return what is compared, by its name: a method, its delta and what else is set. Methods that can use a delta are
    there without one and with one; evolve also releasing only real variants. Without a delta those that need one are
    not there."""
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
UNIFORM = ("weights", "drawn")
"""The two readings of the leak line: each variant of the raw log once, and as many draws from them as it has cases."""
_SHORT = {
    name: "only real (δ)" if "only real" in name else f"{method} (δ)"
    for name, (method, settings) in COLUMNS.items()
    if dict(settings)["delta"] != "0" and not METHODS[method].needs_delta
}
"""Names in plots; others are those of their methods."""
_MODEL_SECONDS = 120.0
_TOLD = (
    "Mean similarity. Not told from it: behind the best of all by less than two standard errors of the difference, a "
    "rough measure where runs are few, and none for a single run."
)


_NEXT = "By an n-gram; the release has seen all cases, also those. "
_UNIFORM = (
    "A uniform draw over the raw list of variants has learnt nothing of what is frequent and protects nobody: it names "
    "everybody's path. A method whose mean is below it resembles the log less than that list does; one above it need "
    "not have learnt more than the list tells. Equal weights: each variant once. Drawn: as many cases as the log has."
)
_CERTAIN = "What the release itself says; whether a variant is real only the owner of the log can tell: the next table."


def cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        yield Cell(log, models=0.0 if plan.quick else _MODEL_SECONDS)
        yield _leak(log, "weights")
        for run in range(plan.runs):
            yield _leak(log, "drawn", run)
            for epsilon in EPSILONS:
                for method, settings in COLUMNS.values():
                    seconds = 0.0 if plan.quick else _MODEL_SECONDS
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
    if cell.method:
        release, values = made(given, cell)
        return judged(original, release, cell, values)
    reading = cell.get("uniform")
    return judged(original, uniform(original, reading, cell.run) if reading else original, cell, {})


def made(given: Given, cell: Cell) -> tuple[Variants, dict[str, Number]]:
    """Return what the cell's method releases, what that cost, and how much of it is real."""
    used = time.process_time()
    release = released(given, cell)
    used = time.process_time() - used
    epsilon, delta = compose(release.guarantee.charges)
    values: dict[str, Number] = {"derived_epsilon": float(epsilon), "derived_delta": float(delta)}
    values |= {"seconds": release.owner_only.seconds, "cpu_seconds": used}
    return release.variants, values | certainty(given.log.variants, release)


def judged(original: Variants, made: Variants, cell: Cell, values: dict[str, Number]) -> Measured:
    """Return how a release compares with the original, beside the ``values`` that are known of it."""
    values |= {"size_ratio": made.cases / original.cases, "variants": len(made)}
    if made.events == 0:
        return Measured({**values, "similarity": 0.0}, "Nothing was released; that counts as similarity 0.")
    values |= utility(original, made, difference=False)
    (disclosed,) = risk(made, RISK[0], RISK[1], work_limit=4e8)
    values["risk"] = disclosed.case_disclosure
    values |= purposes(original, made, itself=made is original)
    if not cell.models:
        return Measured(values)
    more, problem = models(original, made, cell)
    return Measured({**values, **more}, problem)


def purposes(original: Variants, made: Variants, *, itself: bool) -> dict[str, Number]:
    """Return what a release is worth for prediction and for checking conformance: how often the next activity of
    held-out cases is predicted from it (of the log ``itself``, from its other cases), and by how much the supports of
    the original's own rules are off."""
    seen, unseen = split(original, TRAINING)
    rules = CONFORMANCE.score(made, original, Asked()).get("rules")
    return {"next_activity": next_activity(seen if itself else made, unseen), "rules": rules}


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
        ("fitness", "Fitness of the log on the release's model", ".3f", _of_itself(rows, "fitness")),
        ("precision", "Precision of the release's model", ".3f", _of_itself(rows, "precision")),
        ("f_score", "F-score of the release's model", ".3f", _of_itself(rows, "f_score")),
        (
            "next_activity",
            "Next activity of held-out cases, predicted from the release",
            ".3f",
            _NEXT + _of_itself(rows, "next_activity"),
        ),
        ("rules", "Error of the supports of the log's own rules", ".3f", ""),
        ("size_ratio", "Released cases over the log's", ".2f", ""),
        ("risk", f"Case disclosure of the release, {RISK[0]}s of {RISK[1]}", ".4f", _risks(rows)),
        ("certain", "Released cases whose variant is certain to be real", ".0%", _CERTAIN),
        ("real", "Released cases whose variant is real", ".0%", ""),
    ):
        if measure_ not in ("size_ratio", "risk") and not known(rows, measure_):
            continue
        lines_ = [(log, e, *(spread(_column(rows, log, n, e), measure_, form) for n in names)) for log, e in places]
        out.append(Table(title, head, tuple(lines_), note))
    brief = _brief(rows)
    out += [table for table in (brief.methods(), brief.table()) if table is not None]
    seconds = [(log, e, *(_median(_column(rows, log, n, e)) for n in names)) for log, e in places]
    out.append(Table("Median CPU seconds from a log in memory to a release", head, tuple(seconds)))
    return out


def _brief(rows: Sequence[Row]) -> Brief:
    return Brief(rows, tuple(COLUMNS), lambda log, name, epsilon: _column(rows, log, name, epsilon))


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


def _of_itself(rows: Sequence[Row], measure: str) -> str:
    """What the logs themselves have."""
    own = [
        f"{row.cell.log} {value:.3f}"
        for row in of(rows, method="", uniform="")
        if (value := row.get(measure)) is not None
    ]
    return f"The logs themselves: {', '.join(own)}." if own else ""


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
    """All logs beside each other, with few lines and with all, and each by itself with the spread of its runs and of
    both leak lines."""
    logs = {log: _series(rows, log) for log in dict.fromkeys(row.cell.log for row in rows)}
    axes = ("derived epsilon", "relative log similarity: mean, lowest, highest run")
    alone = [
        Plot(f"frontier-{log}", Lines(f"The frontier, {log}", EPSILONS[::-1], series, axes))
        for log, series in logs.items()
    ]
    title = "Certified methods at equal derived epsilon"
    mean_of_all = "relative log similarity (1: the same variants in the same shares), mean of the runs"
    few = {log: _brief(rows).series(log, EPSILONS[::-1]) for log in logs}
    return [
        Plot("frontier", Panels(title, EPSILONS[::-1], logs, (axes[0], mean_of_all))),
        Plot("frontier-brief", Panels(title, EPSILONS[::-1], few, (axes[0], mean_of_all))),
        *alone,
    ]


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
        "next_activity",
        "rules",
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
    page="results/frontier.md",
    quick_runs=2,
    small=Plan(("small",), 1, False),
    notes=(
        f"Default parameters; methods that need a delta get {DELTA}, those that can use one are there without and with "
        "it, and evolve also with one releasing only real variants (only_real). "
        "Full logs (pripel, libra) also spend a share of epsilon on times, so their control flow has less of it.",
        "The leak line is no method: a uniform draw over the raw variants, which protects nobody, to be held against.",
        "Models are the inductive miner's with a filter of 0.2; the quick profile leaves them out.",
        "Many defaults were chosen on these same public logs, which flatters them a little.",
    ),
)

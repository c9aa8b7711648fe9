"""The frontier in brief, for readers in a hurry: one table by purpose and few lines, each with its name beside it.

Between the method of this package and the leak line stands the best of all others, whichever that is at each place.
(This is apart from :mod:`veilog.experiments.frontier`, which has everything and says what is compared.)
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from veilog.experiments.experiment import Row, Table, known, mean, of
from veilog.experiments.plots import Series

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

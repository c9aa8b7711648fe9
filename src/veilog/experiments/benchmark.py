"""``veilog.benchmark``: methods, budgets and runs compared on one log.

It measures as the frontier does on many logs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from veilog._notebook import card, frame, paragraph, table
from veilog.errors import MissingExtraError, ParameterError, VeilogError
from veilog.experiments.experiment import Cell, Given, Lines, Measured, Number, Row, known, mean, of
from veilog.experiments.frontier import CERTIFIED, compared, judge_release, made
from veilog.logs.eventlog import EventLog
from veilog.logs.files import AnyLog, as_log
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair, Progress
from veilog.measures.use_cases import judge, use_cases_by_name
from veilog.methods import method_named
from veilog.privacy.account.budgets import Number as Budget
from veilog.privacy.account.budgets import parse_delta, parse_epsilon, whole_number
from veilog.privacy.account.guarantee import exact

if TYPE_CHECKING:
    import pandas as pd


_MODEL_SECONDS = 30.0
_NAME = "compared"
_FIRST = (_NAME, "method", "epsilon", "delta", "run", "similarity")
_AXES = ("epsilon", "relative log similarity: mean, lowest, highest run")


@dataclass(frozen=True)
class Benchmark:
    """Measurements of :func:`benchmark`: a row for each method, budget and run."""

    rows: tuple[Row, ...] = field(repr=False)
    compared: tuple[str, ...]
    """Names of the columns: methods, and again with the delta if they can use one."""
    epsilons: tuple[str, ...]
    """Epsilons as they were given, in their order."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns of :meth:`to_frame`: the log's facts, then a release's measurements."""
        measured = dict.fromkeys(name for row in self.rows for name in row.values)  # noqa: PD011
        return (*_FIRST, *(name for name in measured if name not in _FIRST), "problem")

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each release; ``problem`` has the reason for a missing value."""
        return frame(map(_row_to_json, self.rows), self.columns)

    def plot(self, measure: str = "similarity") -> str:
        """Return a picture (SVG) of one measure at every epsilon, with its spread.

        Raises:
            ParameterError: if ``measure`` is no column.
            MissingExtraError: without the extra ``experiments``.

        """
        if measure not in self.columns:
            raise ParameterError(
                "benchmark-measure-unknown",
                parameter="measure",
                measure=measure,
                names=", ".join(self.columns[len(_FIRST) - 1 : -1]),
            )
        places = sorted(self.epsilons, key=float)
        series = {name: [self._point(name, epsilon, measure) for epsilon in places] for name in self.compared}
        axes = _AXES if measure == "similarity" else (_AXES[0], f"{measure}: mean, lowest, highest run")
        return Lines("Methods at equal epsilon", places, series, axes).svg()

    def _repr_html_(self) -> str:
        """Return the means of the similarities, and the picture if it can be drawn."""
        rows = [(name, *(self._mean(name, epsilon) for epsilon in self.epsilons)) for name in self.compared]
        rows.sort(key=lambda row: -max((value for value in row[1:] if isinstance(value, float)), default=0.0))
        head = ("relative log similarity, mean", *(f"epsilon {epsilon}" for epsilon in self.epsilons))
        problems = dict.fromkeys(f"{row.texts[_NAME]}: {row.problem}" for row in self.rows if row.problem)
        said = [paragraph(text, "s") for text in problems]
        shown = card("Benchmark", table(head, rows, numbers=range(1, len(head))), *said)
        try:
            return shown + self.plot()
        except MissingExtraError:
            return shown

    def _rows_of(self, name: str, epsilon: str) -> list[Row]:
        return [row for row in of(self.rows, epsilon=epsilon) if row.texts[_NAME] == name]

    def _mean(self, name: str, epsilon: str) -> float | None:
        return mean(self._rows_of(name, epsilon), "similarity")

    def _point(self, name: str, epsilon: str, measure: str) -> tuple[float, float, float] | None:
        values = [value for value in known(self._rows_of(name, epsilon), measure) if math.isfinite(value)]
        return (min(values), math.fsum(values) / len(values), max(values)) if values else None


def benchmark(
    log: AnyLog,
    methods: Iterable[str] | str | None = None,
    *,
    epsilons: Iterable[Budget] | Budget = ("1", "0.1"),
    delta: Budget | None = None,
    runs: int = 3,
    use_cases: Sequence[str] = (),
    models: bool = False,
    progress: Progress | None = None,
) -> Benchmark:
    """Compare certified methods on a log by seeded releases, as the frontier does.

    It releases nothing and guarantees nothing. Its results reveal facts of the raw log, so they are for the data owner
    alone. No guarantee covers a choice of the method by them. Choose by a log that is not secret.

    Args:
        log: the event log, in any form but variants alone.
        methods: names of certified methods; None for all that have an epsilon.
        epsilons: budgets at which each method is compared.
        delta: with a delta, methods that can use one appear without it and with it, and those that need one appear.
        runs: seeded releases for each method and budget.
        use_cases: names (``prediction`` and others, or ``all``) of use cases to add, each with its utility.
        models: True to add the quality of the discovered model.
        progress: called with a text and the fraction that is done.

    Returns:
        A row for each release; a method that refuses this log or budget has its reason in the row.

    Raises:
        ParameterError: for a log without events, or an argument out of its range.

    >>> import veilog
    >>> from veilog.logs.synthetic.hospital import hospital
    >>> found = veilog.benchmark(hospital(100, seed=1), ["evolve", "laplace"], epsilons=[1], runs=1)
    >>> found.to_frame()["compared"].tolist()
    ['evolve', 'laplace']

    """
    held = as_log(log)
    if not isinstance(held, EventLog):
        raise ParameterError("benchmark-of-variants", parameter="log")
    if held.variants.events == 0:
        raise ParameterError("benchmark-log-without-events", parameter="log")
    number = whole_number(runs)
    if number is None:
        raise ParameterError("audit-runs-not-whole", parameter="runs", runs=runs)
    if number < 1:
        raise ParameterError("benchmark-runs-too-few", parameter="runs", runs=runs)
    budgets = _budgets(epsilons)
    columns = compared(_choose_methods(methods), None if delta is None else exact(parse_delta(delta)))
    if not columns:
        raise ParameterError("benchmark-without-delta", parameter="delta")
    wanted = use_cases_by_name(use_cases)
    cells = list(_cells(columns, budgets, number, _MODEL_SECONDS if models else 0.0))
    say = progress or (lambda text, fraction: None)
    rows = []
    for done, (name, cell) in enumerate(cells):
        say(f"{done} of {len(cells)} releases: {cell.in_words()}", done / len(cells))
        found = _measure_release(held, cell, wanted)
        rows.append(Row(cell, found.values, found.problem, 0.0, "", {_NAME: name}))
    return Benchmark(tuple(rows), tuple(columns), budgets)


def _budgets(epsilons: Iterable[Budget] | Budget) -> tuple[str, ...]:
    """Return the epsilons in their exact form; a single one will do."""
    given = [epsilons] if isinstance(epsilons, str) or not isinstance(epsilons, Iterable) else list(epsilons)
    if not given:
        raise ParameterError("benchmark-without-epsilon", parameter="epsilons")
    return tuple(dict.fromkeys(exact(parse_epsilon(epsilon)) for epsilon in given))


def _choose_methods(methods: Iterable[str] | str | None) -> tuple[str, ...]:
    if methods is None:
        return CERTIFIED
    if not isinstance(methods, Iterable):
        raise ParameterError("benchmark-methods-not-names", parameter="methods", methods=methods)
    names = tuple(dict.fromkeys([methods] if isinstance(methods, str) else methods))
    if not names:
        raise ParameterError("benchmark-without-method", parameter="methods")
    for name in names:
        if not (method_named(name).certified and method_named(name).takes_epsilon):
            raise ParameterError(
                "benchmark-method-not-certified", parameter="methods", name=name, names=", ".join(CERTIFIED)
            )
    return names


def _cells(
    columns: Mapping[str, tuple[str, tuple[tuple[str, Any], ...]]], epsilons: Sequence[str], runs: int, models: float
) -> Iterator[tuple[str, Cell]]:
    for name, (method, settings) in columns.items():
        for epsilon in epsilons:
            for run in range(runs):
                yield name, Cell("", method, (("epsilon", epsilon), *settings), run, models)


def _measure_release(log: EventLog, cell: Cell, use_cases: tuple[str, ...]) -> Measured:
    """Measure one release; a method that refuses this log or budget gives its reason."""
    try:
        released, values = made(Given(None, part=log), cell)
        found = judge_release(log.variants, released, cell, values)
        return replace(found, values={**found.values, **_measure_utility(log, released, use_cases)})  # noqa: PD011
    except VeilogError as error:
        return Measured({}, str(error))


def _measure_utility(log: EventLog, released: Variants, use_cases: tuple[str, ...]) -> dict[str, Number]:
    """Return the utility of a release for each use case, as a share of the original's."""
    if not use_cases or released.events == 0:
        return {}
    pair = Pair(log, released)
    with pair.closing():
        judgements = judge(pair, use_cases)
    return {name: None if found.chief is None else found.chief.share for name, found in judgements.items()}


def _row_to_json(row: Row) -> dict[str, Any]:
    budget = {name: float(row.cell.get(name)) for name in ("epsilon", "delta")}
    first = {**row.texts, "method": row.cell.method, **budget, "run": row.cell.run}
    return {**first, **row.values, "problem": row.problem}  # noqa: PD011

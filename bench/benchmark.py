"""Benchmarks: experiments as a measure, a grid of settings and a table's columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from columns import Column, across, summary
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Profile, Row, Table, Value

Cells = Callable[[Profile], Iterator[Cell]]
CPU, WALL, PEAK = Column("CPU s", "cpu"), Column("wall s", "wall"), Column("peak MB", "peak", ",.0f")
SIMILARITY = Column("similarity", "similarity", ".3f", "spread")
NO_LOG = ("",)
SMALL = Profile(("small",), 1, False)
"""Profile with which most measures are tried for their fingerprint."""


def grid(
    method: str = "",
    *,
    logs: tuple[str, ...] = (),
    once: bool = False,
    quick: Mapping[str, Value | tuple[Value, ...]] | None = None,
    **settings: Value | tuple[Value, ...],
) -> Cells:
    """Return all combinations of the settings, on all logs of the profile or ``logs``.

    A tuple has several values of a setting. Cells come run by run, so that each combination has a first result before
    any has all. In a quick run the values in ``quick`` count, and those of ``--set`` count before all. ``method`` may
    name several, by commas.
    """

    def cells(profile: Profile) -> Iterator[Cell]:
        chosen = settings | dict(quick or {}) if profile.quick else settings
        kinds = {name: value if isinstance(value, tuple) else (value,) for name, value in chosen.items()}
        kinds |= {name: _read(profile.options[name], kinds[name]) for name in kinds if name in profile.options}
        for run in range(1 if once else profile.runs):
            for log, one, values in itertools.product(
                logs or profile.logs, method.split(","), itertools.product(*kinds.values())
            ):
                yield Cell(log, one, tuple(zip(kinds, values, strict=True)), run)

    return cells


def _read(text: str, like: Sequence[Value]) -> tuple[Value, ...]:
    """Return the values of ``--set``, of the type that the setting has."""
    return tuple(type(like[0])(part) for part in text.split(","))


def asked(*releases: tuple[str, Mapping[str, Value]], quick: int = 2) -> Cells:
    """Return methods with their settings; in a quick run the first few."""

    def cells(profile: Profile) -> Iterator[Cell]:
        for run in range(profile.runs):
            for log in profile.logs:
                for method, settings in releases[: quick if profile.quick else None]:
                    yield Cell(log, method, tuple(settings.items()), run)

    return cells


def benchmark(
    name: str,
    what: str,
    measure: Callable[[Given, Cell], Measured],
    cells: Cells | Sequence[Cells],
    columns: Sequence[Column],
    *,
    over: str = "",
    note: str = "",
    **more: Any,
) -> Experiment:
    """Return the experiment of one table with these columns.

    With ``over`` it has a table for each of them, with a column for each value of that setting.
    """
    parts = [cells] if callable(cells) else list(cells)
    return Experiment(
        name=name,
        what=what,
        measure=measure,
        cells=lambda profile: (cell for part in parts for cell in part(profile)),
        tables=partial(_tables, what.rstrip("."), columns, over, note),
        **{"quick_runs": 1, "quick_logs": ("sepsis",), "runs": 5, **more},
    )


def _tables(title: str, columns: Sequence[Column], over: str, note: str, rows: Sequence[Row]) -> list[Table]:
    if not over:
        return [summary(title, rows, identifying(rows), columns, note)]
    by = [name for name in identifying(rows) if name != over]
    return [across(f"{title}: {column.title}", rows, by, over, column, note) for column in columns]


def identifying(rows: Sequence[Row]) -> list[str]:
    """Return the names that distinguish a table's lines: log, method and settings."""
    cells = [row.cell for row in rows]
    names = ["log"] * any(cell.log for cell in cells) + ["method"] * any(cell.method for cell in cells)
    return [*names, *dict.fromkeys(name for cell in cells for name, _ in cell.settings)]

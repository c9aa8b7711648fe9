"""Constants of times and numbers, halved and doubled, on synthetic logs.

    python bench/run.py constants-times constants-numbers constants-days constants-outside

The constants were not chosen on these logs. Releases are at epsilon 1, of which 0.4 is for times or 0.5 for attributes;
one constant is changed at a time. Every value is an error, so that less is better. Each seed's result is compared with
its result with unchanged constants.
"""

from __future__ import annotations

import datetime
import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from functools import cache, partial
from unittest.mock import patch

import numpy as np

from amounts import GROUPS, RANGES, apart, with_numbers
from calendars import BEGIN, FURTHER, KINDS
from columns import grouped
from times import DISTANCES, gaps_of, original_of, shares
from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Profile, Row, Table
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.use_cases.performance import OFTEN, PERFORMANCE
from veilog.measures.use_cases.sides import split
from veilog.measures.use_cases.use_case import UseCaseOptions
from veilog.methods._events import fits
from veilog.methods._events.assemble import Details, assemble_log, released_cases
from veilog.methods._events.attributes import numbers
from veilog.methods._events.attributes.domains import choose
from veilog.methods._events.attributes.synthesis import released_attributes
from veilog.methods._events.times import calendar, hours, timestamps
from veilog.methods._events.times.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms import noise
from veilog.releasing.run import release

BEGUN = datetime.datetime.fromtimestamp(BEGIN, datetime.UTC)
WINDOW = (BEGUN, BEGUN + datetime.timedelta(days=731))
MODULES = {"timestamps": timestamps, "hours": hours, "calendar": calendar, "fits": fits, "numbers": numbers}
OF_TIMES = (
    *("timestamps.QUIET=0.25", "timestamps.QUIET=1", "timestamps.FAR=108000", "timestamps.FAR=432000"),
    *("timestamps.FAR_NEAR=0.375", "timestamps.FAR_NEAR=1.5", "hours.SURE=100", "hours.SURE=400"),
    *("fits.SURPRISE=2", "fits.SURPRISE=8", "calendar.PART_NOISES=4", "calendar.PART_NOISES=16"),
)
OF_NUMBERS = (
    *("numbers.FEW=0.025", "numbers.FEW=0.1", "numbers.MOST_OF=0.05", "numbers.MOST_OF=0.2"),
    *("numbers.KNOWN=0.25", "numbers.KNOWN=1.0"),
)
SHAPES = {name.partition(",")[0]: make for name, make in (KINDS | FURTHER).items()}


@cache
def made_up(name: str) -> EventLog:
    """Return the log of this name, or 2,000 of its cases."""
    log = SHAPES[name]()
    return log if len(log.cases) <= 2_000 else split(log, 2_000 / len(log.cases), 0)[0]


@cache
def flow(name: str, seed: int) -> Variants:
    return release(made_up(name).variants, "evolve", domain=ALL_FROM_LOG, epsilon="0.6", seed=seed).variants


def changed(constant: str) -> AbstractContextManager[object]:
    """Change a constant until the end of the block."""
    if not constant:
        return nullcontext()
    module, name, value = constant.replace("=", ".", 1).split(".", 2)
    return patch.object(MODULES[module], name, type(getattr(MODULES[module], name))(value))


def times_with(given: Given, cell: Cell) -> Measured:
    log, source = made_up(cell.log), noise.seeded(1000 + cell.run)
    curator = Curator(log.variants, log=log, domain=Domain(window=WINDOW), randomness=source)
    cases = released_cases(flow(cell.log, cell.run), noise.generator(source))
    with changed(str(cell.get("constant"))):
        moments = released_times(curator, Fraction("0.4"), cases, window=WINDOW)
    made = assemble_log(Details(cases, moments), log.metadata)
    scores = PERFORMANCE.score(made, log, UseCaseOptions())
    (raw, real_at), (drawn, at) = (original_of(one) for one in (log, made))
    real, found = gaps_of(raw, real_at), gaps_of(drawn, at)
    often = [pair for pair in found if len(real.get(pair, ())) >= OFTEN and real[pair].mean() > 0]
    factors = [abs(np.log((np.median(found[pair]) + 1) / (np.median(real[pair]) + 1))) for pair in often]  # in seconds
    whole = [np.mean(at % (unit * 10**6) == 0) - np.mean(real_at % (unit * 10**6) == 0) for unit in hours.UNITS]
    return Measured(
        {name: scores[name] for name in (*DISTANCES, "median_duration", "mean_duration")}
        | {"pairs": float(np.median([abs(found[pair].mean() / real[pair].mean() - 1) for pair in often]))}
        | {"pair medians": float(np.median(factors))}
        | {"hours": float(np.abs(shares(at, 3600, 24, 0) - shares(real_at, 3600, 24, 0)).sum() / 2)}
        | {"days": float(np.abs(shares(at, 86_400, 7, 0) - shares(real_at, 86_400, 7, 0)).sum() / 2)}
        | {"unit": float(np.abs(whole).max())}
    )


def numbers_with(given: Given, cell: Cell) -> Measured:
    names, log, source = GROUPS[cell.log], with_numbers(cell.log), noise.seeded(cell.run)
    domain = Domain(attributes={name: RANGES[name] for name in names})
    curator = Curator(log.variants, log=log, domain=domain, randomness=source)
    cases = released_cases(log.variants, noise.generator(source))
    with changed(str(cell.get("constant"))):
        chosen, rest = choose(curator, names, Fraction("0.5"), Fraction(0), print)
        columns = released_attributes(curator, rest, cases, chosen)
    found = [apart(log.cases.column(name).to_numpy(), columns.cases[name].to_numpy(False)) for name in names]
    return Measured({key: float(np.mean([one[key] for one in found])) for key in found[0]})


def cells(names: Sequence[str], constants: Sequence[str], profile: Profile) -> Iterator[Cell]:
    for run, name, constant in itertools.product(range(profile.runs), names, ("", *constants)):
        yield Cell(name, "", (("constant", constant),), run)


def tables(rows: Sequence[Row]) -> list[Table]:
    """Return the number of logs with smaller (-) and larger (+) errors by constant.

    A difference counts beyond two standard errors.
    """
    if not rows:
        return []
    by = grouped(rows, ("constant", "log"))
    logs = {row.cell.log: None for row in rows}

    def told(constant: str, error: str) -> str:
        beyond = []
        for log in logs:
            both = zip(by["", log], by[constant, log], strict=True)
            more = [float(other.values[error] - own.values[error]) for own, other in both]
            off = 2 * statistics.stdev(more) / len(more) ** 0.5
            beyond.append((statistics.fmean(more) > off) - (statistics.fmean(more) < -off))
        return " ".join(f"{sign}{beyond.count(way)}" for sign, way in (("-", -1), ("+", 1)) if way in beyond)

    lines = [
        (constant, *(told(constant, error) for error in rows[0].values))
        for constant in dict.fromkeys(constant for constant, _ in by if constant)
    ]
    return [Table("Constants", ("", *rows[0].values), tuple(lines))]


def around(
    of: str, made: Sequence[str], constants: Sequence[str], measure: Callable[[Given, Cell], Measured]
) -> Experiment:
    what = f"Constants of {of} at half and at twice what they are: on how many logs an error is less or more."
    of_it = partial(cells, made, constants)
    return Experiment(f"constants-{of}", what, of_it, measure, tables, runs=20, quick_runs=5, page="results/times.md")


BENCHMARKS = (
    around("times", tuple(SHAPES), OF_TIMES, times_with),
    around("numbers", tuple(GROUPS), OF_NUMBERS, numbers_with),
)

"""Amun, table 6: earth mover's distances of directly-follows frequencies and times, by guessing advantage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veilog.errors import ParameterError
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
    mean,
    of,
    spread,
)
from veilog.experiments.measuring import EMPTY, released
from veilog.experiments.plots import Series, lines
from veilog.measures.directly_follows import frequency_emd, time_emd

__all__ = ["AMUN_LOGS", "AMUN_TABLE_6"]

MODES = ("sampling", "filtering", "oversampling")
ADVANTAGES = ("0.2", "0.3", "0.4")
AMUN_LOGS = (
    "bpic2012",
    "bpic2013_incidents",
    "bpic2014",
    "bpic2015",
    "bpic2017",
    "bpic2018",
    "bpic2019",
    "bpic2020",
    "ccc19",
    "credit_requirement",
    "bpic2011",
    "sepsis",
    "traffic_fines",
    "unrineweginfectie",
)
_NONE = float("nan")
# mean epsilon; frequency: sampling, filtering, oversampling, PRIPEL, SaCoFa; time: the same but for SaCoFa
PUBLISHED: dict[str, tuple[tuple[float, ...], ...]] = {
    "bpic2012": (
        (1.48, 331.02, 653.36, 2301.62, 946.9, 1006.60, 40.30, 8.08, 192.13, 25.75),
        (2.00, 212.64, 742.39, 1597.79, 966.99, 969.29, 20.32, 13.54, 107.96, 26.7),
        (2.47, 142.37, 785.87, 1275.43, 966.88, 876.56, 12.68, 16.74, 72.56, 26.7),
    ),
    "bpic2013_incidents": (
        (1.49, 1131.91, 1053.45, 7613.27, 3771.09, 2992.09, 778.18, 811.51, 3343.92, 197.41),
        (1.99, 840.55, 258.45, 5417.64, 3792.55, 2562.55, 592.36, 307.26, 2055.23, 197.38),
        (2.44, 558.45, 2450.45, 4296.73, 3775.82, 2623.18, 486.86, 75.13, 1751.96, 197.19),
    ),
    "bpic2014": (
        (1.25, 429.60, 395.24, 1905.69, 531.42, 494.34, 132.53, 130.00, 577.32, 10.0),
        (1.74, 298.86, 281.43, 1333.95, _NONE, 488.67, 82.02, 76.37, 321.72, _NONE),
        (2.27, 208.55, 179.94, 1012.62, _NONE, 385.8, 47.12, 50.61, 178.08, _NONE),
    ),
    "bpic2015": (
        (0.42, 20.71, 18.74, 80.61, _NONE, 20.84, 5.68, 4.18, 22.47, _NONE),
        (0.69, 14.82, 7.93, 52.42, 10.71, 10.84, 3.15, 2.28, 11.17, 0.8),
        (0.99, 12.60, 2.79, 39.09, _NONE, 10.30, 2.46, 1.05, 8.87, _NONE),
    ),
    "bpic2017": (
        (1.81, 141.37, 1925.92, 1159.08, 2454.47, 1601.54, 117.56, 75.98, 268.08, 109.10),
        (2.21, 78.60, 2667.91, 938.79, _NONE, 1271.89, 95.07, 131.76, 206.76, _NONE),
        (2.66, 49.93, 2674.76, 938.79, _NONE, 1215.84, 79.33, 133.77, 206.76, _NONE),
    ),
    "bpic2018": (
        (0.91, 3775.468, 659.01, 17668.46, _NONE, 3555.97, 2176.17, 179.39, 3206.75, _NONE),
        (1.31, 2922.80, 1752.72, 12063.81, _NONE, 3763.41, 1319.69, 325.14, 2201.39, _NONE),
        (1.72, 2372.08, 2812.65, 9055.04, _NONE, 3789.32, 885.81, 517.59, 1647.15, _NONE),
    ),
    "bpic2019": (
        (2.96, 946.99, 811.80, 4509.08, _NONE, 1037.15, 524.18, 608.02, 1513.92, _NONE),
        (3.51, 743.96, 572.71, 3094.05, _NONE, 936.21, 491.84, 498.59, 1054.23, _NONE),
        (4.00, 612.48, 399.36, 2376.21, _NONE, 872.76, 500.57, 360.54, 751.67, _NONE),
    ),
    "bpic2020": (
        (2.73, 18.97, 18.69, 138.05, 98.10, 142.92, 65.23, 69.04, 180.50, 23.94),
        (3.27, 14.88, 10.42, 99.76, _NONE, 126.27, 44.46, 40.01, 109.90, _NONE),
        (3.75, 10.55, 2.24, 76.61, _NONE, 88.85, 41.70, 35.78, 82.67, _NONE),
    ),
    "credit_requirement": (
        (1.39, 0.00, 2.00, 4.00, 0.0, 0.0, 233.08, 238.79, 186.94, 0.0),
        (1.80, 0.00, 0.00, 3.00, 0.0, 0.0, 203.94, 182.39, 220.17, 0.0),
        (2.03, 0.00, 2.00, 2.00, 0.0, 0.0, 201.81, 231.37, 180.77, 0.0),
    ),
    "bpic2011": (
        (0.21, 81.40, 75.74, 406.45, _NONE, 85.24, 10.30, 11.33, 55.44, _NONE),
        (0.41, 57.91, 61.96, 264.09, _NONE, 84.86, 7.86, 7.42, 31.71, _NONE),
        (0.60, 58.68, 63.93, 210.40, _NONE, 84.24, 6.07, 6.01, 20.70, _NONE),
    ),
    "ccc19": (
        (0.23, 12.78, 3.70, 30.81, _NONE, _NONE, 0.0, 0.0, 0.0, _NONE),
        (0.54, 4.55, 2.23, 25.77, _NONE, _NONE, 0.0, 0.0, 0.0, _NONE),
        (0.85, 5.54, 3.21, 16.64, _NONE, _NONE, 0.0, 0.0, 0.0, _NONE),
    ),
    "sepsis": (
        (1.31, 56.84, 32.20, 427.64, 118.02, 121.3, 8.97, 4.37, 61.50, 8.68),
        (1.83, 28.46, 67.97, 286.23, 118.63, 114.23, 6.35, 3.60, 32.93, 8.64),
        (2.37, 43.38, 101.64, 232.50, 118.71, 96.84, 4.26, 6.48, 26.61, 8.64),
    ),
    "traffic_fines": (
        (4.50, 1.64, 0.90, 33.50, _NONE, 36.67, 8250.42, 7253.29, 8627.86, _NONE),
        (5.26, 0.61, 8.01, 25.51, _NONE, 32.90, 7767.32, 6720.80, 7081.06, _NONE),
        (5.28, 0.00, 2951.50, 21.00, _NONE, 22.50, 7182.96, 12788.57, 7419.02, _NONE),
    ),
    "unrineweginfectie": (
        (2.87, 6.53, 5.53, 66.00, 290.0, 25.60, 44.96, 39.34, 184.68, 94.74),
        (3.41, 0.00, 2.87, 53.67, 290.47, 24.70, 28.12, 33.27, 103.67, 94.73),
        (3.84, 1.47, 2.53, 47.00, 290.47, 2.60, 21.89, 26.35, 90.93, 94.73),
    ),
}
COLUMNS = (*MODES, "pripel", "sacofa")
_ELSEWHERE = ("1.5", "2", "2.5")
"""Epsilons of PRIPEL and SaCoFa on logs that the paper does not have."""
_LARGE = ("traffic_fines", "bpic2018", "bpic2019", "bpic2011")


def cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        epsilons = [f"{row[0]:g}" for row in PUBLISHED[log]] if log in PUBLISHED else list(_ELSEWHERE)
        for run in range(min(plan.runs, 3) if log in _LARGE else plan.runs):
            for advantage, epsilon in zip(ADVANTAGES, epsilons, strict=True):
                for mode in MODES:
                    given = (("guessing_advantage", advantage), ("mode", mode), ("as_published", True))
                    yield Cell(log, "amun", given, run)
                for method in ("pripel", "sacofa"):
                    if not plan.quick or advantage == "0.2":
                        yield Cell(log, method, (("epsilon", epsilon),), run)


def measure(given: Given, cell: Cell) -> Measured:
    release = released(given, cell)
    if release.variants.events == 0:
        return Measured({}, EMPTY)
    values: dict[str, Number] = {"frequency": frequency_emd(given.log, release.variants)}
    if cell.method != "sacofa":  # its releases have no times
        try:
            values["time"] = time_emd(given.log, release.log)
        except ParameterError as error:
            return Measured(values, str(error))
    return Measured(values)


def _published(log: str, measure: str, column: str, place: int) -> float | None:
    rows = PUBLISHED.get(log)
    if rows is None:
        return None
    at = (1 if measure == "frequency" else 6) + COLUMNS.index(column)
    value = rows[place][at]
    return None if value != value else value


def _rows(rows: Sequence[Row], log: str, column: str, place: int) -> list[Row]:
    if column in MODES:
        return of(rows, log, "amun", mode=column, guessing_advantage=ADVANTAGES[place])
    epsilon = f"{PUBLISHED[log][place][0]:g}" if log in PUBLISHED else _ELSEWHERE[place]
    return of(rows, log, column, epsilon=epsilon)


def tables(rows: Sequence[Row]) -> list[Table]:
    out = []
    for measure_, title in (("frequency", "frequency, occurrences"), ("time", "time, months")):
        columns = COLUMNS if measure_ == "frequency" else COLUMNS[:-1]
        lines_ = []
        for log in dict.fromkeys(row.cell.log for row in rows):
            for place, advantage in enumerate(ADVANTAGES):
                line = [
                    spread(_rows(rows, log, c, place), measure_, ".2f", _published(log, measure_, c, place))
                    for c in columns
                ]
                lines_.append((log, advantage, *line))
        out.append(Table(f"Earth mover's distance, {title}", ("log", "advantage", *columns), tuple(lines_)))
    return out


def plots(rows: Sequence[Row]) -> list[Plot]:
    out = []
    for log in dict.fromkeys(row.cell.log for row in rows):
        series: dict[str, Series] = {}
        for mode in MODES:
            means = [mean(_rows(rows, log, mode, place), "frequency") for place in range(len(ADVANTAGES))]
            series[mode] = [None if m is None else (m, m, m) for m in means]
            known = [_published(log, "frequency", mode, place) for place in range(len(ADVANTAGES))]
            if log in PUBLISHED:
                series[f"{mode}, paper"] = [None if p is None else (p, p, p) for p in known]
        title = f"Amun, {log}: earth mover's distance of directly-follows frequencies"
        svg = lines(title, ADVANTAGES, series, ("guessing advantage", "occurrences (logarithmic)"), logarithmic=True)
        out.append(Plot(f"amun-frequency-{log}", svg))
    return out


AMUN_TABLE_6 = Experiment(
    name="amun-table-6",
    paper="(Elkoumy, Pankova, Dumas, 2023, table 6.)",
    what="Amun's three modes, PRIPEL and SaCoFa: what happens to directly-follows frequencies and times.",
    logs=AMUN_LOGS,
    methods=("amun", "pripel", "sacofa"),
    measures=("frequency", "time"),
    cells=cells,
    measure=measure,
    tables=tables,
    plots=plots,
    quick_runs=2,
    small=Plan(("small",), 1, True),
    notes=(
        "amun as published; pripel and sacofa are the certified releases with default parameters, at the epsilon that "
        "the paper gives them. The paper ran them as published, for which no epsilon can be derived (see their pages).",
        "Why some cells differ is in the results of amun.",
    ),
)

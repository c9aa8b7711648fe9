"""TraVaS: relative log similarity and absolute log difference over epsilon x delta, beside SaCoFa and the benchmark.

The published values are those of the TraVaG paper's figures 2 and 3 and of TraVaS's own, which agree where both exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veilog.experiments.experiment import Cell, Experiment, Plan, Plot, Row, Table, mean, of, spread
from veilog.experiments.measuring import heat_map_cell
from veilog.experiments.plots import HeatMap, heat_maps

__all__ = ["PUBLISHED", "TRAVAS_FIGURES", "grid_of"]

EPSILONS = ("2", "1", "0.1", "0.01")
DELTAS = ("0.5", "0.1", "0.05", "0.01", "0.001")
PUBLISHED = {
    ("travas", "bpic2013_incidents"): (
        (0.928, 0.902, 0.903, 0.886, 0.880),
        (0.946, 0.917, 0.897, 0.885, 0.862),
        (0.965, 0.931, 0.914, 0.873, 0.819),
        (0.966, 0.933, 0.921, 0.889, 0.797),
    ),
    ("travas", "sepsis"): (
        (0.771, 0.628, 0.622, 0.551, 0.516),
        (0.840, 0.730, 0.639, 0.566, 0.475),
        (0.889, 0.781, 0.726, 0.623, 0.441),
        (0.893, 0.785, 0.732, 0.600, 0.470),
    ),
    ("sacofa", "sepsis"): (
        (0.678, 0.692, 0.687, 0.695, 0.690),
        (0.706, 0.752, 0.755, 0.766, 0.770),
        (0.831, 0.772, 0.753, 0.759, 0.725),
        (0.729, 0.737, 0.714, 0.588, 0.629),
    ),
    ("laplace", "sepsis"): (
        (0.803, 0.793, 0.778, 0.793, 0.778),
        (0.863, 0.771, 0.767, 0.803, 0.770),
        (0.778, 0.775, 0.765, 0.702, 0.760),
        (0.759, 0.733, 0.775, 0.741, 0.750),
    ),
}
DIFFERENCES = {
    ("travas", "bpic2013_incidents", "1", "0.01"): 2.0e5,
    ("travas", "bpic2013_incidents", "1", "0.001"): 2.5e5,
    ("travas", "bpic2013_incidents", "0.1", "0.001"): 3.4e5,
    ("travas", "sepsis", "2", "0.5"): 1.2e5,
    ("travas", "sepsis", "1", "0.01"): 1.7e5,
}
_NO_DELTA = "0"


def cells(plan: Plan) -> Iterator[Cell]:
    deltas = ("0.5", "0.01", "0.001") if plan.quick else DELTAS
    for log in plan.logs:
        for run in range(plan.runs):
            for epsilon in EPSILONS:
                for delta in deltas:
                    yield Cell(log, "travas", (("epsilon", epsilon), ("delta", delta)), run)
                for method in ("sacofa", "laplace"):
                    if not plan.quick or epsilon == "1":
                        yield Cell(log, method, (("epsilon", epsilon), ("delta", _NO_DELTA)), run)


def _published(method: str, log: str, epsilon: str, delta: str) -> float | None:
    grid = PUBLISHED.get((method, log))
    return grid[EPSILONS.index(epsilon)][DELTAS.index(delta)] if grid and delta in DELTAS else None


def _between(method: str, log: str, epsilon: str) -> str:
    """What the paper has over all its deltas for a method that has no use for one."""
    grid = PUBLISHED.get((method, log))
    if grid is None:
        return ""
    row = grid[EPSILONS.index(epsilon)]
    return f" [{min(row):.3f} to {max(row):.3f}]"


def tables(rows: Sequence[Row]) -> list[Table]:
    out = []
    for log in dict.fromkeys(row.cell.log for row in rows):
        deltas = [d for d in DELTAS if of(rows, log, "travas", delta=d)]
        for measure, title, form in (
            ("similarity", "relative log similarity", ".3f"),
            ("difference", "absolute log difference, maximum buffer", ",.0f"),
        ):
            lines = []
            for epsilon in EPSILONS:
                line = []
                for delta in deltas:
                    published = (
                        _published("travas", log, epsilon, delta)
                        if measure == "similarity"
                        else DIFFERENCES.get(("travas", log, epsilon, delta))
                    )
                    line.append(spread(of(rows, log, "travas", epsilon=epsilon, delta=delta), measure, form, published))
                for method in ("sacofa", "laplace"):
                    text = spread(of(rows, log, method, epsilon=epsilon), measure, form)
                    line.append(text + (_between(method, log, epsilon) if measure == "similarity" else ""))
                lines.append((epsilon, *line))
            head = ("epsilon", *(f"travas, delta {d}" for d in deltas), "sacofa, certified", "laplace, certified")
            out.append(Table(f"{log}: {title}", head, tuple(lines)))
    return out


def grid_of(
    title: str,
    rows: Sequence[Row],
    measure: str,
    epsilons: Sequence[str],
    deltas: Sequence[str],
    published: dict[tuple[str, str], float],
) -> HeatMap:
    """Means over the runs, a value for every epsilon and delta."""
    values = {(e, d): mean(of(rows, epsilon=e, delta=d), measure) for e in epsilons for d in deltas}
    return HeatMap(title, epsilons, deltas, values, published)


def plots(rows: Sequence[Row]) -> list[Plot]:
    out = []
    for measure, title, form in (
        ("similarity", "Relative log similarity", ".2f"),
        ("difference", "Absolute log difference, maximum buffer", ".1e"),
    ):
        maps = []
        for log in dict.fromkeys(row.cell.log for row in rows):
            for method in ("travas", "sacofa", "laplace"):
                own = of(rows, log, method)
                if not own:
                    continue
                deltas = [d for d in DELTAS if of(own, delta=d)] or [_NO_DELTA]
                grid = PUBLISHED.get((method, log)) if measure == "similarity" and deltas != [_NO_DELTA] else None
                known = {(e, d): p for e in EPSILONS for d in deltas if grid and (p := _published(method, log, e, d))}
                maps.append(grid_of(f"{method}, {log}", own, measure, EPSILONS, deltas, known))
        out.append(Plot(f"travas-{measure}", heat_maps(title, maps, ("epsilon", "delta"), form)))
    return out


TRAVAS_FIGURES = Experiment(
    name="travas-figures",
    paper="(Rafiei, Wangelik, van der Aalst: TraVaS, 2022.)",
    what="TraVaS over epsilon and delta: relative log similarity and absolute log difference, as heat maps.",
    logs=("bpic2013_incidents", "sepsis"),
    methods=("travas", "sacofa", "laplace"),
    measures=("similarity", "difference", "size_ratio", "variants"),
    cells=cells,
    measure=heat_map_cell,
    tables=tables,
    plots=plots,
    quick_runs=2,
    small=Plan(("small",), 1, True),
    notes=(
        "Runs that release nothing have no similarity and are left out, as in the published averages.",
        "sacofa and laplace spend no delta: one column for all. The authors' notebooks state depth and "
        "thresholds of their SaCoFa and benchmark; the benchmark divides epsilon and delta over the depths. Ours are "
        "the certified releases with default parameters. The two are not the same experiment.",
    ),
)

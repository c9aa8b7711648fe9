"""Quantification of disclosure risks, figure 2: case and trace disclosure by kind and size of background knowledge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Plan, Plot, Row, Table, mean, of
from veilog.experiments.plots import Series, lines
from veilog.measures.disclosure import BACKGROUNDS, risk

__all__ = ["QUANTIFICATION_FIGURE_2"]

SIZES = ("1", "2", "3", "4", "5", "6")
PUBLISHED = {("sepsis", "sequence", "3", "case_disclosure"): 0.188}
"""The only value of the figure that the paper prints."""
_WORK = {True: 4e8, False: 4e9}


def cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        for background in BACKGROUNDS:
            for size in SIZES:
                for arrangements in (False, True) if background == "multiset" and not plan.quick else (False,):
                    given = (("background", background), ("size", size), ("arrangements", arrangements))
                    yield Cell(log, "", (*given, ("work_limit", _WORK[plan.quick])))


def measure(given: Given, cell: Cell) -> Measured:
    """Exact while that takes no more than the limit of work; beyond it an estimate."""
    (found,) = risk(
        given.log,
        str(cell.get("background")),
        int(cell.get("size")),
        arrangements=bool(cell.get("arrangements")),
        work_limit=float(cell.get("work_limit")),
    )
    values = {
        "case_disclosure": found.case_disclosure,
        "trace_disclosure": found.trace_disclosure,
        "candidates": found.candidates,
        "unique": found.unique,
        "exact": int(found.exact),
    }
    return Measured(values, found.reason)


def _own(rows: Sequence[Row], log: str, background: str, size: str, arrangements: bool = False) -> list[Row]:
    return of(rows, log, background=background, size=size, arrangements=arrangements)


def tables(rows: Sequence[Row]) -> list[Table]:
    out = []
    for log in dict.fromkeys(row.cell.log for row in rows):
        lines_ = []
        for name, title in (("case_disclosure", "case disclosure"), ("trace_disclosure", "trace disclosure")):
            for background in BACKGROUNDS:
                for arrangements in (False, True):
                    values = []
                    for size in SIZES:
                        own = _own(rows, log, background, size, arrangements)
                        value, exact = mean(own, name), mean(own, "exact")
                        text = "-" if value is None else f"{value:.4f}" if exact else f"about {value:.4f}"
                        said = PUBLISHED.get((log, background, size, name))
                        values.append(text if said is None or arrangements else f"{text} [{said}]")
                    if any(text != "-" for text in values):
                        kind = f"{background}, each arrangement" if arrangements else background
                        lines_.append((title, kind, *values))
        out.append(Table(f"{log}: disclosure by size", ("", "background", *SIZES), tuple(lines_)))
    return out


def plots(rows: Sequence[Row]) -> list[Plot]:
    out = []
    for log in dict.fromkeys(row.cell.log for row in rows):
        series: dict[str, Series] = {}
        for name, short in (("case_disclosure", "cd"), ("trace_disclosure", "td")):
            for background in BACKGROUNDS:
                values = [mean(_own(rows, log, background, size), name) for size in SIZES]
                series[f"{short} {background}"] = [None if v is None else (v, v, v) for v in values]
        out.append(Plot(f"disclosure-{log}", lines(f"Disclosure risk, {log}", SIZES, series, ("size", "disclosure"))))
    return out


QUANTIFICATION_FIGURE_2 = Experiment(
    name="quantification-figure-2",
    paper="(Rafiei, van der Aalst: Towards quantifying privacy in process mining, 2020, figure 2.)",
    what="How far somebody who knows some activities of a case is led to it, and to the rest of its trace.",
    logs=("sepsis", "bpic2017"),
    methods=(),
    measures=("case_disclosure", "trace_disclosure", "candidates", "unique", "exact"),
    cells=cells,
    measure=measure,
    tables=tables,
    plots=plots,
    runs=1,
    small=Plan(("small",), 1, True),
    notes=(
        "No randomness: one run. The paper prints one number of its figure; its program counts a multiset once for "
        "each arrangement, which the full profile gives as well.",
    ),
)

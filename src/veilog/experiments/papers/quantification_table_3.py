"""Quantification of disclosure risks, table 3 and figure 3: what TLKC leaves of a log, and at what risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from veilog.experiments.experiment import Cell, Experiment, Given, Measured, Number, Plan, Plot, Row, Table, mean, of
from veilog.experiments.measuring import EMPTY, released
from veilog.experiments.plots import Series, lines
from veilog.measures.disclosure import risk
from veilog.measures.similarity import relative_log_similarity

__all__ = ["QUANTIFICATION_TABLE_3"]

KS = ("20", "40", "60")
BACKGROUNDS = ("set", "sequence")
SIZE = 6
PUBLISHED = {
    ("set", "20"): "842 / 15,103 / 12",
    ("set", "40"): "842 / 14,986 / 11",
    ("set", "60"): "818 / 14,809 / 11",
    ("sequence", "20"): "34 / 3,997 / 6",
    ("sequence", "40"): "33 / 4,460 / 5",
    ("sequence", "60"): "18 / 3,448 / 4",
}
"""Variants, events and activities of Sepsis."""
_ORIGINAL = "the log itself"


def cells(plan: Plan) -> Iterator[Cell]:
    for log in plan.logs:
        for background in BACKGROUNDS:
            yield Cell(log, "", (("background", background),))
            for k in KS:
                given = (("k", k), ("l", SIZE), ("c", 1.0), ("background", background), ("time", "original"))
                yield Cell(log, "tlkc", (*given, ("frequency", 0.5)))


def measure(given: Given, cell: Cell) -> Measured:
    original = given.log.variants
    left = released(given, cell).variants if cell.method else original
    if left.events == 0:
        return Measured({}, EMPTY)
    (found,) = risk(left, str(cell.get("background")), SIZE, work_limit=4e8)
    values: dict[str, Number] = {
        "cases": left.cases,
        "variants": len(left),
        "events": left.events,
        "activities": len(left.labels),
        "similarity": relative_log_similarity(original, left).value,
        "case_disclosure": found.case_disclosure,
        "trace_disclosure": found.trace_disclosure,
    }
    return Measured(values, found.reason)


def _own(rows: Sequence[Row], log: str, background: str, k: str) -> list[Row]:
    return of(rows, log, "", background=background) if not k else of(rows, log, "tlkc", background=background, k=k)


def tables(rows: Sequence[Row]) -> list[Table]:
    out = []
    for log in dict.fromkeys(row.cell.log for row in rows):
        lines_ = []
        for background in BACKGROUNDS:
            for k in ("", *KS):
                own = _own(rows, log, background, k)
                if not own:
                    continue
                values = [mean(own, name) for name in ("cases", "variants", "events", "activities")]
                sizes = (
                    "not computed" if None in values else " / ".join(f"{v:,.0f}" for v in values[1:] if v is not None)
                )
                said = f" [{PUBLISHED[background, k]}]" if log == "sepsis" and k else ""
                more = [
                    "-" if (v := mean(own, name)) is None else f"{v:.4f}"
                    for name in ("similarity", "case_disclosure", "trace_disclosure")
                ]
                cases = "-" if values[0] is None else f"{values[0]:,.0f}"
                lines_.append((background, k or _ORIGINAL, cases, sizes + said, *more))
        head = ("background", "k", "cases", "variants / events / activities", "similarity", "cd", "td")
        out.append(Table(f"{log}: TLKC, l = {SIZE}, c = 1", head, tuple(lines_)))
    return out


def plots(rows: Sequence[Row]) -> list[Plot]:
    out = []
    for log in dict.fromkeys(row.cell.log for row in rows):
        series: dict[str, Series] = {}
        for background in BACKGROUNDS:
            for name in ("similarity", "case_disclosure", "trace_disclosure"):
                values = [mean(_own(rows, log, background, k), name) for k in ("", *KS)]
                series[f"{background}: {name.replace('_', ' ')}"] = [None if v is None else (v, v, v) for v in values]
        places = (_ORIGINAL, *(f"k = {k}" for k in KS))
        svg = lines(f"TLKC on {log}: utility and risk (figure 3)", places, series, ("", "similarity, disclosure"))
        out.append(Plot(f"tlkc-{log}", svg))
    return out


QUANTIFICATION_TABLE_3 = Experiment(
    name="quantification-table-3",
    paper="(Rafiei, van der Aalst: Towards quantifying privacy in process mining, 2020, table 3 and figure 3.)",
    what="What TLKC leaves of a log: its sizes, its similarity to the original, and disclosure at size 6.",
    logs=("sepsis",),
    methods=("tlkc",),
    measures=("cases", "variants", "events", "activities", "similarity", "case_disclosure", "trace_disclosure"),
    cells=cells,
    measure=measure,
    tables=tables,
    plots=plots,
    runs=1,
    small=Plan(("small",), 1, True),
    notes=(
        "No randomness: one run. Every release of ours is read by a checker that refuses it where fewer than k cases "
        "match some background knowledge; the authors' output for sequences leaves some below k.",
    ),
)

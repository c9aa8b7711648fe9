"""Commands that measure: risk (of one log) and compare (a release with its original)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from veilog import display
from veilog._files import atomic_target, check_writable
from veilog.charts import comparison_svg
from veilog.cli.common import (
    AS_USUAL,
    HERE,
    Details,
    Grouping,
    Json,
    Log,
    Output,
    Reading,
    named,
    pair,
    read_grouped,
    read_log,
    show_columns,
    show_findings,
    shown_progress,
)
from veilog.errors import ParameterError
from veilog.measures import compare as compare_logs
from veilog.measures.disclosure import risk as measure_risk
from veilog.measures.purposes import PURPOSES, Asked
from veilog.measures.purposes import named as purposes_named

__all__ = ["compare", "risk"]


def risk(
    log: Log,
    *,
    background: Annotated[
        str, Parameter(help="What is known of a person: set, multiset, sequence; or several.", show_default=True)
    ] = ("set,multiset,sequence"),
    size: Annotated[str, Parameter(help="How many activities are known: 1,2,3 or 1-6.", show_default=True)] = "1,2,3",
    weight: Annotated[
        tuple[str, ...],
        Parameter(name="--weight", negative="", help="ACTIVITY=NUMBER: how much an activity counts. Repeatable."),
    ] = (),
    arrangements: Annotated[
        bool, Parameter(negative="", help="Count multisets as the paper's program does, not as the paper defines them.")
    ] = False,
    reading: Reading = AS_USUAL,
    grouping: Grouping = HERE,
    details: Details = False,
    json: Json = None,
) -> None:
    """Measure how far people of a log are exposed to someone who knows a few of their activities."""
    out = Output(json, log)
    source = named(log, reading, grouping)
    show_columns(out, source, reading)
    found, findings = read_grouped(source, reading)
    variants = found.variants
    with shown_progress() as progress:
        results = measure_risk(
            variants,
            [kind.strip() for kind in background.split(",")],
            _sizes(size),
            weights=_weights(weight),
            arrangements=arrangements,
            progress=progress,
        )
    out.json(
        {"results": [result.to_json() for result in results], "findings": [finding.to_json() for finding in findings]}
    )
    out.show(display.risk_lines(variants, results))
    if details:
        out.show(display.risk_table(results))
    show_findings(out, findings, log)


def _sizes(text: str) -> list[int]:
    """The sizes that "1,2,3" and "1-6" stand for."""
    sizes: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else True)):
            raise ParameterError(f"--size takes numbers such as 1,2,3 or 1-6, not {text!r}.", parameter="size")
        if int(last or first) > 1000:
            raise ParameterError(f"--size {part.strip()} is more than anybody knows.", parameter="size")
        sizes += range(int(first), int(last or first) + 1)
    return sizes


def _weights(texts: tuple[str, ...]) -> dict[str, float] | None:
    weights = {}
    for text in texts:
        name, value = pair(text, "--weight")
        try:
            weights[name] = float(value)
        except ValueError:
            raise ParameterError(f"--weight takes ACTIVITY=NUMBER, not {text!r}.", parameter="weight") from None
    return weights or None


def compare(
    original: Log,
    released: Log,
    *,
    models: Annotated[
        bool, Parameter(negative="--no-models", help="Quality of the process model discovered from the release.")
    ] = True,
    pm4py: Annotated[
        bool, Parameter(negative="", help="Discover and replay that model by pm4py (extra 'models'), up to 300 s.")
    ] = False,
    alignments: Annotated[
        bool, Parameter(negative="", help="For discovery: fitness by optimal alignments, too (extra 'alignments').")
    ] = False,
    anomalies: Annotated[
        bool, Parameter(negative="", help="Also the share of cases that look normal (extra 'anomalies').")
    ] = False,
    purposes: Annotated[
        str, Parameter(help=f"What it is good for: all, or some of {', '.join(PURPOSES)}, with commas between.")
    ] = "",
    model: Annotated[
        Path | None, Parameter(help="For conformance: a model (BPMN, PNML) or a list of constraints to check against.")
    ] = None,
    predict: Annotated[
        tuple[str, ...], Parameter(negative="", help="For prediction: a case attribute to predict. Repeatable.")
    ] = (),
    chart: Annotated[
        Path | None, Parameter(help="Draw times and variants of both logs: a file that ends in .svg.")
    ] = None,
    reading: Reading = AS_USUAL,
    details: Details = False,
    json: Json = None,
) -> None:
    """Measure what a release kept of the original. The numbers are raw statistics: keep them inside."""
    out = Output(json, original, released)
    if chart is not None:
        _check_chart(chart)
    wanted = purposes_named([name.strip() for name in purposes.split(",") if name.strip()])
    asked = _asked(wanted, Asked(model, predict, pm4py, alignments))
    first = read_log(named(original, reading), reading)
    second = read_log(named(released, reading, released=True), reading)
    with shown_progress() as progress:
        miner: bool | Literal["pm4py"] = "pm4py" if models and pm4py else models
        result = compare_logs(
            first, second, models=miner, anomalies=anomalies, purposes=wanted, asked=asked, progress=progress
        )
    told = {"original": first.findings, "released": second.findings}
    findings = {name: [finding.to_json() for finding in found] for name, found in told.items()}
    out.json(result.to_json() | {"findings": findings}, *(() if chart is None else (chart,)))
    out.show(display.comparison_table(result) if details else display.comparison_view(result))
    for log, found in ((original, first), (released, second)):
        show_findings(out, found.findings, log)
    if chart is not None:
        with atomic_target(chart) as file:
            file.write(comparison_svg(result).encode())
        out.show(f"chart written to {chart}")


def _asked(wanted: tuple[str, ...], asked: Asked) -> Asked:
    """What purposes are told; an option that none of them hears, or that cannot be served, is refused at once."""
    for given, option, purpose in (
        (asked.model, "--model", "conformance"),
        (asked.targets, "--predict", "prediction"),
        (asked.alignments, "--alignments", "discovery"),
    ):
        if given and purpose not in wanted:
            raise ParameterError(
                f"{option} is for the purpose {purpose}, which is not asked for.",
                parameter=option.strip("-"),
                advice=f"Add --purposes {','.join((*wanted, purpose))}.",
            )
    if asked.model is not None:
        from veilog.measures.purposes.conformance import read_model  # only who has a model waits for it

        read_model(asked.model)
    if asked.alignments:
        from veilog.measures.process_model.alignments import check_alignments

        check_alignments()
    return asked


def _check_chart(chart: Path) -> None:
    """Before any work. No log ends in .svg, so none is written over."""
    if chart.suffix.lower() != ".svg":
        raise ParameterError(f"--chart draws an SVG file; {chart.name!r} does not end in .svg.", parameter="chart")
    check_writable(chart)

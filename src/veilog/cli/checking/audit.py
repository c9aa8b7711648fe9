"""The command that attacks a method: audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from veilog import display
from veilog.audits.auditing import audit as audit_method
from veilog.cli.shared.budget import BudgetOptions
from veilog.cli.shared.common import AS_USUAL, Json, Output, Reading, named, read_log, shown_progress
from veilog.cli.shared.values import WHOLE, pairs


def audit(
    method: Annotated[str, Parameter(help="See veilog methods.")],
    *,
    epsilon: Annotated[str, Parameter(allow_leading_hyphen=True, help="The budget that is attacked.")],
    delta: Annotated[str, Parameter(allow_leading_hyphen=True, help="Delta of the guarantee.")] = "0",
    as_published: Annotated[bool, Parameter(negative="", help="Attack the paper's own calibration.")] = False,
    p: Annotated[
        tuple[str, ...],
        Parameter(name=["-p", "--parameter"], negative="", help="NAME=VALUE of the method; repeated."),
    ] = (),
    white_box: Annotated[
        bool, Parameter(negative="", help="Look at every noisy answer of worst-case neighbours, not only at releases.")
    ] = False,
    runs: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Releases of each of the two neighbouring logs; 20,000, or 4,000 with --white-box."),
    ] = None,
    confidence: Annotated[
        float, Parameter(help="With which the proved epsilon is a lower bound.", show_default=True)
    ] = 0.99,
    log: Annotated[
        Path | None, Parameter(help="Attack with this log, with and without one of its cases; else made-up logs.")
    ] = None,
    activities: Annotated[
        str | None, Parameter(help="Of the releases: log, privately, or their names; else those of the made-up logs.")
    ] = None,
    max_length: Annotated[str | None, Parameter(help="Of the releases: a number, or log.")] = None,
    unit: Annotated[str, Parameter(help="case, or case:person to protect the person of the made-up logs.")] = "case",
    max_cases: Annotated[int | None, WHOLE, Parameter(help="Cases of a person that count.")] = None,
    person_cases: Annotated[int | None, WHOLE, Parameter(help="Cases that the person has who is there or not.")] = None,
    seed: Annotated[int | None, WHOLE, Parameter(help="Repeat an audit.")] = None,
    processes: Annotated[int | None, WHOLE, Parameter(help="Processes; by default two.")] = None,
    reading: Reading = AS_USUAL,
    json: Json = None,
) -> None:
    """Attack a method: prove from outside, or by its answers, how large its epsilon is at least."""
    out = Output(json)
    parameters: dict[str, Any] = {**pairs(p, "-p")}
    own = None if log is None else read_log(named(log, reading), reading)
    with shown_progress() as progress:
        result = audit_method(
            method,
            epsilon=epsilon,
            delta=delta,
            as_published=as_published,
            white_box=white_box,
            runs=runs,
            confidence=confidence,
            log=own,
            domain=BudgetOptions(activities=activities, max_length=max_length).domain(),
            unit=unit,
            max_cases=max_cases,
            person_cases=person_cases,
            seed=seed,
            processes=processes,
            progress=progress,
            **parameters,
        )
    out.json(result.to_json())
    out.show(display.audit_view(result))

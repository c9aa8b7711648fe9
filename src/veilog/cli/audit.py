"""The command that attacks a method: audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from veilog.audits.blackbox import audit as audit_method
from veilog.cli.shared.log_input import Output, named, read_log, show_progress
from veilog.cli.shared.measures import audit_view
from veilog.cli.shared.options import DEFAULT_READING, WHOLE, Json, MethodSettings, Reading, pairs
from veilog.cli.shared.requests import RequestOptions, options_of


@options_of(
    "audit",
    *("delta", "as_published", "unit", "max_cases", "activities", "max_length"),
    delta="Delta of the guarantee.",
    as_published="Attack the method as published, with the paper's own calibration.",
    unit="Protected unit: case, or case:person for the persons of the synthetic logs.",
    max_cases="Most cases per person.",
    activities="Activities of the releases: log, privately, or their names; default those of the synthetic logs.",
    max_length="Longest trace of the releases: a number, or log.",
)
class AuditOptions(RequestOptions):
    """Options of the attacked releases."""


OF_RELEASES = AuditOptions()


def audit(
    method: Annotated[str, Parameter(help="Method; veilog methods lists them.")],
    *,
    epsilon: Annotated[str, Parameter(allow_leading_hyphen=True, help="Epsilon of the attacked releases.")],
    p: MethodSettings = (),
    white_box: Annotated[
        bool, Parameter(negative="", help="Use every noisy answer of worst-case neighbours, not only releases.")
    ] = False,
    runs: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Releases of each of the two neighbouring logs; 20,000, or 4,000 with --white-box."),
    ] = None,
    confidence: Annotated[float, Parameter(help="Confidence level of the lower bound.", show_default=True)] = 0.99,
    log: Annotated[
        Path | None, Parameter(help="Log to attack with and without one of its cases; default synthetic logs.")
    ] = None,
    asked: AuditOptions = OF_RELEASES,
    person_cases: Annotated[
        int | None, WHOLE, Parameter(help="Number of cases of the added or removed person.")
    ] = None,
    seed: Annotated[int | None, WHOLE, Parameter(help="Seed, to repeat an audit.")] = None,
    processes: Annotated[int | None, WHOLE, Parameter(help="Number of processes; default two.")] = None,
    reading: Reading = DEFAULT_READING,
    json: Json = None,
) -> None:
    """Attack a method,
    to prove a lower bound of its epsilon from its releases or its answers."""
    out = Output(json)
    parameters: dict[str, Any] = {**pairs(p, "-p")}
    own = None if log is None else read_log(named(log, reading), reading)
    with show_progress() as progress:
        result = audit_method(
            method,
            epsilon=epsilon,
            white_box=white_box,
            runs=runs,
            confidence=confidence,
            log=own,
            person_cases=person_cases,
            seed=seed,
            processes=processes,
            progress=progress,
            **asked.asked(),
            **parameters,
        )
    out.json(result.to_json())
    out.show(audit_view(result))

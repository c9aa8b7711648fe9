"""The command that attacks a method: audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from veilog.audits.auditing import audit as audit_method
from veilog.cli import display
from veilog.cli.shared.options import AS_USUAL, WHOLE, Json, MethodSettings, Reading, RequestOptions, options_of, pairs
from veilog.cli.shared.reading import Output, named, read_log, shown_progress


@options_of(
    "audit",
    *("delta", "as_published", "unit", "max_cases", "activities", "max_length"),
    delta="Delta of the guarantee.",
    as_published="Attack the paper's own calibration.",
    unit="case, or case:person to protect the person of the made-up logs.",
    max_cases="Cases of a person that count.",
    activities="Of the releases: log, privately, or their names; else those of the made-up logs.",
    max_length="Of the releases: a number, or log.",
)
class AuditOptions(RequestOptions):
    """What the releases are asked for that are attacked."""


OF_RELEASES = AuditOptions()


def audit(
    method: Annotated[str, Parameter(help="See veilog methods.")],
    *,
    epsilon: Annotated[str, Parameter(allow_leading_hyphen=True, help="The budget that is attacked.")],
    p: MethodSettings = (),
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
    asked: AuditOptions = OF_RELEASES,
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
    out.show(display.audit_view(result))

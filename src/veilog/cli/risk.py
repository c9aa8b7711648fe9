"""The command that measures the risk of one log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from veilog._plain import to_json
from veilog.cli.compare import WHOLE, read_to_measure, say_narrow, say_person
from veilog.cli.shared.log_input import Output, open_source, show_findings, show_progress
from veilog.cli.shared.measures import attack_lines, attack_tables, risk_lines, risk_table, unique_line
from veilog.cli.shared.options import DEFAULT_GROUPING, DEFAULT_READING, Details, Grouping, Json, Log, Reading, pairs
from veilog.cli.shared.people import SEEMING, Whose
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures import Progress
from veilog.measures.disclosure import Risks
from veilog.measures.disclosure import risk as measure_risk
from veilog.measures.disclosure import unique_cases as cases_alone
from veilog.measures.disclosure.spaces import UNITS
from veilog.measures.singling_out import exposure, halves, inference, linkability
from veilog.measures.singling_out.identification import Exposure
from veilog.measures.singling_out.inference import Inference
from veilog.measures.singling_out.linkage import Linkability
from veilog.messages import Message


@Parameter(name="*")
@dataclass(frozen=True)
class KnownActivities:
    """Knowledge of the attacker."""

    background: Annotated[
        str,
        Parameter(help="Knowledge of the attacker: set, multiset, sequence; or several.", show_default=True),
    ] = "set,multiset,sequence"
    size: Annotated[str, Parameter(help="Number of known activities: 1,2,3 or 1-6.", show_default=True)] = "1,2,3"
    weight: Annotated[
        tuple[str, ...],
        Parameter(name="--weight", negative="", help="Weight of an activity, as ACTIVITY=NUMBER. Repeatable."),
    ] = ()
    arrangements: Annotated[
        bool, Parameter(negative="", help="Count multisets as the paper's program does, not as the paper defines them.")
    ] = False
    time: Annotated[
        str | None, Parameter(help=f"Precision of the times that the attacker also knows: {', '.join(UNITS)}.")
    ] = None
    sensitive: Annotated[
        str | None, Parameter(help="Attribute of cases or events whose value the attacker tries to infer.")
    ] = None


USUAL = KnownActivities()


def risk(
    log: Log,
    *,
    known: KnownActivities = USUAL,
    unique_cases: Annotated[
        bool, Parameter(negative="", help="Confidential: name the cases that such knowledge singles out.")
    ] = False,
    whose: Whose = SEEMING,
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    details: Details = False,
    json: Json = None,
) -> None:
    """Measure how well an attacker who knows a few activities of a person
    finds that person in a log.

    With --classifier 'concept:name org:resource' the attacker also knows their resource or life cycle.
    """
    out = Output(json, log)
    source = open_source(out, log, reading, grouping)
    whole = isinstance(whose.asked(), str) or known.time is not None or known.sensitive is not None or unique_cases
    log_or_variants, findings = read_to_measure(source, reading, grouping, most=None if whole else WHOLE)
    person = whose.column(log_or_variants)
    kinds = [kind.strip() for kind in known.background.split(",")]
    sizes = _sizes(known.size)
    how: dict[str, Any] = {"weights": _weights(known.weight), "time": known.time}
    with show_progress() as progress:
        how["progress"] = progress
        asked: dict[str, Any] = {"arrangements": known.arrangements, "sensitive": known.sensitive}
        results = measure_risk(log_or_variants, kinds, sizes, **asked, **how)
        alone = _singled_out_cases(log_or_variants, results, **how) if unique_cases else []
        exposed, linked, inferred = _attack_log(log_or_variants, sizes, person, progress)
        if exposed is not None and known.time is None:
            exact = {r.size: r.unique for r in results if r.background == "sequence" and r.exact}
            exposed = exposed.at_most(exact)
    found = {
        "results": [result.to_json() for result in results],
        "person": person,
        "attacks": _rows(exposed, linked, inferred),
        "findings": [finding.to_json() for finding in findings],
    }
    out.json(found | ({"owner_only": {"unique_cases": alone}} if unique_cases else {}))
    out.show(risk_lines(exposed, results, known.time))
    for row in alone:
        out.show(unique_line(row))
    if exposed is not None or linked is not None or inferred is not None:
        say_person(out, person, whose)
    _show_attacks(out, linked, inferred, person)
    if details or known.sensitive is not None:
        out.show(risk_table(results))
    if details:
        for table in attack_tables(None, linked, inferred):
            out.show(table)
    show_findings(out, findings, log)


def _show_attacks(out: Output, linked: Linkability | None, inferred: Inference | None, person: str | None) -> None:
    """Show the results of attacks on one half of the people and on the other half."""
    if linked is None and inferred is None:
        return
    published = Message("half-published" if person is None else "half-of-people-published", column=person)
    out.show(Text(str(published), style="dim"))
    for line in attack_lines(linked, inferred, published=True):
        out.show(line)
    say_narrow(out, person)


def _attack_log(
    log: EventLog | Variants, sizes: list[int], person: str | None, progress: Progress
) -> tuple[Exposure | None, Linkability | None, Inference | None]:
    """Return attacks on a log, and on both of its halves; None if impossible."""
    progress("Finding people", None)
    tried: list[Any] = []
    first, second = halves(log, person=person or False)
    for attack in (
        lambda: exposure(log, person=person or False, sizes=sizes),
        lambda: linkability(first, first, control=second),
        lambda: inference(first, first, control=second),
    ):
        try:
            tried.append(attack())
        except ParameterError:
            tried.append(None)
    return tried[0], tried[1], tried[2]


def _singled_out_cases(log: EventLog | Variants, results: Risks, **how: Any) -> list[dict[str, Any]]:
    """Return the names of the cases that each exact result singles out."""
    return [
        {"background": r.background, "size": r.size, "cases": list(found)}
        for r in results
        if r.exact and (found := cases_alone(log, r.background, r.size, **how))
    ]


def _rows(exposed: Exposure | None, linked: Linkability | None, inferred: Inference | None) -> list[dict[str, object]]:
    """Return the results of attacks as further rows, each with its attack."""
    rows: list[dict[str, object]] = []
    if exposed is not None:
        rows.append({"attack": "own path", "people": exposed.people, "alone": exposed.alone})
        rows += [{"attack": "found", **to_json(row)} for row in exposed.results]
    if linked is not None:
        rows += [{"attack": "linkability", "control": linked.control, **to_json(row)} for row in linked.results]
    if inferred is not None:
        rows += [{"attack": "inference", "control": inferred.control, **to_json(row)} for row in inferred.results]
    return rows


def _sizes(text: str) -> list[int]:
    """Return the sizes that "1,2,3" and "1-6" stand for."""
    sizes: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else True)):
            raise ParameterError("size-not-numbers", parameter="size", text=text)
        if int(last or first) > 1000:
            raise ParameterError("size-too-large", parameter="size", part=part.strip())
        sizes += range(int(first), int(last or first) + 1)
    return sizes


def _weights(texts: tuple[str, ...]) -> dict[str, float] | None:
    weights = {}
    for name, value in pairs(texts, "--weight").items():
        try:
            weights[name] = float(value)
        except ValueError:
            raise ParameterError("weight-not-understood", parameter="weight", value=f"{name}={value}") from None
    return weights or None

"""Commands about logs as they are: info, validate, convert."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from veilog import display
from veilog.cli.common import (
    AS_USUAL,
    HERE,
    Grouping,
    Json,
    Log,
    Output,
    Reading,
    Target,
    To,
    check_target,
    named,
    read_grouped,
    read_log,
    show_columns,
    shown_progress,
)
from veilog.cli.large import fits
from veilog.cli.pipes import in_words, is_pipe, send
from veilog.logs import files
from veilog.logs.eventlog import Statistics
from veilog.logs.facts import attributes_of, person_columns, transitions_of
from veilog.logs.findings import Findings
from veilog.logs.reader import Asked
from veilog.logs.reading import whole as read_whole

__all__ = ["convert", "info", "validate"]


def info(
    log: Log,
    *,
    reading: Reading = AS_USUAL,
    grouping: Grouping = HERE,
    json: Json = None,
) -> None:
    """Count cases, events, activities and variants of a log."""
    out = Output(json, log)
    source = named(log, reading, grouping)
    show_columns(out, source, reading)
    whole = read_log(source, reading) if fits(source) else None
    if whole is None:
        found, findings = read_grouped(source, reading)
        statistics, variants = Statistics.of(found.variants, found.start, found.end), found.variants
    else:
        statistics, variants, findings = whole.statistics, whole.variants, whole.findings
    persons = () if whole is None else person_columns(whole)
    attributes = None if whole is None else attributes_of(whole)
    transitions = None if whole is None else transitions_of(whole)
    out.json(
        statistics.to_json()
        | {"findings": [finding.to_json() for finding in findings]}
        | {
            "attributes": None if attributes is None else [attribute.to_json() for attribute in attributes],
            "lifecycle": transitions,
            "persons": None if whole is None else [person.to_json() for person in persons],
            "read_together": list(variants.read_together),
        }
    )
    out.show(display.info_table(statistics, variants, in_words(log)))
    out.show(display.variants_table(variants))
    if attributes:
        out.show(display.attributes_table(attributes, transitions))
    if persons:
        out.show(display.persons_lines(persons))
    if findings:
        out.show(display.findings_table(findings))


def validate(
    log: Log,
    *,
    reading: Reading = AS_USUAL,
    json: Json = None,
) -> None:
    """Say everything that is noteworthy or wrong about a log, and what reading it does about that."""
    out = Output(json, log)
    source = named(log, reading)
    show_columns(out, source, reading)
    findings = Findings(reading.policies(), source.name, collect_all=True)
    with shown_progress() as progress:
        found = read_whole(source, Asked(reading.declared(), findings, progress=progress))
    persons = person_columns(found)
    out.json(
        {
            "findings": [finding.to_json() for finding in found.findings],
            "persons": [person.to_json() for person in persons],
        }
    )
    out.show(display.findings_table(found.findings))
    if persons:
        out.show(display.persons_lines(persons))


def convert(
    log: Log,
    target: Target,
    *,
    to: To = None,
    lossy: Annotated[bool, Parameter(negative="", help="Accept that a CSV cannot hold all of this log.")] = False,
    reading: Reading = AS_USUAL,
    json: Json = None,
) -> None:
    """Write a log in another format. Nothing is anonymised."""
    out = Output(json, log, log=target)
    place = check_target(target, log, to or reading.format)
    source = named(log, reading)
    show_columns(out, source, reading)
    event_log = read_log(source, reading)
    with shown_progress() as progress:
        progress(f"writing {place.name}", None)
        files.write(event_log, place, lossy=lossy)
    if is_pipe(target):
        send(place)
    facts = {"cases": event_log.cases.num_rows, "events": len(event_log)}
    out.json(facts, place)
    out.show(display.key_values([*facts.items(), ("written to", in_words(target, out=True))]))
    if event_log.findings:
        out.show(display.findings_table(event_log.findings))

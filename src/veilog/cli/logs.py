"""Commands about logs as they are: info, validate, map, convert."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from veilog._files import atomic_target, check_writable
from veilog.cli.shared.log_input import (
    Output,
    check_target,
    fits,
    open_source,
    read_grouped,
    read_log,
    read_request,
    read_variants,
    show_progress,
)
from veilog.cli.shared.options import (
    DEFAULT_GROUPING,
    DEFAULT_READING,
    Grouping,
    Json,
    Log,
    Reading,
    SpreadsheetSafe,
    Target,
    To,
)
from veilog.cli.shared.paths import is_pipe, path_text, send
from veilog.cli.shared.tables import (
    attributes_table,
    findings_table,
    info_table,
    key_values,
    persons_lines,
    variants_table,
)
from veilog.cli.shared.terminal import CALL
from veilog.errors import ParameterError
from veilog.logs import files
from veilog.logs.eventlog import Statistics
from veilog.logs.facts import attributes_of, person_columns, transitions_of
from veilog.logs.input.activity_mapping import as_csv, propose_mapping
from veilog.logs.input.loader import whole as read_whole
from veilog.messages import Message


def info(
    log: Log,
    *,
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    json: Json = None,
) -> None:
    """Count cases, events, activities and variants of a log."""
    out = Output(json, log)
    source = open_source(out, log, reading, grouping)
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
            "read_together": [one.english for one in variants.read_together],
        }
    )
    out.show(info_table(statistics, variants, path_text(log)))
    out.show(variants_table(variants))
    if attributes:
        out.show(attributes_table(attributes, transitions))
    if persons:
        out.show(persons_lines(persons))
    if whole is None:
        out.show("[dim]Grouped in the database: attributes, life cycle and people were not read.[/]")
    if findings:
        out.show(findings_table(findings))


def validate(
    log: Log,
    *,
    reading: Reading = DEFAULT_READING,
    json: Json = None,
) -> None:
    """List all findings about a log, and how reading treats each of them."""
    out = Output(json, log)
    source = open_source(out, log, reading)
    with show_progress() as progress:
        found = read_whole(source, read_request(source, reading, progress, collect_all=True))
    persons = person_columns(found)
    out.json(
        {
            "findings": [finding.to_json() for finding in found.findings],
            "persons": [person.to_json() for person in persons],
        }
    )
    out.show(findings_table(found.findings))
    if persons:
        out.show(persons_lines(persons))


def map(  # noqa: A001 - its name on the command line
    log: Log,
    out: Annotated[Path | None, Parameter(help="File to write it to, ending in .csv.")] = None,
    *,
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    json: Json = None,
) -> None:
    """Propose groups of activities by the structure of their names,
    for you to edit and give to --map.

    veilog map LOG groups.csv writes it; veilog release LOG TARGET ... --map groups.csv --level 2 uses it. You decide
    whether the names of the log may be known, as with --activities.
    """
    screen = Output(json)
    if out is not None:
        if out.suffix.lower() != ".csv":
            raise ParameterError("map-not-csv-ending", parameter="out", name=out.name)
        check_writable(out)
    source = open_source(screen, log, reading, grouping)
    found = propose_mapping(read_variants(source, reading).labels)
    screen.json({name: list(groups) for name, groups in found.items()})
    fine, coarse = (len({groups[i] for groups in found.values()}) for i in (0, 1))
    screen.show(key_values([("activities", len(found)), ("groups at level 1", fine), ("at level 2", coarse)]))
    if coarse == len(found):
        screen.show(Text(str(Message("names-without-structure")), style="yellow"))
    text = as_csv(found)
    if out is None:
        screen.show(Text(text))
        return
    with atomic_target(out, overwrite=CALL.get().overwrite) as file:
        file.write(text.encode())
    screen.show(Text(f"written to {out}: edit it, then --map {out} --level 1 or 2"))


def convert(
    log: Log,
    target: Target,
    *,
    to: To = None,
    lossy: Annotated[bool, Parameter(negative="", help="Write a CSV even if it cannot hold all of this log.")] = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    reading: Reading = DEFAULT_READING,
    json: Json = None,
) -> None:
    """Write a log in another format. Nothing is anonymised."""
    out = Output(json, log, log=target)
    place = check_target(target, to or reading.format, spreadsheet_safe=spreadsheet_safe)
    source = open_source(out, log, reading)
    event_log = read_log(source, reading)
    with show_progress() as progress:
        progress(f"writing {place.name}", None)
        files.write(event_log, place, lossy=lossy, overwrite=CALL.get().overwrite, spreadsheet_safe=spreadsheet_safe)
    if is_pipe(target):
        send(place)
    facts = {"cases": event_log.cases.num_rows, "events": len(event_log)}
    table = place.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    conditions = [one.english for one in (*event_log.read_together, *event_log.mapped)] if table else []
    out.json(facts | {"conditions": conditions}, place)
    out.show(key_values([*facts.items(), ("written to", path_text(target, out=True))]))
    states_how = any(attribute.key == "privacy:anonymizations" for attribute in event_log.metadata.attributes)
    if states_how and table:
        out.show(Text("A CSV cannot hold the guarantee of the release: keep the file it is from.", style="yellow"))
    if conditions:
        lost = "A CSV cannot hold the conditions of its releases. Send these with it:"
        out.show(Text("\n".join([lost, *conditions]), style="yellow"))
    if event_log.findings:
        out.show(findings_table(event_log.findings))

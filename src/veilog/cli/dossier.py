"""The command dossier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from veilog._files import check_writable
from veilog._language import ENGLISH
from veilog.cli.report import Language, ledger_status, original_of
from veilog.cli.shared.log_input import Output, named, read_log, read_released, show_progress
from veilog.cli.shared.options import DEFAULT_READING, HeldOut, Json, Reading
from veilog.cli.shared.people import SEEMING, Whose
from veilog.cli.shared.terminal import CALL
from veilog.errors import OutputError, check_language
from veilog.releasing.checks import json_of
from veilog.report.dossier import check_dossier, write, write_registry
from veilog.report.dossier import dossier as made_of
from veilog.report.release_facts import facts_of_file

_YAML = (".yaml", ".yml")


def dossier(
    released: Annotated[Path, Parameter(help="A release in XES, Parquet or Excel, as veilog release wrote it.")],
    target: Annotated[Path, Parameter(help="File to write to: a page (.html) or Markdown (.md).")],
    *,
    original: Annotated[
        Path | None,
        Parameter(help="The original log: adds the results of attacks on both, so the dossier is confidential."),
    ] = None,
    control: HeldOut = None,
    whose: Whose = SEEMING,
    registry: Annotated[
        Path | None,
        Parameter(help="File (.yaml) for the record of the registry of deployments; by default TARGET.registry.yaml."),
    ] = None,
    language: Language = ENGLISH,
    reading: Reading = DEFAULT_READING,
    json: Json = None,
) -> None:
    """Write a dossier for the data protection officer:
    an annex to a DPIA, the three risks, sheets for the recipient and for an output check."""
    out = Output(json)
    check_dossier(target)
    check_language(language)
    place = registry or target.with_suffix(".registry.yaml")
    _check_registry(place)
    log = read_released(named(released, reading, released=True), reading)
    told = facts_of_file(log)  # before the original is read: a log that is no release is refused at once
    before = None if original is None else original_of(log, original, reading)
    whose.check(before)
    others = None if control is None else read_log(named(control, reading), reading)
    account = None if original is None or before is None else ledger_status(original, before)
    with show_progress() as progress:
        made = made_of(
            log,
            before,
            files=(released,),
            account=account,
            control=others,
            person=whose.asked(),
            progress=progress,
            language=language,
        )
    if made.registry is not None or registry is not None:
        write_registry(made, place, overwrite=CALL.get().overwrite)
    write(made, target, overwrite=CALL.get().overwrite)
    kept = None if made.registry is None else str(place)
    edition = "internal" if made.owner_only else "recipient"
    facts = {"dossier": str(target), "edition": edition, "registry": kept, "guarantee": json_of(told.guarantee)}
    out.json(facts, target)
    whom = (
        "confidential: it holds exact numbers of the log"
        if made.owner_only
        else "it shows only the release and its guarantee"
    )
    out.show(Text(f"dossier written to {target} ({whom})"))
    if kept is not None:
        out.show(Text(f"record for the registry of deployments written to {kept}: fill in the marked fields"))
    else:
        out.show(Text("no record for the registry of deployments: this release has no proven guarantee"))


def _check_registry(place: Path) -> None:
    """Refuse a record that cannot be written. No log ends in .yaml, so none is lost."""
    if place.suffix.lower() not in _YAML:
        raise OutputError("registry-not-yaml", path=place)
    check_writable(place, overwrite=CALL.get().overwrite)

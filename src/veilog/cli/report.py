"""The commands report and dossier, and the options for the pages of a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from veilog._files import check_writable
from veilog._language import ENGLISH, languages
from veilog.cli.shared.ledger_options import ledger_of
from veilog.cli.shared.log_input import Output, named, read_log, read_released, show_progress
from veilog.cli.shared.options import DEFAULT_READING, GROUPS, HeldOut, Json, Reading
from veilog.cli.shared.people import SEEMING, Whose
from veilog.cli.shared.terminal import CALL
from veilog.errors import OutputError, ParameterError, check_language
from veilog.ledger.ledger import Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures import Comparison, Progress
from veilog.releasing.account_notes import LedgerStatus
from veilog.releasing.checks import json_of
from veilog.releasing.result import Release
from veilog.report import write
from veilog.report.dossier import check_dossier, write_registry
from veilog.report.dossier import dossier as make_dossier
from veilog.report.dossier import write as write_dossier
from veilog.report.release_facts import facts_of_file

_YAML = (".yaml", ".yml")
Language = Annotated[str, Parameter(help=f"Language of the pages and the dossier: {', '.join(languages())}.")]


@Parameter(name="*", group=GROUPS["pages"])
@dataclass(frozen=True)
class Reports:
    """Pages about a release, written with its log."""

    report: Annotated[
        Path | None, Parameter(help="Write the internal report, with exact numbers of the log (confidential).")
    ] = None
    recipient_report: Annotated[
        Path | None, Parameter(help="Write the recipient's report: only the release and its guarantee.")
    ] = None
    dossier: Annotated[
        Path | None,
        Parameter(help="Write a dossier (.html, .md) for the data protection officer; see veilog dossier."),
    ] = None
    language: Language = ENGLISH

    def check(self) -> None:
        """Refuse pages that cannot be written, before any work."""
        check_language(self.language)
        if self.dossier is not None:
            check_dossier(self.dossier)
        for page, option in ((self.report, "--report"), (self.recipient_report, "--recipient-report")):
            if page is not None:
                _check_page(page, option)
        named = [page for page in (self.report, self.recipient_report, self.dossier) if page is not None]
        if self.language != ENGLISH and not named:
            raise ParameterError("language-without-page", parameter="language")

    def write(
        self,
        released: Release,
        target: Path,
        original: EventLog | Variants,
        comparison: Comparison | None,
        progress: Progress,
        person: str | None = None,
    ) -> Iterator[str]:
        """Write the requested pages about the release in this file; yield a line on each.

        ``person`` is the column of persons, if these are protected.
        """
        overwrite = CALL.get().overwrite
        how: dict[str, Any] = {"files": (target,), "progress": progress, "language": self.language}
        if self.report is not None:
            more: dict[str, Any] = {"comparison": comparison, "person": person or True, "overwrite": overwrite}
            write(released, self.report, original, **more, **how)
            yield f"{self.report} (confidential: it holds exact numbers of the log)"
        if self.recipient_report is not None:
            write(released, self.recipient_report, overwrite=overwrite, **how)
            yield f"{self.recipient_report} (shows only the release and its guarantee)"
        if self.dossier is not None:
            write_dossier(make_dossier(released, **how), self.dossier, overwrite=overwrite)
            yield f"{self.dossier} (a dossier: holds nothing of the log but the release)"


NO_REPORT = Reports()


def report(
    released: Annotated[Path, Parameter(help="A release in XES, Parquet or Excel, as veilog release wrote it.")],
    target: Annotated[Path, Parameter(help="File to write the page to; it ends in .html.")],
    *,
    original: Annotated[
        Path | None, Parameter(help="The original log: adds its exact numbers, so the page is confidential.")
    ] = None,
    whose: Whose = SEEMING,
    language: Language = ENGLISH,
    reading: Reading = DEFAULT_READING,
    json: Json = None,
) -> None:
    """Write a page about a release from its file: content, guarantee and limits."""
    out = Output(json)
    _check_page(target, "TARGET")
    check_language(language)
    log = read_released(named(released, reading, released=True), reading)
    told = facts_of_file(log)  # before the original is read: a log that is no release is refused at once
    before = None if original is None else original_of(log, original, reading)
    whose.check(before)
    account = None if original is None or before is None else ledger_status(original, before)
    with show_progress() as progress:
        write(
            log,
            target,
            before,
            files=(released,),
            account=account,
            person=whose.asked(),
            progress=progress,
            language=language,
            overwrite=CALL.get().overwrite,
        )
    version = "recipient" if before is None else "internal"
    out.json({"report": str(target), "version": version, "guarantee": json_of(told.guarantee)}, target)
    whom = (
        "it shows only the release and its guarantee"
        if before is None
        else "confidential: it holds exact numbers of the log"
    )
    out.show(Text(f"report written to {target} ({whom})"))


def original_of(released: EventLog, path: Path, reading: Reading) -> EventLog:
    """Return the log of a release, unless the two have no activity in common.

    Exact numbers of another log must not pass for those of this one.
    """
    log = read_log(named(path, reading), reading)
    labels = set(released.variants.labels)
    if labels and labels.isdisjoint(log.variants.labels):
        raise ParameterError("release-not-of-log", parameter="original", name=path.name)
    return log


def ledger_status(path: Path, log: EventLog) -> LedgerStatus | None:
    """Return the ledger's facts on a log's releases, and on other logs, or None."""
    place = ledger_of(path)
    if place is None or not place.exists():
        return None
    kept = Ledger.open(place)
    return LedgerStatus.of(kept.account(log), kept.show())


def _check_page(page: Path, option: str) -> None:
    """Refuse a page that cannot be written. No log ends in .html, so none is lost."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise OutputError("report-option-not-html", path=page, option=option)
    check_writable(page)


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
        made = make_dossier(
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
    write_dossier(made, target, overwrite=CALL.get().overwrite)
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

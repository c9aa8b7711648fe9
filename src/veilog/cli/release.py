"""The command that releases a log."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from veilog._files import check_writable, mark
from veilog.cli.confirmation import cannot_be_undone, confirm, report_cost_on_interrupt, warn_dropped
from veilog.cli.preview import NO_PREVIEW, PreviewOptions, show_preview
from veilog.cli.report import NO_REPORT, Reports
from veilog.cli.shared.accounts import account_line
from veilog.cli.shared.ledger_options import DEFAULT_LEDGER, Keeping, account_of, check_person, ledger_of, show_account
from veilog.cli.shared.log_input import Output, check_target, named, open_source, show_progress
from veilog.cli.shared.measures import comparison_table
from veilog.cli.shared.options import (
    DEFAULT_GROUPING,
    DEFAULT_READING,
    Details,
    Grouping,
    Json,
    Log,
    MethodSettings,
    Reading,
    SpreadsheetSafe,
    Target,
    To,
    options,
    pairs,
    quote_path,
)
from veilog.cli.shared.paths import check_places, is_pipe, path_text, send
from veilog.cli.shared.releases import release_brief, release_view
from veilog.cli.shared.requests import UNDECIDED, ReleaseOptions, load_for_request
from veilog.cli.shared.terminal import CALL, is_terminal
from veilog.errors import OutputError, ParameterError, UndeclaredError
from veilog.ledger.accounts import LastReleasedInterval, last_span
from veilog.ledger.store import Data
from veilog.logs.eventlog import EventLog
from veilog.logs.files import named_after
from veilog.logs.input.loader import columns_of
from veilog.logs.input.source import suffix_of
from veilog.logs.storage.stored_log import StoredLog, variants_of
from veilog.logs.variants import Variants
from veilog.measures import Comparison
from veilog.measures import compare as compare_logs
from veilog.privacy.partition import Partition
from veilog.releasing.model import check_kept
from veilog.releasing.owner import add_warnings
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.result import Release
from veilog.releasing.run import entry_of, run_plan
from veilog.releasing.spool import place_elsewhere, spool_file, writing_help
from veilog.report.release_facts import has_times

_WITHOUT_GUARANTEE = (".csv", ".tsv")
"""Formats without a place for the guarantee."""
NOISE_ONLY = 6
"""Exit status of a release that its own answers do not distinguish from noise."""
_COMPARED_WHOLLY, _COMPARED = 5_000, 200_000
"""Number of variants a side up to which `release` measures models and attacks, too, and the similarity alone."""


def release(
    log: Log,
    target: Target,
    *,
    method: Annotated[str, Parameter(name=["--method", "-m"], help="Method; veilog methods lists them.")],
    p: MethodSettings = (),
    asked: ReleaseOptions = UNDECIDED,
    keeping: Keeping = DEFAULT_LEDGER,
    reading: Reading = DEFAULT_READING,
    grouping: Grouping = DEFAULT_GROUPING,
    compare: Annotated[
        bool, Parameter(negative="--no-compare", help="Show the utility (confidential); it is never written to a file.")
    ] = True,
    reports: Reports = NO_REPORT,
    to: To = None,
    model: Annotated[
        Path | None, Parameter(help="File for a model of the release, from which veilog sample draws more cases.")
    ] = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    preview: PreviewOptions = NO_PREVIEW,
    details: Details = False,
    json: Json = None,
) -> int:
    """Release a log: query it with noise, write the result, and state its guarantee."""
    out = Output(json, log, log=None if preview.dry_run else target)
    last, asked = since_last(log, keeping, asked)
    if preview.dry_run:
        show_preview(out, log, asked, method, pairs(p, "-p"), preview, keeping, reading, grouping)
        return 0
    preview.refuse_alone()
    place = check_target(target, to or reading.format, spreadsheet_safe=spreadsheet_safe)
    reports.check()
    _check_person(asked, log, reading, grouping)  # before a bound on the cases of a person is required
    planned = asked.request(method, pairs(p, "-p"))
    files = [*_check_files(planned, target, log, model, keeping.ledger, json), target]
    planned = _declare_groups(planned, reading)
    new = keeping.checked(log, seeded=planned.seed is not None)
    source = open_source(out, log, reading, grouping)
    original = load_for_request(source, planned, reading)
    planned = announce_release(out, planned, last, original)
    planned = confirm(out, planned, original, place, keeping.of(log, seeded=planned.seed is not None))
    released = _write_release(planned, log, original, keeping, place, files, spreadsheet_safe=spreadsheet_safe)
    cannot_be_undone("release-written", place=path_text(target, out=True))
    more = files[:-1]
    if model is not None:
        released.model.save(model, overwrite=CALL.get().overwrite)
        more.append(model)
    warn_dropped(released)
    account = account_of(released.entry)
    out.json(released.to_json(), place, *more, account=account)
    reference = _comparison_source(original, planned.subset)
    wholly = details or reports != NO_REPORT
    comparison = _compare_release(reference, released, wholly) if compare and json != "-" else None
    pages = [] if reports == NO_REPORT else _pages(reports, released, place, reference, comparison, planned)
    as_read, written = quote_path(log) + options(reading), [path_text(target, out=True), *map(str, more)]
    if details:
        out.show(release_view(released, "; ".join(written), as_read))
        show_account(out, released.entry, account, new)
        _show_kept(out, comparison, pages)
    else:
        left = "" if account is None else "; ".join(filter(None, (account_line(account), new)))
        compared = f"veilog compare {quote_path(log)} {quote_path(target)}{options(reading, grouping)}"
        step = _next_step(target, comparison, reports.recipient_report, compared, timed=has_times(released))
        out.show(release_brief(released, [*written, *pages], comparison, left, step, as_read))
    return NOISE_ONLY if released.noise_only else 0


def _show_kept(out: Output, comparison: Comparison | None, pages: Sequence[str]) -> None:
    """Show the whole utility of a release, and its reports."""
    if comparison is not None:
        out.show("\n[bold]Utility[/] [dim](confidential: computed from the raw log, not part of the release)[/]")
        out.show(comparison_table(comparison))
    for page in pages:
        out.show(Text(f"report written to {page}"))


def _pages(
    reports: Reports,
    released: Release,
    target: Path,
    original: EventLog | Variants,
    comparison: Comparison | None,
    planned: ReleaseRequest,
) -> list[str]:
    """Write the requested pages about a release, and return a line on each."""
    with show_progress() as progress:
        return list(reports.write(released, target, original, comparison, progress, planned.unit.column))


def _write_release(
    planned: ReleaseRequest,
    log: Path,
    original: EventLog | StoredLog | Variants,
    keeping: Keeping,
    place: Path,
    files: Sequence[Path],
    *,
    spreadsheet_safe: bool,
) -> Release:
    """Return the release, made and written to its place, or sent to standard output.

    The place is the last of these ``files``. A stop reports those that exist; a release that is spent is kept until it
    is written.
    """
    piped = is_pipe(files[-1])
    aside = {**entry_of(planned), "name": log.name} if keeping.no_ledger and planned.seed is None else None
    most = planned.epsilon if planned.bounded else None
    with show_progress() as progress:
        progress(f"releasing with {planned.method.name}", None)
        ledger = keeping.of(log, progress, seeded=planned.seed is not None)
        with report_cost_on_interrupt(planned.method.name, original, ledger, most, files=() if piped else files):
            released = run_plan(planned, original, ledger=ledger, progress=progress)
            with _keep_until_written(released, None if piped else place):
                released = add_warnings(released, original, aside, ledger_of(log))
                progress(f"writing {place.name}", None)
                overwrite = CALL.get().overwrite
                released.save(place, overwrite=overwrite, spreadsheet_safe=spreadsheet_safe, progress=progress)
                if piped:
                    _send(place)
    return released


@contextmanager
def _keep_until_written(released: Release, target: Path | None) -> Iterator[None]:
    """Keep a release until this block has written it, or sent it without a ``target``.

    It is kept next to its ledger or, if it is in none and the block fails, in the user's data folder.
    """
    before, entry = None if target is None else mark(target), released.entry
    try:
        with released.kept(target):
            yield
    except OutputError as error:
        there = target is not None and mark(target) != before
        if there or entry is not None or not released.variants.cases:
            raise
        kept = place_elsewhere()
        released.save(kept)
        raise OutputError("release-waits", path=error.path, said=error.message, kept=kept) from error
    except KeyboardInterrupt:
        if entry is not None and (file := spool_file(entry)) is not None:
            cannot_be_undone("release-waits-in", file=file, how=writing_help(entry))
        raise


def _send(place: Path) -> None:
    """Send the file to standard output."""
    try:
        send(place)
    except BrokenPipeError as error:
        raise OutputError("output-closed") from error


def _check_files(
    planned: ReleaseRequest, target: Path, log: Path, model: Path | None, ledger: Path | None, json: str | None
) -> list[Path]:
    """Return the files of further releases; check them and that of a model."""
    if model is not None:
        check_kept(planned)
        check_writable(model)
    if planned.beside and is_pipe(target):
        raise ParameterError("output-second-file", parameter="for", beside=planned.beside[0])
    further = [named_after(target, name) for name in planned.beside]
    for place in further:
        check_places({"target": place, "log": log, "ledger": ledger, "json": json})
    return [check_target(place, None) for place in further]


def _declare_groups(planned: ReleaseRequest, reading: Reading) -> ReleaseRequest:
    """Return the request with grouped activities as public facts, if there are any.

    Facts that are still undeclared are refused where no person at a terminal can declare them.
    """
    planned = planned.declaring(reading.groups(planned.declared))
    if planned.undeclared and not is_terminal():
        raise UndeclaredError(planned.method.name, planned.undeclared)
    return planned


def _check_person(asked: ReleaseOptions, log: Path, reading: Reading, grouping: Grouping) -> None:
    """Refuse a person's column that a table does not have."""
    if not asked.by_column or asked.max_cases is not None or is_pipe(log):
        return
    names = columns_of(named(log, reading, grouping))
    if names is not None:
        check_person(asked.unit, names)


def _comparison_source(original: EventLog | StoredLog | Variants, subset: Partition | None) -> EventLog | Variants:
    """Return the log to compare with a release, or the variants of a log on disk."""
    looked_at = original if subset is None else subset.of_log(original)
    return looked_at.variants if isinstance(looked_at, StoredLog) else looked_at


def _compare_release(original: EventLog | Variants, released: Release, wholly: bool) -> Comparison | None:
    """Return the comparison with the original; None with very many variants.

    Unless it is shown wholly, it has what the short answer shows.
    """
    variants = variants_of(original)
    details = released.details
    timed = released.full is not None or (
        details is not None and bool(details.times is not None or details.columns.cases or details.columns.events)
    )
    most = max(len(variants), len(released.variants))
    if most > _COMPARED:
        return None
    models = most <= _COMPARED_WHOLLY
    attacks = models and (wholly or ("singling_out",))
    logs = (original, released.log) if timed and isinstance(original, EventLog) else (variants, released.variants)
    with show_progress() as progress:
        return compare_logs(*logs, models=models, attacks=attacks, progress=progress)


def _next_step(target: Path, comparison: Comparison | None, outside: Path | None, compared: str, *, timed: bool) -> str:
    """Return the next step after a release."""
    if is_pipe(target):
        return ""
    if suffix_of(target).removesuffix(".gz") in _WITHOUT_GUARANTEE:
        other = "release to .xes, .xlsx or .parquet, or with --recipient-report PAGE"
        page = other if outside is None else f"send {outside}, too"
        artificial = "" if timed else "; nor that its times are artificial: from 1970 on, for the order alone"
        return f"a table has no place for what it guarantees: {page}{artificial}"
    named_page = shlex.quote(f"{target.name.partition('.')[0]}.html")
    page = f"veilog report {quote_path(target)} {named_page} writes a page to send with it"
    if comparison is None:
        return f"{page}; {compared} measures the utility"
    if "fitness" not in comparison.results:
        return f"{page}; {compared} adds a model and attacks"
    return f"{page}; --details shows every question, measure and attack"


_LAST = "last"


def since_last(
    log: Path, keeping: Keeping, asked: ReleaseOptions
) -> tuple[LastReleasedInterval | None, ReleaseOptions]:
    """Return the interval of the last release and the options for ``--since last``.

    The options have its last day in place of ``last``. It comes from the ledger; the log is not read yet.
    """
    if asked.since != _LAST:
        return None, asked
    ledger = keeping.of(log)
    last = last_span([] if ledger is None else ledger.show(), keeping.account)
    last.check(asked.unit)
    begun = asked.having(since=last.end)
    last.until(begun.end)
    return last, begun


def announce_release(
    out: Output, planned: ReleaseRequest, last: LastReleasedInterval | None, log: Data
) -> ReleaseRequest:
    """Show where a release begins, once its log is read, and return the marked plan.

    A log that was read in another way than the last time is refused. By the mark, the ledger checks the days again when
    it reserves: another job may have released them by then.
    """
    if last is None or planned.subset is None:
        return planned
    last.check(planned.unit.column or planned.unit.name, log.read_as)
    out.show(Text(f"since {last.in_words}"))
    return replace(planned, subset=replace(planned.subset, follows=True))

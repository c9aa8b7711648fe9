"""Releases in a worker: the release, its files and reports, and its confirmation."""

from __future__ import annotations

import contextlib
import datetime
import errno
import importlib.util
import json
import os
import shutil
import time
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from veilog import report
from veilog._files import atomic_target
from veilog._language import current, gettext
from veilog._plain import from_plain, to_plain
from veilog._process import defer_stops
from veilog.errors import InputError, OutputError, VeilogError
from veilog.ledger.ledger import EntryRef, Ledger, Reservation
from veilog.ledger.store import Data
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.privacy.account.guarantee import Charge
from veilog.releasing.owner import OF_PERSONS
from veilog.releasing.result import OwnerOnly, Release
from veilog.releasing.spool import BESIDE, remove_kept, spool_file
from veilog.report.decision import OwnerSide, decision_facts, owner_side
from veilog.report.dossier import Dossier, Signature, dossier, sign_dossier
from veilog.report.dossier import write as write_dossier
from veilog.report.explorer import clean, short
from veilog.report.release_facts import facts_of_release
from veilog.web.jobs.records import FILES, Problem, ServerSettings, is_full
from veilog.web.jobs.results import ReleasedLog, from_text, to_text
from veilog.web.jobs.worker import COMPARING, ENTRY, MORE, PAID, RELEASING, RESULT, Progress, Stages, WorkerTask
from veilog.web.work.accounts import join
from veilog.web.work.comparison import ComparisonInput, all_variants, beside, predict_outcome
from veilog.web.work.log_reader import log_of
from veilog.web.work.request import plan_of, privacy_unit

KEPT = "release.parquet"
"""Smallest lossless form of a release: written first, as the source of the others."""
_LOGS = ("release.xes", "release.csv", "release.xlsx")
_WORKBOOK = 100_000
"""Number of events above which no workbook is made, as it takes far longer than other files."""
DOSSIER, STRUCTURE = "dossier.html", "dossier.json"
"""Names of the dossier, and of its structure, to which a signature is added."""
_PAGES = ("recipient-report.html", DOSSIER)
"""Names of the pages that go with the release."""
_SPARE = "spare"
_MARGIN = 16 << 20
"""Bytes that reports and records may take."""
_EACH_EVENT = 500
"""Bytes of one event in all formats together, usually fewer."""
_AGAIN = 2.0
"""Seconds between two looks at the room on the disk."""
_CHARGES = 60
_COMPARING, _PREDICTING = MORE


@dataclass(frozen=True)
class _Noting(Ledger):
    """A ledger that writes down the number of a release before any query."""

    note: Path | None = None

    @staticmethod
    def of(ledger: Ledger, note: Path) -> _Noting:
        """Return the ledger, with the file in which the number shall stand."""
        return _Noting(**{field.name: getattr(ledger, field.name) for field in fields(Ledger)}, note=note)

    def reserve(self, data: Data, method: str, **asked: Any) -> Reservation:
        """Reserve what a release may use, and note it; a failed note reserves nothing."""
        reservation = super().reserve(data, method, **asked)
        try:
            if self.note is not None:
                self.note.write_text(str(reservation.number))
        except BaseException:  # also if the work is stopped just now
            reservation.withdraw()
            raise
        return reservation


def release_log(task: WorkerTask, settings: ServerSettings, progress: Progress) -> ReleasedLog:
    """Release a log as planned, enter it in the ledger, and write its files.

    An error before the first query raises, and spends nothing. Once there is a release, an error is reported with it:
    the release is spent and must not be lost.
    """
    planned, out = plan_of(task.request).seeded(settings.seed), Path(task.out)
    stages = Stages(progress, {**RELEASING, **(MORE if settings.thorough else COMPARING)})
    name = short(task.name, 120)
    log = replace(log_of(Path(task.path), task.columns, stages.at("Reading the log")), source=name)
    data = log if planned.needs_events else log.variants
    _set_aside(out / _SPARE, _MARGIN + _EACH_EVENT * log.events.num_rows)
    asking = stages.at("Querying the log, with noise")
    try:
        ledger = Ledger.open(settings.ledger, create=True, waiting=progress, name=name)
        join(ledger, data, task.others)
        released = planned.run(data, ledger=_Noting.of(ledger, out / ENTRY), progress=asking)
    except VeilogError:
        (out / _SPARE).unlink(missing_ok=True)
        raise
    missing, unwritten = _write_files(released, out, stages.at("Writing the files"), progress)
    result = replace(
        _describe(released, _owner(log)), missing=tuple(missing), unwritten=tuple(unwritten), files=_sizes(out)
    )
    person = privacy_unit(task.columns, planned.unit.column)
    sides = ComparisonInput(released, log, logs_in(out), out / "internal-report.html", person)
    result = _compare_sides(result, sides, out, stages, settings)
    (out / _SPARE).unlink(missing_ok=True)
    (out / PAID).unlink(missing_ok=True)
    return replace(result, files=_sizes(out))


def _compare_sides(
    result: ReleasedLog, sides: ComparisonInput, out: Path, stages: Stages, settings: ServerSettings
) -> ReleasedLog:
    """Return the result with the comparison for its owner, as far as it succeeds.

    The result is stored before each part. A release is spent, and must not be lost because its comparison takes too
    much time or memory.
    """
    if result.empty:
        return result
    steps = [(_COMPARING, beside)]
    if settings.thorough:
        steps += [(_COMPARING, all_variants), (_PREDICTING, predict_outcome)]
    begun = ""
    for stage, compared in steps:
        if stage != begun:
            progress, begun = stages.at(stage), stage
        stopped = gettext("The work was stopped before all of the release was compared with the original.")
        _record_result(replace(result, missing=(*result.missing, stopped)), out)
        try:
            result = replace(result, beside=compared(sides, result.beside, progress))
        except (VeilogError, MemoryError) as error:
            words = gettext("The release could not be compared with the original: {reason}", reason=_reason(error))
            return replace(result, missing=(*result.missing, words))
    return result


def write_again(kept: Path, out: Path, settings: ServerSettings, progress: Progress) -> ReleasedLog:
    """Write the files that the full disk prevented, without a query.

    ``kept`` is the folder of that job, which stays as it is, so that this can be repeated as often as needed.
    """
    try:
        result = from_text("release", (kept / RESULT).read_text())
        if not isinstance(result, ReleasedLog) or result.entry is None:
            raise InputError("release-no-longer-kept")
        entry = EntryRef(settings.ledger, result.entry)
        source = kept / KEPT if (kept / KEPT).exists() else spool_file(entry) or kept / KEPT
        log = files.read(source)
    except (OSError, ValueError, VeilogError) as error:
        raise InputError("release-no-longer-kept") from error
    _set_aside(out / _SPARE, _MARGIN + _EACH_EVENT * log.events.num_rows)
    for name in result.files:
        _link_file(kept / name, out / name)
    (out / _SPARE).unlink()
    (out / ENTRY).write_text(str(result.entry))
    if not (out / KEPT).exists():
        for one, target in _files_to_write(log, source, out / KEPT):
            files.write_named(one, target, lossy=True, overwrite=True, naming=entry.naming(target))
    missing, unwritten = [], []
    for name in result.unwritten:
        progress(gettext("writing {file}", file=name), None)
        try:
            if name in _LOGS:
                for one, target in _files_to_write(log, source, out / name):
                    files.write_named(one, target, lossy=True, overwrite=True, naming=entry.naming(target))
            else:
                _write_page(log, out / name, progress)
        except VeilogError as error:
            missing.append(_trouble(out / name, error))
            unwritten += [name] if _is_disk_full(error) else []
    remove_kept(entry)
    return replace(result, missing=tuple(missing), unwritten=tuple(unwritten), stopped=False, files=_sizes(out))


def _files_to_write(log: EventLog, source: Path, target: Path) -> list[tuple[EventLog, Path]]:
    """Return the log, and before it the log of its models, with their new paths."""
    beside = files.named_after(source, BESIDE)
    return [*([(files.read(beside), files.named_after(target, BESIDE))] if beside.exists() else []), (log, target)]


def _link_file(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _sizes(out: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in sorted(out.iterdir()) if file.name in FILES}


def _set_aside(path: Path, size: int) -> None:
    """Reserve the room that the files of a release may need, before any query."""
    try:
        with atomic_target(path) as file:
            if shutil.disk_usage(path.parent).free < size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
    except OutputError as error:
        if not _is_disk_full(error):
            return  # not every file system can do this
        raise InputError("release-files-over-disk", n=-(-size // 1000000)) from error


def _is_disk_full(error: BaseException | None) -> bool:
    """Return True if this error, or its cause, means that the disk is full."""
    while error is not None and not is_full(error):
        error = error.__cause__
    return error is not None


def _write_files(released: Release, out: Path, progress: Progress, told: Progress) -> tuple[list[str], list[str]]:
    """Write certificate, reports and the log in all its formats, in the reserved room.

    Return what could not be written, in words, and the names of files that could be once the disk has room. The
    progress receives the reason for a wait.
    """
    missing: list[str] = []
    unwritten: list[str] = []
    if (out / _SPARE).exists():
        os.truncate(out / _SPARE, _MARGIN // 4)  # for the records at the end
    with defer_stops() as begin, released.kept():
        begin()  # a user who stops the work waits for the end of the block, within the patience of the server
        with contextlib.suppress(VeilogError):
            _write_certificate(released, out)
        _record_spending(
            released, out
        )  # first, so that an end of the work at any time leaves a release that can be written again
        _secure_release(released, out, told, missing)
        _record_spending(released, out)  # with the files that there are by now
    if released.variants.cases == 0:
        return missing, unwritten
    for name in (*_logs_of(released), *_PAGES):
        progress(gettext("writing {file}", file=name), None)
        try:
            if name in _LOGS:
                released.save(out / name, overwrite=True)
            else:
                _write_page(released, out / name, progress)
        except VeilogError as error:
            missing.append(_trouble(out / name, error))
            unwritten += [name] if _is_disk_full(error) and (out / KEPT).exists() else []
    return missing, unwritten


def _write_page(released: Release | EventLog, page: Path, progress: Progress) -> None:
    """Write the recipient's report, or the dossier, of the release in the same folder."""
    files = logs_in(page.parent)
    if page.name == _PAGES[0]:
        report.write(released, page, files=files, progress=progress, language=current(), overwrite=True)
    else:
        made = dossier(released, files=files, progress=progress, language=current())
        write_dossier(made, page, overwrite=True)
        with atomic_target(page.with_name(STRUCTURE)) as file:
            file.write(json.dumps(to_plain(made)).encode())


def _logs_of(released: Release) -> tuple[str, ...]:
    """Return the names of the files for the release, without the one that is kept."""
    whole = released.variants.events <= _WORKBOOK and importlib.util.find_spec("openpyxl") is not None
    return _LOGS if whole else _LOGS[:-1]


def logs_in(out: Path) -> tuple[Path, ...]:
    """Return the files of the release that exist."""
    return tuple(path for name in (*_LOGS, KEPT) if (path := out / name).exists())


def _write_certificate(released: Release, out: Path) -> None:
    facts = {name: value for name, value in released.to_json().items() if name != "owner_only"}
    certificate = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with atomic_target(out / "certificate.json") as file:
        file.write(certificate.encode("utf-8", "replace"))


def _secure_release(released: Release, out: Path, progress: Progress, missing: list[str]) -> None:
    """Write certificate and release, which only memory holds, waiting for disk room."""
    while True:
        try:
            _write_certificate(released, out)
            if released.variants.cases:
                released.save(out / KEPT, overwrite=True)
            return
        except VeilogError as error:
            if not _is_disk_full(error):
                missing.append(_trouble(out / KEPT, error))
                return
        words = gettext("the disk is full: the release is made and stored; free some space, and veilog writes it")
        progress(words, None)
        time.sleep(_AGAIN)


def _record_spending(released: Release, out: Path) -> None:
    """Store the result for an end of the work during writing: files can follow later."""
    empty = released.variants.cases == 0
    waits = released.entry is not None and spool_file(released.entry) is not None
    if empty or waits or (out / KEPT).exists():
        result = _describe(released, None)
        left = () if empty else (*_logs_of(released), *_PAGES)
        _record_result(replace(result, unwritten=left, stopped=True), out, PAID)


def _describe(released: Release, owner: OwnerSide | None) -> ReleasedLog:
    """Return a release's facts; ``owner_only`` and ``owner`` have confidential ones.

    Notes on persons that the owner's side has are not repeated.
    """
    g, variants = released.guarantee, released.variants
    charges = tuple(Charge.of_plain(charge.plain()) for charge in g.charges[:_CHARGES])
    notes = (note for note in released.all_for_owner.notes if owner is None or note.code not in OF_PERSONS)
    return ReleasedLog(
        told=replace(facts_of_release(released), guarantee=replace(g, charges=charges)),
        more_charges=max(0, len(g.charges) - _CHARGES),
        cases=variants.cases,
        events=variants.events,
        variants=len(variants),
        activities=len(variants.labels),
        entry=None if released.entry is None else released.entry.number,
        noise_only=released.noise_only,
        owner=owner,
        owner_only=OwnerOnly(losses=released.owner_only.losses, notes=tuple(notes)),
    )


def _owner(log: EventLog) -> OwnerSide | None:
    """Return what its owner sees of the log and the release; None if that fails.

    The page reads the ledger when it is shown, since that changes.
    """
    try:
        return owner_side(log, None, options=False)
    except (VeilogError, MemoryError):
        return None


def _record_result(result: ReleasedLog, out: Path, name: str = RESULT) -> None:
    """Store the present result for the pages; if the work ends here, it is final."""
    with contextlib.suppress(VeilogError), atomic_target(out / name) as file:  # the end writes it anew
        file.write(to_text(replace(result, files=_sizes(out))).encode())


def _trouble(file: Path, error: VeilogError) -> str:
    """Return the reason why a file was not written or noted, without any folder."""
    if file.exists() and isinstance(error.__cause__, VeilogError):
        reason = _reason(error.__cause__)
        return gettext("{file} is written, but the ledger could not record it: {reason}", file=file.name, reason=reason)
    return gettext("{file} was not written: {reason}", file=file.name, reason=_reason(error))


def _reason(error: VeilogError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return gettext("there was not enough memory.")
    return clean(getattr(error, "problem", str(error)))


_SIGNED = "signed.json"
_NAME = 200
"""Largest number of characters of a name."""


def signature_in(out: Path) -> Signature | None:
    """Return the confirmation of the release in this folder, or None."""
    with contextlib.suppress(OSError, ValueError):
        return from_plain(Signature, json.loads((out / _SIGNED).read_text()))
    return None


def stated_conditions(made: ReleasedLog) -> frozenset[str]:
    """Return the codes of the conditions that the data owner stated in the request."""
    return frozenset(condition.code for condition in made.guarantee.conditions if condition.said_by == "owner")


def sign(out: Path, made: ReleasedLog, name: str, ticked: Collection[str]) -> Signature:
    """Record that a person confirmed these statements, and rewrite the dossier.

    The signature covers what the data owner stated in the settings. It makes no query.
    """
    who = short(clean(name).strip(), _NAME)
    if not who:
        raise Problem(400, "signature-without-name")
    asked = (c.code for c in decision_facts(made.known, made.cases, made.owner).checks if c.state == "to-confirm")
    codes = tuple(code for code in asked if code in ticked or code in stated_conditions(made))
    given = Signature(who, datetime.datetime.now(datetime.UTC).date().isoformat(), codes)
    with atomic_target(out / _SIGNED) as file:
        file.write(json.dumps(to_plain(given)).encode())
    if (out / STRUCTURE).exists():
        plain = from_plain(Dossier, json.loads((out / STRUCTURE).read_text()))
        write_dossier(sign_dossier(plain, given), out / DOSSIER, overwrite=True)
    return given

"""One self-contained HTML page about a release, for people who decide about it.

Two versions. *Inside*, with the original: everything, marked "not for release". *Outside*: nothing about the original
beyond the release and its guarantee, so that it can go with the release.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from veilog._files import atomic_target, check_writable, path_of
from veilog._language import ENGLISH, spoken
from veilog.errors import OutputError, check_language
from veilog.ledger.accounts import Account
from veilog.logs.files import AnyLog
from veilog.measures import Comparison, Progress
from veilog.releasing.account_notes import LedgerStatus
from veilog.releasing.result import Release
from veilog.report.facts import gathered
from veilog.report.page import rendered
from veilog.report.release_facts import given_log, given_release, told_by

__all__ = ["Standing", "html", "write"]


def write(
    released: Release | AnyLog,
    path: str | os.PathLike[str],
    original: AnyLog | None = None,
    *,
    comparison: Comparison | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    account: Account | LedgerStatus | None = None,
    person: str | bool = True,
    progress: Progress | None = None,
    language: str = ENGLISH,
    overwrite: bool = False,
) -> None:
    """Write the report of a release, or of the log that was read from its file, whole or not at all.

    With its ``original`` it is the internal report, without it the report for the recipient. A ``comparison`` of the
    two that is there already is not computed again. ``files`` are those that the release was written to: the page says
    their SHA-256. ``account`` is what the ledger knows of releases of these data (or, as :class:`LedgerStatus`, of
    other data, too), for the internal report; a release that was entered knows its own. ``person`` is the column that
    identifies the people of the original; True: the one that seems to; False: none. The page is written in a
    ``language`` that there is a catalogue of; what it lacks is English. Only the owner of its file may read an internal
    report. A file that is there is replaced only with ``overwrite``.
    """
    place = path_of(path, "path")
    if place.suffix.lower() not in (".html", ".htm"):
        raise OutputError("report-not-html", path=place)
    check_writable(place, overwrite=overwrite)
    text = html(
        released,
        original,
        comparison=comparison,
        files=files,
        account=account,
        person=person,
        progress=progress,
        language=language,
    )
    with atomic_target(place, private=original is not None, overwrite=overwrite) as file:
        file.write(text.encode("utf-8", "replace"))


def html(
    released: Release | AnyLog,
    original: AnyLog | None = None,
    *,
    comparison: Comparison | None = None,
    files: Sequence[str | os.PathLike[str]] = (),
    account: Account | LedgerStatus | None = None,
    person: str | bool = True,
    progress: Progress | None = None,
    language: str = ENGLISH,
) -> str:
    """The page as text; see :func:`write`. The report for the recipient depends on the release alone: on one day equal
    ones give equal bytes."""
    check_language(language)
    held = given_release(released)
    beside = given_log(original, held)
    with spoken(language):
        return rendered(
            gathered(told_by(held), held, beside, comparison, progress, files=files, account=account, person=person)
        )

"""The HTML report of a release: one self-contained page for those who decide.

The *internal* report, with the original, has everything and is marked "not for release". The *shareable* one has
nothing about the original beyond the release and its guarantee, so that it can go with the release.
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
from veilog.report.facts import gather_facts
from veilog.report.page import render_page
from veilog.report.release_facts import facts_of, given_log, given_release

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
    """Write the report of a release as an HTML file, whole or not at all.

    Args:
        released: the release, or the log that was read from its file.
        path: the file, which ends in .html or .htm.
        original: the released log, for the internal report, whose file only its owner may read; without it, the report
            is the shareable one.
        comparison: a comparison of the two that exists already, so that it is not computed again.
        files: those that the release was written to; the page has their SHA-256.
        account: the ledger's facts on releases of these data (or, as :class:`LedgerStatus`, of other data, too), for
            the internal report. A release that was entered knows its own.
        person: the column that identifies the people of the original; True for the likely one, False for none.
        progress: called with a text and the fraction that is done.
        language: one with a catalogue; a sentence that the catalogue lacks is English.
        overwrite: True to replace an existing file.

    Raises:
        OutputError: if the file is no HTML file, exists already, or cannot be written.
        ParameterError: for a language without a catalogue.

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
    """Return the report as text; see :func:`write`.

    The shareable report depends on the release alone: on one day, equal releases give equal bytes.
    """
    check_language(language)
    held = given_release(released)
    beside = given_log(original, held)
    with spoken(language):
        return render_page(
            gather_facts(
                facts_of(held), held, beside, comparison, progress, files=files, account=account, person=person
            )
        )

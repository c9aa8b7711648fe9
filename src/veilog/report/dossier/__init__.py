"""A dossier about a release, for those who decide about it.

It has an annex to a data protection impact assessment, the three risks by name, a mapping to NIST SP 800-226, a record
for the registry of deployments, and sheets for the recipient and for an output check.

It helps to fill what an officer has to fill. It decides nothing, and it is no legal advice.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath

from veilog._files import atomic_target, check_writable
from veilog._language import ENGLISH, current, gettext, spoken
from veilog.errors import OutputError, ParameterError
from veilog.ledger.accounts import Account
from veilog.logs.files import AnyLog
from veilog.measures import Progress
from veilog.measures.persons import check_apart
from veilog.releasing.owner.standing import Standing
from veilog.releasing.result import Release
from veilog.report.dossier.answer import answer
from veilog.report.dossier.dpia import dpia
from veilog.report.dossier.nist import nist
from veilog.report.dossier.parts import Dossier
from veilog.report.dossier.questions import questions
from veilog.report.dossier.registry import record, registry
from veilog.report.dossier.render import as_html, as_markdown
from veilog.report.dossier.risks import risks
from veilog.report.dossier.sheets import output_check, recipient
from veilog.report.dossier.subject import Subject, subject_of
from veilog.report.explorer import short
from veilog.report.facts import files_of
from veilog.report.told import given_log, given_release
from veilog.report.words import capital

__all__ = ["Dossier", "Standing", "check_dossier", "dossier", "write", "write_registry"]

_HTML, _MARKDOWN = (".html", ".htm"), (".md", ".markdown")


def dossier(
    released: Release | AnyLog,
    original: AnyLog | None = None,
    *,
    files: Sequence[str | os.PathLike[str]] = (),
    account: Account | Standing | None = None,
    control: AnyLog | None = None,
    person: str | bool = True,
    progress: Progress | None = None,
    language: str = ENGLISH,
) -> Dossier:
    """Return the dossier of a release, or of the log that was read from its file.

    Without the ``original`` it holds nothing of that; with it, it is the edition for the owner alone, with what attacks
    achieved on both. ``files`` are those that the release was written to;
    ``account`` is what the ledger knows of releases of these data (or, as :class:`Standing`, of other data, too), and
    ``control`` has people who were not in the log that was released, all for the owner's edition. Whose the cases are
    is told by the column of a ``person`` (True: the one that seems to tell it; False: each is another's). It is written
    in a ``language`` that there is a catalogue of; the record for the registry is English.
    """
    held = given_release(released)
    beside, others = given_log(original, held), given_log(control)
    if beside is not None:
        check_apart(beside, others, person)
    elif others is not None:
        raise ParameterError("control-held-against-original", parameter="control")
    with spoken(language):
        return _made(subject_of(held, beside, files_of(files), account, progress, others, person))


def write(made: Dossier, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a dossier as a page (.html) or as Markdown (.md), whole or not at all; the owner's for the owner alone.

    A file that is there is replaced only with ``overwrite``.
    """
    text = as_markdown(made) if check_dossier(path) == "markdown" else as_html(made)
    with atomic_target(path, private=made.owner_only, overwrite=overwrite) as file:
        file.write(text.encode("utf-8", "replace"))


def write_registry(made: Dossier, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the record for the registry of deployments; :class:`OutputError` where nothing is proven."""
    if made.registry is None:
        raise OutputError("nothing-proven-release-nothing", path=os.fspath(path))
    with atomic_target(path, overwrite=overwrite) as file:
        file.write(made.registry.encode("utf-8", "replace"))


def check_dossier(path: str | os.PathLike[str]) -> str:
    """Before any work: return "html" or "markdown"; :class:`OutputError` if the file cannot be written."""
    suffix = PurePath(path).suffix.lower()
    if suffix not in (*_HTML, *_MARKDOWN):
        raise OutputError("dossier-page-html-markdown", path=os.fspath(path))
    check_writable(path)
    return "markdown" if suffix in _MARKDOWN else "html"


def _made(subject: Subject) -> Dossier:
    owner = subject.attacked
    method = short(subject.told.method, 80)
    title = capital(gettext("dossier of an event log, released with {method}", method=method))
    if owner is not None and owner.owner.name:
        title = gettext("{log}: dossier of an event log, released with {method}", log=owner.owner.name, method=method)
    return Dossier(
        title=title,
        parts=(
            answer(subject),
            dpia(subject),
            risks(subject),
            nist(subject),
            registry(subject),
            recipient(subject),
            output_check(subject),
            questions(),
        ),
        owner_only=owner is not None,
        tone=subject.decision.tone,
        language=current(),
        registry=record(subject),
    )

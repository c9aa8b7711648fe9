"""Who confirmed what of a release, and when: kept beside its files, and written into its dossier."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Collection
from pathlib import Path

from veilog._files import atomic_target
from veilog._plain import from_plain, to_plain
from veilog.report.decision import decided
from veilog.report.dossier import Dossier, Signature, signed
from veilog.report.dossier import write as write_dossier
from veilog.report.explorer import clean, short
from veilog.web.jobs.problems import Problem
from veilog.web.jobs.results import ReleasedLog
from veilog.web.work.releasing import DOSSIER, STRUCTURE

_SIGNED = "signed.json"
_NAME = 200
"""Letters of a name."""


def signature_in(out: Path) -> Signature | None:
    """Return who confirmed what of the release in this folder; None where nobody did."""
    with contextlib.suppress(OSError, ValueError):
        return from_plain(Signature, json.loads((out / _SIGNED).read_text()))
    return None


def stated(made: ReleasedLog) -> frozenset[str]:
    """Return the codes of the conditions that the data owner stated when asking for the release."""
    return frozenset(condition.code for condition in made.guarantee.conditions if condition.said_by == "owner")


def sign(out: Path, made: ReleasedLog, name: str, ticked: Collection[str]) -> Signature:
    """Keep that somebody of this name confirmed these statements, and write the dossier anew with that.

    The signature covers what the data owner stated in the settings. Nothing is asked of the log.
    """
    who = short(clean(name).strip(), _NAME)
    if not who:
        raise Problem(400, "signature-without-name")
    asked = (c.code for c in decided(made.known, made.cases, made.owner).checks if c.state == "to-confirm")
    codes = tuple(code for code in asked if code in ticked or code in stated(made))
    given = Signature(who, datetime.datetime.now(datetime.UTC).date().isoformat(), codes)
    with atomic_target(out / _SIGNED) as file:
        file.write(json.dumps(to_plain(given)).encode())
    if (out / STRUCTURE).exists():
        plain = from_plain(Dossier, json.loads((out / STRUCTURE).read_text()))
        write_dossier(signed(plain, given), out / DOSSIER, overwrite=True)
    return given

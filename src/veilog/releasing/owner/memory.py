"""Which logs were released or asked before without a ledger, so that the second time is noticed.

Python remembers while it runs. The command remembers in a file of its user, by digests under a key that is in that file
alone: somebody who has a log can tell whether it is meant, and the file tells nothing else but when.
"""

from __future__ import annotations

import contextlib
import datetime
import hmac
import json
import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

from veilog._files import atomic_target
from veilog.errors import VeilogError
from veilog.ledger.accounts import Account
from veilog.ledger.fingerprints import Data, fingerprint
from veilog.releasing.owner.notes import UNBOUNDED, accountable, is_of_account, namesakes
from veilog.releasing.result import Release

__all__ = ["asked_before", "noticed", "remembered"]

_HERE: dict[str, Any] = {"key": secrets.token_hex(32), "seen": {}}
_MOST = 10_000
"""Logs that are remembered; the longest ago are forgotten."""


def noticed(released: Release, log: Data, place: Path | None = None) -> Release:
    """Return a release with a note for the owner if the log was released before without a ledger, and remember it: in
    this file, or while this process runs. Of one in a ledger the note is about accounts that it may belong to."""
    if released.entry is not None:
        with contextlib.suppress(VeilogError):  # it is paid for: a ledger that cannot be read now must not lose it
            return _beside_others(released, released.entry.account())
        return released
    proven = released.guarantee.proven
    if any(reason.startswith("seeded") for reason in released.guarantee.reasons):
        return released
    bounded = proven and not released.as_published
    note = asked_before(log, released.guarantee.delta, place, proven=proven, bounded=bounded)
    if note is None:
        return released
    others = (other for other in released.owner_only.notes if not is_of_account(other))
    return replace(released, owner_only=replace(released.owner_only, notes=(*others, note)))


def _beside_others(released: Release, account: Account) -> Release:
    """The release with a note, before all others, that its account is new beside others of the same name."""
    made = [entry for entry in account.entries if entry.state != "withdrawn"]
    if len(made) > 1 or not account.namesakes:
        return released
    notes = (namesakes(account), *released.owner_only.notes)
    return replace(released, owner_only=replace(released.owner_only, notes=notes))


def asked_before(
    log: Data, delta: float | None, place: Path | None = None, *, proven: bool = True, bounded: bool = True
) -> str | None:
    """Return a note for the owner if the log was released or asked before without a ledger, and remember that it was
    now: in this file, or while this process runs. ``delta`` is what was spent now, beside an epsilon, if anything
    ``bounded`` it beforehand and the guarantee is ``proven``."""
    held = _HERE if place is None else _read(place)
    mark = hmac.new(bytes.fromhex(held["key"]), fingerprint(log), "sha256").hexdigest()
    before = held["seen"].pop(mark, None)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    times, last_time, without = before or (0, now, 0)
    held["seen"][mark] = [times + 1, now, without + (not proven)]
    held["seen"] = dict(list(held["seen"].items())[-_MOST:])
    if place is not None:
        _write(place, held)
    if before is None:
        return None
    often = "once" if times == 1 else f"{times} times"
    last = datetime.datetime.fromisoformat(last_time).astimezone(datetime.UTC)
    unproven = f" ({without} without a proven guarantee)" if without else ""
    # A ledger with a budget refuses what nothing bounds, so it is no advice after such a release.
    advice = f"{accountable(delta or 0)} keeps account of what is to come." if bounded else UNBOUNDED
    return (
        f"This log was released or asked {often} before without a ledger{unproven}, last on {last:%Y-%m-%d at %H:%M} "
        f"UTC: what that cost adds up. {advice}"
    )


def remembered() -> Path:
    """Return where the command remembers: in the folder for the state of its user's programs."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "veilog" / "released.json"


def _read(place: Path) -> dict[str, Any]:
    """What is remembered; nothing where the file is not there or not ours."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        held = json.loads(place.read_text())
        bytes.fromhex(held["key"])
        seen = {
            str(mark): [int(times), str(last), *map(int, more)] for mark, (times, last, *more) in held["seen"].items()
        }
        seen = {mark: [*kept, 0][:3] for mark, kept in seen.items()}  # of before releases without proof were counted
        return {"key": held["key"], "seen": seen}
    return {"key": secrets.token_hex(32), "seen": {}}


def _write(place: Path, held: dict[str, Any]) -> None:
    """Keep it, for its user alone; where that cannot be, nothing is remembered."""
    with contextlib.suppress(OSError, VeilogError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_target(place, private=True) as file:
            file.write(json.dumps(held).encode())

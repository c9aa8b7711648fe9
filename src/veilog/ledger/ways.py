"""What a release counts as: its part of the cases, the way in which its log was read, and what a case is in that."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from veilog.logs.eventlog import CASE
from veilog.privacy.part import RULES_OF_TIME, SPAN

MARK = "\x1f"
"""Between a part and a way."""

_OF_ANY = frozenset({CASE, "concept:name"})
"""Columns that are called so in every log of these formats, whatever its cases are."""


def as_read(part: object | None, way: str) -> str | None:
    """Return what a part counts as where its log was read in this way; empty if nobody knows."""
    return None if part is None else f"{part}{MARK}{way}" if way else str(part)


def named(part: str) -> str:
    """Return the part alone of what it counts as."""
    return part.partition(MARK)[0]


def kind_of_case(way: str) -> str:
    """Return what a case is in a log that was read in this way: the column, or the type of objects, that tells cases.

    Where nothing names it (a CSV file that veilog wrote, an XES file of another program, a log that was never read), it
    is :data:`CASE`, a kind of its own: such a log may be of visits or of patients, whose releases do not add up.
    """
    return _kind(_told(way)) or CASE


def _kind(said: dict[str, Any]) -> str | None:
    """What a case is by a way, or by that of the log before, which a file of ours names no column of."""
    kind = said.get("object type") or said.get("case")
    if isinstance(kind, str) and kind not in _OF_ANY:
        return kind
    return _kind(said["before"]) if isinstance(said.get("before"), dict) else None


def differences(before: str, now: str) -> str:
    """Return in words what differs between two ways."""
    one, other = _told(before), _told(now)
    names = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    return "; ".join(f"{name}: {one.get(name)!r}, now {other.get(name)!r}" for name in names)


def is_of_time(rule: str) -> bool:
    """Return whether a rule looks at the starts of cases; an attribute that is called so is spelled otherwise."""
    return rule in RULES_OF_TIME or rule == SPAN


def of_rule(rule: str, way: str) -> str | None:
    """Return of a way what decides which part of this rule a case is in. None where no two such parts are known to be
    without a case in both: some times had a zone and others not, so where a case was depends on its own spelling."""
    said = _told(way)
    if is_of_time(rule) and _partly(said):
        return None
    zones = said.pop("zones", None)
    if zones is None:
        return way
    if not is_of_time(rule):
        return json.dumps(said, sort_keys=True)
    return way


def _partly(said: dict[str, Any]) -> bool:
    """Whether some times had a zone and others not; also where that is not known, of several logs before."""
    before = said.get("before")
    if said.get("zones") == "partly" or before is None:
        return said.get("zones") == "partly"
    return not isinstance(before, dict) or _partly(before)


def _told(way: str) -> dict[str, Any]:
    """What a way says; nothing where it is empty or another program's."""
    return dict(_parsed(way))


@lru_cache(maxsize=256)
def _parsed(way: str) -> dict[str, Any]:
    try:
        found = json.loads(way)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

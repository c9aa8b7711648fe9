"""Provenance of a file that was made of another: how the other file was read.

Releases of the file take that for granted, too. The provenance is one attribute of the log, in every format that has a
place for attributes; CSV has none. Only codes that veilog itself writes are taken from it. Other text in a file never
reaches the statements of a release about itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from veilog.logs.eventlog import ACTIVITY, CASE, LIFECYCLE, TIMESTAMP, EventLog
from veilog.logs.findings import DUPLICATES
from veilog.logs.input.activity_mapping import GROUPED
from veilog.logs.input.formats import BY_ADD_ON
from veilog.logs.metadata import Attribute, Metadata
from veilog.logs.variants import Variants
from veilog.messages import Message, message_from

_KEY = "veilog:read"
ATTRIBUTES_TOGETHER = Message("read-together-attributes")
UNKNOWN = Message("read-together-unknown")
_FIELDS = {
    **{one.code: set[str]() for one in (DUPLICATES, ATTRIBUTES_TOGETHER, UNKNOWN)},
    BY_ADD_ON: {"name", "package"},
    GROUPED: {"how", "digest"},
}
"""Codes that a file may contain about its reading, and the fields of each."""
_LONGEST_VALUE = 400
_LONGEST_WAY = 10_000
_NESTED = re.compile(r"[{\[]")
_MOST_NESTED = 100
_OWN = frozenset({CASE, ACTIVITY, TIMESTAMP, LIFECYCLE})
"""Columns whose values were read one by one, under any name."""
_USUAL = {"case": (CASE, "concept:name"), "timestamp": ("time:timestamp",), "zones": ("told", "missing")}
"""Choices without information about a file: usual columns, and zones of times."""


@dataclass(frozen=True)
class Provenance:
    """Record of how the log behind a file was read."""

    together: tuple[Message, ...] = ()
    """Rules as in :attr:`veilog.logs.eventlog.EventLog.read_together`; the other fields follow it, too."""
    attributes: tuple[Message, ...] = ()
    mapped: tuple[Message, ...] = ()
    way: str = ""

    def __add__(self, other: Provenance) -> Provenance:
        """Return the provenance of both, as of files that are one log."""
        ways = dict.fromkeys(way for way in (self.way, other.way) if way)
        return Provenance(
            tuple(dict.fromkeys([*self.together, *other.together])),
            tuple(dict.fromkeys([*self.attributes, *other.attributes])),
            tuple(dict.fromkeys([*self.mapped, *other.mapped])),
            json.dumps(list(ways)) if len(ways) > 1 else "".join(ways),
        )

    def by(self, columns: Iterable[str]) -> Provenance:
        """Return the same if these columns define the events of the log.

        They give the cases, activities and times. The way attributes were read matters to every query if attributes are
        among the columns.
        """
        return self if _OWN.issuperset(columns) else replace(self, together=(*self.together, *self.attributes))

    def of(self, log: EventLog) -> EventLog:
        """Return a log that was read from such a file, with the same provenance."""
        together = tuple(dict.fromkeys([*log.read_together, *self.together]))
        attributes = tuple(dict.fromkeys([*log.attributes_read_together, *self.attributes]))
        return replace(log, read_together=together, attributes_read_together=attributes, mapped=self.mapped)

    def of_variants(self, variants: Variants) -> Variants:
        """Return variants that were read from such a file, with the same provenance."""
        together = tuple(dict.fromkeys([*variants.read_together, *self.together]))
        return replace(variants, read_together=together, mapped=self.mapped)


def add_provenance(log: EventLog) -> EventLog:
    """Return the log as it is written: its metadata contain its provenance."""
    found = Provenance(log.read_together, log.attributes_read_together, log.mapped, _distinctive_settings(log.read_as))
    if found == Provenance():
        return log
    said = {name: [one.to_json() for one in getattr(found, name)] for name in ("together", "attributes", "mapped")}
    attribute = Attribute(_KEY, json.dumps(said | {"way": found.way}, ensure_ascii=False), "string")
    return replace(log, metadata=replace(log.metadata, attributes=(*log.metadata.attributes, attribute)))


def split_metadata(metadata: Metadata) -> tuple[Metadata, Provenance]:
    """Return the metadata of a log without the provenance, and the provenance."""
    kept = tuple(attribute for attribute in metadata.attributes if attribute.key != _KEY)
    found = Provenance()
    for attribute in metadata.attributes:
        if attribute.key == _KEY:
            found += _parse_provenance(attribute.value)
    return (metadata if len(kept) == len(metadata.attributes) else replace(metadata, attributes=kept)), found


def _distinctive_settings(way: str) -> str:
    """Return a way of reading without the usual choices; empty if nothing is left."""
    try:
        said: Any = json.loads(way) if way else {}
    except ValueError:
        return way
    if not isinstance(said, dict):
        return way
    left = {name: what for name, what in said.items() if what not in _USUAL.get(name, ())}
    if left.keys() == {"before"}:  # a file made of such a file, which changes nothing
        left = left["before"]
    return json.dumps(left, sort_keys=True) if left else ""


def _parse_provenance(text: object) -> Provenance:
    said = _parse_json(text)
    if not isinstance(said, dict):
        return Provenance((UNKNOWN,))
    together, attributes, mapped = (_known_messages(said.get(name)) for name in ("together", "attributes", "mapped"))
    way = said.get("way", "")
    if way != "" and not _is_way(way):
        together, way = (*together, UNKNOWN), ""
    if any(one.code != GROUPED for one in mapped):
        together, mapped = (*together, UNKNOWN), ()
    return Provenance(tuple(dict.fromkeys(together)), attributes, mapped, way)


def _parse_json(text: object) -> Any:
    """Return the content of a text in JSON, or None.

    It is None for a text that is no JSON, and for one with halves of characters, which no file can hold.
    """
    try:
        said = json.loads(text) if isinstance(text, str) else None
        json.dumps(said, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return None
    return said


def _is_way(way: object) -> bool:
    """Return True if this is a way of reading, or a list of ways, in veilog's form."""
    if not isinstance(way, str) or len(way) > _LONGEST_WAY or len(_NESTED.findall(way)) > _MOST_NESTED:
        return False
    said = _parse_json(way)
    return isinstance(said, dict) or (isinstance(said, list) and all(isinstance(one, str) for one in said))


def _known_messages(messages: object) -> tuple[Message, ...]:
    """Return these messages; one that veilog does not write becomes ``UNKNOWN``."""
    return tuple(map(_message, messages)) if isinstance(messages, list) else (UNKNOWN,)


def _message(said: object) -> Message:
    try:
        found = message_from(said) if isinstance(said, dict) else UNKNOWN
    except ValueError:
        return UNKNOWN
    fits = all(isinstance(value, str) and len(value) <= _LONGEST_VALUE for value in found.values.values())
    return found if fits and _FIELDS.get(found.code) == {*found.values} else UNKNOWN

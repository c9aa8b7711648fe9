"""What an XES file says about itself beside its events: extensions, globals, classifiers, attributes of the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["ARTIFICIAL_TIMES", "Attribute", "Metadata", "extensions_of"]

ARTIFICIAL_TIMES = "veilog:artificial_timestamps"
"""Log attribute (boolean): the timestamps carry the order of events and nothing else."""

_EXTENSIONS = (
    ("Concept", "concept", "http://www.xes-standard.org/concept.xesext"),
    ("Lifecycle", "lifecycle", "http://www.xes-standard.org/lifecycle.xesext"),
    ("Organizational", "org", "http://www.xes-standard.org/org.xesext"),
    ("Time", "time", "http://www.xes-standard.org/time.xesext"),
)


def extensions_of(keys: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
    """The standard extensions that define attributes with these keys, as (name, prefix, uri)."""
    prefixes = {key.partition(":")[0] for key in keys if ":" in key}
    return tuple(extension for extension in _EXTENSIONS if extension[1] in prefixes)


@dataclass(frozen=True)
class Attribute:
    """One XES attribute: key, value, type and children.

    ``type`` is one of string, date, int, float, boolean, id, list, container; ``value`` is ``None`` for the last two,
    ``datetime`` (UTC) for date. The values of a list are its ``children``.
    """

    key: str
    value: Any
    type: str
    children: tuple[Attribute, ...] = ()


@dataclass(frozen=True)
class Metadata:
    """What an XES file says about itself, kept so that writing loses nothing."""

    features: str | None = None
    version: str | None = None
    extensions: tuple[tuple[str, str, str], ...] = ()
    """(name, prefix, uri), in the order of the file."""
    globals: tuple[tuple[str, tuple[Attribute, ...]], ...] = ()
    """(scope, attributes)."""
    classifiers: tuple[tuple[str, str, str], ...] = ()
    """(name, keys as written, scope); scope is "event" where the file gives none."""
    attributes: tuple[Attribute, ...] = ()

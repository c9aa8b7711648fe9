"""What an XES file says about itself beside its events: extensions, globals, classifiers, attributes of the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ARTIFICIAL_TIMES", "Attribute", "Metadata"]

ARTIFICIAL_TIMES = "veilog:artificial_timestamps"
"""Log attribute (boolean): the timestamps carry the order of events and nothing else."""


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

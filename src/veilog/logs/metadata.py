"""Metadata of an XES file: extensions, globals, classifiers and log attributes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

ARTIFICIAL_TIMES = "veilog:artificial_timestamps"
"""Log attribute (boolean): the timestamps carry the order of events alone."""

_EXTENSIONS = (
    ("Concept", "concept", "http://www.xes-standard.org/concept.xesext"),
    ("Lifecycle", "lifecycle", "http://www.xes-standard.org/lifecycle.xesext"),
    ("Organizational", "org", "http://www.xes-standard.org/org.xesext"),
    ("Time", "time", "http://www.xes-standard.org/time.xesext"),
)


def extensions_of(keys: Iterable[str]) -> tuple[tuple[str, str, str], ...]:
    """Return the standard extensions that define these keys, as (name, prefix, uri)."""
    prefixes = {key.partition(":")[0] for key in keys if ":" in key}
    return tuple(extension for extension in _EXTENSIONS if extension[1] in prefixes)


@dataclass(frozen=True)
class Attribute:
    """One XES attribute: key, value, type and children.

    ``type`` is one of string, date, int, float, boolean, id, list, container. ``value`` is ``None`` for the last two,
    ``datetime`` (UTC) for date. The values of a list are its ``children``.
    """

    key: str
    value: Any
    type: str
    children: tuple[Attribute, ...] = ()


@dataclass(frozen=True)
class Metadata:
    """Metadata of an XES file, kept so that writing loses nothing."""

    features: str | None = None
    version: str | None = None
    extensions: tuple[tuple[str, str, str], ...] = ()
    """Triples of (name, prefix, uri), in the order of the file."""
    globals: tuple[tuple[str, tuple[Attribute, ...]], ...] = ()
    """Pairs of (scope, attributes)."""
    classifiers: tuple[tuple[str, str, str], ...] = ()
    """Triples of (name, keys as written, scope); the default of scope is "event"."""
    attributes: tuple[Attribute, ...] = ()


def metadata_to(metadata: Metadata) -> dict[str, Any]:
    """Return the metadata as JSON can hold it, for :func:`metadata_from`."""
    return {
        "features": metadata.features,
        "version": metadata.version,
        "extensions": metadata.extensions,
        "globals": [[scope, [_attribute_to(a) for a in attributes]] for scope, attributes in metadata.globals],
        "classifiers": metadata.classifiers,
        "attributes": [_attribute_to(a) for a in metadata.attributes],
    }


def _attribute_to(attribute: Attribute) -> list[Any]:
    value = attribute.value.isoformat() if isinstance(attribute.value, datetime) else attribute.value
    return [attribute.key, value, attribute.type, [_attribute_to(child) for child in attribute.children]]


def metadata_from(facts: dict[str, Any]) -> Metadata:
    """Return the metadata that :func:`metadata_to` wrote.

    Raises KeyError, ValueError and the like for anything else.
    """
    return Metadata(
        features=facts["features"],
        version=facts["version"],
        extensions=tuple((name, prefix, uri) for name, prefix, uri in facts["extensions"]),
        globals=tuple((scope, tuple(_attribute_from(a) for a in found)) for scope, found in facts["globals"]),
        classifiers=tuple((name, keys, scope) for name, keys, scope in facts["classifiers"]),
        attributes=tuple(_attribute_from(a) for a in facts["attributes"]),
    )


def _attribute_from(facts: list[Any]) -> Attribute:
    key, value, kind, children = facts
    if kind == "date" and isinstance(value, str):
        value = datetime.fromisoformat(value)
    return Attribute(key, value, kind, tuple(_attribute_from(child) for child in children))

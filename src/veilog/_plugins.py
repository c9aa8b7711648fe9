"""Add-ons: methods, measures and readers of other packages, found by their entry points.

An add-on that cannot be loaded is warned of and left out; it never stops what people came for.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

__all__ = ["AddOn", "add_ons"]


@dataclass(frozen=True)
class AddOn:
    """One add-on: its name, what its entry point names, and the package that brings it."""

    name: str
    value: Any
    package: str


def add_ons(group: str, kind: type) -> tuple[AddOn, ...]:
    """Return the add-ons of a group of entry points that can be loaded and are of this kind, in the order of names."""
    found = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
        try:
            value = point.load()
        except Exception as problem:  # noqa: BLE001 - an add-on may raise anything at all
            _left_out(point.name, package, f"it cannot be loaded: {type(problem).__name__}: {problem}")
            continue
        if isinstance(value, kind):
            found.append(AddOn(point.name, value, package))
        else:
            _left_out(point.name, package, f"{point.value} is no {kind.__name__}")
    return tuple(found)


def _left_out(name: str, package: str, why: str) -> None:
    warnings.warn(f"The add-on {name!r} of {package} is left out: {why}.", RuntimeWarning, stacklevel=4)

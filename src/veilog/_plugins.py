"""Names and what they stand for: each in a module that is imported when it is asked for, or added by another package.

Another distribution adds one by an entry point. What it adds can be broken; that is said in a warning that names the
distribution, and what is our own works on.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

__all__ = ["Registry", "distribution"]

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping of our own names (``module:attribute``) in their order, and then those of the entry points of a group.

    Nothing is imported before it is asked for. A name of ours cannot be taken by another distribution.
    """

    def __init__(self, kind: type[T], group: str, own: Mapping[str, str]) -> None:
        self._kind, self._group, self._own = kind, group, own
        self._held: dict[str, T] = {}
        self._added: dict[str, tuple[T, str]] | None = None

    def __getitem__(self, name: str) -> T:
        if name not in self._own:
            return self._others()[name][0]
        if name not in self._held:
            module, _, attribute = self._own[name].partition(":")
            self._held[name] = getattr(importlib.import_module(module), attribute)
        return self._held[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._others()

    def __len__(self) -> int:
        return len(self._own) + len(self._others())

    def added_by(self, name: str) -> str:
        """Return the distribution that adds this name, with its version; empty for our own."""
        return "" if name in self._own else self._others()[name][1]

    def _others(self) -> dict[str, tuple[T, str]]:
        if self._added is None:
            self._added = {}
            for point in sorted(entry_points(group=self._group), key=lambda point: (point.name, distribution(point))):
                by = distribution(point)
                try:
                    self._added[point.name] = self.load(point), by
                except Exception as error:  # noqa: BLE001 - whatever another package does, ours goes on without it
                    why = f"{type(error).__name__}: {error}"
                    warnings.warn(f"{by} adds {point.name!r} to {self._group}, which is left out: {why}", stacklevel=3)
        return self._added

    def load(self, point: EntryPoint) -> T:
        """Return what an entry point names, or raise with why it cannot be used."""
        if point.name in self._own:
            raise ValueError("veilog itself has one of this name")
        if point.name in (self._added or {}):
            raise ValueError("another distribution adds one of this name")
        found = point.load()
        if not isinstance(found, self._kind):
            raise TypeError(f"it is a {type(found).__name__}, not a {self._kind.__name__}")
        if getattr(found, "name", point.name) != point.name:
            raise ValueError(f"it calls itself {getattr(found, 'name', None)!r}")
        return found


def distribution(point: EntryPoint) -> str:
    """Return the name and version of the package that brings an entry point."""
    return "an unknown distribution" if point.dist is None else f"{point.dist.name} {point.dist.version}"

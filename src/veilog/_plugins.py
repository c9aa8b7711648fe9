"""Add-ons of other packages, by entry points, and names that load at first use.

If an add-on is broken, a warning names its package, and veilog works on without it.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True)
class AddOn:
    """An add-on: its name, its entry point's object, and its package with version."""

    name: str
    value: Any
    package: str


def add_ons(group: str, kind: type, own: Mapping[str, str] | None = None) -> tuple[AddOn, ...]:
    """Return the add-ons of a group of entry points that load and are of this kind.

    If veilog has names of its ``own``, an add-on cannot take these, and must call itself by its entry point's name.
    """
    from importlib.metadata import entry_points  # here, as it loads what reads e-mail

    found: dict[str, AddOn] = {}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, _package(point))):
        package = _package(point)
        try:
            found[point.name] = AddOn(
                point.name, _load(point, kind, (*(own or ()), *found), named=own is not None), package
            )
        except Exception as error:  # noqa: BLE001 - whatever another package does, veilog goes on without it
            why = f"{type(error).__name__}: {error}"
            warnings.warn(f"{package} adds {point.name!r} to {group}, which is left out: {why}", stacklevel=3)
    return tuple(found.values())


def _load(point: EntryPoint, kind: type, taken: tuple[str, ...], *, named: bool) -> Any:
    if point.name in taken:
        raise ValueError("there is another of this name")
    found = point.load()
    if not isinstance(found, kind):
        raise TypeError(f"it is a {type(found).__name__}, not a {kind.__name__}")
    if named and getattr(found, "name", point.name) != point.name:
        raise ValueError(f"it calls itself {getattr(found, 'name', None)!r}")
    return found


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"


class Registry(Mapping[str, T], Generic[T]):
    """A mapping of veilog's names (``module:attribute``), then those of add-ons.

    It imports nothing before it is needed. Another package cannot take a name of veilog.
    """

    def __init__(self, kind: type[T], group: str, own: Mapping[str, str]) -> None:
        self._kind, self._group, self._own = kind, group, own
        self._held: dict[str, T] = {}
        self._added: dict[str, AddOn] | None = None

    def __getitem__(self, name: str) -> T:
        if name not in self._held:
            self._held[name] = self.load(name)
        return self._held[name]

    def load(self, name: str) -> T:
        """Return the object of a name; called once for each name."""
        if name not in self._own:
            added: T = self.others[name].value
            return added
        module, _, attribute = self._own[name].partition(":")
        own: T = getattr(importlib.import_module(module), attribute)
        return own

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self.others

    def __len__(self) -> int:
        return len(self._own) + len(self.others)

    def added_by(self, name: str) -> str:
        """Return the package with version that adds this name; empty for veilog's own."""
        return "" if name in self._own else self.others[name].package

    @property
    def others(self) -> Mapping[str, AddOn]:
        """Add-ons of other packages, by name."""
        if self._added is None:
            self._added = {add_on.name: add_on for add_on in add_ons(self._group, self._kind, self._own)}
        return self._added

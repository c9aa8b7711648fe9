"""The methods by name: ours, each registered in a line, and those of other packages (entry points ``veilog.methods``).

A method is imported when it is first looked at.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from veilog._plugins import add_ons
from veilog.errors import ParameterError
from veilog.methods.method import Method

__all__ = ["METHODS", "method_named"]

GROUP = "veilog.methods"

_OURS = {
    "evolve": "veilog.methods.evolve:EVOLVE",
    "travas": "veilog.methods.travas:TRAVAS",
    "pripel": "veilog.methods.pripel:PRIPEL",
    "laplace": "veilog.methods.laplace:LAPLACE",
    "sacofa": "veilog.methods.sacofa:SACOFA",
    "df-laplace": "veilog.methods.df_laplace:DF_LAPLACE",
    "sapa": "veilog.methods.sapa:SAPA",
    "utravas": "veilog.methods.travas:UTRAVAS",
    "travag": "veilog.methods.travag:TRAVAG",
    "libra": "veilog.methods.libra:LIBRA",
    "amun": "veilog.methods.amun:AMUN",
    "tlkc": "veilog.methods.tlkc:TLKC",
    "pretsa": "veilog.methods.pretsa:PRETSA",
}
"""In the order in which they are worth a look."""


class Registry(Mapping[str, Method]):
    """Methods by name, loaded one by one."""

    def __init__(self, ours: Mapping[str, str]) -> None:
        self._ours = ours
        self._loaded: dict[str, Method] = {}

    @cached_property
    def _others(self) -> dict[str, Method]:
        """The methods of other packages, which know their package."""
        found: dict[str, Method] = {}
        for add_on in add_ons(GROUP, Method):
            method: Method = add_on.value
            if method.name in self._ours or method.name in found:
                warnings.warn(
                    f"The method {method.name!r} of {add_on.package} is left out: there is another of this name.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            else:
                found[method.name] = replace(method, package=add_on.package)
        return found

    def __getitem__(self, name: str) -> Method:
        if name not in self._ours:
            return self._others[name]
        if name not in self._loaded:
            module, _, attribute = self._ours[name].partition(":")
            self._loaded[name] = getattr(importlib.import_module(module), attribute)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._ours, *self._others))

    def __len__(self) -> int:
        return len(self._ours) + len(self._others)


METHODS: Mapping[str, Method] = Registry(_OURS)


def method_named(name: str) -> Method:
    """Return the method of this name, or raise a :class:`ParameterError` that lists them all."""
    if name not in METHODS:
        raise ParameterError(
            f"There is no method {name!r}.", parameter="method", advice=f"Methods: {', '.join(METHODS)}."
        )
    return METHODS[name]

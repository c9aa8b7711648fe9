"""The methods by name: ours, each registered in a line, and those of other packages (entry points ``veilog.methods``).

A method is imported when it is first looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from veilog._plugins import Registry
from veilog.errors import ParameterError, meant
from veilog.methods.method import Method

GROUP = "veilog.methods"

_OURS = {
    "evolve": "veilog.methods.evolve:EVOLVE",
    "travas": "veilog.methods.travas:TRAVAS",
    "pripel": "veilog.methods.pripel:PRIPEL",
    "laplace": "veilog.methods.laplace:LAPLACE",
    "sacofa": "veilog.methods.sacofa:SACOFA",
    "df-laplace": "veilog.methods.df_laplace:DF_LAPLACE",
    "sapa": "veilog.methods.sapa:SAPA",
    "dpim": "veilog.methods.dpim:DPIM",
    "utravas": "veilog.methods.travas:UTRAVAS",
    "travag": "veilog.methods.travag:TRAVAG",
    "libra": "veilog.methods.libra:LIBRA",
    "amun": "veilog.methods.amun:AMUN",
    "tlkc": "veilog.methods.tlkc:TLKC",
    "pretsa": "veilog.methods.pretsa:PRETSA",
}
"""In the order in which they are worth a look."""


class Methods(Registry[Method]):
    """The methods by name; those of other packages know their package."""

    def load(self, name: str) -> Method:
        """Return the method of this name."""
        return replace(super().load(name), package=self.added_by(name))


METHODS: Mapping[str, Method] = Methods(Method, GROUP, _OURS)


def method_named(name: str) -> Method:
    """Return the method of this name, or raise a :class:`ParameterError` that lists them all."""
    if not isinstance(name, str):
        of_suggestion = "veilog.release(log, suggestion.method, epsilon=suggestion.epsilon_left, ...)"
        raise ParameterError(
            "method-is-suggestion" if hasattr(name, "epsilon_left") else "method-name-not-text",
            parameter="method",
            kind=type(name).__name__,
            of_suggestion=of_suggestion,
        )
    if name not in METHODS:
        raise ParameterError(
            "method-unknown", parameter="method", name=name, meant=meant(name, METHODS), names=", ".join(METHODS)
        )
    return METHODS[name]

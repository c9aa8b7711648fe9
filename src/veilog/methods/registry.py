"""Methods by name, from ``methods.toml`` or the entry points of other packages.

A method is imported when it is first looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from veilog._plugins import Registry
from veilog.errors import ParameterError, meant
from veilog.methods.method import Method, our_methods

GROUP = "veilog.methods"


class Methods(Registry[Method]):
    """The methods by name; those of other packages know their package."""

    def load(self, name: str) -> Method:
        """Return the method of this name."""
        return replace(super().load(name), package=self.added_by(name))


METHODS: Mapping[str, Method] = Methods(Method, GROUP, {name: facts["at"] for name, facts in our_methods().items()})
"""Methods by name, in the order in which they are worth a look."""


def method_named(name: str) -> Method:
    """Return the method of this name; a :class:`ParameterError` lists all names."""
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

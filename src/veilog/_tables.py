"""Tables of facts that stand as TOML files beside the code that they are about."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def tables_of(package: str, name: str) -> dict[str, Any]:
    """Return what the TOML file of this name in a package has; a list of texts or numbers is a tuple."""
    found: dict[str, Any] = _with_tuples(tomllib.loads((files(package) / f"{name}.toml").read_text(encoding="utf-8")))
    return found


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_tuples(item) for name, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value

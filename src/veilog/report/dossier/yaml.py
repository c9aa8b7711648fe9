"""YAML for plain values, so that any reader of YAML 1.1 or 1.2 reads them back: strings in double quotes or as literal
blocks, numbers with a point, and a comment where somebody has to fill in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Yours", "written"]


@dataclass(frozen=True)
class Yours:
    """A value that somebody has to look at, and what to put there."""

    value: object
    hint: str


def written(value: Mapping[str, object]) -> str:
    """Return the YAML of a mapping."""
    return "\n".join(_mapping(value, 0)) + "\n"


def _mapping(values: Mapping[str, object], depth: int) -> Iterator[str]:
    for key, value in values.items():
        yield from _entry(f"{'  ' * depth}{key}:", value, depth)


def _entry(start: str, value: object, depth: int) -> Iterator[str]:
    """Lines of one value behind its key or dash."""
    if isinstance(value, Yours):
        comment = f"  # yours to fill: {value.hint}"
        first, *others = _entry(start, value.value, depth)
        yield first + comment
        yield from others
    elif isinstance(value, Mapping):
        yield start
        yield from _mapping(value, depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield start
        for one in value:
            if isinstance(one, Mapping):
                first, *others = _mapping(one, depth + 2)
                yield f"{'  ' * (depth + 1)}- {first.strip()}"
                yield from others
            else:
                yield from _entry(f"{'  ' * (depth + 1)}-", one, depth + 1)
    elif isinstance(value, str) and "\n" in value.strip():
        yield f"{start} |"
        yield from (f"{'  ' * (depth + 1)}{line}".rstrip() for line in value.strip().split("\n"))
    else:
        yield f"{start} {_scalar(value)}"


def _scalar(value: object) -> str:
    """A string in quotes, which JSON writes as YAML reads it; a number that YAML 1.1 takes for one."""
    if isinstance(value, str):
        return json.dumps(value.strip(), ensure_ascii=False)
    if isinstance(value, bool | int):
        return json.dumps(value)
    text = repr(float(value))  # type: ignore[arg-type]
    mantissa, e, power = text.partition("e")
    return text if not e else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power}"

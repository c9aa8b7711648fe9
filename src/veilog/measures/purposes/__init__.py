"""What a release is still good for: discovery, prediction, performance, conformance and attributes, each a purpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from veilog._plugins import Registry
from veilog.errors import ParameterError, meant
from veilog.measures.measure import Pair
from veilog.measures.purposes.purpose import Asked, Aspect, Grade, Judged, Judgement, Purpose, our_purposes

__all__ = ["PURPOSES", "Asked", "Aspect", "Grade", "Judged", "Judgement", "Purpose", "judge", "named"]

PURPOSES = Registry(Purpose, "veilog.purposes", {name: facts["at"] for name, facts in our_purposes().items()})
"""In the order in which they are judged; packages add their own by entry points of this group."""


def named(names: Sequence[str] | str) -> tuple[str, ...]:
    """Return these names of purposes, ``all`` as every one; :class:`ParameterError` for one that does not exist."""
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ParameterError("purpose-names-invalid", parameter="purposes", names=names, names_2=", ".join(PURPOSES))
    if "all" in names:
        return tuple(PURPOSES)
    if unknown := [name for name in names if name not in PURPOSES]:
        raise ParameterError(
            "purpose-unknown",
            parameter="purposes",
            unknown=unknown[0],
            meant=meant(unknown[0], PURPOSES),
            names=", ".join(PURPOSES),
        )
    return tuple(dict.fromkeys(names))


def judge(pair: Pair, names: Sequence[str], asked: Asked | None = None) -> dict[str, Judgement]:
    """Return what a release is worth for these purposes."""
    wanted = named(names)
    if not wanted:
        return {}
    from veilog.measures.purposes.sides import Sides  # not before there is something to judge

    asked = asked or Asked()
    sides = Sides.of_people(pair, asked.person)
    told = replace(asked, progress=pair.progress, person=sides.person or False)
    return {name: PURPOSES[name].judged(sides, told) for name in wanted}

"""Declare constraints on the order of activities: what each template means, and how a line of text states one."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from veilog.errors import InputError, ParameterError

COUNTED = ("existence", "absence", "exactly")
"""Templates of one activity and a number of times."""
SEVERAL = ("init", "end")
"""Templates that one of several activities meets."""
UNARY = (*COUNTED, *SEVERAL)
BINARY = (
    "responded existence",
    "response",
    "precedence",
    "succession",
    "chain response",
    "chain precedence",
    "not co-existence",
)
TEMPLATES = (*UNARY, *BINARY)

_LINE = re.compile(
    r"(?P<template>[A-Za-z][A-Za-z _-]*?)\s*(?P<times>\d*)\s*[\[(](?P<activities>.*)[\])]\s*(?P<rest>\|.*)?"
)
_PLAIN = {re.sub(r"[^a-z]", "", name): name for name in TEMPLATES} | {"noncoexistence": "not co-existence"}


class Automaton(NamedTuple):
    """A deterministic automaton over three kinds of events; it begins in state 0."""

    after: tuple[tuple[int, int, int], ...]
    """The state after another activity, the first of a constraint, and the second."""
    accepting: frozenset[int]
    """States in which a case may end."""


_AUTOMATA = {
    "init": Automaton(((2, 1, 2), (1, 1, 1), (2, 2, 2)), frozenset({1})),
    "end": Automaton(((0, 1, 0), (0, 1, 0)), frozenset({1})),
    "responded existence": Automaton(((0, 1, 2), (1, 1, 2), (2, 2, 2)), frozenset({0, 2})),
    "response": Automaton(((0, 1, 0), (1, 1, 0)), frozenset({0})),
    "precedence": Automaton(((0, 1, 2), (1, 1, 1), (2, 2, 2)), frozenset({0, 1})),
    "succession": Automaton(((0, 1, 3), (1, 1, 2), (2, 1, 2), (3, 3, 3)), frozenset({0, 2})),
    "chain response": Automaton(((0, 1, 0), (2, 2, 0), (2, 2, 2)), frozenset({0})),
    "chain precedence": Automaton(((0, 1, 2), (0, 1, 0), (2, 2, 2)), frozenset({0, 1})),
    "not co-existence": Automaton(((0, 1, 2), (1, 1, 3), (2, 3, 2), (3, 3, 3)), frozenset({0, 1, 2})),
}


@dataclass(frozen=True)
class Constraint:
    """A template with its activities; ``times`` only for those that count."""

    template: str
    activities: tuple[str, ...]
    times: int = 1

    def __post_init__(self) -> None:
        if self.template not in TEMPLATES:
            raise ParameterError(
                "constraint-template-unknown", parameter="model", template=self.template, names=", ".join(TEMPLATES)
            )
        needed = 1 if self.template in UNARY else 2
        several = self.template in SEVERAL and len(self.activities) > 0
        if len(self.activities) != needed and not several:
            code = "constraint-of-one-activity" if needed == 1 else "constraint-of-two-activities"
            raise ParameterError(code, parameter="model", value=self, template=self.template)
        if needed == 2 and self.activities[0] == self.activities[1]:
            raise ParameterError("constraint-activities-same", parameter="model", value=self)
        if self.times != 1 and self.template not in COUNTED:
            raise ParameterError("constraint-number-not-taken", parameter="model", value=self, template=self.template)
        if self.times < (0 if self.template == "exactly" else 1):
            raise ParameterError("constraint-times-out-of-range", parameter="model", value=self, times=self.times)

    def __str__(self) -> str:
        number = str(self.times) if self.template in COUNTED else ""
        return f"{self.template}{number}[{', '.join(self.activities)}]"

    @cached_property
    def automaton(self) -> Automaton:
        """The automaton that accepts the cases that keep it."""
        if self.template not in COUNTED:
            return _AUTOMATA[self.template]
        last = self.times + (self.template == "exactly")
        after = tuple((state, min(state + 1, last), state) for state in range(last + 1))
        accepting = range(self.times) if self.template == "absence" else [self.times]
        return Automaton(after, frozenset(accepting))

    def kind(self, activity: str) -> int:
        """Return the kind of event that an activity is to the automaton: 0 for those that it does not name."""
        if self.template in SEVERAL:
            return int(activity in self.activities)
        return self.activities.index(activity) + 1 if activity in self.activities else 0


def constraint_in(line: str, path: Path | None, number: int | None) -> Constraint:
    """Return the constraint that a line of text states, such as ``Response[A, B]`` or ``Existence2[A]``.

    An :class:`InputError` names the line where it states none, or one with conditions on data.
    """
    match = _LINE.fullmatch(line)
    if match is None:
        raise InputError("constraint-number-unknown", path=path, line=number, number=line)
    if (match["rest"] or "").replace("|", "").strip():
        raise InputError("constraint-condition-not-supported", path=path, line=number)
    activities = next(csv.reader([match["activities"]], skipinitialspace=True), [])
    return constraint_of(
        match["template"], tuple(name.strip() for name in activities), int(match["times"] or 1), path, number
    )


def constraint_of(
    template: str, activities: tuple[str, ...], times: int, path: Path | None, line: int | None
) -> Constraint:
    """Return a constraint by the name of its template, however that is spelled, or refuse it at its place."""
    name = _PLAIN.get(re.sub(r"[^a-z]", "", template.lower()), template)
    try:
        return Constraint(name, activities, times)
    except ParameterError as error:
        raise InputError(error.message, path=path, line=line) from error

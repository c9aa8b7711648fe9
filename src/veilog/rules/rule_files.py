"""Declare constraints and other rules: templates, and the entries of files."""

from __future__ import annotations

import csv
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from veilog._files import text_of
from veilog.errors import InputError, ParameterError
from veilog.messages import Message
from veilog.rules.attributes import AttributeRule, ValueCondition
from veilog.rules.times import TimeRule, microseconds_in

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
    """Deterministic automaton over three kinds of events; it begins in state 0."""

    after: tuple[tuple[int, int, int], ...]
    """State after another activity, the first of a constraint, and the second."""
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
    """Template with its activities; ``times`` only for templates that count."""

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
        """Automaton that accepts the cases that keep the constraint."""
        if self.template not in COUNTED:
            return _AUTOMATA[self.template]
        last = self.times + (self.template == "exactly")
        after = tuple((state, min(state + 1, last), state) for state in range(last + 1))
        accepting = range(self.times) if self.template == "absence" else [self.times]
        return Automaton(after, frozenset(accepting))

    def kind(self, activity: str) -> int:
        """Return the kind of an activity for the automaton, 0 for one not named."""
        if self.template in SEVERAL:
            return int(activity in self.activities)
        return self.activities.index(activity) + 1 if activity in self.activities else 0


def constraint_in(line: str, path: Path | None, number: int | None) -> Constraint:
    """Return the constraint of a line, as ``Response[A, B]`` or ``Existence2[A]``.

    An :class:`InputError` names the line if it has no constraint, or one with conditions on data.
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
    """Return a constraint by its template's name, in any spelling, or refuse it there."""
    name = _PLAIN.get(re.sub(r"[^a-z]", "", template.lower()), template)
    try:
        return Constraint(name, activities, times)
    except ParameterError as error:
        raise InputError(error.message, path=path, line=line) from error


# Rules from the entries of a TOML or JSON file or of a list.

RuleEntry: TypeAlias = "Mapping[str, Any] | str"

_PAIRED = {"before": "precedence", "followed": "response", "exclusive": "not co-existence"}
_ONE_OF = {"first": "init", "last": "end"}
_FORMS = {
    **dict.fromkeys(_PAIRED, '["A", "B"]'),
    **dict.fromkeys(_ONE_OF, '["A", "B"]'),
    **dict.fromkeys(("from", "to", "activity"), '"A"'),
    **dict.fromkeys(("attribute", "if"), '"age < 18", "ward = A|B", "dose = 1..50" or "birth <= admission"'),
    "number": "1",
    "time": '"30 min" (s, min, h, d or w)',
    "activities": '["A", "B"]',
}
"""Form of the value after each key."""


@dataclass(frozen=True, eq=False)
class ReleaseRule:
    """One rule: constraints on the order of activities, on times or on attributes."""

    number: int
    entry: RuleEntry
    message: Message
    """The rule in words."""
    line: int | None = None
    constraints: tuple[Constraint, ...] = ()
    time: TimeRule | None = None
    attribute: AttributeRule | None = None

    @property
    def activities(self) -> tuple[str, ...]:
        """Activities that it names."""
        named = [name for constraint in self.constraints for name in constraint.activities]
        for other in (self.time, self.attribute):
            named += () if other is None else other.activities
        return tuple(dict.fromkeys(named))


def entries_of(path: Path) -> tuple[list[Any], list[int | None]]:
    """Return the entries of a file, and the lines at which they begin."""
    try:
        text = text_of(path)
    except OSError as error:
        raise InputError("rules-file-not-readable", path=path, reason=error.strerror) from None
    except UnicodeDecodeError:
        raise InputError("rules-file-not-utf8", path=path) from None
    suffix = path.suffix.lower()
    if suffix in (".txt", ".decl"):
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
        stated = [(number, line) for number, line in lines if line and not line.startswith(("#", "activity "))]
        return [line for _, line in stated], [number for number, _ in stated]
    if suffix not in (".toml", ".json"):
        raise InputError("rules-format-unknown", path=path, suffix=suffix)
    try:
        content = tomllib.loads(text) if suffix == ".toml" else json.loads(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, RecursionError) as error:
        at = re.search(r"line (\d+)", str(error))
        line = int(at[1]) if at else None
        raise InputError("rules-not-parsed", path=path, line=line, reason=error) from None
    if isinstance(content, dict) and content.keys() <= {"rules", "constraints"}:
        content = next(iter(content.values()), None)
    if not isinstance(content, list):
        raise InputError("rules-not-list", path=path)
    return content, list(_places(text, content))


def _places(text: str, entries: list[Any]) -> Iterator[int | None]:
    """Return the line of each entry's first key, searched in turn past comments."""
    text, at = re.sub(r"(?m)^[^\S\n]*#.*$", "", text), 0
    for entry in entries:
        words = [entry] if not isinstance(entry, dict) else [part for pair in entry.items() for part in pair]
        words = [part for word in words for part in (word if isinstance(word, list) else [word])]
        found = []
        for word in words:
            place = text.find(str(word), at)
            found.append(None if place < 0 else text.count("\n", 0, place) + 1)
            at = at if place < 0 else place + len(str(word))
        yield found[0] if found else None


def rule_of(number: int, entry: Any, path: Path | None, line: int | None) -> ReleaseRule:
    """Return the rule of an entry; an :class:`InputError` names its line and the form."""
    if isinstance(entry, str):
        constraint = constraint_in(entry, path, line)
        return ReleaseRule(number, entry, Message("rule-declared", text=entry), line, (constraint,))
    keys = set(entry) if isinstance(entry, Mapping) else set()
    found = _Entry(number, entry if isinstance(entry, Mapping) else {}, path, line)
    if len(keys) == 1 and keys <= _PAIRED.keys() | _ONE_OF.keys():
        return found.of_order(next(iter(keys)))
    if "activity" in keys and keys <= {"activity", "at_least", "at_most"} and len(keys) > 1:
        return found.of_number()
    if {"from", "to"} < keys <= {"from", "to", "at_least", "at_most"}:
        return found.of_time()
    if "attribute" in keys and keys <= {"attribute", "if", "activity"}:
        return found.of_attribute()
    if {"template", "activities"} <= keys <= {"template", "activities", "times"}:
        names, times = found.names("activities", 1), entry.get("times", 1)
        if not isinstance(times, int):
            raise found.wrong("times", "number")
        constraint = constraint_of(str(entry["template"]), names, times, path, line)
        return ReleaseRule(number, entry, Message("rule-declared", text=constraint), line, (constraint,))
    said = ", ".join(sorted(map(str, keys))) or repr(entry)
    raise InputError("rule-form-unknown", path=path, line=line, number=number, keys=said)


@dataclass(frozen=True)
class _Entry:
    """One entry of a file, with its place."""

    number: int
    entry: Mapping[str, Any]
    path: Path | None
    line: int | None

    def wrong(self, key: str, form: str | None = None) -> InputError:
        """Return the error about the value of a key."""
        value, wanted = repr(self.entry.get(key)), _FORMS[form or key]
        place: dict[str, Any] = {"path": self.path, "line": self.line}
        return InputError("rule-value-wrong", number=self.number, key=key, value=value, form=wanted, **place)

    def names(self, key: str, fewest: int) -> tuple[str, ...]:
        """Return the activities of a key, at least so many and none twice."""
        value = self.entry[key]
        given = [value] if isinstance(value, str) else value
        texts = isinstance(given, list | tuple) and all(isinstance(name, str) and name for name in given)
        if not texts or len(given) < fewest or len(set(given)) < len(given):
            raise self.wrong(key)
        return tuple(given)

    def made(self, code: str, *constraints: Constraint, **values: Any) -> ReleaseRule:
        """Return the rule with its words."""
        time, attribute = values.pop("time", None), values.pop("attribute", None)
        return ReleaseRule(self.number, self.entry, Message(code, **values), self.line, constraints, time, attribute)

    def of_order(self, key: str) -> ReleaseRule:
        """Return a rule on the order of activities, or that they never come together."""
        names = self.names(key, 1 if key in _ONE_OF else 2)
        shown = ", ".join(map(repr, names))
        if key in _ONE_OF:
            return self.made(f"rule-{key}", Constraint(_ONE_OF[key], names), names=shown)
        pairs = itertools.combinations(names, 2) if key == "exclusive" else itertools.pairwise(names)
        return self.made(f"rule-{key}", *(Constraint(_PAIRED[key], pair) for pair in pairs), names=shown)

    def of_number(self) -> ReleaseRule:
        """Return a rule on the number of times that an activity occurs."""
        (name,) = self.names("activity", 1)[:1]
        found, numbers = [], {}
        for key, template, more in (("at_least", "existence", 0), ("at_most", "absence", 1)):
            times = numbers[key] = self.entry.get(key)
            if times is None:
                continue
            if not isinstance(times, int) or isinstance(times, bool) or times < (not more):
                raise self.wrong(key, "number")
            found.append(Constraint(template, (name,), times + more))
        code = "rule-often" if len(found) == 2 else "rule-at-least" if numbers["at_most"] is None else "rule-at-most"
        return self.made(code, *found, name=repr(name), **{key: n for key, n in numbers.items() if n is not None})

    def of_time(self) -> ReleaseRule:
        """Return a rule on the time between two activities."""
        ends = {}
        for key in ("at_least", "at_most"):
            ends[key] = None if key not in self.entry else microseconds_in(self.entry[key])
            if key in self.entry and ends[key] is None:
                raise self.wrong(key, "time")
        for key in ("from", "to"):
            if not isinstance(self.entry[key], str) or not self.entry[key]:
                raise self.wrong(key)
        least, most = ends["at_least"], ends["at_most"]
        time = TimeRule(self.entry["from"], self.entry["to"], least or 0.0, np.inf if most is None else most)
        code = "rule-time-within" if None not in (least, most) else f"rule-time-{'least' if most is None else 'most'}"
        told = {key: str(self.entry[key]) for key in ends if key in self.entry}
        return self.made(code, time=time, first=repr(time.first), second=repr(time.second), **told)

    def of_attribute(self) -> ReleaseRule:
        """Return a rule on values."""
        found = {}
        for key in ("attribute", "if"):
            text = self.entry.get(key)
            found[key] = ValueCondition.of(text) if isinstance(text, str) else None
            if key in self.entry and found[key] is None:
                raise self.wrong(key)
        activity, then, when = self.entry.get("activity"), found["attribute"], found["if"]
        if activity is not None and (not isinstance(activity, str) or not activity):
            raise self.wrong("activity")
        assert then is not None
        where = "" if activity is None else Message("rule-at", name=repr(activity))
        condition = "" if when is None else Message("rule-if", condition=when.text)
        rule = AttributeRule(then, when, activity)
        return self.made("rule-attribute", attribute=rule, then=then.text, where=where, condition=condition)

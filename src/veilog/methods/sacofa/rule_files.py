"""Rules that the user writes down: as text, a rule a line, or as JSON.

Text: ``never A then B``, ``always A then B``, ``always A before B``, ``first A``; names may stand in double quotes,
``#`` starts a comment line. JSON: ``{"never": [["A", "B"]], "always": [["A", "B"]], "before": [["A", "B"]], "first":
["A"]}``, every key optional. Rules that a user knows from elsewhere than the log cost no privacy.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veilog._files import text_of
from veilog._typing import BoolArray
from veilog.errors import InputError
from veilog.methods.sacofa.rules import Rules

__all__ = ["read_rules"]


_GRAMMAR = "Write 'never A then B', 'always A then B', 'always A before B' or 'first A'."
_KINDS = {("never", "then"): "never", ("always", "then"): "always", ("always", "before"): "before"}


@dataclass(frozen=True)
class _Rule:
    kind: str
    activities: tuple[str, ...]
    line: int | None

    def in_words(self) -> str:
        word, link = {v: k for k, v in _KINDS.items()}.get(self.kind, ("first", ""))
        return f"{word} {f' {link} '.join(self.activities)}"


def read_rules(path: str | Path, activities: tuple[str, ...]) -> Rules:
    """The rules of a file over the public activities; an :class:`InputError` names the file and line of a mistake."""
    try:
        text = text_of(Path(path))
    except OSError as error:
        raise InputError(f"The rules cannot be read: {error.strerror}.", path=path) from None
    except UnicodeDecodeError:
        raise InputError("The rules are not a text in UTF-8.", path=path) from None
    rules = _from_json(text, path) if text.lstrip().startswith(("{", "[")) else _from_text(text, path, activities)
    if not rules:
        raise InputError("The file holds no rule.", path=path, advice=_GRAMMAR)
    place = {name: i for i, name in enumerate(activities)}
    for rule in rules:
        for name in rule.activities:
            if name not in place:
                raise InputError(
                    f"The rule '{rule.in_words()}' names the activity {name!r}, which is not one of the log's.",
                    path=path,
                    line=rule.line,
                    advice=f"Activities: {', '.join(activities[:20])}{', ...' if len(activities) > 20 else ''}.",
                )
    _refuse_contradictions(rules, place, path)
    return _arrays(rules, place)


def _from_json(text: str, path: str | Path) -> list[_Rule]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"The JSON is broken: {error.msg}.", path=path, line=error.lineno, column=error.colno
        ) from None
    except RecursionError:
        raise InputError("The JSON is nested too deeply.", path=path) from None
    known = (*_KINDS.values(), "first")
    if not isinstance(content, dict) or any(key not in known for key in content):
        raise InputError("The JSON must be an object.", path=path, advice=f"Its keys: {', '.join(known)}.")
    rules = []
    for kind, entries in content.items():
        if not isinstance(entries, list):
            raise InputError(f"{kind!r} must be a list.", path=path)
        for entry in entries:
            names = [entry] if kind == "first" else entry
            expected = 1 if kind == "first" else 2
            if not isinstance(names, list) or len(names) != expected or not all(isinstance(n, str) for n in names):
                what = "the name of an activity" if kind == "first" else "a pair of names of activities"
                raise InputError(f"An entry of {kind!r} must be {what}, not {json.dumps(entry)}.", path=path)
            rules.append(_Rule(kind, tuple(names), None))
    return rules


def _from_text(text: str, path: str | Path, activities: tuple[str, ...]) -> list[_Rule]:
    rules = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line and not line.startswith("#"):
            rules.append(_from_line(line, number, path, set(activities)))
    return rules


def _from_line(line: str, number: int, path: str | Path, known: set[str]) -> _Rule:
    word, _, rest = line.partition(" ")
    word = word.lower()
    if word == "first" and rest.strip():
        return _Rule("first", (_unquoted(rest),), number)
    # A name may contain the linking word: of all places to cut, one with an activity on both sides is meant.
    readings = []
    for link in re.finditer(r"\s(then|before)\s", rest, flags=re.IGNORECASE):
        kind = _KINDS.get((word, link.group(1).lower()))
        if kind:
            readings.append(_Rule(kind, (_unquoted(rest[: link.start()]), _unquoted(rest[link.end() :])), number))
    if not readings:
        raise InputError(f"{line!r} is no rule.", path=path, line=number, advice=_GRAMMAR)
    meant = [rule for rule in readings if known.issuperset(rule.activities)]
    if len(meant) > 1:
        raise InputError(f"{line!r} can be read in more than one way.", path=path, line=number, advice="Use JSON.")
    return meant[0] if meant else readings[0]


def _unquoted(name: str) -> str:
    name = name.strip()
    return name[1:-1] if len(name) >= 2 and name[0] == name[-1] == '"' else name


def _arrays(rules: list[_Rule], place: dict[str, int]) -> Rules:
    n = len(place)
    square = {kind: np.zeros((n, n), dtype=bool) for kind in _KINDS.values()}
    first = np.zeros(n, dtype=bool)
    for rule in rules:
        where = tuple(place[name] for name in rule.activities)
        if rule.kind == "first":
            first[where] = True
        else:
            square[rule.kind][where] = True
    allowed = (first if first.any() else ~first) & ~square["before"].any(axis=0)
    return Rules(square["never"], square["always"], square["before"], allowed)


def _refuse_contradictions(rules: list[_Rule], place: dict[str, int], path: str | Path) -> None:
    """Refuse rules under which an activity that a rule names could never occur in any trace."""
    arrays = _arrays(rules, place)
    names = list(place)
    before = _closure(arrays.before)
    for kind, reached in (("always A then B", arrays.always), ("always A before B", before)):
        both = np.argwhere(reached & arrays.never)
        if len(both):
            a, b = (names[i] for i in both[0])
            raise InputError(
                f"The rules contradict each other: '{kind}' and 'never A then B' both hold for A = {a!r}, B = {b!r}.",
                path=path,
                line=_line_of(rules, "never", (a, b)),
            )
    cycle = np.flatnonzero(np.diag(before))
    if len(cycle):
        raise InputError(
            f"The rules contradict each other: {names[cycle[0]]!r} would have to occur before itself.", path=path
        )
    if not arrays.first.any():
        raise InputError(
            "The rules contradict each other: every activity that a trace may start with needs another one before it.",
            path=path,
        )


def _line_of(rules: list[_Rule], kind: str, activities: tuple[str, ...]) -> int | None:
    return next((rule.line for rule in rules if rule.kind == kind and rule.activities == activities), None)


def _closure(relation: BoolArray) -> BoolArray:
    """The transitive closure."""
    closed = relation.copy()
    for middle in range(len(closed)):
        closed |= np.outer(closed[:, middle], closed[middle])
    return closed

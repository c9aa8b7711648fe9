"""Rules that the user knows from elsewhere than the log, in a JSON file: they use no epsilon.

``{"never": [["A", "B"]], "always": [["A", "B"]], "before": [["A", "B"]], "first": ["A"]}``, every key optional.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veilog._files import text_of
from veilog._typing import BoolArray
from veilog.errors import InputError
from veilog.methods.sacofa.rules import Rules

__all__ = ["read_rules"]

_PAIRS = ("never", "always", "before")
_KEYS = (*_PAIRS, "first")
_EXAMPLE = 'An example: {"never": [["Discharge", "Triage"]], "first": ["Registration"]}.'


@dataclass(frozen=True)
class _Rule:
    kind: str
    activities: tuple[str, ...]


def read_rules(path: str | Path, activities: tuple[str, ...]) -> Rules:
    """Return the rules of a JSON file over the public activities; an :class:`InputError` names the mistake."""
    try:
        text = text_of(Path(path))
    except OSError as error:
        raise InputError(f"The rules cannot be read: {error.strerror}.", path=path) from None
    except UnicodeDecodeError:
        raise InputError("The rules are not a text in UTF-8.", path=path) from None
    rules = _from_json(text, path)
    if not rules:
        raise InputError("The file holds no rule.", path=path, advice=_EXAMPLE)
    place = {name: i for i, name in enumerate(activities)}
    for rule in rules:
        for name in rule.activities:
            if name not in place:
                raise InputError(
                    f"A rule of {rule.kind!r} names the activity {name!r}, which is not one of the log's.",
                    path=path,
                    advice=f"Activities: {', '.join(activities[:20])}{', ...' if len(activities) > 20 else ''}.",
                )
    _refuse_contradictions(rules, place, path)
    return _arrays(rules, place)


def _from_json(text: str, path: str | Path) -> list[_Rule]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"The rules are not JSON: {error.msg}.", path=path, line=error.lineno, column=error.colno, advice=_EXAMPLE
        ) from None
    except RecursionError:
        raise InputError("The JSON is nested too deeply.", path=path) from None
    if not isinstance(content, dict) or any(key not in _KEYS for key in content):
        raise InputError("The JSON must be an object.", path=path, advice=f"Its keys: {', '.join(_KEYS)}.")
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
            rules.append(_Rule(kind, tuple(names)))
    return rules


def _arrays(rules: list[_Rule], place: dict[str, int]) -> Rules:
    n = len(place)
    square = {kind: np.zeros((n, n), dtype=bool) for kind in _PAIRS}
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
    for kind, reached in (("always", arrays.always), ("before", before)):
        both = np.argwhere(reached & arrays.never)
        if len(both):
            a, b = (names[i] for i in both[0])
            raise InputError(
                f"The rules contradict each other: {kind!r} and 'never' both hold for {a!r} and {b!r}.", path=path
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


def _closure(relation: BoolArray) -> BoolArray:
    """The transitive closure."""
    closed = relation.copy()
    for middle in range(len(closed)):
        closed |= np.outer(closed[:, middle], closed[middle])
    return closed

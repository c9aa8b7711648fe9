"""Behavioural rules of a process: what never and what always follows or precedes what, and what a trace starts with.

The rules of S.A. Fahrenkrog-Petersen et al., "Semantics-aware Mechanisms for Control-flow Anonymization in Process
Mining" (2023), after A. Rozinat, W.M.P. van der Aalst, "Conformance checking of processes based on monitoring real
behavior" (2008). For a pair (a, b): b always, never or sometimes follows the first a, and always, never or sometimes
precedes the last a. "b never follows a" and "a never precedes b" are the same, so four relations are left.

All of them follow from how many cases have a, and how many have an a with a later b.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veilog._files import text_of
from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError
from veilog.logs.variants import Sequences, Variants
from veilog.methods._rows import public_codes
from veilog.privacy.contributions import Features

EVIDENCE = 10
"""A learned rule needs activities in so many times as many cases as noise alone may show, so that at most one in so
many breaks it."""
_ABSENT = 2**31 - 1


@dataclass(frozen=True)
class Rules:
    """Rules over activities 0, ..., n-1, each a square array but for ``first``."""

    never: BoolArray
    """never[a, b]: no b occurs after an a."""
    always: BoolArray
    """always[a, b]: after the first a occurs a b."""
    before: BoolArray
    """before[a, b]: an a occurs before the last b."""
    first: BoolArray
    """first[a]: a trace may start with a."""


def no_rules(activities: int) -> Rules:
    """Rules that nothing breaks."""
    square = np.zeros((activities, activities), dtype=bool)
    return Rules(square, square, square, np.ones(activities, dtype=bool))


def eventually_follows(activities: tuple[str, ...]) -> Features:
    """Maps a sequence to 1 for each pair (a, b) with a b after an a, at ``a n + b``, and for each a, at ``n n + a``."""
    n = len(activities)

    def features(sequences: Sequences) -> tuple[IntArray, IntArray, IntArray]:
        first, last = _first_and_last(sequences, activities)
        row, a = np.nonzero(last >= 0)
        rows, columns = [row], [n * n + a]
        for start, follows in _follows(first, last):
            row, pair = np.nonzero(follows)
            rows.append(row + start)
            columns.append(pair)
        together = np.concatenate(rows)
        return together, np.concatenate(columns), np.ones(len(together), dtype=np.int64)

    return features


def exact_rules(variants: Variants, activities: tuple[str, ...]) -> Rules:
    """The rules that every case of a log obeys: for what was peeked at."""
    n = len(activities)
    first, last = _first_and_last(variants.sequences, activities)
    cases = variants.counts @ (last >= 0)
    follows = np.zeros(n * n, dtype=np.int64)
    for start, block in _follows(first, last):
        # Sums of whole numbers far below 2**53: exact as floats, which numpy multiplies faster.
        weights = variants.counts[start : start + len(block)].astype(float)
        follows += np.rint(weights @ block.astype(float)).astype(np.int64)
    starts = np.zeros(n, dtype=bool)
    starts[np.argmax(first == 0, axis=1)[variants.lengths > 0]] = True
    return rules_from_counts(follows.reshape(n, n), cases, starts, 0)


def _first_and_last(sequences: Sequences, activities: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    """Where each activity occurs first and last in each sequence; beyond the end and -1 where it does not."""
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    position = np.arange(len(sequences.codes)) - sequences.offsets[owner]
    where = owner * len(activities) + public_codes(sequences, activities)[sequences.codes]
    first = np.full(len(sequences) * len(activities), _ABSENT, dtype=np.int64)
    last = np.full(len(sequences) * len(activities), -1, dtype=np.int64)
    # Of several assignments to one place the last one stays.
    first[where[::-1]] = position[::-1]
    last[where] = position
    shape = (len(sequences), len(activities))
    return first.reshape(shape), last.reshape(shape)


def _follows(first: IntArray, last: IntArray) -> Iterator[tuple[int, BoolArray]]:
    """Blocks of sequences and, for each of its sequences, which pairs (a, b) have a b after an a."""
    rows, n = first.shape
    step = max(1, 20_000_000 // max(n * n, 1))
    for start in range(0, rows, step):
        block = first[start : start + step, :, None] < last[start : start + step, None, :]
        yield start, block.reshape(len(block), n * n)


def rules_from_counts(follows: IntArray, cases: IntArray, first: BoolArray, noise: int) -> Rules:
    """Rules from how often a b follows an a, how many cases have an a, and how far noise alone takes either.

    A rule about activities that are too rare to tell it from the noise is not made.
    """
    known = cases > EVIDENCE * noise
    never = (follows <= noise) & known[:, None] & known[None, :]
    always = (cases[:, None] - follows <= noise) & known[:, None]
    before = (cases[None, :] - follows <= noise) & known[None, :]
    np.fill_diagonal(before, False)  # an activity that always repeats must be allowed to occur a first time
    return Rules(never, always, before, first)


_PAIRS = ("never", "always", "before")
_KEYS = (*_PAIRS, "first")


_Rule = tuple[str, list[str]]
"""What kind of rule, and the activities that it is about."""


def read_rules(path: str | Path, activities: tuple[str, ...]) -> Rules:
    """Return the rules of a JSON file over the public activities; an :class:`InputError` names the mistake."""
    try:
        text = text_of(Path(path))
    except OSError as error:
        raise InputError("rules-file-not-readable", path=path, reason=error.strerror) from None
    except UnicodeDecodeError:
        raise InputError("rules-file-not-utf8", path=path) from None
    rules = _from_json(text, path)
    if not rules:
        raise InputError("rules-file-empty", path=path)
    place = {name: i for i, name in enumerate(activities)}
    for kind, named in rules:
        for name in named:
            if name not in place:
                raise InputError(
                    "rules-file-activity-unknown",
                    path=path,
                    kind=kind,
                    name=name,
                    names=", ".join(activities[:20]),
                    value=", ..." if len(activities) > 20 else "",
                )
    arrays = _arrays(rules, place)
    _refuse_contradictions(arrays, activities, path)
    return arrays


def _from_json(text: str, path: str | Path) -> list[_Rule]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            "rules-file-not-json", path=path, line=error.lineno, column=error.colno, msg=error.msg
        ) from None
    except RecursionError:
        raise InputError("rules-file-nested-too-deeply", path=path) from None
    if not isinstance(content, dict) or any(key not in _KEYS for key in content):
        raise InputError("rules-file-not-object", path=path, names=", ".join(_KEYS))
    rules = []
    for kind, entries in content.items():
        if not isinstance(entries, list):
            raise InputError("rules-file-entry-not-list", path=path, kind=kind)
        for entry in entries:
            names = [entry] if kind == "first" else entry
            expected = 1 if kind == "first" else 2
            if not isinstance(names, list) or len(names) != expected or not all(isinstance(n, str) for n in names):
                code = "rules-file-entry-no-name" if kind == "first" else "rules-file-entry-no-pair"
                raise InputError(code, path=path, kind=kind, dumps=json.dumps(entry))
            rules.append((kind, names))
    return rules


def _arrays(rules: list[_Rule], place: dict[str, int]) -> Rules:
    n = len(place)
    square = {kind: np.zeros((n, n), dtype=bool) for kind in _PAIRS}
    first = np.zeros(n, dtype=bool)
    for kind, names in rules:
        array = first if kind == "first" else square[kind]
        array[tuple(place[name] for name in names)] = True
    allowed = (first if first.any() else ~first) & ~square["before"].any(axis=0)
    return Rules(square["never"], square["always"], square["before"], allowed)


def _refuse_contradictions(arrays: Rules, names: tuple[str, ...], path: str | Path) -> None:
    """Refuse rules under which an activity that a rule names could never occur in any trace."""
    before = _closure(arrays.before)
    for kind, reached in (("always", arrays.always), ("before", before)):
        both = np.argwhere(reached & arrays.never)
        if len(both):
            a, b = (names[i] for i in both[0])
            raise InputError("rules-file-contradictory", path=path, kind=kind, a=a, b=b)
    cycle = np.flatnonzero(np.diag(before))
    if len(cycle):
        raise InputError("rules-file-circular", path=path, names=names[cycle[0]])
    if not arrays.first.any():
        raise InputError("rules-file-no-start-possible", path=path)


def _closure(relation: BoolArray) -> BoolArray:
    """The transitive closure."""
    closed = relation.copy()
    for middle in range(len(closed)):
        closed |= np.outer(closed[:, middle], closed[middle])
    return closed

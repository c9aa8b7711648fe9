"""Coarser activities: a public list of each activity's group, applied on input.

Every event is mapped by itself, so that logs that differ by one case still do. The list must not be made from the
content of the log beyond its labels: a guarantee names it as a condition. :func:`propose_mapping` makes a hierarchy
from the labels' own structure, for the data owner to edit.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from veilog._files import path_of, reason, text_of
from veilog._typing import Int32Array, IntArray
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import ACTIVITY, EventLog
from veilog.logs.findings import Findings
from veilog.logs.variants import Variants
from veilog.messages import Message

EVERYTHING_ELSE = "*"
"""The row of all activities that have none of their own."""
OTHER = "other"
GROUPED = "activities-grouped"
_NAMED = 5
_PART = re.compile(r"[^\W\d_]*\d+|[^\W\d_]+")
"""A word, a number or a code such as T07 in a label."""
_NEARLY_ALL = 2 / 3
"""Share of the labels above which a shared part distinguishes none of them."""

MapLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, str | Sequence[str]]"


@dataclass(frozen=True)
class ActivityMapping:
    """Group of each activity."""

    groups: Mapping[str, str]
    else_: str | None
    """The group of all others; None where there must be none."""
    told: Message
    """Condition of the guarantee about it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The groups, which are as public as the list."""
        return tuple(dict.fromkeys([*self.groups.values(), *([] if self.else_ is None else [self.else_])]))

    def note(self, labels: Iterable[str], findings: Findings) -> None:
        """Note the rows that name no activity of a log, for its owner."""
        unused = sorted(self.groups.keys() - {*labels})
        if unused:
            more = ", ..." if len(unused) > _NAMED else ""
            findings.add("unused-group-row", ", ".join(map(repr, unused[:_NAMED])) + more, count=len(unused))

    def of_log(self, log: EventLog) -> EventLog:
        """Return the log with its activities mapped."""
        labels, codes = log.activity_codes
        names, mapped = self._map_labels(labels, codes, log.source)
        column = pa.DictionaryArray.from_arrays(pa.array(mapped), pa.array(names or [""], pa.string()))
        at = log.events.column_names.index(ACTIVITY)
        events = log.events.set_column(at, log.events.schema.field(at), pa.chunked_array([column]))
        return replace(log, events=events, mapped=(*log.mapped, self.told))

    def of_release(self, log: EventLog) -> EventLog:
        """Return a release with its activities mapped, unless its log was.

        If all of them are groups, its log was mapped before. A group with the name of another group's activity then
        stays.
        """
        return log if {*log.activity_codes[0]} <= {*self.names} else self.of_log(log)

    def of_variants(self, variants: Variants) -> Variants:
        """Return the variants of the log with its activities mapped."""
        names, codes = self._map_labels(variants.labels, variants.codes, None)
        found = Variants.from_arrays(names, codes, variants.offsets, variants.counts)
        told = (*variants.mapped, self.told)
        return replace(found, read_together=variants.read_together, mapped=told, read_as=variants.read_as)

    def _map_labels(
        self, labels: Iterable[str], codes: IntArray | Int32Array, source: str | None
    ) -> tuple[list[str], Int32Array]:
        """Return the groups of these labels, and the group of each event.
        A group is its own, so that a release can be compared with a log."""
        known, rows = list(labels), {name: name for name in self.names} | dict(self.groups)
        missing = sorted({label for label in known if label not in rows})
        if missing and self.else_ is None:
            code = "map-rows-missing" if len(missing) > _NAMED else "map-row-missing"
            names, more = ", ".join(map(repr, missing[:_NAMED])), len(missing) - _NAMED
            raise InputError(code, path=source, names=names, more=more)
        named = [rows.get(label, self.else_ or "") for label in known]
        place = {name: i for i, name in enumerate(dict.fromkeys(named))}
        return list(place), np.array([place[name] for name in named] or [0], dtype=np.int32)[codes]


def load_mapping(given: MapLike, *, level: int = 1, top: int | None = None) -> ActivityMapping:
    """Return the map in a file (CSV or JSON) or a dict.

    CSV has activity, group, coarser group, ...; JSON has an object. ``level`` is the one of an activity's groups that
    counts, 1 the finest. ``top`` keeps the first so many activities of the list as they are, or those of them that have
    a group in it; all others are one group, :data:`OTHER`.
    """
    import hashlib  # here, as few logs are read with a map

    _check("level", level)
    rows = _rows(given.items()) if isinstance(given, Mapping) else _read_file(path_of(given, "map"))
    name = "a list" if isinstance(given, Mapping) else path_of(given, "map").name
    if not rows:
        raise InputError("map-empty", path=name)
    deepest = max(len(groups) for groups in rows.values())
    if level > max(1, deepest):
        raise ParameterError("map-level-missing", parameter="level", deepest=deepest, level=level)
    found = {
        activity: (groups[min(level, len(groups)) - 1] if groups else activity) for activity, groups in rows.items()
    }
    else_ = found.pop(EVERYTHING_ELSE, None)
    digest = hashlib.sha256(json.dumps([found, else_]).encode()).hexdigest()[:12]
    how = f"level {level} of {name}" if deepest > 1 else name
    if top is not None:
        _check("top", top)
        found, else_ = dict(list(found.items())[:top]), OTHER
        how = f"the first {top} of {how}"
    return ActivityMapping(found, else_, Message(GROUPED, how=how, digest=digest))


def mapped_by(given: MapLike | None, level: int | None = None, top: int | None = None) -> ActivityMapping | None:
    """Return the requested map, or None; refuse a level or a top without one."""
    if given is not None:
        return load_mapping(given, level=1 if level is None else level, top=top)
    if top is not None:
        raise ParameterError("map-top-without-level", parameter="top", top=top)
    if level is not None and level != 1:
        raise ParameterError("map-level-without-map", parameter="level")
    return None


def _check(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError("map-number-not-whole", parameter=name, name=name, value=value)


def _rows(given: Iterable[tuple[object, object]], path: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Return the groups of each activity, checked, since a file may have anything."""
    found: dict[str, tuple[str, ...]] = {}
    for activity, groups in given:
        told = (groups,) if isinstance(groups, str) else groups
        if not isinstance(told, Sequence) or not all(isinstance(name, str) for name in (activity, *told)):
            raise InputError("map-not-of-names", path=path, activity=activity)
        name = str(activity).strip()
        if name in found:
            raise InputError("map-row-twice", path=path, name=name)
        found[name] = tuple(group.strip() for group in told if group.strip())
    return found


def _read_file(path: Path) -> dict[str, tuple[str, ...]]:
    try:
        text = text_of(path)
    except OSError as error:
        raise ParameterError("map-not-readable", parameter="map", file=path, reason=reason(error)) from error
    except UnicodeDecodeError as error:
        raise InputError("map-not-utf8", path=path) from error
    if path.suffix.lower() == ".json":
        try:
            told = json.loads(text, object_pairs_hook=tuple)  # pairs: a name may be there twice
        except (ValueError, RecursionError) as error:
            raise InputError("map-not-json", path=path, reason=error) from error
        if not isinstance(told, tuple):
            raise InputError("map-not-json-object", path=path)
        return _rows(told, path)
    try:
        lines = _lines(text)
    except csv.Error as error:
        raise InputError("map-not-csv", path=path, reason=error) from error
    if lines and lines[0][0].strip().lower() == "activity":  # a header
        del lines[0]
    return _rows(((row[0], row[1:]) for row in lines), path)


def _lines(text: str) -> list[list[str]]:
    """Return the rows of a list with commas, or with semicolons or tabs.
    Some spreadsheets write these: the header has one after ``activity``, or each row has one and some row has no
    comma."""
    comma, *others = (
        [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign) if any(cell.strip() for cell in row)]
        for sign in ",;\t"
    )
    for rows in others:
        headed = len(rows[0]) > 1 and rows[0][0].strip().lower() == "activity" if rows else False
        if headed or (min(map(len, rows), default=0) > 1 and min(map(len, comma)) == 1):
            return rows
    return comma


def propose_mapping(labels: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return a hierarchy from the structure of the labels: groups, the finest first.

    Labels that begin with the same words or numbers belong together (``01_HOOFD_010`` and ``01_HOOFD_020``), the more
    of them the finer. Those that begin alone belong with those that share a word.
    """
    names = sorted(set(labels))
    parts = {name: tuple(part.casefold() for part in _PART.findall(name)) for name in names}
    begins = Counter(own[:n] for own in parts.values() for n in range(1, len(own) + 1))
    words = Counter(word for own in parts.values() for word in set(own) if len(word) > 3 and not word.isdecimal())
    found: dict[str, tuple[str, ...]] = {}
    most = max(2, _NEARLY_ALL * len(names))
    for name, own in parts.items():
        shared = [own[:n] for n in range(1, len(own)) if 1 < begins[own[:n]] <= most]
        if shared:
            fine, coarse = " ".join(shared[-1]), " ".join(shared[0])
        else:
            common = [word for word in own if 1 < words[word] <= most]
            fine = coarse = max(common, key=lambda word: (words[word], word)) if common else name
        found[name] = (fine, coarse)
    return found


def as_csv(hierarchy: Mapping[str, Sequence[str]]) -> str:
    """Return a hierarchy as a file for :func:`load_mapping`, with a row for the rest."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    levels = max((len(groups) for groups in hierarchy.values()), default=1)
    writer.writerow(["activity", *(f"level {i + 1}" for i in range(levels))])
    writer.writerows([name, *groups] for name, groups in hierarchy.items())
    writer.writerow([EVERYTHING_ELSE, *[OTHER] * levels])
    return out.getvalue()

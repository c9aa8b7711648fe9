"""The public logs that the papers use: how they are recognised, where they are published, which are in a folder.

A paper may use a part of a published log: the complete events, say. Such a log has a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._plain import tables_of
from veilog.errors import InputError, VeilogError
from veilog.experiments import papers
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.input.formats import SUFFIXES
from veilog.logs.input.source import suffix_of
from veilog.logs.variants import Variants

Counts = tuple[int, int, int, int]
"""Cases, events, activities and variants."""


@dataclass(frozen=True)
class KnownLog:
    """A public log: its title, its DOI, the names of its published files, and its counts as papers print them."""

    title: str
    doi: str
    files: tuple[str, ...] = ()
    counts: Counts | None = None
    of: str = ""
    """The published log that this one is a part of."""
    events: tuple[str, str] | None = None
    """The attribute of the events that are kept, and its value."""


LOGS = {name: KnownLog(**facts) for name, facts in tables_of(papers.__name__, "logs").items()}


def find(folder: Path, wanted: Sequence[str] = ()) -> dict[str, Path]:
    """Return the logs of a folder by name: a known log by its file's name, any other by that name without suffixes.

    A log that is ``wanted`` and has no file of its name is also looked for by its counts of cases, events, activities
    and variants, in files whose names say nothing; these are read for it. A part of a log is found where that log is.
    """
    if not folder.is_dir():
        raise InputError("experiment-folder-missing", path=folder)
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = suffix_of(path)
        if suffix not in SUFFIXES or not path.is_file() or path.name.startswith("."):
            continue
        found.setdefault(_name(path.name[: -len(suffix)]), path)
    if not found:
        raise InputError(
            "experiment-folder-without-logs", path=folder, names=", ".join(SUFFIXES), doi=LOGS["sepsis"].doi
        )
    wanted = [*wanted, *(LOGS[name].of for name in wanted if LOGS[name].of)]
    by_counts = {LOGS[name].counts: name for name in wanted if name not in found and LOGS[name].counts}
    for stem in [stem for stem in found if by_counts and stem not in LOGS]:
        name = by_counts.pop(_counts(found[stem]), None)
        if name is not None:
            found[name] = found.pop(stem)
    return found | {name: found[LOGS[name].of] for name in wanted if name not in found and LOGS[name].of in found}


def part_of(name: str, log: EventLog) -> EventLog:
    """Return the events of a log that belong to the log of this name: all of them, unless it is a part of another."""
    known = LOGS.get(name)
    if known is None or known.events is None or known.events[0] not in log.events.column_names:
        return log
    column, value = known.events
    texts = pc.utf8_lower(log.events.column(column).cast(pa.string()))
    left = replace(log, events=log.events.filter(pc.fill_null(pc.equal(texts, value), False)))
    return left.only(np.flatnonzero(np.diff(left.offsets)))


def _name(stem: str) -> str:
    plain = _plain(stem)
    for name, log in LOGS.items():
        if plain in map(_plain, (name, *log.files)):
            return name
    return stem


def _counts(path: Path) -> Counts | None:
    """The counts of a log; None of a file that cannot be read without being told how."""
    try:
        variants: Variants = files.read(path).variants
    except VeilogError:
        return None
    return variants.cases, variants.events, len(variants.labels), len(variants)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def missing(wanted: Sequence[str], found: dict[str, Path]) -> str | None:
    """Return a sentence that says which logs of a paper are not there and where they are published."""
    names = [f"{LOGS[name].title} ({name}, doi:{LOGS[name].doi})" for name in wanted if name not in found]
    return f"Logs of the paper that are not in the folder: {'; '.join(names)}." if names else None

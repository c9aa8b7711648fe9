"""Whose the cases are, where a log tells, and parts of a log that have nobody in common.

Cases that stand for others (a control, cases that are held out) say nothing of others if the same people have cases
among the rest: what was seen of their other visits tells of these.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, EventLog
from veilog.logs.facts import person_columns
from veilog.logs.variants import Variants
from veilog.privacy.persons import owners

__all__ = ["in_order", "parted", "person_of"]


def person_of(log: EventLog | Variants) -> str | None:
    """Return the column that seems to tell whose a case is, of several the one with the most values: a hint (see
    :func:`veilog.logs.facts.person_columns`); None where there is none, and of variants."""
    found = () if isinstance(log, Variants) else person_columns(log)
    return found[0].column if found else None


def parted(log: EventLog, person: str, cases: int, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the rows of about so many cases, and of the others, ascending: of people drawn at random, as many as come
    nearest to that, and at least one on each side. Nobody has cases on both; a case of which it is not known whose it
    is counts as somebody's own. No case's side depends on the order of rows."""
    owner = _numbered(log, person)
    size = np.bincount(owner)
    if len(size) < 2:
        raise ParameterError(
            f"By {person!r} the log has {len(size)} person{'s' * (len(size) != 1)}, too few to hold any out.",
            parameter="person",
        )
    mixed = generator.permutation(len(size))
    off = np.abs(np.cumsum(size[mixed])[:-1] - cases)
    last = len(off) - 1 - int(off[::-1].argmin())  # of two that are as near the larger part
    drawn = np.isin(owner, mixed[: last + 1])
    return np.flatnonzero(drawn), np.flatnonzero(~drawn)


def in_order(log: EventLog) -> IntArray:
    """Return the rows of the cases by their names: an order that is not that of the rows."""
    return np.asarray(pc.sort_indices(log.cases.column(ACTIVITY).cast(pa.string())), dtype=np.int64)


def _numbered(log: EventLog, column: str) -> IntArray:
    """The person of each case by a number, those first whose first case is, by the names of cases."""
    encoded = owners(log, column).named.dictionary_encode()
    found = np.array(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    unknown = found < 0
    found[unknown] = len(encoded.dictionary) + np.arange(int(unknown.sum()))
    order = in_order(log)
    _, first, number = np.unique(found[order], return_index=True, return_inverse=True)
    numbered = np.empty(len(found), dtype=np.int64)
    numbered[order] = np.argsort(np.argsort(first))[number]
    return numbered

"""Functions of a method, run by the kernel on raw cases in such a way that they cannot tell what they saw.

A question charges first and then runs the function. Whatever goes wrong in there, an exception of the function or an
answer of the wrong shape, becomes one error with a fixed text, without the exception that it came from: what it says
depends on nothing in the log. All that was reserved for the release is spent then, because how far it came may depend
on the log. Numbers out of range are none (a bin) or cut (a value).

That a function treats every case by itself is what all sensitivities rest on. It cannot be proved of a function that is
given, but carelessness shows: some cases of the first block are given a second time, in another order, in parts and
with no other labels than theirs, and a function whose answers differ (ranks, row numbers, means over the block, codes
of labels taken for numbers) is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from veilog.errors import QuestionError
from veilog.logs.variants import Sequences

IntArray = npt.NDArray[np.int64]
Triples = tuple[IntArray, IntArray, IntArray]
"""Rows, columns and values of sparse vectors of integers, one a case; equal places add up."""

_AGAIN = 128
"""So many cases of the first block are given twice: a difference shows in few, and a second look costs time."""


class Block(Protocol):
    """Cases as a function of a question sees them."""

    def __len__(self) -> int: ...
    def take(self, rows: IntArray) -> Self: ...


B = TypeVar("B", bound=Block)
T = TypeVar("T")


def answered(function: Callable[[B], object], read: Callable[[object, int], T | None], block: B) -> T:
    """Return what the function says of a block, as ``read`` understands it (None: not at all)."""
    try:
        found = read(function(block), len(block))
    except Exception:  # noqa: BLE001 - whatever it says, it may say of the data
        found = None
    if found is None:  # raised here, not above: an error must not carry the other one
        raise QuestionError("question-function-failed", parameter="question")
    return found


def bins_of(function: Callable[[B], object], block: B, size: int, *, check: bool) -> IntArray:
    """Return the bin of each case, -1 for none and for what is no bin; with ``check`` some cases are asked twice."""

    def read(answer: object, cases: int) -> IntArray | None:
        bins = np.asarray(answer)
        if bins.shape != (cases,) or not np.issubdtype(bins.dtype, np.integer):
            return None
        inside = (bins >= 0) & (bins < size)
        return np.where(inside, bins, -1).astype(np.int64)

    bins = answered(function, read, block)
    if check:
        for rows in _parts(len(block)):
            _same(answered(function, read, _alone(block, rows)), bins[rows])
    return bins


def triples_of(function: Callable[[B], object], block: B, size: int, largest: int, *, check: bool) -> Triples:
    """Return the vectors of the cases; places outside are left out, and values cut to ``largest`` on either side."""

    def read(answer: object, cases: int) -> Triples | None:
        if not isinstance(answer, tuple | list) or len(answer) != 3:
            return None
        rows, columns, values = (np.asarray(part) for part in answer)
        if rows.ndim != 1 or not rows.shape == columns.shape == values.shape:
            return None
        if len(rows) and not all(np.issubdtype(part.dtype, np.integer) for part in (rows, columns, values)):
            return None
        if not (_within(rows, 0, cases - 1) and _within(columns, 0, size - 1)):
            inside = (rows >= 0) & (rows < cases) & (columns >= 0) & (columns < size)
            rows, columns, values = rows[inside], columns[inside], values[inside]
        if not _within(values, -largest, largest):
            values = np.clip(values, -largest, largest)
        rows, columns, values = (part.astype(np.int64, copy=False) for part in (rows, columns, values))
        return rows, columns, values

    found = answered(function, read, block)
    if check:
        for part in _parts(len(block)):
            place = np.full(len(block), -1, dtype=np.int64)
            place[part] = np.arange(len(part))
            rows, columns, values = found
            asked = place[rows] >= 0
            first = (place[rows][asked], columns[asked], values[asked])
            again = answered(function, read, _alone(block, part))
            for one, other in zip(added_up(again), added_up(first), strict=True):
                _same(one, other)
    return found


def _within(numbers: npt.NDArray[Any], least: int, most: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= least and numbers.max() <= most)


def _parts(cases: int) -> list[IntArray]:
    """Some of the first cases, backwards, in two parts of unequal size."""
    backwards = np.arange(min(cases, _AGAIN), dtype=np.int64)[::-1]
    return [part for part in np.split(backwards, [len(backwards) // 3]) if len(part)]


def _alone(block: B, rows: IntArray) -> B:
    """These cases as in a log without others: no label but theirs, and these coded the other way round."""
    part = block.take(rows)
    if not isinstance(part, Sequences):
        return part
    used, places = np.unique(part.codes, return_inverse=True)
    labels = tuple(part.labels[code] for code in used[::-1].tolist())
    codes = (len(used) - 1 - places).astype(part.codes.dtype)
    return type(part)(labels, codes, part.offsets)


def added_up(triples: Triples) -> Triples:
    """Return vectors in one form: places in order, equal ones added up, zeros left out."""
    rows, columns, values = triples
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    if len(rows) == 0:
        return triples
    new = np.concatenate([[True], (np.diff(rows) != 0) | (np.diff(columns) != 0)])
    sums = np.add.reduceat(values, np.flatnonzero(new))
    there = sums != 0
    return rows[new][there], columns[new][there], sums[there]


def _same(one: IntArray, other: IntArray) -> None:
    if not np.array_equal(one, other):
        raise QuestionError("question-function-mixes-cases", parameter="question")

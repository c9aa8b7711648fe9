"""Functions of a method, run by the kernel on raw cases such that nothing leaks.

A query charges first and then runs the function. It may fail by an exception or by an answer of the wrong shape. Every
such failure becomes one error with a fixed text, without its original exception. So the error depends on nothing in the
log. All that was reserved for the release is spent then, because how far it came may depend on the log. A bin out of
range is none, and a value out of range is cut.

All sensitivities rest on one condition: a function treats every case by itself. It cannot be proved of a given
function, but carelessness shows. Some cases of the first block are passed a second time, in another order, in parts and
with no other labels than theirs. A function whose answers differ is refused (ranks, row numbers, means over the block,
codes of labels taken for numbers).
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
"""Rows, columns and values of sparse integer vectors, one a case; equal places add up."""

_AGAIN = 128
"""Number of cases of the first block that run twice: a difference shows in few, and a second look takes time."""


class Block(Protocol):
    """Cases as the function of a query sees them."""

    def __len__(self) -> int: ...
    def take(self, rows: IntArray) -> Self: ...


B = TypeVar("B", bound=Block)
T = TypeVar("T")


def answer_block(function: Callable[[B], object], read: Callable[[object, int], T | None], block: B) -> T:
    """Return the function's answer for a block as ``read`` takes it, or refuse it."""
    try:
        found = read(function(block), len(block))
    except Exception:  # noqa: BLE001 - its text may reveal data
        found = None
    if found is None:  # raised here, not above: it must not carry the original error
        raise QuestionError("question-function-failed", parameter="question")
    return found


def bins_of(function: Callable[[B], object], block: B, size: int, *, check: bool) -> IntArray:
    """Return each case's bin, -1 for none or out of range; ``check`` runs some twice."""

    def read(answer: object, cases: int) -> IntArray | None:
        bins = np.asarray(answer)
        if bins.shape != (cases,) or not np.issubdtype(bins.dtype, np.integer):
            return None
        inside = (bins >= 0) & (bins < size)
        return np.where(inside, bins, -1).astype(np.int64)

    bins = answer_block(function, read, block)
    if check:
        for rows in _parts(len(block)):
            _same(answer_block(function, read, _alone(block, rows)), bins[rows])
    return bins


def triples_of(function: Callable[[B], object], block: B, size: int, largest: int, *, check: bool) -> Triples:
    """Return the cases' vectors within ``size``, their values cut to ``largest``."""

    def read(answer: object, cases: int) -> Triples | None:
        if not isinstance(answer, tuple | list) or len(answer) != 3:
            return None
        rows, columns, values = (np.asarray(part) for part in answer)
        if rows.ndim != 1 or not rows.shape == columns.shape == values.shape:
            return None
        if len(rows) and not all(np.issubdtype(part.dtype, np.integer) for part in (rows, columns, values)):
            return None
        if not (_is_within(rows, 0, cases - 1) and _is_within(columns, 0, size - 1)):
            inside = (rows >= 0) & (rows < cases) & (columns >= 0) & (columns < size)
            rows, columns, values = rows[inside], columns[inside], values[inside]
        if not _is_within(values, -largest, largest):
            values = np.clip(values, -largest, largest)
        rows, columns, values = (part.astype(np.int64, copy=False) for part in (rows, columns, values))
        return rows, columns, values

    found = answer_block(function, read, block)
    if check:
        for part in _parts(len(block)):
            place = np.full(len(block), -1, dtype=np.int64)
            place[part] = np.arange(len(part))
            rows, columns, values = found
            asked = place[rows] >= 0
            first = (place[rows][asked], columns[asked], values[asked])
            again = answer_block(function, read, _alone(block, part))
            for one, other in zip(added_up(again), added_up(first), strict=True):
                _same(one, other)
    return found


def _is_within(numbers: npt.NDArray[Any], least: int, most: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= least and numbers.max() <= most)


def _parts(cases: int) -> list[IntArray]:
    """Return some of the first cases, backwards, in two parts of unequal size."""
    backwards = np.arange(min(cases, _AGAIN), dtype=np.int64)[::-1]
    return [part for part in np.split(backwards, [len(backwards) // 3]) if len(part)]


def _alone(block: B, rows: IntArray) -> B:
    """Return these cases as in a log of their own: only their labels, codes reversed."""
    part = block.take(rows)
    if not isinstance(part, Sequences):
        return part
    used, places = np.unique(part.codes, return_inverse=True)
    labels = tuple(part.labels[code] for code in used[::-1].tolist())
    codes = (len(used) - 1 - places).astype(part.codes.dtype)
    return type(part)(labels, codes, part.offsets)


def added_up(triples: Triples) -> Triples:
    """Return vectors in one form: places in order, equal ones added up, no zeros."""
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

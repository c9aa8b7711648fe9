"""Levenshtein distances between sequences of activities, in blocks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from veilog._typing import AnyFloatArray, FloatArray, IntArray
from veilog.logs.edits import DistanceArray, Strings, edit_matrix, lengths_of
from veilog.logs.variants import Sequences
from veilog.measures.measure import Progress
from veilog.measures.similarity.transport import Costs

_CHARACTERS = 0x110000
_BLOCK = 1 << 20
"""Distances computed between two looks at the clock and at Ctrl-C."""
KEPT_BYTES = 768 << 20
"""Matrices up to this size are kept; a larger one is computed again each time it is passed over."""


@dataclass(frozen=True, eq=False)
class EditDistances:
    """Distances between two lists of sequences, kept small or computed again."""

    rows: Strings
    columns: Strings
    row_lengths: IntArray
    column_lengths: IntArray
    kept: DistanceArray | None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.columns)

    def block(self, start: int, stop: int) -> DistanceArray:
        """The distances of the rows ``start`` up to ``stop`` to all columns."""
        if self.kept is not None:
            return self.kept[start:stop]
        return edit_matrix(self.rows[start:stop], self.columns)

    def pairs(self, rows: IntArray, columns: IntArray) -> IntArray:
        """The distances of single pairs."""
        if self.kept is not None:
            return self.kept[rows, columns].astype(np.int64)
        chosen = zip(rows.tolist(), columns.tolist(), strict=True)
        return np.array([Levenshtein.distance(self.rows[i], self.columns[j]) for i, j in chosen], dtype=np.int64)

    def largest(self) -> int:
        """The largest distance of all pairs."""
        step = max(1, _BLOCK // max(1, len(self.columns)))
        return max((int(self.block(s, s + step).max(initial=0)) for s in range(0, len(self.rows), step)), default=0)


def as_strings(a: Sequences, b: Sequences) -> tuple[Strings, Strings]:
    """Return both lists in one coding: activities are the same if their names are."""
    coding = {label: code for code, label in enumerate(dict.fromkeys(a.labels + b.labels))}
    return _recode(a, coding), _recode(b, coding)


def remove_overlap(rows: Strings, a: list[int], columns: Strings, b: list[int]) -> tuple[list[int], list[int], int]:
    """Return both without min(a, b) of each equal pair, and the sum of these."""
    position = {s: j for j, s in enumerate(columns)}
    a, b, matched = list(a), list(b), 0
    for i, s in enumerate(rows):
        j = position.get(s)
        if j is not None:
            both = min(a[i], b[j])
            a[i] -= both
            b[j] -= both
            matched += both
    return a, b, matched


def present(strings: Strings, masses: list[int]) -> tuple[Strings, list[int]]:
    """Those with a positive mass."""
    kept = [i for i, m in enumerate(masses) if m > 0]
    return [strings[i] for i in kept], [masses[i] for i in kept]


def sort_by_length(strings: Strings, masses: list[int]) -> tuple[Strings, list[int]]:
    """Return both in the order of the lengths and then of the activities."""
    order = sorted(range(len(strings)), key=lambda i: (len(strings[i]), strings[i]))
    return [strings[i] for i in order], [masses[i] for i in order]


def _recode(sequences: Sequences, coding: dict[str, int]) -> Strings:
    codes = np.array([coding[label] for label in sequences.labels], dtype="<u4")[sequences.codes]
    bounds = sequences.offsets.tolist()
    text: Any = codes.tolist()
    if len(coding) <= _CHARACTERS:
        text = codes.tobytes().decode("utf-32-le", "surrogatepass")
        return [text[i:j] for i, j in itertools.pairwise(bounds)]
    return [tuple(text[i:j]) for i, j in itertools.pairwise(bounds)]


def as_sequences(a: Strings, b: Strings) -> tuple[Sequences, Sequences]:
    """Return strings of :func:`as_strings` as sequences with common numbers as labels."""
    codes = [_codes(strings) for strings in (a, b)]
    labels = tuple(map(str, range(1 + max((int(c.max(initial=-1)) for c in codes), default=-1))))
    first, second = (
        Sequences(labels, c, np.concatenate([[0], np.cumsum([len(s) for s in strings])]).astype(np.int64))
        for c, strings in zip(codes, (a, b), strict=True)
    )
    return first, second


def _codes(strings: Strings) -> npt.NDArray[np.int32]:
    if strings and isinstance(strings[0], str):
        text = "".join(strings).encode("utf-32-le", "surrogatepass")
        return np.frombuffer(text, dtype="<u4").astype(np.int32)
    return np.fromiter(itertools.chain.from_iterable(strings), dtype=np.int32)


def edit_distances(
    rows: Strings, columns: Strings, *, keep_bytes: int = KEPT_BYTES, progress: Progress | None = None
) -> EditDistances:
    """Return distances of strings; kept if the matrix takes at most ``keep_bytes``."""
    row_lengths, column_lengths = lengths_of(rows), lengths_of(columns)
    dtype = np.min_scalar_type(int(max(row_lengths.max(initial=0), column_lengths.max(initial=0))))
    kept: DistanceArray | None = None
    if len(rows) * len(columns) * dtype.itemsize <= keep_bytes:
        kept = np.empty((len(rows), len(columns)), dtype=dtype)
        # Blocks of many rows let the library compare several sequences at once; small enough to get Ctrl-C through.
        step = max(1, 16 * _BLOCK // max(1, len(columns)))
        for start in range(0, len(rows), step):
            kept[start : start + step] = edit_matrix(rows[start : start + step], columns)
            if progress is not None and len(rows) > step:
                progress("Comparing variants", min(1.0, (start + step) / len(rows)))
        kept.setflags(write=False)
    return EditDistances(rows, columns, row_lengths, column_lengths, kept)


# Costs to move a case from one sequence to another, by their distance and their lengths ------------------------------


CostKind = Literal["plain", "normalised", "metric"]
"""The Levenshtein distance L of s and t; L / max(|s|, |t|); 2 L / (|s| + |t| + L)."""


def cost_of(kind: CostKind, distances: Any, length: Any, other: Any) -> AnyFloatArray:
    """Return the cost of a distance, given both lengths, in their precision.

    It rises with the distance and, for one distance, falls with the lengths."""
    edits: AnyFloatArray = np.asarray(distances, dtype=np.float32 if np.result_type(other) == np.float32 else float)
    if kind == "plain":
        return edits
    if kind == "normalised":
        return np.asarray(edits / np.maximum(np.maximum(length, other), np.float32(1)))
    return np.asarray(2 * edits / np.maximum(length + other + edits, np.float32(1)))


def edit_costs(
    distances: EditDistances, kind: CostKind, buffer: IntArray | None = None, *, column: bool = False
) -> Costs:
    """Return the costs of these distances; they stay small integers until needed.

    A ``buffer`` is one more row, or ``column``, with costs of its own.
    """
    rows, columns = distances.shape
    lengths, others = distances.row_lengths, distances.column_lengths
    more = buffer is not None

    def fill(start: int, out: AnyFloatArray) -> None:
        stop = min(start + len(out), rows)
        edits, filled = distances.block(start, stop), out[: stop - start, :columns]
        if kind == "plain":
            filled[...] = edits
        else:
            changes = np.flatnonzero(np.diff(lengths[start:stop])) + 1
            for first, last in itertools.pairwise([0, *changes.tolist(), stop - start] if stop > start else []):
                length = int(lengths[start + first])  # rows of one length are divided by the same
                if kind == "normalised":
                    by = np.maximum(max(1, length), others).astype(out.dtype)
                else:
                    by = np.maximum(1, length + others).astype(out.dtype) / 2 + edits[first:last] * out.dtype.type(0.5)
                np.divide(edits[first:last], by, out=filled[first:last])
        if buffer is not None and column:
            out[:, columns] = buffer[start : start + len(out)]
        elif buffer is not None and start + len(out) > rows:
            out[-1] = buffer

    def pick(i: IntArray, j: IntArray) -> FloatArray:
        costs = np.empty(len(i))
        real = (i < rows) & (j < columns)
        costs[real] = cost_of(kind, distances.pairs(i[real], j[real]), lengths[i[real]], others[j[real]])
        if buffer is not None:
            costs[~real] = buffer[(i if column else j)[~real]]
        return costs

    shape = (rows + (more and not column), columns + (more and column))
    return Costs(shape, fill, pick, integral=kind == "plain")

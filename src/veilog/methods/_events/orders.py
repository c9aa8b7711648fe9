"""Blocks and sorts for millions of released events.

Facts about the numbers make these sorts faster than general ones.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Repeated, Sequences

BLOCK_EVENTS = 1_500_000
"""Events of the released cases that are drawn at once.

They are enough for draws to have the shares that they should, and need some hundred megabytes of memory.
"""
_AT_ONCE = 2
"""Blocks that are worked on at a time."""

_LEAST_BITS = 16
"""Fewest bits of a number beside its row and its place: with fewer too many would be equal."""


@dataclass(frozen=True, eq=False)
class CaseBlock:
    """Block of released cases, one after the other."""

    rng: np.random.Generator
    cases: slice
    """Places of the cases among all cases."""
    events: slice
    """Places of their events among all events."""
    sequences: Sequences

    @property
    def owners(self) -> IntArray:
        """Case of each event, among those of the block."""
        return np.repeat(np.arange(len(self.sequences)), self.sequences.lengths)


def run_in_blocks(work: Callable[[CaseBlock], None], cases: Repeated, rng: np.random.Generator) -> None:
    """Do the work for all cases, block by block, some of them at a time.

    Cases are in random order, so each block is a sample of all. Up to ``BLOCK_EVENTS`` events are one block and draw
    from ``rng``. Of more events each block draws by itself.
    """
    number = max(1, -(-cases.events // BLOCK_EVENTS))
    edges = (np.arange(number + 1) * len(cases) // number).tolist()
    sources = [rng] if number == 1 else rng.spawn(number)

    def of_block(place: int) -> None:
        start, stop = edges[place], edges[place + 1]
        first, last = cases.offsets[[start, stop]].tolist()
        work(CaseBlock(sources[place], slice(start, stop), slice(first, last), cases.rows(start, stop)))

    if number == 1:
        of_block(0)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(of_block, range(number)):
            pass


def sort_in_rows(rows: IntArray, numbers: FloatArray) -> IntArray:
    """Return ``np.lexsort((numbers, rows))`` for rows from 0 on and numbers in [0, 1).

    Row, leading bits of the number and place are one integer, so that integers are sorted and nothing is moved along.
    Where leading bits are equal, the numbers decide.
    """
    of_place = len(rows).bit_length()
    of_row = max(1, int(rows.max(initial=0)).bit_length())
    of_number = 64 - of_place - of_row
    if of_number < _LEAST_BITS:
        return np.lexsort((numbers, rows))
    key = (numbers * 2.0**of_number).astype(np.uint64) << np.uint64(of_place)
    key |= rows.astype(np.uint64) << np.uint64(64 - of_row)
    key |= np.arange(len(rows), dtype=np.uint64)
    key.sort()
    order = (key & np.uint64((1 << of_place) - 1)).astype(np.int64)
    key >>= np.uint64(of_place)
    equal = np.flatnonzero(key[1:] == key[:-1])
    if len(equal):
        tied = np.union1d(equal, equal + 1)
        order[tied] = order[tied][np.lexsort((numbers[order[tied]], key[tied]))]
    return order


def pick_bins(q: FloatArray, rows: IntArray, u: FloatArray) -> IntArray:
    """Return a bin for each row number and number in [0, 1), from its row of ``q``."""
    reached = np.cumsum(q, axis=1)
    wanted, width = u * reached[rows, -1], q.shape[1]
    found = np.zeros(len(rows), dtype=np.int64)
    step = 1 << (width.bit_length() - 1)
    while step:  # how many are below what is wanted, by halving: they rise along a row
        last = found + step
        found += step * ((last <= width) & (reached[rows, np.minimum(last, width) - 1] < wanted))
        step >>= 1
    return np.asarray(np.minimum(found, width - 1))


def spread_evenly(u: FloatArray, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return numbers in the same order in each row, one in each of n equal parts."""
    order = sort_in_rows(rows, u)
    number = np.bincount(rows)
    row = rows[order]
    rank = np.empty(len(rows))
    rank[order] = np.arange(len(rows)) - (np.cumsum(number) - number)[row]
    return np.asarray((rank + rng.random(len(rows))) / number[rows])

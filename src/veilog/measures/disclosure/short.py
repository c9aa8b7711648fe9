"""Short sequences as background knowledge against very many variants, exactly and without tables of states.

There are only so many sequences of ``size`` activities. Which of them a variant contains is found for many variants at
once, event by event: what ends in this event's activity is what was contained before, and this activity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from veilog._typing import FloatArray
from veilog.logs.variants import Variants
from veilog.measures.disclosure.patterns import CandidateSums
from veilog.measures.disclosure.spaces import surprise

_CELLS = 1 << 22
"""Variants times sequences worked on at once."""
_MOST_SEQUENCES = 1 << 22
_CELLS_A_UNIT = 2
"""Cells in the time of one unit of work."""


def short_sequences(
    variants: Variants,
    size: int,
    *,
    weights: FloatArray,
    work_limit: float,
    report: Callable[[float], None] | None = None,
) -> CandidateSums | None:
    """All candidates of this size, two or more, summed up; None where that would exceed ``work_limit``."""
    activities = len(variants.labels)
    number = activities**size
    if number > _MOST_SEQUENCES or len(variants) * number > _CELLS_A_UNIT * work_limit:
        return None
    names = np.where(variants.counts == 1, np.arange(1.0, len(variants) + 1), 0.0)
    facts = np.stack([variants.counts.astype(np.float64), surprise(variants.counts), names])
    sums = np.zeros((3, number))
    step = max(1, _CELLS // number)
    for start in range(0, len(variants), step):
        stop = min(start + step, len(variants))
        sums += facts[:, start:stop] @ _contained(variants, start, stop, size).astype(np.float64)
        if report is not None and (start // step) % 16 == 0:
            report(start / len(variants))
    candidates = np.flatnonzero(sums[0])
    n, spread, name = sums[:, candidates]
    trace = (n == 1.0).astype(np.float64)
    np.divide(spread, n * np.log(np.maximum(n, 1.0)), out=trace, where=n > 1.0)
    trace = np.minimum(trace, 1.0)
    weight = np.zeros(len(candidates))
    rest = candidates
    for _ in range(size):
        rest, last = np.divmod(rest, activities)
        weight += weights[last] / size
    counted = weight > 0.0
    return CandidateSums(
        size=size,
        candidates=len(candidates),
        weight=float(weight.sum()),
        case_sum=float((weight / n).sum()),
        trace_sum=float((weight * trace).sum()),
        fewest=int(n[counted].min()) if counted.any() else 0,
        worst_trace=float(trace[counted].max()) if counted.any() else 0.0,
        # A sequence in one case only is in one variant only, which then has one case: the sum of names is its name.
        alone=np.unique(name[(n == 1.0) & counted]).astype(np.int64) - 1,
        work=len(variants) * number // _CELLS_A_UNIT,
    )


def _contained(variants: Variants, start: int, stop: int, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Of each variant from ``start`` up to ``stop``, which sequences of this size it contains."""
    activities, lengths = len(variants.labels), variants.lengths[start:stop]
    # One table a size: variant, last activity, number of the sequence without it.
    found = [np.ones((stop - start, 1), dtype=np.bool_)]
    found += [np.zeros((stop - start, activities, activities**k), dtype=np.bool_) for k in range(size)]
    for place in range(int(lengths.max(initial=0))):
        # Variants are sorted by length: those that go on are the last.
        going = np.arange(np.searchsorted(lengths, place, side="right"), stop - start)
        codes = variants.codes[variants.offsets[start + going] + place]
        for k in range(size, 0, -1):
            found[k][going, codes] |= found[k - 1].reshape(stop - start, -1)[going]
    return found[size].reshape(stop - start, -1)

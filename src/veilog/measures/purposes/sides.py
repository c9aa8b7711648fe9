"""The logs that stand beside a release when it is judged: parts of the original, and a bare list of its variants.

They are drawn with a fixed seed from an order of the cases that does not depend on that of the rows, so that the same
logs give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import Log, Needs, Pair

__all__ = ["Sides", "in_order", "split"]

SEED = 1
TRAINING = 0.7
"""Share of the cases that a ceiling may see where it is judged on the others."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Two logs, and what is made of the original to judge the release by."""

    pair: Pair

    def of(self, side: str, needs: Needs | Literal["either"], *, held_out: bool, draw: int = 0) -> tuple[Log, Log]:
        """Return the log that is used and the one on which it is judged, for one of the four sides; ``draw`` numbers
        the halvings of a floor."""
        logs = (self.pair.original, self.pair.released)
        whole = needs == "whole logs" or (needs == "either" and not any(isinstance(log, Variants) for log in logs))
        original, released = self.pair.whole if whole else self.pair.variants
        if _cases(original) < 2 or _cases(released) < 1:
            which, name = (original, "original") if _cases(original) < 2 else (released, "released")
            raise ParameterError(f"The {name} log has {_cases(which)} cases, too few to judge by.", parameter=name)
        seen, unseen = (self._whole_split if whole else self._variants_split) if held_out else (original, original)
        if side == "value":
            return released, unseen
        if side == "ceiling":
            return seen, unseen
        if side == "zero":
            return _listed(seen), unseen
        first, second = split(seen, 0.5, SEED + draw)
        return first, unseen if held_out else second

    @cached_property
    def _whole_split(self) -> tuple[Log, Log]:
        return split(self.pair.whole[0], TRAINING)

    @cached_property
    def _variants_split(self) -> tuple[Log, Log]:
        return split(self.pair.variants[0], TRAINING)


def split(log: Log, share: float, seed: int = SEED) -> tuple[Log, Log]:
    """Return a random part of the cases with this share of them, and the other cases."""
    cases = _cases(log)
    size = min(max(1, round(share * cases)), cases - 1)
    generator = np.random.default_rng(seed)
    if isinstance(log, Variants):
        taken = generator.multivariate_hypergeometric(log.counts, size, method="marginals")
        return log.with_counts(taken), log.with_counts(log.counts - taken)
    mixed = generator.permutation(in_order(log))
    return log.only(np.sort(mixed[:size])), log.only(np.sort(mixed[size:]))


def _listed(log: Log) -> Log:
    """Return every variant once: of a whole log, by one of its cases."""
    if isinstance(log, Variants):
        return log.with_counts(np.ones_like(log.counts))
    order = np.random.default_rng(SEED).permutation(in_order(log))
    return log.only(np.sort(_first_of_each_variant(log, order)))


def _first_of_each_variant(log: EventLog, order: IntArray) -> IntArray:
    numbers = np.ascontiguousarray(log.activity_codes[1], dtype=np.int32)
    first: dict[bytes, int] = {}
    for case in order.tolist():
        first.setdefault(numbers[log.offsets[case] : log.offsets[case + 1]].tobytes(), case)
    return np.fromiter(first.values(), dtype=np.int64, count=len(first))


def in_order(log: EventLog) -> IntArray:
    """Return the rows of the cases by their names: an order that is not that of the rows."""
    return np.asarray(pc.sort_indices(log.cases.column(ACTIVITY).cast(pa.string())), dtype=np.int64)


def _cases(log: Log) -> int:
    return log.cases if isinstance(log, Variants) else log.number_of_cases

"""Example of a method in another package: the first and last activities of cases.

Every case is reduced to its first and its last activity. One noisy histogram counts the pairs. A case is in one bin, so
the query has sensitivity 1 and the release uses epsilon. All else is post-processing of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from veilog import Method, Variants
from veilog.logs.variants import Sequences
from veilog.methods import Epsilon, Range, Request, Settings
from veilog.privacy.curator import Curator

__all__ = ["ENDS"]


@dataclass(frozen=True, kw_only=True)
class EndsSettings(Settings):
    """Settings for ``-p``, the pages' form and the metadata of releases."""

    least: Annotated[int, "noisy count from which on a pair is released", Range(1, 1_000_000)] = 5


def ends(curator: Curator, request: Request, settings: EndsSettings) -> Variants:
    """Return pairs of first and last activities, with noisy counts of epsilon."""
    activities = curator.activities
    place = {name: number for number, name in enumerate(activities)}
    none = len(activities) ** 2  # the bin of cases without events

    def pair(sequences: Sequences) -> npt.NDArray[np.int64]:
        recode = np.array([place[label] for label in sequences.labels] + [0], dtype=np.int64)
        codes = np.append(recode[sequences.codes], 0)
        first, last = codes[sequences.offsets[:-1]], codes[sequences.offsets[1:] - 1]
        return np.where(sequences.lengths > 0, first * len(activities) + last, none)

    counts = curator.histogram(pair, none + 1, request.epsilon, purpose="first and last activities")
    kept = {
        (activities[bin_ // len(activities)], activities[bin_ % len(activities)]): int(counts[bin_])
        for bin_ in np.flatnonzero(counts[:none] >= settings.least).tolist()
    }
    return Variants.from_dict(kept)


ENDS = Method(
    name="ends",
    title="Where cases begin and end",
    advice="Take it where only the first and the last activity of a case matter.",
    paper="an example: examples/plugin of veilog",
    budget=Epsilon(),
    guarantee="epsilon for one case, proven: one noisy histogram",
    as_published="the same",
    run=ends,
    settings=EndsSettings,
    needs=lambda settings: frozenset({"activities"}),
)

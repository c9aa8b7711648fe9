"""Survivors: how many activities a release of a made-up log still has, and in how many cases these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilog._language import gettext, localised
from veilog._plain import ToJson
from veilog._typing import IntArray
from veilog.logs.variants import Variants

__all__ = ["Survivors", "cases_with", "least_cases"]


@dataclass(frozen=True)
class Survivors(ToJson):
    """So many of so many activities, and in about how many cases an activity is, at least, that survives."""

    kept: int
    of: int
    least_cases: int

    def in_words(self) -> str:
        """Return a sentence for people."""
        return gettext(
            "About {kept} of {of} activities survive: those in about {least} cases or more.",
            kept=localised(f"{self.kept:,}"),
            of=localised(f"{self.of:,}"),
            least=localised(f"{self.least_cases:,}"),
        )

    @staticmethod
    def of_twins(found: Sequence[tuple[int, int, int]]) -> Survivors:
        """Return the median of what releases of several twins kept."""
        kept, of, least = (round(float(np.median(numbers))) for numbers in zip(*found, strict=True))
        return Survivors(kept, of, least)

    def among(self, cases: IntArray) -> Survivors:
        """Return what can survive of a log with these numbers of cases of each activity: confidential."""
        return Survivors(int((cases >= self.least_cases).sum()), len(cases), self.least_cases)


def cases_with(variants: Variants) -> IntArray:
    """Return the number of cases that have each activity."""
    size = len(variants.labels)
    rows = np.repeat(np.arange(len(variants), dtype=np.int64), variants.lengths)
    pairs = np.unique(rows * max(1, size) + variants.codes)
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, pairs % max(1, size), variants.counts[pairs // max(1, size)])
    return found


def least_cases(made: Variants, released: Variants) -> tuple[int, int, int]:
    """Return how many activities of a log its release has, of how many, and the number of cases that tells those that
    survived from the others with the fewest exceptions."""
    there, cases = set(released.labels), cases_with(made)
    survived = np.array([label in there for label in made.labels], dtype=bool)
    order = np.argsort(-cases, kind="stable")
    kept = np.cumsum(survived[order])
    wrong = np.arange(1, len(order) + 1) - kept + (survived.sum() - kept)
    return int(survived.sum()), len(order), int(cases[order][int(wrong.argmin())]) if len(order) else 0

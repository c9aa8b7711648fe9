"""Variants that original and release have in common, and cases of the others."""

from __future__ import annotations

from dataclasses import dataclass

from veilog._language import count_phrase
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair, our_measure


@dataclass(frozen=True)
class VariantCounts:
    """Numbers of common variants, of added ones and of lost ones.

    An added variant is in the release only (false positive), a lost one in the original only (false negative).
    """

    common: int
    added: int
    lost: int
    added_cases: int
    """Number of released cases that follow an added variant."""
    lost_cases: int
    """Number of original cases that follow a lost variant."""

    @property
    def with_cases(self) -> tuple[str, str]:
        """Return the two numbers of cases in words."""
        return count_phrase(self.added_cases, "released case"), count_phrase(self.lost_cases, "original case")


def overlap(original: Variants, released: Variants) -> VariantCounts:
    """Return the numbers of common, added and lost variants, and of their cases."""
    from veilog.measures.similarity.distances import as_strings  # and rapidfuzz with it

    rows, columns = as_strings(original.sequences, released.sequences)
    before = dict(zip(rows, original.counts.tolist(), strict=True))
    common, added, kept = 0, 0, 0
    for sequence, count in zip(columns, released.counts.tolist(), strict=True):
        if sequence in before:
            common += 1
            kept += before[sequence]
        else:
            added += count
    return VariantCounts(common, len(released) - common, len(original) - common, added, original.cases - kept)


def _overlap(pair: Pair) -> VariantCounts:
    return overlap(*pair.variants)


def _real(pair: Pair) -> float:
    """Return the share of released cases whose variant exists in the original."""
    _, released = pair.variants
    if released.cases == 0:
        raise ParameterError("overlap-release-without-cases", parameter="released")
    return (released.cases - pair.once(_overlap).added_cases) / released.cases


VARIANTS = our_measure("variants", lambda pair: pair.once(_overlap))
REAL_CASES = our_measure("keep_real", _real)

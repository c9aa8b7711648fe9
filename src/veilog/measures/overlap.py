"""Which variants original and release have in common, and how many cases follow the others."""

from __future__ import annotations

from dataclasses import dataclass

from veilog._language import counted
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.measure import Measure, Pair, Quantity


@dataclass(frozen=True)
class VariantCounts:
    """Variants in both logs, in the release only (false positives), in the original only (false negatives)."""

    common: int
    added: int
    lost: int
    added_cases: int
    """Released cases that follow an added variant."""
    lost_cases: int
    """Original cases that follow a lost variant."""

    @property
    def with_cases(self) -> tuple[str, str]:
        """The latter two in words."""
        return counted(self.added_cases, "released case"), counted(self.lost_cases, "original case")


def overlap(original: Variants, released: Variants) -> VariantCounts:
    """Return how many variants are common, added and lost, and the cases of the latter two."""
    before = dict(zip(original.sequences, original.counts.tolist(), strict=True))
    common, added, kept = 0, 0, 0
    for sequence, count in zip(released.sequences, released.counts.tolist(), strict=True):
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


VARIANTS = Measure(
    "variants",
    lambda pair: pair.once(_overlap),
    (
        Quantity("variants in both", "", "higher", of="common", unit="variants", plain=("variants kept", "in both")),
        Quantity(
            "variants added",
            "not in the original (false positives); {0.with_cases[0]}",
            "lower",
            best=0,
            of="added",
            unit="variants",
            plain=("variants added", "in the release only"),
        ),
        Quantity(
            "variants lost",
            "not in the release (false negatives); {0.with_cases[1]}",
            "lower",
            best=0,
            of="lost",
            unit="variants",
            plain=("variants lost", "in the original only"),
        ),
    ),
)
REAL_CASES = Measure(
    "keep_real",
    _real,
    (
        Quantity(
            "cases with a real variant",
            "share of released cases",
            "higher",
            best=1.0,
            high=1.0,
            form="share",
            plain=("cases with a real variant", "of the released cases follow a variant that exists in the original"),
        ),
    ),
)

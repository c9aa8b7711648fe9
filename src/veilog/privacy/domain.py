"""What is public about a process beyond doubt: its activities and a bound on the length of a trace.

Declared, these facts come from outside the log (a data dictionary, the process documentation), and a guarantee needs
no assumption about them: every case is made to fit by itself. Not declared, a method that needs one takes it from the
log, and the guarantee names that as an assumption.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Variants

__all__ = ["Domain"]


@dataclass(frozen=True)
class Domain:
    """Declared public facts; None where a fact is not declared."""

    activities: tuple[str, ...] | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.activities is not None:
            names = self.activities
            if isinstance(names, str) or not all(isinstance(name, str) for name in names):
                raise ParameterError("Declared activities must be a collection of names.", parameter="domain")
            if len(set(names)) != len(names):
                raise ParameterError("An activity is declared twice.", parameter="domain")
            if not names:
                raise ParameterError("The declared list of activities is empty.", parameter="domain")
            object.__setattr__(self, "activities", tuple(sorted(names)))
        if self.max_length is not None and (isinstance(self.max_length, bool) or self.max_length < 1):
            raise ParameterError("The declared length bound must be at least 1.", parameter="domain")

    @staticmethod
    def of(activities: Iterable[str] | None = None, max_length: int | None = None) -> Domain:
        return Domain(None if activities is None else tuple(activities), max_length)

    def fit(self, variants: Variants) -> Variants:
        """Every case made to fit the declared domain, each by itself: undeclared activities are left out of it, then
        it is cut to the declared length.

        A map of single cases takes neighbouring logs to neighbouring logs, so whatever is proved about questions on
        the result holds for the log.
        """
        keep = np.ones(len(variants.codes), dtype=bool)
        if self.activities is not None:
            declared = set(self.activities)
            known = np.array([label in declared for label in variants.labels], dtype=bool)
            keep = known[variants.codes] if len(variants.codes) else keep
        owner = np.repeat(np.arange(len(variants)), variants.lengths)
        if self.max_length is not None:
            kept_before = np.cumsum(keep) - keep
            at_start = np.concatenate([kept_before, [keep.sum()]])[variants.offsets[:-1]]
            keep &= kept_before - at_start[owner] < self.max_length
        if keep.all():
            return variants
        offsets = np.zeros(len(variants) + 1, dtype=np.int64)
        np.cumsum(np.bincount(owner[keep], minlength=len(variants)), out=offsets[1:])
        return Variants.from_arrays(variants.labels, variants.codes[keep], offsets, variants.counts)

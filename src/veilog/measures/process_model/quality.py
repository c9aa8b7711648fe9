"""What is measured of a model, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MEASURES = ("fitness", "precision", "f_score", "generalization")


@dataclass(frozen=True)
class ModelQuality:
    """Quality of the model discovered from a release; a measure that is None has its reason in ``not_computed``."""

    fitness: float | None = None
    precision: float | None = None
    f_score: float | None = None
    generalization: float | None = None
    not_computed: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def of(cls, values: Mapping[str, float], problem: str, seconds: float) -> ModelQuality:
        """Return the quality with the F-score that follows, and with one reason for what is not among the values."""
        known = dict(values)
        if {"fitness", "precision"} <= known.keys():
            both = known["fitness"] + known["precision"]
            known["f_score"] = 2 * known["fitness"] * known["precision"] / both if both else 0.0
        missing = {name: problem for name in MEASURES if name not in known}
        return cls(**known, not_computed=missing, seconds=seconds)

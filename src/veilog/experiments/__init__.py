"""The papers' tables and figures, computed again on any logs, and the frontier."""

from __future__ import annotations

from collections.abc import Mapping

from veilog.errors import ParameterError, meant
from veilog.experiments.experiment import Experiment
from veilog.experiments.frontier import FRONTIER
from veilog.experiments.papers.manifest import reproductions

__all__ = ["EXPERIMENTS", "FIGURES", "experiment_named"]

_REPRODUCED, FIGURES = reproductions()

EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in (FRONTIER, *_REPRODUCED)}


def experiment_named(name: str) -> Experiment:
    """Return the experiment of this name; :class:`ParameterError` if there is none."""
    if name not in EXPERIMENTS:
        raise ParameterError(
            "experiment-unknown",
            parameter="name",
            name=name,
            meant=meant(name, EXPERIMENTS),
            names=", ".join(EXPERIMENTS),
        )
    return EXPERIMENTS[name]

"""The papers' tables and figures, re-run on any logs, and a comparison of our own."""

from __future__ import annotations

from collections.abc import Mapping

from veilog.errors import ParameterError, meant
from veilog.experiments.experiment import Experiment
from veilog.experiments.frontier import FRONTIER
from veilog.experiments.papers.amun_table_6 import AMUN_TABLE_6
from veilog.experiments.papers.amun_table_7 import AMUN_TABLE_7
from veilog.experiments.papers.quantification_figure_2 import QUANTIFICATION_FIGURE_2
from veilog.experiments.papers.quantification_table_3 import QUANTIFICATION_TABLE_3
from veilog.experiments.papers.sacofa_figures import SACOFA_FIGURES
from veilog.experiments.papers.travag_figures import TRAVAG_FIGURES
from veilog.experiments.papers.travas_figures import TRAVAS_FIGURES

__all__ = ["EXPERIMENTS", "experiment_named"]

_EXPERIMENTS = (
    FRONTIER,
    TRAVAG_FIGURES,
    TRAVAS_FIGURES,
    AMUN_TABLE_6,
    AMUN_TABLE_7,
    QUANTIFICATION_FIGURE_2,
    QUANTIFICATION_TABLE_3,
    SACOFA_FIGURES,
)

EXPERIMENTS: Mapping[str, Experiment] = {experiment.name: experiment for experiment in _EXPERIMENTS}


def experiment_named(name: str) -> Experiment:
    """The experiment of this name; a :class:`ParameterError` that lists them all where there is none."""
    if name not in EXPERIMENTS:
        raise ParameterError(
            f"There is no experiment {name!r}.",
            parameter="name",
            advice=f"{meant(name, EXPERIMENTS)}Experiments: {', '.join(EXPERIMENTS)}.",
        )
    return EXPERIMENTS[name]

"""Discovery: how well a model of the release describes the original.

The model is the inductive miner's, without a filter and with one (noise threshold 0.2). The two numbers are fitness and
precision of the original on it (:mod:`veilog.measures.process_model`). They are shown separately. A model of six
frequent variants is precise because it leaves out what most cases do. A model of everything fits because it allows
everything. Each is compared with that of the original's own model, which may have less of one of them.

Replay passes over events whose activity the model does not have, so a release that lost most activities would fit. The
share of the events with kept activities is therefore reported with the two.

Kept is the share of what the original's own model reaches (Leemans, Fahland, van der Aalst: Discovering
block-structured process models, 2013 and 2014; Berti, van der Aalst 2019; Muñoz-Gama, Carmona 2010).

On request, alignments give the fitness of the original, too, in addition to that of token replay.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.measures.measure import Log
from veilog.measures.process_model import (
    ModelQuality,
    TooManyStatesError,
    aligned_fitness,
    check_alignments,
    model_quality,
)
from veilog.measures.use_cases.use_case import UseCase, UseCaseOptions, facts_of
from veilog.mining.inductive import Clock, OutOfTimeError, discover
from veilog.mining.replay import workflow_net

FILTER = 0.2
"""Noise threshold of the filter, as in :mod:`veilog.measures.process_model`."""
SECONDS = 60.0
"""Time limit for the discovery and replay of each model, and again for alignments."""
GLANCE = 10.0
"""Time limit where only the chief numbers are wanted."""


def _scores(used: Log, judged: Log, asked: UseCaseOptions) -> Mapping[str, float | None]:
    seconds = GLANCE if asked.chief_only else SECONDS
    wanted = {"": FILTER} if asked.chief_only else {"": FILTER, "_unfiltered": 0.0}
    models = {
        which: model_quality(judged, used, noise=noise, seconds=seconds, by="pm4py" if asked.pm4py else "veilog")
        for which, noise in wanted.items()
    }
    if all(found.fitness is None for found in models.values()):
        raise ParameterError(models[""].not_computed["fitness"], parameter="released")
    numbers = {name: number for which, found in models.items() for name, number in _quality_of(found, which).items()}
    aligned = _align_models(used, judged) if asked.alignments else {}
    return {**numbers, "kept": _shared_events(used, judged), **aligned}


def _shared_events(used: Log, judged: Log) -> float | None:
    """Return the share of the judged events whose activity is also in the other log."""
    known, found = (log if isinstance(log, Variants) else log.variants for log in (used, judged))
    events = np.repeat(found.counts, found.lengths)
    kept = np.isin(found.labels, known.labels)[found.codes]
    return float(events[kept].sum() / events.sum()) if len(events) else None


def _align_models(used: Log, judged: Log) -> dict[str, float | None]:
    """Return the fitness by alignments of each model; None where the time was over."""
    check_alignments()
    used, judged = (log if isinstance(log, Variants) else log.variants for log in (used, judged))
    found: dict[str, float | None] = {}
    for name, noise in (("aligned", FILTER), ("aligned_unfiltered", 0.0)):
        clock = Clock(SECONDS)
        try:
            net = workflow_net(discover(used, noise=noise, clock=clock))
            found[name] = aligned_fitness(judged, net, clock)
        except (OutOfTimeError, TooManyStatesError):
            found[name] = None
    return found


def _quality_of(quality: ModelQuality, which: str) -> dict[str, float | None]:
    return {f"fitness{which}": quality.fitness, f"precision{which}": quality.precision}


DISCOVERY = UseCase(score=_scores, **facts_of("discovery"))

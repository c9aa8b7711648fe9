"""How far a whole job is: a few stages in plain words, each with its share of the time that jobs usually take."""

from __future__ import annotations

from collections.abc import Mapping

from veilog._language import gettext, gettext_noop
from veilog.web.jobs.worker import Progress

__all__ = ["COMPARING", "MORE", "READING", "RELEASING", "Stages"]

READING: Mapping[str, float] = {
    gettext_noop("Looking at the columns"): 0.02,
    gettext_noop("Reading the log"): 0.38,
    gettext_noop("Counting who could be found"): 0.6,
}
"""What reading a log goes through."""
RELEASING: Mapping[str, float] = {
    gettext_noop("Reading the log"): 0.2,
    gettext_noop("Asking the log, with noise"): 0.3,
    gettext_noop("Writing the files"): 0.1,
}
COMPARING = {gettext_noop("Comparing with the original"): 0.4}
MORE = {"Comparing with the original": 0.15, gettext_noop("Trying how well the release predicts"): 0.25}
"""What a release goes through, with a short comparison or a thorough one."""


class Stages:
    """The stages of one job. What happens inside one moves the bar and is not said: it would mean nothing to most."""

    def __init__(self, progress: Progress, shares: Mapping[str, float]) -> None:
        self._progress = progress
        self._shares = shares

    def at(self, stage: str) -> Progress:
        """Begin a stage; returns what is told how far it is, in rounds of which each may begin anew."""
        names = list(self._shares)
        place = names.index(stage)
        before = sum(self._shares[name] for name in names[:place])
        furthest = 0.0

        def inside(text: str, fraction: float | None) -> None:
            nonlocal furthest
            furthest = max(furthest, min(fraction or 0.0, 1.0))
            said = gettext("{stage} (step {n} of {all})", stage=gettext(stage), n=place + 1, all=len(names))
            self._progress(said, (before + furthest * self._shares[stage]) / sum(self._shares.values()))

        inside(stage, 0.0)
        return inside

"""What stands between a method and its curator, for those who look at what is asked and answered.

A :class:`Watched` curator is used as the curator itself. What it is asked goes through a :class:`Watcher`, which asks
the curator, or answers in its place. It holds for all questions, also those about events and those asked of a sample
or of a training, and for nothing that is public: that is read as it is.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from veilog.privacy.curator import Curator

QUESTIONS = (
    "count",
    "concentration",
    "histogram",
    "sums",
    "partitions",
    "find_activities",
    "distinct",
    "frequent_values",
    "most_apart",
    "step",
)
"""What answers with numbers or names; ``sums`` is asked of curators, of their questions about events and of rounds."""
OPENING = ("subsample", "training", "rounds")
"""What gives a curator, steps, histograms or sums to ask further."""
PEEKING = ("peek", "peek_log")


class Watcher(Protocol):
    """Who is told what is asked."""

    def question(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the answer to a question of ``holder``: a curator or what it opened, or its questions about events."""

    def opened(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return what is opened: a curator of a sample, a training, or rounds of histograms or sums."""

    def peeked(self, holder: Any, name: str, given: tuple[Any, ...]) -> Any:
        """Return what is looked at without noise."""


class _Watched:
    """Stands in for a curator, its questions about events or a training."""

    def __init__(self, holder: Any, watcher: Watcher) -> None:
        self._holder, self._watcher = holder, watcher

    def __getattr__(self, name: str) -> Any:
        holder, watcher = self._holder, self._watcher
        if name in QUESTIONS:
            return lambda *given, **named: watcher.question(holder, name, given, named)
        if name in OPENING:
            return lambda *given, **named: _Watched(watcher.opened(holder, name, given, named), watcher)
        if name in PEEKING:
            return lambda *given: watcher.peeked(holder, name, given)
        found = getattr(holder, name)
        return _Watched(found, watcher) if name == "events" else found


def watched(curator: Curator, watcher: Watcher) -> Curator:
    """Return what is used as the curator is, and tells the watcher."""
    return cast(Curator, _Watched(curator, watcher))

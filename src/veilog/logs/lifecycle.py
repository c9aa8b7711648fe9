"""Life cycles: which transition of its activity an event is, and activities that several attributes tell together.

Both are decided event by event, so that what one case holds changes no other.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._language import gettext_noop
from veilog._typing import BoolArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import LIFECYCLE
from veilog.logs.findings import Findings

__all__ = ["EVERY", "INSTEAD", "Transitions", "joined", "no_life_cycle"]


INSTEAD = gettext_noop(
    "Every one counts as an event. None is complete; --lifecycle {value} keeps only the most frequent one, and "
    "--classifier 'concept:name lifecycle:transition' tells them apart."
)
"""What is advised where nothing is complete."""
_COMPLETE = "complete"
_SHOWN = 40
"""Letters of a transition that are shown."""
EVERY = "all"
"""What is asked for where every transition is to count: then nothing need be said about it."""


class Transitions:
    """Counts the transitions of events, block by block, and chooses the wanted ones, whatever their upper case."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = None if wanted is None else wanted.strip().casefold()
        self._said = wanted
        self._every = self._wanted == EVERY
        self._counts: Counter[tuple[str, str]] = Counter()

    @staticmethod
    def of(counts: Iterable[tuple[str, str, int]], wanted: str | None = None) -> Transitions:
        """What was counted elsewhere: activity, transition, and how many events."""
        found = Transitions(wanted)
        found._counts.update({(label, step): count for label, step, count in counts})
        return found

    def keep(self, labels: Any, transitions: Any) -> BoolArray:
        """Which of these events count, by columns of text: their activities and their transitions."""
        label, step = _Encoded(labels), _Encoded(transitions)
        pairs = label.codes.astype(np.int64) * len(step.names) + step.codes
        found, counts = np.unique(pairs, return_counts=True)
        for pair, count in zip(found.tolist(), counts.tolist(), strict=True):
            self._counts[label.names[pair // len(step.names)], step.names[pair % len(step.names)]] += count
        if self._wanted is None or self._every:
            return np.ones(len(pairs), dtype=np.bool_)
        fits = np.array([name.strip().casefold() == self._wanted for name in step.names], dtype=np.bool_)
        return np.asarray(fits[step.codes], dtype=np.bool_)

    def done(self, findings: Findings, *, told_apart: bool) -> None:
        """After the last block: a finding where activities have several transitions, all of which count, unless a
        classifier tells them apart; :class:`ParameterError` where no event has the transition that was asked for."""
        if self._every:
            return
        totals: Counter[str] = Counter()
        for (_, step), count in self._counts.items():
            totals[step] += count
        if self._wanted is not None:
            if totals and not any(step.strip().casefold() == self._wanted for step in totals):
                known = ", ".join(repr(step) for step, _ in totals.most_common(20) if step) or "none"
                raise ParameterError(
                    f"No event is the transition {self._said!r}.",
                    parameter="lifecycle",
                    advice=f"The log has: {known}.",
                )
            return
        others = [(step, n) for step, n in totals.most_common() if step and step.strip().casefold() != _COMPLETE]
        if told_apart or not others or not self._repeated():
            return
        (first, most), *more = [(step[:_SHOWN], n) for step, n in others]
        shown = f"{most:,} of {totals.total():,} events are `{first}`"
        shown += "".join(f", {n:,} are `{step}`" for step, n in more[:2]) + (", ..." if len(more) > 2 else "")
        complete = any(step.strip().casefold() == _COMPLETE for step in totals)
        advice = "" if complete else INSTEAD.format(value=shlex.quote(_most_frequent(others)))
        findings.add("lifecycle-transitions", shown, count=sum(n for _, n in others), advice=advice)

    def wanted(self) -> list[str]:
        """How the transition that was asked for is written in the log."""
        return sorted({step for _, step in self._counts if self._every or step.strip().casefold() == self._wanted})

    def _repeated(self) -> bool:
        """Whether some activity has several transitions."""
        pairs = {(label, step.strip().casefold()) for label, step in self._counts if step}
        return len({label for label, _ in pairs}) < len(pairs)


def _most_frequent(steps: Sequence[tuple[str, int]]) -> str:
    """The transition that most of these events are, in the most frequent of its spellings."""
    totals: Counter[str] = Counter()
    for step, count in steps:
        totals[step.strip().casefold()] += count
    ((most, _),) = totals.most_common(1)
    name = next(step.strip() for step, _ in steps if step.strip().casefold() == most)
    return name if len(name) <= _SHOWN else "NAME"


def no_life_cycle(wanted: str) -> ParameterError:
    """What is wrong where a transition is asked for, and events have none."""
    return ParameterError(
        f"The log has no {LIFECYCLE!r}, so it does not say which events are {wanted!r}.",
        parameter="lifecycle",
        advice="Leave the life cycle away.",
    )


def joined(parts: Sequence[Any]) -> Any:
    """The values of several columns of text as one, joined by ``+`` as XES does; a missing value is empty."""
    filled = [pc.fill_null(part.cast(pa.string()), "") for part in parts]
    return filled[0] if len(filled) == 1 else pc.binary_join_element_wise(*filled, "+")


class _Encoded:
    """A column of text as codes of names, a missing one being empty."""

    def __init__(self, column: Any) -> None:
        encoded = pc.fill_null(column.cast(pa.string()), "").dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], pa.string()).dictionary_encode()
        self.names: list[str] = encoded.dictionary.to_pylist() or [""]
        self.codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False))

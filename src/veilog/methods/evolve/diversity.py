"""Diversity of a release: edits of prototypes for the cases near them.

A prototype stands for the cases that are nearest to it, so equal copies of it claim more than any answer did. The fit
estimates how many of these cases are the prototype itself (:func:`themselves`). Each of the others is released with one
event of the prototype inserted, left out, exchanged with the next one or replaced. An edit is as likely as the
release's own chain has it, relative to the prototype: ``P(edited) / P(prototype)``. Each edit is used once.

Edits must not spoil the use of the release. Edits with any step are tried first, then those with more and more frequent
steps only, and at last none. The first are taken with which the release gives as good a model as without any.

All of this is post-processing of noisy answers: nothing here can query the curator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.edits import Strings
from veilog.methods.evolve.chain import Chain, relation_sums
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.structure import Weighted
from veilog.methods.evolve.traces import PAD, Traces, occurrences, strings

_INSERTED, _REPLACED, _LEFT_OUT, _EXCHANGED = range(4)
_RARELY = 1e-9
"""Chance of a step that the chain does not know."""


def themselves(fine: Weighted, pool: Traces, p: FloatArray, cases: float, settings: Constants) -> IntArray:
    """Return each trace's cases that are the trace itself by the fit, at least one.

    The pool is so many draws, and a trace was chosen from them. So the weight of ``chosen_draws`` of them may be
    chance.
    """
    weight = dict(zip(strings(pool), p.tolist(), strict=True))
    own = np.array([weight.get(text, 0.0) for text in strings(fine.traces)]) - settings.chosen_draws / settings.pool
    copies: IntArray = np.clip(np.round(cases * own), 1, np.maximum(fine.counts, 1)).astype(np.int64)
    copies[: fine.real] = fine.counts[: fine.real]
    return copies


def diverse(
    fine: Weighted,
    copies: IntArray,
    edits: Edits,
    good: Callable[[Weighted], bool],
    settings: Constants,
    rng: np.random.Generator,
) -> Weighted:
    """Return the release with ``copies`` of each trace, and its other cases edited.

    ``good`` returns True if a release gives as good a model as this one.
    """
    if not (fine.counts > copies).any():
        return fine
    for rarest in settings.diverse_steps:
        found = edits.applied(fine, copies, rarest, rng)
        if good(found):
            return found
    return fine


@dataclass(frozen=True, eq=False)
class Edits:
    """Likelihoods of steps that an edit may take, and activities that no edit repeats.

    Start and end are the last state.
    """

    chances: FloatArray
    strength: FloatArray
    """Frequency of each step in the release, over the most frequent one from there."""
    single: BoolArray
    """Activities that occur at most once in each trace."""
    longest: int
    obeys: Callable[[Traces], BoolArray]
    """Function that returns a mask of the traces that obey the rules of the release."""

    @staticmethod
    def of(fine: Weighted, chain: Chain, longest: int) -> Edits:
        """Return the edits of a chain; they repeat nothing that no trace repeats."""
        flow = relation_sums(fine.traces, fine.counts.astype(np.float64), chain.size)
        strongest = flow.max(axis=1, keepdims=True)
        again = (occurrences(fine.traces, chain.size) > 1).any(axis=0)
        return Edits(
            np.where(chain.support | (chain.flow > 0), chain.next_chances(), 0.0),
            flow / np.where(strongest > 0, strongest, 1.0),
            chain.once | ~again,
            longest,
            chain.obeys,
        )

    def applied(self, fine: Weighted, copies: IntArray, rarest: float, rng: np.random.Generator) -> Weighted:
        """Return the release with one edit for each case that is not to be a copy.

        There may be too few edits. They take steps that the release takes at least ``rarest`` times as often as the
        most frequent one from there.
        """
        texts = strings(fine.traces)
        taken, left = set(texts), fine.counts.copy()
        new: list[str] = []
        for row in np.flatnonzero(fine.counts > copies).tolist():
            wanted, edits = int(left[row] - copies[row]), self.drawn(texts[row], rarest, rng)
            found: list[str] = []
            while len(found) < wanted and (some := list(itertools.islice(edits, 2 * wanted))):
                others = [text for text in some if text not in taken]
                found += itertools.compress(others, self.obeys(traces_of(others)).tolist())
            found = found[:wanted]
            left[row] -= len(found)
            taken.update(found)
            new += found
        return Weighted(traces_of(texts + new), np.concatenate([left, np.ones(len(new), dtype=left.dtype)]), fine.real)

    def drawn(self, text: str, rarest: float, rng: np.random.Generator) -> Iterator[str]:
        """Yield the edits of a trace, each once, as if drawn in turn by their likelihood.

        By Gumbel's trick, the largest ``log weight + noise`` is a draw, and the next one a draw of the rest.
        """
        kinds, places, events, weights = self._weigh_edits(text, rarest)
        order = np.argsort(-(np.log(weights) + rng.gumbel(size=len(weights))), kind="stable")
        edits = zip(*(part[order].tolist() for part in (kinds, places, events)), strict=True)
        return _each_once(itertools.starmap(partial(_apply_edit, text), edits))

    def _weigh_edits(self, text: str, rarest: float) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return all edits: kinds, places, new events, and relative likelihoods."""
        size, length = len(self.chances) - 1, len(text)
        own = np.fromiter(map(ord, text), dtype=np.int64, count=length)
        around = np.concatenate([[size], own, [size]])
        allowed = np.where(self.strength >= rarest, self.chances, 0.0)
        step = np.maximum(self.chances[around[:-1], around[1:]], _RARELY)
        both = step[:-1] * step[1:]
        news = np.ones(size)
        news[own[self.single[own]]] = 0.0
        weights = {
            _INSERTED: allowed[around[:-1], :-1] * allowed[:-1, around[1:]].T * news / step[:, None],
            _REPLACED: allowed[around[:-2], :-1] * allowed[:-1, around[2:]].T * news / both[:, None],
            _LEFT_OUT: allowed[around[:-2], around[2:], None] / both[:, None],
        }
        weights[_REPLACED][np.arange(length), own] = 0.0
        if length >= self.longest:
            weights[_INSERTED][:] = 0.0
        if length < 2:
            weights[_LEFT_OUT][:] = 0.0
        else:
            a, x, y, b = around[:-3], own[:-1], own[1:], around[3:]
            moved = allowed[a, y] * allowed[y, x] * allowed[x, b] / (step[:-2] * step[1:-1] * step[2:])
            weights[_EXCHANGED] = np.where(x == y, 0.0, moved)[:, None]
        cells = {kind: np.nonzero(weight) for kind, weight in weights.items()}
        return (
            np.concatenate([np.full(len(places), kind) for kind, (places, _) in cells.items()]),
            np.concatenate([places for places, _ in cells.values()]),
            np.concatenate([events for _, events in cells.values()]),
            np.concatenate([weights[kind][cell] for kind, cell in cells.items()]),
        )


def _each_once(texts: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _apply_edit(text: str, kind: int, at: int, event: int) -> str:
    if kind == _INSERTED:
        return text[:at] + chr(event) + text[at:]
    if kind == _REPLACED:
        return text[:at] + chr(event) + text[at + 1 :]
    if kind == _LEFT_OUT:
        return text[:at] + text[at + 1 :]
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def traces_of(texts: Strings) -> Traces:
    """Return the traces of strings, the inverse of ``traces.strings``."""
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    codes = np.full((len(texts), int(lengths.max(initial=1))), PAD, dtype=np.int32)
    events = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    codes[np.arange(codes.shape[1]) < lengths[:, None]] = events
    return Traces(codes, lengths)

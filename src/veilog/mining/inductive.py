"""The inductive miner: from a log to a process tree.

S. Leemans, D. Fahland, W. van der Aalst: "Discovering block-structured process models from event logs", 2013, and
"... containing infrequent behaviour", 2014 (the noise threshold); cuts and fall-throughs as in Leemans' thesis of 2017.

A log is cut by the first of the four operators whose groups its directly-follows graph falls into, and each group's log
is mined in turn. Where there is no cut, rare edges are left out of the graph; where there is none in what is left, the
first fall-through that there is is taken. Without a noise threshold every trace of the log is a trace of the tree.

The trees are those of pm4py 2.7: it has the same cuts in the same order, and the same fall-throughs.
"""

from __future__ import annotations

import itertools

from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.mining.cuts import find_cut
from veilog.mining.graph import BORDER, Log, Relations
from veilog.mining.limits import UNLIMITED, Clock
from veilog.mining.splits import SPLITS, dropped
from veilog.mining.tree import (
    SILENT,
    Operator,
    ProcessTree,
    activity,
    choice,
    loop,
    ordered,
    parallel,
    reduced,
)


def discover(variants: Variants, *, noise: float = 0.0, clock: Clock = UNLIMITED) -> ProcessTree:
    """Return the process tree of a log; edges with less than ``noise`` of the cases of the strongest one may go."""
    if not 0.0 <= noise <= 1.0:
        raise ParameterError(f"A noise threshold of {noise} is outside 0 to 1.", parameter="noise")
    # One more than the code: the first character is the border.
    text = (variants.codes + 1).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    bounds = variants.offsets.tolist()
    log = {text[a:b]: n for (a, b), n in zip(itertools.pairwise(bounds), variants.counts.tolist(), strict=True)}
    return ordered(reduced(_Miner(variants.labels, noise, clock).tree(log)))


class _Miner:
    """The labels of the characters of traces, and what is to be left out."""

    def __init__(self, labels: tuple[str, ...], noise: float, clock: Clock) -> None:
        self._labels, self._noise, self._clock = labels, noise, clock

    def tree(self, log: Log) -> ProcessTree:
        """Return the tree of a log of strings."""
        self._clock.check()
        empty = log.get("", 0)
        if empty and len(log) > 1:
            rest = {trace: cases for trace, cases in log.items() if trace}
            if not self._noise or empty > self._noise * sum(log.values()):
                return choice(SILENT, self.tree(rest))
            log = rest
        if not log:
            return SILENT
        if len(log) == 1 and len(trace := next(iter(log))) < 2:
            return self._activity(trace) if trace else SILENT
        relations = Relations(log)
        cut = find_cut(relations.graph)
        if cut is None and self._noise:
            cut = find_cut(relations.filtered(self._noise))
        if cut is None:
            return self._fall_through(log, relations)
        operator, masks = cut
        groups = ["".join(c for i, c in enumerate(relations.letters, 1) if mask >> i & 1) for mask in masks]
        return ProcessTree(operator, tuple(self.tree(part) for part in SPLITS[operator](log, groups)))

    def _activity(self, letter: str) -> ProcessTree:
        return activity(self._labels[ord(letter) - 1])

    def _fall_through(self, log: Log, relations: Relations) -> ProcessTree:
        letter = _once_per_trace(log, relations.letters) or _concurrent(relations)
        if letter:
            own = dropped(log, relations.letters.replace(letter, ""))
            return parallel(self.tree(own), self.tree(dropped(log, letter)))
        starts = {trace[0] for trace in log}
        ends = {trace[-1] for trace in log}
        pieces = _pieces(log, starts, ends) or _pieces(log, starts, set(relations.letters))
        if pieces:
            return loop(self.tree(pieces), SILENT)
        return loop(SILENT, ProcessTree(Operator.CHOICE, tuple(map(self._activity, relations.letters))))


def _once_per_trace(log: Log, letters: str) -> str:
    """Return the first activity that every trace has exactly once."""
    return next((letter for letter in letters if all(trace.count(letter) == 1 for trace in log)), "")


def _concurrent(relations: Relations) -> str:
    """Return the first activity without which there is a cut."""
    return next((letter for letter, graph in relations.without_each() if find_cut(graph) is not None), "")


def _pieces(log: Log, starts: set[str], ends: set[str]) -> dict[str, int]:
    """Return the pieces of traces that are cut wherever a start follows an end; nothing if none is cut.

    Cut after an end it is the strict loop around what is done, after anything the loop.
    """
    found: dict[str, int] = {}
    cut = False
    for trace, cases in log.items():
        marked = trace[0] + "".join(
            BORDER + after if after in starts and before in ends else after
            for before, after in itertools.pairwise(trace)
        )
        pieces = marked.split(BORDER)
        cut = cut or len(pieces) > 1
        for piece in pieces:
            found[piece] = found.get(piece, 0) + cases
    return found if cut else {}

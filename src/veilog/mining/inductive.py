"""The inductive miner: from a log to a process tree.

S. Leemans, D. Fahland, W. van der Aalst: "Discovering block-structured process models from event logs", 2013, and
"... containing infrequent behaviour", 2014 (the noise threshold); cuts and fall-throughs as in Leemans' thesis of 2017.

A log is cut by the first of the four operators whose groups its directly-follows graph falls into. Each group's log is
mined in turn. Where there is no cut, rare edges are left out of the graph. Where that leaves no cut either, the first
possible fall-through is taken. Without a noise threshold every trace of the log is a trace of the tree.

The trees are those of pm4py 2.7: it has the same cuts in the same order, and the same fall-throughs.

Within discovery a log is a dict from traces to numbers of cases, and a trace is a string with one character an
activity. The character 0 stands for none, so it can be the border of traces: an activity after it starts a trace, one
before it ends one.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError, VeilogError
from veilog.logs.variants import Variants
from veilog.mining.tree import (
    SILENT,
    Operator,
    ProcessTree,
    activity,
    choice,
    loop,
    order_tree,
    parallel,
    reduce_tree,
)


class OutOfTimeError(VeilogError):
    """Work that did not end in its time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"Not done after {seconds:g} seconds.")


class Clock:
    """Time that is left; long work checks it now and then."""

    def __init__(self, seconds: float = float("inf")) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def check(self) -> None:
        """Raise :class:`OutOfTimeError` when the time is over."""
        if time.monotonic() > self._end:
            raise OutOfTimeError(self.seconds)


UNLIMITED = Clock()


Log = Mapping[str, int]
BORDER = "\0"


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True)
class Graph:
    """Directly-follows graph in bit masks; node 0 is the border of traces, in no mask."""

    successors: list[int]
    predecessors: list[int]
    starts: int
    ends: int

    @classmethod
    def of(cls, edges: BoolArray) -> Graph:
        """Return the graph of a matrix whose first row and column are the border's."""
        successors, predecessors = _masks(edges), _masks(edges.T)
        starts, ends = successors[0] & ~1, predecessors[0] & ~1
        return cls([0, *(m & ~1 for m in successors[1:])], [0, *(m & ~1 for m in predecessors[1:])], starts, ends)

    @property
    def nodes(self) -> int:
        """Mask of the activities that have an edge, start or end."""
        mask = self.starts | self.ends
        for position in range(1, len(self.successors)):
            if self.successors[position] or self.predecessors[position]:
                mask |= 1 << position
        return mask


def _masks(edges: BoolArray) -> list[int]:
    """Return the mask of the true columns of each row."""
    packed = np.packbits(edges, axis=1, bitorder="little")
    width, raw = packed.shape[1], packed.tobytes()
    return [int.from_bytes(raw[i : i + width], "little") for i in range(0, len(raw), width)]


class Relations:
    """Numbers of times that each activity of a log directly follows each."""

    def __init__(self, log: Log) -> None:
        text = BORDER + BORDER.join(log) + BORDER
        codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
        present = np.flatnonzero(np.bincount(codes))
        self.letters = "".join(map(chr, present[1:].tolist()))
        """Activities, in their order; a position in a mask is one more than that in here."""
        self._size = len(present)
        index = np.zeros(int(present[-1]) + 1, dtype=np.int64)
        index[present] = np.arange(self._size)
        self._nodes: IntArray = index[codes]
        steps = np.fromiter(map(len, log), np.int64, len(log)) + 1
        cases = np.repeat(np.fromiter(log.values(), np.float64, len(log)), steps)
        pairs = self._nodes[:-1] * self._size + self._nodes[1:]
        counts = np.bincount(pairs, cases, minlength=self._size**2)
        self._counts: IntArray = counts.astype(np.int64).reshape(self._size, self._size)
        self.graph = Graph.of(self._counts > 0)

    def filtered(self, noise: float) -> Graph:
        """Return the graph without edges far rarer than the strongest from their start.

        An edge stays if it has more than ``noise`` times the cases of the most frequent edge from its start. The end of
        the trace is such an edge where there is another. A start stays if it has at least ``noise`` times those of the
        most frequent start.
        """
        counts = self._counts
        edges = counts > 0
        edges[1:, 1:] &= counts[1:, 1:] > noise * counts[1:].max(axis=1)[:, None]
        edges[0] &= counts[0] >= noise * counts[0, 1:].max()
        return Graph.of(edges)

    def without_each(self) -> Iterator[tuple[str, Graph]]:
        """Yield each activity and the graph without it, where its neighbours meet."""
        runs = self._nodes[np.concatenate([[True], self._nodes[1:] != self._nodes[:-1]])]
        size = self._size
        keys = np.unique((runs[1:-1] * size + runs[:-2]) * size + runs[2:])
        around: list[list[tuple[int, int]]] = [[] for _ in range(size)]
        for middle, before, after in zip(
            (keys // size**2).tolist(), (keys // size % size).tolist(), (keys % size).tolist(), strict=True
        ):
            around[middle].append((before, after))
        for position, letter in enumerate(self.letters, 1):
            yield letter, self._graph_without(position, around[position])

    def _graph_without(self, position: int, around: list[tuple[int, int]]) -> Graph:
        keep = ~(1 << position)
        successors = [mask & keep for mask in self.graph.successors]
        predecessors = [mask & keep for mask in self.graph.predecessors]
        successors[position] = predecessors[position] = 0
        starts, ends = self.graph.starts & keep, self.graph.ends & keep
        for before, after in around:
            if before and after:
                successors[before] |= 1 << after
                predecessors[after] |= 1 << before
            elif after:
                starts |= 1 << after
            elif before:
                ends |= 1 << before
        return Graph(successors, predecessors, starts, ends)


def find_cut(graph: Graph) -> tuple[Operator, list[int]] | None:
    """Return the first possible cut, and its groups in their order."""
    for operator, find in _KINDS:
        groups = find(graph)
        if len(groups) > 1:
            return operator, groups
    return None


def _components(nodes: int, neighbours: Sequence[int]) -> list[int]:
    """Return the connected parts of some nodes, in the order of their lowest nodes."""
    found = []
    while nodes:
        group = _reachable_mask(nodes & -nodes, neighbours, nodes)
        found.append(group)
        nodes &= ~group
    return found


def choice_cut(graph: Graph) -> list[int]:
    """Return groups without edges between them."""
    either = [after | before for after, before in zip(graph.successors, graph.predecessors, strict=True)]
    return _components(graph.nodes, either)


def sequence_cut(graph: Graph) -> list[int]:
    """Return groups of which later ones follow earlier ones, and never vice versa.

    Groups that can only be skipped together with others are joined with them (the strict cut).
    """
    nodes = graph.nodes
    first = nodes & -nodes
    if _reachable_mask(first, graph.successors, nodes) == nodes == _reachable_mask(first, graph.predecessors, nodes):
        return [nodes]
    reach = _reach(graph.successors, nodes)
    back = _reach(graph.predecessors, nodes)
    together = [0] * len(reach)
    for node in bits(nodes):
        both, one = reach[node] & back[node], reach[node] | back[node]
        together[node] = both | (nodes & ~one)
    groups = _components(nodes, together)
    if len(groups) < 2:
        return groups

    def place(group: int) -> int:
        node = (group & -group).bit_length() - 1
        itself = 1 << node
        return (back[node] & ~itself).bit_count() - (reach[node] & ~itself).bit_count()

    return _strict(graph, sorted(groups, key=place))


def _reachable_mask(start: int, successors: Sequence[int], within: int) -> int:
    """Return the mask of these nodes and of all that they lead to, within some nodes."""
    found, front = 0, start
    while front:
        found |= front
        reached = 0
        for node in bits(front):
            reached |= successors[node]
        front = reached & within & ~found
    return found


def _reach(successors: Sequence[int], nodes: int) -> list[int]:
    """Return for each node the mask of those that it leads to."""
    reach = list(successors)
    for by in bits(nodes):
        bit, further = 1 << by, reach[by]
        if further:
            reach = [mask | further if mask & bit else mask for mask in reach]
    return reach


def _strict(graph: Graph, groups: list[int]) -> list[int]:
    """Join groups that some trace skips with those around them that it skips as well."""
    count = len(groups)
    place = {node: i for i, group in enumerate(groups) for node in bits(group)}
    first = [-1 if group & graph.starts else count for group in groups]
    last = [count if group & graph.ends else -1 for group in groups]
    for node, at in place.items():
        for other in bits(graph.successors[node]):
            to = place[other]
            first[to] = min(first[to], at)
            last[at] = max(last[at], to)
    for at in range(count):
        if not _can_skip(graph, groups, at):
            continue
        other = at - 1
        while other >= 0 and last[other] <= at:
            groups[at] |= groups[other]
            groups[other] = 0
            other -= 1
        other = at + 1
        while other < count and first[other] >= at:
            groups[at] |= groups[other]
            groups[other] = 0
            other += 1
    return [group for group in groups if group]


def _can_skip(graph: Graph, groups: Sequence[int], at: int) -> bool:
    """Return True if a trace skips a group: by an edge, a late start or an early end."""
    before = after = 0
    for group in groups[:at]:
        before |= group
    for group in groups[at + 1 :]:
        after |= group
    if after & graph.starts or before & graph.ends:
        return True
    return any(graph.successors[node] & after for node in bits(before))


def parallel_cut(graph: Graph) -> list[int]:
    """Return groups with edges both ways between all, each with a start and an end."""
    nodes = graph.nodes
    apart = [0] * len(graph.successors)
    for node in bits(nodes):
        apart[node] = nodes & ~(graph.successors[node] & graph.predecessors[node]) & ~(1 << node)
    groups = sorted(_components(nodes, apart), key=int.bit_count)
    at = 0
    while at < len(groups) > 1:
        if groups[at] & graph.starts and groups[at] & graph.ends:
            at += 1
        else:
            group = groups.pop(at)
            groups[max(at - 1, 0)] |= group
    return groups


def loop_cut(graph: Graph) -> list[int]:
    """Return the loop's body and its redo part, or one group without a loop."""
    starts, ends = graph.starts, graph.ends
    do, redo = starts | ends, 0
    either = [after | before for after, before in zip(graph.successors, graph.predecessors, strict=True)]
    from_starts = into_ends = 0
    for node in bits(starts & ~ends):
        from_starts |= graph.successors[node]
    for node in bits(ends & ~starts):
        into_ends |= graph.predecessors[node]
    for group in _components(graph.nodes & ~do, either):
        if group & (from_starts | into_ends) or not _is_closed(graph, group):
            do |= group
        else:
            redo |= group
    return [do, redo] if redo else [do]


def _is_closed(graph: Graph, group: int) -> bool:
    """Return True if ways out and in serve all starts and all ends alike."""
    for node in bits(group):
        back, come = graph.successors[node] & graph.starts, graph.predecessors[node] & graph.ends
        if back not in (0, graph.starts) or come not in (0, graph.ends):
            return False
    return True


_KINDS = (
    (Operator.CHOICE, choice_cut),
    (Operator.SEQUENCE, sequence_cut),
    (Operator.PARALLEL, parallel_cut),
    (Operator.LOOP, loop_cut),
)


Table = Mapping[int, int | str | None]


def _translate(log: Log, table: Table) -> list[str]:
    """Return all traces in other letters; no letter may become the border."""
    return BORDER.join(log).translate(table).split(BORDER)


def drop_activities(log: Log, letters: str) -> dict[str, int]:
    """Return the log without these activities."""
    found: dict[str, int] = defaultdict(int)
    for trace, cases in zip(_translate(log, dict.fromkeys(map(ord, letters))), log.values(), strict=False):
        found[trace] += cases
    return found


def _others(log: Log, group: str) -> str:
    """Return the activities of a log that are not in a group."""
    return "".join(set().union(*log) - set(group))


def _parallel(log: Log, groups: Sequence[str]) -> list[dict[str, int]]:
    """Return the own events of each group in each trace."""
    return [drop_activities(log, _others(log, group)) for group in groups]


def _choice(log: Log, groups: Sequence[str]) -> list[dict[str, int]]:
    """Return the traces of each group, each at the group with most of its events.

    If two groups have most, it is the later one. The events of other groups are left out.
    """
    tables: list[Table] = [dict.fromkeys(map(ord, _others(log, group))) for group in groups]
    of = {letter: number for number, group in enumerate(groups) for letter in group}
    parts: list[dict[str, int]] = [defaultdict(int) for _ in groups]
    for trace, cases in log.items():
        number = of.get(trace[:1], 0)
        kept = trace.translate(tables[number])
        if len(kept) < len(trace):
            own = [trace.translate(table) for table in tables]
            number = max(range(len(groups)), key=lambda i: (len(own[i]), i))
            kept = own[number]
        parts[number][kept] += cases
    return parts


def _sequence(log: Log, groups: Sequence[str]) -> list[dict[str, int]]:
    """Return a piece of each trace for each group, up to where it has gained most.

    Own events count against those of later groups.
    """
    table: Table = {ord(letter): len(groups) + 1 for letter in set().union(*log)}
    table = {**table, **{ord(letter): number for number, group in enumerate(groups, 1) for letter in group}}
    others: list[Table] = [
        dict.fromkeys(letter for letter, place in table.items() if place != number)
        for number in range(1, len(groups) + 1)
    ]
    parts: list[dict[str, int]] = [defaultdict(int) for _ in groups]
    for (trace, cases), places in zip(log.items(), _translate(log, table), strict=False):
        fits = "".join(sorted(places)) == places
        begin = 0
        for number, (part, other) in enumerate(zip(parts, others, strict=True), 1):
            own = chr(number)
            end = begin + places.count(own, begin) if fits else _end_of(places, begin, own)
            piece = trace[begin:end]
            if not fits:
                piece = piece.translate(other)
            part[piece] += cases
            begin = end
    return parts


def _end_of(places: str, begin: int, own: str) -> int:
    """Return the end of a group's piece: the first place at which it has gained most."""
    end, gain, best = begin, 0, 0
    for i in range(begin, places.rfind(own) + 1):
        if places[i] == own:
            gain += 1
            if gain > best:
                end, best = i + 1, gain
        elif places[i] > own:
            gain -= 1
    return end


def _loop(log: Log, groups: Sequence[str]) -> list[dict[str, int]]:
    """Return every run of a group's events as a trace of it.

    A trace that does not end with the body ends with an empty trace of it.
    """
    do = groups[0]
    tables: list[Table] = [{ord(letter): BORDER for letter in _others(log, group)} for group in groups]
    parts: list[dict[str, int]] = [defaultdict(int) for _ in groups]
    for trace, cases in log.items():
        for part, table in zip(parts, tables, strict=True):
            for piece in trace.translate(table).split(BORDER):
                if piece:
                    part[piece] += cases
        if trace[-1:] not in do or not trace:
            parts[0][""] += cases
    return parts


SPLITS: Mapping[Operator, Callable[[Log, Sequence[str]], list[dict[str, int]]]] = {
    Operator.CHOICE: _choice,
    Operator.SEQUENCE: _sequence,
    Operator.PARALLEL: _parallel,
    Operator.LOOP: _loop,
}


def discover(variants: Variants, *, noise: float = 0.0, clock: Clock = UNLIMITED) -> ProcessTree:
    """Return the process tree of a log.

    ``noise`` is the share of the cases of the strongest edge below which an edge may be left out.
    """
    if not 0.0 <= noise <= 1.0:
        raise ParameterError("model-noise-out-of-range", parameter="noise", noise=noise)
    # One more than the code: the first character is the border.
    text = (variants.codes + 1).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    bounds = variants.offsets.tolist()
    log = {text[a:b]: n for (a, b), n in zip(itertools.pairwise(bounds), variants.counts.tolist(), strict=True)}
    return order_tree(reduce_tree(_Miner(variants.labels, noise, clock).tree(log)))


class _Miner:
    """Miner with the labels of the characters of traces, and its noise threshold."""

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
            own = drop_activities(log, relations.letters.replace(letter, ""))
            return parallel(self.tree(own), self.tree(drop_activities(log, letter)))
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
    """Return the pieces of traces cut where a start follows an end; nothing if uncut.

    Cut after an end it is the strict loop around the body, after anything the loop.
    """
    found: dict[str, int] = {}
    cut = False
    between = re.compile(f"(?<={_one_of(ends)})(?={_one_of(starts)})")
    for trace, cases in log.items():
        pieces = between.split(trace)
        cut = cut or len(pieces) > 1
        for piece in pieces:
            found[piece] = found.get(piece, 0) + cases
    return found if cut else {}


def _one_of(letters: set[str]) -> str:
    return f"[{re.escape(''.join(sorted(letters)))}]"

"""DPIM as published: rejection sampling of process trees, whose fitness is measured on the raw log.

After the paper and its authors' program (https://github.com/Schulze-M/DPIM, 2024). Half of epsilon less 0.01 is for one
attempt, because the accepted one may be any (Liu, Talwar: "Private selection from private candidates", 2019): 65 % of
it for the pairs, 25 % for the starts and ends of parallel parts and loops, 10 % for the fitness.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods._rows import public_codes
from veilog.methods.df_laplace import exact_relation
from veilog.methods.dpim.trees import TreeOfPairs, border_first, within, without
from veilog.methods.method import Request
from veilog.mining.inductive import Graph, bits, choice_cut, loop_cut, parallel_cut
from veilog.mining.replay import Prefixes, Replay, replayed, workflow_net
from veilog.mining.tree import SILENT, Operator, ProcessTree, activity, choice, loop
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

MARGIN = 15
"""How many pairs more or less than the log's an attempt takes: the paper's section VI."""
_FAILURE = Fraction(1, 100)
"""Of epsilon, so much is for the chance that no attempt is accepted."""
_GIVING_UP = 0.01
"""The chance to end after an attempt that was not accepted."""
_ATTEMPTS = math.ceil(math.log(2 / float(_FAILURE)) / _GIVING_UP)
_PAIRS, _BORDERS, _FITNESS = Fraction(65, 100), Fraction(25, 100), Fraction(10, 100)
_DEEPEST = 60
"""Trees nested deeper than this are given up, as the program gives up what Python cannot nest."""


def accepted_tree(
    curator: Curator, request: Request, fitness: float, bounds: tuple[int, int] | None
) -> tuple[ProcessTree | None, int]:
    """Return the first tree whose noisy fitness is enough, None if there is none, and the raw number of cases."""
    if request.epsilon <= _FAILURE:
        raise ParameterError("dpim-epsilon-below-failure", parameter="epsilon", failure=float(_FAILURE))
    original = curator.peek("dpim-fitness-noise-too-small")
    if not original.cases or not curator.activities:
        return None, original.cases
    return _Sampler(curator, original, (request.epsilon - _FAILURE) / 2, bounds).tree(fitness), original.cases


class _Sampler:
    """Attempts: pairs, the tree that they give, and its noisy fitness."""

    def __init__(self, curator: Curator, original: Variants, epsilon: Fraction, bounds: tuple[int, int] | None) -> None:
        self._labels, self._source, self._epsilon = curator.activities, curator.randomness, epsilon
        self._random = noise.generator(curator.randomness)
        self._log = original
        self._prefixes = Prefixes.of(original)
        self._fitness: dict[ProcessTree, float] = {}
        self._counts = exact_relation(original, self._labels, once=True).ravel()
        occurring = int(np.count_nonzero(self._counts))
        low, high = bounds or (max(occurring - MARGIN, len(self._labels)), occurring + MARGIN)
        self._bounds = min(low, self._counts.size), min(max(high, low + 1), self._counts.size + 1)

    def tree(self, enough: float) -> ProcessTree | None:
        for _ in range(_ATTEMPTS):
            tree = self._attempt()
            drawn = noise.discrete_laplace(self._epsilon * _FITNESS, 1, self._source)[0]
            if tree is not None and self._measured(tree) + drawn / self._log.cases >= enough:
                return tree
            if self._random.random() <= _GIVING_UP:
                return None
        return None

    def _attempt(self) -> ProcessTree | None:
        """Return a tree; None where it would never end, as one that no log fits."""
        number = int(self._random.integers(*self._bounds))
        scale = self._epsilon * _PAIRS / (2 * number)
        noisy = self._counts + noise.discrete_laplace(scale, self._counts.size, self._source)
        taken = np.zeros(noisy.size, dtype=bool)
        taken[np.argsort(noisy, kind="stable")[-number:]] = True
        index = border_first(len(self._labels) + 1)
        size = (len(self._labels) + 1,) * 2
        weights = np.where(taken, noisy, 0).reshape(size)[index]
        edges: BoolArray = taken.reshape(size)[index]
        trees = _PublishedTree(self._labels, weights, self._log, self._epsilon * _BORDERS, self._source)
        try:
            return trees.of(Graph.of(edges))
        except RecursionError:
            return None

    def _measured(self, tree: ProcessTree) -> float:
        """The raw fitness; a tree that is met again is not replayed again."""
        if tree not in self._fitness:
            self._fitness[tree] = replayed(Replay(workflow_net(tree)), self._prefixes).fitness
        return self._fitness[tree]


class _PublishedTree(TreeOfPairs):
    """The paper's cuts, which look at the noisy numbers of cases, and at the log for starts and ends.

    In loops it does what the program does, where the inductive miner does otherwise: a part of several activities is
    made of the whole graph again, with other starts and ends, and what no pair is left for is left out.
    """

    def __init__(
        self,
        labels: tuple[str, ...],
        weights: IntArray,
        log: Variants,
        epsilon: Fraction,
        source: noise.Randomness,
    ) -> None:
        super().__init__(labels)
        self._weights, self._epsilon, self._source = weights, epsilon, source
        self._incoming = int(weights[0].sum())
        self._counts = log.counts
        self._nodes = public_codes(log.sequences, labels)[log.codes] + 1
        self._rows = np.repeat(np.arange(len(log)), log.lengths)
        self._depth = 0

    def tree(self, graph: Graph, nodes: int) -> ProcessTree:
        """Return the tree of a graph; ``RecursionError`` where the same graph comes back again and again."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise RecursionError
        found = super().tree(graph, nodes)
        self._depth -= 1
        return found

    def parts(self, graph: Graph, operator: Operator, groups: list[int]) -> tuple[ProcessTree, ...]:
        """Return the trees of the groups; of a loop single activities and, for others, the whole once more."""
        if operator is not Operator.LOOP:
            return super().parts(graph, operator, groups)
        whole = within(graph, graph.nodes, *self._of_all(groups))
        return tuple(self._only(group) or self.tree(whole, graph.nodes) for group in groups)

    def _only(self, group: int) -> ProcessTree | None:
        return activity(self.labels[group.bit_length() - 2]) if group.bit_count() == 1 else None

    def cut(self, graph: Graph) -> tuple[Operator, list[int]] | None:
        """Sequence, choice between what lies on a circle, parallel, loop."""
        for operator, find in (
            (Operator.SEQUENCE, _sequence),
            (Operator.CHOICE, _circles),
            (Operator.PARALLEL, self._parallel),
            (Operator.LOOP, loop_cut),
        ):
            groups = find(graph)
            if len(groups) > 1:
                return operator, groups
        return None

    def _parallel(self, graph: Graph) -> list[int]:
        """Two activities that follow each other in more cases than there are belong together."""
        successors = list(graph.successors)
        for node in bits(graph.nodes):
            for other in bits(graph.successors[node]):
                if self._weights[node, other] + self._weights[other, node] > self._incoming:
                    successors[node] &= ~(1 << other)
        return parallel_cut(Graph(successors, graph.predecessors, graph.starts, graph.ends))

    def alone(self, graph: Graph, node: int) -> ProcessTree:
        """What follows itself may be left out, too."""
        tree = super().alone(graph, node)
        return tree if tree.operator is None else choice(SILENT, tree)

    def borders(self, graph: Graph, operator: Operator, groups: list[int], at: int) -> tuple[int, int]:
        """Where the graph does not tell, from the log with half of what is left for it."""
        if operator is Operator.PARALLEL:
            return self._of_all([groups[at]])
        return super().borders(graph, operator, groups, at)

    def _of_all(self, groups: list[int]) -> tuple[int, int]:
        """Starts and ends of all groups together."""
        self._epsilon /= 2
        found = [self._of_the_log(group) for group in groups]
        return sum(starts for starts, _ in found), sum(ends for _, ends in found)

    def _of_the_log(self, group: int) -> tuple[int, int]:
        members = np.array([group >> node & 1 for node in range(len(self.labels) + 1)], dtype=bool)
        inside = members[self._nodes]
        nodes, rows = self._nodes[inside], self._rows[inside]
        other = rows[1:] != rows[:-1]
        first, last = np.concatenate([[True], other]), np.concatenate([other, [True]])
        if not len(nodes):
            return group, group
        return self._noisy(nodes[first], rows[first], group), self._noisy(nodes[last], rows[last], group)

    def _noisy(self, nodes: IntArray, rows: IntArray, group: int) -> int:
        noisy = noise.discrete_laplace(self._epsilon, len(self.labels) + 1, self._source)
        np.add.at(noisy, nodes, self._counts[rows])
        return sum(1 << node for node in bits(group) if noisy[node] > 0)

    def optional(self, graph: Graph, operator: Operator, groups: list[int], at: int) -> bool:
        """Single activities on which fewer cases come than start."""
        group = groups[at]
        node = group.bit_length() - 1
        if operator is Operator.LOOP or group.bit_count() > 1 or graph.successors[node] & group:
            return False
        into = sum(int(self._weights[other, node]) for other in bits(graph.predecessors[node]))
        out_of = sum(int(self._weights[node, other]) for other in bits(graph.successors[node]))
        return into + out_of < self._incoming

    def fall_through(self, graph: Graph, nodes: int) -> ProcessTree:
        for from_ in (graph.ends, nodes):
            opened = without(graph, from_, graph.starts)
            if opened.successors != graph.successors:
                tree = loop(self._opened(opened, nodes), SILENT)
                return choice(SILENT, tree) if from_ == graph.ends else tree
        return self.flower(nodes)

    def _opened(self, graph: Graph, nodes: int) -> ProcessTree:
        """The tree of what a loop repeats, without the pairs that lead back."""
        left = nodes & sum(1 << at for at in bits(nodes) if graph.successors[at] | graph.predecessors[at])
        if left.bit_count() < 2:
            return self._only(left) or SILENT
        return self.tree(within(graph, nodes, *self._of_all([left])), nodes)


def _sequence(graph: Graph) -> list[int]:
    """Return groups between which steps lead one way only; a group may be passed over."""
    nodes = graph.nodes
    reach = _reach(graph)
    apart = [nodes & ~(mask ^ _reaching(reach, node)) for node, mask in enumerate(reach)]
    return sorted(_connected(nodes, apart), key=lambda group: _reaching(reach, group.bit_length() - 1).bit_count())


def _circles(graph: Graph) -> list[int]:
    """Return the groups of activities that lie on a circle together."""
    reach = _reach(graph)
    return _connected(graph.nodes, [mask & _reaching(reach, node) for node, mask in enumerate(reach)])


def _reach(graph: Graph) -> list[int]:
    """Return of each node those that steps lead to from it."""
    found = list(graph.successors)
    for by in bits(graph.nodes):
        found = [mask | found[by] if mask >> by & 1 else mask for mask in found]
    return found


def _reaching(reach: list[int], node: int) -> int:
    """Return the nodes from which steps lead to a node."""
    return sum(1 << other for other, mask in enumerate(reach) if mask >> node & 1)


def _connected(nodes: int, neighbours: list[int]) -> list[int]:
    masks = [mask if nodes >> node & 1 else 0 for node, mask in enumerate(neighbours)]
    return choice_cut(Graph(masks, masks, nodes, nodes))

"""DPIM: a process tree of noisy directly-follows pairs, and its played-out cases.

M. Schulze, Y. Zisgen, M. Kirschte, E. Mohammadi, A. Koschmider, "Differentially Private Inductive Miner", ICPM 2024
(arXiv 2407.04595).

Attempts take a random number of the pairs that occur in most cases by noisy counts. They make a process tree of them as
the inductive miner would, and measure its fitness. The first whose noisy fitness is enough is the result.

As published the noise of the fitness is too small: one long case can change it by more than a half, not by 1 over the
number of cases. Nothing can be derived. Certified, a case is bounded in both numbers: in the pairs that it counts for,
and in its contribution to all candidates together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np

from veilog._typing import BoolArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods._relations import public_codes
from veilog.methods.df_laplace import (
    PairSettings,
    exact_relation,
    noisy_cases,
    noisy_relation,
    refuse_small_budget,
    remark_relation,
    resized,
)
from veilog.methods.method import Request, as_asked, our_method, with_a_share
from veilog.methods.settings import Range
from veilog.mining.inductive import Graph, bits, choice_cut, find_cut, loop_cut, parallel_cut
from veilog.mining.language import NEVER, Language
from veilog.mining.replay import Prefixes, Replay, replay_prefixes, workflow_net
from veilog.mining.tree import (
    SILENT,
    Operator,
    ProcessTree,
    activity,
    choice,
    loop,
    order_tree,
    parallel,
    play_out,
    reduce_tree,
)
from veilog.privacy.account.budgets import SMALLEST_EPSILON
from veilog.privacy.contributions import Features
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

TREE = "The process tree: "
"""Start of the remark that has the process tree."""
_ENOUGH = {True: 0.95, False: 0.9}
"""Fitness that is enough: of the tokens as published (True), else of the steps of a case."""
_DRAWN = 20_000
"""Most cases drawn from a tree; further cases are copies of these."""


@dataclass(frozen=True, kw_only=True)
class DpimSettings(PairSettings):
    """Settings of DPIM."""

    fitness: Annotated[
        float | None, "fitness that is enough; 0.9 of the steps of cases, as published 0.95 of tokens", Range(0, 1)
    ] = None
    fitness_share: Annotated[float, "share of the budget for the fitness of trees, certified", Range(0.05, 0.9)] = 0.25
    fewest: Annotated[int | None, "as published: fewest pairs taken; 15 less than occur if not given", Range(1)] = None
    most: Annotated[int | None, "as published: most pairs taken; 15 more than occur if not given", Range(1)] = None


def dpim(curator: Curator, request: Request, settings: DpimSettings) -> Variants:
    """Return cases played out from a process tree, which a remark shows.

    Certified: epsilon in all. ``count_share`` of it is for the number of cases. Of the rest, ``fitness_share`` is for
    the fitness of candidates and the other part for the pairs. As published: guarantee none.
    """
    enough = _ENOUGH[request.as_published] if settings.fitness is None else settings.fitness
    if request.as_published:
        tree, cases = accepted_tree(curator, request, enough, _bounds(settings))
        if tree is None:
            request.remark(Message("dpim-no-tree-fits"))
            return Variants.from_dict({})
        return _play_out(tree, cases, curator, request)
    share = Fraction(str(settings.fitness_share))
    _refuse_small_budget(curator, request.epsilon, settings, share)
    counted, epsilon = noisy_cases(curator, request.epsilon, settings)
    request.progress("directly-follows pairs", None)
    counts, threshold = noisy_relation(curator, epsilon * (1 - share), settings, request.rules, once=True)
    cases = counted or min(max(int(counts[-1].sum()), 1), settings.largest_log)
    remark_relation(request, threshold, counted, settings)
    tree = chosen_tree(curator, request, counts, threshold, cases, epsilon * share, enough)
    return _play_out(tree, cases, curator, request)


def _bounds(settings: DpimSettings) -> tuple[int, int] | None:
    if settings.fewest is None and settings.most is None:
        return None
    if settings.fewest is None or settings.most is None or settings.fewest > settings.most:
        raise ParameterError("dpim-bounds-incomplete", parameter="fewest")
    return settings.fewest, settings.most + 1


def _refuse_small_budget(curator: Curator, epsilon: Fraction, settings: DpimSettings, share: Fraction) -> None:
    """Refuse an epsilon too small to divide, before anything is asked."""
    with with_a_share(1 / (1 - share)):
        refuse_small_budget(curator, epsilon * (1 - share), settings)
    if epsilon * share * (1 - Fraction(str(settings.count_share))) < SMALLEST_EPSILON:
        raise ParameterError("dpim-epsilon-too-small", parameter="epsilon", as_asked=as_asked(epsilon))


def _play_out(tree: ProcessTree, cases: int, curator: Curator, request: Request) -> Variants:
    request.remark(Message("dpim-process-tree", tree=tree))
    request.progress("playing out", None)
    drawn = play_out(tree, min(cases, _DRAWN), noise.generator(curator.randomness))
    if request.rules is not None:
        drawn = request.rules.preferred(drawn)
    return resized(drawn, cases, curator)


DPIM = our_method("dpim", dpim, DpimSettings, needs=lambda settings: frozenset({"activities"}))


# Process trees of directly-follows pairs alone, without a log.
#
# The cuts are those of the inductive miner. What the miner reads off the log of a group is here read off the graph: a
# group starts where something outside leads into it, and a part of a sequence may be left out where an edge passes
# over it. After S. Leemans, D. Fahland, W. van der Aalst, "Scalable process discovery and conformance checking",
# 2018.


def tree_of(labels: tuple[str, ...], edges: BoolArray) -> ProcessTree:
    """Return the process tree of a graph; start and end are the last row and column.

    Activities without an edge are not in the tree.
    """
    return TreeOfPairs(labels).of(Graph.of(edges[border_first(len(edges))]), empty=bool(edges[-1, -1]))


def flower(labels: Sequence[str]) -> ProcessTree:
    """Return the tree that allows every trace of these activities."""
    return loop(SILENT, ProcessTree(Operator.CHOICE, tuple(map(activity, labels)))) if labels else SILENT


def border_first(size: int) -> tuple[list[list[int]], list[int]]:
    """Return an index that moves the last row and column of a matrix to the front."""
    order = [size - 1, *range(size - 1)]
    return [[at] for at in order], order


class TreeOfPairs:
    """Builder of trees; ``labels`` are those of a graph's nodes, from node 1 on."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels

    def of(self, graph: Graph, *, empty: bool = False) -> ProcessTree:
        """Return the tree of a whole graph; with ``empty`` it allows the empty trace."""
        tree = self.tree(graph, graph.nodes) if graph.nodes else SILENT
        return order_tree(reduce_tree(choice(SILENT, tree) if empty else tree))

    def tree(self, graph: Graph, nodes: int) -> ProcessTree:
        """Return the tree of a graph of these nodes."""
        if nodes.bit_count() == 1:
            return self.alone(graph, nodes)
        cut = self.cut(graph)
        if cut is None:
            return self.fall_through(graph, nodes)
        operator, groups = cut
        return ProcessTree(operator, self.parts(graph, operator, groups))

    def parts(self, graph: Graph, operator: Operator, groups: list[int]) -> tuple[ProcessTree, ...]:
        """Return the trees of the groups of a cut."""
        found = []
        for at, group in enumerate(groups):
            part = self.tree(within(graph, group, *self.borders(graph, operator, groups, at)), group)
            found.append(choice(SILENT, part) if self.optional(graph, operator, groups, at) else part)
        return tuple(found)

    def alone(self, graph: Graph, node: int) -> ProcessTree:
        """Return the tree of one activity, a loop where it follows itself."""
        at = node.bit_length() - 1
        leaf = activity(self.labels[at - 1])
        return loop(leaf, SILENT) if graph.successors[at] & node else leaf

    def cut(self, graph: Graph) -> tuple[Operator, list[int]] | None:
        """Return the first cut that there is."""
        return find_cut(graph)

    def borders(self, graph: Graph, operator: Operator, groups: list[int], at: int) -> tuple[int, int]:
        """Return where a group starts and where it ends."""
        if operator is Operator.SEQUENCE:
            before, after = sum(groups[:at]), sum(groups[at + 1 :])
            return graph.starts | reached(graph, before), graph.ends | leading(graph, after)
        if operator is Operator.LOOP and at:
            return reached(graph, groups[0]), leading(graph, groups[0])
        return graph.starts, graph.ends

    def optional(self, graph: Graph, operator: Operator, groups: list[int], at: int) -> bool:
        """Return True if a part may be left out.

        The graph does not show whether a case has all of parallel parts, so each may be.
        """
        if operator is Operator.SEQUENCE:
            before, after = sum(groups[:at]), sum(groups[at + 1 :])
            return bool(graph.starts & after or graph.ends & before or reached(graph, before) & after)
        return operator is Operator.PARALLEL

    def fall_through(self, graph: Graph, nodes: int) -> ProcessTree:
        """Return a tree where there is no cut.

        It sets aside an activity without which there is one, or is a loop or a flower.
        """
        for node in bits(nodes):
            rest = nodes & ~(1 << node)
            others = within(graph, rest, graph.starts, graph.ends)
            if self.cut(others) is not None:
                own = self.alone(graph, 1 << node)
                return parallel(choice(SILENT, own), choice(SILENT, self.tree(others, rest)))
        for from_ in (graph.ends, nodes):
            opened = without(graph, from_, graph.starts)
            if opened.successors != graph.successors:
                return loop(self.tree(opened, nodes), SILENT)
        return self.flower(nodes)

    def flower(self, nodes: int) -> ProcessTree:
        """Return the tree that allows everything."""
        return flower([self.labels[node - 1] for node in bits(nodes)])


def reached(graph: Graph, nodes: int) -> int:
    """Return the nodes that an edge from one of these leads to."""
    return _join_neighbours(graph.successors, nodes)


def leading(graph: Graph, nodes: int) -> int:
    """Return the nodes from which an edge leads to one of these."""
    return _join_neighbours(graph.predecessors, nodes)


def _join_neighbours(neighbours: Sequence[int], nodes: int) -> int:
    found = 0
    for node in bits(nodes):
        found |= neighbours[node]
    return found


def within(graph: Graph, nodes: int, starts: int, ends: int) -> Graph:
    """Return the graph of some nodes; where none of them starts or ends, any may."""
    successors = [mask & nodes if nodes >> at & 1 else 0 for at, mask in enumerate(graph.successors)]
    predecessors = [mask & nodes if nodes >> at & 1 else 0 for at, mask in enumerate(graph.predecessors)]
    return _add_isolated(Graph(successors, predecessors, starts & nodes or nodes, ends & nodes or nodes), nodes)


def without(graph: Graph, from_: int, to: int) -> Graph:
    """Return the graph without edges from some nodes to others."""
    successors = [mask & ~to if from_ >> at & 1 else mask for at, mask in enumerate(graph.successors)]
    predecessors = [mask & ~from_ if to >> at & 1 else mask for at, mask in enumerate(graph.predecessors)]
    return _add_isolated(Graph(successors, predecessors, graph.starts, graph.ends), graph.nodes)


def _add_isolated(graph: Graph, nodes: int) -> Graph:
    """Return the graph with its nodes without edges as cases of their own."""
    alone = nodes & ~graph.nodes
    return Graph(graph.successors, graph.predecessors, graph.starts | alone, graph.ends | alone)


# DPIM with a guarantee: every look at the log is a query of the curator.
#
# Candidates are trees of the pairs that reach a threshold, several thresholds from high to low. Which is taken is
# decided by how many steps of cases each does not allow, a number that a case is bounded in.

_LEVELS = ((4.0, 0.2), (2.0, 0.1), (1.0, 0.05), (0.5, 0.02), (0.25, 0.01))
"""Levels that a pair must exceed: a multiple of rare noise, and a share of the cases.
Low levels let noise in, high ones leave behaviour out."""
_UNIT = 1024
"""Parts of a case in which its misfit is counted."""


def chosen_tree(
    curator: Curator,
    request: Request,
    counts: IntArray,
    threshold: int,
    cases: int,
    epsilon: Fraction,
    enough: float,
) -> ProcessTree:
    """Return the tree of fewest pairs that allows ``enough`` of the steps of cases.

    Noisy numbers decide. Steps that are not allowed count as more than was answered, by the scale of the noise. So with
    little budget no tree is believed. The tree that allows everything needs no query: it is taken if none of the others
    will do.
    """
    labels = curator.activities
    found = dict.fromkeys(tree_of(labels, counts > max(threshold * times, share * cases)) for times, share in _LEVELS)
    trees = [tree for tree in found if tree != SILENT]
    if trees:
        request.progress("fitness of candidates", None)
        sums = curator.sums(misfits(trees, labels), len(trees), _UNIT, epsilon, purpose="dpim-steps-not-allowed")
        for tree, misfit in zip(trees, sums.tolist(), strict=True):
            if misfit / _UNIT + float(1 / epsilon) <= (1 - enough) * cases:
                return tree
    return flower(labels)


def misfits(trees: list[ProcessTree], labels: tuple[str, ...]) -> Features:
    """Return a map of a sequence to the share of steps that each tree does not allow.

    Steps are the events and the end. If a tree does not allow one, it stays where it was.
    """
    languages = [Language(tree, labels) for tree in trees]

    def features(sequences: Sequences) -> tuple[IntArray, IntArray, IntArray]:
        recode = public_codes(sequences, labels).tolist()
        values = np.array(
            [
                [_UNIT * _count_misfits(language, codes, recode) // (len(codes) + 1) for language in languages]
                for codes in sequences.code_tuples()
            ],
            dtype=np.int64,
        ).reshape(len(sequences), len(languages))
        rows, columns = np.nonzero(values)
        return rows, columns, values[rows, columns]

    return features


def _count_misfits(language: Language, codes: tuple[int, ...], recode: list[int]) -> int:
    state = language.start
    wrong = 0
    for code in codes:
        after = language.after(state, recode[code])
        if after == NEVER:
            wrong += 1
        else:
            state = after
    return wrong + (not language.may_end(state))


# DPIM as published: rejection sampling of process trees, whose fitness is measured on the raw log.
#
# After the paper and its authors' program (https://github.com/Schulze-M/DPIM, 2024). Half of epsilon less 0.01 is for
# one attempt, because the accepted one may be any (Liu, Talwar: "Private selection from private candidates", 2019):
# 65 % of it for the pairs, 25 % for the starts and ends of parallel parts and loops, 10 % for the fitness.

MARGIN = 15
"""Most pairs that an attempt takes beyond or below the number of the log (section VI of the paper)."""
_FAILURE = Fraction(1, 100)
"""Part of epsilon for the chance that no attempt is accepted."""
_GIVING_UP = 0.01
"""The chance to end after an attempt that was not accepted."""
_ATTEMPTS = math.ceil(math.log(2 / float(_FAILURE)) / _GIVING_UP)
_PAIRS, _BORDERS, _FITNESS = Fraction(65, 100), Fraction(25, 100), Fraction(10, 100)
_DEEPEST = 60
"""Deepest nesting of a tree; deeper ones are given up, as the program does where Python cannot nest."""


def accepted_tree(
    curator: Curator, request: Request, fitness: float, bounds: tuple[int, int] | None
) -> tuple[ProcessTree | None, int]:
    """Return the first tree with enough noisy fitness, or None, and the raw cases."""
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
            if tree is not None and self._measure_fitness(tree) + drawn / self._log.cases >= enough:
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

    def _measure_fitness(self, tree: ProcessTree) -> float:
        """Return the raw fitness of a tree, which is replayed only once."""
        if tree not in self._fitness:
            self._fitness[tree] = replay_prefixes(Replay(workflow_net(tree)), self._prefixes).fitness
        return self._fitness[tree]


class _PublishedTree(TreeOfPairs):
    """The paper's cuts, by noisy numbers of cases, and by the log for starts and ends.
    In loops it does what the program does, where the inductive miner does otherwise. A part of several activities is
    made of the whole graph again, with other starts and ends. Parts without a pair are left out."""

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
        """Return the tree of a graph; ``RecursionError`` if a graph keeps returning."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise RecursionError
        found = super().tree(graph, nodes)
        self._depth -= 1
        return found

    def parts(self, graph: Graph, operator: Operator, groups: list[int]) -> tuple[ProcessTree, ...]:
        """Return the trees of the groups.
        A loop has trees of single activities, and the whole graph again for other groups."""
        if operator is not Operator.LOOP:
            return super().parts(graph, operator, groups)
        whole = within(graph, graph.nodes, *self._ends_of_groups(groups))
        return tuple(self._single_activity(group) or self.tree(whole, graph.nodes) for group in groups)

    def _single_activity(self, group: int) -> ProcessTree | None:
        return activity(self.labels[group.bit_length() - 2]) if group.bit_count() == 1 else None

    def cut(self, graph: Graph) -> tuple[Operator, list[int]] | None:
        """Return the first cut: sequence, choice within a circle, parallel, or loop."""
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
        """Return the groups, where activities that follow each other too often are joined.
        They follow each other in more cases than there are."""
        successors = list(graph.successors)
        for node in bits(graph.nodes):
            for other in bits(graph.successors[node]):
                if self._weights[node, other] + self._weights[other, node] > self._incoming:
                    successors[node] &= ~(1 << other)
        return parallel_cut(Graph(successors, graph.predecessors, graph.starts, graph.ends))

    def alone(self, graph: Graph, node: int) -> ProcessTree:
        """Return the tree of a node; one that follows itself may also be left out."""
        tree = super().alone(graph, node)
        return tree if tree.operator is None else choice(SILENT, tree)

    def borders(self, graph: Graph, operator: Operator, groups: list[int], at: int) -> tuple[int, int]:
        """Return starts and ends of a part.
        Where the graph does not show them, they come from the log, with half of the epsilon left for it."""
        if operator is Operator.PARALLEL:
            return self._ends_of_groups([groups[at]])
        return super().borders(graph, operator, groups, at)

    def _ends_of_groups(self, groups: list[int]) -> tuple[int, int]:
        """Return the starts and ends of all groups together."""
        self._epsilon /= 2
        found = [self._ends_in_log(group) for group in groups]
        return sum(starts for starts, _ in found), sum(ends for _, ends in found)

    def _ends_in_log(self, group: int) -> tuple[int, int]:
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
        """Return True for a single activity that fewer cases reach than start."""
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
                tree = loop(self._open_loop(opened, nodes), SILENT)
                return choice(SILENT, tree) if from_ == graph.ends else tree
        return self.flower(nodes)

    def _open_loop(self, graph: Graph, nodes: int) -> ProcessTree:
        """Return the tree of what a loop repeats, without the pairs that lead back."""
        left = nodes & sum(1 << at for at in bits(nodes) if graph.successors[at] | graph.predecessors[at])
        if left.bit_count() < 2:
            return self._single_activity(left) or SILENT
        return self.tree(within(graph, nodes, *self._ends_of_groups([left])), nodes)


def _sequence(graph: Graph) -> list[int]:
    """Return groups between which steps lead one way only; a group may be passed over."""
    nodes = graph.nodes
    reach = _reach(graph)
    apart = [nodes & ~(mask ^ _nodes_reaching(reach, node)) for node, mask in enumerate(reach)]
    return sorted(
        _connected_components(nodes, apart),
        key=lambda group: _nodes_reaching(reach, group.bit_length() - 1).bit_count(),
    )


def _circles(graph: Graph) -> list[int]:
    """Return the groups of activities that lie on a circle together."""
    reach = _reach(graph)
    return _connected_components(graph.nodes, [mask & _nodes_reaching(reach, node) for node, mask in enumerate(reach)])


def _reach(graph: Graph) -> list[int]:
    """Return of each node those that steps lead to from it."""
    found = list(graph.successors)
    for by in bits(graph.nodes):
        found = [mask | found[by] if mask >> by & 1 else mask for mask in found]
    return found


def _nodes_reaching(reach: list[int], node: int) -> int:
    """Return the nodes from which steps lead to a node."""
    return sum(1 << other for other, mask in enumerate(reach) if mask >> node & 1)


def _connected_components(nodes: int, neighbours: list[int]) -> list[int]:
    masks = [mask if nodes >> node & 1 else 0 for node, mask in enumerate(neighbours)]
    return choice_cut(Graph(masks, masks, nodes, nodes))

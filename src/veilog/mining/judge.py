"""How well a process tree describes a log, without a Petri net: fast enough to choose among many trees.

*Precision* is 1 - escaping / enabled over the prefixes of cases that go on and that the tree allows: an activity that
the tree enables after a prefix escapes when no case goes on with it. *Fitness* is 1 - 0.4 (events skipped + ends
missing) / (events + cases): an event that the tree does not enable is skipped, and an end is missing where the tree may
not end. The factor brings it near to the fitness of token replay.
"""

from __future__ import annotations

from dataclasses import dataclass

from veilog.mining.language import NEVER, UNKNOWN, Language
from veilog.mining.prefixes import Prefixes
from veilog.mining.tree import ProcessTree

_COST = 0.4
"""What a skipped event costs: about what its tokens cost in token replay."""


@dataclass(frozen=True)
class TreeQuality:
    """Fitness and precision of a tree on a log."""

    fitness: float
    precision: float

    @property
    def f_score(self) -> float:
        """Their harmonic mean."""
        both = self.fitness + self.precision
        return 2 * self.fitness * self.precision / both if both else 0.0


def judge(tree: ProcessTree, prefixes: Prefixes) -> TreeQuality:
    """Judge a tree by the prefixes of a log."""
    language = Language(tree, prefixes.labels)
    steps, after, enabled, may_end = language.steps, language.after, language.enabled, language.may_end
    states, allowed = [Language.start] * len(prefixes), [True] * len(prefixes)
    wrong = options = escaping = 0
    columns = (prefixes.parents, prefixes.codes, prefixes.passing, prefixes.ending, prefixes.following)
    for node, (parent, code, passing, ending, following) in enumerate(zip(*columns, strict=True)):
        state, ok = states[parent], allowed[parent]
        if node:
            new = steps[state][code]
            if new == UNKNOWN:
                new = after(state, code)
            if new == NEVER:
                wrong += passing
                ok = False
            else:
                state = new
            states[node], allowed[node] = state, ok
        if ending and not may_end(state):
            wrong += ending
        if ok and passing > ending:
            mask = enabled(state)
            options += (passing - ending) * mask.bit_count()
            escaping += (passing - ending) * (mask & ~following).bit_count()
    total = prefixes.events + prefixes.cases
    fitness = 1 - _COST * wrong / total if total else 1.0
    return TreeQuality(fitness, 1 - escaping / options if options else 1.0)

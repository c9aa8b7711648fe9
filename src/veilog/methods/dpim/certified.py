"""DPIM with a guarantee: every look at the log is a question of the curator.

Candidates are trees of the pairs that reach a threshold, several thresholds from high to low. Which is taken is decided
by how many steps of cases each does not allow, a number that a case is bounded in.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from veilog._typing import IntArray
from veilog.logs.variants import Sequences
from veilog.methods._rows import public_codes
from veilog.methods.dpim.trees import flower, tree_of
from veilog.methods.method import Request
from veilog.mining.language import NEVER, Language
from veilog.mining.tree import SILENT, ProcessTree
from veilog.privacy.clipping import Features
from veilog.privacy.curator import Curator

_LEVELS = ((4.0, 0.2), (2.0, 0.1), (1.0, 0.05), (0.5, 0.02), (0.25, 0.01))
"""What a pair must exceed: what noise alone rarely does, so many times, and this share of the cases. Low levels let
noise in, high ones leave behaviour out."""
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
    """Return the candidate of the fewest pairs that, by noisy numbers, allows ``enough`` of the steps of cases.

    What is not allowed is taken for more than was answered, by the scale of its noise, so that with little budget no
    tree is believed. The tree that allows everything needs no question: it is taken where none of the others will do.
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
    """Maps a sequence to a number for each tree: the share of its steps that the tree does not allow.

    Steps are the events and the end; where a tree does not allow one it stays where it was.
    """
    languages = [Language(tree, labels) for tree in trees]

    def features(sequences: Sequences) -> tuple[IntArray, IntArray, IntArray]:
        recode = public_codes(sequences, labels).tolist()
        values = np.array(
            [
                [_UNIT * _wrong(language, codes, recode) // (len(codes) + 1) for language in languages]
                for codes in sequences.code_tuples()
            ],
            dtype=np.int64,
        ).reshape(len(sequences), len(languages))
        rows, columns = np.nonzero(values)
        return rows, columns, values[rows, columns]

    return features


def _wrong(language: Language, codes: tuple[int, ...], recode: list[int]) -> int:
    state = language.start
    wrong = 0
    for code in codes:
        after = language.after(state, recode[code])
        if after == NEVER:
            wrong += 1
        else:
            state = after
    return wrong + (not language.may_end(state))

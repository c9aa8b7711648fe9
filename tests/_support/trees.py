"""Random process trees, and their languages by enumeration."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from veilog.mining.tree import SILENT, Operator, ProcessTree, activity, choice, loop, parallel, sequence

Trace = tuple[str, ...]


def trees(labels: str = "abcd") -> st.SearchStrategy[ProcessTree]:
    """Return trees of a few leaves, in which a label may occur more than once."""
    leaves = st.one_of(st.just(SILENT), st.sampled_from(labels).map(activity))

    def grown(parts: st.SearchStrategy[ProcessTree]) -> st.SearchStrategy[ProcessTree]:
        several = st.lists(parts, min_size=1, max_size=3)
        return st.one_of(
            several.map(lambda c: sequence(*c)),
            several.map(lambda c: choice(*c)),
            several.map(lambda c: parallel(*c)),
            st.tuples(parts, parts).map(lambda c: loop(*c)),
        )

    return st.recursive(leaves, grown, max_leaves=6)


def language_of(tree: ProcessTree, longest: int) -> set[Trace]:
    """Return all traces of a tree up to a length, by the definition of operators."""
    if tree.operator is None:
        traces = {()} if tree.label is None else {(tree.label,)}
        return {trace for trace in traces if len(trace) <= longest}
    parts = [language_of(child, longest) for child in tree.children]
    if tree.operator is Operator.CHOICE:
        return set[Trace]().union(*parts)
    if tree.operator is Operator.LOOP:
        found, again = parts[0], _joined(parts[1], parts[0], longest)
        while True:
            more = found | _joined(found, again, longest)
            if more == found:
                return found
            found = more
    joined = _joined if tree.operator is Operator.SEQUENCE else _interleaved
    found = {()}
    for part in parts:
        found = joined(found, part, longest)
    return found


def _joined(first: set[Trace], second: set[Trace], longest: int) -> set[Trace]:
    return {a + b for a, b in itertools.product(first, second) if len(a) + len(b) <= longest}


def _interleaved(first: set[Trace], second: set[Trace], longest: int) -> set[Trace]:
    return {
        trace
        for a, b in itertools.product(first, second)
        if len(a) + len(b) <= longest
        for trace in _interleavings(a, b)
    }


def _interleavings(first: Trace, second: Trace) -> set[Trace]:
    if not first or not second:
        return {first + second}
    return {(first[0], *rest) for rest in _interleavings(first[1:], second)} | {
        (second[0], *rest) for rest in _interleavings(first, second[1:])
    }

"""The tree of prefixes equals a walk through every case, in any block of lengths."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.logs.variants import Variants
from veilog.measures.complexity import complexity
from veilog.mining import replay as prefixes
from veilog.mining.replay import Prefixes

stretches = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9)), max_size=3)
traces = stretches.map(lambda parts: tuple("".join(letter * times for letter, times in parts)))
some_logs = st.dictionaries(traces, st.integers(1, 5), max_size=6)


def walked(log: Variants) -> Prefixes:
    """Return the same prefixes, one by one."""
    code = {label: place for place, label in enumerate(log.labels)}
    counts = {tuple(code[label] for label in trace): count for trace, count in log.to_dict().items()}
    found = {trace[:end] for trace in counts for end in range(len(trace) + 1)} | {()}
    order = sorted(found, key=lambda prefix: (len(prefix), prefix))
    place = {prefix: number for number, prefix in enumerate(order)}
    following = {prefix: {other[-1] for other in found if other and other[:-1] == prefix} for prefix in order}
    return Prefixes(
        log.labels,
        [place[prefix[:-1]] for prefix in order],
        [prefix[-1] if prefix else -1 for prefix in order],
        [sum(n for trace, n in counts.items() if trace[: len(prefix)] == prefix) for prefix in order],
        [counts.get(prefix, 0) for prefix in order],
        [sum(1 << one for one in following[prefix]) for prefix in order],
    )


@pytest.mark.slow
@given(some_logs, st.sampled_from([1, 3, 1 << 20]))
def test_the_tree_is_that_of_a_walk_through_every_case(counts: dict[tuple[str, ...], int], cells: int) -> None:
    log = Variants.from_dict(counts)
    with mock.patch.object(prefixes, "_CELLS", cells):
        assert Prefixes.of(log) == walked(log)


@pytest.mark.slow
def test_long_cases_that_share_a_beginning_are_looked_at_together() -> None:
    """Long cases with a common beginning take one step together, not one per event."""
    long = [("a",) * 100_000, ("a",) * 90_000, ("a",) * 80_000 + ("b",) * 30_000]
    log = Variants.from_sequences(long, [1, 2, 3])
    with mock.patch.object(np, "unique", wraps=np.unique) as steps:
        found = Prefixes.of(log)
        entropy = complexity(log)
    assert steps.call_count < 300
    assert len(found) == 1 + 100_000 + 30_000
    assert [found.passing[n] for n in (0, 80_000, 80_001, 80_002)] == [6, 6, 3, 3]
    assert found.events == log.events
    assert entropy.normalized_variant_entropy == pytest.approx(
        1 - (100_000 * np.log(100_000) + 30_000 * np.log(30_000)) / (130_000 * np.log(130_000))
    )

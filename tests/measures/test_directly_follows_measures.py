"""Directly-follows distances equal hand-made values and scipy's, with blind spots."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy.stats import wasserstein_distance

from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.directly_follows import (
    HOURS_PER_MONTH,
    Coverage,
    edge_coverage,
    edge_frequencies,
    frequency_emd,
    moved_mass,
    time_emd,
)

HOUR = 3_600_000_000

traces = st.lists(st.sampled_from("abcd"), max_size=6).map(tuple)
some_logs = st.dictionaries(traces, st.integers(1, 5), max_size=6).map(Variants.from_dict)


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


def timed(*cases: list[tuple[str, int | None]]) -> EventLog:
    """Events as (activity, hour); None is an unknown time."""
    rows = [(i, activity, hour) for i, case in enumerate(cases) for activity, hour in case]
    micros = [None if hour is None else hour * HOUR for _, _, hour in rows]
    events = pa.table(
        {
            CASE_INDEX: pa.array([r[0] for r in rows], pa.int64()),
            EVENT_INDEX: pa.array(range(len(rows)), pa.int64()),
            ACTIVITY: pa.array([r[1] for r in rows], pa.string()).dictionary_encode(),
            TIMESTAMP: pa.array(micros, pa.int64()).cast(TIMESTAMP_TYPE),
        }
    )
    return EventLog(events, pa.table({ACTIVITY: [str(i) for i in range(len(cases))]}))


def test_edges_are_counted_within_cases_only() -> None:
    assert edge_frequencies(log(("abc", 2), ("ba", 3), ("", 5), ("a", 7))) == {
        ("a", "b"): 2,
        ("b", "c"): 2,
        ("b", "a"): 3,
    }


def test_frequency_emd_by_hand() -> None:
    # Edges ab, bc, bd: 4, 4, 0 against 4, 1, 3. Sorted 0, 4, 4 and 1, 3, 4: (1 + 1 + 0) / 3.
    assert frequency_emd(log(("abc", 4)), log(("abc", 1), ("abd", 3))) == pytest.approx(2 / 3)


def test_frequency_emd_does_not_see_which_edge_is_which_but_moved_mass_does() -> None:
    first, second = log(("ab", 10)), log(("cd", 10))
    assert frequency_emd(first, second) == 0.0
    assert moved_mass(first, second).share == 1.0


def test_moved_mass_by_hand() -> None:
    moved = moved_mass(log(("ab", 3), ("ac", 1)), log(("ab", 1), ("ac", 1)))
    assert moved.share == pytest.approx(0.25)
    assert [(e.source, e.target, e.original, e.released) for e in moved.edges] == [
        ("a", "b", 0.75, 0.5),
        ("a", "c", 0.25, 0.5),
    ]


def test_moved_mass_without_edges_is_zero_or_undefined() -> None:
    assert moved_mass(log(("a", 3)), log(("b", 1))).share == 0.0
    with refused(ParameterError, "relation-without-pairs"):
        moved_mass(log(("ab", 3)), log(("b", 1)))


@pytest.mark.slow
@given(some_logs, some_logs)
def test_frequency_emd_is_the_wasserstein_distance_of_the_counts_as_samples(a: Variants, b: Variants) -> None:
    u, v = edge_frequencies(a), edge_frequencies(b)
    edges = sorted(set(u) | set(v))
    expected = wasserstein_distance([u.get(e, 0) for e in edges], [v.get(e, 0) for e in edges]) if edges else 0.0
    assert frequency_emd(a, b) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@given(some_logs, some_logs)
def test_distances_are_symmetric_and_zero_for_equal_logs(a: Variants, b: Variants) -> None:
    assert frequency_emd(a, b) == frequency_emd(b, a)
    assert frequency_emd(a, a) == 0.0
    assert moved_mass(a, a).share == 0.0
    if edge_frequencies(a) and edge_frequencies(b):
        assert moved_mass(a, b).share == pytest.approx(moved_mass(b, a).share)


def test_time_emd_by_hand() -> None:
    first = timed([("a", 0), ("b", 5)], [("a", 1), ("b", 4), ("c", 6)])
    second = timed([("a", 0), ("b", 2)])
    # Hours of a-b and b-c: 8 and 2; sorted 2, 8 against 0, 2.
    assert time_emd(first, second) == pytest.approx((2 + 6) / 2 / HOURS_PER_MONTH)
    assert time_emd(first, second) == time_emd(second, first)
    assert time_emd(first, first) == 0.0


def test_pairs_with_an_unknown_time_add_nothing_and_no_times_at_all_is_undefined() -> None:
    known = timed([("c", 6), ("d", 7)])
    assert time_emd(timed([("a", 0), ("b", None), ("c", 6), ("d", 7)]), known) == 0.0
    assert time_emd(timed([("a", 0), ("b", 2), ("c", 6), ("d", 7)]), known) > 0.0
    with refused(ParameterError, "relation-without-times"):
        time_emd(timed([("a", 0), ("b", 2)]), timed([("a", None), ("b", None)]))


def test_the_order_of_cases_does_not_matter() -> None:
    full = hospital(50, seed=2)
    cases = np.random.default_rng(0).permutation(full.cases.num_rows)
    rows = np.concatenate([np.arange(full.offsets[c], full.offsets[c + 1]) for c in cases])
    lengths = np.diff(full.offsets)[cases]
    events = full.events.take(pa.array(rows))
    events = events.set_column(0, CASE_INDEX, pa.array(np.repeat(np.arange(len(cases)), lengths)))
    shuffled = EventLog(events, full.cases.take(pa.array(cases)))
    other = hospital(40, seed=3)
    assert time_emd(full, other) == time_emd(shuffled, other)
    assert frequency_emd(full, other) == frequency_emd(shuffled, other)


def test_coverage_counts_kinds_of_activities_and_edges() -> None:
    assert edge_coverage(log(("abcd", 9)), log(("abc", 1), ("xa", 2))) == Coverage(3 / 4, 2 / 3)
    assert edge_coverage(log(("a", 1)), log(("b", 1))) == Coverage(0.0, 1.0)

"""Uniqueness given random points of a trace, against all choices of points."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.disclosure import uniqueness


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


def contains(trace: tuple[str, ...], points: tuple[str, ...], background: str) -> bool:
    if background == "multiset":
        return all(trace.count(a) >= points.count(a) for a in points)
    rest = iter(trace)
    return all(a in rest for a in points)


def reference(variants: Variants, size: int, background: str) -> float:
    """Over all equally likely choices of points of each case."""
    counts = variants.to_dict()
    total = 0.0
    for trace, n in counts.items():
        if not trace or n > 1:
            continue
        choices = list(itertools.combinations(trace, min(size, len(trace))))
        alone = [sum(k for t, k in counts.items() if contains(t, c, background)) == 1 for c in choices]
        total += sum(alone) / len(alone)
    return total / variants.cases


def test_by_hand() -> None:
    # Of abc only c is unique to its case; of ab no point is.
    assert uniqueness(log(("abc", 1), ("ab", 1)), 3).share == 0.5
    exact = uniqueness(log(("a", 1), ("b", 1), ("c", 2)), 1)
    assert (exact.share, exact.interval) == (0.5, None)


@pytest.mark.slow
@given(
    st.dictionaries(st.lists(st.sampled_from("abc"), max_size=5).map(tuple), st.integers(1, 2), min_size=1, max_size=6),
    st.sampled_from(("multiset", "sequence")),
)
def test_all_points_known_is_exact(counts: dict[tuple[str, ...], int], background: str) -> None:
    variants = Variants.from_dict(counts)
    result = uniqueness(variants, 5, background=background)  # type: ignore[arg-type]
    assert result.interval is None
    assert result.share == pytest.approx(reference(variants, 5, background))


@pytest.mark.slow
@pytest.mark.parametrize("background", ["multiset", "sequence"])
def test_the_interval_contains_the_value_over_all_choices(background: str) -> None:
    variants = hospital(40, seed=2).variants
    short = variants.with_counts((variants.lengths <= 11) * variants.counts)
    expected = reference(short, 3, background)
    hits = 0
    for seed in range(40):
        result = uniqueness(short, 3, background=background, draws=40, seed=seed)  # type: ignore[arg-type]
        assert result.interval is not None
        hits += result.interval[0] <= expected <= result.interval[1]
    assert hits >= 37


def test_wrong_parameters_are_named() -> None:
    with refused(ParameterError, "uniqueness-background-unknown"):
        uniqueness(log(("a", 1)), 1, background="set")  # type: ignore[arg-type]
    with refused(ParameterError, "uniqueness-points-too-few"):
        uniqueness(log(("a", 1)), 0)
    with refused(ParameterError, "uniqueness-draws-too-few"):
        uniqueness(log(("a", 1)), 1, draws=1)
    with refused(ParameterError, "uniqueness-without-cases"):
        uniqueness(Variants.from_dict({}), 1)

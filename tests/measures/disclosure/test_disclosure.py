"""Disclosure equals values of the paper, of public logs, and of a plain reference."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.files import as_log
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.disclosure import estimate as disclosure_estimate
from veilog.measures.disclosure import measure as disclosure
from veilog.measures.disclosure import patterns as disclosure_patterns
from veilog.measures.disclosure import risk, unique_cases
from veilog.measures.disclosure.estimate import estimate
from veilog.measures.disclosure.measure import BACKGROUNDS
from veilog.messages import OwnerMessage


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


EXAMPLE_1 = log(("abcd", 10), ("acbd", 20), ("adbd", 5), ("abdd", 15))
EXAMPLE_2_FIRST = log(("abcd", 1), ("acbd", 1), ("abccd", 1), ("abbcd", 1))
EXAMPLE_2_SECOND = log(("abcd", 4), ("ef", 4), ("gh", 4))


def candidates(variants: Variants, background: str, size: int) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Definitions 6 to 8, literally: every candidate with the variants that match it."""

    def patterns(trace: tuple[str, ...]) -> set[tuple[str, ...]]:
        if background == "set":
            return set(itertools.combinations(sorted(set(trace)), size))
        chosen = {tuple(trace[i] for i in where) for where in itertools.combinations(range(len(trace)), size)}
        return chosen if background == "sequence" else {tuple(sorted(x)) for x in chosen}

    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for trace in variants.sequences:
        for pattern in patterns(trace):
            found.setdefault(pattern, []).append(trace)
    return found


def reference(
    variants: Variants, background: str, size: int, weights: dict[str, float] | None = None
) -> tuple[int, float | None, float | None, int]:
    """Return candidates, case and trace disclosure (equations 1, 2), and unique cases."""
    counts = variants.to_dict()
    case = trace = total = 0.0
    alone = set()
    found = candidates(variants, background, size)
    for pattern, matching in found.items():
        weight = sum((weights or {}).get(a, 1.0) for a in pattern) / size
        n = sum(counts[t] for t in matching)
        entropy = -sum(counts[t] / n * math.log2(counts[t] / n) for t in matching)
        ratio = entropy / math.log2(n) if n > 1 else 0.0
        case += weight / n
        trace += weight * (1 - ratio)
        total += weight
        if n == 1 and weight > 0:
            alone.update(matching)
    return len(found), case / total if total else None, trace / total if total else None, len(alone)


def test_example_1_candidates_and_matching_traces() -> None:
    assert set(candidates(EXAMPLE_1, "set", 2)) == set(itertools.combinations("abcd", 2))
    found = {b: risk(EXAMPLE_1, b, 2)[0].candidates for b in BACKGROUNDS}
    assert found == {b: len(candidates(EXAMPLE_1, b, 2)) for b in BACKGROUNDS}
    only_bdd = log(("adbd", 5), ("abdd", 15), ("bdd", 3))
    assert risk(only_bdd, "multiset", 3)[0].candidates == reference(only_bdd, "multiset", 3)[0]


def test_example_2_case_disclosure_is_a_quarter_for_both_logs() -> None:
    assert risk(EXAMPLE_2_FIRST, "set", 1)[0].case_disclosure == pytest.approx(1 / 4, abs=1e-15)
    assert risk(EXAMPLE_2_SECOND, "set", 1)[0].case_disclosure == pytest.approx(1 / 4, abs=1e-15)


def test_example_2_trace_disclosure_is_0_and_1() -> None:
    assert risk(EXAMPLE_2_FIRST, "set", 1)[0].trace_disclosure == pytest.approx(0.0, abs=1e-15)
    assert risk(EXAMPLE_2_SECOND, "set", 1)[0].trace_disclosure == pytest.approx(1.0, abs=1e-15)


def test_a_single_matching_trace_is_fully_disclosed() -> None:
    (result,) = risk(log(("ab", 1)), "sequence", 2)
    assert (result.case_disclosure, result.trace_disclosure, result.unique) == (1.0, 1.0, 1)


LABELS = "abcde"
traces = st.lists(st.sampled_from(LABELS), max_size=7).map(tuple)
some_logs = st.dictionaries(traces, st.integers(1, 4), max_size=8).map(Variants.from_dict)


@pytest.mark.slow
@settings(derandomize=True, max_examples=150, deadline=None)
@given(some_logs, st.sampled_from(BACKGROUNDS), st.integers(1, 5))
def test_exact_values_are_those_of_the_definitions(variants: Variants, background: str, size: int) -> None:
    (result,) = risk(variants, background, size)
    number, case, trace, alone = reference(variants, background, size)
    assert result.exact
    assert (result.candidates, result.unique) == (number, alone)
    if number == 0:
        assert result.case_disclosure is None and result.reason is not None
        assert result.reason.code in (
            "disclosure-of-no-cases",
            "disclosure-of-too-few-activities",
            "disclosure-of-too-few-events",
        )
    else:
        assert result.case_disclosure == pytest.approx(case, abs=1e-12)
        assert result.trace_disclosure == pytest.approx(trace, abs=1e-12)


@pytest.mark.slow
@settings(derandomize=True, max_examples=60, deadline=None)
@given(some_logs, st.sampled_from(BACKGROUNDS), st.integers(1, 4))
def test_weights_weigh_candidates_by_their_activities(variants: Variants, background: str, size: int) -> None:
    weights = {"a": 0.0, "b": 3.0, "c": 0.5}
    given_ = {a: w for a, w in weights.items() if a in variants.labels}
    if variants.labels and all(given_.get(a, 1.0) == 0.0 for a in variants.labels):
        return
    (result,) = risk(variants, background, size, weights=given_)
    _, case, trace, alone = reference(variants, background, size, weights)
    assert (result.case_disclosure is None) == (case is None)
    if case is not None:
        assert result.case_disclosure == pytest.approx(case, abs=1e-12)
        assert result.trace_disclosure == pytest.approx(trace, abs=1e-12)
        assert result.unique == alone


@pytest.mark.slow
@settings(derandomize=True, max_examples=40, deadline=None)
@given(some_logs, st.sampled_from(BACKGROUNDS))
def test_sizes_together_or_alone_in_memory_or_depth_first_give_the_same(variants: Variants, background: str) -> None:
    together = risk(variants, background, (1, 2, 3, 4))
    alone = tuple(risk(variants, background, k)[0] for k in (1, 2, 3, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disclosure_patterns, "_KEPT_STATES", 0)
        patch.setattr(disclosure_patterns, "_BATCH", 3)
        deep = risk(variants, background, (1, 2, 3, 4))

    def facts(results: tuple) -> list[object]:
        kept = [(r.size, r.candidates, r.unique, r.worst_case, r.exact, r.reason) for r in results]
        return kept + [pytest.approx(r.case_disclosure, abs=1e-12) for r in results if r.case_disclosure is not None]

    assert facts(together) == facts(alone)
    assert [r.candidates for r in deep] == [r.candidates for r in together]
    assert [r.unique for r in deep] == [r.unique for r in together]
    for a, b in zip(deep, together, strict=True):
        assert a.case_disclosure == (None if b.case_disclosure is None else pytest.approx(b.case_disclosure))


def test_values_do_not_depend_on_the_order_of_rows_nor_on_names() -> None:
    log_ = hospital(80, seed=3).variants
    rows = list(log_.to_dict().items())
    shuffled = Variants.from_dict(dict(np.random.default_rng(0).permutation(np.array(rows, dtype=object)).tolist()))
    renamed = Variants.from_dict({tuple(a[::-1] + "!" for a in trace): n for trace, n in rows})
    first = risk(log_, size=(2, 3))
    for other in (risk(shuffled, size=(2, 3)), risk(renamed, size=(2, 3))):
        assert [r.candidates for r in other] == [r.candidates for r in first]
        assert [r.case_disclosure for r in other] == pytest.approx([r.case_disclosure for r in first], abs=1e-12)


SEPSIS_CASE = {
    "set": (0.0181, 0.0562, 0.1001, 0.1446, 0.1880, 0.2297),
    "sequence": (0.0181, 0.0903, 0.1885, 0.2821),
}
SEPSIS_TRACE = {"set": (0.0297, 0.0336, 0.0534), "sequence": (0.0297, 0.0429, 0.0995, 0.1717)}


@pytest.mark.slow
def test_sepsis_has_the_published_and_recomputed_values(logs: Path) -> None:
    sepsis = files.read(logs / "sepsis.xes.gz").variants
    for background, case in SEPSIS_CASE.items():
        results = risk(sepsis, background, range(1, len(case) + 1))
        assert [round(r.case_disclosure or 0, 4) for r in results] == list(case)
        trace = SEPSIS_TRACE[background]
        assert [round(r.trace_disclosure or 0, 4) for r in results[: len(trace)]] == list(trace)
    assert [r.candidates for r in risk(sepsis, "sequence", range(1, 5))] == [16, 163, 1285, 7974]


@pytest.mark.slow
def test_sepsis_multisets_as_the_papers_program_counts_them_and_as_the_paper_defines_them(logs: Path) -> None:
    sepsis = files.read(logs / "sepsis.xes.gz").variants
    program = risk(sepsis, "multiset", (1, 2, 3), arrangements=True)
    assert [round(r.case_disclosure or 0, 4) for r in program] == [0.0181, 0.0569, 0.1024]
    assert round(program[1].trace_disclosure or 0, 4) == 0.0408
    paper = risk(sepsis, "multiset", (1, 2, 3))
    assert [round(r.case_disclosure or 0, 4) for r in paper] == [0.0181, 0.0575, 0.1039]
    assert paper[1].case_disclosure == pytest.approx(reference_multisets_of_two(sepsis), abs=1e-12)


def reference_multisets_of_two(variants: Variants) -> float:
    rows = [(Counter(t), n) for t, n in variants.to_dict().items()]
    pairs = itertools.combinations_with_replacement(variants.labels, 2)
    sizes = [sum(n for c, n in rows if all(c[a] >= i for a, i in Counter(p).items())) for p in pairs]
    return sum(1 / n for n in sizes if n) / sum(n > 0 for n in sizes)


@pytest.mark.slow
def test_receipt_has_the_recomputed_values(logs: Path) -> None:
    receipt = files.read(logs / "receipt.xes.gz").variants
    results = risk(receipt, "set", range(1, 6))
    assert [round(r.case_disclosure or 0, 4) for r in results] == [0.1285, 0.3230, 0.4966, 0.6411, 0.7565]


@pytest.mark.nightly
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_intervals_of_estimates_contain_the_exact_value(background: str) -> None:
    """95 % intervals: at least 93 % of 200 seeded repetitions."""
    variants = hospital(60, seed=5).variants
    (exact,) = risk(variants, background, 3)
    assert exact.case_disclosure is not None and exact.trace_disclosure is not None
    case = trace = number = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        ones = np.ones(len(variants.labels))
        found = estimate(variants, background, 3, weights=ones, rng=rng, samples=400, work_limit=1e9)
        assert found.case_interval is not None and found.trace_interval is not None
        case += found.case_interval[0] <= exact.case_disclosure <= found.case_interval[1]
        trace += found.trace_interval[0] <= exact.trace_disclosure <= found.trace_interval[1]
        number += found.candidates_interval[0] <= exact.candidates <= found.candidates_interval[1]
    assert min(case, trace, number) >= 186, (case, trace, number)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(some_logs, st.booleans(), st.lists(st.lists(st.integers(-2, 3), min_size=2, max_size=2), min_size=1, max_size=6))
def test_places_that_were_counted_are_those_that_are_searched_for(
    variants: Variants, ordered: bool, patterns: list[list[int]]
) -> None:
    """Also of activities that the log has not (-1), and where any will do (-2)."""
    rows = np.minimum(np.array(patterns), len(variants.labels) - 1)
    everywhere = np.arange(len(variants))
    with pytest.MonkeyPatch.context() as patch:
        counted = disclosure_estimate.Matcher(variants, ordered=ordered)
        patch.setattr(disclosure_estimate, "_COUNTED", 0)
        searched = disclosure_estimate.Matcher(variants, ordered=ordered)
    assert (counted._before is None, searched._before is None) == (not variants.labels, True)
    for one, other in zip(counted.pairs(rows, everywhere), searched.pairs(rows, everywhere), strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.slow
@settings(derandomize=True, max_examples=30, deadline=None)
@given(some_logs, st.sampled_from(BACKGROUNDS), st.integers(1, 3))
def test_the_sampler_draws_every_pattern_of_a_variant_equally_often(
    variants: Variants, background: str, k: int
) -> None:
    expected = candidates(variants, background, k)
    if not expected:
        return
    matcher = disclosure_estimate.Matcher(variants, ordered=background == "sequence")
    source = (
        disclosure_estimate._Sequences(variants, matcher, k)
        if background == "sequence"
        else disclosure_estimate._Multisets(variants, k, 1 if background == "set" else k)
    )
    of_variant = Counter(t for matching in expected.values() for t in matching)
    totals = dict(zip(variants.sequences, source.totals.tolist(), strict=True))
    assert {t: n for t, n in totals.items() if n} == dict(of_variant)
    owner = int(np.argmax(source.totals))
    drawn = source.draw(np.full(3000, owner), np.random.default_rng(0))
    seen = Counter(tuple(variants.labels[c] for c in row) for row in drawn.tolist())
    mine = {x for x, matching in expected.items() if variants.sequences[owner] in matching}
    assert set(seen) <= mine
    share = 3000 / len(mine)
    assert max(abs(seen[x] - share) for x in mine) < 6 * math.sqrt(share) + 1


def test_beyond_the_work_limit_the_result_says_that_it_is_an_estimate() -> None:
    variants = hospital(300, seed=1).variants
    small, large = risk(variants, "sequence", (2, 5), work_limit=1e6, samples=100)
    assert small.exact and small.interval is None
    assert not large.exact and large.interval is not None and large.interval.case_disclosure is not None
    (exact,) = risk(variants, "sequence", 5)
    low, high = large.interval.case_disclosure
    assert low <= (exact.case_disclosure or 0) <= high
    assert large.unique <= exact.unique and (large.worst_case or 0) <= (exact.worst_case or 0)
    assert "interval" in large.to_json() and "interval" not in small.to_json()
    again = risk(variants, "sequence", 5, work_limit=1e6, samples=100)[0]
    assert (again.case_disclosure, again.interval) == (large.case_disclosure, large.interval)


@pytest.mark.slow
def test_estimates_follow_weights_and_arrangements(monkeypatch: pytest.MonkeyPatch) -> None:
    variants = hospital(60, seed=5).variants
    weights = {variants.labels[0]: 0.2, variants.labels[1]: 4.0}
    for options in ({"weights": weights}, {"arrangements": True}):
        (exact,) = risk(variants, "multiset", 3, **options)
        with monkeypatch.context() as patch:
            patch.setattr(disclosure, "TABLE_BYTES", 0)
            (rough,) = risk(variants, "multiset", 3, samples=1000, **options)
        assert exact.exact and not rough.exact
        assert rough.case_disclosure == pytest.approx(exact.case_disclosure, abs=0.04)
        assert rough.trace_disclosure == pytest.approx(exact.trace_disclosure, abs=0.04)
        assert rough.candidates == pytest.approx(exact.candidates, rel=0.1)


@pytest.mark.nightly
def test_a_million_activities_are_counted_and_estimated() -> None:
    million = Variants.from_arrays([f"a{i}" for i in range(10**6)], np.arange(10**6), np.arange(0, 10**6 + 1, 1000))
    one, two = risk(million, "sequence", (1, 2), samples=50)
    assert (one.exact, one.candidates, one.case_disclosure, one.unique) == (True, 10**6, 1.0, 1000)
    assert not two.exact and two.case_disclosure == 1.0
    assert two.candidates == pytest.approx(1000 * 999 * 500)


def test_a_size_that_no_trace_has_is_undefined_and_says_so() -> None:
    results = risk(EXAMPLE_2_SECOND, BACKGROUNDS, (2, 5))
    assert [r.reason is None for r in results] == [True, False] * 3
    assert results[1].reason == OwnerMessage("disclosure-of-too-few-activities", size=5, largest=4)
    empty = risk(Variants.from_dict({}), "set", 1)[0]
    assert empty.candidates == 0 and empty.reason is not None and empty.reason.code == "disclosure-of-no-cases"
    assert risk(log(("", 3)), "set", 1)[0].candidates == 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"background": "seq"}, "disclosure-background-name-unknown"),
        ({"background": []}, "disclosure-background-missing"),
        ({"size": 0}, "disclosure-size-not-whole"),
        ({"size": (1, -2)}, "disclosure-size-not-whole"),
        ({"weights": {"nobody": 1.0}}, "disclosure-weight-activity-unknown"),
        ({"weights": {"a": -1.0}}, "disclosure-weight-negative"),
        ({"weights": {"a": math.nan}}, "disclosure-weight-negative"),
        ({"weights": dict.fromkeys("abcd", 0.0)}, "disclosure-weights-all-zero"),
        ({"samples": 1}, "disclosure-samples-too-few"),
        ({"work_limit": 0}, "disclosure-work-limit-invalid"),
    ],
)
def test_wrong_parameters_are_named(options: dict, word: str) -> None:
    with refused(ParameterError, word):
        risk(EXAMPLE_1, **options)


def test_the_log_is_not_changed() -> None:
    before = EXAMPLE_1.to_dict()
    risk(EXAMPLE_1, size=(1, 2, 3))
    risk(EXAMPLE_1, size=3, work_limit=1.0)
    assert EXAMPLE_1.to_dict() == before


# Other knowledge and other secrets -----------------------------------------------------------------------------------


def as_event_log(table: pd.DataFrame) -> EventLog:
    found = as_log(table)
    assert isinstance(found, EventLog)
    return found


def event_log(cases: dict[str, tuple[str, str | None]], times: list[int] | None = None) -> EventLog:
    """Return a log with each case's trace and diagnosis; events are an hour apart."""
    rows = [(name, activity, i) for name, (trace, _) in cases.items() for i, activity in enumerate(trace)]
    stamps = [3_600_000_000 * i for *_, i in rows] if times is None else times
    table = pd.DataFrame(
        {
            "case:concept:name": [name for name, *_ in rows],
            "concept:name": [activity for _, activity, _ in rows],
            "time:timestamp": pd.to_datetime(stamps, unit="us", utc=True),
            "case:diagnosis": [cases[name][1] for name, *_ in rows],
        }
    )
    return as_event_log(table)


def disclosed(cases: dict[str, tuple[str, str | None]], background: str, size: int) -> float | None:
    """Return the disclosure of the diagnosis by its definition."""
    variants = log(*((trace, 1) for trace in {trace for trace, _ in cases.values()}))
    found = candidates(variants, background, size)
    total = 0.0
    for matching in found.values():
        values = Counter(value for trace, value in cases.values() if tuple(trace) in matching)
        n = sum(values.values())
        entropy = -sum(c / n * math.log2(c / n) for c in values.values())
        total += 1 - (entropy / math.log2(n) if n > 1 else 0.0)
    return total / len(found) if found else None


@settings(max_examples=60, deadline=None)
@pytest.mark.slow
@given(
    cases=st.lists(
        st.tuples(st.text("abc", min_size=1, max_size=4), st.sampled_from(["flu", "hiv", None])), min_size=1, max_size=9
    ),
    background=st.sampled_from(BACKGROUNDS),
)
def test_attribute_disclosure_is_that_of_its_definition(cases: list[tuple[str, str | None]], background: str) -> None:
    named = {f"c{i}": case for i, case in enumerate(cases)}
    assume(any(value for _, value in cases))
    found = risk(event_log(named), background, (1, 2, 3), sensitive="diagnosis")
    for result in found:
        expected = disclosed(named, background, result.size)
        assert result.attribute_disclosure == pytest.approx(expected, abs=1e-12)
        assert (result.attribute_disclosure is None) == (result.case_disclosure is None)


def test_an_attribute_that_knowledge_tells_is_disclosed_though_the_cases_are_not() -> None:
    told = event_log({"1": ("ab", "hiv"), "2": ("ab", "hiv"), "3": ("ac", "flu"), "4": ("ac", "hiv")})
    (found,) = risk(told, "set", 2, sensitive="case:diagnosis")
    assert (found.case_disclosure, found.attribute_disclosure) == (0.5, 0.5), "of b all, of c nothing"
    (found,) = risk(told, "set", 2)
    assert found.attribute_disclosure is None
    assert "attribute_disclosure" not in found.to_json()


def test_an_event_attribute_has_its_last_value() -> None:
    table = pd.DataFrame(
        {
            "case:concept:name": ["1", "1", "2", "2"],
            "concept:name": ["a", "b", "a", "b"],
            "time:timestamp": pd.to_datetime([0, 1, 0, 1], unit="h", utc=True),
            "ward": ["x", "y", "y", None],
        }
    )
    (found,) = risk(as_event_log(table), "sequence", 2, sensitive="ward")
    assert found.attribute_disclosure == 1.0


def test_times_to_a_unit_single_out_cases_of_one_variant() -> None:
    hour = 3_600_000_000
    cases = {"1": ("ab", None), "2": ("ab", None), "3": ("ab", None)}
    day = event_log(cases, [0, hour, hour, 2 * hour, 24 * hour, 25 * hour])
    unique = [risk(day, "sequence", 2, time=unit)[0].unique for unit in ("days", "hours")]
    assert (risk(day, "sequence", 2)[0].unique, *unique) == (0, 1, 3)
    assert unique_cases(day, "sequence", 2) == ()
    assert unique_cases(day, "sequence", 2, time="days") == ("3",)
    with pytest.raises(ParameterError) as refused:
        risk(day, time="weeks")
    assert refused.value.parameter == "time"


@settings(max_examples=60, deadline=None)
@given(
    traces=st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=9),
    background=st.sampled_from(BACKGROUNDS),
    size=st.integers(1, 4),
)
def test_unique_cases_are_those_that_some_candidate_matches_alone(
    traces: list[str], background: str, size: int
) -> None:
    cases = {f"c{i}": (trace, None) for i, trace in enumerate(traces)}
    counts = Counter(traces)
    found = candidates(log(*counts.items()), background, size)
    alone = {m[0] for m in found.values() if len(m) == 1 and counts["".join(m[0])] == 1}
    expected = tuple(name for name, (trace, _) in cases.items() if tuple(trace) in alone)
    assert unique_cases(event_log(cases), background, size) == expected


def test_unique_cases_of_many_variants_are_found_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    made = hospital(80, seed=3)
    expected = unique_cases(made, "sequence", 2)
    monkeypatch.setattr(disclosure, "TABLE_BYTES", 10)
    assert unique_cases(made, "sequence", 2) == expected != ()
    (found,) = risk(made, "sequence", 2, sensitive="urgency")
    assert found.attribute_disclosure is None and found.reason is not None and found.case_disclosure is not None


def test_a_log_without_events_has_neither_names_nor_attributes() -> None:
    for asked in ({"time": "days"}, {"sensitive": "diagnosis"}):
        with pytest.raises(ParameterError) as refused:
            risk(EXAMPLE_1, "set", 1, **asked)
        assert refused.value.parameter == "log"
    with pytest.raises(ParameterError):
        unique_cases(EXAMPLE_1, "set", 1)

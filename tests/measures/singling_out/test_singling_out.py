"""Singling out: risk before and after, against the knowledge from others' cases."""

import dataclasses
import io
import itertools
import json
from dataclasses import replace

import numpy as np
import openly
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused, sentence
from rich.console import Console

from veilog.cli.shared.measures import comparison_table
from veilog.errors import ParameterError
from veilog.logs.eventlog import TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures import compare
from veilog.measures.singling_out import halves, singling_out
from veilog.measures.singling_out.measure import Knowledge, SinglingOut
from veilog.measures.singling_out.words import result_sentence

traces = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(tuple)
some_logs = st.dictionaries(traces, st.integers(1, 3), min_size=1, max_size=5).map(Variants.from_dict)


def log(*rows: tuple[str, int]) -> Variants:
    return Variants.from_dict({tuple(text): count for text, count in rows})


def only(result: SinglingOut) -> Knowledge:
    (row,) = result.results
    return row


def values(row: Knowledge) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    s, g = row.singled_out, row.guessed
    return (
        (s.original.value, s.released.value, s.baseline.value),
        (g.original.value, g.released.value, g.baseline.value),
    )


def later(events: EventLog, days: int) -> EventLog:
    """The same log, so many days later."""
    moved = pa.array(events.events.column(TIMESTAMP).cast(pa.int64()).to_numpy() + days * 86_400_000_000)
    at = events.events.column_names.index(TIMESTAMP)
    return replace(events, events=events.events.set_column(at, TIMESTAMP, moved.cast(TIMESTAMP_TYPE)))


ORIGINAL = log(("ab", 2), ("ac", 1), ("d", 4))


def test_a_worked_example() -> None:
    """Two of three people with more than one event have ab, and one has ac.

    Original: c alone stands alone, and is known for 1/3 * 1/2. A guess takes a and b for ab and c for ac. It is right
    for 2/3 of the people where a is known, and for all where the other is, together 5/6. No one else has ac; without
    it: 2/3.

    Release ab, ac, ac: b alone stands alone, and is known for 2/3 * 1/2. A guess takes a and c for ac, and b for ab. It
    is right for 1/3 of the people where a is known and for all where the other is, together 2/3.

    Baseline of singling out, for the two with ab: three cases are drawn from ab, ac, d, d, d, d. One ab alone fits b in
    3 * 1/6 * (5/6)^2 of all draws, and a, which two of the six have, in 3 * 1/6 * (4/6)^2.
    """
    row = only(singling_out(ORIGINAL, log(("ab", 1), ("ac", 2)), sizes=[1]))
    assert (row.people, row.attacks, row.exact, row.with_start) == (3, 6, True, False)
    drawn = 2 / 3 * (3 / 6 * (5 / 6) ** 2 + 3 / 6 * (4 / 6) ** 2) / 2
    expected = (1 / 6, 1 / 3, drawn), (5 / 6, 2 / 3, 2 / 3)
    assert values(row) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert row.beyond.value == pytest.approx(0.0) and not row.more


@pytest.mark.slow
def test_a_release_that_is_the_original_has_the_risk_of_the_original() -> None:
    events = hospital(300, seed=1)
    result = singling_out(events, events)
    assert result.without_start is None and len(result.results) == 10
    for row in result.results:
        assert row.singled_out.released == row.singled_out.original
        assert row.guessed.released == row.guessed.original
    assert any(row.more for row in result.results)
    assert result_sentence(result).endswith(sentence("attack-more-others"))


@pytest.mark.nightly
def test_an_independent_log_of_the_same_process_tells_no_more_than_others_cases() -> None:
    """Another sample of the simulated hospital has never seen the people of the first."""
    for seed in range(3):
        result = singling_out(hospital(300, seed=seed), hospital(300, seed=100 + seed))
        assert result.without_start is None
        assert not any(row.more for row in result.results)
        for row in result.results:
            if not row.with_start:  # about the same: as much less as one case less, and another draw, make it
                assert -0.15 < row.beyond.value < 0.02
            assert row.singled_out.released.value < row.singled_out.baseline.value + 0.02
        assert result_sentence(result).endswith(sentence("attack-no-more-others"))


@pytest.mark.slow
def test_raw_cases_that_slip_into_a_release_are_seen() -> None:
    a, b = hospital(300, seed=1).variants, hospital(300, seed=2).variants
    slipped = Variants.from_dict(
        {t: a.to_dict().get(t, 0) + b.to_dict().get(t, 0) for t in {**a.to_dict(), **b.to_dict()}}
    )
    assert any(row.more for row in singling_out(a, slipped).results)


def test_copies_of_everybody_hide_nobody_from_guessing() -> None:
    """In twice the original no case stands alone, but every guess stays as good."""
    original = Variants.from_dict(dict.fromkeys(itertools.permutations("abcdef", 4), 1))
    row = only(singling_out(original, original.with_counts(2 * original.counts), sizes=[3]))
    assert row.singled_out.released.value == 0.0 < row.guessed.original.value == row.guessed.released.value
    assert row.guessed.baseline.value == 0.0 and row.more


def test_one_accident_is_no_evidence() -> None:
    """A person's own trace, released once, may be chance, however often attacked."""
    original = log(*((trace, 1) for trace in ("abcdef", "fedcba", "acebdf", "bdface", "cfbead")))
    row = singling_out(original, log(("acebdf", 1), ("aaaaaa", 9)), sizes=[3]).results[0]
    assert row.guessed.released.value > 0.15 and row.guessed.baseline.value == 0.0
    assert not row.more


def test_a_small_release_of_frequent_traces_is_not_blamed() -> None:
    """Cases that stand alone in a small release have traces that others have, too."""
    original = log(("abc", 50), ("abd", 30), ("aec", 20))
    row = singling_out(original, log(("abc", 1), ("abd", 1)), sizes=[2]).results[0]
    assert row.singled_out.released.low > row.singled_out.baseline.high
    assert not row.more


@pytest.mark.slow
def test_the_expected_baseline_is_what_drawing_logs_gives() -> None:
    original = log(("ab", 3), ("ac", 2), ("bc", 1), ("abc", 2))
    expected = only(singling_out(original, log(("ab", 5)), sizes=[1])).singled_out.baseline.value
    rng = np.random.default_rng(1)
    cases = [t for t, n in original.to_dict().items() for _ in range(n)]
    right = []
    for _ in range(4000):
        who = int(rng.integers(len(cases)))
        others = cases[:who] + cases[who + 1 :]
        known = cases[who][int(rng.integers(len(cases[who])))]
        fit = [t for t in (others[i] for i in rng.integers(0, len(others), 5)) if known in t]
        right.append(fit == [cases[who]])
    assert np.mean(right) == pytest.approx(expected, abs=4 * np.std(right) / 4000**0.5)


def test_drawn_attacks_agree_with_all_of_them() -> None:
    events = hospital(150, seed=3)
    release = hospital(150, seed=4).variants
    drawn = singling_out(events, release, sizes=[2]).results[0]
    every = singling_out(events, release, sizes=[2], attacks=10**6).results[0]
    assert every.exact and not drawn.exact and drawn.attacks == 1000
    for name in ("singled_out", "guessed"):
        for which in ("original", "released", "baseline"):
            sampled, exact = (getattr(getattr(row, name), which) for row in (drawn, every))
            assert sampled.low <= exact.value <= sampled.high
            assert exact.low == exact.value == exact.high
    assert drawn.beyond.low <= every.beyond.value <= drawn.beyond.high


@pytest.mark.slow
def test_the_start_narrows_people_down_where_both_logs_have_real_times() -> None:
    events = hospital(200, seed=1)
    blind, knowing = singling_out(events, events, sizes=[3]).results
    assert (blind.with_start, knowing.with_start) == (False, True)
    assert knowing.singled_out.original.value > blind.singled_out.original.value
    assert knowing.guessed.original.value > blind.guessed.original.value
    assert knowing.guessed.baseline.value >= blind.guessed.baseline.value
    # Where all starts are wrong by four days, the traces are still there, and to know the start is of no use.
    wrong = singling_out(events, later(events, 4), sizes=[3]).results
    assert wrong[0] == blind
    assert wrong[1].singled_out.released.value < knowing.singled_out.released.value
    assert wrong[1].guessed.released.value < blind.guessed.released.value and not wrong[1].more


@pytest.mark.slow
def test_why_the_start_is_of_no_use_is_said() -> None:
    events = hospital(50, seed=1)
    for released, code in ((events.variants, "durations-of-variants"), (later(events, 9999), "starts-apart")):
        reason = singling_out(events, released).without_start
        assert reason is not None and reason.code == code
    made = openly.release(events, "evolve", epsilon=5, seed=1).log
    result = compare(events, made)
    assert result.singling_out is not None
    assert result.singling_out.without_start.code == "durations-times-artificial"
    assert all(not row.with_start for row in result.singling_out.results)


def test_cases_without_a_start_are_attacked_without_it() -> None:
    events = hospital(100, seed=1)
    first_case = np.asarray(events.events.column("case:index")) == 0
    times = events.events.column(TIMESTAMP).cast(pa.int64()).to_numpy()
    hidden = pa.array(times, mask=first_case, type=pa.int64()).cast(TIMESTAMP_TYPE)
    at = events.events.column_names.index(TIMESTAMP)
    some = replace(events, events=events.events.set_column(at, TIMESTAMP, hidden))
    blind, knowing = singling_out(some, events, sizes=[1]).results
    assert (blind.people, knowing.people) == (100, 99)


@pytest.mark.slow
def test_no_value_depends_on_the_order_of_cases() -> None:
    events = hospital(120, seed=5)
    turned = events.only(np.arange(events.cases.num_rows)[::-1])
    same = [singling_out(one, other) for one, other in ((events, events), (turned, events), (events, turned))]
    assert same[0].results == same[1].results == same[2].results


@pytest.mark.slow
@settings(max_examples=25)
@given(some_logs, st.one_of(some_logs, st.just(Variants.from_dict({}))))
def test_shares_are_shares_and_what_stands_alone_is_guessed(a: Variants, b: Variants) -> None:
    try:
        result = singling_out(a, b)
    except ParameterError as error:
        assert a.lengths.max() == 1 and error.code == "singling-cases-too-short"
        return
    for row in result.results:
        for rate in [*vars(row.singled_out).values(), *vars(row.guessed).values()]:
            assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
        assert row.guessed.original.value >= max(row.singled_out.original.value, row.guessed.baseline.value) - 1e-12
        assert row.guessed.released.value >= row.singled_out.released.value - 1e-12
        assert -1.0 <= row.beyond.low <= row.beyond.value <= row.beyond.high <= 1.0
        if b.cases == 0:
            assert row.guessed.released.value == 0.0 and not row.more
    assert json.dumps([dataclasses.asdict(row) for row in result.results], allow_nan=False)


def test_compare_says_why_there_is_no_risk_to_speak_of() -> None:
    result = compare(log(("a", 5)), log(("a", 4)))
    assert result.singling_out is None
    assert result.not_computed["singling_out"].code == "singling-cases-too-short"
    with refused(ParameterError, "singling-without-cases"):
        singling_out(log(), log(("ab", 1)))


@pytest.mark.slow
def test_people_are_shown_the_table_and_what_it_means() -> None:
    events = hospital(200, seed=1)
    console = Console(width=200, record=True, file=io.StringIO())
    found = compare(events, events.variants)
    console.print(comparison_table(found))
    shown = " ".join(console.export_text().split())
    assert found.singling_out is not None and found.singling_out.control == "others' cases"
    assert "others' cases" in shown and str(found.singling_out.without_start) in shown
    assert sentence("attack-more-others") in shown


@pytest.mark.parametrize("wrong", [{"sizes": []}, {"sizes": [0]}, {"attacks": 1}, {"hours": 0.0}, {"seed": -1}])
def test_senseless_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        singling_out(ORIGINAL, ORIGINAL, **wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_people_held_out_are_the_control_where_they_are_given() -> None:
    """The log itself reveals its people, and a log drawn apart no more than chance.

    Of 40 rows drawn apart, 0.25 % may be above by chance.
    """
    rng = np.random.default_rng(2)

    def drawn(cases: int) -> Variants:
        found: dict[tuple[str, ...], int] = {}
        for _ in range(cases):
            trace = tuple("abc"[int(i)] for i in rng.integers(0, 3, 4))
            found[trace] = found.get(trace, 0) + 1
        return Variants.from_dict(found)

    rows = []
    for _ in range(20):
        result = singling_out(drawn(120), drawn(120), control=drawn(120), sizes=[1, 2])
        assert result.control == "held out"
        rows += list(result.results)
    assert sum(row.more for row in rows) <= 1
    gains = np.array([row.beyond.value for row in rows])
    assert abs(gains.mean()) < 4 * gains.std() / len(gains) ** 0.5
    assert np.mean([row.guessed.released.value for row in rows]) > 0.015  # one of 81 traces and more
    own, others = halves(hospital(300, seed=1))
    telling = singling_out(own, own, control=others)
    assert any(row.more and row.residual.value > 0.3 for row in telling.results if row.with_start)
    assert result_sentence(telling).endswith(sentence("attack-more-held-out"))

"""Times of a release use their share of epsilon, copy no gap, and are close."""

import datetime
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import openly
import pyarrow as pa
import pytest
from event_questions import Asked, exact, heard
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from time_tools import HOSPITAL, UTC, YEAR, durations_of, gaps_of, log_of, original_of, timed

import veilog
from veilog import Domain
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods._events import orders
from veilog.methods._events.assemble import released_cases
from veilog.methods._events.extras import delta_shared_out
from veilog.methods._events.times.calendar import MADE_UP_WINDOW
from veilog.methods._events.times.prices import Price, gaussian_weights
from veilog.methods._events.times.timestamps import SHARES, STANDING_OUT, released_times
from veilog.privacy.curator import Curator
from veilog.privacy.events import EventRounds
from veilog.privacy.histograms import gaussian_rounds, strength_within
from veilog.privacy.mechanisms import noise

# Budget and sensitivity


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, "log", YEAR])
@pytest.mark.parametrize(("epsilon", "share"), [("1", "0.3"), ("0.7", "0.333"), ("3", "0.9")])
def test_times_cost_exactly_their_share(window: Any, epsilon: str, share: str) -> None:
    release = openly.release(HOSPITAL, "travas", epsilon=epsilon, delta="0.01", times=share, window=window)
    flow, times = release.operations
    assert (release.guarantee.status, release.guarantee.epsilon) == ("proven", float(epsilon))
    assert release.guarantee.delta == 0.01
    total = sum((c.epsilon for c in release.guarantee.charges), Fraction(0))
    assert total == Fraction(epsilon)
    assert times.epsilon == float(Fraction(epsilon) * Fraction(share))
    assert (flow.target, times.target) == ("control flow (variants)", "timestamps")


@pytest.mark.parametrize("variants", [{("Triage",): 50}, {("Triage",): 30, (): 20}, {("Triage", "Discharge"): 9}])
@pytest.mark.parametrize("window", [None, YEAR])
def test_the_share_is_spent_whatever_is_released(variants: dict[tuple[str, ...], int], window: Any) -> None:
    curator = Curator(HOSPITAL.variants, log=HOSPITAL)
    cases = released_cases(Variants.from_dict(variants), np.random.default_rng(0))
    times = released_times(curator, Fraction(1, 3), cases, window=window)
    assert len(times) == cases.events
    assert sum((c.epsilon for c in curator.charges), Fraction(0)) == Fraction(1, 3)


@pytest.mark.parametrize("others", [0, 1, 2, 3])
@pytest.mark.parametrize("times", [False, True])
def test_a_delta_is_shared_out_exactly(others: int, times: bool) -> None:
    each, for_times = delta_shared_out(Fraction(1, 1000), others, times)
    assert others * each + for_times == (Fraction(1, 1000) if others or times else 0)
    assert for_times == (Fraction(1, 10_000 if others else 1000) if times else 0)


SHARE = {name: Fraction(part, 100) for name, part in SHARES.items()}


@pytest.mark.slow
@given(
    epsilon=st.fractions(Fraction(1, 50), 8),
    digits=st.integers(1, 14),
    ratios=st.lists(st.floats(0.1, 1), min_size=len(SHARE), max_size=len(SHARE)),
)
@settings(max_examples=40)
def test_gaussian_noise_is_taken_where_it_is_nowhere_wider_and_only_there(
    epsilon: Fraction, digits: int, ratios: list[float]
) -> None:
    delta, bounds = Fraction(1, 10**digits), dict(zip(SHARE, ratios, strict=True))
    laplace = {name: 2**0.5 / float(epsilon * share) / bounds[name] for name, share in SHARE.items()}
    weights = gaussian_weights(epsilon, delta, SHARE, bounds)
    if weights is None:
        strength = strength_within(float(epsilon), float(delta))
        assert sum(1 / wide**2 for wide in laplace.values()) > 0.9999 * strength**2, "or it would be enough for all"
        return
    assert list(weights) == list(SHARE), "in the order in which they are asked"
    noises = gaussian_rounds(list(weights.values()), epsilon, delta, by=EventRounds.UNIT).noises
    for name, one in zip(weights, noises, strict=True):
        assert one.variance**0.5 / EventRounds.UNIT <= laplace[name]


@pytest.mark.slow
def test_with_a_delta_times_are_paid_for_together_and_gaps_have_less_noise() -> None:
    release = openly.release(HOSPITAL, "df-laplace", epsilon=1, delta="1e-4", times="0.4", window=YEAR)
    assert (release.guarantee.status, release.guarantee.epsilon, release.guarantee.delta) == ("proven", 1.0, 1e-4)
    *_, charge = release.guarantee.charges
    assert (charge.question, charge.epsilon, charge.delta) == ("event rounds", Fraction(2, 5), Fraction(1, 10**4))
    assert [(o.target, o.delta) for o in release.operations] == [("control flow (variants)", 0), ("timestamps", 1e-4)]
    scales: dict[bool, list[float]] = {}
    ask = Price.sums

    def listening(self: Price, features: Any, size: int, bound: int, euclidean: float, **more: Any) -> Any:
        scales.setdefault(self.rounds is not None, []).append(bound / self.epsilon(bound, euclidean))
        return ask(self, features, size, bound, euclidean, **more)

    with patch.object(Price, "sums", listening):
        for delta in ("0", "1e-4"):
            timed(HOSPITAL, "2", 1, delta=delta)
    assert all(narrow <= wide for narrow, wide in zip(scales[True], scales[False], strict=True))
    assert sum(narrow < 0.6 * wide for narrow, wide in zip(scales[True], scales[False], strict=True)) >= 1


@pytest.mark.slow
def test_a_delta_that_is_too_small_to_pay_changes_nothing() -> None:
    (_, first), (_, other) = (timed(HOSPITAL, "0.4", 1, delta=delta) for delta in ("0", "1e-12"))
    assert np.array_equal(first, other)


def questions_of_times(log: EventLog, epsilon: str) -> list[Asked]:
    """Return every query about times at this epsilon, with its arguments."""
    with heard() as asked:
        timed(log, epsilon, 0)
    return asked


moments = st.none() | st.integers(1_700_000_000, 1_740_000_000)
raw_cases = st.lists(st.lists(st.tuples(st.sampled_from("abc"), moments), max_size=14), min_size=1, max_size=6)
SMALL = log_of(*[[("a", 1_704_100_000 + 7 * i), ("b", 1_704_200_000), ("c", 1_704_200_000 + 9**i)] for i in range(7)])
QUESTIONS = questions_of_times(SMALL, "40")
HOURS = [asked for epsilon in ("40", "1000") for asked in questions_of_times(SMALL, epsilon)[4:5]]
"""Queries about a few parts of the day, and about all hours."""


with patch("veilog.methods._events.times.histogram.FINE", 3):
    FINE = questions_of_times(SMALL, "1000")[:3]
"""Of durations and gaps in bins as fine as much epsilon allows."""


def test_with_much_epsilon_bins_are_fine() -> None:
    assert [fine[1] > 4 * coarse[1] for fine, coarse in zip(FINE, QUESTIONS, strict=False)] == [True, True, True]


def test_these_questions_are_asked() -> None:
    assert [more["purpose"] for _, _, _, more in QUESTIONS] == [
        "durations-of-cases",
        "durations-by-cell",
        "gaps-of-released-pairs",
        "durations-in-parts",
        "hours-and-weekdays",
        "cases-with-whole-times",
        "case-starts-by-window-part",
        "case-starts-by-smaller-part",
        "case-starts-by-duration",
    ]


def test_what_noise_would_leave_nothing_of_is_not_asked() -> None:
    """For seven cases, queries that noise would hide are left out, with a remark."""
    purposes = [more["purpose"] for _, _, _, more in questions_of_times(SMALL, "1")]
    assert not {"durations-by-cell", "gaps-of-released-pairs"} & {*purposes} and len(purposes) == len(QUESTIONS) - 2
    curator = Curator(SMALL.variants, log=SMALL, randomness=noise.seeded(1))
    said = told(curator, released_cases(SMALL.variants, np.random.default_rng(0)), "1", YEAR)
    assert "gaps-not-asked" in [one.code for one in said]


@pytest.mark.nightly
@given(raw=raw_cases)
def test_a_case_contributes_by_itself_and_within_the_bound(raw: list[list[tuple[str, int | None]]]) -> None:
    """A log's answers are the sums of its cases' answers, each within the bound."""
    for asked in (*QUESTIONS, *FINE, *HOURS[1:]):
        alone = [exact(log_of(case), asked) for case in raw]
        assert np.array_equal(exact(log_of(*raw), asked), sum(alone))
        bound = asked[2] * asked[3].get("resolution", 1)
        assert all(np.abs(one).sum() <= bound for one in alone)


@pytest.mark.nightly
@given(raw=raw_cases)
def test_hours_of_a_case_are_within_their_bound_in_squares(raw: list[list[tuple[str, int | None]]]) -> None:
    assert [size for _, size, _, _ in HOURS] == [4 + 7, 24 + 7]
    for asked in HOURS:
        assert all((exact(log_of(case), asked) ** 2).sum() <= 5 * 2_520**2 for case in raw)


def test_missing_times_and_gaps_below_zero_contribute_nothing() -> None:
    base = 1_704_100_000
    lasting, gaps = QUESTIONS[0], QUESTIONS[2]
    assert exact(log_of([("a", None), ("b", base)], [("a", base), ("b", base - 5)]), gaps).sum() == 0
    assert exact(log_of([("a", base), ("b", base + 5)]), gaps).sum() == 1024
    assert exact(log_of([("a", None), ("b", None)]), lasting).sum() == 0


def test_cases_that_start_outside_the_window_are_told_by_noisy_answers() -> None:
    said: list[list[Message]] = []
    for year in (2024, 2020):
        start = int(datetime.datetime(year, 2, 1, tzinfo=datetime.UTC).timestamp())
        log = log_of(*[[("a", start + 60 * i), ("b", start + 60 * i + 900)] for i in range(900)])
        curator = Curator(log.variants, log=log, randomness=noise.seeded(1))
        cases = released_cases(log.variants, np.random.default_rng(0))
        said.append(told(curator, cases, "2", YEAR))
    outside = [[one.values["value"] for one in found if one.code == "window-leaves-cases-outside"] for found in said]
    assert outside[0] == [] and outside[1][0] > 90


def told(curator: Curator, cases: Any, epsilon: str, window: Any) -> list[Message]:
    """Return the remarks when these cases get times."""
    found: list[Message] = []
    released_times(curator, Fraction(epsilon), cases, window=window, remark=found.append)
    return found


STANDS_OUT, EVEN = STANDING_OUT[True, True], STANDING_OUT[False, False]


@pytest.mark.parametrize(("epsilon", "expected"), [("40", STANDS_OUT), ("0.02", EVEN)])
def test_a_release_says_whether_hours_and_days_are_noise(epsilon: str, expected: Message) -> None:
    """A release reports if its hours and days, noons of weekdays, are noise."""
    noon = 1_704_110_400
    log = log_of(*[[("a", noon + 86_400 * (i % 5 + 7 * (i % 30))), ("b", noon + 300)] for i in range(300)])
    curator = Curator(log.variants, log=log, randomness=noise.seeded(3))
    year, said = told(curator, released_cases(log.variants, np.random.default_rng(0)), epsilon, None)[:2]
    assert said == expected and (year.code == "window-undeclared-hours-real") == (expected == STANDS_OUT)


def test_a_case_of_the_last_day_that_there_is_ends_the_window() -> None:
    last = int(datetime.datetime(9999, 12, 31, 12, tzinfo=datetime.UTC).timestamp())
    log = log_of([("a", last - 10**9), ("b", last)], [("a", last), ("b", last + 60)])
    assert Curator(log.variants, log=log).events.window[1].year == 9999


def test_a_log_without_any_time_still_gets_some() -> None:
    log = log_of(*[[("a", None), ("b", None)]] * 40)
    _, times = timed(log, "1", 3)
    assert len(times) == 80
    with refused(ParameterError, "cases-all-without-start"):
        _ = Curator(log.variants, log=log).events.window


# What comes out


@pytest.mark.slow
def test_events_follow_each_other_and_start_in_the_window() -> None:
    cases, times = timed(HOSPITAL, "1", 1)
    assert all((gaps >= 0).all() for gaps in gaps_of(cases, times).values())
    starts = times[cases.offsets[:-1]] / 1e6
    assert starts.min() >= YEAR[0].timestamp()
    assert starts.max() < YEAR[1].timestamp()


@pytest.mark.slow
@pytest.mark.parametrize("days", [0.5, 3, 10])
def test_a_window_need_not_hold_whole_weeks(days: float) -> None:
    window = (YEAR[0], YEAR[0] + datetime.timedelta(days=days))
    cases, times = timed(HOSPITAL, "1", 1, window)
    starts = times[cases.offsets[:-1]] / 1e6
    assert starts.min() >= window[0].timestamp()
    assert starts.max() < window[1].timestamp()


@pytest.mark.slow
def test_a_window_beside_the_log_gives_even_starts() -> None:
    """A window beside the log gives even starts, as it is not checked against it."""
    window = (datetime.datetime(1990, 1, 1, tzinfo=UTC), datetime.datetime(1991, 1, 1, tzinfo=UTC))
    cases, times = timed(HOSPITAL, "1", 1, window)
    starts = times[cases.offsets[:-1]] / 1e6
    assert starts.min() >= window[0].timestamp()
    assert starts.max() < window[1].timestamp()


@pytest.mark.slow
def test_without_a_window_cases_start_in_a_made_up_year_and_the_release_says_so() -> None:
    release = openly.release(HOSPITAL, "travas", epsilon=2, delta="0.01", times="0.5")
    starts = [t.as_py() for t in release.log.events.column("time:timestamp").take(pa.array(release.log.offsets[:-1]))]
    assert MADE_UP_WINDOW[0] <= min(starts)
    assert max(starts) < MADE_UP_WINDOW[1]
    assert any(remark.code.startswith("window-undeclared") for remark in release.remarks)
    assert release.guarantee.conditions == ()


@pytest.mark.slow
def test_a_window_from_the_log_is_a_condition() -> None:
    release = openly.release(HOSPITAL, "travas", epsilon=2, delta="0.01", times="0.5", window="log")
    assert [(c.code, c.said_by) for c in release.guarantee.conditions] == [("window-from-log", "owner")]


@pytest.mark.slow
def test_a_seed_repeats_times() -> None:
    arguments = {"epsilon": 2, "delta": "0.01", "times": "0.5", "seed": 4}
    first, second = (openly.release(HOSPITAL, "travas", **arguments).log.events for _ in range(2))
    assert first.equals(second)


@pytest.mark.slow
def test_released_times_are_not_called_artificial() -> None:
    metadata = openly.release(HOSPITAL, "travas", epsilon=2, delta="0.01", times="0.5", window=YEAR).log.metadata
    assert [a.key for a in metadata.attributes] == ["privacy:anonymizations"]
    operations = metadata.attributes[0].children
    keys = [o.key for o in operations if o.children and "operation" in o.key]
    assert keys == ["privacy:operation1", "privacy:operation2"]
    facts = [{a.key: a.value for a in o.children} for o in operations if o.children and "operation" in o.key]
    assert [f["privacy:target"] for f in facts] == ["control flow (variants)", "timestamps"]
    assert [f["privacy:epsilon"] for f in facts] == [1.0, 1.0]


def copied(original: dict[tuple[str, str], np.ndarray], released: dict[tuple[str, str], np.ndarray], shift: int) -> int:
    """Return the number of shifted released gaps that equal an original one."""
    return sum(
        int(np.isin(gaps[gaps >= 60] + shift, original[pair]).sum())
        for pair, gaps in released.items()
        if pair in original
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "1000"])
def test_no_gap_is_copied_more_often_than_chance(epsilon: str) -> None:
    """Gaps equal an original one no more often than one shifted by seconds."""
    original = gaps_of(*original_of(HOSPITAL))
    released = gaps_of(*timed(HOSPITAL, epsilon, 2))
    chance = [copied(original, released, shift) for shift in (-9, -7, -5, -3, 3, 5, 7, 9)]
    assert copied(original, released, 0) <= np.mean(chance) + 4 * np.sqrt(np.mean(chance) + 1)
    assert copied(original, original, 0) > 4 * np.mean(chance) > 0, "the test would notice copies"


@pytest.mark.slow
def test_no_gap_of_sepsis_is_copied_more_often_than_chance(logs: Any) -> None:
    log = veilog.read(logs / "sepsis.xes.gz")
    original = gaps_of(*original_of(log))
    cases, times = timed(log, "1", 2)
    released = gaps_of(cases, times)
    chance = [copied(original, released, shift) for shift in (-9, -7, -5, -3, 3, 5, 7, 9)]
    assert copied(original, released, 0) <= np.mean(chance) + 4 * np.sqrt(np.mean(chance) + 1)


@pytest.mark.slow
def test_busy_hours_and_weekdays_survive_a_large_budget() -> None:
    log = hospital(4000, seed=6)
    cases, times = timed(log, "20", 1)
    _, original = original_of(log)

    def profile(moments: np.ndarray, unit: int, number: int) -> np.ndarray:
        return np.bincount((moments // 1_000_000 - 4 * 86_400) // unit % number, minlength=number) / len(moments)

    starts, real = times[cases.offsets[:-1]], original[log.offsets[:-1]]
    for released, raw in ((times, original), (starts, real)):
        hours = np.corrcoef(profile(released, 3600, 24), profile(raw, 3600, 24))[0, 1]
        assert hours > 0.8
    days = np.corrcoef(profile(starts, 86_400, 7), profile(real, 86_400, 7))[0, 1]
    assert days > 0.8


@pytest.mark.slow
def test_durations_of_sepsis_are_close(logs: Any) -> None:
    """Durations of Sepsis are close at an epsilon of 1 for times (mean of 5 seeds)."""
    log = veilog.read(logs / "sepsis.xes.gz")
    real = durations_of(*original_of(log))
    window = (datetime.datetime(2013, 11, 1, tzinfo=UTC), datetime.datetime(2015, 7, 1, tzinfo=UTC))
    made = [durations_of(*timed(log, "1", seed, window)) for seed in range(5)]
    assert np.mean([abs(np.median(one) / np.median(real) - 1) for one in made]) <= 0.15
    assert np.mean([abs(one.mean() / real.mean() - 1) for one in made]) <= 0.25


@pytest.mark.nightly
@pytest.mark.xfail(
    strict=True, reason="0.9 to 1.0 on so small a log since durations have their share; 0.34 and 0.47 before"
)
@pytest.mark.parametrize("released_variants", [False, True])
def test_mean_durations_of_pairs_of_sepsis_are_off_by_half_at_most(logs: Any, released_variants: bool) -> None:
    """Mean durations of pairs of Sepsis are off by half at most (mean of 5 seeds).

    They are those of pairs with 100 occurrences for the log's own variants. For a release of evolve at epsilon 1 they
    are those of all common pairs, rare ones too.
    """
    log = veilog.read(logs / "sepsis.xes.gz")
    original = gaps_of(*original_of(log))
    window = (datetime.datetime(2013, 11, 1, tzinfo=UTC), datetime.datetime(2015, 7, 1, tzinfo=UTC))
    errors = []
    for seed in range(5):
        variants = None
        if released_variants:  # with rare pairs
            variants = openly.release(log.variants, "evolve", epsilon=1, seed=seed, for_="detail").variants
        released = gaps_of(*timed(log, "1", seed, window, variants))
        least = 1 if released_variants else 100
        common = [p for p in released if len(original.get(p, ())) >= least and original[p].mean() > 0]
        errors.append(np.median([abs(released[p].mean() / original[p].mean() - 1) for p in common]))
    assert np.mean(errors) <= 0.50


def test_an_empty_release_has_no_times() -> None:
    log = log_of([("a", 5), ("b", 6)])
    release = openly.release(log, "travas", epsilon=1, delta="1e-9", times="0.5", seed=1)
    assert release.variants.cases == 0
    assert len(release.log) == 0


def test_a_declared_domain_shapes_the_gaps_too() -> None:
    """The time between two declared events counts as one gap."""
    curator = Curator(HOSPITAL.variants, log=HOSPITAL, domain=Domain.of(["Triage", "Discharge"], 2))
    cases = released_cases(Variants.from_dict({("Triage", "Discharge"): 20}), np.random.default_rng(0))
    assert len(released_times(curator, Fraction(1), cases, window=None)) == 40


def test_pairs_beyond_the_most_frequent_share_the_gaps_of_all() -> None:
    with patch("veilog.methods._events.times.histogram.MOST_ROWS", 3):
        cases, times = timed(HOSPITAL, "50", 1)
    original, released = gaps_of(*original_of(HOSPITAL)), gaps_of(cases, times)
    assert set(released) == set(original)


@pytest.mark.slow
def test_times_that_are_drawn_in_blocks_are_as_those_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times drawn in two blocks equal those drawn at once, where noise is small."""
    log = hospital(8000, seed=2)
    cases, whole = timed(log, "200", 1)
    monkeypatch.setattr(orders, "BLOCK_EVENTS", len(cases.codes) // 2 + 1)
    same, parts = timed(log, "200", 1)
    assert same.codes.tolist() == cases.codes.tolist()
    assert parts.tolist() != whole.tolist()
    within = np.diff(np.repeat(np.arange(len(same)), same.lengths)) == 0
    assert (np.diff(parts)[within] >= 0).all()
    for share in (0.1, 0.5, 0.9):
        one, other = (np.quantile(durations_of(cases, times), share) for times in (whole, parts))
        assert other == pytest.approx(one, rel=0.03)
        assert np.quantile(parts, share) == pytest.approx(np.quantile(whole, share), rel=1e-3)
    of_whole, of_parts = gaps_of(cases, whole), gaps_of(same, parts)
    ratios = [of_parts[pair].mean() / gaps.mean() for pair, gaps in of_whole.items() if len(gaps) >= 300]
    assert len(ratios) >= 10
    assert np.median(ratios) == pytest.approx(1, abs=0.15)

"""Models of times: kinds and durations, starts in a window, parts of durations."""

import datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from time_tools import HOSPITAL, YEAR, durations_of, log_of, original_of, timed

from veilog.logs.variants import Repeated, Sequences
from veilog.methods._events import fits
from veilog.methods._events.cells import fit_margins
from veilog.methods._events.times import calendar, durations, hours
from veilog.methods._events.times.prices import Price
from veilog.privacy.cases import UNKNOWN_TIME, Cases
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

ENOUGH = Price(Curator(HOSPITAL.variants, log=HOSPITAL, randomness=noise.seeded(1)), Fraction(1_000))


def each_once(cases: Sequences) -> Repeated:
    return Repeated(cases, np.arange(len(cases)))


def test_with_much_epsilon_durations_are_those_of_the_log() -> None:
    cases, times = original_of(HOSPITAL)
    found = durations.asked_durations(ENOUGH, ENOUGH, each_once(cases), np.random.default_rng(1))
    lasting = found.drawn(each_once(cases), np.random.default_rng(2))
    real = durations_of(cases, times)[cases.lengths[cases.lengths > 0] >= 2]
    assert np.median(lasting) == pytest.approx(np.median(real), rel=0.1)
    assert lasting.mean() == pytest.approx(real.mean(), rel=0.05)


@pytest.mark.parametrize("gaussian", [False, True])
def test_one_cell_far_off_is_noise(gaussian: bool) -> None:
    """One far cell at seven noise scales (Gaussian: five) is noise, not cases."""
    noisy = np.array([600.0, 900.0, 300.0, 100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 50.0 if gaussian else 70.0])
    assert fits.likely(noisy, 10.0, gaussian=gaussian)[4:].sum() < 1


def test_the_tail_of_fine_bins_keeps_what_its_octaves_have() -> None:
    """Fifty cases in every second of eight bins of an octave are no noise."""
    noisy = np.concatenate([np.full(40, 1_000.0), np.tile([0.0, 50.0], 4), np.zeros(16)])
    found = fits.likely(noisy, 5.0, 8)
    assert found[40:48].sum() == pytest.approx(200, rel=0.1)
    assert found[48:].sum() < 5


def test_a_tail_hardly_rises_and_ends_where_only_noise_is_left() -> None:
    noisy = np.array([500.0, 800.0, 60.0, 20.0, 40.0, -9.0, 12.0, -30.0, 14.0])
    found = fits.likely(noisy, 10.0)
    assert found[0] == pytest.approx(500, rel=0.01)
    assert found[1] == pytest.approx(800, rel=0.01)
    assert (np.diff(found[1:]) < 0.1).all()
    assert found[3] > 15
    assert 0 <= found[-1] < 1


def test_counts_of_durations_are_never_negative_and_add_up_as_answered() -> None:
    """Counts below 0 are taken from their neighbours, where most of the cases are."""
    noisy = np.array([5.0, -8.0, 300.0, -20.0, 400.0, 600.0, 700.0, 10.0, 0.0])
    found = fits.likely(noisy, 2.0)
    assert (found >= 0).all()
    assert np.cumsum(found)[2:7] == pytest.approx([287, 287, 677, 1277, 1977], abs=12)
    assert found[3] == pytest.approx(0, abs=1e-9)


def test_a_tail_that_stands_out_of_the_noise_stays() -> None:
    noisy = np.array([500.0, 800.0, 60.0, 30.0, 30.0, 30.0, 30.0])
    assert fits.likely(noisy, 1.0) == pytest.approx(noisy, rel=0.02)


def test_a_fitted_table_has_the_rows_and_columns_of_the_other_answers() -> None:
    rows, columns = np.array([0.7, 0.3]), np.array([0.5, 0.25, 0.25])
    fitted = fit_margins(np.array([[300.0, 100, 310], [200.0, 150, -40]]), rows, columns, 100.0)
    assert fitted.sum(axis=1) == pytest.approx([1, 1])
    assert rows @ fitted == pytest.approx(columns, abs=1e-6)
    assert fitted[0, 2] > fitted[1, 2]


def priced(scale: float) -> Price:
    return Price(ENOUGH.curator, Fraction(1) / Fraction(scale))


def answered(levels: int, counts: np.ndarray, scale: float, seed: int) -> calendar._Halves:
    """Return a tree with noisy answers of this scale for all finest parts."""
    tree = calendar._Halves.of(levels)
    noisy = counts + np.random.default_rng(seed).laplace(0, scale, len(counts))
    tree.add([(levels, part) for part in range(1 << levels)], noisy, priced(scale))
    return tree


@pytest.mark.parametrize("seed", range(3))
def test_starts_gather_where_cases_started(seed: int) -> None:
    """All cases start in one part; noise does not spread them over the others."""
    counts = np.zeros(64)
    counts[48] = 2000
    shares = answered(6, counts, 25.0, seed).fitted(2000)[-1] / 2000
    assert shares[48] > 0.85


def test_starts_that_noise_hides_are_even() -> None:
    found = answered(5, np.full(32, 20.0), 300.0, 4).fitted(640)
    assert found[-1] / found[-1].sum() == pytest.approx(np.full(32, 1 / 32), abs=0.02)


def test_starts_agree_on_all_levels_and_with_what_is_known() -> None:
    """Halves that were not asked follow parts beside them; answers are averaged."""
    tree = calendar._Halves.of(3)
    tree.add([(1, 0), (2, 2), (2, 3)], np.array([300.0, 0.0, 100.0]), priced(0.01))
    tree.add([(3, part) for part in range(4, 8)], np.array([0.0, 0.0, 70.0, 30.0]), priced(0.01))
    halves, quarters, parts = tree.fitted(400)
    assert halves == pytest.approx([300, 100], abs=0.1)
    falling = 300 / (1 + (101 / 301) ** 0.25)
    assert quarters == pytest.approx([falling, 300 - falling, 0, 100], abs=0.1)
    assert parts.reshape(-1, 2).sum(axis=1) == pytest.approx(quarters, abs=1e-6)
    assert parts[0] > parts[1] and parts[2] > parts[3], "fewer start from part to part"
    assert parts[4:] == pytest.approx([0, 0, 70, 30], abs=0.1)


def test_many_cases_are_cut_finely_and_few_are_not() -> None:
    counts = np.zeros(16)
    counts[3] = 5000
    cells = answered(4, counts, 20.0, 1).cut(5000, 600)
    edges = np.cumsum([0.0] + [1 / 2**level for level, _ in cells])
    assert edges[-1] == 1, "the cells are the window"
    assert [part / 2**level for level, part in cells] == edges[:-1].tolist(), "in their order"
    assert (4, 3) in cells
    assert max(level for level, part in cells if part / 2**level >= 0.5) == 1, "nothing starts there"


def test_starts_outside_the_window_are_not_put_into_it() -> None:
    counts = np.full(8, 50.0)
    assert answered(3, counts, 5.0, 0).fitted(1000)[-1].sum() == pytest.approx(400, rel=0.05)
    assert answered(3, counts, 5.0, 0).fitted(410)[-1].sum() == pytest.approx(410)


def test_starts_keep_to_busy_hours_and_to_the_window() -> None:
    busy = np.zeros(168)
    busy[9:17] = 1.0  # Mondays, office hours
    window = (YEAR[0], YEAR[0] + datetime.timedelta(days=30))
    starts = calendar.drawn_starts(
        500, np.array([0.5, 0.0, 0.25, 0.25]), hours.WeekClock.of(busy), window, np.random.default_rng(0)
    )
    found = (starts - 4 * 86_400) // 3600 % 168
    assert ((found >= 9) & (found < 17)).mean() > 0.99
    first = window[0].timestamp()
    assert ((starts >= first) & (starts < window[1].timestamp())).all()
    assert not ((starts >= first + 7.5 * 86_400) & (starts < first + 15 * 86_400)).any()


def test_a_clock_of_busy_hours_shows_each_time_once() -> None:
    busy = np.random.default_rng(0).random(168)
    clock = hours.WeekClock.of(busy)
    seconds = np.sort(np.random.default_rng(1).integers(0, 10**9, 500))
    shown = clock.reached(seconds.astype(float))
    assert (np.diff(shown) > 0).all()
    assert np.abs(clock.when(shown) - seconds).max() <= 1
    monday = 4 * 86_400
    hour = clock.reached(monday + np.array([3, 4, 3 + 168, 4 + 168]) * 3600.0)
    assert [hour[1] - hour[0], hour[3] - hour[2]] == pytest.approx([busy[3], busy[3]])


def test_hours_of_few_cases_are_known_where_noise_would_drown_each_of_24() -> None:
    """Hours of 1,000 cases at noon are found, against a deviation of 42 in each hour."""
    log = log_of(*[[("a", 1_704_110_400 + 86_400 * (i % 7))] for i in range(1_000)])
    noons = []
    for seed in range(5):
        curator = Curator(log.variants, log=log, randomness=noise.seeded(seed))
        noons.append(float(hours.query_hours(Price(curator, Fraction(1, 20)), 1_000).hours[6:18].sum()))
    assert np.mean(noons) > 0.75


def week_by(epsilon: float, seed: int, cases: int, days: int, open_for: int) -> hours.Busy:
    """Return the answers for cases of one event, evenly over hours of weekdays."""
    monday = 1_704_067_200
    at = [monday + 86_400 * (i % days) + 3_600 * (8 + i // days % open_for) for i in range(cases)]
    log = log_of(*[[("a", moment)] for moment in at])
    curator = Curator(log.variants, log=log, randomness=noise.seeded(seed))
    return hours.query_hours(Price(curator, Fraction(epsilon)), cases)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1])
def test_hours_and_days_that_are_even_seldom_become_anything_else(epsilon: float) -> None:
    found = [week_by(epsilon, seed, 1_008, 7, 24) for seed in range(60)]
    assert np.mean([one.of_day for one in found]) <= 0.2
    assert np.mean([one.of_week for one in found]) <= 0.2
    assert all(one.hours.tolist() == [1 / 24] * 24 for one in found if not one.of_day)
    far = [np.abs(one.hours - 1 / 24).sum() / 2 for one in found]
    assert np.mean(far) <= 0.05, "and nearly as even where noise is taken for something"


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.001, 0.005, 0.02, 0.1])
def test_hours_and_days_are_nowhere_farther_than_even_ones_beyond_what_runs_differ(epsilon: float) -> None:
    real = np.where((np.arange(24) >= 8) & (np.arange(24) < 18), 0.1, 0.0), np.where(np.arange(7) < 5, 0.2, 0.0)
    found = [week_by(epsilon, seed, 1_000, 5, 10) for seed in range(60)]
    for at, (shares, even) in enumerate(zip(real, (1 / 24, 1 / 7), strict=True)):
        far = [np.abs((one.hours, one.days)[at] - shares).sum() / 2 for one in found]
        assert np.mean(far) <= np.abs(shares - even).sum() / 2 + 0.01


def test_office_hours_that_far_exceed_the_noise_stay() -> None:
    found = [week_by(0.5, seed, 1_000, 5, 10) for seed in range(5)]
    assert all(one.of_day and one.of_week for one in found)
    assert min(float(one.hours[8:18].sum()) for one in found) > 0.9
    assert min(float(one.days[:5].sum()) for one in found) > 0.9


@pytest.mark.parametrize("unit", [86_400, 3_600, 60, 1])
def test_times_that_are_whole_days_hours_or_minutes_are_noticed(unit: int) -> None:
    rng = np.random.default_rng(0)
    times = rng.integers(20_000, 40_000, (400, 2)) * unit
    log = log_of(*[[("a", first), ("b", second)] for first, second in times.tolist()])
    found = []
    for epsilon in (1.0, 0.05, 0.001):
        curator = Curator(log.variants, log=log, randomness=noise.seeded(1))
        found.append(hours.query_unit(Price(curator, Fraction(epsilon)), 400))
    assert found == [unit, unit, 1], "little epsilon never says that they are"


def test_a_group_of_long_cases_far_from_the_others_stays() -> None:
    noisy = np.zeros(20)
    noisy[2:6], noisy[16] = [900, 1_700, 900, 200], 300
    found = fits.likely(noisy, 5.0)
    assert found[16] == pytest.approx(300, rel=0.1)
    assert found[7:16].sum() + found[17:].sum() < 30


def test_long_cases_start_early_where_they_did() -> None:
    """Starts and durations are matched as known together, and the starts are kept."""
    together = calendar.CalendarTotals(np.array([100.0]), np.array([50.0]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    starts = np.array([0, 10, 20, 200, 210, 220])
    lasting = np.array([9.0, 90.0, 8.0, 95.0, 7.0, 99.0])
    matched = together.matched(starts, lasting, np.random.default_rng(0))
    assert sorted(matched.tolist()) == starts.tolist()
    assert (matched[lasting > 50] < 100).all()


def test_parts_of_durations_are_those_that_were_answered() -> None:
    """Half of each case is before its last event by gaps, and .75 by the answer."""
    owner = np.repeat(np.arange(100), 2)
    answer = np.array([[25.0, 0.0, 0.0, 0.0, 75.0]])
    for scale, last in ((0.1, 300), (200.0, 200)):
        known = durations.NoisySteps(np.zeros(0), answer, np.array([100.0]), scale)
        found = known.stretched(np.full(200, 10.0), np.full(100, 400.0), owner)
        assert np.bincount(owner, found) == pytest.approx(np.full(100, 400.0))
        assert found[1::2] == pytest.approx(np.full(100, last), rel=0.02), "and as they are drawn where noise hides it"


def test_a_part_that_does_not_stand_out_of_its_noise_is_no_time() -> None:
    answer = np.array([[90.0, 6.0, -5.0, 4.0, 10.0]])
    known = durations.NoisySteps(np.zeros(0), answer, np.array([100.0]), 6.0)
    (parts,) = known.parts(np.array([[20.0, 20.0, 20.0, 20.0, 20.0]]))
    assert parts[0] > 0.9
    assert parts[1:].max() < 0.05


def test_with_much_epsilon_parts_of_durations_are_those_of_the_log() -> None:
    """A tenth of each case is its first gap, of those that last long nine tenths."""
    first = [10, 900]
    log = log_of(*[[("a", 0), ("b", first[i % 2]), ("c", (100, 1_000)[i % 2])] for i in range(400)])
    price = Price(Curator(log.variants, log=log, randomness=noise.seeded(1)), Fraction(1_000))
    found = durations.query_steps(price, np.repeat([100.0, 1_000.0], 200))
    parts = found.parts(np.ones(found.noisy.shape))
    assert parts[0] == pytest.approx([0.1, 0, 0, 0, 0.9], abs=0.01)
    assert parts[-1] == pytest.approx([0.9, 0, 0, 0, 0.1], abs=0.01)


@pytest.mark.slow
def test_released_durations_are_close_where_the_budget_is_large() -> None:
    cases, times = timed(HOSPITAL, "50", 1)
    made, real = durations_of(cases, times), durations_of(*original_of(HOSPITAL))
    assert np.median(made) == pytest.approx(np.median(real), rel=0.15)
    assert made.mean() == pytest.approx(real.mean(), rel=0.1)


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from([UNKNOWN_TIME, -5, 0, 3, 4]), max_size=5), max_size=6))
def test_gaps_are_known_between_known_times_in_order(cases: list[list[int]]) -> None:
    times = np.array([time for case in cases for time in case], dtype=np.int64)
    offsets = np.cumsum([0, *map(len, cases)])
    wanted = [
        (offsets[i] + j, i)
        for i, case in enumerate(cases)
        for j in range(1, len(case))
        if UNKNOWN_TIME not in case[j - 1 : j + 1] and case[j] >= case[j - 1]
    ]
    at, owners = durations.gaps_of(Cases(np.zeros(len(times), dtype=np.int64), times, offsets, {}))
    assert list(zip(at.tolist(), owners.tolist(), strict=True)) == wanted

"""Every noisy query adds the noise that it is charged for.

Its answers follow the exact law, and its charge is the requested one. Half the noise, a forgotten factor or an epsilon
used twice shows here. Chi-square tests have fixed seeds, each at a false-alarm rate of 1e-9 for other seeds.
"""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from refusals import refused
from scipy import stats

from veilog.errors import ParameterError
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.guarantee import round_up
from veilog.privacy.cases import Coding
from veilog.privacy.contributions import check_sums
from veilog.privacy.curator import Curator
from veilog.privacy.histograms import check_size
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.accountant import composed_epsilon
from veilog.privacy.mechanisms.clipped_sums import Outer
from veilog.privacy.mechanisms.mechanism import Laplace, NoisedSteps

IntArray = npt.NDArray[np.int64]
SURE = 1e-9
LOG = Variants.from_dict({("a", "b"): 500, ("b",): 30, ("c",): 4})


def follows(drawn: IntArray, probability: Callable[[int], float], reach: int) -> None:
    """Assert that the numbers have these probabilities, by single cells and two tails."""
    n = len(drawn)
    chances = np.array([probability(x) for x in range(-reach, reach + 1)])
    tail = (1 - chances.sum()) / 2
    cells = [(drawn < -reach).sum(), *np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)]
    cells = [*cells, (drawn > reach).sum()]
    cells[1], cells[-2] = cells[1] - cells[0], cells[-2] - cells[-1]
    expected = np.array([tail, *chances, tail]) * n
    keep = expected >= 5
    pooled = [*np.array(cells)[keep], np.array(cells)[~keep].sum()]
    wanted = [*expected[keep], expected[~keep].sum()]
    if wanted[-1] < 1:
        pooled, wanted = pooled[:-1], wanted[:-1]
    assert abs(sum(pooled) - sum(wanted)) <= 1 + 1e-6 * n
    wanted = list(np.array(wanted) * sum(pooled) / sum(wanted))
    assert keep.sum() >= 4, "or the test shows nothing"
    assert stats.chisquare(pooled, wanted).pvalue > SURE


def laplace(epsilon: float) -> Callable[[int], float]:
    return lambda x: math.tanh(epsilon / 2) * math.exp(-epsilon * abs(x))


def truncated(epsilon: float, k: int) -> Callable[[int], float]:
    norm = sum(math.exp(-epsilon * abs(x)) for x in range(-k, k + 1))
    return lambda x: math.exp(-epsilon * abs(x)) / norm if abs(x) <= k else 0.0


def events(n: int = 1, colours: tuple[str | None, ...] = ("red",)) -> EventLog:
    """``n`` cases of one event, with colours in turn."""
    return EventLog(
        pa.table(
            {
                "case:index": pa.array(range(n), pa.int64()),
                "event:index": pa.array(range(n), pa.int64()),
                "concept:name": pa.array(["a"] * n, pa.string()),
                "time:timestamp": pa.array([0] * n, pa.int64()).cast(TIMESTAMP_TYPE),
            }
        ),
        pa.table(
            {
                "concept:name": pa.array([str(i) for i in range(n)], pa.string()),
                "colour": pa.array([colours[i % len(colours)] for i in range(n)], pa.string()),
            }
        ),
    )


def nothing(block: Any) -> Any:
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)


def one_case_of(log: EventLog, source: noise.Randomness) -> Curator:
    return Curator(log.variants, log=log, randomness=source)


# Laws -----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_count_has_the_noise_of_its_epsilon() -> None:
    source = noise.seeded(1)
    drawn = [Curator(LOG, randomness=source).count("0.7") - 534 for _ in range(2000)]
    follows(np.array(drawn), laplace(0.7), 8)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "step"), [(Fraction(3, 10), 7), (Fraction(9, 10), 9)])
def test_the_concentration_has_the_noise_of_its_step(share: Fraction, step: int) -> None:
    source, p, q = noise.seeded(2), share.numerator, share.denominator
    exact = q * 530 - p * 534
    drawn = [Curator(LOG, randomness=source).concentration(2, share, 3) - exact for _ in range(2000)]
    follows(np.array(drawn), laplace(3 / step), 12)


def test_every_bin_of_a_histogram_has_the_noise_of_its_epsilon() -> None:
    def last_bin(block: Any) -> Any:
        return np.where(block.lengths == 1, 5999, -1)

    answer = Curator(LOG, randomness=noise.seeded(3)).histogram(last_bin, 6000, "0.4")
    answer[5999] -= 34
    follows(answer, laplace(0.4), 14)


@pytest.mark.slow
def test_occupied_bins_above_a_threshold_have_the_noise_of_their_epsilon() -> None:
    source = noise.seeded(4)

    def bins(block: Any) -> Any:
        return np.where(block.lengths == 2, 1, -1)

    drawn = []
    for _ in range(2000):
        answer = Curator(LOG, randomness=source).histogram(bins, 3, "0.4", keep_above=100)
        assert answer.bins.tolist() == [1]
        drawn.append(int(answer.counts[0]) - 500)
    follows(np.array(drawn), laplace(0.4), 14)


@pytest.mark.parametrize("keep_above", [0, 4])
def test_empty_bins_above_a_threshold_are_as_many_and_as_large_as_noise_makes_them(keep_above: int) -> None:
    size, a = 40_000, math.exp(-0.4)
    answer = Curator(LOG, randomness=noise.seeded(5)).histogram(
        lambda block: np.full(len(block), -1), size, "0.4", keep_above=keep_above
    )
    chance = a ** (keep_above + 1) / (1 + a)
    assert stats.binomtest(len(answer.bins), size, chance).pvalue > SURE
    over = answer.counts - keep_above - 1
    seen = np.bincount(np.minimum(over, 15), minlength=16)
    expected = np.array([(1 - a) * a**x for x in range(15)] + [a**15]) * len(over)
    assert over.min() == 0 and stats.chisquare(seen, expected).pvalue > SURE


@pytest.mark.slow
def test_each_empty_bin_is_above_a_threshold_as_often_as_any_other() -> None:
    curator, runs = Curator(LOG, randomness=noise.seeded(12)), 200
    of_one = lambda b: np.where(b.lengths == 1, 2, -1)  # noqa: E731 - bin 2 of 5 has cases
    found = [curator.histogram(of_one, 5, "0.4", keep_above=0).bins for _ in range(runs)]
    often = np.bincount(np.concatenate(found), minlength=5)
    chance = math.exp(-0.4) / (1 + math.exp(-0.4))
    assert often[2] == runs and all(stats.binomtest(n, runs, chance).pvalue > SURE for n in often[[0, 1, 3, 4]])


@pytest.mark.slow
def test_where_all_empty_bins_come_back_none_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the empty bins is left out, for any number drawn at a time."""
    monkeypatch.setattr(noise, "gaps", lambda to, n, source: np.zeros(n, np.int64))
    for size in range(160):
        answer = Curator(LOG).histogram(lambda b: np.full(len(b), -1), size, 9, keep_above=4)
        assert answer.bins.tolist() == list(range(size))


@pytest.mark.parametrize(("bound", "resolution"), [(1, 1), (5, 1), (5, 3)])
@pytest.mark.parametrize("of_events", [False, True])
def test_sums_have_the_noise_of_their_bound(of_events: bool, bound: int, resolution: int) -> None:
    curator = one_case_of(events(), noise.seeded(6))
    ask = curator.events.sums if of_events else curator.sums
    follows(ask(nothing, 6000, bound, 2, resolution=resolution), laplace(2 / (bound * resolution)), 12)


@pytest.mark.slow
def test_numbers_of_distinct_values_have_half_the_epsilon_each() -> None:
    source, log = noise.seeded(7), events(6, ("red", "blue", None))
    drawn = np.array([one_case_of(log, source).events.distinct("colour", "1.2") for _ in range(1500)])
    follows(drawn[:, 0] - 2, laplace(0.6), 9)
    follows(drawn[:, 1] - 4, laplace(0.6), 9)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 6 / math.sqrt(1500), "each has noise of its own"


@pytest.mark.slow
def test_frequent_variants_have_the_noise_of_their_epsilon() -> None:
    source, epsilon, delta = noise.seeded(8), Fraction("0.5"), Fraction("0.001")
    k = noise.tsgd_bound(epsilon, delta)
    drawn = [
        Curator(LOG, randomness=source).partitions(epsilon, delta).to_dict()[("a", "b")] - 500 for _ in range(3000)
    ]
    assert max(map(abs, drawn)) <= k
    follows(np.array(drawn), truncated(0.5, k), 11)


@pytest.mark.slow
def test_a_variant_is_released_iff_its_noisy_count_is_above_k() -> None:
    epsilon, delta = Fraction(1), Fraction("0.05")
    k = noise.tsgd_bound(epsilon, delta)
    log, source, seen = Variants.from_dict({("a",): k + 1, ("b",): k}), noise.seeded(9), Counter[tuple[str, ...]]()
    for _ in range(2000):
        found = Curator(log, randomness=source).partitions(epsilon, delta).to_dict()
        assert all(n > k for n in found.values())
        seen.update(found.keys())
    law = truncated(1, k)
    for name, count in ((("a",), k + 1), (("b",), k)):
        chance = sum(law(x) for x in range(-k, k + 1) if count + x > k)
        assert stats.binomtest(seen[name], 2000, chance).pvalue > SURE


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3])
def test_values_are_found_as_often_as_their_part_of_the_budget_says(most: int) -> None:
    epsilon, delta = Fraction(2), Fraction("0.3")
    k = noise.tsgd_bound(epsilon / most, delta / most)
    colours = ("blue",) * k + ("red",) * (k + 1) + (None,)
    log, source, seen = events(len(colours), colours), noise.seeded(10), Counter[str]()
    for _ in range(1200):
        seen.update(one_case_of(log, source).events.frequent_values("colour", most, epsilon, delta))
    law = truncated(2 / most, k)
    assert set(seen) == {"blue", "red"}
    for name, count in (("blue", k), ("red", k + 1)):
        chance = sum(law(x) for x in range(-k, k + 1) if count + x > k)
        assert stats.binomtest(seen[name], 1200, chance).pvalue > SURE


@pytest.mark.slow
def test_a_sample_holds_each_case_with_its_rate() -> None:
    source = noise.seeded(11)
    sizes = [Curator(LOG, randomness=source).subsample(Fraction(1, 3))._variants.cases for _ in range(800)]
    cells = np.histogram(sizes, [0, 165, 172, 178, 184, 191, 535])[0]
    cdf = stats.binom(534, 1 / 3).cdf([164, 171, 177, 183, 190])
    expected = np.diff([0, *cdf, 1]) * 800
    assert stats.chisquare(cells, expected).pvalue > SURE


# Charges --------------------------------------------------------------------------------------------------------------


def failure(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the delta of k-TSGD noise for this one: no more, and usually less."""
    found = noise.tsgd_failure(epsilon, noise.tsgd_bound(epsilon, delta))
    assert delta / 10 < found <= delta
    return found


E, D = Fraction(7, 10), Fraction(1, 50)
ASKED: dict[str, tuple[Callable[[Curator], object], tuple[str, Fraction, Fraction, str]]] = {
    "count": (lambda c: c.count(E), ("count", E, Fraction(0), "1 (L1)")),
    "concentration": (
        lambda c: c.concentration(1, Fraction(3, 10), E),
        ("concentration", E, Fraction(0), "7 (L1)"),
    ),
    "histogram": (lambda c: c.histogram(lambda b: [0] * len(b), 2, E), ("histogram", E, Fraction(0), "1 (L1)")),
    "bins": (
        lambda c: c.histogram(lambda b: [0] * len(b), 2, E, keep_above=3),
        ("histogram", E, Fraction(0), "1 (L1)"),
    ),
    "sums": (lambda c: c.sums(nothing, 2, 5, E), ("sums", E, Fraction(0), "5 (L1, clipped)")),
    "event sums": (
        lambda c: c.events.sums(nothing, 2, 5, E, resolution=2),
        ("event sums", E, Fraction(0), "5 (L1, clipped)"),
    ),
    "event rounds": (
        lambda c: c.events.rounds([Fraction(1), Fraction(2)], E, D).sums(nothing, 2, 5),
        ("event rounds", E, D, "1 (L2, clipped)"),
    ),
    "distinct": (lambda c: c.events.distinct("colour", E), ("distinct values", E, Fraction(0), "2 (L1)")),
    "partitions": (lambda c: c.partitions(E, D), ("partitions", E, failure(E, D), "1 (one variant's count)")),
    "values": (
        lambda c: c.events.frequent_values("colour", 3, E, D),
        ("frequent values", E, 3 * failure(E / 3, D / 3), "3 values by 1 each"),
    ),
}


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("question", sorted(ASKED))
def test_what_is_asked_is_charged_once_and_in_full(question: str) -> None:
    log = events(4)
    curator = one_case_of(log, noise.operating_system())
    ask, (name, epsilon, delta, sensitivity) = ASKED[question]
    ask(curator)
    (charge,) = curator.charges
    assert (charge.question, charge.epsilon, charge.delta, str(charge.plain().sensitivity)) == (
        name,
        epsilon,
        delta,
        sensitivity,
    )
    guarantee = curator.guarantee()
    assert guarantee.proven and (guarantee.epsilon, guarantee.delta) == (0.7, round_up(delta))
    ask(curator)
    assert curator.guarantee().epsilon == 1.4


@pytest.mark.parametrize("question", sorted(ASKED))
def test_what_is_asked_of_a_sample_is_charged_amplified(question: str) -> None:
    if question in ("event sums", "event rounds", "distinct", "values"):
        return  # a sample has no events to ask about
    curator = Curator(LOG)
    ask, (_, epsilon, delta, _) = ASKED[question]
    ask(curator.subsample(Fraction(1, 4)))
    (charge,) = curator.charges
    exact = math.log1p(0.25 * math.expm1(float(epsilon)))
    assert exact <= float(charge.epsilon) <= exact + 1e-11
    assert charge.delta == delta / 4


def test_the_guarantee_is_the_sum_and_not_less_than_what_was_set_aside() -> None:
    curator = Curator(LOG)
    curator.count(E)
    curator.partitions(E, D)
    assert (curator.guarantee().epsilon, curator.guarantee().delta) == (1.4, round_up(failure(E, D)))
    claimed = curator.guarantee(at_least=(Fraction(3), Fraction(1, 10)))
    assert (claimed.epsilon, claimed.delta) == (3.0, 0.1)
    assert curator.guarantee(at_least=(Fraction(1), Fraction(1, 100))).epsilon == 1.4
    again = Curator(LOG)
    again.carry(curator.charges)
    assert again.charges == curator.charges and again.guarantee().epsilon == 1.4


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_events", [False, True])
def test_sums_are_asked_up_to_their_limits_and_beyond_them_are_refused_and_not_charged(of_events: bool) -> None:
    curator = one_case_of(events(), noise.seeded(6))
    ask = curator.events.sums if of_events else curator.sums
    least = Fraction(200, 2**62) * 2**32  # the epsilon at which noise for a bound of 2**32 is as wide as fits
    within = [(2, 2**32, 1, least), (2, 1, 2**32, least), (2, 2**16, 2**16, least)]
    for size, bound, resolution, epsilon in within:
        assert len(ask(nothing, size, bound, epsilon, resolution=resolution)) == 2
    assert len(curator.charges) == 3
    beyond = [(2, 2**32 + 1, 1, 1), (2, 1, 2**32 + 1, 1), (2, 2**16, 2**16 + 1, 1), (50_000_001, 1, 1, 1)]
    nonsense = [(0, 1, 1, 1), (2, 0, 1, 1), (2, 1, 0, 1), (2, 1, True, 1)]
    too_wide = [(2, 2**32, 1, least * Fraction(999, 1000)), (2, 2**16, 2**16, least * Fraction(999, 1000))]
    for size, bound, resolution, epsilon in (*beyond, *nonsense, *too_wide):
        with refused(ParameterError, "contributions-sums-too-large", "map-number-not-whole", "noise-scale-too-large"):
            ask(nothing, size, bound, epsilon, resolution=resolution)
    assert len(curator.charges) == 3


def test_as_many_sums_as_can_be_held_are_not_refused() -> None:
    check_sums(50_000_000, 1, 1, Fraction(1))


@pytest.mark.slow
def test_a_histogram_is_asked_up_to_its_limits_and_beyond_them_is_refused_and_not_charged() -> None:
    curator = Curator(LOG, randomness=noise.seeded(6))
    ask = lambda size, **more: curator.histogram(lambda b: np.full(len(b), -1), size, 1, **more)  # noqa: E731
    assert ask(0).tolist() == ask(0, keep_above=0).bins.tolist() == []
    check_size(50_000_000, Laplace(Fraction(1)), None)
    assert len(ask(2**61, keep_above=50).bins) == 0, "but for a chance of 1 in 5000"
    assert len(curator.charges) == 3
    for size in (-1, 50_000_001):
        with refused(ParameterError, "histogram-bins-not-listable"):
            ask(size)
    for size in (-1, 2**61 + 1):
        with refused(ParameterError, "histogram-too-large"):
            ask(size, keep_above=60)
    with refused(ParameterError, "histogram-threshold-negative"):
        ask(3, keep_above=-1)
    most = int(50_000_000 * (math.e + 1))  # of so many empty bins 50 million have noise above 0
    check_size(most - 2, Laplace(Fraction(1)), 0)
    with refused(ParameterError, "histogram-empty-bins-survive", keep_above=0):
        ask(most + 2, keep_above=0)
    assert len(curator.charges) == 3


def test_an_attribute_is_one_of_the_log_or_refused_and_not_charged() -> None:
    curator = one_case_of(events(), noise.operating_system())
    for ask in (
        lambda: curator.events.distinct("shade", 1),
        lambda: curator.events.frequent_values("shade", 1, 1, "0.1"),
        lambda: curator.events.sums(nothing, 1, 1, 1, codings=[Coding("shade")]),
        lambda: curator.events.sums(nothing, 1, 1, 1, codings=[Coding("colour", edges=(0.0, 1.0))]),
    ):
        with refused(ParameterError, "attribute-range-not-numbers", "pripel-attribute-missing"):
            ask()
    assert curator.charges == ()


@pytest.mark.parametrize("question", ["distinct", "values"])
def test_columns_that_are_taken_from_the_log_are_a_condition(question: str) -> None:
    curator = one_case_of(events(4), noise.operating_system())
    ASKED[question][0](curator)
    assert [condition.code for condition in curator.guarantee().conditions] == ["columns-from-log"]


def test_a_selection_without_delta_is_refused_and_not_charged() -> None:
    curator = one_case_of(events(), noise.seeded(6))
    with refused(ParameterError, "variants-selection-without-delta"):
        curator.partitions(1, 0)
    with refused(ParameterError, "values-selection-without-delta"):
        curator.events.frequent_values("colour", 1, 1, 0)
    with refused(ParameterError, "values-selection-without-delta"):
        curator.events.frequent_values("colour", 0, 1, "0.1")
    assert curator.charges == ()


# Training -------------------------------------------------------------------------------------------------------------

PLAN = (NoisedSteps("critic", 0.5, 2.0, 40), NoisedSteps("generator", 1.0, 6.0, 10))


def zeros(columns: Any) -> Any:
    return [[Outer(np.zeros((len(columns), 1)), np.zeros((len(columns), 4000)), 1)]]


def a_training(curator: Curator, epsilon: Fraction, delta: Fraction, **more: Any) -> Any:
    return curator.training(lambda b: np.zeros(len(b), np.int64), 1, PLAN, (0.5, 3.0), epsilon, delta, **more)


@pytest.mark.slow
def test_a_training_is_charged_what_it_may_cost_and_refused_below() -> None:
    delta = Fraction(1, 1000)
    cost = composed_epsilon(PLAN, delta)
    for enough, factor in ((True, 1.02), (False, 0.98), (False, 0.5)):
        curator, epsilon = Curator(LOG, randomness=noise.seeded(1)), Fraction(cost * factor)
        if not enough:
            with refused(ParameterError, "training-over-budget"):
                a_training(curator, epsilon, delta)
            assert not curator.contacted
            continue
        a_training(curator, epsilon, delta)
        (charge,) = curator.charges
        assert (charge.question, charge.epsilon, charge.delta) == ("gradients", epsilon, delta)
        assert str(charge.plain().sensitivity) == "0.5, 3 (L2, clipped)"


@pytest.mark.slow
def test_a_training_has_the_steps_and_the_noise_of_its_plan() -> None:
    """Deviations of 8000 coordinates of steps fit within 6 standard errors."""
    training = a_training(Curator(LOG, randomness=noise.seeded(1)), Fraction(20), Fraction(1, 1000), taken=(38, 0))
    for part, (deviation, left) in enumerate(((2.0 * 0.5, 2), (6.0 * 3.0, 10))):
        for _ in range(left):
            ((weight, bias),) = training.step(part, zeros)
            drawn = np.concatenate([np.asarray(weight).ravel(), np.asarray(bias)])
            assert len(drawn) == 8000
            assert drawn.std() == pytest.approx(deviation, rel=6 / math.sqrt(2 * 8000))
        with refused(ParameterError, "training-steps-used-up"):
            training.step(part, zeros)


@pytest.mark.slow
def test_a_step_that_all_take_part_in_sums_what_all_cases_have() -> None:
    """A step that all take part in sums what all cases have.

    Each case has a gradient of 3, evenly in its row of the weights and in the bias; the noise is of 18 a number.
    """

    def rows(columns: Any) -> Any:
        return [[Outer(columns, np.full((len(columns), 1), 100.0), 2)]]

    curator = Curator(LOG, randomness=noise.seeded(1))
    training = curator.training(lambda b: b.lengths - 1, 2, PLAN, (0.5, 3.0), 20, "1e-3")
    ((weight, bias),) = training.step(1, rows)
    expected = np.array([34, 500, 534]) * 3 / math.sqrt(2)
    assert np.abs(np.array([*weight.ravel(), *bias]) - expected).max() < 6 * 18


@pytest.mark.parametrize("taken", [(41, 0), (-1, 0), (0, 11), (0,), (0, 0, 0)])
def test_a_training_that_has_taken_more_than_there_is_is_refused(taken: tuple[int, ...]) -> None:
    curator = Curator(LOG, randomness=noise.seeded(1))
    with pytest.raises(ParameterError):
        a_training(curator, Fraction(20), Fraction(1, 1000), taken=taken)
    assert not curator.contacted


@pytest.mark.parametrize("clips", [(0.5,), (0.5, 0.0), (-1.0, 1.0), (0.5, 1.0, 1.0)])
def test_a_training_without_a_bound_for_each_part_is_refused(clips: tuple[float, ...]) -> None:
    curator = Curator(LOG, randomness=noise.seeded(1))
    with pytest.raises(ParameterError):
        curator.training(lambda b: np.zeros(len(b), np.int64), 1, PLAN, clips, 20, "1e-3")
    assert not curator.contacted


def test_a_training_may_cost_exactly_what_was_set_aside_and_has_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilog.privacy.mechanisms.gradients.composed_epsilon", lambda plan, delta, about: 2.0)
    curator = Curator(LOG, randomness=noise.seeded(1))
    a_training(curator, Fraction(2), Fraction(1, 1000))
    with pytest.raises(ParameterError, match="more than the"):
        a_training(curator, Fraction(2) - Fraction(1, 10**9), Fraction(1, 1000))
    with refused(ParameterError, "training-clip-missing"):
        curator.training(lambda b: np.zeros(len(b), np.int64), 1, (), (), 2, "1e-3")
    assert [charge.epsilon for charge in curator.charges] == [2]


def test_a_delta_of_one_is_no_guarantee_and_a_smaller_one_is() -> None:
    curator = Curator(LOG)
    curator.count(1)
    most = curator.guarantee(at_least=(Fraction(1), Fraction(6, 10)))
    assert most.proven and most.delta == 0.6
    whole = curator.guarantee(at_least=(Fraction(1), Fraction(1)))
    assert not whole.proven
    assert str(Message("deltas-reach-one")) in whole.in_words()


def test_every_bin_counts_the_first_and_the_last_too() -> None:
    """Every bin counts; here the noise is 0 but for a chance of exp(-900)."""
    curator = Curator(LOG)
    assert curator.histogram(lambda b: b.lengths - 1, 2, 900).tolist() == [34, 500]
    above = curator.histogram(lambda b: b.lengths - 1, 2, 900, keep_above=0)
    assert (above.bins.tolist(), above.counts.tolist()) == ([0, 1], [34, 500])


@pytest.mark.slow
def test_values_are_those_of_the_cases_that_have_one_wherever_they_are() -> None:
    """Values are those of their cases; here noise is 0, k 1, but for exp(-900)."""
    for colours in ((None, "red", "red", "blue"), ("red", None, "blue", "red"), ("red", "blue", "red", None)):
        curator = one_case_of(events(4, colours), noise.operating_system())
        assert curator.events.frequent_values("colour", 1, 900, "0.1") == ("red",)
        assert curator.events.distinct("colour", 900) == (2, 3)


def test_a_number_of_variants_is_a_whole_number_from_one_on() -> None:
    for number in (0, True, 1.5):
        with refused(ParameterError, "question-number-not-whole"):
            Curator(LOG).concentration(number, Fraction(1, 2), 1)  # type: ignore[arg-type]

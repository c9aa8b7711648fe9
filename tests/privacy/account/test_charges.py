"""A charge names its mechanism, its epsilon follows from that, and its words stay."""

from collections.abc import Callable
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from refusals import refused

from veilog._plain import Misfit, from_plain, to_plain
from veilog.errors import ParameterError
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog
from veilog.messages import Message
from veilog.privacy import histograms
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.account.guarantee import Charge, Guarantee, Statement, mechanism_in_words
from veilog.privacy.curator import Curator
from veilog.privacy.domain import PRIVATELY, Domain
from veilog.privacy.events import EventQuestions
from veilog.privacy.histograms import WEIGHT, _log_delta, label_threshold
from veilog.privacy.mechanisms import gaussian, gradients, noise
from veilog.privacy.mechanisms.accountant import composed_epsilon, integer_variance
from veilog.privacy.mechanisms.clipped_sums import GRID, Outer
from veilog.privacy.mechanisms.mechanism import (
    CubeNoise,
    DiscreteGaussian,
    DiscreteGaussianSteps,
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    Mechanism,
    NoisedSteps,
    NoisyMaximum,
    Sensitivity,
    Stated,
    Subsampled,
    Thresholded,
)
from veilog.privacy.mechanisms.sampling import amplify
from veilog.privacy.unit import ONE_CASE, Unit

PLAN = (NoisedSteps("autoencoder", 0.1234567891, 9.0, 3), NoisedSteps("critic", 1.0, 40.0, 1))
EVENTS = EventLog(
    pa.table(
        {
            "case:index": pa.array(range(9), pa.int64()),
            "event:index": pa.array(range(9), pa.int64()),
            "concept:name": pa.array(["a"] * 9, pa.string()),
            "time:timestamp": pa.array([0] * 9, pa.int64()).cast(TIMESTAMP_TYPE),
        }
    ),
    pa.table({"concept:name": pa.array(list("123456789")), "colour": pa.array(["red", "blue", None] * 3)}),
)


def curator(unit: Unit = ONE_CASE, *, labels: bool = False) -> Curator:
    domain = Domain(PRIVATELY) if labels else Domain(("a",), 3)
    return Curator(EVENTS.variants, log=EVENTS, domain=domain, unit=unit, randomness=noise.seeded(1))


def nothing(block: Any) -> Any:
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)


def no_bin(block: Any) -> Any:
    return np.full(len(block), -1)


def factors(columns: Any) -> Any:
    return [[Outer(np.zeros((len(columns), 1)), np.zeros((len(columns), 5)), 1)]]


def a_training(c: Curator, e: Fraction, d: Fraction) -> None:
    training = c.training(no_bin, 2, PLAN, (0.5, 3), e, d)
    training.step(0, factors)
    training.step(1, factors)


Ask = Callable[[Curator, Fraction, Fraction], object]
QUESTIONS: dict[str, tuple[Ask, str, str]] = {
    "count": (lambda c, e, d: c.count(e), "discrete Laplace, scale 1/epsilon", "1 (L1)"),
    "concentration": (
        lambda c, e, d: c.concentration(1, Fraction(3, 10), e),
        "discrete Laplace, scale 7/epsilon",
        "7 (L1)",
    ),
    "histogram": (lambda c, e, d: c.histogram(no_bin, 2, e), "discrete Laplace, scale 1/epsilon", "1 (L1)"),
    "bins": (
        lambda c, e, d: c.histogram(no_bin, 100, e, keep_above=0),
        "discrete Laplace, scale 1/epsilon",
        "1 (L1)",
    ),
    "sums": (lambda c, e, d: c.sums(nothing, 2, 5, e), "discrete Laplace, scale 5/epsilon", "5 (L1, clipped)"),
    "fine sums": (
        lambda c, e, d: c.sums(nothing, 2, 5, e, resolution=16),
        "discrete Laplace, scale 5/epsilon in steps of 1/16",
        "5 (L1, clipped)",
    ),
    "event sums": (
        lambda c, e, d: c.events.sums(nothing, 2, 2**20, e, resolution=3),
        "discrete Laplace, scale 1048576/epsilon in steps of 1/3",
        "1048576 (L1, clipped)",
    ),
    "cube_sums": (
        lambda c, e, d: c.events.cube_sums(nothing, 2, 3, e),
        "discrete noise of cubes of 3 numbers, scale 1/epsilon",
        "1 (L-infinity, clipped)",
    ),
    "distinct": (lambda c, e, d: c.events.distinct("colour", e), "discrete Laplace, scale 2/epsilon", "2 (L1)"),
    "most_apart": (
        lambda c, e, d: c.events.most_apart(nothing, [[0, 1], [2]], [0, 0], e),
        "the place of the largest number with discrete Laplace noise, scale 2/epsilon",
        "1 (each number)",
    ),
    "partitions": (
        lambda c, e, d: c.partitions(e, d),
        "k-truncated symmetric geometric, k = {k}, released iff above k",
        "1 (one variant's count)",
    ),
    "frequent_values": (
        lambda c, e, d: c.events.frequent_values("colour", 3, e, d),
        "k-truncated symmetric geometric, k = {k}, released iff above k",
        "3 values by 1 each",
    ),
    "one frequent_value": (
        lambda c, e, d: c.events.frequent_values("colour", 1, e, d),
        "k-truncated symmetric geometric, k = {k}, released iff above k",
        "1 values by 1 each",
    ),
    "find_activities": (
        lambda c, e, d: c.find_activities(e, d),
        "discrete Laplace, scale 1/epsilon, in steps of 1/1048576; found iff above {above}",
        "1 (L1, split)",
    ),
    "rounds": (
        lambda c, e, d: c.rounds([Fraction(1), Fraction(2)], e, d).histogram(no_bin, 2, keep_above=90),
        "discrete Gaussian, 2 queries composed together, standard deviation {deviations}",
        "1 (L2)",
    ),
    "event rounds": (
        lambda c, e, d: c.events.rounds([Fraction(1), Fraction(2)], e, d).sums(nothing, 2, 5),
        "discrete Gaussian, 2 queries composed together, standard deviation {deviations}",
        "1 (L2, clipped)",
    ),
    "training": (
        a_training,
        "discrete Gaussian, composed by privacy loss distributions: autoencoder: 3 steps, Poisson sampling at rate "
        "0.123457, noise multiplier 9; critic: 1 step, all cases, noise multiplier 40",
        "0.5, 3 (L2, clipped)",
    ),
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Fraction | int, ...]]]:
    """Record the distributions that numbers are drawn from, in their order."""
    seen: list[tuple[str, tuple[Fraction | int, ...]]] = []

    def watched(place: Any, name: str, parameters: int) -> None:
        original = getattr(place, name)

        def draw(*given: Any) -> Any:
            seen.append((name, given[:parameters]))
            return original(*given)

        monkeypatch.setattr(place, name, draw)

    watched(noise, "discrete_laplace", 1)
    watched(noise, "tsgd_noise", 2)
    watched(noise, "cubes", 2)
    watched(histograms, "_gaps_to", 2)
    watched(gradients, "discrete_gaussian", 1)
    watched(gaussian, "discrete_gaussian", 1)
    return seen


def asked(question: str, epsilon: Fraction, delta: Fraction, unit: Unit = ONE_CASE) -> Curator:
    found = curator(unit, labels=question == "find_activities")
    try:
        QUESTIONS[question][0](found, epsilon, delta)
    except ParameterError as error:  # nine cases have no label that is frequent enough
        assert question == "find_activities" and "which are spent" in str(error)
    return found


def cost(mechanism: Mechanism, sensitivity: Sensitivity, charge: Charge) -> Fraction:
    """Return the epsilon of a mechanism and a sensitivity, at the delta of the charge."""
    by = sensitivity.by[0]
    match mechanism:
        case Laplace(scale, grid):
            assert sensitivity.norm == "L1" and grid >= 1
            return by / scale
        case CubeNoise(scale, width, grid):
            assert sensitivity.norm == "L-infinity" and width == 3 and grid >= width * charge.epsilon
            return by / scale
        case NoisyMaximum(Laplace(scale, grid)):
            assert sensitivity.norm == "each" and grid == 1
            return 2 * by / scale
        case Thresholded(KTruncatedGeometric(epsilon, k), above):
            assert sensitivity.norm == "L0" and above == k == noise.tsgd_bound(epsilon, charge.delta / by)
            assert k == 1 or noise.tsgd_bound(epsilon, charge.delta / by * Fraction(1 - 2**-30)) == k + 1, "no more"
            return by * epsilon
        case Thresholded(Laplace(scale, grid), above):
            assert (sensitivity.norm, sensitivity.bounded, grid) == ("L1", "split", WEIGHT)
            assert above == label_threshold(by / scale, charge.delta)
            return by / scale
        case GaussianRounds(noises):
            assert sensitivity.norm == "L2" and by in (1, mechanism.by)
            strength = mechanism.by * sum(1 / float(noise.exact_variance - 4) for noise in noises) ** 0.5
            assert exp(_log_delta(float(charge.epsilon), strength)) <= charge.delta
            return charge.epsilon
        case DiscreteGaussianSteps(parts):
            assert sensitivity.norm == "L2" and len(sensitivity.by) == len(parts)
            assert composed_epsilon(parts, charge.delta) <= charge.epsilon
            return charge.epsilon
    raise AssertionError(f"nothing follows from {mechanism}")


def draws(mechanism: Mechanism) -> set[tuple[str, tuple[Fraction | int, ...]]]:
    """Return the distributions that a mechanism draws from."""
    match mechanism:
        case Laplace(scale, grid):
            return {("discrete_laplace", (1 / (scale * grid),))}
        case CubeNoise(scale, width, grid):
            return {("cubes", (1 / (scale * grid), width))}
        case NoisyMaximum(Laplace(scale)):
            return {("discrete_laplace", (1 / scale,))}
        case Thresholded(KTruncatedGeometric(epsilon, k)):
            return {("tsgd_noise", (epsilon, k))}
        case Thresholded(Laplace(scale, grid)):
            return {("discrete_laplace", (1 / (scale * grid),))}
        case GaussianRounds(noises):
            return {("discrete_gaussian", (noises[0].exact_variance,))}
        case DiscreteGaussianSteps(parts):
            return {("discrete_gaussian", (integer_variance(part.noise_multiplier, GRID),)) for part in parts}
    raise AssertionError(f"nothing is drawn from {mechanism}")


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [Fraction(7, 10), Fraction(13, 3)])
@pytest.mark.parametrize("question", sorted(QUESTIONS))
def test_the_charge_names_what_was_drawn_from_and_its_epsilon_follows(
    question: str, epsilon: Fraction, drawn: list[tuple[str, tuple[Fraction | int, ...]]]
) -> None:
    delta = Fraction(1, 100)
    (charge,) = asked(question, epsilon, delta).charges
    assert isinstance(charge.sensitivity, Sensitivity)
    assert charge.epsilon == epsilon == cost(charge.mechanism, charge.sensitivity, charge)
    assert charge.delta <= delta and charge.cases == 1
    gaps = [given for name, given in drawn if name == "_gaps_to"]
    assert {one for one in drawn if one[0] != "_gaps_to"} == draws(charge.mechanism)
    if question == "bins":
        assert gaps and set(gaps) == {(charge.mechanism, 0)}
    elif question == "rounds":
        assert gaps and set(gaps) == {(charge.mechanism.noises[0], 90)}
    else:
        assert not gaps


def test_every_question_is_tried() -> None:
    for holder, others in (
        (Curator, {"activities", "max_length", "randomness", "events", "subsample", "peek", "peek_log"}),
        (EventQuestions, {"level", "kind", "window", "check_moments", "of_subset"}),
    ):
        public = {name for name in vars(holder) if not name.startswith("_")} - others
        public -= {"charges", "contacted", "carry", "state", "guarantee", "before_first", "noise_only"}
        of_events = {"distinct", "frequent_values", "most_apart", "rounds", "cube_sums", "sums", "sums_of_persons"}
        known = of_events if holder is EventQuestions else set(QUESTIONS)
        assert public <= known


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("question", sorted(QUESTIONS))
def test_a_charge_in_words(question: str) -> None:
    _, mechanism, sensitivity = QUESTIONS[question]
    (charge,) = asked(question, Fraction(1), Fraction(1, 100)).charges
    if isinstance(charge.mechanism, Thresholded):
        above = charge.mechanism.above
        mechanism = mechanism.format(k=above, above=f"{above / WEIGHT:.4g}")
    if isinstance(charge.mechanism, GaussianRounds):
        wide, narrow = (f"{noise.variance**0.5 / charge.mechanism.by:.4g}" for noise in charge.mechanism.noises)
        mechanism = mechanism.format(deviations=f"{narrow} to {wide}")
    told = charge.to_json()
    assert (told["mechanism"], told["sensitivity"], told["epsilon"]) == (mechanism, sensitivity, 1.0)
    assert list(told) == ["question", "purpose", "mechanism", "sensitivity", "epsilon", "delta"]


def test_the_width_of_gaussian_noise_is_in_the_units_of_what_a_case_changes() -> None:
    """Counted in steps of 1/4096, a case that changes 256 changes 2**20 steps."""
    noises = (DiscreteGaussian(Fraction(10 * 4096) ** 2),)
    sensitivity = Sensitivity((Fraction(256),), "L2", "clipped")
    assert str(mechanism_in_words(GaussianRounds(noises, 1 << 20), sensitivity)).endswith("standard deviation 10")
    assert str(mechanism_in_words(GaussianRounds(noises), Sensitivity((Fraction(1),), "L2"))).endswith("4.096e+04")


@pytest.mark.slow
@pytest.mark.parametrize("question", sorted(set(QUESTIONS) - {"find_activities"}))
def test_a_person_costs_so_many_cases(question: str) -> None:
    """A person's epsilon is that of a case times the cases; the mechanism is the same."""
    one, delta = asked(question, Fraction(1, 2), Fraction(1, 100)), Fraction(1, 100)
    many = asked(question, Fraction(1, 2), delta, Unit("person", 4))
    (of_case,), (of_person,) = one.charges, many.guarantee().charges
    assert (of_person.mechanism, of_person.sensitivity) == (of_case.mechanism, of_case.sensitivity)
    assert (of_person.cases, of_person.epsilon) == (4, 4 * of_case.epsilon)
    words = of_case.plain()
    assert of_person.plain().mechanism == words.mechanism
    assert of_person.plain().sensitivity == Message("sensitivity-of-person", sensitivity=words.sensitivity, n=4)


@pytest.mark.parametrize("question", ["count", "concentration", "fine sums", "bins", "partitions"])
def test_what_is_asked_of_a_sample_says_so(question: str) -> None:
    whole, epsilon, rate = curator(), Fraction(1, 3), Fraction(1, 8)
    sample = whole.subsample(rate)
    QUESTIONS[question][0](sample, epsilon, Fraction(1, 100))
    (here,), (there,) = whole.charges, sample.charges
    assert here.mechanism == Subsampled(there.mechanism, rate, epsilon)
    assert here.sensitivity == there.sensitivity and isinstance(there.sensitivity, Sensitivity)
    assert there.epsilon == cost(there.mechanism, there.sensitivity, there)
    assert here.epsilon == amplify(epsilon, rate)
    words = f"{there.plain().mechanism}; on a Poisson sample, rate 0.125, there epsilon 0.333333"
    assert str(here.plain().mechanism) == words


# Kept in files --------------------------------------------------------------------------------------------------------

OLD = {
    "question": "partitions",
    "purpose": {"code": "variants-that-can-be-drawn", "values": {}},
    "mechanism": {"code": "noise-k-truncated", "values": {"k": 10}},
    "sensitivity": {"code": "sensitivity-one-count", "values": {}},
    "epsilon": "1/3",
    "delta": "1/1000",
}


def test_a_charge_of_a_file_is_what_the_file_says() -> None:
    read = from_plain(Charge, OLD)
    assert read.mechanism == Stated(Message("noise-k-truncated", k=10))
    assert (read.epsilon, read.delta) == (Fraction(1, 3), Fraction(1, 1000))
    assert to_plain(read) == OLD
    again = ChargeAccount(ONE_CASE, seeded=False)
    again.carry([read])
    assert again.charges == (read,) and again.guarantee().proven


@pytest.mark.parametrize(
    "wrong", [{"mechanism": 3}, {"epsilon": 0.5}, {"cases": 2}, {"sensitivity": None}, {"delta": "x"}]
)
def test_a_charge_of_a_file_with_other_facts_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(Misfit):
        from_plain(Charge, OLD | wrong)


def test_a_guarantee_is_kept_in_words_and_read_back() -> None:
    found = curator(Unit("person", 2))
    found.count("0.3", purpose="cases")
    found.subsample(Fraction(1, 2)).partitions("0.2", "1e-3")
    kept = to_plain(found.guarantee())
    assert kept["charges"][0] == {
        "question": "count",
        "purpose": to_plain(Message("cases")),
        "mechanism": to_plain(Message("noise-laplace", scale="1/epsilon", grid=1)),
        "sensitivity": to_plain(
            Message("sensitivity-of-person", sensitivity=Message("sensitivity-in-norm", by="1", norm="L1"), n=2)
        ),
        "epsilon": "3/5",
        "delta": "0",
    }
    read = from_plain(Guarantee, kept)
    assert to_plain(read) == kept and read.to_json() == found.guarantee().to_json()


# The account ----------------------------------------------------------------------------------------------------------


def test_the_account_hands_back_what_it_charged() -> None:
    account = ChargeAccount(ONE_CASE, seeded=False)
    assert not account.contacted
    mechanism = Laplace(Fraction(2))
    assert account.charge("count", "", mechanism, Sensitivity.of(1), Fraction(1, 2)) is mechanism
    assert account.contacted and account.charges[0].mechanism is mechanism
    with refused(ParameterError, "question-cost-negative"):
        account.charge("count", "", mechanism, Sensitivity.of(1), Fraction(-1, 2))
    assert len(account.charges) == 1


def test_conditions_reasons_and_statements_of_a_sample_are_those_of_the_whole() -> None:
    whole = ChargeAccount(Unit("person", 2), seeded=False)
    part = whole.of_sample(Fraction(1, 2)).of_sample(Fraction(1, 2))
    part.charge("count", "", Laplace(Fraction(1)), Sensitivity.of(1), Fraction(1))
    part.state(Statement("model", "holds", True, ""))
    assert whole.guarantee().proven and [s.model for s in whole.guarantee().statements] == ["model"]
    part.void("looked at")
    assert whole.guarantee().reasons == part.guarantee().reasons == (Message("looked at"),)
    twice = amplify(amplify(Fraction(1), Fraction(1, 2)), Fraction(1, 2))
    assert [charge.epsilon for charge in whole.charges] == [twice]
    assert [charge.epsilon for charge in whole.guarantee().charges] == [2 * twice]

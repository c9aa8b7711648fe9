"""Foundations of a white-box audit: likelihoods, curves, the exact test, records.

Audits of right methods run at a confidence of 1 - 1e-8, so they raise a false alarm that often at most (the seeds are
fixed besides). Those that measure how sharp an audit is have a fixed seed and a wide margin.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from refusals import refused

import veilog
from veilog.audits.attacks import worst_cases
from veilog.audits.blackbox import audit
from veilog.audits.bounds import (
    Priced,
    Questions,
    curve,
    evidence_of_counts,
    evidence_of_names,
    evidence_of_numbers,
    is_refuted,
    log_above,
    log_at_most,
    log_probability,
    runs_to_refute,
)
from veilog.audits.twin_curator import Twins, record_run, replay_run
from veilog.errors import ParameterError
from veilog.logs.synthetic.hospital import hospital, variants_only
from veilog.privacy.account.losses import EpsilonDeltaLoss, GaussianLoss, LaplaceLoss, composed_delta
from veilog.privacy.mechanisms.mechanism import DiscreteGaussian, KTruncatedGeometric, Laplace, NoisedSteps, Thresholded
from veilog.releasing.request import plan

LAPLACE = Laplace(Fraction(2), 3)
TRUNCATED = KTruncatedGeometric(Fraction(1, 2), 7)
EMPTY, _, _, THOUSANDS, *_ = worst_cases(False)
SURE = 1 - 1e-8


# Likelihoods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [LAPLACE, TRUNCATED, DiscreteGaussian(Fraction(50))])
def test_probabilities_add_up_and_tails_are_their_sums(mechanism: Any) -> None:
    x = np.arange(-400, 401)
    each = np.exp(log_probability(mechanism, x))
    assert each.sum() == pytest.approx(1)
    for bound in (-9, -7, -1, 0, 1, 6, 7, 8):
        assert math.exp(log_at_most(mechanism, bound)) == pytest.approx(each[x <= bound].sum(), abs=1e-12)
        assert math.exp(log_above(mechanism, bound)) == pytest.approx(each[x > bound].sum(), abs=1e-12)
    assert log_probability(mechanism, 0.5) == -math.inf


def test_the_evidence_of_answers() -> None:
    assert evidence_of_numbers(Laplace(Fraction(2)), [9, 5, 5], [3, 5, 5], [4, 5, 5]) == pytest.approx(0.5)
    assert evidence_of_numbers(TRUNCATED, 8, 0, 1) == math.inf
    assert evidence_of_numbers(TRUNCATED, -7, 0, 1) == -math.inf
    assert math.isnan(evidence_of_numbers(TRUNCATED, 50, 0, 1))
    above = Thresholded(TRUNCATED, 7)
    of = TRUNCATED, 7
    assert evidence_of_counts(*of, {"a": 8}, {}, {"a": 1}, empty=False) == math.inf
    assert evidence_of_counts(*of, {}, {}, {"a": 1}, empty=False) == pytest.approx(log_at_most(TRUNCATED, 6))
    assert evidence_of_counts(*of, {"a": 9}, {"a": 9}, {"a": 10}, empty=False) == pytest.approx(-0.5)
    assert evidence_of_names(above, frozenset("a"), {"a": 9}, {"a": 10}) == pytest.approx(
        log_above(TRUNCATED, -3) - log_above(TRUNCATED, -2)
    )


# Curves ---------------------------------------------------------------------------------------------------------------


def test_a_curve_of_one_question_is_that_of_epsilon_and_delta() -> None:
    found = curve((Questions((Priced("count", 1.0, 0.01),)),), 1.0, added=True)
    assert found.excess_at(1.01) == pytest.approx(0.01, abs=1e-3)
    assert found.excess_at(0.0) == pytest.approx(0.01 + 0.99 * math.tanh(0.5), abs=1e-3)
    assert curve((Questions((Priced("count", 1.0, 0.0),)),), 0.5, added=True).excess_at(0.51) < 1e-6


def test_fewer_units_allow_more_and_one_question_more_than_its_parts() -> None:
    """A coarser pair allows no less, and a whole norm in one number allows most."""

    def of(*asked: Priced) -> Any:
        found = curve((Questions(asked),), 1.0, added=True)
        return np.array([found.excess_at(s) for s in np.linspace(-1, 1, 41).tolist()])

    few, more, many = (of(Priced("sums", 1.0, 0.0, units)) for units in (1, 8, 64))
    assert (few >= more - 2e-4).all() and (more >= many - 2e-4).all()
    for units in (2, 8, 64):
        halves = of(*[Priced("sums", 0.5, 0.0, units // 2)] * 2)
        quarter = of(Priced("sums", 0.25, 0.0, max(1, units // 4)), Priced("sums", 0.75, 0.0, max(1, 3 * units // 4)))
        assert (of(Priced("sums", 1.0, 0.0, units)) >= halves - 3e-4).all()
        assert units < 8 or (of(Priced("sums", 1.0, 0.0, units)) >= quarter - 3e-4).all()


def test_a_sample_and_noised_steps_against_their_formulas() -> None:
    for added in (True, False):
        sampled = curve((Questions((Priced("count", 1.0, 0.0),), 0.3),), 1.0, added=added)
        largest = math.log1p(0.3 * math.expm1(1.0)) if added else -math.log1p(0.3 * math.expm1(-1.0))
        assert sampled.excess_at(largest * 1.001) < 1e-3
        assert sampled.excess_at(largest * 0.8) > 1e-3
    steps = curve(
        (Questions((Priced("steps", 1.0, 1e-5, steps=(NoisedSteps("one", 1.0, 2.0, 1),)),)),), 1.0, added=True
    )
    normal = 0.5 * (1 + math.erf(0.25 / math.sqrt(2)))
    assert steps.excess_at(0.0) == pytest.approx(2 * normal - 1, abs=2e-3)


@pytest.mark.slow
def test_curves_are_never_below_the_losses_of_the_account_and_hardly_above() -> None:
    """Curves by FFT are never below dp-accounting's losses, and hardly above."""
    for asked, losses in (
        (
            [Priced("a", 1.0, 0.0), Priced("b", 0.5, 1e-3)],
            [EpsilonDeltaLoss(Fraction(1)), EpsilonDeltaLoss(Fraction(1, 2), Fraction(1, 1000))],
        ),
        ([Priced("tree", 0.1, 0.0, 1)] * 10, [LaplaceLoss(Fraction(1, 10), 1)] * 10),
        ([Priced("steps", 1.0, 0.0, steps=(NoisedSteps("one", 0.5, 2.0, 5),))], [GaussianLoss(2.0, 0.5, 5)]),
    ):
        either = [curve((Questions(tuple(asked)),), 1.0, added=added) for added in (True, False)]
        for at in (0.1, 0.3, 0.6):
            mine = max(found.excess_at(at) for found in either)
            theirs = float(composed_delta(losses, Fraction(at)))
            assert theirs - 1e-5 <= mine <= theirs + 1e-3, (asked[0].question, at)


# The exact test -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_exact_test_refutes_what_is_too_little_and_nothing_that_is_right() -> None:
    """At the very edge of the allowed, the test refutes no more often than it states."""
    shape = (Questions((Priced("count", 1.0, 0.0),)),)
    right, less = (curve(shape, factor, added=True) for factor in (1.0, 0.5))
    p0 = 1 / (1 + math.e)
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(60):
        k1, k0 = int(rng.binomial(400, 1 - p0)), int(rng.binomial(400, p0))
        wrong += is_refuted((k1, 400), (k0, 400), 1.0, right.most, 0.05)
    assert wrong <= 12  # 3 expected at most; more than 12 once in 10^5
    assert is_refuted((292, 400), (108, 400), 1.0, less.most, 0.01)
    assert not is_refuted((150, 400), (150, 400), 1.0, less.most, 0.01)


# Runs -----------------------------------------------------------------------------------------------------------------


def test_a_run_is_what_a_release_asks_and_its_evidence_that_of_its_answers() -> None:
    planned = plan("df-laplace", epsilon=1, bound=4, activities=("a",))
    planned = planned.declaring(veilog.Domain(("a",), 60))
    twins = Twins(planned, EMPTY.without, EMPTY.with_)
    for there in (False, True):
        log = EMPTY.with_ if there else EMPTY.without
        found, script = record_run(planned, twins, log, there, 5)
        assert [answer.priced and answer.priced.question for answer in found.answers] == ["count", "sums"]
        count, sums = found.answers
        assert abs(count.evidence) == pytest.approx(0.1)
        assert abs(sums.evidence) <= 0.9 and sums.noise and sums.chance < 1e-9
        assert found == record_run(planned, twins, log, there, 5)[0]
        assert found == replay_run(planned, twins, script, log, there, 5), "and so is what is asked again, seed by seed"
        assert found != replay_run(planned, twins, script, log, there, 6)
        assert len(record_run(planned, twins, log, there, 5, 1)[0].answers) == 1


@pytest.mark.slow
def test_questions_about_attributes_are_answered_and_their_evidence_is_within_what_they_cost() -> None:
    """Queries about attributes have evidence within their epsilon.

    For the noisy maximum, among tables with the times of cases, the twins give its exact numbers.
    """
    full = hospital(200, seed=3)
    without, with_ = full.only(np.arange(199)), full
    wanted: dict[str, Any] = {"attributes": ["age group", "urgency", "org:resource", "cost"], "attributes_share": "0.8"}
    wanted |= {"times": "0.1", "window": "2024-01-01..2025-01-01"}
    ages = ("0-17", "18-39", "40-59", "60-79", "80+")
    staff = tuple(full.events.column("org:resource").unique().drop_null().to_pylist())
    domain = veilog.Domain(
        full.variants.labels,
        30,
        attributes={"age group": ages, "urgency": (1, 5), "cost": (0, 3000), "org:resource": staff},
    )
    planned = plan("df-laplace", epsilon=12, domain=domain, allow_no_protection=True, **wanted)
    twins = Twins(planned, without, with_)
    found, script = record_run(planned, twins, with_, True, 5)
    asked = [answer.priced and answer.priced.question for answer in found.answers]
    assert asked.count("most apart") >= 1 and asked.count("event sums") >= 8
    for answer in found.answers:
        assert answer.priced is not None
        assert abs(answer.evidence) <= answer.priced.epsilon + 1e-9
    assert any(answer.evidence for answer in found.answers if answer.priced and answer.priced.question == "most apart")
    again = replay_run(planned, twins, script, with_, True, 5).answers
    assert [answer.priced for answer in again] == [answer.priced for answer in found.answers]
    assert all(abs(answer.evidence) <= answer.priced.epsilon + 1e-9 for answer in again if answer.priced)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("method", "pair", "settings"),
    [
        ("travas", THOUSANDS, {"delta": "1e-3"}),
        ("laplace", THOUSANDS, {}),
        ("laplace", THOUSANDS, {"delta": "1e-2", "depth": 12}),
        ("df-laplace", EMPTY, {}),
    ],
)
def test_a_right_method_keeps_its_epsilon(method: str, pair: Any, settings: dict[str, Any]) -> None:
    found = audit(
        method, epsilon=1, white_box=True, runs=300, pairs=[pair], seed=1, processes=1, confidence=SURE, **settings
    )
    assert found.white_box is not None and not found.white_box.faults
    assert max(found.audited_epsilon, found.white_box.free_epsilon) <= 1


def test_histograms_that_are_paid_for_together_are_one_answer() -> None:
    planned = plan("laplace", epsilon=1, delta="1e-2", depth=12, activities=("a",)).declaring(veilog.Domain(("a",), 60))
    twins = Twins(planned, THOUSANDS.without, THOUSANDS.with_)
    found, _ = record_run(planned, twins, THOUSANDS.with_, True, 5)
    assert [answer.priced and answer.priced.question for answer in found.answers] == ["rounds", "histogram"]
    rounds = found.answers[0]
    assert rounds.priced is not None and rounds.priced.steps[0].steps == 1
    assert 0 < abs(rounds.evidence) < 5


@pytest.mark.slow
def test_sums_that_are_paid_for_together_are_one_answer_and_are_asked_again() -> None:
    full = hospital(100, seed=3)
    domain = veilog.Domain(full.variants.labels, 30)
    planned = plan("df-laplace", epsilon=4, delta="1e-2", times="0.25", domain=domain, allow_no_protection=True)
    twins = Twins(planned, full.only(np.arange(99)), full)
    found, script = record_run(planned, twins, full, True, 5)
    (rounds,) = (answer for answer in found.answers if answer.priced and answer.priced.question == "event rounds")
    (again,) = (
        answer
        for answer in replay_run(planned, twins, script, full, True, 6).answers
        if answer.priced and answer.priced.question == "event rounds"
    )
    for answer in (rounds, again):
        assert answer.priced is not None
        assert (answer.priced.epsilon, answer.priced.steps[0].steps) == (1.0, 1)
        assert 0 < abs(answer.evidence) < 5
    assert again.evidence != rounds.evidence


@pytest.mark.nightly
def test_an_audit_is_sharp_and_repeats_itself() -> None:
    first, second = (
        audit("travas", epsilon=1, delta="1e-3", white_box=True, runs=1500, pairs=[THOUSANDS], seed=2, processes=1)
        for _ in range(2)
    )
    assert first.audited_epsilon == second.audited_epsilon
    assert 0.8 <= first.audited_epsilon <= 1
    told = first.to_json()["white_box"]
    assert isinstance(told, dict) and told["faults"] == [] and "partitions" in told["questions"][0]


def test_what_has_no_derived_epsilon_is_refused() -> None:
    with refused(ParameterError, "audit-without-derived-epsilon"):
        audit("sapa", epsilon=1, as_published=True, white_box=True, runs=100, processes=1)
    with refused(ParameterError, "audit-without-derived-epsilon"):
        audit("sapa", epsilon=1, as_published=True, white_box=True, runs=100, processes=1)


@pytest.mark.nightly
def test_so_few_runs_that_they_could_show_nothing_are_refused_with_how_many_would_do() -> None:
    arguments: dict[str, Any] = {"epsilon": 1, "delta": "1e-3", "white_box": True, "pairs": [THOUSANDS], "processes": 1}
    with refused(ParameterError, "audit-derived-out-of-reach", runs=3, least=9) as told:
        audit("travas", runs=3, **arguments)
    assert told.value.parameter == "runs"
    with pytest.raises(ParameterError, match="at least 9"):
        audit("travas", runs=8, **arguments)
    audit("travas", runs=9, **arguments)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_least_runs_are_those_from_which_on_an_event_refutes(epsilon: float) -> None:
    """An event in all runs on one log and in none on the other refutes from there on."""
    found = curve((Questions((Priced("count", epsilon, 0.0),)),), 1.0, added=True)
    least = runs_to_refute(found.most, 0.01)
    assert is_refuted((least, least), (0, least), math.exp(epsilon), found.most, 0.01)
    assert not is_refuted((least - 1, least - 1), (0, least - 1), math.exp(epsilon), found.most, 0.01)
    by_hand = math.log(100) / (2 * math.log1p(math.exp(-epsilon)))
    assert least == math.ceil(by_hand)


def test_neighbours_that_the_guarantee_does_not_speak_of_are_refused() -> None:
    one = veilog.Variants.from_dict({("a",): 1})
    facts: dict[str, Any] = {"activities": "log", "domain": veilog.Domain(max_length="log")}
    with refused(ParameterError, "audit-neighbours-not-covered"):
        audit("laplace", epsilon=1, white_box=True, log=one, runs=50, processes=1, **facts)


@pytest.mark.slow
def test_relations_with_gaussian_noise_are_an_answer_whose_evidence_is_that_of_their_noise() -> None:
    log = variants_only(300, 4, 5.0, seed=2)
    activities = (*log.labels, "a")
    planned = plan("evolve", epsilon=1, delta="1e-3", activities=activities)
    planned = planned.declaring(veilog.Domain(activities, 60))
    more = veilog.Variants.from_dict({**log.to_dict(), ("a",) * 30: 1})
    twins = Twins(planned, log, more)
    found, _ = record_run(planned, twins, more, True, 5)
    (relations,) = [answer for answer in found.answers if answer.priced and answer.priced.question == "sums"]
    assert relations.priced is not None and relations.priced.steps[0].steps == 1
    assert relations.priced.delta > 0
    assert 0 < abs(relations.evidence) < 5

"""Times from a prior: equal queries and charges, better where it is right."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from event_questions import heard
from time_tools import YEAR, durations_of, gaps_of, log_of, original_of

import veilog
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import draw_starts, hospital
from veilog.messages import Message
from veilog.methods._events.assemble import released_cases
from veilog.methods._events.times.hours import query_hours
from veilog.methods._events.times.prices import Price
from veilog.methods._events.times.prior import PriorTimes, lean_on_prior
from veilog.methods._events.times.timestamps import released_times
from veilog.privacy.cases import RawCases
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise

OWN, OTHERS = hospital(400, seed=1), hospital(3000, seed=2)
WRONG = log_of(*[[(name, 1_704_100_000 + 11 * i + k) for k, name in enumerate("abcd")] for i in range(500)])
"""Log with other activities and cases of three seconds, as a wrong prior."""


def timed(prior: EventLog | None, epsilon: str, seed: int, remark: Any = lambda text: None) -> Any:
    source = noise.seeded(seed)
    curator = Curator(OWN.variants, log=OWN, randomness=source)
    cases = released_cases(OWN.variants, noise.generator(source))
    known = None if prior is None else PriorTimes([prior], Domain())
    times = released_times(curator, Fraction(epsilon), cases, window=YEAR, remark=remark, prior=known)
    assert sum((charge.epsilon for charge in curator.charges), Fraction(0)) == Fraction(epsilon)
    return cases.rows(0, len(cases)), times


def test_a_prior_changes_no_question_and_no_sensitivity() -> None:
    """A prior changes no query but the last two, and the bound of none.

    The last two follow from the answers and durations. The prior's content is no answer. With a prior, rare pairs have
    rows of their own, too.
    """
    asked = []
    for prior in (None, OTHERS):
        with heard() as questions:
            timed(prior, "300", 3)
        asked.append(questions)
    plain, leaning = asked
    assert [more["purpose"] for *_, more in plain] == [more["purpose"] for *_, more in leaning]
    assert [bound for _, _, bound, _ in plain] == [bound for _, _, bound, _ in leaning]
    (raw,) = RawCases(OWN, Domain()).blocks(OWN.variants.labels)
    for (features, size, _, _), (others, same_size, _, more) in zip(plain, leaning, strict=True):
        if more["purpose"] in ("durations-of-cases", "hours-and-weekdays"):
            assert size == same_size
            assert all(np.array_equal(one, other) for one, other in zip(features(raw), others(raw), strict=True))


def errors(prior: EventLog | None, epsilon: str, seeds: int) -> np.ndarray:
    real = durations_of(*original_of(OWN))
    pairs = gaps_of(*original_of(OWN))
    found = []
    for seed in range(seeds):
        cases, times = timed(prior, epsilon, seed)
        lasting, gaps = durations_of(cases, times), gaps_of(cases, times)
        often = [pair for pair in gaps if len(pairs.get(pair, ())) >= 30]
        found.append(
            [
                np.abs(np.quantile(np.log(lasting + 1), PLACES) - np.quantile(np.log(real + 1), PLACES)).mean(),
                np.median([abs(np.log(np.median(gaps[p] + 1) / np.median(pairs[p] + 1))) for p in often]),
            ]
        )
    return np.array(found).mean(axis=0)


PLACES = np.linspace(0.05, 0.95, 19)


@pytest.mark.slow
def test_a_right_prior_brings_times_nearer() -> None:
    plain, leaning = errors(None, "0.1", 6), errors(OTHERS, "0.1", 6)
    assert leaning[0] < 0.5 * plain[0]
    assert leaning[1] < 0.7 * plain[1]


@pytest.mark.slow
def test_a_wrong_prior_loses_its_weight_by_the_answers() -> None:
    plain, leaning = errors(None, "0.4", 6), errors(WRONG, "0.4", 6)
    assert leaning[0] < 1.2 * plain[0]
    said: list[Message] = []
    for prior in (WRONG, OTHERS):
        timed(prior, "0.4", 0, said.append)
    chances = [message.values["part"] for message in said if message.code == "times-lean-on-prior"]
    assert chances[0] < 0.05
    assert chances[1] > 0.9


def test_shares_lean_on_a_prior_as_far_as_the_answer_lets_them() -> None:
    rng = np.random.default_rng(4)
    truth = np.array([0.5, 0.3, 0.15, 0.05, *np.zeros(16)])
    other, deviation = truth[::-1].copy(), 0.03
    for prior, least, most in ((truth, 0.9, 1.0), (other, 0.0, 0.1), (np.roll(truth, 7), 0.0, 0.1)):
        noisy = truth + rng.normal(0, deviation, len(truth))
        found = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
        shares, chance = lean_on_prior(found, noisy, prior, deviation**2)
        assert shares.sum() == pytest.approx(1)
        assert least <= chance <= most
        if chance > 1 / 2:
            assert np.abs(shares - truth).sum() < 0.5 * np.abs(found - truth).sum()
        else:
            assert np.abs(shares - found).sum() < 0.05


def test_a_prior_that_is_nearly_right_is_corrected_by_the_answer() -> None:
    truth, prior = np.array([0.7, 0.2, 0.1, 0.0, 0.0, 0.0]), np.array([0.4, 0.4, 0.2, 0.0, 0.0, 0.0])
    shares, chance = lean_on_prior(truth, truth, prior, 0.01**2)
    assert chance > 0.9
    assert np.abs(shares - truth).sum() < 0.05
    assert shares[3:].max() < 1e-3


def test_a_prior_tells_the_hours_within_parts_of_the_day() -> None:
    """For few cases the prior fills hours within the four parts of the day."""
    log = log_of(*[[("a", 1_704_067_200 + 86_400 * i + 9 * 3_600 + 60)] for i in range(60)])
    found = []
    for prior in (None, PriorTimes([log], Domain())):
        curator = Curator(log.variants, log=log, randomness=noise.seeded(1))
        found.append(query_hours(Price(curator, Fraction(1, 4), prior=prior), 60).hours)
    assert found[0][9] < 1 / 6
    assert found[1][9] > 0.6


def test_a_prior_without_starts_of_events_tells_nothing_of_processing() -> None:
    made = veilog.release(
        draw_starts(OWN),
        "evolve",
        epsilon=2,
        activities=OWN.variants.labels,
        times=0.4,
        processing=True,
        prior=OTHERS,
        seed=1,
        ledger=False,
    )
    assert "times-lean-on-prior" in [remark.code for remark in made.remarks]
    assert "start_timestamp" in made.log.events.column_names

"""Prediction by n-gram and trees, checked by hand and on a simulated hospital."""

import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from refusals import refused

from veilog.errors import ParameterError
from veilog.experiments.experiment import Given
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures import Pair
from veilog.measures.use_cases import UseCaseOptions, judge, prediction
from veilog.measures.use_cases.prediction import next_activity, predicted
from veilog.measures.use_cases.sides import split

ASKED = UseCaseOptions()
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def n_gram_alone_where_quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(prediction, "available", lambda: False)


def timed(cases: list[list[tuple[str, float]]], **attributes: list[str | None]) -> EventLog:
    """A log of activities at hours, with attributes of its cases."""
    rows = [(case, name, hour) for case, events in enumerate(cases) for name, hour in events]
    times = [None if np.isnan(hour) else BEGIN + timedelta(hours=hour) for _, _, hour in rows]
    events = pa.table(
        {
            "case:index": pa.array([case for case, _, _ in rows], pa.int64()),
            "event:index": pa.array(range(len(rows)), pa.int64()),
            "concept:name": pa.array([name for _, name, _ in rows]).dictionary_encode(),
            "time:timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )
    names = pa.array([f"case {number}" for number in range(len(cases))])
    return EventLog(events, pa.table({"concept:name": names, **attributes}))


def by_hand(used: list[tuple[str, ...]], judged: list[tuple[str, ...]], order: int) -> float:
    """The accuracy of the n-gram in plain Python."""
    seen: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for case in used:
        row = ("^",) * order + (*case, "~")
        for place in range(order, len(row)):
            for back in range(order):
                seen[row[place - back : place]][row[place]] += 1
    right = total = 0
    for case in judged:
        row = ("^",) * order + (*case, "~")
        for place in range(order, len(row)):
            known = [
                counts
                for back in range(order)
                if sum((counts := seen[row[place - back : place]]).values()) >= (3 if back else 1)
            ]
            best = max(sorted(known[-1]), key=lambda name: known[-1][name])
            right += best == row[place]
            total += 1
    return right / total


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("order", [1, 2, 6])
def test_the_n_gram_predicts_as_plain_code_does(seed: int, order: int) -> None:
    rng = np.random.default_rng(seed)

    def cases(size: int) -> list[tuple[str, ...]]:
        return [tuple(rng.choice(list("abcd"), p=(0.5, 0.3, 0.15, 0.05), size=rng.integers(9))) for _ in range(size)]

    used, judged = cases(120), cases(60)
    found = next_activity(Variants.from_sequences(used), Variants.from_sequences(judged), order)
    assert found == pytest.approx(by_hand(used, judged, order))


def test_the_end_of_a_case_is_predicted_and_so_is_its_first_activity() -> None:
    log = Variants.from_dict({("a", "b"): 10})
    assert next_activity(log, Variants.from_dict({("a", "b"): 1})) == 1.0
    assert next_activity(log, Variants.from_dict({("a",): 1})) == 0.5
    assert next_activity(log, Variants.from_dict({(): 1})) == 0.0
    assert next_activity(log, Variants.from_dict({("a", "b", "x"): 1})) == 0.5


def test_the_majority_predictor_always_says_the_same() -> None:
    log = Variants.from_dict({("a", "a", "b"): 10})
    assert next_activity(log, log, 1) == 0.5
    assert next_activity(log, log) == 1.0


def test_two_observations_are_too_few_for_a_context() -> None:
    usual = {("a", "x"): 5, ("b", "y"): 9}
    judged = Variants.from_dict({("c", "z"): 1})
    rare, enough = (Variants.from_dict({**usual, ("c", "z"): seen}) for seen in (2, 3))
    # after c the end is what is most frequent of all; c itself is never predicted, and the end after z is
    assert next_activity(rare, judged) == pytest.approx(1 / 3)
    assert next_activity(enough, judged) == pytest.approx(2 / 3)


def test_the_end_state_is_that_of_the_case() -> None:
    log = Variants.from_dict({("a", "x"): 10, ("b", "c", "y"): 4, (): 2})
    # x after nothing and after a, y after b and after b c; y after nothing is not guessed
    assert predicted(log, log, ASKED)["end_state"] == pytest.approx((20 + 8) / (20 + 12))


def test_remaining_time_is_missed_by_hours() -> None:
    used = timed([[("a", 0), ("b", gap)] for gap in (1.0, 2.0, 6.0)])
    judged = timed([[("a", 10), ("b", 15)]])
    # after a the median of 1, 2 and 6 hours is 2 and 5 remain; after b nothing remains
    assert predicted(used, judged, ASKED)["remaining_time"] == pytest.approx(1.5)
    assert predicted(used, used, ASKED)["remaining_time"] == pytest.approx((1 + 0 + 4) / 6)
    # b has no time here: after a 2 hours are guessed and remain, after c the median of 0, 0, 0, 1, 2 and 6 is
    unknown = timed([[("a", 10), ("b", float("nan")), ("c", 12)]])
    assert predicted(used, unknown, ASKED)["remaining_time"] == 0.0


def test_without_times_the_rest_stands() -> None:
    log = timed([[("a", float("nan"))]] * 5)
    found = predicted(log, log, ASKED)
    assert found["remaining_time"] is None
    assert found["next_activity"] == 1.0
    assert predicted(log.variants, log.variants, ASKED)["remaining_time"] is None


def test_an_outcome_is_an_attribute_that_is_named() -> None:
    cases = [[("a", 0), ("b", 1)]] * 6 + [[("c", 0), ("b", 1)]] * 4
    log = timed(cases, outcome=["good"] * 6 + ["bad"] * 3 + [None])
    asked = UseCaseOptions(targets=("outcome",))
    # before the first event good is guessed; after a and after c it is known
    assert predicted(log, log, asked)["outcome"] == pytest.approx((6 + 6 + 3) / 18)
    assert predicted(timed(cases), log, asked).get("outcome") is None
    assert predicted(log.variants, log.variants, asked).get("outcome") is None
    with refused(ParameterError, "prediction-attribute-missing", attribute="outcome"):
        predicted(log, timed(cases), asked)
    many = timed([[("a", 0)]] * 60, outcome=[str(number) for number in range(60)])
    with refused(ParameterError, "prediction-outcomes-too-many", number=60, most_outcomes=50):
        predicted(many, many, asked)


def test_of_an_events_attribute_the_last_known_value_counts() -> None:
    log = timed([[("a", 0), ("b", 1), ("c", 2)]] * 4)
    values = pa.array(["early", "late", None] * 4)
    log = EventLog(log.events.append_column("state", values), log.cases)
    late = EventLog(log.events.drop(["state"]).append_column("state", pa.array(["late"] * 12)), log.cases)
    assert predicted(late, log, UseCaseOptions(targets=("state",)))["outcome"] == 1.0


def test_nothing_is_learnt_from_nothing() -> None:
    found = predicted(Variants.from_dict({}), Variants.from_dict({("a",): 2}), ASKED)
    assert found["next_activity"] == found["end_state"] == 0.0
    assert found.get("next_activity_trees", 0.0) == 0.0


@pytest.mark.slow
def test_trees_learn_what_an_n_gram_cannot_see() -> None:
    pytest.importorskip("sklearn")
    # how long a case still takes after b depends on the time so far and on nothing else
    rng = np.random.default_rng(1)
    gaps = rng.choice([1.0, 50.0], size=300)
    log = timed([[("a", 0), ("b", gap), ("c", gap * 3)] for gap in gaps])
    errors = predicted(log, log, ASKED)
    assert errors["remaining_time"] is not None
    assert errors["remaining_time_trees"] is not None
    assert errors["remaining_time_trees"] < 0.7 * errors["remaining_time"]


@pytest.mark.slow
def test_many_cases_of_a_variant_are_learnt_from_as_often() -> None:
    pytest.importorskip("sklearn")
    log = Variants.from_dict({("a", "b"): 300, ("c", "d"): 200})
    found = predicted(log, log, ASKED)
    assert found["next_activity_trees"] == pytest.approx(found["next_activity"])
    assert found["end_state_trees"] == pytest.approx(found["end_state"])


@pytest.mark.slow
def test_without_scikit_learn_the_n_gram_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    prediction.available.cache_clear()
    try:
        log = Variants.from_dict({("a", "b"): 40, ("c",): 20})
        found = judge(Pair(log, log), ["prediction"])["prediction"]
        assert found.grade == "good"
        assert found.aspects["next_activity_trees"].value is None
        assert found.aspects["next_activity"].value is not None
    finally:
        prediction.available.cache_clear()


@pytest.mark.nightly
def test_logs_are_judged_alike_whatever_the_order_of_their_cases() -> None:
    log = hospital(150, seed=1)
    mixed = log.only(np.random.default_rng(1).permutation(log.number_of_cases))
    first, second = (judge(Pair(one, log), ["prediction"])["prediction"] for one in (log, mixed))
    assert first.to_json() == second.to_json()
    assert first.aspects["remaining_time"].share is not None
    assert first.aspects["outcome"].value is None


def test_a_release_of_a_part_knows_nothing_of_the_others() -> None:
    log = timed([[(str(number), 0)] for number in range(10)])
    seen, unseen = Given(None, part=log).split(0.7, 3)
    assert seen.log.number_of_cases == 7
    assert unseen.number_of_cases == 3
    assert not set(seen.log.variants.labels) & set(unseen.variants.labels)
    assert set(Given(None, part=log).split(0.7, 4)[1].variants.labels) != set(unseen.variants.labels)


@pytest.mark.nightly
def test_real_logs_are_predicted_as_they_were_measured(logs: Path) -> None:
    measured = {"sepsis": (0.640, 0.204), "receipt": (0.876, 0.144), "bpic2013_incidents": (0.735, 0.550)}
    for name, (real, majority) in measured.items():
        log = files.read(logs / f"{name}.xes.gz").variants
        shares = []
        for seed in range(3):
            used, judged = split(log, 0.7, seed)
            shares.append((next_activity(used, judged), next_activity(used, judged, 1)))
        assert np.mean(shares, axis=0) == pytest.approx((real, majority), abs=0.01), name

"""Starts of released events: durations, overlaps, unchanged parts and the charge."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import openly
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from time_tools import HOSPITAL, YEAR, original_of, processing_of

import veilog
from veilog._language import spoken
from veilog.errors import ParameterError
from veilog.logs.eventlog import START, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import draw_starts
from veilog.logs.variants import Sequences
from veilog.messages import Message
from veilog.methods._events.assemble import Wanted, released_cases
from veilog.methods._events.extras import enrich
from veilog.methods._events.times import processing
from veilog.methods._events.times.processing import add_starts
from veilog.methods._events.times.timestamps import released_times
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.report.words import localise

OVERLAPPING = ("Blood test", "ECG")
LOG = draw_starts(HOSPITAL, overlapping=OVERLAPPING)


class Worked(NamedTuple):
    """The log's own variants (not private) with released times, and these with starts."""

    cases: Sequences
    before: np.ndarray
    ended: np.ndarray
    begun: np.ndarray
    curator: Curator

    @property
    def log(self) -> EventLog:
        labels = pa.array(self.cases.labels)
        columns = {
            "concept:name": labels.take(pa.array(self.cases.codes)),
            "time:timestamp": pa.array(self.ended).cast(TIMESTAMP_TYPE),
            START: pa.array(self.begun).cast(TIMESTAMP_TYPE),
        }
        owner = np.repeat(np.arange(len(self.cases)), self.cases.lengths)
        index = {"case:index": owner, "event:index": np.arange(len(owner))}
        names = pa.table({"concept:name": [str(i) for i in range(len(self.cases))]})
        return EventLog(pa.table({**index, **columns}), names)


def worked(log: EventLog, epsilon: str, seed: int = 1, delta: str = "0") -> Worked:
    source = noise.seeded(seed)
    cases = released_cases(log.variants, noise.generator(source))
    curator = Curator(log.variants, log=log, randomness=source)
    times = released_times(curator, Fraction(200), cases, window=YEAR)
    ended, begun = add_starts(curator, Fraction(epsilon), Fraction(delta), cases, times)
    return Worked(cases.rows(0, len(cases)), times, ended, begun, curator)


@pytest.fixture(scope="module")
def exact() -> Worked:
    return worked(LOG, "200")


# How long events take, and what overlaps


@pytest.mark.nightly
def test_without_noise_activities_take_as_long_as_they_do(exact: Worked) -> None:
    real, made = processing_of(LOG)[0], processing_of(exact.log)[0]
    often = [label for label, took in real.items() if len(took) >= 200]
    assert len(often) >= 10
    for label in often:
        assert np.median(made[label]) == pytest.approx(np.median(real[label]), rel=0.2), label
        assert made[label].mean() == pytest.approx(real[label].mean(), rel=0.25), label


@pytest.mark.nightly
def test_without_noise_as_many_events_begin_before_the_one_before_ended(exact: Worked) -> None:
    found = []
    for log in (LOG, exact.log):
        cases, _ = original_of(log)
        over = processing_of(log)[1]
        found.append({label: over[cases.codes == code].mean() for code, label in enumerate(cases.labels)})
    real, made = found
    assert all(real[label] > 0.2 for label in OVERLAPPING)
    for label, share in real.items():
        assert made[label] == pytest.approx(share, abs=0.06), label


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("epsilon", "delta"), [("0.01", "0"), ("0.3", "0"), ("0.3", "1e-4"), ("200", "0")])
def test_what_holds_whatever_the_noise(epsilon: str, delta: str) -> None:
    made = worked(LOG, epsilon, seed=3, delta=delta)
    whole = made.cases.offsets[:-1][made.cases.lengths > 0]
    last = made.cases.offsets[1:][made.cases.lengths > 0] - 1
    assert np.array_equal(made.ended[whole], made.before[whole]), "a case begins and ends when it did"
    assert np.array_equal(made.ended[last], made.before[last])
    inner = np.ones(len(made.ended), dtype=bool)
    inner[whole] = False
    assert (np.diff(made.ended)[inner[1:]] >= 0).all(), "in order"
    assert (made.begun <= made.ended).all()
    assert (made.begun >= np.repeat(made.begun[whole], made.cases.lengths[made.cases.lengths > 0])).all()
    assert not ((made.ended - made.begun) % 1_000_000).any()
    assert sum((c.epsilon for c in made.curator.charges), Fraction(0)) == 200 + Fraction(epsilon)
    assert sum((c.delta for c in made.curator.charges), Fraction(0)) == Fraction(delta)


# Events without a start, and starts without information


@pytest.mark.slow
def test_starts_that_are_missing_or_after_the_end_tell_nothing() -> None:
    place = LOG.events.column_names.index(START)
    late = pa.array(LOG.events.column("time:timestamp").cast(pa.int64()).to_numpy() + 10**9).cast(TIMESTAMP_TYPE)
    missing = pa.array([None] * len(LOG.events), TIMESTAMP_TYPE)
    made = [worked(replace(LOG, events=LOG.events.set_column(place, START, c)), "1", 7) for c in (late, missing)]
    assert np.array_equal(made[0].begun, made[1].begun)


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize(("epsilon", "rough"), [("0.1", True), ("400", False)])
def test_a_release_says_where_noise_hides_how_long_events_take(epsilon: str, rough: bool) -> None:
    said: list[str] = []
    source = noise.seeded(1)
    cases = released_cases(LOG.variants, noise.generator(source))
    curator = Curator(LOG.variants, log=LOG, randomness=source)
    times = np.arange(cases.events) * 60_000_000
    add_starts(curator, Fraction(epsilon), Fraction(0), cases, times, said.append)
    assert ("durations-of-events-rough" in [message.code for message in said]) == rough
    with spoken("nl"):
        assert all(localise(text) != text for text in said)


# What it costs, and what is refused


@pytest.mark.slow
def test_starts_cost_a_part_of_the_share_of_times() -> None:
    release = openly.release(LOG, "laplace", epsilon=1, times="0.4", window=YEAR, processing=True, depth=3)
    assert (release.guarantee.status, release.guarantee.epsilon) == ("proven", 1.0)
    assert [(o.target, o.epsilon) for o in release.operations] == [
        ("control flow (variants)", 0.6),
        ("timestamps and start_timestamp", 0.4),
    ]
    asked = {str(c.purpose).partition(" (")[0]: c.epsilon for c in release.guarantee.charges[-2:]}
    assert asked == {
        str(Message("how-long-events-take-by-activity")): Fraction("0.12") * 4 / 5,
        str(Message("events-overlapping")): Fraction("0.12") / 5,
    }
    assert [c.code for c in release.guarantee.conditions if "column" in c.code] == ["columns-from-log"]
    assert release.log.events.column(START).type == TIMESTAMP_TYPE


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "event-starts-without-times"),
        ({"times": "0.3", "attributes": [START]}, "event-start-asked-twice"),
        ({"times": "0.3", "as_published": True}, "extras-not-certified"),
    ],
)
def test_what_is_wrong_is_refused_without_data(more: dict[str, Any], said: str) -> None:
    with refused(ParameterError, said):
        veilog.plan("laplace", **{"epsilon": 1, "processing": True, **more})


@pytest.mark.parametrize("column", [None, pa.array(["10:00"] * len(LOG.events))])
def test_what_holds_no_times_of_events_is_refused_before_anything_is_asked(column: pa.Array | None) -> None:
    log = HOSPITAL if column is None else replace(HOSPITAL, events=HOSPITAL.events.append_column(START, column))
    curator = Curator(log.variants, log=log)
    with refused(ParameterError, "event-starts-missing"):
        enrich(curator, Wanted.of("0.4", None, None, None, True), Fraction(1), Fraction(0), Fraction(0), never, never)
    assert not curator.charges


def never(*given: Any) -> Any:
    raise AssertionError


# The steps


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_exchanging_is_among_events_of_an_activity_and_towards_what_is_wanted(
    seed: int, events: int, codes: int
) -> None:
    rng = np.random.default_rng(seed)
    code = rng.integers(0, codes, events)
    seconds, gaps = rng.exponential(1, events), rng.exponential(1, events)
    wanted = np.floor(rng.random(codes) * np.bincount(code, minlength=codes)).astype(np.int64)
    found = processing._exchange_seconds(seconds, gaps, code, wanted, rng)
    for one in range(codes):
        ours = code == one
        assert np.array_equal(np.sort(found[ours]), np.sort(seconds[ours]))
        before, after = (int((took > gaps)[ours].sum()) - wanted[one] for took in (seconds, found))
        assert abs(after) <= max(abs(before), 1)


@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_room_is_made_of_waiting_and_the_duration_of_a_case_stays(seed: int, events: int, cases: int) -> None:
    rng = np.random.default_rng(seed)
    owner = np.sort(rng.integers(0, cases, events))
    seconds, gaps = rng.exponential(1, events), rng.exponential(1, events)
    too_long = (seconds > gaps) & (rng.random(events) < 0.7)
    longer, took = processing._make_room(seconds, gaps, too_long, owner, cases)
    assert np.bincount(owner, longer, minlength=cases) == pytest.approx(np.zeros(cases), abs=1e-9)
    assert (gaps + longer >= np.minimum(took, gaps + longer) - 1e-9).all()
    assert (took[too_long] <= (gaps + longer)[too_long] + 1e-9).all(), "they fit now"
    assert np.array_equal(took[~too_long], seconds[~too_long])
    follow = seconds <= gaps
    assert (took[follow] <= (gaps + longer)[follow] + 1e-9).all(), "and what followed still does"

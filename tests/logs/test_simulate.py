"""Simulated logs are equal for equal seeds, and the hospital looks like one."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, TIMESTAMP
from veilog.logs.synthetic.hospital import ACTIVITIES, hospital, variants_only, wide


def test_the_same_seed_gives_the_same_log_and_another_seed_another() -> None:
    first, again, other = hospital(300, 5), hospital(300, 5), hospital(300, 6)
    assert first.events.equals(again.events) and first.cases.equals(again.cases)
    assert not first.events.equals(other.events)


def test_every_activity_happens_and_the_mix_has_a_head_and_a_tail() -> None:
    log = hospital(5000, 1)
    variants = log.variants
    assert variants.labels == tuple(sorted(ACTIVITIES))
    assert 10 <= len(ACTIVITIES) <= 16
    assert variants.counts.max() > 0.05 * variants.cases
    assert (variants.counts == 1).sum() > 0.1 * variants.cases


def test_events_are_grouped_by_case_and_in_order_of_time() -> None:
    log = hospital(500, 2)
    times = log.events[TIMESTAMP].cast(pa.int64()).to_numpy()
    starts = log.offsets[1:-1]
    backwards = np.flatnonzero(np.diff(times) < 0) + 1
    assert set(backwards.tolist()) <= set(starts.tolist())
    assert (np.diff(log.offsets) > 0).all()


def test_people_come_by_day_more_than_by_night_and_rarely_die() -> None:
    log = hospital(3000, 3)
    arrivals = log.events[TIMESTAMP].take(pa.array(log.offsets[:-1]))
    hours = pc.hour(arrivals).to_numpy()
    assert ((hours >= 8) & (hours < 20)).mean() > 0.6
    assert (hours < 6).mean() > 0.05
    ends = log.events[ACTIVITY].combine_chunks().cast(pa.string()).take(pa.array(log.offsets[1:] - 1))
    deaths = sum(end == "Death" for end in ends.to_pylist())
    assert 0 < deaths < 0.03 * 3000


def test_nothing_happens_after_death() -> None:
    variants = hospital(5000, 4).variants
    for sequence in variants.sequences:
        assert "Death" not in sequence[:-1]


@pytest.mark.parametrize("cases", [0, 1])
def test_tiny_hospitals_exist(cases: int) -> None:
    log = hospital(cases, 0)
    assert (log.cases.num_rows, log.variants.cases) == (cases, cases)


def test_attributes_have_their_types() -> None:
    log = hospital(50, 0)
    assert log.events.schema.field("cost").type == pa.int64()
    assert log.events.schema.field("leucocytes").type == pa.float64()
    blood = pc.equal(log.events[ACTIVITY].cast(pa.string()), "Blood test")
    assert pc.is_valid(log.events["leucocytes"]).equals(blood)


def test_wide_logs_have_the_size_asked_for() -> None:
    log = wide(2000, 50, 12, seed=1)
    assert log.statistics.length_mean == pytest.approx(12, rel=0.05)
    assert log.statistics.activities == 50
    assert log.statistics.length_min >= 1
    assert log.variants == variants_only(2000, 50, 12, seed=1)
    assert log.variants != variants_only(2000, 50, 12, seed=2)


@pytest.mark.parametrize(
    "build", [lambda: hospital(-1), lambda: wide(-1, 1, 1), lambda: wide(1, 0, 1), lambda: wide(1, 1, float("nan"))]
)
def test_impossible_sizes_are_refused(build) -> None:
    with pytest.raises(ParameterError):
        build()

"""Facts that are public by the owner's word are those of the whole log.

The kernel may cut cases to other facts, leave them out with other subsets, or draw them from a person's. What is left
can then change by a single case although the facts do not.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction

import pyarrow as pa
import pytest

from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog
from veilog.logs.variants import Variants
from veilog.privacy.curator import Curator
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Domain
from veilog.privacy.mechanisms import noise
from veilog.privacy.partition import Partition
from veilog.privacy.unit import ONE_CASE, Unit, bound_units

_DAY = 86_400_000_000


def log_of(cases: Sequence[tuple[str, Sequence[tuple[str, int]]]]) -> EventLog:
    """Return a log of cases of persons, each with its activities and their days."""
    owner = [i for i, (_, events) in enumerate(cases) for _ in events]
    days = [day for _, events in cases for _, day in events]
    events = pa.table(
        {
            "case:index": pa.array(owner, pa.int64()),
            "event:index": pa.array(range(len(owner)), pa.int64()),
            "concept:name": pa.array([name for _, events in cases for name, _ in events]).dictionary_encode(),
            "time:timestamp": pa.array([day * _DAY for day in days], TIMESTAMP_TYPE),
        }
    )
    names = pa.array([f"case {i}" for i in range(len(cases))])
    return EventLog(events, pa.table({"concept:name": names, "Patient": pa.array([who for who, _ in cases])}))


def test_the_longest_case_is_that_of_the_log_where_activities_are_left_out() -> None:
    one: dict[Sequence[str], int] = {("a", "b"): 400, ("rare",) * 30: 1}
    other = {**one, ("a", "b") * 6: 1}
    for counts in (one, other):
        curator = Curator(Variants.from_dict(counts), domain=Domain(("a", "b"), FROM_LOG))
        assert curator.max_length == 30


def test_the_longest_case_is_that_of_the_log_where_activities_are_found() -> None:
    one: dict[Sequence[str], int] = {("a", "b"): 400, tuple(f"rare {i}" for i in range(30)): 1}
    for counts in (one, {**one, ("a", "b") * 6: 1}):
        curator = Curator(Variants.from_dict(counts), domain=Domain(PRIVATELY, FROM_LOG), randomness=noise.seeded(1))
        assert curator.find_activities(Fraction(8), Fraction(1, 100)) == ("a", "b")
        assert curator.max_length == 30
        assert int(curator._variants.lengths.max()) < 30


def test_the_activities_are_those_of_the_log_where_cases_are_cut() -> None:
    one: dict[Sequence[str], int] = {("a", "b", "a", "b", "a", "z"): 400}
    for counts in (one, {**one, ("a", "z"): 1}):
        curator = Curator(Variants.from_dict(counts), domain=Domain(FROM_LOG, 5))
        assert curator.activities == ("a", "b", "z")


@pytest.mark.parametrize("activities", [("a",), PRIVATELY])
def test_the_window_is_that_of_the_log_where_events_are_left_out(activities: tuple[str, ...] | str) -> None:
    usual = [("", [("a", 10)])] * 300
    outermost = [("", [("rare", 3), ("a", 4)]), ("", [("rarer", 20)])]
    one = log_of([*usual, *outermost])
    for log in (one, log_of([*usual, *outermost, ("", [("a", 15)])])):
        curator = Curator(log.variants, log=log, domain=Domain.of(activities), randomness=noise.seeded(1))
        if activities == PRIVATELY:
            assert curator.find_activities(Fraction(8), Fraction(1, 100)) == ("a",)
        begin = datetime.datetime(1970, 1, 4, tzinfo=datetime.UTC)
        assert curator.events.window == (begin, begin + datetime.timedelta(days=18))


def test_facts_are_those_of_the_log_where_cases_of_a_person_are_drawn() -> None:
    """A fact does not depend on the draw of one of a person's two different cases."""
    log = log_of([("p", [("a", 10)]), ("p", [("b", 1), *[("a", 2)] * 6]), ("q", [("a", 10)])])
    drawn = set()
    for seed in range(20):
        held = bound_units(log, Unit.of("Patient", 1), noise.seeded(seed))
        curator = Curator(held, domain=Domain(FROM_LOG, FROM_LOG))
        drawn.add(curator._variants.labels)
        assert curator.activities == ("a", "b") and curator.max_length == 7
        assert curator.events.window[0] == datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
    assert drawn == {("a",), ("a", "b")}


@pytest.mark.parametrize(
    ("subset", "days"),
    [
        ("Patient=p", (10, 41)),
        ("Patient=nobody", (10, 41)),
        ("month=1970-01", (10, 31)),  # days of a month are public: its cases start on no others
        ("month=1970-02", (31, 41)),
        ("month=1970-03", (59, 90)),
        ("month=none", (10, 41)),
        ("began=1970-01-21..1970-01-25", (20, 24)),
    ],
)
def test_facts_are_those_of_the_log_where_a_subset_is_looked_at(subset: str, days: tuple[int, int]) -> None:
    one = [("p", [("a", 10)])] * 5 + [("p", [("z", 40)] * 7)]
    for cases in (one, [*one, ("q", [("z", 11), ("a", 12)])], [*one, ("p", [("z", 21), ("a", 22)])]):
        held = bound_units(log_of(cases), ONE_CASE, noise.seeded(1), Partition.of(subset))
        curator = Curator(held, domain=Domain(FROM_LOG, FROM_LOG))
        assert curator.activities == ("a", "z") and curator.max_length == 7
        begin = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        assert curator.events.window == tuple(begin + datetime.timedelta(days=day) for day in days)


def test_of_a_declared_window_a_subset_of_time_has_what_it_shares_with_it() -> None:
    def day(number: int) -> datetime.datetime:
        return datetime.datetime(1970, 1, 1, 8, tzinfo=datetime.UTC) + datetime.timedelta(days=number)

    midnight = datetime.timedelta(hours=8)
    for subset, window in (
        ("Patient=p", (day(5), day(90))),
        ("month=1970-02", (day(31) - midnight, day(59) - midnight)),
        ("began=1970-01-03..1970-01-20", (day(5), day(19) - midnight)),
        ("began=1971-01-01..1971-01-02", (day(365) - midnight, day(366) - midnight)),
    ):
        log = log_of([("p", [("a", 10)])])
        domain = Domain(window=(day(5), day(90)))
        curator = Curator(bound_units(log, ONE_CASE, noise.seeded(1), Partition.of(subset)), domain=domain)
        assert curator.events.window == window, subset

"""Attributes of a release: exactly their share of the budget, from public domains only, and like the original's."""

import datetime
import itertools
from collections import Counter
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import openly
import pyarrow as pa
import pytest
from charged import failure
from hypothesis import given
from hypothesis import strategies as st

import veilog
from veilog import Domain
from veilog.errors import ParameterError
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog
from veilog.logs.made_up import simulate
from veilog.logs.variants import Repeated, Sequences
from veilog.methods._events import orders
from veilog.methods._events.attributes.variables import of_the_times
from veilog.privacy.cases import UNKNOWN_TIME, Cases
from veilog.privacy.events import EventQuestions

HOSPITAL = simulate.hospital(1500, seed=5)
AGES = ("0-17", "18-39", "40-59", "60-79", "80+")
DECLARED = Domain(attributes={"age group": AGES, "urgency": (1, 5), "cost": (0, 3000)})


def log_of(cases: list[tuple[dict[str, Any], list[dict[str, Any]]]], dated: bool = False) -> EventLog:
    """Cases of (attributes, events); an event has an ``activity``, the other keys are attributes."""
    flat = [(i, event) for i, (_, events) in enumerate(cases) for event in events]
    names = sorted({key for _, event in flat for key in event} - {"activity"})
    case_names = sorted({key for attributes, _ in cases for key in attributes})
    events = {
        "case:index": pa.array([i for i, _ in flat], pa.int64()),
        "event:index": pa.array(range(len(flat)), pa.int64()),
        "concept:name": pa.array([event["activity"] for _, event in flat], pa.string()),
        "time:timestamp": pa.array([None] * len(flat), TIMESTAMP_TYPE),
    }
    events |= {name: pa.array([event.get(name) for _, event in flat]) for name in names}
    if dated:
        events["due"] = pa.array([0] * len(flat), pa.int64()).cast(TIMESTAMP_TYPE)
    table = {"concept:name": pa.array([str(i) for i in range(len(cases))])}
    table |= {name: pa.array([attributes.get(name) for attributes, _ in cases]) for name in case_names}
    return EventLog(pa.table(events), pa.table(table))


COLOURED = log_of(
    [
        (
            {"kind": "new" if i % 3 else "old", "ticket": f"T-{i}"},
            [
                {"activity": "ask", "colour": "red" if i % 2 else "blue", "fast": bool(i % 5), "price": 1.5},
                {"activity": "answer", "colour": "green", "fast": None, "price": None},
            ],
        )
        for i in range(900)
    ]
)


def released(log: EventLog = COLOURED, **changes: Any) -> veilog.Release:
    arguments: dict[str, Any] = {"epsilon": 4, "delta": "1e-3", "attributes_share": "0.5", **changes}
    return openly.release(log, "travas", **arguments)


# With times

HOUR = 3_600_000_000


def slow_and_fast(cases: int, seed: int) -> EventLog:
    """One path: cases that are slow last 20 hours, the others 2; in summer all are of the ward north."""
    rng = np.random.default_rng(seed)
    slow = rng.random(cases) < 0.4
    begin = 1_704_067_200_000_000 + (rng.random(cases) * 360 * 24 * HOUR).astype(np.int64)
    north = (begin - begin.min() > 150 * 24 * HOUR) & (begin - begin.min() < 240 * 24 * HOUR)
    gap = (np.where(slow, 20, 2) / 2 * HOUR * rng.lognormal(0, 0.2, cases)).astype(np.int64)
    events = {
        "case:index": np.repeat(np.arange(cases), 3),
        "event:index": np.arange(3 * cases),
        "concept:name": ["in", "test", "out"] * cases,
        "time:timestamp": pa.array((begin[:, None] + gap[:, None] * np.arange(3)).ravel()).cast(TIMESTAMP_TYPE),
    }
    table = {
        "concept:name": [str(i) for i in range(cases)],
        "slow": ["yes" if one else "no" for one in slow],
        "ward": ["north" if one else "south" for one in north],
    }
    return EventLog(pa.table(events), pa.table(table))


def told(log: EventLog) -> tuple[dict[str, float], float]:
    """Mean hours by ``slow``, and the share of the cases in the middle of the year that are of the ward north."""
    frame = log.to_pandas().groupby("case:concept:name")
    times = frame["time:timestamp"]
    hours = (times.max() - times.min()).dt.total_seconds() / 3600
    summer = times.min().dt.day_of_year.between(165, 225)
    by = hours.groupby(frame["case:slow"].first()).mean().to_dict()
    return by, float((frame["case:ward"].first()[summer] == "north").mean())


@pytest.mark.parametrize("window", [None, "2024-01-01..2025-01-01"])
def test_attributes_go_with_how_long_cases_last_and_when_they_start(window: str | None) -> None:
    """At this budget noise is no matter. By the path alone both kinds last 9 hours, and a quarter is of the ward."""
    log = slow_and_fast(2_000, seed=1)
    domain = Domain(attributes={"slow": ("yes", "no"), "ward": ("north", "south")})
    made = openly.release(
        log, "evolve", epsilon=8, times="0.3", attributes=["slow", "ward"], domain=domain, window=window
    )
    hours, north = told(made.log)
    assert hours["yes"] > 15 and hours["no"] < 6
    assert any("by duration" in remark for remark in made.remarks)
    if window is not None:
        assert north > 0.4 and any("by start" in remark for remark in made.remarks)
    else:
        assert not any("by start" in remark for remark in made.remarks), "the year is made up"


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 50)), max_size=4), min_size=1, max_size=6), st.data())
def test_the_part_of_time_of_a_case_is_its_own(times: list[list[int | None]], data: st.DataObject) -> None:
    """With another case it is the same, so that a case adds 1 to one cell; and by hand."""
    rows = Repeated(Sequences(("a",), np.zeros(12, dtype=np.int32), np.arange(13)), np.arange(12))
    variables = of_the_times(rows, np.arange(12) * 10, 4, calendar=True)
    assert [one.name for one in variables] == ["start"], "cases of one event last no time"
    edges = [30, 60, 90]

    def block(cases: list[list[int | None]]) -> Cases:
        flat = [UNKNOWN_TIME if at is None else at for case in cases for at in case]
        offsets = np.cumsum([0, *map(len, cases)])
        return Cases(np.zeros(len(flat), dtype=np.int64), np.array(flat, dtype=np.int64), offsets, {})

    found = variables[0].of_block(block(times)).tolist()
    known = [[at for at in case if at is not None] for case in times]
    assert found == [sum(min(case) >= edge for edge in edges) if case else 4 for case in known]
    i = data.draw(st.integers(0, len(times) - 1))
    assert variables[0].of_block(block([times[i]])).tolist() == [found[i]]


# Budget and sensitivity


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [["kind"], ["colour", "kind"], ["colour", "fast", "kind"]])
@pytest.mark.parametrize(("times", "share"), [(None, "0.25"), ("0.3", "0.333"), ("0.1", "0.8")])
def test_attributes_cost_exactly_their_share(attributes: list[str], times: str | None, share: str) -> None:
    for domain in (Domain(), Domain(attributes={name: ("a", "b") for name in attributes if name != "fast"})):
        release = released(epsilon="0.7", attributes=attributes, attributes_share=share, times=times, domain=domain)
        charges = release.guarantee.charges
        assert sum((c.epsilon for c in charges), Fraction(0)) == Fraction("0.7")
        assert Fraction("3e-4") < sum((c.delta for c in charges), Fraction(0)) <= Fraction("1e-3")
        assert (release.guarantee.status, release.guarantee.epsilon, release.guarantee.delta) == ("proven", 0.7, 1e-3)


def test_each_operation_says_what_it_cost() -> None:
    release = released(attributes=["kind"], times="0.25")
    assert [o.target for o in release.operations] == ["control flow (variants)", "timestamps", "attributes: kind"]
    assert [o.epsilon for o in release.operations] == [1.0, 1.0, 2.0]
    flow, times, values = (o.delta for o in release.operations)
    assert 2e-4 < flow < 8e-4 and times == 0, "cases have so few gaps that Laplace noise is narrower"
    assert flow + values == pytest.approx(1e-3)
    children = release.log.metadata.attributes[0].children
    assert [c.key for c in children if c.children] == ["privacy:operation1", "privacy:operation2", "privacy:operation3"]


@pytest.mark.slow
@pytest.mark.parametrize(("share", "to_flow"), [(0.2, "9/20000"), (0, "0")])
def test_evolve_splits_a_delta_with_attributes_exactly(share: float, to_flow: str) -> None:
    more: dict[str, Any] = {"times": "0.1", "attributes": ["kind"], "attributes_share": "0.3"}
    release = openly.release(COLOURED, "evolve", epsilon="0.7", delta="1e-3", real_share=share, **more)
    charges = release.guarantee.charges
    assert sum((c.epsilon for c in charges), Fraction(0)) == Fraction("0.7")
    assert Fraction("3e-4") < sum((c.delta for c in charges), Fraction(0)) <= Fraction("1e-3")
    flow, times, values = (o.delta for o in release.operations)
    assert times >= 1e-4 and flow + times + values == pytest.approx(1e-3) and (flow > 0) == (share > 0)
    real = [c for c in charges if c.purpose == "frequent real variants"]
    part = Fraction("0.7") * Fraction("0.6") / 5
    assert [(c.epsilon, c.delta) for c in real] == ([(part, failure(part, to_flow))] if share else [])


def test_a_purely_private_method_takes_a_delta_for_values_only() -> None:
    release = openly.release(COLOURED, "df-laplace", epsilon=2, delta="1e-4", attributes=["kind"])
    assert (release.guarantee.epsilon, release.guarantee.delta) == (2.0, 1e-4)
    assert [o.delta for o in release.operations] == [0.0, 1e-4]
    declared = Domain(attributes={"kind": ("new", "old")})
    pure = openly.release(COLOURED, "df-laplace", epsilon=2, attributes=["kind"], domain=declared)
    assert (pure.guarantee.epsilon, pure.guarantee.delta) == (2.0, 0.0)
    with pytest.raises(ParameterError, match="needs no delta"):
        openly.release(COLOURED, "df-laplace", epsilon=2, delta="1e-4", attributes=["kind"], domain=declared)


# What comes out


def test_released_values_are_in_the_declared_domain_and_distributed_like_the_original() -> None:
    release = openly.release(
        HOSPITAL,
        "travas",
        epsilon=12,
        delta="0.1",
        attributes=["age group", "urgency", "cost"],
        attributes_share="0.75",
        domain=DECLARED,
        seed=1,
    )
    log = release.log
    assert [c.code for c in release.guarantee.conditions] == ["columns-from-log"]
    assert log.cases.schema.field("urgency").type == pa.int64()
    ages, urgencies = (log.cases.column(name).to_pylist() for name in ("age group", "urgency"))
    assert set(ages) <= {*AGES, None}
    assert set(urgencies) <= {1, 2, 3, 4, 5, None}
    real = Counter(HOSPITAL.cases.column("age group").to_pylist())
    for age in AGES:
        assert Counter(ages)[age] / len(ages) == pytest.approx(real[age] / 1500, abs=0.1)
    cost = np.array([c for c in log.events.column("cost").to_pylist() if c is not None], dtype=float)
    assert 0 <= cost.min() <= cost.max() <= 3001


def test_event_attributes_follow_their_activity() -> None:
    log = released(attributes=["colour", "fast"], epsilon=20, seed=1).log
    rows = list(zip(*(log.events.column(n).to_pylist() for n in ("concept:name", "colour", "fast")), strict=True))
    ask, answer = ([r for r in rows if r[0] == name] for name in ("ask", "answer"))
    assert {c for _, c, _ in answer if c} == {"green"}
    assert np.mean([c == "red" for _, c, _ in ask]) == pytest.approx(0.5, abs=0.1)
    assert np.mean([f is True for *_, f in ask]) == pytest.approx(0.8, abs=0.1)
    assert np.mean([f is None for *_, f in answer]) > 0.95
    assert log.events.schema.field("fast").type == pa.bool_()


def test_a_value_outside_the_domain_is_released_as_none() -> None:
    log = released(attributes=["colour"], epsilon=20, domain=Domain(attributes={"colour": ("red",)}), seed=1).log
    assert set(log.events.column("colour").to_pylist()) == {"red", None}


def test_numbers_beyond_a_range_count_at_its_ends() -> None:
    log = released(attributes=["price"], epsilon=20, domain=Domain(attributes={"price": (5, 6)}), seed=1).log
    prices = [p for p in log.events.column("price").to_pylist() if p is not None]
    assert np.mean([5 <= p <= 5.0625 for p in prices]) > 0.9


def test_a_whole_number_that_no_float_holds_stops_no_release() -> None:
    cases = [({"price": 5}, [{"activity": "a"}])] * 300
    for huge in ((1 << 53) + 1, -(1 << 63) + 1, (1 << 63) - 1):
        domain = Domain(attributes={"price": (5, 6)})
        log = released(log_of([*cases, ({"price": huge}, [{"activity": "a"}])]), attributes=["price"], epsilon=20,
                       domain=domain, seed=1).log  # fmt: skip
        assert log.cases.column("price").null_count < 300


def test_a_rare_value_that_is_not_declared_stays_unknown() -> None:
    cases = [({"kind": "common"}, [{"activity": "a"}])] * 400 + [({"kind": "secret"}, [{"activity": "a"}])]
    for seed in range(10):
        log = released(log_of(cases), attributes=["kind"], delta="1e-6", seed=seed).log
        assert set(log.cases.column("kind").to_pylist()) <= {"common", "other", None}


def test_values_that_were_not_found_are_released_as_other() -> None:
    cases = [({"kind": "common" if i % 2 else f"rare {i // 8}"}, [{"activity": "a"}]) for i in range(800)]
    found = Counter(
        released(log_of(cases), attributes=["kind"], epsilon=2, delta="1e-6", seed=1)
        .log.cases.column("kind")
        .to_pylist()
    )
    assert set(found) <= {"common", "other", None}
    assert found["other"] / sum(found.values()) == pytest.approx(0.5, abs=0.1)


def test_an_attribute_without_frequent_values_is_left_out_and_its_budget_used() -> None:
    log = log_of([({"kind": f"k{i // 3}"}, [{"activity": "a"}]) for i in range(600)])
    release = released(log, attributes=["kind"], epsilon=1, delta="1e-6")
    assert release.log.cases.column_names == ["concept:name"]
    assert any("left out" in remark for remark in release.remarks)
    assert sum((c.epsilon for c in release.guarantee.charges), Fraction(0)) == 1


def test_a_seed_repeats_attributes() -> None:
    first, second = (released(attributes=["kind", "colour"], seed=4).log for _ in range(2))
    assert first.events.equals(second.events)
    assert first.cases.equals(second.cases)


@pytest.mark.parametrize("suffix", [".xes", ".parquet"])
def test_a_saved_release_keeps_its_attributes(tmp_path: Any, suffix: str) -> None:
    release = released(attributes=["kind", "colour", "fast"], epsilon=20)
    release.save(tmp_path / f"out{suffix}")
    again = veilog.read(tmp_path / f"out{suffix}")
    for name in ("colour", "fast"):
        assert again.events.column(name).to_pylist() == release.log.events.column(name).to_pylist()
    assert again.cases.column("kind").to_pylist() == release.log.cases.column("kind").to_pylist()


# Refusals


@pytest.mark.parametrize(
    "name", ["patient_id", "CustomerName", "e-mail", "Comment", "note", "home address", "case:phone", "userID", "id"]
)
def test_identifiers_and_free_text_are_refused_by_name(name: str) -> None:
    log = log_of([({name.removeprefix("case:"): "x"}, [{"activity": "a"}])] * 50)
    with pytest.raises(ParameterError, match="By its name"):
        released(log, attributes=[name])
    declared = Domain(attributes={name: ("x",)})
    assert released(log, attributes=[name], domain=declared).guarantee.proven


@pytest.mark.parametrize("name", ["kind", "org:group", "urgency", "Width", "lifecycle:transition", "channel", "Idle"])
def test_other_names_are_not_refused(name: str) -> None:
    log = log_of([({}, [{"activity": "a", name: "x"}])] * 50)
    assert released(log, attributes=[name]).guarantee.proven


def test_an_attribute_that_tells_cases_apart_is_refused_by_a_noisy_count() -> None:
    with pytest.raises(ParameterError, match="tells cases apart"):
        released(attributes=["ticket"])


@pytest.mark.slow
def test_noise_alone_refuses_no_attribute() -> None:
    for seed in range(40):
        released(attributes=["kind"], epsilon="0.1", seed=seed)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"attributes": ["kind"], "delta": 0}, "needs a delta"),
        ({"attributes": ["nothing"]}, "no attribute"),
        ({"attributes": ["concept:name"]}, "no attribute"),
        ({"attributes": []}, "empty"),
        ({"attributes": ["kind", "kind"]}, "twice"),
        ({"attributes": ["kind"], "attributes_share": 1}, "share"),
        ({"attributes": None}, "needs attributes"),
        ({"attributes": ["kind"], "domain": Domain(attributes={"kind": (0, 1)})}, "holds no numbers"),
        ({"attributes": ["price"], "domain": Domain(attributes={"price": ("cheap", "dear")})}, "do not fit the log"),
        ({"attributes": ["fast"], "domain": Domain(attributes={"fast": ("perhaps",)})}, "do not fit the log"),
        ({"attributes": ["kind"], "as_published": True}, "certified"),
    ],
)
def test_what_cannot_be_released_is_refused_before_anything_is_asked(arguments: Any, problem: str) -> None:
    with patch.object(EventQuestions, "sums", side_effect=AssertionError), pytest.raises(ParameterError, match=problem):
        released(**arguments)


def test_dates_need_times() -> None:
    log = log_of([({}, [{"activity": "a"}])] * 5, dated=True)
    with pytest.raises(ParameterError, match="release has no times"):
        released(log, attributes=["due"])


# Cases, memory, pairs, dates


def ward_log(cases: int = 1200) -> EventLog:
    """Age is recorded once, a team in every event; the ward mostly stays, and old people end otherwise."""
    rng = np.random.default_rng(4)
    made = []
    for _ in range(cases):
        old, ward = bool(rng.random() < 0.4), "north" if rng.random() < 0.5 else "south"
        team, events = "red" if old else "blue", []
        for name in ("enter", "look", "look", "leave" if old else "go home"):
            if rng.random() < 0.1:
                ward = "south" if ward == "north" else "north"
            events.append({"activity": name, "ward": ward, "team": team, "age": None})
        events[0]["age"] = 80 if old else 30
        made.append(({"born": 1940 if old else 1990}, events))
    return log_of(made)


WARDS = ward_log()
OF_WARDS = Domain(
    attributes={"ward": ("north", "south"), "team": ("red", "blue"), "age": (0, 110), "born": (1900, 2030)}
)


def column_by_case(log: EventLog, name: str) -> list[list[Any]]:
    values = log.events.column(name).to_pylist()
    return [values[a:z] for a, z in itertools.pairwise(log.offsets.tolist())]


@pytest.fixture(scope="module")
def wards() -> veilog.Release:
    given: dict[str, Any] = {"attributes": ["ward", "team", "case:age", "born"], "attributes_share": "0.6"}
    return openly.release(WARDS, "df-laplace", epsilon=8, domain=OF_WARDS, seed=1, **given)


def test_an_attribute_of_cases_does_not_change_within_a_case(wards: veilog.Release) -> None:
    """Neither one that was said to be, nor one of which the answers say so."""
    for name in ("team", "age"):
        known = [{v for v in values if v is not None} for values in column_by_case(wards.log, name)]
        assert max(map(len, known)) == 1
    teams = column_by_case(wards.log, "team")
    assert all(None not in values for values in teams)
    ages = column_by_case(wards.log, "age")
    assert np.mean([sum(v is not None for v in values) == 1 for values in ages if values]) > 0.9
    assert wards.log.cases.column_names == ["concept:name", "born"]


def test_what_changes_persists_as_it_did(wards: veilog.Release) -> None:
    stays = [a == b for values in column_by_case(wards.log, "ward") for a, b in itertools.pairwise(values)]
    assert np.mean(stays) == pytest.approx(0.9, abs=0.04)
    shares = Counter(wards.log.events.column("ward").to_pylist())
    assert shares["north"] / sum(shares.values()) == pytest.approx(0.5, abs=0.05)


def test_attributes_hang_together_and_with_the_path(wards: veilog.Release) -> None:
    log = wards.log
    ends = [values[-1] if values else None for values in column_by_case(log, "concept:name")]
    teams = [values[-1] if values else None for values in column_by_case(log, "team")]
    ages = [next((v for v in values if v is not None), 0) for values in column_by_case(log, "age")]
    born = log.cases.column("born").to_pylist()
    assert np.mean([(t == "red") == (e == "leave") for t, e in zip(teams, ends, strict=True)]) > 0.9
    assert np.mean([(t == "red") == (a > 50) for t, a in zip(teams, ages, strict=True)]) > 0.9
    assert np.mean([(t == "red") == ((b or 2000) < 1965) for t, b in zip(teams, born, strict=True)]) > 0.9


def test_a_number_is_released_where_the_mass_is() -> None:
    cases = [({"paid": 35.5 if i % 3 else 4000.0}, [{"activity": "a"}]) for i in range(3000)]
    domain = Domain(attributes={"paid": (0, 5000)})
    log = released(log_of(cases), attributes=["paid"], epsilon=8, domain=domain, seed=1).log
    paid = Counter(log.cases.column("paid").to_pylist())
    assert paid[35.5] / sum(paid.values()) == pytest.approx(2 / 3, abs=0.05)
    assert paid[4000.0] / sum(paid.values()) == pytest.approx(1 / 3, abs=0.05)


def test_dates_are_as_far_from_the_start_of_their_case() -> None:
    start, day = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC), datetime.timedelta(days=1)
    names = ["case:index", "event:index", "concept:name", "time:timestamp"]
    at = [start + i * day / 24 for i in range(1000)]
    events = pa.table([list(range(1000)), list(range(1000)), ["a"] * 1000, pa.array(at, TIMESTAMP_TYPE)], names=names)
    due = pa.array([moment + (10 if i % 2 else -300) * day for i, moment in enumerate(at)], TIMESTAMP_TYPE)
    log = EventLog(events, pa.table({"concept:name": [str(i) for i in range(1000)], "due": due}))
    for domain in (Domain(), Domain(attributes={"due": (-400, 100)})):
        window = (start - day, start + 60 * day)
        made = openly.release(
            log, "df-laplace", epsilon=8, times="0.3", window=window, attributes=["due"], domain=domain, seed=1
        )
        starts, dues = column_by_case(made.log, "time:timestamp"), made.log.cases.column("due").to_pylist()
        both = zip(dues, starts, strict=True)
        away = np.array([(due - events[0]) / day for due, events in both if due is not None and events])
        assert len(away) > 0.9 * len(dues)
        assert np.mean(away > 0) == pytest.approx(0.5, abs=0.05)
        assert np.median(away[away > 0]) == pytest.approx(10, rel=0.5)
        assert np.median(away[away < 0]) == pytest.approx(-300, rel=0.5)


def _numbers(values: list[float | None], epsilon: float, seed: int, bounds: tuple[float, float]) -> np.ndarray:
    log = log_of([({"paid": value}, [{"activity": "a"}]) for value in values])
    declared = Domain(attributes={"paid": bounds})
    made = released(log, attributes=["paid"], epsilon=epsilon, domain=declared, seed=seed).log
    return np.array([v for v in made.cases.column("paid").to_pylist() if v is not None])


def test_numbers_are_written_with_the_decimals_that_they_have() -> None:
    rng = np.random.default_rng(1)
    for decimals in (0, 1, 2):
        values = np.round(rng.uniform(0, 20_000, size=2000), decimals).tolist()
        missing = [None if i % 5 == 0 else value for i, value in enumerate(values)]
        found = _numbers(missing, 2, 1, (0, 20_000))
        assert np.array_equal(np.round(found, decimals), found)
        assert decimals == 0 or not np.array_equal(np.round(found, decimals - 1), found)


def test_numbers_of_which_noise_hides_how_they_are_written_have_cents() -> None:
    values = np.random.default_rng(2).uniform(0, 20_000, size=60).tolist()
    found = _numbers(values, 0.5, 1, (0, 20_000))
    assert not np.array_equal(np.round(found), found)
    assert np.array_equal(np.round(found, 2), found)


@pytest.mark.parametrize("bounds", [(0, 1e18), (1e15, 1e15 + 10), (-1e-9, 1e-9), (0.5, 1.25)])
def test_ranges_of_any_size_have_numbers_in_them(bounds: tuple[float, float]) -> None:
    values = np.linspace(*bounds, 400).tolist()
    found = _numbers(values, 4, 1, bounds)
    assert len(found) > 300
    assert found.min() >= bounds[0] - 1e-9 * abs(bounds[0])
    assert found.max() <= bounds[1] * (1 + 1e-9)


def test_zero_stays_what_it_is() -> None:
    rng = np.random.default_rng(3)
    values = np.where(rng.random(2000) < 0.5, 0.0, np.round(rng.uniform(1, 20, size=2000), 2)).tolist()
    assert np.mean([(_numbers(values, 0.8, seed, (-5, 20)) == 0).mean() for seed in range(3)]) == pytest.approx(
        0.5, abs=0.05
    )


def test_what_a_boolean_may_be_its_type_says() -> None:
    """Found with a delta, the rare value would be below the threshold."""
    log = log_of([({"insured": i % 10 > 0}, [{"activity": "a"}]) for i in range(600)])
    for delta in ("1e-6", None):
        more = {} if delta is None else {"delta": delta}
        method = "laplace" if delta is None else "travas"
        made = openly.release(log, method, epsilon=4, attributes=["insured"], seed=1, **more)
        found = made.log.cases.column("insured").to_pylist()
        assert found.count(False) / len(found) == pytest.approx(0.1, abs=0.05)


def test_dates_without_a_time_of_day_are_released_so() -> None:
    start, day = datetime.datetime(2024, 5, 1, 7, tzinfo=datetime.UTC), datetime.timedelta(days=1)
    names = ["case:index", "event:index", "concept:name", "time:timestamp"]
    at = [start + i * day / 24 for i in range(1000)]
    events = pa.table([list(range(1000)), list(range(1000)), ["a"] * 1000, pa.array(at, TIMESTAMP_TYPE)], names=names)
    born = [moment.replace(hour=0) - 20_000 * day for moment in at]
    cases = pa.table({"concept:name": [str(i) for i in range(1000)], "born": pa.array(born, TIMESTAMP_TYPE)})
    for domain in (Domain(), Domain(attributes={"born": (-36500, 0)})):
        made = openly.release(
            EventLog(events, cases),
            "df-laplace",
            epsilon=8,
            times="0.3",
            window=(start - day, start + 60 * day),
            attributes=["born"],
            domain=domain,
            seed=1,
        )
        found = [moment for moment in made.log.cases.column("born").to_pylist() if moment is not None]
        assert all(moment == moment.replace(hour=0, minute=0, second=0, microsecond=0) for moment in found)
        assert any("No range is declared for 'born'" in remark for remark in made.remarks) == (not domain.attributes)


def test_what_is_mostly_noise_is_said() -> None:
    many = Domain(attributes={"kind": tuple(f"k{i}" for i in range(300)), "fast": ("true", "false")})
    release = released(attributes=["kind", "fast"], epsilon="0.1", delta="1e-3", domain=many)
    noisy = [remark for remark in release.remarks if "may be mostly noise" in remark]
    assert any(remark.startswith("The values of kind") for remark in noisy)
    plain = released(
        attributes=["fast"], epsilon=4, delta="1e-3", domain=Domain(attributes={"fast": ("true", "false")})
    )
    assert not any("mostly noise" in remark for remark in plain.remarks)
    assert any("noise alone may have changed, at most: fast 0.0" in remark for remark in plain.remarks)


def test_what_was_asked_together_is_said() -> None:
    """Two attributes of six values that say the same, and two of two values, which are one question."""
    cases = [{"ward": f"w{i % 6}", "unit": f"u{i % 6}", "fast": i % 2 == 0, "new": i % 4 < 2} for i in range(3000)]
    log = log_of([(values, [{"activity": "a"}]) for values in cases])
    yes_no = ("false", "true")
    six = {name: tuple(f"{name[0]}{i}" for i in range(6)) for name in ("ward", "unit")}
    domain = Domain(attributes={**six, "fast": yes_no, "new": yes_no})
    told = released(log, attributes=["ward", "unit", "fast", "new"], epsilon=8, domain=domain, seed=1).remarks
    (together,) = [remark for remark in told if remark.startswith("Asked together: ")]
    assert "fast, new" in together and ("unit by ward" in together or "ward by unit" in together)
    poor = released(log, attributes=["ward", "unit"], epsilon="0.1", domain=Domain(attributes=six), seed=1).remarks
    assert any("No attributes were asked together" in remark for remark in poor)


def test_the_error_is_of_those_that_have_a_value() -> None:
    """Of ten times as few values noise may have changed a part ten times as large."""
    told = []
    for every in (1, 10):
        log = log_of([({"kind": "new" if i % every == 0 else None}, [{"activity": "a"}]) for i in range(2000)])
        declared = Domain(attributes={"kind": ("new", "old")})
        remarks = released(log, attributes=["kind"], epsilon=4, domain=declared, seed=1).remarks
        told.append(next(float(r.split("kind ")[1].rstrip(".")) for r in remarks if "may have changed" in r))
    assert told[1] == pytest.approx(10 * told[0], rel=0.1)


def test_what_the_budget_can_carry_is_said_before() -> None:
    many_values = Domain(attributes={"kind": tuple(f"k{i}" for i in range(300)), "size": (0, 9)})
    given: dict[str, Any] = {"attributes": ["kind", "size"], "attributes_share": "0.5"}
    planned = veilog.plan("df-laplace", epsilon=1, domain=many_values, **given)
    few, many = planned.attribute_errors(1000), planned.attribute_errors(100_000)
    assert list(few) == ["kind", "size"]
    assert few["kind"] > 0.3 > 0.02 > many["kind"] > many["size"]
    of_persons = veilog.plan("df-laplace", epsilon=1, attributes=["kind"], attributes_share="0.5", unit="person",
                             max_cases=5, domain=Domain(attributes={"kind": ("a", "b")}))  # fmt: skip
    assert of_persons.attribute_errors(1000)["kind"] > 0


def test_a_person_costs_what_was_asked_for() -> None:
    release = openly.release(WARDS, "df-laplace", epsilon=2, domain=OF_WARDS, unit="person", max_cases=4,
                             attributes=["ward", "team", "born"], attributes_share="0.5")  # fmt: skip
    assert (release.guarantee.epsilon, release.guarantee.unit) == (2.0, "person")
    assert {charge.cases for charge in release.guarantee.charges} == {4}
    assert sum((c.epsilon for c in release.guarantee.charges), Fraction(0)) == 2


def test_attributes_that_are_drawn_in_blocks_are_as_those_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of events that change, of events that stay, and of cases: in many blocks as often as in one."""
    wanted = {"attributes": ["kind", "colour", "fast"], "epsilon": 40, "seed": 3}
    whole = released(**wanted).log
    monkeypatch.setattr(orders, "BLOCK_EVENTS", 100)
    parts = released(**wanted).log
    assert parts.events.column("colour").num_chunks > 1
    for name in ("colour", "fast"):
        for activity in ("ask", "answer"):
            one, other = (_values_with(log, name, activity) for log in (whole, parts))
            assert set(one) == set(other)
            for value, number in one.items():
                assert other[value] == pytest.approx(number, abs=25)
    old = [log.cases.column("kind").to_pylist().count("old") for log in (whole, parts)]
    assert old[0] == pytest.approx(old[1], abs=1), "cases are drawn at once: only what is rounded differs"


def _values_with(log: EventLog, name: str, activity: str) -> Counter[Any]:
    rows = zip(log.events.column("concept:name").to_pylist(), log.events.column(name).to_pylist(), strict=True)
    return Counter(value for its, value in rows if its == activity)

"""Attributes of a case: one value or a memory, with path, times and each other."""

import datetime
import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import openly
import pyarrow as pa
import pytest
from logs_with_attributes import log_of, released, values_with

import veilog
from veilog import Domain
from veilog.logs.eventlog import TIMESTAMP_TYPE, EventLog
from veilog.methods._events import orders


def ward_log(cases: int = 1200) -> EventLog:
    """Return cases with one age, a team in every event, and a ward that mostly stays.

    Old people end otherwise.
    """
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


@pytest.mark.slow
def test_an_attribute_of_cases_does_not_change_within_a_case(wards: veilog.Release) -> None:
    """A declared attribute of cases never changes in a case, nor does one found so."""
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
    paths = column_by_case(log, "concept:name")
    ends = [values[-1] if values else None for values in paths]
    usual = ["enter" in values and ("leave" in values) != ("go home" in values) for values in paths]
    teams = [values[-1] if values else None for values in column_by_case(log, "team")]
    ages = [next((v for v in values if v is not None), 0) for values in column_by_case(log, "age")]
    born = log.cases.column("born").to_pylist()
    found = list(itertools.compress(zip(teams, ends, ages, born, strict=True), usual))
    assert np.mean([(team == "red") == (end == "leave") for team, end, _, _ in found]) > 0.88
    assert np.mean([(team == "red") == (age > 50) for team, _, age, _ in found]) > 0.88
    assert np.mean([(team == "red") == ((year or 2000) < 1965) for team, _, _, year in found]) > 0.88


@pytest.mark.slow
def test_a_number_is_released_where_the_mass_is() -> None:
    cases = [({"paid": 35.5 if i % 3 else 4000.0}, [{"activity": "a"}]) for i in range(3000)]
    domain = Domain(attributes={"paid": (0, 5000)})
    log = released(log_of(cases), attributes=["paid"], epsilon=8, domain=domain, seed=1).log
    paid = Counter(log.cases.column("paid").to_pylist())
    assert paid[35.5] / sum(paid.values()) == pytest.approx(2 / 3, abs=0.05)
    assert paid[4000.0] / sum(paid.values()) == pytest.approx(1 / 3, abs=0.05)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(0, 1e18), (1e15, 1e15 + 10), (-1e-9, 1e-9), (0.5, 1.25)])
def test_ranges_of_any_size_have_numbers_in_them(bounds: tuple[float, float]) -> None:
    values = np.linspace(*bounds, 400).tolist()
    found = _numbers(values, 4, 1, bounds)
    assert len(found) > 300
    assert found.min() >= bounds[0] - 1e-9 * abs(bounds[0])
    assert found.max() <= bounds[1] * (1 + 1e-9)


@pytest.mark.slow
def test_zero_stays_what_it_is() -> None:
    rng = np.random.default_rng(3)
    values = np.where(rng.random(2000) < 0.5, 0.0, np.round(rng.uniform(1, 20, size=2000), 2)).tolist()
    assert np.mean([(_numbers(values, 0.8, seed, (-5, 20)) == 0).mean() for seed in range(3)]) == pytest.approx(
        0.5, abs=0.05
    )


def test_what_a_boolean_may_be_its_type_says() -> None:
    """The type of a boolean declares its values; a search would miss the rare one."""
    log = log_of([({"insured": i % 10 > 0}, [{"activity": "a"}]) for i in range(600)])
    for delta in ("1e-6", None):
        more = {} if delta is None else {"delta": delta}
        method = "laplace" if delta is None else "travas"
        made = openly.release(log, method, epsilon=4, attributes=["insured"], seed=1, **more)
        found = made.log.cases.column("insured").to_pylist()
        assert found.count(False) / len(found) == pytest.approx(0.1, abs=0.05)


@pytest.mark.slow
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
        assert ("attribute-dates-without-range" in [remark.code for remark in made.remarks]) == (not domain.attributes)


def test_what_is_mostly_noise_is_said() -> None:
    many = Domain(attributes={"kind": tuple(f"k{i}" for i in range(300)), "fast": ("true", "false")})
    release = released(attributes=["kind", "fast"], epsilon="0.1", delta="1e-3", domain=many)
    assert [one.values["names"] for one in release.remarks if one.code == "attribute-values-mostly-noise"] == ["kind"]
    plain = released(
        attributes=["fast"], epsilon=4, delta="1e-3", domain=Domain(attributes={"fast": ("true", "false")})
    )
    said = {remark.code: remark.values for remark in plain.remarks}
    assert "attribute-values-mostly-noise" not in said and said["attribute-noise-parts"]["told"].startswith("fast 0.0")


def test_what_was_asked_together_is_said() -> None:
    """Attributes that are asked together are reported; poor budgets ask them singly."""
    cases = [{"ward": f"w{i % 6}", "unit": f"u{i % 6}", "fast": i % 2 == 0, "new": i % 4 < 2} for i in range(3000)]
    log = log_of([(values, [{"activity": "a"}]) for values in cases])
    yes_no = ("false", "true")
    six = {name: tuple(f"{name[0]}{i}" for i in range(6)) for name in ("ward", "unit")}
    domain = Domain(attributes={**six, "fast": yes_no, "new": yes_no})
    told = released(log, attributes=["ward", "unit", "fast", "new"], epsilon=8, domain=domain, seed=1).remarks
    (together,) = [remark.values["names"] for remark in told if remark.code == "attributes-asked-together"]
    assert "by fast" in together and ("unit by ward" in together or "ward by unit" in together)
    poor = released(log, attributes=["ward", "unit"], epsilon="0.1", domain=Domain(attributes=six), seed=1).remarks
    assert "attributes-asked-singly" in [remark.code for remark in poor]


def test_what_goes_with_the_path_is_said_and_charged_without_activities() -> None:
    paths = [["ask", "X-ray", "go"] if i % 2 else ["ask", "go"] for i in range(3000)]
    kinds = ("bone", "skin", "eye")
    log = log_of([({"kind": kinds[i % 2]}, [{"activity": a} for a in path]) for i, path in enumerate(paths)])
    made = released(log, attributes=["kind"], epsilon=8, domain=Domain(attributes={"kind": kinds}), seed=1)
    assert len([one for one in made.remarks if one.code == "attributes-asked-together"]) == 1
    assert "X-ray" not in " ".join(str(charge.purpose) for charge in made.guarantee.charges)
    path, kind = column_by_case(made.log, "concept:name"), made.log.cases.column("kind").to_pylist()
    bone = np.array([value == "bone" for value in kind])
    examined = np.array(["X-ray" in one for one in path])
    assert examined[bone].mean() < 0.05 and examined[~bone].mean() > 0.95


def test_the_error_is_of_those_that_have_a_value() -> None:
    """With a tenth of the values the reported error is ten times as large."""
    told = []
    for every in (1, 10):
        log = log_of([({"kind": "new" if i % every == 0 else None}, [{"activity": "a"}]) for i in range(2000)])
        declared = Domain(attributes={"kind": ("new", "old")})
        remarks = released(log, attributes=["kind"], epsilon=4, domain=declared, seed=1).remarks
        told.append(
            next(float(r.values["told"].split("kind ")[1]) for r in remarks if r.code == "attribute-noise-parts")
        )
    assert told[1] == pytest.approx(10 * told[0], rel=0.1)


def test_what_the_budget_can_carry_is_said_before() -> None:
    many_values = Domain(attributes={"kind": tuple(f"k{i}" for i in range(300)), "size": (0, 9)})
    given: dict[str, Any] = {"attributes": ["kind", "size"], "attributes_share": "0.5"}
    planned = veilog.plan("df-laplace", epsilon=1, domain=many_values, **given)
    few, many = planned.attribute_errors(1000), planned.attribute_errors(100_000)
    assert list(few) == ["kind", "size"]
    assert few["kind"] > 0.3 > 0.03 > many["kind"] > many["size"]
    of_persons = veilog.plan("df-laplace", epsilon=1, attributes=["kind"], attributes_share="0.5", unit="person",
                             max_cases=5, domain=Domain(attributes={"kind": ("a", "b")}))  # fmt: skip
    assert of_persons.attribute_errors(1000)["kind"] > 0


def test_a_person_costs_what_was_asked_for() -> None:
    release = openly.release(WARDS, "df-laplace", epsilon=2, domain=OF_WARDS, unit="person", max_cases=4,
                             attributes=["ward", "team", "born"], attributes_share="0.5")  # fmt: skip
    assert (release.guarantee.epsilon, release.guarantee.unit) == (2.0, "person")
    assert {charge.cases for charge in release.guarantee.charges} == {4}
    assert sum((c.epsilon for c in release.guarantee.charges), Fraction(0)) == 2


@pytest.mark.slow
def test_attributes_that_are_drawn_in_blocks_are_as_those_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attributes drawn in many blocks are as frequent as those drawn in one."""
    wanted = {"attributes": ["kind", "colour", "fast"], "epsilon": 40, "seed": 3}
    whole = released(**wanted).log
    monkeypatch.setattr(orders, "BLOCK_EVENTS", 100)
    parts = released(**wanted).log
    assert parts.events.column("colour").num_chunks > 1
    for name in ("colour", "fast"):
        for activity in ("ask", "answer"):
            one, other = (values_with(log, name, activity) for log in (whole, parts))
            assert set(one) == set(other)
            for value, number in one.items():
                assert other[value] == pytest.approx(number, abs=25)
    old = [log.cases.column("kind").to_pylist().count("old") for log in (whole, parts)]
    assert old[0] == pytest.approx(old[1], abs=1), "cases are drawn at once: only what is rounded differs"

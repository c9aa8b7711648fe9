"""Attributes use exactly their share, have public domains, and are close."""

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
from logs_with_attributes import COLOURED, log_of, released, slow_and_fast
from refusals import refused

import veilog
from veilog import Domain
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Repeated, Sequences
from veilog.methods._events.attributes.variables import time_variables
from veilog.privacy.cases import UNKNOWN_TIME, Cases
from veilog.privacy.events import EventQuestions

HOSPITAL = hospital(1500, seed=5)
AGES = ("0-17", "18-39", "40-59", "60-79", "80+")
DECLARED = Domain(attributes={"age group": AGES, "urgency": (1, 5), "cost": (0, 3000)})


# With times


def told(log: EventLog) -> tuple[dict[str, float], float]:
    """Return mean hours by ``slow``, and the share of the ward north in summer."""
    frame = log.to_pandas().groupby("case:concept:name")
    times = frame["time:timestamp"]
    hours = (times.max() - times.min()).dt.total_seconds() / 3600
    summer = times.min().dt.day_of_year.between(165, 225)
    by = hours.groupby(frame["case:slow"].first()).mean().to_dict()
    return by, float((frame["case:ward"].first()[summer] == "north").mean())


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, "2024-01-01..2025-01-01"])
def test_attributes_go_with_how_long_cases_last_and_when_they_start(window: str | None) -> None:
    """Attributes go with durations and starts; by path alone both kinds last 9 hours."""
    log = slow_and_fast(2_000, seed=1)
    domain = Domain(attributes={"slow": ("yes", "no"), "ward": ("north", "south")})
    made = openly.release(
        log, "evolve", epsilon=8, times="0.3", attributes=["slow", "ward"], domain=domain, window=window
    )
    hours, north = told(made.log)
    assert hours["yes"] > 15 and hours["no"] < 6
    assert any("by duration" in str(remark) for remark in made.remarks)
    if window is not None:
        assert north > 0.4 and any("by start" in str(remark) for remark in made.remarks)
    else:
        assert not any("by start" in str(remark) for remark in made.remarks), "the year is made up"


@pytest.mark.nightly
@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 50)), max_size=4), min_size=1, max_size=6), st.data())
def test_the_part_of_time_of_a_case_is_its_own(times: list[list[int | None]], data: st.DataObject) -> None:
    """A case adds 1 to the cell of its own part of time, whatever the other cases."""
    rows = Repeated(Sequences(("a",), np.zeros(12, dtype=np.int32), np.arange(13)), np.arange(12))
    variables = time_variables(rows, np.arange(12) * 10, calendar=True)
    assert [one.name for one in variables] == ["start"], "cases of one event last no time"
    edges = [20, 30, 50, 60, 70, 90, 100]

    def block(cases: list[list[int | None]]) -> Cases:
        flat = [UNKNOWN_TIME if at is None else at for case in cases for at in case]
        offsets = np.cumsum([0, *map(len, cases)])
        return Cases(np.zeros(len(flat), dtype=np.int64), np.array(flat, dtype=np.int64), offsets, {})

    found = variables[0].of_block(block(times)).tolist()
    known = [[at for at in case if at is not None] for case in times]
    assert found == [sum(min(case) >= edge for edge in edges) if case else 8 for case in known]
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
    assert [c.key for c in children if c.key.startswith("privacy:operation")] == [
        "privacy:operation1",
        "privacy:operation2",
        "privacy:operation3",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("share", "to_flow"), [(0.2, "9/20000"), (0, "0")])
def test_evolve_splits_a_delta_with_attributes_exactly(share: float, to_flow: str) -> None:
    more: dict[str, Any] = {"times": "0.1", "attributes": ["kind"], "attributes_share": "0.3"}
    release = openly.release(COLOURED, "evolve", epsilon="0.7", delta="1e-3", real_share=share, **more)
    charges = release.guarantee.charges
    assert sum((c.epsilon for c in charges), Fraction(0)) == Fraction("0.7")
    assert Fraction("3e-4") < sum((c.delta for c in charges), Fraction(0)) <= Fraction("1e-3")
    flow, times, values = (o.delta for o in release.operations)
    # Noise would leave nothing of gaps. Without them Gaussian noise is no better for times.
    assert times == 0 and flow + values == pytest.approx(1e-3) and (flow > 0) == (share > 0)
    real = [c for c in charges if str(c.purpose) == "frequent real variants"]
    part = Fraction("0.7") * Fraction("0.6") / 5
    assert [(c.epsilon, c.delta) for c in real] == ([(part, failure(part, to_flow))] if share else [])


def test_a_purely_private_method_takes_a_delta_for_values_only() -> None:
    release = openly.release(COLOURED, "df-laplace", epsilon=2, delta="1e-4", attributes=["kind"])
    assert (release.guarantee.epsilon, release.guarantee.delta) == (2.0, 1e-4)
    assert [o.delta for o in release.operations] == [0.0, 1e-4]
    declared = Domain(attributes={"kind": ("new", "old")})
    pure = openly.release(COLOURED, "df-laplace", epsilon=2, attributes=["kind"], domain=declared)
    assert (pure.guarantee.epsilon, pure.guarantee.delta) == (2.0, 0.0)
    with refused(ParameterError, "method-delta-not-needed"):
        openly.release(COLOURED, "df-laplace", epsilon=2, delta="1e-4", attributes=["kind"], domain=declared)


# What comes out


@pytest.mark.slow
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
    assert "attribute-without-frequent-value" in [remark.code for remark in release.remarks]
    assert sum((c.epsilon for c in release.guarantee.charges), Fraction(0)) == 1


def test_a_seed_repeats_attributes() -> None:
    first, second = (released(attributes=["kind", "colour"], seed=4).log for _ in range(2))
    assert first.events.equals(second.events)
    assert first.cases.equals(second.cases)


@pytest.mark.slow
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
    with refused(ParameterError, "attribute-name-identifying"):
        released(log, attributes=[name])
    declared = Domain(attributes={name: ("x",)})
    assert released(log, attributes=[name], domain=declared).guarantee.proven


@pytest.mark.parametrize("name", ["kind", "org:group", "urgency", "Width", "lifecycle:transition", "channel", "Idle"])
def test_other_names_are_not_refused(name: str) -> None:
    log = log_of([({}, [{"activity": "a", name: "x"}])] * 50)
    assert released(log, attributes=[name]).guarantee.proven


def test_an_attribute_that_tells_cases_apart_is_refused_by_a_noisy_count() -> None:
    with refused(ParameterError, "attribute-tells-cases-apart"):
        released(attributes=["ticket"])


@pytest.mark.slow
def test_noise_alone_refuses_no_attribute() -> None:
    for seed in range(40):
        released(attributes=["kind"], epsilon="0.1", seed=seed)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"attributes": ["kind"], "delta": 0}, "method-delta-missing"),
        ({"attributes": ["nothing"]}, "pripel-attribute-missing"),
        ({"attributes": ["concept:name"]}, "pripel-attribute-missing"),
        ({"attributes": []}, "attributes-list-empty"),
        ({"attributes": ["kind", "kind"]}, "attributes-asked-twice"),
        ({"attributes": ["kind"], "attributes_share": 1}, "budget-share-out-of-range"),
        ({"attributes": None}, "attributes-share-without-attributes"),
        ({"attributes": ["kind"], "domain": Domain(attributes={"kind": (0, 1)})}, "attribute-range-without-numbers"),
        (
            {"attributes": ["price"], "domain": Domain(attributes={"price": ("cheap", "dear")})},
            "attribute-domain-not-fitting",
        ),
        ({"attributes": ["fast"], "domain": Domain(attributes={"fast": ("perhaps",)})}, "attribute-domain-not-fitting"),
    ],
)
def test_what_cannot_be_released_is_refused_before_anything_is_asked(arguments: Any, problem: str) -> None:
    with patch.object(EventQuestions, "sums", side_effect=AssertionError), refused(ParameterError, problem):
        released(**arguments)


def test_dates_need_times() -> None:
    log = log_of([({}, [{"activity": "a"}])] * 5, dated=True)
    with refused(ParameterError, "attribute-dates-with-domain"):
        released(log, attributes=["due"])


@pytest.mark.parametrize("more", [{}, {"times": "0.2"}])
@pytest.mark.parametrize("names", [["fast"], ["colour", "kind", "fast"]])
def test_a_release_without_events_has_columns_for_them_and_is_not_lost(names: list[str], more: dict[str, str]) -> None:
    """A release without any declared activity keeps its columns."""
    public = Domain(activities=("escalate",), attributes={"kind": ("new", "old"), "colour": ("red", "blue")})
    made = released(domain=public, attributes=names, **more)
    assert made.log.cases.num_rows > 0
    assert made.log.events.num_rows == 0
    there = {*made.log.cases.column_names, *made.log.events.column_names}
    assert set(names) <= there

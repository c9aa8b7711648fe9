"""Persons with several cases: the bounds, the guarantee and its arithmetic."""

import datetime
import json
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import openly
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import veilog
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Sensitivity, Stated
from veilog.privacy.persons import owners
from veilog.privacy.unit import ONE_CASE, Unit, WithoutPerson, bound_units


def log(owners: list[object], level: str = "case") -> veilog.EventLog:
    """Return a log with a case of two events for each owner."""
    name = "case:person" if level == "case" else "person"
    rows = [
        {"case:concept:name": str(i), "concept:name": a, "time:timestamp": f"2024-01-0{1 + j}T10:00:00Z", name: owner}
        for i, owner in enumerate(owners)
        for j, a in enumerate("ab")
    ]
    return veilog.read(pd.DataFrame(rows))


def kept(found: veilog.EventLog) -> Counter[object]:
    return Counter(found.cases.column("person").to_pylist())


@pytest.mark.slow
@given(owners=st.lists(st.sampled_from("pqrs"), min_size=1, max_size=30), most=st.integers(1, 5))
def test_of_every_person_at_most_so_many_cases_are_left_and_no_fewer_than_there_are(
    owners: list[str], most: int
) -> None:
    found = bound_units(log(owners), Unit("person", most, "case:person"), noise.seeded(1)).log
    assert kept(found) == {person: min(most, n) for person, n in Counter(owners).items()}
    assert len(found) == 2 * found.cases.num_rows


@pytest.mark.slow
@given(
    owners=st.lists(st.sampled_from("pqrs"), min_size=1, max_size=12),
    more=st.integers(1, 8),
    most=st.integers(1, 4),
)
def test_adding_a_person_adds_at_most_so_many_cases_and_removes_none(owners: list[str], more: int, most: int) -> None:
    unit = Unit("person", most, "case:person")
    without = kept(bound_units(log(owners), unit, noise.seeded(1)).log)
    extra = kept(bound_units(log([*owners, *["new"] * more]), unit, noise.seeded(2)).log)
    assert extra - without == Counter({"new": min(more, most)})
    assert not without - extra


@pytest.mark.slow
def test_which_cases_are_left_is_drawn_at_random() -> None:
    counts: Counter[object] = Counter()
    three = log(["p"] * 3)
    for seed in range(600):
        found = bound_units(three, Unit("person", 1, "person"), noise.seeded(seed)).log
        counts.update(found.cases.column("concept:name").to_pylist())
    # 200 expected of each, standard deviation 11.5: beyond 5.5 of them once in 10^7
    assert all(abs(counts[str(i)] - 200) < 64 for i in range(3))


def test_an_event_attribute_that_is_the_same_throughout_a_case_names_its_person() -> None:
    owners = ["p", "p", "q"]
    found = bound_units(log(owners, "event"), Unit("person", 1, "person"), noise.seeded(1)).log
    assert found.cases.num_rows == 2


PERSONS = [
    "1.1",
    "1.10",
    "2",
    "2.0",
    "007",
    "7",
    "true",
    "True",
    "nobody",
    "2024-03-01T10:00Z",
    "2024-03-01 11:00+01:00",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "base", [["1.1", "1.10"], ["2", "2.0"], ["007", "7"], ["true", "True"], PERSONS[-2:], ["7", "2"]]
)
@pytest.mark.parametrize("how", ["csv", "pandas", "xes"])
def test_whether_two_cases_are_of_one_person_does_not_depend_on_a_third(
    tmp_path: Path, base: list[str], how: str
) -> None:
    def alike(names: list[object]) -> bool:
        rows = [(f"c{i}", "a", "2024-01-01T00:00:00Z", name) for i, name in enumerate(names)]
        frame = pd.DataFrame(rows, columns=["case:concept:name", "concept:name", "time:timestamp", "case:person"])
        if how == "csv":
            frame.to_csv(tmp_path / "log.csv", index=False)
        elif how == "xes":
            (tmp_path / "log.xes").write_text(xes(names))
        found = veilog.read(frame if how == "pandas" else tmp_path / f"log.{how}")
        told = owners(found, "case:person").named.to_pylist()
        assert None not in told
        cases = found.cases["concept:name"].to_pylist()
        return bool(told[cases.index("c0")] == told[cases.index("c1")])

    before = alike(list(base))
    for other in (*PERSONS, 5, 1.5, True, datetime.date(2024, 1, 1)):
        assert alike([*base, other]) == before, other


def xes(names: list[object]) -> str:
    """Return XES with the last case first, so that its type would name the column."""
    kinds = {int: "int", float: "float", bool: "boolean"}
    traces = [
        f"<trace><string key='concept:name' value='c{i}'/>"
        f"<{kinds.get(type(name), 'string')} key='person' value='{str(name).lower() if name is True else name}'/>"
        "<event><string key='concept:name' value='a'/><date key='time:timestamp' value='2024-01-01T00:00:00Z'/></event>"
        "</trace>"
        for i, name in enumerate(names)
    ]
    return f"<log>{''.join(reversed(traces))}</log>"


def in_xes(cases: list[tuple[dict[str, object], dict[str, object]]], folder: Path) -> Path:
    def told(attributes: dict[str, object]) -> str:
        kinds = {int: "int", bool: "boolean"}
        return "".join(f"<{kinds.get(type(v), 'string')} key='{n}' value='{v}'/>" for n, v in attributes.items())

    event = "<string key='concept:name' value='a'/><date key='time:timestamp' value='2024-01-01T00:00:00Z'/>"
    traces = [
        f"<trace><string key='concept:name' value='c{i}'/>{told(own)}<event>{event}{told(of_event)}</event></trace>"
        for i, (own, of_event) in enumerate(cases)
    ]
    (folder / "log.xes").write_text(f"<log>{''.join(traces)}</log>")
    return folder / "log.xes"


def in_ocel(cases: list[tuple[dict[str, object], dict[str, object]]], folder: Path) -> Path:
    def told(attributes: dict[str, object]) -> list[dict[str, object]]:
        return [{"name": name, "value": value, "time": "1970-01-01T00:00:00Z"} for name, value in attributes.items()]

    objects = [{"id": f"c{i}", "type": "order", "attributes": told(own)} for i, (own, _) in enumerate(cases)]
    events = [
        {
            "id": f"e{i}",
            "type": "a",
            "time": "2024-01-01T00:00:00Z",
            "attributes": told(of_event),
            "relationships": [{"objectId": f"c{i}", "qualifier": ""}],
        }
        for i, (_, of_event) in enumerate(cases)
    ]
    found = {"objectTypes": [], "eventTypes": [], "objects": objects, "events": events}
    (folder / "log.json").write_text(json.dumps(found))
    return folder / "log.json"


ATTRIBUTES = st.dictionaries(
    st.sampled_from(["patient", "case:patient", "event:case:patient", "patient (attribute)", "patient (int)"]),
    st.sampled_from(["p", "q", 7]),
)
CASES = st.lists(st.tuples(ATTRIBUTES, ATTRIBUTES), min_size=1, max_size=3)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["patient", "case:patient", "patient (int)"])
@pytest.mark.parametrize("write", [in_xes, in_ocel])
@given(cases=CASES, extra=st.tuples(ATTRIBUTES, ATTRIBUTES), first=st.booleans())
@settings(max_examples=30, deadline=None)
def test_which_attribute_tells_the_person_does_not_depend_on_another_case(
    tmp_path_factory: pytest.TempPathFactory,
    unit: str,
    write: Callable[[list[tuple[dict[str, object], dict[str, object]]], Path], Path],
    cases: list[tuple[dict[str, object], dict[str, object]]],
    extra: tuple[dict[str, object], dict[str, object]],
    first: bool,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    without = owners(veilog.read(write(cases, folder)), unit).named.to_pylist()
    found = owners(veilog.read(write([extra, *cases] if first else [*cases, extra], folder)), unit).named.to_pylist()
    assert (found[1:] if first else found[:-1]) == without


PLAIN = st.dictionaries(st.sampled_from(["patient", "patient (int)"]), st.sampled_from(["p", "q", 7, True]))


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["patient", "patient (int)"])
@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".parquet", ""])
@given(
    cases=st.lists(st.tuples(PLAIN, PLAIN), min_size=1, max_size=3), extra=st.tuples(PLAIN, PLAIN), first=st.booleans()
)
@settings(max_examples=10, deadline=None)
def test_nor_does_it_in_a_file_or_frame_that_is_made_of_the_log(
    tmp_path_factory: pytest.TempPathFactory,
    unit: str,
    suffix: str,
    cases: list[tuple[dict[str, object], dict[str, object]]],
    extra: tuple[dict[str, object], dict[str, object]],
    first: bool,
) -> None:
    """Neither does a file or a frame of the log name persons by another case's type.

    Readers have a column for values of each type, and the first of them had the name of the attribute.
    """
    folder = tmp_path_factory.getbasetemp()

    def told(cases: list[tuple[dict[str, object], dict[str, object]]]) -> list[object]:
        read = veilog.read(in_xes(cases, folder))
        if suffix:
            veilog.write(read, folder / f"made{suffix}", overwrite=True)
        again = veilog.read(folder / f"made{suffix}" if suffix else read.to_pandas())
        try:
            return owners(again, unit).named.to_pylist()
        except ParameterError:  # an attribute that no case has is no column
            return [None] * len(cases)

    found = told([extra, *cases] if first else [*cases, extra])
    assert (found[1:] if first else found[:-1]) == told(cases)


def test_of_several_names_the_plain_one_tells_the_person_and_of_a_case_before_its_events(tmp_path: Path) -> None:
    both: dict[str, object] = {"case:patient": "same", "patient": "p"}
    other: dict[str, object] = {"patient": "of the event"}
    log = veilog.read(in_xes([(both, other), ({}, both), ({"case:patient": "q"}, other)], tmp_path))
    assert owners(log, "patient").named.to_pylist() == owners(log, "case:patient").named.to_pylist() == ["p", "p", "q"]


def test_events_of_objects_keep_their_attributes_whatever_objects_have(tmp_path: Path) -> None:
    said: dict[str, object] = {"case:patient": "a", "event:case:patient": "b", "patient": "c", "concept:name": "d"}
    log = veilog.read(in_ocel([({}, said), ({"patient": "p", "concept:name": "n"}, {})], tmp_path))
    names = {name: f"event:{name}" for name in said} | {"patient": "patient"}
    assert {name: log.events[called][0].as_py() for name, called in names.items()} == said
    assert log.cases["patient"].to_pylist() == [None, "p"]
    assert log.cases["concept:name (attribute)"].to_pylist() == [None, "n"]


def test_bytes_that_are_no_text_change_no_other_person() -> None:
    def told(names: list[bytes]) -> list[str | None]:
        columns = {"case": [f"c{i}" for i in range(len(names))], "activity": ["a"] * len(names)}
        times = pa.array([0] * len(names), pa.timestamp("us", "UTC"))
        table = pa.table({**columns, "time": times, "case:person": pa.array(names, pa.binary())})
        return owners(veilog.read(table), "person").named.to_pylist()

    assert told([b"7", b"7.0"]) == ["7.0", "7.0"]
    assert told([b"7", b"7.0", b"\xff"])[:2] == ["7.0", "7.0"]


@pytest.mark.parametrize("without_person", ["left-out", "own"])
def test_a_case_of_several_people_is_left_out_whoever_they_are(without_person: WithoutPerson) -> None:
    found = bound_units(_mixed(), Unit("person", 2, "who", without_person), noise.seeded(1)).log
    assert found.cases.column("concept:name").to_pylist() == ["2"]


def _mixed() -> veilog.EventLog:
    table = pd.DataFrame(
        {
            "case:concept:name": ["1", "1", "2", "2", "3", "3"],
            "concept:name": ["a", "b"] * 3,
            "time:timestamp": ["2024-01-01T10:00:00Z", "2024-01-01T11:00:00Z"] * 3,
            "who": ["p", "q", "p", "p", "p", None],
        }
    )
    return veilog.read(table)


@pytest.mark.parametrize(
    ("unit", "most", "word"),
    [
        ("case:person", 0, "unit-max-cases-invalid"),
        ("case:person", -1, "unit-max-cases-invalid"),
        ("case:person", None, "unit-without-bound"),
        ("case", 3, "unit-bound-without-unit"),
        ("case:nobody", 2, "person-attribute-missing"),
        ("concept:name", 2, "person-attribute-missing"),
        ("time:timestamp", 2, "person-attribute-missing"),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused_in_words(unit: str, most: int | None, word: str) -> None:
    with refused(ParameterError, word):
        openly.release(log(["p", "q"]), "evolve", epsilon=1, unit=unit, max_cases=most)


@pytest.mark.slow(but=1)
@pytest.mark.parametrize("method", ["evolve", "laplace", "travas"])
def test_the_guarantee_says_person_and_costs_what_was_asked(method: str) -> None:
    delta = "1e-3" if method == "travas" else 0
    released = openly.release(
        log(["p"] * 400 + ["q"] * 3).variants, method, epsilon="0.9", delta=delta, unit="person", max_cases=3
    )
    g = released.guarantee
    assert (g.status, g.epsilon, g.unit) == ("proven", 0.9, "person")
    if method == "travas":  # whose questions are fixed: what the noise has for a case, grown to three
        k = noise.tsgd_bound(*Unit("person", 3).of_one_case(Fraction(9, 10), Fraction(1, 1000)))
        grown = noise.tsgd_failure(Fraction(3, 10), k) * Fraction(sum(math.exp(0.3 * i) for i in range(3)))
        assert g.delta == pytest.approx(float(grown)) and 0 < g.delta <= 1e-3
    else:
        assert g.delta == 0
    assert g.neighbours == Message("neighbours-by-person-of-cases", n=3)
    assert "cases-per-person-bounded" in {c.code for c in g.conditions}
    assert sum(charge.epsilon for charge in g.charges) == Fraction("0.9")
    assert sum(operation.epsilon for operation in released.operations) == pytest.approx(0.9)


@pytest.mark.slow
def test_a_named_person_needs_no_condition_about_how_many_cases_people_have() -> None:
    released = openly.release(log(["p"] * 400), "evolve", epsilon=9, unit="case:person", max_cases=100)
    assert [c.code for c in released.guarantee.conditions] == ["activities-from-log"]
    assert "'case:person'" in str(released.guarantee.neighbours)


def test_one_case_of_a_person_costs_a_person_what_it_costs_a_case() -> None:
    charge = Charge("count", "", Stated(""), Sensitivity.of(1), Fraction(1, 3), Fraction(1, 1000))
    assert ONE_CASE.charges([charge]) == (charge,)
    assert [c.epsilon for c in Unit("person", 1, "x").charges([charge])] == [Fraction(1, 3)]


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "6"])
def test_what_a_person_costs_is_never_below_the_chain_of_cases(most: int, epsilon: str) -> None:
    eps, delta = Unit("person", most).of_one_case(Fraction(epsilon), Fraction(1, 100))
    chain = sum(float(delta) * math.exp(float(eps) * i) for i in range(most))
    assert eps * most == Fraction(epsilon)
    assert chain <= 0.01 <= chain * (1 + 1e-9)


@pytest.mark.parametrize("most", [2, 3])
def test_frequent_variants_protect_a_person_exactly_as_stated(most: int) -> None:
    """Enumerated outputs of k-TSGD keep (epsilon, delta) of a person's ``most`` cases."""
    epsilon, delta = Fraction(3, 2), Fraction(1, 20)
    eps, failure = Unit("person", most).of_one_case(epsilon, delta)
    k = noise.tsgd_bound(eps, failure)
    x = np.arange(-k, k + 1)
    p = np.exp(-float(eps) * np.abs(x))
    p /= p.sum()

    def outputs(count: int) -> dict[int, float]:
        found: dict[int, float] = {0: 0.0}
        for value, chance in zip(x, p, strict=True):
            noisy = count + int(value) if count else 0
            found[noisy if noisy > k else 0] = found.get(noisy if noisy > k else 0, 0.0) + chance
        return found

    for m in range(3 * k):
        for first, second in ((outputs(m), outputs(m + most)), (outputs(m + most), outputs(m))):
            over = sum(max(0.0, c - math.exp(float(epsilon)) * second.get(o, 0.0)) for o, c in first.items())
            assert over <= float(delta) + 1e-9


def test_a_delta_that_no_arithmetic_can_hold_is_refused() -> None:
    with refused(ParameterError, "unit-delta-cannot-protect"):
        Unit("person", 2).of_one_case(Fraction(900), Fraction(1, 100))


def test_the_largest_epsilons_are_fine_without_a_delta_and_for_a_case() -> None:
    assert Unit("person", 2).of_one_case(Fraction(900), Fraction(0)) == (Fraction(450), Fraction(0))
    assert ONE_CASE.of_one_case(Fraction(900), Fraction(1, 100)) == (Fraction(900), Fraction(1, 100))
    charge = Charge("count", "", Stated(""), Sensitivity.of(1), Fraction(400), Fraction(0))
    assert [c.epsilon for c in Unit("person", 2).charges([charge, charge])] == [Fraction(800)] * 2


def test_a_delta_grows_with_all_that_is_asked_also_what_has_none() -> None:
    """For two queries of 1/2, a person of 4 has a delta 1 + e + e**2 + e**3 times."""
    log = Variants.from_dict({("a",): 9})
    curator = Curator(log, unit=Unit("person", 4))
    curator.count("0.5")
    curator.partitions("0.5", "0.01")
    of_count, of_partitions = curator.guarantee().charges
    assert (of_count.delta, of_count.epsilon, of_partitions.epsilon) == (0, 2, 2)
    exact = float(curator.charges[1].delta) * sum(math.exp(i) for i in range(4))
    assert exact * (1 - 1e-12) <= of_partitions.delta <= exact * (1 + 1e-9)

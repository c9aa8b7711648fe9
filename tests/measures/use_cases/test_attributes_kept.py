"""Attributes that a release keeps: which are compared, and laws of their numbers."""

from __future__ import annotations

import datetime
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused, sentence
from rich.console import Console

import veilog
from veilog._language import spoken
from veilog.cli.shared.measures import use_cases_table
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, LIFECYCLE, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures.measure import Pair
from veilog.measures.use_cases import UseCaseOptions, judge
from veilog.measures.use_cases.attributes import (
    ATTRIBUTES,
    PARTS,
    ComparedAttribute,
    Values,
    compare_attributes,
    marginals,
    no_attributes,
    not_kept,
)
from veilog.messages import Message
from veilog.report.comparison import shown


def log(
    paths: list[str], cases: dict[str, list[Any]] | None = None, events: dict[str, list[Any]] | None = None
) -> EventLog:
    """Return cases as strings of one-letter activities, with their attributes."""
    rows = [(i, activity) for i, path in enumerate(paths) for activity in path]
    table = {
        CASE_INDEX: pa.array([i for i, _ in rows], pa.int64()),
        EVENT_INDEX: pa.array(range(len(rows)), pa.int64()),
        ACTIVITY: pa.array([activity for _, activity in rows], pa.string()).dictionary_encode(),
        TIMESTAMP: pa.array([None] * len(rows), TIMESTAMP_TYPE),
    }
    table |= {name: pa.array(values) for name, values in (events or {}).items()}
    named = {ACTIVITY: pa.array([str(i) for i in range(len(paths))])}
    named |= {name: pa.array(values) for name, values in (cases or {}).items()}
    return EventLog(pa.table(table), pa.table(named))


def of_cases(**attributes: list[Any]) -> EventLog:
    return log(["a"] * len(next(iter(attributes.values()))), attributes)


def scores(used: EventLog, judged: EventLog) -> Mapping[str, float | None]:
    return ATTRIBUTES.score(used, judged, UseCaseOptions())


def test_categories_by_hand() -> None:
    original = of_cases(ward=["A"] * 6 + ["B"] * 2)
    # 3/4 and 1/4 against 1/2, 1/4 and 1/4 of a ward that the original does not have.
    assert marginals(of_cases(ward=["A", "A", "B", "C"]), original) == {"case:ward": pytest.approx(0.75)}
    assert marginals(of_cases(ward=["C"]), original) == {"case:ward": 0.0}
    truth = of_cases(old=[True] * 3 + [False])
    assert marginals(of_cases(old=[True, False]), truth) == {"case:old": pytest.approx(0.75)}


def test_numbers_and_dates_by_hand() -> None:
    original = of_cases(age=[1.0, 2.0, 3.0, 4.0])
    # At 2 the original has a half of its cases, the other log all.
    assert marginals(of_cases(age=[0.0, 1.5, 2.0]), original) == {"case:age": pytest.approx(0.5)}
    days = [datetime.datetime(2024, 1, day, tzinfo=datetime.UTC) for day in (1, 2, 3, 4)]
    dated = of_cases(born=pa.array(days, TIMESTAMP_TYPE).to_pylist())
    assert marginals(of_cases(born=days[:3]), dated) == {"case:born": pytest.approx(0.75)}


def test_unknown_values_count() -> None:
    original = of_cases(age=[1.0, 2.0, None, None])
    assert marginals(original, original) == {"case:age": 1.0}
    # Half of them known, all of them known: and what is known alike, or not.
    assert marginals(of_cases(age=[1.0, 2.0]), original) == {"case:age": pytest.approx(0.5)}
    assert marginals(of_cases(age=[2.0, 2.0]), original) == {"case:age": pytest.approx(0.25)}
    third = of_cases(age=[None, None, 1.0])
    assert marginals(third, original) == {"case:age": pytest.approx((1 - (1 / 2 - 1 / 3)) * 0.5)}
    nothing = of_cases(age=[None] * 4)
    nothing = replace(nothing, cases=nothing.cases.set_column(1, "age", pa.array([None] * 4, pa.float64())))
    assert marginals(nothing, original) == {"case:age": 0.0}


def test_pairs_of_numbers_by_hand() -> None:
    original = of_cases(x=[1.0, 2.0, 3.0], y=[1.0, 2.0, 3.0])
    turned = of_cases(x=[1.0, 2.0, 3.0], y=[3.0, 2.0, 1.0])
    assert scores(turned, original)["pairs"] == pytest.approx(0.0)
    assert scores(turned, original)["shapes"] == 1.0
    # What is constant in the release goes with nothing: correlation 0 beside 1.
    assert scores(of_cases(x=[1.0, 2.0, 3.0], y=[2.0, 2.0, 2.0]), original)["pairs"] == pytest.approx(0.5)
    # Where no two cases know both, nothing is kept.
    assert scores(of_cases(x=[1.0, None, 3.0], y=[None, 2.0, 3.0]), original)["pairs"] == 0.0
    assert scores(original, of_cases(x=[1.0, None, 3.0], y=[None, 2.0, 3.0]))["pairs"] is None


def test_pairs_of_categories_by_hand() -> None:
    original = of_cases(x=["a", "a", "b", "b"] * 2, y=["u", "u", "v", "v"] * 2)
    apart = of_cases(x=["a", "a", "b", "b"], y=["u", "v", "u", "v"])
    assert scores(apart, original)["pairs"] == pytest.approx(0.5)
    # Rows that know neither are left out, else everything would go with being unknown.
    sparse = of_cases(x=["a", "a", "b", "b"] * 2 + [None] * 90, y=["u", "u", "v", "v"] * 2 + [None] * 90)
    padded = of_cases(x=["a", "a", "b", "b"] * 2 + [None] * 90, y=["u", "v", "u", "v"] * 2 + [None] * 90)
    assert scores(padded, sparse)["pairs"] == pytest.approx(0.5)


def test_a_number_beside_a_category_is_cut_at_the_originals_quantiles() -> None:
    ages, ward = [float(n) for n in range(20)], ["A"] * 8 + ["B"] * 12
    original = of_cases(age=ages, ward=ward)
    # Two ages are a part: 0 and 1, 2 and 3, ... What lies outside is in the outer parts.
    assert scores(of_cases(age=[age - age % 2 for age in ages], ward=ward), original)["pairs"] == 1.0
    assert scores(of_cases(age=[-9.0, *ages[1:-1], 99.0], ward=ward), original)["pairs"] == 1.0
    # Ten times as old: but for 0 and 10 all are in the last part. One of A is where it was, and two of B.
    tens = of_cases(age=[10 * age for age in ages], ward=ward)
    assert scores(tens, original)["pairs"] == pytest.approx(3 / 20)


def test_a_frequent_number_is_a_part_of_its_own() -> None:
    amounts, late = [0.0] * 12 + [1.0, 2.0, 3.0, 4.0] * 2, [False] * 12 + [True] * 8
    original = of_cases(amount=amounts, late=late)
    (amount,) = (each for each in compare_attributes(original, original) if each.ordered)
    codes = amount.codes[0]
    assert len({*codes[:12].tolist()}) == 1 and not {*codes[:12].tolist()} & {*codes[12:].tolist()}
    # A cent is not nothing, though no tenth of the values lies between.
    cent = of_cases(amount=[0.01] * 12 + amounts[12:], late=late)
    assert scores(cent, original)["pairs"] == pytest.approx(1 - 12 / 20)
    in_between = of_cases(amount=[5.0] * 3 + [7.0] * 14 + [9.0] * 3, late=late)
    (amount,) = (each for each in compare_attributes(in_between, in_between) if each.ordered)
    assert amount.codes[0].tolist() == [0] * 3 + [1] * 14 + [2] * 3


@pytest.mark.slow
@given(st.lists(st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_parts_have_about_as_many_values_of_the_original_each_and_none_is_empty(values: list[float]) -> None:
    column = Values(np.array([*values, np.nan, np.inf]))
    codes, _, size = ComparedAttribute("amount", True, True, column, None).codes
    assert codes[-2] == -1 and codes[-1] == size - 1 <= 20
    parts = [[v for v, code in zip(values, codes[:-2].tolist(), strict=True) if code == part] for part in range(size)]
    for part in parts:
        assert part and (len({*part}) == 1 or len(part) * PARTS < 2 * len(values))
    assert sorted(values) == [value for part in parts for value in sorted(part)]


def test_a_long_tail_hides_no_lost_dependence() -> None:
    """Quantiles show a lost dependence that tenths of the range hide in a long tail."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=1500)
    kinds = np.array(list("ABCDE"))[np.clip(np.floor((z + 2) / 0.8).astype(int), 0, 4)]
    own = {"amount": np.exp(2.5 * z).tolist(), "kind": kinds.tolist(), "due": (z > 0.5).tolist()}
    anew = {name: [values[i] for i in rng.permutation(1500)] for name, values in own.items()}
    original, shuffled = of_cases(**own), of_cases(**anew)
    told = judge(Pair(original, shuffled), ["attributes"])["attributes"]
    assert told.aspects["shapes"].value == pytest.approx(1.0)
    pairs = told.aspects["pairs"]
    assert told.grade == "poor" and pairs.value is not None and pairs.value < 0.6
    assert pairs.lowest is not None and pairs.lowest.names == ("case:amount", "case:kind")
    assert pairs.lowest.value < 0.4 < 0.9 < scores(original, of_cases(**own))["pairs"]


def test_the_least_alike_column_and_pair_are_named_beside_the_mean() -> None:
    wards, old = ["A", "A", "B", "B"] * 5, [True, False] * 10
    original = of_cases(ward=wards, old=old, sex=["f", "m"] * 10, lost=["x", "y"] * 10)
    released = of_cases(ward=["A"] * 20, old=old, sex=["f", "m"] * 10)
    told = judge(Pair(original, released), ["attributes"])["attributes"]
    shapes, pairs = told.to_json()["aspects"]["shapes"], told.to_json()["aspects"]["pairs"]
    # What the release lacks has 0 and its name elsewhere.
    assert shapes["lowest"] == {"names": ["case:ward"], "value": 0.5}
    assert pairs["lowest"] == {"names": ["case:ward", "case:old"], "value": 0.5}
    assert "lowest" not in told.to_json()["aspects"]["with_control_flow"]
    least = [(told.aspects["shapes"], "case:ward"), (told.aspects["pairs"], "case:ward × case:old")]
    assert told.remarks == (
        *(
            sentence("use-case-least-alike", number=judged.aspect.heading, names=names, value=0.5)
            for judged, names in least
        ),
        sentence("attributes-not-kept", names="case:lost"),
    )
    assert judge(Pair(original, original), ["attributes"])["attributes"].remarks == ()
    # Pages and the terminal show it, too; pages in their language.
    with spoken("de"):
        assert "case:ward × case:old (0,50 " in shown([told])[0].remark
    table = Console(file=io.StringIO(), width=150)
    table.print(use_cases_table({"attributes": told}))
    assert all(remark in table.file.getvalue() for remark in told.remarks)  # type: ignore[attr-defined]


def test_whose_a_case_is_counts_as_no_attribute() -> None:
    people = [f"p{i // 3}" for i in range(60)]
    original = log(["ab"] * 60, {"Patient": people, "ward": ["A", "B"] * 30})
    told = judge(Pair(original, log(["ab"] * 60, {"ward": ["A", "B"] * 30})), ["attributes"])["attributes"]
    assert told.aspects["shapes"].value == 1.0
    assert told.reason == sentence("attribute-of-persons", name="Patient")
    of_events = log(["ab"] * 60, {"ward": ["A", "B"] * 30}, {"Patient": [p for p in people for _ in "ab"]})
    assert "Patient" not in judge(Pair(of_events, of_events.only(np.arange(9))), ["attributes"])["attributes"].verdict
    assert [each.name for each in compare_attributes(of_events, of_events, "Patient")] == ["case:ward"]
    # In a log that has an attribute of many values, the user can name the column.
    other = judge(Pair(original, original), ["attributes"], UseCaseOptions(person="ward"))["attributes"]
    assert other.reason == sentence("attribute-of-persons", name="ward")
    assert judge(Pair(original, original), ["attributes"], UseCaseOptions(person=False))["attributes"].reason == ""
    assert marginals(original, original, "ward") == {"case:Patient": 1.0}
    with refused(ParameterError, "person-attribute-missing", name="wrd"):
        judge(Pair(original, original), ["attributes"], UseCaseOptions(person="wrd"))


def test_an_activity_has_its_own_values() -> None:
    paths = ["ab"] * 4
    original = log(paths, events={"by": ["x", "y"] * 4})
    assert scores(original, original)["by_activity"] == 1.0
    swapped = log(paths, events={"by": ["y", "x"] * 4})
    found = scores(swapped, original)
    assert (found["shapes"], found["by_activity"]) == (1.0, 0.0)
    half = log(paths, events={"by": ["x", "y", "x", "x"] * 2})
    assert scores(half, original)["by_activity"] == pytest.approx((1.0 + 0.5) / 2)
    # An activity that the release does not have counts as not kept.
    assert scores(log(["aa"] * 4, events={"by": ["x"] * 7 + ["y"]}), original)["by_activity"] == pytest.approx(
        0.875 / 2
    )


def test_an_attribute_goes_with_the_path_of_its_case() -> None:
    original = log(["ab", "ab", "ac", "ac"] * 3, {"old": [False, False, True, True] * 3})
    mixed = log(["ab", "ac", "ab", "ac"] * 3, {"old": [False, False, True, True] * 3})
    found = scores(mixed, original)
    # The last activity, b or not, c or not: half of the cases are elsewhere in each; a, which all have, is left out.
    assert found["shapes"] == 1.0
    assert found["with_control_flow"] == pytest.approx(0.5)
    assert found["by_activity"] is None
    assert found["pairs"] is None
    without_c = log(["ab", "ab", "ab", "ab"], {"old": [False, False, True, True]})
    assert scores(without_c, original)["with_control_flow"] == pytest.approx(0.5)


def test_an_event_attribute_with_one_value_in_each_case_is_one_of_cases() -> None:
    events = {"age": [None, 30, 30, 40, None, None] * 5, "by": ["x", "y", "y", "y", "x", "x"] * 5}
    original = log(["aab", "ab", "b"] * 5, events=events)
    age, by = compare_attributes(original, original)
    assert (age.name, age.of_cases, age.ordered) == ("age", True, True)
    assert np.array_equal(age.judged.array, [30.0, 40.0, np.nan] * 5, equal_nan=True)
    assert (by.name, by.of_cases) == ("by", False)
    # By case it does not matter how often the value is repeated.
    once = log(["aab", "ab", "b"] * 5, events={**events, "age": [30, None, None, None, 40, None] * 5})
    assert marginals(once, original)["age"] == 1.0


def test_names_and_what_never_varies_are_not_compared() -> None:
    size = 40
    original = of_cases(
        number=list(range(size)),
        remark=[f"text {i // 2}" for i in range(size)],
        country=["NL"] * size,
        weight=[float(n) for n in range(size)],
        ward=[f"W{n % 5}" for n in range(size)],
        flag=[True, False] * (size // 2),
    )
    assert [each.name for each in compare_attributes(original, original)] == ["case:weight", "case:ward", "case:flag"]
    field = pa.field("ward", pa.string(), metadata={"xes:type": "id"})
    place = original.cases.column_names.index("ward")
    typed = replace(original, cases=original.cases.set_column(place, field, original.cases.column("ward")))
    assert "case:ward" not in marginals(typed, typed)


def test_what_the_release_lacks_counts_as_nothing_kept_and_is_named() -> None:
    original = of_cases(ward=["A", "A", "B", "B"] * 2, old=[True, False] * 4)
    found = scores(of_cases(ward=["A", "B"]), original)
    assert marginals(of_cases(ward=["A", "B"]), original) == {"case:ward": 1.0, "case:old": 0.0}
    assert (found["shapes"], found["pairs"]) == (0.5, 0.0)
    numbers = of_cases(weight=[1.0, 2.0])
    assert marginals(of_cases(weight=["light", "heavy"]), numbers) == {"case:weight": 0.0}
    assert scores(log(["b"]), log(["ab", "b"] * 4, events={"by": ["x", "y", "x"] * 4}))["by_activity"] == 0.0


def test_a_life_cycle_that_every_written_event_has_is_no_attribute_of_the_release() -> None:
    original = log(["ab"] * 4, events={LIFECYCLE: ["start", "complete"] * 4, "by": ["x", "y"] * 4})
    written = log(["ab"] * 4, events={LIFECYCLE: ["complete"] * 8, "by": ["x", "y"] * 4})
    assert not_kept(written, original) == (LIFECYCLE,)
    assert not_kept(original, original) == ()


def test_the_judgement_names_what_was_not_kept_and_a_page_does_without_computing() -> None:
    ages = {"age": [1.0, 2.0, 3.0, 4.0] * 5, "ward": ["A", "B"] * 10}
    original = log(["ab"] * 20, ages, {"cost": [float(i % 7) for i in range(40)]})
    kept = log(["ab"] * 20, {"age": ages["age"], "ward": ages["ward"]})
    told = judge(Pair(original, kept), ["attributes"])["attributes"]
    assert told.reason == sentence("attributes-not-kept", names="cost") and told.chief is not None
    assert told.to_json()["reason"] == told.reason
    assert judge(Pair(original, original), ["attributes"])["attributes"].reason == ""
    text = replace(kept, cases=kept.cases.set_column(1, "age", pa.array(["old"] * 20)))
    assert "case:age" in judge(Pair(original, text), ["attributes"])["attributes"].reason, "text is no number"
    none = no_attributes(original, log(["ab"] * 20))
    assert none is not None and none.reasons[0].code == "attributes-not-in-release" and none.reason in none.verdict
    assert "case:ward, cost" in none.reason
    assert no_attributes(log(["ab"] * 20), log(["ab"] * 20)) is None
    many = {f"n{i}": [1.0, 2.0] * 10 for i in range(35)}
    lacking = no_attributes(log(["ab"] * 20, many), log(["ab"] * 20))
    assert lacking is not None and lacking.reasons[-1].code == "attributes-not-kept-more"


def test_a_name_with_a_space_is_found_again_in_xes(tmp_path: Path) -> None:
    original = log(["ab"] * 4, events={"resource country": ["x", "y"] * 4})
    veilog.write(original, tmp_path / "log.xes")
    again = veilog.read(tmp_path / "log.xes")
    assert marginals(again, original) == {"resource country": 1.0}
    assert marginals(original, again) == {again.events.column_names[4]: 1.0}


@pytest.mark.slow
def test_equal_logs_have_ones_and_the_order_of_cases_does_not_show() -> None:
    original, other = hospital(cases=300, seed=1), hospital(cases=200, seed=2)
    assert list(scores(original, original).values()) == pytest.approx([1.0] * 4)
    mixed = other.only(np.random.default_rng(3).permutation(200))
    assert scores(mixed, original) == pytest.approx(scores(other, original), rel=1e-12)
    assert all(0 < value <= 1 for value in scores(other, original).values() if value is not None)


@pytest.mark.slow
def test_shapes_know_less_than_pairs() -> None:
    """Values drawn anew for each attribute keep the shapes, not what goes with what."""
    original = hospital(cases=400, seed=1)
    rng = np.random.default_rng(1)
    cases = original.cases
    for place, name in enumerate(cases.column_names):
        if name != ACTIVITY:
            cases = cases.set_column(place, name, cases.column(name).take(pa.array(rng.permutation(400))))
    result = judge(Pair(original, replace(original, cases=cases)), ["attributes"])["attributes"]
    found = {name: one.value for name, one in result.aspects.items()}
    assert found["shapes"] == pytest.approx(1.0)
    assert found["pairs"] is not None and found["pairs"] < 0.99
    assert found["with_control_flow"] is not None and found["with_control_flow"] < 0.99
    assert result.chief is not None and result.chief.aspect.name == "pairs"


def test_logs_without_attributes_say_so() -> None:
    plain = log(["ab", "b"])
    result = judge(Pair(plain, plain), ["attributes"])["attributes"]
    assert result.grade == "not judged"
    assert result.reason == str(Message("use-case-without-attributes"))
    result = judge(Pair(of_cases(ward=["A", "B"] * 3), Variants.from_dict({("a",): 2})), ["attributes"])["attributes"]
    assert result.reason == str(Message("measure-of-variants-only", name="released"))

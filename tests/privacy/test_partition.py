"""Subsets: each case is in exactly one of a rule, by itself, and releases name it."""

import calendar
import datetime
import itertools
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import openly
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from test_stored_questions import in_pieces

import veilog
from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.synthetic.hospital import hospital
from veilog.messages import Message
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.partition import NONE, Partition
from veilog.privacy.unit import ONE_CASE, Unit, bound_units

DAY = datetime.timedelta(days=1)
WARDS = ["A", "B", "none", None]


@dataclass(frozen=True)
class Case:
    """Case of these tests: day (or None) and ward of each event, and its own ward."""

    events: tuple[tuple[datetime.datetime | None, str | None], ...]
    ward: str | None = None


def log(cases: list[Case]) -> EventLog:
    """Return the log of these cases; the ward is an attribute of both levels."""
    rows = [(i, *event) for i, case in enumerate(cases) for event in case.events]
    events = {
        CASE_INDEX: pa.array([i for i, _, _ in rows], pa.int64()),
        EVENT_INDEX: pa.array(range(len(rows)), pa.int64()),
        ACTIVITY: pa.array(["a" for _ in rows], pa.string()).dictionary_encode(),
        TIMESTAMP: pa.array([time for _, time, _ in rows], TIMESTAMP_TYPE),
        "ward": pa.array([ward for _, _, ward in rows], pa.string()),
    }
    own = {ACTIVITY: pa.array(map(str, range(len(cases)))), "ward": pa.array([c.ward for c in cases], pa.string())}
    return EventLog(pa.table(events), pa.table(own))


def names(found: object) -> list[str]:
    assert isinstance(found, EventLog | StoredLog)
    return [name for piece in found.pieces() for name in piece.cases.column(ACTIVITY).to_pylist()]


TIMES = st.none() | st.datetimes(datetime.datetime(2023, 11, 1), datetime.datetime(2024, 4, 1)).map(
    lambda t: t.replace(tzinfo=datetime.UTC)
)
EVENTS = st.tuples(TIMES, st.sampled_from(WARDS))
CASES = st.builds(Case, st.lists(EVENTS, max_size=3).map(tuple), st.sampled_from([None, None, *WARDS]))


def subset_of(rule: str, case: Case) -> str:
    """Return the subset of a case, found without arrays."""
    if rule == "ward":
        told = {ward for _, ward in case.events}
        return case.ward or (told.pop() if len(told) == 1 else None) or NONE
    known = [time for time, _ in case.events if time is not None]
    if not known:
        return NONE
    start = min(known)
    year, week, _ = start.isocalendar()
    return {
        "month": f"{start:%Y-%m}",
        "week": f"{year}-W{week:02}",
        "quarter": f"{start.year}-Q{(start.month + 2) // 3}",
        "year": str(start.year),
    }[rule]


RULES = st.sampled_from(["month", "week", "quarter", "year", "ward"])


@pytest.mark.slow
@given(cases=st.lists(CASES, max_size=8), rule=RULES)
def test_the_subsets_of_a_rule_are_disjoint_and_together_they_are_the_log(cases: list[Case], rule: str) -> None:
    whole = log(cases)
    expected = [subset_of(rule, case) for case in cases]
    found = {value: names(Partition.of(f"{rule}={value}").of_log(whole)) for value in {*expected, NONE}}
    assert found == {value: [str(i) for i, v in enumerate(expected) if v == value] for value in found}
    assert Counter(name for subset in found.values() for name in subset) == Counter(names(whole))


@pytest.mark.slow
@given(cases=st.lists(CASES, max_size=6), one=CASES, rule=RULES, place=st.integers(0, 6))
def test_a_case_more_changes_one_subset_by_that_case(cases: list[Case], one: Case, rule: str, place: int) -> None:
    more = [*cases[:place], one, *cases[place:]]
    for value in {subset_of(rule, case) for case in more} | {NONE}:
        subset = Partition.of(f"{rule}={value}")
        held = [cases[int(name)] for name in names(subset.of_log(log(cases)))]
        now = [more[int(name)] for name in names(subset.of_log(log(more)))]
        assert Counter(now) == Counter(held) + Counter([one] if value == subset_of(rule, one) else [])


def test_where_an_attribute_is_changes_no_subset() -> None:
    """An attribute of cases and one of events that agrees give the same subset.

    An attribute that differs within a case gives none.
    """
    rows = [("1", "A"), ("1", "A"), ("2", "B"), ("3", "A")]
    frame = pd.DataFrame(
        [{"case": c, "activity": "a", "time": f"2024-01-0{i + 1}", "case:ward": w} for i, (c, w) in enumerate(rows)]
    )
    other = pd.concat([frame, frame.tail(1).assign(**{"case:ward": "B"})])  # case 3 has two wards
    other = other.rename(columns={"case:ward": "ward"})
    of_cases, of_events = (veilog.read(f, case="case", activity="activity", timestamp="time") for f in (frame, other))
    assert "ward" in of_cases.cases.column_names and "ward" in of_events.events.column_names
    assert names(Partition.of("ward=A").of_log(of_cases)) == ["1", "3"]
    assert names(Partition.of("case:ward=A").of_log(of_events)) == ["1"], "case 3 has no single one"
    assert names(Partition.of("ward=none").of_log(of_events)) == ["3"]
    assert names(Partition.of("ward=B").of_log(of_cases)) == names(Partition.of("ward=B").of_log(of_events)) == ["2"]


@pytest.mark.parametrize(
    ("values", "text", "held"),
    [([3, 4, None], "3", ["0"]), ([3.0, 3.5, float("nan")], "3", ["0"]), ([True, False, None], "true", ["0"]),
     ([3.0, 3.5, float("nan")], "none", ["2"]), ([3.0, 3.5, 1e300], "3.5", ["1"])],
)  # fmt: skip
def test_a_number_is_spelled_alike_whatever_else_its_column_holds(
    values: list[object], text: str, held: list[str]
) -> None:
    start = log([Case(((None, None),)) for _ in values])
    found = replace(start, cases=start.cases.append_column("room", pa.array(values)))
    assert names(Partition.of(f"room={text}").of_log(found)) == held


@pytest.mark.slow
def test_a_stored_log_has_the_subsets_of_the_log_in_memory() -> None:
    whole = _hospital()
    stored = in_pieces(whole, {9, 30, 31, 160})
    for text in ("month=2024-01", "week=2024-W02", "urgency=2", "org:resource=none", "month=1999-01"):
        subset = Partition.of(text)
        assert names(subset.of_log(stored)) == names(subset.of_log(whole)), text
        assert subset.of_log(stored).variants == subset.of_log(whole).variants


def _hospital() -> EventLog:
    from veilog.logs.synthetic.hospital import hospital

    return hospital(200, seed=4)


def test_the_persons_of_a_subset_are_bounded_in_it() -> None:
    cases = [Case(((datetime.datetime(2024, month, 1, tzinfo=datetime.UTC), "A"),), "p") for month in (1, 1, 1, 2, 2)]
    held = bound_units(log(cases), Unit("person", 2, "ward"), noise.seeded(1), Partition.of("month=2024-01"))
    assert held.variants.cases == 2 and set(names(held.log)) <= {"0", "1", "2"}
    nobody = bound_units(
        in_pieces(_hospital(), {5}), Unit("person", 2, "urgency"), noise.seeded(1), Partition.of("year=1999")
    )
    assert nobody.variants.cases == 0


@pytest.mark.parametrize("unit", [Unit("person", 2, "ward"), Unit("person", 2), ONE_CASE], ids=["named", "any", "case"])
def test_a_subset_says_whether_units_are_remembered_in_it(unit: Unit) -> None:
    january = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    cases = [Case(((january, "A"),), person) for person in ("p", "q", "p", "q")]
    for new in (None, np.array([0, 3])):
        held = bound_units(log(cases), unit, noise.seeded(1), Partition.of("month=2024-01"), new)
        assert held.remembered == (new is not None)
        assert names(held.log) == (["0", "1", "2", "3"] if new is None else ["0", "3"])
        codes = {condition.code for condition in held.conditions}
        assert ("units-keep-their-names" in codes) == (new is not None)


@pytest.mark.parametrize(
    "text",
    ["", "month", "month=", "=A", "month=2024", "month=2024-13", "month=2024-1", "week=2024-W54", "quarter=2024-Q5",
     "year=24", "year=0000", "year=9999", "concept:name=1", "case:=A", "time:timestamp=1", "ward=A\nB",
     "ward=" + 300 * "A"],
)  # fmt: skip
def test_what_is_no_subset_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        Partition.of(text)


def test_one_attribute_is_one_rule_however_it_is_spelled() -> None:
    assert Partition.of("case:ward=A") == Partition.of(" ward=A") == Partition("ward", "A")
    of_attribute = Partition.of("case:month=5")
    assert not of_attribute.of_time and Partition.of(str(of_attribute)) == of_attribute
    assert Partition.of("case:case:x=1") == Partition.of(str(Partition.of("case:case:x=1"))) != Partition.of("x=1")
    assert Partition.of("note=a=b").value == "a=b"


@pytest.mark.slow
def test_every_day_is_in_one_month_week_quarter_and_year() -> None:
    """Every day is in one subset over a leap year, at its first and last microsecond."""
    days = [datetime.datetime(2023, 12, 20, tzinfo=datetime.UTC) + i * DAY for i in range(400)]
    times = [time for day in days for time in (day, day + DAY - datetime.timedelta(microseconds=1))]
    cases = [Case(((time, None),)) for time in times]
    whole = log(cases)
    for rule in ("month", "week", "quarter", "year"):
        values = {subset_of(rule, case) for case in cases}
        assert sum(len(names(Partition.of(f"{rule}={value}").of_log(whole))) for value in values) == len(cases)
        for value in values:
            assert {subset_of(rule, cases[int(n)]) for n in names(Partition.of(f"{rule}={value}").of_log(whole))} == {
                value
            }
    assert calendar.isleap(2024)


def test_a_subset_of_variants_is_refused_in_words() -> None:
    variants = veilog.Variants.from_dict({("a",): 3})
    with refused(ParameterError, "subset-of-variants"):
        openly.release(variants, "laplace", epsilon=1, subset="month=2024-01")
    with refused(ParameterError, "subset-of-variants"):
        bound_units(variants, ONE_CASE, noise.seeded(1), Partition.of("month=2024-01"))


def test_an_attribute_that_is_not_there_or_subsets_nothing_is_refused() -> None:
    whole = log([Case(((None, "A"),))])
    with refused(ParameterError, "subset-attribute-missing", rule="room"):
        Partition.of("room=1").of_log(whole)
    when = replace(whole, cases=whole.cases.append_column("when", pa.array([0], TIMESTAMP_TYPE)))
    with refused(ParameterError, "subset-attribute-type-unsuited"):
        Partition.of("when=1").of_log(when)


def test_a_release_and_what_is_written_of_it_say_of_which_cases_it_is(tmp_path: Path) -> None:
    whole = _hospital()
    released = openly.release(whole, "laplace", epsilon=3, subset="month=2024-01", seed=1)
    assert released.guarantee.subset == Partition("month", "2024-01")
    told = released.guarantee.to_json()
    assert told["subset"] == "month=2024-01"
    assert str(Message("cases-of-period", period="2024-01")) in str(told["neighbours"])
    released.save(tmp_path / "out.xes")
    text = (tmp_path / "out.xes").read_text()
    cases = Message("cases-of-period", period="2024-01")
    assert 'key="privacy:subset" value="month=2024-01"' in text and str(cases) in text
    assert released.remarks[0] == Message("only-looked", in_words=cases)
    assert "subset" not in openly.release(whole, "laplace", epsilon=3, seed=1).guarantee.to_json()


def test_a_subset_by_an_attribute_takes_the_columns_for_granted() -> None:
    whole = replace(_hospital(), attributes_read_together=(Message("one column reads another"),))
    by_attribute, by_time = (
        {
            c.code
            for c in Curator(bound_units(whole, ONE_CASE, noise.seeded(1), Partition.of(text))).guarantee().conditions
        }
        for text in ("urgency=2", "month=2024-01")
    )
    assert by_attribute - by_time == {"columns-from-log", "columns-read-together"}


@pytest.mark.slow
def test_a_release_of_a_subset_is_that_of_a_log_of_its_cases() -> None:
    """A release of a subset equals one of a log of its cases with equal public facts.

    The facts that the owner takes from the log are those of all of it.
    """
    whole = _hospital()
    subset = Partition.of("urgency=2")
    public = veilog.Domain(whole.variants.labels, int(whole.variants.lengths.max()))
    alone = openly.release(subset.of_log(whole), "laplace", epsilon=1, seed=5, domain=public)
    assert openly.release(whole, "laplace", epsilon=1, seed=5, subset=subset).variants == alone.variants
    stored = openly.release(in_pieces(whole, {50, 120}), "laplace", epsilon=1, seed=5, subset=subset, times="0.3")
    assert stored.log.cases.num_rows == stored.variants.cases and stored.details is not None
    assert 0 < subset.of_log(whole).number_of_cases < whole.number_of_cases


@pytest.mark.slow
def test_a_span_of_days_is_its_days() -> None:
    log = hospital(80, seed=2)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=n) for n in range(0, 400, 40)]
    spans = [Partition.of(f"began={a}..{b}") for a, b in itertools.pairwise(days)]
    counts = [span.of_log(log).number_of_cases for span in spans]
    assert sum(counts) == Partition.of(f"began={days[0]}..{days[-1]}").of_log(log).number_of_cases
    january = Partition.of("began=2024-01-01..2024-02-01").of_log(log).number_of_cases
    assert january == Partition.of("month=2024-01").of_log(log).number_of_cases > 0
    assert spans[0].of_time and spans[0].in_words == Message("cases-between", first="2024-01-01", end="2024-02-10")
    assert Partition.of("case:began=x").rule == "case:began"


@pytest.mark.parametrize("text", ["began=none", "began=2024-03-01", "began=20240301..20240302", "began=a..b..c"])
def test_what_is_no_span_of_days_is_refused(text: str) -> None:
    with refused(ParameterError, "subset-value-invalid"):
        Partition.of(text)


SPELLED = ("7", "7.0", "7.50", "True", "nan", "007", "A", "-0", "1.5e+3", "9007199254740993")
BESIDE = ("ICU", "3", "2.5", "false", "")


@pytest.mark.slow
@pytest.mark.parametrize("spelled", SPELLED)
@pytest.mark.parametrize("column", ["ward", "case:ward"])
def test_which_subset_a_case_is_in_follows_from_no_other_case(tmp_path: Path, spelled: str, column: str) -> None:
    """No other case decides a case's subset, though columns make 7.0 a number or text."""
    path = tmp_path / "log.csv"

    def of_case(*others: str) -> dict[str, bool]:
        rows = "".join(f"x{i},a,2024-01-01,{ward}\n" for i, ward in enumerate(others))
        path.write_text(f"case,activity,time,{column}\nc,a,2024-01-01,{spelled}\n{rows}")
        found = veilog.read(path)
        subsets = [*{str(Partition.of(f"ward={text}")) for text in SPELLED if text != "nan"}, "ward=none"]
        return {subset: "c" in names(Partition.of(subset).of_log(found)) for subset in subsets}

    alone = of_case()
    assert sum(alone.values()) == 1
    for others in (*((other,) for other in BESIDE), ("1", "ICU"), ("1", "2.5")):
        assert of_case(*others) == alone, others


def test_one_value_is_one_subset_however_it_is_spelled() -> None:
    assert Partition.of("ward=7.0") == Partition.of("ward=7") != Partition.of("ward=07")
    assert Partition.of("ward=True") == Partition.of("ward=true")
    assert str(Partition.of("ward=7.50")) == "ward=7.5"
    with refused(ParameterError, "subset-name-invalid"):
        Partition.of("ward=nan")


@pytest.mark.parametrize(
    "other", ["<string key='ward' value='ICU'/>", "<date key='ward' value='2024-01-01T00:00:00Z'/>"]
)
def test_an_attribute_of_several_types_subsets_cases_by_all_of_them(tmp_path: Path, other: str) -> None:
    def trace(name: str, ward: str) -> str:
        return (
            f"<trace><string key='concept:name' value='{name}'/>{ward}<event><string key='concept:name' value='a'/>"
            "<date key='time:timestamp' value='2024-01-01T00:00:00Z'/></event></trace>"
        )

    path = tmp_path / "log.xes"
    seven, beside = trace("c", "<int key='ward' value='7'/>"), trace("x", other)
    for traces in (seven, seven + beside, beside + seven):
        path.write_text(f"<log>{traces}</log>")
        found = veilog.read(path)
        assert names(Partition.of("ward=7").of_log(found)) == ["c"]
        assert "c" not in names(Partition.of("ward=none").of_log(found))

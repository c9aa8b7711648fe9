"""TLKC: suppression, properties of its releases, and the published figures."""

import datetime
import functools
from pathlib import Path

import numpy as np
import openly
import pytest
from group_tools import log_of, patterns_of, traces, traces_of, violations
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

import veilog
import veilog.logs.files
from veilog.errors import OutputError, ParameterError
from veilog.logs.eventlog import ACTIVITY, TIMESTAMP, EventLog
from veilog.messages import Message
from veilog.methods.tlkc import BackgroundKnowledge, Elements, ElementTraces, TlkcSettings, levels, maximal_patterns

BACKGROUNDS = ("set", "multiset", "sequence", "relative")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

NOTHING_LEFT = {"tlkc-all-events-suppressed", "tlkc-no-confidence-reached", "tlkc-k-above-largest"}


def released(log: EventLog, **parameters: object) -> veilog.Release:
    return openly.release(log, "tlkc", **parameters)


@pytest.mark.nightly
@given(
    traces,
    st.sampled_from(("set", "multiset", "sequence")),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from(("published", "cost")),
)
@settings(max_examples=120)
def test_no_release_has_a_pattern_that_too_few_cases_match(
    log: list[tuple[str, ...]], background: str, k: int, known: int, score: str
) -> None:
    if k > len(log):
        return
    try:
        release = released(log_of(log), k=k, l=known, background=background, score=score)
    except ParameterError as error:
        assert error.code in NOTHING_LEFT
        return
    assert violations(traces_of(release.log), background, k, known) == []


@pytest.mark.slow
@given(traces, st.sampled_from(BACKGROUNDS), st.integers(1, 3), st.integers(1, 3), st.data())
@settings(max_examples=80)
def test_no_pattern_of_a_release_tells_a_sensitive_value_too_surely(
    log: list[tuple[str, ...]], background: str, k: int, known: int, data: st.DataObject
) -> None:
    values = data.draw(st.lists(st.sampled_from(["x", "y", None]), min_size=len(log), max_size=len(log)))
    if k > len(log) or len({v for v in values if v}) * 2 > sum(v is not None for v in values) or not any(values):
        return
    given_log = log_of(log, cases={"disease": values})
    try:
        release = released(given_log, k=k, l=known, background=background, c=0.7, sensitive="disease").log
    except ParameterError as error:
        assert error.code in NOTHING_LEFT
        return
    told = release.cases.column("disease").to_pylist()
    rows = traces_of(release)
    if background == "relative":
        times = release.events.column(TIMESTAMP).to_pylist()
        rows = [tuple(zip(t, times[a:], strict=False)) for t, a in zip(rows, release.offsets, strict=False)]
        background = "sequence"
    assert violations(rows, background, k, known, told, 0.7) == []


@pytest.mark.slow
@given(traces, st.sampled_from(("set", "sequence")), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=100)
def test_minimal_violating_and_maximal_frequent_patterns_are_those_of_the_definition(
    log: list[tuple[str, ...]], background: str, k: int, known: int
) -> None:
    codes = [[ord(a) - ord("a") for a in trace] for trace in log]
    elements = Elements(4, background == "sequence", () if background == "sequence" else (-1,) * 4)
    rows = [sorted(set(t)) if background == "set" else t for t in codes]
    table = ElementTraces(
        np.array([c for t in rows for c in t], dtype=np.int64),
        np.cumsum([0, *(len(t) for t in rows)]),
        np.ones(len(rows), dtype=np.int64),
        np.zeros((len(rows), 0), dtype=np.int64),
    )
    bad = set(violations(codes, background, k, known))
    minimal = {p for p in bad if not any(set(patterns_of(p, background, s)) & bad for s in range(1, len(p)))}
    found = [level.violating for level in levels(elements, table, k=k, largest=known)]
    assert {tuple(p) for part in found for p in part.tolist()} == minimal

    having = {p for t in codes for s in range(1, 6) for p in patterns_of(t, background, s)}
    frequent = {p for p in having if sum(p in patterns_of(t, background, len(p)) for t in codes) >= k}
    longest = {p for p in frequent if not any(p in patterns_of(q, background, len(p)) for q in frequent if q != p)}
    patterns, complete = maximal_patterns(elements, table, k)
    assert complete
    assert {tuple(p) for part in patterns for p in part.tolist()} == longest


@pytest.mark.slow
@given(traces, st.sampled_from(("set", "multiset", "sequence")), st.integers(2, 4))
@settings(max_examples=60)
def test_a_search_in_several_rounds_leaves_nothing_that_violates(
    log: list[tuple[str, ...]], background: str, k: int
) -> None:
    """A search in several rounds, as for too many patterns, leaves no violation."""
    if k > len(log):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("veilog.methods.tlkc.levels", functools.partial(levels, most_states=12))
        try:
            release = released(log_of(log), k=k, l=3, background=background)
        except ParameterError as error:
            assert error.code in {*NOTHING_LEFT, "tlkc-patterns-too-many"}
            return
    assert violations(traces_of(release.log), background, k, 3) == []


def test_the_element_with_the_highest_score_leaves_first() -> None:
    """c is in both violating patterns and in no frequent one, so it goes first."""
    log = log_of([("a", "b")] * 8 + [("a", "c")] * 2 + [("b", "c")] * 2 + [("c",)] * 4)
    release = released(log, k=3, l=2, background="set")
    assert set(release.variants.to_dict()) == {("a", "b"), ("a",), ("b",)}


def test_equal_scores_are_decided_as_published_or_for_the_rare_one() -> None:
    log = log_of([("a",)] * 9 + [("b",)] * 5 + [("a", "b")])
    assert set(released(log, k=3, background="set", frequency=0.9).variants.to_dict()) == {("b",)}
    assert set(released(log, k=3, background="set", frequency=0.9, ties="rare").variants.to_dict()) == {("a",)}


def test_by_cost_nothing_is_suppressed_that_turns_out_not_to_be_needed() -> None:
    """By cost the release keeps a and e, or b, c and d: nothing goes in vain."""
    log = [("a", x) for x in "bcd"] * 2 + [("a",)] * 5 + [(x, y) for x, y in [("b", "e"), ("c", "e"), ("d", "e")]] * 2
    log += [("e",)] * 9 + [(x,) for x in "bcd"] * 3
    release = released(log_of(log), k=3, l=2, background="set", score="cost")
    assert set(release.variants.labels) in ({"a", "e"}, {"b", "c", "d"})
    assert violations(traces_of(release.log), "set", 3, 2) == []


def test_of_a_multiset_an_occurrence_leaves_with_all_later_ones() -> None:
    log = log_of([("a", "b")] * 5 + [("a", "b", "a", "a")])
    assert released(log, k=3, l=2, background="multiset").variants.to_dict() == {("a", "b"): 6}


def test_nobody_knows_more_occurrences_than_l() -> None:
    log = log_of([("a", "a")] * 5 + [("a",) * 6])
    assert released(log, k=3, l=2, background="multiset").variants.to_dict() == {("a", "a"): 5, ("a",) * 6: 1}


def test_cases_without_any_event_left_leave_the_log() -> None:
    release = released(log_of([("a",)] * 5 + [("b",)]), k=2, background="set")
    assert release.variants.to_dict() == {("a",): 5}


@pytest.mark.slow
@given(traces, st.sampled_from(("set", "multiset", "sequence")))
@settings(max_examples=60)
def test_the_largest_k_in_the_message_leaves_something_and_one_more_does_not(
    log: list[tuple[str, ...]], background: str
) -> None:
    most = max(sum(a in trace for trace in log) for a in "abcd")
    if most == 0 or most == len(log):
        return
    with refused(ParameterError, "tlkc-k-above-largest", largest=most):
        released(log_of(log), k=most + 1, l=2, background=background)
    assert released(log_of(log), k=most, l=2, background=background).variants.events > 0


# What leaves ----------------------------------------------------------------------------------------------------------

RICH = log_of(
    [("a", "b")] * 6,
    events={
        "lifecycle:transition": ["start", "complete"] * 6,
        "comment": [f"free text {i}" for i in range(12)],
        "crp": [1.0, 5.0, 2.0, 6.0, 3.0, 7.0, 4.0, 8.0, 3.0, 9.0, 2.0, None],
        "age": [30, None, 40, None, 50, None, 30, None, 90, None, 35, None],
        "ward": ["n", "s"] * 6,
    },
    cases={"sex": ["f", "m", "f", "m", None, "f"], "name": [f"name {i}" for i in range(6)]},
)


def test_only_what_the_model_speaks_about_leaves() -> None:
    log = released(RICH, k=2, background="set").log
    assert log.events.column_names == ["case:index", "event:index", ACTIVITY, TIMESTAMP, "lifecycle:transition"]
    assert log.cases.column_names == [ACTIVITY]
    assert set(log.cases.column(ACTIVITY).to_pylist()) == {str(i + 1) for i in range(6)}


def test_what_is_not_released_is_said() -> None:
    (dropped,) = [r.values["dropped"] for r in released(RICH, k=2).remarks if "dropped" in r.values]
    assert all(name in dropped for name in ("comment", "crp", "age", "ward", "sex", "name"))


def test_sensitive_attributes_leave_numbers_as_intervals() -> None:
    log = released(RICH, k=2, background="set", sensitive="sex,crp,age,ward").log
    assert sorted(log.cases.column("sex").to_pylist(), key=str) == [None, "f", "f", "f", "m", "m"]
    assert sorted(log.cases.column("age").to_pylist()) == ["high", "high", "low", "low", "middle", "middle"] or set(
        log.cases.column("age").to_pylist()
    ) <= {"low", "middle", "high"}
    assert set(log.events.column("crp").to_pylist()) == {"low", "middle", "high", None}
    assert set(log.events.column("ward").to_pylist()) == {"n", "s"}


def test_attributes_of_cases_and_of_events_may_share_a_name() -> None:
    log = log_of([("a", "b")] * 4, events={"ward": ["n", None] * 4}, cases={"ward": ["x", "y"] * 2})
    release = released(log, k=2, sensitive="ward,case:ward", c=1).log
    assert set(release.events.column("ward").to_pylist()) == {"n", None}
    assert sorted(release.cases.column("ward").to_pylist()) == ["x", "x", "y", "y"]


def test_numbers_of_a_declared_range_are_its_quarters() -> None:
    domain = veilog.Domain(attributes={"age": (0, 100)})
    log = openly.release(RICH, "tlkc", k=2, background="set", sensitive="age", domain=domain).log
    assert set(log.cases.column("age").to_pylist()) == {"25 to 50", "50 to 75", "75 to 100"}


def test_suppressed_labels_are_nowhere_in_the_release() -> None:
    """Suppressed labels are nowhere in a release, nor in a column's dictionary."""
    log = released(log_of([("a",)] * 5 + [("secret",)]), k=2, background="set").log
    column = log.events.column(ACTIVITY).combine_chunks()
    assert "secret" not in str(getattr(column, "dictionary", column))


def test_undeclared_activities_do_not_leave() -> None:
    log = log_of([("a", "b")] * 5)
    release = openly.release(log, "tlkc", k=2, background="set", domain=veilog.Domain.of(["a"]))
    assert release.variants.to_dict() == {("a",): 5}


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("seconds", [0, 5445]), ("minutes", [0, 5400]), ("hours", [0, 3600]), ("days", [0, 0])],
)
def test_times_are_whole_units_since_the_case_began(unit: str, expected: list[int]) -> None:
    log = released(log_of([("a", "b")] * 3, minutes=[[0, 90.75]] * 3), k=2, time=unit).log
    passed = [(t - EPOCH).total_seconds() for t in log.events.column(TIMESTAMP).to_pylist()]
    assert passed == expected * 3


def test_original_times_leave_when_asked_for_and_it_is_said() -> None:
    log = log_of([("a", "b")] * 3)
    release = released(log, k=2, time="original")
    assert sorted(release.log.events.column(TIMESTAMP).to_pylist()) == log.events.column(TIMESTAMP).to_pylist()
    assert "tlkc-times-of-log" in [remark.code for remark in release.remarks]


def test_times_known_to_the_attacker_count() -> None:
    """Known relative times make two of five cases too few for k = 3."""
    log = log_of([("a", "b")] * 5, minutes=[[0, 60]] * 3 + [[0, 120]] * 2)
    assert released(log, k=3, background="sequence").variants.to_dict() == {("a", "b"): 5}
    assert released(log, k=3, background="relative").variants.to_dict() == {("a", "b"): 3, ("a",): 2}


def test_the_guarantee_names_the_models_and_no_epsilon() -> None:
    release = released(RICH, k=2, background="set", c=0.9, sensitive="sex")
    guarantee = release.guarantee
    assert (guarantee.status, guarantee.epsilon, guarantee.delta) == ("none", None, None)
    assert [s.model for s in guarantee.statements] == ["k-anonymity (TLKC)", "confidence (TLKC)"]
    assert all(statement.checked for statement in guarantee.statements)
    facts = {a.key: a.value for a in release.log.metadata.attributes[0].children[0].children}
    assert facts["privacy:type"] == "k-anonymity (TLKC), confidence (TLKC)"
    assert facts["privacy:holds-a"] == str(release.guarantee.statements[0].holds)
    assert release.guarantee.statements[0].holds.values["n"] == 2
    assert not any("epsilon" in key for key in facts)


def test_a_release_that_fails_its_check_is_never_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def everything(known: BackgroundKnowledge, bounds: TlkcSettings, remark: object) -> np.ndarray:
        return np.ones(len(known.label), dtype=np.bool_)

    monkeypatch.setattr("veilog.methods.tlkc.remaining_events", everything)
    with refused(OutputError, "release-check-failed", what=Message("groups-too-few-match", number=1, pattern="<b>")):
        released(log_of([("a",)] * 5 + [("b",)]), k=2, background="set").save(tmp_path / "out.xes")
    assert list(tmp_path.iterdir()) == []


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "code", "values"),
    [
        ({"k": 7}, "tlkc-k-above-log", {"k": 7, "cases": 6}),
        ({"c": 0.5}, "tlkc-confidence-without-attribute", {"c": 0.5}),
        ({"c": 1.5}, "setting-too-large", {"name": "c"}),
        ({"k": 0}, "setting-too-small", {"name": "k"}),
        ({"l": 0}, "setting-too-small", {"name": "l"}),
        ({"frequency": 0}, "setting-too-small", {"name": "frequency"}),
        ({"background": "rumour"}, "setting-value-not-allowed", {"name": "background", "value": "rumour"}),
        ({"background": "relative", "time": "original"}, "tlkc-times-not-coarsened", {}),
        ({"sensitive": "name"}, "sensitive-values-too-distinct", {"name": "name", "distinct": 6, "owners": "cases"}),
        (
            {"sensitive": "comment"},
            "sensitive-values-too-distinct",
            {"name": "comment", "distinct": 12, "owners": "events"},
        ),
        ({"sensitive": "nonsense"}, "pripel-attribute-missing", {"name": "nonsense"}),
        ({"sensitive": " , "}, "sensitive-list-empty", {}),
        ({"times": 0.5}, "method-extras-not-possible", {"name": "tlkc"}),
    ],
)
def test_senseless_requests_are_refused(parameters: dict[str, object], code: str, values: dict[str, object]) -> None:
    with refused(ParameterError, code, **values):
        released(RICH, **{"k": 2, **parameters})


def test_an_attribute_of_mixed_types_is_refused(tmp_path: Path) -> None:
    event = '<event><string key="concept:name" value="a"/><{kind} key="x" value="{value}"/></event>'
    text = "".join(
        f'<trace><string key="concept:name" value="{i}"/>{event.format(kind=k, value=v)}</trace>'
        for i, (k, v) in enumerate([("int", 3), ("string", "high"), ("int", 4)])
    )
    (tmp_path / "mixed.xes").write_text(f'<log xes.version="1.0">{text}</log>')
    log = veilog.read(tmp_path / "mixed.xes", policies={"missing-timestamp": "keep"})
    with refused(ParameterError, "sensitive-types-differ"):
        released(log, k=2, background="set", sensitive="x")


def test_relative_times_need_times(tmp_path: Path) -> None:
    log = log_of([("a",)] * 3)
    times = log.events.column(TIMESTAMP).to_pylist()
    events = log.events.set_column(3, TIMESTAMP, log.events.column(TIMESTAMP).filter([True] * 3).take([0, None, 1]))
    assert times
    with refused(ParameterError, "tlkc-times-missing"):
        released(EventLog(events, log.cases), k=2, background="relative")
    assert released(EventLog(events, log.cases), k=2).log.events.column(TIMESTAMP).null_count == 1


def test_when_every_activity_tells_too_much_it_is_said() -> None:
    log = log_of([("a",)] * 4 + [("b",)] * 4, cases={"sex": ["f"] * 4 + ["m"] * 4})
    with refused(ParameterError, "tlkc-no-confidence-reached"):
        released(log, k=2, c=0.6, sensitive="sex")


# Real logs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sepsis(logs: Path) -> EventLog:
    return veilog.read(logs / "sepsis.xes.gz")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "ties", "expected"),
    [
        (20, "published", (822, 14_773, 12)),  # what the authors' program gives
        (20, "rare", (842, 15_103, 12)),  # what the paper prints
        (40, "published", (842, 14_986, 11)),
        (60, "published", (818, 14_809, 11)),
        (60, "rare", (842, 14_986, 11)),
    ],
)
def test_the_published_sizes_of_sepsis(sepsis: EventLog, k: int, ties: str, expected: tuple[int, int, int]) -> None:
    variants = released(sepsis, k=k, l=6, background="set", frequency=0.5, ties=ties).variants
    assert (len(variants), variants.events, len(variants.labels)) == expected
    assert variants.cases == 1050


@pytest.mark.nightly
def test_by_cost_more_of_sepsis_is_kept(sepsis: EventLog) -> None:
    published, cost = (
        released(sepsis, k=20, l=2, background="sequence", score=score).variants.events
        for score in ("published", "cost")
    )
    assert cost > 1.3 * published


@pytest.mark.slow
def test_case_disclosure_falls_and_nobody_is_singled_out(sepsis: EventLog) -> None:
    (before,) = veilog.risk(sepsis, "set", 6)
    after = [veilog.risk(released(sepsis, k=k, l=6, background="set").variants, "set", 6)[0] for k in (20, 40, 60)]
    assert before.worst_case == 1
    for k, risk in zip((20, 40, 60), after, strict=True):
        assert risk.worst_case is not None and risk.worst_case <= 1 / k
        assert risk.case_disclosure is not None and before.case_disclosure is not None
        assert risk.case_disclosure < before.case_disclosure / 10


@pytest.mark.slow
@pytest.mark.parametrize(("known", "background"), [(2, "sequence"), (3, "sequence"), (3, "multiset"), (2, "relative")])
def test_stronger_backgrounds_on_sepsis_pass_the_check(sepsis: EventLog, known: int, background: str) -> None:
    variants = released(sepsis, k=20, l=known, background=background, time="days").variants
    assert variants.events > 2_500
    (risk,) = veilog.risk(variants, "sequence" if background == "sequence" else "set", known)
    assert risk.worst_case is not None and risk.worst_case <= 1 / 20

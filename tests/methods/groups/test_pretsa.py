"""PRETSA: how traces are merged, what its releases hold, and what it refuses."""

import datetime
import itertools
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import openly
import pytest
from group_tools import log_of, traces, traces_of
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.stats import wasserstein_distance

import veilog
from veilog.errors import OutputError, ParameterError
from veilog.logs.eventlog import ACTIVITY, LIFECYCLE, TIMESTAMP, EventLog
from veilog.logs.metadata import ARTIFICIAL_TIMES
from veilog.messages import Message
from veilog.methods.pretsa import merged, prefix_tree, shared_prefix

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def released(log: EventLog, **parameters: object) -> veilog.Release:
    return openly.release(log, "pretsa", **parameters)


@pytest.mark.slow
@given(traces, st.integers(1, 6))
@settings(max_examples=60)
def test_every_prefix_and_every_complete_trace_is_that_of_k_cases(log: list[tuple[str, ...]], k: int) -> None:
    if k > len(log):
        return
    try:
        rows = traces_of(released(log_of(log), k=k).log)
    except ParameterError as error:
        assert error.code == "pretsa-only-empty-cases"
        return
    assert len(rows) == len(log)
    assert set(rows) <= set(log)
    prefixes = Counter(t[:n] for t in rows for n in range(1, len(t) + 1))
    assert all(number >= k for number in itertools.chain(prefixes.values(), Counter(rows).values()))


@pytest.mark.nightly
@given(traces, st.integers(1, 4), st.sampled_from([0.1, 0.3, 0.6]), st.data())
@settings(max_examples=60)
def test_values_after_each_prefix_are_close_to_those_of_the_activity(
    log: list[tuple[str, ...]], k: int, t: float, data: st.DataObject
) -> None:
    size = sum(map(len, log))
    if k > len(log) or size == 0:
        return
    value = st.one_of(st.none(), st.floats(-5, 5).map(lambda x: round(x, 1)))
    values = [0.5, *data.draw(st.lists(value, min_size=size - 1, max_size=size - 1))]
    try:
        release = released(log_of(log, events={"score": values}), k=k, t=t, sensitive="score").log
    except ParameterError as error:
        assert error.code in ("pretsa-only-empty-cases", "pretsa-nothing-close-enough")
        return
    after, anywhere = defaultdict(list), defaultdict(list)
    column = iter(release.events.column("score").to_pylist())
    for trace in traces_of(release):
        for i, activity in enumerate(trace):
            if (found := next(column)) is not None:
                after[trace[: i + 1]].append(found)
                anywhere[activity].append(found)
    for prefix, there in after.items():
        all_ = anywhere[prefix[-1]]
        width = max(all_) - min(all_)
        assert not width or wasserstein_distance(there, all_) / width <= t + 1e-9


@pytest.mark.slow
@given(traces)
def test_the_tree_has_a_node_for_each_prefix_and_each_end(log: list[tuple[str, ...]]) -> None:
    sequences = sorted({tuple(map(ord, trace)) for trace in log})
    tree = prefix_tree(sequences)
    found = [
        (sequences[low][:depth], high - low) for low, high, depth in zip(tree.low, tree.high, tree.depth, strict=True)
    ]
    passing = Counter(s[:n] for s in sequences for n in range(1, len(s) + 1))
    ends = [(s, 1) for s in sequences]
    expected = [*passing.items(), *ends]
    assert Counter(found) == Counter(expected)
    for i, sequence in enumerate(sequences):
        nodes = tree.node[tree.offsets[i] : tree.offsets[i + 1]]
        assert [sequences[tree.low[n]][: tree.depth[n]] for n in nodes] == [
            sequence[: j + 1] for j in range(len(sequence))
        ]


def test_what_is_cut_off_joins_the_most_similar_trace_that_is_left() -> None:
    """One case of <a b b c> joins <a b c> and not <a d e f>, as in the paper's talk."""
    sequences = sorted([(0, 1, 2), (0, 1, 1, 2), (0, 3, 4, 5)])
    goal = merged(prefix_tree(sequences), np.array([1, 5, 8]), 3, None)
    assert goal is not None
    assert [sequences[g] for g in goal] == [(0, 1, 2), (0, 1, 2), (0, 3, 4, 5)]


def test_a_trace_that_ends_where_others_go_on_is_protected_too() -> None:
    """<a> is a prefix of enough cases, and still only one case ends there."""
    release = released(log_of([("a", "b")] * 5 + [("a",)]), k=3)
    assert release.variants.to_dict() == {("a", "b"): 6}


def test_merged_cases_can_be_enough_for_a_trace_that_had_too_few() -> None:
    log = [("a", "b", "c", "d")] * 2 + [("a", "b", "c", "e")] * 2 + [("x",)] * 4
    assert released(log_of(log), k=4).variants.to_dict() == {("a", "b", "c", "e"): 4, ("x",): 4}


def test_shared_prefixes() -> None:
    assert [shared_prefix(*p) for p in [((), (1,)), ((1, 2), (1, 3)), ((1, 2), (1, 2, 3))]] == [0, 1, 2]


# What leaves ----------------------------------------------------------------------------------------------------------


def test_cases_keep_their_values_up_to_where_they_were_merged() -> None:
    log = log_of([("a", "b")] * 4 + [("a", "c")], events={"v": [1.0, 5, 2, 6, 3, 7, 4, 8, 9, 99]})
    release = released(log, k=3, sensitive="v").log
    values = release.events.column("v").to_pylist()
    assert sorted(values[0::2]) == [1, 2, 3, 4, 9]
    drawn = Counter(values[1::2]) - Counter([5, 6, 7, 8])
    assert sum(drawn.values()) == 1 and set(drawn) <= {5, 6, 7, 8}


def test_names_stay_names_and_whole_numbers_whole() -> None:
    log = log_of([("a", "b")] * 4, events={"ward": ["n", "s"] * 4, "age": [1, None] * 4, "vip": [True, False] * 4})
    assert set(released(log, k=2, sensitive="ward").log.events.column("ward").to_pylist()) == {"n", "s"}
    ages = released(log, k=2, sensitive="age").log.events.column("age")
    assert (str(ages.type), ages.to_pylist()) == ("int64", [1, None] * 4)


def test_only_the_control_flow_leaves_unless_more_is_asked_for() -> None:
    log = log_of([("a", "b")] * 4, events={"comment": ["x"] * 8}, cases={"name": ["n"] * 4})
    release = released(log, k=2)
    assert release.log.events.column_names == ["case:index", "event:index", ACTIVITY, TIMESTAMP, LIFECYCLE]
    assert release.log.cases.column_names == [ACTIVITY]
    assert "comment, name" in [remark.values.get("dropped") for remark in release.remarks]
    assert {a.key: a.value for a in release.log.metadata.attributes}[ARTIFICIAL_TIMES] is True


def test_durations_leave_as_times_from_1970_on() -> None:
    log = log_of([("a", "b", "c")] * 4, minutes=[[0, 1, 5], [0, 2, 6], [0, 3, 7], [0, 4, 8]])
    release = released(log, k=2, sensitive="duration").log
    times = release.events.column(TIMESTAMP).to_pylist()
    minutes = sorted(tuple((t - EPOCH).total_seconds() / 60 for t in times[i : i + 3]) for i in range(0, 12, 3))
    assert minutes == [(0, 1, 5), (0, 2, 6), (0, 3, 7), (0, 4, 8)]
    assert ARTIFICIAL_TIMES not in {a.key for a in release.metadata.attributes}


def test_the_guarantee_names_the_models_and_no_epsilon() -> None:
    log = log_of([("a", "b")] * 4, events={"ward": ["n", "s"] * 4})
    release = released(log, k=2, sensitive="ward", t=0.5)
    assert (release.guarantee.status, release.guarantee.epsilon) == ("none", None)
    assert [s.model for s in release.guarantee.statements] == ["k-anonymity (PRETSA)", "t-closeness (PRETSA)"]
    against = [statement.does_not_protect.code for statement in release.guarantee.statements]
    assert against == ["prefixes-do-not-protect", "closeness-does-not-protect"]
    facts = {a.key: a.value for a in release.log.metadata.attributes[0].children[0].children}
    assert facts["privacy:type"] == "k-anonymity (PRETSA), t-closeness (PRETSA)"


def test_a_release_that_fails_its_check_is_never_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilog.methods.pretsa.merged", lambda tree, cases, k, violating: np.arange(len(cases)))
    with refused(OutputError, "release-check-failed", what=Message("groups-prefix-rare", number=1, pattern="<b>")):
        released(log_of([("a",)] * 5 + [("b",)]), k=2)


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "code", "values"),
    [
        ({"k": 7}, "pretsa-k-above-log", {"k": 7, "cases": 6}),
        ({"k": 0}, "setting-too-small", {"name": "k"}),
        ({"t": 0.5}, "pretsa-closeness-without-attribute", {"t": 0.5}),
        ({"t": 2, "sensitive": "v"}, "setting-too-large", {"name": "t"}),
        ({"sensitive": "v,w"}, "pretsa-sensitive-not-one", {}),
        ({"sensitive": "sex"}, "pretsa-attribute-of-cases", {"name": "sex"}),
        ({"sensitive": "note"}, "sensitive-values-too-distinct", {"name": "note", "distinct": 12, "owners": "events"}),
        ({"sensitive": "nothing"}, "pripel-attribute-missing", {"name": "nothing"}),
    ],
)
def test_senseless_requests_are_refused(parameters: dict[str, object], code: str, values: dict[str, object]) -> None:
    log = log_of(
        [("a", "b"), ("b", "a")] * 3,
        events={"v": [float(i) for i in range(12)], "note": [f"n{i}" for i in range(12)]},
        cases={"sex": ["f", "m"] * 3},
    )
    with refused(ParameterError, code, **values):
        released(log, **{"k": 2, **parameters})


def test_when_no_trace_is_close_enough_it_is_said() -> None:
    """Values half the range away from all are refused at t = 0.4 with the reason."""
    log = log_of([("a", "a")] * 4, events={"v": [0.0, 1.0] * 4})
    with refused(ParameterError, "pretsa-nothing-close-enough", t=0.4):
        released(log, k=2, t=0.4, sensitive="v")
    assert released(log, k=2, t=0.5, sensitive="v").variants.to_dict() == {("a", "a"): 4}


def test_when_only_empty_traces_are_alike_it_is_said() -> None:
    with refused(ParameterError, "pretsa-only-empty-cases"):
        released(log_of([()] * 3 + [("a",)]), k=2)


def test_durations_need_times() -> None:
    log = log_of([("a",)] * 3)
    events = log.events.set_column(3, TIMESTAMP, log.events.column(TIMESTAMP).take([0, None, 1]))
    with refused(ParameterError, "pretsa-times-missing"):
        released(EventLog(events, log.cases), k=2, sensitive="duration")


# Real logs ------------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_sepsis_with_k_8(logs: Path) -> None:
    log = veilog.read(logs / "sepsis.xes.gz")
    variants = released(log, k=8).variants
    assert variants.cases == 1050
    assert variants.counts.min() >= 8
    assert veilog.compare(log.variants, variants).relative_log_similarity > 0.5


@pytest.mark.slow
def test_sepsis_with_close_durations(logs: Path) -> None:
    release = released(veilog.read(logs / "sepsis.xes.gz"), k=8, sensitive="duration", t=0.1)
    assert release.variants.cases == 1050 and release.variants.counts.min() >= 8

"""Workflow nets and token replay: by hand, their laws, and equality with pm4py."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import trees

import veilog
from veilog.logs.variants import Variants
from veilog.measures.process_model import model_quality
from veilog.mining.inductive import Clock, OutOfTimeError, discover
from veilog.mining.replay import Net, Prefixes, Replay, precision, replay_prefixes, workflow_net
from veilog.mining.tree import SILENT, ProcessTree, activity, choice, loop, parallel, reduce_tree, sequence

A, B, C = activity("a"), activity("b"), activity("c")
needs_pm4py = pytest.mark.skipif(importlib.util.find_spec("pm4py") is None, reason="pm4py is not installed")
logs = st.dictionaries(
    st.lists(st.sampled_from("abcde"), min_size=1, max_size=6).map(tuple), st.integers(1, 9), min_size=1, max_size=6
).map(Variants.from_dict)


def transitions(net: Net) -> list[str]:
    return sorted(transition.label or "tau" for transition in net.transitions)


@pytest.mark.parametrize(
    ("tree", "labels", "places"),
    [
        (A, ["a"], 2),
        (sequence(A, B), ["a", "b"], 3),
        # A choice, a parallel or a loop at the root has silent transitions beside the source and the sink.
        (choice(A, B), ["a", "b", "tau", "tau"], 4),
        (parallel(A, B), ["a", "b", "tau", "tau"], 6),
        (sequence(A, choice(SILENT, B)), ["a", "b", "tau"], 3),
        (sequence(A, loop(B, SILENT), C), ["a", "b", "c", "tau"], 4),
    ],
    ids=str,
)
def test_the_net_of_a_tree(tree: ProcessTree, labels: list[str], places: int) -> None:
    net = workflow_net(tree)
    assert (transitions(net), net.places) == (labels, places)


@pytest.mark.slow
@given(trees())
def test_a_net_has_one_source_one_sink_and_every_place_is_used(tree: ProcessTree) -> None:
    net = workflow_net(reduce_tree(tree))
    given_, taken = (
        {p for t in net.transitions for p in side(t)} for side in (lambda t: t.outputs, lambda t: t.inputs)
    )
    assert set(range(net.places)) - given_ == {net.source} and set(range(net.places)) - taken == {net.sink}
    assert all(transition.inputs and transition.outputs for transition in net.transitions)


def tokens(tree: ProcessTree, *traces: str) -> tuple[int, int, int, int]:
    log = Variants.from_sequences([tuple(trace) for trace in traces])
    found = replay_prefixes(Replay(workflow_net(tree)), Prefixes.of(log)).tokens
    return found.missing, found.remaining, found.consumed, found.produced


def test_tokens_by_hand() -> None:
    tree = sequence(A, B, C)
    assert tokens(tree, "abc") == (0, 0, 4, 4)
    assert tokens(tree, "ac") == (1, 1, 3, 3)  # the token before b remains, the one before c is missing
    assert tokens(tree, "ab") == (1, 1, 3, 3)  # the final token is missing, the one before c remains
    assert tokens(tree, "abcx") == (0, 0, 4, 4)  # activities that the net lacks are ignored
    assert tokens(sequence(A, choice(SILENT, B), C), "ac") == (0, 0, 4, 4)  # a silent transition fires
    assert tokens(sequence(A, parallel(B, C)), "acb", "abc") == (0, 0, 12, 12)
    assert tokens(tree, "ac", "abc") == (1, 1, 7, 7)


def test_measures_by_hand() -> None:
    log = Variants.from_dict({("a", "b"): 3, ("a",): 1})
    replay, prefixes = Replay(workflow_net(sequence(A, choice(SILENT, B, C)))), Prefixes.of(log)
    whole = replay_prefixes(replay, prefixes)
    assert whole.fitness == 1.0
    # a fired 4 times, b 3, the silent one once, c never.
    assert whole.generalization == pytest.approx(1 - (1 / 2 + 1 / 3**0.5 + 1 + 1) / 4)
    # At the start a is enabled in 4 cases; after a both b and c are in the 3 that go on, and c escapes.
    assert precision(replay, prefixes, whole.markings, prefixes.going_on) == pytest.approx(1 - 3 / (4 + 6))


@pytest.mark.slow
@given(logs)
def test_a_tree_that_allows_a_log_without_parallel_parts_replays_it_whole(log: Variants) -> None:
    tree = discover(log)
    if "+" not in str(tree):  # silent ways into several branches are not always found by token replay
        assert replay_prefixes(Replay(workflow_net(tree)), Prefixes.of(log)).fitness == 1.0


@pytest.mark.nightly
@given(logs, logs, st.integers(2, 4))
def test_all_cases_several_times_have_the_same_values(first: Variants, second: Variants, times: int) -> None:
    again = first.with_counts(first.counts * times)
    one, other = (model_quality(log, second) for log in (first, again))
    assert (one.fitness, one.precision) == (pytest.approx(other.fitness), pytest.approx(other.precision))


def test_replay_is_limited_in_time() -> None:
    prefixes = Prefixes.of(Variants.from_dict({("a",): 1}))
    with pytest.raises(OutOfTimeError):
        replay_prefixes(Replay(workflow_net(A), Clock(1e-9)), prefixes)


def random_log(draw: random.Random, activities: str) -> Variants:
    order = draw.sample(activities, len(activities))
    traces = {tuple(order): 3}
    for _ in range(draw.randint(2, 14)):
        trace = draw.choices(activities, k=draw.randint(1, 7))
        if draw.random() < 0.5:
            trace = [a for a in order if draw.random() < 0.8] or order
            at = draw.randrange(len(trace))
            trace = trace[: at + 1] + trace[max(0, at - 2) :]
        traces[tuple(trace)] = draw.choice([1, 2, 9, 40])
    return Variants.from_dict(traces)


def check(original: Variants, released: Variants, noise: float) -> None:
    from veilog.measures import process_model_worker as worker

    logs = [{"traces": list(log.sequences), "counts": log.counts.tolist()} for log in (original, released)]
    theirs: dict[str, float] = {}
    worker._measure({"original": logs[0], "released": logs[1], "noise": noise}, lambda **found: theirs.update(found))
    ours = model_quality(original, released, noise=noise)
    for name in ("fitness", "generalization", "precision"):
        assert getattr(ours, name) == pytest.approx(theirs[name], abs=1e-9), name


@pytest.mark.nightly
@needs_pm4py
@pytest.mark.filterwarnings("ignore")  # pm4py and what it imports warn of things of their own
def test_numbers_of_random_logs_are_those_of_pm4py() -> None:
    for seed in range(60):
        draw = random.Random(seed)
        activities = "abcdefg"[: draw.randint(2, 7)]
        released = random_log(draw, activities)
        check(random_log(draw, activities + "z"), released, draw.choice([0.0, 0.2]))


@pytest.mark.nightly(but=1)
@needs_pm4py
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["ccc19", "receipt", "sepsis", "traffic_fines", "unrineweginfectie", "bpic2013_incidents"]
)
def test_numbers_of_real_logs_are_those_of_pm4py(logs: Path, name: str) -> None:
    variants = veilog.read_variants(logs / f"{name}.xes.gz")
    check(variants, variants, 0.2)

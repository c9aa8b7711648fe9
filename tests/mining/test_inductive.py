"""The inductive miner: each cut and fall-through, its laws, and pm4py's results."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import veilog
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.mining.inductive import Clock, OutOfTimeError, _pieces, discover
from veilog.mining.language import Language

REAL = ("ccc19", "receipt", "sepsis", "traffic_fines", "unrineweginfectie", "bpic2013_incidents")
logs = st.dictionaries(
    st.lists(st.sampled_from("abcdef"), max_size=7).map(tuple), st.integers(1, 9), min_size=1, max_size=8
).map(Variants.from_dict)


def log(text: str) -> Variants:
    """Return variants of text such as ``abc ab*3``; ``-`` is the empty trace."""
    counts: Counter[tuple[str, ...]] = Counter()
    for word in text.split():
        trace, _, count = word.partition("*")
        counts[tuple(trace.replace("-", ""))] += int(count or 1)
    return Variants.from_dict(counts)


CASES = {
    "no cases": ("", "tau"),
    "only empty traces": ("-*5", "tau"),
    "one activity": ("a*5", "'a'"),
    "choice": ("a b*3", "X( 'a', 'b' )"),
    "choice of sequences": ("ab cd", "X( ->( 'a', 'b' ), ->( 'c', 'd' ) )"),
    "sequence": ("abc*2", "->( 'a', 'b', 'c' )"),
    "sequence with one to skip": ("abc ac", "->( 'a', X( tau, 'b' ), 'c' )"),
    "sequence with two that are skipped together": ("abcd ad", "->( 'a', X( tau, ->( 'b', 'c' ) ), 'd' )"),
    "parallel": ("ab ba", "+( 'a', 'b' )"),
    "parallel within a sequence": ("abcd acbd", "->( 'a', +( 'c', 'b' ), 'd' )"),
    "loop": ("a aba ababa", "*( 'a', 'b' )"),
    "loop with two ways back": ("ab abcab abdab", "*( ->( 'a', 'b' ), X( 'c', 'd' ) )"),
    "empty traces": ("-*2 ab*3", "X( tau, ->( 'a', 'b' ) )"),
    "activity once per trace": ("a bcab", "+( 'a', X( tau, *( 'b', 'c' ) ) )"),
    "activity concurrent": ("bda d ab", "+( X( tau, 'a' ), ->( X( tau, 'b' ), X( tau, 'd' ) ) )"),
    "strict loop around all": ("abab ab", "*( ->( 'a', 'b' ), tau )"),
    "loop around all": ("b acb bcaacb", "*( ->( X( 'a', 'b' ), X( tau, 'c' ) ), tau )"),
    "flower": ("ay az bx bz cx cy", "*( tau, X( 'a', 'y', 'c', 'b', 'x', 'z' ) )"),
    "activity again and again": ("a aa", "*( 'a', tau )"),
}


@pytest.mark.parametrize(("text", "tree"), CASES.values(), ids=CASES)
def test_a_log_made_for_a_cut_or_a_fall_through_has_its_tree(text: str, tree: str) -> None:
    assert str(discover(log(text))) == tree


@pytest.mark.parametrize(
    ("text", "without", "with_noise"),
    [
        ("abc*50 a", "->( 'a', X( tau, ->( 'b', 'c' ) ) )", "->( 'a', 'b', 'c' )"),
        ("abcd*50 bda", "+( 'a', ->( 'b', X( tau, 'c' ), 'd' ) )", "->( 'a', 'b', 'c', 'd' )"),
        ("ab*50 ba", "+( 'a', 'b' )", "+( 'a', 'b' )"),
        ("ab*99 -*1", "X( tau, ->( 'a', 'b' ) )", "->( 'a', 'b' )"),
        ("ab*60 -*40", "X( tau, ->( 'a', 'b' ) )", "X( tau, ->( 'a', 'b' ) )"),
    ],
    ids=["few skips", "rare edges", "a cut without filtering", "few empty traces", "many empty traces"],
)
def test_what_is_rare_is_left_out_where_there_is_no_cut(text: str, without: str, with_noise: str) -> None:
    assert (str(discover(log(text))), str(discover(log(text), noise=0.2))) == (without, with_noise)


@pytest.mark.slow
@given(logs)
def test_without_noise_every_trace_of_the_log_is_one_of_the_tree(variants: Variants) -> None:
    language = Language(discover(variants))
    assert all(map(language.accepts, variants.sequences))


@pytest.mark.slow
@given(logs, st.sampled_from([0.0, 0.2, 1.0]))
def test_activities_of_a_tree_are_the_logs_and_occur_once(variants: Variants, noise: float) -> None:
    leaves = [leaf.label for leaf in discover(variants, noise=noise).leaves if leaf.label is not None]
    assert len(set(leaves)) == len(leaves) and set(leaves) <= set(variants.labels)
    if not noise:
        assert set(leaves) == set(variants.labels)


@pytest.mark.slow
@given(logs, st.integers(2, 5), st.sampled_from([0.0, 0.2]))
def test_all_cases_several_times_have_the_same_tree(variants: Variants, times: int, noise: float) -> None:
    assert discover(variants, noise=noise) == discover(variants.with_counts(variants.counts * times), noise=noise)


def test_hundreds_of_activities_are_no_trouble() -> None:
    names = [f"activity {i:03d}" for i in range(300)]
    swapped = [*names[:100], names[101], names[100], *names[102:]]
    tree = discover(Variants.from_sequences([names, swapped]))
    assert len(tree.children) == 299 and tree.labels == tuple(names)


def test_labels_may_be_any_text() -> None:
    strange = Variants.from_dict({("\ud800", "\0"): 2, ("\0", "'"): 1})
    assert discover(strange).labels == ("\0", "'", "\ud800")


def test_time_and_threshold_are_limited() -> None:
    with pytest.raises(OutOfTimeError) as caught:
        discover(log("ab ba"), clock=Clock(1e-9))
    assert caught.value.seconds == 1e-9
    with refused(ParameterError, "model-noise-out-of-range"):
        discover(log("ab"), noise=1.1)


def by_pm4py(variants: Variants, noise: float) -> str:
    """Return pm4py's tree in our notation."""
    from pm4py.algo.discovery.inductive.dtypes.im_ds import IMDataStructureUVCL
    from pm4py.algo.discovery.inductive.variants.im import IMUVCL
    from pm4py.algo.discovery.inductive.variants.imf import IMFUVCL
    from pm4py.objects.process_tree.utils.generic import fold, tree_sort

    parameters = {"noise_threshold": noise, "multiprocessing": False}
    counts = Counter(dict(zip(variants.sequences, variants.counts.tolist(), strict=True)))
    tree = fold((IMFUVCL if noise else IMUVCL)(parameters).apply(IMDataStructureUVCL(counts), parameters))
    tree_sort(tree)
    return f"'{tree.label}'" if tree.label is not None else str(tree)


def random_log(draw: random.Random) -> Variants:
    """Return traces without order, or a process with skips, repeats and swaps."""
    activities = "abcdefgh"[: draw.randint(1, 8)]
    order = draw.sample(activities, len(activities))
    free = draw.random() < 0.5
    counts: Counter[tuple[str, ...]] = Counter()
    for _ in range(draw.randint(1, 12)):
        trace = draw.choices(activities, k=draw.randint(0, 8)) if free else [a for a in order if draw.random() < 0.8]
        for _ in range(0 if free or not trace else draw.randint(0, 3)):
            at = draw.randrange(len(trace))
            if draw.random() < 0.5:
                trace[at - 1], trace[at] = trace[at], trace[at - 1]
            else:
                trace = trace[:at] + trace[max(0, at - 2) :]
        counts[tuple(trace)] += draw.choice([1, 1, 2, 5, 20, 100])
    return Variants.from_dict(counts)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")  # pm4py and what it imports warn of things of their own
@pytest.mark.parametrize("noise", [0.0, 0.2, 0.5])
def test_trees_of_a_thousand_random_logs_are_those_of_pm4py(noise: float) -> None:
    pytest.importorskip("pm4py")
    for seed in range(1000):
        variants = random_log(random.Random(seed))
        assert str(discover(variants, noise=noise)) == by_pm4py(variants, noise), seed


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REAL)
def test_trees_of_real_logs_are_those_of_pm4py(logs: Path, name: str) -> None:
    pytest.importorskip("pm4py")
    variants = veilog.read_variants(logs / f"{name}.xes.gz")
    for noise in (0.0, 0.2, 0.4):
        assert str(discover(variants, noise=noise)) == by_pm4py(variants, noise)


def test_traces_are_cut_between_an_end_and_a_start_whatever_their_characters() -> None:
    for start, end in itertools.permutations(r"^]-\[&~|", 2):
        pieces = {f"{start}x{end}": 2, f"{start}y{end}": 2}
        assert _pieces({"".join(pieces): 2}, {start}, {end}) == pieces
    assert _pieces({"ab": 1}, {"a"}, {"b"}) == {}

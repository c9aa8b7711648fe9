"""The Laplace prefix tree: charge, counts, noise prefixes, and refusals."""

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openly import release
from refusals import refused

from veilog.errors import ParameterError
from veilog.logs import files
from veilog.logs.variants import Sequences, Variants
from veilog.measures.directly_follows import frequency_emd
from veilog.methods._prefix_tree.counts import _parents, _reconcile, _released_cases, _share_cases, _values_by_level
from veilog.methods._prefix_tree.expand import split_budget
from veilog.methods._prefix_tree.tree import (
    NoisyPrefixTree,
    assign_continuation,
    assign_deepest,
    noise_threshold,
    to_variants,
)
from veilog.methods.laplace import LaplaceSettings
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms.mechanism import DiscreteGaussian, Laplace

trace = st.lists(st.sampled_from("abc"), max_size=6).map(tuple)
traces = st.lists(trace, min_size=1, max_size=30)

SMALL = Variants.from_dict({("a", "b", "c"): 60, ("a", "c"): 30, ("b",): 20, ("a", "b", "c", "c", "c"): 1})


def log(cases: list[tuple[str, ...]]) -> Variants:
    return Variants.from_dict(Counter(cases))


def sequences(cases: list[tuple[str, ...]]) -> Sequences:
    return Variants.from_sequences(cases).sequences


def whole_tree(cases: list[tuple[str, ...]], depth: int) -> NoisyPrefixTree:
    """Return the tree in which every prefix survives, with its true count."""
    tree = NoisyPrefixTree(("a", "b", "c"))
    for length in range(1, depth + 1):
        level = Counter()
        for case in cases:
            prefix = (*case, "end")[:length]
            if len(prefix) == length:
                level[prefix] += 1
        parents = {(): 0}
        if tree.levels:
            shorter = Counter(
                {p[: length - 1]: 0 for p in ((*case, "end")[:length] for case in cases) if len(p) >= length - 1}
            )
            order = sorted((p for p in shorter if "end" not in p and len(p) == length - 1), key=key)
            parents = {p: i for i, p in enumerate(order)}
        bins = {parents[p[:-1]] * 4 + key(p[-1:])[0]: n for p, n in level.items() if p[:-1] in parents}
        order_ = np.array(sorted(bins), dtype=np.int64)
        tree = tree.grown(order_, np.array([bins[b] for b in order_.tolist()], dtype=np.int64))
    return tree


def key(prefix: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(["a", "b", "c", "end"].index(activity) for activity in prefix)


# What it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(
    cases=traces,
    epsilon=st.fractions(Fraction(1, 100), 20),
    depth=st.none() | st.integers(1, 12),
    split=st.sampled_from(["uniform", "decreasing"]),
    count_share=st.floats(0.01, 0.99),
)
def test_certified_the_charges_add_up_to_epsilon_exactly(
    cases: list[tuple[str, ...]], epsilon: Fraction, depth: int | None, split: str, count_share: float
) -> None:
    released = release(log(cases), "laplace", epsilon=epsilon, depth=depth, split=split, count_share=count_share)
    assert sum(charge.epsilon for charge in released.guarantee.charges) == epsilon
    assert released.guarantee.proven


@pytest.mark.parametrize("cases", [SMALL, Variants.from_dict({("a",): 1})])
def test_as_published_a_depth_of_23_costs_23_times_epsilon(cases: Variants) -> None:
    guarantee = release(cases, "laplace", epsilon=1, depth=23, threshold=4, as_published=True).guarantee
    assert (guarantee.status, guarantee.epsilon, guarantee.nominal_epsilon) == ("proven", 23.0, 1.0)


@pytest.mark.slow
@given(epsilon=st.fractions(Fraction(1, 10**6), 100), depth=st.integers(1, 80))
@pytest.mark.parametrize("split", ["uniform", "decreasing"])
def test_shares_of_the_depths_are_positive_and_add_up(epsilon: Fraction, depth: int, split: str) -> None:
    shares = split_budget(epsilon, depth, split)
    assert len(shares) == depth and min(shares) > 0 and sum(shares) == epsilon
    assert split == "uniform" or list(shares) == sorted(shares, reverse=True)


def test_the_conditions_name_what_was_taken_from_the_log() -> None:
    assumed = release(SMALL, "laplace", epsilon=1).guarantee.conditions
    assert sorted(c.code for c in assumed) == ["activities-from-log", "length-from-log"]
    declared = release(SMALL, "laplace", epsilon=1, domain=Domain(("a", "b", "c", "d"), 9))
    assert declared.guarantee.conditions == ()


# What it counts ---------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@settings(max_examples=30)
@given(cases=traces)
@pytest.mark.parametrize("rest", ["stop", "drop", "share"])
def test_without_noise_to_speak_of_it_releases_the_log(rest: str, cases: list[tuple[str, ...]]) -> None:
    variants = log(cases)
    assert release(variants, "laplace", epsilon=900, seed=1, depth=8, rest=rest).variants == variants
    assert release(variants, "laplace", epsilon=900, seed=1, depth=8, as_published=True).variants == variants


@pytest.mark.slow
def test_traces_longer_than_the_depth_are_cut_there() -> None:
    cut = {("a", "b"): 61, ("a", "c"): 30, ("b",): 20}
    assert release(SMALL, "laplace", epsilon=900, seed=1, depth=2).variants.to_dict() == cut


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "released"),
    [
        ("mannhardt", {("b",): 20}),  # ("a",) ends below the threshold; the others have not ended at the depth
        ("sacofa", {("a",): 3, ("a", "b"): 60, ("b",): 20}),
        ("travas", {}),  # of two activities none ends at the depth, and one activity is no trace of its benchmark
    ],
)
def test_as_published_the_programs_differ_in_ended_and_unfinished_traces(program: str, released: dict) -> None:
    cases = Variants.from_dict({("a", "b", "c"): 60, ("a",): 3, ("b",): 20})
    made = release(
        cases, "laplace", epsilon=900, seed=1, depth=2, threshold=5, as_published=True, program=program
    ).variants
    assert made.to_dict() == released


@pytest.mark.slow
@settings(max_examples=20)
@given(cases=traces, depth=st.integers(2, 5), threshold=st.integers(1, 4))
def test_without_noise_the_benchmark_of_travas_releases_what_a_brute_force_count_does(
    cases: list[tuple[str, ...]], depth: int, threshold: int
) -> None:
    """Without noise the benchmark releases what a brute-force count does."""
    counts = Counter(cases)

    def going_on(prefix: tuple[str, ...]) -> int:
        return sum(n for c, n in counts.items() if c[: len(prefix)] == prefix and len(c) > len(prefix))

    expected = {
        c: n
        for c, n in counts.items()
        if 1 < len(c) <= depth and n > threshold and all(going_on(c[:i]) > threshold for i in range(1, len(c)))
    }
    made = release(
        log(cases),
        "laplace",
        epsilon=900,
        seed=1,
        depth=depth,
        threshold=threshold,
        as_published=True,
        program="travas",
        domain=Domain(("a", "b", "c"), 6),
    )
    assert made.variants.to_dict() == expected


@pytest.mark.parametrize(("method", "threshold"), [("laplace", "threshold"), ("sacofa", "threshold_harmful")])
def test_as_published_a_delta_narrows_the_noise_and_is_charged_as_epsilon(method: str, threshold: str) -> None:
    """As published a delta of 1/2 at epsilon 1 is charged as 1.69315 per depth."""
    made = release(SMALL, method, epsilon=1, delta="1/2", depth=7, as_published=True, **{threshold: 4})
    charges = [charge for charge in made.guarantee.charges if charge.question == "histogram"]
    assert len(charges) > 1
    for charge in charges:
        assert float(charge.epsilon) == pytest.approx(1 + math.log(2), abs=1e-9)
        assert charge.mechanism == Laplace(1 / charge.epsilon)


def test_as_published_a_delta_of_nearly_one_is_charged() -> None:
    made = release(SMALL, "laplace", epsilon=1, delta="0.99999999999999999999", depth=1, as_published=True, threshold=4)
    assert made.guarantee.epsilon == pytest.approx(1 + 20 * math.log(10))


def test_the_program_belongs_to_the_release_as_published() -> None:
    with pytest.raises(ParameterError):
        release(SMALL, "laplace", epsilon=1, program="sacofa")


def test_as_published_the_query_of_pripel_gives_amuns_table_6(logs: Path) -> None:
    """As published, N = 4 and k = 0.5 % give the paper's frequency EMD of 290.47."""
    original = files.read(logs / "unrineweginfectie.xes.gz").variants
    for seed, epsilon in enumerate(("3.41", "3.84")):
        made = release(
            original, "laplace", epsilon=epsilon, seed=seed, depth=4, threshold=9, as_published=True
        ).variants
        assert frequency_emd(original, made) == pytest.approx(290.47, abs=0.005)


@pytest.mark.slow
def test_what_happens_to_cases_whose_continuation_did_not_survive() -> None:
    variants = Variants.from_dict({("a", "b"): 40, **{("a", "c", *"abc"[i : i + 1], *"c" * i): 4 for i in range(3)}})

    def released(rest: str) -> dict[tuple[str, ...], int]:
        result = release(variants, "laplace", epsilon=900, seed=1, depth=6, threshold=10, rest=rest)
        return result.variants.to_dict()

    assert released("stop") == {("a", "b"): 40, ("a", "c"): 12}
    assert released("drop") == {("a", "b"): 40}
    assert released("share") == {("a", "b"): 52}


@pytest.mark.nightly
@given(cases=traces, depth=st.integers(1, 5), others=traces)
def test_a_case_is_counted_at_its_own_prefix_whatever_else_is_in_the_log(
    cases: list[tuple[str, ...]], depth: int, others: list[tuple[str, ...]]
) -> None:
    tree = whole_tree(cases, depth)
    for assign in (assign_continuation(tree), assign_deepest(tree)):
        together = assign(sequences([*others, *cases]))
        for i, case in enumerate([*others, *cases]):
            unique = sequences([case])
            assert assign(unique)[0] == together[list(sequences([*others, *cases])).index(case)], i


@pytest.mark.slow
@given(cases=traces, depth=st.integers(1, 6))
def test_the_longest_surviving_prefixes_make_up_the_log_cut_at_the_depth(
    cases: list[tuple[str, ...]], depth: int
) -> None:
    tree = whole_tree(cases, depth)
    variants = log(cases)
    counts = np.bincount(assign_deepest(tree)(variants.sequences), variants.counts, minlength=tree.size + 1)
    parts = [part.astype(np.int64) for part in _values_by_level(tree, counts)]
    assert to_variants(tree, parts[1:], int(parts[0][0])) == log([case[:depth] for case in cases])


# Post-processing ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(cases=traces, seed=st.integers(0, 999), depth=st.integers(1, 5))
def test_reconciled_counts_are_the_least_squares_solution(cases: list[tuple[str, ...]], seed: int, depth: int) -> None:
    """Reconciled counts equal numpy's solution of the written-out equations."""
    random = np.random.default_rng(seed)
    tree = whole_tree(cases, depth)
    budgets = tuple(Fraction(int(n), 10) for n in random.integers(1, 30, depth))
    own = Fraction(7, 10)
    here = _values_by_level(tree, random.integers(-5, 40, tree.size + 1).astype(float))

    def deviation(epsilon: Fraction) -> float:
        a = np.exp(-float(epsilon))
        return np.sqrt(2 * a) / (1 - a)

    starts = np.cumsum([0, 1, *(len(level.bins) for level in tree.levels)])
    below = np.eye(tree.size + 1)
    for i in range(depth - 1, -1, -1):
        for j, parent in enumerate(_parents(tree, i)):
            below[starts[i] + parent] += below[starts[i + 1] + j]
    rows = [np.eye(tree.size + 1) / deviation(own)]
    values = [np.concatenate(here) / deviation(own)]
    for i, level in enumerate(tree.levels):
        rows.append(below[starts[i + 1] : starts[i + 2]] / deviation(budgets[i]))
        values.append(level.counts / deviation(budgets[i]))
    expected = np.linalg.lstsq(np.vstack(rows), np.concatenate(values), rcond=None)[0]
    assert np.concatenate(
        _reconcile(tree, here, tuple(Laplace(1 / b) for b in budgets), Laplace(1 / own))
    ) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
@given(cases=traces, seed=st.integers(0, 999), depth=st.integers(1, 5))
def test_sharing_keeps_the_number_of_cases(cases: list[tuple[str, ...]], seed: int, depth: int) -> None:
    tree = whole_tree(cases, depth)
    here = _values_by_level(tree, np.random.default_rng(seed).integers(0, 9, tree.size + 1).astype(float))
    complete = _released_cases(tree, here, LaplaceSettings(rest="share"))
    if sum(part.sum() for part in complete):
        shared = _share_cases(tree, here, complete)
        assert sum(part.sum() for part in shared) == pytest.approx(sum(part.sum() for part in here))


# What noise may add -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(bins=st.integers(1, 10**15), expected=st.floats(1e-3, 1e3), epsilon=st.fractions(Fraction(1, 1000), 5))
def test_the_threshold_is_the_smallest_that_keeps_noise_out(bins: int, expected: float, epsilon: Fraction) -> None:
    def survivors(threshold: int) -> float:
        a = np.exp(-float(epsilon))
        return bins * a ** (threshold + 1) / (1 + a)

    threshold = noise_threshold(bins, expected, Laplace(1 / epsilon))
    assert survivors(threshold) <= expected * (1 + 1e-9)
    assert threshold == 0 or survivors(threshold - 1) >= expected * (1 - 1e-9)


@pytest.mark.parametrize(("bins", "expected"), [(1, 0.5), (30, 1.0), (2**40, 1.0), (500, 1e-6), (3, 7.0)])
@pytest.mark.parametrize("variance", [30, 540, 10_000])
def test_the_threshold_of_gaussian_noise_keeps_it_out_too(bins: int, expected: float, variance: int) -> None:
    law = DiscreteGaussian(Fraction(variance))
    threshold = noise_threshold(bins, expected, law)
    survivors = [bins * law.tail(t)(200)[1] / 2**200 for t in (threshold, max(threshold - 2, 0))]
    assert survivors[0] <= expected * 1.1, "the normal law is about that of the integers"
    assert threshold < 2 or survivors[1] > expected


@pytest.mark.slow
def test_with_a_delta_deep_trees_get_gaussian_noise_and_shallow_ones_say_that_it_is_not_needed() -> None:
    variants = Variants.from_dict({tuple("abcdefghij" * 3): 3000, tuple("bcdefghija" * 3): 2000})
    for method in ("laplace", "sacofa"):
        deep = release(variants, method, epsilon=1, delta="1e-6", depth=30)
        assert (deep.guarantee.epsilon, deep.guarantee.delta) == (1.0, 1e-6)
        assert [charge.question for charge in deep.guarantee.charges].count("rounds") == 1
        shallow = release(variants, method, epsilon=1, delta="1e-6", depth=5)
        assert "rounds" not in [charge.question for charge in shallow.guarantee.charges]
        assert "tree-delta-not-needed" in [remark.code for remark in shallow.remarks]
        assert (shallow.guarantee.epsilon, shallow.guarantee.delta) == (1.0, 1e-6), "what was asked for is charged"


@pytest.mark.nightly
def test_as_many_noise_prefixes_survive_as_were_expected() -> None:
    """Noise prefixes are as many as expected: 3 of 501 (300 runs, 4.5 sigma)."""
    domain = Domain(tuple(f"activity {i}" for i in range(500)), 3)
    variants = Variants.from_dict({("activity 1",): 1})
    numbers = []
    for seed in range(300):
        levels = release(
            variants, "laplace", epsilon="0.5", seed=seed, depth=1, noise_prefixes=3, count_share=0.5, domain=domain,
            consistency=False,
        ).guarantee.charges  # fmt: skip
        # The second question is over the survivors and the empty prefix.
        numbers.append(int(levels[1].purpose.split("(")[1].split(" ")[0]) - 1)
    assert 3 * 0.75 < np.mean(numbers) <= 3 + 4.5 * np.sqrt(3 / 300)


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"depth": 0},
        {"depth": 2.5},
        {"depth": "deep"},
        {"threshold": 0},
        {"threshold": -3},
        {"split": "even"},
        {"noise_prefixes": 0},
        {"noise_prefixes": "nan"},
        {"count_share": 0},
        {"count_share": 1},
        {"rest": "burn"},
        {"consistency": "perhaps"},
        {"largest_log": 0},
        {"threshold": 2_000_000},
        {"epsilon": 0},
        {"epsilon": -1},
        {"k": 3},
    ],
)
def test_nonsense_is_refused(parameters: dict) -> None:
    with pytest.raises(ParameterError):
        release(SMALL, "laplace", **{"epsilon": 1, **parameters})


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("method", ["laplace", "sacofa", "df-laplace", "sapa"])
def test_a_budget_at_which_nothing_can_survive_is_refused_with_one_at_which_something_can(method: str) -> None:
    with refused(ParameterError, "tree-epsilon-unsuitable") as caught:
        release(SMALL, method, epsilon="2e-7")
    enough = float(caught.value.advice_given.values["epsilon"])
    assert release(SMALL, method, epsilon=enough * 1.1).guarantee.proven
    assert release(SMALL, method, epsilon="1e-5", largest_log=10**12).guarantee.proven


@pytest.mark.slow
def test_as_published_a_tree_that_runs_away_is_stopped() -> None:
    domain = Domain(tuple(f"activity {i}" for i in range(300)), 50)
    variants = Variants.from_dict({("activity 1",): 5})
    with pytest.raises(ParameterError, match="runs away"):
        release(variants, "laplace", epsilon="0.01", depth=40, threshold=10, as_published=True, domain=domain)


@pytest.mark.slow
def test_certified_a_threshold_far_below_the_noise_cannot_make_the_tree_run_away() -> None:
    domain = Domain(tuple(f"activity {i}" for i in range(100)), 50)
    variants = Variants.from_dict({("activity 1",): 5})
    released = release(variants, "laplace", epsilon="0.01", seed=1, depth=6, threshold=1, domain=domain)
    assert released.guarantee.charges[-1].question == "histogram"
    assert int(str(released.guarantee.charges[-1].purpose).split("(")[1].split(" ")[0]) < 6 * 11_000


# Real logs ----------------------------------------------------------------------------------------------------------


@pytest.mark.nightly(but=1)
@pytest.mark.parametrize("method", ["laplace", "sacofa"])
@pytest.mark.parametrize("name", ["sepsis", "receipt", "bpic2013_incidents", "unrineweginfectie", "ccc19"])
def test_no_blow_up_on_real_logs_as_deep_as_the_longest_trace(logs: Path, name: str, method: str) -> None:
    """The number of prefixes follows what can stand out of noise, at any depth."""
    variants = files.read(logs / f"{name}.xes.gz").variants
    longest = int(variants.lengths.max())
    for epsilon in ("1", "0.1", "0.01"):
        released = release(variants, method, epsilon=epsilon, depth=longest)
        assert released.guarantee.epsilon == float(epsilon)
        counted = int(str(released.guarantee.charges[-1].purpose).split("(")[1].split(" ")[0])
        assert counted <= variants.events + 10 * longest
        assert released.variants.lengths.max(initial=0) <= longest


@pytest.mark.slow
def test_as_published_sepsis_is_inflated_more_than_a_hundredfold_at_epsilon_001(logs: Path) -> None:
    """As published, Sepsis grows a hundredfold (Figure 7, with Table 4's settings)."""
    variants = files.read(logs / "sepsis.xes.gz").variants
    told = {"depth": 23, "threshold": 190, "program": "sacofa", "as_published": True}
    released = release(variants, "laplace", epsilon="0.01", seed=5, **told)
    assert released.variants.cases > 100 * variants.cases

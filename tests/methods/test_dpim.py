"""dpim: trees of pairs, a case's share in them, both modes, and published leaks."""

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openly import release
from refusals import refused

import veilog
from veilog.audits.attacks import Attempt, Score
from veilog.audits.blackbox import audit
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.methods import METHODS
from veilog.methods import dpim as as_published
from veilog.methods.df_laplace import distinct, pairs
from veilog.methods.dpim import TREE, flower, misfits, tree_of
from veilog.mining.inductive import Graph
from veilog.mining.language import Language
from veilog.mining.replay import Prefixes, Replay, precision, replay_prefixes, workflow_net
from veilog.mining.tree import ProcessTree, activity, choice, loop, play_out, sequence
from veilog.privacy.domain import ALL_FROM_LOG, Domain
from veilog.privacy.mechanisms.noise import seeded
from veilog.testing import check_method

LETTERS = ("a", "b", "c", "d")
LOG = Variants.from_dict({("a", "b", "c"): 900, ("a", "c"): 500, ("a", "b", "b", "c"): 400})


def edges(text: str, labels: tuple[str, ...] = LETTERS) -> np.ndarray:
    """Return the graph of traces like ``abc ab``."""
    place = {label: at for at, label in enumerate(labels)} | {"|": len(labels)}
    found = np.zeros((len(labels) + 1,) * 2, dtype=np.bool_)
    for trace in text.split():
        for one, other in pairwise(f"|{trace}|"):
            found[place[one], place[other]] = True
    return found


@pytest.mark.parametrize(
    ("traces", "tree"),
    [
        ("abc", "->( 'a', 'b', 'c' )"),
        ("abc ac", "->( 'a', X( tau, 'b' ), 'c' )"),
        ("ab cd", "X( ->( 'a', 'b' ), ->( 'c', 'd' ) )"),
        ("abbc", "->( 'a', *( 'b', tau ), 'c' )"),
        ("abac aba", "->( *( 'a', 'b' ), X( tau, 'c' ) )"),
        ("a abc bca b", "->( X( tau, 'b' ), X( tau, 'c' ), X( tau, 'a' ) )"),
        ("a", "'a'"),
    ],
)
def test_trees_of_pairs(traces: str, tree: str) -> None:
    if traces == "a abc bca b":  # the pairs go round: only a loop or less allows them
        language = Language(tree_of(LETTERS, edges(traces)))
        assert all(language.accepts(trace) for trace in traces.split())
        return
    assert str(tree_of(LETTERS, edges(traces))) == tree


def test_parallel_parts_may_be_left_out() -> None:
    language = Language(tree_of(LETTERS, edges("abcd acbd")))
    assert all(language.accepts(trace) for trace in ("abcd", "acbd", "abd", "acd"))
    assert not language.accepts("abbd")


def test_a_start_that_ends_allows_the_trace_without_events() -> None:
    assert tree_of(("a",), np.array([[False, True], [True, True]])) == choice(ProcessTree(), activity("a"))
    assert tree_of(("a",), np.zeros((2, 2), dtype=np.bool_)) == ProcessTree()
    assert flower(()) == ProcessTree()


@pytest.mark.slow
@given(st.lists(st.text("abcd", min_size=1, max_size=6), min_size=1, max_size=5))
def test_a_tree_has_the_activities_of_its_pairs(traces: list[str]) -> None:
    tree = tree_of(LETTERS, edges(" ".join(traces)))
    assert set(tree.labels) == set("".join(traces))
    made = play_out(tree, 5, np.random.default_rng(0))
    assert set(made.labels) <= set(tree.labels)


def test_a_case_says_each_pair_once() -> None:
    log = Variants.from_dict({("a", "b", "a", "b"): 1, (): 1})
    rows, columns, values = distinct(pairs(("a", "b")), 9)(log.sequences)
    assert sorted(zip(rows, columns, values, strict=True)) == [(0, 8, 1), (1, 1, 1), (1, 3, 1), (1, 5, 1), (1, 6, 1)]


def test_misfits_are_shares_of_steps_that_are_not_allowed() -> None:
    trees = [sequence(activity("a"), activity("b")), flower(("a", "b", "c")), loop(activity("a"), ProcessTree())]
    log = Variants.from_dict({("a", "b"): 1, ("a", "b", "c"): 1, ("c",): 1})
    rows, columns, values = misfits(trees, ("a", "b", "c"))(log.sequences)
    found = {
        (log.sequences[row], int(column)): int(value) for row, column, value in zip(rows, columns, values, strict=True)
    }
    assert found == {
        (("a", "b", "c"), 0): 1024 // 4,
        (("c",), 0): 1024,  # the event, and the end before anything has happened
        (("a", "b"), 2): 1024 // 3,
        (("a", "b", "c"), 2): 2 * 1024 // 4,
        (("c",), 2): 1024,
    }


@pytest.mark.slow
def test_the_contract_is_kept() -> None:
    check_method(METHODS["dpim"])


@pytest.mark.parametrize("epsilon", ["0.1", "1", "20"])
def test_certified_costs_what_was_asked_and_tells_its_tree(epsilon: str) -> None:
    released = release(LOG, "dpim", epsilon=epsilon)
    assert released.guarantee.epsilon == float(epsilon) and not released.guarantee.charges[0].delta
    assert sum(charge.epsilon for charge in released.guarantee.charges) <= Fraction(epsilon)
    (told,) = [str(remark.values["tree"]) for remark in released.remarks if remark.code == "dpim-process-tree"]
    assert released.variants.cases > 0 and set(released.variants.labels) <= set(LOG.labels)
    if epsilon == "20":
        assert told == "->( 'a', X( tau, 'b' ), 'c' )", "that b follows b is rare enough to leave out"
        assert abs(released.variants.cases - LOG.cases) < 20
        assert all(variant[0] == "a" and variant[-1] == "c" for variant in released.variants.to_dict())


def test_with_little_budget_no_tree_is_believed() -> None:
    released = release(LOG, "dpim", epsilon="0.005", seed=1)
    (told,) = [str(remark.values["tree"]) for remark in released.remarks if remark.code == "dpim-process-tree"]
    assert told == str(flower(LOG.labels))


def test_what_cannot_be_is_refused_before_anything_is_asked() -> None:
    with refused(ParameterError, "dpim-bounds-incomplete"):
        release(LOG, "dpim", epsilon=1, as_published=True, fewest=9, most=4)
    with refused(ParameterError, "dpim-epsilon-below-failure"):
        release(LOG, "dpim", epsilon="0.01", as_published=True)
    with refused(ParameterError, "relation-epsilon-hides-all"):
        release(LOG, "dpim", epsilon="1e-6")


@pytest.mark.slow
def test_as_published_derives_nothing_and_says_why() -> None:
    released = release(LOG, "dpim", epsilon=1, as_published=True, seed=1)
    assert released.guarantee.epsilon is None
    assert any("5,000 events" in str(reason) for reason in released.guarantee.reasons)
    assert released.variants.cases == LOG.cases


FITTING = Variants.from_dict({("a", "b"): 1000})
LONG = ("b",) * 5000


@pytest.mark.slow
def test_as_published_releases_nothing_where_no_tree_is_fit_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_published, "_ATTEMPTS", 3)
    with_it = Variants.from_dict({**FITTING.to_dict(), LONG: 1})
    released = release(with_it, "dpim", epsilon=1, as_published=True, seed=1, fewest=3, most=3)
    assert released.variants.cases == 0
    assert "dpim-no-tree-fits" in [remark.code for remark in released.remarks]


@pytest.mark.slow
def test_one_long_case_changes_a_fitness_by_more_than_a_half() -> None:
    replay = Replay(workflow_net(tree_of(LETTERS, edges("ab"))))
    with_it = Variants.from_dict({**FITTING.to_dict(), LONG: 1})
    assert replay_prefixes(replay, Prefixes.of(FITTING)).fitness == 1.0
    assert replay_prefixes(replay, Prefixes.of(with_it)).fitness == pytest.approx(0.375, abs=0.001), (
        "claimed: a change of at most 1/1001"
    )


@pytest.mark.nightly
def test_an_audit_shows_more_than_the_published_epsilon() -> None:
    """The trees of the usual pairs are accepted without the case and never with it."""
    with_it = Variants.from_dict({**FITTING.to_dict(), LONG[:1000]: 1})
    one = Attempt("one long case", FITTING, with_it, (Score("all cases"),))
    result = audit(
        "dpim",
        epsilon=1,
        as_published=True,
        runs=40,
        pairs=[one],
        domain=Domain(("a", "b"), 5000),
        seed=1,
        processes=1,
        fewest=3,
        most=3,
    )
    assert result.derived_epsilon is None
    assert result.audited_epsilon > 1


def of_pairs(pairs: dict[str, int], log: Variants) -> ProcessTree:
    """Return the published tree of pairs of a, b and border, at hardly any noise."""
    place = {"#": 0, "a": 1, "b": 2}
    weights = np.zeros((3, 3), dtype=np.int64)
    for pair, number in pairs.items():
        weights[place[pair[0]], place[pair[1]]] = number
    trees = as_published._PublishedTree(("a", "b"), weights, log, Fraction(1000), seeded(1))
    return trees.of(Graph.of(weights > 0))


def test_as_published_loops_are_those_of_the_program() -> None:
    log = Variants.from_dict({("a", "b", "a", "a"): 100})
    assert str(of_pairs({"#a": 100, "ab": 100, "ba": 100, "aa": 100, "a#": 100}, log)) == "*( 'a', 'b' )", (
        "a part of one activity is that activity, whatever follows itself"
    )
    both = Variants.from_dict({("a", "b", "a"): 50, ("b", "a", "b"): 50})
    never = of_pairs({"#a": 50, "#b": 50, "ab": 100, "ba": 100, "a#": 50, "b#": 50}, both)
    assert "a" not in str(never).replace("tau", ""), "what no pair is left for is left out"


def quality(released: veilog.Release, known: Prefixes) -> tuple[float, float]:
    """Return the fitness of the original on the released tree, and its precision."""
    (told,) = [remark.removeprefix(TREE) for remark in released.remarks if remark.startswith(TREE)]
    replay = Replay(workflow_net(TREES[told]))
    found = replay_prefixes(replay, known)
    return found.fitness, precision(replay, known, found.markings, known.going_on)


TREES: dict[str, ProcessTree] = {}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "fewest", "most", "fitness", "precise"),
    [("sepsis", 120, 149, 0.998, 0.158), ("bpic2013_incidents", 5, 19, 0.989, 0.663)],
)
def test_as_published_is_as_good_as_published(
    logs: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    fewest: int,
    most: int,
    fitness: float,
    precise: float,
) -> None:
    """As published, numbers are the published ones, or within its program's bounds."""
    import veilog.methods.dpim as module

    drawn = module.play_out

    def kept(tree: ProcessTree, cases: int, generator: np.random.Generator) -> Variants:
        TREES[str(tree)] = tree
        return drawn(tree, min(cases, 10), generator)

    monkeypatch.setattr(module, "play_out", kept)
    original = veilog.read(logs / f"{name}.xes.gz").variants
    known = Prefixes.of(original)
    found = [
        quality(
            veilog.release(
                original, "dpim", epsilon=1, as_published=True, seed=seed, domain=ALL_FROM_LOG, fewest=fewest, most=most
            ),
            known,
        )
        for seed in range(20)
    ]
    means = np.mean(found, axis=0)
    assert means[0] == pytest.approx(fitness, abs=0.05)
    assert means[1] == pytest.approx(precise, abs=0.05)

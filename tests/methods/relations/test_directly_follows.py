"""DF-Laplace: the relation, what a case adds to it, and what the release costs."""

import itertools
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openly import release
from refusals import refused

import veilog
from veilog.errors import ParameterError
from veilog.ledger.ledger import Ledger
from veilog.logs import files
from veilog.logs.variants import Variants
from veilog.methods.df_laplace import exact_relation, pairs, resized
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms import noise

ABC = ("a", "b", "c")
trace = st.lists(st.sampled_from(ABC), max_size=6).map(tuple)
traces = st.lists(trace, min_size=1, max_size=20)
SMALL = Variants.from_dict({("a", "b", "c"): 300, ("a", "c"): 200, ("b",): 100})


def log(cases: list[tuple[str, ...]]) -> Variants:
    return Variants.from_dict(Counter(cases))


@pytest.mark.slow
@given(cases=traces)
def test_the_relation_counts_each_step_with_start_and_end(cases: list[tuple[str, ...]]) -> None:
    expected: Counter[tuple[int, int]] = Counter()
    for case in cases:
        coded = [3, *("abc".index(activity) for activity in case), 3]
        expected.update(itertools.pairwise(coded))
    relation = exact_relation(log(cases), ABC)
    assert {place: n for place, n in np.ndenumerate(relation) if n} == dict(expected)


@pytest.mark.nightly
@given(cases=traces)
def test_what_a_case_contributes_is_its_own_and_one_for_each_step(cases: list[tuple[str, ...]]) -> None:
    variants = log(cases)
    rows, columns, values = (np.asarray(part) for part in pairs(ABC)(variants.sequences))
    assert (np.bincount(rows, values, minlength=len(variants)) == variants.lengths + 1).all()
    for i, case in enumerate(variants.sequences):
        alone = Variants.from_dict({case: 1}).sequences
        assert sorted(columns[rows == i].tolist()) == sorted(np.asarray(pairs(ABC)(alone)[1]).tolist())


@pytest.mark.slow
@settings(max_examples=25)
@given(
    cases=traces, epsilon=st.fractions(Fraction(1, 10), 20), bound=st.none() | st.integers(1, 9),
    method=st.sampled_from(["df-laplace", "sapa"]), playout=st.sampled_from(["paper", "guided"]),
)  # fmt: skip
def test_certified_the_charges_add_up_to_epsilon_exactly(
    cases: list[tuple[str, ...]], epsilon: Fraction, bound: int | None, method: str, playout: str
) -> None:
    guarantee = release(log(cases), method, epsilon=epsilon, bound=bound, playout=playout).guarantee
    assert guarantee.proven
    assert sum(charge.epsilon for charge in guarantee.charges) == epsilon


def test_as_published_it_costs_a_length_bound_and_one_times_epsilon() -> None:
    guarantee = release(SMALL, "df-laplace", epsilon="0.5", as_published=True, domain=Domain(max_length=9)).guarantee
    assert (guarantee.status, guarantee.epsilon, guarantee.nominal_epsilon) == ("proven", 5.0, 0.5)


def test_as_published_without_a_length_bound_there_is_no_guarantee() -> None:
    guarantee = release(SMALL, "df-laplace", epsilon=1, as_published=True).guarantee
    assert guarantee.status == "none"
    assert "no bound" in str(guarantee.reasons[0])


def test_both_ways_as_published_add_noise_of_the_same_scale() -> None:
    """Both ways as published play out the relation of the log, at hardly any noise."""
    for domain in (None, Domain(max_length=3)):
        released = release(SMALL, "df-laplace", epsilon=60, as_published=True, seed=1, domain=domain).variants
        assert (exact_relation(released, ABC) == exact_relation(SMALL, ABC)).all()


@pytest.mark.parametrize("method", ["df-laplace", "sapa"])
@pytest.mark.parametrize("playout", ["paper", "guided"])
def test_without_noise_to_speak_of_it_plays_out_the_relation_of_the_log(method: str, playout: str) -> None:
    released = release(SMALL, method, epsilon=900, seed=1, bound=4, playout=playout).variants
    assert (exact_relation(released, ABC) == exact_relation(SMALL, ABC)).all()


def test_long_cases_count_for_less() -> None:
    """Two steps in full out of the four of a case leave half of each."""
    variants = Variants.from_dict({("a", "b", "c"): 300})
    released = release(variants, "df-laplace", epsilon=900, seed=1, bound=2, count_share=0).variants
    assert released.to_dict() == {("a", "b", "c"): 150}


@pytest.mark.parametrize("method", ["df-laplace", "sapa"])
@pytest.mark.parametrize(("bound", "fraction"), [(1, "1/4"), (2, "1/2"), (3, "3/4"), (4, "1")])
def test_the_number_of_cases_is_asked_for_and_made_up_for(method: str, bound: int, fraction: str) -> None:
    """Releases have the noisy number of traces, whatever the bound takes away."""
    variants = Variants.from_dict({("a", "b", "c"): 300, ("c", "a", "b"): 100})
    alone = release(variants, method, epsilon=900, seed=1, bound=bound, count_share=0).variants
    assert alone.cases == 400 * Fraction(fraction)
    assert release(variants, method, epsilon=900, seed=1, bound=bound).variants.cases == 400


@pytest.mark.slow
@given(counts=st.lists(st.integers(1, 50), min_size=1, max_size=3), cases=st.integers(1, 500), seed=st.integers(0, 99))
def test_resizing_copies_all_traces_and_draws_the_rest(counts: list[int], cases: int, seed: int) -> None:
    played = Variants.from_dict(dict(zip([("a",), ("b", "a"), ("c",)], counts, strict=False)))
    released = resized(played, cases, Curator(SMALL, randomness=noise.seeded(seed))).to_dict()
    copies = cases // played.cases
    assert sum(released.values()) == cases
    assert all(copies * n <= released.get(t, 0) <= (copies + 1) * n for t, n in played.to_dict().items())


def test_without_a_trace_or_a_number_nothing_is_resized() -> None:
    curator = Curator(SMALL, randomness=noise.seeded(1))
    assert resized(Variants.from_dict({}), 7, curator).cases == 0
    assert resized(SMALL, None, curator) == SMALL


def test_an_as_published_budget_that_protects_nobody_is_refused_in_these_words() -> None:
    with refused(ParameterError, "relation-cost-of-length"):
        release(SMALL, "df-laplace", epsilon=20, as_published=True, domain=Domain(max_length=100))


@pytest.mark.parametrize("method", ["df-laplace", "sapa"])
def test_as_published_noise_that_could_not_be_played_out_is_refused(method: str) -> None:
    with refused(ParameterError, "relation-noise-adds-pairs"):
        release(SMALL, method, epsilon="1e-8", as_published=True)


@pytest.mark.parametrize(
    "parameters",
    [
        {"bound": 0},
        {"bound": 1.5},
        {"playout": "random"},
        {"noise_relations": 0},
        {"k": 2},
        {"largest_log": -1},
        {"count_share": 1},
    ],
)
def test_nonsense_is_refused(parameters: dict) -> None:
    with pytest.raises(ParameterError):
        release(SMALL, "df-laplace", epsilon=1, **parameters)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["df-laplace", "sapa"])
@pytest.mark.parametrize("name", ["sepsis", "receipt"])
@pytest.mark.parametrize("epsilon", ["1", "0.1"])
def test_as_published_the_number_of_traces_stays_within_a_fifth(
    logs: Path, name: str, method: str, epsilon: str
) -> None:
    variants = files.read(logs / f"{name}.xes.gz").variants
    released = release(variants, method, epsilon=epsilon, seed=3, as_published=True).variants
    assert released.cases == pytest.approx(variants.cases, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["df-laplace", "sapa"])
@pytest.mark.parametrize("name", ["sepsis", "receipt"])
@pytest.mark.parametrize("epsilon", ["1", "0.3"])
def test_certified_the_number_of_traces_stays_within_a_fifth(logs: Path, name: str, method: str, epsilon: str) -> None:
    """The number of traces is within a fifth; at 0.3 chance exceeds it in 1 of 500."""
    variants = files.read(logs / f"{name}.xes.gz").variants
    for seed in (1, 2, 3):
        released = release(variants, method, epsilon=epsilon, seed=seed).variants
        assert released.cases == pytest.approx(variants.cases, rel=0.2)


@pytest.mark.parametrize("method", ["df-laplace", "sapa"])
def test_a_share_too_small_to_count_cases_with_is_refused_unasked(method: str) -> None:
    log = Variants.from_dict({("a", "b"): 500, ("a", "c"): 300})
    with refused(ParameterError, "relation-count-share-small", share=1e-09):
        release(log, method, epsilon=1, count_share=1e-9)
    assert release(log, method, epsilon=1, count_share=0, seed=1).variants.cases > 0


@pytest.mark.parametrize("method", ["df-laplace", "sapa"])
@pytest.mark.parametrize("longest", [2**33, 2**63, 10**30])
def test_however_long_a_declaration_lets_cases_be_no_bound_is_too_large_to_add_up(method: str, longest: int) -> None:
    """Any bound adds up for few cases, although noise decides which step is taken."""
    for seed in range(3):
        held = Domain.of(ABC, longest)
        assert release(SMALL, method, epsilon=1, domain=held, seed=seed).variants.cases > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "parameters"), [("df-laplace", {}), ("sapa", {}), ("dpim", {}), ("sacofa", {"rule_share": 0.3})]
)
def test_activities_with_more_pairs_than_can_be_counted_are_refused_unasked(
    tmp_path: Path, method: str, parameters: dict
) -> None:
    ledger = Ledger.open(tmp_path / "log.ledger", create=True)
    names = [f"activity {i}" for i in range(7071)]
    with refused(ParameterError, "relation-pairs-too-many", number=7071, isqrt=7070):
        veilog.release(SMALL, method, epsilon=3, domain=Domain.of(names, 50), ledger=ledger, **parameters)
    assert [entry.state for entry in ledger.show()[0].entries] == ["withdrawn"]

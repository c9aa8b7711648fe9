"""Attributes by the path: contributions to sums of signs, and likely shares."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from event_questions import exact_signs, heard, signs_heard
from hypothesis import given, settings
from hypothesis import strategies as st
from logs_with_attributes import log_of
from test_cells import block, repeated

from veilog import Domain
from veilog.logs.variants import Variants
from veilog.methods._events.attributes.domains import choose
from veilog.methods._events.attributes.signs import SignRule, SignSums, noise_of_gaps, variance_of, weights_of_two
from veilog.methods._events.attributes.synthesis import released_attributes
from veilog.methods._events.cells import Kinds
from veilog.privacy.contributions import CUBE_UNIT
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

CASES = Variants.from_dict({("a", "b"): 40, ("a", "c"): 30, ("a", "b", "b", "d"): 20, ("c",): 10})
MUCH = Fraction(10)


@given(paths=st.lists(st.lists(st.integers(-1, 3), max_size=6), min_size=1, max_size=8))
@settings(max_examples=60)
def test_the_signs_of_a_case_are_its_own(paths: list[list[int]]) -> None:
    """Signs do not depend on the other cases of the block, nor on their order."""
    cases = repeated(CASES)
    rule = SignRule.of(Kinds.of(cases), cases.labels, MUCH, len(cases))
    alone = [rule.of_cases(block([path]))[0].tolist() for path in paths]
    assert rule.of_cases(block(paths)).tolist() == alone
    assert rule.of_cases(block(paths[::-1])).tolist() == alone[::-1]
    assert {sign for signs in alone for sign in signs} <= {-1, 1}


def test_entries_that_follow_from_others_are_not_asked_and_few_are_where_noise_is_wide() -> None:
    """Entries that follow from others are left out, and wide noise leaves few.

    All cases but those of c alone have a; b and c exclude each other, and d comes with a second b.
    """
    cases = repeated(CASES)
    kinds = Kinds.of(cases)
    entries = [SignRule.of(kinds, cases.labels, Fraction(e), 100).entries.tolist() for e in ("10", "0.12", "0.01")]
    b, c, d = (cases.labels.index(label) for label in "bcd")
    assert len({b, c}.intersection(entries[0])) == 1 and d in entries[0]
    assert all(entry < 4 for entry in entries[0]), "that b comes twice follows from d"
    assert entries[1] == entries[0][: len(entries[1])] and len(entries[1]) < len(entries[0])
    assert entries[2] == []


@pytest.mark.parametrize("wards", [2, 3])
@pytest.mark.parametrize("more", [["a", "b", "d"], ["c"], []])
def test_a_case_adds_up_to_one_to_each_number_of_one_row(more: list[str], wards: int) -> None:
    """Exact answers of neighbouring logs differ by up to 1 in each number of a row.

    That is the sensitivity of the query.
    """
    cases = [({"ward": f"w{i % wards}"}, [{"activity": a} for a in ("a", "bc"[i // 3 % 2])]) for i in range(300)]
    first = log_of(cases)
    second = log_of([*cases, ({"ward": "w1"}, [{"activity": a} for a in more])])
    domain = Domain(attributes={"ward": tuple(f"w{i}" for i in range(wards))})
    curator = Curator(first.variants, log=first, domain=domain, randomness=noise.seeded(1))
    chosen, rest = choose(curator, ("ward",), Fraction(8), Fraction(0), lambda text: None)
    with heard() as sums, signs_heard() as asked:
        released_attributes(curator, rest, repeated(first.variants), chosen)
    assert {question[3]["purpose"].code for question in sums} == {"values-by-case"}
    ((_, rows, _, more_of_it),) = asked
    assert more_of_it["purpose"].code == "values-by-activities" and rows == (1 if wards == 2 else wards)
    apart = np.abs(exact_signs(second, asked[0]) - exact_signs(first, asked[0]))
    assert apart.max() <= 1 and apart.any(axis=1).sum() == 1
    assert len(set(apart[apart.any(axis=1)][0].tolist())) == 1


@pytest.mark.parametrize("values", [2, 3])
@given(seed=st.integers(0, 100))
@settings(max_examples=20)
def test_odds_of_independent_steps_multiply(values: int, seed: int) -> None:
    """Shares of kinds without noise are those of the naive Bayes rule.

    Four of six independent steps are more or less frequent where the value is the second one.
    """
    rng = np.random.default_rng(seed)
    often = rng.uniform(0.3, 0.7, 6)
    moved = often + np.array([0.2, -0.2, 0.15, -0.25, 0, 0])
    usual, among = np.array([0.7, 0.3]), np.stack([often, moved])
    if values == 3:
        usual, among = np.array([0.4, 0.3, 0.3]), np.stack([often, moved, often])
    profiles = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    profiles = np.concatenate([profiles, np.zeros_like(profiles)], axis=1)
    chance = np.array([np.prod(np.where(profiles[:, :6] > 0, p, 1 - p), axis=1) for p in among]) * usual[:, None]
    kinds = Kinds(np.arange(64), profiles, chance.sum(axis=0))
    rule = SignRule.of(kinds, tuple("abcdef"), MUCH, 10_000)
    assert sorted(rule.entries.tolist()) == list(range(6))
    sums = 1e6 * chance @ rule.of_profiles(profiles)
    if values == 2:
        sums = weights_of_two(usual) / CUBE_UNIT * [-1, 1] @ sums
    found = SignSums(rule, np.atleast_2d(sums), 1.0, 1e6).shares(usual, kinds)
    assert found.sum(axis=1) == pytest.approx(np.ones(64))
    assert kinds.shares @ np.abs(found - (chance / chance.sum(axis=0)).T).sum(axis=1) / 2 < 0.06


@pytest.mark.parametrize("usual", [[0.7, 0.3], [0.5, 0.3, 0.2]])
def test_noise_of_gaps_is_about_what_noise_moves_them_by(usual: list[float]) -> None:
    """Expected noise of gaps is about what noise moves gaps by.

    Values go with none of the steps. So all that is found to go with them is noise, of the expected size.
    """
    rng, n, width, p = np.random.default_rng(5), 4_000, 8, np.array(usual)
    variance = variance_of(width, Fraction(1, 10))
    moved = []
    for _ in range(200):
        noises = noise.cubes(Fraction(1, 10), width, 1 if len(p) == 2 else len(p), noise.seeded(int(rng.integers(9e9))))
        of_two = p.max() * np.stack([noises[0], -noises[0]])
        varies = of_two if len(p) == 2 else noises - p[:, None] * noises.sum(axis=0)
        moved.append(np.abs(varies / (2 * n * p * (1 - p))[:, None]).mean(axis=1).min())
    assert 0.8 * np.mean(moved) < noise_of_gaps(variance, p, n) < 1.25 * np.mean(moved)

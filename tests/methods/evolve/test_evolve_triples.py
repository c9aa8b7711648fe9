"""evolve asks for triples where they are worth their votes, and gains there."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilog
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods.evolve import EvolveSettings, evolve
from veilog.methods.evolve.constants import DEFAULTS, Constants
from veilog.methods.method import Request
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ALL_FROM_LOG
from veilog.privacy.mechanisms import noise

NEVER = replace(DEFAULTS, triple_shares=())


def kinds(cases: int, activities: int, number: int) -> Variants:
    """Return cases of kinds, each with an order of activities, skips and steps back.

    The next activity depends on the kind, which no single step reveals.
    """
    rng = np.random.default_rng(1)
    orders = [rng.permutation(activities) for _ in range(number)]
    rows = []
    for _ in range(cases):
        order, at, row = orders[rng.integers(number)], 0, []
        while at < activities:
            row.append(order[at])
            at = max(0, at + int(rng.choice([1, 2, -1], p=[0.8, 0.12, 0.08])))
        rows.append(row)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return Variants.from_arrays([f"a{i}" for i in range(activities)], np.concatenate(rows), offsets)


def released(log: Variants, epsilon: str, seed: int, constants: Constants = DEFAULTS) -> tuple[Variants, bool]:
    """Return a release of full detail, and True if it queried triples."""
    curator = Curator(log, domain=ALL_FROM_LOG, randomness=noise.seeded(seed))
    request = Request(Fraction(epsilon), Fraction(0), False, lambda text, done: None, lambda a, b: 0.0)
    release = evolve(curator, request, EvolveSettings(for_="detail"), constants)
    charges = curator.guarantee().charges
    assert sum(charge.epsilon for charge in charges) == Fraction(epsilon)
    return release, any("triples" in charge.purpose for charge in charges)


def similarity(log: Variants, seeds: tuple[int, ...], constants: Constants = DEFAULTS) -> float:
    """Return the mean similarity at epsilon 1."""
    releases = [released(log, "1", seed, constants)[0] for seed in seeds]
    return float(np.mean([relative_log_similarity(log, release).value for release in releases]))


@pytest.mark.nightly
def test_where_cases_have_a_long_memory_triples_are_asked_for_and_gain() -> None:
    log = kinds(4000, 10, 5)
    assert released(log, "1", 0)[1]
    assert not released(log, "1", 0, NEVER)[1]
    assert similarity(log, (0, 1)) > similarity(log, (0, 1), NEVER) + 0.04


@pytest.mark.nightly
def test_where_noise_would_drown_them_triples_are_not_asked_for() -> None:
    assert not released(kinds(4000, 10, 5), "0.05", 1)[1]
    assert not released(kinds(300, 10, 5), "1", 1)[1]


@pytest.mark.nightly
def test_a_log_without_memory_loses_next_to_nothing_by_the_question() -> None:
    """A log without memory, of one order with random steps, loses next to nothing."""
    log = kinds(4000, 10, 1)
    assert similarity(log, (0, 1, 2)) > similarity(log, (0, 1, 2), NEVER) - 0.01


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["sepsis", "receipt", "unrineweginfectie"])
def test_small_real_logs_are_not_asked_for_triples(logs: Path, name: str) -> None:
    log = veilog.read(logs / f"{name}.xes.gz").variants
    assert not any(released(log, "1", seed)[1] for seed in (0, 1))

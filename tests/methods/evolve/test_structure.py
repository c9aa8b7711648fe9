"""Structured releases: what structures keep, which are chosen, and no new query."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import openly
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.methods.evolve.constants import DEFAULTS, Aim
from veilog.methods.evolve.structure import (
    Candidate,
    Imagined,
    Models,
    Structure,
    Weighted,
    candidates,
    columns_of,
    structured,
)
from veilog.methods.evolve.traces import PAD, Traces, distances, distinct, strings
from veilog.mining.inductive import discover
from veilog.mining.language import judge
from veilog.mining.replay import Prefixes
from veilog.privacy.curator import Curator

SIZE, WIDTH = 4, 7
LOG = hospital(400, seed=2).variants
made = st.dictionaries(
    st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=WIDTH).map(tuple),
    st.integers(1, 30),
    min_size=2,
    max_size=25,
)


def traces(rows: list[tuple[int, ...]]) -> Traces:
    codes = np.full((len(rows), WIDTH), PAD, dtype=np.int32)
    for i, row in enumerate(rows):
        codes[i, : len(row)] = row
    return Traces(codes, np.array([len(row) for row in rows], dtype=np.int64))


def imagined(weights: dict[tuple[int, ...], int]) -> Imagined:
    pool, p = distinct(traces(list(weights)), np.array(list(weights.values())) / sum(weights.values()))
    return Imagined(pool, p, pool, SIZE)


def as_log(some: Traces, counts: np.ndarray) -> Variants:
    rows = [tuple("abcd"[c] for c in row[:n]) for row, n in zip(some.codes, some.lengths.tolist(), strict=True)]
    return Variants.from_sequences(rows, counts.tolist())


def rows_of(some: Traces) -> list[tuple[int, ...]]:
    return [tuple(row[:n].tolist()) for row, n in zip(some.codes, some.lengths.tolist(), strict=True)]


def plain(weights: dict[tuple[int, ...], int]) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    """Return shares of repeated activities and of edges, counted one by one."""
    having: Counter[int] = Counter()
    repeating: Counter[int] = Counter()
    edges: Counter[tuple[int, int]] = Counter()
    for row, cases in weights.items():
        for code, often in Counter(row).items():
            having[code] += cases
            repeating[code] += cases * (often > 1)
        for pair in itertools.pairwise((SIZE, *row, SIZE)):
            edges[pair] += cases
    largest = {x: max(n for (y, _), n in edges.items() if y == x) for x, _ in edges}
    return {code: repeating[code] / n for code, n in having.items()}, {e: n / largest[e[0]] for e, n in edges.items()}


@pytest.mark.nightly
@given(made)
def test_repetitions_and_edges_are_those_counted_one_by_one(weights: dict[tuple[int, ...], int]) -> None:
    given = imagined(weights)
    structure = Structure.of(given.pool, given.p, SIZE)
    repeats, edges = plain(weights)
    assert {code: structure.repeats[code] for code in repeats} == pytest.approx(repeats)
    assert {edge: structure.edges[edge] for edge in edges} == pytest.approx(edges)
    again, edge = structure.rarest(given.pool)
    for row, rarest, least in zip(rows_of(given.pool), again, edge, strict=True):
        repeated = [repeats[code] for code, often in Counter(row).items() if often > 1]
        assert rarest == pytest.approx(min(repeated, default=np.inf))
        assert least == pytest.approx(min(edges[pair] for pair in itertools.pairwise((SIZE, *row, SIZE))))


@pytest.mark.nightly
@given(made, st.integers(0, 2))
def test_every_candidate_keeps_its_structure_all_cases_and_what_is_real(
    weights: dict[tuple[int, ...], int], real: int
) -> None:
    given = imagined(weights)
    counts = np.array([weights[row] for row in rows_of(given.pool)])
    fine = Weighted(given.pool, counts, real)
    columns = columns_of(fine, given)
    repeats, edges = plain(weights)
    distance = distances(strings(fine.traces), strings(columns))
    for candidate in candidates(fine, columns, given, replace(DEFAULTS, structure_sizes=(5, 2))):
        assert candidate.goes[:real].tolist() == list(range(real)), "what is real stays where it is"
        moved = distance[np.arange(len(counts)), candidate.goes]
        assert candidate.loss == pytest.approx(counts @ moved / counts.sum(), abs=1e-6)
        for column in set(candidate.goes.tolist()) - set(range(real)):
            row = rows_of(columns)[column]
            assert all(repeats[code] >= candidate.level - 1e-9 for code, n in Counter(row).items() if n > 1)
            steps = itertools.pairwise((SIZE, *row, SIZE))
            assert all(edges[pair] > candidate.threshold - 1e-9 for pair in steps)


@pytest.mark.nightly
@settings(max_examples=30)
@given(made, st.sampled_from([DEFAULTS.similarity, DEFAULTS.models, Aim(0.0, 5.0)]))
def test_the_best_candidate_that_is_near_enough_is_chosen(weights: dict[tuple[int, ...], int], aim: Aim) -> None:
    given, noise = imagined(weights), 0.3
    price, cap = aim.price / (0.05 + noise), 0.01 + aim.cap * noise
    fine = Weighted(given.pool, np.array([weights[row] for row in rows_of(given.pool)]))
    columns = columns_of(fine, given)
    (chosen,) = structured(fine, given, [aim], noise, Models.judged_by(fine, as_log, DEFAULTS), DEFAULTS)
    assert chosen.counts.sum() == fine.counts.sum()
    assert chosen.counts.min() > 0

    def value(candidate: Candidate) -> float:
        counts = np.bincount(candidate.goes, weights=fine.counts, minlength=len(columns)).astype(np.int64)
        tree = discover(as_log(columns, counts), noise=DEFAULTS.miner_noise)
        return judge(tree, Prefixes.of(as_log(fine.traces, fine.counts))).f_score - price * candidate.loss

    near = [c for c in candidates(fine, columns, given, DEFAULTS) if c.loss <= cap]
    unmoved = Candidate(0.0, 0.0, np.arange(len(fine.counts)), 0.0)
    best = max(map(value, [unmoved, *near]))
    found = judge(
        discover(as_log(chosen.traces, chosen.counts), noise=DEFAULTS.miner_noise),
        Prefixes.of(as_log(fine.traces, fine.counts)),
    ).f_score
    moved = distances(strings(fine.traces), strings(chosen.traces)).min(axis=1)
    loss = float(fine.counts @ moved) / fine.counts.sum()
    assert found - price * loss == pytest.approx(best, abs=1e-6)
    assert loss <= cap + 1e-6


def test_a_rare_edge_and_a_rare_repetition_are_moved_away() -> None:
    weights = {(0, 1, 2): 900, (0, 2, 1): 12, (0, 1, 1, 2): 10, (0, 3, 2): 400}
    given = imagined(weights)
    fine = Weighted(given.pool, np.array([weights[row] for row in rows_of(given.pool)]))
    (chosen,) = structured(fine, given, [DEFAULTS.models], 0.1, Models.judged_by(fine, as_log, DEFAULTS), DEFAULTS)
    assert dict(zip(rows_of(chosen.traces), chosen.counts.tolist(), strict=True)) == {(0, 1, 2): 922, (0, 3, 2): 400}


def test_a_release_of_much_to_judge_tries_fewer_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less work tries fewer structures, with the nearest and the farthest."""
    rng = np.random.default_rng(3)
    weights = {tuple(rng.integers(0, SIZE, rng.integers(2, WIDTH)).tolist()): 20 + i for i in range(40)}
    given = imagined(weights)
    fine = Weighted(given.pool, np.array([weights[row] for row in rows_of(given.pool)]))
    models = Models.judged_by(fine, as_log, DEFAULTS)
    judged: list[int] = []

    def counted(variants: Variants, **how: Any) -> Any:
        judged.append(len(variants))
        return discover(variants, **how)

    monkeypatch.setattr("veilog.methods.evolve.structure.discover", counted)
    numbers = []
    for work in (10**9, 1):
        judged.clear()
        structured(fine, given, [Aim(0.0, 5.0)], 0.3, models, replace(DEFAULTS, structure_work=work))
        numbers.append(list(judged))
    assert len(numbers[0]) > len(numbers[1]) == DEFAULTS.structure_fewest
    assert numbers[0][0] == numbers[1][0] == len(weights)
    assert numbers[0][-1] == numbers[1][-1]


@pytest.mark.nightly
def test_the_curator_is_asked_the_same_whatever_the_release_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for a structure is post-processing: equal queries and answers."""
    asked: list[tuple[str, Any]] = []
    for question in ("count", "sums", "histogram", "concentration", "partitions", "peek"):
        own = getattr(Curator, question)

        def kept(self: Curator, *given: Any, own: Any = own, question: str = question, **named: Any) -> Any:
            answer = own(self, *given, **named)
            asked.append((question, repr(answer)))
            return answer

        monkeypatch.setattr(Curator, question, kept)
    seen = {}
    for aim in ("detail", "similarity", "models", "both"):
        asked.clear()
        released = openly.release(LOG, "evolve", epsilon=2, seed=5, for_=aim)
        seen[aim] = list(asked), released.guarantee.charges
    assert seen["detail"][0]
    assert seen["detail"] == seen["similarity"] == seen["models"] == seen["both"]


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [0, "1e-2"])
def test_a_seed_repeats_the_structured_release(delta: Any) -> None:
    first, again = (
        openly.release(LOG, "evolve", epsilon=2, delta=delta, seed=4, **{"for": "models"}) for _ in range(2)
    )
    assert first.variants == again.variants
    assert first.parameters["for"] == "models"
    fine = openly.release(LOG, "evolve", epsilon=2, delta=delta, seed=4, for_="detail")
    assert first.variants.cases == fine.variants.cases
    assert len(first.variants) <= len(fine.variants)


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [0, "1e-2"])
def test_both_releases_are_those_that_each_would_have_been(delta: Any) -> None:
    """Both releases equal those of single runs with one seed, for one run's answers."""
    alone = {
        aim: openly.release(LOG, "evolve", epsilon=2, delta=delta, seed=4, for_=aim) for aim in ("similarity", "models")
    }
    both = openly.release(LOG, "evolve", epsilon=2, delta=delta, seed=4, for_="both")
    assert list(both.beside) == ["models"]
    models = both.beside["models"]
    assert both.variants == alone["similarity"].variants
    assert both.order.tolist() == alone["similarity"].order.tolist()
    assert models.variants == alone["models"].variants
    assert Counter(models.order.tolist()) == Counter(dict(enumerate(models.variants.counts.tolist())))
    assert both.guarantee.charges == models.guarantee.charges == alone["models"].guarantee.charges
    assert [released.remarks[-1].code for released in (both, models)] == [
        "release-second-file-made",
        "release-file-of-two",
    ]
    assert both.to_json()["beside"] == {
        "models": {"cases": models.variants.cases, "events": models.variants.events, "variants": len(models.variants)}
    }


def test_with_real_variants_alone_there_is_nothing_beside() -> None:
    planned = openly.planned("evolve", epsilon=2, delta="1e-2", for_="both", only_real=True)
    assert planned.beside == ()
    assert openly.planned("evolve", epsilon=2, for_="both").beside == ("models",)

"""Edited copies: the possible edits, their likelihoods, and what never changes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import openly
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.methods.evolve.chain import Chain
from veilog.methods.evolve.constants import DEFAULTS
from veilog.methods.evolve.diversity import Edits, _apply_edit, diverse, themselves, traces_of
from veilog.methods.evolve.structure import Weighted
from veilog.methods.evolve.traces import strings

SIZE, LONGEST = 4, 7
texts = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=LONGEST).map(lambda row: "".join(map(chr, row)))
releases = st.dictionaries(texts, st.integers(1, 30), min_size=1, max_size=8)
flows = st.lists(st.sampled_from([0.0, 1.0, 3.0, 10.0]), min_size=(SIZE + 1) ** 2, max_size=(SIZE + 1) ** 2)


def weighted(release: dict[str, int], real: int = 0) -> Weighted:
    return Weighted(traces_of(list(release)), np.array(list(release.values()), dtype=np.int64), real)


def chain_of(flow: list[float]) -> Chain:
    matrix = np.array(flow).reshape(SIZE + 1, SIZE + 1)
    return Chain(matrix, matrix > 0)


def likely(text: str, chances: np.ndarray) -> float:
    """Return how likely a chain walks a trace; an unknown step counts as a rare one."""
    codes = [SIZE, *map(ord, text), SIZE]
    return float(np.prod([max(chances[a, b], 1e-9) for a, b in itertools.pairwise(codes)]))


def edited(text: str) -> set[str]:
    """Return all traces with one event inserted, left out, replaced or exchanged."""
    new = [text[:i] + chr(z) + text[i:] for i in range(len(text) + 1) for z in range(SIZE)]
    new += [text[:i] + chr(z) + text[i + 1 :] for i in range(len(text)) for z in range(SIZE)]
    new += [text[:i] + text[i + 1 :] for i in range(len(text))]
    new += [text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in range(len(text) - 1)]
    return {one for one in new if 0 < len(one) <= LONGEST} - {text}


@given(releases, flows)
def test_the_edits_of_a_trace_are_those_that_the_chain_allows(release: dict[str, int], flow: list[float]) -> None:
    """Edits are all that the chain allows, without new steps or new repeats."""
    chain = chain_of(flow)
    edits = Edits.of(weighted(release), chain, LONGEST)
    repeated = {event for text in release for event in text if text.count(event) > 1}
    for text in release:
        own = set(zip([SIZE, *map(ord, text)], [*map(ord, text), SIZE], strict=True))
        found = set(edits.drawn(text, 0.0, np.random.default_rng(1)))
        for other in edited(text):
            steps = set(zip([SIZE, *map(ord, other)], [*map(ord, other), SIZE], strict=True)) - own
            single = all(other.count(event) == 1 or event in repeated for event in other)
            if all(chain.flow[step] > 0 for step in steps | own):
                assert (other in found) == single
            elif any(chain.flow[step] <= 0 for step in steps):
                assert other not in found


def test_edits_are_as_likely_as_the_chain_has_them_beside_the_trace() -> None:
    """20,000 first edits follow ``P(edited) / P(trace)`` (false alarm 1e-4)."""
    rng = np.random.default_rng(5)
    chain = chain_of(rng.uniform(0.5, 3.0, (SIZE + 1) ** 2).tolist())
    text = "\x00\x01\x02\x01"
    edits = Edits.of(weighted({text: 3, "\x00\x00\x02\x02\x03\x03": 1}), chain, LONGEST)
    kinds, places, events, weights = edits._weigh_edits(text, 0.0)
    chances: dict[str, float] = {}
    found: dict[str, int] = {}
    for kind, place, event, weight in zip(kinds.tolist(), places.tolist(), events.tolist(), weights, strict=True):
        one = _apply_edit(text, kind, place, event)
        assert likely(one, edits.chances) / likely(text, edits.chances) == pytest.approx(weight)
        chances[one] = chances.get(one, 0.0) + weight
    for _ in range(20_000):
        first = next(edits.drawn(text, 0.0, rng))
        found[first] = found.get(first, 0) + 1
    expected = np.array(list(chances.values())) / sum(chances.values()) * 20_000
    some = expected > 10
    seen = np.array([found.get(one, 0) for one in chances])
    statistic = float(((seen - expected)[some] ** 2 / expected[some]).sum())
    degrees = int(some.sum())
    assert statistic < degrees + 3.72 * np.sqrt(2 * degrees) + 9.2


@given(releases, flows, st.integers(0, 2), st.sampled_from([0.0, 0.1, 1.0]), st.integers(0, 99))
def test_an_edited_release_has_as_many_cases_and_what_is_real(
    release: dict[str, int], flow: list[float], real: int, rarest: float, seed: int
) -> None:
    fine = weighted(release, min(real, len(release)))
    copies = np.minimum(fine.counts, 2)
    copies[: fine.real] = fine.counts[: fine.real]
    found = Edits.of(fine, chain_of(flow), LONGEST).applied(fine, copies, rarest, np.random.default_rng(seed))
    assert found.counts.sum() == fine.counts.sum()
    assert found.counts.min() > 0
    assert found.counts[: fine.real].tolist() == fine.counts[: fine.real].tolist()
    assert (found.counts[: len(fine.counts)] >= copies).all()
    assert len(set(strings(found.traces))) == len(found.counts)
    assert found.traces.lengths.max() <= LONGEST


def test_a_trace_has_as_many_copies_as_the_fit_gives_it_beyond_chance() -> None:
    """A trace has the copies of the fit; two draws of a pool of 20,000 are chance."""
    fine = weighted({"\x00": 600, "\x01": 300, "\x02": 100})
    pool = traces_of(["\x00", "\x01", "\x03"])
    copies = themselves(fine, pool, np.array([0.5, 2 / 20_000, 0.5 - 2 / 20_000]), 1000, DEFAULTS)
    assert copies.tolist() == [500, 1, 1]
    real = themselves(replace(fine, real=2), pool, np.array([0.5, 0.0, 0.5]), 1000, DEFAULTS)
    assert real.tolist() == [600, 300, 1]


def test_edits_that_spoil_the_model_are_not_taken() -> None:
    """Edits that spoil the model are left out: of rarer and rarer steps, at last all."""
    fine = weighted({"\x00\x01": 50, "\x00\x02\x01": 1})
    edits = Edits.of(fine, chain_of([1.0] * (SIZE + 1) ** 2), LONGEST)
    tried: list[int] = []

    def never(release: Weighted) -> bool:
        tried.append(len(release.counts))
        return False

    kept = diverse(fine, np.array([10, 1]), edits, never, DEFAULTS, np.random.default_rng(0))
    assert kept is fine
    assert len(tried) == len(DEFAULTS.diverse_steps)
    assert tried == sorted(tried, reverse=True)
    first = diverse(fine, np.array([10, 1]), edits, lambda release: True, DEFAULTS, np.random.default_rng(0))
    assert len(first.counts) == tried[0]


def test_a_process_whose_cases_are_all_different_has_a_release_of_different_cases() -> None:
    """A log of 3,000 distinct walks gets a release of nearly distinct cases.

    Nine tenths of the released cases at least are of their own kind. Those of a hospital in which a third are of their
    own kind have about as many.
    """
    rng = np.random.default_rng(3)
    steps = rng.dirichlet(np.full(12, 0.3), size=12)
    walks: dict[tuple[str, ...], int] = {}
    while len(walks) < 3000:
        state, walk = int(rng.integers(12)), []
        for _ in range(rng.poisson(15) + 2):
            walk.append(f"activity {state:02d}")
            state = int(rng.choice(12, p=steps[state]))
        walks[tuple(walk)] = 1
    many = openly.release(Variants.from_dict(walks), "evolve", epsilon=1, seed=1).variants
    assert len(many) >= 0.9 * many.cases
    log = hospital(3000, seed=2).variants
    few = openly.release(log, "evolve", epsilon=1, seed=1).variants
    assert len(few) / few.cases == pytest.approx(len(log) / log.cases, abs=0.1)

"""Queries for evolve's chain: frequent activities, relations and repeats.

Each is one answer of clipped sums. The plan decides the epsilon of each, by public facts and earlier noisy answers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, Int32Array, IntArray
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods._relations import public_codes
from veilog.methods.evolve.chain import (
    Chain,
    Shortened,
    Triples,
    activity_features,
    clean,
    relation_and_repeat_features,
    relation_features,
    trigram_features,
)
from veilog.methods.evolve.chain import limit_repeats as repeating
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.doubt import Doubt, doubt_of
from veilog.methods.evolve.plan import EvolvePlan, deviation_of_gaussian, gaussian_pays
from veilog.methods.evolve.real_variants import RealVariants
from veilog.privacy.curator import Curator
from veilog.rules.automata import Automata
from veilog.rules.rules import ReleaseRules

_NO_DELTA = Fraction(0)


def _sums(
    curator: Curator,
    plan: EvolvePlan,
    shortened: Shortened,
    question: Callable[[Int32Array, IntArray, int], Triples],
    cells: int,
    epsilon: Fraction,
    purpose: str | Message,
    delta: Fraction = _NO_DELTA,
) -> tuple[FloatArray, float]:
    """Return noisy sums of the features of the cases' states, and the noise scale.

    A case that has m features, which ``question`` finds in its states, adds min(1, c/m) for each; the scale is
    c/epsilon. With a delta a case adds its features divided by their L2 norm, and the noise is Gaussian. Then the scale
    is that of Laplace noise that varies as much. The norm is rounded up to parts of a feature.
    """
    settings, activities = plan.settings, curator.activities
    parts = 2**settings.norm_bits if delta else 1
    bound, one = parts if delta else settings.contribution, 2**settings.scale_bits // parts

    def features(sequences: Sequences) -> Triples:
        states, bounds = shortened(public_codes(sequences, activities)[sequences.codes], sequences.offsets)
        owner, cell, value = question(states, bounds, shortened.size)
        return owner, cell, value * parts

    answer = curator.sums(features, cells, bound, epsilon, delta=delta, resolution=one, purpose=purpose)
    scale = deviation_of_gaussian(epsilon, delta) / math.sqrt(2) if delta else bound / float(epsilon)
    return np.divide(answer, one * parts, dtype=np.float64), scale


@dataclass(frozen=True, eq=False)
class ProcessSketch:
    """Knowledge of a process before any vote."""

    shortened: Shortened
    known: RealVariants | None
    """Frequent real variants, if there are any."""
    chain: Chain
    doubt: Doubt | None


def sketch_process(
    curator: Curator,
    plan: EvolvePlan,
    real: Variants | None,
    rng: np.random.Generator,
    rules: ReleaseRules | None = None,
) -> ProcessSketch:
    """Query the preparation of cases, and the chain, whose walks obey the rules."""
    shortened, known = prepare_cases(curator, plan, real, rules)
    automata = automata_of(rules, shortened, curator.activities)
    chain, doubt = query_chain(curator, plan, shortened, known, rng, automata)
    return ProcessSketch(shortened, known, replace(chain, rules=automata), doubt)


def automata_of(rules: ReleaseRules | None, shortened: Shortened, activities: tuple[str, ...]) -> Automata | None:
    """Return automata that decide if prepared cases obey rules; None without rules."""
    if rules is None or not rules.constraints:
        return None
    return rules.automata([activities[code] for code in np.flatnonzero(shortened.states >= 0)])


def prepare_cases(
    curator: Curator, plan: EvolvePlan, real: Variants | None, rules: ReleaseRules | None = None
) -> tuple[Shortened, RealVariants | None]:
    """Return the preparation of cases, and the real variants so prepared, if any.

    Cases are cut, and reduced to the activities of the real variants where these anchor the plan. For a wide alphabet
    they are reduced to the frequent activities. In both cases the activities that rules name stay.
    """
    activities = curator.activities
    named = named_by(rules, activities)
    everything = Shortened(np.arange(len(activities), dtype=np.int32), len(activities), plan.settings.max_length)
    codes = public_codes(real.sequences, activities) if real else np.zeros(0, dtype=np.int64)
    known = RealVariants.of(real, codes, everything) if real else None
    plan.anchored = plan.anchored and bool(known)
    if real and known and plan.anchored:
        reduced = reduced_to(everything, np.union1d(known.traces.in_a_row[0], named))
        return reduced, RealVariants.of(real, codes, reduced)
    if plan.wide:
        shortened = _frequent(curator, plan, everything, named)
        return shortened, RealVariants.of(real, codes, shortened) if real else None
    return everything, known


def reduced_to(everything: Shortened, kept: Int32Array | IntArray) -> Shortened:
    states = np.full(everything.size, -1, dtype=np.int32)
    states[kept] = np.arange(len(kept))
    return replace(everything, states=states, size=len(kept))


def named_by(rules: ReleaseRules | None, activities: tuple[str, ...]) -> IntArray:
    """Return the codes of activities that rules name: a trace may need rare ones."""
    named = set() if rules is None else {name for rule in rules.items for name in rule.activities}
    return np.array([code for code, name in enumerate(activities) if name in named], dtype=np.int64)


def _frequent(curator: Curator, plan: EvolvePlan, everything: Shortened, named: IntArray) -> Shortened:
    """Keep activities of a wide alphabet with high noisy counts, and ``named`` ones."""
    whole, share = replace(everything, max_length=sys.maxsize), plan.take(plan.presence_share())
    present, b = _sums(curator, plan, whole, activity_features, whole.size, share, "cases-with-an-activity")
    kept = np.flatnonzero(present >= plan.settings.wide_keep * b)
    if len(kept) < 3:
        kept = np.sort(np.argsort(-present, kind="stable")[:3])
    return reduced_to(everything, np.union1d(kept, named))


def query_chain(
    curator: Curator,
    plan: EvolvePlan,
    shortened: Shortened,
    known: RealVariants | None,
    rng: np.random.Generator,
    automata: Automata | None = None,
) -> tuple[Chain, Doubt | None]:
    """Return the chain of the process, and the doubt that relations alone may leave.

    The chain is of the real variants that are known, of noisy relations, or of both. The doubt is whether activities
    come again, where that was not queried.
    """
    if known and plan.anchored:
        return known.chain(shortened.size, plan.settings), None
    chain, doubt = _query_relations(curator, plan, shortened, rng, automata)
    return (known.joined_with(chain, plan.settings), None) if known else (chain, doubt)


def _query_relations(
    curator: Curator, plan: EvolvePlan, shortened: Shortened, rng: np.random.Generator, automata: Automata | None
) -> tuple[Chain, Doubt | None]:
    settings, size, with_repeats = plan.settings, shortened.size, plan.asks_repeats
    share = plan.take(plan.relations_share())
    pairs = (size + 1) ** 2
    cells = pairs + (size if with_repeats else 0)
    question = relation_and_repeat_features if with_repeats else relation_features
    purpose = "relations-and-repeats" if with_repeats else "directly-follows-relations"
    # Decided again: the real variants found may have made the share smaller than it was when delta was kept.
    delta = plan.delta if gaussian_pays(share, plan.delta, shortened.room, settings.contribution) else _NO_DELTA
    noisy, b = _sums(curator, plan, shortened, question, cells, share, purpose, delta)
    if delta:
        # A case adds about the root of its length, not c: from here on all is in the units of c for each case.
        unit = settings.contribution * plan.cases / max(float(noisy.sum()), plan.cases)
        noisy, b = noisy * unit, b * unit
    else:
        plan.learn_from_relations(float(noisy.sum()), b, cells)
    relations_of = noisy[:pairs].reshape(size + 1, size + 1)
    if automata is not None:
        relations_of = np.where(automata.steps, relations_of, 0.0)
    chain = clean(relations_of, b, plan.cases, plan.low, settings, rng)
    doubt = None
    if with_repeats:
        chain = repeating(chain, noisy[pairs:], b, settings)
    elif not delta:  # with a delta, cases do not count by the same weights
        doubt = doubt_of(chain, relations_of, b, plan.cases, shortened.max_length, settings, rng)
    part = share_of_triples(chain, plan.rest, plan.heard(), settings)
    if part:
        answer, of_triples = _sums(
            curator,
            plan,
            shortened,
            trigram_features,
            (size + 1) ** 3,
            plan.take_of_rest(part),
            "triples-of-activities",
        )
        chain = second_order(chain, answer.reshape((size + 1,) * 3), of_triples, b)
    return chain, doubt


# Triples --------------------------------------------------------------------------------------------------------------
#
# Information in the step before the last about the next one. A chain of the first order has no memory: the state after
# y does not depend on the state before y. Triples (x, y, z) of following states can show if it does, but they cost
# votes. Earlier answers decide if triples are queried, by the information that they are expected to add. That is
# post-processing, without a query.


def share_of_triples(chain: Chain, rest: Fraction, heard: float, settings: Constants) -> Fraction:
    """Return the share of ``rest`` at which triples are expected to add most, or 0.

    ``rest`` is what is left of epsilon. The gain of a share is what triples add beyond what they cost in votes. The
    share is 0 where no share has a gain above 0. ``heard`` prototypes could stand out from their noise without triples.

    All information is in nats for one sampled case. The chain leaves E of them open (its entropy), and a vote for one
    of K prototypes adds up to V = ln K. So votes would add the part V / (E + V) of what triples add
    (:func:`_triples_information`) anyway. That is most where nearly all cases have a prototype of their own, and little
    where they go many ways. Without the part s of the budget 1 - s times as many prototypes stand out: votes add ln(1 /
    (1 - s)) less.
    """
    if chain.size > settings.most_of_triples or not settings.triple_shares:
        return Fraction(0)
    cases = max(float(chain.flow[chain.size].sum()), 1e-9)
    left_open, votes = _step_entropy(chain) / cases, math.log(heard)
    unheard = left_open / max(left_open + votes, 1e-9)
    shares = [Fraction(str(share)) for share in settings.triple_shares]
    told = [
        _triples_information(chain, settings.contribution / float(share * rest), settings.memory) / cases
        for share in shares
    ]
    gains = [unheard * nats + math.log(1 - share) for nats, share in zip(told, shares, strict=True)]
    best = int(np.argmax(gains))
    return shares[best] if gains[best] > 0 else Fraction(0)


def _step_entropy(chain: Chain) -> float:
    """Return the entropy of all steps together."""
    p = chain.next_chances()
    return float(-(chain.flow * np.log(np.where(p > 0, p, 1.0))).sum())


def _triples_information(chain: Chain, b: float, memory: float) -> float:
    """Return the nats that triples with noise ``b`` are expected to add for all cases.

    The chances after x, y are taken to be Dirichlet distributed around those after y, with ``memory`` (between 0 and 1)
    of the variance that they could have. Then N triples after x, y are N p of z on average, with a variance of v =
    memory N^2 p (1 - p). The answer finds the part v / (v + 2 b^2) of that. Knowing all of it is worth N memory (1 - p)
    / 2 nats (the second-order term of the Kullback-Leibler divergence).
    """
    p = chain.next_chances()
    variance = memory * _triples_variance(chain)
    found = variance / (variance + 2 * b * b)
    return float((memory / 2 * chain.flow[:, :, None] * np.where(p > 0, 1 - p, 0.0) * found).sum())


def _triples_variance(chain: Chain) -> FloatArray:
    """Return the variance of triples x, y, z if x decided all after y: N^2 p (1 - p)."""
    p = chain.next_chances()
    spread: FloatArray = chain.flow[:, :, None] ** 2 * (p * (1 - p))
    return spread


def second_order(chain: Chain, triples: FloatArray, b: float, b_relations: float) -> Chain:
    """Return the chain with chances after two states, from noisy triples.

    Triples with noise of scale ``b`` are pulled to what the first order expects, as far as they can be noise. All of
    them together decide how far: by the memory (see :func:`_triples_information`) that makes them most likely, with
    their own noise and that of the relations in the expectation. Without any memory the chain is the first order.
    """
    p = chain.next_chances()
    expected = chain.flow[:, :, None] * p
    inside = expected > 0
    if not inside.any():
        return chain
    expected *= max(float(triples[inside].sum()), b) / float(expected.sum())
    off = triples - expected
    spread = _triples_variance(chain)
    back = chain.flow / np.maximum(chain.flow.sum(axis=0), 1e-9)  # how often it was x that came before y
    own = 2 * b * b + 2 * b_relations**2 * (p**2 + back[:, :, None] ** 2)
    memory = _fit_memory(off[inside] ** 2, spread[inside], own[inside])
    trust = memory * spread / (memory * spread + 2 * b * b)
    value = np.maximum(expected + off * trust, 0.0)
    value[(value < b * trust) | ~inside] = 0
    sums = value.sum(axis=2, keepdims=True)
    return replace(chain, second=value / np.where(sums > 0, sums, 1.0))


def _fit_memory(squares: FloatArray, spread: FloatArray, own: FloatArray) -> float:
    """Return the likeliest memory for deviations of variance memory * spread + own."""
    tried = np.concatenate([[0.0], np.geomspace(0.003, 0.7, 30)])
    variances = (own + memory * spread for memory in tried)
    return float(tried[np.argmin([(np.log(v) + squares / v).sum() for v in variances])])

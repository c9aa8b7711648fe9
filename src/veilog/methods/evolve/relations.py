"""The questions from which evolve's chain is made: which activities are frequent, what follows what, what repeats.

Each is one answer of clipped sums; how much each costs is the plan's, by public facts and earlier noisy answers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, Int32Array, IntArray
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods.evolve import chain as chains
from veilog.methods.evolve.chain import Chain, Shortened
from veilog.methods.evolve.constants import Constants
from veilog.methods.evolve.doubt import Doubt, doubt_of
from veilog.methods.evolve.known import RealVariants
from veilog.methods.evolve.plan import EvolvePlan, deviation_of_gaussian, gaussian_pays
from veilog.methods.evolve.traces import PAD, public_codes
from veilog.methods.evolve.triples import second_order, share_of_triples
from veilog.privacy.clipping import Features
from veilog.privacy.curator import Curator

_NO_DELTA = Fraction(0)


def _sums(
    curator: Curator,
    features: Features,
    size: int,
    epsilon: Fraction,
    settings: Constants,
    purpose: str | Message,
    delta: Fraction = _NO_DELTA,
) -> tuple[FloatArray, float]:
    """Sums to which a case that has m features adds min(1, c/m) for each, and the scale c/epsilon of their noise.

    With a delta a case adds its features divided by their L2 norm, and the noise is Gaussian; what is returned is the
    scale of Laplace noise that varies as much. The norm is rounded up to parts of a feature.
    """
    if not delta:
        one = 2**settings.scale_bits
        answer = curator.sums(features, size, settings.contribution, epsilon, resolution=one, purpose=purpose)
        return np.divide(answer, one, dtype=np.float64), settings.contribution / float(epsilon)
    parts, one = 2**settings.norm_bits, 2 ** (settings.scale_bits - settings.norm_bits)

    def in_parts(sequences: Sequences) -> chains.Triples:
        owner, cell, value = (np.asarray(column, dtype=np.int64) for column in features(sequences))
        return owner, cell, value * parts

    answer = curator.sums(in_parts, size, parts, epsilon, delta=delta, resolution=one, purpose=purpose)
    return np.divide(answer, one * parts, dtype=np.float64), deviation_of_gaussian(epsilon, delta) / math.sqrt(2)


def prepared(
    curator: Curator, plan: EvolvePlan, real: Variants | None, settings: Constants
) -> tuple[Shortened, RealVariants | None]:
    """How cases are prepared: cut, and reduced to the activities of the real variants or, for a wide alphabet, to the
    frequent ones; and the real variants so prepared, if there are any."""
    activities = curator.activities
    longest = settings.max_length
    everything = Shortened(np.arange(len(activities), dtype=np.int32), len(activities), longest)
    codes = public_codes(real.sequences, activities) if real else np.zeros(0, dtype=np.int32)
    known = RealVariants.of(real, codes, everything) if real else None
    plan.anchored = plan.anchored and bool(known)
    if real and known and plan.anchored:
        reduced = _reduced(np.unique(known.traces.codes[known.traces.codes != PAD]), len(activities), longest)
        return reduced, RealVariants.of(real, codes, reduced)
    if plan.wide:
        shortened = _frequent(curator, plan, settings, longest)
        return shortened, RealVariants.of(real, codes, shortened) if real else None
    return everything, known


def _reduced(kept: Int32Array | IntArray, size: int, longest: int) -> Shortened:
    states = np.full(size, -1, dtype=np.int32)
    states[kept] = np.arange(len(kept))
    return Shortened(states, len(kept), longest)


def _frequent(curator: Curator, plan: EvolvePlan, settings: Constants, longest: int) -> Shortened:
    """The activities of a wide alphabet that are frequent by a noisy answer."""
    activities, size = curator.activities, len(curator.activities)
    share = plan.take(plan.presence_share())

    def features(sequences: Sequences) -> chains.Triples:
        codes = public_codes(sequences, activities)[sequences.codes]
        return chains.activity_features(codes, sequences.offsets, size)

    present, b = _sums(curator, features, size, share, settings, "cases-with-an-activity")
    kept = np.flatnonzero(present >= settings.wide_keep * b)
    if len(kept) < 3:
        kept = np.sort(np.argsort(-present, kind="stable")[:3])
    return _reduced(kept, size, longest)


def asked_chain(
    curator: Curator,
    plan: EvolvePlan,
    settings: Constants,
    shortened: Shortened,
    known: RealVariants | None,
    rng: np.random.Generator,
) -> tuple[Chain, Doubt | None]:
    """The chain of the process: of the real variants that are known, of noisy relations, or of both. Of relations alone
    also the doubt whether activities come again, where that was not asked."""
    if known and plan.anchored:
        return known.chain(shortened.size, settings), None
    chain, doubt = _related(curator, plan, settings, shortened, rng)
    return (known.joined_with(chain, settings), None) if known else (chain, doubt)


def _related(
    curator: Curator, plan: EvolvePlan, settings: Constants, shortened: Shortened, rng: np.random.Generator
) -> tuple[Chain, Doubt | None]:
    activities, size = curator.activities, shortened.size
    share = plan.take(plan.relations_share())

    pairs = (size + 1) ** 2
    with_repeats = plan.asks_repeats

    def relations(sequences: Sequences) -> chains.Triples:
        states, bounds = shortened(public_codes(sequences, activities)[sequences.codes], sequences.offsets)
        question = chains.relation_and_repeat_features if with_repeats else chains.relation_features
        return question(states, bounds, size)

    purpose = "relations-and-repeats" if with_repeats else "directly-follows-relations"
    cells = pairs + (size if with_repeats else 0)
    # Asked again: what real variants were found may have made the share smaller than it was when delta was kept.
    delta = plan.delta if gaussian_pays(share, plan.delta, shortened.room, settings.contribution) else _NO_DELTA
    noisy, b = _sums(curator, relations, cells, share, settings, purpose, delta)
    if delta:
        # A case adds about the root of its length, not c: from here on all is in the units of c for each case.
        unit = settings.contribution * plan.cases / max(float(noisy.sum()), plan.cases)
        noisy, b = noisy * unit, b * unit
    else:
        plan.learn_from_relations(float(noisy.sum()), b, cells)
    relations_of = noisy[:pairs].reshape(size + 1, size + 1)
    chain = chains.clean(relations_of, b, plan.cases, plan.low, settings, rng)
    doubt = None
    if with_repeats:
        chain = chains.with_repeats(chain, noisy[pairs:], b, settings)
    elif not delta:  # with one, cases are not counted by the same weights
        doubt = doubt_of(chain, relations_of, b, plan.cases, shortened.max_length, settings, rng)
    return _with_triples(curator, plan, settings, shortened, chain, b), doubt


def _with_triples(
    curator: Curator, plan: EvolvePlan, settings: Constants, shortened: Shortened, chain: Chain, b_relations: float
) -> Chain:
    """The chain, of the second order where triples are expected to tell more than the votes that they cost."""
    part = share_of_triples(chain, plan.rest, plan.heard(), settings)
    if not part:
        return chain
    share = plan.take_of_rest(part)
    activities, size = curator.activities, shortened.size

    def triples(sequences: Sequences) -> chains.Triples:
        states, bounds = shortened(public_codes(sequences, activities)[sequences.codes], sequences.offsets)
        return chains.trigram_features(states, bounds, size)

    answer, b = _sums(curator, triples, (size + 1) ** 3, share, settings, "triples-of-activities")
    return second_order(chain, answer.reshape((size + 1,) * 3), b, b_relations)

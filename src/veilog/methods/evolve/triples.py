"""What the step before the last tells of the next one: whether to ask for triples, for how much, and what they make.

A chain of the first order has no memory: what comes after y does not depend on what was before y. Triples (x, y, z) of
following states can tell whether it does, but they cost votes. Whether they are asked for is decided by what they are
expected to tell, from answers that were given before: that is post-processing, and asks nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray
from veilog.methods.evolve.chain import Chain
from veilog.methods.evolve.constants import Constants


def share_of_triples(chain: Chain, rest: Fraction, heard: float, settings: Constants) -> Fraction:
    """The part of ``rest``, what is left of epsilon, for which triples are expected to tell the most more than they
    cost in votes; 0 where they tell less at any. ``heard`` prototypes could stand out from their noise without them.

    All is told in nats for one imagined case. The chain leaves E of them open (its entropy), and a vote for one of K
    prototypes tells up to V = ln K. So of what triples tell (:func:`_told`), votes would tell the part V / (E + V)
    anyway: most where nearly all cases have a prototype of their own, little where they go many ways. Without the
    part s of the budget 1 - s times as many prototypes stand out: votes tell ln(1 / (1 - s)) less.
    """
    if chain.size > settings.most_of_triples or not settings.triple_shares:
        return Fraction(0)
    cases = max(float(chain.flow[chain.size].sum()), 1e-9)
    left_open, votes = _left_open(chain) / cases, math.log(heard)
    unheard = left_open / max(left_open + votes, 1e-9)
    shares = [Fraction(str(share)) for share in settings.triple_shares]
    told = [_told(chain, settings.contribution / float(share * rest), settings.memory) / cases for share in shares]
    gains = [unheard * nats + math.log(1 - share) for nats, share in zip(told, shares, strict=True)]
    best = int(np.argmax(gains))
    return shares[best] if gains[best] > 0 else Fraction(0)


def _left_open(chain: Chain) -> float:
    """The entropy of all steps together."""
    p = chain.next_chances()
    return float(-(chain.flow * np.log(np.where(p > 0, p, 1.0))).sum())


def _told(chain: Chain, b: float, memory: float) -> float:
    """How many nats triples with noise of scale ``b`` are expected to tell of all cases together.

    The chances after x, y are taken to be Dirichlet distributed around those after y, with ``memory`` (between 0 and 1)
    of the variance that they could have: N triples after x, y are N p of z on average, with a variance of
    v = memory N^2 p (1 - p). Of that the answer finds the part v / (v + 2 b^2), and knowing all of it is worth
    N memory (1 - p) / 2 nats (the second-order term of the Kullback-Leibler divergence).
    """
    p = chain.next_chances()
    variance = memory * _spread(chain)
    found = variance / (variance + 2 * b * b)
    return float((memory / 2 * chain.flow[:, :, None] * np.where(p > 0, 1 - p, 0.0) * found).sum())


def _spread(chain: Chain) -> FloatArray:
    """The variance of the triples x, y, z if x decided what follows y: N^2 p (1 - p)."""
    p = chain.next_chances()
    spread: FloatArray = chain.flow[:, :, None] ** 2 * (p * (1 - p))
    return spread


def second_order(chain: Chain, triples: FloatArray, b: float, b_relations: float) -> Chain:
    """The chain with chances after two states: noisy triples, with noise of scale ``b``, pulled to what the first order
    expects as far as they can be noise.

    How far is found from all of them together: the memory (see :func:`_told`) that makes them most likely, beside
    their own noise and that of the relations in what is expected. Without any it is the first order.
    """
    p = chain.next_chances()
    expected = chain.flow[:, :, None] * p
    inside = expected > 0
    if not inside.any():
        return chain
    expected *= max(float(triples[inside].sum()), b) / float(expected.sum())
    off = triples - expected
    spread = _spread(chain)
    back = chain.flow / np.maximum(chain.flow.sum(axis=0), 1e-9)  # how often it was x that came before y
    own = 2 * b * b + 2 * b_relations**2 * (p**2 + back[:, :, None] ** 2)
    memory = _likeliest(off[inside] ** 2, spread[inside], own[inside])
    trust = memory * spread / (memory * spread + 2 * b * b)
    value = np.maximum(expected + off * trust, 0.0)
    value[(value < b * trust) | ~inside] = 0
    sums = value.sum(axis=2, keepdims=True)
    return replace(chain, second=value / np.where(sums > 0, sums, 1.0))


def _likeliest(squares: FloatArray, spread: FloatArray, own: FloatArray) -> float:
    """The memory for which normal deviations with variances memory * spread + own are most likely."""
    tried = np.concatenate([[0.0], np.geomspace(0.003, 0.7, 30)])
    variances = (own + memory * spread for memory in tried)
    return float(tried[np.argmin([(np.log(v) + squares / v).sum() for v in variances])])

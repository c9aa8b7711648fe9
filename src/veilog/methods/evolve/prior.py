"""Prior of evolve: public traces from which it starts if the votes confirm them.

The traces of the prior are the pool. Its prototypes are the first that are voted for, with a small part of the budget.
A case that is far from all of them votes for *far* instead: one vote all the same. Far is beyond the middle between two
distances: that of the prior's own traces, and that of the same traces with their events in random order.

In two cases the prior is dropped, and relations are queried as without one. By the votes more than a third of the cases
are unlike it, beyond noise. Or it counts for fewer cases than a chain of noisy relations does. Otherwise all that is
left goes to votes. Epsilon times cases may be too small for the first votes to decide this. Then the prior is released
as it is, for a noisy number of cases.

A vote moves the share of a cell away from the prior as far as noise lets. Let s_j be the share that the prior gives to
cell j, v_j the one by votes, and n the variance of its noise. The misfit a, with v_j - s_j of variance a s_j + n, is
beforehand as likely in each part of its logarithm. The mean of its logarithm, given the votes, makes the prior count as
1 / a cases in the fit (empirical Bayes). All of this is post-processing of votes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods.evolve.chain import Chain, Shortened, relation_sums
from veilog.methods.evolve.plan import EvolvePlan
from veilog.methods.evolve.prototypes import Counted, fit, next_generation
from veilog.methods.evolve.relations import ProcessSketch, automata_of, named_by, reduced_to
from veilog.methods.evolve.synthesis import Round, draw_traces, medoids_of, query_votes
from veilog.methods.evolve.traces import PAD, Traces, distances, distinct, join_traces, occurrences, strings
from veilog.methods.method import Request
from veilog.privacy.curator import Curator

FIRST_G, FIRST_SHARES = 15.0, (0.05, 0.3)
"""Epsilon times cases of the first votes, so that noise moves the far part by a tenth; limits of their share."""
DECIDED = FIRST_G / FIRST_SHARES[1]
"""Epsilon times cases that allow as much; below it noise hides if a prior is wrong."""
SHUFFLED = 1000
"""Traces that decide which distance is far."""
DROPPED = 1 / 3
"""Part of the cases unlike a prior above which it is dropped."""
SURE = 0.99
"""Chance that it counts for fewer cases than a chain of noisy relations, above which it is dropped."""
MODELS_UNTIL = 75.0
"""Epsilon times cases up to which models are used: they do not know frequencies.

Beyond it noisy relations know more. On Receipt a model lifts the similarity from .41 to .68 at 43, and would lower it
from .79 to .71 at 143.
"""
MUTANTS = 0.3
"""Part of a further round's pool that is mutants."""
MISFITS = np.geomspace(1e-4, 1.0, 40)


def voted_from_prior(
    curator: Curator, request: Request, plan: EvolvePlan, rounds: int | None, rng: np.random.Generator
) -> tuple[ProcessSketch, Traces, FloatArray, list[Round]] | None:
    """Query votes from the prior on, and return the input of :func:`release_of`.

    The result is None where the prior is dropped.
    """
    constants, activities = plan.settings, curator.activities
    assert request.prior is not None
    known, weights = public_traces(request.prior, activities, constants.max_length)
    if not len(known):
        request.remark(Message("prior-without-activities"))
        return None
    if request.prior_of_model and plan.g > MODELS_UNTIL:
        request.remark(Message("evolve-model-not-used"))
        return None
    everything = Shortened(np.arange(len(activities), dtype=np.int32), len(activities), constants.max_length)
    shortened = reduced_to(everything, np.union1d(known.in_a_row[0], named_by(request.rules, activities)))
    pool = Traces(np.append(shortened.states, PAD).astype(np.int32)[known.codes], known.lengths)
    automata = automata_of(request.rules, shortened, activities)
    if automata is not None:  # cut cases may break what the whole ones obeyed
        rows = np.flatnonzero(automata.allowed(*pool.in_a_row))
        if not len(rows):
            request.remark(Message("prior-breaks-rules"))
            return None
        pool, weights = pool.take(rows), weights[rows] / weights[rows].sum()
    chain = replace(chain_of(pool, weights, shortened.size, plan), rules=automata)
    sketch = ProcessSketch(shortened, None, chain, None)
    if is_undecided(request, plan):
        return sketch, pool, weights, [counted_alone(curator, request, plan, pool)]
    e = plan.set_aside(first_share(plan))
    chosen = medoids_of(*draw_traces(pool, weights, constants.candidates, rng), plan.number_of_prototypes(e), None)
    far, own, shuffled = far_from(chosen, pool, weights, rng)
    asked = [query_votes(curator, plan, chosen, shortened, e, 1, far)]
    if is_undecided(request, plan):
        return sketch, pool, weights, [counted_alone(curator, request, plan, pool)]
    unlike = (float(asked[0].votes[-1]) / plan.cases - own) / max(shuffled - own, 0.1)
    cells, usual = [asked[0].cells(pool)], plan.trust
    p, likely = trust_prior(plan, weights, cells, asked)
    wrong = unlike - 4 * asked[0].deviation(plan.cases) > DROPPED or likely[usual * MISFITS > 1].sum() > SURE
    if wrong and plan.g >= DECIDED:
        plan.learned_trust = None
        request.remark(Message("evolve-prior-dropped"))
        return None
    request.remark(Message("evolve-prior-used", kinds=len(pool)))
    plan.of_prior = True
    shares = plan.votes(rounds)
    for number, e in enumerate(shares):
        request.progress(f"round {number + 1} of {len(shares)}", number / len(shares))
        if number:
            pool, weights = add_mutants(pool, weights, p, chain, plan, rng)
            cells = [before.cells(pool) for before in asked]
            p, _ = trust_prior(plan, weights, cells, asked)
        chosen = medoids_of(*draw_traces(pool, p, constants.candidates, rng), plan.number_of_prototypes(e), None)
        asked.append(query_votes(curator, plan, chosen, shortened, e, number + 2))
        cells.append(asked[-1].cells(pool))
        p, _ = trust_prior(plan, weights, cells, asked)
    return sketch, pool, p, asked


def is_undecided(request: Request, plan: EvolvePlan) -> bool:
    """Return True if noise hides how a log differs from a prior.

    Models are voted for even so: they do not know how frequent their traces are.
    """
    return plan.g < DECIDED and not request.prior_of_model


def counted_alone(curator: Curator, request: Request, plan: EvolvePlan, pool: Traces) -> Round:
    """Query only the number of cases, with all the rest; return a round of no votes."""
    request.remark(Message("evolve-prior-as-it-is"))
    plan.of_prior = True
    e = plan.take_of_rest(Fraction(1))
    plan.learn_from_votes(float(curator.count(e)), float(e), 1)
    return Round(pool.take(np.zeros(0, dtype=np.int64)), np.zeros(0, dtype=np.int64), float(e))


def public_traces(prior: Variants, activities: tuple[str, ...], longest: int) -> tuple[Traces, FloatArray]:
    """Return the traces of a prior, reduced to public activities, and their shares."""
    place = {name: code for code, name in enumerate(activities)}
    codes = np.array([place.get(label, PAD) for label in prior.labels], dtype=np.int32)[prior.sequences.codes]
    owner = np.repeat(np.arange(len(prior)), prior.lengths)[codes != PAD]
    codes = codes[codes != PAD]
    lengths = np.bincount(owner, minlength=len(prior))
    at = np.arange(len(owner)) - (np.cumsum(lengths) - lengths)[owner]
    matrix = np.full((len(prior), min(int(lengths.max(initial=1)), longest)), PAD, dtype=np.int32)
    inside = at < matrix.shape[1]
    matrix[owner[inside], at[inside]] = codes[inside]
    some = (lengths > 0) & (prior.counts > 0)
    counts = prior.counts[some].astype(np.float64)
    return distinct(Traces(matrix[some], np.minimum(lengths[some], matrix.shape[1])), counts / max(counts.sum(), 1.0))


def first_share(plan: EvolvePlan) -> float:
    """Return the share of epsilon for the votes by which a prior is judged."""
    least, most = FIRST_SHARES
    return min(max(FIRST_G / plan.g, least), most)


def far_from(
    prototypes: Traces, traces: Traces, weights: FloatArray, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the distance from which traces are far, and the parts that are beyond it.

    It lies between the distances to the nearest prototype of two kinds: the weighted traces, and the same with their
    events in random order. There is one part for each kind.
    """
    some = traces.take(rng.choice(len(traces), size=SHUFFLED, p=weights))
    order = np.where(some.codes == PAD, 2.0, rng.random(some.codes.shape)).argsort(axis=1)
    shuffled = Traces(np.take_along_axis(some.codes, order, axis=1), some.lengths)
    columns = strings(prototypes)
    near, mixed = (distances(strings(rows), columns).min(axis=1) for rows in (some, shuffled))
    far = float(np.median(near) + np.median(mixed)) / 2
    return far, float((near > far).mean()), float((mixed > far).mean())


def misfits(expected: Sequence[FloatArray], found: Sequence[FloatArray], deviations: Sequence[float]) -> FloatArray:
    """Return the likelihoods of ``MISFITS``, by cell shares of a prior and of votes."""
    log_likely = np.zeros(len(MISFITS))
    for s, v, off in zip(expected, found, deviations, strict=True):
        variance = MISFITS[:, None] * np.maximum(s, 1e-9) + off**2
        log_likely -= (np.log(variance) + (v - s) ** 2 / variance).sum(axis=1) / 2
    likely = np.exp(log_likely - log_likely.max())
    return np.asarray(likely / likely.sum())


def trust_prior(
    plan: EvolvePlan, prior: FloatArray, cells: list[IntArray], asked: list[Round]
) -> tuple[FloatArray, FloatArray]:
    """Return the pool's distribution that explains all votes, and misfit likelihoods.

    It trusts the prior as much as the votes let.
    """
    found = [one.votes / plan.cases for one in asked]
    expected = [
        np.bincount(cell, prior, minlength=len(v)).astype(np.float64) for cell, v in zip(cells, found, strict=True)
    ]
    likely = misfits(expected, found, [one.deviation(plan.cases) for one in asked])
    plan.learned_trust = math.exp(-float(likely @ np.log(MISFITS)))
    votes = [Counted(cell, v, plan.deviation(one.epsilon)) for cell, v, one in zip(cells, found, asked, strict=True)]
    return fit(prior, votes, plan.settings.fit_sweeps), likely


def chain_of(traces: Traces, weights: FloatArray, size: int, plan: EvolvePlan) -> Chain:
    """Return the chain of a prior's traces, as if there were as many as cases."""
    counted = plan.cases * weights * np.minimum(1.0, plan.settings.contribution / (traces.lengths + 1))
    flow = relation_sums(traces, counted, size)
    often = occurrences(traces, size)
    return Chain(flow, flow > 0, None, weights @ (often > 1) / np.maximum(weights @ often, 1e-12))


def add_mutants(
    pool: Traces, weights: FloatArray, p: FloatArray, chain: Chain, plan: EvolvePlan, rng: np.random.Generator
) -> tuple[Traces, FloatArray]:
    """Return the pool with mutants of likely traces, at ``MUTANTS`` of the shares."""
    children, likely = next_generation(pool, p, chain, replace(plan.settings, resampled=0.0), rng)
    if not len(children):
        return pool, weights
    shares = np.concatenate([(1 - MUTANTS) * weights, MUTANTS * likely / likely.sum()])
    return distinct(join_traces([pool, children]), shares)

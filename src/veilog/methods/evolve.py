"""evolve: private evolution over trace variants; our own method, epsilon-differentially private.

Learn a coarse chain of the process from noisy relations, imagine many traces, choose diverse prototypes, let every case
vote for the prototype nearest to it, fit weights to all votes, mutate what won, vote again. A vote has sensitivity 1
whatever the length of a case, and votes for nearest prototypes minimise the earth mover's distance by which releases
are judged.

Guarantee: the curator's questions below are all that touches data. How the budget is split depends on public facts and
on earlier noisy answers only, and the shares add up to epsilon exactly; what a case adds to an answer depends on that
case and on earlier noisy answers only. Adaptive composition gives epsilon. With a delta above 0 one more question, for
a share of epsilon and all of delta, names frequent variants that are real: (epsilon, delta) together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.methods import evolve_chain as chains
from veilog.methods.evolve_chain import Chain, Shortened
from veilog.methods.evolve_plan import Plan
from veilog.methods.evolve_settings import DEFAULTS, Settings
from veilog.methods.evolve_traces import Codes, Floats, Ints, Traces, distances, distinct, nearest, strings, strings_of
from veilog.methods.evolve_votes import fit, medoids, next_generation, rounded
from veilog.methods.method import Request
from veilog.methods.real_variants import with_real
from veilog.privacy.curator import Curator, Features
from veilog.privacy.noise import generator

__all__ = ["evolve"]


def evolve(
    curator: Curator,
    request: Request,
    *,
    rounds: int | None = None,
    max_length: int | None = None,
    real_share: float = 0.2,
    largest_log: int = DEFAULTS.largest_log,
    settings: Settings = DEFAULTS,
) -> Variants:
    """Weighted synthetic prototypes that resemble the log; (epsilon, delta)-differentially private for one case.

    ``rounds`` of votes: by default two, or one where the noisy number of cases is small for the budget.
    ``max_length``: the longest trace imagined. ``real_share``: the share of epsilon that finds frequent real variants,
    with a delta above 0; without one nothing goes there. ``largest_log``: cases of the largest log expected; a budget
    too small even for it is refused before anything is asked.
    """
    settings = replace(settings, largest_log=largest_log, max_length=max_length or settings.max_length)
    _refuse_small_budget(request.epsilon, settings)
    activities = curator.activities
    _refuse(activities, settings)
    for_real = request.epsilon * Fraction(str(real_share)) if request.delta else Fraction(0)
    real = curator.partitions(for_real, request.delta, purpose="frequent real variants") if for_real else None
    rng = generator(curator.randomness)
    plan = Plan.of(curator, request.epsilon - for_real, settings, len(activities))
    shortened = _shortened(curator, plan, settings, len(activities))
    chain = _chain(curator, plan, settings, shortened)

    pool = chain.sample(settings.pool, shortened.max_length, rng)
    pool, prior = distinct(pool, np.full(len(pool), 1.0 / len(pool)))
    p = prior
    asked: list[_Round] = []
    cells: list[Ints] = []
    shares = plan.votes(rounds)
    for number, e in enumerate(shares):
        request.progress(f"round {number + 1} of {len(shares)}", number / len(shares))
        if number:
            pool, prior = next_generation(pool, p, chain, settings, rng)
            cells = [before.cells(pool) for before in asked]
            p = _fitted(prior, cells, asked, plan)
        chosen = _medoids_of(pool, p, plan.number_of_prototypes(e), settings.candidates, rng)
        votes = _ask(curator, chosen, shortened, activities, e, number + 1)
        asked.append(_Round(chosen, votes, float(e)))
        plan.learn_from_votes(float(votes.sum()), float(e), len(votes))
        cells.append(asked[-1].cells(pool))
        p = _fitted(prior, cells, asked, plan)
    _remark(request, plan, shortened)
    released = _released(activities, shortened, pool, p, asked, plan, rng)
    if real is None:
        return released
    together = with_real(released, real)
    _remark_real(request, together, real)
    return together


@dataclass
class _Round:
    """Prototypes, the votes for each and what they cost."""

    prototypes: Traces
    votes: Ints
    epsilon: float

    def cells(self, pool: Traces) -> Ints:
        """The prototype nearest to each trace of the pool."""
        return nearest(strings(pool), strings(self.prototypes))


def _refuse_small_budget(epsilon: Fraction, settings: Settings) -> None:
    if epsilon * settings.largest_log >= settings.fewest_g:
        return
    enough = settings.fewest_g / settings.largest_log
    raise ParameterError(
        f"At epsilon = {float(epsilon):g} noise drowns even a log of {settings.largest_log:,} cases, the largest "
        f"expected, so nothing can survive. From epsilon = {enough:.2g} on something can; if the log is larger, say so "
        "with largest_log.",
        parameter="epsilon",
    )


def _refuse(activities: tuple[str, ...], settings: Settings) -> None:
    if not activities:
        raise ParameterError("The log has no activities, so there is nothing to imagine.", parameter="log")
    if len(activities) > settings.most_activities:
        raise ParameterError(
            f"{len(activities)} activities are too many; evolve takes up to {settings.most_activities}.",
            parameter="log",
            advice="Map them to fewer ones first, e.g. to the upper levels of a hierarchy.",
        )


def _codes(sequences: Sequences, activities: tuple[str, ...]) -> Codes:
    """The public code of each label of the sequences."""
    code = {label: i for i, label in enumerate(activities)}
    return np.array([code[label] for label in sequences.labels], dtype=np.int32)


def _sums(
    curator: Curator, features: Features, size: int, epsilon: Fraction, settings: Settings, purpose: str
) -> Floats:
    """Sums to which a case that has m features adds min(1, c/m) for each, in fixed point; noise of scale c/epsilon."""
    one = 2**settings.scale_bits
    answer = curator.sums(features, size, settings.contribution, epsilon, resolution=one, purpose=purpose)
    sums: Floats = np.divide(answer, one, dtype=np.float64)
    return sums


def _shortened(curator: Curator, plan: Plan, settings: Settings, size: int) -> Shortened:
    """How cases are prepared: cut, and for a wide alphabet reduced to its frequent activities."""
    longest = min(settings.max_length, curator.domain.max_length or settings.max_length)
    if not plan.wide:
        return Shortened(np.arange(size, dtype=np.int32), size, longest)
    share = plan.take(plan.presence_share())
    activities = curator.activities

    def features(sequences: Sequences) -> chains.Triples:
        codes = _codes(sequences, activities)[sequences.codes]
        return chains.activity_features(codes, sequences.offsets, size)

    present = _sums(curator, features, size, share, settings, "cases with an activity")
    kept = np.flatnonzero(present >= settings.wide_keep * settings.contribution / float(share))
    if len(kept) < 3:
        kept = np.sort(np.argsort(-present, kind="stable")[:3])
    states = np.full(size, -1, dtype=np.int32)
    states[kept] = np.arange(len(kept))
    return Shortened(states, len(kept), longest)


def _chain(curator: Curator, plan: Plan, settings: Settings, shortened: Shortened) -> Chain:
    activities, size = curator.activities, shortened.size
    share = plan.take(plan.relations_share())

    def relations(sequences: Sequences) -> chains.Triples:
        states, bounds = shortened(_codes(sequences, activities)[sequences.codes], sequences.offsets)
        return chains.relation_features(states, bounds, size)

    noisy = _sums(curator, relations, (size + 1) ** 2, share, settings, "directly-follows relations")
    b = settings.contribution / float(share)
    plan.learn_from_relations(float(noisy.sum()), b, len(noisy))
    chain = chains.clean(noisy.reshape(size + 1, size + 1), b, plan.cases, plan.low, settings)

    share = plan.trigram_share()
    b = settings.contribution / float(share)
    steps = int(chain.support.sum(axis=0) @ chain.support.sum(axis=1))
    if plan.wide or plan.lam < 1 or chain.flow.sum() < settings.trigram_worth * b * steps:
        return chain
    plan.rest -= share

    def trigrams(sequences: Sequences) -> chains.Triples:
        states, bounds = shortened(_codes(sequences, activities)[sequences.codes], sequences.offsets)
        return chains.trigram_features(states, bounds, size)

    answer = _sums(curator, trigrams, (size + 1) ** 3, share, settings, "triples of following activities")
    return chains.second_order(chain, answer.reshape((size + 1,) * 3), b)


def _medoids_of(pool: Traces, p: Floats, number: int, among: int, rng: np.random.Generator) -> Traces:
    """Traces that the distribution lies near to, from a sample of it."""
    drawn = rng.multinomial(among, p / p.sum())
    rows = np.flatnonzero(drawn)
    candidates = pool.take(rows)
    text = strings(candidates)
    return candidates.take(medoids(distances(text, text), drawn[rows] / among, number))


def _ask(
    curator: Curator, chosen: Traces, shortened: Shortened, activities: tuple[str, ...], e: Fraction, number: int
) -> Ints:
    names = strings(_named(chosen, shortened))

    def nearest_prototype(sequences: Sequences) -> Ints:
        return nearest(strings_of(sequences, _codes(sequences, activities)), names)

    return curator.histogram(nearest_prototype, len(chosen), e, purpose=f"votes for prototypes, round {number}")


def _named(traces: Traces, shortened: Shortened) -> Traces:
    """The traces in public codes: states of a wide log stand for some activities only."""
    activity = np.append(np.flatnonzero(shortened.states >= 0), -1).astype(np.int32)
    return Traces(activity[traces.codes], traces.lengths)


def _fitted(prior: Floats, cells: list[Ints], asked: list[_Round], plan: Plan) -> Floats:
    """The distribution over the pool that explains all votes so far."""
    shares = [r.votes / plan.cases for r in asked]
    return fit(prior, cells, shares, [plan.deviation(r.epsilon) for r in asked], plan.settings.fit_sweeps)


def _remark(request: Request, plan: Plan, shortened: Shortened) -> None:
    """Say what the release is, and which budget would do: from public facts and the noisy number of cases."""
    s = plan.settings
    request.remark(
        "The release consists of weighted synthetic prototypes: imagined variants, each standing for the cases near "
        "it. That a variant is in it does not say that any case had it."
    )
    if plan.wide:
        request.remark(
            f"{plan.activities} activities are many: the release is a sketch of the {shortened.size} that seem "
            "frequent, its traces are too short and most directly-follows pairs are missing. Map activities to fewer "
            "ones, e.g. to the upper levels of a hierarchy, for more than a sketch."
        )
    kept = float(plan.epsilon / request.epsilon)
    enough = s.wide_g if plan.wide else s.high_g
    if plan.g < enough and (plan.wide or plan.low):
        request.remark(
            f"About {plan.cases:.0f} cases (a noisy number) are few for epsilon = {float(request.epsilon):g}: expect a "
            f"coarse picture. An epsilon of about {float(f'{enough / plan.cases / kept:.1g}'):g} would do."
        )


def _remark_real(request: Request, released: Variants, real: Variants) -> None:
    """Say what is certain of real variants, from the answer that found them and the release."""
    if len(real) == 0:
        request.remark("No variant is frequent enough to be certain that it is real: delta and its share are spent.")
        return
    counts = released.to_dict()
    found = set(real.sequences)
    text = (
        f"With a delta, {len(real)} of the released variants are certain to be real, for {real.cases} cases: each of "
        "them occurs in the log."
    )
    imagined = max((count for sequence, count in counts.items() if sequence not in found), default=0)
    if max(counts[sequence] for sequence in found) > imagined:
        text += f" All released variants of more than {imagined} cases are among them."
    request.remark(text)


def _released(
    activities: tuple[str, ...],
    shortened: Shortened,
    pool: Traces,
    p: Floats,
    asked: list[_Round],
    plan: Plan,
    rng: np.random.Generator,
) -> Variants:
    """Medoids of the fitted distribution, each for the cases near it: finer than the prototypes that were voted for."""
    settings, last = plan.settings, asked[-1]
    number = round(settings.release_factor * len(last.votes))
    chosen = _medoids_of(pool, p, number, settings.candidates_release, rng)
    masses = np.bincount(nearest(strings(pool), strings(chosen)), weights=p, minlength=len(chosen))
    weights = (plan.cases * masses).astype(np.float64)
    counts = rounded(weights, settings.smallest_release / last.epsilon, plan.cases)
    named = _named(chosen, shortened)
    used = np.arange(named.codes.shape[1]) < named.lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(named.lengths)])
    return Variants.from_arrays(activities, named.codes[used], offsets, counts)

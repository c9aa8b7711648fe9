"""evolve: private evolution over trace variants; our own method, purely epsilon-differentially private.

Learn a coarse chain of the process from noisy relations, imagine many traces, choose diverse prototypes, let every case
vote for the prototype nearest to it, fit weights to all votes, mutate what won, vote again. A vote has sensitivity 1
whatever the length of a case, and votes for nearest prototypes minimise the earth mover's distance by which releases
are judged.

Guarantee: the curator's questions below are all that touches data. How the budget is split depends on public facts and
on earlier noisy answers only, and the shares add up to epsilon exactly; what a case adds to an answer depends on that
case and on earlier noisy answers only. Adaptive composition gives epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.methods import evolve_chain as chains
from veilog.methods.evolve_chain import Chain, Shortened
from veilog.methods.evolve_settings import DEFAULTS, Settings
from veilog.methods.evolve_traces import Codes, Floats, Ints, Traces, distances, distinct, nearest, strings, strings_of
from veilog.methods.evolve_votes import fit, medoids, next_generation, rounded
from veilog.methods.method import Request
from veilog.privacy.curator import Curator, Features
from veilog.privacy.noise import generator

__all__ = ["evolve"]


def evolve(
    curator: Curator,
    request: Request,
    *,
    rounds: int | None = None,
    max_length: int | None = None,
    settings: Settings = DEFAULTS,
) -> Variants:
    """Weighted synthetic prototypes that resemble the log; epsilon-differentially private for one case.

    ``rounds`` of votes: by default two, or one where the noisy number of cases is small for the budget.
    ``max_length``: the longest trace imagined.
    """
    settings = settings if max_length is None else replace(settings, max_length=max_length)
    activities = curator.activities
    _refuse(activities, settings)
    rng = generator(curator.randomness)
    plan = _Plan.of(curator, request.epsilon, settings, len(activities))
    shortened = _shortened(curator, plan, settings, len(activities))
    chain = _chain(curator, plan, settings, shortened)

    pool = chain.sample(settings.pool, shortened.max_length, rng)
    pool, prior = distinct(pool, np.full(len(pool), 1.0 / len(pool)))
    p = prior
    asked: list[_Round] = []
    for number, e in enumerate(plan.votes(rounds)):
        if number:
            pool, prior = next_generation(pool, p, chain, settings, rng)
            p = _fitted(pool, prior, asked, plan, settings)
        chosen = _medoids_of(pool, p, plan.number_of_prototypes(e), plan.candidates(), rng)
        votes = _ask(curator, chosen, shortened, activities, e, number + 1)
        asked.append(_Round(chosen, votes, float(e)))
        p = _fitted(pool, prior, asked, plan, settings)
    return _released(activities, shortened, pool, p, asked, plan, rng)


@dataclass
class _Round:
    """Prototypes, the votes for each and what they cost."""

    prototypes: Traces
    votes: Ints
    epsilon: float

    def cells(self, pool: Traces) -> Ints:
        """The prototype nearest to each trace of the pool."""
        return nearest(strings(pool), strings(self.prototypes))


@dataclass
class _Plan:
    """How the budget is shared out: ``rest`` is what no question has taken yet."""

    settings: Settings
    epsilon: Fraction
    rest: Fraction
    cases: float
    count_variance: float
    g: float
    lam: float
    activities: int
    trigrams: bool = False

    @staticmethod
    def of(curator: Curator, epsilon: Fraction, settings: Settings, activities: int) -> _Plan:
        share = epsilon * Fraction(str(settings.count_share))
        cases = max(settings.fewest_cases, curator.count(share))
        g = float(epsilon) * cases
        lam = _between(g, settings.low_g, settings.high_g)
        return _Plan(
            settings,
            epsilon,
            epsilon - share,
            float(cases),
            2 / float(share) ** 2,
            g,
            lam,
            activities,
        )

    def take(self, share: float) -> Fraction:
        """So much of epsilon, as an exact number."""
        part = self.epsilon * Fraction(round(share * 10**6), 10**6)
        self.rest -= part
        return part

    @property
    def wide(self) -> bool:
        return self.activities >= self.settings.wide_from

    @property
    def low(self) -> bool:
        return self.lam < self.settings.low_until

    @property
    def la(self) -> float:
        return _between(self.g, self.settings.wide_g, 3 * self.settings.wide_g)

    def relations_share(self) -> float:
        s = self.settings
        if self.wide:
            return s.wide_relations[0] + (s.wide_relations[1] - s.wide_relations[0]) * self.la
        (low, much), (high, little) = s.relations
        size = self.g / (self.activities + 1) ** 1.5
        return much + (little - much) * _between(size, low, high)

    def votes(self, rounds: int | None) -> list[Fraction]:
        """What is left, for each round of votes more than for the one before."""
        number = (1 if self.low else 2) if rounds is None else rounds
        growth = Fraction(str(self.settings.growth))
        total = sum((growth**i for i in range(number)), start=Fraction(0))
        return [self.rest * growth**i / total for i in range(number)]

    def candidates(self) -> int:
        return self.settings.candidates_trigrams if self.trigrams else self.settings.candidates

    def number_of_prototypes(self, e: Fraction) -> int:
        s = self.settings
        most = math.floor(float(e) * self.cases / s.votes_for_prototype)
        return min(max(most, s.fewest_prototypes), s.most_prototypes)


def _between(g: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (math.log(g) - math.log(low)) / (math.log(high) - math.log(low)))) if g > 0 else 0.0


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


def _shortened(curator: Curator, plan: _Plan, settings: Settings, size: int) -> Shortened:
    """How cases are prepared: cut, and for a wide alphabet reduced to its frequent activities."""
    longest = min(settings.max_length, curator.domain.max_length or settings.max_length)
    if not plan.wide:
        return Shortened(np.arange(size, dtype=np.int32), size, longest)
    share = plan.take(settings.wide_presence[0] + (settings.wide_presence[1] - settings.wide_presence[0]) * plan.la)
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


def _chain(curator: Curator, plan: _Plan, settings: Settings, shortened: Shortened) -> Chain:
    c = settings.contribution
    activities, size = curator.activities, shortened.size
    share = plan.take(plan.relations_share())

    def relations(sequences: Sequences) -> chains.Triples:
        states, bounds = shortened(_codes(sequences, activities)[sequences.codes], sequences.offsets)
        return chains.relation_features(states, bounds, size)

    noisy = _sums(curator, relations, (size + 1) ** 2, share, settings, "directly-follows relations")
    chain = chains.clean(noisy.reshape(size + 1, size + 1), c / float(share), plan.cases, plan.lam, settings)

    b = c / (settings.trigram_share * float(plan.epsilon))
    steps = int(chain.support.sum(axis=0) @ chain.support.sum(axis=1))
    plan.trigrams = not plan.wide and plan.lam == 1 and chain.flow.sum() >= settings.trigram_worth * b * steps
    if not plan.trigrams:
        return chain
    share = plan.take(settings.trigram_share)

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


def _fitted(pool: Traces, prior: Floats, asked: list[_Round], plan: _Plan, settings: Settings) -> Floats:
    """The distribution over the pool that explains all votes so far."""
    cases = _cases(asked, plan)
    m0 = min(max(plan.g / 30, 5.0), 3000.0)
    return fit(
        prior,
        [r.cells(pool) for r in asked],
        [r.votes / cases for r in asked],
        [math.sqrt(2 * m0) / (r.epsilon * cases) for r in asked],
        settings.fit_sweeps,
    )


def _cases(asked: list[_Round], plan: _Plan) -> float:
    """The number of cases: the count and the totals of the votes, by inverse variance."""
    estimates = [plan.cases] + [float(r.votes.sum()) for r in asked]
    variances = [plan.count_variance] + [2 * len(r.votes) / r.epsilon**2 for r in asked]
    return max(plan.settings.fewest_cases, float(np.average(estimates, weights=1 / np.array(variances))))


def _released(
    activities: tuple[str, ...],
    shortened: Shortened,
    pool: Traces,
    p: Floats,
    asked: list[_Round],
    plan: _Plan,
    rng: np.random.Generator,
) -> Variants:
    """Medoids of the fitted distribution, each for the cases near it: finer than the prototypes that were voted for."""
    settings, last = plan.settings, asked[-1]
    number = round(settings.release_factor * len(last.votes))
    chosen = _medoids_of(pool, p, number, settings.candidates_release, rng)
    masses = np.bincount(nearest(strings(pool), strings(chosen)), weights=p, minlength=len(chosen))
    cases = _cases(asked, plan)
    counts = rounded((cases * masses).astype(np.float64), settings.smallest_release / last.epsilon, cases)
    named = _named(chosen, shortened)
    used = np.arange(named.codes.shape[1]) < named.lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(named.lengths)])
    return Variants.from_arrays(activities, named.codes[used], offsets, counts)

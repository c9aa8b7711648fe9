"""Release from the distribution that explains the votes: fine or structured.

With an aim the release is structured. Its warnings come from public facts and from noisy answers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods.evolve.chain import Shortened
from veilog.methods.evolve.constants import Aim
from veilog.methods.evolve.diversity import Edits, diverse, themselves
from veilog.methods.evolve.plan import EvolvePlan
from veilog.methods.evolve.prototypes import medoids, round_weights
from veilog.methods.evolve.real_variants import RealVariants
from veilog.methods.evolve.relations import ProcessSketch
from veilog.methods.evolve.structure import Imagined, Models, Weighted, structured
from veilog.methods.evolve.traces import Traces, distances, join_traces, nearest, strings, strings_of
from veilog.methods.method import Request, advised
from veilog.privacy.account.guarantee import up
from veilog.privacy.curator import Curator


@dataclass
class Round:
    """Prototypes, the votes for each, and the epsilon used.

    Where ``far`` is a distance, the last number of votes is for none of them.
    """

    prototypes: Traces
    votes: IntArray
    epsilon: float
    far: float = math.inf
    seen: dict[str, int] = field(default_factory=dict)
    """Nearest prototype of each trace of the last pool; the next pool has many of them."""

    def deviation(self, cases: float) -> float:
        """Return the deviation of the noise of one prototype's share of so many cases."""
        return math.sqrt(2) / (self.epsilon * cases)

    def cells(self, pool: Traces) -> IntArray:
        """Return each trace's nearest prototype; their number for traces far from all."""
        texts = strings(pool)
        cells = np.fromiter((self.seen.get(text, -1) for text in texts), dtype=np.int64, count=len(texts))
        new = np.flatnonzero(cells < 0)
        cells[new] = nearest([texts[i] for i in new.tolist()], strings(self.prototypes), self.far)
        self.seen = dict(zip(texts, cells.tolist(), strict=True))
        return cells


def query_votes(
    curator: Curator,
    plan: EvolvePlan,
    chosen: Traces,
    shortened: Shortened,
    e: Fraction,
    number: int,
    far: float = math.inf,
) -> Round:
    """Query the cases nearest to each prototype, and those ``far`` from all of them."""
    activities, prototypes = curator.activities, strings(decode_traces(chosen, shortened))

    def nearest_prototype(sequences: Sequences) -> IntArray:
        return nearest(strings_of(sequences, activities), prototypes, far)

    cells = len(prototypes) + math.isfinite(far)
    votes = curator.histogram(nearest_prototype, cells, e, purpose=Message("votes-for-prototypes", number=number))
    plan.learn_from_votes(float(votes.sum()), float(e), len(votes))
    return Round(chosen, votes, float(e), far)


def draw_traces(pool: Traces, p: FloatArray, number: int, rng: np.random.Generator) -> tuple[Traces, FloatArray]:
    """Return the distinct traces of ``number`` draws, and the part of draws of each."""
    often = rng.multinomial(number, p / p.sum())
    rows = np.flatnonzero(often)
    return pool.take(rows), often[rows] / number


def medoids_of(candidates: Traces, weights: FloatArray, number: int, known: RealVariants | None) -> Traces:
    """Return candidates near the weights; those known to be real come first."""
    text = strings(candidates)
    if not known:
        return candidates.take(medoids(distances(text, text), weights, number))
    first = known.traces.take(np.arange(min(number, len(known))))
    near = distances(text, strings(first)).min(axis=1)
    others = np.flatnonzero(near > 0)
    text = [text[i] for i in others.tolist()]
    more = medoids(distances(text, text), weights[others], number - len(first), near[others])
    return join_traces([first, candidates.take(others[more])])


def decode_traces(traces: Traces, shortened: Shortened) -> Traces:
    """Return the traces in public codes; a wide log's states are some activities only."""
    activity = np.append(np.flatnonzero(shortened.states >= 0), -1).astype(np.int32)
    return Traces(activity[traces.codes], traces.lengths)


def release_of(
    activities: tuple[str, ...],
    sketch: ProcessSketch,
    pool: Traces,
    p: FloatArray,
    last: Round,
    plan: EvolvePlan,
    rng: np.random.Generator,
    aims: Sequence[Aim],
) -> list[Variants]:
    """Return medoids of the fitted distribution, each for the cases near it.

    They are finer than the prototypes that were voted for. For each aim there is a release in which cases are moved to
    traces of a structure from which a model can be discovered.
    """
    settings, known = plan.settings, sketch.known

    def log(traces: Traces, counts: IntArray) -> Variants:
        return Variants.from_arrays(activities, *decode_traces(traces, sketch.shortened).in_a_row, counts)

    candidates, shares = draw_traces(pool, p, settings.candidates_release, rng)
    number = max(settings.release_factor * len(last.votes), settings.variants_of_prior if plan.of_prior else 0)
    chosen = medoids_of(candidates, shares, round(number), known)
    masses = np.bincount(nearest(strings(pool), strings(chosen)), weights=p, minlength=len(chosen))
    weights = (plan.cases * masses).astype(np.float64)
    smallest = 0.0 if plan.of_prior else settings.smallest_release / last.epsilon
    if known:
        weights[: len(known)] = np.maximum(weights[: len(known)], max(1.0, smallest))
    counts = round_weights(weights, smallest, plan.cases)
    cases = plan.cases * float(counts.sum() / weights[counts > 0].sum())  # others have the cases of dropped variants
    fine = Weighted(chosen, counts, len(known) if known else 0).occurring()
    if not aims:
        return [log(fine.traces, fine.counts)]
    models, found = Models.judged_by(fine, log, settings), [fine] * len(aims)
    if not plan.of_prior:  # a prior keeps its own structure
        imagined = Imagined(pool, p, candidates, sketch.shortened.size)
        found = structured(fine, imagined, aims, _noise(pool, p, last, plan), models, settings)

    def with_edits(release: Weighted) -> Weighted:
        # A copy of the generator: a second release changes nothing of the first.
        least = models.f_score(release) - settings.diverse_f
        copies = themselves(release, pool, p, cases, settings)
        edits = Edits.of(release, sketch.chain, sketch.shortened.max_length)
        return diverse(
            release, copies, edits, lambda other: models.f_score(other) >= least, settings, copy.deepcopy(rng)
        )

    return [log(release.traces, release.counts) for release in map(with_edits, found)]


def _noise(pool: Traces, p: FloatArray, last: Round, plan: EvolvePlan) -> float:
    """Return the noise in the last votes: at most one deviation of each prototype."""
    masses = np.bincount(last.cells(pool), weights=p, minlength=len(last.votes))
    return float(np.minimum(masses, last.deviation(plan.cases)).sum())


def remark(request: Request, plan: EvolvePlan, shortened: Shortened, structured: bool) -> None:
    """Warn about faults of the release, with a budget that would do; describe it last.

    All of it comes from public facts and the noisy number of cases.
    """
    s = plan.settings
    kept = float(plan.epsilon / request.epsilon)
    wide = plan.wide and not plan.anchored
    enough = s.wide_g if wide else s.high_g
    if plan.g < enough and (wide or plan.low):
        needed = enough / plan.cases / kept
        request.remark(
            Message(
                "evolve-cases-few",
                cases=plan.cases,
                within=plan.within,
                up=up(request.epsilon),
                fewer=Message("evolve-fewer-activities-better") if wide else advised(needed),
            )
        )
    if plan.anchored:
        request.remark(Message("evolve-few-variants-dominate", size=shortened.size, activities=plan.activities))
    elif plan.wide:
        request.remark(Message("evolve-release-sketch", activities=plan.activities, size=shortened.size))
    request.remark(Message("evolve-release-synthetic"))
    if structured:
        request.remark(Message("evolve-rare-steps-omitted"))


def remark_real(request: Request, released: Variants, real: Variants) -> None:
    """Report the certain facts about real variants, from their answer and the release."""
    if len(real) == 0:
        request.remark(Message("evolve-no-variant-certain"))
        return
    counts = released.to_dict()
    found = set(real.sequences)
    cases = sum(counts[sequence] for sequence in found)
    others = max((count for sequence, count in counts.items() if sequence not in found), default=0)
    largest = max(counts[sequence] for sequence in found) > others
    code = f"{'one-variant' if len(found) == 1 else 'variants'}-certain{'-and-largest' if largest else ''}"
    request.remark(Message(code, variants=len(found), cases=cases, others=others))

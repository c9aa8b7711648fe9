"""Private evolution over trace variants: evolve, a method of our own.

It is epsilon-differentially private. The method learns a coarse chain of the process from noisy relations, samples many
traces from it, and chooses diverse prototypes. Every case votes for the prototype nearest to it. The method fits
weights to all votes, mutates the winners, and holds a further vote. A vote has sensitivity 1, whatever the length of a
case. Votes for nearest prototypes minimise the earth mover's distance, by which releases are judged.

Guarantee: only the curator's queries below touch data. The split of the budget depends only on public facts and on
earlier noisy answers, and the shares add up to epsilon exactly. A case's addition to an answer depends only on that
case and on earlier noisy answers. Adaptive composition gives epsilon.

With a delta above 0 there are two more queries: how many cases the most frequent variants hold and, with delta, which
variants are frequent. Half of delta is kept for Gaussian noise on the relations, where that is expected to leave less
noise. Together this is (epsilon, delta).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods.benchmark_facts import wins_against
from veilog.methods.evolve.constants import DEFAULTS, Constants, usual_length
from veilog.methods.evolve.doubt import Prior, imagine_pool
from veilog.methods.evolve.plan import EvolvePlan
from veilog.methods.evolve.prior import voted_from_prior
from veilog.methods.evolve.prototypes import Counted, fit_of_counts, next_generation
from veilog.methods.evolve.real_variants import RealVariants, insert_real, only_real_variants
from veilog.methods.evolve.relations import ProcessSketch, sketch_process
from veilog.methods.evolve.synthesis import Round, draw_traces, medoids_of, query_votes, release_of, remark, remark_real
from veilog.methods.evolve.traces import Traces
from veilog.methods.method import DeltaOptional, Request, advised, as_asked, our_method
from veilog.methods.settings import LargestLog, Range, Settings
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms.noise import generator

__all__ = ["EVOLVE", "EvolveSettings", "evolve"]

_AIMS: Mapping[str, tuple[str, ...]] = {
    "similarity": ("similarity",), "models": ("models",), "both": ("similarity", "models"), "detail": (),
}  # fmt: skip
"""Aims by which the release, and then any further one, is moved, by ``for_``."""
_LONGEST = 1000
"""Longest trace that may be sampled: all traces of a pool are held at once."""


@dataclass(frozen=True, kw_only=True)
class EvolveSettings(Settings):
    """Settings of evolve."""

    rounds: Annotated[int | None, "rounds of votes; by default one or two, by the noisy size", Range(1, 10)] = None
    max_length: Annotated[
        int | None,
        "the longest trace that is sampled; default: the declared length, or 200",
        Range(1, _LONGEST),
    ] = None
    real_share: Annotated[
        float | None,
        "with a delta, share of epsilon that finds real variants; chosen if not given",
        Range(0, 0.9),
    ] = None
    for_: Annotated[
        Literal["similarity", "models", "both", "detail"],
        "use of the release: similarity to the log, models discovered from it, a file for each of both, or all "
        "variants that votes reveal",
    ] = "similarity"
    only_real: Annotated[bool, "with a delta, release only variants that are certain to be real"] = False
    largest_log: LargestLog = DEFAULTS.largest_log


def evolve(
    curator: Curator,
    request: Request,
    settings: EvolveSettings,
    constants: Constants = DEFAULTS,
) -> Variants:
    """Return weighted synthetic prototypes that resemble the log.

    The release is (epsilon, delta)-differentially private for one case. The settings are:

    - ``rounds``: rounds of votes. The default is two, or one where the noisy number of cases is small for the budget.
    - ``max_length``: the longest sampled trace, which is no longer than the declared length.
    - ``real_share``: the share of epsilon that finds frequent real variants, with a delta above 0. By default it is
      larger where few variants hold most cases, which a query then finds out. Without a delta it is 0.
    - ``for_``: the use of the release. It decides how far the release may be moved to a structure from which a model
      can be discovered (:mod:`veilog.methods.evolve.structure`). ``both`` adds a second release, for models, of the
      same answers.
    - ``only_real``: with a delta, release frequent real variants alone, and sample nothing.
    - ``largest_log``: cases of the largest log expected. A budget too small even for it is refused before any query.
    """
    real_share = settings.real_share
    longest = _longest(settings.max_length, curator.domain.longest, constants.max_length)
    constants = replace(constants, largest_log=settings.largest_log, max_length=longest)
    activities = curator.activities
    _refuse(request.epsilon, activities, constants)
    if settings.only_real:
        if not request.delta or real_share == 0:
            raise ParameterError("evolve-real-without-share", parameter="only_real")
        return only_real_variants(curator, request, constants, real_share)
    rng = generator(curator.randomness)
    plan, real = _plan_release(curator, request, constants, real_share)
    found = voted_from_prior(curator, request, plan, settings.rounds, rng) if request.prior is not None else None
    if found is None:
        sketch = sketch_process(curator, plan, real, rng, request.rules)
        found = (sketch, *_vote(curator, request, plan, sketch, settings.rounds, rng))
    sketch, pool, p, asked = found
    aims = [{"similarity": constants.similarity, "models": constants.models}[aim] for aim in _AIMS[settings.for_]]
    remark(request, plan, sketch.shortened, bool(aims))
    synthetic, *others = release_of(activities, sketch, pool, p, asked[-1], plan, rng, aims)
    for name, other in zip(_other_aims(settings), others, strict=True):
        request.beside(name, other if real is None else _merge_found(other, real))
    if real is None:
        return synthetic
    together = _merge_found(synthetic, real)
    remark_real(request, together, real)
    return together


def _longest(asked: int | None, declared: int | None, usual: int) -> int:
    """Return the length at which cases are cut and sampled traces end; it is public."""
    if declared is None:
        return asked or usual
    return min(asked or _LONGEST, declared)


def _vote(
    curator: Curator,
    request: Request,
    plan: EvolvePlan,
    sketch: ProcessSketch,
    rounds: int | None,
    rng: np.random.Generator,
) -> tuple[Traces, FloatArray, list[Round]]:
    """Return the pool after the rounds of votes, its distribution, and the rounds."""
    constants, known = plan.settings, sketch.known
    pool, prior = _first_pool(plan, sketch, rng)
    p = prior.mixed(prior.likely)
    asked: list[Round] = []
    cells: list[IntArray] = []
    shares = plan.votes(rounds)
    for number, e in enumerate(shares):
        request.progress(f"round {number + 1} of {len(shares)}", number / len(shares))
        if number:
            pool, likely = next_generation(pool, p, sketch.chain, constants, rng)
            if known:
                pool, likely = known.kept_in(pool, likely)
            prior = Prior(likely)
            cells = [before.cells(pool) for before in asked]
            p = _fit_votes(prior, pool, cells, asked, plan, known)
        chosen = medoids_of(*draw_traces(pool, p, constants.candidates, rng), plan.number_of_prototypes(e), known)
        asked.append(query_votes(curator, plan, chosen, sketch.shortened, e, number + 1))
        cells.append(asked[-1].cells(pool))
        p = _fit_votes(prior, pool, cells, asked, plan, known)
    return pool, p, asked


def _first_pool(plan: EvolvePlan, sketch: ProcessSketch, rng: np.random.Generator) -> tuple[Traces, Prior]:
    """Return the pool before any vote: walks, known real variants and their mutants."""
    constants, chain, known, shortened = plan.settings, sketch.chain, sketch.known, sketch.shortened
    if known:
        walks = chain.sample(constants.pool, shortened.max_length, rng, room=shortened.room)
        pool, likely = known.pool(walks, chain, plan.imagined(known.cases.sum()), constants, rng)
        prior = Prior(likely)
    else:
        pool, prior = imagine_pool(chain, sketch.doubt, shortened.max_length, shortened.room, constants, rng)
    if sketch.chain.rules is None:
        return pool, prior
    # Walks that found no end in time may break a rule.
    rows = np.flatnonzero(chain.obeys(pool))
    return (pool.take(rows), prior.take(rows)) if len(rows) else (chain.shortest(shortened.room), Prior(np.ones(1)))


def _merge_found(synthetic: Variants, real: Variants) -> Variants:
    """Return the release with the real variants; its own counts of these come first."""
    found = synthetic.to_dict()
    counts = [found.get(sequence, count) for sequence, count in zip(real.sequences, real.counts.tolist(), strict=True)]
    return insert_real(synthetic, real.with_counts(counts))


def _refuse(epsilon: Fraction, activities: tuple[str, ...], settings: Constants) -> None:
    """Refuse a budget too small for the largest log, and no or too many activities."""
    if epsilon * settings.largest_log < settings.fewest_g:
        raise ParameterError(
            "evolve-epsilon-too-small",
            parameter="epsilon",
            advice=advised(settings.fewest_g / settings.largest_log, "epsilon-enough"),
            as_asked=as_asked(epsilon),
            largest_log=settings.largest_log,
        )
    if not activities:
        raise ParameterError("evolve-without-activities", parameter="log")
    if len(activities) > settings.most_activities:
        raise ParameterError(
            "evolve-activities-too-many",
            parameter="log",
            number=len(activities),
            most_activities=settings.most_activities,
        )


def _plan_release(
    curator: Curator, request: Request, settings: Constants, real_share: float | None
) -> tuple[EvolvePlan, Variants | None]:
    """Return a plan by the noisy number of cases and, with a delta, real variants."""
    purpose, activities = "frequent real variants", len(curator.activities)
    if not request.delta or real_share == 0:
        return EvolvePlan.of(curator, request.epsilon, settings, activities), None
    if real_share is not None:
        share = request.epsilon * Fraction(str(real_share))
        real = request.obeying(curator.partitions(share, request.delta, purpose=purpose))
        plan = EvolvePlan.of(curator, request.epsilon - share, settings, activities)
    else:
        plan = EvolvePlan.of(curator, request.epsilon, settings, activities)
        limit, share = Fraction(str(settings.concentrated_from)), plan.take(plan.concentration_share())
        plan.learn_concentration(curator.concentration(settings.concentration_variants, limit, share), limit, share)
        part, failure = plan.real_share(request.delta, usual_length(settings.max_length))
        share = plan.set_aside(part)
        if not share:
            request.remark(Message("evolve-real-not-asked"))
            return plan, None
        real = request.obeying(curator.partitions(share, failure, purpose=purpose))
    plan.real_epsilon = float(share)
    plan.learn_from_real(real.cases)
    return plan, real


def _fit_votes(
    prior: Prior, pool: Traces, cells: list[IntArray], asked: list[Round], plan: EvolvePlan, known: RealVariants | None
) -> FloatArray:
    """Return the pool's distribution that explains all votes and any anchoring counts."""
    sweeps = plan.settings.fit_sweeps
    rounds = list(zip(cells, asked, strict=True))
    if not known or not plan.anchored:
        votes = [Counted(cell, r.votes / plan.cases, plan.deviation(r.epsilon)) for cell, r in rounds]
        return prior.fitted(votes, sweeps)
    found = [Counted(cell, r.votes, np.full(len(r.votes), math.sqrt(2) / r.epsilon)) for cell, r in rounds]
    found.append(known.counted(pool, math.sqrt(2) / plan.real_epsilon))
    return fit_of_counts(prior.usual, found, plan.estimates[0], plan.trust, sweeps)


def _other_aims(settings: EvolveSettings) -> tuple[str, ...]:
    return () if settings.only_real else _AIMS[settings.for_][1:]


EVOLVE = our_method(
    "evolve",
    evolve,
    EvolveSettings,
    takes_prior=True,
    advice=Message("evolve-best-first", **wins_against("evolve")),
    budget=DeltaOptional(
        of_use=lambda settings: settings.real_share is None or settings.real_share > 0,
        buys="frequent real variants can be added",
    ),
    beside=_other_aims,
    needs=lambda settings: frozenset({"activities"}),
)

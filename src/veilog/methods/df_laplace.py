"""DF-Laplace: noisy counts of the directly-follows relation, played out.

The baseline of S.A. Fahrenkrog-Petersen, M. Kabierski, H. van der Aa, M. Weidlich, "Semantics-aware Mechanisms for
Control-flow Anonymization in Process Mining" (2023), after F. Mannhardt et al., "Privacy-Preserving Process Mining",
Business & Information Systems Engineering 61 (2019).

A case of n events adds one to each of its n + 1 directly-follows pairs, the start and the end included. As published
every count gets Lap(1/epsilon) on its own, as if a case had one pair: with a length bound B the release costs (B + 1)
epsilon, and without one nothing can be derived. Certified, what a case adds is scaled down to an L1 norm of ``bound``
and the noise has scale bound/epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.methods._prefix_tree.tree import length_histogram, noise_threshold, number_histogram, quantile
from veilog.methods._relations import LARGEST_TOTAL, play_out, play_out_guided, public_codes, refuse_many_activities
from veilog.methods.method import Request, advised, as_asked, our_method
from veilog.methods.settings import LargestLog, Range, Settings
from veilog.methods.thresholds import remark_cases, remark_made_by_noise, remark_rare_steps
from veilog.privacy.account.budgets import LARGEST_EPSILON, SMALLEST_EPSILON
from veilog.privacy.contributions import Features
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Fact
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Laplace
from veilog.rules.rules import ReleaseRules

BOUND_SHARE = Fraction(1, 20)
"""Share of the budget that finds the bound where the user does not give it."""
REACHED = 0.6
"""The part of the cases that the bound leaves as they are."""
MOST_PAIRS = 10**6
"""Most pairs of a case that count in full; larger sums could not be added up."""
LEAST_COUNT = Fraction(1, 4)
"""Largest expected log, divided by this, is the largest scale of the noise of the number of cases."""
RESOLUTION = 1024
"""Steps to a whole in which the contributions of a case are scaled down."""


@dataclass(frozen=True, kw_only=True)
class PairSettings(Settings):
    """Settings of methods that ask for noisy directly-follows pairs."""

    bound: Annotated[
        int | None,
        "directly-follows pairs a case counts in full; a noisy 60 % quantile if not given",
        Range(1, MOST_PAIRS),
    ] = None
    noise_relations: Annotated[float, "relations expected to survive that are only noise", Range(1e-6, 1e6)] = 1.0
    count_share: Annotated[float, "share of the budget for the number of cases, certified", Range(0, 0.9)] = 0.1
    largest_log: LargestLog = 1_000_000


@dataclass(frozen=True, kw_only=True)
class RelationSettings(PairSettings):
    """Settings of methods that release a noisy directly-follows relation."""

    playout: Annotated[Literal["paper", "guided"] | None, "paper, or guided (the default when certified)"] = None


def needs_of_relation(settings: RelationSettings) -> frozenset[Fact]:
    """Return the needed facts: activities, and the length if it bounds the pairs.

    A bound on pairs is found from the lengths of traces if it is not set.
    """
    return frozenset({"activities"}) if settings.bound else frozenset({"activities", "max_length"})


def df_laplace(curator: Curator, request: Request, settings: RelationSettings) -> Variants:
    """Return traces played out from a noisy directly-follows relation.

    Certified: epsilon in all, ``count_share`` of it for the number of cases; relations at or below what noise alone
    reaches are left out (``noise_relations`` of them expected to survive). As published: noise of scale 1/epsilon on
    every count, negative ones set to 0.
    """
    if request.as_published:
        refuse_flood(curator, request.epsilon)
        noisy = np.maximum(_published_relation(curator, request.epsilon), 0)
        remark_made_by_noise(request, Laplace(1 / request.epsilon), noisy.size - 1, int(noisy.sum()), steps=True)
        return play(curator, request, noisy, np.zeros_like(noisy), settings)
    noisy, threshold, cases = certified_relation(curator, request, settings)
    relation = np.where(noisy > threshold, noisy, 0)
    return resized(play(curator, request, relation, np.maximum(noisy, 0), settings), cases, curator)


def play(
    curator: Curator, request: Request, relation: IntArray, spare: IntArray, settings: RelationSettings
) -> Variants:
    """Return the requested play-out: by default guided, as published the paper's.

    ``spare`` holds noisy counts that did not stand out. The guided play-out uses them if an activity could not be
    entered or left often enough without them.
    """
    request.progress("playing out", None)
    random = noise.generator(curator.randomness)
    if settings.playout == "guided" or (settings.playout is None and not request.as_published):
        return play_out_guided(curator.activities, relation, random, spare)
    return play_out(curator.activities, relation, random)


def noisy_cases(curator: Curator, epsilon: Fraction, settings: PairSettings) -> tuple[int | None, Fraction]:
    """Return a noisy number of cases, at least 1, and the remaining epsilon.

    The number is None if its share of the budget is 0. A share so small that noise would drown even the largest log
    expected is refused before anything is asked: its answer could be billions.
    """
    share, largest_log = settings.count_share, settings.largest_log
    for_count = epsilon * Fraction(str(share))
    if not for_count:
        return None, epsilon
    if for_count * largest_log < LEAST_COUNT:
        enough = float(LEAST_COUNT / (epsilon * largest_log))
        raise ParameterError(
            "relation-count-share-small",
            parameter="count_share",
            share=share,
            as_asked=as_asked(epsilon),
            enough=enough,
            largest_log=largest_log,
        )
    return max(curator.count(for_count), 1), epsilon - for_count


def resized(played: Variants, cases: int | None, curator: Curator) -> Variants:
    """Return as many traces as the noisy number of cases.

    They are whole copies of all, and for the rest some drawn at random. The relation alone reveals less about that
    number. Its counts of starts have noise of scale bound/epsilon each. Cases longer than the bound count for less in
    it, and noise that stood out adds traces. This is post-processing.
    """
    if cases is None or played.cases == 0:
        return played
    copies, rest = divmod(cases, played.cases)
    random = noise.generator(curator.randomness)
    drawn = random.multivariate_hypergeometric(played.counts, rest, method="marginals")
    return played.with_counts(copies * played.counts + drawn)


def certified_relation(
    curator: Curator, request: Request, settings: RelationSettings
) -> tuple[IntArray, int, int | None]:
    """Return the noisy relation, its noise threshold and the noisy number of cases.

    Noise alone rarely exceeds the threshold. The number is None if it is not asked. A budget that is too small is
    refused; steps that do not stand out are remarked.
    """
    refuse_small_budget(curator, request.epsilon, settings)
    cases, epsilon = noisy_cases(curator, request.epsilon, settings)
    request.progress("directly-follows relation", None)
    noisy, threshold = noisy_relation(curator, epsilon, settings, request.rules)
    remark_relation(request, threshold, cases, settings)
    return noisy, threshold, cases


def noisy_relation(
    curator: Curator, epsilon: Fraction, settings: PairSettings, rules: ReleaseRules | None, *, once: bool = False
) -> tuple[IntArray, int]:
    """Return the relation with noise of scale bound/epsilon, and its noise threshold.

    Noise alone rarely exceeds the threshold. With ``once``, a case counts each pair once.
    """
    size, bound = len(curator.activities) + 1, settings.bound
    features = distinct(pairs(curator.activities), size * size) if once else pairs(curator.activities)
    if bound is None:
        for_bound = epsilon * BOUND_SHARE
        epsilon -= for_bound
        if once:
            found = number_histogram(curator, features, size * size - 1, for_bound, "different-pairs-of-cases")
        else:
            found = length_histogram(curator, for_bound, MOST_PAIRS)
        bound = quantile(*found, REACHED)
    sums = curator.sums(features, size * size, bound, epsilon, resolution=RESOLUTION, purpose="directly-follows-pairs")
    relation = np.rint(sums / RESOLUTION).astype(np.int64).reshape(size, size)
    if rules is not None:
        relation[~rules.automata(curator.activities).steps] = 0
    return relation, noise_threshold(size * size, settings.noise_relations, Laplace(bound / epsilon))


def remark_relation(request: Request, threshold: int, cases: int | None, settings: PairSettings) -> None:
    """Remark on steps that do not stand out from noise, and on the number of cases.

    The number is the answer of :func:`noisy_cases`.
    """
    remark_rare_steps(request, threshold)
    if cases is not None:
        variance = Laplace(1 / (request.epsilon * Fraction(str(settings.count_share)))).variance
        remark_cases(request, cases, variance, threshold)


def pairs(activities: tuple[str, ...]) -> Features:
    """Return a map of a sequence to its directly-follows pairs.

    Each is entry ``a * size + b``; the last row is the start, the last column the end.
    """
    boundary, size = len(activities), len(activities) + 1

    def features(sequences: Sequences) -> tuple[IntArray, IntArray, IntArray]:
        recode, lengths = public_codes(sequences, activities), sequences.lengths
        rows = np.repeat(np.arange(len(sequences)), lengths + 1)
        events = np.arange(len(rows)) - rows  # without the boundary between sequences
        codes = np.concatenate([recode[sequences.codes], [boundary]]) if len(recode) else np.array([boundary])
        ends = np.cumsum(lengths + 1) - 1
        starts = ends - lengths
        following = codes[np.minimum(events, len(codes) - 1)]
        following[ends] = boundary
        leading = np.concatenate([[boundary], following[:-1]])
        leading[starts] = boundary
        return rows, leading * size + following, np.ones(len(rows), dtype=np.int64)

    return features


def distinct(features: Features, size: int) -> Features:
    """Return features that are 1 wherever those given are not 0."""

    def found(sequences: Sequences) -> tuple[IntArray, IntArray, IntArray]:
        rows, columns, _ = (np.asarray(part, dtype=np.int64) for part in features(sequences))
        keys = np.unique(rows * size + columns)
        return keys // size, keys % size, np.ones(len(keys), dtype=np.int64)

    return found


def _published_relation(curator: Curator, epsilon: Fraction) -> IntArray:
    """Return all pairs' counts with discrete Laplace noise of scale 1/epsilon.
    Nothing leads from the start to the end."""
    size = len(curator.activities) + 1
    declared = curator.domain.longest
    if declared is not None:
        total = (declared + 1) * epsilon
        if total > LARGEST_EPSILON:
            raise ParameterError(
                "relation-cost-of-length",
                parameter="epsilon",
                declared=declared,
                total=float(total),
                largest_epsilon=float(LARGEST_EPSILON / (declared + 1)),
            )
        # No case has more pairs than the bound, so nothing is clipped and the noise has scale 1/epsilon.
        features = pairs(curator.activities)
        sums = curator.sums(features, size * size, declared + 1, total, purpose="directly-follows-pairs")
        relation = sums.reshape(size, size)
    else:
        original = curator.peek("relation-length-unbounded")
        relation = exact_relation(original, curator.activities)
        relation = relation + noise.discrete_laplace(epsilon, size * size, curator.randomness).reshape(size, size)
    relation[-1, -1] = 0
    return relation


def exact_relation(variants: Variants, activities: tuple[str, ...], *, once: bool = False) -> IntArray:
    """Return the raw relation of a peek; with ``once``, a case counts each pair once."""
    size = len(activities) + 1
    features = distinct(pairs(activities), size * size) if once else pairs(activities)
    rows, columns, values = (np.asarray(part) for part in features(variants.sequences))
    relation = np.zeros(size * size, dtype=np.int64)
    np.add.at(relation, columns, values * variants.counts[rows])
    return relation.reshape(size, size)


def refuse_flood(curator: Curator, epsilon: Fraction) -> None:
    """Refuse noise so large that a play-out would never end, before anything is asked."""
    size = len(curator.activities) + 1
    expected = size * size / (2 * float(epsilon))
    if expected > LARGEST_TOTAL:
        raise ParameterError(
            "relation-noise-adds-pairs",
            parameter="epsilon",
            as_asked=as_asked(epsilon),
            expected=expected,
            as_asked_2=as_asked(size * size / (2 * LARGEST_TOTAL)),
        )


def refuse_small_budget(curator: Curator, epsilon: Fraction, settings: PairSettings) -> None:
    """Refuse a budget at which no relation can survive, before anything is asked.

    This holds for every log up to the largest size expected. Too many activities to count their pairs are refused, too.
    """
    refuse_many_activities(curator.activities)
    pairs_of_a_case, largest_log = settings.bound or 2, settings.largest_log
    size, for_count = len(curator.activities) + 1, Fraction(str(settings.count_share))
    noise_of_pairs = Laplace(pairs_of_a_case / (epsilon * (1 - for_count)))
    needed = noise_threshold(size * size, settings.noise_relations, noise_of_pairs) + 1
    least_share = min(BOUND_SHARE * (1 - for_count), for_count or 1)
    if epsilon * least_share < SMALLEST_EPSILON:
        raise ParameterError(
            "relation-epsilon-too-small",
            parameter="epsilon",
            as_asked=as_asked(epsilon),
            as_asked_2=as_asked(SMALLEST_EPSILON / least_share),
        )
    if needed > largest_log:
        raise ParameterError(
            "relation-epsilon-hides-all",
            parameter="epsilon",
            advice=advised(float(epsilon) * needed / largest_log, "epsilon-enough"),
            as_asked=as_asked(epsilon),
            needed=needed,
            largest_log=largest_log,
        )


DF_LAPLACE = our_method("df-laplace", df_laplace, RelationSettings, needs=needs_of_relation)

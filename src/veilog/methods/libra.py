"""Libra: anonymised samples of a log, put together.

G. Elkoumy, M. Dumas, "Libra: High-Utility Anonymization of Event Logs for Process Mining via Subsampling", ICPM 2022.

As published: variants with fewer than ``b ln(2 k / delta)`` of the raw cases are clipped (k: number of raw variants).
Then, ``1 / gamma`` times, a sample of ``gamma`` of the cases is drawn with replacement. Amun's case sampling and noise
on its times, all of scale b, anonymise it. It is reduced to its cases with news. An accountant of Renyi differential
privacy of order alpha gives the nominal epsilon. Nothing can be derived, see the reasons below.

Certified: Poisson samples of rate gamma, each asked by a certified variant method at the epsilon that amplification
allows (:mod:`veilog.privacy.mechanisms.sampling`). The answers are added up and scaled to the size of the log. Times
come from noisy histograms of the whole log.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

import numpy as np

from veilog._typing import IntArray
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.methods._events.assemble import Details, assemble_log
from veilog.methods._events.query import Query, QuerySettings, needs_of_query, released_log, variant_query, wanted_of
from veilog.methods._relations import add_answers, rows_of
from veilog.methods._sampling import annotated, copies_of_cases, noisy_cases, sampled_counts
from veilog.methods.method import DeltaOptional, Request, WholeLog, our_method
from veilog.methods.settings import Range
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.mechanisms.noise import discrete_laplace, generator
from veilog.privacy.mechanisms.sampling import reverse_amplification

PATIENCE = 20
"""Number of cases in a row without news that ends a lot.

It is the statistical bound that Libra takes from Bauer et al., "How much event data is enough?" (2018): (z**2 + sqrt(z)
- 2 d**2) / (2 d) with z = 0.99 and d = 0.05, rounded up from 19.7.
"""
MOST_ORDER = 128
_MINUTE = 60_000_000


def renyi_of_laplace(order: int, scale: float) -> float:
    """Return the Renyi divergence of Laplace noise for sensitivity 1.

    Mironov, "Renyi differential privacy", 2017, proposition 6: ``ln(a/(2a-1) exp((a-1)/b) + (a-1)/(2a-1) exp(-a/b)) /
    (a-1)``.
    """
    a, b = order, scale
    grows, falls = math.log(a / (2 * a - 1)) + (a - 1) / b, math.log((a - 1) / (2 * a - 1)) - a / b
    return float(np.logaddexp(grows, falls)) / (a - 1)


def renyi_of_sample(order: int, scale: float, rate: float) -> float:
    """Return the Renyi divergence of Laplace noise on a Poisson sample.

    Zhu, Wang, "Poisson subsampled Renyi differential privacy", 2019, theorem 5:

    ``ln((1-q)**(a-1) (a q - q + 1) + C(a,2) q**2 (1-q)**(a-2) e**e(2) + 3 sum_{l>2} C(a,l) q**l (1-q)**(a-l)
    e**((l-1) e(l))) / (a-1)``, with ``e`` of :func:`renyi_of_laplace`.
    """
    a, q = order, rate
    if q == 1:
        return renyi_of_laplace(a, scale)
    terms = [(a - 1) * math.log1p(-q) + math.log(a * q - q + 1)]
    for place in range(2, a + 1):
        weight = math.log(math.comb(a, place)) + place * math.log(q) + (a - place) * math.log1p(-q)
        factor = math.log(3) if place > 2 else 0.0
        terms.append(factor + weight + (place - 1) * renyi_of_laplace(place, scale))
    return max(0.0, float(np.logaddexp.reduce(terms)) / (a - 1))


def accounted(scale: float, rate: float, lots: int, order: int, delta: float) -> float:
    """Return the epsilon of Libra's accountant for all lots at this delta.

    Mironov 2017, proposition 3.
    """
    return lots * renyi_of_sample(order, scale, rate) + math.log(1 / delta) / (order - 1)


@lru_cache(maxsize=64)
def least_scale(epsilon: float, delta: float, rate: float, lots: int, order: int | None) -> tuple[float, int] | None:
    """Return the smallest noise scale within an epsilon, and its order, or None.

    The scale has 3 digits; None where the accountant exceeds epsilon at every scale.
    """
    best: tuple[float, int] | None = None
    for a in range(2, MOST_ORDER + 1) if order is None else (order,):
        if math.log(1 / delta) / (a - 1) >= epsilon:
            continue
        low, high = 1e-2, 1e7 if best is None else best[0]
        if accounted(high, rate, lots, a, delta) > epsilon:
            continue
        while high / low > 1.0005:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if accounted(middle, rate, lots, a, delta) <= epsilon else (middle, high)
        if best is None or high < best[0]:
            best = (high, a)
    return best


def informative(cases: Sequences, times: IntArray, minutes: float, rng: np.random.Generator) -> IntArray:
    """Return the cases of a lot that are kept, in ascending order.

    Cases are looked at in random order. One is kept if it has an activity, a first or last activity or a
    directly-follows pair that no kept one has. It is also kept if it moves the mean duration of cases, or the mean time
    of a pair, by more than ``minutes``. After ``PATIENCE`` cases in a row without news the lot ends. A lot that is used
    up before is kept whole, as the authors' program has it.
    """

    def moved(total: float, often: int, more: float) -> bool:
        return often > 0 and abs((total + more) / (often + 1) - total / often) > minutes

    seen: set[tuple[int, ...]] = set()
    pair_times: dict[tuple[int, int], tuple[float, int]] = {}
    durations, number = 0.0, 0
    kept: list[int] = []
    without_news = 0
    for case in rng.permutation(len(cases)).tolist():
        a, b = int(cases.offsets[case]), int(cases.offsets[case + 1])
        if a == b:
            continue
        codes = cases.codes[a:b].tolist()
        clock = (times[a:b] / _MINUTE).tolist()
        pairs = list(itertools.pairwise(codes))
        signs = {(code,) for code in codes} | {(-1, -1, codes[0]), (-2, -2, codes[-1])} | set(pairs)
        duration, gaps = clock[-1] - clock[0], list(zip(pairs, np.diff(clock).tolist(), strict=True))
        news = not signs <= seen or moved(durations, number, duration)
        if not news and not any(moved(*pair_times.get(pair, (0.0, 0)), since) for pair, since in gaps):
            without_news += 1
            if without_news >= PATIENCE:
                return np.sort(np.array(kept, dtype=np.int64))
            continue
        without_news = 0
        kept.append(case)
        seen |= signs
        durations, number = durations + duration, number + 1
        for pair, since in gaps:
            total, often = pair_times.get(pair, (0.0, 0))
            pair_times[pair] = (total + since, often + 1)
    return np.arange(len(cases))


PUBLISHED_RATE = 0.05
"""The authors' example."""
PUBLISHED_SCALE = 2.5
"""Noise scale as published, where the accountant allows less.
The authors' example has 2; from 2.48 on Sepsis is clipped to nothing at delta = 1e-3, as TraVaG's authors report of
Libra."""
_MICROSECONDS = {"day": 86_400e6, "minute": 60e6}


@dataclass(frozen=True, kw_only=True)
class LibraSettings(QuerySettings):
    """Settings of Libra."""

    b: Annotated[
        float | None, "as published: scale of all noise; 2.5, or more if epsilon needs it", Range(1e-3, 1e9)
    ] = None
    gamma: Annotated[float | None, "share of the cases in a sample; 0.9, or as published 0.05", Range(1e-4, 1)] = None
    alpha: Annotated[
        int | None, "as published: order of Renyi privacy; the one that allows the least noise", Range(2, 128)
    ] = None
    information_minutes: Annotated[
        float, "as published: change of a mean time that is news, in minutes", Range(0, 1e9)
    ] = 20.0
    samples: Annotated[int | None, "certified: how many samples are drawn; 1", Range(1, 1000)] = None
    query: Annotated[str | None, "certified: the variant method for the queries about samples; default: evolve"] = None


def libra(curator: Curator, request: Request, settings: LibraSettings) -> EventLog:
    """Return a whole log.

    Certified, (epsilon, delta) is for all: ``times_share`` of epsilon for times, the rest, amplified, for ``samples``
    Poisson samples of rate ``gamma``. As published, ``1 / gamma`` lots have noise of scale ``b``; nothing is derived.
    """
    usual = PUBLISHED_RATE if request.as_published else CERTIFIED_RATE
    rate = Fraction(str(usual if settings.gamma is None else settings.gamma))
    if request.as_published:
        _refuse(settings, "libra-setting-of-certified", "samples", "query", "query_parameters", "start_window")
        if request.delta == 0:
            raise ParameterError("libra-delta-missing", parameter="delta")
        return _as_published(curator, request, settings, rate)
    _refuse(settings, "libra-setting-of-published", "b", "alpha")
    asked = variant_query(settings.query or "evolve", settings.query_parameters)
    number = settings.samples or CERTIFIED_SAMPLES
    wanted = wanted_of(settings)
    return released_log(
        curator, request, wanted, lambda rest: _query_samples(curator, rest, asked, rate, number), asked.spends_delta
    )


def _refuse(settings: LibraSettings, code: str, *names: str) -> None:
    for name in names:
        if getattr(settings, name) is not None:
            raise ParameterError(code, parameter=name, name=name)


# Certified -----------------------------------------------------------------------------------------------------------

CERTIFIED_RATE = 0.9
"""Best rate of those measured, or the one that lost least: docs/results/libra.md."""
CERTIFIED_SAMPLES = 1


def _query_samples(curator: Curator, request: Request, query: Query, rate: Fraction, samples: int) -> Variants:
    """Return the sum of the answers on all samples, scaled to the size of the log.
    The scale is one over the expected number of samples that a case is in."""
    within = reverse_amplification(request.epsilon / samples, rate)
    delta = min(request.delta / samples / rate, Fraction(999, 1000))
    request.remark(
        Message(
            f"{'one-sample' if samples == 1 else 'samples'}-of-query{'-with-delta' if delta else ''}",
            samples=samples,
            rate=float(rate),
            query=query.method.name,
            epsilon=float(within),
            delta=float(delta),
        )
    )
    answers = []
    said: dict[str | Message, None] = {}
    for i in range(samples):
        request.progress(f"asking sample {i + 1} of {samples}", i / samples)
        of_sample = replace(request, epsilon=within, delta=delta, remark=said.setdefault)
        answers.append(query.ask(curator.subsample(rate), of_sample))
    for text in said:  # remarks that the samples share are made once
        request.remark(text)
    together = add_answers(answers)
    # Whole numbers of which each is right on average: what rounding alone did would take all rare variants away.
    scaled = together.counts / (samples * float(rate))
    up = generator(curator.randomness).random(len(scaled)) < scaled - np.floor(scaled)
    return together.with_counts(np.floor(scaled).astype(np.int64) + up)


# As published --------------------------------------------------------------------------------------------------------


def _noise_scale(request: Request, settings: LibraSettings, rate: Fraction, lots: int) -> float:
    """Return the scale of all noise, at least the accountant's, and remark on it."""
    epsilon, delta, alpha, q = float(request.epsilon), float(request.delta), settings.alpha, float(rate)
    least = least_scale(epsilon, delta, q, lots, alpha)
    if least is None:
        raise ParameterError(
            "libra-epsilon-out-of-reach" if alpha is None else "libra-alpha-out-of-reach",
            parameter="epsilon" if alpha is None else "alpha",
            epsilon=epsilon,
            lots=lots,
            delta=delta,
            alpha=alpha,
        )
    needed, order = least
    scale = max(PUBLISHED_SCALE, needed) if settings.b is None else settings.b
    costs = {a: accounted(scale, q, lots, a, delta) for a in {order, *range(2, MOST_ORDER + 1)}}
    if scale < needed:
        cost = costs[order]
        raise ParameterError(
            "libra-noise-too-small", parameter="b", scale=scale, accounted=cost, epsilon=epsilon, needed=needed
        )
    if alpha is None:  # the order that gives the least epsilon at this scale
        order = min(range(2, MOST_ORDER + 1), key=costs.__getitem__)
    request.remark(
        Message(
            "libra-accounted-epsilon",
            scale=scale,
            lots=lots,
            order=order,
            lots_2=lots * renyi_of_sample(order, scale, q),
            accounted=costs[order],
            delta=delta,
        )
    )
    return scale


def _as_published(curator: Curator, request: Request, settings: LibraSettings, rate: Fraction) -> EventLog:
    lots = max(1, round(1 / rate))
    scale = _noise_scale(request, settings, rate, lots)
    variants = curator.peek("libra-clipped-by-exact-counts")
    curator.peek("libra-samples-with-replacement")
    log = curator.peek_log("libra-amun-within-samples")
    missing = log.events.column(TIMESTAMP).null_count
    if missing:
        raise InputError("libra-timestamps-missing", path=log.source, null_count=missing)
    rng = generator(curator.randomness)
    threshold = round(scale * math.log(2 * len(variants) / float(request.delta)))
    clipped = log.only(_frequent_cases(log, curator.domain, threshold))
    if clipped.cases.num_rows == 0:
        request.remark(Message("libra-nothing-after-clipping", threshold=threshold))
    found: list[tuple[Sequences, IntArray]] = []
    size = int(rate * clipped.cases.num_rows)
    for i in range(lots if size else 0):
        request.progress(f"lot {i + 1} of {lots}", i / lots)
        drawn = np.unique(rng.integers(0, clipped.cases.num_rows, size))
        found += _lot(curator, clipped.only(drawn), scale, settings.information_minutes, rng)
    return assemble_log(_join_lots(found), Metadata())


def _frequent_cases(log: EventLog, domain: Domain, threshold: int) -> IntArray:
    """Return the cases with events whose variant has at least ``threshold`` cases."""
    variants = domain.fit(log.variants)
    frequent = {s for s, n in variants.to_dict().items() if n >= threshold and s}
    names = log.events.column("concept:name").to_pylist()
    bounds = log.offsets.tolist()
    public = None if domain.alphabet is None else set(domain.alphabet)
    kept = []
    for case, (a, z) in enumerate(itertools.pairwise(bounds)):
        trace = tuple(name for name in names[a:z] if public is None or name in public)[: domain.longest]
        if trace in frequent:
            kept.append(case)
    return np.array(kept, dtype=np.int64)


def _lot(
    curator: Curator, sample: EventLog, scale: float, minutes: float, rng: np.random.Generator
) -> list[tuple[Sequences, IntArray]]:
    """Return a sample with Amun's noise, reduced to the cases that bring news.
    The noise is on its transitions and times."""
    log, frame, _, _ = annotated(sample, curator.domain.fit(sample.variants), curator.domain)
    needed = discrete_laplace(1 / Fraction(str(scale)), len(log.automaton), curator.randomness)
    copies = copies_of_cases(log, sampled_counts(log, np.where(log.contingency > 0, needed, 0), rng), rng)
    if not copies.any():
        return []
    scales = np.where(log.opens, scale * _MICROSECONDS["day"], scale * _MICROSECONDS["minute"])
    cases, times = noisy_cases(log, copies, scales, frame, curator.randomness)
    kept = informative(cases, times, minutes, rng)
    return [(cases.take(kept), times[rows_of(cases.offsets, kept)[0]])]


def _join_lots(lots: list[tuple[Sequences, IntArray]]) -> Details:
    """Return all lots as one log."""
    coding: dict[str, int] = {}
    codes, lengths, times = [], [], []
    for cases, at in lots:
        recode = np.array([coding.setdefault(label, len(coding)) for label in cases.labels], dtype=np.int32)
        codes.append(recode[cases.codes])
        lengths.append(cases.lengths)
        times.append(at)
    if not lots:
        return Details(Sequences((), np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return Details(Sequences(tuple(coding), np.concatenate(codes), offsets), np.concatenate(times))


LIBRA = our_method(
    "libra",
    libra,
    LibraSettings,
    releases=WholeLog(),
    budget=DeltaOptional(of_use=lambda settings: True, buys="frequent real variants can be added"),
    needs=needs_of_query,
)

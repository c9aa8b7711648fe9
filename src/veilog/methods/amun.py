"""Amun: event logs with timestamps under a guessing advantage, as published only.

Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (Information Systems, 2023),
Algorithm 1. No differential privacy of a case follows. The set of variants is released as it is, the epsilons depend on
the raw values, and filtering removes cases by them; see docs/methods/amun.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods._events.assemble import Details, assemble_log
from veilog.methods._events.attributes.synthesis import ReleasedColumns
from veilog.methods._sampling import (
    AnnotatedLog,
    annotated,
    copies_of_cases,
    noisy_cases,
    program_cases,
    program_counts,
    sampled_counts,
)
from veilog.methods.method import NoEpsilon, Request, WholeLog, our_method
from veilog.methods.settings import Range, Settings
from veilog.privacy.account.guarantee import Statement
from veilog.privacy.account.guessing_advantage import epsilon_of, parse_advantage
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.intervals import rational

_OF_PAPER = ("start_precision", "duration_precision", "prior_knowledge")
"""Settings that the authors' program fixes."""


@dataclass(frozen=True, kw_only=True)
class AmunSettings(Settings):
    """Settings of Amun."""

    guessing_advantage: Annotated[
        float, "by how much a guess may become more probable, between 0 and 1", Range(1e-6, 1 - 1e-6)
    ] = 0.2
    mode: Annotated[
        Literal["sampling", "filtering", "oversampling"],
        "replicate and delete cases; filter risky cases before that; or only replicate",
    ] = "sampling"
    start_precision: Annotated[float, "days within which a guess of a case's start is right", Range(1e-6, 36_525)] = 1.0
    duration_precision: Annotated[float, "seconds within which a guess of a step's time is right", Range(1e-6, 1e9)] = (
        10.0
    )
    prior_knowledge: Annotated[
        Literal["example", "equation"],
        "the prior of a transition's smallest times: as in the paper's example, or by its equation (1), larger",
    ] = "example"
    settings: Annotated[
        Literal["paper", "program"], "as published: settings as the paper has them, or its authors' program"
    ] = "paper"
    divisor: Annotated[
        int,
        "number that divides all epsilons, such as the length of the longest case (Propositions A.3 and A.7)",
        Range(1, 10_000),
    ] = 1
    epsilons: Annotated[
        bool, "write the epsilons of events and cases into the log, as the paper does; they reveal raw times"
    ] = False


def amun(curator: Curator, request: Request, settings: AmunSettings) -> EventLog:
    """Run Algorithm 1 by the paper's lines; the unit is one case, nothing is charged."""
    changed = [name for name in _OF_PAPER if getattr(settings, name) != getattr(AmunSettings(), name)]
    if settings.settings == "program" and changed:
        raise ParameterError("amun-setting-fixed", parameter=changed[0], changed=changed[0])
    mode, program = settings.mode, settings.settings == "program"
    advantage = float(parse_advantage(settings.guessing_advantage))
    raw, variants = _read_raw(curator, settings, advantage)
    source = curator.randomness
    rng = noise.generator(source)

    # 3: state annotation
    request.progress("annotating events with transitions", None)
    log, frame, empty, backwards = annotated(raw, variants, curator.domain)
    if empty:
        code = "amun-one-case-without-events" if empty == 1 else "amun-cases-without-events"
        request.remark(Message(code, empty=empty))
    if backwards:
        code = "amun-one-event-backwards" if backwards == 1 else "amun-events-backwards"
        request.remark(Message(code, backwards=backwards))
    # 4: prior knowledge
    request.progress("estimating prior knowledge", None)
    knowledge = _knowledge_by(settings, advantage, log)
    known = knowledge(log)
    # 5: case filtering, then the priors of what is left
    if mode == "filtering":
        log = _filter_cases(log, _risky(log, known.priors, advantage, program), advantage, request)
        known = knowledge(log)
    # 6: epsilons
    of_times = program_epsilons(known.priors, log.opens, advantage) if program else epsilons_of(known.priors, advantage)
    epsilons = of_times / settings.divisor
    smaller = mode == "oversampling" and not program
    epsilon_d = Fraction(oversampling_epsilon(advantage)) if smaller else epsilon_of(settings.guessing_advantage)
    epsilon_d /= settings.divisor
    # 7 to 25: noise on the counts of transitions, as cases that are replicated or deleted
    request.progress("sampling cases", None)
    copies = copies_of_cases(log, _sample_variants(log, epsilon_d, mode == "oversampling", program, source, rng), rng)
    if not copies.any():
        raise ParameterError("amun-all-cases-deleted", parameter="mode")
    # 26 and 27: a replicated case shares its epsilon among its copies; noise on times; compression
    request.progress("adding noise to times", None)
    scales = known.ranges / epsilons
    if program:
        cases, times = program_cases(log, copies, scales, source)
    else:
        cases, times = noisy_cases(log, copies, scales, frame, source)
    columns = _columns(log, copies, epsilons, float(epsilon_d), program, request)
    return assemble_log(Details(cases, times, columns) if settings.epsilons else Details(cases, times), Metadata())


def _read_raw(curator: Curator, settings: AmunSettings, advantage: float) -> tuple[EventLog, Variants]:
    """Return the raw log and its variants, and record why no guarantee is derived.
    The statement of the paper is recorded in its place."""
    variants = curator.peek("amun-variants-of-log")
    raw = curator.peek_log("amun-noise-by-raw-values")
    if settings.mode == "filtering":
        curator.peek("amun-filtering-by-raw-values")
    if settings.epsilons:
        curator.peek("amun-epsilons-of-raw-values")
    if settings.settings == "paper":
        curator.state(_statement(advantage, settings.start_precision, settings.duration_precision))
    else:
        curator.peek("amun-program-departs")
    return raw, variants


def _knowledge_by(settings: AmunSettings, advantage: float, whole: AnnotatedLog) -> Callable[[AnnotatedLog], Priors]:
    """Return what estimates the priors of a log, or of what filtering leaves of it."""
    if settings.settings == "program":
        ranges = program_ranges(whole)
        return lambda log: program_knowledge(log, advantage, ranges)
    precision = Precision.of(settings.start_precision, settings.duration_precision)
    return lambda log: prior_knowledge(log, advantage, precision, clamped=settings.prior_knowledge == "example")


def _sample_variants(
    log: AnnotatedLog,
    epsilon: Fraction,
    replicate: bool,
    program: bool,
    source: noise.Randomness,
    rng: np.random.Generator,
) -> IntArray:
    """Return how many cases each variant has after sampling."""
    size = len(log.automaton)
    if program:  # a Laplace number rounded up, or, with replicate, its absolute value
        floor = noise.geometric(epsilon, size, source)
        up = replicate | noise.bernoulli(rational(Fraction(1, 2)), size, source)
        needed = np.where(log.contingency > 0, np.where(up, floor + 1, -floor), 0)
        return program_counts(log, needed, rng, replicate=replicate)
    needed = noise.discrete_laplace(epsilon, size, source)
    needed = np.where(log.contingency > 0, np.abs(needed) if replicate else needed, 0)
    return sampled_counts(log, needed, rng)


def _columns(
    log: AnnotatedLog, copies: IntArray, epsilons: FloatArray, of_counts: float, program: bool, request: Request
) -> ReleasedColumns:
    """Return the paper's attributes for the epsilons, and remark on them.
    The copies of a case share its epsilons, but for the program's starts."""
    cases, rows, begins = log.copied(copies)
    of_events = epsilons[rows] / np.where(program & log.opens[rows], 1, np.repeat(copies[cases], np.diff(begins)))
    request.remark(
        Message(
            "amun-epsilons-of-times",
            mean=of_events.mean(),
            min=of_events.min(),
            max=of_events.max(),
            of_counts=of_counts,
        )
    )
    return ReleasedColumns(
        events={"epsilon_per_event": pa.array(of_events)},
        cases={"epsilon_per_trace": pa.array(np.full(len(cases), of_counts))},
    )


def _filter_cases(log: AnnotatedLog, risky: BoolArray, advantage: float, request: Request) -> AnnotatedLog:
    """Return the log without cases that have a time too well known beforehand."""
    kept = np.flatnonzero(~risky)
    request.remark(Message("amun-cases-kept", kept=len(kept), cases=len(log), advantage=advantage))
    if not len(kept):
        raise ParameterError("amun-all-cases-filtered", parameter="guessing_advantage", advantage=advantage)
    return log.only(kept)


def _risky(log: AnnotatedLog, priors: FloatArray, advantage: float, program: bool) -> BoolArray:
    """Return for each case whether one of its times is known too well.
    The program looks at steps alone. Where that takes every case, it takes those with a step that is certain."""
    known = too_well_known(priors, advantage) & ~(program & log.opens)
    risky: BoolArray = np.bincount(log.owners[known], minlength=len(log)) > 0
    if program and risky.all():
        risky = np.bincount(log.owners[(priors == 1) & ~log.opens], minlength=len(log)) > 0
    return risky


def _statement(advantage: float, days: float, seconds: float) -> Statement:
    code = "guessing-bounded-within-a-day" if days == 1 else "guessing-bounded"
    return Statement(
        model="guessing advantage",
        holds=Message(code, advantage=advantage, days=days, seconds=seconds),
        checked=False,
        does_not_protect=Message("guessing-does-not-protect"),
    )


AMUN = our_method("amun", amun, AmunSettings, releases=WholeLog(), budget=NoEpsilon())


# Amun's prior knowledge and epsilons: what an attacker can guess before the release, and how much noise keeps the
# guess from getting better by more than the guessing advantage.
#
# Elkoumy, Pankova, Dumas, "Differentially private release of event logs for process mining" (2023), sections 3.3 and
# 3.5, Propositions 3.1, A.5 and A.6. For a prior P and a guessing advantage d the largest epsilon that keeps the
# posterior, 1 / (1 + exp(-epsilon) (1 - P) / P), below P + d is
#
#     epsilon = -ln( P / (1 - P) * (1 / (d + P) - 1) ),          smallest at P = (1 - d) / 2.

_DAY = 86_400_000_000
_MINUTE = 60_000_000
_PROGRAM_PRECISION = 10
"""Minutes."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Precision:
    """Largest error of a right guess: of a case's start, and of times between events.

    Both are in microseconds.
    """

    start: int
    duration: int

    @staticmethod
    def of(days: float, seconds: float) -> Precision:
        return Precision(max(1, round(days * _DAY)), max(1, round(seconds * 1_000_000)))


@dataclass(frozen=True, eq=False)
class Priors:
    """Prior of each event, and the range that scales its noise.

    The first event of a case stands for its start.
    """

    priors: FloatArray
    ranges: IntArray


def prior_knowledge(log: AnnotatedLog, advantage: float, precision: Precision, *, clamped: bool = True) -> Priors:
    """Return the priors and ranges of Section 3.3.

    Case starts are one group, the times between events a group for each transition.

    Start: the share of cases that start in the same ``precision.start`` (one day, in UTC). Time between events:
    F(min(x + p, max)) - F(max(x - p, min)) with the group's empirical distribution function F; in microseconds, so that
    no rounding decides what is equal. That is the worked example's rule; equation (1) as printed is F(x + p) - F(x - p)
    with F 0 below the smallest value: not ``clamped``. A group whose values are all equal has the worst-case prior
    (1 - d) / 2.

    The range is max - min of the group. Where that is 0 the noise would be 0 as well; such a group takes its value as
    the range (a time between 0 and this, as in Proposition A.7), and no range is below the precision.
    """
    opens, starts = log.opens, log.starts
    priors = np.empty(len(log.transitions))
    ranges = np.empty(len(log.transitions), dtype=np.int64)
    first = int(starts.min()) // _DAY * _DAY
    _, group, size = np.unique((starts - first) // precision.start, return_inverse=True, return_counts=True)
    priors[opens], ranges[opens] = size[group] / len(starts), max(int(np.ptp(starts)), precision.start)
    groups, values = log.transitions[~opens], log.durations[~opens]
    if len(groups):
        priors[~opens], ranges[~opens] = _step_priors(groups, values, precision.duration, advantage, clamped)
    return Priors(priors, ranges)


def _step_priors(
    groups: IntArray, values: IntArray, precision: int, advantage: float, clamped: bool
) -> tuple[FloatArray, IntArray]:
    """Return the priors and ranges of times between events in these transitions."""
    distinct, place = np.unique(values, return_inverse=True)
    number = len(distinct)
    keys = groups * number + place
    order = np.argsort(keys, kind="stable")
    keys, sorted_groups = keys[order], groups[order]
    begins = np.flatnonzero(np.append(True, np.diff(sorted_groups) != 0))
    sizes = np.diff(np.append(begins, len(groups)))
    group = np.repeat(np.arange(len(begins)), sizes)
    value = values[order]
    lowest, highest = value[begins][group], value[begins + sizes - 1][group]
    upper = np.searchsorted(distinct, value + precision, side="right") - 1
    lower = np.searchsorted(distinct, np.maximum(value - precision, lowest), side="right") - 1
    base = sorted_groups * number
    below = np.searchsorted(keys, base + lower, side="right")
    if not clamped:
        below = np.where(value - precision < lowest, begins[group], below)
    inside = np.searchsorted(keys, base + upper, side="right") - below
    constant = lowest == highest
    priors, ranges = np.empty(len(values)), np.empty(len(values), dtype=np.int64)
    priors[order] = np.where(constant, (1 - advantage) / 2, inside / sizes[group])
    ranges[order] = np.maximum(np.where(constant, highest, highest - lowest), precision)
    return priors, ranges


def too_well_known(priors: FloatArray, advantage: float) -> BoolArray:
    """Return where P + d >= 1, so that no epsilon follows (Section 3.4).

    Filtering removes the whole case.
    """
    beyond: BoolArray = priors + advantage >= 1 - _ROUNDING
    return beyond


def epsilons_of(priors: FloatArray, advantage: float) -> FloatArray:
    """Return the epsilons of Proposition 3.1, for values scaled to a range of 1.

    Where the formula gives no number (P + d >= 1) or an infinite one, which is no noise at all (P = 0: the smallest
    value of its group with none near it), the worst-case prior takes its place: the most noise that any prior asks for.
    """
    unusable = too_well_known(priors, advantage) | (priors <= 0)
    prior = np.where(unusable, (1 - advantage) / 2, priors)
    epsilons: FloatArray = -np.log(prior / (1 - prior) * (1 / (advantage + prior) - 1))
    return epsilons


def oversampling_epsilon(advantage: float) -> float:
    """Return the epsilon of one count when noise can only be added (Proposition A.6).

    It is -2 ln u with 2 u^3 = (1 - d) (1 + u). The number under the paper's square root is (1 - d)^2 (2 d + 25),
    written so here because it cancels near d = 1. (For A.5, noise of both signs, the epsilon is that of the worst-case
    prior: ``veilog.privacy.account.guessing_advantage.epsilon_of``.)
    """
    c = 6 ** (1 / 3)
    b = ((1 - advantage) * (math.sqrt(3) * math.sqrt(2 * advantage + 25) + 9)) ** (1 / 3)
    return -2 * math.log(b / c**2 + (1 - advantage) / (c * b))


def program_ranges(log: AnnotatedLog) -> tuple[IntArray, IntArray]:
    """Return the smallest and largest time between events of each transition.

    They are whole minutes, as the authors' program counts them.
    """
    minutes = log.durations // _MINUTE
    lowest = np.full(len(log.automaton), np.iinfo(np.int64).max)
    highest = np.zeros(len(log.automaton), dtype=np.int64)
    np.minimum.at(lowest, log.transitions, minutes)
    np.maximum.at(highest, log.transitions, minutes)
    return lowest, highest


def program_knowledge(log: AnnotatedLog, advantage: float, ranges: tuple[IntArray, IntArray]) -> Priors:
    """Return the priors and ranges of the authors' program.

    A guess of a step is right within ten minutes, one of a start on its day. The ``ranges`` of steps are those of the
    log before filtering. A step of constant time has the worst-case prior, and a range of 0: it gets no noise.
    """
    opens, days = log.opens, (log.starts - log.starts.min()) // _DAY
    values = log.durations // _MINUTE
    values[opens] = days
    lowest, highest = (
        np.where(opens, end, found[log.transitions]) for found, end in zip(ranges, (0, days.max()), strict=True)
    )
    above = np.where(opens, values, np.minimum(values + _PROGRAM_PRECISION, highest))
    below = np.where(opens, values - 1, np.maximum(values - _PROGRAM_PRECISION, lowest))
    width = int(highest.max()) + 2
    groups = np.where(opens, len(log.automaton), log.transitions) * width
    keys = np.sort(groups + values)
    inside = np.searchsorted(keys, groups + above, side="right") - np.searchsorted(keys, groups + below, side="right")
    sizes = np.searchsorted(keys, groups + width) - np.searchsorted(keys, groups)
    priors = np.where((lowest == highest) & ~opens, (1 - advantage) / 2, inside / sizes)
    return Priors(priors, (highest - lowest) * np.where(opens, _DAY, _MINUTE))


def program_epsilons(priors: FloatArray, opens: BoolArray, advantage: float) -> FloatArray:
    """Return Proposition 3.1's epsilons as the program completes them.

    Without a number it is 0.7 (of a start 0.1), and 10 if infinite.
    """
    beyond = np.where(opens, 0.1, 0.7)
    epsilons = np.where(too_well_known(priors, advantage), beyond, epsilons_of(priors, advantage))
    return np.where(priors <= 0, 10.0, epsilons)

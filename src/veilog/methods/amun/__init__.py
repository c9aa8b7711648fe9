"""Amun: event logs with timestamps under a guessing advantage, by Elkoumy, Pankova, Dumas, "Differentially private
release of event logs for process mining" (Information Systems, 2023), Algorithm 1.

As published only: no differential privacy of a case follows. Which variants occur is released as it is, the epsilons
depend on the raw values, and filtering takes cases out by them; see docs/methods/amun.md.
"""

from __future__ import annotations

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
from veilog.methods._events.assemble import Details, assembled
from veilog.methods._events.attributes.synthesis import ReleasedColumns
from veilog.methods._sampling.cases import copies_of_cases, program_counts, sampled_counts
from veilog.methods._sampling.times import noisy_cases, program_cases
from veilog.methods._sampling.transitions import AnnotatedLog, annotated
from veilog.methods.amun.priors import (
    Precision,
    Priors,
    epsilons_of,
    oversampling_epsilon,
    prior_knowledge,
    program_epsilons,
    program_knowledge,
    program_ranges,
    too_well_known,
)
from veilog.methods.method import NoEpsilon, Request, WholeLog, our_method
from veilog.methods.settings import Range, Settings
from veilog.privacy.account.guarantee import Statement
from veilog.privacy.account.guessing import epsilon_of, parse_advantage
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.intervals import rational

__all__ = ["AMUN", "AmunSettings", "amun"]

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
    """Algorithm 1, in the words of the paper's lines; the case's unit is one case, and nothing is charged."""
    changed = [name for name in _OF_PAPER if getattr(settings, name) != getattr(AmunSettings(), name)]
    if settings.settings == "program" and changed:
        raise ParameterError("amun-setting-fixed", parameter=changed[0], changed=changed[0])
    mode, program = settings.mode, settings.settings == "program"
    advantage = float(parse_advantage(settings.guessing_advantage))
    raw, variants = _peeked(curator, settings, advantage)
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
        log = _filtered(log, _risky(log, known.priors, advantage, program), advantage, request)
        known = knowledge(log)
    # 6: epsilons
    of_times = program_epsilons(known.priors, log.opens, advantage) if program else epsilons_of(known.priors, advantage)
    epsilons = of_times / settings.divisor
    smaller = mode == "oversampling" and not program
    epsilon_d = Fraction(oversampling_epsilon(advantage)) if smaller else epsilon_of(settings.guessing_advantage)
    epsilon_d /= settings.divisor
    # 7 to 25: noise on the counts of transitions, as cases that are replicated or deleted
    request.progress("sampling cases", None)
    copies = copies_of_cases(log, _left(log, epsilon_d, mode == "oversampling", program, source, rng), rng)
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
    return assembled(Details(cases, times, columns) if settings.epsilons else Details(cases, times), Metadata())


def _peeked(curator: Curator, settings: AmunSettings, advantage: float) -> tuple[EventLog, Variants]:
    """Return the raw log and its variants; say why nothing can be derived, and what the paper states instead."""
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


def _left(
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
    """Return the paper's attributes for the epsilons; print them for the data owner. The copies of a case share its
    epsilons, but for the program's starts."""
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


def _filtered(log: AnnotatedLog, risky: BoolArray, advantage: float, request: Request) -> AnnotatedLog:
    """The log without cases in which there is a time that could be guessed too well beforehand."""
    kept = np.flatnonzero(~risky)
    request.remark(Message("amun-cases-kept", kept=len(kept), cases=len(log), advantage=advantage))
    if not len(kept):
        raise ParameterError("amun-all-cases-filtered", parameter="guessing_advantage", advantage=advantage)
    return log.only(kept)


def _risky(log: AnnotatedLog, priors: FloatArray, advantage: float, program: bool) -> BoolArray:
    """Return for each case whether one of its times is known too well.

    The program looks at steps alone. Where that takes every case, it takes those with a step that is certain.
    """
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

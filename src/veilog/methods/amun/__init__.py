"""Amun: event logs with timestamps under a guessing advantage, by Elkoumy, Pankova, Dumas, "Differentially private
release of event logs for process mining" (Information Systems, 2023), Algorithm 1.

As published only: no differential privacy of a case follows. Which variants occur is released as it is, the epsilons
depend on the raw values, and filtering takes cases out by them; see docs/methods/amun.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from veilog._language import counted, gettext_noop
from veilog._typing import BoolArray, FloatArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.metadata import Metadata
from veilog.methods._events.assemble import Details, assembled
from veilog.methods._sampling.cases import copies_of_cases, sampled_counts
from veilog.methods._sampling.times import noisy_cases
from veilog.methods._sampling.transitions import AnnotatedLog, annotated
from veilog.methods.amun.priors import (
    Precision,
    epsilons_of,
    oversampling_epsilon,
    prior_knowledge,
    too_well_known,
)
from veilog.methods.method import Method, NoEpsilon, Request, WholeLog
from veilog.methods.settings import Bounds, Settings
from veilog.privacy.account.guarantee import Statement
from veilog.privacy.account.guessing import epsilon_of, parse_advantage
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise

__all__ = ["AMUN", "AmunSettings", "amun"]


@dataclass(frozen=True, kw_only=True)
class AmunSettings(Settings):
    """Settings of Amun."""

    guessing_advantage: Annotated[
        float, "by how much a guess may become more probable, between 0 and 1", Bounds(1e-6, 1 - 1e-6)
    ] = 0.2
    mode: Annotated[
        Literal["sampling", "filtering", "oversampling"],
        "replicate and delete cases; filter risky cases before that; or only replicate",
    ] = "sampling"
    start_precision: Annotated[float, "days within which a guess of a case's start is right", Bounds(1e-6, 36_525)] = (
        1.0
    )
    duration_precision: Annotated[
        float, "seconds within which a guess of a step's time is right", Bounds(1e-6, 1e9)
    ] = 10.0
    prior: Annotated[
        Literal["example", "equation"],
        "the prior of a transition's smallest times: as in the paper's example, or by its equation (1), larger",
    ] = "example"


def amun(curator: Curator, request: Request, settings: AmunSettings) -> EventLog:
    """Algorithm 1, in the words of the paper's lines; the case's unit is one case, and nothing is charged."""
    mode = settings.mode
    advantage = float(parse_advantage(settings.guessing_advantage))
    worst = epsilon_of(settings.guessing_advantage)
    variants = curator.peek(
        gettext_noop("every released variant is one of the log's, so that it occurs there is certain (R1)")
    )
    raw = curator.peek_log(gettext_noop("the noise of every time is scaled by the raw values of its transition"))
    if mode == "filtering":
        curator.peek(gettext_noop("filtering takes out whole cases by their raw values"))
    precision = Precision.of(settings.start_precision, settings.duration_precision)
    clamped = settings.prior == "example"
    curator.state(_statement(advantage, settings.start_precision, settings.duration_precision))
    source = curator.randomness
    rng = noise.generator(source)

    # 3: state annotation
    request.progress("annotating events with transitions", None)
    log, frame, empty, backwards = annotated(raw, variants, curator.domain)
    if empty:
        request.remark(
            "1 case without events is left out: it has no time and no transition."
            if empty == 1
            else f"{empty:,} cases without events are left out: they have no time and no transition."
        )
    if backwards:
        request.remark(
            "1 event is earlier than the event before it; its time since it counts as 0."
            if backwards == 1
            else f"{backwards:,} events are earlier than the event before them; their time since it counts as 0."
        )
    # 4: prior knowledge
    request.progress("estimating prior knowledge", None)
    known = prior_knowledge(log, advantage, precision, clamped=clamped)
    # 5: case filtering, then the priors of what is left
    if mode == "filtering":
        log = _filtered(log, known.priors, advantage, request)
        known = prior_knowledge(log, advantage, precision, clamped=clamped)
    # 6: epsilons
    epsilon_d = Fraction(oversampling_epsilon(advantage)) if mode == "oversampling" else worst
    # 7 to 25: noise on the counts of transitions, as cases that are replicated or deleted
    request.progress("sampling cases", None)
    needed = noise.discrete_laplace(epsilon_d, len(log.automaton), source)
    needed = np.where(log.contingency > 0, np.abs(needed) if mode == "oversampling" else needed, 0)
    copies = copies_of_cases(log, sampled_counts(log, needed, rng), rng)
    if not copies.any():
        raise ParameterError(
            "The noise has deleted every case, so there is nothing to release.",
            parameter="mode",
            advice="So small a log takes mode oversampling, which deletes nothing.",
        )
    # 26 and 27: a replicated case shares its epsilon among its copies; noise on times; compression
    request.progress("adding noise to times", None)
    cases, times = noisy_cases(log, copies, known.ranges / epsilons_of(known.priors, advantage), frame, source)
    return assembled(Details(cases, times), Metadata())


def _filtered(log: AnnotatedLog, priors: FloatArray, advantage: float, request: Request) -> AnnotatedLog:
    """The log without cases in which there is a time that could be guessed too well beforehand."""
    kept = np.flatnonzero(~_risky(log, priors, advantage))
    told = f"Filtering keeps {len(kept):,} of {counted(len(log), 'case')} at a guessing advantage of {advantage:g}."
    request.progress(told, None)
    request.remark(told)
    if not len(kept):
        raise ParameterError(
            f"At a guessing advantage of {advantage:g} filtering takes out every case: in each "
            "there is a time that an attacker could guess too well beforehand.",
            parameter="guessing_advantage",
            advice="Take a smaller one, or mode sampling, which keeps such cases and gives their times more noise.",
        )
    return log.only(kept)


def _risky(log: AnnotatedLog, priors: FloatArray, advantage: float) -> BoolArray:
    """Return for each case whether one of its times is known too well."""
    risky: BoolArray = np.bincount(log.owners[too_well_known(priors, advantage)], minlength=len(log)) > 0
    return risky


def _statement(advantage: float, start_precision: float, duration_precision: float) -> Statement:
    days = "1 day" if start_precision == 1 else f"{start_precision:g} days"
    return Statement(
        model="guessing advantage",
        holds=(
            "The paper argues (Propositions 3.1, A.5 and A.7; veilog has not proved it) that an attacker's chance to "
            f"guess right about one individual rises by at most {advantage:g}, for one question alone: whether the "
            f"case took one given transition, when it started (within {days}), or how long one of its steps took "
            f"(within {duration_precision:g} seconds). Its attacker knows all other cases; activities, "
            "variants and the first and last time of the log count as public, cases and the times within a case as "
            "independent, and a prior as the share of the log's own values that are as near."
        ),
        checked=False,
        does_not_protect=(
            "Does not protect what several counts or times of the same case say together, whether a case with a rare "
            "variant is in the log at all, people with several cases, or logs released more than once."
        ),
    )


AMUN = Method(
    name="amun",
    title="The log itself, with cases copied and times blurred",
    advice=(
        "Only as its paper has it. It bounds one kind of guess in the paper's own model; it shows real paths as they "
        "are."
    ),
    paper="Elkoumy, Pankova, Dumas: Differentially private release of event logs for process mining (2023)",
    releases=WholeLog(),
    budget=NoEpsilon(),
    guarantee="there is none: a guessing advantage is no property of a mechanism that peeks",
    as_published="none as differential privacy of a case; a bound on the guessing advantage under its attack model",
    run=amun,
    settings=AmunSettings,
    certified=False,
)

"""Audits of a method: many runs on neighbouring logs bound its epsilon from below.

All attempts are tried shortly, and those that show most longer, until one is left. Then the event to look for is
chosen. Fresh runs prove a bound through that event. So the bound holds at the stated confidence, whatever was tried
before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from veilog._process import check_processes, machine_cores, main_is_guarded, pool
from veilog._typing import FloatArray
from veilog.audits.attacks import (
    ALPHABET,
    LONGEST,
    MANY_CASES,
    PERSON,
    WORST_ALPHABET,
    WORST_LONGEST,
    Attempt,
    Score,
    attempts,
    attempts_on,
    worst_cases,
)
from veilog.audits.bounds import (
    AuditResult,
    Broken,
    OutOfScopeResult,
    ReleaseEvent,
    Tally,
    choose_event,
    runs_to_see,
    tally,
)
from veilog.audits.twin_curator import Recorder
from veilog.audits.whitebox import WHITE_RUNS, audit_inside
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.files import AnyLog, as_log
from veilog.logs.variants import Variants
from veilog.methods import Method, method_named
from veilog.methods.method import Progress
from veilog.privacy.account.budgets import Number, parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.account.guessing_advantage import advantage_of
from veilog.privacy.unit import ONE_CASE, Unit
from veilog.releasing.keywords import Keywords
from veilog.releasing.request import ReleaseRequest, checked_seed, plan
from veilog.releasing.run import run_plan

Log = Variants | EventLog
Run = Callable[[Attempt, bool, Sequence[int]], FloatArray]
"""``run(attempt, with_, seeds)``: releases of the log with or without the case, a row of scores for each seed."""

RUNS, _MOST_RUNS = 20_000, 10**9
"""Default number of runs on each log, and the largest."""
_ROUNDS = ((0.1, 8, 0.8), (0.1, 3, 0.95), (0.1, 1, 0.99), (0.2, 1, 0.999))
"""Rounds of trials: share of the runs, attempts that go on, and confidence in what an attempt seems to show.

Early rounds have few runs and must not overlook a rare event. In later ones many events must not pass for one.
"""
_PROVING = 0.5
"""Share of the runs that prove."""
_BEYOND = 0.2
"""Runs on logs that a guarantee does not cover, as a share of the others."""


def audit(
    method: str | ReleaseRequest,
    *,
    white_box: bool = False,
    runs: int | None = None,
    confidence: float = 0.99,
    log: AnyLog | None = None,
    pairs: Sequence[Attempt] | None = None,
    person_cases: int | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[Keywords],
) -> AuditResult:
    """Attack a method, or a :class:`ReleaseRequest`, by releases of neighbouring logs.

    By default an attacker sees releases, 20,000 of each log. With ``white_box`` the attacker sees every noisy answer,
    of logs that differ as much as they can, and 4,000 are enough; see :mod:`veilog.audits.whitebox`.

    ``domain`` and ``activities`` are those of the releases; undeclared facts of the synthetic logs are filled in. Logs
    outside the guarantee are attacked apart, with fewer runs. A condition does not hold for them, or a person has more
    cases than it protects.

    Args:
        method: Name of a method, with a budget in ``options``, or a request.
        white_box: True to let the attacker see every noisy answer.
        runs: Number of releases of each of the two logs.
        confidence: Probability with which the bound is true.
        log: Log for neighbours with and without one of its cases; None for logs made for the purpose.
        pairs: Attempts of your own in place of these.
        person_cases: Number of cases of the added or removed person, whom releases with ``unit`` and ``max_cases``
            protect.
        processes: Number of processes that run releases.
        progress: Function that is called with a text and a fraction.
        **options: Options of the releases; ``seed`` repeats an audit.

    Returns:
        Claimed, derived and audited epsilon, with the event that proves it.

    Raises:
        ParameterError: Options that do not fit each other, or too few runs for the claim.

    """
    runs = (WHITE_RUNS if white_box else RUNS) if runs is None else runs
    seed = options.pop("seed", None)
    epsilon, delta = options.get("epsilon"), options.get("delta", 0)
    _check(runs, confidence, processes, seed)
    planned = _plan_attacked(method, epsilon, delta, options)
    person = _person_cases(person_cases, planned.unit)
    held = None if log is None else as_log(log)
    _check_person(person, planned.unit, held)
    if log is None:
        planned = _declare_facts(planned, white_box=white_box)
    if not pairs:
        made_up = worst_cases(planned.needs_events) if white_box else attempts(planned.needs_events, person)
        pairs = list(made_up if held is None else attempts_on(held))
    derived = run_plan(planned, pairs[0].with_).guarantee
    count = _workers(processes)
    if white_box:
        return audit_inside(planned, pairs, derived, runs, confidence, seed, count, progress)
    nominal = (planned.epsilon, planned.delta) if planned.method.takes_epsilon else _parse_claim(epsilon, delta)
    return _audit_outside(planned, pairs, derived, nominal, runs, confidence, seed, count, progress)


def _plan_attacked(
    method: str | ReleaseRequest, epsilon: Number | None, delta: Number, options: Keywords
) -> ReleaseRequest:
    """Return the request of the attacked releases."""
    if isinstance(method, ReleaseRequest):
        return ReleaseRequest.of(method, "audit", options)
    budget = _budget(method_named(method), epsilon, delta, options)
    return plan(method, **{"allow_no_protection": True, **budget})


def _declare_facts(planned: ReleaseRequest, *, white_box: bool) -> ReleaseRequest:
    """Return the request with the undeclared facts of the synthetic logs filled in."""
    alphabet, longest = (WORST_ALPHABET, WORST_LONGEST) if white_box else (ALPHABET, LONGEST)
    facts = planned.declared
    filled = replace(facts, activities=facts.activities or alphabet, max_length=facts.max_length or longest)
    return planned.declaring(filled)


def _audit_outside(
    planned: ReleaseRequest,
    pairs: Sequence[Attempt],
    derived: Guarantee,
    nominal: tuple[Fraction, Fraction],
    runs: int,
    confidence: float,
    seed: int | None,
    processes: int,
    progress: Progress | None,
) -> AuditResult:
    """Audit the releases of a plan."""
    claim = float(nominal[0]) if derived.epsilon is None else derived.epsilon
    enough = runs_to_see(claim, confidence)
    if _proof_runs(runs) < enough:
        needed = round(enough / _PROVING) + 1
        code = "audit-runs-too-few" if needed <= _MOST_RUNS else "audit-claim-out-of-reach"
        raise ParameterError(code, parameter="runs", runs=runs, claim=claim, needed=needed)
    started = time.perf_counter()
    delta, seeds = float(nominal[1]), np.random.SeedSequence(seed)
    report = progress or (lambda text, fraction: None)
    proofs: list[tuple[Broken | None, Proof]] = []
    with pool(processes) as workers:
        run = Recorder(planned, report, workers, processes).scores
        for breaks, some in _kinds(pairs, derived, planned.unit.most_cases).items():
            number = runs if not proofs else max(round(runs * _BEYOND), min(runs, 2 * enough))
            proofs.append((breaks, audit_runs(run, some, number, delta, confidence, seeds, report)))
            seeds = seeds.spawn(1)[0]
    (breaks, main), *others = proofs
    return AuditResult(
        method=planned.method.name,
        as_published=planned.as_published,
        nominal_epsilon=float(nominal[0]),
        derived_epsilon=derived.epsilon,
        audited_epsilon=main.tally.epsilon,
        delta=delta,
        confidence=confidence,
        attack=main.attempt.attack,
        score=main.score.what,
        tally=main.tally,
        runs=runs,
        tried=tuple(found for _, proof in proofs for found in proof.tried),
        person_cases=main.attempt.cases,
        conditions=derived.conditions,
        breaks=breaks,
        beyond=tuple(
            OutOfScopeResult(code, proof.attempt.attack, proof.score.what, proof.tally, proof.attempt.cases)
            for code, proof in others
            if code is not None
        ),
        seconds=time.perf_counter() - started,
    )


def _parse_claim(epsilon: Number | None, delta: Number) -> tuple[Fraction, Fraction]:
    """Return the claim, where the method itself has no epsilon."""
    return parse_epsilon(0 if epsilon is None else epsilon), parse_delta(delta)


def _person_cases(asked: int | None, unit: Unit) -> int:
    """Return the number of cases of the person by whom logs differ.

    They are more than count where cases are bounded, and as many as allowed where the bound is an assumption.
    """
    if asked is not None or unit is ONE_CASE:
        return 1 if asked is None else asked
    return max(2 * unit.most_cases, MANY_CASES) if unit.column == PERSON else unit.most_cases


def _kinds(pairs: Sequence[Attempt], guarantee: Guarantee, most_cases: int) -> dict[Broken | None, list[Attempt]]:
    """Return the attempts by why the guarantee does not cover them, covered first."""
    codes = {condition.code for condition in guarantee.conditions}
    kinds: dict[Broken | None, list[Attempt]] = {None: []}
    for pair in pairs:
        broken: list[Broken] = sorted(pair.breaks & codes)
        if guarantee.unit == "case" and pair.cases > 1:
            broken.append("unit")
        elif "cases-per-person-bounded" in codes and pair.cases > most_cases:
            broken.append("cases-per-person-bounded")
        kinds.setdefault(broken[0] if broken else None, []).append(pair)
    return {breaks: some for breaks, some in kinds.items() if some}


@dataclass(frozen=True)
class Proof:
    """Finding of an audit: the best attempt, its score and event, and its bound."""

    attempt: Attempt
    score: Score
    tally: Tally
    tried: tuple[tuple[str, float], ...]


def audit_runs(
    run: Run,
    pairs: Sequence[Attempt],
    runs: int,
    delta: float,
    confidence: float,
    seeds: np.random.SeedSequence,
    progress: Progress = lambda text, fraction: None,
) -> Proof:
    """Audit ``run``: try all attempts, choose one and its event, prove on fresh runs."""
    draw = np.random.default_rng(seeds)
    seen = [(np.empty((0, len(pair.scores))), np.empty((0, len(pair.scores)))) for pair in pairs]
    seemed = np.zeros(len(pairs))
    left = list(range(len(pairs)))
    for share, keep, confidence_here in _ROUNDS:
        for i in left:
            progress(f"trying {pairs[i].attack}", None)
            number = max(10, round(runs * share / len(left)))
            seen[i] = (
                np.concatenate([seen[i][0], run(pairs[i], False, _draw_seeds(draw, number))]),
                np.concatenate([seen[i][1], run(pairs[i], True, _draw_seeds(draw, number))]),
            )
            seemed[i] = _choice(*seen[i], delta, confidence_here)[0]
        left = sorted(left, key=lambda i: -seemed[i])[:keep]
    best = pairs[left[0]]
    _, column, event = _choice(*seen[left[0]], delta, _ROUNDS[-1][2])
    number = _proof_runs(runs)
    progress(f"proving: {best.attack}", None)
    without = run(best, False, _draw_seeds(draw, number))[:, column]
    with_ = run(best, True, _draw_seeds(draw, number))[:, column]
    tried = tuple((pair.attack, float(s)) for pair, s in zip(pairs, seemed, strict=True))
    return Proof(best, best.scores[column], tally(event, without, with_, delta, confidence), tried)


def _choice(without: FloatArray, with_: FloatArray, delta: float, confidence: float) -> tuple[float, int, ReleaseEvent]:
    """Return the most that these runs seem to show, with its score and its event."""
    events = [choose_event(without[:, i], with_[:, i], delta, confidence) for i in range(without.shape[1])]
    best = max(range(len(events)), key=lambda i: events[i][1])
    return events[best][1], best, events[best][0]


def _proof_runs(runs: int) -> int:
    """Return the number of runs left for the proof."""
    return max(1, round(runs * _PROVING))


def _draw_seeds(draw: np.random.Generator, number: int) -> list[int]:
    return [int(seed) for seed in draw.integers(0, 2**62, size=number)]


def _check(runs: int, confidence: float, processes: int | None, seed: int | None) -> None:
    if seed is not None:
        checked_seed(seed)
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise ParameterError("audit-runs-not-whole", parameter="runs", runs=runs)
    if runs > _MOST_RUNS:
        raise ParameterError("audit-runs-too-many", parameter="runs", most_runs=_MOST_RUNS, runs=runs)
    if not 0.5 <= confidence < 1:
        raise ParameterError("audit-confidence-out-of-range", parameter="confidence", confidence=confidence)
    if processes is not None:
        check_processes(processes)


def _check_person(person: int, unit: Unit, log: Log | None) -> None:
    if isinstance(person, bool) or not isinstance(person, int) or not 1 <= person <= 1000:
        raise ParameterError("audit-person-cases-invalid", parameter="person_cases", person=person)
    if unit.column not in (None, PERSON):
        raise ParameterError("audit-person-column-other", parameter="unit", person=PERSON, name=unit.column)
    if log is not None and (person > 1 or unit is not ONE_CASE):
        raise ParameterError("audit-log-of-one-case", parameter="log")


def _budget(method: Method, epsilon: Number | None, delta: Number, options: Keywords) -> dict[str, Any]:
    """Return the options of the releases, with the budget that is audited."""
    if method.takes_epsilon:
        return dict(options)
    if any(parameter.name == "guessing_advantage" for parameter in method.parameters):
        advantage = min(float(advantage_of(_parse_claim(epsilon, delta)[0])), 0.999)
        rest = {name: value for name, value in options.items() if name not in ("epsilon", "delta")}
        return {"guessing_advantage": advantage, **rest}
    raise ParameterError("audit-method-without-claim", parameter="method", name=method.name)


def _workers(asked: int | None) -> int:
    """Return the number of processes that run releases.

    New ones read the main script again, so one without a guard gets none.
    """
    guarded = main_is_guarded()
    if asked is None:
        return min(2, machine_cores()) if guarded else 1
    if asked > 1 and not guarded:
        raise ParameterError("audit-processes-rerun-script", parameter="processes")
    return asked

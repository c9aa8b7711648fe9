"""White-box audits: worst-case neighbours, scored by likelihood ratios of answers.

The method runs a few times, whole, on either log of each pair of neighbours. The queries of such a run are then made
again many times, each time to a curator that was opened anew. Each time is scored by the evidence of the answers
(:mod:`veilog.audits.twin_curator`). Some of these times choose the run, the threshold and the slope; all others prove.
Where some queries are refused now and then, those before count. One composition dominates all that is scored
(:mod:`veilog.audits.bounds`).

Two bounds come out of the same runs. One assumes nothing: the exact bounds of Clopper and Pearson on an event, as from
outside. The other compares with the shape of the noise, by an exact test. It is the largest refuted factor: the claim
is that the method reveals no more than its own charges with all epsilons multiplied by that factor. A right method
reaches 1 at most, but for a probability of one minus the confidence.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.special import bdtrc

from veilog._process import pool
from veilog._typing import FloatArray
from veilog.audits.attacks import Attempt
from veilog.audits.bounds import (
    AuditResult,
    Curve,
    Priced,
    Questions,
    ReleaseEvent,
    Tally,
    WhiteBox,
    choose_event,
    curve,
    is_refuted,
    priced,
    runs_to_refute,
    tally,
)
from veilog.audits.twin_curator import AuditRun, RecordedAnswer, RecordedRun, Recorder
from veilog.errors import ParameterError
from veilog.messages import Message
from veilog.methods.method import Progress
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.unit import ONE_CASE
from veilog.releasing.request import ReleaseRequest

_WHOLE = 2
"""Number of whole runs on each log of an attempt, whose queries are tried."""
_ROUNDS = ((40, 5), (150, 1))
"""Rounds of trials: repetitions of a run's queries, and runs that go on."""
_LEAST = 16
"""Least number of runs of an attempt."""
_CHOOSING = 0.1
"""Share of the runs that choose shape, threshold and slope; the others prove."""
WHITE_RUNS = 4_000
"""Default number of runs on each log: enough for every epsilon, not to exceed it."""
_MOST = 1e3
"""Largest evidence: more is as good as certain."""
_MANY = 10**6
"""Number of cases from which runs end after the other attempts' queries."""
_CERTAIN = 4.0
"""Largest weight of one answer while attempts are tried."""
_FACTORS = np.concatenate([[0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.5], 1.5 * 1.5 ** np.arange(1, 7)])
_NEARLY = 0.85
"""Factor from which a right method should be distinguished."""
_IGNORED = 1e-12
_PARTS = np.linspace(0.01, 0.99, 99)
_RARELY = 1e-9
"""Largest probability that a right method has a fault named, for each fault."""


@dataclass(frozen=True)
class WhiteProof:
    """Proof of a white-box audit: attempt, factor, and the tallies of both bounds."""

    attempt: Attempt
    shape: tuple[Questions, ...]
    factor: float
    seen: Tally
    """Event through which the factor was proved; its epsilon is that of the bound that assumes nothing else."""
    free: Tally
    """Event through which most was proved without the shape of the noise."""
    faults: tuple[Message, ...]
    tried: tuple[tuple[str, float], ...]

    @property
    def epsilon(self) -> float:
        """Epsilon of the scored queries, with all epsilons multiplied by the factor."""
        asked = ((part.rate, self.factor * sum(one.epsilon for one in part.asked)) for part in self.shape)
        return sum(epsilon if rate == 1 else math.log1p(rate * math.expm1(epsilon)) for rate, epsilon in asked)


def prove(
    recorder: Recorder,
    attempts: Sequence[Attempt],
    runs: int,
    delta: float,
    confidence: float,
    seeds: np.random.SeedSequence,
    progress: Progress,
) -> WhiteProof:
    """Try the attempts, choose, and prove on fresh runs."""
    draw = np.random.default_rng(seeds)

    def seeded(number: int) -> list[int]:
        return [int(seed) for seed in draw.integers(0, 2**62, size=number)]

    def fresh(one: AuditRun, number: int) -> tuple[list[RecordedRun], list[RecordedRun]]:
        return recorder.again(one, False, seeded(number)), recorder.again(one, True, seeded(number))

    scripts, whole = _whole_runs(recorder, attempts, seeded, progress)
    tried = [0.0] * len(scripts)
    left = list(range(len(scripts)))
    for number, keep in _ROUNDS:
        for i in left:
            progress(f"trying {scripts[i].attempt.attack}", None)
            both = fresh(scripts[i], number)
            tried[i] = _common_evidence([*both[0], *both[1]])
        left = sorted(left, key=lambda i: -tried[i])[:keep]
    chosen = scripts[left[0]]
    best = chosen.attempt
    progress(f"choosing: {best.attack}", None)
    choosing = fresh(chosen, max(_LEAST, round(runs * _CHOOSING)))
    path = _path([*choosing[0], *choosing[1]])
    shape = _shape(path)
    before, there = (np.array([_score(one, path) for one in some]) for some in choosing)
    number = _proof_runs(runs)
    event, slope = _choose(shape, before, there)
    event_free, _ = choose_event(before, there, delta, confidence)
    progress(f"proving: {best.attack}", None)
    proving = fresh(chosen, number)
    without, with_ = (np.array([_score(one, path) for one in some]) for some in proving)
    factor = factor_bound(shape, event, slope, without, with_, confidence)
    faults = _faults(whole, [*choosing[0], *choosing[1], *proving[0], *proving[1]])
    free = tally(event_free, without, with_, delta, confidence)
    names = tuple(
        (attempt.attack, max(t for t, one in zip(tried, scripts, strict=True) if one.attempt is attempt))
        for attempt in attempts
    )
    return WhiteProof(best, shape, factor, tally(event, without, with_, delta, confidence), free, faults, names)


def _whole_runs(
    recorder: Recorder, attempts: Sequence[Attempt], seeded: Callable[[int], list[int]], progress: Progress
) -> tuple[list[AuditRun], list[RecordedRun]]:
    """Return a few whole runs of each attempt on both logs, and their answers."""
    scripts: list[AuditRun] = []
    whole: list[RecordedRun] = []
    for attempt in attempts:
        # The method's work on the answers can take long where there are very many cases.
        many = attempt.cases_in_it > _MANY
        questions = max((len(one.answers) for one in whole), default=None) if many else None
        seeds = ((there, seed) for there in (False, True) for seed in seeded(1 if many else _WHOLE))
        own = [AuditRun(attempt, there, seed, questions) for there, seed in seeds]
        progress(f"trying {attempt.attack}", None)
        whole += [recorder.whole(one) for one in own]
        scripts += own
    return scripts, whole


# The audit ----------------------------------------------------------------------------------------------------------


def audit_inside(
    planned: ReleaseRequest,
    pairs: Sequence[Attempt],
    derived: Guarantee,
    runs: int,
    confidence: float,
    seed: int | None,
    processes: int,
    progress: Progress | None,
) -> AuditResult:
    """Audit the answers to the queries of a plan."""
    if derived.epsilon is None or planned.unit is not ONE_CASE:
        raise ParameterError("audit-without-derived-epsilon", parameter="white_box")
    _check_runs(runs, derived, confidence)
    codes = {condition.code for condition in derived.conditions}
    pairs = [pair for pair in pairs if not pair.breaks & codes and pair.cases == 1]
    if not pairs:
        raise ParameterError("audit-neighbours-not-covered", parameter="log")
    report = progress or (lambda text, fraction: None)
    started = time.perf_counter()
    delta = float(planned.delta)
    with pool(processes) as workers:
        recorder = Recorder(planned, report, workers, processes)
        proof = prove(recorder, pairs, runs, delta, confidence, np.random.SeedSequence(seed), report)
    return AuditResult(
        method=planned.method.name,
        as_published=planned.as_published,
        nominal_epsilon=float(planned.epsilon),
        derived_epsilon=derived.epsilon,
        audited_epsilon=proof.epsilon,
        delta=delta,
        confidence=confidence,
        attack=proof.attempt.attack,
        score="evidence of all answers",
        tally=proof.seen,
        runs=runs,
        tried=proof.tried,
        conditions=derived.conditions,
        seconds=time.perf_counter() - started,
        white_box=WhiteBox(proof.factor, proof.free.epsilon, proof.free, _questions(proof), proof.faults),
    )


def _check_runs(runs: int, derived: Guarantee, confidence: float) -> None:
    """Refuse too few runs to exceed the derived epsilon, even if nothing were hidden."""
    found = _curve((Questions(tuple(priced(charge) for charge in derived.charges)),), 1.0, True)
    enough = runs_to_refute(found.most, 1 - confidence)
    if runs < WHITE_RUNS and _proof_runs(runs) < enough:
        least = next((number for number in range(runs, WHITE_RUNS) if _proof_runs(number) >= enough), WHITE_RUNS)
        raise ParameterError(
            "audit-derived-out-of-reach", parameter="runs", runs=runs, epsilon=derived.epsilon, least=least
        )


def _proof_runs(runs: int) -> int:
    """Return the number of runs left for the proof."""
    return max(1, runs - round(runs * _CHOOSING))


def _questions(proof: WhiteProof) -> tuple[str, ...]:
    """Return the scored queries, each with its epsilon."""
    asked = [(part, one) for part in proof.shape for one in part.asked]
    return tuple(
        f"{one.question}, epsilon {one.epsilon:.4g}" + (f" on a sample of {part.rate:g}" if part.rate < 1 else "")
        for part, one in asked
    )


# Scores -------------------------------------------------------------------------------------------------------------


def _common_evidence(runs: Sequence[RecordedRun]) -> float:
    """Return roughly how much the answers reveal that most runs have in common.

    It is the sum of the mean squares of their evidence. One number that reveals all counts about twice as much as two
    numbers with half of it each.
    """
    told = 0.0
    for place, usual in enumerate(_path(runs)):
        answers = [run.answers[place] for run in runs if len(run.answers) > place]
        found = [
            min((one.rate * one.evidence) ** 2, _CERTAIN)
            for one in answers
            if _key(one) == _key(usual) and not math.isnan(one.evidence)
        ]
        told += sum(found) / len(runs)
    return told


def _key(answer: RecordedAnswer) -> tuple[Priced | None, int]:
    return answer.priced, answer.sample


def _path(runs: Sequence[RecordedRun]) -> tuple[RecordedAnswer, ...]:
    """Return the answers that most runs have in common, from the first on."""
    path: list[RecordedAnswer] = []
    left = list(runs)
    while True:
        place = len(path)
        following = Counter(_key(one.answers[place]) for one in left if len(one.answers) > place)
        if not following:
            return tuple(path)
        key, often = following.most_common(1)[0]
        if 2 * often <= len(runs):
            return tuple(path)
        left = [one for one in left if len(one.answers) > place and _key(one.answers[place]) == key]
        path.append(left[0].answers[place])


def _shape(path: Iterable[RecordedAnswer]) -> tuple[Questions, ...]:
    """Return the charges of a path's answers, by the log or sample of each."""
    samples: dict[int, tuple[float, list[Priced]]] = {}
    for answer in path:
        if answer.priced is not None:
            samples.setdefault(answer.sample, (answer.rate, []))[1].append(answer.priced)
    return tuple(Questions(tuple(asked), rate) for rate, asked in samples.values())


def _score(one: RecordedRun, path: Sequence[RecordedAnswer]) -> float:
    """Return the evidence of a run along the path; a sample's is mixed with none."""
    samples: dict[tuple[int, float], float] = {}
    for answer, usual in zip(one.answers, path, strict=False):
        if _key(answer) != _key(usual):
            break
        found = 0.0 if math.isnan(answer.evidence) else min(max(answer.evidence, -_MOST), _MOST)
        key = answer.sample, answer.rate
        samples[key] = samples.get(key, 0.0) + found
    told = 0.0
    for (_, rate), evidence in samples.items():
        told += evidence if rate == 1 else float(np.logaddexp(math.log1p(-rate), math.log(rate) + evidence))
    return round(told, 9)


# The bound by the shape of the noise --------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _curve(shape: tuple[Questions, ...], factor: float, added: bool) -> Curve:
    return curve(shape, factor, added=added)


def factor_bound(
    shape: tuple[Questions, ...],
    event: ReleaseEvent,
    slope: float,
    without: FloatArray,
    with_: FloatArray,
    confidence: float,
) -> float:
    """Return the largest factor that these runs refute, to a thousandth, rounded down."""
    if not shape:
        return 0.0
    k1, k0 = (event.seen(with_), len(with_)), (event.seen(without), len(without))
    likely, rare = (k1, k0) if event.likelier_with else (k0, k1)

    def refuted(factor: float) -> bool:
        found = _curve(shape, factor, event.likelier_with)
        return is_refuted(likely, rare, math.exp(slope), found.most, 1 - confidence)

    if not refuted(float(_FACTORS[0])):
        return 0.0
    low = high = float(_FACTORS[0])
    for further in _FACTORS[1:].tolist():
        high = float(further)
        if not refuted(high):
            break
        low = high
    while high - low > low / 1000:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _choose(shape: tuple[Questions, ...], without: FloatArray, with_: FloatArray) -> tuple[ReleaseEvent, float]:
    """Return the event and slope that best exclude ``_NEARLY`` the budget.

    The charges give the event's probability on the likelier log, so it is not what happened to look best in few runs.
    These runs give only the frequency of each score on the other log.
    """
    best: tuple[float, ReleaseEvent, float] = (-math.inf, ReleaseEvent("at least", 0.0, True), 0.0)
    for added in (True, False) if shape else ():
        right, less = _curve(shape, 1.0, added), _curve(shape, _NEARLY, added)
        scores = np.sort(without if added else with_)
        values = np.unique([np.quantile(some, _PARTS, method="nearest") for some in (without, with_)])
        side: Literal["left", "right"] = "left" if added else "right"
        below = np.searchsorted(scores, values, side=side) / len(scores)
        rare = np.clip(1 - below if added else below, 1 / len(scores), 1 - 1 / len(scores))
        likely = right.most(rare)
        times = np.exp(less.slopes)[:, None]
        margin = likely - times * rare - less.excess[:, None]
        sharp = margin / np.sqrt(likely * (1 - likely) + times**2 * rare * (1 - rare) + _IGNORED)
        slope, place = np.unravel_index(int(sharp.argmax()), sharp.shape)
        if sharp[slope, place] > best[0]:
            event = ReleaseEvent("at least" if added else "at most", float(values[place]), added)
            best = (float(sharp[slope, place]), event, float(less.slopes[slope]))
    return best[1], best[2]


# Faults -------------------------------------------------------------------------------------------------------------


def _faults(whole: Sequence[RecordedRun], runs: Sequence[RecordedRun]) -> tuple[Message, ...]:
    """Return faults that need no bound.

    They are answers without a charge, answers that neither log can give, and noise that repeats. ``whole`` are runs of
    all attempts to their end; the ``runs`` are of one attempt.
    """
    found: dict[str, None] = {}
    if any(answer.priced is None for one in (*whole, *runs) for answer in one.answers):
        found["audit-fault-uncharged"] = None
    if any(math.isnan(answer.evidence) for one in runs for answer in one.answers):
        found["audit-fault-impossible-answer"] = None
    longest = max((len(one.answers) for one in runs), default=0)
    for place in range(longest):
        told = [one.answers[place] for one in runs if len(one.answers) > place and one.answers[place].noise]
        often = Counter((answer.noise, answer.chance) for answer in told)
        for (_, chance), times in often.most_common(1):
            if times > 1 and len(told) * bdtrc(times - 1, len(told), chance) < _RARELY:
                found["audit-fault-noise-of-runs"] = None
    for one, other in combinations(range(longest), 2):
        pairs = [(r.answers[one], r.answers[other]) for r in runs if len(r.answers) > other and r.answers[other].noise]
        same = sum(a.noise == b.noise for a, b in pairs)
        chance = max((b.chance for _, b in pairs), default=1.0)
        if same and bdtrc(same - 1, len(pairs), chance) < _RARELY:
            found["audit-fault-noise-of-questions"] = None
    return tuple(map(Message, found))

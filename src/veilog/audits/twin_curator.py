"""Twin curators: a method's answers with the exact ones of both neighbours.

The method runs on one of the two logs, as in a release. Each of its queries also goes to two twins, with the noise
switched off. They are a curator of the log without the case and one of the log with it. So for every answer the exact
numbers of both logs are known *given the same past*, also for a method that adapts to its answers. The answer itself
comes from the kernel as it is, with the noise that it draws.

The queries of a run can be made again (a :class:`Script`). They go to a curator that was opened anew as for a release,
with fresh noise. The method's own work on the answers, which takes most of the time, is left out. Fixed queries are
functions of the cases as the method gave them. They are a mechanism that must keep its charges, as the release must. So
an audit of them is an audit of the kernel and of the charges of these queries.

On a Poisson sample the twins get the sampled cases of the others. An attacker who knows these too is covered by the
proof of amplification (:mod:`veilog.privacy.mechanisms.sampling`), which holds for every sample of the others.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.audits.attacks import Attempt, Score
from veilog.audits.bounds import (
    Priced,
    evidence_of_counts,
    evidence_of_maximum,
    evidence_of_names,
    evidence_of_numbers,
    likeliest_answer,
    priced,
)
from veilog.errors import VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods.method import Progress
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.account.guarantee import Charge
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.events import EventQuestions, EventRounds
from veilog.privacy.histograms import Rounds, SparseHistogram, label_weights
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.clipped_sums import clipped_sums
from veilog.privacy.mechanisms.gradients import Training
from veilog.privacy.mechanisms.mechanism import (
    CubeNoise,
    GaussianRounds,
    KTruncatedGeometric,
    Laplace,
    Mechanism,
    NoisyMaximum,
    Sensitivity,
    Thresholded,
)
from veilog.privacy.unit import ONE_CASE, Bounded, bound_units
from veilog.releasing.answers import OPENING, watch
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.run import curator_of, run_plan

M = TypeVar("M", bound=Mechanism)
T = TypeVar("T")
Log = Variants | EventLog


class _Off:
    """Noise that is switched off."""

    def draw(self, n: int, source: noise.Randomness) -> Any:
        return np.zeros(n, dtype=np.int64)


class _Silent(_Off, Laplace):
    """Laplace noise that is switched off: 0, so no empty bin survives a threshold."""

    @property
    def decay(self) -> Fraction:
        return Fraction(100)


class _SilentCubes(_Off, CubeNoise):
    """Noise of cubes that is switched off."""


class _SilentGaussian(_Off, GaussianRounds):
    """Gaussian noise that is switched off."""


class _SilentTruncated(_Off, KTruncatedGeometric):
    """k-truncated noise that is switched off."""


@dataclass(frozen=True)
class _SilentMaximum(NoisyMaximum):
    """Noisy maximum that is switched off: it returns all numbers."""

    def largest(self, scores: Any, source: noise.Randomness) -> Any:
        return scores


class _SilentAccount(ChargeAccount):
    """Account that hands out mechanisms without noise, and keeps no charges."""

    above = 0
    """Threshold in place of the mechanism's own."""

    def charge(
        self,
        question: str,
        purpose: str | Message,
        mechanism: M,
        sensitivity: Sensitivity,
        epsilon: Fraction,
        delta: Fraction = Fraction(0),
    ) -> M:
        return cast(M, _silence(mechanism, self.above))


def _silence(mechanism: Mechanism | KTruncatedGeometric, above: int) -> Any:
    """Return the mechanism without its noise, with ``above`` as its threshold."""
    if isinstance(mechanism, Thresholded):
        return Thresholded(_silence(mechanism.noise, above), above)
    if isinstance(mechanism, KTruncatedGeometric):
        return _SilentTruncated(mechanism.epsilon, mechanism.k)
    if isinstance(mechanism, NoisyMaximum):
        return _SilentMaximum(mechanism.noise)
    if isinstance(mechanism, CubeNoise):
        return _SilentCubes(mechanism.scale, mechanism.width, mechanism.grid)
    if isinstance(mechanism, Laplace):
        return _Silent(mechanism.scale, mechanism.grid)
    return _SilentGaussian(mechanism.noises, mechanism.by) if isinstance(mechanism, GaussianRounds) else mechanism


class TwinCurator:
    """Curator of one of the two logs that answers without noise."""

    def __init__(self, held: Bounded, domain: Domain) -> None:
        self.account = _SilentAccount(ONE_CASE, seeded=True)
        self.curator = Curator(held, domain=domain, randomness=noise.seeded(0))
        self.curator._account = self.account
        self.names: dict[Any, Mapping[object, int]] = {}

    def ask(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the exact answer to a query on the holder."""
        asked = self.curator if isinstance(holder, Curator) else self.curator.events
        return getattr(asked, name)(*given, **named)

    def values(self, attribute: str, most: int, top: int) -> Mapping[object, int]:
        """Return the cases of each counted value, up to ``top``, by raising the threshold."""
        key = (attribute, most, top)
        if key not in self.names:
            found: dict[object, int] = {}
            for above in range(top):
                self.account.above = above
                for value in self.curator.events.frequent_values(attribute, most, 1, Fraction(1, 2)):
                    found[value] = above + 1
            self.account.above = 0
            self.names[key] = found
        return self.names[key]


class Twins:
    """Both logs, for queries without noise."""

    def __init__(self, plan: ReleaseRequest, without: Log, with_: Log) -> None:
        self._plan, self._logs = plan, (without, with_)
        source = noise.seeded(0)
        self.pair = tuple(TwinCurator(bound_units(log, plan.unit, source), plan.public) for log in (without, with_))

    def for_a_run(self, narrowed: bool) -> tuple[TwinCurator, ...]:
        """Return the twins; fresh ones where a run may change them."""
        return Twins(self._plan, *self._logs).pair if narrowed else self.pair


@dataclass(frozen=True)
class RecordedAnswer:
    """Evidence of an answer, with its charge."""

    priced: Priced | None
    """Charge of the answer; None if nothing was charged."""
    sample: int
    """Number of its sample; 0 for the whole log."""
    rate: float
    evidence: float
    noise: str = ""
    """Digest of the noise, where it can be computed."""
    chance: float = 1.0
    """Upper bound on the probability of any such noise."""


@dataclass(frozen=True)
class RecordedRun:
    """Answers of a run in their order, up to a refusal where it ended in one."""

    answers: tuple[RecordedAnswer, ...]


@dataclass(frozen=True)
class RecordedCall:
    """One query or opening of a run."""

    holder: int
    """Number of its holder among those opened, in order; 0 is the curator itself."""
    events: bool
    """True if it is a query on events."""
    name: str
    given: tuple[Any, ...]
    named: dict[str, Any]
    labels: tuple[str, ...] | None = None
    """Found labels, for a search for them; later queries are on these."""


@dataclass(frozen=True)
class Script:
    """Queries of a run in their order; exact answers to it are worked out once."""

    calls: tuple[RecordedCall, ...]
    exact: dict[int, tuple[Any, ...]] = field(default_factory=dict)


# Runs ---------------------------------------------------------------------------------------------------------------


class _Enough(Exception):
    """Signal that all relevant answers came; the method's work on them need not end."""


def record_run(
    plan: ReleaseRequest, twins: Twins, log: Log, there: bool, seed: int, questions: int | None = None
) -> tuple[RecordedRun, Script]:
    """Return the answers of a release of the log, and its queries.

    ``there`` is True for the log with the case. With a number of ``questions`` the run ends when these are answered.
    """
    recorder = _Recorder(twins.for_a_run(plan.uses.labels), there, questions)
    with suppress(VeilogError, _Enough):
        run_plan(plan.seeded(seed), log, watched=lambda curator: watch(curator, recorder))
    return RecordedRun(tuple(recorder.answers)), Script(tuple(recorder.calls))


def replay_run(plan: ReleaseRequest, twins: Twins, script: Script, log: Log, there: bool, seed: int) -> RecordedRun:
    """Return the answers to the queries of a script, with the noise of this seed."""
    recorder = _Recorder(twins.for_a_run(plan.uses.labels), there, exact=script.exact)
    holders: list[Any] = [curator_of(plan.seeded(seed), log)]
    with suppress(VeilogError):
        for call in script.calls:
            holder = holders[call.holder]
            asked = holder.events if call.events else holder
            if call.name in OPENING:
                holders.append(recorder.opened(asked, call.name, call.given, call.named))
            else:
                recorder.labels = call.labels
                recorder.question(asked, call.name, call.given, call.named)
    return RecordedRun(tuple(recorder.answers))


@dataclass
class _Sample:
    """Target of queries: the whole log, or a sample with the number ``place``."""

    twins: tuple[TwinCurator, ...]
    place: int = 0
    rate: float = 1.0


@dataclass
class _Recorder:
    """Recorder that puts each query to the curator and both twins."""

    twins: tuple[TwinCurator, ...]
    there: bool
    enough: int | None = None
    exact: dict[int, tuple[Any, ...]] | None = None
    """Exact answers on the whole log by the places of queries that are repeated."""
    labels: tuple[str, ...] | None = None
    """Labels that count as found in the next search, in place of the found ones."""
    calls: list[RecordedCall] = field(default_factory=list)
    answers: list[RecordedAnswer] = field(default_factory=list)
    samples: dict[int, _Sample] = field(default_factory=dict)
    held: list[Any] = field(default_factory=list)
    """References to curators of samples, so that none is taken for another."""
    trainings: dict[int, tuple[Any, tuple[Training, ...], int]] = field(default_factory=dict)
    rounds: dict[int, tuple[_Sample, int]] = field(default_factory=dict)

    def _record_call(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        numbers = {id(opened): number for number, opened in enumerate(self.held, start=1)}
        events = isinstance(holder, EventQuestions)
        self.calls.append(RecordedCall(numbers.get(id(holder), 0), events, name, given, named))

    def _twins_answer(self, sample: _Sample, ask: Callable[[TwinCurator], Any]) -> tuple[Any, ...]:
        """Return the answers of both twins, once for each query on the whole log."""
        if self.exact is None or sample.place:
            return tuple(ask(twin) for twin in sample.twins)
        place = len(self.calls)
        if place not in self.exact:
            self.exact[place] = tuple(ask(twin) for twin in sample.twins)
        return self.exact[place]

    def _sample_of(self, holder: Any) -> _Sample:
        return self.samples.get(id(holder)) or _Sample(self.twins)

    def question(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._record_call(holder, name, given, named)
        if name == "step":
            return self._step(holder, *given, **named)
        if isinstance(holder, Rounds):
            return self._round(holder, *given, **named)
        if isinstance(holder, EventRounds):
            return self._round_of_sums(holder, given, named)
        answer = self._record_query(holder, name, given, named)
        if len(self.answers) == self.enough:
            raise _Enough
        return answer

    def _record_query(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        sample = self._sample_of(holder)
        before = len(holder._account.charges)
        answer = getattr(holder, name)(*given, **named)
        charges = holder._account.charges[before:]
        if not charges:
            self.answers.append(RecordedAnswer(None, sample.place, sample.rate, 0.0))
            return answer
        charge: Charge = charges[-1]
        found, drawn = self._evidence(sample, holder, name, given, named, answer, charge.mechanism)
        digest, chance = _digest(charge.mechanism, drawn)
        self.answers.append(RecordedAnswer(priced(charge), sample.place, sample.rate, found, digest, chance))
        if name == "find_activities":
            self._narrow_domain(holder, sample, answer)
        return answer

    def _narrow_domain(self, holder: Curator, sample: _Sample, found: tuple[str, ...]) -> None:
        """Go on with the labels that count as found."""
        labels = found if self.labels is None else self.labels
        self.calls[-1] = replace(self.calls[-1], labels=labels)
        for curator in (*(twin.curator for twin in sample.twins), *([holder] if labels != found else [])):
            curator._narrow(labels)

    def _evidence(
        self,
        sample: _Sample,
        holder: Any,
        name: str,
        given: tuple[Any, ...],
        named: dict[str, Any],
        answer: Any,
        mechanism: Any,
    ) -> tuple[float, Any]:
        """Return the evidence of an answer, and its noise where that can be computed."""
        if name == "find_activities":
            weights = self._twins_answer(sample, lambda twin: _weights(twin.curator._variants))
            return evidence_of_names(mechanism, frozenset(answer), *weights), None
        if name == "frequent_values":
            top = 2 * mechanism.noise.k + 2
            values = self._twins_answer(sample, lambda twin: twin.values(given[0], given[1], top))
            return evidence_of_names(mechanism, frozenset(answer), *values), None
        if isinstance(answer, SparseHistogram):
            silent = {**named, "keep_above": 0}
            bins = self._twins_answer(sample, lambda twin: _counts(twin.ask(holder, name, given, silent)))
            return evidence_of_counts(mechanism, named["keep_above"], _counts(answer), *bins, empty=True), None
        if isinstance(answer, Variants):
            variants = self._twins_answer(sample, lambda twin: twin.ask(holder, name, given, named).to_dict())
            came_out: Mapping[Any, int] = answer.to_dict()
            return evidence_of_counts(mechanism.noise, mechanism.above, came_out, *variants, empty=False), None
        exact = self._twins_answer(sample, lambda twin: twin.ask(holder, name, given, named))
        if name == "most_apart":
            return evidence_of_maximum(mechanism, answer, *exact), None
        return evidence_of_numbers(mechanism, answer, *exact), np.asarray(answer) - np.asarray(exact[self.there])

    def opened(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._record_call(holder, name, given, named)
        found = getattr(holder, name)(*given, **named)
        self.held.append(found)
        if name == "subsample":
            self.samples[id(found)] = self._draw_sample(holder, found, given[0])
            return found
        sample = self._sample_of(holder)
        if name == "rounds":
            self.rounds[id(found)] = (sample, len(self.answers))
        else:
            trainings = tuple(getattr(twin.curator, name)(*given, **named) for twin in sample.twins)
            self.trainings[id(found)] = (given[3], trainings, len(self.answers))
        charge = holder._account.charges[-1]
        self.answers.append(RecordedAnswer(priced(charge), sample.place, sample.rate, 0.0))
        return found

    def peeked(self, holder: Any, name: str, given: tuple[Any, ...]) -> Any:
        return getattr(holder, name)(*given)

    def _draw_sample(self, whole: Curator, sample: Curator, rate: Fraction) -> _Sample:
        """Return the sample of the other cases, without and with the case in it.

        No one can distinguish which of equal cases are in a sample. So where the case is there, it is one of those
        drawn with its chance.
        """
        one, other = (dict(twin.curator._variants.to_dict()) for twin in self._sample_of(whole).twins)
        (case,) = (trace for trace in other if other[trace] != one.get(trace, 0))
        drawn = dict(sample._variants.to_dict())
        if self.there:
            among = np.random.default_rng(whole.randomness.words(4))
            if among.random() * other[case] < drawn.get(case, 0):
                drawn[case] -= 1
        logs = [drawn, {**drawn, case: drawn.get(case, 0) + 1}]
        twins = []
        for log in logs:
            held = Variants.from_dict({trace: count for trace, count in log.items() if count})
            twins.append(TwinCurator(Bounded(held, ONE_CASE), sample.domain))
            twins[-1].curator._whole = whole
        return _Sample(tuple(twins), len(self.samples) + 1, float(rate))

    def _tell(self, place: int, evidence: float) -> None:
        """Add to the evidence of queries that were charged together."""
        before = self.answers[place]
        self.answers[place] = replace(before, evidence=before.evidence + evidence)

    def _round(self, rounds: Rounds, assign: Any, size: int, *, keep_above: int) -> SparseHistogram:
        """Answer one of the histograms charged together; their evidence adds up."""
        sample, place = self.rounds[id(rounds)]
        mechanism = rounds.noises[rounds.asked]
        answer = rounds.histogram(assign, size, keep_above=keep_above)
        bins = self._twins_answer(sample, lambda twin: _counts(twin.curator.histogram(assign, size, 1, keep_above=0)))
        self._tell(place, evidence_of_counts(mechanism, keep_above, _counts(answer), *bins, empty=True))
        return answer

    def _round_of_sums(self, rounds: EventRounds, given: tuple[Any, ...], named: dict[str, Any]) -> IntArray:
        """Answer some of the sums charged together; their evidence adds up."""
        sample, place = self.rounds[id(rounds)]
        noise = rounds.noises[rounds.asked]
        answer = rounds.sums(*given, **named)
        silent = {**named, "epsilon": 1, "delta": Fraction(1, 2)}  # the L2 norm, as there; without the noise
        exact = self._twins_answer(sample, lambda twin: twin.curator.events.sums(*given, **silent))
        self._tell(place, evidence_of_numbers(noise, answer, *exact))
        return answer

    def _step(self, training: Training, part: int, factors: Any) -> Any:
        """Take a noised step; its evidence is Gaussian around the other cases' mean."""
        clips, twins, place = self.trainings[id(training)]
        answer = training.step(part, factors)
        steps, clip = training.plan[part], float(clips[part])
        one, other = (twin._counts for twin in twins)
        asked = factors(np.arange(len(one)))
        usual, added = (_flat(clipped_sums(asked, clip, counts)) for counts in (one, other - one))
        deviation = steps.noise_multiplier * clip
        inner = float((_flat(answer) - steps.rate * usual) @ added - added @ added / 2) / deviation**2
        rest = math.log1p(-steps.rate) if steps.rate < 1 else -math.inf
        self._tell(place, float(np.logaddexp(rest, math.log(steps.rate) + inner)))
        if len(self.answers) == self.enough and training.taken == tuple(part.steps for part in training.plan):
            raise _Enough
        return answer


def _counts(histogram: SparseHistogram) -> Mapping[object, int]:
    return dict(zip(histogram.bins.tolist(), histogram.counts.tolist(), strict=True))


def _flat(sums: Any) -> FloatArray:
    return np.concatenate([np.asarray(part, dtype=np.float64).reshape(-1) for layer in sums for part in layer])


def _weights(variants: Variants) -> Mapping[object, int]:
    return {label: n for label, n in zip(variants.labels, label_weights(variants).tolist(), strict=True) if n}


def _digest(mechanism: Any, drawn: Any) -> tuple[str, float]:
    """Return a digest of noise and a bound on its chance; none for real numbers."""
    if drawn is None or not isinstance(mechanism, Laplace):
        return "", 1.0
    numbers = np.atleast_1d(drawn).reshape(-1)
    words = repr((mechanism, numbers.tolist())).encode()
    return hashlib.sha256(words).hexdigest()[:16], likeliest_answer(mechanism) ** len(numbers)


_AT_ONCE = 300
"""Number of runs from which other processes are worth starting."""
_KEPT = 64
_REFUSED = -2.0
"""Score of a run that ended in a refusal, which an attacker sees, too."""


@dataclass(frozen=True)
class AuditRun:
    """Whole run: its log, its noise, and the number of queries after which it ends."""

    attempt: Attempt
    there: bool
    seed: int
    questions: int | None = None

    def on(self, planned: ReleaseRequest) -> tuple[RecordedRun, Script, Twins]:
        """Run it."""
        twins = Twins(planned, self.attempt.without, self.attempt.with_)
        return *record_run(planned, twins, self.attempt.log(self.there), self.there, self.seed, self.questions), twins


Made = dict[tuple[str, bool, int, int | None], tuple[RecordedRun, Script, Twins]]
"""Last runs of an audit."""
_made: Made = {}
"""Last runs of a process that works for one audit."""


def _run_once(planned: ReleaseRequest, run: AuditRun, made: Made) -> tuple[RecordedRun, Script, Twins]:
    key = (run.attempt.attack, run.there, run.seed, run.questions)
    if key not in made:
        if len(made) >= _KEPT:
            made.clear()
        made[key] = run.on(planned)
    return made[key]


@dataclass(frozen=True)
class Recorder:
    """Recorder of releases and their answers, in parallel where processes exist."""

    planned: ReleaseRequest
    progress: Progress
    workers: ProcessPoolExecutor | None
    processes: int
    made: Made = field(default_factory=dict)

    def whole(self, run: AuditRun) -> RecordedRun:
        """Return the answers of a whole run."""
        return _run_once(self.planned, run, self.made)[0]

    def again(self, run: AuditRun, with_: bool, seeds: Sequence[int]) -> list[RecordedRun]:
        """Return the answers to a run's queries on one log, with each of these seeds."""
        if self.workers is None or len(seeds) < _AT_ONCE:
            return _replay_runs(self.planned, run, with_, seeds, self.made)
        ask = partial(_replay_runs_of, self.planned.to_json(), run, with_)
        return list(chain(*self._map_in_parts(self.workers, ask, run.attempt, with_, seeds)))

    def scores(self, attempt: Attempt, with_: bool, seeds: Sequence[int]) -> FloatArray:
        """Return the scores of releases of one of the logs, a row for each of these seeds."""
        if self.workers is None or len(seeds) < 2 * self.processes:
            return _scores(self.planned, attempt.log(with_), attempt.scores, seeds)
        score = partial(_scores_of, self.planned.to_json(), attempt.log(with_), attempt.scores)
        return np.concatenate(list(self._map_in_parts(self.workers, score, attempt, with_, seeds)))

    def _map_in_parts(
        self,
        workers: ProcessPoolExecutor,
        function: Callable[[Sequence[int]], T],
        attempt: Attempt,
        with_: bool,
        seeds: Sequence[int],
    ) -> Iterator[T]:
        """Yield a function's results for the seeds in order, a few parts for each process."""
        step = max(1, min(250, -(-len(seeds) // (2 * self.processes))))
        futures = [workers.submit(function, seeds[place : place + step]) for place in range(0, len(seeds), step)]
        for i, future in enumerate(futures, start=1):
            yield future.result()
            self.progress(f"{attempt.attack}, {'with' if with_ else 'without'} it", i / len(futures))


def _replay_runs_of(planned: dict[str, Any], run: AuditRun, with_: bool, seeds: Sequence[int]) -> list[RecordedRun]:
    """Run in another process, which gets the plan as JSON."""
    return _replay_runs(ReleaseRequest.from_json(planned), run, with_, seeds, _made)


def _replay_runs(
    planned: ReleaseRequest, run: AuditRun, with_: bool, seeds: Sequence[int], made: Made
) -> list[RecordedRun]:
    _, script, twins = _run_once(planned, run, made)
    return [replay_run(planned, twins, script, run.attempt.log(with_), with_, seed) for seed in seeds]


def _scores_of(planned: dict[str, Any], log: Log, scores: tuple[Score, ...], seeds: Sequence[int]) -> FloatArray:
    """Run in another process, which gets the plan as JSON."""
    return _scores(ReleaseRequest.from_json(planned), log, scores, seeds)


def _scores(planned: ReleaseRequest, log: Log, scores: tuple[Score, ...], seeds: Sequence[int]) -> FloatArray:
    found = np.empty((len(seeds), len(scores)))
    for i, seed in enumerate(seeds):
        try:
            released = run_plan(planned.seeded(seed), log)
        except VeilogError:
            found[i] = _REFUSED
        else:
            found[i] = [score.of(released) for score in scores]
    return found

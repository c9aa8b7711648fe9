"""Singling out: what someone who knows a few events of a person finds out about them from a release.

The attacker knows ``size`` events of a person's case, drawn at random, in their order, and perhaps about when the case
started. A case fits if it has these activities in this order (and started within some hours of then). Let M cases of a
log fit, S of which have the person's whole trace.

    singled out   exactly one case fits, and it has the person's trace: M = S = 1
    guessed       the most frequent trace of the fitting cases (one of them, where several are) is the person's; who
                  knows the start and finds no case that fits goes on without it

Both are computed for the original, for the release, and for a baseline that never saw the person:

    singled out   a log as large as the release, whose n cases are drawn, independently, from the N - 1 of everybody
                  else. With q = (M - 1) / (N - 1) and s = (S - 1) / (N - 1), M and S those of the original, which
                  counts the person's own case, the expectation is n s (1 - q)^(n - 1).
    guessed       the original where somebody else has the person's trace too, S > 1, and nothing where nobody has; with
                  the start known, the better of guessing with it and without it

Where it is known whose the cases are, that original has of the person attacked the one case and no other: M, S and N
are of that, so what the person's other cases tell is not known from others. To guess, the S - 1 cases of h other people
with the trace stand for (S - 1) (h + 1) / h, as many for the person as for one of them on average. (With one case for
the person, traces of equally many people would be told apart by it, and releases blamed that guess at random.)

The baseline of guessing is at least what somebody gets right who knows all cases but this one. (That would take the
person's own case from S everywhere; where traces are about equally frequent it turns the guess to another one, for each
of these people, and so understates what can be known without them.) Where a release does better, it tells of people
what others' cases do not; where it does not, what it tells can be known from others. The baseline of singling out is no
such bound: a small release of frequent traces only has more cases that stand alone and have the traces of many.
Therefore guessing is what is judged.

The comparison follows the control attacks of M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnadi, "A unified framework for
quantifying privacy risk in synthetic data" (PoPETs 2023), whose control is a set of people that the release never saw;
with one original and one release there is none, hence the person is left out of the original instead.

People are drawn with a fixed seed, with replacement, and the intervals are Wilson's ("Probable inference, the law of
succession, and statistical inference", 1927) at 95 %; where there are few people with few events each of them is
attacked with everything that could be known, and the values are exact. Whether the release tells more is judged by the
difference from the baseline in the same attacks, with an interval that takes the people for a sample
(:mod:`veilog.measures.singling_out.rates`). This is one attack, not a bound.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from veilog._language import counted
from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.measure import Reason, our_measure
from veilog.measures.persons import persons_of
from veilog.measures.singling_out.logs import (
    UNKNOWN,
    Besides,
    Fitting,
    Population,
    besides,
    cases_of,
    fits,
    fitting,
    near,
    population,
    why_without_start,
)
from veilog.measures.singling_out.rates import (
    Z_BEYOND,
    Attack,
    Control,
    Rate,
    Success,
    apart,
    certain,
    mean_rate,
    paired,
    residual,
    wilson,
)
from veilog.measures.singling_out.targets import Attacks, AttackTargets, attackable, drawn

SIZES = (1, 2, 3, 5, 10)
ATTACKS = 1_000
_FEWEST = 100
_WORK = 1 << 21
"""Pairs of an attack and a variant for each size; larger logs are attacked less often, at least ``_FEWEST`` times."""
_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Knowledge(Attack):
    """What an attacker knows, whom that was tried on, and how often it told the rest."""

    size: int
    """Events of the case that are known."""
    with_start: bool
    """Whether it is also known about when the case started."""
    people: int
    """Cases of the original of which that much can be known and something is left to learn."""
    attacks: int
    exact: bool
    """Whether everybody was attacked with everything that can be known; else ``attacks`` were drawn."""
    singled_out: Success
    guessed: Success
    beyond: Rate
    """By how much more the release lets guess than the baseline; its interval is at 99.5 % and for all people who could
    have been in the log, so it has a width also where everybody was attacked."""
    residual: Rate
    """Of what the baseline leaves to find out the share that the release tells, at 99.5 %."""


@dataclass(frozen=True)
class SinglingOut:
    """Risk before and after, for each kind of knowledge."""

    results: tuple[Knowledge, ...]
    hours: float
    """How far from the true start of a case a case may start that still fits."""
    without_start: Reason | None
    """Why no attacker knows when cases started, if so."""
    control: Control
    """What the baseline is."""
    seconds: float


def singling_out(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    control: EventLog | Variants | None = None,
    person: str | bool = True,
    sizes: Iterable[int] = SIZES,
    hours: float = 24.0,
    attacks: int = ATTACKS,
    seed: int = 0,
) -> SinglingOut:
    """How often people of the original are singled out, or their trace is guessed, with either log and the baseline.

    ``control`` has people of the same process who were not in the log that was released: then they are the baseline.
    Else others' cases are, which those of the same ``person`` are not: told by that column of the original, by the one
    that seems to tell (True), or every case is another person's (False). ``sizes`` are how many events are known; sizes
    for which nobody has more events are left out. Where the logs have real times that overlap, attackers who also know
    the start of the case to ``hours`` are tried. No log is changed and no value depends on the order of rows.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or attacks < 2 or not hours > 0 or seed < 0:
        raise ParameterError("attack-settings-not-positive", parameter="sizes")
    first, second = (log if isinstance(log, Variants) else log.variants for log in (original, released))
    if first.cases == 0:
        raise ParameterError("singling-without-cases", parameter="original")
    why = why_without_start(original, released)
    if why is None and control is not None:
        why = why_without_start(control, released)
    after = population(second, *cases_of(released, second, why is None)[:2], why is None)
    whom = attackable(original, second, why is None, None if control is not None else persons_of(original, person))
    held_out = None if control is None else attackable(control, second, why is None)
    before = population(first, whom.variant, whom.start, why is None, whom.owner)
    most = min(attacks, max(_FEWEST, _WORK // max(1, len(first), len(second))))
    results: list[Knowledge] = []
    for size in wanted:
        chosen = drawn(whom, size, most, np.random.default_rng([seed, size]))
        others = None if held_out is None else drawn(held_out, size, most, np.random.default_rng([seed, size, 1]))
        if chosen is not None and (held_out is None or others is not None):
            trial = _Trial(size, before, after, int(hours * _HOUR))
            against = None if held_out is None or others is None else trial.with_release(held_out, others)
            results += trial.outcome(whom, chosen, against)
    if not results:
        raise ParameterError("singling-cases-too-short", parameter="original", events=counted(wanted[0], "event"))
    kind: Control = "others' cases" if control is None else "held out"
    return SinglingOut(tuple(results), hours, why, kind, time.perf_counter() - began)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What fits in a log, whenever it started, and of the attacks with a known start what fits and started then."""

    ever: Fitting
    near: Fitting | None
    known: IntArray
    """The attacks with a known start."""

    def guessed(self) -> FloatArray:
        """The chances to guess with a known start; who finds nothing that fits goes on without it."""
        assert self.near is not None
        return self.near.guessed(self.ever.rows(self.known))


@dataclass(frozen=True, eq=False)
class _Against:
    """A control group that was attacked with the release."""

    found: _Fitted
    attacks: Attacks


@dataclass(frozen=True, eq=False)
class _Trial:
    """Attacks with so many known events on people of one log and of another one."""

    size: int
    before: Population
    after: Population
    reach: int

    def with_release(self, whom: AttackTargets, attacks: Attacks) -> _Against:
        """Return what fits these people in the release."""
        return _Against(self._fitted(self.after, attacks, whom.recode, whom.counterpart), attacks)

    def _fitted(
        self,
        log: Population,
        attacks: Attacks,
        recode: IntArray | None,
        own: IntArray,
        less: Besides | None = None,
    ) -> _Fitted:
        patterns, which = np.unique(attacks.patterns, axis=0, return_inverse=True)
        which = which.ravel()
        table = fits(log, patterns if recode is None else recode[patterns])
        ever = fitting(log, table, which, own[attacks.variant], less)
        known = np.flatnonzero(attacks.start != UNKNOWN)
        if self.before.starts is None or log.starts is None or not len(known):
            return _Fitted(ever, None, known)
        start, person = attacks.start[known], None if less is None or attacks.owner is None else attacks.owner[known]
        then = near(log, table, which[known], own[attacks.variant[known]], start, self.reach, person)
        return _Fitted(ever, then, known)

    def _from_others(self, whom: AttackTargets, attacks: Attacks, fitted: _Fitted) -> _Fitted:
        """What fits in the original without other cases of the person; ``fitted`` is what does with them."""
        if whom.owner is None or attacks.owner is None:
            return fitted
        less = besides(whom.variants, whom.variant, whom.owner, attacks.variant, attacks.owner)
        return self._fitted(self.before, attacks, None, np.arange(len(whom.variants)), less)

    def outcome(self, whom: AttackTargets, attacks: Attacks, against: _Against | None) -> list[Knowledge]:
        """The outcome without, and where possible with, knowledge of the start."""
        a = self._fitted(self.before, attacks, None, np.arange(len(whom.variants)))
        b = self.with_release(whom, attacks).found
        o = self._from_others(whom, attacks, a)
        n = self.after.variants.cases
        alone = _drawn_alone(o.ever, self.before.variants.cases - whom.besides(attacks, with_start=False), n)
        guesses = a.ever.guessed(), b.ever.guessed(), o.ever.known_from_others().guessed()
        control = None
        if against is not None:
            control = against.attacks, against.found.ever.alone(), against.found.ever.guessed()
        out = [self._knowledge(attacks, False, (a.ever.alone(), b.ever.alone(), alone), guesses, control)]
        if a.near is None or b.near is None or o.near is None or (against is not None and against.found.near is None):
            return out
        assert self.before.starts is not None and self.after.starts is not None  # noqa: PT018 - one fact
        some = attacks.rows(a.known)
        alone = _drawn_alone(
            o.near, len(self.before.starts) - whom.besides(some, with_start=True), len(self.after.starts)
        )
        from_others = _Fitted(o.ever.known_from_others(), o.near.known_from_others(), a.known)
        either = (from_others.guessed(), from_others.ever.rows(a.known).guessed())
        best = max(either, key=lambda values: float(values @ some.weight))
        guesses = a.guessed(), b.guessed(), best
        if against is not None and against.found.near is not None:
            control = against.attacks.rows(against.found.known), against.found.near.alone(), against.found.guessed()
        return [*out, self._knowledge(some, True, (a.near.alone(), b.near.alone(), alone), guesses, control)]

    def _knowledge(
        self,
        attacks: Attacks,
        with_start: bool,
        alone: tuple[FloatArray, FloatArray, FloatArray],
        guessed: tuple[FloatArray, FloatArray, FloatArray],
        control: tuple[Attacks, FloatArray, FloatArray] | None,
    ) -> Knowledge:
        """With the original, with the release, and known from others; a control group takes the place of the latter."""
        singled, guesses = ([_rate(values, attacks) for values in three] for three in (alone, guessed))
        weight = attacks.weight / attacks.weight.sum()
        if control is None:
            beyond = paired(guessed[1] - guessed[2], weight, attacks.variant, attacks.people, attacks.owner)
        else:
            others, *values = control
            singled[2], guesses[2] = (_rate(found, others) for found in values)
            ends = (guessed[1], attacks), (values[1], others)
            beyond = apart(*(mean_rate(v, by.weight, by.independent, Z_BEYOND) for v, by in ends))
        return Knowledge(
            size=self.size,
            with_start=with_start,
            people=attacks.people,
            attacks=len(weight),
            exact=attacks.exact,
            singled_out=Success(*singled),
            guessed=Success(*guesses),
            beyond=beyond,
            residual=residual(beyond, guesses[2]),
        )


def _rate(values: FloatArray, attacks: Attacks) -> Rate:
    mean = min(1.0, float(values @ (attacks.weight / attacks.weight.sum())))
    return certain(mean) if attacks.exact else wilson(mean, len(values))


def _drawn_alone(found: Fitting, cases: int | IntArray, n: int) -> FloatArray:
    """The chance that, of n cases drawn from everybody else's, one alone fits and has the person's trace."""
    same = found.same - 1
    others = np.maximum(1, cases - 1)
    fit = (same + found.others) / others
    return np.asarray(n * (same / others) * np.power(1 - fit, max(0, n - 1)), dtype=np.float64)


SINGLING_OUT = our_measure(
    "singling_out", lambda pair: singling_out(pair.original, pair.released, control=pair.control, person=pair.person)
)

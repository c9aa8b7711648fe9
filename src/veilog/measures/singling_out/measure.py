"""Singling out: what an attacker who knows a few events of a person finds out.

The attacker knows ``size`` events of a person's case, drawn at random, in their order, and perhaps about when the case
started. A case fits if it has these activities in this order (and started within some hours of then). Let M cases of a
log fit, S of which have the person's whole trace.

    singled out   exactly one case fits, and it has the person's trace: M = S = 1
    guessed       the most frequent trace of the fitting cases (one of them, where several are) is the person's; an
                  attacker who knows the start and finds no case that fits goes on without it

Both are computed for the original, for the release, and for a baseline that never saw the person:

    singled out   a log as large as the release, whose n cases are drawn, independently, from the N - 1 of everyone
                  else. With q = (M - 1) / (N - 1) and s = (S - 1) / (N - 1), M and S those of the original, which
                  counts the person's own case, the expectation is n s (1 - q)^(n - 1).
    guessed       the original if another person has the person's trace too, S > 1, and nothing otherwise; with the
                  start known, the better of guessing with it and without it

If the log identifies persons, that original has the one attacked case of the person and no other. M, S and N are of
that log, so others' cases do not reveal what the person's other cases would. To guess, the S - 1 cases of h other
people with the trace stand for (S - 1) (h + 1) / h, as many for the person as for one of them on average. (A single
case for the person would distinguish traces of equally many people, and blame releases that guess at random.)

The baseline of guessing is at least the share of right guesses of an attacker who knows all cases but this one. (Taking
the person's own case from S everywhere would understate what can be known without these people: where traces are about
equally frequent it turns the guess to another one.) Where a release does better, it reveals about people what others'
cases do not. Where it does not, others' cases reveal as much. The baseline of singling out is no such bound: a small
release of frequent traces only has more cases that stand alone and have the traces of many. Therefore guessing decides
the verdict.

The comparison follows the control attacks of M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnadi, "A unified framework for
quantifying privacy risk in synthetic data" (PoPETs 2023), whose control is a set of people that the release never saw.
With one original and one release there is no such set, so the person is left out of the original instead.

People are drawn with a fixed seed, with replacement, and the intervals are Wilson's ("Probable inference, the law of
succession, and statistical inference", 1927) at 95 %. Where there are few people with few events, each of them is
attacked with everything that could be known, and the values are exact. The difference from the baseline in the same
attacks decides if the release reveals more. Its interval takes the people for a sample
(:mod:`veilog.measures.singling_out.rates`). This is one attack, not a bound.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from veilog._language import count_phrase
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
    fits_of_people,
    missing_start_reason,
    near,
    population,
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
    paired_gain,
    residual,
    wilson,
)
from veilog.measures.singling_out.targets import Attacks, AttackTargets, attackable, draw_targets

SIZES = (1, 2, 3, 5, 10)
ATTACKS = 1_000
_FEWEST = 100
_WORK = 1 << 21
"""Pairs of an attack and a variant for each size; larger logs get fewer attacks, at least ``_FEWEST``."""
_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Knowledge(Attack):
    """Knowledge of an attacker, its targets, and the shares of successful attacks."""

    size: int
    """Number of known events of the case."""
    with_start: bool
    """True if the attacker also knows about when the case started."""
    people: int
    """Cases of the original with that much to know and something left to learn."""
    attacks: int
    exact: bool
    """True if all people were attacked with all knowledge; else ``attacks`` were drawn."""
    singled_out: Success
    guessed: Success
    beyond: Rate
    """Gain of guessing with the release over the baseline. Its interval is at 99.5 % and for all people who could have
    been in the log, so it has a width also where everyone was attacked."""
    residual: Rate
    """Part of the unknown under the baseline that the release reveals, at 99.5 %."""


@dataclass(frozen=True)
class SinglingOut:
    """Risk before and after, for each kind of knowledge."""

    results: tuple[Knowledge, ...]
    hours: float
    """Largest distance in hours from the true start at which a case still fits."""
    without_start: Reason | None
    """Reason why no attacker knows when cases started, if so."""
    control: Control
    """Kind of the baseline."""
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
    """Return how often people are singled out, or their trace guessed, with each log.

    ``control`` has people of the same process who were not in the released log; then they are the baseline. Otherwise
    others' cases are, and these exclude other cases of the same ``person``. The person's column in the original is this
    one, with True the likeliest one; with False every case is another person's. ``sizes`` are the numbers of known
    events; sizes for which no one has more events are left out. Where the logs have real times that overlap, attackers
    who also know the start of the case to ``hours`` are tried. No log is changed and no value depends on the order of
    rows.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or attacks < 2 or not hours > 0 or seed < 0:
        raise ParameterError("attack-settings-not-positive", parameter="sizes")
    first, second = (log if isinstance(log, Variants) else log.variants for log in (original, released))
    if first.cases == 0:
        raise ParameterError("singling-without-cases", parameter="original")
    why = missing_start_reason(original, released)
    if why is None and control is not None:
        why = missing_start_reason(control, released)
    after = population(second, *cases_of(released, second, why is None)[:2], why is None)
    whom = attackable(original, second, why is None, None if control is not None else persons_of(original, person))
    held_out = None if control is None else attackable(control, second, why is None)
    before = population(first, whom.variant, whom.start, why is None, whom.owner)
    most = min(attacks, max(_FEWEST, _WORK // max(1, len(first), len(second))))
    results: list[Knowledge] = []
    for size in wanted:
        chosen = draw_targets(whom, size, most, np.random.default_rng([seed, size]))
        others = (
            None if held_out is None else draw_targets(held_out, size, most, np.random.default_rng([seed, size, 1]))
        )
        if chosen is not None and (held_out is None or others is not None):
            trial = _Trial(size, before, after, int(hours * _HOUR))
            against = None if held_out is None or others is None else trial.with_release(held_out, others)
            results += trial.outcome(whom, chosen, against)
    if not results:
        raise ParameterError("singling-cases-too-short", parameter="original", events=count_phrase(wanted[0], "event"))
    kind: Control = "others' cases" if control is None else "held out"
    return SinglingOut(tuple(results), hours, why, kind, time.perf_counter() - began)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Cases of a log that fit, whatever their start, and those that also started then."""

    ever: Fitting
    near: Fitting | None
    known: IntArray
    """Attacks with a known start."""

    def guessed(self) -> FloatArray:
        """Return the chances to guess with a known start, or without it if no case fits."""
        assert self.near is not None
        return self.near.guessed(self.ever.rows(self.known))


@dataclass(frozen=True, eq=False)
class _Against:
    """A control group that was attacked with the release."""

    found: _Fitted
    attacks: Attacks


@dataclass(frozen=True, eq=False)
class _Trial:
    """Attacks with ``size`` known events on people of one log and of another one."""

    size: int
    before: Population
    after: Population
    reach: int

    def with_release(self, whom: AttackTargets, attacks: Attacks) -> _Against:
        """Return the cases that fit these people in the release."""
        return _Against(self._fit_people(self.after, attacks, whom.recode, whom.counterpart), attacks)

    def _fit_people(
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
        ever = fits_of_people(log, table, which, own[attacks.variant], less)
        known = np.flatnonzero(attacks.start != UNKNOWN)
        if self.before.starts is None or log.starts is None or not len(known):
            return _Fitted(ever, None, known)
        start, person = attacks.start[known], None if less is None or attacks.owner is None else attacks.owner[known]
        then = near(log, table, which[known], own[attacks.variant[known]], start, self.reach, person)
        return _Fitted(ever, then, known)

    def _from_others(self, whom: AttackTargets, attacks: Attacks, fitted: _Fitted) -> _Fitted:
        """Return the cases of the original that fit, without other cases of the person.

        ``fitted`` has those that fit with them.
        """
        if whom.owner is None or attacks.owner is None:
            return fitted
        less = besides(whom.variants, whom.variant, whom.owner, attacks.variant, attacks.owner)
        return self._fit_people(self.before, attacks, None, np.arange(len(whom.variants)), less)

    def outcome(self, whom: AttackTargets, attacks: Attacks, against: _Against | None) -> list[Knowledge]:
        """Return the outcome without and, where possible, with knowledge of the start."""
        a = self._fit_people(self.before, attacks, None, np.arange(len(whom.variants)))
        b = self.with_release(whom, attacks).found
        o = self._from_others(whom, attacks, a)
        n = self.after.variants.cases
        alone = _lone_fit_chance(o.ever, self.before.variants.cases - whom.besides(attacks, with_start=False), n)
        guesses = a.ever.guessed(), b.ever.guessed(), o.ever.known_from_others().guessed()
        control = None
        if against is not None:
            control = against.attacks, against.found.ever.alone(), against.found.ever.guessed()
        out = [self._knowledge(attacks, False, (a.ever.alone(), b.ever.alone(), alone), guesses, control)]
        if a.near is None or b.near is None or o.near is None or (against is not None and against.found.near is None):
            return out
        assert self.before.starts is not None and self.after.starts is not None  # noqa: PT018 - one fact
        some = attacks.rows(a.known)
        alone = _lone_fit_chance(
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
        """Return the result with the original, with the release, and known from others.

        A control group takes the place of the latter.
        """
        singled, guesses = ([_rate(values, attacks) for values in three] for three in (alone, guessed))
        weight = attacks.weight / attacks.weight.sum()
        if control is None:
            beyond = paired_gain(guessed[1] - guessed[2], weight, attacks.variant, attacks.people, attacks.owner)
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


def _lone_fit_chance(found: Fitting, cases: int | IntArray, n: int) -> FloatArray:
    """Return the chance that one of n cases of others alone fits and has the trace."""
    same = found.same - 1
    others = np.maximum(1, cases - 1)
    fit = (same + found.others) / others
    return np.asarray(n * (same / others) * np.power(1 - fit, max(0, n - 1)), dtype=np.float64)


SINGLING_OUT = our_measure(
    "singling_out", lambda pair: singling_out(pair.original, pair.released, control=pair.control, person=pair.person)
)

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
difference from the baseline in the same attacks, with an interval that takes the people for a sample (see ``_beyond``).
This is one attack, not a bound.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures.singling_out.logs import (
    UNKNOWN,
    Fitting,
    Population,
    cases_of,
    fits,
    fitting,
    near,
    population,
    why_without_start,
)

__all__ = ["Knowledge", "Rate", "SinglingOut", "Success", "in_words", "singling_out"]

SIZES = (1, 2, 3, 5, 10)
ATTACKS = 1_000
_FEWEST = 100
_WORK = 1 << 21
"""Pairs of an attack and a variant for each size; larger logs are attacked less often, at least ``_FEWEST`` times."""
_Z = 1.959963984540054
_Z_BEYOND = 2.807033768343811
"""99.5 %: of ten kinds of knowledge that tell nothing, all stay below in 97 of 100 comparisons or more."""
_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Rate:
    """A share of attacks that succeed, with its interval (95 % unless said otherwise; of width 0 where it is exact)."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Success:
    """How often an attacker is right, with the original, with the release and with the baseline."""

    original: Rate
    released: Rate
    baseline: Rate


@dataclass(frozen=True)
class Knowledge:
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
    """By how much more the release lets guess than the baseline, in the same attacks; its interval is at 99.5 % and for
    all people who could have been in the log, so it has a width also where everybody was attacked."""

    @property
    def more(self) -> bool:
        """Whether the release tells more about the people attacked than everybody else's cases do."""
        return self.beyond.low > 1e-9


@dataclass(frozen=True)
class SinglingOut:
    """Risk before and after, for each kind of knowledge."""

    results: tuple[Knowledge, ...]
    hours: float
    """How far from the true start of a case a case may start that still fits."""
    without_start: str | None
    """Why no attacker knows when cases started, if so."""
    seconds: float


@dataclass(frozen=True, eq=False)
class _Attacks:
    """People attacked, as cases of the original."""

    variant: IntArray
    start: IntArray
    """``UNKNOWN`` where it is."""
    patterns: IntArray
    """What is known: codes of the original's activities, an attack a row."""
    weight: FloatArray
    exact: bool


def singling_out(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    sizes: Iterable[int] = SIZES,
    hours: float = 24.0,
    attacks: int = ATTACKS,
    seed: int = 0,
) -> SinglingOut:
    """How often people of the original are singled out, or their trace is guessed, with either log and the baseline.

    ``sizes`` are how many events are known; sizes for which nobody has more events are left out. Where both logs have
    real times that overlap, attackers who also know the start of the case to ``hours`` are tried. Neither log is
    changed and no value depends on the order of rows.
    """
    began = time.perf_counter()
    wanted = sorted(set(sizes))
    if not wanted or wanted[0] < 1 or attacks < 2 or not hours > 0 or seed < 0:
        raise ParameterError("Sizes, attacks and hours must be positive.", parameter="sizes")
    first = original if isinstance(original, Variants) else original.variants
    second = released if isinstance(released, Variants) else released.variants
    if first.cases == 0:
        raise ParameterError("The original log has no cases, so there is nobody to single out.", parameter="original")
    why = why_without_start(original, released)
    variant, start = cases_of(original, first, why is None)
    before = population(first, variant, start, why is None)
    after = population(second, *cases_of(released, second, why is None), why is None)
    places = {label: code for code, label in enumerate(second.labels)}
    recode = np.array([places.get(label, -1) for label in first.labels] + [-1], dtype=np.int64)
    rows = {sequence: row for row, sequence in enumerate(second.sequences)}
    counterpart = np.array([rows.get(sequence, -1) for sequence in first.sequences], dtype=np.int64)
    most = min(attacks, max(_FEWEST, _WORK // max(1, len(first), len(second))))
    results = []
    for size in wanted:
        people = np.flatnonzero(first.lengths[variant] > size)
        if len(people):
            rng = np.random.default_rng([seed, size])
            drawn = _drawn(first, variant[people], start[people], size, most, rng)
            known = start[people] != UNKNOWN
            results += _tried(size, before, after, drawn, recode, counterpart, hours, (len(people), int(known.sum())))
    if not results:
        raise ParameterError(
            f"No case of the original has more than {_events(wanted[0])}, so whoever knows so much finds nothing out.",
            parameter="original",
        )
    return SinglingOut(tuple(results), hours, why, time.perf_counter() - began)


def in_words(result: SinglingOut) -> str:
    """Two sentences about where the release tells most beyond the baseline, or else where the original tells most."""
    more = [row for row in result.results if row.more]
    if more:
        row = max(more, key=lambda row: row.guessed.released.value - row.guessed.baseline.value)
        judged = "So the release tells more about people than others' cases do."
    else:
        row = max(result.results, key=lambda row: row.guessed.original.value)
        judged = "As far as this attack can tell, the release says no more about people than others' cases do."
    start = " and about when it started" if row.with_start else ""
    rate = row.guessed
    return (
        f"Someone who knows {_events(row.size)} of a person's case{start} guesses the rest of it for "
        f"{_percent(rate.original)} of the people with the original, for {_percent(rate.released)} with the release, "
        f"and for {_percent(rate.baseline)} from others' cases. {judged}"
    )


def _events(number: int) -> str:
    return "1 event" if number == 1 else f"{number} events"


def _percent(rate: Rate) -> str:
    return "under 0.1 %" if 0 < rate.value < 0.001 else f"{100 * rate.value:.3g} %"


# Attacks -------------------------------------------------------------------------------------------------------------


def _drawn(
    variants: Variants, variant: IntArray, start: IntArray, size: int, most: int, rng: np.random.Generator
) -> _Attacks:
    """All that can be known of these cases, if that is no more than ``most``, or so much drawn from it."""
    lengths = variants.lengths[variant]
    sizes, number = np.unique(lengths, return_counts=True)
    total = sum(math.comb(n, size) * count for n, count in zip(sizes.tolist(), number.tolist(), strict=True))
    if total <= most:
        chosen = [list(itertools.combinations(range(n), size)) for n in lengths.tolist()]
        who = np.repeat(np.arange(len(variant)), [len(c) for c in chosen])
        positions = np.array([row for c in chosen for row in c], dtype=np.int64)
        weight = np.repeat([1.0 / len(c) for c in chosen], [len(c) for c in chosen])
    else:
        who = rng.integers(0, len(variant), most)
        positions = _positions(lengths[who], size, rng)
        weight = np.ones(most)
    patterns = variants.codes[variants.offsets[variant[who]][:, None] + positions].astype(np.int64)
    return _Attacks(variant[who], start[who], patterns, weight, total <= most)


def _positions(lengths: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """``size`` different positions below each length, uniformly and ascending, by R. W. Floyd's way to draw a set."""
    chosen = np.full((len(lengths), size), -1, dtype=np.int64)
    for j in range(size):
        top = lengths - size + j
        drawn = rng.integers(0, top + 1)
        taken = (chosen[:, :j] == drawn[:, None]).any(axis=1)
        chosen[:, j] = np.where(taken, top, drawn)
    return np.sort(chosen, axis=1)


def _tried(
    size: int,
    before: Population,
    after: Population,
    attacks: _Attacks,
    recode: IntArray,
    counterpart: IntArray,
    hours: float,
    people: tuple[int, int],
) -> list[Knowledge]:
    """The outcome without, and where possible with, knowledge of the start."""
    patterns, which = np.unique(attacks.patterns, axis=0, return_inverse=True)
    which = which.ravel()
    tables = fits(before, patterns), fits(after, recode[patterns])
    own = attacks.variant, counterpart[attacks.variant]
    a, b = fitting(before, tables[0], which, own[0]), fitting(after, tables[1], which, own[1])
    n = after.variants.cases
    out = [
        _knowledge(size, people[0], attacks, (a, b, a.known_from_others()), _drawn_alone(a, before.variants.cases, n))
    ]
    known = np.flatnonzero(attacks.start != UNKNOWN)
    if before.starts is None or after.starts is None or not len(known):
        return out
    some = _Attacks(
        attacks.variant[known], attacks.start[known], attacks.patterns[known], attacks.weight[known], attacks.exact
    )
    reach = int(hours * _HOUR)
    near_a = near(before, tables[0], which[known], own[0][known], some.start, reach)
    near_b = near(after, tables[1], which[known], own[1][known], some.start, reach)
    a, b = a.rows(known), b.rows(known)
    drawn = _drawn_alone(near_a, len(before.starts), len(after.starts))
    out.append(
        _knowledge(
            size, people[1], some, (near_a, near_b, near_a.known_from_others()), drawn, (a, b, a.known_from_others())
        )
    )
    return out


def _drawn_alone(found: Fitting, cases: int, n: int) -> FloatArray:
    """The chance that, of n cases drawn from everybody else's, one alone fits and has the person's trace."""
    same = found.same - 1
    others = max(1, cases - 1)
    fit = (same + found.others) / others
    return np.asarray(n * (same / others) * np.power(1 - fit, max(0, n - 1)), dtype=np.float64)


def _knowledge(
    size: int,
    people: int,
    attacks: _Attacks,
    found: tuple[Fitting, Fitting, Fitting],
    drawn_alone: FloatArray,
    otherwise: tuple[Fitting, Fitting, Fitting] | None = None,
) -> Knowledge:
    """``found`` in the original, in the release, and known from others; ``otherwise`` the same whenever it started."""
    weight = attacks.weight / attacks.weight.sum()

    def rate(values: FloatArray) -> Rate:
        mean = min(1.0, float(values @ weight))
        return Rate(mean, mean, mean) if attacks.exact else _wilson(mean, len(values))

    original, released, baseline = (f.guessed(otherwise[i] if otherwise else None) for i, f in enumerate(found))
    if otherwise is not None:
        baseline = max(baseline, otherwise[2].guessed(), key=lambda values: float(values @ weight))
    return Knowledge(
        size=size,
        with_start=otherwise is not None,
        people=people,
        attacks=len(weight),
        exact=attacks.exact,
        singled_out=Success(rate(found[0].alone()), rate(found[1].alone()), rate(drawn_alone)),
        guessed=Success(rate(original), rate(released), rate(baseline)),
        beyond=_beyond(released - baseline, weight, attacks.variant, people),
    )


def _wilson(share: float, attacks: int) -> Rate:
    """Wilson's interval. Values between 0 and 1 vary less than zeros and ones of the same mean, so it covers these."""
    z2 = _Z * _Z / attacks
    middle = (share + z2 / 2) / (1 + z2)
    reach = math.sqrt(max(0.0, z2 * (share * (1 - share) + z2 / 4))) / (1 + z2)
    return Rate(share, min(share, max(0.0, middle - reach)), max(share, min(1.0, middle + reach)))


def _beyond(gain: FloatArray, weight: FloatArray, trace: IntArray, people: int) -> Rate:
    """The mean gain over the baseline and its interval at 99.5 %, for people of whom those attacked are a sample.

    What is won or lost of all who share a trace comes together, by one accident of the release, so the variance is that
    of sums over traces (a cluster-robust one). Half a person more is taken to gain and half a one to lose, after A.
    Agresti and Y. Min, "Simple improved confidence intervals for comparing matched proportions" (2005): where nobody
    gains or loses, that does not prove that nobody can.
    """
    mean = max(-1.0, min(1.0, float(gain @ weight)))
    together = np.bincount(trace, weights=weight * (gain - mean))
    number = min(people, len(gain))
    reach = _Z_BEYOND * math.sqrt(float(together @ together) + 1 / number**2)
    return Rate(mean, max(-1.0, mean - reach), min(1.0, mean + reach))

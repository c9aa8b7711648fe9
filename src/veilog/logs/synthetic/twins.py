"""Synthetic logs of given sizes, to try methods and budgets before any query.

Such a log has about the given number of cases, activities and events, and exactly the given concentration, as far as
that goes: the share of the cases of the most frequent variant, and of the ten and the hundred most frequent together. A
case goes from activity to activity by chances drawn at random, mostly onward and seldom back, and avoids repeating what
it has done. The sharpness of the chances, and how often a step goes anywhere at all, are fitted to the
concentration. Sizes that are not given are drawn anew for each log, so that several of them show how much they matter;
so are those that noise hides. A log holds nothing of any real log but the sizes.

Lengths of cases may be known by noisy answers only, bin by bin. Let bin b have c_b cases, of about n in all, and the
answer y_b, whose noise has the density exp(-|y_b - c_b| / scale). Before the answers are seen, the shares of the bins
are as likely as any that scatter about a usual shape g: the c_b are independent, of a gamma distribution of shape a *
g_b and mean n * g_b (so that their shares are Dirichlet, of a * g). The shape is that of synthetic logs whose lengths
are not known: of 1 and a Poisson number more, of a mean that itself is gamma-distributed, plus a little of every bin.
The mean length, its variation and the nearness of the shares to the shape (a) are unknown; each triple of them has the
evidence

    product over b of the integral of gamma(c; a * g_b, a / n) * exp(-|y_b - c| / scale) dc,

one integral for each bin, since bins are independent. Then c_b has the mixture, by evidence, of the integrands. Its
mean is the stated number; synthetic logs draw from it. Only answers go in, so all of this uses no epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any

import numpy as np

from veilog._plain import InJson, ToJson
from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import add_times
from veilog.logs.variants import Variants

BINS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 19, 24, 30, 38, 48, 60, 80, 110, 150, 210, 300)
"""Places where the bins of lengths begin; the last has no end."""
ENDS = (*BINS[1:], 2 * BINS[-1] - BINS[-2])
"""Places where they end, as far as anything is made of them."""
MIDDLES: FloatArray = (np.asarray(BINS) + np.asarray(ENDS) - 1) / 2
VARY = (0.2, 1.2)
"""Range of the standard deviation of lengths, as a share of the mean."""
_USUAL = (12.0, 3.0)
"""Usual number of events of a case before any answer, and the factor that it varies by: a guess.
From 500 cases on another (8 or 20, a factor of 2 or 5) moves the mean length by 3 % at most."""
_ANY = 0.01
"""Share of a shape that goes to all bins alike: some cases are like no others."""
_MEANS, _VARIES = np.geomspace(0.3, 250, 60), np.geomspace(*VARY, 6)
_NEAR = np.geomspace(3, 3000, 7)
"""Nearness of a log to its shape, from hardly to indistinguishable with any number of cases."""
_CELLS, _SHARES = 140, 100
"""Number of cells of an integral, and of shares that it is found for; others are interpolated."""


@dataclass(frozen=True, eq=False)
class LengthDistribution:
    """Distribution of the shares of the cases in each bin of lengths."""

    shapes: FloatArray
    """Share of each bin, for each pair of a mean and a variation."""
    chances: FloatArray
    """Probability of each nearness (the rows) to each shape."""
    shares: FloatArray
    """The expected number of cases in each bin, as shares of their sum."""
    length: float
    """The mean length: that of every nearness and shape, and the median of these."""
    _cases: int
    _edges: FloatArray
    _numbers: FloatArray
    _likely: FloatArray

    @staticmethod
    @lru_cache(maxsize=64)
    def of(answers: tuple[int, ...], scale: float, cases: int, longest: int | None = None) -> LengthDistribution:
        """Return the distribution by answers with noise of this ``scale``.

        There are about so many ``cases``, none longer than ``longest``.
        """
        shapes, usual = _usual(longest)
        told = np.asarray(answers, dtype=np.float64)
        edges = _cells(told, scale, cases)
        numbers: FloatArray = np.concatenate([[0.0], (edges[1:-1] + edges[2:]) / 2, edges[-1:]])
        # Each bin's likelihoods may be larger by a factor of their own; the nearest cell has one.
        off = np.abs(told - numbers[:, None]) / scale
        likely: FloatArray = np.exp(off.min(axis=0) - off)
        grid = np.geomspace(min(0.5, shapes[shapes > 0].min()), 1, _SHARES)
        places, bins = np.log(np.where(shapes > 0, shapes, grid[0])), np.arange(len(told))
        places = (places - math.log(grid[0])) / (math.log(grid[1]) - math.log(grid[0]))
        low = np.clip(places.astype(np.int64), 0, _SHARES - 2)
        part, there = places - low, shapes > 0
        evidence, means = np.empty((len(_NEAR), len(shapes))), np.empty((len(_NEAR), *shapes.shape))
        for row, near in enumerate(_NEAR):
            mass = _mass(near * grid, edges * near / cases)
            sums = mass @ likely
            logs, mean = np.log(sums), (mass * numbers) @ likely / sums
            between = (1 - part) * logs[low, bins] + part * logs[low + 1, bins]
            evidence[row] = np.where(there, between, off.min(axis=0) - off[0]).sum(axis=1) + usual
            means[row] = np.where(there, (1 - part) * mean[low, bins] + part * mean[low + 1, bins], 0)
        chances = np.exp(evidence - evidence.max())
        chances /= chances.sum()
        expected = np.einsum("ij,ijk->k", chances, means)
        found = means @ MIDDLES / np.maximum(means.sum(axis=-1), 1e-9)
        length = _median(found.ravel(), chances.ravel())
        return LengthDistribution(shapes, chances, expected / expected.sum(), length, cases, edges, numbers, likely)

    def drawn(self, rng: np.random.Generator) -> FloatArray:
        """Return shares of the bins, drawn from the distribution."""
        near, which = divmod(int(rng.choice(self.chances.size, p=self.chances.ravel())), len(self.shapes))
        shape = self.shapes[which]
        found = np.zeros(len(shape))
        there = np.flatnonzero(shape)
        mass = _mass(_NEAR[near] * shape[there], self._edges * _NEAR[near] / self._cases) * self._likely.T[there]
        for place, weights in zip(there, mass.cumsum(axis=1), strict=True):
            cell = np.searchsorted(weights, rng.random() * weights[-1], side="right")
            found[place] = self._numbers[min(int(cell), len(self._numbers) - 1)]
        shares: FloatArray = found / found.sum() if found.any() else shape
        return shares


def _cells(told: FloatArray, scale: float, cases: int) -> FloatArray:
    """Return where the cells of the integrals begin.
    The more cases, the wider the cells; they are narrower than the noise where answers are much more than noise. The
    first is for no cases at all, the last has no end."""
    top = max(1.5 * cases, float(told.max()) + 10 * scale, 2.0)
    near = told[told > 5 * scale, None] + scale * np.linspace(-5, 5, 21)
    found: FloatArray = np.unique(np.concatenate([[0.0], np.geomspace(0.5, top, _CELLS), near[near > 0.5]]))
    return found


def _median(values: FloatArray, chances: FloatArray) -> float:
    order = np.argsort(values, kind="stable")
    return float(values[order][np.searchsorted(chances[order].cumsum(), 0.5)])


def _mass(shapes: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the chance of a gamma-distributed number in each cell, for some shapes.
    The last cell has no end."""
    from scipy.special import gammainc

    below = gammainc(shapes[:, None], edges[None])
    # What is too unlikely for a float is no less likely than anything else that is.
    found: FloatArray = np.diff(below, axis=1, append=1.0) + 1e-300
    return found


@lru_cache(maxsize=8)
def _usual(longest: int | None) -> tuple[FloatArray, FloatArray]:
    """Return the shapes, and the logarithm of how usual each is."""
    from scipy.special import gammaln

    more = np.arange(4 * ENDS[-1])
    bins = np.searchsorted(BINS, more + 1, side="right") - 1
    shapes = np.empty((len(_MEANS) * len(_VARIES), len(BINS)))
    for row, (mean, vary) in enumerate((mean, vary) for mean in _MEANS for vary in _VARIES):
        form = 1 / vary**2
        logs = gammaln(more + form) - gammaln(form) - gammaln(more + 1)
        logs += form * math.log(form / (mean + form)) + more * math.log(mean / (mean + form))
        shapes[row] = np.bincount(bins, weights=np.exp(logs), minlength=len(BINS))
    shapes = (1 - _ANY) * shapes / shapes.sum(axis=1, keepdims=True) + _ANY / len(BINS)
    if longest is not None:
        shapes[:, np.asarray(BINS) > max(0, longest)] = 0
        shapes /= shapes.sum(axis=1, keepdims=True)
    means = np.repeat(1 + _MEANS, len(_VARIES))
    usual: FloatArray = -((np.log(means / _USUAL[0]) / math.log(_USUAL[1])) ** 2) / 2
    return shapes, usual


_ONCE = (0.5, 4.0)
"""Range of how seldom activities are repeated, as the power of a random number."""
_TURNS, _PREFERRED, _KEPT = 3, 12, 2**28
"""Turns by chance, then candidates, of a case that repeats an activity; and bytes of memory for repeats.
It takes the likeliest candidate that it has not done."""


@dataclass(frozen=True)
class RandomProcess:
    """Random parts of a process: chances of steps before sharpening, and ends."""

    leanings: FloatArray
    """Leaning of each activity (the last row: the start) towards each other."""
    usual: FloatArray
    """Frequency of each activity at a step that goes anywhere."""
    ends: FloatArray
    again: FloatArray
    """Chance that a case that has done an activity does it again."""

    @staticmethod
    def drawn(rng: np.random.Generator, number: int, length: float, onward: float, once: float) -> RandomProcess:
        """Return a process with cases that go ``onward`` and repeat activities or not.

        They do activities ``once`` more (1) or less (0).
        """
        often = 1.0 / (rng.permutation(number).astype(np.float64) + 1.0)
        usual: FloatArray = (often / often.sum()).astype(np.float64)
        stride = max(1.0, 1.5 * number / max(1.0, length))
        ahead = np.arange(number)[None] - np.append(np.arange(number), -1)[:, None]
        way = np.where(ahead > 0, -(ahead - 1) / stride, -2.0 - np.abs(ahead) / stride)
        way = np.maximum(np.where(ahead == 0, -1.5, way), -6.0)
        chance = rng.gumbel(size=(number + 1, number))
        late = np.log(np.linspace(0.02, 1.0, number))
        ends = rng.gumbel(size=number) + 4 * onward * late
        again = rng.random(number) ** np.interp(once, (0, 1), _ONCE)
        return RandomProcess(chance + 2 * onward * way + 0.7 * np.log(usual), usual, ends, again)

    @cached_property
    def preferred(self) -> IntArray:
        """The activities that each row leans to most, the first one first."""
        most = min(_PREFERRED, len(self.usual))
        return np.argsort(-self.leanings, axis=1, kind="stable")[:, :most]

    def chances(self, sharpness: float, slip: float) -> FloatArray:
        """Return the chances of each step; the smaller ``sharpness``, the sharper."""
        leanings = self.leanings / sharpness
        p = np.exp(leanings - leanings.max(axis=1, keepdims=True))
        found: FloatArray = (1 - slip) * p / p.sum(axis=1, keepdims=True) + slip * self.usual
        return found


def _step(rng: np.random.Generator, flat: FloatArray, at: IntArray, number: int) -> IntArray:
    """Return the next activities of cases.
    ``flat`` has the sums of the chances of all rows, each beginning at the row's number."""
    found = np.searchsorted(flat, at + rng.random(len(at)), side="right") - at * number
    kept: IntArray = np.minimum(found, number - 1)
    return kept


@dataclass(frozen=True)
class _Done:
    """Activities that each case has done.
    If that would be too much to keep, some activities share a place."""

    kept: BoolArray

    @staticmethod
    def nothing(cases: int, number: int) -> _Done:
        return _Done(np.zeros((cases, min(number, max(16, _KEPT // max(1, cases)))), dtype=np.bool_))

    def already(self, who: IntArray, at: IntArray) -> BoolArray:
        found: BoolArray = self.kept[who, at % self.kept.shape[1]]
        return found

    def note(self, who: IntArray, at: IntArray) -> None:
        self.kept[who, at % self.kept.shape[1]] = True

    def first(self, who: IntArray, preferred: IntArray, otherwise: IntArray) -> IntArray:
        """Return the first preferred activity that each has not done, if there is one."""
        new = ~self.kept[who[:, None], preferred % self.kept.shape[1]]
        liked = preferred[np.arange(len(who)), new.argmax(axis=1)]
        found: IntArray = np.where(new.any(axis=1), liked, otherwise)
        return found


@dataclass(frozen=True)
class Walks:
    """Cases of a process: for each step those under way, and their activities."""

    cases: int
    steps: tuple[tuple[IntArray, IntArray], ...]

    @staticmethod
    def of(process: RandomProcess, sharpness: float, slip: float, ending: IntArray) -> Walks:
        """Return the cases of a process with the lengths of ``ending``; always the same."""
        rng = np.random.default_rng(7)
        number, cases = len(process.usual), int(ending.sum())
        sums = np.cumsum(process.chances(sharpness, slip), axis=1)
        flat = (sums / sums[:, -1:] + np.arange(number + 1)[:, None]).ravel()
        ends = process.ends / max(sharpness, 0.05)
        alive = np.arange(cases - int(ending[0]))
        at = np.full(len(alive), number)
        done = _Done.nothing(cases, number)
        steps = []
        for stop in ending[1:].tolist():
            before, at = at, _step(rng, flat, at, number)
            for turn in range(_TURNS):
                again = np.flatnonzero(done.already(alive, at))
                again = again[rng.random(len(again)) >= process.again[at[again]]]
                if turn < _TURNS - 1:
                    at[again] = _step(rng, flat, before[again], number)
                else:
                    at[again] = done.first(alive[again], process.preferred[before[again]], at[again])
            done.note(alive, at)
            steps.append((alive, at))
            if 0 < stop < len(alive):
                keys = ends[at] + rng.gumbel(size=len(alive))
                stays = np.ones(len(alive), dtype=np.bool_)
                stays[np.argpartition(-keys, stop - 1)[:stop]] = False
                alive, at = alive[stays], at[stays]
        return Walks(cases, tuple(steps))

    @cached_property
    def counts(self) -> IntArray:
        """Numbers of cases of the variants, descending; a hash distinguishes variants."""
        marks = np.zeros(self.cases, dtype=np.uint64)
        for who, at in self.steps:
            mixed = marks[who] * np.uint64(0x9E3779B97F4A7C15) + at.astype(np.uint64) + np.uint64(1)
            marks[who] = mixed ^ (mixed >> np.uint64(29))
        found: IntArray = np.sort(np.unique(marks, return_counts=True)[1])[::-1]
        return found

    def variants(self, names: Sequence[str]) -> Variants:
        who = np.concatenate([np.zeros(0, dtype=np.int64), *(who for who, _ in self.steps)])
        at = np.concatenate([np.zeros(0, dtype=np.int64), *(at for _, at in self.steps)])
        order = np.argsort(who, kind="stable")
        offsets = np.searchsorted(who[order], np.arange(self.cases + 1))
        return Variants.from_arrays(names, at[order], offsets)


HEADS = {"frequent": 1, "ten": 10, "hundred": 100}
"""Number of the most frequent variants of each known share, by its name."""
MOST_CASES, MOST_ACTIVITIES, MOST_LENGTH = 10_000_000, 5_000, 1_000
_FIT_CASES, _COUNT_CASES = 5_000, 20_000
"""Most cases to fit shares on, and most to fit the number of variants, which needs all cases."""
_SLIPS = (0.01, 0.05, 0.15, 0.0)
"""Chances of a step to go anywhere, tried in turn."""
_SHARPNESS = (math.log(0.1), math.log(6.0), 7)
_EVENLY = np.array([0.8192, 0.6711, 0.5497])
"""Steps from the shape of one log to that of the next, to spread those of a few evenly.
They are the additive sequence of three dimensions."""
_DRAWS, _GOOD = 4, 0.05
"""Most random processes to try, and the distance to the given concentration that is near enough."""


@dataclass(frozen=True)
class Sizes(ToJson):
    """Size of a log, and the spread of cases over variants; None for unknown parts."""

    cases: int
    length: float
    """Events of a case, on average."""
    activities: int | None = None
    variants: int | None = None
    """Number of variants."""
    frequent: float | None = None
    """Share of the cases that have the most frequent variant."""
    ten: float | None = None
    """Share of the cases that have one of the ten most frequent variants."""
    hundred: float | None = None
    lengths: Annotated[tuple[float, ...] | None, InJson(left_out="at its default")] = None
    """Share of the cases in each bin of lengths."""
    off: Annotated[tuple[float, ...] | None, InJson(left_out="at its default")] = None
    """Standard deviations of the noise, in cases; None without noise, or if it is unknown.
    They are those of the number of cases, of the cases of the most frequent variants, and of each bin
    that was answered."""
    answers: Annotated[tuple[int, ...] | None, InJson(left_out="at its default")] = None
    """The number of cases in each bin of lengths as it was answered, with noise."""
    held: Annotated[tuple[float, ...] | None, InJson(left_out="at its default")] = None
    """Cases of the most frequent variants (one, ten, a hundred) by their answers alone, possible or not."""

    def __post_init__(self) -> None:
        _check("cases", self.cases, 1, MOST_CASES)
        _check("length", self.length, 0, MOST_LENGTH)
        if self.activities is not None:
            _check("activities", self.activities, 1, MOST_ACTIVITIES)
        if self.variants is not None:
            _check("variants", self.variants, 1, self.cases)
        if self.off is not None and not (len(self.off) in (2, 3) and all(0 <= off < math.inf for off in self.off)):
            raise ParameterError("twin-offset-invalid", parameter="off", off=self.off)
        if self.answers is not None and len(self.answers) != len(BINS):
            raise ParameterError("twin-bins-wrong", parameter="answers", number=len(BINS), number_2=len(self.answers))
        if self.held is not None and len(self.held) != len(HEADS):
            raise ParameterError("twin-heads-wrong", parameter="held", number=len(HEADS), number_2=len(self.held))
        for name in HEADS:
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise ParameterError("twin-share-out-of-range", parameter=name, share=share)

    @staticmethod
    def of(variants: Variants) -> Sizes:
        """Return the exact sizes of a log: raw numbers, for its owner alone."""
        if not variants.cases:
            raise ParameterError("twin-log-without-cases", parameter="log")
        counts = np.sort(variants.counts)[::-1]
        places = np.searchsorted(BINS, variants.lengths, side="right") - 1
        bins = np.bincount(places, weights=variants.counts, minlength=len(BINS)) / variants.cases
        heads: dict[str, Any] = {name: float(counts[:head].sum() / variants.cases) for name, head in HEADS.items()}
        return Sizes(
            cases=variants.cases,
            length=variants.events / variants.cases,
            activities=max(1, len(variants.labels)),
            variants=len(variants),
            lengths=tuple(bins.tolist()),
            **heads,
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """Sizes that would make synthetic logs more alike, in the words of the options."""
        unknown = {"activities": self.activities, "variants": self.variants, "frequent": self.frequent or self.ten}
        return tuple(name for name, value in unknown.items() if value is None)


def _check(name: str, value: float, least: float, most: float) -> None:
    whole = name != "length"
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not (right and least <= value <= most):
        kind = "whole number" if whole else "number"
        raise ParameterError(
            "twin-number-out-of-range", parameter=name, name=name, kind=kind, least=least, most=most, value=value
        )


@lru_cache(maxsize=32)
def twin_of(sizes: Sizes, seed: int, labels: tuple[str, ...] | None = None, longest: int | None = None) -> Variants:
    """Return a synthetic log of these sizes; the same seed gives the same one.

    ``labels`` are the names of its activities, where there are names for them; no case is longer than ``longest``.
    """
    rng = np.random.default_rng([20, seed])
    number = sizes.activities or _unknown_activities(rng, sizes.length)
    names = _names(number) if labels is None else labels
    sizes = _draw_sizes(rng, sizes, longest)
    walks = _fit_walks(rng, sizes, len(names), longest, (0.5 + seed * _EVENLY) % 1)
    return _match_shares(walks.variants(names), sizes)


def _draw_sizes(rng: np.random.Generator, sizes: Sizes, longest: int | None) -> Sizes:
    """Return sizes of a log that may as well have given the same answers."""
    if sizes.off is None:
        return sizes
    scale, beside = sizes.off[:2]
    cases = max(1, min(MOST_CASES, round(_likely(rng, sizes.cases, scale, 1, MOST_CASES))))
    found: dict[str, Any] = {}
    answered = sizes.held or [sizes.cases * (getattr(sizes, name) or 0) for name in HEADS]
    before, held = 0, float(cases)
    for (name, number), answer in reversed(list(zip(HEADS.items(), answered, strict=True))):
        if getattr(sizes, name) is not None:
            # Their cases are half an answer and half of all cases, so half of what these are off. Of fewer variants
            # each has no fewer cases than of more.
            middle = answer + (cases - sizes.cases) / 2
            least = held * number / before if before else min(number, cases)
            # There may be no more variants than these: how many there are is of any order of magnitude up to all cases.
            whole = 0.0 if before or cases < 2 else min(1.0, math.log(number) / math.log(cases))
            before, held = number, _likely(rng, middle, beside, max(1.0, least), held, whole)
            found[name] = held / cases
    variants = None if sizes.variants is None else min(sizes.variants, cases)
    if sizes.answers is not None and len(sizes.off) > 2:
        believed = LengthDistribution.of(sizes.answers, sizes.off[2] / math.sqrt(2), cases, longest)
        found["lengths"] = tuple(believed.drawn(rng).tolist())
    return replace(sizes, cases=cases, variants=variants, off=None, answers=None, held=None, **found)


def _likely(
    rng: np.random.Generator, answer: float, scale: float, least: float, most: float, whole: float = 0.0
) -> float:
    """Return a number that may have given a noisy answer.
    Every order of magnitude is equally usual; ``whole`` is the chance that it is the most before the answer is seen."""
    low, high = max(least, answer - 8 * scale), min(most, answer + 8 * scale)
    if low >= high:
        return min(most, max(least, answer))
    numbers = np.geomspace(low, high, 400)
    # Of all orders of magnitude between the least and the most these are so many.
    usual = np.full(400, (1 - whole) * math.log(high / low) / math.log(most / least) / 400)
    if high == most:
        usual[-1] += whole
    chances = usual * np.exp(-math.sqrt(2) * np.abs(numbers - answer) / scale)
    return float(rng.choice(numbers, p=chances / chances.sum()))


def _match_shares(made: Variants, sizes: Sizes) -> Variants:
    """Return the variants with exactly the given cases of the most frequent ones.
    A process has these only nearly."""
    order = np.argsort(-made.counts, kind="stable")[: sizes.variants]
    counts = made.counts[order].astype(np.float64)
    told = {number: share for name, number in HEADS.items() if (share := getattr(sizes, name)) is not None}
    ends = np.array([*(end for end in told if end < len(counts)), len(counts)])
    shares = np.array([0.0, *list(told.values())[: len(ends) - 1], 1.0])
    wanted = np.diff(np.maximum.accumulate(shares)) * made.cases
    means = np.append(wanted / np.diff(ends, prepend=0), 0.0)
    most = float(made.cases)
    for begin, end, sum_, least in zip([0, *ends[:-1]], ends, wanted, means[1:], strict=True):
        block = counts[begin:end]
        for _ in range(100):  # none has more than one before it, or fewer than those after it have on average
            block *= sum_ / max(1e-9, block.sum())
            np.clip(block, min(least, most), most, out=block)
            if abs(block.sum() - sum_) < 1e-3 * sum_:
                break
        most = float(block[-1])
    if not counts.any():
        return made
    sums = np.rint(np.cumsum(counts) * (made.cases / counts.sum())).astype(np.int64)
    found = np.diff(sums, prepend=0)
    kept = made.sequences.take(order[found > 0])
    return Variants.from_arrays(made.labels, kept.codes, kept.offsets, found[found > 0])


def log_of(variants: Variants, seed: int) -> EventLog:
    """Return a synthetic log with its cases in random order and times of no meaning."""
    rng = np.random.default_rng([21, seed])
    rows = rng.permutation(np.repeat(np.arange(len(variants)), variants.counts))
    cases = variants.sequences.take(rows)
    return add_times(variants.labels, cases.codes, cases.offsets, seed, f"made-up twin, seed {seed}")


def _names(number: int) -> tuple[str, ...]:
    digits = len(str(number))
    return tuple(f"Activity {i:0{digits}d}" for i in range(1, number + 1))


def _unknown_activities(rng: np.random.Generator, length: float) -> int:
    """Return a number between half as many and four times as many as events of a case."""
    low, high = math.log(max(3.0, length / 2)), math.log(max(6.0, 4 * length))
    return round(math.exp(rng.uniform(low, high)))


def _draw_lengths(rng: np.random.Generator, sizes: Sizes, longest: int | None, vary: float) -> IntArray:
    """Return how many cases have 0, 1, 2, ... events.
    Unknown lengths differ more, the more they ``vary`` (0 to 1)."""
    most = min(MOST_LENGTH, longest or MOST_LENGTH)
    if sizes.lengths is not None:
        shares = np.maximum(np.asarray(sizes.lengths, dtype=np.float64), 0)
        which = rng.choice(len(BINS), size=sizes.cases, p=shares / shares.sum())
        lengths = rng.integers(np.asarray(BINS)[which], np.asarray(ENDS)[which])
    else:
        # How much lengths vary differs from log to log; cases of the most frequent variant have the usual length.
        form, share = 1 / np.interp(vary, (0, 1), VARY) ** 2, min(sizes.frequent or 0.0, 0.99)
        frequent = int(share * sizes.cases)
        usual = min(1 + max(0.0, sizes.length - 1) * max(0.0, 1 - 1 / form), sizes.length / max(share, 1e-9))
        rest = max(0.0, (sizes.length - share * round(usual)) / (1 - share) - 1)
        lengths = 1 + rng.poisson(rest * rng.gamma(form, 1 / form, size=sizes.cases))
        lengths[:frequent] = max(1, round(usual))
    return np.bincount(np.minimum(lengths, most)).astype(np.int64)


def _fit_walks(rng: np.random.Generator, sizes: Sizes, number: int, longest: int | None, shape: FloatArray) -> Walks:
    """Return the cases of a process with about the given concentration.
    Its sharpness and its slips are fitted. The first that is tried has this shape."""
    enough = _COUNT_CASES if sizes.variants else _FIT_CASES
    shares = _concentration_shares(replace(sizes, variants=None)) if sizes.cases > enough else {}
    told = shares or _concentration_shares(sizes)
    best: tuple[float, RandomProcess, float, float, IntArray] | None = None
    for _ in range(_DRAWS):
        vary, onward, once = shape.tolist()
        shape = rng.random(len(shape))
        ending = _draw_lengths(rng, sizes, longest, vary)
        length = float((ending * np.arange(len(ending))).sum() / sizes.cases)
        process = RandomProcess.drawn(rng, number, length, onward, once)
        if not told:
            sharpness = math.exp(rng.uniform(math.log(0.1), math.log(0.7)))
            return Walks.of(process, sharpness, float(rng.choice(_SLIPS)), ending)
        # With shares alone they are the same of fewer cases.
        tried = np.ceil(ending * (_FIT_CASES / sizes.cases)).astype(np.int64) if shares else ending
        for slip in _SLIPS:
            tries = np.linspace(*_SHARPNESS)
            for _ in range(2):
                off = [_distance(told, Walks.of(process, math.exp(x), slip, tried)) for x in tries]
                nearest = int(np.argmin(off))
                if best is None or off[nearest] < best[0]:
                    best = (off[nearest], process, math.exp(tries[nearest]), slip, ending)
                step = (tries[1] - tries[0]) / 4
                tries = tries[nearest] + step * np.array([-2, -1, 1, 2])
            if best is not None and best[0] < _GOOD:
                return Walks.of(*best[1:])
    assert best is not None
    return Walks.of(*best[1:])


def _concentration_shares(sizes: Sizes) -> dict[str, float]:
    """Return the known concentration, as shares of the cases."""
    known = {name: share for name in HEADS if (share := getattr(sizes, name)) is not None}
    return known | ({"variants": sizes.variants / sizes.cases} if sizes.variants else {})


def _distance(told: dict[str, float], walks: Walks) -> float:
    """Return the squared differences of log odds to the given concentration."""
    counts, cases = walks.counts, walks.cases
    found = {"variants": len(counts) / cases} | {name: counts[:n].sum() / cases for name, n in HEADS.items()}
    return sum((_odds(found[name], cases) - _odds(share, cases)) ** 2 for name, share in told.items())


def _odds(share: float, cases: int) -> float:
    kept = min(1.0, max(share, 1 / cases))
    return math.log(kept / (1 - kept + 1e-3) + 1e-4)

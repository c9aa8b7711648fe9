"""Growth of prefix trees under a budget: shares of depths, levels, and refusals."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.methods._prefix_tree.tree import (
    Noise,
    NoisyPrefixTree,
    TreeSettings,
    assign_continuation,
    assign_deepest,
    length_histogram,
    noise_threshold,
    quantile,
    to_variants,
)
from veilog.methods.method import Request, advised, as_asked
from veilog.methods.thresholds import remark_made_by_noise
from veilog.privacy.account.budgets import SMALLEST_EPSILON
from veilog.privacy.curator import Curator
from veilog.privacy.histograms import MOST_ROUNDS, Assign, Rounds, SparseHistogram, rounds_pay, strength_within
from veilog.privacy.mechanisms.mechanism import Laplace
from veilog.rules.rules import ReleaseRules

DEPTH_SHARE = Fraction(1, 20)
"""Share of the budget that finds out the depth where the user does not give it."""
ENDED = 0.8
"""Share of the traces that should be over at that depth (the papers: 80 to 90 %)."""
BEYOND_NOISE = 1e-6
"""Empty prefixes expected above the highest count that the curator is asked for."""
MOST_NOISE = 10_000
"""Empty prefixes that may survive a level, whatever threshold is asked for."""
LARGEST_FRONTIER = 20_000_000
"""Most bins at a level as published, where a tree may grow without end."""


NEVER = np.iinfo(np.int64).max
"""Bound that no count exceeds."""


@dataclass(frozen=True)
class Screen:
    """Bounds that the counts of a level's continuations must exceed to survive."""

    least: int
    """Bound for continuations that break no rules."""
    of_bins: IntArray | None = None
    """Bound of each continuation, where some have a higher one."""

    def of(self, bins: IntArray) -> int | IntArray:
        """Return the bounds of these continuations."""
        return self.least if self.of_bins is None else self.of_bins[bins]


@dataclass(frozen=True)
class TreeBudget:
    """Use of a budget: the noise of each level, and the epsilon of the final counts."""

    levels: tuple[Noise, ...]
    counts: Fraction
    rounds: Rounds | None = None
    """Histograms of the levels, if charged together."""
    prior: TreePrior | None = None
    """Public knowledge about the cases."""
    reach: float = 1.0
    """The part of its length that a usual case has at the depth, where that was found."""

    def ask(self, curator: Curator, assign: Assign, size: int, level: int, keep_above: int) -> SparseHistogram:
        """Return the histogram of a level."""
        if self.rounds is not None:
            return self.rounds.histogram(assign, size, keep_above=keep_above)
        purpose = Message("prefixes-of-length", level=level + 1)
        return curator.histogram(assign, size, self._epsilon(level), keep_above=keep_above, purpose=purpose)

    def left(self, level: int) -> Fraction:
        """Return the epsilon that a tree leaves when it ends before this level.

        It is 0 if the levels were charged together.
        """
        if self.rounds is not None:
            return Fraction(0)
        return sum((self._epsilon(i) for i in range(level, len(self.levels))), start=Fraction(0))

    def _epsilon(self, level: int) -> Fraction:
        noise = self.levels[level]
        assert isinstance(noise, Laplace)
        return 1 / noise.scale


def plan_budget(curator: Curator, request: Request, epsilon: Fraction, settings: TreeSettings) -> TreeBudget:
    """Return the use of epsilon and delta by a tree, after a query for its depth.

    A depth that is given needs no query. With a delta the levels get Gaussian noise, charged together, where that is
    narrower (:func:`rounds_pay`). With a prior, the number of cases is asked if their lengths are not.
    """
    depth, delta = settings.depth, request.delta
    prior, cases, reach = TreePrior.of(request, curator.activities), 0, 1.0
    if prior is not None or depth is None:
        share = epsilon * DEPTH_SHARE
        if depth is None:
            steps, counts = length_histogram(curator, share)
            cases = int(counts.sum())
            usual, pays = quantile(steps, counts, ENDED), depth_that_pays(cases, epsilon, delta)
            depth, reach = min(usual, pays), min(1.0, pays / usual)
        else:
            cases = curator.count(share)
        epsilon -= share
    for_counts = epsilon * Fraction(str(settings.count_share))
    if prior is not None:
        prior = prior.counted(cases, for_counts)
    shares = split_budget(epsilon - for_counts, depth, settings.split)
    if rounds_pay(shares, epsilon - for_counts, delta):
        rounds = curator.rounds(
            shares, epsilon - for_counts, delta, purpose=Message("prefixes-up-to-length", depth=depth)
        )
        return TreeBudget(rounds.noises, for_counts, rounds, prior, reach)
    if delta:
        request.remark(Message("tree-delta-not-needed", depth=depth))
    return TreeBudget(tuple(Laplace(1 / share) for share in shares), for_counts, None, prior, reach)


def grow(
    curator: Curator,
    request: Request,
    plan: TreeBudget,
    screen: Callable[[NoisyPrefixTree, Noise, BoolArray | None], Screen],
) -> tuple[NoisyPrefixTree, Fraction]:
    """Return the tree of surviving prefixes, and the epsilon left if it ended early.

    That epsilon is not saved: the requested budget is charged, whatever the noise did. All continuations must exceed
    more where the tree would run away else. The curator is asked for no more than noise can be expected to reach: the
    chance of anything beyond has so many digits that drawing with it takes long. Continuations that no case can have
    that obeys the rules of the request are not kept, and do not count for a threshold. Prefixes of a prior are kept
    whatever is answered.
    """
    tree, obeying = NoisyPrefixTree(curator.activities), obeying_continuations(curator.activities, request.rules)
    for level, noise in enumerate(plan.levels):
        size = tree.frontier * tree.width
        if size == 0:
            return tree, plan.left(level)
        request.progress(f"prefixes of length {level + 1}", level / len(plan.levels))
        possible = obeying(tree)
        chosen = screen(tree, noise, possible)
        least = max(chosen.least, noise_threshold(size, MOST_NOISE, noise))
        keep_above = min(least, noise_threshold(size, BEYOND_NOISE, noise))
        answer = plan.ask(curator, assign_continuation(tree), size, level, keep_above)
        keep = answer.counts > np.maximum(chosen.of(answer.bins), least)
        keep &= possible is None or possible[answer.bins]
        bins, counts = answer.bins[keep], answer.counts[keep]
        if plan.prior is None:
            tree = tree.grown(bins, counts, least)
            continue
        known = plan.prior.continuations(tree)
        every = np.union1d(bins, known if possible is None else known[possible[known]])
        counted = np.isin(every, bins)
        all_counts = np.zeros(len(every), dtype=np.int64)
        all_counts[counted] = counts
        tree = tree.grown(every, all_counts, least, ~counted)
    return tree, Fraction(0)


def obeying_continuations(
    activities: tuple[str, ...], rules: ReleaseRules | None
) -> Callable[[NoisyPrefixTree], BoolArray | None]:
    """Return a function for the continuations that obey the rules; None without rules.

    It returns those of a tree's last level that a case can have, and is called once a level.
    """
    if rules is None:
        return lambda tree: None
    automata = rules.automata(activities)
    states = automata.start(1)

    def obeying(tree: NoisyPrefixTree) -> BoolArray:
        nonlocal states
        if tree.levels:
            parents, symbols = np.divmod(tree.levels[-1].open_bins, tree.width)
            states = automata.advanced(states[parents], symbols)
        return automata.open(states).ravel()

    return obeying


def published_variants(
    curator: Curator,
    request: Request,
    epsilon: Fraction,
    levels: int,
    screen: Callable[[NoisyPrefixTree], Screen],
    *,
    prune_ended: bool,
    unfinished: bool = True,
) -> Variants:
    """Return the complete prefixes with counts, by the noise of each depth.

    Every depth has Laplace noise of scale 1/epsilon. Complete are traces that have ended and, if ``unfinished`` ones
    are released, all prefixes of the last level. With ``prune_ended`` the screen prunes them as all others, else only
    those that can never survive.
    """
    tree = NoisyPrefixTree(curator.activities)
    released: list[IntArray] = []
    ends = 0
    for level in range(levels):
        request.progress(f"prefixes of length {level + 1}", level / levels)
        size = tree.frontier * tree.width
        refuse_runaway(size, level)
        chosen, purpose = screen(tree), Message("prefixes-of-length", level=level + 1)
        answer = curator.histogram(assign_continuation(tree), size, epsilon, keep_above=0, purpose=purpose)
        last = unfinished and level == levels - 1
        complete = np.full(len(answer.bins), last) | (answer.bins % tree.width == tree.width - 1)
        least = chosen.of(answer.bins)
        spared = complete & (least < NEVER) & (not prune_ended)
        keep = np.asarray((answer.counts > least) | spared)
        ends += size if last else tree.frontier
        tree = tree.grown(answer.bins[keep], answer.counts[keep])
        released.append(np.where(complete[keep], answer.counts[keep], 0))
    cases = sum(int(counts.sum()) for counts in released)
    remark_made_by_noise(request, Laplace(1 / epsilon), ends, cases)
    return to_variants(tree, released)


def published_threshold(width: int, epsilon: Fraction, threshold: int | None) -> int:
    """Return P; by default noise gives a prefix half a continuation on average."""
    return threshold if threshold is not None else noise_threshold(width, 0.5, Laplace(1 / epsilon)) + 1


def published_epsilon(request: Request) -> Fraction:
    """Return the epsilon of a level: epsilon - ln(1 - delta), rounded up.

    TraVaS's authors gave their trees such noise, that of diffprivlib's Laplace mechanism with a delta. It is charged as
    Laplace noise of scale 1 / (epsilon - ln(1 - delta)), which it is, without a delta.
    """
    if not request.delta:
        return request.epsilon
    more = -math.log(1 - request.delta) if request.delta > Fraction(1, 2) else -math.log1p(-float(request.delta))
    return request.epsilon + Fraction(math.ceil(more * 10**12), 10**12)


def refuse_runaway(size: int, level: int) -> None:
    if size > LARGEST_FRONTIER:
        raise ParameterError("tree-runs-away", parameter="threshold", level=level + 1, size=size)


def split_budget(epsilon: Fraction, depth: int, split: str) -> tuple[Fraction, ...]:
    """Return the shares of the levels, which add up to epsilon exactly.

    They are equal, or in proportion to 1, 1/2, 1/3, ...
    """
    weights = [Fraction(1, n + 1) if split == "decreasing" else Fraction(1) for n in range(depth)]
    whole = sum(weights)
    shares = [epsilon * weight / whole for weight in weights]
    if split == "decreasing":
        # Exact harmonic fractions have enormous denominators; all but the first level's are rounded down.
        shares = [Fraction(int(share * 10**15), 10**15) for share in shares]
    return (epsilon - sum(shares[1:]), *shares[1:])


def depth_that_pays(cases: int, budget: Fraction, delta: Fraction) -> int:
    """Return the largest depth worth its budget, by a rule found on public logs.

    A smaller depth is enough if four of five traces have ended there. Every level thins the budget of the others. So
    the depth d times the scale of the noise is at most n / 16, with n cases in all. A depth of 5 is right in any case.
    The scale is d over the budget. With a delta it may be less: the square root of d, over the strength of one Gaussian
    query times the square root of 2.
    """
    room = max(cases, 0) / 16
    pays = max(5, int(math.sqrt(float(budget) * room)))
    if rounds_pay([Fraction(1)] * pays, budget, delta):
        strength = strength_within(float(budget), float(delta))
        pays = min(max(pays, int((math.sqrt(2) * strength * room) ** (2 / 3))), MOST_ROUNDS)
    return pays


def refuse_too_small(
    curator: Curator,
    epsilon: Fraction,
    settings: TreeSettings,
    threshold: int | None,
    rule_share: Fraction,
) -> None:
    """Refuse a budget at which no prefix can survive, before anything is asked.

    This holds for every log up to the largest size expected. Shares too small to draw noise with are refused, too.
    """
    depth, largest_log = settings.depth, settings.largest_log
    if threshold is not None and threshold > largest_log:
        raise ParameterError(
            "tree-threshold-too-high", parameter="threshold", threshold=threshold, largest_log=largest_log
        )
    for_counts = Fraction(str(settings.count_share))
    for_tree = (1 - rule_share) * (1 - for_counts)
    # A split in proportion to 1, 1/2, ... leaves the deepest of d levels more than 1/(10 d) of the whole.
    parts = [for_tree / (10 * (depth or 50)), for_counts * (1 - rule_share), DEPTH_SHARE, rule_share / 10]
    enough = float(SMALLEST_EPSILON / min(part for part in parts if part))
    needed = 0
    if threshold is None:
        first = epsilon * for_tree / (depth or 1)
        needed = noise_threshold(len(curator.activities) + 1, settings.noise_prefixes, Laplace(1 / first)) + 1
        enough = max(enough, float(epsilon) * needed / largest_log)
    if epsilon >= enough:
        return
    reason = Message("tree-shares-too-small")
    if needed > largest_log:
        reason = Message("tree-prefix-hidden", needed=needed, largest_log=largest_log)
    raise ParameterError(
        "tree-epsilon-unsuitable",
        parameter="epsilon",
        advice=advised(enough, "epsilon-enough"),
        as_asked=as_asked(epsilon),
        reason=reason,
    )


# A prior of a prefix tree --------------------------------------------------------------------------------------------

# Prefixes that are in it whatever noise shows, and traces by which rare cases go on.
#
# The cases of a prior are public. A prefix that is expected to have at least as many cases as the noise of the
# final counts deviates is counted, so no threshold removes it. All other prefixes have to survive, as without a
# prior. Cases that stop at a prefix that the prior knows go on as its cases do.
#
# Privacy: which bins a level or the final counts have follows from the prior, which is public, and from earlier
# noisy answers. A case is in at most one bin of each, as without a prior, so their sensitivity is 1 as before.


@dataclass(frozen=True)
class TreePrior:
    """The cases of a prior, and the part of them from which on a prefix is counted."""

    variants: Variants
    least: float = 1.0

    @staticmethod
    def of(request: Request, activities: tuple[str, ...]) -> TreePrior | None:
        """Return the prior of a request with its public activities; None if it is empty."""
        if request.prior is None:
            return None
        variants = request.prior.of_activities(activities)
        if not variants.cases:
            request.remark(Message("prior-without-activities"))
            return None
        return TreePrior(variants)

    def counted(self, cases: int, epsilon: Fraction) -> TreePrior:
        """Return it with the deviation of counts at ``epsilon``, as a share of the cases."""
        return TreePrior(self.variants, math.sqrt(Laplace(1 / epsilon).variance) / max(cases, 1))

    def continuations(self, tree: NoisyPrefixTree) -> IntArray:
        """Return the continuations of a tree's last level that are counted, ascending."""
        bins = np.asarray(assign_continuation(tree)(self.variants.sequences))
        found, place = np.unique(bins[bins >= 0], return_inverse=True)
        cases = np.bincount(place, self.variants.counts[bins >= 0], minlength=len(found))
        return np.asarray(found[cases >= self.least * self.variants.cases])

    def deepest(self, tree: NoisyPrefixTree) -> IntArray:
        """Return the longest surviving prefix of each of its variants.

        :func:`assign_deepest` numbers the prefixes.
        """
        return np.asarray(assign_deepest(tree)(self.variants.sequences))

    def shares(self, tree: NoisyPrefixTree) -> FloatArray:
        """Return the part of its cases that has each prefix as its longest surviving one."""
        cases = np.bincount(self.deepest(tree), self.variants.counts, minlength=tree.size + 1)
        return np.asarray(cases / self.variants.cases)

    def drawn(self, tree: NoisyPrefixTree, cases: FloatArray, rng: np.random.Generator) -> Variants:
        """Return its variants for these cases at each prefix, in its own proportions."""
        deepest = self.deepest(tree)
        there = np.bincount(deepest, self.variants.counts, minlength=len(cases))
        expected = self.variants.counts * (cases / np.maximum(there, 1))[deepest]
        return self.variants.with_counts(np.diff(np.floor(np.cumsum(expected) + rng.random()), prepend=0).astype(int))

    def continued(self, starts: Variants, rng: np.random.Generator) -> Variants:
        """Return traces that begin like these and go on as one of its cases.

        That case begins alike for the longest.
        """
        known, found = sorted(self.variants.to_dict().items()), Counter[Sequence[str]]()
        for start, cases in starts.to_dict().items():
            first, last = 0, len(known)
            for i, activity in enumerate(start):
                low = bisect_left(known, (start[: i + 1],), first, last)
                high = bisect_left(known, ((*start[:i], activity + "\0"),), low, last)
                if low == high:
                    break
                first, last = low, high
            often = np.array([count for _, count in known[first:last]])
            chosen = rng.multinomial(cases, often / often.sum())
            for row in np.flatnonzero(chosen).tolist():
                found[start + known[first + row][0][len(start) :]] += int(chosen[row])
        return Variants.from_dict(found)


def project_counts(counts: FloatArray, total: float) -> FloatArray:
    """Return the numbers nearest to these that are not negative and add up to a total."""
    if total <= 0:
        return np.zeros(len(counts))
    descending = np.sort(counts)[::-1]
    beyond = (np.cumsum(descending) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - beyond[np.flatnonzero(descending > beyond)[-1]], 0.0))

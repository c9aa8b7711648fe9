"""SaCoFa: a prefix tree that rules of the process steer.

S.A. Fahrenkrog-Petersen, M. Kabierski, F. Rösel, H. van der Aa, M. Weidlich, "SaCoFa: Semantics-aware Control-flow
Anonymization for Process Mining", ICPM 2021; and the journal version with SaPa, 2023.

A continuation of a prefix that breaks a rule, and everything after it, is harmful.
Of the harmful ones of a level the exponential mechanism lets in i, with P(i) ~ exp(-epsilon i / (2 s)); which, is drawn
uniformly. They need a higher count to survive than harmless ones. With the score ``binary`` s is 1; with ``continuous``
a prefix counts for as many as it breaks rules, up to ``score_bound``, which is s. Each pair of activities counts once
for each relation that it violates, however often the activities occur.

As published the rules are read off the raw log, which voids the guarantee, and every depth costs epsilon / s.
Certified, the rules are declared by the user or learned with a share of the budget; from then on they are public, what
is harmful is known beforehand, and the choice of who is let in touches no data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from veilog._files import text_of
from veilog._typing import BoolArray, IntArray
from veilog.errors import InputError, ParameterError
from veilog.logs.variants import Sequences, Variants
from veilog.methods._prefix_tree.counts import count_variants
from veilog.methods._prefix_tree.expand import (
    NEVER,
    Screen,
    grow,
    plan_budget,
    published_epsilon,
    published_threshold,
    published_variants,
    refuse_too_small,
)
from veilog.methods._prefix_tree.tree import (
    Noise,
    NoisyPrefixTree,
    TreeSettings,
    needs_of_tree,
    noise_threshold,
    number_histogram,
    quantile,
)
from veilog.methods._relations import draw_number, public_codes, refuse_many_activities
from veilog.methods.method import DeltaOptional, Request, our_method
from veilog.methods.settings import Range
from veilog.privacy.contributions import Features
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Laplace

__all__ = ["SACOFA", "SacofaSettings", "sacofa"]


HARMFUL_PART = 0.1
"""Harmful empty prefixes expected to survive a level, against ``noise_prefixes`` harmless ones."""
LEARNING = (Fraction(1, 10), Fraction(1, 5))
"""Shares of the budget for rules: the bound on a case's pairs, and the first activities."""
RULE_SHARE = 0.1
MOST = 0.8
"""Share of cases that activities beyond the noise must start to make first activities a rule."""
RESOLUTION = 1024


@dataclass(frozen=True, kw_only=True)
class SacofaSettings(TreeSettings):
    """Settings of SaCoFa."""

    threshold_harmful: Annotated[int | None, "count from which on a prefix that breaks a rule survives", Range(1)] = (
        None
    )
    threshold_harmless: Annotated[int | None, "count from which on a prefix that breaks none survives", Range(1)] = None
    rules_file: Annotated[str | None, "file of rules known from elsewhere than the log"] = None
    rule_share: Annotated[
        float | None, "share of the budget that learns rules; 0.1 if no file is given", Range(0, 0.9)
    ] = None
    ended: Annotated[
        Literal["kept", "pruned"],
        "as published: traces that have ended below the threshold; the program keeps them, Algorithm 1 prunes them",
    ] = "kept"
    score: Annotated[Literal["binary", "continuous"], "how bad breaking rules is"] = "binary"
    score_bound: Annotated[int, "with the continuous score, broken rules that count at most", Range(1, 1000)] = 3

    @property
    def most_broken(self) -> int:
        """Broken rules that count at most: the paper's s."""
        return self.score_bound if self.score == "continuous" else 1


def sacofa(curator: Curator, request: Request, settings: SacofaSettings) -> Variants:
    """Return the variants of a noisy prefix tree in which rules are rarely broken.

    Certified: epsilon in all, ``rule_share`` of it for the rules unless a file gives them. As published: rules by a
    peek unless a file gives them, and epsilon / s at each of ``depth`` levels.
    """
    harmful, harmless = settings.threshold_harmful, settings.threshold_harmless
    if harmful is not None and harmless is not None and harmful < harmless:
        raise ParameterError(
            "sacofa-thresholds-reversed",
            parameter="threshold_harmful",
            threshold_harmful=harmful,
            threshold_harmless=harmless,
        )
    if settings.rules_file is not None and settings.rule_share:
        raise ParameterError("rules-file-and-learned", parameter="rule_share")
    declared = None if settings.rules_file is None else read_rules(settings.rules_file, curator.activities)
    return (_as_published if request.as_published else _release_certified)(curator, request, settings, declared)


def _as_published(curator: Curator, request: Request, settings: SacofaSettings, declared: Rules | None) -> Variants:
    random, activities = noise.generator(curator.randomness), curator.activities
    if settings.rule_share:
        raise ParameterError("sacofa-learned-when-published", parameter="rule_share")
    each = published_epsilon(request) / settings.most_broken
    harmful_from = published_threshold(len(activities) + 1, each, settings.threshold_harmful)
    harmless_from = min(settings.threshold_harmless or harmful_from, harmful_from)
    levels = settings.depth or curator.max_length + 1
    rules = declared or exact_rules(curator.peek("sacofa-rules-raw"), activities)
    judge = _judge(rules, request.epsilon, settings.most_broken, random)

    def screen(tree: NoisyPrefixTree) -> Screen:
        return judge(tree).screen(harmless_from - 1, harmful_from - 1)

    return published_variants(curator, request, each, levels, screen, prune_ended=settings.ended == "pruned")


def _release_certified(
    curator: Curator, request: Request, settings: SacofaSettings, declared: Rules | None
) -> Variants:
    random, activities = noise.generator(curator.randomness), curator.activities
    harmful_from, harmless_from = settings.threshold_harmful, settings.threshold_harmless
    if settings.ended != "kept":
        raise ParameterError("sacofa-ended-when-certified", parameter="ended")
    usual = RULE_SHARE if settings.rule_share is None else settings.rule_share
    share = Fraction(str(usual)) if declared is None else Fraction(0)
    budget = request.epsilon * (1 - share)
    refuse_too_small(curator, request.epsilon, settings, harmless_from or harmful_from, rule_share=share)
    if share:
        refuse_many_activities(activities)
    learned = _learn_rules(curator, request.epsilon - budget) if share else no_rules(len(activities))
    judge = _judge(declared or learned, request.epsilon, settings.most_broken, random)
    plan = plan_budget(curator, request, budget, settings)

    def screen(tree: NoisyPrefixTree, level_noise: Noise, possible: BoolArray | None) -> Screen:
        verdict = judge(tree)
        obeying = True if possible is None else possible
        harmless, let_in = int((~verdict.harmful & obeying).sum()), int((verdict.let_in & obeying).sum())
        least = noise_threshold(harmless, settings.noise_prefixes, level_noise)
        harmful_least = noise_threshold(let_in, settings.noise_prefixes * HARMFUL_PART, level_noise)
        least = least if harmless_from is None else harmless_from - 1
        return verdict.screen(least, max(least, harmful_least if harmful_from is None else harmful_from - 1))

    tree, left = grow(curator, request, plan, screen)
    return count_variants(curator, request, tree, plan, left, settings)


@dataclass(frozen=True)
class _Verdict:
    """Verdict on each bin of a level: True if harmful, and True if let in anyway."""

    harmful: BoolArray
    let_in: BoolArray

    def screen(self, least: int, harmful_least: int) -> Screen:
        """Return the screen of these bounds, with one for harmful continuations let in."""
        of_harmful = np.where(self.let_in, harmful_least, NEVER)
        return Screen(least, np.where(self.harmful, of_harmful, least))


@dataclass(frozen=True)
class _History:
    """History of the open prefixes of a level, a row each."""

    seen: BoolArray
    """Activities that occurred."""
    owed: IntArray
    """For each activity, number of those it must follow that first occurred after its last occurrence."""
    broken: IntArray
    """Number of rules about earlier activities that each activity broke when it occurred last."""
    wrong_start: IntArray
    """1 for prefixes that started as no trace may, else 0."""


def _judge(
    rules: Rules, epsilon: Fraction, step: int, random: np.random.Generator
) -> Callable[[NoisyPrefixTree], _Verdict]:
    """Return a function that judges the continuations of a tree, called once a level."""
    history = _empty_history(len(rules.first))

    def judge(tree: NoisyPrefixTree) -> _Verdict:
        nonlocal history
        if tree.levels:
            history = _advance_history(history, rules, tree.levels[-1].open_bins, is_first=len(tree.levels) == 1)
        weights = np.minimum(_broken_continuations(history, rules, is_first=not tree.levels).ravel(), step)
        return _Verdict(weights > 0, _admit_harmful(weights, epsilon, step, random))

    return judge


def _empty_history(activities: int) -> _History:
    """Return the history of the prefix without an event."""
    none = np.zeros((1, activities), dtype=np.int64)
    return _History(none.astype(bool), none, none, np.zeros(1, dtype=np.int64))


def _advance_history(history: _History, rules: Rules, open_bins: IntArray, is_first: bool) -> _History:
    """Return the histories of the prefixes that survived a level, from their parents'."""
    parents, symbols = np.divmod(open_bins, len(rules.first) + 1)
    rows = np.arange(len(open_bins))
    seen, owed, broken = history.seen[parents], history.owed[parents], history.broken[parents]
    broken[rows, symbols] = _broken_occurrences(history, rules)[parents, symbols]
    wrong_start = np.where(rules.first[symbols], 0, 1) if is_first else history.wrong_start[parents]
    is_new = ~seen[rows, symbols]
    owed[rows, symbols] = 0
    owed += rules.always[symbols] & is_new[:, None]
    seen[rows, symbols] = True
    return _History(seen, owed, broken, wrong_start)


def _broken_continuations(history: _History, rules: Rules, is_first: bool) -> IntArray:
    """Return how many rules each prefix breaks by each activity and by the end.
    The end is the last column."""
    if is_first:
        # What must occur before an activity counts from the second event on: some trace does start with it.
        return np.append(np.where(rules.first, 0, 1), 0)[None, :]
    so_far = history.broken.sum(axis=1) + history.wrong_start
    broken = np.empty((len(so_far), len(rules.first) + 1), dtype=np.int64)
    broken[:, :-1] = _broken_occurrences(history, rules) - history.broken
    broken[:, -1] = history.owed.sum(axis=1)
    together: IntArray = broken + so_far[:, None]
    return together


def _broken_occurrences(history: _History, rules: Rules) -> IntArray:
    """Return for each activity the rules that it breaks if it occurs now.
    "b never follows a" and "a never precedes b" are two relations of the paper, so this pair counts twice."""
    return 2 * _product(history.seen, rules.never) + _product(~history.seen, rules.before)


def _product(rows: BoolArray, relation: BoolArray) -> IntArray:
    """Return for each row and b the number of its a's with a relation to b."""
    product: IntArray = np.rint(rows.astype(np.float32) @ relation.astype(np.float32)).astype(np.int64)
    return product


def _admit_harmful(weights: IntArray, epsilon: Fraction, step: int, random: np.random.Generator) -> BoolArray:
    """Return random harmful continuations until their weights reach the drawn number."""
    harmful = np.flatnonzero(weights)
    chosen = np.zeros(len(weights), dtype=bool)
    number = draw_number(len(harmful), float(epsilon) / (2 * step), random)
    if number:
        order = random.permutation(harmful)
        used_before = np.cumsum(weights[order]) - weights[order]
        chosen[order[used_before < number]] = True
    return chosen


def _learn_rules(curator: Curator, epsilon: Fraction) -> Rules:
    """Return rules from noisy counts of followers, cases and first activities."""
    activities = curator.activities
    n = len(activities)
    features = eventually_follows(activities)
    bound_share, first_share = (epsilon * part for part in LEARNING)
    numbers = number_histogram(curator, features, n * n + n, bound_share, "pairs-of-activities-for-rules")
    bound = quantile(*numbers, 0.6)

    def first_activity(sequences: Sequences) -> IntArray:
        recode = np.append(public_codes(sequences, activities), n)
        codes = np.append(sequences.codes, len(sequences.labels))
        starts = np.where(sequences.lengths > 0, sequences.offsets[:-1], len(sequences.codes))
        firsts: IntArray = recode[codes[starts]]
        return firsts

    starts = curator.histogram(first_activity, n + 1, first_share, purpose="rules-first-activities")
    first = starts[:-1] > noise_threshold(n, 0.1, Laplace(1 / first_share))
    if starts[:-1][first].sum() < MOST * max(int(starts.sum()), 1):
        first = np.ones(n, dtype=bool)
    rest = epsilon - bound_share - first_share
    purpose = "rules-activities-and-followers"
    answer = curator.sums(features, max(n * n + n, 1), bound, rest, resolution=RESOLUTION, purpose=purpose)
    counts = np.rint(answer / RESOLUTION).astype(np.int64)
    least = noise_threshold(n * n, 1.0, Laplace(bound / rest))
    return rules_from_counts(counts[: n * n].reshape(n, n), counts[n * n : n * n + n], first, least)


SACOFA = our_method(
    "sacofa",
    sacofa,
    SacofaSettings,
    budget=DeltaOptional(of_use=lambda settings: True, buys="deep trees get narrower noise"),
    needs=needs_of_tree,
    takes_prior=True,
)


# Behavioural rules of a process --------------------------------------------------------------------------------------

# What never and what always follows or precedes what, and what a trace starts with.
#
# The rules of S.A. Fahrenkrog-Petersen et al., "Semantics-aware Mechanisms for Control-flow Anonymization in
# Process Mining" (2023), after A. Rozinat, W.M.P. van der Aalst, "Conformance checking of processes based on
# monitoring real behavior" (2008). For a pair (a, b): b always, never or sometimes follows the first a, and always,
# never or sometimes precedes the last a. "b never follows a" and "a never precedes b" are the same, so four
# relations are left.
#
# All of them follow from how many cases have a, and how many have an a with a later b.


EVIDENCE = 10
"""Multiple of rare noise that the cases of an activity need for a rule. At most one in so many breaks it."""
_ABSENT = 2**31 - 1


@dataclass(frozen=True)
class Rules:
    """Rules over activities 0, ..., n-1, each a square array but for ``first``."""

    never: BoolArray
    """never[a, b]: no b occurs after an a."""
    always: BoolArray
    """always[a, b]: after the first a occurs a b."""
    before: BoolArray
    """before[a, b]: an a occurs before the last b."""
    first: BoolArray
    """first[a]: a trace may start with a."""


def no_rules(activities: int) -> Rules:
    """Return rules that nothing breaks."""
    square = np.zeros((activities, activities), dtype=bool)
    return Rules(square, square, square, np.ones(activities, dtype=bool))


def eventually_follows(activities: tuple[str, ...]) -> Features:
    """Return a map of a sequence to its eventually-follows pairs and its activities.

    A pair (a, b), with a b after an a, is 1 at ``a n + b``, and an activity a at ``n n + a``.
    """
    n = len(activities)

    def features(sequences: Sequences) -> tuple[IntArray, IntArray, IntArray]:
        first, last = _first_and_last(sequences, activities)
        row, a = np.nonzero(last >= 0)
        rows, columns = [row], [n * n + a]
        for start, follows in _follows(first, last):
            row, pair = np.nonzero(follows)
            rows.append(row + start)
            columns.append(pair)
        together = np.concatenate(rows)
        return together, np.concatenate(columns), np.ones(len(together), dtype=np.int64)

    return features


def exact_rules(variants: Variants, activities: tuple[str, ...]) -> Rules:
    """Return the rules that every case of a log obeys, for a log that was peeked at."""
    n = len(activities)
    first, last = _first_and_last(variants.sequences, activities)
    cases = variants.counts @ (last >= 0)
    follows = np.zeros(n * n, dtype=np.int64)
    for start, block in _follows(first, last):
        # Sums of whole numbers far below 2**53: exact as floats, which numpy multiplies faster.
        weights = variants.counts[start : start + len(block)].astype(float)
        follows += np.rint(weights @ block.astype(float)).astype(np.int64)
    starts = np.zeros(n, dtype=bool)
    starts[np.argmax(first == 0, axis=1)[variants.lengths > 0]] = True
    return rules_from_counts(follows.reshape(n, n), cases, starts, 0)


def _first_and_last(sequences: Sequences, activities: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    """Return where each activity occurs first and last in each sequence.
    An absent one is beyond the end and at -1."""
    owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
    position = np.arange(len(sequences.codes)) - sequences.offsets[owner]
    where = owner * len(activities) + public_codes(sequences, activities)[sequences.codes]
    first = np.full(len(sequences) * len(activities), _ABSENT, dtype=np.int64)
    last = np.full(len(sequences) * len(activities), -1, dtype=np.int64)
    # Of several assignments to one place the last one stays.
    first[where[::-1]] = position[::-1]
    last[where] = position
    shape = (len(sequences), len(activities))
    return first.reshape(shape), last.reshape(shape)


def _follows(first: IntArray, last: IntArray) -> Iterator[tuple[int, BoolArray]]:
    """Yield blocks of sequences with their pairs (a, b) that have a b after an a."""
    rows, n = first.shape
    step = max(1, 20_000_000 // max(n * n, 1))
    for start in range(0, rows, step):
        block = first[start : start + step, :, None] < last[start : start + step, None, :]
        yield start, block.reshape(len(block), n * n)


def rules_from_counts(follows: IntArray, cases: IntArray, first: BoolArray, noise: int) -> Rules:
    """Return rules from counts of a b after an a, and of cases with an a.

    ``noise`` is how far noise alone takes either. A rule about activities that are too rare to distinguish from the
    noise is not made.
    """
    known = cases > EVIDENCE * noise
    never = (follows <= noise) & known[:, None] & known[None, :]
    always = (cases[:, None] - follows <= noise) & known[:, None]
    before = (cases[None, :] - follows <= noise) & known[None, :]
    np.fill_diagonal(before, False)  # an activity that always repeats must be allowed to occur a first time
    return Rules(never, always, before, first)


_PAIRS = ("never", "always", "before")
_KEYS = (*_PAIRS, "first")


_Rule = tuple[str, list[str]]
"""Kind of a rule, and its activities."""


def read_rules(path: str | Path, activities: tuple[str, ...]) -> Rules:
    """Return the rules of a JSON file over the public activities.

    Raises:
        InputError: The file has a mistake, which the error names.

    """
    try:
        text = text_of(Path(path))
    except OSError as error:
        raise InputError("rules-file-not-readable", path=path, reason=error.strerror) from None
    except UnicodeDecodeError:
        raise InputError("rules-file-not-utf8", path=path) from None
    rules = _from_json(text, path)
    if not rules:
        raise InputError("rules-file-empty", path=path)
    place = {name: i for i, name in enumerate(activities)}
    for kind, named in rules:
        for name in named:
            if name not in place:
                raise InputError(
                    "rules-file-activity-unknown",
                    path=path,
                    kind=kind,
                    name=name,
                    names=", ".join(activities[:20]),
                    value=", ..." if len(activities) > 20 else "",
                )
    arrays = _arrays(rules, place)
    _refuse_contradictions(arrays, activities, path)
    return arrays


def _from_json(text: str, path: str | Path) -> list[_Rule]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            "rules-file-not-json", path=path, line=error.lineno, column=error.colno, msg=error.msg
        ) from None
    except RecursionError:
        raise InputError("rules-file-nested-too-deeply", path=path) from None
    if not isinstance(content, dict) or any(key not in _KEYS for key in content):
        raise InputError("rules-file-not-object", path=path, names=", ".join(_KEYS))
    rules = []
    for kind, entries in content.items():
        if not isinstance(entries, list):
            raise InputError("rules-file-entry-not-list", path=path, kind=kind)
        for entry in entries:
            names = [entry] if kind == "first" else entry
            expected = 1 if kind == "first" else 2
            if not isinstance(names, list) or len(names) != expected or not all(isinstance(n, str) for n in names):
                code = "rules-file-entry-no-name" if kind == "first" else "rules-file-entry-no-pair"
                raise InputError(code, path=path, kind=kind, dumps=json.dumps(entry))
            rules.append((kind, names))
    return rules


def _arrays(rules: list[_Rule], place: dict[str, int]) -> Rules:
    n = len(place)
    square = {kind: np.zeros((n, n), dtype=bool) for kind in _PAIRS}
    first = np.zeros(n, dtype=bool)
    for kind, names in rules:
        array = first if kind == "first" else square[kind]
        array[tuple(place[name] for name in names)] = True
    allowed = (first if first.any() else ~first) & ~square["before"].any(axis=0)
    return Rules(square["never"], square["always"], square["before"], allowed)


def _refuse_contradictions(arrays: Rules, names: tuple[str, ...], path: str | Path) -> None:
    """Refuse rules under which an activity that they name could never occur."""
    before = _closure(arrays.before)
    for kind, reached in (("always", arrays.always), ("before", before)):
        both = np.argwhere(reached & arrays.never)
        if len(both):
            a, b = (names[i] for i in both[0])
            raise InputError("rules-file-contradictory", path=path, kind=kind, a=a, b=b)
    cycle = np.flatnonzero(np.diag(before))
    if len(cycle):
        raise InputError("rules-file-circular", path=path, names=names[cycle[0]])
    if not arrays.first.any():
        raise InputError("rules-file-no-start-possible", path=path)


def _closure(relation: BoolArray) -> BoolArray:
    """Return the transitive closure of a relation."""
    closed = relation.copy()
    for middle in range(len(closed)):
        closed |= np.outer(closed[:, middle], closed[middle])
    return closed

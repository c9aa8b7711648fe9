"""Attributes that events hold: where they are recorded, and how values persist.

Two queries of all attributes find where they are recorded. The first finds the patterns there are: whether all events
of a case have a value, and whether it changes. Where neither is so, the pattern is the activity of the first event that
has one. A case adds 1, shared out among its attributes. The second finds which attributes have which of these patterns,
but for the commonest. A case adds 1, shared out among the attributes that do, which are few.

An attribute that (nearly) never changes, or is declared as one of the case, has one value a case. Its events hold it
where it is recorded. The others have a memory of one step (:mod:`courses`). Its queries find which values events of
each activity have, and how often a value stays from one event that has one to the next, by the activity of the second.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.variants import Repeated
from veilog.messages import Message
from veilog.methods._events.attributes.domains import Chosen, edges_of
from veilog.methods._events.attributes.marginals import (
    MOST_GROUPS,
    believe_counts,
    believed_in_rows,
    groups_of,
    query_bins,
)
from veilog.privacy.case_functions import Triples
from veilog.privacy.cases import CaseFeatures, Cases, Coding
from veilog.privacy.curator import Curator

PATTERNS = Fraction(1, 3)
"""Part of the epsilon for where attributes are recorded that finds the patterns."""
MOST_PATTERNS = 6
NOISES = 4.0
"""Least noise scales of a pattern."""
CONSTANT = 0.1
"""Largest part of the cases in which the value of an attribute of cases changes."""
LEAST_KNOWN = 0.5
"""An attribute that alone differs from the commonest pattern stands out if it is known in this part of the cases."""
FINE = 4096
"""Number of parts of a number's range that show whether it changes."""
STAYING = Fraction(1, 8)
BINNING = Fraction(2, 5)
RESOLUTION = 1024


@dataclass(frozen=True, eq=False)
class Recorded:
    """Places in a case where events hold an attribute."""

    everywhere: bool
    changes: bool
    """True if cases have several values of it."""
    first: FloatArray
    """Frequency of each activity as the first that records it."""

    @property
    def place(self) -> tuple[int, ...]:
        """Return the activities at which it is recorded; none where it is everywhere."""
        return () if self.everywhere else tuple(np.flatnonzero(self.first).tolist())

    def events(self, cases: Repeated, share: float, rng: np.random.Generator) -> BoolArray:
        """Return which events may hold it: all, or one a case.

        That one is the first event of the activity that holds it most often. Cases without such an activity hold it in
        their first event, so many of them that a ``share`` of all cases does.
        """
        if self.everywhere:
            return np.ones(cases.events, dtype=np.bool_)
        distinct = cases.distinct
        weight = self.first[distinct.codes]
        owners = np.repeat(np.arange(len(distinct)), distinct.lengths)
        order = np.lexsort((-weight, owners))
        firsts = order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
        going = np.flatnonzero(cases.lengths)
        place = np.zeros(len(distinct), dtype=np.int64)
        place[owners[firsts]] = firsts
        of_case = place[cases.owner[going]]
        holding = weight[of_case] > 0
        lacking = rng.permutation(np.flatnonzero(~holding))
        holding[lacking[: max(0, round(share * len(cases)) - int(holding.sum()))]] = True
        found = np.zeros(cases.events, dtype=np.bool_)
        within = of_case - distinct.offsets[cases.owner[going]]
        found[(cases.offsets[going] + within)[holding]] = True
        return found


def _patterns(block: Cases, name: str, activities: int) -> tuple[IntArray, IntArray]:
    """Return the cases in which an attribute is known, and their patterns as numbers.

    The first numbers are for values that stay the same and that some events hold, by the activity of the first of
    these.
    """
    values, owners = block.attributes[name], block.owners
    known = np.flatnonzero(values >= 0)
    of_known = owners[known]
    starts = np.flatnonzero(np.diff(of_known, prepend=-1))
    rows, first = of_known[starts], known[starts]
    number = np.bincount(of_known, minlength=len(block))
    same = values[known] == np.repeat(values[first], number[rows])
    changes = np.bincount(of_known[~same], minlength=len(block))[rows] > 0
    everywhere = number[rows] == block.lengths[rows]
    activity = np.where(block.codes[first] >= 0, block.codes[first], activities)
    of_all = activities + 1 + changes
    return rows, np.where(everywhere, of_all, np.where(changes, activities + 3, activity))


def query_records(
    curator: Curator,
    epsilon: Fraction,
    labels: tuple[str, ...],
    attributes: tuple[Chosen, ...],
    cases: int,
    least: Fraction = Fraction(0),
) -> tuple[tuple[Recorded, ...], Fraction]:
    """Return where events hold each attribute, and the epsilon spent.

    There are about so many ``cases``. The fewer attributes differ from the commonest pattern by the first answer, the
    less epsilon the second query needs. It leaves the rest, but ``least`` is spent in any case. Its epsilon follows
    from an answer, and never exceeds what is left of epsilon, which is all that basic composition demands.
    """
    size, codings = len(labels) + 4, tuple(_fine_coding(one) for one in attributes)

    def of_all(block: Cases) -> Triples:
        found = [_patterns(block, coding.name, len(labels)) for coding in codings]
        rows, cells = (np.concatenate(part) for part in zip(*found, strict=True))
        return rows, cells, np.ones(len(rows), dtype=np.int64)

    price = epsilon * PATTERNS if len(attributes) > 1 else epsilon
    counts = _query_sums(curator, price, of_all, size, labels, codings, "attributes-recorded-where")
    order = np.argsort(-counts, kind="stable")[:MOST_PATTERNS]
    patterns = order[(counts[order] >= NOISES / float(price)) | (np.arange(len(order)) == 0)]
    if len(codings) == 1:
        return (_recorded_events(counts[patterns], patterns, len(labels), attributes[0]),), price
    # Patterns of values that are everywhere, or change, are few: all are distinguished, whether found or not.
    patterns = np.concatenate([patterns, np.setdiff1d(len(labels) + np.arange(1, 4), patterns)])
    place = np.full(size + 1, len(patterns))
    place[size] = len(patterns) + 1  # of cases without a value
    place[patterns] = np.arange(len(patterns))
    width = len(patterns) + 1
    common = float(counts[order[0]]) - NOISES / float(price)
    left = min(epsilon - price, max(least - price, _pattern_epsilon(width, len(codings), common / cases, cases)))
    # Where values that change are the commonest, cases without any are distinguished from these. The first answer
    # does not give their number.
    absent = bool(patterns[0] >= len(labels) + 2)
    told, left = width + absent, epsilon - price if absent else left

    def of_others(block: Cases) -> Triples:
        found = [_patterns(block, coding.name, len(labels)) for coding in codings]
        if absent:
            found = [_add_absent(*own, len(block), size) for own in found]
        cells = np.concatenate([i * told + place[cells] for i, (_, cells) in enumerate(found)])
        others = cells % told > 0
        rows = np.concatenate([rows for rows, _ in found])[others]
        return rows, cells[others], np.ones(len(rows), dtype=np.int64)

    purpose = "attributes-recorded-otherwise"
    tables = _query_sums(curator, left, of_others, told * len(codings), labels, codings, purpose)
    # One of so many numbers is above so many noise scales by chance as rarely as a single one is above ``NOISES``.
    enough = max((NOISES + np.log(tables.size)) / float(left), CONSTANT * cases / len(codings))
    tables = np.where(tables < enough, 0.0, tables).reshape(-1, told)
    tables = _add_commonest(tables, np.append(patterns < len(labels) + 2, False)[1:], cases, absent=absent)
    ways = np.append(patterns, size - 1)  # a pattern that was not found may be any: the model of what changes is
    found = tuple(_recorded_events(row, ways, len(labels), one) for row, one in zip(tables, attributes, strict=True))
    return found, price + left


def _add_commonest(tables: FloatArray, staying: BoolArray, cases: int, *, absent: bool) -> FloatArray:
    """Return about how many cases have each pattern, in a row for each attribute.

    The commonest pattern is first, and its number is what the others leave. ``staying`` marks patterns of values that
    stay the same. If ``absent``, the last number of each of the ``tables`` is that of cases without a value.
    """
    tables = tables * max(1, int(tables.any(axis=1).sum()))
    others = np.maximum(cases - tables.sum(axis=1), 0.0)
    tables = tables[:, : len(staying) + 1]
    if not absent:
        # Values that stay the same in some cases, by one of the other patterns, may be missing in the rest of them.
        others[tables[:, 1:][:, staying].any(axis=1)] = 0.0
    tables[:, 0] = others
    return tables


def _fine_coding(one: Chosen) -> Coding:
    """Return the coding that shows changes of values: numbers in fine parts."""
    return one.coding(edges_of(one.lattice(FINE), one.unit) if one.range is not None else ())


def _add_absent(rows: IntArray, cells: IntArray, cases: int, pattern: int) -> tuple[IntArray, IntArray]:
    """Return cases and their patterns, with this one for each case that has none."""
    absent = np.setdiff1d(np.arange(cases), rows)
    return np.append(rows, absent), np.append(cells, np.full(len(absent), pattern))


def _pattern_epsilon(width: int, attributes: int, common: float, cases: int) -> Fraction:
    """Return the epsilon at which attributes with another pattern stand out.

    Each attribute has ``width`` counts. A case shares itself out among the attributes that have another pattern than
    the commonest one, which the part ``common`` of all has.

    Of so many counts the highest noise is about the logarithm of their number in noise scales. What stands out is
    ``NOISES`` above what is taken for noise, which is ``NOISES`` above that. A single attribute may be known in a part
    of the cases only.
    """
    others = max(attributes * (1 - common), 1 / LEAST_KNOWN)
    return Fraction((2 * NOISES + np.log(width * attributes)) * others / cases).limit_denominator(10**12)


def _query_sums(
    curator: Curator,
    epsilon: Fraction,
    features: CaseFeatures,
    size: int,
    labels: tuple[str, ...],
    codings: tuple[Coding, ...],
    purpose: str | Message,
    bound: int = 1,
) -> FloatArray:
    """Return noisy sums over cases, each scaled down to the bound where it has more."""
    asked = curator.events.sums(
        features, size, bound, epsilon, alphabet=labels, codings=codings, resolution=RESOLUTION, purpose=purpose
    )
    return np.asarray(asked / RESOLUTION)


def _recorded_events(counts: FloatArray, patterns: IntArray, activities: int, chosen: Chosen) -> Recorded:
    """Return where an attribute is recorded, by noisy numbers of cases per pattern."""
    changing = (patterns == activities + 2) | (patterns == activities + 3)
    everywhere = (patterns == activities + 1) | (patterns == activities + 2)
    first = np.zeros(activities + 4)
    np.add.at(first, patterns, counts)
    changes = not chosen.of_case and counts[changing].sum() > CONSTANT * counts.sum()
    # A case of one event has all that it has everywhere: some activity must stand out.
    return Recorded(bool(counts[everywhere].sum() >= first[:activities].sum()), bool(changes), first[:activities])


# Values that change -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Persisting:
    """Shares of an attribute's values in events, and how often a value stays.

    The shares are by activity. The last value is of having none.
    """

    coding: Coding
    by_activity: FloatArray
    staying: FloatArray
    """Part of the events of each activity whose value stays, of those that follow one with a value."""
    scale: float
    """Scale of the noise of each count."""
    bound: int
    """Most events of a case that count."""

    @property
    def known(self) -> FloatArray:
        """Return the shares of values, by activity, in events that have one."""
        values = self.by_activity[:, :-1]
        return np.asarray(values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12))

    @property
    def first(self) -> FloatArray:
        """Return the shares of a case's values, the last one of having none.

        The rows are the activity of its first event that has one. In the last row there is no such event.
        """
        known = np.append(self.known, np.zeros((len(self.by_activity), 1)), axis=1)
        return np.append(known, np.eye(known.shape[1])[-1:], axis=0)


def query_persistence(curator: Curator, epsilon: Fraction, cases: Repeated, chosen: Chosen) -> Persisting:
    """Return values of an attribute that changes within cases, and how they stay.

    A case counts at most as many events as one of the release has on average.
    """
    labels, coding = cases.labels, chosen.coding()
    price, left = epsilon * STAYING, epsilon * (1 - STAYING)
    group, inside = np.arange(coding.size), np.ones(coding.size)
    if chosen.range is not None or coding.size > MOST_GROUPS:
        coding, mass = _query_event_values(curator, left * BINNING, chosen, len(cases))
        left -= left * BINNING
        group = groups_of(mass, MOST_GROUPS, ordered=chosen.numeric)
        inside = mass / np.bincount(group, weights=mass)[group]
    width = int(group.max()) + 2
    bound = max(1, round(float(cases.lengths.mean())))

    def by_activity(block: Cases) -> Triples:
        at = np.flatnonzero(block.codes >= 0)
        values = block.attributes[coding.name][at]
        cells = block.codes[at] * width + np.where(values >= 0, group[values], width - 1)
        return block.owners[at], cells, np.ones(len(at), dtype=np.int64)

    purpose = Message("values-with-each-activity", name=chosen.column)
    asked = _query_sums(curator, left, by_activity, len(labels) * width, labels, (coding,), purpose, bound)
    scale = bound / float(left)
    table = _lean_on_sums(asked.reshape(-1, width), scale, _events_counted(cases, bound))
    full = np.concatenate([table[:, group] * inside, table[:, -1:]], axis=1)
    staying = _query_staying(curator, price, labels, coding, chosen)
    return Persisting(coding, full, staying, scale, bound)


def _query_event_values(curator: Curator, epsilon: Fraction, chosen: Chosen, cases: int) -> tuple[Coding, FloatArray]:
    """Return how often events have each value, or numbers in bins, and the coding.

    A case adds 1, shared out among its events.
    """

    def asked(coding: Coding, share: Fraction) -> FloatArray:
        def of_events(block: Cases) -> Triples:
            known = np.flatnonzero(block.attributes[coding.name] >= 0)
            values = block.attributes[coding.name][known]
            return block.owners[known], values, np.ones(len(known), dtype=np.int64)

        return _query_sums(
            curator, share, of_events, coding.size + 1, (), (coding,), Message("values-of-events", name=chosen.column)
        )

    if chosen.range is not None:
        found, _ = query_bins(asked, epsilon, chosen, cases)
        return found.coding, found.shares[:-1] * found.cases + 1e-9
    coding = chosen.coding()
    counts = asked(coding, epsilon)[:-1]
    return coding, believe_counts(counts, 1 / float(epsilon))


def _events_counted(cases: Repeated, bound: int) -> FloatArray:
    """Return the number of events of each activity in released cases.

    The events of a case are scaled down to the bound.
    """
    distinct = cases.distinct
    weights = cases.counts * np.minimum(1.0, bound / np.maximum(distinct.lengths, 1))
    each = np.repeat(weights, distinct.lengths)
    return np.bincount(distinct.codes, weights=each, minlength=len(cases.labels)).astype(np.float64)


def _lean_on_sums(noisy: FloatArray, scale: float, usual: FloatArray) -> FloatArray:
    """Return likely rows as distributions, by noisy counts.

    They are believed either together with the sums of all rows or by themselves, whichever makes the answer likelier.
    In released cases rows have the ``usual`` sums, and about these in the original.
    """
    number, columns = noisy.shape
    sums, masses = noisy.sum(axis=0), np.maximum(usual, 1.0)
    total = believe_counts(sums, scale * number**0.5)
    ways = [masses[:, None] * total / total.sum(), np.repeat(masses[:, None] / columns, columns, axis=1)]
    # A row is apart from the release by chance, and by what the noise of its numbers does not explain.
    doubt = np.maximum((noisy.sum(axis=1) - masses) ** 2 - 2 * columns * scale**2, 0.0) + masses
    found, _ = max((believed_in_rows(noisy, way, scale, masses, doubt) for way in ways), key=operator.itemgetter(1))
    found += 1e-9 * ways[0]
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _query_staying(
    curator: Curator, epsilon: Fraction, labels: tuple[str, ...], coding: Coding, chosen: Chosen
) -> FloatArray:
    """Return the part of events, by activity, that have the last value before.

    It is of events with a value that follow one with a value. A case adds 1, shared out among its events.
    """

    def of_steps(block: Cases) -> Triples:
        known = np.flatnonzero(block.attributes[coding.name] >= 0)
        owners, values = block.owners[known], block.attributes[coding.name][known]
        at = np.flatnonzero(owners[1:] == owners[:-1]) + 1
        codes = block.codes[known[at]]
        cells = 2 * codes + (values[at] == values[at - 1])
        return owners[at][codes >= 0], cells[codes >= 0], np.ones(int((codes >= 0).sum()), dtype=np.int64)

    purpose = Message("stays-as-it-was", attribute=chosen.column)
    asked = _query_sums(curator, epsilon, of_steps, 2 * len(labels), labels, (coding,), purpose).reshape(-1, 2)
    scale = 1 / float(epsilon)
    both = np.maximum(asked.sum(axis=0), 0.0)
    usual = (both[1] + scale) / (both.sum() + 2 * scale)
    # As many events as the noise is wide are taken to be like all.
    stay, seen = np.maximum(asked[:, 1], 0.0), np.maximum(asked, 0.0).sum(axis=1)
    return np.asarray((stay + 2 * scale * usual) / (seen + 2 * scale))

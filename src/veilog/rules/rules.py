"""Rules as the data owner declares them, and their effect on a release.

They are a file or a list, parsed once.

Privacy: rules are public, as declared activities are. Automata and conditions are applied to public candidates and to
draws from noisy answers. So they are post-processing and use no epsilon. Only the data owner sees how many cases of the
raw log break a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import TIMESTAMP, EventLog
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message
from veilog.rules.attributes import AttributeRule, AttributeTable, ColumnValues
from veilog.rules.automata import Automata
from veilog.rules.rule_files import Constraint, ReleaseRule, RuleEntry, entries_of, rule_of
from veilog.rules.times import TimeRule, possible

RulesChoice: TypeAlias = "ReleaseRules | str | Path | Iterable[RuleEntry]"


@dataclass(frozen=True)
class BrokenRules:
    """Numbers of cases that break each rule (None if it cannot apply), and any."""

    cases: int
    each: tuple[int | None, ...]
    any: int

    @property
    def obeyed(self) -> tuple[float | None, ...]:
        """Shares of cases that obey all rules and each; None where none can be computed."""
        broken = (self.any, *self.each)
        return tuple(None if of is None or not self.cases else 1 - of / self.cases for of in broken)


@dataclass(frozen=True, eq=False)
class ReleaseRules:
    """All rules of a release."""

    items: tuple[ReleaseRule, ...]
    source: str | None = None
    """File that holds them, as the user named it."""
    settled: bool = True
    """True unless a check left open whether they contradict each other."""

    @staticmethod
    def of(given: RulesChoice | None) -> ReleaseRules | None:
        """Return the rules in a file or a list; None for none.

        A file is TOML, JSON, or text with declare constraints.

        Raises:
            InputError: A rule is not understood; the error names its line and what to write.

        """
        if given is None or isinstance(given, ReleaseRules):
            return given
        path = Path(given) if isinstance(given, str | Path) else None
        entries, lines = entries_of(path) if path is not None else (list(given), [])  # type: ignore[arg-type]
        if not entries:
            raise InputError("rules-empty", path=path)
        places = lines or [None] * len(entries)
        numbered = enumerate(zip(entries, places, strict=True), 1)
        items = [rule_of(number, entry, path, line) for number, (entry, line) in numbered]
        return ReleaseRules(tuple(items), None if path is None else str(given))

    def to_json(self) -> list[RuleEntry]:
        """Return the rules as a list that :meth:`of` reads."""
        return [rule.entry for rule in self.items]

    @property
    def message(self) -> Message:
        """All rules in words."""
        return Message.joined(rule.message for rule in self.items)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints on the order of activities."""
        return tuple(constraint for rule in self.items for constraint in rule.constraints)

    @cached_property
    def times(self) -> tuple[TimeRule, ...]:
        """All rules on times."""
        return tuple(rule.time for rule in self.items if rule.time is not None)

    @cached_property
    def attributes(self) -> tuple[AttributeRule, ...]:
        """All rules on attributes."""
        return tuple(rule.attribute for rule in self.items if rule.attribute is not None)

    # Traces ---------------------------------------------------------------------------------------------------------

    def automata(self, labels: Sequence[str]) -> Automata:
        """Return the automata of all constraints over activities of these names."""
        return _automata(self.constraints, tuple(labels))

    def allowed(self, sequences: Sequences) -> BoolArray:
        """Return True for each sequence that keeps all constraints and has valid times."""
        found = self.automata(sequences.labels).allowed(sequences.codes, sequences.offsets)
        rows = np.flatnonzero(found)
        found[rows] = possible(self.times, sequences.take(rows))
        return found

    def allows(self, variant: Sequence[str]) -> bool:
        """Return True if a variant keeps all constraints."""
        return bool(self.allowed(Variants.from_dict({tuple(variant): 1}).sequences)[0])

    def only(self, variants: Variants) -> Variants:
        """Return the variants that obey, without the others and their cases."""
        return variants.with_counts(np.where(self.allowed(variants.sequences), variants.counts, 0))

    def preferred(self, variants: Variants) -> Variants:
        """Return the variants that obey, or all where none does: draws that must obey."""
        found = self.only(variants)
        return found if found.cases else variants

    def repaired(self, variants: Variants, longest: int | None = None) -> Variants:
        """Return the variants, with cases of disobeying ones moved to obeying ones.

        They move to the nearest ones (:meth:`Automata.nearest`). Where there is none of at most ``longest`` events,
        they move to the most similar released variant.
        """
        allowed = self.allowed(variants.sequences)
        if allowed.all():
            return variants
        labels = sorted({*variants.labels, *(name for rule in self.items for name in rule.activities)})
        automata, place = self.automata(labels), {label: code for code, label in enumerate(labels)}
        most = np.inf if longest is None else longest
        counts = {
            tuple(place[name] for name in variants.sequences[row]): int(variants.counts[row])
            for row in np.flatnonzero(allowed).tolist()
        }
        lost: list[tuple[tuple[int, ...], int]] = []
        for row in np.flatnonzero(~allowed).tolist():
            own, cases = tuple(place[name] for name in variants.sequences[row]), int(variants.counts[row])
            made = automata.nearest(own, most)
            if made is None or not self.allows([labels[code] for code in made]):
                lost.append((own, cases))
            else:
                counts[made] = counts.get(made, 0) + cases
        if lost and not counts:
            shortest = automata.nearest((), most)
            if shortest is None or not self.allows([labels[code] for code in shortest]):
                raise ParameterError("rules-no-case-found", parameter="rules")
            counts[shortest] = 0
        for own, cases in lost:
            others = list(counts)
            made = others[int(cdist([own], others, scorer=Levenshtein.distance)[0].argmin())]
            counts[made] += cases
        return Variants.from_dict({tuple(labels[code] for code in made): cases for made, cases in counts.items()})

    # Logs -----------------------------------------------------------------------------------------------------------

    def broken_in(self, log: EventLog | StoredLog | Variants) -> BrokenRules:
        """Return the numbers of cases of a log that break the rules.

        For a raw log, only the data owner may see them.
        """
        if isinstance(log, Variants):
            broken = self._broken_order(log.labels, log.codes, log.offsets)
            counted = zip(self.items, (broken @ log.counts).tolist(), strict=True)
            own = tuple(cases if rule.constraints else None for rule, cases in counted)
            return BrokenRules(log.cases, own, int(broken.any(axis=0) @ log.counts))
        found = list(log.each(lambda piece, _first: self._broken_in_events(piece)))
        each = tuple(
            None if any(of is None for of in several) else sum(of or 0 for of in several)
            for several in zip(*(one.each for one in found), strict=True)
        )
        return BrokenRules(sum(one.cases for one in found), each, sum(one.any for one in found))

    def _broken_order(self, labels: Sequence[str], codes: Any, offsets: IntArray) -> BoolArray:
        """Return for each rule the traces that break its constraints."""
        kept = self.automata(labels).kept(codes, offsets)
        broken, place = np.zeros((len(self.items), len(offsets) - 1), dtype=bool), 0
        for row, rule in enumerate(self.items):
            broken[row] = ~kept[:, place : place + len(rule.constraints)].all(axis=1)
            place += len(rule.constraints)
        return broken

    def _broken_in_events(self, log: EventLog) -> BrokenRules:
        labels, codes = log.activity_codes
        table, times, timed = AttributeTable.of_log(log), _microseconds(log), not log.artificial_times
        broken = self._broken_order(labels, codes, log.offsets)
        each: list[int | None] = []
        for row, rule in enumerate(self.items):
            if rule.time is not None and timed:
                of_case, wrong = rule.time.broken(labels, codes, table.owners, times)
                broken[row, of_case[wrong]] = True
            if rule.attribute is not None and table.has(rule.attribute):
                broken[row, table.cases_breaking(rule.attribute)] = True
            there = (rule.attribute is None or table.has(rule.attribute)) and (rule.time is None or timed)
            each.append(int(broken[row].sum()) if there else None)
        return BrokenRules(log.number_of_cases, tuple(each), int(broken.any(axis=0).sum()))


@lru_cache(maxsize=8)
def _automata(constraints: tuple[Constraint, ...], labels: tuple[str, ...]) -> Automata:
    return Automata.of(constraints, labels)


def _microseconds(log: EventLog) -> FloatArray:
    """Return the times of events; NaN where there is none."""
    return ColumnValues.of(log.events.column(TIMESTAMP)).numbers

"""Rules on attributes: conditions on values, and values redrawn to obey all rules.

A value that is missing breaks no rule.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from veilog._typing import BoolArray, FloatArray, IntArray
from veilog.logs.eventlog import EventLog, as_array, as_dictionary

EXCHANGES, DONATIONS = 40, 20
"""Rounds of exchanging values that break a rule with other cases' values, or of replacing them by such, at random."""
_DAY = 86_400_000_000
_CONDITION = re.compile(r"\s*(.+?)\s*(<=|>=|!=|=|<|>)\s*(.+?)\s*")


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Values of an attribute: numbers (dates as microseconds since 1970) or texts.

    A missing number is NaN.
    """

    numbers: FloatArray
    codes: IntArray | None = None
    """Code of each text, -1 where there is none."""
    texts: tuple[str, ...] = ()

    @staticmethod
    def of(column: pa.Array | pa.ChunkedArray) -> ColumnValues:
        """Return the values of a column."""
        if _is_date(column.type):
            column = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None))).cast(pa.int64())
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            numbers = as_array(column.cast(pa.float64(), safe=False))
            return ColumnValues(numbers.to_numpy(zero_copy_only=False).astype(np.float64))
        coded = as_dictionary(column if pa.types.is_dictionary(column.type) else column.cast(pa.string()))
        return ColumnValues.of_texts(
            tuple(map(str, coded.dictionary.to_pylist())),
            pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64),
        )

    @staticmethod
    def of_texts(texts: tuple[str, ...], codes: IntArray) -> ColumnValues:
        """Return the values of texts, of which numbers and dates are such, too."""
        as_numbers = [number_in(text) for text in texts]
        numbers = np.array([np.nan if found is None else found for found in as_numbers] + [np.nan])
        return ColumnValues(numbers[codes], codes, texts)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: IntArray, shift: IntArray | int = 0) -> ColumnValues:
        """Return the values of these rows, none for -1; dates are later by a ``shift``."""
        numbers = np.append(self.numbers, np.nan)[rows] + shift
        return replace(self, numbers=numbers, codes=None if self.codes is None else np.append(self.codes, -1)[rows])

    def among(self, values: Sequence[str]) -> tuple[BoolArray, BoolArray]:
        """Return True for each known value, and True for each of ``values``."""
        if self.codes is not None:
            wanted = np.array([text in values for text in self.texts] + [False])
            return self.codes >= 0, wanted[self.codes]
        wanted_numbers = [found for found in map(number_in, values) if found is not None]
        return ~np.isnan(self.numbers), np.isin(self.numbers, wanted_numbers)


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def number_in(text: str) -> float | None:
    """Return a text's number, a date's microseconds since 1970, or None."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    return (zoned - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) / datetime.timedelta(microseconds=1)


Values = Callable[[str], ColumnValues]
"""Function from the name of an attribute to its values."""


@dataclass(frozen=True)
class ValueCondition:
    """Condition on a value: among some, in a range, or against another attribute."""

    text: str
    attribute: str
    sign: str
    values: tuple[str, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    other: str | None = None

    @staticmethod
    def of(text: str) -> ValueCondition | None:
        """Return the condition that a text states; None where it states none.

        Examples are ``age < 18``, ``ward = A|B``, ``dose = 1..50`` and ``birth <= admission``.
        """
        match = _CONDITION.fullmatch(text)
        if match is None:
            return None
        name, sign, right = match.groups()
        said = f"{name} {sign} {right}"
        if sign in ("=", "!="):
            ends = right.split("..")
            if sign == "!=" or len(ends) != 2:
                return ValueCondition(said, name, sign, values=tuple(value.strip() for value in right.split("|")))
            texts = [end.strip() or infinite for end, infinite in zip(ends, ("-inf", "inf"), strict=True)]
            low, high = map(number_in, texts)
            if low is None or high is None or low == -high == -np.inf:
                return None
            return ValueCondition(said, name, sign, low=low, high=high)
        bound = number_in(right)
        if bound is None:
            return ValueCondition(said, name, sign, other=right)
        low, high = (bound, np.inf) if sign[0] == ">" else (-np.inf, bound)
        return ValueCondition(said, name, sign, low=low, high=high)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes in the condition."""
        return (self.attribute,) if self.other is None else (self.attribute, self.other)

    def holds(self, values: Values) -> tuple[BoolArray, BoolArray]:
        """Return True for each row with its values, and True where the condition holds."""
        own = values(self.attribute)
        if self.values:
            known, among = own.among(self.values)
            return known, known & (among == (self.sign == "="))
        numbers = own.numbers
        if self.other is not None:
            other = values(self.other).numbers
            compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[self.sign]
            return ~np.isnan(numbers) & ~np.isnan(other), np.asarray(compare(numbers, other))
        above = numbers > self.low if self.sign == ">" else numbers >= self.low
        below = numbers < self.high if self.sign == "<" else numbers <= self.high
        return ~np.isnan(numbers), above & below


@dataclass(frozen=True)
class AttributeRule:
    """Condition on values, of all cases or of some, or of events of an activity.

    Another condition or an activity selects the cases or events.
    """

    then: ValueCondition
    when: ValueCondition | None = None
    activity: str | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes in the rule."""
        return tuple(dict.fromkeys(self.then.attributes + (() if self.when is None else self.when.attributes)))

    @property
    def activities(self) -> tuple[str, ...]:
        """Activity that it names, if any."""
        return () if self.activity is None else (self.activity,)

    def broken(self, values: Values) -> BoolArray:
        """Return True where it is broken, whatever the activity is."""
        known, holds = self.then.holds(values)
        found = known & ~holds
        if self.when is not None:
            found &= np.logical_and(*self.when.holds(values))
        return np.asarray(found)


@dataclass(eq=False)
class AttributeTable:
    """Cases and events of a log with the attributes of rules."""

    owners: IntArray
    """Case of each event."""
    labels: tuple[str, ...]
    codes: IntArray
    starts: IntArray
    """Microseconds since 1970 at which each case starts."""
    of_cases: Mapping[str, pa.Array | pa.ChunkedArray]
    of_events: Mapping[str, pa.Array | pa.ChunkedArray]
    _values: dict[str, ColumnValues] = field(default_factory=dict)
    _source: dict[str, IntArray] = field(default_factory=dict)
    """Row from which each row has its value, for columns with exchanged values."""
    _shift: dict[str, IntArray] = field(default_factory=dict)

    def has(self, rule: AttributeRule) -> bool:
        """Return True if all attributes of a rule are there."""
        return all(self._name(name) is not None for name in rule.attributes)

    def _name(self, name: str) -> str | None:
        bare = name.removeprefix("case:")
        return next((one for one in (name, bare) if one in self.of_events or one in self.of_cases), None)

    def of_case(self, rule: AttributeRule) -> bool:
        """Return True if a rule is about attributes of cases alone."""
        return all(self._name(name) not in self.of_events for name in rule.attributes)

    def broken(self, rule: AttributeRule, rows: IntArray | None = None) -> BoolArray:
        """Return True for each of these cases that breaks a rule, or each of its events."""
        of_case = self.of_case(rule)
        number = len(self.starts) if of_case else len(self.owners)
        rows = np.arange(number) if rows is None else rows
        found = rule.broken(lambda name: self._values_at(name, rows, of_case=of_case))
        if rule.activity is not None:
            there = np.array([label == rule.activity for label in self.labels] + [False])[self.codes]
            found &= (np.bincount(self.owners[there], minlength=number) > 0 if of_case else there)[rows]
        return found

    def cases_breaking(self, rule: AttributeRule) -> IntArray:
        """Return the cases that break a rule."""
        found = np.flatnonzero(self.broken(rule))
        return found if self.of_case(rule) else np.unique(self.owners[found])

    def _column(self, name: str) -> pa.Array | pa.ChunkedArray:
        return self.of_events[name] if name in self.of_events else self.of_cases[name]

    def _values_at(self, name: str, rows: IntArray, *, of_case: bool) -> ColumnValues:
        found = self._name(name) or name
        if found not in self._values:
            self._values[found] = ColumnValues.of(self._column(found))
        if not of_case and found not in self.of_events:
            rows = self.owners[rows]
        if found not in self._source:
            return self._values[found].take(rows)
        return self._values[found].take(self._source[found][rows], self._shift[found][rows])

    @staticmethod
    def of_log(log: EventLog) -> AttributeTable:
        """Return the table of a log in memory."""
        labels, codes = log.activity_codes
        owners = np.repeat(np.arange(log.number_of_cases), np.diff(log.offsets))
        starts = np.zeros(log.number_of_cases, dtype=np.int64)
        of_cases, of_events = (
            {name: table.column(name) for name in table.column_names} for table in (log.cases, log.events)
        )
        return AttributeTable(owners, tuple(labels), codes, starts, of_cases, of_events)

    # Drawing --------------------------------------------------------------------------------------------------------

    def redrawn(self, rules: Sequence[AttributeRule], rng: np.random.Generator) -> dict[str, pa.Array]:
        """Return the columns that had to be changed so that no rule is broken.

        Values that break a rule are exchanged with those of other cases, or of other events, if fewer rules are broken
        then. So each value stays as frequent as it was. Where that does not help, a value is drawn from the others that
        fit, and otherwise there is none. All of this is post-processing of drawn values.
        """
        ours = [rule for rule in rules if self.has(rule)]
        for of_case in (True, False):
            level = [rule for rule in ours if self.of_case(rule) == of_case]
            for tried in range(EXCHANGES + DONATIONS):
                broken = [(rule, np.flatnonzero(self.broken(rule))) for rule in level]
                if not any(len(rows) for _, rows in broken):
                    break
                for rule, rows in ((rule, rows) for rule, rows in broken if len(rows)):
                    self._open(self._target(rule))
                    self._exchange(rule, rows, level, rng, mutual=tried < EXCHANGES)
            for rule in level:
                left = self.broken(rule)
                if left.any():
                    self._source[self._target(rule)][left] = -1
        return {name: self._draw_values(name) for name in self._source}

    def _target(self, rule: AttributeRule) -> str:
        """Return the attribute whose values are exchanged, one of events if possible."""
        names = [found for name in rule.attributes if (found := self._name(name)) is not None]
        return next((name for name in names if name in self.of_events), names[0])

    def _open(self, name: str) -> None:
        number = len(self._column(name))
        self._source.setdefault(name, np.arange(number))
        self._shift.setdefault(name, np.zeros(number, dtype=np.int64))

    def _exchange(
        self,
        rule: AttributeRule,
        rows: IntArray,
        level: Sequence[AttributeRule],
        rng: np.random.Generator,
        *,
        mutual: bool,
    ) -> None:
        name = self._target(rule)
        source, shift = self._source[name], self._shift[name]
        rows = rng.permutation(rows)
        other = rng.integers(len(source), size=len(rows))
        _, first = np.unique(np.stack([rows, other], axis=1).ravel(), return_index=True)
        alone = np.zeros(2 * len(rows), dtype=bool)
        alone[first] = True
        once = alone.reshape(-1, 2).all(axis=1)  # no row twice
        rows, other = rows[once], other[once]
        both = np.concatenate([rows, other])
        before = self._count_broken(level, both)
        old = source[both].copy(), shift[both].copy()
        days = self._days(name, other) - self._days(name, rows)
        source[rows], shift[rows] = old[0][len(rows) :], old[1][len(rows) :] - days
        if mutual:
            source[other], shift[other] = old[0][: len(rows)], old[1][: len(rows)] + days
        gain = (before - self._count_broken(level, both)).reshape(2, -1).sum(axis=0)
        back = np.tile(gain <= 0, 2)
        source[both[back]], shift[both[back]] = old[0][back], old[1][back]

    def _count_broken(self, level: Sequence[AttributeRule], rows: IntArray) -> IntArray:
        """Return the number of rules that each row breaks."""
        return np.asarray(np.sum([self.broken(rule, rows) for rule in level], axis=0), dtype=np.int64)

    def _days(self, name: str, rows: IntArray) -> IntArray:
        """Return the start day of these rows' cases, from which dates keep their distance."""
        if not _is_date(self._column(name).type):
            return np.zeros(len(rows), dtype=np.int64)
        cases = self.owners[rows] if name in self.of_events else rows
        return np.asarray(self.starts[cases] // _DAY * _DAY)

    def _draw_values(self, name: str) -> pa.Array:
        source, shift = self._source[name], self._shift[name]
        column = self._column(name)
        found = column.take(pa.array(source, mask=source < 0))
        if not shift.any():
            return found
        moments = pc.add(found.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()), pa.array(shift))
        return moments.cast(pa.timestamp("us", tz="UTC")).cast(column.type)

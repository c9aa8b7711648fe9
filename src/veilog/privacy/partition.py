"""Subsets of the cases of a log, by a public rule that looks at each case alone.

A rule puts every case into exactly one subset, by the month in which it starts or by an attribute of which it has one
value. The subset of a case follows from that case and from nothing else. So leaving out the cases of all other subsets
is a map of single cases. It takes neighbouring logs to neighbouring logs, or to the same log. Every proof about a query
holds for a query on a subset, too.

*Parallel composition.* Logs D and D' that differ by one case c are the same in every subset of a rule but that of c. A
release of another subset has the same law for D and for D'. This holds also where its queries are chosen after seeing
earlier releases. So of all releases of subsets of one rule only those of the subset that c is in can distinguish D from
D'. Their cost together, with the releases of the whole log, is what c loses: at most the largest sum of any subset.
With two rules c is in one subset of each, so their largest sums add up.

*Spans of days.* The subsets of the rule ``began`` are the days on which cases start. A release of a span of days is one
of all of them together. It can distinguish D from D' only if c starts within it. So c loses the releases of spans that
hold its first day, with those of the whole log. That is at most the largest sum of any day.

The claim that c is in one subset only concerns all that is ever released of it. Where a log grows or is corrected, a
case must keep its subset (condition ``cases-keep-their-subset``). A case that started in March still did when April's
events have been added to it. An extract by the date of events breaks this: a case of March and April is in both, and
loses both.

Persons have cases in several subsets, so for them releases of subsets add up as those of whole logs do.

Privacy
-------
*Remembered units.* At the data owner's wish the ledger keeps a digest of the name of every unit that a release of a
subset looked at. A unit is a case or a person. A unit whose digest stands with another subset of the rule is left out
of this one. Let u be the unit by which two neighbours differ: the logs of all releases are equal but for the cases of
u. Claim: two things hold before each release. First, the digests in the ledger are equal but for that of u. Second, the
log that the release looks at is equal but for the cases of u. Both hold before the first release. Suppose that the
digests are equal but for that of u. Then any other unit is left out of the one log if and only if it is left out of the
other. The reason is that this depends on its own digest and its own subset. So the second holds. The digests of the
units looked at are kept, so the first holds after the release. The choice of the next subset may follow from earlier
releases. So u is looked at in at most one subset of the rule, and loses the cost of its releases and no more. A release
of another subset has the same law with u and without it. The digests are kept in the transaction that reserves. A
release is refused if its ledger has a new entry of another subset since they were compared. This follows from the
entries and not from any unit. All this holds for persons, too, whose cases of a subset are cut to M first.

A unit is known by its name alone, so it must keep it, and share it with no other (condition
``units-keep-their-names``). A case without a name is left out, which follows from that case. Only the data owner sees
how many cases were left out.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, TIMESTAMP, EventLog, as_dictionary
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.persons import NUMBER, WORDS, attribute_key, columns_of_persons, owners

if TYPE_CHECKING:
    from veilog.logs.storage.stored_log import StoredLog


BoolArray = npt.NDArray[np.bool_]

NONE = "none"
"""Subset of the cases that a rule finds nothing in: without a start, or without one value of the attribute."""

RULES_OF_TIME = {"month": "2024-03", "week": "2024-W11", "quarter": "2024-Q1", "year": "2024"}
"""Rules about the start of a case, each with an example of a value."""

SPAN = "began"
"""Rule of spans of days: ``began=2024-03-01..2024-03-08`` are seven, the last one excluded."""

_PREFIX = "case:"
_RESERVED = frozenset({ACTIVITY, TIMESTAMP, CASE_INDEX, EVENT_INDEX, NESTED})
_LONGEST = 200
_EPOCH = datetime.date(1970, 1, 1)
_DAY = 86_400_000_000
_TEXTS = {
    "month": re.compile(r"([0-9]{4})-([0-9]{2})"),
    "week": re.compile(r"([0-9]{4})-W([0-9]{2})"),
    "quarter": re.compile(r"([0-9]{4})-Q([1-4])"),
    "year": re.compile(r"([0-9]{4})"),
}


@dataclass(frozen=True)
class Partition:
    """Cases that a rule gives one value: a month of start or an attribute's value."""

    rule: str
    """``month``, ``week``, ``quarter`` or ``year`` of the start, in UTC; or the name of an attribute."""
    value: str
    follows: bool = dataclasses.field(default=False, compare=False, repr=False)
    """True if a ledger named its first day as the end of the last release.

    The ledger checks it again when this one is entered.
    """

    @staticmethod
    def of(text: str) -> Partition:
        """Return the subset that is spelled ``month=2024-03`` or ``ward=A``.

        An attribute with the name of a rule of time is spelled ``case:month``.
        """
        if not isinstance(text, str):
            raise ParameterError("subset-not-rule-value", parameter="subset", advice=_ADVICE, text=text)
        rule, equals, value = text.partition("=")
        rule = rule.strip()
        if not equals or not rule or not value.strip():
            raise ParameterError("subset-not-rule-value", parameter="subset", advice=_ADVICE, text=text)
        if rule in RULES_OF_TIME or rule == SPAN:
            _check_time(rule, value)
            return Partition(rule, value)
        name = rule.removeprefix(_PREFIX)
        if not name or name in _RESERVED or not value.isprintable() or not rule.isprintable() or len(text) > _LONGEST:
            raise ParameterError("subset-name-invalid", parameter="subset", advice=_ADVICE, text=text[:_LONGEST])
        spelled = _text(value)
        if spelled is None:  # not a number: a case that has it counts as one without a value
            raise ParameterError("subset-name-invalid", parameter="subset", advice=_ADVICE, text=text)
        # One attribute is one rule, and one value one subset, however they are spelled.
        taken = name in RULES_OF_TIME or name == SPAN or name.startswith(_PREFIX)
        return Partition(_PREFIX + name if taken else name, spelled)

    def __str__(self) -> str:
        return f"{self.rule}={self.value}"

    @property
    def of_time(self) -> bool:
        """True if the rule looks at the start of a case, and not at an attribute."""
        return self.rule in RULES_OF_TIME or self.rule == SPAN

    @property
    def in_words(self) -> Message:
        """Description of these cases."""
        if self.rule == SPAN:
            first, _, end = self.value.partition("..")
            return Message("cases-between", first=first, end=end)
        if self.of_time:
            none = self.value == NONE
            return Message("cases-without-start") if none else Message("cases-of-period", period=self.value)
        attribute = repr(self.rule.removeprefix(_PREFIX))
        if self.value == NONE:
            return Message("cases-without-value", attribute=attribute, value=repr(NONE))
        return Message("cases-with-value", attribute=attribute, value=repr(self.value))

    def within(
        self, window: tuple[datetime.datetime, datetime.datetime]
    ) -> tuple[datetime.datetime, datetime.datetime]:
        """Return the window of starts of the subset's cases that start in ``window``.

        Where there are none, it is the window of the subset.
        """
        if not self.of_time or self.value == NONE:
            return window
        midnight = datetime.datetime.combine(_EPOCH, datetime.time(), datetime.UTC)
        first, end = (midnight + datetime.timedelta(days=day) for day in _days(self.rule, self.value))
        both = max(first, window[0]), min(end, window[1])
        return both if both[0] < both[1] else (first, end)

    def among(self, neighbours: Message) -> Message:
        """Return the neighbours in words, restricted to the cases that were looked at."""
        return Message("neighbours-of-subset", neighbours=neighbours, cases=self.in_words)

    @overload
    def of_log(self, log: EventLog) -> EventLog: ...

    @overload
    def of_log(self, log: EventLog | StoredLog | Variants) -> EventLog | StoredLog: ...

    def of_log(self, log: EventLog | StoredLog | Variants) -> EventLog | StoredLog:
        """Return the log with the cases of this subset alone, in their order.

        Variants have no subsets. Each case is kept or left out by itself. When a case is added or removed, the result
        changes by that case, or not at all.
        """
        if isinstance(log, Variants):
            raise ParameterError("subset-of-variants", parameter="log", value=self)
        if not self.of_time:
            self._check_attribute(log.shape)
        of_rule = [] if self.of_time else _columns(log.shape, self.rule.removeprefix(_PREFIX))
        held = log.each(lambda piece, _first: self._holds(piece), [field.name for field, _ in of_rule])
        kept: BoolArray = np.concatenate([np.zeros(0, dtype=np.bool_), *held])
        return log if kept.all() else log.only(np.flatnonzero(kept))

    def _holds(self, log: EventLog) -> BoolArray:
        """Return True for each case in this subset."""
        return self._select_by_start(log) if self.of_time else self._select_by_value(log)

    def _select_by_start(self, log: EventLog) -> BoolArray:
        """Return True for each case that starts in it, at the earliest time of its events."""
        times = pc.fill_null(log.events.column(TIMESTAMP).cast(pa.int64()), _NEVER).to_numpy()
        start = np.full(log.cases.num_rows, _NEVER, dtype=np.int64)
        filled = np.flatnonzero(np.diff(log.offsets))
        if len(filled):
            start[filled] = np.minimum.reduceat(times, log.offsets[:-1][filled])
        if self.value == NONE:
            return np.asarray(start == _NEVER)
        first, end = _days(self.rule, self.value)
        return np.asarray((start >= first * _DAY) & (start < end * _DAY))

    def _check_attribute(self, shape: EventLog) -> None:
        """Refuse an attribute that the log lacks, or whose values have no plain text."""
        columns = _columns(shape, self.rule.removeprefix(_PREFIX))
        if not columns:
            known = [f"{_PREFIX}{c}" for c in shape.cases.column_names if c not in _RESERVED]
            known += [c for c in shape.events.column_names if c not in _RESERVED]
            raise ParameterError(
                "subset-attribute-missing",
                parameter="subset",
                rule=self.rule,
                meant=meant(self.rule, known),
                names=", ".join(known) or Message("names-none"),
                help=_ADVICE,
            )
        others = [field.type for field, _ in columns if not _has_texts(field.type)]
        if len(others) == len(columns):
            raise ParameterError("subset-attribute-type-unsuited", parameter="subset", rule=self.rule, others=others[0])

    def _select_by_value(self, log: EventLog) -> BoolArray:
        """Return True for each case with this value, by itself or on all its events.

        The value of the case itself comes first. In XES some cases may have an attribute and events of others; neither
        matters for another case.
        """
        found = np.zeros(log.cases.num_rows, dtype=np.bool_)
        undecided = np.ones(log.cases.num_rows, dtype=np.bool_)
        for field, of_events in _columns(log, self.rule.removeprefix(_PREFIX)):
            if not _has_texts(field.type):
                continue  # a value that is no text is none
            column = (log.events if of_events else log.cases).column(field.name)
            codes, wanted = _encode_values(column, _text(self.value))
            if of_events:
                said, same = _first_values(codes, log)
            else:
                said, same = codes, np.ones(len(codes), dtype=np.bool_)
            found |= undecided & same & np.isin(said, wanted)
            if self.value == NONE:
                found |= undecided & ~same
            undecided &= same & (said < 0)  # values that differ within the case decide it, too
        return found | undecided if self.value == NONE else found


def names_of_units(log: EventLog | StoredLog, column: str | None) -> list[str | None]:
    """Return each case's name of its unit, a person in ``column`` or itself, or None."""
    columns = [ACTIVITY] if column is None else list(columns_of_persons(log.shape, column))
    found = log.each(lambda piece, _first: _case_texts(piece, column), columns)
    return [name for names in found for name in names]


def _case_texts(log: EventLog, column: str | None) -> list[str | None]:
    if column is not None:
        persons: list[str | None] = owners(log, column).named.to_pylist()
        return persons
    if ACTIVITY not in log.cases.column_names:
        return [None] * log.cases.num_rows
    return [None if name is None else str(name) for name in log.cases.column(ACTIVITY).to_pylist()]


_ADVICE = Message("subset-spelled-as", rules=", ".join(f"{rule}={value}" for rule, value in RULES_OF_TIME.items()))
_NEVER = int(np.iinfo(np.int64).max)


def day_named(text: str, parameter: str) -> datetime.date:
    """Return the day that is spelled ``2024-03-14``; a ledger compares this spelling."""
    try:
        day = datetime.date.fromisoformat(text.strip())
        if day.isoformat() == text.strip():
            return day
    except ValueError:
        pass
    raise ParameterError("subset-option-not-day", parameter=parameter, name=parameter, text=text)


def _check_time(rule: str, value: str) -> None:
    if value == NONE and rule != SPAN:
        return
    try:
        first, end = _days(rule, value)
    except (ValueError, OverflowError):
        example = RULES_OF_TIME.get(rule, "2024-03-01..2024-03-08")
        what = "span of days" if rule == SPAN else rule
        raise ParameterError(
            "subset-value-invalid", parameter="subset", value=value, what=what, rule=rule, example=example
        ) from None
    if first >= end:
        raise ParameterError("subset-value-not-day", parameter="subset", value=value)


def _days(rule: str, value: str) -> tuple[int, int]:
    """Return the first day and the day after the last, from 1970, or raise ValueError."""
    if rule == SPAN:
        texts = value.split("..")
        start, stop = (datetime.date.fromisoformat(text) for text in texts)
        if [start.isoformat(), stop.isoformat()] != texts:  # one spelling, which a ledger can compare
            raise ValueError(value)
        return (start - _EPOCH).days, (stop - _EPOCH).days
    match = _TEXTS[rule].fullmatch(value)
    if match is None:
        raise ValueError(value)
    year, *rest = (int(number) for number in match.groups())
    if rule == "week":
        first = datetime.date.fromisocalendar(year, rest[0], 1)
        return (first - _EPOCH).days, (first - _EPOCH).days + 7
    months = {"month": 1, "quarter": 3, "year": 12}[rule]
    month = (rest[0] - 1) * months + 1 if rest else 1
    first = datetime.date(year, month, 1)
    end = datetime.date(year + (month - 1 + months) // 12, (month - 1 + months) % 12 + 1, 1)
    return (first - _EPOCH).days, (end - _EPOCH).days


def _columns(log: EventLog, name: str) -> list[tuple[pa.Field, bool]]:
    """Return the columns of an attribute, of cases first, and True for each of events.

    An attribute with values of several types has several columns. Their names follow from which came first.
    """
    events = [f for called in (_PREFIX + name, name) for f in log.events.schema if _key(f) == called]
    cases = [field for field in log.cases.schema if _key(field) == name]
    return [*((field, False) for field in cases), *((field, True) for field in events)]


def _key(field: pa.Field) -> str | None:
    """Return the name of the attribute in a column; None for a column of none."""
    return None if field.name in _RESERVED else attribute_key(field)


def _has_texts(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
    )
    return bool(pa.types.is_null(kind) or any(test(kind) for test in tests))


def _encode_values(column: pa.ChunkedArray, value: str | None) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Return equal numbers for equal spellings, -1 for none, and that of ``value``."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = as_dictionary(column)
    spelled = [_text(held) for held in encoded.dictionary.to_pylist()]
    places = {text: place for place, text in enumerate(dict.fromkeys(text for text in spelled if text is not None))}
    recode = np.array([-1 if text is None else places[text] for text in spelled] + [-1], dtype=np.int64)
    codes = recode[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
    return codes, [places[value]] if value in places else []


def _text(value: Any) -> str | None:
    """Return a value as it is spelled, by itself.

    Numbers and truth values are spelled alike whatever type the others of the column give it. So the subset of a case
    does not depend on another case.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if not NUMBER.fullmatch(value):
            return WORDS.get(value, value)
        value = float(value)
    if value is None or value != value:
        return None
    number = float(value)
    return str(int(number)) if math.isfinite(number) and number == int(number) else repr(number)


def _first_values(codes: npt.NDArray[np.int64], log: EventLog) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Return each case's first value (-1: none), and True if all its events share it."""
    lengths = np.diff(log.offsets)
    filled = np.flatnonzero(lengths)
    said = np.full(log.cases.num_rows, -1, dtype=np.int64)
    said[filled] = codes[log.offsets[:-1][filled]]
    same = np.ones(log.cases.num_rows, dtype=np.bool_)
    same[np.repeat(np.arange(len(lengths)), lengths)[codes != np.repeat(said, lengths)]] = False
    return said, same


def stated_subset(log: EventLog) -> Partition | None:
    """Return the subset that a released log's metadata state, or None."""
    operations = (a.children for a in log.metadata.attributes if a.key == "privacy:anonymizations")
    facts = (fact for children in operations for child in children for fact in child.children)
    for fact in facts:
        if fact.key == "privacy:subset" and isinstance(fact.value, str):
            try:
                return Partition.of(fact.value)
            except ParameterError:
                return None
    return None


def same_cases(original: EventLog | StoredLog | Variants, released: object) -> EventLog | StoredLog | Variants:
    """Return the cases of an original that a release is of: a known subset, or all."""
    subset = stated_subset(released) if isinstance(released, EventLog) else None
    if subset is None or isinstance(original, Variants):
        return original
    try:
        return subset.of_log(original)
    except ParameterError:  # it has no such column: these may be the cases of the subset already
        return original

"""Public facts of a process: its activities, and the longest trace.

Where times and attributes are released, they include the window in which cases start and the values that attributes may
have.

Declared facts come from outside the log (a data dictionary, the process documentation). A guarantee needs no condition
about them: every case is made to fit by itself. ``"log"`` is the data owner's word that the facts in the log are
public; the guarantee names it as a condition. With neither, a method that needs a fact refuses. Activities may also be
found ``"privately"``, with a charged query of its own, after which rare ones do not exist for the release.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from veilog.errors import ParameterError, meant
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.budgets import whole_number
from veilog.privacy.account.guarantee import Condition

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Values = tuple[str, ...] | tuple[float, float]
"""Values of an attribute: a list of them, or the range of its numbers."""
FROM_LOG: Literal["log"] = "log"
"""Word of the data owner that a fact is public as the log has it."""
PRIVATELY: Literal["privately"] = "privately"
"""Search for activities with a part of epsilon and delta."""
Fact = Literal["activities", "max_length"]
"""Fact about the process that a method may need."""
Window = tuple[datetime.datetime, datetime.datetime]
"""Window of case starts: its first time, and the time before which cases start."""
_FARTHEST = 1e300
"""Largest distance of a range's end from 0; one over it is the least between ends, as floats work with its steps."""


@dataclass(frozen=True)
class Domain:
    """Declared public facts; None where a fact is not declared."""

    activities: tuple[str, ...] | Literal["log", "privately"] | None = None
    max_length: int | Literal["log"] | None = None
    attributes: Mapping[str, Values] = field(default_factory=dict)
    """Values of each declared attribute, or a pair of numbers: their range."""
    window: Window | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.attributes, Mapping):
            raise ParameterError("domain-attributes-not-mapping", parameter="domain", attributes=self.attributes)
        object.__setattr__(self, "attributes", {name: _values(name, v) for name, v in self.attributes.items()})
        if self.window is not None:
            object.__setattr__(self, "window", _window(*pair_of_times(self.window)))
        if self.activities not in (None, FROM_LOG, PRIVATELY):
            names = self.activities
            if isinstance(names, str) or not _are_names(names):
                raise ParameterError(
                    "domain-activities-not-collection",
                    parameter="activities",
                    meant=meant(names, (FROM_LOG, PRIVATELY)) if isinstance(names, str) else "",
                )
            if (twice := _twice(names)) is not None:
                raise ParameterError("domain-activity-twice", parameter="domain", twice=twice)
            if not names:
                raise ParameterError("domain-activities-empty", parameter="domain")
            object.__setattr__(self, "activities", tuple(sorted(names)))
        length = self.max_length
        if length is None or (isinstance(length, str) and length == FROM_LOG):
            return
        found = whole_number(length)
        if found is None or found < 1:
            raise ParameterError("domain-length-invalid", parameter="max_length", length=length)
        object.__setattr__(self, "max_length", found)

    def values_of(self, name: str) -> Values | None:
        """Return the declared values of an attribute, with or without ``case:``, or None."""
        return self.attributes.get(name, self.attributes.get(name.removeprefix("case:")))

    @staticmethod
    def of(activities: Iterable[str] | str | None = None, max_length: int | Literal["log"] | None = None) -> Domain:
        """Return the domain with these activities: names, ``log``, ``privately`` or None."""
        if isinstance(activities, str) or activities is None:
            return Domain(activities, max_length)  # type: ignore[arg-type]
        if not isinstance(activities, Iterable):
            return Domain(activities, max_length)  # which refuses it
        return Domain(tuple(activities), max_length)

    @property
    def alphabet(self) -> tuple[str, ...] | None:
        """Declared activities, None where there is no list of them."""
        return self.activities if isinstance(self.activities, tuple) else None

    @property
    def longest(self) -> int | None:
        """Declared bound on the length of a trace, None where there is no number."""
        return self.max_length if isinstance(self.max_length, int) else None

    def lacks(self, needed: Iterable[Fact]) -> list[Fact]:
        """Return those of these facts that have no declaration."""
        return sorted(fact for fact in needed if getattr(self, fact) is None)

    def taken_from_log(self, facts: Iterable[Fact]) -> Domain:
        """Return the domain with undeclared facts among these taken from the log."""
        return replace(self, **dict.fromkeys(self.lacks(facts), FROM_LOG))  # type: ignore[arg-type]

    def fit(self, variants: Variants) -> Variants:
        """Return the variants with every case made to fit the declared domain, by itself.

        Undeclared activities are left out of a case, then it is cut to the declared length. A map of single cases takes
        neighbouring logs to neighbouring logs. So every proof about queries on the result holds for the log.
        """
        owner = np.repeat(np.arange(len(variants)), variants.lengths)
        keep = self.keeps(variants.labels, variants.codes, owner, variants.offsets)
        if keep.all():
            return variants
        offsets = np.zeros(len(variants) + 1, dtype=np.int64)
        np.cumsum(np.bincount(owner[keep], minlength=len(variants)), out=offsets[1:])
        return Variants.from_arrays(variants.labels, variants.codes[keep], offsets, variants.counts)

    def holds(self, labels: Sequence[str], lengths: IntArray) -> bool:
        """Return True if sequences with these labels and lengths fit as they are."""
        return (self.alphabet is None or set(self.alphabet).issuperset(labels)) and (
            self.longest is None or int(lengths.max(initial=0)) <= self.longest
        )

    def keeps(
        self, labels: Sequence[str], codes: npt.NDArray[np.integer], owner: IntArray, offsets: IntArray
    ) -> BoolArray:
        """Return True for each event that fits, given the sequence (``owner``) of each."""
        keep: BoolArray = np.ones(len(codes), dtype=np.bool_)
        if self.alphabet is not None and len(codes):
            declared = set(self.alphabet)
            keep = np.array([label in declared for label in labels], dtype=np.bool_)[codes]
        if self.longest is not None:
            kept_before: IntArray = np.cumsum(keep) - keep
            at_start = np.concatenate([kept_before, [keep.sum()]])[offsets[:-1]]
            keep &= kept_before - at_start[owner] < self.longest
        return keep


ALL_FROM_LOG = Domain(FROM_LOG, FROM_LOG)
"""Word of the data owner that activities and longest trace are public as in the log: for experiments."""

ACTIVITIES_FROM_LOG = Condition("activities-from-log", "owner", Message("activities-from-log"))
LENGTH_FROM_LOG = Condition("length-from-log", "owner", Message("length-from-log"))
"""Conditions of a guarantee where a fact is taken from the log."""


def undeclared(fact: Fact) -> ParameterError:
    """Return the error of a method that needs an undeclared fact."""
    what = "activities" if fact == "activities" else "length of the longest trace"
    return ParameterError("domain-not-declared", parameter=fact, what=what)


def checked_domain(domain: Domain | None) -> Domain:
    """Return the declared public facts, an empty domain for None, or refuse the type."""
    if domain is None or isinstance(domain, Domain):
        return domain or Domain()
    raise ParameterError("domain-type-wrong", parameter="domain", kind=type(domain).__name__)


def pair_of_times(window: object) -> Window:
    """Return a pair of times: a date is its midnight; a time without a zone is in UTC.

    >>> pair_of_times("2024-01-01..2025-01-01")[1]
    datetime.datetime(2025, 1, 1, 0, 0)
    """
    ends: tuple[object, ...] = ()
    if isinstance(window, str):
        ends = tuple(window.split(".."))
    elif isinstance(window, Sequence | np.ndarray):
        ends = tuple(window)
    start, end = map(_time, ends) if len(ends) == 2 else (None, None)
    if start is None or end is None:
        raise ParameterError("window-not-pair", parameter="window", window=window)
    return start, end


def _time(value: object) -> datetime.datetime | None:
    if isinstance(value, np.datetime64):
        value = None if np.isnat(value) else value.astype("datetime64[us]").item()
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    # The missing time of pandas is a datetime, too, and not equal to itself.
    return value if isinstance(value, datetime.datetime) and value == value else None


def _are_names(names: object) -> bool:
    return isinstance(names, Iterable) and all(isinstance(name, str) for name in names)


def _values(name: str, declared: Iterable[str] | Iterable[float]) -> Values:
    given = isinstance(declared, Iterable) and not isinstance(declared, str)
    values: tuple[str | float, ...] = tuple(declared) if given else ()
    ends = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(ends) == len(values) == 2:
        low, high = ends  # a whole number may be more than a float holds
        if not (-_FARTHEST <= low <= _FARTHEST and -_FARTHEST <= high <= _FARTHEST and high - low >= 1 / _FARTHEST):
            if not low < high:
                raise ParameterError("domain-range-reversed", parameter="domain", name=name)
            raise ParameterError(
                "domain-range-too-far", parameter="domain", name=name, farthest=_FARTHEST, nearest=1 / _FARTHEST
            )
        return float(low), float(high)
    names = tuple(str(v) for v in values if isinstance(v, str))
    if not names or len(names) != len(values):
        raise ParameterError("domain-not-values-or-range", parameter="domain", name=name)
    if (twice := _twice(names)) is not None:
        raise ParameterError("domain-value-twice", parameter="domain", twice=twice, name=name)
    return names


def _twice(names: Iterable[str]) -> str | None:
    """Return the first name that is among them a second time."""
    return next((name for name, often in Counter(names).items() if often > 1), None)


def _window(start: datetime.datetime, end: datetime.datetime) -> Window:
    zoned = [t.replace(tzinfo=datetime.UTC) if t.tzinfo is None else t.astimezone(datetime.UTC) for t in (start, end)]
    if not zoned[0] < zoned[1]:
        raise ParameterError("window-ends-before-start", parameter="window")
    return zoned[0], zoned[1]

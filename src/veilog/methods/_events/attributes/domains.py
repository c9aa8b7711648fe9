"""Attributes that can be released, and their domains.

Domains are public facts, or are found with a delta.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa

from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.messages import Message
from veilog.privacy.cases import Coding, Kind, Level
from veilog.privacy.curator import Curator

VALUES_A_CASE = 3
DOMAIN_SHARE = Fraction(3, 10)
"""Part of the epsilon of an attribute without a declared domain that finds its values.

A third of it is for the check.
"""
TOO_DISTINCT = 0.5
"""Number of values per case from which on an attribute distinguishes cases."""
OTHER = "other"
"""Released value in place of one that was not found."""
PARTS = 16
"""Parts of the range of a number in the first query. A range of so few whole numbers is a list of values."""
FINEST, _DIGITS, _PRECISION = 100_000, 15, 2.0**-50
"""Approximate number of steps of the lattice of numbers, unless their decimals are known."""
MOST_DECIMALS, COARSEST = 3, 2
"""Most decimals that numbers are queried for, and the least of those whose decimals are unknown.

Amounts of money have the latter.
"""
_OFFSETS = tuple(2.0**k / 24 for k in range(21))
DAYS = (*(-x for x in reversed(_OFFSETS)), 0.0, *_OFFSETS)
"""Edges of bins of dates, in days since the start of the case: an hour, twice as long and so on up to 119 years."""
_FARTHEST = {"whole number": 9e18, "date": 3e6}
"""Largest distance from 0 of values that are no floats.

Whole numbers have 64 bits. Dates are days from the start of a case, up to 8,000 years.
"""
_SENSITIVE = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|name|surname|firstname|lastname|email|mail|phone|mobile|address|street|zip|postcode|"
    r"iban|ssn|bsn|comment|comments|note|notes|remark|remarks|description|text|message|free ?text)([^a-z]|$)"
)


@dataclass(frozen=True)
class Chosen:
    """Attribute with its public domain: values, or the range of its numbers."""

    name: str
    level: Level
    kind: Kind
    values: tuple[str, ...] = ()
    range: tuple[float, float] | None = None
    others: bool = False
    """True if values that are not listed count as "other", not as none."""
    decimals: int | None = None
    """Number of decimals of its numbers, by a noisy answer.

    It is one more than ``MOST_DECIMALS`` for any more. Dates are numbers of days.
    """

    @property
    def column(self) -> str:
        """Name of its column in the release."""
        return self.name.removeprefix("case:")

    @property
    def of_case(self) -> bool:
        """True if the user declares it as one of the case, though events hold it."""
        return self.level == "event" and self.name.startswith("case:")

    @property
    def numeric(self) -> bool:
        return not self.values

    @cached_property
    def unit(self) -> float:
        """Step of the lattice of its numbers."""
        if self.range is None:
            return 1.0
        low, high = self.range
        step = float(10.0 ** np.ceil(np.log10((high - low) / FINEST)))
        if self.kind != "number":
            return max(step, 1.0) if self.kind == "whole number" else step
        if self.decimals is None or self.decimals > MOST_DECIMALS:
            step = min(step, 10.0 ** -(COARSEST if self.decimals is None else self.decimals))
        else:
            # A range of numbers that are written with more decimals would not end on the lattice.
            ends = (d for d in range(_DIGITS) if round(low, d) == low and round(high, d) == high)
            step = 10.0 ** -max(self.decimals, next(ends, _DIGITS))
        # No step is finer than the difference between floats of this size.
        return float(max(step, 10.0 ** np.ceil(np.log10(max(abs(low), abs(high)) * _PRECISION))))

    def coding(self, edges: tuple[float, ...] = ()) -> Coding:
        """Return the coding of its values as integers.

        Numbers are in bins with these ``edges``, or in ``PARTS`` even parts of the range.
        """
        if not self.numeric:
            return Coding(self.name, values=self.values, others=self.others)
        if self.range is None:
            return Coding(self.name, edges=DAYS)
        return Coding(self.name, edges=edges or edges_of(self.lattice(PARTS), self.unit))

    def lattice(self, parts: int) -> IntArray:
        """Return edges of about even parts of its range, as places on the lattice.

        Edges of its :attr:`points` are among them.
        """
        low, high = self._ends
        edges = np.round(np.linspace(low, high + 1, parts + 1)).astype(np.int64)
        return np.unique(np.concatenate([edges, self.points, self.points + 1]))

    @property
    def points(self) -> IntArray:
        """Return values that are common by nature, as places on the lattice.

        That is 0, where it is in the range. Dates have none, and neither has a range of which each part is only a few
        values.
        """
        low, high = self._ends
        apart = self.kind != "date" and high + 1 - low > 2 * PARTS and low <= 0 <= high
        return np.array([0] if apart else [], dtype=np.int64)

    @property
    def _ends(self) -> tuple[int, int]:
        """Places of the least and the greatest number."""
        assert self.range is not None
        low, high = (int(np.floor(end / self.unit + 1e-6)) for end in self.range)
        return low, high


def edges_of(places: IntArray, unit: float) -> tuple[float, ...]:
    """Return edges on the lattice as numbers."""
    return tuple((places * unit).tolist())


def typed_values(chosen: Chosen) -> pa.Array:
    """Return the listed values in the type of the log's column."""
    types = {"text": pa.string(), "boolean": pa.bool_(), "whole number": pa.int64(), "number": pa.float64()}
    values = [*chosen.values, OTHER] if chosen.others else list(chosen.values)
    try:
        return pa.array(values, pa.string()).cast(types.get(chosen.kind, pa.date32()))
    except pa.ArrowInvalid:
        raise ParameterError(
            "attribute-domain-not-fitting", parameter="domain", name=chosen.name, kind=chosen.kind
        ) from None


def choose(
    curator: Curator,
    names: tuple[str, ...],
    epsilon: Fraction,
    delta: Fraction,
    remark: Callable[[Message], None],
    *,
    dated: bool = False,
) -> tuple[tuple[Chosen, ...], Fraction]:
    """Return the attributes that can be released, with domains, and the epsilon left.

    ``dated``: True if the release has times from which dates can be computed.
    """
    if len({name.removeprefix("case:") for name in names}) != len(names) and _twice(curator, names):
        raise ParameterError("attributes-asked-twice", parameter="attributes")
    open_ = [name for name in names if _declared_domain(curator, name, dated=dated) is None]
    if open_ and delta == 0:
        raise ParameterError("attribute-values-need-delta", parameter="attributes", open=open_[0])
    chosen, rest = [], epsilon
    for name in names:
        found = _declared_domain(curator, name, dated=dated)
        if found is not None and found.kind == "date" and found.range is None:
            remark(Message("attribute-dates-without-range", name=name))
        if found is None:
            share = epsilon / len(names) * DOMAIN_SHARE
            rest -= share
            values = _query_values(curator, name, share, delta / len(open_))
            kind = curator.events.kind(name)
            others = kind == "text" and OTHER not in values
            found = Chosen(name, curator.events.level(name), kind, values, others=others) if values else None
        if found is not None:
            chosen.append(found)
        else:
            remark(Message("attribute-without-frequent-value", name=name))
    return tuple(chosen), rest


def _twice(curator: Curator, names: tuple[str, ...]) -> bool:
    """Return True if two names mean the same column."""
    columns = [(curator.events.level(name), name.removeprefix("case:")) for name in names]
    return len(set(columns)) != len(columns)


def _declared_domain(curator: Curator, name: str, *, dated: bool) -> Chosen | None:
    """Return the attribute with its declared domain, or that of its type.

    None means that its values are to be found. Only dates and booleans have a domain by their type.
    """
    level, kind, values = curator.events.level(name), curator.events.kind(name), curator.domain.values_of(name)
    if kind == "date" and not dated:
        raise ParameterError("attribute-dates-with-domain", parameter="attributes", name=name)
    if values is None:
        _refuse_by_name(name)
        # The type of a boolean gives its values.
        usual = ("false", "true") if kind == "boolean" else ()
        return Chosen(name, level, kind, usual) if kind in ("date", "boolean") else None
    if isinstance(values[0], str):
        found = Chosen(name, level, kind, tuple(str(v) for v in values))
        typed_values(found)  # refuses values that do not fit, before any query
        return found
    if kind not in ("number", "whole number", "date"):
        raise ParameterError("attribute-range-without-numbers", parameter="domain", name=name)
    low, high = float(values[0]), float(values[1])
    if kind != "number":
        low, high = max(low, -_FARTHEST[kind]), min(high, _FARTHEST[kind])
        if low >= high:
            raise ParameterError(
                "attribute-range-reversed",
                parameter="domain",
                name=name,
                value=-_FARTHEST[kind],
                farthest=_FARTHEST[kind],
            )
    whole = range(math.ceil(low), math.floor(high) + 1) if kind == "whole number" else range(0)
    if 0 < len(whole) <= PARTS:
        return Chosen(name, level, kind, tuple(map(str, whole)))
    return Chosen(name, level, kind, range=(low, high))


def _refuse_by_name(name: str) -> None:
    if _SENSITIVE.search(re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " ").lower()):
        raise ParameterError("attribute-name-identifying", parameter="attributes", name=name)


def _query_values(curator: Curator, name: str, share: Fraction, delta: Fraction) -> tuple[str, ...]:
    distinct, cases = curator.events.distinct(name, share / 3)
    # Noise alone, of scale 6/share, refuses one attribute in 6000. The selection of values keeps back what it hides.
    if cases > 0 and distinct > TOO_DISTINCT * cases + 8 * 6 / float(share):
        raise ParameterError(
            "attribute-tells-cases-apart", parameter="attributes", name=name, distinct=distinct, cases=cases
        )
    most = 1 if curator.events.level(name) == "case" else VALUES_A_CASE
    return curator.events.frequent_values(name, most, share - share / 3, delta)

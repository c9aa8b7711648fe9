"""Protection of people who own several cases, not only of single cases.

A person's cases are bounded to m before anything is measured, or it is known from elsewhere that no person has more.
The method then makes its queries at a budget for one case. Group privacy turns their total for a case into the total
for a person (Dwork, Roth, "The Algorithmic Foundations of Differential Privacy", 2014, theorem 2.2 and its (epsilon,
delta) form). Logs that differ by a person differ by at most m cases. So a chain of m + 1 logs joins them, of which
neighbours differ by one case, and

    P(A) <= exp(e) P(B) + d along each step gives P(A) <= exp(m e) P(B) + d (1 + exp(e) + ... + exp((m-1) e)).

Noise of scale 1/e for one case is noise of scale m/(m e) for a person: every sensitivity has grown by the factor m.

Some cases name no person. This is known of each such case alone, so no policy about them may depend on their number. A
refusal of the log would reveal one case. Let L be a log, and K(L) the cases of L that are looked at.

*Left out*, the usual policy: K(L) are the cases that name a person, cut to m of each. Add a person to L, with any
number of cases that name it and any number that do not. This adds at most m cases to K(L) and removes none. Those that
name it are cut by themselves, the others are left out by themselves. So the guarantee holds for every person, also for
one of whose cases some lack the name, and it has no condition. A case that names several people is always left out. An
attribute of the case itself names one. Where rows of a table differ about it, it is unknown, unless the data owner has
the first taken (``case-attribute-differs=keep``). Then the case does not name the people of its other rows.

*Own*: K(L) has, in addition to these, each case that names no person, as if it were the only one of some person. Add a
person with m cases that name it and none that do not, or a single case that names no person. Either adds at most m
cases to K(L). No one can see whether a case without a name is of a person without other cases. A person with k such
cases counts with k + m, and the chain of so many protects it. So the guarantee states the condition under which it is
one for people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from veilog.errors import InputError, ParameterError, meant
from veilog.logs.eventlog import EventLog, as_dictionary
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.privacy.account.budgets import whole_number
from veilog.privacy.account.guarantee import NEIGHBOURS, Charge, Condition
from veilog.privacy.mechanisms.noise import Randomness
from veilog.privacy.partition import Partition
from veilog.privacy.persons import Owners, columns_of_persons, owners

if TYPE_CHECKING:
    from veilog.logs.storage.stored_log import StoredLog


IntArray = npt.NDArray[np.int64]

WithoutPerson = Literal["left-out", "own"]
"""Policies for cases that name no person: see above."""

MOST_CASES = 1_000_000
"""Largest bound: more cases of one person leave nothing of any budget."""


@dataclass(frozen=True)
class Unit:
    """Protected unit: one case, or a person with at most ``most_cases`` cases."""

    name: str = "case"
    """Name of the unit in a guarantee."""
    most_cases: int = 1
    column: str | None = None
    """Attribute that names the person of a case; None where the bound is an assumption about persons."""
    without_person: WithoutPerson = "left-out"
    """Policy for cases in which it names no person."""

    @staticmethod
    def of(unit: str, max_cases: int | None, without_person: str | None = None) -> Unit:
        """Return the unit that the user requests.

        Args:
            unit: ``case``; ``person``, which assumes that no person has more than ``max_cases``; or the name of the
                attribute that names the person.
            max_cases: Largest number of cases of a person.
            without_person: Policy for cases that name no person.

        """
        if not isinstance(unit, str):
            raise ParameterError("unit-not-text", parameter="unit", unit=unit)
        kept = _policy_without_person(without_person, unit)
        if unit == "case":
            if max_cases is not None:
                raise ParameterError("unit-bound-without-unit", parameter="max_cases")
            return ONE_CASE
        if max_cases is None:
            near = "" if unit == "person" else meant(unit, ("case", "person"))
            raise ParameterError("unit-without-bound", parameter="max_cases", unit=unit, near=near)
        most = whole_number(max_cases)
        if most is None or not 1 <= most <= MOST_CASES:
            raise ParameterError(
                "unit-max-cases-invalid", parameter="max_cases", most_cases=MOST_CASES, max_cases=max_cases
            )
        return Unit("person", most, None if unit == "person" else unit, kept)

    @property
    def told(self) -> dict[str, str | int]:
        """Arguments of :meth:`of` that make it, without defaults."""
        if self.name == "case":
            return {}
        told: dict[str, str | int] = {"unit": self.column or self.name, "max_cases": self.most_cases}
        return told if self.without_person == "left-out" else {**told, "without_person": self.without_person}

    @property
    def neighbours(self) -> Message:
        if self.name == "case":
            return NEIGHBOURS
        cases = "case" if self.most_cases == 1 else "cases"
        if self.column is None:
            return Message(f"neighbours-by-person-of-{cases}", n=self.most_cases)
        own = "-or-without-person" if self.without_person == "own" else ""
        return Message(f"neighbours-by-column{own}-of-{cases}", column=repr(self.column), n=self.most_cases)

    @property
    def in_ledger(self) -> dict[str, object]:
        """Facts about persons for an entry in a ledger."""
        return {name: value for name, value in self.told.items() if name != "unit"}

    @property
    def remarks(self) -> tuple[Message, ...]:
        """Warnings for recipients about the cases looked at; they follow from the request."""
        if self.column is None:
            return ()
        if self.without_person == "own":
            return (Message("unit-cases-of-several-dropped", name=self.column),)
        return (Message("unit-cases-without-person-dropped", name=self.column),)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions about persons."""
        if self.name == "case":
            return ()
        if self.column is not None:
            if self.without_person == "left-out":
                return ()
            text = Message("without-person-are-single", column=repr(self.column))
            return (Condition("without-person-are-single", "owner", text),)
        return (Condition("cases-per-person-bounded", "owner", Message("cases-per-person-bounded", n=self.most_cases)),)

    def of_one_case(self, epsilon: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
        """Return the budget for one case at which a person gets this one."""
        per_case = epsilon / self.most_cases
        return per_case, delta / _growth(per_case, self.most_cases) if delta else delta

    def charges(self, charges: Iterable[Charge]) -> tuple[Charge, ...]:
        """Return the charges for this unit of all these charges for one case together."""
        asked = tuple(charges)
        if self.most_cases == 1:
            return asked
        growth = Fraction(0)
        if any(charge.delta for charge in asked):
            growth = _growth(sum((charge.epsilon for charge in asked), Fraction(0)), self.most_cases)
        return tuple(
            replace(
                charge,
                cases=self.most_cases,
                epsilon=charge.epsilon * self.most_cases,
                delta=charge.delta * growth,
            )
            for charge in asked
        )


ONE_CASE = Unit()


def _policy_without_person(said: str | None, unit: str) -> WithoutPerson:
    """Return the policy for cases that name no person, or refuse it for this unit."""
    if said is None:
        return "left-out"
    if said not in get_args(WithoutPerson):
        raise ParameterError("without-person-unknown", parameter="without_person", said=said)
    if unit in ("case", "person") and said == "own":
        raise ParameterError("without-person-without-column", parameter="without_person")
    return said  # type: ignore[return-value]


@lru_cache(maxsize=256)
def _growth(epsilon: Fraction, most: int) -> Fraction:
    """Return hardly more than ``1 + exp(e) + ... + exp((most-1) e)``, and never less.

    It only ever grows with ``e``.
    """
    if most == 1:
        return Fraction(1)
    e = float(epsilon)
    if e * most > 700:
        raise ParameterError("unit-delta-cannot-protect", parameter="max_cases", most=most)
    total = most if e == 0 else math.expm1(e * most) / math.expm1(e)
    return Fraction(total) * (1 + Fraction(1, 2**40))


def conditions_of_subset(subset: Partition | None, unit: Unit, remembered: bool) -> tuple[Condition, ...]:
    """Return the conditions of sums with releases of other subsets.

    Releases for persons add up, so they need none, unless their names are remembered.
    """
    whom = unit.name
    if subset is None or (whom != "case" and not remembered):
        return ()
    if remembered:
        return (Condition("units-keep-their-names", "program", Message("units-keep-their-names", unit=whom)),)
    text = Message("cases-keep-their-subset", rule=subset.rule)
    return (Condition("cases-keep-their-subset", "program", text),)


@dataclass(frozen=True, eq=False)
class PersonCases:
    """All cases of persons, before they are cut to so many of each.

    They count only for queries that bound persons by themselves (:mod:`veilog.privacy.histories`).
    """

    log: EventLog | StoredLog
    owner: IntArray
    """Number of each case's person; below 0 for a case that is left out."""


@dataclass(frozen=True, eq=False)
class Bounded:
    """Log of :func:`bound_units`, within its unit's cases and its subset only.

    It has no more cases of a person than its unit states. A curator of a column's persons takes nothing else, so that
    no way to it can leave out the bounding.
    """

    log: EventLog | StoredLog | Variants
    unit: Unit
    subset: Partition | None = None
    """Subset of the cases that it holds; None for all."""
    whole: EventLog | StoredLog | Variants | None = None
    """Log before any cases were left out, the source of public facts.

    The data owner declares them of this log, not of a subset's cases or of a person's drawn cases.
    """
    remembered: bool = False
    """True if units that an earlier subset had are left out of it."""
    people: PersonCases | None = None
    """All cases of the persons, where a column names these."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of sums with releases of other subsets."""
        return conditions_of_subset(self.subset, self.unit, self.remembered)

    @property
    def variants(self) -> Variants:
        return self.log if isinstance(self.log, Variants) else self.log.variants


def bound_units(
    log: EventLog | StoredLog | Variants,
    unit: Unit,
    randomness: Randomness,
    subset: Partition | None = None,
    new: IntArray | None = None,
) -> Bounded:
    """Return the cases of the subset, at most ``most_cases`` of a person.

    They are chosen at random where a person has more. Where units are remembered, only the cases at the places ``new``
    in the subset count.

    The subset of a case is known of the case alone (:mod:`veilog.privacy.partition`), so a person's cases of the subset
    come or go with the person.

    Each person's cases are chosen by themselves. Cases that name none or several are left out by themselves (or each is
    a person's own, see above). So adding a person adds at most ``most_cases`` cases to the result and changes nothing
    else. Every proof for logs that differ by so many cases holds for a person. The person of each case is known at once
    in this process, also where the events are elsewhere.
    """
    whole = log
    if subset is not None:
        log = subset.of_log(log)
        log = log if new is None else log.only(new)
    if unit.column is None:
        _refuse_namesake(log, unit)
        return Bounded(log, unit, subset, whole, new is not None)
    if isinstance(log, Variants):
        raise ParameterError("unit-of-variants", parameter="log", name=unit.column)
    column = unit.column
    of_pieces = log.each(lambda piece, _first: owners(piece, column), columns_of_persons(log.shape, column))
    owner = _number_persons(list(of_pieces), unit.without_person)
    words = randomness.words(2 * len(owner)).astype(np.uint64)
    lot = (words[::2] << np.uint64(32)) | words[1::2]
    order = np.lexsort((lot, owner))
    first = np.flatnonzero(np.diff(owner[order], prepend=_NOBODY - 1))
    place = np.arange(len(owner)) - np.repeat(first, np.diff(first, append=len(owner)))
    kept = np.sort(order[(place < unit.most_cases) & (owner[order] != _NOBODY)])
    cut = log if len(kept) == len(owner) else log.only(kept)
    return Bounded(cut, unit, subset, whole, new is not None, PersonCases(log, owner))


def check_somebody(log: EventLog | StoredLog | Variants, held: Bounded) -> None:
    """Refuse a log in which no case at all names a single person.

    Another attribute was meant, and the release would be noise. Only the data owner sees this, as any refusal. It does
    not apply to a subset: a release of one must not reveal that it has a person.
    """
    column = held.unit.column
    if column is None or held.subset is not None or not _cases(log) or _cases(held.log):
        return
    raise InputError("unit-column-without-value", path=None if isinstance(log, Variants) else log.source, name=column)


def _cases(log: EventLog | StoredLog | Variants) -> int:
    return log.cases if isinstance(log, Variants) else log.number_of_cases


def _refuse_namesake(log: EventLog | StoredLog | Variants, unit: Unit) -> None:
    """Refuse the unit ``person`` where a column of that name would be left unused."""
    if unit.name == "case" or isinstance(log, Variants):
        return
    if "person" in log.shape.cases.column_names or "person" in log.shape.events.column_names:
        raise ParameterError("unit-person-ambiguous", parameter="unit")


_NOBODY = -1


def _number_persons(found: list[Owners], without_person: WithoutPerson) -> IntArray:
    """Return the persons of all pieces as numbers; :data:`_NOBODY` for cases left out."""
    if not found:
        return np.zeros(0, dtype=np.int64)  # a subset without cases
    encoded = as_dictionary(pa.chunked_array([some.named for some in found], pa.string()))
    filled = pc.fill_null(encoded.indices, _NOBODY).to_numpy(zero_copy_only=False)
    numbers: IntArray = filled.astype(np.int64)
    if without_person == "own":
        alone = np.flatnonzero((numbers == _NOBODY) & ~np.concatenate([some.several for some in found]))
        numbers[alone] = len(encoded.dictionary) + np.arange(len(alone))
    return numbers

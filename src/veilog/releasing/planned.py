"""A release that was asked for, as a value: method, settings, budget, whom it protects, what is public, what else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, Self

from veilog.errors import ParameterError, UndeclaredError
from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.methods import Method, Settings
from veilog.methods._events.assemble import Wanted
from veilog.methods._events.attributes.errors import foreseen_errors
from veilog.methods._events.extras import delta_shared_out
from veilog.privacy.account.accounting import whole_number
from veilog.privacy.cases import attribute_level
from veilog.privacy.domain import PRIVATELY, Domain, Fact
from veilog.privacy.part import Part
from veilog.privacy.persons import columns_of_persons
from veilog.privacy.unit import Unit


class Uses(NamedTuple):
    """What a delta is spent on."""

    flow: bool
    labels: bool
    values: bool
    times: bool

    def of(self, delta: Fraction) -> tuple[Fraction, Fraction]:
        """Return what each of them has of a delta, and what times have."""
        return delta_shared_out(delta, sum(self[:-1]), self.times)


def uses_of(method: Method, settings: Settings, declared: Domain, wanted: Wanted) -> Uses:
    """Return what a delta is spent on."""
    return Uses(
        flow=method.spends_delta(settings),
        labels=declared.activities == PRIVATELY,
        values=any(declared.values_of(name) is None for name in wanted.attributes),
        times=bool(wanted.times),
    )


@dataclass(frozen=True)
class Planned:
    """What was asked for, read and checked. It holds nothing of any log."""

    method: Method
    settings: Settings
    epsilon: Fraction
    """For one of the unit; 0 where the method has none."""
    delta: Fraction
    as_published: bool
    declared: Domain
    """The public facts, as somebody said them."""
    unit: Unit
    wanted: Wanted
    """What is released beyond variants."""
    seed: int | None
    allow_no_protection: bool
    part: Part | None = None
    """Which cases it is of; all, where this is None."""
    remember_units: bool = False
    """Whether the ledger keeps digests of the units of the part, and leaves out those that another part had."""

    @property
    def public(self) -> Domain:
        """The public facts that the release takes for granted: as published also what papers take from the log."""
        return self.declared.taken_from_log(("activities", "max_length")) if self.as_published else self.declared

    @property
    def undeclared(self) -> list[Fact]:
        """The public facts that the method needs and nobody has said anything about."""
        # As published all that is public is the log's own.
        return [] if self.as_published else self.public.lacks(self.method.needs(self.settings))

    @property
    def uses(self) -> Uses:
        """What its delta is for."""
        return uses_of(self.method, self.settings, self.declared, self.wanted)

    def attribute_errors(self, cases: int) -> dict[str, float]:
        """Return about how large a part of so many cases noise alone will give a wrong value of each attribute that has
        a declared domain; from public numbers, before anything is asked."""
        declared = {name: self.declared.values_of(name) for name in self.wanted.attributes}
        epsilon, _ = self.unit.of_one_case(self.epsilon * self.wanted.attributes_share, Fraction(0))
        return foreseen_errors({name: values for name, values in declared.items() if values}, epsilon, cases)

    @property
    def beside(self) -> tuple[str, ...]:
        """The names of further releases that are made of the same answers."""
        return self.method.beside(self.settings)

    @property
    def needs_events(self) -> bool:
        """Whether the events themselves are needed, and not only the variants."""
        return bool(self.wanted or self.part) or self.unit.column is not None or self.method.full_log

    @property
    def bounded(self) -> bool:
        """Whether what it costs is known beforehand: it is the budget, then."""
        return self.method.takes_epsilon and not self.as_published and self.seed is None

    def declaring(self, domain: Domain) -> Self:
        """Return the plan with these public facts."""
        return replace(self, declared=domain)

    def seeded(self, seed: int | None) -> Self:
        """Return the plan with this seed; with one it can be repeated, and guarantees nothing."""
        return replace(self, seed=checked_seed(seed))

    def check(self, log: EventLog | StoredLog | Variants) -> None:
        """Refuse, by public facts and the columns of the log and without asking it anything, what cannot be made of it.
        Whether values of attributes are declared, or found with a delta, shows when it is released."""
        if self.undeclared:
            raise UndeclaredError(self.method.name, self.undeclared)
        if isinstance(log, Variants):
            self._check_events()
            if self.part is not None:
                self.part.of_log(log)  # refuses
        else:
            self._check_columns(log.shape)
        if self.method.full_log and isinstance(log, StoredLog):
            raise ParameterError(
                f"Method {self.method.name!r} needs all events in memory, so a log that is kept on disk will not do.",
                parameter="log",
                advice="Give the log as veilog.read() returns it, or take a method that releases variants.",
            )

    def _check_columns(self, shape: EventLog) -> None:
        """Refuse attributes, and a person's column, that the log does not have."""
        for name in self.wanted.attributes:
            attribute_level(shape, name)
        if self.unit.column is not None:
            columns_of_persons(shape, self.unit.column)

    def _check_events(self) -> None:
        """Refuse variants where events are needed."""
        advice = "Give the log itself, as veilog.read() returns it."
        if self.unit.column is not None:
            problem = f"Whose cases they are ({self.unit.column!r}) is known of an event log only, not of variants."
        elif self.wanted:
            problem = "Times and attributes need an event log; variants have none."
        elif self.method.full_log:
            problem = f"Method {self.method.name!r} needs an event log; variants have neither times nor attributes."
        else:
            return
        raise ParameterError(problem, parameter="log", advice=advice)


def checked_seed(seed: int | None) -> int | None:
    """Return the seed, or refuse what is none."""
    if seed is None:
        return None
    found = whole_number(seed)
    if found is None or found < 0:
        raise ParameterError(f"seed must be a whole number from 0 on, not {seed!r}.", parameter="seed")
    return found

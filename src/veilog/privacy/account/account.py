"""Account of a curator: queries, their charges, conditions and voiding reasons.

Every query is entered here before it touches the data, and nothing else appends a charge. A query makes its mechanism,
:meth:`ChargeAccount.charge` enters it and hands it back, and the noise is drawn from that.

Queries on a random subset of the log go to the account of that subset (:meth:`ChargeAccount.of_sample`). It enters in
the account of the whole log by how much the amplified epsilon has grown. Conditions, reasons and statements are those
of the whole log, wherever they come up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from veilog.messages import Message, as_message
from veilog.privacy.account.budgets import Number, compose, parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Charge, Condition, Guarantee, Statement, round_up
from veilog.privacy.account.guessing_advantage import advantage_of
from veilog.privacy.mechanisms.mechanism import Mechanism, Sensitivity, Subsampled
from veilog.privacy.mechanisms.sampling import amplify
from veilog.privacy.partition import Partition
from veilog.privacy.unit import Unit

M = TypeVar("M", bound=Mechanism)


class ChargeAccount:
    """Account of the queries that a run has put to a log so far."""

    def __init__(self, unit: Unit, *, seeded: bool, subset: Partition | None = None) -> None:
        """Open an account for the unit that the guarantee protects.

        ``subset`` holds the cases that are looked at, if not all. With ``seeded`` noise there is no guarantee.
        """
        self.unit = unit
        self.subset = subset
        self.seeded = seeded
        self._charges: list[Charge] = []
        self._conditions: dict[Condition, None] = dict.fromkeys(unit.conditions)
        self._reasons: dict[Message, None] = {}
        self._statements: list[Statement] = []
        self.begin: Callable[[], None] | None = None
        """Called before the first query or peek touches the data. An error that it raises prevents the contact."""

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Queries so far, each with the budget that it uses."""
        return tuple(self._charges)

    @property
    def contacted(self) -> bool:
        """True after the first query or peek. Declared public facts are no contact."""
        return bool(self._charges or self._reasons)

    def charge(
        self,
        question: str,
        purpose: str | Message,
        mechanism: M,
        sensitivity: Sensitivity,
        epsilon: Fraction,
        delta: Fraction = Fraction(0),
    ) -> M:
        """Enter a query before it touches the data; return the mechanism of its noise."""
        self._enter(Charge(question, as_message(purpose), mechanism, sensitivity, epsilon, delta))
        return mechanism

    def carry(self, charges: Iterable[Charge]) -> None:
        """Enter the charges of an interrupted run whose answers are used; none is removed."""
        for charge in charges:
            self._enter(replace(charge))  # made anew, so checked anew

    def _enter(self, charge: Charge) -> None:
        self._begin()
        self._charges.append(charge)

    def _begin(self) -> None:
        if self.begin is not None and not self.contacted:
            self.begin()

    def assume(self, condition: Condition) -> None:
        """Add a condition of the guarantee."""
        self._conditions[condition] = None

    def void(self, reason: str | Message) -> None:
        """Record a reason why there is no guarantee from here on."""
        self._begin()
        self._reasons[as_message(reason)] = None

    def state(self, statement: Statement) -> None:
        """Add a statement that holds with differential privacy, or in its place."""
        self._statements.append(statement)

    def of_sample(self, rate: Fraction) -> SampleAccount:
        """Return an account for queries on a Poisson sample; here they enter amplified."""
        return SampleAccount(self, rate)

    def guarantee(
        self,
        *,
        nominal_epsilon: Number | None = None,
        nominal_delta: Number | None = None,
        at_least: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0)),
    ) -> Guarantee:
        """Return the guarantee of the charges for the unit, at least ``at_least``.

        Its status is "none" with the reasons, if there are any, if the noise was seeded, and if there was no query.
        """
        charges = self.unit.charges(self._charges)
        epsilon, delta = (max(spent, least) for spent, least in zip(compose(charges), at_least, strict=True))
        reasons = list(self._reasons)
        numerics = Message("noise-of-the-system")
        if not charges and not reasons:
            reasons.append(Message("nothing-asked"))
        if self.seeded:
            reasons.append(Message("noise-seeded"))  # recipients see it, so without the seed
            numerics = Message("noise-of-a-seed")
        if delta >= 1:
            reasons.append(Message("deltas-reach-one"))
        proven = not reasons
        return Guarantee(
            status="proven" if proven else "none",
            epsilon=round_up(epsilon) if proven else None,
            delta=round_up(delta) if proven else None,
            nominal_epsilon=None if nominal_epsilon is None else float(parse_epsilon(nominal_epsilon)),
            nominal_delta=None if nominal_delta is None else float(parse_delta(nominal_delta)),
            unit=self.unit.name,
            neighbours=self.unit.neighbours if self.subset is None else self.subset.among(self.unit.neighbours),
            subset=self.subset,
            numerics=numerics,
            conditions=tuple(self._conditions),
            reasons=tuple(reasons),
            charges=charges,
            statements=tuple(self._statements),
            guessing_advantage=round_up(advantage_of(epsilon, delta)) if proven else None,
            guessing_advantage_without_delta=round_up(advantage_of(epsilon)) if proven and delta else None,
        )


class SampleAccount(ChargeAccount):
    """Account of a Poisson sample, whose charges add up to the amplified sum.

    Each charge that it enters for the whole log is the growth of that sum. For the reason why they count together, see
    :mod:`veilog.privacy.mechanisms.sampling`.
    """

    def __init__(self, whole: ChargeAccount, rate: Fraction) -> None:
        super().__init__(whole.unit, seeded=whole.seeded, subset=whole.subset)
        self._whole, self._rate = whole, rate
        self._conditions, self._reasons, self._statements = whole._conditions, whole._reasons, whole._statements

    def _begin(self) -> None:
        self._whole._begin()

    def _enter(self, charge: Charge) -> None:
        before = sum((c.epsilon for c in self._charges), Fraction(0))
        grown = amplify(before + charge.epsilon, self._rate) - amplify(before, self._rate)
        mechanism = Subsampled(charge.mechanism, self._rate, charge.epsilon)
        self._whole._enter(replace(charge, mechanism=mechanism, epsilon=grown, delta=charge.delta * self._rate))
        super()._enter(charge)

"""The options of ``veilog ledger set``: what the releases of a log may cost in all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from veilog.cli.shared.values import WHOLE
from veilog.errors import ParameterError
from veilog.ledger.ledger import Account, Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants


@Parameter(name="*")
@dataclass(frozen=True)
class Limits:
    """What the releases of a log may cost in all, and how they are counted."""

    epsilon: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="All that releases of the log may cost; none: without a limit."),
    ] = None
    delta: Annotated[
        str | None, Parameter(allow_leading_hyphen=True, help="The same for delta; 0 if it is not given.")
    ] = None
    composed: Annotated[
        bool,
        Parameter(
            negative="",
            help="Count releases from now on by their composition, which needs a delta and costs less than the sum.",
        ),
    ] = False
    releases: Annotated[
        int | None,
        WHOLE,
        Parameter(help="Plan so many releases, of --each at most, and no others: with --delta for all."),
    ] = None
    each: Annotated[str | None, Parameter(help="The most that each of them may cost.")] = None
    each_delta: Annotated[str | None, Parameter(help="The same for delta; 0 if it is not given.")] = None

    def check(self) -> None:
        """Refuse what does not go together, before a large log is read."""
        if (self.releases is None) != (self.each is None) or (self.each_delta is not None and self.each is None):
            raise ParameterError("A plan takes --releases and --each.", parameter="releases")
        if self.releases is not None and (self.epsilon is not None or self.composed or self.delta is None):
            raise ParameterError(
                "What a plan costs in all follows from --releases, --each and --delta.",
                parameter="releases",
                advice="Add --delta, e.g. 1e-6." if self.delta is None else "Leave out --epsilon and --composed.",
            )
        if (self.delta is not None or self.composed) and self.epsilon is None and self.releases is None:
            raise ParameterError(
                "A budget for delta needs one for epsilon.", parameter="delta", advice="Add --epsilon."
            )

    def set(self, kept: Ledger, data: Variants | EventLog, unit: str | None, account: int | None) -> Account:
        """Set them, or leave them as they are where nothing is said."""
        delta = self.delta or 0
        if self.releases is not None and self.each is not None:
            each_delta = self.each_delta or 0
            return kept.set_plan(
                data, self.releases, self.each, delta, each_delta=each_delta, unit=unit, account=account
            )
        if self.epsilon is None:
            return kept.enter(data, unit=unit, account=account)
        limit = None if self.epsilon.strip().lower() == "none" else self.epsilon
        return kept.set_budget(data, limit, delta, unit=unit, account=account, composed=self.composed)


UNLIMITED = Limits()

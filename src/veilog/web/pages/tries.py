"""What a form shows of trials on made-up logs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

from veilog._language import gettext
from veilog.errors import VeilogError
from veilog.measures.purposes import PURPOSES
from veilog.privacy.account.accounting import parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Strength
from veilog.privacy.account.guessing import worth
from veilog.releasing.trying.expected import Interval
from veilog.web.jobs.outlook import Outlook, Tried, TriedMethod
from veilog.web.jobs.records import JobRecord
from veilog.web.work.costs import advantage_at
from veilog.web.work.trying import BUDGETS, keeps, recommended

__all__ = ["Learnt", "Trial", "learnt", "points_of", "purpose_title"]


@dataclass(frozen=True)
class Learnt:
    """What anybody may learn at a budget."""

    epsilon: str
    points: float
    """Percentage points by which a guess who is in the log gets better."""
    strength: Strength


@dataclass(frozen=True)
class Trial:
    """A trial in the form of a release."""

    job: JobRecord | None = None
    same: bool = False
    """Whether it is of what stands in the form."""
    left: float | None = None
    """What is left of the account's epsilon, where there is a limit."""
    paid: JobRecord | None = None
    """A release whose sizes may be used."""

    @property
    def outlook(self) -> Outlook | None:
        """Return what was found so far."""
        made = None if self.job is None else self.job.result
        return made if isinstance(made, Outlook) else None

    @property
    def best(self) -> tuple[str, Tried] | None:
        """Return the method and budget that are worth it."""
        return None if self.outlook is None else recommended(self.outlook.rows, self.left)

    def keeps(self, method: str, epsilon: str) -> Interval | None:
        """Return what a method keeps at a budget, if it was tried around it."""
        rows = () if self.outlook is None else self.outlook.rows
        return next((keeps(row, epsilon) for row in rows if row.method == method), None)


def learnt(delta: str, cases: int) -> list[Learnt]:
    """Return what anybody may learn at each budget that is tried, with the delta of the form, of so many cases."""
    try:
        failure = parse_delta(delta.replace(",", ".") or "0")
    except VeilogError:  # as the form says of itself
        failure = Fraction(0)
    found = []
    for epsilon in BUDGETS:
        cost = parse_epsilon(epsilon), failure
        found.append(Learnt(epsilon, advantage_at(cost), worth(cost, cases=cases)))
    return found


def points_of(row: TriedMethod) -> str:
    """Return budgets with what is kept at them, for the script of the page."""
    found = [(float(c.epsilon), c.similarity.mean, c.similarity.low, c.similarity.high) for c in row.cells]
    return json.dumps(found)


def purpose_title(name: str) -> str:
    """Return what a purpose is called, as after "for"; of one that is not there any more its name."""
    return gettext(PURPOSES[name].title) if name in PURPOSES else name

"""The dry run of a form: what it would ask of the data and what it would cost, before anything is asked.

The plan is tried on made-up patients (:mod:`veilog.releasing.trial`); only the account is the real one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from veilog.errors import BudgetError, ParameterError, VeilogError
from veilog.ledger.accounts import check_paid, in_figures
from veilog.ledger.costs import Cost
from veilog.ledger.ledger import Account, Ledger
from veilog.privacy.account.accounting import LARGEST_EPSILON
from veilog.privacy.account.figures import up
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.account.guessing import advantage_of
from veilog.privacy.account.strength import Strength, strength_of
from veilog.releasing.plan import Plan
from veilog.releasing.trial import PATIENTS
from veilog.report import words
from veilog.report.explorer import clean
from veilog.web.jobs.records import LogRecord, Settings
from veilog.web.jobs.released_log import Promise
from veilog.web.work.request import asked_for, undeclared

__all__ = ["DryRun", "InAccount", "Refused", "Tried", "dry_run", "refuse_unknown", "worth"]

_TRIALS = ThreadPoolExecutor(2, thread_name_prefix="dry run")
_PATIENCE = 5.0
"""Seconds that a page waits for a trial; on an idle machine all but those with gradients take less than two."""
_SHOWN = 12


@dataclass(frozen=True)
class Tried:
    """What a trial on made-up patients says."""

    guarantee: Promise
    chances: tuple[tuple[str, str], ...]
    more: int
    """Questions beyond those of the guarantee."""
    patients: int = PATIENTS


@dataclass(frozen=True)
class InAccount:
    """What the account of the data says to a release; nothing is entered. Costs are pairs of figures."""

    shared: bool
    """Whether all browsers have one ledger."""
    problem: str | None = None
    """Why the account cannot be seen."""
    refused: str | None = None
    known: bool = False
    releases: int = 0
    budget: tuple[str, str] | None = None
    spent: tuple[str, str] | None = None
    left: tuple[str, str] | None = None
    after: tuple[str, str] | None = None
    """What would be left after it, or, without a limit, what would have been spent in all."""
    strength: Strength | None = None
    """What all releases together would be worth, with this one."""


@dataclass(frozen=True)
class DryRun:
    """What a request would ask and cost, and what would be left."""

    plan: Plan
    undeclared: str | None
    """What has to be said first, in words."""
    tried: Tried | None
    late: bool
    """Whether the trial is still at work."""
    advantage: float | None
    """In percentage points; None where nothing would be proven."""
    strength: Strength | None
    warnings: tuple[str, ...]
    """For the owner only."""
    account: InAccount

    @property
    def in_general(self) -> str:
        """What the method says of its guarantee."""
        return self.plan.method.as_published if self.plan.as_published else self.plan.method.guarantee

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(clean(name) for name in self.plan.wanted.attributes)


@dataclass(frozen=True)
class Refused:
    """A form that asks for nothing that could be made."""

    problem: str


def dry_run(log: LogRecord, form: Mapping[str, Any], settings: Settings) -> DryRun | Refused:
    """Return what this form would ask and cost, and what would be left."""
    late = False
    try:
        planned = asked_for(form).seeded(settings.seed)
        tried = None if _too_long(planned) else _trial(json.dumps(planned.to_json())).result(_PATIENCE)
    except TimeoutError:
        tried, late = None, True
    except VeilogError as error:
        return Refused(clean(error.in_command()))
    cost = (planned.epsilon, planned.delta) if planned.bounded else None
    proven = cost is not None and (late or (tried is not None and tried.proven))
    return DryRun(
        plan=planned,
        undeclared=undeclared(planned),
        tried=None if tried is None else _shown(tried),
        late=late,
        advantage=_percentage(advantage_of(*cost)) if cost is not None and proven else None,
        strength=worth(cost, _cases(log)) if proven else None,
        warnings=_warnings(log, planned),
        account=_foreseen(log, planned, cost, settings),
    )


def worth(cost: Cost | None, cases: int | None = None) -> Strength:
    """What a promise of this cost is worth, to one of so many cases; None: nothing bounds it."""
    if cost is None or cost[0] > LARGEST_EPSILON or cost[1] >= 1:
        return strength_of(None)
    advantage = advantage_of(*cost) if cost[0] else cost[1]
    return strength_of(float(advantage), float(cost[1]), cases)


def _too_long(planned: Plan) -> bool:
    """A published training has its own number of steps, and takes minutes."""
    return planned.method.name == "travag" and planned.as_published


@lru_cache(maxsize=128)
def _trial(plan: str) -> Future[Guarantee]:
    """The trial of a plan, begun when it is first asked for; who does not wait for it can come again."""
    return _TRIALS.submit(lambda: Plan.from_json(json.loads(plan)).cost)


def _shown(guarantee: Guarantee) -> Tried:
    return Tried(
        guarantee=Promise.of(guarantee, _SHOWN),
        chances=tuple(words.chances(guarantee)),
        more=max(0, len(guarantee.charges) - _SHOWN),
    )


def _warnings(log: LogRecord, planned: Plan) -> tuple[str, ...]:
    """Whether delta is small enough for this many cases."""
    cases = _cases(log)
    if planned.delta * cases <= Fraction(1, 10):
        return ()
    return (
        f"δ = {up(planned.delta)} is not well below one over the {cases:,} cases of the log: it allows some person's "
        "trace to be published as it is. Take a smaller one.",
    )


def _cases(log: LogRecord) -> int:
    return 0 if log.measured is None else log.measured.statistics.cases


def _foreseen(log: LogRecord, planned: Plan, cost: Cost | None, settings: Settings) -> InAccount:
    shared = settings.ledger is not None
    try:
        ledger = Ledger.open(settings.ledger_of(log.session), create=True)
        account = None if log.measured is None else ledger.account(bytes.fromhex(log.measured.fingerprint))
        part = None if planned.part is None else str(planned.part)
        refused = _refused(ledger, account, cost, planned.unit.column or planned.unit.name, part)
    except (VeilogError, ValueError) as error:
        return InAccount(shared, problem=clean(error.in_command() if isinstance(error, VeilogError) else str(error)))
    before = (Fraction(0), Fraction(0)) if account is None else account.spent_on(part)
    strength = None
    if cost is not None:
        total = None if before is None else (before[0] + cost[0], before[1] + cost[1])
        strength = worth(total, _cases(log))
    if account is None:
        return InAccount(shared, refused=refused, strength=strength)
    return InAccount(
        shared,
        refused=refused,
        known=True,
        releases=sum(entry.state != "withdrawn" for entry in account.entries),
        budget=_figures(account.budget),
        spent=_figures(before),
        left=_figures(account.left_for(part), down=True),
        after=_figures(_after(account, cost, part), down=account.budget is not None),
        strength=strength,
    )


def _refused(ledger: Ledger, account: Account | None, cost: Cost | None, unit: str, part: str | None) -> str | None:
    try:
        if account is None:
            refuse_unknown(ledger)
        else:
            check_paid(account, cost, unit, part)
    except (BudgetError, ParameterError) as error:
        return clean(error.in_command())
    return None


def refuse_unknown(ledger: Ledger) -> None:
    """Refuse data that the ledger does not know, where it has budgets, as the ledger itself would, but without the
    names of the files that it knows: others may have brought them."""
    if any(account.budget is not None for account in ledger.show()):
        raise BudgetError(
            "The ledger has a budget, but not for these data.",
            advice="Nothing was asked of the data. Whoever runs this server can give them a budget of their own "
            "(veilog ledger set LOG --epsilon BUDGET), or put them on the account of the same people "
            "(--account NUMBER).",
        )


def _after(account: Account, cost: Cost | None, part: str | None) -> Cost | None:
    spent, left = account.spent_on(part), account.left_for(part)
    if cost is None or spent is None:
        return None
    if left is None:
        return spent[0] + cost[0], spent[1] + cost[1]
    return account.with_release(cost, part).left_for(part)


def _figures(cost: Cost | None, *, down: bool = False) -> tuple[str, str] | None:
    return None if cost is None else (in_figures(cost[0], down=down), in_figures(cost[1], down=down))


def _percentage(value: Fraction) -> float:
    """In percentage points with two digits, rounded up."""
    return -(-value * 10_000 // 1) / 100

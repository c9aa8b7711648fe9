"""The dry run: what a request would ask of the data and what it would cost, before anything is asked.

It never touches the log. The method is tried on a small made-up log of patients with the same budget and parameters;
what it asks there, it asks of the real log too, as often as the answers let it. Only the account is the real one.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from veilog.errors import BudgetError, ParameterError, VeilogError
from veilog.ledger.accounts import Cost, check_paid, in_figures
from veilog.ledger.ledger import Account, Ledger
from veilog.logs.eventlog import EventLog
from veilog.logs.simulate import hospital
from veilog.privacy.account.accounting import LARGEST_EPSILON, parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Charge, Guarantee
from veilog.privacy.account.guessing import advantage_of
from veilog.privacy.account.strength import Strength, strength_of
from veilog.privacy.domain import PRIVATELY
from veilog.privacy.mechanisms.mechanism import Sensitivity, Stated
from veilog.releasing.run import LABELS_SHARE, release
from veilog.report import words
from veilog.report.explorer import clean
from veilog.web.jobs.records import LogRecord, Settings
from veilog.web.work.request import Asked, asked_for

__all__ = ["plan", "refuse_unknown", "worth"]

_TRIALS = ThreadPoolExecutor(2, thread_name_prefix="dry run")
_PATIENCE = 5.0
"""Seconds that a plan waits for its trial; on an idle machine all but those with gradients take less than two."""
_PATIENTS = 120
_SHOWN = 12
_OF_THE_LOG = ("sensitive", "attribute_names")
"""Parameters that name attributes, which the made-up log does not have."""
_LESS_WORK: Mapping[str, Mapping[str, int]] = {
    "travag": {"critic_steps": 10, "free_generator_steps": 1},
    "utravas": {"repetitions": 1},
}
"""What shortens a trial and changes neither its questions nor their cost."""


def plan(log: LogRecord, request: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """What this request would ask and cost, and what would be left. The user's mistakes are in ``problem``."""
    form = tuple(sorted((str(name), str(value)) for name, value in request.items() if str(value).strip()))
    late = False
    try:
        asked = asked_for(request)
        undeclared = asked.undeclared
        tried = None if _too_long(asked) else _trial(form, settings.seed).result(_PATIENCE)
    except TimeoutError:
        tried, late = None, True
    except VeilogError as error:
        return {"problem": clean(str(error))}
    facts: dict[str, Any] = {
        "problem": None,
        "undeclared": undeclared,
        "method": asked.method.name,
        "as_published": asked.as_published,
        "epsilon": asked.epsilon,
        "delta": asked.delta,
        "unit": "case" if asked.unit == "case" else f"person with at most {asked.max_cases} cases",
        "attributes": [clean(name) for name in asked.attributes],
        "patients": _PATIENTS,
        "advantage": None,
        "strength": None,
        "late": late,
        "tried": None if tried is None else _shown(tried, asked),
        "in_general": asked.method.as_published if asked.as_published else asked.method.guarantee,
        "warnings": _warnings(log, asked),
    }
    cost = None
    if asked.epsilon is not None and not asked.as_published and settings.seed is None:
        cost = parse_epsilon(asked.epsilon), parse_delta(asked.delta)
    if asked.epsilon is not None and (late or (tried is not None and tried[0].proven)) and cost is not None:
        facts["advantage"] = _up(advantage_of(*cost))
        facts["strength"] = worth(cost, _cases(log))
    return facts | {"ledger": _foreseen(log, cost, asked.unit, settings)}


def worth(cost: Cost | None, cases: int | None = None) -> Strength:
    """What a promise of this cost is worth, to one of so many cases; None: nothing bounds it."""
    if cost is None or cost[0] > LARGEST_EPSILON or cost[1] >= 1:
        return strength_of(None)
    advantage = advantage_of(*cost) if cost[0] else cost[1]
    return strength_of(float(advantage), float(cost[1]), cases)


def _too_long(asked: Asked) -> bool:
    """A published training has its own number of steps, and takes minutes."""
    return asked.method.name == "travag" and asked.as_published


@lru_cache(maxsize=128)
def _trial(form: tuple[tuple[str, str], ...], seed: int | None) -> Future[tuple[Guarantee, list[list[str]]]]:
    """The trial of a request, begun when it is first asked for; who does not wait for it can come again."""
    return _TRIALS.submit(_tried, form, seed)


def _tried(form: tuple[tuple[str, str], ...], seed: int | None) -> tuple[Guarantee, list[list[str]]]:
    """The guarantee of a release of made-up patients, and the chances that come with it. What the method refuses there
    for its budget or parameters raises, as it would for the real log."""
    asked = asked_for(dict(form))
    parameters = {name: value for name, value in asked.parameters.items() if name not in _OF_THE_LOG}
    parameters |= {name: str(value) for name, value in _LESS_WORK.get(asked.method.name, {}).items()}
    person = "case" if asked.unit == "case" else "person"
    # Activities that are declared for the real log are not those of the made-up one; the questions are the same.
    declared = tuple(_made_up().variants.labels) if isinstance(asked.activities, tuple) else asked.activities
    asked = replace(asked, parameters=parameters, unit=person, attributes=(), activities=declared)
    # What nobody has said yet is tried as if the log's were public; the release itself is refused.
    lacking = asked.domain.lacks(() if asked.undeclared is None else asked.method.needs(asked.method.parse(parameters)))
    facts = asked.arguments() | {"domain": asked.domain.taken_from_log(lacking)}
    found = _labels_found(asked) if asked.activities == PRIVATELY else None
    if found is not None:  # so few patients have no labels that are frequent enough
        labels = replace(asked.domain, activities=tuple(_made_up().variants.labels))
        spends = asked.method.spends_delta(asked.method.parse(parameters))
        rest = parse_epsilon(asked.epsilon or 0) - found.epsilon
        facts |= {"domain": labels, "epsilon": rest, "delta": found.delta if spends else 0}
    guarantee = release(_made_up(), asked.method.name, **facts, seed=seed).guarantee
    if found is not None:
        guarantee = replace(guarantee, charges=(found, *guarantee.charges))
        if guarantee.proven:
            guarantee = replace(guarantee, epsilon=float(asked.epsilon or 0), delta=float(asked.delta))
    return guarantee, [list(pair) for pair in words.chances(guarantee)]


def _labels_found(asked: Asked) -> Charge:
    """What finding the labels privately costs."""
    uses = 1 + asked.method.spends_delta(asked.method.parse(asked.parameters))
    epsilon, delta = parse_epsilon(asked.epsilon or 0) * LABELS_SHARE, parse_delta(asked.delta) / uses
    mechanism, sensitivity = Stated("discrete Laplace"), Sensitivity.of(1, "L1", "split")
    return Charge("labels", "the activities that enough cases have", mechanism, sensitivity, epsilon, delta)


@lru_cache(maxsize=1)
def _made_up() -> EventLog:
    return hospital(_PATIENTS, seed=1)


def _shown(tried: tuple[Guarantee, list[list[str]]], asked: Asked) -> dict[str, Any]:
    guarantee, chances = tried
    charges = guarantee.charges
    # Made-up people have no column that tells them apart, and what nobody has said is no condition yet.
    not_asked_for = {"nobody-has-more"} if asked.unit not in ("case", "person") else set()
    not_asked_for |= {"activities-from-log", "length-from-log"} if asked.undeclared is not None else set()
    return {
        "proven": guarantee.proven,
        "unit": guarantee.unit,
        "protects": guarantee.protects,
        "reasons": list(guarantee.reasons),
        "statements": [s.to_json() for s in guarantee.statements],
        "conditions": [c.to_json() for c in guarantee.conditions if c.code not in not_asked_for],
        "chances": chances,
        "asked": [
            {"purpose": c.purpose, "question": c.question, "noise": c.mechanism}
            | {"epsilon": float(c.epsilon), "delta": float(c.delta)}
            for c in (charge.plain() for charge in charges[:_SHOWN])
        ],
        "more": max(0, len(charges) - _SHOWN),
    }


def _warnings(log: LogRecord, asked: Asked) -> list[str]:
    """For the owner only: whether delta is small enough for this many cases."""
    cases = _cases(log)
    delta = parse_delta(asked.delta)
    if delta * cases > Fraction(1, 10):
        return [
            f"δ = {asked.delta} is not well below one over the {cases:,} cases of the log: it allows some person's "
            "trace to be published as it is. Take a smaller one."
        ]
    return []


def _cases(log: LogRecord) -> int:
    result = None if log.reading is None else log.reading.result
    return int(((result or {}).get("statistics") or {}).get("cases", 0))


def _foreseen(log: LogRecord, cost: Cost | None, unit: str, settings: Settings) -> dict[str, Any]:
    """What the account of these data says to a release of this cost; nothing is entered."""
    result = None if log.reading is None else log.reading.result
    mark = (result or {}).get("fingerprint")
    try:
        ledger = Ledger.open(settings.ledger_of(log.session), create=True)
        account = None if mark is None else ledger.account(bytes.fromhex(mark))
        refused = _refused(ledger, account, cost, unit)
    except (VeilogError, ValueError) as error:
        return {"problem": clean(str(error))}
    facts: dict[str, Any] = {"problem": None, "refused": refused, "known": account is not None}
    facts |= {"strength": None, "shared": settings.ledger is not None}
    if account is not None:
        spent, left = account.spent, account.left
        facts |= {
            "releases": sum(entry.state != "withdrawn" for entry in account.entries),
            "budget": _pair(account.budget),
            "spent": _pair(spent),
            "left": _pair(left, down=True),
            "after": _pair(_after(account, cost), down=account.budget is not None),
        }
    if cost is not None:
        spent = (Fraction(0), Fraction(0)) if account is None else account.spent
        total = None if spent is None else (spent[0] + cost[0], spent[1] + cost[1])
        facts["strength"] = worth(total, _cases(log))
    return facts


def _refused(ledger: Ledger, account: Account | None, cost: Cost | None, unit: str) -> str | None:
    try:
        if account is None:
            refuse_unknown(ledger)
        else:
            check_paid(account, cost, unit)
    except (BudgetError, ParameterError) as error:
        return clean(str(error))
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


def _after(account: Account, cost: Cost | None) -> Cost | None:
    """What would be left after it, or, without a limit, what would have been spent in all."""
    if cost is None or account.spent is None:
        return None
    if account.left is None:
        return account.spent[0] + cost[0], account.spent[1] + cost[1]
    return max(account.left[0] - cost[0], Fraction(0)), max(account.left[1] - cost[1], Fraction(0))


def _pair(cost: Cost | None, *, down: bool = False) -> list[str] | None:
    return None if cost is None else [in_figures(cost[0], down=down), in_figures(cost[1], down=down)]


def _up(value: Fraction) -> float:
    """In percentage points with two digits, rounded up."""
    return -(-value * 10_000 // 1) / 100

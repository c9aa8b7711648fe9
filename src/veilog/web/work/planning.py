"""The dry run of a form: what it would ask of the data and what it would cost, before anything is asked.

The plan is tried on made-up patients (:mod:`veilog.releasing.trying.trial`); only the account is the real one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from veilog._language import gettext, percent, pgettext
from veilog.errors import VeilogError
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.account.strength import Strength
from veilog.privacy.account.worth import worth
from veilog.privacy.domain import FROM_LOG
from veilog.releasing.losses import in_words, losses_by_list
from veilog.releasing.request import ReleaseRequest
from veilog.releasing.trying.trial import PATIENTS
from veilog.report import words
from veilog.report.explorer import clean
from veilog.report.figures import figure
from veilog.web.jobs.records import LogRecord, ServerSettings
from veilog.web.jobs.released_log import Promise
from veilog.web.work.accounts import InAccount, foreseen
from veilog.web.work.costs import advantage_at
from veilog.web.work.leaving import refuse_attributes
from veilog.web.work.request import asked_for, undeclared
from veilog.web.work.trials import GivenUp, give_up_all, tried_beside, under_way

__all__ = ["DryRun", "Refused", "TrialResult", "dry_run", "give_up"]

_TRIALS = ThreadPoolExecutor(2, thread_name_prefix="dry run")
_PATIENCE = 5.0
"""Seconds that a page waits for a trial."""
_SHOWN = 12


@dataclass(frozen=True)
class TrialResult:
    """What a trial on made-up patients says."""

    guarantee: Promise
    chances: tuple[tuple[str, str], ...]
    more: int
    """Questions beyond those of the guarantee."""
    patients: int = PATIENTS


@dataclass(frozen=True)
class DryRun:
    """What a request would ask and cost, and what would be left."""

    plan: ReleaseRequest
    undeclared: str | None
    """What has to be said first, in words."""
    tried: TrialResult | None
    late: bool
    """Whether the trial is still at work, or was given up."""
    given_up: bool
    """Whether it took too long."""
    advantage: float | None
    """In percentage points; None where nothing would be proven."""
    strength: Strength | None
    warnings: tuple[str, ...]
    """For the owner only."""
    blurred: tuple[tuple[str, str], ...]
    """Attributes that the budget carries, and how many cases noise alone gives another value, for the owner only."""
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
    parameter: str | None = None
    """The parameter that it is about, if it is about one."""


def dry_run(log: LogRecord, form: Mapping[str, Any], settings: ServerSettings) -> DryRun | Refused:
    """Return what this form would ask and cost, and what would be left."""
    late = given_up = False
    try:
        planned = asked_for(form).seeded(settings.seed)
        refuse_attributes(planned, log)
        asked = json.dumps({"plan": planned.to_json(), "sizes": _public_sizes(log, planned)})
        tried = None if _too_long(planned) else _trial(asked).result(_PATIENCE)
    except (TimeoutError, GivenUp) as error:
        tried, late, given_up = None, True, isinstance(error, GivenUp)
    except VeilogError as error:
        return Refused(clean(error.in_command()), getattr(error, "parameter", None))
    if isinstance(tried, str):
        return Refused(clean(tried))
    cost = (planned.epsilon, planned.delta) if planned.bounded else None
    proven = cost is not None and (late or (tried is not None and tried.proven))
    return DryRun(
        plan=planned,
        undeclared=undeclared(planned),
        tried=None if tried is None else _shown(tried),
        late=late,
        given_up=given_up,
        advantage=advantage_at(cost) if cost is not None and proven else None,
        strength=worth(cost, cases=log.cases) if proven else None,
        warnings=_warnings(log, planned),
        blurred=_blurred(log, planned),
        account=foreseen(log, planned, cost, settings),
    )


def _public_sizes(log: LogRecord, planned: ReleaseRequest) -> dict[str, int]:
    """The sizes of the log that its owner says are public: what is asked goes by them."""
    measured, sizes = log.measured, dict[str, int]()
    if measured is not None and planned.declared.activities == FROM_LOG:
        sizes["activities"] = measured.statistics.activities
    if measured is not None and planned.declared.max_length == FROM_LOG:
        sizes["longest"] = measured.statistics.length.max
    return sizes


_DROWNED = 0.3
"""Share of cases with a wrong value from which on an attribute is warned of."""


def _too_long(planned: ReleaseRequest) -> bool:
    """A published training has its own number of steps, and takes minutes."""
    return planned.method.name == "travag" and planned.as_published


@lru_cache(maxsize=128)
def _trial(asked: str) -> Future[Guarantee | str]:
    """The trial of a plan, begun when it is first asked for; who does not wait for it can come again."""
    return _TRIALS.submit(tried_beside, asked, under_way())


def give_up() -> None:
    """Give up all dry runs: the server stops."""
    _trial.cache_clear()
    give_up_all()


def _shown(guarantee: Guarantee) -> TrialResult:
    return TrialResult(
        guarantee=Promise.of(guarantee, _SHOWN),
        chances=tuple(words.chances(guarantee)),
        more=max(0, len(guarantee.charges) - _SHOWN),
    )


def _warnings(log: LogRecord, planned: ReleaseRequest) -> tuple[str, ...]:
    """Whether delta is small enough for this many cases, which attributes the budget cannot carry, and which listed
    activities the log does not have."""
    cases = log.cases
    found = [
        gettext(
            "{name}: noise alone will give up to about {share} of the cases another value. Give attributes a larger "
            "share, or declare fewer values.",
            name=name,
            share=percent(f"{100 * share:.0f}"),
        )
        for name, share in planned.attribute_errors(cases).items()
        if share > _DROWNED
    ]
    found += _misnamed(log, planned) + _misdated(log, planned)
    if planned.delta * cases > Fraction(1, 10):
        found.append(
            gettext(
                "δ = {delta} is not well below one over the {cases} cases of the log: it allows some person's trace to "
                "be published as it is. Take a smaller one.",
                delta=figure(planned.delta),
                cases=cases,
            )
        )
    return tuple(found)


def _misnamed(log: LogRecord, planned: ReleaseRequest) -> list[str]:
    """What a list of activities leaves out, where all of the log's own are known; for the owner."""
    measured = log.measured
    if measured is None or measured.more_labels:
        return []
    found = losses_by_list(dict(zip(measured.labels, measured.label_events, strict=True)), planned.declared)
    return [clean(in_words(loss)) for loss in found]


def _misdated(log: LogRecord, planned: ReleaseRequest) -> list[str]:
    """Whether all of the log lies outside the time in which cases were said to start; for the owner."""
    window, measured = planned.declared.window, log.measured
    if window is None or measured is None or not (measured.statistics.start and measured.statistics.end):
        return []
    first, last = (moment[:10] for moment in (measured.statistics.start, measured.statistics.end))
    if first < window[1].date().isoformat() and window[0].date().isoformat() <= last:
        return []
    return [gettext("The log has no event in the time in which you say that cases start.")]


def _blurred(log: LogRecord, planned: ReleaseRequest) -> tuple[tuple[str, str], ...]:
    """What noise does to the attributes that are not warned of; where no values are listed it is not known yet."""
    errors = planned.attribute_errors(log.cases)
    carried = {name: share for name, share in errors.items() if share <= _DROWNED}
    return tuple(
        (clean(name), percent(f"{100 * share:.2g}") if share else pgettext("cases", "none"))
        for name, share in carried.items()
    )

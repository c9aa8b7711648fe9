"""The pages: from what the server knows to HTML. Pure functions; nothing is read or computed while a page is written.

No page has a style or a script in it, so that the server can forbid both.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from veilog._language import current, gettext, languages, localised
from veilog._places import default_ledger
from veilog._version import __version__
from veilog.errors import VeilogError
from veilog.ledger.accounts import Account
from veilog.ledger.entry import Entry
from veilog.logs.eventlog import START
from veilog.logs.findings import RULES
from veilog.logs.input.formats import known_suffixes
from veilog.measures.disclosure.measure import KNOWN
from veilog.measures.singling_out.words import own_path_in_words
from veilog.measures.use_cases import USE_CASES
from veilog.messages import Message
from veilog.methods import METHODS, Method
from veilog.privacy.account.accounting import parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Strength
from veilog.privacy.account.guessing import worth
from veilog.privacy.domain import Fact
from veilog.releasing.preview import PATIENTS, Interval
from veilog.releasing.standing import Standing
from veilog.report.decision import decided
from veilog.report.explorer import clean
from veilog.report.page import furnish
from veilog.report.words import said_of_others, strength_in_words, title_of_budget
from veilog.web.jobs.records import JobRecord, LogRecord, ServerSettings
from veilog.web.jobs.results import HOW_READ, LogMeasures, PreviewCell, Previews, ReadLog, ReleasedLog
from veilog.web.pages.assets import address
from veilog.web.pages.words import FILTERS, LANGUAGES
from veilog.web.work.accounts import AccountSeen, advantage_at, persons_of
from veilog.web.work.attribute_policy import may_leave
from veilog.web.work.preview import BUDGETS, FormPreview, Refused, keeps, recommended
from veilog.web.work.request import FURTHER, UNPROTECTED, can_be_asked_for, delta_for, offered, plan_of

if TYPE_CHECKING:
    from jinja2 import Environment, PackageLoader


@dataclass(frozen=True)
class Learnt:
    """What anybody may learn at a budget."""

    epsilon: str
    points: float
    """Percentage points by which a guess who is in the log gets better."""
    strength: Strength


@dataclass(frozen=True)
class ShownPreviews:
    """Previews in the form of a release."""

    job: JobRecord | None = None
    same: bool = False
    """Whether it is of what stands in the form."""
    left: float | None = None
    """What is left of the account's epsilon, where there is a limit."""
    paid: JobRecord | None = None
    """A release whose sizes may be used."""

    @property
    def found(self) -> Previews | None:
        """Return what was found so far."""
        made = None if self.job is None else self.job.result
        return made if isinstance(made, Previews) else None

    @property
    def best(self) -> tuple[str, PreviewCell] | None:
        """Return the method and budget that are worth it."""
        return None if self.found is None else recommended(self.found.rows, self.left)

    def keeps(self, method: str, epsilon: str) -> Interval | None:
        """Return what a method keeps at a budget, if it was tried around it."""
        rows = () if self.found is None else self.found.rows
        return next((keeps(row, epsilon) for row in rows if row.method == method), None)


def learnt(epsilon: str, delta: str, cases: int) -> Learnt | None:
    """Return what a budget lets anybody learn of one of so many cases; None for what is no budget."""
    try:
        cost = parse_epsilon(epsilon.replace(",", ".")), parse_delta(delta.replace(",", ".") or "0")
    except VeilogError:  # as the form says of itself
        return None
    return Learnt(epsilon, advantage_at(cost), worth(cost, cases=cases))


DEFAULT = "evolve"
"""What ``veilog suggest`` takes from public facts alone: without a delta, it resembled the original most."""
_STEPS = ("lifecycle-transitions", "start-and-end")
"""Findings of logs that have starts and ends."""
_NAME = 120
"""The longest name of a column that is asked for."""


def home(
    logs: Sequence[LogRecord],
    jobs: Sequence[JobRecord],
    settings: ServerSettings | None,
    once: str,
    accounts: Mapping[str, Account] | None = None,
) -> str:
    """The first page: bring a log; the logs there are, each with what its account says, and the releases."""
    busy = any(not job.ended for job in jobs) or any(log.reading and not log.reading.ended for log in logs)
    names = {log.id: log.name for log in logs}
    return _page(
        "home.html",
        settings,
        logs=logs,
        jobs=jobs,
        names=names,
        accounts=accounts or {},
        suffixes=known_suffixes(),
        once=once,
        again=busy,
    )


def log_page(log: LogRecord, once: str, *, settings: ServerSettings | None = None) -> str:
    """What was read: columns, a preview, findings; or what has to be decided before that."""
    job = log.reading
    result = job.result if job is not None and isinstance(job.result, ReadLog) else None
    how = None if result is None or result.columns is None else result.columns.how
    return _page(
        "log.html",
        settings,
        log=log,
        job=job,
        result=result,
        guessed="guessed" in (how or {}).values(),
        steps=_with_steps(log, result),
        columns=() if log.measured is None else _attributes(log.measured),
        START=START,
        can_be_asked_for=can_be_asked_for,
        once=once,
        again=job is not None and not job.ended,
    )


def _with_steps(log: LogRecord, result: ReadLog | None) -> bool:
    """Whether it is to be chosen what counts of starts and ends."""
    found = () if result is None else result.findings
    return bool(log.columns.get("lifecycle")) or any(f.rule in _STEPS for f in found)


def exposure(log: LogRecord, *, settings: ServerSettings | None = None) -> str:
    """Who could be found in the log."""
    found = log.measured
    if found is None:
        return _waiting(log, "exposure", settings)
    return _page(
        "exposure.html",
        settings,
        log=log,
        found=found,
        s=found.statistics,
        chance=max(found.singled_out, key=lambda r: (r.with_start, r.size == 3, r.size), default=None),
        singled=[
            (name, _rising((r.size, r.found.value) for r in found.singled_out if r.with_start == with_start))
            for with_start, name in enumerate((gettext("events only"), gettext("events and the day it started")))
        ],
        disclosed=[
            (gettext(name), _rising((r.size, r.case_disclosure) for r in found.disclosure if r.background == kind))
            for kind, name in KNOWN.items()
        ],
    )


def _rising(points: Iterable[tuple[float, float | None]]) -> list[tuple[float, float]]:
    """Points that never fall: who knows more can leave out what does not help. The table has the numbers as they were
    found, of attackers who leave out nothing."""
    places = sorted((x, y) for x, y in points if y is not None)
    return list(zip((x for x, _ in places), itertools.accumulate((y for _, y in places), max), strict=True))


def release_form(
    log: LogRecord,
    values: Mapping[str, Any],
    once: str,
    problem: str | None = None,
    *,
    settings: ServerSettings | None = None,
    plan: FormPreview | Refused | None = None,
    same: JobRecord | None = None,
    falls: bool = False,
    sure: Mapping[str, str] | None = None,
    previews: ShownPreviews | None = None,
    chosen_at: str = "",
) -> str:
    """Choose a method, a budget and parameters; ``values`` are those of an earlier form, or of the address. ``same`` is
    a job that made the very same release a short while ago, ``falls`` whether it is to be confirmed that this one takes
    the level of the account lower, ``sure`` what was confirmed, ``previews`` what was tried on made-up logs,
    ``chosen_at`` when something of it was taken over last."""
    found = log.measured
    if found is None:
        return _waiting(log, "release", settings)
    given = {str(name): str(value) for name, value in values.items() if value not in (None, "")}
    chosen = METHODS.get(given.get("method", DEFAULT))
    if chosen is None:
        chosen = METHODS[DEFAULT]
        problem = problem or gettext("There is no such method; the usual one is shown instead.")
    known = [name for name in _attributes(found) if may_leave(name, log) and can_be_asked_for(name)]
    names = [name for name in known if name != START]
    cases = found.statistics.cases
    epsilon, delta = given.get("epsilon", "1"), given.get("delta", "0")
    return _page(
        "release.html",
        settings,
        log=log,
        found=found,
        cards=METHODS.values(),
        chosen=chosen,
        parameters=offered(chosen),
        needs=_needs(chosen, given),
        labels_needed="activities" in _needs(chosen, {}),
        default=DEFAULT,
        values=given,
        delta=delta_for(cases),
        attributes=names,
        kept_back=not names and any(name != START for name in _attributes(found)),
        starts=START in known and START in found.event_attributes,
        asked_attributes=[
            name
            for name in map(str.strip, given.get("attributes", "").split(","))
            if name and may_leave(name.removeprefix("case:"), log)
        ],
        asked=learnt(epsilon, delta, cases),
        open="subset" in given or any(name.startswith(("p_", "as_")) for name in given),
        plan=plan,
        refused=isinstance(plan, Refused),
        problem=problem,
        same=same,
        falls=falls,
        sure=sure or {},
        once=once,
        chosen_at=chosen_at,
        further=FURTHER,
        previews=previews or ShownPreviews(),
        kept=(previews or ShownPreviews()).keeps(chosen.name, epsilon),
        learnt=[learnt(budget, delta, cases) or learnt(budget, "0", cases) for budget in BUDGETS],
    )


def _needs(method: Method, form: Mapping[str, str]) -> frozenset[Fact]:
    """The public facts that a method has to know, with the parameters of a form."""
    if not (method.takes_epsilon and method.certified):
        return frozenset()
    given = {name[2:]: value for name, value in form.items() if name.startswith("p_")}
    try:
        return method.needs(method.parse(given))
    except VeilogError:  # which the dry run says
        return method.needs(method.parse({}))


def plan_part(plan: FormPreview | Refused, log: LogRecord) -> str:
    """The dry run alone, to be put into the form."""
    return _environment().get_template("plan.html").render(plan=plan, log=log, refused=isinstance(plan, Refused))


def job_page(
    job: JobRecord,
    log: LogRecord,
    once: str,
    *,
    settings: ServerSettings | None = None,
    price: Entry | None = None,
    now: Standing | None = None,
) -> str:
    """A job: how far it is, or what came out; ``price`` is what the ledger has of one that did not end well, and
    ``now`` what it says of a release."""
    if job.kind == "read":
        return log_page(log, once, settings=settings)
    facts: dict[str, Any] = {"r": None, "price": price}
    if isinstance(job.result, ReleasedLog):
        facts |= _of_release(job.result, job, log, settings, now)
    return _page("job.html", settings, job=job, log=log, once=once, again=not job.ended, **facts)


def doing_part(job: JobRecord) -> str:
    """How far a job is, to be put into its page."""
    return str(_environment().get_template("parts.html").module.how_far(job))  # type: ignore[attr-defined]


def account(
    log: LogRecord,
    seen: AccountSeen,
    jobs: Mapping[int, JobRecord],
    notes: Mapping[int, tuple[str, str]],
    once: str,
    *,
    beside: Sequence[int] = (),
    settings: ServerSettings | None = None,
) -> str:
    """What releases of a log cost together; ``jobs`` and ``notes`` by the numbers of the releases in the ledger, of
    which one or two are picked to be looked at ``beside`` each other."""
    if log.measured is None:
        return _waiting(log, "account", settings)
    made = {number: job.result for number, job in jobs.items() if isinstance(job.result, ReleasedLog)}
    picked = [number for number in beside if number in made][:2]
    return _page(
        "account.html",
        settings,
        log=log,
        a=seen,
        jobs=jobs,
        made=made,
        notes=notes,
        picked=picked,
        pair=side_by_side(*(made[number] for number in picked)) if len(picked) == 2 else (),
        units=persons_of(log),
        once=once,
    )


def side_by_side(first: ReleasedLog, second: ReleasedLog) -> list[tuple[str, str, str]]:
    """Return what two releases say of themselves and of the original, a title and two values a row."""
    sides = [_by_title(made) for made in (first, second)]
    return [(title, sides[0].get(title, "–"), sides[1].get(title, "–")) for title in {**sides[0], **sides[1]}]


def _by_title(made: ReleasedLog) -> dict[str, str]:
    """What a release says, with what it kept beside it: of activities there is a number and a share."""
    facts = {
        gettext("guarantee"): title_of_budget(made.guarantee),
        gettext("protection"): strength_in_words(made.known.guarantee.strength),
        gettext("protects"): gettext(made.guarantee.unit),
        gettext("cases"): localised(f"{made.cases:,}"),
        gettext("variants"): localised(f"{made.variants:,}"),
        gettext("events"): localised(f"{made.events:,}"),
        gettext("activities"): localised(f"{made.activities:,}"),
    }
    if made.beside is not None:
        use_cases = enumerate(made.beside.use_cases, 1)
        facts |= {gettext("use case {n}", n=number): clean(use_case.verdict) for number, use_case in use_cases}
        kept = ((clean(title), value) for title, value, _ in made.beside.kept or ())
        facts |= {f"{title} ({gettext('utility')})" if title in facts else title: value for title, value in kept}
    return facts


def stored(
    logs: Sequence[LogRecord] | None, session: str, once: str, grant: str, *, settings: ServerSettings | None = None
) -> str:
    """Everything that is stored here, for whoever has typed the token; without ``logs`` the question for it."""
    return _page("stored.html", settings, logs=logs, session=session, once=once, grant=grant)


def problem(status: int, words: str, advice: str, *, settings: ServerSettings | None = None, door: bool = False) -> str:
    """Return the page that says what went wrong, and what to do; as a ``door`` it asks for the token."""
    return _page("problem.html", settings, status=status, words=words, advice=advice, door=door)


def on_the_way(place: str, *, settings: ServerSettings | None = None) -> str:
    """Return a page that leads to another by itself."""
    return _page("on_the_way.html", settings, place=place)


def warm() -> None:
    """Make every template ready, which takes longer than any page does."""
    for name in ("map.html", *_own_templates().list_templates()):
        _environment().get_template(name)


def _attributes(found: LogMeasures) -> list[str]:
    """The attributes of cases and events by their names, without those that no form could hold."""
    names = dict.fromkeys([*found.case_attributes, *found.event_attributes])
    return [name for name in names if len(name) <= _NAME]


def _of_release(
    made: ReleasedLog, job: JobRecord, log: LogRecord, settings: ServerSettings | None, now: Standing | None
) -> dict[str, Any]:
    beside, told = made.beside, made.known
    owner = None if made.owner is None else replace(made.owner, standing=now)
    return {
        "r": made,
        "decided": decided(told, made.cases, owner),
        "strength": told.guarantee.strength,
        "budget": title_of_budget(told.guarantee),
        "singled_explained": str(Message("singling-out-explained")),
        "now": None if now is None else now.account,
        "others": said_of_others(now)[1],
        "beside": beside,
        # Where the command and Python have the ledger of these pages, what they release is in the same account.
        "apart": settings is None or settings.ledger != default_ledger(),
        "written": any(name.startswith("release.") for name in made.files),
        "chart": Markup((beside and beside.chart) or ""),  # charts hold no text but ours
        **_repeated(job, log, None if settings is None else settings.seed),
    }


def _repeated(job: JobRecord, log: LogRecord, seed: int | None) -> dict[str, str]:
    """The command and the Python that do the same, as text that a page can show."""
    planned = plan_of(job.request).seeded(seed)
    name, target = clean(log.name)[:200], "release.xes"
    roles = {role: log.columns[role] for role in HOW_READ if log.columns.get(role)}
    policies = {rule[3:]: policy for rule, policy in log.columns.items() if rule.startswith("on_")}
    options = [(f"--{role.replace('_', '-')}", column) for role, column in roles.items()]
    options += [("--on", f"{rule}={policy}") for rule, policy in policies.items()]
    reading = {**roles, **({"policies": policies} if policies else {})}
    return {
        "command": clean(planned.command(name, target, options)),
        "python": planned.python(name, target, reading),
    }


def _waiting(log: LogRecord, at: str, settings: ServerSettings | None) -> str:
    busy = log.reading is not None and not log.reading.ended
    return _page("waiting.html", settings, log=log, at=at, again=busy)


def _page(template: str, settings: ServerSettings | None, *, again: bool = False, **facts: Any) -> str:
    return _environment().get_template(template).render(settings=settings, again=again, version=__version__, **facts)


@lru_cache(maxsize=1)
def _own_templates() -> PackageLoader:
    from jinja2 import PackageLoader

    return PackageLoader("veilog.web.pages")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([_own_templates(), PackageLoader("veilog.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(own=address, UNPROTECTED=UNPROTECTED, PATIENTS=PATIENTS)
    environment.globals.update(RULES=RULES, kind_words=KNOWN)
    environment.globals.update(language=current, now=time.time, own_path=own_path_in_words, USE_CASES=USE_CASES)
    environment.globals.update(languages=[(code, LANGUAGES.get(code, code)) for code in languages()])
    return furnish(environment)

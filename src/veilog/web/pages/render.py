"""The pages as HTML: pure functions that read and compute nothing else.

No page has a style or a script in it, so that the server can forbid both.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from veilog._language import current, day_in_words, format_date, format_number, gettext, languages, ngettext, percent
from veilog._version import __version__
from veilog.errors import VeilogError
from veilog.ledger.accounts import Account, format_amount
from veilog.ledger.entry import Cost, Entry
from veilog.logs.eventlog import START
from veilog.logs.findings import RULES
from veilog.logs.input.formats import known_suffixes
from veilog.measures.singling_out.identification import ReidentificationRate
from veilog.measures.singling_out.words import own_path_sentence
from veilog.messages import Message, message_from
from veilog.methods import METHODS, Method
from veilog.privacy.account.budgets import parse_delta, parse_epsilon
from veilog.privacy.domain import Fact
from veilog.releasing.account_notes import LedgerStatus
from veilog.releasing.preview import PATIENTS
from veilog.report.decision import decision_facts
from veilog.report.dossier import Signature
from veilog.report.page import furnish
from veilog.report.words import figure, other_releases_sentence, title_of_budget
from veilog.web.jobs.records import JobRecord, LogRecord, ServerSettings
from veilog.web.jobs.results import LogMeasures, ReadLog, ReleasedLog
from veilog.web.pages import outlook as plot
from veilog.web.pages.assets import address
from veilog.web.pages.outlook import Outlook
from veilog.web.work.accounts import AccountSeen, persons_of, segments
from veilog.web.work.comparison import map_of, use_cases_of
from veilog.web.work.preview import FormPreview, Refused
from veilog.web.work.release_job import stated_conditions as stated_by_owner
from veilog.web.work.request import (
    ENDINGS,
    FIELD,
    FURTHER,
    UNPROTECTED,
    can_be_asked_for,
    complete_form,
    delta_for,
    may_leave,
    offered_parameters,
    offers,
    shared_activities,
)

if TYPE_CHECKING:
    from jinja2 import Environment, PackageLoader

DEFAULT = "evolve"
"""Method that ``veilog suggest`` chooses from public facts: without a delta, the most similar releases."""
_STEPS = ("lifecycle-transitions", "start-and-end")
"""Findings of logs that have starts and ends."""
_FIXED = {"case": "case:concept:name", "activity": "concept:name", "timestamp": "time:timestamp"}
"""Columns of a log that is no table, such as XES."""
_NAME = 120
"""Longest name of a column that a form offers."""


def home(
    logs: Sequence[LogRecord],
    jobs: Sequence[JobRecord],
    once: str,
    accounts: Mapping[str, Account] | None = None,
    *,
    notes: Mapping[int, tuple[str, str]] | None = None,
    drafts: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Return the first page: a form for a log, and the logs with their releases.

    ``drafts`` are the last settings, whose budget the next release would use.
    """
    busy = any(not job.ended for job in jobs) or any(log.reading and not log.reading.ended for log in logs)
    rows: list[dict[str, Any]] = []
    for log in logs:
        held = (accounts or {}).get(log.id)
        upcoming = upcoming_cost((drafts or {}).get(log.id, {}), log)
        bar, mine = segments(held, upcoming) if log.measured else (), [job for job in jobs if job.log == log.id]
        rows.append({"log": log, "account": held, "bar": bar, "jobs": mine})
    return _page("home.html", rows=rows, notes=notes or {}, suffixes=known_suffixes(), once=once, again=busy)


def upcoming_cost(draft: Mapping[str, str], log: LogRecord) -> Cost | None:
    """Return the budget of the next release by the last settings, or the usual one.

    None if these settings have an error.
    """
    given = complete_form(draft, log.cases)
    with contextlib.suppress(VeilogError):
        return parse_epsilon((given.get("epsilon") or "1").replace(",", ".")), parse_delta(given.get("delta") or "0")
    return None


def log_page(log: LogRecord, once: str) -> str:
    """Return the page of a log: columns, a preview, findings, or open decisions."""
    job = log.reading
    result = job.result if job is not None and isinstance(job.result, ReadLog) else None
    found = log.measured
    person = log.columns.get("person", "" if found is None else found.person)
    return _page(
        "log.html",
        log=log,
        job=job,
        result=result,
        guessed=result is not None and result.columns is not None and "guessed" in result.columns.how.values(),
        steps=_has_steps(log, result),
        columns=() if found is None else _attributes(found),
        person=person,
        unit=next((unit for unit in (found.units if found else ()) if unit.column == person), None),
        FIXED=_FIXED,
        START=START,
        can_be_asked_for=can_be_asked_for,
        once=once,
        again=job is not None and not job.ended,
    )


def _has_steps(log: LogRecord, result: ReadLog | None) -> bool:
    """Return True if the user chooses how starts and ends count."""
    found = () if result is None else result.findings
    return bool(log.columns.get("lifecycle")) or any(f.rule in _STEPS for f in found)


def exposure(log: LogRecord) -> str:
    """Return the page of persons whom an attacker could find in the log."""
    found = log.measured
    if found is None:
        return _waiting_page(log, "exposure")
    usual = max(found.singled_out, key=lambda r: (r.with_start, r.size == 3, r.size), default=None)
    levels = [
        {"size": r.size, "day": r.with_start, "found": _people_of_hundred(r), "says": _knowledge_sentence(r)}
        for r in found.singled_out
    ]
    return _page(
        "exposure.html",
        log=log,
        found=found,
        levels=levels,
        chance=usual,
        says="" if usual is None else _knowledge_sentence(usual),
        dots=0 if usual is None else _people_of_hundred(usual),
    )


def _knowledge_sentence(found: ReidentificationRate) -> str:
    """Return a sentence on the knowledge of the attacker who finds so many."""
    if found.with_start:
        return ngettext(
            "The attacker knows {n} event of a case and the day it started.",
            "The attacker knows {n} events of a case and the day it started.",
            found.size,
        )
    return ngettext("The attacker knows {n} event of a case.", "The attacker knows {n} events of a case.", found.size)


def _people_of_hundred(found: ReidentificationRate) -> int:
    """Return the number of 100 people that an attacker finds, at least 1 if any."""
    share = 100 * found.found.value
    return max(1, round(share)) if share > 0 else 0


def explore(log: LogRecord, job: JobRecord | None = None) -> str:
    """Return the page of the log itself, or of it and a job's release.

    It has variants, the map, durations, and attributes.
    """
    if log.measured is None:
        return _waiting_page(log, "explore")
    made = None if job is None else job.result
    facts = made if isinstance(made, ReleasedLog) else None
    beside = None if facts is None else facts.beside
    chart = Markup((beside and beside.chart) or "")  # charts hold no text but ours
    return _page("explore.html", log=log, found=log.measured, job=job, r=facts, beside=beside, chart=chart)


def release_form(
    log: LogRecord,
    values: Mapping[str, str],
    once: str,
    *,
    outlook: Outlook | None = None,
    refused: Refused | None = None,
    expert: bool = False,
    prior: JobRecord | None = None,
) -> str:
    """Return the page of a release's settings, or of its expert options.

    ``values`` are those of an earlier form, or of the address, and ``refused`` is the error in them.
    """
    if log.measured is None:
        return _waiting_page(log, "release")
    return _page(
        "expert.html" if expert else "release.html",
        **_release_context(log, values, once, refused),
        outlook=outlook,
        prior=prior,
        prior_endings=ENDINGS,
        shared=shared_activities,
    )


def check(log: LogRecord, values: Mapping[str, str], once: str, *, outlook: Outlook, **asked: Any) -> str:
    """Return the page with all settings, before the log is queried.

    In ``asked``, ``same`` is a job that made the very same release a short while ago. ``falls`` is True if the user has
    to confirm that the account's level falls. ``sure`` has the confirmations.
    """
    assert isinstance(outlook.plan, FormPreview), "what cannot be meant stays on the settings"
    planned = outlook.plan.plan
    return _page(
        "check.html",
        **_release_context(log, values, once),
        outlook=outlook,
        bar=segments(outlook.plan.account.account, outlook.cost if planned.bounded else None),
        **{"same": None, "falls": False, "sure": {}, **asked},
    )


def _release_context(
    log: LogRecord, values: Mapping[str, str], once: str, refused: Refused | None = None
) -> dict[str, Any]:
    """Return the facts that the pages of a release share."""
    found = log.measured
    assert found is not None
    given = {str(name): str(value) for name, value in values.items() if value not in (None, "")}
    chosen = METHODS.get(given.get("method", DEFAULT))
    chosen = chosen if chosen is not None and offers(chosen) else METHODS[DEFAULT]
    known = [name for name in _attributes(found) if may_leave(name, log) and can_be_asked_for(name)]
    names = [name for name in known if name != START]
    asked = [name.strip() for name in given.get("attributes", "").split(",")]
    return {
        "log": log,
        "found": found,
        "once": once,
        "values": given,
        "refused": refused,
        "wrong": None if refused is None else _field(refused.parameter, chosen),
        "wrong_expert": refused is not None and is_expert(refused.parameter),
        "chosen": chosen,
        "methods": [method for method in METHODS.values() if offers(method)],
        "parameters": offered_parameters(chosen),
        "needs": _needs(chosen, given),
        "on_settings": _SETTINGS,
        "usual_delta": delta_for(found.statistics.cases),
        "labels": list(zip(found.labels, found.label_cases, strict=False)),
        "rare": sum(cases == 1 for cases in found.label_cases),
        "units": [
            unit for unit in found.units if unit.likely or unit.column in (given.get("unit"), log.columns.get("person"))
        ],
        "attributes": names,
        "kept_back": not names and any(name != START for name in _attributes(found)),
        "starts": START in known and START in found.event_attributes,
        "asked_attributes": [name for name in asked if name and may_leave(name.removeprefix("case:"), log)],
        "further": FURTHER,
    }


_SETTINGS = (
    *("epsilon", "unit", "max_cases", "without_person", "labels", "activities", "attributes", "allow_no_protection"),
    *("times", "processing", "persons", FIELD),
)
"""Fields of the settings; all others are expert options."""


def is_expert(parameter: str | None) -> bool:
    """Return True if a parameter is one of the expert options."""
    return parameter is not None and parameter not in _SETTINGS and parameter[:2] != "d_"


def _field(parameter: str | None, method: Method) -> str | None:
    """Return the form's field for a parameter."""
    if parameter is None:
        return None
    if any(held.name == parameter for held in offered_parameters(method)):
        return f"p_{parameter}"
    return {"window": "window_start", "labels": "labels-log", "attributes": "attribute-1"}.get(parameter, parameter)


def _needs(method: Method, form: Mapping[str, str]) -> frozenset[Fact]:
    """Return the public facts that a method needs with the parameters of a form."""
    if not (method.takes_epsilon and method.certified):
        return frozenset()
    given = {name[2:]: value for name, value in form.items() if name.startswith("p_")}
    try:
        return method.needs(method.parse(given))
    except VeilogError:  # which the dry run reports
        return method.needs(method.parse({}))


def outlook_part(outlook: Outlook, log: LogRecord) -> str:
    """Return the outlook alone, for its place in the form."""
    return _environment().get_template("outlook.html").render(outlook=outlook, log=log)


def job_page(
    job: JobRecord,
    log: LogRecord,
    once: str,
    *,
    price: Entry | None = None,
    now: LedgerStatus | None = None,
    signed: Signature | None = None,
) -> str:
    """Return the page of a job: its progress, or its result.

    ``price`` is the ledger's entry of one that failed, ``now`` the ledger's present facts on a release, and ``signed``
    its confirmation.
    """
    if job.kind == "read":
        return log_page(log, once)
    facts: dict[str, Any] = {"r": None, "price": price}
    if isinstance(job.result, ReleasedLog):
        facts |= _result_context(job.result, now) | {"signed": signed}
    return _page("job.html", job=job, log=log, once=once, again=not job.ended, **facts)


def doing_part(job: JobRecord) -> str:
    """Return the progress of a job, for its place in the page."""
    return str(_environment().get_template("parts.html").module.how_far(job))  # type: ignore[attr-defined]


def account(
    log: LogRecord, seen: AccountSeen, jobs: Mapping[int, JobRecord], notes: Mapping[int, tuple[str, str]], once: str
) -> str:
    """Return the page of a log's account, with all its releases.

    ``jobs`` and ``notes`` are by the numbers of the releases in the ledger.
    """
    if log.measured is None:
        return _waiting_page(log, "account")
    made = _released_logs(jobs)
    upcoming = upcoming_cost({}, log)
    return _page(
        "account.html",
        log=log,
        a=seen,
        jobs=jobs,
        made=made,
        notes=notes,
        units=persons_of(log),
        bar=segments(seen.account, upcoming),
        once=once,
    )


def _released_logs(jobs: Mapping[int, JobRecord]) -> dict[int, ReleasedLog]:
    return {number: job.result for number, job in jobs.items() if isinstance(job.result, ReleasedLog)}


def comparison(log: LogRecord, seen: AccountSeen, jobs: Mapping[int, JobRecord], picked: Sequence[int]) -> str:
    """Return the page that compares two releases of a log by use case and budget.

    ``picked`` are their numbers in the ledger, else they are the newest two.
    """
    if log.measured is None:
        return _waiting_page(log, "account")
    made = {number: found for number, found in _released_logs(jobs).items() if not found.empty}
    entries = [] if seen.account is None else [e for e in reversed(seen.account.entries) if e.number in made]
    chosen = [n for n in dict.fromkeys([*picked, *(e.number for e in entries)]) if n in made][:2]
    facts: dict[str, Any] = {}
    if len(chosen) == 2 and seen.account is not None:
        chosen = chosen if picked else sorted(chosen)
        two = made[chosen[0]], made[chosen[1]]
        only = tuple(entry for entry in seen.account.entries if entry.number in chosen)
        facts = {"two": two, "use_cases": use_cases_of(*two), "map": map_of(*two)}
        facts["account"] = replace(seen.account, budget=None, entries=only)
    return _page("compare.html", log=log, entries=entries, places=seen.places, chosen=chosen, **facts)


def stored_logs_page(
    logs: Sequence[LogRecord] | None, session: str, once: str, grant: str, *, settings: ServerSettings | None = None
) -> str:
    """Return the list of all that is stored, or, without ``logs``, the token's form."""
    return _page("stored.html", logs=logs, session=session, once=once, grant=grant)


def problem(status: int, words: str, advice: str, door: bool = False) -> str:
    """Return the page of an error and its advice; as a ``door`` it asks for the token."""
    return _page("problem.html", status=status, words=words, advice=advice, door=door)


def redirect_page(place: str) -> str:
    """Return a page that leads to another by itself."""
    return _page("on_the_way.html", place=place)


_OF_REPORTS = ("map.html", "decision.html", "guarantee.html", "conclude.html")
"""Templates of reports that pages use."""


def warm() -> None:
    """Load every template, which takes longer than any page does."""
    for name in (*_OF_REPORTS, *_template_loader().list_templates()):
        _environment().get_template(name)


def _attributes(found: LogMeasures) -> list[str]:
    """Return the names of case and event attributes that a form can hold."""
    names = dict.fromkeys([*found.case_attributes, *found.event_attributes])
    return [name for name in names if len(name) <= _NAME]


def _result_context(made: ReleasedLog, now: LedgerStatus | None) -> dict[str, Any]:
    owner = None if made.owner is None else replace(made.owner, standing=now)
    verdict = decision_facts(made.known, made.cases, owner)
    together = now.account.strength if now and now.account and now.account.releases > 1 else None
    return {
        "r": made,
        "decided": verdict,
        "strength": verdict.strength,
        "together": together,
        "stated": stated_by_owner(made),
        "budget": title_of_budget(made.guarantee),
        "now": None if now is None else now.account,
        "others": other_releases_sentence(now)[1],
        "beside": made.beside,
        "written": any(name.startswith("release.") for name in made.files),
    }


def _waiting_page(log: LogRecord, at: str) -> str:
    busy = log.reading is not None and not log.reading.ended
    return _page("waiting.html", log=log, at=at, again=busy)


_serving: ContextVar[ServerSettings | None] = ContextVar("serving", default=None)


@contextlib.contextmanager
def server_facts(settings: ServerSettings) -> Iterator[None]:
    """Make the pages of this server while the block lasts."""
    before = _serving.set(settings)
    try:
        yield
    finally:
        _serving.reset(before)


def _page(template: str, *, again: bool = False, **facts: Any) -> str:
    settings = _serving.get()
    return _environment().get_template(template).render(settings=settings, again=again, version=__version__, **facts)


@lru_cache(maxsize=1)
def _template_loader() -> PackageLoader:
    from jinja2 import PackageLoader

    return PackageLoader("veilog.web.pages")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([_template_loader(), PackageLoader("veilog.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(own=address, UNPROTECTED=UNPROTECTED, PATIENTS=PATIENTS, plot=plot)
    environment.globals.update(RULES=RULES)
    environment.globals.update(language=current, now=time.time, own_path=own_path_sentence)
    environment.globals.update(languages=[(code, LANGUAGES.get(code, code)) for code in languages()])
    return furnish(environment)


# Numbers, moments and texts as the pages write them ------------------------------------------------------------------


LANGUAGES = {"en": "English", "de": "Deutsch", "fr": "Français", "nl": "Nederlands"}
"""Name of each language in itself; a language that is missing here shows its code."""


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000 or (unit == "bytes" and size < 1024):
            number = f"{size:.0f}" if unit == "bytes" or size >= 10 else f"{size:.1f}"
            return f"{format_number(number)} {gettext('bytes') if unit == 'bytes' else unit}"
        size /= 1024
    return f"{format_number(f'{size:.1f}')} GB"


def _format_moment(moment: float) -> str:
    at = datetime.datetime.fromtimestamp(moment, datetime.UTC).astimezone()
    return f"{day_in_words(at)}, {at:%H:%M}"


def _day(moment: str) -> str:
    """Return the day of a moment in ISO format."""
    return day_in_words(datetime.datetime.fromisoformat(moment))


def _moment(moment: str) -> str:
    """Return a moment in ISO format, with numbers alone."""
    at = datetime.datetime.fromisoformat(moment).astimezone()
    return f"{format_date(at.date().isoformat())} {at:%H:%M}"


def _cost(cost: Cost) -> str:
    return f"ε = {figure(cost[0])}" + (f", δ = {figure(cost[1])}" if cost[1] else "")


def _plain(value: float | str) -> str:
    """Return a number as a field takes it, without trailing zeros."""
    return str(value) if isinstance(value, str | int) else format_number(f"{value:g}")


def _points(value: float) -> str:
    """Return a number for people, in at most a few digits."""
    return format_number(
        f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    )


def _power(number: str) -> str:
    """Return a delta in the form of the other pages; any other text stays."""
    try:
        return figure(Fraction(number))
    except (ValueError, ZeroDivisionError):
        return number


def translate_text(text: str) -> str:
    """Return the words of a message of the server or a job.

    It is a message as the store keeps it, its code, or a text. A job's text is in the language of the user who began
    it.
    """
    if text.startswith('{"code"'):
        with contextlib.suppress(ValueError):
            return str(message_from(json.loads(text)))
    return str(Message(text))


FILTERS = {
    "bytes": _bytes,
    "cost": _cost,
    "day": _day,
    "exact": lambda value: format_number(format_amount(value)),
    "figures": format_number,
    "in_figures": format_amount,
    "left": lambda value: format_number(format_amount(value, down=True)),
    "moment": _moment,
    "percent": lambda value: percent(f"{value:.3g}"),
    "plain": _plain,
    "points": _points,
    "power": _power,
    "told": translate_text,
    "two": lambda value: format_number(f"{value:.2f}"),
    "when": _format_moment,
}

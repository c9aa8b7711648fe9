"""The pages: from what the server knows to HTML. Pure functions; nothing is read or computed while a page is written.

No page has a style or a script in it, so that the server can forbid both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup

from veilog._plain import from_plain
from veilog._version import __version__
from veilog.errors import VeilogError
from veilog.logs.reader import known_suffixes
from veilog.measures.disclosure import KNOWN
from veilog.releasing.plan import LARGEST_UNASKED
from veilog.report.flow_map import FlowMap
from veilog.report.page import furnish
from veilog.report.words import LEARNT
from veilog.web.jobs.records import WRITE, JobRecord, LogRecord, Settings
from veilog.web.own_files import address
from veilog.web.pages.charts import disclosure_chart, singled_out_chart
from veilog.web.pages.methods import DEFAULT, cards
from veilog.web.pages.words import FILTERS, HOW, delta_for, exposure_in_words
from veilog.web.work.request import WEAK, asked_for

if TYPE_CHECKING:
    from jinja2 import Environment, PackageLoader

__all__ = ["exposure", "home", "job_page", "log_page", "plan_part", "problem", "release_form", "warm"]

_FILES = (
    ("release.xes", "The log as XES"),
    ("release.csv", "The log as CSV"),
    ("release.parquet", "The log as Parquet"),
    ("certificate.json", "Certificate of what is guaranteed"),
    ("outside.html", "Report for whoever gets the log"),
    ("inside.html", "Inside report"),
)
_MORE = ("unit", "max_cases", "times", "window_start", "window_end", "attributes")


def home(logs: Sequence[LogRecord], jobs: Sequence[JobRecord], settings: Settings | None, once: str) -> str:
    """The first page: bring a log; the logs and releases there are."""
    releases = [job for job in jobs if job.kind == "release"]
    busy = any(not job.ended for job in jobs) or any(log.reading and not log.reading.ended for log in logs)
    names = {log.id: log.name for log in logs}
    return _page(
        "home.html", settings, logs=logs, jobs=releases, names=names, suffixes=known_suffixes(), once=once, again=busy
    )


def log_page(log: LogRecord, once: str, *, settings: Settings | None = None) -> str:
    """What was read: columns, a preview, findings; or what has to be decided before that."""
    job, result = log.reading, _result(log)
    columns = result.get("columns") or {}
    guessed = "guessed" in (columns.get("how") or {}).values()
    return _page(
        "log.html",
        settings,
        log=log,
        job=job,
        result=result,
        guessed=guessed,
        how_words=HOW,
        once=once,
        again=job is not None and not job.ended,
    )


def exposure(log: LogRecord, *, settings: Settings | None = None) -> str:
    """Who could be found in the log."""
    result = _result(log)
    if not result or result.get("problem"):
        return _waiting(log, "exposure", settings)
    return _page(
        "exposure.html",
        settings,
        log=log,
        result=result,
        s=result["statistics"],
        sentences=exposure_in_words(result),
        singled_chart=singled_out_chart(result["singled_out"]),
        disclosure_chart=disclosure_chart(result["disclosure"]),
        flow_map=from_plain(FlowMap, result["map"]),
        kind_words=KNOWN,
    )


def release_form(
    log: LogRecord,
    values: Mapping[str, Any],
    once: str,
    problem: str | None = None,
    *,
    settings: Settings | None = None,
    plan: Mapping[str, Any] | None = None,
) -> str:
    """Choose a method, a budget and parameters; ``values`` are those of an earlier form, or of the address."""
    result = _result(log)
    if not result or result.get("problem"):
        return _waiting(log, "release", settings)
    given = {str(name): str(value) for name, value in values.items() if value not in (None, "")}
    all_cards = cards()
    chosen = next((card for card in all_cards if card.name == given.get("method", DEFAULT)), None)
    if chosen is None:
        chosen, problem = all_cards[0], problem or "There is no such method; the usual one is shown instead."
    names = [f"case:{name}" for name in result["case_attributes"]] + result["event_attributes"]
    return _page(
        "release.html",
        settings,
        log=log,
        result=result,
        cards=all_cards,
        chosen=chosen,
        needs=chosen.needs(given),
        default=DEFAULT,
        values=given,
        delta=delta_for(result["statistics"]["cases"]),
        attributes=names,
        labels=result.get("labels", []),
        units=result.get("units", []),
        open=any(name in given for name in _MORE) or any(name.startswith(("p_", "as_")) for name in given),
        plan=plan,
        problem=problem,
        once=once,
    )


def plan_part(plan: Mapping[str, Any]) -> str:
    """The dry run alone, to be put into the form."""
    return _environment().get_template("plan.html").render(plan=plan)


def job_page(job: JobRecord, log: LogRecord, once: str, *, settings: Settings | None = None) -> str:
    """A job: how far it is, or what came out."""
    if job.kind == "read":
        return log_page(log, once, settings=settings)
    again = {n: str(v) for n, v in job.request.items() if n not in ("once", "log_name", WRITE) and v not in (None, "")}
    facts: dict[str, Any] = {"again_query": urlencode(again)[:2000]}
    if job.state == "done" and job.result:
        facts |= _of_result(job.result, job, log, settings)
    return _page("job.html", settings, job=job, log=log, once=once, again=not job.ended, **facts)


def problem(status: int, words: str, advice: str, *, settings: Settings | None = None) -> str:
    """What went wrong, and what to do."""
    return _page("problem.html", settings, status=status, words=words, advice=advice)


def warm() -> None:
    """Make every template ready, which takes longer than any page does."""
    for name in ("map.html", *_own_templates().list_templates()):
        _environment().get_template(name)


def _of_result(result: Mapping[str, Any], job: JobRecord, log: LogRecord, settings: Settings | None) -> dict[str, Any]:
    seed = None if settings is None else settings.seed
    try:
        asked = asked_for(job.request)
        command, python = (make(log.name, log.columns, seed) for make in (asked.command, asked.python))
    except VeilogError:  # made by an older veilog, whose parameters were others
        command = python = "It was asked for in a way that this version of veilog does not know."
    return {
        "r": result,
        "files": _FILES,
        "written": any(name.startswith("release.") for name in result["files"]),
        "command": command,
        "python": python,
        "kept": _kept(result.get("kept")),
        "kind_words": KNOWN,
        "chart": Markup(result.get("chart") or ""),  # charts hold no text but ours
        "map_before": from_plain(FlowMap, result["map_before"]) if "map_before" in result else None,
        "map_after": from_plain(FlowMap, result["map"]) if "map" in result else None,
    }


def _kept(lines: Sequence[Sequence[str]] | Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """Title, value and meaning of what a release kept; of one that an older veilog made, names and numbers only."""
    if isinstance(lines, Mapping):
        return [(name.replace("_", " "), _in_short(value), "") for name, value in lines.items()]
    return [(title, value, meaning) for title, value, meaning in lines or ()]


def _in_short(value: float | int | None) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _waiting(log: LogRecord, at: str, settings: Settings | None) -> str:
    busy = log.reading is not None and not log.reading.ended
    return _page("waiting.html", settings, log=log, at=at, again=busy)


def _result(log: LogRecord) -> dict[str, Any]:
    if log.reading is None or log.reading.state != "done":
        return {}
    return log.reading.result or {}


def _page(template: str, settings: Settings | None, *, again: bool = False, **facts: Any) -> str:
    return _environment().get_template(template).render(settings=settings, again=again, version=__version__, **facts)


@lru_cache(maxsize=1)
def _own_templates() -> PackageLoader:
    from jinja2 import PackageLoader

    return PackageLoader("veilog.web")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([_own_templates(), PackageLoader("veilog.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(own=address, LEARNT=LEARNT, WEAK=WEAK, LARGEST_UNASKED=LARGEST_UNASKED)
    return furnish(environment)

"""The small words of the pages: sizes, moments, states, and what numbers mean for people."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from veilog.measures.singling_out import own_path_in_words
from veilog.report.explorer import clean, short
from veilog.web.jobs.read_log import Disclosure, Found, Measured
from veilog.web.jobs.records import JobRecord, LogRecord

__all__ = ["FILTERS", "HOW", "delta_for", "exposure_in_words"]

HOW = {"given": "chosen by you", "pm4py": "by its standard name", "guessed": "guessed by its name"}
_STATES = {"queued": "waiting", "running": "at work", "done": "done", "failed": "failed", "cancelled": "cancelled"}


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000 or (unit == "bytes" and size < 1024):
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def _when(moment: float) -> str:
    try:
        at = datetime.datetime.fromtimestamp(moment, datetime.UTC).astimezone()
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{at.day} {at:%B %Y, %H:%M}"


def _day(moment: str) -> str:
    """The day of a moment in ISO format."""
    try:
        at = datetime.datetime.fromisoformat(moment)
    except ValueError:
        return moment[:10]
    return f"{at.day} {at:%B} {at.year}"


def _plain(value: float | str) -> str:
    """A number as people write it, without an end of zeros."""
    if isinstance(value, str | bool):
        return str(value)
    return f"{value:,}" if isinstance(value, int) and abs(value) < 1e15 else f"{value:g}"


def _log_state(log: LogRecord) -> str:
    if log.reading is None:
        return "queued"
    return "asks" if log.reading.state == "done" and log.measured is None else log.reading.state


def _log_state_words(log: LogRecord) -> str:
    state = _log_state(log)
    return {"done": "ready", "asks": "needs your help", "running": "being read"}.get(state, _STATES.get(state, state))


def _state_words(job: JobRecord) -> str:
    return _STATES[job.state]


def _asked_words(job: JobRecord) -> str:
    """What a job was asked to do, in a few words."""
    if job.kind == "read":
        return "Reading a log"
    given = {name: short(value, 24) for name, value in job.request.form.items() if value}
    words = given.get("method", "release")
    if "epsilon" in given:
        words += f", ε = {given['epsilon']}"
    return words + (", as published" if given.get("as_published", "") not in ("", "0", "False", "false") else "")


def _doing_words(job: JobRecord) -> str:
    """What it is doing; the page's script says the same in the same words."""
    if job.state == "queued":
        if job.ahead > 0:
            return f"Waiting: {job.ahead} {'job is' if job.ahead == 1 else 'jobs are'} before it."
        return "Waiting to begin."
    text = clean(job.text).strip()
    return text[:1].upper() + text[1:] if text else "At work."


def _left_words(job: JobRecord) -> str:
    if job.left is None or not math.isfinite(job.left) or job.left < 0:
        return ""
    if job.left < 90:
        return f"About {max(1, round(job.left))} seconds left"
    return f"About {round(job.left / 60)} minutes left"


def _tied(text: str) -> str:
    """Numbers that no line breaks off their percent sign."""
    return text.replace(" %", "\u00a0%")


FILTERS = {
    "asked_words": _asked_words,
    "bytes": _bytes,
    "day": _day,
    "doing_words": _doing_words,
    "left_words": _left_words,
    "log_state": _log_state,
    "log_state_words": _log_state_words,
    "plain": _plain,
    "state_words": _state_words,
    "tied": _tied,
    "when": _when,
}


def delta_for(cases: int) -> str:
    """A delta well below one over the cases. Of a few fixed ones, so that it tells next to nothing about the log."""
    return "1e-6" if cases <= 100_000 else "1e-9"


def exposure_in_words(measured: Measured) -> list[str]:
    """Four sentences for people who are no statisticians: own paths, chance knowledge, activities, variants."""
    found, cases, variants = measured.singled_out, measured.statistics.cases, measured.statistics.variants
    once = f"{variants:,} different paths for {cases:,} cases"
    return [
        _worst(measured, once),
        _by_chance(found, measured.example),
        _by_activities(measured.disclosure),
        f"There are {once}; the more paths there are for each case, the more a path says about a person.",
    ]


def _worst(measured: Measured, once: str) -> str:
    if measured.alone is not None:
        return own_path_in_words(measured.statistics.cases, measured.alone)
    return f"The log has {once}."  # read before this was counted


def _by_chance(found: Sequence[Found], example: str) -> str:
    if not found:
        return ""
    row = max(found, key=lambda r: (r.with_start, r.events == 3, r.events))
    start = (
        "A neighbour, a colleague or a bill may tell such things. "
        if row.with_start
        else "Without times, the events alone tell less. "
    )
    if row.low is None or row.high is None:
        said = f"about {_percent(row.singled_out)} are found"
    elif not row.singled_out:
        said = f"up to {_percent(row.high)} are found"
    else:
        said = f"about {_percent(row.singled_out)} are found ({_percent(row.low)} to {_percent(row.high)})"
    told = f" {example}" if example else ""
    return (
        f"{start}Knowing {_events(row)}, {said}, and the whole path is guessed for about {_percent(row.guessed)}.{told}"
    )


def _by_activities(rows: Sequence[Disclosure]) -> str:
    known = [r for r in rows if r.background == "sequence" and r.case_disclosure is not None]
    if not known:
        return "The log has too few activities to narrow anybody down by them."
    last = known[-1]
    fit = 1 / last.case_disclosure if last.case_disclosure else math.inf
    many = f"about {fit:.0f} cases" if fit >= 1.5 else "hardly more than one case"
    singled = (
        f"{'' if last.exact else 'at least '}{last.unique:,} of {last.cases:,} cases can be singled out by some of them"
    )
    if not last.unique:
        singled = "no case is singled out by them" if last.exact else "of those tried none singled out a case"
    activities = "activity" if last.size == 1 else "activities in their order"
    return (
        f"0 %: knowing them tells nothing; 100 %: it leaves a single case. {last.size} {activities} leave "
        f"{many} on (harmonic) average, and {singled}."
    )


def _events(row: Found) -> str:
    events = "1 event" if row.events == 1 else f"{row.events} events"
    return f"{events} of a case{' and the day it started' if row.with_start else ''}"


def _percent(share: float) -> str:
    return "under 0.1 %" if 0 < share < 0.001 else f"{100 * share:.3g} %"

"""The small words of the pages: sizes, moments, states, and what numbers mean for people."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Iterator, Sequence

from veilog.errors import VeilogError
from veilog.measures.singling_out import own_path_in_words
from veilog.privacy.account.accounting import parse_delta, parse_epsilon
from veilog.privacy.account.strength import Strength
from veilog.report.explorer import clean, short
from veilog.web.jobs.read_log import Disclosure, Found, Measured
from veilog.web.jobs.records import JobRecord, LogRecord
from veilog.web.jobs.released_log import ReleasedLog
from veilog.web.work.accounts import advantage_at, worth

__all__ = [
    "FILTERS",
    "HOW",
    "advantage_in_words",
    "exposure_in_words",
    "side_by_side",
]

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
    return "ready, being compared" if job.state == "running" and job.result else _STATES[job.state]


def _promised(job: JobRecord) -> str:
    """What a release protects, in a word; nothing where there is none, or none whose protection is proven."""
    made = job.result
    if not isinstance(made, ReleasedLog) or made.empty:
        return ""
    return made.certificate.guarantee.strength


def _ago(job: JobRecord) -> str:
    return f"{_span(time.time() - job.created)} ago"


def _age(moment: float) -> str:
    return f"{_span(time.time() - moment)} old"


def _span(seconds: float) -> str:
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if (number := int(seconds // size)) >= 1:
            return _many(number, name)
    return _many(max(1, int(seconds)), "second")


def _many(number: int, name: str) -> str:
    return f"{number:,} {name}" if number == 1 else f"{number:,} {name}s"


def _asked_words(job: JobRecord) -> str:
    """What a job was asked to do, in a few words."""
    if job.kind == "read":
        return "Reading a log"
    given = {name: short(value, 24) for name, value in job.request.form.items() if value}
    words = given.get("method", "release")
    if "epsilon" in given:
        words += f", ε = {given['epsilon']}"
    if given.get("delta", "0") != "0":
        words += f", δ = {given['delta']}"
    if given.get("unit", "case") != "case":
        words += ", for persons"
    words += ", with times" if "times" in given else ""
    words += ", with attributes" if "attributes" in given else ""
    words += f", cases of {given['part']}" if "part" in given else ""
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
        return f"About {_many(max(1, round(job.left)), 'second')} left for all of it"
    return f"About {_many(round(job.left / 60), 'minute')} left for all of it"


def _tied(text: str) -> str:
    """Numbers that no line breaks off their percent sign."""
    return text.replace(" %", "\u00a0%")


FILTERS = {
    "age": _age,
    "ago": _ago,
    "asked_words": _asked_words,
    "bytes": _bytes,
    "day": _day,
    "doing_words": _doing_words,
    "left_words": _left_words,
    "log_state": _log_state,
    "log_state_words": _log_state_words,
    "plain": _plain,
    "promised": _promised,
    "state_words": _state_words,
    "tied": _tied,
    "when": _when,
}


def side_by_side(first: ReleasedLog, second: ReleasedLog) -> list[tuple[str, str, str]]:
    """Return what two releases say of themselves and of the original, a title and two values a row."""
    sides = [dict(_facts(made)) for made in (first, second)]
    return [(title, *(side.get(title, "–") for side in sides)) for title in {**sides[0], **sides[1]}]  # type: ignore[misc]


def _facts(made: ReleasedLog) -> Iterator[tuple[str, str]]:
    yield "promise", made.budget
    yield "protection", made.certificate.guarantee.strength
    yield "protects", made.certificate.guarantee.unit
    for name in ("cases", "variants", "events"):
        yield name, f"{getattr(made.certificate, name):,}"
    yield "activities", f"{made.activities:,}"
    if made.beside is not None:
        for number, purpose in enumerate(made.beside.purposes, 1):
            yield f"purpose {number}", clean(purpose.verdict)
        yield from ((clean(title), value) for title, value, _ in made.beside.kept or ())


def advantage_in_words(epsilon: str, delta: str) -> tuple[str, Strength | None]:
    """What a budget lets anybody gain in guessing, and what that is worth; nothing for what is no budget."""
    try:
        cost = parse_epsilon(epsilon.replace(",", ".")), parse_delta(delta.replace(",", ".") or "0")
    except VeilogError:
        return "", None
    points = advantage_at(cost)
    return f"Lets anybody guess up to {points:.3g} percentage points better who is in the log.", worth(cost)


def exposure_in_words(measured: Measured) -> list[str]:
    """Four sentences for people who are no statisticians: own paths, chance knowledge, activities, variants."""
    found, cases, variants = measured.singled_out, measured.statistics.cases, measured.statistics.variants
    once = f"{variants:,} different paths for {cases:,} cases"
    return [
        _worst(measured, once),
        _by_chance(found),
        _by_activities(measured.disclosure),
        f"There are {once}; the more paths there are for each case, the more a path says about a person.",
    ]


def _worst(measured: Measured, once: str) -> str:
    if measured.alone is not None:
        return own_path_in_words(measured.statistics.cases, measured.alone)
    return f"The log has {once}."  # read before this was counted


def _by_chance(found: Sequence[Found]) -> str:
    if not found:
        return "Not tried for this log: no case has an event."
    if not found:
        return "Not tried for this log: it has too many different paths, or no case has more than one event."
    row = max(found, key=lambda r: (r.with_start, r.events == 3, r.events))
    start = (
        "A neighbour, a colleague or a bill may tell such things. "
        if row.with_start
        else "Without times, the events alone tell less. "
    )
    if row.low is None or row.high is None:
        said = f"about {_percent(row.singled_out)}"
    elif not row.singled_out:
        said = f"up to {_percent(row.high)}"
    else:
        said = f"about {_percent(row.singled_out)} ({_percent(row.low)} to {_percent(row.high)})"
    return (
        f"{start}Of somebody of whom {_events(row)} happen to be known, the case is found in {said}, and the whole "
        f"path is guessed in about {_percent(row.guessed)}."
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
    leaves = "leaves" if last.size == 1 else "leave"
    return (
        f"0 %: knowing them tells nothing; 100 %: it leaves a single case. {last.size} {activities} {leaves} "
        f"{many} on (harmonic) average, and {singled}."
    )


def _events(row: Found) -> str:
    events = "1 event" if row.events == 1 else f"{row.events} events"
    return f"{events} of a case{' and the day it started' if row.with_start else ''}"


def _percent(share: float) -> str:
    return "under 0.1 %" if 0 < share < 0.001 else f"{100 * share:.3g} %"

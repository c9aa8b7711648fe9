"""The small words of the pages: sizes, moments, states, and what numbers mean for people."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import time
from collections.abc import Iterator
from fractions import Fraction

from veilog._language import (
    dated,
    day_in_words,
    gettext,
    gettext_noop,
    localised,
    ngettext,
    percent,
    pgettext,
)
from veilog.errors import VeilogError
from veilog.messages import Message, message_from
from veilog.privacy.account.accounting import parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Strength
from veilog.privacy.account.guessing import worth
from veilog.report.explorer import clean, short
from veilog.report.figures import figure
from veilog.report.words import capital, strength_in_words, title_of_budget
from veilog.web.jobs.records import JobRecord, LogRecord
from veilog.web.jobs.results import ReleasedLog
from veilog.web.work.accounts import advantage_at, cost_in_words

_WORDS = (
    gettext_noop("Event log: a list of what was done, for whom and when. Each entry is an event."),
    gettext_noop("Case: one run of the process, such as one stay of a patient, with all its events."),
    gettext_noop("Variant, path: an order of activities that one case or several cases follow."),
    gettext_noop("Directly-follows: one activity comes right after another. The map counts how often."),
    gettext_noop(
        "Differential privacy: a property of how a release is made; whoever is left out of the log, every possible "
        "release is nearly as likely as before."
    ),
    gettext_noop("ε (epsilon), budget: how much a release may tell about one case or person. Smaller is more private."),
    gettext_noop("δ (delta): what the chance of a result may exceed the bound of ε by. Many methods need none."),
    gettext_noop("Percentage points: from 50 % to 60 % are ten of them."),
    gettext_noop(
        "Noise (Laplace, Gaussian, geometric): random numbers added to an answer, so that no single case shows. They "
        "are named by how they are drawn; with a larger scale they are larger."
    ),
    gettext_noop("Mechanism: the way in which noise is drawn for an answer."),
    gettext_noop("Certificate: a file that says what is guaranteed, for whom, and from which questions that follows."),
    gettext_noop("Prefix: how a case begins, its first few activities."),
    gettext_noop("Prototype: a made-up path that stands for the cases that are most like it."),
    gettext_noop("Threshold: what is counted less often than this, with its noise, is left out."),
    gettext_noop("Median, quantile: half of the values are below the median; 80 % are below the 80 % quantile."),
    gettext_noop("Harmonic average: an average in which small values count most."),
    gettext_noop("Similarity: 1 where release and original have the same paths equally often, 0 where all differs."),
    gettext_noop("Case disclosure: how far a few known activities narrow down whose case it is. 1 leaves one case."),
    gettext_noop(
        "Singling out, linkability, inference: the three risks by which anonymisation is judged in Europe; to find "
        "somebody's case, to connect two cases of one person, to conclude something about somebody."
    ),
    gettext_noop(
        "Fitness, precision: two marks of a process model; how much of the log it explains, and how little else it "
        "allows."
    ),
    gettext_noop(
        "k-anonymity, t-closeness: promises about groups; everybody looks like some others. They do not hold against "
        "somebody who knows more."
    ),
    gettext_noop(
        "Critic, autoencoder, gradients: parts of a trained neural network and of its training, which some methods use."
    ),
    gettext_noop(
        "Rényi privacy, Poisson sampling: ways to calculate how little noise suffices for a budget, and to draw some "
        "of the cases by chance."
    ),
)


def glossary() -> list[tuple[str, str]]:
    """Return the words with their meanings in the language that is spoken now."""
    return [(word.strip(), meaning.strip()) for word, _, meaning in (gettext(said).partition(":") for said in _WORDS)]


HOW = {
    "given": gettext_noop("chosen by you"),
    "pm4py": gettext_noop("by its standard name"),
    "guessed": gettext_noop("guessed by its name"),
}
LANGUAGES = {"en": "English", "de": "Deutsch", "fr": "Français", "nl": "Nederlands"}
"""What each language calls itself; of one that is not here its code is shown."""


def _state(state: str) -> str:
    return {
        "queued": pgettext("state", "waiting"),
        "running": pgettext("state", "at work"),
        "done": pgettext("state", "done"),
        "failed": pgettext("state", "failed"),
        "cancelled": pgettext("state", "cancelled"),
    }[state]


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000 or (unit == "bytes" and size < 1024):
            number = f"{size:.0f}" if unit == "bytes" or size >= 10 else f"{size:.1f}"
            return f"{localised(number)} {gettext('bytes') if unit == 'bytes' else unit}"
        size /= 1024
    return f"{localised(f'{size:.1f}')} GB"


def _when(moment: float) -> str:
    try:
        at = datetime.datetime.fromtimestamp(moment, datetime.UTC).astimezone()
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{day_in_words(at)}, {at:%H:%M}"


def _day(moment: str) -> str:
    """The day of a moment in ISO format."""
    try:
        at = datetime.datetime.fromisoformat(moment)
    except ValueError:
        return moment[:10]
    return day_in_words(at)


def _moment(text: str) -> str:
    try:
        at = datetime.datetime.fromisoformat(text).astimezone()
    except ValueError:
        return text[:16]
    return f"{dated(at.date().isoformat())} {at:%H:%M}"


def _plain(value: float | str) -> str:
    """A number as a field takes it, without an end of zeros."""
    return str(value) if isinstance(value, str | int) else localised(f"{value:g}")


def _log_state(log: LogRecord) -> str:
    if log.reading is None:
        return "queued"
    return "asks" if log.reading.state == "done" and log.measured is None else log.reading.state


def _log_state_words(log: LogRecord) -> str:
    state = _log_state(log)
    known = {
        "done": pgettext("state", "ready"),
        "asks": pgettext("state", "needs your help"),
        "running": pgettext("state", "being read"),
    }
    return known.get(state) or _state(state)


def _state_words(job: JobRecord) -> str:
    return pgettext("state", "ready, being compared") if job.state == "running" and job.result else _state(job.state)


def _is_empty(job: JobRecord) -> bool:
    """Whether it made a release in which there is no case."""
    return isinstance(job.result, ReleasedLog) and job.result.empty


def _asked_before(job: JobRecord) -> str:
    minutes = int((time.time() - job.created) // 60)
    if minutes < 1:
        return gettext("You asked for this very release less than a minute ago")
    return ngettext(
        "You asked for this very release {n} minute ago", "You asked for this very release {n} minutes ago", minutes
    )


def _age(moment: float) -> str:
    seconds = time.time() - moment
    if seconds >= 86400:
        return ngettext("{n} day old", "{n} days old", int(seconds // 86400))
    if seconds >= 3600:
        return ngettext("{n} hour old", "{n} hours old", int(seconds // 3600))
    return ngettext("{n} minute old", "{n} minutes old", max(1, int(seconds // 60)))


def _asked_words(job: JobRecord) -> str:
    """What a job was asked to do, in a few words."""
    if job.kind == "read":
        return gettext("Reading a log")
    given = {name: short(value, 24) for name, value in job.request.form.items() if value}
    words = [given.get("method") or gettext("release")]
    if "epsilon" in given:
        words.append(f"ε = {localised(given['epsilon'].replace(',', '.'))}")
    if given.get("delta", "0") != "0":
        words.append(f"δ = {_power(given['delta'].replace(',', '.'))}")
    if given.get("unit", "case") != "case":
        words.append(gettext("for persons"))
    words += [gettext("with times")] if "times" in given else []
    words += [gettext("with starts of events")] if "processing" in given else []
    words += [gettext("with attributes")] if "attributes" in given else []
    words += [gettext("cases of {part}", part=given["part"])] if "part" in given else []
    words += [gettext("as published")] if given.get("as_published", "") not in ("", "0", "False", "false") else []
    return ", ".join(words)


def _doing_words(job: JobRecord) -> str:
    """What it is doing; the page's script says the same in the same words."""
    if job.state == "queued":
        if job.ahead > 0:
            return ngettext("Waiting: {n} job is before it.", "Waiting: {n} jobs are before it.", job.ahead)
        return gettext("Waiting to begin.")
    text = _told(clean(job.text).strip())
    return text[:1].upper() + text[1:] if text else gettext("At work.")


def _left_words(job: JobRecord) -> str:
    if job.left is None or not math.isfinite(job.left) or job.left < 0:
        return ""
    if job.left < 90:
        seconds = max(1, round(job.left))
        return ngettext("About {n} second left for all of it", "About {n} seconds left for all of it", seconds)
    minutes = round(job.left / 60)
    return ngettext("About {n} minute left for all of it", "About {n} minutes left for all of it", minutes)


def _told(text: str) -> str:
    """What the server or a job said: a message as the store keeps it, its code, or a text, which what a job says is in
    the language of whoever began it."""
    if text.startswith('{"code"'):
        with contextlib.suppress(ValueError):
            return str(message_from(json.loads(text)))
    return str(Message(text))


def _two(value: float) -> str:
    return localised(f"{value:.2f}")


def _points(value: float) -> str:
    """A number as people write it, in at most a few digits."""
    return localised(f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if value < 1000 else f"{value:,.0f}")


def _power(number: str) -> str:
    """A delta as it is written elsewhere on the pages; what is none stays as it is."""
    try:
        return figure(Fraction(number))
    except (ValueError, ZeroDivisionError):
        return number


def _percent(share: float) -> str:
    return percent(f"{share:g}")


def _unit_named(unit: str) -> str:
    """A case, or a person; what only a file can state stays as it is."""
    return {"case": gettext("case"), "person": gettext("person")}.get(unit, unit)


def _tied(text: str) -> str:
    """Numbers that no line breaks off their percent sign."""
    return text.replace(" %", "\u00a0%")


FILTERS = {
    "age": _age,
    "asked_before": _asked_before,
    "asked_words": _asked_words,
    "bytes": _bytes,
    "cost": cost_in_words,
    "day": _day,
    "doing_words": _doing_words,
    "figures": localised,
    "is_empty": _is_empty,
    "left_words": _left_words,
    "moment": _moment,
    "log_state": _log_state,
    "log_state_words": _log_state_words,
    "percent": _percent,
    "plain": _plain,
    "points": _points,
    "power": _power,
    "state_words": _state_words,
    "tied": _tied,
    "told": _told,
    "two": _two,
    "unit_named": _unit_named,
    "when": _when,
}


def side_by_side(first: ReleasedLog, second: ReleasedLog) -> list[tuple[str, str, str]]:
    """Return what two releases say of themselves and of the original, a title and two values a row."""
    sides = [_by_title(made) for made in (first, second)]
    return [(title, *(side.get(title, "–") for side in sides)) for title in {**sides[0], **sides[1]}]  # type: ignore[misc]


def _by_title(made: ReleasedLog) -> dict[str, str]:
    """What a release says, with what it kept beside it: of activities there is a number and a share."""
    facts = dict(_facts(made))
    if made.beside is not None:
        kept = ((clean(title), value) for title, value, _ in made.beside.kept or ())
        facts |= {f"{title} ({gettext('kept')})" if title in facts else title: value for title, value in kept}
    return facts


def _facts(made: ReleasedLog) -> Iterator[tuple[str, str]]:
    yield gettext("promise"), title_of_budget(made.guarantee)
    yield gettext("protection"), strength_in_words(made.known.guarantee.strength)
    yield gettext("protects"), _unit_named(made.guarantee.unit)
    yield gettext("cases"), localised(f"{made.cases:,}")
    yield gettext("variants"), localised(f"{made.variants:,}")
    yield gettext("events"), localised(f"{made.events:,}")
    yield gettext("activities"), localised(f"{made.activities:,}")
    if made.beside is not None:
        for number, purpose in enumerate(made.beside.purposes, 1):
            yield gettext("purpose {n}", n=number), clean(purpose.verdict)


_GAIN = gettext_noop("Lets anybody guess up to {points} percentage points better who is in the log.")


def said_by_scripts() -> dict[str, str]:
    """Return what the page's script says, with placeholders where it has numbers."""
    strengths: tuple[Strength, ...] = ("strong", "good", "moderate", "weak", "none in practice")
    return {
        **{strength: capital(strength_in_words(strength)) for strength in strengths},
        "gain": gettext(_GAIN),
        "keeps": gettext("Keeps about {number}"),
        "between": gettext("({low} to {high}) of 1, as tried on made-up logs."),
        "smaller": pgettext("map", "Smaller"),
        "larger": pgettext("map", "Larger"),
        "whole": pgettext("map", "Whole"),
        "some": gettext("{n} of {most}"),
        "activities": gettext("Activities"),
        "paths": gettext("Paths"),
        "times": gettext("How long steps take"),
        "only": gettext("Only what touches {activity}"),
        "unanswered": gettext("No answer: is the program still running? Reload the page."),
    }


def known_events(number: int, with_start: bool) -> str:
    """Return what somebody knows of a person."""
    if with_start:
        return ngettext("{n} event and the day", "{n} events and the day", number)
    return ngettext("{n} event", "{n} events", number)


def advantage_in_words(epsilon: str, delta: str, cases: int) -> tuple[str, Strength | None]:
    """What a budget lets anybody gain in guessing, and what that is worth to one of so many cases; nothing for what is
    no budget."""
    try:
        cost = parse_epsilon(epsilon.replace(",", ".")), parse_delta(delta.replace(",", ".") or "0")
    except VeilogError:
        return "", None
    points = advantage_at(cost)
    said = gettext(_GAIN, points=localised(f"{points:.3g}"))
    return said, worth(cost, cases=cases)

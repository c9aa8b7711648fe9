"""Numbers, moments and texts as the pages write them."""

from __future__ import annotations

import contextlib
import datetime
import json
from fractions import Fraction

from veilog._language import dated, day_in_words, gettext, localised, percent
from veilog.ledger.accounts import in_figures
from veilog.ledger.entry import Cost
from veilog.messages import Message, message_from
from veilog.report.words import figure

LANGUAGES = {"en": "English", "de": "Deutsch", "fr": "Français", "nl": "Nederlands"}
"""What each language calls itself; of one that is not here its code is shown."""


def _bytes(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000 or (unit == "bytes" and size < 1024):
            number = f"{size:.0f}" if unit == "bytes" or size >= 10 else f"{size:.1f}"
            return f"{localised(number)} {gettext('bytes') if unit == 'bytes' else unit}"
        size /= 1024
    return f"{localised(f'{size:.1f}')} GB"


def _when(moment: float) -> str:
    at = datetime.datetime.fromtimestamp(moment, datetime.UTC).astimezone()
    return f"{day_in_words(at)}, {at:%H:%M}"


def _day(moment: str) -> str:
    """The day of a moment in ISO format."""
    return day_in_words(datetime.datetime.fromisoformat(moment))


def _moment(moment: str) -> str:
    """A moment in ISO format, with numbers alone."""
    at = datetime.datetime.fromisoformat(moment).astimezone()
    return f"{dated(at.date().isoformat())} {at:%H:%M}"


def _cost(cost: Cost) -> str:
    return f"ε = {figure(cost[0])}" + (f", δ = {figure(cost[1])}" if cost[1] else "")


def _plain(value: float | str) -> str:
    """A number as a field takes it, without an end of zeros."""
    return str(value) if isinstance(value, str | int) else localised(f"{value:g}")


def _points(value: float) -> str:
    """A number as people write it, in at most a few digits."""
    return localised(f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if value < 1000 else f"{value:,.0f}")


def _power(number: str) -> str:
    """A delta as it is written elsewhere on the pages; what is none stays as it is."""
    try:
        return figure(Fraction(number))
    except (ValueError, ZeroDivisionError):
        return number


def told(text: str) -> str:
    """Return what the server or a job said: a message as the store keeps it, its code, or a text, which what a job says
    is in the language of whoever began it."""
    if text.startswith('{"code"'):
        with contextlib.suppress(ValueError):
            return str(message_from(json.loads(text)))
    return str(Message(text))


FILTERS = {
    "bytes": _bytes,
    "cost": _cost,
    "day": _day,
    "exact": lambda value: localised(in_figures(value)),
    "figures": localised,
    "in_figures": in_figures,
    "left": lambda value: localised(in_figures(value, down=True)),
    "moment": _moment,
    "percent": lambda value: percent(f"{value:.3g}"),
    "plain": _plain,
    "points": _points,
    "power": _power,
    "told": told,
    "two": lambda value: localised(f"{value:.2f}"),
    "when": _when,
}

"""The language of pages and messages: sentences are English and looked up here.

A catalogue is one file in gettext's format, ``de.po``, beside this one; a new file adds a language. It has its
sentences, how it counts (``Plural-Forms``) and, under the context *locale*, how it writes numbers, dates and quotes.
Without a chosen language everything is English. A sentence that a catalogue lacks stays English.

Sentences are whole, with placeholders by name: ``gettext("{n} more variants", n=12)``. A whole number is written as the
language writes it; any other value is text. ``{unit}`` is *case* or *person*, whose article and endings follow the
language. So it is filled in before the lookup, and a catalogue has such a sentence twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from veilog._language.catalogue import Catalogue

ENGLISH = "en"
UNITS = ("case", "person")
"""Units of a guarantee that sentences know; for any other, from a file, they stay English."""

_SUFFIX = ".po"
_current: ContextVar[str] = ContextVar("language", default=ENGLISH)


@lru_cache(maxsize=1)
def languages() -> tuple[str, ...]:
    """Return the languages that have a catalogue, English first."""
    return (ENGLISH, *sorted({file.stem for file in Path(__file__).parent.glob(f"*{_SUFFIX}")} - {ENGLISH}))


def current() -> str:
    """Return the current language."""
    return _current.get()


@contextmanager
def spoken(language: str) -> Iterator[None]:
    """Use a language, one of :func:`languages`, while the block lasts."""
    before = _current.set(language)
    try:
        yield
    finally:
        _current.reset(before)


def gettext(text: str, /, **values: str | int) -> str:
    """Return a sentence in the current language, with these values in it."""
    return pgettext("", text, **values)


def pgettext(context: str, text: str, /, **values: str | int) -> str:
    """Return a sentence as :func:`gettext` does, with a context.

    The context distinguishes meanings that are one word in English and two elsewhere.
    """
    if values.get("unit") in UNITS:
        text = text.replace("{unit}", str(values["unit"]))
    found = None if current() == ENGLISH else _catalogue(current()).one(context, text)
    return _fill(found or text, values)


def sentence(language: str, context: str, code: str) -> str | None:
    """Return the text of a language for a message code, or None."""
    return _catalogue(language).one(context, code) or None


def ngettext(one: str, many: str, n: int, /, **values: str | int) -> str:
    """Return the form of a sentence that fits the number, which is its ``{n}``."""
    found = None if current() == ENGLISH else _catalogue(current()).counted(one, n)
    return _fill(found or (one if n == 1 else many), {"n": n, **values})


def count_phrase(number: int, what: str, many: str = "") -> str:
    """Return so many of something, in English: "1 case", "1,050 cases"."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def gettext_noop(text: str) -> str:
    """Return the text as it is: a sentence that is looked up where it is shown."""
    return text


_MONTHS = (
    *(gettext_noop("January"), gettext_noop("February"), gettext_noop("March"), gettext_noop("April")),
    *(gettext_noop("May"), gettext_noop("June"), gettext_noop("July"), gettext_noop("August")),
    *(gettext_noop("September"), gettext_noop("October"), gettext_noop("November"), gettext_noop("December")),
)


def format_number(number: str) -> str:
    """Return a number, written as in English (1,234.5), as the language writes it."""
    sample = pgettext("locale", "1,234.5")
    return number.translate({ord(","): sample[1], ord("."): sample[-2]})


def percent(number: str) -> str:
    """Return a number, written as in English, with the percent sign."""
    return pgettext("locale", "{number} %", number=format_number(number))


def share_in_percent(share: float) -> str:
    """Return a share in per cent, in enough digits to distinguish it from 0 and 100.

    A share within a billionth of either is what rounding left of it, so it is written without digits.
    """
    digits = range(1 if min(share, 1 - share) < 1e-9 else 12)
    written = [f"{100 * share:.{number}f}" for number in digits]
    return percent(next((number for number in written if 0 < float(number) < 100), written[0]))


def two_digits(number: float) -> str:
    """Return a number in about two digits, as the language writes it, no exponent."""
    return format_number(f"{number:,.0f}" if number >= 10 else f"{Decimal(f'{number:.2g}'):f}")


def format_date(date: str) -> str:
    """Return a date in ISO 8601 as the language writes it."""
    year, month, day = date.split("-")
    return pgettext("locale", "{year}-{month}-{day}", year=year, month=month, day=day)


def day_in_words(day: date) -> str:
    """Return a date with its month in words, which leaves no doubt about the day."""
    month = gettext(_MONTHS[day.month - 1])
    return pgettext("locale", "{day} {month} {year}", day=str(day.day), month=month, year=str(day.year))


def quoted(text: str) -> str:
    """Return the text between the language's quotation marks."""
    return pgettext("locale", "“{text}”", text=text)


def _fill(text: str, values: dict[str, str | int]) -> str:
    shown = {name: value if isinstance(value, str) else format_number(f"{value:,}") for name, value in values.items()}
    return text.format_map(shown) if shown else text


@lru_cache(maxsize=8)
def _catalogue(language: str) -> Catalogue:
    return Catalogue(Path(__file__).with_name(f"{language}{_SUFFIX}").read_text(encoding="utf-8"))

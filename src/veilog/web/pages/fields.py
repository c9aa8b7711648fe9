"""What the library says of options, said of the fields of a form: a page has no options."""

from __future__ import annotations

import re
from collections.abc import Iterable

from veilog._language import gettext, gettext_noop, quoted

__all__ = ["by_fields"]

_LABELS = {
    "activities": gettext_noop("Activities, one on each line"),
    "as-published": gettext_noop("As published"),
    "delta": gettext_noop("Small chance δ"),
    "domain": gettext_noop("Values that it may have, one on each line, or a range as 0..100"),
    "max-cases": gettext_noop("Cases of one person that count"),
    "max-length": gettext_noop("Longest possible case"),
    "part": gettext_noop("Part"),
    "times": gettext_noop("Share of the budget for times"),
    "unit": gettext_noop("The promise is for"),
}
"""What stands beside the field of an option."""
_OPTION = re.compile(
    r"--(?P<name>[a-z][a-z-]+)(?: NAME=a\|b\|c(?:, or NAME=LOW\.\.HIGH for numbers)?)?(?P<number> (?=\d))?"
)


def by_fields(sentences: Iterable[str]) -> str:
    """Return the sentences with the fields of the form in the place of options; what advises an option that no page has
    is left out, unless nothing else was said."""
    said = [_OPTION.sub(_field, sentence) for sentence in sentences]
    return " ".join([sentence for sentence in said if not _OPTION.search(sentence)] or said)


def _field(option: re.Match[str]) -> str:
    label = _LABELS.get(option["name"])
    return option[0] if label is None else quoted(gettext(label)) + (": " if option["number"] else "")

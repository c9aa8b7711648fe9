"""Numbers as people read them on a page, in the language that is spoken: powers of ten as powers, and no line that
breaks inside a number."""

from __future__ import annotations

import re
from fractions import Fraction

from veilog._language import localised, percent, pgettext
from veilog.privacy.account.guarantee import up

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_POWER = re.compile(r"(?:1(?=e)|([\d.]+))e([+-]?)0*(\d+)")


def figure(value: Fraction | float | None, digits: int = 6) -> str:
    """Return a number that is rounded up: 10⁻⁶ in place of 1e-06."""
    if value is None:
        return pgettext("number", "none")
    return localised(_POWER.sub(_raised, up(value, digits)))


def share_of(number: str) -> str:
    """Return a number, written as in English, in percent."""
    return tied(percent(number))


def tied(text: str) -> str:
    """Return the text with thin spaces where no line may break: before a percent sign, around the sign after ε or δ."""
    return re.sub(r"(?<=[εδ]) = (?=\S)", "\u202f=\u202f", re.sub(r"(?<=\d)[ \u00a0]%", "\u202f%", text))


def _raised(found: re.Match[str]) -> str:
    power = "10" + (found[2].replace("+", "") + found[3]).translate(_RAISED)
    return power if found[1] is None else f"{found[1]}·{power}"

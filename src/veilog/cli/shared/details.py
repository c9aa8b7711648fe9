"""The options of ``veilog release`` for what is released: times and attributes beyond variants, and of which cases."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from veilog._files import reason, text_of
from veilog.cli.shared.common import OPTIONS
from veilog.cli.shared.values import pair
from veilog.errors import InputError, ParameterError, meant
from veilog.privacy.domain import FROM_LOG, PRIVATELY, Values, Window
from veilog.privacy.part import SPAN, day_named


@Parameter(name="*", group=OPTIONS["Times, attributes, and some cases alone"])
@dataclass(frozen=True)
class ContentOptions:
    """What is released beyond variants, and of which cases."""

    times: Annotated[str | None, Parameter(help="Share of epsilon that gives the events times, e.g. 0.3.")] = None
    window: Annotated[
        str | None,
        Parameter(help="START..END: when cases start (ISO dates); or log, to take it from the log."),
    ] = None
    processing: Annotated[
        bool,
        Parameter(
            negative="", help="With the times, release when events began (start_timestamp), so how long they take."
        ),
    ] = False
    attributes: Annotated[
        str | None,
        Parameter(
            help="Attributes to release: a,b,c; case:NAME for one that events have and that never changes in a case."
        ),
    ] = None
    attributes_share: Annotated[str | None, Parameter(help="Share of epsilon for attributes; a quarter.")] = None
    domain: Annotated[
        tuple[str, ...],
        Parameter(
            name="--domain",
            negative="",
            help="NAME=a|b|c, NAME=LOW..HIGH or NAME=@FILE: the public values of an attribute. Repeatable.",
        ),
    ] = ()

    part: Annotated[
        str | None,
        Parameter(
            help="Release these cases alone: month=2024-03 (or week=2024-W11, quarter=2024-Q1, year=2024) by their "
            "start in UTC, or ATTRIBUTE=VALUE; none for those without. Different parts of one rule cost a case no more "
            "than one of them."
        ),
    ] = None

    since: Annotated[
        str | None,
        Parameter(
            help="Release the cases alone that began on this day (2024-03-14, UTC) or later, and before --until; last: "
            "from where the last such release on --account ended."
        ),
    ] = None
    until: Annotated[
        str | None, Parameter(help="With --since: the day before which they began; by default today, so whole days.")
    ] = None

    remember_units: Annotated[
        bool,
        Parameter(
            negative="",
            help="With --part or --since: keep a digest (16 bytes) of the name of each case or person in the ledger, "
            "and leave out those that another part of the rule had.",
        ),
    ] = False

    @property
    def chosen(self) -> str | None:
        """The part of the cases, in the words of ``--part``."""
        if self.until is not None and self.since is None:
            raise ParameterError("--until needs --since.", parameter="until")
        if self.since is None:
            return self.part
        if self.part is not None:
            raise ParameterError("--part and --since both say which cases.", parameter="since", advice="Give one.")
        first, end = day_named(self.since, "since"), self.end
        if first >= end:
            raise ParameterError(
                f"No day is from --since {first} on and before {'today' if self.until is None else f'--until {end}'}.",
                parameter="since",
                advice="Take an earlier day for --since, or a later one for --until.",
            )
        return f"{SPAN}={first}..{end}"

    @property
    def end(self) -> datetime.date:
        """The day before which cases are to have begun: by default today, in UTC."""
        return datetime.datetime.now(datetime.UTC).date() if self.until is None else day_named(self.until, "until")

    @property
    def wanted(self) -> bool:
        return self.times is not None or self.attributes is not None or self.processing

    def arguments(self) -> dict[str, Any]:
        """As :func:`veilog.release` takes them."""
        names = None if self.attributes is None else [n.strip() for n in self.attributes.split(",") if n.strip()]
        return {
            "times": self.times,
            "window": None if self.window is None else _window(self.window),
            "processing": self.processing,
            "attributes": names,
            "attributes_share": self.attributes_share,
            "part": self.chosen,
            "remember_units": self.remember_units,
        }

    def domains(self, *, required: bool = True) -> dict[str, Values]:
        """The declared values of attributes; where it is ``required``, of those alone that are released."""
        asked = [name.strip() for name in (self.attributes or "").split(",")]
        known = {name.removeprefix("case:") for name in asked}
        found: dict[str, Values] = {}
        for text in self.domain:
            name, values = pair(text, "--domain")
            if name in found:
                raise ParameterError(f"The domain of {name!r} is declared twice.", parameter="domain")
            if required and name.removeprefix("case:") not in known:
                raise ParameterError(
                    f"--domain is for attributes that are released, and {name!r} is not.",
                    parameter="domain",
                    advice=f"{meant(name, asked)}Name it in --attributes, or leave its domain away.",
                )
            found[name] = _values(values)
            if len(found[name]) == 1 and "," in values and not values.startswith("@"):
                raise ParameterError(
                    f"{values!r} is one value of {name!r}: values are separated by |, as some have commas.",
                    parameter="domain",
                    advice=f"Say '{name}={'|'.join(part.strip() for part in values.split(','))}'; or name a file that "
                    f"has one on each line, {name}=@FILE.",
                )
        return found


NOTHING_MORE = ContentOptions()


def _values(text: str) -> Values:
    if text.startswith("@"):
        return declared_list(text)
    low, dots, high = text.partition("..")
    if dots:
        try:
            return float(low), float(high)
        except ValueError:
            pass
    return tuple(value.strip() for value in text.split("|") if value.strip())


def _window(text: str) -> Window | str:
    start, dots, end = text.partition("..")
    if not dots and text != "log":
        raise ParameterError(
            f"--window takes START..END, such as 2024-01-01..2025-01-01, or log, not {text!r}.", parameter="window"
        )
    if not dots:
        return text
    return _time(start), _time(end)


def _time(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        raise ParameterError(
            f"--window takes START..END as dates like 2024-01-31, not {text.strip()!r}.", parameter="window"
        ) from None


def declared_list(text: str) -> tuple[str, ...]:
    """``a,b,c``, or ``@FILE`` with one on each line."""
    if not text.startswith("@"):
        return _stripped(text.split(","))
    path = Path(text[1:])
    try:
        lines = text_of(path).splitlines()
    except OSError as error:
        raise ParameterError(
            f"The list {path} cannot be read: {reason(error)}.",
            parameter="@FILE",
            advice="@FILE is a text file with one name on each line.",
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("The list is no text in UTF-8.", path=path) from error
    return _stripped(lines)


def activity_names(text: str, words: Sequence[str] = (FROM_LOG, PRIVATELY)) -> tuple[str, ...]:
    """The activities in such a list; one name that is nearly one of the ``words`` which say something else is refused,
    because a release of one activity that does not exist would cost as much as any other."""
    names = declared_list(text)
    if text.startswith("@") or len(names) != 1 or not meant(names[0], (FROM_LOG, PRIVATELY)):
        return names
    raise ParameterError(
        f"--activities {names[0]} would be a list of one activity, {names[0]!r}.",
        parameter="activities",
        advice=f"{meant(names[0], words)}If it is one, give --activities @FILE with it on a line.",
    )


def _stripped(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names if name.strip())

"""Roles of a table's columns: given, by pm4py's names, or guessed from names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from veilog._plain import tables_of
from veilog.errors import InputError, ParameterError, meant
from veilog.logs.eventlog import ACTIVITY, CASE, LIFECYCLE, TIMESTAMP
from veilog.logs.findings import Note
from veilog.logs.input.lifecycle import EVERY, no_life_cycle, wants_intervals
from veilog.logs.input.source import ReadOptions
from veilog.logs.tables.cells import DayOrder
from veilog.messages import Message

Found = Literal["given", "pm4py", "guessed"]
Classifiers = Sequence[tuple[str, str, str]]
"""(name, keys, scope) of the classifiers of a log."""


@dataclass(frozen=True)
class Roles:
    """Columns for case, activity and timestamp, how each was found, and others used."""

    case: str
    activity: str
    timestamp: str
    case_found: Found = "given"
    activity_found: Found = "given"
    timestamp_found: Found = "given"
    transition: str | None = None
    """Column with the step in the life of an activity, if there is one."""
    lifecycle: str | None = None
    """Transition whose events alone count."""
    classifier: tuple[str, ...] = ()
    """Columns whose values make an activity; empty for the one of the activity alone."""
    day_order: DayOrder | None = None
    """Declared meaning of ``5/6/2024``."""
    clock: str | None = None
    """The column of the time of day, where that of the timestamp has the date alone."""
    start: str | None = None
    """The column of the start, where that of the timestamp is the end."""
    begun: str | None = None
    """Column with an event's own start, where a start and its end become one event."""
    spare: str | None = None
    """The one of the columns of start and end that is not the time of the event."""
    takes_spare: bool = False
    """True if a missing time is looked for there."""

    @property
    def two_events(self) -> bool:
        """True if a row is two events, its start and its end."""
        return self.start is not None and self.lifecycle == EVERY

    @property
    def noticed(self) -> tuple[Note, ...]:
        """Notes on two columns that are one time, or two times."""
        if self.clock is not None:
            return (Note("date-and-time", Message("example-one-time", date=self.timestamp, clock=self.clock)),)
        if self.start is not None and self.lifecycle is None:
            example = Message("example-time-and-attribute", timestamp=self.timestamp, start=self.start)
            return (Note("start-and-end", example),)
        return ()

    @property
    def named(self) -> tuple[str, ...]:
        """All columns whose values decide the events, their order and their names."""
        spare = self.spare if self.takes_spare else None
        extra = (self.transition, self.clock, self.start if self.two_events else None, self.begun, spare)
        found = (self.case, self.activity, self.timestamp, *extra, *self.classifier)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    @property
    def times(self) -> tuple[str, ...]:
        """All columns that are times, or parts of them."""
        found = (self.timestamp, self.clock, self.start, self.begun, self.spare)
        return tuple(name for name in found if name is not None)

    @property
    def guessed(self) -> bool:
        """True if any column was chosen by its name alone."""
        return "guessed" in (self.case_found, self.activity_found, self.timestamp_found)

    def __str__(self) -> str:
        clock = "" if self.clock is None else f" with {self.clock!r}"
        return (
            f"case {self.case!r} ({self.case_found}), activity {self.activity!r} ({self.activity_found}), "
            f"timestamp {self.timestamp!r}{clock} ({self.timestamp_found})"
        )


_NAMES = tables_of("veilog.logs", "column_names")["roles"]
_TIMESTAMP = _NAMES["timestamp"]
_COMPLETIONS = f"{_TIMESTAMP[1]} {_TIMESTAMP[-1]}"
_STARTS = f"{_TIMESTAMP[3]} {_NAMES['starts']}"


def guess_roles(
    columns: Sequence[str],
    *,
    case: str | None = None,
    activity: str | None = None,
    timestamp: str | None = None,
    start: str | None = None,
    public: bool = True,
) -> Roles:
    """Return the roles of these columns: given, else by usual names.

    pm4py's names come first, then usual names in English, German, Dutch and French. Of several time columns the
    completion counts, as in pm4py. A date and a time of day in two columns are one time, if their names show that. So
    they are if ``timestamp`` is both names with a ``+`` between. Raises :class:`InputError` that lists the columns when
    a role is missing or two columns have equally good names. For columns that are not ``public``, only given or
    standard names count; see :func:`declared_roles`.
    """
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        raise InputError("column-name-twice", repeated=repeated[0])
    case_, case_found = role_of("case", columns, case, public=public)
    activity_, activity_found = role_of("activity", columns, activity, public=public)
    ends = [name for name in columns if name != start or name == timestamp]
    date, clock = (_date_and_clock(ends, timestamp) if public else None) or (timestamp, None)
    timestamp_, timestamp_found = role_of("timestamp", ends, timestamp and date, public=public)
    if start is not None:
        role_of("start", columns, start)
    if len({case_, activity_, timestamp_, start}) < 4:
        raise InputError(
            "column-roles-not-distinct", advice=_way_out(columns), case=case_, activity=activity_, timestamp=timestamp_
        )
    others = [name for name in columns if name not in (case_, activity_, timestamp_, clock)]
    if start is None and clock is None:
        start = _start(others, timestamp_)
    return Roles(
        case_,
        activity_,
        timestamp_,
        case_found,
        activity_found,
        timestamp_found,
        transition=_transition(others, public=public),
        clock=clock,
        start=start,
    )


def has_activity(columns: Sequence[str]) -> bool:
    """Return True if a column has activities by its name."""
    try:
        return bool(role_of("activity", columns))
    except InputError as error:
        return error.code == "column-role-ambiguous"


def declared_roles(
    columns: Sequence[str], declared: ReadOptions, classifiers: Classifiers = (), *, public: bool = True
) -> Roles:
    """Return the roles of these columns with the data owner's declarations.

    They are about life cycle, classifier and format of times. Columns that exist because some event has them are not
    ``public``: their roles go by fixed names, so that one event's columns do not affect others.
    """
    if wants_intervals(declared.lifecycle):
        raise ParameterError("lifecycle-not-merged-here", parameter="lifecycle")
    named = {name: getattr(declared, name) for name in ("case", "activity", "timestamp", "start")}
    roles, lifecycle = guess_roles(columns, **named, public=public), declared.lifecycle
    if lifecycle is None or roles.transition is not None:
        roles = replace(roles, lifecycle=lifecycle, spare=roles.start if public and lifecycle is None else None)
    elif public:
        roles = _row_roles(roles, lifecycle)
    elif lifecycle.strip().casefold() != EVERY:
        raise no_life_cycle(lifecycle)
    if lifecycle is not None and not public:  # a start in the same event is an attribute, always
        roles = replace(roles, lifecycle=lifecycle, start=None)
    keys: tuple[str, ...] = ()
    if declared.classifier is not None:
        standing = {ACTIVITY: roles.activity, TIMESTAMP: roles.timestamp, CASE: roles.case} if public else {}
        known = [*columns, *(name for name in standing if name not in columns)]
        found = classifier_keys(declared.classifier, known, classifiers, exact=not public)
        keys = tuple(key if key in columns else standing[key] for key in found)
    return replace(roles, classifier=keys, day_order=declared.day_order)


def _row_roles(roles: Roles, lifecycle: str) -> Roles:
    """Return the roles of rows with a start and an end, for one of these or both."""
    wanted = lifecycle.strip().casefold()
    if roles.start is None or wanted not in ("start", "complete", EVERY):
        raise no_life_cycle(lifecycle)
    if wanted == EVERY:
        return replace(roles, lifecycle=EVERY)
    time, spare = (roles.start, roles.timestamp) if wanted == "start" else (roles.timestamp, roles.start)
    return replace(roles, timestamp=time, spare=spare, start=None)


def classifier_keys(
    text: str, known: Collection[str], classifiers: Classifiers = (), *, exact: bool = False
) -> tuple[str, ...]:
    """Return the attributes of a classifier, by its name or as they are given.

    Names are those of ``classifiers``. As in XES, attributes are separated by spaces. An attribute whose name has
    spaces may stand in single quotes, and must with ``exact``: if one event decides which attributes are known, that
    must not decide what words mean.
    """
    words = classifier_words(text, classifiers)
    found: list[str] = []
    while words:
        longest = 1 if exact else len(words)
        size = next((n for n in range(longest, 0, -1) if " ".join(words[:n]) in known), 0)
        if not size:
            names = ", ".join(repr(name) for name, _, scope in classifiers if scope == "event")
            raise ParameterError(
                "classifier-attribute-missing",
                parameter="classifier",
                words=words[0],
                meant=meant(words[0], known),
                known=", ".join(list(known)[:30]),
                classifiers=Message("classifiers-of-log", names=names) if names else "",
                quotes=Message("name-with-spaces-quoted") if exact else "",
            )
        found.append(" ".join(words[:size]))
        words = words[size:]
    return tuple(found)


def classifier_words(text: str, classifiers: Classifiers = ()) -> list[str]:
    """Return the words of a classifier, of which its attributes are made."""
    keys = next((keys for name, keys, scope in classifiers if name == text and scope == "event"), text)
    return [quoted or word for quoted, word in re.findall(r"'([^']*)'|(\S+)", keys)]


def _date_and_clock(columns: Sequence[str], given: str | None) -> tuple[str, str] | None:
    """Return the columns of the date and of the time of day, if these are two."""
    if given is not None:
        cuts = (place for place, sign in enumerate(given) if sign == "+" and given not in columns)
        pairs = ((given[:place].strip(), given[place + 1 :].strip()) for place in cuts)
        return next((pair for pair in pairs if pair[0] in columns and pair[1] in columns), None)
    plain = {name: _plain(name) for name in columns}
    better = {name for tier in _TIMESTAMP[:4] for name in tier.split()}
    if TIMESTAMP in columns or better.intersection(plain.values()):
        return None
    dates, clocks = (
        [name for name in columns if plain[name] in names.split()] for names in (_NAMES["date"], _NAMES["clock"])
    )
    return (dates[0], clocks[0]) if len(dates) == len(clocks) == 1 else None


def _start(columns: Sequence[str], timestamp: str) -> str | None:
    """Return the column of the start, if the timestamp may be an end.
    Its column is called the end or only the time of the event."""
    if timestamp != TIMESTAMP and _plain(timestamp) not in _COMPLETIONS.split():
        return None
    matches = [name for name in columns if _plain(name) in _STARTS.split()]
    return matches[0] if len(matches) == 1 else None


def _transition(columns: Sequence[str], *, public: bool) -> str | None:
    if LIFECYCLE in columns:
        return LIFECYCLE
    for tier in _NAMES["transition"] if public else ():
        matches = [name for name in columns if _plain(name) in tier.split()]
        if len(matches) == 1:
            return matches[0]
    return None


_STANDARD = {"case": CASE, "activity": ACTIVITY, "timestamp": TIMESTAMP}


def role_of(role: str, columns: Sequence[str], given: str | None = None, *, public: bool = True) -> tuple[str, Found]:
    """Return the column of a role, and how it was found; see :func:`guess_roles`."""
    if given is not None:
        if given not in columns:
            raise InputError(
                "column-for-role-missing", advice=_way_out(columns, meant(given, columns)), given=given, role=role
            )
        return given, "given"
    if role == "timestamp" and public and (both := _date_and_clock(columns, None)):
        return both[0], "guessed"
    standard = _STANDARD[role]
    if standard in columns:
        return standard, "pm4py"
    plain = {name: _plain(name) for name in columns}
    for tier in (_plain(standard), *(_NAMES[role] if public else ())):
        matches = [name for name in columns if plain[name] in tier.split()]
        if len(matches) > 1:
            raise InputError(
                "column-role-ambiguous", advice=_way_out(columns), role=role, names=", ".join(map(repr, matches))
            )
        if matches:
            return matches[0], "guessed"
    raise InputError("column-role-not-found", advice=_way_out(columns), role=role)


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if letter.isalnum())


def _way_out(columns: Sequence[str], meant: Message | str = "") -> Message:
    """Return the advice on how to name the columns."""
    shown = [repr(name if len(name) <= 60 else name[:57] + "...") for name in columns[:30]]
    more = Message("columns-more", more=len(columns) - 30) if len(columns) > 30 else ""
    data = [name for name in columns if DATA.search(name)]
    unnamed = len(data) > 1 or (data and _TIME.search(data[0]))
    code = "columns-without-names" if unnamed else "columns-to-be-named"
    return Message(code, columns=", ".join(shown), more=more, meant=meant)


_TIME = re.compile(r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(\D|$)")
DATA = re.compile(rf"{_TIME.pattern}|^\s*[-+]?\d+([.,]\d+)?\s*$")
"""Pattern of text that is no column's name: a date, a number."""

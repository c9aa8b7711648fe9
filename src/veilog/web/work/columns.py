"""What an owner says of the columns of a log when it is brought, and what of it may be released by that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from veilog.errors import ParameterError
from veilog.logs.eventlog import START
from veilog.messages import Message
from veilog.releasing.request import ReleaseRequest
from veilog.web.jobs.records import LogRecord
from veilog.web.jobs.results import HOW_READ, ReadLog
from veilog.web.work.request import IDENTIFYING, RELEASE

ROLES = ("case", "activity", "timestamp")
"""What one column of a table is."""
PERSON = "person"


def of_reading(name: str) -> bool:
    """Return whether what a form says under this name is about how a log is read."""
    return name in HOW_READ or name.startswith("on_")


def columns_said(fields: Mapping[str, str], log: LogRecord) -> dict[str, str]:
    """Return what a form says of the columns: how the log is read, whose a case is, and which of them may leave.

    Each column says itself what it is (``is_`` and its name). Where two say that they are the case, it is the one that
    was not before.
    """
    said = {name[3:]: value for name, value in fields.items() if name.startswith("is_") and value}
    found = {name: value for name, value in fields.items() if value and of_reading(name)}
    taken = _taken(log)
    for role in ROLES:
        named = [name for name, value in said.items() if value == role]
        chosen = next((name for name in named if name != taken.get(role)), "")
        if chosen or (named and log.columns.get(role)):
            found[role] = chosen or named[0]
    asked = log.measured is not None and any(name.startswith("is_") for name in fields)
    if PERSON in fields or asked:
        found[PERSON] = fields.get(PERSON) or next(
            (u for n, value in said.items() if value == PERSON and (u := _unit(n, log))), ""
        )
        if found[PERSON] and fields.get("max_cases"):
            found["max_cases"] = fields["max_cases"]
        meant = (*ROLES, PERSON)
        return found | {f"is_{name}": value for name, value in said.items() if value not in meant}
    return {name: value for name, value in log.columns.items() if not of_reading(name)} | found


def _taken(log: LogRecord) -> Mapping[str, str]:
    """The columns that were taken for the roles."""
    read = None if log.reading is None else log.reading.result
    columns = read.columns if isinstance(read, ReadLog) else None
    return {} if columns is None else columns.taken


def _unit(name: str, log: LogRecord) -> str:
    """The column as releases name it, where it may say whose a case is."""
    units = () if log.measured is None else log.measured.units
    own = name.removeprefix("case:")
    return next((unit.column for unit in units if unit.column.removeprefix("case:") == own), "")


_NAMING = "attribute_names"
"""The setting of methods that names attributes which leave."""


def may_leave(name: str, log: LogRecord) -> bool:
    """Return whether a column may be released by what was said when the log was brought: nothing of one that tells
    people apart, and, where columns were told, only of those of which it was said. Starts come with the times."""
    said = log.columns.get(f"is_{name}")
    if said == IDENTIFYING or name.removeprefix("case:") == _person(log):
        return False
    return said == RELEASE or name == START or not _was_told(log)


def _was_told(log: LogRecord) -> bool:
    """Whether it was said what columns are; who said that all are left out said whose the cases are, or nobody's."""
    return "person" in log.columns or any(key.startswith("is_") for key in log.columns)


def _person(log: LogRecord) -> str:
    """The column that tells persons apart, as the log calls it."""
    return log.columns.get("person", "").removeprefix("case:")


def _refuse_to_leave(name: str, log: LogRecord, parameter: str) -> None:
    if may_leave(name, log):
        return
    left_out = log.columns.get(f"is_{name}") != IDENTIFYING and name.removeprefix("case:") != _person(log)
    raise ParameterError("attribute-left-out" if left_out else "attribute-identifying", parameter=parameter, name=name)


def refuse_attributes(planned: ReleaseRequest, log: LogRecord) -> None:
    """Refuse attributes that the log does not have, and those, also of a subset or of a method's settings, that may not
    be released by what was said when it was brought."""
    measured = log.measured
    known = None if measured is None else {*measured.case_attributes, *measured.event_attributes}
    subset = planned.subset
    if subset is not None and not subset.of_time:
        rule = subset.rule.removeprefix("case:")
        if known is not None and rule not in known and f"is_{rule}" not in log.columns:
            raise ParameterError("subset-without-rule", parameter="subset", name=rule, near=_near(rule, known))
        _refuse_to_leave(rule, log, "subset")
    for name, parameter in _asked_for(planned, log):
        own = name.removeprefix("case:")
        if known is None or own in known or f"is_{own}" in log.columns:
            _refuse_to_leave(own, log, parameter)
        if known is not None and own not in known:
            raise ParameterError("attribute-not-in-log", parameter=parameter, name=name, near=_near(own, known))
        values = planned.declared.values_of(name)
        if measured is not None and own in measured.without_numbers and values and isinstance(values[0], float):
            raise ParameterError("attribute-values-without-range", parameter=f"d_{name}", name=repr(name))


def _asked_for(planned: ReleaseRequest, log: LogRecord) -> Iterator[tuple[str, str]]:
    """The attributes that would be released, each with the parameter that names it."""
    for name in (*planned.wanted.attributes, *([START] if planned.wanted.processing else [])):
        yield name, "attributes"
    names = str(getattr(planned.settings, _NAMING, None) or "").split(",")
    yield from ((name.strip(), _NAMING) for name in names if name.strip())


def _near(name: str, known: Collection[str]) -> Message | str:
    """That there is an attribute whose name differs by its letters' case alone, where there is one."""
    near = next((other for other in sorted(known) if other.casefold() == name.casefold()), None)
    return "" if near is None else Message("attribute-near", name=near)

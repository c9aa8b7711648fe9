"""What of a log may be released, by what was said when it was brought, and what it has."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from veilog.errors import ParameterError
from veilog.logs.eventlog import START
from veilog.messages import Message
from veilog.releasing.request import ReleaseRequest
from veilog.web.jobs.records import LogRecord
from veilog.web.work.request import IDENTIFYING, RELEASE

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
            raise _no_such_rule(rule, known)
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


def _no_such_rule(name: str, known: Collection[str]) -> ParameterError:
    """What a subset is told by that is neither a rule of time nor an attribute: a misspelled one, or one in another
    language."""
    return ParameterError("subset-without-rule", parameter="subset", name=name, near=_near(name, known))

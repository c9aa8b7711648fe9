"""What an owner says of the columns of a log, on the page on which it was brought."""

from __future__ import annotations

from collections.abc import Mapping

from veilog.web.jobs.records import LogRecord
from veilog.web.jobs.results import HOW_READ, ReadLog

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
        found[PERSON] = fields.get(PERSON) or next((u for n in _named(said) if (u := _unit(n, log))), "")
        if found[PERSON] and fields.get("max_cases"):
            found["max_cases"] = fields["max_cases"]
        meant = (*ROLES, PERSON)
        return found | {f"is_{name}": value for name, value in said.items() if value not in meant}
    return {name: value for name, value in log.columns.items() if not of_reading(name)} | found


def _named(said: Mapping[str, str]) -> list[str]:
    return [name for name, value in said.items() if value == PERSON]


def _taken(log: LogRecord) -> Mapping[str, str]:
    """The columns that were taken for the roles."""
    read = None if log.reading is None else log.reading.result
    columns = read.columns if isinstance(read, ReadLog) else None
    return {} if columns is None else columns.taken or {}


def _unit(name: str, log: LogRecord) -> str:
    """The column as releases name it, where it may say whose a case is."""
    units = () if log.measured is None else log.measured.units
    own = name.removeprefix("case:")
    return next((unit.column for unit in units if unit.column.removeprefix("case:") == own), "")

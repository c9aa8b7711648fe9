"""Facts of a release for reports: how it was made, and its guarantee.

They come from the release itself or, if only its file is left, from the privacy metadata in that file.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

from veilog._version import __version__
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.files import AnyLog, as_log
from veilog.logs.metadata import Attribute
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.variants import Variants
from veilog.messages import Message, message_from
from veilog.methods import METHODS, Method
from veilog.privacy.account.guarantee import Code, Condition, Guarantee, Statement, round_up
from veilog.privacy.partition import same_cases, stated_subset
from veilog.releasing.checks import Activities
from veilog.releasing.result import Operation, Release
from veilog.report.explorer import short

_ANONYMIZATIONS = "privacy:anonymizations"
_NUMBERS = (
    *("epsilon", "delta", "total_epsilon", "total_delta", "nominal_epsilon", "nominal_delta", "guessing_advantage"),
)


_SAID = ("level", "condition-", "holds-", "reason-")
"""Prefixes of the facts that are messages."""
_REMARK = re.compile(r"privacy:remark\d+")


@dataclass(frozen=True)
class Told:
    """Facts of a release from either source.

    Nothing here was computed from the original but through the guarantee.
    """

    method: str
    """Name of the method, with "(as published)" in that mode."""
    paper: str | None
    parameters: tuple[tuple[str, str], ...]
    operations: tuple[Operation, ...]
    guarantee: Guarantee
    remarks: tuple[Message, ...]
    software: str
    timed: bool
    """True if the times of the release mean something."""
    from_file: bool
    """True if the guarantee was read from a file, whose statement it is, not derived here."""
    activities: Activities | None = None
    """Origin of the activities' names; None if the file does not state it."""

    def among(self, cases: int) -> Told:
        """Return the same for the data owner, with the level for so many cases."""
        return replace(self, guarantee=replace(self.guarantee, cases=cases))


def facts_of(released: Release | EventLog) -> Told:
    """Return the facts of a release, or of the log in its file."""
    return facts_of_release(released) if isinstance(released, Release) else facts_of_file(released)


def facts_of_release(released: Release) -> Told:
    """Return the facts of a new release, with all queries to the curator.

    Seconds are left out, because the time of a run is no part of the guarantee.
    """
    known = METHODS.get(released.method)
    return Told(
        method=released.method + (" (as published)" if released.as_published else ""),
        paper=None if known is None else known.paper,
        parameters=tuple(
            (name, _show_value(value)) for name, value in released.parameters.items() if value is not None
        ),
        operations=released.operations,
        guarantee=released.guarantee,
        remarks=released.remarks,
        software=f"veilog {__version__}",
        timed=has_times(released),
        from_file=False,
        activities=released.activities,
    )


def has_times(released: Release) -> bool:
    """Return True if its timestamps carry more than the order of events."""
    if released.full is not None:
        return not released.full.artificial_times
    return released.details is not None and released.details.times is not None


def given_release(released: Release | AnyLog) -> Release | EventLog:
    """Return a release, or the log in its file, however it is given."""
    if isinstance(released, Release | EventLog):
        return released
    log = as_log(released)
    if isinstance(log, EventLog):
        return log
    raise InputError("report-guarantee-of-variants")


def given_log(log: AnyLog | StoredLog | None, released: Release | EventLog | None = None) -> EventLog | Variants | None:
    """Return the log to compare with a release, however given, with the same cases.

    A log that is kept on disk becomes its variants.
    """
    found = None if log is None else as_log(log)
    subset = released.guarantee.subset if isinstance(released, Release) else None
    if subset is not None and not isinstance(found, Variants | None):
        with contextlib.suppress(ParameterError):  # without the column, these may be the cases of the subset already
            found = subset.of_log(found)
    elif found is not None:
        found = same_cases(found, released)
    return found.variants if isinstance(found, StoredLog) else found


def facts_of_file(log: EventLog) -> Told:
    """Return the facts in a file's XES privacy metadata; :class:`InputError` if none."""
    found = [child for a in log.metadata.attributes if a.key == _ANONYMIZATIONS for child in a.children]
    facts = [_facts(child) for child in found if child.children and not _REMARK.fullmatch(child.key)]
    if not facts:
        raise InputError("report-guarantee-missing", path=log.source)
    said = (_message(child) for child in found if _REMARK.fullmatch(child.key) and isinstance(child.value, str))
    operations = tuple(_operation(fact) for fact in facts)
    method = next((o.method for o in operations if o.method.removesuffix(" (as published)") in METHODS), "")
    known = METHODS.get(method.removesuffix(" (as published)"))
    return Told(
        method=method or operations[0].method,
        paper=None if known is None else known.paper,
        parameters=(),
        operations=operations,
        guarantee=_guarantee(facts, operations, log, known),
        remarks=tuple(said),
        software=_first(facts, "software") or "not stated",
        timed=not log.artificial_times,
        from_file=True,
    )


def _message(told: Attribute) -> Message:
    """Return the message of an attribute by its code, or else of its sentence."""
    inside = {child.key: child.value for child in told.children}
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return message_from({"code": inside["privacy:code"], "values": json.loads(inside["privacy:values"])})
    return Message(short(str(told.value), 2000))


def _show_value(value: Any) -> str:
    return (
        f"{value:g}" if isinstance(value, float) else "yes" if value is True else "no" if value is False else str(value)
    )


def _facts(operation: Attribute) -> dict[str, Any]:
    """Return the facts of one operation by name, without impossible numbers."""
    facts: dict[str, Any] = {}
    for child in operation.children:
        name = child.key.removeprefix("privacy:")
        number = isinstance(child.value, int | float) and not isinstance(child.value, bool)
        if name in _NUMBERS:
            if number and 0 <= child.value < 1e300:
                facts[name] = float(child.value)
        elif isinstance(child.value, str):
            facts[name] = child.value
            if name.startswith(_SAID):
                facts[f"{name}-said"] = _message(child)
    return facts


def _first(facts: Iterable[Mapping[str, Any]], name: str) -> Any:
    return next((fact[name] for fact in facts if name in fact), None)


def _operation(facts: Mapping[str, Any]) -> Operation:
    target, method = facts.get("target", "not stated"), facts.get("method", "not stated")
    return Operation(target, method, facts.get("epsilon", 0.0), facts.get("delta", 0.0))


def _guarantee(
    facts: list[dict[str, Any]], operations: tuple[Operation, ...], log: EventLog, known: Method | None
) -> Guarantee:
    """Return the guarantee of all operations: proven only if each is, with epsilon.

    The number of released cases judges the level, unless they are drawn from a model.
    """
    reasons = _messages(facts, "reason-")
    proven = all(fact.get("status") == "proven" and "epsilon" in fact for fact in facts)
    if not proven and not reasons:
        reasons = [Message("no-derived-guarantee-stated")]
    unit = (_first(facts, "level") or "").partition(": ")[0]
    held = _messages(facts, "holds-")
    return Guarantee(
        status="proven" if proven else "none",
        epsilon=_total(facts, "total_epsilon", (o.epsilon for o in operations)) if proven else None,
        delta=_total(facts, "total_delta", (o.delta for o in operations)) if proven else None,
        nominal_epsilon=_first(facts, "nominal_epsilon"),
        nominal_delta=_first(facts, "nominal_delta"),
        unit=short(unit, 60) or "case",
        neighbours=_first(facts, "level-said") or Message("not-stated"),
        numerics=Message("noise-not-stated"),
        conditions=tuple(dict.fromkeys(condition for fact in facts for condition in _conditions(fact))),
        reasons=() if proven else tuple(reasons),
        charges=(),
        statements=tuple(Statement(str(_first(facts, "type")), said, False, Message("not-stated")) for said in held),
        guessing_advantage=_first(facts, "guessing_advantage") if proven else None,
        cases=None if known is not None and known.draws else log.cases.num_rows,
        subset=stated_subset(log),
    )


def _total(facts: Iterable[Mapping[str, Any]], name: str, parts: Iterable[float]) -> float:
    """Return the file's total for all operations, or their sum if it has no valid one."""
    listed, total = tuple(parts), _first(facts, name)
    return _sum(listed) if total is None or total < max(listed, default=0.0) else float(total)


def _conditions(fact: Mapping[str, Any]) -> Iterator[Condition]:
    """Yield the conditions of an operation."""
    for code in get_args(Code):
        said = str(fact.get(f"condition-{code}", "")).partition(": ")[0]
        if said:
            yield Condition(code, "owner" if said == "owner" else "program", fact[f"condition-{code}-said"])


def _messages(facts: Iterable[Mapping[str, Any]], start: str) -> list[Message]:
    """Return the messages of one kind from all operations, each once."""
    found = (value for fact in facts for name, value in fact.items() if name.startswith(start))
    return list(dict.fromkeys(value for value in found if isinstance(value, Message)))


def _sum(values: Iterable[float]) -> float:
    return round_up(sum((Fraction(Decimal(repr(value))) for value in values), Fraction(0)))

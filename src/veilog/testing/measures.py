"""Contracts that what other packages add to veilog must keep, to be run in their own tests.

>>> from veilog.measures import MEASURES
>>> check_measure(MEASURES["keep_real"])
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any

from veilog.errors import MissingExtraError, ParameterError, VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.measures import Found, Measure, Pair

_Log = EventLog | Variants
_TOLERANCE = 1e-9


def check_measure(measure: Measure) -> None:
    """Raise AssertionError with every rule of the contract that a measure breaks on made-up logs.

    A value is finite, or there is a reason; every number lies in the range that is stated, and two equal logs have the
    best; what says that it is symmetric is; the same logs give the same value; no log is changed; errors are of the
    family of :class:`VeilogError`, also for empty logs; and what says that it needs nothing but variants does not.
    """
    broken: dict[str, str] = {}
    valued = {"variants": False, "whole logs": False}
    for name, first, second in _pairs():
        for rule, how in _broken(measure, first, second, valued):
            broken.setdefault(rule, f"{rule}: of {name} {how}.")
    if not broken and not valued[measure.needs]:
        broken["needs"] = f"It has a value for none of the logs tried, though it needs {measure.needs} only."
    if broken:
        raise AssertionError(f"Measure {measure.name!r} breaks its contract. {' '.join(broken.values())}")


def _pairs() -> Iterator[tuple[str, _Log, _Log]]:
    """Two logs at a time, made anew each time: empty and small ones, and made-up hospitals with all of their events."""
    small: dict[str, dict[Sequence[str], int]] = {
        "an empty log": {},
        "cases without events": {(): 3},
        "a small log": {("a", "b", "c"): 4, ("a", "c"): 2, ("b", "a"): 1},
        "a larger one": {("a", "b", "c"): 9, ("a", "b"): 5, ("a", "b", "b", "c"): 2},
        "one of other activities": {("x", "y", "x"): 3},
    }
    for one, other in (
        ("an empty log", "an empty log"),
        ("an empty log", "a small log"),
        ("a small log", "an empty log"),
        ("cases without events", "cases without events"),
        ("cases without events", "a small log"),
        ("a small log", "cases without events"),
        ("a small log", "a small log"),
        ("a small log", "a larger one"),
        ("a larger one", "one of other activities"),
    ):
        yield f"{one} and {other}", Variants.from_dict(small[one]), Variants.from_dict(small[other])
    log = hospital(40, seed=1)
    yield "a hospital and itself", log, log
    yield "two hospitals", log, hospital(25, seed=2)
    yield "a hospital and a log of variants", log, hospital(25, seed=2).variants


def _broken(measure: Measure, first: _Log, second: _Log, valued: dict[str, bool]) -> Iterator[tuple[str, str]]:
    """Yield the rules that a measure breaks on these two logs, and how; ``valued`` learns where it has a value."""
    before = _content(first), _content(second)
    found = _taken(measure, first, second)
    if (_content(first), _content(second)) != before:
        yield "It changes a log that it is given", "one is another afterwards"
        return
    if isinstance(found, Exception):
        yield "Its errors are no VeilogError", f"it made a {type(found).__name__}: {found}"
        return
    again = _taken(measure, first, second)
    if isinstance(again, Exception) or [*_numbers(again.value)] != [*_numbers(found.value)]:
        yield "It is not deterministic", "it found something else the second time"
    if found.value is None:
        if not found.reason:
            yield "It has neither a value nor a reason", "it gave nothing"
        return
    valued["variants"] |= isinstance(first, Variants) and isinstance(second, Variants)
    valued["whole logs"] |= isinstance(first, EventLog) and isinstance(second, EventLog)
    try:
        measure.numbers(found.value)
        finite = all(math.isfinite(number) for number in _numbers(found.value))
    except (AttributeError, ParameterError) as error:
        yield "A number is not finite", f"it found {found.value!r}: {error}"
        return
    if not finite:
        yield "A number is not finite", f"it found {found.value!r}"
        return
    yield from _out_of_range(measure, found, first is second or first == second)
    if measure.symmetric:
        yield from _asymmetric(measure, found, _taken(measure, second, first))


def _taken(measure: Measure, first: _Log, second: _Log) -> Found | Exception:
    """What the measure finds, or its error where that is none of veilog's family."""
    pair = Pair(first, second)
    with pair.closing():
        try:
            if measure.begin is not None:
                with contextlib.suppress(VeilogError):
                    measure.begin(pair)
            value = measure.find(pair)
        except MissingExtraError:
            raise  # nothing can be said of it here
        except VeilogError as error:
            return Found(None, reason=str(error))
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return error
    return value if isinstance(value, Found) else Found(value)


def _out_of_range(measure: Measure, found: Found, equal: bool) -> Iterator[tuple[str, str]]:
    for quantity in measure.quantities:
        number = quantity.number(found.value)
        if number is None:
            yield "A number is missing", f"{quantity.title.strip()!r} has none, though there is a value"
            continue
        if not quantity.low - _TOLERANCE <= number <= quantity.high + _TOLERANCE:
            yield "A number is outside its range", f"{number} is not from {quantity.low:g} to {quantity.high:g}"
        if quantity.best is None:
            continue
        if equal and abs(number - quantity.best) > _TOLERANCE:
            yield "Equal logs have not the best value", f"it is {number} in place of {quantity.best:g}"
        better = {"higher": number - quantity.best, "lower": quantity.best - number, "nearer": 0.0}[quantity.better]
        if better > _TOLERANCE:
            yield "A value is better than the best", f"{number} is better than {quantity.best:g}"


def _asymmetric(measure: Measure, found: Found, turned: Found | Exception) -> Iterator[tuple[str, str]]:
    for quantity in measure.quantities:
        one = quantity.number(found.value)
        other = None if isinstance(turned, Exception) else quantity.number(turned.value)
        if one is None or other is None or not math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            yield "It is not symmetric", f"it is {one}, and {other} when the two change places"


def _content(log: _Log) -> tuple[Any, ...]:
    """All that a measure can see of a log."""
    if isinstance(log, Variants):
        return log.labels, *(part.tobytes() for part in (log.codes, log.offsets, log.counts))
    return log.metadata, *(table.to_pydict() for table in (log.events, log.cases)), _content(log.variants)


def _numbers(value: Any) -> Iterator[float]:
    """All numbers of a value, but for how long it took."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "seconds":
                yield from _numbers(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, numbers.Real):
        yield float(value)

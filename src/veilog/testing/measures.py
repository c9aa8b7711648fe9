"""Contract of a measure of another package, to be run in its own tests.

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
    """Check that a measure keeps its contract on synthetic logs.

    A value is finite, or there is a reason. Every number lies in the stated range, and two equal logs have the best. A
    measure that is declared symmetric is. The same logs give the same value, and no log is changed. Errors are of the
    family of :class:`VeilogError`, also for empty logs. A measure that is declared to need only variants has a value
    for these.

    Args:
        measure: Measure to check.

    Raises:
        AssertionError: The message names every rule that is broken.

    """
    broken: dict[str, str] = {}
    valued = {"variants": False, "whole logs": False}
    for name, first, second in _pairs():
        for rule, how in _broken_laws(measure, first, second, valued):
            broken.setdefault(rule, f"{rule}: of {name} {how}.")
    if not broken and not valued[measure.needs]:
        broken["needs"] = f"It has a value for none of the logs tried, though it needs {measure.needs} only."
    if broken:
        raise AssertionError(f"Measure {measure.name!r} breaks its contract. {' '.join(broken.values())}")


def _pairs() -> Iterator[tuple[str, _Log, _Log]]:
    """Yield two new logs at a time: empty and small ones, and synthetic hospitals."""
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


def _broken_laws(measure: Measure, first: _Log, second: _Log, valued: dict[str, bool]) -> Iterator[tuple[str, str]]:
    """Yield the rules that a measure breaks, and how; ``valued`` learns of values."""
    before = _content(first), _content(second)
    found = _run_measure(measure, first, second)
    if (_content(first), _content(second)) != before:
        yield "It changes a log that it is given", "one is another afterwards"
        return
    if isinstance(found, Exception):
        yield "Its errors are no VeilogError", f"it made a {type(found).__name__}: {found}"
        return
    again = _run_measure(measure, first, second)
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
        yield from _asymmetric(measure, found, _run_measure(measure, second, first))


def _run_measure(measure: Measure, first: _Log, second: _Log) -> Found | Exception:
    """Return the measure's result, or its error if that is none of veilog's family."""
    pair = Pair(first, second)
    with pair.closing():
        try:
            if measure.begin is not None:
                with contextlib.suppress(VeilogError):
                    measure.begin(pair)
            value = measure.find(pair)
        except MissingExtraError:
            raise  # its extra is missing here, so there is no finding
        except VeilogError as error:
            return Found(None, reason=str(error))
        except Exception as error:  # noqa: BLE001 - the check searches for it
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
    """Return all that a measure can see of a log."""
    if isinstance(log, Variants):
        return log.labels, *(part.tobytes() for part in (log.codes, log.offsets, log.counts))
    return log.metadata, *(table.to_pydict() for table in (log.events, log.cases)), _content(log.variants)


def _numbers(value: Any) -> Iterator[float]:
    """Yield all numbers of a value, but for the seconds that it took."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "seconds":
                yield from _numbers(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, numbers.Real):
        yield float(value)

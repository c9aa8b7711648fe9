"""Similarities of attributes follow their page, value by value, on random logs."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from veilog.errors import ParameterError
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.measures.use_cases import UseCaseOptions
from veilog.measures.use_cases.attributes import ATTRIBUTES

Values = list[Any]
NUMBERS = {"age": [None, 30.5, 30.5, 41.5, 77.5], "cost": [None, 1.5, 2.5, 900.5]}
TEXTS = {"kind": [None, "x", "y", "y"], "ward": ["u", "v"], "who": [None, "r", "s"]}
OF_CASES, OF_EVENTS = ("age", "kind", "ward"), ("cost", "who")


class Log(NamedTuple):
    traces: list[str]
    cases: dict[str, Values]
    events: dict[str, Values]

    def spread(self, values: Values) -> Values:
        return [value for value, trace in zip(values, self.traces, strict=True) for _ in trace]


def some(rng: np.random.Generator, lacking: float) -> Log:
    """Return one to twelve cases with few activities and attributes, some missing."""
    letters = "abcd"[: int(rng.integers(1, 5))]
    traces = ["".join(rng.choice(list(letters), int(rng.integers(1, 6)))) for _ in range(int(rng.integers(1, 13)))]
    events = sum(map(len, traces))

    def drawn(name: str, size: int) -> Values:
        source = (NUMBERS | TEXTS)[name]
        first = 0 if rng.random() < 0.8 else len(source) - 1
        return [source[int(i)] for i in rng.integers(first, len(source), size)]

    there = [name for name in (*OF_CASES, *OF_EVENTS) if rng.random() >= lacking]
    return Log(
        traces,
        {name: drawn(name, len(traces)) for name in OF_CASES if name in there},
        {name: drawn(name, events) for name in OF_EVENTS if name in there},
    )


def log(of: Log) -> EventLog:
    def columns(values: dict[str, Values]) -> dict[str, pa.Array]:
        return {name: pa.array(v, pa.float64() if name in NUMBERS else pa.string()) for name, v in values.items()}

    case = [i for i, trace in enumerate(of.traces) for _ in trace]
    events = {
        CASE_INDEX: pa.array(case, pa.int64()),
        EVENT_INDEX: pa.array(range(len(case)), pa.int64()),
        ACTIVITY: pa.array([label for trace in of.traces for label in trace], pa.string()).dictionary_encode(),
        TIMESTAMP: pa.nulls(len(case), TIMESTAMP_TYPE),
    }
    names = pa.array([f"{i:03}" for i in range(len(of.traces))])
    return EventLog(pa.table(events | columns(of.events)), pa.table({ACTIVITY: names} | columns(of.cases)))


class Attribute(NamedTuple):
    name: str
    of_cases: bool
    ordered: bool
    used: Values | None
    judged: Values


def known(values: Values) -> Values:
    return [value for value in values if value is not None]


def attributes(used: Log, judged: Log) -> list[Attribute]:
    """Those that vary and do not name."""
    found = []
    for name, values in (*judged.cases.items(), *judged.events.items()):
        there, kinds = known(values), set(known(values))
        of_cases = name in judged.cases
        if not there or len(kinds) == 1 == len({*values}) or (name in TEXTS and len(there) <= 2 * len(kinds)):
            continue
        own = (used.cases if of_cases else used.events).get(name)
        told = f"case:{name}" if of_cases else name
        if not of_cases and one_value(judged, values):
            own, values = (None if v is None else first_known(of, v) for of, v in ((used, own), (judged, values)))
            assert values is not None
            of_cases = True
        found.append(Attribute(told, of_cases, name in NUMBERS, own, values))
    return found


def by_case(of: Log, values: Values) -> list[Values]:
    rest = iter(values)
    return [known([next(rest) for _ in trace]) for trace in of.traces]


def one_value(of: Log, values: Values) -> bool:
    there = [case for case in by_case(of, values) if case]
    return sum(len({*case}) > 1 for case in there) * 100 <= len(there)


def first_known(of: Log, values: Values) -> Values:
    return [case[0] if case else None for case in by_case(of, values)]


def variation(used: Sequence[Hashable], judged: Sequence[Hashable]) -> float:
    a, b = Counter(used), Counter(judged)
    apart = sum(abs(Fraction(a[v], len(used)) - Fraction(b[v], len(judged))) for v in a.keys() | b.keys())
    return float(1 - apart / 2)


def kolmogorov(used: Values, judged: Values) -> float:
    def below(values: Values, x: float) -> Fraction:
        return Fraction(sum(v <= x for v in values), len(values))

    return float(1 - max(abs(below(used, x) - below(judged, x)) for x in {*used, *judged}))


def alone(used: Values | None, judged: Values, ordered: bool) -> float | None:
    if not used:
        return 0.0
    a, b = known(used), known(judged)
    if not a and not b:
        return None
    unknown = 1 - abs(len(a) / len(used) - len(b) / len(judged))
    return unknown if not b else 0.0 if not a else unknown * (kolmogorov if ordered else variation)(a, b)


def cut(attribute: Attribute) -> Callable[[Any], Hashable]:
    """Return the function for the part of a value, between tenths of the original's."""
    values = sorted(known(attribute.judged))
    if not attribute.ordered or not values:
        return lambda value: value
    size, there = len(values), sorted(set(values))
    tenths = {next(v for v in there if sum(x <= v for x in values) * 10 >= k * size) for k in range(1, 10)}
    frequent = {v for v in there if values.count(v) * 10 > size}

    def part(value: Any) -> Hashable:
        if value is None:
            return None
        if value not in there:  # goes to the part beside it
            above = next((v for v in there if v > value), None)
            lower = max((v for v in there if v < value), default=there[0])
            value = lower if above is None or (above in frequent and lower < value) else above
        return sum(t < value for t in tenths), sum(v <= value for v in frequent)

    return part


def correlation(first: Values, second: Values) -> float | None:
    rows = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    x, y = [a for a, _ in rows], [b for _, b in rows]
    return statistics.correlation(x, y) if len({*x}) > 1 and len({*y}) > 1 else None


def together(used: list[tuple[Any, Any]], judged: list[tuple[Any, Any]]) -> float | None:
    a, b = ([pair for pair in rows if pair != (None, None)] for rows in (used, judged))
    return None if not b else 0.0 if not a else variation(a, b)


def pair(a: Attribute, b: Attribute) -> float | None:
    if a.used is None or b.used is None:
        return 0.0
    if a.ordered and b.ordered:
        wanted = correlation(a.judged, b.judged)
        if wanted is None:
            return None
        enough = sum(None not in row for row in zip(a.used, b.used, strict=True)) > 1
        return 1 - abs(wanted - (correlation(a.used, b.used) or 0.0)) / 2 if enough else 0.0
    first, second = cut(a), cut(b)
    used, judged = (
        [(first(x), second(y)) for x, y in zip(*both, strict=True)] for both in zip(a[3:], b[3:], strict=True)
    )
    return together(used, judged)


def beside(a: Attribute, of: tuple[Log, Log]) -> list[float | None]:
    """Return the similarities with the last activity and with each varying activity."""
    cases = len(of[1].traces)
    held = {label: sum(label in trace for trace in of[1].traces) for label in "abcd"}
    varying = [label for label, number in held.items() if cases <= 10 * number <= 9 * cases]
    if a.used is None:
        return [0.0] * (1 + len(varying))
    asked = [lambda trace: trace[-1], *((lambda trace, label=label: label in trace) for label in varying)]
    part, sides = cut(a), tuple(zip((a.used, a.judged), of, strict=True))
    return [
        together(*([(part(v), ask(t)) for v, t in zip(vs, log_.traces, strict=True)] for vs, log_ in sides))
        for ask in asked
    ]


def at_each(a: Attribute, of: tuple[Log, Log]) -> float | None:
    """At each activity, by how often the original knows it there."""
    used, judged = ("".join(log_.traces) for log_ in of)
    found = []
    for label in sorted({*judged}):
        there = [v for v, x in zip(a.judged, judged, strict=True) if x == label]
        own = None if a.used is None else [v for v, x in zip(a.used, used, strict=True) if x == label]
        found.append((len(known(there)), alone(own, there, a.ordered) or 0.0))
    total = sum(weight for weight, _ in found)
    return sum(weight * value for weight, value in found) / total if total else None


def mean(values: Sequence[float | None]) -> float | None:
    return statistics.fmean(known(list(values))) if known(list(values)) else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_attributes_are_as_alike_as_their_definitions_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    judged, used = some(rng, 0.15), some(rng, 0.15)
    of, compared = (used, judged), attributes(used, judged)
    try:
        found = ATTRIBUTES.score(log(used), log(judged), UseCaseOptions(person=False))
    except ParameterError:
        assert not compared
        return
    marginals = {(a.name,): alone(a.used, a.judged, a.ordered) for a in compared}
    spread = {
        a.name: a
        if not a.of_cases
        else a._replace(used=None if a.used is None else used.spread(a.used), judged=judged.spread(a.judged))
        for a in compared
    }
    pairs = {
        (a.name, b.name): pair(a, b) if a.of_cases == b.of_cases else pair(spread[a.name], spread[b.name])
        for a, b in itertools.combinations(sorted(compared, key=lambda a: not a.of_cases), 2)
    }
    expected = {
        "shapes": mean(list(marginals.values())),
        "pairs": mean(list(pairs.values())),
        "by_activity": mean([at_each(a, of) for a in compared if not a.of_cases]),
        "with_control_flow": mean([value for a in compared if a.of_cases for value in beside(a, of)]),
    }
    assert {name: value is None for name, value in found.items()} == {n: v is None for n, v in expected.items()}
    assert all(
        value is None or math.isclose(value, found[name] or 0.0, abs_tol=1e-9) for name, value in expected.items()
    )
    there = {a.name for a in compared if a.used is not None}
    for name, likenesses in (("shapes", marginals), ("pairs", pairs)):
        least = min((v for n, v in likenesses.items() if v is not None and {*n} <= there), default=None)
        lowest = getattr(found[name], "lowest", None)
        assert (None if lowest is None else lowest.value) == (None if least is None else pytest.approx(least))

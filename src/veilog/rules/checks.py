"""Checks of rules before any query, for contradictions with each other or facts.

The facts are those declared public. Two rules contradict each other if no case obeys both. They also do if an activity
or condition that each of them names can happen under each of them but not under both. Such an activity could never
occur, or such a condition never hold.

Only proved contradictions are refused. Many constraints on the same activities have more states together than can be
searched. Then it stays open whether they contradict each other, and the release reports so.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from veilog._typing import BoolArray
from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, NESTED, START, TIMESTAMP
from veilog.messages import Message
from veilog.rules.attributes import ColumnValues, ValueCondition
from veilog.rules.automata import MOST_TRIED, Automata
from veilog.rules.rule_files import Constraint, ReleaseRule
from veilog.rules.rules import ReleaseRules
from veilog.rules.times import ANY

_OF_EVENTS = {ACTIVITY, TIMESTAMP, START, CASE_INDEX, EVENT_INDEX, NESTED}
"""Columns that are no attributes: rules on activities and on times are about them."""
_OTHER = "\0other"
_MOST_VALUES = 12
"""A third of the most numbers tried for an attribute, those at the bounds of rules first."""
MOST_STEPS = 5_000_000
"""Steps of automata in all searches of a check, about two seconds; open questions then stay open."""
Domains = Mapping[str, tuple[str, ...] | tuple[float, float]]


def check(rules: ReleaseRules, activities: Sequence[str] | None, longest: int | None, domains: Domains) -> ReleaseRules:
    """Refuse rules that contradict each other, or what is declared.

    The activities, the length of cases and the values of attributes can be declared.

    Returns:
        The rules, with ``settled``.

    Raises:
        ParameterError: The error names the rules. No query was made.

    """
    check_activities(rules, activities)
    searches = _Searches()
    for rule in rules.items:
        _check_alone(rule, domains, searches)
    for one, other in itertools.combinations(rules.items, 2):
        if _contradict([one, other], domains, searches):
            raise _contradiction([one, other])
    if _contradict(rules.items, {}, searches):
        core, contradict = (
            list(rules.items),
            _never_occurs if _never_occurs(rules.items, searches) else _orders_contradict,
        )
        for rule in rules.items:
            fewer = [left for left in core if left is not rule]
            core = fewer if contradict(fewer, searches) else core
        raise _contradiction(core)
    shortest = searches.case(rules.constraints, None)
    if shortest.found is None and shortest.settled:
        raise _contradiction(rules.items)
    if shortest.found is None or not rules.allows(shortest.found):
        searches.settled = False  # for a longer case there may be times
    elif longest is not None and len(shortest.found) > longest:
        raise ParameterError("rules-need-longer-cases", parameter="rules", events=len(shortest.found), longest=longest)
    return replace(rules, settled=searches.settled)


class _Case(NamedTuple):
    """Shortest case that was found, and True if its existence is settled."""

    found: list[str] | None
    settled: bool


@dataclass
class _Searches:
    """Searches for cases that keep constraints, within a number of steps."""

    left: int = field(default_factory=lambda: MOST_STEPS)
    settled: bool = True
    """True if each search so far found a case, or found that there is none."""
    known: dict[tuple[tuple[Constraint, ...], str | None], _Case] = field(default_factory=dict)

    def case(self, constraints: Sequence[Constraint], name: str | None) -> _Case:
        """Return the shortest case that keeps constraints, with a named activity."""
        key = (tuple(constraints), name)
        if key not in self.known:
            wanted = (*constraints, *(() if name is None else (Constraint("existence", (name,)),)))
            labels = _labels(wanted)
            automata = Automata.of(wanted, labels)
            result = automata.search((), most=min(MOST_TRIED, self.left // automata.work))
            self.left -= result.tried * automata.work
            self.settled &= result.settled
            found = None if result.found is None else [labels[code] for code in result.found]
            self.known[key] = _Case(found, result.settled)
        return self.known[key]

    def can(self, rules: Iterable[ReleaseRule], name: str | None) -> bool:
        """Return True if a case was found under each of these rules by itself."""
        return all(self.case(rule.constraints, name).found is not None for rule in rules)


def check_activities(rules: ReleaseRules, activities: Iterable[str] | None) -> None:
    """Refuse rules on activities that are not among the public ones."""
    known = set(activities or ())
    for rule in rules.items if activities is not None else ():
        unknown = [name for name in rule.activities if name not in known]
        if unknown:
            near = meant(unknown[0], known)
            raise _refusal("rule-activity-unknown", rule, name=unknown[0], meant=near)


def check_columns(rules: ReleaseRules, columns: Iterable[str]) -> None:
    """Refuse rules on attributes that a log does not have."""
    known = {name.removeprefix("case:") for name in columns} - _OF_EVENTS
    for rule in rules.items:
        names = () if rule.attribute is None else rule.attribute.attributes
        unknown = [name for name in names if name.removeprefix("case:") not in known]
        if unknown:
            raise _refusal("rule-attribute-unknown", rule, name=unknown[0], meant=meant(unknown[0], known))


def _refusal(code: str, rule: ReleaseRule, **values: object) -> ParameterError:
    return ParameterError(code, parameter="rules", number=rule.number, rule=rule.message, **values)


def _contradiction(rules: Sequence[ReleaseRule]) -> ParameterError:
    numbers = ", ".join(str(rule.number) for rule in rules)
    told = Message.joined(rule.message for rule in rules)
    return ParameterError("rules-contradict", parameter="rules", numbers=numbers, rules=told)


def _check_alone(rule: ReleaseRule, domains: Domains, searches: _Searches) -> None:
    """Refuse a rule that no case can obey, or with values that are not declared."""
    if rule.constraints and searches.case(rule.constraints, None) == (None, True):
        raise _refusal("rule-impossible", rule)
    if rule.time is not None and rule.time.least > rule.time.most:
        raise _refusal("rule-impossible", rule)
    if rule.attribute is None:
        return
    for condition in filter(None, (rule.attribute.then, rule.attribute.when)):
        declared = domains.get(condition.attribute, domains.get(condition.attribute.removeprefix("case:")))
        texts = [value for value in declared or () if isinstance(value, str)]
        unknown = [value for value in condition.values if texts and value not in texts]
        if unknown:
            near = meant(unknown[0], texts)
            raise _refusal("rule-value-undeclared", rule, name=unknown[0], attribute=condition.attribute, meant=near)
    if not _can_satisfy([rule], rule.attribute.when, domains):
        raise _refusal("rule-impossible", rule)


def _contradict(rules: Sequence[ReleaseRule], domains: Domains, searches: _Searches) -> bool:
    """Return True if rules provably exclude each other, though each can be obeyed."""
    return _orders_contradict(rules, searches) or (len(rules) == 2 and _pair_contradicts(rules[0], rules[1], domains))


def _never_occurs(rules: Sequence[ReleaseRule], searches: _Searches) -> bool:
    """Return True if an activity plainly cannot occur under all rules, but under each.

    An example is a circle of activities that each need the one before.
    """
    ours = [rule for rule in rules if rule.constraints]
    labels = _labels(constraint for rule in ours for constraint in rule.constraints)
    possible = Automata.of([one for rule in ours for one in rule.constraints], labels).possible
    never = [name for name, can in zip(labels, possible.tolist(), strict=True) if not can]
    return any(searches.can(ours, name) for name in never)


def _orders_contradict(rules: Sequence[ReleaseRule], searches: _Searches) -> bool:
    ours = [rule for rule in rules if rule.constraints]
    if len(ours) < 2 or (len(ours) == 2 and not _are_related(*ours)):
        return False
    if _never_occurs(ours, searches):
        return True
    together = [constraint for rule in ours for constraint in rule.constraints]
    names: list[str | None] = [None, *dict.fromkeys(name for one in together for name in one.activities)]
    while names:  # the last first: often a case with it has those before it, too
        name = names.pop()
        found, settled = searches.case(together, name)
        if found is None and settled and searches.can(ours, name):
            return True
        names = [left for left in names if found is None or left not in (None, *found)]
    return False


def _are_related(one: ReleaseRule, other: ReleaseRule) -> bool:
    """Return True if two rules share an activity or template, and so can interact."""
    templates = ({constraint.template for constraint in rule.constraints} for rule in (one, other))
    return bool({*one.activities} & {*other.activities} or set.intersection(*templates))


def _labels(constraints: Iterable[Constraint]) -> list[str]:
    """Return the activities that constraints name, and one other."""
    return [*sorted({name for one in constraints for name in one.activities}), _OTHER]


def _pair_contradicts(one: ReleaseRule, other: ReleaseRule, domains: Domains) -> bool:
    if one.time is not None and other.time is not None:
        same = (one.time.first, one.time.second) == (other.time.first, other.time.second)
        return same and max(one.time.least, other.time.least) > min(one.time.most, other.time.most)
    if one.attribute is None or other.attribute is None:
        return False
    apart = one.attribute.activity != other.attribute.activity and ANY not in (
        one.attribute.activity or ANY,
        other.attribute.activity or ANY,
    )
    if apart or not {*one.attribute.attributes} & {*other.attribute.attributes}:
        return False
    conditions = {one.attribute.when, other.attribute.when}
    return any(
        not _can_satisfy([one, other], when, domains)
        and all(_can_satisfy([rule], when, domains) for rule in (one, other))
        for when in conditions
    )


def _can_satisfy(rules: Sequence[ReleaseRule], when: ValueCondition | None, domains: Domains) -> bool:
    """Return True if values can obey rules on attributes while a condition holds.

    All combinations are tried of the values at which a rule changes, and of some between them.
    """
    ours = [rule.attribute for rule in rules if rule.attribute is not None]
    conditions = [one for rule in ours for one in (rule.then, rule.when) if one is not None]
    conditions += [] if when is None else [when]
    names = list(dict.fromkeys(name for one in conditions for name in one.attributes))
    tried = [_trial_values(name, conditions, domains) for name in names]
    grid = np.meshgrid(*(np.arange(len(one)) for one in tried), indexing="ij")
    values = {name: one.take(place.ravel()) for name, one, place in zip(names, tried, grid, strict=True)}
    good = np.ones(grid[0].size, dtype=bool)
    if when is not None:
        good &= np.logical_and(*when.holds(values.__getitem__))
    for rule in ours:
        good &= ~_rows_broken(rule.then, rule.when, values)
    return bool(good.any())


def _rows_broken(then: ValueCondition, when: ValueCondition | None, values: Mapping[str, ColumnValues]) -> BoolArray:
    known, holds = then.holds(values.__getitem__)
    wrong = ~(known & holds)
    return np.asarray(wrong if when is None else wrong & np.logical_and(*when.holds(values.__getitem__)))


def _trial_values(name: str, conditions: Sequence[ValueCondition], domains: Domains) -> ColumnValues:
    """Return the values of an attribute that are tried."""
    declared = domains.get(name, domains.get(name.removeprefix("case:")))
    if declared and isinstance(declared[0], str):
        texts = tuple(str(value) for value in declared)
        return ColumnValues.of_texts(texts, np.arange(len(texts)))
    texts = tuple(dict.fromkeys(value for one in conditions if one.attribute == name for value in one.values))
    bounds = sorted({end for one in conditions for end in (one.low, one.high) if np.isfinite(end)})
    compared = any(one.other is not None for one in conditions)
    if texts and not compared and not (declared or any(name == one.attribute and not one.values for one in conditions)):
        return ColumnValues.of_texts((*texts, _OTHER), np.arange(len(texts) + 1))
    exact = [float(number) for number in ColumnValues.of_texts(texts, np.arange(len(texts))).numbers]
    points = sorted({*bounds, *(number for number in exact if np.isfinite(number)), 0.0})
    low, high = (float(points[0]) - 2.0, float(points[-1]) + 2.0) if not declared else map(float, declared)
    between = [(one + other) / 2 for one, other in itertools.pairwise([low, *points, high])]
    found = [number for number in dict.fromkeys([*points, low, high, *between]) if low <= number <= high]
    return ColumnValues(np.array(found[: 3 * _MOST_VALUES]))

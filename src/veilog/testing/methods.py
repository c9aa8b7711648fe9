"""Contract of a method: its guarantee follows from its queries alone."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from veilog.errors import VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.variants import Variants
from veilog.methods import EpsilonAndDelta, Method
from veilog.privacy.account.budgets import compose
from veilog.privacy.cases import RawCases
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.events import EventQuestions, EventRounds
from veilog.privacy.histograms import Rounds
from veilog.privacy.histories import Histories, KindRule, histories_in
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.gradients import Training
from veilog.privacy.unit import bound_units
from veilog.releasing.answers import watch
from veilog.releasing.request import OPTIONS, ReleaseRequest, plan
from veilog.releasing.result import Release
from veilog.releasing.run import run_plan

Log = EventLog | Variants
NOT_PER_CASE = "of a case by itself it makes something else than among others"


@dataclasses.dataclass
class Tape:
    """Recorder of queries in their order, which can replay their answers.

    While recording, every query draws its noise from a source of its own, so a method's own draws use the same random
    bits in both runs. In the replay each query must be the recorded one: equal numbers, and functions that map every
    case of a fixed log as before. The raw log then matters only if the method keeps cases that its functions see. So
    in the replay they see the other log's cases, too, with no effect. ``position`` is the next query to be replayed,
    None while recording.
    """

    probe: Log
    other: Log
    """Log shown to functions in the replay."""
    domain: Domain
    entries: list[tuple[Any, Any, list[Any]]] = dataclasses.field(default_factory=list)
    totals: dict[int, list[Any]] = dataclasses.field(default_factory=dict)
    """Totals that each query added, by its number."""
    position: int | None = None

    def question(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the answer, which while replaying is the recorded one."""
        if isinstance(holder, Training):
            return self._step(holder, *given, **named)
        asked = self._query_key(holder, name, given, named)
        paid = isinstance(holder, Rounds | EventRounds)  # each of these was charged together with the others
        asked = asked if paid else (type(holder).__name__, *asked)
        if self.position is None:
            before, noted = len(self._charges(holder)), len(_totals(holder))
            answer = self._query_apart(holder, name, given, named)
            self.totals[len(self.entries)] = _totals(holder)[noted:]
            self.entries.append((asked, answer, self._charges(holder)[before:]))
        else:
            number = self.position
            answer, charges = self._next(asked)
            _totals(holder).extend(self.totals[number])
            if paid:
                holder._asked += 1
            else:
                holder._account.carry(charges)
        if name == "find_activities":  # it narrows the domain, also for a curator without this query
            holder._narrow(answer)
            self.domain = holder.domain
        return answer

    def opened(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return what is opened; it is opened again while replaying."""
        asked = self._query_key(holder, name, given, named)
        if self.position is None:
            self.entries.append((asked, None, []))
        else:
            self._next(asked)
        found = self._query_apart(holder, name, given, named)
        if isinstance(found, Curator):
            found._randomness = holder._randomness
        return found

    def peeked(self, holder: Any, name: str, given: tuple[Any, ...]) -> Any:
        """Refuse a peek."""
        raise AssertionError(f"it peeks at the raw data ({given[0]})")

    def _step(self, training: Training, part: int, factors: Callable[[Any], Any]) -> Any:
        if self.position is None:
            seen: list[Any] = []

            def noted(columns: Any) -> Any:
                found = factors(columns)
                seen.extend((columns.copy(), _plain(found)))
                return found

            sums = training.step(part, noted)
            copies = [(weight.copy(), bias.copy()) for weight, bias in sums]
            self.entries.append((("step", part, seen[1]), (seen[0], copies), []))
            return sums
        assert self.position < len(self.entries), "one step more"
        columns, sums = self.entries[self.position][1]
        self._next(("step", part, _plain(factors(columns))))
        training._taken[part] += 1
        return [(weight.copy(), bias.copy()) for weight, bias in sums]

    def _next(self, asked: Any) -> tuple[Any, list[Any]]:
        assert self.position is not None
        assert self.position < len(self.entries), f"one query more: {asked}"
        known, answer, charges = self.entries[self.position]
        assert asked == known, "another query is made"
        self.position += 1
        return answer, charges

    def _charges(self, holder: Any) -> list[Any]:
        return [] if isinstance(holder, Rounds | EventRounds) else list(holder._account.charges)

    def _query_apart(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Make a query with random bits that nothing else uses."""
        own = holder._randomness
        holder._randomness = noise.seeded(1000 + len(self.entries))
        try:
            return getattr(holder, name)(*given, **named)
        finally:
            holder._randomness = own

    def _query_key(self, holder: Any, name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Return the name and arguments, functions replaced by results on recorded cases."""
        bound = inspect.signature(getattr(holder, name)).bind(*given, **named)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        for argument, value in arguments.items():
            if isinstance(value, KindRule):
                assert isinstance(self.probe, EventLog)
                each = RawCases(self.probe, self.domain).blocks(bound.arguments["alphabet"])
                arguments[argument] = [value.number, *(_apply_by_case(value.of, block) for block in each)]
            elif name == "sums_of_persons" and callable(value):
                arguments[argument] = _apply_by_case(value, self._histories(holder, self.probe, bound.arguments))
                if self.position is not None:
                    value(self._histories(holder, self.other, bound.arguments))
            elif callable(value):
                of_events = isinstance(holder, EventQuestions | EventRounds)
                blocks = self._blocks(self.probe, arguments, of_events=of_events)
                arguments[argument] = [_apply_by_case(value, block) for block in blocks]
                if self.position is not None:
                    for block in self._blocks(self.other, arguments, of_events=of_events):
                        value(block)
        return name, _plain(arguments)

    def _blocks(self, log: Log, arguments: Mapping[str, Any], *, of_events: bool) -> list[Any]:
        """Return the cases of a log as a function gets them."""
        if not of_events:
            return [self.domain.fit(log if isinstance(log, Variants) else log.variants).sequences]
        assert isinstance(log, EventLog)
        return list(RawCases(log, self.domain).blocks(arguments["alphabet"], arguments["codings"]))

    def _histories(self, holder: Any, log: Log, arguments: Mapping[str, Any]) -> Histories:
        """Return the persons of a log as a function gets them."""
        people = bound_units(log, holder._account.unit, noise.seeded(0)).people
        assert people is not None
        return histories_in(people, self.domain, arguments["kinds"], arguments["alphabet"])


def _totals(holder: Any) -> list[Any]:
    """Return the totals of a curator's answers so far, none for opened holders."""
    return holder._totals.answers if isinstance(holder, Curator) else []


def recorded_and_replayed(planned: ReleaseRequest, one: Log, other: Log) -> tuple[Release, Release, Tape]:
    """Return releases of ``one`` and ``other`` with the same answers, and the tape.

    An ``AssertionError`` names where the second run makes other queries, or looks at raw data.
    """
    tape = Tape(one, other, planned.public)

    def beside(curator: Curator) -> Curator:
        # The cases of a person that count were drawn before, from more bits where there are more people.
        curator._randomness = noise.seeded(1)
        return watch(curator, tape)

    first = run_plan(planned.seeded(1), one, watched=beside)
    tape.position, tape.domain = 0, planned.public
    second = run_plan(planned.seeded(1), other, watched=beside)
    return first, second, tape


def same(first: Release, second: Release) -> bool:
    """Return True if all that is published is equal."""
    a, b = first.log, second.log
    return (
        first.variants == second.variants
        and a.events.equals(b.events)
        and a.cases.equals(b.cases)
        and a.metadata == b.metadata
        and first.guarantee == second.guarantee
        and (first.remarks, first.operations) == (second.remarks, second.operations)
    )


def _apply_by_case(function: Callable[[Any], Any], block: Any) -> Any:
    """Return a function's result on a block, checked to be the same case by case."""
    whole = function(block)
    for i in range(len(block)):
        single = function(block.take(np.array([i])))
        if isinstance(whole, tuple | list) and len(whole) == 3 and np.ndim(whole[0]) == 1:
            rows, columns, values = (np.asarray(part) for part in whole)
            own = _added_up(columns[rows == i], values[rows == i])
            same = own == _added_up(*(np.asarray(part) for part in single[1:]))
        else:
            same = bool(np.asarray(whole)[i] == np.asarray(single)[0])
        assert same, NOT_PER_CASE
    return whole


def _added_up(columns: Any, values: Any) -> dict[int, int]:
    """Return a sparse vector in one form."""
    found: dict[int, int] = {}
    for column, value in zip(columns.tolist(), values.tolist(), strict=True):
        found[column] = found.get(column, 0) + value
    return {column: value for column, value in found.items() if value}


def _plain(value: Any) -> Any:
    """Return the present value, in things that compare by their content."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return tuple(_plain(v) for v in value)
    if isinstance(value, Mapping):
        return {name: _plain(v) for name, v in value.items()}
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value


_EPSILON, _DELTA = "2", "0.01"
_LOOKS = "It looks at more than the answers to its questions"
_NOT_PER_CASE = "A function of a question is not per case"
_DRAWN_ELSEWHERE = {"default_rng", "urandom", "RandomState", "seed"}


def check_method(method: Method, **settings: Any) -> None:
    """Check that a method keeps its contract on synthetic logs.

    Its certified release queries the curator and looks at nothing else, nor keeps the values shown to its functions. On
    a neighbouring log with the same answers it is the same. Functions that it gives to queries treat every case by
    itself. Its guarantee is that of its queries. It uses no more than its budget, changes no account and draws no
    randomness but the curator's. It touches no private parts. Its words and settings are complete. Errors are of the
    family of :class:`VeilogError`, also for tiny logs. A method that is only as published need keep only the rules on
    randomness, private parts, words and errors.

    Args:
        method: Method to check.
        **settings: Settings to check it with, in place of the defaults.

    Raises:
        AssertionError: The message names every rule that is broken.

    """
    broken: dict[str, str] = {}
    for check in (_check_declarations, _sources, _check_replay, _check_account, _check_tiny_logs):
        for rule, how in check(method, settings):
            broken.setdefault(rule, f"{rule}: {how}.")
    if broken:
        raise AssertionError(f"Method {method.name!r} breaks its contract. {' '.join(broken.values())}")


def _plan_release(method: Method, settings: Mapping[str, Any]) -> ReleaseRequest:
    """Return a release of the method with all facts of synthetic logs declared."""
    budget: dict[str, Any] = {"epsilon": _EPSILON} if method.takes_epsilon else {}
    if method.needs_delta:
        budget["delta"] = _DELTA
    labels = tuple(sorted({label for log in (_log(), hospital(25, seed=2)) for label in log.variants.labels}))
    domain = Domain(labels, 20)
    as_published = not method.certified
    return plan(method, **budget, as_published=as_published, domain=domain, allow_no_protection=True, **settings)


def _log() -> EventLog:
    return hospital(60, seed=1)


def _drop_one_case(log: EventLog) -> EventLog:
    return log.only(np.delete(np.arange(log.cases.num_rows), 2))


Broken = Iterator[tuple[str, str]]


def _check_declarations(method: Method, settings: Mapping[str, Any]) -> Broken:
    """Yield missing words and settings, by which people and programs choose."""
    if not method.name or method.name != method.name.lower() or " " in method.name:
        yield "Its name is no name", f"{method.name!r} is not in small letters without spaces"
    for field in ("title", "advice", "paper", "guarantee", "as_published"):
        if not str(getattr(method, field)).strip():
            yield "Words are missing", f"{field} is empty"
    taken = {"log", "method", "ledger", "progress", *OPTIONS} - {"max_length"}
    for parameter in method.parameters:
        if parameter.name in taken and not (parameter.name == "guessing_advantage" and not method.takes_epsilon):
            yield "A setting has a taken name", f"{parameter.name} is an argument of veilog.release"
        if not parameter.what:
            yield "Words are missing", f"the setting {parameter.name} has none"
        try:
            parameter.parse(parameter.default)
        except VeilogError as error:
            yield "A default is not allowed", str(error)
    try:
        method.settings()
        method.needs(method.parse(dict(settings)))
    except Exception as error:  # noqa: BLE001 - the check searches for it
        yield "Its settings cannot be made", f"{type(error).__name__}: {error}"


def _sources(method: Method, settings: Mapping[str, Any]) -> Broken:
    """Yield private parts that the code touches, and randomness of its own."""
    for tree, where in _trees(method.run):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute):
                continue
            own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            if node.attr.startswith("_") and not node.attr.startswith("__") and not own:
                yield "It reaches into private parts", f"{where} uses {node.attr}, which a peek at raw data needs"
            if node.attr in _DRAWN_ELSEWHERE:
                yield "It draws randomness of its own", f"{where} uses {node.attr}; take the curator's"


def _trees(run: Callable[..., Any]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the function and all readable code of its own package that it names."""
    home, waiting, seen = run.__module__, [run], set()
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(part)))
        except (OSError, TypeError, SyntaxError):
            continue
        yield tree, f"{part.__module__}.{part.__qualname__}"
        around = vars(sys.modules.get(part.__module__))
        for node in ast.walk(tree):
            named = around.get(node.id) if isinstance(node, ast.Name) else None
            if isinstance(named, types.FunctionType | type) and f"{named.__module__}.".startswith(f"{home}."):
                waiting.append(named)


def _check_replay(method: Method, settings: Mapping[str, Any]) -> Broken:
    """Yield a release that differs on a neighbouring log with the same answers."""
    if not (method.certified and method.takes_epsilon):
        return
    planned = _plan_release(method, settings)
    try:
        first, second, tape = recorded_and_replayed(planned, _log(), _drop_one_case(_log()))
    except AssertionError as error:
        said = str(error).split("\n")[0]
        yield (_NOT_PER_CASE if said.startswith(NOT_PER_CASE) else _LOOKS), said
        return
    except VeilogError as error:
        yield _release_problem(error)
        return
    if tape.position != len(tape.entries):
        yield _LOOKS, "of a neighbouring log it asks less"
    elif not same(first, second):
        yield _LOOKS, "with the same answers a neighbouring log has another release"


def _release_problem(error: VeilogError) -> tuple[str, str]:
    if "each case by itself" in str(error):
        return _NOT_PER_CASE, str(error)
    return "It releases nothing", f"of a synthetic log of 60 cases: {error}"


class _Noted:
    """Watcher that records the charges of every query of a method as it is made."""

    def __init__(self) -> None:
        self.entered: list[Any] = []

    def beside(self, curator: Curator) -> Curator:
        """Return the stand-in for the curator of a release."""
        self.curator = curator
        return watch(curator, self)

    def question(self, holder: Any, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the answer to a query, or what it opens."""
        before = len(self.curator.charges)
        found = getattr(holder, name)(*given, **named)
        self.entered += self.curator.charges[before:]
        return found

    opened = question

    def peeked(self, holder: Any, name: str, given: tuple[Any, ...]) -> Any:
        """Return the raw data; another check reports the peek."""
        return getattr(holder, name)(*given)


def _check_account(method: Method, settings: Mapping[str, Any]) -> Broken:
    """Yield a guarantee that differs from the recorded charges, or exceeds the budget."""
    if not (method.certified and method.takes_epsilon):
        return
    planned = _plan_release(method, settings)
    noted = _Noted()
    try:
        released = run_plan(planned, _log(), watched=noted.beside)
    except VeilogError as error:
        yield _release_problem(error)
        return
    guarantee = released.guarantee
    if not guarantee.proven:
        yield "Its certified release has no guarantee", "; ".join(map(str, guarantee.reasons))
        return
    if list(guarantee.charges) != noted.entered:
        yield "It has a guarantee of its own", "the account is another than what was charged for its questions"
    epsilon, delta = compose(noted.entered)
    if epsilon > planned.epsilon or delta > planned.delta * (1 + Fraction(1, 2**38)):
        yield "It spends more than its budget", f"{float(epsilon):g} of epsilon {float(planned.epsilon):g}"
    claimed = (guarantee.epsilon or 0.0, guarantee.delta or 0.0)
    budget = planned.method.budget
    fixed = isinstance(budget, EpsilonAndDelta) and budget.fixed  # its delta is that of its noise
    if claimed[0] < float(planned.epsilon) or (not fixed and claimed[1] < float(planned.delta) * (1 - 1e-9)):
        yield "It has a guarantee of its own", f"{claimed} is less than the budget that it had"
    yield from _repeatable(planned)


def _repeatable(planned: ReleaseRequest) -> Broken:
    """Yield a release that the curator's seed does not repeat."""
    seeded = planned.seeded(3)
    if not same(run_plan(seeded, _log()), run_plan(seeded, _log())):
        yield "It draws randomness of its own", "with the same seed it makes another release"


def _check_tiny_logs(method: Method, settings: Mapping[str, Any]) -> Broken:
    """Yield errors on tiny logs that are no VeilogError."""
    whole = hospital(1, seed=1)
    logs: dict[str, EventLog | Variants] = {"a log of one case": whole, "a log without cases": whole.only(np.arange(0))}
    for name, log in logs.items():
        planned = _plan_release(method, settings)
        try:
            released = run_plan(planned.seeded(1), log)
        except VeilogError:
            continue
        except Exception as error:  # noqa: BLE001 - the check searches for it
            yield "Its errors are no VeilogError", f"{name} makes a {type(error).__name__}: {error}"
            continue
        if not planned.method.full_log and not isinstance(released.variants, Variants):
            yield "It releases no variants", f"but {type(released.variants).__name__}"

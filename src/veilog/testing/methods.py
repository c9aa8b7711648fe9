"""The contract of a method: what makes its guarantee that of its questions, and a release fit for everybody."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from veilog.errors import VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.made_up.simulate import hospital
from veilog.logs.variants import Variants
from veilog.methods import EpsilonAndDelta, Method
from veilog.privacy.account.account import ChargeAccount
from veilog.privacy.account.accounting import compose
from veilog.privacy.domain import Domain
from veilog.releasing.request import OPTIONS, ReleaseRequest, plan
from veilog.releasing.run import run_plan
from veilog.testing.replaying import NOT_PER_CASE, recorded_and_replayed, same

__all__ = ["check_method"]

_EPSILON, _DELTA = "2", "0.01"
_LOOKS = "It looks at more than the answers to its questions"
_NOT_PER_CASE = "A function of a question is not per case"
_DRAWN_ELSEWHERE = {"default_rng", "urandom", "RandomState", "seed"}


def check_method(method: Method, **settings: Any) -> None:
    """Raise AssertionError with every rule of the contract that a method breaks on made-up logs.

    Its certified release asks the curator and looks at nothing else, nor keeps what its functions are shown (run on a
    neighbouring log with the same answers it is the same); functions that it gives to questions treat every case by
    itself; its guarantee is that of its questions: it costs no more than its budget, changes no account and draws no
    randomness but the curator's; its words and settings are complete; and errors are of the family of
    :class:`VeilogError`, also for tiny logs. What is as published only is held to the last three. ``settings`` are
    those to check it with, in place of the defaults.
    """
    broken: dict[str, str] = {}
    for check in (_declared, _sources, _asked_alone, _accounted, _on_tiny_logs):
        for rule, how in check(method, settings):
            broken.setdefault(rule, f"{rule}: {how}.")
    if broken:
        raise AssertionError(f"Method {method.name!r} breaks its contract. {' '.join(broken.values())}")


def _planned(method: Method, settings: Mapping[str, Any]) -> ReleaseRequest:
    """A release of the method with all public facts of the made-up logs declared."""
    budget: dict[str, Any] = {"epsilon": _EPSILON} if method.takes_epsilon else {}
    if method.needs_delta:
        budget["delta"] = _DELTA
    labels = tuple(sorted({label for log in (_log(), hospital(25, seed=2)) for label in log.variants.labels}))
    with mock.patch("veilog.releasing.request.method_named", return_value=method):
        return plan(
            method.name,
            **budget,
            as_published=not method.certified,
            domain=Domain(labels, 20),
            allow_no_protection=True,
            **settings,
        )


def _log() -> EventLog:
    return hospital(60, seed=1)


def _without_one(log: EventLog) -> EventLog:
    return log.only(np.delete(np.arange(log.cases.num_rows), 2))


Broken = Iterator[tuple[str, str]]


def _declared(method: Method, settings: Mapping[str, Any]) -> Broken:
    """What people and programs choose by."""
    if not method.name or method.name != method.name.lower() or " " in method.name:
        yield "Its name is no name", f"{method.name!r} is not in small letters without spaces"
    for field in ("title", "advice", "paper", "guarantee", "as_published"):
        if not getattr(method, field).strip():
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
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        yield "Its settings cannot be made", f"{type(error).__name__}: {error}"


def _sources(method: Method, settings: Mapping[str, Any]) -> Broken:
    """No private part of anything is touched, and no randomness drawn but the curator's."""
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
    """The function, and whatever of its own module or package it names, as far as their source can be read."""
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


def _asked_alone(method: Method, settings: Mapping[str, Any]) -> Broken:
    """With the same answers a neighbouring log gives the same release."""
    if not (method.certified and method.takes_epsilon):
        return
    planned = _planned(method, settings)
    try:
        first, second, tape = recorded_and_replayed(planned, _log(), _without_one(_log()))
    except AssertionError as error:
        said = str(error).split("\n")[0]
        yield (_NOT_PER_CASE if said.startswith(NOT_PER_CASE) else _LOOKS), said
        return
    except VeilogError as error:
        yield _not_released(error)
        return
    if tape.position != len(tape.entries):
        yield _LOOKS, "of a neighbouring log it asks less"
    elif not same(first, second):
        yield _LOOKS, "with the same answers a neighbouring log has another release"


def _not_released(error: VeilogError) -> tuple[str, str]:
    if "each case by itself" in str(error):
        return _NOT_PER_CASE, str(error)
    return "It releases nothing", f"of a made-up log of 60 cases: {error}"


def _accounted(method: Method, settings: Mapping[str, Any]) -> Broken:
    """What the guarantee says is what was entered when it was asked, and no more than the budget."""
    if not (method.certified and method.takes_epsilon):
        return
    planned = _planned(method, settings)
    entered: list[Any] = []
    enter = ChargeAccount._enter

    def noted(self: ChargeAccount, charge: Any) -> None:
        if type(self) is ChargeAccount:
            entered.append(charge)
        enter(self, charge)

    with mock.patch.object(ChargeAccount, "_enter", noted):
        try:
            released = run_plan(planned, _log())
        except VeilogError as error:
            yield _not_released(error)
            return
    guarantee = released.guarantee
    if not guarantee.proven:
        yield "Its certified release has no guarantee", "; ".join(guarantee.reasons)
        return
    if list(guarantee.charges) != entered:
        yield "It has a guarantee of its own", "the account is another than what was charged for its questions"
    epsilon, delta = compose(entered)
    if epsilon > planned.epsilon or delta > planned.delta * (1 + Fraction(1, 2**38)):
        yield "It spends more than its budget", f"{float(epsilon):g} of epsilon {float(planned.epsilon):g}"
    claimed = (guarantee.epsilon or 0.0, guarantee.delta or 0.0)
    budget = planned.method.budget
    fixed = isinstance(budget, EpsilonAndDelta) and budget.fixed  # its delta is that of its noise
    if claimed[0] < float(planned.epsilon) or (not fixed and claimed[1] < float(planned.delta) * (1 - 1e-9)):
        yield "It has a guarantee of its own", f"{claimed} is less than the budget that it had"
    yield from _repeatable(planned)


def _repeatable(planned: ReleaseRequest) -> Broken:
    """All randomness is the curator's: with its seed a release can be repeated."""
    seeded = planned.seeded(3)
    if not same(run_plan(seeded, _log()), run_plan(seeded, _log())):
        yield "It draws randomness of its own", "with the same seed it makes another release"


def _on_tiny_logs(method: Method, settings: Mapping[str, Any]) -> Broken:
    """A release or a VeilogError, whatever the log is."""
    whole = hospital(1, seed=1)
    logs: dict[str, EventLog | Variants] = {"a log of one case": whole, "a log without cases": whole.only(np.arange(0))}
    for name, log in logs.items():
        planned = _planned(method, settings)
        try:
            released = run_plan(planned.seeded(1), log)
        except VeilogError:
            continue
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            yield "Its errors are no VeilogError", f"{name} makes a {type(error).__name__}: {error}"
            continue
        if not planned.method.full_log and not isinstance(released.variants, Variants):
            yield "It releases no variants", f"but {type(released.variants).__name__}"

"""From a log to a release: choose a method, ask the curator, derive the guarantee."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Unpack

import numpy as np

from veilog._typing import Int32Array
from veilog.errors import ParameterError, VeilogError
from veilog.ledger.ledger import EntryRef, Ledger, Reservation, settle_at_end
from veilog.ledger.store import Units
from veilog.logs.eventlog import START, EventLog
from veilog.logs.files import AnyLog, as_log
from veilog.logs.storage.stored_log import StoredLog, variants_of
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.messages import Message, OwnerMessage, as_message
from veilog.methods._events.assemble import Details, Wanted, anonymous, shuffled
from veilog.methods._events.extras import DetailsDrawing, enrich
from veilog.methods._events.times.calendar import check as check_window
from veilog.methods.method import (
    EpsilonAndDelta,
    Groups,
    Method,
    Progress,
    Request,
    advised_once,
    with_a_share,
)
from veilog.privacy.account.budgets import compose
from veilog.privacy.account.guarantee import Condition, Guarantee, round_up
from veilog.privacy.curator import Curator
from veilog.privacy.domain import FROM_LOG
from veilog.privacy.mechanisms import noise
from veilog.privacy.partition import names_of_units
from veilog.privacy.unit import bound_units, check_somebody
from veilog.releasing.answers import AnswerRecorder, Recording
from veilog.releasing.checks import activities_of
from veilog.releasing.keywords import Keywords
from veilog.releasing.owner import (
    add_warnings,
    check_times,
    chosen_ledger,
    exposure_messages,
    formulas,
    losses_after,
    losses_before,
    notes_for_owner,
)
from veilog.releasing.request import LedgerChoice, ReleaseRequest
from veilog.releasing.result import NOISE_ONLY, Operation, OwnerOnly, Release, remarks_on
from veilog.rules.rules import ReleaseRules

LABELS_SHARE = Fraction(1, 10)
"""Share of epsilon to find the activities, where they are neither declared nor public by the data owner's word."""

_LIBRARIES = ("scipy.optimize", "scipy.sparse.csgraph", "scipy.special")
_LIBRARIES_OF = {"travag": ("dp_accounting.pld",), "pripel": ("ot",), "libra": ("ot",)}
"""Libraries in other languages that methods load at their first use, beside those of many methods."""
_SIZE = 64

_NO_ORDER = np.zeros(0, dtype=np.int32)


def release(
    log: AnyLog | StoredLog,
    method: str | ReleaseRequest,
    *,
    ledger: LedgerChoice = None,
    progress: Progress | None = None,
    **options: Unpack[Keywords],
) -> Release:
    """Release a log with a method, or as a :class:`ReleaseRequest` describes.

    Args:
        log: An :class:`EventLog`, its variants, a DataFrame, a file, a :class:`Release`, or a :class:`StoredLog`, whose
            events are never all in memory.
        method: Name of a method, or a request. With a request only ``ledger`` and ``progress`` are valid.
        ledger: Ledger in which the release is entered, in the account of its data. veilog sets its cost aside before
            any query, and refuses the release if that would exceed the budget. By default it is your ledger, which the
            command and the pages use, too. The file of another ledger is made if there is none. With False the release
            is entered nowhere, and your ledger lists it as not counted. A run with a ``seed`` is entered only in a
            ledger that you name.
        progress: Receives a text and the finished share, if known.
        **options: Options of a request and parameters of the method, as follows.

    ``epsilon`` and ``delta`` are the budget. For a certified release (the default) they are those of the derived
    guarantee. With ``as_published`` they are those of the paper, and the guarantee states what is derived instead. An
    epsilon above 3.89 protects no unit in practice and needs ``allow_no_protection``. ``guessing_advantage`` takes the
    place of ``epsilon``: the largest rise of an attacker's chance to guess that a case (or person) is in the log, delta
    included. A method that has a parameter of this name gets it as that. ``seed`` makes a run repeatable for
    experiments, and its guarantee "none".

    ``domain`` declares public facts, and ``activities`` the activities alone. Give their names. Or give ``"log"``, your
    word that those of the log are public, which is a condition of the guarantee. Or give ``"privately"``: veilog then
    finds those that enough cases have, with a tenth of epsilon and a part of delta. A method that needs them refuses
    without.

    ``unit`` is who is protected. It is a case, or a person, identified by the attribute of the log with this name. Of
    the cases of a person, at most ``max_cases``, chosen at random, are looked at. Or it is ``person``, if no person has
    more than ``max_cases`` cases. Cases whose attribute names no single person are left out. With
    ``without_person="own"``, those that name none each count as of a person without other cases, which becomes a
    condition of the guarantee.

    ``times`` is the share of epsilon for times of the released events. Cases start in a ``window``: a pair of times or
    dates, or ``"2024-01-01..2025-01-01"``. With ``"log"`` it is that of the log, which the guarantee states; with None,
    a made-up year. With ``processing``, the start of each event (``start_timestamp``) is released, too. ``attributes``
    are released with ``attributes_share`` (a quarter) of epsilon. Both need a certified release of variants of an event
    log. With a column as ``unit``, ``persons`` is the share of epsilon for made-up persons. Their cases follow each
    other as those of persons of the log do. ``person_attributes`` are those released attributes that a person keeps.

    ``subset`` releases some of the cases alone, by a public rule that looks at each case by itself. ``"month=2024-03"``
    (also ``week=2024-W11``, ``quarter=2024-Q1``, ``year=2024``) has those that start then, ``"ward=A"`` those with this
    value of an attribute, ``none`` those without. In a ledger, releases of different subsets of one rule cost a case
    the maximum of their epsilons, not the sum. Every case must keep its subset for that. With ``remember_units``, the
    ledger keeps a keyed digest (16 bytes) of the name of every case, or person, that a release of a subset looked at.
    It leaves out those that another subset of the rule had: then it is enough that they keep their names.

    >>> import veilog
    >>> from veilog.logs.synthetic.hospital import hospital
    >>> released = veilog.release(hospital(200, seed=1), "evolve", epsilon=1, activities="log")
    >>> released.guarantee.epsilon
    1.0

    """
    request = ReleaseRequest.of(method, "release", options)
    held, seeded = as_log(log), request.seed is not None
    kept = chosen_ledger(ledger, seeded=seeded, progress=progress)
    released = run_plan(request, held, ledger=kept, progress=progress)
    return add_warnings(released, held, entry_of(request) if ledger is False and not seeded else None)


def run_plan(
    request: ReleaseRequest,
    log: EventLog | StoredLog | Variants,
    *,
    ledger: Ledger | None = None,
    progress: Progress | None = None,
    watched: Callable[[Curator], Curator] | None = None,
) -> Release:
    """Return the release that a plan makes of a log, with the guarantee that follows.

    ``watched`` puts something between the method and its curator, for audits and for the contract of methods, which
    look at the queries. The guarantee is the curator's.
    """
    request.check(log)
    if not isinstance(log, Variants):
        check_times(request, log)
    # Before anything is spent: an error in here must not use epsilon.
    load_libraries(request)
    if request.prior is not None and ledger is not None:
        request = replace(request, prior=request.prior.with_releases(ledger.proven))
    looked_at = log if request.subset is None else request.subset.of_log(log)
    units = unseen_units(request, looked_at, log, ledger)
    if units is not None and not isinstance(looked_at, Variants):
        looked_at = looked_at.only(np.flatnonzero(units.new))
    curator = curator_of(request, log, units)
    notes = (*notes_of_units(units), *notes_for_owner(looked_at, request, in_ledger=ledger is not None))
    before = losses_before(looked_at, request)
    started = time.perf_counter()
    claimed, derive = claims(request, curator)
    entry = None if ledger is None else reserve_budget(request, log, ledger, units)
    if entry is not None:
        curator.before_first(entry.begin)
    cases: int | None = None

    def whole() -> Guarantee:
        return replace(claimed(), cases=cases)

    recorder = AnswerRecorder(curator)
    with settle_at_end(entry, whole, lambda: curator.contacted, derive):
        made = make_by_method(recorder.curator if watched is None else watched(curator), request, progress)
        seconds, cases = time.perf_counter() - started, made.variants.cases
    guarantee = replace(whole(), cases=None if request.method.draws else cases)
    if request.wanted.persons and not any(part == "persons" for _, part, _ in made.done):
        without = replace(request, wanted=replace(request.wanted, persons=Fraction(0)))
        notes = (*notes_of_units(units), *notes_for_owner(looked_at, without, in_ledger=ledger is not None))
    found = OwnerOnly(
        losses=losses_after(variants_of(looked_at), made.variants, before),
        seconds=seconds,
        notes=(*exposure_messages(looked_at, guarantee), *formulas(made.variants, made.details), *notes),
        findings=() if isinstance(log, Variants) else log.findings,
    )
    noise_only = None if request.as_published or request.method.package else curator.noise_only
    released = _make_release(
        request, made, guarantee, found, None if entry is None else entry.entered, noise_only=noise_only
    )
    ours = guarantee.charges and watched is None and not (request.as_published or request.method.package or made.full)
    return replace(released, recording=Recording(request, recorder.record)) if ours and recorder.record else released


def _make_release(
    request: ReleaseRequest,
    made: Made,
    guarantee: Guarantee,
    owner_only: OwnerOnly,
    entry: EntryRef | None,
    *,
    noise_only: bool | None,
) -> Release:
    """Return the release of what was made, with all its remarks."""
    released = Release(
        method=request.method.name,
        as_published=request.as_published,
        parameters={**request.settings.to_json(), **_public(request)},
        declared_length=request.declared.max_length,
        activities=activities_of(request.public, request.method.needs(request.settings)),
        variants=made.variants,
        guarantee=guarantee,
        owner_only=owner_only,
        noise_only=noise_only,
        remarks=(
            *_empty_messages(request, made.variants),
            *((NOISE_ONLY,) if noise_only and made.variants.cases else ()),
            *(() if request.subset is None else (Message("only-looked", in_words=request.subset.in_words),)),
            *request.unit.remarks,
            *advised_once(made.said),
            *(() if request.rules is None else _rule_messages(request.rules)),
            *remarks_on(made.variants),
        ),
        order=made.order,
        operations=_operations(made, guarantee),
        details=made.details,
        full=made.full,
        entry=entry,
    )
    return _join_siblings(released, made.beside)


def load_libraries(request: ReleaseRequest) -> None:
    """Load the libraries in other languages that a method computes with.

    A library that finds no memory may end the process without a message, and lose a release that has used its budget.
    """
    square = np.ones((_SIZE, _SIZE))
    np.linalg.norm(square @ square)  # linear algebra takes its memory at the first product
    for name in (*_LIBRARIES, *_LIBRARIES_OF.get(request.method.name, ())):
        importlib.import_module(name)


def unseen_units(
    request: ReleaseRequest,
    looked_at: EventLog | StoredLog | Variants,
    log: EventLog | StoredLog | Variants,
    ledger: Ledger | None,
) -> Units | None:
    """Return the cases of units that no other subset had, by the ledger's memory."""
    if not request.remember_units or request.subset is None:
        return None
    if ledger is None:
        raise ParameterError("unit-memory-without-ledger", parameter="remember_units")
    assert not isinstance(looked_at, Variants), "a subset of variants is refused"
    names = names_of_units(looked_at, request.unit.column)
    return ledger.units(log, request.subset, request.unit.column or request.unit.name, names)


def notes_of_units(units: Units | None) -> tuple[OwnerMessage, ...]:
    """Return what the data owner alone may know: how many cases were left out."""
    left = 0 if units is None else int(np.count_nonzero(~units.new))
    if not left:
        return ()
    return (OwnerMessage("one-case-in-another-subset" if left == 1 else "cases-in-another-subset", cases=left),)


def curator_of(request: ReleaseRequest, log: EventLog | StoredLog | Variants, units: Units | None = None) -> Curator:
    """Return a curator for a release of the log, before any query."""
    source = noise.operating_system() if request.seed is None else noise.seeded(request.seed)
    held = bound_units(log, request.unit, source, request.subset, None if units is None else np.flatnonzero(units.new))
    check_somebody(log, held)
    return Curator(held, domain=request.public, randomness=source)


def _join_siblings(released: Release, others: dict[str, tuple[Variants, Int32Array]]) -> Release:
    """Return the release with others of the same answers; one guarantee holds for all."""
    if not others:
        return released
    beside = {
        name: replace(
            released,
            variants=variants,
            order=order,
            guarantee=replace(released.guarantee, cases=variants.cases),
            details=None,
            recording=None,
            remarks=(
                *released.remarks,
                Message("release-file-of-two", name=name),
            ),
        )
        for name, (variants, order) in others.items()
    }
    said = (Message("release-second-file-made", name=name) for name in beside)
    return replace(released, beside=beside, remarks=(*released.remarks, *said))


Claim = Callable[[], Guarantee]


def claims(request: ReleaseRequest, curator: Curator) -> tuple[Claim, Claim]:
    """Return two functions: guarantee of the whole budget, and of the answers so far."""
    spends_delta = request.delta if request.uses.flow and request.delta else None

    def derive(at_least: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))) -> Guarantee:
        found = curator.guarantee(
            nominal_epsilon=request.epsilon or None, nominal_delta=spends_delta, at_least=at_least
        )
        conditions = (*found.conditions, *_plugin_conditions(request))
        return replace(found, conditions=(*conditions, *conditions_of_public(request, conditions)))

    if request.as_published:
        return derive, derive
    budget = request.method.budget
    fixed = isinstance(budget, EpsilonAndDelta) and budget.fixed and not request.wanted and not request.uses.labels
    return partial(derive, at_least=(request.epsilon, Fraction(0) if fixed else request.delta)), derive


def conditions_of_public(request: ReleaseRequest, others: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the conditions of the guarantee on the prior and on the rules."""
    rules = () if request.rules is None else (Condition("rules-are-public", "owner", Message("rules-are-public")),)
    own = {condition.code for condition in (*others, *rules)}
    return (*(() if request.prior is None else request.prior.conditions(own)), *rules)


def _plugin_conditions(request: ReleaseRequest) -> tuple[Condition, ...]:
    """Return the condition that a method of another package keeps to the curator.
    veilog cannot check that: the functions of the method see raw cases, and no charge covers what they store of
    these."""
    method = request.method
    if not method.package:
        return ()
    said = Message("method-of-another-package", method=method.name, package=method.package)
    return (Condition("method-of-another-package", "program", said),)


def entry_of(request: ReleaseRequest) -> dict[str, Any]:
    """Return the entry of a release in a ledger, without its cost and its method."""
    return {
        "parameters": {
            **request.settings.to_json(),
            **_extras_summary(request.wanted),
            **_public(request),
            **request.unit.in_ledger,
        },
        "unit": request.unit.column or request.unit.name,
        "as_published": request.as_published,
        "subset": request.subset,
    }


def reserve_budget(
    request: ReleaseRequest,
    log: EventLog | StoredLog | Variants,
    ledger: Ledger,
    units: Units | None = None,
    mark: str | None = None,
) -> Reservation:
    """Set aside the cost of the request in the ledger, or refuse it.

    ``units`` are those that the ledger remembers, and ``mark`` recognises a run that can be resumed.
    """
    return ledger.reserve(
        log,
        request.method.name,
        epsilon=request.epsilon if request.bounded else None,
        delta=request.delta,
        units=units,
        mark=mark,
        begins=True,
        **entry_of(request),
    )


@dataclass(frozen=True, eq=False)
class Made:
    """Result of a method, with the charges for each part."""

    variants: Variants
    full: EventLog | None
    details: Details | None
    order: Int32Array
    done: list[tuple[str, str, Sequence[int]]]
    said: list[Message]
    flow: Callable[[], Variants | EventLog]
    """Function that asks for the variants again."""
    for_flow: range
    """Charges for the variants."""
    drawing: DetailsDrawing | None = None
    """Source of times and attributes of other cases."""
    beside: dict[str, tuple[Variants, Int32Array]] = field(default_factory=dict)
    """Further releases of the same answers, and the random order of their cases."""


def make_by_method(curator: Curator, request: ReleaseRequest, progress: Progress | None = None) -> Made:
    """Return what a request makes of a curator's answers.

    Labels and domains of attributes, then the method, then times and attributes for what it released.

    Each use of a delta has a part of it.
    """
    if request.wanted.times and request.wanted.window == FROM_LOG:
        check_window(curator.events.window)  # a public fact: an error in it must not use epsilon
    uses = request.uses
    epsilon, delta = request.unit.of_one_case(request.epsilon, request.delta)
    part, for_times = uses.of(delta)
    said: list[Message] = []
    others: dict[str, Variants] = {}
    if uses.labels:
        names = curator.find_activities(epsilon * LABELS_SHARE, part)
        said.append(Message("one-activity-found" if len(names) == 1 else "activities-found", activities=len(names)))
        epsilon *= 1 - LABELS_SHARE
    budgeted = Request(
        epsilon=epsilon,
        delta=part if uses.flow else Fraction(0),
        as_published=request.as_published,
        progress=progress or (lambda text, fraction: None),
        score=lambda original, released: relative_log_similarity(original, released).value,
        remark=lambda remark: said.append(as_message(remark)),
        prior=_prior_of(request, said),
        rules=request.rules,
        prior_of_model=request.prior is not None and request.prior.of_models,
        beside=lambda name, variants: others.__setitem__(name, _obey_rules(request, variants)),
    )
    deltas = part if uses.values else Fraction(0), for_times
    with with_a_share(request.epsilon / epsilon if epsilon else Fraction(1)):
        made = (
            _add_extras(curator, request, budgeted, deltas, said)
            if request.wanted
            else _make_flow(curator, request, budgeted, said)
        )
    if not others:
        return made
    rng = noise.generator(curator.randomness)
    return replace(made, beside={name: (variants, shuffled(variants, rng)) for name, variants in others.items()})


def _run_method(request: ReleaseRequest, curator: Curator, budgeted: Request) -> Variants | EventLog:
    """Return what the method releases.
    An error of a method of another package names the package, without the error's words, which may contain data."""
    method = request.method
    try:
        released = method.run(curator, budgeted, request.settings)
    except (VeilogError, MemoryError):
        raise
    except Exception as error:
        if not method.package:
            raise
        raise _external_error(method, f"failed ({type(error).__name__})") from error
    if method.package and not isinstance(released, Variants | EventLog):
        raise _external_error(method, f"released {type(released).__name__}, which is no log")
    return released if isinstance(released, EventLog) else _obey_rules(request, released)


def _prior_of(request: ReleaseRequest, said: list[Message]) -> Variants | None:
    """Return the prior without the cases that break a rule: no candidate does."""
    if request.prior is None or request.rules is None:
        return None if request.prior is None else request.prior.variants
    obeying = request.rules.only(request.prior.variants)
    if not obeying.cases:
        said.append(Message("prior-breaks-rules"))
    return obeying if obeying.cases else None


def _obey_rules(request: ReleaseRequest, released: Variants) -> Variants:
    """Return the release with all cases at variants that obey the rules.
    This is post-processing by public rules."""
    return released if request.rules is None else request.rules.repaired(released, request.declared.longest)


def _external_error(method: Method, problem: str) -> ParameterError:
    return ParameterError(
        "method-external-failed", parameter="method", name=method.name, package=method.package, text=problem
    )


def _make_flow(curator: Curator, request: ReleaseRequest, budgeted: Request, said: list[Message]) -> Made:
    """Return the release of the method, with its cases in random order."""
    method, flow, before = request.method, partial(_run_method, request, curator, budgeted), len(curator.charges)
    released = flow()
    after = len(curator.charges)
    rng = noise.generator(curator.randomness)
    charges, ours = range(len(curator.charges)), range(before, after)
    if isinstance(released, Variants):
        done = ("control flow (variants)", _name(request), charges)
        return Made(released, None, None, shuffled(released, rng), [done], said, flow, ours)
    if isinstance(method.releases, Groups):
        method.releases.check(released, request.settings)
    full = anonymous(released, rng)
    done = ("events", _name(request), charges)
    return Made(full.variants, full, None, _NO_ORDER, [done], said, flow, ours)


def _add_extras(
    curator: Curator, request: ReleaseRequest, budgeted: Request, deltas: tuple[Fraction, Fraction], said: list[Message]
) -> Made:
    """Return the release of a method of variants, with times and attributes.
    ``deltas`` are that of the values and that of the times."""
    flows: list[Callable[[], Variants | EventLog]] = []

    def flow(epsilon: Fraction) -> Variants:
        flows.append(partial(_run_method, request, curator, replace(budgeted, epsilon=epsilon)))
        released = flows[0]()
        assert isinstance(released, Variants), "a plan refuses times and attributes for other methods"
        return released

    for_labels = range(len(curator.charges))
    logs = () if request.prior is None else request.prior.logs
    made = enrich(curator, request.wanted, budgeted.epsilon, *deltas, flow, said.append, request.rules, logs)
    done: list[tuple[str, str, Sequence[int]]] = [
        ("control flow (variants)", _name(request), [*for_labels, *made.for_flow])
    ]
    if made.details.times is not None:
        starts = f" and {START}" if request.wanted.processing else ""
        done.append((f"timestamps{starts}", "times", made.for_times))
    columns = made.details.columns
    others = {START} if request.wanted.processing else set()
    others |= {(request.unit.column or "").removeprefix("case:")} if made.for_persons else set()
    names = [name for name in (*columns.cases, *columns.events) if name not in others]
    if names:
        target = "attributes: " + ", ".join(names)
        done.append((target, "attributes", made.for_attributes))
    if made.for_persons:
        done.append((f"persons: {request.unit.column}", "persons", made.for_persons))
    return Made(made.variants, None, made.details, _NO_ORDER, done, said, flows[0], made.for_flow, made.drawing)


def _name(request: ReleaseRequest) -> str:
    return request.method.name + (" (as published)" if request.as_published else "")


def _public(request: ReleaseRequest) -> dict[str, object]:
    """Return the kind and digest of each source of the prior, and the rules."""
    prior = {} if request.prior is None else {"prior": [source.to_json() for source in request.prior.sources]}
    return prior | ({} if request.rules is None else {"rules": request.rules.to_json()})


def _extras_summary(wanted: Wanted) -> dict[str, object]:
    """Return what was requested beyond variants, for the ledger."""
    times: dict[str, object] = {"times": float(wanted.times)} if wanted.times else {}
    if wanted.processing:
        times["processing"] = True
    shared = {"attributes": list(wanted.attributes), "attributes_share": float(wanted.attributes_share)}
    persons: dict[str, object] = {"persons": float(wanted.persons)} if wanted.persons else {}
    if wanted.person_attributes:
        persons["person_attributes"] = list(wanted.person_attributes)
    return {**times, **(shared if wanted.attributes else {}), **persons}


def _operations(made: Made, guarantee: Guarantee) -> tuple[Operation, ...]:
    """Return the steps of the release with their epsilon and delta.
    The guarantee may claim more than the queries that were asked. The first step has that epsilon; steps with a
    delta share that delta in proportion."""
    costs = [compose(guarantee.charges[i] for i in places) for _, _, places in made.done]
    claimed = [Fraction(Decimal(repr(value or 0.0))) for value in (guarantee.epsilon, guarantee.delta)]
    spent = [sum(part, start=Fraction(0)) for part in zip(*costs, strict=True)]
    more = [max(Fraction(0), claim - part) for claim, part in zip(claimed, spent, strict=True)]
    costs[0] = (costs[0][0] + more[0], costs[0][1] + (0 if spent[1] else more[1]))
    if spent[1]:
        costs = [(epsilon, delta * (1 + more[1] / spent[1])) for epsilon, delta in costs]
    return tuple(
        Operation(target, how, round_up(epsilon), round_up(delta))
        for (target, how, _), (epsilon, delta) in zip(made.done, costs, strict=True)
    )


def _rule_messages(rules: ReleaseRules) -> tuple[Message, ...]:
    """Return the remarks on the rules, which are public."""
    open_ = () if rules.settled else (Message("rules-perhaps-contradict"),)
    return (Message("rules-obeyed", rules=rules.message), *open_)


def _empty_messages(request: ReleaseRequest, released: Variants) -> tuple[Message, ...]:
    """Return the first remark on an empty release; its method gives the reason."""
    if released.cases:
        return ()
    method = request.method
    if not method.takes_epsilon:
        return (Message("nothing-survived"),)
    spends_delta = method.spends_delta(request.settings)
    return (Message("nothing-survived-both-small" if spends_delta else "nothing-survived-epsilon-small"),)

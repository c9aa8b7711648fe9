"""From a log to a release: choose a method, ask the curator, derive the guarantee."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from veilog._language import counted
from veilog._typing import Int32Array
from veilog.errors import ParameterError, VeilogError
from veilog.ledger.fingerprints import Units
from veilog.ledger.ledger import Ledger, Reservation
from veilog.ledger.settling import settling
from veilog.logs.eventlog import START, EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods._events.assemble import Details, Wanted, anonymous, shuffled
from veilog.methods._events.extras import enriched
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
from veilog.privacy.account.accounting import compose
from veilog.privacy.account.figures import round_up
from veilog.privacy.account.guarantee import Condition, Guarantee
from veilog.privacy.curator import Curator
from veilog.privacy.domain import FROM_LOG
from veilog.privacy.mechanisms import noise
from veilog.privacy.part import Part
from veilog.privacy.unit import bounded, check_somebody
from veilog.releasing.before import load_libraries, notes_of_units, unseen_units
from veilog.releasing.checks import activities_of
from veilog.releasing.owner.columns import check_times
from veilog.releasing.owner.losses import losses_after, losses_before
from veilog.releasing.owner.notes import exposed, formulas, notes_for_owner
from veilog.releasing.planned import Planned
from veilog.releasing.result import NOISE_ONLY, Operation, OwnerOnly, Release, remarks_on

LABELS_SHARE = Fraction(1, 10)
"""The part of epsilon that finds the activities, where they are neither declared nor the log's by the owner's word."""

_NO_ORDER = np.zeros(0, dtype=np.int32)


def run_plan(
    planned: Planned,
    log: EventLog | StoredLog | Variants,
    *,
    ledger: Ledger | None = None,
    progress: Progress | None = None,
    watched: Callable[[Curator], Curator] | None = None,
) -> Release:
    """Return what a plan makes of a log: questions to a curator, post-processing, the guarantee that follows.

    ``watched`` puts something between the method and its curator, for those who look at what is asked (audits, the
    contract of methods); the guarantee is the curator's.
    """
    planned.check(log)
    if not isinstance(log, Variants):
        check_times(planned, log)
    # Before anything is paid for: what goes wrong in here must not cost a release.
    load_libraries(planned)
    looked_at = log if planned.part is None else planned.part.of_log(log)
    units = unseen_units(planned, looked_at, log, ledger)
    if units is not None and not isinstance(looked_at, Variants):
        looked_at = looked_at.only(np.flatnonzero(units.new))
    curator = curator_of(planned, log, units)
    notes = (*notes_of_units(units), *notes_for_owner(looked_at, planned, in_ledger=ledger is not None))
    before = losses_before(looked_at, planned)
    started = time.perf_counter()
    claimed, derive = claims(planned, curator)
    entry = None if ledger is None else _reserved(planned, log, ledger, units)
    if entry is not None:
        curator.before_first(entry.begin)
    cases: int | None = None

    def whole() -> Guarantee:
        return replace(claimed(), cases=cases)

    with settling(entry, whole, lambda: curator.contacted, derive):
        made = _made(curator if watched is None else watched(curator), planned, progress)
        seconds, cases = time.perf_counter() - started, made.variants.cases
    guarantee = replace(whole(), cases=None if planned.method.draws else cases)
    losses = losses_after(looked_at if isinstance(looked_at, Variants) else looked_at.variants, made.variants, before)
    noise_only = None if planned.as_published or planned.method.package else curator.noise_only
    notes = (*exposed(looked_at, guarantee), *formulas(made.variants, made.details), *notes)
    released = Release(
        method=planned.method.name,
        as_published=planned.as_published,
        parameters=planned.settings.to_json(),
        declared_length=planned.declared.max_length,
        activities=activities_of(planned.public, planned.method.needs(planned.settings)),
        variants=made.variants,
        guarantee=guarantee,
        owner_only=OwnerOnly(
            losses=losses, seconds=seconds, notes=notes, findings=() if isinstance(log, Variants) else log.findings
        ),
        noise_only=noise_only,
        remarks=(
            *_nothing(planned, made.variants),
            *_noise(made.variants, noise_only=noise_only),
            *_of_part(planned.part),
            *planned.unit.remarks,
            *advised_once(made.said),
            *remarks_on(made.variants),
        ),
        order=made.order,
        operations=_operations(made, guarantee),
        details=made.details,
        full=made.full,
        entry=None if entry is None else entry.entered,
    )
    return _with_others(released, made.beside)


def curator_of(planned: Planned, log: EventLog | StoredLog | Variants, units: Units | None = None) -> Curator:
    """Return whom a release of the log asks, before it has asked anything."""
    source = noise.operating_system() if planned.seed is None else noise.seeded(planned.seed)
    held = bounded(log, planned.unit, source, planned.part, None if units is None else np.flatnonzero(units.new))
    check_somebody(log, held)
    return Curator(held, domain=planned.public, randomness=source)


def _with_others(released: Release, others: dict[str, tuple[Variants, Int32Array]]) -> Release:
    """The release with those of the same answers beside it: one guarantee holds for all of them together."""
    if not others:
        return released
    beside = {
        name: replace(
            released,
            variants=variants,
            order=order,
            guarantee=replace(released.guarantee, cases=variants.cases),
            details=None,
            remarks=(
                *released.remarks,
                f"This is the file for {name}; another was made of the same answers. Both together have the guarantee "
                "that each of them states. This one has no times and no attributes.",
            ),
        )
        for name, (variants, order) in others.items()
    }
    said = (
        f"A second file, for {name}, was made of the same answers. Both together have the guarantee that each of them "
        "states."
        for name in beside
    )
    return replace(released, beside=beside, remarks=(*released.remarks, *said))


Claim = Callable[[], Guarantee]


def claims(planned: Planned, curator: Curator) -> tuple[Claim, Claim]:
    """What the release claims, the budget that it had, and what its answers so far amount to; both when called."""
    spends_delta = planned.delta if planned.uses.flow and planned.delta else None
    theirs = _of_another_package(planned)

    def derive(at_least: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))) -> Guarantee:
        found = curator.guarantee(
            nominal_epsilon=planned.epsilon or None, nominal_delta=spends_delta, at_least=at_least
        )
        return replace(found, conditions=(*found.conditions, *theirs)) if theirs else found

    if planned.as_published:
        return derive, derive
    budget = planned.method.budget
    fixed = isinstance(budget, EpsilonAndDelta) and budget.fixed and not planned.wanted and not planned.uses.labels
    return partial(derive, at_least=(planned.epsilon, Fraction(0) if fixed else planned.delta)), derive


def _of_another_package(planned: Planned) -> tuple[Condition, ...]:
    """Return that nobody here knows whether a method of another package goes round the curator: its functions see raw
    cases, and what they keep of these is charged nowhere."""
    method = planned.method
    if not method.package:
        return ()
    said = (
        f"The method {method.name} is of {method.package}, which is no part of veilog: that what it releases follows "
        "from the answers to its questions alone is that package's word."
    )
    return (Condition("method-of-another-package", "program", said),)


def entry_of(planned: Planned) -> dict[str, Any]:
    """Return what a ledger notes of a release, counted or not, beside its cost and its method."""
    return {
        "parameters": {**planned.settings.to_json(), **_beyond(planned.wanted), **planned.unit.in_ledger},
        "unit": planned.unit.column or planned.unit.name,
        "as_published": planned.as_published,
        "part": planned.part,
    }


def _reserved(
    planned: Planned, log: EventLog | StoredLog | Variants, ledger: Ledger, units: Units | None
) -> Reservation:
    """Set aside what the release may cost, or be refused."""
    return ledger.reserve(
        log,
        planned.method.name,
        epsilon=planned.epsilon if planned.bounded else None,
        delta=planned.delta,
        units=units,
        begins=True,
        **entry_of(planned),
    )


@dataclass(frozen=True, eq=False)
class _Made:
    """What came out, and which charges were for what."""

    variants: Variants
    full: EventLog | None
    details: Details | None
    order: Int32Array
    done: list[tuple[str, str, Sequence[int]]]
    said: list[str]
    beside: dict[str, tuple[Variants, Int32Array]] = field(default_factory=dict)
    """Further releases of the same answers, and the random order of their cases."""


def _made(curator: Curator, planned: Planned, progress: Progress | None) -> _Made:
    """Labels and domains of attributes, then the method, then times and attributes for what it released.

    Each use of a delta has a part of it.
    """
    if planned.wanted.times and planned.wanted.window == FROM_LOG:
        check_window(curator.events.window)  # a public fact: what is wrong with it must cost nothing
    uses = planned.uses
    epsilon, delta = planned.unit.of_one_case(planned.epsilon, planned.delta)
    part, for_times = uses.of(delta)
    said: list[str] = []
    others: dict[str, Variants] = {}
    if uses.labels:
        names = curator.find_activities(epsilon * LABELS_SHARE, part)
        said.append(
            f"{counted(len(names), 'activity', 'activities')} {'was' if len(names) == 1 else 'were'} found privately; "
            "rarer ones do not exist for this release."
        )
        epsilon *= 1 - LABELS_SHARE
    request = Request(
        epsilon=epsilon,
        delta=part if uses.flow else Fraction(0),
        as_published=planned.as_published,
        progress=progress or (lambda text, fraction: None),
        score=lambda original, released: relative_log_similarity(original, released).value,
        remark=said.append,
        beside=others.__setitem__,
    )
    deltas = part if uses.values else Fraction(0), for_times
    with with_a_share(planned.epsilon / epsilon if epsilon else Fraction(1)):
        made = (
            _with_extras(curator, planned, request, deltas, said)
            if planned.wanted
            else _alone(curator, planned, request, said)
        )
    if not others:
        return made
    rng = noise.generator(curator.randomness)
    return replace(made, beside={name: (variants, shuffled(variants, rng)) for name, variants in others.items()})


def _answered(planned: Planned, curator: Curator, request: Request) -> Variants | EventLog:
    """What the method releases. Of one of another package an error says whose it is, and not its own words, which may
    be of the data."""
    method = planned.method
    try:
        released = method.run(curator, request, planned.settings)
    except (VeilogError, MemoryError):
        raise
    except Exception as error:
        if not method.package:
            raise
        raise _not_ours(method, f"failed ({type(error).__name__})") from error
    if method.package and not isinstance(released, Variants | EventLog):
        raise _not_ours(method, f"released {type(released).__name__}, which is no log")
    return released


def _not_ours(method: Method, problem: str) -> ParameterError:
    return ParameterError(
        f"The method {method.name!r} of {method.package} {problem}.",
        parameter="method",
        advice="Tell its authors. What it had asked by then is spent.",
    )


def _alone(curator: Curator, planned: Planned, request: Request, said: list[str]) -> _Made:
    """What the method releases, with its cases in random order."""
    method = planned.method
    released = _answered(planned, curator, request)
    rng = noise.generator(curator.randomness)
    charges = range(len(curator.charges))
    if isinstance(released, Variants):
        done = ("control flow (variants)", _name(planned), charges)
        return _Made(released, None, None, shuffled(released, rng), [done], said)
    if isinstance(method.releases, Groups):
        method.releases.check(released, planned.settings)
    full = anonymous(released, rng)
    return _Made(full.variants, full, None, _NO_ORDER, [("events", _name(planned), charges)], said)


def _with_extras(
    curator: Curator, planned: Planned, request: Request, deltas: tuple[Fraction, Fraction], said: list[str]
) -> _Made:
    """What a method of variants releases, with times and attributes; of delta, values have the first and times the
    second."""

    def flow(epsilon: Fraction) -> Variants:
        released = _answered(planned, curator, replace(request, epsilon=epsilon))
        assert isinstance(released, Variants), "a plan refuses times and attributes for other methods"
        return released

    for_labels = range(len(curator.charges))
    made = enriched(curator, planned.wanted, request.epsilon, *deltas, flow, said.append)
    done: list[tuple[str, str, Sequence[int]]] = [
        ("control flow (variants)", _name(planned), [*for_labels, *made.for_flow])
    ]
    if made.details.times is not None:
        starts = f" and {START}" if planned.wanted.processing else ""
        done.append((f"timestamps{starts}", "times", made.for_times))
    columns = made.details.columns
    names = [name for name in (*columns.cases, *columns.events) if not (planned.wanted.processing and name == START)]
    if names:
        target = "attributes: " + ", ".join(names)
        done.append((target, "attributes", made.for_attributes))
    return _Made(made.variants, None, made.details, _NO_ORDER, done, said)


def _name(planned: Planned) -> str:
    return planned.method.name + (" (as published)" if planned.as_published else "")


def _beyond(wanted: Wanted) -> dict[str, object]:
    """What was asked for beyond variants, for the ledger."""
    times: dict[str, object] = {"times": float(wanted.times)} if wanted.times else {}
    if wanted.processing:
        times["processing"] = True
    shared = {"attributes": list(wanted.attributes), "attributes_share": float(wanted.attributes_share)}
    return {**times, **(shared if wanted.attributes else {})}


def _operations(made: _Made, guarantee: Guarantee) -> tuple[Operation, ...]:
    """What was done for what. What the guarantee claims beyond the questions that were asked is epsilon of the first,
    and delta of those that had one, in proportion."""
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


def _of_part(part: Part | None) -> tuple[str, ...]:
    return () if part is None else (f"Only {part.in_words} were looked at.",)


def _noise(released: Variants, *, noise_only: bool | None) -> tuple[str, ...]:
    """What is said first of a release whose answers could be those of a log without cases."""
    return (NOISE_ONLY,) if noise_only and released.cases else ()


def _nothing(planned: Planned, released: Variants) -> tuple[str, ...]:
    """What is said first of an empty release; why it is empty, its method says."""
    if released.cases:
        return ()
    method = planned.method
    if not method.takes_epsilon:
        return ("Nothing survived: the release is empty.",)
    more = "epsilon or delta" if method.spends_delta(planned.settings) else "epsilon"
    return (f"Nothing survived: the release is empty, and its budget is spent. Raise {more}.",)

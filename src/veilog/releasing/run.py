"""From a log to a release: choose a method, ask the curator, derive the guarantee."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from veilog.ledger.ledger import Ledger, Reservation, settling
from veilog.logs.eventlog import EventLog
from veilog.logs.source import refuse_unread
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods._events.assemble import (
    Details,
    Wanted,
    anonymous,
    attributes_before,
    attributes_of,
    released_cases,
    times_of,
)
from veilog.methods.method import Groups, Progress, Request
from veilog.privacy.account.accounting import compose
from veilog.privacy.account.figures import round_up
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.unit import bounded
from veilog.releasing.owner_notes import notes_for_owner
from veilog.releasing.planned import Planned
from veilog.releasing.result import Operation, OwnerOnly, Release

__all__ = ["LABELS_SHARE", "claims", "opened", "run_plan"]

LABELS_SHARE = Fraction(1, 10)
"""The part of epsilon that finds the activities, where they are neither declared nor the log's by the owner's word."""


def run_plan(
    planned: Planned,
    log: EventLog | StoredLog | Variants,
    *,
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> Release:
    """Return what a plan makes of a log: questions to a curator, post-processing, the guarantee that follows."""
    refuse_unread(log)
    planned.check(log)
    source = noise.operating_system() if planned.seed is None else noise.seeded(planned.seed)
    held = bounded(log, planned.unit, source)
    # Before anything is paid for: what goes wrong in here must not cost a release.
    notes = notes_for_owner(log, planned.public, planned.unit, ledger is not None)
    curator = Curator(held, domain=planned.public, randomness=source)
    started = time.perf_counter()
    claimed, derive = claims(planned, curator)
    entry = None if ledger is None else _reserved(planned, log, opened(ledger, progress))
    with settling(entry, claimed, lambda: curator.contacted, derive):
        made = _made(curator, planned, progress)
        seconds = time.perf_counter() - started
    guarantee = replace(claimed(), cases=made.variants.cases)
    return Release(
        method=planned.method.name,
        as_published=planned.as_published,
        parameters=planned.settings.to_json(),
        variants=made.variants,
        guarantee=guarantee,
        owner_only=OwnerOnly(seconds, notes, () if isinstance(log, Variants) else log.findings),
        remarks=(*made.said, *_remarks(made.variants, planned.delta)),
        order=made.order,
        operations=_operations(made, guarantee),
        details=made.details,
        full=made.full,
        entry=entry,
    )


Claim = Callable[[], Guarantee]


def claims(planned: Planned, curator: Curator) -> tuple[Claim, Claim]:
    """What the release claims, the budget that it had, and what its answers so far amount to; both when called."""
    spends_delta = planned.delta if planned.uses.flow and planned.delta else None
    derive = partial(
        curator.guarantee,
        nominal_epsilon=planned.epsilon or None,
        nominal_delta=spends_delta,
    )
    if planned.as_published:
        return derive, derive
    return partial(derive, at_least=(planned.epsilon, planned.delta)), derive


def opened(ledger: Ledger | str | Path, progress: Progress | None) -> Ledger:
    """Return the ledger, or the one in this file, which is made if there is none."""
    return ledger if isinstance(ledger, Ledger) else Ledger.open(ledger, create=True, waiting=progress)


def _reserved(planned: Planned, log: EventLog | StoredLog | Variants, ledger: Ledger) -> Reservation:
    """Set aside what the release may cost, or be refused."""
    return ledger.reserve(
        log,
        planned.method.name,
        epsilon=planned.epsilon if planned.bounded else None,
        delta=planned.delta,
        parameters={**planned.settings.to_json(), **_beyond(planned.wanted), **planned.unit.in_ledger},
        unit=planned.unit.column or planned.unit.name,
        as_published=planned.as_published,
    )


@dataclass(frozen=True)
class _Made:
    """What came out, and which charges were for what."""

    variants: Variants
    full: EventLog | StoredLog | None
    details: Details | None
    order: np.random.Generator
    done: list[tuple[str, str, list[int]]]
    said: list[str]


def _made(curator: Curator, planned: Planned, progress: Progress | None) -> _Made:
    """Labels and domains of attributes, then the method, then times and attributes for what it released.

    Each use of a delta has an equal part of it.
    """
    method, wanted, uses, as_published = planned.method, planned.wanted, planned.uses, planned.as_published
    epsilon, delta = planned.unit.of_one_case(planned.epsilon, planned.delta)
    part = delta / max(1, sum(uses))
    said: list[str] = []
    if uses.labels:
        names = curator.find_activities(epsilon * LABELS_SHARE, part)
        said.append(f"{len(names)} activities were found privately; rarer ones do not exist for this release.")
        epsilon *= 1 - LABELS_SHARE
    for_labels = len(curator.charges)
    found, rest = attributes_before(curator, wanted, epsilon, part if uses.values else Fraction(0), said.append)
    flow_epsilon = epsilon * (1 - wanted.times - wanted.attributes_share)
    asked_before = len(curator.charges)
    if not found:  # nothing to release of them: the control flow has what is left
        flow_epsilon, rest = flow_epsilon + rest, Fraction(0)
    request = Request(
        epsilon=flow_epsilon,
        delta=part if uses.flow else Fraction(0),
        as_published=as_published,
        progress=progress or (lambda text, fraction: None),
        score=lambda original, released: relative_log_similarity(original, released).value,
        remark=said.append,
    )
    released = method.run(curator, request, planned.settings)
    order = noise.generator(curator.randomness)
    full: EventLog | StoredLog | None = None
    if isinstance(released, EventLog):
        if isinstance(method.releases, Groups):
            method.releases.check(released, planned.settings)
        full = anonymous(released, order)
        released = full.variants
    elif not isinstance(released, Variants):
        request.progress("shuffling cases", None)
        full = released.shuffled(order)
        released = full.variants
    name = method.name + (" (as published)" if as_published else "")
    charges = curator.charges
    target = "control flow (variants)" if full is None else "events"
    last = len(charges)
    done = [(target, name, [*range(for_labels), *range(asked_before, last)])]
    details = None
    if wanted:
        cases = released_cases(released, order)
        given = times_of(curator, wanted, epsilon, cases, said.append)
        if given is not None:
            done.append(("timestamps", "times", [*range(last, len(curator.charges))]))
        before = len(curator.charges)
        columns = attributes_of(curator, rest, cases, found)
        if columns.events or columns.cases:
            target = "attributes: " + ", ".join([*columns.cases, *columns.events])
            done.append(
                (target, "attributes", [*range(for_labels, asked_before), *range(before, len(curator.charges))])
            )
        details = Details(cases, given, columns)
    return _Made(released, full, details, order, done, said)


def _beyond(wanted: Wanted) -> dict[str, object]:
    """What was asked for beyond variants, for the ledger."""
    times = {"times": float(wanted.times)} if wanted.times else {}
    shared = {"attributes": list(wanted.attributes), "attributes_share": float(wanted.attributes_share)}
    return {**times, **(shared if wanted.attributes else {})}


def _operations(made: _Made, guarantee: Guarantee) -> tuple[Operation, ...]:
    """What was done for what, with what the guarantee claims beyond the questions that were asked in the first."""
    costs = [compose(guarantee.charges[i] for i in places) for _, _, places in made.done]
    claimed = [Fraction(Decimal(repr(value or 0.0))) for value in (guarantee.epsilon, guarantee.delta)]
    spent = [sum(part, start=Fraction(0)) for part in zip(*costs, strict=True)]
    costs[0] = (
        costs[0][0] + max(Fraction(0), claimed[0] - spent[0]),
        costs[0][1] + max(Fraction(0), claimed[1] - spent[1]),
    )
    return tuple(
        Operation(target, how, round_up(epsilon), round_up(delta))
        for (target, how, _), (epsilon, delta) in zip(made.done, costs, strict=True)
    )


def _remarks(released: Variants, delta: Fraction) -> tuple[str, ...]:
    remarks = []
    empty = int(released.counts[released.lengths == 0].sum())
    if empty:
        remarks.append(f"{empty} of the released cases have no event; a CSV or TSV leaves them out.")
    if released.cases == 0:
        remarks.append("Nothing survived: the release is empty, and its budget is spent. Raise epsilon or delta.")
    elif delta * released.cases > 1:
        remarks.append(
            f"delta = {float(delta):g} is more than one over the {released.cases} released cases: it allows a "
            "mechanism that publishes some person's trace outright. Choose a smaller delta to protect everybody."
        )
    elif delta * released.cases > Fraction(1, 10):
        remarks.append(
            f"delta = {float(delta):g} is close to one over the {released.cases} released cases: it allows some rare "
            f"trace to be published with a probability of up to {float(delta * released.cases):.2g}. Choose a smaller "
            "delta to protect everybody."
        )
    return tuple(remarks)

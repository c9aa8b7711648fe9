"""What a release leaves out of a log, known before it and after it: confidential."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from veilog.logs.eventlog import EventLog
from veilog.logs.stored.store import StoredLog
from veilog.logs.variants import Variants
from veilog.privacy.domain import Domain
from veilog.releasing.losses import Loss, events_of, losses_by_list
from veilog.releasing.owner.notes import uncounted
from veilog.releasing.request import ReleaseRequest

_EXPLAINED = 0.5
"""The share of a difference between log and release from which on a loss that is stated already explains it."""


def losses_before(log: EventLog | StoredLog | Variants, planned: ReleaseRequest) -> tuple[Loss, ...]:
    """Return the losses that follow from a plan and the log (its cases of the planned part), before anything is asked:
    absent declared activities, and what is not declared, is too long, does not count or was not read."""
    variants = log if isinstance(log, Variants) else log.variants
    found = [*losses_by_list(events_of(variants), planned.public), *_too_long(variants, planned.public)]
    if not isinstance(log, Variants):
        left_out = uncounted(log, planned.unit)
        found += [] if left_out is None else [Loss("cases-not-counted", left_out.lost, left_out.cases)]
        found += _unread(log, variants)
    return tuple(loss for loss in found if loss.notable)


def losses_after(variants: Variants, released: Variants, before: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return the losses of a release of these cases: those known before, and what of the log it does not have where
    these do not explain it."""
    known = tuple(before)
    missing = len(set(variants.labels) - set(released.labels))
    found = (
        Loss("activities-not-released", missing, len(variants.labels)),
        Loss("cases-not-released", max(0, variants.cases - released.cases), variants.cases),
        Loss("events-not-released", max(0, variants.events - released.events), variants.events),
    )
    notable = (loss for loss in found if loss.notable)
    return known + tuple(loss for loss in notable if not any(_explains(cause, loss) for cause in known))


def _explains(cause: Loss, loss: Loss) -> bool:
    """Whether a loss of the same kind of things is most of it. Cases that are left out take their events along."""
    kind, effect = cause.code.partition("-")[0], loss.code.partition("-")[0]
    return kind in (effect, "cases") and cause.lost / cause.of >= _EXPLAINED * loss.lost / loss.of


def _too_long(variants: Variants, declared: Domain) -> Iterator[Loss]:
    """What the declared length cuts off, beside the events of undeclared activities."""
    if declared.longest is None:
        return
    fitting = replace(declared, max_length=None).fit(variants)
    if int(fitting.lengths.max(initial=0)) > declared.longest:  # which may be more than numpy's numbers hold
        beyond = int((fitting.counts * np.maximum(fitting.lengths - declared.longest, 0)).sum())
        yield Loss("events-beyond-length", beyond, variants.events)


def _unread(log: EventLog | StoredLog, variants: Variants) -> Iterator[Loss]:
    for thing, there in (("event", variants.events), ("case", variants.cases)):
        dropped = sum(finding.count for finding in log.findings if finding.dropped_thing == thing)
        yield Loss("rows-not-read", dropped, dropped + there)

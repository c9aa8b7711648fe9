"""From a log to a trained model: choose a method, train within a budget, derive the guarantee, keep checkpoints."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from veilog._version import __version__
from veilog.errors import ParameterError
from veilog.ledger.ledger import Ledger, Reservation
from veilog.ledger.settling import settling as settling_at_once
from veilog.logs.eventlog import EventLog
from veilog.logs.files import AnyLog, as_log
from veilog.logs.variants import Variants
from veilog.methods import Method, method_named, travag
from veilog.methods.method import Progress, Request, with_a_share
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.curator import Curator
from veilog.privacy.unit import bounded, check_somebody
from veilog.releasing.keywords import Keywords
from veilog.releasing.owner.account import chosen_ledger, note_uncounted
from veilog.releasing.request import LedgerChoice, ReleaseRequest
from veilog.releasing.run import entry_of
from veilog.training.checkpoints import ONE_RUN, CheckpointFile, held_interrupts
from veilog.training.model import Model
from veilog.training.runs import ResumedState, Saver, choosing, claimed, earlier, settling, source

TRAINABLE = ("travag",)


def trainable(name: str) -> Method:
    """The method of this name, if it trains a model that can be kept."""
    chosen = method_named(name)
    if name not in TRAINABLE:
        raise ParameterError(
            f"Method {name!r} trains no model.",
            parameter="method",
            advice=f"Take {' or '.join(TRAINABLE)}, or release the log with it: veilog release.",
        )
    return chosen


def train(
    log: AnyLog,
    method: str | ReleaseRequest = "travag",
    *,
    ledger: LedgerChoice = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
    **options: Unpack[Keywords],
) -> Model:
    """Train a model on a log; from then on cases are drawn from the model, at no further cost.

    The arguments are those of :func:`veilog.release`. With a ``checkpoint`` (a file) the run survives being stopped:
    the same call goes on where it was, and spends no more than one run would have. The file stays when the training
    is complete, so that the model is not lost before it is saved; remove it (and ``.key`` beside it) then.
    """
    chosen = method if isinstance(method, ReleaseRequest) else trainable(method).name
    planned = ReleaseRequest.of(chosen, "train", options)
    return _train(planned, as_log(log), ledger, checkpoint, progress)


def _train(
    planned: ReleaseRequest,
    log: EventLog | Variants,
    ledger: LedgerChoice,
    checkpoint: str | Path | None,
    progress: Progress | None,
) -> Model:
    settings = trainable(planned.method.name) and planned.settings
    assert isinstance(settings, travag.TravagSettings), "the one method that can be trained"
    asked = planned.epsilon, planned.delta
    as_published, seed, protected = planned.as_published, planned.seed, planned.unit
    configuration = travag.configured(settings, as_published=as_published)
    planned.check(log)
    account = chosen_ledger(ledger, seeded=seed is not None, progress=progress)

    keeper = None if checkpoint is None else CheckpointFile(checkpoint)
    held = bounded(log, protected, choosing(keeper, seed))
    check_somebody(log, held)

    with contextlib.ExitStack() as stack:
        before = ResumedState()
        if keeper is not None:
            stack.callback(keeper.give_back)
            before = earlier(keeper.begin(held.variants, _asked(planned, account)), keeper)
        curator = Curator(held, domain=planned.public, randomness=source(seed, before.state))
        for reason in before.reasons:
            curator.peek(reason)
        derive = partial(curator.guarantee, nominal_epsilon=asked[0], nominal_delta=asked[1])
        found = entry = mark = None
        if account is not None:
            mark = None if keeper is None else secrets.token_hex(16)
            found = _reserved(account, before, log, planned, mark)
            entry = replace(found, mark=mark)
            curator.before_first(found.begin)
            if found.mark is None and keeper is not None:  # begun before ledgers kept marks
                before = replace(before, conditions=tuple(dict.fromkeys([*before.conditions, ONE_RUN])))
        remarks = [*before.remarks, *protected.remarks]
        whole = partial(derive, at_least=(Fraction(0), Fraction(0)) if as_published else asked)
        per_case = protected.of_one_case(*asked)
        request = Request(
            epsilon=per_case[0],
            delta=per_case[1],
            as_published=as_published,
            progress=progress or (lambda text, fraction: None),
            score=lambda original, released: 0.0,  # of use to methods that choose their best release on raw data
            remark=remarks.append,
        )
        if entry is not None:
            stack.enter_context(_settled(entry, whole, derive, curator, keeper, before))
        saver = None
        if keeper is not None:
            interrupts = stack.enter_context(held_interrupts())
            interrupts.hold = True  # what is asked next is lost unless it comes to a checkpoint
            saver = Saver(keeper, interrupts, derive, remarks, before, found, mark)
        with with_a_share(Fraction(protected.most_cases)):
            trained = travag.train(curator, request, configuration, resume=before.state, checkpoint=saver)
    if ledger is False and seed is None:
        note_uncounted(log, planned.method.name, whole(), **entry_of(planned))
    return Model(
        method=planned.method.name,
        as_published=as_published,
        parameters=settings.to_json(),
        trained=trained,
        guarantee=claimed(whole(), before, keeper, checked=entry is not None),
        remarks=tuple(dict.fromkeys(remarks)),
        software=f"veilog {__version__}",
        entry=None if entry is None else entry.entered,
    )


def _asked(planned: ReleaseRequest, account: Ledger | None) -> dict[str, Any]:
    """What a run was asked for, by which its checkpoint is known again."""
    domain, unit = planned.public, planned.unit
    return {
        "method": planned.method.name,
        "epsilon": str(planned.epsilon),
        "delta": str(planned.delta),
        "as_published": planned.as_published,
        "seed": planned.seed,
        "unit": unit.column or unit.name,
        "max_cases": None,
        **unit.in_ledger,
        "activities": list(domain.alphabet) if domain.alphabet is not None else domain.activities,
        "max_length": domain.max_length,
        "ledger": None if account is None else str(account.path),
        **{f"parameter {name}": value for name, value in planned.settings.to_json().items()},
    }


def _reserved(
    account: Ledger, before: ResumedState, log: EventLog | Variants, planned: ReleaseRequest, mark: str | None
) -> Reservation:
    """What an earlier part of this run reserved, if nobody else went on from its checkpoint, or one of its own."""
    if before.entry is not None:
        return account.resume(log, before.entry, marks=before.marks, complete=before.complete)
    return account.reserve(
        log,
        planned.method.name,
        epsilon=planned.epsilon if planned.bounded else None,
        delta=planned.delta,
        **entry_of(planned),
        mark=mark,
        begins=True,
    )


def _settled(
    entry: Reservation,
    whole: Callable[[], Guarantee],
    so_far: Callable[[], Guarantee],
    curator: Curator,
    keeper: CheckpointFile | None,
    before: ResumedState,
) -> contextlib.AbstractContextManager[None]:
    if keeper is None:
        return settling_at_once(entry, whole, lambda: curator.contacted, so_far)
    return settling(entry, whole, so_far, lambda: curator.contacted, partial(_kept, keeper), again=before.complete)


def _kept(keeper: CheckpointFile) -> bool:
    return keeper.found or keeper.written

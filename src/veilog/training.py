"""Trained models: made from a log once, then drawn from; files and checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from veilog import modelfile
from veilog._files import check_writable
from veilog._plain import Misfit, from_plain, to_plain
from veilog._process import Interrupts, hold_interrupts
from veilog._typing import AnyArray, Int32Array, IntArray
from veilog._version import __version__
from veilog.errors import InputError, OutputError, ParameterError, QuestionError, VeilogError
from veilog.ledger.ledger import EntryRef, Ledger, Reservation
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.files import AnyLog, as_log
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message, as_message, message_from
from veilog.methods import Method, method_named, travag
from veilog.methods._events.assemble import Details, assemble_log, shuffled
from veilog.methods.method import Progress, Request, with_a_share
from veilog.methods.travag import Trained, sample
from veilog.methods.travag.model import state_from, state_to, trained_from, trained_to
from veilog.methods.travag.settings import TrainingState
from veilog.modelfile import Content, Damaged
from veilog.privacy.account.budgets import compose
from veilog.privacy.account.guarantee import Condition, Guarantee, round_up
from veilog.privacy.curator import Curator
from veilog.privacy.mechanisms import noise
from veilog.privacy.unit import bound_units, check_somebody
from veilog.releasing.keywords import Keywords
from veilog.releasing.owner import chosen_ledger, note_uncounted
from veilog.releasing.request import LedgerChoice, ReleaseRequest, checked_seed
from veilog.releasing.result import Operation, OwnerOnly, Release, as_released
from veilog.releasing.run import entry_of, reserve_budget

# A trained model draws any number of cases, any number of times, and never sees the log again.
#
# Draws from a model are post-processing of it: they spend nothing, and the guarantee of the training holds for
# all of them together, also with a known seed.

_MODEL = "model"
_MOST_CASES = 10**12
_MOST_EVENTS = 100_000_000
"""Largest number of events of a release in memory; more are written piece by piece."""
_FRESH = 1_000_000
"""Number of cases drawn through the networks; any more repeat their shares."""
_WHOLE = 50_000
"""Largest number of cases that are written as one log; more are in pieces."""
_PIECE = 50_000
_FIRST = 1_000
"""Cases of a stream's first piece, which should come at once, and of a probe of a file's size."""


@dataclass(frozen=True)
class _Facts:
    """The facts in a model's file, without the trained generator and warnings."""

    method: str
    as_published: bool
    parameters: Mapping[str, str | bool | int | float | None]
    guarantee: Guarantee
    software: str


@dataclass(frozen=True, eq=False)
class Model:
    """A generator of variants with the guarantee of its training.

    Nothing in it was computed from raw data outside a charged query, unless the guarantee states so.
    """

    method: str
    as_published: bool
    parameters: Mapping[str, Any]
    trained: Trained
    guarantee: Guarantee
    remarks: tuple[Message, ...] = ()
    software: str = ""
    """Name and version of the software that trained it."""
    entry: EntryRef | None = None
    """Entry of its training in the ledger of its data, if any; not part of its file."""

    def __repr__(self) -> str:
        return f"Model({self.method}, {len(self.columns)} variants, {self.guarantee.in_words()!r})"

    @property
    def columns(self) -> Sequences:
        """Variants that can be drawn; there are no others."""
        return self.trained.columns

    @property
    def cases(self) -> int:
        """Number of cases of a log of about the original's size, from a noisy count.

        At least 1.
        """
        return max(1, self.trained.cases)

    # Drawing --------------------------------------------------------------------------------------------------------

    def sample(self, cases: int | None = None, *, seed: int | None = None) -> Variants:
        """Draw so many cases (by default :attr:`cases`) and return them as variants.

        A ``seed`` makes the draw repeatable and weakens nothing. The first million cases are drawn through the
        networks, each by itself. Any more are drawn by the shares of these. That takes no time, and changes shares by
        no more than a million draws leave open.
        """
        number, rng = self._number(cases), _generator(seed)
        fresh = min(number, _FRESH)
        counts = sample(self.trained, fresh, rng)
        if number > fresh:
            counts = counts + rng.multinomial(number - fresh, counts / fresh)
        return self.trained.variants(counts)

    def release(self, cases: int | None = None, *, seed: int | None = None) -> Release:
        """Draw so many cases as a release in memory, which :meth:`write` does not need."""
        started = time.perf_counter()
        variants = self.sample(cases, seed=seed)
        if variants.events > _MOST_EVENTS:
            raise ParameterError(
                "model-release-events-too-many", parameter="cases", cases=variants.cases, events=variants.events
            )
        return self._make_release(variants, shuffled(variants, _generator(seed)), time.perf_counter() - started)

    def draws(self, cases: int | None, *, seed: int | None = None) -> Iterator[IntArray]:
        """Yield so many cases, as places in :attr:`columns`, in pieces of limited size.

        None means without end.
        """
        left, rng, size = None if cases is None else self._number(cases), _generator(seed), _FIRST
        seen, done = np.zeros(len(self.columns), dtype=np.int64), 0
        while left is None or left > 0:
            number = size if left is None else min(size, left)
            if left is None or done < _FRESH:
                counts = sample(self.trained, number, rng)
                seen, done = seen + counts, done + number
            else:
                counts = rng.multinomial(number, seen / done)
            yield rng.permutation(np.repeat(np.arange(len(self.columns)), counts))
            left = None if left is None else left - number
            size = _PIECE

    def traces(self, *, seed: int | None = None) -> Iterator[tuple[str, ...]]:
        """Yield cases without end, each a tuple of activities."""
        known = list(self.columns)
        for owner in self.draws(None, seed=seed):
            yield from (known[i] for i in owner.tolist())

    def write(
        self,
        path: str | Path,
        cases: int | None = None,
        *,
        seed: int | None = None,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> Variants:
        """Draw so many cases into a log file, in constant memory; return their variants.

        The suffix decides the format, as for :func:`veilog.write`. veilog refuses if the disk has no room for the file.
        It replaces an existing file only with ``overwrite``.
        """
        number = self._number(cases)
        suffix = files.check_target(path, overwrite=overwrite)
        metadata = self._metadata()
        if number <= _WHOLE:
            owner = np.concatenate(list(self.draws(number, seed=seed)))
            files.write(self._piece(owner, 0, metadata), path, overwrite=overwrite)
            return self.trained.variants(np.bincount(owner, minlength=len(self.columns)))
        self._check_room(number, Path(path), suffix, metadata)
        counts = np.zeros(len(self.columns), dtype=np.int64)

        def pieces() -> Iterator[EventLog]:
            done = 0
            for owner in self.draws(number, seed=seed):
                yield self._piece(owner, done, metadata)
                counts[:] += np.bincount(owner, minlength=len(counts))
                done += len(owner)
                if progress is not None:
                    progress(f"{done:,} of {number:,} cases", done / number)

        files.write_pieces(pieces(), path, overwrite=overwrite)
        return self.trained.variants(counts)

    def _number(self, cases: int | None) -> int:
        if cases is None:
            return self.cases
        if isinstance(cases, bool) or not isinstance(cases, int) or not 1 <= cases <= _MOST_CASES:
            raise ParameterError("model-cases-out-of-range", parameter="cases", most_cases=_MOST_CASES, cases=cases)
        return cases

    def _make_release(self, variants: Variants, order: Int32Array, seconds: float) -> Release:
        name = self.method + (" (as published)" if self.as_published else "")
        epsilon, delta = compose(self.guarantee.charges)
        operation = Operation("control flow (variants)", name, round_up(epsilon), round_up(delta))
        return Release(
            method=self.method,
            as_published=self.as_published,
            parameters=self.parameters,
            variants=variants,
            guarantee=self.guarantee,
            owner_only=OwnerOnly(seconds=seconds),
            remarks=self.remarks,
            order=order,
            operations=(operation,),
        )

    def _metadata(self) -> Metadata:
        """Return the metadata that a release from this model has."""
        one = np.zeros(len(self.columns), dtype=np.int64)
        one[0] = 1
        return self._make_release(self.trained.variants(one), np.zeros(1, dtype=np.int32), 0.0).log.metadata

    def _piece(self, owner: IntArray, before: int, metadata: Metadata) -> EventLog:
        """Return these cases as an event log, named in continuation of so many before."""
        return as_released(assemble_log(Details(self.columns.take(owner)), Metadata(), before=before), metadata)

    def _check_room(self, number: int, path: Path, suffix: str, metadata: Metadata) -> None:
        """Refuse what the disk cannot hold, going by the size of a few cases."""
        owner = next(self.draws(_FIRST, seed=0))
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder) / f"probe{suffix}{'.gz' if path.name.lower().endswith('.gz') else ''}"
            files.write_pieces([self._piece(owner, number - _FIRST, metadata)], probe)
            need = probe.stat().st_size * number // _FIRST
        free = shutil.disk_usage(path.resolve().parent).free
        if need > free:
            raise OutputError(
                "model-cases-over-memory",
                path=path,
                number=number,
                gigabytes=_gigabytes(need),
                gigabytes_2=_gigabytes(free),
            )

    # Keeping --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model to one file, whole or not at all; equal models give equal bytes.

        An existing file is replaced only with ``overwrite``.
        """
        trained, arrays = trained_to(self.trained)
        facts = to_plain(_Facts(self.method, self.as_published, self.parameters, self.guarantee, self.software))
        facts |= {"remarks": [remark.to_json() for remark in self.remarks], "trained": trained}
        naming = None if self.entry is None else self.entry.naming(path)
        modelfile.write(Content(_MODEL, facts, arrays), path, naming, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> Model:
        """Return the model in a file; :class:`~veilog.InputError` if damaged or none."""
        content = modelfile.read(path, _MODEL)
        facts = dict(content.facts)
        try:
            trained, remarks = facts.pop("trained"), facts.pop("remarks")
            found = from_plain(_Facts, facts)
            _check_printable([*facts.values(), remarks])
            return Model(
                method=found.method,
                as_published=found.as_published,
                parameters=found.parameters,
                trained=trained_from(trained, content.arrays),
                guarantee=found.guarantee,
                remarks=tuple(message_from(remark) for remark in remarks),
                software=found.software,
            )
        except (ValueError, KeyError, TypeError, AttributeError, Damaged) as error:
            raise InputError("model-contents-inconsistent", path=path, reason=error) from None


def _generator(seed: int | None) -> np.random.Generator:
    return np.random.default_rng(None if seed is None else checked_seed(seed))


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"


def _check_printable(value: Any) -> None:
    """Raise :class:`Misfit` if a text could steer the terminal that shows it."""
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    for item in items:
        _check_printable(item)
    if isinstance(value, str) and not value.isprintable():
        raise Misfit("a text holds what cannot be printed")


# From a log to a trained model: choose a method, train within a budget, derive the guarantee, keep checkpoints.

ONE_RUN = Condition("one-run", "program", Message("one-run-only"))
"""Condition of a guarantee whose run was kept in checkpoints without a ledger."""
_CHECKPOINT = "checkpoint"
_KEY_BYTES = 32


class CheckpointFile:
    """The checkpoint of one run: it finds what to resume, writes, and clears up."""

    def __init__(self, path: str | Path) -> None:
        self.path = check_writable(path)
        self.key_path = self.path.with_name(self.path.name + ".key")
        self.taken_path = self.path.with_name(self.path.name + ".taken")
        self._mark: tuple[int, int, int] | None = None
        self._identity: dict[str, Any] = {}
        self._found: Content | None = None
        if not self.path.exists():
            self._refuse_taken()
            self.key = secrets.token_bytes(_KEY_BYTES)
            return
        self._found = modelfile.read(self.path, _CHECKPOINT)
        try:
            self.key = self.key_path.read_bytes()
        except OSError as error:
            raise InputError("checkpoint-key-not-readable", path=self.key_path, reason=error.strerror) from None
        if len(self.key) != _KEY_BYTES:
            raise InputError("checkpoint-key-invalid", path=self.key_path)

    @property
    def found(self) -> bool:
        """True if there is a run to go on with."""
        return self._found is not None

    @property
    def written(self) -> bool:
        """True if this run has written a checkpoint."""
        return self._mark is not None

    def digest(self, log: Variants) -> str:
        """Return a keyed digest of the log, which reveals nothing without the key."""
        keyed = hmac.new(self.key, digestmod=hashlib.sha256)
        for part in (json.dumps(log.labels).encode(), log.codes.tobytes(), log.offsets.tobytes(), log.counts.tobytes()):
            keyed.update(len(part).to_bytes(8, "little") + part)
        return keyed.hexdigest()

    def begin(self, log: Variants, request: Mapping[str, Any]) -> Content | None:
        """Take the checkpoint for this run, if any; refuse that of another log or request.

        ``request`` holds plain values: the whole request.
        """
        digest = self.digest(log)
        self._identity = {"log": digest, "request": dict(request)}
        if self._found is None:
            return None
        facts = self._found.facts
        kept = facts.get("request")
        if not isinstance(kept, dict) or not isinstance(facts.get("log"), str):
            raise InputError("checkpoint-not-of-training", path=self.path)
        for name in sorted(kept.keys() | request.keys()):
            if kept.get(name) != request.get(name):
                raise ParameterError(
                    "checkpoint-setting-differs",
                    parameter=name,
                    name=self.path.name,
                    name_2=name,
                    said=_value_text(kept.get(name)),
                    said_2=_value_text(request.get(name)),
                )
        if not hmac.compare_digest(facts["log"].encode(), digest.encode()):
            raise ParameterError("checkpoint-of-other-log", parameter="log", name=self.path.name)
        self._refuse_taken()
        try:
            self.path.rename(self.taken_path)
        except OSError as error:
            raise OutputError("checkpoint-not-takable", path=self.path, reason=error.strerror) from error
        return self._found

    def save(self, facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Write the checkpoint, whole or not at all; then the taken one is removed."""
        self._refuse_foreign()
        if self._mark is None and self._found is None:
            self._write_key()
        modelfile.write(Content(_CHECKPOINT, {**facts, **self._identity}, arrays), self.path)
        self._mark = _mark(self.path)
        self.taken_path.unlink(missing_ok=True)

    def give_back(self) -> None:
        """Put back the taken checkpoint if this run wrote none: nothing was spent."""
        if self._mark is None and self.taken_path.exists() and not self.path.exists():
            with contextlib.suppress(OSError):
                self.taken_path.rename(self.path)

    def _refuse_taken(self) -> None:
        if self.taken_path.exists():
            raise OutputError("checkpoint-taken", path=self.taken_path, name=self.path.name)

    def _refuse_foreign(self) -> None:
        """Refuse to write if the file is not this run's: another run has taken over."""
        if self._mark != _mark(self.path):
            raise OutputError("checkpoint-taken-or-replaced", path=self.path)

    def _write_key(self) -> None:
        try:
            self.key_path.unlink(missing_ok=True)  # from a run that never came to its first checkpoint
            descriptor = os.open(self.key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.key)
        except OSError as error:
            raise OutputError("file-not-writable", path=self.key_path, reason=error.strerror) from error


def remove(path: str | Path) -> None:
    """Remove a checkpoint and its key after the run is complete and its result kept."""
    place = Path(os.path.realpath(path))
    for old in (place, place.with_name(place.name + ".key")):
        with contextlib.suppress(OSError):
            old.unlink(missing_ok=True)


def _mark(path: Path) -> tuple[int, int, int] | None:
    """Return the mark that recognises a file without reading it, or None."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _value_text(value: Any) -> str | Message:
    return Message("names-none") if value is None else str(value)


_BLOCKS = 50
"""Approximate number of checkpoints in a run."""


@dataclass(frozen=True)
class ResumedState:
    """The state that earlier parts of this run left: empty at its start."""

    state: TrainingState | None = None
    remarks: tuple[Message, ...] = ()
    reasons: tuple[Message, ...] = ()
    """Reasons for no guarantee, which hold for the rest of the run, whatever it does."""
    conditions: tuple[Condition, ...] = ()
    entry: int | None = None
    """Its number in the ledger."""
    marks: tuple[str | None, ...] = ()
    """Marks of the checkpoint in the ledger: its own, and that of the one before it."""

    @property
    def complete(self) -> bool:
        """True if no query is left to make."""
        return self.state is not None and self.state.step == self.state.steps


def earlier_run(found: Content | None, keeper: CheckpointFile) -> ResumedState:
    """Return the state in a checkpoint; :class:`~veilog.InputError` if inconsistent."""
    if found is None:
        return ResumedState()
    try:
        entry = found.facts["entry"]
        if entry is not None and type(entry) is not int:
            raise Misfit("its entry in the ledger has no number")
        remarks, reasons = (tuple(map(message_from, found.facts[name])) for name in ("remarks", "reasons"))
        conditions = tuple(from_plain(Condition, fact) for fact in found.facts["conditions"])
        marks = tuple(found.facts.get("marks", ()))
        if not all(mark is None or type(mark) is str for mark in marks):
            raise Misfit("its marks are no texts")
        return ResumedState(state_from(found.facts["state"], found.arrays), remarks, reasons, conditions, entry, marks)
    except (Misfit, Damaged, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("checkpoint-contents-inconsistent", path=keeper.path, reason=error) from None


def case_randomness(keeper: CheckpointFile | None, seed: int | None) -> noise.Randomness:
    """Return the randomness that chooses the cases of people who have too many.

    It chooses the same ones in all parts of a run.
    """
    if seed is not None:
        return noise.seeded(seed)
    if keeper is None:
        return noise.operating_system()
    key = hmac.new(keeper.key, b"cases of people", hashlib.sha256).digest()
    return noise.seeded(int.from_bytes(key, "little"))


def source(seed: int | None, state: TrainingState | None) -> noise.Randomness:
    """Return the source of noise: never again the noise of an earlier part of the run."""
    if seed is None:
        return noise.operating_system()
    if state is None:
        return noise.seeded(seed)
    mixed = hashlib.sha256(f"{seed} {state.taken}".encode()).digest()
    return replace(noise.seeded(int.from_bytes(mixed, "little")), seed=seed)


@dataclass
class Saver:
    """A writer of checkpoints that a training calls with its state between steps.

    It writes a checkpoint before the steps that it counts, and stops the run if a user wants that. The file counts
    steps as spent that are still to come: a killed run cannot be resumed to take any of them again. A run that stops by
    itself leaves a file that counts what it took and no more.
    """

    keeper: CheckpointFile
    interrupts: Interrupts
    derive: Callable[[], Guarantee]
    remarks: list[Message]
    before: ResumedState
    entry: Reservation | None = None
    mark: str | None = None
    """Mark of this run's checkpoints in the ledger; the first takes over the earlier run's entry."""
    gap: int = 1
    """Largest number of steps between two calls."""
    _counted: int = field(default=-1, init=False)
    _complete: bool = field(default=False, init=False)

    def __call__(self, state: TrainingState) -> None:
        assert self._counted < 0 or state.step <= self._counted, "steps were taken that no checkpoint counts"
        self.interrupts.hold = not self._complete
        if state.step == state.steps:
            if not self._complete:
                self._write(state, 0)
                self._complete = True
            self.interrupts.release()
        elif self.interrupts.noted:
            self._write(state, 0)
            raise KeyboardInterrupt
        elif state.step + self.gap > self._counted:
            self._write(state, max(2 * self.gap, state.steps // _BLOCKS))

    def _write(self, state: TrainingState, ahead: int) -> None:
        counted = _count_ahead(state, ahead)
        facts, arrays = state_to(counted)
        guarantee = self.derive()
        others = {
            "state": facts,
            "remarks": [remark.to_json() for remark in self.remarks],
            "reasons": [reason.to_json() for reason in dict.fromkeys([*self.before.reasons, *guarantee.reasons])],
            "conditions": to_plain(tuple(dict.fromkeys([*self.before.conditions, *guarantee.conditions]))),
            "entry": None if self.entry is None else self.entry.number,
        }
        if self.entry is None:
            self.keeper.save(others, arrays)
        else:
            taking_over = self.entry.mark != self.mark
            marks = [self.mark, self.entry.mark] if taking_over else [self.mark]
            self.keeper.save({**others, "marks": marks}, arrays)
            if taking_over and self.mark is not None:
                self.entry = self.entry.take_over(self.mark, complete=self.before.complete)
        self._counted = counted.step


def _count_ahead(state: TrainingState, steps: int) -> TrainingState:
    """Return the state with so many more steps counted as taken, in the plan's order."""
    taken = []
    for had, part in zip(state.taken, state.plan, strict=True):
        more = min(steps, part.steps - had)
        taken.append(had + more)
        steps -= more
    return replace(state, taken=tuple(taken))


@contextlib.contextmanager
def settle_run(
    entry: Reservation,
    claimed: Callable[[], Guarantee],
    so_far: Callable[[], Guarantee],
    curator: Curator,
    keeper: CheckpointFile | None,
    *,
    again: bool,
) -> Iterator[None]:
    """Charge what a run claims to its ledger when it is complete.

    ``again`` means that it was complete before, and may be charged already. If it fails and its checkpoint can be
    resumed, all that was reserved stays so. Otherwise the queries until then (``so_far``) are charged or, if there were
    none, the reservation is withdrawn.
    """
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(VeilogError):
            if keeper is not None and (keeper.found or keeper.written):
                pass
            elif curator.contacted:
                entry.settle(so_far(), failed=True, whole=isinstance(error, QuestionError))
            else:
                entry.withdraw()
        raise
    states = {row.number: row.state for row in entry.entered.account().entries} if again else {}
    if not again or states.get(entry.number) == "reserved":
        entry.settle(claimed())


def claimed(
    guarantee: Guarantee, before: ResumedState, keeper: CheckpointFile | None, *, checked: bool = False
) -> Guarantee:
    """Return the guarantee with the conditions of all earlier parts of the run.

    One of them is that no part ran twice, unless a ledger has ``checked`` that.
    """
    if keeper is None:
        return guarantee
    conditions = dict.fromkeys([*before.conditions, *guarantee.conditions, *(() if checked else (ONE_RUN,))])
    return replace(guarantee, conditions=tuple(conditions), reasons=tuple(dict.fromkeys(guarantee.reasons)))


TRAINABLE = ("travag",)


def trainable(name: str) -> Method:
    """Return the method of this name, if it trains a model that can be kept."""
    chosen = method_named(name)
    if name not in TRAINABLE:
        raise ParameterError("method-without-model", parameter="method", name=name, names=", ".join(TRAINABLE))
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
    """Train a model on a log; drawing cases from the model spends nothing more.

    Args:
        log: the log, as for :func:`veilog.release`.
        method: name of a method that trains a model, or a whole request.
        ledger: as for :func:`veilog.release`.
        checkpoint: a file by which the run survives being stopped. The same call goes on where it was, and spends no
            more than one run would have. The file stays when the training is complete, so that the model is not lost
            before it is saved. Then remove it and its ``.key`` file.
        progress: called with a text and the fraction that is done.
        options: further arguments of :func:`veilog.release`, such as ``epsilon``.

    Returns:
        The model, with the guarantee of its training.

    Raises:
        ParameterError: if the method trains no model, or a checkpoint is of another log or request.

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
    configuration = travag.configure(settings, as_published=as_published)
    planned.check(log)
    account = chosen_ledger(ledger, seeded=seed is not None, progress=progress)

    keeper = None if checkpoint is None else CheckpointFile(checkpoint)
    held = bound_units(log, protected, case_randomness(keeper, seed))
    check_somebody(log, held)

    with contextlib.ExitStack() as stack:
        before = ResumedState()
        if keeper is not None:
            stack.callback(keeper.give_back)
            before = earlier_run(keeper.begin(held.variants, _run_settings(planned, account)), keeper)
        curator = Curator(held, domain=planned.public, randomness=source(seed, before.state))
        for reason in before.reasons:
            curator.peek(reason)
        derive = partial(curator.guarantee, nominal_epsilon=asked[0], nominal_delta=asked[1])
        found = entry = mark = None
        if account is not None:
            mark = None if keeper is None else secrets.token_hex(16)
            found = _resume_or_reserve(planned, log, account, before, mark)
            entry = replace(found, mark=mark)
            curator.before_first(found.begin)
        remarks: list[Message] = [*before.remarks, *protected.remarks]
        whole = partial(derive, at_least=(Fraction(0), Fraction(0)) if as_published else asked)
        if entry is not None:
            stack.enter_context(settle_run(entry, whole, derive, curator, keeper, again=before.complete))
        saver = None
        if keeper is not None:
            interrupts = stack.enter_context(hold_interrupts())
            interrupts.hold = True  # what is asked next is lost unless it comes to a checkpoint
            saver = Saver(keeper, interrupts, derive, remarks, before, found, mark)
        with with_a_share(Fraction(protected.most_cases)):
            trained = travag.train(
                curator, _request(planned, progress, remarks), configuration, resume=before.state, checkpoint=saver
            )
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


def _request(planned: ReleaseRequest, progress: Progress | None, remarks: list[Message]) -> Request:
    """Return the request to the method, with the budget of one case."""
    epsilon, delta = planned.unit.of_one_case(planned.epsilon, planned.delta)
    return Request(
        epsilon=epsilon,
        delta=delta,
        as_published=planned.as_published,
        progress=progress or (lambda text, fraction: None),
        score=lambda original, released: 0.0,  # of use to methods that choose their best release on raw data
        remark=lambda remark: remarks.append(as_message(remark)),
    )


def _run_settings(planned: ReleaseRequest, account: Ledger | None) -> dict[str, Any]:
    """Return the request of a run, by which its checkpoint is recognised."""
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


def _resume_or_reserve(
    planned: ReleaseRequest, log: EventLog | Variants, account: Ledger, before: ResumedState, mark: str | None
) -> Reservation:
    """Return this run's earlier reservation if no other resumed it, or a new one."""
    if before.entry is not None:
        return account.resume(log, before.entry, marks=before.marks, complete=before.complete)
    return reserve_budget(planned, log, account, mark=mark)

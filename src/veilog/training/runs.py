"""One run of a training, from its start or from a checkpoint on: what is kept of it, and its entry in a ledger."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from veilog._plain import Misfit, from_plain, to_plain
from veilog.errors import InputError, QuestionError, VeilogError
from veilog.ledger.runs import Reservation
from veilog.methods.travag.model import state_from, state_to
from veilog.methods.travag.settings import TrainingState
from veilog.modelfile import Content, Damaged
from veilog.privacy.account.guarantee import Condition, Guarantee
from veilog.privacy.mechanisms import noise
from veilog.training.checkpoints import ONE_RUN, CheckpointFile, Interrupts

_BLOCKS = 50
"""About so many checkpoints are written in a run."""


@dataclass(frozen=True)
class ResumedState:
    """What earlier parts of this run left: nothing, where it starts."""

    state: TrainingState | None = None
    remarks: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why there is no guarantee: holds for the rest of the run, whatever it does."""
    conditions: tuple[Condition, ...] = ()
    entry: int | None = None
    """Its number in the ledger."""
    marks: tuple[str | None, ...] = (None,)
    """What the ledger knows the checkpoint by: its own mark, and that of the one it went on from."""

    @property
    def complete(self) -> bool:
        """Whether no question is left to be asked."""
        return self.state is not None and self.state.step == self.state.steps


def earlier(found: Content | None, keeper: CheckpointFile) -> ResumedState:
    """What a checkpoint says; an :class:`~veilog.InputError` where that does not fit together."""
    if found is None:
        return ResumedState()
    try:
        entry = found.facts["entry"]
        if entry is not None and type(entry) is not int:
            raise Misfit("its entry in the ledger has no number")
        remarks, reasons = (tuple(str(text) for text in found.facts[name]) for name in ("remarks", "reasons"))
        conditions = tuple(from_plain(Condition, fact) for fact in found.facts["conditions"])
        marks = tuple(found.facts.get("marks", [None]))  # none before a ledger kept them
        if not all(mark is None or type(mark) is str for mark in marks):
            raise Misfit("its marks are no texts")
        return ResumedState(state_from(found.facts["state"], found.arrays), remarks, reasons, conditions, entry, marks)
    except (Misfit, Damaged, KeyError, TypeError) as error:
        raise InputError(f"The contents of this checkpoint do not fit together: {error}.", path=keeper.path) from None


def choosing(keeper: CheckpointFile | None, seed: int | None) -> noise.Randomness:
    """What chooses the cases of people who have too many: the same ones in all parts of a run."""
    if seed is not None:
        return noise.seeded(seed)
    if keeper is None:
        return noise.operating_system()
    key = hmac.new(keeper.key, b"cases of people", hashlib.sha256).digest()
    return noise.seeded(int.from_bytes(key, "little"))


def source(seed: int | None, state: TrainingState | None) -> noise.Randomness:
    """Where noise comes from: never again the noise that an earlier part of the run had."""
    if seed is None:
        return noise.operating_system()
    if state is None:
        return noise.seeded(seed)
    mixed = hashlib.sha256(f"{seed} {state.taken}".encode()).digest()
    return replace(noise.seeded(int.from_bytes(mixed, "little")), seed=seed)


@dataclass
class Saver:
    """Called by a training with its state between steps: writes a checkpoint before the steps that it counts, and
    stops the run where that was asked for.

    The file counts steps as spent that are still to come: a run that is killed cannot be resumed to take any of them
    again. A run that stops by itself leaves a file that counts what it took and no more.
    """

    keeper: CheckpointFile
    interrupts: Interrupts
    derive: Callable[[], Guarantee]
    remarks: list[str]
    before: ResumedState
    entry: Reservation | None = None
    mark: str | None = None
    """Of this run's checkpoints, for the ledger: the first of them takes the entry over from the run before."""
    gap: int = 1
    """Steps between two calls, at most."""
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
        counted = _ahead(state, ahead)
        facts, arrays = state_to(counted)
        guarantee = self.derive()
        others = {
            "state": facts,
            "remarks": list(self.remarks),
            "reasons": list(dict.fromkeys([*self.before.reasons, *guarantee.reasons])),
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


def _ahead(state: TrainingState, steps: int) -> TrainingState:
    """The state with so many more steps counted as taken, in the order of the plan."""
    taken = []
    for had, part in zip(state.taken, state.plan, strict=True):
        more = min(steps, part.steps - had)
        taken.append(had + more)
        steps -= more
    return replace(state, taken=tuple(taken))


@contextlib.contextmanager
def settling(
    entry: Reservation,
    claimed: Callable[[], Guarantee],
    so_far: Callable[[], Guarantee],
    contacted: Callable[[], bool],
    kept: Callable[[], bool],
    *,
    again: bool,
) -> Iterator[None]:
    """Charge what a run claims to its ledger when it is complete (``again``: it was before, and may be charged
    already).

    When it fails and can be gone on with (``kept``), all that was reserved stays so; otherwise what was asked until
    then (``so_far``) is charged, or, if nothing was, the reservation withdrawn.
    """
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(VeilogError):
            if not kept():
                if contacted():
                    entry.settle(so_far(), failed=True, whole=isinstance(error, QuestionError))
                else:
                    entry.withdraw()
        raise
    states = {row.number: row.state for row in entry.entered.account().entries}
    if not again or states.get(entry.number) == "reserved":
        entry.settle(claimed())


def claimed(
    guarantee: Guarantee, before: ResumedState, keeper: CheckpointFile | None, *, checked: bool = False
) -> Guarantee:
    """The guarantee with the conditions of all earlier parts of the run, and that no part ran twice, unless a ledger
    has ``checked`` that."""
    if keeper is None:
        return guarantee
    conditions = dict.fromkeys([*before.conditions, *guarantee.conditions, *(() if checked else (ONE_RUN,))])
    return replace(guarantee, conditions=tuple(conditions), reasons=tuple(dict.fromkeys(guarantee.reasons)))

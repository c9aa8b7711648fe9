"""Checkpoints of a training that asks raw data: resumed, a run goes on where it was, and spends what it would have.

A checkpoint holds what noised steps made of the data (which costs nothing more), how many steps count as spent, and
what the run was asked for. Three rules keep the account right:

- Steps are counted before they are done: the file on disk always says at least as many steps as were taken. What a
  killed run did after its last checkpoint is lost and counts as spent all the same.
- A checkpoint is taken, not read: resuming renames it first, so that only one run can go on from it, and the new run
  writes a checkpoint of its own before its first step. A run that finds another's checkpoint in its place stops.
- It fits one log and one request only. The log is recognised by a keyed digest (HMAC-SHA256); the key lies in a file
  of its own beside the checkpoint, because a digest without a key would let anybody test guesses of the whole log.

Two models made from copies of one checkpoint would cost more than either claims. A ledger knows which checkpoint of a
run was gone on with (:mod:`veilog.ledger.runs`) and refuses the other copies. Without one nothing stops a
person from resuming each copy; the guarantee then speaks of one run in which every checkpoint was resumed at most once.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from veilog import modelfile
from veilog._files import check_writable
from veilog._typing import AnyArray
from veilog.errors import InputError, OutputError, ParameterError
from veilog.logs.variants import Variants
from veilog.modelfile import Content
from veilog.privacy.account.guarantee import Condition

ONE_RUN = Condition("one-run", "program", "This is one run: no copy of a checkpoint was resumed beside it.")
"""What the guarantee of a run rests on that was kept in checkpoints without a ledger."""
_KIND = "checkpoint"
_KEY_BYTES = 32


class CheckpointFile:
    """Keeps the checkpoint of one run: finds what there is to resume, writes, and clears up at the end."""

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
        self._found = modelfile.read(self.path, _KIND)
        try:
            self.key = self.key_path.read_bytes()
        except OSError as error:
            raise InputError(
                f"The key of this checkpoint cannot be read: {error.strerror}.",
                path=self.key_path,
                advice="Without it nobody can tell whether the log is the same; put it back, or start anew.",
            ) from None
        if len(self.key) != _KEY_BYTES:
            raise InputError("This is not the key of a checkpoint.", path=self.key_path)

    @property
    def found(self) -> bool:
        """Whether there is a run to go on with."""
        return self._found is not None

    @property
    def written(self) -> bool:
        """Whether this run has written a checkpoint of its own."""
        return self._mark is not None

    def digest(self, log: Variants) -> str:
        """What the log is recognised by; says nothing about it to those who do not have the key."""
        keyed = hmac.new(self.key, digestmod=hashlib.sha256)
        for part in (json.dumps(log.labels).encode(), log.codes.tobytes(), log.offsets.tobytes(), log.counts.tobytes()):
            keyed.update(len(part).to_bytes(8, "little") + part)
        return keyed.hexdigest()

    def begin(self, log: Variants, request: Mapping[str, Any]) -> Content | None:
        """Take the checkpoint for this run, if there is one; refuses that of another log or request.

        ``request`` holds plain values: what was asked for, all of it.
        """
        digest = self.digest(log)
        self._identity = {"log": digest, "request": dict(request)}
        if self._found is None:
            return None
        facts = self._found.facts
        kept = facts.get("request")
        if not isinstance(kept, dict) or not isinstance(facts.get("log"), str):
            raise InputError("This checkpoint is not one of a training.", path=self.path)
        advice = "Give what it was started with, or another --checkpoint to start anew with a budget of its own."
        for name in sorted(kept.keys() | request.keys()):
            if kept.get(name) != request.get(name):
                raise ParameterError(
                    f"The checkpoint {self.path.name} was started with {name} = {_said(kept.get(name))}, not "
                    f"{_said(request.get(name))}.",
                    parameter=name,
                    advice=advice,
                )
        if not hmac.compare_digest(facts["log"].encode(), digest.encode()):
            raise ParameterError(f"The checkpoint {self.path.name} is of another log.", parameter="log", advice=advice)
        self._refuse_taken()
        try:
            self.path.rename(self.taken_path)
        except OSError as error:
            raise OutputError(f"The checkpoint cannot be taken: {error.strerror}.", path=self.path) from error
        return self._found

    def save(self, facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
        """Write the checkpoint, whole or not at all; the one that was taken is gone once this is there."""
        self._refuse_foreign()
        if self._mark is None and self._found is None:
            self._write_key()
        modelfile.write(Content(_KIND, {**facts, **self._identity}, arrays), self.path)
        self._mark = _mark(self.path)
        self.taken_path.unlink(missing_ok=True)

    def give_back(self) -> None:
        """Put back the checkpoint that was taken, where this run has written none of its own: nothing was spent."""
        if self._mark is None and self.taken_path.exists() and not self.path.exists():
            with contextlib.suppress(OSError):
                self.taken_path.rename(self.path)

    def _refuse_taken(self) -> None:
        if self.taken_path.exists():
            raise OutputError(
                "Another run has taken this checkpoint, and wrote none of its own so far.",
                path=self.taken_path,
                advice=f"Let it finish; only if it was killed may you rename this file to {self.path.name}.",
            )

    def _refuse_foreign(self) -> None:
        """Stop where the file is not the one that this run wrote: another run has taken over."""
        if self._mark != _mark(self.path):
            raise OutputError(
                "Another run has taken or replaced this run's checkpoint; this one stops, so as not to spend twice.",
                path=self.path,
                advice="Go on with the other run.",
            )

    def _write_key(self) -> None:
        try:
            self.key_path.unlink(missing_ok=True)  # of a run that never came to its first checkpoint
            descriptor = os.open(self.key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.key)
        except OSError as error:
            raise OutputError(f"The file cannot be written: {error.strerror}.", path=self.key_path) from error


def remove(path: str | Path) -> None:
    """Remove a checkpoint and its key: the run is complete and its result is kept elsewhere."""
    place = Path(os.path.realpath(path))
    for old in (place, place.with_name(place.name + ".key")):
        with contextlib.suppress(OSError):
            old.unlink(missing_ok=True)


def _mark(path: Path) -> tuple[int, int, int] | None:
    """What a file on disk is recognised by without reading it; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _said(value: Any) -> str:
    return "none" if value is None else str(value)


@dataclass
class Interrupts:
    """Whether somebody wants a run to stop, and whether it may be stopped at any moment."""

    hold: bool = False
    """A first Ctrl-C is only noted: the run stops by itself where it can be gone on with. A second does not wait."""
    noted: bool = False

    def release(self) -> None:
        """From here on any moment is a good one, also for a Ctrl-C that was noted."""
        self.hold = False
        if self.noted:
            raise KeyboardInterrupt


@contextlib.contextmanager
def held_interrupts() -> Iterator[Interrupts]:
    """Within the block Ctrl-C does what :class:`Interrupts` says; elsewhere than in the main thread nothing changes."""
    state = Interrupts()

    def note(number: int, frame: FrameType | None) -> None:
        if state.noted or not state.hold:
            raise KeyboardInterrupt
        state.noted = True

    if threading.current_thread() is not threading.main_thread():
        yield state
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield state
    finally:
        signal.signal(signal.SIGINT, before)

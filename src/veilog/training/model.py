"""A trained model: draws as many cases as wanted, as often as wanted, and never sees the log again.

What is drawn from a model is post-processing of it: it costs nothing, and the guarantee of the training holds for
everything together that is ever drawn, also with a known seed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veilog import modelfile
from veilog._plain import Misfit, from_plain, to_plain
from veilog._typing import Int32Array, IntArray
from veilog.errors import InputError, OutputError, ParameterError
from veilog.ledger.ledger import EntryRef
from veilog.logs import files
from veilog.logs.eventlog import EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Sequences, Variants
from veilog.messages import Message, message_from
from veilog.methods._events.assemble import Details, assembled, shuffled
from veilog.methods.travag import Trained, sample
from veilog.methods.travag.model import trained_from, trained_to
from veilog.modelfile import Content, Damaged
from veilog.privacy.account.budgets import compose
from veilog.privacy.account.guarantee import Guarantee, round_up
from veilog.releasing.result import Operation, OwnerOnly, Release, as_released

Progress = Callable[[str, float | None], None]

_KIND = "model"
_MOST_CASES = 10**12
_MOST_EVENTS = 100_000_000
"""Of a release that is made in memory; more are drawn and written piece by piece."""
_FRESH = 1_000_000
"""So many cases are drawn through the networks; of more, the others repeat the shares of these."""
_WHOLE = 50_000
"""Cases that are written as one log; more are in pieces."""
_PIECE = 50_000
_FIRST = 1_000
"""Cases of the first piece of a stream, which should come at once, and of a probe of how large a file gets."""


@dataclass(frozen=True)
class _Facts:
    """What the file of a model says, beside the trained generator and remarks."""

    method: str
    as_published: bool
    parameters: Mapping[str, str | bool | int | float | None]
    guarantee: Guarantee
    software: str


@dataclass(frozen=True, eq=False)
class Model:
    """A generator of variants with the guarantee of its training. Nothing in it was computed from raw data outside a
    charged question, unless the guarantee says so."""

    method: str
    as_published: bool
    parameters: Mapping[str, Any]
    trained: Trained
    guarantee: Guarantee
    remarks: tuple[Message, ...] = ()
    software: str = ""
    """What trained it, with its version."""
    entry: EntryRef | None = None
    """Where its training is entered in the ledger of its data, if it is; not part of its file."""

    def __repr__(self) -> str:
        return f"Model({self.method}, {len(self.columns)} variants, {self.guarantee.in_words()!r})"

    @property
    def columns(self) -> Sequences:
        """The variants that can be drawn; there are no others."""
        return self.trained.columns

    @property
    def cases(self) -> int:
        """How many cases a log of about the original's size has, from a noisy count; at least 1."""
        return max(1, self.trained.cases)

    # Drawing --------------------------------------------------------------------------------------------------------

    def sample(self, cases: int | None = None, *, seed: int | None = None) -> Variants:
        """So many cases (:attr:`cases` of them by default), as variants. A ``seed`` makes the draw repeatable and
        weakens nothing.

        The first million are drawn through the networks, each by itself. Any beyond are drawn by the shares that these
        have, which takes no time and changes shares by no more than a million draws leave open.
        """
        number, rng = self._number(cases), _generator(seed)
        fresh = min(number, _FRESH)
        counts = sample(self.trained, fresh, rng)
        if number > fresh:
            counts = counts + rng.multinomial(number - fresh, counts / fresh)
        return self.trained.variants(counts)

    def release(self, cases: int | None = None, *, seed: int | None = None) -> Release:
        """So many cases as a release, whose log is made in memory; :meth:`write` has no need of that."""
        started = time.perf_counter()
        variants = self.sample(cases, seed=seed)
        if variants.events > _MOST_EVENTS:
            raise ParameterError(
                "model-release-events-too-many", parameter="cases", cases=variants.cases, events=variants.events
            )
        return self._released(variants, shuffled(variants, _generator(seed)), time.perf_counter() - started)

    def draws(self, cases: int | None, *, seed: int | None = None) -> Iterator[IntArray]:
        """So many cases, without end where that is None, as places in :attr:`columns`, in pieces of limited size."""
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
        """Cases without end, one after the other, each a tuple of activities."""
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
        """Draw so many cases into a log file, piece by piece in constant memory; returns what was drawn.

        The suffix says how, as for :func:`veilog.write`. Refused where the disk has no room for it. A file that is
        there is replaced only with ``overwrite``.
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

    def _released(self, variants: Variants, order: Int32Array, seconds: float) -> Release:
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
        """What a release from this model says about itself."""
        one = np.zeros(len(self.columns), dtype=np.int64)
        one[0] = 1
        return self._released(self.trained.variants(one), np.zeros(1, dtype=np.int32), 0.0).log.metadata

    def _piece(self, owner: IntArray, before: int, metadata: Metadata) -> EventLog:
        """These cases as an event log, their names counting on from so many before."""
        return as_released(assembled(Details(self.columns.take(owner)), Metadata(), before=before), metadata)

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
        """Write the model to one file, whole or not at all; equal models give equal bytes. A file that is there is
        replaced only with ``overwrite``."""
        trained, arrays = trained_to(self.trained)
        facts = to_plain(_Facts(self.method, self.as_published, self.parameters, self.guarantee, self.software))
        facts |= {"remarks": [remark.to_json() for remark in self.remarks], "trained": trained}
        naming = None if self.entry is None else self.entry.naming(path)
        modelfile.write(Content(_KIND, facts, arrays), path, naming, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path) -> Model:
        """The model in a file; an :class:`~veilog.InputError` where the file is damaged, or no model."""
        content = modelfile.read(path, _KIND)
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
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ParameterError("disclosure-seed-invalid", parameter="seed", seed=seed)
    return np.random.default_rng(seed)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size < 1e11 else f"{size / 1e9:,.0f} GB"


def _check_printable(value: Any) -> None:
    """What is shown on a terminal as it is must not steer it."""
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    for item in items:
        _check_printable(item)
    if isinstance(value, str) and not value.isprintable():
        raise Misfit("a text holds what cannot be printed")

"""The result of a release: its guarantee, its log with metadata, and its file."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from veilog._files import path_of
from veilog._notebook import card, facts, paragraph, table
from veilog._plain import InJson, ToJson, to_json
from veilog._typing import Int32Array
from veilog._version import __version__
from veilog.errors import EmptyReleaseError
from veilog.ledger.ledger import EntryRef
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, LIFECYCLE, TIMESTAMP, EventLog
from veilog.logs.findings import Finding
from veilog.logs.metadata import ARTIFICIAL_TIMES, Attribute, Metadata, extensions_of
from veilog.logs.variants import Variants
from veilog.logs.xes.columns import legal_keys
from veilog.messages import Message, OwnerMessage
from veilog.methods._events.assemble import Details, assemble_log, eventless, pieces_of
from veilog.privacy.account.guarantee import Guarantee, Strength
from veilog.releasing.answers import Recording
from veilog.releasing.checks import Activities, json_of, json_of_checks
from veilog.releasing.losses import Loss
from veilog.releasing.spool import keep_until_written

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, float | None], None]

_EDGES: Mapping[Strength, str] = {
    "strong": "good", "good": "good", "moderate": "fair", "weak": "bad", "none in practice": "bad",
}  # fmt: skip
"""Style of the words about a guarantee, by protection level."""
NOISE_ONLY = Message("noise-only")
NOTHING_SURVIVED = ("nothing-survived", "nothing-survived-both-small", "nothing-survived-epsilon-small")
"""Codes of the first remark on an empty release."""
_PRIVACY = ("Privacy", "privacy", "http://www.xes-standard.org/privacy.xesext")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_COMPLETE = "complete"


@dataclass(frozen=True)
class Operation:
    """Step of making a release, with its epsilon and delta.

    All steps together use the epsilon and delta of the guarantee.
    """

    target: str
    method: str
    epsilon: float
    delta: float


@dataclass(frozen=True)
class OwnerOnly(ToJson):
    """Confidential facts, for the data owner alone; no query gave them."""

    losses: tuple[Loss, ...] = ()
    """More than 5 % of events, activities or cases that are left out; absent declared activities."""
    seconds: float = 0.0
    """Running time, which depends on the log."""
    notes: tuple[OwnerMessage, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Findings from reading the log, and from leaving something out of it."""
    warnings: Annotated[tuple[OwnerMessage, ...], InJson(left_out="at its default")] = ()
    """Warnings of its account."""


class CaseModel(Protocol):
    """Source of further cases by the noisy answers of a release.

    It is a :class:`veilog.ReleaseModel`.
    """

    def release(
        self, cases: int | None = None, *, where: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> Release:
        """Return so many cases as a release."""

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model to one file."""

    def check(self) -> None:
        """Refuse a model that is written to no file."""


@dataclass(frozen=True)
class Release:
    """Released log and its privacy guarantee.

    It depends on the raw data only through charged queries.
    """

    method: str
    as_published: bool
    parameters: Mapping[str, Any]
    variants: Variants
    guarantee: Guarantee
    owner_only: OwnerOnly
    """Confidential part, for the data owner alone; no written file holds any of it."""
    remarks: tuple[Message, ...] = ()
    """Remarks for the reader.
    With a guarantee, they come from public and released quantities only. Without one, they may hold exact numbers of
    the original and are for the data owner alone; see ``remarks_for_all``."""
    order: Int32Array = field(default_factory=lambda: np.zeros(0, dtype=np.int32), repr=False, compare=False)
    """Variant of each released case, in random order; empty if ``details`` or ``full`` have the cases."""
    operations: tuple[Operation, ...] = ()
    details: Details | None = None
    """The released cases with their times and attributes, where these were asked for."""
    full: EventLog | None = None
    """Log with fresh case names, released by a method that makes whole logs."""
    entry: EntryRef | None = None
    """Entry in the ledger of its data, if there is one."""
    declared_length: int | Literal["log"] | None = None
    """Declared public bound on the length of a trace, to which every case was cut.
    A method may have a setting of a similar name (``parameters``)."""
    activities: Activities | None = None
    """Way in which the names of its activities became public; None if unknown, as for a model from a file."""
    noise_only: bool | None = None
    """True if its own answers are like those about no cases at all; None if no answer shows that."""
    beside: Mapping[str, Release] = field(default_factory=dict)
    """Further releases of the same answers, by purpose; the guarantee holds for all together."""

    recording: Recording | None = field(default=None, repr=False, compare=False)
    """Noisy answers by which more cases are drawn; None if they were not kept."""

    def __post_init__(self) -> None:
        if not all(isinstance(remark, Message) for remark in self.remarks):
            raise TypeError("a remark is a Message: what is for the owner alone is in owner_only")

    @property
    def remarks_for_all(self) -> tuple[Message, ...]:
        """The remarks that others may read, too: none of a release without a guarantee."""
        return self.remarks if self.guarantee.proven else ()

    @property
    def all_for_owner(self) -> OwnerOnly:
        """Everything for the data owner alone, with the remarks that others may not read."""
        remarks = () if self.guarantee.proven else self.remarks
        hidden = (OwnerMessage(remark.code, **remark.values) for remark in remarks)
        return replace(self.owner_only, notes=(*self.owner_only.notes, *hidden))

    @cached_property
    def log(self) -> EventLog:
        """The release as an event log: fresh case names, cases in random order.

        A release without times gets artificial ones, an hour apart from 1970-01-01 on, because most tools sort by time.
        A log attribute marks them as artificial.
        """
        if self.full is not None:
            return as_released(self.full, _metadata(self))
        details = self.details or Details(self.variants.sequences.take(self.order))
        return as_released(assemble_log(details, Metadata()), _metadata(self))

    def __repr__(self) -> str:
        """Return the release and its guarantee; nothing that is for the data owner alone."""
        return f"Release({self.method}, {self.variants!r}, {self.guarantee!r}; losses: see released.owner_only)"

    def _repr_html_(self) -> str:
        """Return the same for notebooks, with the most frequent variants."""
        g, v = self.guarantee, self.variants
        name = self.method + (" (as published)" if self.as_published else "")
        rows = [(int(v.counts[i]), " > ".join(v.sequences[i]) or "(no events)") for i in v.by_frequency()[:5].tolist()]
        said = [paragraph(str(condition.only_if), "s") for condition in g.conditions]
        return card(
            f"Release by {name}",
            paragraph(g.in_words(), _EDGES[g.strength]),
            *said,
            facts([("cases", v.cases), ("events", v.events), ("variants", len(v))]),
            *([table(("cases", "most frequent variants"), rows, numbers=(0,))] if rows else []),
            *(paragraph(str(remark), "s") for remark in self.remarks_for_all),
            paragraph(str(Message("see-confidential")), "s"),
        )

    @cached_property
    def model(self) -> CaseModel:
        """Source of further cases by the noisy answers of the release.

        It is a :class:`veilog.ReleaseModel`.

        Raises:
            ParameterError: The answers were not kept; the error gives the reason.

        """
        made: CaseModel = importlib.import_module("veilog.releasing.model").ReleaseModel.of(self)
        return made

    def sample(
        self, cases: int | None = None, *, where: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> EventLog:
        """Draw cases by the noisy answers of the release, which uses no budget.

        The guarantee stays the same.

        Args:
            cases: Number of cases; by default as many as the release has.
            where: Values that every case has, by attribute, such as ``{"ward": "B"}``.
            seed: Makes the draw repeatable and weakens nothing.

        Returns:
            A log such as :attr:`log`, whose metadata name the release.

        Raises:
            ParameterError: The answers were not kept, the release has no such attribute, or hardly any case has these
                values.

        """
        return self.model.release(cases, where=where, seed=seed).log

    def to_pandas(self) -> pd.DataFrame:
        """Return the released events as a DataFrame with pm4py's columns."""
        return self.log.to_pandas()

    def save(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        spreadsheet_safe: bool = False,
        progress: Progress | None = None,
        model: str | Path | None = None,
    ) -> None:
        """Write the release to a file, whole or not at all.

        The suffix determines the format (.xes, .xes.gz, .csv, .parquet, .xlsx). The file is that of :attr:`log`, made
        and written piece by piece, so it may be larger than memory. Only times and attributes are held, and logs of
        methods that make whole logs.

        A second log of the same answers is written first, to a file named after it: ``out-models.xes`` for ``out.xes``.
        Files that are there are replaced only with ``overwrite``. ``spreadsheet_safe`` is as for :func:`veilog.write`.
        A ``model`` is written to another file (:meth:`veilog.ReleaseModel.save`).
        """
        path = path_of(path, "path")
        if self.variants.cases == 0:
            raise EmptyReleaseError(
                "release-empty",
                path=path,
                remarks=" ".join(str(remark) for remark in self.remarks if remark.code not in NOTHING_SURVIVED),
            )
        files.check_target(path, overwrite=overwrite)
        how = {"overwrite": overwrite, "spreadsheet_safe": spreadsheet_safe}
        if model is not None:
            self.model.check()
        with self.kept(path):
            self._write(path, progress, self.entry, **how)
        if model is not None:  # last: the release is there, whatever becomes of its model
            self.model.save(model, overwrite=overwrite)

    def kept(self, target: Path | None = None) -> contextlib.AbstractContextManager[None]:
        """Keep the release next to its ledger until this block has written a file.

        The block also enters the file. A release that is in no ledger is not kept.
        """
        entry = self.entry if self.variants.cases else None
        return keep_until_written(entry, lambda place: self._write(place, None, None, overwrite=True), target)

    def _write(self, path: Path, progress: Progress | None, entry: EntryRef | None, **told: bool) -> None:
        """Write the release, and before it other logs of the same answers.
        With an ``entry``, each file is entered."""
        for name, other in self.beside.items():
            other._write(files.named_after(path, name), progress, entry, **told)
        # The remarks list what a table cannot hold; a refusal here would lose a release that has used its budget.
        lossy = self.variants.events > 0
        say = progress or (lambda text, fraction: None)
        naming = None if entry is None else entry.naming(path, waiting=progress)
        how: dict[str, Any] = {**told, "naming": naming}
        if self.full is not None:
            files.write_named(self.log, path, lossy=lossy, **how)
        else:
            empty = eventless(self.variants, self.order, self.details)
            pieces = self._write_pieces(self._assemble_pieces(), say)
            without_events = empty if empty.num_rows else None
            files.write_pieces(pieces, path, lossy=lossy, eventless=without_events, **how)

    def _assemble_pieces(self) -> Iterator[EventLog]:
        done = 0
        for piece in pieces_of(self.variants, self.order, self.details):
            log = assemble_log(piece, Metadata(), before=done)
            yield log
            done += log.cases.num_rows

    def _write_pieces(self, pieces: Iterable[EventLog], progress: Progress) -> Iterator[EventLog]:
        metadata, done, cases = _metadata(self), 0, self.variants.cases
        for log in pieces:
            yield as_released(log, metadata)
            done += log.cases.num_rows
            progress(f"{done:,} of {cases:,} cases written", done / cases)

    def to_json(self) -> dict[str, object]:
        """Return the facts about the release, and only the numbers of the released cases."""
        return {
            "method": self.method,
            "as_published": self.as_published,
            "parameters": dict(self.parameters),
            "declared": {"max_length": self.declared_length},
            "guarantee": json_of(self.guarantee),
            **json_of_checks(self.guarantee, self.activities),
            **_sizes(self.variants),
            "noise_only": self.noise_only,
            "operations": to_json(self.operations),
            "remarks": [remark.to_json() for remark in self.remarks_for_all],
            "owner_only": self.all_for_owner.to_json(),
            **(
                {"beside": {name: _sizes(other.variants) for name, other in self.beside.items()}} if self.beside else {}
            ),
        }


def _sizes(variants: Variants) -> dict[str, int]:
    return {"cases": variants.cases, "events": variants.events, "variants": len(variants)}


def as_released(log: EventLog, metadata: Metadata) -> EventLog:
    """Return the log as published, with its metadata, legal XES keys and a life cycle.

    Some tools refuse a log without a life cycle. If none was released, every event is complete. This is a constant
    whatever the original has, so it depends on nothing in it.
    """
    events = log.events
    if LIFECYCLE not in events.column_names:
        codes = pa.array(np.zeros(events.num_rows, dtype=np.int32))
        events = events.append_column(LIFECYCLE, pa.DictionaryArray.from_arrays(codes, pa.array([_COMPLETE])))
    return replace(log, events=legal_keys(events), cases=legal_keys(log.cases), metadata=metadata)


def _metadata(released: Release) -> Metadata:
    """Return XES privacy metadata: a numbered child for each operation and remark.

    They follow Rafiei, van der Aalst, "Privacy-Preserving Data Publishing in Process Mining", 2020. They hold only
    facts of the guarantee, and no statistic of the original.

    They are nested strings, not containers, and the numbers are part of longer keys. So the file is XES 1.0, which has
    no containers, and in which no key begins with a digit.
    """
    details = released.details
    of_cases, of_events = ([], []) if details is None else (details.columns.cases, details.columns.events)
    full = released.full
    if full is not None:
        of_cases, of_events = full.cases.column_names, full.events.column_names
    anonymizations = tuple(
        Attribute(f"privacy:operation{i}", operation.method, "string", tuple(_facts(operation, released.guarantee)))
        for i, operation in enumerate(released.operations, 1)
    )
    remarks = tuple(
        _message_attribute(f"privacy:remark{i}", remark) for i, remark in enumerate(released.remarks_for_all, 1)
    )
    models = _models(released.guarantee)
    attributes = [Attribute("privacy:anonymizations", models, "string", (*anonymizations, *remarks))]
    timeless = details is None or details.times is None
    if full is not None:
        timeless = any(a.key == ARTIFICIAL_TIMES for a in full.metadata.attributes)
    if timeless:
        attributes.append(Attribute(ARTIFICIAL_TIMES, True, "boolean"))
    of_every_event = [Attribute(ACTIVITY, "", "string"), Attribute(TIMESTAMP, _EPOCH, "date")]
    if LIFECYCLE not in of_events:
        of_every_event.append(Attribute(LIFECYCLE, _COMPLETE, "string"))
    return Metadata(
        version="1.0",
        features="nested-attributes",
        extensions=(*extensions_of((ACTIVITY, TIMESTAMP, LIFECYCLE, *of_cases, *of_events)), _PRIVACY),
        globals=(("trace", (Attribute(ACTIVITY, "", "string"),)), ("event", tuple(of_every_event))),
        classifiers=(("Activity", ACTIVITY, "event"),),
        attributes=tuple(attributes),
    )


def _models(guarantee: Guarantee) -> str:
    models = ["differential privacy"] if guarantee.proven else []
    return ", ".join([*models, *(statement.model for statement in guarantee.statements)]) or "none proven"


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _conditions(guarantee: Guarantee) -> Iterable[Attribute]:
    """Return who declares each condition, and its text.
    A key occurs once, so conditions of one code are joined."""
    told: dict[str, Attribute] = {}
    for c in guarantee.conditions:
        key, before = f"privacy:condition-{c.code}", told.get(c.code)
        found = _message_attribute(key, c.text)
        text = f"{c.said_by}: {c.text.english}" if before is None else f"{before.value} {c.text.english}"
        told[c.code] = replace(found if before is None else before, value=text)
    return told.values()


def _facts(operation: Operation, guarantee: Guarantee) -> Iterable[Attribute]:
    facts: list[tuple[str, Any, str]] = [
        ("privacy:type", _models(guarantee), "string"),
        ("privacy:target", operation.target, "string"),
        ("privacy:method", operation.method, "string"),
        ("privacy:status", guarantee.status, "string"),
    ]
    said: list[Attribute] = []
    pairs = (
        ("privacy:epsilon", operation.epsilon if guarantee.proven else None),
        ("privacy:delta", operation.delta if guarantee.proven else None),
        ("privacy:total_epsilon", guarantee.epsilon if guarantee.proven else None),
        ("privacy:total_delta", guarantee.delta if guarantee.proven else None),
        ("privacy:guessing_advantage", guarantee.guessing_advantage),
        ("privacy:nominal_epsilon", guarantee.nominal_epsilon),
        ("privacy:nominal_delta", guarantee.nominal_delta),
    )
    if guarantee.charges:
        level = _message_attribute("privacy:level", guarantee.neighbours)
        said.append(replace(level, value=f"{guarantee.unit}: {guarantee.neighbours.english}"))
    facts += [] if guarantee.subset is None else [("privacy:subset", str(guarantee.subset), "string")]
    facts += [(key, value, "float") for key, value in pairs if value is not None]
    facts.append(("privacy:software", f"veilog {__version__}", "string"))
    said += _conditions(guarantee)
    said += [
        _message_attribute(f"privacy:holds-{letter}", statement.holds)
        for letter, statement in zip(_LETTERS, guarantee.statements, strict=False)
    ]
    said += [
        _message_attribute(f"privacy:reason-{letter}", reason)
        for letter, reason in zip(_LETTERS, guarantee.reasons, strict=False)
    ]
    return (*(Attribute(*fact) for fact in facts), *said)


def _message_attribute(key: str, message: Message) -> Attribute:
    """Return a message as an attribute with its sentence, code and values."""
    told = message.to_json()
    values = json.dumps(told["values"], ensure_ascii=False)
    inside = (Attribute("privacy:code", message.code, "string"), Attribute("privacy:values", values, "string"))
    return Attribute(key, told["text"], "string", inside)


def remarks_on(released: Variants) -> tuple[Message, ...]:
    """Return the remarks that any release may need: empty cases."""
    empty = int(released.counts[released.lengths == 0].sum())
    return (Message("release-cases-without-event", empty=empty),) if empty else ()

"""Models of releases, which draw any number of cases by noisy answers.

A model holds the request, the answers, the public facts and the random words of the method
(:mod:`veilog.releasing.answers`). To draw, the method runs again. Up to the last answer about control flow it has the
recorded words, so that each answer belongs to the same query. Then it goes on with fresh words and makes other variants
by the same answers. Times and attributes are drawn for these by the answers about them.

Privacy: nothing here sees a log. Everything drawn, however often, is computed of public facts, noisy answers and random
words that no noise was made of. The guarantee of the release holds for all of it together.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from veilog import modelfile
from veilog._plain import from_plain, to_plain
from veilog._typing import AnyArray, IntArray
from veilog._version import __version__
from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import ACTIVITY, EventLog
from veilog.logs.metadata import Metadata
from veilog.logs.variants import Repeated, Sequences, Variants
from veilog.messages import Message
from veilog.methods._events.assemble import Details, assemble_log, shuffled
from veilog.methods._events.attributes.synthesis import ReleasedColumns
from veilog.modelfile import Content, Damaged
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.domain import pair_of_times
from veilog.privacy.histograms import SparseHistogram
from veilog.privacy.partition import Partition
from veilog.releasing.answers import Answer, AnswerRecord, Recording, ReplayedCurator
from veilog.releasing.checks import Activities
from veilog.releasing.prior import PriorSource, PublicPrior
from veilog.releasing.request import ReleaseRequest, checked_seed
from veilog.releasing.result import Operation, OwnerOnly, Release
from veilog.releasing.run import Made, make_by_method

KIND = "release model"
MOST_CASES = 10_000_000
"""Most cases of a sample, which is held in memory."""
MOST_FLOWS = 10
"""Most runs of the method for one sample. Further cases repeat the variants of these runs in their shares."""
MOST_DRAWN, PIECE = 200, 100_000
"""Most cases drawn for each case with given values, and the size of a piece."""


@dataclass(frozen=True)
class _Facts:
    """Facts about its release in the file of a model."""

    method: str
    parameters: Mapping[str, Any]
    declared_length: int | Literal["log"] | None
    activities: Activities | None
    guarantee: Guarantee
    operations: tuple[Operation, ...]
    remarks: tuple[Message, ...]
    noise_only: bool | None
    digest: str
    software: str


@dataclass(eq=False)
class ReleaseModel:
    """Source of cases by the noisy answers of a release.

    >>> import veilog
    >>> from veilog.logs.synthetic.hospital import hospital
    >>> released = veilog.release(hospital(200, seed=1), "evolve", epsilon=1, activities="log", ledger=False)
    >>> released.model.sample(50).number_of_cases
    50
    """

    facts: _Facts
    recording: Recording

    @staticmethod
    def of(released: Release) -> ReleaseModel:
        """Return the model of a release, or refuse one whose answers were not kept."""
        if released.recording is None:
            raise _missing_error(released.method)
        facts = _Facts(
            method=released.method,
            parameters=released.parameters,
            declared_length=released.declared_length,
            activities=released.activities,
            guarantee=released.guarantee,
            operations=released.operations,
            remarks=released.remarks,
            noise_only=released.noise_only,
            digest=digest_of(released.variants),
            software=f"veilog {__version__}",
        )
        return ReleaseModel(facts, released.recording)

    def __repr__(self) -> str:
        return f"ReleaseModel({self.facts.method}, {self.facts.digest}, {self.guarantee.in_words()!r})"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release, which holds for it and all its samples together."""
        return self.facts.guarantee

    # Drawing --------------------------------------------------------------------------------------------------------

    def sample(
        self, cases: int | None = None, *, where: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> EventLog:
        """Return so many cases as a log; see :meth:`veilog.Release.sample`."""
        return self.release(cases, where=where, seed=seed).log

    def release(
        self, cases: int | None = None, *, where: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> Release:
        """Return a sample as a release, by default as large as the original release.

        ``where`` has values that every case has, by attribute; a ``seed`` makes the draw repeatable.
        """
        rng = np.random.default_rng(None if seed is None else checked_seed(seed))
        made = self._replayed[1]
        if not made.variants.cases:
            raise ParameterError("release-model-empty", parameter="cases")
        number = made.variants.cases if cases is None else cases
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST_CASES:
            raise ParameterError("model-cases-out-of-range", parameter="cases", most_cases=MOST_CASES, cases=cases)
        chosen = self._choose_values(where or {}, made)
        pool = self._variants(number, rng)
        if made.drawing is None or made.details is None:
            variants = pool.with_counts(_draw_cases(pool.counts, number, rng))
            return self._assemble_release(variants, None, shuffled(variants, rng))
        known = _relabel(pool, made.details.cases.labels) or made.variants
        sequences = _encode_sequences(known.sequences, made.details.cases.labels)
        details = _join_pieces(list(self._pieces(sequences, known.counts, number, chosen, rng)), number)
        details = made.drawing.linked(details, rng)
        assert isinstance(details.cases, Repeated)
        counts = np.bincount(details.cases.owner, minlength=len(sequences))
        return self._assemble_release(known.with_counts(counts), details, np.zeros(0, dtype=np.int32))

    @cached_property
    def _replayed(self) -> tuple[ReplayedCurator, Made]:
        """The same release again.
        It must come out as it was. Elsewhere numbers may be rounded differently, and another version may ask other
        queries."""
        request, record = self.recording.request, self.recording.record
        curator = ReplayedCurator(record, request.public, request.unit, request.subset)
        made = self._check_run(lambda: make_by_method(curator, request))  # type: ignore[arg-type]
        if digest_of(made.variants) != self.facts.digest:
            raise self._version_error()
        return curator, made

    def _check_run(self, run: Any) -> Any:
        try:
            return run()
        except Damaged:
            raise self._version_error() from None

    def _version_error(self) -> ParameterError:
        return ParameterError("release-model-of-other-version", parameter="model", software=self.facts.software)

    def _variants(self, cases: int, rng: np.random.Generator) -> Variants:
        """Return variants by the answers about control flow.
        The method runs as often as is sensible to reach at least ``cases``."""
        curator, made = self._replayed
        counts: Counter[Sequence[str]] = Counter()
        for _ in range(min(-(-cases // made.variants.cases), MOST_FLOWS)):
            curator.rewind(made.for_flow.start, made.for_flow.stop, rng)
            drawn = self._check_run(made.flow)
            counts.update(drawn.to_dict())
        return Variants.from_dict(counts) if counts else made.variants

    def _pieces(
        self, sequences: Sequences, counts: IntArray, number: int, where: Sequence[Partition], rng: np.random.Generator
    ) -> Iterator[Details]:
        """Yield pieces with times and attributes, up to ``number`` cases as in ``where``."""
        drawing = self._replayed[1].drawing
        assert drawing is not None
        left, drawn, most = number, 0, MOST_DRAWN * number + PIECE
        while left > 0:
            size = left if not where else min(max(2 * left * max(drawn, 1) // max(number - left, 1), 1_000), PIECE)
            if drawn + size > most:
                raise ParameterError(
                    "sample-values-rare",
                    parameter="where",
                    where=", ".join(map(str, where)),
                    cases=number - left,
                    drawn=drawn,
                )
            owner = np.repeat(np.arange(len(counts)), _draw_cases(counts, size, rng))
            details = drawing.of(Repeated(sequences, rng.permutation(owner)), rng)
            drawn += size
            if where:
                details = _rows(details, _cases_holding(details, where))
            left -= len(details.cases)
            yield details

    def _choose_values(self, where: Mapping[str, Any], made: Made) -> list[Partition]:
        """Return the values that cases must have, each of a released attribute.
        Persons are made up at the end, so their column cannot be chosen."""
        columns = ReleasedColumns({}, {}) if made.details is None else made.details.columns
        persons = None if made.drawing is None or made.drawing.persons is None else made.drawing.persons.column
        known = [name for name in (*columns.cases, *columns.events) if name != persons]
        for name in where:
            if name.removeprefix("case:") not in known and name not in known:
                raise ParameterError(
                    "sample-attribute-missing",
                    parameter="where",
                    name=name,
                    names=", ".join(known) or Message("names-none"),
                )
        return [Partition.of(f"case:{name.removeprefix('case:')}={value}") for name, value in where.items()]

    def _assemble_release(self, variants: Variants, details: Details | None, order: Any) -> Release:
        facts = self.facts
        return Release(
            method=facts.method,
            as_published=False,
            parameters=facts.parameters,
            variants=variants,
            guarantee=facts.guarantee,
            owner_only=OwnerOnly(),
            remarks=(*facts.remarks, Message("sample-of-release", digest=facts.digest)),
            order=order,
            operations=facts.operations,
            details=details,
            declared_length=facts.declared_length,
            activities=facts.activities,
            noise_only=facts.noise_only,
        )

    # Keeping --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the model to one file, whole or not at all.

        A file that is there is replaced only with ``overwrite``.

        Raises:
            ParameterError: The release has a seed, or a prior with times, which are in no file.

        """
        modelfile.write(self._content(), path, overwrite=overwrite)

    def check(self) -> None:
        """Refuse a release whose model cannot be in a file."""
        check_kept(self.recording.request)

    def _content(self) -> Content:
        self.check()
        request: ReleaseRequest = self.recording.request
        asked = {name: value for name, value in request.to_json().items() if name not in ("prior", "prior_map")}
        if request.rules is not None:
            asked["rules"] = request.rules.to_json()
        entries, arrays = _encode_record(self.recording.record)
        facts = {"release": to_plain(self.facts), "request": asked, "public": self.recording.record.facts}
        if request.declared.window is not None:  # the JSON of a request has it only with times
            facts["window"] = [end.isoformat() for end in request.declared.window]
        if request.prior is not None:
            kept = request.prior.variants
            facts["prior"] = {"model": request.prior.of_models, "labels": list(kept.labels)}
            arrays |= {f"prior {name}": getattr(kept, name) for name in ("codes", "offsets", "counts")}
        return Content(KIND, {**facts, "entries": entries}, arrays)

    @staticmethod
    def load(path: str | Path) -> ReleaseModel:
        """Return the model in a file.

        Raises:
            InputError: The file is damaged, or is no model of a release.

        """
        content = modelfile.read(path, KIND)
        try:
            facts = from_plain(_Facts, content.facts["release"])
            request = ReleaseRequest.from_json(content.facts["request"])
            if "window" in content.facts:
                window = pair_of_times(content.facts["window"])
                request = request.declaring(replace(request.declared, window=window))
            if "prior" in content.facts:
                request = replace(request, prior=_prior(content))
            record = AnswerRecord(
                _decode_record(content.facts["entries"], content.arrays), dict(content.facts["public"])
            )
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, Damaged) as error:
            raise InputError("model-contents-inconsistent", path=os.fspath(path), reason=error) from None
        return ReleaseModel(facts, Recording(request, record))


def check_kept(request: ReleaseRequest) -> None:
    """Refuse, before any query, a release whose model cannot be in a file."""
    if request.as_published or request.method.package or request.method.full_log or request.method.draws:
        raise _missing_error(request.method.name)
    if request.seed is not None:
        raise ParameterError("release-model-with-seed", parameter="model")
    if request.prior is not None and request.prior.logs:
        raise ParameterError("release-model-with-prior-times", parameter="model")


def _missing_error(name: str) -> ParameterError:
    return ParameterError("release-model-missing", parameter="model", name=name)


def digest_of(variants: Variants) -> str:
    """Return what names a release: the first digits of a digest of its variants."""
    found = hashlib.sha256(repr(variants.labels).encode())
    for array in (variants.codes, variants.offsets, variants.counts):
        found.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return found.hexdigest()[:16]


# Cases --------------------------------------------------------------------------------------------------------------


def _draw_cases(counts: IntArray, number: int, rng: np.random.Generator) -> IntArray:
    """Return ``number`` random cases; beyond all cases, draw them by their shares."""
    whole = int(counts.sum())
    if number <= whole:
        return rng.multivariate_hypergeometric(counts, number, method="marginals")
    return rng.multinomial(number, counts / whole)


def _relabel(variants: Variants, labels: tuple[str, ...]) -> Variants | None:
    """Return the variants with only these labels; None if there is none.
    Times and attributes are known for these labels."""
    own = {*labels}
    strange = np.array([label not in own for label in variants.labels], dtype=bool)[variants.codes]
    owners = np.repeat(np.arange(len(variants)), variants.lengths)
    left = np.bincount(owners[strange], minlength=len(variants)) == 0
    return variants.with_counts(np.where(left, variants.counts, 0)) if left.any() else None


def _encode_sequences(sequences: Sequences, labels: tuple[str, ...]) -> Sequences:
    """Return the sequences with their codes by these labels."""
    place = {label: code for code, label in enumerate(labels)}
    codes = np.array([place[label] for label in sequences.labels], dtype=np.int32)
    return Sequences(labels, codes[sequences.codes] if len(codes) else sequences.codes, sequences.offsets)


def _cases_holding(details: Details, where: Sequence[Partition]) -> IntArray:
    """Return the places of cases that have these values."""
    log = assemble_log(details, Metadata())
    for partition in where:
        log = partition.of_log(log)
    return np.asarray(log.cases.column(ACTIVITY).cast(pa.int64()).to_numpy() - 1)


def _rows(details: Details, rows: IntArray) -> Details:
    """Return these cases alone."""
    cases = details.cases
    assert isinstance(cases, Repeated)
    kept = Repeated(cases.distinct, cases.owner[rows])
    events = pa.array(np.repeat(cases.offsets[rows] - kept.offsets[:-1], kept.lengths) + np.arange(kept.events))
    columns = ReleasedColumns(
        {name: column.take(events) for name, column in details.columns.events.items()},
        {name: column.take(pa.array(rows)) for name, column in details.columns.cases.items()},
    )
    return Details(kept, None if details.times is None else details.times[events.to_numpy()], columns)


def _join_pieces(pieces: Sequence[Details], number: int) -> Details:
    """Return the first ``number`` cases of all pieces, which have the same sequences."""
    if len(pieces) == 1 and len(pieces[0].cases) == number:
        return pieces[0]

    def together(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {
            name: pa.chunked_array([chunk for one in columns for chunk in _chunks(one[name])]).combine_chunks()
            for name in columns[0]
        }

    first = pieces[0].cases
    assert isinstance(first, Repeated)
    owners = [piece.cases.owner for piece in pieces if isinstance(piece.cases, Repeated)]
    times = [piece.times for piece in pieces if piece.times is not None]
    whole = Details(
        Repeated(first.distinct, np.concatenate(owners)),
        np.concatenate(times) if times else None,
        ReleasedColumns(
            together([piece.columns.events for piece in pieces]), together([piece.columns.cases for piece in pieces])
        ),
    )
    return _rows(whole, np.arange(number))


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


# Files --------------------------------------------------------------------------------------------------------------


def _encode_record(record: AnswerRecord) -> tuple[list[list[Any]], dict[str, AnyArray]]:
    """Return the entries by name, kind, sizes and texts, and one array of all numbers."""
    entries: list[list[Any]] = []
    numbers: list[IntArray] = []
    for name, answer in record.entries:
        texts: list[str] = []
        parts: list[npt.NDArray[np.integer]]
        if isinstance(answer, SparseHistogram):
            kind, parts = "bins", [answer.bins, answer.counts]
        elif isinstance(answer, Variants):
            kind, parts, texts = "variants", [answer.codes, answer.offsets, answer.counts], list(answer.labels)
        elif isinstance(answer, np.ndarray):
            kind, parts = "array", [answer]
        elif isinstance(answer, tuple) and all(isinstance(text, str) for text in answer):
            kind, parts, texts = "texts", [], [str(text) for text in answer]
        else:
            kind, parts = (
                ("pair", [np.array(answer)]) if isinstance(answer, tuple) else ("number", [np.array([answer])])
            )
        entries.append([name, kind, [part.size for part in parts], texts])
        numbers += [part.astype(np.int64).ravel() for part in parts]
    whole = np.concatenate([*numbers, np.zeros(0, dtype=np.int64)])
    small = not whole.size or bool(np.abs(whole).max() < 2**31)
    return entries, {"answers": whole.astype(np.int32) if small else whole}


def _decode_record(entries: Any, arrays: Mapping[str, AnyArray]) -> list[tuple[str, Answer]]:
    """Return the entries that :func:`_encode_record` wrote; a ValueError for others."""
    numbers, place, found = arrays["answers"].astype(np.int64), 0, list[tuple[str, Answer]]()
    for name, kind, sizes, texts in entries:
        parts = []
        for size in sizes:
            if type(size) is not int or not 0 <= size <= len(numbers) - place:
                raise ValueError("sizes of answers do not fit")
            parts.append(numbers[place : place + size].copy())
            place += size
        answers: Mapping[str, Any] = {
            "bins": lambda parts=parts: SparseHistogram(*parts),
            "variants": lambda parts=parts, texts=texts: Variants.from_arrays(tuple(texts), *parts),
            "array": lambda parts=parts: parts[0],
            "texts": lambda texts=texts: tuple(map(str, texts)),
            "pair": lambda parts=parts: tuple(parts[0].tolist()),
            "number": lambda parts=parts: int(parts[0][0]),
        }
        found.append((str(name), answers[kind]()))
    return found


def _prior(content: Content) -> PublicPrior:
    known = content.facts["prior"]
    parts = [content.arrays[f"prior {name}"] for name in ("codes", "offsets", "counts")]
    variants = Variants.from_arrays(tuple(map(str, known["labels"])), *parts)
    return PublicPrior((PriorSource("model" if known["model"] else "log", "prior", None, variants),))

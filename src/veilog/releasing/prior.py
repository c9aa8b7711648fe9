"""Public knowledge about a process, as the prior of a release.

The sources are logs of others, models, lists of variants and releases. A prior is read before anything is asked, and
uses no epsilon. It decides only which queries are asked and how the answers are used. The data owner declares that a
file is public, which is a condition of the guarantee. One source needs no such condition: a release that is proven
under conditions which the new one has, too. It is given as a :class:`Release` or as a file that the ledger knows by its
digest. What it reveals of a case is counted already.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from veilog.errors import InputError, ParameterError
from veilog.logs.eventlog import EventLog
from veilog.logs.files import read, read_variants
from veilog.logs.input.activity_mapping import ActivityMapping, mapped_by
from veilog.logs.variants import Variants
from veilog.messages import Message
from veilog.mining.model_files import read_model
from veilog.mining.replay import Net
from veilog.modelfile import is_model_file
from veilog.privacy.account.guarantee import Condition
from veilog.releasing.result import Release

Kind: TypeAlias = Literal["log", "model", "variants", "release"]
PriorItem: TypeAlias = "str | Path | EventLog | Variants | Release"
PriorChoice: TypeAlias = "PriorItem | Iterable[PriorItem]"

WALKS, MOST_EVENTS, MOST_STEPS = 5_000, 200, 2_000
"""Number of walks through a model; a walk with more events or steps than these is no case."""
_MODELS = (".bpmn", ".pnml", ".ptml")


@dataclass(frozen=True, eq=False)
class PriorSource:
    """One file or log of a prior."""

    kind: Kind
    name: str
    sha256: str | None
    variants: Variants
    log: EventLog | None = None
    """Its events, where their times or attributes are asked for."""
    under: frozenset[str] | None = None
    """Conditions under which it is a proven release; None if only the data owner declares it public."""

    def to_json(self) -> dict[str, object]:
        """Return its kind and digest, and nothing of its content or place."""
        return {"kind": self.kind, **({"sha256": self.sha256} if self.sha256 else {})}

    @property
    def labels(self) -> tuple[str, ...]:
        """Its activities; a log may list such as have no event."""
        return (*self.variants.labels, *(() if self.log is None else self.log.activity_codes[0]))

    def mapped(self, names: ActivityMapping) -> PriorSource:
        """Return it with its activities mapped."""
        log = None if self.log is None else names.of_log(self.log)
        return replace(self, variants=names.of_variants(self.variants), log=log)


@dataclass(frozen=True, eq=False)
class PublicPrior:
    """All sources of a prior, by which a request starts."""

    sources: tuple[PriorSource, ...]
    mapping: str | None = None
    """The file that maps activities of the prior to own ones."""

    @staticmethod
    def of(given: PriorChoice | None, mapping: str | Path | None = None, *, events: bool = False) -> PublicPrior | None:
        """Return the prior of these files or logs, its activities mapped; None for none.

        Its events are held if ``events`` are asked for, too.
        """
        if given is None or given == ():
            if mapping is not None:
                raise ParameterError("prior-map-without-prior", parameter="prior_map")
            return None
        several = [given] if isinstance(given, str | Path | EventLog | Variants | Release) else [*given]
        names = mapped_by(mapping)
        sources = [_source(one, events=events) for one in several]
        if names is not None:
            known = {label: label for source in sources for label in source.labels} | dict(names.groups)
            names = replace(names, groups=known)
            sources = [source.mapped(names) for source in sources]
        empty = next((source for source in sources if not source.variants.cases), None)
        if empty is not None:
            raise ParameterError("prior-empty", parameter="prior", name=empty.name)
        return PublicPrior(tuple(sources), None if mapping is None else str(mapping))

    @cached_property
    def variants(self) -> Variants:
        """The cases of all sources.

        The number of cases of a model means nothing, so a model counts as much as all logs together.
        """
        logs = sum(source.variants.cases for source in self.sources if source.kind != "model")
        counts: Counter[Sequence[str]] = Counter()
        for source in self.sources:
            times = max(1, round(logs / source.variants.cases)) if source.kind == "model" else 1
            counts.update({sequence: times * count for sequence, count in source.variants.to_dict().items()})
        return Variants.from_dict(counts)

    def halves(self, cases: int, activities: Collection[str] | None, seed: int) -> tuple[Variants, PublicPrior] | None:
        """Return ``cases`` drawn from one random half, and the other half as a prior.

        Both have these activities alone. None if a half has no case.
        """
        rng: Any = np.random.default_rng(seed)
        known = self.variants if activities is None else self.variants.of_activities(activities)
        first = rng.binomial(known.counts, 0.5)
        if not 0 < first.sum() < known.cases:
            return None
        drawn = known.with_counts(rng.multinomial(cases, first / first.sum()))
        kind: Kind = "model" if self.of_models else "log"
        return drawn, PublicPrior((PriorSource(kind, kind, None, known.with_counts(known.counts - first)),))

    @property
    def logs(self) -> tuple[EventLog, ...]:
        """The logs of which times or attributes are used."""
        return tuple(source.log for source in self.sources if source.log is not None)

    def with_releases(self, proven: Callable[[Collection[str]], Mapping[str, frozenset[str]]]) -> PublicPrior:
        """Return the prior with files of proven releases recognized by their digests."""
        known = proven([source.sha256 for source in self.sources if source.sha256 is not None])
        sources = (
            replace(source, kind="release", under=known[source.sha256])
            if source.sha256 and source.sha256 in known
            else source
            for source in self.sources
        )
        return replace(self, sources=tuple(sources))

    @property
    def of_models(self) -> bool:
        """True if all sources are models."""
        return all(source.kind == "model" for source in self.sources)

    @property
    def names(self) -> list[str]:
        """The files, as they were given."""
        return [source.name for source in self.sources]

    def conditions(self, own: Collection[str]) -> tuple[Condition, ...]:
        """Return the condition that the prior is public, after the ``own`` ones.

        There is none if all of it is releases that are proven under the own conditions.
        """
        public = any(source.under is None or not source.under <= {*own} for source in self.sources)
        return (Condition("prior-is-public", "owner", Message("prior-is-public")),) if public else ()


def _source(given: PriorItem, *, events: bool) -> PriorSource:
    if isinstance(given, Release):
        proven = given.guarantee.proven and not given.as_published
        codes = frozenset(condition.code for condition in given.guarantee.conditions)
        log = given.log if events else None
        return PriorSource("release", given.method, None, given.variants, log, codes if proven else None)
    if isinstance(given, EventLog | Variants):
        found = given if isinstance(given, Variants) else given.variants
        log = given if events and isinstance(given, EventLog) else None
        return PriorSource("log", getattr(given, "source", None) or "log", None, found, log)
    path = Path(given)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError("prior-not-readable", path=path, reason=error.strerror) from error
    if is_model_file(path):
        raise ParameterError("prior-is-trained-model", parameter="prior", name=path.name)
    suffix = path.suffix.lower()
    if suffix in _MODELS:
        model = read_model(path)
        assert isinstance(model, Net)
        return PriorSource("model", os.fspath(given), digest, played_out(model))
    if suffix == ".txt":
        return PriorSource("variants", os.fspath(given), digest, variants_in(path))
    if not events:
        return PriorSource("log", os.fspath(given), digest, read_variants(path))
    log = read(path)
    return PriorSource("log", os.fspath(given), digest, log.variants, log)


def variants_in(path: Path) -> Variants:
    """Return the variants in a text file, one on each line.

    A line has activities with commas between them. A whole number at its start is the number of cases.
    """
    counts: Counter[Sequence[str]] = Counter()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.reader(file, skipinitialspace=True):
                cells = [cell.strip() for cell in row if cell.strip()]
                numbered = len(cells) > 1 and cells[0].isdecimal()
                if cells:
                    counts[tuple(cells[1:] if numbered else cells)] += int(cells[0]) if numbered else 1
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError("prior-not-text", path=path, reason=error) from error
    return Variants.from_dict(counts)


def played_out(net: Net, seed: int = 0) -> Variants:
    """Return cases of random walks in a net, whose enabled steps are equally likely.

    A walk that reaches no end in time is left out.
    """
    rng: Any = np.random.default_rng(seed)
    counts: Counter[Sequence[str]] = Counter()
    for _ in range(WALKS):
        marking, trace = Counter(net.initial), list[str]()
        for _ in range(MOST_STEPS):
            enabled = [one for one in net.transitions if Counter(one.inputs) <= marking]
            ended = tuple(sorted(marking.elements())) in net.final
            choice = int(rng.integers(len(enabled) + ended)) if enabled or ended else -1
            if ended and choice == len(enabled):
                counts[tuple(trace)] += 1
            if choice in (-1, len(enabled)) or len(trace) > MOST_EVENTS:
                break
            step = enabled[choice]
            marking = marking - Counter(step.inputs) + Counter(step.outputs)
            trace += [] if step.label is None else [step.label]
    return Variants.from_dict({trace: count for trace, count in counts.items() if trace})

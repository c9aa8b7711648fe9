"""From a log to a release: choose a method, ask the curator, derive the guarantee, write the result."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from veilog._version import __version__
from veilog.errors import OutputError, ParameterError
from veilog.logs import files
from veilog.logs.eventlog import ACTIVITY, CASE_INDEX, EVENT_INDEX, TIMESTAMP, TIMESTAMP_TYPE, EventLog
from veilog.logs.metadata import ARTIFICIAL_TIMES, Attribute, Metadata
from veilog.logs.variants import Variants
from veilog.measures.similarity import relative_log_similarity
from veilog.methods import METHODS, Method
from veilog.methods.method import Progress, Request
from veilog.privacy import noise
from veilog.privacy.accounting import Number, parse_delta, parse_epsilon
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Domain
from veilog.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Release", "release"]

_EXTENSIONS = (
    ("Concept", "concept", "http://www.xes-standard.org/concept.xesext"),
    ("Time", "time", "http://www.xes-standard.org/time.xesext"),
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Release:
    """What leaves the house, with its guarantee. Nothing in it was computed from raw data outside a question."""

    method: str
    as_published: bool
    parameters: Mapping[str, Any]
    variants: Variants
    guarantee: Guarantee
    seconds: float
    remarks: tuple[str, ...] = ()
    """What the reader should know, from public and released quantities only."""
    order: np.random.Generator = field(default_factory=np.random.default_rng, repr=False, compare=False)
    """Where the order of the released cases comes from."""

    @cached_property
    def log(self) -> EventLog:
        """The release as an event log: fresh case names, cases in random order.

        A release of variants has no times; its events get artificial ones, an hour apart from 1970-01-01 on, because
        most tools sort by time. A log attribute says so.
        """
        return _event_log(self)

    def to_pandas(self) -> pd.DataFrame:
        """The released events as a DataFrame with pm4py's columns."""
        return self.log.to_pandas()

    def save(self, path: str | Path) -> None:
        """Write the release; the suffix says how (.xes, .xes.gz, .csv, .parquet). Nothing half written remains."""
        if self.variants.cases == 0:
            raise OutputError(
                "The release is empty, so there is nothing to write.",
                path=path,
                advice="Its budget is spent nevertheless; a larger epsilon or delta lets more through.",
            )
        files.write(self.log, path)

    def to_json(self) -> dict[str, object]:
        return {
            "method": self.method,
            "as_published": self.as_published,
            "parameters": dict(self.parameters),
            "guarantee": self.guarantee.to_json(),
            "cases": self.variants.cases,
            "events": self.variants.events,
            "variants": len(self.variants),
            "remarks": list(self.remarks),
            "seconds": self.seconds,
        }


def release(
    log: EventLog | Variants,
    method: str,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    as_published: bool = False,
    seed: int | None = None,
    domain: Domain | None = None,
    unit: str = "case",
    progress: Progress | None = None,
    **parameters: Any,
) -> Release:
    """Release a log with a method.

    ``epsilon`` and ``delta`` are the budget: certified (the default) they are what the guarantee derives; with
    ``as_published`` they are what the paper calls them, and the guarantee says what is derived instead. ``seed`` makes
    a run repeatable for experiments, and its guarantee "none". ``domain`` declares public facts. Further keywords are
    parameters of the method.
    """
    chosen = METHODS.get(method)
    if chosen is None:
        raise ParameterError(
            f"There is no method {method!r}.", parameter="method", advice=f"Methods: {', '.join(METHODS)}."
        )
    eps, failure = _budget(chosen, epsilon, delta)
    values = chosen.parse(parameters)
    variants = log if isinstance(log, Variants) else log.variants
    if variants.cases == 0:
        raise ParameterError("The log has no cases, so there is nothing to release.", parameter="log")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ParameterError(f"seed must be a whole number from 0 on, not {seed!r}.", parameter="seed")

    source = noise.operating_system() if seed is None else noise.seeded(seed)
    curator = Curator(variants, domain=domain, unit=unit, randomness=source)
    said: list[str] = []
    request = Request(
        epsilon=eps,
        delta=failure,
        as_published=as_published,
        progress=progress or (lambda text, fraction: None),
        score=lambda original, released: relative_log_similarity(original, released).value,
        remark=said.append,
    )
    started = time.perf_counter()
    released = chosen.run(curator, request, **values)
    seconds = time.perf_counter() - started
    if isinstance(released, EventLog):
        raise TypeError(f"{method} released an event log, which release() does not take yet")
    guarantee = curator.guarantee(
        nominal_epsilon=eps if eps else None, nominal_delta=failure if chosen.budget == "epsilon and delta" else None
    )
    return Release(
        method=method,
        as_published=as_published,
        parameters=values,
        variants=released,
        guarantee=guarantee,
        seconds=seconds,
        remarks=(*said, *_remarks(released, failure)),
        order=noise.generator(source),
    )


def _budget(method: Method, epsilon: Number | None, delta: Number) -> tuple[Fraction, Fraction]:
    failure = parse_delta(delta)
    if method.budget == "none":
        if epsilon is not None or failure:
            raise ParameterError(
                f"Method {method.name!r} takes no epsilon: its guarantee is another one.", parameter="epsilon"
            )
        return Fraction(0), Fraction(0)
    if epsilon is None:
        raise ParameterError(
            f"Method {method.name!r} needs an epsilon.", parameter="epsilon", advice="0.1 to 1 are usual."
        )
    eps = parse_epsilon(epsilon)
    if method.budget == "epsilon and delta" and failure == 0:
        raise ParameterError(
            f"Method {method.name!r} needs a delta above 0.",
            parameter="delta",
            advice="Take less than one over the number of cases, e.g. --delta 1e-6.",
        )
    if method.budget == "epsilon" and failure:
        raise ParameterError(f"Method {method.name!r} needs no delta; it costs epsilon only.", parameter="delta")
    return eps, failure


def _remarks(released: Variants, delta: Fraction) -> tuple[str, ...]:
    remarks = []
    if released.cases == 0:
        remarks.append("Nothing survived: the release is empty, and its budget is spent. Raise epsilon or delta.")
    elif delta * released.cases > 1:
        remarks.append(
            f"delta = {float(delta):g} is more than one over the {released.cases} released cases: it allows a "
            "mechanism that publishes some person's trace outright. Choose a smaller delta to protect everybody."
        )
    return tuple(remarks)


def _event_log(released: Release) -> EventLog:
    variants = released.variants
    owner = np.repeat(np.arange(len(variants)), variants.counts)
    owner = owner[released.order.permutation(len(owner))]
    lengths = variants.lengths[owner]
    ends = np.cumsum(lengths)
    events = int(ends[-1]) if len(ends) else 0
    position = np.arange(events) - np.repeat(ends - lengths, lengths)
    codes = variants.codes[np.repeat(variants.offsets[owner], lengths) + position]
    labels = pa.array(variants.labels, pa.string())
    table = pa.table(
        {
            CASE_INDEX: np.repeat(np.arange(len(owner)), lengths),
            EVENT_INDEX: np.arange(events),
            ACTIVITY: pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), labels),
            TIMESTAMP: pa.array(position * _HOUR, pa.int64()).cast(TIMESTAMP_TYPE),
        }
    )
    cases = pa.table({ACTIVITY: pa.array(np.arange(1, len(owner) + 1)).cast(pa.string())})
    return EventLog(table, cases, _metadata(released))


def _metadata(released: Release) -> Metadata:
    """XES privacy metadata (Rafiei, van der Aalst, "Privacy-Preserving Data Publishing in Process Mining", 2020): one
    numbered child for each operation. Only what the guarantee says; no statistic of the original."""
    guarantee = released.guarantee
    facts: list[tuple[str, Any, str]] = [
        ("privacy:type", "differential privacy" if guarantee.proven else "none proven", "string"),
        ("privacy:level", f"{guarantee.unit}: {guarantee.neighbours}", "string"),
        ("privacy:target", "control flow (variants)", "string"),
        ("privacy:method", released.method + (" (as published)" if released.as_published else ""), "string"),
        ("privacy:status", guarantee.status, "string"),
    ]
    pairs = (
        ("privacy:epsilon", guarantee.epsilon),
        ("privacy:delta", guarantee.delta),
        ("privacy:nominal_epsilon", guarantee.nominal_epsilon),
        ("privacy:nominal_delta", guarantee.nominal_delta),
    )
    facts += [(key, value, "float") for key, value in pairs if value is not None]
    facts += [("privacy:assumptions", " ".join(guarantee.assumptions), "string")] if guarantee.assumptions else []
    facts += [("privacy:reason", "; ".join(guarantee.reasons), "string")] if guarantee.reasons else []
    facts.append(("privacy:software", f"veilog {__version__}", "string"))
    operation = Attribute("1", None, "container", tuple(Attribute(*fact) for fact in facts))
    return Metadata(
        version="1.0",
        features="nested-attributes",
        extensions=_EXTENSIONS,
        globals=(
            ("trace", (Attribute(ACTIVITY, "", "string"),)),
            ("event", (Attribute(ACTIVITY, "", "string"), Attribute(TIMESTAMP, _EPOCH, "date"))),
        ),
        classifiers=(("Activity", ACTIVITY, "event"),),
        attributes=(
            Attribute("privacy:anonymizations", None, "container", (operation,)),
            Attribute(ARTIFICIAL_TIMES, True, "boolean"),
        ),
    )

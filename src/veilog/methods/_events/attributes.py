"""Case and event attributes for any release of variants, epsilon-differentially private beside the release itself.

An attribute needs a public domain: declared values, a declared range of numbers (16 even bins), or the values that
enough cases have, found with a delta (:meth:`EventQuestions.frequent_values`). Without a declared domain, attributes
whose name says that they identify somebody or hold free text are refused, and so are those of which a noisy count shows
that most cases have a value of their own.

Then one question for each attribute: of an event attribute the values with each activity, at most 5 events a case; of a
case attribute the value with the last activity of the case, one a case. An event or case without a value, or with one
outside the domain, counts as such. What is released is drawn from these noisy tables, each row leaning on the table's
total as far as noise drowns it; numbers are drawn evenly inside their bins. Attributes are drawn each by itself given
the activity: how they hang together beyond that is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from veilog._typing import FloatArray, IntArray
from veilog.errors import ParameterError
from veilog.logs.variants import Sequences
from veilog.methods._events.gap_bins import least_squares
from veilog.privacy.cases import Cases, Coding, Kind, Level
from veilog.privacy.curator import Curator
from veilog.privacy.domain import Values
from veilog.privacy.mechanisms.noise import generator

__all__ = ["Chosen", "ReleasedColumns", "choose", "released_attributes"]

Triples = tuple[IntArray, IntArray, IntArray]

EVENTS_A_CASE = 5
VALUES_A_CASE = 3
NUMBER_OF_BINS = 16
RESOLUTION = 1024
DOMAIN_SHARE = Fraction(3, 10)
"""Of an attribute without a declared domain: what finding its values costs, a third of it for the check."""
TOO_DISTINCT = 0.5
"""From so many values a case on, an attribute tells cases apart."""
_SENSITIVE = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|name|surname|firstname|lastname|email|mail|phone|mobile|address|street|zip|postcode|"
    r"iban|ssn|bsn|comment|comments|note|notes|remark|remarks|description|text|message|free ?text)([^a-z]|$)"
)


@dataclass(frozen=True)
class Chosen:
    """An attribute with its public domain."""

    coding: Coding
    level: Level
    kind: Kind


@dataclass(frozen=True)
class ReleasedColumns:
    """Columns for the released events and cases."""

    events: dict[str, pa.Array]
    cases: dict[str, pa.Array]


def choose(
    curator: Curator, names: tuple[str, ...], epsilon: Fraction, delta: Fraction, remark: Callable[[str], None]
) -> tuple[tuple[Chosen, ...], Fraction]:
    """The attributes that can be released, with their domains, and what is left of epsilon."""
    if len(set(names)) != len(names):
        raise ParameterError("An attribute is asked for twice.", parameter="attributes")
    declared = curator.domain.attributes
    for name in names:
        curator.events.level(name)
        kind, values = curator.events.kind(name), declared.get(name)
        if values is not None and not isinstance(values[0], str) and kind not in ("number", "whole number"):
            raise ParameterError(
                f"The attribute {name!r} holds no numbers, so a range cannot be its domain.",
                parameter="domain",
                advice="Declare its values: NAME=a|b|c.",
            )
        if values is None:
            _refuse_by_name(name)
        else:
            _chosen(curator, name, values)  # refuses values of the wrong type before anything is asked
    open_ = [name for name in names if name not in declared]
    if open_ and delta == 0:
        raise ParameterError(
            f"The values of {open_[0]!r} are not declared, and finding them needs a delta above 0.",
            parameter="attributes",
            advice="Declare them (--domain NAME=a|b|c, or NAME=LOW..HIGH for numbers), or give --delta, e.g. 1e-6.",
        )
    chosen, rest = [], epsilon
    for name in names:
        values = declared.get(name)
        if values is None:
            share = epsilon / len(names) * DOMAIN_SHARE
            rest -= share
            values = _found(curator, name, share, delta / len(open_))
        if values:
            chosen.append(_chosen(curator, name, values))
        else:
            remark(f"No value of {name!r} is frequent enough for its budget: the attribute is left out.")
    return tuple(chosen), rest


def _refuse_by_name(name: str) -> None:
    if _SENSITIVE.search(re.sub(r"([a-z])([A-Z])", r"\1 \2", name).replace("_", " ").lower()):
        raise ParameterError(
            f"By its name, {name!r} identifies somebody or holds free text; it is not released.",
            parameter="attributes",
            advice="If it does not, declare its values: --domain NAME=a|b|c.",
        )


def _found(curator: Curator, name: str, share: Fraction, delta: Fraction) -> tuple[str, ...]:
    distinct, cases = curator.events.distinct(name, share / 3)
    # Noise alone, of scale 6/share, refuses one attribute in 6000; what it hides, the selection of values keeps back.
    if cases > 0 and distinct > TOO_DISTINCT * cases + 8 * 6 / float(share):
        raise ParameterError(
            f"{name!r} has about {distinct} values in {cases} cases: it tells cases apart and is not released. "
            "What finding this out has cost is spent nevertheless.",
            parameter="attributes",
            advice="Leave it out, or declare values for it.",
        )
    most = 1 if curator.events.level(name) == "case" else VALUES_A_CASE
    return curator.events.frequent_values(name, most, share - share / 3, delta)


def _chosen(curator: Curator, name: str, values: Values) -> Chosen:
    kind = curator.events.kind(name)
    coding = _coding(name, values, kind)
    _typed(coding, kind)
    return Chosen(coding, curator.events.level(name), kind)


def _coding(name: str, values: Values, kind: Kind) -> Coding:
    if isinstance(values[0], str):
        return Coding(name, values=tuple(str(v) for v in values))
    low, high = float(values[0]), float(values[1])
    if kind == "number":
        return Coding(name, edges=tuple(np.linspace(low, high, NUMBER_OF_BINS + 1).tolist()))
    edges = np.unique(np.round(np.linspace(np.floor(low), np.floor(high) + 1, NUMBER_OF_BINS + 1)))
    return Coding(name, edges=tuple(edges.tolist()))


def released_attributes(
    curator: Curator, epsilon: Fraction, cases: Sequences, chosen: tuple[Chosen, ...]
) -> ReleasedColumns:
    """Values for the events and cases of a release; each attribute costs an equal part of epsilon."""
    rng = generator(curator.randomness)
    columns = ReleasedColumns({}, {})
    last = np.full(len(cases), len(cases.labels), dtype=np.int64)
    going = cases.lengths > 0
    last[going] = cases.codes[cases.offsets[1:][going] - 1]
    for attribute in chosen:
        table = _asked(curator, epsilon / len(chosen), cases.labels, attribute)
        if attribute.level == "event":
            columns.events[attribute.coding.name] = _drawn(table, cases.codes.astype(np.int64), attribute, rng)
        else:
            columns.cases[attribute.coding.name.removeprefix("case:")] = _drawn(table, last, attribute, rng)
    return columns


def _asked(curator: Curator, epsilon: Fraction, labels: tuple[str, ...], attribute: Chosen) -> FloatArray:
    """For each activity, and for no activity, the distribution of the values, the last for no value."""
    name, width = attribute.coding.name, attribute.coding.size + 1

    def of_events(block: Cases) -> Triples:
        known = np.flatnonzero(block.codes >= 0)
        values = block.attributes[name][known]
        cells = block.codes[known] * width + np.where(values >= 0, values, width - 1)
        return block.owners[known], cells, np.ones(len(known), dtype=np.int64)

    def of_cases(block: Cases) -> Triples:
        activity = np.full(len(block), -1, dtype=np.int64)
        going = block.lengths > 0
        activity[going] = block.codes[block.offsets[1:][going] - 1]
        values = block.attributes[name]
        cells = np.where(activity >= 0, activity, len(labels)) * width + np.where(values >= 0, values, width - 1)
        return np.arange(len(block)), cells, np.ones(len(block), dtype=np.int64)

    of_event = attribute.level == "event"
    bound, resolution = (EVENTS_A_CASE, RESOLUTION) if of_event else (1, 1)
    asked = curator.events.sums(
        of_events if of_event else of_cases,
        (len(labels) + 1) * width,
        bound,
        epsilon,
        alphabet=labels,
        codings=(attribute.coding,),
        resolution=resolution,
        purpose=f"values of {name} with " + ("each activity" if of_event else "the last activity"),
    )
    return _leaning(asked.reshape(-1, width) / resolution, 2 * (bound / float(epsilon)) ** 2)


def _leaning(noisy: FloatArray, variance: float) -> FloatArray:
    """Each row drawn towards the distribution of all rows as far as noise alone would spread it (James, Stein 1961)."""
    total = least_squares(noisy.sum(axis=0))
    rows = []
    for row in noisy:
        mass = max(float(row.sum()), 1.0)
        away = row - mass * total
        spread = float((away**2).sum())
        kept = max(0.0, 1 - (len(row) - 1) * variance / spread) if spread > 0 else 0.0
        rows.append(least_squares(mass * total + kept * away))
    return np.stack(rows)


def _drawn(table: FloatArray, rows: IntArray, attribute: Chosen, rng: np.random.Generator) -> pa.Array:
    reached = np.cumsum(table, axis=1)
    codes = (reached[rows] < (rng.random(len(rows)) * reached[rows, -1])[:, None]).sum(axis=1)
    missing = codes >= attribute.coding.size
    codes = np.where(missing, 0, codes)
    if attribute.coding.edges:
        edges = np.array(attribute.coding.edges)
        numbers = edges[codes] + rng.random(len(codes)) * (edges[codes + 1] - edges[codes])
        whole = attribute.kind == "whole number"
        return pa.array(np.floor(numbers).astype(np.int64) if whole else numbers, mask=missing)
    values = _typed(attribute.coding, attribute.kind)
    if attribute.kind == "text":
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=missing), values)
    return values.take(pa.array(codes, mask=missing))


def _typed(coding: Coding, kind: Kind) -> pa.Array:
    """The values of a domain in the type of the log's column."""
    types = {"text": pa.string(), "boolean": pa.bool_(), "whole number": pa.int64(), "number": pa.float64()}
    try:
        return pa.array(coding.values, pa.string()).cast(types[kind])
    except pa.ArrowInvalid:
        raise ParameterError(
            f"The declared values of {coding.name!r} do not fit the log, where it is a {kind}.", parameter="domain"
        ) from None

"""Disclosure risk of a log if an attacker knows a few activities of a person.

M. Rafiei, W. van der Aalst, "Towards quantifying privacy in process mining" (2020), section 4.1. The background
knowledge x is a set, multiset or sequence of ``size`` activities that some trace of the log contains (a candidate); the
traces that contain it are proj(x).

    case disclosure   cd = mean over candidates of 1 / |proj(x)|
    trace disclosure  td = 1 - mean over candidates of ent(proj(x)) / max_ent(proj(x))

where ent is the entropy of the variants in proj(x) and max_ent = log |proj(x)|, that of as many different traces. A
single matching trace has max_ent = 0. Its ratio counts as 0, because the trace is fully disclosed. The disclosure of a
sensitive attribute uses the entropy of the attribute's values among the matching cases instead.

Both are computed exactly, over all candidates, as long as the work stays within a limit. Beyond it they are unbiased
estimates with 95 % intervals, marked ``exact = False``.
"""

from __future__ import annotations

import time as time_
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import numpy as np
import pyarrow as pa

from veilog._language import gettext_noop
from veilog._notebook import bar, card, frame, paragraph, table
from veilog._plain import InJson, ToJson
from veilog._typing import FloatArray
from veilog.errors import ParameterError, meant
from veilog.logs.eventlog import EventLog
from veilog.logs.files import AnyLog, as_log
from veilog.logs.variants import Variants
from veilog.measures.disclosure.estimate import Interval, estimate
from veilog.measures.disclosure.patterns import CandidateSums, levels, single_activities
from veilog.measures.disclosure.spaces import (
    Space,
    add_times,
    cases_by_value,
    multiset_space,
    occurrences,
    sequence_space,
    set_space,
    surprise,
    surprise_by_first_occurrences,
    variant_of_cases,
)
from veilog.measures.measure import Progress
from veilog.messages import OwnerMessage

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_matrix


Background = Literal["set", "multiset", "sequence"]
BACKGROUNDS: tuple[Background, ...] = get_args(Background)
KNOWN: Mapping[str, str] = {
    "set": gettext_noop("which activities"),
    "multiset": gettext_noop("which and how often"),
    "sequence": gettext_noop("which, in their order"),
}
"""Attacker's knowledge of a person in words, for each background."""
EXPLAINED: Mapping[str, str] = {
    "case disclosure": gettext_noop("how far such knowledge narrows the cases down (1 = to one)"),
    "trace disclosure": "how far it tells the whole trace",
    "unique": gettext_noop("cases that some such knowledge singles out"),
}
"""Meanings of the numbers, for readers of the results."""

_COLUMNS = (
    "background", "size", "candidates", "case_disclosure", "trace_disclosure", "worst_case", "unique", "cases", "exact",
)  # fmt: skip


@dataclass(frozen=True)
class Intervals:
    """95 % confidence intervals of an estimate."""

    candidates: Interval
    case_disclosure: Interval | None
    trace_disclosure: Interval | None


_IF_ANY = InJson(left_out="at its default")


@dataclass(frozen=True)
class RiskResult(ToJson):
    """Disclosure against one background and size; ``reason`` explains a None."""

    background: Background
    size: int
    candidates: int
    """Number of candidates; an estimate when not ``exact``."""
    case_disclosure: float | None
    trace_disclosure: float | None
    worst_case: float | None
    """1 / the fewest cases that match a candidate; a lower bound when not ``exact``."""
    worst_trace: float | None
    """Largest trace disclosure of a candidate; a lower bound when not ``exact``."""
    unique: int
    """Number of cases that a candidate singles out; a lower bound when not ``exact``."""
    cases: int
    """Number of cases in the log."""
    exact: bool
    seconds: float
    sampled: Annotated[int | None, _IF_ANY] = None
    """Number of candidates that an estimate rests on."""
    interval: Annotated[Intervals | None, _IF_ANY] = None
    reason: Annotated[OwnerMessage | None, InJson(as_=str, left_out="at its default")] = None
    attribute_disclosure: Annotated[float | None, _IF_ANY] = None
    """Disclosure of the value of the requested sensitive attribute."""


class Risks(tuple[RiskResult, ...]):
    """Results of :func:`veilog.risk`, one for each background and size."""

    __slots__ = ()

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each result.

        >>> import veilog
        >>> from veilog.logs.synthetic.hospital import hospital
        >>> veilog.risk(hospital(50, seed=1), "set", (1, 2)).to_frame()["size"].tolist()
        [1, 2]
        """
        told = any(result.attribute_disclosure is not None for result in self)
        columns = (*_COLUMNS, "attribute_disclosure") if told else _COLUMNS
        return frame(({name: getattr(result, name) for name in columns} for result in self), columns)

    def _repr_html_(self) -> str:
        rows = [
            (r.background, r.size, r.case_disclosure, bar(r.case_disclosure or 0.0), r.unique, r.cases) for r in self
        ]
        head = ("what is known", "activities", "case disclosure", "", "singled out", "of cases")
        words = "; ".join(f"{name}: {meaning}" for name, meaning in EXPLAINED.items())
        reasons = [f"{r.background} of size {r.size}: {r.reason}" for r in self if r.reason is not None]
        rest = [paragraph(text, "s") for text in (*reasons, f"{words}. The log itself, so for its owner alone.")]
        return card("Disclosure by a few known activities", table(head, rows, numbers=(1, 2, 4, 5)), *rest)


WORK_LIMIT = 4e9
"""Default limit of the work on one background; a unit takes about 5 nanoseconds."""
TABLE_BYTES = 512 << 20
"""Largest size in bytes of the tables of the exact computation."""


def risk(
    log: AnyLog,
    background: str | Iterable[str] = BACKGROUNDS,
    size: int | Iterable[int] = (1, 2, 3),
    *,
    weights: Mapping[str, float] | None = None,
    arrangements: bool = False,
    time: str | None = None,
    sensitive: str | None = None,
    work_limit: float = WORK_LIMIT,
    samples: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Risks:
    """Return the disclosure risks of a log against these kinds and sizes of knowledge.

    The results are in the order of the arguments. The log may also be a :class:`Release`, variants, a DataFrame or a
    file.

    >>> import veilog
    >>> from veilog.logs.synthetic.hospital import hospital
    >>> (found,) = veilog.risk(hospital(100, seed=1), "sequence", 3)
    >>> found.unique <= found.cases
    True

    ``weights`` sets weights of activities, which are 1 by default. Candidates weigh the mean of their activities'
    weights, and means are weighted. Candidates of weight 0 count neither as worst case nor as unique.

    ``arrangements`` follows the paper's program, which differs from the paper for multisets. Each multiset counts once
    for each order of its activities. Variants with equal activities, equally often and first met in one order, are one
    trace.

    With ``time`` ("seconds", "minutes", "hours" or "days") the attacker knows when each of the activities happened, to
    that unit. With ``sensitive``, an attribute of cases or events, ``attribute_disclosure`` measures how far the
    knowledge reveals its value. Both need a log with its events. For knowledge of other facts of events, such as their
    resource, read the log with a ``classifier``: its activities then hold these facts.

    The results are exact while the work on a background stays within ``work_limit``. A size beyond it is estimated from
    about ``samples`` candidates drawn with ``seed`` (and at most ``work_limit`` more work). The log is not changed, and
    exact values are functions of its multiset of variants. Cases without events match nothing.
    """
    held = _perspective(as_log(log), time, sensitive)
    variants = held if isinstance(held, Variants) else held.variants
    backgrounds, sizes = _backgrounds(background), _sizes(size)
    weight = _weights(weights, variants)
    if samples < 2:
        raise ParameterError("disclosure-samples-too-few", parameter="samples", samples=samples)
    if not work_limit > 0:
        raise ParameterError("disclosure-work-limit-invalid", parameter="work_limit", work_limit=work_limit)
    if seed < 0:
        raise ParameterError("disclosure-seed-invalid", parameter="seed", seed=seed)
    values = None if sensitive is None or isinstance(held, Variants) else cases_by_value(held, sensitive)
    search = _Search(variants, weight, arrangements, work_limit, progress or (lambda text, fraction: None))
    results: dict[tuple[Background, int], RiskResult] = {}
    for kind in dict.fromkeys(backgrounds):
        wanted = sorted(set(sizes))
        results |= {(kind, result.size): result for result in search.exact(kind, wanted)}
        for k in wanted:
            if (kind, k) not in results:
                results[kind, k] = search.estimated(kind, k, samples, seed)
        if sensitive is not None:
            _add_attribute(results, kind, wanted, sensitive, search.levels(kind, wanted, values))
    return Risks(results[kind, k] for kind in backgrounds for k in sizes)


def unique_cases(
    log: AnyLog,
    background: str,
    size: int,
    *,
    weights: Mapping[str, float] | None = None,
    time: str | None = None,
    work_limit: float = WORK_LIMIT,
    progress: Progress | None = None,
) -> tuple[str, ...]:
    """Return the names of the cases that knowledge of this kind and size singles out.

    The names are in the log's order. They are confidential: only the data owner, who can look into these cases, may see
    them. The arguments are those of :func:`veilog.risk`, whose ``unique`` is the number of names.

    >>> from veilog.logs.synthetic.hospital import hospital
    >>> log = hospital(100, seed=1)
    >>> len(unique_cases(log, "sequence", 3)) == risk(log, "sequence", 3)[0].unique
    True
    """
    held = as_log(log)
    if isinstance(held, Variants):
        raise ParameterError("case-names-of-variants", parameter="log")
    held = _perspective(held, time)
    variants, (kind,), (k,) = held.variants, _backgrounds(background), _sizes(size)
    say = progress or (lambda text, fraction: None)
    search = _Search(variants, _weights(weights, variants), False, work_limit, say)
    if k > search.largest(kind):
        return ()
    for level in search.levels(kind, [k]):
        alone = np.isin(variant_of_cases(held), level.alone)
        names = held.case_labels.filter(pa.array(alone))
        return tuple(map(str, names.to_pylist()))
    raise ParameterError("disclosure-work-limit-exceeded", parameter="size", plural=f"{kind}s", k=k)


def _add_attribute(
    results: dict[tuple[Background, int], RiskResult],
    kind: Background,
    sizes: list[int],
    name: str,
    found: Iterable[CandidateSums],
) -> None:
    """Add the disclosure of an attribute to one background's results, or the reason."""
    shares = {level.size: min(1.0, level.trace_sum / level.weight) for level in found if level.weight > 0.0}
    for k in sizes:
        result = results[kind, k]
        why = result.reason or (None if k in shares else OwnerMessage("disclosure-attribute-not-exact", name=name))
        results[kind, k] = replace(result, attribute_disclosure=shares.get(k), reason=why)


L = TypeVar("L", EventLog, "EventLog | Variants")


def _perspective(log: L, time: str | None, sensitive: str | None = None) -> L:
    """Return the log as the attacker sees it."""
    if isinstance(log, EventLog):
        return log if time is None else add_times(log, time)
    for name, code in ((time, "times-of-variants"), (sensitive, "attributes-of-variants")):
        if name is not None:
            raise ParameterError(code, parameter="log")
    return log


@dataclass(frozen=True, eq=False)
class _Search:
    """A log with its candidates to visit or to draw, and the limit of the work."""

    variants: Variants
    weights: FloatArray
    arrangements: bool
    work_limit: float
    say: Progress

    def largest(self, kind: Background) -> int:
        """Return the size of the largest candidate."""
        variants = self.variants
        sizes = variants.lengths
        if kind == "set":
            sizes = np.bincount(occurrences(variants)[0], minlength=len(variants))
        return int(sizes.max(initial=0))

    def exact(self, kind: Background, sizes: list[int]) -> Iterator[RiskResult]:
        """Yield the exact results within the limit, and those of sizes that no trace has."""
        started = time_.perf_counter()
        largest = self.largest(kind)
        yield from (self._undefined_result(kind, k, largest) for k in sizes if k > largest)
        for level in self.levels(kind, sizes):
            now = time_.perf_counter()
            defined = level.weight > 0.0
            yield RiskResult(
                background=kind,
                size=level.size,
                candidates=level.candidates,
                case_disclosure=level.case_sum / level.weight if defined else None,
                trace_disclosure=min(1.0, level.trace_sum / level.weight) if defined else None,
                worst_case=1.0 / level.fewest if defined else None,
                worst_trace=level.worst_trace if defined else None,
                unique=level.unique,
                cases=self.variants.cases,
                exact=True,
                seconds=now - started,
                reason=None if defined else OwnerMessage("disclosure-weightless"),
            )
            started = now

    def _undefined_result(self, kind: Background, size: int, largest: int) -> RiskResult:
        cases = self.variants.cases
        few = "too-few-activities" if kind == "set" else "too-few-events"
        reason = OwnerMessage(f"disclosure-of-{few if cases else 'no-cases'}", size=size, largest=largest)
        return RiskResult(kind, size, 0, None, None, None, None, 0, cases, True, 0.0, reason=reason)

    def levels(self, kind: Background, sizes: list[int], values: csr_matrix | None = None) -> Iterator[CandidateSums]:
        """Yield the sums over all candidates of the sizes within the limit.

        With ``values`` they are the sums of an attribute's disclosure.
        """
        variants, largest = self.variants, self.largest(kind)
        possible = [k for k in sizes if k <= largest]
        if possible and possible[0] == 1 and values is None:
            arranged = self.arrangements and kind == "multiset"
            surprises = surprise_by_first_occurrences(variants) if arranged else surprise(variants.counts)
            yield single_activities(variants, self.weights, surprises)
            possible = possible[1:]
        if not possible:
            return

        def report(size: int, share: float) -> None:
            self.say(f"Candidates of {kind}s of size {size}", share)

        limits: dict[str, Any] = {"weights": self.weights, "work_limit": self.work_limit}
        space = self._space(kind, possible[-1])
        if space is None:
            for size in possible if kind == "sequence" and values is None else ():
                short = short_sequences(variants, size, **limits, report=partial(report, size))
                if short is not None:
                    yield short
            return
        space = space if values is None else space.judging(values)
        yield from (level for level in levels(space, possible[-1], **limits, report=report) if level.size in possible)

    def _space(self, kind: Background, largest: int) -> Space | None:
        if kind == "sequence":
            return sequence_space(self.variants, TABLE_BYTES)
        if kind == "set":
            return set_space(self.variants, TABLE_BYTES)
        return multiset_space(self.variants, largest, TABLE_BYTES, arrangements=self.arrangements)

    def estimated(self, kind: Background, size: int, samples: int, seed: int) -> RiskResult:
        """Return the result for a size, estimated from drawn candidates."""
        started, doing = time_.perf_counter(), f"Estimating for {kind}s of size {size}"
        self.say(doing, None)
        found = estimate(
            self.variants,
            kind,
            size,
            weights=self.weights,
            rng=np.random.default_rng([seed, size, zlib.crc32(kind.encode())]),
            samples=samples,
            work_limit=self.work_limit,
            arrangements=self.arrangements,
            report=lambda share: self.say(doing, share),
        )
        return RiskResult(
            background=kind,
            size=size,
            candidates=round(found.candidates),
            case_disclosure=found.case_disclosure,
            trace_disclosure=found.trace_disclosure,
            worst_case=1.0 / found.fewest if found.sampled else None,
            worst_trace=found.worst_trace if found.sampled else None,
            unique=found.unique,
            cases=self.variants.cases,
            exact=False,
            seconds=time_.perf_counter() - started,
            sampled=found.sampled,
            interval=Intervals(found.candidates_interval, found.case_interval, found.trace_interval),
            reason=None if found.case_interval is not None else OwnerMessage("disclosure-without-interval"),
        )


def _backgrounds(background: str | Iterable[str]) -> list[Background]:
    if not isinstance(background, Iterable):
        raise ParameterError(
            "disclosure-background-unknown", parameter="background", background=background, names=", ".join(BACKGROUNDS)
        )
    names = [background] if isinstance(background, str) else list(background)
    known: dict[str, Background] = {kind: kind for kind in BACKGROUNDS}
    for name in names:
        if name not in known:
            raise ParameterError(
                "disclosure-background-name-unknown",
                parameter="background",
                name=name,
                meant=meant(name, known),
                names=", ".join(BACKGROUNDS),
            )
    if not names:
        raise ParameterError("disclosure-background-missing", parameter="background")
    return [known[name] for name in names]


def _sizes(size: int | Iterable[int]) -> list[int]:
    sizes = list(size) if isinstance(size, Iterable) else [size]
    for k in sizes:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ParameterError("disclosure-size-not-whole", parameter="size", k=k)
    if not sizes:
        raise ParameterError("disclosure-size-missing", parameter="size")
    return sizes


def _weights(weights: Mapping[str, float] | None, variants: Variants) -> FloatArray:
    out = np.ones(len(variants.labels))
    code = {label: i for i, label in enumerate(variants.labels)}
    for label, weight in (weights or {}).items():
        if label not in code:
            near = meant(label, variants.labels) or None
            raise ParameterError("disclosure-weight-activity-unknown", parameter="weights", advice=near, label=label)
        if not (np.isfinite(weight) and weight >= 0.0):
            raise ParameterError("disclosure-weight-negative", parameter="weights", label=label, weight=weight)
        out[code[label]] = weight
    if len(out) and not out.any():
        raise ParameterError("disclosure-weights-all-zero", parameter="weights")
    return out


# Short sequences as background knowledge against very many variants, exactly and without tables of states.
#
# There are only so many sequences of ``size`` activities. The search runs over many variants at once, event by event.
# A contained sequence that ends in this event's activity is one that was contained before, followed by this activity.

_CELLS = 1 << 22
"""Number of pairs of variant and sequence to work on at once."""
_MOST_SEQUENCES = 1 << 22
_CELLS_A_UNIT = 2
"""Number of cells in the time of one unit of work."""


def short_sequences(
    variants: Variants,
    size: int,
    *,
    weights: FloatArray,
    work_limit: float,
    report: Callable[[float], None] | None = None,
) -> CandidateSums | None:
    """Return the sums of this size, two or more; None beyond ``work_limit``."""
    activities = len(variants.labels)
    number = activities**size
    if number > _MOST_SEQUENCES or len(variants) * number > _CELLS_A_UNIT * work_limit:
        return None
    names = np.where(variants.counts == 1, np.arange(1.0, len(variants) + 1), 0.0)
    facts = np.stack([variants.counts.astype(np.float64), surprise(variants.counts), names])
    sums = np.zeros((3, number))
    step = max(1, _CELLS // number)
    for start in range(0, len(variants), step):
        stop = min(start + step, len(variants))
        sums += facts[:, start:stop] @ _find_subsequences(variants, start, stop, size).astype(np.float64)
        if report is not None and (start // step) % 16 == 0:
            report(start / len(variants))
    candidates = np.flatnonzero(sums[0])
    n, spread, name = sums[:, candidates]
    trace = (n == 1.0).astype(np.float64)
    np.divide(spread, n * np.log(np.maximum(n, 1.0)), out=trace, where=n > 1.0)
    trace = np.minimum(trace, 1.0)
    weight = np.zeros(len(candidates))
    rest = candidates
    for _ in range(size):
        rest, last = np.divmod(rest, activities)
        weight += weights[last] / size
    counted = weight > 0.0
    return CandidateSums(
        size=size,
        candidates=len(candidates),
        weight=float(weight.sum()),
        case_sum=float((weight / n).sum()),
        trace_sum=float((weight * trace).sum()),
        fewest=int(n[counted].min()) if counted.any() else 0,
        worst_trace=float(trace[counted].max()) if counted.any() else 0.0,
        # A sequence in one case only is in one variant only, which then has one case: the sum of names is its name.
        alone=np.unique(name[(n == 1.0) & counted]).astype(np.int64) - 1,
        work=len(variants) * number // _CELLS_A_UNIT,
    )


def _find_subsequences(
    variants: Variants, start: int, stop: int, size: int
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return the sequences of this size in each variant from ``start`` up to ``stop``."""
    activities, lengths = len(variants.labels), variants.lengths[start:stop]
    # One table a size: variant, last activity, number of the sequence without it.
    found = [np.ones((stop - start, 1), dtype=np.bool_)]
    found += [np.zeros((stop - start, activities, activities**k), dtype=np.bool_) for k in range(size)]
    for place in range(int(lengths.max(initial=0))):
        # Variants are sorted by length: those that go on are the last.
        going = np.arange(np.searchsorted(lengths, place, side="right"), stop - start)
        codes = variants.codes[variants.offsets[start + going] + place]
        for k in range(size, 0, -1):
            found[k][going, codes] |= found[k - 1].reshape(stop - start, -1)[going]
    return found[size].reshape(stop - start, -1)

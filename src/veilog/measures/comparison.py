"""What a release kept of its original: every utility measure in one call, each a value or why there is none."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from veilog._plain import ToJson
from veilog.errors import ParameterError, VeilogError
from veilog.logs.eventlog import EventLog
from veilog.logs.variants import Variants
from veilog.measures import directly_follows
from veilog.measures.anomalies import normal_share
from veilog.measures.complexity import complexity, length_error
from veilog.measures.durations import ActiveCases, CaseDurations, Spans, active_cases, case_durations, spans, timed
from veilog.measures.process_model.measure import MEASURES, Running, running
from veilog.measures.similarity.difference import absolute_log_differences
from veilog.measures.similarity.distances import Progress
from veilog.measures.similarity.measure import relative_log_similarities
from veilog.measures.singling_out.measure import SinglingOut, in_words, singling_out

__all__ = ["Comparison", "Coverage", "VariantCounts", "compare"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class VariantCounts:
    """Variants in both logs, in the release only (false positives), in the original only (false negatives)."""

    common: int
    added: int
    lost: int
    added_cases: int
    """Released cases that follow an added variant."""
    lost_cases: int
    """Original cases that follow a lost variant."""


@dataclass(frozen=True)
class Coverage:
    """Shares of the original's activities and of its directly-follows pairs that the release has at all.

    Stands beside fitness: a release that keeps one frequent variant has a fitting model and next to no coverage.
    """

    activities: float
    directly_follows: float


@dataclass(frozen=True)
class Comparison(ToJson):
    """Utility and risk of a release. A measure that is None has its reason in ``not_computed``, and where it could be
    bounded, its interval in ``intervals``."""

    original_cases: int
    released_cases: int
    relative_log_similarity: float | None
    relative_log_similarity_exact: float | None
    absolute_log_difference: int | None
    absolute_log_difference_maximum: int | None
    dfg_frequency_emd: float | None
    dfg_time_emd: float | None
    """In months of 730.5 hours."""
    case_durations: CaseDurations | None
    active_cases: ActiveCases | None
    dfg_moved: float | None
    """Share of directly-follows mass that is on other edges."""
    dfg_largest_changes: tuple[directly_follows.EdgeShare, ...]
    size_ratio: float | None
    """Released cases divided by original cases."""
    length_error: float | None
    """Relative error of the mean number of events a case."""
    sequence_entropy: float | None
    """Normalised sequence entropy of the release."""
    sequence_entropy_original: float | None
    variants: VariantCounts
    keep_real: float | None
    """Share of released cases whose variant exists in the original."""
    coverage: Coverage
    singling_out: SinglingOut | None = None
    """Risk before and after: how often someone who knows a few events of a person finds out the rest."""
    fitness: float | None = None
    precision: float | None = None
    f_score: float | None = None
    generalization: float | None = None
    normal_share: float | None = None
    """Share of released cases that an isolation forest trained on the original takes for normal."""
    not_computed: Mapping[str, str] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Of measures that are None because there are too many pairs of variants: between which numbers they lie."""
    verdict: str = ""
    seconds: float = 0.0


def compare(
    original: EventLog | Variants,
    released: EventLog | Variants,
    *,
    models: bool = False,
    anomalies: bool = False,
    model_seconds: float = 300.0,
    model_memory: int = 4 << 30,
    progress: Progress | None = None,
) -> Comparison:
    """Compare a release with its original by all measures.

    ``models`` adds the quality of the process model discovered from the release (extra ``models``), in a subprocess
    that gets ``model_seconds`` and ``model_memory`` bytes and runs while the other measures are computed. ``anomalies``
    adds the share of released cases that look normal (extra ``anomalies``). Neither log is changed, and no value
    depends on the order of rows. What cannot be computed is None, with its reason in ``not_computed``.
    """
    started = time.perf_counter()
    say = progress or (lambda text, fraction: None)
    first = original if isinstance(original, Variants) else original.variants
    second = released if isinstance(released, Variants) else released.variants
    reasons: dict[str, str] = {}
    attempt = partial(_attempt, reasons)
    with contextlib.ExitStack() as stack:
        model = None
        if models:
            process = running(first, second, seconds=model_seconds, memory=model_memory)
            model = attempt("models", lambda: stack.enter_context(process))
        result = _measured(original, released, reasons, say)
        if anomalies:
            say("Anomalies", None)
            share = attempt("normal_share", lambda: normal_share(first, second).released)
            result = replace(result, normal_share=share)
        if models:
            say("Model of the release", None)
            result = _with_model(result, model, reasons)
    return replace(result, verdict=_verdict(result), seconds=time.perf_counter() - started)


def _with_model(result: Comparison, model: Running | None, reasons: dict[str, str]) -> Comparison:
    if model is None:
        why = reasons.pop("models")
        reasons.update(dict.fromkeys(MEASURES, why))
        return result
    quality = model.result()
    reasons.update(quality.not_computed)
    return replace(
        result,
        fitness=quality.fitness,
        precision=quality.precision,
        f_score=quality.f_score,
        generalization=quality.generalization,
    )


def _measured(
    original: EventLog | Variants, released: EventLog | Variants, reasons: dict[str, str], say: Progress
) -> Comparison:
    """All measures that need nothing installed."""
    first = original if isinstance(original, Variants) else original.variants
    second = released if isinstance(released, Variants) else released.variants
    attempt = partial(_attempt, reasons)
    say("Similarity of variants", None)
    similar = _similarity(first, second, reasons, say)
    say("Absolute differences", None)
    apart = _difference(first, second, reasons, say)
    values, intervals = similar[0] | apart[0], similar[1] | apart[1]
    say("Directly-follows graphs", None)
    moved = attempt("dfg_moved", lambda: directly_follows.moved_mass(first, second))
    say("Singling out", None)
    risk = attempt("singling_out", lambda: singling_out(original, released))
    counts = _overlap(first, second)
    times = attempt("case_durations", lambda: _spans(original, released))
    if times is None:
        reasons["active_cases"] = reasons["case_durations"]
    return Comparison(
        original_cases=first.cases,
        released_cases=second.cases,
        relative_log_similarity=values.get("relative_log_similarity"),
        relative_log_similarity_exact=values.get("relative_log_similarity_exact"),
        absolute_log_difference=_whole(values.get("absolute_log_difference")),
        absolute_log_difference_maximum=_whole(values.get("absolute_log_difference_maximum")),
        dfg_frequency_emd=attempt("dfg_frequency_emd", lambda: directly_follows.frequency_emd(first, second)),
        dfg_time_emd=attempt("dfg_time_emd", lambda: _time_emd(original, released)),
        case_durations=None if times is None else case_durations(*times),
        active_cases=None if times is None else active_cases(*times),
        dfg_moved=None if moved is None else moved.share,
        dfg_largest_changes=() if moved is None else moved.edges,
        size_ratio=attempt("size_ratio", lambda: _share(second.cases, first.cases, "original")),
        length_error=attempt("length_error", lambda: length_error(first, second)),
        sequence_entropy=attempt("sequence_entropy", lambda: _entropy(second)),
        sequence_entropy_original=attempt("sequence_entropy_original", lambda: _entropy(first)),
        variants=counts,
        keep_real=attempt("keep_real", lambda: _share(second.cases - counts.added_cases, second.cases, "released")),
        coverage=Coverage(*directly_follows.edge_coverage(first, second)),
        singling_out=risk,
        not_computed=reasons,
        intervals=intervals,
    )


_Found = tuple[dict[str, float], dict[str, tuple[float, float]]]
"""Values of measures, and intervals of those that are only bounded."""


def _similarity(first: Variants, second: Variants, reasons: dict[str, str], say: Progress) -> _Found:
    names = ("relative_log_similarity", "relative_log_similarity_exact")
    try:
        both = relative_log_similarities(first, second, progress=say)
    except VeilogError as error:
        reasons.update(dict.fromkeys(names, str(error)))
        return {}, {}
    return _told(names, [(r.value, (r.lower, r.upper) if r.bounded else None) for r in both], reasons)


def _difference(first: Variants, second: Variants, reasons: dict[str, str], say: Progress) -> _Found:
    names = ("absolute_log_difference", "absolute_log_difference_maximum")
    try:
        both = absolute_log_differences(first, second, progress=say)
    except VeilogError as error:
        reasons.update(dict.fromkeys(names, str(error)))
        return {}, {}
    return _told(names, [(r.value, (r.lower, r.value) if r.bounded else None) for r in both], reasons)


def _told(
    names: tuple[str, ...],
    found: Sequence[tuple[float, tuple[float, float] | None]],
    reasons: dict[str, str],
) -> _Found:
    values, intervals = {}, {}
    for name, (value, interval) in zip(names, found, strict=True):
        if interval is None:
            values[name] = value
            continue
        intervals[name] = interval
        low, high = (f"{end:,}" if isinstance(end, int) else f"{end:.4f}" for end in interval)
        reasons[name] = f"Only bounded, for certain: from {low} to {high}. The logs have too many pairs of variants."
    return values, intervals


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _attempt(reasons: dict[str, str], name: str, measure: Callable[[], _T]) -> _T | None:
    try:
        return measure()
    except VeilogError as error:
        reasons[name] = str(error)
        return None


def _overlap(original: Variants, released: Variants) -> VariantCounts:
    """Common, added and lost variants, and the cases of the latter two."""
    before = dict(zip(original.sequences, original.counts.tolist(), strict=True))
    common, added, kept = 0, 0, 0
    for sequence, count in zip(released.sequences, released.counts.tolist(), strict=True):
        if sequence in before:
            common += 1
            kept += before[sequence]
        else:
            added += count
    return VariantCounts(common, len(released) - common, len(original) - common, added, original.cases - kept)


def _share(part: int, whole: int, name: str) -> float:
    if whole == 0:
        raise ParameterError(f"The {name} log has no cases.", parameter=name)
    return part / whole


def _entropy(variants: Variants) -> float:
    value = complexity(variants).normalized_sequence_entropy
    if value is None:
        raise ParameterError("A log with fewer than two events has no normalised entropy.")
    return value


def _time_emd(original: EventLog | Variants, released: EventLog | Variants) -> float:
    return directly_follows.time_emd(timed(original, "original"), timed(released, "released"))


def _spans(original: EventLog | Variants, released: EventLog | Variants) -> tuple[Spans, Spans]:
    return spans(timed(original, "original"), "original"), spans(timed(released, "released"), "released")


_GRADES = (
    (1.0, "has the original's variants in the original's shares"),
    (0.95, "is almost the original"),
    (0.85, "is close to the original"),
    (0.7, "keeps the main behaviour of the original"),
    (0.5, "keeps part of the original's behaviour"),
    (0.0, "has little to do with the original"),
)


def _verdict(result: Comparison) -> str:
    """A few sentences for people; the numbers beside them say the same exactly."""
    if result.released_cases == 0:
        return "The release is empty: nothing of the original can be seen in it."
    if result.original_cases == 0:
        return "The original is empty, so there is nothing to compare with."
    counts = result.variants
    sentences = []
    if result.relative_log_similarity is not None:
        grade = next(text for least, text in _GRADES if result.relative_log_similarity >= least)
        sentences.append(f"The release {grade} (similarity {result.relative_log_similarity:.2f} of 1).")
    elif "relative_log_similarity" in result.intervals:
        low, high = result.intervals["relative_log_similarity"]
        sentences.append(f"Its similarity to the original is from {low:.2f} to {high:.2f} of 1.")
    if result.coverage.activities == 0.0 and result.dfg_moved is not None:
        sentences.append("The two logs have no activity in common.")
    total = counts.common + counts.lost
    sentences.append(
        f"{_percent(result.keep_real)} of its cases follow a variant that exists in the original; of the original's "
        f"{total} variants it has {counts.common}, and it adds {counts.added}."
    )
    if result.dfg_moved is not None:
        sentences.append(
            f"{_percent(result.dfg_moved)} of the directly-follows steps moved to other edges, and "
            f"{_percent(result.coverage.directly_follows)} of the original's kinds of steps occur at all."
        )
    ratio = result.size_ratio
    if ratio is not None and not 0.9 <= ratio <= 1.1:
        sentences.append(f"It has {ratio:.2g} times as many cases as the original.")
    if result.fitness is not None and result.coverage.directly_follows < 0.5 and result.fitness >= 0.9:
        sentences.append("Its model's high fitness says little: less than half of the original's steps are in it.")
    if result.singling_out is not None:
        sentences.append(in_words(result.singling_out))
    return " ".join(sentences)


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{100 * share:.0f} %"

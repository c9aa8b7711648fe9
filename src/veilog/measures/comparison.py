"""Utility of a release: every measure in one call, each a value or a reason."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from veilog._language import count_phrase, format_number, share_in_percent, two_digits
from veilog._notebook import card, figure, frame, paragraph, table
from veilog._plain import ToJson
from veilog.errors import ParameterError, VeilogError, meant
from veilog.logs.variants import Variants
from veilog.measures.measure import MEASURES, Found, Measure, Miner, Pair, Progress, Quantity, Reason
from veilog.measures.process_model import MEASURES as OF_MODELS
from veilog.measures.use_cases import Assessment, Grade, UseCaseOptions, judge, use_cases_by_name
from veilog.measures.use_cases.use_case import capital
from veilog.messages import Message, OwnerMessage

if TYPE_CHECKING:
    import pandas as pd

    from veilog.logs.files import AnyLog
    from veilog.measures.singling_out.inference import Inference
    from veilog.measures.singling_out.linkage import Linkability
    from veilog.measures.singling_out.measure import SinglingOut

ATTACKS = ("singling_out", "linkability", "inference")
"""Measures that attack people."""
_MODEL_SECONDS: Mapping[Miner, float] = {"veilog": 30.0, "pm4py": 300.0}
"""Seconds by miner; veilog's models are part of every comparison, so they get fewer."""


class Line(NamedTuple):
    """One number of a comparison with its words."""

    measure: str
    quantity: Quantity
    value: float | int | None
    interval: tuple[float, float] | None
    """Between which numbers it lies, where it is only bounded."""
    meaning: str

    @property
    def shown(self) -> str:
        """The number as people read it."""
        if self.value is None and self.interval is not None:
            return " to ".join(map(figure, self.interval))
        return figure(self.value) + (" h" if self.quantity.form == "hours" and self.value is not None else "")

    def to_json(self) -> dict[str, Any]:
        """Return the number and its words by name."""
        low, high = (self.value, self.value) if self.interval is None else self.interval
        told = (self.value, low, high, self.quantity.better, self.meaning)
        return {"measure": self.measure, "title": self.quantity.title} | dict(zip(_NUMBERS, told, strict=True))


_NUMBERS = ("value", "low", "high", "better", "meaning")
_EDGES: Mapping[Grade, str] = {"good": "good", "limited": "fair", "poor": "bad", "not judged": "s"}


@dataclass(frozen=True)
class Comparison:
    """Utility and risk of a release: the results of all measures, in their order.

    A measure that is None has its reason in ``not_computed``, and where it could be bounded, its interval in
    ``intervals``.
    """

    original_cases: int
    released_cases: int
    results: Mapping[str, Found]
    """By the name of the measure; those that were not asked for are not there."""
    use_cases: Mapping[str, Assessment] = field(default_factory=dict)
    """Assessments of the requested use cases, by name."""
    verdict: str = ""
    seconds: float = 0.0
    verdicts: Mapping[Aspect, Verdict] = field(default_factory=dict)
    """On control flow, times and attributes, each by itself, as far as the release has them."""

    def __getattr__(self, name: str) -> Any:
        """Return the value of a measure; None without one, or if it was not requested."""
        if name.startswith("_") or name not in MEASURES:
            raise AttributeError(f"a comparison has no {name!r}", name=name, obj=self)
        return self.results[name].value if name in self.results else None

    def __repr__(self) -> str:
        return (
            f"Comparison({count_phrase(self.original_cases, 'case')}, {self.released_cases:,} released: {self.verdict})"
        )

    @property
    def grade(self) -> Fidelity | None:
        """The worst grade of control flow, times and attributes."""
        return worst_of(self.verdicts)

    @property
    def sizes(self) -> OwnerMessage:
        """Cases of both logs; with few cases even a high similarity shows little."""
        return OwnerMessage("sizes-compared", released=self.released_cases, original=self.original_cases)

    @property
    def not_computed(self) -> Mapping[str, Reason]:
        """Reasons of measures without a value."""
        return {name: found.why for name, found in self.results.items() if found.value is None}

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Bounds of measures that are None because there are too many pairs of variants."""
        return {name: found.interval for name, found in self.results.items() if found.interval is not None}

    @property
    def attacks(self) -> tuple[SinglingOut | None, Linkability | None, Inference | None]:
        """Results of attacks on people."""
        return self.singling_out, self.linkability, self.inference

    @property
    def added(self) -> Mapping[str, str]:
        """The measures that other distributions add, and which distribution each is of."""
        return {name: by for name in self.results if (by := MEASURES.added_by(name))}

    def lines(self, names: Iterable[str] | None = None) -> Iterator[Line]:
        """Yield the numbers of these measures (all) with their words.

        A measure that has to be asked for, or has several numbers, is left out where it has no value.
        """
        for name in self.results if names is None else names:
            measure, found = MEASURES[name], self.results.get(name)
            if found is None or (found.value is None and (measure.extra or any(q.of for q in measure.quantities))):
                continue
            for quantity in measure.quantities:
                number = quantity.number(found.value)
                meaning = quantity.says(found.value)
                if name == "relative_log_similarity":
                    meaning += f"; {self.sizes}"
                yield Line(name, quantity, number, found.interval, meaning)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each number: its name, its value or bounds, and its words.

        Names of use cases are such as ``discovery.fitness``; their words grade the utility.

        >>> import veilog
        >>> from veilog.logs.synthetic.hospital import hospital
        >>> log = hospital(50, seed=1)
        >>> frame = veilog.compare(log, log, models=False).to_frame().set_index("measure")
        >>> float(frame.value["relative_log_similarity"])
        1.0
        """
        rows = [line.to_json() for line in self.lines()]
        rows += [row for use_case in self.use_cases.values() for row in use_case.rows()]
        return frame(rows, ("measure", "title", *_NUMBERS))

    def _repr_html_(self) -> str:
        """Return the verdict, what the release is good for, and every number."""
        use_cases = [paragraph(judged.verdict, _EDGES[judged.grade]) for judged in self.use_cases.values()]
        rows = [(line.quantity.title, line.shown, line.meaning) for line in self.lines()]
        sizes = f"{count_phrase(self.original_cases, 'case')} before, {self.released_cases:,} after."
        numbers = table(("measure", "value", ""), rows, numbers=(1,))
        return card("Comparison", paragraph(self.verdict), *use_cases, numbers, paragraph(sizes, "s"))

    def to_json(self) -> dict[str, object]:
        """Return all results as plain values; those of other packages are under ``added``."""
        out: dict[str, object] = {"original_cases": self.original_cases, "released_cases": self.released_cases}
        out |= {name: _plain(getattr(self, name)) for name in MEASURES if not MEASURES.added_by(name)}
        out["not_computed"] = {name: str(why) for name, why in self.not_computed.items()}
        out["intervals"] = {name: list(interval) for name, interval in self.intervals.items()}
        out |= {"verdict": self.verdict, "grade": self.grade}
        out |= {"verdicts": {aspect: found.to_json() for aspect, found in self.verdicts.items()}}
        out["seconds"] = self.seconds
        if self.use_cases:
            out["use_cases"] = {name: judged.to_json() for name, judged in self.use_cases.items()}
        if self.added:
            out["added"] = {name: {"from": by} | self._numbers(name) for name, by in self.added.items()}
        return out

    def _numbers(self, name: str) -> dict[str, float | int | None]:
        return MEASURES[name].numbers(self.results[name].value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Message | OwnerMessage | VeilogError):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return value


def compare(
    original: AnyLog,
    released: AnyLog,
    *,
    models: bool | Literal["pm4py"] = True,
    attacks: bool | Collection[str] = True,
    anomalies: bool = False,
    use_cases: Sequence[str] | str = (),
    asked: UseCaseOptions | None = None,
    control: AnyLog | None = None,
    second: AnyLog | None = None,
    exact: bool = False,
    model_seconds: float | None = None,
    model_memory: int = 4 << 30,
    progress: Progress | None = None,
) -> Comparison:
    """Compare a release with its original by all measures.

    Both may be a log, a :class:`Release`, variants, a DataFrame or a file. A release of a subset of the cases is held
    against the same subset of the original. A :class:`Release` given first is refused, unless both are one.

    >>> import veilog
    >>> from veilog.logs.synthetic.hospital import hospital
    >>> log = hospital(200, seed=1)
    >>> released = veilog.release(log, "evolve", epsilon=1, activities="log", seed=1)
    >>> found = veilog.compare(log, released)
    >>> 0.5 < found.relative_log_similarity < 1
    True

    Quality of the process model discovered from the release is found here within ``model_seconds`` (30 by default)
    unless ``models`` is False; with ``"pm4py"`` (extra ``models``) by pm4py, in a process beside the other measures
    that gets ``model_seconds`` (300) and ``model_memory`` bytes. ``attacks`` are all, these, or none (False).
    ``anomalies`` adds the share of released cases that look normal (extra ``anomalies``). ``use_cases`` (names of
    :data:`veilog.measures.use_cases.USE_CASES`, or ``all``) adds what the release is good for. ``asked`` has options
    for them: ``veilog.measures.UseCaseOptions(model=...)`` a model or constraints that cases are checked against,
    ``targets=("outcome",)`` attributes whose prediction is wanted, ``alignments=True`` fitness by alignments,
    ``person="Patient"`` whose a case is. ``control`` has people of the same process who were not in the log that was
    released, and is refused where some were: the attacks on people are held against the same attacks on them, and
    without it against what others' cases reveal. ``second`` is another release of the same log, which an attacker may
    hold, too. The similarity of logs of many variants is bounded in ``intervals`` and their difference left out; with
    ``exact`` both are found, which may take minutes. No log is changed, and no value depends on the order of rows.
    What cannot be computed is None, with its reason in ``not_computed``.
    """
    started = time.perf_counter()
    wanted, told = use_cases_by_name(use_cases), _check_options(asked)
    miner = _miner(models, model_seconds)
    seconds = _MODEL_SECONDS[miner] if model_seconds is None else model_seconds
    from veilog.measures.persons import check_apart, column_of  # tables are loaded when there are any

    before, after, others, again = _logs(original, released, control, second)
    check_apart(before, others, told.person)
    say, person = progress or (lambda text, fraction: None), column_of(before, told.person) or False
    pair = Pair(before, after, say, seconds, model_memory, miner, others, again, person, exact)
    extras = {"", *(["models"] if miner == "pm4py" else []), *(["anomalies"] if anomalies else [])}
    tried = attacks or () if attacks is not True else ATTACKS
    left_out = {*(() if models else OF_MODELS), *(name for name in ATTACKS if name not in tried)}
    with pair.closing():
        results = dict(_run_measures(pair, [m for n, m in MEASURES.items() if m.extra in extras and n not in left_out]))
    first, last = (log.cases for log in pair.variants)
    similar = results["relative_log_similarity"]
    least = similar.value if similar.interval is None else similar.interval[0]
    result = Comparison(first, last, results, judge(pair, wanted, told), verdicts=judged(pair, least))
    return replace(result, verdict=verdict_of(result), seconds=time.perf_counter() - started)


def _logs(original: AnyLog, released: AnyLog, control: AnyLog | None, second: AnyLog | None) -> tuple[Any, ...]:
    """All of them as logs; of the original the cases that the release is of."""
    from veilog.logs.files import as_log
    from veilog.privacy.partition import same_cases

    if hasattr(original, "guarantee") and not hasattr(released, "guarantee"):  # a Release, of a later layer
        raise ParameterError("comparison-original-is-release", parameter="original")
    after = as_log(released)
    before = same_cases(as_log(original), after)
    return before, after, *(None if log is None else as_log(log) for log in (control, second))


def _check_options(asked: object) -> UseCaseOptions:
    """Return the options of use cases; refuse anything else."""
    if asked is None or isinstance(asked, UseCaseOptions):
        return asked or UseCaseOptions()
    raise ParameterError("comparison-asked-invalid", parameter="asked", asked=asked)


def _miner(models: bool | str, seconds: float | None) -> Miner:
    """Return the miner and its seconds; refuse values that are neither."""
    if not isinstance(models, bool) and models != "pm4py":
        raise ParameterError(
            "comparison-models-invalid",
            parameter="models",
            advice=meant(str(models), ["pm4py"]) or None,
            models=models,
        )
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and seconds > 0):
        raise ParameterError("comparison-seconds-not-positive", parameter="model_seconds", seconds=seconds)
    return "pm4py" if models == "pm4py" else "veilog"


def _run_measures(pair: Pair, measures: list[Measure]) -> Iterator[tuple[str, Found]]:
    """Yield what each measure finds; those in their own process begin first."""
    for measure in measures:
        if measure.begin is not None:
            with contextlib.suppress(VeilogError):  # its own turn says so
                measure.begin(pair)
    for measure in measures:
        by = MEASURES.added_by(measure.name)
        yield measure.name, measure.found_by(by, pair) if by else measure.found(pair)


_GRADES = {1.0: "all", 0.95: "almost", 0.85: "close", 0.7: "main", 0.5: "part", 0.0: "little"}
"""Grades of utility, each by its least similarity."""


def verdict_of(result: Comparison, *, of_people: bool = True) -> str:
    """Return a few sentences for people, the last ones about attacks (``of_people``)."""
    if result.released_cases == 0:
        return str(Message("compared-release-empty"))
    if result.original_cases == 0:
        return str(Message("compared-original-empty"))
    return " ".join(map(str, (*_likeness(result), *_behaviour(result), *(_people(result) if of_people else ()))))


def _likeness(result: Comparison) -> Iterator[OwnerMessage | str]:
    similarity, interval = result.relative_log_similarity, result.intervals.get("relative_log_similarity")
    if similarity is None and interval is not None and _digits(interval[0]) == _digits(interval[1]):
        similarity = interval[0]
    if len(result.verdicts) > 1:
        yield _overall_sentence(result)
    elif similarity is not None:
        grade = next(grade for least, grade in _GRADES.items() if similarity >= least)
        yield OwnerMessage(f"likeness-{grade}", number=_digits(similarity))
        if _odd_size(result):
            yield f"{result.sizes}."
    elif interval is not None:
        low, high = map(_digits, interval)
        sampled = result.not_computed["relative_log_similarity"].code == "measure-bounded-by-sample"
        yield OwnerMessage(f"similarity-bounded{'-by-sample' if sampled else ''}", low=low, high=high)
    if result.coverage.activities == 0.0 and result.dfg_moved is not None:
        yield OwnerMessage("activities-not-shared")


def _overall_sentence(result: Comparison) -> str:
    """The verdict on every aspect, in one sentence."""
    number, how = result.relative_log_similarity, ""
    if number is not None:
        how = str(OwnerMessage("similarity-found", number=_digits(number)))
    elif "control_flow" in result.verdicts:
        how = str(OwnerMessage("similarity-at-least", number=_digits(1 - result.verdicts["control_flow"].error)))
    how += f"; {result.sizes}" if _odd_size(result) else ""
    told = [
        OwnerMessage(
            f"verdict-{aspect}".replace("_", "-"),
            grade=OwnerMessage(f"grade-{found.grade}"),
            how=how,
            off=share_in_percent(found.error),
            of=repr(found.of),
        )
        for aspect, found in result.verdicts.items()
    ]
    return f"{capital('; '.join(map(str, told)))}."


def _odd_size(result: Comparison) -> bool:
    """Return True if far fewer or far more cases were released than the original has."""
    ratio = result.size_ratio
    return ratio is not None and not 0.5 <= ratio <= 2


def _behaviour(result: Comparison) -> Iterator[OwnerMessage]:
    counts, coverage = result.variants, result.coverage
    known = counts.common + counts.lost
    share = OwnerMessage("share-unknown") if result.keep_real is None else share_in_percent(result.keep_real)
    yield OwnerMessage(
        "variant-kept" if known == 1 else "variants-kept",
        n=known,
        share=share,
        common=counts.common,
        added=counts.added,
    )
    if 0.0 < coverage.activities < 1.0:
        yield OwnerMessage("activities-kept", share=share_in_percent(coverage.activities))
    if result.dfg_moved is not None:
        kinds = share_in_percent(coverage.directly_follows)
        yield OwnerMessage("steps-moved", moved=share_in_percent(result.dfg_moved), kinds=kinds)
    ratio = result.size_ratio
    if ratio is not None and not 0.9 <= ratio <= 1.1:
        yield OwnerMessage("cases-multiplied", times=two_digits(ratio))
    if result.fitness is not None and coverage.directly_follows < 0.5 and result.fitness >= 0.9:
        yield OwnerMessage("model-of-few-steps", fitness=share_in_percent(result.fitness))


def _people(result: Comparison) -> Iterator[str]:
    if result.singling_out is not None:
        from veilog.measures.singling_out.words import result_sentence  # not before there is something to say

        yield result_sentence(result.singling_out)


def _digits(similarity: float) -> str:
    return format_number(f"{similarity:.2f}")


# Verdicts ------------------------------------------------------------------------------------------------------------

# Verdicts: how far a release is from its original, for control flow, times and attributes each by itself.
#
# Every aspect has an error from 0 (as in the original) on, and the same steps lead from it to a grade:
#
# - *control flow*: 1 less the relative log similarity;
# - *times*: the larger of two errors of how long cases last. One is the earth mover's distance between the
#   durations of both logs, over that between the original's and its median alone (its mean absolute deviation from
#   the median): at 1 the release says no more of durations than a single typical one. The other is how far the mean
#   is off, over the larger of both means;
# - *attributes*: 1 less the likeness (the total variation or Kolmogorov-Smirnov complement) of the distribution of
#   the released attribute that is least like the original's.
#
# An aspect that the release does not have is not judged. The grade of a release is its worst.


Aspect = Literal["control_flow", "times", "attributes"]
Fidelity = Literal["close", "usable", "rough", "noise"]

STEPS: Mapping[Fidelity, float] = {"close": 0.15, "usable": 0.3, "rough": 0.5, "noise": np.inf}
"""Up to which error an aspect has which grade."""


@dataclass(frozen=True)
class Verdict(ToJson):
    """The grade of one aspect, and the error that it follows from."""

    grade: Fidelity
    error: float
    of: str = ""
    """The attribute whose error it is."""

    @staticmethod
    def by(error: float, of: str = "") -> Verdict:
        """Return the verdict that follows from an error."""
        return Verdict(next(grade for grade, most in STEPS.items() if error <= most + 1e-9), round(error, 4), of)


def judged(pair: Pair, similarity: float | None) -> dict[Aspect, Verdict]:
    """Return the verdicts on the aspects of a release.

    ``similarity`` is the relative log similarity, or its lower bound."""
    if not all(log.cases for log in pair.variants):
        return {}
    found: dict[Aspect, Verdict] = {} if similarity is None else {"control_flow": Verdict.by(1 - similarity)}
    times = _times_verdict(pair)
    attributes = _attributes_verdict(pair)
    found |= {} if times is None else {"times": times}
    return found | ({} if attributes is None else {"attributes": attributes})


def worst_of(verdicts: Mapping[Aspect, Verdict]) -> Fidelity | None:
    """Return the worst grade; None where nothing was judged."""
    order = get_args(Fidelity)
    return max((verdict.grade for verdict in verdicts.values()), key=order.index, default=None)


def _times_verdict(pair: Pair) -> Verdict | None:
    from veilog.measures.durations import emd, spans, timed  # and pyarrow with it

    try:
        original, released = pair.whole
        found = [spans(timed(log, "log")) for log in (original, released)]
    except VeilogError:  # it has no times, or the original has none
        return None
    old, new = (np.sort(each.last - each.first) for each in found)
    moved, spread = emd(old, new), float(np.abs(old - np.median(old)).mean())
    means = float(old.mean()), float(new.mean())
    off = 0.0 if means[0] == means[1] else abs(means[0] - means[1]) / max(means)
    return Verdict.by(max(off, moved / spread if spread else float(moved > 0)))


def _attributes_verdict(pair: Pair) -> Verdict | None:
    from veilog.measures.persons import column_of
    from veilog.measures.use_cases.attributes import marginals, not_kept

    if any(isinstance(log, Variants) for log in (pair.original, pair.released)):
        return None
    original, released = pair.whole
    try:
        person = column_of(original, pair.person)
        likeness = marginals(released, original, person)
        lacking = not_kept(released, original, person)
    except VeilogError:  # the original has none to compare
        return None
    kept = {name: value for name, value in likeness.items() if name not in lacking}
    if not kept:
        return None
    name = min(kept, key=lambda each: (kept[each], each))
    return Verdict.by(1 - kept[name], name)

"""What a release kept of its original: a table of every measure in one call, each a value or why there is none."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, overload

from veilog._language import counted, gettext, gettext_noop, in_two_digits, localised, ngettext, share_in_percent
from veilog._notebook import card, figure, frame, paragraph, table
from veilog.errors import ParameterError, VeilogError, meant
from veilog.measures.measure import Found, Measure, Miner, Pair, Progress, Quantity
from veilog.measures.process_model.measure import MEASURES as OF_MODELS
from veilog.measures.purposes import Asked, Grade, Judgement, judge, named
from veilog.measures.registry import MEASURES
from veilog.measures.verdicts import Aspect, Fidelity, Verdict, judged, worst_of

if TYPE_CHECKING:
    import pandas as pd

    from veilog.logs.files import AnyLog
    from veilog.measures.directly_follows import Coverage, EdgeShare
    from veilog.measures.durations import ActiveCases, CaseDurations
    from veilog.measures.overlap import VariantCounts
    from veilog.measures.rework import Rework
    from veilog.measures.singling_out import Inference, Linkability, SinglingOut


T = TypeVar("T")

_NOT_ASKED = Found(None)
_MODEL_SECONDS: Mapping[Miner, float] = {"veilog": 30.0, "pm4py": 300.0}
"""Ours are taken of every release, which nobody waits minutes for."""


class _Value(Generic[T]):
    """The value of the measure of this name; None where there is none, or where it was not asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, comparison: None, owner: type) -> _Value[T]: ...
    @overload
    def __get__(self, comparison: Comparison, owner: type) -> T: ...
    def __get__(self, comparison: Comparison | None, owner: type) -> _Value[T] | T:
        if comparison is None:
            return self
        value: Any = comparison.results.get(self._name, _NOT_ASKED).value
        return value  # type: ignore[no-any-return]


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
    """Utility and risk of a release: what every measure found, in the order in which they were taken.

    A measure that is None has its reason in ``not_computed``, and where it could be bounded, its interval in
    ``intervals``.
    """

    original_cases: int
    released_cases: int
    results: Mapping[str, Found]
    """By the name of the measure; those that were not asked for are not there."""
    purposes: Mapping[str, Judgement] = field(default_factory=dict)
    """What the release is good for, by the name of the purpose; those that were asked for."""
    verdict: str = ""
    seconds: float = 0.0
    verdicts: Mapping[Aspect, Verdict] = field(default_factory=dict)
    """On control flow, times and attributes, each by itself, as far as the release has them."""

    relative_log_similarity: ClassVar[_Value[float | None]] = _Value()
    relative_log_similarity_exact: ClassVar[_Value[float | None]] = _Value()
    absolute_log_difference: ClassVar[_Value[int | None]] = _Value()
    absolute_log_difference_maximum: ClassVar[_Value[int | None]] = _Value()
    dfg_frequency_emd: ClassVar[_Value[float | None]] = _Value()
    dfg_time_emd: ClassVar[_Value[float | None]] = _Value()
    """In months of 730.5 hours."""
    case_durations: ClassVar[_Value[CaseDurations | None]] = _Value()
    active_cases: ClassVar[_Value[ActiveCases | None]] = _Value()
    dfg_moved: ClassVar[_Value[float | None]] = _Value()
    """Share of directly-follows mass that is on other edges."""
    dfg_largest_changes: ClassVar[_Value[tuple[EdgeShare, ...]]] = _Value()
    size_ratio: ClassVar[_Value[float | None]] = _Value()
    """Released cases divided by original cases."""
    length_error: ClassVar[_Value[float | None]] = _Value()
    """Relative error of the mean number of events a case."""
    sequence_entropy: ClassVar[_Value[float | None]] = _Value()
    """Normalised sequence entropy of the release."""
    sequence_entropy_original: ClassVar[_Value[float | None]] = _Value()
    rework: ClassVar[_Value[Rework | None]] = _Value()
    """Shares of cases that do an activity again, and of steps from an activity to itself."""
    variants: ClassVar[_Value[VariantCounts]] = _Value()
    keep_real: ClassVar[_Value[float | None]] = _Value()
    """Share of released cases whose variant exists in the original."""
    coverage: ClassVar[_Value[Coverage]] = _Value()
    singling_out: ClassVar[_Value[SinglingOut | None]] = _Value()
    """Risk before and after: how often someone who knows a few events of a person finds out the rest."""
    linkability: ClassVar[_Value[Linkability | None]] = _Value()
    """How often someone who holds two lists about people matches them."""
    inference: ClassVar[_Value[Inference | None]] = _Value()
    """How often someone who knows how a case began, or its other attributes, guesses its end or an attribute."""
    fitness: ClassVar[_Value[float | None]] = _Value()
    precision: ClassVar[_Value[float | None]] = _Value()
    f_score: ClassVar[_Value[float | None]] = _Value()
    generalization: ClassVar[_Value[float | None]] = _Value()
    normal_share: ClassVar[_Value[float | None]] = _Value()
    """Share of released cases that an isolation forest trained on the original takes for normal."""

    def __repr__(self) -> str:
        return f"Comparison({counted(self.original_cases, 'case')}, {self.released_cases:,} released: {self.verdict})"

    @property
    def grade(self) -> Fidelity | None:
        """The worst grade of control flow, times and attributes."""
        return worst_of(self.verdicts)

    @property
    def sizes(self) -> str:
        """The cases of both logs, in words: of few cases a similarity says little, however high it is."""
        return gettext(
            "{released} cases for {original}",
            released=localised(f"{self.released_cases:,}"),
            original=localised(f"{self.original_cases:,}"),
        )

    @property
    def not_computed(self) -> Mapping[str, str]:
        """Of measures without a value, the reason."""
        return {name: found.reason for name, found in self.results.items() if found.value is None}

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Of measures that are None because there are too many pairs of variants: between which numbers they lie."""
        return {name: found.interval for name, found in self.results.items() if found.interval is not None}

    @property
    def attacks(self) -> tuple[SinglingOut | None, Linkability | None, Inference | None]:
        """What attacks on people achieved."""
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
        """Return a row for each number: what it is called, its value or between which numbers it lies, and its words.
        Those of purposes are called ``discovery.fitness``, and their words say how much is kept.

        >>> import veilog
        >>> from veilog.logs.synthetic.hospital import hospital
        >>> log = hospital(50, seed=1)
        >>> frame = veilog.compare(log, log, models=False).to_frame().set_index("measure")
        >>> float(frame.value["relative_log_similarity"])
        1.0
        """
        rows = [line.to_json() for line in self.lines()]
        rows += [row for purpose in self.purposes.values() for row in purpose.rows()]
        return frame(rows, ("measure", "title", *_NUMBERS))

    def _repr_html_(self) -> str:
        """Return the verdict, what the release is good for, and every number."""
        purposes = [paragraph(judged.verdict, _EDGES[judged.grade]) for judged in self.purposes.values()]
        rows = [(line.quantity.title, line.shown, line.meaning) for line in self.lines()]
        sizes = f"{counted(self.original_cases, 'case')} before, {self.released_cases:,} after."
        numbers = table(("measure", "value", ""), rows, numbers=(1,))
        return card("Comparison", paragraph(self.verdict), *purposes, numbers, paragraph(sizes, "s"))

    def to_json(self) -> dict[str, object]:
        """Return everything as plain values; measures of other distributions are under ``added``."""
        out: dict[str, object] = {"original_cases": self.original_cases, "released_cases": self.released_cases}
        out |= {name: _plain(getattr(self, name)) for name in _OWN}
        out["not_computed"] = dict(self.not_computed)
        out["intervals"] = {name: list(interval) for name, interval in self.intervals.items()}
        out |= {"verdict": self.verdict, "grade": self.grade}
        out |= {"verdicts": {aspect: found.to_json() for aspect, found in self.verdicts.items()}}
        out["seconds"] = self.seconds
        if self.purposes:
            out["purposes"] = {name: judged.to_json() for name, judged in self.purposes.items()}
        if self.added:
            out["added"] = {name: {"from": by} | self._numbers(name) for name, by in self.added.items()}
        return out

    def _numbers(self, name: str) -> dict[str, float | int | None]:
        return MEASURES[name].numbers(self.results[name].value)


_OWN = tuple(name for name, value in vars(Comparison).items() if isinstance(value, _Value))
"""In the order in which they stand in JSON."""


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def compare(
    original: AnyLog,
    released: AnyLog,
    *,
    models: bool | Literal["pm4py"] = True,
    anomalies: bool = False,
    purposes: Sequence[str] | str = (),
    asked: Asked | None = None,
    control: AnyLog | None = None,
    second: AnyLog | None = None,
    model_seconds: float | None = None,
    model_memory: int = 4 << 30,
    progress: Progress | None = None,
) -> Comparison:
    """Compare a release with its original by all measures.

    Both may be a log, a :class:`Release`, variants, a DataFrame or a file. A release of a part of the cases is held
    against the same part of the original. A :class:`Release` given first is refused, unless both are one.

    >>> import veilog
    >>> from veilog.logs.synthetic.hospital import hospital
    >>> log = hospital(200, seed=1)
    >>> released = veilog.release(log, "evolve", epsilon=1, activities="log", seed=1)
    >>> found = veilog.compare(log, released)
    >>> 0.5 < found.relative_log_similarity < 1
    True

    Quality of the process model discovered from the release is found here within ``model_seconds`` (30 unless told
    otherwise) unless ``models`` is False; with ``"pm4py"`` (extra ``models``) by pm4py, in a process beside the other
    measures that gets ``model_seconds`` (300) and ``model_memory`` bytes. ``anomalies`` adds the share of released
    cases that look normal (extra ``anomalies``). ``purposes`` (names of :data:`veilog.measures.purposes.PURPOSES`, or
    ``all``) adds what the release is good for. ``asked`` tells them more: ``veilog.measures.Asked(model=...)`` a model
    or constraints that cases are checked against, ``targets=("outcome",)`` attributes whose prediction is wanted,
    ``alignments=True`` fitness by alignments, ``person="Patient"`` whose a case is. ``control`` has people of the
    same process who were not in the log that was released, and is refused where some were: the attacks on people are
    held against the same attacks on them, and without it against what others' cases tell. ``second`` is another release
    of the same log, which an attacker may hold, too. No log is changed, and no value depends on the order of rows. What
    cannot be computed is None, with its reason in ``not_computed``.
    """
    started = time.perf_counter()
    wanted = named(purposes)
    miner = _miner(models, model_seconds)
    seconds = _MODEL_SECONDS[miner] if model_seconds is None else model_seconds
    say = progress or (lambda text, fraction: None)
    from veilog.logs.files import as_log  # tables are loaded when there are any
    from veilog.measures.persons import check_apart, column_of
    from veilog.privacy.part import of_same_cases

    if hasattr(original, "guarantee") and not hasattr(released, "guarantee"):  # a Release, of a later layer
        raise ParameterError("comparison-original-is-release", parameter="original")
    after = as_log(released)
    sides: tuple[Any, Any] = (of_same_cases(as_log(original), after), after)
    beside = (None if control is None else as_log(control), None if second is None else as_log(second))
    told = _asked(asked) or Asked()
    check_apart(sides[0], beside[0], told.person)
    pair = Pair(*sides, say, seconds, model_memory, miner, *beside, column_of(sides[0], told.person) or False)
    extras = {"", *(["models"] if miner == "pm4py" else []), *(["anomalies"] if anomalies else [])}
    left_out = () if models else OF_MODELS
    taken = [measure for name, measure in MEASURES.items() if measure.extra in extras and name not in left_out]
    with pair.closing():
        results = dict(_taken(pair, taken))
    first, second = pair.variants
    similar = results["relative_log_similarity"]
    least = similar.value if similar.interval is None else similar.interval[0]
    result = Comparison(first.cases, second.cases, results, judge(pair, wanted, told), verdicts=judged(pair, least))
    return replace(result, verdict=verdict_of(result), seconds=time.perf_counter() - started)


def _asked(asked: object) -> Asked | None:
    """What purposes are told, if it is that."""
    if asked is None or isinstance(asked, Asked):
        return asked
    raise ParameterError("comparison-asked-invalid", parameter="asked", asked=asked)


def _miner(models: bool | str, seconds: float | None) -> Miner:
    """Whose models are measured; refuses what says neither that nor for how long."""
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


def _taken(pair: Pair, measures: list[Measure]) -> Iterator[tuple[str, Found]]:
    """Yield what each measure finds; what goes on beside the others is begun first."""
    for measure in measures:
        if measure.begin is not None:
            with contextlib.suppress(VeilogError):  # its own turn says so
                measure.begin(pair)
    for measure in measures:
        by = MEASURES.added_by(measure.name)
        yield measure.name, measure.found_by(by, pair) if by else measure.found(pair)


_GRADES = (
    (1.0, gettext_noop("The release has the original's variants in the original's shares (similarity {number} of 1).")),
    (0.95, gettext_noop("The release is almost the original (similarity {number} of 1).")),
    (0.85, gettext_noop("The release is close to the original (similarity {number} of 1).")),
    (0.7, gettext_noop("The release keeps the main behaviour of the original (similarity {number} of 1).")),
    (0.5, gettext_noop("The release keeps part of the original's behaviour (similarity {number} of 1).")),
    (0.0, gettext_noop("The release has little to do with the original (similarity {number} of 1).")),
)


def verdict_of(result: Comparison, *, people: bool = True) -> str:
    """Return a few sentences for people; the numbers beside them say the same exactly. The last is about ``people``."""
    if result.released_cases == 0:
        return gettext("The release is empty: nothing of the original can be seen in it.")
    if result.original_cases == 0:
        return gettext("The original is empty, so there is nothing to compare with.")
    return " ".join([*_likeness(result), *_behaviour(result), *(_people(result) if people else ())])


_ASPECTS: Mapping[Aspect, str] = {
    "control_flow": gettext_noop("control flow is {grade} ({how})"),
    "times": gettext_noop("times are {grade} (off by {off})"),
    "attributes": gettext_noop("attributes are {grade} ({of} is off by {off})"),
}
_WORDS: Mapping[Fidelity, str] = {
    "close": gettext_noop("close"),
    "usable": gettext_noop("usable"),
    "rough": gettext_noop("rough"),
    "noise": gettext_noop("noise"),
}


def _likeness(result: Comparison) -> Iterator[str]:
    number = ""
    if result.relative_log_similarity is not None:
        number = localised(f"{result.relative_log_similarity:.2f}")
    if len(result.verdicts) > 1:
        yield _of_all(result, number)
    elif number:
        grade = next(text for least, text in _GRADES if (result.relative_log_similarity or 0.0) >= least)
        yield gettext(grade, number=number)
        if _odd_size(result):
            yield f"{result.sizes}."
    elif "relative_log_similarity" in result.intervals:
        low, high = (localised(f"{end:.2f}") for end in result.intervals["relative_log_similarity"])
        yield gettext("Its similarity to the original is from {low} to {high} of 1.", low=low, high=high)
    if result.coverage.activities == 0.0 and result.dfg_moved is not None:
        yield gettext("The two logs have no activity in common.")


def _of_all(result: Comparison, number: str) -> str:
    """The verdict on every aspect, in one sentence."""
    least = localised(f"{1 - result.verdicts['control_flow'].error:.2f}") if "control_flow" in result.verdicts else ""
    how = gettext("similarity {number} of 1", number=number) if number else ""
    how = how or gettext("similarity {number} of 1 or more", number=least)
    how += f"; {result.sizes}" if _odd_size(result) else ""
    told = [
        gettext(
            _ASPECTS[aspect],
            grade=gettext(_WORDS[found.grade]),
            how=how,
            off=share_in_percent(found.error),
            of=repr(found.of),
        )
        for aspect, found in result.verdicts.items()
    ]
    said = "; ".join(told)
    return f"{said[0].upper()}{said[1:]}."


def _odd_size(result: Comparison) -> bool:
    """Whether many fewer or more cases were released than the original has."""
    ratio = result.size_ratio
    return ratio is not None and not 0.5 <= ratio <= 2


def _behaviour(result: Comparison) -> Iterator[str]:
    counts = result.variants
    yield ngettext(
        "{share} of its cases follow a variant that exists in the original; of the original's {n} variant it has "
        "{common}, and it adds {added}.",
        "{share} of its cases follow a variant that exists in the original; of the original's {n} variants it has "
        "{common}, and it adds {added}.",
        counts.common + counts.lost,
        share=_percent(result.keep_real),
        common=str(counts.common),
        added=str(counts.added),
    )
    if 0.0 < result.coverage.activities < 1.0:
        yield gettext("{share} of the original's activities are in it.", share=_percent(result.coverage.activities))
    if result.dfg_moved is not None:
        yield gettext(
            "{moved} of the directly-follows steps moved to other edges, and {kinds} of the original's kinds of steps "
            "occur at all.",
            moved=_percent(result.dfg_moved),
            kinds=_percent(result.coverage.directly_follows),
        )
    ratio = result.size_ratio
    if ratio is not None and not 0.9 <= ratio <= 1.1:
        yield gettext("It has {times} times as many cases as the original.", times=in_two_digits(ratio))
    if result.fitness is not None and result.coverage.directly_follows < 0.5 and result.fitness >= 0.9:
        yield gettext(
            "Its model's fitness is {fitness}, though less than half of the original's kinds of steps are in the "
            "release: rare ones are missing.",
            fitness=_percent(result.fitness),
        )


def _people(result: Comparison) -> Iterator[str]:
    if result.singling_out is not None:
        from veilog.measures.singling_out import in_words  # not before there is something to say

        yield in_words(result.singling_out)


def _percent(share: float | None) -> str:
    return gettext("an unknown share") if share is None else share_in_percent(share)

"""Preview of a release: its guarantee and expected utility, from synthetic logs.

The plan runs on synthetic logs and on nothing else. A small log of patients shows which queries the method asks, and so
the guarantee. The method asks the real log the same queries, as often as the answers let it. Logs of the sizes that
were declared, or found with noise (:mod:`veilog.logs.synthetic.twins`), show the utility of the release. Their
differences show how sure it is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import numpy as np

from veilog._notebook import card, facts, paragraph
from veilog._plain import InJson, ToJson
from veilog._typing import IntArray
from veilog.errors import ParameterError
from veilog.ledger.ledger import EntryRef, settle_at_end
from veilog.logs import files
from veilog.logs.eventlog import START, TIMESTAMP, EventLog
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.synthetic.hospital import hospital
from veilog.logs.synthetic.twins import BINS, HEADS, MOST_CASES, LengthDistribution, Sizes, log_of, twin_of
from veilog.logs.variants import Sequences, Variants
from veilog.measures.durations import spans
from veilog.measures.measure import Pair
from veilog.measures.similarity import relative_log_similarity
from veilog.measures.use_cases import UseCaseOptions, judge, use_cases_by_name
from veilog.messages import Message
from veilog.methods._events.assemble import Wanted
from veilog.methods.method import Progress
from veilog.privacy.account.budgets import Number, parse_epsilon, whole_number
from veilog.privacy.account.guarantee import Charge, Condition, Guarantee, round_up
from veilog.privacy.curator import Curator
from veilog.privacy.domain import ACTIVITIES_FROM_LOG, FROM_LOG, LENGTH_FROM_LOG, Fact
from veilog.privacy.events import columns_taken
from veilog.privacy.mechanisms import noise
from veilog.privacy.mechanisms.mechanism import Sensitivity, Stated
from veilog.privacy.unit import ONE_CASE, Unit, bound_units, conditions_of_subset
from veilog.releasing.owner import chosen_ledger, note_uncounted
from veilog.releasing.request import LedgerChoice, ReleaseRequest
from veilog.releasing.result import Release
from veilog.releasing.run import LABELS_SHARE, conditions_of_public, run_plan

PATIENTS = 120
_OF_THE_LOG = ("sensitive", "attribute_names")
"""Settings that name attributes, which the synthetic log does not have."""
_LESS_WORK: Mapping[str, Mapping[str, int]] = {
    "travag": {"critic_steps": 10, "free_generator_steps": 1},
    "utravas": {"repetitions": 1},
}
"""Settings that shorten a trial and change neither its queries nor their cost."""
_TAKEN: Mapping[Fact, str] = {"activities": "activities-from-log", "max_length": "length-from-log"}


def guarantee_of(plan: ReleaseRequest, activities: int | None = None, longest: int | None = None) -> Guarantee:
    """Return the guarantee of a release of synthetic patients.

    A refusal there, for budget or settings, raises as it would for the real log. ``activities`` and ``longest``
    describe the log whose data owner declares them public: its number of activities and the length of its longest case.
    """
    trial = for_synthetic_log(plan)
    declared = trial.declared
    before, after = _labels_found(plan), (*_values_asked(plan), *_persons_asked(plan))
    # The declared activities of the real log are not those of the synthetic one; the queries are the same if they
    # are as many. So few patients have no labels that are frequent enough to be found.
    if declared.alphabet is not None:
        declared = replace(declared, activities=_synthetic_activities(len(declared.alphabet)))
    elif before:
        declared = replace(declared, activities=_synthetic_activities(len(_synthetic_log().variants.labels)))
    words: list[Condition] = []
    if plan.declared.activities == FROM_LOG and activities is not None:
        declared = replace(declared, activities=_synthetic_activities(activities))
        words.append(ACTIVITIES_FROM_LOG)
    if plan.declared.max_length == FROM_LOG and longest is not None:
        declared = replace(declared, max_length=longest)
        words.append(LENGTH_FROM_LOG)
    quick = _LESS_WORK.get(plan.method.name, {})
    trial = replace(trial, declared=declared, settings=replace(trial.settings, **quick))
    for stated in (*before, *after):
        trial = replace(trial, epsilon=trial.epsilon - stated.epsilon, delta=trial.delta - stated.delta)
    times = plan.wanted.times / (1 - plan.wanted.attributes_share - plan.wanted.persons)
    trial = replace(trial, wanted=replace(trial.wanted, times=times, processing=plan.wanted.processing))
    guarantee = run_plan(trial, _synthetic_log()).guarantee
    if before or after:
        guarantee = replace(guarantee, charges=(*before, *guarantee.charges, *after))
        if guarantee.proven:
            guarantee = replace(guarantee, epsilon=round_up(plan.epsilon), delta=round_up(plan.delta))
    # Synthetic people have no column that identifies them, and an undeclared fact is no condition yet.
    of_the_trial: set[str] = {_TAKEN[fact] for fact in plan.undeclared}
    of_the_trial |= {"cases-per-person-bounded"} if plan.unit.column is not None else set()
    found = tuple(condition for condition in guarantee.conditions if condition.code not in of_the_trial)
    conditions = tuple(dict.fromkeys((*words, *found, *conditions_of_public(plan, (*words, *found)))))
    if plan.unit.column is not None:
        conditions = (*plan.unit.conditions, *conditions)
    if guarantee.proven and _needs_attributes(plan):
        conditions = tuple(dict.fromkeys((*conditions, *columns_taken(_synthetic_log()))))
    if plan.subset is None:
        return replace(guarantee, conditions=conditions)
    conditions = (*conditions_of_subset(plan.subset, plan.unit, plan.remember_units), *conditions)
    neighbours = plan.subset.among(guarantee.neighbours)
    return replace(guarantee, conditions=conditions, subset=plan.subset, neighbours=neighbours)


def for_synthetic_log(plan: ReleaseRequest) -> ReleaseRequest:
    """Return the plan for a synthetic log, without attributes or column of persons.

    Undeclared facts are taken as if those of the log were public; the release itself is refused.
    """
    usual = plan.method.settings()
    names = {parameter.name for parameter in plan.method.parameters}
    return replace(
        plan,
        settings=replace(plan.settings, **{name: getattr(usual, name) for name in _OF_THE_LOG if name in names}),
        declared=plan.declared.taken_from_log(plan.undeclared),
        unit=plan.unit if plan.unit is ONE_CASE else Unit("person", plan.unit.most_cases),
        rules=None,  # they name activities of the log; the queries use the same epsilon
        subset=None,  # synthetic cases are of no month; a subset gets the same queries as the whole
        wanted=Wanted(times=plan.wanted.times, window=plan.wanted.window),
    )


def _needs_attributes(plan: ReleaseRequest) -> bool:
    """Return True if the plan needs attributes, which the synthetic log lacks.
    It is not known yet how those of the log are read."""
    by_setting = any(getattr(plan.settings, name, None) for name in _OF_THE_LOG)
    by_subset = plan.subset is not None and not plan.subset.of_time
    return bool(plan.wanted.attributes) or by_setting or by_subset


def _labels_found(plan: ReleaseRequest) -> tuple[Charge, ...]:
    """Return the charge for finding activities privately, if the plan does."""
    if not plan.uses.labels:
        return ()
    delta = plan.uses.of(plan.delta)[0]
    return (_stated_charge("labels", "activities-frequent-enough", plan.epsilon * LABELS_SHARE, delta),)


def _values_asked(plan: ReleaseRequest) -> tuple[Charge, ...]:
    """Return the charge for the values of attributes, which the synthetic log lacks."""
    wanted, uses = plan.wanted, plan.uses
    if not wanted.attributes:
        return ()
    rest = 1 - LABELS_SHARE if uses.labels else 1
    delta = uses.of(plan.delta)[0] if uses.values else Fraction(0)
    return (_stated_charge("values", "values-of-attributes", plan.epsilon * rest * wanted.attributes_share, delta),)


def _persons_asked(plan: ReleaseRequest) -> tuple[Charge, ...]:
    """Return the charge for persons, whom the synthetic log does not have."""
    if not plan.wanted.persons:
        return ()
    rest = 1 - LABELS_SHARE if plan.uses.labels else 1
    return (
        _stated_charge("person sums", "returns-of-persons", plan.epsilon * rest * plan.wanted.persons, Fraction(0)),
    )


def _stated_charge(question: str, purpose: str, epsilon: Fraction, delta: Fraction) -> Charge:
    sensitivity = Sensitivity.of(1, "L1", "split")
    return Charge(question, Message(purpose), Stated("discrete Laplace"), sensitivity, epsilon, delta)


def _synthetic_activities(number: int) -> tuple[str, ...]:
    """Return this many activities, with as many of the synthetic patients' as fit."""
    labels = tuple(_synthetic_log().variants.labels)[:number]
    return labels + tuple(f"activity {place}" for place in range(len(labels), number))


@lru_cache(maxsize=1)
def _synthetic_log() -> EventLog:
    made = hospital(PATIENTS, seed=1)
    return replace(made, events=made.events.append_column(START, made.events.column(TIMESTAMP)))


@dataclass(frozen=True)
class Survivors(ToJson):
    """Number of activities that survive, of how many, and the cases one needs about.

    ``least_cases`` is the smallest number of cases with an activity that survives.
    """

    kept: int
    of: int
    least_cases: int

    @property
    def message(self) -> Message:
        """Return how many activities survive, and which."""
        return Message("activities-survive", kept=self.kept, of=self.of, least=self.least_cases)

    @staticmethod
    def of_twins(found: Sequence[tuple[int, int, int]]) -> Survivors:
        """Return the median of the survivors of releases of several synthetic logs."""
        kept, of, least = (round(float(np.median(numbers))) for numbers in zip(*found, strict=True))
        return Survivors(kept, of, least)

    def among(self, cases: IntArray) -> Survivors:
        """Return the survivors of a log with these cases of each activity: confidential."""
        return Survivors(int((cases >= self.least_cases).sum()), len(cases), self.least_cases)


def cases_with(variants: Variants) -> IntArray:
    """Return the number of cases that have each activity."""
    size = len(variants.labels)
    rows = np.repeat(np.arange(len(variants), dtype=np.int64), variants.lengths)
    pairs = np.unique(rows * max(1, size) + variants.codes)
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, pairs % max(1, size), variants.counts[pairs // max(1, size)])
    return found


def least_cases(made: Variants, released: Variants) -> tuple[int, int, int]:
    """Return the released and all activities, and the cases that separate survivors.

    The number of cases separates activities that survived from the others with the fewest exceptions.
    """
    there, cases = set(released.labels), cases_with(made)
    survived = np.array([label in there for label in made.labels], dtype=bool)
    order = np.argsort(-cases, kind="stable")
    kept = np.cumsum(survived[order])
    wrong = np.arange(1, len(order) + 1) - kept + (survived.sum() - kept)
    return int(survived.sum()), len(order), int(cases[order][int(wrong.argmin())]) if len(order) else 0


Seen = Callable[[Variants, Release], None]
"""Function that receives every synthetic log and its release."""

TWINS = 4
ENOUGH = 0.6
"""Similarity from which on a release can be expected to be of use."""
_OFF = 0.06
"""Error of synthetic logs of known sizes, beyond their spread. With it, nine of ten releases of twelve simulated
logs of many shapes lie inside the interval (docs/suggest.md)."""
_USE_CASE_OFF = 0.08
"""The same of the shares that are kept for use_cases, on two logs."""
_STUDENT = (0.0, 6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83)
"""95 % quantiles of Student's distribution, by degrees of freedom (for 90 %)."""


@dataclass(frozen=True)
class Interval(ToJson):
    """Expected value of a number, with an interval for nine of ten releases."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(values: Iterable[float], off: float, most: float | None = 1.0) -> Interval:
        """Return the interval for the values of synthetic logs.

        ``off`` is the error of such logs beyond their spread.
        """
        found = list(values)
        mean = statistics.fmean(found)
        freedom = len(found) - 1
        spread = statistics.variance(found) if freedom else off**2
        half = _STUDENT[max(1, min(freedom, len(_STUDENT) - 1))] * math.sqrt(spread * (1 + 1 / len(found)))
        half = math.hypot(half, 1.64 * off)
        high = mean + half if most is None else min(most, mean + half)
        return Interval(round(mean, 4), round(max(0.0, mean - half), 4), round(high, 4))

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Expected(ToJson):
    """Expected utility of a plan, from releases of synthetic logs."""

    similarity: Interval
    sizes: Sizes
    twins: int
    durations: Annotated[Interval | None, InJson(left_out="at its default")] = None
    """Relative difference in mean duration of cases, where times are released.
    It is a share of the larger mean (``durations_unit``)."""
    durations_unit: Annotated[str, InJson(left_out="at its default")] = ""
    """The unit of ``durations``."""
    use_cases: Annotated[tuple[tuple[str, Interval], ...], InJson(as_=dict, left_out="at its default")] = ()
    """Deciding number of each requested use case, as a share of that of a log."""
    survivors: Annotated[Survivors | None, InJson(left_out="at its default")] = None
    """Activities that survive, where some do not."""
    like_prior: Annotated[bool, InJson(left_out="at its default")] = False
    """True if the synthetic logs come from one half of the prior and are released with the other."""
    owner_only: bool = False
    """True if exact sizes of the log were used. Then nothing of this may be published."""

    @property
    def promising(self) -> bool:
        return self.similarity.mean >= ENOUGH

    @property
    def message(self) -> Message:
        """Return the expected similarity of a release, with the reason where it is low."""
        found = self.similarity
        similar = Message("similarity-expected", mean=found.mean, low=found.low, high=found.high)
        if self.like_prior:
            similar = Message.joined((similar, Message("expected-like-prior")))
        return similar if self.promising else Message.joined((similar, self.doubt))

    @property
    def doubt(self) -> Message:
        """Reason for low utility, where the expected similarity is low."""
        cases, length, activities = self.sizes.cases, self.sizes.length, self.sizes.activities
        if cases >= 5_000 or ((activities or 0) <= 40 and length <= 30):
            return Message("little-kept")
        if activities is None:
            return Message("little-kept-long", length=length, cases=cases)
        return Message("little-kept-wide", activities=activities, length=length, cases=cases)


@dataclass(frozen=True)
class Preview(ToJson):
    """Guarantee and expected utility of a release; None where it was not computed."""

    guarantee: Guarantee | None = None
    expected: Expected | None = None
    attribute_errors: Annotated[tuple[tuple[str, float], ...], InJson(as_=dict, left_out="at its default")] = ()
    """For each attribute, an upper bound on the share of cases whose value noise alone changes."""


def expectation(
    plan: ReleaseRequest,
    sizes: Sizes,
    *,
    twins: int = TWINS,
    use_cases: Iterable[str] = (),
    owner_only: bool = False,
    progress: Progress | None = None,
    seen: Seen | None = None,
) -> Expected:
    """Return the results of the plan on ``twins`` synthetic logs of these sizes.

    No other log is touched. ``seen`` receives each of them with its release.
    """
    if isinstance(twins, bool) or not isinstance(twins, int) or not 1 <= twins <= 100:
        raise ParameterError("twins-out-of-range", parameter="twins", twins=twins)
    wanted = use_cases_by_name(tuple(use_cases))
    found: dict[str, list[float]] = {}
    kept: list[tuple[int, int, int]] = []
    told = plan.declared.alphabet
    if told is not None:
        sizes = replace(sizes, activities=len(told))
    for number in range(twins):
        if progress is not None:
            progress(f"twin {number + 1} of {twins}", number / twins)
        halves = None if plan.prior is None else plan.prior.halves(sizes.cases, told, number)
        made = twin_of(sizes, number, told, plan.declared.longest) if halves is None else halves[0]
        like = plan if halves is None else replace(plan, prior=halves[1])
        released, values = _release_twin(_twin_request(like, made, number), made, number, wanted, seen)
        kept.append(least_cases(made, released.variants))
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    similarity, durations = found.pop("similarity"), found.pop("durations", None)
    return Expected(
        similarity=Interval.of(similarity, _OFF),
        sizes=sizes,
        twins=twins,
        durations=None if durations is None else Interval.of(durations, 0.0),
        durations_unit="" if durations is None else "share of the larger mean",
        use_cases=tuple((name, Interval.of(values, _USE_CASE_OFF, None)) for name, values in found.items()),
        survivors=Survivors.of_twins(kept) if any(some < every for some, every, _ in kept) else None,
        like_prior=plan.prior is not None and plan.prior.halves(1, told, 0) is not None,
        owner_only=owner_only,
    )


def _twin_request(plan: ReleaseRequest, made: Variants, seed: int) -> ReleaseRequest:
    """Return the plan without attributes, starts and persons, which the log lacks."""
    wanted, trial = plan.wanted, for_synthetic_log(plan)
    times = wanted.times * (1 - wanted.of_starts)
    rest = wanted.of_flow + times
    return replace(
        trial,
        epsilon=trial.epsilon * rest,
        wanted=replace(trial.wanted, times=times / rest),
        seed=seed,
    )


def _release_twin(
    plan: ReleaseRequest, made: Variants, seed: int, wanted: tuple[str, ...], seen: Seen | None
) -> tuple[Release, dict[str, float]]:
    """Return a release of one synthetic log, and its utility."""
    log = log_of(made, seed) if plan.needs_events else None
    released = run_plan(plan, made if log is None else log)
    if seen is not None:
        seen(made, released)
    similar = relative_log_similarity(made, released.variants).value if released.variants.cases else 0.0
    found = {"similarity": similar}
    if plan.wanted.times and log is not None and released.variants.cases:
        both = _mean_duration(log), _mean_duration(released.log)
        found["durations"] = 1 - min(both) / max(*both, 1e-9)
    if wanted and released.variants.cases:
        pair = Pair(made, released.variants) if log is None else Pair(log, released.log)
        chief = {name: judged.chief for name, judged in judge(pair, wanted, UseCaseOptions(chief_only=True)).items()}
        found |= {name: one.share for name, one in chief.items() if one is not None and one.share is not None}
    return released, found


def _mean_duration(log: EventLog) -> float:
    """Return the mean duration of the cases, in hours."""
    found = spans(log)
    return float((found.last - found.first).mean()) / 3.6e9 if len(found.first) else 0.0


# Sizes of a log, declared or found by noisy queries, and its synthetic log -------------------

# Sizes are declared, or found by noisy queries that use epsilon.


_COUNT, _LENGTHS = Fraction(1, 5), Fraction(1, 2)
"""Shares of epsilon for the number of cases, if unknown, and of the rest for the histogram of lengths.
The remainder is for the concentration of the cases."""
_HALF = Fraction(1, 2)


Answered = TypeVar("Answered")


@dataclass(frozen=True)
class Twin(ToJson):
    """Synthetic log of known sizes, with nothing in it but the sizes."""

    sizes: Sizes
    guarantee: Guarantee | None = None
    """Guarantee of the queries for the sizes; None if they were declared."""
    seed: Annotated[int, InJson(left_out="always")] = 0
    labels: Annotated[tuple[str, ...] | None, InJson(left_out="always")] = None
    entry: Annotated[EntryRef | None, InJson(left_out="always")] = None

    @cached_property
    def log(self) -> EventLog:
        """The synthetic log, with times of no meaning."""
        return log_of(twin_of(self.sizes, self.seed, self.labels), self.seed)

    def __repr__(self) -> str:
        return f"Twin({self.sizes.cases:,} made-up cases of about {self.sizes.length:g} events)"

    def _repr_html_(self) -> str:
        """Return the sizes, and what finding them out cost."""
        told = [(name, value) for name, value in self.sizes.to_json().items() if isinstance(value, int | float)]
        cost = "The sizes were declared; nothing was queried." if self.guarantee is None else self.guarantee.in_words()
        return card("Made-up log", facts(told), paragraph(cost, "s"))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the synthetic log; the suffix determines the format."""
        files.write(self.log, path, overwrite=overwrite)


def twin(
    log: files.AnyLog | StoredLog | None = None,
    *,
    cases: int | None = None,
    length: float | None = None,
    activities: int | Iterable[str] | None = None,
    variants: int | None = None,
    frequent: float | None = None,
    epsilon: Number | None = None,
    unit: str = "case",
    max_cases: int | None = None,
    without_person: str | None = None,
    ledger: LedgerChoice = None,
    number: int = 0,
    seed: int | None = None,
) -> Twin:
    """Return a synthetic log of the same sizes, on which trials are free.

    Declare the sizes, and the log is not looked at: ``cases``, events per case (``length``), ``activities`` or their
    names, ``variants``, and the share of cases with the most ``frequent`` one. Or let five noisy queries to a ``log``
    find them, which use ``epsilon`` together. A declared size then replaces the answer.

    ``unit``, ``max_cases`` and ``without_person`` define whom these queries protect, as in :func:`veilog.release`. As
    many cases of a person count as in a release, and the sizes are of those that count. A synthetic log has no people.
    Its releases are like those of the log with the unit ``person`` and the same ``max_cases``. The used epsilon is
    entered in a ``ledger`` as there.

    ``number`` distinguishes the first log of these sizes from the second. ``seed`` makes the queries repeatable, for
    experiments, and their guarantee "none".
    """
    labels = None if activities is None or isinstance(activities, int) else tuple(activities)
    how_many = activities if isinstance(activities, int) else None if labels is None else len(labels)
    declared: dict[str, Any] = {
        "cases": cases,
        "length": length,
        "activities": how_many,
        "variants": variants,
        "frequent": frequent,
    }
    protected = Unit.of(unit, max_cases, without_person)
    if (found := whole_number(number)) is None or found < 0:
        raise ParameterError("sizes-number-not-whole", parameter="number", number=number)
    if epsilon is None:
        _refuse_queries(protected, ledger, unsized=log is not None and None in (cases, length))
        return Twin(sizes_of(**declared), seed=found, labels=labels)
    if log is None:
        raise ParameterError("sizes-epsilon-without-log", parameter="log")
    known = {name: value for name, value in declared.items() if value is not None}
    sizes_of(**{"cases": MOST_CASES, "length": 0} | known)  # impossible sizes are refused before any query
    held, eps = files.as_log(log), parse_epsilon(epsilon)
    curator = _curator(held, protected, seed)
    ask = partial(ask_sizes, curator, protected.of_one_case(eps, Fraction(0))[0], cases=cases)
    sizes, guarantee, entry = query_log(held, "twin", curator, ask, epsilon=eps, unit=protected, ledger=ledger)
    if variants is not None:
        known["variants"] = min(variants, sizes.cases)  # by noise there may be fewer cases than that
    if frequent is not None:
        known["held"] = None  # a declared size has no answer
    return Twin(replace(sizes, **known), guarantee, seed=found, labels=labels, entry=entry)


def _refuse_queries(unit: Unit, ledger: LedgerChoice, *, unsized: bool) -> None:
    """Refuse options that need queries to a log, where there is no epsilon for them."""
    if unit is not ONE_CASE:
        raise ParameterError("sizes-unit-without-epsilon", parameter="unit")
    if ledger:
        raise ParameterError("sizes-ledger-without-epsilon", parameter="ledger")
    if unsized:
        raise ParameterError("sizes-log-without-epsilon", parameter="epsilon")


def _curator(log: EventLog | StoredLog | Variants, unit: Unit, seed: int | None) -> Curator:
    source = noise.operating_system() if seed is None else noise.seeded(seed)
    return Curator(bound_units(log, unit, source), randomness=source)


def query_log(
    log: EventLog | StoredLog | Variants,
    what: str,
    curator: Curator,
    ask: Callable[[], Answered],
    *,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    unit: Unit,
    ledger: LedgerChoice,
    parameters: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Answered, Guarantee, EntryRef | None]:
    """Ask a log some queries and enter that in a ledger, as a release is.

    Return the answer, the guarantee, and the place of the entry.
    """
    seeded = curator.randomness.seed is not None
    kept = chosen_ledger(ledger, seeded=seeded)
    noted: dict[str, Any] = {"parameters": {**parameters, **unit.in_ledger}, "unit": unit.column or unit.name}
    entry = None
    if kept is not None:
        entry = kept.reserve(log, what, epsilon=None if seeded else epsilon, delta=delta, begins=True, **noted)
        curator.before_first(entry.begin)
    derive = partial(curator.guarantee, nominal_epsilon=epsilon, nominal_delta=delta or None)
    with settle_at_end(entry, derive, lambda: curator.contacted):
        found = ask()
    if ledger is False and not seeded:
        note_uncounted(log, what, derive(), **noted)
    return found, derive(), None if entry is None else entry.entered


def sizes_of_log(log: EventLog | StoredLog | Variants, planned: ReleaseRequest) -> Sizes:
    """Return the exact sizes that a release of a log would look at: confidential.

    They are raw numbers of its subset and of those cases of a person that count.
    """
    looked_at = bound_units(log, planned.unit, noise.operating_system(), planned.subset).variants
    if planned.subset is not None and not looked_at.cases:
        raise ParameterError(
            "sizes-subset-without-case", parameter="subset", subset=planned.subset, in_words=planned.subset.in_words
        )
    return Sizes.of(looked_at)


def ask_sizes(
    curator: Curator, epsilon: Fraction, *, cases: int | None = None, within: Fraction | None = None
) -> Sizes:
    """Return the sizes by a curator's answers.

    The queries are the number of cases, the histogram of lengths, and the shares of the one, ten and a hundred most
    frequent variants. ``cases`` is their number if known, by an answer for the epsilon ``within``, or else without
    noise.
    """
    if cases is None:
        within = epsilon * _COUNT
        epsilon -= within
        cases = curator.count(within, purpose="cases-for-twin")
    each = epsilon * (1 - _LENGTHS) / len(HEADS)
    bins = curator.histogram(_length_bins, len(BINS), epsilon * _LENGTHS, purpose="lengths-for-twin")
    found = min(MOST_CASES, max(1, cases))
    heads: dict[str, Any] = {}
    held = []
    least = 1 / found
    for name, number in HEADS.items():
        answer = curator.concentration(number, _HALF, each, purpose="frequent-variants-for-twin")
        # It is twice their cases less all cases; more variants hold no fewer cases.
        held.append((answer + found) / 2)
        least = heads[name] = min(1.0, max(least, held[-1] / found))
    scale = 1 / float(epsilon * _LENGTHS)
    answers = tuple(bins.tolist())
    believed = LengthDistribution.of(answers, scale, found)
    # The standard deviation of Laplace noise is its scale times the square root of 2.
    beside = math.sqrt(2) / (2 * float(each))
    off = (math.sqrt(2) / float(within) if within else 0.0, beside, math.sqrt(2) * scale)
    lengths = tuple(believed.shares.tolist())
    said: dict[str, Any] = {"off": off, "answers": answers, "held": tuple(held)}
    return Sizes(cases=found, length=believed.length, lengths=lengths, **heads, **said)


def _length_bins(sequences: Sequences) -> IntArray:
    return np.asarray(np.searchsorted(BINS, sequences.lengths, side="right") - 1, dtype=np.int64)


def sizes_of(**declared: float | None) -> Sizes:
    """Return the declared sizes; a :class:`ParameterError` names missing ones."""
    lacking = [name for name in ("cases", "length") if declared.get(name) is None]
    if lacking:
        raise ParameterError("sizes-unknown", parameter=lacking[0], names=" and ".join(lacking))
    return Sizes(**declared)  # type: ignore[arg-type]

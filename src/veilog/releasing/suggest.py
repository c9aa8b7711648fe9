"""Suggestion of a method for a log, from public facts and a few noisy answers.

The answers use epsilon like any others. They are the number of cases (of people, those that count). For similarity,
also the lengths of cases and the share of the most frequent variants are asked, to make synthetic logs
(:mod:`veilog.logs.synthetic.twins`) on which the suggestion is tried. With a delta, the frequent variants are asked as
TraVaS asks for them. All further results are post-processing of the answers.

For similarity, the rule comes from the frontier of all certified methods at equal derived epsilon
(``docs/results/evolve.md`` and ``frontier.md``). Of the methods that need no delta, evolve has the highest mean
similarity nearly everywhere. Epsilon times the number of cases must not be tiny. With a delta it is also ahead where
few variants hold most cases, except for small budgets, where TraVaS is. For another use case, methods are ranked by
measurements (:class:`Ranking`), which need only the number of cases.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from veilog._notebook import card, facts, frame, paragraph
from veilog._plain import InJson, ToJson
from veilog.errors import ParameterError, VeilogError
from veilog.ledger.ledger import EntryRef
from veilog.logs.files import AnyLog, as_log
from veilog.logs.storage.stored_log import StoredLog
from veilog.logs.synthetic.twins import MOST_ACTIVITIES, Sizes
from veilog.messages import Message
from veilog.methods import METHODS
from veilog.methods.benchmark_facts import ahead_in
from veilog.privacy.account.budgets import Number, parse_delta, parse_epsilon, parse_share
from veilog.privacy.account.guarantee import Guarantee, exact
from veilog.privacy.curator import Curator
from veilog.privacy.domain import PRIVATELY, Domain
from veilog.privacy.mechanisms import noise
from veilog.privacy.unit import ONE_CASE, Unit, bound_units
from veilog.releasing.preview import Expected, ask_sizes, expectation, query_log, sizes_of
from veilog.releasing.prior import PriorChoice, PublicPrior
from veilog.releasing.request import LedgerChoice, ReleaseRequest, facts_declared, plan

if TYPE_CHECKING:
    import pandas as pd


SIMILARITY = "similarity"
"""The use case that needs no ranking: it has a rule of its own."""
NEAR = 3.0
"""Settings within this factor are like the log at hand."""
FEWEST = 3
"""Fewest settings to compare with, the nearest ones."""

Place = tuple[str, str]
"""A log and an epsilon."""
Numbers = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Numbers by method, log and epsilon."""


@dataclass(frozen=True)
class Served:
    """Use case that methods are ranked for: its measures, and a value that is enough."""

    measures: tuple[str, ...]
    kept: bool
    """True to rank by the share kept of the log's own value, the worst of several; False to rank by the error."""
    shown: tuple[str, ...]
    enough: float
    """Mean from which on a release can be expected to be of use."""

    def value(self, numbers: Mapping[str, float], originals: Mapping[str, float]) -> float:
        """Return the value of a method at one place."""
        if not self.kept:
            return numbers[self.measures[0]]
        return min(min(1.0, numbers[name] / originals[name]) if originals[name] else 1.0 for name in self.measures)


USE_CASES: Mapping[str, Served] = {
    "prediction": Served(("next_activity",), True, ("next_activity",), 0.7),
    "discovery": Served(("fitness", "precision"), True, ("fitness", "precision", "f_score"), 0.7),
    "conformance": Served(("rules",), False, ("rules",), 0.1),
}


@dataclass(frozen=True)
class Ranked(ToJson):
    """Method with its settings, and its results at the places that count."""

    name: str
    """Name in the frontier."""
    method: str
    delta: bool
    """True if it spends the delta."""
    settings: Annotated[tuple[tuple[str, Any], ...], InJson(as_=dict)]
    value: float
    """Mean that it is ranked by."""
    numbers: Mapping[str, float]
    """Means of its measurements."""


@dataclass(frozen=True)
class Ranking:
    """Measurements for a use case."""

    use_case: str
    numbers: Mapping[str, Numbers]
    """Numbers by measure."""
    originals: Mapping[str, Mapping[str, float]]
    """Values of the logs themselves, by measure and log."""
    cases: Mapping[str, int]
    asked: Mapping[str, Mapping[str, Any]]
    """Method, use of a delta and settings, by the name in the frontier."""

    @staticmethod
    def of(use_case: str, told: Mapping[str, Any] | None = None) -> Ranking:
        """Return what was measured for this use case; refused where nothing was."""
        if use_case not in USE_CASES:
            raise ParameterError(
                "suggestion-use-case-not-ranked",
                parameter="for",
                use_case=use_case,
                names=", ".join((SIMILARITY, *USE_CASES)),
            )
        told = _load_rankings() if told is None else told
        served = USE_CASES[use_case]
        numbers = {name: told.get("use_cases", {}).get(name, {}) for name in served.shown}
        if not all(numbers[name] for name in served.measures):
            raise ParameterError("suggestion-without-measured-method", parameter="for", use_case=use_case)
        return Ranking(use_case, numbers, told["originals"], told["cases"], told["asked"])

    @property
    def served(self) -> Served:
        return USE_CASES[self.use_case]

    def places(self, scale: float) -> tuple[Place, ...]:
        """Return the settings most like a log of this epsilon times cases, nearest first."""
        wanted = math.log(max(scale, 1e-9))
        known = {
            (log, epsilon): abs(math.log(float(epsilon) * self.cases[log]) - wanted)
            for name in self.served.measures
            for of_log in self.numbers[name].values()
            for log, values in of_log.items()
            for epsilon in values
            if log in self.cases and self._has_original(log)
        }
        ordered = sorted(known, key=lambda place: (known[place], place))
        near = [place for place in ordered if known[place] <= math.log(NEAR)]
        return tuple(near if len(near) >= FEWEST else ordered[:FEWEST])

    def _has_original(self, log: str) -> bool:
        return not self.served.kept or all(log in self.originals.get(name, {}) for name in self.served.measures)

    def ranked(self, scale: float, *, delta: bool) -> tuple[tuple[Ranked, ...], Mapping[str, Message]]:
        """Return the methods, the best first, and why others are not among them."""
        places = self.places(scale)
        found: list[Ranked] = []
        left_out: dict[str, Message] = {}
        for name, asked in self.asked.items():
            if asked["delta"] and not delta:
                left_out[name] = Message("not-ranked-needs-delta")
                continue
            missing = [place for place in places if not self._is_known(name, place)]
            if missing:
                log, epsilon = missing[0]
                left_out[name] = Message("not-ranked-not-measured", log=log, epsilon=epsilon)
                continue
            found.append(self._rank_method(name, places))
        best: Callable[[Ranked], tuple[float, str]] = lambda one: (  # noqa: E731
            -one.value if self.served.kept else one.value,
            one.name,
        )
        return tuple(sorted(found, key=best)), left_out

    def _is_known(self, name: str, place: Place) -> bool:
        return all(self._number(measure, name, place) is not None for measure in self.served.measures)

    def _number(self, measure: str, name: str, place: Place) -> float | None:
        return self.numbers[measure].get(name, {}).get(place[0], {}).get(place[1])

    def _rank_method(self, name: str, places: tuple[Place, ...]) -> Ranked:
        served, asked = self.served, self.asked[name]
        values = []
        for place in places:
            own = {measure: self.numbers[measure][name][place[0]][place[1]] for measure in served.measures}
            values.append(served.value(own, {m: self.originals.get(m, {}).get(place[0], 0.0) for m in own}))
        shown = {
            measure: statistics.fmean(known)
            for measure in served.shown
            if (known := [n for place in places if (n := self._number(measure, name, place)) is not None])
        }
        settings = tuple(asked["settings"].items())
        return Ranked(name, asked["method"], asked["delta"], settings, statistics.fmean(values), shown)


@lru_cache(maxsize=1)
def _load_rankings() -> Mapping[str, Any]:
    told: Mapping[str, Any] = json.loads((files("veilog.methods") / "measured.json").read_text())
    return told


SHARE = Fraction(1, 10)
"""Share of epsilon and delta for the suggestion."""
_COUNT, _SIZES = Fraction(2, 5), Fraction(1, 2)
"""Shares for the number of cases, if more is asked, and of the rest for sizes, if variants are asked."""
_HOPELESS = 40
"""Epsilon times cases below which methods without a delta were of no use.
Measured: useless at 10 to 17, of use from 75 on."""
_SMALL, _COVERED = 300.0, 0.2
"""Epsilon times cases below which TraVaS is suggested, if frequent variants hold at least this share of cases."""
_TWINS = 2


def _english_reasons(reasons: Iterable[tuple[str, Message]]) -> dict[str, str]:
    return {name: reason.english for name, reason in reasons}


@dataclass(frozen=True)
class Suggestion(ToJson):
    """Suggested method, its reason, and the remaining budget for its release.

    It is public like a release: only noisy answers are in it.
    """

    method: str
    reason: Annotated[Message, InJson(as_=attrgetter("english"))]
    """Reason for this method."""
    by_rule: Annotated[bool, InJson(left_out="always", then=("promising",))]
    """True if it is of use by the remaining epsilon and the number of cases alone."""
    epsilon_left: Annotated[Fraction, InJson(as_=float)]
    delta_left: Annotated[Fraction, InJson(as_=float)]
    cases: int
    """Approximate number of cases of the log."""
    cases_within: int
    """Largest error of that number in 95 of 100 runs."""
    covered: float | None
    """Approximate share of the cases with variants frequent enough to be found; None if not asked."""
    frequent: int | None
    """Number of these variants."""
    considered: Mapping[str, str]
    remarks: tuple[Message, ...]
    guarantee: Annotated[Guarantee, InJson(then=("arguments", "expected"))]
    """Guarantee of the suggestion itself."""
    entry: Annotated[EntryRef | None, InJson(left_out="always")] = None
    for_: Annotated[str, InJson(name="for", left_out="at its default")] = SIMILARITY
    """Use case of the release."""
    spends_delta: Annotated[bool, InJson(left_out="at its default")] = True
    """True if the method gets the remaining delta."""
    settings: Annotated[tuple[tuple[str, Any], ...], InJson(as_=dict, left_out="at its default")] = ()
    """Settings of the method."""
    ranking: Annotated[tuple[Ranked, ...], InJson(left_out="at its default")] = ()
    """For other use cases than similarity, all methods that could be ranked, best first."""
    not_ranked: Annotated[tuple[tuple[str, Message], ...], InJson(as_=_english_reasons, left_out="at its default")] = ()
    """Methods that could not be ranked, with the reason."""
    sizes: Annotated[Sizes | None, InJson(left_out="always")] = None
    """Approximate sizes of the log, for synthetic logs; None for a ranking."""
    unit: Annotated[Unit, InJson(left_out="always")] = ONE_CASE
    """Unit that was protected when the log was asked, and is in the suggested release."""
    prior: Annotated[PublicPrior | None, InJson(left_out="always")] = None
    """Prior of the suggested release."""

    @property
    def promising(self) -> bool:
        """True if a release with the remaining budget can be expected to be of use."""
        return self.by_rule and (self.expected is None or self.expected.promising)

    @cached_property
    def expected(self) -> Expected | None:
        """Expected utility of the method with the remaining budget; None without sizes.

        It comes from synthetic logs when first used, which takes some seconds and no epsilon.
        """
        if self.sizes is None:
            return None
        try:
            return expectation(self.plan(allow_no_protection=True), self.sizes, twins=_TWINS)
        except VeilogError:
            return None  # the method refuses so little, and its own release reports that

    def plan(self, **more: Any) -> ReleaseRequest:
        """Return the request for the suggested release, with the remaining budget.

        ``more`` has further arguments of :func:`veilog.plan`, such as the public activities.

        >>> import veilog
        >>> from veilog.logs.synthetic.hospital import hospital
        >>> log = hospital(500, seed=1)
        >>> suggestion = veilog.suggest(log, epsilon=1, seed=1)
        >>> released = veilog.release(log, suggestion.plan(activities="log"))
        >>> released.guarantee.epsilon
        0.9
        """
        delta = self.delta_left if self.spends_delta else 0
        given = {**self.unit.told, **dict(self.settings), **more}
        return replace(plan(self.method, epsilon=self.epsilon_left, delta=delta, **given), prior=self.prior)

    def arguments(self) -> str:
        """Return the options of ``veilog release LOG TARGET`` for the remaining budget."""
        delta = f" --delta {exact(self.delta_left)}" if self.delta_left and self.spends_delta else ""
        told = "".join(f" -p {name}={str(value).lower()}" for name, value in self.settings)
        whom = "".join(f" --{name.replace('_', '-')} {quote(str(value))}" for name, value in self.unit.told.items())
        names = () if self.prior is None else [f" --prior {quote(name)}" for name in self.prior.names]
        names = [*names, *([f" --prior-map {quote(self.prior.mapping)}"] if self.prior and self.prior.mapping else [])]
        return f"--method {self.method} --epsilon {exact(self.epsilon_left)}{delta}{whom}{told}{''.join(names)}"

    def __repr__(self) -> str:
        return f"Suggestion({self.method}: {self.reason})"

    def _repr_html_(self) -> str:
        """Return the method, the reason, the remaining budget and the cost of asking."""
        left: list[tuple[str, object]] = [("epsilon left", float(self.epsilon_left))]
        left += [("delta left", exact(self.delta_left))] if self.delta_left else []
        left += [("about so many cases", self.cases)]
        said = paragraph(str(self.reason), "good" if self.by_rule else "fair")
        return card(
            f"Suggestion: {self.method}",
            said,
            facts(left),
            *(paragraph(str(remark)) for remark in self.remarks),
            paragraph(f"Its queries: {self.guarantee.in_words()}", "s"),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each method: its measurements for the use case, best first.

        For similarity, the rows have the reasons.
        """
        if not self.ranking:
            said = self.considered.items()
            return frame(({"method": name, "weighed": words} for name, words in said), ("method", "weighed"))
        numbers = tuple(dict.fromkeys(name for one in self.ranking for name in one.numbers))
        return frame(({"method": one.name} | dict(one.numbers) for one in self.ranking), ("method", *numbers))


def suggest(
    log: AnyLog | StoredLog,
    *,
    epsilon: Number,
    delta: Number = 0,
    for_: str = SIMILARITY,
    share: Number = SHARE,
    domain: Domain | None = None,
    activities: int | Iterable[str] | str | None = None,
    unit: str = "case",
    max_cases: int | None = None,
    without_person: str | None = None,
    prior: PriorChoice | None = None,
    prior_map: str | Path | None = None,
    ledger: LedgerChoice = None,
    seed: int | None = None,
) -> Suggestion:
    """Suggest a certified method for a log, with ``epsilon`` and ``delta`` in all.

    Args:
        log: A log as for :func:`veilog.release`.
        epsilon: Budget of the suggestion and the release together.
        delta: Its delta.
        for_: Use case of the release: similarity to the log, prediction, discovery or conformance.
        share: Share of both for the suggestion; the rest is for the release.
        domain: Public facts.
        activities: Public activities, as in :func:`veilog.release`, or their number.
        unit: Unit that the answers and the suggested release protect, as there.
        max_cases: Most cases of a person, as there.
        without_person: Handling of cases without a person, as there.
        prior: Prior of the suggested release. With one the method is evolve for every use case, and only the number
            of cases is asked.
        prior_map: Names of the activities of the prior.
        ledger: Ledger in which the cost is entered, as there.
        seed: Makes it repeatable for experiments, and its guarantee "none".

    """
    eps, failure, part = parse_epsilon(epsilon), parse_delta(delta), parse_share(share, "share")
    ranking = None if for_ == SIMILARITY else Ranking.of(for_)
    held, protected = as_log(log), Unit.of(unit, max_cases, without_person)
    source = noise.operating_system() if seed is None else noise.seeded(seed)
    domain, number = _split_activities(domain, activities)
    public = PublicPrior.of(prior, prior_map)
    curator = Curator(bound_units(held, protected, source), domain=domain, randomness=source)
    counted = ranking is not None or public is not None
    spent, spent_delta = eps * part, Fraction(0) if counted else failure * part
    ask = partial(_answers, curator, *protected.of_one_case(spent, spent_delta), number, counted=counted)
    told: dict[str, Any] = {"unit": protected, "ledger": ledger, "parameters": {"share": float(part)}}
    found, guarantee, entry = query_log(held, "suggest", curator, ask, epsilon=spent, delta=spent_delta, **told)
    left, left_delta = eps - spent, failure - spent_delta
    scale = float(left) / protected.most_cases * found.cases
    if public is not None:
        found = found._replace(sizes=replace(Sizes.of(public.variants), cases=max(1, found.cases)))
    picked = _pick_method(scale, found, ranking, public, delta=failure > 0)
    return Suggestion(
        method=picked.method,
        reason=_unit_message(protected, picked.reason),
        by_rule=picked.promising,
        epsilon_left=left,
        delta_left=left_delta,
        cases=found.cases,
        cases_within=found.within,
        covered=found.covered,
        frequent=found.frequent,
        considered={name: method.weighed for name, method in METHODS.items() if method.weighed},
        remarks=(*protected.remarks, *_remarks(picked, for_, found.cases, left_delta, domain)),
        guarantee=guarantee,
        entry=entry,
        for_=for_,
        spends_delta=picked.spends_delta,
        settings=picked.settings,
        ranking=picked.ranking,
        not_ranked=picked.not_ranked,
        sizes=found.sizes,
        unit=protected,
        prior=public,
    )


def _split_activities(domain: Domain | None, activities: int | Iterable[str] | str | None) -> tuple[Domain, int | None]:
    """Return the public facts, and the number of activities if only that is declared."""
    if isinstance(activities, Iterable) or activities is None:
        return facts_declared(domain, activities), None
    sizes_of(cases=1, length=0, activities=activities)  # refused before anything is asked
    return facts_declared(domain, None), activities


def _unit_message(unit: Unit, reason: Message) -> Message:
    """Return the reason, with the bound on cases of a person.
    Noise, and so the utility of a method, follows from the epsilon of one case."""
    most = unit.most_cases
    return reason if most == 1 else Message("suggested-for-persons", cases=most, rest=reason)


class _Answers(NamedTuple):
    """Noisy answers: cases, their error, share of frequent variants, sizes."""

    cases: int
    within: int
    covered: float | None = None
    frequent: int | None = None
    sizes: Sizes | None = None


def _answers(curator: Curator, epsilon: Fraction, delta: Fraction, number: int | None, *, counted: bool) -> _Answers:
    """Ask for the size of a log; only for its cases if ``counted``.
    ``number`` is that of activities."""
    for_count = epsilon if counted else epsilon * _COUNT
    domain = curator.domain
    if domain.activities not in (None, PRIVATELY):
        number = min(len(curator.activities), MOST_ACTIVITIES) or None  # no synthetic log has more, and none has none
    cases = max(0, curator.count(for_count, purpose="cases-for-suggestion"))
    found = _Answers(cases, math.ceil(math.log(20) / float(for_count)))
    if counted:
        return found
    for_more = epsilon - for_count
    for_sizes = for_more * _SIZES if delta else for_more
    if delta:
        frequent = curator.partitions(for_more - for_sizes, delta, purpose="frequent-variants-for-suggestion")
        covered = min(1.0, frequent.cases / max(1, cases, frequent.cases))
        found = found._replace(covered=covered, frequent=len(frequent))
    sizes = ask_sizes(curator, for_sizes, cases=cases, within=for_count)
    return found._replace(sizes=replace(sizes, activities=number))


@dataclass(frozen=True)
class _Pick:
    method: str
    reason: Message
    promising: bool
    spends_delta: bool = True
    settings: tuple[tuple[str, Any], ...] = ()
    ranking: tuple[Ranked, ...] = ()
    not_ranked: tuple[tuple[str, Message], ...] = ()


def _pick_method(
    scale: float, found: _Answers, ranking: Ranking | None, prior: PublicPrior | None, *, delta: bool
) -> _Pick:
    """Return the method by the prior, else by the measured use case or the answers."""
    if prior is not None:
        return _Pick("evolve", Message("suggested-from-prior", scale=scale), True, spends_delta=False)
    return _pick_by_answers(scale, found) if ranking is None else _pick_by_scale(ranking, scale, delta=delta)


def _pick_by_scale(ranking: Ranking, scale: float, *, delta: bool) -> _Pick:
    """Return the best method for a use case at about this epsilon times cases."""
    order, left_out = ranking.ranked(scale, delta=delta)
    if not order:
        raise ParameterError("suggestion-settings-not-measured", parameter="for", use_case=ranking.use_case)
    served, best, places = ranking.served, order[0], ranking.places(scale)
    form = ".0%" if served.kept else ".2%"
    others = ", ".join(f"{one.name} {one.value:{form}}" for one in order[1:3])
    reason = Message(
        "suggested-by-share" if served.kept else "suggested-by-error",
        scale=scale,
        places=len(places),
        name=best.name,
        use_case=ranking.use_case,
        value=best.value,
        then=f" ({others})" if others else "",
    )
    promising = best.value >= served.enough if served.kept else best.value <= served.enough
    return _Pick(best.method, reason, promising, best.delta, best.settings, order, tuple(left_out.items()))


def _pick_by_answers(scale: float, found: _Answers) -> _Pick:
    """Return the method by the answers; ``scale`` is remaining epsilon times cases."""
    if found.covered is None:
        if scale < _HOPELESS:
            return _Pick("evolve", Message("suggested-little-epsilon", scale=scale), False)
        return _Pick("evolve", Message("suggested-evolve", scale=scale, cells=ahead_in("evolve")), True)
    kinds = {0: "variants-hold-none", 1: "variants-hold-one"}
    kind = kinds.get(found.frequent or 0, "variants-hold-several")
    held = Message(kind, frequent=found.frequent, covered=found.covered)
    if scale < _SMALL and found.covered >= _COVERED:
        return _Pick("travas", Message("suggested-travas", scale=scale, held=held), True)
    if scale < _HOPELESS:
        return _Pick("travas", Message("suggested-travas-little-epsilon", scale=scale), bool(found.frequent))
    return _Pick("evolve", Message("suggested-evolve-with-delta", scale=scale, held=held), True)


def _remarks(pick: _Pick, for_: str, cases: int, delta_left: Fraction, domain: Domain | None) -> list[Message]:
    remarks, method = [], pick.method
    if delta_left * cases > Fraction(1, 10):
        remarks.append(Message("suggestion-delta-too-large", delta_left=float(delta_left * cases)))
    if pick.not_ranked:
        names = "; ".join(f"{name} ({why})" for name, why in pick.not_ranked)
        remarks.append(Message("suggestion-methods-not-ranked", names=names))
    if method == "evolve" and for_ == "discovery" and not pick.settings:
        remarks.append(Message("suggestion-evolve-for-models"))
    if method == "evolve" and delta_left and for_ == SIMILARITY:
        remarks.append(Message("suggestion-evolve-without-delta"))
    if method == "evolve" and (domain is None or domain.activities is None):
        remarks.append(Message("suggestion-evolve-activities-undeclared"))
    return remarks

"""Accounts of a ledger: what they add up to, whether they can pay, and how they are written down."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from veilog.errors import BudgetError, ParameterError, meant
from veilog.ledger.entry import Cost, Entry, cost_of, differences, named
from veilog.ledger.rules import (
    Composed,
    ComposedCost,
    Counting,
    FixedSchedule,
    days_of,
    most_of_a_case,
    rule_of,
    subset_of,
    together,
)
from veilog.logs.eventlog import CASE
from veilog.messages import Message
from veilog.privacy.account.guarantee import STRENGTHS, Strength, round_up
from veilog.privacy.account.guessing_advantage import holds_up_to, worth
from veilog.privacy.partition import SPAN, Partition

_LATER = 1 << 62
"""The number of a release that is not there yet."""


@dataclass(frozen=True)
class Account:
    """What is entered for a data set, or for several that the owner put together."""

    number: int
    name: str
    """The name of the file that it was opened with."""
    unit: str
    """Whom its budget protects, as releases name it."""
    budget: Cost | None
    """All that it may spend; None: without a limit."""
    entries: tuple[Entry, ...]
    counting: Counting | None = None
    """How they are counted against the budget; None: by the sum."""
    others: int = 0
    """How many further accounts the ledger has."""
    namesakes: tuple[int, ...] = ()
    """Those of them that were opened for a file of the same name: perhaps of the same people, and not added up here."""
    budgets_beside: int = 0
    """How many of the further accounts have a budget."""
    uncounted: tuple[Entry, ...] = ()
    """Releases of the data that were made without this ledger: in no sum, until they are taken in."""
    known_cases: int = 0
    """How many cases the data have, where whoever asks knows that; see :meth:`among`."""

    @property
    def spent(self) -> Cost | None:
        """What all charges and reservations cost together: their sum, and of subsets the largest. None if nothing
        bounds it: there was a release without a guarantee, or one for another unit or another kind of case."""
        return self.spent_on(None)

    @property
    def left(self) -> Cost | None:
        """What may still be spent on the whole log; None without a limit."""
        return self.left_for(None)

    def spent_on(self, subset: str | None) -> Cost | None:
        """What was spent on any case, or on those of a subset of the cases."""
        entries = self._counted
        return None if entries is None else most_of_a_case(entries, self.unit, cost_of, subset)

    def bounded_entries(self) -> tuple[Entry, ...]:
        """The entries that cost something; :class:`BudgetError` where nothing bounds what."""
        if self._counted is None:
            raise BudgetError("account-not-composable", account=self.number, why_unbounded=self.why_unbounded)
        return self._counted

    @property
    def _counted(self) -> tuple[Entry, ...] | None:
        """The entries that cost something, if something bounds what."""
        entries = self._made
        unbounded = any(entry.cost is None or entry.unit != self.unit for entry in entries)
        return None if unbounded or len(self.kinds) > 1 else entries

    @property
    def _made(self) -> tuple[Entry, ...]:
        """The entries that were not withdrawn."""
        return tuple(entry for entry in self.entries if entry.state != "withdrawn")

    @property
    def kinds(self) -> tuple[str, ...]:
        """What a case is in the releases for cases: the columns, or types of objects, that tell cases. Of several kinds
        costs do not add up: for one case of the one a release of the other may count more than once."""
        return tuple(dict.fromkeys(entry.kind for entry in self._made if entry.kind is not None))

    @property
    def why_unbounded(self) -> Message:
        """Why nothing bounds what was spent, where that is so."""
        if self.unit == "case" and len(self.kinds) > 1:
            return Message("account-of-several-kinds", names=_listed(self.kinds))
        return Message("account-of-unbounded-release")

    def left_for(self, subset: str | None) -> Cost | None:
        """What a release of the whole log, or of a subset of its cases, may still cost; None without a limit."""
        if self.budget is None:
            return None
        entries, spent = self._counted, self.spent_on(subset)
        if entries is None or spent is None:
            return Fraction(0), Fraction(0)
        if self.counting is not None:
            return self.counting.room(entries, self.unit, self.budget, subset)
        return max(self.budget[0] - spent[0], Fraction(0)), max(self.budget[1] - spent[1], Fraction(0))

    @property
    def composed(self) -> Cost | None:
        """What all releases cost together by the rule of the budget; None as :attr:`spent` is."""
        entries = self._counted
        if entries is None or self.budget is None or self.counting is None:
            return self.spent
        return self.counting.spent(entries, self.unit, self.budget)

    def together(self, delta: Fraction) -> ComposedCost | None:
        """What all releases cost together at a delta, by composition; None where nothing bounds it."""
        entries = self._counted
        return None if entries is None else together(entries, self.unit, delta)

    @property
    def releases_left(self) -> int | None:
        """How many releases are left of a plan; None without one."""
        if not isinstance(self.counting, FixedSchedule):
            return None
        return self.counting.left(self._counted or (), self.unit, None)

    def among(self, cases: int) -> Account:
        """The account of data of which it is known that they have so many cases, or more: what delta may expose."""
        return replace(self, known_cases=max(cases, self.known_cases))

    def with_release(self, cost: Cost, subset: str | None) -> Account:
        """The account as it would be with one release more."""
        way = next((entry.way for entry in self._made), "")
        entry = Entry(_LATER, self.number, "", "", False, {}, self.unit, *cost, "reserved", None, (), subset, way=way)
        entry = replace(entry, remembered=subset is not None)  # of persons only such subsets come here
        return replace(self, entries=(*self.entries, entry))

    @property
    def of_subsets(self) -> bool:
        """Whether there are releases of subsets, of which only the largest sums count."""
        return any(subset_of(entry, self.unit) for entry in self._made)

    @property
    def strength(self) -> Strength:
        """What the releases so far are worth together: by their sum, or by the rule of the budget where that is less. A
        plan costs all of its releases from the first on; composition guarantees its limit alone, for what each costs
        may have been chosen after seeing earlier ones."""
        return worth(*self._bounds, cases=self._cases)

    @property
    def holds_up_to(self) -> int | None:
        """The most cases that the data may have for that word to hold; None: any number."""
        return holds_up_to(*self._bounds, cases=self._cases)

    _bounds = property(lambda self: (self.spent, self.budget if isinstance(self.counting, Composed) else self.composed))

    @property
    def planned_strength(self) -> Strength | None:
        """What all releases of a plan will be worth together; None without one."""
        return worth(self.budget, cases=self._cases) if isinstance(self.counting, FixedSchedule) else None

    @property
    def _cases(self) -> int:
        """The most cases that a release has, as far as its entry says that, or that the data are known to have."""
        said = (entry.guarantee.get("cases") for entry in self._made if entry.guarantee is not None)
        return max([self.known_cases, *(cases for cases in said if isinstance(cases, int))])

    @property
    def most_cases(self) -> int | None:
        """Where it was only said, not bounded, how many cases a person has at most: the smallest such number."""
        if self.unit != "person":
            return None
        said = [entry.parameters.get("max_cases") for entry in self._made]
        return min((int(number) for number in said if isinstance(number, int)), default=None)

    def totals(self) -> dict[str, object]:
        """The sums, for machines; costs are rounded up, what is left is rounded down."""
        return {
            "account": self.number,
            "name": self.name,
            "unit": self.unit,
            "budget": _cost_json(self.budget),
            "spent": _cost_json(self.spent),
            "level": self.strength,
            "level_holds_up_to_cases": self.holds_up_to,
            "most_cases": self.most_cases,
            "left": _cost_json(self.left, down=True),
            **({"kinds_of_case": list(self.kinds)} if len(self.kinds) > 1 else {}),
            **({"others": self.others, "namesakes": list(self.namesakes)} if self.others else {}),
            **({"uncounted": len(self.uncounted)} if self.uncounted else {}),
            **({} if self.counting is None else self._composition(self.counting)),
        }

    def _composition(self, counting: Counting) -> dict[str, object]:
        left = {} if self.releases_left is None else {"releases_left": self.releases_left}
        return {"counting": counting.to_json() | left, "composed": _cost_json(self.composed)}

    def to_json(self, *, guarantees: bool = False) -> dict[str, object]:
        """Return the sums and every release, and those that are not counted where there are some."""
        counted = {"releases": [_entry_json(entry, guarantees) for entry in self.entries]}
        others = [_entry_json(entry, guarantees) for entry in self.uncounted]
        return {**self.totals(), **counted, **({"uncounted_releases": others} if others else {})}

    @property
    def releases(self) -> int:
        """How many releases count: those that were withdrawn cost nothing."""
        return len(self._made)

    def before(self, number: int) -> Account:
        """The account as it was before the release of this number."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.number < number))

    def falls_to(self, after: Account) -> Strength | None:
        """The protection level of all releases together after one more, where it is lower than before that; None where
        it is not, or where this is the first, whose level is its own."""
        if not self.releases or STRENGTHS.index(after.strength) <= STRENGTHS.index(self.strength):
            return None
        return after.strength


def check_unit(entries: Iterable[Entry], unit: str) -> None:
    """:class:`ParameterError` for a limit that protects another unit than all these releases: what they cost it is not
    bounded, so nothing would be left."""
    units = dict.fromkeys(entry.unit for entry in entries if entry.state != "withdrawn")
    if units and unit not in units:
        raise ParameterError(
            "account-unit-unbounded", parameter="unit", listed=_listed(units), unit=unit, meant=meant(unit, units)
        )


def check_paid(
    account: Account, cost: Cost | None, unit: str, subset: str | None = None, kind: str | None = None
) -> None:
    """:class:`BudgetError` if a release of this cost (None: nothing bounds it), of this subset of the cases (None: of
    all), would exceed the account's budget. ``kind`` is what a case is in its log, where that is the unit."""
    left = account.left_for(subset)
    if account.budget is None or left is None:
        return
    number = account.number
    if cost is None:
        raise BudgetError("budget-release-unbounded", account=number)
    _check_same(account, unit, kind)
    if account.spent is None:
        raise BudgetError("budget-used-up", account=number, why=account.why_unbounded)
    plan = account.counting
    if isinstance(plan, FixedSchedule) and any(asked > rest for asked, rest in zip(cost, left, strict=True)):
        remaining = plan.left(account.bounded_entries(), unit, subset)
        raise BudgetError(
            "plan-exceeded",
            account=number,
            pair=figures_of(cost),
            remaining=remaining,
            pair_2=figures_of(plan.each),
        )
    for word, asked, rest, limit in zip(("epsilon", "delta"), cost, left, account.budget, strict=True):
        if asked > rest:
            code = "budget-exceeded" if subset is None else "budget-of-subset-exceeded"
            raise BudgetError(
                "budget-of-subsets-read-apart-exceeded" if _read_apart(account, subset) else code,
                account=number,
                word=word,
                asked=in_figures(asked),
                budget=in_figures(limit),
                left=in_figures(rest, down=True),
                **({} if subset is None else {"subset": named(subset)}),
            )


def _check_same(account: Account, unit: str, kind: str | None) -> None:
    """Refuse what does not add up with the releases before: for another unit, or for another kind of case."""
    if unit != account.unit:
        persons = not {unit, account.unit} & {"case", "person"}
        raise BudgetError(
            "person-column-not-of-budget" if persons else "unit-not-of-budget",
            account=account.number,
            unit=account.unit,
            unit_2=unit,
        )
    before = account.kinds
    if unit == "case" and kind is not None and before and set(before) != {kind}:
        raise BudgetError(
            "account-case-kind-differs",
            account=account.number,
            listed=_listed(before),
            kind=kind,
            before=before[0],
            renamed=_renamed(kind, before),
        )


def _renamed(kind: str, before: tuple[str, ...]) -> Message:
    """How a log comes to name its cases otherwise than those before."""
    if CASE in (kind, *before):
        return Message("case-kind-lost", kind=CASE)
    return Message("case-kind-renamed", kind=kind)


def _read_apart(account: Account, subset: str | None) -> bool:
    """Whether a subset is not apart from others of its rule, as their logs were read in another way."""
    if subset is None or account.unit != "case":
        return False
    alike = [e.counted for e in account.entries if e.counted is not None and e.state != "withdrawn"]
    same = rule_of(named(subset))
    return any(rule_of(other) != rule_of(subset) for other in alike if rule_of(named(other)) == same)


def _listed(names: Iterable[str]) -> str:
    """Names in quotes, the first few."""
    shown = [repr(name) for name in names]
    return " and ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def figures_of(cost: Cost, *, down: bool = False) -> str:
    """Return a cost for people; a delta of nothing is left out."""
    epsilon, delta = (in_figures(value, down=down) for value in cost)
    return f"epsilon = {epsilon}, delta = {delta}" if cost[1] else f"epsilon = {epsilon}"


def in_figures(value: Fraction, *, down: bool = False) -> str:
    """A number for people, never better than it is: costs are rounded up, what is left is rounded down."""
    return repr(_rounded(value, down)).removesuffix(".0")


def as_json(accounts: Iterable[Account], *, guarantees: bool) -> str:
    """All accounts as JSON text."""
    content = [account.to_json(guarantees=guarantees) for account in accounts]
    return json.dumps({"accounts": content}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(accounts: Iterable[Account]) -> str:
    """One row a release; the subset of the cases that it is of, where there are subsets."""
    text, shown = io.StringIO(), tuple(accounts)
    of_subsets = any(entry.subset is not None for account in shown for entry in account.entries)
    columns = [*_COLUMNS, "guarantee", *(["subset"] if of_subsets else [])]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for account in shown:
        for entry in account.entries:
            facts = _entry_json(entry, True) | {"account": account.number, "name": account.name}
            facts |= {"parameters": json.dumps(entry.parameters), "outputs": " ".join(entry.outputs)}
            facts["guarantee"] = None if entry.guarantee is None else json.dumps(entry.guarantee)
            writer.writerow(facts)
    return text.getvalue()


_COLUMNS = (
    *("release", "account", "name", "time", "method", "as_published", "parameters", "unit", "status"),
    *("epsilon", "delta", "epsilon_exact", "delta_exact", "state", "outputs"),
)


def _entry_json(entry: Entry, guarantees: bool) -> dict[str, object]:
    """Every cost twice, rounded up and exact; the stored guarantee, which is long, where it is asked for."""
    facts: dict[str, object] = {
        "release": entry.number,
        "time": entry.time,
        "method": entry.method,
        "as_published": entry.as_published,
        "parameters": entry.parameters,
        "unit": entry.unit,
        "status": "none" if entry.epsilon is None else "proven",
        "epsilon": None if entry.epsilon is None else round_up(entry.epsilon),
        "delta": None if entry.delta is None else round_up(entry.delta),
        "epsilon_exact": None if entry.epsilon is None else str(entry.epsilon),
        "delta_exact": None if entry.delta is None else str(entry.delta),
        "state": entry.state,
        "outputs": list(entry.outputs),
        **({} if entry.subset is None else {"subset": entry.subset}),
    }
    return facts | ({"guarantee": entry.guarantee} if guarantees else {})


def _cost_json(cost: Cost | None, *, down: bool = False) -> dict[str, float] | None:
    return None if cost is None else {"epsilon": _rounded(cost[0], down), "delta": _rounded(cost[1], down)}


def _rounded(value: Fraction, down: bool) -> float:
    """The nearest float that prints as no less than ``value``, or as no more."""
    return -round_up(-value) if down and value else round_up(value)


@dataclass(frozen=True)
class LastReleasedInterval:
    """The day on which the last release of a span of days ended: the first that is not in it."""

    account: str
    entry: Entry
    """The release that ended last."""
    end: str
    lost: tuple[Entry, ...]
    """Releases of later days that were charged, or are still set aside, and were never written; no process has them."""

    def until(self, end: datetime.date | None) -> Partition:
        """The subset from that day on, before ``end``; by default today in UTC, so whole days."""
        end = datetime.datetime.now(datetime.UTC).date() if end is None else end
        if self.end >= end.isoformat():
            raise ParameterError(
                "span-already-released",
                parameter="since",
                end=self.end,
                number=self.account,
                number_2=self.entry.number,
                end_2=end,
            )
        return Partition(SPAN, f"{self.end}..{end}", follows=True)

    def check(self, unit: str, read_as: str | None = None) -> None:
        """:class:`ParameterError` where the release to come is for another unit than the last, or its log is read in
        another way: which day a case is of would be another, so it could be in both or in none."""
        if unit != self.entry.unit:
            raise ParameterError(
                "span-of-other-unit",
                parameter="since",
                number=self.account,
                number_2=self.entry.number,
                before=self.entry.unit,
                unit=unit,
                end=self.end,
            )
        if read_as is not None and read_as != self.entry.way:
            raise ParameterError(
                "span-read-otherwise",
                parameter="since",
                number=self.account,
                number_2=self.entry.number,
                differences=differences(self.entry.way, read_as),
                end=self.end,
            )

    @property
    def in_words(self) -> Message:
        """Which day this is, and what becomes of days that were paid for and never written."""
        numbers = ", ".join(str(entry.number) for entry in self.lost)
        return Message(
            "span-begins",
            end=self.end,
            number=self.entry.number,
            account=self.account,
            empty=Message("span-begins-empty") if self.entry.empty else "",
            lost=Message("span-begins-lost", numbers=numbers) if self.lost else "",
        )


def last_span(accounts: Iterable[Account], name: str | None) -> LastReleasedInterval:
    """Return where the last release of a span of days on the account of this name ended; :class:`ParameterError` where
    none tells, or where days before it are in no release."""
    if name is None:
        raise ParameterError("span-without-account", parameter="since")
    accounts = list(accounts)
    found = [account for account in accounts if account.name == name]
    if len(found) != 1:
        raise ParameterError(
            "span-account-ambiguous" if found else "span-account-missing",
            parameter="account",
            name=name,
            meant=meant(name, [account.name for account in accounts]),
        )
    listed = [(days_of(entry.subset), entry) for entry in found[0].entries if entry.state != "withdrawn"]
    made = [(days, entry) for days, entry in listed if days]
    spans = [(days, entry) for days, entry in made if _answered(entry)]
    if not spans:
        raise ParameterError("span-without-release", parameter="since", name=name)
    (_, end), entry = max(spans, key=lambda span: (span[0][1], span[1].number))
    if running := [other for (_, last), other in made if other.runs and last > end]:  # both would release these days
        raise BudgetError("span-still-being-written", account=found[0].number, number=running[-1].number, name=name)
    _check_gap([days for days, _ in spans], name)
    return LastReleasedInterval(
        name, entry, end, tuple(one for (_, last), one in made if not _answered(one) and last > end)
    )


def check_follows(account: Account, subset: Partition, unit: str, way: str) -> None:
    """Refuse, in the transaction that reserves, a span of days that no longer begins where the last release ended:
    another run may have released these days since they were read off the ledger."""
    first, _, end = subset.value.partition("..")
    last = last_span([account], account.name)
    last.check(unit, way)
    last.until(datetime.date.fromisoformat(end))  # refuses where none is left
    if last.end != first:
        raise BudgetError(
            "span-ended-meanwhile",
            account=account.number,
            number=last.entry.number,
            name=account.name,
            end=last.end,
        )


def _answered(entry: Entry) -> bool:
    """Whether its days are released, with whatever came out."""
    return entry.state == "written" or entry.empty


def _check_gap(spans: Sequence[tuple[str, str]], name: str) -> None:
    """Refuse days in no release before the last one. Whoever left them out on purpose goes on without them once, by a
    date; then two releases join after them."""
    begin, end = max(spans, key=lambda span: span[1])
    joined = 0
    for first, last in sorted(spans, key=lambda span: span[1], reverse=True):  # ISO dates sort as text
        if last < begin:
            break
        begin, joined = min(begin, first), joined + 1
    before = [last for _, last in spans if last < begin]
    if before and joined < 2:
        raise ParameterError("span-leaves-gap", parameter="since", max=max(before), begin=begin, name=name, end=end)

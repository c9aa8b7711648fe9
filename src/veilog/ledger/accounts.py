"""Accounts of a ledger: their sums, their limits, and their form in files."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from veilog.errors import BudgetError, ParameterError, meant
from veilog.ledger.entry import Cost, Entry, cost_of, differences, subset_name
from veilog.ledger.rules import (
    Composed,
    ComposedCost,
    Counting,
    FixedSchedule,
    days_of,
    most_per_unit,
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
"""Number of a release that does not exist yet."""


@dataclass(frozen=True)
class Account:
    """Entries of a data set, or of several that the data owner put together."""

    number: int
    name: str
    """Name of the file that it was opened with."""
    unit: str
    """Unit that its budget protects, as releases name it."""
    budget: Cost | None
    """Limit of what it may spend; None without a limit."""
    entries: tuple[Entry, ...]
    counting: Counting | None = None
    """Rule by which releases count against the budget; None for the sum."""
    others: int = 0
    """Number of further accounts in the ledger."""
    namesakes: tuple[int, ...] = ()
    """Further accounts for a file of the same name: perhaps of the same people, and not added up here."""
    budgets_beside: int = 0
    """Number of further accounts with a budget."""
    uncounted: tuple[Entry, ...] = ()
    """Releases of the data without this ledger: in no sum, until they are taken in."""
    known_cases: int = 0
    """Number of cases of the data, where the caller knows it; see :meth:`among`."""

    @property
    def spent(self) -> Cost | None:
        """Total of all charges and reservations: their sum, and for subsets the largest.

        None if nothing bounds it, after a release without a guarantee, or for another unit or another kind of case.
        """
        return self.spent_on(None)

    @property
    def left(self) -> Cost | None:
        """Rest that the whole log may still spend; None without a limit."""
        return self.left_for(None)

    def spent_on(self, subset: str | None) -> Cost | None:
        """Return the budget spent on any case, or on the cases of a subset."""
        entries = self._counting_entries
        return None if entries is None else most_per_unit(entries, self.unit, cost_of, subset)

    def bounded_entries(self) -> tuple[Entry, ...]:
        """Return the entries that count; :class:`BudgetError` if one has no bound."""
        if self._counting_entries is None:
            raise BudgetError("account-not-composable", account=self.number, why_unbounded=self.why_unbounded)
        return self._counting_entries

    @property
    def _counting_entries(self) -> tuple[Entry, ...] | None:
        """Entries that count; None if one has no bound."""
        entries = self._effective_entries
        unbounded = any(entry.cost is None or entry.unit != self.unit for entry in entries)
        return None if unbounded or len(self.kinds) > 1 else entries

    @property
    def _effective_entries(self) -> tuple[Entry, ...]:
        """Entries that were not withdrawn."""
        return tuple(entry for entry in self.entries if entry.state != "withdrawn")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of case in releases for cases: the columns or object types that name them.

        Costs of several kinds do not add up: for one case of one kind, a release of another may count more than once.
        """
        return tuple(dict.fromkeys(entry.kind for entry in self._effective_entries if entry.kind is not None))

    @property
    def why_unbounded(self) -> Message:
        """Reason why nothing bounds the spent budget."""
        if self.unit == "case" and len(self.kinds) > 1:
            return Message("account-of-several-kinds", names=_quote_names(self.kinds))
        return Message("account-of-unbounded-release")

    def left_for(self, subset: str | None) -> Cost | None:
        """Return the rest for a release of the log or of a subset; None without a limit."""
        if self.budget is None:
            return None
        entries, spent = self._counting_entries, self.spent_on(subset)
        if entries is None or spent is None:
            return Fraction(0), Fraction(0)
        if self.counting is not None:
            return self.counting.room(entries, self.unit, self.budget, subset)
        return max(self.budget[0] - spent[0], Fraction(0)), max(self.budget[1] - spent[1], Fraction(0))

    @property
    def composed(self) -> Cost | None:
        """Total of all releases by the rule of the budget; None as for :attr:`spent`."""
        entries = self._counting_entries
        if entries is None or self.budget is None or self.counting is None:
            return self.spent
        return self.counting.spent(entries, self.unit, self.budget)

    def together(self, delta: Fraction) -> ComposedCost | None:
        """Return the total of all releases at a delta, composed; None without a bound."""
        entries = self._counting_entries
        return None if entries is None else together(entries, self.unit, delta)

    @property
    def releases_left(self) -> int | None:
        """Number of releases that are left of a plan; None without one."""
        if not isinstance(self.counting, FixedSchedule):
            return None
        return self.counting.left(self._counting_entries or (), self.unit, None)

    def among(self, cases: int) -> Account:
        """Return the account of data with at least so many cases, which delta may expose."""
        return replace(self, known_cases=max(cases, self.known_cases))

    def with_release(self, cost: Cost, subset: str | None) -> Account:
        """Return the account as it would be with one more release."""
        way = next((entry.way for entry in self._effective_entries), "")
        entry = Entry(_LATER, self.number, "", "", False, {}, self.unit, *cost, "reserved", None, (), subset, way=way)
        entry = replace(entry, remembered=subset is not None)  # for persons only such subsets come here
        return replace(self, entries=(*self.entries, entry))

    @property
    def of_subsets(self) -> bool:
        """True if there are releases of subsets, of which only the largest sums count."""
        return any(subset_of(entry, self.unit) for entry in self._effective_entries)

    @property
    def strength(self) -> Strength:
        """Protection level of the releases so far, by their sum or by the budget's rule.

        The smaller one counts. A plan counts all of its releases from the first on. Composition guarantees only its
        limit, as each cost may have been chosen after seeing earlier answers.
        """
        return worth(*self._bounds, cases=self._cases)

    @property
    def holds_up_to(self) -> int | None:
        """Most cases that the data may have for that level to hold; None for any number."""
        return holds_up_to(*self._bounds, cases=self._cases)

    _bounds = property(lambda self: (self.spent, self.budget if isinstance(self.counting, Composed) else self.composed))

    @property
    def planned_strength(self) -> Strength | None:
        """Protection level of all releases of a plan together; None without one."""
        return worth(self.budget, cases=self._cases) if isinstance(self.counting, FixedSchedule) else None

    @property
    def _cases(self) -> int:
        """Most cases of a release, as far as entries state it, or of the data as known."""
        said = (entry.guarantee.get("cases") for entry in self._effective_entries if entry.guarantee is not None)
        return max([self.known_cases, *(cases for cases in said if isinstance(cases, int))])

    @property
    def most_cases(self) -> int | None:
        """Smallest stated limit of cases per person, where it was stated and not enforced."""
        if self.unit != "person":
            return None
        said = [entry.parameters.get("max_cases") for entry in self._effective_entries]
        return min((int(number) for number in said if isinstance(number, int)), default=None)

    def totals(self) -> dict[str, object]:
        """Return the sums for programs; costs are rounded up, rests are rounded down."""
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
        """Return the sums and every release, and the uncounted ones if there are any."""
        counted = {"releases": [_entry_json(entry, guarantees) for entry in self.entries]}
        others = [_entry_json(entry, guarantees) for entry in self.uncounted]
        return {**self.totals(), **counted, **({"uncounted_releases": others} if others else {})}

    @property
    def releases(self) -> int:
        """Number of releases that count; withdrawn ones do not."""
        return len(self._effective_entries)

    def before(self, number: int) -> Account:
        """Return the account as it was before the release of this number."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.number < number))

    def falls_to(self, after: Account) -> Strength | None:
        """Return the level after one more release where it falls; None also for a first."""
        if not self.releases or STRENGTHS.index(after.strength) <= STRENGTHS.index(self.strength):
            return None
        return after.strength


def check_unit(entries: Iterable[Entry], unit: str) -> None:
    """Refuse a limit that protects another unit than all these releases.

    Nothing bounds what they cost that unit, so nothing would be left.
    """
    units = dict.fromkeys(entry.unit for entry in entries if entry.state != "withdrawn")
    if units and unit not in units:
        raise ParameterError(
            "account-unit-unbounded", parameter="unit", listed=_quote_names(units), unit=unit, meant=meant(unit, units)
        )


def check_paid(
    account: Account, cost: Cost | None, unit: str, subset: str | None = None, kind: str | None = None
) -> None:
    """Refuse a release that would exceed the account's budget.

    Args:
        account: Account of the data.
        cost: Budget of the release; None if nothing bounds it.
        unit: Protected unit of the release.
        subset: Subset of the cases, None for all.
        kind: Kind of case in its log, where the unit is a case.

    Raises:
        BudgetError: The release does not fit.

    """
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
                asked=format_amount(asked),
                budget=format_amount(limit),
                left=format_amount(rest, down=True),
                **({} if subset is None else {"subset": subset_name(subset)}),
            )


def _check_same(account: Account, unit: str, kind: str | None) -> None:
    """Refuse a release for another unit or kind of case than those before."""
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
            listed=_quote_names(before),
            kind=kind,
            before=before[0],
            renamed=_renaming_message(kind, before),
        )


def _renaming_message(kind: str, before: tuple[str, ...]) -> Message:
    """Return why a log may name its cases otherwise than those before."""
    if CASE in (kind, *before):
        return Message("case-kind-lost", kind=CASE)
    return Message("case-kind-renamed", kind=kind)


def _read_apart(account: Account, subset: str | None) -> bool:
    """Return True if a subset overlaps others of its rule, read in another way."""
    if subset is None or account.unit != "case":
        return False
    alike = [e.counted for e in account.entries if e.counted is not None and e.state != "withdrawn"]
    same = rule_of(subset_name(subset))
    return any(rule_of(other) != rule_of(subset) for other in alike if rule_of(subset_name(other)) == same)


def _quote_names(names: Iterable[str]) -> str:
    """Return names in quotes, the first few."""
    shown = [repr(name) for name in names]
    return " and ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def figures_of(cost: Cost, *, down: bool = False) -> str:
    """Return a cost for people; a delta of 0 is left out."""
    epsilon, delta = (format_amount(value, down=down) for value in cost)
    return f"epsilon = {epsilon}, delta = {delta}" if cost[1] else f"epsilon = {epsilon}"


def format_amount(value: Fraction, *, down: bool = False) -> str:
    """Return a number for people, never too good: costs rounded up, rests down."""
    return repr(_round_float(value, down)).removesuffix(".0")


def as_json(accounts: Iterable[Account], *, guarantees: bool) -> str:
    """Return all accounts as JSON text."""
    content = [account.to_json(guarantees=guarantees) for account in accounts]
    return json.dumps({"accounts": content}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(accounts: Iterable[Account]) -> str:
    """Return CSV text with one row a release, and its subset where there are subsets."""
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
    """Return an entry's facts, each cost rounded and exact; the guarantee on request."""
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
    return None if cost is None else {"epsilon": _round_float(cost[0], down), "delta": _round_float(cost[1], down)}


def _round_float(value: Fraction, down: bool) -> float:
    """Return the nearest float that prints as no less than ``value``, or no more."""
    return -round_up(-value) if down and value else round_up(value)


@dataclass(frozen=True)
class LastReleasedInterval:
    """End of the last release of a span of days: the first day that is not in it.

    It is read off the ledger, never off a log. A written release counts, and so does one that came out empty: that is
    an answer, of too few cases. Days that were charged and never written (a release failed or was cut off) are released
    again with the next span, and use the budget of their cases anew.
    """

    account: str
    entry: Entry
    """Release that ended last."""
    end: str
    lost: tuple[Entry, ...]
    """Releases of later days that were charged or reserved, but never written; no process has them."""

    def until(self, end: datetime.date | None) -> Partition:
        """Return the subset from that day to ``end``, by default today in UTC: whole days."""
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
        """Refuse a next release for another unit than the last, or read in another way.

        Its cases would have other days, so a case could be in both or in none.
        """
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
        """Note on this day, and on charged days that were never written."""
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
    """Return the end of the last release of a span of days on the named account.

    Raises:
        ParameterError: No release has one, or days before it are in no release.
        BudgetError: A release of later days is still being written.

    """
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
    spans = [(days, entry) for days, entry in made if _is_released(entry)]
    if not spans:
        raise ParameterError("span-without-release", parameter="since", name=name)
    (_, end), entry = max(spans, key=lambda span: (span[0][1], span[1].number))
    if running := [other for (_, last), other in made if other.runs and last > end]:  # both would release these days
        raise BudgetError("span-still-being-written", account=found[0].number, number=running[-1].number, name=name)
    _check_gap([days for days, _ in spans], name)
    return LastReleasedInterval(
        name, entry, end, tuple(one for (_, last), one in made if not _is_released(one) and last > end)
    )


def check_follows(account: Account, subset: Partition, unit: str, way: str) -> None:
    """Refuse a span of days that no longer begins where the last release ended.

    It runs in the transaction that reserves, as another run may have released these days meanwhile.
    """
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


def _is_released(entry: Entry) -> bool:
    """Return True if its days are released, with any result."""
    return entry.state == "written" or entry.empty


def _check_gap(spans: Sequence[tuple[str, str]], name: str) -> None:
    """Refuse days in no release before the last one.

    A data owner who left them out on purpose goes on without them once, by a date; then two releases join after them.
    """
    begin, end = max(spans, key=lambda span: span[1])
    joined = 0
    for first, last in sorted(spans, key=lambda span: span[1], reverse=True):  # ISO dates sort as text
        if last < begin:
            break
        begin, joined = min(begin, first), joined + 1
    before = [last for _, last in spans if last < begin]
    if before and joined < 2:
        raise ParameterError("span-leaves-gap", parameter="since", max=max(before), begin=begin, name=name, end=end)

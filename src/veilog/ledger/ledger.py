"""The ledger: what the releases of a data set have cost together, and how much they may cost in all.

A release is entered twice. Before any question is asked, what it may cost at most is *reserved*, and refused if that
would exceed the budget; afterwards it is *charged* what was derived, never more than was reserved. Both are durable
before anything else happens, so a crash loses the release and never its charge: what stays reserved counts as spent.

Costs add up: releases that cost (epsilon_i, delta_i), each chosen after seeing the earlier ones, are together
(sum epsilon_i, sum delta_i)-differentially private as long as that sum is kept below the budget at every moment, even
if what the later ones cost was chosen after the earlier ones (Rogers, Roth, Ullman, Vadhan, "Privacy odometers and
filters", 2016: for these plain sums the filter costs nothing).

The sums are for one unit: a guarantee for cases does not say what a person with several cases loses. How parts of the
cases count: :mod:`veilog.ledger.costs`; what the owner may have counted instead: :mod:`veilog.ledger.counting`.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import ge
from pathlib import Path
from typing import Any

from veilog._files import atomic_target, check_writable
from veilog.errors import BudgetError, OutputError, ParameterError
from veilog.ledger import file as ledger_file
from veilog.ledger.accounts import Account, as_csv, as_json, check_paid, check_unit
from veilog.ledger.book import (
    Given,
    account_of,
    held,
    limit,
    mark_of,
    on_named,
    opened,
    plain,
    put_together,
    reserved,
    usual_unit,
)
from veilog.ledger.costs import Cost, short
from veilog.ledger.counting import Composed, Counting, FixedSchedule, composed_budget, planned_budget
from veilog.ledger.entries import Holder
from veilog.ledger.file import PATIENCE, Book, Waiting
from veilog.ledger.fingerprints import Data, Units, fingerprint, unseen
from veilog.ledger.runs import Reservation, check_mark, is_open, put_mark
from veilog.ledger.spans import check_follows, last_span
from veilog.ledger.uncounted import count_uncounted, note_uncounted
from veilog.ledger.ways import as_read, kind_of_case
from veilog.logs.variants import Variants
from veilog.privacy.account.accounting import Number, parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Guarantee
from veilog.privacy.part import Part, day_named

Limit = tuple[Cost | None, Counting | None]
"""A budget, None for none, and how it is counted, None for the sum."""


@dataclass(frozen=True)
class Ledger:
    """A ledger in a file. Every call opens it, does one transaction, and closes it, so that processes can share it."""

    path: Path
    patience: float = PATIENCE
    """Seconds to wait for a ledger that another process is writing."""
    waiting: Waiting | None = None
    name: str | None = None
    """What an account is called that is opened for data that do not know their file."""
    account_name: str | None = None
    """The account that data are entered in which are not known yet: a log that grows, about the same people."""
    create: bool = False
    """Whether the first entry makes the file, if there is none."""

    @staticmethod
    def open(
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        patience: float = PATIENCE,
        waiting: Waiting | None = None,
        name: str | None = None,
        account: str | None = None,
    ) -> Ledger:
        """The ledger in this file, read once to see that it is one. With ``create`` there need not be a file yet: the
        first entry makes it. ``account`` names the account that releases are entered in, so that a log that grows
        stays on one; it is opened where there is none of this name."""
        place = ledger_file.located(path)
        if account is not None and not account.strip():
            raise ParameterError(
                "An account has a name, and this one is empty.",
                parameter="account",
                advice="Where it is from a variable, that may not be set.",
            )
        fresh = create and not place.exists()
        ledger = Ledger(place, patience, waiting, name, account, create=fresh)  # one that was there is never made anew
        if fresh:
            check_writable(place)
        else:
            ledger.show()
        return ledger

    def show(self) -> tuple[Account, ...]:
        """All accounts with their releases."""
        if self.create and not self.path.exists():
            return ()
        with self._reading() as book:
            return tuple(account_of(book, number) for number in sorted(book.accounts))

    def account(self, data: Given) -> Account | None:
        """The account of these data (or of those with this fingerprint), if they have one here."""
        if self.create and not self.path.exists():
            return None
        mark = mark_of(held(data))
        with self._reading() as book:
            number = book.data.get(book.digest(mark))
            return None if number is None else account_of(book, number)

    def accounts_of(self, marks: Iterable[bytes]) -> dict[bytes, Account]:
        """Return the accounts of data that are recognised by these fingerprints, as far as they have one, by one read
        of the ledger."""
        if self.create and not self.path.exists():
            return {}
        with self._reading() as book:
            found = {mark: book.data.get(book.digest(mark)) for mark in dict.fromkeys(marks)}
            accounts = {number: account_of(book, number) for number in set(found.values()) if number is not None}
            return {mark: accounts[number] for mark, number in found.items() if number is not None}

    def since_last(
        self, log: Data | None = None, *, until: datetime.date | str | None = None, unit: str = "case"
    ) -> Part:
        """The cases that began since the last release of such a part on the account that this ledger was opened for
        (``account=``), and before ``until``, by default today in UTC: what a log that grows has not released yet.

        It is read off the ledger alone. Releases count that were saved (:meth:`veilog.Release.save`) or came out empty.
        With the ``log``, and the ``unit`` of the release to come, it is refused where these are not as they were then.
        """
        last = last_span(self.show(), self.account_name)
        last.check(unit, None if log is None else log.read_as)
        return last.until(day_named(until, "until") if isinstance(until, str) else until)

    def set_budget(
        self,
        data: Given,
        epsilon: Number | None,
        delta: Number = 0,
        *,
        unit: str | None = None,
        account: int | None = None,
        composed: bool = False,
    ) -> Account:
        """Limit what these data may spend in all, whatever they have spent; ``epsilon`` None takes the limit away.

        ``unit`` is whom the limit protects, as releases name it; by default whom the releases so far protect, or a
        case. :class:`ParameterError` for another one than theirs: nothing would ever be left of it.
        ``account`` puts the data on that account, with all that they have spent: for data about the same people, such
        as a log that has grown.
        ``composed`` counts releases from now on by their composition, which costs less than the sum, also where each is
        chosen after seeing earlier ones; half of ``delta`` is for that, and half for the deltas of the releases. Where
        that was so before, it goes on if no limit is lowered; else it begins now, and what there was counts by the sum.
        """
        failure = short(parse_delta(delta))
        if epsilon is None and (failure or composed):
            raise ParameterError("A budget for delta needs one for epsilon.", parameter="delta")
        if epsilon is None:
            return self._set(data, unit, account, lambda found, since: (None, None))
        budget = short(parse_epsilon(epsilon)), failure

        def rule(found: Account, since: int) -> Limit:
            if not composed:
                return budget, None
            kept = found.counting if isinstance(found.counting, Composed) else None
            # A limit that is lowered for what there was begins anew: it was none when that was released.
            if kept is not None and found.budget is not None and all(map(ge, budget, found.budget)):
                composed_budget(found.bounded_entries(), found.unit, kept.since, budget)
                return budget, kept
            return budget, composed_budget(found.bounded_entries(), found.unit, since, budget)

        return self._set(data, unit, account, rule)

    def set_plan(
        self,
        data: Given,
        releases: int,
        epsilon: Number,
        delta: Number,
        *,
        each_delta: Number = 0,
        unit: str | None = None,
        account: int | None = None,
    ) -> Account:
        """Plan how many ``releases`` there will be, each of at most ``epsilon`` and ``each_delta``. The budget is what
        all of them cost together at ``delta``, which is less than the sum, with what was released before."""
        each = short(parse_epsilon(epsilon)), short(parse_delta(each_delta))
        failure = short(parse_delta(delta))

        def rule(found: Account, since: int) -> Limit:
            kept = found.counting
            if isinstance(kept, FixedSchedule) and (kept.releases, kept.each) == (releases, each):
                since = kept.since
            plan, budget = planned_budget(found.bounded_entries(), found.unit, since, releases, each, failure)
            return budget, plan

        return self._set(data, unit, account, rule)

    def enter(self, data: Given, *, unit: str | None = None, account: int | None = None) -> Account:
        """The account of these data, opened without a limit if they have none yet; a limit stays as it is."""
        return self._set(data, unit, account, None)

    def note_uncounted(
        self,
        data: Data,
        method: str,
        guarantee: Guarantee,
        *,
        parameters: Mapping[str, Any] | None = None,
        unit: str = "case",
        as_published: bool = False,
        part: Part | None = None,
    ) -> Account:
        """Note a release that was made without this ledger. No sum counts it, until :meth:`count_uncounted` does."""
        mark, cases, way = fingerprint(data), None if part is None else plain(str(part)), plain(data.read_as)
        told: dict[str, Any] = {
            "parameters": parameters or {},
            "unit": unit,
            "as_published": as_published,
            "part": cases,
            "way": way,
        }
        self._made()
        with self._writing() as book:
            number = note_uncounted(book, mark, self._name_of(data), method, guarantee, **told)
            return account_of(ledger_file.reread(book), number)

    def count_uncounted(self, data: Given) -> Account:
        """Take the releases of these data that were made without this ledger into their account, and so into its
        sums; this cannot be undone. :class:`ParameterError` if the account has a budget and they do not add up with
        its releases."""
        mark = mark_of(held(data))
        if self.create and not self.path.exists():
            return self.enter(data)
        with self._writing() as book:
            number = book.data.get(book.digest(mark))
            if number is not None:
                count_uncounted(book, number)
                return account_of(ledger_file.reread(book), number)
        return self.enter(data)

    def reserve(
        self,
        data: Data,
        method: str,
        *,
        epsilon: Fraction | None,
        delta: Fraction = Fraction(0),
        parameters: Mapping[str, Any] | None = None,
        unit: str = "case",
        as_published: bool = False,
        mark: str | None = None,
        part: Part | None = None,
        units: Units | None = None,
        begins: bool = False,
    ) -> Reservation:
        """Set aside what a release may cost at most, durably, before anything is asked of the data.

        ``epsilon`` None: nothing bounds it beforehand (as published, seeded, or another kind of guarantee). ``mark`` is
        that of the checkpoints of a run that can be interrupted. ``part`` is which cases it is of, if not of all, and
        ``units`` the digests of those in it. With ``begins`` the run calls :meth:`Reservation.begin` before its first
        question: until then nothing counts if its process is killed.
        Data that the ledger does not know get an account of their own, whatever other accounts may spend.
        :class:`BudgetError` if the account cannot pay for it.
        """
        known = fingerprint(data)
        cost = None if epsilon is None else (short(epsilon), short(delta))
        cases = None if part is None else plain(str(part))
        way, holder = plain(data.read_as), Holder.own(asked=not begins)
        counted = as_read(cases, way) if unit == "case" or units is not None else None
        self._made()
        with self._writing() as book:
            number = book.data.get(book.digest(known))
            if self.account_name is not None:
                number = on_named(book, known, number, plain(self.account_name))
            if number is None:
                number = opened(book, known, plain(unit), self._name_of(data))
            else:
                kind = kind_of_case(way) if unit == "case" else None
                found = account_of(book, number)
                if part is not None and part.follows:
                    check_follows(found, part, plain(unit), way)
                check_paid(found, cost, plain(unit), counted, kind)
            if units is not None:
                units.check(book, number)
            number = reserved(
                book,
                number,
                method,
                cost,
                parameters=parameters or {},
                unit=plain(unit),
                as_published=as_published,
                part=cases,
                way=way,
            )
            if mark is not None:
                put_mark(book, number, mark)
            book.connection.execute("INSERT INTO holders VALUES (?, ?)", (number, holder.text))
            if units is not None:
                book.connection.execute("INSERT INTO units VALUES (?, ?)", (number, units.digests))
        reservation = self._reservation(number, cost, mark, holder)
        reservation.check_kept(asked=holder.asked)
        return reservation

    def units(self, data: Data, part: Part, unit: str, names: Sequence[str | None]) -> Units:
        """Return which cases of a part are of units that no other part of its rule had, by the ``names`` of their
        units; for :meth:`reserve`, which refuses them if another release of the rule was entered meanwhile."""
        known, kind = fingerprint(data), kind_of_case(plain(data.read_as)) if unit == "case" else unit
        self._made()
        with self._reading() as book:
            number = book.data.get(book.digest(known))
            if number is None and self.account_name is not None:
                accounts = [row.number for row in book.accounts.values() if row.name == plain(self.account_name)]
                number = accounts[0] if len(accounts) == 1 else None
            return unseen(book, number, plain(str(part)), kind, names)

    def resume(
        self, data: Data, number: int, *, marks: Sequence[str | None] = (None,), complete: bool = False
    ) -> Reservation:
        """The reservation of a run that was interrupted and goes on, such as a training: it was never settled, so all
        of it is still set aside. Refused once it is settled, unless the run is ``complete`` and asks nothing more; and
        refused to a checkpoint that was gone on with already, or whose copy was: the ledger has none of its ``marks``
        then. The run that goes on must :meth:`Reservation.take_over`."""
        mark = fingerprint(data)
        with self._reading() as book:
            account = book.data.get(book.digest(mark))
            for entry in book.entries:
                if entry.number == number and entry.account == account and is_open(entry, complete):
                    check_mark(book, number, marks)
                    cost = None if entry.epsilon is None or entry.delta is None else (entry.epsilon, entry.delta)
                    return self._reservation(number, cost, book.runs.get(number), entry.holder)
        raise BudgetError(
            f"The ledger has no open reservation {number} for these data, so this run cannot go on.",
            advice="It was charged already, or belongs to other data. Start a new run, which costs anew.",
        )

    def _reservation(self, number: int, cost: Cost | None, mark: str | None, holder: Holder | None) -> Reservation:
        return Reservation(self.path, number, cost, mark, holder, self.patience, self.waiting)

    def _set(
        self, given: Given, unit: str | None, account: int | None, rule: Callable[[Account, int], Limit] | None
    ) -> Account:
        """The account, with the limit that a rule gives it, told the number of the last release."""
        data = held(given)
        mark, name = mark_of(data), self._name_of(data)
        if self.create and not self.path.exists():
            with tempfile.TemporaryDirectory() as folder:  # what is refused leaves no ledger behind
                rehearsed = replace(self, path=Path(folder) / self.path.name)
                rehearsed._made()
                rehearsed._put(mark, name, unit, account, rule)
        self._made()
        return self._put(mark, name, unit, account, rule)

    def _put(
        self,
        mark: bytes,
        name: str,
        unit: str | None,
        account: int | None,
        rule: Callable[[Account, int], Limit] | None,
    ) -> Account:
        with self._writing() as book:
            before = number = book.data.get(book.digest(mark))
            if self.account_name is not None:
                number = on_named(book, mark, number, plain(self.account_name))
            if account is not None:
                number = put_together(book, mark, number, account)
            elif number is None:
                number = opened(book, mark, "case", name)
            elif unit is None and rule is not None:
                unit = usual_unit(book, number)
            if unit is not None:
                check_unit([entry for entry in book.entries if entry.account in (before, number)], plain(unit))
                book.connection.execute("UPDATE accounts SET unit = ? WHERE account = ?", (plain(unit), number))
            if rule is not None:
                since = max((entry.number for entry in book.entries), default=0)
                limit(book, number, *rule(account_of(ledger_file.reread(book), number), since))
            return account_of(ledger_file.reread(book), number)

    def export(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write all accounts, with the guarantees of their releases, to a JSON or CSV file (by its suffix); a file that
        is there is replaced only with ``overwrite``."""
        suffix = Path(path).suffix.lower()
        if suffix not in (".json", ".csv"):
            raise OutputError("A ledger is exported to .json or .csv.", path=os.fspath(path))
        accounts = self.show()
        text = as_csv(accounts) if suffix == ".csv" else as_json(accounts, guarantees=True)
        with atomic_target(path, overwrite=overwrite) as file:
            file.write(text.encode("utf-8", "replace"))

    def _name_of(self, data: Data | bytes) -> str:
        if self.account_name is not None:
            return plain(self.account_name)
        source = (None if isinstance(data, Variants | bytes) else data.source) or self.name
        return plain(Path(source or "").name) or "data"

    def _made(self) -> None:
        if self.create and not self.path.exists():
            ledger_file.create(self.path)

    def _reading(self) -> contextlib.AbstractContextManager[Book]:
        return ledger_file.transaction(self.path, write=False, patience=self.patience, waiting=self.waiting)

    def _writing(self) -> contextlib.AbstractContextManager[Book]:
        return ledger_file.transaction(self.path, write=True, patience=self.patience, waiting=self.waiting)

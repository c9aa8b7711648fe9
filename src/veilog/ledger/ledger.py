"""Ledger: total and limit of the budget that the releases of a data set use.

A release is entered twice. Before any query, the most that it may use is *reserved*, and refused if that would exceed
the budget. Afterwards the derived cost is *charged*, never more than was reserved. Both are durable before anything
else happens. So a crash loses the release and never its charge: a remaining reservation counts as spent.

Costs add up. Let releases cost (epsilon_i, delta_i), each chosen after seeing the earlier ones. Together they are (sum
epsilon_i, sum delta_i)-differentially private as long as that sum is kept below the budget at every moment. This holds
even if the costs of later ones were chosen after the earlier ones (Rogers, Roth, Ullman, Vadhan, "Privacy odometers and
filters", 2016: for these plain sums the filter costs nothing).

The sums are for one unit: a guarantee for cases does not bound what a person with several cases loses.
:mod:`veilog.ledger.rules` has the sums of subsets of the cases, and the rules that may count instead of the sum.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import ge
from pathlib import Path
from typing import Any

from veilog._files import Naming, atomic_target, check_writable
from veilog._process import defer_stops
from veilog.errors import BudgetError, OutputError, ParameterError, QuestionError, VeilogError
from veilog.ledger import store as ledger_file
from veilog.ledger.accounts import Account, as_csv, as_json, check_follows, check_paid, check_unit, last_span
from veilog.ledger.entry import Cost, Entry, Holder, as_read, kind_of_case
from veilog.ledger.rules import Composed, Counting, FixedSchedule, composed_budget, planned_budget, short
from veilog.ledger.store import (
    PATIENCE,
    Book,
    Data,
    Given,
    Units,
    Waiting,
    account_of,
    change,
    check_together,
    derived_cost,
    fingerprint,
    give_back,
    held,
    join_named_account,
    limit,
    lost_entry_error,
    mark_of,
    note_answers,
    open_account,
    plain,
    put_together,
    reread,
    reserved,
    rule_with,
    texts,
    transaction,
    unseen,
    usual_unit,
)
from veilog.logs.variants import Variants
from veilog.privacy.account.budgets import Number, parse_delta, parse_epsilon
from veilog.privacy.account.guarantee import Guarantee, round_up
from veilog.privacy.partition import Partition, day_named


def count_uncounted(book: Book, account: int) -> int:
    """Count the uncounted releases of an account, under its budget; return how many."""
    before = account_of(book, account)
    if not before.uncounted:
        return 0
    check_together(before, replace(before, entries=before.uncounted))
    for entry in before.uncounted:
        number = reserved(
            book,
            account,
            entry.method,
            entry.cost,
            parameters=entry.parameters,
            unit=entry.unit,
            as_published=entry.as_published,
            subset=entry.subset,
            way=entry.way,
        )
        changes = "UPDATE releases SET time = ?, state = 'charged', guarantee = ? WHERE release = ?"
        book.connection.execute(changes, (entry.time, json.dumps(entry.guarantee), number))
    book.connection.execute("DELETE FROM uncounted WHERE account = ?", (account,))
    now = reread(book)
    limit(now, account, before.budget, rule_with(now, before, before.uncounted))
    return len(before.uncounted)


@dataclass(frozen=True)
class EntryRef:
    """Place of a release: this ledger, and its number."""

    path: Path
    number: int

    def naming(self, path: str | os.PathLike[str], *, waiting: Waiting | None = None) -> Naming:
        """Return a function that names the file of a release and notes it, in one.

        An interruption before leaves neither, and Ctrl-C or SIGTERM after that both. If the ledger cannot be written,
        the file gets its name all the same, because its budget is spent, and :class:`OutputError` reports it.
        """

        def both(digest: str, name: Callable[[], None]) -> None:
            named = False
            try:
                with defer_stops() as begin, self._note_file(digest, waiting):  # a wait for a ledger may be stopped
                    begin()
                    name()
                    named = True
            except VeilogError as error:
                if not named:
                    name()
                raise OutputError("ledger-file-not-noted", path=os.fspath(path), reason=error) from error

        return both

    @contextlib.contextmanager
    def _note_file(self, digest: str, waiting: Waiting | None) -> Iterator[None]:
        """Note a file when the block has ended, unless it is noted already."""
        changes = "state = 'written', output = trim(output || ' ' || ?)"
        with transaction(self.path, write=True, patience=PATIENCE, waiting=waiting) as book:
            if not any(digest in entry.outputs for entry in book.entries if entry.number == self.number):
                change(book, self.number, changes, (digest,), "charged", "written")
                book.connection.execute("DELETE FROM holders WHERE release = ?", (self.number,))
            yield

    @property
    def written(self) -> bool:
        """True if a file of it is entered; False where the ledger cannot be read now."""
        with contextlib.suppress(VeilogError):
            return any(entry.number == self.number and entry.outputs for entry in self.account().entries)
        return False

    def account(self) -> Account:
        """Return the account, with this release in it."""
        with transaction(self.path, write=False, patience=PATIENCE, waiting=None) as book:
            owner = {entry.number: entry.account for entry in book.entries}
            if self.number not in owner:
                raise lost_entry_error(book)
            return account_of(book, owner[self.number])


def is_open(entry: Entry, complete: bool) -> bool:
    """Return True if a run with this entry may go on.

    A ``complete`` run may go on also after its charge: it makes no more queries.
    """
    return entry.state == "reserved" or (complete and entry.state in ("charged", "written"))


def check_mark(book: Book, number: int, marks: Collection[str | None]) -> None:
    """Refuse unless the last checkpoint of this run has one of these marks."""
    if book.runs.get(number) not in marks:
        raise BudgetError("checkpoint-already-resumed")


def put_mark(book: Book, number: int, mark: str) -> None:
    """Make the checkpoint with this mark the last one of this run."""
    book.connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", (number, mark))


@dataclass(frozen=True)
class Reservation:
    """Budget reserved for one release.

    A run with checkpoints has a *mark*, a random text, for each of them, and the ledger keeps one mark a run. A run
    that goes on from a checkpoint first writes its own, with both marks. Then its mark replaces the other, in one
    transaction and only if the other is still there. So of all copies of a checkpoint one is gone on with, once. Only
    the run whose mark the ledger has can be charged. A crash between the two writes loses nothing, as the new
    checkpoint has both marks.
    """

    ledger: Ledger
    number: int
    cost: Cost | None
    """Most (epsilon, delta) of the release; None where nothing bounds it."""
    mark: str | None = None
    """Mark of the run's checkpoints: it is charged only while the ledger has this one."""
    holder: Holder | None = None
    """Process that made it, as the ledger knows it."""

    def begin(self) -> None:
        """Note, durably and before the first query, that the release makes queries.

        From here on all of it counts, also if its process is killed.

        Raises:
            BudgetError: It was given back meanwhile, or the ledger lost it.
            InputError: The ledger lost this note.

        """
        if self.holder is None or self.holder.asked:
            return
        with self.ledger._write_book() as book:
            self._check_held(book)
            text = self.holder.begun().text
            book.connection.execute("UPDATE holders SET holder = ? WHERE release = ?", (text, self.number))
        self.check_kept(asked=True)

    def check_kept(self, *, asked: bool) -> None:
        """Read the reservation back, as some file systems lose one of two writers' data."""
        with self.ledger._read_book() as book:
            held = self._check_held(book)
            if held.asked != asked:
                raise lost_entry_error(book)

    def _check_held(self, book: Book) -> Holder:
        """Return the holder as the ledger has it, if it is still this one."""
        held = {entry.number: entry.holder for entry in book.entries if entry.state == "reserved"}.get(self.number)
        if held is None or self.holder is None or held.mark != self.holder.mark:
            raise BudgetError("ledger-reservation-gone")
        return held

    def take_over(self, mark: str, *, complete: bool = False) -> Reservation:
        """Return the reservation for the run with this ``mark`` from here on, only."""
        with self.ledger._write_book() as book:
            if not any(entry.number == self.number and is_open(entry, complete) for entry in book.entries):
                raise lost_entry_error(book)
            check_mark(book, self.number, (self.mark,))
            put_mark(book, self.number, mark)
        return replace(self, mark=mark)

    def settle(self, guarantee: Guarantee, *, failed: bool = False, whole: bool = False) -> None:
        """Charge the derived cost, durably, before any of the release is shown.

        With ``whole``, charge all that was reserved: how far a release came before it failed in the data would reveal
        something of these. ``failed`` means that nothing more will come. If more was derived than reserved, the method
        broke its contract: the reservation stays, and an error prevents the release.
        """
        derived = derived_cost(guarantee)
        if self.cost is not None:
            if derived is None or any(round_up(d) > round_up(c) for d, c in zip(derived, self.cost, strict=True)):
                raise BudgetError("release-over-reservation")
            derived = min(short(derived[0]), self.cost[0]), min(short(derived[1]), self.cost[1])
            derived = self.cost if whole else derived
        cases = {} if guarantee.cases is None else {"cases": guarantee.cases}  # the number that judges its delta
        said = json.dumps(guarantee.to_json() | cases)
        with self._change_book(
            "epsilon = ?, delta = ?, state = 'charged', guarantee = ?", (*texts(derived), said)
        ) as book:
            if derived is not None and not whole:
                note_answers(book, self.number, guarantee.charges)
            if failed or guarantee.cases == 0:
                book.connection.execute("DELETE FROM holders WHERE release = ?", (self.number,))

    def withdraw(self) -> None:
        """Give back all of it: for a release that failed before any query."""
        with self._change_book("state = 'withdrawn'", ()) as book:
            give_back(book.connection, self.number)

    @property
    def entered(self) -> EntryRef:
        """Place of its entry, for the files that come of it."""
        return EntryRef(self.ledger.path, self.number)

    @contextlib.contextmanager
    def _change_book(self, changes: str, values: tuple[str | None, ...]) -> Iterator[Book]:
        with self.ledger._write_book() as book:
            check_mark(book, self.number, (self.mark,))
            change(book, self.number, changes, values, "reserved")
            yield book


Limit = tuple[Cost | None, Counting | None]
"""Budget, None for none, and the rule by which it is counted, None for the sum."""


@dataclass(frozen=True)
class Ledger:
    """Ledger in a file. Every call is one transaction, so that processes can share it."""

    path: Path
    patience: float = PATIENCE
    """Seconds to wait for a ledger that another process is writing."""
    waiting: Waiting | None = None
    name: str | None = None
    """Name of an account for data without a file name."""
    account_name: str | None = None
    """Account of data that are not known yet: a log that grows, about the same people."""
    create: bool = False
    """True if the first entry makes the file, if there is none."""

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
        """Return the ledger in this file, read once to check it.

        Args:
            path: File of the ledger.
            create: True to let the first entry make the file, if there is none.
            patience: Seconds to wait for a ledger that another process is writing.
            waiting: Function that is called with a text while it waits.
            name: Name of an account for data without a file name.
            account: Name of the account that releases are entered in, so that a log that grows stays on one. It is
                opened where there is none of this name.

        """
        place = ledger_file.locate(path)
        if account is not None and not account.strip():
            raise ParameterError("account-name-empty", parameter="account")
        fresh = create and not place.exists()
        ledger = Ledger(place, patience, waiting, name, account, create=fresh)  # an existing file is never made anew
        if fresh:
            check_writable(place)
        else:
            ledger.show()
        return ledger

    def show(self) -> tuple[Account, ...]:
        """Return all accounts with their releases."""
        if self.create and not self.path.exists():
            return ()
        with self._read_book() as book:
            return tuple(account_of(book, number) for number in sorted(book.accounts))

    def account(self, data: Given) -> Account | None:
        """Return the account of these data, or of this fingerprint; None if new."""
        if self.create and not self.path.exists():
            return None
        mark = mark_of(held(data))
        with self._read_book() as book:
            number = book.data.get(book.digest(mark))
            return None if number is None else account_of(book, number)

    def accounts_of(self, marks: Iterable[bytes]) -> dict[bytes, Account]:
        """Return the accounts of known data with these fingerprints, by one read."""
        if self.create and not self.path.exists():
            return {}
        with self._read_book() as book:
            found = {mark: book.data.get(book.digest(mark)) for mark in dict.fromkeys(marks)}
            accounts = {number: account_of(book, number) for number in set(found.values()) if number is not None}
            return {mark: accounts[number] for mark, number in found.items() if number is not None}

    def proven(self, files: Collection[str]) -> dict[str, frozenset[str]]:
        """Return the files (SHA-256) of proven releases in the sums, with condition codes."""
        return {
            digest: frozenset(condition["code"] for condition in entry.guarantee["conditions"])
            for account in (self.show() if files else ())
            for entry in account.entries
            if entry.guarantee is not None and entry.guarantee["status"] == "proven" and entry.cost is not None
            for digest in entry.outputs
            if digest in files
        }

    def since_last(
        self, log: Data | None = None, *, until: datetime.date | str | None = None, unit: str = "case"
    ) -> Partition:
        """Return the cases that began since the last release of a span of days.

        These are the cases of a log that grows which are not released yet, until today in UTC by default. The account
        is the one that this ledger was opened for (``account=``). It is read off the ledger alone. Releases count that
        were saved (:meth:`veilog.Release.save`) or came out empty.

        Args:
            log: Log of the release to come; refused where it is read in another way than the last.
            until: Day before which the cases began.
            unit: Protected unit of the release to come; refused where it is another than the last.

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
        """Limit what these data may spend in all, whatever they have spent.

        Args:
            data: Log, or its fingerprint.
            epsilon: Largest total epsilon; None takes the limit away.
            delta: Largest total delta.
            unit: Protected unit, as releases name it; by default the one of the releases so far, or a case.
            account: Account for the data, with all that they have spent: for data about the same people, such as a log
                that has grown.
            composed: True to count releases from now on by their composition, to less than the sum, also where each is
                chosen after seeing earlier ones. Half of ``delta`` is for that, and half for the deltas of the
                releases. A composition goes on if no limit is lowered. Otherwise it begins now, and earlier releases
                count by the sum.

        Raises:
            ParameterError: The unit is another than that of the releases: nothing would ever be left of the limit.

        """
        failure = short(parse_delta(delta))
        if epsilon is None and (failure or composed):
            raise ParameterError("ledger-delta-without-epsilon", parameter="delta")
        if epsilon is None:
            return self._set_limit(data, unit, account, lambda found, since: (None, None))
        budget = short(parse_epsilon(epsilon)), failure

        def rule(found: Account, since: int) -> Limit:
            if not composed:
                return budget, None
            kept = found.counting if isinstance(found.counting, Composed) else None
            # A limit that is lowered begins anew: it was no limit for the releases before.
            if kept is not None and found.budget is not None and all(map(ge, budget, found.budget)):
                composed_budget(found.bounded_entries(), found.unit, kept.since, budget)
                return budget, kept
            return budget, composed_budget(found.bounded_entries(), found.unit, since, budget)

        return self._set_limit(data, unit, account, rule)

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
        """Plan a number of ``releases``, each of at most ``epsilon`` and ``each_delta``.

        The budget is their total at ``delta``, which is less than the sum, with what was released before.
        """
        each = short(parse_epsilon(epsilon)), short(parse_delta(each_delta))
        failure = short(parse_delta(delta))

        def rule(found: Account, since: int) -> Limit:
            kept = found.counting
            if isinstance(kept, FixedSchedule) and (kept.releases, kept.each) == (releases, each):
                since = kept.since
            plan, budget = planned_budget(found.bounded_entries(), found.unit, since, releases, each, failure)
            return budget, plan

        return self._set_limit(data, unit, account, rule)

    def enter(self, data: Given, *, unit: str | None = None, account: int | None = None) -> Account:
        """Return the account of these data, opened without a limit if new; a limit stays."""
        return self._set_limit(data, unit, account, None)

    def note_uncounted(
        self,
        data: Data,
        method: str,
        guarantee: Guarantee,
        *,
        parameters: Mapping[str, Any] | None = None,
        unit: str = "case",
        as_published: bool = False,
        subset: Partition | None = None,
    ) -> Account:
        """Note a release without this ledger: no sum has it until :meth:`count_uncounted`."""
        epsilon, delta = texts(derived_cost(guarantee))
        cases = {} if guarantee.cases is None else {"cases": guarantee.cases}
        entry = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "method": method,
            "as_published": as_published,
            "parameters": dict(parameters or {}),
            "unit": plain(unit),
            "epsilon": epsilon,
            "delta": delta,
            "guarantee": guarantee.to_json() | cases,
            "subset": None if subset is None else plain(str(subset)),
            "way": plain(data.read_as),
        }
        mark = fingerprint(data)
        self._create_file()
        with self._write_book() as book:
            number = book.data.get(book.digest(mark))
            if number is None:
                number = open_account(book, mark, plain(unit), self._name_of(data))
            text = json.dumps(entry, default=str)
            book.connection.execute("INSERT INTO uncounted VALUES (NULL, ?, ?)", (number, text))
            return account_of(ledger_file.reread(book), number)

    def count_uncounted(self, data: Given) -> Account:
        """Take the releases of these data without this ledger into their account's sums.

        This cannot be undone.

        Raises:
            ParameterError: The account has a budget, and they do not add up with its releases.

        """
        mark = mark_of(held(data))
        if self.create and not self.path.exists():
            return self.enter(data)
        with self._write_book() as book:
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
        subset: Partition | None = None,
        units: Units | None = None,
        begins: bool = False,
    ) -> Reservation:
        """Reserve the most that a release may use, durably, before any query.

        With ``epsilon`` None nothing bounds it beforehand (as published, seeded, or another kind of guarantee).
        ``mark`` is that of the checkpoints of a run that can be interrupted. ``subset`` is the subset of its cases, if
        not all, and ``units`` are the digests of those in it. With ``begins`` the run calls :meth:`Reservation.begin`
        before its first query: until then nothing counts if its process is killed. Data that the ledger does not know
        get an account of their own, whatever other accounts may spend. :class:`BudgetError` if the account's budget is
        too small.
        """
        known = fingerprint(data)
        cost = None if epsilon is None else (short(epsilon), short(delta))
        cases = None if subset is None else plain(str(subset))
        way, holder = plain(data.read_as), Holder.own(asked=not begins)
        counted = as_read(cases, way) if unit == "case" or units is not None else None
        self._create_file()
        with self._write_book() as book:
            found = self._find_account(book, known)
            if found is None:
                number = open_account(book, known, plain(unit), self._name_of(data))
            else:
                number = found.number
                if subset is not None and subset.follows:
                    check_follows(found, subset, plain(unit), way)
                check_paid(found, cost, plain(unit), counted, kind_of_case(way) if unit == "case" else None)
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
                subset=cases,
                way=way,
            )
            if mark is not None:
                put_mark(book, number, mark)
            book.connection.execute("INSERT INTO holders VALUES (?, ?)", (number, holder.text))
            if units is not None:
                book.connection.execute("INSERT INTO units VALUES (?, ?)", (number, units.digests))
        reservation = Reservation(self, number, cost, mark, holder)
        reservation.check_kept(asked=holder.asked)
        return reservation

    def _find_account(self, book: Book, known: bytes) -> Account | None:
        """Return the account of the data with this fingerprint, and note a given name."""
        number = book.data.get(book.digest(known))
        if self.account_name is not None:
            number = join_named_account(book, known, number, plain(self.account_name))
        return None if number is None else account_of(book, number)

    def units(self, data: Data, subset: Partition, unit: str, names: Sequence[str | None]) -> Units:
        """Return the cases of a subset whose units no other subset of its rule had.

        ``names`` are the names of their units. :meth:`reserve` refuses them if another release of the rule was entered
        meanwhile.
        """
        known, kind = fingerprint(data), kind_of_case(plain(data.read_as)) if unit == "case" else unit
        self._create_file()
        with self._read_book() as book:
            number = book.data.get(book.digest(known))
            if number is None and self.account_name is not None:
                accounts = [row.number for row in book.accounts.values() if row.name == plain(self.account_name)]
                number = accounts[0] if len(accounts) == 1 else None
            return unseen(book, number, plain(str(subset)), kind, names)

    def resume(
        self, data: Data, number: int, *, marks: Sequence[str | None] = (None,), complete: bool = False
    ) -> Reservation:
        """Return the reservation of an interrupted run that goes on, such as a training.

        It was never settled, so all of it is still reserved. Refused once it is settled, unless the run is ``complete``
        and makes no more queries. Also refused for a checkpoint that a run went on from already, or from its copy: the
        ledger then has none of its ``marks``. The run that goes on must :meth:`Reservation.take_over`.
        """
        mark = fingerprint(data)
        with self._read_book() as book:
            account = book.data.get(book.digest(mark))
            for entry in book.entries:
                if entry.number == number and entry.account == account and is_open(entry, complete):
                    check_mark(book, number, marks)
                    return Reservation(self, number, entry.cost, book.runs.get(number), entry.holder)
        raise BudgetError("ledger-reservation-not-open", number=number)

    def _set_limit(
        self, given: Given, unit: str | None, account: int | None, rule: Callable[[Account, int], Limit] | None
    ) -> Account:
        """Return the account with the limit of a rule, which gets the last number."""
        data = held(given)
        mark, name = mark_of(data), self._name_of(data)
        if self.create and not self.path.exists():
            with tempfile.TemporaryDirectory() as folder:  # a refusal leaves no ledger behind
                rehearsed = replace(self, path=Path(folder) / self.path.name)
                rehearsed._create_file()
                rehearsed._put_account(mark, name, unit, account, rule)
        self._create_file()
        return self._put_account(mark, name, unit, account, rule)

    def _put_account(
        self,
        mark: bytes,
        name: str,
        unit: str | None,
        account: int | None,
        rule: Callable[[Account, int], Limit] | None,
    ) -> Account:
        with self._write_book() as book:
            before = number = book.data.get(book.digest(mark))
            if self.account_name is not None:
                number = join_named_account(book, mark, number, plain(self.account_name))
            if account is not None:
                number = put_together(book, mark, number, account)
            elif number is None:
                number = open_account(book, mark, "case", name)
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
        """Write all accounts, with the guarantees of their releases, to a file.

        Args:
            path: JSON or CSV file, by its suffix.
            overwrite: True to replace an existing file.

        """
        suffix = Path(path).suffix.lower()
        if suffix not in (".json", ".csv"):
            raise OutputError("ledger-export-format-unknown", path=os.fspath(path))
        accounts = self.show()
        text = as_csv(accounts) if suffix == ".csv" else as_json(accounts, guarantees=True)
        with atomic_target(path, overwrite=overwrite) as file:
            file.write(text.encode("utf-8", "replace"))

    def _name_of(self, data: Data | bytes) -> str:
        if self.account_name is not None:
            return plain(self.account_name)
        source = (None if isinstance(data, Variants | bytes) else data.source) or self.name
        return plain(Path(source or "").name) or "data"

    def _create_file(self) -> None:
        if self.create and not self.path.exists():
            ledger_file.create(self.path)

    def _read_book(self) -> contextlib.AbstractContextManager[Book]:
        return ledger_file.transaction(self.path, write=False, patience=self.patience, waiting=self.waiting)

    def _write_book(self) -> contextlib.AbstractContextManager[Book]:
        return ledger_file.transaction(self.path, write=True, patience=self.patience, waiting=self.waiting)


@contextlib.contextmanager
def settle_at_end(
    reservation: Reservation | None,
    claimed: Callable[[], Guarantee],
    contacted: Callable[[], bool],
    so_far: Callable[[], Guarantee] | None = None,
) -> Iterator[None]:
    """Settle a release when the block ends, at its claim.

    When the block fails, charge the queries until then (``so_far``; by default as claimed). If there was no query yet
    (``contacted``), withdraw it. If it failed in the data, charge all that was reserved. Where even that fails, it
    stays reserved, which counts as spent. With None, for no ledger, nothing happens.
    """
    if reservation is None:
        yield
        return
    try:
        yield
    except BaseException as error:  # also Ctrl-C: the queries were made
        with contextlib.suppress(VeilogError):
            if contacted():
                reservation.settle((so_far or claimed)(), failed=True, whole=isinstance(error, QuestionError))
            else:
                reservation.withdraw()
        raise
    reservation.settle(claimed())

"""Which ledger a release is entered in, and what its owner has to know of its account then."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from veilog._files import path_of
from veilog._places import default_ledger, made_folder
from veilog.errors import VeilogError
from veilog.ledger.accounts import Account, in_figures
from veilog.ledger.ledger import EntryRef, Ledger
from veilog.ledger.store import Data
from veilog.logs.variants import Variants
from veilog.messages import OwnerMessage
from veilog.methods.method import Progress
from veilog.privacy.account.guarantee import Guarantee, Strength
from veilog.releasing.owner.notes import namesakes
from veilog.releasing.request import LedgerChoice
from veilog.releasing.result import Release


def chosen_ledger(choice: LedgerChoice, *, seeded: bool, progress: Progress | None = None) -> Ledger | None:
    """Return the ledger that something is entered in. What is ``seeded`` is an experiment, which is entered only where
    a ledger is named."""
    if choice is False or (choice is None and seeded):
        return None
    if choice is None:
        place = default_ledger()
        return None if place is None else Ledger.open(made_folder(place), create=True, waiting=progress)
    return (
        choice if isinstance(choice, Ledger) else Ledger.open(path_of(choice, "ledger"), create=True, waiting=progress)
    )


def note_uncounted(
    log: Data, method: str, guarantee: Guarantee, place: Path | None = None, name: str | None = None, **asked: Any
) -> Account | None:
    """Note in the ledger at this place, by default that of this user, what was made of a log without a ledger; ``name``
    is that of its file. Where that cannot be, nothing is noted: whoever wants no ledger is not stopped by one."""
    with contextlib.suppress(VeilogError):
        ledger = default_ledger() if place is None else place
        if ledger is not None:
            kept = Ledger.open(made_folder(ledger), create=True, name=name)
            return kept.note_uncounted(log, method, guarantee, **asked)
    return None


def with_warnings(released: Release, log: Data, aside: Mapping[str, Any] | None, place: Path | None = None) -> Release:
    """Return a release with the warnings of its account. One that was kept ``aside`` of every ledger is noted in that
    at this place, by default the user's, as not counted, with what a ledger notes of it."""
    warnings: tuple[OwnerMessage, ...] = ()
    if released.entry is not None:
        warnings = entered_warnings(released.entry, log)
    elif aside is not None:
        account = note_uncounted(log, released.method, released.guarantee, place, **aside)
        warnings = () if account is None else uncounted_warning(account)
    if not warnings:
        return released
    return replace(released, owner_only=replace(released.owner_only, warnings=warnings))


def entered_warnings(entry: EntryRef, log: Data) -> tuple[OwnerMessage, ...]:
    """Return the warnings of the account that something was entered in. It is paid for, so a ledger that cannot be read
    now gives none."""
    with contextlib.suppress(VeilogError):
        account = entry.account().among(_cases(log))
        before = account.before(entry.number)
        level = before.falls_to(account)
        found = [] if level is None else [level_falls(before.strength, level)]
        if not before.releases and account.budgets_beside:
            found.append(beside_budgets(account))
        if not before.releases:
            found += filter(None, [namesakes(account)])
        if not before.releases:
            found += elsewhere_warning(entry.path, log)
        return (*found, *uncounted_warning(account))
    return ()


def elsewhere_warning(ledger: Path, log: Data) -> tuple[OwnerMessage, ...]:
    """Return the warning that the user's own ledger has releases of data that this other ledger does not count."""
    own = default_ledger()
    if own is None or not own.exists() or (ledger.exists() and own.samefile(ledger)):
        return ()
    with contextlib.suppress(VeilogError):
        account = Ledger.open(own).account(log)
        if account is not None and account.releases:
            several = account.releases > 1
            bounded = account.spent is not None
            code = f"release{'s' if several else ''}-in-another-ledger{'' if bounded else '-unbounded'}"
            epsilon = "" if account.spent is None else in_figures(account.spent[0])
            return (OwnerMessage(code, ledger=own, releases=account.releases, epsilon=epsilon),)
    return ()


def level_falls(before: Strength, after: Strength) -> OwnerMessage:
    """Return the warning that all releases of an account together protect less than they did before."""
    return OwnerMessage("account-level-falls", before=before, after=after)


def uncounted_warning(account: Account) -> tuple[OwnerMessage, ...]:
    """Return the warning that the account does not count all releases of its data, where it does not."""
    number = len(account.uncounted)
    if not number:
        return ()
    costs = [entry.epsilon for entry in account.uncounted]
    bounded = [cost for cost in costs if cost is not None]
    code = "one-release-uncounted" if number == 1 else "releases-uncounted"
    code += "" if len(bounded) == len(costs) else "-unbounded"
    return (OwnerMessage(code, releases=number, epsilon=in_figures(sum(bounded, Fraction(0)))),)


def beside_budgets(account: Account) -> OwnerMessage:
    """Return the warning that a log has an account of its own where others have budgets: one case more makes it another
    log to its ledger. An account that is not opened yet has no number."""
    return OwnerMessage("log-unknown-beside-budgets" if account.budgets_beside > 1 else "log-unknown-beside-budget")


def _cases(log: Data) -> int:
    return (log if isinstance(log, Variants) else log.variants).cases
